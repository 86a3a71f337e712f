/* crowd.c: entities that walk at random, players that watch through them, a sink that reads what it gets. */
#include "crowd.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

#define OWNER 1
#define SPACE 1
#define FIRST_ID 1000 /* of the entities */
#define BUFFER_BYTES ((size_t)2 << 20)

/* xorshift64* (Vigna 2016): the sequence is part of the workloads, so that runs are comparable. */
double crowd_random(uint64_t *rng)
{
    *rng ^= *rng >> 12;
    *rng ^= *rng << 25;
    *rng ^= *rng >> 27;
    return (double)((*rng * 2685821657736338717u) >> 11) / 9007199254740992.0;
}

double crowd_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

uint64_t crowd_rss(void)
{
    unsigned long long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL) return 0;
    int n = fscanf(f, "%llu %llu", &total, &resident);
    fclose(f);
    return n == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* ------------------------------------------------------------------------------------------------------------- the sink */

static void mirror_put(struct crowd *c, float *mirror, uint64_t id, float x, float y, bool enters)
{
    float *at = mirror + 2 * (id - FIRST_ID);
    if (isnan(at[0]) != enters) c->mismatches++;
    at[0] = x;
    at[1] = y;
}

static uint64_t mirror_stride(const struct crowd *c)
{
    return c->plan.players < CROWD_MIRRORS ? 1 : c->plan.players / CROWD_MIRRORS;
}

static float *mirror_of(struct crowd *c, uint64_t player)
{
    uint64_t stride = mirror_stride(c), i = (player - 1) / stride;
    return (player - 1) % stride == 0 && i < CROWD_MIRRORS ? c->mirror[i] : NULL;
}

static void mirror_apply(struct crowd *c, const struct aoi_delta *d)
{
    float *mirror = mirror_of(c, d->player);
    if (mirror == NULL) return;
    if (d->full)
        for (size_t i = 0; i < 2 * (size_t)c->plan.entities; i++) mirror[i] = NAN;
    for (size_t i = 0; i < d->leave_n; i++) { mirror_put(c, mirror, d->leave_id[i], NAN, NAN, false); }
    for (size_t i = 0; i < d->enters.n; i++) mirror_put(c, mirror, d->enters.id[i], d->enters.x[i], d->enters.y[i], true);
    size_t n = d->updates.n;
    const uint64_t *id = (const void *)(c->buffer + c->used - 16 * n); /* where columns() had them put: just now */
    const float *x = (const float *)(id + n), *y = x + n;
    for (size_t i = 0; i < n; i++) mirror_put(c, mirror, id[i], x[i], y[i], false);
}

/* The columns are wanted one after the other, as a frame has them. */
static bool columns(void *ctx, const struct aoi_delta *d, struct aoi_places *to)
{
    struct crowd *c = ctx;
    uint8_t *at = c->buffer + c->used;
    size_t n = d->updates.n;
    *to = (struct aoi_places){.id = at, .x = at + n * 8, .y = at + n * 12};
    c->used += 16 * n;
    return true;
}

static void deliver(void *ctx, const struct aoi_delta *d)
{
    struct crowd *c = ctx;
    size_t n = d->updates.n;
    if (c->mirroring) mirror_apply(c, d);
    c->deltas++;
    c->enters += d->enters.n;
    c->leaves += d->leave_n;
    c->updates += n;
    if (c->used > BUFFER_BYTES / 2) {
        c->bytes += c->used;
        c->used = 0;
    }
}

/* ------------------------------------------------------------------------------------------------------------- life */

struct aoi_limits crowd_limits(void)
{
    return (struct aoi_limits){.max_spaces = 1,
                               .max_entities = UINT32_MAX / 4,
                               .max_players = UINT32_MAX / 4,
                               .max_units = 16,
                               .max_payload = 4096,
                               .max_overrides = 16,
                               .max_message = 4096,
                               .max_messages = 10000};
}

