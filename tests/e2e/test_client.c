/* test_client.c: libaoi before a daemon that does wrong: each fault ends with a sentence, none with a wait without end. */
#include "harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "wire/codec.h"

enum after { CLOSES, STAYS, FLOODS };

/* A process that takes one connection, sends these bytes, and then closes, keeps still until it is closed, or sends empty frames until then. */
struct fake {
    pid_t pid;
    char address[64];
};

static struct fake fake_start(const struct buf *says, enum after after)
{
    struct fake fake;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    snprintf(fake.address, sizeof fake.address, "127.0.0.1:%u", ntohs(at.sin_port));
    fake.pid = fork();
    assert_true(fake.pid >= 0);
    if (fake.pid == 0) {
        char bytes[4096];
        static const char empty[4096];
        alarm(60);
        signal(SIGPIPE, SIG_IGN);
        int fd = accept(listener, NULL, NULL);
        if (fd < 0 || read(fd, bytes, sizeof bytes) <= 0) _exit(1); /* the Hello, so that closing sends no reset */
        for (size_t done = 0; done < buf_len(says);) {
            ssize_t n = write(fd, buf_data(says) + done, buf_len(says) - done);
            if (n <= 0) _exit(1);
            done += (size_t)n;
        }
        if (after == CLOSES) shutdown(fd, SHUT_WR);
        while (after == FLOODS && write(fd, empty, sizeof empty) > 0) {}
        while (read(fd, bytes, sizeof bytes) > 0) {}
        _exit(0);
    }
    close(listener);
    return fake;
}

