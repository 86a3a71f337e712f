/* zoom.c: cameras over the whole of a strategy map: great cities by mask and priority while armies move; beside the same cameras without a mask. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "bench.h"

enum { OWNER = 1, CITIES = 1000, CAMERAS = 100, SHOWN = 200, ARMIES = 100000, CITY_LAYER = 2 };

struct map {
    struct aoi_world *world;
    struct aoi_space *space;
    uint64_t rng, enters, leaves, updates;
    uint32_t entities;
    float side;
    uint32_t population[CITIES]; /* of entities 1 .. CITIES */
};

static void deliver(void *ctx, const struct aoi_delta *d)
{
    struct map *m = ctx;
    m->enters += d->enters.n;
    m->leaves += d->leave_n;
    m->updates += d->updates.n;
}

static void place(struct map *m, float pos[3])
{
    pos[0] = (float)crowd_random(&m->rng) * m->side;
    pos[1] = (float)crowd_random(&m->rng) * m->side;
    pos[2] = 0;
}

static void build(struct map *m, const struct options *o, struct result *out)
{
    *m = (struct map){.rng = o->seed, .entities = o->workload->entities, .side = (float)o->workload->side};
    struct aoi_limits limits = crowd_limits();
    struct aoi_sink sink = {.ctx = m, .deliver = deliver};
    struct aoi_settings set = {.index = o->index, .cell_size = o->cell_size};
    m->world = aoi_world_new(&limits, &sink);
    CHECK(aoi_space_create(m->world, OWNER, 1, &set, false) == AOI_OK);
    m->space = aoi_space_find(m->world, 1);
    double t0 = crowd_seconds();
    for (uint64_t id = 1; id <= m->entities; id++) {
        struct aoi_entity e = {.id = id};
        place(m, e.pos);
        if (id <= CITIES) {
            e.layers = CITY_LAYER;
            e.priority = m->population[id - 1] = (uint32_t)(crowd_random(&m->rng) * 1e7);
        }
        CHECK(aoi_entity_add(m->space, OWNER, AOI_ADD_NEW, &e) == AOI_OK);
    }
    out->insert_s = crowd_seconds() - t0;
}

static void open_cameras(struct map *m, uint32_t mask, bool presence)
{
    const float min[3] = {0}, max[3] = {m->side, m->side, 0};
    const struct aoi_player_settings set = {.mask = mask, .max_view = SHOWN, .presence_only = presence};
    for (uint64_t p = 1; p <= CAMERAS; p++) {
        CHECK(aoi_player_open(m->space, OWNER, p, &set) == AOI_OK);
        CHECK(aoi_viewport_set(m->space, OWNER, p, min, max) == AOI_OK);
    }
}

/* The armies take a step; then a flush, of which the time is returned. */
static double round_of_armies(struct map *m, struct result *out)
{
    double t0 = crowd_seconds();
    for (uint32_t i = 0; i < ARMIES; i++) {
        uint64_t id = CITIES + 1 + (uint64_t)(crowd_random(&m->rng) * (m->entities - CITIES));
        float pos[3];
        place(m, pos);
        CHECK(aoi_entity_move(m->space, OWNER, id, pos, NULL) == AOI_OK);
    }
    double t1 = crowd_seconds();
    struct aoi_flush_info info = {0};
    aoi_flush(m->space, &info);
    double t2 = crowd_seconds();
    out->mismatches += info.pending;
    out->moves += ARMIES;
    out->move_s += t1 - t0;
    out->flush_s += t2 - t1;
    return t2 - t1;
}

static int descending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Every camera has to show the greatest cities. */
static void check(struct map *m, struct result *out)
{
    uint32_t sorted[CITIES];
    struct aoi_rows rows = {0};
    memcpy(sorted, m->population, sizeof sorted);
    qsort(sorted, CITIES, sizeof *sorted, descending);
    for (uint64_t p = 1; p <= CAMERAS; p++) {
        uint64_t seq;
        CHECK(aoi_query_view(m->space, p, 0, SHOWN + 1, &rows, &seq) == AOI_OK);
        out->mismatches += rows.n != SHOWN;
        out->pairs += rows.n;
        for (size_t i = 0; i < rows.n; i++) out->mismatches += rows.id[i] > CITIES || m->population[rows.id[i] - 1] < sorted[SHOWN - 1];
    }
    aoi_rows_clear(&rows);
}

void bench_run_zoom(const struct options *o, struct result *out)
{
    struct map *m = mem_zalloc(sizeof *m);
    double *flush = mem_alloc(o->flushes * sizeof *flush), unmasked[3];
    build(m, o, out);
    struct result other = *out;
    open_cameras(m, CITY_LAYER, o->presence);
    round_of_armies(m, &other); /* warm-up */
    for (uint32_t f = 0; f < o->flushes; f++) flush[f] = round_of_armies(m, out);
    check(m, out);
    out->flush_median_s = bench_median(flush, o->flushes);
    out->rss_bytes = crowd_rss();
    out->enters = m->enters;
    out->leaves = m->leaves;
    out->updates = m->updates;
    open_cameras(m, 0, o->presence); /* everything is a candidate now, and the cities still come first */
    round_of_armies(m, &other);
    for (int f = 0; f < 3; f++) unmasked[f] = round_of_armies(m, &other);
    check(m, &other);
    out->base = "the same cameras without a mask";
    out->base_flush_median_s = bench_median(unmasked, 3);
    out->flush_ratio = out->flush_median_s / out->base_flush_median_s;
    out->mismatches += other.mismatches;
    out->entities = m->entities;
    out->players = CAMERAS;
    out->flushes = o->flushes;
    out->pairs *= o->flushes;
    aoi_world_free(m->world);
    free(flush);
    free(m);
}
