/* model.h: what the core must do, by brute force from the definitions, and a mirror per player that believes only its deltas.
 *
 * A model drives a world of its own: every model_...() call makes the core's call of the same name, judges the code that it returned, and does the same to
 * plain arrays. Each delta is judged as it comes, against what the player was told and what it should see now. Whatever is wrong prints a line and aborts.
 */
#ifndef AOI_TESTS_MODEL_H
#define AOI_TESTS_MODEL_H

#include "base/array.h"
#include "core/aoi.h"

#define MODEL_OWNERS 8
#define MODEL_NO_LIMIT SIZE_MAX

/* What an enter tells about an entity; a payload by its length and hash. */
struct model_value {
    float pos[3];
    uint32_t extra, layers, payload_len;
    uint64_t payload_hash;
};

/* What an owner was told about whether its entity is observed. */
enum model_report { MODEL_UNOBSERVED, MODEL_OBSERVED, MODEL_RESTATE };

/* How a player sees an entity: see model_look(). */
struct model_sight {
    struct model_told *told; /* NULL: not told, or another entity of that id */
    bool self, show, hide;   /* a unit subscribed with include_self; overrides */
    bool masked;             /* layers & mask is 0 */
    bool base, margin, stay; /* in range; told and within the margin; told too short a time ago. Mask or not */
    bool candidate;          /* before rank */
    double d2, key;          /* squared distance to the nearest anchor; the same for ranking */
    uint32_t rank;           /* from 1 among the candidates; 0: neither max_view nor an enter budget asks for it */
    uint32_t period;         /* of its tier */
    bool enters;             /* not told, and within the enter budget */
};

struct model_entity {
    uint64_t id, identity; /* identity: never used twice, so that remove and re-add makes another one */
    aoi_owner owner;
    float radius, appeal;
    uint32_t priority;
    bool report_observed, released;
    aoi_owner release_to;
    enum model_report reported;
    uint32_t moves; /* changes of position or extra */
    bool named;     /* scratch: in this flush its owner was told about it */
    bool seen;      /* scratch: the player in question sees it */
    struct model_sight sight;
    struct model_value v;
};

/* One entity in a player's mirror, as its deltas told it. */
struct model_told {
    uint64_t id, identity;
    struct model_value v;
    uint64_t since;                         /* flush time at which it entered; 0: long ago */
    bool gap;                               /* a flush has passed at which it was not due: may be told a place that it has */
    uint32_t moves;                         /* of the entity, when it was last due */
    bool owed;                              /* its payload was held back: may be told again though it is the same by now */
    bool gone, fresh, moved, paid, layered; /* scratch: sections of this delta that named it */
};

struct model_unit {
    uint64_t entity;
    bool include_self;
};

struct model_override {
    uint64_t entity;
    bool show;
};

struct model_player {
    uint64_t id;
    aoi_owner owner;
    struct aoi_player_settings set; /* as given */
    uint32_t mask;                  /* in force */
    bool released;
    aoi_owner release_to;
    ARRAY(struct model_override) overrides;
    uint64_t lost_least, lost_most; /* messages since its last delta */
    bool has_viewport;
    float min[3], max[3];
    ARRAY(struct model_unit) units;
    ARRAY(struct model_told) told; /* the mirror, ascending by id */
    uint64_t seq;
    bool full_due;  /* its next delta has to be full */
    bool skipped;   /* was skipped since it was last served: may be told a value that it has */
    bool delivered; /* in this flush */
    bool left, may; /* after this flush: work is left for it; may be left, for all that can be said */
    bool closed;    /* got its last delta */
};

struct model_message {
    uint64_t entity, identity; /* 0: an area */
    float min[3], max[3];
    uint32_t len;
    uint64_t hash;
};

struct model_space {
    uint64_t id;
    aoi_owner owner;
    bool orphan;   /* persistent, and its owner has gone */
    bool dirty;    /* there was something to look at after the last command */
    bool notified; /* since then its on_change was called */
    struct aoi_settings set;
    uint32_t dims;
    ARRAY(struct model_entity) entities;  /* ascending by id */
    ARRAY(struct model_player) players;   /* ascending by id */
    ARRAY(struct model_message) messages; /* since the last flush */
    uint64_t flush, messages_n;
    ARRAY(struct model_entity *) units, candidates; /* scratch of model_look() */
};

