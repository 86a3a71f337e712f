/* aoibench_core.c: measures the core alone, without network and protocol; see usage(). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "bench.h"
#include "yardstick.h"

/* The default of a space, for all workloads: the figures are those of somebody who has chosen nothing. */
#define CELL_SIZE AOI_CELL_SIZE_DEFAULT
#define WARM_UP 60 /* rounds: everybody has gone into other cells by then, and what grows for that has grown */
#define USUAL_SEED 0x9E3779B97F4A7C15u

static void run_all(const struct options *o, struct result *out);
static void run_memory(const struct options *o, struct result *out);
static void run_idle(const struct options *o, struct result *out);

static const struct crowd_mix three_sizes[] = {{0.70, 10}, {0.95, 50}, {1, 300}};
static const struct crowd_mix few_huge[] = {{0.9, 10}, {1, 10000}};

static const struct workload workloads[] = {
    {"W1", "10,000 in 2,000 x 2,000", 10000, 2000, 50, 0.5, 100, 0, NULL, run_all},
    {"W2", "10,000 in 1,000 x 1,000", 10000, 1000, 50, 1, 100, 0, NULL, run_all},
    {"W3", "100,000 in 6,324 x 6,324", 100000, 6324, 50, 0.5, 20, 0, NULL, run_all},
    {"W4", "5,000 in 200 x 200: a hot spot", 5000, 200, 50, 0.5, 20, 0, NULL, run_all},
    {"W5", "W1 with 1 % teleporting each flush", 10000, 2000, 50, 0.5, 100, 0.01, NULL, run_all},
    {"W6", "W1 with half-extents 10, 50 and 300", 10000, 2000, 50, 0.5, 100, 0, three_sizes, run_all},
    {"MEM", "a million that nobody watches: bytes an entity", 1000000, 20000, 50, 0.5, 2, 0, NULL, run_memory},
    {"IDLE", "a million still ones, 10,000 players: one moves, all move", 1000000, 20000, 50, 0.5, 200, 0, NULL, run_idle},
    {"GROWTH", "a million, 10,000 players, 1 % move; beside a tenth of them, as dense", 1000000, 20000, 50, 0.5, 40, 0, NULL, bench_run_growth},
    {"SPARSE", "4,000 in 1,000,000 x 1,000,000; half-extents 10, one in ten 10,000", 4000, 1000000, 10, 5, 200, 0, few_huge, run_all},
    {"QUERY", "boxes of 200 x 100 over W2, 1,000 for each of --flushes", 10000, 1000, 50, 1, 100, 0, NULL, bench_run_query},
    {"CROWD", "W4 with max_view 100", 5000, 200, 50, 0.5, 20, 0, NULL, bench_run_crowd},
    {"LOD", "W2 with update_tiers 15:1 30:2 *:4, beside W2", 10000, 1000, 50, 1, 100, 0, NULL, bench_run_lod},
    {"APPEAL", "W3 with ten that can be seen from 2,000 further away, beside W3", 100000, 6324, 50, 0.5, 20, 0, NULL, bench_run_appeal},
    {"ZOOM", "a million, 100 cameras over all of them that show 200 cities, 100,000 armies move", 1000000, 20000, 0, 0, 10, 0, NULL, bench_run_zoom},
};

struct crowd_plan bench_plan(const struct options *o, uint32_t players)
{
    const struct workload *w = o->workload;
    return (struct crowd_plan){.entities = w->entities,
                               .players = players,
                               .side = w->side,
                               .radius = w->radius,
                               .step = w->step,
                               .teleport = w->teleport,
                               .mix = w->mix,
                               .index = o->index,
                               .shape = o->shape,
                               .cell_size = o->cell_size,
                               .seed = o->seed,
                               .presence_only = o->presence};
}

void bench_build(struct crowd *c, struct result *out)
{
    double t0 = crowd_seconds();
    crowd_insert(c);
    out->inserted_rss_bytes = crowd_rss();
    double t1 = crowd_seconds();
    crowd_subscribe(c);
    out->insert_s = t1 - t0;
    out->subscribe_s = crowd_seconds() - t1;
}

void bench_warm_up(struct crowd *c)
{
    crowd_step(c);
    crowd_move_all(c);
    crowd_flush(c);
}

