/* choose.c: who is told, where not everybody may be: distances, tiers, rank, max_view, the enter budget. */
#include <math.h>
#include <string.h>

#include "core/cover.h"
#include "core/look.h"

/* ------------------------------------------------------------------------------------------------------------- distances and tiers */

/* The period of the tier for a squared distance. */
static uint32_t period_at(const struct aoi__look *k, double distance2)
{
    uint32_t i = 0;
    while (i < k->tiers->n && distance2 > k->space->tiering.most2[i]) i++;
    return i < k->tiers->n ? k->tiers->at[i].period : k->tiers->beyond;
}

static double anchor_distance2(const struct aoi__look *k, const float pos[3])
{
    double dx = (double)pos[0] - k->anchor[0], dy = (double)pos[1] - k->anchor[1], d = dx * dx + dy * dy;
    if (k->space->dims == 2) return d;
    double dz = (double)pos[2] - k->anchor[2];
    return d + dz * dz;
}

#define NEARER 0.64 /* to the squared distance of what is told: as if it were 20 % nearer */

double aoi__viewport_distance2(const struct aoi_space *space, const struct aoi__watch *viewport, const float pos[3])
{
    double d = 0, center[3];
    aoi__watch_anchor(space, viewport, center);
    for (uint32_t a = 0; a < space->dims; a++) {
        double away = (double)pos[a] - center[a];
        d += away * away;
    }
    return d;
}

double aoi__look_distance2(const struct aoi__look *k, uint32_t slot)
{
    const struct aoi_space *space = k->space;
    const float *pos = space->hot[slot].pos;
    double best = INFINITY;
    if (k->one_anchor) return anchor_distance2(k, pos);
    for (uint32_t i = 0; i < k->p->units.n; i++) {
        double d = aoi__distance2(pos, space->hot[space->watches.at[k->p->units.at[i].watch].slot].pos, space->dims);
        if (d < best) best = d;
    }
    if (k->p->viewport == AOI__NONE) return best;
    double d = aoi__viewport_distance2(space, &space->watches.at[k->p->viewport], pos);
    return d < best ? d : best;
}

uint32_t aoi__look_period(const struct aoi__look *k, uint32_t slot)
{
    return k->tiers == NULL ? 1 : period_at(k, aoi__look_distance2(k, slot));
}

bool aoi__look_due(const struct aoi__look *k, uint32_t slot)
{
    return k->tiers == NULL || aoi__look_turn(k, k->space->hot[slot].id, aoi__look_period(k, slot));
}

struct aoi__ranked aoi__look_ranked(const struct aoi__look *k, uint32_t entry, bool told, bool chosen)
{
    uint32_t slot = entry & AOI__TOLD_SLOT;
    return (struct aoi__ranked){.distance2 = aoi__look_distance2(k, slot) * (told ? NEARER : 1),
                                .id = k->space->hot[slot].id,
                                .priority = k->space->priority_n > 0 ? aoi__rare(k->space, slot)->priority : 0,
                                .entry = entry,
                                .told = told,
                                .chosen = chosen};
}

static void rank_all(struct aoi__look *k, const aoi__slots *slots, uint32_t chosen, bool told)
{
    for (uint32_t i = 0; i < slots->n; i++) *array_add(&k->s->ranked) = aoi__look_ranked(k, slots->at[i], told, i < chosen);
}

/* ------------------------------------------------------------------------------------------------------------- max_view */

/* kept and come become the first n of ranked; of come the chosen ones first. */
static void take_ranked(struct aoi__look *k, uint32_t n)
{
    struct aoi__scratch *s = k->s;
    s->kept.n = s->come.n = 0;
    for (int chosen = 1; chosen >= 0; chosen--) {
        if (chosen && k->chosen_kept + k->chosen_come == 0) continue;
        for (uint32_t i = 0; i < n; i++) {
            const struct aoi__ranked *r = &s->ranked.at[i];
            if (r->chosen != chosen) continue;
            aoi__slots *list = r->told ? &s->kept : &s->come;
            list->at[list->n++] = r->entry;
        }
        if (chosen) k->chosen_kept = s->kept.n, k->chosen_come = s->come.n;
    }
    for (uint32_t i = n; i < s->ranked.n; i++)
        k->space->mark[s->ranked.at[i].entry & AOI__TOLD_SLOT] = s->ranked.at[i].told ? AOI__TOLD(k->space) : 0;
}

/* By the whole rank. Returns the worst distance among the n best, as far as it is one. */
static double cut_by_rank(struct aoi__look *k, uint32_t n)
{
    struct aoi__scratch *s = k->s;
    double worst = 0;
    s->ranked.n = 0;
    rank_all(k, &s->kept, k->chosen_kept, true);
    rank_all(k, &s->come, k->chosen_come, false);
    array_reserve(&s->kept, s->ranked.n);
    array_reserve(&s->come, s->ranked.n);
    aoi__rank_select(s->ranked.at, s->ranked.n, n);
    for (uint32_t i = 0; i < n; i++)
        if (!s->ranked.at[i].chosen && s->ranked.at[i].distance2 > worst) worst = s->ranked.at[i].distance2;
    return worst;
}

#define BUCKETS 256

/* Distances of kept, then come, as the rank takes them. Returns the largest. */
static double measure(struct aoi__look *k)
{
    struct aoi__scratch *s = k->s;
    double most = 0;
    s->distance.n = s->kept.n + s->come.n;
    array_reserve(&s->distance, s->distance.n);
    double *d = s->distance.at;
    for (uint32_t i = 0; i < s->kept.n; i++) d[i] = anchor_distance2(k, k->space->hot[s->kept.at[i] & AOI__TOLD_SLOT].pos) * NEARER;
    for (uint32_t i = 0; i < s->come.n; i++) d[s->kept.n + i] = anchor_distance2(k, k->space->hot[s->come.at[i]].pos);
    for (uint32_t i = 0; i < s->distance.n; i++) most = d[i] > most ? d[i] : most;
    return most;
}

