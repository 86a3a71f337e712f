/* rank.c: who is told first, where not everybody is. */
#include "core/rank.h"

#include <stdlib.h>

static void swap(struct aoi__ranked *a, struct aoi__ranked *b)
{
    struct aoi__ranked t = *a;
    *a = *b;
    *b = t;
}

/* Quickselect (Hoare 1961) with a pivot from a generator, so that no order of the input is a bad one. */
void aoi__rank_select(struct aoi__ranked *r, size_t count, size_t n)
{
    size_t low = 0, high = count; /* the border at n lies in low..high */
    uint64_t random = 0x9E3779B97F4A7C15u;
    while (n > low && n < high && high - low > 1) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        swap(&r[low], &r[low + (size_t)(random >> 33) % (high - low)]);
        size_t border = low + 1; /* [low + 1, border) is better than the pivot at low */
        for (size_t i = low + 1; i < high; i++)
            if (aoi__better(&r[i], &r[low])) swap(&r[i], &r[border++]);
        swap(&r[low], &r[--border]);
        if (n <= border)
            high = border;
        else
            low = border + 1;
    }
}

static int compare(const void *a, const void *b)
{
    return aoi__better(a, b) ? -1 : aoi__better(b, a);
}

void aoi__rank_sort(struct aoi__ranked *r, size_t count)
{
    if (count > 1) qsort(r, count, sizeof *r, compare);
}
