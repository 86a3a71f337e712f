/* test_buf.c: the byte buffer against a plain queue of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../random.h"
#include "base/buf.h"
#include "base/check.h"

static void a_zeroed_buffer_is_empty(void **state)
{
    (void)state;
    struct buf b = {0};
    assert_int_equal(buf_len(&b), 0);
    assert_null(buf_data(&b));
    buf_append(&b, NULL, 0);
    buf_consume(&b, 0);
    buf_shrink(&b, 0);
    buf_clear(&b);
    assert_non_null(buf_reserve(&b, 0));
    buf_clear(&b);
}

static void bytes_come_out_in_the_order_in_which_they_went_in(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    struct buf b = {0};
    uint8_t in = 0, out = 0; /* the next byte of the sequence 0, 1, ... 255, 0, ... at either end */
    size_t len = 0;
    for (int step = 0; step < 20000; step++) {
        size_t n = random_below(&r, random_below(&r, 50) == 0 ? 5000 : 100);
        if (random_below(&r, 2) == 0) {
            uint8_t *p = buf_reserve(&b, n + random_below(&r, 20));
            for (size_t i = 0; i < n; i++) p[i] = in++;
            b.end += n;
            len += n;
        } else {
            if (n > len) n = len;
            for (size_t i = 0; i < n; i++) assert_int_equal(buf_data(&b)[i], out++);
            buf_consume(&b, n);
            len -= n;
        }
        assert_int_equal(buf_len(&b), len);
        assert_true(b.start <= b.end && b.end <= b.cap);
        if (len == 0) assert_int_equal(b.start, 0);
    }
    buf_clear(&b);
}

static void a_queue_of_steady_length_does_not_grow(void **state)
{
    (void)state;
    struct buf b = {0};
    uint8_t chunk[100] = {0};
    buf_append(&b, chunk, sizeof chunk);
    for (int i = 0; i < 1000; i++) {
        buf_append(&b, chunk, sizeof chunk);
        buf_consume(&b, sizeof chunk);
    }
    unsigned long long before = mem_alloc_count();
    for (int i = 0; i < 100000; i++) {
        buf_append(&b, chunk, sizeof chunk);
        buf_consume(&b, sizeof chunk);
    }
    assert_int_equal(mem_alloc_count(), before);
    assert_true(b.cap <= 1000);
    buf_clear(&b);
}

static void only_an_empty_and_large_buffer_shrinks(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_reserve(&b, 10000);
    buf_append(&b, "x", 1);
    buf_shrink(&b, 100);
    assert_true(b.cap >= 10000);
    buf_consume(&b, 1);
    buf_shrink(&b, b.cap);
    assert_true(b.cap >= 10000);
    buf_shrink(&b, 100);
    assert_int_equal(b.cap, 0);
    assert_null(b.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zeroed_buffer_is_empty),
        cmocka_unit_test(bytes_come_out_in_the_order_in_which_they_went_in),
        cmocka_unit_test(a_queue_of_steady_length_does_not_grow),
        cmocka_unit_test(only_an_empty_and_large_buffer_shrinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
