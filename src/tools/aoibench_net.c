/* aoibench_net.c: movers and players over the network, with the time from a move to the delta that tells it. */
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "client/libaoi.h"
#include "tools/aoibench.h"
#include "tools/clock.h"
#include "tools/daemon.h"

#define SLICE_US 2000                /* entities move spread over their period, so many at a time as are due */
#define MAX_UNSENT ((size_t)4 << 20) /* bytes that wait for the socket before a mover waits */
#define LATENCY_STEP \
    4 /* of the updates in a delta so many are looked at: one of 4, another one in each delta, for reading must not be what takes long */
#define PING_US 1000
#define SETTLE_MS 60000
#define FLUSHES_MAX 200
#define COMPARE_PAIRS ((uint64_t)300 * 1000 * 1000)

struct bench {
    struct aoibench_options options;
    const struct aoibench_options *o; /* these */
    struct aoibench_result *r;
    pid_t daemon;
    struct libaoi **conn; /* movers, players, and last a bystander that pings */
    uint64_t flush;       /* the last of which something was told */
    uint64_t ping_us;     /* when it was pinged last */
    struct pollfd *fds;
    uint32_t conns;
    bool measuring;
    bool pending; /* a commanded flush left work */
    char *error;
    size_t error_size;
    bool failed;
    uint64_t random;
    uint64_t *id; /* columns of all entities; mover m has those from m * entities / movers */
    float *x, *y, *dx, *dy;
    uint32_t *stamp;
};

double aoibench_random(uint64_t *state)
{
    *state ^= *state << 13; /* xorshift64, Marsaglia 2003 */
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) / 9007199254740992.0;
}

__attribute__((format(printf, 2, 3))) static int bench_fail(struct bench *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!b->failed) vsnprintf(b->error, b->error_size, format, args);
    va_end(args);
    b->failed = true;
    return -1;
}

static void on_delta(void *ctx, const struct libaoi_delta *d)
{
    struct bench *b = ctx;
    b->flush = d->flush;
    if (!b->measuring || d->update_extra == NULL) return;
    uint32_t now = (uint32_t)clock_us();
    for (size_t i = d->seq % LATENCY_STEP; i < d->update_n; i += LATENCY_STEP) {
        int32_t us = (int32_t)(now - d->update_extra[i]);
        histogram_add(&b->r->latency, us > 0 ? (uint64_t)us : 0);
    }
}

/* By the daemon's clock, which is ours: how long the answer lies here unread, while deltas are taken in, is not the daemon's doing. */
static void on_pong(void *ctx, uint64_t seq, uint64_t sent_us, uint64_t answered_us)
{
    struct bench *b = ctx;
    (void)seq;
    if (b->measuring && sent_us > 0) histogram_add(&b->r->ping, answered_us > sent_us ? answered_us - sent_us : 0);
}

static void bench_ping(struct bench *b)
{
    struct libaoi *c = b->conn[b->conns - 1];
    uint64_t now = clock_us();
    if (now < b->ping_us + PING_US || libaoi_unanswered(c) > 0) return;
    b->ping_us = now;
    libaoi_ping(c, clock_wall_us());
}

static void on_ack(void *ctx, const struct libaoi_ack *ack)
{
    struct bench *b = ctx;
    b->pending |= ack->pending;
    if (!ack->n) return;
    const char *hint = ack->refusals[0].code == LIBAOI_DUPLICATE_SPACE ? "; --space ID takes another one" : "";
    bench_fail(b, "the daemon refused a command: %s: %s%s", libaoi_code_name(ack->refusals[0].code), ack->refusals[0].text, hint);
}

/* Handles what comes on every connection until then. */
static int bench_pump(struct bench *b, uint64_t until_us)
{
    for (;;) {
        int handled = 0;
        if (b->measuring) bench_ping(b);
        for (uint32_t i = 0; i < b->conns; i++) {
            int n = libaoi_poll(b->conn[i], 0);
            if (n < 0) return bench_fail(b, "connection %u: %s", i, libaoi_error(b->conn[i]));
            handled += n;
            b->fds[i] = (struct pollfd){.fd = libaoi_fd(b->conn[i]), .events = (short)(POLLIN | (libaoi_unsent(b->conn[i]) ? POLLOUT : 0))};
        }
        if (b->failed) return -1;
        uint64_t now = clock_us();
        if (now >= until_us) return 0;
        if (handled || b->o->burst) continue; /* as busy as who takes the ceiling: to wake it would cost the daemon */
        struct timespec wait = {.tv_nsec = (long)(until_us - now < 900000 ? until_us - now : 900000) * 1000};
        ppoll(b->fds, b->conns, &wait, NULL);
    }
}

