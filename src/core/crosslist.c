/* crosslist.c: the index that keeps what every watch holds: markers in order on each axis, and the pairs that their crossings make and break.
 *
 * On each axis stand, in order, the place of every entity and the two boundaries of every active watch. Whenever an entity passes a boundary, or a
 * boundary an entity, that one pair is judged anew, on all axes, from the coordinates. Only full matches are stored. (The textbook counts matching
 * axes for every pair that matches on any: hundreds of millions of counts at 100,000 entities. To look at the other axes costs a few loads.)
 *
 * - A crossing is always between a place and a boundary, never between two of a kind, so the kinds have lists of their own on each axis, by the same
 *   coordinate: a sweep reads only what it may have to judge.
 * - Whether a pair was held, and is, follows from the coordinates before and after: no search is needed to know it, and no order among ties matters.
 *   A move that changes several axes judges a pair once, by where it came from and where it ends: at the first axis that kept it apart.
 * - What jumps over much is not swept: it lets go of what it no longer meets, and finds the rest in the slab: the interval of one axis, the best one,
 *   that has everything it can meet. The sweep and the slab are reckoned beforehand, and the cheaper one is taken.
 * - The slab of a place is every box that begins up to one box length before it. One huge box must not make this the whole axis for everybody, so
 *   boundaries are kept apart by the length of their box on the axis, in classes a factor of 8 wide, and each class knows its longest length.
 *
 * What the space tells of moves is taken note of, and settled before anything is read: a few move one by one, as above; where much moves, sweep.c
 * sorts the axes anew. Coordinates are kept as ordered integers (axis.h).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/crosslist.h"
#include "core/space.h"

#define NO_CLASS UINT8_MAX
static const double class_limit[AOI__CLASSES] = {1, 8, 64, 512, 4096, 32768, INFINITY}; /* lengths that are at most this */

/* Crossings reckoned below this are swept without reckoning the slab, which takes a few searches: the case of nearly every move. */
#define FEW 256
/* Where one marker in so many moves, all are sorted anew: to move one by itself takes about so many times longer. */
#define MANY 16

/* So many new watches do not wait for the flush: each takes some microseconds. */
#define FRESH 4096
/* A set is fetched into the cache so many watches before its turn. It takes 10 % off a flush. */
#define AHEAD 8

static const struct aoi__area no_area = {.lo = {UINT32_MAX}, .class = {NO_CLASS, NO_CLASS, NO_CLASS}};
static const uint32_t nowhere[3] = {0}; /* in no box: below -infinity */

static void order(uint32_t dims, const float from[3], uint32_t to[3])
{
    for (uint32_t a = 0; a < dims; a++) to[a] = aoi__order(from[a]);
}

static bool contains(const struct aoi__area *area, const uint32_t *p, uint32_t dims)
{
    bool in = (area->lo[0] <= p[0]) & (p[0] <= area->hi[0]) & (area->lo[1] <= p[1]) & (p[1] <= area->hi[1]);
    return dims == 2 ? in : in & (area->lo[2] <= p[2]) & (p[2] <= area->hi[2]);
}

/* First axis on which p is out of the area; dims: it is in. */
static uint32_t first_out(const struct aoi__area *area, const uint32_t *p, uint32_t dims)
{
    uint32_t a = 0;
    while (a < dims && area->lo[a] <= p[a] && p[a] <= area->hi[a]) a++;
    return a;
}

