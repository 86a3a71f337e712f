/* test_frame.c: length prefixes, whole, cut and hostile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "base/buf.h"
#include "wire/frame.h"

/* On a block of exactly len bytes, so that AddressSanitizer sees a read past the end. */
static enum frame_status next(const void *bytes, size_t len, size_t max, struct frame *f)
{
    uint8_t *exact = calloc(1, len > 0 ? len : 1);
    if (len > 0) memcpy(exact, bytes, len);
    enum frame_status status = frame_next(exact, len, max, f);
    free(exact);
    return status;
}

static void a_header_is_read_back_as_it_was_written(void **state)
{
    (void)state;
    static const size_t length[] = {0, 1, 127, 128, 129, 16383, 16384, 2097151, 2097152, 1 << 20, FRAME_BODY_MAX};
    for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
        uint8_t header[FRAME_HEADER_MAX];
        struct frame f;
        size_t n = frame_put_header(header, length[i]);
        assert_int_equal(n, frame_header_size(length[i]));
        assert_int_equal(next(header, n, FRAME_BODY_MAX, &f), length[i] == 0 ? FRAME_READY : FRAME_INCOMPLETE);
        assert_int_equal(f.header_len, n);
        assert_int_equal(f.body_len, length[i]);
    }
}

static void header_bytes_are_those_of_a_varint(void **state)
{
    (void)state;
    uint8_t header[FRAME_HEADER_MAX];
    assert_int_equal(frame_put_header(header, 0), 1);
    assert_memory_equal(header, "\x00", 1);
    assert_int_equal(frame_put_header(header, 300), 2);
    assert_memory_equal(header, "\xac\x02", 2);
    assert_int_equal(frame_put_header(header, 1 << 20), 3);
    assert_memory_equal(header, "\x80\x80\x40", 3);
    assert_int_equal(frame_put_header(header, FRAME_BODY_MAX), 4);
    assert_memory_equal(header, "\xff\xff\xff\x7f", 4);
}

static void nothing_is_incomplete_and_a_zero_length_frame_is_ready(void **state)
{
    (void)state;
    struct frame f;
    assert_int_equal(next("", 0, 100, &f), FRAME_INCOMPLETE);
    assert_int_equal(f.header_len, 0);
    assert_int_equal(next("\x00", 1, 0, &f), FRAME_READY);
    assert_int_equal(f.header_len, 1);
    assert_int_equal(f.body_len, 0);
}

static void a_frame_is_incomplete_at_every_cut_but_the_last(void **state)
{
    (void)state;
    static const size_t length[] = {1, 5, 127, 128, 300, 16384, 20000};
    for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
        uint8_t *bytes = calloc(1, FRAME_HEADER_MAX + length[i]);
        size_t header = frame_put_header(bytes, length[i]), total = header + length[i];
        for (size_t cut = 0; cut <= total; cut++) {
            struct frame f;
            assert_int_equal(next(bytes, cut, 20000, &f), cut < total ? FRAME_INCOMPLETE : FRAME_READY);
            assert_int_equal(f.header_len, cut < header ? 0 : header);
            assert_int_equal(f.body_len, cut < header ? 0 : length[i]);
        }
        free(bytes);
    }
}

static void padded_lengths_of_up_to_4_bytes_are_legal(void **state)
{
    (void)state;
    struct frame f;
    assert_int_equal(next("\x81\x00x", 3, 10, &f), FRAME_READY);
    assert_int_equal(f.header_len, 2);
    assert_int_equal(next("\x81\x80\x80\x00x", 5, 10, &f), FRAME_READY);
    assert_int_equal(f.header_len, 4);
    assert_int_equal(f.body_len, 1);
    assert_int_equal(next("\x80\x80\x80\x00", 4, 10, &f), FRAME_READY);
    assert_int_equal(f.body_len, 0);
}

