/* arena.c: a bump allocator with a hard cap, for what lives as long as one frame. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"

/* Under AddressSanitizer what is not handed out is poisoned: a pointer kept over a reset, or a read past an allocation, is caught. */
#if defined(__SANITIZE_ADDRESS__)
#define ARENA_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISONS 1
#endif
#endif
#ifdef ARENA_POISONS
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

#define ALIGN alignof(max_align_t)
#define BLOCK_MIN ((size_t)16 << 10)

struct arena_block {
    struct arena_block *older;
    size_t size, fill; /* of at[] */
    alignas(max_align_t) uint8_t at[];
};

void arena_init(struct arena *a, size_t cap)
{
    *a = (struct arena){.cap = cap};
}

static void free_blocks(struct arena_block *b)
{
    while (b != NULL) {
        struct arena_block *older = b->older;
        free(b);
        b = older;
    }
}

void arena_clear(struct arena *a)
{
    free_blocks(a->head);
    a->head = NULL;
    a->used = 0;
}

void arena_reset(struct arena *a)
{
    struct arena_block *kept = NULL;
    while (a->head != NULL) {
        struct arena_block *b = a->head;
        a->head = b->older;
        if (b->size <= ARENA_KEEP && (kept == NULL || b->size > kept->size)) {
            free(kept);
            kept = b;
        } else {
            free(b);
        }
    }
    a->used = 0;
    if (kept == NULL) return;
    kept->older = NULL;
    kept->fill = 0;
    ASAN_POISON_MEMORY_REGION(kept->at, kept->size);
    a->head = kept;
}

size_t arena_held(const struct arena *a)
{
    size_t bytes = 0;
    for (const struct arena_block *b = a->head; b != NULL; b = b->older) bytes += sizeof *b + b->size;
    return bytes;
}

/* A block for at least need bytes: twice the last one, but no more than may still be handed out. */
static struct arena_block *add_block(struct arena *a, size_t need)
{
    size_t size = a->head == NULL ? BLOCK_MIN : a->head->size * 2;
    if (size > a->cap - a->used) size = a->cap - a->used;
    if (size < need) size = need;
    struct arena_block *b = mem_alloc(sizeof *b + size);
    *b = (struct arena_block){.older = a->head, .size = size};
    ASAN_POISON_MEMORY_REGION(b->at, size);
    a->head = b;
    return b;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    if (bytes > a->cap - a->used) return NULL;
    size_t need = bytes == 0 ? ALIGN : (bytes + ALIGN - 1) & ~(ALIGN - 1);
    if (need < bytes || need > a->cap - a->used) return NULL;
    struct arena_block *b = a->head;
    if (b == NULL || b->size - b->fill < need) b = add_block(a, need);
    void *p = b->at + b->fill;
    b->fill += need;
    a->used += need;
    ASAN_UNPOISON_MEMORY_REGION(p, bytes);
    return p;
}
