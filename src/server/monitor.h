/* monitor.h: the pages for whoever watches the daemon: /metrics, /healthz, /readyz, /spaces, /sessions. */
#ifndef AOI_SERVER_MONITOR_H
#define AOI_SERVER_MONITOR_H

#include "server/server.h"

struct http;

struct monitor {
    struct server *server;
    struct http *http; /* NULL: http_listen is empty */
};

/* Serves the pages at http_listen, until the server closes its handles. 0, or -1 with err[CONFIG_ERROR_MAX]. */
int monitor_start(struct monitor *monitor, struct server *server, char *err);
void monitor_clear(struct monitor *monitor); /* after the loop has ended */

#endif
