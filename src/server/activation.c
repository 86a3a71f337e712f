/* activation.c: the descriptors that the daemon is started with: sockets that systemd opened and passed on, and the standard ones. */
#include "server/activation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_FD 3
#define MOST 16

static int take(struct activation *activation, int fd, const struct config *config, char *err)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address, size = sizeof(int);
    int listens = 0, type = 0;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || getsockname(fd, (struct sockaddr *)&address, &len) != 0) {
        snprintf(err, CONFIG_ERROR_MAX, "socket activation: descriptor %d is not a socket: %s", fd, strerror(errno));
        return -1;
    }
    bool local = address.ss_family == AF_UNIX;
    int *slot = local ? &activation->local : &activation->tcp;
    const char *why = NULL;
    if (!listens || type != SOCK_STREAM || (!local && address.ss_family != AF_INET && address.ss_family != AF_INET6))
        why = "is not a stream socket that listens (ListenStream= and Accept=no in the socket unit)";
    else if (*slot >= 0)
        why = local ? "is a second Unix socket; one is all that is taken" : "is a second TCP socket; one is all that is taken";
    else if (!local && !config_is_loopback(&address) && config->tokens_file[0] == '\0')
        why = "can be reached from other machines, and without tokens anybody could command the daemon from there: set tokens_file, or "
              "ListenStream=127.0.0.1:2643";
    if (why == NULL) {
        *slot = fd;
        return 0;
    }
    snprintf(err, CONFIG_ERROR_MAX, "socket activation: descriptor %d %s", fd, why);
    return -1;
}

void activation_hold_standard(void)
{
    int fd;
    do fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) close(fd);
}

int activation_take(struct activation *activation, const struct config *config, char *err)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    long n = pid != NULL && fds != NULL && strtol(pid, NULL, 10) == (long)getpid() ? strtol(fds, NULL, 10) : 0;
    *activation = (struct activation){.tcp = -1, .local = -1};
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (n < 0 || n > MOST) {
        snprintf(err, CONFIG_ERROR_MAX, "socket activation: LISTEN_FDS=%ld", n);
        return -1;
    }
    for (int fd = FIRST_FD; fd < FIRST_FD + n; fd++)
        if (take(activation, fd, config, err) != 0) return -1;
    return 0;
}
