/* test_cases_view.c: the rules of what is seen: margins, crowds, tiers, appeal, presence, overrides. As in test_cases.c the model judges every delta too. */
#include <math.h>

#include "core/space.h"
#include "rig.h"

enum { P = 1, Q = 2, U = 1000, V = 1001, M = 21 };

static void watch_from_origin(struct rig *r)
{
    rig_add(r, U, 0, 0, 10);
    rig_subscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "");
}

/* ------------------------------------------------------------------------------------------------------------- leave_margin */

CASE(what_was_told_stays_within_the_margin_and_what_was_not_told_does_not_enter_there)
{
    for (int by_viewport = 0; by_viewport < 2; by_viewport++) {
        for (uint32_t shape = AOI_SHAPE_BOX; shape <= AOI_SHAPE_SPHERE; shape++) {
            rig_space(r, &(struct aoi_settings){.shape = shape, .leave_margin = 2}, NULL);
            r->places = false;
            if (by_viewport) {
                rig_viewport(r, P, -10, -10, 10, 10);
            } else {
                watch_from_origin(r);
            }
            rig_add(r, M, 9, 0, 0);
            assert_string_equal(rig_tells(r, P), "E21");
            rig_move(r, M, 11, 0);
            assert_string_equal(rig_tells(r, P), "U21"); /* stays */
            rig_remove(r, M);
            assert_string_equal(rig_tells(r, P), "L21");
            rig_add(r, M, 11, 0, 0);
            assert_string_equal(rig_tells(r, P), ""); /* hidden */
            rig_move(r, M, 12, 0);
            rig_move(r, M, 10, 0);
            assert_string_equal(rig_tells(r, P), "E21");
            rig_move(r, M, 12, 0);
            assert_string_equal(rig_tells(r, P), "U21"); /* the margin's edge is inclusive */
            rig_move(r, M, nextafterf(12, 13), 0);
            assert_string_equal(rig_tells(r, P), "L21");
        }
    }
}

CASE(a_new_subscription_knows_nothing_of_the_margin_of_the_old_one)
{
    rig_margin(r, 2);
    watch_from_origin(r);
    rig_add(r, M, 9, 0, 0);
    rig_flush(r);
    rig_move(r, M, 11, 0);
    rig_flush(r);
    rig_unsubscribe(r, P, U);
    rig_subscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), ""); /* in one window nothing was told, so it stays */
    rig_unsubscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "L21");
    rig_subscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "");
}

CASE(a_margin_that_shrinks_or_ends_acts_at_the_next_flush_although_nothing_moves)
{
    rig_margin(r, 2);
    watch_from_origin(r);
    rig_add(r, M, 9, 0, 0);
    rig_add(r, M + 1, 9, 0, 0);
    rig_flush(r);
    rig_move(r, M, 11, 0);
    rig_move(r, M + 1, 0, 10.25f);
    rig_flush(r);
    rig_margin(r, 0.5f);
    assert_true(aoi_space_dirty(rig_core(r)));
    assert_string_equal(rig_tells(r, P), "L21");
    rig_margin(r, 0);
    assert_string_equal(rig_tells(r, P), "L22");
    rig_margin(r, 5);
    assert_string_equal(rig_tells(r, P), "");
}

CASE(circling_in_the_margin_is_no_leave_and_beyond_it_is_one)
{
    rig_margin(r, 2);
    r->places = false;
    watch_from_origin(r);
    rig_add(r, M, 9, 0, 0);
    rig_flush(r);
    static const float way[][2] = {{11, 0}, {11, 11}, {0, 11}, {-11, 11}, {-11, 0}, {-11, -11}, {0, -11}, {11, -11}};
    for (int i = 0; i < 24; i++) {
        rig_move(r, M, way[i % 8][0], way[i % 8][1]);
        assert_string_equal(rig_tells(r, P), "U21");
    }
    int leaves = 0;
    for (int i = 0; i < 24; i++) {
        rig_move(r, M, way[i % 8][0] / 11 * 13, way[i % 8][1] / 11 * 13);
        rig_flush(r);
        leaves += (int)rig_told(r, P)->leaves;
    }
    assert_int_equal(leaves, 1);
}

CASE(with_a_margin_flapping_across_the_edge_or_a_cell_line_is_no_change_at_all)
{
    for (uint32_t shape = AOI_SHAPE_BOX; shape <= AOI_SHAPE_CELLS; shape++) {
        rig_space(r, &(struct aoi_settings){.shape = shape, .cell_size = 10, .leave_margin = 0.5f}, NULL);
        float edge = shape == AOI_SHAPE_CELLS ? 20 : 10; /* U's block of cells ends at 20 */
        watch_from_origin(r);
        for (uint64_t i = 0; i < 500; i++) rig_add(r, 100 + i, (float)(i % 20) - 9.5f, (float)(i / 20 % 20) - 9.5f, 0);
        rig_add(r, M, edge - 0.1f, 0, 0);
        rig_flush(r);
        for (int i = 0; i < 45; i++) {
            if (i % 4 != 3) rig_move(r, M, edge + (i % 2 ? -0.1f : 0.1f), 0);
            rig_flush(r);
            const struct rig_told *told = rig_told(r, P);
            assert_true(told->leaves + told->enters == 0 && told->updates <= 1);
        }
        for (int i = 0; i < 20; i++) { /* and the unit, across a line between cells */
            rig_move(r, U, i % 2 ? 0.1f : -0.1f, 0);
            rig_flush(r);
            assert_true(rig_told(r, P)->leaves == 0);
        }
    }
}

