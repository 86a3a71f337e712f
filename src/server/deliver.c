/* deliver.c: the core's sink: delta -> owner -> session -> outbox. */
#include "server/deliver.h"

#include "server/flusher.h"

#define CLOSED_KEPT 1024 /* elements; a space of a million players that ends is not paid for ever after */

static size_t room(void *ctx, aoi_owner owner)
{
    const struct deliver *deliver = ctx;
    const struct session *session = sessions_of_owner(deliver->sessions, owner);
    return session == NULL || session->state != SESSION_READY ? 0 : outbox_room(&session->out);
}

static void send_delta(struct deliver *deliver, const struct aoi_delta *delta)
{
    struct session *session = sessions_of_owner(deliver->sessions, delta->owner);
    if (session == NULL || session->state != SESSION_READY) return;
    uint64_t before = outbox_bytes(&session->out);
    codec_encode_delta(delta, deliver->max_frame_bytes, &session->out.queue);
    session_touch(deliver->sessions, session);
    if (!outbox_appended(&session->out, before)) session_close(deliver->sessions, session, CLOSE_OUT_HARD);
}

static void take_delta(void *ctx, const struct aoi_delta *delta)
{
    struct deliver *deliver = ctx;
    if (!delta->closed) {
        send_delta(deliver, delta);
        return;
    }
    /* it has no columns, so that the copy points at nothing that will be gone */
    *array_add(&deliver->closed) = (struct aoi_delta){
        .space = delta->space,
        .flush = delta->flush,
        .tag = delta->tag,
        .time_us = flusher_time_us(),
        .player = delta->player,
        .seq = delta->seq,
        .owner = delta->owner,
        .closed = true,
    };
}

void deliver_init(struct deliver *deliver, struct sessions *sessions, size_t max_frame_bytes)
{
    *deliver = (struct deliver){.sessions = sessions, .max_frame_bytes = max_frame_bytes};
}

void deliver_clear(struct deliver *deliver)
{
    array_clear(&deliver->closed);
}

struct aoi_sink deliver_sink(struct deliver *deliver)
{
    return (struct aoi_sink){.ctx = deliver, .room = room, .deliver = take_delta};
}

void deliver_closed(struct deliver *deliver)
{
    for (uint32_t i = 0; i < deliver->closed.n; i++) send_delta(deliver, &deliver->closed.at[i]);
    deliver->closed.n = 0;
    if (deliver->closed.cap > CLOSED_KEPT) array_clear(&deliver->closed);
}
