/* pool.c: lists of free pieces by size, cut from slabs. */
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define STEP 8    /* a pointer; no piece is smaller */
#define SMALL 256 /* up to this a class for every STEP bytes, above four for each power of two */
#define SLAB 4096 /* the smallest */

static void push(void **list, void *p)
{
    memcpy(p, list, sizeof *list);
    *list = p;
}

static void *pop(void **list)
{
    void *p = *list;
    memcpy(list, p, sizeof *list);
    return p;
}

void pool_clear(struct pool *pool)
{
    while (pool->slabs != NULL) free(pop(&pool->slabs));
    *pool = (struct pool){0};
}

/* The step between classes at this size, a power of two. */
static size_t step_of(size_t bytes)
{
    return bytes <= SMALL ? STEP : (size_t)1 << (61 - __builtin_clzll((bytes - 1) | 1));
}

size_t pool_size(size_t bytes)
{
    size_t step = step_of(bytes);
    return bytes == 0 ? STEP : (bytes + step - 1) & ~(step - 1);
}

static uint32_t class_of(size_t size)
{
    if (size <= SMALL) return (uint32_t)(size / STEP - 1);
    uint32_t power = 63 - (uint32_t)__builtin_clzll(size - 1); /* size is in (2^power, 2^(power + 1)] */
    return SMALL / STEP + (power - 8) * 4 + (uint32_t)((size - ((size_t)1 << power)) / step_of(size)) - 1;
}

/* An eighth of all, so that there are few; its first 16 bytes are the list's. */
static void next_slab(struct pool *pool)
{
    size_t bytes = pool->bytes / 8 > SLAB ? pool->bytes / 8 : SLAB;
    char *slab = mem_alloc(bytes + 16);
    push(&pool->slabs, slab);
    pool->next = slab + 16;
    pool->next_end = slab + 16 + bytes;
    pool->bytes += bytes + 16;
}

void pool_ahead(struct pool *pool)
{
    if (pool->next == NULL && (size_t)(pool->end - pool->at) < pool->bytes / 8) next_slab(pool);
}

static void add_slab(struct pool *pool)
{
    if (pool->next == NULL) next_slab(pool);
    while (pool->end - pool->at >= STEP) { /* the rest of the last one */
        size_t left = (size_t)(pool->end - pool->at), size = left;
        while (pool_size(size) > left) size -= STEP;
        push(&pool->free[class_of(pool_size(size))], pool->at);
        pool->at += pool_size(size);
    }
    pool->at = pool->next;
    pool->end = pool->next_end;
    pool->next = pool->next_end = NULL;
}

void *pool_alloc(struct pool *pool, size_t bytes)
{
    size_t size = pool_size(bytes);
    if (size > POOL_MAX) return mem_alloc(size);
    void **list = &pool->free[class_of(size)];
    if (*list != NULL) return pop(list);
    if ((size_t)(pool->end - pool->at) < size) add_slab(pool);
    char *p = pool->at;
    pool->at += size;
    return p;
}

void pool_free(struct pool *pool, void *p, size_t bytes)
{
    size_t size = pool_size(bytes);
    if (size > POOL_MAX)
        free(p);
    else if (p != NULL)
        push(&pool->free[class_of(size)], p);
}

void *pool__reserve(struct pool *pool, void *p, uint32_t *cap, size_t need, size_t size)
{
    if (need <= *cap) return p;
    DCHECK(size <= 16); /* so that the whole capacity is of the class of its piece */
    CHECK(need <= UINT32_MAX / 2);
    size_t bytes = pool_size(need * size);
    void *to = pool_alloc(pool, bytes);
    if (*cap > 0) memcpy(to, p, *cap * size);
    pool_free(pool, p, *cap * size);
    *cap = (uint32_t)(bytes / size);
    return to;
}