static bool bit(const uint64_t *bits, uint32_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

/* ------------------------------------------------------------------------------------------------------------- the lists */

static void slot_reserve(struct aoi__crosslist *x, uint32_t slot)
{
    aoi__pairs_reserve(&x->pairs, AOI__SLOT, slot);
    x->at = array__grow(x->at, &x->at_cap, (size_t)slot + 1, x->dims * sizeof *x->at);
    x->to = array__grow(x->to, &x->to_cap, (size_t)slot + 1, x->dims * sizeof *x->to);
    while (x->layers.n <= slot) *array_add(&x->layers) = 0;
}

static void watch_reserve(struct aoi__crosslist *x, uint32_t watch)
{
    CHECK(watch <= AOI__WHOSE);
    aoi__pairs_reserve(&x->pairs, AOI__WATCH, watch);
    while (x->area.n <= watch) *array_add(&x->area) = *array_add(&x->want) = no_area;
    while (x->active.n * 64 <= watch) *array_add(&x->active) = *array_add(&x->marked) = 0;
}

/* What rounding takes away, the slab adds again (see stab). */
double aoi__area_length(const struct aoi__area *area, uint32_t a)
{
    return area->lo[a] < area->hi[a] ? (double)aoi__unorder(area->hi[a]) - (double)aoi__unorder(area->lo[a]) : 0;
}

/* The class for a length. One that has a class keeps it down to half of what the class is for: the lengths of a moving box differ by rounding. */
static uint8_t class_for(double len, uint8_t now)
{
    if (now != NO_CLASS && len <= class_limit[now] && (now == 0 || len > class_limit[now - 1] / 2)) return now;
    uint8_t c = 0;
    while (len > class_limit[c]) c++;
    return c;
}

/* The two boundaries of a watch on one axis go from those of `old` to those of `area`, whose class on this axis is set here. */
static void bounds_move(struct aoi__crosslist *x, uint32_t watch, uint32_t a, const struct aoi__area *old, struct aoi__area *area)
{
    uint64_t from[2] = {aoi__marker(old->lo[a], AOI__LO | watch), aoi__marker(old->hi[a], AOI__HI | watch)};
    uint64_t to[2] = {aoi__marker(area->lo[a], AOI__LO | watch), aoi__marker(area->hi[a], AOI__HI | watch)};
    double len = area->active ? aoi__area_length(area, a) : 0;
    uint8_t was = old->class[a], c = area->active ? class_for(len, was) : NO_CLASS;
    area->class[a] = c;
    for (int side = 0; side < 2; side++) {
        if (c != was && was != NO_CLASS) aoi__axis_erase(&x->bound[a][was], from[side]);
        if (c == was && from[side] != to[side]) aoi__axis_move(&x->bound[a][c], from[side], to[side]);
    }
    if (c == NO_CLASS) return;
    if (x->bound[a][c].n == 0) x->reach[a][c] = 0;
    if (x->reach[a][c] < len) x->reach[a][c] = len;
    if (c == was) return;
    for (int side = 0; side < 2; side++) aoi__axis_insert(&x->bound[a][c], to[side]);
}

/* ------------------------------------------------------------------------------------------------------------- slabs */

/* The boundaries of a class among which stands the lo of every box of that class that touches p..q on axis a. */
static struct aoi__range stab(const struct aoi__crosslist *x, uint32_t a, uint32_t c, uint32_t p, uint32_t q)
{
    /* a box of a length that was rounded, seen from a place by a subtraction that is: a thousandth and the next float below cover both */
    double from = (double)aoi__unorder(p) - 1.001 * x->reach[a][c];
    return aoi__axis_seek(&x->bound[a][c], aoi__order((float)from) - 1, q);
}

/* The axis on which the fewest boundaries must be looked at to find the boxes that touch p..q; *cost: how many, about. */
static uint32_t best_stab(const struct aoi__crosslist *x, const uint32_t *p, const uint32_t *q, uint64_t *cost)
{
    uint32_t best = 0;
    *cost = UINT64_MAX;
    for (uint32_t a = 0; a < x->dims; a++) {
        uint64_t n = 0;
        for (uint32_t c = 0; c < AOI__CLASSES; c++) {
            if (x->bound[a][c].n == 0) continue;
            struct aoi__range range = stab(x, a, c, p[a], q[a]);
            n += aoi__axis_count(&x->bound[a][c], &range);
        }
        if (n < *cost) *cost = n, best = a;
    }
    return best;
}

/* Likewise for the places in a box. */
static struct aoi__range best_slab(const struct aoi__crosslist *x, const struct aoi__area *area, uint32_t *axis, uint64_t *cost)
{
    struct aoi__range best = {0};
    *cost = UINT64_MAX;
    for (uint32_t a = 0; a < x->dims; a++) {
        struct aoi__range range = aoi__axis_seek(&x->place[a], area->lo[a], area->hi[a]);
        uint64_t n = aoi__axis_count(&x->place[a], &range);
        if (n < *cost) *cost = n, best = range, *axis = a;
    }
    return best;
}

/* ------------------------------------------------------------------------------------------------------------- an entity moves */

/* Takes the watches of the lo's out of n markers in a row, at most a chunk. How many. */
static uint32_t watches_of_lo(const uint64_t *m, uint32_t n, uint32_t watch[AOI__CHUNK])
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) { /* every other one is a hi, at random: written in any case, there is no guess to go wrong */
        watch[k] = m[i] & AOI__WHOSE;
        k += !(m[i] & AOI__HI);
    }
    return k;
}

/* Adds the pairs of the slot, which goes from p to q, with the watches whose box has q but not p; found by axis a. */
static void find_watches(struct aoi__crosslist *x, uint32_t slot, const uint32_t *p, const uint32_t *q, uint32_t a)
{
    uint32_t watch[AOI__CHUNK];
    for (uint32_t c = 0; c < AOI__CLASSES; c++) {
        if (x->bound[a][c].n == 0) continue;
        struct aoi__range range = stab(x, a, c, q[a], q[a]);
        const uint64_t *m;
        for (uint32_t n; (m = aoi__axis_next(&x->bound[a][c], &range, &n)) != NULL;) {
            x->work += n;
            n = watches_of_lo(m, n, watch);
            for (uint32_t i = 0; i < n; i++) {
                const struct aoi__area *area = &x->area.at[watch[i]];
                if (!contains(area, q, x->dims) || contains(area, p, x->dims) || area->slot == slot) continue;
                aoi__pairs_add(&x->pairs, watch[i], slot);
                aoi__mark(x, watch[i]);
            }
        }
    }
}

