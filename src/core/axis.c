/* axis.c: the markers of one axis, in order: sorted chunks under a directory. */
#include "core/axis.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Two neighbours with so few together become one chunk. A quarter below what splits, so that nothing is split and merged in turns. */
#define MERGE_AT (AOI__CHUNK * 3 / 4)
#define NO_MARKER UINT64_MAX /* stands behind the markers of a chunk, up to its end: a search need not know how many there are */

void aoi__axis_clear(struct aoi__axis *axis)
{
    free(axis->first);
    free(axis->run);
    free(axis->chunk);
    *axis = (struct aoi__axis){0};
}

/* Without branches: a guess would be wrong half the time, and cost more than the step. */
uint32_t aoi__markers_below(const uint64_t *at, uint32_t n, uint64_t key)
{
    if (n == 0) return 0;
    const uint64_t *p = at;
    while (n > 1) {
        uint32_t half = n / 2;
        p += half & -(size_t)(p[half - 1] < key);
        n -= half;
    }
    return (uint32_t)(p - at) + (*p < key);
}

/* The run that holds the marker, or would. There is at least one run. */
static uint32_t run_of(const struct aoi__axis *axis, uint64_t marker)
{
    return aoi__markers_below(axis->first + 1, axis->run_n - 1, marker + 1);
}

static uint64_t *markers(const struct aoi__axis *axis, uint32_t k)
{
    return axis->chunk[axis->run[k].chunk].marker;
}

/* Place of a marker in a chunk, or of where it would go. Counted, every eighth and then eight, instead of halved: these loads wait for memory
 * together, where those of a bisection wait one by one. It takes 2 to 8 % off a move. */
static uint32_t place_in(const uint64_t *at, uint64_t marker)
{
    uint32_t eights = 0, ones = 0;
    for (uint32_t i = 7; i < AOI__CHUNK - 1; i += 8) eights += at[i] < marker;
    at += (size_t)eights * 8;
    for (uint32_t i = 0; i < 8; i++) ones += at[i] < marker;
    return eights * 8 + ones;
}

/* ------------------------------------------------------------------------------------------------------------- the directory */

static uint32_t chunk_new(struct aoi__axis *axis)
{
    if (axis->free_n > 0) {
        uint32_t c = axis->free_chunk;
        axis->free_chunk = (uint32_t)axis->chunk[c].marker[0];
        axis->free_n--;
        return c;
    }
    if (axis->chunk_n == axis->chunk_cap) { /* from 1 on: a small space has a handful of axes with a marker or two each */
        axis->chunk_cap += axis->chunk_cap / 2 + 1;
        axis->chunk = mem_realloc(axis->chunk, axis->chunk_cap * sizeof *axis->chunk);
    }
    return axis->chunk_n++;
}

/* A new, empty run k, before the one that is there now. */
static void run_insert(struct aoi__axis *axis, uint32_t k, uint64_t first)
{
    uint32_t cap = axis->run_cap;
    axis->first = array__grow(axis->first, &cap, (size_t)axis->run_n + 1, sizeof *axis->first);
    axis->run = array__grow(axis->run, &axis->run_cap, (size_t)axis->run_n + 1, sizeof *axis->run);
    memmove(axis->first + k + 1, axis->first + k, (axis->run_n - k) * sizeof *axis->first);
    memmove(axis->run + k + 1, axis->run + k, (axis->run_n - k) * sizeof *axis->run);
    axis->first[k] = first;
    axis->run[k] = (struct aoi__run){.chunk = chunk_new(axis)};
    axis->run_n++;
    memset(markers(axis, k), 0xff, sizeof(struct aoi__chunk));
}

/* Run k, whose markers are elsewhere by now, goes; the run before it takes over its part of the axis. */
static void run_remove(struct aoi__axis *axis, uint32_t k)
{
    uint32_t c = axis->run[k].chunk;
    axis->chunk[c].marker[0] = axis->free_chunk;
    axis->free_chunk = c;
    axis->free_n++;
    axis->run_n--;
    memmove(axis->first + k, axis->first + k + 1, (axis->run_n - k) * sizeof *axis->first);
    memmove(axis->run + k, axis->run + k + 1, (axis->run_n - k) * sizeof *axis->run);
}

