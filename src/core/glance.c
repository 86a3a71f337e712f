/* glance.c: most players served at a glance: what their masks of pages (cover.c), and a mask of the few that have appeal, tell.
 *
 * A glance takes no lists: it finds what is inside, and is done if that is what was told and nobody's state has changed: the rows of what moved are the delta. Where somebody came or
 * went, the rest is done as for everybody.
 */
#include "core/glance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cover.h"

#define AHEAD 6 /* players of which what is to be read is fetched beforehand; of their pages, too, it would cost more than it saves */

/* Those that have appeal: a mask, as if they stood in a page that lies under all watches. */
struct large {
    uint32_t slot[AOI__BOXES];
    struct aoi__boxes boxes; /* in which they are seen */
    uint32_t all;            /* layers that all have */
    uint64_t moved, state;   /* at this flush */
};

/* What all glances of a flush share. */
struct aoi__glance {
    bool usable;
    struct aoi__look look; /* which begins for each player where it must */
    struct large large;
};

void aoi__glance_free(struct aoi__glance *glance)
{
    free(glance);
}

bool aoi__is_plain_player(const struct aoi__player *p)
{
    return p->cover.watch != AOI__NONE && p->overrides.n == 0 && p->set.max_view == 0 && p->set.leave_margin == 0 &&
           (p->units.n == 0 || !p->units.at[0].include_self);
}

static void list_large(struct aoi_space *space, struct large *large)
{
    struct aoi__boxes *boxes = &large->boxes;
    large->all = UINT32_MAX;
    boxes->n = space->large_n;
    large->moved = large->state = 0;
    for (uint32_t i = 0; i < boxes->n; i++) {
        uint32_t slot = aoi__large_at(space, i);
        const struct aoi__hot *h = &space->hot[slot];
        const struct aoi__rare *r = aoi__rare(space, slot);
        large->slot[i] = slot;
        large->all &= h->layers;
        for (uint32_t a = 0; a < space->dims; a++) {
            boxes->lo[a][i] = h->pos[a] - r->appeal;
            boxes->hi[a][i] = h->pos[a] + r->appeal;
        }
        large->moved |= (uint64_t)(h->stamp == space->serial) << i;
        large->state |= (uint64_t)(r->payload_stamp == space->serial || r->layers_stamp == space->serial) << i;
    }
    for (uint32_t i = boxes->n; i % (2 * AOI__LANES) != 0; i++)
        for (uint32_t a = 0; a < 3; a++) boxes->lo[a][i] = boxes->hi[a][i] = NAN;
}

void aoi__glance_open(struct aoi_space *space, const struct aoi_flush_info *info)
{
    struct aoi__scratch *s = space->scratch;
    const struct aoi_settings *set = &space->set;
    if (s->glance == NULL) s->glance = mem_zalloc(sizeof *s->glance);
    struct aoi__glance *g = s->glance;
    aoi__deliver_begin(space, info);
    g->usable = false;
    if (space->ops->pages == NULL) return;
    s->dir = space->ops->pages(space);
    s->sieve = (struct aoi__sieve){.pool = s->dir->page.at, .dims = space->dims, .extra = set->extra};
    if (set->tiers.n > 0 || set->tiers.beyond > 1)
        array_reserve(&s->turn, (size_t)s->dir->page.cap * (set->tiers.n + 1)); /* not n: for that grows more often */
    g->usable = set->shape != AOI_SHAPE_SPHERE && set->min_stay_ms == 0 && set->max_view == 0 && set->leave_margin == 0 &&
                (space->large_n == 0 || (space->large_n <= AOI__BOXES && set->shape == AOI_SHAPE_BOX)) && space->messages.n == 0;
    if (!g->usable) return;
    g->look = (struct aoi__look){.space = space, .s = s, .info = info, .covered = true, .one_anchor = true};
    aoi__look_tiers(&g->look);
    list_large(space, &g->large);
    g->usable = g->look.tiers == NULL || space->large_n == 0;
}

/* What the player was told of them. False: also of something else, or it is owed something. */
static bool large_told(const struct aoi_space *space, const struct aoi__player *p, uint64_t *told)
{
    *told = 0;
    for (uint32_t i = 0; i < p->told.n; i++) {
        uint32_t slot = p->told.at[i], at = slot <= AOI__TOLD_SLOT ? aoi__large_place(space, slot) : AOI__NONE;
        if (at >= space->large_n) return false;
        *told |= (uint64_t)1 << at;
    }
    return true;
}

/* Which of them the sieve's box shows. */
static uint64_t large_inside(const struct aoi_space *space, const struct aoi__watch *w)
{
    const struct aoi__glance *g = space->scratch->glance;
    const struct aoi__sieve *sieve = &space->scratch->sieve;
    const struct large *l = &g->large;
    uint64_t in = space->kernels->touch(sieve, &l->boxes);
    for (uint64_t m = l->all & sieve->mask ? 0 : in; m != 0; m &= m - 1)
        if (!(space->hot[l->slot[__builtin_ctzll(m)]].layers & sieve->mask)) in &= ~(m & -m);
    if (in == 0 || w->slot == AOI__NONE || aoi__home_of(space->scratch->dir, w->slot).page != AOI__NOWHERE) return in;
    return in & ~((uint64_t)1 << aoi__large_place(space, w->slot)); /* the unit is one of them, and never sees itself */
}

