/* metrics.h: what the daemon counts since its start, and the page that says so. */
#ifndef AOI_SERVER_METRICS_H
#define AOI_SERVER_METRICS_H

#include <stdint.h>

#include "base/buf.h"
#include "core/aoi.h"
#include "wire/codec.h"

/* Why a session's connection ends: the one list of reasons; names stand in session.c. */
enum close_reason {
    CLOSE_NONE,
    CLOSE_EOF,           /* the peer closed */
    CLOSE_BYE,           /* the peer said Bye */
    CLOSE_IO,            /* reading or writing failed */
    CLOSE_HELLO_TIMEOUT, /* no Hello in time */
    CLOSE_FRAME_TIMEOUT, /* a frame that began did not end in time */
    CLOSE_IDLE_TIMEOUT,  /* nothing came for too long */
    CLOSE_NO_HELLO,      /* the first frame is no Hello */
    CLOSE_UNIX_PEER,     /* a process that may not use the Unix socket */
    CLOSE_TLS,           /* no TLS where it must be, or not as it must be */
    CLOSE_TOKEN,         /* Hello has a wrong token */
    CLOSE_NO_TOKEN,      /* Hello has none where there must be one */
    CLOSE_WITHDRAWN,     /* the token that it came in with stands in the tokens_file no more, or has another role */
    CLOSE_VERSION,       /* Hello asks for a protocol that is not spoken here */
    CLOSE_MALFORMED,     /* bytes that are not a frame */
    CLOSE_TOO_LARGE,     /* a length over the limit */
    CLOSE_OUT_SOFT,      /* it read too slowly for too long */
    CLOSE_OUT_HARD,      /* too many unsent bytes */
    CLOSE_REFUSED,       /* too many connections */
    CLOSE_SESSIONS,      /* too many sessions */
    CLOSE_RESUME_TOKEN,  /* Hello knows the session, but not its resume_token, or its token has another name */
    CLOSE_RESUMED,       /* its session goes on with another connection */
    CLOSE_DRAIN,         /* the daemon ends */
    CLOSE_REASONS
};

/* Durations, by the buckets of metrics.c; the last count is of what is longer than all of them. */
#define HISTOGRAM_BUCKETS 18
struct histogram {
    uint64_t count[HISTOGRAM_BUCKETS + 1];
    uint64_t sum_ns;
};
void histogram_add(struct histogram *histogram, uint64_t ns);

struct metrics {
    uint64_t started_ms;  /* of the loop's clock */
    uint64_t connections; /* now, but for those that are closing */
    uint64_t accepted;
    uint64_t closed[CLOSE_REASONS];
    uint64_t frames_in, bytes_in, bytes_out;
    uint64_t errors[CODEC_CODES]; /* commands and frames refused, by code */
    struct histogram flush;       /* what a flush took */
    struct histogram latency;     /* from the oldest change that it tells to its deltas being in the outboxes */
    uint64_t oracle_checked, oracle_mismatches, oracle_left_out;
    uint64_t reloads, reloads_refused;
    uint64_t snapshots, snapshots_failed, snapshots_refused;
    double snapshot_seconds; /* when the last one was written, since 1970; 0: none was */
    uint64_t http_requests;
    struct aoi_stats ended;         /* what spaces had counted that have ended; of that only what is a count since the start means anything */
    uint64_t resumed, leases_ended; /* sessions that went on with another connection; that ended for want of one */
};

uint64_t metrics_errors(const struct metrics *metrics); /* of all codes */

/* What the page is made of. */
struct metrics_source {
    const struct metrics *metrics;
    const struct aoi_world *world;
    uint64_t sessions, unsent_bytes;
    uint64_t memory_held_bytes, memory_limit_bytes, memory_denied; /* of the budget */
    bool memory_full, record_failed, draining;
};

/* Appends the page: Prometheus' text format, version 0.0.4. Of more than METRICS_SPACES spaces those of the lowest ids have series of their own. */
#define METRICS_SPACES 1000
void metrics_write(const struct metrics_source *source, struct buf *out);

#endif
