/* test_session.c: connections, ownership, limits, spaces and their ends. */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SPACE 1
#define P 1

static void a_welcome_tells_the_limits_and_every_frame_is_answered_in_order(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (const char *[]){"query_page=17", "max_payload=100", "max_frame_bytes=64KiB", "idle_timeout_ms=5000", NULL});
    struct client *a = rig_client(&rig), *b = rig_client(&rig);
    const struct libaoi_welcome *w = libaoi_welcome(a->c);
    assert_int_equal(w->protocol_version, 1);
    assert_int_equal(w->query_page, 17);
    assert_int_equal(w->max_payload, 100);
    assert_int_equal(w->max_frame_bytes, 65536);
    assert_int_equal(w->idle_timeout_ms, 5000);
    assert_true(w->session && w->session != libaoi_welcome(b->c)->session);
    /* the client checks the order of the replies; none may be missing */
    for (int i = 0; i < 500; i++) {
        libaoi_ping(a->c, (uint64_t)i);
        add(a, 99, 5, 0, 0, 0); /* no such space: an Ack with an error */
        libaoi_send(a->c);
    }
    assert_int_equal(libaoi_sync(a->c, TIMEOUT_MS), 0);
    assert_int_equal(a->refused_total, 500);
    assert_int_equal(a->refused.at[0].code, LIBAOI_UNKNOWN_SPACE);
    a->refused_total = a->refused.n = 0;
    rig_stop(&rig);
}

static void bye_is_answered_and_takes_everything_along(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, NULL);
    struct client *a = rig_client(&rig), *b = rig_client(&rig);
    make_space(a, SPACE, LIBAOI_GRID);
    add(a, SPACE, 5, 0, 0, 0);
    client_ok(a);
    uint64_t applied = a->applied;
    assert_int_equal(libaoi_wait(a->c, libaoi_resync(a->c, SPACE, 0), TIMEOUT_MS), 0);
    assert_int_equal(a->applied, applied + 1);
    assert_int_equal(libaoi_bye(a->c, TIMEOUT_MS), 0);
    assert_int_equal(libaoi_unanswered(a->c), 0);
    assert_int_equal(a->applied, applied + 1);
    add(b, SPACE, 5, 0, 0, 0);
    client_refused(b, LIBAOI_UNKNOWN_SPACE);
    rig_stop(&rig);
}

static void what_is_queued_after_bye_is_not_reported_as_done(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, NULL);
    struct client *a = rig_client(&rig);
    assert_int_equal(libaoi_bye(a->c, TIMEOUT_MS), 0);
    assert_int_equal(libaoi_sync(a->c, TIMEOUT_MS), LIBAOI_ECLOSED);
    libaoi_flush(a->c, SPACE, 1);
    assert_int_equal(libaoi_sync(a->c, TIMEOUT_MS), LIBAOI_ECLOSED);
    assert_string_equal(libaoi_error(a->c), "closed: libaoi_bye() has ended the session; libaoi_connect() begins another one");
    assert_int_equal(libaoi_poll(a->c, 0), LIBAOI_ECLOSED);
    assert_int_equal(libaoi_wait(a->c, libaoi_ping(a->c, 1), TIMEOUT_MS), LIBAOI_ECLOSED);
    rig_stop(&rig);
}

