/* test_edges.c: units that creep about the edges of cells, by their own place or by their boxes', in cells of many sizes, near and far from 0: what the index knows of them is judged
 * after every flush, though it is not told of most such moves.
 *
 * AOI_SEED=n replays a run: the seed is printed at the start.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../random.h"
#include "core/aoi.h"

#define OWNER 1
#define WORLDS 300
#define FLUSHES 100
#define UNITS 3

struct edges {
    struct random r;
    struct aoi_settings set;
    float radius, reach; /* of the boxes, without and with the margin */
    float around;        /* a coordinate near which all happens */
    float pos[UNITS][3];
};

static float between(struct edges *t, float lo, float hi)
{
    return lo + (hi - lo) * (float)random_below(&t->r, 1 << 20) / (1 << 20);
}

/* Where the place itself or an end of a box meets the edge of a cell, or a few floats beside that. */
static float at_edge(struct edges *t)
{
    const float ends[] = {0, t->radius, -t->radius, t->reach, -t->reach};
    double edge = (floor((double)t->around / t->set.cell_size) + (double)random_below(&t->r, 4)) * t->set.cell_size;
    float v = (float)(edge + (double)ends[random_below(&t->r, 5)]);
    for (uint64_t n = random_below(&t->r, 4); n > 0; n--) v = nextafterf(v, random_below(&t->r, 2) == 0 ? -INFINITY : INFINITY);
    return v;
}

static void creep(struct edges *t, float pos[3])
{
    uint32_t a = (uint32_t)random_below(&t->r, t->set.dimensions);
    switch (random_below(&t->r, 4)) {
    case 0: pos[a] = at_edge(t); break;
    case 1: pos[a] += between(t, -0.25f, 0.25f) * (float)t->set.cell_size; break;
    default: pos[a] = nextafterf(pos[a], random_below(&t->r, 2) == 0 ? -INFINITY : INFINITY);
    }
}

static void run(struct edges *t)
{
    const struct aoi_limits limits = {.max_spaces = 1, .max_entities = UNITS, .max_players = UNITS, .max_units = 1};
    const struct aoi_sink sink = {0};
    static const double sizes[] = {AOI_CELL_SIZE_MIN, 0.1, 7.3, 32, 100, 4096};
    t->set = (struct aoi_settings){.dimensions = 2 + (uint32_t)random_below(&t->r, 2),
                                   .shape = random_below(&t->r, 2) == 0 ? AOI_SHAPE_BOX : AOI_SHAPE_SPHERE,
                                   .index = AOI_INDEX_GRID,
                                   .cell_size = sizes[random_below(&t->r, 6)]};
    if (random_below(&t->r, 2) == 0) t->set.leave_margin = between(t, 0, (float)t->set.cell_size);
    t->radius = (random_below(&t->r, 2) == 0 ? 0.5f : between(t, 0.01f, 3)) * (float)t->set.cell_size;
    t->reach = t->radius + t->set.leave_margin;
    t->around = random_below(&t->r, 3) == 0 ? 0 : between(t, -1, 1) * ldexpf((float)t->set.cell_size, (int)random_below(&t->r, 20));
    if (fabsf(t->around) > AOI_COORD_MAX / 2) t->around = 0;
    struct aoi_world *world = aoi_world_new(&limits, &sink);
    assert_int_equal(aoi_space_create(world, OWNER, 1, &t->set, false), AOI_OK);
    struct aoi_space *space = aoi_space_find(world, 1);
    for (uint64_t id = 1; id <= UNITS; id++) {
        float *pos = t->pos[id - 1];
        for (uint32_t a = 0; a < 3; a++) pos[a] = a < t->set.dimensions ? at_edge(t) : 0;
        const struct aoi_entity e = {.id = id, .radius = t->radius, .pos = {pos[0], pos[1], pos[2]}};
        assert_int_equal(aoi_entity_add(space, OWNER, AOI_ADD_NEW, &e), AOI_OK);
        assert_int_equal(aoi_subscribe(space, OWNER, id, id, false), AOI_OK);
    }
    for (uint32_t f = 0; f < FLUSHES; f++) {
        struct aoi_flush_info info = {0};
        for (uint64_t id = 1; id <= UNITS; id++) {
            creep(t, t->pos[id - 1]);
            assert_int_equal(aoi_entity_move(space, OWNER, id, t->pos[id - 1], NULL), AOI_OK);
        }
        aoi_flush(space, &info);
        aoi_validate(world);
    }
    aoi_world_free(world);
}

static void the_index_knows_where_units_are_that_creep_about_the_edges_of_cells(void **state)
{
    (void)state;
    struct edges t = {.r = random_start("edges")};
    for (uint32_t i = 0; i < WORLDS; i++) run(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_index_knows_where_units_are_that_creep_about_the_edges_of_cells)};
    return cmocka_run_group_tests_name("edges", tests, NULL, NULL);
}
