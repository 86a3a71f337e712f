/* grid.c: the grid index: entities in square cells, watched by bit masks.
 *
 * Cells stand in sparse blocks of 64 (blocks.h). A watch is registered in every block that it touches, with the mask of the cells that it touches there. A
 * change sets its cell's bit in its block; so the flush finds the watches that changes concern by an AND for each watch registered in a changed block, and
 * a watch finds its cells without hashing.
 *
 * In a cell, entities stand in pages of 64, at places of their own (blocks.h): what views by masks are made of (cover.c).
 *
 * A watch over more than WIDE_BLOCKS blocks is not registered but kept in a list: any change concerns it, and it looks the blocks up.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/blocks.h"
#include "core/space.h"

#define WIDE_BLOCKS 64 /* a registration makes a block of 250 bytes where there was none: what a peer can ask for so cheaply is to stay small */

struct link {
    uint32_t block, entry;
};

/* What the grid knows of a watch. */
struct area {
    bool known;
    bool wide;            /* it is in grid->wide; else it is registered */
    uint8_t inner[2][3];  /* the cells wholly inside the base box: from lo + so many to hi - so many; more than lie between: none */
    int32_t lo[3], hi[3]; /* cells, inclusive, when it was last set */
    union {
        ARRAY(struct link) links; /* in the pool: where it is registered */
        uint32_t at;              /* where it is in grid->wide */
    };
};

struct grid {
    double scale; /* coordinate to cell */
    aoi__scan_fn scan;
    struct aoi__blocks dir;
    ARRAY(struct area) areas; /* by watch */
    aoi__slots wide;          /* watches */
    aoi__slots changed;       /* blocks with changed != 0, which are kept for that */
    bool wide_fresh;          /* there are pages that they do not know */
    uint32_t wide_layers;     /* of changes that concern wide watches, beside those of changed */
    aoi__slots near;          /* scratch: the blocks of a box */
};

static struct grid *grid_of(const struct aoi_space *space)
{
    return space->index;
}

/* Rounds where floor(v / size) might not, but monotonically, which is all that the grid needs: exact rules stand in the watches' boxes. Cells are at
 * most 2^24 * 64 = 2^30 from 0; a watch may reach further and is cut there. */
static int32_t cell_of(const struct grid *g, float v)
{
    double c = (double)v * g->scale;
    c = c < -0x1p30 ? -0x1p30 : c > 0x1p30 ? 0x1p30 : c;
    int32_t cell = (int32_t)c;
    return cell - (c < cell);
}

static void cell_at(const struct grid *g, const float pos[3], int32_t cell[3])
{
    cell[0] = cell_of(g, pos[0]);
    cell[1] = cell_of(g, pos[1]);
    cell[2] = g->dir.dims == 3 ? cell_of(g, pos[2]) : 0;
}

/* ------------------------------------------------------------------------------------------------------------- entities */

static void mark_changed(struct grid *g, uint32_t b, uint32_t bit, uint32_t layers)
{
    struct aoi__block *block = &g->dir.block.at[b];
    if (block->changed == 0) *array_add(&g->changed) = b;
    block->changed |= (uint64_t)1 << bit;
    block->changed_layers |= layers;
    block->keep = true;
}

static struct aoi__page *page_of(const struct grid *g, uint32_t slot)
{
    return &g->dir.page.at[g->dir.home.at[slot].page];
}

/* Other pages than before lie under the watch. */
static void pages_stale(struct aoi_space *space, uint32_t watch)
{
    const struct aoi__watch *w = &space->watches.at[watch];
    for (uint32_t i = 0; i < w->viewers.n; i++) space->players.at[w->viewers.at[i].player].cover.stale = true;
}

static void wide_stale(struct aoi_space *space)
{
    const struct grid *g = grid_of(space);
    for (uint32_t i = 0; i < g->wide.n; i++) pages_stale(space, g->wide.at[i]);
}

#define ROUNDING 0x1p-21 /* of a coordinate: more than the roundings of boxes and cells come to */

/* Where nobody can have left the page's cell: all of it but its very edges. */
static void set_bounds(const struct grid *g, struct aoi__page *page)
{
    for (uint32_t a = 0; a < 3; a++) {
        double first = page->at[a] / g->scale, last = (page->at[a] + 1.0) / g->scale, slack = (fabs(first) + fabs(last)) * ROUNDING;
        page->lo[a] = (float)(first + slack);
        page->hi[a] = (float)(last - slack);
    }
}

static void put(struct aoi_space *space, uint32_t slot, const int32_t cell[3])
{
    struct grid *g = grid_of(space);
    uint32_t b = aoi__block_get(&g->dir, cell), bit = aoi__cell_bit(&g->dir, cell);
    bool fresh;
    g->dir.home.at[slot] = aoi__page_put(&g->dir, b, cell, slot, &space->hot[slot], &fresh);
    struct aoi__block *block = &g->dir.block.at[b];
    block->layers |= space->hot[slot].layers;
    mark_changed(g, b, bit, page_of(g, slot)->any); /* of all that stand there: who moves in the page later need not mark it again */
    if (!fresh) return;
    set_bounds(g, page_of(g, slot));
    for (uint32_t i = 0; i < block->entries.n; i++)
        if (block->entries.at[i].mask >> bit & 1) pages_stale(space, block->entries.at[i].watch);
    g->wide_fresh = true; /* there may be thousands of both, so that they are told once, before anybody is looked at */
}

