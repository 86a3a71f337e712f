/* axis.h: the markers of one axis, in order.
 *
 * A marker is one 64-bit number: above, the coordinate as an integer that orders alike; below, whose marker it is. So no two markers are equal, a
 * marker is found by its number in O(log N) however many share a coordinate, and nothing has to remember where it stands.
 *
 * The markers stand in sorted chunks, under a directory that says which chunk holds which numbers. A marker that moves a little shifts its few
 * neighbours in one chunk; one that moves far is taken out and put in again.
 */
#ifndef AOI_CORE_AXIS_H
#define AOI_CORE_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Half a KiB. 32 and 128 cost the same a move, at 10,000 entities: it is no delicate choice. A multiple of 8. */
#define AOI__CHUNK 64

struct aoi__chunk {
    uint64_t marker[AOI__CHUNK];
};

struct aoi__run {
    uint32_t chunk; /* index in chunk[] */
    uint32_t n;     /* its markers; 0 only if it is the only run */
};

struct aoi__axis {
    uint64_t *first; /* the directory, two parallel arrays: run k holds exactly the markers in [first[k], first[k + 1]); first[0] is 0 */
    struct aoi__run *run;
    uint32_t run_n, run_cap;
    struct aoi__chunk *chunk;
    uint32_t chunk_n, chunk_cap;
    uint32_t free_n; /* chunks not in use; the last freed is free_chunk, the others follow by marker[0] */
    uint32_t free_chunk;
    uint32_t n; /* markers */
};

/* What is left to read of an interval. Valid until the axis changes. */
struct aoi__range {
    uint64_t end; /* the last marker that may belong to it */
    uint32_t run; /* where to read on */
    uint32_t at;
};

/* Coordinates as integers: order(a) < order(b) iff a < b; both zeros are one. Infinities have their place, NaN has none. */
static inline uint32_t aoi__order(float v)
{
    union {
        float f;
        uint32_t u;
    } bits = {.f = v + 0.0f}; /* -0.0 becomes 0.0 */
    return bits.u ^ (bits.u >> 31 ? 0xffffffffu : 0x80000000u);
}

static inline float aoi__unorder(uint32_t order)
{
    union {
        uint32_t u;
        float f;
    } bits = {.u = order ^ (order >> 31 ? 0x80000000u : 0xffffffffu)};
    return bits.f;
}

static inline uint64_t aoi__marker(uint32_t order, uint32_t whose)
{
    return (uint64_t)order << 32 | whose;
}

/* How many of at[0 .. n), ascending, are below key. */
uint32_t aoi__markers_below(const uint64_t *at, uint32_t n, uint64_t key);

void aoi__axis_clear(struct aoi__axis *axis); /* frees; a zeroed struct is an empty axis */
void aoi__axis_insert(struct aoi__axis *axis, uint64_t marker);
void aoi__axis_erase(struct aoi__axis *axis, uint64_t marker);           /* it must be there */
void aoi__axis_move(struct aoi__axis *axis, uint64_t from, uint64_t to); /* from must be there */

bool aoi__axis_has(const struct aoi__axis *axis, uint64_t marker);

/* The markers with lo <= order <= hi; none if lo > hi. */
struct aoi__range aoi__axis_seek(const struct aoi__axis *axis, uint32_t lo, uint32_t hi);
/* The next of them, *n in a row and ascending; NULL: there are no more. */
const uint64_t *aoi__axis_next(const struct aoi__axis *axis, struct aoi__range *range, uint32_t *n);
/* Copies all markers out, in order: axis->n of them. */
void aoi__axis_read(const struct aoi__axis *axis, uint64_t *to);
/* Puts as many markers as there are, ascending, in the place of those that are there. */
void aoi__axis_write(struct aoi__axis *axis, const uint64_t *from);
/* How many there are, give or take a chunk, from the directory alone: 0 where it costs nothing to read them all. */
uint32_t aoi__axis_count(const struct aoi__axis *axis, const struct aoi__range *range);

size_t aoi__axis_bytes(const struct aoi__axis *axis);
void aoi__axis_validate(const struct aoi__axis *axis);

#endif
