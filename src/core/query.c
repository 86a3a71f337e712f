/* query.c: answers about the truth of now, and about what was told; pages ascend by id. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "core/cover.h"
#include "core/find.h"
#include "core/look.h"

void aoi_rows_clear(struct aoi_rows *rows)
{
    free(rows->id);
    free(rows->x);
    free(rows->y);
    free(rows->z);
    free(rows->extra);
    free(rows->layers);
    *rows = (struct aoi_rows){0};
}

void aoi__rows_reserve(struct aoi_rows *rows, size_t need)
{
    if (need <= rows->cap) return;
    size_t cap = need + need / 2 + 8;
    rows->id = mem_realloc(rows->id, cap * sizeof *rows->id);
    rows->x = mem_realloc(rows->x, cap * sizeof *rows->x);
    rows->y = mem_realloc(rows->y, cap * sizeof *rows->y);
    rows->z = mem_realloc(rows->z, cap * sizeof *rows->z);
    rows->extra = mem_realloc(rows->extra, cap * sizeof *rows->extra);
    rows->layers = mem_realloc(rows->layers, cap * sizeof *rows->layers);
    rows->cap = cap;
}

/* ------------------------------------------------------------------------------------------------------------- the best of many */

/* The n best of what is offered, and no more than twice as many beside: these are cut down when they are too many, and then what is worse than all of them is passed over. */
struct best {
    struct aoi__ranked *at;
    size_t n, most;
    struct aoi__ranked worst; /* of the most best of what was cut */
    bool cut;                 /* some were left out */
    uint64_t cursor;          /* only ids above it count */
    const float *center;      /* NULL: by id alone */
    uint32_t dims;
};

/* Room for as many as will be offered at most. */
static void best_init(struct best *b, size_t most, size_t offers)
{
    CHECK(most > 0);
    *b = (struct best){.most = most};
    b->at = mem_alloc((offers < 2 * most ? offers + 1 : 2 * most) * sizeof *b->at);
}

static void best_cut(struct best *b)
{
    if (b->n <= b->most) return;
    aoi__rank_select(b->at, b->n, b->most);
    b->n = b->most;
    b->cut = true;
    b->worst = b->at[0];
    for (size_t i = 1; i < b->n; i++)
        if (aoi__better(&b->worst, &b->at[i])) b->worst = b->at[i];
}

static inline void best_offer(struct best *b, const struct aoi__ranked *r)
{
    if (b->cut && !aoi__better(r, &b->worst)) return;
    b->at[b->n++] = *r;
    if (b->n == 2 * b->most) best_cut(b);
}

static void offer_id(void *ctx, const float pos[3], uint64_t id, uint32_t slot)
{
    struct best *b = ctx;
    (void)pos;
    if (id > b->cursor) best_offer(b, &(struct aoi__ranked){.id = id, .entry = slot});
}

static void offer_near(void *ctx, const float pos[3], uint64_t id, uint32_t slot)
{
    struct best *b = ctx;
    best_offer(b, &(struct aoi__ranked){.distance2 = aoi__distance2(pos, b->center, b->dims), .id = id, .entry = slot});
}

/* Makes rows of them, whose ids are those of the entries, and lets go of them. */
static void best_rows(struct best *b, const struct aoi_space *space, struct aoi_rows *rows)
{
    aoi__rows_reserve(rows, b->n);
    rows->n = b->n;
    for (size_t i = 0; i < b->n; i++) {
        const struct aoi__hot *h = &space->hot[b->at[i].entry];
        aoi__row_set(rows, i, h, false);
        rows->layers[i] = h->layers;
    }
    free(b->at);
}

/* Cuts off what is more than a page. Returns the next cursor, 0: that was all. */
static uint64_t best_page(struct best *b)
{
    best_cut(b);
    return b->cut ? b->worst.id : 0;
}

/* The page of what was found that comes behind the cursor. */
static void page_found(const struct aoi_space *space, const struct aoi__found *f, uint64_t cursor, size_t limit, struct aoi_rows *rows)
{
    struct best b;
    best_init(&b, limit, aoi__found_n(f));
    b.cursor = cursor;
    aoi__found_each(space, f, offer_id, &b);
    rows->next = best_page(&b);
    best_rows(&b, space, rows);
}

/* ------------------------------------------------------------------------------------------------------------- of the truth of now */

