/* query.c: answers about the truth of now, and about what was told; pages ascend by id. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "core/cover.h"
#include "core/kernel.h"
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

void aoi__scan(struct aoi_space *space, const float lo[3], const float hi[3], uint32_t layers, aoi__slots *out)
{
    aoi__sync(space);
    space->ops->scan(space, lo, hi, layers, out);
    aoi__large_scan(space, lo, hi, out);
    if (layers == 0) return;
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->n; i++) {
        out->at[n] = out->at[i];
        n += (space->hot[out->at[i]].layers & layers) != 0;
    }
    out->n = n;
}

/* The slots as rows, in their order. */
static void fill(const struct aoi_space *space, const aoi__slots *slots, struct aoi_rows *rows)
{
    aoi__rows_reserve(rows, slots->n);
    rows->n = slots->n;
    rows->next = 0;
    for (uint32_t i = 0; i < slots->n; i++) {
        const struct aoi__hot *h = &space->hot[slots->at[i]];
        aoi__row_set(rows, i, h, false);
        rows->layers[i] = h->layers;
    }
}

/* Reorders so that the n smallest ids stand first. */
static void select_ids(uint64_t *id, uint32_t *slot, uint32_t count, uint32_t n)
{
    struct aoi__ranked *r = mem_alloc(count * sizeof *r);
    for (uint32_t i = 0; i < count; i++) r[i] = (struct aoi__ranked){.id = id[i], .entry = slot[i]};
    aoi__rank_select(r, count, n);
    for (uint32_t i = 0; i < n; i++) {
        id[i] = r[i].id;
        slot[i] = r[i].entry;
    }
    free(r);
}

/* Leaves, of the ids and what goes with them, those above the cursor, and of these the `limit` smallest. Returns the next cursor; *n is reduced. */
static uint64_t page(uint64_t *id, uint32_t *slot, uint32_t *n, uint64_t cursor, size_t limit)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < *n; i++) {
        uint64_t this = id[i];
        id[left] = this;
        slot[left] = slot[i];
        left += this > cursor;
    }
    *n = left;
    if (left <= limit) return 0;
    *n = (uint32_t)limit;
    select_ids(id, slot, left, *n);
    uint64_t last = 0;
    for (uint32_t i = 0; i < *n; i++)
        if (id[i] > last) last = id[i];
    return last;
}

/* A page of the slots as rows. The list is reordered. */
static void page_slots(const struct aoi_space *space, aoi__slots *slots, uint64_t cursor, size_t limit, struct aoi_rows *rows)
{
    uint64_t *id = mem_alloc(((size_t)slots->n + 1) * sizeof *id);
    for (uint32_t i = 0; i < slots->n; i++) id[i] = space->hot[slots->at[i]].id;
    uint64_t next = page(id, slots->at, &slots->n, cursor, limit);
    free(id);
    fill(space, slots, rows);
    rows->next = next;
}

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

/* They are read when it is known who is inside, and by then are at hand. */
static void fetch_ids(const struct aoi__page *page, uint32_t dims)
{
    const char *low = (const char *)aoi__page_low(page, dims);
    for (uint32_t k = 0; k < page->n * sizeof(uint32_t); k += MEM_LINE) __builtin_prefetch(low + k);
}

#define FEW_PAGES 64 /* of these there is room for all that might be found; of more, what is found is counted first */

static size_t count(const uint64_t *masks, uint32_t n)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (uint32_t)__builtin_popcountll(masks[i]);
    return sum;
}

/* All that lies in the box, straight from the columns of the index's pages. False: there are none such, or more than the limit. First masks of all pages, then rows: at once they
 * take half as long again, for what is stored waits for what is compared. */