CASE(cells_with_a_margin_keep_what_is_that_near_the_block)
{
    rig_space(r, &(struct aoi_settings){.shape = AOI_SHAPE_CELLS, .cell_size = 10, .leave_margin = 2}, NULL);
    r->places = false;
    rig_add(r, U, 5, 5, 1);
    rig_subscribe(r, P, U);
    rig_add(r, M, 19, 5, 0);
    assert_string_equal(rig_tells(r, P), "E21");
    rig_move(r, M, 21.5f, 5);
    assert_string_equal(rig_tells(r, P), "U21"); /* floor((21.5 - 2) / 10) - floor((5 + 2) / 10) = 1 */
    rig_move(r, M, 22.5f, 5);
    assert_string_equal(rig_tells(r, P), "L21");
    rig_move(r, M, 21.5f, 5);
    assert_string_equal(rig_tells(r, P), "");
    rig_move(r, M, 19, 5);
    rig_flush(r);
    rig_move(r, M, 22.5f, 5);
    rig_move(r, U, 8.5f, 5); /* the unit's side counts too: floor((8.5 + 2) / 10) = 1 */
    assert_string_equal(rig_tells(r, P), "U21");
    rig_radius(r, U, 0); /* sees nothing, margin or not */
    assert_string_equal(rig_tells(r, P), "L21");
}

CASE(a_players_own_margin_goes_before_that_of_the_space)
{
    rig_margin(r, 2);
    watch_from_origin(r);
    rig_open(r, Q, (struct aoi_player_settings){.leave_margin = 20});
    rig_subscribe(r, Q, U);
    rig_add(r, M, 9, 0, 0);
    rig_flush(r);
    rig_move(r, M, 25, 0);
    assert_string_equal(rig_tells(r, P), "L21");
    assert_string_equal(rig_told(r, Q)->text, " U21(25,0)");
    rig_open(r, Q, (struct aoi_player_settings){0});
    assert_string_equal(rig_tells(r, Q), "L21");
}

/* ------------------------------------------------------------------------------------------------------------- min_stay_ms */

static void stay(struct rig *r, uint32_t ms)
{
    rig_set(r, (struct aoi_space_change){.has_min_stay_ms = true, .min_stay_ms = ms});
}

CASE(what_entered_stays_for_its_time_and_leaves_then_although_nothing_changes)
{
    stay(r, 100);
    watch_from_origin(r);
    rig_add(r, M, 9, 0, 0);
    assert_string_equal(rig_tells(r, P), "E21(9,0)");
    r->m.now_ms += 30;
    rig_move(r, M, 500, 0);
    assert_string_equal(rig_tells(r, P), "U21(500,0)");
    r->m.now_ms += 69;
    assert_true(rig_flush(r)); /* pending: it will leave */
    assert_int_equal(r->told.n, 0);
    r->m.now_ms += 1;
    assert_string_equal(rig_tells(r, P), "L21");
    assert_false(rig_flush(r));
}

CASE(what_entered_before_a_stay_was_asked_for_counts_as_long_ago)
{
    watch_from_origin(r);
    rig_add(r, M, 9, 0, 0);
    rig_flush(r);
    stay(r, 1000);
    rig_move(r, M, 500, 0);
    assert_string_equal(rig_tells(r, P), "L21");
    rig_move(r, M, 9, 0);
    rig_flush(r);
    rig_move(r, M, 500, 0);
    assert_string_equal(rig_tells(r, P), "U21(500,0)");
    stay(r, 0);
    assert_string_equal(rig_tells(r, P), "L21");
}

CASE(no_stay_for_what_is_gone_hidden_masked_or_outranked_nor_for_a_player_that_sees_nothing)
{
    stay(r, 100000);
    watch_from_origin(r);
    for (uint64_t id = 1; id <= 6; id++) rig_add(r, id, (float)id, 0, 0);
    rig_flush(r);
    for (uint64_t id = 1; id <= 6; id++) rig_move(r, id, (float)(100 * id), 0);
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->updates, 6);
    rig_remove(r, 1);
    assert_string_equal(rig_tells(r, P), "L1");
    rig_override(r, P, 2, AOI_OVERRIDE_HIDE);
    assert_string_equal(rig_tells(r, P), "L2");
    rig_layers(r, 3, 2);
    rig_open(r, P, (struct aoi_player_settings){.mask = 1, .max_view = 2});
    assert_string_equal(rig_tells(r, P), "L3 L6");
    rig_radius(r, U, 0);
    assert_string_equal(rig_tells(r, P), "L4 L5");
    rig_radius(r, U, 10);
    assert_string_equal(rig_tells(r, P), "");
}

CASE(a_stay_keeps_whatever_brought_it)
{
    stay(r, 100);
    watch_from_origin(r);
    rig_add(r, M, 500, 0, 0);
    rig_override(r, P, M, AOI_OVERRIDE_SHOW);
    assert_int_equal(model_subscribe(&r->m, r->s, 1, P, U, true), AOI_OK);
    assert_string_equal(rig_tells(r, P), "E21(500,0) E1000(0,0)");
    rig_override(r, P, M, AOI_OVERRIDE_NONE);
    rig_subscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "");
    r->m.now_ms += 100;
    assert_string_equal(rig_tells(r, P), "L21 L1000");
}

