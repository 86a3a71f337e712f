/* deliver.h: the core's sink: delta -> owner -> session -> outbox. */
#ifndef AOI_SERVER_DELIVER_H
#define AOI_SERVER_DELIVER_H

#include "core/aoi.h"
#include "server/session.h"

struct deliver {
    struct sessions *sessions;
    size_t max_frame_bytes;
    /* Last deltas of players that ended: they go out by deliver_closed(), when what they answer to has been acknowledged. */
    ARRAY(struct aoi_delta) closed;
};

void deliver_init(struct deliver *deliver, struct sessions *sessions, size_t max_frame_bytes);
void deliver_clear(struct deliver *deliver);
struct aoi_sink deliver_sink(struct deliver *deliver);

/* Sends the closed deltas that wait: right after the Ack of the batch that ended the players, or before the deltas of a Flush in it. */
void deliver_closed(struct deliver *deliver);

#endif