/* Leaves, in a list, what lies in buckets before the border, and what is chosen; what lies in the border's bucket is ranked, and the rest is dropped. */
static void cut_list(struct aoi__look *k, aoi__slots *list, const double *d, double scale, uint32_t border, uint32_t chosen, bool told)
{
    uint32_t n = chosen;
    for (uint32_t i = chosen; i < list->n; i++) {
        uint32_t entry = list->at[i], bucket = (uint32_t)(d[i] * scale);
        list->at[n] = entry;
        n += bucket < border;
        if (bucket < border) continue;
        if (bucket == border)
            *array_add(&k->s->ranked) = aoi__look_ranked(k, entry, told, false);
        else
            k->space->mark[entry & AOI__TOLD_SLOT] = told ? AOI__TOLD(k->space) : 0;
    }
    list->n = n;
}

/* Where there are no priorities, the rank is the distance: a histogram finds about where the n-th is, and only what is about there must be ranked. */
static double cut_by_distance(struct aoi__look *k, uint32_t n)
{
    struct aoi__scratch *s = k->s;
    uint32_t count[BUCKETS] = {0}, border = 0, before = k->chosen_kept + k->chosen_come, kept = s->kept.n;
    double most = measure(k), scale = most > 0 ? (BUCKETS - 0.5) / most : 0;
    const double *d = s->distance.at;
    for (uint32_t i = k->chosen_kept; i < kept; i++) count[(uint32_t)(d[i] * scale)]++;
    for (uint32_t i = k->chosen_come; i < s->come.n; i++) count[(uint32_t)(d[kept + i] * scale)]++;
    while (before + count[border] < n) before += count[border++];

    s->ranked.n = 0;
    cut_list(k, &s->kept, d, scale, border, k->chosen_kept, true);
    cut_list(k, &s->come, d + kept, scale, border, k->chosen_come, false);
    aoi__rank_select(s->ranked.at, s->ranked.n, n - before);
    double worst = 0;
    for (uint32_t i = 0; i < s->ranked.n; i++) {
        const struct aoi__ranked *r = &s->ranked.at[i];
        if (i >= n - before) {
            k->space->mark[r->entry & AOI__TOLD_SLOT] = r->told ? AOI__TOLD(k->space) : 0;
            continue;
        }
        if (r->distance2 > worst) worst = r->distance2;
        *array_add(r->told ? &s->kept : &s->come) = r->entry;
    }
    return worst;
}

/* Of all that is seen, the max_view best. False: what was not gathered, being further away than k->reach, may be among them; then nothing may be made of it. */
static bool limit_view(struct aoi__look *k)
{
    struct aoi__scratch *s = k->s;
    uint32_t n = k->max_view, seen = s->kept.n + s->come.n;
    if (n == 0) return true;
    if (seen <= n) {
        k->p->reach = 0;
        return k->reach == 0;
    }
    bool by_distance = k->one_anchor && k->space->priority_n == 0 && k->chosen_kept + k->chosen_come < n;
    double worst = by_distance ? cut_by_distance(k, n) : cut_by_rank(k, n);
    if (k->reach > 0 && worst > NEARER * (double)k->reach * (double)k->reach) return false;
    /* next time look a little further than this time's worst could be told to lie: but not for few */
    k->p->reach = seen > n + n / 4 ? (float)sqrt(worst / NEARER) * 1.05f : 0;
    if (!by_distance) take_ranked(k, n);
    return true;
}

/* Looks at a player of whom max_view takes only the nearest: mostly not further than it reached lately. (All that is further away ranks below, be it told or not.) */
static void look_limited(struct aoi__look *k, struct aoi_space *space, struct aoi__player *p, const struct aoi_flush_info *info)
{
    bool limited = aoi__own_or(p->set.max_view, space->set.max_view) > 0;
    bool nearest = limited && aoi__only_watch(p) != AOI__NONE && space->priority_n == 0 && space->set.min_stay_ms == 0;
    if (nearest && p->reach > 0) {
        aoi__look(k, space, p, info, p->reach);
        if (limit_view(k)) return;
    }
    aoi__look(k, space, p, info, 0);
    limit_view(k);
}

/* ------------------------------------------------------------------------------------------------------------- the enter budget */

static void leave_waiting(struct aoi__look *k, uint32_t slot)
{
    k->space->mark[slot] = 0;
    if (k->covered) aoi__cover_drop(k, slot);
}

void aoi__choose_enters(struct aoi__look *k)
{
    struct aoi__scratch *s = k->s;
    if (k->max_enter == 0 || s->come.n <= k->max_enter || k->p->full) return;
    s->ranked.n = 0;
    rank_all(k, &s->come, k->chosen_come, false);
    aoi__rank_select(s->ranked.at, s->ranked.n, k->max_enter);
    for (uint32_t i = 0; i < s->ranked.n; i++) {
        if (i < k->max_enter)
            s->come.at[i] = s->ranked.at[i].entry;
        else
            leave_waiting(k, s->ranked.at[i].entry);
    }
    s->come.n = k->max_enter;
    k->left = true;
}

void aoi__choose(struct aoi__look *k, struct aoi_space *space, struct aoi__player *p, const struct aoi_flush_info *info)
{
    look_limited(k, space, p, info);
    aoi__choose_enters(k);
}