/* A function of its own, so that scripts/check-instructions can count what is in it. */
__attribute__((noinline)) double bench_clocked(struct crowd *c, struct result *out)
{
    double t0 = crowd_seconds();
    crowd_move_all(c);
    double t1 = crowd_seconds();
    unsigned long long allocations = mem_alloc_count();
    crowd_flush(c);
    double flush_s = crowd_seconds() - t1;
    out->flush_s += flush_s;
    out->move_s += t1 - t0;
    out->allocations += mem_alloc_count() - allocations;
    return flush_s;
}

double bench_round(struct crowd *c, struct result *out)
{
    crowd_step(c);
    double flush_s = bench_clocked(c, out);
    out->moves += c->plan.entities;
    crowd_count_pairs(c);
    out->pairs += c->pairs_now;
    return flush_s;
}

void bench_take_counts(const struct crowd *c, struct result *out)
{
    out->entities = c->plan.entities;
    out->players = c->plan.players;
    out->enters = c->enters;
    out->leaves = c->leaves;
    out->updates = c->updates;
    out->mismatches = c->mismatches;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double bench_median(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, ascending);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* All watch and all move. The first flush, which tells everything, is not counted. */
static void run_all(const struct options *o, struct result *out)
{
    struct crowd c;
    struct crowd_plan plan = bench_plan(o, o->workload->entities);
    uint32_t flushes = o->flushes;
    crowd_init(&c, &plan);
    bench_build(&c, out);
    for (uint32_t f = 0; f < o->warm_up; f++) bench_warm_up(&c);
    c.enters = c.leaves = c.updates = c.deltas = 0;
    for (uint32_t f = 1; f <= flushes; f++) {
        bench_round(&c, out);
        if (f % (flushes / 4 + 1) == 0) crowd_check_views(&c, 25);
    }
    out->flushes = flushes;
    out->rss_bytes = crowd_rss();
    out->bytes_per_pair = (double)(out->rss_bytes - out->inserted_rss_bytes) / (double)c.pairs_now;
    crowd_check_views(&c, 100);
    crowd_check_mirrors(&c);
    crowd_check_views(&c, 25);
    bench_take_counts(&c, out);
    crowd_clear(&c);
}

static void run_memory(const struct options *o, struct result *out)
{
    struct crowd c;
    struct crowd_plan plan = bench_plan(o, 0);
    crowd_init(&c, &plan);
    uint64_t before = crowd_rss();
    bench_build(&c, out);
    uint64_t after = crowd_rss();
    for (uint32_t f = 0; f < o->flushes; f++) bench_round(&c, out);
    out->flushes = o->flushes;
    out->rss_bytes = crowd_rss();
    uint64_t most = out->rss_bytes > after ? out->rss_bytes : after; /* moving about must not make it grow either */
    out->bytes_per_entity = (double)(most - before) / plan.entities;
    bench_take_counts(&c, out);
    crowd_clear(&c);
}

static void run_idle(const struct options *o, struct result *out)
{
    struct crowd c;
    struct crowd_plan plan = bench_plan(o, 10000);
    crowd_init(&c, &plan);
    bench_build(&c, out);
    struct result warm_up = *out;
    bench_round(&c, &warm_up);
    bench_round(&c, &warm_up);
    c.enters = c.leaves = c.updates = c.deltas = 0;
    for (int f = 0; f < 3; f++) bench_round(&c, out);
    out->all_s = out->flush_s / 3;
    out->all_move_s = (out->flush_s + out->move_s) / 3;
    crowd_check_views(&c, 25);
    for (uint32_t f = 0; f < o->flushes; f++) {
        uint32_t e = (f * 7919) % plan.entities, mover = f % 2 == 0 ? e % plan.players : e; /* a unit and any in turn */
        c.x[mover] = nextafterf(c.x[mover], 0);
        double t0 = crowd_seconds();
        crowd_move(&c, mover);
        double t1 = crowd_seconds();
        crowd_flush(&c);
        double t2 = crowd_seconds();
        out->one_s += (t2 - t1) / o->flushes;
        out->one_move_s += (t2 - t0) / o->flushes;
    }
    out->flushes = 3;
    out->rss_bytes = crowd_rss();
    crowd_check_views(&c, 25);
    bench_take_counts(&c, out);
    crowd_clear(&c);
}

/* ------------------------------------------------------------------------------------------------------------- report */

static double ratio(double a, double b)
{
    return b == 0 ? 0 : a / b;
}

static void report(const struct result *r)
{
    const struct options *o = r->options;
    const char *index = o->index == AOI_INDEX_GRID ? "grid" : "crosslist", *line = o->json ? ",\n  \"%s\": %.*f" : "%-20s %.*f\n";
    const struct {
        const char *name;
        int decimals;
        double value;
        bool shown;
    } rows[] = {
        {"entities", 0, r->entities, true},
        {"players", 0, r->players, true},
        {"flushes", 0, r->flushes, true},
        {"cell_size", 3, o->cell_size, o->index == AOI_INDEX_GRID},
        {"pairs", 0, (double)r->pairs, true},
        {"enters", 0, (double)r->enters, true},
        {"leaves", 0, (double)r->leaves, true},
        {"updates", 0, (double)r->updates, true},
        {"ns_per_move", 2, ratio(r->move_s * 1e9, (double)r->moves), r->moves > 0},
        {"ns_per_pair", 3, ratio(r->flush_s * 1e9, (double)r->pairs), r->flush_s > 0},
        {"ns_per_pair_with_moves", 3, ratio((r->flush_s + r->move_s) * 1e9, (double)r->pairs), r->flush_s > 0},
        {"million_moves_per_s", 2, ratio((double)r->moves / 1e6, r->flush_s + r->move_s), r->moves > 0},
        {"ns_per_flush", 0, r->flush_median_s > 0 ? r->flush_median_s * 1e9 : ratio(r->flush_s * 1e9, r->flushes), r->flush_s > 0},
        {"told_per_player_max", 0, r->told_most, r->told_most > 0},
        {"base_ns_per_flush", 0, r->base_flush_median_s * 1e9, r->flush_ratio > 0},
        {"ns_per_flush_ratio", 3, r->flush_ratio, r->flush_ratio > 0},
        {"ns_per_round", 0, r->round_s * 1e9, r->round_s > 0},
        {"base_ns_per_round", 0, r->base_round_s * 1e9, r->round_s > 0},
        {"round_ratio", 2, r->round_ratio, r->round_s > 0},
        {"base_pairs", 0, (double)r->base_pairs, r->base_pairs > 0},
        {"ns_per_pair_ratio", 3, r->pair_ratio, r->pair_ratio > 0},
        {"base_updates", 0, (double)r->base_updates, r->base_updates > 0},
        {"updates_ratio", 4, ratio((double)r->updates, (double)r->base_updates), r->base_updates > 0},
        {"queries", 0, (double)r->queries, r->queries > 0},
        {"rows_per_query", 1, ratio((double)r->results, (double)r->queries), r->queries > 0},
        {"ns_per_query", 1, ratio(r->query_s * 1e9, (double)r->queries), r->queries > 0},
        {"ns_per_result", 3, ratio(r->query_s * 1e9, (double)r->results), r->queries > 0},
        {"ns_per_insert", 1, ratio(r->insert_s * 1e9, r->entities), true},
        {"ns_per_subscribe", 1, ratio(r->subscribe_s * 1e9, r->players), true},
        {"allocations", 0, (double)r->allocations, true},
        {"rss_bytes", 0, (double)r->rss_bytes, true},
        {"bytes_per_entity", 1, r->bytes_per_entity, r->bytes_per_entity > 0},
        {"bytes_per_pair", 2, r->bytes_per_pair, r->bytes_per_pair > 0},
        {"ns_per_flush_one_moving", 0, r->one_s * 1e9, r->all_s > 0},
        {"ns_per_flush_all_moving", 0, r->all_s * 1e9, r->all_s > 0},
        {"ratio", 6, ratio(r->one_s, r->all_s), r->all_s > 0},
        {"ratio_with_moves", 6, ratio(r->one_move_s, r->all_move_s), r->all_s > 0},
        {"mismatches", 0, (double)r->mismatches, true},
    };
    printf(o->json ? "{\n  \"workload\": \"%s\",\n  \"index\": \"%s\"" : "%s on %s\n", o->workload->name, index);
    if (r->base != NULL) printf(o->json ? ",\n  \"base\": \"%s\"" : "compared with        %s\n", r->base);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].shown) printf(line, rows[i].name, rows[i].decimals, rows[i].value);
    if (o->json) printf("\n}\n");
}

