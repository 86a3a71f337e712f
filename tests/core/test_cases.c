/* test_cases.c: faults that systems of this kind really had, each on both indexes.
 *
 * The usual rig: a 2D box space with cells of 32; player P subscribes through unit U at (0,0) of radius 10. Beside what a case asserts, the model judges every
 * delta and reply.
 */
#include <float.h>
#include <math.h>

#include "rig.h"

enum { P = 1, Q = 2, U = 1000, V = 1001 };

static void watch_from_origin(struct rig *r)
{
    rig_add(r, U, 0, 0, 10);
    rig_subscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "");
}

/* ------------------------------------------------------------------------------------------------------------- differences of states */

CASE(between_two_flushes_in_and_out_says_nothing_and_only_the_last_place_counts)
{
    watch_from_origin(r);
    rig_add(r, 21, 40, 0, 0);
    assert_string_equal(rig_tells(r, P), "");
    rig_move(r, 21, 4, 0);
    rig_move(r, 21, 40, 0);
    assert_string_equal(rig_tells(r, P), "");
    rig_move(r, 21, 4, 0);
    assert_string_equal(rig_tells(r, P), "E21(4,0)");
    rig_move(r, 21, 40, 0);
    rig_move(r, 21, 5, 0);
    assert_string_equal(rig_tells(r, P), "U21(5,0)");
    rig_move(r, 21, 40, 0);
    assert_string_equal(rig_tells(r, P), "L21");
    rig_move(r, 21, 4, 0);
    rig_move(r, 21, 40, 0);
    rig_move(r, 21, 6, 0);
    assert_string_equal(rig_tells(r, P), "E21(6,0)");
}

CASE(removed_and_added_again_is_a_leave_and_an_enter_in_one_delta)
{
    static const enum aoi_add_mode modes[] = {AOI_ADD_NEW, AOI_ADD_UPSERT};
    watch_from_origin(r);
    rig_add_by(r, 1, AOI_ADD_NEW, 7, 3, 0, 0, "a");
    assert_string_equal(rig_tells(r, P), "E7(3,0)=a");
    for (int i = 0; i < 2; i++) {
        rig_remove(r, 7);
        assert_int_equal(rig_add_by(r, 1, modes[i], 7, 4, 0, 0, "b"), AOI_OK);
        assert_string_equal(rig_tells(r, P), "L7 E7(4,0)=b");
    }
    rig_remove(r, 7);
    rig_add(r, 7, 4, 0, 0);
    rig_remove(r, 7);
    rig_add(r, 7, 4, 0, 0);
    assert_string_equal(rig_tells(r, P), "L7 E7(4,0)");
    rig_remove(r, 7);
    rig_add(r, 7, 500, 0, 0);
    assert_string_equal(rig_tells(r, P), "L7");
    rig_add(r, 8, 1, 1, 0);
    rig_remove(r, 8);
    assert_string_equal(rig_tells(r, P), "");
}

CASE(an_upsert_of_a_known_id_is_neither_leave_nor_enter)
{
    watch_from_origin(r);
    rig_add_by(r, 1, AOI_ADD_NEW, 7, 3, 0, 0, "a");
    rig_flush(r);
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_UPSERT, 7, 4, 0, 0, "b"), AOI_OK);
    assert_string_equal(rig_tells(r, P), "U7(4,0) P7=b");
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_UPSERT, 7, 4, 0, 0, "b"), AOI_OK);
    assert_string_equal(rig_tells(r, P), "");
    assert_int_equal(rig_add_by(r, 2, AOI_ADD_UPSERT, 7, 5, 0, 0, "c"), AOI_EOWNER);
    assert_string_equal(rig_tells(r, P), "");
}

CASE(after_a_long_silence_a_remove_is_told_once_and_its_place_can_be_taken)
{
    watch_from_origin(r);
    rig_add(r, 30, 3, 3, 0);
    assert_string_equal(rig_tells(r, P), "E30(3,3)");
    for (int i = 0; i < 200; i++) assert_string_equal(rig_tells(r, P), "");
    rig_remove(r, 30);
    assert_int_equal(model_entity_remove(&r->m, r->s, 1, 30), AOI_ENOENTITY);
    assert_string_equal(rig_tells(r, P), "L30");
    rig_add(r, 31, 3, 3, 0);
    assert_string_equal(rig_tells(r, P), "E31(3,3)");
}

