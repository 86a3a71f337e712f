/* bench.h: what the workloads share: what they are, what was asked for, what was measured. */
#ifndef AOI_BENCH_BENCH_H
#define AOI_BENCH_BENCH_H

#include "crowd.h"

struct options;
struct result;
struct yardstick;

struct workload {
    const char *name, *what;
    uint32_t entities;
    double side, radius, step;
    uint32_t flushes;
    double teleport;
    const struct crowd_mix *mix;
    void (*run)(const struct options *o, struct result *out);
};

struct options {
    const struct workload *workload;
    enum aoi_index index;
    enum aoi_shape shape;
    uint32_t flushes; /* 0: the workload's */
    uint32_t warm_up; /* rounds before those that are measured */
    double cell_size;
    uint64_t seed; /* not 0 */
    bool json, presence;
    const struct yardstick *yardstick; /* NULL: none */
};

/* What was measured; a report prints them in this order. */
struct result {
    const struct options *options;
    uint32_t entities, players, flushes;
    uint64_t pairs, enters, leaves, updates, moves;
    double insert_s, subscribe_s, move_s, flush_s;
    uint64_t allocations;                        /* by the measured flushes */
    uint64_t inserted_rss_bytes, rss_bytes;      /* when all entities were there and no players; in the end */
    double bytes_per_entity;                     /* MEM; 0: not measured */
    double bytes_per_pair;                       /* of players and all that is for them, by the pairs in view; 0: not measured */
    double one_move_s, all_move_s, one_s, all_s; /* IDLE: a flush in which one or all moved, without and with the moves themselves */
    uint32_t told_most;                          /* CROWD: the largest view that was ever told; 0: not measured */
    double flush_median_s;                       /* 0: not measured */
    /* Where two things are compared, in one run and in turn: what the figures are compared with. Ratios are medians of those of the rounds. */
    const char *base; /* NULL: nothing */
    double base_flush_median_s, flush_ratio, pair_ratio;
    uint64_t base_updates, base_pairs;
    double round_s, base_round_s, round_ratio; /* beside a yardstick: moves and flush, and how many times longer it takes */
    uint64_t queries, results;                 /* QUERY; 0: not measured */
    double query_s;
    uint64_t mismatches;
};

struct crowd_plan bench_plan(const struct options *o, uint32_t players);
void bench_build(struct crowd *c, struct result *out);
void bench_warm_up(struct crowd *c); /* a round that is not measured */
double bench_clocked(struct crowd *c, struct result *out);
/* All move, then a flush, of which the time is returned. */
double bench_round(struct crowd *c, struct result *out);
void bench_take_counts(const struct crowd *c, struct result *out);
double bench_median(double *values, uint32_t n); /* reorders them */

void bench_versus(const struct options *o, struct result *out); /* the workload beside o->yardstick */

/* Two crowds, a round of each in turn: who comes first changes. The first is what is measured, the other its base. */
struct bench_pair {
    struct crowd_plan plan[2];
    const char *base;
    double (*round)(struct crowd *c, struct result *out); /* as bench_round() */
    uint32_t warm_up;                                     /* rounds before those that are measured */
    bool mirrors;                                         /* what players were told is compared with brute force, beside their views */
};
void bench_compare(const struct options *o, const struct bench_pair *pair, struct result *out); /* rules.c */

/* rules.c, zoom.c, query.c, growth.c */
void bench_run_crowd(const struct options *o, struct result *out);
void bench_run_lod(const struct options *o, struct result *out);
void bench_run_appeal(const struct options *o, struct result *out);
void bench_run_growth(const struct options *o, struct result *out);
void bench_run_query(const struct options *o, struct result *out);
void bench_run_zoom(const struct options *o, struct result *out);

#endif
