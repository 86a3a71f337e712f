/* flusher.h: when spaces are flushed: one timer a space, armed by the first change in a quiet one; and how: in slices, between which the loop turns. */
#ifndef AOI_SERVER_FLUSHER_H
#define AOI_SERVER_FLUSHER_H

#include <uv.h>

#include "base/array.h"
#include "core/aoi.h"
#include "server/flushwatch.h"

struct space_timer;

struct flusher {
    uv_loop_t *loop;
    struct aoi_world *world;
    void (*after)(void *ctx); /* called after each slice of timed flushes: its deltas stand in the outboxes */
    void *after_ctx;
    /* Called when a flush begins: may look at its instant, or set another one. NULL: nobody does. */
    void (*instant)(void *ctx, const struct aoi_space *space, struct aoi_flush_info *info);
    void *instant_ctx;
    /* Whether a timed flush of the space, which is due, has to wait until flusher_release(). NULL: none has to. */
    bool (*held)(void *ctx, const struct aoi_space *space);
    void *held_ctx;
    bool untimed;             /* nothing is flushed but by flusher_flush() and flusher_flush_all() */
    struct flushwatch *watch; /* counts and checks flushes; NULL: nobody does */

    uv_idle_t slices;                /* runs while `due` is not empty */
    ARRAY(struct space_timer *) due; /* spaces whose flush is due or open */
    uint32_t turn;                   /* place in `due` of the one that goes on next */
    uint64_t sliced_ns;              /* when the last slice ended; 0: nothing was left then */
    uint64_t slice_most_ns;          /* how long a slice may last; a few players are served in any case */
    uint64_t since_ns; /* set by the caller: when the commands of now came that had to wait for the end of a flush; 0: they have just come */
    uint64_t ended;    /* how many open flushes have ended: somebody who waits for one looks whether this has changed */
};

/* Takes the user words of the world's spaces, its on_space_end and its on_change: from now on a change in a quiet space starts its timer. */
void flusher_init(struct flusher *flusher, uv_loop_t *loop, struct aoi_world *world, void (*after)(void *ctx), void *after_ctx);
void flusher_close(struct flusher *flusher); /* closes its handle; after the world was freed */

static inline bool flusher_any_open(const struct flusher *flusher)
{
    return flusher->due.n > 0;
}
/* A timed flush of the space is open: no command or query may come near it. */
bool flusher_open(const struct aoi_space *space);
/* Whether that is so of any space in which the owner has something. */
bool flusher_open_of(const struct flusher *flusher, aoi_owner owner);
/* Ends all timed flushes that are open, without more pauses. */
void flusher_finish(struct flusher *flusher);

/* Input that came at this time may have changed the space: the latency of what is told next counts from there, if it does not count already. */
void flusher_heard(struct flusher *flusher, struct aoi_space *space, uint64_t at_ns);
/* Its timed flush has no longer to wait, if it had: somebody who held it has ended. */
void flusher_release(struct aoi_space *space);

/* flush_ms of the space was changed: a flush that is due never comes later for that, and not at all where only the Flush command flushes. */
void flusher_rearm(struct flusher *flusher, struct aoi_space *space);
/* The Flush command: disarms, and flushes now, until it is done or (false, unless until_ns is 0) that time has come; then nobody may come near the space before the next such
 * call has gone on with it. Once it is done *pending tells whether work is left, for which a timed space is armed anew. */
bool flusher_flush(struct flusher *flusher, struct aoi_space *space, uint64_t tag, uint64_t until_ns, bool *pending);
/* The end is near: flushes every timed space in which there is something to flush; neither tiers nor budgets hold anything back. */
void flusher_flush_all(struct flusher *flusher);

uint64_t flusher_time_us(void); /* wall clock, microseconds since 1970 */
uint64_t flusher_now_ms(void);  /* a clock that never goes back */

#endif
