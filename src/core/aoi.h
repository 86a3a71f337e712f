/* aoi.h: the spatial core: worlds of spaces, entities, players, and the deltas of what each player sees.
 *
 * The core knows no clock, no socket and no file: the caller passes times in and takes deltas out through a sink. It is single-threaded. A call that
 * can fail returns AOI_OK (0) or one of the negative AOI_E... codes, and then has changed nothing. Out-parameters come last. Allocation failure aborts.
 *
 * One idea carries everything: a delta is a difference of states. Commands write the new state of the world; aoi_flush() compares, for each player
 * that may be affected, what it sees now with what it was last told, and emits what differs. There is no queue of events.
 */
#ifndef AOI_CORE_AOI_H
#define AOI_CORE_AOI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Error codes; -code is the number of the wire's enum Code. */
enum aoi_code {
    AOI_OK = 0,
    AOI_EINVAL = -1,     /* NaN, infinite, negative radius, id 0, min > max, bad settings */
    AOI_EBOUNDS = -2,    /* beyond +-AOI_COORD_MAX or outside the bounds of the space */
    AOI_ENOSPACE = -3,   /* unknown space */
    AOI_ENOENTITY = -4,  /* unknown entity */
    AOI_ENOPLAYER = -5,  /* unknown player */
    AOI_EDUPSPACE = -6,  /* the space exists (with other settings, or without if_absent) */
    AOI_EDUPENTITY = -7, /* the entity exists */
    AOI_EOWNER = -8,     /* belongs to another owner */
    AOI_ELIMIT = -9,     /* a limit of struct aoi_limits */
};

#define AOI_COORD_MAX 16777216.0f /* 2^24 */
#define AOI_CELL_SIZE_MIN (1.0 / 64)
#define AOI_CELL_SIZE_DEFAULT 100.0
#define AOI_CELL_RANGE_MAX 64
#define AOI_FLUSH_MS_DEFAULT 50
#define AOI_FLUSH_MS_MAX 86400000 /* a day */
#define AOI_LAYERS_DEFAULT 1u

/* Who acts and who owns: a number that the caller chooses for each of its sessions, from 1. 0 is the configuration: nobody's, and
 * everybody may use what it owns, but nobody may destroy it. */
typedef uint32_t aoi_owner;

enum aoi_index { AOI_INDEX_GRID = 1, AOI_INDEX_CROSSLIST = 2 };
enum aoi_shape { AOI_SHAPE_BOX = 1, AOI_SHAPE_SPHERE = 2, AOI_SHAPE_CELLS = 3 };
enum aoi_add_mode { AOI_ADD_NEW = 1, AOI_ADD_UPSERT = 2, AOI_ADD_ADOPT = 3 };
enum aoi_override { AOI_OVERRIDE_NONE = 1, AOI_OVERRIDE_HIDE = 2, AOI_OVERRIDE_SHOW = 3 };

/* How often what is told is updated, by distance: the period of the first tier with distance <= its own, else `beyond`. No tiers: always. */
#define AOI_TIERS_MAX 8
struct aoi_tiers {
    uint32_t n;
    struct {
        float distance;  /* inclusive, ascending */
        uint32_t period; /* in flushes, 1 .. AOI_PERIOD_MAX */
    } at[AOI_TIERS_MAX];
    uint32_t beyond; /* likewise; 0 means 1 */
};
#define AOI_PERIOD_MAX 1000000
#define AOI_TIERS_TEXT 256 /* room for the text of any tiers */