static void usage(FILE *to)
{
    fprintf(to,
            "usage: aoibench core --workload NAME [--index grid|crosslist] [--shape box|sphere|cells] [--flushes N] [--warm-up N] [--cell-size N] "
            "[--seed N] [--presence] "
            "[--yardstick "
            "brute|cells] [--json]\n"
            "Runs the core alone. All entities watch and move, unless said otherwise. --shape cells: who is at most one cell away. --presence: "
            "players that want no updates. --yardstick: W1 to W6 beside another way to the same. Exit status 1: "
            "what players were told differs from brute force.\n"
            "Without options: the grid, cells of %g, %d rounds to warm up, so many flushes as stand behind the workload.\n",
            CELL_SIZE, WARM_UP);
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
        fprintf(to, "  %-7s %s; %u\n", workloads[i].name, workloads[i].what, workloads[i].flushes);
}

/* A number that is all of the text and above 0; else complains and exits. */
static double number(const char *name, const char *text)
{
    char *end = NULL;
    double v = text == NULL ? 0 : strtod(text, &end);
    if (text != NULL && end != text && *end == '\0' && v > 0 && v < 1e18) return v;
    fprintf(stderr, "aoibench core: %s needs a number above 0\n", name);
    exit(2);
}

static void bad(const char *what, const char *value)
{
    fprintf(stderr, "aoibench core: %s: %s\n", what, value);
    usage(stderr);
    exit(2);
}