static void grid_insert(struct aoi_space *space, uint32_t slot)
{
    struct grid *g = grid_of(space);
    int32_t cell[3];
    cell_at(g, space->hot[slot].pos, cell);
    array_reserve(&g->dir.home, (size_t)slot + 1);
    while (g->dir.home.n <= slot) g->dir.home.at[g->dir.home.n++].page = AOI__NOWHERE;
    put(space, slot, cell);
}

/* Returns the block that it was in, which may have nothing left to stay for. Whoever was told of it here has to look, wherever it ends up: views mean places. */
static uint32_t take(struct grid *g, uint32_t slot)
{
    const struct aoi__page *page = page_of(g, slot);
    mark_changed(g, page->block, page->bit, page->any);
    aoi__page_take(&g->dir, g->dir.home.at[slot]);
    return page->block;
}

static void grid_erase(struct aoi_space *space, uint32_t slot)
{
    struct grid *g = grid_of(space);
    uint32_t block = take(g, slot);
    g->dir.home.at[slot].page = AOI__NOWHERE;
    aoi__block_drop(&g->dir, block);
}

/* To another place, in the cell where it is now. */
static void replace(struct aoi_space *space, uint32_t slot, const int32_t cell[3])
{
    struct grid *g = grid_of(space);
    uint32_t left = take(g, slot);
    put(space, slot, cell);
    aoi__block_drop(&g->dir, left);
}

/* The page that it stands in follows where it is now. Whether it stays in its cell. */
static bool follow(struct aoi_space *space, uint32_t slot)
{
    struct grid *g = grid_of(space);
    const struct aoi__hot *h = &space->hot[slot];
    int32_t cell[3];
    cell_at(g, h->pos, cell);
    if (memcmp(cell, page_of(g, slot)->at, sizeof cell) == 0) {
        aoi__page_write(&g->dir, page_of(g, slot), g->dir.home.at[slot].place, h->pos, h->extra);
        return true;
    }
    replace(space, slot, cell);
    return false;
}

static void grid_move(struct aoi_space *space, uint32_t slot, const float from[3])
{
    (void)from;
    follow(space, slot);
}

#define AHEAD 12 /* entities of which what is to be read is fetched beforehand */

FETCHING void fetch_page(const struct grid *g, uint32_t slot)
{
    __builtin_prefetch(page_of(g, slot), 1);
    __builtin_prefetch(&page_of(g, slot)->at);
}

FETCHING void fetch_place(const struct grid *g, uint32_t slot)
{
    const struct aoi__page *page = page_of(g, slot);
    const float *x = page->x + g->dir.home.at[slot].place;
    __builtin_prefetch(x, 1);
    __builtin_prefetch(x + page->cap, 1);
}

/* Whether the page holds at the place what hot does. */
static inline bool stands(const struct grid *g, const struct aoi__page *page, uint32_t place, const struct aoi__hot *h)
{
    const float *x = page->x + place;
    if (memcmp(x, &h->pos[0], sizeof *x) != 0 || memcmp(x + page->cap, &h->pos[1], sizeof *x) != 0) return false;
    if (g->dir.dims == 3 && memcmp(x + 2 * page->cap, &h->pos[2], sizeof *x) != 0) return false;
    return !g->dir.extra || aoi__page_extra(page, g->dir.dims)[place] == h->extra;
}

/* Whether the entity is better off at a lower place of its page, which half a look would do for. All who were told of it have to find it again, but look for that once. */
static inline bool stands_high(const struct aoi__page *page, uint32_t place)
{
    return place >= AOI__HALF && (uint32_t)page->busy != UINT32_MAX && __builtin_popcountll(page->used) <= AOI__HALF;
}

static uint32_t grid_settle(struct aoi_space *space, uint32_t *slot, uint32_t n)
{
    struct grid *g = grid_of(space);
    uint32_t moved = 0, dims = space->dims;
    for (uint32_t i = 0; i < n; i++) {
        if (i + 2 * AHEAD < n) fetch_page(g, slot[i + 2 * AHEAD]);
        if (i + AHEAD < n) fetch_place(g, slot[i + AHEAD]);
        struct aoi__home home = g->dir.home.at[slot[i]];
        struct aoi__hot *h = &space->hot[slot[i]];
        struct aoi__page *page = aoi__page_touch(&g->dir, home.page);
        if (stands(g, page, home.place, h)) continue;
        h->stamp = space->serial;
        slot[moved++] = slot[i];
        bool stays = aoi__inside(h->pos, page->lo, page->hi, dims);
        if (stays && !stands_high(page, home.place)) {
            aoi__page_write(&g->dir, page, home.place, h->pos, h->extra);
        } else {
            const int32_t cell[3] = {page->at[0], page->at[1], page->at[2]};
            if (stays)
                replace(space, slot[i], cell);
            else
                stays = follow(space, slot[i]);
            home = g->dir.home.at[slot[i]];
            page = aoi__page_touch(&g->dir, home.page);
        }
        if (stays && page->moved == 0) mark_changed(g, page->block, page->bit, page->any); /* once for all that move here */
        page->moved |= (uint64_t)1 << home.place;
    }
    return moved;
}

