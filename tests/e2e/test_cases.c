/* test_cases.c: faults that such systems had, played against the daemon through the wire, on both indexes.
 *
 * The rig: a 2D box space with cells of 32, player 1 subscribed to unit 100 at (0,0), radius 10. The mover and the player are on two connections. */
#include "stage.h"

#include <math.h>
#include <string.h>

static void begin(uint32_t index)
{
    stage_start_watched(NULL, index);
}

/* row 1 */
CASE(there_and_back_within_one_window_is_nothing)
{
    add(mover, SPACE, 21, 40, 0, 0);
    told_after_flush("");
    move(mover, SPACE, 21, 4, 0);
    move(mover, SPACE, 21, 40, 0);
    told_after_flush("");
    move(mover, SPACE, 21, 4, 0);
    told_after_flush("E21");
    move(mover, SPACE, 21, 40, 0);
    move(mover, SPACE, 21, 5, 0);
    told_after_flush("U21");
    assert_float_equal(libaoi_view_find(libaoi_view(eye->c, SPACE, P), 21)->pos[0], 5, 0);
    move(mover, SPACE, 21, 40, 0);
    told_after_flush("L21");
    move(mover, SPACE, 21, 4, 0);
    move(mover, SPACE, 21, 40, 0);
    move(mover, SPACE, 21, 6, 0);
    told_after_flush("E21");
    assert_float_equal(libaoi_view_find(libaoi_view(eye->c, SPACE, P), 21)->pos[0], 6, 0);
}

static void add_with(uint64_t id, float x, float y, const char *payload)
{
    libaoi_add(mover->c, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = id, .pos = {x, y}, .payload = payload, .payload_len = strlen(payload)});
}

/* row 2 */
CASE(remove_and_add_in_one_batch_is_a_new_entity)
{
    add_with(7, 3, 0, "a");
    told_after_flush("E7");
    drop(mover, SPACE, 7);
    add_with(7, 4, 0, "b");
    told_after_flush("L7 E7");
    const struct libaoi_item *item = libaoi_view_find(libaoi_view(eye->c, SPACE, P), 7);
    assert_int_equal(item->payload_len, 1);
    assert_memory_equal(item->payload, "b", 1);
    assert_float_equal(item->pos[0], 4, 0);
    drop(mover, SPACE, 7);
    add_with(7, 500, 0, "b");
    told_after_flush("L7");
    add_with(8, 1, 1, "c");
    drop(mover, SPACE, 8);
    told_after_flush("");
}

/* row 3 */
CASE(an_entity_removed_twice_is_unknown_the_second_time)
{
    add(mover, SPACE, 30, 3, 3, 0);
    told_after_flush("E30");
    drop(mover, SPACE, 30);
    client_ok(mover);
    drop(mover, SPACE, 30);
    client_refused(mover, LIBAOI_UNKNOWN_ENTITY);
    told_after_flush("L30");
    add(mover, SPACE, 31, 3, 3, 0);
    told_after_flush("E31");
}

/* row 5 */
CASE(id_zero_is_refused_and_the_origin_is_a_place_like_any_other)
{
    add(mover, SPACE, 0, 1, 1, 0);
    client_refused(mover, LIBAOI_INVALID_ARGUMENT);
    add(mover, SPACE, 5, 0, 0, 0);
    told_after_flush("E5");
    libaoi_set_radius(mover->c, SPACE, U, 0);
    told_after_flush("L5");
}

/* row 6 */
CASE(positions_that_are_no_places_are_refused_and_change_nothing)
{
    add(mover, SPACE, 6, NAN, 0, 0);
    client_refused(mover, LIBAOI_INVALID_ARGUMENT);
    add(mover, SPACE, 6, 3, 0, 0);
    told_after_flush("E6");
    move(mover, SPACE, 6, INFINITY, 1);
    client_refused(mover, LIBAOI_INVALID_ARGUMENT);
    move(mover, SPACE, 6, 3e38f, 3e38f);
    client_refused(mover, LIBAOI_OUT_OF_BOUNDS);
    libaoi_set_radius(mover->c, SPACE, 6, -1);
    client_refused(mover, LIBAOI_INVALID_ARGUMENT);
    libaoi_set_radius(mover->c, SPACE, 6, NAN);
    client_refused(mover, LIBAOI_INVALID_ARGUMENT);
    told_after_flush("");
    add(mover, SPACE, 16, 1e-40f, -0.0f, 0);
    told_after_flush("E16");
    const struct libaoi_item *item = libaoi_view_find(libaoi_view(eye->c, SPACE, P), 16);
    const float zero[3] = {0, 0, 0};
    assert_memory_equal(item->pos, zero, sizeof zero);
    struct libaoi_rows rows;
    assert_int_equal(libaoi_query_box(eye->c, SPACE, (float[3]){0, NAN, 0}, (float[3]){1, 1, 1}, 0, 0, 0, TIMEOUT_MS, &rows), LIBAOI_EREFUSED);
    assert_int_equal(libaoi_refused_code(eye->c), LIBAOI_INVALID_ARGUMENT);
    eye->refused_total = eye->refused.n = 0;
}

