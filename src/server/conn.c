/* conn.c: one connection: its input in fair portions, its clocks, and the end of its socket. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/explain.h"
#include "server/server.h"
#include "wire/frame.h"

/* A connection's turn also ends when its frames have made so many bytes of replies, or took server_turn_ns(). */
#define TURN_OUT_BYTES ((uint64_t)1024 * 1024)
/* A closing socket gets so long to take its last bytes, and its peer to see them and to close. */
#define CLOSE_WAIT_MS 2000
#define DRAIN_WAIT_MS 250
/* What a byte counts for when it is read, long before it is known what its frame takes: a connection that sends much is heavy before its first frame is whole. */
#define NS_PER_BYTE 1
#define KERNEL_BYTES (256 * 1024) /* each way; enough for 10 Gbit/s at 0.2 ms */
/* A long batch pauses then, though others wait: until it ends nobody may come near its space. */
#define BATCH_MIN_NS ((uint64_t)4 * 1000 * 1000)
/* Whose players were skipped more often than served in so many ticks is warned of. */
#define SLOW_TICKS (10000 / SERVER_TICK_MS)
/* The first tick comes any time after the wrong token did, so that it does not count. */
#define DENIED_TICKS (SESSION_DENIED_MS / SERVER_TICK_MS + 1)
#define RELAX_TICKS 32 /* unused buffers are given back about so often */

enum input {
    INPUT_READING, /* libuv reads */
    INPUT_WAITING, /* for the next turn: in server->waiting */
    INPUT_PAUSED,  /* until the outbox is no longer full */
    INPUT_HELD     /* its next frame is about conn->held_by, of which a flush is open */
};

struct conn {
    struct session session;
    struct server *server;
    union stream stream;
    struct tls *tls; /* NULL: none */
    uv_shutdown_t shutdown;
    uint32_t at;   /* in server->conns */
    struct buf in; /* received, but no whole frame yet, or not its turn */
    enum input input;
    uint64_t held_by, held_ns; /* the space, and since when; held_ns 0: not held */
    uint64_t served, skipped;  /* of its session, when that was looked at last */
    uint64_t counted;          /* what its buffers took when that was counted last */
    uint64_t busy_ns;          /* what its bytes and frames took lately: halved with each tick */
    bool waits;                /* in server->waiting, perhaps without still being INPUT_WAITING */
    bool unread;               /* its turn begins by reading: there was something to read, but no time */
    bool refused;              /* over max_connections */
    bool ended;                /* what the session owned is removed */
    bool heard;                /* something came */
    bool peer_closed;          /* end of file was read */
    bool said_last;            /* the peer said over TLS that nothing more comes; what came before that, and waits, is still applied */
    bool shut;                 /* nothing will be written any more: it lingers until its peer closes too */
    bool dropped;              /* the handle closes: nothing may be done any more */
    /* of server->clock_ms, but for closing_ms */
    uint64_t opened_ms, input_ms; /* input_ms: when something came last */
    uint64_t frame_ms;            /* when the frame at the start of `in` began to come; 0: none has */
    uint64_t stopped_ms;          /* since when it is not read, unless INPUT_READING */
    uint64_t soft_ms;             /* since when the outbox is full; 0: it is not */
    uint64_t closing_ms;          /* of the loop's time */
};

struct session *conn_session(struct conn *conn)
{
    return &conn->session;
}

struct conn *conn_of_session(struct session *session)
{
    return (struct conn *)((char *)session - offsetof(struct conn, session));
}

/* Rounded up to the next tick, so that no timeout comes early. */
static uint64_t now_ms(const struct conn *conn)
{
    return conn->server->clock_ms + SERVER_TICK_MS;
}

bool conn_quiet(const struct conn *conn)
{
    return outbox_bytes(&conn->session.out) == 0 && conn->input == INPUT_READING;
}

uint64_t conn_silent_ms(const struct conn *conn)
{
    return now_ms(conn) - conn->input_ms;
}

uint64_t conn_full_ms(const struct conn *conn)
{
    return conn->soft_ms == 0 ? 0 : now_ms(conn) - conn->soft_ms;
}

uint64_t conn_busy_ns(const struct conn *conn)
{
    return conn->busy_ns;
}

/* ------------------------------------------------------------------------------------------------------------- input */

