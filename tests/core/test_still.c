/* test_still.c: worlds in which little changes between two flushes: most players stand still and look at what has changed only, and the model judges what they are told.
 *
 * AOI_SEED=n replays a run: the seed is printed at the start.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../random.h"
#include "model.h"

#define OWNER 1
#define WORLDS 40
#define FLUSHES 60
#define SIDE 160 /* 5 x 5 cells of 32 */
#define ENTITIES 120
#define PLAYERS 30

struct still {
    struct random r;
    struct model m;
    struct model_space *s;
};

static float coordinate(struct still *t)
{
    return (float)random_below(&t->r, SIDE * 2) / 2; /* whole halves: corners and edges of cells are met often */
}

static void place(struct still *t, float pos[3])
{
    for (uint32_t a = 0; a < 3; a++) pos[a] = a < t->s->dims ? coordinate(t) : 0;
}

static uint32_t layers(struct still *t)
{
    return random_below(&t->r, 4) == 0 ? 2 + (uint32_t)random_below(&t->r, 2) : 1;
}

static uint64_t some(struct still *t)
{
    return 1 + random_below(&t->r, ENTITIES);
}

static void add(struct still *t, uint64_t id)
{
    struct aoi_entity e = {.id = id, .radius = id <= PLAYERS ? (float)(10 + random_below(&t->r, 40)) : 0, .layers = layers(t)};
    place(t, e.pos);
    model_entity_add(&t->m, t->s, OWNER, AOI_ADD_NEW, &e);
}

static void view(struct still *t, uint64_t player)
{
    float min[3], max[3];
    place(t, min);
    for (uint32_t a = 0; a < 3; a++) max[a] = min[a] + (float)(20 + random_below(&t->r, 60));
    model_viewport_set(&t->m, t->s, OWNER, player, min, max);
}

/* A player watches through a unit or a viewport, never both. */
static void watch(struct still *t, uint64_t player)
{
    if (player % 3 == 0)
        view(t, player);
    else
        model_subscribe(&t->m, t->s, OWNER, player, player, false);
}

static void step(struct still *t, uint64_t id)
{
    const struct model_entity *e = model_entity(t->s, id);
    uint32_t extra = (uint32_t)random_below(&t->r, 3);
    float pos[3];
    if (e == NULL) return;
    memcpy(pos, e->v.pos, sizeof pos);
    for (uint32_t a = 0; a < t->s->dims; a++) pos[a] += (float)random_below(&t->r, 5) - 2;
    if (random_below(&t->r, 6) == 0) place(t, pos);
    model_entity_move(&t->m, t->s, OWNER, id, pos, random_below(&t->r, 2) == 0 ? &extra : NULL);
}

/* One of them is asked for so often that what happens rarely happens at all. */
static void change(struct still *t)
{
    uint64_t id = some(t), player = 1 + random_below(&t->r, PLAYERS);
    const float low[3] = {0, 0, 0}, high[3] = {SIDE, SIDE, SIDE};
    switch (random_below(&t->r, 20)) {
    case 0: model_entity_set_layers(&t->m, t->s, OWNER, id, layers(t)); break;
    case 1: model_entity_set_payload(&t->m, t->s, OWNER, id, &id, 1 + (uint32_t)random_below(&t->r, 8)); break;
    case 2: model_entity_remove(&t->m, t->s, OWNER, id); break;
    case 3:
    case 4:
        if (model_entity(t->s, id) != NULL) break;
        add(t, id);
        if (id <= PLAYERS) watch(t, id);
        break;
    case 5: model_entity_set_radius(&t->m, t->s, OWNER, player, (float)random_below(&t->r, 50)); break;
    case 6:
        if (player % 3 == 0) view(t, player);
        break;
    case 7: model_player_open(&t->m, t->s, OWNER, player, 1 + (uint32_t)random_below(&t->r, 3)); break;
    case 8: /* the index follows at once */ model_query_box(&t->m, t->s, low, high, 0, ENTITIES); break;
    default: step(t, random_below(&t->r, 4) == 0 ? player : id);
    }
}

static struct aoi_settings settings(struct still *t)
{
    struct aoi_settings set = {.dimensions = 2 + (uint32_t)random_below(&t->r, 2), .shape = AOI_SHAPE_BOX, .index = AOI_INDEX_GRID, .cell_size = 32};
    if (random_below(&t->r, 3) == 0) {
        set.shape = AOI_SHAPE_CELLS;
        set.cell_range = 1;
    }
    set.extra = random_below(&t->r, 2) == 0;
    return set;
}

static void run(struct still *t)
{
    const struct aoi_limits limits = {
        .max_spaces = 1, .max_entities = ENTITIES, .max_players = PLAYERS, .max_units = 1, .max_payload = 64, .max_overrides = 1, .max_message = 1};
    const struct aoi_settings set = settings(t);
    model_init(&t->m, &limits);
    assert_int_equal(model_space_create(&t->m, OWNER, 1, &set, false), AOI_OK);
    t->s = model_space(&t->m, 1);
    for (uint64_t id = 1; id <= ENTITIES; id++) add(t, id);
    for (uint64_t player = 1; player <= PLAYERS; player++) watch(t, player);
    for (uint32_t f = 0; f < FLUSHES; f++) {
        uint64_t n = random_below(&t->r, 10) == 0 ? 60 : random_below(&t->r, 6); /* now and then a page has many that changed */
        for (uint64_t i = 0; i < n; i++) change(t);
        model_flush(&t->m, t->s);
        if (f % 8 == 0) aoi_validate(t->m.world);
    }
}

static void who_stands_still_is_told_what_changes_around_it(void **state)
{
    (void)state;
    struct still t = {.r = random_start("still")};
    uint64_t updates = 0, enters = 0, leaves = 0;
    for (uint32_t i = 0; i < WORLDS; i++) {
        run(&t);
        updates += t.m.updates;
        enters += t.m.enters;
        leaves += t.m.leaves;
        model_clear(&t.m);
        t.m = (struct model){0};
    }
    assert_true(updates > WORLDS * FLUSHES && enters > WORLDS * FLUSHES && leaves > WORLDS * FLUSHES); /* else nothing was tested */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(who_stands_still_is_told_what_changes_around_it)};
    return cmocka_run_group_tests_name("still", tests, NULL, NULL);
}