/* What may differ between spaces. Zeros mean the defaults: see aoi_settings_check(). */
struct aoi_settings {
    uint32_t dimensions;  /* 2 or 3; a 2D space ignores z */
    uint32_t index;       /* enum aoi_index */
    uint32_t shape;       /* enum aoi_shape */
    double cell_size;     /* at least AOI_CELL_SIZE_MIN */
    uint32_t cell_range;  /* 1 .. AOI_CELL_RANGE_MAX, for AOI_SHAPE_CELLS */
    bool bounded;         /* whether min and max count */
    float min[3], max[3]; /* edges inclusive */
    bool extra;           /* keep and tell the extra word */
    uint32_t flush_ms;    /* kept for the caller, who has the clock; 0: only commanded flushes. No default here. */
    bool persistent;      /* outlives its owner */
    /* from here on: changeable by aoi_space_set(), like flush_ms */
    /* what was told stays until it is so much further away (in cells: while it would be seen if both stood so much nearer); 0: none */
    float leave_margin;
    uint32_t min_stay_ms;         /* what was told stays so long at least; 0: no such time. What entered before it was set counts as long ago */
    uint32_t max_view;            /* entities in a view at most, the best by rank; 0: no limit. Up to AOI_MAX_VIEW */
    uint32_t max_enter_per_flush; /* 0: no limit */
    struct aoi_tiers tiers;
};
#define AOI_MAX_VIEW 65536
#define AOI_PLAYERS_MAX 8388607 /* in a space, whatever max_players says */

/* Over a limit is AOI_ELIMIT (max_radius: AOI_EINVAL), and nothing is lost. */
struct aoi_limits {
    uint32_t max_spaces;    /* in the world */
    uint32_t max_entities;  /* in a space */
    uint32_t max_players;   /* in a space */
    uint32_t max_units;     /* subscriptions of a player */
    uint32_t max_payload;   /* bytes */
    float max_radius;       /* 0: no limit */
    uint32_t max_overrides; /* of a player */
    uint32_t max_message;   /* bytes */
    uint32_t max_messages;  /* in a space between two flushes */
};

struct aoi_entity {
    uint64_t id;
    float pos[3];
    uint32_t extra;
    float radius;
    uint32_t layers;     /* 0: AOI_LAYERS_DEFAULT in aoi_entity_add(); literal in what aoi_entity_get() returns */
    const void *payload; /* payload_len bytes, copied in; out of aoi_entity_get() valid until the next command */
    uint32_t payload_len;
    float appeal;         /* it can be seen from so much further away */
    uint32_t priority;    /* under max_view the higher ones come first */
    bool report_observed; /* its owner is told whether anybody observes it */
    aoi_owner owner;      /* out only */
    uint32_t subscribers; /* out only: players subscribed to it */
};

struct aoi_world;
struct aoi_space;

/* Columns: element i of every array is about one entity. Arrays are the core's, valid until the sink returns. z is NULL in 2D, extra is NULL
 * where the space has no extra word. */
struct aoi_enters {
    size_t n;
    const uint64_t *id;
    const float *x, *y, *z;
    const uint32_t *extra, *layers;
    const void *const *payload; /* NULL: none of the n has a payload */
    const uint32_t *payload_len;
};

struct aoi_updates {
    size_t n;
    const uint64_t *id;
    const float *x, *y, *z;
    const uint32_t *extra;
};

/* One player's delta; sections apply in the order in which they stand here. */
struct aoi_delta {
    uint64_t space, flush, tag, time_us; /* flush: number in the space, from 1; tag and time as passed to aoi_flush() */
    uint64_t player;
    uint64_t seq; /* 1, 2, 3 ... for each player, without gaps */
    aoi_owner owner;
    bool full;   /* forget what you hold: enters is everything */
    bool closed; /* the player is no more; the rest is empty */
    size_t leave_n;
    const uint64_t *leave_id;
    struct aoi_enters enters;
    struct aoi_updates updates;
    bool placed;      /* the columns of updates stand where the sink's columns() said, and nowhere else */
    size_t payload_n; /* told entities whose payload changed */
    const uint64_t *payload_id;
    const void *const *payload;
    const uint32_t *payload_len;
    size_t layers_n; /* told entities whose layers changed */
    const uint64_t *layers_id;
    const uint32_t *layers;
    size_t message_n;             /* in the order of publishing */
    const uint64_t *message_from; /* the publishing entity; 0: published at a point or in a box */
    const void *const *message;
    const uint32_t *message_len;
    uint64_t messages_lost; /* at most so many that it would have got were lost since the delta before, and with this one */
};

