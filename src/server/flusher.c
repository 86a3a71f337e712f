/* flusher.c: when spaces are flushed: one timer a space, armed by the first change in a quiet one; and how: in slices, between which the loop turns. */
#include "server/flusher.h"

#include <stdlib.h>
#include <time.h>

#include "base/check.h"

/* A slice lasts as long as the rest of the loop's turn did, within these bounds: neither input nor flushes starve, and a Ping waits no longer. */
#define SLICE_MIN_NS ((uint64_t)2 * 1000 * 1000)
#define SLICE_MAX_NS ((uint64_t)4 * 1000 * 1000)
#define NS_PER_MS ((uint64_t)1000 * 1000)
/* Players served between two looks at the clock, each of which costs as much as 3 updates: more where eight took a moment at most, one where they took long. */
#define SLICE_PLAYERS 8
#define SLICE_PLAYERS_QUICK 32
#define MOMENT_NS ((uint64_t)5 * 1000)
#define LONG_NS ((uint64_t)1000 * 1000)

enum phase { QUIET, DUE, OPEN, COMMANDED };

/* Made when a space first changes, freed when libuv has let go of its handle. */
struct space_timer {
    uv_timer_t handle;
    struct flusher *flusher;
    struct aoi_space *space;    /* NULL: the space has ended */
    enum phase phase;           /* DUE, OPEN: of its timed flush; COMMANDED: one by command is open */
    uint32_t at;                /* place in flusher->due, where DUE or OPEN */
    struct aoi_flush_info info; /* of the open flush */
    uint64_t work_ns;           /* of the open flush: how long it has worked */
    uint64_t rested_ns;         /* before then no other one is due: half as long as the last one worked is for others */
    bool late;                  /* its timed flush is due, but held */
    uint64_t oldest_ns;         /* when the oldest change came that was not told yet; 0: there is none */
};

uint64_t flusher_time_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t flusher_now_ms(void)
{
    return uv_hrtime() / 1000000;
}

static void arm(struct flusher *flusher, struct aoi_space *space);

static struct aoi_flush_info flush_info(const struct flusher *flusher, const struct aoi_space *space, uint64_t tag, bool final)
{
    struct aoi_flush_info info = {.tag = tag, .time_us = flusher_time_us(), .now_ms = flusher_now_ms(), .final = final};
    if (flusher->instant != NULL) flusher->instant(flusher->instant_ctx, space, &info);
    return info;
}

/* ------------------------------------------------------------------------------------------------------------- slices */

/* Its timed flush is over, or will not be. */
static void forget_due(struct space_timer *timer)
{
    struct flusher *flusher = timer->flusher;
    if (timer->phase == QUIET || timer->phase == COMMANDED) return;
    timer->phase = QUIET;
    flusher->due.at[flusher->due.n - 1]->at = timer->at;
    array_swap_remove(&flusher->due, timer->at);
    if (flusher->due.n > 0) return;
    uv_idle_stop(&flusher->slices);
    flusher->sliced_ns = 0;
}

/* A flush has ended that worked so long. */
static void count_flush(struct flusher *flusher, struct aoi_space *space, uint64_t work_ns)
{
    struct space_timer *timer = aoi_space_user(space);
    uint64_t latency_ns = timer != NULL && timer->oldest_ns != 0 ? uv_hrtime() - timer->oldest_ns : work_ns;
    if (timer != NULL) timer->oldest_ns = 0;
    if (flusher->watch != NULL) flushwatch_done(flusher->watch, space, work_ns, latency_ns);
}

static void end_flush(struct space_timer *timer)
{
    aoi_flush_end(timer->space, &timer->info);
    count_flush(timer->flusher, timer->space, timer->work_ns);
    forget_due(timer);
    timer->flusher->ended++;
    timer->rested_ns = uv_hrtime() + timer->work_ns / 2;
    if (timer->info.pending) arm(timer->flusher, timer->space);
}

/* Whether it has to wait; then flusher_release() knows of it. */
static bool is_held(struct space_timer *timer)
{
    const struct flusher *flusher = timer->flusher;
    timer->late = flusher->held != NULL && flusher->held(flusher->held_ctx, timer->space);
    return timer->late;
}

/* Serves players of an open flush until all are (true) or (unless it is 0) that time has come. */
static bool serve(struct space_timer *timer, uint64_t until_ns)
{
    uint64_t began_ns = uv_hrtime(), before_ns, now_ns = began_ns;
    uint32_t players = until_ns == 0 ? UINT32_MAX : 1;
    bool more;
    do {
        before_ns = now_ns;
        more = aoi_flush_step(timer->space, &timer->info, players);
        now_ns = uv_hrtime();
        uint64_t eight_ns = (now_ns - before_ns) * SLICE_PLAYERS / players;
        players = eight_ns <= MOMENT_NS ? SLICE_PLAYERS_QUICK : eight_ns <= LONG_NS ? SLICE_PLAYERS : 1;
    } while (more && now_ns < until_ns);
    timer->work_ns += now_ns - began_ns;
    return !more;
}

