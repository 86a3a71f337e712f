/* test_middle.c: connections that fill up, drain, break, resume and end in the middle of flushes: what comes out of their outboxes is what the players are told, to the last byte.
 *
 * AOI_SEED=n replays a run: the seed is printed at the start.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../random.h"
#include "rig.h"
#include "wire/frame.h"

enum { SESSIONS = 3, EACH = 8, PLAYERS = SESSIONS * EACH, ENTITIES = 200, ROUNDS = 2000, SIDE = 100, LONG = 3000 };
#define OTHER 1000 /* owner of the entities, who is no session */

/* What a player's deltas made of its view. */
struct mirror {
    bool has[ENTITIES + 1];
    struct where {
        float x, y, z;
        uint32_t extra;
    } at[ENTITIES + 1];
    uint64_t seq;
};

struct middle {
    struct random r;
    struct rig *rig;
    struct aoi_space *space;
    struct budget budget;
    uint32_t high; /* half of all ids */
    bool deep, extra;
    struct mirror mirror[PLAYERS];
    uint8_t token[SESSIONS][64];
    size_t token_len[SESSIONS];
    uint64_t updates, resumed, ended, full;
};

static uint32_t below(struct middle *t, uint32_t n)
{
    return (uint32_t)random_below(&t->r, n);
}

/* ------------------------------------------------------------------------------------------------------------- what is received */

static uint64_t id_of(const struct middle *t, uint32_t k)
{
    return (uint64_t)t->high << 32 | k;
}

static uint32_t number(const struct middle *t, uint64_t id)
{
    assert_true(id >> 32 == t->high && (uint32_t)id >= 1 && (uint32_t)id <= ENTITIES);
    return (uint32_t)id;
}

static void take_delta(struct middle *t, size_t s, const struct codec_player_delta *part)
{
    const struct aoi_delta *d = &part->delta;
    assert_true(d->player > s * EACH && d->player <= (s + 1) * EACH);
    struct mirror *m = &t->mirror[d->player - 1];
    if (part->part == 0) {
        if (d->full || d->seq == 1) *m = (struct mirror){.seq = d->seq - 1};
        assert_int_equal(d->seq, ++m->seq);
    }
    assert_int_equal(d->seq, m->seq);
    for (size_t i = 0; i < d->leave_n; i++) {
        uint32_t k = number(t, d->leave_id[i]);
        assert_true(m->has[k]);
        m->has[k] = false;
    }
    for (size_t i = 0; i < d->enters.n; i++) {
        uint32_t k = number(t, d->enters.id[i]);
        assert_true(!m->has[k]);
        m->has[k] = true;
        m->at[k] = (struct where){d->enters.x[i], d->enters.y[i], t->deep ? d->enters.z[i] : 0, t->extra ? d->enters.extra[i] : 0};
    }
    for (size_t i = 0; i < d->updates.n; i++) {
        uint32_t k = number(t, d->updates.id[i]);
        assert_true(m->has[k]);
        m->at[k] = (struct where){d->updates.x[i], d->updates.y[i], t->deep ? d->updates.z[i] : 0, t->extra ? d->updates.extra[i] : 0};
    }
    t->updates += d->updates.n;
}

/* The peer reads all there is. */
static void drain(struct middle *t, size_t s)
{
    struct buf *from = outbox_queue(&t->rig->session[s].out);
    while (buf_len(from) > 0) {
        struct frame f;
        struct codec_server_frame frame;
        assert_int_equal(frame_next(buf_data(from), buf_len(from), FRAME_BODY_MAX, &f), FRAME_READY);
        arena_reset(&t->rig->arena);
        assert_int_equal(codec_decode_server(buf_data(from) + f.header_len, f.body_len, &t->rig->arena, &frame), 0);
        if (frame.kind == CODEC_DELTAS)
            for (size_t i = 0; i < frame.u.deltas.player_n; i++) take_delta(t, s, &frame.u.deltas.players[i]);
        if (frame.kind == CODEC_WELCOME) {
            t->token_len[s] = frame.u.welcome.resume_token_len;
            assert_true(t->token_len[s] <= sizeof t->token[s]);
            memcpy(t->token[s], frame.u.welcome.resume_token, t->token_len[s]);
        }
        buf_consume(from, f.header_len + f.body_len);
    }
    t->rig->session[s].out.excused = 0;
}

/* ------------------------------------------------------------------------------------------------------------- what happens */