CASE(exactly_one_leave_of_what_left_and_then_ended_and_no_update_after_it)
{
    enum { M = 21, N = 22 };
    watch_from_origin(r);
    rig_add(r, M, 4, 0, 0);
    rig_add(r, N, 400, 0, 0);
    assert_string_equal(rig_tells(r, P), "E21(4,0)");
    rig_move(r, M, 40, 0);
    assert_string_equal(rig_tells(r, P), "L21");
    rig_move(r, M, 41, 0);
    assert_string_equal(rig_tells(r, P), "");
    rig_remove(r, M);
    rig_remove(r, N);
    assert_string_equal(rig_tells(r, P), "");
    rig_add(r, M, 40, 0, 0);
    rig_flush(r);
    rig_move(r, M, 4, 0);
    rig_move(r, M, 40, 0);
    rig_remove(r, M);
    assert_string_equal(rig_tells(r, P), "");
    rig_add(r, M, 4, 0, 0);
    rig_flush(r);
    rig_move(r, M, 5, 0);
    rig_move(r, M, 40, 0);
    rig_remove(r, M);
    assert_string_equal(rig_tells(r, P), "L21");
}

/* ------------------------------------------------------------------------------------------------------------- what is a legal value */

CASE(id_zero_is_refused_the_origin_is_a_place_and_radius_zero_sees_nothing)
{
    watch_from_origin(r);
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_NEW, 0, 1, 1, 0, NULL), AOI_EINVAL);
    assert_int_equal(rig_move_by(r, 1, 0, 1, 1), AOI_EINVAL);
    assert_int_equal(model_entity_remove(&r->m, r->s, 1, 0), AOI_EINVAL);
    assert_int_equal(model_subscribe(&r->m, r->s, 1, 0, U, false), AOI_EINVAL);
    assert_int_equal(model_subscribe(&r->m, r->s, 1, P, 0, false), AOI_EINVAL);
    assert_int_equal(model_player_open(&r->m, r->s, 1, 0, 0), AOI_EINVAL);
    rig_add(r, 5, 0, 0, 0);
    rig_subscribe(r, Q, 5);
    assert_string_equal(rig_tells(r, P), "E5(0,0)");
    assert_string_equal(rig_told(r, Q)->text, "");
    rig_move(r, 5, 1, 0);
    assert_string_equal(rig_tells(r, P), "U5(1,0)");
    rig_radius(r, 5, 1);
    assert_string_equal(rig_tells(r, Q), "E1000(0,0)");
    rig_radius(r, 5, -0.0f);
    assert_string_equal(rig_tells(r, Q), "L1000");
}

CASE(what_is_not_a_number_or_out_of_bounds_is_refused_and_changes_nothing)
{
    watch_from_origin(r);
    rig_add(r, 5, 1, 1, 3);
    rig_flush(r);
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_NEW, 6, NAN, 0, 0, NULL), AOI_EINVAL);
    assert_int_equal(rig_move_by(r, 1, 5, INFINITY, 1), AOI_EINVAL);
    assert_int_equal(rig_move_by(r, 1, 5, 1, -INFINITY), AOI_EINVAL);
    assert_int_equal(rig_move_by(r, 1, 5, 3e38f, 3e38f), AOI_EBOUNDS);
    assert_int_equal(rig_move_by(r, 1, 5, 0, -16777218.0f), AOI_EBOUNDS);
    assert_int_equal(model_entity_set_radius(&r->m, r->s, 1, 5, NAN), AOI_EINVAL);
    assert_int_equal(model_entity_set_radius(&r->m, r->s, 1, 5, -1), AOI_EINVAL);
    assert_int_equal(model_entity_set_radius(&r->m, r->s, 1, 5, INFINITY), AOI_EINVAL);
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_UPSERT, 5, 2, 2, NAN, NULL), AOI_EINVAL);
    assert_int_equal(model_viewport_set(&r->m, r->s, 1, P, (const float[3]){NAN, 0, 0}, (const float[3]){1, 1, 0}), AOI_EINVAL);
    assert_int_equal(model_query_box(&r->m, r->s, (const float[3]){0, NAN, 0}, (const float[3]){1, 1, 0}, 0, 10), AOI_EINVAL);
    assert_int_equal(model_query_radius(&r->m, r->s, (const float[3]){0, 0, 0}, NAN, 0, 10), AOI_EINVAL);
    assert_false(aoi_space_dirty(rig_core(r)));
    assert_string_equal(rig_tells(r, P), "");
    assert_int_equal(model_entity_get(&r->m, r->s, 5), AOI_OK);
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_NEW, 7, 1e-40f, -0.0f, 1e-40f, NULL), AOI_OK);
    assert_string_equal(rig_tells(r, P), "E7(0,0)");
    assert_int_equal(model_entity_get(&r->m, r->s, 7), AOI_OK);
}