static void a_connection_that_ends_takes_its_entities_players_and_spaces_along(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, NULL);
    struct client *keeper = rig_client(&rig), *mover = rig_client(&rig), *eye = rig_client(&rig);
    make_space(keeper, SPACE, LIBAOI_GRID);
    make_space(mover, 2, LIBAOI_GRID);
    add(keeper, SPACE, 1000, 0, 0, 100);
    add(mover, 2, 1, 0, 0, 100);
    add(mover, 2, 2, 0, 0, 100);
    for (uint64_t id = 1; id <= 100; id++) add(mover, SPACE, id, (float)id / 2, 0, 0);
    client_ok(keeper);
    client_ok(mover);
    libaoi_subscribe(eye->c, SPACE, P, 1000, false);
    libaoi_subscribe(eye->c, 2, P, 1, false);
    client_ok(eye);
    flush(keeper, SPACE, eye);
    flush(mover, 2, eye);
    expect_told(eye, 2, P, "E2");
    assert_int_equal(libaoi_view(eye->c, SPACE, P)->n, 100);
    client_end(mover);
    /* its end reaches the daemon when it does: the space goes with it, and closes the player */
    for (int i = 0; i < 1000 && !libaoi_views_closed(eye->c); i++) client_linger(eye, 5);
    expect_told(eye, 2, P, "C");
    assert_null(libaoi_view(eye->c, 2, P));
    flush(keeper, SPACE, eye);
    assert_int_equal(libaoi_view(eye->c, SPACE, P)->n, 0);
    assert_int_equal(libaoi_view(eye->c, SPACE, P)->leaves, 100);
    uint64_t entities, players;
    assert_int_equal(libaoi_query_count(eye->c, SPACE, (float[3]){-1e6f, -1e6f, 0}, (float[3]){1e6f, 1e6f, 0}, 0, TIMEOUT_MS, &entities, &players),
                     0);
    assert_int_equal(entities, 1);
    assert_int_equal(players, 1);
    rig_stop(&rig);
}

static void a_space_that_is_destroyed_closes_its_players(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, NULL);
    struct client *mover = rig_client(&rig), *eye = rig_client(&rig);
    make_space(mover, SPACE, LIBAOI_CROSSLIST);
    add(mover, SPACE, 1, 0, 0, 10);
    add(mover, SPACE, 2, 1, 0, 10);
    client_ok(mover);
    libaoi_subscribe(eye->c, SPACE, P, 1, false);
    libaoi_set_viewport(eye->c, SPACE, 2, (float[3]){0, 0, 0}, (float[3]){5, 5, 0});
    client_ok(eye);
    flush(mover, SPACE, eye);
    expect_told(eye, SPACE, P, "E2");
    expect_told(eye, SPACE, 2, "E1 E2");
    move(mover, SPACE, 2, 2, 0); /* in the window of the end: nothing but the end is told */
    libaoi_destroy_space(mover->c, SPACE);
    client_ok(mover);
    client_catch_up(eye);
    expect_told(eye, SPACE, P, "C");
    expect_told(eye, SPACE, 2, "C");
    /* a space made again under the same id is new in every respect */
    make_space(mover, SPACE, LIBAOI_GRID);
    add(mover, SPACE, 1, 0, 0, 10);
    client_ok(mover);
    libaoi_set_viewport(eye->c, SPACE, P, (float[3]){0, 0, 0}, (float[3]){5, 5, 0});
    client_ok(eye);
    flush(mover, SPACE, eye);
    expect_told(eye, SPACE, P, "E1");
    rig_stop(&rig);
}

static void a_player_belongs_to_who_first_names_it_and_is_new_when_opened_again(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, NULL);
    struct client *mover = rig_client(&rig), *eye = rig_client(&rig);
    make_space(mover, SPACE, LIBAOI_GRID);
    add(mover, SPACE, 1, 0, 0, 10);
    client_ok(mover);
    libaoi_open_player(eye->c, SPACE, P, 0);
    client_ok(eye);
    libaoi_subscribe(mover->c, SPACE, P, 1, false);
    client_refused(mover, LIBAOI_NOT_OWNER);
    libaoi_close_player(mover->c, SPACE, P);
    client_refused(mover, LIBAOI_NOT_OWNER);
    libaoi_set_viewport(mover->c, SPACE, P, (float[3]){0, 0, 0}, (float[3]){5, 5, 0});
    client_refused(mover, LIBAOI_NOT_OWNER);
    libaoi_set_viewport(eye->c, SPACE, P, (float[3]){0, 0, 0}, (float[3]){5, 5, 0});
    client_ok(eye);
    flush(mover, SPACE, eye);
    expect_told(eye, SPACE, P, "E1");
    libaoi_close_player(eye->c, SPACE, P);
    libaoi_set_viewport(eye->c, SPACE, P, (float[3]){0, 0, 0}, (float[3]){5, 5, 0});
    client_ok(eye);
    client_catch_up(eye);
    expect_told(eye, SPACE, P, "C");
    flush(mover, SPACE, eye);
    expect_told(eye, SPACE, P, "E1");
    assert_int_equal(libaoi_view(eye->c, SPACE, P)->seq, 1);
    rig_stop(&rig);
}

