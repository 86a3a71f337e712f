/* listener.h: where connections come from, a TCP address or a Unix socket, and who is at their other end. */
#ifndef AOI_SERVER_LISTENER_H
#define AOI_SERVER_LISTENER_H

#include <uv.h>

#include "server/config.h"

#define PEER_TEXT 64

/* Either end of either kind. */
union stream {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

/* Whether it is a Unix socket. */
bool stream_is_local(const union stream *stream);
/* "127.0.0.1:2643", "[::1]:2643", "unix:uid:1000:pid:42", for the log. */
void stream_name_peer(union stream *stream, char out[PEER_TEXT]);

/* What to do where a TCP address cannot be listened on, for this errno: "; ...", or "". */
const char *listener_advice(int error);
/* fd: a socket that listens already, or -1. Initialise, bind and listen; on_connection is called with stream->handle.data, which is the caller's. 0, or -1 with err[CONFIG_ERROR_MAX]; the handle must be
 * closed either way. */
int listener_tcp(union stream *listener, uv_loop_t *loop, const struct config *config, int fd, uv_connection_cb on_connection, int *port, char *err);
int listener_unix(union stream *listener, uv_loop_t *loop, const struct config *config, int fd, uv_connection_cb on_connection, char *err);

/* Whether other machines can reach what listens there, be it what the configuration says or a socket that was passed on. false for a Unix socket, and where nothing listens. */
bool listener_reached(const union stream *listener);

/* Whether the process at the other end of an accepted Unix socket is one of those that may come in; if not, why, in text[size]. TCP: always. */
bool listener_admits(const struct config *config, union stream *stream, char *text, size_t size);

#endif