static int bench_settle(struct bench *b)
{
    uint64_t end = clock_us() + SETTLE_MS * 1000ull;
    for (uint32_t i = 0; i < b->conns; i++) libaoi_send(b->conn[i]);
    for (;;) {
        uint64_t waiting = 0;
        for (uint32_t i = 0; i < b->conns; i++) waiting += libaoi_unanswered(b->conn[i]);
        if (!waiting) return 0;
        if (clock_us() > end) return bench_fail(b, "the daemon has not answered %llu frames within %d ms", (unsigned long long)waiting, SETTLE_MS);
        if (bench_pump(b, clock_us() + 200)) return -1;
    }
}

static int bench_connect(struct bench *b)
{
    char name[32];
    uint32_t players_end = b->o->movers + b->o->connections;
    for (b->conns = 0; b->conns <= players_end; b->conns++) {
        bool mover = b->conns < b->o->movers;
        snprintf(name, sizeof name, "aoibench-%s", mover ? "mover" : b->conns < players_end ? "players" : "pings");
        const struct libaoi_options options = {.address = b->o->address,
                                               .client_name = name,
                                               .token = getenv("AOI_TOKEN"),
                                               .tls = b->o->tls || b->o->ca != NULL,
                                               .tls_ca = b->o->ca,
                                               .mirror = b->o->mirror && !mover,
                                               .handlers = {.ctx = b, .delta = on_delta, .ack = on_ack, .pong = on_pong}};
        char why[300];
        b->conn[b->conns] = libaoi_connect(&options, why, sizeof why);
        if (!b->conn[b->conns]) return bench_fail(b, "%s", why);
    }
    return 0;
}

/* Connection k has the k-th part of the players. */
static struct libaoi *player_conn(const struct bench *b, uint32_t player)
{
    return b->conn[b->o->movers + (uint64_t)player * b->o->connections / b->o->players];
}

/* The space, everybody in it, and the players riding the first entities of an even spread. */
static int bench_load(struct bench *b)
{
    const struct aoibench_options *o = b->o;
    const struct libaoi_settings settings = {.index = o->index, .extra = !o->plain, .flush_ms = o->flush_ms};
    libaoi_create_space(b->conn[0], b->o->space, &settings, false);
    if (bench_settle(b)) return -1;
    for (uint32_t i = 0; i < o->entities; i++) {
        double angle = aoibench_random(&b->random) * 6.283185307179586, step = o->speed / o->rate;
        b->id[i] = i + 1;
        b->x[i] = (float)(aoibench_random(&b->random) * o->side);
        b->y[i] = (float)(aoibench_random(&b->random) * o->side);
        b->dx[i] = (float)(cos(angle) * step);
        b->dy[i] = (float)(sin(angle) * step);
        b->stamp[i] = (uint32_t)clock_us();
        uint32_t mover = (uint32_t)((uint64_t)i * o->movers / o->entities);
        libaoi_add(b->conn[mover], b->o->space, LIBAOI_ADD_NEW,
                   &(struct libaoi_entity){.id = b->id[i], .pos = {b->x[i], b->y[i]}, .radius = (float)o->radius, .extra = b->stamp[i]});
    }
    if (bench_settle(b)) return -1;
    for (uint32_t p = 0; p < o->players; p++) {
        uint64_t unit = b->id[(uint64_t)p * o->entities / o->players];
        libaoi_subscribe(player_conn(b, p), b->o->space, p + 1, unit, false);
    }
    return bench_settle(b);
}

/* One step of entity i, turning round at the edge of the world. */
static void step_entity(struct bench *b, uint32_t i)
{
    float side = (float)b->o->side;
    b->x[i] += b->dx[i];
    b->y[i] += b->dy[i];
    if (b->x[i] < 0 || b->x[i] > side) {
        b->dx[i] = -b->dx[i];
        b->x[i] = b->x[i] < 0 ? 0 : side;
    }
    if (b->y[i] < 0 || b->y[i] > side) {
        b->dy[i] = -b->dy[i];
        b->y[i] = b->y[i] < 0 ? 0 : side;
    }
}

/* Moves those that are due, entities [from, to) of the round; `due` is the time at which that was to happen. */
static int move_slice(struct bench *b, uint32_t from, uint32_t to, uint64_t due)
{
    for (uint32_t i = from; i < to; i++) {
        step_entity(b, i);
        b->stamp[i] = (uint32_t)due;
    }
    for (uint32_t i = from; i < to;) {
        uint32_t mover = (uint32_t)((uint64_t)i * b->o->movers / b->o->entities), end = i;
        while (end < to && (uint64_t)end * b->o->movers / b->o->entities == mover) end++;
        while (libaoi_unsent(b->conn[mover]) > MAX_UNSENT)
            if (bench_pump(b, clock_us() + 1000)) return -1;
        libaoi_move(b->conn[mover], b->o->space, end - i, b->id + i, b->x + i, b->y + i, NULL, b->o->plain ? NULL : b->stamp + i);
        i = end;
    }
    for (uint32_t m = 0; m < b->o->movers; m++) libaoi_send(b->conn[m]);
    if (b->measuring) {
        uint64_t now = clock_us();
        b->r->moves += to - from;
        histogram_add(&b->r->late, now > due ? now - due : 0);
    }
    return 0;
}

