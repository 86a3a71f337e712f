/* demo.c: aoid on real input: a town's traffic with riders, and the cities of the world under moving cameras; every view is checked. */
#include "tools/demo.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/clock.h"

volatile sig_atomic_t demo_stop; /* set by the signal handler alone */

int demo_fault(struct demo *d, const char *format, ...)
{
    if (d->fault[0]) return -1;
    va_list args;
    va_start(args, format);
    vsnprintf(d->fault, sizeof d->fault, format, args);
    va_end(args);
    return -1;
}

static struct libaoi_counters told(const struct demo *d)
{
    struct libaoi_counters sum = {0};
    for (int i = 0; i < DEMO_CONNS; i++) {
        if (!d->conn[i]) continue;
        const struct libaoi_counters *c = libaoi_counters(d->conn[i]);
        sum.deltas += c->deltas;
        sum.enters += c->enters;
        sum.leaves += c->leaves;
        sum.updates += c->updates;
        sum.bytes_in += c->bytes_in;
        sum.bytes_out += c->bytes_out;
    }
    return sum;
}

static uint32_t vehicles(const struct demo *d)
{
    return d->town.steps.at[d->step].n;
}

/* A line that lives on a terminal, one a second elsewhere. */
static void progress(const struct demo *d, bool last)
{
    static uint64_t next_us;
    bool tty = isatty(STDOUT_FILENO);
    uint64_t now = clock_us();
    if (!last && now < next_us) return;
    next_us = now + (tty ? 100000 : 1000000);
    struct libaoi_counters c = told(d);
    printf("%sstep %3" PRIu32 "/%" PRIu32 "  entities %" PRIu32 "  moves %" PRIu64 "  enters %" PRIu64 "  updates %" PRIu64
           "  %.1f MB  p99 %.1f ms  checked %" PRIu32 " times  mismatches %" PRIu64 "%s",
           tty ? "\r" : "", d->step + 1, d->town.steps.n, d->cities.n + vehicles(d), d->moves, c.enters, c.updates, (double)c.bytes_in / 1e6,
           (double)histogram_at(&d->latency, 0.99) / 1e3, d->comparisons, d->mismatches, tty && !last ? "" : "\n");
    fflush(stdout);
}

static void report(const struct demo *d, double seconds, double cpu_seconds, size_t memory_peak)
{
    struct libaoi_counters c = told(d);
    printf("\n");
    printf("entities            %" PRIu32 " (%" PRIu32 " cities, %" PRIu32 " vehicles in the last step)\n", d->cities.n + vehicles(d), d->cities.n,
           vehicles(d));
    printf("players             %d (%d riding vehicles, %d cameras, 1 listener) on %d connections\n", DEMO_PLAYERS + DEMO_CAMERAS + 1, DEMO_PLAYERS,
           DEMO_CAMERAS, DEMO_EYES);
    printf("limited views       %d riders see %d vehicles at most, %d cameras the %d greatest cities\n", DEMO_CROWD, DEMO_CROWD_VIEW,
           DEMO_CAMERAS / 4, DEMO_CAMERA_VIEW);
    printf("moves               %" PRIu64 "; %" PRIu64 " times a player whose vehicle left took another\n", d->moves, d->changes_of_vehicle);
    printf("deltas              %" PRIu64 "\n", c.deltas);
    printf("enters              %" PRIu64 "\n", c.enters);
    printf("leaves              %" PRIu64 "\n", c.leaves);
    printf("updates             %" PRIu64 "\n", c.updates);
    printf("casts               %" PRIu64 " horns, heard %" PRIu64 " times by who saw the vehicle\n", d->horns_sounded, d->horns_heard);
    printf("bytes               %.1f MB to the players, %.1f MB to the daemon\n", (double)c.bytes_in / 1e6, (double)c.bytes_out / 1e6);
    printf("latency             p50 %.1f ms, p99 %.1f ms from move to delta, in a space that flushes every %d ms\n",
           (double)histogram_at(&d->latency, 0.50) / 1e3, (double)histogram_at(&d->latency, 0.99) / 1e3, LIBAOI_FLUSH_MS);
    printf("daemon              %.2f s of CPU in %.1f s, %.0f MB of memory at most\n", cpu_seconds, seconds, (double)memory_peak / 1e6);
    printf("compared            %" PRIu64 " views with %" PRIu64 " entities, at %" PRIu32 " moments; %" PRIu64 " of them full\n", d->views_compared,
           d->items_compared, d->comparisons, d->views_full);
    printf("mirror mismatches: %" PRIu64 "\n", d->mismatches);
    if (d->mismatches == 0)
        printf("That is: whatever the daemon told the %d players, each held exactly what brute force says it should see, every time.\n",
               DEMO_PLAYERS + DEMO_CAMERAS);
    else
        printf("That is: players held something else than what they should see. This must not be: please report it.\n");
}

