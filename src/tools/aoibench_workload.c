/* aoibench_workload.c: the core's workloads over the network: what the daemon spends on an update and on a move, and how soon it is told. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tools/aoibench.h"

#define FLUSH_MS 1                          /* a round comes in one frame */
#define LATE_SPACE 1                        /* the second measurement runs in the space behind the first */
#define PING_BOUND_MS 5                     /* what a Ping may take while flushes go on */
#define CEILING_BYTES ((uint64_t)512 << 20) /* are sent in turn with each measurement: some 0.1 s */

static const struct workload {
    const char *name;
    uint32_t entities;
    double side, step; /* per round */
} workloads[] = {{"W1", 10000, 2000, 0.5}, {"W2", 10000, 1000, 1}};

/* All watch and all move. */
static int set_workload(struct aoibench_options *o, char *error, size_t error_size)
{
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
        const struct workload *w = &workloads[i];
        if (strcmp(w->name, o->workload) != 0) continue;
        o->entities = o->players = w->entities;
        o->side = w->side;
        o->radius = 50;
        o->rate = 1;
        o->speed = w->step; /* a round */
        o->flush_ms = FLUSH_MS;
        o->burst = o->plain = o->pin = true;
        return 0;
    }
    snprintf(error, error_size, "there is no workload \"%s\": W1 or W2", o->workload);
    return -1;
}

struct figures {
    double *ours, *ceiling, *ratio; /* of each round of the comparison */
    double cpu_ms_per_round, cpu_share;
    struct aoibench_result sum; /* but for histograms */
};

static int compare(const struct aoibench_options *o, pid_t daemon, struct figures *f, struct aoibench_result *r, char *error, size_t error_size)
{
    struct bench *b = aoibench_net_open(o, daemon, error, error_size);
    int status = b == NULL ? -1 : aoibench_net_drive(b, o->warmup);
    double cpu = 0, seconds = 0;
    for (uint32_t i = 0; i < o->rounds && status == 0; i++) {
        status = aoibench_net_measure(b, o->seconds / o->rounds, r);
        if (status != 0) break;
        if (r->updates == 0 || r->writes == 0) {
            snprintf(error, error_size, "there is nothing to measure: no updates within a round, or /proc/%d/io cannot be read", (int)daemon);
            status = -1;
            break;
        }
        uint64_t ready = r->updates / (r->rounds + !r->rounds) * AOIBENCH_UPDATE_BYTES; /* a round's */
        double took = aoibench_ceiling(CEILING_BYTES, ready, r->written / r->writes, o->connections, o->pin);
        if (took < 0) {
            snprintf(error, error_size, "cannot send to myself: %s", strerror(errno));
            status = -1;
        }
        f->ours[i] = r->cpu_seconds * 1e9 / (double)r->updates;
        f->ceiling[i] = took * 1e9 * AOIBENCH_UPDATE_BYTES / (double)CEILING_BYTES;
        f->ratio[i] = f->ours[i] / f->ceiling[i];
        f->sum.rounds += r->rounds;
        f->sum.flushes += r->flushes;
        f->sum.updates += r->updates;
        f->sum.writes += r->writes;
        f->sum.written += r->written;
        f->sum.moves += r->moves;
        cpu += r->cpu_seconds;
        seconds += r->seconds;
    }
    f->cpu_ms_per_round = cpu * 1e3 / (double)(f->sum.rounds + !f->sum.rounds);
    f->cpu_share = cpu / seconds;
    if (b != NULL) aoibench_net_close(b);
    return status;
}

/* Half of the load at which the daemon would have nothing to rest: everybody moves once in twice the time that a round takes it, evenly spread, and a flush for
 * each. */
static int lag(struct aoibench_options *o, pid_t daemon, const struct figures *f, struct aoibench_result *r, char *error, size_t error_size)
{
    double step = o->speed / o->rate;
    o->flush_ms = (uint32_t)ceil(2 * f->cpu_ms_per_round);
    o->rate = 1000.0 / o->flush_ms;
    o->speed = step * o->rate;
    o->space += LATE_SPACE;
    o->burst = o->plain = false;
    struct bench *b = aoibench_net_open(o, daemon, error, error_size);
    int status = b == NULL ? -1 : aoibench_net_drive(b, o->warmup);
    if (status == 0) status = aoibench_net_measure(b, o->seconds, r);
    if (b != NULL) aoibench_net_close(b);
    return status;
}

