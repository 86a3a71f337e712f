/* test_hand_over.c: an entity passes from one game server to another, and a player from one gateway to another. */
#include "stage.h"

#include <string.h>

static struct client *first, *second, *third; /* three game servers */

static void begin(uint32_t index)
{
    rig_start(&rig, NULL);
    first = rig_client(&rig);
    second = rig_client(&rig);
    third = rig_client(&rig);
    mover = eye = rig_client(&rig); /* whoever looks flushes */
    libaoi_create_space(eye->c, SPACE, &(struct libaoi_settings){.index = index, .leave_margin = 2}, false);
    add(eye, SPACE, U, 0, 0, 10);
    libaoi_subscribe(eye->c, SPACE, P, U, false);
    client_ok(eye);
    libaoi_add(first->c, SPACE, LIBAOI_ADD_NEW,
               &(struct libaoi_entity){.id = 7, .pos = {3, 0}, .radius = 6, .layers = 5, .payload = "hero", .payload_len = 4, .priority = 4});
    client_ok(first);
    told_after_flush("E7");
}

/* Ends a connection without Bye, and waits until the daemon has noticed. */
static void vanish(struct client *client)
{
    struct libaoi_stats stats;
    assert_int_equal(libaoi_query_stats(eye->c, 0, TIMEOUT_MS, &stats), 0);
    uint64_t before = stats.connections;
    libaoi_abandon(client->c);
    client->c = NULL;
    for (int i = 0; i < 10000 && stats.connections == before; i++) assert_int_equal(libaoi_query_stats(eye->c, 0, TIMEOUT_MS, &stats), 0);
    assert_int_equal(stats.connections, before - 1);
}

CASE(an_entity_passes_to_another_server_and_nobody_sees_it_go)
{
    const uint64_t id = 7;
    struct libaoi_entity e;
    libaoi_adopt(second->c, SPACE, id);
    client_refused(second, LIBAOI_NOT_OWNER);
    libaoi_release(first->c, SPACE, 1, &id, 0);
    client_ok(first);
    move(first, SPACE, id, 4, 0); /* it is still the first one's */
    client_ok(first);
    move(second, SPACE, id, 4, 0);
    client_refused(second, LIBAOI_NOT_OWNER);
    told_after_flush("U7");
    libaoi_adopt(second->c, SPACE, id);
    client_ok(second);
    client_catch_up(first);
    assert_string_equal(client_noticed(first), "e7");
    told_after_flush("");
    assert_int_equal(libaoi_query_entity(eye->c, SPACE, id, TIMEOUT_MS, &e), 0);
    assert_int_equal(e.owner_session, libaoi_welcome(second->c)->session);
    assert_true(e.pos[0] == 4 && e.radius == 6 && e.layers == 5 && e.priority == 4 && e.payload_len == 4);
    move(first, SPACE, id, 5, 0);
    client_refused(first, LIBAOI_NOT_OWNER);
    move(second, SPACE, id, 6, 0);
    client_ok(second);
    told_after_flush("U7");
    /* it is of the one and gone with it, not with the other */
    vanish(first);
    told_after_flush("");
    vanish(second);
    told_after_flush("L7");
}

CASE(what_was_told_stays_told_also_in_the_margin)
{
    const uint64_t id = 7;
    move(first, SPACE, id, 11, 0);
    libaoi_release(first->c, SPACE, 1, &id, 0);
    client_ok(first);
    libaoi_adopt(second->c, SPACE, id);
    client_ok(second);
    told_after_flush("U7");
    move(second, SPACE, id, 13, 0);
    client_ok(second);
    told_after_flush("L7");
}

CASE(a_release_to_one_session_is_not_for_others)
{
    const uint64_t id = 7, nobody = 999;
    libaoi_release(first->c, SPACE, 1, &id, 77777);
    client_refused(first, LIBAOI_INVALID_ARGUMENT);
    libaoi_release(first->c, SPACE, 1, &nobody, 0);
    client_refused(first, LIBAOI_UNKNOWN_ENTITY);
    libaoi_release(second->c, SPACE, 1, &id, 0);
    client_refused(second, LIBAOI_NOT_OWNER);
    libaoi_release(first->c, SPACE, 1, &id, libaoi_welcome(second->c)->session);
    client_ok(first);
    libaoi_adopt(third->c, SPACE, id);
    client_refused(third, LIBAOI_NOT_OWNER);
    libaoi_adopt(second->c, SPACE, id);
    client_ok(second);
    /* what was taken is not released any more */
    libaoi_adopt(third->c, SPACE, id);
    client_refused(third, LIBAOI_NOT_OWNER);
    libaoi_adopt(second->c, SPACE, id); /* one's own is fine */
    client_ok(second);
    libaoi_adopt(second->c, SPACE, nobody);
    client_refused(second, LIBAOI_UNKNOWN_ENTITY);
    told_after_flush("");
}

