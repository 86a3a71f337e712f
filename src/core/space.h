/* space.h: the inside of a space, shared by the core's files. */
#ifndef AOI_CORE_SPACE_H
#define AOI_CORE_SPACE_H

#include <float.h>
#include <math.h>

#include "base/array.h"
#include "base/idmap.h"
#include "base/pool.h"
#include "core/aoi.h"
#include "core/ids.h"
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

/* aoi__cold.flags */
enum {
    AOI__LARGE = 1,          /* its appeal is not 0: it stands in space->large instead of the index */
    AOI__SHOWN = 2,          /* some player has a SHOW override for it */
    AOI__RELEASED = 4,       /* in space->released */
    AOI__PUBLISHED = 8,      /* some message of this window is from it */
    AOI__REPORT = 16,        /* report_observed */
    AOI__OBSERVED = 32,      /* its owner was told that it is observed */
    AOI__OBSERVE_CHECK = 64, /* in space->observe_check */
    AOI__TOUCHED = 256,      /* in space->touched */
    AOI__RESTATE = 128       /* its owner is to be told whether it is observed, whatever it was told */
};

struct aoi__cold {
    uint32_t rare; /* its place in space->rare; AOI__NONE: as aoi__plain. Of a touched one, its place in space->touched, which keeps that */
    uint32_t owner_prev, owner_next; /* list of the owner's entities in this space; AOI__NONE ends */
    uint32_t flags : 9;
    uint32_t told : 23; /* how many views hold it: its slot is not reused before this is 0 */
};

/* What most entities do not have, so that they need not have room for it. */
struct aoi__rare {
    struct aoi__blob *payload; /* NULL: empty */
    float appeal;
    uint32_t priority;
    uint32_t payload_stamp, layers_stamp; /* like hot.stamp, but 0 from birth: nobody was told of it before */
};
static const struct aoi__rare aoi__plain = {0};

/* What a Move and the settling of moves read beside hot. */
struct aoi__own {
    aoi_owner owner;
    uint32_t watch; /* AOI__NONE: nobody is subscribed to it */
    float radius;   /* 0 for what sees nothing */
};

/* An entity that was changed since the last flush, and what it was then: there and back again is no change. */
struct aoi__touched {
    uint32_t slot;
    uint32_t rare; /* what aoi__cold.rare was */
    float pos[3];
    float appeal;
    uint32_t extra;
    uint32_t layers;
    struct aoi__blob *payload; /* owned here iff payload_replaced */
    bool payload_replaced;
};

struct aoi__viewer {
    uint32_t player, unit; /* players.at[player].units.at[unit] is the other end; AOI__NONE: it is the player's viewport */
};

/* The area that a unit or a viewport watches. */
struct aoi__watch {
    float stay_lo[3], stay_hi[3];      /* while its unit stands in here, the index need not be told that it moves; empty: it is always told */
    uint32_t slot;                     /* the unit's entity; AOI__NONE: a viewport */
    uint32_t placed : 30;              /* number of the flush that tells of its last change of place, as far as it fits: only another one is sure */
    bool active : 1;                   /* it has an area: not so for a unit of radius 0 */
    bool coverable : 1;                /* the index says so: the pages under it can be listed (cover.c) */
    float margin;                      /* at least the largest leave_margin of its players */
    float base_lo[3], base_hi[3];      /* where an entity without appeal enters; for a sphere a box around that */
    float lo[3], hi[3];                /* where it may stay: the base grown by the margin. Never too small. This is what the index knows */
    uint32_t mask;                     /* at least the layers that its players see */
    ARRAY(struct aoi__viewer) viewers; /* in the pool: whom a change in the area concerns; one for a viewport. None: the watch is free */
};

#define AOI__PLACED 0x3FFFFFFFu /* the bits of aoi__watch.placed */

/* The two ends of a subscription: one in the watch, one in the player. */
struct aoi__unit {
    uint32_t watch, viewer; /* watches.at[watch].viewers.at[viewer] is the other end */
    bool include_self;
};

struct aoi__override {
    uint64_t id;
    bool show; /* else hide */
};

