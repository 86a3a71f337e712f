/* check.c: assertions that stay on, and allocation that cannot fail quietly. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned long long alloc_count; /* a statistic only */

_Noreturn void check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: check failed: %s\n", file, line, what);
    abort();
}

static void *or_abort(void *p, size_t bytes)
{
    alloc_count++;
    if (p == NULL && bytes > 0) {
        fprintf(stderr, "out of memory: could not allocate %zu bytes\n", bytes);
        abort();
    }
    return p;
}

void *mem_alloc(size_t bytes)
{
    return or_abort(malloc(bytes), bytes);
}

void *mem_zalloc(size_t bytes)
{
    return or_abort(calloc(1, bytes), bytes);
}

void *mem_realloc(void *p, size_t bytes)
{
    return or_abort(realloc(p, bytes), bytes);
}

void *mem_aligned(size_t alignment, size_t bytes)
{
    return or_abort(aligned_alloc(alignment, bytes), bytes);
}

unsigned long long mem_alloc_count(void)
{
    return alloc_count;
}
