/* grid.c: the grid index: cells in sparse blocks, watched by bit masks.
 *
 * Space is cut into cells, and 64 cells (8 x 8 in 2D, 4 x 4 x 4 in 3D) make a block. Blocks exist only where there are entities or watches; they are found by a hash
 * of their coordinates. A block keeps the cells that it has seen, compactly, and masks with a bit for each of its 64 places: which cells hold
 * entities, and in which something changed. A watch is registered in every block that it touches, with the mask of the cells that it touches there. So
 * the flush finds the watches that a change concerns by an AND per registered watch, and a watch finds its cells without hashing.
 *
 * A watch over more than WIDE_BLOCKS blocks is not registered but kept in a list: any change concerns it, and it walks the blocks that exist.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/scan.h"
#include "core/space.h"

#define WIDE_BLOCKS 256 /* a registration costs about 50 bytes and as many ns: more than that is not worth it */

/* Entities of one cell, as columns in one allocation: x[cap], y[cap], z[cap] (3D only), slot[cap]. */
struct cell {
    uint32_t n, cap;
    float *x;
};

struct entry {
    uint64_t mask;        /* cells of the block that the watch touches */
    uint32_t watch, link; /* links[link] of the watch is the other end */
};

struct block {
    int32_t at[3];    /* block coordinates; z is 0 in 2D */
    uint32_t next;    /* of the same hash key */
    uint64_t have;    /* cells that exist in cells[] */
    uint64_t full;    /* those of them that hold an entity */
    uint64_t changed; /* cells in which something changed since the last flush */
    uint8_t rank[64]; /* place of a cell of have in cells[] */
    ARRAY(struct cell) cells;
    bool listed; /* in grid->changed */
    ARRAY(struct entry) entries;
};

struct link {
    uint32_t block, entry;
};

/* What the grid knows of a watch. */
struct area {
    bool known;
    uint32_t wide;        /* its place in grid->wide; AOI__NONE: it is registered by links */
    int32_t lo[3], hi[3]; /* cells, inclusive, when it was last set */
    ARRAY(struct link) links;
};

struct home {
    uint32_t cell;  /* block << 6 | bit */
    uint32_t place; /* in the cell */
};

struct grid {
    double scale;   /* coordinate to cell: 1 / edge */
    uint32_t shift; /* cell to block coordinates */
    aoi__scan_fn scan;
    ARRAY(struct block) blocks;
    aoi__slots free_blocks;
    struct idmap map;         /* key of block coordinates -> first block with that key */
    ARRAY(struct home) home;  /* by slot */
    ARRAY(struct area) areas; /* by watch */
    aoi__slots wide;          /* watches */
    aoi__slots changed;       /* blocks with changed != 0 */
    uint64_t cell_bytes;
};

static struct grid *grid_of(const struct aoi_space *space)
{
    return space->index;
}

/* ------------------------------------------------------------------------------------------------------------- coordinates */

/* Rounds where floor(v / size) might not, but monotonically, which is all that the grid needs: exact rules stand in the watches' boxes. Cells are at
 * most 2^24 * 64 = 2^30 from 0; a watch may reach further and is cut there. */
static int32_t cell_of(const struct grid *g, float v)
{
    double c = (double)v * g->scale;
    c = c < -0x1p30 ? -0x1p30 : c > 0x1p30 ? 0x1p30 : c;
    int32_t cell = (int32_t)c;
    return cell - (c < cell);
}

static void cell_at(const struct aoi_space *space, const float pos[3], int32_t cell[3])
{
    cell[2] = 0;
    for (uint32_t a = 0; a < space->dims; a++) cell[a] = cell_of(grid_of(space), pos[a]);
}

/* A block's bit for a cell: 3 bits of x and y in 2D, 2 bits of x, y and z in 3D. */
static uint32_t bit_of(const struct grid *g, const int32_t cell[3])
{
    uint32_t low = (1u << g->shift) - 1, s = g->shift;
    uint32_t bit = ((uint32_t)cell[1] & low) << s | ((uint32_t)cell[0] & low);
    return s == 3 ? bit : bit | ((uint32_t)cell[2] & low) << 2 * s;
}

static int32_t axis_of_bit(const struct grid *g, uint32_t bit, uint32_t axis)
{
    return (int32_t)(bit >> axis * g->shift & ((1u << g->shift) - 1));
}

