/* libaoi.c: a connection: connecting, writing, reading, and handing out what has come. */
#include "client/libaoi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client/libaoi_impl.h"
#include "wire/frame.h"

#define DEFAULT_HOST "127.0.0.1"
#define DEFAULT_PORT "2643"
#define DEFAULT_ADDRESS DEFAULT_HOST ":" DEFAULT_PORT
#define DEFAULT_TIMEOUT_MS 5000
#define READ_BYTES ((size_t)256 * 1024)
#define HELLO_SEQ 1 /* each connection begins with it */
#define STOP_JOINED UINT64_MAX
#define READ_ROUNDS 16                   /* of READ_BYTES, in one libaoi_poll() */
#define MIN_FRAME_BYTES 1024             /* what the batch builder needs */
#define ARENA_BYTES ((size_t)1 << 30)    /* bytes of a payload take up to 17 times as much unpacked; the daemon is trusted more than its peers are */
#define KEEP_OUT_BYTES ((size_t)1 << 20) /* what an emptied output buffer keeps */

_Static_assert(LIBAOI_DRAINING == (int)CODEC_DRAINING && LIBAOI_NOT_OWNER == (int)CODEC_NOT_OWNER, "codes of the wire");
_Static_assert(LIBAOI_CROSSLIST == (int)AOI_INDEX_CROSSLIST && LIBAOI_CELLS == (int)AOI_SHAPE_CELLS && LIBAOI_ADD_ADOPT == (int)AOI_ADD_ADOPT,
               "numbers of the wire");
_Static_assert(LIBAOI_OVERRIDE_SHOW == (int)AOI_OVERRIDE_SHOW && LIBAOI_RULE_ENTER_BUDGET == (int)AOI_RULE_ENTER_BUDGET, "numbers of the wire");
_Static_assert(LIBAOI_FLUSH_MS == AOI_FLUSH_MS_DEFAULT, "the usual flush_ms");

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int libaoi__left_ms(int64_t deadline)
{
    if (deadline < 0) return -1;
    int64_t left = deadline - now_ms();
    return left < 0 ? 0 : left > 1000000 ? 1000000 : (int)left;
}

static int64_t deadline_ms(int timeout_ms)
{
    return timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
}

int libaoi__fail(struct libaoi *c, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->error, sizeof c->error, format, args);
    va_end(args);
    c->refused_code = 0;
    if (status == LIBAOI_ECLOSED || status == LIBAOI_EPROTOCOL) c->failed = status;
    return status;
}

const char *libaoi_code_name(int code)
{
    return codec_code_name(code);
}

const struct libaoi_welcome *libaoi_welcome(const struct libaoi *c)
{
    return &c->welcome;
}

const char *libaoi_error(const struct libaoi *c)
{
    return c->error;
}

int libaoi_refused_code(const struct libaoi *c)
{
    return c->refused_code;
}

int libaoi_fd(const struct libaoi *c)
{
    return c->fd;
}

size_t libaoi_unsent(const struct libaoi *c)
{
    return buf_len(&c->out);
}

uint64_t libaoi_unanswered(const struct libaoi *c)
{
    return c->seq - c->answered;
}

const struct libaoi_counters *libaoi_counters(const struct libaoi *c)
{
    return &c->counters;
}

const struct libaoi_view *libaoi_view(const struct libaoi *c, uint64_t space, uint64_t player)
{
    return libaoi_mirror_find(&c->mirror, space, player);
}

uint64_t libaoi_views_closed(const struct libaoi *c)
{
    return c->mirror.closed;
}

/* ------------------------------------------------------------------------------------------------------------- output */

static void conn_write(struct libaoi *c)
{
    while (buf_len(&c->out) && !c->write_broken) {
        ssize_t n = c->tls ? libaoi_tls_send(c->tls, buf_data(&c->out), buf_len(&c->out))
                           : send(c->fd, buf_data(&c->out), buf_len(&c->out), MSG_NOSIGNAL);
        if (n > 0) {
            buf_consume(&c->out, (size_t)n);
            c->counters.bytes_out += (uint64_t)n;
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return;
        } else {
            c->write_broken = true;
        }
    }
    if (c->write_broken) buf_consume(&c->out, buf_len(&c->out));
    buf_shrink(&c->out, KEEP_OUT_BYTES);
}

