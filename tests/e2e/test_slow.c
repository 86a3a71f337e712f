/* test_slow.c: clients that do not read: their deltas collapse, the daemon's memory stays bounded, and nobody else notices. */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "client/libaoi_impl.h"

#define SPACE 1
#define ENTITIES 300
#define SLOW_PLAYERS 50
#define UNIT 1000
#define HEALTHY 99
#define SMALL_BUFFER 4096
#define ROUNDS_MOST 20000

static struct rig rig;
static struct client *mover, *healthy, *slow;
static float x[ENTITIES], y[ENTITIES];
static uint64_t ids[ENTITIES];

static void begin(const char *const *options, uint32_t index, uint32_t flush_ms)
{
    rig_start(&rig, options);
    mover = rig_client(&rig);
    healthy = rig_client(&rig);
    slow = rig_client_with(&rig, SMALL_BUFFER, true);
    slow->record = healthy->record = false;
    libaoi_create_space(mover->c, SPACE, &(struct libaoi_settings){.index = index, .flush_ms = flush_ms}, false);
    add(mover, SPACE, UNIT, 15, 15, 100);
    for (int i = 0; i < ENTITIES; i++) {
        ids[i] = (uint64_t)i + 1;
        x[i] = (float)(i % 20);
        int row = i / 20;
        y[i] = (float)row;
        add(mover, SPACE, ids[i], x[i], y[i], 0);
    }
    client_ok(mover);
    for (uint64_t p = 1; p <= SLOW_PLAYERS; p++) libaoi_subscribe(slow->c, SPACE, p, UNIT, false);
    client_ok(slow);
    libaoi_subscribe(healthy->c, SPACE, HEALTHY, UNIT, false);
    client_ok(healthy);
}

/* Everybody moves, and the daemon has taken it. */
static void move_all(int round)
{
    for (int i = 0; i < ENTITIES; i++) {
        x[i] = (float)((i + round) % 20) + (float)(round % 7) / 8;
        int row = (i + round) / 20 % 15;
        y[i] = (float)row;
    }
    libaoi_move(mover->c, SPACE, ENTITIES, ids, x, y, NULL, NULL);
    client_ok(mover);
    client_linger(healthy, 1);
}

/* Whether the player sees all of them where they are. */
static bool sees_the_truth(const struct client *client, uint64_t player)
{
    const struct libaoi_view *view = libaoi_view(client->c, SPACE, player);
    if (!view || view->partial || view->n != ENTITIES) return false;
    for (int i = 0; i < ENTITIES; i++) {
        const struct libaoi_item *item = libaoi_view_find(view, ids[i]);
        if (!item || item->pos[0] != x[i] || item->pos[1] != y[i]) return false;
    }
    return true;
}

static uint64_t skipped(void)
{
    struct libaoi_stats stats;
    assert_int_equal(libaoi_query_stats(mover->c, SPACE, TIMEOUT_MS, &stats), 0);
    return stats.skipped;
}

/* Until the slow one has been skipped so often. Returns the rounds played. */
static int stall(int round, uint64_t skips)
{
    for (int end = round + ROUNDS_MOST; skipped() < skips; round++) {
        assert_true(round < end);
        move_all(round);
    }
    return round;
}

static void collapse(uint32_t index)
{
    begin((const char *[]){"out_soft_bytes=64KiB", "max_payload=1KiB", "out_soft_ms=600000", NULL}, index, 5);
    for (int i = 0; i < 10000 && !(sees_the_truth(slow, 1) && sees_the_truth(slow, SLOW_PLAYERS)); i++) client_linger(slow, 5);
    size_t memory = daemon_memory_bytes(rig.daemon.pid);
    int round = stall(1, SLOW_PLAYERS), last = round + 600;
    for (; round < last; round++) { /* 50 players times 300 updates a round: 150 MB, if it were queued */
        move_all(round);
        if (round % 50) continue;
        libaoi_flush(mover->c, SPACE, 1);
        client_ok(mover);
        assert_true(mover->pending); /* the slow ones are owed something */
        client_catch_up(healthy);
        assert_true(sees_the_truth(healthy, HEALTHY));
    }
    size_t grown = daemon_memory_bytes(rig.daemon.pid);
    if (grown > memory + ((size_t)48 << 20)) fail_msg("the daemon's memory grew from %zu to %zu bytes", memory, grown);
    /* it reads again: without any further change in the world it gets all that it missed, and no more than that */
    uint64_t told_healthy = libaoi_view(healthy->c, SPACE, HEALTHY)->deltas;
    bool caught_up = false;
    for (int i = 0; i < 10000 && !caught_up; i++) {
        client_linger(slow, 5);
        caught_up = true;
        for (uint64_t p = 1; p <= SLOW_PLAYERS; p++) caught_up &= sees_the_truth(slow, p);
    }
    assert_true(caught_up);
    for (uint64_t p = 1; p <= SLOW_PLAYERS; p++) assert_true(libaoi_view(slow->c, SPACE, p)->deltas < told_healthy / 2);
    /* and nothing is left to do */
    libaoi_flush(mover->c, SPACE, 2);
    client_ok(mover);
    assert_false(mover->pending);
    rig_stop(&rig);
}

