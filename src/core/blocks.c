/* blocks.c: the sparse directory of the grid's cells. */
#include "core/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "core/space.h"

#define REGION_SHIFT 4  /* block to region coordinates */
#define FEW_BLOCKS 1024 /* a box of so many is looked up block by block; a larger one goes by regions of 256 (2D) or 4,096 (3D) blocks */

/* ------------------------------------------------------------------------------------------------------------- finding by coordinates */

static uint64_t key_of(const int32_t at[3])
{
    uint64_t xy = (uint64_t)(uint32_t)at[0] << 32 | (uint32_t)at[1];
    return (xy ^ (uint64_t)(uint32_t)at[2] * 0x9E3779B97F4A7C15u) | (uint64_t)1 << 63; /* never 0; equal keys are told apart by at[] */
}

/* Blocks and regions begin with their place, and are found alike: items[] of `size` bytes each. */
static struct aoi__place *place_at(const void *items, size_t size, uint32_t i)
{
    return (struct aoi__place *)(void *)((char *)(uintptr_t)items + i * size);
}

static uint32_t place_find(const struct idmap *map, const void *items, size_t size, const int32_t at[3])
{
    uint32_t i = idmap_get(map, key_of(at));
    while (i != AOI__NONE && memcmp(place_at(items, size, i)->at, at, sizeof(int32_t[3])) != 0) i = place_at(items, size, i)->next;
    return i;
}

static void place_link(struct idmap *map, void *items, size_t size, uint32_t i)
{
    struct aoi__place *place = place_at(items, size, i);
    place->next = idmap_get(map, key_of(place->at));
    idmap_put(map, key_of(place->at), i);
}

static void place_unlink(struct idmap *map, void *items, size_t size, uint32_t i)
{
    const struct aoi__place *place = place_at(items, size, i);
    uint32_t k = idmap_get(map, key_of(place->at));
    if (k != i) {
        while (place_at(items, size, k)->next != i) k = place_at(items, size, k)->next;
        place_at(items, size, k)->next = place->next;
    } else if (place->next != AOI__NONE) {
        idmap_put(map, key_of(place->at), place->next);
    } else {
        idmap_remove(map, key_of(place->at));
    }
}

static void shifted(const int32_t from[3], uint32_t shift, int32_t to[3])
{
    for (uint32_t a = 0; a < 3; a++) to[a] = from[a] >> shift;
}

/* ------------------------------------------------------------------------------------------------------------- regions */

static uint32_t region_find(const struct aoi__blocks *dir, const int32_t at[3])
{
    return place_find(&dir->region_map, dir->region.at, sizeof *dir->region.at, at);
}

static void region_enlist(struct aoi__blocks *dir, uint32_t b)
{
    int32_t at[3];
    shifted(dir->block.at[b].place.at, REGION_SHIFT, at);
    uint32_t r = region_find(dir, at);
    if (r == AOI__NONE) {
        if (dir->free_regions.n > 0) {
            r = dir->free_regions.at[--dir->free_regions.n];
        } else {
            r = dir->region.n;
            array_add(&dir->region);
        }
        dir->region.at[r] = (struct aoi__region){.place = {.at = {at[0], at[1], at[2]}}};
        place_link(&dir->region_map, dir->region.at, sizeof *dir->region.at, r);
    }
    dir->block.at[b].region = r;
    dir->block.at[b].region_at = dir->region.at[r].blocks.n;
    *array_add(&dir->region.at[r].blocks) = b;
}

static void region_delist(struct aoi__blocks *dir, uint32_t b)
{
    uint32_t r = dir->block.at[b].region, i = dir->block.at[b].region_at;
    aoi__slots *blocks = &dir->region.at[r].blocks;
    array_swap_remove(blocks, i);
    if (i < blocks->n) dir->block.at[blocks->at[i]].region_at = i;
    if (blocks->n > 0) return;
    array_clear(blocks);
    place_unlink(&dir->region_map, dir->region.at, sizeof *dir->region.at, r);
    *array_add(&dir->free_regions) = r;
}

