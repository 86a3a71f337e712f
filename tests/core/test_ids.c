/* test_ids.c: the map from ids to slots against a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../random.h"
#include "core/space.h"

static void an_empty_map_holds_nothing(void **state)
{
    (void)state;
    struct aoi__ids ids = {0};
    uint64_t id = 7;
    uint32_t slot = 1;
    aoi__ids_guess(&ids, &id, 1, &slot);
    assert_int_equal(slot, AOI__NONE);
    assert_int_equal(aoi__ids_get(&ids, NULL, 7), AOI__NONE);
    assert_int_equal(aoi__ids_bytes(&ids), 0);
    aoi__ids_clear(&ids);
}

#define SLOTS 5000

/* Ids that meet often, or are far apart. */
static uint64_t id_of(uint32_t slot, int spread)
{
    return spread == 0 ? slot + 1u : spread == 1 ? ((uint64_t)slot + 1) << 32 : idmap_hash(slot + 1u) | 1;
}

static void check_all(const struct aoi__ids *ids, const struct aoi__hot *hot, const bool *in, int spread)
{
    for (uint32_t s = 0; s < SLOTS; s++) {
        uint64_t id = id_of(s, spread);
        uint32_t guess;
        aoi__ids_guess(ids, &id, 1, &guess);
        assert_int_equal(aoi__ids_get(ids, hot, id), in[s] ? s : AOI__NONE);
        if (in[s]) assert_true(guess != AOI__NONE && in[guess]);
    }
}

static void it_agrees_with_a_list_after_any_changes(void **state)
{
    (void)state;
    static struct aoi__hot hot[SLOTS];
    struct random r = random_start("test_ids");
    for (int spread = 0; spread < 3; spread++) {
        struct aoi__ids ids = {0};
        static bool in[SLOTS];
        uint32_t n = 0;
        memset(in, 0, sizeof in);
        for (uint32_t s = 0; s < SLOTS; s++) hot[s].id = id_of(s, spread);
        for (uint32_t i = 0; i < 40000; i++) {
            uint32_t s = (uint32_t)random_below(&r, i < 20000 ? SLOTS : 100);
            if (in[s])
                aoi__ids_remove(&ids, hot, s), n--;
            else
                aoi__ids_put(&ids, hot, s), n++;
            in[s] = !in[s];
            if (i % 5000 == 0) check_all(&ids, hot, in, spread);
        }
        check_all(&ids, hot, in, spread);
        assert_int_equal(ids.n, n);
        assert_true(aoi__ids_bytes(&ids) <= 2 * 4 * SLOTS * 4 / 3);
        aoi__ids_clear(&ids);
    }
}

static void a_high_slot_among_few_is_found(void **state)
{
    (void)state;
    static struct aoi__hot hot[SLOTS];
    struct aoi__ids ids = {0};
    for (uint32_t s = 1; s < SLOTS; s = s * 2 + 1) {
        hot[s].id = s;
        aoi__ids_put(&ids, hot, s);
    }
    for (uint32_t s = 1; s < SLOTS; s = s * 2 + 1) assert_int_equal(aoi__ids_get(&ids, hot, s), s);
    assert_true(aoi__ids_bytes(&ids) <= 32 * 4);
    aoi__ids_clear(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_holds_nothing),
        cmocka_unit_test(it_agrees_with_a_list_after_any_changes),
        cmocka_unit_test(a_high_slot_among_few_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
