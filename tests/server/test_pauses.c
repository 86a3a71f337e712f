/* test_pauses.c: a batch that takes too long pauses, and until it ends nobody sees a part of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "commands.h"
#include "rig.h"

#define N 100

/* Every look at the clock says that it is time for others. */
static void hurry(struct rig *rig)
{
    rig->dispatch.pause_ns = 1;
}

static struct codec_client_frame batch_of_adds(uint64_t space, uint64_t seq, struct codec_command commands[N], uint64_t first)
{
    for (uint64_t i = 0; i < N; i++)
        commands[i] = (struct codec_command){.kind = CODEC_ADD_ENTITY,
                                             .u.add_entity = {.mode = AOI_ADD_NEW, .entity = {.id = first + i, .radius = 1}}};
    return (struct codec_client_frame){.seq = seq, .kind = CODEC_BATCH, .u.batch = {.space = space, .command_n = N, .commands = commands}};
}

/* A batch with seq 5, which pauses: its frame, to be brought again. */
static struct codec_client_frame paused_batch(struct rig *rig, struct session *session, uint64_t space, struct codec_command commands[N])
{
    const struct codec_client_frame frame = batch_of_adds(space, 5, commands, 2);
    hurry(rig);
    assert_true(rig_try_frame(rig, session, &frame) == DISPATCH_AGAIN);
    return frame;
}

/* Brings the frame again until it is done; how often. */
static int bring(struct rig *rig, struct session *session, const struct codec_client_frame *frame)
{
    for (int n = 1; n < 10000; n++)
        if (rig_try_frame(rig, session, frame) == 0) return n;
    fail();
    return 0;
}

static void start(struct rig *rig, struct session **a, struct session **b)
{
    *a = &rig->session[0];
    *b = &rig->session[1];
    rig_hello(rig, *a);
    rig_hello(rig, *b);
    BATCH(rig, *a, 0, CREATE(0), ADD(1, 0, 0));
}

static void a_long_batch_pauses_and_is_acknowledged_once_it_is_done(void **state)
{
    struct rig *rig = *state;
    struct session *a, *b;
    struct codec_command commands[N];
    start(rig, &a, &b);
    const struct codec_client_frame frame = paused_batch(rig, a, 1, commands);
    assert_true(rig_silent(rig, a));
    assert_non_null(a->batch);
    assert_int_equal(a->standing->last_seq, 0);
    assert_true(bring(rig, a, &frame) > 3);
    rig_expect_ack(rig, a, 5, N);
    assert_int_equal(a->standing->last_seq, 5);
    assert_null(a->batch);
    rig_frame(rig, a, &(struct codec_client_frame){.seq = 6, .kind = CODEC_PING});
    assert_int_equal(rig_take(rig, a)->kind, CODEC_PONG);
}

static void until_it_ends_frames_about_its_space_wait_and_others_do_not(void **state)
{
    struct rig *rig = *state;
    struct session *a, *b;
    struct codec_command commands[N], others[N];
    start(rig, &a, &b);
    const struct codec_client_frame frame = paused_batch(rig, a, 1, commands);
    const struct codec_client_frame query = {.seq = 1, .kind = CODEC_QUERY, .u.query = {.space = 1, .kind = CODEC_QUERY_STATS}};
    assert_int_equal(rig_try_frame(rig, b, &query), 1);
    assert_true(dispatch_holds(&rig->dispatch, 1) && !dispatch_holds(&rig->dispatch, 77));
    rig_frame(rig, b, &(struct codec_client_frame){.seq = 1, .kind = CODEC_PING});
    assert_int_equal(rig_take(rig, b)->kind, CODEC_PONG);
    const struct codec_client_frame elsewhere = batch_of_adds(77, 2, others, 1);
    assert_true(rig_try_frame(rig, b, &elsewhere) == DISPATCH_AGAIN); /* two are open */
    bring(rig, b, &elsewhere);
    rig_expect_ack(rig, b, 2, N);
    bring(rig, a, &frame);
    rig_expect_ack(rig, a, 5, N);
    struct codec_client_frame again = query;
    again.seq = 3;
    rig_frame(rig, b, &again);
    assert_int_equal(rig_take(rig, b)->u.result.stats.core.entities, N + 1);
}