CASE(what_is_released_and_not_taken_ends_with_its_session)
{
    const uint64_t id = 7, player = 5;
    libaoi_subscribe(first->c, SPACE, player, id, false);
    libaoi_release(first->c, SPACE, 1, &id, 0);
    libaoi_release_players(first->c, SPACE, 1, &player, 0);
    client_ok(first);
    vanish(first);
    told_after_flush("L7");
    libaoi_open_player_with(second->c, SPACE, player, &(struct libaoi_player){.take_over = true});
    client_ok(second); /* there is none any more: a new one */
    flush(eye, SPACE, second);
    expect_told(second, SPACE, player, "");
}

CASE(a_gateway_that_takes_a_player_over_may_leave_its_settings)
{
    const uint64_t player = P;
    libaoi_open_player_with(eye->c, SPACE, P, &(struct libaoi_player){.mask = 2});
    add(first, SPACE, 8, 2, 0, 0); /* of layers 1: hidden */
    libaoi_release_players(eye->c, SPACE, 1, &player, 0);
    client_ok(first);
    client_ok(eye);
    libaoi_open_player_with(second->c, SPACE, P, &(struct libaoi_player){.take_over = true, .keep_settings = true});
    flush(second, SPACE, second);
    expect_told(second, SPACE, P, "F");
    libaoi_open_player_with(second->c, SPACE, P, &(struct libaoi_player){0});
    flush(second, SPACE, second);
    expect_told(second, SPACE, P, "E7 E8");
}

CASE(a_player_passes_to_another_gateway_with_one_full_delta)
{
    const uint64_t player = P;
    add(first, SPACE, 8, 2, 0, 0);
    client_ok(first);
    told_after_flush("E8");
    move(first, SPACE, 8, 11, 0); /* it stays by the margin, here as there */
    client_ok(first);
    told_after_flush("U8");
    libaoi_open_player_with(second->c, SPACE, P, &(struct libaoi_player){.take_over = true});
    client_refused(second, LIBAOI_NOT_OWNER);
    libaoi_release_players(eye->c, SPACE, 1, &player, libaoi_welcome(second->c)->session);
    client_ok(eye);
    libaoi_open_player_with(third->c, SPACE, P, &(struct libaoi_player){.take_over = true});
    client_refused(third, LIBAOI_NOT_OWNER);
    told_after_flush(""); /* until it is taken all goes on */
    uint64_t seq = libaoi_view(eye->c, SPACE, P)->seq;
    libaoi_open_player(second->c, SPACE, P, 0);
    client_refused(second, LIBAOI_NOT_OWNER); /* it must be meant */
    libaoi_open_player_with(second->c, SPACE, P, &(struct libaoi_player){.take_over = true});
    client_ok(second);
    client_catch_up(eye);
    assert_string_equal(client_noticed(eye), "p1");
    assert_null(libaoi_view(eye->c, SPACE, P));
    flush(eye, SPACE, second);
    expect_told(second, SPACE, P, "F E7 E8");
    assert_int_equal(libaoi_view(second->c, SPACE, P)->seq, seq + 1);
    /* with its units, on the new connection alone */
    move(first, SPACE, 7, 4, 0);
    client_ok(first);
    flush(eye, SPACE, second);
    expect_told(second, SPACE, P, "U7");
    client_catch_up(eye);
    expect_told(eye, SPACE, P, "");
    libaoi_close_player(eye->c, SPACE, P);
    client_refused(eye, LIBAOI_NOT_OWNER);
    libaoi_close_player(second->c, SPACE, P);
    client_ok(second);
    client_catch_up(second);
    expect_told(second, SPACE, P, "C");
}

CASE(the_new_owner_is_told_who_observes_what_it_adopted)
{
    const uint64_t id = 9;
    libaoi_add(first->c, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = id, .pos = {1, 1}, .report_observed = true});
    client_ok(first);
    told_after_flush("E9");
    client_catch_up(first);
    assert_string_equal(client_noticed(first), "O9");
    libaoi_release(first->c, SPACE, 1, &id, 0);
    client_ok(first);
    libaoi_adopt(second->c, SPACE, id);
    client_ok(second);
    told_after_flush("");
    client_catch_up(second);
    client_catch_up(first);
    assert_string_equal(client_noticed(second), "O9");
    assert_string_equal(client_noticed(first), "e9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entity_passes_to_another_server_and_nobody_sees_it_go),
        cmocka_unit_test(what_was_told_stays_told_also_in_the_margin),
        cmocka_unit_test(a_release_to_one_session_is_not_for_others),
        cmocka_unit_test(what_is_released_and_not_taken_ends_with_its_session),
        cmocka_unit_test(a_gateway_that_takes_a_player_over_may_leave_its_settings),
        cmocka_unit_test(a_player_passes_to_another_gateway_with_one_full_delta),
        cmocka_unit_test(the_new_owner_is_told_who_observes_what_it_adopted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