static void begin_flush(struct space_timer *timer, enum phase phase, uint64_t tag, bool final)
{
    timer->phase = phase;
    timer->work_ns = 0;
    timer->info = flush_info(timer->flusher, timer->space, tag, final);
    uint64_t began_ns = uv_hrtime();
    aoi_flush_begin(timer->space, &timer->info);
    timer->work_ns = uv_hrtime() - began_ns;
}

/* Goes on with a flush that is due, but not for ever. */
static void go_on(struct space_timer *timer, uint64_t until_ns)
{
    if (timer->phase == DUE && is_held(timer)) {
        forget_due(timer);
        return;
    }
    if (timer->phase == DUE) begin_flush(timer, OPEN, 0, false);
    if (serve(timer, until_ns))
        end_flush(timer);
    else
        timer->flusher->turn = timer->at + 1;
}

/* One after the other, in turn. */
static void on_slice(uv_idle_t *idle)
{
    struct flusher *flusher = idle->data;
    uint64_t now_ns = uv_hrtime(), others_ns = flusher->sliced_ns == 0 ? 0 : now_ns - flusher->sliced_ns;
    uint64_t slice_ns = others_ns < SLICE_MIN_NS ? SLICE_MIN_NS : others_ns, until_ns;
    until_ns = now_ns + (slice_ns < flusher->slice_most_ns ? slice_ns : flusher->slice_most_ns);
    do {
        if (flusher->turn >= flusher->due.n) flusher->turn = 0;
        go_on(flusher->due.at[flusher->turn], until_ns);
    } while (flusher->due.n > 0 && uv_hrtime() < until_ns);
    flusher->after(flusher->after_ctx);
    if (flusher->due.n > 0) flusher->sliced_ns = uv_hrtime();
}

/* libuv runs idle handles right after the timers: nothing comes between. */
static void on_timer(uv_timer_t *handle)
{
    struct space_timer *timer = handle->data;
    struct flusher *flusher = timer->flusher;
    if (is_held(timer)) return;
    timer->phase = DUE;
    timer->at = flusher->due.n;
    *array_add(&flusher->due) = timer;
    CHECK(uv_idle_start(&flusher->slices, on_slice) == 0);
}

bool flusher_open(const struct aoi_space *space)
{
    const struct space_timer *timer = aoi_space_user(space);
    return timer != NULL && timer->phase == OPEN;
}

static void finish(struct space_timer *timer)
{
    if (timer->phase != OPEN) return;
    serve(timer, 0);
    end_flush(timer);
}

void flusher_finish(struct flusher *flusher)
{
    for (uint32_t i = flusher->due.n; i-- > 0;) finish(flusher->due.at[i]); /* one that ends is replaced by a later one */
}

bool flusher_open_of(const struct flusher *flusher, aoi_owner owner)
{
    for (uint32_t i = 0; i < flusher->due.n; i++)
        if (flusher_open(flusher->due.at[i]->space) && aoi_owner_in(flusher->due.at[i]->space, owner)) return true;
    return false;
}

/* ------------------------------------------------------------------------------------------------------------- timers */

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_space_end(void *ctx, struct aoi_space *space)
{
    struct flusher *flusher = ctx;
    if (flusher->watch != NULL) flushwatch_space_ends(flusher->watch, space);
    struct space_timer *timer = aoi_space_user(space);
    if (timer == NULL) return;
    forget_due(timer);
    timer->space = NULL;
    uv_close((uv_handle_t *)&timer->handle, on_closed);
}

static struct space_timer *timer_of(struct flusher *flusher, struct aoi_space *space)
{
    struct space_timer *timer = aoi_space_user(space);
    if (timer != NULL) return timer;
    timer = mem_zalloc(sizeof *timer);
    timer->flusher = flusher;
    timer->space = space;
    CHECK(uv_timer_init(flusher->loop, &timer->handle) == 0);
    timer->handle.data = timer;
    aoi_space_set_user(space, timer);
    return timer;
}

