/* why.c: which rule decides whether a player sees an entity, with the numbers: for the person who wonders. */
#include <math.h>
#include <string.h>

#include "core/cover.h"
#include "core/look.h"

/* How far apart a unit and an entity are by the rule of the space's shape. */
static double away_by_shape(const struct aoi_space *space, const float a[3], const float b[3])
{
    const struct aoi_settings *set = &space->set;
    double most = 0;
    if (set->shape == AOI_SHAPE_SPHERE) return sqrt(aoi__distance2(a, b, space->dims));
    for (uint32_t axis = 0; axis < space->dims; axis++) {
        double p = a[axis], q = b[axis];
        most = fmax(most, set->shape == AOI_SHAPE_CELLS ? fabs(floor(p / set->cell_size) - floor(q / set->cell_size)) : fabs(p - q));
    }
    return most;
}

static void explain_eye(const struct aoi_space *space, const struct aoi__watch *w, const float pos[3], struct aoi_why *why)
{
    why->by_viewport = w->slot == AOI__NONE;
    if (why->by_viewport) {
        why->unit = 0;
        why->radius = 0;
        return;
    }
    why->unit = space->hot[w->slot].id;
    why->radius = space->own[w->slot].radius;
    why->away = away_by_shape(space, pos, space->hot[w->slot].pos);
}

static void explain_viewport(const struct aoi_space *space, const struct aoi__player *p, struct aoi_why *why)
{
    if (p->viewport == AOI__NONE) return;
    const struct aoi__watch *w = &space->watches.at[p->viewport];
    memcpy(why->box[0], w->base_lo, sizeof why->box[0]);
    memcpy(why->box[1], w->base_hi, sizeof why->box[1]);
    why->viewport_alone = true;
    for (uint32_t i = 0; i < p->units.n; i++) why->viewport_alone &= !space->watches.at[p->units.at[i].watch].active;
}

/* The unit that sees the entity by the base rule, or else keeps it; or else the nearest one. Sets the numbers that go with it. */
static void explain_reach(const struct aoi__look *k, uint32_t slot, struct aoi_why *why, bool *base, bool *keep)
{
    const struct aoi_space *space = k->space;
    const struct aoi__player *p = k->p;
    const float *pos = space->hot[slot].pos;
    int best = 0;               /* 4: base, 3: keep, 2: merely the nearest unit, 1: the viewport, where there is no unit */
    double nearest2 = INFINITY; /* squared: roots may be the same where these are not */
    *base = *keep = false;
    for (uint32_t i = 0; i <= p->units.n; i++) {
        uint32_t watch = i < p->units.n ? p->units.at[i].watch : p->viewport;
        if (watch == AOI__NONE) continue;
        const struct aoi__watch *w = &space->watches.at[watch];
        struct aoi__sight sight;
        aoi__sight_init(&sight, space, w, k->margin);
        bool other = w->active && w->slot != slot;
        bool in = other && aoi__sight_base(&sight, pos, why->appeal), stays = other && aoi__sight_keep(&sight, pos, why->appeal);
        int grade = in ? 4 : stays ? 3 : w->slot != AOI__NONE ? 2 : 1;
        double distance2 = w->slot == AOI__NONE ? aoi__viewport_distance2(space, w, pos) : aoi__distance2(pos, space->hot[w->slot].pos, space->dims);
        *base |= in;
        *keep |= stays;
        if (grade < best || (grade == best && distance2 >= nearest2)) continue;
        best = grade;
        nearest2 = distance2;
        why->distance = sqrt(distance2);
        explain_eye(space, w, pos, why);
    }
}

/* Place of the entity in the view, AOI__NONE: it was not told. */
static uint32_t place_in_view(const struct aoi__player *p, uint32_t slot)
{
    for (uint32_t i = 0; i < p->told.n; i++)
        if ((p->told.at[i] & AOI__TOLD_SLOT) == slot) return i;
    return AOI__NONE;
}

static const struct aoi__override *override_of(const struct aoi__player *p, uint64_t id)
{
    for (uint32_t i = 0; i < p->overrides.n; i++)
        if (p->overrides.at[i].id == id) return &p->overrides.at[i];
    return NULL;
}

