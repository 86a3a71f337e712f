/* metrics.c: what the daemon counts, as Prometheus' text: one table of names, help and types. */
#include "server/metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"
#include "server/session.h"
#include "base/version.h"

#define SCRAPE_VISITS 262144u /* entities that a scrape looks at for the densest cells, in all spaces together: about 10 ms */
#define SPACE_VISITS 64u      /* and at least so many of each space */

/* ------------------------------------------------------------------------------------------------------------- counting */

/* Microseconds: from the flush of a nearly quiet space to one that is in trouble. */
static const uint32_t bucket_us[HISTOGRAM_BUCKETS] = {10,    25,    100,   250,   1000,   2500,   5000,   10000,   20000,
                                                      30000, 50000, 60000, 75000, 100000, 200000, 500000, 1000000, 2500000};

void histogram_add(struct histogram *histogram, uint64_t ns)
{
    uint32_t i = 0;
    while (i < HISTOGRAM_BUCKETS && ns > (uint64_t)bucket_us[i] * 1000) i++;
    histogram->count[i]++;
    histogram->sum_ns += ns;
}

uint64_t metrics_errors(const struct metrics *metrics)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < CODEC_CODES; i++) n += metrics->errors[i];
    return n;
}

/* ------------------------------------------------------------------------------------------------------------- what a scrape looks at */

struct space_values {
    uint64_t id, densest;
    struct aoi_stats stats;
};

struct process_values {
    double cpu_seconds, start_seconds;
    uint64_t resident_bytes, open_fds, max_fds;
};

/* Everything that a row may point into. */
struct values {
    struct metrics metrics;
    uint64_t sessions, unsent_bytes, record_failed, space_n, ready, log_dropped;
    uint32_t shortest_ms, longest_ms; /* flush_ms of the spaces that have one; 0: none has */
    uint64_t memory_full, memory_held_bytes, memory_limit_bytes, memory_denied;
    struct aoi_stats live, since; /* of the spaces that there are; with those that have ended, for what is counted since the start */
    struct process_values process;
    ARRAY(struct space_values) spaces;
};

static uint64_t count_open_files(void)
{
    uint64_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL) return 0;
    while (readdir(dir) != NULL) n++;
    closedir(dir);
    return n > 3 ? n - 3 : 0; /* ".", "..", and the directory itself */
}