/* A view as masks: of each page under the player's only watch, which places it was told of. See cover.c. */
struct aoi__cover {
    uint32_t watch; /* AOI__NONE: there is none: the whole view stands in told */
    uint32_t unit;  /* the slot of the watch\'s unit when it began */
    bool stale;     /* other pages lie under the watch than those listed, or its mask is another */
    uint8_t own;    /* the unit stood in this page when it was looked for last, if that was one of the first */
    uint32_t n, cap;
    uint32_t border; /* pages from here on lie wholly inside the watch */
    uint32_t told_n; /* bits set in told */
    uint32_t bytes;  /* of the allocation */
    uint64_t *told;  /* by page; and behind them, in the same allocation, the pages */
    uint64_t *late;  /* of those, of which the tier was not due since they moved. NULL: none */
    uint32_t *page;
};

struct aoi__player {
    /* what a glance reads (cover.c) stands together: two cache lines */
    uint64_t id; /* 0: the slot is free */
    aoi_owner owner;
    uint32_t served; /* serial of the last flush that served it: its view is told as of then */
    struct aoi__cover cover;
    uint64_t seq;         /* of the last delta */
    uint64_t lost;        /* messages, since the last delta */
    uint64_t large_told;  /* what told holds, by place among what has appeal: glance.c */
    bool large_known : 1; /* large_told is right, if nothing has come to have appeal or lost it since it was served */
    bool plain : 1;       /* its view is a cover, but for what has appeal, and it has no rules of its own but its mask and presence_only */
    bool listed : 1;      /* of a plain one: told is not empty */
    bool full : 1;        /* the next delta is to be full */
    bool skipped : 1;     /* the last flush that would have served it skipped it */
    bool away : 1;        /* its owner is; then it is neither served nor observes anything */
    bool staying : 1;     /* min_stay_ms alone keeps something in its view, which may be anywhere */
    struct aoi_player_settings set;
    float reach;       /* how far max_view reached lately, and some more: see view.c; 0: it has not limited */
    uint32_t viewport; /* its watch, AOI__NONE: no viewport */
    uint32_t post;     /* the first of its messages in space->posts while a flush runs; AOI__NONE: none */
    uint32_t owner_prev, owner_next;
    uint32_t released_to;          /* AOI__NONE: not released; 0: to anybody */
    ARRAY(struct aoi__unit) units; /* in the pool */
    ARRAY(struct aoi__override) overrides;
    aoi__slots told;       /* the view, or what of it is not in the cover: slots, each once, with flags */
    ARRAY(uint64_t) since; /* only where min_stay_ms is set: when each of told entered, by now_ms + 1; 0 or missing: long ago */
};

/* Flags in aoi__player.told: slots are less. */
#define AOI__OWED 0x80000000u /* a payload change did not fit yet */
#define AOI__LATE 0x40000000u /* its tier was not due since it moved */
#define AOI__TOLD_SLOT 0x3FFFFFFFu

/* Of a message of this window. */
struct aoi__message {
    uint64_t from;          /* the publisher's id, 0: at a point or in a box */
    uint32_t slot;          /* the publisher; AOI__NONE: gone, or there is none */
    float lo[3], hi[3];     /* for from 0 */
    struct aoi__blob *body; /* owned */
};

/* A message for a player that may see it: a list for each player while a flush runs. */
struct aoi__post {
    uint32_t message, next;
};

/* An entity of which its owner is to be told that it is observed, or no longer. */
struct aoi__report {
    aoi_owner owner;
    uint32_t slot;
    bool observed;
};

/* Players that have a SHOW override for an id. */
struct aoi__shown {
    uint64_t id;
    aoi__slots players;
};

/* Per owner: heads of the lists of what it owns here. */
struct aoi__owned {
    aoi_owner owner;
    uint32_t entities, players; /* first slot, AOI__NONE: none */
    uint32_t entity_n, player_n;
    bool away;
    bool heir; /* something was released to it here */
};

/* What follows from settings.tiers. */
struct aoi__tiering {
    bool even;                   /* all periods are powers of two */
    double most2[AOI_TIERS_MAX]; /* the distances, squared */
};

/* An open flush is paused between two of its steps: then nothing may change. */
enum aoi__flush_phase { AOI__FLUSH_NONE, AOI__FLUSH_RUNS, AOI__FLUSH_PAUSED };

struct aoi_space {
    struct aoi_world *world;
    uint64_t id;
    aoi_owner owner;
    bool configured; /* made by the configuration: cannot be destroyed */
    struct aoi_settings set;
    struct aoi__tiering tiering;
    uint32_t dims;
    void *user;