static void watch(struct middle *t, uint64_t player, aoi_owner owner)
{
    if (player % 2 == 0) {
        float min[3] = {(float)below(t, SIDE), (float)below(t, SIDE), 0}, max[3] = {min[0] + 60, min[1] + 60, 20};
        assert_int_equal(aoi_viewport_set(t->space, owner, player, min, max), AOI_OK);
    } else {
        assert_int_equal(aoi_subscribe(t->space, owner, player, id_of(t, (uint32_t)player), false), AOI_OK);
    }
}

/* A new connection, which begins a session or (id not 0) resumes that one. */
static void hello(struct middle *t, size_t s, uint64_t id)
{
    struct session *session = &t->rig->session[s];
    outbox_clear(&session->out);
    *session = (struct session){0};
    outbox_init(&session->out, &t->rig->out_limits, NULL, &t->rig->metrics.bytes_out, NULL);
    t->rig->metrics.connections++;
    struct codec_client_frame frame = {.kind = CODEC_HELLO, .u.hello = {.protocol_version = 1, .client_name = "middle", .lease_ms = 1000}};
    frame.u.hello.resume_session = id;
    frame.u.hello.resume_token = t->token[s];
    frame.u.hello.resume_token_len = id == 0 ? 0 : t->token_len[s];
    rig_frame(t->rig, session, &frame);
    assert_int_equal(session->state, SESSION_READY);
    assert_true(id == 0 || session->id == id);
    drain(t, s);
    for (uint64_t p = s * EACH + 1; id == 0 && p <= (s + 1) * EACH; p++) {
        t->mirror[p - 1] = (struct mirror){0};
        watch(t, p, session->owner);
    }
}

/* A frame of so many ids: one that a full connection gets, too. */
static void reply(struct middle *t, struct session *session, size_t n)
{
    static const uint64_t ids[LONG];
    struct codec_server_frame frame = {.kind = CODEC_LOST};
    frame.u.lost.entity_n = n;
    frame.u.lost.entities = ids;
    session_send(&t->rig->sessions, session, &frame);
}

/* In the middle of a flush. */
static void meddle(struct middle *t)
{
    size_t s = below(t, SESSIONS);
    struct session *session = &t->rig->session[s];
    const struct aoi_sink sink = deliver_sink(&t->rig->deliver);
    static const enum close_reason reasons[] = {CLOSE_IO, CLOSE_OUT_SOFT, CLOSE_RESUMED, CLOSE_EOF, CLOSE_BYE};
    switch (below(t, 12)) {
    case 0:
        if (session->state == SESSION_READY) session_close(&t->rig->sessions, session, reasons[below(t, 5)]);
        break;
    case 1:
    case 2:
        if (session->state == SESSION_READY) drain(t, s);
        break;
    case 3:
        if (session->state != SESSION_READY) break;
        sink.lost(sink.ctx, session->owner, 1, false, 7);
        t->rig->deliver.budget = NULL;
        break;
    case 4: deliver_waiting(&t->rig->deliver); break;
    case 5: deliver_owed(&t->rig->deliver, session); break;
    case 6: reply(t, session, below(t, 3) == 0 ? below(t, LONG) : 1); break;
    case 7: t->rig->deliver.budget = &t->budget; break; /* always full */
    case 8: t->rig->deliver.budget = NULL; break;
    case 9: t->rig->out_limits.soft_bytes = 5200 + below(t, 12000); break;
    case 10: t->rig->out_limits.hard_bytes = t->rig->out_limits.soft_bytes + below(t, 12000); break;
    default: t->rig->deliver.max_frame_bytes = 2000 + below(t, 9000); break;
    }
}

static void change(struct middle *t)
{
    for (uint32_t i = below(t, 2 * ENTITIES); i > 0; i--) {
        float pos[3] = {(float)below(t, SIDE), (float)below(t, SIDE), (float)below(t, 40)};
        uint32_t extra = below(t, 3);
        assert_int_equal(aoi_entity_move(t->space, OTHER, id_of(t, 1 + below(t, ENTITIES)), pos, &extra), AOI_OK);
    }
    for (uint64_t p = 2 + 2 * below(t, PLAYERS); p <= PLAYERS; p += 14) watch(t, p, t->rig->session[(p - 1) / EACH].owner);
    uint64_t p = 1 + below(t, PLAYERS);
    if (below(t, 4) == 0) assert_int_equal(aoi_resync(t->space, t->rig->session[(p - 1) / EACH].owner, p), AOI_OK);
}