static void fake_stop(const struct fake *fake)
{
    int status;
    assert_int_equal(waitpid(fake->pid, &status, 0), fake->pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void say_welcome_of(struct buf *out, uint32_t max_frame_bytes)
{
    struct codec_server_frame f = {.reply_to = 1, .kind = CODEC_WELCOME};
    f.u.welcome.protocol_version = 1;
    f.u.welcome.server_version = "fake";
    f.u.welcome.session = 1;
    f.u.welcome.max_frame_bytes = max_frame_bytes;
    codec_encode_server(&f, out);
}

static void say_welcome(struct buf *out)
{
    say_welcome_of(out, 65536);
}

static void say_pong(struct buf *out, uint64_t reply_to)
{
    struct codec_server_frame f = {.reply_to = reply_to, .kind = CODEC_PONG};
    codec_encode_server(&f, out);
}

static void say_error(struct buf *out, uint64_t reply_to, int code, const char *text)
{
    struct codec_server_frame f = {.reply_to = reply_to, .kind = CODEC_ERROR, .u.error = {.code = (uint32_t)code, .text = text}};
    codec_encode_server(&f, out);
}

static void say_enter(struct buf *out, uint64_t seq)
{
    static const uint64_t id = 5;
    static const float at = 1;
    static const uint32_t layers = 1;
    const struct aoi_delta delta = {
        .space = 1, .flush = seq, .player = 7, .seq = seq, .enters = {.n = 1, .id = &id, .x = &at, .y = &at, .layers = &layers}};
    codec_encode_delta(&delta, 65536, out);
}

/* An enter of 5 and messages from it and from a point, or from somebody else. */
static void say_messages(struct buf *out, uint64_t seq, uint64_t from)
{
    static const uint64_t id = 5;
    static const float at = 1;
    static const uint32_t layers = 1, len[3] = {3, 0, 2};
    static const void *const message[3] = {"one", "", "2."};
    const uint64_t froms[3] = {from, 0, from};
    const struct aoi_delta delta = {.space = 1,
                                    .flush = seq,
                                    .player = 7,
                                    .seq = seq,
                                    .enters = {.n = 1, .id = &id, .x = &at, .y = &at, .layers = &layers},
                                    .message_n = 3,
                                    .message_from = froms,
                                    .message = message,
                                    .message_len = len,
                                    .messages_lost = 4};
    codec_encode_delta(&delta, 65536, out);
}

static void say_notices(struct buf *out, uint64_t reply_to)
{
    static const uint64_t ids[3] = {11, 12, 7};
    struct codec_server_frame f = {.reply_to = reply_to, .kind = CODEC_OBSERVED};
    f.u.observed.space = 1;
    f.u.observed.observed_n = 2;
    f.u.observed.observed = ids;
    f.u.observed.unobserved_n = 1;
    f.u.observed.unobserved = ids + 1;
    codec_encode_server(&f, out);
    f = (struct codec_server_frame){.kind = CODEC_LOST};
    f.u.lost.space = 1;
    f.u.lost.entity_n = 1;
    f.u.lost.entities = ids;
    f.u.lost.player_n = 1;
    f.u.lost.players = ids + 2;
    codec_encode_server(&f, out);
}

static struct libaoi *connect_to(const struct fake *fake, uint32_t timeout_ms, char *error, size_t size)
{
    return libaoi_connect(&(struct libaoi_options){.address = fake->address, .timeout_ms = timeout_ms, .mirror = true}, error, size);
}

/* Connects, pings, and must end with this status and these words. */
static void expect_end(struct buf *says, enum after after, int status, const char *words)
{
    char error[400] = "";
    struct fake fake = fake_start(says, after);
    struct libaoi *c = connect_to(&fake, TIMEOUT_MS, error, sizeof error);
    if (!c) fail_msg("%s", error);
    assert_int_equal(libaoi_wait(c, libaoi_ping(c, 1), status == LIBAOI_ETIMEOUT ? 50 : TIMEOUT_MS), status);
    if (!strstr(libaoi_error(c), words)) fail_msg("\"%s\" does not say \"%s\"", libaoi_error(c), words);
    if (status != LIBAOI_ETIMEOUT) {
        assert_int_equal(libaoi_poll(c, 0), status); /* it stays so */
        assert_int_equal(libaoi_ping(c, 2), 0);
    }
    libaoi_close(c);
    fake_stop(&fake);
    buf_clear(says);
}

static void expect_no_connection(struct buf *says, enum after after, uint32_t timeout_ms, const char *words)
{
    char error[400] = "";
    struct fake fake = fake_start(says, after);
    assert_null(connect_to(&fake, timeout_ms, error, sizeof error));
    if (!strstr(error, words)) fail_msg("\"%s\" does not say \"%s\"", error, words);
    fake_stop(&fake);
    buf_clear(says);
}

static void a_daemon_that_keeps_silent_or_speaks_nonsense_is_no_daemon(void **state)
{
    (void)state;
    struct buf says = {0};
    expect_no_connection(&says, STAYS, 300, "takes connections, but says nothing: no answer from the daemon within 300 ms. Is it stopped");
    expect_no_connection(
        &says, CLOSES, TIMEOUT_MS,
        "takes connections, but not this one: the daemon closed the connection. Its log says why: does it speak TLS (its tls_cert)?");
    buf_append(&says, "HTTP/1.1 400 Bad Request\r\n\r\n................................................................", 92);
    expect_no_connection(&says, STAYS, TIMEOUT_MS, "answered, but not as aoid does");
    buf_append(&says, "\xff\xff\xff\xff\xff", 5);
    expect_no_connection(&says, STAYS, TIMEOUT_MS, "longer than 4 bytes");
    say_pong(&says, 1);
    expect_no_connection(&says, STAYS, TIMEOUT_MS, "the first reply is a Welcome");
    say_error(&says, 1, LIBAOI_UNSUPPORTED, "speak version 1");
    expect_no_connection(&says, CLOSES, TIMEOUT_MS, "UNSUPPORTED: speak version 1");
}

static void a_frame_size_that_cannot_be_worked_with_is_no_welcome(void **state)
{
    (void)state;
    struct buf says = {0};
    say_welcome_of(&says, 200);
    expect_no_connection(&says, STAYS, TIMEOUT_MS, "max_frame_bytes of 200 is too small");
    say_welcome_of(&says, UINT32_MAX);
    expect_no_connection(&says, STAYS, TIMEOUT_MS, "max_frame_bytes of 4294967295 is too large");
}

static void a_flood_of_nothing_is_no_answer(void **state)
{
    (void)state;
    struct buf says = {0};
    expect_no_connection(&says, FLOODS, 300, "no answer from the daemon within 300 ms");
    say_welcome(&says);
    expect_end(&says, FLOODS, LIBAOI_ETIMEOUT, "no answer from the daemon within 50 ms");
    char error[400];
    say_welcome(&says);
    struct fake fake = fake_start(&says, FLOODS);
    struct libaoi *c = connect_to(&fake, TIMEOUT_MS, error, sizeof error);
    assert_non_null(c);
    assert_int_equal(libaoi_bye(c, 50), LIBAOI_ETIMEOUT);
    libaoi_close(c);
    fake_stop(&fake);
    buf_clear(&says);
}

/* A Bye that nobody answered has ended no session. */
static void a_bye_is_said_or_it_fails(void **state)
{
    (void)state;
    struct buf says = {0};
    for (int broken = 0; broken < 2; broken++) {
        char error[400];
        say_welcome(&says);
        struct fake fake = fake_start(&says, CLOSES);
        struct libaoi_options options = {.address = fake.address, .timeout_ms = TIMEOUT_MS, .resume = true};
        struct libaoi *c = libaoi_connect(&options, error, sizeof error);
        assert_non_null(c);
        if (broken) assert_int_equal(libaoi_wait(c, libaoi_ping(c, 1), TIMEOUT_MS), LIBAOI_ECLOSED);
        assert_int_equal(libaoi_bye(c, TIMEOUT_MS), LIBAOI_ECLOSED);
        assert_int_equal(libaoi_unanswered(c), 1); /* the Ping or the Bye */
        libaoi_abandon(c);
        fake_stop(&fake);
        buf_clear(&says);
    }
}

static void replies_out_of_order_end_the_connection(void **state)
{
    (void)state;
    struct buf says = {0};
    say_welcome(&says);
    say_pong(&says, 3);
    expect_end(&says, STAYS, LIBAOI_EPROTOCOL, "a reply to frame 3 where one to 2 is due");
    say_welcome(&says);
    say_welcome(&says);
    expect_end(&says, STAYS, LIBAOI_EPROTOCOL, "a reply to frame 1 where one to 2 is due");
}

static void a_delta_that_may_not_come_ends_the_connection(void **state)
{
    (void)state;
    struct buf says = {0};
    say_welcome(&says);
    say_enter(&says, 1);
    say_enter(&says, 2);
    expect_end(&says, STAYS, LIBAOI_EPROTOCOL, "enter of 5, which is in the view");
    say_welcome(&says);
    say_enter(&says, 4);
    expect_end(&says, STAYS, LIBAOI_EPROTOCOL, "expected delta 1");
}

static char heard[512]; /* what the handlers below were called with, in order */

static void hear(const char *format, uint64_t a, uint64_t b, const char *text, uint32_t len)
{
    size_t at = strlen(heard);
    snprintf(heard + at, sizeof heard - at, format, (unsigned long long)a, (unsigned long long)b, (int)len, text);
}

static void on_delta(void *ctx, const struct libaoi_delta *d)
{
    (void)ctx;
    hear("delta %llu of player %llu%.*s; ", d->seq, d->player, "", 0);
}

static void on_message(void *ctx, const struct libaoi_delta *d, uint64_t from, const void *message, uint32_t len)
{
    (void)ctx;
    hear("from %llu to %llu \"%.*s\"; ", from, d->player, message, len);
}

static void on_messages_lost(void *ctx, const struct libaoi_delta *d)
{
    (void)ctx;
    hear("%llu lost for %llu%.*s; ", d->messages_lost, d->player, "", 0);
}

static void on_observed(void *ctx, uint64_t space, bool observed, size_t n, const uint64_t *id)
{
    (void)ctx;
    (void)space;
    hear(observed ? "%llu observed, first %llu%.*s; " : "%llu unobserved, first %llu%.*s; ", n, id[0], "", 0);
}

static void on_lost(void *ctx, uint64_t space, bool players, size_t n, const uint64_t *id)
{
    (void)ctx;
    (void)space;
    hear(players ? "%llu player lost, %llu%.*s; " : "%llu entity lost, %llu%.*s; ", n, id[0], "", 0);
}

static void messages_and_notices_reach_their_handlers_in_order(void **state)
{
    (void)state;
    struct buf says = {0};
    char error[400];
    say_welcome(&says);
    say_messages(&says, 1, 5);
    say_notices(&says, 0);
    say_pong(&says, 2);
    struct fake fake = fake_start(&says, STAYS);
    const struct libaoi_options options = {
        .address = fake.address,
        .mirror = true,
        .handlers = {.delta = on_delta, .message = on_message, .messages_lost = on_messages_lost, .observed = on_observed, .lost = on_lost}};
    struct libaoi *c = libaoi_connect(&options, error, sizeof error);
    assert_non_null(c);
    assert_int_equal(libaoi_wait(c, libaoi_ping(c, 1), TIMEOUT_MS), 0);
    assert_string_equal(heard, "delta 1 of player 7; from 5 to 7 \"one\"; from 0 to 7 \"\"; from 5 to 7 \"2.\"; 4 lost for 7; 2 observed, first 11; "
                               "1 unobserved, first 12; 1 entity lost, 11; 1 player lost, 7; ");
    assert_null(libaoi_view(c, 1, 7)); /* the player that was lost */
    assert_int_equal(libaoi_counters(c)->messages, 3);
    assert_int_equal(libaoi_counters(c)->messages_lost, 4);
    libaoi_close(c);
    fake_stop(&fake);
    buf_clear(&says);
}

static void a_message_of_who_is_not_seen_and_a_notice_as_a_reply_end_the_connection(void **state)
{
    (void)state;
    struct buf says = {0};
    say_welcome(&says);
    say_messages(&says, 1, 6);
    expect_end(&says, STAYS, LIBAOI_EPROTOCOL, "message of 6, which is not in the view");
    say_welcome(&says);
    say_notices(&says, 2);
    expect_end(&says, STAYS, LIBAOI_EPROTOCOL, "a reply to frame 2");
}

static void the_reason_of_a_close_is_told(void **state)
{
    (void)state;
    struct buf says = {0};
    say_welcome(&says);
    say_error(&says, 0, LIBAOI_MALFORMED, "that is no frame");
    expect_end(&says, CLOSES, LIBAOI_ECLOSED, "the daemon closed the connection: MALFORMED: that is no frame");
    say_welcome(&says);
    expect_end(&says, CLOSES, LIBAOI_ECLOSED, "the daemon closed the connection");
    say_welcome(&says);
    say_error(&says, 2, LIBAOI_UNKNOWN_SPACE, "not the reason");
    struct fake fake = fake_start(&says, CLOSES);
    char error[400];
    struct libaoi *c = connect_to(&fake, TIMEOUT_MS, error, sizeof error);
    assert_non_null(c);
    assert_int_equal(libaoi_wait(c, libaoi_ping(c, 1), TIMEOUT_MS), LIBAOI_EREFUSED);
    int status = 0;
    for (int i = 0; i < 600 && status >= 0; i++) status = libaoi_poll(c, 100);
    assert_int_equal(status, LIBAOI_ECLOSED);
    assert_string_equal(libaoi_error(c), "the daemon closed the connection");
    assert_int_equal(libaoi_refused_code(c), 0);
    libaoi_close(c);
    fake_stop(&fake);
    buf_clear(&says);
    say_welcome(&says);
    expect_end(&says, STAYS, LIBAOI_ETIMEOUT, "no answer from the daemon within 50 ms");
}

static void what_arrives_byte_by_byte_or_all_at_once_is_the_same(void **state)
{
    (void)state;
    struct buf says = {0};
    char error[400];
    say_welcome(&says);
    say_enter(&says, 1);
    say_pong(&says, 2);
    struct fake fake = fake_start(&says, STAYS);
    struct libaoi *c = connect_to(&fake, TIMEOUT_MS, error, sizeof error);
    assert_non_null(c);
    assert_int_equal(libaoi_wait(c, libaoi_ping(c, 1), TIMEOUT_MS), 0);
    assert_int_equal(libaoi_view(c, 1, 7)->n, 1);
    assert_int_equal(libaoi_counters(c)->frames_in, 3);
    libaoi_close(c);
    fake_stop(&fake);
    buf_clear(&says);
}

static void expect_address_error(const char *address, const char *words)
{
    char error[400];
    assert_null(libaoi_connect(&(struct libaoi_options){.address = address, .timeout_ms = 1}, error, sizeof error));
    if (!strstr(error, words)) fail_msg("\"%s\" does not say \"%s\"", error, words);
}

static void an_address_that_is_none_says_how_one_is_written(void **state)
{
    (void)state;
    expect_address_error("127.0.0.1:no-such-port", "cannot connect to \"127.0.0.1:no-such-port\": a port is a number from 1 to 65535. An address is "
                                                   "HOST:PORT, for example 127.0.0.1:2643, or unix:PATH");
    expect_address_error("127.0.0.1:99999", "cannot connect to \"127.0.0.1:99999\": a port is a number from 1 to 65535");
    expect_address_error("127.0.0.1:0", "a port is a number from 1 to 65535");
    expect_address_error("127.0.0.1:-1", "a port is a number from 1 to 65535");
    expect_address_error("127.0.0.1:99999999999999999999999", "a port is a number from 1 to 65535");
    expect_address_error("::1:2643", "an IPv6 address stands in brackets, as in [::1]:2643");
    expect_address_error("::1", "an IPv6 address stands in brackets");
    expect_address_error("unix:", "cannot connect to \"unix:\": there is no path behind unix:");
}

/* Where no daemon listens, not even one that runs beside the tests. */
static void an_address_that_leaves_something_out_is_told_whole(void **state)
{
    (void)state;
    expect_address_error(":1", "cannot connect to 127.0.0.1:1: Connection refused. Is aoid running there? Start it with: aoid --listen 127.0.0.1:1");
    expect_address_error("127.77.0.3", "cannot connect to 127.77.0.3:2643: ");
    expect_address_error("127.77.0.3:", "Start it with: aoid --listen 127.77.0.3:2643");
    expect_address_error("0.0.0.0:1",
                         "cannot connect to 0.0.0.0:1: Connection refused. Is aoid running there? Without a tokens_file it can be reached from");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_daemon_that_keeps_silent_or_speaks_nonsense_is_no_daemon),
        cmocka_unit_test(a_frame_size_that_cannot_be_worked_with_is_no_welcome),
        cmocka_unit_test(a_flood_of_nothing_is_no_answer),
        cmocka_unit_test(a_bye_is_said_or_it_fails),
        cmocka_unit_test(replies_out_of_order_end_the_connection),
        cmocka_unit_test(a_delta_that_may_not_come_ends_the_connection),
        cmocka_unit_test(messages_and_notices_reach_their_handlers_in_order),
        cmocka_unit_test(a_message_of_who_is_not_seen_and_a_notice_as_a_reply_end_the_connection),
        cmocka_unit_test(the_reason_of_a_close_is_told),
        cmocka_unit_test(what_arrives_byte_by_byte_or_all_at_once_is_the_same),
        cmocka_unit_test(an_address_that_is_none_says_how_one_is_written),
        cmocka_unit_test(an_address_that_leaves_something_out_is_told_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