    const struct aoi__index_ops *ops;
    void *index;
    const struct aoi__kernels *kernels;
    struct aoi__large *large; /* entities with appeal: large.c. NULL: there were none yet */

    /* entities: parallel arrays by slot */
    uint32_t slot_n, slot_cap; /* slots ever used; capacity of the arrays */
    uint32_t entity_n;         /* alive */
    uint32_t large_n;          /* those of them that have appeal, and stand in large */
    uint32_t large_serial;     /* of the flush after these were others or stood in another order */
    uint32_t priority_n;       /* those of them of a priority other than 0 */
    struct aoi__hot *hot;
    struct aoi__cold *cold;
    struct aoi__own *own;
    ARRAY(struct aoi__rare) rare;
    aoi__slots free_rare;
    uint64_t *moving;    /* bitmap by slot: it was moved since the last flush, and hot may hold another position or extra than the index */
    uint64_t *some_move; /* bitmap by word of that: it may be other than 0 */
    uint32_t moving_n;
    uint32_t *mark;    /* scratch of a flush, see view.c */
    uint32_t *told_at; /* likewise; NULL until it is needed */
    uint32_t *alive;   /* bitmap by slot: neither free nor a tombstone (removed, but still in some view) */
    aoi__slots free_slots;
    struct aoi__ids ids; /* id -> slot, the living */
    ARRAY(struct aoi__touched) touched;

    ARRAY(struct aoi__watch) watches;
    aoi__slots free_watches;
    ARRAY(uint64_t) marked; /* bitmap by watch: all its players are dirty since the last flush; 0 of one that is free */

    ARRAY(struct aoi__player) players;
    aoi__slots free_players;
    struct pool pool;           /* for what players and watches have of their own */
    struct aoi__ids player_ids; /* id -> slot, of players that are open */
    uint32_t player_n;
    ARRAY(uint64_t) dirty; /* bitmap by player slot: to be looked at by the next flush */
    bool changed;          /* something for the next flush to look at; false: dirty is all 0 and nothing is touched */
    uint32_t round;        /* player slot at which the next flush starts */
    enum aoi__flush_phase flush_phase;
    uint32_t flush_start, flush_at; /* of an open flush: the player slot at which it started, and from which it goes on */
    bool flush_lap;                 /* it has passed the last slot, and ends at flush_start */

    ARRAY(struct aoi__shown) shown;
    struct idmap shown_map; /* entity id -> index in shown */
    struct idmap released;  /* entity id -> to whom; 0: to anybody */

