/* test_pool.c: pieces of a pool are as large as promised, apart from each other, and used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../random.h"
#include "base/check.h"
#include "base/pool.h"

static void sizes_are_multiples_of_8_and_at_most_a_quarter_more(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes < 3 * POOL_MAX; bytes++) {
        size_t size = pool_size(bytes);
        assert_true(size >= bytes && size % 8 == 0 && size - bytes < (bytes < 32 ? 8 : bytes / 4 + 1));
        assert_int_equal(pool_size(size), size);
    }
}

#define PIECES 500

static void pieces_keep_what_is_written_into_them_and_what_is_freed_is_used_again(void **state)
{
    (void)state;
    struct pool pool = {0};
    struct random r = random_start("pool");
    static struct {
        unsigned char *at, with;
        size_t bytes;
    } piece[PIECES];
    unsigned long long warm = 0;
    for (uint32_t i = 0; i < 60000; i++) {
        uint32_t k = (uint32_t)random_below(&r, PIECES);
        for (size_t b = 0; b < piece[k].bytes; b++) assert_int_equal(piece[k].at[b], piece[k].with);
        pool_free(&pool, piece[k].at, piece[k].bytes);
        piece[k].bytes = 1 + (size_t)random_below(&r, i % 100 == 0 ? 2 * POOL_MAX : i % 10 == 0 ? POOL_MAX : 200);
        piece[k].at = pool_alloc(&pool, piece[k].bytes);
        piece[k].with = (unsigned char)random_u64(&r);
        assert_int_equal((uintptr_t)piece[k].at % 8, 0);
        memset(piece[k].at, piece[k].with, piece[k].bytes);
        if (i == 30000) warm = pool.bytes;
    }
    assert_true(pool.bytes < warm + warm / 2); /* it does not go on growing */
    for (uint32_t k = 0; k < PIECES; k++)
        if (pool_size(piece[k].bytes) > POOL_MAX) pool_free(&pool, piece[k].at, piece[k].bytes);
    pool_clear(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_multiples_of_8_and_at_most_a_quarter_more),
        cmocka_unit_test(pieces_keep_what_is_written_into_them_and_what_is_freed_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