static void conn_queue(struct libaoi *c, const struct codec_client_frame *frame)
{
    if (c->failed) return;
    codec_encode_client(frame, &c->out);
    c->counters.frames_out++;
    c->sent_ms = now_ms();
    conn_write(c);
}

/* The frame has been answered: it need not be sent again. */
static void conn_unkeep(struct libaoi *c)
{
    struct frame f;
    if (frame_next(buf_data(&c->kept), buf_len(&c->kept), FRAME_BODY_MAX, &f) == FRAME_READY) buf_consume(&c->kept, f.header_len + f.body_len);
    buf_shrink(&c->kept, KEEP_OUT_BYTES);
}

uint64_t libaoi__send_frame(struct libaoi *c, struct codec_client_frame *frame)
{
    if (c->failed && !c->keeps) return 0;
    frame->seq = ++c->seq;
    if (c->keeps) codec_encode_client(frame, &c->kept);
    conn_queue(c, frame);
    return c->seq;
}

/* How long nothing may be sent, for poll(); -1: for ever. A third of what the daemon puts up with leaves time for a ping that is late. */
static int quiet_ms(const struct libaoi *c)
{
    if (c->quiet || !c->welcome.idle_timeout_ms || c->failed) return -1;
    uint32_t often = c->welcome.idle_timeout_ms / 3;
    return libaoi__left_ms(c->sent_ms + (often ? often : 1));
}

/* With seq 0 it has no answer, and nobody needs to know of it. Behind bytes that the socket has not taken it would help nothing. */
static void keep_alive(struct libaoi *c)
{
    if (quiet_ms(c) != 0 || buf_len(&c->out)) return;
    struct codec_client_frame frame = {.kind = CODEC_PING};
    conn_queue(c, &frame);
}

uint64_t libaoi_resync(struct libaoi *c, uint64_t space, uint64_t player)
{
    libaoi_send(c);
    struct codec_client_frame frame = {.kind = CODEC_RESYNC, .u.resync = {.space = space, .player = player}};
    return libaoi__send_frame(c, &frame);
}

uint64_t libaoi_ping(struct libaoi *c, uint64_t nonce)
{
    libaoi_send(c);
    struct codec_client_frame frame = {.kind = CODEC_PING, .u.ping = {.nonce = nonce}};
    return libaoi__send_frame(c, &frame);
}

/* ------------------------------------------------------------------------------------------------------------- input */

static struct libaoi_delta conn_delta(const struct codec_player_delta *p)
{
    const struct aoi_delta *d = &p->delta;
    return (struct libaoi_delta){
        .space = d->space,
        .flush = d->flush,
        .tag = d->tag,
        .time_us = d->time_us,
        .player = d->player,
        .seq = d->seq,
        .part = p->part,
        .more = p->more,
        .full = d->full,
        .closed = d->closed,
        .leave_n = d->leave_n,
        .enter_n = d->enters.n,
        .update_n = d->updates.n,
        .payload_n = d->payload_n,
        .layers_n = d->layers_n,
        .leave_id = d->leave_id,
        .enter_id = d->enters.id,
        .enter_x = d->enters.x,
        .enter_y = d->enters.y,
        .enter_z = d->enters.z,
        .enter_extra = d->enters.extra,
        .enter_layers = d->enters.layers,
        .enter_payload = d->enters.payload,
        .enter_payload_len = d->enters.payload_len,
        .update_id = d->updates.id,
        .update_x = d->updates.x,
        .update_y = d->updates.y,
        .update_z = d->updates.z,
        .update_extra = d->updates.extra,
        .payload_id = d->payload_id,
        .payload = d->payload,
        .payload_len = d->payload_len,
        .layers_id = d->layers_id,
        .layers = d->layers,
        .message_n = d->message_n,
        .message_from = d->message_from,
        .message = d->message,
        .message_len = d->message_len,
        .messages_lost = d->messages_lost,
    };
}

/* Hands a delta out that has been applied. */
static void conn_tell(const struct libaoi_handlers *h, const struct libaoi_delta *delta)
{
    if (h->delta) h->delta(h->ctx, delta);
    for (size_t i = 0; h->message && i < delta->message_n; i++)
        h->message(h->ctx, delta, delta->message_from[i], delta->message[i], delta->message_len[i]);
    if (h->messages_lost && delta->messages_lost) h->messages_lost(h->ctx, delta);
}

