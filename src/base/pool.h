/* pool.h: many small allocations of sizes that come and go: what is freed is kept for others of about the same size, and all goes at once. */
#ifndef AOI_BASE_POOL_H
#define AOI_BASE_POOL_H

#include <stddef.h>

#define POOL_CLASSES 32
#define POOL_MAX 4096 /* bytes; what is larger goes to malloc */

struct pool {
    void *free[POOL_CLASSES]; /* by size; the first word of each points to the next */
    char *at, *end;           /* what was never used of the newest slab */
    void *slabs;              /* likewise a list */
    size_t bytes;             /* of all slabs */
};

/* A zeroed struct is an empty pool. */
void pool_clear(struct pool *pool); /* frees all but what is larger than POOL_MAX */
/* How much is allocated when so much is asked for: a multiple of 16, at most a quarter more. */
size_t pool_size(size_t bytes);
void *pool_alloc(struct pool *pool, size_t bytes);
void pool_free(struct pool *pool, void *p, size_t bytes); /* with what pool_alloc() was asked for. Fine for NULL */

#endif