static bool box_rows(struct aoi_space *space, const float lo[3], const float hi[3], uint32_t layers, size_t limit, struct aoi_rows *rows)
{
    if (space->ops->pages_in == NULL || space->large_n > 0) return false;
    struct aoi__scratch *s = space->scratch;
    aoi__sync(space);
    s->found.n = 0;
    space->ops->pages_in(space, lo, hi, &s->found);
    struct aoi__sieve sieve = {.pool = space->ops->pages(space)->page.at, .page = s->found.at, .n = s->found.n};
    sieve.dims = space->dims;
    sieve.extra = space->set.extra;
    aoi__sieve_box(&sieve, lo, hi);
    aoi__reserve_masks(s, sieve.n);
    uint64_t *inside = s->sifted.inside;
    for (uint32_t i = 0; i < sieve.n; i++) fetch_ids(&sieve.pool[sieve.page[i]], sieve.dims);
    space->kernels->box(&sieve, inside);
    for (uint32_t i = 0; layers != 0 && i < sieve.n; i++) inside[i] = aoi__with_layers(space, &sieve.pool[sieve.page[i]], layers, inside[i]);
    size_t most = sieve.n <= FEW_PAGES ? (size_t)sieve.n * AOI__PAGE : count(inside, sieve.n);
    if (sieve.n > FEW_PAGES && most > limit) return false;
    aoi__rows_reserve(rows, most + 2 * AOI__LANES);
    rows->n = 0;
    rows->next = 0;
    space->kernels->rows(&sieve, inside, rows);
    fill_layers(space, &sieve, inside, rows);
    return rows->n <= limit;
}

int aoi_query_box(struct aoi_space *space, const float min[3], const float max[3], uint32_t layers, uint64_t cursor, size_t limit,
                  struct aoi_rows *rows)
{
    float lo[3], hi[3];
    if (aoi__check_box(space, min, max, lo, hi) != AOI_OK) return AOI_EINVAL;
    if (cursor == 0 && box_rows(space, lo, hi, layers, limit, rows)) return AOI_OK;
    aoi__slots found = {0};
    aoi__scan(space, lo, hi, layers, &found);
    page_slots(space, &found, cursor, limit, rows);
    array_clear(&found);
    return AOI_OK;
}

/* Appends what lies at most so far from a point. */
static void scan_sphere(struct aoi_space *space, const float center[3], double radius, uint32_t layers, aoi__slots *out)
{
    float lo[3], hi[3];
    aoi__sphere_box(center, radius, space->dims, lo, hi);
    aoi__scan(space, lo, hi, layers, out);
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->n; i++) {
        uint32_t slot = out->at[i];
        out->at[n] = slot;
        n += aoi__in_sphere(space->hot[slot].pos, center, radius, space->dims);
    }
    out->n = n;
}

int aoi_query_radius(struct aoi_space *space, const float center[3], float radius, uint32_t layers, uint64_t cursor, size_t limit,
                     struct aoi_rows *rows)
{
    float c[3], same[3];
    if (aoi__check_box(space, center, center, c, same) != AOI_OK || !isfinite(radius) || aoi__clean(radius) < 0) return AOI_EINVAL;
    aoi__slots found = {0};
    scan_sphere(space, c, aoi__clean(radius), layers, &found);
    page_slots(space, &found, cursor, limit, rows);
    array_clear(&found);
    return AOI_OK;
}

/* Sorts the slots by distance, then id, and cuts them off after k. */
static void nearest_first(const struct aoi_space *space, const float center[3], aoi__slots *slots, size_t k)
{
    struct aoi__ranked *r = mem_alloc(((size_t)slots->n + 1) * sizeof *r);
    for (uint32_t i = 0; i < slots->n; i++) {
        uint32_t slot = slots->at[i];
        r[i] = (struct aoi__ranked){.distance2 = aoi__distance2(space->hot[slot].pos, center, space->dims), .id = space->hot[slot].id, .entry = slot};
    }
    if (slots->n > k) {
        aoi__rank_select(r, slots->n, k);
        slots->n = (uint32_t)k;
    }
    aoi__rank_sort(r, slots->n);
    for (uint32_t i = 0; i < slots->n; i++) slots->at[i] = r[i].entry;
    free(r);
}

#define FARTHEST 0x1p26 /* more than the diagonal of all that can be */

