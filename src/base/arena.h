/* arena.h: a bump allocator with a hard cap, for what lives as long as one frame. */
#ifndef AOI_BASE_ARENA_H
#define AOI_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

/* Memory comes in blocks that are kept by arena_reset() (the first one) so that a steady stream of frames allocates nothing. */
struct arena {
    struct arena_block *head; /* the block being filled; older ones behind it */
    size_t used;              /* bytes handed out since the last reset, at most cap */
    size_t cap;
};

void arena_init(struct arena *a, size_t cap);
void arena_clear(struct arena *a);               /* frees everything */
void arena_reset(struct arena *a);               /* forgets everything, keeps a block */
void *arena_alloc(struct arena *a, size_t bytes); /* aligned for any type; NULL: it would pass the cap */

#endif