/* ------------------------------------------------------------------------------------------------------------- blocks */

uint32_t aoi__block_find(const struct aoi__blocks *dir, const int32_t cell[3])
{
    int32_t at[3];
    shifted(cell, dir->shift, at);
    return place_find(&dir->block_map, dir->block.at, sizeof *dir->block.at, at);
}

uint32_t aoi__block_get(struct aoi__blocks *dir, const int32_t cell[3])
{
    uint32_t b = aoi__block_find(dir, cell);
    if (b != AOI__NONE) return b;
    if (dir->free_blocks.n > 0) {
        b = dir->free_blocks.at[--dir->free_blocks.n];
    } else {
        b = dir->block.n;
        array_add(&dir->block);
        CHECK(b < UINT32_MAX >> 6);
    }
    dir->block.at[b] = (struct aoi__block){.keep = false};
    shifted(cell, dir->shift, dir->block.at[b].place.at);
    place_link(&dir->block_map, dir->block.at, sizeof *dir->block.at, b);
    region_enlist(dir, b);
    return b;
}

static void block_clear(struct aoi__blocks *dir, struct aoi__block *block)
{
    for (uint32_t i = 0; i < block->cells.n; i++) {
        dir->cell_elements -= block->cells.at[i].cap;
        free(block->cells.at[i].x);
    }
    array_clear(&block->cells);
    array_clear(&block->entries);
    block->have = 0;
}

void aoi__block_drop(struct aoi__blocks *dir, uint32_t b)
{
    struct aoi__block *block = &dir->block.at[b];
    if (block->full != 0 || block->entries.n > 0 || block->keep) return;
    region_delist(dir, b);
    place_unlink(&dir->block_map, dir->block.at, sizeof *dir->block.at, b);
    block_clear(dir, block);
    *array_add(&dir->free_blocks) = b;
}

static uint64_t count_in(const int32_t lo[3], const int32_t hi[3], uint32_t shift)
{
    double n = 1; /* up to 2^90 */
    for (uint32_t a = 0; a < 3; a++) n *= (double)((hi[a] >> shift) - (lo[a] >> shift)) + 1;
    return n < 1e18 ? (uint64_t)n : UINT64_MAX;
}

uint64_t aoi__blocks_count(const struct aoi__blocks *dir, const int32_t lo[3], const int32_t hi[3])
{
    return count_in(lo, hi, dir->shift);
}

/* Goes through all coordinates of a box, x fastest; starts with at = lo. False: it was the last. */
static bool step(int32_t at[3], const int32_t lo[3], const int32_t hi[3])
{
    for (uint32_t a = 0; a < 3; a++) {
        if (at[a] < hi[a]) {
            at[a]++;
            return true;
        }
        at[a] = lo[a];
    }
    return false;
}

static bool inside(const int32_t at[3], const int32_t lo[3], const int32_t hi[3])
{
    for (uint32_t a = 0; a < 3; a++)
        if (at[a] < lo[a] || at[a] > hi[a]) return false;
    return true;
}

/* Those of the region's blocks that lie in a box of blocks. */
static void region_blocks(const struct aoi__blocks *dir, uint32_t r, const int32_t lo[3], const int32_t hi[3], aoi__slots *out)
{
    const aoi__slots *blocks = &dir->region.at[r].blocks;
    for (uint32_t i = 0; i < blocks->n; i++)
        if (inside(dir->block.at[blocks->at[i]].place.at, lo, hi)) *array_add(out) = blocks->at[i];
}