static int conn_deltas(struct libaoi *c, size_t frame_bytes)
{
    if (frame_bytes > c->welcome.max_frame_bytes)
        return libaoi__fail(c, LIBAOI_EPROTOCOL, "a frame of deltas of %zu bytes, more than max_frame_bytes", frame_bytes);
    for (size_t i = 0; i < c->frame.u.deltas.player_n; i++) {
        struct libaoi_delta delta = conn_delta(&c->frame.u.deltas.players[i]);
        c->counters.deltas += !delta.more;
        c->counters.enters += delta.enter_n;
        c->counters.leaves += delta.leave_n;
        c->counters.updates += delta.update_n;
        c->counters.messages += delta.message_n;
        c->counters.messages_lost += delta.messages_lost;
        char why[200];
        if (c->mirrored && libaoi_mirror_apply(&c->mirror, &delta, why, sizeof why)) return libaoi__fail(c, LIBAOI_EPROTOCOL, "%s", why);
        conn_tell(&c->handlers, &delta);
    }
    return 0;
}

static void conn_ack(struct libaoi *c)
{
    if (!c->handlers.ack) return;
    c->refusals.n = 0;
    for (size_t i = 0; i < c->frame.u.ack.error_n; i++) {
        const struct codec_error_item *e = &c->frame.u.ack.errors[i];
        *array_add(&c->refusals) = (struct libaoi_refusal){.index = e->index, .code = (int)e->code, .id = e->id, .text = e->text};
    }
    struct libaoi_ack ack = {
        .seq = c->frame.reply_to,
        .applied = c->frame.u.ack.applied,
        .refused = c->frame.u.ack.errors_total,
        .n = c->refusals.n,
        .refusals = c->refusals.at,
        .pending = c->frame.u.ack.pending,
    };
    c->handlers.ack(c->handlers.ctx, &ack);
}

static void conn_error(struct libaoi *c)
{
    int code = (int)c->frame.u.error.code;
    if (c->frame.reply_to) {
        c->refused = c->frame.reply_to;
    } else {
        c->closing_code = code;
        snprintf(c->closing, sizeof c->closing, "%s", c->frame.u.error.text);
    }
    libaoi__fail(c, LIBAOI_EREFUSED, "%s: %s", codec_code_name(code), c->frame.u.error.text);
    c->refused_code = code;
    if (c->handlers.error) c->handlers.error(c->handlers.ctx, c->frame.reply_to, code, c->frame.u.error.text);
}

static void conn_observed(const struct libaoi *c)
{
    const struct libaoi_handlers *h = &c->handlers;
    uint64_t space = c->frame.u.observed.space;
    if (h->observed && c->frame.u.observed.observed_n) h->observed(h->ctx, space, true, c->frame.u.observed.observed_n, c->frame.u.observed.observed);
    if (h->observed && c->frame.u.observed.unobserved_n)
        h->observed(h->ctx, space, false, c->frame.u.observed.unobserved_n, c->frame.u.observed.unobserved);
}

static void conn_lost(struct libaoi *c)
{
    const struct libaoi_handlers *h = &c->handlers;
    uint64_t space = c->frame.u.lost.space;
    for (size_t i = 0; i < c->frame.u.lost.player_n; i++) libaoi_mirror_forget(&c->mirror, space, c->frame.u.lost.players[i]);
    if (h->lost && c->frame.u.lost.entity_n) h->lost(h->ctx, space, false, c->frame.u.lost.entity_n, c->frame.u.lost.entities);
    if (h->lost && c->frame.u.lost.player_n) h->lost(h->ctx, space, true, c->frame.u.lost.player_n, c->frame.u.lost.players);
}

