/* ids.h: which slot an id has: a hash map that keeps no ids, for these stand in the slots' records. */
#ifndef AOI_CORE_IDS_H
#define AOI_CORE_IDS_H

#include <stddef.h>
#include <stdint.h>

/* Records by slot, each of `size` bytes, of which the first eight are its id. Those of the map are alive. */
struct aoi__records {
    const void *at;
    size_t size;
    uint32_t n;
    const uint32_t *alive; /* bitmap; NULL: those of which the id is not 0 */
};

/* Open addressing, linear probing, backward-shift deletion, as in base/idmap.h. A word is a slot in its low bits and, in the others, as much of the id's hash as there is room
 * for: so that the record looked at is nearly always what was looked for. */
struct aoi__ids {
    uint32_t *word;     /* UINT32_MAX: free */
    uint32_t n, mask;   /* capacity - 1, a power of two less one; 0: nothing allocated */
    uint32_t slot_mask; /* the bits of a word that are the slot, which is less */
    uint64_t salt;      /* of the hash: from where the words happen to lie, so that nobody can choose ids that collide */
};

void aoi__ids_clear(struct aoi__ids *ids); /* frees; a zeroed struct is an empty map */
/* The slot with that id, or UINT32_MAX. */
uint32_t aoi__ids_get(const struct aoi__ids *ids, struct aoi__records of, uint64_t id);
#define AOI__GUESSES 32 /* at once */
/* For each of so many ids at most UINT32_MAX, if no slot has it, or a slot that probably has it: to be compared with its record, which is not read here, so that it can be fetched. */
void aoi__ids_guess(const struct aoi__ids *ids, const uint64_t *id, size_t n, uint32_t *slot);
/* Its record holds its id already, and does as long as the slot is in the map. */
void aoi__ids_put(struct aoi__ids *ids, struct aoi__records of, uint32_t slot);
void aoi__ids_remove(struct aoi__ids *ids, struct aoi__records of, uint32_t slot);
size_t aoi__ids_bytes(const struct aoi__ids *ids);

#endif