/* A batch that pauses goes before those who flood, for others wait for it to end. */
static enum turn turn_of(const struct conn *conn)
{
    if (conn->session.state == SESSION_HELLO_WAIT) return TURN_STRANGER;
    return conn->busy_ns < server_light_ns(conn->server) || conn->session.batch != NULL ? TURN_LIGHT : TURN_HEAVY;
}

/* Where its turn has not come it is not even read. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    const struct conn *conn = handle->data;
    struct server *server = conn->server;
    enum turn turn = turn_of(conn);
    bool others = server->waiting[TURN_HEAVY].n + server->waiting[TURN_STRANGER].n > 0;
    bool waits = conn->session.state != SESSION_CLOSING && (server_turn_over(server) || (others && turn != TURN_LIGHT));
    *buf = waits ? uv_buf_init(NULL, 0) : uv_buf_init(server->scratch, server_read_bytes(server));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

static void set_input(struct conn *conn, enum input input)
{
    struct server *server = conn->server;
    if (input == INPUT_WAITING && !conn->waits) {
        conn->waits = true;
        server_wait_turn(server, conn, turn_of(conn));
    }
    if (input == conn->input) return;
    if (conn->input == INPUT_READING) {
        uv_read_stop(&conn->stream.stream);
        conn->stopped_ms = now_ms(conn);
    }
    conn->input = input;
    if (input != INPUT_READING) return;
    /* its clocks stood still while it was not read */
    uint64_t stood_ms = now_ms(conn) - conn->stopped_ms;
    conn->opened_ms += stood_ms;
    conn->input_ms += stood_ms;
    if (conn->frame_ms != 0) conn->frame_ms += stood_ms;
    if (!conn->peer_closed && uv_read_start(&conn->stream.stream, on_alloc, on_read) != 0) session_close(&server->sessions, &conn->session, CLOSE_IO);
    if (conn->said_last) session_close(&server->sessions, &conn->session, CLOSE_EOF);
}

static size_t frame_limit(const struct conn *conn)
{
    size_t most = (size_t)conn->server->config->max_frame_bytes;
    return conn->session.state == SESSION_HELLO_WAIT && most > DISPATCH_HELLO_BYTES ? DISPATCH_HELLO_BYTES : most;
}

/* Whether the outbox is too full for another reply; where memory is short, that is sooner. */
static bool is_full(struct conn *conn)
{
    const struct outbox *out = &conn->session.out;
    return outbox_full(out) || (outbox_bytes(out) > BUDGET_UNSENT_BYTES && budget_full(&conn->server->budget));
}

/* The same, but what the kernel takes is written. */
static bool blocked(struct conn *conn)
{
    if (!is_full(conn)) return false;
    if (outbox_flush(&conn->session.out) < 0) session_close(&conn->server->sessions, &conn->session, CLOSE_IO);
    return is_full(conn);
}

static void count_buffers(struct conn *conn)
{
    budget_count(&conn->server->budget, &conn->counted, outbox_held(&conn->session.out) + conn->in.cap);
}

/* Whether another frame may be applied. */
static bool goes_on(struct conn *conn)
{
    if (conn->session.batch != NULL) return true;                      /* others wait for it to end */
    bool full = conn->session.state < SESSION_BROKEN && blocked(conn); /* which may show that it is broken */
    return conn->session.state == SESSION_BROKEN || (conn->session.state != SESSION_CLOSING && !full);
}

/* Says why, and closes. */
static void turn_away(struct conn *conn, int code, const char *text, enum close_reason reason)
{
    session_refuse(&conn->server->sessions, &conn->session, 0, code, text, reason);
}

/* Whoever tries it with a browser or curl is told at once, and not after a timeout. No ClientFrame begins like this: the first letter would be a length, and
 * the others a field that there is not. */
static bool speaks_http(const uint8_t *data, size_t len)
{
    static const char *const methods[] = {"GET ", "HEAD", "POST", "PUT ", "OPTI", "PRI "};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (len >= 4 && memcmp(data, methods[i], 4) == 0) return true;
    return false;
}

