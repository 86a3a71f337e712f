/* growth.c: what a flush costs when ten times as many entities are there, as dense, and the players and what they see stay as many. */
#include <math.h>

#include "base/check.h"
#include "bench.h"

#define PLAYERS 10000
#define TIMES 10    /* so many more entities */
#define MOVING 0.01 /* of all, each round */

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
    struct crowd_plan plan = bench_plan(o, PLAYERS), tenth = plan;
    tenth.entities /= TIMES;
    tenth.side /= sqrt(TIMES);
    const struct bench_pair pair = {.plan = {plan, tenth}, .base = "a tenth of them", .round = round_of_few, .warm_up = o->warm_up};
    bench_compare(o, &pair, out);
}
