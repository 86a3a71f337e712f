/* ids.h: which slot an entity's id has: a hash map that keeps no ids, for these stand in the slots' records. */
#ifndef AOI_CORE_IDS_H
#define AOI_CORE_IDS_H

#include <stddef.h>
#include <stdint.h>

struct aoi_space;

/* Open addressing, linear probing, backward-shift deletion, as in base/idmap.h. A word is a slot in its low bits and, in the others, as much of the id's hash as there is room
 * for: so that what is looked at in hot is nearly always what was looked for. */
struct aoi__ids {
    uint32_t *word;     /* UINT32_MAX: free */
    uint32_t n, mask;   /* capacity - 1, a power of two less one; 0: nothing allocated */
    uint32_t slot_mask; /* the bits of a word that are the slot, which is less */
    uint64_t salt;      /* of the hash: from where the words happen to lie, so that nobody can choose ids that collide */
};

void aoi__ids_clear(struct aoi__ids *ids); /* frees; a zeroed struct is an empty map */
/* The slot with that id, or UINT32_MAX. */
uint32_t aoi__ids_get(const struct aoi_space *space, uint64_t id);
#define AOI__GUESSES 32 /* at once */
/* For each of so many ids at most UINT32_MAX, if no slot has it, or a slot that probably has it: to be compared with hot, which is not read here, so that it can be fetched. */
void aoi__ids_guess(const struct aoi__ids *ids, const uint64_t *id, size_t n, uint32_t *slot);
/* What becomes alive: hot holds its id already. */
void aoi__ids_put(struct aoi_space *space, uint32_t slot);
void aoi__ids_remove(struct aoi_space *space, uint32_t slot); /* while it still is */
size_t aoi__ids_bytes(const struct aoi__ids *ids);

#endif
