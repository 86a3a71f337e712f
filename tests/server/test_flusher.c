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

static uint64_t flushes(struct rig *rig)
{
    struct aoi_stats stats = {0};
    aoi_space_stats(space(rig), &stats);
    return stats.flushes;
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
    assert_false(flusher_flush(&rig->flusher, space(rig), 5));
    assert_false(armed(rig));
    assert_int_equal(flushes(rig), 1);
}

static void work_that_is_left_arms_the_next(void **state)
{
    struct rig *rig = *state;
    change(rig, 1);
    /* owner 1 has no session: its player is skipped */
    assert_int_equal(aoi_viewport_set(space(rig), 1, 3, (float[]){0, 0, 0}, (float[]){9, 9, 0}), AOI_OK);
    assert_true(flusher_flush(&rig->flusher, space(rig), 0));
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