    ARRAY(struct aoi__message) messages; /* of this window */
    ARRAY(struct aoi__post) posts;
    aoi__slots observe_check;          /* slots of which it may have changed whether they are observed */
    aoi__slots found_watches;          /* scratch: what ops->watching() found */
    ARRAY(struct aoi__report) reports; /* scratch of observe.c, like the two below */
    ARRAY(uint64_t) report_id;
    ARRAY(bool) report_observed;
    uint32_t away_n;        /* players that are away */
    struct idmap away_told; /* slot + 1 -> how many of them were told of it; only of entities with AOI__REPORT */
    bool away_stale;        /* away_told has to be made anew before it is used */

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

/* The ids of the spaces in which an owner owns or owned something; some may have ended, or stand there more than once. */
struct aoi__presence {
    aoi_owner owner;
    ARRAY(uint64_t) spaces;
};

struct aoi_world {
    struct aoi_limits limits;
    struct aoi_sink sink;
    ARRAY(struct aoi_space *) spaces; /* ascending by id */
    void (*on_space_end)(void *ctx, struct aoi_space *space);
    void *on_space_end_ctx;
    void (*on_change)(void *ctx, struct aoi_space *space);
    void *on_change_ctx;
    ARRAY(struct aoi__presence) presences; /* by owner: where it may own something */
    struct idmap presence_map;             /* owner + 1 -> index in presences */
};

static inline struct aoi__records aoi__entity_records(const struct aoi_space *space)
{
    return (struct aoi__records){space->hot, sizeof *space->hot, space->slot_n, space->alive};
}

static inline bool aoi__alive(const struct aoi_space *space, uint32_t slot)
{
    return space->alive[slot >> 5] >> (slot & 31) & 1;
}

static inline const struct aoi__rare *aoi__rare(const struct aoi_space *space, uint32_t slot)
{
    const struct aoi__cold *c = &space->cold[slot];
    uint32_t rare = c->flags & AOI__TOUCHED ? space->touched.at[c->rare].rare : c->rare;
    return rare == AOI__NONE ? &aoi__plain : &space->rare.at[rare];
}

/* hot may hold another position or extra than the index. */
static inline bool aoi__moving(const struct aoi_space *space, uint32_t slot)
{
    return space->moving[slot >> 6] >> (slot & 63) & 1;
}

/* The next flush has something to look at. */
static inline void aoi__changed(struct aoi_space *space)
{
    DCHECK(space->flush_phase != AOI__FLUSH_PAUSED);
    if (space->changed) return;
    space->changed = true;
    if (space->world->on_change != NULL) space->world->on_change(space->world->on_change_ctx, space);
}

static inline void aoi__player_dirty(struct aoi_space *space, uint32_t player)
{
    space->dirty.at[player >> 6] |= (uint64_t)1 << (player & 63);
    aoi__changed(space);
}

/* The next flush looks at every player of this watch. */
static inline void aoi__watch_dirty(struct aoi_space *space, uint32_t watch)
{
    const struct aoi__watch *w = &space->watches.at[watch];
    if (w->viewers.n == 0) return; /* it is free */
    for (uint32_t i = 0; i < w->viewers.n; i++) {
        uint32_t player = w->viewers.at[i].player;
        space->dirty.at[player >> 6] |= (uint64_t)1 << (player & 63);
    }
    space->marked.at[watch >> 6] |= (uint64_t)1 << (watch & 63);
    aoi__changed(space);
}

/* It was called for the watch since the last flush, so that another call would change nothing. */
static inline bool aoi__watch_is_dirty(const struct aoi_space *space, uint32_t watch)
{
    return space->marked.at[watch >> 6] >> (watch & 63) & 1;
}

/* It is so with all watches that are in use. */
static inline bool aoi__all_watches_dirty(const struct aoi_space *space)
{
    uint32_t may = space->marked.n * 64 - (space->watches.n - space->free_watches.n), clear = 0; /* bits that are 0 */
    for (uint32_t i = 0; i < space->marked.n && clear <= may; i++) clear += 64 - (uint32_t)__builtin_popcountll(space->marked.at[i]);
    return clear <= may;
}

/* The geometric test that both indexes are checked by. */
static inline bool aoi__inside(const float *p, const float *lo, const float *hi, uint32_t dims)
{
    return lo[0] <= p[0] && p[0] <= hi[0] && lo[1] <= p[1] && p[1] <= hi[1] && (dims == 2 || (lo[2] <= p[2] && p[2] <= hi[2]));
}

/* ------------------------------------------------------------------------------------------------------------- between the files */

/* geometry.c */
float aoi__clean(float v); /* denormals and -0.0 become 0 */
/* Copies a position, cleaned, z = 0 in 2D. AOI_EINVAL, AOI_EBOUNDS. */
int aoi__check_any_pos(const struct aoi_space *space, const float pos[3], float out[3]);
/* Whether a coordinate is one that nothing has to be done about, but for the space's own bounds. */
static inline bool aoi__is_plain(float v)
{
    return v == 0 ? !signbit(v) : fabsf(v) >= FLT_MIN && fabsf(v) <= AOI_COORD_MAX;
}
/* The same, for every move: nearly all need no more than a look. */
static inline int aoi__check_pos(const struct aoi_space *space, const float pos[3], float out[3])
{
    if (space->set.bounded || !aoi__is_plain(pos[0]) || !aoi__is_plain(pos[1]) || (space->dims == 3 && !aoi__is_plain(pos[2])))
        return aoi__check_any_pos(space, pos, out);
    out[0] = pos[0];
    out[1] = pos[1];
    out[2] = space->dims == 3 ? pos[2] : 0;
    return AOI_OK;
}
/* Likewise a box, which may reach past everything. AOI_EINVAL. */
int aoi__check_box(const struct aoi_space *space, const float min[3], const float max[3], float lo[3], float hi[3]);
/* Sets the boxes of a unit's watch from its entity, of radius not 0, and the margin; of a viewport's from its base and the margin. */
void aoi__watch_area(const struct aoi_space *space, struct aoi__watch *watch);
static inline void aoi__watch_axis(struct aoi__watch *w, uint32_t a, float pos, float half, float keep)
{
    w->base_lo[a] = pos - half;
    w->base_hi[a] = pos + half;
    w->lo[a] = pos - keep;
    w->hi[a] = pos + keep;
}
/* The same for a unit in a space of boxes, for every move. z stays 0 in 2D. */
static inline void aoi__unit_boxes(struct aoi__watch *w, uint32_t dims, const float pos[3], float radius)
{
    float x = pos[0], y = pos[1], z = pos[2], keep = radius + w->margin;
    aoi__watch_axis(w, 0, x, radius, keep);
    aoi__watch_axis(w, 1, y, radius, keep);
    if (dims == 3) aoi__watch_axis(w, 2, z, radius, keep);
}
/* low, rounded down generously, and high, rounded up: to floats that are never too near. */
void aoi__widen(double low, double high, double slack, float *lo, float *hi);
/* Box around a sphere that is never too small. */
void aoi__sphere_box(const float pos[3], double radius, uint32_t dims, float lo[3], float hi[3]);
/* In doubles, without contraction. */
double aoi__distance2(const float a[3], const float b[3], uint32_t dims);
static inline bool aoi__in_sphere(const float a[3], const float b[3], double radius, uint32_t dims)
{
    return aoi__distance2(a, b, dims) <= radius * radius;
}

/* What one watch shows to one player, by the exact rules. */
struct aoi__sight {
    const struct aoi_space *space;
    const struct aoi__watch *watch;
    bool sphere, cells;
    float margin;                 /* the player's */
    float radius, keep_radius;    /* of a unit */
    float pos[3];                 /* of a unit */
    float keep_lo[3], keep_hi[3]; /* of a box */
};
void aoi__sight_init(struct aoi__sight *sight, const struct aoi_space *space, const struct aoi__watch *watch, float margin);
bool aoi__sight_base(const struct aoi__sight *sight, const float pos[3], float appeal); /* it enters */
bool aoi__sight_keep(const struct aoi__sight *sight, const float pos[3], float appeal); /* it stays if it was told */
/* Whether the base rule covers some point of the box, without appeal. */
bool aoi__sight_touches(const struct aoi__sight *sight, const float lo[3], const float hi[3]);

/* world.c */
void aoi__present(struct aoi_world *world, aoi_owner owner, uint64_t space); /* the owner owns something there now */

/* space.c */
struct aoi_space *aoi__space_new(struct aoi_world *world, aoi_owner owner, uint64_t id, const struct aoi_settings *settings);
void aoi__space_free(struct aoi_space *space);
struct aoi__owned *aoi__owned(struct aoi_space *space, aoi_owner owner); /* made if it is not there */
bool aoi__away(const struct aoi_space *space, aoi_owner owner);
/* Whether taker may take what is the owner's and was not released. */
bool aoi__may_take(const struct aoi_space *space, aoi_owner taker, aoi_owner owner);
void aoi__space_owner_away(struct aoi_space *space, aoi_owner owner, bool away);
/* Removes what the owner has here. */
uint32_t aoi__space_owner_shed(struct aoi_space *space, aoi_owner owner, uint32_t most); /* how many it removed */
void aoi__space_owner_end(struct aoi_space *space, aoi_owner owner, bool tell);
/* Whether everything has gone, players included, of what had taken some memory; */
bool aoi__space_spent(const struct aoi_space *space);
/* then gives it back. What the space is, who owns it and its counters stay. */
void aoi__space_give_back(struct aoi_space *space);

/* settings.c */
bool aoi__settings_same(const struct aoi_settings *a, const struct aoi_settings *b);
void aoi__tiers_changed(struct aoi_space *space); /* the settings' are others */

/* entity.c */
uint32_t aoi__entity_slot(const struct aoi_space *space, uint64_t id); /* AOI__NONE: unknown */
void aoi__entity_remove(struct aoi_space *space, uint32_t slot);
void aoi__slot_free(struct aoi_space *space, uint32_t slot); /* no view holds it, and no entity */
/* Brings the index up to what hot holds, for questions between two flushes. */
void aoi__sync(struct aoi_space *space);
/* Compares what was touched with what it was, stamps what differs with the serial and sees to it that whom it concerns is dirty. */
void aoi__settle(struct aoi_space *space);
void aoi__forget_touched(struct aoi_space *space);
struct aoi__blob *aoi__blob_new(struct aoi_space *space, const void *bytes, uint32_t len); /* NULL for len 0 */
void aoi__blob_free(struct aoi_space *space, struct aoi__blob *blob);

/* player.c */
uint32_t aoi__player_slot(const struct aoi_space *space, uint64_t id); /* AOI__NONE: unknown */
void aoi__player_close(struct aoi_space *space, uint32_t player, bool tell);
/* All of them, before the space ends: one by one each would be searched for among those to whom the same entity is shown. */
void aoi__forget_overrides(struct aoi_space *space);
void aoi__player_away(struct aoi_space *space, uint32_t player, bool away);
void aoi__unit_gone(struct aoi_space *space, uint32_t watch); /* its entity is removed: ends its subscriptions */
void aoi__watch_place(struct aoi_space *space,
                      uint32_t watch); /* it is another viewport, or has another radius or margin: sets its boxes anew, tells the index */
void aoi__watches_follow(struct aoi_space *space, const uint32_t *slot,
                         uint32_t n); /* the same for units that merely moved, those of the slots that are some */
float aoi__player_margin(const struct aoi_space *space, const struct aoi__player *p);
void aoi__margins_changed(struct aoi_space *space);          /* the space's leave_margin changed */
void aoi__shown_dirty(struct aoi_space *space, uint64_t id); /* whoever has a SHOW override for it */

/* large.c */
void aoi__large_insert(struct aoi_space *space, uint32_t slot);
void aoi__large_erase(struct aoi_space *space, uint32_t slot);
void aoi__large_move(struct aoi_space *space, uint32_t slot);
/* Appends candidates for a watch: every large entity of which pos +- appeal touches its box, and some more. */
void aoi__large_gather(struct aoi_space *space, const float lo[3], const float hi[3], aoi__slots *out);
/* The i-th of all, of which there are space->large_n; and which of them it is, AOI__NONE: none. */
uint32_t aoi__large_at(const struct aoi_space *space, uint32_t i);
uint32_t aoi__large_place(const struct aoi_space *space, uint32_t slot);
/* Appends those whose position lies in the box. */
void aoi__large_scan(struct aoi_space *space, const float lo[3], const float hi[3], aoi__slots *out);
void aoi__large_free(struct aoi_space *space);
uint64_t aoi__large_bytes(const struct aoi_space *space);
uint32_t aoi__large_validate(const struct aoi_space *space); /* returns how many there are */

/* message.c */
void aoi__messages_post(struct aoi_space *space);  /* a flush begins: gives each message to the players that it may concern, and makes them dirty */
void aoi__messages_clear(struct aoi_space *space); /* a flush ends */
void aoi__publisher_gone(struct aoi_space *space, uint32_t slot);

/* observe.c */
void aoi__observe_check(struct aoi_space *space, uint32_t slot);   /* it may have come to be observed, or unobserved */
void aoi__observe_restate(struct aoi_space *space, uint32_t slot); /* its owner is told anew, whatever it was told */
/* A player came to be away, or is no longer: whom does it observe? */
void aoi__observe_away(struct aoi_space *space, const struct aoi__player *player);
bool aoi__observe_tell(struct aoi_space *space); /* a flush ends; true: some could not be told yet */

/* One view more holds it, or one less: for each enter and leave. A tombstone has no flags. */
static inline void aoi__slot_told(struct aoi_space *space, uint32_t slot)
{
    struct aoi__cold *c = &space->cold[slot];
    space->stats.pairs++;
    c->told++;
    if (c->flags & AOI__REPORT) aoi__observe_check(space, slot);
}
static inline void aoi__slot_untold(struct aoi_space *space, uint32_t slot)
{
    struct aoi__cold *c = &space->cold[slot];
    space->stats.pairs--;
    c->told--;
    if (c->flags & AOI__REPORT)
        aoi__observe_check(space, slot);
    else if (c->told == 0 && !aoi__alive(space, slot))
        aoi__slot_free(space, slot);
}

/* view.c */
struct aoi__scratch *aoi__scratch_new(void);
void aoi__scratch_free(struct aoi__scratch *scratch);

/* query.c */
void aoi__rows_reserve(struct aoi_rows *rows, size_t need);

#endif
