/* deliver.c: the core's sink: delta -> owner -> session -> outbox. */
#include "server/deliver.h"

#include "server/flusher.h"

#define TOLD_BYTES 16u /* of an entity in a view, about */
/* Are written in the middle of a flush, while they are in the cache: with the end of a delta they fit into two segments of the loopback, where 128 KiB would make a
 * third one of a few bytes. */
#define EARLY_BYTES (120u * 1024)
#define IDS_FRAME_BYTES 64u /* of an Observed or Lost frame beside its ids, at most */

/* The owner's session, if it has a connection. */
static inline struct session *connected(const struct deliver *deliver, aoi_owner owner)
{
    const struct standing *standing = sessions_of_owner(deliver->sessions, owner);
    struct session *session = standing == NULL ? NULL : standing->session;
    return session == NULL || session->state != SESSION_READY ? NULL : session;
}

/* The same, if it takes something now. */
static inline struct session *ready(const struct deliver *deliver, aoi_owner owner)
{
    struct session *session = connected(deliver, owner);
    return session == NULL || deliver_owes(session) ? NULL : session;
}

/* Over max_memory_bytes there is room for leaves and updates alone, and for what was told before, and none where much is unsent already: enters wait. */
static size_t room(void *ctx, aoi_owner owner)
{
    struct deliver *deliver = ctx;
    struct session *session = connected(deliver, owner);
    CHECK(deliver->placed.session == NULL);
    deliver->serving = NULL;
    if (session == NULL) return 0;
    size_t room = deliver_owes(session) ? 0 : outbox_room(&session->out);
    if (room > 1 && budget_full(deliver->budget)) room = outbox_bytes(&session->out) < BUDGET_UNSENT_BYTES ? AOI_ROOM_KEPT : 0;
    *(room > 0 ? &session->served : &session->skipped) += 1;
    if (room > 0) deliver->serving = session;
    return room;
}

/* What was put into the outbox, before which there were so many bytes, is complete. */
static void appended(const struct deliver *deliver, struct session *session, uint64_t before)
{
    session_touch(deliver->sessions, session);
    if (!outbox_appended(&session->out, before)) session_close(deliver->sessions, session, CLOSE_OUT_HARD);
}

/* Likewise, and it was a delta. */
static void appended_delta(const struct deliver *deliver, struct session *session, uint64_t before)
{
    appended(deliver, session, before);
    if (outbox_bytes(&session->out) >= EARLY_BYTES && outbox_flush(&session->out) < 0) session_close(deliver->sessions, session, CLOSE_IO);
}

static void send_delta(const struct deliver *deliver, struct session *session, const struct aoi_delta *delta)
{
    uint64_t before = outbox_bytes(&session->out);
    outbox_delta(&session->out, delta, deliver->max_frame_bytes);
    appended_delta(deliver, session, before);
}

/* The core writes its columns straight into the outbox, and deliver() is next. */
static bool columns(void *ctx, const struct aoi_delta *delta, struct aoi_places *to)
{
    struct deliver *deliver = ctx;
    struct session *session = deliver->serving;
    CHECK(session != NULL && session->owner == delta->owner && deliver->placed.session == NULL);
    uint64_t before = outbox_bytes(&session->out);
    if (!outbox_place(&session->out, delta, deliver->max_frame_bytes, to)) return false;
    deliver->placed.session = session;
    deliver->placed.before = before;
    return true;
}

static void end_placed(struct deliver *deliver)
{
    struct session *session = deliver->placed.session;
    CHECK(session != NULL);
    deliver->placed.session = NULL;
    appended_delta(deliver, session, deliver->placed.before);
}

/* ------------------------------------------------------------------------------------------------------------- what is owed */

static void owe(struct deliver *deliver, struct standing *standing)
{
    if (standing->owes) return;
    standing->owes = true;
    *array_add(&deliver->owing) = standing->owner;
}

static void take_closed(struct deliver *deliver, const struct aoi_delta *delta)
{
    struct standing *standing = sessions_of_owner(deliver->sessions, delta->owner);
    if (standing == NULL) return;
    *array_add(&standing->notices.closed) = (struct notice_closed){.space = delta->space,
                                                                   .player = delta->player,
                                                                   .seq = delta->seq,
                                                                   .flush = delta->flush,
                                                                   .time_us = flusher_time_us(),
                                                                   .messages_lost = delta->messages_lost};
    owe(deliver, standing);
}

