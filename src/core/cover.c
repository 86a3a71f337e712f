/* cover.c: views as masks of pages: what most players are served by.
 *
 * An entity keeps its place in a page as long as it is in the page's cell, but for the few that move down when the page has emptied; and a place is not given to another
 * before the flush has ended after which nobody means the first one any more (blocks.c). So what a player was told under its watch is a mask for each page, and a flush is a
 * few operations on masks: inside comes from comparing columns of coordinates; inside & ~told enters, told & ~inside leaves, inside & told & moved is updated, straight from
 * the page's columns.
 *
 * An entity that has gone from one cell to another is a leave here and an enter there: both are taken back, and it is kept. Players that were skipped, or whose rules look
 * beyond their pages, have lists instead (view.c); either becomes the other at any flush.
 */
#include "core/cover.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernel.h"

/* ------------------------------------------------------------------------------------------------------------- which players */

uint32_t aoi__only_watch(const struct aoi__player *p)
{
    if (p->units.n + (p->viewport != AOI__NONE) != 1) return AOI__NONE;
    return p->units.n == 1 ? p->units.at[0].watch : p->viewport;
}

bool aoi__cover_fits(const struct aoi_space *space, const struct aoi__player *p)
{
    uint32_t watch = aoi__only_watch(p);
    return watch != AOI__NONE && space->watches.at[watch].active && space->watches.at[watch].coverable && p->overrides.n == 0 && !p->full &&
           space->set.min_stay_ms == 0 && aoi__own_or(p->set.max_view, space->set.max_view) == 0;
}

bool aoi__cover_same(const struct aoi_space *space, const struct aoi__player *p)
{
    const struct aoi__cover *c = &p->cover; /* numbers of watches are used again */
    return c->watch == AOI__NONE || (c->watch == aoi__only_watch(p) && c->unit == space->watches.at[c->watch].slot);
}

bool aoi__cover_takes(const struct aoi_space *space, uint32_t watch, uint32_t slot)
{
    return !(space->cold[slot].flags & AOI__LARGE) && slot != space->watches.at[watch].slot;
}

static uint64_t bit_of(struct aoi__home home)
{
    return (uint64_t)1 << home.place;
}

/* ------------------------------------------------------------------------------------------------------------- which pages */

void aoi__cover_free(struct aoi_space *space, struct aoi__cover *c)
{
    pool_free(&space->pool, c->told, c->bytes);
    *c = (struct aoi__cover){.watch = AOI__NONE};
}

#define SPARE 1 /* pages: with so much more room than it needs, and a quarter, a cover becomes smaller */

/* Room for n pages, not much more, and with late masks if there are any or they are asked for. All share an allocation, so that they are near each other. */
static void reserve(struct aoi_space *space, struct aoi__cover *c, uint32_t n, bool late)
{
    late |= c->late != NULL;
    if (n <= c->cap && c->cap <= n + n / 4 + SPARE && late == (c->late != NULL)) return;
    uint32_t masks = late ? 2 : 1, keep = c->n < n ? c->n : n;
    size_t each = masks * sizeof *c->told + sizeof *c->page, bytes = pool_size(n * each), cap = bytes / each;
    uint64_t *told = pool_alloc(&space->pool, bytes);
    uint32_t *page = (uint32_t *)(told + masks * cap);
    if (late) memset(told + cap, 0, cap * sizeof *told);
    if (keep > 0) {
        memcpy(told, c->told, keep * sizeof *told);
        memcpy(page, c->page, keep * sizeof *page);
        if (c->late != NULL) memcpy(told + cap, c->late, keep * sizeof *told);
    }
    pool_free(&space->pool, c->told, c->bytes);
    c->told = told;
    c->page = page;
    c->late = late ? told + cap : NULL;
    c->cap = (uint32_t)cap;
    c->bytes = (uint32_t)bytes;
}

/* Masks for places of which the tier was not due. */
static uint64_t *late_masks(struct aoi_space *space, struct aoi__cover *c)
{
    if (c->late == NULL) reserve(space, c, c->n, true);
    return c->late;
}

/* Makes the pages found by their numbers: page.found is then the place in the list of what found_at() is asked for with the same list. */
static void mark_pages(struct aoi__blocks *dir, const uint32_t *page, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) dir->page.at[page[i]].found = i;
}

static uint32_t found_at(const struct aoi__blocks *dir, const uint32_t *page, uint32_t n, uint32_t p)
{
    uint32_t i = dir->page.at[p].found;
    return i < n && page[i] == p ? i : AOI__NONE;
}

static void list_places(const struct aoi_space *space, const struct aoi__page *page, uint64_t places, aoi__slots *out)
{
    const uint32_t *slots = aoi__page_slots(page, space->dims);
    for (; places != 0; places &= places - 1) *array_add(out) = slots[__builtin_ctzll(places)];
}

