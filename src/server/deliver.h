/* deliver.h: the core's sink: delta -> owner -> session -> outbox. */
#ifndef AOI_SERVER_DELIVER_H
#define AOI_SERVER_DELIVER_H

#include "core/aoi.h"
#include "server/session.h"

/* An entity, or else a player, that an owner lost to another. */
struct deliver_lost {
    aoi_owner owner;
    bool is_player;
    uint64_t space, id;
};

struct deliver {
    struct sessions *sessions;
    size_t max_frame_bytes;
    /* Last deltas of players that ended, and what was lost: they go out by deliver_waiting(), when what they answer to has been acknowledged. */
    ARRAY(struct aoi_delta) closed;
    ARRAY(struct deliver_lost) lost;
    ARRAY(uint64_t) ids; /* of the frame that is made */
};

void deliver_init(struct deliver *deliver, struct sessions *sessions, size_t max_frame_bytes);
void deliver_clear(struct deliver *deliver);
struct aoi_sink deliver_sink(struct deliver *deliver);

/* Sends the closed deltas and the Lost frames that wait: right after the Ack of the batch that ended the players or took something over, or before the deltas
 * of a Flush in it. */
void deliver_waiting(struct deliver *deliver);

#endif
