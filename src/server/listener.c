/* listener.c: where connections come from, a TCP address or a Unix socket, and who is at their other end. */
#include "server/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

#define BACKLOG 511
#define GROUPS_MAX 1024 /* of a process, that are looked at */

_Static_assert(CONFIG_SOCKET_MAX <= sizeof((struct sockaddr_un *)NULL)->sun_path, "the path fits");

bool stream_is_local(const union stream *stream)
{
    return stream->handle.type == UV_NAMED_PIPE;
}

static int address_text(const struct sockaddr_storage *address, char out[PEER_TEXT])
{
    bool v6 = address->ss_family == AF_INET6;
    int port = ntohs(v6 ? ((const struct sockaddr_in6 *)address)->sin6_port : ((const struct sockaddr_in *)address)->sin_port);
    char host[48] = "";
    uv_ip_name((const struct sockaddr *)address, host, sizeof host);
    snprintf(out, PEER_TEXT, v6 ? "[%s]:%d" : "%s:%d", host, port);
    return port;
}

/* ------------------------------------------------------------------------------------------------------------- the other end */

static bool credentials(union stream *stream, struct ucred *peer, int *fd)
{
    socklen_t len = sizeof *peer;
    return uv_fileno(&stream->handle, fd) == 0 && getsockopt(*fd, SOL_SOCKET, SO_PEERCRED, peer, &len) == 0;
}

void stream_name_peer(union stream *stream, char out[PEER_TEXT])
{
    struct sockaddr_storage address;
    struct ucred peer;
    int len = sizeof address, fd;
    snprintf(out, PEER_TEXT, "unknown");
    if (stream_is_local(stream)) {
        if (credentials(stream, &peer, &fd)) snprintf(out, PEER_TEXT, "unix:uid:%u:pid:%d", peer.uid, (int)peer.pid);
    } else if (uv_tcp_getpeername(&stream->tcp, (struct sockaddr *)&address, &len) == 0) {
        address_text(&address, out);
    }
}

static bool listed(const struct config_ids *ids, uint32_t id)
{
    for (uint32_t i = 0; i < ids->n; i++)
        if (ids->id[i] == id) return true;
    return false;
}

bool listener_admits(const struct config *config, union stream *stream, char *text, size_t size)
{
    const struct config_ids *uids = &config->unix_allow_uids, *gids = &config->unix_allow_gids;
    struct ucred peer;
    int fd;
    if (!stream_is_local(stream) || (uids->n == 0 && gids->n == 0)) return true;
    if (!credentials(stream, &peer, &fd)) {
        snprintf(text, size, "it cannot be found out who this is");
        return false;
    }
    if (listed(uids, peer.uid) || listed(gids, peer.gid)) return true;
    gid_t groups[GROUPS_MAX];
    socklen_t bytes = sizeof groups;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) != 0) bytes = 0;
    for (size_t i = 0; i < bytes / sizeof *groups; i++)
        if (listed(gids, groups[i])) return true;
    snprintf(text, size, "uid %u (gid %u) is not in unix_allow_uids, and in none of unix_allow_gids", peer.uid, peer.gid);
    return false;
}

/* ------------------------------------------------------------------------------------------------------------- our end */

const char *listener_advice(int error)
{
    switch (error) {
    case EADDRINUSE: return "; another aoid or program has this port: end it, or choose another one";
    case EADDRNOTAVAIL: return "; this machine has no such address: `ip addr` lists those that it has";
    case EACCES: return "; ports below 1024 need CAP_NET_BIND_SERVICE: choose a higher one";
    default: return "";
    }
}

static int cannot(const char *where, int status, const char *advice, char *err)
{
    snprintf(err, CONFIG_ERROR_MAX, "cannot listen on %s: %s%s", where, uv_strerror(status), advice);
    return -1;
}

