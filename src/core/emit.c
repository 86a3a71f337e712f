/* emit.c: one player's delta as columns, from what is kept and what has come; and the view becomes what was told. */
#include <stdlib.h>
#include <string.h>

#include "core/cover.h"
#include "core/glance.h"
#include "core/look.h"

struct aoi__scratch *aoi__scratch_new(void)
{
    return mem_zalloc(sizeof(struct aoi__scratch));
}

void aoi__scratch_free(struct aoi__scratch *s)
{
    array_clear(&s->found);
    aoi__glance_free(s->glance);
    array_clear(&s->covered_at);
    array_clear(&s->turn);
    array_clear(&s->kept);
    array_clear(&s->come);
    aoi_rows_clear(&s->enters);
    aoi_rows_clear(&s->updates);
    array_clear(&s->ranked);
    array_clear(&s->distance);
    array_clear(&s->since);
    array_clear(&s->gone);
    array_clear(&s->perhaps);
    array_clear(&s->restated);
    array_clear(&s->owed);
    array_clear(&s->came);
    array_clear(&s->went);
    free(s->sifted.inside);
    free(s->sifted.want);
    free(s->sifted.due);
    free(s->sifted.differ);
    free(s->other);
    free(s->part);
    array_clear(&s->places);
    array_clear(&s->leave_id);
    array_clear(&s->payload_id);
    array_clear(&s->layers_id);
    array_clear(&s->message_from);
    array_clear(&s->layers);
    array_clear(&s->payload_len);
    array_clear(&s->enter_payload_len);
    array_clear(&s->message_len);
    array_clear(&s->payload);
    array_clear(&s->enter_payload);
    array_clear(&s->message);
    free(s);
}

void aoi__grow_masks(struct aoi__scratch *s, uint32_t pages)
{
    size_t cap = (size_t)pages + pages / 2 + 64;
    uint64_t **const mask[] = {&s->sifted.inside, &s->sifted.want, &s->sifted.due, &s->other, &s->part};
    for (size_t i = 0; i < sizeof mask / sizeof *mask; i++) *mask[i] = mem_realloc(*mask[i], cap * sizeof **mask[i]);
    s->sifted.differ = mem_realloc(s->sifted.differ, cap * sizeof *s->sifted.differ);
    s->pages_cap = (uint32_t)cap;
}

/* Takes bytes from the room; false: they do not fit. */
static bool take_room(struct aoi__look *k, size_t bytes)
{
    if (bytes > k->room) return false;
    k->room -= bytes;
    return true;
}

static uint32_t blob_len(const struct aoi__blob *blob)
{
    return blob == NULL ? 0 : blob->len;
}

/* ------------------------------------------------------------------------------------------------------------- leaves, updates */

static void emit_leaves(struct aoi__look *k)
{
    struct aoi_space *space = k->space;
    k->s->leave_id.n = 0;
    if (k->covered) {
        const aoi__slots *gone = &k->s->gone;
        array_reserve(&k->s->leave_id, gone->n);
        for (uint32_t i = 0; i < gone->n; i++) {
            uint32_t slot = gone->at[i] & AOI__TOLD_SLOT;
            k->s->leave_id.at[i] = space->hot[slot].id;
            aoi__slot_untold(space, slot);
        }
        k->s->leave_id.n = gone->n;
        space->stats.leaves += gone->n;
        return;
    }
    uint32_t leaves = k->p->told.n - k->s->kept.n;
    for (uint32_t i = 0; k->s->leave_id.n < leaves; i++) {
        uint32_t slot = k->p->told.at[i] & AOI__TOLD_SLOT;
        if (space->mark[slot] == AOI__SEEN(space)) continue;
        *array_add(&k->s->leave_id) = space->hot[slot].id;
        aoi__slot_untold(space, slot);
    }
    space->stats.leaves += k->s->leave_id.n;
}