static void grid_fetch(const struct aoi_space *space, uint32_t slot, uint32_t level)
{
    const struct grid *g = space->index;
    if (slot >= g->dir.home.n || g->dir.home.at[slot].page == AOI__NOWHERE) return;
    if (level == 0)
        fetch_page(g, slot);
    else
        fetch_place(g, slot);
}

static void grid_where(const struct aoi_space *space, uint32_t slot, float pos[3], uint32_t *extra)
{
    const struct grid *g = grid_of(space);
    const struct aoi__page *page = page_of(g, slot);
    uint32_t place = g->dir.home.at[slot].place;
    pos[2] = 0;
    for (uint32_t a = 0; a < space->dims; a++) pos[a] = page->x[(size_t)a * page->cap + place];
    *extra = g->dir.extra ? aoi__page_extra(page, space->dims)[place] : 0;
}

/* ------------------------------------------------------------------------------------------------------------- watches */

static void link_block(struct grid *g, uint32_t watch, const int32_t cell[3])
{
    struct area *area = &g->areas.at[watch];
    uint32_t b = aoi__block_get(&g->dir, cell);
    struct aoi__block *block = &g->dir.block.at[b];
    uint64_t mask = aoi__cell_mask(&g->dir, block, area->lo, area->hi);
    *pool_array_add(g->dir.pool, &area->links) = (struct link){.block = b, .entry = block->entries.n};
    *pool_array_add(g->dir.pool, &block->entries) = (struct aoi__entry){.mask = mask, .watch = watch, .link = area->links.n - 1};
}

static void link_all(struct grid *g, uint32_t watch)
{
    const struct area *area = &g->areas.at[watch];
    int32_t edge = 1 << g->dir.shift, cell[3];
    for (cell[2] = area->lo[2] & -edge; cell[2] <= area->hi[2]; cell[2] += edge)
        for (cell[1] = area->lo[1] & -edge; cell[1] <= area->hi[1]; cell[1] += edge)
            for (cell[0] = area->lo[0] & -edge; cell[0] <= area->hi[0]; cell[0] += edge) link_block(g, watch, cell);
}

static void unlink_all(struct grid *g, struct area *area)
{
    for (uint32_t i = 0; i < area->links.n; i++) {
        struct link l = area->links.at[i];
        struct aoi__block *block = &g->dir.block.at[l.block];
        array_swap_remove(&block->entries, l.entry);
        if (l.entry < block->entries.n) {
            const struct aoi__entry *moved = &block->entries.at[l.entry];
            g->areas.at[moved->watch].links.at[moved->link].entry = l.entry;
        }
        aoi__block_drop(&g->dir, l.block);
    }
    area->links.n = 0;
}

/* If the new area touches the same blocks, only the masks change. */
static bool relink(struct grid *g, const struct area *area, const int32_t lo[3], const int32_t hi[3])
{
    for (uint32_t a = 0, s = g->dir.shift; a < 3; a++)
        if (lo[a] >> s != area->lo[a] >> s || hi[a] >> s != area->hi[a] >> s) return false;
    for (uint32_t i = 0; i < area->links.n; i++) {
        struct aoi__block *block = &g->dir.block.at[area->links.at[i].block];
        block->entries.at[area->links.at[i].entry].mask = aoi__cell_mask(&g->dir, block, lo, hi);
    }
    return true;
}

static void leave_wide(struct grid *g, struct area *area)
{
    uint32_t i = area->at;
    array_swap_remove(&g->wide, i);
    if (i < g->wide.n) g->areas.at[g->wide.at[i]].at = i;
    area->wide = false;
    memset(&area->links, 0, sizeof area->links);
}

static void grid_watch_clear(struct aoi_space *space, uint32_t watch)
{
    struct grid *g = grid_of(space);
    if (watch >= g->areas.n) return;
    struct area *area = &g->areas.at[watch];
    if (area->wide)
        leave_wide(g, area);
    else
        unlink_all(g, area);
    area->known = false;
}

/* How far a cell lies behind another, or that it is too far. */
static uint8_t behind(int32_t from, int32_t to)
{
    int64_t by = (int64_t)to - from;
    return by < 0 ? 0 : by < UINT8_MAX ? (uint8_t)by : UINT8_MAX;
}