static bool is_own_unit(const struct aoi__look *k, uint32_t slot, bool include_self)
{
    for (uint32_t i = 0; i < k->p->units.n; i++)
        if (k->p->units.at[i].include_self == include_self && k->space->watches.at[k->p->units.at[i].watch].slot == slot) return true;
    return false;
}

/* How many of those seen rank above the entity; enters_only: of those not told yet. */
static uint32_t count_better(const struct aoi__look *k, const struct aoi__ranked *me, bool enters_only)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->s->kept.n && !enters_only; i++) {
        struct aoi__ranked r = aoi__look_ranked(k, k->s->kept.at[i], true, i < k->chosen_kept);
        n += aoi__better(&r, me);
    }
    for (uint32_t i = 0; i < k->s->come.n; i++) {
        struct aoi__ranked r = aoi__look_ranked(k, k->s->come.at[i], false, i < k->chosen_come);
        n += aoi__better(&r, me);
    }
    return n;
}

/* The rule before the rank. */
static enum aoi_rule rule_of(const struct aoi__look *k, uint32_t slot, const struct aoi_why *why, bool base, bool keep)
{
    const struct aoi__override *o = override_of(k->p, k->space->hot[slot].id);
    if (is_own_unit(k, slot, true)) return AOI_RULE_INCLUDE_SELF;
    if (o != NULL) return o->show ? AOI_RULE_SHOW : AOI_RULE_HIDE;
    if (!(why->layers & why->mask)) return AOI_RULE_MASK;
    if (base) return AOI_RULE_RANGE;
    if (why->told && keep) return AOI_RULE_LEAVE_MARGIN;
    if (!aoi__look_watches(k)) return AOI_RULE_BLIND;
    return why->told && why->stay_left_ms > 0 ? AOI_RULE_MIN_STAY : AOI_RULE_FAR;
}

int aoi_query_why(struct aoi_space *space, uint64_t player, uint64_t entity, uint64_t now_ms, struct aoi_why *why)
{
    if (player == 0 || entity == 0) return AOI_EINVAL;
    uint32_t i = aoi__player_slot(space, player), slot = aoi__entity_slot(space, entity);
    if (i == AOI__NONE) return AOI_ENOPLAYER;
    if (slot == AOI__NONE) return AOI_ENOENTITY;
    struct aoi__player *p = &space->players.at[i];
    aoi__sync(space);
    aoi__cover_end(space, p);
    const struct aoi_flush_info info = {.now_ms = now_ms};
    struct aoi__look k;
    bool base, keep, staying = p->staying;
    aoi__look(&k, space, p, &info, 0);
    p->staying = staying; /* a question changes nothing */

    uint32_t place = place_in_view(p, slot);
    *why = (struct aoi_why){.told = place != AOI__NONE,
                            .appeal = aoi__rare(space, slot)->appeal,
                            .margin = k.margin,
                            .layers = space->hot[slot].layers,
                            .mask = p->set.mask,
                            .max_view = k.max_view,
                            .distance = INFINITY,
                            .shape = (enum aoi_shape)space->set.shape,
                            .cell_range = space->set.cell_range,
                            .dims = space->dims,
                            .period = p->set.presence_only ? 0 : aoi__look_period(&k, slot)};
    why->stay_left_ms = k.staying && place < p->since.n ? aoi__look_stay_left_ms(&k, p->since.at[place]) : 0;
    explain_reach(&k, slot, why, &base, &keep);
    explain_viewport(space, p, why);
    why->own_unit = is_own_unit(&k, slot, false);
    why->rule = rule_of(&k, slot, why, base, keep);
    why->seen = space->mark[slot] == AOI__SEEN(space);
    if (!isfinite(why->distance)) why->distance = 0;
    if (!why->seen) return AOI_OK;
    bool chosen = why->rule == AOI_RULE_INCLUDE_SELF || why->rule == AOI_RULE_SHOW;
    struct aoi__ranked me = aoi__look_ranked(&k, slot, why->told, chosen);
    if (k.max_view > 0) why->rank = count_better(&k, &me, false) + 1;
    if (why->rank > k.max_view) {
        why->rule = AOI_RULE_RANK;
        why->seen = false;
    } else if (!why->told && k.max_enter > 0 && !p->full && count_better(&k, &me, true) >= k.max_enter) {
        why->rule = AOI_RULE_ENTER_BUDGET;
    }
    return AOI_OK;
}
