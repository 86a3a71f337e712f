/* versus.c: a workload beside a yardstick, in one process, on the same walk, in turn. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "bench.h"
#include "yardstick.h"

enum { ROUNDS = 5 };

/* Where everybody stands, so that both can walk the same way from there. */
struct mark {
    uint64_t rng;
    float *x, *y;
};

static void save(const struct crowd *c, struct mark *m)
{
    size_t bytes = c->plan.entities * sizeof *m->x;
    m->rng = c->rng;
    memcpy(m->x, c->x, bytes);
    memcpy(m->y, c->y, bytes);
}

static void restore(struct crowd *c, const struct mark *m)
{
    size_t bytes = c->plan.entities * sizeof *m->x;
    c->rng = m->rng;
    memcpy(c->x, m->x, bytes);
    memcpy(c->y, m->y, bytes);
}

static double ours(struct crowd *c, uint32_t flushes, struct result *out)
{
    double seconds = 0;
    for (uint32_t f = 0; f < flushes; f++) {
        crowd_step(c);
        double t0 = crowd_seconds();
        crowd_move_all(c);
        crowd_flush(c);
        seconds += crowd_seconds() - t0;
        crowd_count_pairs(c);
        out->pairs += c->pairs_now;
    }
    return seconds / flushes;
}

static double theirs(struct crowd *c, const struct yardstick *y, void *mine, uint32_t flushes, struct result *out)
{
    double seconds = 0;
    for (uint32_t f = 0; f < flushes; f++) {
        crowd_step(c);
        double t0 = crowd_seconds();
        y->round(mine, c);
        seconds += crowd_seconds() - t0;
        out->base_pairs += y->pairs(mine);
    }
    return seconds / flushes;
}

/* So many flushes of each, one after the other; who comes first changes from round to round. */
static void both(struct crowd *c, const struct yardstick *y, void *mine, struct mark *mark, uint32_t flushes, uint32_t round, struct result *out,
                 double seconds[2])
{
    save(c, mark);
    for (uint32_t k = 0; k < 2; k++) {
        if (k == 1) restore(c, mark);
        bool we = (k + round) % 2 == 0;
        seconds[we ? 0 : 1] = we ? ours(c, flushes, out) : theirs(c, y, mine, flushes, out);
    }
    if (y->exact) c->mismatches += c->pairs_now != y->pairs(mine);
}

void bench_versus(const struct options *o, struct result *out)
{
    struct crowd c;
    struct crowd_plan plan = bench_plan(o, o->workload->entities);
    const struct yardstick *y = o->yardstick;
    double time[2][ROUNDS], ratio[ROUNDS], seconds[2];
    struct mark mark = {.x = mem_alloc(plan.entities * sizeof *mark.x), .y = mem_alloc(plan.entities * sizeof *mark.y)};
    uint32_t flushes = (o->flushes + ROUNDS - 1) / ROUNDS;
    crowd_init(&c, &plan);
    bench_build(&c, out);
    void *mine = y->begin(&c);
    both(&c, y, mine, &mark, 1, 0, out, seconds); /* warm-up: everybody is told everything */
    c.enters = c.leaves = c.updates = c.deltas = out->pairs = out->base_pairs = 0;
    for (uint32_t r = 0; r < ROUNDS; r++) {
        both(&c, y, mine, &mark, flushes, r, out, seconds);
        time[0][r] = seconds[0];
        time[1][r] = seconds[1];
        ratio[r] = seconds[1] / seconds[0];
    }
    crowd_check_views(&c, 100);
    out->flushes = flushes * ROUNDS;
    out->base = y->name;
    out->round_s = bench_median(time[0], ROUNDS);
    out->base_round_s = bench_median(time[1], ROUNDS);
    out->round_ratio = bench_median(ratio, ROUNDS);
    bench_take_counts(&c, out);
    y->end(mine);
    crowd_clear(&c);
    free(mark.x);
    free(mark.y);
}
