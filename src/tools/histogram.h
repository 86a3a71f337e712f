/* histogram.h: percentiles of many latencies in little memory. */
#ifndef AOI_TOOLS_HISTOGRAM_H
#define AOI_TOOLS_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_SUB 64 /* buckets a power of two: at most 1.6 % off */
#define HISTOGRAM_BUCKETS (HISTOGRAM_SUB * 27)

/* Counts of microseconds, logarithmic; more than 2^32 us count as that. Zeroed it is empty. */
struct histogram {
    uint64_t n, max;
    uint64_t count[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t us);
/* The least value that `part` (0 .. 1) of all do not exceed, to the upper edge of its bucket; 0 if there are none. */
uint64_t histogram_at(const struct histogram *h, double part);

#endif
