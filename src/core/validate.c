/* validate.c: every invariant of a world, for the tests: slow, and fatal. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cover.h"
#include "core/space.h"

static void validate_entity(const struct aoi_space *space, uint32_t slot)
{
    const struct aoi__hot *h = &space->hot[slot];
    const struct aoi__cold *c = &space->cold[slot];
    const struct aoi__rare *r = aoi__rare(space, slot);
    CHECK(aoi__entity_slot(space, h->id) == slot);
    for (uint32_t a = 0; a < 3; a++) CHECK(isfinite(h->pos[a]) && aoi__clean(h->pos[a]) == h->pos[a] && fabsf(h->pos[a]) <= AOI_COORD_MAX);
    CHECK(space->dims == 3 || h->pos[2] == 0);
    CHECK(isfinite(space->own[slot].radius) && space->own[slot].radius >= 0 && (space->set.extra || h->extra == 0));
    CHECK(r->payload == NULL || r->payload->len > 0);
    CHECK(isfinite(r->appeal) && r->appeal >= 0 && (r->appeal > 0) == ((c->flags & AOI__LARGE) != 0));
    CHECK((idmap_get(&space->shown_map, h->id) != IDMAP_NONE) == ((c->flags & AOI__SHOWN) != 0));
    CHECK((idmap_get(&space->released, h->id) != IDMAP_NONE) == ((c->flags & AOI__RELEASED) != 0));
    if (c->flags & AOI__TOUCHED) CHECK(c->rare < space->touched.n && space->touched.at[c->rare].slot == slot);
    uint32_t watch = space->own[slot].watch;
    if (watch != AOI__NONE) CHECK(space->watches.at[watch].slot == slot && space->watches.at[watch].viewers.n > 0);
    if (aoi__moving(space, slot)) CHECK(space->changed && r->appeal == 0 && space->some_move[slot >> 12] >> (slot >> 6 & 63) & 1);
    CHECK(h->stamp <= space->serial + 1 && r->payload_stamp <= space->serial + 1 && r->layers_stamp <= space->serial + 1);
}

static void validate_entities(const struct aoi_space *space)
{
    uint32_t alive = 0, dead = 0, priorities = 0, rare = 0, moving = 0;
    for (uint32_t s = 0; s < space->slot_n; s++) {
        if (aoi__alive(space, s)) {
            validate_entity(space, s);
            priorities += aoi__rare(space, s)->priority != 0;
            rare += aoi__rare(space, s) != &aoi__plain;
            moving += aoi__moving(space, s);
            alive++;
        } else {
            CHECK(space->cold[s].rare == AOI__NONE && space->cold[s].flags == 0 && !aoi__moving(space, s));
            dead += space->cold[s].told > 0; /* a tombstone: some view still holds it */
        }
        CHECK(space->mark[s] <= space->mark_serial);
    }
    CHECK(priorities == space->priority_n && moving == space->moving_n && rare + space->free_rare.n == space->rare.n);
    CHECK(alive == space->entity_n && alive == space->ids.n);
    CHECK(alive + dead + space->free_slots.n == space->slot_n);
    for (uint32_t i = 0; i < space->free_slots.n; i++)
        CHECK(!aoi__alive(space, space->free_slots.at[i]) && space->cold[space->free_slots.at[i]].told == 0);
    for (uint32_t i = 0; i < space->touched.n; i++)
        CHECK(space->cold[space->touched.at[i].slot].flags & AOI__TOUCHED && space->cold[space->touched.at[i].slot].rare == i);
}

/* Returns the player's subscriptions and viewports. */
static uint64_t validate_player(const struct aoi_space *space, uint32_t player, uint32_t *told)
{
    aoi__slots view = {0};
    const struct aoi__player *p = &space->players.at[player];
    CHECK(aoi__player_slot(space, p->id) == player && p->set.mask != 0 && p->served <= space->serial && p->post == AOI__NONE);
    for (uint32_t i = 0; i <= p->units.n; i++) {
        uint32_t watch = i < p->units.n ? p->units.at[i].watch : p->viewport, at = i < p->units.n ? p->units.at[i].viewer : 0;
        if (watch == AOI__NONE) continue;
        const struct aoi__watch *w = &space->watches.at[watch];
        CHECK(at < w->viewers.n && w->viewers.at[at].player == player && w->viewers.at[at].unit == (i < p->units.n ? i : AOI__NONE));
        CHECK(w->margin >= aoi__player_margin(space, p) && (p->set.mask & ~w->mask) == 0);
        CHECK(i < p->units.n ? space->own[w->slot].watch == watch : w->slot == AOI__NONE && w->viewers.n == 1);
    }
    for (uint32_t i = 0; i < p->told.n; i++) {
        uint32_t slot = p->told.at[i] & AOI__TOLD_SLOT;
        CHECK(slot < space->slot_n);
        if (p->told.at[i] & ~AOI__TOLD_SLOT || !aoi__alive(space, slot)) CHECK(space->changed || p->away);
    }
    aoi__view_slots(space, p, &view);
    for (uint32_t i = 0; i < view.n; i++) told[view.at[i]]++;
    CHECK(view.n == aoi__view_count(p));
    array_clear(&view);
    aoi__cover_validate(space, p);
    for (uint32_t i = 0; i < p->overrides.n; i++) {
        uint32_t slot = aoi__entity_slot(space, p->overrides.at[i].id), shown = idmap_get(&space->shown_map, p->overrides.at[i].id);
        if (!p->overrides.at[i].show) continue;
        CHECK(shown < space->shown.n && space->shown.at[shown].id == p->overrides.at[i].id);
        if (slot != AOI__NONE) CHECK(space->cold[slot].flags & AOI__SHOWN);
    }
    if (p->full && !p->away) CHECK(space->changed && (space->dirty.at[player / 64] >> player % 64 & 1));
    return p->units.n + (p->viewport != AOI__NONE);
}