/* Told places that are no longer seen; flagged if they are late. */
static void list_gone(const struct aoi__look *k, const struct aoi__page *page, uint64_t places, uint64_t late)
{
    const uint32_t *slots = aoi__page_slots(page, k->space->dims);
    for (; places != 0; places &= places - 1) {
        uint32_t place = (uint32_t)__builtin_ctzll(places);
        *array_add(&k->s->went) = slots[place] | (late >> place & 1 ? AOI__LATE : 0);
    }
}

/* Lists the pages anew. Told ones of pages that are no longer under the watch have gone. */
static void restock(struct aoi__look *k)
{
    struct aoi_space *space = k->space;
    struct aoi__cover *c = &k->p->cover;
    struct aoi__blocks *dir = k->s->dir;
    struct aoi__scratch *s = k->s;
    aoi__slots *pages = &s->found;
    pages->n = 0;
    space->ops->pages_of(space, c->watch, pages, &c->border);
    mark_pages(dir, pages->at, pages->n);
    aoi__reserve_masks(s, pages->n);
    memset(s->other, 0, ((size_t)pages->n + 1) * sizeof(uint64_t));
    memset(s->part, 0, ((size_t)pages->n + 1) * sizeof(uint64_t));
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t at = c->told[i] == 0 ? AOI__NONE : found_at(dir, pages->at, pages->n, c->page[i]);
        if (at != AOI__NONE) {
            s->other[at] = c->told[i];
            s->part[at] = c->late != NULL ? c->late[i] : 0;
            continue;
        }
        const struct aoi__page *page = &dir->page.at[c->page[i]];
        list_gone(k, page, c->told[i], c->late != NULL ? c->late[i] : 0);
        c->told_n -= (uint32_t)__builtin_popcountll(c->told[i]);
    }
    reserve(space, c, pages->n, false);
    c->n = pages->n;
    if (c->n > 0) {
        memcpy(c->page, pages->at, c->n * sizeof *c->page);
        memcpy(c->told, s->other, c->n * sizeof *c->told);
        if (c->late != NULL) memcpy(c->late, s->part, c->n * sizeof *c->late);
    }
    c->stale = false;
}

/* ------------------------------------------------------------------------------------------------------------- from a list and back */

void aoi__cover_begin(struct aoi_space *space, struct aoi__player *p)
{
    struct aoi__blocks *dir = space->ops->pages(space);
    struct aoi__cover *c = &p->cover;
    aoi__slots *pages = &space->scratch->found;
    uint32_t watch = aoi__only_watch(p), border, left = 0;
    pages->n = 0;
    space->ops->pages_of(space, watch, pages, &border);
    mark_pages(dir, pages->at, pages->n);
    for (uint32_t i = 0; i < p->told.n; i++) {
        uint32_t slot = p->told.at[i] & AOI__TOLD_SLOT;
        if (!aoi__cover_takes(space, watch, slot)) continue;
        struct aoi__home home = aoi__home_of(dir, slot);
        if (p->told.at[i] & AOI__OWED || home.page == AOI__NOWHERE || found_at(dir, pages->at, pages->n, home.page) == AOI__NONE) return;
    }
    bool first = c->told == NULL; /* a view that was a cover before keeps both its buffers: it may be one by turns */
    reserve(space, c, pages->n + 1, false);
    c->watch = watch;
    c->unit = space->watches.at[watch].slot;
    c->border = border;
    c->n = pages->n;
    if (c->n > 0) memcpy(c->page, pages->at, c->n * sizeof *c->page);
    memset(c->told, 0, c->n * sizeof *c->told);
    if (c->late != NULL) memset(c->late, 0, c->n * sizeof *c->late);
    for (uint32_t i = 0; i < p->told.n; i++) {
        uint32_t entry = p->told.at[i], slot = entry & AOI__TOLD_SLOT;
        if (!aoi__cover_takes(space, watch, slot)) {
            p->told.at[left++] = entry;
            continue;
        }
        struct aoi__home home = aoi__home_of(dir, slot);
        uint32_t at = found_at(dir, c->page, c->n, home.page);
        c->told[at] |= bit_of(home);
        if (entry & AOI__LATE) late_masks(space, c)[at] |= bit_of(home);
        c->told_n++;
    }
    p->told.n = left;
    if (left == 0 && first) array_clear(&p->told);
    c->stale = true; /* what is inner may have been told in part only */
    dir->covers++;
}

void aoi__cover_end(struct aoi_space *space, struct aoi__player *p)
{
    struct aoi__cover *c = &p->cover;
    if (c->watch == AOI__NONE) return;
    struct aoi__blocks *dir = space->ops->pages(space);
    array_reserve(&p->told, p->told.n + c->told_n);
    for (uint32_t i = 0; i < c->n; i++) {
        const uint32_t *slots = aoi__page_slots(&dir->page.at[c->page[i]], dir->dims);
        for (uint64_t m = c->told[i]; m != 0; m &= m - 1) {
            uint32_t place = (uint32_t)__builtin_ctzll(m);
            *array_add(&p->told) = slots[place] | (c->late != NULL && c->late[i] >> place & 1 ? AOI__LATE : 0);
        }
    }
    c->watch = AOI__NONE;
    c->n = c->told_n = 0;
    p->plain = false;
    dir->covers--;
}