/* The pairs of a slot that has gone from p to q at once. */
static void slot_jump(struct aoi__crosslist *x, uint32_t slot, const uint32_t *p, const uint32_t *q, uint32_t axis)
{
    x->work += x->pairs.of[AOI__SLOT][slot].n;
    for (uint32_t i = x->pairs.of[AOI__SLOT][slot].n; i-- > 0;) { /* from the end: the last one takes the place of what goes */
        uint32_t watch = x->pairs.of[AOI__SLOT][slot].id[i];
        if (contains(&x->area.at[watch], q, x->dims)) continue;
        aoi__pairs_remove_at(&x->pairs, AOI__SLOT, slot, i);
        aoi__mark(x, watch);
    }
    find_watches(x, slot, p, q, axis);
}

/* The slot passes the boundaries in `range`: all those of class c between p and q on axis a. Going up it enters a box by its lo and leaves it by its
 * hi, so that a box of which it passes both, or stops on one, is judged at one of them only. */
static void slot_cross(struct aoi__crosslist *x, uint32_t slot, const uint32_t *p, const uint32_t *q, uint32_t a, uint32_t c, struct aoi__range range)
{
    uint32_t enter = p[a] < q[a] ? AOI__LO : AOI__HI; /* the kind of boundary by which it enters */
    const uint64_t *m;
    for (uint32_t n; (m = aoi__axis_next(&x->bound[a][c], &range, &n)) != NULL;) {
        x->work += n;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t watch = m[i] & AOI__WHOSE;
            const struct aoi__area *area = &x->area.at[watch];
            bool enters = (m[i] & AOI__HI) == enter;
            if (!contains(area, enters ? q : p, x->dims) || first_out(area, enters ? p : q, x->dims) != a || area->slot == slot) continue;
            (enters ? aoi__pairs_add : aoi__pairs_remove)(&x->pairs, watch, slot);
            aoi__mark(x, watch);
        }
    }
}

/* Brings the slot's pairs from p to q. */
static void slot_update(struct aoi__crosslist *x, uint32_t slot, const uint32_t *p, const uint32_t *q)
{
    struct aoi__range range[3][AOI__CLASSES];
    uint64_t sweep = 0, slab;
    for (uint32_t a = 0; a < x->dims; a++) {
        if (p[a] == q[a]) continue;
        for (uint32_t c = 0; c < AOI__CLASSES; c++) {
            const struct aoi__axis *axis = &x->bound[a][c];
            if (axis->n == 0) continue;
            range[a][c] = p[a] < q[a] ? aoi__axis_seek(axis, p[a], q[a]) : aoi__axis_seek(axis, q[a], p[a]);
            sweep += aoi__axis_count(axis, &range[a][c]);
        }
    }
    if (sweep > FEW) {
        uint32_t axis = best_stab(x, q, q, &slab);
        if (slab + x->pairs.of[AOI__SLOT][slot].n < sweep) {
            slot_jump(x, slot, p, q, axis);
            return;
        }
    }
    for (uint32_t a = 0; a < x->dims; a++) {
        if (p[a] == q[a]) continue;
        for (uint32_t c = 0; c < AOI__CLASSES; c++)
            if (x->bound[a][c].n > 0) slot_cross(x, slot, p, q, a, c, range[a][c]);
    }
}

void aoi__slot_settle(struct aoi__crosslist *x, uint32_t slot)
{
    uint32_t *p = aoi__at(x, slot);
    const uint32_t *q = aoi__to(x, slot);
    if (memcmp(p, q, x->dims * sizeof *p) == 0) return;
    slot_update(x, slot, p, q);
    for (uint32_t a = 0; a < x->dims; a++) {
        if (p[a] != q[a]) aoi__axis_move(&x->place[a], aoi__marker(p[a], AOI__PLACE | slot), aoi__marker(q[a], AOI__PLACE | slot));
        p[a] = q[a];
    }
}

/* ------------------------------------------------------------------------------------------------------------- a watch moves */

/* The set of a watch whose box goes from `old` to `area` at once; `range` is the slab: all places in the box, by one axis. Whether it changed. */
static bool watch_jump(struct aoi__crosslist *x, uint32_t watch, const struct aoi__area *old, const struct aoi__area *area, uint32_t axis,
                       struct aoi__range range)
{
    const struct aoi__list *set = &x->pairs.of[AOI__WATCH][watch];
    uint32_t before = set->n;
    x->work += before;
    for (uint32_t i = set->n; i-- > 0;)
        if (!contains(area, aoi__at(x, set->id[i]), x->dims)) aoi__pairs_remove_at(&x->pairs, AOI__WATCH, watch, i);
    uint32_t kept = set->n;
    const uint64_t *m;
    uint32_t slot[AOI__CHUNK];
    for (uint32_t n; (m = aoi__axis_next(&x->place[axis], &range, &n)) != NULL;) {
        uint32_t k = 0;
        x->work += n;
        for (uint32_t i = 0; i < n; i++) { /* most are out, some are in: no guess to go wrong */
            slot[k] = m[i] & AOI__WHOSE;
            k += contains(area, aoi__at(x, slot[k]), x->dims);
        }
        for (uint32_t i = 0; i < k; i++)
            if (slot[i] != area->slot && !contains(old, aoi__at(x, slot[i]), x->dims)) aoi__pairs_add(&x->pairs, watch, slot[i]);
    }
    return kept < before || set->n > kept;
}

