/* pairs.c: which watch holds which slot: a relation, kept from both sides. */
#include "core/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* A list with room for more than this gives memory back when it has become four times too large. */
#define SHRINK_FROM 256
/* Partners are fetched into the cache so many places before their turn. */
#define AHEAD 4

void aoi__pairs_clear(struct aoi__pairs *pairs)
{
    for (int side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < pairs->cap[side]; i++) free(pairs->of[side][i].id);
        free(pairs->of[side]);
    }
    *pairs = (struct aoi__pairs){0};
}

void aoi__pairs_reserve(struct aoi__pairs *pairs, enum aoi__side side, uint32_t id)
{
    uint32_t old = pairs->cap[side];
    if (id < old) return;
    pairs->of[side] = array__grow(pairs->of[side], &pairs->cap[side], (size_t)id + 1, sizeof *pairs->of[side]);
    memset(pairs->of[side] + old, 0, (pairs->cap[side] - old) * sizeof *pairs->of[side]);
}

static void append(struct aoi__list *list, uint32_t id)
{
    if (list->n == list->cap) {
        CHECK(list->cap < UINT32_MAX / 4);
        list->cap += list->cap / 2 + 8;
        list->id = mem_realloc(list->id, list->cap * sizeof *list->id);
    }
    list->id[list->n++] = id;
}

static void take_out(struct aoi__list *list, uint32_t i)
{
    list->id[i] = list->id[--list->n];
    if (list->cap > SHRINK_FROM && list->n < list->cap / 4) {
        list->cap /= 2;
        list->id = mem_realloc(list->id, list->cap * sizeof *list->id);
    }
}

/* Four ids in a register, such as every x86-64 and arm64 has. */
typedef uint32_t ids __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t halves __attribute__((vector_size(16)));

static bool among_16(const uint32_t *at, uint32_t id)
{
    const ids *v = (const ids *)at;
    const ids want = {id, id, id, id};
    halves hit = (halves)((v[0] == want) | (v[1] == want) | (v[2] == want) | (v[3] == want));
    return (hit[0] | hit[1]) != 0;
}

/* Place of an id that is there. */
static uint32_t find(const struct aoi__list *list, uint32_t id)
{
    uint32_t i = 0;
    while (i + 16 <= list->n && !among_16(list->id + i, id)) i += 16;
    while (i < list->n && list->id[i] != id) i++;
    CHECK(i < list->n);
    return i;
}

void aoi__pairs_add(struct aoi__pairs *pairs, uint32_t watch, uint32_t slot)
{
    append(&pairs->of[AOI__WATCH][watch], slot);
    append(&pairs->of[AOI__SLOT][slot], watch);
    pairs->n++;
}

void aoi__pairs_remove(struct aoi__pairs *pairs, uint32_t watch, uint32_t slot)
{
    struct aoi__list *w = &pairs->of[AOI__WATCH][watch], *s = &pairs->of[AOI__SLOT][slot];
    take_out(w, find(w, slot));
    take_out(s, find(s, watch));
    pairs->n--;
}

void aoi__pairs_remove_at(struct aoi__pairs *pairs, enum aoi__side side, uint32_t id, uint32_t i)
{
    struct aoi__list *list = &pairs->of[side][id];
    DCHECK(i < list->n);
    if (i >= AHEAD) aoi__list_expect(&pairs->of[!side][list->id[i - AHEAD]]); /* lists are emptied from the end */
    struct aoi__list *partner = &pairs->of[!side][list->id[i]];
    take_out(list, i);
    take_out(partner, find(partner, id));
    pairs->n--;
}

size_t aoi__pairs_bytes(const struct aoi__pairs *pairs)
{
    size_t bytes = 0;
    for (int side = 0; side < 2; side++) {
        bytes += pairs->cap[side] * sizeof *pairs->of[side];
        for (uint32_t i = 0; i < pairs->cap[side]; i++) bytes += (size_t)pairs->of[side][i].cap * sizeof(uint32_t);
    }
    return bytes;
}

void aoi__pairs_validate(const struct aoi__pairs *pairs)
{
    uint64_t n[2] = {0, 0};
    for (int side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < pairs->cap[side]; i++) {
            const struct aoi__list *list = &pairs->of[side][i];
            CHECK(list->n <= list->cap);
            n[side] += list->n;
            for (uint32_t k = 0; k < list->n; k++) {
                CHECK(list->id[k] < pairs->cap[!side]);
                find(&pairs->of[!side][list->id[k]], i);
            }
        }
    }
    CHECK(n[0] == pairs->n && n[1] == pairs->n);
}