/* When a batch that begins now is to pause. In a recording a frame and its flushes stand together: while one is made, none pauses. */
static uint64_t pause_ns(const struct server *server, uint64_t now_ns, uint64_t turn_ns)
{
    if (server->record != NULL) return 0;
    return now_ns + (turn_ns < BATCH_MIN_NS ? BATCH_MIN_NS : turn_ns);
}

/* Applies frames of data[0 .. len) until there is no whole one any more, the turn is over (*more), the outbox is full or a frame has to wait (held_by). Returns how
 * many bytes it used. */
static size_t apply_frames(struct conn *conn, const uint8_t *data, size_t len, bool *more)
{
    struct session *session = &conn->session;
    uint64_t began_ns = uv_hrtime(), now_ns = began_ns, end_ns = began_ns + server_turn_ns(conn->server),
             out_most = outbox_bytes(&session->out) + TURN_OUT_BYTES;
    size_t used = 0;
    conn->held_by = 0;
    while (used < len && goes_on(conn)) {
        struct frame frame;
        if (session->state == SESSION_HELLO_WAIT && speaks_http(data, len)) {
            turn_away(conn, CODEC_MALFORMED, "this is no HTTP server: see aoi.proto for what aoid speaks", CLOSE_MALFORMED);
            break;
        }
        enum frame_status status = frame_next(data + used, len - used, frame_limit(conn), &frame);
        if (status == FRAME_INCOMPLETE) break;
        if (status == FRAME_TOO_LARGE) {
            const char *why = explain_length(&conn->server->dispatch, session->state == SESSION_HELLO_WAIT, frame_limit(conn));
            turn_away(conn, CODEC_FRAME_TOO_LARGE, why, CLOSE_TOO_LARGE);
            break;
        }
        conn->server->flusher.since_ns = conn->held_ns;
        conn->server->dispatch.pause_ns = pause_ns(conn->server, now_ns, end_ns - began_ns);
        uint64_t wait = dispatch_frame(&conn->server->dispatch, session, data + used + frame.header_len, frame.body_len);
        conn->server->flusher.since_ns = 0;
        if (wait == DISPATCH_AGAIN) {
            *more = true;
            break;
        }
        conn->held_by = wait;
        conn->held_ns = wait == 0 ? 0 : conn->held_ns != 0 ? conn->held_ns : now_ns;
        if (wait != 0) break;
        used += frame.header_len + frame.body_len;
        now_ns = uv_hrtime();
        if (outbox_bytes(&session->out) > out_most || now_ns > end_ns) {
            *more = used < len;
            break;
        }
    }
    conn->busy_ns += now_ns - began_ns;
    return used;
}

/* Takes in data, or goes on with what waits where data is NULL; more: there may be more to read, but not in this turn. */
static void take_input(struct conn *conn, const char *data, size_t len, bool more)
{
    struct buf *in = &conn->in;
    size_t used = 0;
    if (data != NULL && buf_len(in) == 0) {
        used = apply_frames(conn, (const uint8_t *)data, len, &more);
        buf_append(in, data + used, len - used);
    } else {
        buf_append(in, data, len);
        used = apply_frames(conn, buf_data(in), buf_len(in), &more);
        buf_consume(in, used);
    }
    if (conn->session.state == SESSION_CLOSING) {
        buf_clear(in);
        return;
    }
    if (used > 0) conn->frame_ms = 0;
    if (buf_len(in) == 0)
        buf_shrink(in, 0);
    else if (conn->frame_ms == 0)
        conn->frame_ms = now_ms(conn);
    bool broken = conn->session.state == SESSION_BROKEN;
    if (broken) session_touch(&conn->server->sessions, &conn->session);
    if (conn->held_by != 0) conn->server->holds = true;
    set_input(conn, conn->held_by != 0                                        ? INPUT_HELD
                    : !broken && conn->session.batch == NULL && is_full(conn) ? INPUT_PAUSED
                    : more                                                    ? INPUT_WAITING
                                                                              : INPUT_READING);
}

/* A plain client is told so in its own language, and the log says why as it does of a handshake that failed. */
static void refuse_plain(struct conn *conn)
{
    conn->session.out.seal = NULL;
    tls_free(conn->tls);
    conn->tls = NULL;
    log_info("tls", "peer=%s error=\"it does not begin with a TLS handshake: a plain client at a port that speaks TLS\"", conn->session.peer);
    turn_away(conn, CODEC_UNAUTHENTICATED, "this port speaks TLS (the daemon has a tls_cert), and the connection is a plain one", CLOSE_TLS);
}