/* A boundary of a watch passes the places in `range`, on axis a. Those that the box `with` contains and the box `without` does not, this axis
 * being the first that keeps them out, are gained or else lost. Whether the set changed. */
static bool watch_cross(struct aoi__crosslist *x, uint32_t watch, const struct aoi__area *with, const struct aoi__area *without, bool gained,
                        uint32_t a, struct aoi__range range)
{
    uint64_t before = x->pairs.n;
    const uint64_t *m;
    for (uint32_t n; (m = aoi__axis_next(&x->place[a], &range, &n)) != NULL;) {
        x->work += n;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t slot = m[i] & AOI__WHOSE;
            const uint32_t *p = aoi__at(x, slot);
            if (!contains(with, p, x->dims) || first_out(without, p, x->dims) != a || slot == with->slot) continue;
            (gained ? aoi__pairs_add : aoi__pairs_remove)(&x->pairs, watch, slot);
        }
    }
    return x->pairs.n != before;
}

/* The places that each boundary passes, and about how many. What is in only one of the two boxes, on an axis, stands between the two lo's or between
 * the two hi's, never in both intervals; and it is in the new box iff that boundary moves outward. */
static uint64_t passed_places(const struct aoi__crosslist *x, const struct aoi__area *old, const struct aoi__area *area,
                              struct aoi__range range[3][2])
{
    uint64_t n = 0;
    for (uint32_t a = 0; a < x->dims; a++) {
        const struct aoi__axis *axis = &x->place[a];
        uint32_t lo[2] = {old->lo[a], area->lo[a]}, hi[2] = {old->hi[a], area->hi[a]};
        range[a][0] = lo[0] < lo[1] ? aoi__axis_seek(axis, lo[0], lo[1] - 1) : aoi__axis_seek(axis, lo[1], lo[0] - 1);
        range[a][1] = hi[0] < hi[1] ? aoi__axis_seek(axis, hi[0] + 1, hi[1]) : aoi__axis_seek(axis, hi[1] + 1, hi[0]);
        n += aoi__axis_count(axis, &range[a][0]) + aoi__axis_count(axis, &range[a][1]);
    }
    return n;
}

/* Brings the watch's set from old to area. Whether it changed. */
static bool watch_update(struct aoi__crosslist *x, uint32_t watch, const struct aoi__area *old, const struct aoi__area *area)
{
    struct aoi__range range[3][2];
    uint64_t sweep = old->active ? passed_places(x, old, area, range) : UINT64_MAX, slab;
    if (sweep > FEW) {
        uint32_t axis = 0;
        struct aoi__range places = best_slab(x, area, &axis, &slab);
        if (slab + x->pairs.of[AOI__WATCH][watch].n < sweep) return watch_jump(x, watch, old, area, axis, places);
    }
    bool changed = false;
    for (uint32_t a = 0; a < x->dims; a++) {
        bool gained[2] = {old->lo[a] > area->lo[a], area->hi[a] > old->hi[a]};
        for (int side = 0; side < 2; side++) {
            const struct aoi__area *with = gained[side] ? area : old, *without = gained[side] ? old : area;
            changed |= watch_cross(x, watch, with, without, gained[side], a, range[a][side]);
        }
    }
    return changed;
}

/* The boundaries of a watch go where the space wants them; its set is to follow. What it was before. */
static struct aoi__area area_settle(struct aoi__crosslist *x, uint32_t watch)
{
    struct aoi__area old = x->area.at[watch], area = x->want.at[watch];
    for (uint32_t a = 0; a < x->dims; a++) bounds_move(x, watch, a, &old, &area);
    x->area.at[watch] = area;
    x->active.at[watch / 64] |= (uint64_t)1 << watch % 64;
    return old;
}

void aoi__watch_settle(struct aoi__crosslist *x, uint32_t watch)
{
    const struct aoi__area *area = &x->area.at[watch], *want = &x->want.at[watch];
    if (area->active == want->active && memcmp(area->lo, want->lo, sizeof area->lo) == 0 && memcmp(area->hi, want->hi, sizeof area->hi) == 0) return;
    struct aoi__area old = area_settle(x, watch);
    if (watch_update(x, watch, &old, area)) aoi__mark(x, watch);
}

/* A watch that has markers would change the lists in which they stand. */
static bool changes_class(const struct aoi__crosslist *x, uint32_t watch)
{
    const struct aoi__area *area = &x->area.at[watch], *want = &x->want.at[watch];
    for (uint32_t a = 0; a < x->dims; a++)
        if (area->active && class_for(aoi__area_length(want, a), area->class[a]) != area->class[a]) return true;
    return false;
}

/* Lists in mixed those of reshaped that have no markers yet, each once, in order along an axis: then many find what they look at in the cache. */
static void list_fresh(struct aoi__crosslist *x)
{
    x->mixed.n = 0;
    for (uint32_t i = 0; i < x->reshaped.n; i++) {
        uint32_t watch = x->reshaped.at[i];
        if (!x->area.at[watch].active && x->want.at[watch].active) *array_add(&x->mixed) = aoi__marker(x->want.at[watch].lo[0], watch);
    }
    x->mixed.n = array_sort_once(x->mixed.at, x->mixed.n);
    x->fresh = 0;
}