CASE(a_full_delta_does_not_make_what_it_restates_new)
{
    stay(r, 100);
    watch_from_origin(r);
    rig_add(r, M, 9, 0, 0);
    rig_flush(r);
    r->m.now_ms += 60;
    rig_move(r, M, 500, 0);
    assert_int_equal(model_resync(&r->m, r->s, 1, P), AOI_OK);
    assert_string_equal(rig_tells(r, P), "full E21(500,0)");
    r->m.now_ms += 40;
    assert_string_equal(rig_tells(r, P), "L21");
}

/* ------------------------------------------------------------------------------------------------------------- max_view */

static void most(struct rig *r, uint32_t max_view)
{
    rig_set(r, (struct aoi_space_change){.has_max_view = true, .max_view = max_view});
}

CASE(of_too_many_the_nearest_are_seen_and_who_is_seen_is_worth_a_fifth_of_the_way)
{
    most(r, 2);
    watch_from_origin(r);
    rig_add(r, 1, 2, 0, 0);
    rig_add(r, 2, 8, 0, 0);
    rig_add(r, 3, 9, 0, 0);
    assert_string_equal(rig_tells(r, P), "E1(2,0) E2(8,0)");
    rig_move(r, 3, 7, 0);
    assert_string_equal(rig_tells(r, P), ""); /* 8 * 0.8 = 6.4 is nearer */
    rig_move(r, 3, 6.5f, 0);
    assert_string_equal(rig_tells(r, P), "");
    rig_move(r, 3, 6.25f, 0);
    assert_string_equal(rig_tells(r, P), "L2 E3(6.25,0)");
    rig_move(r, 2, 5.5f, 0);
    assert_string_equal(rig_tells(r, P), "");
    rig_remove(r, 1);
    assert_string_equal(rig_tells(r, P), "L1 E2(5.5,0)");
    most(r, 1);
    assert_string_equal(rig_tells(r, P), "L3");
    most(r, 0);
    assert_string_equal(rig_tells(r, P), "E3(6.25,0)");
}

CASE(of_equally_near_ones_the_lower_id_is_seen_and_priority_goes_before_distance)
{
    most(r, 2);
    watch_from_origin(r);
    for (uint64_t id = 5; id >= 1; id--) rig_add(r, id, id % 2 ? 3 : -3, 3, 0);
    assert_string_equal(rig_tells(r, P), "E1(3,3) E2(-3,3)");
    rig_move(r, 5, 9, 9);
    rig_priority(r, 5, 1);
    assert_string_equal(rig_tells(r, P), "L2 E5(9,9)");
    rig_priority(r, 4, 7);
    assert_string_equal(rig_tells(r, P), "L1 E4(-3,3)");
    rig_priority(r, 5, 0);
    rig_priority(r, 4, 0);
    assert_string_equal(rig_tells(r, P), "L5 E1(3,3)"); /* 4 is seen and so worth more than 2 and 3; 1 comes before them */
}

CASE(units_with_include_self_and_shown_ones_come_first_but_count)
{
    most(r, 3);
    watch_from_origin(r);
    for (uint64_t id = 1; id <= 4; id++) rig_add(r, id, (float)id, 0, 0);
    rig_add(r, 9, 500, 0, 0);
    rig_priority(r, 1, 1000);
    assert_int_equal(model_subscribe(&r->m, r->s, 1, P, U, true), AOI_OK);
    rig_override(r, P, 9, AOI_OVERRIDE_SHOW);
    assert_string_equal(rig_tells(r, P), "E1(1,0) E9(500,0) E1000(0,0)");
    most(r, 1);
    assert_string_equal(rig_tells(r, P), "L1 L9"); /* both come first; U is nearer */
    rig_override(r, P, 9, AOI_OVERRIDE_NONE);
    most(r, 2);
    assert_string_equal(rig_tells(r, P), "E1(1,0)");
}

CASE(the_measure_is_the_nearest_unit_even_a_blind_one_or_the_middle_of_the_viewport)
{
    most(r, 1);
    rig_viewport(r, P, 0, 0, 100, 20);
    rig_add(r, 1, 45, 10, 0);
    rig_add(r, 2, 60, 10, 0);
    assert_string_equal(rig_tells(r, P), "E1(45,10)");
    rig_add(r, U, 61, 30, 0); /* sees nothing */
    rig_subscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "");
    rig_move(r, U, 61, 10);
    assert_string_equal(rig_tells(r, P), "L1 E1000(61,10)"); /* it is in the viewport itself, and its distance to itself is 0 */
    rig_layers(r, U, 2);
    rig_open(r, P, (struct aoi_player_settings){.mask = 1});
    assert_string_equal(rig_tells(r, P), "L1000 E2(60,10)");
    rig_unview(r, P);
    assert_string_equal(rig_tells(r, P), "L2");
}

CASE(a_players_own_max_view_goes_before_that_of_the_space)
{
    most(r, 2);
    watch_from_origin(r);
    rig_open(r, Q, (struct aoi_player_settings){.max_view = 4});
    rig_subscribe(r, Q, U);
    for (uint64_t id = 1; id <= 5; id++) rig_add(r, id, (float)id, 0, 0);
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->enters, 2);
    assert_int_equal(rig_told(r, Q)->enters, 4);
    rig_open(r, Q, (struct aoi_player_settings){.max_view = 1});
    assert_string_equal(rig_tells(r, Q), "L2 L3 L4");
    assert_int_equal(model_player_settings(&r->m, r->s, 1, Q, &(struct aoi_player_settings){.max_view = AOI_MAX_VIEW + 1}), AOI_EINVAL);
    assert_string_equal(rig_tells(r, Q), "");
}