CASE(a_radius_over_the_limit_and_a_place_out_of_bounds_leave_what_was_before)
{
    struct aoi_limits limits = rig_limits();
    limits.max_radius = 512;
    rig_space(r, &(struct aoi_settings){.bounded = true, .min = {-1000, -1000}, .max = {1000, 1000}}, &limits);
    rig_add(r, U, 0, 0, 10);
    rig_subscribe(r, P, U);
    rig_add(r, 5, 9, 0, 0);
    rig_flush(r);
    assert_int_equal(model_entity_set_radius(&r->m, r->s, 1, U, 600), AOI_EINVAL);
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_NEW, 6, 0, 0, 600, NULL), AOI_EINVAL);
    rig_move(r, U, 2, 0);
    assert_string_equal(rig_tells(r, P), "");
    rig_move(r, U, -2, 0);
    assert_string_equal(rig_tells(r, P), "L5");
    rig_radius(r, U, 512);
    assert_string_equal(rig_tells(r, P), "E5(9,0)");
    rig_move(r, 5, 1000, 1000);
    assert_int_equal(rig_move_by(r, 1, 5, 1000.1f, 0), AOI_EBOUNDS);
    assert_int_equal(rig_move_by(r, 1, 5, 0, -1000.1f), AOI_EBOUNDS);
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_NEW, 6, 0, 1001, 0, NULL), AOI_EBOUNDS);
    rig_move(r, U, 990, 990);
    assert_string_equal(rig_tells(r, P), "U5(1000,1000)");
}

CASE(owners_are_kept_apart_and_one_entity_remains)
{
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_NEW, 9, 1, 1, 0, NULL), AOI_OK);
    assert_int_equal(rig_add_by(r, 2, AOI_ADD_NEW, 9, 2, 2, 0, NULL), AOI_EDUPENTITY);
    assert_int_equal(rig_move_by(r, 2, 9, 2, 2), AOI_EOWNER);
    assert_int_equal(model_entity_remove(&r->m, r->s, 2, 9), AOI_EOWNER);
    assert_int_equal(model_entity_set_radius(&r->m, r->s, 2, 9, 1), AOI_EOWNER);
    assert_int_equal(model_entity_set_layers(&r->m, r->s, 2, 9, 1), AOI_EOWNER);
    assert_int_equal(model_entity_set_payload(&r->m, r->s, 2, 9, "x", 1), AOI_EOWNER);
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_NEW, 9, 1, 1, 0, NULL), AOI_EDUPENTITY);
    assert_int_equal(r->s->entities.n, 1);
    assert_int_equal(model_subscribe(&r->m, r->s, 2, P, 9, false), AOI_OK); /* another's entity may be a unit */
    assert_int_equal(model_subscribe(&r->m, r->s, 1, P, 9, false), AOI_EOWNER);
    assert_int_equal(model_viewport_set(&r->m, r->s, 1, P, (const float[3]){0}, (const float[3]){0}), AOI_EOWNER);
    assert_int_equal(model_player_close(&r->m, r->s, 1, P), AOI_EOWNER);
    assert_int_equal(model_resync(&r->m, r->s, 1, P), AOI_EOWNER);
    assert_int_equal(model_player_open(&r->m, r->s, 1, P, 1), AOI_EOWNER);
    rig_flush(r);
}

/* ------------------------------------------------------------------------------------------------------------- subscriptions */