int listener_tcp(union stream *listener, uv_loop_t *loop, const struct config *config, int fd, uv_connection_cb on_connection, int *port, char *err)
{
    struct sockaddr_storage address;
    char text[PEER_TEXT];
    int len = sizeof address;
    CHECK(uv_tcp_init(loop, &listener->tcp) == 0);
    int status = fd >= 0 ? uv_tcp_open(&listener->tcp, fd) : uv_tcp_bind(&listener->tcp, (const struct sockaddr *)&config->listen.socket, 0);
    if (status == 0) status = uv_listen(&listener->stream, BACKLOG, on_connection);
    if (status == 0) status = uv_tcp_getsockname(&listener->tcp, (struct sockaddr *)&address, &len);
    if (status != 0) return cannot(config->listen.text, status, listener_advice(-status), err);
    *port = address_text(&address, text);
    if (!config_is_loopback(&address) && config->tls_cert[0] == '\0')
        log_warn("listening", "address=%s why=\"tokens and all else cross the network in the clear, for there is no tls_cert\"", text);
    log_info("listening", "address=%s max_connections=%u", text, config->max_connections);
    return 0;
}

bool listener_reached(const union stream *listener)
{
    struct sockaddr_storage address;
    int len = sizeof address;
    if (listener->handle.type != UV_TCP) return false;
    return uv_tcp_getsockname(&listener->tcp, (struct sockaddr *)&address, &len) != 0 || !config_is_loopback(&address);
}

/* Whether a program accepts connections at this path. */
static bool answers(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool yes = fd >= 0 && (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 || errno != ECONNREFUSED);
    if (fd >= 0) close(fd);
    return yes;
}

/* A socket that a daemon which crashed has left there is removed, and nothing else. */
static const char *make_way(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    if (lstat(path, &st) != 0) return NULL;
    if (!S_ISSOCK(st.st_mode)) return "there is a file of another kind, which is left alone: choose another path";
    snprintf(address.sun_path, sizeof address.sun_path, "%.*s", CONFIG_SOCKET_MAX - 1, path);
    if (answers(&address)) return "another aoid or program listens there: end it, or choose another path";
    return unlink(path) == 0 ? NULL : "the socket that is left there cannot be removed";
}

/* Where it was bound by whoever passed it on. */
static const char *passed_path(const uv_pipe_t *pipe, char text[CONFIG_SOCKET_MAX + 1])
{
    size_t size = CONFIG_SOCKET_MAX;
    if (uv_pipe_getsockname(pipe, text, &size) != 0) size = 0;
    text[size] = '\0';
    for (char *c = text; c < text + size; c++)
        if (*c == '\0') *c = '@'; /* an abstract one */
    return text;
}

static bool has_directory(const char *path)
{
    char directory[CONFIG_SOCKET_MAX];
    struct stat st;
    const char *slash = strrchr(path, '/');
    snprintf(directory, sizeof directory, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1, slash != NULL ? path : ".");
    return stat(directory, &st) == 0 || errno != ENOENT;
}

int listener_unix(union stream *listener, uv_loop_t *loop, const struct config *config, int fd, uv_connection_cb on_connection, char *err)
{
    char bound[CONFIG_SOCKET_MAX + 1];
    const char *path = fd >= 0 ? "the Unix socket that was passed on" : config->unix_socket, *why = fd >= 0 ? NULL : make_way(path);
    CHECK(uv_pipe_init(loop, &listener->pipe, 0) == 0);
    if (why != NULL) {
        snprintf(err, CONFIG_ERROR_MAX, "cannot listen on %s: %s", path, why);
        return -1;
    }
    int status = fd >= 0 ? uv_pipe_open(&listener->pipe, fd) : uv_pipe_bind(&listener->pipe, path);
    if (status == 0 && fd < 0 && chmod(path, config->unix_mode) != 0) status = -errno; /* nobody can connect before it listens */
    if (status == 0) status = uv_listen(&listener->stream, BACKLOG, on_connection);
    if (status == UV_EACCES && fd < 0 && !has_directory(path)) status = UV_ENOENT; /* libuv says that it is forbidden */
    if (status != 0) return cannot(path, status, "; the directory must exist, and the daemon's user must be able to write in it", err);
    if (fd >= 0)
        log_info("listening", "unix_socket=%s passed_on=yes", passed_path(&listener->pipe, bound));
    else
        log_info("listening", "unix_socket=%s mode=%04o", path, config->unix_mode);
    return 0;
}
