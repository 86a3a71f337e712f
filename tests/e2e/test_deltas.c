/* test_deltas.c: a game server that moves and one that looks, random commands, and every view and query against brute force. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 120
#define SPACE 5

static struct model *m;
static struct libaoi_view seen; /* sums over all views at the end: the test must have tried what it is about */
static struct client *mover, *eye;

static float coordinate(void)
{
    static const float special[] = {0, -0.0f, 1e-40f, 32, -32, 31.999998f, 64, 100, -100, 0.1f, 8000000, 16777216, -16777216, 9.9f, 10.1f};
    if (random_below(8) == 0) return special[random_below(sizeof special / sizeof *special)];
    return (float)((double)random_below(2000000) / 10000 - 100);
}

static float any_radius(void)
{
    static const float special[] = {0, 0, 0.1f, 5, 32, 100, 300, 20000000};
    return random_below(2) ? special[random_below(sizeof special / sizeof *special)] : (float)random_below(4000) / 100;
}

static uint64_t any_alive(void)
{
    uint64_t at = random_below(MODEL_ENTITIES);
    for (uint64_t i = 0; i < MODEL_ENTITIES; i++)
        if (m->entities[1 + (at + i) % MODEL_ENTITIES].alive) return 1 + (at + i) % MODEL_ENTITIES;
    return 0;
}

static void any_payload(struct model_entity *t)
{
    t->e.payload_len = random_below(3) ? random_below(sizeof t->bytes) : 0;
    for (size_t i = 0; i < t->e.payload_len; i++) t->bytes[i] = (uint8_t)random_below(256);
    t->e.payload = t->bytes;
}

static void do_add(uint64_t id)
{
    struct model_entity *t = &m->entities[id];
    bool upsert = t->alive || random_below(4) == 0;
    struct libaoi_entity e = {
        .id = id, .pos = {coordinate(), coordinate(), coordinate()}, .extra = (uint32_t)random_below(5), .radius = any_radius()};
    e.layers = random_below(3) ? 0 : (uint32_t)random_below(8);
    any_payload(t);
    e.payload = t->e.payload;
    e.payload_len = t->e.payload_len;
    assert_int_equal(libaoi_add(mover->c, SPACE, upsert ? LIBAOI_ADD_UPSERT : LIBAOI_ADD_NEW, &e), 0);
    t->alive = true;
    t->e = e;
    if (!t->e.layers) t->e.layers = 1;
    for (int a = 0; a < 3; a++) t->e.pos[a] = model_number(e.pos[a]);
}

static void do_move(uint64_t id)
{
    struct libaoi_entity *e = &m->entities[id].e;
    float pos[3];
    uint32_t extra = (uint32_t)random_below(5);
    bool with_extra = random_below(2), jump = random_below(3) == 0;
    for (int a = 0; a < 3; a++) {
        pos[a] = jump ? coordinate() : e->pos[a] + (float)random_below(5) - 2;
        if (pos[a] > 16777216 || pos[a] < -16777216) pos[a] = e->pos[a];
    }
    libaoi_move(mover->c, SPACE, 1, &id, &pos[0], &pos[1], m->set.dimensions == 3 ? &pos[2] : NULL, with_extra ? &extra : NULL);
    for (int a = 0; a < 3; a++) e->pos[a] = model_number(pos[a]);
    if (with_extra) e->extra = extra;
}

static void world_command(void)
{
    uint64_t id = any_alive(), kind = random_below(20);
    if (!id || kind < 3) {
        do_add(1 + random_below(MODEL_ENTITIES));
        return;
    }
    struct model_entity *t = &m->entities[id];
    if (kind == 3) {
        drop(mover, SPACE, id);
        model_remove(m, id);
        if (random_below(3) == 0) do_add(id);
    } else if (kind == 4) {
        t->e.radius = any_radius();
        libaoi_set_radius(mover->c, SPACE, id, t->e.radius);
    } else if (kind == 5) {
        t->e.layers = (uint32_t)random_below(8);
        libaoi_set_layers(mover->c, SPACE, id, t->e.layers);
    } else if (kind == 6) {
        any_payload(t);
        assert_int_equal(libaoi_set_payload(mover->c, SPACE, id, t->e.payload, t->e.payload_len), 0);
    } else {
        do_move(id);
    }
}

static void any_box(float min[3], float max[3])
{
    for (int a = 0; a < 3; a++) {
        float p = coordinate(), q = random_below(6) ? p + (float)random_below(60) : p;
        min[a] = p < q ? p : q;
        max[a] = p < q ? q : p;
    }
}

static void do_subscribe(uint64_t player, uint64_t id)
{
    struct model_player *p = &m->players[player];
    p->open = p->unit[id] = true;
    p->include_self[id] = random_below(3) == 0;
    libaoi_subscribe(eye->c, SPACE, player, id, p->include_self[id]);
}

