/* hold.c: the file that this daemon keeps writing, for which a lock stands beside it: the file itself is replaced by each snapshot. */
#include "server/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_SUFFIX ".lock"

static const char *lock_name(const char *path, char name[CONFIG_PATH_MAX + sizeof LOCK_SUFFIX])
{
    snprintf(name, CONFIG_PATH_MAX + sizeof LOCK_SUFFIX, "%s" LOCK_SUFFIX, path);
    return name;
}

/* 0, or errno; EWOULDBLOCK: another one has it. Where the file system knows no locks there is none. */
static int take(struct hold *hold)
{
    char name[CONFIG_PATH_MAX + sizeof LOCK_SUFFIX];
    for (;;) {
        struct stat status;
        int fd = open(lock_name(hold->path, name), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (fd < 0) return errno;
        if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            close(fd);
            return EWOULDBLOCK;
        }
        hold->fd = fd;
        if (fstat(fd, &status) != 0 || status.st_nlink > 0) return 0;
        close(fd); /* who had it has just removed it */
        hold->fd = -1;
    }
}

static const char *file_of(const struct config *config)
{
    return config->snapshot[0] != '\0' ? config->snapshot : config->record;
}

static const char *option_of(const struct config *config)
{
    return config->snapshot[0] != '\0' ? "snapshot" : "record";
}

int hold_check(const struct config *config, char *err)
{
    struct stat status;
    const char *option = option_of(config), *path = file_of(config), *slash = strrchr(path, '/');
    char folder[CONFIG_PATH_MAX] = ".";
    if (path[0] == '\0') return 0;
    if (slash != NULL) snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (stat(folder, &status) != 0) {
        snprintf(err, CONFIG_ERROR_MAX, "%s = %.200s: cannot be written: %s: %.200s", option, path, strerror(errno), folder);
        return -1;
    }
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) { /* what stands there would be renamed: a folder, or /dev/null */
        snprintf(err, CONFIG_ERROR_MAX, "%s = %.300s: is not a regular file; it is to be the name of a file, in a folder that is there", option,
                 path);
        return -1;
    }
    return 0;
}

int hold_take(struct hold *hold, const struct config *config, char *err)
{
    const char *option = option_of(config), *path = file_of(config);
    *hold = (struct hold){.fd = -1, .path = path};
    if (path[0] == '\0') return 0;
    if (hold_check(config, err) != 0) return -1;
    int error = take(hold);
    if (error == 0) return 0;
    if (error == EWOULDBLOCK)
        snprintf(err, CONFIG_ERROR_MAX, "%s = %.300s: another aoid has this file: end it, or choose another file", option, path);
    else
        snprintf(err, CONFIG_ERROR_MAX, "%s = %.200s: %.200s" LOCK_SUFFIX " cannot be written: %s", option, path, path, strerror(error));
    return -1;
}

/* Somebody may have removed it, and another daemon have made its own since. */
static bool is_ours(const struct hold *hold, const char *name)
{
    struct stat ours, there;
    return fstat(hold->fd, &ours) == 0 && lstat(name, &there) == 0 && ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

void hold_release(struct hold *hold)
{
    char name[CONFIG_PATH_MAX + sizeof LOCK_SUFFIX];
    if (hold->fd < 0) return;
    if (is_ours(hold, lock_name(hold->path, name))) unlink(name);
    close(hold->fd);
    hold->fd = -1;
}