/* What aoi_delta_bytes() reckons for each item beside payload bytes: at least what the wire takes. */
#define AOI_DELTA_OVERHEAD 192
#define AOI_ENTER_BYTES 36
#define AOI_UPDATE_BYTES 24

/* Where update columns are to be written: addresses of any alignment, each with room for just as many as the delta has. z and extra count where the delta has them. */
struct aoi_places {
    void *id, *x, *y, *z, *extra;
};

#define AOI_ROOM_KEPT 1

/* Where deltas go. The functions must not call back into the core. */
struct aoi_sink {
    void *ctx;
    /* Bytes that a delta for this owner's players may take now; 0: skip the player (it stays dirty, and its next delta covers the gap). A delta takes
     * at least its leaves and updates, whatever the room; it stops taking enters and payload changes when they would pass it. AOI_ROOM_KEPT: nothing new,
     * but a full delta restates what was told. NULL: no limit. */
    size_t (*room)(void *ctx, aoi_owner owner);
    void (*deliver)(void *ctx, const struct aoi_delta *delta);
    /* Updates may be written to where they belong at once, say between the lengths of a frame, and need not be copied there. Called after room() and before
     * deliver() with the whole delta, but for the columns of its updates: those that there are are not NULL, and not to be read. true: it is delivered next, with the columns at
     * the places, and marked as placed. false: it is delivered as ever. Not called where there are no updates. NULL: likewise. */
    bool (*columns)(void *ctx, const struct aoi_delta *delta, struct aoi_places *to);
    /* Entities of the owner that came to be observed or unobserved: in the view of a player that is not subscribed to them. Called at the end of a flush, at most
     * once an owner; false: not now (its connection is full), the differences are kept for the next flush. NULL: nobody wants to know. */
    bool (*observed)(void *ctx, aoi_owner owner, uint64_t space, const uint64_t *id, const bool *observed, size_t n);
    /* Whether taker may take what is the owner's though it was not released, and the owner is not away: say, because both are one and the same to the caller. NULL: never. */
    bool (*may_take)(void *ctx, aoi_owner taker, aoi_owner owner);
    /* The owner lost an entity (or else a player) to another one, by ADOPT, UPSERT or take_over. NULL: nobody wants to know. */
    void (*lost)(void *ctx, aoi_owner owner, uint64_t space, bool is_player, uint64_t id);
};

/* ------------------------------------------------------------------------------------------------------------- world and spaces */

/* A world with no spaces. The sink (copied; NULL: deltas are dropped) takes the deltas of flushes and of closed players. Free with aoi_world_free(). */
struct aoi_world *aoi_world_new(const struct aoi_limits *limits, const struct aoi_sink *sink);
void aoi_world_free(struct aoi_world *world); /* tells nobody anything */

/* Fills in defaults for zeros and refuses what is out of range (AOI_EINVAL, *why set to a text that says what). */
int aoi_settings_check(struct aoi_settings *settings, const char **why);

/* Makes a space. With if_absent an existing space with equal settings is fine. AOI_EINVAL, AOI_EDUPSPACE, AOI_ELIMIT. */
int aoi_space_create(struct aoi_world *world, aoi_owner owner, uint64_t id, const struct aoi_settings *settings, bool if_absent);

/* What aoi_space_set() changes; what has_... does not name stays. */
struct aoi_space_change {
    bool has_flush_ms, has_leave_margin, has_min_stay_ms, has_max_view, has_max_enter_per_flush, has_tiers;
    uint32_t flush_ms;
    float leave_margin;
    uint32_t min_stay_ms, max_view, max_enter_per_flush;
    struct aoi_tiers tiers;
};
/* For the space's owner or an admin (a space of the configuration: an admin). AOI_EINVAL, AOI_EOWNER. */
int aoi_space_set(struct aoi_space *space, aoi_owner owner, bool admin, const struct aoi_space_change *change);

