/* rules.c: workloads that measure what a rule of visibility costs or saves, beside the same without it. */
#include <stdlib.h>

#include "base/check.h"
#include "bench.h"

void bench_run_crowd(const struct options *o, struct result *out)
{
    struct crowd c;
    struct crowd_plan plan = bench_plan(o, o->workload->entities);
    plan.max_view = 100;
    crowd_init(&c, &plan);
    bench_build(&c, out);
    struct result warm_up = *out;
    for (uint32_t f = 0; f < o->warm_up; f++) bench_round(&c, &warm_up);
    c.enters = c.leaves = c.updates = c.deltas = 0;
    double *flush = mem_alloc(o->flushes * sizeof *flush);
    for (uint32_t f = 0; f < o->flushes; f++) {
        flush[f] = bench_round(&c, out);
        uint32_t most = crowd_largest_view(&c);
        if (most > out->told_most) out->told_most = most;
        if (f % (o->flushes / 4 + 1) == 0) crowd_check_views(&c, 25);
    }
    out->flush_median_s = bench_median(flush, o->flushes);
    out->flushes = o->flushes;
    out->rss_bytes = crowd_rss();
    crowd_check_views(&c, 100);
    crowd_check_mirrors(&c);
    bench_take_counts(&c, out);
    crowd_clear(&c);
    free(flush);
}

void bench_compare(const struct options *o, const struct bench_pair *pair_of, struct result *out)
{
    struct crowd c[2];
    struct result r[2] = {*out, *out};
    double *flush[2], *ratio = mem_alloc(o->flushes * sizeof *ratio), *pair = mem_alloc(o->flushes * sizeof *pair);
    for (int k = 0; k < 2; k++) {
        crowd_init(&c[k], &pair_of->plan[k]);
        bench_build(&c[k], &r[k]);
        struct result warm_up = r[k];
        for (uint32_t i = 0; i < pair_of->warm_up; i++) pair_of->round(&c[k], &warm_up);
        c[k].enters = c[k].leaves = c[k].updates = c[k].deltas = 0;
        flush[k] = mem_alloc(o->flushes * sizeof *flush[k]);
    }
    for (uint32_t f = 0; f < o->flushes; f++) {
        for (uint32_t i = 0; i < 2; i++) flush[(f + i) % 2][f] = pair_of->round(&c[(f + i) % 2], &r[(f + i) % 2]);
        ratio[f] = flush[0][f] / flush[1][f];
        pair[f] = ratio[f] * (double)c[1].pairs_now / (double)c[0].pairs_now;
    }
    for (int k = 0; k < 2; k++) {
        crowd_check_views(&c[k], 100);
        if (pair_of->mirrors) crowd_check_mirrors(&c[k]);
    }
    *out = r[0];
    out->base = pair_of->base;
    out->flushes = o->flushes;
    out->rss_bytes = crowd_rss();
    out->flush_median_s = bench_median(flush[0], o->flushes);
    out->base_flush_median_s = bench_median(flush[1], o->flushes);
    out->flush_ratio = bench_median(ratio, o->flushes);
    out->pair_ratio = bench_median(pair, o->flushes);
    out->base_updates = c[1].updates;
    out->base_pairs = r[1].pairs;
    bench_take_counts(&c[0], out);
    out->mismatches += c[1].mismatches;
    for (int k = 0; k < 2; k++) {
        crowd_clear(&c[k]);
        free(flush[k]);
    }
    free(ratio);
    free(pair);
}

/* Of which plan[0] is to be given the rule. */
static struct bench_pair alike(const struct options *o, const char *base)
{
    struct crowd_plan plain = bench_plan(o, o->workload->entities);
    return (struct bench_pair){.plan = {plain, plain}, .base = base, .round = bench_round, .warm_up = o->warm_up, .mirrors = true};
}

void bench_run_lod(const struct options *o, struct result *out)
{
    struct bench_pair pair = alike(o, "W2");
    pair.plan[0].tiers = "15:1 30:2 *:4";
    bench_compare(o, &pair, out);
}

void bench_run_appeal(const struct options *o, struct result *out)
{
    struct bench_pair pair = alike(o, "W3");
    pair.plan[0].castles = 10;
    pair.plan[0].appeal = 2000;
    bench_compare(o, &pair, out);
}
