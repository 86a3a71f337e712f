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
    uint32_t stamp; /* serial of the last flush at which pos or extra had changed; for a new entity of the flush after its birth */
};

struct aoi__blob {
    uint32_t len;
    uint8_t at[];
};

struct aoi__cold {
    struct aoi__blob *payload; /* NULL: empty */
    float radius;              /* 0 for what sees nothing */
    aoi_owner owner;
    uint32_t owner_prev, owner_next;      /* list of the owner's entities in this space; AOI__NONE ends */
    uint32_t touched;                     /* 1 + its place in space->touched; 0: not touched since the last flush */
    uint32_t told;                        /* how many views hold it: its slot is not reused before this is 0 */
    uint32_t watch;                       /* AOI__NONE: nobody is subscribed to it */
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
};

/* The area that a unit or a viewport watches. */
struct aoi__watch {
    uint32_t slot;           /* the unit's entity; AOI__NONE: a viewport */
    bool active;             /* it has an area: not so for a unit of radius 0 */
    float lo[3], hi[3];      /* the area's box, on space->dims axes; for a sphere a box around it that is never too small */
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
    bool skipped;      /* the last flush that would have served it skipped it */
    ARRAY(struct aoi__unit) units;
    aoi__slots told; /* the view: slots, each once; with AOI__OWED where a payload change did not fit yet */
};

#define AOI__OWED 0x80000000u

/* Per owner: heads of the lists of what it owns here. */
struct aoi__owned {
    aoi_owner owner;
    uint32_t entities, players; /* first slot, AOI__NONE: none */
};

struct aoi_space {
    struct aoi_world *world;
    uint64_t id;
    aoi_owner owner;
    bool configured; /* made by the configuration: cannot be destroyed */
    struct aoi_settings set;
    uint32_t dims;
    void *user;

    const struct aoi__index_ops *ops;
    void *index;

    /* entities: parallel arrays by slot */
    uint32_t slot_n, slot_cap; /* slots ever used; capacity of the arrays */
    uint32_t entity_n;         /* alive */
    struct aoi__hot *hot;
    struct aoi__cold *cold;
    uint32_t *mark;  /* scratch of a flush, see view.c */
    uint32_t *alive; /* bitmap by slot: neither free nor a tombstone (removed, but still in some view) */
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
    bool changed;          /* something for the next flush to look at; false: dirty is all 0 and nothing is touched */
    uint32_t round;        /* player slot at which the next flush starts */

    ARRAY(struct aoi__owned) owned;
    struct idmap owned_map; /* owner -> index in owned */

    uint64_t flush;         /* number of the last flush */
    uint32_t serial;        /* like flush, but wraps: see view.c */
    uint32_t state_serial;  /* serial of the last flush at which any payload or layers had changed */
    uint32_t mark_serial;   /* the highest value in mark */
    uint64_t payload_bytes; /* all blobs, with their headers */

    struct aoi__scratch *scratch; /* columns of the delta being made, see view.c */
    struct aoi_stats stats;       /* running counters only */
};

struct aoi_world {
    struct aoi_limits limits;
    struct aoi_sink sink;
    ARRAY(struct aoi_space *) spaces; /* ascending by id */
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
    space->changed = true;
}

/* The next flush looks at every player of this watch. */
static inline void aoi__watch_dirty(struct aoi_space *space, uint32_t watch)
{
    const struct aoi__watch *w = &space->watches.at[watch];
    for (uint32_t i = 0; i < w->players.n; i++) aoi__player_dirty(space, w->players.at[i]);
}

/* The one geometric test that both indexes and the queries share. */
static inline bool aoi__inside(const float *p, const float *lo, const float *hi, uint32_t dims)
{
    return lo[0] <= p[0] && p[0] <= hi[0] && lo[1] <= p[1] && p[1] <= hi[1] && (dims == 2 || (lo[2] <= p[2] && p[2] <= hi[2]));
}

/* ------------------------------------------------------------------------------------------------------------- between the files */

/* geometry.c */
float aoi__clean(float v); /* denormals and -0.0 become 0 */
/* Copies a position, cleaned, z = 0 in 2D. AOI_EINVAL, AOI_EBOUNDS. */
int aoi__check_pos(const struct aoi_space *space, const float pos[3], float out[3]);
/* Likewise a box, which may reach past everything. AOI_EINVAL. */
int aoi__check_box(const struct aoi_space *space, const float min[3], const float max[3], float lo[3], float hi[3]);
/* Sets lo and hi of a unit's watch from its position and radius, which is not 0. */
void aoi__unit_area(const struct aoi_space *space, const float pos[3], float radius, float lo[3], float hi[3]);
/* Box around a sphere that is never too small. */
void aoi__sphere_box(const float pos[3], float radius, uint32_t dims, float lo[3], float hi[3]);
/* In doubles, without contraction: squared distance at most radius^2. */
bool aoi__in_sphere(const float a[3], const float b[3], float radius, uint32_t dims);

/* space.c */
struct aoi_space *aoi__space_new(struct aoi_world *world, aoi_owner owner, uint64_t id, const struct aoi_settings *settings);
void aoi__space_free(struct aoi_space *space);
struct aoi__owned *aoi__owned(struct aoi_space *space, aoi_owner owner); /* made if it is not there */
/* Removes what the owner has here. */
void aoi__space_owner_end(struct aoi_space *space, aoi_owner owner, bool tell);

/* entity.c */
uint32_t aoi__entity_slot(const struct aoi_space *space, uint64_t id); /* AOI__NONE: unknown */
void aoi__entity_remove(struct aoi_space *space, uint32_t slot);
void aoi__slot_untold(struct aoi_space *space, uint32_t slot); /* one view less holds it */
/* Compares what was touched with what it was, stamps what differs with the serial and notifies the index. */
void aoi__settle(struct aoi_space *space);
void aoi__forget_touched(struct aoi_space *space);

/* player.c */
void aoi__player_close(struct aoi_space *space, uint32_t player, bool tell);
void aoi__unit_gone(struct aoi_space *space, uint32_t watch);    /* its entity is removed: ends its subscriptions */
void aoi__unit_changed(struct aoi_space *space, uint32_t watch); /* its entity moved, or its radius changed */

/* view.c */
struct aoi__scratch *aoi__scratch_new(void);
void aoi__scratch_free(struct aoi__scratch *scratch);

/* query.c */
void aoi__rows_reserve(struct aoi_rows *rows, size_t need);

#endif
