/* find.h: what lies in an area, for queries: as masks of the index's pages where it has any, so that nobody is looked up one by one. */
#ifndef AOI_CORE_FIND_H
#define AOI_CORE_FIND_H

#include "core/kernel.h"
#include "core/space.h"

/* Lies in the space's scratch: until something else is found there, or a flush. */
struct aoi__found {
    struct aoi__sieve sieve; /* its pages; */
    uint32_t border;         /* those from here on lie wholly in the box */
    uint64_t *inside;        /* which places of each */
    aoi__slots *slots;       /* the others: all, where the index has no pages; else what has appeal */
    bool everything;         /* nothing lies outside the box */
};

/* What lies in the box, edges inclusive, which may reach past everything, and has one of the layers (0: any). */
void aoi__find_box(struct aoi_space *space, const float lo[3], const float hi[3], uint32_t layers, struct aoi__found *f);
/* What lies at most so far from a point; everything is about the box around that. radius: INFINITY is fine. */
void aoi__find_sphere(struct aoi_space *space, const float center[3], double radius, uint32_t layers, struct aoi__found *f);
size_t aoi__found_n(const struct aoi__found *f);

/* The beginning of its columns. */
FETCHING void aoi__page_fetch(const struct aoi__page *page)
{
    for (uint32_t line = 0; line < 3; line++) __builtin_prefetch((const char *)page->x + line * MEM_LINE);
}

typedef void aoi__found_fn(void *ctx, const float pos[3], uint64_t id, uint32_t slot);

/* Calls fn, which is compiled into the loop, for each, in no order. */
static inline __attribute__((always_inline)) void aoi__found_each(const struct aoi_space *space, const struct aoi__found *f, aoi__found_fn *fn,
                                                                  void *ctx)
{
    const uint32_t dims = space->dims, n = f->sieve.n, *number = f->sieve.page;
    for (uint32_t i = 0; i < n; i++) {
        const struct aoi__page *page = &f->sieve.pool[number[i]];
        if (i + 16 < n) __builtin_prefetch(&f->sieve.pool[number[i + 16]]);
        if (i + 8 < n) aoi__page_fetch(&f->sieve.pool[number[i + 8]]);
        const uint32_t *slots = aoi__page_slots(page, dims);
        for (uint64_t m = f->inside[i]; m != 0; m &= m - 1) {
            uint32_t k = (uint32_t)__builtin_ctzll(m);
            const float pos[3] = {page->x[k], page->x[page->cap + k], dims == 3 ? page->x[2 * page->cap + k] : 0};
            fn(ctx, pos, aoi__page_id(page, dims, k), slots[k]);
        }
    }
    for (uint32_t i = 0; i < f->slots->n; i++) {
        const struct aoi__hot *h = &space->hot[f->slots->at[i]];
        fn(ctx, h->pos, h->id, f->slots->at[i]);
    }
}

#endif
