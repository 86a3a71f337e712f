/* aoibench.c: the load generator: what it can do, its options and reports; `core` hands over to aoibench-core. */
#include "tools/aoibench.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/version.h"
#include "client/libaoi.h"
#include "tools/daemon.h"

/* What it can do, and which options go with it. */
enum { NET = 1, INPUT = 2, CEILING = 4, QUERY = 8 };
static const struct command {
    const char *name, *what;
    uint32_t bit;
    int (*run)(struct aoibench_options *o, pid_t daemon, char *error, size_t error_size);
} commands[] = {
    {"net", "movers and players against a daemon, over the network", NET, aoibench_run_net},
    {"input", "moves as fast as a daemon takes them", INPUT, aoibench_run_input},
    {"query", "boxes, pipelined over a Unix socket; with --redis in turn with its GEOSEARCH", QUERY, aoibench_run_query},
    {"ceiling", "what the sender alone costs: ready bytes over loopback TCP", CEILING, aoibench_run_ceiling},
};
#define COMMANDS (sizeof commands / sizeof *commands)

/* One option: its commands, where it goes, and what is legal. */
enum kind { KIND_COUNT, KIND_NUMBER, KIND_TEXT, KIND_FLAG, KIND_INDEX };
struct option_row {
    const char *name, *value, *help;
    uint32_t commands;
    enum kind kind;
    size_t offset;
    double min, max;
};
#define AT(field) offsetof(struct aoibench_options, field)
static const struct option_row rows[] = {
    {"address", "HOST:PORT", "a daemon that runs; 127.0.0.1:2643. For query the path of its Unix socket", NET | INPUT | QUERY, KIND_TEXT, AT(address),
     0, 0},
    {"tls", NULL, "speak TLS, for which the system's authorities are trusted", NET | INPUT, KIND_FLAG, AT(tls), 0, 0},
    {"ca", "FILE", "speak TLS, and trust these authorities", NET | INPUT, KIND_TEXT, AT(ca), 0, 0},
    {"aoid", "PATH", "start this daemon on a free port, and stop it in the end", NET | INPUT | QUERY, KIND_TEXT, AT(aoid), 0, 0},
    {"pid", "PID", "process of a daemon that runs here, for its CPU time", NET | INPUT | QUERY, KIND_COUNT, AT(pid), 1, 4194304},
    {"workload", "NAME",
     "W1 or W2 of `aoibench core`, all of it over the network, in turn with the ceiling; then at half of full load. Sets entities, players, rate, "
     "side, "
     "radius, speed and flush_ms, and pins",
     NET, KIND_TEXT, AT(workload), 0, 0},
    {"entities", "N", "that move; 10000", NET | INPUT | QUERY, KIND_COUNT, AT(entities), 1, 1e7},
    {"players", "N", "each subscribed to an entity; 1000", NET, KIND_COUNT, AT(players), 1, 1e6},
    {"connections", "N", "that the players are spread over, or that are written to; 4, for a workload 16", NET | CEILING, KIND_COUNT, AT(connections),
     1, 1000},
    {"movers", "N", "connections that the entities are spread over; 1", NET | INPUT, KIND_COUNT, AT(movers), 1, 1000},
    {"batch", "N", "moves a frame; 1000", INPUT, KIND_COUNT, AT(batch), 1, 1e5},
    {"rate", "HZ", "moves a second of each entity; 10", NET, KIND_NUMBER, AT(rate), 1e-3, 1e4},
    {"seconds", "S", "to measure; 10", NET | INPUT | CEILING | QUERY, KIND_NUMBER, AT(seconds), 1e-2, 1e6},
    {"warmup", "S", "before that; 2", NET | INPUT, KIND_NUMBER, AT(warmup), 0, 1e6},
    {"rounds", "N", "that the time is divided into, for medians; 5", NET | INPUT | CEILING | QUERY, KIND_COUNT, AT(rounds), 1, 1000},
    {"side", "LENGTH", "of the square world; 2000, for query 1000", NET | INPUT | QUERY, KIND_NUMBER, AT(side), 1e-3, 16777216},
    {"radius", "LENGTH", "that every entity sees; 50", NET | QUERY, KIND_NUMBER, AT(radius), 0, 16777216},
    {"speed", "LENGTH", "a second; 5", NET | INPUT, KIND_NUMBER, AT(speed), 0, 1e6},
    {"space", "ID", "made for this, and gone with it; 1", NET | INPUT | QUERY, KIND_COUNT, AT(space), 1, 4294967295.0},
    {"flush_ms", "MS", "of the space; 50", NET | INPUT, KIND_COUNT, AT(flush_ms), 1, 3600000},
    {"index", "NAME", "grid or crosslist; grid", NET | INPUT | QUERY, KIND_INDEX, AT(index), 0, 0},
    {"depth", "N", "queries under way; 200", QUERY, KIND_COUNT, AT(depth), 1, 10000},
    {"width", "LENGTH", "of a box; 200", QUERY, KIND_NUMBER, AT(width), 0, 16777216},
    {"height", "LENGTH", "of a box; 100", QUERY, KIND_NUMBER, AT(height), 0, 16777216},
    {"redis", "PATH", "Unix socket of a Redis that may be written to", QUERY, KIND_TEXT, AT(redis), 0, 0},
    {"redis-pid", "PID", "its process, for its CPU time", QUERY, KIND_COUNT, AT(redis_pid), 1, 4194304},
    {"write", "BYTES", "a write; 65536", CEILING, KIND_COUNT, AT(write), 1, 1e8},
    {"ready", "BYTES", "that lie ready and are sent over and over; 16777216, about a flush of W2", CEILING, KIND_COUNT, AT(ready), 1, 1e9},
    {"pin", NULL, "the daemon to the first processor, the load to the second", NET | INPUT | CEILING | QUERY, KIND_FLAG, AT(pin), 0, 0},
    {"mirror", NULL, "mirror every view, check each delta, and in the end compare with brute force", NET, KIND_FLAG, AT(mirror), 0, 0},
    {"json", NULL, "print one JSON object", NET | INPUT | CEILING | QUERY, KIND_FLAG, AT(json), 0, 0},
};
#define ROWS (sizeof rows / sizeof *rows)

