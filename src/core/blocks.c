/* blocks.c: the sparse directory of the grid's cells. */
#include "core/blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/space.h"

#define REGION_SHIFT 4    /* block to region coordinates */
#define KEPT_ENTRIES 64   /* a block that is not used keeps room for so many */
#define MANY_COLUMNS 4096 /* of a capacity: room for so many is kept, whether it is used or not */

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
            *array_add(&dir->region) = (struct aoi__region){0};
        }
        memcpy(dir->region.at[r].place.at, at, sizeof at);
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
        *array_add(&dir->block) = (struct aoi__block){0};
        CHECK(b < UINT32_MAX >> 6);
    }
    struct aoi__block *block = &dir->block.at[b];
    aoi__slots cells = block->cells; /* empty arrays that it had before, so that blocks which come and go allocate nothing */
    *block = (struct aoi__block){.born = dir->window, .cells = cells, .entries.at = block->entries.at, .entries.cap = block->entries.cap};
    shifted(cell, dir->shift, dir->block.at[b].place.at);
    place_link(&dir->block_map, dir->block.at, sizeof *dir->block.at, b);
    region_enlist(dir, b);
    return b;
}

/* Coordinates, two halves of ids, slots, extra. */
static size_t columns_n(const struct aoi__blocks *dir)
{
    return dir->dims + 3 + dir->extra;
}

static size_t columns_bytes(const struct aoi__blocks *dir, size_t cap)
{
    return cap * columns_n(dir) * sizeof(float);
}

static float *rack_at(const struct aoi__blocks *dir, uint32_t cap, uint32_t i)
{
    return dir->rack[cap / AOI__LANES].at + i * columns_n(dir) * cap;
}

/* Room for half more than there are, of many a quarter, and for `least`. All move. */
static void rack_resize(struct aoi__blocks *dir, uint32_t cap, uint32_t least)
{
    struct aoi__rack *r = &dir->rack[cap / AOI__LANES];
    size_t bytes = columns_bytes(dir, cap);
    r->cap = r->n < 16 ? 2 * r->n + 2 : r->n + r->n / (r->n < MANY_COLUMNS ? 2 : 4) + 16;
    if (r->cap < least) r->cap = least;
    r->page = mem_realloc(r->page, r->cap * sizeof *r->page);
    r->at = mem_realign(&r->raw, r->at, r->n * bytes, r->cap * bytes + AOI__PAST);
    for (uint32_t i = 0; i < r->n; i++) dir->page.at[r->page[i]].x = rack_at(dir, cap, i);
}

static void columns_take(struct aoi__blocks *dir, struct aoi__page *page, uint32_t cap)
{
    struct aoi__rack *r = &dir->rack[cap / AOI__LANES];
    if (r->n == r->cap) rack_resize(dir, cap, 0);
    page->cap = (uint8_t)cap;
    page->rack = r->n++;
    page->x = rack_at(dir, cap, page->rack);
    r->page[page->rack] = (uint32_t)(page - dir->page.at);
}

/* Gives back those of that number. */
static void columns_give(struct aoi__blocks *dir, uint32_t cap, uint32_t i)
{
    struct aoi__rack *r = &dir->rack[cap / AOI__LANES];
    if (cap == 0) return;
    if (i != --r->n) {
        struct aoi__page *last = &dir->page.at[r->page[r->n]];
        memcpy(rack_at(dir, cap, i), last->x, columns_bytes(dir, cap));
        last->x = rack_at(dir, cap, i);
        last->rack = i;
        r->page[i] = r->page[r->n];
    }
    if (r->cap > MANY_COLUMNS && r->n + r->n / 2 < r->cap) rack_resize(dir, cap, 0);
}

static void page_free(struct aoi__blocks *dir, uint32_t p)
{
    struct aoi__page *page = &dir->page.at[p];
    columns_give(dir, page->cap, page->rack);
    *page = (struct aoi__page){.block = AOI__NONE, .fresh = page->fresh}; /* for there it stands still */
    *array_add(&dir->free_pages) = p;
}

static void block_clear(struct aoi__blocks *dir, struct aoi__block *block)
{
    for (uint32_t i = 0; i < block->cells.n; i++)
        for (uint32_t p = block->cells.at[i], next; p != AOI__NONE; p = next) {
            next = dir->page.at[p].next;
            page_free(dir, p);
        }
    block->cells.n = 0;
    block->have = 0;
    if (block->entries.cap > KEPT_ENTRIES) pool_array_clear(dir->pool, &block->entries);
}