/* ------------------------------------------------------------------------------------------------------------- the look */

uint64_t aoi__with_layers(const struct aoi_space *space, const struct aoi__page *page, uint32_t mask, uint64_t places)
{
    uint64_t with = 0;
    if (page->all & mask) return places;
    if (!(page->any & mask)) return 0;
    const uint32_t *slots = aoi__page_slots(page, space->dims);
    for (uint64_t m = places; m != 0; m &= m - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(m);
        if (space->hot[slots[k]].layers & mask) with |= (uint64_t)1 << k;
    }
    return with;
}

/* Where the unit stands, which never sees itself. */
static struct aoi__home own_home(const struct aoi__blocks *dir, const struct aoi__watch *w)
{
    return w->slot == AOI__NONE ? (struct aoi__home){.page = AOI__NOWHERE} : aoi__home_of(dir, w->slot);
}

static void list_restated(struct aoi__look *k)
{
    const struct aoi__cover *c = &k->p->cover;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct aoi__page *page = &k->s->sieve.pool[c->page[i]];
        list_places(k->space, page, page->state & k->s->sifted.inside[i] & c->told[i], &k->s->restated);
    }
}

#define FEW_PAGES 64 /* there is room for all places of so many; of more, for what differs */

/* Room in each list of a cover for all that differ, be they more than ever before. */
static __attribute__((noinline)) void reserve_flux(struct aoi__scratch *s, const struct aoi__sifted *sifted)
{
    aoi__slots *const list[] = {&s->gone, &s->went, &s->come, &s->came};
    size_t most = (size_t)(sifted->differ_n < FEW_PAGES ? sifted->differ_n : FEW_PAGES) * AOI__PAGE;
    for (uint32_t i = FEW_PAGES; i < sifted->differ_n; i++) most += (uint32_t)__builtin_popcountll(sifted->differ[i].places);
    s->flux_cap = UINT32_MAX;
    for (uint32_t i = 0; i < 4; i++) {
        array_reserve(list[i], list[i]->n + most);
        if (list[i]->cap < s->flux_cap) s->flux_cap = list[i]->cap;
    }
}

/* Of all pages that differ: who comes and goes; and what is told now. All places in one loop, whose end is all that may be guessed wrong. tiered: who comes from another place, where it
 * may have been told, and whose turn it is not, has a late bit, and is flagged as late. */
static inline __attribute__((always_inline)) void compare(struct aoi__look *k, const struct aoi__sifted *sifted, bool tiered)
{
    struct aoi__scratch *s = k->s;
    struct aoi__cover *c = &k->p->cover;
    const uint64_t *inside = sifted->inside;
    const struct aoi__differ *d = sifted->differ, *end = d + sifted->differ_n;
    size_t most = (size_t)sifted->differ_n * AOI__PAGE, before = s->come.n + s->went.n; /* the other lists are empty */
    if (before + most > s->flux_cap) reserve_flux(s, sifted);
    uint32_t *to[4] = {s->gone.at, s->went.at + s->went.n, s->come.at + s->come.n, s->came.at};
    const struct aoi__page *pool = s->sieve.pool;
    const struct aoi__hot *hot = k->space->hot;
    const struct aoi__cold *cold = k->space->cold;
    const uint32_t dims = k->space->dims, *number = c->page;
    uint64_t *late = c->late;
    const uint64_t *due = sifted->due;
    for (uint64_t m = d->places; d < end;) {
        const struct aoi__page *page = &pool[number[d->page]];
        uint32_t place = (uint32_t)__builtin_ctzll(m), slot = aoi__page_slots(page, dims)[place];
        uint64_t comes = -(inside[d->page] >> place & 1), elsewhere = (((page->arrived ^ ~page->used) & comes) ^ ~page->used) >> place & 1;
        if (tiered) {
            late[d->page] |= (elsewhere & comes & ~(due[d->page] >> place)) << place;
            slot |= AOI__LATE & -(uint32_t)(late[d->page] >> place & 1);
        }
        *to[(comes & 2) + elsewhere]++ = slot;
        __builtin_prefetch(&hot[slot & AOI__TOLD_SLOT]);
        __builtin_prefetch(&cold[slot & AOI__TOLD_SLOT]);
        m &= m - 1;
        d += m == 0;
        m |= d->places & -(uint64_t)(m == 0);
    }
    c->told_n -= (uint32_t)(to[0] - s->gone.at) + (uint32_t)(to[1] - s->went.at) - s->went.n;
    c->told_n += (uint32_t)(to[2] - s->come.at) + (uint32_t)(to[3] - s->came.at) - s->come.n;
    s->gone.n = (uint32_t)(to[0] - s->gone.at);
    s->went.n = (uint32_t)(to[1] - s->went.at);
    s->come.n = (uint32_t)(to[2] - s->come.at);
    s->came.n = (uint32_t)(to[3] - s->came.at);
    memcpy(c->told, inside, c->n * sizeof *c->told); /* those that are not told after all are taken out again: aoi__cover_drop() */
    for (uint32_t i = 0; tiered && i < c->n; i++) late[i] &= inside[i];
}

