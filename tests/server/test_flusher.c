/* test_flusher.c: the flush timer of a space: armed by the first change, never postponed, gone with its space. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "rig.h"

/* Space 77 of the rig flushes 10 ms after a change. */
static struct aoi_space *space(struct rig *rig)
{
    return aoi_space_find(rig->world, 77);
}

static uint64_t flushes(struct rig *rig)
{
    struct aoi_stats stats = {0};
    aoi_space_stats(space(rig), &stats);
    return stats.flushes;
}

static void change(struct rig *rig, uint64_t id)
{
    assert_int_equal(aoi_entity_add(space(rig), 1, AOI_ADD_NEW, &(struct aoi_entity){.id = id, .pos = {1, 2}}), AOI_OK);
}

static bool armed(struct rig *rig)
{
    return uv_loop_alive(&rig->loop) != 0;
}

static void busy_ms(long ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    nanosleep(&pause, NULL);
}

/* The Flush command, in one piece; whether work is left. */
static bool flush_now(struct rig *rig, struct aoi_space *s, uint64_t tag)
{
    bool pending;
    assert_true(flusher_flush(&rig->flusher, s, tag, 0, &pending));
    return pending;
}

static void a_change_arms_one_flush_and_then_it_is_quiet(void **state)
{
    struct rig *rig = *state;
    assert_false(armed(rig));
    for (uint64_t i = 1; i <= 20; i++) change(rig, i);
    assert_true(armed(rig));
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_int_equal(rig->timed_flushes, 1);
    assert_int_equal(flushes(rig), 1);
    assert_false(armed(rig));
}

static void after_a_long_turn_a_flush_does_not_come_early(void **state)
{
    struct rig *rig = *state;
    uv_update_time(&rig->loop);
    busy_ms(50); /* the loop's clock does not see it */
    uint64_t began_ns = uv_hrtime();
    change(rig, 1);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_int_equal(rig->timed_flushes, 1);
    assert_true(uv_hrtime() - began_ns >= 9000000); /* the loop counts whole milliseconds */
}

static void later_changes_do_not_postpone_it(void **state)
{
    struct rig *rig = *state;
    change(rig, 1);
    const struct aoi_space *s = space(rig);
    uint64_t due_ms = uv_timer_get_due_in(aoi_space_user(s)) + uv_now(&rig->loop);
    busy_ms(5);
    change(rig, 2);
    assert_int_equal(uv_timer_get_due_in(aoi_space_user(s)) + uv_now(&rig->loop), due_ms);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_int_equal(rig->timed_flushes, 1);
}

static void a_commanded_flush_disarms(void **state)
{
    struct rig *rig = *state;
    change(rig, 1);
    assert_false(flush_now(rig, space(rig), 5));
    assert_false(armed(rig));
    assert_int_equal(flushes(rig), 1);
}

static void work_that_is_left_arms_the_next(void **state)
{
    struct rig *rig = *state;
    change(rig, 1);
    /* owner 1 has no session: its player is skipped */
    assert_int_equal(aoi_viewport_set(space(rig), 1, 3, (float[]){0, 0, 0}, (float[]){9, 9, 0}), AOI_OK);
    assert_true(flush_now(rig, space(rig), 0));
    assert_true(armed(rig));
    uv_run(&rig->loop, UV_RUN_ONCE);
    assert_true(armed(rig));
    assert_int_equal(aoi_player_close(space(rig), 1, 3), AOI_OK);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_false(armed(rig));
}

static void a_manual_space_has_no_timer(void **state)
{
    struct rig *rig = *state;
    const struct aoi_settings manual = {.flush_ms = 0};
    assert_int_equal(aoi_space_create(rig->world, 1, 5, &manual, false), AOI_OK);
    struct aoi_space *s = aoi_space_find(rig->world, 5);
    assert_int_equal(aoi_entity_add(s, 1, AOI_ADD_NEW, &(struct aoi_entity){.id = 1}), AOI_OK);
    flusher_flush_all(&rig->flusher);
    assert_true(aoi_space_dirty(s));
    assert_false(armed(rig));
}

static void set_flush_ms(struct rig *rig, uint32_t flush_ms)
{
    assert_int_equal(aoi_space_set(space(rig), 0, true, &(struct aoi_space_change){.has_flush_ms = true, .flush_ms = flush_ms}), AOI_OK);
    flusher_rearm(&rig->flusher, space(rig));
}