/* "30:1 60:2 *:4" -> tiers; "" is none. AOI_EINVAL with *why. */
int aoi_tiers_parse(const char *text, struct aoi_tiers *tiers, const char **why);
void aoi_tiers_print(const struct aoi_tiers *tiers, char text[AOI_TIERS_TEXT]);

/* Destroys a space; its players get a closed delta. admin: may destroy any but the configuration's. AOI_ENOSPACE, AOI_EOWNER. */
int aoi_space_destroy(struct aoi_world *world, aoi_owner owner, bool admin, uint64_t id);

struct aoi_space *aoi_space_find(const struct aoi_world *world, uint64_t id); /* NULL: unknown */
/* The space with the smallest id above `after`, or NULL. */
struct aoi_space *aoi_space_next(const struct aoi_world *world, uint64_t after);
uint64_t aoi_space_id(const struct aoi_space *space);
aoi_owner aoi_space_owner(const struct aoi_space *space); /* 0: nobody */
bool aoi_space_configured(const struct aoi_space *space); /* nobody's, and never to be destroyed */
const struct aoi_settings *aoi_space_settings(const struct aoi_space *space);
/* A word for the caller to keep beside a space (its timer, say); NULL at first. */
void aoi_space_set_user(struct aoi_space *space, void *user);
void *aoi_space_user(const struct aoi_space *space);

/* Called just before a space is freed, so that the caller lets go of its user word. At most one; NULL: none. */
void aoi_world_on_space_end(struct aoi_world *world, void (*fn)(void *ctx, struct aoi_space *space), void *ctx);

/* Called when a space in which there was nothing to look at for the next flush has changed, so that the caller can arm one: aoi_space_dirty() turned true. Not called
 * for what a flush leaves behind. At most one; NULL: none. It must not call back into the core, but for the space's
 * settings and user word. */
void aoi_world_on_change(struct aoi_world *world, void (*fn)(void *ctx, struct aoi_space *space), void *ctx);

/* An owner has gone: removes its entities, players (with a closed delta; pass tell = false where nobody is left to read it) and spaces; persistent
 * spaces stay and become the configuration's in all but name: owner 0, and an admin may destroy them. */
void aoi_owner_end(struct aoi_world *world, aoi_owner owner, bool tell);
/* For an owner with so much that its end would take long: removes at most so many of its players (without a delta) and entities from one of the spaces it is in. Where none is left
 * the owner leaves that space, as by aoi_owner_end(), and *left is its number, else 0. False: it is in no space any more, and aoi_owner_end() is quick. */
bool aoi_owner_shed(struct aoi_world *world, aoi_owner owner, uint32_t most, uint64_t *left);
/* Whether an owner may own something in the space, or the space itself. */
bool aoi_owner_in(const struct aoi_space *space, aoi_owner owner);
/* Calls fn with each space of which that is so, perhaps twice. */
void aoi_owner_spaces(const struct aoi_world *world, aoi_owner owner, void (*fn)(void *ctx, struct aoi_space *space), void *ctx);
/* Calls fn with what each owner (0: nobody) that owns or owned something in the space has there. */
void aoi_space_owned(const struct aoi_space *space, void (*fn)(void *ctx, aoi_owner owner, uint32_t entities, uint32_t players), void *ctx);
/* An owner cannot be reached any more, but has not ended. While it is away its players are passed over by flushes, at no cost and without pending work, they observe nothing,
 * nobody is told of what is observed of its entities, and others may take what it owns. Back again, each of its players gets a full delta, and what is observed of its
 * entities is restated, what is not observed included. */
void aoi_owner_away(struct aoi_world *world, aoi_owner owner, bool away);

/* ------------------------------------------------------------------------------------------------------------- entities
 * All: AOI_EINVAL for id 0, AOI_ENOENTITY, AOI_EOWNER. */