static void creating_a_space_twice_is_fine_only_with_if_absent_and_equal_settings(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (const char *[]){"space.7.flush_ms=20", "space.7.index=crosslist", "max_spaces=3", NULL});
    struct client *a = rig_client(&rig), *b = rig_client(&rig);
    struct libaoi_settings s = {.shape = LIBAOI_SPHERE, .flush_ms = 50};
    libaoi_create_space(a->c, SPACE, &s, false);
    client_ok(a);
    libaoi_create_space(b->c, SPACE, &s, false);
    client_refused(b, LIBAOI_DUPLICATE_SPACE);
    libaoi_create_space(b->c, SPACE, &s, true);
    client_ok(b);
    s.shape = LIBAOI_BOX;
    libaoi_create_space(b->c, SPACE, &s, true);
    client_refused(b, LIBAOI_DUPLICATE_SPACE);
    s.cell_size = 0.001;
    libaoi_create_space(b->c, 2, &s, false);
    client_refused(b, LIBAOI_INVALID_ARGUMENT);
    libaoi_destroy_space(a->c, 7);
    client_refused(a, LIBAOI_NOT_OWNER);
    libaoi_create_space(b->c, 2, &(struct libaoi_settings){.persistent = true}, false);
    client_ok(b);
    libaoi_create_space(b->c, 3, &(struct libaoi_settings){0}, false);
    client_refused(b, LIBAOI_LIMIT_EXCEEDED);
    client_end(b);
    size_t n;
    uint64_t next;
    const struct libaoi_space_info *list;
    assert_int_equal(libaoi_query_spaces(a->c, 0, 0, TIMEOUT_MS, &n, &list, &next), 0);
    assert_int_equal(n, 3);
    assert_true(list[0].id == SPACE && list[0].settings.shape == LIBAOI_SPHERE && list[0].owner_session == libaoi_welcome(a->c)->session);
    assert_true(list[1].id == 2 && list[1].settings.persistent);
    assert_true(list[2].id == 7 && list[2].settings.index == LIBAOI_CROSSLIST && list[2].settings.flush_ms == 20 && list[2].owner_session == 0);
    rig_stop(&rig);
}

static void an_ack_comes_before_the_deltas_that_show_its_batch_but_behind_those_of_a_flush_in_it(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, NULL);
    struct client *a = rig_client(&rig);
    libaoi_create_space(a->c, SPACE, &(struct libaoi_settings){.flush_ms = 1}, false);
    add(a, SPACE, 1, 0, 0, 10);
    libaoi_subscribe(a->c, SPACE, P, 1, true);
    client_ok(a);
    assert_int_equal(a->told_at_ack, 0);
    for (int i = 0; i < 1000 && !a->told.n; i++) client_linger(a, 5);
    expect_told(a, SPACE, P, "E1");
    for (int i = 0; i < 50; i++) {
        client_forget(a);
        move(a, SPACE, 1, (float)i + 1, 0);
        libaoi_flush(a->c, SPACE, 77);
        client_ok(a);
        assert_int_equal(a->told_at_ack, 1);
        assert_int_equal(a->told.at[0].tag, 77);
    }
    client_forget(a);
    libaoi_close_player(a->c, SPACE, P);
    client_ok(a);
    assert_int_equal(a->told_at_ack, 0);
    client_catch_up(a); /* without a flush */
    expect_told(a, SPACE, P, "C");
    rig_stop(&rig);
}