static int print_help(FILE *out, int status)
{
    fputs("usage: aoibench COMMAND [OPTION]...\n", out);
    for (size_t i = 0; i < COMMANDS; i++) fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].what);
    fputs("  core     the core alone, in this process: aoibench core --help\n", out);
    for (size_t c = 0; c < COMMANDS; c++) {
        fprintf(out, "\noptions of %s:\n", commands[c].name);
        for (size_t i = 0; i < ROWS; i++)
            if (rows[i].commands & commands[c].bit)
                fprintf(out, "  --%-11s %-9s  %s\n", rows[i].name, rows[i].value ? rows[i].value : "", rows[i].help);
    }
    fputs("\nLatency is the time from when a move was due to when its delta has been read.\n"
          "Where the daemon has a tokens_file, the secret of a writer goes into the environment variable AOI_TOKEN.\n"
          "Example: aoibench net --aoid build/aoid --entities 20000 --rate 20 --seconds 5\n",
          out);
    return status;
}

static bool set_option(struct aoibench_options *o, const struct option_row *row, const char *text)
{
    char *field = (char *)o + row->offset, *end;
    if (row->kind == KIND_TEXT) {
        *(const char **)(void *)field = text;
        return true;
    }
    if (row->kind == KIND_FLAG) {
        *(bool *)(void *)field = true;
        return true;
    }
    if (row->kind == KIND_INDEX) {
        bool crosslist = strcmp(text, "crosslist") == 0;
        *(uint32_t *)(void *)field = crosslist ? LIBAOI_CROSSLIST : LIBAOI_GRID;
        if (crosslist || strcmp(text, "grid") == 0) return true;
        fprintf(stderr, "aoibench: --index is grid or crosslist, not \"%s\"\n", text);
        return false;
    }
    double value = strtod(text, &end);
    bool whole = row->kind != KIND_COUNT || (value >= 0 && value < 4294967296.0 && value == (double)(uint32_t)value);
    if (end == text || *end || !(value >= row->min && value <= row->max) || !whole) {
        fprintf(stderr, "aoibench: --%s %s: must be a %snumber from %g to %g\n", row->name, text, row->kind == KIND_COUNT ? "whole " : "", row->min,
                row->max);
        return false;
    }
    if (row->kind == KIND_COUNT)
        *(uint32_t *)(void *)field = (uint32_t)value;
    else
        *(double *)(void *)field = value;
    return true;
}

