/* large.c: entities with appeal, seen from further away than others: levels of coarse cells by size.
 *
 * If they stood in the index, everybody's search box would have to grow by the largest appeal there is. Here a level holds those of an appeal up to its bound,
 * in cells of twice that, and a watch looks at the few cells around its box that its bound reaches. Levels are a factor of 4 apart; an empty one costs nothing.
 */
#include <math.h>
#include <stdlib.h>

#include "core/blocks.h"
#include "core/space.h"

#define LEVELS 17 /* bounds 4^-3, 4^-2 ... 4^12, and the last for what can be seen from everywhere */

struct level {
    double bound, scale;
    uint32_t n;
    struct aoi__blocks dir;
};

struct home {
    struct aoi__home at; /* in its level's pages */
    uint32_t listed;     /* in all */
};

/* So few are candidates for everybody: the exact rule is cheaper than finding out where they are. */
#define FEW_LARGE 32

struct aoi__large {
    struct level level[LEVELS];
    aoi__scan_fn scan;
    ARRAY(struct home) home; /* by slot */
    aoi__slots all;
    aoi__slots near; /* scratch: the blocks of a box */
};

static struct level *level_of(struct aoi__large *large, float appeal)
{
    uint32_t k = 0;
    while (k < LEVELS - 1 && (double)appeal > large->level[k].bound) k++;
    return &large->level[k];
}

static int32_t cell_of(const struct level *level, float v)
{
    double c = floor((double)v * level->scale);
    return c < -0x1p30 ? -0x40000000 : c > 0x1p30 ? 0x40000000 : (int32_t)c;
}

static void cell_at(const struct level *level, const float pos[3], int32_t cell[3])
{
    for (uint32_t a = 0; a < 3; a++) cell[a] = a < level->dir.dims ? cell_of(level, pos[a]) : 0;
}

static struct aoi__large *large_get(struct aoi_space *space)
{
    if (space->large != NULL) return space->large;
    struct aoi__large *large = mem_zalloc(sizeof *large);
    for (int k = 0; k < LEVELS; k++) {
        struct level *level = &large->level[k];
        level->bound = k < LEVELS - 1 ? ldexp(1, 2 * k - 6) : INFINITY;
        level->scale = 0.5 / ldexp(1, 2 * k - 6);
        level->dir.dims = space->dims;
        level->dir.window = 1;
        level->dir.pool = &space->pool;
        level->dir.shift = space->dims == 2 ? 3 : 2;
    }
    large->scan = aoi__scan_pick(space->dims);
    return space->large = large;
}

void aoi__large_insert(struct aoi_space *space, uint32_t slot)
{
    struct aoi__large *large = large_get(space);
    struct level *level = level_of(large, aoi__rare(space, slot)->appeal);
    int32_t cell[3];
    cell_at(level, space->hot[slot].pos, cell);
    uint32_t block = aoi__block_get(&level->dir, cell);
    bool fresh;
    array_reserve(&large->home, (size_t)slot + 1);
    while (large->home.n <= slot) large->home.at[large->home.n++].listed = AOI__NONE;
    large->home.at[slot] = (struct home){.at = aoi__page_put(&level->dir, block, cell, slot, &space->hot[slot], &fresh), .listed = large->all.n};
    *array_add(&large->all) = slot;
    space->large_serial = space->serial + 1;
    level->n++;
}

void aoi__large_erase(struct aoi_space *space, uint32_t slot)
{
    struct aoi__large *large = space->large;
    struct level *level = level_of(large, aoi__rare(space, slot)->appeal);
    struct home home = large->home.at[slot];
    uint32_t block = level->dir.page.at[home.at.page].block;
    aoi__page_take(&level->dir, home.at);
    aoi__block_drop(&level->dir, block);
    array_swap_remove(&large->all, home.listed);
    if (home.listed < large->all.n) large->home.at[large->all.at[home.listed]].listed = home.listed;
    space->large_serial = space->serial + 1;
    level->n--;
}

void aoi__large_move(struct aoi_space *space, uint32_t slot)
{
    struct aoi__large *large = space->large;
    struct level *level = level_of(large, aoi__rare(space, slot)->appeal);
    struct home home = large->home.at[slot];
    int32_t cell[3];
    cell_at(level, space->hot[slot].pos, cell);
    const struct aoi__page *page = &level->dir.page.at[home.at.page];
    if (aoi__block_find(&level->dir, cell) == page->block && aoi__cell_bit(&level->dir, cell) == page->bit) {
        aoi__page_write(&level->dir, page, home.at.place, space->hot[slot].pos, space->hot[slot].extra);
        return;
    }
    aoi__large_erase(space, slot);
    aoi__large_insert(space, slot);
}

uint32_t aoi__large_at(const struct aoi_space *space, uint32_t i)
{
    return space->large->all.at[i];
}