static void who_says_nothing_for_too_long_is_closed_and_who_pings_is_not(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (const char *[]){"idle_timeout_ms=1000", NULL});
    char error[300];
    struct client *alive = rig_client(&rig), *listens = rig_client(&rig);
    struct libaoi *silent = libaoi_connect(&(struct libaoi_options){.address = rig.daemon.address, .no_ping = true}, error, sizeof error);
    assert_non_null(silent);
    /* a stale refusal, which is not why it will be closed */
    float radius = -1, center[3] = {0};
    struct libaoi_rows rows;
    assert_int_equal(libaoi_query_radius(silent, SPACE, center, radius, 0, 0, 0, TIMEOUT_MS, &rows), LIBAOI_EREFUSED);
    assert_int_equal(libaoi_refused_code(silent), LIBAOI_UNKNOWN_SPACE);
    int status = 0;
    for (int i = 0; i < 600 && status >= 0; i++) {
        client_catch_up(alive);
        assert_true(libaoi_poll(listens->c, 0) >= 0); /* never anything but this: it pings by itself */
        status = libaoi_poll(silent, 100);
    }
    assert_int_equal(status, LIBAOI_ECLOSED);
    assert_string_equal(libaoi_error(silent),
                        "the daemon closed the connection: INVALID_ARGUMENT: idle for 1000 ms (idle_timeout_ms): send a Ping more "
                        "often, also where there is nothing but deltas to wait for");
    assert_int_equal(libaoi_refused_code(silent), LIBAOI_INVALID_ARGUMENT);
    libaoi_close(silent);
    client_catch_up(alive);
    client_end(alive);
    for (int i = 0; i < 2; i++) assert_int_equal(libaoi_poll(listens->c, 1200), 0); /* also while it waits */
    client_catch_up(listens);
    assert_true(rig_logged(&rig, "reason=idle"));
    rig_stop(&rig);
}

static void a_ping_after_the_ack_of_a_flush_is_answered_behind_its_deltas(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (const char *[]){"max_frame_bytes=8KiB", NULL}); /* so that a delta comes in parts */
    struct client *by = rig_client(&rig), *watchers[3];
    const float min[3] = {-1000, -1000}, max[3] = {1000, 1000};
    make_space(by, SPACE, LIBAOI_GRID);
    for (uint64_t id = 1; id <= 500; id++) add(by, SPACE, id, (float)id, 0, 0);
    client_ok(by);
    for (uint64_t w = 0; w < 3; w++) {
        watchers[w] = rig_client(&rig);
        for (uint64_t p = 1; p <= 10; p++) libaoi_set_viewport(watchers[w]->c, SPACE, 100 * w + p, min, max);
        client_ok(watchers[w]);
    }
    for (uint64_t tag = 1; tag <= 10; tag++) {
        for (uint64_t id = 1; id <= 500; id++) move(by, SPACE, id, (float)id, (float)tag);
        libaoi_flush(by->c, SPACE, tag);
        client_ok(by);
        assert_false(by->pending);
        for (uint64_t w = 0; w < 3; w++) {
            client_catch_up(watchers[w]);
            for (uint64_t p = 1; p <= 10; p++) {
                const struct libaoi_view *view = libaoi_view(watchers[w]->c, SPACE, 100 * w + p);
                assert_non_null(view);
                assert_int_equal(view->tag, tag);
                assert_false(view->partial);
                assert_int_equal(view->n, 500);
            }
        }
    }
    rig_stop(&rig);
}

/* CASES row 27 */
static void limits_are_refused_and_what_was_there_still_works(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (const char *[]){"max_radius=512", "max_entities=3", "max_players=2", "max_units=2", "max_payload=8", NULL});
    struct client *a = rig_client(&rig);
    libaoi_create_space(a->c, SPACE, &(struct libaoi_settings){.bounded = true, .min = {-1000, -1000, 0}, .max = {1000, 1000, 0}}, false);
    add(a, SPACE, 1, 0, 0, 500);
    add(a, SPACE, 2, 400, 0, 0);
    libaoi_subscribe(a->c, SPACE, P, 1, false);
    client_ok(a);
    flush(a, SPACE, a);
    expect_told(a, SPACE, P, "E2");
    libaoi_set_radius(a->c, SPACE, 1, 600);
    client_refused(a, LIBAOI_INVALID_ARGUMENT);
    move(a, SPACE, 1, 1000, 1000);
    client_ok(a);
    flush(a, SPACE, a);
    expect_told(a, SPACE, P, "L2");
    move(a, SPACE, 1, 1000.1f, 0);
    client_refused(a, LIBAOI_OUT_OF_BOUNDS);
    flush(a, SPACE, a);
    expect_told(a, SPACE, P, "");
    assert_int_equal(libaoi_set_payload(a->c, SPACE, 2, "123456789", 9), 0);
    client_refused(a, LIBAOI_LIMIT_EXCEEDED);
    add(a, SPACE, 3, 0, 0, 1);
    add(a, SPACE, 4, 0, 0, 1);
    client_refused(a, LIBAOI_LIMIT_EXCEEDED);
    libaoi_subscribe(a->c, SPACE, P, 2, false);
    libaoi_subscribe(a->c, SPACE, P, 3, false);
    client_refused(a, LIBAOI_LIMIT_EXCEEDED);
    libaoi_open_player(a->c, SPACE, 2, 0);
    libaoi_open_player(a->c, SPACE, 3, 0);
    client_refused(a, LIBAOI_LIMIT_EXCEEDED);
    rig_stop(&rig);
}

