/* view.c: what each player was last told, and what differs now. The heart of the core.
 *
 * A flush settles what was touched (entity.c), which marks the players that it may concern as dirty, and then looks at each dirty player:
 *   gather   what its units and its viewport see now, from the index, filtered by the exact rules and the mask;
 *   compare  with the view, that is, with what it was told, by a mark per slot: what was told may stay a little longer (leave_margin, min_stay_ms);
 *   choose   the best, where not everybody may be told: max_view, max_enter_per_flush (choose.c);
 *   emit     leaves, enters, updates, state changes and messages as columns, and make the view what was told (emit.c).
 * That is how views are compared that are lists of slots. Most players need no more than masks of pages, and are served at a glance: cover.c, glance.c. Either becomes the other at any flush.
 *
 * Updates are found by stamps: an entity whose stamp is later than the flush at which the player was last served has changed since. So a player that was
 * skipped catches up by the same code, with one larger delta.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cover.h"
#include "core/glance.h"
#include "core/look.h"

/* ------------------------------------------------------------------------------------------------------------- gather and compare */

void aoi__marks_anew(struct aoi_space *space)
{
    if (space->mark_serial > UINT32_MAX - AOI__MARKS) {
        if (space->slot_cap > 0) memset(space->mark, 0, space->slot_cap * sizeof *space->mark);
        space->mark_serial = 0;
    }
    space->mark_serial += AOI__MARKS;
}

static void mark_told(struct aoi__look *k)
{
    struct aoi_space *space = k->space;
    aoi__marks_anew(space);
    uint32_t flags = 0, told = AOI__TOLD(space);
    for (uint32_t i = 0; i < k->p->told.n; i++) {
        uint32_t entry = k->p->told.at[i];
        flags |= entry;
        space->mark[entry & AOI__TOLD_SLOT] = told + (entry >> AOI__FLAG_SHIFT);
    }
    k->flags = flags & ~AOI__TOLD_SLOT;
    if (!k->staying) return;
    if (space->told_at == NULL) space->told_at = mem_alloc((size_t)space->slot_cap * sizeof *space->told_at);
    for (uint32_t i = 0; i < k->p->told.n; i++) space->told_at[k->p->told.at[i] & AOI__TOLD_SLOT] = i;
}

#define WHATEVER ((uint64_t)1 << 32) /* in a mask: also what has none of its layers */

/* Sorts slots that are seen into kept and come; each slot once, however many watches found it. Where no rule can drop them any more, kept ones that changed
 * since the player was served are written into the update columns at once, while they are in the cache. flat: neither z nor extra is wanted. */
static inline __attribute__((always_inline)) void sort_rows(struct aoi__look *k, const uint32_t *found, uint32_t n, uint64_t mask, bool update,
                                                            bool flat)
{
    struct aoi_space *space = k->space;
    struct aoi__scratch *s = k->s;
    const struct aoi__hot *hot = space->hot;
    struct aoi_rows updates = s->updates; /* a copy, so that stores to the columns do not make the compiler reload it */
    uint32_t *mark = space->mark, *kept = s->kept.at + s->kept.n, *come = s->come.at + s->come.n;
    uint32_t served = k->p->served, told = AOI__TOLD(space), seen = AOI__SEEN(space);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t slot = found[i], was = mark[slot];
        const struct aoi__hot *h = &hot[slot];
        if (was >= seen || !((h->layers | WHATEVER) & mask)) continue;
        mark[slot] = seen;
        if (was < told) {
            *come++ = slot;
            continue;
        }
        *kept++ = slot | (was - told) << AOI__FLAG_SHIFT;
        if (!update) continue;
        aoi__row_set(&updates, updates.n, h, flat);
        updates.n += h->stamp > served;
    }
    s->updates.n = updates.n;
    s->kept.n = (uint32_t)(kept - s->kept.at);
    s->come.n = (uint32_t)(come - s->come.at);
}

