/* scan.h: which entities of a cell lie in a box. */
#ifndef AOI_CORE_SCAN_H
#define AOI_CORE_SCAN_H

#include <stdint.h>

/* Capacities of cells are multiples of this, and `out` has room for as many more than are found. */
#define AOI__LANES 8

/* columns: x[cap], y[cap], z[cap] (3D only), of which the first n count, as do those of slot. Writes the slots with lo <= p <= hi to out, in their order; returns how many. */
typedef uint32_t (*aoi__scan_fn)(const float *columns, const uint32_t *slot, uint32_t cap, uint32_t n, const float lo[3], const float hi[3],
                                 uint32_t *out);

extern const uint64_t aoi__compress[256]; /* AVX2: the indices of the bits set, a byte each, lowest first */

/* The fastest one that this processor can run. */
aoi__scan_fn aoi__scan_pick(uint32_t dims);

#endif