/* The cells that lie wholly inside the box in which everything enters. (Between the outermost ones everything does; cells that end just where the box does, too.) */
static void find_inner(const struct aoi_space *space, const struct aoi__watch *w, const int32_t lo[3], const int32_t hi[3], uint8_t inner[2][3])
{
    const struct grid *g = grid_of(space);
    bool sphere = w->slot != AOI__NONE && space->set.shape == AOI_SHAPE_SPHERE, cells = space->set.shape == AOI_SHAPE_CELLS;
    memset(inner, 0, 2 * sizeof *inner);
    for (uint32_t a = 0; a < space->dims; a++) {
        inner[0][a] = sphere ? UINT8_MAX : behind(lo[a], cell_of(g, cells ? nextafterf(w->base_lo[a], -INFINITY) : w->base_lo[a]) + 1);
        inner[1][a] = sphere ? UINT8_MAX : behind(cell_of(g, cells ? nextafterf(w->base_hi[a], INFINITY) : w->base_hi[a]) - 1, hi[a]);
    }
}

/* False: there are none, or a margin is so large that it is not known where they begin. */
static bool inner_cells(const struct area *area, int32_t lo[3], int32_t hi[3])
{
    for (uint32_t a = 0; a < 3; a++) {
        lo[a] = area->lo[a] + area->inner[0][a];
        hi[a] = area->hi[a] - area->inner[1][a];
        if (lo[a] > hi[a] || area->inner[0][a] == UINT8_MAX || area->inner[1][a] == UINT8_MAX) return false;
    }
    return true;
}

/* Where a unit may stand on an axis while p - half and p + half are in these two cells; nearer to their very edges only what is there already is narrowed. */
static void narrow_stay(const struct grid *g, float lo, float hi, float half, float *from, float *to)
{
    double edge = 1 / g->scale, low = cell_of(g, lo) * edge, high = cell_of(g, hi) * edge;
    double first = fmax(low + half, high - half), last = fmin(low + half, high - half) + edge;
    double slack = (fabs(first) + fabs(last) + half) * ROUNDING;
    *from = fmaxf(*from, (float)(first + slack));
    *to = fminf(*to, (float)(last - slack));
}

/* Where the unit may stand while both its boxes end in the same cells as now. */
static void set_stay(const struct aoi_space *space, struct aoi__watch *w)
{
    const struct grid *g = grid_of(space);
    float radius = space->own[w->slot].radius;
    for (uint32_t a = 0; a < space->dims; a++) {
        w->stay_lo[a] = -INFINITY;
        w->stay_hi[a] = INFINITY;
        narrow_stay(g, w->base_lo[a], w->base_hi[a], radius, &w->stay_lo[a], &w->stay_hi[a]);
        if (w->margin > 0) narrow_stay(g, w->lo[a], w->hi[a], radius + w->margin, &w->stay_lo[a], &w->stay_hi[a]);
    }
}

static void watch_moved(struct aoi_space *space, uint32_t watch)
{
    struct grid *g = grid_of(space);
    struct aoi__watch *w = &space->watches.at[watch];
    int32_t lo[3] = {0}, hi[3] = {0};
    cell_at(g, w->lo, lo);
    cell_at(g, w->hi, hi);
    while (g->areas.n <= watch) *array_add(&g->areas) = (struct area){0};
    struct area *area = &g->areas.at[watch];
    uint8_t inner[2][3];
    find_inner(space, w, lo, hi, inner);
    bool same = area->known && memcmp(area->lo, lo, sizeof lo) == 0 && memcmp(area->hi, hi, sizeof hi) == 0;
    if (!same || memcmp(area->inner, inner, sizeof inner) != 0) pages_stale(space, watch);
    memcpy(area->inner, inner, sizeof inner);
    if (same) return;
    bool same_blocks = area->known && !area->wide && relink(g, area, lo, hi);
    if (!same_blocks) grid_watch_clear(space, watch);
    memcpy(area->lo, lo, sizeof lo);
    memcpy(area->hi, hi, sizeof hi);
    area->known = true;
    if (same_blocks) return;
    w->coverable = true;
    if (aoi__blocks_count(&g->dir, lo, hi) > WIDE_BLOCKS) {
        pool_array_clear(g->dir.pool, &area->links);
        area->wide = true;
        area->at = g->wide.n;
        *array_add(&g->wide) = watch;
    } else {
        link_all(g, watch);
    }
}

static void grid_watch_set(struct aoi_space *space, uint32_t watch)
{
    struct aoi__watch *w = &space->watches.at[watch];
    watch_moved(space, watch);
    if (w->slot != AOI__NONE && space->set.shape != AOI_SHAPE_CELLS) set_stay(space, w); /* of cells, the very edges matter */
}

static void grid_watch_fetch(const struct aoi_space *space, uint32_t watch, uint32_t level)
{
    const struct grid *g = grid_of(space);
    if (watch >= g->areas.n) return;
    const struct area *area = &g->areas.at[watch];
    if (level == 0) {
        __builtin_prefetch(area, 1);
        __builtin_prefetch(&area->links, 1);
    } else if (level == 1 && !area->wide) {
        __builtin_prefetch(area->links.at);
    } else if (!area->wide) {
        for (uint32_t i = 0; i < area->links.n; i++)
            __builtin_prefetch(&g->dir.block.at[area->links.at[i].block].entries.at[area->links.at[i].entry], 1);
    }
}

/* ------------------------------------------------------------------------------------------------------------- finding */

