/* http.h: pages for monitoring: a small HTTP server (libwebsockets) on the daemon's loop, for a few clients at once. GET and HEAD only. */
#ifndef AOI_SERVER_HTTP_H
#define AOI_SERVER_HTTP_H

#include <stdbool.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/buf.h"

#define HTTP_CLIENTS 16 /* more are turned away */
#define HTTP_FILES (HTTP_CLIENTS + 8)

/* One page. make() appends the body, text of the given type, and returns the HTTP status; `after` is the number behind ?after=, 0 if there is none. */
struct http_page {
    const char *path, *type;
    bool list; /* comes in pieces, by ?after=, and takes nothing else; what is behind the ? of other pages is not looked at */
    int (*make)(void *ctx, uint64_t after, struct buf *body);
};

struct http;

/* Listens; pages end with a path of NULL, and are borrowed like ctx. *port is the one it got. NULL: it cannot, and why says so (borrowed); errno is that of the address, or 0 where it is not to blame. */
struct http *http_new(uv_loop_t *loop, const struct sockaddr_storage *address, const struct http_page *pages, void *ctx, int *port, const char **why);
/* Closes its handles, which takes some turns of the loop; no page is made any more. */
void http_close(struct http *http);
/* After the loop has ended. NULL is fine. */
void http_free(struct http *http);

#endif