/* Until a flush is due that is to come flush_ms after what came at since_ns. */
static uint64_t left_ms(const struct space_timer *timer, uint32_t flush_ms, uint64_t since_ns)
{
    uint64_t now_ns = uv_hrtime(), due_ns = since_ns + flush_ms * NS_PER_MS;
    if (due_ns < timer->rested_ns) due_ns = timer->rested_ns;
    return due_ns <= now_ns ? 0 : (due_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
}

void flusher_release(struct aoi_space *space)
{
    struct space_timer *timer = aoi_space_user(space);
    if (timer == NULL || !timer->late) return;
    uv_timer_stop(&timer->handle);
    on_timer(&timer->handle);
}

/* No timed flush of it is due or will be. */
static void disarm(struct space_timer *timer)
{
    timer->late = false;
    forget_due(timer);
    uv_timer_stop(&timer->handle);
}

/* There is something to flush: if no timer runs and no flush is due, one starts; what has waited for the end of a flush brings it forward. */
static void arm(struct flusher *flusher, struct aoi_space *space)
{
    uint32_t flush_ms = aoi_space_settings(space)->flush_ms;
    if (flush_ms == 0 || flusher->untimed) return;
    struct space_timer *timer = timer_of(flusher, space);
    bool active = uv_is_active((uv_handle_t *)&timer->handle);
    if (timer->phase != QUIET || (active && flusher->since_ns == 0)) return;
    uint64_t ms = flusher->since_ns == 0 ? flush_ms : left_ms(timer, flush_ms, flusher->since_ns);
    uv_update_time(flusher->loop); /* the loop's clock stands still within a turn: after a long one the timer would be too early */
    if (active && uv_timer_get_due_in(&timer->handle) <= ms) return;
    CHECK(uv_timer_start(&timer->handle, on_timer, ms, 0) == 0);
}

static void on_change(void *ctx, struct aoi_space *space)
{
    struct flusher *flusher = ctx;
    timer_of(flusher, space)->oldest_ns = flusher->since_ns != 0 ? flusher->since_ns : uv_hrtime();
    arm(flusher, space);
}

void flusher_heard(struct flusher *flusher, struct aoi_space *space, uint64_t at_ns)
{
    if (!aoi_space_dirty(space)) return;
    struct space_timer *timer = timer_of(flusher, space);
    if (timer->oldest_ns == 0) timer->oldest_ns = at_ns;
    if (flusher->since_ns != 0) arm(flusher, space);
}

void flusher_init(struct flusher *flusher, uv_loop_t *loop, struct aoi_world *world, void (*after)(void *ctx), void *after_ctx)
{
    *flusher = (struct flusher){.loop = loop, .world = world, .after = after, .after_ctx = after_ctx, .slice_most_ns = SLICE_MAX_NS};
    CHECK(uv_idle_init(loop, &flusher->slices) == 0);
    flusher->slices.data = flusher;
    aoi_world_on_space_end(world, on_space_end, flusher);
    aoi_world_on_change(world, on_change, flusher);
}

void flusher_close(struct flusher *flusher)
{
    CHECK(flusher->due.n == 0);
    array_clear(&flusher->due);
    uv_close((uv_handle_t *)&flusher->slices, NULL);
}

void flusher_rearm(struct flusher *flusher, struct aoi_space *space)
{
    uint32_t flush_ms = aoi_space_settings(space)->flush_ms;
    struct space_timer *timer = aoi_space_user(space);
    if (timer != NULL && flush_ms == 0) {
        disarm(timer);
    } else if (timer != NULL && uv_is_active((uv_handle_t *)&timer->handle)) {
        uv_update_time(flusher->loop);
        if (uv_timer_get_due_in(&timer->handle) <= flush_ms) return;
        uv_timer_stop(&timer->handle);
    }
    if (aoi_space_dirty(space)) arm(flusher, space);
}

/* ------------------------------------------------------------------------------------------------------------- at once */

static bool flush_on(struct flusher *flusher, struct aoi_space *space, uint64_t tag, bool final, uint64_t until_ns, bool *pending)
{
    struct space_timer *timer = timer_of(flusher, space);
    finish(timer);
    if (timer->phase != COMMANDED) {
        disarm(timer);
        begin_flush(timer, COMMANDED, tag, final);
    }
    if (!serve(timer, until_ns)) return false;
    aoi_flush_end(space, &timer->info);
    count_flush(flusher, space, timer->work_ns);
    timer->phase = QUIET;
    *pending = timer->info.pending;
    if (timer->info.pending) arm(flusher, space);
    return true;
}

bool flusher_flush(struct flusher *flusher, struct aoi_space *space, uint64_t tag, uint64_t until_ns, bool *pending)
{
    return flush_on(flusher, space, tag, false, until_ns, pending);
}

void flusher_flush_all(struct flusher *flusher)
{
    uint64_t id = 0;
    bool pending;
    flusher_finish(flusher);
    for (struct aoi_space *space; (space = aoi_space_next(flusher->world, id)) != NULL; id = aoi_space_id(space)) {
        if (aoi_space_settings(space)->flush_ms > 0 && aoi_space_dirty(space)) flush_on(flusher, space, 0, true, 0, &pending);
    }
}
