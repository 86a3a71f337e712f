/* deliver.c: the core's sink: delta -> owner -> session -> outbox. */
#include "server/deliver.h"

#include <stdlib.h>

#include "server/flusher.h"

#define KEPT 1024           /* elements; a space of a million players that ends is not paid for ever after */
#define IDS_FRAME_BYTES 64u /* of an Observed or Lost frame beside its ids, at most */

/* The owner's session, if it has a connection that takes something now. */
static struct session *ready(const struct deliver *deliver, aoi_owner owner)
{
    const struct standing *standing = sessions_of_owner(deliver->sessions, owner);
    struct session *session = standing == NULL ? NULL : standing->session;
    return session == NULL || session->state != SESSION_READY || deliver_owes(session) ? NULL : session;
}

static size_t room(void *ctx, aoi_owner owner)
{
    const struct session *session = ready(ctx, owner);
    return session == NULL ? 0 : outbox_room(&session->out);
}

/* What was put into the outbox, before which there were so many bytes, is complete. */
static void appended(const struct deliver *deliver, struct session *session, uint64_t before)
{
    session_touch(deliver->sessions, session);
    if (!outbox_appended(&session->out, before)) session_close(deliver->sessions, session, CLOSE_OUT_HARD);
}

static void send_delta(const struct deliver *deliver, struct session *session, const struct aoi_delta *delta)
{
    uint64_t before = outbox_bytes(&session->out);
    outbox_delta(&session->out, delta, deliver->max_frame_bytes);
    appended(deliver, session, before);
}

/* ------------------------------------------------------------------------------------------------------------- what is owed */

static void owe(struct deliver *deliver, struct standing *standing)
{
    if (standing->owes) return;
    standing->owes = true;
    *array_add(&deliver->owing) = standing->owner;
}

static void take_delta(void *ctx, const struct aoi_delta *delta)
{
    struct deliver *deliver = ctx;
    if (!delta->closed) {
        struct session *session = ready(deliver, delta->owner);
        if (session != NULL) send_delta(deliver, session, delta);
        return;
    }
    struct standing *standing = sessions_of_owner(deliver->sessions, delta->owner);
    if (standing == NULL) return;
    *array_add(&standing->closed) = (struct owed_closed){.space = delta->space,
                                                         .player = delta->player,
                                                         .seq = delta->seq,
                                                         .flush = delta->flush,
                                                         .time_us = flusher_time_us(),
                                                         .messages_lost = delta->messages_lost};
    owe(deliver, standing);
}

static void take_lost(void *ctx, aoi_owner owner, uint64_t space, bool is_player, uint64_t id)
{
    struct deliver *deliver = ctx;
    struct standing *standing = sessions_of_owner(deliver->sessions, owner);
    if (standing == NULL) return;
    *array_add(&standing->lost) = (struct owed_lost){.space = space, .id = id, .is_player = is_player};
    owe(deliver, standing);
}

static void send_closed(const struct deliver *deliver, struct session *session)
{
    struct standing *standing = session->standing;
    while (standing->closed_sent < standing->closed.n && !outbox_full(&session->out) && session->state == SESSION_READY) {
        const struct owed_closed *closed = &standing->closed.at[standing->closed_sent++];
        const struct aoi_delta delta = {.space = closed->space,
                                        .flush = closed->flush,
                                        .time_us = closed->time_us,
                                        .player = closed->player,
                                        .seq = closed->seq,
                                        .owner = session->owner,
                                        .closed = true,
                                        .messages_lost = closed->messages_lost};
        send_delta(deliver, session, &delta);
    }
    if (standing->closed_sent < standing->closed.n) return;
    standing->closed.n = standing->closed_sent = 0;
    if (standing->closed.cap > KEPT) array_clear(&standing->closed);
}

/* How many ids a frame takes. */
static size_t ids_a_frame(const struct deliver *deliver)
{
    return (deliver->max_frame_bytes - IDS_FRAME_BYTES) / sizeof(uint64_t);
}

