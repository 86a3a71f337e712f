/* deliver.c: the core's sink: delta -> owner -> session -> outbox. */
#include "server/deliver.h"

#include <stdlib.h>

#include "server/flusher.h"

#define KEPT 1024           /* elements; a space of a million players that ends is not paid for ever after */
#define IDS_FRAME_BYTES 64u /* of an Observed or Lost frame beside its ids, at most */

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

/* ------------------------------------------------------------------------------------------------------------- lists of ids */

/* How many ids a frame takes. */
static size_t ids_a_frame(const struct deliver *deliver)
{
    return (deliver->max_frame_bytes - IDS_FRAME_BYTES) / sizeof(uint64_t);
}

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
    struct session *session = sessions_of_owner(deliver->sessions, owner);
    if (session == NULL || session->state != SESSION_READY || outbox_full(&session->out)) return false;
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
        codec_encode_server(&frame, &session->out.queue);
    }
    session_touch(deliver->sessions, session);
    if (!outbox_appended(&session->out, before)) session_close(deliver->sessions, session, CLOSE_OUT_HARD);
    return true;
}

static void take_lost(void *ctx, aoi_owner owner, uint64_t space, bool is_player, uint64_t id)
{
    struct deliver *deliver = ctx;
    *array_add(&deliver->lost) = (struct deliver_lost){.owner = owner, .is_player = is_player, .space = space, .id = id};
}

/* By owner, then space; entities before players. */
static int compare_lost(const void *left, const void *right)
{
    const struct deliver_lost *a = left, *b = right;
    if (a->owner != b->owner) return a->owner < b->owner ? -1 : 1;
    if (a->space != b->space) return a->space < b->space ? -1 : 1;
    if (a->is_player != b->is_player) return a->is_player ? 1 : -1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* n that one owner lost in one space, entities first. */
static void send_lost(struct deliver *deliver, const struct deliver_lost *lost, size_t n)
{
    struct session *session = sessions_of_owner(deliver->sessions, lost->owner);
    if (session == NULL || session->state != SESSION_READY) return;
    uint64_t before = outbox_bytes(&session->out);
    size_t most = ids_a_frame(deliver);
    for (size_t from = 0, some; from < n; from += some) {
        struct codec_server_frame frame = {.kind = CODEC_LOST, .u.lost.space = lost->space};
        some = n - from < most ? n - from : most;
        deliver->ids.n = 0;
        for (size_t i = from; i < from + some; i++) {
            *array_add(&deliver->ids) = lost[i].id;
            if (!lost[i].is_player) frame.u.lost.entity_n++;
        }
        frame.u.lost.player_n = some - frame.u.lost.entity_n;
        frame.u.lost.entities = deliver->ids.at;
        frame.u.lost.players = deliver->ids.at + frame.u.lost.entity_n;
        codec_encode_server(&frame, &session->out.queue);
    }
    session_touch(deliver->sessions, session);
    if (!outbox_appended(&session->out, before)) session_close(deliver->sessions, session, CLOSE_OUT_HARD);
}

static void send_all_lost(struct deliver *deliver)
{
    const struct deliver_lost *lost = deliver->lost.at;
    uint32_t n = deliver->lost.n;
    if (n > 1) qsort(deliver->lost.at, n, sizeof *lost, compare_lost);
    for (uint32_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && lost[to].owner == lost[from].owner && lost[to].space == lost[from].space;) to++;
        send_lost(deliver, &lost[from], to - from);
    }
    deliver->lost.n = 0;
}

/* ------------------------------------------------------------------------------------------------------------- the whole */

void deliver_init(struct deliver *deliver, struct sessions *sessions, size_t max_frame_bytes)
{
    *deliver = (struct deliver){.sessions = sessions, .max_frame_bytes = max_frame_bytes};
}

void deliver_clear(struct deliver *deliver)
{
    array_clear(&deliver->closed);
    array_clear(&deliver->lost);
    array_clear(&deliver->ids);
}

struct aoi_sink deliver_sink(struct deliver *deliver)
{
    return (struct aoi_sink){.ctx = deliver, .room = room, .deliver = take_delta, .observed = take_observed, .lost = take_lost};
}

void deliver_waiting(struct deliver *deliver)
{
    for (uint32_t i = 0; i < deliver->closed.n; i++) send_delta(deliver, &deliver->closed.at[i]);
    deliver->closed.n = 0;
    send_all_lost(deliver);
    if (deliver->closed.cap > KEPT) array_clear(&deliver->closed);
    if (deliver->lost.cap > KEPT) array_clear(&deliver->lost);
}
