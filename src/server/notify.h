/* notify.h: tells whoever started the daemon how far it is: systemd, and scripts by a file with the port. */
#ifndef AOI_SERVER_NOTIFY_H
#define AOI_SERVER_NOTIFY_H

/* Sends "READY=1", "STOPPING=1" ... to the socket of NOTIFY_SOCKET; does nothing where there is none. Failures are logged. */
void notify_systemd(const char *state);
/* Writes the port into a file that appears at once whole. 0, or -1 with errno. */
int notify_port_file(const char *path, int port);

#endif