static int conn_welcome(struct libaoi *c)
{
    uint32_t most = c->frame.u.welcome.max_frame_bytes; /* the batch builder counts on it, also after a resume */
    if (most < MIN_FRAME_BYTES || most > FRAME_BODY_MAX)
        return libaoi__fail(c, LIBAOI_EPROTOCOL, "max_frame_bytes of %u is too %s for this client", most, most < MIN_FRAME_BYTES ? "small" : "large");
    c->welcome.protocol_version = c->frame.u.welcome.protocol_version;
    snprintf(c->welcome.server_version, sizeof c->welcome.server_version, "%s", c->frame.u.welcome.server_version);
    c->welcome.session = c->frame.u.welcome.session;
    c->welcome.max_frame_bytes = c->frame.u.welcome.max_frame_bytes;
    c->welcome.max_payload = c->frame.u.welcome.max_payload;
    c->welcome.query_page = c->frame.u.welcome.query_page;
    c->welcome.idle_timeout_ms = c->frame.u.welcome.idle_timeout_ms;
    c->welcome.lease_ms = c->frame.u.welcome.lease_ms;
    c->resume_token_len = c->frame.u.welcome.resume_token_len;
    if (c->resume_token_len > sizeof c->resume_token) c->resume_token_len = 0;
    if (c->resume_token_len) memcpy(c->resume_token, c->frame.u.welcome.resume_token, c->resume_token_len);
    c->joined = true;
    c->resumed = c->frame.u.welcome.resumed;
    c->behind = c->resumed && c->frame.u.welcome.last_seq < c->acked;
    if (c->resumed)
        libaoi_mirror_lapse(&c->mirror);
    else
        libaoi_mirror_clear(&c->mirror);
    return 0;
}

/* Replies come in the order of our frames, one each; all our frames have a seq. */
static int conn_reply(struct libaoi *c)
{
    enum codec_server_kind kind = c->frame.kind;
    bool notice = kind == CODEC_DELTAS || kind == CODEC_DRAINING_NOTICE || kind == CODEC_OBSERVED || kind == CODEC_LOST;
    bool is_reply = !notice && kind != CODEC_SERVER_NONE;
    uint64_t to = c->frame.reply_to;
    if (!to && (!is_reply || c->frame.kind == CODEC_ERROR)) return 0;
    if (c->joining) {
        if (to != HELLO_SEQ || (kind != CODEC_WELCOME && kind != CODEC_ERROR))
            return libaoi__fail(c, LIBAOI_EPROTOCOL, "the first reply is a Welcome, and the only one");
        c->joining = false;
        return 0;
    }
    if (!is_reply || to != c->answered + 1 || to > c->seq)
        return libaoi__fail(c, LIBAOI_EPROTOCOL, "a reply to frame %llu where one to %llu is due", (unsigned long long)to,
                            (unsigned long long)c->answered + 1);
    if (kind == CODEC_WELCOME) return libaoi__fail(c, LIBAOI_EPROTOCOL, "the first reply is a Welcome, and the only one");
    c->answered = to;
    if (kind == CODEC_ACK) c->acked = to;
    if (c->keeps) conn_unkeep(c);
    return 0;
}

static int conn_frame(struct libaoi *c, const uint8_t *bytes, size_t len)
{
    arena_reset(&c->arena);
    c->counters.frames_in++;
    if (codec_decode_server(bytes, len, &c->arena, &c->frame)) return libaoi__fail(c, LIBAOI_EPROTOCOL, "bytes that are no frame");
    int status = conn_reply(c);
    if (status) return status;
    switch (c->frame.kind) {
    case CODEC_WELCOME: return conn_welcome(c);
    case CODEC_ACK: conn_ack(c); break;
    case CODEC_DELTAS: return conn_deltas(c, len);
    case CODEC_PONG:
        if (c->handlers.pong) c->handlers.pong(c->handlers.ctx, c->frame.reply_to, c->frame.u.pong.nonce, c->frame.u.pong.time_us);
        break;
    case CODEC_ERROR: conn_error(c); break;
    case CODEC_DRAINING_NOTICE:
        if (!c->closing_code) snprintf(c->closing, sizeof c->closing, "it was told to end");
        if (!c->closing_code) c->closing_code = CODEC_DRAINING;
        if (c->handlers.draining) c->handlers.draining(c->handlers.ctx);
        break;
    case CODEC_OBSERVED: conn_observed(c); break;
    case CODEC_LOST: conn_lost(c); break;
    default: break; /* a result is read by who awaits it; kinds of a later daemon are skipped */
    }
    return 0;
}

static bool conn_stops(const struct libaoi *c, uint64_t stop)
{
    return stop == STOP_JOINED ? !c->joining : stop && c->answered >= stop;
}

