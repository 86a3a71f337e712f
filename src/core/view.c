/* view.c: what each player was last told, and what differs now. The heart of the core.
 *
 * A flush settles what was touched (entity.c), which marks the players that it may concern as dirty, and then looks at each dirty player:
 *   gather   what its units and its viewport see now, from the index, filtered by the exact rule and the mask;
 *   compare  with the view, that is, with what it was told, by a stamp per slot;
 *   emit     leaves, enters, updates and state changes as columns, and make the view what was told.
 * Updates are found by stamps: an entity whose stamp is later than the flush at which the player was last served has changed since. So a player that was
 * skipped catches up by the same code, with one larger delta.
 */
#include <stdlib.h>
#include <string.h>

#include "core/space.h"

/* Columns and lists of the delta that is being made; they grow and are kept, so that a warm flush allocates nothing. */
struct aoi__scratch {
    aoi__slots found;      /* what the index found for one watch */
    aoi__slots kept, come; /* told and still seen; seen and not told */
    struct aoi_rows enters, updates;
    ARRAY(uint64_t) leave_id, payload_id, layers_id;
    ARRAY(uint32_t) layers, payload_len, enter_payload_len;
    ARRAY(const void *) payload, enter_payload;
};

/* What the stages of one player's delta share. */
struct aoi__look {
    struct aoi_space *space;
    struct aoi__scratch *s;
    struct aoi__player *p;
    size_t room; /* bytes that enters and payload changes may still take */
    bool owed;   /* the view holds payload changes that did not fit before */
    bool left;   /* work is left for the next flush */
    bool enter_payloads;
};

/* While a player is looked at, mark[slot] is GONE for what it was told and does not see, SEEN for what it sees; anything less is neither. */
#define GONE(space) ((space)->mark_serial - 1)
#define SEEN(space) ((space)->mark_serial)

struct aoi__scratch *aoi__scratch_new(void)
{
    return mem_zalloc(sizeof(struct aoi__scratch));
}

void aoi__scratch_free(struct aoi__scratch *s)
{
    array_clear(&s->found);
    array_clear(&s->kept);
    array_clear(&s->come);
    aoi_rows_clear(&s->enters);
    aoi_rows_clear(&s->updates);
    array_clear(&s->leave_id);
    array_clear(&s->payload_id);
    array_clear(&s->layers_id);
    array_clear(&s->layers);
    array_clear(&s->payload_len);
    array_clear(&s->enter_payload_len);
    array_clear(&s->payload);
    array_clear(&s->enter_payload);
    free(s);
}

static inline void row_set(struct aoi_rows *rows, size_t i, const struct aoi__hot *h, bool flat)
{
    rows->id[i] = h->id;
    rows->x[i] = h->pos[0];
    rows->y[i] = h->pos[1];
    if (flat) return;
    rows->z[i] = h->pos[2];
    rows->extra[i] = h->extra;
}

/* ------------------------------------------------------------------------------------------------------------- gather and compare */

static void mark_told(struct aoi__look *k)
{
    struct aoi_space *space = k->space;
    if (space->mark_serial > UINT32_MAX - 2) {
        if (space->slot_cap > 0) memset(space->mark, 0, space->slot_cap * sizeof *space->mark);
        space->mark_serial = 0;
    }
    space->mark_serial += 2;
    for (uint32_t i = 0; i < k->p->told.n; i++) {
        k->owed |= (k->p->told.at[i] & AOI__OWED) != 0;
        space->mark[k->p->told.at[i] & ~AOI__OWED] = GONE(space);
    }
}

/* Sorts the slots that a watch found into kept and come; each slot once, however many watches found it. Kept ones that changed since the player was served
 * are written into the update columns at once, while they are in the cache. flat: neither z nor extra is wanted. */
#define WHATEVER ((uint64_t)1 << 32) /* in a mask: also what has none of its layers */
static inline __attribute__((always_inline)) void sort_rows(struct aoi__look *k, const uint32_t *found, uint32_t n, uint64_t mask, bool flat)
{
    struct aoi_space *space = k->space;
    struct aoi__scratch *s = k->s;
    const struct aoi__hot *hot = space->hot;
    struct aoi_rows updates = s->updates; /* a copy, so that stores to the columns do not make the compiler reload it */
    uint32_t *mark = space->mark, *kept = s->kept.at + s->kept.n, *come = s->come.at + s->come.n;
    uint32_t served = k->p->served, gone = GONE(space), seen = SEEN(space);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t slot = found[i], was = mark[slot];
        const struct aoi__hot *h = &hot[slot];
        if (was == seen || !((h->layers | WHATEVER) & mask)) continue;
        mark[slot] = seen;
        if (was != gone) {
            *come++ = slot;
            continue;
        }
        *kept++ = slot;
        row_set(&updates, updates.n, h, flat);
        updates.n += h->stamp > served;
    }
    s->updates.n = updates.n;
    s->kept.n = (uint32_t)(kept - s->kept.at);
    s->come.n = (uint32_t)(come - s->come.at);
}

