/* test_ids.c: the map from ids to slots against a plain list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../random.h"
#include "core/space.h"

#define SLOTS 5000

/* Of a space, what the map knows. */
static struct aoi_space *space_new(void)
{
    struct aoi_space *space = mem_zalloc(sizeof *space);
    space->slot_n = SLOTS;
    space->hot = mem_zalloc(SLOTS * sizeof *space->hot);
    space->alive = mem_zalloc(SLOTS / 8 + 4);
    return space;
}

static void space_free(struct aoi_space *space)
{
    aoi__ids_clear(&space->ids);
    free(space->hot);
    free(space->alive);
    free(space);
}

static void toggle(struct aoi_space *space, uint32_t s)
{
    if (aoi__alive(space, s)) aoi__ids_remove(&space->ids, aoi__entity_records(space), s);
    space->alive[s >> 5] ^= 1u << (s & 31);
    if (aoi__alive(space, s)) aoi__ids_put(&space->ids, aoi__entity_records(space), s);
}

static void an_empty_map_holds_nothing(void **state)
{
    (void)state;
    struct aoi_space *space = space_new();
    uint64_t id = 7;
    uint32_t slot = 1;
    aoi__ids_guess(&space->ids, &id, 1, &slot);
    assert_int_equal(slot, AOI__NONE);
    assert_int_equal(aoi__entity_slot(space, 7), AOI__NONE);
    assert_int_equal(aoi__ids_bytes(&space->ids), 0);
    space_free(space);
}

/* Ids that meet often, or are far apart. */
static uint64_t id_of(uint32_t slot, int spread)
{
    return spread == 0 ? slot + 1u : spread == 1 ? ((uint64_t)slot + 1) << 32 : idmap_hash(slot + 1u) | 1;
}

static void check_all(const struct aoi_space *space)
{
    for (uint32_t s = 0; s < SLOTS; s++) {
        uint64_t id = space->hot[s].id;
        uint32_t guess;
        aoi__ids_guess(&space->ids, &id, 1, &guess);
        assert_int_equal(aoi__entity_slot(space, id), aoi__alive(space, s) ? s : AOI__NONE);
        if (aoi__alive(space, s)) assert_true(guess != AOI__NONE && aoi__alive(space, guess));
    }
}

static void it_agrees_with_a_list_after_any_changes(void **state)
{
    (void)state;
    struct random r = random_start("test_ids");
    for (int spread = 0; spread < 3; spread++) {
        struct aoi_space *space = space_new();
        uint32_t n = 0;
        for (uint32_t s = 0; s < SLOTS; s++) space->hot[s].id = id_of(s, spread);
        for (uint32_t i = 0; i < 40000; i++) {
            toggle(space, (uint32_t)random_below(&r, i < 20000 ? SLOTS : 100));
            if (i % 5000 == 0) check_all(space);
        }
        check_all(space);
        for (uint32_t s = 0; s < SLOTS; s++) n += aoi__alive(space, s);
        assert_int_equal(space->ids.n, n);
        assert_true(aoi__ids_bytes(&space->ids) <= 2 * 4 * SLOTS * 4 / 3);
        space_free(space);
    }
}

static void a_high_slot_among_few_is_found(void **state)
{
    (void)state;
    struct aoi_space *space = space_new();
    for (uint32_t s = 0; s < SLOTS; s++) space->hot[s].id = s + 1;
    for (uint32_t s = 1; s < SLOTS; s = s * 2 + 1) toggle(space, s);
    check_all(space);
    assert_true(aoi__ids_bytes(&space->ids) <= 32 * 4);
    space_free(space);
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