/* The layers of the rows: of entities that have the same, those of all. */
static void fill_layers(const struct aoi_space *space, const struct aoi__sieve *sieve, const uint64_t *inside, struct aoi_rows *rows)
{
    uint32_t *layers = rows->layers, first = sieve->n > 0 ? sieve->pool[sieve->page[0]].any : 0, mixed = 0;
    for (uint32_t i = 0; i < sieve->n; i++) mixed |= (sieve->pool[sieve->page[i]].any ^ first) | (sieve->pool[sieve->page[i]].all ^ first);
    if (mixed == 0) {
        _Static_assert(sizeof(wchar_t) == sizeof *layers, "");
        wmemset((wchar_t *)layers, (wchar_t)first, rows->n);
        return;
    }
    for (uint32_t i = 0; i < sieve->n; i++) {
        const uint32_t *slots = aoi__page_slots(&sieve->pool[sieve->page[i]], space->dims);
        for (uint64_t m = inside[i]; m != 0; m &= m - 1) *layers++ = space->hot[slots[__builtin_ctzll(m)]].layers;
    }
}

#define FEW_PAGES 64 /* of these there is room for all that might be found; of more, what is found is counted first */

/* All of what was found, straight from the columns of pages. False: it is more than the limit. First masks of all pages, then rows: at once they take half as long again, for what is
 * stored waits for what is compared. */
static bool box_rows(const struct aoi_space *space, const struct aoi__found *f, size_t limit, struct aoi_rows *rows)
{
    const struct aoi__sieve *sieve = &f->sieve;
    size_t most = sieve->n <= FEW_PAGES ? (size_t)sieve->n * AOI__PAGE : aoi__found_n(f);
    if (sieve->n > FEW_PAGES && most > limit) return false;
    aoi__rows_reserve(rows, most + 2 * AOI__LANES);
    rows->n = 0;
    rows->next = 0;
    space->kernels->rows(sieve, f->inside, rows);
    fill_layers(space, sieve, f->inside, rows);
    return rows->n <= limit;
}

int aoi_query_box(struct aoi_space *space, const float min[3], const float max[3], uint32_t layers, uint64_t cursor, size_t limit,
                  struct aoi_rows *rows)
{
    float lo[3], hi[3];
    struct aoi__found f;
    if (aoi__check_box(space, min, max, lo, hi) != AOI_OK) return AOI_EINVAL;
    aoi__find_box(space, lo, hi, layers, &f);
    if (cursor > 0 || f.sieve.n == 0 || f.slots->n > 0 || !box_rows(space, &f, limit, rows)) page_found(space, &f, cursor, limit, rows);
    return AOI_OK;
}

int aoi_query_radius(struct aoi_space *space, const float center[3], float radius, uint32_t layers, uint64_t cursor, size_t limit,
                     struct aoi_rows *rows)
{
    float c[3], same[3];
    if (aoi__check_box(space, center, center, c, same) != AOI_OK || !isfinite(radius) || aoi__clean(radius) < 0) return AOI_EINVAL;
    struct aoi__found f;
    aoi__find_sphere(space, c, aoi__clean(radius), layers, &f);
    page_found(space, &f, cursor, limit, rows);
    return AOI_OK;
}

#define FARTHEST 0x1p26 /* more than the diagonal of all that can be */

int aoi_query_nearest(struct aoi_space *space, const float center[3], float max_distance, uint32_t layers, size_t k, struct aoi_rows *rows)
{
    float c[3], same[3];
    if (aoi__check_box(space, center, center, c, same) != AOI_OK || !isfinite(max_distance) || aoi__clean(max_distance) < 0 || k == 0)
        return AOI_EINVAL;
    double most = max_distance > 0 ? (double)max_distance : INFINITY, radius = space->set.cell_size;
    struct aoi__found f = {0};
    size_t n;
    for (;; radius *= 2) { /* a sphere that holds k holds the nearest k */
        bool last = f.everything || radius >= most || radius > FARTHEST + fabs((double)c[0]) + fabs((double)c[1]) + fabs((double)c[2]);
        aoi__find_sphere(space, c, last ? most : radius, layers, &f);
        n = aoi__found_n(&f);
        if (last || n >= k) break;
    }
    struct best b;
    best_init(&b, k, n);
    b.center = c;
    b.dims = space->dims;
    aoi__found_each(space, &f, offer_near, &b);
    best_cut(&b);
    aoi__rank_sort(b.at, b.n);
    rows->next = 0;
    best_rows(&b, space, rows);
    return AOI_OK;
}

