/* observe.c: which entities are observed: in the view of a player that is not subscribed to them. State, like everything: differences are told at the flush. */
#include <stdlib.h>

#include "core/space.h"

void aoi__observe_check(struct aoi_space *space, uint32_t slot)
{
    struct aoi__cold *c = &space->cold[slot];
    aoi__changed(space);
    if (c->flags & AOI__OBSERVE_CHECK) return;
    c->flags |= AOI__OBSERVE_CHECK;
    *array_add(&space->observe_check) = slot;
}

static bool holds(const struct aoi__player *p, uint32_t slot)
{
    for (uint32_t i = 0; i < p->told.n; i++)
        if ((p->told.at[i] & AOI__TOLD_SLOT) == slot) return true;
    return false;
}

static bool is_observed(const struct aoi_space *space, uint32_t slot)
{
    const struct aoi__cold *c = &space->cold[slot];
    uint32_t strangers = c->told;
    if (c->watch == AOI__NONE) return strangers > 0;
    const struct aoi__watch *w = &space->watches.at[c->watch];
    for (uint32_t i = 0; i < w->viewers.n && strangers > 0; i++) strangers -= holds(&space->players.at[w->viewers.at[i].player], slot);
    return strangers > 0;
}

struct report {
    aoi_owner owner;
    uint32_t slot;
};

static int by_owner(const void *a, const void *b)
{
    const struct report *p = a, *q = b;
    if (p->owner != q->owner) return p->owner < q->owner ? -1 : 1;
    return p->slot < q->slot ? -1 : p->slot > q->slot;
}

/* What changed of one owner's entities; false: not now. */
static bool tell_owner(struct aoi_space *space, const struct report *reports, uint32_t n)
{
    const struct aoi_sink *sink = &space->world->sink;
    uint64_t *id = mem_alloc(n * sizeof *id);
    bool *now = mem_alloc(n * sizeof *now);
    for (uint32_t i = 0; i < n; i++) {
        id[i] = space->hot[reports[i].slot].id;
        now[i] = !(space->cold[reports[i].slot].flags & AOI__OBSERVED);
    }
    bool took = sink->observed == NULL || sink->observed(sink->ctx, reports[0].owner, space->id, id, now, n);
    for (uint32_t i = 0; i < n && took; i++) space->cold[reports[i].slot].flags ^= AOI__OBSERVED;
    free(id);
    free(now);
    return took;
}

bool aoi__observe_tell(struct aoi_space *space)
{
    ARRAY(struct report) reports = {0};
    if (space->observe_check.n == 0) return false;
    for (uint32_t i = 0; i < space->observe_check.n; i++) {
        uint32_t slot = space->observe_check.at[i];
        struct aoi__cold *c = &space->cold[slot];
        if (!(c->flags & AOI__OBSERVE_CHECK)) continue; /* removed, or stood there twice */
        c->flags &= ~(uint32_t)AOI__OBSERVE_CHECK;
        if (!(c->flags & AOI__REPORT) || is_observed(space, slot) == ((c->flags & AOI__OBSERVED) != 0)) continue;
        *array_add(&reports) = (struct report){.owner = c->owner, .slot = slot};
    }
    space->observe_check.n = 0;
    if (reports.n > 0) qsort(reports.at, reports.n, sizeof *reports.at, by_owner);
    for (uint32_t i = 0, end; i < reports.n; i = end) {
        for (end = i + 1; end < reports.n && reports.at[end].owner == reports.at[i].owner;) end++;
        if (tell_owner(space, &reports.at[i], end - i)) continue;
        for (uint32_t k = i; k < end; k++) aoi__observe_check(space, reports.at[k].slot);
    }
    array_clear(&reports);
    return space->observe_check.n > 0;
}
