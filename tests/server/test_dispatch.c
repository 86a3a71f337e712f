/* test_dispatch.c: what frames, commands and queries do and answer, without sockets. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "commands.h"
#include "rig.h"

static void ping(struct rig *rig, struct session *session, uint64_t seq)
{
    rig_frame(rig, session, &(struct codec_client_frame){.seq = seq, .kind = CODEC_PING, .u.ping.nonce = 5});
}

static void a_first_frame_that_is_no_hello_closes(void **state)
{
    struct rig *rig = *state;
    ping(rig, &rig->session[0], 4);
    rig_expect_error(rig, &rig->session[0], 4, CODEC_UNAUTHENTICATED);
    assert_int_equal(rig->session[0].state, SESSION_CLOSING);
    assert_int_equal(rig->session[0].reason, CLOSE_NO_HELLO);
    dispatch_frame(&rig->dispatch, &rig->session[1], "", 0);
    rig_expect_error(rig, &rig->session[1], 0, CODEC_UNAUTHENTICATED);
    assert_int_equal(rig->metrics.closed[CLOSE_NO_HELLO], 2);
    assert_int_equal(rig->metrics.connections, 1);
}

static void another_protocol_version_closes(void **state)
{
    struct rig *rig = *state;
    rig_frame(rig, &rig->session[0],
              &(struct codec_client_frame){.seq = 1, .kind = CODEC_HELLO, .u.hello = {.protocol_version = 2, .client_name = ""}});
    rig_expect_error(rig, &rig->session[0], 1, CODEC_UNSUPPORTED);
    assert_int_equal(rig->session[0].reason, CLOSE_VERSION);
}

static void bytes_that_are_no_frame_close_and_the_first_reason_counts(void **state)
{
    struct rig *rig = *state;
    rig_hello(rig, &rig->session[0]);
    dispatch_frame(&rig->dispatch, &rig->session[0], "\xff\xff", 2);
    rig_expect_error(rig, &rig->session[0], 0, CODEC_MALFORMED);
    session_close(&rig->sessions, &rig->session[0], CLOSE_EOF);
    assert_int_equal(rig->session[0].reason, CLOSE_MALFORMED);
    assert_int_equal(rig->metrics.closed[CLOSE_EOF], 0);
    session_send_error(&rig->sessions, &rig->session[0], 1, CODEC_DRAINING, "too late");
    assert_true(rig_silent(rig, &rig->session[0]));
    rig_close(rig, &rig->session[0]);
}

static void the_table_knows_every_frame_and_an_unset_one_is_unsupported(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    dispatch_frame(&rig->dispatch, s, "", 0);
    rig_expect_error(rig, s, 0, CODEC_UNSUPPORTED);
    dispatch_frame(&rig->dispatch, s, "\x08\x07", 2); /* seq 7 and nothing else */
    rig_expect_error(rig, s, 7, CODEC_UNSUPPORTED);
    rig_frame(rig, s, &(struct codec_client_frame){.seq = 8, .kind = CODEC_HELLO, .u.hello = {.protocol_version = 1, .client_name = ""}});
    rig_expect_error(rig, s, 8, CODEC_INVALID_ARGUMENT);
    rig_frame(rig, s, &(struct codec_client_frame){.seq = 9, .kind = CODEC_QUERY});
    rig_expect_error(rig, s, 9, CODEC_UNSUPPORTED);
    rig_frame(rig, s, &(struct codec_client_frame){.seq = 10, .kind = CODEC_RESYNC, .u.resync = {.space = 5}});
    rig_expect_error(rig, s, 10, CODEC_UNKNOWN_SPACE);
    rig_frame(rig, s, &(struct codec_client_frame){.seq = 11, .kind = CODEC_RESYNC});
    rig_expect_error(rig, s, 11, CODEC_INVALID_ARGUMENT);
    assert_int_equal(s->state, SESSION_READY);
    rig_frame(rig, s, &(struct codec_client_frame){.seq = 12, .kind = CODEC_BYE});
    rig_expect_ack(rig, s, 12, 0);
    assert_int_equal(s->reason, CLOSE_BYE);
}

