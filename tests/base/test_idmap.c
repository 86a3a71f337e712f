/* test_idmap.c: the hash map against a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../random.h"
#include "base/idmap.h"

static void an_empty_map_holds_nothing(void **state)
{
    (void)state;
    struct idmap m = {0};
    assert_int_equal(idmap_get(&m, 7), IDMAP_NONE);
    assert_int_equal(idmap_remove(&m, 7), IDMAP_NONE);
    assert_int_equal(idmap_bytes(&m), 0);
    idmap_clear(&m);
}

static void id_0_is_never_there(void **state)
{
    (void)state;
    struct idmap m = {0};
    idmap_put(&m, 1, 2);
    assert_int_equal(idmap_get(&m, 0), IDMAP_NONE);
    assert_int_equal(idmap_remove(&m, 0), IDMAP_NONE);
    assert_int_equal(m.n, 1);
    idmap_clear(&m);
}

static void put_replaces(void **state)
{
    (void)state;
    struct idmap m = {0};
    idmap_put(&m, UINT64_MAX, 1);
    idmap_put(&m, UINT64_MAX, 0);
    assert_int_equal(m.n, 1);
    assert_int_equal(idmap_get(&m, UINT64_MAX), 0);
    idmap_clear(&m);
}

/* Keys of few values, so that they meet often; `spread` makes them sequential, strided by 2^32 or anything. */
static uint64_t key_of(uint64_t i, int spread)
{
    if (spread == 0) return i + 1;
    if (spread == 1) return (i + 1) << 32;
    return idmap_hash(i + 1) | 1;
}

#define KEYS 3000

static void check_all(const struct idmap *m, const uint32_t *expect, int spread)
{
    uint32_t n = 0;
    for (uint64_t i = 0; i < KEYS; i++) {
        assert_int_equal(idmap_get(m, key_of(i, spread)), expect[i]);
        n += expect[i] != IDMAP_NONE;
    }
    assert_int_equal(m->n, n);
}

/* Phases that mostly put and phases that mostly remove, so that runs of the table grow and are taken apart from every side. */
static void random_operations_agree_with_a_plain_list(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    for (int spread = 0; spread < 3; spread++) {
        struct idmap m = {0};
        uint32_t expect[KEYS];
        for (int i = 0; i < KEYS; i++) expect[i] = IDMAP_NONE;
        for (int phase = 0; phase < 24; phase++) {
            uint64_t put_percent = phase % 2 == 0 ? 90 : 10;
            uint64_t keys = 1 + random_below(&r, KEYS);
            for (int step = 0; step < 3000; step++) {
                uint64_t i = random_below(&r, keys);
                if (random_below(&r, 100) < put_percent) {
                    expect[i] = (uint32_t)random_below(&r, IDMAP_NONE);
                    idmap_put(&m, key_of(i, spread), expect[i]);
                } else {
                    assert_int_equal(idmap_remove(&m, key_of(i, spread)), expect[i]);
                    expect[i] = IDMAP_NONE;
                }
            }
            check_all(&m, expect, spread);
        }
        for (uint64_t i = 0; i < KEYS; i++) assert_int_equal(idmap_remove(&m, key_of(i, spread)), expect[i]);
        assert_int_equal(m.n, 0);
        for (uint32_t i = 0; i <= m.mask; i++) assert_int_equal(m.key[i], 0);
        idmap_clear(&m);
    }
}

/* Keys with chosen homes in a table of 16: a run over its end, out of which each member is taken in turn. */
static void taking_one_out_of_a_run_over_the_end_keeps_the_others(void **state)
{
    (void)state;
    uint64_t run[8];
    size_t n = 0;
    for (uint64_t key = 1; n < 8; key++) {
        uint64_t home = idmap_hash(key) & 15;
        if (home == 13 || home == 14 || home == 15) run[n++] = key;
    }
    for (size_t gone = 0; gone < n; gone++) {
        struct idmap m = {0};
        for (size_t i = 0; i < n; i++) idmap_put(&m, run[i], (uint32_t)i);
        assert_int_equal(m.mask, 15);
        assert_int_equal(idmap_remove(&m, run[gone]), gone);
        for (size_t i = 0; i < n; i++) assert_int_equal(idmap_get(&m, run[i]), i == gone ? IDMAP_NONE : i);
        idmap_clear(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_holds_nothing),
        cmocka_unit_test(id_0_is_never_there),
        cmocka_unit_test(put_replaces),
        cmocka_unit_test(random_operations_agree_with_a_plain_list),
        cmocka_unit_test(taking_one_out_of_a_run_over_the_end_keeps_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
