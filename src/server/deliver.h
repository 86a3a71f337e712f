/* deliver.h: the core's sink: delta -> owner -> session -> outbox. */
#ifndef AOI_SERVER_DELIVER_H
#define AOI_SERVER_DELIVER_H

#include "core/aoi.h"
#include "server/budget.h"
#include "server/sessions.h"

struct deliver {
    struct sessions *sessions;
    size_t max_frame_bytes;
    struct budget *budget;       /* NULL: none */
    ARRAY(aoi_owner) owing;      /* sessions to which something has come to be owed since deliver_waiting() */
    ARRAY(uint64_t) ids;         /* of the frame that is made */
    struct session *serving;     /* for which the core asked for room last, if there was any: it is the one that has columns next */
    struct {                     /* between columns() and deliver(), when nothing but its update columns is written: */
        struct session *session; /* which has a delta with open columns in its outbox; NULL: none */
        uint64_t before;         /* bytes that were in it before */
    } placed;
};

void deliver_init(struct deliver *deliver, struct sessions *sessions, size_t max_frame_bytes);
void deliver_clear(struct deliver *deliver);
struct aoi_sink deliver_sink(struct deliver *deliver);

/* Sends the closed deltas and the Lost frames that have come up: right after the Ack of the batch that ended the players or took something over, or before the deltas
 * of a Flush in it. What a connection has no room for, or has no connection, is kept: see deliver_owed(). */
void deliver_waiting(struct deliver *deliver);
/* Sends what is owed to the session, as far as its connection has room. Whether it sent anything. */
bool deliver_owed(struct deliver *deliver, struct session *session);
/* Whether anything is. */
static inline bool deliver_owes(const struct session *session)
{
    return session->standing != NULL && notices_wait(&session->standing->notices);
}

#endif