static void seqs_must_increase_and_seq_0_is_silent(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    ping(rig, s, 0);
    assert_true(rig_silent(rig, s));
    ping(rig, s, 3);
    assert_int_equal(rig_take(rig, s)->reply_to, 3);
    BATCH(rig, s, 3, CREATE(0));
    rig_expect_error(rig, s, 3, CODEC_INVALID_ARGUMENT);
    assert_null(aoi_space_find(rig->world, 1));
    BATCH(rig, s, 2, CREATE(0));
    const struct codec_server_frame *error = rig_take(rig, s);
    assert_int_equal(error->u.error.code, CODEC_INVALID_ARGUMENT);
    assert_string_equal(error->u.error.text, "seq must increase from frame to frame: this one has 2, and there was one with 3");
    BATCH(rig, s, 0, CREATE(0));
    assert_true(rig_silent(rig, s));
    assert_non_null(aoi_space_find(rig->world, 1));
    BATCH(rig, s, 0, CREATE(0));
    const struct codec_server_frame *ack = rig_take(rig, s);
    assert_int_equal(ack->kind, CODEC_ACK);
    assert_int_equal(ack->reply_to, 0);
    assert_int_equal(ack->u.ack.errors[0].code, CODEC_DUPLICATE_SPACE);
    BATCH(rig, s, 4, FLUSH(0));
    rig_expect_ack(rig, s, 4, 1);
}

static void a_space_may_come_and_go_inside_a_batch(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    BATCH(rig, s, 1, ADD(5, 0, 0), CREATE(0), ADD(5, 0, 0), ADD(5, 1, 1), DESTROY, ADD(6, 0, 0), DESTROY, {.kind = CODEC_COMMAND_NONE});
    const struct codec_server_frame *ack = rig_take(rig, s);
    static const struct {
        uint32_t index;
        enum codec_code code;
        uint64_t id;
    } want[] = {{0, CODEC_UNKNOWN_SPACE, 1},
                {3, CODEC_DUPLICATE_ENTITY, 5},
                {5, CODEC_UNKNOWN_SPACE, 1},
                {6, CODEC_UNKNOWN_SPACE, 1},
                {7, CODEC_UNSUPPORTED, 0}};
    assert_int_equal(ack->u.ack.applied, 3);
    assert_int_equal(ack->u.ack.errors_total, COUNT(want));
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_int_equal(ack->u.ack.errors[i].index, want[i].index);
        assert_int_equal(ack->u.ack.errors[i].code, want[i].code);
        assert_int_equal(ack->u.ack.errors[i].id, want[i].id);
    }
    struct codec_command create = CREATE(0);
    const struct codec_client_frame nowhere = {.seq = 2, .kind = CODEC_BATCH, .u.batch = {.space = 0, .command_n = 1, .commands = &create}};
    rig_frame(rig, s, &nowhere);
    assert_int_equal(rig_take(rig, s)->u.ack.errors[0].code, CODEC_INVALID_ARGUMENT);
}

static void spaces_may_come_and_go_again_and_again(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    struct codec_command commands[] = {CREATE(0), ADD(5, 0, 0), OPEN_PLAYER(9), DESTROY, CREATE(0), ADD(6, 0, 0), OPEN_PLAYER(9), DESTROY};
    for (uint64_t i = 0; i < 50; i++) { /* behind the one of the configuration */
        const struct codec_client_frame frame = {.kind = CODEC_BATCH,
                                                 .u.batch = {.space = 78 + i, .command_n = COUNT(commands), .commands = commands}};
        rig_frame(rig, s, &frame);
    }
    for (; !rig_silent(rig, s); assert_true(rig_take_delta(rig, s, 9).closed)) continue;
    assert_null(aoi_space_find(rig->world, 78));
    assert_non_null(aoi_space_find(rig->world, 77));
}

static void columns_must_have_equal_lengths(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    const uint64_t id[] = {5, 6};
    const float at[] = {1, 2, 3};
    const uint32_t extra[] = {1, 2, 3};
    static const struct {
        size_t x, y, z, extra;
        bool fine, fine_in_3d;
    } cases[] = {{2, 2, 0, 0, true, false},  {2, 2, 2, 2, true, true},   {1, 2, 0, 0, false, false},
                 {2, 3, 0, 0, false, false}, {2, 2, 1, 0, false, false}, {2, 2, 3, 0, false, false},
                 {2, 2, 2, 1, false, false}, {2, 2, 0, 2, true, false},  {0, 0, 0, 0, false, false}};
    rig_hello(rig, s);
    for (uint32_t dimensions = 2; dimensions <= 3; dimensions++) {
        BATCH(rig, s, 0, {.kind = CODEC_CREATE_SPACE, .u.create_space = &(struct codec_create_space){.settings.dimensions = dimensions}},
              ADD(5, 0, 0), ADD(6, 0, 0));
        for (size_t i = 0; i < COUNT(cases); i++) {
            BATCH(rig, s, s->last_seq + 1,
                  {.kind = CODEC_MOVE_ENTITIES,
                   .u.move_entities = {.id_n = 2,
                                       .id = id,
                                       .x_n = cases[i].x,
                                       .y_n = cases[i].y,
                                       .z_n = cases[i].z,
                                       .extra_n = cases[i].extra,
                                       .x = at,
                                       .y = at,
                                       .z = at,
                                       .extra = extra}});
            const struct codec_server_frame *ack = rig_take(rig, s);
            bool fine = dimensions == 2 ? cases[i].fine : cases[i].fine_in_3d;
            assert_int_equal(ack->u.ack.applied, fine ? 2 : 0);
            assert_int_equal(ack->u.ack.errors_total, fine ? 0 : 1);
            if (!fine) assert_int_equal(ack->u.ack.errors[0].code, CODEC_INVALID_ARGUMENT);
        }
        BATCH(rig, s, 0, DESTROY);
    }
    assert_true(rig_silent(rig, s));
}

