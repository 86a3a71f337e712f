/* ids.c: a hash map from ids to slots that keeps no ids. */
#include "core/ids.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/idmap.h"

#define FREE UINT32_MAX

void aoi__ids_clear(struct aoi__ids *ids)
{
    free(ids->word);
    *ids = (struct aoi__ids){0};
}

static uint64_t hash_of(const struct aoi__ids *ids, uint64_t id)
{
    return idmap_hash(id ^ ids->salt);
}

/* What the word of an id with this hash holds beside the slot. */
static uint32_t tag_of(const struct aoi__ids *ids, uint64_t hash)
{
    return (uint32_t)(hash >> 32) & ~ids->slot_mask;
}

/* The place from i on whose word has the tag, or a free one. The map is never full. */
static uint32_t next_like(const struct aoi__ids *ids, uint32_t i, uint32_t tag)
{
    while (ids->word[i] != FREE && (ids->word[i] & ~ids->slot_mask) != tag) i = (i + 1) & ids->mask;
    return i;
}

static uint64_t id_of(struct aoi__records of, uint32_t slot)
{
    uint64_t id;
    memcpy(&id, (const char *)of.at + slot * of.size, sizeof id);
    return id;
}

/* The place of the id, or the free one where it would go. */
static uint32_t find(const struct aoi__ids *ids, struct aoi__records of, uint64_t id)
{
    uint64_t hash = hash_of(ids, id);
    uint32_t tag = tag_of(ids, hash), i = next_like(ids, (uint32_t)hash & ids->mask, tag);
    while (ids->word[i] != FREE && id_of(of, ids->word[i] & ids->slot_mask) != id) i = next_like(ids, (i + 1) & ids->mask, tag);
    return i;
}

/* The slot of a word; of a free one UINT32_MAX. */
static uint32_t slot_of(const struct aoi__ids *ids, uint32_t word)
{
    return word == FREE ? FREE : word & ids->slot_mask;
}

uint32_t aoi__ids_get(const struct aoi__ids *ids, struct aoi__records of, uint64_t id)
{
    return ids->mask == 0 ? FREE : slot_of(ids, ids->word[find(ids, of, id)]);
}

void aoi__ids_guess(const struct aoi__ids *ids, const uint64_t *id, size_t n, uint32_t *slot)
{
    const struct aoi__ids m = *ids; /* a copy, so that stores to slot do not make the compiler reload it */
    uint64_t hash[AOI__GUESSES];
    if (m.mask == 0) {
        for (size_t k = 0; k < n; k++) slot[k] = FREE;
        return;
    }
    for (size_t k = 0; k < n; k++) {
        hash[k] = hash_of(&m, id[k]);
        __builtin_prefetch(m.word + ((uint32_t)hash[k] & m.mask));
    }
    for (size_t k = 0; k < n; k++) { slot[k] = slot_of(&m, m.word[next_like(&m, (uint32_t)hash[k] & m.mask, tag_of(&m, hash[k]))]); }
}

/* Into the free place where it belongs. */
static void put(struct aoi__ids *ids, uint64_t id, uint32_t slot)
{
    uint64_t hash = hash_of(ids, id);
    uint32_t i = (uint32_t)hash & ids->mask;
    while (ids->word[i] != FREE) i = (i + 1) & ids->mask;
    ids->word[i] = slot | tag_of(ids, hash);
}

static bool is_alive(struct aoi__records of, uint32_t slot)
{
    return of.alive != NULL ? of.alive[slot >> 5] >> (slot & 31) & 1 : id_of(of, slot) != 0;
}

/* All anew, from who is alive, but for one: so the old words need not be kept meanwhile. */
static void resize(struct aoi__ids *ids, struct aoi__records of, uint32_t cap, uint32_t slot_mask, uint32_t except)
{
    ids->word = mem_realloc(ids->word, cap * sizeof *ids->word);
    memset(ids->word, 0xFF, cap * sizeof *ids->word); /* FREE */
    ids->mask = cap - 1;
    ids->slot_mask = slot_mask;
    ids->salt = idmap_hash((uint64_t)(uintptr_t)ids->word);
    for (uint32_t s = 0; s < of.n; s++)
        if (is_alive(of, s) && s != except) put(ids, id_of(of, s), s);
}

void aoi__ids_put(struct aoi__ids *ids, struct aoi__records of, uint32_t slot)
{
    uint32_t cap = ids->mask == 0 ? 16 : ids->mask + 1, slot_mask = ids->slot_mask | 15;
    if ((uint64_t)(ids->n + 1) * 4 > (uint64_t)cap * 3) cap *= 2;
    while (slot >= slot_mask) slot_mask = slot_mask * 2 + 1; /* never all its bits, which FREE has */
    if (cap != ids->mask + 1 || slot_mask != ids->slot_mask) resize(ids, of, cap, slot_mask, slot);
    put(ids, id_of(of, slot), slot);
    ids->n++;
}

void aoi__ids_remove(struct aoi__ids *ids, struct aoi__records of, uint32_t slot)
{
    uint32_t i = find(ids, of, id_of(of, slot));
    CHECK(ids->word[i] != FREE && (ids->word[i] & ids->slot_mask) == slot);
    ids->n--;
    /* shift back what follows in the run and may stand here: its home is not in (i, j] */
    for (uint32_t j = (i + 1) & ids->mask; ids->word[j] != FREE; j = (j + 1) & ids->mask) {
        uint32_t home = (uint32_t)hash_of(ids, id_of(of, ids->word[j] & ids->slot_mask)) & ids->mask;
        if (((j - home) & ids->mask) < ((j - i) & ids->mask)) continue;
        ids->word[i] = ids->word[j];
        i = j;
    }
    ids->word[i] = FREE;
}

size_t aoi__ids_bytes(const struct aoi__ids *ids)
{
    return ids->mask == 0 ? 0 : ((size_t)ids->mask + 1) * sizeof *ids->word;
}