/* What a server does when nothing is open: connections that broke are away, others have ended; their peers come back. */
static void settle(struct middle *t)
{
    for (size_t s = 0; s < SESSIONS; s++) {
        struct session *session = &t->rig->session[s];
        if (session->state == SESSION_READY) continue;
        uint64_t id = session->id;
        bool breaks = session_breaks(session->reason);
        t->full += session->reason == CLOSE_OUT_HARD;
        if (session->state == SESSION_BROKEN) session_finish(&t->rig->sessions, session);
        if (breaks) {
            sessions_leave(&t->rig->sessions, session->standing, 1000000);
            if (below(t, 3) == 0) aoi_flush(t->space, &(struct aoi_flush_info){.now_ms = 1});
        } else {
            rig_close(t->rig, session);
        }
        t->resumed += breaks;
        t->ended += !breaks;
        hello(t, s, breaks ? id : 0);
    }
}

static void flush(struct middle *t)
{
    struct aoi_flush_info info = {.tag = below(t, 2), .now_ms = 1, .time_us = 5};
    aoi_flush_begin(t->space, &info);
    while (aoi_flush_step(t->space, &info, 1 + below(t, 4)))
        if (below(t, 3) == 0) meddle(t);
    aoi_flush_end(t->space, &info);
}

/* With room for all, what was received is what there is. */
static void compare(struct middle *t)
{
    struct aoi_flush_info info = {.now_ms = 1};
    struct aoi_rows rows = {0};
    t->rig->deliver.budget = NULL;
    t->rig->out_limits = (struct outbox_limits){.soft_bytes = 1000000, .hard_bytes = 2000000, .slack_bytes = 5000};
    settle(t);
    deliver_waiting(&t->rig->deliver);
    for (size_t s = 0; s < SESSIONS; s++) {
        deliver_owed(&t->rig->deliver, &t->rig->session[s]);
        drain(t, s);
    }
    for (uint32_t n = 0; n == 0 || info.pending; n++) {
        assert_true(n < 10);
        aoi_flush(t->space, &info);
    }
    for (size_t s = 0; s < SESSIONS; s++) drain(t, s);
    for (uint64_t p = 1; p <= PLAYERS; p++) {
        const struct mirror *m = &t->mirror[p - 1];
        uint64_t seq;
        size_t has = 0;
        assert_true(aoi_query_view(t->space, p, 0, ENTITIES + 1, &rows, &seq) >= 0);
        for (uint32_t id = 1; id <= ENTITIES; id++) has += m->has[id];
        assert_int_equal(seq, m->seq);
        assert_int_equal(rows.n, has);
        for (size_t i = 0; i < rows.n; i++) {
            struct aoi_entity e;
            assert_int_equal(aoi_entity_get(t->space, rows.id[i], &e), AOI_OK);
            const struct where *at = &m->at[number(t, e.id)];
            assert_true(m->has[number(t, e.id)] && at->x == e.pos[0] && at->y == e.pos[1] && at->z == e.pos[2] && at->extra == e.extra);
        }
    }
    aoi_rows_clear(&rows);
}

static void what_happens_to_connections_in_the_middle_of_flushes_leaves_every_view_right(void **state)
{
    struct middle *t = mem_zalloc(sizeof *t);
    t->r = random_start("middle");
    t->rig = *state;
    t->budget.limit_bytes = 1;
    t->deep = below(t, 2) == 0;
    t->extra = below(t, 2) == 0;
    t->high = below(t, 2) * below(t, UINT32_MAX);
    const struct aoi_settings settings = {.dimensions = 2 + t->deep, .extra = t->extra, .cell_size = 8 << below(t, 4)};
    assert_int_equal(aoi_space_create(t->rig->world, 0, 1, &settings, false), AOI_OK);
    t->space = aoi_space_find(t->rig->world, 1);
    for (uint32_t k = 1; k <= ENTITIES; k++) {
        const struct aoi_entity e = {.id = id_of(t, k), .pos = {(float)below(t, SIDE), (float)below(t, SIDE)}, .radius = 40, .layers = 1};
        assert_int_equal(aoi_entity_add(t->space, OTHER, AOI_ADD_NEW, &e), AOI_OK);
    }
    for (size_t s = 0; s < SESSIONS; s++) hello(t, s, 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        change(t);
        flush(t);
        settle(t);
        if (i % 10 == 9) compare(t);
    }
    printf("%llu updates, %llu resumed, %llu ended, %llu over the hard limit\n", (unsigned long long)t->updates, (unsigned long long)t->resumed,
           (unsigned long long)t->ended, (unsigned long long)t->full);
    assert_true(t->updates > ROUNDS && t->resumed > 50 && t->ended > 50 && t->full > 0); /* else nothing was tested */
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_happens_to_connections_in_the_middle_of_flushes_leaves_every_view_right, rig_setup, rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