static void each_id_of_a_column_has_its_own_error_and_the_first_1000_are_told(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    uint64_t id[1500];
    float at[1500] = {0};
    for (size_t i = 0; i < COUNT(id); i++) id[i] = i + 1;
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE(0), ADD(3, 0, 0), ADD(1500, 0, 0));
    BATCH(rig, s, 1, {.kind = CODEC_MOVE_ENTITIES, .u.move_entities = {.id_n = 1500, .id = id, .x_n = 1500, .y_n = 1500, .x = at, .y = at}});
    const struct codec_server_frame *ack = rig_take(rig, s);
    assert_int_equal(ack->u.ack.applied, 2);
    assert_int_equal(ack->u.ack.errors_total, 1498);
    assert_int_equal(ack->u.ack.error_n, 1000);
    assert_int_equal(ack->u.ack.errors[2].id, 4);
    assert_int_equal(ack->u.ack.errors[2].code, CODEC_UNKNOWN_ENTITY);
    BATCH(rig, s, 2, {.kind = CODEC_REMOVE_ENTITIES, .u.remove_entities = {.id_n = 1500, .id = id}});
    ack = rig_take(rig, s);
    assert_int_equal(ack->u.ack.applied, 2);
    assert_int_equal(ack->u.ack.errors_total, 1498);
    assert_int_equal(metrics_errors(&rig->metrics), 2 * 1498);
}

static void an_ack_fits_in_a_frame_however_small(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    uint64_t id[1500];
    for (size_t i = 0; i < COUNT(id); i++) id[i] = UINT64_MAX - i;
    rig->config.max_frame_bytes = 8192;
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE(0));
    BATCH(rig, s, 1, {.kind = CODEC_REMOVE_ENTITIES, .u.remove_entities = {.id_n = 1500, .id = id}});
    size_t bytes = buf_len(&s->out.queue);
    assert_true(bytes <= 8192);
    const struct codec_server_frame *ack = rig_take(rig, s);
    assert_int_equal(ack->u.ack.errors_total, 1500);
    assert_true(ack->u.ack.error_n > 50);
}

static void an_ack_goes_before_closed_deltas_and_after_those_of_a_flush(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1];
    rig_hello(rig, a);
    rig_hello(rig, b);
    BATCH(rig, a, 1, CREATE(0), ADD(1, 0, 0), ADD(2, 1, 1), SUBSCRIBE(9, 1), FLUSH(6));
    struct aoi_delta delta = rig_take_delta(rig, a, 9);
    assert_int_equal(delta.tag, 6);
    assert_int_equal(delta.enters.n, 1);
    rig_expect_ack(rig, a, 1, 5);

    BATCH(rig, a, 2, CLOSE_PLAYER(9));
    rig_expect_ack(rig, a, 2, 1);
    delta = rig_take_delta(rig, a, 9);
    assert_true(delta.closed);
    assert_int_equal(delta.seq, 2);

    BATCH(rig, a, 3, OPEN_PLAYER(9), CLOSE_PLAYER(9), SUBSCRIBE(9, 1), FLUSH(7));
    delta = rig_take_delta(rig, a, 9);
    assert_true(delta.closed);
    assert_int_equal(delta.seq, 1);
    delta = rig_take_delta(rig, a, 9);
    assert_false(delta.closed);
    assert_int_equal(delta.seq, 1);
    rig_expect_ack(rig, a, 3, 4);

    BATCH(rig, b, 1, SUBSCRIBE(10, 2));
    rig_expect_ack(rig, b, 1, 1);
    BATCH(rig, b, 2, DESTROY); /* everybody is admin */
    rig_expect_ack(rig, b, 2, 1);
    assert_true(rig_take_delta(rig, b, 10).closed);
    assert_true(rig_take_delta(rig, a, 9).closed);
    assert_true(rig_silent(rig, a) && rig_silent(rig, b));
}

