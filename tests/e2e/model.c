/* model.c: the rules of visibility, written plainly once more, and compared with what the daemon told. */
#include "model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

float model_number(float v)
{
    return fabsf(v) < 1.17549435e-38f ? 0 : v;
}

static int dims(const struct model *m)
{
    return m->set.dimensions == 3 ? 3 : 2;
}

void model_remove(struct model *m, uint64_t id)
{
    m->entities[id].alive = false;
    for (int p = 1; p <= MODEL_PLAYERS; p++) m->players[p].unit[id] = false;
}

static double distance2(const struct model *m, const float a[3], const float b[3])
{
    double sum = 0;
    for (int i = 0; i < dims(m); i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}

static bool unit_sees(const struct model *m, const struct libaoi_entity *e, const struct libaoi_entity *t)
{
    if (e->radius == 0 || e == t) return false;
    if (m->set.shape == LIBAOI_SPHERE) return distance2(m, e->pos, t->pos) <= (double)e->radius * (double)e->radius;
    for (int i = 0; i < dims(m); i++) {
        if (m->set.shape == LIBAOI_CELLS) {
            double apart = floor((double)e->pos[i] / m->set.cell_size) - floor((double)t->pos[i] / m->set.cell_size);
            if (fabs(apart) > m->set.cell_range) return false;
        } else {
            volatile float low = e->pos[i] - e->radius, high = e->pos[i] + e->radius; /* rounded to 32 bits */
            if (!(low <= t->pos[i] && t->pos[i] <= high)) return false;
        }
    }
    return true;
}

static bool in_box(const struct model *m, const float min[3], const float max[3], const float pos[3])
{
    for (int i = 0; i < dims(m); i++)
        if (!(model_number(min[i]) <= pos[i] && pos[i] <= model_number(max[i]))) return false;
    return true;
}

bool model_sees(const struct model *m, uint64_t player, uint64_t entity)
{
    const struct model_player *p = &m->players[player];
    const struct model_entity *t = &m->entities[entity];
    if (!p->open || !t->alive) return false;
    if (p->unit[entity] && p->include_self[entity]) return true;
    if (p->mask && !(t->e.layers & p->mask)) return false;
    if (!p->mask && !t->e.layers) return false;
    if (p->viewport && in_box(m, p->min, p->max, t->e.pos)) return true;
    for (int u = 1; u <= MODEL_ENTITIES; u++)
        if (p->unit[u] && unit_sees(m, &m->entities[u].e, &t->e)) return true;
    return false;
}

static void compare_item(const struct model *m, const struct libaoi_item *item, const struct libaoi_entity *e)
{
    for (int i = 0; i < 3; i++) {
        float want = i < dims(m) ? e->pos[i] : 0;
        assert_memory_equal(&item->pos[i], &want, sizeof want);
    }
    assert_int_equal(item->extra, m->set.extra ? e->extra : 0);
    assert_int_equal(item->layers, e->layers);
    assert_int_equal(item->payload_len, e->payload_len);
    if (e->payload_len) assert_memory_equal(item->payload, e->payload, e->payload_len);
}

/* Fails the test, with all that decides. */
static void wrong(const struct model *m, uint64_t player, uint64_t id, bool sees)
{
    const struct model_player *p = &m->players[player];
    const struct libaoi_entity *t = &m->entities[id].e;
    printf("shape %u cell %g player %" PRIu64 " open %d mask %x viewport %d (%.9g %.9g %.9g .. %.9g %.9g %.9g)\n", m->set.shape, m->set.cell_size,
           player, p->open, p->mask, p->viewport, (double)p->min[0], (double)p->min[1], (double)p->min[2], (double)p->max[0], (double)p->max[1],
           (double)p->max[2]);
    for (int u = 1; u <= MODEL_ENTITIES; u++) {
        const struct libaoi_entity *e = &m->entities[u].e;
        if (p->unit[u])
            printf("unit %d (%.9g %.9g %.9g) radius %.9g self %d\n", u, (double)e->pos[0], (double)e->pos[1], (double)e->pos[2], (double)e->radius,
                   p->include_self[u]);
    }
    printf("entity %" PRIu64 " alive %d (%.9g %.9g %.9g) layers %x\n", id, m->entities[id].alive, (double)t->pos[0], (double)t->pos[1],
           (double)t->pos[2], t->layers);
    fail_msg("player %" PRIu64 " entity %" PRIu64 ": %s", player, id, sees ? "not told" : "told, but not to be seen");
}

void model_compare(const struct model *m, const struct client *client, uint64_t player)
{
    const struct libaoi_view *view = libaoi_view(client->c, m->space, player);
    size_t want = 0;
    for (uint64_t id = 1; id <= MODEL_ENTITIES; id++) {
        const struct libaoi_item *item = view ? libaoi_view_find(view, id) : NULL;
        bool sees = model_sees(m, player, id);
        if (sees != (item != NULL)) wrong(m, player, id, sees);
        if (!sees) continue;
        want++;
        compare_item(m, item, &m->entities[id].e);
    }
    assert_int_equal(view ? view->n : 0, want);
    if (!view) return;
    assert_false(view->partial);
    assert_int_equal(view->told_same, 0);
    assert_int_equal(view->empty, 0);
}

/* Marks the ids of a page, each once in all the pages. */
static void mark(const struct libaoi_rows *rows, bool *found, uint64_t *last)
{
    uint64_t top = *last;
    for (size_t i = 0; i < rows->n; i++) {
        assert_true(rows->id[i] >= 1 && rows->id[i] <= MODEL_ENTITIES);
        assert_true(rows->id[i] > *last);
        assert_false(found[rows->id[i]]);
        found[rows->id[i]] = true;
        if (rows->id[i] > top) top = rows->id[i];
    }
    *last = top;
}

static void expect_found(const struct model *m, const bool *found, const float min[3], const float max[3], float radius, uint32_t layers)
{
    for (int id = 1; id <= MODEL_ENTITIES; id++) {
        const struct model_entity *t = &m->entities[id];
        bool inside = radius >= 0 ? distance2(m, min, t->e.pos) <= (double)radius * (double)radius : in_box(m, min, max, t->e.pos);
        if (found[id] != (t->alive && inside && (!layers || (t->e.layers & layers)))) fail_msg("a query is wrong about entity %d", id);
    }
}

static void query_entities(const struct model *m, struct client *client, const float min[3], const float max[3], float radius, uint32_t layers)
{
    bool found[MODEL_ENTITIES + 1] = {false};
    uint64_t cursor = 0, last = 0, entities, players;
    struct libaoi_rows rows;
    do {
        int status = radius >= 0 ? libaoi_query_radius(client->c, m->space, min, radius, layers, cursor, 0, TIMEOUT_MS, &rows)
                                 : libaoi_query_box(client->c, m->space, min, max, layers, cursor, 0, TIMEOUT_MS, &rows);
        assert_int_equal(status, 0);
        assert_true(rows.n <= libaoi_welcome(client->c)->query_page);
        for (size_t i = 0; i < rows.n; i++) {
            const struct libaoi_entity *e = &m->entities[rows.id[i]].e;
            assert_true(rows.x[i] == e->pos[0] && rows.y[i] == e->pos[1] && rows.layers[i] == e->layers);
            if (dims(m) == 3) assert_true(rows.z && rows.z[i] == e->pos[2]);
            if (m->set.extra) assert_true(rows.extra && rows.extra[i] == e->extra);
        }
        mark(&rows, found, &last);
        cursor = rows.next;
    } while (cursor);
    expect_found(m, found, min, max, radius, layers);
    if (radius >= 0) return;
    assert_int_equal(libaoi_query_count(client->c, m->space, min, max, layers, TIMEOUT_MS, &entities, &players), 0);
    uint64_t n = 0;
    for (int id = 1; id <= MODEL_ENTITIES; id++) n += found[id];
    assert_int_equal(entities, n);
}

static void query_view(const struct model *m, struct client *client, uint64_t player)
{
    bool found[MODEL_ENTITIES + 1] = {false};
    uint64_t cursor = 0, last = 0, n = 0;
    struct libaoi_rows rows;
    const struct libaoi_view *view = libaoi_view(client->c, m->space, player);
    do {
        assert_int_equal(libaoi_query_view(client->c, m->space, player, cursor, 0, TIMEOUT_MS, &rows), 0);
        assert_int_equal(rows.seq, view ? view->seq : 0);
        for (size_t i = 0; i < rows.n; i++) assert_non_null(libaoi_view_find(view, rows.id[i]));
        mark(&rows, found, &last);
        n += rows.n;
        cursor = rows.next;
    } while (cursor);
    assert_int_equal(n, view ? view->n : 0);
}

void model_query(const struct model *m, struct client *client, const float min[3], const float max[3], float radius, uint32_t layers, uint64_t player)
{
    query_entities(m, client, min, max, -1, layers);
    query_entities(m, client, min, max, radius, layers);
    if (m->players[player].open) query_view(m, client, player);
    for (uint64_t id = 1; id <= MODEL_ENTITIES; id += 1 + random_below(40)) {
        struct libaoi_entity e;
        const struct model_entity *t = &m->entities[id];
        int status = libaoi_query_entity(client->c, m->space, id, TIMEOUT_MS, &e);
        assert_int_equal(status, t->alive ? 0 : LIBAOI_EREFUSED);
        if (status) {
            assert_int_equal(libaoi_refused_code(client->c), LIBAOI_UNKNOWN_ENTITY);
            client->refused_total = client->refused.n = 0;
            continue;
        }
        uint32_t subscribers = 0;
        for (int p = 1; p <= MODEL_PLAYERS; p++) subscribers += m->players[p].unit[id];
        assert_true(e.radius == t->e.radius && e.layers == t->e.layers && e.subscribers == subscribers && e.payload_len == t->e.payload_len);
        if (e.payload_len) assert_memory_equal(e.payload, t->e.payload, e.payload_len);
    }
}