/* Appends what lies in the box in those cells of the block that the mask names; it may leave out what has none of the layers. */
static void scan_block(const struct grid *g, const struct aoi__block *block, uint64_t mask, uint32_t layers, const float lo[3], const float hi[3],
                       aoi__slots *out)
{
    for (mask &= block->full; mask != 0; mask &= mask - 1) {
        for (uint32_t p = aoi__page_first(block, (uint32_t)__builtin_ctzll(mask)); p != AOI__NONE; p = g->dir.page.at[p].next) {
            const struct aoi__page *page = &g->dir.page.at[p];
            if (layers != 0 && !(page->any & layers)) continue;
            array_reserve(out, (size_t)out->n + page->n + AOI__LANES);
            out->n += g->scan(page->x, aoi__page_slots(page, g->dir.dims), page->cap, page->n, lo, hi, out->at + out->n);
        }
    }
}

/* Leaves in near the blocks that a box touches, and in first and last the corners of its cells. */
static void find_near(struct grid *g, const float lo[3], const float hi[3], int32_t first[3], int32_t last[3])
{
    cell_at(g, lo, first);
    cell_at(g, hi, last);
    g->near.n = 0;
    aoi__blocks_in(&g->dir, first, last, &g->near);
}

static void grid_scan(struct aoi_space *space, const float lo[3], const float hi[3], uint32_t layers, aoi__slots *out)
{
    struct grid *g = grid_of(space);
    int32_t first[3], last[3];
    find_near(g, lo, hi, first, last);
    for (uint32_t i = 0; i < g->near.n; i++) {
        const struct aoi__block *block = &g->dir.block.at[g->near.at[i]];
        if (block->full == 0 || (layers != 0 && !(block->layers & layers))) continue;
        scan_block(g, block, aoi__cell_mask(&g->dir, block, first, last), layers, lo, hi, out);
    }
}

/* Takes the slot out of out[from ..], if it is there. */
static void exclude(aoi__slots *out, uint32_t from, uint32_t slot)
{
    for (uint32_t i = from; i < out->n; i++) {
        if (out->at[i] != slot) continue;
        array_swap_remove(out, i);
        return;
    }
}

static void grid_gather(struct aoi_space *space, uint32_t watch, uint32_t mask, const float lo[3], const float hi[3], aoi__slots *out)
{
    struct grid *g = grid_of(space);
    const struct aoi__watch *w = &space->watches.at[watch];
    const struct area *area = &g->areas.at[watch];
    uint32_t start = out->n;
    bool large = w->slot == AOI__NONE || (space->cold[w->slot].flags & AOI__LARGE), whole = lo == w->lo && hi == w->hi;
    uint32_t own = large ? AOI__NONE : page_of(g, w->slot)->block;
    int32_t first[3], last[3];
    if (area->wide) {
        grid_scan(space, lo, hi, mask, out);
        if (own != AOI__NONE) exclude(out, start, w->slot);
        return;
    }
    if (!whole) {
        cell_at(g, lo, first);
        cell_at(g, hi, last);
    }
    for (uint32_t i = 0; i < area->links.n; i++) {
        struct link l = area->links.at[i];
        const struct aoi__block *block = &g->dir.block.at[l.block];
        uint32_t from = out->n;
        if (!(block->layers & mask) || (!whole && !aoi__block_touches(&g->dir, block, first, last))) continue;
        uint64_t cells = block->entries.at[l.entry].mask & (whole ? UINT64_MAX : aoi__cell_mask(&g->dir, block, first, last));
        scan_block(g, block, cells, mask, lo, hi, out);
        if (l.block == own) exclude(out, from, w->slot);
    }
}

/* Whether two boxes of cells share a cell, and this block is the one of their first shared cell: so that a watch in several blocks is named once. */
static bool first_shared(const struct grid *g, const struct aoi__block *block, const struct area *area, const int32_t lo[3], const int32_t hi[3])
{
    for (uint32_t a = 0; a < 3; a++) {
        int32_t first = area->lo[a] > lo[a] ? area->lo[a] : lo[a];
        if (first > hi[a] || first > area->hi[a] || first >> g->dir.shift != block->place.at[a]) return false;
    }
    return true;
}

static bool boxes_touch(const struct aoi__watch *w, const float lo[3], const float hi[3], uint32_t dims)
{
    for (uint32_t a = 0; a < dims; a++)
        if (!(w->lo[a] <= hi[a] && lo[a] <= w->hi[a])) return false;
    return true;
}

static void grid_watching(struct aoi_space *space, const float lo[3], const float hi[3], aoi__slots *out)
{
    struct grid *g = grid_of(space);
    int32_t first[3], last[3];
    find_near(g, lo, hi, first, last);
    for (uint32_t i = 0; i < g->near.n; i++) {
        const struct aoi__block *block = &g->dir.block.at[g->near.at[i]];
        for (uint32_t k = 0; k < block->entries.n; k++) {
            uint32_t watch = block->entries.at[k].watch;
            if (!first_shared(g, block, &g->areas.at[watch], first, last)) continue;
            if (boxes_touch(&space->watches.at[watch], lo, hi, space->dims)) *array_add(out) = watch;
        }
    }
    for (uint32_t i = 0; i < g->wide.n; i++)
        if (boxes_touch(&space->watches.at[g->wide.at[i]], lo, hi, space->dims)) *array_add(out) = g->wide.at[i];
}

