/* kernel.h: the innermost loops over pages: which places lie in an area, and their rows; in plain C and in AVX2, chosen at run time. */
#ifndef AOI_CORE_KERNEL_H
#define AOI_CORE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/aoi.h"
#include "core/blocks.h"

/* Pages, and what is asked about each of them. */
struct aoi__sieve {
    const struct aoi__page *pool; /* page[i] is the number of a page here */
    const uint32_t *page;
    uint32_t n;
    uint32_t dims;
    bool extra;         /* rows have that column */
    uint32_t mask;      /* layers */
    uint64_t window;    /* of the directory */
    float lo[3], hi[3]; /* box */
    double center[3];   /* sphere, tiers */
    double radius;      /* sphere */
};

/* Masks of places: bit k of the i-th is about place k of page i. Rows are appended; columns need room for AOI__LANES more than are written. */
struct aoi__kernels {
    /* Which entities lie in the box. */
    void (*box)(const struct aoi__sieve *s, uint64_t *inside);
    /* Likewise; and the rows of those of them that are told, and moved in the window. Of pages of which not all have a layer of the mask, no rows. */
    void (*box_rows)(const struct aoi__sieve *s, const uint64_t *told, uint64_t *inside, struct aoi_rows *rows);
    /* Which lie in the sphere, by its exact rule, of those that inside holds before. */
    void (*sphere)(const struct aoi__sieve *s, uint64_t *inside);
    /* Which of those that `want` holds are at most so far from the center, in doubles: near[i * n + k] for the k-th of n squared distances. */
    void (*near)(const struct aoi__sieve *s, const double *distance2, uint32_t n, const uint64_t *want, uint64_t *near);
    /* The rows of those that `want` holds. */
    void (*rows)(const struct aoi__sieve *s, const uint64_t *want, struct aoi_rows *rows);
};

/* The fastest that this processor can run. */
const struct aoi__kernels *aoi__kernels_pick(void);

#endif
