/* query.c: boxes over the population of W2: what a result costs. */
#include <stdlib.h>

#include "base/check.h"
#include "bench.h"

#define WIDTH 200
#define HEIGHT 100
#define CHECK_EVERY 64

static bool in_box(const struct crowd *c, uint64_t e, const float min[3], const float max[3])
{
    return min[0] <= c->x[e] && c->x[e] <= max[0] && min[1] <= c->y[e] && c->y[e] <= max[1];
}

/* Every entity in the box must be among the rows, and none else. */
static uint64_t check(const struct crowd *c, const float min[3], const float max[3], const struct aoi_rows *rows)
{
    uint64_t in = 0, wrong = 0;
    for (uint32_t e = 0; e < c->plan.entities; e++) in += in_box(c, e, min, max);
    for (size_t i = 0; i < rows->n; i++) {
        uint64_t e = rows->id[i] - c->id[0];
        wrong += e >= c->plan.entities || rows->x[i] != c->x[e] || rows->y[i] != c->y[e] || !in_box(c, e, min, max);
    }
    return wrong + (in != rows->n);
}

void bench_run_query(const struct options *o, struct result *out)
{
    struct crowd c;
    struct crowd_plan plan = bench_plan(o, 0);
    struct aoi_rows rows = {0};
    uint64_t rng = o->seed;
    crowd_init(&c, &plan);
    bench_build(&c, out);
    uint32_t n = o->flushes * 1000;
    float(*low)[2] = mem_alloc(n * sizeof *low);
    for (uint32_t i = 0; i < n; i++) {
        low[i][0] = (float)(crowd_random(&rng) * (plan.side - WIDTH));
        low[i][1] = (float)(crowd_random(&rng) * (plan.side - HEIGHT));
    }
    for (int timed = 0; timed < 2; timed++) { /* first to see that they are right, and to warm up */
        double t0 = crowd_seconds();
        out->results = 0;
        for (uint32_t i = 0; i < n; i++) {
            const float min[3] = {low[i][0], low[i][1]}, max[3] = {low[i][0] + WIDTH, low[i][1] + HEIGHT};
            CHECK(aoi_query_box(c.space, min, max, 0, 0, plan.entities, &rows) == AOI_OK);
            out->results += rows.n;
            if (!timed && i % CHECK_EVERY == 0) c.mismatches += check(&c, min, max, &rows);
        }
        out->query_s = crowd_seconds() - t0;
    }
    out->queries = n;
    out->rss_bytes = crowd_rss();
    aoi_rows_clear(&rows);
    bench_take_counts(&c, out);
    crowd_clear(&c);
    free(low);
}
