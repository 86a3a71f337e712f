/* crowd.h: what every workload of the benchmark runs on: entities that walk at random, players that watch through them, a sink that reads what it gets. */
#ifndef AOI_BENCH_CROWD_H
#define AOI_BENCH_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/aoi.h"

/* Half-extents of the boxes: [0] of the first `share` of all, at random, [1] of those up to its share, and so on; the last share is 1. */
struct crowd_mix {
    double share, radius;
};

struct crowd_plan {
    uint32_t entities, players;  /* the first `players` entities are watched, each by one player */
    double side, radius, step;   /* the world is side x side; a box of half-extent radius; length of a step */
    double teleport;             /* share of the entities that jump anywhere instead */
    const struct crowd_mix *mix; /* instead of radius; NULL: all alike */
    uint32_t max_view;           /* 0: no limit */
    const char *tiers;           /* update_tiers; NULL: none */
    uint32_t castles;            /* so many, spread evenly over the ids, have an appeal */
    double appeal;
    bool presence_only;
    enum aoi_index index;
    enum aoi_shape shape; /* of what a unit sees; castles are for boxes alone */
    double cell_size;
    uint64_t seed; /* not 0 */
};

#define CROWD_MIRRORS 16 /* players whose deltas are applied to a mirror while verifying */

struct crowd {
    struct crowd_plan plan;
    struct aoi_world *world;
    struct aoi_space *space;
    uint64_t rng;
    uint64_t *id;
    float *x, *y, *r; /* columns, like id */
    uint8_t *buffer;  /* the sink's, as large as the caches */
    size_t used;
    uint64_t bytes, enters, leaves, updates, deltas; /* what the sink got */
    uint64_t pairs_now;                              /* sum of the sizes of all views */
    bool mirroring;
    float *mirror[CROWD_MIRRORS]; /* by entity: x, y; NaN: not in the view */
    uint64_t mismatches;
};

double crowd_random(uint64_t *rng); /* the next of a row of numbers in [0, 1); *rng is never 0 */
double crowd_seconds(void);         /* of this process, which has one thread: what else the machine does is not counted */
uint64_t crowd_rss(void);           /* bytes resident */

struct aoi_limits crowd_limits(void);

/* Chooses places and radii, and makes the world and an empty space. */
void crowd_init(struct crowd *c, const struct crowd_plan *plan);
void crowd_clear(struct crowd *c);
void crowd_insert(struct crowd *c);    /* adds all entities */
void crowd_subscribe(struct crowd *c); /* opens all players */
void crowd_step_one(struct crowd *c, uint32_t entity);
void crowd_step(struct crowd *c); /* chooses new places; moves nobody yet */
void crowd_move(struct crowd *c, uint32_t entity);
void crowd_move_all(struct crowd *c);
void crowd_flush(struct crowd *c);
void crowd_count_pairs(struct crowd *c);
uint32_t crowd_largest_view(struct crowd *c);

/* Compares the views of a sample of players with brute force; adds to mismatches. With max_view: their sizes, and that all in them is in sight. */
void crowd_check_views(struct crowd *c, uint32_t sample);
/* Resyncs some players, applies their deltas over some flushes, and compares every position that they were told, unless tiers or presence_only hold some back. */
void crowd_check_mirrors(struct crowd *c);

#endif