int aoi_query_count(struct aoi_space *space, const float min[3], const float max[3], uint32_t layers, uint64_t *entities, uint64_t *players)
{
    float lo[3], hi[3];
    if (aoi__check_box(space, min, max, lo, hi) != AOI_OK) return AOI_EINVAL;
    struct aoi__found f;
    aoi__find_box(space, lo, hi, layers, &f);
    *entities = aoi__found_n(&f);
    *players = 0;
    for (uint32_t i = 0; i < space->players.n; i++) {
        const struct aoi__player *p = &space->players.at[i];
        bool any = false;
        for (uint32_t u = 0; p->id != 0 && u <= p->units.n && !any; u++) {
            uint32_t watch = u < p->units.n ? p->units.at[u].watch : p->viewport;
            struct aoi__sight sight;
            if (watch == AOI__NONE) continue;
            aoi__sight_init(&sight, space, &space->watches.at[watch], 0);
            any = aoi__sight_touches(&sight, lo, hi);
        }
        *players += any;
    }
    return AOI_OK;
}

struct raster {
    const float *lo, *hi;
    uint32_t columns, rows, *counts;
};

/* Number of the raster's field on one axis. */
static uint32_t field_of(float v, float lo, float hi, uint32_t fields)
{
    if (hi <= lo) return 0;
    double f = ((double)v - (double)lo) / ((double)hi - (double)lo) * fields;
    return f >= fields ? fields - 1 : (uint32_t)f;
}

static void count_field(void *ctx, const float pos[3], uint64_t id, uint32_t slot)
{
    const struct raster *r = ctx;
    (void)id;
    (void)slot;
    r->counts[(size_t)field_of(pos[1], r->lo[1], r->hi[1], r->rows) * r->columns + field_of(pos[0], r->lo[0], r->hi[0], r->columns)]++;
}

int aoi_query_density(struct aoi_space *space, const float min[3], const float max[3], uint32_t layers, uint32_t columns, uint32_t rows,
                      uint32_t *counts)
{
    float lo[3], hi[3];
    bool bad = columns < 1 || columns > AOI_RASTER_MAX || rows < 1 || rows > AOI_RASTER_MAX;
    if (bad || aoi__check_box(space, min, max, lo, hi) != AOI_OK) return AOI_EINVAL;
    struct aoi__found f;
    struct raster raster = {lo, hi, columns, rows, counts};
    aoi__find_box(space, lo, hi, layers, &f);
    memset(counts, 0, (size_t)columns * rows * sizeof *counts);
    aoi__found_each(space, &f, count_field, &raster);
    return AOI_OK;
}

/* ------------------------------------------------------------------------------------------------------------- of what was told */

int aoi_query_observers(struct aoi_space *space, uint64_t id, uint64_t cursor, size_t limit, struct aoi_rows *rows)
{
    if (id == 0) return AOI_EINVAL;
    uint32_t slot = aoi__entity_slot(space, id);
    if (slot == AOI__NONE) return AOI_ENOENTITY;
    uint32_t told = space->cold[slot].told;
    aoi__slots view = {0};
    struct best b;
    best_init(&b, limit, told);
    b.cursor = cursor;
    for (uint32_t i = 0; i < space->players.n && told > 0; i++) {
        const struct aoi__player *p = &space->players.at[i];
        view.n = 0;
        if (p->id != 0) aoi__view_slots(space, p, &view);
        for (uint32_t k = 0; k < view.n; k++) {
            if (view.at[k] != slot) continue;
            offer_id(&b, NULL, p->id, i);
            told--;
            break;
        }
    }
    rows->next = best_page(&b);
    aoi__rows_reserve(rows, b.n);
    rows->n = b.n;
    for (size_t i = 0; i < b.n; i++) rows->id[i] = b.at[i].id;
    free(b.at);
    array_clear(&view);
    return AOI_OK;
}

int aoi_query_view(struct aoi_space *space, uint64_t player, uint64_t cursor, size_t limit, struct aoi_rows *rows, uint64_t *seq)
{
    if (player == 0) return AOI_EINVAL;
    uint32_t i = aoi__player_slot(space, player);
    if (i == AOI__NONE) return AOI_ENOPLAYER;
    const struct aoi__player *p = &space->players.at[i];
    aoi__slots told = {0};
    aoi__view_slots(space, p, &told);
    struct aoi__found f = {.slots = &told};
    page_found(space, &f, cursor, limit, rows);
    array_clear(&told);
    *seq = p->seq;
    return AOI_OK;
}