static void sort_found(struct aoi__look *k, const aoi__slots *found, uint64_t mask)
{
    if (found->n == 0) return;
    array_reserve(&k->s->come, k->s->come.n + found->n);
    if (!k->inline_updates)
        sort_rows(k, found->at, found->n, mask, false, true);
    else if (k->space->dims == 2 && !k->space->set.extra)
        sort_rows(k, found->at, found->n, mask, true, true);
    else
        sort_rows(k, found->at, found->n, mask, true, false);
}

static bool is_told(const struct aoi_space *space, uint32_t slot)
{
    return space->mark[slot] >= AOI__TOLD(space) && space->mark[slot] < AOI__SEEN(space);
}

/* The index finds what lies in a box that may be larger than what is seen: leaves those that the player sees by the exact rules, told ones with its margin. */
static void thin(struct aoi__look *k, const struct aoi__watch *w, aoi__slots *found)
{
    const struct aoi_space *space = k->space;
    struct aoi__sight sight;
    uint32_t n = 0;
    aoi__sight_init(&sight, space, w, k->margin);
    for (uint32_t i = 0; i < found->n; i++) {
        uint32_t slot = found->at[i];
        const float *pos = space->hot[slot].pos, appeal = aoi__rare(space, slot)->appeal;
        bool in = aoi__sight_base(&sight, pos, appeal), stays = !in && k->margin > 0 && aoi__sight_keep(&sight, pos, appeal);
        if (stays && is_told(space, slot))
            in = true;
        else if (stays && k->covered && space->hot[slot].layers & k->p->set.mask)
            *array_add(&k->s->perhaps) = slot; /* it may have been told in the cover, when it had no appeal */
        found->at[n] = slot;
        n += in && slot != w->slot;
    }
    found->n = n;
}

/* That part of the watch's box that is at most k->reach away from the anchor, on each axis. */
static void clip(const struct aoi__look *k, const struct aoi__watch *w, float lo[3], float hi[3])
{
    for (uint32_t a = 0; a < 3; a++) {
        aoi__widen(k->anchor[a] - (double)k->reach, k->anchor[a] + (double)k->reach, 0, &lo[a], &hi[a]);
        lo[a] = fmaxf(lo[a], w->lo[a]);
        hi[a] = fminf(hi[a], w->hi[a]);
    }
}

static void gather_index(struct aoi__look *k, uint32_t watch)
{
    struct aoi_space *space = k->space;
    const struct aoi__watch *w = &space->watches.at[watch];
    aoi__slots *found = &k->s->found;
    float lo[3], hi[3];
    found->n = 0;
    if (k->reach > 0) clip(k, w, lo, hi);
    space->ops->gather(space, watch, k->p->set.mask, k->reach > 0 ? lo : w->lo, k->reach > 0 ? hi : w->hi, found);
    if (w->margin > 0 || (w->slot != AOI__NONE && space->set.shape == AOI_SHAPE_SPHERE)) thin(k, w, found);
    sort_found(k, found, k->p->set.mask);
}

static void gather_watch(struct aoi__look *k, uint32_t watch)
{
    struct aoi_space *space = k->space;
    const struct aoi__watch *w = &space->watches.at[watch];
    aoi__slots *found = &k->s->found;
    if (!w->active) return;
    if (!k->covered) gather_index(k, watch);
    if (space->large_n == 0) return;
    found->n = 0;
    aoi__large_gather(space, w->lo, w->hi, found);
    thin(k, w, found);
    sort_found(k, found, k->p->set.mask);
}

/* What the player sees whatever the rules: SHOW, then units with include_self. */
static void gather_chosen(struct aoi__look *k)
{
    const struct aoi_space *space = k->space;
    const struct aoi__player *p = k->p;
    aoi__slots *found = &k->s->found;
    found->n = 0;
    for (uint32_t i = 0; i < p->overrides.n; i++) {
        uint32_t slot = p->overrides.at[i].show ? aoi__entity_slot(space, p->overrides.at[i].id) : AOI__NONE;
        if (slot != AOI__NONE) *array_add(found) = slot;
    }
    for (uint32_t i = 0; i < p->units.n; i++)
        if (p->units.at[i].include_self) *array_add(found) = space->watches.at[p->units.at[i].watch].slot;
    sort_found(k, found, WHATEVER);
    k->chosen_kept = k->s->kept.n;
    k->chosen_come = k->s->come.n;
}

