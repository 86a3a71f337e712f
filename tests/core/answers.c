/* answers.c: the model's nearest, observers, density and why: what the core has to answer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* ------------------------------------------------------------------------------------------------------------- nearest */

struct near {
    double d2;
    uint64_t id;
};

static int by_distance(const void *a, const void *b)
{
    const struct near *x = a, *y = b;
    if (x->d2 != y->d2) return x->d2 < y->d2 ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

int model_query_nearest(struct model *m, struct model_space *s, const float center[3], float max_distance, uint32_t layers, size_t k)
{
    unsigned faults = model_box_faults(s->dims, center, center);
    if (!isfinite(max_distance) || max_distance < 0 || k == 0) faults |= CODE(AOI_EINVAL);
    int rc = model_judge(m, "nearest", k, aoi_query_nearest(model_core_space(m, s), center, max_distance, layers, k, &m->rows), faults, 0);
    if (rc != AOI_OK) return rc;
    struct near *near = mem_alloc((s->entities.n + 1) * sizeof *near);
    size_t n = 0;
    for (uint32_t i = 0; i < s->entities.n; i++) {
        const struct model_entity *e = &s->entities.at[i];
        double d2 = model_distance2(s->dims, center, e->v.pos);
        if (layers != 0 && !(e->v.layers & layers)) continue;
        if (max_distance > 0 && d2 > (double)max_distance * (double)max_distance) continue;
        near[n++] = (struct near){.d2 = d2, .id = e->id};
    }
    qsort(near, n, sizeof *near, by_distance);
    REQUIRE(m->rows.n == (n < k ? n : k), "nearest gives %zu, not %zu of %zu", m->rows.n, n, k);
    for (size_t i = 0; i < m->rows.n; i++) {
        REQUIRE(m->rows.id[i] == near[i].id, "nearest %zu is %llu, not %llu", i, (unsigned long long)m->rows.id[i], (unsigned long long)near[i].id);
        const struct model_entity *e = model_entity(s, near[i].id);
        struct model_value v = {.pos = {m->rows.x[i], m->rows.y[i], s->dims == 3 ? m->rows.z[i] : 0}, .extra = s->set.extra ? m->rows.extra[i] : 0};
        REQUIRE(model_same_place(s, &v, &e->v) && m->rows.layers[i] == e->v.layers, "nearest %llu has wrong values", (unsigned long long)e->id);
    }
    free(near);
    return (int)m->rows.n;
}

/* ------------------------------------------------------------------------------------------------------------- observers */

int model_query_observers(struct model *m, struct model_space *s, uint64_t id, size_t limit)
{
    const struct model_entity *e = model_entity(s, id);
    unsigned faults = id == 0 ? CODE(AOI_EINVAL) | CODE(AOI_ENOENTITY) : e == NULL ? CODE(AOI_ENOENTITY) : 0;
    uint64_t cursor = 0;
    uint32_t found = 0, right = 0;
    for (uint32_t i = 0; e != NULL && i < s->players.n; i++) {
        const struct model_told *t = model_told(&s->players.at[i], id);
        right += t != NULL && t->identity == e->identity;
    }
    do {
        int rc = model_judge(m, "observers", id, aoi_query_observers(model_core_space(m, s), id, cursor, limit, &m->rows), faults, 0);
        if (rc != AOI_OK) return rc;
        REQUIRE(m->rows.n <= limit, "a page over its limit");
        for (size_t i = 0; i < m->rows.n; i++) {
            uint64_t player = m->rows.id[i];
            const struct model_player *p = model_player(s, player);
            const struct model_told *t = p == NULL ? NULL : model_told(p, id);
            bool inside = player > cursor && (m->rows.next == 0 || player <= m->rows.next);
            REQUIRE(t != NULL && t->identity == e->identity && inside, "observers: %llu does not belong here", (unsigned long long)player);
            for (size_t k = 0; k < i; k++) REQUIRE(m->rows.id[k] != player, "observers: %llu twice", (unsigned long long)player);
        }
        found += (uint32_t)m->rows.n;
        cursor = m->rows.next;
    } while (cursor != 0);
    REQUIRE(found == right, "observers gives %u, not %u", found, right);
    return (int)found;
}

/* ------------------------------------------------------------------------------------------------------------- density */

/* The field of v among n between min and max: the last one of which the lower line is at most v. Exact where the sides are not astronomic. */
static uint32_t field(float v, float min, float max, uint32_t n)
{
    long double side = (long double)max - (long double)min, from = (long double)v - (long double)min;
    uint32_t i = 0;
    while (i + 1 < n && (i + 1) * side <= from * n) i++;
    return i;
}

int model_query_density(struct model *m, struct model_space *s, const float min[3], const float max[3], uint32_t layers, uint32_t columns,
                        uint32_t rows)
{
    unsigned faults = model_box_faults(s->dims, min, max);
    if (columns == 0 || rows == 0 || columns > 256 || rows > 256) faults |= CODE(AOI_EINVAL);
    static uint32_t counts[256 * 256], right[256 * 256];
    memset(counts, 0xAA, sizeof counts);
    int rc = model_judge(m, "density", columns, aoi_query_density(model_core_space(m, s), min, max, layers, columns, rows, counts), faults, 0);
    if (rc != AOI_OK) return rc;
    uint64_t inside = 0, sum = 0;
    memset(right, 0, columns * rows * sizeof *right);
    for (uint32_t i = 0; i < s->entities.n; i++) {
        const struct model_entity *e = &s->entities.at[i];
        if ((layers != 0 && !(e->v.layers & layers)) || !model_in_box(s->dims, e->v.pos, min, max)) continue;
        right[field(e->v.pos[1], min[1], max[1], rows) * columns + field(e->v.pos[0], min[0], max[0], columns)]++;
        inside++;
    }
    bool exact = true;
    for (uint32_t a = 0; a < 2; a++) exact &= max[a] > min[a] && fabsf(min[a]) < 4e7f && fabsf(max[a]) < 4e7f;
    for (uint32_t i = 0; i < columns * rows; i++) {
        sum += counts[i];
        REQUIRE(!exact || counts[i] == right[i], "density: field %u, %u of %u x %u holds %u, not %u", i % columns, i / columns, columns, rows,
                counts[i], right[i]);
    }
    REQUIRE(sum == inside, "density gives %llu, not %llu", (unsigned long long)sum, (unsigned long long)inside);
    return (int)inside;
}

/* ------------------------------------------------------------------------------------------------------------- why */

static enum aoi_rule rule_of(const struct model_entity *e, bool blind)
{
    const struct model_sight *k = &e->sight;
    if (k->candidate && !e->seen) return AOI_RULE_RANK;
    if (e->seen && k->told == NULL && !k->enters) return AOI_RULE_ENTER_BUDGET;
    if (k->self) return AOI_RULE_INCLUDE_SELF;
    if (k->show) return AOI_RULE_SHOW;
    if (k->hide) return AOI_RULE_HIDE;
    if (k->masked) return AOI_RULE_MASK;
    if (k->base) return AOI_RULE_RANGE;
    if (k->margin) return AOI_RULE_LEAVE_MARGIN;
    if (k->stay) return AOI_RULE_MIN_STAY;
    return blind ? AOI_RULE_BLIND : AOI_RULE_FAR;
}

/* Whom the distance is to: the viewport's centre, or a unit, which sees the entity or is the nearest. */
static void check_distance(const struct model_space *s, const struct model_player *p, const struct model_entity *e, const struct aoi_why *why)
{
    bool ranged = why->rule == AOI_RULE_RANGE || why->rule == AOI_RULE_LEAVE_MARGIN;
    float margin = why->rule == AOI_RULE_LEAVE_MARGIN ? model_margin(s, p) : 0;
    double d2 = 0;
    if (why->by_viewport) {
        REQUIRE(p->has_viewport, "why: by a viewport that it has not");
        REQUIRE(!ranged || model_viewport_shows(s, p, e, margin), "why: the viewport does not show %llu", (unsigned long long)e->id);
        for (uint32_t a = 0; a < s->dims; a++) {
            double away = ((double)p->min[a] + (double)p->max[a]) / 2 - (double)e->v.pos[a];
            d2 += away * away;
        }
    } else if (why->unit != 0) {
        const struct model_entity *u = model_unit(p, why->unit) == NULL ? NULL : model_entity(s, why->unit);
        REQUIRE(u != NULL && u->radius == why->radius, "why: unit %llu of radius %g", (unsigned long long)why->unit, (double)why->radius);
        d2 = model_distance2(s->dims, u->v.pos, e->v.pos);
        REQUIRE(!ranged || model_unit_reaches(s, u, e, margin), "why: unit %llu does not see %llu", (unsigned long long)u->id,
                (unsigned long long)e->id);
    } else {
        REQUIRE(p->units.n == 0, "why: no unit, though there are %u", p->units.n);
        return;
    }
    REQUIRE(fabs(why->distance - sqrt(d2)) <= 1e-9 * sqrt(d2), "why: distance %.17g, not %.17g", why->distance, sqrt(d2));
    const struct model_entity *unit = why->unit == 0 ? NULL : model_entity(s, why->unit);
    if (unit == NULL || model_unit_reaches(s, unit, e, model_margin(s, p))) return; /* one that would see it is worth more than the nearest */
    for (uint32_t i = 0; i < p->units.n; i++) {
        const struct model_entity *u = model_entity(s, p->units.at[i].entity);
        if (u->radius == 0 && unit->radius != 0) continue; /* a blind one counts only where all are */
        REQUIRE(d2 <= model_distance2(s->dims, u->v.pos, e->v.pos), "why: unit %llu is not the nearest", (unsigned long long)why->unit);
    }
}

int model_query_why(struct model *m, struct model_space *s, uint64_t player, uint64_t entity, struct aoi_why *why)
{
    struct model_player *p = model_player(s, player);
    const struct model_entity *e = model_entity(s, entity);
    unsigned faults = 0;
    if (player == 0 || entity == 0) faults |= CODE(AOI_EINVAL);
    if (p == NULL) faults |= CODE(AOI_ENOPLAYER);
    if (e == NULL) faults |= CODE(AOI_ENOENTITY);
    memset(why, 0xAA, sizeof *why);
    int rc = model_judge(m, "why", entity, aoi_query_why(model_core_space(m, s), player, entity, m->now_ms, why), faults, 0);
    if (rc != AOI_OK) return rc;
    model_look(m, s, p, m->now_ms);
    const struct model_sight *k = &e->sight;
    bool blind = !p->has_viewport;
    for (uint32_t i = 0; i < p->units.n; i++) blind &= model_entity(s, p->units.at[i].entity)->radius == 0;
    enum aoi_rule rule = rule_of(e, blind);
    REQUIRE(why->rule == rule, "why: rule %d, not %d", why->rule, rule);
    REQUIRE(why->seen == e->seen && why->told == (k->told != NULL), "why: told %d seen %d, not %d %d", why->told, why->seen, k->told != NULL,
            e->seen);
    REQUIRE(why->layers == e->v.layers && why->mask == p->mask && why->appeal == e->appeal, "why: layers, mask or appeal");
    REQUIRE(why->margin == model_margin(s, p) && why->max_view == model_max_view(s, p), "why: margin %g, max_view %u", (double)why->margin,
            why->max_view);
    uint32_t rank = why->max_view == 0 || !k->candidate ? 0 : k->rank;
    REQUIRE(why->rank == rank || !k->candidate, "why: rank %u, not %u", why->rank, rank);
    uint32_t period = p->set.presence_only ? 0 : k->period; /* 0: no updates at all */
    REQUIRE(why->period == period, "why: period %u, not %u", why->period, period);
    uint64_t passed = k->told != NULL && k->told->since != 0 ? m->now_ms - k->told->since : UINT64_MAX;
    uint32_t left = passed < s->set.min_stay_ms ? s->set.min_stay_ms - (uint32_t)passed : 0;
    REQUIRE(why->stay_left_ms == left || (why->stay_left_ms == 0 && rule != AOI_RULE_MIN_STAY), "why: %u ms to stay, not %u", why->stay_left_ms,
            left);
    check_distance(s, p, e, why);
    return rc;
}
