/* arena.h: a bump allocator with a hard cap, for what lives as long as one frame. */
#ifndef AOI_BASE_ARENA_H
#define AOI_BASE_ARENA_H

#include <stddef.h>

#define ARENA_KEEP ((size_t)4 << 20) /* the largest block that a reset keeps, so that one huge frame is not paid for ever after */

struct arena_block;

/* Memory comes in blocks that double. arena_reset() keeps the largest one (up to ARENA_KEEP), so that a steady stream of frames allocates nothing. */
struct arena {
    struct arena_block *head; /* the block being filled; older ones behind it */
    size_t used;              /* bytes handed out since the last reset, alignment included, at most cap */
    size_t cap;
};

/* What is taken from the system is at most twice the cap (ends of blocks that an allocation did not fit in), plus one header a block. */
void arena_init(struct arena *a, size_t cap);
void arena_clear(struct arena *a);                /* frees everything */
void arena_reset(struct arena *a);                /* forgets everything, keeps a block */
size_t arena_held(const struct arena *a);         /* bytes taken from the system */
void *arena_alloc(struct arena *a, size_t bytes); /* aligned for any type, distinct also for 0 bytes; NULL: it would pass the cap */

#endif