/* NEW, UPSERT: AOI_EINVAL, AOI_EBOUNDS, AOI_EDUPENTITY, AOI_EOWNER (UPSERT of another's who is not away), AOI_ELIMIT. ADOPT takes over an entity that was released (to
 * anybody, or to this owner), of which the owner is away, or that the sink's may_take allows, as it is; of the argument only the id counts. AOI_ENOENTITY, AOI_EOWNER.
 * One's own is fine. */
int aoi_entity_add(struct aoi_space *space, aoi_owner owner, enum aoi_add_mode mode, const struct aoi_entity *entity);
/* extra NULL: unchanged. AOI_EINVAL, AOI_EBOUNDS. */
int aoi_entity_move(struct aoi_space *space, aoi_owner owner, uint64_t id, const float pos[3], const uint32_t *extra);
/* aoi_entity_move() for each id of a column, in order. z NULL: all 0; extra NULL: unchanged. fail is told of each that is refused: its place in the column, and the AOI_E....
 * Returns how many were applied. */
size_t aoi_entity_move_many(struct aoi_space *space, aoi_owner owner, size_t n, const uint64_t *id, const float *x, const float *y, const float *z,
                            const uint32_t *extra, void (*fail)(void *ctx, size_t i, int err), void *ctx);
int aoi_entity_remove(struct aoi_space *space, aoi_owner owner, uint64_t id);
int aoi_entity_set_radius(struct aoi_space *space, aoi_owner owner, uint64_t id, float radius);
int aoi_entity_set_layers(struct aoi_space *space, aoi_owner owner, uint64_t id, uint32_t layers);
int aoi_entity_set_payload(struct aoi_space *space, aoi_owner owner, uint64_t id, const void *payload, uint32_t payload_len);
int aoi_entity_set_appeal(struct aoi_space *space, aoi_owner owner, uint64_t id, float appeal);
int aoi_entity_set_priority(struct aoi_space *space, aoi_owner owner, uint64_t id, uint32_t priority);
/* It stays the owner's in every respect until somebody adopts it. to 0: anybody. */
int aoi_entity_release(struct aoi_space *space, aoi_owner owner, uint64_t id, aoi_owner to);
int aoi_entity_get(const struct aoi_space *space, uint64_t id, struct aoi_entity *out);

/* ------------------------------------------------------------------------------------------------------------- players
 * All: AOI_EINVAL for id 0, AOI_EOWNER, and, but for open, subscribe and viewport_set (which open a player with default settings), AOI_ENOPLAYER. */

struct aoi_player_settings {
    uint32_t mask;     /* 0: all */
    uint32_t max_view; /* these three: 0: the space's */
    float leave_margin;
    uint32_t max_enter_per_flush;
    bool presence_only; /* no updates of position and extra; switching it off makes the next delta full */
    bool take_over;     /* of another's player, as ADOPT takes entities; its next delta is full */
    bool keep;          /* the settings of a player that is there */
};
/* Opens a player or replaces the settings of one's own. AOI_EINVAL, AOI_ELIMIT. */
int aoi_player_open(struct aoi_space *space, aoi_owner owner, uint64_t player, const struct aoi_player_settings *settings);
/* Whose it is; 0: there is no such player, or it is the configuration's. */
aoi_owner aoi_player_owner(const struct aoi_space *space, uint64_t player);
/* It stays the owner's until somebody takes it over. to 0: anybody. */
int aoi_player_release(struct aoi_space *space, aoi_owner owner, uint64_t player, aoi_owner to);
/* HIDE or SHOW an entity, known or not, to this player; NONE ends it. AOI_ELIMIT. */
int aoi_player_override(struct aoi_space *space, aoi_owner owner, uint64_t player, uint64_t entity, enum aoi_override kind);
/* Delivers its last, empty delta, marked closed. */
int aoi_player_close(struct aoi_space *space, aoi_owner owner, uint64_t player);
/* AOI_ENOENTITY (and then opens no player), AOI_ELIMIT. */
int aoi_subscribe(struct aoi_space *space, aoi_owner owner, uint64_t player, uint64_t entity, bool include_self);
/* AOI_ENOENTITY where the player is not subscribed to it. */
int aoi_unsubscribe(struct aoi_space *space, aoi_owner owner, uint64_t player, uint64_t entity);
/* AOI_EINVAL: not finite, min > max. z is ignored in 2D. */
int aoi_viewport_set(struct aoi_space *space, aoi_owner owner, uint64_t player, const float min[3], const float max[3]);
bool aoi_player_has_viewport(const struct aoi_space *space, uint64_t player);
int aoi_viewport_clear(struct aoi_space *space, aoi_owner owner, uint64_t player);
/* The player's next delta is full. player 0: all of the owner's in the space (fine if there is none). */
int aoi_resync(struct aoi_space *space, aoi_owner owner, uint64_t player);

