/* test_snapshot.c: libaoi and a daemon that comes back: after a drain as if nothing had happened, after a crash as it was at the last snapshot. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#define SPACE 1
#define UNIT 100
#define PLAYER 7

static char dir[64], unix_socket[100]; /* the daemons' common address */

static struct rig start(const char *every)
{
    struct rig rig;
    char listen[120], file[120];
    snprintf(listen, sizeof listen, "unix_socket=%s", unix_socket);
    snprintf(file, sizeof file, "snapshot=%s/snapshot", dir);
    rig_start(&rig, (const char *[]){"max_lease_ms=60000", listen, file, every, NULL});
    return rig;
}

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/aoid-test-XXXXXX");
    if (mkdtemp(dir) == NULL) return -1;
    snprintf(unix_socket, sizeof unix_socket, "%s/socket", dir);
    return 0;
}

static int remove_dir(void **state)
{
    static const char *const names[] = {"socket", "snapshot", "snapshot.old", "snapshot.new"};
    char path[120];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    return rmdir(dir);
}

static struct libaoi *begin(void)
{
    const struct libaoi_options options = {
        .address = unix_socket, .client_name = "comes back", .timeout_ms = TIMEOUT_MS, .mirror = true, .lease_ms = 60000, .resume = true};
    struct libaoi *c = connect_or_fail(&options);
    libaoi_create_space(c, SPACE, &(struct libaoi_settings){.flush_ms = 20}, false);
    libaoi_add(c, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = UNIT, .radius = 50});
    for (uint64_t id = 1; id <= 10; id++) libaoi_add(c, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = id, .pos = {(float)id, 0}});
    libaoi_subscribe(c, SPACE, PLAYER, UNIT, false);
    assert_int_equal(libaoi_sync(c, TIMEOUT_MS), 0);
    return c;
}

static float seen_at(struct libaoi *c, uint64_t id)
{
    const struct libaoi_view *view = libaoi_view(c, SPACE, PLAYER);
    const struct libaoi_item *item = view == NULL ? NULL : libaoi_view_find(view, id);
    return item == NULL ? -1 : item->pos[1];
}

/* Polls until the player was told that the entity is at this y. */
static void await_seen(struct libaoi *c, uint64_t id, float y)
{
    for (int tries = 0; seen_at(c, id) != y; tries++) {
        assert_true(tries < TIMEOUT_MS / 10);
        if (libaoi_poll(c, 10) < 0) fail_msg("%s", libaoi_error(c));
    }
}

static void move_to(struct libaoi *c, uint64_t id, float y)
{
    libaoi_move(c, SPACE, 1, &id, &(float){1}, &y, NULL, NULL);
    assert_int_equal(libaoi_sync(c, TIMEOUT_MS), 0);
}

static void after_a_drain_libaoi_goes_on_as_if_nothing_had_happened(void **state)
{
    (void)state;
    struct rig old = start("snapshot_s=0");
    struct libaoi *c = begin();
    move_to(c, 3, 5);
    await_seen(c, 3, 5);
    rig_stop(&old);
    while (libaoi_poll(c, 100) >= 0) continue;
    libaoi_move(c, SPACE, 1, &(uint64_t){4}, &(float){1}, &(float){6}, NULL, NULL); /* queued while there is no daemon */
    libaoi_send(c);
    struct rig fresh = start("snapshot_s=0");
    assert_int_equal(libaoi_resume(c, TIMEOUT_MS), 1);
    assert_true(seen_at(c, 3) == 5); /* the mirror holds what it held, until it is told everything */
    await_seen(c, 4, 6);
    assert_true(seen_at(c, 3) == 5 && libaoi_view(c, SPACE, PLAYER)->n == 10);
    libaoi_close(c);
    rig_stop(&fresh);
}

static void what_the_next_daemon_takes_no_more_ends_the_trying(void **state)
{
    (void)state;
    enum { MANY = 40000 };
    static uint64_t id[MANY];
    static float at[MANY];
    struct rig old = start("max_frame_bytes=4194304");
    struct libaoi *c = begin();
    rig_stop(&old);
    while (libaoi_poll(c, 100) >= 0) continue;
    for (int i = 0; i < MANY; i++) id[i] = 3;
    libaoi_move(c, SPACE, MANY, id, at, at, NULL, NULL);
    libaoi_send(c);
    struct rig fresh = start("max_frame_bytes=65536");
    assert_int_equal(libaoi_resume(c, TIMEOUT_MS), LIBAOI_ETOOLARGE);
    assert_non_null(strstr(libaoi_error(c), "max_frame_bytes, 65536 now"));
    assert_int_equal(libaoi_sync(c, TIMEOUT_MS), LIBAOI_ECLOSED);
    libaoi_close(c);
    rig_stop(&fresh);
}