/* row 7 */
CASE(a_player_that_loses_its_unit_loses_what_it_saw)
{
    for (uint64_t id = 1; id <= 5; id++) add(mover, SPACE, id, (float)id, 0, 0);
    told_after_flush("E1 E2 E3 E4 E5");
    libaoi_unsubscribe(eye->c, SPACE, P, U);
    client_ok(eye);
    told_after_flush("L1 L2 L3 L4 L5");
    libaoi_subscribe(eye->c, SPACE, P, U, false);
    client_ok(eye);
    told_after_flush("E1 E2 E3 E4 E5");
    drop(mover, SPACE, U);
    told_after_flush("L1 L2 L3 L4 L5");
    add(mover, SPACE, U, 0, 0, 10);
    client_ok(mover);
    libaoi_subscribe(eye->c, SPACE, P, U, false);
    client_ok(eye);
    told_after_flush("E1 E2 E3 E4 E5");
    add(mover, SPACE, 6, 6, 0, 0);
    client_ok(mover);
    libaoi_unsubscribe(eye->c, SPACE, P, U);
    client_ok(eye);
    told_after_flush("L1 L2 L3 L4 L5");
    move(mover, SPACE, 1, 2, 2);
    move(mover, SPACE, 6, 2, 2);
    told_after_flush("");
}

/* row 9 */
CASE(an_entity_belongs_to_the_connection_that_added_it)
{
    struct client *other = rig_client(&rig);
    add(mover, SPACE, 9, 1, 1, 0);
    client_ok(mover);
    add(other, SPACE, 9, 2, 2, 0);
    client_refused(other, LIBAOI_DUPLICATE_ENTITY);
    libaoi_add(other->c, SPACE, LIBAOI_ADD_UPSERT, &(struct libaoi_entity){.id = 9});
    client_refused(other, LIBAOI_NOT_OWNER);
    move(other, SPACE, 9, 2, 2);
    client_refused(other, LIBAOI_NOT_OWNER);
    drop(other, SPACE, 9);
    client_refused(other, LIBAOI_NOT_OWNER);
    libaoi_set_payload(other->c, SPACE, 9, "x", 1);
    client_refused(other, LIBAOI_NOT_OWNER);
    libaoi_set_layers(other->c, SPACE, 9, 2);
    client_refused(other, LIBAOI_NOT_OWNER);
    libaoi_set_radius(other->c, SPACE, 9, 2);
    client_refused(other, LIBAOI_NOT_OWNER);
    add(mover, SPACE, 9, 2, 2, 0);
    client_refused(mover, LIBAOI_DUPLICATE_ENTITY);
    struct libaoi_entity e;
    assert_int_equal(libaoi_query_entity(other->c, SPACE, 9, TIMEOUT_MS, &e), 0);
    assert_float_equal(e.pos[0], 1, 0);
    assert_int_equal(e.owner_session, libaoi_welcome(mover->c)->session);
    told_after_flush("E9");
}

/* row 10 */
CASE(a_unit_that_jumps_changes_its_own_view_and_that_of_others_in_one_flush)
{
    add(mover, SPACE, 1, 5, 5, 0);
    add(mover, SPACE, 2, 1000, 1000, 0);
    add(mover, SPACE, 200, 1001, 1001, 10);
    client_ok(mover);
    libaoi_subscribe(eye->c, SPACE, 2, 200, false);
    client_ok(eye);
    told_after_flush("E1");
    expect_told(eye, SPACE, 2, "E2");
    move(mover, SPACE, U, 1000, 1004);
    uint64_t tag = flush(mover, SPACE, eye);
    assert_int_equal(libaoi_view(eye->c, SPACE, P)->tag, tag);
    assert_int_equal(libaoi_view(eye->c, SPACE, 2)->tag, tag);
    expect_told(eye, SPACE, P, "L1 E2 E200");
    expect_told(eye, SPACE, 2, "E100");
    move(mover, SPACE, U, 1000, 1004);
    told_after_flush("");
    expect_told(eye, SPACE, 2, "");
}