void aoi__cover_compare(struct aoi__look *k)
{
    const struct aoi__sifted *sifted = &k->s->sifted;
    k->listed = k->s->come.n;
    if (sifted->restated != 0) list_restated(k);
    if (sifted->differ_n == 0) return;
    const struct aoi__cover *c = &k->p->cover;
    if (c->late == NULL) {
        compare(k, sifted, false);
        return;
    }
    if (k->tiers == NULL || k->p->set.presence_only) memset(sifted->due, -1, c->n * sizeof *sifted->due); /* nobody waits */
    compare(k, sifted, true);
}

/* Those of the places that a player who was told of them keeps within its margin, where that is not the box. */
static uint64_t kept_by_cells(const struct aoi__look *k, const struct aoi__watch *w, const struct aoi__page *page, uint64_t places)
{
    struct aoi__sight sight;
    uint64_t kept = 0;
    aoi__sight_init(&sight, k->space, w, k->margin);
    const uint32_t *slots = aoi__page_slots(page, k->space->dims);
    for (uint64_t m = places; m != 0; m &= m - 1) {
        uint32_t place = (uint32_t)__builtin_ctzll(m);
        if (aoi__sight_keep(&sight, k->space->hot[slots[place]].pos, 0)) kept |= (uint64_t)1 << place;
    }
    return kept;
}

static void find_inside(struct aoi__look *k, const struct aoi__watch *w, const float lo[3], const float hi[3], double radius, uint64_t *inside)
{
    struct aoi__sieve *sieve = &k->s->sieve;
    aoi__sieve_box(sieve, lo, hi);
    k->space->kernels->box(sieve, inside);
    if (w->slot == AOI__NONE || k->space->set.shape != AOI_SHAPE_SPHERE) return;
    sieve->radius = radius;
    k->space->kernels->sphere(sieve, inside);
}

/* With leave_margin: what is told and within the margin is inside, too; what came from another page within it may have been told there. */
static void find_kept(struct aoi__look *k, const struct aoi__watch *w, uint64_t *inside, uint64_t *outer)
{
    struct aoi_space *space = k->space;
    const struct aoi__cover *c = &k->p->cover;
    bool unit = w->slot != AOI__NONE;
    struct aoi__sight sight;
    aoi__sight_init(&sight, space, w, k->margin);
    if (unit && space->set.shape == AOI_SHAPE_CELLS)
        find_inside(k, w, w->lo, w->hi, 0, outer);
    else
        find_inside(k, w, sight.keep_lo, sight.keep_hi, sight.keep_radius, outer);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct aoi__page *page = &k->s->dir->page.at[c->page[i]];
        uint64_t maybe = outer[i] & ~inside[i] & (c->told[i] | page->arrived);
        if (maybe != 0 && unit && space->set.shape == AOI_SHAPE_CELLS) maybe = kept_by_cells(k, w, page, maybe);
        if (maybe != 0) maybe = aoi__with_layers(space, page, k->p->set.mask, maybe);
        inside[i] |= maybe & c->told[i];
        list_places(space, page, maybe & ~c->told[i], &k->s->perhaps);
    }
}

/* What page.turned is after this flush has found its turns: never 0, as it is of a new page. */
static uint32_t turned_at(const struct aoi__look *k)
{
    return (uint32_t)(k->info->flush % UINT32_MAX) + 1;
}

/* Whose turn it is of a page: found once a flush for all who look at it. */
static void find_turns(const struct aoi__look *k, uint32_t number)
{
    struct aoi__blocks *dir = k->s->dir;
    struct aoi__page *page = &dir->page.at[number];
    const struct aoi_tiers *tiers = k->tiers;
    uint64_t *turn = k->s->turn.at + (size_t)number * (tiers->n + 1);
    page->turned = turned_at(k);
    for (uint32_t t = 0; t <= tiers->n; t++) {
        uint32_t period = t < tiers->n ? tiers->at[t].period : tiers->beyond;
        turn[t] = 0;
        for (uint32_t i = 0; i < page->n; i++) turn[t] |= (uint64_t)aoi__look_turn(k, aoi__page_id(page, dir->dims, i), period) << i;
    }
}