static void block_free(struct aoi__blocks *dir, uint32_t b)
{
    struct aoi__block *block = &dir->block.at[b];
    if (block->full != 0 || block->entries.n > 0 || block->keep) return;
    region_delist(dir, b);
    place_unlink(&dir->block_map, dir->block.at, sizeof *dir->block.at, b);
    block_clear(dir, block);
    *array_add(&dir->free_blocks) = b;
}

void aoi__block_drop(struct aoi__blocks *dir, uint32_t b)
{
    struct aoi__block *block = &dir->block.at[b];
    if (block->full != 0 || block->entries.n > 0 || block->keep || block->fading) return;
    if (dir->covers == 0 || block->born == dir->window) {
        block_free(dir, b);
        return;
    }
    block->fading = true; /* a view may still mean what stood here */
    *array_add(&dir->fading) = b;
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

#define FEW_BLOCKS 4 /* are looked up at once */

/* Whether to look up all blocks of a box costs less than to look up its regions, of 256 (2D) or 4,096 (3D) blocks, and to go through what these list. */
static bool few_blocks(const struct aoi__blocks *dir, const int32_t lo[3], const int32_t hi[3])
{
    if (dir->region.n == dir->free_regions.n) return false; /* there is nothing to be found */
    double blocks = dir->block.n - dir->free_blocks.n, regions = dir->region.n - dir->free_regions.n;
    double in_box = (double)count_in(lo, hi, dir->shift + REGION_SHIFT), least = in_box < regions ? in_box : regions;
    return (double)count_in(lo, hi, dir->shift) <= least * (1 + blocks / regions);
}

void aoi__blocks_in(const struct aoi__blocks *dir, const int32_t lo[3], const int32_t hi[3], aoi__slots *out)
{
    int32_t block_lo[3], block_hi[3], region_lo[3], region_hi[3], at[3];
    shifted(lo, dir->shift, block_lo);
    shifted(hi, dir->shift, block_hi);
    if (count_in(block_lo, block_hi, 0) <= FEW_BLOCKS || few_blocks(dir, lo, hi)) {
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

/* Bits first .. last. */
static uint64_t bits_of(uint32_t first, uint32_t last)
{
    return (UINT64_MAX >> (63 - last)) & (UINT64_MAX << first);
}

uint64_t aoi__cell_mask(const struct aoi__blocks *dir, const struct aoi__block *block, const int32_t lo[3], const int32_t hi[3])
{
    uint32_t edge = 1u << dir->shift, from[3] = {0}, to[3] = {0};
    for (uint32_t a = 0; a < dir->dims; a++) {
        int32_t first = block->place.at[a] * (int32_t)edge;
        from[a] = lo[a] > first ? (uint32_t)(lo[a] - first) : 0;
        to[a] = hi[a] < first + (int32_t)edge - 1 ? (uint32_t)(hi[a] - first) : edge - 1;
    }
    if (dir->dims == 2) return bits_of(from[0], to[0]) * 0x0101010101010101u & bits_of(8 * from[1], 8 * to[1] + 7);
    return bits_of(from[0], to[0]) * 0x1111111111111111u & bits_of(4 * from[1], 4 * to[1] + 3) * 0x0001000100010001u &
           bits_of(16 * from[2], 16 * to[2] + 15);
}

/* Gives the page another capacity, with room for its n. */
static void page_resize(struct aoi__blocks *dir, struct aoi__page *page, uint32_t cap)
{
    struct aoi__page old = *page;
    size_t n = old.n, dims = dir->dims;
    columns_take(dir, page, cap);
    for (uint32_t a = 0; a < dims; a++) /* in all columns: kernels look at all, though x alone tells that nobody stands there */
        for (uint32_t i = old.n; i < cap; i++) page->x[a * cap + i] = NAN;
    if (n > 0) {
        for (size_t c = 0; c < columns_n(dir); c++) memcpy(page->x + c * cap, old.x + c * old.cap, n * sizeof *page->x);
    }
    columns_give(dir, old.cap, old.rack);
}

/* Pages begin at lines of the cache. */
static void grow_pages(struct aoi__blocks *dir)
{
    uint32_t cap = dir->page.cap < 32 ? 2 * dir->page.cap + 4 : dir->page.cap + dir->page.cap / 2;
    CHECK(cap < AOI__NOWHERE);
    dir->page.at = mem_realign(&dir->page_raw, dir->page.at, dir->page.n * sizeof *dir->page.at, cap * sizeof *dir->page.at);
    dir->page.cap = cap;
}

/* An empty page at the head of the cell's. */
static uint32_t page_new(struct aoi__blocks *dir, uint32_t b, uint32_t bit)
{
    bool fresh = false;
    uint32_t p = dir->page.n;
    if (dir->free_pages.n > 0) {
        p = dir->free_pages.at[--dir->free_pages.n];
        fresh = dir->page.at[p].fresh; /* it stands there still */
    } else {
        if (p == dir->page.cap) grow_pages(dir);
        dir->page.n++;
    }
    struct aoi__block *block = &dir->block.at[b];
    uint32_t *first = &block->cells.at[block->rank[bit]];
    dir->page.at[p] = (struct aoi__page){.block = b, .bit = (uint8_t)bit, .all = UINT32_MAX, .fresh = fresh, .next = *first};
    *first = p;
    return p;
}

/* A page of the cell with a free place. */
static uint32_t page_with_room(struct aoi__blocks *dir, uint32_t b, uint32_t bit, bool *fresh)
{
    struct aoi__block *block = &dir->block.at[b];
    *fresh = true;
    if (!(block->have >> bit & 1)) {
        block->have |= (uint64_t)1 << bit;
        block->rank[bit] = (uint8_t)block->cells.n;
        *pool_array_add(dir->pool, &block->cells) = AOI__NONE;
        return page_new(dir, b, bit);
    }
    uint32_t *first = &block->cells.at[block->rank[bit]], last = AOI__NONE;
    for (uint32_t p = *first; p != AOI__NONE; last = p, p = dir->page.at[p].next) {
        if (dir->page.at[p].busy == UINT64_MAX) continue;
        *fresh = false;
        if (last != AOI__NONE) { /* to the head, where the next one finds it at once */
            dir->page.at[last].next = dir->page.at[p].next;
            dir->page.at[p].next = *first;
            *first = p;
        }
        return p;
    }
    return page_new(dir, b, bit);
}

struct aoi__home aoi__page_put(struct aoi__blocks *dir, uint32_t b, const int32_t cell[3], uint32_t slot, const struct aoi__hot *hot, bool *fresh)
{
    uint32_t bit = aoi__cell_bit(dir, cell), p = page_with_room(dir, b, bit, fresh);
    struct aoi__page *page = aoi__page_touch(dir, p);
    if (*fresh) memcpy(page->at, cell, sizeof page->at);
    uint32_t place = (uint32_t)__builtin_ctzll(~page->busy);
    if (place >= page->cap) page_resize(dir, page, page->cap < 32 || page->cap > 48 ? page->cap + 8u : page->cap + 16u);
    if (place >= page->n) page->n = (uint8_t)(place + 1);
    page->mixed = page->used != 0 && (page->mixed || hot->id >> 32 != page->high);
    page->high = (uint32_t)(hot->id >> 32);
    aoi__page_set_id(page, dir->dims, place, hot->id);
    page->busy |= (uint64_t)1 << place;
    page->used |= (uint64_t)1 << place;
    page->arrived |= (uint64_t)1 << place;
    page->any |= hot->layers;
    page->all &= hot->layers;
    aoi__page_slots(page, dir->dims)[place] = slot;
    aoi__page_write(dir, page, place, hot->pos, hot->extra);
    dir->block.at[b].full |= (uint64_t)1 << bit;
    return (struct aoi__home){.page = p, .place = place};
}

/* Places from which something has gone are free again. */
static void page_settle(struct aoi__blocks *dir, struct aoi__page *page)
{
    page->busy = page->used;
    page->n = page->used == 0 ? 0 : (uint8_t)(64 - __builtin_clzll(page->used));
    if (page->used == 0) {
        page->any = 0;
        page->all = UINT32_MAX;
    }
    if (page->n + 3u * AOI__LANES <= page->cap) page_resize(dir, page, (page->n + 15u) / AOI__LANES * AOI__LANES);
}

/* Whether any page of the cell holds an entity. */
static bool cell_holds(const struct aoi__blocks *dir, const struct aoi__block *block, uint32_t bit)
{
    for (uint32_t p = aoi__page_first(block, bit); p != AOI__NONE; p = dir->page.at[p].next)
        if (dir->page.at[p].used != 0) return true;
    return false;
}

void aoi__page_take(struct aoi__blocks *dir, struct aoi__home home)
{
    struct aoi__page *page = aoi__page_touch(dir, home.page);
    struct aoi__block *block = &dir->block.at[page->block];
    uint64_t bit = (uint64_t)1 << home.place;
    page->used &= ~bit;
    page->x[home.place] = NAN;
    if (page->used == 0 && !cell_holds(dir, block, page->bit)) block->full &= ~((uint64_t)1 << page->bit);
    if (dir->covers == 0 || (page->arrived & bit)) { /* nobody can have been told of it here */
        page->busy &= ~bit;
        page->arrived &= ~bit;
        page->moved &= ~bit;
        page->state &= ~bit;
        if (!page->buried && dir->covers == 0) page_settle(dir, page);
    } else if (!page->buried) {
        page->buried = true;
        *array_add(&dir->graves) = home.page;
    }
}

bool aoi__blocks_next_window(struct aoi__blocks *dir)
{
    bool any = dir->fading.n > 0;
    dir->window++;
    for (uint32_t i = 0; i < dir->fresh.n; i++) {
        struct aoi__page *page = &dir->page.at[dir->fresh.at[i]];
        page->fresh = false;
        page->moved = page->arrived = page->state = 0;
    }
    dir->fresh.n = 0;
    for (uint32_t i = 0; i < dir->graves.n; i++) {
        struct aoi__page *page = &dir->page.at[dir->graves.at[i]];
        if (!page->buried) continue; /* freed with its block */
        page->buried = false;
        page_settle(dir, page);
    }
    dir->graves.n = 0;
    for (uint32_t i = 0; i < dir->fading.n; i++) {
        dir->block.at[dir->fading.at[i]].fading = false;
        block_free(dir, dir->fading.at[i]);
    }
    dir->fading.n = 0;
    return any;
}

/* Room for a quarter more than there are; for half of those of the next smaller capacities, which grow as their cells are crowded for once; and for a few that shrink. Of many, half of
 * that. */
static void rack_ahead(struct aoi__blocks *dir, uint32_t cap)
{
    const struct aoi__rack *r = &dir->rack[cap / AOI__LANES];
    uint32_t pages = dir->page.n - dir->free_pages.n, smaller = r[-1].n + (cap > AOI__LANES ? r[-2].n : 0);
    uint32_t more = r->n / 4 + smaller / 2 + pages / 64, least = r->n + (pages < MANY_COLUMNS ? more : more / 2);
    if (least > r->cap) rack_resize(dir, cap, least);
}

void aoi__blocks_ahead(struct aoi__blocks *dir)
{
    for (uint32_t cap = AOI__LANES; cap <= AOI__PAGE; cap += AOI__LANES) rack_ahead(dir, cap);
    for (uint32_t b = 0; b < dir->block.n; b++) { /* small ones are in the pool */
        struct aoi__block *block = &dir->block.at[b];
        size_t want = (size_t)block->entries.n + block->entries.n / 8;
        if (want > block->entries.cap && want * sizeof *block->entries.at > POOL_MAX) pool_array_reserve(dir->pool, &block->entries, want);
    }
    array_reserve(&dir->graves, dir->page.n);
    array_reserve(&dir->fresh, dir->page.n);
}

/* ------------------------------------------------------------------------------------------------------------- life and checks */

void aoi__blocks_clear(struct aoi__blocks *dir)
{
    for (uint32_t b = 0; b < dir->block.n; b++) {
        struct aoi__block *block = &dir->block.at[b];
        if (block->entries.cap * sizeof *block->entries.at > POOL_MAX) pool_array_clear(dir->pool, &block->entries);
    }
    for (uint32_t r = 0; r < dir->region.n; r++) array_clear(&dir->region.at[r].blocks);
    for (uint32_t i = 0; i <= AOI__PAGE / AOI__LANES; i++) {
        free(dir->rack[i].raw);
        free(dir->rack[i].page);
    }
    array_clear(&dir->block);
    array_clear(&dir->region);
    free(dir->page_raw);
    array_clear(&dir->home);
    array_clear(&dir->free_blocks);
    array_clear(&dir->free_regions);
    array_clear(&dir->free_pages);
    array_clear(&dir->graves);
    array_clear(&dir->fresh);
    array_clear(&dir->fading);
    idmap_clear(&dir->block_map);
    idmap_clear(&dir->region_map);
}

uint64_t aoi__blocks_bytes(const struct aoi__blocks *dir)
{
    uint64_t bytes = idmap_bytes(&dir->block_map) + idmap_bytes(&dir->region_map) + (uint64_t)dir->block.cap * sizeof *dir->block.at +
                     (uint64_t)dir->region.cap * sizeof *dir->region.at + (uint64_t)dir->page.cap * sizeof *dir->page.at +
                     (uint64_t)dir->home.cap * sizeof *dir->home.at;
    for (uint32_t i = 1; i <= AOI__PAGE / AOI__LANES; i++) bytes += dir->rack[i].cap * (columns_bytes(dir, i * AOI__LANES) + sizeof(uint32_t));
    for (uint32_t b = 0; b < dir->block.n; b++) {
        uint64_t entries = (uint64_t)dir->block.at[b].entries.cap * sizeof(struct aoi__entry);
        bytes += entries > POOL_MAX ? entries : 0; /* else it is counted with the pool */
    }
    for (uint32_t r = 0; r < dir->region.n; r++) bytes += (uint64_t)dir->region.at[r].blocks.cap * sizeof(uint32_t);
    bytes += ((uint64_t)dir->fresh.cap + dir->graves.cap + dir->fading.cap + dir->free_pages.cap + dir->free_blocks.cap) * sizeof(uint32_t);
    return bytes;
}

/* The pages of one cell; returns how many have columns. */
static uint64_t validate_pages(const struct aoi__blocks *dir, uint32_t b, uint32_t bit)
{
    uint64_t racked = 0;
    bool holds = false;
    for (uint32_t p = aoi__page_first(&dir->block.at[b], bit); p != AOI__NONE; p = dir->page.at[p].next) {
        const struct aoi__page *page = &dir->page.at[p];
        CHECK(page->block == b && page->bit == bit && page->cap <= AOI__PAGE && page->n <= page->cap && page->cap % AOI__LANES == 0);
        CHECK((page->used & ~page->busy) == 0 && (page->busy == page->used || page->buried));
        CHECK(page->n == 64 || page->busy >> page->n == 0);
        for (uint32_t i = 0; i < page->cap; i++) {
            CHECK(isnan(page->x[i]) != (page->used >> i & 1));
            CHECK(isnan(page->x[i]) || page->mixed || aoi__page_id(page, dir->dims, i) >> 32 == page->high);
        }
        holds |= page->used != 0;
        if (page->cap > 0) {
            CHECK(page->x == rack_at(dir, page->cap, page->rack) && dir->rack[page->cap / AOI__LANES].page[page->rack] == p);
            racked++;
        }
    }
    CHECK(holds == (dir->block.at[b].full >> bit & 1));
    return racked;
}

void aoi__blocks_validate(const struct aoi__blocks *dir)
{
    uint64_t racked = 0, used = dir->block.n - dir->free_blocks.n, listed = 0;
    CHECK(dir->fresh.n <= dir->page.n && dir->free_pages.n <= dir->page.n);
    for (uint32_t b = 0; b < dir->block.n; b++) {
        const struct aoi__block *block = &dir->block.at[b];
        CHECK((block->full & ~block->have) == 0 && (uint32_t)__builtin_popcountll(block->have) == block->cells.n);
        for (uint64_t m = block->have; m != 0; m &= m - 1) racked += validate_pages(dir, b, (uint32_t)__builtin_ctzll(m));
    }
    for (uint32_t r = 0; r < dir->region.n; r++) {
        const struct aoi__region *region = &dir->region.at[r];
        for (uint32_t i = 0; i < region->blocks.n; i++, listed++) {
            const struct aoi__block *block = &dir->block.at[region->blocks.at[i]];
            int32_t at[3];
            shifted(block->place.at, REGION_SHIFT, at);
            CHECK(block->region == r && block->region_at == i && region_find(dir, at) == r);
            CHECK(place_find(&dir->block_map, dir->block.at, sizeof *dir->block.at, block->place.at) == region->blocks.at[i]);
            CHECK(block->full != 0 || block->entries.n > 0 || block->keep || block->fading);
        }
    }
    for (uint32_t i = 1; i <= AOI__PAGE / AOI__LANES; i++) racked -= dir->rack[i].n;
    CHECK(racked == 0 && listed == used);
}