static uint64_t key_of(const int32_t at[3])
{
    return (((uint64_t)(uint32_t)at[0] << 32 | (uint32_t)at[1]) ^ (uint64_t)(uint32_t)at[2] * 0x9E3779B97F4A7C15u) | (uint64_t)1 << 63;
}

/* The bits of the block's cells that lie in [lo, hi] (cell coordinates). */
static uint64_t mask_of(const struct grid *g, const int32_t at[3], const int32_t lo[3], const int32_t hi[3])
{
    uint32_t edge = 1u << g->shift, from[3], to[3];
    for (uint32_t a = 0; a < 3; a++) {
        int32_t first = at[a] * (int32_t)edge;
        from[a] = lo[a] > first ? (uint32_t)(lo[a] - first) : 0;
        to[a] = hi[a] < first + (int32_t)edge - 1 ? (uint32_t)(hi[a] - first) : edge - 1;
    }
    uint64_t row = (((uint64_t)1 << (to[0] - from[0] + 1)) - 1) << from[0], layer = 0, mask = 0;
    for (uint32_t y = from[1]; y <= to[1]; y++) layer |= row << y * edge;
    if (g->shift == 3) return layer;
    for (uint32_t z = from[2]; z <= to[2]; z++) mask |= layer << z * edge * edge;
    return mask;
}

/* ------------------------------------------------------------------------------------------------------------- blocks and cells */

static uint32_t block_find(const struct grid *g, const int32_t at[3])
{
    uint32_t b = idmap_get(&g->map, key_of(at));
    while (b != AOI__NONE && memcmp(g->blocks.at[b].at, at, sizeof g->blocks.at[b].at) != 0) b = g->blocks.at[b].next;
    return b;
}

static uint32_t block_get(struct grid *g, const int32_t at[3])
{
    uint32_t b = block_find(g, at);
    if (b != AOI__NONE) return b;
    if (g->free_blocks.n > 0) {
        b = g->free_blocks.at[--g->free_blocks.n];
    } else {
        b = g->blocks.n;
        array_add(&g->blocks);
        CHECK(b < UINT32_MAX >> 6);
    }
    uint64_t key = key_of(at);
    g->blocks.at[b] = (struct block){.at = {at[0], at[1], at[2]}, .next = idmap_get(&g->map, key)};
    idmap_put(&g->map, key, b);
    return b;
}

/* Frees the block if nothing is left in it. */
static void block_drop(struct grid *g, uint32_t b)
{
    struct block *block = &g->blocks.at[b];
    if (block->full != 0 || block->entries.n > 0 || block->listed) return;
    uint64_t key = key_of(block->at);
    uint32_t first = idmap_get(&g->map, key);
    if (first != b) {
        while (g->blocks.at[first].next != b) first = g->blocks.at[first].next;
        g->blocks.at[first].next = block->next;
    } else if (block->next != AOI__NONE) {
        idmap_put(&g->map, key, block->next);
    } else {
        idmap_remove(&g->map, key);
    }
    for (uint32_t i = 0; i < block->cells.n; i++) {
        g->cell_bytes -= block->cells.at[i].cap;
        free(block->cells.at[i].x);
    }
    array_clear(&block->cells);
    array_clear(&block->entries);
    block->have = 0;
    *array_add(&g->free_blocks) = b;
}

static struct cell *cell_in(const struct block *block, uint32_t bit)
{
    return &block->cells.at[block->rank[bit]];
}

static struct cell *cell_get(struct block *block, uint32_t bit)
{
    if (!(block->have >> bit & 1)) {
        block->have |= (uint64_t)1 << bit;
        block->rank[bit] = (uint8_t)block->cells.n;
        *array_add(&block->cells) = (struct cell){0};
    }
    return cell_in(block, bit);
}

/* The columns behind x. */
static float *cell_y(const struct cell *cell)
{
    return cell->x + cell->cap;
}

static float *cell_z(const struct cell *cell)
{
    return cell->x + 2 * (size_t)cell->cap;
}

static uint32_t *cell_slots(const struct cell *cell, uint32_t dims)
{
    return (uint32_t *)(void *)(cell->x + (size_t)dims * cell->cap);
}

/* Gives the cell another capacity of at least `need`, which is not less than its n. */
static void cell_resize(struct grid *g, struct cell *cell, uint32_t dims, uint32_t need)
{
    struct cell old = *cell;
    uint32_t cap = (need + AOI__LANES - 1) / AOI__LANES * AOI__LANES;
    g->cell_bytes += (uint64_t)cap - old.cap;
    cell->x = mem_alloc((size_t)cap * (dims + 1) * sizeof *cell->x);
    cell->cap = cap;
    for (uint32_t column = 0; column <= dims && old.n > 0; column++)
        memcpy(cell->x + (size_t)column * cap, old.x + (size_t)column * old.cap, old.n * sizeof *cell->x);
    free(old.x);
}