static void refusals_and_columns_are_counted_across_its_pauses(void **state)
{
    struct rig *rig = *state;
    struct session *a, *b;
    enum { IDS = 10000 };
    static uint64_t ids[IDS];
    static float zeros[IDS];
    start(rig, &a, &b);
    hurry(rig);
    for (uint64_t i = 0; i < IDS; i++) ids[i] = i % 5 == 0 ? 1 : 1000 + i;
    struct codec_command commands[] = {
        {.kind = CODEC_MOVE_ENTITIES, .u.move_entities = {.id_n = IDS, .x_n = IDS, .y_n = IDS, .id = ids, .x = zeros, .y = zeros}},
        {.kind = CODEC_REMOVE_ENTITIES, .u.remove_entities = {.id_n = IDS, .id = ids}}};
    const struct codec_client_frame frame = {.seq = 5, .kind = CODEC_BATCH, .u.batch = {.space = 1, .command_n = 2, .commands = commands}};
    assert_true(bring(rig, a, &frame) > 5);
    const struct codec_server_frame *ack = rig_take(rig, a);
    assert_int_equal(ack->u.ack.applied, IDS / 5 + 1);
    assert_int_equal(ack->u.ack.errors_total, 2 * (IDS - IDS / 5) + IDS / 5 - 1);
    assert_int_equal(ack->u.ack.error_n, 1000);
    assert_int_equal(ack->u.ack.errors[999].index, 0);
    assert_int_equal(ack->u.ack.errors[999].id, 1000 + 1249);
    assert_string_equal(ack->u.ack.errors[999].text, ack->u.ack.errors[0].text);
}

static void last_deltas_come_behind_its_ack_and_a_flush_in_it_finds_room(void **state)
{
    struct rig *rig = *state;
    struct session *a, *b;
    struct codec_command commands[N + 3];
    start(rig, &a, &b);
    BATCH(rig, a, 0, SUBSCRIBE(7, 1), ADD(900, 1, 1), FLUSH(0));
    rig_take_delta(rig, a, 7);
    struct codec_client_frame frame = batch_of_adds(1, 5, commands + 1, 2);
    commands[0] = (struct codec_command)CLOSE_PLAYER(7);
    frame.u.batch.commands = commands;
    frame.u.batch.command_n = N + 1;
    hurry(rig);
    assert_true(rig_try_frame(rig, a, &frame) == DISPATCH_AGAIN);
    rig->dispatch.pause_ns = 0;
    const struct codec_client_frame elsewhere = {.kind = CODEC_BATCH, .u.batch = {.space = 77}};
    rig_frame(rig, b, &elsewhere); /* at its end what waits is sent */
    assert_true(rig_silent(rig, a));
    bring(rig, a, &frame);
    rig_expect_ack(rig, a, 5, N + 1);
    assert_true(rig_take_delta(rig, a, 7).closed);

    frame = batch_of_adds(1, 6, commands, 300);
    commands[N] = (struct codec_command)SUBSCRIBE(8, 1);
    commands[N + 1] = (struct codec_command)CLOSE_PLAYER(9);
    commands[N + 2] = (struct codec_command)FLUSH(4);
    frame.u.batch.command_n = N + 3;
    hurry(rig);
    assert_true(bring(rig, a, &frame) > 3);
    const struct aoi_delta d = rig_take_delta(rig, a, 8);
    assert_true(d.tag == 4 && d.enters.n > 0);
    assert_int_equal(rig_take(rig, a)->u.ack.applied, N + 2);
}

