/* idmap.c: a hash map from 64-bit ids to 32-bit values. */
#include "base/idmap.h"

#include <stdlib.h>

#include "base/check.h"

void idmap_clear(struct idmap *m)
{
    free(m->key);
    free(m->value);
    *m = (struct idmap){0};
}

/* Where the key is looked for first. */
static uint32_t home_of(const struct idmap *m, uint64_t key)
{
    return (uint32_t)idmap_hash(key ^ m->salt) & m->mask;
}

/* Index of the key, or of the free place where it would go. The map is never full. */
static uint32_t find(const struct idmap *m, uint64_t key)
{
    uint32_t i = home_of(m, key);
    while (m->key[i] != 0 && m->key[i] != key) i = (i + 1) & m->mask;
    return i;
}

static void resize(struct idmap *m, uint32_t cap)
{
    struct idmap old = *m;
    m->key = mem_zalloc((size_t)cap * sizeof *m->key);
    m->value = mem_alloc((size_t)cap * sizeof *m->value);
    m->mask = cap - 1;
    m->salt = idmap_hash((uint64_t)(uintptr_t)m->key);
    if (old.mask != 0) {
        for (uint32_t i = 0; i <= old.mask; i++) {
            if (old.key[i] == 0) continue;
            uint32_t k = find(m, old.key[i]);
            m->key[k] = old.key[i];
            m->value[k] = old.value[i];
        }
    }
    free(old.key);
    free(old.value);
}

uint32_t idmap_get(const struct idmap *m, uint64_t key)
{
    if (m->mask == 0 || key == 0) return IDMAP_NONE;
    uint32_t i = find(m, key);
    return m->key[i] == key ? m->value[i] : IDMAP_NONE;
}

void idmap_put(struct idmap *m, uint64_t key, uint32_t value)
{
    CHECK(key != 0 && value != IDMAP_NONE);
    if (m->mask == 0) resize(m, 16);
    uint32_t i = find(m, key);
    if (m->key[i] == 0) {
        if ((uint64_t)(m->n + 1) * 4 > ((uint64_t)m->mask + 1) * 3) {
            resize(m, (m->mask + 1) * 2);
            i = find(m, key);
        }
        m->key[i] = key;
        m->n++;
    }
    m->value[i] = value;
}

uint32_t idmap_remove(struct idmap *m, uint64_t key)
{
    if (m->mask == 0 || key == 0) return IDMAP_NONE;
    uint32_t i = find(m, key);
    if (m->key[i] != key) return IDMAP_NONE;
    uint32_t value = m->value[i];
    m->n--;
    /* shift back what follows in the run and may stand here: its home is not in (i, j] */
    for (uint32_t j = (i + 1) & m->mask; m->key[j] != 0; j = (j + 1) & m->mask) {
        uint32_t home = home_of(m, m->key[j]);
        if (((j - home) & m->mask) < ((j - i) & m->mask)) continue;
        m->key[i] = m->key[j];
        m->value[i] = m->value[j];
        i = j;
    }
    m->key[i] = 0;
    return value;
}

size_t idmap_bytes(const struct idmap *m)
{
    return m->mask == 0 ? 0 : ((size_t)m->mask + 1) * (sizeof *m->key + sizeof *m->value);
}