/* row 21 */
CASE(two_units_lose_and_find_each_other_at_the_same_flush)
{
    add(mover, SPACE, 1, 100, 0, 5);
    add(mover, SPACE, 2, 103, 1, 5);
    client_ok(mover);
    libaoi_subscribe(eye->c, SPACE, 11, 1, false);
    libaoi_subscribe(eye->c, SPACE, 12, 2, false);
    client_ok(eye);
    flush(mover, SPACE, eye);
    expect_told(eye, SPACE, 11, "E2");
    expect_told(eye, SPACE, 12, "E1");
    for (int direction = 0; direction < 8; direction++) {
        float dx = (float)((int[]){1, 1, 0, -1, -1, -1, 0, 1}[direction]) / 2, dy = (float)((int[]){0, 1, 1, 1, 0, -1, -1, -1}[direction]) / 2;
        bool seen = true;
        for (int step = 1; step <= 40; step++) {
            int at = step <= 20 ? step : 40 - step;
            float x = 103 + (float)at * dx, y = 1 + (float)at * dy;
            move(mover, SPACE, 2, x, y);
            flush(mover, SPACE, eye);
            bool now = fabsf(x - 100) <= 5 && fabsf(y) <= 5;
            expect_told(eye, SPACE, 11, now && seen ? "U2" : now ? "E2" : seen ? "L2" : "");
            expect_told(eye, SPACE, 12, now == seen ? "" : now ? "E1" : "L1");
            seen = now;
        }
        assert_true(seen);
    }
}

/* row 22 */
CASE(a_unit_is_never_told_through_itself)
{
    move(mover, SPACE, U, 50, 0);
    told_after_flush("");
    add(mover, SPACE, 101, 52, 0, 10);
    client_ok(mover);
    libaoi_subscribe(eye->c, SPACE, P, 101, false);
    client_ok(eye);
    told_after_flush("E100 E101");
    drop(mover, SPACE, 101);
    told_after_flush("L100 L101");
    libaoi_subscribe(eye->c, SPACE, P, U, true);
    client_ok(eye);
    told_after_flush("E100");
    libaoi_subscribe(eye->c, SPACE, P, U, false);
    client_ok(eye);
    told_after_flush("L100");
}

/* row 23 */
CASE(one_leave_for_what_was_seen_and_none_for_what_was_not)
{
    add(mover, SPACE, 1, 3, 0, 0);
    add(mover, SPACE, 2, 500, 0, 0);
    told_after_flush("E1");
    move(mover, SPACE, 1, 400, 0);
    told_after_flush("L1");
    drop(mover, SPACE, 1);
    drop(mover, SPACE, 2);
    told_after_flush("");
    add(mover, SPACE, 3, 500, 0, 0);
    told_after_flush("");
    move(mover, SPACE, 3, 3, 0);
    move(mover, SPACE, 3, 500, 0);
    drop(mover, SPACE, 3);
    told_after_flush("");
}

/* row 24 */
CASE(the_order_of_add_and_subscribe_does_not_matter)
{
    add(mover, SPACE, 1, 3, 0, 0);
    told_after_flush("E1");
    add(mover, SPACE, 102, 300, 0, 10);
    add(mover, SPACE, 2, 303, 0, 0);
    client_ok(mover);
    libaoi_subscribe(eye->c, SPACE, P, 102, false);
    client_ok(eye);
    told_after_flush("E2");
    libaoi_subscribe(eye->c, SPACE, 9, 77, false);
    client_refused(eye, LIBAOI_UNKNOWN_ENTITY);
    libaoi_close_player(eye->c, SPACE, 9);
    client_refused(eye, LIBAOI_UNKNOWN_PLAYER);
    move(mover, SPACE, 78, 0, 0);
    client_refused(mover, LIBAOI_UNKNOWN_ENTITY);
}