static void validate_watch(const struct aoi_space *space, const struct aoi__watch *watch)
{
    if (watch->viewers.n == 0) {
        CHECK(!watch->active);
        return;
    }
    CHECK(watch->active == (watch->slot == AOI__NONE || space->own[watch->slot].radius != 0));
    if (!watch->active || (watch->slot != AOI__NONE && aoi__moving(space, watch->slot))) return;
    struct aoi__watch anew = *watch;
    aoi__watch_area(space, &anew);
    CHECK(memcmp(anew.lo, watch->lo, sizeof anew.lo) == 0 && memcmp(anew.hi, watch->hi, sizeof anew.hi) == 0);
    CHECK(memcmp(anew.base_lo, watch->base_lo, sizeof anew.lo) == 0 && memcmp(anew.base_hi, watch->base_hi, sizeof anew.hi) == 0);
}

static void validate_players(const struct aoi_space *space)
{
    uint32_t players = 0, *told = mem_zalloc(((size_t)space->slot_n + 1) * sizeof *told);
    uint32_t away = 0;
    uint64_t watching = 0, watched = 0, pairs = 0;
    for (uint32_t p = 0; p < space->players.n; p++) {
        if (space->players.at[p].id == 0) {
            CHECK(!(space->dirty.at[p / 64] >> p % 64 & 1));
            continue;
        }
        players++;
        away += space->players.at[p].away;
        watching += validate_player(space, p, told);
        pairs += aoi__view_count(&space->players.at[p]);
    }
    CHECK(away == space->away_n && players == space->player_n && players == space->player_ids.n && pairs == space->stats.pairs);
    for (uint32_t s = 0; s < space->slot_n; s++) CHECK(told[s] == space->cold[s].told);
    free(told);
    for (uint32_t w = 0; w < space->watches.n; w++) {
        watched += space->watches.at[w].viewers.n;
        validate_watch(space, &space->watches.at[w]);
    }
    CHECK(watching == watched);
    if (!space->changed)
        for (uint32_t i = 0; i < space->dirty.n; i++) CHECK(space->dirty.at[i] == 0);
}

static void validate_owned(const struct aoi_space *space)
{
    uint32_t entities = 0, players = 0;
    for (uint32_t i = 0; i < space->owned.n; i++) {
        const struct aoi__owned *o = &space->owned.at[i];
        uint32_t entities_before = entities, players_before = players;
        CHECK(idmap_get(&space->owned_map, (uint64_t)o->owner + 1) == i);
        for (uint32_t s = o->entities, prev = AOI__NONE; s != AOI__NONE; prev = s, s = space->cold[s].owner_next, entities++)
            CHECK(aoi__alive(space, s) && space->own[s].owner == o->owner && space->cold[s].owner_prev == prev && entities <= space->entity_n);
        for (uint32_t p = o->players, prev = AOI__NONE; p != AOI__NONE; prev = p, p = space->players.at[p].owner_next, players++)
            CHECK(space->players.at[p].away == o->away && space->players.at[p].owner == o->owner && space->players.at[p].owner_prev == prev &&
                  players <= space->player_n);
        CHECK(o->entity_n == entities - entities_before && o->player_n == players - players_before);
    }
    CHECK(entities == space->entity_n && players == space->player_n);
}

void aoi_validate(const struct aoi_world *world)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < world->spaces.n; i++) {
        const struct aoi_space *space = world->spaces.at[i];
        CHECK(space->id > last);
        last = space->id;
        validate_entities(space);
        validate_players(space);
        validate_owned(space);
        CHECK(aoi__large_validate(space) == space->large_n);
        space->ops->validate(space);
    }
}
