/* histogram.c: counts of microseconds in logarithmic buckets. */
#include "tools/histogram.h"

#include <math.h>

static uint32_t bucket(uint64_t us)
{
    if (us > UINT32_MAX) us = UINT32_MAX;
    if (us < HISTOGRAM_SUB) return (uint32_t)us;
    uint32_t shift = 31 - (uint32_t)__builtin_clz((uint32_t)us) - 6; /* leaves 64 .. 127 */
    return (shift + 1) * HISTOGRAM_SUB + (uint32_t)(us >> shift) - HISTOGRAM_SUB;
}

static uint64_t bucket_end(uint32_t b)
{
    if (b < HISTOGRAM_SUB) return b;
    uint32_t shift = b / HISTOGRAM_SUB - 1;
    return ((uint64_t)(b % HISTOGRAM_SUB + HISTOGRAM_SUB + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t us)
{
    h->count[bucket(us)]++;
    h->n++;
    if (us > h->max) h->max = us;
}

uint64_t histogram_at(const struct histogram *h, double part)
{
    uint64_t want = (uint64_t)ceil(part * (double)h->n), seen = 0;
    for (uint32_t b = 0; b < HISTOGRAM_BUCKETS && h->n; b++) {
        seen += h->count[b];
        if (seen >= want && seen) return bucket_end(b) < h->max ? bucket_end(b) : h->max;
    }
    return h->max;
}
