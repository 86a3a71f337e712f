/* rig.h: a small world for tests that are told as stories: one space on each index in turn, the model beside it, and what players were told as text. */
#ifndef AOI_TESTS_RIG_H
#define AOI_TESTS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model.h"

/* One player's delta in the last flush. */
struct rig_told {
    uint64_t player;
    size_t leaves, enters, updates, payloads, layers, messages;
    uint64_t lost;
    bool full, closed;
    char text
        [1024]; /* "L7 E7(4,0)=b U5(1,2) P5=c Y5:3 M5=bang lost2": sections in order, ids ascending, messages as they came; cut where it is long */
};

struct rig {
    struct model m;
    struct model_space *s; /* space 1 */
    enum aoi_index index;
    bool places; /* texts have positions */
    ARRAY(struct rig_told) told;
    char owners[256]; /* what owners were told in the last flush, or since: " 1:+7 1:-8 2:lost 9 2:lost player 1" */
    struct rig *next;
};

/* Defines a test that runs on both indexes, on a 2D box space with cells of 32 unless it calls rig_space(). */
#define CASE(name)                      \
    static void name##_(struct rig *r); \
    static void name(void **state)      \
    {                                   \
        (void)state;                    \
        rig_on_both(name##_);           \
    }                                   \
    static void name##_(struct rig *r)
void rig_on_both(void (*body)(struct rig *r));

/* Starts anew with another space (its index is the rig's) and other limits; NULL: the usual ones. */
void rig_space(struct rig *r, const struct aoi_settings *settings, const struct aoi_limits *limits);
struct aoi_limits rig_limits(void);
struct aoi_space *rig_core(struct rig *r);

/* Short forms, by owner 1 in space 1, in 2D. All but the ones that return int have to succeed. */
void rig_add(struct rig *r, uint64_t id, float x, float y, float radius);
int rig_add_by(struct rig *r, aoi_owner owner, enum aoi_add_mode mode, uint64_t id, float x, float y, float radius, const char *payload);
void rig_move(struct rig *r, uint64_t id, float x, float y);
int rig_move_by(struct rig *r, aoi_owner owner, uint64_t id, float x, float y);
void rig_remove(struct rig *r, uint64_t id);
void rig_radius(struct rig *r, uint64_t id, float radius);
void rig_payload(struct rig *r, uint64_t id, const char *payload);
void rig_subscribe(struct rig *r, uint64_t player, uint64_t entity);
void rig_unsubscribe(struct rig *r, uint64_t player, uint64_t entity);
void rig_viewport(struct rig *r, uint64_t player, float min_x, float min_y, float max_x, float max_y);

void rig_unview(struct rig *r, uint64_t player);
void rig_layers(struct rig *r, uint64_t id, uint32_t layers);
void rig_appeal(struct rig *r, uint64_t id, float appeal);
void rig_priority(struct rig *r, uint64_t id, uint32_t priority);
void rig_open(struct rig *r, uint64_t player, struct aoi_player_settings settings);
void rig_override(struct rig *r, uint64_t player, uint64_t entity, enum aoi_override kind);
void rig_set(struct rig *r, struct aoi_space_change change);
void rig_margin(struct rig *r, float leave_margin);
void rig_tiers(struct rig *r, const char *text);
void rig_cast(struct rig *r, uint64_t entity, const char *message);
void rig_cast_at(struct rig *r, float min_x, float min_y, float max_x, float max_y, const char *message);
/* As the core tells it, judged by the model. */
struct aoi_why rig_why(struct rig *r, uint64_t player, uint64_t entity);

/* Flushes; returns whether work is pending. */
bool rig_flush(struct rig *r);
/* Flushes and returns what the player was told as text: "" for nothing. */
const char *rig_tells(struct rig *r, uint64_t player);
/* What it was told in the last flush; zeros for nothing. */
const struct rig_told *rig_told(struct rig *r, uint64_t player);

#endif
