/* test_zoom.c: the recipe for strategy maps: a camera over all cities of the world stays useful and cheap, the greatest come first. */
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/trace.h"

#define MOST 100 /* cities that the camera shows */
#define SMALL 1u
#define GREAT 2u /* more than 100,000 people */
#define FOG 4u   /* not explored yet */

struct city {
    uint64_t id;
    float x, y;
    uint32_t people, layers;
};

static ARRAY(struct city) cities;
static float min[3], max[3]; /* of the camera */
static uint32_t mask;

static int load(void **state)
{
    (void)state;
    struct trace_table t;
    char error[300];
    if (trace_load_table(&t, "tests/data/cities.csv.xz", error, sizeof error)) fail_msg("%s", error);
    int id = trace_column(&t, "id"), x = trace_column(&t, "x"), y = trace_column(&t, "y"), people = trace_column(&t, "population");
    for (size_t i = 0; i < t.rows; i++) {
        const double *cell = t.cells.at + i * t.columns;
        struct city c = {.id = (uint64_t)cell[id], .x = (float)cell[x], .y = (float)cell[y], .people = (uint32_t)cell[people]};
        c.layers = c.people > 100000 ? GREAT : SMALL;
        *array_add(&cities) = c;
    }
    trace_clear_table(&t);
    return 0;
}

static int unload(void **state)
{
    (void)state;
    array_clear(&cities);
    return 0;
}

static void begin(uint32_t index)
{
    rig_start(&rig, NULL);
    mover = rig_client(&rig);
    eye = rig_client(&rig);
    libaoi_create_space(mover->c, SPACE, &(struct libaoi_settings){.index = index, .cell_size = 64}, false);
    for (uint32_t i = 0; i < cities.n; i++) {
        const struct city *c = &cities.at[i];
        libaoi_add(mover->c, SPACE, LIBAOI_ADD_NEW,
                   &(struct libaoi_entity){.id = c->id, .pos = {c->x, c->y}, .layers = c->layers, .priority = c->people});
    }
    client_ok(mover);
}

/* Whether a comes first: more people, then nearer to the centre, then the lower id. */
static int by_rank(const void *a, const void *b)
{
    const struct city *p = *(const struct city *const *)a, *q = *(const struct city *const *)b;
    double x = ((double)min[0] + (double)max[0]) / 2, y = ((double)min[1] + (double)max[1]) / 2;
    double d = ((double)p->x - x) * ((double)p->x - x) + ((double)p->y - y) * ((double)p->y - y);
    double e = ((double)q->x - x) * ((double)q->x - x) + ((double)q->y - y) * ((double)q->y - y);
    if (p->people != q->people) return p->people > q->people ? -1 : 1;
    return d < e ? -1 : d > e ? 1 : p->id < q->id ? -1 : p->id > q->id;
}

/* Brute force. Cities of equally many people as the last one shown may be taken for each other: what was told already sticks. Returns how many are seen. */
static size_t expect_the_greatest(void)
{
    const struct libaoi_view *view = libaoi_view(eye->c, SPACE, P);
    const struct city **seen = mem_alloc((cities.n + 1) * sizeof *seen);
    size_t n = 0;
    for (uint32_t i = 0; i < cities.n; i++) {
        const struct city *c = &cities.at[i];
        if (c->layers & mask && min[0] <= c->x && c->x <= max[0] && min[1] <= c->y && c->y <= max[1]) seen[n++] = c;
    }
    qsort(seen, n, sizeof *seen, by_rank);
    size_t want = n < MOST ? n : MOST;
    assert_int_equal(view ? view->n : 0, want);
    uint32_t last = want && n > MOST ? seen[want - 1]->people : 0;
    bool tie = n > MOST && seen[MOST]->people == last;
    for (size_t i = 0; i < want; i++)
        if (!libaoi_view_find(view, seen[i]->id) && !(tie && seen[i]->people == last))
            fail_msg("city %llu is not seen", (unsigned long long)seen[i]->id);
    free(seen);
    return want;
}

static size_t look(float x0, float y0, float x1, float y1)
{
    min[0] = x0, min[1] = y0, max[0] = x1, max[1] = y1;
    libaoi_set_viewport(eye->c, SPACE, P, min, max);
    client_ok(eye);
    flush(mover, SPACE, eye);
    return expect_the_greatest();
}

/* The camera's mask; it goes by zoom, and by what has been explored. */
static void show(uint32_t layers)
{
    mask = layers;
    libaoi_open_player_with(eye->c, SPACE, P, &(struct libaoi_player){.mask = layers, .max_view = MOST});
    client_ok(eye);
}

static void zoom(void)
{
    uint64_t before;
    show(GREAT);
    assert_int_equal(look(-20000, -10000, 20000, 10000), MOST); /* the whole world: a hundred great cities, not 135,233 */
    before = libaoi_counters(eye->c)->bytes_in;
    assert_in_range(before, 1, MOST * 64 + 4096);
    /* over the whole world a camera may pan and nothing is told */
    client_forget(eye);
    assert_int_equal(look(-20010, -10000, 20010, 10000), MOST);
    expect_told(eye, SPACE, P, "");
    /* closer: the mask lets more in, and there is always the best of what is there */
    show(GREAT | SMALL);
    assert_int_equal(look(-1000, 3500, 3000, 6000), MOST);
    assert_int_equal(look(0, 4000, 600, 5200), MOST);
    size_t near = look(100, 4200, 160, 4260);
    assert_in_range(near, 1, MOST - 1);
    /* and out again */
    show(GREAT);
    assert_int_equal(look(-20000, -10000, 20000, 10000), MOST);
    client_forget(eye);
    assert_int_equal(look(-20000, -10000, 20000, 10000), MOST);
}

static void life_goes_on(void)
{
    struct city *small = NULL;
    for (uint32_t i = 0; i < cities.n && !small; i++)
        if (cities.at[i].layers == SMALL) small = &cities.at[i];
    assert_non_null(small);
    const struct city old = *small;
    /* a village changes: nobody who looks at the world is told */
    libaoi_set_payload(mover->c, SPACE, small->id, "fire", 4);
    flush(mover, SPACE, eye);
    expect_told(eye, SPACE, P, "");
    /* it becomes the capital of the world: one comes, one goes */
    small->people = 100000000;
    small->layers = GREAT;
    libaoi_set_layers(mover->c, SPACE, small->id, GREAT);
    libaoi_set_priority(mover->c, SPACE, small->id, small->people);
    flush(mover, SPACE, eye);
    expect_the_greatest();
    const struct libaoi_view *view = libaoi_view(eye->c, SPACE, P);
    assert_int_equal(libaoi_view_find(view, small->id)->payload_len, 4);
    const char *told = client_told(eye, SPACE, P);
    assert_true(told[0] == 'L' && strstr(told, " E") && !strstr(told, "U"));
    /* fog: what lies in it has another layer until it is explored */
    libaoi_set_layers(mover->c, SPACE, small->id, FOG);
    small->layers = FOG;
    flush(mover, SPACE, eye);
    expect_the_greatest();
    *small = old;
}

CASE(a_camera_over_the_whole_world_shows_the_greatest)
{
    zoom();
    life_goes_on();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_camera_over_the_whole_world_shows_the_greatest, load, unload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