static void another_flush_ms_brings_a_flush_forward_but_never_postpones_it(void **state)
{
    struct rig *rig = *state;
    change(rig, 1);
    const uv_timer_t *timer = aoi_space_user(space(rig));
    set_flush_ms(rig, 100000);
    assert_in_range(uv_timer_get_due_in(timer), 0, 10);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    change(rig, 2);
    assert_in_range(uv_timer_get_due_in(timer), 1000, 100000);
    set_flush_ms(rig, 5);
    assert_in_range(uv_timer_get_due_in(timer), 0, 5);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_false(armed(rig));
    set_flush_ms(rig, 7);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_false(armed(rig));
    assert_int_equal(flushes(rig), rig->timed_flushes);
}

static void a_space_made_manual_is_disarmed_and_one_made_timed_is_armed(void **state)
{
    struct rig *rig = *state;
    change(rig, 1);
    assert_true(armed(rig));
    set_flush_ms(rig, 0);
    assert_false(armed(rig));
    change(rig, 2);
    assert_false(armed(rig));
    set_flush_ms(rig, 5);
    assert_true(armed(rig));
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_int_equal(rig->timed_flushes, 1);
}

static void a_space_that_ends_takes_its_timer_along(void **state)
{
    struct rig *rig = *state;
    const struct aoi_settings timed = {.flush_ms = 1};
    for (int i = 0; i < 100; i++) {
        assert_int_equal(aoi_space_create(rig->world, 1, 5, &timed, false), AOI_OK);
        struct aoi_space *s = aoi_space_find(rig->world, 5);
        assert_int_equal(aoi_entity_add(s, 1, AOI_ADD_NEW, &(struct aoi_entity){.id = 1}), AOI_OK);
        if (i % 2 == 0) uv_run(&rig->loop, UV_RUN_DEFAULT);
        assert_int_equal(aoi_space_destroy(rig->world, 1, false, 5), AOI_OK);
        uv_run(&rig->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(rig->timed_flushes, 50);
}

/* ------------------------------------------------------------------------------------------------------------- slices */

enum { CROWD = 300 }; /* players and entities, everybody sees all */

static struct aoi_space *crowd_begin(struct rig *rig, uint64_t id)
{
    rig->flusher.slice_most_ns = 0; /* the shortest slices, however fast this machine is */
    rig->out_limits.soft_bytes = rig->out_limits.hard_bytes = (uint64_t)1 << 40;
    if (rig->session[0].state == SESSION_HELLO_WAIT) rig_hello(rig, &rig->session[0]);
    if (id != 77) assert_int_equal(aoi_space_create(rig->world, 1, id, &(struct aoi_settings){.flush_ms = 10}, false), AOI_OK);
    struct aoi_space *s = aoi_space_find(rig->world, id);
    const float lo[3] = {-1, -1}, hi[3] = {CROWD, CROWD};
    const struct aoi_space_change margin = {.has_leave_margin = true, .leave_margin = 1}; /* the exact rules are slower still */
    assert_int_equal(aoi_space_set(s, 1, true, &margin), AOI_OK);
    for (uint64_t i = 1; i <= CROWD; i++) {
        assert_int_equal(aoi_entity_add(s, 1, AOI_ADD_NEW, &(struct aoi_entity){.id = i, .pos = {(float)i, 1}}), AOI_OK);
        assert_int_equal(aoi_viewport_set(s, 1, i, lo, hi), AOI_OK);
    }
    flush_now(rig, s, 0);
    struct buf *told = outbox_queue(&rig->session[0].out);
    buf_consume(told, buf_len(told));
    return s;
}

static void crowd_moves(struct aoi_space *s, float y)
{
    for (uint64_t i = 1; i <= CROWD; i++) assert_int_equal(aoi_entity_move(s, 1, i, (float[]){(float)i, y, 0}, NULL), AOI_OK);
}

/* Turns the loop until the flush has begun, and its first slice has ended. */
static void until_open(struct rig *rig, const struct aoi_space *s)
{
    for (int i = 0; i < 1000 && !flusher_open(s); i++) uv_run(&rig->loop, UV_RUN_ONCE);
    assert_true(flusher_open(s));
}

/* Turns it until that flush has ended; how often. */
static int until_shut(struct rig *rig, const struct aoi_space *s)
{
    int turns = 0;
    for (; flusher_open(s) && turns < CROWD; turns++) uv_run(&rig->loop, UV_RUN_NOWAIT);
    assert_false(flusher_open(s));
    return turns;
}

/* Takes one delta of each player of the space, all with this number. */
static void take_crowd(struct rig *rig, uint64_t space_id, uint64_t flush)
{
    bool told[CROWD + 1] = {false};
    for (uint32_t i = 0; i < CROWD; i++) {
        const struct codec_server_frame *frame = rig_take(rig, &rig->session[0]);
        assert_int_equal(frame->kind, CODEC_DELTAS);
        assert_int_equal(frame->u.deltas.space, space_id);
        assert_int_equal(frame->u.deltas.flush, flush);
        assert_int_equal(frame->u.deltas.player_n, 1);
        const struct aoi_delta *d = &frame->u.deltas.players[0].delta;
        assert_in_range(d->player, 1, CROWD);
        assert_false(told[d->player]);
        told[d->player] = true;
        assert_int_equal(d->updates.n, CROWD);
    }
    assert_true(rig_silent(rig, &rig->session[0]));
}

static void a_large_flush_is_cut_into_slices_between_which_the_loop_turns(void **state)
{
    struct rig *rig = *state;
    struct aoi_space *s = crowd_begin(rig, 77);
    crowd_moves(s, 2);
    until_open(rig, s);
    int turns = 1 + until_shut(rig, s);
    assert_true(turns >= 3);
    assert_int_equal(rig->timed_flushes, turns); /* what stands in the outboxes is written after each */
    assert_int_equal(flushes(rig), 2);
    take_crowd(rig, 77, 2);
    assert_false(armed(rig));
}

static struct codec_client_frame about(enum codec_client_kind kind, uint64_t seq, uint64_t space_id, struct codec_command *ping)
{
    struct codec_client_frame frame = {.seq = seq, .kind = kind};
    if (kind == CODEC_BATCH) {
        frame.u.batch.space = space_id;
        frame.u.batch.command_n = 1;
        frame.u.batch.commands = ping;
    } else if (kind == CODEC_QUERY) {
        frame.u.query = (struct codec_query){.space = space_id, .kind = CODEC_QUERY_STATS};
    } else if (kind == CODEC_RESYNC) {
        frame.u.resync.space = space_id;
    }
    return frame;
}

static void while_a_flush_is_open_frames_about_its_space_wait_and_all_others_are_answered(void **state)
{
    struct rig *rig = *state;
    struct aoi_space *s = crowd_begin(rig, 77);
    struct session *other = &rig->session[1];
    struct codec_command add = {.kind = CODEC_ADD_ENTITY, .u.add_entity = {.entity = {.id = 1}, .mode = AOI_ADD_NEW}};
    rig_hello(rig, other);
    assert_int_equal(aoi_space_create(rig->world, 2, 5, &(struct aoi_settings){0}, false), AOI_OK);
    crowd_moves(s, 2);
    until_open(rig, s);
    uint64_t frames = rig->metrics.frames_in;
    static const enum codec_client_kind kinds[] = {CODEC_BATCH, CODEC_QUERY, CODEC_RESYNC};
    for (size_t i = 0; i < 3; i++) {
        const struct codec_client_frame waits = about(kinds[i], 1 + i, 77, &add);
        assert_int_equal(rig_try_frame(rig, other, &waits), 77);
        assert_true(rig_silent(rig, other));
    }
    assert_int_equal(rig->metrics.frames_in, frames); /* they count when they are taken */
    assert_true(flusher_open(s));
    const struct codec_client_frame ping = about(CODEC_PING, 1, 0, NULL), batch = about(CODEC_BATCH, 2, 5, &add),
                                    query = about(CODEC_QUERY, 3, 5, NULL), world = about(CODEC_QUERY, 4, 0, NULL);
    rig_frame(rig, other, &ping);
    assert_int_equal(rig_take(rig, other)->kind, CODEC_PONG);
    rig_frame(rig, other, &batch);
    rig_expect_ack(rig, other, 2, 1);
    rig_frame(rig, other, &query);
    assert_int_equal(rig_take(rig, other)->kind, CODEC_RESULT);
    rig_frame(rig, other, &world);
    assert_int_equal(rig_take(rig, other)->kind, CODEC_RESULT);
    uint64_t ended = rig->flusher.ended;
    until_shut(rig, s);
    assert_int_equal(rig->flusher.ended, ended + 1);
    const struct codec_client_frame now = about(CODEC_QUERY, 5, 77, NULL);
    rig_frame(rig, other, &now);
    assert_int_equal(rig_take(rig, other)->u.result.stats.core.updates, CROWD * CROWD);
}

static void a_commanded_flush_the_end_of_an_owner_and_draining_finish_an_open_one_first(void **state)
{
    struct rig *rig = *state;
    struct aoi_space *s = crowd_begin(rig, 77);
    crowd_moves(s, 2);
    until_open(rig, s);
    flush_now(rig, s, 9);
    assert_false(flusher_open(s));
    assert_int_equal(flushes(rig), 3);
    take_crowd(rig, 77, 2); /* the third has nothing left to say */
    assert_false(armed(rig));

    crowd_moves(s, 3);
    until_open(rig, s);
    flusher_flush_all(&rig->flusher);
    assert_false(flusher_open(s));
    assert_int_equal(flushes(rig), 4);
    take_crowd(rig, 77, 4);

    crowd_moves(s, 4);
    until_open(rig, s);
    session_close(&rig->sessions, &rig->session[0], CLOSE_BYE);
    rig_close(rig, &rig->session[0]);
    assert_false(flusher_open(s));
    assert_int_equal(flushes(rig), 5);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_false(armed(rig));
}

static void two_flushes_that_are_due_take_turns_and_a_small_one_does_not_wait_for_the_large_one(void **state)
{
    struct rig *rig = *state;
    struct aoi_space *large = crowd_begin(rig, 77), *small;
    assert_int_equal(aoi_space_create(rig->world, 1, 5, &(struct aoi_settings){.flush_ms = 1}, false), AOI_OK);
    small = aoi_space_find(rig->world, 5);
    crowd_moves(large, 2);
    until_open(rig, large);
    assert_int_equal(aoi_entity_add(small, 1, AOI_ADD_NEW, &(struct aoi_entity){.id = 1}), AOI_OK);
    uv_sleep(3); /* it is due, before the large one goes on */
    bool overtook = false;
    for (int i = 0; i < CROWD && flusher_open(large); i++) {
        uv_run(&rig->loop, UV_RUN_NOWAIT);
        overtook |= !aoi_space_dirty(small) && flusher_open(large);
    }
    assert_true(overtook);
}

static void what_waited_for_the_end_of_a_flush_is_told_flush_ms_after_it_came(void **state)
{
    struct rig *rig = *state;
    struct aoi_space *s = crowd_begin(rig, 77);
    const uv_timer_t *timer = aoi_space_user(s);
    set_flush_ms(rig, 200);
    crowd_moves(s, 2);
    until_open(rig, s);
    uint64_t came_ns = uv_hrtime();
    until_shut(rig, s);
    busy_ms(20);
    rig->flusher.since_ns = came_ns;
    crowd_moves(s, 3);
    rig->flusher.since_ns = 0;
    assert_in_range(uv_timer_get_due_in(timer), 0, 180);
    /* and it is not postponed by what comes then; nor is another one early for that */
    assert_int_equal(aoi_entity_move(s, 1, 1, (float[]){7, 7, 0}, NULL), AOI_OK);
    assert_in_range(uv_timer_get_due_in(timer), 0, 180);
    flush_now(rig, s, 0);
    crowd_moves(s, 4);
    assert_in_range(uv_timer_get_due_in(timer), 190, 200);
    /* where flushes take longer than flush_ms, half as long as they take is for others */
    set_flush_ms(rig, 1);
    until_open(rig, s);
    uint64_t began_ns = uv_hrtime();
    until_shut(rig, s);
    uint64_t took_ms = (uv_hrtime() - began_ns) / 1000000;
    rig->flusher.since_ns = began_ns;
    crowd_moves(s, 5);
    rig->flusher.since_ns = 0;
    assert_in_range(uv_timer_get_due_in(timer), took_ms / 8, took_ms + 4);
}

static void a_world_that_ends_with_an_open_flush_leaves_nothing_behind(void **state)
{
    struct rig *rig = *state;
    struct aoi_space *s = crowd_begin(rig, 77);
    crowd_moves(s, 2);
    until_open(rig, s); /* the rig's end does the rest */
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_change_arms_one_flush_and_then_it_is_quiet),
        TEST(after_a_long_turn_a_flush_does_not_come_early),
        TEST(later_changes_do_not_postpone_it),
        TEST(a_commanded_flush_disarms),
        TEST(work_that_is_left_arms_the_next),
        TEST(a_manual_space_has_no_timer),
        TEST(another_flush_ms_brings_a_flush_forward_but_never_postpones_it),
        TEST(a_space_made_manual_is_disarmed_and_one_made_timed_is_armed),
        TEST(a_space_that_ends_takes_its_timer_along),
        TEST(a_large_flush_is_cut_into_slices_between_which_the_loop_turns),
        TEST(while_a_flush_is_open_frames_about_its_space_wait_and_all_others_are_answered),
        TEST(a_commanded_flush_the_end_of_an_owner_and_draining_finish_an_open_one_first),
        TEST(two_flushes_that_are_due_take_turns_and_a_small_one_does_not_wait_for_the_large_one),
        TEST(what_waited_for_the_end_of_a_flush_is_told_flush_ms_after_it_came),
        TEST(a_world_that_ends_with_an_open_flush_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
