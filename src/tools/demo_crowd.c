/* demo_crowd.c: brute force for views with max_view: what the player was told before, what may stay, and who is the best. */
#include <stdlib.h>
#include <string.h>

#include "tools/demo.h"

#define STICKS 0.64 /* squared distances of what was told already count for so much less */

static int by_id(const void *a, const void *b)
{
    uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
    return p < q ? -1 : p > q;
}

bool demo_is_bus(uint64_t vehicle)
{
    return vehicle % 16 == 0;
}

void demo_remember(struct demo_told *told, const struct libaoi_view *view)
{
    told->ids.n = 0;
    for (size_t i = 0; view && i < view->n; i++) *array_add(&told->ids) = view->items[i].id;
    if (told->ids.n) qsort(told->ids.at, told->ids.n, sizeof *told->ids.at, by_id);
}

bool demo_was_told(const struct demo_told *told, uint64_t id)
{
    return told->ids.n && bsearch(&id, told->ids.at, told->ids.n, sizeof id, by_id);
}

void demo_clear_told(struct demo *d)
{
    for (int i = 0; i < DEMO_PLAYERS; i++) array_clear(&d->players[i].told.ids);
    for (int i = 0; i < DEMO_CAMERAS; i++) array_clear(&d->cameras[i].told.ids);
    array_clear(&d->best.list);
}

/* Whether a comes before b. */
static bool better(const struct demo_candidate *a, const struct demo_candidate *b)
{
    if (a->own != b->own) return a->own;
    if (a->priority != b->priority) return a->priority > b->priority;
    if (a->distance2 != b->distance2) return a->distance2 < b->distance2;
    return a->id < b->id;
}

void demo_best_clear(struct demo_best *best, uint32_t most)
{
    best->list.n = 0;
    best->most = most;
}

void demo_best_add(struct demo_best *best, struct demo_candidate c, bool told)
{
    if (told) c.distance2 *= STICKS;
    uint32_t n = best->list.n, at = n;
    if (n == best->most && !better(&c, &best->list.at[n - 1])) return;
    while (at > 0 && better(&c, &best->list.at[at - 1])) at--;
    if (n < best->most) array_add(&best->list);
    memmove(best->list.at + at + 1, best->list.at + at, (best->list.n - 1 - at) * sizeof c);
    best->list.at[at] = c;
}