/* ------------------------------------------------------------------------------------------------------------- messages
 * Events, not state: told with the next flush to the players of whom the view then holds the publishing entity, or of whom the units and the viewport see
 * the point or some point of the box, whatever their margins and masks. Bytes are copied. AOI_EINVAL, AOI_EBOUNDS (never), AOI_ELIMIT. */
/* A flush takes AOI_POSTS_MAX times that a message goes to a player whom it may concern; what is beyond, of the messages published first, is lost, and counted so. */
#define AOI_POSTS_MAX 1048576
int aoi_publish_from(struct aoi_space *space, aoi_owner owner, uint64_t entity, const void *message, uint32_t len); /* one's own entity */
int aoi_publish_at(struct aoi_space *space, const float min[3], const float max[3], const void *message, uint32_t len);

/* ------------------------------------------------------------------------------------------------------------- flush */

struct aoi_flush_info {
    uint64_t tag, time_us; /* in: for the deltas */
    uint64_t now_ms;       /* in: a clock that never goes back, for min_stay_ms */
    bool final;            /* in: the last one there will be: neither tiers nor max_enter_per_flush hold anything back */
    uint64_t flush;        /* out: its number */
    bool pending;          /* out: it left work for the next: skipped players, enters or updates (tiers) held back */
};

/* Compares the truth with every view and emits deltas. Allocates nothing once the buffers have grown. */
void aoi_flush(struct aoi_space *space, struct aoi_flush_info *info);
/* The same in slices: begin, step until it returns false, end; the caller keeps info where it is. While a flush is open no command may change the space. A step
 * serves so many players at most, and returns whether there are more. */
void aoi_flush_begin(struct aoi_space *space, struct aoi_flush_info *info);
bool aoi_flush_step(struct aoi_space *space, struct aoi_flush_info *info, uint32_t players);
void aoi_flush_end(struct aoi_space *space, struct aoi_flush_info *info);
/* Whether a flush would have something to look at: a change since the last one, or pending work. */
bool aoi_space_dirty(const struct aoi_space *space);

/* ------------------------------------------------------------------------------------------------------------- queries
 * Positions of now, flushed or not. They change nothing. */

/* Result columns, grown as needed and kept for the next query. z counts in 3D only, extra only where the space has it. */
struct aoi_rows {
    size_t n, cap;
    uint64_t *id;
    float *x, *y, *z;
    uint32_t *extra, *layers;
    uint64_t next; /* cursor of the next page, 0: there is none */
};

void aoi_rows_clear(struct aoi_rows *rows); /* frees; a zeroed struct is an empty one */

/* Pages: at most `limit` (1 or more) rows of id above `cursor`; pages ascend by id, rows inside a page come in any order. layers 0: all entities, else those
 * of which layers & it is not 0. AOI_EINVAL: not finite, min > max, negative radius. */
int aoi_query_box(struct aoi_space *space, const float min[3], const float max[3], uint32_t layers, uint64_t cursor, size_t limit,
                  struct aoi_rows *rows);