static const struct workload *find_workload(const char *name)
{
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
        if (strcmp(name, workloads[i].name) == 0) return &workloads[i];
    bad("no such workload", name);
    return NULL;
}

static enum aoi_shape find_shape(const char *name)
{
    static const char *const shape[] = {[AOI_SHAPE_BOX] = "box", [AOI_SHAPE_SPHERE] = "sphere", [AOI_SHAPE_CELLS] = "cells"};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        if (shape[i] != NULL && strcmp(name, shape[i]) == 0) return (enum aoi_shape)i;
    bad("no such shape", name);
    return AOI_SHAPE_BOX;
}

static struct options parse(int argc, char **argv)
{
    struct options o = {.index = AOI_INDEX_GRID, .shape = AOI_SHAPE_BOX, .cell_size = CELL_SIZE, .warm_up = WARM_UP};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--help") == 0) {
            usage(stdout);
            exit(0);
        }
        if (strcmp(name, "--json") == 0) {
            o.json = true;
            continue;
        }
        if (strcmp(name, "--presence") == 0) {
            o.presence = true;
            continue;
        }
        i++;
        if (strcmp(name, "--workload") == 0 && value != NULL) {
            o.workload = find_workload(value);
        } else if (strcmp(name, "--index") == 0 && value != NULL) {
            if (strcmp(value, "grid") != 0 && strcmp(value, "crosslist") != 0) bad("no such index", value);
            o.index = strcmp(value, "grid") == 0 ? AOI_INDEX_GRID : AOI_INDEX_CROSSLIST;
        } else if (strcmp(name, "--shape") == 0 && value != NULL) {
            o.shape = find_shape(value);
        } else if (strcmp(name, "--yardstick") == 0 && value != NULL) {
            if (strcmp(value, "brute") != 0 && strcmp(value, "cells") != 0) bad("no such yardstick", value);
            o.yardstick = strcmp(value, "brute") == 0 ? &yardstick_brute : &yardstick_cells;
        } else if (strcmp(name, "--flushes") == 0) {
            o.flushes = (uint32_t)number(name, value);
        } else if (strcmp(name, "--warm-up") == 0) {
            o.warm_up = (uint32_t)number(name, value);
        } else if (strcmp(name, "--cell-size") == 0) {
            o.cell_size = number(name, value);
        } else if (strcmp(name, "--seed") == 0) {
            o.seed = (uint64_t)number(name, value);
        } else {
            bad("not understood", name);
        }
    }
    if (o.workload == NULL) bad("missing", "--workload");
    if (o.shape != AOI_SHAPE_BOX && o.yardstick != NULL) bad("--yardstick", "compares boxes");
    if (o.cell_size < AOI_CELL_SIZE_MIN) bad("--cell-size", "at least 1/64");
    if (o.flushes == 0) o.flushes = o.workload->flushes;
    if (o.seed == 0) o.seed = USUAL_SEED;
    return o;
}

int main(int argc, char **argv)
{
    struct options o = parse(argc, argv);
    struct result r = {.options = &o};
    if (o.yardstick != NULL)
        bench_versus(&o, &r);
    else
        o.workload->run(&o, &r);
    report(&r);
    if (fflush(stdout) == 0 && !ferror(stdout)) return r.mismatches == 0 ? 0 : 1;
    perror("aoibench core: standard output cannot be written");
    return 1;
}