CASE(a_crowd_that_moves_about_settles_with_nobody_outside_above_anybody_inside)
{
    rig_space(r, &(struct aoi_settings){.max_view = 10, .max_enter_per_flush = 3, .leave_margin = 5}, NULL);
    for (uint64_t id = 1; id <= 120; id++) {
        rig_add(r, id, (float)(id * 37 % 50), (float)(id * 13 % 50), 12);
        rig_subscribe(r, id, id);
        if (id % 10 == 0) rig_priority(r, id, (uint32_t)id % 3);
    }
    for (uint32_t round = 0; round < 6; round++) {
        for (uint64_t id = 1; id <= 120; id++) rig_move(r, id, (float)((id * 37 + round * id) % 50), (float)((id * 13 + 7 * round * id) % 50));
        if (round % 2) rig_flush(r);
        model_converge(&r->m, r->s);
    }
}

/* ------------------------------------------------------------------------------------------------------------- max_enter_per_flush */

CASE(an_enter_budget_lets_the_best_in_first_and_the_rest_at_the_next_flushes)
{
    rig_set(r, (struct aoi_space_change){.has_max_enter_per_flush = true, .max_enter_per_flush = 2});
    watch_from_origin(r);
    for (uint64_t id = 1; id <= 5; id++) rig_add(r, id, 10 - (float)id, 0, 0);
    rig_priority(r, 1, 1);
    assert_true(rig_flush(r));
    assert_string_equal(rig_told(r, P)->text, " E1(9,0) E5(5,0)");
    rig_move(r, 3, 7, 1); /* waits for its enter, which tells it as it is */
    rig_remove(r, 5);
    assert_string_equal(rig_tells(r, P), "L5 E3(7,1) E4(6,0)"); /* leaves are not held up */
    assert_false(rig_flush(r));
    assert_string_equal(rig_told(r, P)->text, " E2(8,0)");
    for (uint64_t id = 11; id <= 15; id++) rig_add(r, id, (float)id - 10, 0, 0);
    rig_flush(r);
    assert_int_equal(model_resync(&r->m, r->s, 1, P), AOI_OK);
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->enters, 9); /* a full delta asks for no budget */
}

CASE(a_players_own_enter_budget_goes_before_that_of_the_space)
{
    rig_set(r, (struct aoi_space_change){.has_max_enter_per_flush = true, .max_enter_per_flush = 1});
    watch_from_origin(r);
    rig_open(r, Q, (struct aoi_player_settings){.max_enter_per_flush = 3});
    rig_subscribe(r, Q, U);
    for (uint64_t id = 1; id <= 5; id++) rig_add(r, id, (float)id, 0, 0);
    assert_true(rig_flush(r));
    assert_string_equal(rig_told(r, P)->text, " E1(1,0)");
    assert_string_equal(rig_told(r, Q)->text, " E1(1,0) E2(2,0) E3(3,0)");
    assert_true(rig_flush(r));
    assert_true(rig_flush(r));
    assert_true(rig_flush(r));
    assert_false(rig_flush(r));
}

/* ------------------------------------------------------------------------------------------------------------- update_tiers */

CASE(far_ones_are_updated_less_often_and_the_last_place_is_always_told)
{
    rig_space(r, &(struct aoi_settings){0}, NULL);
    rig_tiers(r, "10:1 20:2 *:4");
    rig_add(r, U, 0, 0, 100);
    rig_subscribe(r, P, U);
    rig_add(r, 1, 9, 0, 0);
    rig_add(r, 2, 19, 0, 0);
    rig_add(r, 3, 29, 0, 0);
    rig_flush(r);
    int updates[4] = {0};
    for (int i = 1; i <= 12; i++) {
        for (uint64_t id = 1; id <= 3; id++) rig_move(r, id, r->s->entities.at[id - 1].v.pos[0], (float)i / 16);
        rig_flush(r);
        assert_int_equal(rig_told(r, P)->enters + rig_told(r, P)->leaves, 0);
        for (uint64_t id = 1; id <= 3; id++) updates[id] += model_told(model_player(r->s, P), id)->moved && r->told.n > 0;
    }
    model_converge(&r->m, r->s);
    assert_int_equal(updates[1], 12);
    assert_int_equal(updates[2], 6);
    assert_int_equal(updates[3], 3);
    rig_move(r, U, -1, 0);
    rig_move(r, 2, 19, 0);
    rig_move(r, 1, 9, 0);
    model_converge(&r->m, r->s);
    assert_int_equal(rig_why(r, P, 1).period, 1); /* inclusive */
    assert_int_equal(rig_why(r, P, 2).period, 2);
    assert_int_equal(rig_why(r, P, 3).period, 4);
    assert_false(rig_flush(r));
}

CASE(tiers_delay_neither_enters_nor_leaves_nor_changes_of_state)
{
    rig_tiers(r, "*:1000");
    rig_add(r, U, 0, 0, 100);
    rig_subscribe(r, P, U);
    rig_add(r, M, 50, 0, 0);
    assert_string_equal(rig_tells(r, P), "E21(50,0)");
    rig_move(r, M, 51, 0);
    rig_payload(r, M, "a");
    rig_layers(r, M, 3);
    assert_true(rig_flush(r)); /* its place is still to be told */
    assert_string_equal(rig_told(r, P)->text, " P21=a Y21:3");
    rig_move(r, M, 500, 0);
    assert_string_equal(rig_tells(r, P), "L21");
    assert_false(rig_flush(r));
    rig_move(r, M, 52, 0);
    assert_string_equal(rig_tells(r, P), "E21(52,0)=a");
    rig_move(r, M, 53, 0);
    assert_string_equal(rig_tells(r, P), "");
    rig_tiers(r, "");
    assert_string_equal(rig_tells(r, P), "U21(53,0)"); /* due now */
    assert_false(rig_flush(r));
}