/* row 25, as far as there are no leases */
CASE(after_a_resync_one_full_delta_is_everything)
{
    add(mover, SPACE, 1, 1, 0, 0);
    add(mover, SPACE, 2, 2, 0, 0);
    add(mover, SPACE, 3, 3, 0, 0);
    told_after_flush("E1 E2 E3");
    libaoi_resync(eye->c, SPACE, P);
    libaoi_resync(eye->c, SPACE, 0); /* requests coalesce */
    client_ok(eye);
    drop(mover, SPACE, 2);
    move(mover, SPACE, 3, 300, 0);
    add(mover, SPACE, 4, 4, 0, 0);
    told_after_flush("F E1 E4");
    move(mover, SPACE, 1, 300, 0);
    move(mover, SPACE, 4, 300, 0);
    told_after_flush("L1 L4");
    libaoi_resync(eye->c, SPACE, P);
    client_ok(eye);
    told_after_flush("F");
    libaoi_resync(eye->c, SPACE, 99);
    client_refused(eye, LIBAOI_UNKNOWN_PLAYER);
    libaoi_resync(mover->c, SPACE, P);
    client_refused(mover, LIBAOI_NOT_OWNER);
}

/* row 28 */
CASE(queries_of_points_lines_and_wrong_boxes)
{
    struct libaoi_rows rows;
    add(mover, SPACE, 1, 3, 4, 0);
    add(mover, SPACE, 2, 3, 9, 0);
    client_ok(mover);
    assert_int_equal(libaoi_query_box(eye->c, SPACE, (float[3]){10, 10, 0}, (float[3]){-10, -10, 0}, 0, 0, 0, TIMEOUT_MS, &rows), LIBAOI_EREFUSED);
    assert_int_equal(libaoi_refused_code(eye->c), LIBAOI_INVALID_ARGUMENT);
    eye->refused_total = eye->refused.n = 0;
    assert_int_equal(libaoi_query_box(eye->c, SPACE, (float[3]){3, 4, 0}, (float[3]){3, 4, 0}, 0, 0, 0, TIMEOUT_MS, &rows), 0);
    assert_int_equal(rows.n, 1);
    assert_int_equal(rows.id[0], 1);
    assert_int_equal(libaoi_query_box(eye->c, SPACE, (float[3]){3, 0, 0}, (float[3]){3, 100, 0}, 0, 0, 0, TIMEOUT_MS, &rows), 0);
    assert_int_equal(rows.n, 2);
    assert_int_equal(libaoi_query_box(eye->c, SPACE, (float[3]){50, 50, 0}, (float[3]){60, 60, 0}, 0, 0, 0, TIMEOUT_MS, &rows), 0);
    assert_int_equal(rows.n, 0);
    assert_int_equal(rows.next, 0);
    assert_int_equal(libaoi_query_radius(eye->c, SPACE, (float[3]){0, 0, 0}, 5, 0, 0, 0, TIMEOUT_MS, &rows), 0);
    assert_int_equal(rows.n, 2); /* 1, on the edge, and the unit */
    assert_int_equal(libaoi_query_radius(eye->c, SPACE, (float[3]){0, 0, 0}, -1, 0, 0, 0, TIMEOUT_MS, &rows), LIBAOI_EREFUSED);
    eye->refused_total = eye->refused.n = 0;
}

CASE(payloads_and_layers_are_state_like_positions)
{
    const struct libaoi_view *view;
    add_with(7, 3, 0, "a");
    add_with(8, 500, 0, "far");
    told_after_flush("E7");
    view = libaoi_view(eye->c, SPACE, P);
    libaoi_set_payload(mover->c, SPACE, 7, "bcd", 3);
    libaoi_set_layers(mover->c, SPACE, 7, 6);
    move(mover, SPACE, 7, 4, 0);
    told_after_flush("U7 P7 Y7");
    assert_int_equal(libaoi_view_find(view, 7)->payload_len, 3);
    assert_int_equal(libaoi_view_find(view, 7)->layers, 6);
    /* there and back again is nothing; neither is the same again */
    libaoi_set_payload(mover->c, SPACE, 7, "x", 1);
    libaoi_set_payload(mover->c, SPACE, 7, "bcd", 3);
    libaoi_set_layers(mover->c, SPACE, 7, 1);
    libaoi_set_layers(mover->c, SPACE, 7, 6);
    told_after_flush("");
    libaoi_set_payload(mover->c, SPACE, 7, NULL, 0);
    told_after_flush("P7");
    assert_int_equal(libaoi_view_find(view, 7)->payload_len, 0);
    /* what changes out of sight is in the next enter */
    libaoi_set_payload(mover->c, SPACE, 8, "near", 4);
    told_after_flush("");
    move(mover, SPACE, 8, 1, 1);
    told_after_flush("E8");
    assert_memory_equal(libaoi_view_find(view, 8)->payload, "near", 4);
    /* layers 0 is seen by nobody; a mask hides and shows at once */
    libaoi_set_layers(mover->c, SPACE, 8, 0);
    told_after_flush("L8");
    libaoi_set_layers(mover->c, SPACE, 8, 1);
    told_after_flush("E8");
    libaoi_open_player(eye->c, SPACE, P, 4);
    client_ok(eye);
    told_after_flush("L8");
    libaoi_open_player(eye->c, SPACE, P, 0);
    client_ok(eye);
    told_after_flush("E8");
}

