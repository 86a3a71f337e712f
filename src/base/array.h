/* array.h: growing arrays of plain elements.
 *
 * An array is any three fields: a typed pointer, a count and a capacity. ARRAY(uint32_t) declares such a struct; zeroed it is empty.
 *   ARRAY(uint32_t) v = {0};  *array_add(&v) = 7;  array_clear(&v);
 */
#ifndef AOI_BASE_ARRAY_H
#define AOI_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"

#define ARRAY(type)      \
    struct {             \
        type *at;        \
        uint32_t n, cap; \
    }

/* Room for at least `need` elements of `size` bytes: p itself or its reallocation; *cap is updated. Grows by half again, a small one to twice that. */
static inline void *array__grow(void *p, uint32_t *cap, size_t need, size_t size)
{
    if (need <= *cap) return p;
    CHECK(need <= UINT32_MAX / 2);
    uint32_t want = *cap + (*cap < 64 ? *cap : *cap / 2);
    if (want < need) want = (uint32_t)need;
    if (want * size < 24) want = (uint32_t)(24 / size); /* no allocation is smaller than that */
    *cap = want;
    return mem_realloc(p, want * size);
}

#define ARRAY_KEEP 256 /* elements: with room for no more than that an array keeps what it has */

/* Gives memory back where there is room for more than four times n. */
static inline void *array__shrink(void *p, uint32_t *cap, uint32_t n, size_t size)
{
    uint32_t want = *cap;
    while (want > ARRAY_KEEP && n < want / 4) want /= 2;
    if (want == *cap) return p;
    *cap = want;
    return mem_realloc(p, want * size);
}

#define array_reserve(a, need) ((a)->at = array__grow((a)->at, &(a)->cap, (need), sizeof *(a)->at))
/* Pointer to one more, uninitialized element; the array may move. */
#define array_add(a) (array_reserve((a), (size_t)(a)->n + 1), &(a)->at[(a)->n++])
#define array_shrink(a, n) ((a)->at = array__shrink((a)->at, &(a)->cap, (n), sizeof *(a)->at))
/* Takes element i out; the last one takes its place. */
#define array_swap_remove(a, i) ((a)->at[i] = (a)->at[--(a)->n])
#define array_clear(a) (free((a)->at), (a)->at = NULL, (a)->n = (a)->cap = 0)

static inline int array__ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Of n numbers, in ascending order, each once; returns how many that are. */
static inline uint32_t array_sort_once(uint64_t *at, uint32_t n)
{
    uint32_t once = 0;
    if (n > 1) qsort(at, n, sizeof *at, array__ascending);
    for (uint32_t i = 0; i < n; i++)
        if (once == 0 || at[i] != at[once - 1]) at[once++] = at[i];
    return once;
}

#endif