CASE(a_player_without_unit_and_viewport_is_in_the_last_tier)
{
    rig_tiers(r, "1000000:1000 *:1");
    rig_open(r, P, (struct aoi_player_settings){0});
    rig_add(r, M, 1, 0, 0);
    rig_override(r, P, M, AOI_OVERRIDE_SHOW);
    rig_flush(r);
    for (int i = 0; i < 5; i++) {
        rig_move(r, M, (float)i + 2, 0);
        rig_flush(r);
        assert_int_equal(rig_told(r, P)->updates, 1);
    }
    rig_viewport(r, P, 0, 0, 1, 1);
    rig_move(r, M, 3, 0);
    assert_string_equal(rig_tells(r, P), "");
}

CASE(with_tiers_there_is_room_for_the_rows_of_many_that_changed_their_cells_and_of_many_that_have_appeal)
{
    enum { UNIT = 1, PLAIN = 300, LARGE = 400 };
    rig_tiers(r, "1000:1 *:2");
    rig_add(r, UNIT, 0, 0, 500);
    for (uint64_t i = 0; i < PLAIN + LARGE; i++) {
        rig_add(r, 2 + i, (float)(i % 20), (float)(i / 20), 0);
        if (i >= PLAIN) rig_appeal(r, 2 + i, 10);
    }
    rig_subscribe(r, 1, UNIT);
    rig_flush(r);
    rig_flush(r);
    for (uint64_t i = 0; i < PLAIN + LARGE; i++) rig_move(r, 2 + i, (float)(i % 20) + 64, (float)(i / 20));
    rig_flush(r);
    assert_int_equal(rig_told(r, 1)->updates, PLAIN + LARGE);
}

CASE(whose_turn_it_is_by_tiers_does_not_depend_on_how_many_flushes_there_were)
{
    rig_tiers(r, "1000:1 *:2");
    rig_add(r, U, 0, 0, 500);
    rig_subscribe(r, P, U);
    for (uint64_t id = 1; id <= 8; id++) rig_add(r, id, 1, 1, 0);
    rig_core(r)->flush = r->s->flush = ((uint64_t)1 << 32) - 4;
    rig_flush(r);
    for (int i = 1; i <= 6; i++) { /* to a cell where nobody has stood, so to a new page */
        for (uint64_t id = 1; id <= 8; id++) rig_move(r, id, (float)i * 40, 1);
        rig_flush(r);
        assert_int_equal(rig_told(r, P)->updates, 8);
    }
}

CASE(tiers_are_written_as_text_and_read_back)
{
    static const char *const good[][2] = {
        {"", ""},       {"30:1 60:2 *:4", "30:1 60:2 *:4"},         {" 30:1   60:2 ", "30:1 60:2 *:1"},
        {"*:3", "*:3"}, {"0:1 0.5:1000000", "0:1 0.5:1000000 *:1"}, {"1:1 2:2 3:3 4:4 5:5 6:6 7:7 8:8 *:9", "1:1 2:2 3:3 4:4 5:5 6:6 7:7 8:8 *:9"}};
    static const char *const bad[] = {"30",
                                      "30:",
                                      "30:0",
                                      "30:-1",
                                      "x:1",
                                      ":1",
                                      "30:1 30:2",
                                      "30:1 20:2",
                                      "*:4 30:1",
                                      "nan:1",
                                      "inf:1",
                                      "-1:1",
                                      "30:1,60:2",
                                      "*:0",
                                      "30:1000001",
                                      "*:99999999999999999999",
                                      "1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1",
                                      "*",
                                      "30:1x",
                                      "1e99:1"};
    char text[AOI_TIERS_TEXT];
    struct aoi_tiers t;
    const char *why;
    assert_non_null(r);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(aoi_tiers_parse(good[i][0], &t, &why), AOI_OK);
        aoi_tiers_print(&t, text);
        assert_string_equal(text, good[i][1]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        why = NULL;
        assert_int_equal(aoi_tiers_parse(bad[i], &t, &why), AOI_EINVAL);
        assert_non_null(why);
    }
    static const char *const says[][2] = {{"30", "DISTANCE:PERIOD with blanks between them and, last, *:PERIOD"},
                                          {"30:1,60:2", "DISTANCE:PERIOD"},
                                          {"20:1 40:2 *:4 50:5", "* is for what is further away than every distance, so that it comes last"},
                                          {"*:4 *:5", "it comes last"},
                                          {"*:0", "a period of update_tiers is 1 to 1000000"},
                                          {"30:0", "a period of update_tiers is 1 to 1000000"},
                                          {"*:99999999999999999999", "a period of update_tiers is 1 to 1000000"},
                                          {"30:1 20:2", "ascend"}};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        assert_int_equal(aoi_tiers_parse(says[i][0], &t, &why), AOI_EINVAL);
        if (strstr(why, says[i][1]) == NULL) fail_msg("%s: \"%s\" does not say \"%s\"", says[i][0], why, says[i][1]);
    }
    t = (struct aoi_tiers){.n = AOI_TIERS_MAX, .beyond = AOI_PERIOD_MAX};
    for (uint32_t i = 0; i < AOI_TIERS_MAX; i++) {
        t.at[i].distance = nextafterf(1.17549435e-38f * (float)(i + 2), 1);
        t.at[i].period = AOI_PERIOD_MAX;
    }
    struct aoi_tiers back;
    aoi_tiers_print(&t, text); /* the longest text there is */
    assert_int_equal(aoi_tiers_parse(text, &back, &why), AOI_OK);
    for (uint32_t i = 0; i < AOI_TIERS_MAX; i++) assert_true(back.at[i].distance == t.at[i].distance);
}