/* Handles the frames that are here whole, up to and including the reply to `stop` (0: all; STOP_JOINED: to Hello). Returns how many, or an error. */
static int conn_handle(struct libaoi *c, uint64_t stop)
{
    int n = 0;
    CHECK(!c->handling);
    c->handling = true;
    while (!c->failed && !conn_stops(c, stop)) {
        struct frame f;
        enum frame_status status = frame_next(buf_data(&c->in), buf_len(&c->in), FRAME_BODY_MAX, &f);
        if (status == FRAME_INCOMPLETE) break;
        if (status == FRAME_TOO_LARGE) {
            libaoi__fail(c, LIBAOI_EPROTOCOL, "a frame's length is longer than 4 bytes");
            break;
        }
        conn_frame(c, buf_data(&c->in) + f.header_len, f.body_len);
        buf_consume(&c->in, f.header_len + f.body_len);
        n++;
    }
    c->handling = false;
    return c->failed ? c->failed : n;
}

/* Takes what the socket has. True: the daemon has closed, or the connection broke. */
static bool conn_read(struct libaoi *c)
{
    for (int round = 0; round < READ_ROUNDS; round++) {
        uint8_t *at = buf_reserve(&c->in, READ_BYTES);
        ssize_t n = c->tls ? libaoi_tls_recv(c->tls, at, READ_BYTES) : recv(c->fd, at, READ_BYTES, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
        if (n == 0) return true;
        c->in.end += (size_t)n;
        c->counters.bytes_in += (uint64_t)n;
        if ((size_t)n < READ_BYTES && !c->tls) return false; /* TLS gives a record at a time */
    }
    return false;
}

static int conn_ended(struct libaoi *c)
{
    if (c->failed) return c->failed;
    if (c->bye && c->answered == c->seq)
        return libaoi__fail(c, LIBAOI_ECLOSED, "closed: libaoi_bye() has ended the session; libaoi_connect() begins another one");
    int code = c->closing_code;
    libaoi__fail(c, LIBAOI_ECLOSED, code ? "the daemon closed the connection: %s: %s" : "the daemon closed the connection", codec_code_name(code),
                 c->closing);
    c->refused_code = code;
    return LIBAOI_ECLOSED;
}

/* libaoi_poll() that stops at a reply. */
static int conn_pump(struct libaoi *c, uint64_t stop, int64_t deadline)
{
    if (c->failed) return c->failed;
    conn_write(c);
    int n = conn_handle(c, stop), ready, wait, quiet;
    if (n) return n;
    struct pollfd p = {.fd = c->fd};
    do {
        keep_alive(c);
        p.events = (short)(POLLIN | (buf_len(&c->out) ? POLLOUT : 0));
        wait = libaoi__left_ms(deadline);
        quiet = buf_len(&c->out) ? -1 : quiet_ms(c);
        ready = poll(&p, 1, quiet >= 0 && (wait < 0 || quiet < wait) ? quiet : wait);
    } while (ready == 0 && (wait < 0 || quiet >= 0) && libaoi__left_ms(deadline) != 0);
    if (ready <= 0) return 0;
    if (p.revents & POLLOUT) conn_write(c);
    if (!(p.revents & ~POLLOUT)) return 0;
    bool ended = conn_read(c);
    n = conn_handle(c, stop);
    if (n || !ended) return n;
    return conn_ended(c);
}

int libaoi_poll(struct libaoi *c, int timeout_ms)
{
    return conn_pump(c, 0, deadline_ms(timeout_ms));
}

/* Pumps until the reply to `stop`, which is not 0. */
static int conn_await(struct libaoi *c, uint64_t stop, int64_t deadline, int timeout_ms)
{
    while (!conn_stops(c, stop)) {
        int n = conn_pump(c, stop, deadline);
        if (n < 0) return n;
        if (!conn_stops(c, stop) && libaoi__left_ms(deadline) == 0) /* whatever else has come meanwhile */
            return libaoi__fail(c, LIBAOI_ETIMEOUT, "no answer from the daemon within %d ms", timeout_ms);
    }
    return 0;
}

int libaoi__await(struct libaoi *c, uint64_t seq, int timeout_ms)
{
    if (!seq) return c->failed;
    int status = conn_await(c, seq, deadline_ms(timeout_ms), timeout_ms);
    return status ? status : c->refused == seq ? LIBAOI_EREFUSED : 0;
}

int libaoi_wait(struct libaoi *c, uint64_t seq, int timeout_ms)
{
    return libaoi__await(c, seq, timeout_ms);
}

int libaoi_sync(struct libaoi *c, int timeout_ms)
{
    libaoi_send(c);
    if (c->failed) return c->failed; /* what was answered before says nothing of what was queued since, and is gone */
    uint64_t before = c->answered;
    int status = libaoi__await(c, c->seq, timeout_ms);
    return status ? status : c->refused > before ? LIBAOI_EREFUSED : 0;
}

/* ------------------------------------------------------------------------------------------------------------- connecting */

/* Of a Unix socket: unix:PATH, or what has a slash in it. NULL: the address is another one. */
static const char *unix_path(const char *address)
{
    if (strncmp(address, "unix:", 5) == 0) return address + 5;
    return strchr(address, '/') ? address : NULL;
}

/* Takes HOST:PORT, [IPV6]:PORT, HOST alone, :PORT alone apart; c->address is then the whole of what is tried, whatever was left out. -1: it is none of these. */
static int address_take(struct libaoi *c, const char *address, char *error, size_t error_size)
{
    const char *colon = strrchr(address, ':'), *bracket = strrchr(address, ']'), *path = unix_path(address);
    snprintf(c->address, sizeof c->address, "%s", address);
    if (path && *path) return 0;
    if (colon && bracket && colon < bracket) colon = NULL;
    size_t len = colon ? (size_t)(colon - address) : strlen(address);
    const char *port = colon && colon[1] ? colon + 1 : DEFAULT_PORT;
    bool v6 = len > 2 && address[0] == '[' && address[len - 1] == ']', digits = strspn(port, "0123456789") == strlen(port);
    unsigned long number = digits ? strtoul(port, NULL, 10) : 0;
    const char *why = path                               ? "there is no path behind unix:"
                      : !v6 && memchr(address, ':', len) ? "an IPv6 address stands in brackets, as in [::1]:" DEFAULT_PORT
                      : number < 1 || number > 65535     ? "a port is a number from 1 to 65535"
                      : len >= sizeof c->host            ? "no host has so long a name"
                                                         : NULL;
    if (why) {
        snprintf(error, error_size, "cannot connect to \"%s\": %s. An address is HOST:PORT, for example " DEFAULT_ADDRESS ", or unix:PATH", address,
                 why);
        return -1;
    }
    snprintf(c->host, sizeof c->host, "%.*s", (int)len - 2 * v6, len ? address + v6 : "");
    if (!len) snprintf(c->host, sizeof c->host, DEFAULT_HOST);
    snprintf(c->port, sizeof c->port, "%lu", number);
    snprintf(c->address, sizeof c->address, v6 ? "[%s]:%s" : "%s:%s", c->host, c->port);
    return 0;
}

/* Whether aoid takes it with --listen, without more ado. */
static bool is_of_this_machine(const char *host)
{
    struct in_addr v4;
    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 || (inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127);
}

/* A connected, non-blocking socket, or -errno. */
static int connect_one(const struct addrinfo *at, uint32_t receive_buffer, int64_t deadline)
{
    int fd = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
    if (fd < 0) return -errno;
    int size = (int)receive_buffer, one = 1, failure = 0;
    if (size) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, at->ai_addr, at->ai_addrlen) < 0) {
        failure = errno;
        if (failure == EINPROGRESS) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            socklen_t len = sizeof failure;
            failure = ETIMEDOUT;
            if (poll(&p, 1, libaoi__left_ms(deadline)) > 0) getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &len);
        }
    }
    if (!failure) return fd;
    close(fd);
    return -failure;
}