static int run(struct demo *d)
{
    printf("loading %s\n", d->data);
    fflush(stdout);
    if (demo_load(d)) return -1;
    uint32_t steps = d->town.steps.n;
    double step_s = (d->town.steps.at[steps - 1].t - d->town.steps.at[0].t) / (steps - 1); /* for so long each position holds, the last one too */
    printf("%" PRIu32 " cities with %d cameras that pan and zoom over them; a town's traffic with %d players who ride along\n", d->cities.n,
           DEMO_CAMERAS, DEMO_PLAYERS);
    printf("%.0f s of traffic, in %u steps, pass in %.0f s: %d steps a second, so that everything moves faster than it did\n", steps * step_s, steps,
           steps * DEMO_STEP_MS / 1e3, 1000 / DEMO_STEP_MS);
    if (demo_compare(d)) return -1;
    uint64_t due = clock_us();
    for (uint32_t step = 1; step < steps; step++) {
        due += DEMO_STEP_MS * 1000;
        if (demo_pump(d, due)) return -1;
        bool compare = step % DEMO_COMPARE_EVERY == 0 || step + 1 == steps;
        uint64_t before = clock_us();
        if (compare && demo_freeze(d)) return -1;
        if (demo_advance(d, step)) return -1;
        if (compare) {
            if (demo_compare(d)) return -1;
            due += clock_us() - before; /* the traffic stands still while the views are compared */
        }
        progress(d, step + 1 == steps);
    }
    return 0;
}

static void on_signal(int signal)
{
    (void)signal;
    demo_stop = 1;
}

static int parse(struct demo *d, int argc, char **argv)
{
    static const struct option options[] = {
        {"aoid", required_argument, NULL, 'a'},
        {"data", required_argument, NULL, 'd'},
        {"index", required_argument, NULL, 'i'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    static const char usage[] =
        "usage: aoidemo --aoid PATH --data DIR [--index grid|crosslist]\n"
        "Starts the daemon on a free port, drives it with DIR/town.csv.xz and DIR/cities.csv.xz, and checks what every player was told.\n";
    for (int o; (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (o == 'a')
            d->aoid = optarg;
        else if (o == 'd')
            d->data = optarg;
        else if (o == 'i' && strcmp(optarg, "grid") == 0)
            d->index = LIBAOI_GRID;
        else if (o == 'i' && strcmp(optarg, "crosslist") == 0)
            d->index = LIBAOI_CROSSLIST;
        else
            return fputs(usage, o == 'h' ? stdout : stderr), o == 'h' ? 0 : 2;
    }
    if (d->aoid && d->data && optind == argc) return -1;
    fputs(usage, stderr);
    return 2;
}

int main(int argc, char **argv)
{
    struct demo *d = mem_zalloc(sizeof *d);
    char error[600];
    d->random = 88172645463325252u;
    d->index = LIBAOI_GRID;
    int usage = parse(d, argc, argv), status = 1;
    if (usage >= 0) return free(d), usage;
    struct sigaction act = {.sa_handler = on_signal};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    uint64_t start = clock_us();
    if (daemon_start(&d->daemon, d->aoid, NULL, 0, error, sizeof error)) {
        fprintf(stderr, "aoidemo: %s\n", error);
        return free(d), 1;
    }
    if (!demo_connect(d) && !run(d)) {
        report(d, (double)(clock_us() - start) / 1e6, daemon_cpu_seconds(d->daemon.pid), daemon_memory_peak_bytes(d->daemon.pid));
        status = d->mismatches == 0 && d->refused == 0 && d->comparisons >= 20 && d->items_compared > 0 && d->horns_heard > 0 && d->views_full > 0
                     ? 0
                     : 1;
    }
    for (int i = 0; i < DEMO_CONNS; i++) libaoi_close(d->conn[i]);
    int ended = daemon_stop(&d->daemon, 10000);
    if (!d->fault[0] && ended) demo_fault(d, "the daemon ended with status %d", ended);
    if (d->fault[0]) {
        fprintf(stderr, "aoidemo: %s\n", d->fault);
        status = 1;
    }
    trace_clear(&d->town);
    trace_clear_diff(&d->diff);
    array_clear(&d->cities);
    demo_clear_casts(d);
    demo_clear_told(d);
    free(d);
    return status;
}
