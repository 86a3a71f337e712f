/* sight.c: section 3 of the contract by brute force: what a player's view is at a flush, as a function of the world, the time and what it was told. */
#include <math.h>
#include <stdlib.h>

#include "model.h"

/* ------------------------------------------------------------------------------------------------------------- in force for a player */

float model_margin(const struct model_space *s, const struct model_player *p)
{
    return p->set.leave_margin != 0 ? p->set.leave_margin : s->set.leave_margin;
}

uint32_t model_max_view(const struct model_space *s, const struct model_player *p)
{
    return p->set.max_view != 0 ? p->set.max_view : s->set.max_view;
}

uint32_t model_max_enter(const struct model_space *s, const struct model_player *p)
{
    return p->set.max_enter_per_flush != 0 ? p->set.max_enter_per_flush : s->set.max_enter_per_flush;
}

/* ------------------------------------------------------------------------------------------------------------- range */

static double cell_of(const struct model_space *s, double v)
{
    return floor(v / s->set.cell_size);
}

bool model_unit_reaches(const struct model_space *s, const struct model_entity *e, const struct model_entity *t, float margin)
{
    if (e->id == t->id || e->radius == 0) return false;
    float reach = e->radius + margin;
    for (uint32_t a = 0; a < s->dims; a++) {
        float from = e->v.pos[a], to = t->v.pos[a];
        if (s->set.shape == AOI_SHAPE_BOX) {
            float low = from - reach, high = from + reach, near = to + t->appeal, far = to - t->appeal;
            if (!(low <= near && far <= high)) return false;
        } else if (s->set.shape == AOI_SHAPE_CELLS) {
            double lo = from < to ? from : to, hi = from < to ? to : from;
            if (cell_of(s, hi - (double)margin) - cell_of(s, lo + (double)margin) > s->set.cell_range) return false;
        }
    }
    double r = (double)reach + (double)t->appeal;
    return s->set.shape != AOI_SHAPE_SPHERE || model_distance2(s->dims, e->v.pos, t->v.pos) <= r * r;
}

bool model_viewport_shows(const struct model_space *s, const struct model_player *p, const struct model_entity *t, float margin)
{
    for (uint32_t a = 0; p->has_viewport && a < s->dims; a++) {
        float low = p->min[a] - margin, high = p->max[a] + margin, near = t->v.pos[a] + t->appeal, far = t->v.pos[a] - t->appeal;
        if (!(low <= near && far <= high)) return false;
    }
    return p->has_viewport;
}

static bool unit_looks_at(const struct model_space *s, const struct model_entity *e, const float *min, const float *max)
{
    float nearest[3] = {0};
    if (e->radius == 0) return false;
    for (uint32_t a = 0; a < s->dims; a++) {
        float p = e->v.pos[a], low = p - e->radius, high = p + e->radius;
        double range = s->set.cell_range;
        nearest[a] = p < min[a] ? min[a] : p > max[a] ? max[a] : p;
        if (s->set.shape == AOI_SHAPE_BOX && (high < min[a] || max[a] < low)) return false;
        if (s->set.shape == AOI_SHAPE_CELLS && (cell_of(s, min[a]) - cell_of(s, p) > range || cell_of(s, p) - cell_of(s, max[a]) > range))
            return false;
    }
    return s->set.shape != AOI_SHAPE_SPHERE || model_distance2(s->dims, nearest, e->v.pos) <= (double)e->radius * (double)e->radius;
}

bool model_looks_at(const struct model_space *s, const struct model_player *p, const float min[3], const float max[3])
{
    bool shows = p->has_viewport;
    for (uint32_t a = 0; shows && a < s->dims; a++) shows = p->min[a] <= max[a] && min[a] <= p->max[a];
    for (uint32_t i = 0; !shows && i < p->units.n; i++) shows = unit_looks_at(s, model_entity(s, p->units.at[i].entity), min, max);
    return shows;
}

/* ------------------------------------------------------------------------------------------------------------- distance and rank */

/* Squared distance to the nearest anchor, any unit or the viewport's centre; all are equally near to a player that has none. */
static double anchor_distance2(const struct model_space *s, const struct model_player *p, const struct model_entity *t)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < s->units.n; i++) {
        double d = model_distance2(s->dims, s->units.at[i]->v.pos, t->v.pos);
        if (d < least) least = d;
    }
    if (p->has_viewport) {
        double d = 0;
        for (uint32_t a = 0; a < s->dims; a++) {
            double away = ((double)p->min[a] + (double)p->max[a]) / 2 - (double)t->v.pos[a];
            d += away * away;
        }
        if (d < least) least = d;
    }
    return least;
}

static uint32_t period_at(const struct aoi_tiers *tiers, double d2)
{
    for (uint32_t i = 0; i < tiers->n; i++)
        if (d2 <= (double)tiers->at[i].distance * (double)tiers->at[i].distance) return tiers->at[i].period;
    return tiers->beyond == 0 ? 1 : tiers->beyond;
}