/* ------------------------------------------------------------------------------------------------------------- appeal */

CASE(a_castle_is_seen_from_afar_by_units_and_viewports_and_a_dot_beside_it_is_not)
{
    for (uint32_t shape = AOI_SHAPE_BOX; shape <= AOI_SHAPE_CELLS; shape++) {
        rig_space(r, &(struct aoi_settings){.shape = shape}, NULL);
        bool cells = shape == AOI_SHAPE_CELLS; /* units ignore it there */
        r->places = false;
        watch_from_origin(r);
        rig_viewport(r, Q, -10, -10, 10, 10);
        rig_add(r, 1, 2000, 0, 0);
        rig_add(r, 2, 2000, 0, 0);
        rig_appeal(r, 1, 1990);
        rig_flush(r);
        assert_string_equal(rig_told(r, P)->text, cells ? "" : " E1");
        assert_string_equal(rig_told(r, Q)->text, " E1 E1000");
        rig_move(r, 1, 2001, 0);
        assert_string_equal(rig_tells(r, Q), "L1");
        assert_string_equal(rig_told(r, P)->text, cells ? "" : " L1");
        rig_appeal(r, 1, 1991);
        rig_flush(r);
        assert_string_equal(rig_told(r, Q)->text, " E1");
        rig_move(r, 2, 1, 0);
        rig_appeal(r, 1, 0);
        rig_flush(r);
        assert_string_equal(rig_told(r, Q)->text, " L1 E2");
        assert_int_equal(model_query_box(&r->m, r->s, (const float[3]){-100, -100, 0}, (const float[3]){100, 100, 0}, 0, 10),
                         2); /* where they are, not how large */
    }
}

CASE(many_players_are_served_whose_units_all_have_appeal_where_nothing_else_is)
{
    for (uint64_t i = 1; i <= 20; i++) {
        const struct aoi_entity e = {.id = i, .pos = {(float)i, 0, 0}, .radius = 100, .layers = 1, .appeal = 5};
        assert_int_equal(model_entity_add(&r->m, r->s, 1, AOI_ADD_NEW, &e), AOI_OK);
        rig_subscribe(r, i, i);
    }
    rig_flush(r);
    for (uint64_t i = 1; i <= 20; i++) rig_move(r, i, (float)i, 1);
    rig_flush(r);
    for (uint64_t i = 1; i <= 20; i++) rig_move(r, i, (float)i, 2);
    rig_flush(r);
    for (uint64_t i = 1; i <= 20; i++) assert_int_equal(rig_told(r, i)->updates, 19);
}

CASE(a_castle_moves_changes_and_ends_like_anything_else)
{
    watch_from_origin(r);
    struct aoi_entity castle = {.id = 1, .pos = {300, 400, 0}, .appeal = 1000, .payload = "a", .payload_len = 1};
    assert_int_equal(model_entity_add(&r->m, r->s, 1, AOI_ADD_NEW, &castle), AOI_OK);
    assert_string_equal(rig_tells(r, P), "E1(300,400)=a");
    rig_move(r, 1, 301, 400);
    assert_string_equal(rig_tells(r, P), "U1(301,400)");
    rig_payload(r, 1, "b");
    rig_layers(r, 1, 3);
    assert_string_equal(rig_tells(r, P), "P1=b Y1:3");
    rig_move(r, U, -800, 0);
    assert_string_equal(rig_tells(r, P), "L1");
    rig_move(r, U, 0, 0);
    assert_string_equal(rig_tells(r, P), "E1(301,400)=b");
    rig_appeal(r, 1, 10);
    rig_appeal(r, 1, 1000);
    assert_string_equal(rig_tells(r, P), "");
    rig_remove(r, 1);
    assert_string_equal(rig_tells(r, P), "L1");
    assert_int_equal(model_entity_set_appeal(&r->m, r->s, 1, U, NAN), AOI_EINVAL);
    assert_int_equal(model_entity_set_appeal(&r->m, r->s, 1, U, -1), AOI_EINVAL);
    assert_int_equal(model_entity_set_appeal(&r->m, r->s, 2, U, 1), AOI_EOWNER);
    assert_int_equal(model_entity_set_appeal(&r->m, r->s, 1, 77, 1), AOI_ENOENTITY);
}

/* ------------------------------------------------------------------------------------------------------------- presence_only */