static int connect_unix(const struct libaoi *c, const char *path, int64_t deadline, char *error, size_t error_size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct addrinfo at = {
        .ai_family = AF_UNIX, .ai_socktype = SOCK_STREAM, .ai_addr = (struct sockaddr *)&address, .ai_addrlen = sizeof address};
    int fd = -ENAMETOOLONG;
    if (strlen(path) < sizeof address.sun_path) {
        memcpy(address.sun_path, path, strlen(path) + 1);
        fd = connect_one(&at, c->receive_buffer, deadline);
    }
    if (fd < 0) snprintf(error, error_size, "cannot connect to %s: %s. Does aoid run with --set unix_socket=%s?", path, strerror(-fd), path);
    return fd;
}

static int connect_any(const struct libaoi *c, int64_t deadline, char *error, size_t error_size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int found = getaddrinfo(c->host, c->port, &hints, &list);
    if (found) {
        snprintf(error, error_size, "cannot find %s: %s. An address is HOST:PORT, for example " DEFAULT_ADDRESS ", or unix:PATH", c->address,
                 gai_strerror(found));
        return -1;
    }
    int fd = -EADDRNOTAVAIL;
    for (const struct addrinfo *at = list; at && fd < 0; at = at->ai_next) fd = connect_one(at, c->receive_buffer, deadline);
    freeaddrinfo(list);
    if (fd >= 0) return fd;
    if (is_of_this_machine(c->host))
        snprintf(error, error_size, "cannot connect to %s: %s. Is aoid running there? Start it with: aoid --listen %s", c->address, strerror(-fd),
                 c->address);
    else
        snprintf(
            error, error_size,
            "cannot connect to %s: %s. Is aoid running there? Without a tokens_file it can be reached from its own machine only, and else where its "
            "option listen says",
            c->address, strerror(-fd));
    return fd;
}

