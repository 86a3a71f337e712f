/* aoibench.h: what the load generator is asked to do, and what it found. */
#ifndef AOI_TOOLS_AOIBENCH_H
#define AOI_TOOLS_AOIBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/histogram.h"

struct aoibench_net {
    const char *address, *aoid;
    uint32_t entities, players, connections, movers;
    double rate, seconds, warmup, side, radius, speed;
    uint32_t flush_ms, index, pid, space;
    bool mirror, json;
};

struct aoibench_result {
    double seconds;
    uint64_t moves, deltas, enters, leaves, updates, bytes_in, bytes_out;
    struct histogram latency, late; /* from due time to delta; by how much the generator itself was behind */
    double cpu_seconds;             /* of the daemon; below 0: not known */
    size_t memory_bytes;
    uint64_t compared, mismatches; /* with mirror: entities of views in the end, and those that differ from brute force */
};

/* Runs the load against the daemon at options->address. 0, or -1 with a sentence in error. */
int aoibench_run_net(const struct aoibench_net *options, pid_t daemon, struct aoibench_result *result, char *error, size_t error_size);

#endif