/* Run k is full: what stands from `keep` on goes to a new run behind it, which begins at `first`. */
static void split(struct aoi__axis *axis, uint32_t k, uint32_t keep, uint64_t first)
{
    run_insert(axis, k + 1, first);
    memcpy(markers(axis, k + 1), markers(axis, k) + keep, (AOI__CHUNK - keep) * sizeof(uint64_t));
    memset(markers(axis, k) + keep, 0xff, (AOI__CHUNK - keep) * sizeof(uint64_t));
    axis->run[k + 1].n = AOI__CHUNK - keep;
    axis->run[k].n = keep;
}

/* Run k + 1 joins run k if they are small enough. */
static bool merge(struct aoi__axis *axis, uint32_t k)
{
    if (k + 1 >= axis->run_n) return false;
    struct aoi__run *a = &axis->run[k], *b = &axis->run[k + 1];
    if (a->n + b->n > MERGE_AT && a->n > 0 && b->n > 0) return false;
    memcpy(markers(axis, k) + a->n, markers(axis, k + 1), b->n * sizeof(uint64_t));
    a->n += b->n;
    run_remove(axis, k + 1);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------- markers */

void aoi__axis_insert(struct aoi__axis *axis, uint64_t marker)
{
    if (axis->run_n == 0) run_insert(axis, 0, 0);
    uint32_t k = run_of(axis, marker);
    uint32_t i = place_in(markers(axis, k), marker);
    if (axis->run[k].n == AOI__CHUNK) {
        /* what comes in ascending order leaves full chunks behind, not halves */
        bool last = i == AOI__CHUNK && k + 1 == axis->run_n;
        uint32_t keep = last ? AOI__CHUNK : AOI__CHUNK / 2;
        split(axis, k, keep, last ? marker : markers(axis, k)[keep]);
        if (last || i > keep) {
            k++;
            i -= keep;
        }
    }
    uint64_t *at = markers(axis, k);
    memmove(at + i + 1, at + i, (axis->run[k].n - i) * sizeof *at);
    at[i] = marker;
    axis->run[k].n++;
    axis->n++;
}

/* Place of a marker that is there, in run k. */
static uint32_t place_of(const struct aoi__axis *axis, uint32_t k, uint64_t marker)
{
    const uint64_t *at = markers(axis, k);
    uint32_t i = place_in(at, marker);
    CHECK(i < AOI__CHUNK && at[i] == marker);
    return i;
}

bool aoi__axis_has(const struct aoi__axis *axis, uint64_t marker)
{
    if (axis->run_n == 0) return false;
    const uint64_t *at = markers(axis, run_of(axis, marker));
    uint32_t i = place_in(at, marker);
    return i < AOI__CHUNK && at[i] == marker;
}

static void take_out(struct aoi__axis *axis, uint32_t k, uint32_t i)
{
    uint64_t *at = markers(axis, k);
    axis->run[k].n--;
    axis->n--;
    memmove(at + i, at + i + 1, (axis->run[k].n - i) * sizeof *at);
    at[axis->run[k].n] = NO_MARKER;
    if (!merge(axis, k) && k > 0) merge(axis, k - 1);
}

void aoi__axis_erase(struct aoi__axis *axis, uint64_t marker)
{
    CHECK(axis->run_n > 0);
    uint32_t k = run_of(axis, marker);
    take_out(axis, k, place_of(axis, k, marker));
}

void aoi__axis_move(struct aoi__axis *axis, uint64_t from, uint64_t to)
{
    CHECK(axis->run_n > 0);
    uint32_t k = run_of(axis, from);
    uint32_t i = place_of(axis, k, from);
    if (to < axis->first[k] || (k + 1 < axis->run_n && axis->first[k + 1] <= to)) {
        take_out(axis, k, i);
        aoi__axis_insert(axis, to);
        return;
    }
    uint64_t *at = markers(axis, k);
    uint32_t last = axis->run[k].n - 1;
    for (; i < last && at[i + 1] < to; i++) at[i] = at[i + 1];
    for (; i > 0 && at[i - 1] > to; i--) at[i] = at[i - 1];
    at[i] = to;
}

/* ------------------------------------------------------------------------------------------------------------- intervals */

struct aoi__range aoi__axis_seek(const struct aoi__axis *axis, uint32_t lo, uint32_t hi)
{
    struct aoi__range range = {.end = aoi__marker(hi, UINT32_MAX)};
    if (axis->run_n == 0) return range;
    uint64_t begin = aoi__marker(lo, 0);
    range.run = run_of(axis, begin);
    range.at = place_in(markers(axis, range.run), begin);
    return range;
}

const uint64_t *aoi__axis_next(const struct aoi__axis *axis, struct aoi__range *range, uint32_t *n)
{
    while (range->run < axis->run_n && axis->first[range->run] <= range->end) {
        const uint64_t *at = markers(axis, range->run) + range->at;
        uint32_t left = axis->run[range->run].n - range->at;
        range->run++;
        range->at = 0;
        if (left == 0) continue;
        if (at[left - 1] > range->end) { /* the last of it; counted from the front, for most intervals are a few markers long */
            range->run = axis->run_n;
            for (left = 0; at[left] <= range->end;) left++;
            if (left == 0) return NULL;
        }
        *n = left;
        return at;
    }
    return NULL;
}

uint32_t aoi__axis_count(const struct aoi__axis *axis, const struct aoi__range *range)
{
    uint32_t k = range->run;
    if (k + 1 >= axis->run_n || axis->first[k + 1] > range->end) return 0;
    uint64_t runs = run_of(axis, range->end) - k;
    return (uint32_t)(runs * axis->n / axis->run_n);
}

/* ------------------------------------------------------------------------------------------------------------- all at once */

void aoi__axis_read(const struct aoi__axis *axis, uint64_t *to)
{
    for (uint32_t k = 0; k < axis->run_n; to += axis->run[k++].n) memcpy(to, markers(axis, k), axis->run[k].n * sizeof *to);
}

void aoi__axis_write(struct aoi__axis *axis, const uint64_t *from)
{
    for (uint32_t k = 0; k < axis->run_n; from += axis->run[k++].n) {
        memcpy(markers(axis, k), from, axis->run[k].n * sizeof *from);
        if (k > 0) axis->first[k] = *from; /* only the first run may be empty, and then it is the only one */
    }
}

/* ------------------------------------------------------------------------------------------------------------- checks */

size_t aoi__axis_bytes(const struct aoi__axis *axis)
{
    return axis->run_cap * (sizeof *axis->first + sizeof *axis->run) + axis->chunk_cap * sizeof *axis->chunk;
}

void aoi__axis_validate(const struct aoi__axis *axis)
{
    uint32_t n = 0;
    CHECK(axis->run_n + axis->free_n == axis->chunk_n);
    CHECK(axis->run_n == 0 || axis->first[0] == 0);
    for (uint32_t k = 0; k < axis->run_n; k++) {
        const uint64_t *at = markers(axis, k);
        uint32_t run_n = axis->run[k].n;
        CHECK(run_n <= AOI__CHUNK && (run_n > 0 || axis->run_n == 1));
        for (uint32_t i = 0; i < run_n; i++) CHECK(i == 0 ? at[i] >= axis->first[k] : at[i] > at[i - 1]);
        for (uint32_t i = run_n; i < AOI__CHUNK; i++) CHECK(at[i] == NO_MARKER);
        CHECK(k + 1 == axis->run_n || at[run_n - 1] < axis->first[k + 1]);
        n += run_n;
    }
    CHECK(n == axis->n);
}