CASE(a_player_that_wants_presence_only_gets_all_but_updates_and_one_full_delta_when_it_wants_more)
{
    watch_from_origin(r);
    rig_open(r, P, (struct aoi_player_settings){.presence_only = true});
    rig_add(r, M, 1, 0, 0);
    assert_string_equal(rig_tells(r, P), "E21(1,0)");
    rig_move(r, M, 2, 0);
    assert_false(rig_flush(r)); /* and nothing is left to tell */
    assert_int_equal(r->told.n, 0);
    rig_payload(r, M, "a");
    rig_layers(r, M, 3);
    rig_cast(r, M, "bang");
    assert_string_equal(rig_tells(r, P), "P21=a Y21:3 M21=bang");
    rig_move(r, M, 20, 0);
    assert_string_equal(rig_tells(r, P), "L21");
    rig_move(r, M, 3, 0);
    assert_string_equal(rig_tells(r, P), "E21(3,0)=a");
    rig_move(r, M, 4, 0);
    rig_flush(r);
    rig_open(r, P, (struct aoi_player_settings){0});
    assert_string_equal(rig_tells(r, P), "full E21(4,0)=a");
    rig_move(r, M, 5, 0);
    assert_string_equal(rig_tells(r, P), "U21(5,0)");
    rig_open(r, P, (struct aoi_player_settings){.presence_only = true});
    assert_string_equal(rig_tells(r, P), "");
}

CASE(a_viewport_of_presence_only_that_slides_tells_the_rims)
{
    rig_open(r, P, (struct aoi_player_settings){.presence_only = true});
    for (uint64_t i = 0; i < 1600; i++) rig_add(r, 1 + i, (float)(i % 40) * 10, (float)(i / 40) * 10, 0);
    rig_viewport(r, P, 0, 0, 195, 395);
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->enters, 20 * 40);
    for (int i = 1; i <= 20; i++) {
        rig_viewport(r, P, (float)i * 10 - 5, 0, (float)i * 10 + 195, 395);
        rig_move(r, 20 * 40 + (uint64_t)i, 195, 205);
        rig_flush(r);
        assert_int_equal(rig_told(r, P)->updates, 0);
        assert_true(rig_told(r, P)->enters >= 39 - (size_t)i && rig_told(r, P)->leaves >= 39 - (size_t)i);
    }
}

/* ------------------------------------------------------------------------------------------------------------- overrides */

CASE(a_hidden_entity_leaves_at_once_and_a_shown_one_is_told_wherever_it_is)
{
    watch_from_origin(r);
    rig_subscribe(r, Q, U);
    rig_add(r, 1, 1, 0, 0);
    rig_add(r, 2, 9000, 0, 0);
    rig_layers(r, 2, 4);
    rig_open(r, P, (struct aoi_player_settings){.mask = 1});
    rig_flush(r);
    rig_override(r, P, 1, AOI_OVERRIDE_HIDE);
    rig_override(r, P, 2, AOI_OVERRIDE_SHOW);
    assert_string_equal(rig_tells(r, P), "L1 E2(9000,0)"); /* whatever its layers */
    assert_string_equal(rig_told(r, Q)->text, "");
    rig_move(r, 1, 2, 0);
    rig_move(r, 2, -9000, 0);
    rig_payload(r, 2, "a");
    assert_string_equal(rig_tells(r, P), "U2(-9000,0) P2=a");
    assert_string_equal(rig_told(r, Q)->text, " U1(2,0)");
    rig_override(r, P, 1, AOI_OVERRIDE_NONE);
    rig_override(r, P, 2, AOI_OVERRIDE_HIDE);
    assert_string_equal(rig_tells(r, P), "L2 E1(2,0)");
    rig_override(r, P, 2, AOI_OVERRIDE_NONE);
    rig_override(r, P, 2, AOI_OVERRIDE_NONE);
    rig_override(r, P, 1, AOI_OVERRIDE_SHOW);
    rig_override(r, P, 1, AOI_OVERRIDE_NONE);
    assert_string_equal(rig_tells(r, P), "");
}

CASE(an_override_waits_for_its_entity_and_survives_it_until_none_or_the_end_of_the_player)
{
    rig_open(r, P, (struct aoi_player_settings){0});
    rig_override(r, P, 7, AOI_OVERRIDE_SHOW);
    assert_string_equal(rig_tells(r, P), "");
    rig_add(r, 7, 1, 0, 0);
    assert_string_equal(rig_tells(r, P), "E7(1,0)");
    rig_remove(r, 7);
    assert_string_equal(rig_tells(r, P), "L7");
    rig_add(r, 7, 2, 0, 0);
    assert_string_equal(rig_tells(r, P), "E7(2,0)");
    rig_remove(r, 7);
    rig_add(r, 7, 3, 0, 0);
    assert_string_equal(rig_tells(r, P), "L7 E7(3,0)");
    assert_int_equal(model_player_close(&r->m, r->s, 1, P), AOI_OK);
    rig_open(r, P, (struct aoi_player_settings){0});
    assert_string_equal(rig_tells(r, P), "");
    rig_add(r, U, 0, 0, 10);
    rig_subscribe(r, P, U);
    rig_override(r, P, 8, AOI_OVERRIDE_HIDE);
    rig_add(r, 8, 1, 1, 0);
    assert_string_equal(rig_tells(r, P), "E7(3,0)");
    rig_override(r, P, 8, AOI_OVERRIDE_NONE);
    assert_string_equal(rig_tells(r, P), "E8(1,1)");
}

CASE(include_self_beats_hide_and_nothing_else_does)
{
    watch_from_origin(r);
    rig_override(r, P, U, AOI_OVERRIDE_HIDE);
    assert_int_equal(model_subscribe(&r->m, r->s, 1, P, U, true), AOI_OK);
    rig_add(r, V, 1, 0, 10);
    rig_subscribe(r, P, V);
    assert_string_equal(rig_tells(r, P), "E1000(0,0) E1001(1,0)");
    rig_subscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "L1000"); /* hidden, though V sees it */
    rig_override(r, P, U, AOI_OVERRIDE_SHOW);
    rig_move(r, V, 5000, 0);
    assert_string_equal(rig_tells(r, P), "L1001 E1000(0,0)"); /* a unit is shown to its own player, too */
}

