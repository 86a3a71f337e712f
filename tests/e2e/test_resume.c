/* test_resume.c: game servers that die, fall silent or come back, as cases on both indexes. */
#include "client/libaoi_impl.h"
#include "stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEASE_MS 700

static void begin(uint32_t index)
{
    stage_start_watched((const char *[]){"max_lease_ms=60000", NULL}, index);
}

static void count_refusals(void *ctx, const struct libaoi_ack *ack)
{
    size_t *refused = ctx;
    *refused += ack->refused;
}

static size_t refused;

static struct libaoi *connect_resuming(uint32_t lease_ms)
{
    const struct libaoi_options options = {.address = rig.daemon.address,
                                           .client_name = "comes back",
                                           .timeout_ms = TIMEOUT_MS,
                                           .mirror = true,
                                           .lease_ms = lease_ms,
                                           .resume = true,
                                           .handlers = {.ctx = &refused, .ack = count_refusals}};
    refused = 0;
    return connect_or_fail(&options);
}

/* A process that adds 100 entities and then lives until it is killed. */
static pid_t start_server(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct libaoi *c = connect_resuming(LEASE_MS);
        for (uint64_t id = 1; id <= 100; id++)
            libaoi_add(c, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = 1000 + id, .pos = {1, (float)id / 50}});
        if (libaoi_sync(c, TIMEOUT_MS) || write(ready[1], "", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static uint64_t entities(void)
{
    struct libaoi_stats stats;
    assert_int_equal(libaoi_query_stats(mover->c, SPACE, TIMEOUT_MS, &stats), 0);
    return stats.entities;
}

static void sleep_ms(int ms)
{
    usleep((unsigned)ms * 1000);
}

/* Waits until at most n are left. Not for ever: whoever needs it looks again. */
static void await_entities(uint64_t n)
{
    for (int i = 0; i < 4000 && entities() > n; i++) sleep_ms(5);
}

CASE(what_a_killed_game_server_had_leaves_when_its_lease_is_over)
{
    pid_t pid = start_server();
    flush(mover, SPACE, eye);
    assert_int_equal(libaoi_view(eye->c, SPACE, P)->n, 100);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 1000 && !rig_logged(&rig, "reason=eof") && !rig_logged(&rig, "reason=io_error"); i++) sleep_ms(5);
    if (!rig_logged(&rig, "lease_end")) { /* else this machine is very busy */
        libaoi_add(mover->c, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = 9, .pos = {2, 2}});
        flush(mover, SPACE, eye);
        assert_int_equal(libaoi_view(eye->c, SPACE, P)->leaves, 0);
    }
    await_entities(2);
    flush(mover, SPACE, eye);
    assert_int_equal(libaoi_view(eye->c, SPACE, P)->leaves, 100);
    assert_true(entities() <= 2);
    float all[2][3] = {{-1e6f, -1e6f}, {1e6f, 1e6f}};
    struct libaoi_rows rows;
    assert_int_equal(libaoi_query_box(mover->c, SPACE, all[0], all[1], 0, 0, 0, TIMEOUT_MS, &rows), 0);
    assert_int_equal(rows.n, entities());
}

CASE(a_connection_that_is_lost_and_resumed_gets_one_full_delta)
{
    struct libaoi *c = connect_resuming(30000);
    for (uint64_t id = 1; id <= 3; id++) add(mover, SPACE, id, 1, (float)id, 0);
    client_ok(mover);
    libaoi_subscribe(c, SPACE, 7, U, false);
    assert_int_equal(libaoi_sync(c, TIMEOUT_MS), 0);
    flush(mover, SPACE, eye);
    assert_int_equal(libaoi_wait(c, libaoi_ping(c, 1), TIMEOUT_MS), 0);
    assert_int_equal(libaoi_view(c, SPACE, 7)->n, 3);
    shutdown(libaoi_fd(c), SHUT_RDWR);
    assert_int_equal(libaoi_poll(c, TIMEOUT_MS), LIBAOI_ECLOSED);
    drop(mover, SPACE, 2);
    move(mover, SPACE, 3, 100, 0);
    add(mover, SPACE, 4, 4, 4, 0);
    flush(mover, SPACE, eye);
    assert_int_equal(libaoi_view(c, SPACE, 7)->n, 3); /* what it held */
    assert_int_equal(libaoi_resume(c, TIMEOUT_MS), 1);
    flush(mover, SPACE, eye);
    assert_int_equal(libaoi_wait(c, libaoi_ping(c, 2), TIMEOUT_MS), 0);
    const struct libaoi_view *view = libaoi_view(c, SPACE, 7);
    assert_true(view->n == 2 && libaoi_view_find(view, 1) && libaoi_view_find(view, 4));
    assert_int_equal(view->fulls, 1);
    assert_int_equal(view->deltas, 2);
    libaoi_close(c);
}