static void take_delta(void *ctx, const struct aoi_delta *delta)
{
    struct deliver *deliver = ctx;
    if (delta->closed) {
        take_closed(deliver, delta);
        return;
    }
    struct session *session;
    if (delta->placed)
        end_placed(deliver);
    else if ((session = ready(deliver, delta->owner)) != NULL)
        send_delta(deliver, session, delta);
    if (delta->enters.n > 0) budget_charge(deliver->budget, delta->enters.n * TOLD_BYTES);
}

static void take_lost(void *ctx, aoi_owner owner, uint64_t space, bool is_player, uint64_t id)
{
    struct deliver *deliver = ctx;
    struct standing *standing = sessions_of_owner(deliver->sessions, owner);
    if (standing == NULL) return;
    *array_add(&standing->notices.lost) = (struct notice_lost){.space = space, .id = id, .is_player = is_player};
    owe(deliver, standing);
}

static void send_closed(const struct deliver *deliver, struct session *session)
{
    struct notices *notices = &session->standing->notices;
    while (notices->closed_sent < notices->closed.n && !outbox_full(&session->out) && session->state == SESSION_READY) {
        struct notice_closed *closed = &notices->closed.at[notices->closed_sent++];
        const struct aoi_delta delta = {.space = closed->space,
                                        .flush = closed->flush,
                                        .time_us = closed->time_us,
                                        .player = closed->player,
                                        .seq = closed->seq,
                                        .owner = session->owner,
                                        .closed = true,
                                        .messages_lost = closed->messages_lost};
        closed->sent_ms = flusher_now_ms();
        send_delta(deliver, session, &delta);
    }
}

/* How many ids a frame takes. */
static size_t ids_a_frame(const struct deliver *deliver)
{
    return (deliver->max_frame_bytes - IDS_FRAME_BYTES) / sizeof(uint64_t);
}

/* The first n, of one space, entities first. */
static void send_lost_frame(struct deliver *deliver, struct session *session, const struct notice_lost *lost, size_t n)
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
    struct notices *notices = &session->standing->notices;
    while (notices->lost_sent < notices->lost.n && !outbox_full(&session->out) && session->state == SESSION_READY) {
        struct notice_lost *lost = &notices->lost.at[notices->lost_sent];
        size_t left = notices->lost.n - notices->lost_sent, most = ids_a_frame(deliver), fit = outbox_room(&session->out) / sizeof(uint64_t) + 1,
               n = 0;
        if (most > fit) most = fit;
        for (; n < left && n < most && lost[n].space == lost[0].space; n++) lost[n].sent_ms = flusher_now_ms();
        notices->lost_sent += (uint32_t)n;
        send_lost_frame(deliver, session, lost, n);
    }
}

bool deliver_owed(struct deliver *deliver, struct session *session)
{
    if (session->state != SESSION_READY || session->batch != NULL || !deliver_owes(session) || outbox_full(&session->out)) return false;
    send_closed(deliver, session);
    send_lost(deliver, session);
    notices_were_sent(&session->standing->notices, flusher_now_ms());
    return true;
}

void deliver_waiting(struct deliver *deliver)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < deliver->owing.n; i++) {
        struct standing *standing = sessions_of_owner(deliver->sessions, deliver->owing.at[i]);
        if (standing == NULL || !standing->owes) continue;                   /* it has ended since */
        if (standing->session != NULL && standing->session->batch != NULL) { /* the Ack comes first */
            deliver->owing.at[kept++] = standing->owner;
            continue;
        }
        standing->owes = false;
        notices_sort(&standing->notices);
        if (standing->session != NULL) deliver_owed(deliver, standing->session);
    }
    deliver->owing.n = kept;
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
    return (struct aoi_sink){
        .ctx = deliver, .room = room, .columns = columns, .deliver = take_delta, .observed = take_observed, .may_take = may_take, .lost = take_lost};
}