/* What HIDE takes away, unless it was chosen: as if it had been sorted already. */
static void mark_hidden(struct aoi__look *k)
{
    struct aoi_space *space = k->space;
    for (uint32_t i = 0; i < k->p->overrides.n; i++) {
        uint32_t slot = k->p->overrides.at[i].show ? AOI__NONE : aoi__entity_slot(space, k->p->overrides.at[i].id);
        if (slot != AOI__NONE && space->mark[slot] != AOI__SEEN(space)) space->mark[slot] = AOI__HIDDEN(space);
    }
}

bool aoi__look_watches(const struct aoi__look *k)
{
    const struct aoi__player *p = k->p;
    for (uint32_t i = 0; i < p->units.n; i++)
        if (k->space->watches.at[p->units.at[i].watch].active) return true;
    return p->viewport != AOI__NONE;
}

uint32_t aoi__look_stay_left_ms(const struct aoi__look *k, uint64_t since)
{
    uint64_t stayed = since == 0 ? UINT64_MAX : k->info->now_ms + 1 - since; /* since is now_ms + 1 of then */
    return stayed < k->space->set.min_stay_ms ? k->space->set.min_stay_ms - (uint32_t)stayed : 0;
}

/* What was told too short a time ago stays, wherever it is, while the player watches anything at all. */
static void keep_staying(struct aoi__look *k)
{
    struct aoi_space *space = k->space;
    struct aoi__player *p = k->p;
    aoi__slots *found = &k->s->found;
    p->staying = false;
    if (!k->staying || !aoi__look_watches(k)) return;
    found->n = 0;
    for (uint32_t i = 0; i < p->told.n && i < p->since.n; i++) {
        uint32_t slot = p->told.at[i] & AOI__TOLD_SLOT;
        if (!is_told(space, slot) || !aoi__alive(space, slot)) continue;
        if (aoi__look_stay_left_ms(k, p->since.at[i]) > 0 && (space->hot[slot].layers & p->set.mask)) *array_add(found) = slot;
    }
    p->staying = found->n > 0;
    k->left |= p->staying;
    sort_found(k, found, p->set.mask);
}

void aoi__watch_anchor(const struct aoi_space *space, const struct aoi__watch *w, double anchor[3])
{
    for (uint32_t a = 0; a < space->dims; a++)
        anchor[a] = w->slot != AOI__NONE ? (double)space->hot[w->slot].pos[a] : ((double)w->base_lo[a] + (double)w->base_hi[a]) / 2;
}

void aoi__look_anchor(struct aoi__look *k)
{
    uint32_t watch = k->covered ? k->p->cover.watch : aoi__only_watch(k->p);
    k->one_anchor = watch != AOI__NONE;
    if (k->one_anchor) aoi__watch_anchor(k->space, &k->space->watches.at[watch], k->anchor);
}

void aoi__look_tiers(struct aoi__look *k)
{
    const struct aoi_tiers *t = &k->space->set.tiers;
    if ((t->n > 0 || t->beyond > 1) && !k->info->final) k->tiers = t;
}

/* Whether the list of a player whose view is a cover may hold anything, or come to hold it. */
static bool may_list(const struct aoi__look *k)
{
    const struct aoi__player *p = k->p;
    return p->told.n > 0 || k->space->large_n > 0 || (p->units.n > 0 && p->units.at[0].include_self);
}

/* What is not in the pages of a cover, or everything. */
static void look_at_list(struct aoi__look *k)
{
    struct aoi__player *p = k->p;
    array_reserve(&k->s->kept, (size_t)p->told.n + 1);        /* never NULL, to which C allows no offset to be added, not even 0 */
    aoi__rows_reserve(&k->s->updates, (size_t)p->told.n + 1); /* a row may be written and not counted */
    mark_told(k);
    k->inline_updates = k->inline_updates && k->tiers == NULL && !(k->flags & AOI__LATE);
    gather_chosen(k);
    mark_hidden(k);
    for (uint32_t i = 0; i < p->units.n; i++) gather_watch(k, p->units.at[i].watch);
    if (p->viewport != AOI__NONE) gather_watch(k, p->viewport);
    keep_staying(k);
}