CASE(overrides_are_for_open_players_their_owner_and_so_many)
{
    struct aoi_limits limits = rig_limits();
    limits.max_overrides = 2;
    rig_space(r, NULL, &limits);
    assert_int_equal(model_player_override(&r->m, r->s, 1, P, 7, AOI_OVERRIDE_SHOW), AOI_ENOPLAYER);
    rig_open(r, P, (struct aoi_player_settings){0});
    assert_int_equal(model_player_override(&r->m, r->s, 2, P, 7, AOI_OVERRIDE_SHOW), AOI_EOWNER);
    assert_int_equal(model_player_override(&r->m, r->s, 1, P, 0, AOI_OVERRIDE_SHOW), AOI_EINVAL);
    assert_int_equal(model_player_override(&r->m, r->s, 1, P, 7, (enum aoi_override)4), AOI_EINVAL);
    rig_override(r, P, 7, AOI_OVERRIDE_SHOW);
    rig_override(r, P, 8, AOI_OVERRIDE_HIDE);
    assert_int_equal(model_player_override(&r->m, r->s, 1, P, 9, AOI_OVERRIDE_HIDE), AOI_ELIMIT);
    rig_override(r, P, 9, AOI_OVERRIDE_NONE);
    rig_override(r, P, 8, AOI_OVERRIDE_SHOW); /* another kind for the same */
    rig_override(r, P, 7, AOI_OVERRIDE_NONE);
    rig_override(r, P, 9, AOI_OVERRIDE_HIDE);
    rig_add(r, 7, 0, 0, 0);
    rig_add(r, 8, 0, 0, 0);
    assert_string_equal(rig_tells(r, P), "E8(0,0)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_told_stays_within_the_margin_and_what_was_not_told_does_not_enter_there),
        cmocka_unit_test(a_new_subscription_knows_nothing_of_the_margin_of_the_old_one),
        cmocka_unit_test(a_margin_that_shrinks_or_ends_acts_at_the_next_flush_although_nothing_moves),
        cmocka_unit_test(circling_in_the_margin_is_no_leave_and_beyond_it_is_one),
        cmocka_unit_test(with_a_margin_flapping_across_the_edge_or_a_cell_line_is_no_change_at_all),
        cmocka_unit_test(cells_with_a_margin_keep_what_is_that_near_the_block),
        cmocka_unit_test(a_players_own_margin_goes_before_that_of_the_space),
        cmocka_unit_test(what_entered_stays_for_its_time_and_leaves_then_although_nothing_changes),
        cmocka_unit_test(what_entered_before_a_stay_was_asked_for_counts_as_long_ago),
        cmocka_unit_test(no_stay_for_what_is_gone_hidden_masked_or_outranked_nor_for_a_player_that_sees_nothing),
        cmocka_unit_test(a_stay_keeps_whatever_brought_it),
        cmocka_unit_test(a_full_delta_does_not_make_what_it_restates_new),
        cmocka_unit_test(of_too_many_the_nearest_are_seen_and_who_is_seen_is_worth_a_fifth_of_the_way),
        cmocka_unit_test(of_equally_near_ones_the_lower_id_is_seen_and_priority_goes_before_distance),
        cmocka_unit_test(units_with_include_self_and_shown_ones_come_first_but_count),
        cmocka_unit_test(the_measure_is_the_nearest_unit_even_a_blind_one_or_the_middle_of_the_viewport),
        cmocka_unit_test(a_players_own_max_view_goes_before_that_of_the_space),
        cmocka_unit_test(a_crowd_that_moves_about_settles_with_nobody_outside_above_anybody_inside),
        cmocka_unit_test(an_enter_budget_lets_the_best_in_first_and_the_rest_at_the_next_flushes),
        cmocka_unit_test(a_players_own_enter_budget_goes_before_that_of_the_space),
        cmocka_unit_test(far_ones_are_updated_less_often_and_the_last_place_is_always_told),
        cmocka_unit_test(tiers_delay_neither_enters_nor_leaves_nor_changes_of_state),
        cmocka_unit_test(a_player_without_unit_and_viewport_is_in_the_last_tier),
        cmocka_unit_test(with_tiers_there_is_room_for_the_rows_of_many_that_changed_their_cells_and_of_many_that_have_appeal),
        cmocka_unit_test(whose_turn_it_is_by_tiers_does_not_depend_on_how_many_flushes_there_were),
        cmocka_unit_test(tiers_are_written_as_text_and_read_back),
        cmocka_unit_test(a_castle_is_seen_from_afar_by_units_and_viewports_and_a_dot_beside_it_is_not),
        cmocka_unit_test(many_players_are_served_whose_units_all_have_appeal_where_nothing_else_is),
        cmocka_unit_test(a_castle_moves_changes_and_ends_like_anything_else),
        cmocka_unit_test(a_player_that_wants_presence_only_gets_all_but_updates_and_one_full_delta_when_it_wants_more),
        cmocka_unit_test(a_viewport_of_presence_only_that_slides_tells_the_rims),
        cmocka_unit_test(a_hidden_entity_leaves_at_once_and_a_shown_one_is_told_wherever_it_is),
        cmocka_unit_test(an_override_waits_for_its_entity_and_survives_it_until_none_or_the_end_of_the_player),
        cmocka_unit_test(include_self_beats_hide_and_nothing_else_does),
        cmocka_unit_test(overrides_are_for_open_players_their_owner_and_so_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
