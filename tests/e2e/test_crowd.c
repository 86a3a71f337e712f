/* test_crowd.c: many in one place: limited views, enter budgets, tiers, presence, margins, and settings that change at run time. */
#include "stage.h"

#include <stdio.h>
#include <string.h>

static void begin(uint32_t index)
{
    stage_start(NULL, index, 100);
}

/* A player with these settings rides U. */
static void ride(const struct libaoi_player *settings)
{
    libaoi_open_player_with(eye->c, SPACE, P, settings);
    libaoi_subscribe(eye->c, SPACE, P, U, false);
    client_ok(eye);
}

/* One flush, whatever it leaves; whether that is anything. */
static bool flush_once(const char *text)
{
    libaoi_flush(mover->c, SPACE, 0);
    client_ok(mover);
    bool pending = mover->pending;
    client_catch_up(eye);
    expect_told(eye, SPACE, P, text);
    return pending;
}

static void set_space(uint32_t which, struct libaoi_settings settings)
{
    assert_int_equal(libaoi_set_space(mover->c, SPACE, which, &settings), 0);
    client_ok(mover);
}

CASE(the_best_are_seen_priority_first_then_the_nearest)
{
    for (uint64_t id = 1; id <= 6; id++) add(mover, SPACE, id, (float)id * 10, 0, 0);
    ride(&(struct libaoi_player){.max_view = 3});
    assert_false(flush_once("E1 E2 E3"));
    libaoi_set_priority(mover->c, SPACE, 6, 1);
    flush_once("L3 E6");
    /* told ones are held for a fifth of the distance: 4 must come nearer than 16 to take the place of 2 at 20 */
    move(mover, SPACE, 4, 17, 0);
    flush_once("");
    move(mover, SPACE, 4, 15.9f, 0);
    flush_once("L2 E4");
    move(mover, SPACE, 4, 19, 0);
    flush_once("U4");
    move(mover, SPACE, 4, 26, 0);
    flush_once("L4 E2");
    /* what is shown comes first; so does one's own */
    libaoi_override(eye->c, SPACE, P, 5, LIBAOI_OVERRIDE_SHOW);
    libaoi_subscribe(eye->c, SPACE, P, U, true);
    client_ok(eye);
    flush_once("L1 L2 E5 E100");
}

CASE(the_limits_of_a_space_change_while_it_runs)
{
    for (uint64_t id = 1; id <= 6; id++) add(mover, SPACE, id, (float)id * 10, 0, 0);
    ride(&(struct libaoi_player){0});
    flush_once("E1 E2 E3 E4 E5 E6");
    set_space(LIBAOI_MAX_VIEW, (struct libaoi_settings){.max_view = 2, .leave_margin = 50});
    flush_once("L3 L4 L5 L6");
    set_space(LIBAOI_MAX_VIEW | LIBAOI_LEAVE_MARGIN, (struct libaoi_settings){.leave_margin = 50});
    flush_once("E3 E4 E5 E6");
    move(mover, SPACE, 6, 140, 0);
    flush_once("U6");
    set_space(LIBAOI_LEAVE_MARGIN, (struct libaoi_settings){.leave_margin = 39});
    flush_once("L6");
    move(mover, SPACE, 5, 120, 0);
    flush_once("U5");
    ride(&(struct libaoi_player){.leave_margin = 10}); /* the player's own margin goes before the space's */
    flush_once("L5");
    assert_int_equal(libaoi_set_space(mover->c, SPACE, LIBAOI_TIERS, &(struct libaoi_settings){.update_tiers = "far:4"}), LIBAOI_EINVAL);
    libaoi_set_space(mover->c, SPACE, LIBAOI_LEAVE_MARGIN, &(struct libaoi_settings){.leave_margin = -1});
    client_refused(mover, LIBAOI_INVALID_ARGUMENT);
    libaoi_set_space(mover->c, SPACE, LIBAOI_MAX_VIEW, &(struct libaoi_settings){.max_view = 65537});
    client_refused(mover, LIBAOI_LIMIT_EXCEEDED);
    /* a space that flushed by command flushes by itself */
    set_space(LIBAOI_FLUSH, (struct libaoi_settings){.flush_ms = 1});
    move(mover, SPACE, 1, 11, 0);
    client_ok(mover);
    for (int i = 0; i < 1000 && eye->told.n == 0; i++) client_linger(eye, 10);
    expect_told(eye, SPACE, P, "U1");
}

CASE(those_who_come_are_told_by_and_by_those_who_go_at_once)
{
    for (uint64_t id = 1; id <= 7; id++) add(mover, SPACE, id, (float)id * 10, 0, 0);
    ride(&(struct libaoi_player){.max_enter_per_flush = 3});
    assert_true(flush_once("E1 E2 E3"));
    move(mover, SPACE, 1, 1000, 0);
    move(mover, SPACE, 2, 1000, 0);
    move(mover, SPACE, 7, 5, 0);
    assert_true(flush_once("L1 L2 E4 E5 E7"));
    assert_false(flush_once("E6"));
    assert_false(flush_once(""));
    /* a full delta does not wait */
    libaoi_resync(eye->c, SPACE, P);
    client_ok(eye);
    move(mover, SPACE, 1, 10, 0);
    flush_once("F E1 E3 E4 E5 E6 E7");
}