CASE(a_session_whose_lease_is_over_is_told_that_it_is_a_new_one)
{
    struct libaoi *c = connect_resuming(1);
    add(mover, SPACE, 1, 1, 1, 0);
    client_ok(mover);
    uint64_t session = libaoi_welcome(c)->session;
    assert_int_equal(libaoi_welcome(c)->lease_ms, 1);
    libaoi_subscribe(c, SPACE, 7, U, false);
    libaoi_add(c, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = 50, .pos = {2, 2}});
    assert_int_equal(libaoi_sync(c, TIMEOUT_MS), 0);
    flush(mover, SPACE, eye);
    assert_int_equal(libaoi_wait(c, libaoi_ping(c, 1), TIMEOUT_MS), 0);
    assert_int_equal(libaoi_view(c, SPACE, 7)->n, 2);
    shutdown(libaoi_fd(c), SHUT_RDWR);
    await_entities(2);
    assert_int_equal(libaoi_resume(c, TIMEOUT_MS), 0);
    assert_true(libaoi_welcome(c)->session != session);
    assert_null(libaoi_view(c, SPACE, 7));
    assert_int_equal(libaoi_unanswered(c), 0);
    libaoi_add(c, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = 50, .pos = {2, 2}});
    libaoi_subscribe(c, SPACE, 7, U, false);
    assert_int_equal(libaoi_sync(c, TIMEOUT_MS), 0);
    assert_int_equal(refused, 0);
    flush(mover, SPACE, eye);
    assert_int_equal(libaoi_wait(c, libaoi_ping(c, 1), TIMEOUT_MS), 0);
    assert_int_equal(libaoi_view(c, SPACE, 7)->seq, 1);
    libaoi_close(c);
}

CASE(what_was_sent_while_there_was_no_connection_goes_out_with_the_resume)
{
    struct libaoi *c = connect_resuming(30000);
    libaoi_add(c, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = 1, .pos = {1, 1}});
    libaoi_send(c);
    shutdown(libaoi_fd(c), SHUT_RDWR);
    for (int status = 0; status >= 0;) status = libaoi_poll(c, TIMEOUT_MS);
    for (uint64_t id = 2; id <= 20; id++) {
        libaoi_add(c, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = id, .pos = {1, 1}});
        assert_true(libaoi_send(c) > 0);
    }
    assert_int_equal(libaoi_resume(c, TIMEOUT_MS), 1);
    assert_int_equal(libaoi_sync(c, TIMEOUT_MS), 0);
    assert_int_equal(refused, 0);
    assert_int_equal(entities(), 21);
    libaoi_close(c); /* says Bye */
    await_entities(1);
    assert_int_equal(entities(), 1);
    assert_false(rig_logged(&rig, "lease_end"));
}

CASE(a_resume_that_is_refused_for_ever_says_so)
{
    struct libaoi *c = connect_resuming(30000);
    shutdown(libaoi_fd(c), SHUT_RDWR);
    for (int status = 0; status >= 0;) status = libaoi_poll(c, TIMEOUT_MS);
    c->resume_token[0] ^= 1;
    for (int i = 0; i < 3; i++) {
        assert_true(libaoi_resume(c, TIMEOUT_MS) < 0);
        assert_int_equal(libaoi_refused_code(c), LIBAOI_UNAUTHENTICATED);
    }
    c->resume_token[0] ^= 1;
    assert_int_equal(libaoi_resume(c, TIMEOUT_MS), 1);
    libaoi_close(c);
}

CASE(a_resume_after_bye_begins_a_session_that_ends_with_libaoi_close)
{
    struct libaoi *c = connect_resuming(30000);
    assert_int_equal(libaoi_bye(c, TIMEOUT_MS), 0);
    assert_int_equal(libaoi_resume(c, TIMEOUT_MS), 0);
    libaoi_add(c, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = 9, .pos = {2, 2}});
    assert_int_equal(libaoi_sync(c, TIMEOUT_MS), 0);
    assert_int_equal(entities(), 2);
    libaoi_close(c);
    await_entities(1);
    assert_int_equal(entities(), 1); /* long before its lease is over */
}

CASE(a_resume_without_the_option_is_an_error_and_changes_nothing)
{
    struct libaoi *c = connect_or_fail(&(struct libaoi_options){.address = rig.daemon.address, .timeout_ms = TIMEOUT_MS});
    assert_int_equal(libaoi_resume(c, 100), LIBAOI_EINVAL);
    assert_int_equal(libaoi_wait(c, libaoi_ping(c, 1), TIMEOUT_MS), 0);
    libaoi_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_killed_game_server_had_leaves_when_its_lease_is_over),
        cmocka_unit_test(a_connection_that_is_lost_and_resumed_gets_one_full_delta),
        cmocka_unit_test(a_session_whose_lease_is_over_is_told_that_it_is_a_new_one),
        cmocka_unit_test(what_was_sent_while_there_was_no_connection_goes_out_with_the_resume),
        cmocka_unit_test(a_resume_that_is_refused_for_ever_says_so),
        cmocka_unit_test(a_resume_after_bye_begins_a_session_that_ends_with_libaoi_close),
        cmocka_unit_test(a_resume_without_the_option_is_an_error_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