/* Waits until the round that has just been sent was flushed, and all of it has been told: a command that changes nothing is answered when no flush is open any
 * more, and pings behind the deltas. */
static int finish_round(struct bench *b)
{
    if (bench_settle(b) || bench_pump(b, clock_us() + (b->o->flush_ms + 1) * 1000)) return -1;
    libaoi_set_priority(b->conn[0], b->o->space, b->id[0], 0);
    if (bench_settle(b)) return -1;
    for (uint32_t i = b->o->movers; i < b->o->movers + b->o->connections; i++) libaoi_ping(b->conn[i], 0);
    return bench_settle(b);
}

/* Everybody moves `rate` times a second for so long. The slices keep to their times: when one is late, the next is not moved back, and latency counts from when
 * the move was due. */
static int drive(struct bench *b, double seconds)
{
    uint64_t start = clock_us(), period = (uint64_t)(1e6 / b->o->rate), end = start + (uint64_t)(seconds * 1e6);
    uint64_t slices = period / SLICE_US ? period / SLICE_US : 1;
    for (uint64_t k = 0;; k++) {
        uint64_t round = k / slices, slice = k % slices, due = start + round * period + slice * period / slices;
        if (due >= end) return bench_pump(b, end);
        if (bench_pump(b, due)) return -1;
        if (b->measuring && slice == 0) b->r->rounds++;
        uint32_t from = (uint32_t)(b->o->entities * slice / slices), to = (uint32_t)(b->o->entities * (slice + 1) / slices);
        if (to > from && move_slice(b, from, to, due)) return -1;
    }
}

/* Or else round after round, without a pause: the next one is sent when the flush of this one begins to come, and waits at the daemon until that has ended. */
static int drive_rounds(struct bench *b, double seconds)
{
    for (uint64_t end = clock_us() + (uint64_t)(seconds * 1e6); clock_us() < end;) {
        uint64_t flush = b->flush, late = clock_us() + SETTLE_MS * 1000ull;
        if (b->measuring) b->r->rounds++;
        if (move_slice(b, 0, b->o->entities, clock_us())) return -1;
        while (b->flush == flush) {
            if (bench_pump(b, clock_us() + 20)) return -1;
            if (clock_us() > late) return bench_fail(b, "no flush within %d ms", SETTLE_MS);
        }
    }
    return finish_round(b);
}

/* Adds (sign 1) or takes away (sign -1) what has been told so far. */
static void count_told(const struct bench *b, uint64_t sign)
{
    for (uint32_t i = 0; i < b->conns; i++) {
        const struct libaoi_counters *c = libaoi_counters(b->conn[i]);
        b->r->deltas += sign * c->deltas;
        b->r->enters += sign * c->enters;
        b->r->leaves += sign * c->leaves;
        b->r->updates += sign * c->updates;
        b->r->bytes_in += sign * c->bytes_in;
        b->r->bytes_out += sign * c->bytes_out;
    }
}

/* The daemon's own count of flushes of the space. */
static int count_flushes(struct bench *b, uint64_t sign)
{
    struct libaoi_stats stats;
    if (libaoi_query_stats(b->conn[0], b->o->space, SETTLE_MS, &stats)) return bench_fail(b, "%s", libaoi_error(b->conn[0]));
    b->r->flushes += sign * stats.flushes;
    return 0;
}

static void count_cpu(const struct bench *b, int sign)
{
    uint64_t calls, bytes;
    if (b->daemon <= 0) return;
    b->r->cpu_seconds += sign * daemon_cpu_seconds(b->daemon);
    daemon_writes(b->daemon, &calls, &bytes);
    b->r->writes += (uint64_t)(int64_t)sign * calls;
    b->r->written += (uint64_t)(int64_t)sign * bytes;
}

/* Measures what `load` does in so many seconds. */
static int bench_measure(struct bench *b, double seconds, struct aoibench_result *result, int (*load)(struct bench *b, double seconds))
{
    *result = (struct aoibench_result){0};
    b->r = result;
    if (count_flushes(b, (uint64_t)-1)) return -1;
    count_cpu(b, -1);
    uint64_t start = clock_us();
    count_told(b, (uint64_t)-1);
    b->measuring = true;
    int status = load(b, seconds);
    b->measuring = false;
    if (status) return -1;
    count_told(b, 1);
    count_cpu(b, 1);
    result->seconds = (double)(clock_us() - start) / 1e6;
    if (count_flushes(b, 1)) return -1;
    if (b->daemon <= 0) result->cpu_seconds = -1;
    result->memory_bytes = b->daemon > 0 ? daemon_memory_bytes(b->daemon) : 0;
    return 0;
}