static void a_commanded_flush_pauses_between_players_and_is_one_flush(void **state)
{
    struct rig *rig = *state;
    struct session *a, *b;
    enum { PLAYERS = 60 };
    start(rig, &a, &b);
    for (uint64_t p = 1; p <= PLAYERS; p++) BATCH(rig, a, 0, SUBSCRIBE(p, 1));
    BATCH(rig, a, 0, ADD(2, 1, 1));
    hurry(rig);
    struct codec_command flush = FLUSH(4);
    const struct codec_client_frame frame = {.seq = 5, .kind = CODEC_BATCH, .u.batch = {.space = 1, .command_n = 1, .commands = &flush}};
    assert_true(rig_try_frame(rig, a, &frame) == DISPATCH_AGAIN);
    const struct codec_client_frame query = {.seq = 1, .kind = CODEC_QUERY, .u.query = {.space = 1, .kind = CODEC_QUERY_STATS}};
    assert_int_equal(rig_try_frame(rig, b, &query), 1);
    assert_true(bring(rig, a, &frame) > 3);
    for (uint64_t p = 1; p <= PLAYERS; p++) {
        const struct aoi_delta delta = rig_take_delta(rig, a, p);
        assert_true(delta.flush == 1 && delta.tag == 4 && delta.enters.n == 1);
    }
    rig_expect_ack(rig, a, 5, 1);
    assert_true(rig_silent(rig, a));

    BATCH(rig, a, 0, MOVE(2, 2, 2));
    hurry(rig);
    struct codec_client_frame again = frame;
    again.seq = 6;
    assert_true(rig_try_frame(rig, a, &again) == DISPATCH_AGAIN);
    dispatch_finish(&rig->dispatch); /* as when somebody's session ends */
    for (uint64_t p = 1; p <= PLAYERS; p++) assert_true(rig_take_delta(rig, a, p).flush == 2);
    rig_expect_ack(rig, a, 6, 1);
    assert_int_equal(rig_try_frame(rig, a, &again), 0); /* its connection still had it */
}

static void a_timed_flush_waits_for_its_end(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0];
    struct codec_command commands[N];
    rig_hello(rig, a);
    const struct codec_client_frame frame = paused_batch(rig, a, 77, commands); /* flush_ms is 10 there */
    struct aoi_space *space = aoi_space_find(rig->world, 77);
    struct aoi_stats stats = {0};
    for (uint64_t end_ns = uv_hrtime() + 50 * 1000000; uv_hrtime() < end_ns;) uv_run(&rig->loop, UV_RUN_NOWAIT);
    aoi_space_stats(space, &stats);
    assert_int_equal(stats.flushes, 0);
    bring(rig, a, &frame);
    rig_expect_ack(rig, a, 5, N);
    for (int i = 0; i < 100000 && rig->timed_flushes == 0; i++) uv_run(&rig->loop, UV_RUN_NOWAIT); /* it was due long ago */
    aoi_space_stats(space, &stats);
    assert_int_equal(stats.flushes, 1);
}

static void a_timed_flush_that_waits_does_not_come_where_only_flush_flushes_now(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0];
    struct codec_command commands[N];
    rig_hello(rig, a);
    const struct codec_client_frame frame = paused_batch(rig, a, 77, commands);
    struct aoi_space *space = aoi_space_find(rig->world, 77);
    struct aoi_stats stats = {0};
    for (uint64_t end_ns = uv_hrtime() + 50 * 1000000; uv_hrtime() < end_ns;) uv_run(&rig->loop, UV_RUN_NOWAIT);
    assert_int_equal(aoi_space_set(space, 0, true, &(struct aoi_space_change){.has_flush_ms = true, .flush_ms = 0}), AOI_OK);
    flusher_rearm(&rig->flusher, space); /* as a reload does */
    bring(rig, a, &frame);
    for (uint64_t end_ns = uv_hrtime() + 20 * 1000000; uv_hrtime() < end_ns;) uv_run(&rig->loop, UV_RUN_NOWAIT);
    aoi_space_stats(space, &stats);
    assert_int_equal(stats.flushes, 0);
}

static void what_cannot_wait_finishes_it_and_its_frame_is_then_used(void **state)
{
    struct rig *rig = *state;
    struct session *a, *b;
    struct codec_command commands[N];
    start(rig, &a, &b);
    const struct codec_client_frame frame = paused_batch(rig, a, 1, commands);
    dispatch_finish(&rig->dispatch);
    rig_expect_ack(rig, a, 5, N);
    assert_int_equal(a->standing->last_seq, 5);
    assert_int_equal(rig_try_frame(rig, a, &frame), 0); /* its connection still had it */
    assert_true(rig_silent(rig, a));
    BATCH(rig, a, 6, ADD(5000, 0, 0));
    rig_expect_ack(rig, a, 6, 1);
}

static void the_space_may_end_in_the_middle(void **state)
{
    struct rig *rig = *state;
    struct session *a, *b;
    struct codec_command commands[N];
    start(rig, &a, &b);
    struct codec_client_frame frame = batch_of_adds(1, 5, commands, 2);
    commands[20] = (struct codec_command)DESTROY;
    commands[60] = (struct codec_command)CREATE(10);
    hurry(rig);
    assert_true(bring(rig, a, &frame) > 3);
    const struct codec_server_frame *ack = rig_take(rig, a);
    assert_int_equal(ack->u.ack.applied, N - 39);
    assert_int_equal(ack->u.ack.errors_total, 39);
}

