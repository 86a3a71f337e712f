/* test_pairs.c: the relation of watches and slots against a plain table, and what it takes to let go of many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../random.h"
#include "core/aoi.h"
#include "core/pairs.h"

#define IDS 200 /* of each side */

static bool table[IDS][IDS]; /* by watch, by slot */

/* Both sides say what the table says. */
static void check_all(const struct aoi__pairs *pairs)
{
    uint64_t n = 0;
    aoi__pairs_validate(pairs);
    for (uint32_t w = 0; w < IDS; w++) {
        uint32_t held = 0;
        for (uint32_t s = 0; s < IDS; s++) held += table[w][s];
        assert_int_equal(pairs->of[AOI__WATCH][w].n, held);
        for (uint32_t i = 0; i < held; i++) assert_true(table[w][pairs->of[AOI__WATCH][w].id[i]]);
        n += held;
    }
    assert_int_equal(pairs->n, n);
}

static void fill(struct aoi__pairs *pairs, struct random *r)
{
    for (uint32_t i = 0; i < IDS * IDS / 2; i++) {
        uint32_t w = (uint32_t)random_below(r, IDS), s = (uint32_t)random_below(r, IDS);
        (table[w][s] ? aoi__pairs_remove : aoi__pairs_add)(pairs, w, s);
        table[w][s] ^= true;
    }
}

static void drop(struct aoi__pairs *pairs, enum aoi__side side, uint32_t id)
{
    aoi__pairs_drop(pairs, side, id);
    for (uint32_t i = 0; i < IDS; i++) *(side == AOI__WATCH ? &table[id][i] : &table[i][id]) = false;
}

static void what_is_dropped_goes_from_both_sides_whether_few_or_many(void **state)
{
    (void)state;
    struct random r = random_start("test_pairs");
    struct aoi__pairs pairs = {0};
    aoi__pairs_reserve(&pairs, AOI__WATCH, IDS - 1);
    aoi__pairs_reserve(&pairs, AOI__SLOT, IDS - 1);
    for (uint32_t round = 0; round < 40; round++) {
        fill(&pairs, &r);
        uint32_t share = 1u << random_below(&r, 7); /* one in so many goes */
        bool sides[2] = {random_below(&r, 3) > 0, random_below(&r, 3) > 0};
        for (int side = 0; side < 2; side++)
            for (uint32_t id = 0; id < IDS; id++)
                if (sides[side] && random_below(&r, share) == 0) drop(&pairs, side, id);
        aoi__pairs_settle(&pairs);
        check_all(&pairs);
    }
    aoi__pairs_clear(&pairs);
}

/* ------------------------------------------------------------------------------------------------------------- a crowd that goes */

#define CROWD 1500
#define WATCHERS 1500 /* of them */

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void tell(void *ctx, const struct aoi_delta *delta)
{
    *(uint64_t *)ctx += delta->enters.n;
}

/* All see all. */
static struct aoi_space *crowd_new(struct aoi_world *world)
{
    struct aoi_settings settings = {.index = AOI_INDEX_CROSSLIST};
    const char *why;
    assert_int_equal(aoi_settings_check(&settings, &why), AOI_OK);
    assert_int_equal(aoi_space_create(world, 1, 1, &settings, false), AOI_OK);
    struct aoi_space *space = aoi_space_find(world, 1);
    for (uint64_t i = 1; i <= CROWD; i++) {
        struct aoi_entity e = {.id = i, .pos = {(float)(i % 40), (float)(i / 40), 0}, .radius = 100};
        assert_int_equal(aoi_entity_add(space, 1, AOI_ADD_NEW, &e), AOI_OK);
    }
    for (uint64_t i = 1; i <= WATCHERS; i++) assert_int_equal(aoi_subscribe(space, 2, i, i, false), AOI_OK);
    return space;
}

static void a_crowd_goes_in_less_time_than_it_took_to_come(void **state)
{
    (void)state;
    uint64_t told = 0;
    const struct aoi_limits limits = {.max_spaces = 1, .max_entities = CROWD, .max_players = WATCHERS, .max_units = 1};
    struct aoi_world *world = aoi_world_new(&limits, &(struct aoi_sink){.ctx = &told, .deliver = tell});
    for (int everything = 0; everything < 2; everything++) {
        uint64_t began = cpu_ns();
        struct aoi_space *space = crowd_new(world);
        struct aoi_flush_info info = {.now_ms = 1};
        told = 0;
        aoi_flush(space, &info);
        assert_int_equal(told, (uint64_t)WATCHERS * (CROWD - 1));
        uint64_t came = cpu_ns();
        if (everything)
            aoi_owner_end(world, 2, false); /* its players, whose units stay */
        else
            for (uint64_t i = 1; i <= CROWD; i++) assert_int_equal(aoi_entity_remove(space, 1, i), AOI_OK);
        aoi_flush(space, &info);
        uint64_t gone = cpu_ns();
        aoi_validate(world);
        assert_int_equal(aoi_space_destroy(world, 1, true, 1), AOI_OK);
        if (gone - came > came - began) fail_msg("to go took %.1f of what it took to come", (double)(gone - came) / (double)(came - began));
    }
    aoi_world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_dropped_goes_from_both_sides_whether_few_or_many),
        cmocka_unit_test(a_crowd_goes_in_less_time_than_it_took_to_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