struct model {
    struct aoi_world *world;
    struct aoi_limits limits;
    struct aoi_oracle *oracle;
    ARRAY(struct model_space *) spaces;
    uint64_t identity;
    struct aoi_rows rows;

    /* What the sink's room() says: room[owner], less what was delivered if it drains. Set them before a flush. */
    size_t room[MODEL_OWNERS];
    bool drains[MODEL_OWNERS];
    size_t room_min[MODEL_OWNERS], room_last[MODEL_OWNERS]; /* what was said in this flush */
    bool deaf[MODEL_OWNERS];                                /* what the sink's observed() answers: not now */
    bool heard[MODEL_OWNERS];                               /* it was called in this flush */
    bool away[MODEL_OWNERS];
    uint64_t now_ms; /* of the next flush; move it on between them */
    bool final;      /* the next flush is one that tiers and budgets do not bind */

    uint8_t *placed; /* where the update columns of the next delta stand; NULL: in the delta itself */

    struct model_space *flushing;
    uint64_t tag, time_us;
    uint32_t closed_n; /* closed deltas since the last command */
    bool losing;       /* this command has to take something away: */
    bool losing_player;
    aoi_owner loser;
    uint64_t losing_id;
    ARRAY(struct model_told) before;   /* scratch: the mirror before a full delta */
    uint64_t messages, lost, observed; /* told; said to be lost; calls */
    uint64_t oracle_checked;
    uint64_t enters, leaves, updates, deltas, flushes, pairs; /* pairs: sizes of views, summed over the flushes */

    void (*on_delta)(void *ctx, const struct aoi_delta *delta); /* after it was judged; NULL: nobody listens */
    void *on_delta_ctx;
    void (*on_observed)(void *ctx, aoi_owner owner, uint64_t id, bool observed); /* likewise, with the same ctx */
    void (*on_lost)(void *ctx, aoi_owner owner, bool is_player, uint64_t id);
};

void model_init(struct model *m, const struct aoi_limits *limits);
void model_clear(struct model *m);
_Noreturn void model_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

struct model_space *model_space(const struct model *m, uint64_t id); /* NULL: there is none */
struct model_entity *model_entity(const struct model_space *s, uint64_t id);
struct model_player *model_player(const struct model_space *s, uint64_t id);
struct model_told *model_told(const struct model_player *p, uint64_t id);

/* sight.c: section 3 of the contract. Sets sight and seen of every entity, as the player's view is at a flush at this time. Returns how many are seen. */
uint32_t model_look(const struct model *m, struct model_space *s, struct model_player *p, uint64_t now_ms);
bool model_unit_reaches(const struct model_space *s, const struct model_entity *e, const struct model_entity *t, float margin);
bool model_viewport_shows(const struct model_space *s, const struct model_player *p, const struct model_entity *t, float margin);
/* Whether the player's base rule covers some point of the box, without appeal, margin and mask. */
bool model_looks_at(const struct model_space *s, const struct model_player *p, const float min[3], const float max[3]);
bool model_due(const struct model *m, const struct model_entity *e, uint64_t flush); /* after model_look() */
float model_margin(const struct model_space *s, const struct model_player *p);
uint32_t model_max_view(const struct model_space *s, const struct model_player *p);
uint32_t model_max_enter(const struct model_space *s, const struct model_player *p);
bool model_observed(const struct model *m, const struct model_space *s, const struct model_entity *e);

/* Each returns the core's code. */
int model_space_create(struct model *m, aoi_owner owner, uint64_t id, const struct aoi_settings *settings, bool if_absent);
int model_space_destroy(struct model *m, aoi_owner owner, bool admin, uint64_t id);
int model_space_set(struct model *m, struct model_space *s, aoi_owner owner, bool admin, const struct aoi_space_change *change);
void model_owner_end(struct model *m, aoi_owner owner, bool tell);
void model_owner_away(struct model *m, aoi_owner owner, bool away);

int model_entity_add(struct model *m, struct model_space *s, aoi_owner owner, enum aoi_add_mode mode, const struct aoi_entity *entity);
int model_entity_move(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, const float pos[3], const uint32_t *extra);
int model_entity_remove(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id);
int model_entity_set_radius(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, float radius);
int model_entity_set_layers(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, uint32_t layers);
int model_entity_set_payload(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, const void *payload, uint32_t len);
int model_entity_set_appeal(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, float appeal);
int model_entity_set_priority(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, uint32_t priority);
int model_entity_release(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, aoi_owner to);
int model_entity_get(struct model *m, struct model_space *s, uint64_t id);

