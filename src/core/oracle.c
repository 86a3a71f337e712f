/* oracle.c: after a flush, what a player was told against the definition, by brute force: the check that runs in production. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cover.h"
#include "core/space.h"

struct aoi_oracle {
    aoi__slots slots;                  /* scratch: of one view */
    ARRAY(uint64_t) told;              /* bitmap by slot, all 0 between two checks */
    ARRAY(struct aoi__sight) sights;   /* of the player that is being checked */
    uint64_t player_turn, window_turn; /* whose turn it is, and from which slot on entities are visited */
};

/* What binds the player that is checked. */
struct rules {
    const struct aoi_space *space;
    const struct aoi__player *p;
    const struct aoi_oracle *oracle;
    bool stays;  /* min_stay_ms may keep what no rule shows */
    bool misses; /* something that is seen may rightly not have been told: ranked out, or waiting */
};

struct aoi_oracle *aoi_oracle_new(void)
{
    return mem_zalloc(sizeof(struct aoi_oracle));
}

void aoi_oracle_free(struct aoi_oracle *oracle)
{
    if (oracle == NULL) return;
    array_clear(&oracle->told);
    array_clear(&oracle->slots);
    array_clear(&oracle->sights);
    free(oracle);
}

/* ------------------------------------------------------------------------------------------------------------- the definition */

static bool hidden_or_shown(const struct rules *r, uint64_t id, bool show)
{
    for (uint32_t i = 0; i < r->p->overrides.n; i++)
        if (r->p->overrides.at[i].id == id && r->p->overrides.at[i].show == show) return true;
    return false;
}

static bool is_own_unit(const struct rules *r, uint32_t slot)
{
    for (uint32_t i = 0; i < r->p->units.n; i++)
        if (r->p->units.at[i].include_self && r->space->watches.at[r->p->units.at[i].watch].slot == slot) return true;
    return false;
}

/* Whether the definition allows that the view holds the entity, and whether it demands it. */
static void judge(const struct rules *r, uint32_t slot, bool *may, bool *must)
{
    const struct aoi__hot *h = &r->space->hot[slot];
    float appeal = aoi__rare(r->space, slot)->appeal;
    bool chosen = is_own_unit(r, slot) || hidden_or_shown(r, h->id, true);
    *may = *must = chosen;
    if (chosen || !(h->layers & r->p->set.mask) || hidden_or_shown(r, h->id, false)) return;
    *may = r->stays;
    for (uint32_t i = 0; i < r->oracle->sights.n && !*must; i++) {
        const struct aoi__sight *sight = &r->oracle->sights.at[i];
        if (sight->watch->slot == slot) continue;
        *must = aoi__sight_base(sight, h->pos, appeal);
        *may |= *must || aoi__sight_keep(sight, h->pos, appeal);
    }
}

/* ------------------------------------------------------------------------------------------------------------- one player */

static void find_sights(struct aoi_oracle *oracle, const struct aoi_space *space, const struct aoi__player *p)
{
    oracle->sights.n = 0;
    for (uint32_t i = 0; i <= p->units.n; i++) {
        uint32_t watch = i < p->units.n ? p->units.at[i].watch : p->viewport;
        if (watch == AOI__NONE || !space->watches.at[watch].active) continue;
        aoi__sight_init(array_add(&oracle->sights), space, &space->watches.at[watch], aoi__player_margin(space, p));
    }
}

static bool is_told(const struct aoi_oracle *oracle, uint32_t slot)
{
    return oracle->told.at[slot / 64] >> slot % 64 & 1;
}

static void mark_told(struct aoi_oracle *oracle, const struct aoi_space *space, const struct aoi__player *p, bool told)
{
    uint32_t words = space->slot_n / 64 + 1;
    array_reserve(&oracle->told, words);
    if (words > oracle->told.n) memset(oracle->told.at + oracle->told.n, 0, (words - oracle->told.n) * sizeof *oracle->told.at);
    if (words > oracle->told.n) oracle->told.n = words;
    oracle->slots.n = 0;
    aoi__view_slots(space, p, &oracle->slots);
    for (uint32_t i = 0; i < oracle->slots.n; i++) {
        uint32_t slot = oracle->slots.at[i];
        uint64_t bit = (uint64_t)1 << slot % 64;
        if (told)
            oracle->told.at[slot / 64] |= bit;
        else
            oracle->told.at[slot / 64] &= ~bit;
    }
}

/* Entities of the slots from oracle->window_turn on, as many as the budget allows. Returns those that are told wrongly or wrongly not. */
static uint64_t check_entities(struct aoi_oracle *oracle, const struct rules *r, uint64_t budget, uint64_t *bad_id)
{
    const struct aoi_space *space = r->space;
    uint64_t cost = 1 + oracle->sights.n + r->p->overrides.n + r->p->units.n, bad = 0;
    uint64_t n = budget / cost < space->slot_n ? budget / cost + 1 : space->slot_n;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t slot = (uint32_t)((oracle->window_turn + i) % space->slot_n);
        bool told = is_told(oracle, slot), may = false, must = false;
        if (aoi__alive(space, slot))
            judge(r, slot, &may, &must);
        else if (!told)
            continue;
        if (told ? may : !must || r->misses) continue;
        bad++;
        *bad_id = space->hot[slot].id;
    }
    oracle->window_turn += n;
    return bad;
}

static void check_player(struct aoi_oracle *oracle, const struct aoi_space *space, uint32_t player, uint64_t budget, struct aoi_oracle_result *out)
{
    const struct aoi__player *p = &space->players.at[player];
    uint32_t max_view = aoi__own_or(p->set.max_view, space->set.max_view);
    bool waits = space->dirty.at[player / 64] >> player % 64 & 1;
    struct rules r = {.space = space, .p = p, .oracle = oracle};
    if (p->skipped || p->full || p->away) {
        out->left_out++; /* what it holds is of an earlier flush, and the world went on */
        return;
    }
    find_sights(oracle, space, p);
    mark_told(oracle, space, p, true);
    r.stays = space->set.min_stay_ms > 0 && oracle->sights.n > 0;
    r.misses = waits || (max_view > 0 && aoi__view_count(p) >= max_view);
    uint64_t id = 0, bad = check_entities(oracle, &r, budget, &id);
    if (max_view > 0 && aoi__view_count(p) > max_view) bad++;
    mark_told(oracle, space, p, false);
    out->checked++;
    if (bad == 0) return;
    out->mismatches += bad;
    out->player = p->id;
    out->entity = id;
}

void aoi_oracle_check(struct aoi_oracle *oracle, const struct aoi_space *space, uint32_t players, uint64_t budget, struct aoi_oracle_result *out)
{
    if (space->slot_n == 0) return;
    for (uint32_t looked = 0; players > 0 && looked < space->players.n && looked < 64; looked++) {
        uint32_t player = (uint32_t)(oracle->player_turn++ % space->players.n);
        if (space->players.at[player].id == 0) continue;
        check_player(oracle, space, player, budget, out);
        players--;
    }
}
