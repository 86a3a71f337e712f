/* notices.h: what a session is told once and must learn, though its connection be full or gone: last deltas of players, and what it lost to others. */
#ifndef AOI_SERVER_NOTICES_H
#define AOI_SERVER_NOTICES_H

#include "base/array.h"
#include "core/aoi.h"

/* The last delta of a player that ended. */
struct notice_closed {
    uint64_t space, player, seq, flush, time_us, messages_lost;
    uint64_t sent_ms;
};

/* An entity, or else a player, that went to another session. */
struct notice_lost {
    uint64_t space, id;
    uint64_t sent_ms;
    bool is_player;
};

/* In the order in which they came. What was sent may still have been lost with its connection, without our knowing: it is kept for a while, to be repeated after a resume. */
struct notices {
    ARRAY(struct notice_closed) closed;
    ARRAY(struct notice_lost) lost;
    uint32_t closed_sent, lost_sent; /* the first so many have been sent */
};

void notices_clear(struct notices *notices);

static inline bool notices_wait(const struct notices *notices)
{
    return notices->closed_sent < notices->closed.n || notices->lost_sent < notices->lost.n;
}

/* Lets go of what was sent too long ago to have been lost, and of the oldest where too many are kept. */
void notices_forget(struct notices *notices, uint64_t now_ms);
/* To be called when some were sent: the same, where far too many are kept. */
void notices_were_sent(struct notices *notices, uint64_t now_ms);
/* The session was resumed: what was sent waits again, as far as it is still true. */
void notices_repeat(struct notices *notices, const struct aoi_world *world, aoi_owner owner);
/* Brings what was lost and waits into the order by space, in each space entities before players. */
void notices_sort(struct notices *notices);

#endif
