/* space.h: the inside of a space, shared by the core's files. */
#ifndef AOI_CORE_SPACE_H
#define AOI_CORE_SPACE_H

#include "base/array.h"
#include "base/idmap.h"
#include "core/aoi.h"
#include "core/index.h"

#define AOI__NONE UINT32_MAX

/* What a flush reads of every entity it tells: half a cache line. */
struct aoi__hot {
    uint64_t id;
    float pos[3]; /* never NaN, infinite, denormal or -0.0; z is 0 in 2D */
    uint32_t extra;
    uint32_t layers;
    uint32_t stamp; /* serial of the last flush at which pos or extra had changed; of the next flush for a new entity */
};

struct aoi__blob {
    uint32_t len;
    uint8_t at[];
};

struct aoi__cold {
    struct aoi__blob *payload; /* NULL: empty */
    float radius;              /* 0 for what sees nothing */
    aoi_owner owner;
    uint32_t owner_prev, owner_next; /* list of the owner's entities in this space; AOI__NONE ends */
    uint32_t touched;                /* 1 + its place in space->touched; 0: not touched since the last flush */
    uint32_t told;                   /* how many views hold it: its slot is not reused before this is 0 */
    uint32_t watch;                  /* AOI__NONE: nobody is subscribed to it */
    uint32_t payload_stamp, layers_stamp; /* like hot.stamp */
};

/* An entity that was changed since the last flush, and what it was then: there and back again is no change. */
struct aoi__touched {
    uint32_t slot;
    float pos[3];
    uint32_t extra;
    uint32_t layers;
    struct aoi__blob *payload; /* owned here iff payload_replaced */
    bool payload_replaced;
    bool born; /* not there at the last flush */
};

/* The area that a unit or a viewport watches. */
struct aoi__watch {
    uint32_t slot;      /* the unit's entity; AOI__NONE: a viewport */
    bool active;        /* it has an area: not so for a unit of radius 0 */
    float lo[3], hi[3]; /* the area's box, on space->dims axes; for a sphere a box around it that is never too small */
    ARRAY(uint32_t) players; /* whom a change in the area concerns; one for a viewport. Empty: the watch is free */
};

struct aoi__unit {
    uint32_t watch;
    bool include_self;
};

struct aoi__player {
    uint64_t id; /* 0: the slot is free */
    aoi_owner owner;
    uint32_t owner_prev, owner_next;
    uint32_t mask;
    uint32_t viewport; /* its watch, AOI__NONE: no viewport */
    uint64_t seq;      /* of the last delta */
    uint32_t served;   /* serial of the last flush that served it: its view is told as of then */
    bool full;         /* the next delta is to be full */
    ARRAY(struct aoi__unit) units;
    aoi__slots told; /* the view: slots, each once */
};

/* Per owner: heads of the lists of what it owns here. */
struct aoi__owned {
    aoi_owner owner;
    uint32_t entities, players; /* first slot, AOI__NONE: none */
};

struct aoi_space {
    struct aoi_world *world;
    uint64_t id;
    aoi_owner owner;
    struct aoi_settings set;
    uint32_t dims;
    void *user;

    const struct aoi__index_ops *ops;
    void *index;

    /* entities: parallel arrays by slot */
    uint32_t slot_n, slot_cap; /* slots ever used; capacity of the three arrays */
    uint32_t entity_n;         /* alive */
    struct aoi__hot *hot;
    struct aoi__cold *cold;
    uint32_t *mark;    /* scratch of a flush, see view.c */
    uint32_t *alive;   /* bitmap by slot */
    aoi__slots free_slots;
    struct idmap entity_map; /* id -> slot, the living */
    ARRAY(struct aoi__touched) touched;

    ARRAY(struct aoi__watch) watches;
    aoi__slots free_watches;

    ARRAY(struct aoi__player) players;
    aoi__slots free_players;
    struct idmap player_map;
    uint32_t player_n;
    ARRAY(uint64_t) dirty; /* bitmap by player slot: to be looked at by the next flush */
    bool any_dirty;        /* false: the bitmap is all 0 */
    uint32_t round;        /* player slot at which the next flush starts */

    ARRAY(struct aoi__owned) owned;
    struct idmap owned_map; /* owner -> index in owned */

    uint64_t flush;        /* number of the last flush */
    uint32_t serial;       /* like flush, but wraps: see view.c */
    uint32_t state_serial; /* serial of the last flush at which any payload or layers had changed */
    uint32_t mark_serial;
    uint64_t payload_bytes; /* all blobs, with their headers */

    struct aoi__scratch *scratch; /* columns of the delta being made, see view.c */
    struct aoi_stats stats;       /* running counters only */
};

struct aoi_world {
    struct aoi_limits limits;
    struct aoi_sink sink;
    ARRAY(struct aoi_space *) spaces; /* ascending by id */
    struct idmap space_map;           /* id -> AOI__NONE - never: presence is looked up in spaces by bisection */
    void (*on_space_end)(void *ctx, struct aoi_space *space);
    void *on_space_end_ctx;
};

static inline bool aoi__alive(const struct aoi_space *space, uint32_t slot)
{
    return space->alive[slot >> 5] >> (slot & 31) & 1;
}

static inline void aoi__player_dirty(struct aoi_space *space, uint32_t player)
{
    space->dirty.at[player >> 6] |= (uint64_t)1 << (player & 63);
    space->any_dirty = true;
}

/* The next flush looks at every player of this watch. */
static inline void aoi__watch_dirty(struct aoi_space *space, uint32_t watch)
{
    const struct aoi__watch *w = &space->watches.at[watch];
    for (uint32_t i = 0; i < w->players.n; i++) aoi__player_dirty(space, w->players.at[i]);
}

static inline bool aoi__inside(const float *p, const float *lo, const float *hi, uint32_t dims)
{
    for (uint32_t a = 0; a < dims; a++)
        if (!(lo[a] <= p[a] && p[a] <= hi[a])) return false;
    return true;
}

#endif