void aoi__blocks_in(const struct aoi__blocks *dir, const int32_t lo[3], const int32_t hi[3], aoi__slots *out)
{
    int32_t block_lo[3], block_hi[3], region_lo[3], region_hi[3], at[3];
    shifted(lo, dir->shift, block_lo);
    shifted(hi, dir->shift, block_hi);
    if (count_in(lo, hi, dir->shift) <= FEW_BLOCKS) {
        memcpy(at, block_lo, sizeof at);
        do {
            uint32_t b = place_find(&dir->block_map, dir->block.at, sizeof *dir->block.at, at);
            if (b != AOI__NONE) *array_add(out) = b;
        } while (step(at, block_lo, block_hi));
        return;
    }
    shifted(block_lo, REGION_SHIFT, region_lo);
    shifted(block_hi, REGION_SHIFT, region_hi);
    if (count_in(region_lo, region_hi, 0) > dir->region.n) { /* fewer regions exist: go through all */
        for (uint32_t r = 0; r < dir->region.n; r++)
            if (dir->region.at[r].blocks.n > 0 && inside(dir->region.at[r].place.at, region_lo, region_hi))
                region_blocks(dir, r, block_lo, block_hi, out);
        return;
    }
    memcpy(at, region_lo, sizeof at);
    do {
        uint32_t r = region_find(dir, at);
        if (r != AOI__NONE) region_blocks(dir, r, block_lo, block_hi, out);
    } while (step(at, region_lo, region_hi));
}

/* ------------------------------------------------------------------------------------------------------------- cells */

uint32_t aoi__cell_bit(const struct aoi__blocks *dir, const int32_t cell[3])
{
    uint32_t low = (1u << dir->shift) - 1, s = dir->shift;
    uint32_t bit = ((uint32_t)cell[1] & low) << s | ((uint32_t)cell[0] & low);
    return dir->dims == 2 ? bit : bit | ((uint32_t)cell[2] & low) << 2 * s;
}

bool aoi__block_touches(const struct aoi__blocks *dir, const struct aoi__block *block, const int32_t lo[3], const int32_t hi[3])
{
    for (uint32_t a = 0; a < dir->dims; a++)
        if (block->place.at[a] < lo[a] >> dir->shift || block->place.at[a] > hi[a] >> dir->shift) return false;
    return true;
}

uint64_t aoi__cell_mask(const struct aoi__blocks *dir, const struct aoi__block *block, const int32_t lo[3], const int32_t hi[3])
{
    uint32_t edge = 1u << dir->shift, from[3], to[3];
    for (uint32_t a = 0; a < 3; a++) {
        int32_t first = block->place.at[a] * (int32_t)edge;
        from[a] = lo[a] > first ? (uint32_t)(lo[a] - first) : 0;
        to[a] = hi[a] < first + (int32_t)edge - 1 ? (uint32_t)(hi[a] - first) : edge - 1;
    }
    uint64_t row = (((uint64_t)1 << (to[0] - from[0] + 1)) - 1) << from[0], layer = 0, mask = 0;
    for (uint32_t y = from[1]; y <= to[1]; y++) layer |= row << y * edge;
    if (dir->dims == 2) return layer;
    for (uint32_t z = from[2]; z <= to[2]; z++) mask |= layer << z * edge * edge;
    return mask;
}

/* Gives the cell another capacity of at least `need`, which is not less than its n. */
static void cell_resize(struct aoi__blocks *dir, struct aoi__cell *cell, uint32_t need)
{
    struct aoi__cell old = *cell;
    uint32_t cap = (need + AOI__LANES - 1) / AOI__LANES * AOI__LANES;
    dir->cell_elements += (uint64_t)cap - old.cap;
    cell->x = mem_alloc((size_t)cap * (dir->dims + 1) * sizeof *cell->x);
    cell->cap = cap;
    for (uint32_t column = 0; column <= dir->dims && old.n > 0; column++)
        memcpy(cell->x + (size_t)column * cap, old.x + (size_t)column * old.cap, old.n * sizeof *cell->x);
    free(old.x);
}

