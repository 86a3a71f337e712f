/* check.c: assertions that stay on, and allocation that cannot fail quietly. */
#include "base/check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void *mem_realign(void **raw, void *at, size_t keep, size_t bytes)
{
    size_t was = at == NULL ? 0 : (size_t)((char *)at - (char *)*raw);
    *raw = mem_realloc(*raw, bytes + MEM_LINE);
    size_t now = -(uintptr_t)*raw % MEM_LINE;
    if (now != was && keep > 0) memmove((char *)*raw + now, (char *)*raw + was, keep);
    return (char *)*raw + now;
}

unsigned long long mem_alloc_count(void)
{
    return alloc_count;
}