/* A socket over which the daemon can be spoken to, or a negative number. */
static int conn_dial(struct libaoi *c, int64_t deadline, char *error, size_t error_size)
{
    char why[200];
    const char *path = unix_path(c->address);
    if (path) return connect_unix(c, path, deadline, error, error_size);
    int fd = connect_any(c, deadline, error, error_size);
    if (fd < 0 || !c->tls || !libaoi_tls_connect(c->tls, fd, c->host, deadline, why, sizeof why)) return fd;
    snprintf(error, error_size, "cannot speak with %s: %s", c->address, why);
    close(fd);
    return -1;
}

/* Says Hello and waits for the Welcome. */
static int conn_join(struct libaoi *c, bool resume, int64_t deadline, int timeout_ms)
{
    struct codec_client_frame hello = {
        .seq = HELLO_SEQ,
        .kind = CODEC_HELLO,
        .u.hello = {.protocol_version = CODEC_PROTOCOL_VERSION, .client_name = c->client_name, .token = c->token, .lease_ms = c->lease_ms}};
    if (resume) {
        hello.u.hello.resume_session = c->welcome.session;
        hello.u.hello.resume_token = c->resume_token;
        hello.u.hello.resume_token_len = c->resume_token_len;
    }
    c->joining = true;
    c->joined = false;
    conn_queue(c, &hello);
    int status = conn_await(c, STOP_JOINED, deadline, timeout_ms);
    if (status) return status;
    if (c->failed) return c->failed;
    return c->joined ? LIBAOI_OK : LIBAOI_EREFUSED;
}

/* What a daemon that closes before its Welcome may have missed. */
static const char *closed_advice(const struct libaoi *c)
{
    if (unix_path(c->address)) return ": may this user connect (unix_allow_uids, unix_allow_gids)?";
    return c->tls ? ": does it want a client certificate (its tls_client_ca)?" : ": does it speak TLS (its tls_cert)?";
}

struct libaoi *libaoi_connect(const struct libaoi_options *options, char *error, size_t error_size)
{
    int timeout_ms = options->timeout_ms ? (int)options->timeout_ms : DEFAULT_TIMEOUT_MS;
    int64_t deadline = deadline_ms(timeout_ms);
    struct libaoi *c = mem_zalloc(sizeof *c);
    c->fd = -1;
    c->handlers = options->handlers;
    c->mirrored = options->mirror;
    c->quiet = options->no_ping;
    c->keeps = options->resume;
    c->lease_ms = options->lease_ms;
    c->receive_buffer = options->receive_buffer;
    snprintf(c->client_name, sizeof c->client_name, "%s", options->client_name ? options->client_name : "libaoi");
    if (options->token) c->token = strdup(options->token);
    bool known = address_take(c, options->address ? options->address : DEFAULT_ADDRESS, error, error_size) == 0;
    bool tls = options->tls && !unix_path(c->address);
    if (known && tls) c->tls = libaoi_tls_new(options->tls_ca, options->tls_cert, options->tls_key, error, error_size);
    c->seq = c->answered = HELLO_SEQ;
    arena_init(&c->arena, ARENA_BYTES);
    if (known && (!tls || c->tls)) c->fd = conn_dial(c, deadline, error, error_size);
    if (c->fd < 0) {
        libaoi_abandon(c);
        return NULL;
    }
    int status = conn_join(c, false, deadline, timeout_ms);
    if (!status) return c;
    if (status == LIBAOI_ECLOSED && c->closing_code)
        snprintf(error, error_size, "aoid at %s refused the connection: %s: %s", c->address, codec_code_name(c->closing_code), c->closing);
    else if (status == LIBAOI_EREFUSED || c->refused_code)
        snprintf(error, error_size, "aoid at %s refused the connection: %s", c->address, c->error);
    else if (status == LIBAOI_ETIMEOUT)
        snprintf(error, error_size, "%s takes connections, but says nothing: %s. Is it stopped or overloaded, or is it not aoid?", c->address,
                 c->error);
    else if (status == LIBAOI_ECLOSED)
        snprintf(error, error_size, "%s takes connections, but not this one: %s. Its log says why%s", c->address, c->error, closed_advice(c));
    else
        snprintf(error, error_size, "%s answered, but not as aoid does: %s", c->address, c->error);
    libaoi_close(c);
    return NULL;
}