/* CASES row 11 */
static void a_timed_space_tells_changes_while_they_go_on_and_rests_when_they_stop(void **state)
{
    (void)state;
    struct rig rig;
    struct libaoi_stats before, after;
    rig_start(&rig, NULL);
    struct client *mover = rig_client(&rig), *eye = rig_client(&rig);
    libaoi_create_space(mover->c, SPACE, &(struct libaoi_settings){.flush_ms = 50}, false);
    add(mover, SPACE, 1, 0, 0, 10);
    add(mover, SPACE, 2, 1, 0, 0);
    client_ok(mover);
    libaoi_subscribe(eye->c, SPACE, P, 1, false);
    client_ok(eye);
    /* it moves all the time: a flush that later changes postpone would never come */
    for (int i = 0; i < 6000 && eye->told.n < 10; i++) {
        move(mover, SPACE, 2, (float)(i % 7), 1);
        client_ok(mover);
        client_linger(eye, 10);
    }
    assert_true(eye->told.n >= 10);
    for (uint32_t i = 1; i < eye->told.n; i++) /* and none came early; the clock of the stamps may be set a little while the test runs */
        assert_true(eye->told.at[i].time_us + 5000 >= eye->told.at[i - 1].time_us + 50000);
    client_linger(eye, 300);
    assert_int_equal(libaoi_query_stats(eye->c, SPACE, TIMEOUT_MS, &before), 0);
    client_linger(eye, 500);
    assert_int_equal(libaoi_query_stats(eye->c, SPACE, TIMEOUT_MS, &after), 0);
    assert_int_equal(after.flushes, before.flushes);
    rig_stop(&rig);
}

/* CASES row 16 */
static void a_view_that_grows_by_fifty_thousand_comes_in_legal_parts(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, NULL);
    struct client *mover = rig_client(&rig), *eye = rig_client(&rig), *other = rig_client(&rig);
    libaoi_create_space(mover->c, SPACE, &(struct libaoi_settings){.extra = true}, false);
    eye->record = false;
    for (uint64_t id = 1; id <= 50000; id++) {
        uint64_t row = id / 250;
        add(mover, SPACE, id, (float)(id % 250) * 100 + 50, (float)row * 100 + 50, 0);
    }
    add(mover, SPACE, 100000, 0, 0, 10);
    client_ok(mover);
    libaoi_subscribe(eye->c, SPACE, P, 100000, false);
    client_ok(eye);
    flush(mover, SPACE, eye);
    assert_null(libaoi_view(eye->c, SPACE, P));
    libaoi_set_radius(mover->c, SPACE, 100000, 100000);
    flush(mover, SPACE, eye);
    const struct libaoi_view *view = libaoi_view(eye->c, SPACE, P);
    assert_int_equal(view->n, 50000);
    assert_true(view->parts > view->deltas); /* the client has checked that they are contiguous, and no frame too long */
    client_catch_up(other);
    libaoi_set_radius(mover->c, SPACE, 100000, 10);
    flush(mover, SPACE, eye);
    assert_int_equal(view->n, 0);
    assert_int_equal(view->leaves, 50000);
    rig_stop(&rig);
}