/* Tiers of even periods around one anchor, as plain numbers for the innermost loop: nothing that a store to the columns might be taken to change. */
struct even_tiers {
    uint32_t n, flush, low[AOI_TIERS_MAX], beyond; /* low: period - 1 */
    double anchor[3], tier2[AOI_TIERS_MAX];
};

static struct even_tiers even_tiers_of(const struct aoi__look *k)
{
    struct even_tiers t = {.n = k->tiers->n, .flush = (uint32_t)k->info->flush, .beyond = k->tiers->beyond - 1};
    memcpy(t.anchor, k->anchor, sizeof t.anchor); /* z is 0 in 2D, as it is of every position */
    memcpy(t.tier2, k->space->tiering.most2, sizeof t.tier2);
    for (uint32_t i = 0; i < t.n; i++) t.low[i] = k->tiers->at[i].period - 1;
    return t;
}

/* 1 or 0. */
static inline uint32_t due_even(const struct even_tiers *t, const struct aoi__hot *h, bool flat)
{
    double dx = (double)h->pos[0] - t->anchor[0], dy = (double)h->pos[1] - t->anchor[1], d = dx * dx + dy * dy;
    if (!flat) {
        double dz = (double)h->pos[2] - t->anchor[2];
        d += dz * dz;
    }
    uint32_t low = t->beyond;
    for (uint32_t i = t->n; i-- > 0;) {
        uint32_t nearer = -(uint32_t)(d <= t->tier2[i]);
        low = (low & ~nearer) | (t->low[i] & nearer);
    }
    return ((t->flush + (uint32_t)h->id) & low) == 0;
}

/* Without a branch that could be guessed wrong: every row is written, and kept if it is late and due. */
static inline __attribute__((always_inline)) void tiered_rows(struct aoi__look *k, bool flat)
{
    const struct even_tiers tiers = even_tiers_of(k);
    const struct aoi__hot *hot = k->space->hot;
    struct aoi_rows updates = k->s->updates;
    uint32_t *kept = k->s->kept.at, n = k->s->kept.n, served = k->p->served, left = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t entry = kept[i];
        const struct aoi__hot *h = &hot[entry & AOI__TOLD_SLOT];
        uint32_t late = (h->stamp > served) | ((entry & AOI__LATE) != 0), due = due_even(&tiers, h, flat), waits = late & ~due;
        aoi__row_set(&updates, updates.n, h, flat);
        updates.n += late & due;
        kept[i] = (entry & ~AOI__LATE) | waits * AOI__LATE;
        left |= waits;
    }
    k->s->updates.n = updates.n;
    k->left |= left != 0;
}

/* Of the kept, those that changed since they were last due. What is not due now is flagged as late. */
static void emit_updates(struct aoi__look *k)
{
    struct aoi_space *space = k->space;
    struct aoi__scratch *s = k->s;
    bool flat = space->dims == 2 && !space->set.extra, even = k->tiers != NULL && k->one_anchor && space->tiering.even;
    aoi__rows_reserve(&s->updates, s->updates.n + s->kept.n + 1); /* behind those of who changed their cells; and one that is not kept */
    if (even && !k->p->set.presence_only) {
        if (flat)
            tiered_rows(k, true);
        else
            tiered_rows(k, false);
        return;
    }
    for (uint32_t i = 0; i < s->kept.n; i++) {
        uint32_t slot = s->kept.at[i] & AOI__TOLD_SLOT;
        bool late = space->hot[slot].stamp > k->p->served || (s->kept.at[i] & AOI__LATE);
        s->kept.at[i] &= ~AOI__LATE;
        if (!late || k->p->set.presence_only) continue;
        if (aoi__look_due(k, slot))
            aoi__row_set(&s->updates, s->updates.n++, &space->hot[slot], false);
        else
            s->kept.at[i] |= AOI__LATE, k->left = true;
    }
}

/* ------------------------------------------------------------------------------------------------------------- enters, state */

