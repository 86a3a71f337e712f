/* query.c: answers about the truth of now, and about what was told; pages ascend by id. */
#include <math.h>
#include <stdlib.h>

#include "core/space.h"

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

/* Reorders the slots so that the n with the smallest ids stand first (Hoare's quickselect; pivots from the middle of three). */
static void select_smallest(const struct aoi_space *space, uint32_t *slot, uint32_t count, uint32_t n)
{
    uint32_t low = 0, high = count; /* the border is somewhere in [low, high) */
    uint64_t spread = 0x9E3779B97F4A7C15u;
    while (high - low > 1) {
        spread = spread * 6364136223846793005u + 1442695040888963407u;
        uint64_t pivot = space->hot[slot[low + (uint32_t)(spread >> 33) % (high - low)]].id;
        uint32_t i = low, j = high - 1;
        for (;;) {
            while (space->hot[slot[i]].id < pivot) i++;
            while (space->hot[slot[j]].id > pivot) j--;
            if (i >= j) break;
            uint32_t swap = slot[i];
            slot[i++] = slot[j];
            slot[j--] = swap;
        }
        uint32_t border = space->hot[slot[i]].id < pivot ? i + 1 : i;
        if (border == low) border = low + 1; /* the pivot is the smallest and stands first */
        if (n < border)
            high = border;
        else
            low = border;
    }
}

/* Makes the page: the `limit` smallest ids above the cursor of those slots that pass the layers. The list is reordered. */
static void page(const struct aoi_space *space, aoi__slots *slots, uint32_t layers, uint64_t cursor, size_t limit, struct aoi_rows *rows)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < slots->n; i++) {
        const struct aoi__hot *h = &space->hot[slots->at[i]];
        slots->at[n] = slots->at[i];
        n += h->id > cursor && (layers == 0 || (h->layers & layers) != 0);
    }
    rows->next = 0;
    bool more = n > limit;
    if (more) {
        select_smallest(space, slots->at, n, (uint32_t)limit);
        n = (uint32_t)limit;
    }
    aoi__rows_reserve(rows, n);
    rows->n = n;
    for (uint32_t i = 0; i < n; i++) {
        const struct aoi__hot *h = &space->hot[slots->at[i]];
        rows->id[i] = h->id;
        rows->x[i] = h->pos[0];
        rows->y[i] = h->pos[1];
        rows->z[i] = h->pos[2];
        rows->extra[i] = h->extra;
        rows->layers[i] = h->layers;
        if (more && h->id > rows->next) rows->next = h->id;
    }
}

int aoi_query_box(struct aoi_space *space, const float min[3], const float max[3], uint32_t layers, uint64_t cursor, size_t limit,
                  struct aoi_rows *rows)
{
    float lo[3], hi[3];
    if (aoi__check_box(space, min, max, lo, hi) != AOI_OK) return AOI_EINVAL;
    aoi__slots found = {0};
    space->ops->scan(space, lo, hi, &found);
    page(space, &found, layers, cursor, limit, rows);
    array_clear(&found);
    return AOI_OK;
}

int aoi_query_radius(struct aoi_space *space, const float center[3], float radius, uint32_t layers, uint64_t cursor, size_t limit,
                     struct aoi_rows *rows)
{
    float c[3], same[3], lo[3], hi[3];
    if (aoi__check_box(space, center, center, c, same) != AOI_OK || !isfinite(radius) || radius < 0) return AOI_EINVAL;
    radius = aoi__clean(radius);
    aoi__slots found = {0};
    aoi__sphere_box(c, radius, space->dims, lo, hi);
    space->ops->scan(space, lo, hi, &found);
    uint32_t n = 0;
    for (uint32_t i = 0; i < found.n; i++) {
        uint32_t slot = found.at[i];
        found.at[n] = slot;
        n += aoi__in_sphere(space->hot[slot].pos, c, radius, space->dims);
    }
    found.n = n;
    page(space, &found, layers, cursor, limit, rows);
    array_clear(&found);
    return AOI_OK;
}

/* Whether a watch's area touches the box; for a sphere, whether the box's nearest point lies in it. */
static bool touches(const struct aoi_space *space, const struct aoi__watch *w, const float lo[3], const float hi[3])
{
    if (!w->active) return false;
    for (uint32_t a = 0; a < space->dims; a++)
        if (w->lo[a] > hi[a] || w->hi[a] < lo[a]) return false;
    if (space->set.shape != AOI_SHAPE_SPHERE || w->slot == AOI__NONE) return true;
    const float *center = space->hot[w->slot].pos;
    float nearest[3] = {0};
    for (uint32_t a = 0; a < space->dims; a++) nearest[a] = fminf(fmaxf(center[a], lo[a]), hi[a]);
    return aoi__in_sphere(nearest, center, space->cold[w->slot].radius, space->dims);
}

int aoi_query_count(struct aoi_space *space, const float min[3], const float max[3], uint32_t layers, uint64_t *entities, uint64_t *players)
{
    float lo[3], hi[3];
    if (aoi__check_box(space, min, max, lo, hi) != AOI_OK) return AOI_EINVAL;
    aoi__slots found = {0};
    space->ops->scan(space, lo, hi, &found);
    *entities = 0;
    for (uint32_t i = 0; i < found.n; i++) *entities += layers == 0 || (space->hot[found.at[i]].layers & layers) != 0;
    array_clear(&found);

    *players = 0;
    for (uint32_t i = 0; i < space->players.n; i++) {
        const struct aoi__player *p = &space->players.at[i];
        if (p->id == 0) continue;
        bool any = p->viewport != AOI__NONE && touches(space, &space->watches.at[p->viewport], lo, hi);
        for (uint32_t u = 0; u < p->units.n && !any; u++) any = touches(space, &space->watches.at[p->units.at[u].watch], lo, hi);
        *players += any;
    }
    return AOI_OK;
}

int aoi_query_view(struct aoi_space *space, uint64_t player, uint64_t cursor, size_t limit, struct aoi_rows *rows, uint64_t *seq)
{
    if (player == 0) return AOI_EINVAL;
    uint32_t i = idmap_get(&space->player_map, player);
    if (i == IDMAP_NONE) return AOI_ENOPLAYER;
    const struct aoi__player *p = &space->players.at[i];
    aoi__slots told = {0};
    array_reserve(&told, p->told.n);
    for (told.n = 0; told.n < p->told.n; told.n++) told.at[told.n] = p->told.at[told.n] & ~AOI__OWED;
    page(space, &told, 0, cursor, limit, rows);
    array_clear(&told);
    *seq = p->seq;
    return AOI_OK;
}
