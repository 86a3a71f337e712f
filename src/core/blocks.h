/* blocks.h: the sparse directory of the grid's cells.
 *
 * 64 cells (8 x 8 in 2D, 4 x 4 x 4 in 3D) make a block, and 16 blocks on each axis a region. Both exist only where there is something, and are found by a
 * hash of their coordinates; so memory and time follow what is there, not the area. A region only lists its blocks, so that a huge box finds them.
 */
#ifndef AOI_CORE_BLOCKS_H
#define AOI_CORE_BLOCKS_H

#include "base/array.h"
#include "base/idmap.h"
#include "base/pool.h"
#include "core/index.h"
#include "core/scan.h"

struct aoi__hot;

#define AOI__PAGE 64              /* entities of a page at most: a bit each in its masks */
#define AOI__HALF (AOI__PAGE / 2) /* where no place from here on is in use, half a look does */
#define AOI__PAST 192             /* bytes behind a page's columns that may be read, whatever they hold */

/* Up to 64 entities of one cell, each at a place of its own as long as it is there: so that a view can be a mask of places. Columns of 32 bits one after the other: x[cap], y[cap],
 * z[cap] (3D only), the low and the high halves of ids, slot[cap], extra[cap] (if the directory has it); cap is a multiple of AOI__LANES. Where nothing stands, x is NaN, which lies
 * in no box. */
struct aoi__page {
    float *x;
    uint64_t used;     /* places where an entity stands */
    uint64_t moved;    /* since the last flush: its position or extra changed; */
    uint64_t arrived;  /* it came here; */
    uint64_t state;    /* its layers or payload changed */
    uint32_t any, all; /* layers: at least those that some have, at most those that all have */
    uint8_t n, cap;    /* no place from n on is busy */
    uint8_t bit;       /* of its cell, in its block */
    bool buried : 1;   /* it stands in dir->graves: busy may be more than used */
    bool fresh : 1;    /* it stands in dir->fresh */
    bool mixed : 1;    /* ids may have different high halves: */
    uint32_t high;     /* if not, all have this, and the column need not be read */
    uint32_t next;     /* of the same cell; AOI__NONE: the last */
    uint32_t turned;   /* scratch of cover.c: the flush of which it knows the turns (kernel.h) */
    /* so far all that is looked at often: a line */
    uint64_t busy;      /* used, and whose entity has gone since the last flush: views may still mean that one */
    float lo[3], hi[3]; /* kept by the index: who stands in here has not left the cell */
    int32_t at[3];      /* its cell's coordinates */
    uint32_t block;
    uint32_t found; /* scratch of cover.c */
    uint32_t rack;  /* its number in the rack of its capacity */
} __attribute__((aligned(MEM_LINE)));

/* The columns of all pages of one capacity, one after the other without a gap: so that what pages take is what their columns take, however cells grow and shrink. When one goes,
 * the last takes its place. */
struct aoi__rack {
    void *raw;      /* the allocation */
    float *at;      /* the first, at a multiple of MEM_LINE */
    uint32_t *page; /* whose they are */
    uint32_t n, cap;
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
    struct aoi__place place;          /* first, as in a region */
    uint32_t region, region_at;       /* where its region lists it */
    uint64_t born;                    /* the window in which it was made */
    uint64_t have;                    /* cells that have a page */
    uint64_t full;                    /* those of them that hold an entity */
    uint64_t changed;                 /* cells in which something changed since the last flush */
    uint32_t layers;                  /* at least those of its entities */
    uint32_t changed_layers;          /* at least those of what changed */
    uint8_t rank[64];                 /* place of a cell of have in cells */
    aoi__slots cells;                 /* the first page of each */
    ARRAY(struct aoi__entry) entries; /* in the pool, as cells */
    bool keep;                        /* somebody else still refers to it: not to be dropped */
    bool fading;                      /* it stands in dir->fading */
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
    ARRAY(struct aoi__page) page;
    void *page_raw;               /* its allocation */
    ARRAY(struct aoi__home) home; /* by slot: kept by the index */
    aoi__slots free_blocks, free_regions, free_pages;
    struct idmap block_map, region_map;                /* key of coordinates -> first with that key */
    struct aoi__rack rack[AOI__PAGE / AOI__LANES + 1]; /* the pages' columns, by capacity / AOI__LANES */
    struct pool *pool;                                 /* the space's */
    bool extra;                                        /* pages have that column */
    /* Views that are masks of pages (cover.c): while there are any, what goes stays readable to the end of the next flush. */
    uint32_t covers;
    uint64_t window;   /* number of the time between two flushes, from 1 */
    aoi__slots graves; /* pages with busy places that are not used */
    aoi__slots fresh;  /* pages in which something has changed since the last flush, and some that are gone */
    aoi__slots fading; /* blocks that may have nothing left to stay for */
};

