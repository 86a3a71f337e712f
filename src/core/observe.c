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
    uint32_t strangers = space->cold[slot].told, watch = space->own[slot].watch;
    if (watch == AOI__NONE) return strangers > 0;
    const struct aoi__watch *w = &space->watches.at[watch];
    for (uint32_t i = 0; i < w->viewers.n && strangers > 0; i++) strangers -= holds(&space->players.at[w->viewers.at[i].player], slot);
    return strangers > 0;
}

static int by_owner(const void *a, const void *b)
{
    const struct aoi__report *p = a, *q = b;
    if (p->owner != q->owner) return p->owner < q->owner ? -1 : 1;
    return p->slot < q->slot ? -1 : p->slot > q->slot;
}

/* What changed of one owner's entities, reports[from .. to); false: not now. */
static bool tell_owner(struct aoi_space *space, uint32_t from, uint32_t to)
{
    const struct aoi_sink *sink = &space->world->sink;
    const struct aoi__report *r = space->reports.at;
    space->report_id.n = space->report_observed.n = 0;
    for (uint32_t i = from; i < to; i++) {
        *array_add(&space->report_id) = space->hot[r[i].slot].id;
        *array_add(&space->report_observed) = !(space->cold[r[i].slot].flags & AOI__OBSERVED);
    }
    bool took = sink->observed == NULL ||
                sink->observed(sink->ctx, r[from].owner, space->id, space->report_id.at, space->report_observed.at, to - from);
    for (uint32_t i = from; i < to && took; i++) space->cold[r[i].slot].flags ^= AOI__OBSERVED;
    return took;
}

bool aoi__observe_tell(struct aoi_space *space)
{
    space->reports.n = 0;
    for (uint32_t i = 0; i < space->observe_check.n; i++) {
        uint32_t slot = space->observe_check.at[i];
        struct aoi__cold *c = &space->cold[slot];
        if (!(c->flags & AOI__OBSERVE_CHECK)) continue; /* removed, or stood there twice */
        c->flags &= ~(uint32_t)AOI__OBSERVE_CHECK;
        if (!(c->flags & AOI__REPORT) || is_observed(space, slot) == ((c->flags & AOI__OBSERVED) != 0)) continue;
        *array_add(&space->reports) = (struct aoi__report){.owner = space->own[slot].owner, .slot = slot};
    }
    space->observe_check.n = 0;
    if (space->reports.n > 1) qsort(space->reports.at, space->reports.n, sizeof *space->reports.at, by_owner);
    for (uint32_t i = 0, end; i < space->reports.n; i = end) {
        for (end = i + 1; end < space->reports.n && space->reports.at[end].owner == space->reports.at[i].owner;) end++;
        if (tell_owner(space, i, end)) continue;
        for (uint32_t k = i; k < end; k++) aoi__observe_check(space, space->reports.at[k].slot);
    }
    return space->observe_check.n > 0;
}