/* Those get markers, and their sets. */
static void settle_fresh(struct aoi__crosslist *x)
{
    uint32_t axis = 0;
    uint64_t slab;
    aoi__pairs_settle(&x->pairs);
    list_fresh(x);
    uint32_t n = x->mixed.n;
    if (n == 0) return;
    best_slab(x, &x->want.at[(uint32_t)x->mixed.at[n / 2]], &axis, &slab);
    if (n * slab <= 4 * (uint64_t)x->place[0].n) { /* columns would take longer than they save */
        for (uint32_t i = 0; i < n; i++) aoi__watch_settle(x, (uint32_t)x->mixed.at[i]);
        return;
    }
    for (uint32_t i = 0; i < n; i++) area_settle(x, (uint32_t)x->mixed.at[i]);
    aoi__fill(x, axis, x->mixed.at, n);
}

/* Everything comes to where the space wants it. */
static void settle(struct aoi__crosslist *x)
{
    uint64_t markers = x->place[0].n, moves = x->moved.n + 2 * (uint64_t)x->reshaped.n;
    aoi__pairs_settle(&x->pairs);
    if (moves == 0) return;
    for (uint32_t c = 0; c < AOI__CLASSES; c++) markers += x->bound[0][c].n;
    bool sweep = moves > markers / MANY;
    settle_fresh(x);
    for (uint32_t i = 0; i < x->reshaped.n; i++)
        if (!sweep || changes_class(x, x->reshaped.at[i])) aoi__watch_settle(x, x->reshaped.at[i]);
    for (uint32_t i = 0; i < x->moved.n && !sweep; i++) aoi__slot_settle(x, x->moved.at[i]);
    if (sweep) aoi__sweep(x);
    x->moved.n = x->reshaped.n = 0;
}

/* ------------------------------------------------------------------------------------------------------------- what the space tells */

static void crosslist_insert(struct aoi_space *space, uint32_t slot)
{
    struct aoi__crosslist *x = space->index;
    slot_reserve(x, slot);
    uint32_t *q = aoi__at(x, slot);
    order(x->dims, space->hot[slot].pos, q);
    order(x->dims, space->hot[slot].pos, aoi__to(x, slot));
    if (space->set.extra) {
        array_reserve(&x->extra, (size_t)slot + 1);
        x->extra.at[slot] = space->hot[slot].extra;
    }
    for (uint32_t a = 0; a < x->dims; a++) aoi__axis_insert(&x->place[a], aoi__marker(q[a], AOI__PLACE | slot));
    uint64_t cost;
    aoi__pairs_settle(&x->pairs); /* it may be the slot of somebody who was there a moment ago */
    find_watches(x, slot, nowhere, q, best_stab(x, q, q, &cost));
}

static void crosslist_where(const struct aoi_space *space, uint32_t slot, float pos[3], uint32_t *extra)
{
    const struct aoi__crosslist *x = space->index;
    pos[2] = 0;
    for (uint32_t a = 0; a < x->dims; a++) pos[a] = aoi__unorder(aoi__to(x, slot)[a]);
    *extra = space->set.extra ? x->extra.at[slot] : 0;
}

static void crosslist_erase(struct aoi_space *space, uint32_t slot)
{
    struct aoi__crosslist *x = space->index;
    uint32_t *p = aoi__at(x, slot);
    const struct aoi__list *holders = &x->pairs.of[AOI__SLOT][slot];
    for (uint32_t i = 0; i < holders->n; i++) aoi__mark(x, holders->id[i]);
    aoi__pairs_drop(&x->pairs, AOI__SLOT, slot);
    for (uint32_t a = 0; a < x->dims; a++) aoi__axis_erase(&x->place[a], aoi__marker(p[a], AOI__PLACE | slot));
    memcpy(p, aoi__to(x, slot), x->dims * sizeof *p); /* it is no longer one that moved */
}

static void crosslist_move(struct aoi_space *space, uint32_t slot, const float from[3])
{
    struct aoi__crosslist *x = space->index;
    uint32_t *to = aoi__to(x, slot);
    for (uint32_t a = 0; a < x->dims; a++) CHECK(aoi__order(from[a]) == to[a]);
    if (memcmp(aoi__at(x, slot), to, x->dims * sizeof *to) == 0) *array_add(&x->moved) = slot;
    order(x->dims, space->hot[slot].pos, to);
    if (space->set.extra) x->extra.at[slot] = space->hot[slot].extra;
    if (x->moved.n > 2 * x->place[0].n) settle(x); /* there and back again, many times */
}

static void crosslist_watch_set(struct aoi_space *space, uint32_t watch)
{
    struct aoi__crosslist *x = space->index;
    watch_reserve(x, watch);
    const struct aoi__watch *w = &space->watches.at[watch];
    struct aoi__area *want = &x->want.at[watch];
    CHECK(!want->active || want->slot == w->slot);
    want->slot = w->slot;
    want->active = true;
    order(x->dims, w->lo, want->lo);
    order(x->dims, w->hi, want->hi);
    for (uint32_t a = 0; a < x->dims; a++) CHECK(want->lo[a] <= want->hi[a]);
    *array_add(&x->reshaped) = watch;
    if (!x->area.at[watch].active && ++x->fresh == FRESH) settle_fresh(x);
    if (x->reshaped.n > 2 * x->area.n) settle(x);
}

