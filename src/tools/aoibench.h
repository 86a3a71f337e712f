/* aoibench.h: what the load generator is asked to do, and what it found. */
#ifndef AOI_TOOLS_AOIBENCH_H
#define AOI_TOOLS_AOIBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/histogram.h"

#define AOIBENCH_UPDATE_BYTES 16 /* an id, x and y */

struct aoibench_options {
    const char *address, *aoid, *workload, *redis, *ca;
    uint32_t entities, players, connections, movers;
    double rate, seconds, warmup, side, radius, speed;
    uint32_t flush_ms, index, pid, space, redis_pid;
    uint32_t batch;  /* moves a frame */
    uint32_t rounds; /* in turn with the yardstick */
    uint32_t write;  /* bytes a write of the ceiling */
    uint32_t ready;  /* bytes that lie ready for it */
    uint32_t depth;  /* queries under way */
    double width, height;
    bool burst; /* a round's moves all at once, and the next when that has been told; else spread over the period */
    bool plain; /* no extra word: updates of 16 bytes, and no latency */
    bool pin;   /* the daemon on the first processor, the load on the second */
    bool mirror, json, tls;
};

struct aoibench_result {
    double seconds;
    uint64_t rounds, flushes, moves, deltas, enters, leaves, updates, bytes_in, bytes_out;
    struct histogram latency, late,
        ping;                 /* from due time to delta; by how much the generator itself was behind; from a ping to the daemon's answer */
    double cpu_seconds;       /* of the daemon; below 0: not known */
    uint64_t writes, written; /* of the daemon: calls, bytes */
    size_t memory_bytes;
    uint64_t compared, mismatches; /* with mirror: entities of views in the end, and those that differ from brute force */
};

/* Movers and players against the daemon at options->address, of which the process is known or 0. NULL, or -1: a sentence is in error, which must live as long. */
struct bench *aoibench_net_open(const struct aoibench_options *options, pid_t daemon, char *error, size_t error_size);
int aoibench_net_drive(struct bench *bench, double seconds);                                   /* without measuring */
int aoibench_net_measure(struct bench *bench, double seconds, struct aoibench_result *result); /* fills *result */
/* Moves as fast as they are taken, in batches. */
int aoibench_net_push(struct bench *bench, double seconds, struct aoibench_result *result);
int aoibench_net_compare(struct bench *bench, struct aoibench_result *result); /* with brute force; adds to *result */
void aoibench_net_close(struct bench *bench);

/* What it takes to send so many bytes over loopback TCP, of which ready_bytes lie ready and go over and over, in writes of this size, alternating between
 * connections: seconds of the sender's processor. Below 0: errno says why. */
double aoibench_ceiling(uint64_t bytes, size_t ready_bytes, size_t write_bytes, uint32_t connections, bool pin);

/* Pins a process (0: this one) to the n-th processor that it may use, if there are several. */
void aoibench_pin(pid_t pid, int n);
/* The daemon, if its process is known, to the first one, and the load, which is this process, to the second. */
void aoibench_pin_both(pid_t daemon);
const char *aoibench_index(const struct aoibench_options *options); /* its name */
double aoibench_random(uint64_t *state);                            /* the next of a row of numbers in [0, 1); the state is never 0 */
double aoibench_median(double *values, uint32_t n);                 /* reorders them */

/* Each prints its report. 0, or -1 with a sentence in error. */
int aoibench_run_net(struct aoibench_options *options, pid_t daemon, char *error, size_t error_size);
int aoibench_run_workload(struct aoibench_options *options, pid_t daemon, char *error, size_t error_size);
int aoibench_run_input(struct aoibench_options *options, pid_t daemon, char *error, size_t error_size);
int aoibench_run_query(struct aoibench_options *options, pid_t daemon, char *error, size_t error_size);
int aoibench_run_ceiling(struct aoibench_options *options, pid_t daemon, char *error, size_t error_size);

/* One line of a report. */
struct aoibench_figure {
    const char *name;
    double value;
    int decimals;
    bool unknown; /* nothing was measured */
};
/* Lines, or one JSON object with `text` (pairs of name and value, ended by NULL) behind the figures. */
void aoibench_print(bool json, const struct aoibench_figure *figures, size_t n, const char *const *text);

#endif