/* A zeroed struct with dims and shift set is an empty directory. */
void aoi__blocks_clear(struct aoi__blocks *dir); /* before its pool is cleared, which frees the rest */
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

/* Gives the entity a place in the cell, which is one of the block. *fresh: in a page that was not there before. */
struct aoi__home aoi__page_put(struct aoi__blocks *dir, uint32_t block, const int32_t cell[3], uint32_t slot, const struct aoi__hot *hot,
                               bool *fresh);
/* Takes it away. */
void aoi__page_take(struct aoi__blocks *dir, struct aoi__home home);
/* A flush ends: all views know what has gone. Whether any block has gone with it. */
bool aoi__blocks_next_window(struct aoi__blocks *dir);
/* Sees to it that there may be a good deal more pages of any capacity, and watches in any block, before anything more is allocated. */
void aoi__blocks_ahead(struct aoi__blocks *dir);

/* For changes of this window. */
static inline struct aoi__page *aoi__page_touch(struct aoi__blocks *dir, uint32_t page)
{
    struct aoi__page *p = &dir->page.at[page];
    if (!p->fresh) {
        p->fresh = true;
        *array_add(&dir->fresh) = page;
    }
    return p;
}

/* Where an entity stands; page AOI__NOWHERE: not here. */
static inline struct aoi__home aoi__home_of(const struct aoi__blocks *dir, uint32_t slot)
{
    return slot < dir->home.n ? dir->home.at[slot] : (struct aoi__home){.page = AOI__NOWHERE};
}

/* What stands behind x, a column or the like. It is reckoned in numbers, for an empty page has none, and to a null pointer nothing may be added. */
static inline void *aoi__page_behind(const void *column, size_t bytes)
{
    return (void *)((uintptr_t)column + bytes);
}

static inline uint32_t *aoi__page_low(const struct aoi__page *page, uint32_t dims)
{
    return aoi__page_behind(page->x, (size_t)dims * page->cap * sizeof *page->x);
}

static inline uint64_t aoi__page_id(const struct aoi__page *page, uint32_t dims, uint32_t place)
{
    const uint32_t *low = aoi__page_low(page, dims);
    return low[place] | (uint64_t)low[page->cap + place] << 32;
}

static inline void aoi__page_set_id(const struct aoi__page *page, uint32_t dims, uint32_t place, uint64_t id)
{
    uint32_t *low = aoi__page_low(page, dims);
    low[place] = (uint32_t)id;
    low[page->cap + place] = (uint32_t)(id >> 32);
}

static inline uint32_t *aoi__page_slots(const struct aoi__page *page, uint32_t dims)
{
    return aoi__page_behind(page->x, (size_t)(dims + 2) * page->cap * sizeof *page->x);
}

static inline uint32_t *aoi__page_extra(const struct aoi__page *page, uint32_t dims)
{
    return aoi__page_behind(page->x, (size_t)(dims + 3) * page->cap * sizeof *page->x);
}

static inline uint32_t aoi__page_first(const struct aoi__block *block, uint32_t bit)
{
    return block->cells.at[block->rank[bit]];
}

static inline void aoi__page_write(const struct aoi__blocks *dir, const struct aoi__page *page, uint32_t place, const float pos[3], uint32_t extra)
{
    float *x = page->x + place;
    x[0] = pos[0];
    x[page->cap] = pos[1];
    if (dir->dims == 3) x[2 * page->cap] = pos[2];
    if (dir->extra) aoi__page_extra(page, dir->dims)[place] = extra;
}

#endif