void aoi__look_begin(struct aoi__look *k, struct aoi_space *space, struct aoi__player *p, const struct aoi_flush_info *info, float reach)
{
    static const struct aoi__look none; /* copied, which is less than to have it cleared */
    struct aoi__scratch *s = space->scratch;
    const struct aoi_settings *set = &space->set;
    *k = none;
    k->space = space;
    k->s = s;
    k->p = p;
    k->info = info;
    k->margin = aoi__player_margin(space, p);
    k->max_view = aoi__own_or(p->set.max_view, set->max_view);
    k->max_enter = info->final ? 0 : aoi__own_or(p->set.max_enter_per_flush, set->max_enter_per_flush);
    k->staying = set->min_stay_ms > 0;
    k->reach = reach;
    aoi__lists_clear(s);
    s->updates.n = s->sifted.wanted = 0;
    k->covered = p->cover.watch != AOI__NONE;
    k->inline_updates = !p->set.presence_only && !p->full && k->max_view == 0;
    aoi__look_tiers(k);
    if (!k->covered || k->tiers != NULL || k->max_enter > 0 || set->shape == AOI_SHAPE_SPHERE) aoi__look_anchor(k);
}

void aoi__look(struct aoi__look *k, struct aoi_space *space, struct aoi__player *p, const struct aoi_flush_info *info, float reach)
{
    aoi__look_begin(k, space, p, info, reach);
    if (!k->covered || may_list(k)) look_at_list(k);
    if (!k->covered) return;
    aoi__cover_look(k);
    aoi__cover_reconcile(k);
}

/* ------------------------------------------------------------------------------------------------------------- the flush */

/* It could only be told of what is new to it, for which there is no room. To look for that would take memory, of which there is none. */
static bool has_to_wait(const struct aoi_space *space, const struct aoi__player *p, size_t room)
{
    return room == AOI_ROOM_KEPT && p->cover.watch == AOI__NONE && p->told.n == 0 && !p->full && space->messages.n == 0;
}

/* Tells one player what differs. Returns whether work is left for it. */
static bool serve(struct aoi_space *space, struct aoi__player *p, size_t room, const struct aoi_flush_info *info)
{
    struct aoi__look k;
    bool left;
    if (has_to_wait(space, p, room)) return true;
    if (aoi__glance(space, p, room, &left)) return left;
    bool fits = aoi__cover_fits(space, p);
    if (!fits || !aoi__cover_same(space, p)) aoi__cover_end(space, p);
    aoi__choose(&k, space, p, info);
    aoi__emit(&k, room);
    if (fits && !k.covered) aoi__cover_begin(space, p);
    p->plain = aoi__is_plain_player(p);
    p->listed = p->told.n > 0;
    p->large_known = false;
    p->served = space->serial; /* also if work is left: enters that wait were not told, payloads and positions that wait are flagged in the view */
    return k.left;
}

/* Serials are 32-bit to keep the hot arrays small, and wrap after 4 billion flushes: then everything counts as changed at serial 1, which everybody
 * was told but players that were skipped. */
static void next_serial(struct aoi_space *space)
{
    if (space->serial < UINT32_MAX - 1) {
        space->serial++;
        return;
    }
    for (uint32_t s = 0; s < space->slot_n; s++) space->hot[s].stamp = 1;
    for (uint32_t i = 0; i < space->rare.n; i++) space->rare.at[i].payload_stamp = space->rare.at[i].layers_stamp = 1;
    for (uint32_t p = 0; p < space->players.n; p++) space->players.at[p].served = space->players.at[p].skipped ? 0 : 1;
    space->state_serial = 1;
    space->serial = space->large_serial = 2;
}

/* The first dirty player slot in [from, to), or `to`. */
static uint32_t next_dirty(const struct aoi_space *space, uint32_t from, uint32_t to)
{
    for (; from < to; from = (from / 64 + 1) * 64) {
        uint64_t bits = space->dirty.at[from / 64] & UINT64_MAX << from % 64;
        if (bits == 0) continue;
        uint32_t i = from / 64 * 64 + (uint32_t)__builtin_ctzll(bits);
        return i < to ? i : to;
    }
    return to;
}