void crowd_init(struct crowd *c, const struct crowd_plan *plan)
{
    *c = (struct crowd){.plan = *plan, .rng = plan->seed};
    size_t n = plan->entities;
    c->id = mem_zalloc(n * sizeof *c->id);
    c->x = mem_zalloc(n * sizeof *c->x);
    c->y = mem_zalloc(n * sizeof *c->y);
    c->r = mem_zalloc(n * sizeof *c->r);
    c->buffer = mem_zalloc(BUFFER_BYTES + 16 * n);
    for (size_t e = 0; e < n; e++) {
        double p = crowd_random(&c->rng);
        c->id[e] = FIRST_ID + e;
        const struct crowd_mix *mix = plan->mix;
        while (mix != NULL && p >= mix->share) mix++;
        c->r[e] = (float)(mix != NULL ? mix->radius : plan->radius);
        c->x[e] = (float)(crowd_random(&c->rng) * plan->side);
        c->y[e] = (float)(crowd_random(&c->rng) * plan->side);
    }
    memset(c->buffer, 1, BUFFER_BYTES + 16 * n); /* resident before anything is measured */
    struct aoi_limits limits = crowd_limits();
    struct aoi_sink sink = {.ctx = c, .columns = columns, .deliver = deliver};
    c->world = aoi_world_new(&limits, &sink);
    struct aoi_settings set = {.dimensions = 2, .shape = plan->shape, .index = plan->index, .cell_size = plan->cell_size};
    const char *why;
    set.max_view = plan->max_view;
    if (plan->tiers != NULL) CHECK(aoi_tiers_parse(plan->tiers, &set.tiers, &why) == AOI_OK);
    CHECK(aoi_space_create(c->world, OWNER, SPACE, &set, false) == AOI_OK);
    c->space = aoi_space_find(c->world, SPACE);
}

void crowd_clear(struct crowd *c)
{
    aoi_world_free(c->world);
    free(c->id);
    free(c->x);
    free(c->y);
    free(c->r);
    free(c->buffer);
    for (int i = 0; i < CROWD_MIRRORS; i++) free(c->mirror[i]);
}

static float appeal_of(const struct crowd *c, uint32_t e)
{
    uint32_t castles = c->plan.castles;
    return castles > 0 && e % (c->plan.entities / castles) == 0 ? (float)c->plan.appeal : 0;
}

void crowd_insert(struct crowd *c)
{
    for (uint32_t e = 0; e < c->plan.entities; e++) {
        struct aoi_entity entity = {.id = FIRST_ID + e, .pos = {c->x[e], c->y[e], 0}, .radius = c->r[e], .appeal = appeal_of(c, e)};
        CHECK(aoi_entity_add(c->space, OWNER, AOI_ADD_NEW, &entity) == AOI_OK);
    }
}

void crowd_subscribe(struct crowd *c)
{
    const struct aoi_player_settings presence = {.presence_only = true};
    for (uint32_t p = 0; p < c->plan.players; p++) {
        if (c->plan.presence_only) CHECK(aoi_player_open(c->space, OWNER, p + 1, &presence) == AOI_OK);
        CHECK(aoi_subscribe(c->space, OWNER, p + 1, FIRST_ID + p, false) == AOI_OK);
    }
}

static float reflect(double v, double side)
{
    return (float)(v < 0 ? -v : v > side ? 2 * side - v : v);
}

void crowd_step_one(struct crowd *c, uint32_t e)
{
    const struct crowd_plan *plan = &c->plan;
    double a = crowd_random(&c->rng) * 2 * M_PI, x = c->x[e] + plan->step * cos(a), y = c->y[e] + plan->step * sin(a);
    if (crowd_random(&c->rng) < plan->teleport) {
        x = crowd_random(&c->rng) * plan->side;
        y = crowd_random(&c->rng) * plan->side;
    }
    c->x[e] = reflect(x, plan->side);
    c->y[e] = reflect(y, plan->side);
}

void crowd_step(struct crowd *c)
{
    for (uint32_t e = 0; e < c->plan.entities; e++) crowd_step_one(c, e);
}

void crowd_move(struct crowd *c, uint32_t entity)
{
    const float pos[3] = {c->x[entity], c->y[entity], 0};
    int err = aoi_entity_move(c->space, OWNER, FIRST_ID + entity, pos, NULL);
    if (err != AOI_OK) c->mismatches++;
}

static void move_failed(void *ctx, size_t i, int err)
{
    struct crowd *c = ctx;
    (void)i;
    (void)err;
    c->mismatches++;
}

void crowd_move_all(struct crowd *c)
{
    aoi_entity_move_many(c->space, OWNER, c->plan.entities, c->id, c->x, c->y, NULL, NULL, move_failed, c);
}

void crowd_flush(struct crowd *c)
{
    struct aoi_flush_info info = {0};
    aoi_flush(c->space, &info);
    if (info.pending && c->plan.tiers == NULL) c->mismatches++;
}