static void a_session_that_ends_takes_along_what_it_owns(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1], *c = &rig->session[2];
    rig_hello(rig, a);
    rig_hello(rig, b);
    aoi_owner owner = a->owner;
    BATCH(rig, a, 0, CREATE(0), ADD(1, 0, 0));
    BATCH(rig, b, 0, SUBSCRIBE(4, 1));
    rig_frame(rig, a, &(struct codec_client_frame){.kind = CODEC_BYE});
    assert_true(rig_silent(rig, a));
    rig_close(rig, a);
    assert_true(rig_take_delta(rig, b, 4).closed);
    assert_null(aoi_space_find(rig->world, 1));
    assert_null(sessions_of_owner(&rig->sessions, owner));
    rig_hello(rig, c); /* owner numbers are used again, session ids are not */
    assert_int_equal(c->owner, owner);
    assert_int_equal(c->id, 3);
}

static void skipped_players_leave_work_and_the_hard_limit_closes(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE(0), ADD(1, 0, 0), ADD(2, 1, 1), SUBSCRIBE(9, 1));
    buf_reserve(&s->out.queue, 96000); /* nearly soft-full */
    memset(s->out.queue.at + s->out.queue.end, 0, 96000);
    s->out.queue.end += 96000;
    BATCH(rig, s, 1, FLUSH(0));
    buf_consume(&s->out.queue, 96000);
    const struct codec_server_frame *ack = rig_take(rig, s);
    assert_int_equal(ack->kind, CODEC_ACK);
    assert_true(ack->u.ack.pending);
    BATCH(rig, s, 2, FLUSH(0));
    assert_int_equal(rig_take_delta(rig, s, 9).enters.n, 1);
    rig_expect_ack(rig, s, 2, 1);

    buf_reserve(&s->out.queue, 200000);
    memset(s->out.queue.at + s->out.queue.end, 0, 200000);
    s->out.queue.end += 200000;
    ping(rig, s, 3);
    assert_int_equal(s->state, SESSION_BROKEN);
    assert_int_equal(s->reason, CLOSE_OUT_HARD);
    BATCH(rig, s, 4, FLUSH(0)); /* what had come is applied; its players are passed over */
    session_finish(&rig->sessions, s);
    rig_close(rig, s);
}

static void draining_refuses_commands_and_answers_the_rest(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    rig->dispatch.draining = true;
    BATCH(rig, s, 1, CREATE(0));
    rig_expect_error(rig, s, 1, CODEC_DRAINING);
    BATCH(rig, s, 0, CREATE(0));
    rig_expect_error(rig, s, 0, CODEC_DRAINING);
    rig_frame(rig, s, &(struct codec_client_frame){.seq = 2, .kind = CODEC_RESYNC, .u.resync = {.space = 77}});
    rig_expect_error(rig, s, 2, CODEC_DRAINING);
    ping(rig, s, 3);
    assert_int_equal(rig_take(rig, s)->kind, CODEC_PONG);
    rig_frame(rig, s, &(struct codec_client_frame){.seq = 4, .kind = CODEC_QUERY, .u.query = {.kind = CODEC_QUERY_STATS}});
    assert_int_equal(rig_take(rig, s)->u.result.stats.spaces, 1);
}

static const struct {
    struct codec_query query;
    enum codec_code code;
    const char *text; /* NULL: whatever */
} queries_refused[] = {
    {{.kind = CODEC_QUERY_AABB, .has_box = true}, CODEC_INVALID_ARGUMENT, "the space id is 0; ids begin at 1"},
    {{.space = 2, .kind = CODEC_QUERY_AABB, .has_box = true}, CODEC_UNKNOWN_SPACE, NULL},
    {{.space = 1, .kind = CODEC_QUERY_AABB}, CODEC_INVALID_ARGUMENT, "the box is not set"},
    {{.space = 1, .kind = CODEC_QUERY_COUNT}, CODEC_INVALID_ARGUMENT, "the box is not set"},
    {{.space = 1, .kind = CODEC_QUERY_COUNT, .has_box = true, .min = {1}}, CODEC_INVALID_ARGUMENT, "min_x is 1, above max_x, which is 0"},
    {{.space = 1, .kind = CODEC_QUERY_RADIUS, .radius = -1}, CODEC_INVALID_ARGUMENT, "radius is -1; it must not be negative"},
    {{.space = 1, .kind = CODEC_QUERY_RADIUS, .center = {0, NAN}}, CODEC_INVALID_ARGUMENT, "y is NaN, not a finite number"},
    {{.space = 1, .kind = CODEC_QUERY_NEAREST}, CODEC_INVALID_ARGUMENT, "k is 0; it must be 1 or more"},
    {{.space = 1, .kind = CODEC_QUERY_NEAREST, .k = 1, .radius = -1}, CODEC_INVALID_ARGUMENT, "max_distance is -1; it must not be negative"},
    {{.space = 1, .kind = CODEC_QUERY_NEAREST, .k = 10001}, CODEC_LIMIT_EXCEEDED, "k is 10001, over query_page = 10000"},
    {{.space = 1, .kind = CODEC_QUERY_DENSITY, .columns = 1, .rows = 1}, CODEC_INVALID_ARGUMENT, "the box is not set"},
    {{.space = 1, .kind = CODEC_QUERY_DENSITY, .has_box = true, .max = {NAN}, .columns = 1, .rows = 1},
     CODEC_INVALID_ARGUMENT,
     "max_x is NaN, not a finite number"},
    {{.space = 1, .kind = CODEC_QUERY_DENSITY, .has_box = true, .columns = 257, .rows = 1},
     CODEC_INVALID_ARGUMENT,
     "the raster has 257 columns and 1 rows; it must have 1 to 256 of each"},
    {{.space = 1, .kind = CODEC_QUERY_OBSERVERS}, CODEC_INVALID_ARGUMENT, "the entity id is 0; ids begin at 1"},
    {{.space = 1, .kind = CODEC_QUERY_WHY, .id = 1}, CODEC_INVALID_ARGUMENT, "the player id is 0; ids begin at 1"},
    {{.space = 1, .kind = CODEC_QUERY_GET_ENTITY, .id = 8}, CODEC_UNKNOWN_ENTITY, NULL},
    {{.space = 1, .kind = CODEC_QUERY_GET_ENTITY}, CODEC_INVALID_ARGUMENT, "the entity id is 0; ids begin at 1"},
    {{.space = 1, .kind = CODEC_QUERY_VIEW, .id = 8}, CODEC_UNKNOWN_PLAYER, NULL},
    {{.space = 2, .kind = CODEC_QUERY_STATS}, CODEC_UNKNOWN_SPACE, NULL},
};