/* A row with the full state; false: no room. */
static bool emit_enter(struct aoi__look *k, uint32_t slot)
{
    struct aoi__scratch *s = k->s;
    const struct aoi__hot *h = &k->space->hot[slot];
    const struct aoi__blob *payload = aoi__rare(k->space, slot)->payload;
    uint32_t len = blob_len(payload);
    if (!take_room(k, AOI_ENTER_BYTES + (size_t)len)) return false;
    s->enters.layers[s->enters.n] = h->layers;
    s->enter_payload.at[s->enters.n] = payload == NULL ? NULL : payload->at;
    s->enter_payload_len.at[s->enters.n] = len;
    aoi__row_set(&s->enters, s->enters.n++, h, false);
    k->enter_payloads |= len > 0;
    return true;
}

/* Enters for the slots, as far as there is room; those told are left in the list. */
static void emit_enters(struct aoi__look *k, aoi__slots *slots)
{
    struct aoi__scratch *s = k->s;
    if (slots->n == 0) return;
    size_t need = s->enters.n + slots->n;
    aoi__rows_reserve(&s->enters, need);
    array_reserve(&s->enter_payload, need);
    array_reserve(&s->enter_payload_len, need);
    uint32_t n = 0, all = slots->n;
    while (n < all && emit_enter(k, slots->at[n])) {
        if (slots == &s->come) aoi__slot_told(k->space, slots->at[n]);
        n++;
    }
    slots->n = n;
    k->left |= n < all;
    for (uint32_t i = n; i < all; i++) { /* seen, but not in the view */
        k->space->mark[slots->at[i]] = 0;
        if (k->covered) aoi__cover_drop(k, slots->at[i]);
    }
}

static void emit_state_of(struct aoi__look *k, uint32_t *entry)
{
    struct aoi_space *space = k->space;
    struct aoi__scratch *s = k->s;
    uint32_t served = k->p->served, slot = *entry & AOI__TOLD_SLOT;
    const struct aoi__rare *rare = aoi__rare(space, slot);
    if (rare->layers_stamp > served) {
        *array_add(&s->layers_id) = space->hot[slot].id;
        *array_add(&s->layers) = space->hot[slot].layers;
    }
    if (rare->payload_stamp <= served && !(*entry & AOI__OWED)) return;
    uint32_t len = blob_len(rare->payload);
    if (!take_room(k, AOI_ENTER_BYTES + (size_t)len)) {
        *entry |= AOI__OWED;
        k->left = true;
        return;
    }
    *entry &= ~AOI__OWED;
    *array_add(&s->payload_id) = space->hot[slot].id;
    *array_add(&s->payload) = rare->payload == NULL ? NULL : rare->payload->at;
    *array_add(&s->payload_len) = len;
}

/* Payload and layers changes of the kept; a payload that does not fit is flagged as owed. */
static void emit_state(struct aoi__look *k)
{
    struct aoi__scratch *s = k->s;
    for (uint32_t i = 0; i < s->kept.n; i++) emit_state_of(k, &s->kept.at[i]);
    for (uint32_t i = 0; i < s->restated.n; i++) {
        emit_state_of(k, &s->restated.at[i]);
        if (s->restated.at[i] & AOI__OWED) *array_add(&s->owed) = s->restated.at[i] & AOI__TOLD_SLOT;
    }
}

/* A full delta restates the view: the kept are told again as enters, and those for which there is no room are not told. */
static void restate(struct aoi__look *k)
{
    struct aoi__scratch *s = k->s;
    uint32_t kept = s->kept.n;
    s->leave_id.n = 0;
    s->updates.n = s->sifted.wanted = 0;
    for (uint32_t i = 0; i < kept; i++) s->kept.at[i] &= AOI__TOLD_SLOT; /* nothing is owed or late any more */
    emit_enters(k, &s->kept);
    for (uint32_t i = s->kept.n; i < kept; i++) aoi__slot_untold(k->space, s->kept.at[i]);
}

/* ------------------------------------------------------------------------------------------------------------- messages */

