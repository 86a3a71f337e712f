/* test_oracle.c: the oracle of production finds what is wrong, and nothing else (the random runs of test_model.c ask it after every flush); the densest cell. */
#include "core/space.h"
#include "rig.h"

static struct aoi_oracle_result check(struct rig *r, uint64_t budget)
{
    struct aoi_oracle_result result = {0};
    aoi_oracle_check(r->m.oracle, rig_core(r), 1, budget, &result);
    return result;
}

/* One player, who sees 2 and 3 through 1, and 4 not. */
static void make_scene(struct rig *r)
{
    rig_add(r, 1, 0, 0, 10);
    rig_add(r, 2, 3, 0, 0);
    rig_add(r, 3, 9, 0, 0);
    rig_add(r, 4, 50, 0, 0);
    rig_subscribe(r, 1, 1);
    rig_flush(r);
}

/* The entity's x in the core: a change there is like a move that was lost on its way to the index. */
static float *x_of(struct rig *r, uint64_t id)
{
    return &rig_core(r)->hot[aoi__entity_slot(rig_core(r), id)].pos[0];
}

CASE(it_finds_nothing_where_nothing_is_wrong)
{
    make_scene(r);
    struct aoi_oracle_result result = check(r, 1000);
    assert_int_equal(result.checked, 1);
    assert_int_equal(result.mismatches, 0);
}

CASE(it_finds_an_entity_that_was_not_told)
{
    make_scene(r);
    float *x = x_of(r, 4), was = *x;
    *x = 5;
    struct aoi_oracle_result result = check(r, 1000);
    *x = was;
    assert_int_equal(result.mismatches, 1);
    assert_int_equal(result.player, 1);
    assert_int_equal(result.entity, 4);
}

CASE(it_finds_an_entity_that_should_have_left)
{
    make_scene(r);
    float *x = x_of(r, 3), was = *x;
    *x = 11;
    struct aoi_oracle_result result = check(r, 1000);
    assert_int_equal(result.mismatches, 1);
    assert_int_equal(result.entity, 3);
    rig_margin(r, 2); /* now it may stay */
    assert_int_equal(check(r, 1000).mismatches, 0);
    *x = was;
}

CASE(a_small_budget_takes_several_checks_and_finds_it_all_the_same)
{
    make_scene(r);
    float *x = x_of(r, 4), was = *x;
    *x = 5;
    uint64_t found = 0, checks = 0;
    for (; found == 0 && checks < 10; checks++) found += check(r, 1).mismatches;
    *x = was;
    assert_int_equal(found, 1);
}

CASE(a_skipped_player_is_left_out)
{
    make_scene(r);
    r->m.room[1] = 0;
    rig_move(r, 4, 5, 0);
    rig_flush(r);
    struct aoi_oracle_result result = check(r, 1000);
    assert_int_equal(result.checked, 0);
    assert_int_equal(result.left_out, 1);
    assert_int_equal(result.mismatches, 0);
    r->m.room[1] = MODEL_NO_LIMIT;
    rig_flush(r);
    assert_int_equal(check(r, 1000).checked, 1);
}

CASE(every_player_has_his_turn)
{
    make_scene(r);
    for (uint64_t player = 2; player <= 9; player++) rig_viewport(r, player, 0, 0, 10, 10);
    rig_flush(r);
    struct aoi_space *space = rig_core(r);
    space->players.at[aoi__player_slot(space, 7)].set.mask = 0x80; /* only player 7 is wrong */
    uint64_t found = 0;
    for (int i = 0; i < 9; i++) {
        struct aoi_oracle_result result = check(r, 1000);
        found += result.mismatches;
        assert_true(result.mismatches == 0 || result.player == 7);
    }
    space->players.at[aoi__player_slot(space, 7)].set.mask = UINT32_MAX;
    assert_true(found > 0);
}

CASE(the_densest_cell_is_counted)
{
    assert_int_equal(aoi_space_densest(rig_core(r), 1000), 0);
    for (uint64_t id = 1; id <= 100; id++) rig_add(r, id, (float)(id % 10) * 32, (float)(id / 10) * 32, 0); /* ten cells of ten */
    for (uint64_t id = 101; id <= 140; id++) rig_add(r, id, -1, -1, 0);
    assert_int_equal(aoi_space_densest(rig_core(r), 1000), 40);
    assert_in_range(aoi_space_densest(rig_core(r), 20), 20, 80); /* an estimate */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_finds_nothing_where_nothing_is_wrong),
        cmocka_unit_test(it_finds_an_entity_that_was_not_told),
        cmocka_unit_test(it_finds_an_entity_that_should_have_left),
        cmocka_unit_test(a_small_budget_takes_several_checks_and_finds_it_all_the_same),
        cmocka_unit_test(a_skipped_player_is_left_out),
        cmocka_unit_test(every_player_has_his_turn),
        cmocka_unit_test(the_densest_cell_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