static void sort_found(struct aoi__look *k, const uint32_t *found, uint32_t n, uint64_t mask)
{
    if (n == 0) return;
    array_reserve(&k->s->come, k->s->come.n + n);
    if (k->space->dims == 2 && !k->space->set.extra)
        sort_rows(k, found, n, mask, true);
    else
        sort_rows(k, found, n, mask, false);
}

/* What the index finds in the box around a sphere is thinned out by the exact rule. */
static void thin_sphere(const struct aoi_space *space, uint32_t unit, aoi__slots *found)
{
    uint32_t n = 0;
    const float *center = space->hot[unit].pos;
    for (uint32_t i = 0; i < found->n; i++) {
        uint32_t slot = found->at[i];
        found->at[n] = slot;
        n += aoi__in_sphere(space->hot[slot].pos, center, space->cold[unit].radius, space->dims);
    }
    found->n = n;
}

static void gather_watch(struct aoi__look *k, uint32_t watch)
{
    const struct aoi__watch *w = &k->space->watches.at[watch];
    aoi__slots *found = &k->s->found;
    if (!w->active) return;
    found->n = 0;
    k->space->ops->gather(k->space, watch, found);
    if (w->slot != AOI__NONE && k->space->set.shape == AOI_SHAPE_SPHERE) thin_sphere(k->space, w->slot, found);
    sort_found(k, found->at, found->n, k->p->mask);
}

static void gather(struct aoi__look *k)
{
    struct aoi__scratch *s = k->s;
    struct aoi__player *p = k->p;
    s->kept.n = s->come.n = 0;
    s->updates.n = 0;
    array_reserve(&s->kept, (size_t)p->told.n + 1);        /* never NULL, which C allows no offset to, not even 0 */
    aoi__rows_reserve(&s->updates, (size_t)p->told.n + 1); /* a row may be written and not counted */
    mark_told(k);
    for (uint32_t i = 0; i < p->units.n; i++) gather_watch(k, p->units.at[i].watch);
    if (p->viewport != AOI__NONE) gather_watch(k, p->viewport);
    s->found.n = 0;
    for (uint32_t i = 0; i < p->units.n; i++)
        if (p->units.at[i].include_self) *array_add(&s->found) = k->space->watches.at[p->units.at[i].watch].slot;
    sort_found(k, s->found.at, s->found.n, WHATEVER);
}

/* ------------------------------------------------------------------------------------------------------------- emit */

static void emit_leaves(struct aoi__look *k)
{
    struct aoi_space *space = k->space;
    uint32_t leaves = k->p->told.n - k->s->kept.n;
    k->s->leave_id.n = 0;
    for (uint32_t i = 0; k->s->leave_id.n < leaves; i++) {
        uint32_t slot = k->p->told.at[i] & ~AOI__OWED;
        if (space->mark[slot] != GONE(space)) continue;
        *array_add(&k->s->leave_id) = space->hot[slot].id;
        aoi__slot_untold(space, slot);
    }
    space->stats.leaves += k->s->leave_id.n;
}

/* Takes bytes from the room; false: they do not fit, and work is left. */
static bool take_room(struct aoi__look *k, size_t bytes)
{
    if (bytes > k->room) {
        k->left = true;
        return false;
    }
    k->room -= bytes;
    return true;
}

/* A row with the full state; false: no room. */
static bool emit_enter(struct aoi__look *k, uint32_t slot)
{
    struct aoi__scratch *s = k->s;
    const struct aoi__hot *h = &k->space->hot[slot];
    const struct aoi__blob *payload = k->space->cold[slot].payload;
    uint32_t len = payload == NULL ? 0 : payload->len;
    if (!take_room(k, AOI_ENTER_BYTES + (size_t)len)) return false;
    s->enters.layers[s->enters.n] = h->layers;
    s->enter_payload.at[s->enters.n] = payload == NULL ? NULL : payload->at;
    s->enter_payload_len.at[s->enters.n] = len;
    row_set(&s->enters, s->enters.n++, h, false);
    k->enter_payloads |= len > 0;
    return true;
}