static bool looks_there(const struct aoi__look *k, const struct aoi__message *m)
{
    const struct aoi__player *p = k->p;
    struct aoi__sight sight;
    for (uint32_t i = 0; i <= p->units.n; i++) {
        uint32_t watch = i < p->units.n ? p->units.at[i].watch : p->viewport;
        if (watch == AOI__NONE) continue;
        aoi__sight_init(&sight, k->space, &k->space->watches.at[watch], 0);
        if (aoi__sight_touches(&sight, m->lo, m->hi)) return true;
    }
    return false;
}

static void emit_message(struct aoi__look *k, const struct aoi__message *m)
{
    struct aoi__scratch *s = k->s;
    if (!take_room(k, AOI_ENTER_BYTES + (size_t)blob_len(m->body))) {
        k->p->lost++;
        return;
    }
    *array_add(&s->message_from) = m->from;
    *array_add(&s->message) = m->body == NULL ? NULL : m->body->at;
    *array_add(&s->message_len) = blob_len(m->body);
}

static bool sees_publisher(const struct aoi__look *k, const struct aoi__message *m)
{
    if (m->slot == AOI__NONE) return false;
    return k->covered ? aoi__view_holds(k->space, k->p, m->slot) : k->space->mark[m->slot] == AOI__SEEN(k->space);
}

/* Those posted to the player of which it sees the publisher, or the place. A full delta has none, and what has no room is lost. */
static void emit_messages(struct aoi__look *k)
{
    const struct aoi_space *space = k->space;
    if (space->messages.n == 0) return;
    uint32_t post = k->p->post;
    if (k->p->full) {
        k->p->lost += space->messages.n;
        return;
    }
    /* with min_stay_ms the view may hold a publisher that is nowhere near: all messages are looked at, else those posted */
    for (uint32_t i = 0; k->staying ? i < space->messages.n : post != AOI__NONE; i++) {
        if (!k->staying) i = space->posts.at[post].message;
        const struct aoi__message *m = &space->messages.at[i];
        bool posted = post != AOI__NONE && space->posts.at[post].message == i;
        if (posted) post = space->posts.at[post].next;
        if (m->from != 0 ? sees_publisher(k, m) : posted && looks_there(k, m)) emit_message(k, m);
    }
}

/* ------------------------------------------------------------------------------------------------------------- the view */

/* When each of kept and come entered, where that matters. */
static void remember_since(struct aoi__look *k)
{
    struct aoi__scratch *s = k->s;
    struct aoi__player *p = k->p;
    uint64_t now = k->info->now_ms + 1;
    if (!k->staying) {
        array_clear(&p->since);
        return;
    }
    s->since.n = 0;
    for (uint32_t i = 0; i < s->kept.n; i++) {
        uint32_t at = k->space->told_at[s->kept.at[i] & AOI__TOLD_SLOT];
        *array_add(&s->since) = at < p->since.n ? p->since.at[at] : 0;
    }
    for (uint32_t i = 0; i < s->come.n; i++) *array_add(&s->since) = now;
    array_reserve(&p->since, s->since.n);
    array_shrink(&p->since, s->since.n);
    p->since.n = s->since.n;
    if (s->since.n > 0) memcpy(p->since.at, s->since.at, s->since.n * sizeof *s->since.at);
}

/* Of a cover: what is not in its pages stands in the list. */
static void remember_cover(struct aoi__look *k)
{
    struct aoi__scratch *s = k->s;
    aoi__slots *told = &k->p->told;
    bool owed = s->owed.n > 0;
    if (k->list_kept && !owed) return;
    if (!k->list_kept) told->n = 0;
    for (uint32_t i = 0; i < s->kept.n; i++) {
        *array_add(told) = s->kept.at[i];
        owed |= (s->kept.at[i] & AOI__OWED) != 0;
    }
    for (uint32_t i = 0; i < s->come.n; i++) {
        uint32_t slot = s->come.at[i];
        if (!aoi__cover_takes(k->space, k->p->cover.watch, slot)) *array_add(told) = slot;
    }
    if (!owed) return;
    aoi__cover_end(k->space, k->p); /* only lists have that flag */
    for (uint32_t i = 0; i < s->owed.n; i++)
        for (uint32_t t = 0; t < told->n; t++)
            if ((told->at[t] & AOI__TOLD_SLOT) == s->owed.at[i]) told->at[t] |= AOI__OWED;
}

