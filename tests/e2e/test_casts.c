/* test_casts.c: messages to those who see where they come from, and notices to those who own what is seen. */
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void begin(uint32_t index)
{
    stage_start_watched(NULL, index);
}

CASE(who_sees_the_entity_gets_the_message_behind_everything_else_and_in_order)
{
    add(mover, SPACE, 7, 3, 0, 0);
    add(mover, SPACE, 8, 30, 0, 0);
    publish(mover, SPACE, 7, "one");
    publish(mover, SPACE, 8, "unheard");
    publish(mover, SPACE, 7, "two");
    told_after_flush("E7 M7:one M7:two");
    /* the message decides nothing: it goes by the view after the flush */
    publish(mover, SPACE, 8, "here");
    move(mover, SPACE, 8, 4, 0);
    publish(mover, SPACE, 7, "gone");
    move(mover, SPACE, 7, 50, 0);
    told_after_flush("L7 E8 M8:here");
    /* events are told once */
    told_after_flush("");
    move(mover, SPACE, 8, 5, 0);
    told_after_flush("U8");
    publish(mover, SPACE, 8, "");
    told_after_flush("M8:");
    /* who is no more says nothing, nor does one that came again */
    publish(mover, SPACE, 8, "last words");
    drop(mover, SPACE, 8);
    add(mover, SPACE, 8, 5, 0, 0);
    told_after_flush("L8 E8");
}

CASE(a_point_and_a_box_are_heard_by_who_looks_there)
{
    const float near[3] = {10, -10, 0}, far[3] = {10.5f, 0, 0}, min[3] = {10, 5, 0}, max[3] = {400, 400, 0};
    libaoi_open_player(eye->c, SPACE, P, 8); /* whatever the mask */
    client_ok(eye);
    libaoi_publish_at(mover->c, SPACE, near, "near", 4);
    libaoi_publish_at(mover->c, SPACE, far, "far", 3);
    libaoi_publish_box(mover->c, SPACE, min, max, "box", 3);
    told_after_flush("M0:near M0:box");
    libaoi_set_viewport(eye->c, SPACE, P, min, max);
    client_ok(eye);
    libaoi_publish_at(mover->c, SPACE, max, "corner", 6);
    libaoi_publish_box(mover->c, SPACE, far, max, "both", 4);
    told_after_flush("M0:corner M0:both");
    libaoi_publish_box(mover->c, SPACE, max, min, "inside out", 10);
    client_refused(mover, LIBAOI_INVALID_ARGUMENT);
    told_after_flush("");
}

CASE(the_hidden_are_not_heard_and_the_shown_are)
{
    add(mover, SPACE, 7, 3, 0, 0);
    add(mover, SPACE, 8, 300, 0, 0);
    client_ok(mover);
    libaoi_override(eye->c, SPACE, P, 7, LIBAOI_OVERRIDE_HIDE);
    libaoi_override(eye->c, SPACE, P, 8, LIBAOI_OVERRIDE_SHOW);
    client_ok(eye);
    publish(mover, SPACE, 7, "psst");
    publish(mover, SPACE, 8, "help");
    told_after_flush("E8 M8:help");
    libaoi_override(eye->c, SPACE, P, 7, LIBAOI_OVERRIDE_NONE);
    libaoi_override(eye->c, SPACE, P, 8, LIBAOI_OVERRIDE_NONE);
    client_ok(eye);
    publish(mover, SPACE, 7, "hello");
    publish(mover, SPACE, 8, "bye");
    told_after_flush("L8 E7 M7:hello");
}

CASE(only_the_owner_publishes_and_only_so_much)
{
    static char bytes[5000];
    add(mover, SPACE, 7, 3, 0, 0);
    told_after_flush("E7");
    publish(eye, SPACE, 7, "not mine");
    client_refused(eye, LIBAOI_NOT_OWNER);
    publish(mover, SPACE, 9, "nobody");
    client_refused(mover, LIBAOI_UNKNOWN_ENTITY);
    libaoi_publish(mover->c, SPACE, 7, bytes, 4097);
    client_refused(mover, LIBAOI_LIMIT_EXCEEDED);
    assert_int_equal(libaoi_publish(mover->c, SPACE, 7, bytes, (size_t)2 << 20), LIBAOI_ETOOLARGE);
    told_after_flush("");
}