static void cell_write(const struct cell *cell, uint32_t dims, uint32_t place, const float pos[3])
{
    cell->x[place] = pos[0];
    cell_y(cell)[place] = pos[1];
    if (dims == 3) cell_z(cell)[place] = pos[2];
}

/* ------------------------------------------------------------------------------------------------------------- entities */

static void put(struct aoi_space *space, uint32_t slot, const int32_t cell_xyz[3])
{
    struct grid *g = grid_of(space);
    int32_t at[3] = {cell_xyz[0] >> g->shift, cell_xyz[1] >> g->shift, cell_xyz[2] >> g->shift};
    uint32_t b = block_get(g, at), bit = bit_of(g, cell_xyz);
    struct cell *cell = cell_get(&g->blocks.at[b], bit);
    if (cell->n == cell->cap) cell_resize(g, cell, space->dims, cell->cap + cell->cap / 2 + 1);
    g->blocks.at[b].full |= (uint64_t)1 << bit;
    cell_write(cell, space->dims, cell->n, space->hot[slot].pos);
    cell_slots(cell, space->dims)[cell->n] = slot;
    g->home.at[slot] = (struct home){.cell = b << 6 | bit, .place = cell->n++};
}

static void take(struct aoi_space *space, uint32_t slot)
{
    struct grid *g = grid_of(space);
    struct home home = g->home.at[slot];
    struct block *block = &g->blocks.at[home.cell >> 6];
    struct cell *cell = cell_in(block, home.cell & 63);
    uint32_t last = --cell->n, *slots = cell_slots(cell, space->dims);
    for (uint32_t column = 0; column < space->dims; column++) {
        float *v = cell->x + (size_t)column * cell->cap;
        v[home.place] = v[last];
    }
    slots[home.place] = slots[last];
    g->home.at[slots[last]].place = home.place;
    if (cell->n == 0) block->full &= ~((uint64_t)1 << (home.cell & 63));
    if (cell->cap >= 32 && cell->n < cell->cap / 4) cell_resize(g, cell, space->dims, cell->cap / 2);
}

static void grid_insert(struct aoi_space *space, uint32_t slot)
{
    struct grid *g = grid_of(space);
    int32_t cell[3];
    cell_at(space, space->hot[slot].pos, cell);
    array_reserve(&g->home, (size_t)slot + 1);
    if (g->home.n <= slot) g->home.n = slot + 1;
    put(space, slot, cell);
}

static void grid_erase(struct aoi_space *space, uint32_t slot)
{
    uint32_t b = grid_of(space)->home.at[slot].cell >> 6;
    take(space, slot);
    block_drop(grid_of(space), b);
}

static void grid_move(struct aoi_space *space, uint32_t slot, const float from[3])
{
    struct grid *g = grid_of(space);
    const float *to = space->hot[slot].pos;
    struct home home = g->home.at[slot];
    int32_t old_cell[3], new_cell[3];
    cell_at(space, from, old_cell);
    cell_at(space, to, new_cell);
    if (memcmp(old_cell, new_cell, sizeof old_cell) == 0) {
        cell_write(cell_in(&g->blocks.at[home.cell >> 6], home.cell & 63), space->dims, home.place, to);
        return;
    }
    take(space, slot);
    put(space, slot, new_cell);
    if (g->home.at[slot].cell >> 6 != home.cell >> 6) block_drop(g, home.cell >> 6);
}

/* ------------------------------------------------------------------------------------------------------------- watches */

static void unlink_all(struct grid *g, struct area *area)
{
    for (uint32_t i = 0; i < area->links.n; i++) {
        struct link l = area->links.at[i];
        struct block *block = &g->blocks.at[l.block];
        array_swap_remove(&block->entries, l.entry);
        if (l.entry < block->entries.n) {
            const struct entry *moved = &block->entries.at[l.entry];
            g->areas.at[moved->watch].links.at[moved->link].entry = l.entry;
        }
        block_drop(g, l.block);
    }
    area->links.n = 0;
}

static void leave_wide(struct grid *g, struct area *area)
{
    uint32_t i = area->wide;
    array_swap_remove(&g->wide, i);
    if (i < g->wide.n) g->areas.at[g->wide.at[i]].wide = i;
    area->wide = AOI__NONE;
}

