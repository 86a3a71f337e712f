/* observe.c: which entities are observed: in the view of a player that is not subscribed to them. State, like everything: differences are told at the flush. */
#include <stdlib.h>

#include "core/cover.h"
#include "core/space.h"

void aoi__observe_check(struct aoi_space *space, uint32_t slot)
{
    struct aoi__cold *c = &space->cold[slot];
    aoi__changed(space);
    if (c->flags & AOI__OBSERVE_CHECK) return;
    c->flags |= AOI__OBSERVE_CHECK;
    *array_add(&space->observe_check) = slot;
}

void aoi__observe_restate(struct aoi_space *space, uint32_t slot)
{
    space->cold[slot].flags |= AOI__RESTATE;
    aoi__observe_check(space, slot);
}

void aoi__observe_away(struct aoi_space *space, const struct aoi__player *player)
{
    space->away_stale = true;
    for (uint32_t i = 0; i < player->told.n; i++) {
        uint32_t slot = player->told.at[i] & AOI__TOLD_SLOT;
        if (space->cold[slot].flags & AOI__REPORT) aoi__observe_check(space, slot);
    }
}

/* Views of players that are away do not change, so that this is done once each time that one goes, or comes back. */
static void count_away(struct aoi_space *space)
{
    idmap_clear(&space->away_told);
    space->away_stale = false;
    for (uint32_t i = 0; i < space->players.n && space->away_n > 0; i++) {
        const struct aoi__player *p = &space->players.at[i];
        for (uint32_t k = 0; k < p->told.n && p->away; k++) {
            uint32_t slot = p->told.at[k] & AOI__TOLD_SLOT;
            if (!(space->cold[slot].flags & AOI__REPORT)) continue;
            uint32_t n = idmap_get(&space->away_told, (uint64_t)slot + 1);
            idmap_put(&space->away_told, (uint64_t)slot + 1, n == IDMAP_NONE ? 1 : n + 1);
        }
    }
}

static bool is_observed(const struct aoi_space *space, uint32_t slot)
{
    uint32_t away = space->away_n > 0 ? idmap_get(&space->away_told, (uint64_t)slot + 1) : IDMAP_NONE;
    uint32_t strangers = space->cold[slot].told, watch = space->own[slot].watch;
    if (away != IDMAP_NONE) strangers -= away;
    if (watch == AOI__NONE) return strangers > 0;
    const struct aoi__watch *w = &space->watches.at[watch];
    for (uint32_t i = 0; i < w->viewers.n && strangers > 0; i++) {
        const struct aoi__player *p = &space->players.at[w->viewers.at[i].player];
        strangers -= !p->away && aoi__view_holds(space, p, slot);
    }
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
        *array_add(&space->report_observed) = r[i].observed;
    }
    bool took = sink->observed == NULL ||
                sink->observed(sink->ctx, r[from].owner, space->id, space->report_id.at, space->report_observed.at, to - from);
    for (uint32_t i = from; i < to && took; i++) {
        struct aoi__cold *c = &space->cold[r[i].slot];
        c->flags = (c->flags & ~(uint32_t)(AOI__OBSERVED | AOI__RESTATE)) | (r[i].observed ? AOI__OBSERVED : 0);
    }
    return took;
}

bool aoi__observe_tell(struct aoi_space *space)
{
    space->reports.n = 0;
    if (space->away_stale && space->observe_check.n > 0) count_away(space);
    for (uint32_t i = 0; i < space->observe_check.n; i++) {
        uint32_t slot = space->observe_check.at[i];
        struct aoi__cold *c = &space->cold[slot];
        if (!(c->flags & AOI__OBSERVE_CHECK)) continue; /* removed, or stood there twice */
        c->flags &= ~(uint32_t)AOI__OBSERVE_CHECK;
        if (!(c->flags & AOI__REPORT) || aoi__away(space, space->own[slot].owner)) continue; /* away: it is restated when its owner is back */
        bool observed = is_observed(space, slot);
        if (observed == ((c->flags & AOI__OBSERVED) != 0) && !(c->flags & AOI__RESTATE)) continue;
        *array_add(&space->reports) = (struct aoi__report){.owner = space->own[slot].owner, .slot = slot, .observed = observed};
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