/* Enters for the slots, as far as there is room; those told are left in the list. */
static void emit_enters(struct aoi__look *k, aoi__slots *slots)
{
    struct aoi__scratch *s = k->s;
    size_t need = s->enters.n + slots->n;
    aoi__rows_reserve(&s->enters, need);
    array_reserve(&s->enter_payload, need);
    array_reserve(&s->enter_payload_len, need);
    uint32_t n = 0;
    while (n < slots->n && emit_enter(k, slots->at[n])) n++;
    slots->n = n;
}

/* Payload and layers changes of the kept; a payload that does not fit is owed (marked in the list). */
static void emit_state(struct aoi__look *k)
{
    struct aoi_space *space = k->space;
    struct aoi__scratch *s = k->s;
    uint32_t served = k->p->served;
    if (k->owed) /* kept is in another order than told: pass the mark on by the slot's mark, which is not needed any more */
        for (uint32_t i = 0; i < k->p->told.n; i++)
            if (k->p->told.at[i] & AOI__OWED) space->mark[k->p->told.at[i] & ~AOI__OWED] = 0;
    for (uint32_t i = 0; i < s->kept.n; i++) {
        uint32_t slot = s->kept.at[i];
        const struct aoi__cold *c = &space->cold[slot];
        if (c->layers_stamp > served) {
            *array_add(&s->layers_id) = space->hot[slot].id;
            *array_add(&s->layers) = space->hot[slot].layers;
        }
        if (c->payload_stamp <= served && space->mark[slot] != 0) continue;
        uint32_t len = c->payload == NULL ? 0 : c->payload->len;
        if (!take_room(k, AOI_ENTER_BYTES + (size_t)len)) {
            s->kept.at[i] |= AOI__OWED;
            continue;
        }
        *array_add(&s->payload_id) = space->hot[slot].id;
        *array_add(&s->payload) = c->payload == NULL ? NULL : c->payload->at;
        *array_add(&s->payload_len) = len;
    }
}

/* A full delta restates the view: the kept are told again as enters, and those for which there is no room are not told. */
static void restate(struct aoi__look *k)
{
    struct aoi__scratch *s = k->s;
    uint32_t kept = s->kept.n;
    s->leave_id.n = 0;
    s->updates.n = 0;
    emit_enters(k, &s->kept);
    for (uint32_t i = s->kept.n; i < kept; i++) aoi__slot_untold(k->space, s->kept.at[i]);
}

/* The view becomes kept and come. */
static void remember(struct aoi__look *k)
{
    struct aoi__scratch *s = k->s;
    aoi__slots *told = &k->p->told;
    uint32_t n = s->kept.n + s->come.n;
    if (n > told->cap) array_reserve(told, (size_t)n + n / 4); /* a little more than now, so that it soon stops growing */
    if (s->kept.n > 0) memcpy(told->at, s->kept.at, s->kept.n * sizeof *told->at);
    if (s->come.n > 0) memcpy(told->at + s->kept.n, s->come.at, s->come.n * sizeof *told->at);
    told->n = n;
    for (uint32_t i = 0; i < s->come.n; i++) k->space->cold[s->come.at[i]].told++;
    k->space->stats.pairs += s->come.n;
    k->space->stats.enters += s->enters.n;
    k->space->stats.updates += s->updates.n;
}