CASE(the_end_of_a_subscription_or_of_its_unit_is_a_leave_of_all_and_of_nothing_pending)
{
    rig_add(r, U, 0, 0, 10);
    rig_subscribe(r, P, U);
    for (uint64_t id = 1; id <= 5; id++) rig_add(r, id, (float)id, 0, 0);
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->enters, 5);
    rig_unsubscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "L1 L2 L3 L4 L5");
    rig_subscribe(r, P, U);
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->enters, 5);
    rig_remove(r, U);
    assert_string_equal(rig_tells(r, P), "L1 L2 L3 L4 L5");
    rig_add(r, U, 0, 0, 10);
    rig_subscribe(r, P, U);
    rig_flush(r);
    rig_add(r, 6, 6, 0, 0);
    rig_unsubscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "L1 L2 L3 L4 L5");
    for (uint64_t id = 1; id <= 6; id++) rig_move(r, id, (float)id, 1);
    assert_string_equal(rig_tells(r, P), "");
}

CASE(the_order_of_subscribing_and_adding_does_not_matter_and_unknown_ids_are_refused)
{
    watch_from_origin(r);
    rig_add(r, 30, 3, 3, 0);
    assert_string_equal(rig_tells(r, P), "E30(3,3)");
    rig_subscribe(r, Q, U);
    assert_string_equal(rig_tells(r, Q), "E30(3,3)");
    assert_int_equal(model_subscribe(&r->m, r->s, 1, 9, 77, false), AOI_ENOENTITY);
    assert_int_equal(model_player_close(&r->m, r->s, 1, 9), AOI_ENOPLAYER); /* and no player was opened */
    assert_int_equal(model_subscribe(&r->m, r->s, 1, P, 77, false), AOI_ENOENTITY);
    assert_int_equal(rig_move_by(r, 1, 77, 0, 0), AOI_ENOENTITY);
    assert_int_equal(model_unsubscribe(&r->m, r->s, 1, P, 30), AOI_ENOENTITY);
    assert_int_equal(model_unsubscribe(&r->m, r->s, 1, 9, 30), AOI_ENOPLAYER);
    assert_string_equal(rig_tells(r, P), "");
}

CASE(a_unit_is_never_told_through_itself_but_through_another_unit_on_every_path)
{
    watch_from_origin(r);
    rig_move(r, U, 500, 0);
    assert_string_equal(rig_tells(r, P), "");
    rig_radius(r, U, 20);
    rig_payload(r, U, "u");
    assert_string_equal(rig_tells(r, P), "");
    rig_move(r, U, 0, 0);
    rig_add(r, V, 5, 0, 10);
    assert_string_equal(rig_tells(r, P), "E1001(5,0)"); /* V is not P's yet */
    rig_subscribe(r, P, V);
    assert_string_equal(rig_tells(r, P), "E1000(0,0)=u"); /* each sees the other */
    rig_move(r, U, 1, 0);
    assert_string_equal(rig_tells(r, P), "U1000(1,0)");
    rig_move(r, U, -8, 0);
    assert_string_equal(rig_tells(r, P), "L1000"); /* V sees 10 far, U 20 */
    rig_radius(r, V, 13);
    assert_string_equal(rig_tells(r, P), "E1000(-8,0)=u");
    rig_unsubscribe(r, P, V);
    assert_string_equal(rig_tells(r, P), "L1000");
    rig_subscribe(r, P, V);
    rig_flush(r);
    rig_remove(r, U);
    assert_string_equal(rig_tells(r, P), "L1000 L1001");
    rig_remove(r, V);
    assert_string_equal(rig_tells(r, P), "");
}

CASE(include_self_tells_the_unit_whatever_its_layers_and_the_last_subscribe_wins)
{
    watch_from_origin(r);
    assert_int_equal(model_subscribe(&r->m, r->s, 1, P, U, true), AOI_OK);
    assert_string_equal(rig_tells(r, P), "E1000(0,0)");
    assert_int_equal(model_entity_set_layers(&r->m, r->s, 1, U, 0), AOI_OK);
    assert_string_equal(rig_tells(r, P), "Y1000:0");
    rig_radius(r, U, 0);
    assert_string_equal(rig_tells(r, P), "");
    rig_payload(r, U, "u");
    assert_string_equal(rig_tells(r, P), "P1000=u");
    rig_move(r, U, 7, 7);
    assert_string_equal(rig_tells(r, P), "U1000(7,7)");
    assert_int_equal(model_entity_set_layers(&r->m, r->s, 1, U, 4), AOI_OK);
    assert_int_equal(model_player_open(&r->m, r->s, 1, P, 1), AOI_OK); /* a mask that it does not pass */
    assert_string_equal(rig_tells(r, P), "Y1000:4");
    rig_subscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "L1000");
}

