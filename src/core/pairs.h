/* pairs.h: which watch holds which slot: a relation, kept from both sides.
 *
 * A pair stands in the list of its watch and in the list of its slot: 8 bytes, and the slack of the lists; a hash of pairs would take 40, and a
 * cache miss for each. To take one out, both lists are searched, 16 ids at a time. That costs less than to keep, with each entry, where its twin
 * stands: for then whatever takes its place has a twin to be told, somewhere else. Only with tens of thousands in a list it is dear, about 1 ns for
 * 10 of them.
 */
#ifndef AOI_CORE_PAIRS_H
#define AOI_CORE_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

enum aoi__side { AOI__WATCH, AOI__SLOT };

/* All partners of one watch or slot, in no order. */
struct aoi__list {
    uint32_t *id;
    uint32_t n, cap;
};

struct aoi__pairs {
    struct aoi__list *of[2]; /* by side: the lists by watch, the lists by slot */
    uint32_t cap[2];
    uint64_t n;
    ARRAY(uint32_t) dropped[2]; /* by side: those whose pairs all go; until they are settled they still stand there */
    ARRAY(uint64_t) bits;       /* scratch */
};

void aoi__pairs_clear(struct aoi__pairs *pairs);                                     /* frees; a zeroed struct is the empty relation */
void aoi__pairs_reserve(struct aoi__pairs *pairs, enum aoi__side side, uint32_t id); /* id may have partners from now on */

void aoi__pairs_add(struct aoi__pairs *pairs, uint32_t watch, uint32_t slot);    /* not there yet */
void aoi__pairs_remove(struct aoi__pairs *pairs, uint32_t watch, uint32_t slot); /* it must be there */
/* Takes out the pair at place i of id's list, where the last of that list stands then. */
void aoi__pairs_remove_at(struct aoi__pairs *pairs, enum aoi__side side, uint32_t id, uint32_t i);

/* All pairs of id go: at the next aoi__pairs_settle(), before which nothing but more of this may be asked of pairs. Where many go together, all lists of
 * their partners are read through once, instead of each being searched for each. */
void aoi__pairs_drop(struct aoi__pairs *pairs, enum aoi__side side, uint32_t id);
void aoi__pairs_settle(struct aoi__pairs *pairs);

/* It is about to be read or changed: fetches it, or the head of a long one, into the cache. Inlined by force: gcc would find that a function like
 * this has no effect, and drop the calls. */
FETCHING void aoi__list_expect(const struct aoi__list *list)
{
    for (uint32_t i = 0; i < list->n && i < 48; i += 16) __builtin_prefetch(list->id + i);
}

size_t aoi__pairs_bytes(const struct aoi__pairs *pairs);
void aoi__pairs_validate(const struct aoi__pairs *pairs); /* that the two sides agree */

#endif