/* ------------------------------------------------------------------------------------------------------------- changes */

static void grid_notify(struct aoi_space *space, uint32_t slot, const float from[3], uint32_t layers, uint32_t what)
{
    struct grid *g = grid_of(space);
    struct aoi__page *page = aoi__page_touch(&g->dir, g->dir.home.at[slot].page);
    uint64_t bit = (uint64_t)1 << g->dir.home.at[slot].place;
    if (what & AOI__MOVED) page->moved |= bit;
    if (what & AOI__STATE) page->state |= bit;
    mark_changed(g, page->block, page->bit, layers);
    if (aoi__inside(from, page->lo, page->hi, g->dir.dims)) return; /* it was in the same cell */
    int32_t cell[3];
    cell_at(g, from, cell);
    uint32_t b = aoi__block_find(&g->dir, cell);
    if (b != AOI__NONE) mark_changed(g, b, aoi__cell_bit(&g->dir, cell), layers); /* else nobody watches there */
}

/* Marks the cells of blocks in which there are watches at all; what is watched widely is concerned by anything. */
static void grid_disturb(struct aoi_space *space, const float lo[3], const float hi[3])
{
    struct grid *g = grid_of(space);
    int32_t first[3], last[3];
    find_near(g, lo, hi, first, last);
    for (uint32_t i = 0; i < g->near.n; i++) {
        struct aoi__block *block = &g->dir.block.at[g->near.at[i]];
        if (block->entries.n == 0) continue;
        if (block->changed == 0) *array_add(&g->changed) = g->near.at[i];
        block->changed |= aoi__cell_mask(&g->dir, block, first, last);
        block->changed_layers = UINT32_MAX;
        block->keep = true;
    }
    g->wide_layers = UINT32_MAX;
}

static void grid_relayer(struct aoi_space *space, uint32_t slot)
{
    struct grid *g = grid_of(space);
    struct aoi__page *page = page_of(g, slot);
    page->any |= space->hot[slot].layers;
    page->all &= space->hot[slot].layers;
    g->dir.block.at[page->block].layers |= space->hot[slot].layers;
}

static void dirty_if(struct aoi_space *space, uint32_t watch, uint32_t layers)
{
    if (!aoi__watch_is_dirty(space, watch) && space->watches.at[watch].mask & layers) aoi__watch_dirty(space, watch);
}

/* The watches that changes in the block concern. */
static void dirty_in(struct aoi_space *space, const struct aoi__block *block)
{
    for (uint32_t k = 0; k < block->entries.n; k++) {
        if (k + AHEAD < block->entries.n) __builtin_prefetch(&space->watches.at[block->entries.at[k + AHEAD].watch].mask);
        if (block->entries.at[k].mask & block->changed) dirty_if(space, block->entries.at[k].watch, block->changed_layers);
    }
}

static void grid_resolve(struct aoi_space *space)
{
    struct grid *g = grid_of(space);
    uint32_t layers = g->wide_layers;
    if (g->wide_fresh) wide_stale(space);
    g->wide_fresh = false;
    bool all = aoi__all_watches_dirty(space); /* as when all units move */
    for (uint32_t i = 0; i < g->changed.n; i++) {
        struct aoi__block *block = &g->dir.block.at[g->changed.at[i]];
        if (!all) dirty_in(space, block);
        layers |= block->changed_layers;
        block->changed = 0;
        block->changed_layers = 0;
        block->keep = false;
        aoi__block_drop(&g->dir, g->changed.at[i]);
    }
    for (uint32_t i = 0; i < g->wide.n; i++) dirty_if(space, g->wide.at[i], layers);
    g->changed.n = 0;
    g->wide_layers = 0;
}

static struct aoi__blocks *grid_pages(const struct aoi_space *space)
{
    return &grid_of(space)->dir;
}

/* Appends the pages of those cells of a block that the mask names. */
static void list_pages(const struct grid *g, const struct aoi__block *block, uint64_t mask, aoi__slots *out)
{
    for (mask &= block->have; mask != 0; mask &= mask - 1)
        for (uint32_t p = aoi__page_first(block, (uint32_t)__builtin_ctzll(mask)); p != AOI__NONE; p = g->dir.page.at[p].next) *array_add(out) = p;
}

/* Of what is near, the i-th block is looked at: of a huge box all lie far away in memory, and each step tells where the next one is. */
FETCHING void fetch_near(const struct grid *g, uint32_t i)
{
    const uint32_t *near = g->near.at, n = g->near.n;
    if (i + 12 < n) {
        const struct aoi__block *block = &g->dir.block.at[near[i + 12]];
        __builtin_prefetch(block);
        __builtin_prefetch(&block->rank);
        __builtin_prefetch(&block->cells);
    }
    if (i + 8 < n) __builtin_prefetch(g->dir.block.at[near[i + 8]].cells.at);
    if (i + 4 >= n) return;
    const aoi__slots *cells = &g->dir.block.at[near[i + 4]].cells;
    for (uint32_t k = 0; k < cells->n && k < 4; k++) __builtin_prefetch(&g->dir.page.at[cells->at[k]].next);
}

