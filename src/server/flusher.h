/* flusher.h: when spaces are flushed: one timer a space, armed by the first change in a quiet one. */
#ifndef AOI_SERVER_FLUSHER_H
#define AOI_SERVER_FLUSHER_H

#include <uv.h>

#include "core/aoi.h"

struct flusher {
    uv_loop_t *loop;
    struct aoi_world *world;
    void (*after)(void *ctx); /* called after each timed flush: its deltas stand in the outboxes */
    void *after_ctx;
};

/* Takes the user words of the world's spaces, its on_space_end and its on_change: from now on a change in a quiet space starts its timer. */
void flusher_init(struct flusher *flusher, uv_loop_t *loop, struct aoi_world *world, void (*after)(void *ctx), void *after_ctx);

/* flush_ms of the space was changed: a flush that is due never comes later for that, and not at all where only the Flush command flushes. */
void flusher_rearm(struct flusher *flusher, struct aoi_space *space);
/* The Flush command: flushes now, and disarms or, if work is left, arms anew. Returns whether work is left. */
bool flusher_flush(struct flusher *flusher, struct aoi_space *space, uint64_t tag);
/* The end is near: flushes every timed space in which there is something to flush; neither tiers nor budgets hold anything back. */
void flusher_flush_all(struct flusher *flusher);

uint64_t flusher_time_us(void); /* wall clock, microseconds since 1970 */
uint64_t flusher_now_ms(void);  /* a clock that never goes back */

#endif