CASE(what_two_units_see_stays_when_one_of_them_goes)
{
    enum { M = 21 };
    watch_from_origin(r);
    rig_add(r, V, 15, 0, 10);
    rig_add(r, M, 8, 0, 0);
    rig_subscribe(r, P, V);
    rig_viewport(r, P, 7, -1, 9, 1);
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->enters, 1);
    rig_remove(r, V);
    assert_string_equal(rig_tells(r, P), "");
    rig_unsubscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "");
    assert_int_equal(model_viewport_clear(&r->m, r->s, 1, P), AOI_OK);
    assert_string_equal(rig_tells(r, P), "L21");
}

/* ------------------------------------------------------------------------------------------------------------- moving about */

CASE(a_jump_is_the_leaves_and_enters_of_both_sides_in_one_flush_and_a_null_move_is_nothing)
{
    watch_from_origin(r);
    rig_add(r, 11, 5, 5, 0);
    rig_add(r, 12, 1000, 1000, 10);
    rig_subscribe(r, Q, 12);
    assert_string_equal(rig_tells(r, P), "E11(5,5)");
    rig_move(r, U, 1000, 1004);
    assert_string_equal(rig_tells(r, P), "L11 E12(1000,1000)");
    assert_string_equal(rig_told(r, Q)->text, " E1000(1000,1004)");
    rig_move(r, U, 1000, 1004);
    assert_string_equal(rig_tells(r, P), "");
    assert_int_equal(r->told.n, 0);
}

CASE(fifty_thousand_enter_and_leave_as_the_radius_grows_and_shrinks)
{
    enum { N = 50000 };
    watch_from_origin(r);
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(rig_add_by(r, 1, AOI_ADD_NEW, 10000 + i, 50 + (float)(i % 250) * 3, 50 + (float)(i / 250) * 3, 0, NULL), AOI_OK);
    assert_string_equal(rig_tells(r, P), "");
    rig_radius(r, U, 100000);
    assert_false(rig_flush(r));
    assert_int_equal(rig_told(r, P)->enters, N);
    rig_radius(r, U, 10);
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->leaves, N);

    rig_radius(r, U, 100000); /* through a narrow outbox: many deltas, then all leaves at once although there is no room for them */
    size_t rounds = 0, entered = 0;
    r->m.room[1] = 512 * 1024;
    for (bool pending = true; pending; rounds++) {
        pending = rig_flush(r);
        entered += rig_told(r, P)->enters;
        assert_true(rounds < 20);
    }
    assert_true(rounds > 3);
    assert_int_equal(entered, N);
    rig_radius(r, U, 10);
    r->m.room[1] = 1;
    assert_false(rig_flush(r));
    assert_int_equal(rig_told(r, P)->leaves, N);
}

/* Events without positions of a walk of M past U, everything moved by (shift, shift). */
static void walk_across_zero(struct rig *r, float shift, char *out, size_t size)
{
    static const float walk[][2] = {{-0.3f, -0.3f}, {-31.9f, 0}, {-32, 0},   {-32.1f, 0},  {-40.1f, 0}, {-0.3f, -0.3f}, {0.3f, 0.3f}, {31.9f, 0},
                                    {32, 0},        {40.1f, 0},  {40.3f, 0}, {0.3f, 0.3f}, {0, 0},      {-0.3f, 0.3f},  {0.9f, 1},    {-0.5f, -0.6f}};
    size_t used = 0;
    r->places = false;
    rig_add(r, U, 0.2f + shift, 0.2f + shift, 0.8f);
    rig_subscribe(r, P, U);
    rig_add(r, 21, 500, 500, 0);
    rig_flush(r);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof walk / sizeof *walk; i++) {
            rig_move(r, 21, walk[i][0] + shift, walk[i][1] + shift);
            used += (size_t)snprintf(out + used, size - used, "%s;", rig_tells(r, P));
        }
        rig_radius(r, U, 40);
    }
}