static void queries_answer_or_say_why_not(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE(0), ADD(1, 0, 0), ADD(2, 1, 1), ADD(3, 50, 50), SUBSCRIBE(9, 1), FLUSH(0));
    assert_int_equal(rig_take_delta(rig, s, 9).enters.n, 1);

    const struct codec_server_frame *f = rig_ask(
        rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_AABB, .has_box = true, .max = {60, 60}, .limit = 2});
    assert_int_equal(f->u.result.kind, CODEC_RESULT_ENTITIES);
    assert_int_equal(f->u.result.rows.n, 2);
    assert_int_equal(f->u.result.rows.next, 2);
    f = rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_AABB, .has_box = true, .max = {60, 60}, .cursor = 2});
    assert_int_equal(f->u.result.rows.n, 1);
    assert_int_equal(f->u.result.rows.next, 0);
    f = rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_RADIUS, .radius = 2});
    assert_int_equal(f->u.result.rows.n, 2);
    f = rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_COUNT, .has_box = true, .max = {60, 60}});
    assert_int_equal(f->u.result.entities, 3);
    assert_int_equal(f->u.result.players, 1);
    f = rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_GET_ENTITY, .id = 3});
    assert_int_equal(f->u.result.owner_session, s->id);
    assert_true(f->u.result.entity.pos[0] == 50.0f);
    f = rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_VIEW, .id = 9});
    assert_int_equal(f->u.result.rows.n, 1);
    assert_int_equal(f->u.result.seq, 1);
    f = rig_ask(rig, s, (struct codec_query){.kind = CODEC_QUERY_LIST_SPACES, .limit = 1});
    assert_int_equal(f->u.result.space_n, 1);
    assert_int_equal(f->u.result.spaces[0].owner_session, s->id);
    f = rig_ask(rig, s, (struct codec_query){.kind = CODEC_QUERY_LIST_SPACES, .cursor = f->u.result.next_cursor});
    assert_int_equal(f->u.result.spaces[0].id, 77);
    assert_int_equal(f->u.result.spaces[0].owner_session, 0);
    assert_int_equal(f->u.result.next_cursor, 0);

    for (size_t i = 0; i < COUNT(queries_refused); i++) {
        f = rig_ask(rig, s, queries_refused[i].query);
        assert_int_equal(f->kind, CODEC_ERROR);
        assert_int_equal(f->reply_to, s->last_seq);
        assert_string_equal(codec_code_name((int)f->u.error.code), codec_code_name(queries_refused[i].code));
        if (queries_refused[i].text != NULL) assert_string_equal(f->u.error.text, queries_refused[i].text);
    }
}

/* Runs one command in a space with bounds, which must be refused with this text in its error. */
static void expect_text(struct rig *rig, struct session *s, struct codec_command command, enum codec_code code, const char *text)
{
    rig_batch(rig, s, s->last_seq + 1, 1, &command);
    const struct codec_server_frame *ack = rig_take(rig, s);
    assert_int_equal(ack->kind, CODEC_ACK);
    assert_int_equal(ack->u.ack.errors_total, 1);
    assert_string_equal(codec_code_name((int)ack->u.ack.errors[0].code), codec_code_name(code));
    assert_string_equal(ack->u.ack.errors[0].text, text);
}