uint32_t aoi__cell_put(struct aoi__blocks *dir, uint32_t b, uint32_t bit, uint32_t slot, const float pos[3])
{
    struct aoi__block *block = &dir->block.at[b];
    if (!(block->have >> bit & 1)) {
        block->have |= (uint64_t)1 << bit;
        block->rank[bit] = (uint8_t)block->cells.n;
        *array_add(&block->cells) = (struct aoi__cell){0};
    }
    block->full |= (uint64_t)1 << bit;
    struct aoi__cell *cell = aoi__cell_in(block, bit);
    if (cell->n == cell->cap) cell_resize(dir, cell, cell->cap + cell->cap / 2 + 1);
    aoi__cell_write(cell, dir->dims, cell->n, pos);
    aoi__cell_slots(cell, dir->dims)[cell->n] = slot;
    return cell->n++;
}

uint32_t aoi__cell_take(struct aoi__blocks *dir, uint32_t b, uint32_t bit, uint32_t place)
{
    struct aoi__block *block = &dir->block.at[b];
    struct aoi__cell *cell = aoi__cell_in(block, bit);
    uint32_t last = --cell->n, *slots = aoi__cell_slots(cell, dir->dims), moved = slots[last];
    for (uint32_t a = 0; a < dir->dims; a++) {
        float *v = cell->x + (size_t)a * cell->cap;
        v[place] = v[last];
    }
    slots[place] = moved;
    if (cell->n == 0) block->full &= ~((uint64_t)1 << bit);
    if (cell->cap >= 32 && cell->n < cell->cap / 4) cell_resize(dir, cell, cell->cap / 2);
    return moved;
}

/* ------------------------------------------------------------------------------------------------------------- life and checks */

void aoi__blocks_clear(struct aoi__blocks *dir)
{
    for (uint32_t b = 0; b < dir->block.n; b++) block_clear(dir, &dir->block.at[b]);
    for (uint32_t r = 0; r < dir->region.n; r++) array_clear(&dir->region.at[r].blocks);
    array_clear(&dir->block);
    array_clear(&dir->region);
    array_clear(&dir->free_blocks);
    array_clear(&dir->free_regions);
    idmap_clear(&dir->block_map);
    idmap_clear(&dir->region_map);
}

uint64_t aoi__blocks_bytes(const struct aoi__blocks *dir)
{
    uint64_t bytes = idmap_bytes(&dir->block_map) + idmap_bytes(&dir->region_map) + (uint64_t)dir->block.cap * sizeof *dir->block.at +
                     (uint64_t)dir->region.cap * sizeof *dir->region.at + dir->cell_elements * (dir->dims + 1) * sizeof(float);
    for (uint32_t b = 0; b < dir->block.n; b++)
        bytes += (uint64_t)dir->block.at[b].cells.cap * sizeof(struct aoi__cell) + (uint64_t)dir->block.at[b].entries.cap * sizeof(struct aoi__entry);
    for (uint32_t r = 0; r < dir->region.n; r++) bytes += (uint64_t)dir->region.at[r].blocks.cap * sizeof(uint32_t);
    return bytes;
}

void aoi__blocks_validate(const struct aoi__blocks *dir)
{
    uint64_t elements = 0, used = dir->block.n - dir->free_blocks.n, listed = 0;
    for (uint32_t b = 0; b < dir->block.n; b++) {
        const struct aoi__block *block = &dir->block.at[b];
        for (uint32_t i = 0; i < block->cells.n; i++) elements += block->cells.at[i].cap;
        CHECK((block->full & ~block->have) == 0 && (uint32_t)__builtin_popcountll(block->have) == block->cells.n);
    }
    for (uint32_t r = 0; r < dir->region.n; r++) {
        const struct aoi__region *region = &dir->region.at[r];
        for (uint32_t i = 0; i < region->blocks.n; i++, listed++) {
            const struct aoi__block *block = &dir->block.at[region->blocks.at[i]];
            int32_t at[3];
            shifted(block->place.at, REGION_SHIFT, at);
            CHECK(block->region == r && block->region_at == i && region_find(dir, at) == r);
            CHECK(place_find(&dir->block_map, dir->block.at, sizeof *dir->block.at, block->place.at) == region->blocks.at[i]);
            CHECK(block->full != 0 || block->entries.n > 0 || block->keep);
        }
    }
    CHECK(elements == dir->cell_elements && listed == used);
}