CASE(negative_coordinates_and_zero_are_like_any_other_and_a_shift_changes_no_event)
{
    char near_zero[1024], shifted[1024];
    walk_across_zero(r, 0, near_zero, sizeof near_zero);
    rig_space(r, NULL, NULL);
    walk_across_zero(r, 9984, shifted, sizeof shifted);
    assert_string_equal(near_zero, shifted);
    assert_non_null(strstr(near_zero, "E21"));
    assert_non_null(strstr(near_zero, "L21"));
    rig_space(r, NULL, NULL);
    walk_across_zero(r, -9984, shifted, sizeof shifted);
    assert_string_equal(near_zero, shifted);
}

CASE(flapping_across_an_edge_or_a_cell_line_is_one_net_change_a_flush_and_touches_nobody_else)
{
    watch_from_origin(r);
    for (uint64_t i = 0; i < 500; i++) rig_add(r, 100 + i, (float)(i % 20) - 9.5f, (float)(i / 20 % 20) - 9.5f, 0); /* all in sight */
    rig_add(r, 21, 9.9f, 0, 0);
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->enters, 501);
    for (int i = 0; i < 45; i++) { /* three moves of M every four flushes */
        if (i % 4 != 3) rig_move(r, 21, i % 2 ? 9.9f : 10.1f, 0);
        rig_flush(r);
        const struct rig_told *told = rig_told(r, P);
        assert_true(told->leaves + told->enters <= 1 && told->updates == 0);
    }
    rig_move(r, 21, 300, 0);
    rig_radius(r, U, 50);
    rig_move(r, U, 31.9f, 0);
    rig_flush(r);
    for (int i = 0; i < 20; i++) {
        rig_move(r, U, i % 2 ? 31.9f : 32.1f, 0);
        assert_string_equal(rig_tells(r, P), "");
    }
}

CASE(two_that_watch_each_other_part_and_meet_at_the_same_flush)
{
    enum { A = 1, B = 2 };
    rig_add(r, A, 0, 0, 5);
    rig_add(r, B, 3, 1, 5);
    rig_subscribe(r, P, A);
    rig_subscribe(r, Q, B);
    rig_flush(r);
    for (int direction = 0; direction < 8; direction++) {
        float dx = direction < 3 ? 1 : direction < 6 ? -1 : 0, dy = direction % 3 == 0 ? 1 : direction % 3 == 1 ? -1 : 0;
        if (dx == 0 && dy == 0) dx = 1;
        int leaves = 0, enters = 0;
        for (int i = 1; i <= 64; i++) {
            float k = (float)(i <= 32 ? i : 64 - i) * 0.5f;
            rig_move(r, B, 3 + dx * k, 1 + dy * k);
            rig_flush(r);
            assert_int_equal(rig_told(r, P)->leaves, rig_told(r, Q)->leaves);
            assert_int_equal(rig_told(r, P)->enters, rig_told(r, Q)->enters);
            leaves += (int)rig_told(r, P)->leaves;
            enters += (int)rig_told(r, P)->enters;
        }
        assert_int_equal(leaves, 1);
        assert_int_equal(enters, 1);
    }
}

/* ------------------------------------------------------------------------------------------------------------- edges */

/* M at the very edge of U, moved by (shift, 0): told, found by queries, and with the roles swapped. */
static void meet_at_the_edge(struct rig *r, uint32_t shape, float radius, float x, float y, float shift, bool visible)
{
    rig_space(r, &(struct aoi_settings){.shape = shape}, NULL);
    r->places = false;
    rig_add(r, U, shift, 0, radius);
    rig_subscribe(r, P, U);
    rig_add(r, 21, x + shift, y, radius);
    rig_subscribe(r, Q, 21);
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->enters, visible);
    assert_int_equal(rig_told(r, Q)->enters, visible);
    const float center[3] = {shift, 0, 0}, low[3] = {shift - radius, -radius, 0}, high[3] = {shift + radius, radius, 0};
    if (shape == AOI_SHAPE_SPHERE) {
        assert_int_equal(model_query_radius(&r->m, r->s, center, radius, 0, 10), visible ? 2 : 1);
    } else {
        assert_int_equal(model_query_box(&r->m, r->s, low, high, 0, 10), visible ? 2 : 1);
    }
}

