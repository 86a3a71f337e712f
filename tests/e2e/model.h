/* model.h: brute force: a world kept in plain arrays, and what each player ought to see of it. */
#ifndef AOI_TESTS_E2E_MODEL_H
#define AOI_TESTS_E2E_MODEL_H

#include "harness.h"

#define MODEL_ENTITIES 120 /* ids 1 .. this */
#define MODEL_PLAYERS 8    /* ids 1 .. this */

struct model_entity {
    bool alive;
    struct libaoi_entity e; /* payload points at bytes */
    uint8_t bytes[600];
};

struct model_player {
    bool open;
    uint32_t mask; /* 0: all */
    bool unit[MODEL_ENTITIES + 1], include_self[MODEL_ENTITIES + 1];
    bool viewport;
    float min[3], max[3];
};

struct model {
    uint64_t space;
    struct libaoi_settings set;
    struct model_entity entities[MODEL_ENTITIES + 1];
    struct model_player players[MODEL_PLAYERS + 1];
};

float model_number(float v);                     /* as the daemon keeps it: denormals and -0.0 are 0 */
void model_remove(struct model *m, uint64_t id); /* with the subscriptions to it */
bool model_sees(const struct model *m, uint64_t player, uint64_t entity);
/* Fails the test unless the player's mirrored view is what brute force says. */
void model_compare(const struct model *m, const struct client *client, uint64_t player);
/* Fails the test unless queries with this box and radius find what brute force finds, page by page, and in a player's view what was told. */
void model_query(const struct model *m, struct client *client, const float min[3], const float max[3], float radius, uint32_t layers,
                 uint64_t player);

#endif
