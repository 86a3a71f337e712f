/* test_outbox.c: what waits to be written: limits, partial writes, order, and the memory that is given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/outbox.h"

static const struct outbox_limits limits = {.soft_bytes = 1000, .hard_bytes = 5000, .slack_bytes = 100};

/* An outbox on one end of a socket pair; the test reads the other end. */
struct rig {
    uv_loop_t loop;
    uv_pipe_t pipe;
    int peer;
    struct outbox outbox;
    uint64_t written;
    int calls, status;
};

static void on_written(struct outbox *outbox, int status)
{
    struct rig *rig = (struct rig *)((char *)outbox - offsetof(struct rig, outbox));
    rig->calls++;
    rig->status = status;
    if (status == 0) assert_int_equal(outbox_flush(outbox), 0);
}

static int setup(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    assert_int_equal(uv_pipe_init(&rig->loop, &rig->pipe, 0), 0);
    assert_int_equal(uv_pipe_open(&rig->pipe, ends[0]), 0);
    rig->peer = ends[1];
    outbox_init(&rig->outbox, &limits, (uv_stream_t *)&rig->pipe, &rig->written, on_written);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    uv_close((uv_handle_t *)&rig->pipe, NULL);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    outbox_clear(&rig->outbox);
    if (rig->peer >= 0) close(rig->peer);
    free(rig);
    return 0;
}

/* Appends bytes that count on from *next. */
static bool append(struct outbox *outbox, size_t n, uint32_t *next)
{
    uint64_t before = outbox_bytes(outbox);
    uint8_t *p = buf_reserve(&outbox->queue, n);
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)((*next)++ * 7 >> 3);
    outbox->queue.end += n;
    return outbox_appended(outbox, before);
}

/* Reads what is there, checks that it counts on from *next, and returns how much it was. */
static size_t drain(int fd, uint32_t *next)
{
    uint8_t got[65536];
    size_t total = 0;
    for (ssize_t n; (n = read(fd, got, sizeof got)) > 0; total += (size_t)n)
        for (ssize_t i = 0; i < n; i++)
            if (got[i] != (uint8_t)((*next)++ * 7 >> 3)) fail_msg("byte %u is wrong", *next - 1);
    return total;
}

static void room_ends_where_no_delta_is_sure_to_fit(void **state)
{
    (void)state;
    struct outbox outbox;
    uint64_t written = 0;
    uint32_t next = 0;
    outbox_init(&outbox, &limits, NULL, &written, on_written);
    assert_int_equal(outbox_room(&outbox), 1000);
    assert_true(append(&outbox, 900, &next));
    assert_false(outbox_full(&outbox));
    assert_int_equal(outbox_room(&outbox), 100);
    assert_true(append(&outbox, 1, &next));
    assert_true(outbox_full(&outbox));
    assert_int_equal(outbox_room(&outbox), 0);
    assert_int_equal(outbox_bytes(&outbox), 901);
    outbox_clear(&outbox);
}

static void what_begins_with_room_may_be_long_and_what_follows_counts(void **state)
{
    (void)state;
    struct outbox outbox;
    uint64_t written = 0;
    uint32_t next = 0;
    outbox_init(&outbox, &limits, NULL, &written, on_written);
    assert_true(append(&outbox, 900, &next));
    assert_true(append(&outbox, 1000000, &next)); /* a single delta never makes a connection hard-full */
    assert_true(append(&outbox, 4000, &next));    /* the room between soft and hard is still there */
    assert_false(append(&outbox, 1, &next));
    outbox_clear(&outbox);
}

static void everything_arrives_in_order_however_slowly_the_peer_reads(void **state)
{
    struct rig *rig = *state;
    uint32_t put = 0, got = 0;
    size_t sent = 0, total = 0;
    for (int round = 0; round < 200; round++) {
        size_t n = (size_t)(round * 7919 % 60000) + 1;
        append(&rig->outbox, n, &put);
        sent += n;
        assert_int_equal(outbox_flush(&rig->outbox), 0);
        if (round % 20 == 19) total += drain(rig->peer, &got);
        if (round % 2 == 0) uv_run(&rig->loop, UV_RUN_NOWAIT);
        assert_true(total + outbox_bytes(&rig->outbox) <= sent);
    }
    for (int i = 0; i < 100000 && total < sent; i++) {
        total += drain(rig->peer, &got);
        uv_run(&rig->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(total, sent);
    assert_int_equal(outbox_bytes(&rig->outbox), 0);
    assert_int_equal(rig->written, sent);
    assert_true(rig->calls > 0);
}

static void memory_that_is_not_used_is_given_back(void **state)
{
    struct rig *rig = *state;
    uint32_t put = 0, got = 0;
    append(&rig->outbox, 50000, &put);
    assert_int_equal(outbox_flush(&rig->outbox), 0);
    drain(rig->peer, &got);
    assert_int_equal(outbox_bytes(&rig->outbox), 0);
    outbox_relax(&rig->outbox); /* it was used since the last time */
    assert_true(rig->outbox.queue.cap + rig->outbox.flying.cap > 0);
    outbox_relax(&rig->outbox);
    assert_int_equal(rig->outbox.queue.cap + rig->outbox.flying.cap, 0);
}

static void a_peer_that_is_gone_is_told_at_once_or_by_the_write_that_waits(void **state)
{
    struct rig *rig = *state;
    uint32_t put = 0;
    append(&rig->outbox, 4 << 20, &put);
    assert_int_equal(outbox_flush(&rig->outbox), 0);
    assert_true(outbox_bytes(&rig->outbox) > 0);
    close(rig->peer);
    rig->peer = -1;
    for (int i = 0; i < 1000 && rig->calls == 0; i++) uv_run(&rig->loop, UV_RUN_NOWAIT);
    assert_int_equal(rig->calls, 1);
    assert_true(rig->status < 0);
    assert_true(outbox_flush(&rig->outbox) < 0);
}

static void closing_with_a_write_under_way_is_safe(void **state)
{
    struct rig *rig = *state;
    uint32_t put = 0;
    append(&rig->outbox, 4 << 20, &put);
    assert_int_equal(outbox_flush(&rig->outbox), 0);
    assert_true(rig->outbox.write_bytes > 0); /* the teardown closes */
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_ends_where_no_delta_is_sure_to_fit),
        cmocka_unit_test(what_begins_with_room_may_be_long_and_what_follows_counts),
        cmocka_unit_test_setup_teardown(everything_arrives_in_order_however_slowly_the_peer_reads, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_that_is_not_used_is_given_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_peer_that_is_gone_is_told_at_once_or_by_the_write_that_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(closing_with_a_write_under_way_is_safe, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