/* CASES row 31 */
static void changes_that_wait_for_their_flush_arrive_before_the_daemon_exits(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, (const char *[]){"drain_timeout_ms=1000", NULL});
    struct client *mover = rig_client(&rig), *eye = rig_client(&rig);
    libaoi_create_space(mover->c, SPACE, &(struct libaoi_settings){.flush_ms = 60000}, false);
    add(mover, SPACE, 1000, 0, 0, 100);
    client_ok(mover);
    libaoi_subscribe(eye->c, SPACE, P, 1000, false);
    client_ok(eye);
    flush(mover, SPACE, eye);
    for (uint64_t id = 1; id <= 20; id++) add(mover, SPACE, id, (float)id, 0, 0);
    client_ok(mover);
    kill(rig.daemon.pid, SIGTERM);
    int status = 0;
    for (int i = 0; i < 6000 && status >= 0; i++) status = libaoi_poll(eye->c, 10);
    assert_int_equal(status, LIBAOI_ECLOSED);
    assert_true(eye->draining);
    assert_int_equal(libaoi_view(eye->c, SPACE, P)->n, 20);
    expect_told(eye, SPACE, P, "E1 E2 E3 E4 E5 E6 E7 E8 E9 E10 E11 E12 E13 E14 E15 E16 E17 E18 E19 E20");
    assert_int_equal(daemon_wait(&rig.daemon, TIMEOUT_MS), 0);
    rig_stop(&rig);
}

static void a_command_that_is_wrong_does_not_keep_the_others_from_applying(void **state)
{
    (void)state;
    struct rig rig;
    rig_start(&rig, NULL);
    struct client *a = rig_client(&rig);
    make_space(a, SPACE, LIBAOI_GRID);
    a->applied = 0;
    add(a, SPACE, 1, 0, 0, 10);
    libaoi_move(a->c, SPACE, 3, (uint64_t[]){1, 99, 1}, (float[]){1, 2, 3}, (float[]){1, 2, 3}, NULL, NULL);
    add(a, SPACE, 2, 4, 4, 0);
    libaoi_remove(a->c, SPACE, 2, (uint64_t[]){98, 97});
    libaoi_subscribe(a->c, SPACE, P, 1, false);
    assert_int_equal(libaoi_sync(a->c, TIMEOUT_MS), 0);
    assert_int_equal(a->applied, 5); /* two adds, two moves, one subscription */
    assert_int_equal(a->refused_total, 3);
    assert_true(a->refused.at[0].id == 99 && a->refused.at[1].id == 98 && a->refused.at[2].id == 97);
    a->refused_total = a->refused.n = 0;
    flush(a, SPACE, a);
    expect_told(a, SPACE, P, "E2");
    struct libaoi_entity e;
    assert_int_equal(libaoi_query_entity(a->c, SPACE, 1, TIMEOUT_MS, &e), 0);
    assert_true(e.pos[0] == 3);
    /* the errors listed are at most 1,000; the total is told */
    for (uint64_t id = 1000; id < 4000; id++) move(a, SPACE, id, 0, 0);
    assert_int_equal(libaoi_sync(a->c, TIMEOUT_MS), 0);
    assert_int_equal(a->refused.n, 1000);
    assert_int_equal(a->refused_total, 3000);
    a->refused_total = a->refused.n = 0;
    rig_stop(&rig);
}