/* The view becomes kept and come. */
static void remember(struct aoi__look *k)
{
    struct aoi__scratch *s = k->s;
    aoi__slots *told = &k->p->told;
    uint32_t n = s->kept.n + s->come.n;
    if (!k->list_kept) remember_since(k);
    k->space->stats.enters += s->enters.n;
    if (k->covered) {
        remember_cover(k);
        return;
    }
    if (n > told->cap) array_reserve(told, (size_t)n + n / 4); /* a little more than now, so that it soon stops growing */
    array_shrink(told, n);
    if (s->kept.n > 0) memcpy(told->at, s->kept.at, s->kept.n * sizeof *told->at);
    if (s->come.n > 0) memcpy(told->at + s->kept.n, s->come.at, s->come.n * sizeof *told->at);
    told->n = n;
}

/* Everything but updates. */
static void fill_delta(const struct aoi__look *k, struct aoi_delta *d)
{
    const struct aoi__scratch *s = k->s;
    d->leave_n = s->leave_id.n;
    d->leave_id = s->leave_id.at;
    d->enters.n = s->enters.n;
    d->enters.id = s->enters.id;
    d->enters.x = s->enters.x;
    d->enters.y = s->enters.y;
    d->enters.z = k->space->dims == 3 ? s->enters.z : NULL;
    d->enters.extra = k->space->set.extra ? s->enters.extra : NULL;
    d->enters.layers = s->enters.layers;
    d->enters.payload = k->enter_payloads ? s->enter_payload.at : NULL;
    d->enters.payload_len = s->enter_payload_len.at;
    d->payload_n = s->payload_id.n;
    d->payload_id = s->payload_id.at;
    d->payload = s->payload.at;
    d->payload_len = s->payload_len.at;
    d->layers_n = s->layers_id.n;
    d->layers_id = s->layers_id.at;
    d->layers = s->layers.at;
    d->message_n = s->message.n;
    d->message_from = s->message_from.at;
    d->message = s->message.at;
    d->message_len = s->message_len.at;
}

#define FEW_ROWS 12

/* Values of a column from i on, to places of another from k on. */
static inline void copy(void *to, size_t k, const void *from, size_t i, size_t bytes, size_t some)
{
    uint8_t *at = (uint8_t *)to + k * bytes;
    const uint8_t *value = (const uint8_t *)from + i * bytes;
    if (some == 1)
        memcpy(at, value, bytes);
    else
        memcpy(at, value, some * bytes);
}

/* The columns of the rows that there are, behind so many others; of few, which are usual, row by row. */
static void copy_rows(const struct aoi_space *space, const struct aoi_places *to, size_t behind)
{
    const struct aoi_rows *rows = &space->scratch->updates;
    bool z = space->dims == 3, extra = space->set.extra;
    size_t n = rows->n, some = n > FEW_ROWS ? n : 1;
    for (size_t i = 0; i < n; i += some) {
        copy(to->id, behind + i, rows->id, i, sizeof *rows->id, some);
        copy(to->x, behind + i, rows->x, i, sizeof *rows->x, some);
        copy(to->y, behind + i, rows->y, i, sizeof *rows->y, some);
        if (z) copy(to->z, behind + i, rows->z, i, sizeof *rows->z, some);
        if (extra) copy(to->extra, behind + i, rows->extra, i, sizeof *rows->extra, some);
    }
}

/* The rows that are wanted, behind those that there are. */
static void make_rows(struct aoi_space *space)
{
    struct aoi__scratch *s = space->scratch;
    if (s->sifted.wanted == 0) return;
    aoi__rows_reserve(&s->updates, aoi__updates_n(s) + 2 * AOI__LANES);
    space->kernels->rows(&s->sieve, s->sifted.want, &s->updates);
}