bool model_due(const struct model *m, const struct model_entity *e, uint64_t flush)
{
    if (m->final) return true;
    uint32_t period = e->sight.period;
    return (flush % period + e->id % period) % period == 0; /* the sum itself may not fit */
}

static int by_rank(const void *a, const void *b)
{
    const struct model_entity *x = *(struct model_entity *const *)a, *y = *(struct model_entity *const *)b;
    bool special_x = x->sight.self || x->sight.show, special_y = y->sight.self || y->sight.show;
    if (special_x != special_y) return special_x ? -1 : 1;
    if (x->priority != y->priority) return x->priority > y->priority ? -1 : 1;
    if (x->sight.key != y->sight.key) return x->sight.key < y->sight.key ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

/* ------------------------------------------------------------------------------------------------------------- the view */

/* Steps 1 to 3, for one entity; what it was told as stands in sight. blind: the player has neither a viewport nor a unit of radius other than 0. */
static void judge_one(struct model_space *s, const struct model_player *p, struct model_entity *t, uint64_t now_ms, bool blind)
{
    struct model_sight *k = &t->sight;
    float margin = model_margin(s, p);
    const struct model_override *over = model_override(p, t->id);
    const struct model_unit *unit = model_unit(p, t->id);
    k->self = unit != NULL && unit->include_self;
    k->show = over != NULL && over->show;
    k->hide = over != NULL && !over->show;
    k->masked = (t->v.layers & p->mask) == 0;
    k->base = model_viewport_shows(s, p, t, 0);
    for (uint32_t i = 0; !k->base && i < s->units.n; i++) k->base = model_unit_reaches(s, s->units.at[i], t, 0);
    k->margin = k->told != NULL && model_viewport_shows(s, p, t, margin);
    for (uint32_t i = 0; k->told != NULL && !k->margin && i < s->units.n; i++) k->margin = model_unit_reaches(s, s->units.at[i], t, margin);
    k->stay = k->told != NULL && !blind && k->told->since != 0 && now_ms - k->told->since < s->set.min_stay_ms;
    bool rules = !k->masked && !k->hide && (k->base || k->margin || k->stay);
    k->candidate = k->self || k->show || rules;
}

/* Steps 4 and 5. */
static void choose(const struct model *m, struct model_space *s, const struct model_player *p)
{
    uint32_t most = model_max_view(s, p), budget = model_max_enter(s, p), entered = 0;
    bool ranked = most != 0 || budget != 0;
    if (most == 0) most = UINT32_MAX;
    if (budget == 0 || p->full_due || m->final) budget = UINT32_MAX;
    if (ranked && s->candidates.n > 0) qsort(s->candidates.at, s->candidates.n, sizeof(struct model_entity *), by_rank);
    for (uint32_t i = 0; i < s->candidates.n; i++) {
        struct model_entity *t = s->candidates.at[i];
        t->sight.rank = ranked ? i + 1 : 0;
        t->seen = i < most;
        if (!t->seen || t->sight.told != NULL) continue;
        t->sight.enters = entered++ < budget;
    }
}

uint32_t model_look(const struct model *m, struct model_space *s, struct model_player *p, uint64_t now_ms)
{
    bool blind = !p->has_viewport;
    uint32_t told = 0, seen = 0;
    s->units.n = s->candidates.n = 0;
    for (uint32_t i = 0; i < p->units.n; i++) {
        struct model_entity *unit = model_entity(s, p->units.at[i].entity);
        *array_add(&s->units) = unit;
        blind &= unit->radius == 0;
    }
    for (uint32_t i = 0; i < s->entities.n; i++) {
        struct model_entity *t = &s->entities.at[i];
        while (told < p->told.n && p->told.at[told].id < t->id) told++;
        bool known = told < p->told.n && p->told.at[told].id == t->id && p->told.at[told].identity == t->identity;
        t->seen = false;
        t->sight = (struct model_sight){.told = known ? &p->told.at[told] : NULL};
        judge_one(s, p, t, now_ms, blind);
        double d2 = anchor_distance2(s, p, t);
        t->sight.d2 = d2;
        t->sight.key = d2 == INFINITY ? 0 : known ? d2 * 0.64 : d2;
        t->sight.period = period_at(&s->set.tiers, d2);
        if (t->sight.candidate) *array_add(&s->candidates) = t;
    }
    choose(m, s, p);
    for (uint32_t i = 0; i < s->entities.n; i++) seen += s->entities.at[i].seen;
    return seen;
}

bool model_observed(const struct model *m, const struct model_space *s, const struct model_entity *e)
{
    for (uint32_t i = 0; i < s->players.n; i++) {
        const struct model_told *t = m->away[s->players.at[i].owner] ? NULL : model_told(&s->players.at[i], e->id);
        if (t != NULL && t->identity == e->identity && model_unit(&s->players.at[i], e->id) == NULL) return true;
    }
    return false;
}