static void take_sealed(struct conn *conn, const char *data, size_t len, bool more)
{
    struct server *server = conn->server;
    char why[160];
    ssize_t n;
    uint64_t began_ns = uv_hrtime(), busy_ns = conn->busy_ns;
    tls_feed(conn->tls, data, len);
    while ((n = tls_read(conn->tls, server->plain, SERVER_PLAIN_BYTES)) > 0) {
        if (conn->input == INPUT_READING && conn->session.state != SESSION_CLOSING)
            take_input(conn, server->plain, (size_t)n, more);
        else if (conn->session.state != SESSION_CLOSING)
            buf_append(&conn->in, server->plain, (size_t)n); /* it has to wait for its turn */
    }
    conn->busy_ns = busy_ns + (uv_hrtime() - began_ns); /* its frames, which have been counted, and what TLS took beside them */
    if (n == TLS_FAILED && conn->session.state != SESSION_CLOSING)
        log_info("tls", "peer=%s error=%s", conn->session.peer, log_quote(tls_why(conn->tls), why, sizeof why));
    conn->said_last = n == TLS_END;
    if (n == TLS_FAILED || (conn->said_last && conn->input == INPUT_READING))
        session_close(&server->sessions, &conn->session, n == TLS_END ? CLOSE_EOF : CLOSE_TLS);
    session_touch(&server->sessions, &conn->session); /* there may be something to seal */
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct conn *conn = stream->data;
    struct server *server = conn->server;
    if (n == 0) return;
    if (n == UV_ENOBUFS) {
        conn->unread = true;
        set_input(conn, INPUT_WAITING);
    } else if (n < 0) {
        uv_read_stop(stream);
        conn->peer_closed = true;
        session_close(&server->sessions, &conn->session, n == UV_EOF ? CLOSE_EOF : CLOSE_IO);
        session_touch(&server->sessions, &conn->session);
    } else {
        bool closing = conn->session.state == SESSION_CLOSING; /* then it is read only so that it does not end with a reset */
        bool first = !conn->heard, more = (size_t)n == buf->len;
        conn->heard = true;
        conn->busy_ns += (uint64_t)n * NS_PER_BYTE;
        if (!closing) {
            server->metrics.bytes_in += (uint64_t)n;
            conn->input_ms = now_ms(conn);
        }
        if (conn->tls != NULL && first && !tls_looks_like(buf->base, (size_t)n))
            refuse_plain(conn);
        else if (conn->tls != NULL)
            take_sealed(conn, buf->base, (size_t)n, more);
        else if (!closing)
            take_input(conn, buf->base, (size_t)n, more);
    }
    server_settle(server);
}

bool conn_let_go(struct conn *conn)
{
    if (conn->session.state == SESSION_CLOSING && !conn->ended) {
        session_touch(&conn->server->sessions, &conn->session);
        return false;
    }
    if (conn->input != INPUT_HELD) return true;
    if (dispatch_holds(&conn->server->dispatch, conn->held_by)) return false;
    set_input(conn, INPUT_WAITING);
    return true;
}