static void what_a_draining_daemon_refused_is_not_taken_for_lost(void **state)
{
    (void)state;
    struct rig old = start("snapshot_s=0");
    struct libaoi *c = begin();
    kill(old.daemon.pid, SIGTERM);
    int status = 0;
    for (int y = 1; status == 0 && y <= 100000; y++) {
        libaoi_move(c, SPACE, 1, &(uint64_t){3}, &(float){1}, &(float){(float)y}, NULL, NULL);
        status = libaoi_sync(c, TIMEOUT_MS);
    }
    assert_int_equal(status, LIBAOI_EREFUSED);
    struct libaoi_stats stats;
    libaoi_query_stats(c, SPACE, TIMEOUT_MS, &stats); /* answered while it drains, unless it has closed by now: that counts for nothing either */
    while (libaoi_poll(c, 100) >= 0) continue;
    assert_int_equal(daemon_wait(&old.daemon, TIMEOUT_MS), 0); /* not rig_stop(): a second signal would end it at once */
    daemon_stop(&old.daemon, 0);
    struct rig fresh = start("snapshot_s=0");
    assert_int_equal(libaoi_resume(c, TIMEOUT_MS), 1);
    move_to(c, 3, 7);
    await_seen(c, 3, 7);
    libaoi_close(c);
    rig_stop(&fresh);
}

static void a_new_session_is_not_measured_by_what_the_old_one_was_answered(void **state)
{
    (void)state;
    struct rig old = start("snapshot_s=1000");
    struct libaoi *c = begin();
    for (int y = 1; y <= 5; y++) move_to(c, 3, (float)y);
    kill(old.daemon.pid, SIGKILL);
    daemon_stop(&old.daemon, TIMEOUT_MS);
    struct rig fresh = start("snapshot_s=1000");
    assert_int_equal(libaoi_resume(c, TIMEOUT_MS), 0);
    assert_int_equal(libaoi_resume(c, TIMEOUT_MS), 1);
    libaoi_close(c);
    rig_stop(&fresh);
}

static void after_a_crash_libaoi_says_that_the_daemon_is_behind(void **state)
{
    (void)state;
    struct rig old = start("snapshot_s=1");
    struct libaoi *c = begin();
    for (int tries = 0; !rig_logged(&old, "result=written"); tries++) {
        assert_true(tries < TIMEOUT_MS / 10);
        assert_true(libaoi_poll(c, 10) >= 0);
    }
    for (int y = 1; y <= 20; y++) move_to(c, 3, (float)y);
    await_seen(c, 3, 20);
    kill(old.daemon.pid, SIGKILL);
    daemon_stop(&old.daemon, TIMEOUT_MS);
    while (libaoi_poll(c, 100) >= 0) continue;
    struct rig fresh = start("snapshot_s=1000");
    int resumed = libaoi_resume(c, TIMEOUT_MS);
    assert_true(resumed == 2 || (resumed == 1 && rig_logged(&fresh, "age_s=0"))); /* 1: another snapshot came after the last move */
    assert_int_equal(libaoi_add(c, SPACE, LIBAOI_ADD_UPSERT, &(struct libaoi_entity){.id = 3, .pos = {1, 21}}), 0);
    assert_int_equal(libaoi_sync(c, TIMEOUT_MS), 0);
    await_seen(c, 3, 21);
    assert_int_equal(libaoi_view(c, SPACE, PLAYER)->n, 10);
    libaoi_close(c);
    rig_stop(&fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_the_next_daemon_takes_no_more_ends_the_trying, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(what_a_draining_daemon_refused_is_not_taken_for_lost, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(after_a_drain_libaoi_goes_on_as_if_nothing_had_happened, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_new_session_is_not_measured_by_what_the_old_one_was_answered, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(after_a_crash_libaoi_says_that_the_daemon_is_behind, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