static void the_limit_passes_and_one_over_is_too_large(void **state)
{
    (void)state;
    for (size_t max = 0; max < 70000; max = max * 2 + 1) {
        uint8_t header[FRAME_HEADER_MAX];
        struct frame f;
        size_t n = frame_put_header(header, max);
        assert_int_equal(next(header, n, max, &f), max == 0 ? FRAME_READY : FRAME_INCOMPLETE);
        n = frame_put_header(header, max + 1);
        assert_int_equal(next(header, n, max, &f), FRAME_TOO_LARGE);
    }
}

static void a_length_of_more_than_4_bytes_is_too_large_at_its_fourth_byte(void **state)
{
    (void)state;
    static const char *const hostile[] = {
        "\x80\x80\x80\x80",                     /* a padded 0 */
        "\xff\xff\xff\xff\x07",                 /* 2^31 - 1 */
        "\x80\x80\x80\x80\x08",                 /* 2^31 */
        "\xff\xff\xff\xff\x0f",                 /* 2^32 - 1 */
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff", /* without an end */
    };
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        struct frame f;
        assert_int_equal(next(hostile[i], 4, FRAME_BODY_MAX, &f), FRAME_TOO_LARGE);
        assert_int_equal(f.header_len, 0);
        assert_int_equal(f.body_len, 0);
        assert_int_equal(next(hostile[i], 3, FRAME_BODY_MAX, &f), FRAME_INCOMPLETE);
    }
}

static void a_length_that_can_only_grow_past_the_limit_is_refused_before_its_end(void **state)
{
    (void)state;
    struct frame f;
    assert_int_equal(next("\xff", 1, 100, &f), FRAME_TOO_LARGE);
    assert_int_equal(next("\xff\xff", 2, 1 << 20, &f), FRAME_INCOMPLETE);
    assert_int_equal(next("\xff\xff\xff", 3, 1 << 20, &f), FRAME_TOO_LARGE);
}

/* As a connection does: bytes come in pieces of any size, frames are taken from the front. */
static void a_stream_gives_the_same_frames_however_it_is_cut(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    struct buf stream = {0};
    size_t length[200];
    for (size_t i = 0; i < 200; i++) {
        length[i] = random_below(&r, 4) == 0 ? 0 : random_below(&r, random_below(&r, 10) == 0 ? 20000 : 200);
        uint8_t *p = buf_reserve(&stream, FRAME_HEADER_MAX + length[i]);
        size_t n = frame_put_header(p, length[i]);
        memset(p + n, (int)i, length[i]);
        stream.end += n + length[i];
    }
    for (size_t piece_max = 1; piece_max < 100000; piece_max *= 7) {
        struct buf in = {0};
        size_t frames = 0, fed = 0;
        while (fed < buf_len(&stream)) {
            size_t piece = 1 + random_below(&r, piece_max);
            if (piece > buf_len(&stream) - fed) piece = buf_len(&stream) - fed;
            buf_append(&in, buf_data(&stream) + fed, piece);
            fed += piece;
            struct frame f;
            while (frame_next(buf_data(&in), buf_len(&in), 20000, &f) == FRAME_READY) {
                assert_int_equal(f.body_len, length[frames]);
                for (size_t i = 0; i < f.body_len; i++) assert_int_equal(buf_data(&in)[f.header_len + i], frames & 0xff);
                buf_consume(&in, f.header_len + f.body_len);
                frames++;
            }
        }
        assert_int_equal(frames, 200);
        assert_int_equal(buf_len(&in), 0);
        buf_clear(&in);
    }
    buf_clear(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_is_read_back_as_it_was_written),
        cmocka_unit_test(header_bytes_are_those_of_a_varint),
        cmocka_unit_test(nothing_is_incomplete_and_a_zero_length_frame_is_ready),
        cmocka_unit_test(a_frame_is_incomplete_at_every_cut_but_the_last),
        cmocka_unit_test(padded_lengths_of_up_to_4_bytes_are_legal),
        cmocka_unit_test(the_limit_passes_and_one_over_is_too_large),
        cmocka_unit_test(a_length_of_more_than_4_bytes_is_too_large_at_its_fourth_byte),
        cmocka_unit_test(a_length_that_can_only_grow_past_the_limit_is_refused_before_its_end),
        cmocka_unit_test(a_stream_gives_the_same_frames_however_it_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
