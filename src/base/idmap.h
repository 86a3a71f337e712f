/* idmap.h: a hash map from 64-bit ids (not 0) to 32-bit values. Open addressing, linear probing, backward-shift deletion. */
#ifndef AOI_BASE_IDMAP_H
#define AOI_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDMAP_NONE UINT32_MAX

struct idmap {
    uint64_t *key;   /* 0: free */
    uint32_t *value; /* not IDMAP_NONE */
    uint32_t n;
    uint32_t mask; /* capacity - 1, a power of two less one; 0: nothing allocated */
    uint64_t salt; /* of the hash: from where its memory happens to lie, so that nobody can choose ids that collide */
};

void idmap_clear(struct idmap *m);                             /* frees; a zeroed struct is an empty map */
uint32_t idmap_get(const struct idmap *m, uint64_t key);       /* IDMAP_NONE: not there */
void idmap_put(struct idmap *m, uint64_t key, uint32_t value); /* inserts or replaces */
uint32_t idmap_remove(struct idmap *m, uint64_t key);          /* what was there, or IDMAP_NONE */
size_t idmap_bytes(const struct idmap *m);

/* The hash used: ids come from outside, so that it must spread sequential and strided ids alike. */
static inline uint64_t idmap_hash(uint64_t x)
{
    x ^= x >> 32; /* splitmix64's finisher, Steele et al. 2014 */
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

#endif