/* A dirty player is served, unless its connection is full. */
static void look_at(struct aoi_space *space, uint32_t player, struct aoi_flush_info *info)
{
    const struct aoi_sink *sink = &space->world->sink;
    struct aoi__player *p = &space->players.at[player];
    if (p->away) {         /* comes back with a full delta, until when there is nothing to do for it */
        p->skipped = true; /* what it loses of messages is counted as these are cleared: it need not be dirty */
        space->dirty.at[player / 64] &= ~((uint64_t)1 << player % 64);
        return;
    }
    size_t room = sink->room == NULL ? SIZE_MAX : sink->room(sink->ctx, p->owner);
    p->skipped = room == 0;
    if (p->skipped) {
        space->stats.skipped++;
        p->lost += space->messages.n;
        aoi__cover_end(space, p); /* what it was told stands still, and the pages do not */
        info->pending = true;
        return;
    }
    space->round = player + 1;
    if (serve(space, p, room, info))
        info->pending = true;
    else
        space->dirty.at[player / 64] &= ~((uint64_t)1 << player % 64);
}

void aoi_flush_begin(struct aoi_space *space, struct aoi_flush_info *info)
{
    CHECK(space->flush_phase == AOI__FLUSH_NONE);
    space->flush_phase = AOI__FLUSH_RUNS;
    info->flush = ++space->flush;
    info->pending = false;
    next_serial(space);
    aoi__settle(space);
    aoi__messages_post(space);
    if (!aoi__space_spent(space)) space->ops->resolve(space); /* else the index goes with all the rest */
    if (space->marked.n > 0) memset(space->marked.at, 0, space->marked.n * sizeof *space->marked.at);
    aoi__glance_open(space, info);
    space->flush_start = space->flush_at = space->round < space->players.n ? space->round : 0; /* after the last one served: nobody starves */
    space->flush_lap = false;
    space->flush_phase = AOI__FLUSH_PAUSED;
}

bool aoi_flush_step(struct aoi_space *space, struct aoi_flush_info *info, uint32_t players)
{
    CHECK(space->flush_phase == AOI__FLUSH_PAUSED);
    space->flush_phase = AOI__FLUSH_RUNS;
    bool more = true;
    while (more) {
        uint32_t to = space->flush_lap ? space->flush_start : space->players.n, i = next_dirty(space, space->flush_at, to);
        if (i < to) {
            if (players-- == 0) break;
            space->flush_at = i + 1;
            aoi__glance_fetch(space, i);
            look_at(space, i, info);
        } else if (space->flush_lap) {
            more = false;
        } else {
            space->flush_lap = true;
            space->flush_at = 0;
        }
    }
    space->flush_phase = AOI__FLUSH_PAUSED;
    return more;
}

/* Whether this is flush 3, 12, 48, 192 ...: what is needed most at once grows ever more slowly while things merely move about. */
static bool looks_ahead(uint64_t flush)
{
    while (flush > 0 && flush % 4 == 0) flush /= 4;
    return flush == 3;
}

/* Room for what may be needed soon, so that other flushes need not stop for it. */
static void look_ahead(struct aoi_space *space)
{
    pool_ahead(&space->pool);
    if (space->ops->ahead != NULL) space->ops->ahead(space);
}

void aoi_flush_end(struct aoi_space *space, struct aoi_flush_info *info)
{
    space->flush_phase = AOI__FLUSH_RUNS;
    bool spent = aoi__space_spent(space);
    if (!spent && space->ops->flushed != NULL) space->ops->flushed(space);
    if (!spent && looks_ahead(space->flush)) look_ahead(space);
    aoi__messages_clear(space);
    if (aoi__observe_tell(space)) info->pending = true;
    space->changed = info->pending;
    space->flush_phase = AOI__FLUSH_NONE;
    aoi__space_give_back(space);
}

void aoi_flush(struct aoi_space *space, struct aoi_flush_info *info)
{
    aoi_flush_begin(space, info);
    aoi_flush_step(space, info, UINT32_MAX);
    aoi_flush_end(space, info);
}
