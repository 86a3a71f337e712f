/* growth.c: what a flush costs when ten times as many entities are there, as dense, and the players and what they see stay as many. */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "bench.h"

#define PLAYERS 10000
#define TIMES 10    /* so many more entities */
#define MOVING 0.01 /* of all, each round */
#define WARM_UP 20  /* rounds */

static double round_of_few(struct crowd *c, struct result *out)
{
    uint32_t n = (uint32_t)(MOVING * c->plan.entities);
    double t0 = crowd_seconds();
    for (uint32_t i = 0; i < n; i++) {
        uint32_t e = (uint32_t)(crowd_random(&c->rng) * c->plan.entities);
        crowd_step_one(c, e);
        crowd_move(c, e);
    }
    double t1 = crowd_seconds();
    unsigned long long allocations = mem_alloc_count();
    crowd_flush(c);
    double flush_s = crowd_seconds() - t1;
    out->allocations += mem_alloc_count() - allocations;
    out->move_s += t1 - t0;
    out->flush_s += flush_s;
    out->moves += n;
    crowd_count_pairs(c);
    out->pairs += c->pairs_now;
    return flush_s;
}

void bench_run_growth(const struct options *o, struct result *out)
{
    struct crowd c[2];
    struct result r[2] = {*out, *out};
    double *flush[2], *ratio = mem_alloc(o->flushes * sizeof *ratio);
    for (int k = 0; k < 2; k++) {
        struct crowd_plan plan = bench_plan(o, PLAYERS);
        if (k == 1) {
            plan.entities /= TIMES;
            plan.side = o->workload->side / sqrt(TIMES);
        }
        crowd_init(&c[k], &plan);
        bench_build(&c[k], &r[k]);
        struct result warm_up = r[k];
        for (int i = 0; i < WARM_UP; i++) round_of_few(&c[k], &warm_up);
        c[k].enters = c[k].leaves = c[k].updates = c[k].deltas = 0;
        flush[k] = mem_alloc(o->flushes * sizeof *flush[k]);
    }
    for (uint32_t f = 0; f < o->flushes; f++) {
        for (uint32_t i = 0; i < 2; i++) flush[(f + i) % 2][f] = round_of_few(&c[(f + i) % 2], &r[(f + i) % 2]);
        ratio[f] = flush[0][f] / flush[1][f];
    }
    for (int k = 0; k < 2; k++) crowd_check_views(&c[k], 100);
    *out = r[0];
    out->base = "a tenth of them";
    out->flushes = o->flushes;
    out->rss_bytes = crowd_rss();
    out->flush_median_s = bench_median(flush[0], o->flushes);
    out->base_flush_median_s = bench_median(flush[1], o->flushes);
    out->flush_ratio = bench_median(ratio, o->flushes);
    out->base_pairs = r[1].pairs;
    out->base_updates = c[1].updates;
    bench_take_counts(&c[0], out);
    out->mismatches += c[1].mismatches;
    for (int k = 0; k < 2; k++) {
        crowd_clear(&c[k]);
        free(flush[k]);
    }
    free(ratio);
}