CASE(a_full_delta_carries_no_messages_and_says_how_many_were_lost)
{
    add(mover, SPACE, 7, 3, 0, 0);
    told_after_flush("E7");
    libaoi_resync(eye->c, SPACE, P);
    client_ok(eye);
    publish(mover, SPACE, 7, "one");
    publish(mover, SPACE, U, "unseen");
    told_after_flush("F E7 X2");
    publish(mover, SPACE, 7, "two");
    told_after_flush("M7:two");
    assert_int_equal(libaoi_counters(eye->c)->messages, 1);
    assert_int_equal(libaoi_counters(eye->c)->messages_lost, 2);
}

static void messages_that_fit_no_frame_together_come_in_parts_and_in_order(void **state)
{
    (void)state;
    static char bytes[4096];
    stage_start_watched((const char *const[]){"max_frame_bytes=8KiB", NULL}, LIBAOI_GRID);
    add(mover, SPACE, 7, 3, 0, 0);
    for (int i = 0; i < 100; i++) {
        snprintf(bytes, sizeof bytes, "%d", i);
        assert_int_equal(libaoi_publish(mover->c, SPACE, 7, bytes, sizeof bytes), 0);
    }
    flush(mover, SPACE, eye);
    const struct libaoi_view *view = libaoi_view(eye->c, SPACE, P);
    assert_int_equal(view->deltas, 1);
    assert_true(view->parts >= 50);
    assert_int_equal(view->messages, 100);
    const char *told = client_told(eye, SPACE, P);
    for (int i = 0; i < 100; i++) {
        snprintf(bytes, sizeof bytes, "M7:%d", i);
        told = strstr(told, bytes);
        assert_non_null(told);
    }
    rig_stop(&rig);
}

CASE(the_owner_is_told_who_is_observed_by_others)
{
    for (uint64_t id = 7; id <= 9; id++)
        libaoi_add(mover->c, SPACE, LIBAOI_ADD_NEW,
                   &(struct libaoi_entity){.id = id, .pos = {(float)id - 5}, .radius = 5, .report_observed = id != 9});
    told_after_flush("E7 E8 E9");
    client_catch_up(mover);
    assert_string_equal(client_noticed(mover), "O7 O8");
    assert_string_equal(client_noticed(eye), "");
    /* whoever is subscribed to it does not count */
    libaoi_subscribe(eye->c, SPACE, P, 7, true);
    client_ok(eye);
    told_after_flush("E100");
    client_catch_up(mover);
    assert_string_equal(client_noticed(mover), "o7");
    /* there and back again is nothing */
    libaoi_unsubscribe(eye->c, SPACE, P, 7);
    client_ok(eye);
    libaoi_subscribe(eye->c, SPACE, P, 7, true);
    client_ok(eye);
    told_after_flush("");
    client_catch_up(mover);
    assert_string_equal(client_noticed(mover), "");
    libaoi_close_player(eye->c, SPACE, P);
    client_ok(eye);
    flush(mover, SPACE, eye);
    client_catch_up(mover);
    assert_string_equal(client_noticed(mover), "o8");
    /* the last look that goes with its connection */
    client_forget(eye);
    libaoi_subscribe(eye->c, SPACE, P, U, false);
    client_ok(eye);
    flush(mover, SPACE, eye);
    client_catch_up(mover);
    assert_string_equal(client_noticed(mover), "O7 O8");
    client_end(eye);
    rig.client_n--; /* it was the last one */
    eye = rig_client(&rig);
    client_catch_up(eye);
    flush(mover, SPACE, mover);
    client_catch_up(mover);
    assert_string_equal(client_noticed(mover), "o7 o8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_sees_the_entity_gets_the_message_behind_everything_else_and_in_order),
        cmocka_unit_test(a_point_and_a_box_are_heard_by_who_looks_there),
        cmocka_unit_test(the_hidden_are_not_heard_and_the_shown_are),
        cmocka_unit_test(only_the_owner_publishes_and_only_so_much),
        cmocka_unit_test(a_full_delta_carries_no_messages_and_says_how_many_were_lost),
        cmocka_unit_test(messages_that_fit_no_frame_together_come_in_parts_and_in_order),
        cmocka_unit_test(the_owner_is_told_who_is_observed_by_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
