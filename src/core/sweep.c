/* sweep.c: the cross-list when much of it moves: each axis is sorted anew, and what passes in sorting is judged.
 *
 * One axis after the other, and one class of boxes after the other: the places and the boundaries go into one array, in the order in which they
 * stood, with the coordinates that they are to have. It is nearly sorted, so it is sorted by insertion. Two that pass each other there change sides;
 * if they are a place and a boundary, the pair is judged, as it is when one marker moves by itself (crosslist.c). But nothing is searched: about 10
 * ns a marker instead of 180.
 *
 * Between the axes everything stands at its new place on those that were sorted and at its old one on the others. That is as good a state as any.
 */
#include <string.h>

#include "core/crosslist.h"

/* A marker that passes so many of its kind moves by itself, before: to be taken out and put in again costs it less. */
#define FAR 512
/* So many pairs are judged together: they fit in the nearest cache. */
#define BATCH 1024

/* ------------------------------------------------------------------------------------------------------------- read */

static bool is_place(uint64_t marker)
{
    return marker & AOI__PLACE;
}

/* The markers as they stand, between FAR that are lower and FAR that are higher than any. */
static void read_was(struct aoi__flat *f, const struct aoi__axis *axis)
{
    f->n = axis->n;
    array_reserve(&f->was, (size_t)f->n + 2 * FAR);
    array_reserve(&f->is, f->was.cap);
    memset(f->was.at, 0, FAR * sizeof *f->was.at);
    aoi__axis_read(axis, f->was.at + FAR);
    memset(f->was.at + FAR + f->n, 0xff, FAR * sizeof *f->was.at);
}

/* Those that go far. */
static void find_far(struct aoi__crosslist *x, const struct aoi__flat *f)
{
    const uint64_t *was = f->was.at + FAR, *is = f->is.at + FAR;
    for (uint32_t i = 0; i < f->n; i++)
        if ((is[i] > was[i + FAR]) | (is[i] < was[(int64_t)i - FAR])) *array_add(&x->far) = (uint32_t)is[i];
}

static void read_places(struct aoi__crosslist *x, uint32_t a)
{
    struct aoi__flat *f = &x->places;
    read_was(f, &x->place[a]);
    const uint64_t *was = f->was.at + FAR;
    uint64_t *is = f->is.at + FAR;
    for (uint32_t i = 0; i < f->n; i++) is[i] = aoi__marker(aoi__to(x, was[i] & AOI__WHOSE)[a], (uint32_t)was[i]);
    find_far(x, f);
}

static void read_bounds(struct aoi__crosslist *x, uint32_t a, uint32_t c)
{
    struct aoi__flat *f = &x->bounds[c];
    read_was(f, &x->bound[a][c]);
    const uint64_t *was = f->was.at + FAR;
    uint64_t *is = f->is.at + FAR;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct aoi__area *want = &x->want.at[was[i] & AOI__WHOSE];
        is[i] = aoi__marker(was[i] & AOI__HI ? want->hi[a] : want->lo[a], (uint32_t)was[i]);
    }
    find_far(x, f);
}

/* Reads an axis; what goes far has gone before. */
static void read_axis(struct aoi__crosslist *x, uint32_t a)
{
    for (int turn = 0; turn < 2; turn++) {
        x->far.n = 0;
        read_places(x, a);
        for (uint32_t c = 0; c < AOI__CLASSES; c++)
            if (x->bound[a][c].n > 0) read_bounds(x, a, c);
        if (turn > 0 || x->far.n == 0) return;
        for (uint32_t i = 0; i < x->far.n; i++) (x->far.at[i] & AOI__PLACE ? aoi__slot_settle : aoi__watch_settle)(x, x->far.at[i] & AOI__WHOSE);
    }
}

/* ------------------------------------------------------------------------------------------------------------- sort */

/* Places and boundaries of a class as they are to be, by the order in which they stood, behind a 0. How many. */
static uint32_t mix(struct aoi__crosslist *x, const struct aoi__flat *p, const struct aoi__flat *b)
{
    uint32_t n = p->n + b->n, i = FAR, j = FAR;
    array_reserve(&x->mixed, (size_t)n + 1);
    uint64_t *to = x->mixed.at;
    const uint64_t *p_was = p->was.at, *b_was = b->was.at, *p_is = p->is.at, *b_is = b->is.at;
    *to++ = 0;
    for (uint32_t k = 0; k < n; k++) { /* what stands behind them is higher than any */
        bool place = p_was[i] < b_was[j];
        to[k] = place ? p_is[i] : b_is[j];
        i += place;
        j += !place;
    }
    return n;
}

static bool between(const struct aoi__area *area, const uint32_t *p, uint32_t a)
{
    return (area->lo[a] <= p[a]) & (p[a] <= area->hi[a]);
}