void aoibench_print(bool json, const struct aoibench_figure *figures, size_t n, const char *const *text)
{
    for (size_t i = 0; i < n; i++) {
        if (json)
            printf("%s\"%s\": ", i ? ", " : "{", figures[i].name);
        else
            printf("%-24s ", figures[i].name);
        if (figures[i].unknown)
            printf(json ? "null" : "-");
        else
            printf("%.*f", figures[i].decimals, figures[i].value);
        if (!json) putchar('\n');
    }
    for (; text && *text; text += 2) printf(json ? ", \"%s\": \"%s\"" : "%-24s %s\n", text[0], text[1]);
    if (json) printf("}\n");
}

const char *aoibench_index(const struct aoibench_options *o)
{
    return o->index == LIBAOI_CROSSLIST ? "crosslist" : "grid";
}

static void print_net(const struct aoibench_options *o, const struct aoibench_result *r)
{
    const bool silent = r->latency.n == 0;
    const struct aoibench_figure figures[] = {
        {"entities", o->entities, 0, false},
        {"players", o->players, 0, false},
        {"connections", o->connections, 0, false},
        {"movers", o->movers, 0, false},
        {"flush_ms", o->flush_ms, 0, false},
        {"seconds", r->seconds, 2, false},
        {"moves_per_s", (double)r->moves / r->seconds, 0, false},
        {"deltas_per_s", (double)r->deltas / r->seconds, 0, false},
        {"enters_per_s", (double)r->enters / r->seconds, 0, false},
        {"leaves_per_s", (double)r->leaves / r->seconds, 0, false},
        {"updates_per_s", (double)r->updates / r->seconds, 0, false},
        {"bytes_out_per_s", (double)r->bytes_in / r->seconds, 0, false}, /* the daemon's point of view */
        {"bytes_in_per_s", (double)r->bytes_out / r->seconds, 0, false},
        {"latency_p50_ms", (double)histogram_at(&r->latency, 0.5) / 1e3, 3, silent},
        {"latency_p99_ms", (double)histogram_at(&r->latency, 0.99) / 1e3, 3, silent},
        {"latency_p999_ms", (double)histogram_at(&r->latency, 0.999) / 1e3, 3, silent},
        {"latency_max_ms", (double)r->latency.max / 1e3, 3, silent},
        {"ping_p99_ms", (double)histogram_at(&r->ping, 0.99) / 1e3, 3, r->ping.n == 0},
        {"generator_late_p99_ms", (double)histogram_at(&r->late, 0.99) / 1e3, 3, r->late.n == 0},
        {"daemon_cpu_seconds", r->cpu_seconds, 3, r->cpu_seconds < 0},
        {"daemon_memory_bytes", (double)r->memory_bytes, 0, r->cpu_seconds < 0},
        {"mirror_compared", (double)r->compared, 0, !o->mirror},
        {"mirror_mismatches", (double)r->mismatches, 0, !o->mirror},
    };
    const char *text[] = {"index", aoibench_index(o), NULL};
    aoibench_print(o->json, figures, sizeof figures / sizeof *figures, text);
}

int aoibench_run_net(struct aoibench_options *o, pid_t daemon, char *error, size_t error_size)
{
    if (o->workload) return aoibench_run_workload(o, daemon, error, error_size);
    if (o->pin) aoibench_pin_both(daemon);
    struct bench *b = aoibench_net_open(o, daemon, error, error_size);
    struct aoibench_result *r = mem_zalloc(sizeof *r);
    int status = b == NULL ? -1 : aoibench_net_drive(b, o->warmup);
    if (!status) status = aoibench_net_measure(b, o->seconds, r);
    if (!status && o->mirror) status = aoibench_net_compare(b, r);
    if (b != NULL) aoibench_net_close(b);
    if (!status) print_net(o, r);
    if (!status && r->mismatches) {
        snprintf(error, error_size, "views differ from brute force");
        status = -1;
    }
    free(r);
    return status;
}