#define REFUSED(code, text, ...) expect_text(rig, s, ((struct codec_command[]){__VA_ARGS__})[0], CODEC_##code, text)

static void a_refusal_names_the_argument_that_is_wrong(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    static const uint64_t ids[] = {5, 0};
    static const float at[] = {1, INFINITY};
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE_WITH(.dimensions = 3, .bounded = true, .min = {-100, -100, -100}, .max = {100, 100, 100}), ADD(5, 0, 0), SUBSCRIBE(9, 5));
    REFUSED(INVALID_ARGUMENT, "the entity id is 0; ids begin at 1", ADD(0, 0, 0));
    REFUSED(INVALID_ARGUMENT, "y is NaN, not a finite number", ADD(6, 0, NAN));
    REFUSED(OUT_OF_BOUNDS, "x is 101, outside the bounds of the space: -100 to 100", ADD(6, 101, 0));
    REFUSED(OUT_OF_BOUNDS, "y is -20000000, beyond +-16777216", ADD(6, 0, -2e7f));
    REFUSED(INVALID_ARGUMENT, "radius is -1; it must not be negative", {.kind = CODEC_SET_RADIUS, .u.set_radius = {.id = 5, .radius = -1}});
    REFUSED(INVALID_ARGUMENT, "radius is 513, over max_radius = 512", {.kind = CODEC_SET_RADIUS, .u.set_radius = {.id = 5, .radius = 513}});
    REFUSED(INVALID_ARGUMENT, "the entity id is 0; ids begin at 1", {.kind = CODEC_REMOVE_ENTITIES, .u.remove_entities = {.id_n = 1, .id = ids + 1}});
    REFUSED(INVALID_ARGUMENT, "z is infinite, not a finite number",
            {.kind = CODEC_MOVE_ENTITIES, .u.move_entities = {.id_n = 1, .x_n = 1, .y_n = 1, .z_n = 1, .id = ids, .x = at, .y = at, .z = at + 1}});
    REFUSED(INVALID_ARGUMENT, "columns of different lengths: 1 ids, 1 x, 1 y, 0 z, 0 extra; in a 3D space z is needed",
            {.kind = CODEC_MOVE_ENTITIES, .u.move_entities = {.id_n = 1, .x_n = 1, .y_n = 1, .id = ids, .x = at, .y = at}});
    REFUSED(INVALID_ARGUMENT, "the player id is 0; ids begin at 1", OPEN_PLAYER(0));
    REFUSED(INVALID_ARGUMENT, "min_y is 3, above max_y, which is 2",
            {.kind = CODEC_SET_VIEWPORT, .u.set_viewport = {.player = 9, .min = {0, 3, 0}, .max = {1, 2, 0}}});
    REFUSED(INVALID_ARGUMENT, "max_z is infinite, not a finite number",
            {.kind = CODEC_SET_VIEWPORT, .u.set_viewport = {.player = 9, .max = {1, 2, INFINITY}}});
    REFUSED(INVALID_ARGUMENT, "leave_margin is -1; it must not be negative", OPEN_WITH(9, .leave_margin = -1));
    REFUSED(INVALID_ARGUMENT, "leave_margin is NaN, not a finite number", SET_SPACE(.has_leave_margin = true, .leave_margin = NAN));
    REFUSED(INVALID_ARGUMENT, "flush_ms must be at most 86400000, which is a day", SET_SPACE(.has_flush_ms = true, .flush_ms = UINT32_MAX));
    REFUSED(INVALID_ARGUMENT, "appeal is -2; it must not be negative", ADD_WITH(AOI_ADD_NEW, .id = 6, .appeal = -2));
    REFUSED(INVALID_ARGUMENT, "appeal is infinite, not a finite number", {.kind = CODEC_SET_APPEAL, .u.set_appeal = {.id = 5, .appeal = INFINITY}});
    REFUSED(INVALID_ARGUMENT, "x is NaN, not a finite number", PUBLISH_AT(NAN, 0, "boo"));
    REFUSED(INVALID_ARGUMENT, "min_x is 2, above max_x, which is 1",
            {.kind = CODEC_PUBLISH, .u.publish = {.kind = CODEC_PUBLISH_BOX, .min = {2}, .max = {1}, .message = "boo", .message_len = 3}});
    REFUSED(INVALID_ARGUMENT, "the entity id is 0; ids begin at 1", PUBLISH_FROM(0, "boo"));
    REFUSED(INVALID_ARGUMENT, "the entity id is 0; ids begin at 1", OVERRIDE(9, 0, AOI_OVERRIDE_HIDE));
    REFUSED(INVALID_ARGUMENT, "an id is 0; ids begin at 1", RELEASE_ENTITY(0, 0));
    BATCH(rig, s, 0, ADD(7, 1, 1));
    REFUSED(UNKNOWN_ENTITY, "the player is not subscribed to this entity", {.kind = CODEC_UNSUBSCRIBE, .u.unsubscribe = {.player = 9, .entity = 7}});
    REFUSED(UNKNOWN_ENTITY, "there is no such entity", {.kind = CODEC_UNSUBSCRIBE, .u.unsubscribe = {.player = 9, .entity = 8}});
}