/* Rows of the large that moved. False: some came or went, and it takes a look. *state: some that are told have another payload or other layers. */
static bool glance_large(struct aoi_space *space, struct aoi__player *p, const struct aoi__watch *w, bool *state)
{
    struct aoi__glance *g = space->scratch->glance;
    const struct large *l = &g->large;
    struct aoi_rows *rows = &space->scratch->updates;
    aoi__sieve_box(&space->scratch->sieve, w->base_lo, w->base_hi);
    bool known = p->large_known && p->served >= space->large_serial;
    if (!known && !large_told(space, p, &p->large_told)) return false;
    p->large_known = true;
    if (large_inside(space, w) != p->large_told) return false;
    *state = (p->large_told & l->state) != 0;
    if (p->set.presence_only) return true;
    aoi__rows_reserve(rows, space->large_n);
    bool flat = space->dims == 2 && !space->set.extra;
    for (uint64_t m = p->large_told & l->moved; m != 0; m &= m - 1) aoi__row_set(rows, rows->n++, &space->hot[l->slot[__builtin_ctzll(m)]], flat);
    return true;
}

/* All that the list holds is kept, but it is looked at for who has another state. */
static void keep_list(struct aoi__look *k)
{
    struct aoi__scratch *s = k->s;
    uint32_t n = k->p->told.n;
    aoi__marks_anew(k->space);
    array_reserve(&s->kept, n);
    s->kept.n = n;
    memcpy(s->kept.at, k->p->told.at, n * sizeof *s->kept.at);
    for (uint32_t i = 0; i < n; i++) k->space->mark[s->kept.at[i]] = AOI__SEEN(k->space);
}

/* Somebody came or went, or its state changed: the rest is done as for everybody, by the look that glances share. */
static bool differ(struct aoi__glance *g, struct aoi__player *p, size_t room, bool state)
{
    struct aoi__look *k = &g->look;
    aoi__lists_clear(k->s);
    k->p = p;
    k->max_enter = k->info->final ? 0 : aoi__own_or(p->set.max_enter_per_flush, k->space->set.max_enter_per_flush);
    k->inline_updates = !p->set.presence_only;
    k->list_kept = !state;
    k->enter_payloads = false;
    if (k->max_enter > 0) aoi__look_anchor(k);
    if (state) keep_list(k);
    aoi__cover_compare(k);
    aoi__cover_reconcile(k);
    aoi__choose_enters(k);
    aoi__emit(k, room);
    p->plain = p->cover.watch != AOI__NONE;
    return k->left;
}

FETCHING void fetch_player(const struct aoi_space *space, const struct aoi__player *p)
{
    const struct aoi__cover *c = &p->cover;
    if (c->watch == AOI__NONE) return;
    const struct aoi__watch *w = &space->watches.at[c->watch];
    __builtin_prefetch(w);
    __builtin_prefetch(&w->lo);
    __builtin_prefetch(c->told);
    __builtin_prefetch(c->page);
    __builtin_prefetch(c->page + c->n); /* it need not begin at a line */
    if (c->late != NULL) __builtin_prefetch(c->late);
    if (c->unit == AOI__NONE) return;
    const struct aoi__home *homes = space->scratch->dir->home.at; /* NULL where all have appeal */
    __builtin_prefetch(aoi__page_behind(homes, c->unit * sizeof *homes));
    if (c->late != NULL) __builtin_prefetch(&space->hot[c->unit]); /* where distances are measured from */
}

void aoi__glance_fetch(const struct aoi_space *space, uint32_t player)
{
    const struct aoi__player *p = &space->players.at[player];
    if (player + 2 * AHEAD >= space->players.n || !space->scratch->glance->usable) return;
    __builtin_prefetch(p + 2 * AHEAD);
    __builtin_prefetch(&p[2 * AHEAD].seq);
    fetch_player(space, p + AHEAD);
}

bool aoi__glance(struct aoi_space *space, struct aoi__player *p, size_t room, bool *left)
{
    struct aoi__scratch *s = space->scratch;
    struct aoi__glance *g = s->glance;
    struct aoi__cover *c = &p->cover;
    if (!g->usable | !p->plain | p->full | c->stale || (c->late != NULL && g->look.tiers == NULL)) return false; /* hardly ever: one branch */
    const struct aoi__watch *w = &space->watches.at[c->watch];
    if (!w->active || !w->coverable) return false;
    s->updates.n = 0;
    s->sieve.mask = p->set.mask;
    bool state = false;
    if (space->large_n == 0 ? p->listed : !glance_large(space, p, w, &state)) return false;
    struct aoi__look *k = &g->look;
    k->left = false;
    if (k->tiers != NULL && !p->set.presence_only) {
        k->p = p;
        aoi__watch_anchor(space, w, k->anchor);
        aoi__sift_tiers(k, w);
    } else if (c->border > 0 && w->placed != (space->flush & AOI__PLACED)) {
        aoi__sift_changed(space, c, w);
    } else {
        aoi__sift_box(space, c, w, NULL);
    }
    if (p->set.presence_only) s->sifted.wanted = 0;
    *left = k->left;
    if (s->sifted.differ_n > 0 || s->sifted.restated != 0 || state)
        *left = differ(g, p, room, state);
    else if (aoi__updates_n(s) > 0)
        aoi__deliver(space, p, &s->delta);
    p->served = space->serial;
    return true;
}