/* The cells of a block that lie wholly inside the area. */
static uint64_t inner_mask(const struct grid *g, const struct aoi__block *block, const struct area *area)
{
    int32_t lo[3], hi[3];
    if (!inner_cells(area, lo, hi) || !aoi__block_touches(&g->dir, block, lo, hi)) return 0;
    return aoi__cell_mask(&g->dir, block, lo, hi);
}

/* Of a watch that is not registered: the blocks are looked up. */
static void pages_of_wide(struct grid *g, const struct area *area, aoi__slots *out, uint32_t *border)
{
    g->near.n = 0;
    aoi__blocks_in(&g->dir, area->lo, area->hi, &g->near);
    for (int inner = 0; inner < 2; inner++) {
        for (uint32_t i = 0; i < g->near.n; i++) {
            const struct aoi__block *block = &g->dir.block.at[g->near.at[i]];
            fetch_near(g, i);
            uint64_t mask = aoi__cell_mask(&g->dir, block, area->lo, area->hi), in = inner_mask(g, block, area);
            list_pages(g, block, mask & (inner ? in : ~in), out);
        }
        if (!inner) *border = out->n;
    }
}

static void grid_pages_of(struct aoi_space *space, uint32_t watch, aoi__slots *out, uint32_t *border)
{
    struct grid *g = grid_of(space);
    const struct area *area = &g->areas.at[watch];
    if (area->wide) {
        pages_of_wide(g, area, out, border);
        return;
    }
    for (int inner = 0; inner < 2; inner++) {
        for (uint32_t i = 0; i < area->links.n; i++) {
            const struct aoi__block *block = &g->dir.block.at[area->links.at[i].block];
            uint64_t mask = block->entries.at[area->links.at[i].entry].mask, in = inner_mask(g, block, area);
            list_pages(g, block, mask & (inner ? in : ~in), out);
        }
        if (!inner) *border = out->n;
    }
}

#define FEW_NEAR 8 /* blocks: to tell inner pages from others, or to fetch anything, costs more than it saves */

static bool grid_pages_in(struct aoi_space *space, const float lo[3], const float hi[3], uint32_t layers, aoi__slots *border, aoi__slots *inner)
{
    struct grid *g = grid_of(space);
    int32_t first[3], last[3], lo_in[3] = {0}, hi_in[3] = {0};
    find_near(g, lo, hi, first, last);
    bool all = g->near.n == g->dir.block.n - g->dir.free_blocks.n, many = g->near.n > FEW_NEAR, any_in = many;
    for (uint32_t a = 0; a < g->dir.dims && many; a++) { /* who stands there has passed lo, and not reached hi */
        lo_in[a] = first[a] + 1;
        hi_in[a] = last[a] - 1;
        any_in &= lo_in[a] <= hi_in[a];
    }
    for (uint32_t i = 0; i < g->near.n; i++) {
        const struct aoi__block *block = &g->dir.block.at[g->near.at[i]];
        if (many) fetch_near(g, i);
        uint64_t mask = aoi__cell_mask(&g->dir, block, first, last);
        all &= (block->full & ~mask) == 0;
        if (block->full == 0 || (layers != 0 && !(block->layers & layers))) continue;
        mask &= block->full;
        if (any_in && aoi__block_touches(&g->dir, block, lo_in, hi_in)) {
            uint64_t in = aoi__cell_mask(&g->dir, block, lo_in, hi_in);
            list_pages(g, block, mask & in, inner);
            mask &= ~in;
        }
        list_pages(g, block, mask, border);
    }
    return all;
}

static void grid_flushed(struct aoi_space *space)
{
    if (aoi__blocks_next_window(&grid_of(space)->dir)) wide_stale(space); /* they are not registered in blocks, and do not keep them */
}

static void grid_ahead(struct aoi_space *space)
{
    aoi__blocks_ahead(&grid_of(space)->dir);
}

/* ------------------------------------------------------------------------------------------------------------- life and checks */

static void grid_init(struct aoi_space *space)
{
    struct grid *g = mem_zalloc(sizeof *g);
    g->scale = 1 / space->set.cell_size;
    g->scan = aoi__scan_pick(space->dims);
    g->dir.dims = space->dims;
    g->dir.extra = space->set.extra;
    g->dir.pool = &space->pool;
    g->dir.window = 1;
    g->dir.shift = space->dims == 2 ? 3 : 2;
    space->index = g;
}

static void grid_clear(struct aoi_space *space)
{
    struct grid *g = grid_of(space);
    for (uint32_t w = 0; w < g->areas.n; w++)
        if (!g->areas.at[w].wide) pool_array_clear(&space->pool, &g->areas.at[w].links);
    aoi__blocks_clear(&g->dir);
    array_clear(&g->areas);
    array_clear(&g->wide);
    array_clear(&g->changed);
    array_clear(&g->near);
    free(g);
}