static void a_refusal_names_the_limit_that_is_reached(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    static char payload[101];
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE(0));
    for (uint64_t id = 1; id <= 1000; id++) BATCH(rig, s, 0, ADD(id, 0, 0), OPEN_PLAYER(id));
    for (uint64_t id = 1; id <= 10; id++) BATCH(rig, s, 0, SUBSCRIBE(1, id));
    REFUSED(LIMIT_EXCEEDED, "max_view is 99999; it is 65536 at most, in any configuration (0: no limit)", OPEN_WITH(1, .max_view = 99999));
    REFUSED(LIMIT_EXCEEDED, "the space has max_entities = 1000 entities already", ADD(1001, 0, 0));
    REFUSED(LIMIT_EXCEEDED, "the payload has 101 bytes, over max_payload = 100",
            {.kind = CODEC_SET_PAYLOAD, .u.set_payload = {.id = 1, .payload = payload, .payload_len = sizeof payload}});
    REFUSED(LIMIT_EXCEEDED, "the space has max_players = 1000 players already", OPEN_PLAYER(1001));
    REFUSED(LIMIT_EXCEEDED, "the space has max_players = 1000 players already", SUBSCRIBE(1001, 1));
    REFUSED(LIMIT_EXCEEDED, "the player has max_units = 10 units already", SUBSCRIBE(1, 11));
    for (uint64_t id = 1; id <= 5; id++) BATCH(rig, s, 0, OVERRIDE(1, id, AOI_OVERRIDE_SHOW));
    REFUSED(LIMIT_EXCEEDED, "the player has max_overrides = 5 overrides already", OVERRIDE(1, 6, AOI_OVERRIDE_SHOW));
    REFUSED(LIMIT_EXCEEDED, "the message has 60 bytes, over max_message = 50",
            PUBLISH_FROM(1, "012345678901234567890123456789012345678901234567890123456789"));
    for (int i = 0; i < 20; i++) BATCH(rig, s, 0, PUBLISH_FROM(1, "boo"));
    REFUSED(LIMIT_EXCEEDED, "the space has max_messages_per_flush = 20 messages already; its next flush makes room", PUBLISH_FROM(1, "boo"));
    for (uint64_t id = 100; id < 110; id++) {
        struct codec_command create = CREATE(0);
        const struct codec_client_frame frame = {.seq = s->last_seq + 1, .kind = CODEC_BATCH, .u.batch = {id, 1, &create}};
        rig_frame(rig, s, &frame);
        const struct codec_server_frame *ack = rig_take(rig, s);
        assert_int_equal(ack->u.ack.errors_total, id >= 108);
        if (id >= 108) assert_string_equal(ack->u.ack.errors[0].text, "there are max_spaces = 10 spaces already");
    }
}

#define OTHER(...)                                                                 \
    {                                                                              \
        .kind = CODEC_CREATE_SPACE, .u.create_space = &(struct codec_create_space) \
        {                                                                          \
            .if_absent = true, .settings = { __VA_ARGS__ }                         \
        }                                                                          \
    }