static void grid_watch_clear(struct aoi_space *space, uint32_t watch)
{
    struct grid *g = grid_of(space);
    if (watch >= g->areas.n) return;
    struct area *area = &g->areas.at[watch];
    if (area->wide != AOI__NONE) leave_wide(g, area);
    unlink_all(g, area);
    area->known = false;
}

static void link_block(struct grid *g, uint32_t watch, const int32_t at[3])
{
    struct area *area = &g->areas.at[watch];
    uint32_t b = block_get(g, at);
    struct block *block = &g->blocks.at[b];
    *array_add(&area->links) = (struct link){.block = b, .entry = block->entries.n};
    *array_add(&block->entries) = (struct entry){.mask = mask_of(g, at, area->lo, area->hi), .watch = watch, .link = area->links.n - 1};
}

static uint64_t blocks_in(const struct grid *g, const int32_t lo[3], const int32_t hi[3])
{
    double n = 1; /* up to 2^84 */
    for (uint32_t a = 0; a < 3; a++) n *= (double)((hi[a] >> g->shift) - (lo[a] >> g->shift)) + 1;
    return n < 1e18 ? (uint64_t)n : UINT64_MAX;
}

/* The same blocks as before: only the masks change. */
static bool relink(struct grid *g, struct area *area, const int32_t lo[3], const int32_t hi[3])
{
    for (uint32_t a = 0; a < 3; a++)
        if (lo[a] >> g->shift != area->lo[a] >> g->shift || hi[a] >> g->shift != area->hi[a] >> g->shift) return false;
    for (uint32_t i = 0; i < area->links.n; i++) {
        struct block *block = &g->blocks.at[area->links.at[i].block];
        block->entries.at[area->links.at[i].entry].mask = mask_of(g, block->at, lo, hi);
    }
    return true;
}

static void grid_watch_set(struct aoi_space *space, uint32_t watch)
{
    struct grid *g = grid_of(space);
    const struct aoi__watch *w = &space->watches.at[watch];
    int32_t lo[3], hi[3];
    cell_at(space, w->lo, lo);
    cell_at(space, w->hi, hi);
    while (g->areas.n <= watch) *array_add(&g->areas) = (struct area){.wide = AOI__NONE};
    struct area *area = &g->areas.at[watch];
    if (area->known && memcmp(area->lo, lo, sizeof lo) == 0 && memcmp(area->hi, hi, sizeof hi) == 0) return;
    bool same_blocks = area->known && area->wide == AOI__NONE && relink(g, area, lo, hi);
    if (!same_blocks) grid_watch_clear(space, watch);
    memcpy(area->lo, lo, sizeof lo);
    memcpy(area->hi, hi, sizeof hi);
    if (same_blocks) return;
    area->known = true;
    if (blocks_in(g, lo, hi) > WIDE_BLOCKS) {
        area->wide = g->wide.n;
        *array_add(&g->wide) = watch;
        return;
    }
    int32_t at[3];
    for (at[2] = lo[2] >> g->shift; at[2] <= hi[2] >> g->shift; at[2]++)
        for (at[1] = lo[1] >> g->shift; at[1] <= hi[1] >> g->shift; at[1]++)
            for (at[0] = lo[0] >> g->shift; at[0] <= hi[0] >> g->shift; at[0]++) link_block(g, watch, at);
}

/* ------------------------------------------------------------------------------------------------------------- finding */

/* Appends what lies in the box in those cells of the block that the mask names. */
static void scan_block(const struct grid *g, const struct block *block, uint64_t mask, const float lo[3], const float hi[3], aoi__slots *out)
{
    for (mask &= block->full; mask != 0; mask &= mask - 1) {
        const struct cell *cell = cell_in(block, (uint32_t)__builtin_ctzll(mask));
        array_reserve(out, (size_t)out->n + cell->n + AOI__LANES);
        out->n += g->scan(cell->x, cell->cap, cell->n, lo, hi, out->at + out->n);
    }
}