/* Small as it is on the wire. */
static struct codec_client_frame batch_that_unpacks_to_much(uint64_t space, uint64_t seq)
{
    enum { MANY = 250000 };
    static struct codec_command commands[MANY];
    for (size_t i = 0; i < MANY; i++) commands[i] = (struct codec_command)FLUSH(0);
    return (struct codec_client_frame){.seq = seq, .kind = CODEC_BATCH, .u.batch = {.space = space, .command_n = MANY, .commands = commands}};
}

static void what_would_keep_much_memory_waits_for_another_that_does(void **state)
{
    struct rig *rig = *state;
    struct session *a, *b;
    struct codec_command commands[N];
    start(rig, &a, &b);
    const struct codec_client_frame first = batch_that_unpacks_to_much(1, 5), second = batch_that_unpacks_to_much(77, 5);
    hurry(rig);
    assert_true(rig_try_frame(rig, a, &first) == DISPATCH_AGAIN);
    uint64_t one = rig->dispatch.open_bytes;
    assert_true(one > 32 << 20);
    for (int i = 0; i < 3; i++) assert_true(rig_try_frame(rig, b, &second) == DISPATCH_AGAIN);
    assert_null(b->batch);
    assert_int_equal(rig->dispatch.open_bytes, one);

    struct session *c = &rig->session[2]; /* a frame of the usual size does not wait */
    rig_hello(rig, c);
    const struct codec_client_frame usual = batch_of_adds(78, 5, commands, 2);
    bring(rig, c, &usual);
    rig_expect_refusal(rig, c, CODEC_UNKNOWN_SPACE, 78);

    rig->dispatch.pause_ns = 0;
    bring(rig, a, &first);
    assert_int_equal(rig->dispatch.open_bytes, 0);
    hurry(rig);
    assert_true(rig_try_frame(rig, b, &second) == DISPATCH_AGAIN);
    assert_non_null(b->batch);
    dispatch_finish(&rig->dispatch);
    rig_expect_ack(rig, b, 5, second.u.batch.command_n);
}

static void what_keeps_much_memory_waits_neither_for_little_ones_nor_behind_those_who_came_later(void **state)
{
    struct rig *rig = *state;
    struct session *a, *b, *c = &rig->session[2];
    struct codec_command commands[N];
    start(rig, &a, &b);
    rig_hello(rig, c);
    const struct codec_client_frame little = paused_batch(rig, a, 1, commands);
    const struct codec_client_frame first = batch_that_unpacks_to_much(77, 5), second = batch_that_unpacks_to_much(78, 5),
                                    third = batch_that_unpacks_to_much(79, 6);
    assert_true(rig_try_frame(rig, b, &first) == DISPATCH_AGAIN);
    assert_non_null(b->batch);
    assert_true(rig_try_frame(rig, c, &second) == DISPATCH_AGAIN);
    assert_null(c->batch);
    rig->dispatch.pause_ns = 0;
    bring(rig, b, &first);
    hurry(rig);
    rig->dispatch.claimed_ns = UINT64_MAX / 2; /* just now, however long all this takes */
    assert_true(rig_try_frame(rig, b, &third) == DISPATCH_AGAIN);
    assert_null(b->batch); /* it is c's turn */
    assert_true(rig_try_frame(rig, c, &second) == DISPATCH_AGAIN);
    assert_non_null(c->batch);
    dispatch_finish(&rig->dispatch);
    assert_int_equal(rig->dispatch.heavy_bytes, 0);
    bring(rig, a, &little);
    bring(rig, c, &second);
    rig->dispatch.pause_ns = 0;
    bring(rig, b, &third);
}

