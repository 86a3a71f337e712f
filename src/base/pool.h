/* pool.h: many small allocations of sizes that come and go: what is freed is kept for others of about the same size, and all goes at once. */
#ifndef AOI_BASE_POOL_H
#define AOI_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

#define POOL_CLASSES 48
#define POOL_MAX 4096 /* bytes; what is larger goes to malloc */

struct pool {
    void *free[POOL_CLASSES]; /* by size; the first word of each points to the next */
    char *at, *end;           /* what was never used of the newest slab */
    char *next, *next_end;    /* a slab for when that is used up; NULL: none */
    void *slabs;              /* likewise a list, of all of them */
    size_t bytes;             /* of all slabs */
};

/* A zeroed struct is an empty pool. */
void pool_clear(struct pool *pool); /* frees all but what is larger than POOL_MAX */
/* Sees to it that an eighth of all, or nearly, can be asked for beside what is freed before anything more is allocated. */
void pool_ahead(struct pool *pool);
/* How much is allocated when so much is asked for: a multiple of 8, at most a quarter more. */
size_t pool_size(size_t bytes);
void *pool_alloc(struct pool *pool, size_t bytes);
void pool_free(struct pool *pool, void *p, size_t bytes); /* with what pool_alloc() was asked for. Fine for NULL */

/* Arrays (array.h) of elements of at most 16 bytes with a multiple of 4 that stand in a pool, with no more room than a piece of it has. */
#define pool_array_reserve(pool, a, need) ((a)->at = pool__reserve((pool), (a)->at, &(a)->cap, (need), sizeof *(a)->at))
#define pool_array_add(pool, a) (pool_array_reserve((pool), (a), (size_t)(a)->n + 1), &(a)->at[(a)->n++])
#define pool_array_clear(pool, a) (pool_free((pool), (a)->at, (a)->cap * sizeof *(a)->at), (a)->at = NULL, (a)->n = (a)->cap = 0)
void *pool__reserve(struct pool *pool, void *p, uint32_t *cap, size_t need, size_t size);

#endif
