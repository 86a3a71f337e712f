/* test_flushwatch.c: flushes are counted, and the oracle looks after them as far as it has time for that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/space.h"
#include "rig.h"

static struct flushwatch watch;

static int setup(void **state)
{
    if (rig_setup(state) != 0) return -1;
    struct rig *rig = *state;
    flushwatch_init(&watch, &rig->metrics, &rig->config);
    rig->flusher.watch = &watch;
    rig_hello(rig, &rig->session[0]);
    struct aoi_space *space = aoi_space_find(rig->world, 77);
    aoi_owner owner = rig->session[0].owner;
    assert_int_equal(aoi_entity_add(space, owner, AOI_ADD_NEW, &(struct aoi_entity){.id = 1, .radius = 10}), AOI_OK);
    assert_int_equal(aoi_entity_add(space, owner, AOI_ADD_NEW, &(struct aoi_entity){.id = 2, .pos = {5, 5}}), AOI_OK);
    assert_int_equal(aoi_subscribe(space, owner, 1, 1, false), AOI_OK);
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    rig->flusher.watch = NULL;
    flushwatch_clear(&watch);
    return rig_teardown(state);
}

static struct aoi_space *flush(struct rig *rig)
{
    struct aoi_space *space = aoi_space_find(rig->world, 77);
    bool pending;
    assert_true(flusher_flush(&rig->flusher, space, 0, 0, &pending));
    return space;
}

static uint64_t counted(const struct histogram *histogram)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i <= HISTOGRAM_BUCKETS; i++) n += histogram->count[i];
    return n;
}

static void each_flush_counts_and_its_latency_is_no_less_than_its_work(void **state)
{
    struct rig *rig = *state;
    for (int i = 0; i < 5; i++) flush(rig);
    assert_int_equal(counted(&rig->metrics.flush), 5);
    assert_int_equal(counted(&rig->metrics.latency), 5);
    assert_true(rig->metrics.flush.sum_ns > 0 && rig->metrics.latency.sum_ns >= rig->metrics.flush.sum_ns);
}

static void views_are_checked_as_many_as_the_option_says(void **state)
{
    struct rig *rig = *state;
    flush(rig);
    assert_int_equal(rig->metrics.oracle_checked, 1);
    rig->config.oracle_players = 0;
    flush(rig);
    assert_int_equal(rig->metrics.oracle_checked, 1);
    assert_int_equal(rig->metrics.oracle_mismatches, 0);
}

static void when_its_share_of_the_time_is_used_up_the_oracle_rests(void **state)
{
    struct rig *rig = *state;
    watch.credit_ns = INT64_MIN / 2;
    for (int i = 0; i < 100; i++) flush(rig);
    assert_int_equal(rig->metrics.oracle_checked, 0);
    watch.at_ns = 0; /* as if it had rested since the machine began; that saves up little */
    watch.credit_ns = 0;
    flush(rig);
    assert_int_equal(rig->metrics.oracle_checked, 1);
    assert_true(watch.credit_ns <= 10000000);
}

static void a_view_that_is_wrong_is_counted(void **state)
{
    struct rig *rig = *state;
    struct aoi_space *space = flush(rig);
    struct aoi__player *player = &space->players.at[aoi__player_slot(space, 1)];
    player->set.mask = 2;
    flush(rig);
    player->set.mask = UINT32_MAX;
    assert_int_equal(rig->metrics.oracle_mismatches, 1);
}

static void what_a_space_counted_is_kept_when_it_ends(void **state)
{
    struct rig *rig = *state;
    const struct aoi_settings manual = {.flush_ms = 0};
    aoi_owner owner = rig->session[0].owner;
    assert_int_equal(aoi_space_create(rig->world, owner, 5, &manual, false), AOI_OK);
    struct aoi_space *space = aoi_space_find(rig->world, 5);
    assert_int_equal(aoi_entity_add(space, owner, AOI_ADD_NEW, &(struct aoi_entity){.id = 1}), AOI_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(aoi_entity_move(space, owner, 1, (float[]){(float)i + 1, 0, 0}, NULL), AOI_OK);
    assert_int_equal(aoi_space_destroy(rig->world, owner, false, 5), AOI_OK);
    assert_int_equal(rig->metrics.ended.moves, 3);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_flush_counts_and_its_latency_is_no_less_than_its_work),
        TEST(views_are_checked_as_many_as_the_option_says),
        TEST(when_its_share_of_the_time_is_used_up_the_oracle_rests),
        TEST(a_view_that_is_wrong_is_counted),
        TEST(what_a_space_counted_is_kept_when_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