static void who_comes_or_goes_waits_for_what_is_open_where_it_has_something_and_no_other_begins_there(void **state)
{
    struct rig *rig = *state;
    struct session *a, *b, *c = &rig->session[2];
    struct codec_command commands[N], others[N];
    struct dispatch *d = &rig->dispatch;
    start(rig, &a, &b);
    rig_hello(rig, c);
    BATCH(rig, c, 0, ADD(500, 0, 0));
    const struct codec_client_frame frame = paused_batch(rig, a, 1, commands), elsewhere = batch_of_adds(77, 2, others, 1);
    assert_true(rig_try_frame(rig, b, &elsewhere) == DISPATCH_AGAIN);
    assert_true(dispatch_may_part(d, c->owner + 1000)); /* nobody */
    assert_non_null(a->batch);
    assert_non_null(b->batch);
    assert_true(dispatch_may_part(d, b->owner));
    assert_non_null(a->batch);
    assert_null(b->batch);
    assert_false(dispatch_may_part(d, c->owner)); /* it has an entity there */
    assert_non_null(a->batch);
    d->pause_ns = 0;
    assert_int_equal(rig_try_frame(rig, a, &frame), 0);
    rig_expect_ack(rig, a, 5, N);
    assert_true(dispatch_holds(d, 1)); /* c comes first now */
    assert_true(dispatch_may_part(d, c->owner));
    assert_false(dispatch_holds(d, 1));
    assert_int_equal(rig_try_frame(rig, b, &elsewhere), 0);
}

static void who_does_not_ask_again_keeps_nobody_waiting(void **state)
{
    struct rig *rig = *state;
    struct session *a, *b;
    struct codec_command commands[N];
    struct dispatch *d = &rig->dispatch;
    start(rig, &a, &b);
    BATCH(rig, b, 0, ADD(500, 0, 0));
    const struct codec_client_frame frame = paused_batch(rig, a, 1, commands);
    assert_false(dispatch_may_part(d, b->owner));
    d->pause_ns = 0;
    assert_int_equal(rig_try_frame(rig, a, &frame), 0);
    dispatch_forget_parting(d);
    assert_true(dispatch_holds(d, 1));
    d->parting.at[0].tried_ns -= (uint64_t)600 * 1000 * 1000;
    uint64_t ended = d->flusher->ended;
    dispatch_forget_parting(d);
    assert_false(dispatch_holds(d, 1));
    assert_true(d->flusher->ended > ended);
}

/* Of many sizes, so that some become heavy only by what their refusals say. */
static void what_a_batch_counted_for_is_taken_back_however_much_its_refusals_said(void **state)
{
    struct rig *rig = *state;
    struct session *a, *b;
    enum { MOST = 2000 };
    static struct codec_command commands[MOST];
    start(rig, &a, &b);
    for (uint64_t i = 0; i < MOST; i++)
        commands[i] = (struct codec_command){.kind = CODEC_ADD_ENTITY,
                                             .u.add_entity = {.mode = AOI_ADD_NEW, .entity = {.id = 100 + i, .radius = -1}}};
    for (uint64_t n = 100; n <= MOST; n += 100) {
        const struct codec_client_frame frame = {.seq = n, .kind = CODEC_BATCH, .u.batch = {.space = 1, .command_n = n, .commands = commands}};
        hurry(rig);
        assert_true(rig_try_frame(rig, a, &frame) == DISPATCH_AGAIN);
        bring(rig, a, &frame);
        const struct codec_server_frame *ack = rig_take(rig, a);
        assert_int_equal(ack->u.ack.errors_total, n);
        assert_int_equal(rig->dispatch.heavy_bytes, 0);
        assert_int_equal(rig->dispatch.open_bytes, 0);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_long_batch_pauses_and_is_acknowledged_once_it_is_done),
        TEST(until_it_ends_frames_about_its_space_wait_and_others_do_not),
        TEST(refusals_and_columns_are_counted_across_its_pauses),
        TEST(last_deltas_come_behind_its_ack_and_a_flush_in_it_finds_room),
        TEST(a_commanded_flush_pauses_between_players_and_is_one_flush),
        TEST(a_timed_flush_waits_for_its_end),
        TEST(a_timed_flush_that_waits_does_not_come_where_only_flush_flushes_now),
        TEST(what_cannot_wait_finishes_it_and_its_frame_is_then_used),
        TEST(the_space_may_end_in_the_middle),
        TEST(what_would_keep_much_memory_waits_for_another_that_does),
        TEST(what_keeps_much_memory_waits_neither_for_little_ones_nor_behind_those_who_came_later),
        TEST(who_comes_or_goes_waits_for_what_is_open_where_it_has_something_and_no_other_begins_there),
        TEST(who_does_not_ask_again_keeps_nobody_waiting),
        TEST(what_a_batch_counted_for_is_taken_back_however_much_its_refusals_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