void crowd_count_pairs(struct crowd *c)
{
    struct aoi_stats stats = {0};
    aoi_space_stats(c->space, &stats);
    c->pairs_now = stats.pairs;
}

uint32_t crowd_largest_view(struct crowd *c)
{
    struct aoi_rows rows = {0};
    uint32_t most = 0;
    for (uint32_t p = 0; p < c->plan.players; p++) {
        uint64_t seq;
        CHECK(aoi_query_view(c->space, p + 1, 0, c->plan.entities, &rows, &seq) == AOI_OK);
        if (rows.n > most) most = (uint32_t)rows.n;
    }
    aoi_rows_clear(&rows);
    return most;
}

/* ------------------------------------------------------------------------------------------------------------- checks */

/* The next cell at most, on that axis. */
static bool near_cells(const struct crowd *c, float a, float b)
{
    return fabs(floor((double)a / c->plan.cell_size) - floor((double)b / c->plan.cell_size)) <= 1;
}

static bool sees(const struct crowd *c, uint32_t unit_index, uint32_t e)
{
    float x = c->x[unit_index], y = c->y[unit_index], r = c->r[unit_index], appeal = appeal_of(c, e);
    float left = x - r, right = x + r, low = y - r, high = y + r;
    double dx = (double)c->x[e] - (double)x, dy = (double)c->y[e] - (double)y;
    if (e == unit_index) return false;
    if (c->plan.shape == AOI_SHAPE_CELLS) return near_cells(c, x, c->x[e]) && near_cells(c, y, c->y[e]);
    if (c->plan.shape == AOI_SHAPE_SPHERE) return dx * dx + dy * dy <= (double)r * (double)r;
    return left <= c->x[e] + appeal && c->x[e] - appeal <= right && low <= c->y[e] + appeal && c->y[e] - appeal <= high;
}

void crowd_check_views(struct crowd *c, uint32_t sample)
{
    uint32_t n = c->plan.entities, players = c->plan.players, stride = players < sample ? 1 : players / sample;
    uint8_t *told = mem_zalloc(n);
    struct aoi_rows rows = {0};
    for (uint32_t p = 0; p < players; p += stride) {
        uint64_t seq;
        memset(told, 0, n);
        CHECK(aoi_query_view(c->space, p + 1, 0, n, &rows, &seq) == AOI_OK);
        for (size_t i = 0; i < rows.n; i++) {
            uint64_t e = rows.id[i] - FIRST_ID;
            if (e >= n || told[e]++) c->mismatches++;
        }
        uint32_t seen = 0, wrong = 0, most = c->plan.max_view;
        for (uint32_t e = 0; e < n; e++) {
            bool is = sees(c, p, e);
            seen += is;
            wrong += most > 0 ? told[e] && !is : is != (told[e] != 0);
        }
        c->mismatches += wrong + (most > 0 && rows.n != (seen < most ? seen : most));
    }
    aoi_rows_clear(&rows);
    free(told);
}

void crowd_check_mirrors(struct crowd *c)
{
    if (c->plan.players == 0) return;
    uint64_t stride = mirror_stride(c), enters = c->enters, leaves = c->leaves, updates = c->updates, deltas = c->deltas;
    for (uint32_t i = 0; i < CROWD_MIRRORS && i * stride < c->plan.players; i++) {
        c->mirror[i] = mem_alloc(2 * (size_t)c->plan.entities * sizeof(float));
        for (size_t k = 0; k < 2 * (size_t)c->plan.entities; k++) c->mirror[i][k] = NAN;
        CHECK(aoi_resync(c->space, OWNER, i * stride + 1) == AOI_OK);
    }
    c->mirroring = true;
    for (int f = 0; f < 3; f++) {
        crowd_step(c);
        crowd_move_all(c);
        crowd_flush(c);
        for (uint32_t i = 0; i < CROWD_MIRRORS && c->mirror[i] != NULL; i++) {
            uint32_t p = (uint32_t)(i * stride);
            for (uint32_t e = 0; e < c->plan.entities; e++) {
                const float *at = c->mirror[i] + 2 * (size_t)e;
                bool is = sees(c, p, e), told = !isnan(at[0]), same = at[0] == c->x[e] && at[1] == c->y[e];
                same |= c->plan.tiers != NULL || c->plan.presence_only;
                bool right = told ? is && same : !is || c->plan.max_view > 0;
                c->mismatches += !right;
            }
        }
    }
    c->mirroring = false;
    c->enters = enters;
    c->leaves = leaves;
    c->updates = updates;
    c->deltas = deltas;
}