/* All that is late is told now: there are no tiers any more, or for this once. */
static void catch_up(struct aoi__cover *c, struct aoi__sifted *sifted)
{
    uint64_t gone = 0;
    sifted->wanted = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        sifted->want[i] |= c->late[i] & sifted->inside[i];
        sifted->wanted += (uint32_t)__builtin_popcountll(sifted->want[i]);
        c->late[i] &= ~sifted->inside[i]; /* of what has gone: it may stand elsewhere, and is late there */
        gone |= c->late[i];
    }
    if (gone == 0) c->late = NULL; /* its part of the allocation stays as it is */
}

/* Less those that have no layer of the mask. */
static void thin_out(const struct aoi_space *space, const struct aoi__cover *c, uint64_t *inside)
{
    const struct aoi__sieve *sieve = &space->scratch->sieve;
    for (uint32_t i = 0; i < c->n; i++) inside[i] = aoi__with_layers(space, &sieve->pool[c->page[i]], sieve->mask, inside[i]);
}

/* Where the unit stands, which never sees itself, and is taken to be told while pages are sifted, so that it is no difference: its page is the at-th of the cover. */
struct own {
    uint32_t at; /* AOI__NONE: nowhere */
    uint64_t bit;
};

static inline struct own own_begin(const struct aoi__scratch *s, struct aoi__cover *c, const struct aoi__watch *w)
{
    const struct aoi__home home = own_home(s->dir, w);
    if (home.page == AOI__NOWHERE) return (struct own){.at = AOI__NONE};
    uint32_t at = c->own;
    if (at >= c->n || c->page[at] != home.page)
        for (at = 0; at < c->n && c->page[at] != home.page;) at++;
    if (at == c->n) return (struct own){.at = AOI__NONE};
    c->own = (uint8_t)at;
    c->told[at] |= bit_of(home);
    return (struct own){.at = at, .bit = bit_of(home)};
}

static inline void own_end(const struct own *own, struct aoi__cover *c, struct aoi__sifted *sifted)
{
    if (own->at == AOI__NONE) return;
    c->told[own->at] &= ~own->bit;
    sifted->wanted -= (sifted->want[own->at] & own->bit) != 0;
    sifted->want[own->at] &= ~own->bit;
    if (sifted->inside[own->at] & own->bit) {
        sifted->inside[own->at] &= ~own->bit;
        return;
    }
    for (uint32_t i = 0; i < sifted->differ_n; i++) { /* it has no layer of the mask */
        struct aoi__differ *d = &sifted->differ[i];
        if (d->page != own->at) continue;
        d->places &= ~own->bit;
        if (d->places == 0) *d = sifted->differ[--sifted->differ_n];
        return;
    }
}

/* Not all have a common layer of the mask: those that have none are not inside, wherever that is so. */
static void look_closer(struct aoi_space *space, const struct aoi__cover *c)
{
    struct aoi__scratch *s = space->scratch;
    bool mixed = false;
    for (uint32_t i = 0; i < c->n; i++) mixed |= !(s->sieve.pool[c->page[i]].all & s->sieve.mask);
    if (!mixed) return;
    thin_out(space, c, s->sifted.inside);
    s->sieve.n = 0;
    space->kernels->sift(&s->sieve, c->n, c->told, NULL, &s->sifted);
}

/* Of the first pages, up to known, what is inside is found by the box; of the others it is known. */
static inline void sift(struct aoi_space *space, struct aoi__cover *c, const struct aoi__watch *w, const struct aoi__rings *r, uint32_t known)
{
    struct aoi__scratch *s = space->scratch;
    const struct own own = own_begin(s, c, w);
    s->sieve.page = c->page;
    s->sieve.n = known;
    space->kernels->sift(&s->sieve, c->n, c->told, r, &s->sifted);
    if (!(s->sifted.all & s->sieve.mask)) look_closer(space, c);
    own_end(&own, c, &s->sifted);
    s->sieve.n = c->n;
}

/* Everything but the plainest case. */
static void sift_margin(struct aoi__look *k, const struct aoi__watch *w, const struct aoi__rings *r)
{
    struct aoi__scratch *s = k->s;
    struct aoi__cover *c = &k->p->cover;
    double radius = w->slot != AOI__NONE ? (double)k->space->own[w->slot].radius : 0;
    s->sieve.page = c->page;
    s->sieve.n = c->n;
    s->sieve.center = k->anchor;
    find_inside(k, w, w->base_lo, w->base_hi, radius, s->sifted.inside);
    if (k->margin > 0) find_kept(k, w, s->sifted.inside, s->other);
    sift(k->space, c, w, r, 0);
}

void aoi__sift_box(struct aoi_space *space, struct aoi__cover *c, const struct aoi__watch *w, const struct aoi__rings *r)
{
    struct aoi__scratch *s = space->scratch;
    aoi__reserve_masks(s, c->n);
    aoi__sieve_box(&s->sieve, w->base_lo, w->base_hi);
    for (uint32_t i = c->border; i < c->n; i++) s->sifted.inside[i] = s->sieve.pool[c->page[i]].used;
    sift(space, c, w, r, c->border);
}