static void a_client_that_does_not_read_gets_fewer_and_larger_deltas_on_the_grid(void **state)
{
    (void)state;
    collapse(LIBAOI_GRID);
}

static void a_client_that_does_not_read_gets_fewer_and_larger_deltas_on_the_crosslist(void **state)
{
    (void)state;
    collapse(LIBAOI_CROSSLIST);
}

static void a_client_that_never_reads_is_closed_with_the_reason_and_nobody_else_is(void **state)
{
    (void)state;
    struct libaoi_stats stats;
    begin((const char *[]){"out_soft_bytes=64KiB", "max_payload=1KiB", "out_soft_ms=300", NULL}, LIBAOI_GRID, 5);
    int round = 1;
    do {
        assert_true(round < ROUNDS_MOST);
        move_all(round++);
        assert_int_equal(libaoi_query_stats(mover->c, 0, TIMEOUT_MS, &stats), 0);
    } while (stats.connections > 2);
    assert_true(rig_logged(&rig, "reason=out_soft"));
    assert_int_equal(stats.players, 1); /* those of the slow one went with it */
    flush(mover, SPACE, healthy);
    assert_true(sees_the_truth(healthy, HEALTHY));
    rig_stop(&rig);
}

static void a_stalled_reader_cannot_hold_the_exit(void **state)
{
    (void)state;
    begin((const char *[]){"out_soft_bytes=64KiB", "max_payload=1KiB", "out_soft_ms=600000", "drain_timeout_ms=300", NULL}, LIBAOI_GRID, 20);
    int round = stall(1, SLOW_PLAYERS);
    move_all(round);
    kill(rig.daemon.pid, SIGTERM);
    int status = 0;
    for (int i = 0; i < 6000 && status >= 0; i++) status = libaoi_poll(healthy->c, 10);
    assert_int_equal(status, LIBAOI_ECLOSED);
    assert_true(healthy->draining);
    assert_true(sees_the_truth(healthy, HEALTHY)); /* nor did the others' end take anything from its view */
    assert_int_equal(daemon_wait(&rig.daemon, TIMEOUT_MS), 0);
    rig_stop(&rig);
}

static void seventy_thousand_tiny_frames_without_reading_are_all_answered_in_the_end(void **state)
{
    (void)state;
    begin((const char *[]){"out_soft_bytes=64KiB", "max_payload=1KiB", "out_soft_ms=600000", NULL}, LIBAOI_GRID, 0);
    for (uint64_t i = 0; i < 70000; i++) libaoi_ping(slow->c, i);
    client_catch_up(healthy);
    size_t memory = daemon_memory_bytes(rig.daemon.pid);
    for (int i = 0; i < 50; i++) client_catch_up(healthy);
    if (daemon_memory_bytes(rig.daemon.pid) > memory + ((size_t)32 << 20)) fail_msg("the daemon's memory grows");
    assert_int_equal(libaoi_sync(slow->c, TIMEOUT_MS), 0);
    assert_int_equal(libaoi_unanswered(slow->c), 0);
    rig_stop(&rig);
}

static void results_that_nobody_reads_wait_at_the_client_and_not_in_the_daemon(void **state)
{
    (void)state;
    begin((const char *[]){"out_soft_bytes=64KiB", "max_payload=1KiB", "out_soft_ms=600000", NULL}, LIBAOI_GRID, 0);
    size_t memory = daemon_memory_bytes(rig.daemon.pid);
    /* 20,000 results of 300 entities: 120 MB */
    struct codec_client_frame frame = {.kind = CODEC_QUERY,
                                       .u.query = {.space = SPACE, .kind = CODEC_QUERY_AABB, .has_box = true, .max = {100, 100, 0}}};
    for (int i = 0; i < 20000; i++) libaoi__send_frame(slow->c, &frame);
    for (int i = 0; i < 100; i++) client_catch_up(healthy);
    size_t grown = daemon_memory_bytes(rig.daemon.pid);
    if (grown > memory + ((size_t)48 << 20)) fail_msg("the daemon's memory grew from %zu to %zu bytes", memory, grown);
    assert_int_equal(libaoi_sync(slow->c, TIMEOUT_MS), 0);
    assert_int_equal(libaoi_unanswered(slow->c), 0);
    rig_stop(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_does_not_read_gets_fewer_and_larger_deltas_on_the_grid),
        cmocka_unit_test(a_client_that_does_not_read_gets_fewer_and_larger_deltas_on_the_crosslist),
        cmocka_unit_test(a_client_that_never_reads_is_closed_with_the_reason_and_nobody_else_is),
        cmocka_unit_test(a_stalled_reader_cannot_hold_the_exit),
        cmocka_unit_test(seventy_thousand_tiny_frames_without_reading_are_all_answered_in_the_end),
        cmocka_unit_test(results_that_nobody_reads_wait_at_the_client_and_not_in_the_daemon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