/* Pairs that have changed sides on axis a: at one boundary at most, so a pair that is made or broken is met once. */
static void judge(struct aoi__crosslist *x, uint32_t a, struct aoi__met *met, uint32_t n)
{
    uint32_t b = a == 0, c = x->dims == 2 ? b : 3 - a - b, near = 0; /* the other axes, or twice the other one */
    x->work += n;
    for (uint32_t i = 0; i < n; i++) { /* no guess to go wrong: few match on the others */
        bool first = is_place(met[i].one);
        uint32_t slot = (first ? met[i].one : met[i].other) & AOI__WHOSE, watch = (first ? met[i].other : met[i].one) & AOI__WHOSE;
        met[near] = (struct aoi__met){slot, watch};
        near += (uint32_t)between(&x->area.at[watch], aoi__at(x, slot), b) & (uint32_t)between(&x->area.at[watch], aoi__at(x, slot), c);
    }
    for (uint32_t i = 0; i < near; i++) {
        aoi__list_expect(&x->pairs.of[AOI__WATCH][met[i].other]);
        aoi__list_expect(&x->pairs.of[AOI__SLOT][met[i].one]);
    }
    for (uint32_t i = 0; i < near; i++) {
        uint32_t slot = met[i].one, watch = met[i].other;
        bool was = between(&x->area.at[watch], aoi__at(x, slot), a), is = between(&x->want.at[watch], aoi__to(x, slot), a);
        if (was == is || x->area.at[watch].slot == slot) continue;
        (is ? aoi__pairs_add : aoi__pairs_remove)(&x->pairs, watch, slot);
        aoi__mark(x, watch);
    }
}

/* Sorts what mix() made. */
static void sort(struct aoi__crosslist *x, uint32_t a, uint32_t n)
{
    uint64_t *key = x->mixed.at + 1; /* key[-1] is 0 */
    array_reserve(&x->met, (size_t)n + BATCH);
    struct aoi__met *met = x->met.at;
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t mine = key[i], *at = key + i;
        for (uint64_t passed; (passed = at[-1]) > mine; at--) {
            met[m] = (struct aoi__met){(uint32_t)mine, (uint32_t)passed};
            m += is_place(mine ^ passed);
            *at = passed;
        }
        *at = mine;
        if (m < BATCH) continue;
        judge(x, a, met, m);
        m = 0;
    }
    judge(x, a, met, m);
}

/* The places, or else the boundaries, among what was sorted go to the axis. */
static void take(struct aoi__crosslist *x, uint32_t n, bool places, uint64_t *scratch, struct aoi__axis *axis)
{
    const uint64_t *key = x->mixed.at + 1;
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        scratch[k] = key[i];
        k += is_place(key[i]) == places;
    }
    aoi__axis_write(axis, scratch);
}

static void sort_axis(struct aoi__crosslist *x, uint32_t a)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < AOI__CLASSES; c++) {
        if (x->bound[a][c].n == 0) continue;
        n = mix(x, &x->places, &x->bounds[c]);
        sort(x, a, n);
        take(x, n, false, x->bounds[c].was.at, &x->bound[a][c]);
    }
    if (n == 0) { /* there are no boundaries, and none were read */
        read_bounds(x, a, 0);
        n = mix(x, &x->places, &x->bounds[0]);
        sort(x, a, n);
    }
    take(x, n, true, x->places.was.at, &x->place[a]);
}

/* ------------------------------------------------------------------------------------------------------------- all of it */

/* What is wanted on axis a is so. */
static void arrive(struct aoi__crosslist *x, uint32_t a)
{
    for (uint32_t i = 0; i < x->moved.n; i++) aoi__at(x, x->moved.at[i])[a] = aoi__to(x, x->moved.at[i])[a];
    for (uint32_t i = 0; i < x->reshaped.n; i++) {
        struct aoi__area *area = &x->area.at[x->reshaped.at[i]];
        const struct aoi__area *want = &x->want.at[x->reshaped.at[i]];
        if (!area->active) continue;
        area->lo[a] = want->lo[a];
        area->hi[a] = want->hi[a];
        double *reach = &x->reach[a][area->class[a]], length = aoi__area_length(area, a);
        if (*reach < length) *reach = length;
    }
}

size_t aoi__sweep_bytes(const struct aoi__crosslist *x)
{
    size_t markers = x->places.was.cap + x->places.is.cap + x->mixed.cap;
    for (uint32_t c = 0; c < AOI__CLASSES; c++) markers += x->bounds[c].was.cap + x->bounds[c].is.cap;
    return markers * sizeof(uint64_t) + x->met.cap * sizeof *x->met.at + x->far.cap * sizeof *x->far.at + x->columns.cap * sizeof *x->columns.at +
           x->column_slot.cap * sizeof *x->column_slot.at;
}

void aoi__sweep_clear(struct aoi__crosslist *x)
{
    array_clear(&x->places.was);
    array_clear(&x->places.is);
    for (uint32_t c = 0; c < AOI__CLASSES; c++) {
        array_clear(&x->bounds[c].was);
        array_clear(&x->bounds[c].is);
    }
    array_clear(&x->mixed);
    array_clear(&x->met);
    array_clear(&x->far);
    array_clear(&x->columns);
    array_clear(&x->column_slot);
}

void aoi__sweep(struct aoi__crosslist *x)
{
    for (uint32_t a = 0; a < x->dims; a++) {
        read_axis(x, a);
        sort_axis(x, a);
        arrive(x, a);
    }
}