/* Rings to sift by, and afterwards what waits. */
static const struct aoi__rings *rings_begin(struct aoi__look *k, struct aoi__rings *rings)
{
    const struct aoi__cover *c = &k->p->cover;
    late_masks(k->space, &k->p->cover);
    k->s->sieve.center = k->anchor;
    rings->n = k->tiers->n;
    rings->most2 = k->space->tiering.most2;
    rings->turn = k->s->turn.at;
    uint32_t turned = turned_at(k);
    for (uint32_t i = 0; i < c->n; i++)
        if (k->s->dir->page.at[c->page[i]].turned != turned) find_turns(k, c->page[i]);
    return rings;
}

static void rings_end(struct aoi__look *k)
{
    struct aoi__cover *c = &k->p->cover;
    k->left |= k->space->kernels->wait(&k->s->sieve, c->told, c->late, &k->s->sifted);
}

void aoi__sift_tiers(struct aoi__look *k, const struct aoi__watch *w)
{
    struct aoi__rings rings;
    aoi__sift_box(k->space, &k->p->cover, w, rings_begin(k, &rings));
    rings_end(k);
}

#define FEW_PLACES 4 /* are looked at one by one */

/* Places of a page that are not, or may not be, as they were at the last flush. */
static uint64_t changed_places(const struct aoi__page *page)
{
    return page->moved | page->arrived | page->state | (page->buried ? page->busy & ~page->used : 0);
}

/* Which of the places lie in the box. */
static uint64_t places_inside(const struct aoi_space *space, const struct aoi__page *page, uint64_t places)
{
    const struct aoi__sieve *sieve = &space->scratch->sieve;
    uint64_t in = 0;
    for (uint64_t m = places & page->used; m != 0; m &= m - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(m);
        float pos[3] = {0};
        for (uint32_t a = 0; a < space->dims; a++) pos[a] = page->x[a * page->cap + k];
        in |= (uint64_t)aoi__inside(pos, sieve->lo, sieve->hi, space->dims) << k;
    }
    return in;
}

void aoi__sift_changed(struct aoi_space *space, struct aoi__cover *c, const struct aoi__watch *w)
{
    struct aoi__scratch *s = space->scratch;
    struct aoi__sieve *sieve = &s->sieve;
    aoi__reserve_masks(s, c->n);
    array_reserve(&s->found, c->n);
    uint64_t *inside = s->sifted.inside;
    uint32_t n = 0; /* pages of which many places have changed */
    aoi__sieve_box(sieve, w->base_lo, w->base_hi);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct aoi__page *page = &sieve->pool[c->page[i]];
        uint64_t changed = changed_places(page);
        inside[i] = c->told[i];
        if (changed == 0) continue;
        if (i >= c->border)
            inside[i] = page->used;
        else if (__builtin_popcountll(changed) <= FEW_PLACES)
            inside[i] = places_inside(space, page, changed) | (c->told[i] & ~changed);
        else
            s->found.at[n++] = c->page[i];
    }
    sieve->page = s->found.at;
    sieve->n = n;
    if (n > 0) space->kernels->box(sieve, s->part);
    for (uint32_t i = 0, k = 0; k < n; i++)
        if (c->page[i] == s->found.at[k]) inside[i] = s->part[k++];
    sift(space, c, w, NULL, 0);
}

void aoi__cover_look(struct aoi__look *k)
{
    struct aoi_space *space = k->space;
    struct aoi__scratch *s = k->s;
    struct aoi__cover *c = &k->p->cover;
    const struct aoi__watch *w = &space->watches.at[c->watch];
    if (c->stale) restock(k);
    s->sieve.mask = k->p->set.mask;
    aoi__reserve_masks(s, c->n);
    struct aoi__rings rings;
    bool rows = !k->p->set.presence_only, tiered = rows && k->tiers != NULL;
    const struct aoi__rings *r = tiered ? rings_begin(k, &rings) : NULL;
    if ((w->slot == AOI__NONE || space->set.shape != AOI_SHAPE_SPHERE) && k->margin == 0)
        aoi__sift_box(space, c, w, r);
    else
        sift_margin(k, w, r);
    if (tiered)
        rings_end(k);
    else if (!rows)
        s->sifted.wanted = 0;
    else if (c->late != NULL)
        catch_up(c, &s->sifted);
    aoi__cover_compare(k);
}

/* Which of the cover's masks, and which bit of it, are about an entity that stands in one of its pages. */
struct spot {
    uint32_t page;
    uint64_t bit;
};

#define FEW_COVERED 16 /* pages are searched; for more it is noted, by page, which one of the cover it is */

