/* metrics.h: what the daemon counts since its start. */
#ifndef AOI_SERVER_METRICS_H
#define AOI_SERVER_METRICS_H

#include <stdint.h>

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
    CLOSE_TOKEN,         /* Hello has no token, or a wrong one; or its token was withdrawn */
    CLOSE_VERSION,       /* Hello asks for a protocol that is not spoken here */
    CLOSE_MALFORMED,     /* bytes that are not a frame */
    CLOSE_TOO_LARGE,     /* a length over the limit */
    CLOSE_OUT_SOFT,      /* it read too slowly for too long */
    CLOSE_OUT_HARD,      /* too many unsent bytes */
    CLOSE_REFUSED,       /* too many connections */
    CLOSE_SESSIONS,      /* too many sessions */
    CLOSE_RESUME_TOKEN,  /* Hello knows the session, but not its resume_token */
    CLOSE_RESUMED,       /* its session goes on with another connection */
    CLOSE_DRAIN,         /* the daemon ends */
    CLOSE_REASONS
};

struct metrics {
    uint64_t started_ms;  /* of the loop's clock */
    uint64_t connections; /* now, but for those that are closing */
    uint64_t accepted;
    uint64_t closed[CLOSE_REASONS];
    uint64_t frames_in, bytes_in, bytes_out;
    uint64_t resumed, leases_ended; /* sessions that went on with another connection; that ended for want of one */
    uint64_t errors;                /* commands and frames refused */
};

#endif
