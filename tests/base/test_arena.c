/* test_arena.c: the frame's allocator: its cap, its reuse, and that nothing it hands out overlaps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../random.h"
#include "base/arena.h"
#include "base/check.h"

#define ALIGN _Alignof(max_align_t)

static void the_cap_is_hard_and_counts_alignment(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 10 * ALIGN);
    for (int i = 0; i < 10; i++) assert_non_null(arena_alloc(&a, 1));
    assert_int_equal(a.used, 10 * ALIGN);
    assert_null(arena_alloc(&a, 1));
    assert_null(arena_alloc(&a, 0));
    arena_reset(&a);
    assert_int_equal(a.used, 0);
    assert_null(arena_alloc(&a, 10 * ALIGN + 1));
    assert_non_null(arena_alloc(&a, 10 * ALIGN));
    arena_clear(&a);
}

static void a_cap_that_is_no_multiple_of_the_alignment_holds_too(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 3 * ALIGN + 5);
    assert_null(arena_alloc(&a, 3 * ALIGN + 5)); /* would take 4 * ALIGN */
    assert_non_null(arena_alloc(&a, 3 * ALIGN));
    assert_null(arena_alloc(&a, 1));
    arena_clear(&a);
}

static void absurd_sizes_are_refused(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, SIZE_MAX);
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 3));
    assert_non_null(arena_alloc(&a, 100));
    assert_null(arena_alloc(&a, SIZE_MAX - 50));
    arena_clear(&a);
}

static void a_reset_keeps_memory_so_that_the_next_frame_allocates_nothing(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 1 << 20);
    for (int frame = 0; frame < 10; frame++) {
        unsigned long long before = mem_alloc_count();
        for (int i = 0; i < 100; i++) memset(arena_alloc(&a, 1000), frame, 1000);
        if (frame >= 2) assert_int_equal(mem_alloc_count(), before);
        arena_reset(&a);
    }
    arena_clear(&a);
}

static void a_huge_block_does_not_outlive_its_frame(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, SIZE_MAX);
    assert_non_null(arena_alloc(&a, 8 * ARENA_KEEP));
    arena_reset(&a);
    assert_null(a.head);
    assert_non_null(arena_alloc(&a, 100));
    assert_non_null(arena_alloc(&a, 8 * ARENA_KEEP));
    arena_reset(&a);
    assert_non_null(a.head);
    arena_clear(&a);
}

struct piece {
    uint8_t *at;
    size_t bytes;
};

static void pieces_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    struct arena a;
    arena_init(&a, 4 << 20);
    static struct piece piece[5000];
    for (int round = 0; round < 20; round++) {
        size_t n = 0, used = 0;
        for (; n < 5000; n++) {
            size_t bytes = random_below(&r, 100) == 0 ? random_below(&r, 100000) : random_below(&r, 200);
            uint8_t *p = arena_alloc(&a, bytes);
            if (p == NULL) {
                assert_true(used + bytes + ALIGN > a.cap);
                break;
            }
            assert_int_equal((uintptr_t)p % ALIGN, 0);
            memset(p, (int)(n & 0xff), bytes);
            used = a.used;
            assert_true(used <= a.cap);
            piece[n] = (struct piece){p, bytes};
        }
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < piece[i].bytes; k++) assert_int_equal(piece[i].at[k], i & 0xff);
        arena_reset(&a);
    }
    arena_clear(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cap_is_hard_and_counts_alignment),
        cmocka_unit_test(a_cap_that_is_no_multiple_of_the_alignment_holds_too),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(a_reset_keeps_memory_so_that_the_next_frame_allocates_nothing),
        cmocka_unit_test(a_huge_block_does_not_outlive_its_frame),
        cmocka_unit_test(pieces_are_aligned_and_do_not_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