int aoibench_net_drive(struct bench *b, double seconds)
{
    return b->o->burst ? drive_rounds(b, seconds) : drive(b, seconds);
}

int aoibench_net_measure(struct bench *b, double seconds, struct aoibench_result *result)
{
    return bench_measure(b, seconds, result, b->o->burst ? drive_rounds : drive);
}

/* All walk, over and over, `batch` in a frame; it waits for room, not for its turn. */
static int push(struct bench *b, double seconds)
{
    uint64_t end = clock_us() + (uint64_t)(seconds * 1e6);
    for (uint32_t from = 0; clock_us() < end; from = from + b->o->batch < b->o->entities ? from + b->o->batch : 0) {
        uint32_t to = b->o->entities - from < b->o->batch ? b->o->entities : from + b->o->batch;
        if (move_slice(b, from, to, clock_us()) || bench_pump(b, clock_us())) return -1;
    }
    return bench_settle(b);
}

int aoibench_net_push(struct bench *b, double seconds, struct aoibench_result *result)
{
    return bench_measure(b, seconds, result, push);
}

/* fl(): sums are rounded to 32-bit floats, as the rule says. */
static bool sees(float e, float radius, float t)
{
    volatile float low = e - radius, high = e + radius;
    return low <= t && t <= high;
}

static void compare_view(struct bench *b, uint32_t p)
{
    const struct aoibench_options *o = b->o;
    const struct libaoi_view *view = libaoi_view(player_conn(b, p), o->space, p + 1);
    uint32_t unit = (uint32_t)((uint64_t)p * o->entities / o->players);
    size_t want = 0;
    for (uint32_t i = 0; i < o->entities && o->radius > 0; i++) {
        if (i == unit || !sees(b->x[unit], (float)o->radius, b->x[i]) || !sees(b->y[unit], (float)o->radius, b->y[i])) continue;
        const struct libaoi_item *got = view ? libaoi_view_find(view, b->id[i]) : NULL;
        want++;
        b->r->mismatches += !got || got->pos[0] != b->x[i] || got->pos[1] != b->y[i] || got->extra != b->stamp[i];
    }
    b->r->compared += want;
    if (view && view->n > want) b->r->mismatches += view->n - want;
}

/* Everybody has stopped: flushes until nobody is owed anything, and compares the views with brute force, as many as take a second or so. */
int aoibench_net_compare(struct bench *b, struct aoibench_result *result)
{
    const struct aoibench_options *o = b->o;
    int rounds = 0;
    b->r = result;
    if (bench_settle(b)) return -1;
    do {
        b->pending = false;
        libaoi_flush(b->conn[0], o->space, 0);
        if (bench_settle(b)) return -1;
        for (uint32_t i = o->movers; i < b->conns; i++) libaoi_ping(b->conn[i], 0); /* answered behind the deltas of the flush */
        if (bench_settle(b)) return -1;
    } while (b->pending && ++rounds < FLUSHES_MAX);
    if (b->pending) return bench_fail(b, "after %d flushes in a row there is still work left", FLUSHES_MAX);
    uint64_t most = COMPARE_PAIRS / o->entities + 1;
    for (uint32_t p = 0; p < o->players && p < most; p++) compare_view(b, p);
    return 0;
}

struct bench *aoibench_net_open(const struct aoibench_options *options, pid_t daemon, char *error, size_t error_size)
{
    struct bench *b = mem_zalloc(sizeof *b);
    size_t n = options->entities, conns = options->movers + options->connections + 1;
    *b = (struct bench){.options = *options, .daemon = daemon, .error = error, .error_size = error_size, .random = 88172645463325252u};
    b->o = &b->options;
    b->conn = mem_zalloc(conns * sizeof *b->conn);
    b->fds = mem_zalloc(conns * sizeof *b->fds);
    b->id = mem_zalloc(n * sizeof *b->id);
    b->x = mem_zalloc(n * sizeof *b->x);
    b->y = mem_zalloc(n * sizeof *b->y);
    b->dx = mem_zalloc(n * sizeof *b->dx);
    b->dy = mem_zalloc(n * sizeof *b->dy);
    b->stamp = mem_zalloc(n * sizeof *b->stamp);
    if (bench_connect(b) == 0 && bench_load(b) == 0) return b;
    aoibench_net_close(b);
    return NULL;
}

void aoibench_net_close(struct bench *b)
{
    for (uint32_t i = 0; i < b->conns; i++) libaoi_close(b->conn[i]);
    free(b->conn);
    free(b->fds);
    free(b->id);
    free(b->x);
    free(b->y);
    free(b->dx);
    free(b->dy);
    free(b->stamp);
    free(b);
}
