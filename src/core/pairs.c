/* pairs.c: which watch holds which slot: a relation, kept from both sides. */
#include "core/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Partners are fetched into the cache so many places before their turn. */
#define AHEAD 4
/* What it takes to remove a pair by a search, in ns, about: a list that is not in the cache, and half of its length. */
#define EACH 16
#define PER_NS 24 /* ids, of the whole list */

void aoi__pairs_clear(struct aoi__pairs *pairs)
{
    for (int side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < pairs->cap[side]; i++) free(pairs->of[side][i].id);
        free(pairs->of[side]);
    }
    for (int side = 0; side < 2; side++) array_clear(&pairs->dropped[side]);
    array_clear(&pairs->bits);
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

static void shrink(struct aoi__list *list)
{
    list->id = array__shrink(list->id, &list->cap, list->n, sizeof *list->id);
}

static void take_out(struct aoi__list *list, uint32_t i)
{
    list->id[i] = list->id[--list->n];
    shrink(list);
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

/* ------------------------------------------------------------------------------------------------------------- all of one */

void aoi__pairs_drop(struct aoi__pairs *pairs, enum aoi__side side, uint32_t id)
{
    if (pairs->of[side][id].n > 0) *array_add(&pairs->dropped[side]) = id;
}

/* Out of all lists of the other side at once, in their order in memory: about 1 ns for each pair that there is. */
static void strip(struct aoi__pairs *pairs, enum aoi__side side)
{
    const uint32_t *dropped = pairs->dropped[side].at, n = pairs->dropped[side].n, words = pairs->cap[side] / 64 + 1;
    array_reserve(&pairs->bits, words);
    uint64_t *gone = pairs->bits.at;
    memset(gone, 0, words * sizeof *gone);
    for (uint32_t i = 0; i < n; i++) gone[dropped[i] / 64] |= (uint64_t)1 << dropped[i] % 64;
    for (uint32_t partner = 0; partner < pairs->cap[!side]; partner++) {
        struct aoi__list *list = &pairs->of[!side][partner];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < list->n; i++) { /* written in any case, counted if it stays */
            uint32_t id = list->id[i];
            list->id[kept] = id;
            kept += !(gone[id / 64] >> id % 64 & 1);
        }
        list->n = kept;
        shrink(list);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct aoi__list *list = &pairs->of[side][dropped[i]];
        pairs->n -= list->n;
        list->n = 0;
        shrink(list);
    }
}

static void remove_each(struct aoi__pairs *pairs, enum aoi__side side)
{
    for (uint32_t i = 0; i < pairs->dropped[side].n; i++) {
        uint32_t id = pairs->dropped[side].at[i];
        const struct aoi__list *list = &pairs->of[side][id];
        while (list->n > 0) aoi__pairs_remove_at(pairs, side, id, list->n - 1);
    }
}

void aoi__pairs_settle(struct aoi__pairs *pairs)
{
    for (int side = 0; side < 2; side++) {
        uint64_t n = 0;
        if (pairs->dropped[side].n == 0) continue;
        for (uint32_t i = 0; i < pairs->dropped[side].n; i++) n += pairs->of[side][pairs->dropped[side].at[i]].n;
        bool many = n * (EACH + pairs->n / pairs->cap[!side] / PER_NS) > pairs->n + pairs->cap[!side];
        (many ? strip : remove_each)(pairs, side);
        pairs->dropped[side].n = 0;
    }
}

size_t aoi__pairs_bytes(const struct aoi__pairs *pairs)
{
    size_t bytes = pairs->bits.cap * sizeof *pairs->bits.at;
    for (int side = 0; side < 2; side++) bytes += pairs->dropped[side].cap * sizeof *pairs->dropped[side].at;
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
