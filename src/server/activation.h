/* activation.h: the descriptors that the daemon is started with: sockets that systemd opened and passed on (sd_listen_fds(3)), in which connections wait while it
 * restarts, and the standard ones. */
#ifndef AOI_SERVER_ACTIVATION_H
#define AOI_SERVER_ACTIVATION_H

#include "server/config.h"

struct activation {
    int tcp, local; /* sockets that listen already; -1: was not passed. The server takes them over */
};

/* What LISTEN_FDS and LISTEN_PID name, told apart by what they are: at most one TCP socket and one Unix socket. A TCP socket that others can reach needs tokens, as
 * `listen` does. 0, or -1 with err[CONFIG_ERROR_MAX]. */
int activation_take(struct activation *activation, const struct config *config, char *err);

/* Descriptors 0 to 2 that are closed would be given to the first sockets, and log lines written into them: opens them as /dev/null. */
void activation_hold_standard(void);

#endif