static void the_client_cuts_batches_into_frames_that_the_daemon_takes(void **state)
{
    (void)state;
    enum { N = 20000 };
    static uint64_t ids[N];
    static float x[N], y[N];
    static uint32_t extra[N];
    struct rig rig;
    rig_start(&rig, (const char *[]){"max_frame_bytes=8KiB", "max_payload=4KiB", "query_page=1000", NULL});
    struct client *a = rig_client(&rig);
    static char payload[4096];
    libaoi_create_space(a->c, SPACE, &(struct libaoi_settings){.extra = true}, false);
    for (uint64_t i = 0; i < N; i++) {
        ids[i] = i + 1;
        x[i] = (float)(i % 100);
        uint64_t row = i / 100;
        y[i] = (float)row;
        extra[i] = (uint32_t)i;
        const struct libaoi_entity e = {.id = ids[i], .pos = {1, 1}, .payload = payload, .payload_len = i % 100 ? i % 7 : 4096};
        assert_int_equal(libaoi_add(a->c, SPACE, LIBAOI_ADD_NEW, &e), 0);
    }
    libaoi_move(a->c, SPACE, N, ids, x, y, NULL, extra);
    client_ok(a);
    assert_int_equal(a->applied, 1 + 2 * N);
    assert_int_equal(libaoi_add(a->c, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = 1, .payload = payload, .payload_len = 9000}),
                     LIBAOI_ETOOLARGE);
    libaoi_open_player(a->c, SPACE, P, 0);
    libaoi_set_viewport(a->c, SPACE, P, (float[3]){0, 0, 0}, (float[3]){1000, 1000, 0});
    client_ok(a);
    a->record = false;
    flush(a, SPACE, a);
    const struct libaoi_view *view = libaoi_view(a->c, SPACE, P);
    assert_int_equal(view->n, N);
    for (uint64_t i = 0; i < N; i++) {
        const struct libaoi_item *item = libaoi_view_find(view, ids[i]);
        assert_true(item->pos[0] == x[i] && item->pos[1] == y[i] && item->extra == i && item->payload_len == (i % 100 ? i % 7 : 4096));
    }
    struct libaoi_rows rows;
    uint64_t cursor = 0, n = 0;
    do {
        assert_int_equal(libaoi_query_box(a->c, SPACE, (float[3]){0, 0, 0}, (float[3]){1000, 1000, 0}, 0, cursor, 0, TIMEOUT_MS, &rows), 0);
        n += rows.n;
        cursor = rows.next;
    } while (cursor);
    assert_int_equal(n, N);
    libaoi_remove(a->c, SPACE, N, ids);
    client_ok(a);
    flush(a, SPACE, a);
    assert_int_equal(view->n, 0);
    rig_stop(&rig);
}

static void who_cannot_connect_is_told_what_to_do(void **state)
{
    (void)state;
    struct rig rig;
    char error[400], address[64];
    rig_start(&rig, (const char *[]){"max_connections=2", NULL});
    rig_client(&rig);
    rig_client(&rig);
    assert_null(libaoi_connect(&(struct libaoi_options){.address = rig.daemon.address}, error, sizeof error));
    assert_non_null(strstr(error, "LIMIT_EXCEEDED"));
    snprintf(address, sizeof address, "%s", rig.daemon.address);
    rig_stop(&rig);
    assert_null(libaoi_connect(&(struct libaoi_options){.address = address}, error, sizeof error));
    assert_non_null(strstr(error, "Is aoid running there? Start it with: aoid --listen"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_welcome_tells_the_limits_and_every_frame_is_answered_in_order),
        cmocka_unit_test(bye_is_answered_and_takes_everything_along),
        cmocka_unit_test(what_is_queued_after_bye_is_not_reported_as_done),
        cmocka_unit_test(a_connection_that_ends_takes_its_entities_players_and_spaces_along),
        cmocka_unit_test(a_space_that_is_destroyed_closes_its_players),
        cmocka_unit_test(a_player_belongs_to_who_first_names_it_and_is_new_when_opened_again),
        cmocka_unit_test(creating_a_space_twice_is_fine_only_with_if_absent_and_equal_settings),
        cmocka_unit_test(an_ack_comes_before_the_deltas_that_show_its_batch_but_behind_those_of_a_flush_in_it),
        cmocka_unit_test(who_says_nothing_for_too_long_is_closed_and_who_pings_is_not),
        cmocka_unit_test(a_ping_after_the_ack_of_a_flush_is_answered_behind_its_deltas),
        cmocka_unit_test(limits_are_refused_and_what_was_there_still_works),
        cmocka_unit_test(a_timed_space_tells_changes_while_they_go_on_and_rests_when_they_stop),
        cmocka_unit_test(a_view_that_grows_by_fifty_thousand_comes_in_legal_parts),
        cmocka_unit_test(changes_that_wait_for_their_flush_arrive_before_the_daemon_exits),
        cmocka_unit_test(a_command_that_is_wrong_does_not_keep_the_others_from_applying),
        cmocka_unit_test(the_client_cuts_batches_into_frames_that_the_daemon_takes),
        cmocka_unit_test(who_cannot_connect_is_told_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
