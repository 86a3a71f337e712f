/* crosslist.h: the inside of the cross-list, shared by crosslist.c, sweep.c and fill.c. */
#ifndef AOI_CORE_CROSSLIST_H
#define AOI_CORE_CROSSLIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "core/axis.h"
#include "core/index.h"
#include "core/pairs.h"

#define AOI__CLASSES 7

/* Whose a marker is, its lower half: a slot or a watch, and which marker of it. Where coordinates tie, a lo stands before a place and a place before
 * a hi: so a place is in a box, edges included, iff on every axis its marker stands between the two of the box. */
#define AOI__LO 0u
#define AOI__PLACE 0x40000000u
#define AOI__HI 0x80000000u
#define AOI__WHOSE 0x3FFFFFFFu

/* A watch's box: half a cache line. */
struct aoi__area {
    uint32_t lo[3], hi[3]; /* lo > hi, on the first axis: not active, contains nothing */
    uint32_t slot;         /* its own entity, which it never holds; AOI__NONE: none */
    uint8_t class[3];      /* of the class, on each axis, stand its boundaries; NO_CLASS: nowhere */
    bool active;
};

struct aoi__box {
    float lo[3], hi[3];
};

/* The markers of one axis, or of one class of boundaries on it, as they stood and as they are to be: parallel, in the order in which they stood. */
struct aoi__flat {
    ARRAY(uint64_t) was, is; /* with FAR more before and behind */
    uint32_t n;
};

/* A place and a boundary that have changed sides, in either order: the lower halves of their markers. */
struct aoi__met {
    uint32_t one, other;
};

struct aoi__crosslist {
    uint32_t dims;
    struct aoi__axis place[3];               /* of AOI__PLACE | slot */
    struct aoi__axis bound[3][AOI__CLASSES]; /* of AOI__LO | watch and AOI__HI | watch */
    double reach[3][AOI__CLASSES];           /* no box of the class is longer; grows until the class is empty */
    struct aoi__pairs pairs;                 /* (w, t) is there iff w is active, t is there, not w's own, and in the box */

    /* What stands on the axes and decides the pairs, and what the space told last. They differ for some of moved and reshaped, for nothing else. */
    uint32_t *at, *to;                  /* by slot, dims each: its place. Of a slot that is not there: anything */
    uint32_t at_cap, to_cap;            /* in slots */
    aoi__slots extra;                   /* by slot, where the space has that word: what it was when it was moved last */
    ARRAY(struct aoi__area) area, want; /* by watch; classes are those of area */
    aoi__slots moved, reshaped;         /* slots; watches. Some perhaps twice, or gone since */
    uint32_t fresh;                     /* so many of reshaped, at most, have no markers yet */

    /* Until the next resolve(). */
    ARRAY(uint64_t) active, marked;   /* bitmaps by watch: area[w].active; to be looked at */
    ARRAY(uint32_t) layers;           /* by slot: layers that it has or had, if it has changed; else 0 */
    aoi__slots changed;               /* the slots of which that is not 0 */
    ARRAY(struct aoi__box) disturbed; /* who looks there is to be looked at */

    /* Scratch of sweep.c and fill.c. */
    struct aoi__flat places, bounds[AOI__CLASSES];
    ARRAY(uint64_t) mixed;
    ARRAY(struct aoi__met) met;
    aoi__slots far;
    ARRAY(float) columns;
    aoi__slots column_slot;

    uint64_t work; /* markers and pairs that were looked at so far: what the tests count */
};

static inline uint32_t *aoi__at(const struct aoi__crosslist *x, uint32_t slot)
{
    return x->at + (size_t)slot * x->dims;
}

static inline uint32_t *aoi__to(const struct aoi__crosslist *x, uint32_t slot)
{
    return x->to + (size_t)slot * x->dims;
}

static inline void aoi__mark(struct aoi__crosslist *x, uint32_t watch)
{
    x->marked.at[watch / 64] |= (uint64_t)1 << watch % 64;
}

/* crosslist.c: one slot or watch comes to where the space wants it; everything else stays where it stands. */
void aoi__slot_settle(struct aoi__crosslist *x, uint32_t slot);
void aoi__watch_settle(struct aoi__crosslist *x, uint32_t watch);
/* Length of a box on an axis, rounded. */
double aoi__area_length(const struct aoi__area *area, uint32_t a);

/* fill.c: the sets of n watches, by the lower halves of watches[], that have their boundaries on the axes but nothing in their sets yet. Any axis
 * will do, but one on which few places stand in such a box does it faster. */
void aoi__fill(struct aoi__crosslist *x, uint32_t axis, const uint64_t *watches, uint32_t n);

/* sweep.c: likewise all of moved and reshaped at once. None of reshaped is to change its class. */
void aoi__sweep(struct aoi__crosslist *x);
size_t aoi__sweep_bytes(const struct aoi__crosslist *x);
void aoi__sweep_clear(struct aoi__crosslist *x);

#endif
