/* recording.h: the file in which a daemon's input is kept, to be replayed: entries of what clients sent, of how their sessions went, and of when spaces were flushed. */
#ifndef AOI_WIRE_RECORDING_H
#define AOI_WIRE_RECORDING_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "core/aoi.h"

/* Number of `who` and body of each. Numbers never change their meaning: what a later version adds has another one, and recording_open() refuses a later format. */
enum recording_kind {
    RECORDING_LIMITS = 1, /* numbers, by enum recording_limit; the first entry */
    RECORDING_SPACE,      /* who: a space of the configuration; a Batch with its CreateSpace */
    RECORDING_CHANGE,     /* who: a space of the configuration that was changed by SIGHUP; a Batch with its SetSpace */
    RECORDING_BEGIN,  /* who: a new session's owner number; the numbers id and role, then the name of its token. (No secret is ever in the file.) */
    RECORDING_LEAVE,  /* who: an owner whose connection is gone, while the lease runs */
    RECORDING_RESUME, /* who: an owner that is back; as BEGIN */
    RECORDING_END,    /* who: an owner whose session has ended */
    RECORDING_FRAME,  /* who: an owner; a ClientFrame without its length, that was applied then */
    RECORDING_FLUSH,  /* who: a space; the numbers tag, time_us, now_ms, final. One that a Flush command made follows its frame */
    RECORDING_KINDS
};

enum recording_limit {
    LIMIT_FRAME_BYTES,
    LIMIT_SPACES,
    LIMIT_ENTITIES,
    LIMIT_PLAYERS,
    LIMIT_UNITS,
    LIMIT_PAYLOAD,
    LIMIT_RADIUS_BITS, /* of the float */
    LIMIT_OVERRIDES,
    LIMIT_MESSAGE,
    LIMIT_MESSAGES,
    LIMIT_QUERY_PAGE,
    LIMITS
};

struct recording_entry {
    enum recording_kind kind;
    uint64_t time_us; /* wall clock */
    uint64_t who;
    const uint8_t *body;
    size_t len;
};

/* What stands before the first entry. */
void recording_put_head(struct buf *out);
/* Appends one entry; its body is `numbers` as 64-bit little-endian numbers, then bytes. */
void recording_put(struct buf *out, enum recording_kind kind, uint64_t time_us, uint64_t who, const uint64_t *numbers, size_t number_n,
                   const void *bytes, size_t len);
/* Number i of a body; 0 where it is shorter. */
uint64_t recording_number(const struct recording_entry *entry, size_t i);

#define RECORDING_ERROR_MAX 512

struct recording {
    FILE *file;
    const char *path; /* borrowed */
    uint64_t offset, entries;
    struct buf body;
};

/* Whether the file is one, by its first bytes. */
bool recording_is(const char *path);
/* 0, or -1 with a sentence in err[RECORDING_ERROR_MAX]; close it either way. */
int recording_open(struct recording *recording, const char *path, char *err);
void recording_close(struct recording *recording);
/* 1: an entry, valid until the next call; 0: the end; -1 with a sentence in err: the file is cut off, or is damaged. */
int recording_next(struct recording *recording, struct recording_entry *entry, char *err);

#endif
