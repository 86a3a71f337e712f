/* notify.c: tells whoever started the daemon how far it is: systemd (the protocol of sd_notify(3)), and scripts by a file with the port. */
#include "server/notify.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

void notify_systemd(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@')) return;
    size_t len = strlen(path);
    if (len >= sizeof address.sun_path) return;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') address.sun_path[0] = '\0'; /* an abstract name */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, address_len) < 0)
        log_warn("notify", "state=%s error=%s", state, strerror(errno));
    if (fd >= 0) close(fd);
}

void notify_reloading(void)
{
    struct timespec now;
    char state[80];
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
    notify_systemd(state);
}

uint64_t notify_watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (usec == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid())) return 0;
    unsigned long long interval_ms = strtoull(usec, NULL, 10) / 1000;
    return interval_ms > 0 && interval_ms < 1000 * 86400 ? interval_ms : 0;
}

/* What is renamed to path when it is whole; NULL: it cannot be written. */
static FILE *open_temporary(const char *path, char temporary[PATH_MAX])
{
    struct stat st;
    if (snprintf(temporary, PATH_MAX, "%s.tmp", path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return NULL;
    }
    return fopen(temporary, "we");
}

int notify_port_file_check(const char *path)
{
    char temporary[PATH_MAX];
    FILE *file = open_temporary(path, temporary);
    if (file == NULL) return -1;
    fclose(file);
    return unlink(temporary);
}

int notify_port_file(const char *path, int port)
{
    char temporary[PATH_MAX];
    FILE *file = open_temporary(path, temporary);
    if (file == NULL) return -1;
    int written = fprintf(file, "%d\n", port);
    if (fclose(file) != 0 || written < 0) return -1;
    return rename(temporary, path);
}