int aoi_query_nearest(struct aoi_space *space, const float center[3], float max_distance, uint32_t layers, size_t k, struct aoi_rows *rows)
{
    float c[3], same[3];
    if (aoi__check_box(space, center, center, c, same) != AOI_OK || !isfinite(max_distance) || aoi__clean(max_distance) < 0 || k == 0)
        return AOI_EINVAL;
    double most = max_distance > 0 ? (double)max_distance : INFINITY, radius = space->set.cell_size;
    aoi__slots found = {0};
    for (;; radius *= 2) { /* a sphere that holds k holds the nearest k */
        bool last = radius >= most || radius > FARTHEST + fabs((double)c[0]) + fabs((double)c[1]) + fabs((double)c[2]);
        found.n = 0;
        scan_sphere(space, c, last ? most : radius, layers, &found);
        if (last || found.n >= k) break;
    }
    nearest_first(space, c, &found, k);
    fill(space, &found, rows);
    array_clear(&found);
    return AOI_OK;
}

int aoi_query_count(struct aoi_space *space, const float min[3], const float max[3], uint32_t layers, uint64_t *entities, uint64_t *players)
{
    float lo[3], hi[3];
    if (aoi__check_box(space, min, max, lo, hi) != AOI_OK) return AOI_EINVAL;
    aoi__slots found = {0};
    aoi__scan(space, lo, hi, layers, &found);
    *entities = found.n;
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
    array_clear(&found);
    return AOI_OK;
}

/* Number of the raster's field on one axis. */
static uint32_t field_of(float v, float lo, float hi, uint32_t fields)
{
    if (hi <= lo) return 0;
    double f = ((double)v - (double)lo) / ((double)hi - (double)lo) * fields;
    return f >= fields ? fields - 1 : (uint32_t)f;
}

int aoi_query_density(struct aoi_space *space, const float min[3], const float max[3], uint32_t layers, uint32_t columns, uint32_t rows,
                      uint32_t *counts)
{
    float lo[3], hi[3];
    bool bad = columns < 1 || columns > AOI_RASTER_MAX || rows < 1 || rows > AOI_RASTER_MAX;
    if (bad || aoi__check_box(space, min, max, lo, hi) != AOI_OK) return AOI_EINVAL;
    aoi__slots found = {0};
    aoi__scan(space, lo, hi, layers, &found);
    memset(counts, 0, (size_t)columns * rows * sizeof *counts);
    for (uint32_t i = 0; i < found.n; i++) {
        const float *pos = space->hot[found.at[i]].pos;
        counts[(size_t)field_of(pos[1], lo[1], hi[1], rows) * columns + field_of(pos[0], lo[0], hi[0], columns)]++;
    }
    array_clear(&found);
    return AOI_OK;
}

int aoi_query_observers(struct aoi_space *space, uint64_t id, uint64_t cursor, size_t limit, struct aoi_rows *rows)
{
    if (id == 0) return AOI_EINVAL;
    uint32_t slot = aoi__entity_slot(space, id);
    if (slot == AOI__NONE) return AOI_ENOENTITY;
    aoi__slots found = {0}, view = {0};
    ARRAY(uint64_t) ids = {0};
    for (uint32_t i = 0; i < space->players.n && found.n < space->cold[slot].told; i++) {
        const struct aoi__player *p = &space->players.at[i];
        view.n = 0;
        if (p->id != 0) aoi__view_slots(space, p, &view);
        for (uint32_t k = 0; k < view.n; k++) {
            if (view.at[k] != slot) continue;
            *array_add(&found) = i;
            *array_add(&ids) = p->id;
            break;
        }
    }
    rows->next = page(ids.at, found.at, &found.n, cursor, limit);
    aoi__rows_reserve(rows, found.n);
    rows->n = found.n;
    for (uint32_t i = 0; i < found.n; i++) rows->id[i] = space->players.at[found.at[i]].id;
    array_clear(&found);
    array_clear(&view);
    array_clear(&ids);
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
    page_slots(space, &told, cursor, limit, rows);
    array_clear(&told);
    *seq = p->seq;
    return AOI_OK;
}
