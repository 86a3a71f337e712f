/* pairs.c: which watch holds which slot: a relation, kept from both sides. */
#include "core/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* A list with room for more than this gives memory back when it has become four times too large. */
#define SHRINK_FROM 256

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

static void resize(struct aoi__list *list, uint32_t cap)
{
    uint32_t *id = mem_alloc((size_t)cap * 2 * sizeof *id);
    if (list->n > 0) {
        memcpy(id, list->id, list->n * sizeof *id);
        memcpy(id + cap, list->id + list->cap, list->n * sizeof *id);
    }
    free(list->id);
    list->id = id;
    list->cap = cap;
}

static void append(struct aoi__list *list, uint32_t id, uint32_t twin)
{
    if (list->n == list->cap) {
        CHECK(list->cap < UINT32_MAX / 4);
        resize(list, list->cap + list->cap / 2 + 4);
    }
    list->id[list->n] = id;
    list->id[list->cap + list->n] = twin;
    list->n++;
}

/* Takes out the entry at place i; the twin of the last one, which moves there, is told. `other`: the lists of the other side. */
static void take_out(struct aoi__list *list, uint32_t i, struct aoi__list *other)
{
    uint32_t last = --list->n;
    if (i < last) {
        struct aoi__list *partner = &other[list->id[last]];
        uint32_t twin = list->id[list->cap + last];
        list->id[i] = list->id[last];
        list->id[list->cap + i] = twin;
        partner->id[partner->cap + twin] = i;
    }
    if (list->cap > SHRINK_FROM && list->n < list->cap / 4) resize(list, list->cap / 2);
}

void aoi__pairs_add(struct aoi__pairs *pairs, uint32_t watch, uint32_t slot)
{
    struct aoi__list *w = &pairs->of[AOI__WATCH][watch], *s = &pairs->of[AOI__SLOT][slot];
    uint32_t at_w = w->n, at_s = s->n;
    append(w, slot, at_s);
    append(s, watch, at_w);
    pairs->n++;
}

void aoi__pairs_remove_at(struct aoi__pairs *pairs, enum aoi__side side, uint32_t id, uint32_t i)
{
    struct aoi__list *mine = pairs->of[side], *other = pairs->of[!side];
    struct aoi__list *list = &mine[id];
    DCHECK(i < list->n);
    uint32_t partner = list->id[i], twin = list->id[list->cap + i];
    take_out(list, i, other);
    take_out(&other[partner], twin, mine);
    pairs->n--;
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

/* Place of an id that is there. This search is the dearest part of a removal: 16 at a time it takes a third off every move in a crowd. */
static uint32_t find(const struct aoi__list *list, uint32_t id)
{
    uint32_t i = 0;
    while (i + 16 <= list->n && !among_16(list->id + i, id)) i += 16;
    while (i < list->n && list->id[i] != id) i++;
    CHECK(i < list->n);
    return i;
}

void aoi__pairs_remove(struct aoi__pairs *pairs, uint32_t watch, uint32_t slot)
{
    const struct aoi__list *w = &pairs->of[AOI__WATCH][watch], *s = &pairs->of[AOI__SLOT][slot];
    if (w->n <= s->n)
        aoi__pairs_remove_at(pairs, AOI__WATCH, watch, find(w, slot));
    else
        aoi__pairs_remove_at(pairs, AOI__SLOT, slot, find(s, watch));
}

size_t aoi__pairs_bytes(const struct aoi__pairs *pairs)
{
    size_t bytes = 0;
    for (int side = 0; side < 2; side++) {
        bytes += pairs->cap[side] * sizeof *pairs->of[side];
        for (uint32_t i = 0; i < pairs->cap[side]; i++) bytes += (size_t)pairs->of[side][i].cap * 2 * sizeof(uint32_t);
    }
    return bytes;
}

void aoi__pairs_validate(const struct aoi__pairs *pairs)
{
    for (int side = 0; side < 2; side++) {
        uint64_t n = 0;
        for (uint32_t i = 0; i < pairs->cap[side]; i++) {
            const struct aoi__list *list = &pairs->of[side][i];
            CHECK(list->n <= list->cap);
            for (uint32_t k = 0; k < list->n; k++) {
                uint32_t id = list->id[k], twin = list->id[list->cap + k];
                CHECK(id < pairs->cap[!side]);
                const struct aoi__list *partner = &pairs->of[!side][id];
                CHECK(twin < partner->n && partner->id[twin] == i && partner->id[partner->cap + twin] == k);
            }
            n += list->n;
        }
        CHECK(n == pairs->n);
    }
}