/* Finds the blocks of a box by their coordinates, or among all blocks, whichever are fewer. */
static void grid_scan(struct aoi_space *space, const float lo[3], const float hi[3], aoi__slots *out)
{
    struct grid *g = grid_of(space);
    int32_t first[3], last[3], at[3];
    cell_at(space, lo, first);
    cell_at(space, hi, last);
    if (blocks_in(g, first, last) > g->blocks.n) {
        for (uint32_t b = 0; b < g->blocks.n; b++) {
            const struct block *block = &g->blocks.at[b];
            bool apart = block->full == 0;
            for (uint32_t a = 0; a < 3; a++) apart |= block->at[a] < first[a] >> g->shift || block->at[a] > last[a] >> g->shift;
            if (!apart) scan_block(g, block, mask_of(g, block->at, first, last), lo, hi, out);
        }
        return;
    }
    for (at[2] = first[2] >> g->shift; at[2] <= last[2] >> g->shift; at[2]++)
        for (at[1] = first[1] >> g->shift; at[1] <= last[1] >> g->shift; at[1]++)
            for (at[0] = first[0] >> g->shift; at[0] <= last[0] >> g->shift; at[0]++) {
                uint32_t b = block_find(g, at);
                if (b != AOI__NONE) scan_block(g, &g->blocks.at[b], mask_of(g, at, first, last), lo, hi, out);
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

static void grid_gather(struct aoi_space *space, uint32_t watch, aoi__slots *out)
{
    struct grid *g = grid_of(space);
    const struct aoi__watch *w = &space->watches.at[watch];
    const struct area *area = &g->areas.at[watch];
    uint32_t own = w->slot == AOI__NONE ? AOI__NONE : g->home.at[w->slot].cell >> 6;
    if (area->wide != AOI__NONE) {
        grid_scan(space, w->lo, w->hi, out);
        if (w->slot != AOI__NONE) exclude(out, 0, w->slot);
        return;
    }
    for (uint32_t i = 0; i < area->links.n; i++) {
        struct link l = area->links.at[i];
        const struct block *block = &g->blocks.at[l.block];
        uint32_t from = out->n;
        scan_block(g, block, block->entries.at[l.entry].mask, w->lo, w->hi, out);
        if (l.block == own) exclude(out, from, w->slot);
    }
}

/* ------------------------------------------------------------------------------------------------------------- changes */

static void mark_changed(struct grid *g, uint32_t b, uint32_t bit)
{
    struct block *block = &g->blocks.at[b];
    block->changed |= (uint64_t)1 << bit;
    if (block->listed) return;
    block->listed = true;
    *array_add(&g->changed) = b;
}

static void grid_notify(struct aoi_space *space, uint32_t slot, const float from[3])
{
    struct grid *g = grid_of(space);
    uint32_t home = g->home.at[slot].cell;
    mark_changed(g, home >> 6, home & 63);
    if (memcmp(from, space->hot[slot].pos, 3 * sizeof *from) == 0) return;
    int32_t cell[3];
    cell_at(space, from, cell);
    uint32_t b = block_find(g, (const int32_t[3]){cell[0] >> g->shift, cell[1] >> g->shift, cell[2] >> g->shift});
    if (b != AOI__NONE) mark_changed(g, b, bit_of(g, cell)); /* else nobody watches there */
}

static void grid_resolve(struct aoi_space *space)
{
    struct grid *g = grid_of(space);
    for (uint32_t i = 0; i < g->changed.n; i++) {
        struct block *block = &g->blocks.at[g->changed.at[i]];
        for (uint32_t k = 0; k < block->entries.n; k++)
            if (block->entries.at[k].mask & block->changed) aoi__watch_dirty(space, block->entries.at[k].watch);
        block->changed = 0;
        block->listed = false;
        block_drop(g, g->changed.at[i]);
    }
    if (g->changed.n > 0)
        for (uint32_t i = 0; i < g->wide.n; i++) aoi__watch_dirty(space, g->wide.at[i]);
    g->changed.n = 0;
}

/* ------------------------------------------------------------------------------------------------------------- life and checks */

static void grid_init(struct aoi_space *space)
{
    struct grid *g = mem_zalloc(sizeof *g);
    g->scale = 1 / space->set.cell_size;
    g->shift = space->dims == 2 ? 3 : 2;
    g->scan = aoi__scan_pick(space->dims);
    space->index = g;
}

static void grid_clear(struct aoi_space *space)
{
    struct grid *g = grid_of(space);
    for (uint32_t b = 0; b < g->blocks.n; b++) {
        struct block *block = &g->blocks.at[b];
        for (uint32_t i = 0; i < block->cells.n; i++) free(block->cells.at[i].x);
        array_clear(&block->cells);
        array_clear(&block->entries);
    }
    for (uint32_t w = 0; w < g->areas.n; w++) array_clear(&g->areas.at[w].links);
    array_clear(&g->blocks);
    array_clear(&g->free_blocks);
    array_clear(&g->home);
    array_clear(&g->areas);
    array_clear(&g->wide);
    array_clear(&g->changed);
    idmap_clear(&g->map);
    free(g);
}

static uint64_t grid_bytes(const struct aoi_space *space)
{
    const struct grid *g = grid_of(space);
    uint64_t bytes = sizeof *g + idmap_bytes(&g->map) + (uint64_t)g->blocks.cap * sizeof *g->blocks.at + (uint64_t)g->home.cap * sizeof *g->home.at +
                     (uint64_t)g->areas.cap * sizeof *g->areas.at + g->cell_bytes * (space->dims + 1) * sizeof(float);
    for (uint32_t b = 0; b < g->blocks.n; b++)
        bytes += (uint64_t)g->blocks.at[b].cells.cap * sizeof(struct cell) + (uint64_t)g->blocks.at[b].entries.cap * sizeof(struct entry);
    for (uint32_t w = 0; w < g->areas.n; w++) bytes += (uint64_t)g->areas.at[w].links.cap * sizeof(struct link);
    return bytes;
}

static uint32_t validate_block(const struct aoi_space *space, uint32_t b)
{
    const struct grid *g = grid_of(space);
    const struct block *block = &g->blocks.at[b];
    uint32_t entities = 0;
    CHECK((block->full & ~block->have) == 0 && (block->changed == 0 || block->listed));
    if (block->have != 0 || block->entries.n > 0) CHECK(block_find(g, block->at) == b);
    for (uint64_t m = block->have; m != 0; m &= m - 1) {
        uint32_t bit = (uint32_t)__builtin_ctzll(m);
        const struct cell *cell = cell_in(block, bit);
        CHECK(cell->n <= cell->cap && (cell->n > 0) == (block->full >> bit & 1));
        for (uint32_t i = 0; i < cell->n; i++) {
            uint32_t slot = cell_slots(cell, space->dims)[i];
            const float *pos = space->hot[slot].pos;
            CHECK(aoi__alive(space, slot) && g->home.at[slot].cell == (b << 6 | bit) && g->home.at[slot].place == i);
            CHECK(cell->x[i] == pos[0] && cell_y(cell)[i] == pos[1] && (space->dims == 2 || cell_z(cell)[i] == pos[2]));
            for (uint32_t a = 0; a < space->dims; a++) CHECK(cell_of(g, pos[a]) == block->at[a] * (1 << g->shift) + axis_of_bit(g, bit, a));
        }
        entities += cell->n;
    }
    for (uint32_t i = 0; i < block->entries.n; i++) {
        const struct entry *e = &block->entries.at[i];
        const struct link *l = &g->areas.at[e->watch].links.at[e->link];
        CHECK(space->watches.at[e->watch].active && l->block == b && l->entry == i);
        CHECK(e->mask == mask_of(g, block->at, g->areas.at[e->watch].lo, g->areas.at[e->watch].hi));
    }
    return entities;
}

static void grid_validate(const struct aoi_space *space)
{
    const struct grid *g = grid_of(space);
    uint32_t entities = 0;
    for (uint32_t b = 0; b < g->blocks.n; b++) entities += validate_block(space, b);
    CHECK(entities == space->entity_n);
    for (uint32_t w = 0; w < space->watches.n; w++) {
        const struct aoi__watch *watch = &space->watches.at[w];
        bool known = w < g->areas.n && g->areas.at[w].known;
        CHECK(known == watch->active);
        if (!known) continue;
        int32_t lo[3], hi[3];
        cell_at(space, watch->lo, lo);
        cell_at(space, watch->hi, hi);
        const struct area *area = &g->areas.at[w];
        CHECK(memcmp(lo, area->lo, sizeof lo) == 0 && memcmp(hi, area->hi, sizeof hi) == 0);
        if (area->wide == AOI__NONE)
            CHECK(area->links.n == blocks_in(g, lo, hi));
        else
            CHECK(area->links.n == 0 && g->wide.at[area->wide] == w);
    }
}

const struct aoi__index_ops aoi__grid_ops = {
    .name = "grid",
    .init = grid_init,
    .clear = grid_clear,
    .insert = grid_insert,
    .erase = grid_erase,
    .move = grid_move,
    .watch_set = grid_watch_set,
    .watch_clear = grid_watch_clear,
    .gather = grid_gather,
    .notify = grid_notify,
    .resolve = grid_resolve,
    .scan = grid_scan,
    .bytes = grid_bytes,
    .validate = grid_validate,
};