static void player_command(void)
{
    uint64_t player = 1 + random_below(MODEL_PLAYERS), id = any_alive(), kind = random_below(12);
    struct model_player *p = &m->players[player];
    if (kind < 4 && id) {
        do_subscribe(player, id);
    } else if (kind < 6) {
        for (id = 1; id <= MODEL_ENTITIES && !p->unit[id];) id++;
        if (id > MODEL_ENTITIES) return;
        p->unit[id] = false;
        libaoi_unsubscribe(eye->c, SPACE, player, id);
    } else if (kind < 8) {
        p->open = p->viewport = true;
        any_box(p->min, p->max);
        libaoi_set_viewport(eye->c, SPACE, player, p->min, p->max);
    } else if (kind == 8 && p->open) {
        p->viewport = false;
        libaoi_clear_viewport(eye->c, SPACE, player);
    } else if (kind == 9) {
        p->open = true;
        p->mask = (uint32_t)random_below(8);
        libaoi_open_player(eye->c, SPACE, player, p->mask);
    } else if (kind == 10 && p->open && random_below(3) == 0) {
        memset(p, 0, sizeof *p);
        libaoi_close_player(eye->c, SPACE, player);
    } else if (kind == 11) {
        libaoi_resync(eye->c, SPACE, random_below(2) && p->open ? player : 0);
    }
}

static void play(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        /* on two connections: each waits for the other, so that the model knows the order */
        for (uint64_t n = random_below(60); n > 0; n--) world_command();
        client_ok(mover);
        for (uint64_t n = random_below(6); n > 0; n--) player_command();
        client_ok(eye);
        flush(mover, SPACE, eye);
        for (uint64_t player = 1; player <= MODEL_PLAYERS; player++) model_compare(m, eye, player);
        float min[3], max[3];
        any_box(min, max);
        model_query(m, eye, min, max, any_radius(), (uint32_t)random_below(4), 1 + random_below(MODEL_PLAYERS));
    }
    for (uint64_t player = 1; player <= MODEL_PLAYERS; player++) {
        const struct libaoi_view *view = libaoi_view(eye->c, SPACE, player);
        if (!view) continue;
        seen.deltas += view->deltas;
        seen.parts += view->parts;
        seen.fulls += view->fulls;
        seen.enters += view->enters;
        seen.leaves += view->leaves;
        seen.updates += view->updates;
    }
    /* nothing is left to be seen */
    for (uint64_t id = 1; id <= MODEL_ENTITIES; id++) {
        if (!m->entities[id].alive) continue;
        drop(mover, SPACE, id);
        model_remove(m, id);
    }
    client_ok(mover);
    flush(mover, SPACE, eye);
    for (uint64_t player = 1; player <= MODEL_PLAYERS; player++) model_compare(m, eye, player);
}

static void run(const char *name, uint32_t index, uint32_t dimensions)
{
    /* small frames and pages: deltas in parts, results in pages */
    static const char *const options[] = {"query_page=7", "max_payload=1KiB", "max_frame_bytes=8KiB", NULL};
    random_seed(name);
    memset(&seen, 0, sizeof seen);
    for (uint32_t shape = LIBAOI_BOX; shape <= LIBAOI_CELLS; shape++) {
        for (int extra = 0; extra < 2; extra++) {
            struct rig rig;
            rig_start(&rig, options);
            mover = rig_client(&rig);
            eye = rig_client(&rig);
            m = calloc(1, sizeof *m);
            assert_non_null(m);
            m->space = SPACE;
            m->set = (struct libaoi_settings){
                .dimensions = dimensions, .index = index, .shape = shape, .cell_size = extra ? 10 : 32, .cell_range = 1, .extra = extra};
            libaoi_create_space(mover->c, SPACE, &m->set, false);
            client_ok(mover);
            play();
            free(m);
            rig_stop(&rig);
        }
    }
    print_message("%llu deltas in %llu parts, %llu full, %llu enters, %llu leaves, %llu updates\n", (unsigned long long)seen.deltas,
                  (unsigned long long)seen.parts, (unsigned long long)seen.fulls, (unsigned long long)seen.enters, (unsigned long long)seen.leaves,
                  (unsigned long long)seen.updates);
    assert_true(seen.deltas > 500 && seen.parts > seen.deltas && seen.fulls > 20 && seen.enters > 1000 && seen.leaves > 1000 && seen.updates > 1000);
}

static void every_view_on_the_grid_in_2d_is_what_brute_force_says(void **state)
{
    (void)state;
    run(__func__, LIBAOI_GRID, 2);
}

static void every_view_on_the_grid_in_3d_is_what_brute_force_says(void **state)
{
    (void)state;
    run(__func__, LIBAOI_GRID, 3);
}

static void every_view_on_the_crosslist_in_2d_is_what_brute_force_says(void **state)
{
    (void)state;
    run(__func__, LIBAOI_CROSSLIST, 2);
}

static void every_view_on_the_crosslist_in_3d_is_what_brute_force_says(void **state)
{
    (void)state;
    run(__func__, LIBAOI_CROSSLIST, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_view_on_the_grid_in_2d_is_what_brute_force_says),
        cmocka_unit_test(every_view_on_the_grid_in_3d_is_what_brute_force_says),
        cmocka_unit_test(every_view_on_the_crosslist_in_2d_is_what_brute_force_says),
        cmocka_unit_test(every_view_on_the_crosslist_in_3d_is_what_brute_force_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