/* By the rule of AOI_SHAPE_SPHERE, whatever the space's shape. */
int aoi_query_radius(struct aoi_space *space, const float center[3], float radius, uint32_t layers, uint64_t cursor, size_t limit,
                     struct aoi_rows *rows);
/* Entities in the box; players of whom a watching area (a unit's, or the viewport) touches it. */
int aoi_query_count(struct aoi_space *space, const float min[3], const float max[3], uint32_t layers, uint64_t *entities, uint64_t *players);
/* What a player was told (ids only are filled in); *seq: of its last delta. AOI_ENOPLAYER. */
int aoi_query_view(struct aoi_space *space, uint64_t player, uint64_t cursor, size_t limit, struct aoi_rows *rows, uint64_t *seq);

/* The k entities nearest to a point, nearest first (ties: lower id), at most max_distance away (0: however far), by the sphere's rule. k 1 or more. AOI_EINVAL. */
int aoi_query_nearest(struct aoi_space *space, const float center[3], float max_distance, uint32_t layers, size_t k, struct aoi_rows *rows);
/* Players that were told of an entity (ids only). AOI_ENOENTITY. */
int aoi_query_observers(struct aoi_space *space, uint64_t id, uint64_t cursor, size_t limit, struct aoi_rows *rows);
#define AOI_RASTER_MAX 256
/* Counts on a raster of columns x rows (1 .. AOI_RASTER_MAX each) over the box, row by row from min y; an entity on an inner line counts to the higher side. AOI_EINVAL. */
int aoi_query_density(struct aoi_space *space, const float min[3], const float max[3], uint32_t layers, uint32_t columns, uint32_t rows,
                      uint32_t *counts);

/* Which rule decides whether a player sees an entity, as the next flush would find it. The first that applies, from the top. */
enum aoi_rule {
    AOI_RULE_INCLUDE_SELF = 1, /* seen: a unit subscribed with include_self */
    AOI_RULE_SHOW,             /* seen: override */
    AOI_RULE_HIDE,             /* not seen: override */
    AOI_RULE_MASK,             /* not seen: layers & mask is 0 */
    AOI_RULE_RANGE,            /* seen: in the range of a unit or in the viewport */
    AOI_RULE_LEAVE_MARGIN,     /* seen: was told, and is within the margin */
    AOI_RULE_MIN_STAY,         /* seen: was told too short a time ago */
    AOI_RULE_FAR,              /* not seen: too far from every unit, outside the viewport */
    AOI_RULE_BLIND,            /* not seen: the player has neither viewport nor a unit of radius other than 0 */
    AOI_RULE_RANK,             /* not seen: others rank above it under max_view */
    AOI_RULE_ENTER_BUDGET,     /* seen, but waits for max_enter_per_flush or for room on the connection */
};

struct aoi_why {
    enum aoi_rule rule;
    bool told, seen;  /* what the player was told; what the next flush would find */
    bool by_viewport; /* range, margin: by the viewport, else by `unit` */
    bool own_unit;    /* the entity is a unit of the player's that was not asked for by include_self */
    uint64_t unit;    /* the nearest unit, or the one that sees it; 0: the player has none */
    double distance;  /* to that unit or, by_viewport, to the viewport's centre; Euclidean whatever the shape */
    float radius, appeal, margin;
    enum aoi_shape shape; /* of the space: by what `away` counts */
    double away;          /* box: the largest distance along an axis; cells: by how many cells they differ at most; sphere: distance */
    uint32_t cell_range;  /* of cells */
    uint32_t dims;        /* axes of the viewport's box: */
    float box[2][3];      /* its least and its largest corner, where there is one */
    bool viewport_alone;  /* there is one, and no unit that sees anything */
    uint32_t layers, mask;
    uint32_t rank, max_view; /* rank from 1 among what it sees; 0: no limit in force */
    uint32_t stay_left_ms;   /* of min_stay_ms */
    uint32_t period;         /* of its tier: updates every so many flushes */
};
/* AOI_ENOPLAYER, AOI_ENOENTITY. now_ms as for aoi_flush(). */
int aoi_query_why(struct aoi_space *space, uint64_t player, uint64_t entity, uint64_t now_ms, struct aoi_why *why);