static void crosslist_watch_clear(struct aoi_space *space, uint32_t watch)
{
    struct aoi__crosslist *x = space->index;
    if (watch >= x->area.n) return;
    x->want.at[watch] = no_area;
    if (!x->area.at[watch].active) return;
    struct aoi__area area = no_area;
    for (uint32_t a = 0; a < x->dims; a++) bounds_move(x, watch, a, &x->area.at[watch], &area);
    x->area.at[watch] = area;
    x->active.at[watch / 64] &= ~((uint64_t)1 << watch % 64);
    if (x->pairs.of[AOI__WATCH][watch].n > 0) aoi__mark(x, watch);
    aoi__pairs_drop(&x->pairs, AOI__WATCH, watch);
}

/* ------------------------------------------------------------------------------------------------------------- reading */

static void crosslist_gather(struct aoi_space *space, uint32_t watch, uint32_t mask, const float lo[3], const float hi[3], aoi__slots *out)
{
    (void)mask; /* the sets are kept whole */
    struct aoi__crosslist *x = space->index;
    settle(x);
    const struct aoi__watch *w = &space->watches.at[watch];
    if (watch >= x->area.n) return;
    const struct aoi__list *set = &x->pairs.of[AOI__WATCH][watch];
    if (watch + AHEAD < x->area.n) aoi__list_expect(set + AHEAD); /* mostly they are read in order */
    if (set->n == 0) return;
    array_reserve(out, (size_t)out->n + set->n);
    if (lo == w->lo && hi == w->hi) {
        memcpy(out->at + out->n, set->id, set->n * sizeof *out->at);
        out->n += set->n;
        return;
    }
    struct aoi__area clip = {.slot = AOI__NONE};
    order(x->dims, lo, clip.lo);
    order(x->dims, hi, clip.hi);
    for (uint32_t i = 0; i < set->n; i++) {
        out->at[out->n] = set->id[i];
        out->n += contains(&clip, aoi__at(x, set->id[i]), x->dims);
    }
}

static void crosslist_notify(struct aoi_space *space, uint32_t slot, const float from[3], uint32_t layers, uint32_t what)
{
    (void)what;
    (void)from;
    struct aoi__crosslist *x = space->index;
    if (x->layers.at[slot] == 0) *array_add(&x->changed) = slot;
    x->layers.at[slot] |= layers;
}

static void crosslist_relayer(struct aoi_space *space, uint32_t slot)
{
    (void)space;
    (void)slot;
}

static void crosslist_watching(struct aoi_space *space, const float lo[3], const float hi[3], aoi__slots *out)
{
    struct aoi__crosslist *x = space->index;
    uint32_t p[3], q[3];
    uint64_t cost;
    settle(x);
    order(x->dims, lo, p);
    order(x->dims, hi, q);
    uint32_t a = best_stab(x, p, q, &cost);
    for (uint32_t c = 0; c < AOI__CLASSES; c++) {
        if (x->bound[a][c].n == 0) continue;
        struct aoi__range range = stab(x, a, c, p[a], q[a]);
        const uint64_t *m;
        for (uint32_t n; (m = aoi__axis_next(&x->bound[a][c], &range, &n)) != NULL;) {
            for (uint32_t i = 0; i < n; i++) {
                const struct aoi__area *area = &x->area.at[m[i] & AOI__WHOSE];
                bool touches = !(m[i] & AOI__HI);
                for (uint32_t k = 0; k < x->dims; k++) touches &= (area->lo[k] <= q[k]) & (p[k] <= area->hi[k]);
                if (touches) *array_add(out) = m[i] & AOI__WHOSE;
            }
        }
    }
}

#define DISTURBED 1024 /* boxes are kept until the next resolve() */

/* Whom the boxes concern; nobody need be asked for where all are looked at anyway, as when all units move. */
static void ask_disturbed(struct aoi_space *space, struct aoi__crosslist *x)
{
    aoi__slots *watches = &space->found_watches;
    for (uint32_t i = 0; i < x->disturbed.n && !aoi__all_watches_dirty(space); i++) {
        watches->n = 0;
        crosslist_watching(space, x->disturbed.at[i].lo, x->disturbed.at[i].hi, watches);
        for (uint32_t k = 0; k < watches->n; k++) aoi__watch_dirty(space, watches->at[k]);
    }
    x->disturbed.n = 0;
}

static void crosslist_disturb(struct aoi_space *space, const float lo[3], const float hi[3])
{
    struct aoi__crosslist *x = space->index;
    if (x->disturbed.n == DISTURBED) ask_disturbed(space, x);
    struct aoi__box *box = array_add(&x->disturbed);
    memcpy(box->lo, lo, sizeof box->lo);
    memcpy(box->hi, hi, sizeof box->hi);
}