static double start_seconds(void)
{
    char line[1024] = "";
    unsigned long long ticks = 0;
    struct timespec boot, now;
    FILE *file = fopen("/proc/self/stat", "re");
    if (file == NULL) return 0;
    /* the name in parentheses may hold anything; the start is the 20th field behind it */
    const char *at = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    fclose(file);
    if (at == NULL || sscanf(at + 1, " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &ticks) != 1) return 0;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)(now.tv_sec - boot.tv_sec) + (double)(now.tv_nsec - boot.tv_nsec) / 1e9 + (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static void look_at_process(struct process_values *out)
{
    struct rusage usage;
    struct rlimit files;
    size_t resident = 0;
    getrusage(RUSAGE_SELF, &usage);
    out->cpu_seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    out->start_seconds = start_seconds();
    uv_resident_set_memory(&resident);
    out->resident_bytes = resident;
    out->open_fds = count_open_files();
    out->max_fds = getrlimit(RLIMIT_NOFILE, &files) == 0 ? (uint64_t)files.rlim_cur : 0;
}

_Static_assert(sizeof(struct aoi_stats) % sizeof(uint64_t) == 0, "they are all counts");

static void add(struct aoi_stats *sum, const struct aoi_stats *stats)
{
    for (size_t i = 0; i < sizeof *sum / sizeof(uint64_t); i++) ((uint64_t *)sum)[i] += ((const uint64_t *)stats)[i];
}

static void look_at_spaces(struct values *v, const struct aoi_world *world)
{
    uint64_t id = 0;
    for (struct aoi_space *space; (space = aoi_space_next(world, id)) != NULL; id = aoi_space_id(space)) {
        struct aoi_stats stats = {0};
        aoi_space_stats(space, &stats); /* only once: memory_bytes is found out by a walk over players and cells */
        add(&v->live, &stats);
        uint32_t flush_ms = aoi_space_settings(space)->flush_ms;
        if (flush_ms > v->longest_ms) v->longest_ms = flush_ms;
        if (flush_ms > 0 && (v->shortest_ms == 0 || flush_ms < v->shortest_ms)) v->shortest_ms = flush_ms;
        v->space_n++;
        if (v->spaces.n < METRICS_SPACES) *array_add(&v->spaces) = (struct space_values){.id = aoi_space_id(space), .stats = stats};
    }
    add(&v->since, &v->live);
    for (uint32_t i = 0; i < v->spaces.n; i++) {
        uint32_t share = SCRAPE_VISITS / v->spaces.n;
        v->spaces.at[i].densest = aoi_space_densest(aoi_space_find(world, v->spaces.at[i].id), share < SPACE_VISITS ? SPACE_VISITS : share);
    }
}

/* ------------------------------------------------------------------------------------------------------------- writing */

struct row;
typedef void write_fn(struct buf *out, const struct row *row, const struct values *v);

struct row {
    const char *name, *type;
    write_fn *write;
    size_t offset; /* of the value, in struct values, or in struct space_values for a series a space */
    const char *help;
};

static uint64_t whole(const void *base, size_t offset)
{
    return *(const uint64_t *)(const void *)((const char *)base + offset);
}

static void write_whole(struct buf *out, const struct row *row, const struct values *v)
{
    buf_printf(out, "%s %llu\n", row->name, (unsigned long long)whole(v, row->offset));
}

static void write_real(struct buf *out, const struct row *row, const struct values *v)
{
    buf_printf(out, "%s %.6f\n", row->name, *(const double *)(const void *)((const char *)v + row->offset));
}

static void write_spaces(struct buf *out, const struct row *row, const struct values *v)
{
    for (uint32_t i = 0; i < v->spaces.n; i++) {
        const struct space_values *space = &v->spaces.at[i];
        buf_printf(out, "%s{space=\"%llu\"} %llu\n", row->name, (unsigned long long)space->id, (unsigned long long)whole(space, row->offset));
    }
}

static void write_intervals(struct buf *out, const struct row *row, const struct values *v)
{
    buf_printf(out, "%s{of=\"shortest\"} %.3f\n%s{of=\"longest\"} %.3f\n", row->name, v->shortest_ms / 1e3, row->name, v->longest_ms / 1e3);
}

static void write_reasons(struct buf *out, const struct row *row, const struct values *v)
{
    for (uint32_t i = CLOSE_NONE + 1; i < CLOSE_REASONS; i++)
        buf_printf(out, "%s{reason=\"%s\"} %llu\n", row->name, session_reason_name((enum close_reason)i), (unsigned long long)v->metrics.closed[i]);
}

static void write_codes(struct buf *out, const struct row *row, const struct values *v)
{
    for (uint32_t i = CODEC_OK + 1; i < CODEC_CODES; i++)
        buf_printf(out, "%s{code=\"%s\"} %llu\n", row->name, codec_code_name((int)i), (unsigned long long)v->metrics.errors[i]);
}

static void write_results(struct buf *out, const struct row *row, const struct values *v)
{
    buf_printf(out, "%s{result=\"done\"} %llu\n", row->name, (unsigned long long)v->metrics.reloads);
    buf_printf(out, "%s{result=\"refused\"} %llu\n", row->name, (unsigned long long)v->metrics.reloads_refused);
}

static void write_snapshots(struct buf *out, const struct row *row, const struct values *v)
{
    buf_printf(out, "%s{result=\"written\"} %llu\n", row->name, (unsigned long long)v->metrics.snapshots);
    buf_printf(out, "%s{result=\"failed\"} %llu\n", row->name, (unsigned long long)v->metrics.snapshots_failed);
    buf_printf(out, "%s{result=\"refused\"} %llu\n", row->name, (unsigned long long)v->metrics.snapshots_refused);
}

static void write_histogram(struct buf *out, const struct row *row, const struct values *v)
{
    const struct histogram *h = (const void *)((const char *)v + row->offset);
    uint64_t n = 0;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        n += h->count[i];
        buf_printf(out, "%s_bucket{le=\"%g\"} %llu\n", row->name, bucket_us[i] / 1e6, (unsigned long long)n);
    }
    n += h->count[HISTOGRAM_BUCKETS];
    buf_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9f\n%s_count %llu\n", row->name, (unsigned long long)n, row->name, (double)h->sum_ns / 1e9,
               row->name, (unsigned long long)n);
}

static void write_build(struct buf *out, const struct row *row, const struct values *v)
{
    (void)v;
    buf_printf(out, "%s{version=\"%s\",libuv=\"%s\",compiler=\"%.60s\"} 1\n", row->name, AOID_VERSION, uv_version_string(), __VERSION__);
}

/* ------------------------------------------------------------------------------------------------------------- the table */

#define AT(field) offsetof(struct values, field)
#define SPACE_AT(field) offsetof(struct space_values, field)

static const struct row rows[] = {
    {"aoid_build_info", "gauge", write_build, 0, "Always 1; the labels say what runs."},
    {"aoid_ready", "gauge", write_whole, AT(ready), "1: new connections are accepted; 0: the daemon is about to exit."},
    {"aoid_connections", "gauge", write_whole, AT(metrics.connections), "Open connections."},
    {"aoid_sessions", "gauge", write_whole, AT(sessions), "Sessions, with a connection or waiting for one."},
    {"aoid_connections_accepted_total", "counter", write_whole, AT(metrics.accepted), "Connections that were accepted."},
    {"aoid_connections_closed_total", "counter", write_reasons, 0, "Connections that ended, by reason."},
    {"aoid_frames_received_total", "counter", write_whole, AT(metrics.frames_in), "Frames from clients."},
    {"aoid_received_bytes_total", "counter", write_whole, AT(metrics.bytes_in), "Bytes from clients."},
    {"aoid_sent_bytes_total", "counter", write_whole, AT(metrics.bytes_out), "Bytes to clients that the kernel took."},
    {"aoid_unsent_bytes", "gauge", write_whole, AT(unsent_bytes), "Bytes that wait for clients to read, of all connections; /sessions says whose."},
    {"aoid_errors_total", "counter", write_codes, 0, "Commands and frames that were refused, by code."},
    {"aoid_flush_duration_seconds", "histogram", write_histogram, AT(metrics.flush), "What a flush took, from the first player to the last."},
    {"aoid_delta_latency_seconds", "histogram", write_histogram, AT(metrics.latency),
     "From the oldest change that a flush tells to its deltas being ready to be sent."},
    {"aoid_flush_interval_seconds", "gauge", write_intervals, 0, "flush_ms of the spaces, the shortest and the longest; 0: none has one."},
    {"aoid_oracle_checked_total", "counter", write_whole, AT(metrics.oracle_checked), "Views of players that were compared with brute force."},
    {"aoid_oracle_left_out_total", "counter", write_whole, AT(metrics.oracle_left_out), "Views not compared because their player was skipped."},
    {"aoid_oracle_mismatches_total", "counter", write_whole, AT(metrics.oracle_mismatches), "Differences found: any at all is a bug in aoid."},
    {"aoid_spaces", "gauge", write_whole, AT(space_n), "Spaces; those of the 1000 lowest ids have series of their own."},
    {"aoid_memory_bytes", "gauge", write_whole, AT(live.memory_bytes), "Memory of all spaces, reckoned; the process as a whole: see below."},
    {"aoid_memory_held_bytes", "gauge", write_whole, AT(memory_held_bytes), "What counts against max_memory_bytes, of the whole process."},
    {"aoid_memory_limit_bytes", "gauge", write_whole, AT(memory_limit_bytes), "max_memory_bytes; 0: there is no limit."},
    {"aoid_memory_full", "gauge", write_whole, AT(memory_full), "1: max_memory_bytes stands in the way, or did within the last 5 s."},
    {"aoid_memory_denied_total", "counter", write_whole, AT(memory_denied),
     "Times that it stood in the way: commands refused, enters that wait, connections not read."},
    {"aoid_entities", "gauge", write_whole, AT(live.entities), "Entities of all spaces."},
    {"aoid_players", "gauge", write_whole, AT(live.players), "Players of all spaces."},
    {"aoid_pairs", "gauge", write_whole, AT(live.pairs), "Told entities, added up over all players."},
    {"aoid_deltas_total", "counter", write_whole, AT(since.deltas), "Deltas made; this and those below also in spaces that have ended since."},
    {"aoid_enters_total", "counter", write_whole, AT(since.enters), "Enters told."},
    {"aoid_leaves_total", "counter", write_whole, AT(since.leaves), "Leaves told."},
    {"aoid_updates_total", "counter", write_whole, AT(since.updates), "Updates of position told."},
    {"aoid_moves_total", "counter", write_whole, AT(since.moves), "Moves of entities."},
    {"aoid_messages_total", "counter", write_whole, AT(since.messages), "Messages published."},
    {"aoid_skipped_total", "counter", write_whole, AT(since.skipped), "Players skipped by a flush because their connection was full."},
    {"aoid_space_entities", "gauge", write_spaces, SPACE_AT(stats.entities), "Entities."},
    {"aoid_space_players", "gauge", write_spaces, SPACE_AT(stats.players), "Players."},
    {"aoid_space_pairs", "gauge", write_spaces, SPACE_AT(stats.pairs), "Told entities, added up over all players."},
    {"aoid_space_densest_cell_entities", "gauge", write_spaces, SPACE_AT(densest), "Entities in the fullest cell; an estimate for large spaces."},
    {"aoid_space_memory_bytes", "gauge", write_spaces, SPACE_AT(stats.memory_bytes), "Memory, reckoned."},
    {"aoid_space_flushes_total", "counter", write_spaces, SPACE_AT(stats.flushes), "Flushes."},
    {"aoid_space_deltas_total", "counter", write_spaces, SPACE_AT(stats.deltas), "Deltas made."},
    {"aoid_space_enters_total", "counter", write_spaces, SPACE_AT(stats.enters), "Enters told."},
    {"aoid_space_leaves_total", "counter", write_spaces, SPACE_AT(stats.leaves), "Leaves told."},
    {"aoid_space_updates_total", "counter", write_spaces, SPACE_AT(stats.updates), "Updates of position told."},
    {"aoid_space_moves_total", "counter", write_spaces, SPACE_AT(stats.moves), "Moves of entities."},
    {"aoid_space_messages_total", "counter", write_spaces, SPACE_AT(stats.messages), "Messages published."},
    {"aoid_space_skipped_total", "counter", write_spaces, SPACE_AT(stats.skipped), "Players skipped by a flush because their connection was full."},
    {"aoid_reloads_total", "counter", write_results, 0, "SIGHUPs, by what became of the configuration."},
    {"aoid_snapshots_total", "counter", write_snapshots, 0, "Snapshots, by what became of them."},
    {"aoid_snapshot_last_written_seconds", "gauge", write_real, AT(metrics.snapshot_seconds),
     "When the last one was written, in seconds since 1970."},
    {"aoid_record_failed", "gauge", write_whole, AT(record_failed),
     "1: the recording could not be written to its end, and nothing more is recorded."},
    {"aoid_log_lines_dropped_total", "counter", write_whole, AT(log_dropped), "Log lines lost because nobody reads standard error."},
    {"aoid_http_requests_total", "counter", write_whole, AT(metrics.http_requests), "Requests for pages like this one."},
    {"process_cpu_seconds_total", "counter", write_real, AT(process.cpu_seconds), "User and system time."},
    {"process_start_time_seconds", "gauge", write_real, AT(process.start_seconds), "When the process began, in seconds since 1970."},
    {"process_resident_memory_bytes", "gauge", write_whole, AT(process.resident_bytes), "Resident memory."},
    {"process_open_fds", "gauge", write_whole, AT(process.open_fds), "Open files."},
    {"process_max_fds", "gauge", write_whole, AT(process.max_fds), "The limit of open files."},
};

void metrics_write(const struct metrics_source *source, struct buf *out)
{
    struct values v = {.metrics = *source->metrics,
                       .sessions = source->sessions,
                       .unsent_bytes = source->unsent_bytes,
                       .record_failed = source->record_failed,
                       .ready = !source->draining,
                       .memory_full = source->memory_full,
                       .memory_held_bytes = source->memory_held_bytes,
                       .memory_limit_bytes = source->memory_limit_bytes,
                       .memory_denied = source->memory_denied,
                       .log_dropped = log_dropped(),
                       .since = source->metrics->ended};
    look_at_spaces(&v, source->world);
    look_at_process(&v.process);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", rows[i].name, rows[i].help, rows[i].name, rows[i].type);
        rows[i].write(out, &rows[i], &v);
    }
    array_clear(&v.spaces);
}
