/* blocks.h: the sparse directory of the grid's cells.
 *
 * 64 cells (8 x 8 in 2D, 4 x 4 x 4 in 3D) make a block, and 16 blocks on each axis a region. Both exist only where there is something, and are found by a
 * hash of their coordinates; so memory and time follow what is there, not the area. A region only lists its blocks, so that a huge box finds them.
 */
#ifndef AOI_CORE_BLOCKS_H
#define AOI_CORE_BLOCKS_H

#include "base/array.h"
#include "base/idmap.h"
#include "core/index.h"
#include "core/scan.h"

/* Entities of one cell, as columns in one allocation: x[cap], y[cap], z[cap] (3D only), slot[cap]; cap is a multiple of AOI__LANES. */
struct aoi__cell {
    uint32_t n, cap;
    float *x;
};

/* A watch that touches the block. */
struct aoi__entry {
    uint64_t mask;        /* cells that it touches, a bit each */
    uint32_t watch, link; /* the watch's link of this number is the other end */
};

struct aoi__place {
    int32_t at[3]; /* coordinates in blocks or regions; z is 0 in 2D */
    uint32_t next; /* of the same hash key; AOI__NONE: the last */
};

struct aoi__block {
    struct aoi__place place;    /* first, as in a region */
    uint32_t region, region_at; /* where its region lists it */
    uint64_t have;              /* cells that exist in cells[] */
    uint64_t full;              /* those of them that hold an entity */
    uint64_t changed;           /* cells in which something changed since the last flush */
    uint32_t layers;            /* at least those of its entities */
    uint32_t changed_layers;    /* at least those of what changed */
    uint8_t rank[64];           /* place of a cell of have in cells[] */
    ARRAY(struct aoi__cell) cells;
    ARRAY(struct aoi__entry) entries;
    bool keep; /* somebody else still refers to it: not to be dropped */
};

struct aoi__region {
    struct aoi__place place;
    aoi__slots blocks;
};

struct aoi__blocks {
    uint32_t dims;
    uint32_t shift; /* cell to block coordinates */
    ARRAY(struct aoi__block) block;
    ARRAY(struct aoi__region) region;
    aoi__slots free_blocks, free_regions;
    struct idmap block_map, region_map; /* key of coordinates -> first with that key */
    uint64_t cell_elements;             /* sum of the cells' capacities */
};

/* A zeroed struct with dims and shift set is an empty directory. */
void aoi__blocks_clear(struct aoi__blocks *dir);
uint64_t aoi__blocks_bytes(const struct aoi__blocks *dir);
void aoi__blocks_validate(const struct aoi__blocks *dir);

/* All coordinates that are passed are those of cells. */
uint32_t aoi__block_find(const struct aoi__blocks *dir, const int32_t cell[3]); /* AOI__NONE: there is none */
uint32_t aoi__block_get(struct aoi__blocks *dir, const int32_t cell[3]);        /* made if it is not there */
void aoi__block_drop(struct aoi__blocks *dir, uint32_t block);                  /* frees it if it holds no entity, no entry, and is not to be kept */
/* Appends the blocks that a box of cells (inclusive) touches. */
void aoi__blocks_in(const struct aoi__blocks *dir, const int32_t lo[3], const int32_t hi[3], aoi__slots *out);
/* How many there would be if all existed. */
uint64_t aoi__blocks_count(const struct aoi__blocks *dir, const int32_t lo[3], const int32_t hi[3]);

/* A cell's bit in its block: 3 bits of x and y in 2D, 2 bits of x, y and z in 3D. */
uint32_t aoi__cell_bit(const struct aoi__blocks *dir, const int32_t cell[3]);
/* Whether a box of cells touches the block. */
bool aoi__block_touches(const struct aoi__blocks *dir, const struct aoi__block *block, const int32_t lo[3], const int32_t hi[3]);
/* The bits of a block's cells that lie in a box of cells which touches it. */
uint64_t aoi__cell_mask(const struct aoi__blocks *dir, const struct aoi__block *block, const int32_t lo[3], const int32_t hi[3]);

/* Appends an entity to the cell of that bit; returns its place there. */
uint32_t aoi__cell_put(struct aoi__blocks *dir, uint32_t block, uint32_t bit, uint32_t slot, const float pos[3]);
/* Takes an entity out; returns the slot that stands in its place now (its own if it was the last). */
uint32_t aoi__cell_take(struct aoi__blocks *dir, uint32_t block, uint32_t bit, uint32_t place);

static inline struct aoi__cell *aoi__cell_in(const struct aoi__block *block, uint32_t bit)
{
    return &block->cells.at[block->rank[bit]];
}

/* The slots behind the columns of coordinates. */
static inline uint32_t *aoi__cell_slots(const struct aoi__cell *cell, uint32_t dims)
{
    return (uint32_t *)(void *)(cell->x + (size_t)dims * cell->cap);
}

static inline void aoi__cell_write(const struct aoi__cell *cell, uint32_t dims, uint32_t place, const float pos[3])
{
    for (uint32_t a = 0; a < dims; a++) cell->x[(size_t)a * cell->cap + place] = pos[a];
}

#endif