/* Marks the watches that hold what has changed: asks each of what has changed who holds it. */
static void ask_changed(struct aoi_space *space, struct aoi__crosslist *x)
{
    for (uint32_t i = 0; i < x->changed.n; i++) {
        const struct aoi__list *holders = &x->pairs.of[AOI__SLOT][x->changed.at[i]];
        uint32_t layers = x->layers.at[x->changed.at[i]];
        for (uint32_t k = 0; k < holders->n; k++) {
            uint32_t watch = holders->id[k];
            if (!bit(x->marked.at, watch) && (space->watches.at[watch].mask & layers)) aoi__mark(x, watch);
        }
    }
}

/* Likewise: asks each watch that is not marked yet whether it holds any of that. */
static void ask_watches(struct aoi_space *space, struct aoi__crosslist *x)
{
    for (uint32_t i = 0; i < x->active.n; i++) {
        for (uint64_t left = x->active.at[i] & ~x->marked.at[i]; left != 0; left &= left - 1) {
            uint32_t watch = i * 64 + (uint32_t)__builtin_ctzll(left), mask = space->watches.at[watch].mask;
            const struct aoi__list *set = &x->pairs.of[AOI__WATCH][watch];
            uint32_t k = 0;
            while (k < set->n && !(x->layers.at[set->id[k]] & mask)) k++;
            if (k < set->n) aoi__mark(x, watch);
        }
    }
}

/* Whether it takes less to ask the watches: either way looks at the pairs of the share, of the entities or of the watches, that is asked. */
static bool few_quiet(const struct aoi__crosslist *x)
{
    uint64_t quiet = 0, watches = 0;
    if (x->changed.n <= x->place[0].n / MANY) return false;
    for (uint32_t c = 0; c < AOI__CLASSES; c++) watches += x->bound[0][c].n / 2;
    for (uint32_t i = 0; i < x->active.n; i++) quiet += (uint64_t)__builtin_popcountll(x->active.at[i] & ~x->marked.at[i]);
    return x->changed.n * watches > quiet * x->place[0].n;
}

static void crosslist_resolve(struct aoi_space *space)
{
    struct aoi__crosslist *x = space->index;
    settle(x);
    (few_quiet(x) ? ask_watches : ask_changed)(space, x);
    for (uint32_t i = 0; i < x->changed.n; i++) x->layers.at[x->changed.at[i]] = 0;
    x->changed.n = 0;
    for (uint32_t i = 0; i < x->marked.n; i++) {
        for (uint64_t left = x->marked.at[i]; left != 0; left &= left - 1) aoi__watch_dirty(space, i * 64 + (uint32_t)__builtin_ctzll(left));
        x->marked.at[i] = 0;
    }
    ask_disturbed(space, x);
}