int aoibench_run_workload(struct aoibench_options *o, pid_t daemon, char *error, size_t error_size)
{
    if (set_workload(o, error, error_size) != 0) return -1;
    if (daemon <= 0) {
        snprintf(error, error_size, "a workload needs to know the daemon's process: give --aoid or --pid");
        return -1;
    }
    aoibench_pin_both(daemon);
    double *values = mem_alloc(3 * o->rounds * sizeof *values);
    struct figures f = {.ours = values, .ceiling = values + o->rounds, .ratio = values + 2 * (size_t)o->rounds};
    struct aoibench_result *r = mem_zalloc(sizeof *r);
    int status = compare(o, daemon, &f, r, error, error_size);
    if (status == 0) status = lag(o, daemon, &f, r, error, error_size);
    if (status == 0) {
        double bound_ms = o->flush_ms + 5 + f.cpu_ms_per_round;
        const struct aoibench_figure figures[] = {
            {"entities", o->entities, 0, false},
            {"players", o->players, 0, false},
            {"connections", o->connections, 0, false},
            {"rounds", (double)f.sum.rounds, 0, false},
            {"flushes", (double)f.sum.flushes, 0, false},
            {"updates_per_round", (double)f.sum.updates / (double)f.sum.rounds, 0, false},
            {"write_bytes", (double)f.sum.written / (double)f.sum.writes, 0, false},
            {"daemon_cpu_ms_per_round", f.cpu_ms_per_round, 3, false},
            {"daemon_cpu_ns_per_update", aoibench_median(f.ours, o->rounds), 3, false},
            {"ceiling_ns_per_update", aoibench_median(f.ceiling, o->rounds), 3, false},
            {"ratio", aoibench_median(f.ratio, o->rounds), 3, false},
            {"half_load_flush_ms", o->flush_ms, 0, false},
            {"half_load_cpu_share", r->cpu_seconds / r->seconds, 3, false},
            {"half_load_moves_per_s", (double)r->moves / r->seconds, 0, false},
            {"half_load_updates_per_s", (double)r->updates / r->seconds, 0, false},
            {"latency_p50_ms", (double)histogram_at(&r->latency, 0.5) / 1e3, 3, r->latency.n == 0},
            {"latency_p99_ms", (double)histogram_at(&r->latency, 0.99) / 1e3, 3, r->latency.n == 0},
            {"latency_bound_ms", bound_ms, 3, false}, /* flush_ms + 5 ms + what the flush takes the processor */
            {"latency_ratio", (double)histogram_at(&r->latency, 0.99) / 1e3 / bound_ms, 3, r->latency.n == 0},
            {"ping_p99_ms", (double)histogram_at(&r->ping, 0.99) / 1e3, 3, r->ping.n == 0},
            {"ping_bound_ms", PING_BOUND_MS, 0, false},
            {"ping_ratio", (double)histogram_at(&r->ping, 0.99) / 1e3 / PING_BOUND_MS, 3, r->ping.n == 0},
            {"ping_max_ms", (double)r->ping.max / 1e3, 3, r->ping.n == 0},
            {"generator_late_p99_ms", (double)histogram_at(&r->late, 0.99) / 1e3, 3, r->late.n == 0},
        };
        const char *text[] = {"workload", o->workload, "index", aoibench_index(o), NULL};
        aoibench_print(o->json, figures, sizeof figures / sizeof *figures, text);
    }
    free(values);
    free(r);
    return status;
}

int aoibench_run_input(struct aoibench_options *o, pid_t daemon, char *error, size_t error_size)
{
    struct aoibench_result *r = mem_zalloc(sizeof *r);
    double *ns = mem_alloc(o->rounds * sizeof *ns), moves = 0, seconds = 0;
    o->plain = true;
    o->players = 1;
    if (o->pin) aoibench_pin_both(daemon);
    struct bench *b = aoibench_net_open(o, daemon, error, error_size);
    int status = b == NULL ? -1 : aoibench_net_push(b, o->warmup, r);
    for (uint32_t i = 0; i < o->rounds && status == 0; i++) {
        status = aoibench_net_push(b, o->seconds / o->rounds, r);
        ns[i] = r->cpu_seconds * 1e9 / (double)(r->moves + !r->moves);
        moves += (double)r->moves;
        seconds += r->seconds;
    }
    if (status == 0) {
        const struct aoibench_figure figures[] = {
            {"entities", o->entities, 0, false},
            {"batch", o->batch, 0, false},
            {"movers", o->movers, 0, false},
            {"moves_per_s", moves / seconds, 0, false},
            {"daemon_cpu_ns_per_move", aoibench_median(ns, o->rounds), 3, daemon <= 0},
        };
        const char *text[] = {"index", aoibench_index(o), NULL};
        aoibench_print(o->json, figures, sizeof figures / sizeof *figures, text);
    }
    if (b != NULL) aoibench_net_close(b);
    free(ns);
    free(r);
    return status;
}
