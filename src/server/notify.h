/* notify.h: tells whoever started the daemon how far it is: systemd, and scripts by a file with the port. */
#ifndef AOI_SERVER_NOTIFY_H
#define AOI_SERVER_NOTIFY_H

#include <stdint.h>

/* Sends "READY=1", "STOPPING=1" ... to the socket of NOTIFY_SOCKET; does nothing where there is none. Failures are logged. */
void notify_systemd(const char *state);
/* The configuration is about to be read anew; READY=1 follows. */
void notify_reloading(void);
/* How often systemd wants to hear WATCHDOG=1; 0: never. */
uint64_t notify_watchdog_ms(void);
/* Writes the port into a file that appears at once whole. 0, or -1 with errno. */
int notify_port_file(const char *path, int port);
/* Whether that will be possible, at the start, when nothing has happened yet: 0, or -1 with errno. */
int notify_port_file_check(const char *path);

#endif
