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

struct model_entity {
    uint64_t id, identity; /* identity: never used twice, so that remove and re-add makes another one */
    aoi_owner owner;
    float radius;
    bool seen; /* scratch: the player in question sees it */
    struct model_value v;
};

/* One entity in a player's mirror, as its deltas told it. */
struct model_told {
    uint64_t id, identity;
    struct model_value v;
    bool owed;                              /* its payload was held back: may be told again though it is the same by now */
    bool gone, fresh, moved, paid, layered; /* scratch: sections of this delta that named it */
};

struct model_unit {
    uint64_t entity;
    bool include_self;
};

struct model_player {
    uint64_t id;
    aoi_owner owner;
    uint32_t mask;
    bool has_viewport;
    float min[3], max[3];
    ARRAY(struct model_unit) units;
    ARRAY(struct model_told) told; /* the mirror, ascending by id */
    uint64_t seq;
    bool full_due;  /* its next delta has to be full */
    bool skipped;   /* was skipped since it was last served: may be told a value that it has */
    bool delivered; /* in this flush */
    bool closed;    /* got its last delta */
};

struct model_space {
    uint64_t id;
    aoi_owner owner;
    bool orphan; /* persistent, and its owner has gone */
    struct aoi_settings set;
    uint32_t dims;
    ARRAY(struct model_entity) entities; /* ascending by id */
    ARRAY(struct model_player) players;  /* ascending by id */
    uint64_t flush;
};

struct model {
    struct aoi_world *world;
    struct aoi_limits limits;
    ARRAY(struct model_space *) spaces;
    uint64_t identity;
    struct aoi_rows rows;

    /* What the sink's room() says: room[owner], less what was delivered if it drains. Set them before a flush. */
    size_t room[MODEL_OWNERS];
    bool drains[MODEL_OWNERS];
    size_t room_min[MODEL_OWNERS], room_last[MODEL_OWNERS]; /* what was said in this flush */

    struct model_space *flushing;
    uint64_t tag, time_us;
    uint32_t closed_n;                                        /* closed deltas since the last command */
    uint64_t enters, leaves, updates, deltas, flushes, pairs; /* pairs: sizes of views, summed over the flushes */

    void (*on_delta)(void *ctx, const struct aoi_delta *delta); /* after it was judged; NULL: nobody listens */
    void *on_delta_ctx;
};

void model_init(struct model *m, const struct aoi_limits *limits);
void model_clear(struct model *m);
_Noreturn void model_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

struct model_space *model_space(const struct model *m, uint64_t id); /* NULL: there is none */
struct model_entity *model_entity(const struct model_space *s, uint64_t id);
struct model_player *model_player(const struct model_space *s, uint64_t id);
struct model_told *model_told(const struct model_player *p, uint64_t id);
/* Whether unit e sees t, by section 3 of the contract. */
bool model_unit_sees(const struct model_space *s, const struct model_entity *e, const struct model_entity *t);
/* Whether the player's view at a flush holds t. */
bool model_player_sees(const struct model_space *s, const struct model_player *p, const struct model_entity *t);

/* Each returns the core's code. */
int model_space_create(struct model *m, aoi_owner owner, uint64_t id, const struct aoi_settings *settings, bool if_absent);
int model_space_destroy(struct model *m, aoi_owner owner, bool admin, uint64_t id);
void model_owner_end(struct model *m, aoi_owner owner, bool tell);

int model_entity_add(struct model *m, struct model_space *s, aoi_owner owner, enum aoi_add_mode mode, const struct aoi_entity *entity);
int model_entity_move(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, const float pos[3], const uint32_t *extra);
int model_entity_remove(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id);
int model_entity_set_radius(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, float radius);
int model_entity_set_layers(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, uint32_t layers);
int model_entity_set_payload(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, const void *payload, uint32_t len);
int model_entity_get(struct model *m, struct model_space *s, uint64_t id);

int model_player_open(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, uint32_t mask);
int model_player_close(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player);
int model_subscribe(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, uint64_t entity, bool include_self);
int model_unsubscribe(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, uint64_t entity);
int model_viewport_set(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, const float min[3], const float max[3]);
int model_viewport_clear(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player);
int model_resync(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player);

/* Flushes, and checks every player afterwards. Returns whether work is pending. */
bool model_flush(struct model *m, struct model_space *s);

/* Reads all pages of at most `limit` rows and compares. Returns the number of entities found, or the (right) error code. */
int model_query_box(struct model *m, struct model_space *s, const float min[3], const float max[3], uint32_t layers, size_t limit);
int model_query_radius(struct model *m, struct model_space *s, const float center[3], float radius, uint32_t layers, size_t limit);
int model_query_count(struct model *m, struct model_space *s, const float min[3], const float max[3], uint32_t layers);
int model_query_view(struct model *m, struct model_space *s, uint64_t player, size_t limit);

/* Between model.c and mirror.c. */
#define REQUIRE(cond, ...) ((cond) ? (void)0 : model_fail(__VA_ARGS__))
struct aoi_space *model_core_space(const struct model *m, const struct model_space *s);
uint64_t model_hash(const void *p, uint32_t len);
bool model_same_place(const struct model_space *s, const struct model_value *a, const struct model_value *b);
bool model_same_payload(const struct model_value *a, const struct model_value *b);
size_t model_sink_room(void *ctx, aoi_owner owner);
void model_sink_deliver(void *ctx, const struct aoi_delta *d);

#endif