/* Distance 4: every flush; 40: when flush + id is even; 90: when it is divisible by 4. */
CASE(what_is_far_is_told_less_often_but_in_the_end)
{
    const float x[] = {4, 40, 90};
    set_space(LIBAOI_TIERS, (struct libaoi_settings){.update_tiers = "10:1 50:2 *:4"});
    for (uint64_t id = 1; id <= 3; id++) add(mover, SPACE, id, x[id - 1], 0, 0);
    ride(&(struct libaoi_player){0});
    flush_once("E1 E2 E3");
    uint64_t flushed = libaoi_view(eye->c, SPACE, P)->flush;
    bool pending = true;
    char want[64];
    for (int step = 1; step <= 16; step++) {
        const uint64_t period[] = {1, 2, 4};
        int len = 0;
        for (uint64_t id = 1; id <= 3; id++) move(mover, SPACE, id, x[id - 1], (float)step / 100);
        flushed++;
        want[0] = '\0';
        for (uint64_t id = 1; id <= 3; id++)
            if ((flushed + id) % period[id - 1] == 0) len += snprintf(want + len, sizeof want - (size_t)len, "%sU%d", len ? " " : "", (int)id);
        pending = flush_once(want);
    }
    for (int i = 0; i < 4 && pending; i++) {
        libaoi_flush(mover->c, SPACE, 0);
        client_ok(mover);
        pending = mover->pending;
    }
    assert_false(pending);
    client_catch_up(eye);
    const struct libaoi_view *view = libaoi_view(eye->c, SPACE, P);
    for (uint64_t id = 1; id <= 3; id++) assert_true(libaoi_view_find(view, id)->pos[1] == 0.16f);
    client_forget(eye);
    /* coming and going is told at once, and so are state changes */
    add(mover, SPACE, 4, 90, 0, 0);
    libaoi_set_layers(mover->c, SPACE, 3, 3);
    flush_once("E4 Y3");
    drop(mover, SPACE, 4);
    flush_once("L4");
}

CASE(presence_only_is_told_who_is_there_and_what_they_say_but_not_where)
{
    add(mover, SPACE, 7, 3, 0, 0);
    ride(&(struct libaoi_player){.presence_only = true});
    flush_once("E7");
    move(mover, SPACE, 7, 4, 0);
    flush_once("");
    move(mover, SPACE, 7, 5, 0);
    libaoi_set_layers(mover->c, SPACE, 7, 3);
    publish(mover, SPACE, 7, "hi");
    flush_once("Y7 M7:hi");
    assert_true(libaoi_view_find(libaoi_view(eye->c, SPACE, P), 7)->pos[0] == 3);
    ride(&(struct libaoi_player){0});
    flush_once("F E7");
    assert_true(libaoi_view_find(libaoi_view(eye->c, SPACE, P), 7)->pos[0] == 5);
    move(mover, SPACE, 7, 400, 0);
    flush_once("L7");
}

CASE(what_was_told_stays_for_a_while)
{
    set_space(LIBAOI_MIN_STAY, (struct libaoi_settings){.min_stay_ms = 3600000});
    add(mover, SPACE, 7, 3, 0, 0);
    ride(&(struct libaoi_player){0});
    flush_once("E7");
    move(mover, SPACE, 7, 400, 0);
    flush_once("U7");
    set_space(LIBAOI_MIN_STAY, (struct libaoi_settings){.min_stay_ms = 0});
    flush_once("L7");
}

CASE(a_large_thing_is_seen_from_afar)
{
    libaoi_add(mover->c, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = 7, .pos = {1100, 0}, .appeal = 1000});
    add(mover, SPACE, 8, 1100, 0, 0);
    ride(&(struct libaoi_player){0});
    flush_once("E7");
    libaoi_set_appeal(mover->c, SPACE, 7, 999);
    libaoi_set_appeal(mover->c, SPACE, 8, 1000.5f);
    flush_once("L7 E8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_are_seen_priority_first_then_the_nearest),
        cmocka_unit_test(the_limits_of_a_space_change_while_it_runs),
        cmocka_unit_test(those_who_come_are_told_by_and_by_those_who_go_at_once),
        cmocka_unit_test(what_is_far_is_told_less_often_but_in_the_end),
        cmocka_unit_test(presence_only_is_told_who_is_there_and_what_they_say_but_not_where),
        cmocka_unit_test(what_was_told_stays_for_a_while),
        cmocka_unit_test(a_large_thing_is_seen_from_afar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