/* As libuv would, in the next turn of the loop, where others might be before it again. */
static void read_now(struct conn *conn)
{
    uv_buf_t buf = uv_buf_init(conn->server->scratch, server_read_bytes(conn->server));
    uv_os_fd_t fd;
    conn->unread = false;
    set_input(conn, INPUT_READING);
    if (conn->session.state == SESSION_CLOSING || uv_fileno(&conn->stream.handle, &fd) != 0) return;
    ssize_t n = recv(fd, buf.base, buf.len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        take_input(conn, NULL, 0, false);
    else
        on_read(&conn->stream.stream, n < 0 ? -errno : n == 0 ? UV_EOF : n, &buf);
}

void conn_turn(struct conn *conn)
{
    conn->waits = false;
    if (conn->dropped || conn->input != INPUT_WAITING || conn->session.state == SESSION_CLOSING) return;
    if (conn->unread || buf_len(&conn->in) == 0)
        read_now(conn);
    else
        take_input(conn, NULL, 0, false);
}

/* ------------------------------------------------------------------------------------------------------------- output and the end */

static void on_written(struct outbox *outbox, int status)
{
    struct session *session = (struct session *)((char *)outbox - offsetof(struct session, out));
    struct conn *conn = conn_of_session(session);
    if (conn->dropped) return;
    if (status != 0) session_close(&conn->server->sessions, session, CLOSE_IO);
    session_touch(&conn->server->sessions, session);
    server_settle(conn->server);
}

static void on_closed(uv_handle_t *handle)
{
    struct conn *conn = handle->data;
    outbox_clear(&conn->session.out);
    tls_free(conn->tls);
    buf_clear(&conn->in);
    free(conn);
}

void conn_drop(struct conn *conn)
{
    struct server *server = conn->server;
    if (conn->dropped) return;
    CHECK(conn->session.state == SESSION_CLOSING && conn->ended);
    conn->dropped = true;
    if (conn->waits) server_forget_turn(server, conn);
    struct conn *last = server->conns.at[server->conns.n - 1];
    last->at = conn->at;
    array_swap_remove(&server->conns, conn->at);
    if (conn->refused) server->refused--;
    if (conn->shut && !conn->refused) server->lingering--;
    budget_count(&server->budget, &conn->counted, 0);
    uv_close(&conn->stream.handle, on_closed);
}

/* The connection lets go of its session (or tries to, until it may), which ends with Bye, or where there are no leases. While draining nothing ends, for nobody is to see anything leave. */
static void end_session(struct conn *conn)
{
    struct server *server = conn->server;
    struct standing *standing = conn->session.standing;
    if (standing != NULL && !dispatch_may_part(&server->dispatch, standing->owner)) {
        server->holds = true;
        return;
    }
    conn->ended = true;
    conn->closing_ms = uv_now(server->loop);
    buf_clear(&conn->in);
    if (standing == NULL) return;
    if (conn->session.reason == CLOSE_BYE) standing->lease_ms = 0; /* while draining too: a daemon that goes on from here ends it at once */
    if (server->draining || standing->lease_ms > 0) {
        sessions_leave(&server->sessions, standing, server->draining ? LEASE_FROZEN : now_ms(conn) + standing->lease_ms);
    } else {
        server_end_session(server, standing);
    }
}

static bool waits_to_close(const struct conn *conn)
{
    return !session_breaks(conn->session.reason) && !(conn->refused && conn->server->refused > SERVER_REFUSED_MAX);
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
    (void)req;
    (void)status; /* the peer is gone: the read says so too */
}

/* The outbox empties; then we say that no more comes, and read on until the peer closes too: a socket that is closed with input unread resets the connection, and
 * the peer may lose our last words. */
static void close_gently(struct conn *conn)
{
    if (outbox_bytes(&conn->session.out) > 0) return;
    if (conn->peer_closed) {
        conn_drop(conn);
        return;
    }
    if (conn->tls != NULL && tls_end(conn->tls)) {
        if (outbox_flush(&conn->session.out) < 0) {
            conn_drop(conn);
            return;
        }
        if (outbox_bytes(&conn->session.out) > 0) return;
    }
    if (conn->shut) return;
    conn->shut = true;
    if (!conn->refused) conn->server->lingering++;
    if (uv_shutdown(&conn->shutdown, &conn->stream.stream, on_shutdown) != 0) conn_drop(conn);
}

/* Which bytes were too many: a reader who looks for out_soft_bytes in unsent_bytes may find less. */
static void out_why(const struct conn *conn, char out[200])
{
    const struct config *config = conn->server->config;
    const struct outbox_limits *limits = &conn->server->out_limits;
    out[0] = '\0';
    if (conn->session.reason == CLOSE_OUT_HARD)
        snprintf(out, 200, " why=\"over out_hard_bytes = %llu\"", (unsigned long long)limits->hard_bytes);
    else if (conn->session.reason == CLOSE_OUT_SOFT && conn->session.unsent_bytes + limits->slack_bytes > limits->soft_bytes)
        snprintf(out, 200, " why=\"less than %llu bytes (max_payload and 228) were left to out_soft_bytes = %llu for out_soft_ms = %u\"",
                 (unsigned long long)limits->slack_bytes, (unsigned long long)limits->soft_bytes, config->out_soft_ms);
    else if (conn->session.reason == CLOSE_OUT_SOFT)
        snprintf(out, 200, " why=\"over %u bytes, which is too much while max_memory_bytes is reached, for out_soft_ms = %u\"", BUDGET_UNSENT_BYTES,
                 config->out_soft_ms);
}

/* Once what the kernel takes at once is written: the bytes that are left may never be read. Of a connection that broke, what they were when it did. */
static void log_close(const struct conn *conn)
{
    const struct session *session = &conn->session;
    uint64_t unsent_bytes = session_breaks(session->reason) ? session->unsent_bytes : outbox_bytes(&session->out);
    char client[SESSION_CLIENT_MAX * 4 + 3], why[200];
    out_why(conn, why);
    log_write(session_ends_well(session->reason) ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "close",
              "peer=%s session=%llu reason=%s unsent_bytes=%llu client=%s token=%s%s", session->peer, (unsigned long long)session->id,
              session_reason_name(session->reason), (unsigned long long)unsent_bytes, log_quote(session->client, client, sizeof client),
              session->token.name, why);
}

/* What poll() says of its socket at this moment, of these events or of what it always says; 0: nothing. */
static short polled(const struct conn *conn, short events)
{
    struct pollfd at = {.events = events};
    return uv_fileno(&conn->stream.handle, &at.fd) == 0 && poll(&at, 1, 0) == 1 ? at.revents : 0;
}

/* Of a broken connection where writing failed: sees to it that what the peer sent before it went is read. That is waited for, unless another connection
 * waits to go on with the session: then only what the kernel has already is read. False: there is nothing to wait for. */
static bool wait_for_last_words(struct conn *conn)
{
    if (conn->session.reason != CLOSE_IO || conn->peer_closed) return false;
    if (!conn->session.awaited) return true;
    conn->unread = (polled(conn, POLLIN) & POLLIN) != 0;
    if (conn->unread) set_input(conn, INPUT_WAITING);
    return conn->unread;
}

/* Nothing more will be sent. What has come whole is applied. */
static void settle_broken(struct conn *conn)
{
    if (conn->closing_ms == 0) conn->closing_ms = uv_now(conn->server->loop);
    outbox_abandon(&conn->session.out);
    if (conn->input == INPUT_PAUSED) set_input(conn, INPUT_WAITING);
    if (conn->input == INPUT_WAITING || conn->input == INPUT_HELD || wait_for_last_words(conn)) return;
    session_finish(&conn->server->sessions, &conn->session);
}

/* Writes what is there and what is owed, as far as the kernel takes it. */
static void settle_outbox(struct conn *conn)
{
    struct session *session = &conn->session;
    int status;
    do status = outbox_flush(&session->out);
    while (status == 0 && deliver_owed(&conn->server->deliver, session));
    if (status == 0) return;
    session_close(&conn->server->sessions, session, CLOSE_IO);
    outbox_abandon(&session->out);
}

static void settle_open(struct conn *conn)
{
    bool full = is_full(conn);
    if (!full) conn->soft_ms = 0;
    if (full && conn->soft_ms == 0) conn->soft_ms = now_ms(conn);
    if (full && conn->input == INPUT_READING) set_input(conn, INPUT_PAUSED);
    if (!full && conn->input == INPUT_PAUSED) set_input(conn, INPUT_WAITING);
}

void conn_settle(struct conn *conn)
{
    struct session *session = &conn->session;
    if (conn->dropped) return;
    if (session->state != SESSION_BROKEN) settle_outbox(conn);
    if (session->state == SESSION_BROKEN) settle_broken(conn);
    if (session->state == SESSION_CLOSING && !conn->ended) {
        end_session(conn);
        if (conn->ended) log_close(conn);
    }
    if (session->state < SESSION_BROKEN) settle_open(conn);
    count_buffers(conn);
    if (!conn->ended) return;
    if (!waits_to_close(conn)) {
        conn_drop(conn);
    } else {
        if (conn->input != INPUT_READING) set_input(conn, INPUT_READING);
        close_gently(conn);
    }
}

/* Says why before it closes, to whom can still read it. */
static void time_out(struct conn *conn, enum close_reason reason)
{
    struct sessions *sessions = &conn->server->sessions;
    const struct config *config = conn->server->config;
    char text[160] = "";
    int code = CODEC_INVALID_ARGUMENT;
    if (reason == CLOSE_HELLO_TIMEOUT) {
        code = CODEC_UNAUTHENTICATED;
        snprintf(text, sizeof text, "no Hello within hello_timeout_ms = %u", config->hello_timeout_ms);
    } else if (reason == CLOSE_TOKEN) {
        code = CODEC_UNAUTHENTICATED;
        snprintf(text, sizeof text, "the token in Hello is none of this daemon's tokens_file");
    } else if (reason == CLOSE_FRAME_TIMEOUT) {
        snprintf(text, sizeof text, "a frame that began %u ms ago has not ended (frame_timeout_ms): is the length before it right?",
                 config->frame_timeout_ms);
    } else if (reason == CLOSE_IDLE_TIMEOUT) {
        snprintf(text, sizeof text, "idle for %u ms (idle_timeout_ms): send a Ping more often, also where there is nothing but deltas to wait for",
                 conn->session.idle_timeout_ms);
    }
    if (text[0] != '\0') session_send_error(sessions, &conn->session, reason == CLOSE_TOKEN ? conn->session.last_seq : 0, code, text);
    session_close(sessions, &conn->session, reason);
}

/* Whether the peer has reset a connection that nobody reads or writes at the moment; one whose peer has merely said its last is still answered. */
static bool hung_up(const struct conn *conn)
{
    return conn->input != INPUT_READING && (polled(conn, 0) & POLLERR) != 0;
}

/* Who reads too slowly, but not so slowly as to be closed for it. */
static void watch_slow(struct conn *conn)
{
    const struct session *session = &conn->session;
    uint64_t served = session->served - conn->served, skipped = session->skipped - conn->skipped;
    char client[SESSION_CLIENT_MAX * 4 + 3];
    conn->served = session->served;
    conn->skipped = session->skipped;
    if (skipped <= served) return;
    const char *why = conn->server->memory_full ? "max_memory_bytes is reached, and more than 64 KiB were unsent" : "it reads too slowly";
    log_warn("slow",
             "peer=%s session=%llu client=%s token=%s skipped=%llu%% last_s=%u unsent_bytes=%llu why=\"%s: its players get fewer, larger deltas\"",
             session->peer, (unsigned long long)session->id, log_quote(session->client, client, sizeof client), session->token.name,
             (unsigned long long)(100 * skipped / (served + skipped)), SLOW_TICKS * SERVER_TICK_MS / 1000,
             (unsigned long long)outbox_bytes(&session->out), why);
}

void conn_tick(struct conn *conn)
{
    struct server *server = conn->server;
    const struct config *config = server->config;
    uint64_t clock_ms = server->clock_ms, idle_ms = conn->session.idle_timeout_ms;
    enum close_reason reason = CLOSE_NONE;
    conn->busy_ns /= 2;
    if (server->ticks % RELAX_TICKS == 0) {
        outbox_relax(&conn->session.out);
        if (conn->session.standing != NULL) notices_forget(&conn->session.standing->notices, flusher_now_ms());
    }
    if (conn->session.state == SESSION_CLOSING) {
        if (!conn->ended) session_touch(&server->sessions, &conn->session);
        uint64_t wait_ms = server->draining ? DRAIN_WAIT_MS : CLOSE_WAIT_MS;
        if (conn->ended && uv_now(server->loop) - conn->closing_ms >= wait_ms) conn_drop(conn);
        return;
    }
    if (server->ticks % SLOW_TICKS == 0) watch_slow(conn);
    if (conn->session.state == SESSION_DENIED && ++conn->session.denied_ticks == DENIED_TICKS) reason = CLOSE_TOKEN;
    if (conn->session.state == SESSION_BROKEN) { /* its last words come soon or never */
        if (conn->input == INPUT_READING && uv_now(server->loop) - conn->closing_ms >= CLOSE_WAIT_MS)
            session_finish(&server->sessions, &conn->session);
        return;
    }
    if (conn->soft_ms != 0) settle_open(conn); /* there may be memory again */
    if (conn->soft_ms != 0 && clock_ms >= conn->soft_ms + config->out_soft_ms) reason = CLOSE_OUT_SOFT;
    if (hung_up(conn)) reason = CLOSE_IO;
    if (conn->input == INPUT_READING) {
        if (idle_ms > 0 && clock_ms >= conn->input_ms + idle_ms) reason = CLOSE_IDLE_TIMEOUT;
        if (conn->frame_ms != 0 && clock_ms >= conn->frame_ms + config->frame_timeout_ms) reason = CLOSE_FRAME_TIMEOUT;
        if (conn->session.state == SESSION_HELLO_WAIT && clock_ms >= conn->opened_ms + config->hello_timeout_ms) reason = CLOSE_HELLO_TIMEOUT;
    }
    if (reason != CLOSE_NONE) time_out(conn, reason);
}

/* ------------------------------------------------------------------------------------------------------------- the beginning */

static int init_stream(struct conn *conn, bool local)
{
    uv_loop_t *loop = conn->server->loop;
    conn->stream.handle.data = conn;
    return local ? uv_pipe_init(loop, &conn->stream.pipe, 0) : uv_tcp_init(loop, &conn->stream.tcp);
}

/* Else the kernel lets each socket's buffers grow to megabytes: a thousand that flood or do not read take all of its memory for TCP, whereupon it drops packets of others. */
static void bound_kernel(struct conn *conn)
{
    int receive = KERNEL_BYTES, send = KERNEL_BYTES;
    uv_recv_buffer_size(&conn->stream.handle, &receive);
    uv_send_buffer_size(&conn->stream.handle, &send);
}

/* Who lingers has had all its words and may never go by itself: where every place is taken, the one that lingers longest gives its own to a newcomer. */
static void make_room(struct server *server)
{
    struct conn *oldest = NULL;
    for (uint32_t i = 0; i < server->conns.n && server->lingering > 0; i++) {
        struct conn *conn = server->conns.at[i];
        if (conn->shut && !conn->refused && (oldest == NULL || conn->closing_ms < oldest->closing_ms)) oldest = conn;
    }
    if (oldest != NULL) conn_drop(oldest);
}

/* Whether one more than max_connections is open, of those that count. */
static bool over_connections(const struct server *server)
{
    return server->conns.n - server->refused > server->config->max_connections;
}

void conn_accept(struct server *server, union stream *listener)
{
    struct conn *conn = mem_zalloc(sizeof *conn);
    conn->server = server;
    CHECK(init_stream(conn, stream_is_local(listener)) == 0);
    conn->at = server->conns.n;
    *array_add(&server->conns) = conn;
    outbox_init(&conn->session.out, &server->out_limits, &conn->stream.stream, &server->metrics.bytes_out, on_written);
    if (!stream_is_local(listener) && server->doors.tls != NULL) {
        conn->tls = tls_new(server->doors.tls);
        conn->session.out.seal = tls_seal;
        conn->session.out.seal_ctx = conn->tls;
    }
    if (over_connections(server)) make_room(server);
    conn->refused = over_connections(server);
    if (conn->refused) server->refused++;
    server->metrics.accepted++;
    server->metrics.connections++;
    server_start_tick(server);
    conn->opened_ms = conn->input_ms = now_ms(conn);
    conn->session.idle_timeout_ms = server->config->idle_timeout_ms;

    char why[160];
    int status = uv_accept(&listener->stream, &conn->stream.stream);
    stream_name_peer(&conn->stream, conn->session.peer);
    if (status == 0) status = uv_read_start(&conn->stream.stream, on_alloc, on_read);
    if (status != 0) {
        session_close(&server->sessions, &conn->session, CLOSE_IO);
    } else if (conn->refused) {
        snprintf(why, sizeof why, "max_connections = %u are open already", server->config->max_connections);
        turn_away(conn, CODEC_LIMIT_EXCEEDED, why, CLOSE_REFUSED);
    } else if (!listener_admits(server->config, &conn->stream, why, sizeof why)) {
        turn_away(conn, CODEC_UNAUTHENTICATED, why, CLOSE_UNIX_PEER);
    } else {
        if (!stream_is_local(&conn->stream)) uv_tcp_nodelay(&conn->stream.tcp, 1);
        bound_kernel(conn);
        log_info("connect", "peer=%s connections=%llu", conn->session.peer, (unsigned long long)server->metrics.connections);
    }
    server_settle(server);
}