uint32_t aoi__large_place(const struct aoi_space *space, uint32_t slot)
{
    const struct aoi__large *large = space->large;
    if (large == NULL || slot >= large->home.n) return AOI__NONE;
    uint32_t at = large->home.at[slot].listed;
    return at < large->all.n && large->all.at[at] == slot ? at : AOI__NONE;
}

static void scan_level(struct aoi__large *large, const struct level *level, const float lo[3], const float hi[3], aoi__slots *out)
{
    int32_t first[3], last[3];
    cell_at(level, lo, first);
    cell_at(level, hi, last);
    large->near.n = 0;
    aoi__blocks_in(&level->dir, first, last, &large->near);
    for (uint32_t i = 0; i < large->near.n; i++) {
        const struct aoi__block *block = &level->dir.block.at[large->near.at[i]];
        for (uint64_t m = aoi__cell_mask(&level->dir, block, first, last) & block->full; m != 0; m &= m - 1) {
            for (uint32_t p = aoi__page_first(block, (uint32_t)__builtin_ctzll(m)); p != AOI__NONE; p = level->dir.page.at[p].next) {
                const struct aoi__page *page = &level->dir.page.at[p];
                array_reserve(out, (size_t)out->n + page->n + AOI__LANES);
                out->n += large->scan(page->x, aoi__page_slots(page, level->dir.dims), page->cap, page->n, lo, hi, out->at + out->n);
            }
        }
    }
}

void aoi__large_gather(struct aoi_space *space, const float lo[3], const float hi[3], aoi__slots *out)
{
    if (space->large_n <= FEW_LARGE) {
        for (uint32_t i = 0; i < space->large_n; i++) *array_add(out) = space->large->all.at[i];
        return;
    }
    for (uint32_t k = 0; space->large != NULL && k < LEVELS; k++) {
        const struct level *level = &space->large->level[k];
        float low[3] = {0}, high[3] = {0};
        if (level->n == 0) continue;
        for (uint32_t a = 0; a < space->dims; a++) /* the sums of the rule are rounded to floats: that much slack */
            aoi__widen(lo[a] - level->bound, hi[a] + level->bound, (fabs((double)lo[a]) + fabs((double)hi[a]) + level->bound) * 0x1p-22, &low[a],
                       &high[a]);
        scan_level(space->large, level, low, high, out);
    }
}

void aoi__large_scan(struct aoi_space *space, const float lo[3], const float hi[3], aoi__slots *out)
{
    for (uint32_t k = 0; space->large != NULL && k < LEVELS; k++)
        if (space->large->level[k].n > 0) scan_level(space->large, &space->large->level[k], lo, hi, out);
}

void aoi__large_free(struct aoi_space *space)
{
    if (space->large == NULL) return;
    for (uint32_t k = 0; k < LEVELS; k++) aoi__blocks_clear(&space->large->level[k].dir);
    array_clear(&space->large->home);
    array_clear(&space->large->all);
    array_clear(&space->large->near);
    free(space->large);
    space->large = NULL;
}

uint64_t aoi__large_bytes(const struct aoi_space *space)
{
    if (space->large == NULL) return 0;
    uint64_t bytes = sizeof *space->large + (uint64_t)space->large->home.cap * sizeof(struct home);
    for (uint32_t k = 0; k < LEVELS; k++) bytes += aoi__blocks_bytes(&space->large->level[k].dir);
    return bytes;
}

static uint32_t validate_page(const struct aoi_space *space, const struct level *level, uint32_t p)
{
    const struct aoi__page *page = &level->dir.page.at[p];
    for (uint64_t m = page->used; m != 0; m &= m - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(m), slot = aoi__page_slots(page, space->dims)[i];
        const struct home *home = &space->large->home.at[slot];
        CHECK(aoi__alive(space, slot) && (space->cold[slot].flags & AOI__LARGE) && level_of(space->large, aoi__rare(space, slot)->appeal) == level);
        CHECK(space->large->all.at[home->listed] == slot && home->at.page == p && home->at.place == i);
        for (uint32_t a = 0; a < space->dims; a++) CHECK(page->x[(size_t)a * page->cap + i] == space->hot[slot].pos[a]);
    }
    return (uint32_t)__builtin_popcountll(page->used);
}

uint32_t aoi__large_validate(const struct aoi_space *space)
{
    uint32_t entities = 0;
    for (uint32_t k = 0; space->large != NULL && k < LEVELS; k++) {
        const struct level *level = &space->large->level[k];
        uint32_t n = 0;
        aoi__blocks_validate(&level->dir);
        for (uint32_t b = 0; b < level->dir.block.n; b++) {
            for (uint64_t m = level->dir.block.at[b].have; m != 0; m &= m - 1) {
                uint32_t bit = (uint32_t)__builtin_ctzll(m);
                for (uint32_t p = aoi__page_first(&level->dir.block.at[b], bit); p != AOI__NONE; p = level->dir.page.at[p].next)
                    n += validate_page(space, level, p);
            }
        }
        CHECK(n == level->n);
        entities += n;
    }
    return entities;
}
