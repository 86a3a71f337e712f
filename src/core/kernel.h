/* kernel.h: the innermost loops over pages: which places lie in an area, and their rows; in plain C, AVX2 and AVX-512, chosen at run time. */
#ifndef AOI_CORE_KERNEL_H
#define AOI_CORE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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
    bool any_layer;     /* no page is left out for its layers */
    uint64_t window;    /* of the directory */
    float lo[3], hi[3]; /* box */
    double center[3];   /* sphere, tiers */
    double radius;      /* sphere */
};

static inline void aoi__sieve_box(struct aoi__sieve *sieve, const float lo[3], const float hi[3])
{
    memcpy(sieve->lo, lo, sizeof sieve->lo);
    memcpy(sieve->hi, hi, sizeof sieve->hi);
}

/* Whether flush number + id is a multiple of the period. */
static inline bool aoi__is_due(uint64_t flush, uint64_t id, uint64_t period)
{
    return (flush % period + id % period) % period == 0;
}

/* Tiers around the sieve's center. */
struct aoi__rings {
    const struct aoi_tiers *tiers;
    const double *most2; /* their distances, squared */
    uint64_t flush;
    /* Each period divides the next: whose turn it is in a tier, is so in the nearer ones. Only then reach counts, by number of page and place: up to which squared distance
     * it is their turn, rounded. INFINITY: whatever it is; less than 0: nowhere. */
    bool nested;
    const float *reach;
};

#define AOI__BOXES 64

/* Boxes, by axis; those from n on lie nowhere (NaN). */
struct aoi__boxes {
    uint32_t n;
    float lo[3][AOI__BOXES], hi[3][AOI__BOXES];
};

/* Masks of places: bit k of the i-th is about place k of page i. Rows are appended; columns need room for 2 * AOI__LANES more than are written. */
struct aoi__kernels {
    /* Which entities lie in the box. */
    void (*box)(const struct aoi__sieve *s, uint64_t *inside);
    /* Likewise; and the rows of those of them that are told, and moved in the window. Of pages of which not all have a layer of the mask, no rows. */
    void (*box_rows)(const struct aoi__sieve *s, const uint64_t *told, uint64_t *inside, struct aoi_rows *rows);
    /* Which lie in the sphere, by its exact rule, of those that inside holds before. */
    void (*sphere)(const struct aoi__sieve *s, uint64_t *inside);
    /* Likewise by tiers: of what is told, in the box, and moved or late, what is due becomes rows and is late no more; the other is late. Whether any is. */
    bool (*tiers)(const struct aoi__sieve *s, const struct aoi__rings *r, const uint64_t *told, uint64_t *late, uint64_t *inside,
                  struct aoi_rows *rows);
    /* Which of the boxes have a point in common with that of the sieve. */
    uint64_t (*touch)(const struct aoi__sieve *s, const struct aoi__boxes *boxes);
    /* The rows of those that `want` holds. */
    void (*rows)(const struct aoi__sieve *s, const uint64_t *want, struct aoi_rows *rows);
};

/* Those that this processor can run, the fastest first, the plain ones last. NULL: there are no more. */
const struct aoi__kernels *aoi__kernels_nth(uint32_t i);

#endif