static void a_space_that_is_there_says_in_what_it_differs(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE_WITH(.bounded = true, .max = {9, 9}, .flush_ms = 5));
    REFUSED(DUPLICATE_SPACE, "the space exists already; with if_absent that is no error where its settings are equal", CREATE(5));
    REFUSED(DUPLICATE_SPACE, "the space exists with dimensions 2, not 3", OTHER(.dimensions = 3));
    REFUSED(DUPLICATE_SPACE, "the space exists with index grid, not crosslist", OTHER(.index = AOI_INDEX_CROSSLIST));
    REFUSED(DUPLICATE_SPACE, "the space exists with shape box, not cells", OTHER(.shape = AOI_SHAPE_CELLS));
    REFUSED(DUPLICATE_SPACE, "the space exists with cell_size 100, not 0.5", OTHER(.cell_size = 0.5));
    REFUSED(DUPLICATE_SPACE, "the space exists with cell_range 1, not 2", OTHER(.cell_range = 2));
    REFUSED(DUPLICATE_SPACE, "the space exists with bounds, not without", OTHER(.flush_ms = 5));
    REFUSED(DUPLICATE_SPACE, "the space exists with bounds of y from 0 to 9, not from 0 to 8", OTHER(.bounded = true, .max = {9, 8}));
    REFUSED(DUPLICATE_SPACE, "the space exists without extra", OTHER(.bounded = true, .max = {9, 9}, .extra = true));
    REFUSED(DUPLICATE_SPACE, "the space exists with flush_ms 5, not 6", OTHER(.bounded = true, .max = {9, 9}, .flush_ms = 6));
    REFUSED(DUPLICATE_SPACE, "the space exists, but not as a persistent one",
            OTHER(.bounded = true, .max = {9, 9}, .flush_ms = 5, .persistent = true));
    struct codec_command destroy = DESTROY;
    const struct codec_client_frame frame = {.seq = s->last_seq + 1, .kind = CODEC_BATCH, .u.batch = {77, 1, &destroy}};
    rig_frame(rig, s, &frame);
    const struct codec_server_frame *ack = rig_take(rig, s);
    assert_int_equal(ack->u.ack.errors[0].code, CODEC_NOT_OWNER);
    assert_string_equal(ack->u.ack.errors[0].text, "a space of the configuration cannot be destroyed");
}

static void the_numbers_of_one_space_are_its_own(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE(0), ADD(1, 0, 0));
    const struct codec_stats *stats = &rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_STATS})->u.result.stats;
    assert_int_equal(stats->spaces, 1);
    assert_int_equal(stats->core.entities, 1);
    assert_int_equal(stats->connections, 0);
    assert_int_equal(stats->frames_in, 0);
    stats = &rig_ask(rig, s, (struct codec_query){.kind = CODEC_QUERY_STATS})->u.result.stats;
    assert_int_equal(stats->spaces, 2);
    assert_int_equal(stats->connections, 3);
    assert_true(stats->frames_in > 0);
}

static void a_first_frame_whose_length_is_no_varint_is_told_so(void **state)
{
    struct rig *rig = *state;
    dispatch_frame(&rig->dispatch, &rig->session[0], "", 0);
    const struct codec_server_frame *error = rig_take(rig, &rig->session[0]);
    assert_int_equal(error->u.error.code, CODEC_UNAUTHENTICATED);
    assert_non_null(strstr(error->u.error.text, "written as a varint"));
    dispatch_frame(&rig->dispatch, &rig->session[1], "\0\0\0\x12", 4);
    error = rig_take(rig, &rig->session[1]);
    assert_int_equal(error->u.error.code, CODEC_MALFORMED);
    assert_non_null(strstr(error->u.error.text, "written as a varint"));
}

static void the_number_of_an_owner_whose_things_live_on_is_not_given_to_another(void **state)
{
    struct rig *rig = *state;
    rig_hello(rig, &rig->session[0]);
    rig_hello(rig, &rig->session[1]);
    aoi_owner kept = rig->session[0].owner, free_again = rig->session[1].owner;
    sessions_leave(&rig->sessions, rig->session[0].standing, 0);
    sessions_end(&rig->sessions, rig->session[1].standing);
    rig_hello(rig, &rig->session[2]);
    assert_int_equal(rig->session[2].owner, free_again);
    assert_int_not_equal(rig->session[2].owner, kept);
    assert_null(sessions_of_owner(&rig->sessions, kept)->session);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_first_frame_that_is_no_hello_closes),
        TEST(another_protocol_version_closes),
        TEST(bytes_that_are_no_frame_close_and_the_first_reason_counts),
        TEST(the_table_knows_every_frame_and_an_unset_one_is_unsupported),
        TEST(seqs_must_increase_and_seq_0_is_silent),
        TEST(a_space_may_come_and_go_inside_a_batch),
        TEST(spaces_may_come_and_go_again_and_again),
        TEST(columns_must_have_equal_lengths),
        TEST(each_id_of_a_column_has_its_own_error_and_the_first_1000_are_told),
        TEST(an_ack_fits_in_a_frame_however_small),
        TEST(an_ack_goes_before_closed_deltas_and_after_those_of_a_flush),
        TEST(a_session_that_ends_takes_along_what_it_owns),
        TEST(skipped_players_leave_work_and_the_hard_limit_closes),
        TEST(draining_refuses_commands_and_answers_the_rest),
        TEST(queries_answer_or_say_why_not),
        TEST(a_refusal_names_the_argument_that_is_wrong),
        TEST(a_refusal_names_the_limit_that_is_reached),
        TEST(a_space_that_is_there_says_in_what_it_differs),
        TEST(the_numbers_of_one_space_are_its_own),
        TEST(a_first_frame_whose_length_is_no_varint_is_told_so),
        TEST(the_number_of_an_owner_whose_things_live_on_is_not_given_to_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