static uint64_t grid_bytes(const struct aoi_space *space)
{
    const struct grid *g = grid_of(space);
    uint64_t bytes = sizeof *g + aoi__blocks_bytes(&g->dir);
    bytes += (uint64_t)g->areas.cap * sizeof *g->areas.at + (uint64_t)(g->wide.cap + g->changed.cap + g->near.cap) * sizeof(uint32_t);
    return bytes;
}

static uint32_t validate_page(const struct aoi_space *space, uint32_t p)
{
    const struct grid *g = grid_of(space);
    const struct aoi__page *page = &g->dir.page.at[p];
    for (uint64_t m = page->used; m != 0; m &= m - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(m), slot = aoi__page_slots(page, space->dims)[i];
        const struct aoi__hot *h = &space->hot[slot];
        bool moving = aoi__moving(space, slot);
        float pos[3] = {0};
        int32_t at[3];
        for (uint32_t a = 0; a < space->dims; a++) pos[a] = page->x[(size_t)a * page->cap + i];
        cell_at(g, pos, at);
        CHECK((h->layers & ~g->dir.block.at[page->block].layers) == 0 && (h->layers & ~page->any) == 0 && (page->all & ~h->layers) == 0);
        CHECK(aoi__alive(space, slot) && g->dir.home.at[slot].page == p && g->dir.home.at[slot].place == i);
        CHECK(aoi__block_find(&g->dir, at) == page->block && aoi__cell_bit(&g->dir, at) == page->bit);
        CHECK(aoi__page_id(page, space->dims, i) == h->id && (!g->dir.extra || moving || aoi__page_extra(page, space->dims)[i] == h->extra));
        CHECK(moving || memcmp(pos, h->pos, sizeof pos) == 0);
    }
    return (uint32_t)__builtin_popcountll(page->used);
}

static void validate_watch(const struct aoi_space *space, uint32_t watch)
{
    const struct grid *g = grid_of(space);
    const struct aoi__watch *w = &space->watches.at[watch];
    bool known = watch < g->areas.n && g->areas.at[watch].known;
    CHECK(known == w->active);
    if (!known) return;
    const struct area *area = &g->areas.at[watch];
    int32_t lo[3] = {0}, hi[3] = {0};
    cell_at(g, w->lo, lo);
    cell_at(g, w->hi, hi);
    uint8_t inner[2][3];
    find_inner(space, w, lo, hi, inner);
    CHECK(memcmp(lo, area->lo, sizeof lo) == 0 && memcmp(hi, area->hi, sizeof hi) == 0 && memcmp(inner, area->inner, sizeof inner) == 0);
    if (area->wide) {
        CHECK(g->wide.at[area->at] == watch);
        return;
    }
    CHECK(area->links.n == aoi__blocks_count(&g->dir, lo, hi));
    for (uint32_t i = 0; i < area->links.n; i++) {
        const struct aoi__block *block = &g->dir.block.at[area->links.at[i].block];
        const struct aoi__entry *entry = &block->entries.at[area->links.at[i].entry];
        CHECK(entry->watch == watch && entry->link == i && entry->mask == aoi__cell_mask(&g->dir, block, lo, hi));
    }
}

static void grid_validate(const struct aoi_space *space)
{
    const struct grid *g = grid_of(space);
    uint64_t entities = 0, entries = 0, links = 0;
    aoi__blocks_validate(&g->dir);
    for (uint32_t b = 0; b < g->dir.block.n; b++) {
        const struct aoi__block *block = &g->dir.block.at[b];
        CHECK((block->changed != 0) == block->keep);
        entries += block->entries.n;
        for (uint64_t m = block->have; m != 0; m &= m - 1) {
            for (uint32_t p = aoi__page_first(block, (uint32_t)__builtin_ctzll(m)); p != AOI__NONE; p = g->dir.page.at[p].next)
                entities += validate_page(space, p);
        }
    }
    for (uint32_t w = 0; w < space->watches.n; w++) validate_watch(space, w);
    for (uint32_t w = 0; w < g->areas.n; w++) links += g->areas.at[w].wide ? 0 : g->areas.at[w].links.n;
    CHECK(entities == space->entity_n - space->large_n && entries == links);
}

const struct aoi__index_ops aoi__grid_ops = {
    .name = "grid",
    .init = grid_init,
    .clear = grid_clear,
    .insert = grid_insert,
    .erase = grid_erase,
    .move = grid_move,
    .where = grid_where,
    .fetch = grid_fetch,
    .settle = grid_settle,
    .watch_set = grid_watch_set,
    .watch_fetch = grid_watch_fetch,
    .watch_clear = grid_watch_clear,
    .gather = grid_gather,
    .notify = grid_notify,
    .disturb = grid_disturb,
    .relayer = grid_relayer,
    .resolve = grid_resolve,
    .pages = grid_pages,
    .pages_of = grid_pages_of,
    .pages_in = grid_pages_in,
    .flushed = grid_flushed,
    .ahead = grid_ahead,
    .watching = grid_watching,
    .bytes = grid_bytes,
    .validate = grid_validate,
};