/* Whether the daemon still takes what was kept to be sent again. */
static bool kept_fits(const struct libaoi *c)
{
    struct frame f;
    for (size_t at = 0, len = buf_len(&c->kept); at < len; at += f.header_len + f.body_len)
        if (frame_next(buf_data(&c->kept) + at, len - at, c->welcome.max_frame_bytes, &f) != FRAME_READY) return false;
    return true;
}

int libaoi_resume(struct libaoi *c, int timeout_ms)
{
    char error[sizeof c->error];
    int64_t deadline = deadline_ms(timeout_ms);
    if (!c->keeps) return libaoi__fail(c, LIBAOI_EINVAL, "libaoi_resume() needs the option `resume` of libaoi_connect()");
    int fd = conn_dial(c, deadline, error, sizeof error);
    if (fd < 0) return libaoi__fail(c, LIBAOI_ECLOSED, "%s", error);
    close(c->fd);
    c->fd = fd;
    c->failed = c->closing_code = 0;
    c->write_broken = c->bye = false;
    buf_clear(&c->in);
    buf_clear(&c->out);
    int status = conn_join(c, true, deadline, timeout_ms);
    if (status) {
        c->failed = LIBAOI_ECLOSED;
        return status;
    }
    if (c->resumed && !kept_fits(c)) {
        c->failed = LIBAOI_ECLOSED;
        return libaoi__fail(c, LIBAOI_ETOOLARGE,
                            "a frame that was not answered is longer than max_frame_bytes, %u now: close, and make everything anew",
                            c->welcome.max_frame_bytes);
    }
    if (c->resumed) {
        buf_append(&c->out, buf_data(&c->kept), buf_len(&c->kept));
        c->sent_ms = now_ms();
        conn_write(c);
        return c->behind ? 2 : 1;
    }
    buf_clear(&c->kept);
    c->answered = c->seq;
    c->acked = 0;
    return 0;
}

int libaoi_bye(struct libaoi *c, int timeout_ms)
{
    libaoi_send(c);
    struct codec_client_frame frame = {.kind = CODEC_BYE};
    int64_t deadline = deadline_ms(timeout_ms);
    if (c->failed) return c->failed; /* nobody hears it; and libaoi_resume() is not to say it */
    c->bye = true;
    libaoi__send_frame(c, &frame);
    for (;;) {
        int n = conn_pump(c, 0, deadline);
        if (n == LIBAOI_ECLOSED) return c->answered == c->seq ? 0 : n;
        if (n < 0) return n;
        if (libaoi__left_ms(deadline) == 0) return libaoi__fail(c, LIBAOI_ETIMEOUT, "the daemon did not close within %d ms of Bye", timeout_ms);
    }
}

void libaoi_abandon(struct libaoi *c)
{
    if (!c) return;
    CHECK(!c->handling); /* who polls still needs it */
    if (c->fd >= 0) close(c->fd);
    libaoi_tls_free(c->tls);
    free(c->token);
    buf_clear(&c->in);
    buf_clear(&c->out);
    buf_clear(&c->kept);
    arena_clear(&c->arena);
    libaoi_batch_clear(&c->batch);
    libaoi_mirror_clear(&c->mirror);
    array_clear(&c->refusals);
    array_clear(&c->spaces);
    array_clear(&c->tiers);
    free(c);
}

void libaoi_close(struct libaoi *c)
{
    if (c && c->joined && !c->bye) conn_queue(c, &(struct codec_client_frame){.kind = CODEC_BYE});
    libaoi_abandon(c);
}