static int run(const struct command *command, struct aoibench_options *o)
{
    struct daemon daemon = {0};
    char error[600];
    char option[128], *socket = option + sizeof "unix_socket=" - 1;
    const char *const args[] = {"--set", option};
    snprintf(option, sizeof option, "unix_socket=/tmp/aoibench-%d.socket", (int)getpid());
    int status = o->aoid ? daemon_start(&daemon, o->aoid, args, command->bit == QUERY ? 2 : 0, error, sizeof error) : 0;
    if (o->aoid && !status) daemon_forget(&daemon);
    if (o->aoid && !status) o->address = command->bit == QUERY ? socket : daemon.address;
    if (!status) status = command->run(o, o->aoid ? daemon.pid : (pid_t)o->pid, error, sizeof error);
    if (o->aoid) daemon_stop(&daemon, 10000);
    if (!status && (fflush(stdout) != 0 || ferror(stdout))) {
        status = -1;
        snprintf(error, sizeof error, "standard output cannot be written: %s", strerror(errno));
    }
    if (status) fprintf(stderr, "aoibench: %s\n", error);
    return status ? 1 : 0;
}

static int parse(const struct command *command, int argc, char **argv)
{
    struct aoibench_options o = {
        .entities = 10000,
        .players = 1000,
        .movers = 1,
        .rate = 10,
        .seconds = 10,
        .warmup = 2,
        .rounds = 5,
        .batch = 1000,
        .side = 2000,
        .radius = 50,
        .speed = 5,
        .flush_ms = LIBAOI_FLUSH_MS,
        .index = LIBAOI_GRID,
        .space = 1,
        .write = 65536,
        .ready = 16777216,
        .depth = 200,
        .width = 200,
        .height = 100,
    };
    struct option options[ROWS + 2] = {{0}};
    size_t n = 0;
    if (command->bit == QUERY) o.side = 1000; /* of W2 */
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].commands & command->bit)
            options[n++] = (struct option){rows[i].name, rows[i].value ? required_argument : no_argument, NULL, (int)i + 256};
    options[n] = (struct option){"help", no_argument, NULL, 'h'};
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (c == 'h') return print_help(stdout, 0);
        if (c < 256) return print_help(stderr, 2);
        if (!set_option(&o, &rows[c - 256], optarg)) return 2;
    }
    if (optind < argc) {
        fprintf(stderr, "aoibench: \"%s\" is no option; aoibench --help lists them\n", argv[optind]);
        return 2;
    }
    if (!o.connections) o.connections = o.workload ? 16 : 4;
    if (o.aoid && o.address) {
        fprintf(stderr, "aoibench: --aoid starts a daemon, --address is for one that runs: give one of them\n");
        return 2;
    }
    if (command->bit == QUERY && !o.aoid && !o.address) {
        fprintf(stderr, "aoibench: query needs --aoid, or --address with the path of a daemon's Unix socket\n");
        return 2;
    }
    return run(command, &o);
}

/* The core's benchmark is a program of its own, which is linked without any of this. */
static int run_core(char **argv)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "-core");
    if (n < 0) {
        fprintf(stderr, "aoibench: cannot read /proc/self/exe: %s\n", strerror(errno));
        return 1;
    }
    memcpy(path + n, "-core", sizeof "-core");
    argv[0] = path;
    execv(path, argv);
    fprintf(stderr, "aoibench: cannot run %s: %s. It is built beside aoibench by `make`\n", path, strerror(errno));
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 2) return print_help(stderr, 2);
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return parse(&commands[i], argc - 1, argv + 1);
    if (strcmp(argv[1], "core") == 0) return run_core(argv + 1);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) return print_help(stdout, 0);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-v") == 0) return puts("aoibench " AOID_VERSION) < 0;
    fprintf(stderr, "aoibench: there is no benchmark \"%s\": aoibench --help lists them\n", argv[1]);
    return 2;
}
