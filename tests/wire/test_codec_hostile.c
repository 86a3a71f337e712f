/* test_codec_hostile.c: decoding what no honest peer sends: cut, flipped, lying, or made to cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "frames.h"
#include "wire/frame.h"

static struct arena made, decoded;

static int start(void **state)
{
    (void)state;
    arena_init(&made, (size_t)64 << 20);
    arena_init(&decoded, (size_t)64 << 20);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_clear(&made);
    arena_clear(&decoded);
    return 0;
}

enum side { CLIENT, SERVER };

/* A random frame's body, of *len bytes; free() it. */
static uint8_t *random_body(struct random *r, enum side side, size_t *len)
{
    struct buf out = {0};
    if (side == CLIENT) {
        struct codec_client_frame f;
        frames_random_client(r, &made, (enum codec_client_kind)random_below(r, CODEC_CLIENT_KINDS), &f);
        *len = codec_encode_client(&f, &out);
    } else {
        struct codec_server_frame f;
        frames_random_server(r, &made, (enum codec_server_kind)random_below(r, CODEC_SERVER_KINDS), &f);
        *len = codec_encode_server(&f, &out);
    }
    uint8_t *body = malloc(*len + 1);
    memcpy(body, frames_body(&out, *len), *len);
    buf_clear(&out);
    arena_reset(&made);
    return body;
}

/* Decodes the bytes and writes what they said, which touches all of it. False: malformed. */
static bool decode_and_encode(enum side side, const uint8_t *bytes, size_t len, struct buf *out)
{
    int code;
    struct codec_client_frame client;
    struct codec_server_frame server;
    arena_reset(&decoded);
    if (side == CLIENT) {
        code = codec_decode_client(bytes, len, &decoded, &client);
        if (code == 0) codec_encode_client(&client, out);
    } else {
        code = codec_decode_server(bytes, len, &decoded, &server);
        if (code == 0) codec_encode_server(&server, out);
    }
    assert_true(code == 0 || code == CODEC_MALFORMED);
    return code == 0;
}

/* Whatever the bytes are, they are refused, or mean something that survives being written and read again. */
static bool survives(enum side side, const uint8_t *bytes, size_t len)
{
    uint8_t *exact = malloc(len > 0 ? len : 1); /* so that AddressSanitizer sees a read past the end */
    if (len > 0) memcpy(exact, bytes, len);
    struct buf once = {0}, twice = {0};
    bool ok = decode_and_encode(side, exact, len, &once);
    free(exact);
    if (ok) {
        struct frame f;
        assert_int_equal(frame_next(buf_data(&once), buf_len(&once), FRAME_BODY_MAX, &f), FRAME_READY);
        assert_true(decode_and_encode(side, buf_data(&once) + f.header_len, f.body_len, &twice));
        assert_int_equal(buf_len(&once), buf_len(&twice));
        assert_memory_equal(buf_data(&once), buf_data(&twice), buf_len(&once));
    }
    buf_clear(&once);
    buf_clear(&twice);
    return ok;
}

static void frames_cut_at_every_byte_are_refused_or_mean_something(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    for (int round = 0; round < 200; round++) {
        enum side side = round % 2 == 0 ? CLIENT : SERVER;
        size_t len;
        uint8_t *body = random_body(&r, side, &len);
        size_t step = 1 + len / 400;
        for (size_t cut = 0; cut < len; cut += step) survives(side, body, cut);
        assert_true(survives(side, body, len));
        free(body);
    }
}

static void frames_with_flipped_bits_are_refused_or_mean_something(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    int refused = 0, rounds = 20000;
    for (int round = 0; round < rounds; round++) {
        enum side side = round % 2 == 0 ? CLIENT : SERVER;
        size_t len;
        uint8_t *body = random_body(&r, side, &len);
        for (uint64_t flips = 1 + random_below(&r, 4); flips > 0 && len > 0; flips--)
            body[random_below(&r, len)] ^= (uint8_t)(1 << random_below(&r, 8));
        refused += !survives(side, body, len);
        free(body);
    }
    assert_true(refused > 0 && refused < rounds);
}