CASE(edges_are_inclusive_by_one_rule_for_views_and_queries)
{
    meet_at_the_edge(r, AOI_SHAPE_BOX, 0.1f, 0.1f, 0, 0, true);
    meet_at_the_edge(r, AOI_SHAPE_BOX, 0.1f, nextafterf(0.1f, 1), 0, 0, false);
    meet_at_the_edge(r, AOI_SHAPE_SPHERE, 5, 3, 4, 0, true);
    meet_at_the_edge(r, AOI_SHAPE_SPHERE, 5, 3, nextafterf(4, 5), 0, false);
    meet_at_the_edge(r, AOI_SHAPE_BOX, 300, 299.9f, 0, 0, true);
    meet_at_the_edge(r, AOI_SHAPE_SPHERE, 300, 299.9f, 0, 0, true);
    meet_at_the_edge(r, AOI_SHAPE_SPHERE, 0.1f, 0.1f, 0, 0, true);
}

CASE(far_from_zero_the_float_rule_decides_and_beyond_the_last_coordinate_is_an_error)
{
    const float far_away = 8000000;
    meet_at_the_edge(r, AOI_SHAPE_BOX, 0.1f, 0.1f, 0, far_away, true); /* both round to the same place */
    meet_at_the_edge(r, AOI_SHAPE_SPHERE, 5, 3, 4, far_away, true);
    meet_at_the_edge(r, AOI_SHAPE_BOX, 300, 299.9f, 0, far_away, true);
    rig_space(r, NULL, NULL);
    rig_add(r, U, far_away, far_away, 10.3f);
    rig_subscribe(r, P, U);
    rig_add(r, 21, far_away - 50, far_away, 10.3f);
    rig_subscribe(r, Q, 21);
    size_t enters = 0, leaves = 0;
    for (int i = 0; i < 100; i++) {
        rig_move(r, 21, far_away - 50 + (float)i, far_away);
        rig_flush(r);
        enters += rig_told(r, P)->enters;
        leaves += rig_told(r, P)->leaves;
    }
    assert_int_equal(enters, 1);
    assert_int_equal(leaves, 1);
    assert_int_equal(rig_move_by(r, 1, 21, 16777218.0f, 0), AOI_EBOUNDS);
    rig_move(r, 21, AOI_COORD_MAX, -AOI_COORD_MAX);
    rig_move(r, U, AOI_COORD_MAX, -AOI_COORD_MAX);
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->enters, 1);
}

CASE(a_move_on_two_axes_at_once_makes_no_transient_and_extreme_coordinates_no_ghost)
{
    for (uint32_t shape = AOI_SHAPE_BOX; shape <= AOI_SHAPE_CELLS; shape++) {
        rig_space(r, &(struct aoi_settings){.dimensions = 3, .shape = shape}, NULL);
        struct aoi_entity unit = {.id = U, .radius = 10}, m = {.id = 21, .pos = {9, -9, 0}};
        if (shape == AOI_SHAPE_SPHERE) m.pos[0] = m.pos[1] = 7;
        assert_int_equal(model_entity_add(&r->m, r->s, 1, AOI_ADD_NEW, &unit), AOI_OK);
        assert_int_equal(model_entity_add(&r->m, r->s, 1, AOI_ADD_NEW, &m), AOI_OK);
        rig_subscribe(r, P, U);
        rig_flush(r);
        assert_int_equal(rig_told(r, P)->enters, 1);
        const float across[3] = {-m.pos[0], -m.pos[1], 1}; /* the far corner, in sight on every axis at both ends */
        assert_int_equal(model_entity_move(&r->m, r->s, 1, 21, across, NULL), AOI_OK);
        rig_flush(r);
        assert_int_equal(rig_told(r, P)->updates, 1);
        for (int corner = 0; corner < 8; corner++) {
            const float at[3] = {corner & 1 ? AOI_COORD_MAX : -AOI_COORD_MAX, corner & 2 ? AOI_COORD_MAX : -AOI_COORD_MAX,
                                 corner & 4 ? AOI_COORD_MAX : -AOI_COORD_MAX};
            assert_int_equal(model_entity_move(&r->m, r->s, 1, U, at, NULL), AOI_OK);
            rig_flush(r);
            assert_int_equal(model_told(model_player(r->s, P), U) == NULL, true);
        }
        assert_int_equal(
            model_viewport_set(&r->m, r->s, 1, Q, (const float[3]){-FLT_MAX, -FLT_MAX, -FLT_MAX}, (const float[3]){FLT_MAX, FLT_MAX, FLT_MAX}),
            AOI_OK);
        rig_radius(r, U, 3e38f);
        rig_flush(r);
        assert_int_equal(rig_told(r, Q)->enters, 2);
    }
}