static struct spot spot_of(const struct aoi__look *k, uint32_t slot)
{
    struct aoi__home home = aoi__home_of(k->s->dir, slot);
    const struct aoi__cover *c = &k->p->cover;
    struct spot spot = {.bit = bit_of(home)};
    if (c->n > FEW_COVERED) {
        aoi__slots *at = &k->s->covered_at; /* perhaps of another cover, or never written: it is looked whether it is so */
        while (at->n < k->s->dir->page.n) *array_add(at) = 0;
        spot.page = at->at[home.page];
        if (spot.page < c->n && c->page[spot.page] == home.page) return spot;
        for (uint32_t i = 0; i < c->n; i++) at->at[c->page[i]] = i;
        spot.page = at->at[home.page];
        CHECK(c->page[spot.page] == home.page);
        return spot;
    }
    while (c->page[spot.page] != home.page) spot.page++;
    return spot;
}

void aoi__cover_drop(struct aoi__look *k, uint32_t slot)
{
    struct aoi__cover *c = &k->p->cover;
    c->stale = true; /* it is to be found again where nothing has changed */
    if (!aoi__cover_takes(k->space, c->watch, slot)) return;
    struct spot spot = spot_of(k, slot);
    c->told[spot.page] &= ~spot.bit;
    c->told_n--;
}

/* What compare() has flagged as late is not. */
static uint32_t not_late(struct aoi__look *k, uint32_t entry)
{
    uint32_t slot = entry & AOI__TOLD_SLOT;
    if (slot == entry) return slot;
    struct spot spot = spot_of(k, slot);
    k->p->cover.late[spot.page] &= ~spot.bit;
    return slot;
}

static void add_row(struct aoi__look *k, uint32_t slot)
{
    struct aoi_rows *updates = &k->s->updates;
    aoi__rows_reserve(updates, updates->n + 1);
    aoi__row_set(updates, updates->n++, &k->space->hot[slot], false);
}

/* It was told at another place, and is told here now. */
static void rehouse(struct aoi__look *k, uint32_t entry, bool late, bool in_margin)
{
    struct aoi_space *space = k->space;
    struct aoi__cover *c = &k->p->cover;
    uint32_t slot = entry & AOI__TOLD_SLOT, served = k->p->served;
    bool moved = late || space->hot[slot].stamp > served, listed = !aoi__cover_takes(space, c->watch, slot);
    struct spot spot = {0};
    if (listed) {
        *array_add(&k->s->kept) = slot | (late && !k->inline_updates ? AOI__LATE : 0);
    } else if (in_margin) {
        spot = spot_of(k, slot);
        c->told[spot.page] |= spot.bit;
        c->told_n++;
    }
    if (moved && !k->p->set.presence_only && (!listed || k->inline_updates)) {
        bool waits = listed || in_margin ? k->tiers != NULL && !aoi__look_due(k, slot) : (entry & AOI__LATE) != 0;
        if (waits && in_margin) late_masks(space, c)[spot.page] |= spot.bit;
        if (!waits) add_row(k, slot);
        k->left |= waits;
    } else {
        not_late(k, entry);
    }
    if (!listed && space->state_serial > served && (aoi__rare(space, slot)->payload_stamp > served || aoi__rare(space, slot)->layers_stamp > served))
        *array_add(&k->s->restated) = slot;
}

#define FEW 100 /* pairs are compared one by one sooner than marks are set and read, all over memory */

/* Takes the slot out of gone; whether it was there. */
static bool take_went(struct aoi__scratch *s, uint32_t slot, bool *late)
{
    for (uint32_t i = 0; i < s->went.n; i++) {
        if ((s->went.at[i] & AOI__TOLD_SLOT) != slot) continue;
        *late = (s->went.at[i] & AOI__LATE) != 0;
        array_swap_remove(&s->went, i);
        return true;
    }
    return false;
}

static void reconcile_few(struct aoi__look *k, aoi__slots *came)
{
    struct aoi__scratch *s = k->s;
    uint32_t n = 0;
    bool late;
    for (uint32_t i = 0; i < came->n; i++) {
        if (take_went(s, came->at[i] & AOI__TOLD_SLOT, &late))
            rehouse(k, came->at[i], late, false);
        else
            came->at[n++] = came->at[i];
    }
    came->n = n;
    for (uint32_t i = 0; i < s->perhaps.n; i++)
        if (take_went(s, s->perhaps.at[i], &late)) rehouse(k, s->perhaps.at[i], late, true);
}