static void frames_with_bytes_cut_out_or_doubled_are_refused_or_mean_something(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    for (int round = 0; round < 10000; round++) {
        enum side side = round % 2 == 0 ? CLIENT : SERVER;
        size_t len;
        uint8_t *body = random_body(&r, side, &len);
        size_t from = random_below(&r, len + 1), n = random_below(&r, len - from + 1);
        uint8_t *other = malloc(2 * len + 1);
        memcpy(other, body, from);
        if (random_below(&r, 2) == 0) {
            memcpy(other + from, body + from + n, len - from - n);
            survives(side, other, len - n);
        } else {
            memcpy(other + from, body + from, n);
            memcpy(other + from + n, body + from, len - from);
            survives(side, other, len + n);
        }
        free(other);
        free(body);
    }
}

static void random_bytes_are_refused_or_mean_something(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    for (int round = 0; round < 50000; round++) {
        uint8_t bytes[64];
        size_t len = random_below(&r, sizeof bytes + 1);
        for (size_t i = 0; i < len; i++) bytes[i] = (uint8_t)(random_below(&r, 3) == 0 ? random_u64(&r) : random_below(&r, 48));
        survives(round % 2 == 0 ? CLIENT : SERVER, bytes, len);
    }
}

/* Every allocation of protobuf-c and of the codec is the one that fails, in turn. */
static void at_any_cap_of_the_arena_decoding_fails_cleanly_or_succeeds(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    for (int round = 0; round < 300; round++) {
        enum side side = round % 2 == 0 ? CLIENT : SERVER;
        size_t len;
        uint8_t *body = random_body(&r, side, &len);
        decoded.cap = (size_t)64 << 20;
        struct buf out = {0};
        assert_true(decode_and_encode(side, body, len, &out));
        size_t needed = decoded.used, step = 16 * (1 + needed / 16 / 300);
        for (decoded.cap = 0; decoded.cap < needed; decoded.cap += step) {
            assert_false(decode_and_encode(side, body, len, &out));
            assert_true(decoded.used <= decoded.cap);
        }
        decoded.cap = needed;
        assert_true(decode_and_encode(side, body, len, &out));
        decoded.cap = (size_t)64 << 20;
        buf_clear(&out);
        free(body);
    }
}

/* A message of `len` bytes at most: `unit` again and again inside length-prefixed fields of these tags, outermost first. free() it. */
static uint8_t *stuffed(const char *wrap, const char *unit, size_t unit_len, size_t *len)
{
    size_t max = *len, at = max;
    uint8_t *bytes = malloc(max);
    while (at >= unit_len + 32) memcpy(bytes + (at -= unit_len), unit, unit_len);
    for (size_t i = strlen(wrap); i > 0; i--) {
        uint8_t header[FRAME_HEADER_MAX];
        size_t n = frame_put_header(header, max - at);
        memcpy(bytes + (at -= n), header, n);
        bytes[--at] = (uint8_t)wrap[i - 1];
    }
    *len = max - at;
    memmove(bytes, bytes + at, *len);
    return bytes;
}

/* The server's arena is capped at this many times max_frame_bytes. Measured: at most 108 (CreateSpaces without settings), 88 for empty commands, 37 for the smallest
 * command that makes sense; 85 ns a field of 2 bytes, growing linearly. */
#define FACTOR 128