static void crosslist_scan(struct aoi_space *space, const float lo[3], const float hi[3], aoi__slots *out)
{
    struct aoi__crosslist *x = space->index;
    settle(x);
    struct aoi__area area = {.slot = AOI__NONE};
    order(x->dims, lo, area.lo);
    order(x->dims, hi, area.hi);
    uint32_t axis = 0;
    uint64_t cost;
    struct aoi__range range = best_slab(x, &area, &axis, &cost);
    const uint64_t *m;
    for (uint32_t n; (m = aoi__axis_next(&x->place[axis], &range, &n)) != NULL;) {
        array_reserve(out, (size_t)out->n + n);
        for (uint32_t i = 0; i < n; i++) { /* written in any case, counted if it lies in the box: nothing to guess wrong */
            out->at[out->n] = m[i] & AOI__WHOSE;
            out->n += contains(&area, aoi__at(x, m[i] & AOI__WHOSE), x->dims);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------- life */

static void crosslist_init(struct aoi_space *space)
{
    struct aoi__crosslist *x = mem_zalloc(sizeof *x);
    x->dims = space->dims;
    space->index = x;
}

static void crosslist_clear(struct aoi_space *space)
{
    struct aoi__crosslist *x = space->index;
    for (uint32_t a = 0; a < x->dims; a++) {
        aoi__axis_clear(&x->place[a]);
        for (uint32_t c = 0; c < AOI__CLASSES; c++) aoi__axis_clear(&x->bound[a][c]);
    }
    aoi__pairs_clear(&x->pairs);
    array_clear(&x->area);
    array_clear(&x->extra);
    array_clear(&x->want);
    array_clear(&x->moved);
    array_clear(&x->reshaped);
    array_clear(&x->active);
    array_clear(&x->marked);
    array_clear(&x->layers);
    array_clear(&x->changed);
    array_clear(&x->disturbed);
    aoi__sweep_clear(x);
    free(x->at);
    free(x->to);
    free(x);
    space->index = NULL;
}

static uint64_t crosslist_bytes(const struct aoi_space *space)
{
    const struct aoi__crosslist *x = space->index;
    uint64_t bytes = sizeof *x + aoi__pairs_bytes(&x->pairs);
    bytes += ((uint64_t)x->at_cap + x->to_cap) * x->dims * sizeof *x->at + ((uint64_t)x->area.cap + x->want.cap) * sizeof *x->area.at;
    bytes += ((uint64_t)x->moved.cap + x->reshaped.cap + x->changed.cap + x->layers.cap + x->extra.cap) * sizeof(uint32_t);
    bytes += ((uint64_t)x->active.cap + x->marked.cap) * sizeof(uint64_t) + x->disturbed.cap * sizeof *x->disturbed.at + aoi__sweep_bytes(x);
    for (uint32_t a = 0; a < x->dims; a++) {
        bytes += aoi__axis_bytes(&x->place[a]);
        for (uint32_t c = 0; c < AOI__CLASSES; c++) bytes += aoi__axis_bytes(&x->bound[a][c]);
    }
    return bytes;
}

/* ------------------------------------------------------------------------------------------------------------- checks */

static bool in_index(const struct aoi_space *space, uint32_t slot)
{
    return aoi__alive(space, slot) && !(space->cold[slot].flags & AOI__LARGE);
}

/* The axes are sound and hold a marker for everything that is there, where it is now, and nothing else. */
static void check_axes(const struct aoi_space *space, const struct aoi__crosslist *x)
{
    uint32_t places = 0, bounds = 0;
    for (uint32_t s = 0; s < space->slot_n; s++) {
        if (!in_index(space, s)) continue;
        places++;
        for (uint32_t a = 0; a < x->dims; a++) {
            CHECK((aoi__moving(space, s) || aoi__at(x, s)[a] == aoi__order(space->hot[s].pos[a])) && aoi__to(x, s)[a] == aoi__at(x, s)[a]);
            CHECK(aoi__axis_has(&x->place[a], aoi__marker(aoi__at(x, s)[a], AOI__PLACE | s)));
        }
    }
    for (uint32_t w = 0; w < x->area.n; w++) {
        const struct aoi__area *area = &x->area.at[w];
        CHECK(bit(x->active.at, w) == area->active);
        CHECK(area->active == x->want.at[w].active && memcmp(area->lo, x->want.at[w].lo, 2 * sizeof area->lo) == 0);
        if (!area->active) continue;
        bounds += 2;
        for (uint32_t a = 0; a < x->dims; a++) {
            uint8_t c = area->class[a];
            CHECK(area->lo[a] == aoi__order(space->watches.at[w].lo[a]) && area->hi[a] == aoi__order(space->watches.at[w].hi[a]));
            CHECK(c < AOI__CLASSES && aoi__area_length(area, a) <= class_limit[c] && aoi__area_length(area, a) <= x->reach[a][c]);
            CHECK(aoi__axis_has(&x->bound[a][c], aoi__marker(area->lo[a], AOI__LO | w)));
            CHECK(aoi__axis_has(&x->bound[a][c], aoi__marker(area->hi[a], AOI__HI | w)));
        }
    }
    for (uint32_t a = 0; a < x->dims; a++) {
        uint32_t n = 0;
        for (uint32_t c = 0; c < AOI__CLASSES; c++) {
            aoi__axis_validate(&x->bound[a][c]);
            n += x->bound[a][c].n;
        }
        aoi__axis_validate(&x->place[a]);
        CHECK(x->place[a].n == places && n == bounds);
    }
}

/* The sets are what the coordinates in the space say. */
static void check_sets(const struct aoi_space *space, const struct aoi__crosslist *x)
{
    uint32_t *met = mem_zalloc(((size_t)space->slot_n + 1) * sizeof *met); /* met[s] == w + 1 iff s stands in the set of w */
    for (uint32_t w = 0; w < space->watches.n; w++) {
        const struct aoi__watch *watch = &space->watches.at[w];
        bool active = w < x->area.n && x->area.at[w].active;
        CHECK(active == watch->active && (!active || x->area.at[w].slot == watch->slot));
        uint32_t n = w < x->area.n ? x->pairs.of[AOI__WATCH][w].n : 0;
        CHECK(active || n == 0);
        if (!active) continue;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t s = x->pairs.of[AOI__WATCH][w].id[i];
            CHECK(s < space->slot_n && in_index(space, s) && met[s] != w + 1);
            met[s] = w + 1;
        }
        for (uint32_t s = 0; s < space->slot_n; s++) {
            if (!in_index(space, s)) continue;
            float pos[3];
            uint32_t extra;
            crosslist_where(space, s, pos, &extra);
            bool holds = s != watch->slot && aoi__inside(pos, watch->lo, watch->hi, x->dims);
            CHECK(holds == (met[s] == w + 1));
        }
    }
    free(met);
}

static void crosslist_validate(const struct aoi_space *space)
{
    struct aoi__crosslist *x = space->index;
    settle(x); /* that is no change to anybody who looks */
    check_axes(space, x);
    aoi__pairs_validate(&x->pairs);
    check_sets(space, x);
}

const struct aoi__index_ops aoi__crosslist_ops = {
    .name = "crosslist",
    .init = crosslist_init,
    .clear = crosslist_clear,
    .insert = crosslist_insert,
    .erase = crosslist_erase,
    .move = crosslist_move,
    .where = crosslist_where,
    .watch_set = crosslist_watch_set,
    .watch_clear = crosslist_watch_clear,
    .gather = crosslist_gather,
    .notify = crosslist_notify,
    .disturb = crosslist_disturb,
    .relayer = crosslist_relayer,
    .resolve = crosslist_resolve,
    .watching = crosslist_watching,
    .scan = crosslist_scan,
    .bytes = crosslist_bytes,
    .validate = crosslist_validate,
};
