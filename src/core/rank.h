/* rank.h: who is told first, where not everybody is: max_view, the enter budget, pages of queries. */
#ifndef AOI_CORE_RANK_H
#define AOI_CORE_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The better of two: chosen ones first, then higher priority, then smaller distance, then lower id. */
struct aoi__ranked {
    double distance2;
    uint64_t id;
    uint32_t priority;
    uint32_t entry; /* whatever it is that is ranked: a slot, with its flags */
    bool chosen;    /* SHOW, include_self */
    bool told;
};

static inline bool aoi__better(const struct aoi__ranked *a, const struct aoi__ranked *b)
{
    if (a->chosen != b->chosen) return a->chosen;
    if (a->priority != b->priority) return a->priority > b->priority;
    if (a->distance2 != b->distance2) return a->distance2 < b->distance2;
    return a->id < b->id;
}

/* Reorders so that the n best of count stand first, in any order. O(count) on average, whatever the order was. */
void aoi__rank_select(struct aoi__ranked *r, size_t count, size_t n);
/* Sorts, the best first. */
void aoi__rank_sort(struct aoi__ranked *r, size_t count);

#endif
