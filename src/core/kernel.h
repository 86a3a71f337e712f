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
    bool extra;           /* rows have that column */
    uint32_t mask;        /* layers */
    float lo[3], hi[3];   /* box; no bound is -0.0 */
    const double *center; /* three: sphere, tiers */
    double radius;        /* sphere */
};

static inline void aoi__sieve_box(struct aoi__sieve *sieve, const float lo[3], const float hi[3])
{
    memcpy(sieve->lo, lo, sizeof sieve->lo);
    memcpy(sieve->hi, hi, sizeof sieve->hi);
}

/* Tiers around the sieve's center. */
struct aoi__rings {
    uint32_t n;           /* of tiers, but for what is beyond them */
    const double *most2;  /* their distances, squared */
    const uint64_t *turn; /* by number of page: whose turn it is if it stands in a tier, a mask each, and beyond them all */
};

/* Those of a page. */
static inline const uint64_t *aoi__turns(const struct aoi__rings *r, uint32_t page)
{
    return r->turn + (size_t)page * (r->n + 1);
}

/* Places of a page, which is the page-th of a view, at which something came or went. */
struct aoi__differ {
    uint64_t places;
    uint32_t page;
};

/* What has become of a view that was told by page. */
struct aoi__sifted {
    uint64_t *inside;           /* what is to be seen now */
    uint64_t *want;             /* of that, what is told, and moved in the window */
    struct aoi__differ *differ; /* pages of which inside is not what was told; one more may be written than are counted */
    uint32_t differ_n;
    size_t wanted;     /* how many are in want */
    uint64_t *due;     /* whose turn it is by their tiers; it is sure of those that are inside */
    uint64_t restated; /* not 0: some of what is told have another state */
    uint32_t
        all; /* layers that all have who stand in these pages. If there is none of the mask among them, somebody may lack that, and is inside all the same */
};

#define AOI__BOXES 64

/* Boxes, by axis; those from n on lie nowhere (NaN). */
struct aoi__boxes {
    uint32_t n;
    float lo[3][AOI__BOXES], hi[3][AOI__BOXES];
};

/* Masks of places: bit k of the i-th is about place k of page i. */
struct aoi__kernels {
    /* Which entities lie in the box. */
    void (*box)(const struct aoi__sieve *s, uint64_t *inside);
    /* Which lie in the sphere, by its exact rule, of those that inside holds before. */
    void (*sphere)(const struct aoi__sieve *s, uint64_t *inside);
    /* All that a look needs to know of n pages of a view. Of the sieve's own n pages inside is found by the box, of those behind them it is given. r: NULL, or due is found, too. */
    void (*sift)(const struct aoi__sieve *s, uint32_t n, const uint64_t *told, const struct aoi__rings *r, struct aoi__sifted *out);
    /* By tiers, for as many pages as the sieve has: of what is wanted, or late, inside and told, that of which it is the turn is wanted, and late no more; the other is late. Whether
     * any is. */
    bool (*wait)(const struct aoi__sieve *s, const uint64_t *told, uint64_t *late, struct aoi__sifted *io);
    /* Which of the boxes have a point in common with that of the sieve. */
    uint64_t (*touch)(const struct aoi__sieve *s, const struct aoi__boxes *boxes);
    /* The rows of those that `want` holds, appended; columns need room for 2 * AOI__LANES more than are written. */
    void (*rows)(const struct aoi__sieve *s, const uint64_t *want, struct aoi_rows *rows);
    /* The same to places where nothing else may be written, from their beginnings. NULL: it would not be faster than to copy rows there. */
    void (*place)(const struct aoi__sieve *s, const uint64_t *want, const struct aoi_places *to);
};

/* Those that this processor can run, the fastest first, the plain ones last. NULL: there are no more. */
const struct aoi__kernels *aoi__kernels_nth(uint32_t i);

#endif