static void a_frame_of_nothing_but_tiny_fields_takes_bounded_memory(void **state)
{
    (void)state;
    static const struct {
        const char *what, *wrap, *unit;
        size_t unit_len;
        int code;
    } stuffing[] = {
        {"hello again and again", "", "\x12\x00", 2, 0},
        {"hello with a name", "", "\x12\x03\x12\x01z", 5, 0},
        {"queries", "", "\x22\x02\x12\x00", 4, 0},
        {"a query's kind", "\x22", "\x12\x00", 2, 0},
        {"a query's box", "\x22\x12", "\x0a\x00", 2, 0},
        {"empty commands", "\x1a", "\x12\x00", 2, 0},
        {"empty flushes", "\x1a", "\x12\x02\x7a\x00", 4, 0},
        {"empty adds", "\x1a", "\x12\x02\x1a\x00", 4, 0},
        {"empty creates", "\x1a", "\x12\x02\x0a\x00", 4, 0},
        {"creates with settings", "\x1a", "\x12\x04\x0a\x02\x0a\x00", 6, 0},
        {"creates with tiers", "\x1a", "\x12\x09\x0a\x07\x0a\x05\x72\x03*:9", 11, 0},
        {"empty changes", "\x1a", "\x12\x03\x82\x01\x00", 5, 0},
        {"empty releases", "\x1a", "\x12\x03\x9a\x01\x00", 5, 0},
        {"empty publishes", "\x1a", "\x12\x03\xaa\x01\x00", 5, 0},
        {"publishes at nowhere", "\x1a", "\x12\x05\xaa\x01\x02\x12\x00", 7, 0},
        {"a command's kind", "\x1a\x12", "\x1a\x00", 2, 0},
        {"settings that protobuf-c will not merge", "\x1a\x12\x0a", "\x0a\x00", 2, CODEC_MALFORMED},
        {"settings with a period", "\x1a\x12\x0a", "\x0a\x02\x40\x01", 4, 0},
        {"bounds", "\x1a\x12\x0a\x0a", "\x32\x00", 2, 0},
        {"closes", "\x1a", "\x12\x04\x52\x02\x08\x01", 6, 0},
        {"seqs", "", "\x08\x01", 2, 0},
        {"unknown numbers", "", "\x78\x01", 2, 0},
        {"unknown bytes", "", "\x7a\x00", 2, 0},
        {"ids one by one", "\x1a\x12\x22", "\x09\x01\0\0\0\0\0\0\0", 9, 0},
        {"empty columns", "\x1a\x12\x22", "\x0a\x00", 2, 0},
    };
    for (size_t i = 0; i < sizeof stuffing / sizeof *stuffing; i++) {
        size_t len = 1 << 20;
        uint8_t *bytes = stuffed(stuffing[i].wrap, stuffing[i].unit, stuffing[i].unit_len, &len);
        struct arena arena;
        struct codec_client_frame f;
        arena_init(&arena, FACTOR * len);
        int code = codec_decode_client(bytes, len, &arena, &f);
        if (code != stuffing[i].code) fail_msg("%s: code %d, %zu bytes", stuffing[i].what, code, arena.used);
        arena_reset(&arena);
        arena.cap = 4 * len; /* and where that is too much, it is refused */
        code = codec_decode_client(bytes, len, &arena, &f);
        if (code != CODEC_MALFORMED) fail_msg("%s: code %d below %zu bytes", stuffing[i].what, code, arena.cap);
        assert_true(arena.used <= arena.cap);
        arena_clear(&arena);
        free(bytes);
    }
}

/* A batch of moves costs no more memory than its columns. */
static void a_full_frame_of_moves_is_cheap(void **state)
{
    (void)state;
    size_t len = 1 << 20;
    uint8_t *bytes = stuffed("\x1a\x12\x22\x0a", "\x01\0\0\0\0\0\0\0", 8, &len);
    struct codec_client_frame f;
    assert_int_equal(codec_decode_client(bytes, len, &decoded, &f), 0);
    assert_int_equal(f.u.batch.command_n, 1);
    assert_true(f.u.batch.commands[0].u.move_entities.id_n > 130000);
    assert_true(decoded.used < len + 4096);
    free(bytes);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(frames_cut_at_every_byte_are_refused_or_mean_something),
        TEST(frames_with_flipped_bits_are_refused_or_mean_something),
        TEST(frames_with_bytes_cut_out_or_doubled_are_refused_or_mean_something),
        TEST(random_bytes_are_refused_or_mean_something),
        TEST(at_any_cap_of_the_arena_decoding_fails_cleanly_or_succeeds),
        TEST(a_frame_of_nothing_but_tiny_fields_takes_bounded_memory),
        TEST(a_full_frame_of_moves_is_cheap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
