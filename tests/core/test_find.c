/* test_find.c: queries over so many pages that the index tells inner from border ones and far memory is fetched ahead: against brute force, on both indexes, in 2D and 3D.
 *
 * AOI_SEED=n replays a run: the seed is printed at the start.
 */
#include <math.h>
#include <stdlib.h>

#include "rig.h"

#include "../random.h"

#define ENTITIES 6000
#define QUERIES 40

static struct random rng;

static double unit(void)
{
    return (double)(random_u64(&rng) >> 11) * 0x1p-53;
}

static float somewhere(float side)
{
    return (float)(unit() * side - side / 2);
}

static void populate(struct rig *r, float side, uint32_t dims, uint32_t large)
{
    for (uint64_t id = 1; id <= ENTITIES; id++) {
        struct aoi_entity e = {.id = id * 7919 % 100003, .pos = {somewhere(side), somewhere(side), dims == 3 ? somewhere(side) : 0}};
        e.layers = id % 500 == 0 ? 6 : 1;
        e.appeal = id <= large ? 3 : 0;
        assert_int_equal(model_entity_add(&r->m, r->s, 1, AOI_ADD_NEW, &e), AOI_OK);
    }
}

static void ask(struct rig *r, float side, uint32_t dims)
{
    static const uint32_t layers[] = {0, 1, 2, 8};
    float a[3] = {0}, b[3] = {0}, lo[3] = {0}, hi[3] = {0};
    float size = side * (float)(1.3 * unit());
    for (uint32_t axis = 0; axis < dims; axis++) {
        a[axis] = somewhere(side);
        b[axis] = a[axis] + size;
        lo[axis] = a[axis] - size / 2;
        hi[axis] = a[axis] + size / 2;
    }
    uint32_t mask = layers[random_below(&rng, 4)];
    size_t limit = 500 + random_below(&rng, 3000), k = 1 + random_below(&rng, random_below(&rng, 2) ? 20 : 2 * ENTITIES);
    assert_true(model_query_box(&r->m, r->s, a, b, mask, limit) >= 0);
    assert_true(model_query_box(&r->m, r->s, lo, hi, mask, 2 * ENTITIES) >= 0);
    assert_true(model_query_radius(&r->m, r->s, a, size, mask, limit) >= 0);
    assert_true(model_query_count(&r->m, r->s, lo, hi, mask) >= 0);
    assert_true(model_query_nearest(&r->m, r->s, a, random_below(&rng, 2) ? 0 : size, mask, k) >= 0);
    assert_true(model_query_density(&r->m, r->s, lo, hi, mask, 1 + (uint32_t)random_below(&rng, 200), 1 + (uint32_t)random_below(&rng, 200)) >= 0);
}

static void try_out(struct rig *r, double cell_size, float side, uint32_t dims, uint32_t large)
{
    rig_space(r, &(struct aoi_settings){.dimensions = dims, .cell_size = cell_size}, NULL);
    populate(r, side, dims, large);
    for (int i = 0; i < QUERIES; i++) {
        if (i == QUERIES / 2) rig_flush(r);
        ask(r, side, dims);
    }
}

CASE(queries_over_crowded_cells_are_exact)
{
    try_out(r, 10, 400, 2, 0);
    try_out(r, 25, 150, 3, 30);
}

CASE(queries_over_cells_of_one_entity_each_are_exact)
{
    try_out(r, 10, 8000, 2, 200);
    try_out(r, 5, 1000, 3, 0);
}

int main(void)
{
    rng = random_start("find");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_over_crowded_cells_are_exact),
        cmocka_unit_test(queries_over_cells_of_one_entity_each_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