CASE(an_upsert_keeps_the_identity_and_writes_every_field)
{
    add_with(7, 3, 0, "a");
    told_after_flush("E7");
    libaoi_add(mover->c, SPACE, LIBAOI_ADD_UPSERT, &(struct libaoi_entity){.id = 7, .pos = {4, 0}, .layers = 2, .payload = "b", .payload_len = 1});
    told_after_flush("U7 P7 Y7");
    libaoi_add(mover->c, SPACE, LIBAOI_ADD_UPSERT, &(struct libaoi_entity){.id = 7, .pos = {4, 0}, .layers = 2, .payload = "b", .payload_len = 1});
    told_after_flush("");
    drop(mover, SPACE, 7);
    libaoi_add(mover->c, SPACE, LIBAOI_ADD_UPSERT, &(struct libaoi_entity){.id = 7, .pos = {4, 0}, .layers = 2, .payload = "b", .payload_len = 1});
    told_after_flush("L7 E7");
}

CASE(a_viewport_and_units_make_one_view)
{
    for (uint64_t id = 1; id <= 5; id++) add(mover, SPACE, id, (float)id * 6, 0, 0);
    told_after_flush("E1");
    libaoi_set_viewport(eye->c, SPACE, P, (float[3]){5, -1, 0}, (float[3]){18, 1, 0});
    client_ok(eye);
    told_after_flush("E2 E3");
    libaoi_set_viewport(eye->c, SPACE, P, (float[3]){18, 0, 0}, (float[3]){30, 0, 0});
    client_ok(eye);
    told_after_flush("L2 E4 E5");
    libaoi_set_viewport(eye->c, SPACE, P, (float[3]){1, 0, 0}, (float[3]){-1, 0, 0});
    client_refused(eye, LIBAOI_INVALID_ARGUMENT);
    told_after_flush("");
    libaoi_clear_viewport(eye->c, SPACE, P);
    client_ok(eye);
    told_after_flush("L3 L4 L5");
}

/* row 32 */
CASE(what_two_units_see_is_not_lost_with_one_of_them)
{
    add(mover, SPACE, 103, 5, 0, 10);
    add(mover, SPACE, 1, 3, 0, 0);
    client_ok(mover);
    libaoi_subscribe(eye->c, SPACE, P, 103, false);
    client_ok(eye);
    told_after_flush("E1 E100 E103");
    drop(mover, SPACE, 103);
    told_after_flush("L100 L103");
    move(mover, SPACE, 1, 4, 0);
    told_after_flush("U1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back_within_one_window_is_nothing),
        cmocka_unit_test(remove_and_add_in_one_batch_is_a_new_entity),
        cmocka_unit_test(an_entity_removed_twice_is_unknown_the_second_time),
        cmocka_unit_test(id_zero_is_refused_and_the_origin_is_a_place_like_any_other),
        cmocka_unit_test(positions_that_are_no_places_are_refused_and_change_nothing),
        cmocka_unit_test(a_player_that_loses_its_unit_loses_what_it_saw),
        cmocka_unit_test(an_entity_belongs_to_the_connection_that_added_it),
        cmocka_unit_test(a_unit_that_jumps_changes_its_own_view_and_that_of_others_in_one_flush),
        cmocka_unit_test(two_units_lose_and_find_each_other_at_the_same_flush),
        cmocka_unit_test(a_unit_is_never_told_through_itself),
        cmocka_unit_test(one_leave_for_what_was_seen_and_none_for_what_was_not),
        cmocka_unit_test(the_order_of_add_and_subscribe_does_not_matter),
        cmocka_unit_test(after_a_resync_one_full_delta_is_everything),
        cmocka_unit_test(queries_of_points_lines_and_wrong_boxes),
        cmocka_unit_test(payloads_and_layers_are_state_like_positions),
        cmocka_unit_test(an_upsert_keeps_the_identity_and_writes_every_field),
        cmocka_unit_test(a_viewport_and_units_make_one_view),
        cmocka_unit_test(what_two_units_see_is_not_lost_with_one_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
