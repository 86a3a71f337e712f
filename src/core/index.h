/* index.h: what a space's index must do. grid.c and crosslist.c are the two; they differ in cost, never in outcome.
 *
 * An index knows entities (slots, their position in space->hot[slot].pos) and watches: boxes lo <= p <= hi (edges inclusive, on each of space->dims
 * axes) that belong to a unit or to a viewport. It answers which entities lie in a watch, and tells which watches a change may concern.
 */
#ifndef AOI_CORE_INDEX_H
#define AOI_CORE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

struct aoi_space;
struct aoi__blocks;

typedef ARRAY(uint32_t) aoi__slots;

/* Where an entity stands in a page. */
struct aoi__home {
    uint32_t page : 26; /* AOI__NOWHERE: in none */
    uint32_t place : 6;
};
#define AOI__NOWHERE ((1u << 26) - 1)

/* What of an entity has changed, beside coming or going. */
enum { AOI__MOVED = 1, AOI__STATE = 2 }; /* position or extra; layers or payload */

struct aoi__index_ops {
    const char *name;
    /* space->index is the index's own state, made here and freed there. */
    void (*init)(struct aoi_space *space);
    void (*clear)(struct aoi_space *space);

    /* The entity is new; its position stands in hot. */
    void (*insert)(struct aoi_space *space, uint32_t slot);
    /* It goes; its position still stands in hot, and aoi__index notify() has been called for it. No watch belongs to it any more. */
    void (*erase)(struct aoi_space *space, uint32_t slot);
    /* hot holds its new position and extra; from[] is the position where it stands in the index. A unit's watch follows by its own watch_set(). */
    void (*move)(struct aoi_space *space, uint32_t slot, const float from[3]);
    /* Where it stands in the index, and the extra word of then: what they were when insert(), move() or settle() was last called for it. */
    void (*where)(const struct aoi_space *space, uint32_t slot, float pos[3], uint32_t *extra);
    /* The three above, or notify(), will be called soon for this slot: fetches of what they read one level after the other, as each has to be there before the next one is known. NULL:
     * nothing to do. */
    void (*fetch)(const struct aoi_space *space, uint32_t slot, uint32_t level);
    /* A flush has begun, and hot may hold other positions and extras of these slots than the index, which has those of the last flush: stamps, moves and notifies
     * for each that differs. Leaves those in slot[], and returns how many they are. NULL: by where(), move() and notify(). */
    uint32_t (*settle)(struct aoi_space *space, uint32_t *slot, uint32_t n);

    /* The area of space->watches.at[watch] is new (active was false) or has changed; the watch already holds the new lo and hi. Of a unit's it may set the box stay_lo, stay_hi:
     * while the radius and the margin are the same and the unit stands in there, it need not be called again. */
    void (*watch_set)(struct aoi_space *space, uint32_t watch);
    /* Likewise, of what watch_set() reads. */
    void (*watch_fetch)(const struct aoi_space *space, uint32_t watch, uint32_t level);
#define AOI__FETCHES 3
    /* The watch has no area any more; forget it. Fine if it had none. */
    void (*watch_clear)(struct aoi_space *space, uint32_t watch);

    /* Appends every slot of the watch's box that also lies in lo..hi, but the watch's own entity, each once, in any order; it may leave out what has no layer of the
     * mask. */
    void (*gather)(struct aoi_space *space, uint32_t watch, uint32_t mask, const float lo[3], const float hi[3], aoi__slots *out);

    /* Something about the entity has changed: it was at from[] at the last flush and is in hot[slot].pos now (the same place, perhaps); layers are those that it
     * has or had. Sees to it that, by the next resolve(), aoi__watch_dirty() is called for every active watch of a mask with one of these layers that
     * holds it now or may have held it at the last flush. Too many is fine. what: flags of what has changed, for a flush that is running. */
    void (*notify)(struct aoi_space *space, uint32_t slot, const float from[3], uint32_t layers, uint32_t what);
    /* Likewise for every active watch of which the box touches lo..hi. */
    void (*disturb)(struct aoi_space *space, const float lo[3], const float hi[3]);
    /* hot holds other layers than before. */
    void (*relayer)(struct aoi_space *space, uint32_t slot);
    /* The flush is about to read which players are dirty. */
    void (*resolve)(struct aoi_space *space);
    /* Views as masks of pages (cover.c): the directory of its pages. NULL: it has none. */
    struct aoi__blocks *(*pages)(const struct aoi_space *space);
    /* Appends the pages under the area of an active watch, first *border of them that are not wholly inside it. Only for a watch that is coverable. */
    void (*pages_of)(struct aoi_space *space, uint32_t watch, aoi__slots *out, uint32_t *border);
    /* Appends the pages of all cells that a box touches, of which lo and hi may reach past everything: to inner those of cells that lie wholly inside it, to border the others. It may
     * leave out what has none of the layers (0: any). Whether no page lies outside the box, or partly. Only where there is pages(). */
    bool (*pages_in)(struct aoi_space *space, const float lo[3], const float hi[3], uint32_t layers, aoi__slots *border, aoi__slots *inner);
    /* A flush ends; all dirty players have been served or skipped. NULL: nothing to do. */
    void (*flushed)(struct aoi_space *space);
    /* Makes room for what may be needed soon beyond what was needed so far. NULL: nothing to do. */
    void (*ahead)(struct aoi_space *space);

    /* Appends every active watch of which the box touches lo..hi, each once. */
    void (*watching)(struct aoi_space *space, const float lo[3], const float hi[3], aoi__slots *out);

    /* Appends every slot with lo <= p <= hi, each once. lo and hi may reach past everything. Only where there is no pages(). */
    void (*scan)(struct aoi_space *space, const float lo[3], const float hi[3], aoi__slots *out);

    uint64_t (*bytes)(const struct aoi_space *space);
    /* Aborts (CHECK) if any of its invariants is broken. */
    void (*validate)(const struct aoi_space *space);
};

extern const struct aoi__index_ops aoi__grid_ops;
extern const struct aoi__index_ops aoi__crosslist_ops;

#endif