struct aoi_stats {
    uint64_t entities, players, pairs, flushes, enters, leaves, updates, deltas, skipped, moves, messages;
    uint64_t memory_bytes; /* reckoned from the capacities of its arrays; O(cells) to find out */
};
void aoi_space_stats(const struct aoi_space *space, struct aoi_stats *stats); /* adds to *stats */
/* Places of entities that have left, and that every view has forgotten: so many may be added that take hardly any memory. A space from which everything has gone, players included,
 * gives its memory back, with the next flush or with the last owner's end. */
uint32_t aoi_space_vacant(const struct aoi_space *space);
/* Entities in the fullest cell (of the settings' cell_size, whatever the index). Visits no more than about so many entities: of more, every so many-th, and then an
 * estimate. */
uint64_t aoi_space_densest(const struct aoi_space *space, uint32_t visits);

/* ------------------------------------------------------------------------------------------------------------- snapshots
 * A world as bytes: what its spaces hold, whose it is, and what players were told; not the counters, and of messages that wait only how many will have been lost. */

typedef void aoi_write_fn(void *ctx, const void *bytes, size_t len);
/* Passes the bytes on piece by piece; changes nothing. No flush may be open. now_ms as for aoi_flush(). */
void aoi_world_save(const struct aoi_world *world, uint64_t now_ms, aoi_write_fn *write, void *ctx);

struct aoi_load {
    const void *bytes;
    size_t len;
    uint64_t now_ms;    /* by the clock of the flushes to come */
    uint64_t passed_ms; /* since it was saved, for min_stay_ms */
    /* Whether there is such an owner, which is not 0. NULL: there is. */
    bool (*knows)(void *ctx, aoi_owner owner);
    /* Whether the space is one of the configuration now, with which settings then: *settings are those of the bytes, and may be replaced. NULL: all is as it was saved. */
    bool (*settings)(void *ctx, uint64_t space, struct aoi_settings *settings);
    void *ctx;
};
#define AOI_LOAD_WHY 256
/* A new world from what aoi_world_save() wrote. Its owners are all away, and each player's next delta is full. The bytes may be anything: NULL, with *why, if they are not a whole
 * world that the limits allow. */
struct aoi_world *aoi_world_load(const struct aoi_limits *limits, const struct aoi_sink *sink, const struct aoi_load *from, char why[AOI_LOAD_WHY]);

/* ------------------------------------------------------------------------------------------------------------- checks */

/* The online oracle: after a flush, and before anything else changes the space, compares what some players were told with the definition of a view, found by walking
 * entities with the exact rules. Who was told whom is all that is compared; what may rightly be missing (max_view, max_enter_per_flush, no room) or rightly
 * still be there (min_stay_ms) counts in the other direction only. */
struct aoi_oracle; /* whose turn it is, and scratch; for any number of spaces */
struct aoi_oracle_result {
    uint64_t checked, left_out; /* players; left out are those that were skipped */
    uint64_t mismatches;        /* (player, entity) pairs */
    uint64_t player, entity;    /* one of them */
};
struct aoi_oracle *aoi_oracle_new(void);
void aoi_oracle_free(struct aoi_oracle *oracle);
/* Checks so many players, each against as many entities as the budget of tests of a rule allows; the others have their turn at the next checks. Adds to *out. */
void aoi_oracle_check(struct aoi_oracle *oracle, const struct aoi_space *space, uint32_t players, uint64_t budget, struct aoi_oracle_result *out);

/* Checks every invariant of every space; aborts with a message at the first that is broken. Slow: for tests. */
void aoi_validate(const struct aoi_world *world);

#endif