/* What is in went and in one of the other lists, too, is in neither any more, but kept. */
static void reconcile(struct aoi__look *k, aoi__slots *came)
{
    struct aoi_space *space = k->space;
    struct aoi__scratch *s = k->s;
    if (s->went.n * (came->n + s->perhaps.n) <= FEW) {
        reconcile_few(k, came);
        return;
    }
    uint32_t n = 0, in_margin = s->perhaps.n;
    aoi__marks_anew(space);
    uint32_t told = AOI__TOLD(space), late = told + 1, seen = AOI__SEEN(space);
    for (uint32_t i = 0; i < s->went.n; i++) space->mark[s->went.at[i] & AOI__TOLD_SLOT] = s->went.at[i] & AOI__LATE ? late : told;
    for (uint32_t i = 0; i < came->n; i++) {
        uint32_t entry = came->at[i], was = space->mark[entry & AOI__TOLD_SLOT];
        if (was == told || was == late)
            *array_add(&s->perhaps) = entry;
        else
            came->at[n++] = entry;
    }
    came->n = n;
    for (uint32_t i = 0; i < s->perhaps.n; i++) {
        uint32_t slot = s->perhaps.at[i] & AOI__TOLD_SLOT, was = space->mark[slot];
        if (was != told && was != late) continue;
        space->mark[slot] = seen;
        rehouse(k, s->perhaps.at[i], was == late, i < in_margin);
    }
    n = 0;
    for (uint32_t i = 0; i < s->went.n; i++)
        if (space->mark[s->went.at[i] & AOI__TOLD_SLOT] != seen) s->went.at[n++] = s->went.at[i];
    s->went.n = n;
}

/* Those that are told now for the first time are not late. */
static void forget_late(struct aoi__look *k, aoi__slots *came)
{
    for (uint32_t i = 0; i < came->n; i++) came->at[i] = not_late(k, came->at[i]);
}

static void append(aoi__slots *to, aoi__slots *from)
{
    array_reserve(to, (size_t)to->n + from->n);
    memcpy(to->at + to->n, from->at, from->n * sizeof *from->at);
    to->n += from->n;
    from->n = 0;
}

void aoi__cover_reconcile(struct aoi__look *k)
{
    const struct aoi_space *space = k->space;
    struct aoi__scratch *s = k->s;
    for (uint32_t i = 0; !k->list_kept && i < k->p->told.n; i++) {
        uint32_t slot = k->p->told.at[i] & AOI__TOLD_SLOT;
        if (space->mark[slot] != AOI__SEEN(space)) *array_add(&s->went) = k->p->told.at[i] & ~AOI__OWED;
    }
    if (k->listed > 0 && s->came.n > 0) append(&s->come, &s->came); /* those that are listed keep their order */
    aoi__slots *came = k->listed > 0 ? &s->come : &s->came;
    if (s->went.n > 0 && came->n + s->perhaps.n > 0) reconcile(k, came);
    if (k->p->cover.late != NULL) forget_late(k, came);
    if (s->came.n > 0) append(&s->come, &s->came); /* hardly any is left of either */
    if (s->went.n > 0) append(&s->gone, &s->went);
}

/* ------------------------------------------------------------------------------------------------------------- any view */

bool aoi__view_holds(const struct aoi_space *space, const struct aoi__player *p, uint32_t slot)
{
    const struct aoi__cover *c = &p->cover;
    for (uint32_t i = 0; i < p->told.n; i++)
        if ((p->told.at[i] & AOI__TOLD_SLOT) == slot) return true;
    if (c->watch == AOI__NONE) return false;
    struct aoi__home home = aoi__home_of(space->ops->pages(space), slot);
    for (uint32_t i = 0; i < c->n; i++)
        if (c->page[i] == home.page) return (c->told[i] & bit_of(home)) != 0;
    return false;
}

uint32_t aoi__view_count(const struct aoi__player *p)
{
    return p->told.n + p->cover.told_n;
}

void aoi__view_slots(const struct aoi_space *space, const struct aoi__player *p, aoi__slots *out)
{
    const struct aoi__cover *c = &p->cover;
    for (uint32_t i = 0; i < p->told.n; i++) *array_add(out) = p->told.at[i] & AOI__TOLD_SLOT;
    if (c->watch == AOI__NONE) return;
    const struct aoi__blocks *dir = space->ops->pages(space);
    for (uint32_t i = 0; i < c->n; i++) list_places(space, &dir->page.at[c->page[i]], c->told[i], out);
}

void aoi__cover_validate(const struct aoi_space *space, const struct aoi__player *p)
{
    const struct aoi__cover *c = &p->cover;
    uint32_t n = 0;
    if (c->watch == AOI__NONE) {
        CHECK(c->told_n == 0 && c->n == 0);
        return;
    }
    const struct aoi__blocks *dir = space->ops->pages(space);
    for (uint32_t i = 0; i < c->n; i++) {
        CHECK(c->page[i] < dir->page.n && (c->told[i] & ~dir->page.at[c->page[i]].busy) == 0);
        if (c->late != NULL) CHECK((c->late[i] & ~c->told[i]) == 0);
        n += (uint32_t)__builtin_popcountll(c->told[i]);
    }
    CHECK(n == c->told_n);
}