/* By space; entities before players. */
static int compare_lost(const void *left, const void *right)
{
    const struct owed_lost *a = left, *b = right;
    if (a->space != b->space) return a->space < b->space ? -1 : 1;
    if (a->is_player != b->is_player) return a->is_player ? 1 : -1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* The first n, of one space, entities first. */
static void send_lost_frame(struct deliver *deliver, struct session *session, const struct owed_lost *lost, size_t n)
{
    uint64_t before = outbox_bytes(&session->out);
    struct codec_server_frame frame = {.kind = CODEC_LOST, .u.lost.space = lost->space};
    deliver->ids.n = 0;
    for (size_t i = 0; i < n; i++) {
        *array_add(&deliver->ids) = lost[i].id;
        if (!lost[i].is_player) frame.u.lost.entity_n++;
    }
    frame.u.lost.player_n = n - frame.u.lost.entity_n;
    frame.u.lost.entities = deliver->ids.at;
    frame.u.lost.players = deliver->ids.at + frame.u.lost.entity_n;
    codec_encode_server(&frame, outbox_queue(&session->out));
    appended(deliver, session, before);
}

static void send_lost(struct deliver *deliver, struct session *session)
{
    struct standing *standing = session->standing;
    const struct owed_lost *lost = standing->lost.at;
    while (standing->lost_sent < standing->lost.n && !outbox_full(&session->out) && session->state == SESSION_READY) {
        uint32_t sent = standing->lost_sent;
        size_t most = ids_a_frame(deliver), fit = outbox_room(&session->out) / sizeof(uint64_t) + 1, n = 1;
        if (most > fit) most = fit;
        while (sent + n < standing->lost.n && n < most && lost[sent + n].space == lost[sent].space) n++;
        send_lost_frame(deliver, session, &lost[sent], n);
        standing->lost_sent += (uint32_t)n;
    }
    if (standing->lost_sent < standing->lost.n) return;
    standing->lost.n = standing->lost_sent = 0;
    if (standing->lost.cap > KEPT) array_clear(&standing->lost);
}

bool deliver_owed(struct deliver *deliver, struct session *session)
{
    if (session->state != SESSION_READY || !deliver_owes(session) || outbox_full(&session->out)) return false;
    send_closed(deliver, session);
    if (session->standing->closed.n == 0) send_lost(deliver, session);
    return true;
}

void deliver_waiting(struct deliver *deliver)
{
    for (uint32_t i = 0; i < deliver->owing.n; i++) {
        struct standing *standing = sessions_of_owner(deliver->sessions, deliver->owing.at[i]);
        if (standing == NULL || !standing->owes) continue; /* it has ended since */
        standing->owes = false;
        if (standing->lost.n > 1)
            qsort(standing->lost.at + standing->lost_sent, standing->lost.n - standing->lost_sent, sizeof *standing->lost.at, compare_lost);
        if (standing->session != NULL) deliver_owed(deliver, standing->session);
    }
    deliver->owing.n = 0;
}

/* ------------------------------------------------------------------------------------------------------------- what is observed */

/* The ids of those of the n flags that are `value`, behind those that stand in deliver->ids; how many. */
static size_t pick(struct deliver *deliver, const uint64_t *id, const bool *flag, size_t n, bool value)
{
    uint32_t before = deliver->ids.n;
    for (size_t i = 0; i < n; i++)
        if (flag[i] == value) *array_add(&deliver->ids) = id[i];
    return deliver->ids.n - before;
}

static bool take_observed(void *ctx, aoi_owner owner, uint64_t space, const uint64_t *id, const bool *observed, size_t n)
{
    struct deliver *deliver = ctx;
    struct session *session = ready(deliver, owner);
    if (session == NULL || outbox_full(&session->out)) return false;
    uint64_t before = outbox_bytes(&session->out);
    size_t most = ids_a_frame(deliver);
    for (size_t from = 0, some; from < n; from += some) {
        struct codec_server_frame frame = {.kind = CODEC_OBSERVED, .u.observed.space = space};
        some = n - from < most ? n - from : most;
        deliver->ids.n = 0;
        frame.u.observed.observed_n = pick(deliver, id + from, observed + from, some, true);
        frame.u.observed.unobserved_n = pick(deliver, id + from, observed + from, some, false);
        frame.u.observed.observed = deliver->ids.at;
        frame.u.observed.unobserved = deliver->ids.at + frame.u.observed.observed_n;
        codec_encode_server(&frame, outbox_queue(&session->out));
    }
    appended(deliver, session, before);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------- the whole */

static bool may_take(void *ctx, aoi_owner taker, aoi_owner owner)
{
    const struct deliver *deliver = ctx;
    return sessions_may_take(deliver->sessions, taker, owner);
}

void deliver_init(struct deliver *deliver, struct sessions *sessions, size_t max_frame_bytes)
{
    *deliver = (struct deliver){.sessions = sessions, .max_frame_bytes = max_frame_bytes};
}

void deliver_clear(struct deliver *deliver)
{
    array_clear(&deliver->owing);
    array_clear(&deliver->ids);
}

struct aoi_sink deliver_sink(struct deliver *deliver)
{
    return (struct aoi_sink){.ctx = deliver, .room = room, .deliver = take_delta, .observed = take_observed, .may_take = may_take, .lost = take_lost};
}