int model_player_settings(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, const struct aoi_player_settings *settings);
int model_player_release(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, aoi_owner to);
int model_player_override(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, uint64_t entity, enum aoi_override kind);
int model_publish_from(struct model *m, struct model_space *s, aoi_owner owner, uint64_t entity, const void *message, uint32_t len);
int model_publish_at(struct model *m, struct model_space *s, const float min[3], const float max[3], const void *message, uint32_t len);
/* model_player_settings() with a mask alone. */
int model_player_open(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, uint32_t mask);
int model_player_close(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player);
int model_subscribe(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, uint64_t entity, bool include_self);
int model_unsubscribe(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, uint64_t entity);
int model_viewport_set(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, const float min[3], const float max[3]);
int model_viewport_clear(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player);
int model_resync(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player);

/* Flushes, and checks every player afterwards. Returns whether work is pending. */
bool model_flush(struct model *m, struct model_space *s);
/* Flushes until nothing is pending, with room for all and time going by; that has to be soon. Then every view is what it should be and was told as it is. */
void model_converge(struct model *m, struct model_space *s);

/* restart.c: the world is saved, loaded (time goes by in between), saved again: the same bytes; then everybody is away. */
void model_restart(struct model *m, uint64_t passed_ms);
struct buf;
void model_save(const struct aoi_world *world, uint64_t now_ms, struct buf *out); /* appends the bytes */
/* With the limits and the sink of another world. NULL, with why[AOI_LOAD_WHY]. */
struct aoi_world *model_load(const struct aoi_world *old, const void *bytes, size_t len, uint64_t now_ms, uint64_t passed_ms, char *why);

/* digest.c: a hash of a delta that does not depend on the order inside a section, and leaves out messages_lost, in which the indexes may differ. */
uint64_t model_digest(const struct aoi_delta *delta);

/* Reads all pages of at most `limit` rows and compares. Returns the number of entities found, or the (right) error code. */
int model_query_box(struct model *m, struct model_space *s, const float min[3], const float max[3], uint32_t layers, size_t limit);
int model_query_radius(struct model *m, struct model_space *s, const float center[3], float radius, uint32_t layers, size_t limit);
int model_query_count(struct model *m, struct model_space *s, const float min[3], const float max[3], uint32_t layers);
int model_query_view(struct model *m, struct model_space *s, uint64_t player, size_t limit);
int model_query_nearest(struct model *m, struct model_space *s, const float center[3], float max_distance, uint32_t layers, size_t k);
int model_query_observers(struct model *m, struct model_space *s, uint64_t id, size_t limit);
int model_query_density(struct model *m, struct model_space *s, const float min[3], const float max[3], uint32_t layers, uint32_t columns,
                        uint32_t rows);
/* *why: what the core answered. */
int model_query_why(struct model *m, struct model_space *s, uint64_t player, uint64_t entity, struct aoi_why *why);

/* Between the model's files. */
#define REQUIRE(cond, ...) ((cond) ? (void)0 : model_fail(__VA_ARGS__))
#define CODE(rc) (1u << -(rc))
struct aoi_space *model_core_space(const struct model *m, const struct model_space *s);
struct model_unit *model_unit(const struct model_player *p, uint64_t entity);
const struct model_override *model_override(const struct model_player *p, uint64_t entity);
uint64_t model_hash(const void *p, uint32_t len);
bool model_same_place(const struct model_space *s, const struct model_value *a, const struct model_value *b);
bool model_same_payload(const struct model_value *a, const struct model_value *b);
/* faults: the codes that the call may return; 0: it has to succeed. Returns rc. */
int model_judge(struct model *m, const char *what, uint64_t id, int rc, unsigned faults, uint32_t closed);
unsigned model_box_faults(uint32_t dims, const float *min, const float *max);
bool model_in_box(uint32_t dims, const float *p, const float *min, const float *max);
double model_distance2(uint32_t dims, const float *a, const float *b);
size_t model_sink_room(void *ctx, aoi_owner owner);
void model_sink_deliver(void *ctx, const struct aoi_delta *d);
bool model_sink_columns(void *ctx, const struct aoi_delta *d, struct aoi_places *to);
bool model_sink_observed(void *ctx, aoi_owner owner, uint64_t space, const uint64_t *id, const bool *observed, size_t n);
void model_sink_lost(void *ctx, aoi_owner owner, uint64_t space, bool is_player, uint64_t id);

#endif