static void deliver(struct aoi__look *k, const struct aoi_flush_info *info)
{
    struct aoi_space *space = k->space;
    struct aoi__scratch *s = k->s;
    const struct aoi_sink *sink = &space->world->sink;
    bool z = space->dims == 3, extra = space->set.extra;
    if (!k->p->full && s->leave_id.n + s->enters.n + s->updates.n + s->payload_id.n + s->layers_id.n == 0) return;
    struct aoi_delta delta = {
        .space = space->id,
        .flush = info->flush,
        .tag = info->tag,
        .time_us = info->time_us,
        .player = k->p->id,
        .seq = ++k->p->seq,
        .owner = k->p->owner,
        .full = k->p->full,
        .leave_n = s->leave_id.n,
        .leave_id = s->leave_id.at,
        .enters = {.n = s->enters.n,
                   .id = s->enters.id,
                   .x = s->enters.x,
                   .y = s->enters.y,
                   .z = z ? s->enters.z : NULL,
                   .extra = extra ? s->enters.extra : NULL,
                   .layers = s->enters.layers,
                   .payload = k->enter_payloads ? s->enter_payload.at : NULL,
                   .payload_len = k->enter_payloads ? s->enter_payload_len.at : NULL},
        .updates = {.n = s->updates.n,
                    .id = s->updates.id,
                    .x = s->updates.x,
                    .y = s->updates.y,
                    .z = z ? s->updates.z : NULL,
                    .extra = extra ? s->updates.extra : NULL},
        .payload_n = s->payload_id.n,
        .payload_id = s->payload_id.at,
        .payload = s->payload.at,
        .payload_len = s->payload_len.at,
        .layers_n = s->layers_id.n,
        .layers_id = s->layers_id.at,
        .layers = s->layers.at,
    };
    k->p->full = false;
    space->stats.deltas++;
    if (sink->deliver != NULL) sink->deliver(sink->ctx, &delta);
}

/* Tells one player what differs. Returns whether work is left for it. */
static bool serve(struct aoi_space *space, struct aoi__player *p, size_t room, const struct aoi_flush_info *info)
{
    struct aoi__scratch *s = space->scratch;
    struct aoi__look k = {.space = space, .s = s, .p = p};
    s->enters.n = 0;
    s->payload_id.n = s->payload.n = s->payload_len.n = s->layers_id.n = s->layers.n = 0;
    gather(&k);
    emit_leaves(&k);
    size_t must = AOI_DELTA_OVERHEAD + s->leave_id.n * sizeof(uint64_t) + s->updates.n * AOI_UPDATE_BYTES;
    k.room = room > must ? room - must : 0;
    if (p->full)
        restate(&k);
    else if (k.owed || space->state_serial > p->served)
        emit_state(&k);
    emit_enters(&k, &s->come);
    remember(&k);
    deliver(&k, info);
    p->served = space->serial;
    return k.left;
}

/* ------------------------------------------------------------------------------------------------------------- the flush */

/* Serials are 32-bit to keep the hot arrays small, and wrap after 4 billion flushes: then everything counts as changed at serial 1, which everybody
 * was told but players that were skipped. */
static void next_serial(struct aoi_space *space)
{
    if (space->serial < UINT32_MAX - 1) {
        space->serial++;
        return;
    }
    for (uint32_t s = 0; s < space->slot_n; s++) space->hot[s].stamp = space->cold[s].payload_stamp = space->cold[s].layers_stamp = 1;
    for (uint32_t p = 0; p < space->players.n; p++) space->players.at[p].served = space->players.at[p].skipped ? 0 : 1;
    space->state_serial = 1;
    space->serial = 2;
}

/* The players of slots [from, to) that are dirty. */
static void flush_range(struct aoi_space *space, uint32_t from, uint32_t to, struct aoi_flush_info *info)
{
    const struct aoi_sink *sink = &space->world->sink;
    for (uint32_t word = from / 64; word < (to + 63) / 64; word++) {
        uint64_t bits = space->dirty.at[word];
        if (word == from / 64) bits &= UINT64_MAX << from % 64;
        if (word == to / 64) bits &= ((uint64_t)1 << to % 64) - 1;
        for (; bits != 0; bits &= bits - 1) {
            uint32_t i = word * 64 + (uint32_t)__builtin_ctzll(bits);
            struct aoi__player *p = &space->players.at[i];
            size_t room = sink->room == NULL ? SIZE_MAX : sink->room(sink->ctx, p->owner);
            p->skipped = room == 0;
            if (p->skipped) {
                space->stats.skipped++;
                info->pending = true;
                continue;
            }
            space->round = i + 1;
            if (serve(space, p, room, info))
                info->pending = true;
            else
                space->dirty.at[word] &= ~((uint64_t)1 << i % 64);
        }
    }
}

void aoi_flush(struct aoi_space *space, struct aoi_flush_info *info)
{
    info->flush = ++space->flush;
    info->pending = false;
    next_serial(space);
    aoi__settle(space);
    space->ops->resolve(space);
    uint32_t start = space->round < space->players.n ? space->round : 0; /* after the last one served: nobody starves */
    flush_range(space, start, space->players.n, info);
    flush_range(space, 0, start, info);
    space->changed = info->pending;
}