CASE(a_query_box_turned_inside_out_is_refused_and_points_lines_and_empty_boxes_are_answered)
{
    rig_add(r, 21, 5, 5, 0);
    rig_add(r, 22, 7, 5, 0);
    rig_add(r, 23, 7, 6, 0);
    assert_int_equal(model_query_box(&r->m, r->s, (const float[3]){10, 10, 0}, (const float[3]){-10, -10, 0}, 0, 10), AOI_EINVAL);
    assert_int_equal(model_query_count(&r->m, r->s, (const float[3]){10, 10, 0}, (const float[3]){-10, -10, 0}, 0), AOI_EINVAL);
    assert_int_equal(model_query_box(&r->m, r->s, (const float[3]){5, 5, 0}, (const float[3]){5, 5, 0}, 0, 10), 1);
    assert_int_equal(model_query_box(&r->m, r->s, (const float[3]){-100, 5, 0}, (const float[3]){100, 5, 0}, 0, 10), 2);
    assert_int_equal(model_query_box(&r->m, r->s, (const float[3]){50, 50, 0}, (const float[3]){60, 60, 0}, 0, 10), 0);
    assert_int_equal(model_query_radius(&r->m, r->s, (const float[3]){7, 5, 0}, 0, 0, 10), 1);
    assert_int_equal(model_query_radius(&r->m, r->s, (const float[3]){7, 5, 0}, 1, 0, 10), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(between_two_flushes_in_and_out_says_nothing_and_only_the_last_place_counts),
        cmocka_unit_test(removed_and_added_again_is_a_leave_and_an_enter_in_one_delta),
        cmocka_unit_test(an_upsert_of_a_known_id_is_neither_leave_nor_enter),
        cmocka_unit_test(after_a_long_silence_a_remove_is_told_once_and_its_place_can_be_taken),
        cmocka_unit_test(exactly_one_leave_of_what_left_and_then_ended_and_no_update_after_it),
        cmocka_unit_test(id_zero_is_refused_the_origin_is_a_place_and_radius_zero_sees_nothing),
        cmocka_unit_test(what_is_not_a_number_or_out_of_bounds_is_refused_and_changes_nothing),
        cmocka_unit_test(a_radius_over_the_limit_and_a_place_out_of_bounds_leave_what_was_before),
        cmocka_unit_test(owners_are_kept_apart_and_one_entity_remains),
        cmocka_unit_test(the_end_of_a_subscription_or_of_its_unit_is_a_leave_of_all_and_of_nothing_pending),
        cmocka_unit_test(the_order_of_subscribing_and_adding_does_not_matter_and_unknown_ids_are_refused),
        cmocka_unit_test(a_unit_is_never_told_through_itself_but_through_another_unit_on_every_path),
        cmocka_unit_test(include_self_tells_the_unit_whatever_its_layers_and_the_last_subscribe_wins),
        cmocka_unit_test(what_two_units_see_stays_when_one_of_them_goes),
        cmocka_unit_test(a_jump_is_the_leaves_and_enters_of_both_sides_in_one_flush_and_a_null_move_is_nothing),
        cmocka_unit_test(fifty_thousand_enter_and_leave_as_the_radius_grows_and_shrinks),
        cmocka_unit_test(negative_coordinates_and_zero_are_like_any_other_and_a_shift_changes_no_event),
        cmocka_unit_test(flapping_across_an_edge_or_a_cell_line_is_one_net_change_a_flush_and_touches_nobody_else),
        cmocka_unit_test(two_that_watch_each_other_part_and_meet_at_the_same_flush),
        cmocka_unit_test(edges_are_inclusive_by_one_rule_for_views_and_queries),
        cmocka_unit_test(far_from_zero_the_float_rule_decides_and_beyond_the_last_coordinate_is_an_error),
        cmocka_unit_test(a_move_on_two_axes_at_once_makes_no_transient_and_extreme_coordinates_no_ghost),
        cmocka_unit_test(a_query_box_turned_inside_out_is_refused_and_points_lines_and_empty_boxes_are_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
