/* daemon.h: a daemon of one's own: started on a free port, watched, and stopped by its process id. */
#ifndef AOI_TOOLS_DAEMON_H
#define AOI_TOOLS_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct daemon {
    pid_t pid;        /* 0: not running */
    char dir[96];     /* its temporary directory, gone after daemon_stop() */
    char log[128];    /* its log, in the directory */
    char address[64]; /* HOST:PORT */
};

/* Starts the program at `path` with the arguments args[0 .. n) behind "--listen 127.0.0.1:0 --port-file FILE", and waits until it listens. 0, or -1 with a
 * sentence in error (and nothing left behind). */
int daemon_start(struct daemon *d, const char *path, const char *const *args, size_t n, char *error, size_t error_size);
/* Removes the directory now, so that nothing of it is left however this process ends; the daemon goes on without. */
void daemon_forget(struct daemon *d);
/* SIGTERM, then SIGKILL after timeout_ms; removes the directory. The exit status, or 128 + the signal that ended it. */
int daemon_stop(struct daemon *d, int timeout_ms);
/* Waits up to timeout_ms for it to end by itself. As daemon_stop() but -1 if it still runs; the directory stays until daemon_stop(). */
int daemon_wait(struct daemon *d, int timeout_ms);

double daemon_cpu_seconds(pid_t pid);                            /* user and system time so far; 0 if it cannot be read */
void daemon_writes(pid_t pid, uint64_t *calls, uint64_t *bytes); /* so far; 0 if it cannot be read */
size_t daemon_memory_bytes(pid_t pid);                           /* resident; 0 if it cannot be read */
size_t daemon_memory_peak_bytes(pid_t pid);

#endif