static void point_at_rows(const struct aoi_space *space, struct aoi_updates *u)
{
    const struct aoi_rows *rows = &space->scratch->updates;
    u->id = rows->id;
    u->x = rows->x;
    u->y = rows->y;
    u->z = space->dims == 3 ? rows->z : NULL;
    u->extra = space->set.extra ? rows->extra : NULL;
}

/* Where the sink wants its update columns, they are put: if it wants any at all. */
static bool place(struct aoi_space *space, const struct aoi_sink *sink, const struct aoi_delta *d)
{
    struct aoi__scratch *s = space->scratch;
    struct aoi_places to = {0};
    if (sink->columns == NULL || !sink->columns(sink->ctx, d, &to)) return false;
    size_t direct = 0;
    if (space->kernels->place != NULL && (direct = s->sifted.wanted) > 0)
        space->kernels->place(&s->sieve, s->sifted.want, &to);
    else
        make_rows(space);
    if (s->updates.n > 0) copy_rows(space, &to, direct);
    return true;
}

void aoi__deliver(struct aoi_space *space, struct aoi__player *p, struct aoi_delta *d)
{
    const struct aoi_sink *sink = &space->world->sink;
    struct aoi__scratch *s = space->scratch;
    size_t n = aoi__updates_n(s);
    s->sieve.page = p->cover.page; /* its list may have moved since it was looked at */
    d->player = p->id;
    d->seq = ++p->seq;
    d->owner = p->owner;
    d->full = p->full;
    d->messages_lost = p->lost;
    d->updates.n = n;
    p->full = false;
    p->lost = 0;
    space->stats.updates += n;
    space->stats.deltas++;
    d->placed = n > 0 && place(space, sink, d);
    if (!d->placed) {
        make_rows(space);
        point_at_rows(space, &d->updates);
    }
    if (sink->deliver != NULL) sink->deliver(sink->ctx, d);
}

void aoi__deliver_begin(struct aoi_space *space, const struct aoi_flush_info *info)
{
    struct aoi__scratch *s = space->scratch;
    s->delta = (struct aoi_delta){.space = space->id, .flush = info->flush, .tag = info->tag, .time_us = info->time_us};
    aoi__rows_reserve(&s->updates, 1); /* columns that there are are not NULL */
    point_at_rows(space, &s->delta.updates);
}

static void deliver(struct aoi__look *k)
{
    struct aoi__scratch *s = k->s;
    size_t others = s->leave_id.n + s->enters.n + s->payload_id.n + s->layers_id.n + s->message.n;
    if (!k->p->full && others + aoi__updates_n(s) == 0) return;
    if (others == 0) {
        aoi__deliver(k->space, k->p, &s->delta);
        return;
    }
    struct aoi_delta *d = &s->delta;
    fill_delta(k, d);
    aoi__deliver(k->space, k->p, d);
    d->leave_n = d->enters.n = d->payload_n = d->layers_n = d->message_n = 0; /* as it is for whom nothing but updates is told */
}

void aoi__emit(struct aoi__look *k, size_t room)
{
    struct aoi__scratch *s = k->s;
    s->enters.n = 0;
    s->message_from.n = s->message.n = s->message_len.n = 0;
    s->payload_id.n = s->payload.n = s->payload_len.n = s->layers_id.n = s->layers.n = 0;
    emit_leaves(k);
    if (s->kept.n > 0 && !k->inline_updates && !k->p->full) emit_updates(k);
    size_t must = AOI_DELTA_OVERHEAD + s->leave_id.n * sizeof(uint64_t) + aoi__updates_n(s) * AOI_UPDATE_BYTES;
    k->room = room == AOI_ROOM_KEPT && k->p->full ? SIZE_MAX : room > must ? room - must : 0;
    if (k->p->full)
        restate(k);
    else if (k->flags & AOI__OWED || k->space->state_serial > k->p->served)
        emit_state(k);
    if (room == AOI_ROOM_KEPT) k->room = 0;
    emit_enters(k, &s->come);
    remember(k);
    emit_messages(k);
    deliver(k);
}
