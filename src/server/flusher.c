/* flusher.c: when spaces are flushed: one timer a space, armed by the first change in a quiet one. */
#include "server/flusher.h"

#include <stdlib.h>
#include <time.h>

#include "base/check.h"

/* Made when a space is first armed, freed when libuv has let go of its handle. */
struct space_timer {
    uv_timer_t handle;
    struct flusher *flusher;
    struct aoi_space *space; /* NULL: the space has ended */
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

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_space_end(void *ctx, struct aoi_space *space)
{
    (void)ctx;
    struct space_timer *timer = aoi_space_user(space);
    if (timer == NULL) return;
    timer->space = NULL;
    uv_close((uv_handle_t *)&timer->handle, on_closed);
}

/* Whether work is left. */
static bool flush(struct aoi_space *space, uint64_t tag, bool final)
{
    struct aoi_flush_info info = {.tag = tag, .time_us = flusher_time_us(), .now_ms = flusher_now_ms(), .final = final};
    aoi_flush(space, &info);
    return info.pending;
}

static void arm(struct flusher *flusher, struct aoi_space *space);

static void on_timer(uv_timer_t *handle)
{
    struct space_timer *timer = handle->data;
    struct flusher *flusher = timer->flusher;
    if (flush(timer->space, 0, false)) arm(flusher, timer->space);
    flusher->after(flusher->after_ctx);
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

/* There is something to flush: if no timer runs, one starts. */
static void arm(struct flusher *flusher, struct aoi_space *space)
{
    uint32_t flush_ms = aoi_space_settings(space)->flush_ms;
    if (flush_ms == 0) return;
    struct space_timer *timer = timer_of(flusher, space);
    if (uv_is_active((uv_handle_t *)&timer->handle)) return;
    uv_update_time(flusher->loop); /* the loop's clock stands still within a turn: after a long one the timer would be too early */
    CHECK(uv_timer_start(&timer->handle, on_timer, flush_ms, 0) == 0);
}

static void on_change(void *ctx, struct aoi_space *space)
{
    arm(ctx, space);
}

void flusher_init(struct flusher *flusher, uv_loop_t *loop, struct aoi_world *world, void (*after)(void *ctx), void *after_ctx)
{
    *flusher = (struct flusher){.loop = loop, .world = world, .after = after, .after_ctx = after_ctx};
    aoi_world_on_space_end(world, on_space_end, flusher);
    aoi_world_on_change(world, on_change, flusher);
}

void flusher_rearm(struct flusher *flusher, struct aoi_space *space)
{
    uint32_t flush_ms = aoi_space_settings(space)->flush_ms;
    struct space_timer *timer = aoi_space_user(space);
    if (timer != NULL && uv_is_active((uv_handle_t *)&timer->handle)) {
        uv_update_time(flusher->loop);
        if (flush_ms > 0 && uv_timer_get_due_in(&timer->handle) <= flush_ms) return;
        uv_timer_stop(&timer->handle);
    }
    if (aoi_space_dirty(space)) arm(flusher, space);
}

static bool flush_now(struct flusher *flusher, struct aoi_space *space, uint64_t tag, bool final)
{
    bool pending = flush(space, tag, final);
    struct space_timer *timer = aoi_space_user(space);
    if (timer != NULL) uv_timer_stop(&timer->handle);
    if (pending) arm(flusher, space);
    return pending;
}

bool flusher_flush(struct flusher *flusher, struct aoi_space *space, uint64_t tag)
{
    return flush_now(flusher, space, tag, false);
}

void flusher_flush_all(struct flusher *flusher)
{
    uint64_t id = 0;
    for (struct aoi_space *space; (space = aoi_space_next(flusher->world, id)) != NULL; id = aoi_space_id(space)) {
        if (aoi_space_settings(space)->flush_ms > 0 && aoi_space_dirty(space)) flush_now(flusher, space, 0, true);
    }
}
