/* test_warm.c: a flush allocates nothing once things merely move about. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../random.h"
#include "base/check.h"
#include "core/aoi.h"

#define OWNER 1
#define WARM_UP 60 /* flushes */
#define MEASURED 100
#define ENTITIES 2500

/* Entities that walk at random in a square, a player watching through each. */
struct walk {
    double side, step;
    double teleport; /* share of the entities that jump anywhere instead of a step */
    uint32_t max_view;
    const char *tiers;
    bool presence_only;
};

static void count(void *ctx, const struct aoi_delta *d)
{
    *(uint64_t *)ctx += d->enters.n + d->leave_n + d->updates.n;
}

static double unit(struct random *r)
{
    return (double)(random_u64(r) >> 11) / 9007199254740992.0;
}

static float stepped(double from, double by, double side)
{
    double to = from + by;
    return (float)(to < 0 ? -to : to > side ? 2 * side - to : to);
}

static void move_all(struct aoi_space *space, const struct walk *w, struct random *r, float at[ENTITIES][3])
{
    for (uint32_t e = 0; e < ENTITIES; e++) {
        double angle = unit(r) * 2 * M_PI;
        bool jumps = unit(r) < w->teleport;
        at[e][0] = jumps ? (float)(unit(r) * w->side) : stepped((double)at[e][0], w->step * cos(angle), w->side);
        at[e][1] = jumps ? (float)(unit(r) * w->side) : stepped((double)at[e][1], w->step * sin(angle), w->side);
        assert_int_equal(aoi_entity_move(space, OWNER, e + 1, at[e], NULL), AOI_OK);
    }
}

static struct aoi_world *world_of(const struct walk *w, uint64_t *told)
{
    const struct aoi_limits limits = {.max_spaces = 1, .max_entities = ENTITIES, .max_players = ENTITIES, .max_units = 1};
    const struct aoi_sink sink = {.ctx = told, .deliver = count};
    struct aoi_world *world = aoi_world_new(&limits, &sink);
    struct aoi_settings set = {.dimensions = 2, .shape = AOI_SHAPE_BOX, .index = AOI_INDEX_GRID, .cell_size = AOI_CELL_SIZE_DEFAULT};
    const char *why;
    set.max_view = w->max_view;
    if (w->tiers != NULL) assert_int_equal(aoi_tiers_parse(w->tiers, &set.tiers, &why), AOI_OK);
    assert_int_equal(aoi_space_create(world, OWNER, 1, &set, false), AOI_OK);
    return world;
}

static void walk(const struct walk *w)
{
    static float at[ENTITIES][3];
    struct random r = {.state = 0x9E3779B97F4A7C15u};
    uint64_t told = 0;
    unsigned long long allocated = 0;
    struct aoi_world *world = world_of(w, &told);
    struct aoi_space *space = aoi_space_find(world, 1);
    const struct aoi_player_settings settings = {.presence_only = w->presence_only};
    for (uint32_t e = 0; e < ENTITIES; e++) {
        at[e][0] = (float)(unit(&r) * w->side);
        at[e][1] = (float)(unit(&r) * w->side);
        const struct aoi_entity entity = {.id = e + 1, .pos = {at[e][0], at[e][1]}, .radius = 50};
        assert_int_equal(aoi_entity_add(space, OWNER, AOI_ADD_NEW, &entity), AOI_OK);
        assert_int_equal(aoi_player_open(space, OWNER, e + 1, &settings), AOI_OK);
        assert_int_equal(aoi_subscribe(space, OWNER, e + 1, e + 1, false), AOI_OK);
    }
    for (uint32_t f = 0; f < WARM_UP + MEASURED; f++) {
        struct aoi_flush_info info = {0};
        move_all(space, w, &r, at);
        uint64_t before = told;
        unsigned long long count_before = mem_alloc_count();
        aoi_flush(space, &info);
        if (f >= WARM_UP) allocated += mem_alloc_count() - count_before;
        assert_true(told > before);
    }
    aoi_world_free(world);
    assert_int_equal(allocated, 0);
}

#define WALK(name, ...)                          \
    static void name(void **state)               \
    {                                            \
        (void)state;                             \
        walk(&(const struct walk){__VA_ARGS__}); \
    }

WALK(who_walks_among_few, .side = 1000, .step = 0.5)
WALK(who_walks_among_many, .side = 500, .step = 1)
WALK(who_walks_where_some_jump_anywhere, .side = 1000, .step = 0.5, .teleport = 0.01)
WALK(who_walks_in_a_crowd_of_which_a_hundred_are_told, .side = 140, .step = 0.5, .max_view = 100)
WALK(who_walks_among_what_is_told_less_often_further_away, .side = 500, .step = 1, .tiers = "15:1 30:2 *:4")
WALK(who_walks_where_only_presence_is_told, .side = 1000, .step = 0.5, .presence_only = true)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_walks_among_few),
        cmocka_unit_test(who_walks_among_many),
        cmocka_unit_test(who_walks_where_some_jump_anywhere),
        cmocka_unit_test(who_walks_in_a_crowd_of_which_a_hundred_are_told),
        cmocka_unit_test(who_walks_among_what_is_told_less_often_further_away),
        cmocka_unit_test(who_walks_where_only_presence_is_told),
    };
    return cmocka_run_group_tests_name("what a warm flush allocates: nothing", tests, NULL, NULL);
}
