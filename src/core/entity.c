/* entity.c: the life of an entity: commands write the new state here and remember the old one for the flush. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/space.h"

/* ------------------------------------------------------------------------------------------------------------- slots */

/* Words of space->some_move. */
static uint32_t some_words(uint32_t slots)
{
    return (slots + 64 * 64 - 1) / (64 * 64);
}

static void grow_slots(struct aoi_space *space)
{
    uint32_t cap = space->slot_cap + space->slot_cap / 4 / 64 * 64 + 64;
    CHECK(cap <= AOI__TOLD_SLOT);
    space->hot = mem_realloc(space->hot, cap * sizeof *space->hot);
    space->cold = mem_realloc(space->cold, cap * sizeof *space->cold);
    space->own = mem_realloc(space->own, cap * sizeof *space->own);
    space->mark = mem_realloc(space->mark, cap * sizeof *space->mark);
    space->moving = mem_realloc(space->moving, cap / 8);
    space->some_move = mem_realloc(space->some_move, some_words(cap) * sizeof *space->some_move);
    space->alive = mem_realloc(space->alive, cap / 8);
    if (space->told_at != NULL) space->told_at = mem_realloc(space->told_at, cap * sizeof *space->told_at);
    memset(space->mark + space->slot_cap, 0, (cap - space->slot_cap) * sizeof *space->mark);
    memset((char *)space->alive + space->slot_cap / 8, 0, (cap - space->slot_cap) / 8);
    for (uint32_t w = some_words(space->slot_cap); w < some_words(cap); w++) space->some_move[w] = 0;
    memset((char *)space->moving + space->slot_cap / 8, 0, (cap - space->slot_cap) / 8);
    space->slot_cap = cap;
}

static uint32_t slot_take(struct aoi_space *space)
{
    uint32_t slot;
    if (space->free_slots.n > 0) {
        slot = space->free_slots.at[--space->free_slots.n];
    } else {
        if (space->slot_n == space->slot_cap) grow_slots(space);
        slot = space->slot_n++;
    }
    space->alive[slot >> 5] |= 1u << (slot & 31);
    return slot;
}

void aoi__slot_free(struct aoi_space *space, uint32_t slot)
{
    space->mark[slot] = 0;
    *array_add(&space->free_slots) = slot;
}

/* To be written. */
static struct aoi__rare *rare_of(struct aoi_space *space, uint32_t slot)
{
    struct aoi__cold *c = &space->cold[slot];
    uint32_t *rare = c->flags & AOI__TOUCHED ? &space->touched.at[c->rare].rare : &c->rare;
    if (*rare == AOI__NONE) {
        *rare = space->free_rare.n > 0 ? space->free_rare.at[--space->free_rare.n] : space->rare.n++;
        array_reserve(&space->rare, space->rare.n);
        space->rare.at[*rare] = aoi__plain;
    }
    return &space->rare.at[*rare];
}

/* Not of a touched one. */
static void rare_free(struct aoi_space *space, uint32_t slot)
{
    struct aoi__cold *c = &space->cold[slot];
    if (c->rare == AOI__NONE) return;
    aoi__blob_free(space, space->rare.at[c->rare].payload);
    space->rare.at[c->rare] = aoi__plain;
    *array_add(&space->free_rare) = c->rare;
    c->rare = AOI__NONE;
}

uint32_t aoi__entity_slot(const struct aoi_space *space, uint64_t id)
{
    return aoi__ids_get(&space->ids, aoi__entity_records(space), id);
}

/* Whether the owner may change what was found under an id; slot AOI__NONE: nothing was. */
static inline int check_own(const struct aoi_space *space, aoi_owner owner, uint64_t id, uint32_t slot)
{
    if (id == 0) return AOI_EINVAL;
    if (slot == AOI__NONE) return AOI_ENOENTITY;
    return space->own[slot].owner == owner ? AOI_OK : AOI_EOWNER;
}

/* Finds an entity that the owner may change. */
static int find_own(const struct aoi_space *space, aoi_owner owner, uint64_t id, uint32_t *slot)
{
    *slot = aoi__entity_slot(space, id);
    return check_own(space, owner, id, *slot);
}

/* ------------------------------------------------------------------------------------------------------------- owner's list */

static void owner_link(struct aoi_space *space, uint32_t slot)
{
    struct aoi__owned *owned = aoi__owned(space, space->own[slot].owner);
    space->cold[slot].owner_prev = AOI__NONE;
    space->cold[slot].owner_next = owned->entities;
    if (owned->entities != AOI__NONE) space->cold[owned->entities].owner_prev = slot;
    owned->entities = slot;
    owned->entity_n++;
}

static void owner_unlink(struct aoi_space *space, uint32_t slot)
{
    const struct aoi__cold *c = &space->cold[slot];
    struct aoi__owned *owned = aoi__owned(space, space->own[slot].owner);
    owned->entity_n--;
    if (c->owner_prev != AOI__NONE)
        space->cold[c->owner_prev].owner_next = c->owner_next;
    else
        owned->entities = c->owner_next;
    if (c->owner_next != AOI__NONE) space->cold[c->owner_next].owner_prev = c->owner_prev;
}

/* ------------------------------------------------------------------------------------------------------------- payloads */

struct aoi__blob *aoi__blob_new(struct aoi_space *space, const void *bytes, uint32_t len)
{
    if (len == 0) return NULL;
    struct aoi__blob *blob = mem_alloc(sizeof *blob + len);
    blob->len = len;
    memcpy(blob->at, bytes, len);
    space->payload_bytes += sizeof *blob + len;
    return blob;
}

void aoi__blob_free(struct aoi_space *space, struct aoi__blob *blob)
{
    if (blob != NULL) space->payload_bytes -= sizeof *blob + blob->len;
    free(blob);
}

static bool blob_same(const struct aoi__blob *a, const struct aoi__blob *b)
{
    if (a == NULL || b == NULL) return a == b;
    return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

/* ------------------------------------------------------------------------------------------------------------- touching */

#define MOVES 1024 /* so many are settled together, so that memory can be fetched ahead */

/* Up to MOVES of those that were moved, which are moving no more; *from: where to go on, 0 at first. Returns how many: 0 when there are none left. */
static uint32_t take_moving(struct aoi_space *space, uint32_t *from, uint32_t slot[MOVES])
{
    uint32_t n = 0, words = some_words(space->slot_n);
    for (; space->moving_n > n && *from < words; ++*from) {
        for (uint64_t *some = &space->some_move[*from]; *some != 0; *some &= *some - 1) {
            uint32_t w = *from * 64 + (uint32_t)__builtin_ctzll(*some);
            if (n > MOVES - 64) break;
            for (uint64_t m = space->moving[w]; m != 0; m &= m - 1) slot[n++] = w * 64 + (uint32_t)__builtin_ctzll(m);
            space->moving[w] = 0;
        }
        if (n > MOVES - 64) break;
    }
    space->moving_n -= n;
    return n;
}

#define FETCHED 24 /* entities of which what is to be read is fetched beforehand */

/* Likewise in two levels, for what is read of an entity one by one. */
static inline void fetch(const struct aoi_space *space, uint32_t slot, uint32_t level)
{
    if (level == 0) {
        __builtin_prefetch(&space->hot[slot], 1);
        __builtin_prefetch(&space->cold[slot], 1);
        __builtin_prefetch(&space->own[slot]);
    }
    if (space->ops->fetch != NULL) space->ops->fetch(space, slot, level);
}

/* Remembers what the entity was at the last flush. NULL: there are no players, so that nothing was told to anybody and nothing need be compared. */
static struct aoi__touched *record(struct aoi_space *space, uint32_t slot, const float pos[3], uint32_t extra)
{
    struct aoi__cold *c = &space->cold[slot];
    if (c->flags & AOI__TOUCHED) return &space->touched.at[c->rare];
    if (space->player_n == 0) return NULL;
    struct aoi__touched *t = array_add(&space->touched);
    *t = (struct aoi__touched){.slot = slot,
                               .rare = c->rare,
                               .pos = {pos[0], pos[1], pos[2]},
                               .appeal = aoi__rare(space, slot)->appeal,
                               .extra = extra,
                               .layers = space->hot[slot].layers};
    c->flags |= AOI__TOUCHED;
    c->rare = space->touched.n - 1;
    return t;
}

/* The index follows entities that were moved, before the flush. */
static void follow(struct aoi_space *space, const uint32_t *slot, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        float from[3];
        uint32_t extra;
        if (i + FETCHED < n) fetch(space, slot[i + FETCHED], 0);
        if (i + FETCHED / 2 < n) fetch(space, slot[i + FETCHED / 2], 1);
        space->ops->where(space, slot[i], from, &extra);
        record(space, slot[i], from, extra);
        space->ops->move(space, slot[i], from);
    }
    aoi__watches_follow(space, slot, n);
}

static void sync(struct aoi_space *space, uint32_t slot)
{
    if (!aoi__moving(space, slot)) return;
    space->moving[slot >> 6] &= ~((uint64_t)1 << (slot & 63));
    space->moving_n--;
    follow(space, &slot, 1);
}

void aoi__sync(struct aoi_space *space)
{
    uint32_t slot[MOVES], from = 0, n;
    while ((n = take_moving(space, &from, slot)) > 0) follow(space, slot, n);
}

/* The entity is about to change, otherwise than by a move: remembers what it is now, unless that is remembered already. */
static struct aoi__touched *touch(struct aoi_space *space, uint32_t slot)
{
    aoi__changed(space);
    sync(space, slot);
    return record(space, slot, space->hot[slot].pos, space->hot[slot].extra);
}

static void forget(struct aoi_space *space, struct aoi__touched *t)
{
    struct aoi__cold *c = &space->cold[t->slot];
    c->flags &= ~(uint32_t)AOI__TOUCHED;
    c->rare = t->rare;
    if (t->payload_replaced) aoi__blob_free(space, t->payload);
}

static void untouch(struct aoi_space *space, uint32_t slot)
{
    struct aoi__cold *c = &space->cold[slot];
    if (!(c->flags & AOI__TOUCHED)) return;
    uint32_t at = c->rare;
    struct aoi__touched *t = &space->touched.at[at];
    forget(space, t);
    array_swap_remove(&space->touched, at);
    if (at < space->touched.n) space->cold[t->slot].rare = at;
}

void aoi__forget_touched(struct aoi_space *space)
{
    for (uint32_t i = 0; i < space->touched.n; i++) forget(space, &space->touched.at[i]);
    space->touched.n = 0;
}

/* The watches of which the box touches either place +- its appeal are to be looked at. */
static void disturb(struct aoi_space *space, const float p[3], float p_appeal, const float q[3], float q_appeal)
{
    float lo[3] = {0}, hi[3] = {0};
    for (uint32_t a = 0; a < space->dims; a++) {
        lo[a] = fminf(p[a] - p_appeal, q[a] - q_appeal);
        hi[a] = fmaxf(p[a] + p_appeal, q[a] + q_appeal);
    }
    space->ops->disturb(space, lo, hi);
}

/* Whoever may see the entity now, or saw it where it was at the last flush with the appeal that it had, is to be looked at. */
static void notify(struct aoi_space *space, uint32_t slot, const float from[3], float from_appeal, uint32_t layers, uint32_t what)
{
    const struct aoi__cold *c = &space->cold[slot];
    if (c->flags & AOI__LARGE || from_appeal > 0) {
        const float *to = space->hot[slot].pos, appeal = aoi__rare(space, slot)->appeal;
        if (aoi__distance2(from, to, space->dims) <= (double)appeal * (double)appeal) {
            disturb(space, from, from_appeal, to, appeal); /* the two boxes overlap, as they mostly do: one box around both */
        } else {
            disturb(space, from, from_appeal, from, from_appeal);
            disturb(space, to, appeal, to, appeal);
        }
    } else {
        space->ops->notify(space, slot, from, layers, what);
    }
    uint32_t watch = space->own[slot].watch;
    if (watch != AOI__NONE) aoi__watch_dirty(space, watch); /* include_self, also where it has no area */
    if (c->flags & AOI__SHOWN) aoi__shown_dirty(space, space->hot[slot].id);
}

/* One that was touched otherwise than by moves alone, or that the index has followed already. */
static void settle_touched(struct aoi_space *space, const struct aoi__touched *t)
{
    struct aoi__hot *h = &space->hot[t->slot];
    const struct aoi__rare *now = aoi__rare(space, t->slot);
    bool moved = h->pos[0] != t->pos[0] || h->pos[1] != t->pos[1] || h->pos[2] != t->pos[2] || h->extra != t->extra;
    bool layers = h->layers != t->layers, payload = t->payload_replaced && !blob_same(t->payload, now->payload);
    if (moved) h->stamp = space->serial;
    if (layers) rare_of(space, t->slot)->layers_stamp = space->serial;
    if (payload) rare_of(space, t->slot)->payload_stamp = space->serial;
    if (layers || payload) space->state_serial = space->serial;
    uint32_t what = (moved ? AOI__MOVED : 0) | (layers || payload ? AOI__STATE : 0);
    if (what != 0 || aoi__rare(space, t->slot)->appeal != t->appeal) notify(space, t->slot, t->pos, t->appeal, h->layers | t->layers, what);
}

/* Those of the slots that have moved since the last flush; the index follows. */
static uint32_t settle_each(struct aoi_space *space, uint32_t *slot, uint32_t n)
{
    uint32_t moved = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct aoi__hot *h = &space->hot[slot[i]];
        float from[3];
        uint32_t extra;
        space->ops->where(space, slot[i], from, &extra);
        if (memcmp(from, h->pos, sizeof from) == 0 && extra == h->extra) continue;
        h->stamp = space->serial;
        space->ops->move(space, slot[i], from);
        space->ops->notify(space, slot[i], from, h->layers, AOI__MOVED);
        slot[moved++] = slot[i];
    }
    return moved;
}

/* Of those that were moved, the ones that merely were are left, and returned how many these are. */
static uint32_t part_moved(struct aoi_space *space, uint32_t *slot, uint32_t n)
{
    uint32_t merely = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (space->touched.n > 0 && space->cold[slot[i]].flags & AOI__TOUCHED)
            follow(space, &slot[i], 1);
        else
            slot[merely++] = slot[i];
    }
    return merely;
}

static void settle_moved(struct aoi_space *space, uint32_t *slot, uint32_t n)
{
    n = part_moved(space, slot, n);
    aoi__watches_follow(space, slot, n); /* also of those that are back where they were: they may have been placed elsewhere meanwhile */
    n = space->ops->settle != NULL ? space->ops->settle(space, slot, n) : settle_each(space, slot, n);
    for (uint32_t i = 0; i < n && space->shown.n > 0; i++)
        if (space->cold[slot[i]].flags & AOI__SHOWN) aoi__shown_dirty(space, space->hot[slot[i]].id);
}

void aoi__settle(struct aoi_space *space)
{
    uint32_t slot[MOVES], from = 0, n;
    while ((n = take_moving(space, &from, slot)) > 0) settle_moved(space, slot, n);
    for (uint32_t i = 0, end = space->touched.n; i < end; i++) {
        if (i + FETCHED < end) fetch(space, space->touched.at[i + FETCHED].slot, 0);
        settle_touched(space, &space->touched.at[i]);
    }
    aoi__forget_touched(space);
}

/* ------------------------------------------------------------------------------------------------------------- commands */

static int check_radius(const struct aoi_space *space, float radius)
{
    float max = space->world->limits.max_radius;
    return isfinite(radius) && aoi__clean(radius) >= 0 && (max == 0 || radius <= max) ? AOI_OK : AOI_EINVAL;
}

static int check_appeal(float appeal)
{
    return isfinite(appeal) && aoi__clean(appeal) >= 0 ? AOI_OK : AOI_EINVAL;
}

/* Those with appeal are followed at once. */
static void set_pos_large(struct aoi_space *space, uint32_t slot, const float pos[3], uint32_t extra)
{
    touch(space, slot);
    space->hot[slot].extra = extra;
    memcpy(space->hot[slot].pos, pos, sizeof space->hot[slot].pos);
    aoi__large_move(space, slot);
    aoi__watches_follow(space, &slot, 1);
}

/* The index and a unit's watch follow at the flush, or when somebody asks. */
static void set_pos(struct aoi_space *space, uint32_t slot, const float pos[3], uint32_t extra)
{
    struct aoi__hot *h = &space->hot[slot];
    if (h->pos[0] == pos[0] && h->pos[1] == pos[1] && h->pos[2] == pos[2] && h->extra == extra) return;
    if (space->large_n > 0 && space->cold[slot].flags & AOI__LARGE) {
        set_pos_large(space, slot, pos, extra);
        return;
    }
    h->extra = extra;
    memcpy(h->pos, pos, sizeof h->pos);
    if (aoi__moving(space, slot)) return;
    space->moving[slot >> 6] |= (uint64_t)1 << (slot & 63);
    space->some_move[slot >> 12] |= (uint64_t)1 << (slot >> 6 & 63);
    space->moving_n++;
    aoi__changed(space);
}

static void set_radius(struct aoi_space *space, uint32_t slot, float radius)
{
    if (space->own[slot].radius == radius) return;
    space->own[slot].radius = radius;
    if (space->own[slot].watch != AOI__NONE) aoi__watch_place(space, space->own[slot].watch);
}

static void set_layers(struct aoi_space *space, uint32_t slot, uint32_t layers)
{
    if (space->hot[slot].layers == layers) return;
    touch(space, slot);
    space->hot[slot].layers = layers;
    if (!(space->cold[slot].flags & AOI__LARGE)) space->ops->relayer(space, slot);
}

/* Into the index or, with appeal, among the large ones. */
static void place(struct aoi_space *space, uint32_t slot)
{
    struct aoi__cold *c = &space->cold[slot];
    if (aoi__rare(space, slot)->appeal == 0) {
        space->ops->insert(space, slot);
        return;
    }
    c->flags |= AOI__LARGE;
    space->large_n++;
    aoi__large_insert(space, slot);
}

static void displace(struct aoi_space *space, uint32_t slot)
{
    struct aoi__cold *c = &space->cold[slot];
    if (!(c->flags & AOI__LARGE)) {
        space->ops->erase(space, slot);
        return;
    }
    aoi__large_erase(space, slot);
    c->flags &= ~(uint32_t)AOI__LARGE;
    space->large_n--;
}

static void set_appeal(struct aoi_space *space, uint32_t slot, float appeal)
{
    if (aoi__rare(space, slot)->appeal == appeal) return;
    touch(space, slot);
    displace(space, slot);
    rare_of(space, slot)->appeal = appeal;
    place(space, slot);
}

/* It only matters to who ranks: max_view, the enter budget. */
static void set_priority(struct aoi_space *space, uint32_t slot, uint32_t priority)
{
    const struct aoi__rare *was = aoi__rare(space, slot);
    if (was->priority == priority) return;
    space->priority_n += (priority != 0) - (uint32_t)(was->priority != 0);
    rare_of(space, slot)->priority = priority;
    aoi__changed(space);
    notify(space, slot, space->hot[slot].pos, aoi__rare(space, slot)->appeal, space->hot[slot].layers, 0);
}

/* Who states an entity anew may know nothing of it any more: it is told anew, too. */
static void set_report(struct aoi_space *space, uint32_t slot, bool report)
{
    struct aoi__cold *c = &space->cold[slot];
    if (report != ((c->flags & AOI__REPORT) != 0)) {
        c->flags = (c->flags & ~(uint32_t)(AOI__REPORT | AOI__OBSERVED | AOI__RESTATE)) | (report ? AOI__REPORT : 0);
        space->away_stale = true; /* it was not counted there */
    }
    if (report) aoi__observe_restate(space, slot);
}

static void set_payload(struct aoi_space *space, uint32_t slot, const void *payload, uint32_t len)
{
    struct aoi__blob *old = aoi__rare(space, slot)->payload;
    if (old == NULL && len == 0) return;
    struct aoi__touched *t = touch(space, slot);
    rare_of(space, slot)->payload = aoi__blob_new(space, payload, len); /* before the old one goes: it may be a copy of that */
    if (t != NULL && !t->payload_replaced) {
        t->payload_replaced = true;
        t->payload = old;
    } else {
        aoi__blob_free(space, old);
    }
}

static void add_new(struct aoi_space *space, aoi_owner owner, const struct aoi_entity *e, const float pos[3])
{
    uint32_t slot = slot_take(space);
    space->hot[slot] = (struct aoi__hot){.id = e->id, .extra = e->extra, .layers = e->layers, .stamp = space->serial + 1};
    memcpy(space->hot[slot].pos, pos, sizeof space->hot[slot].pos);
    space->cold[slot] = (struct aoi__cold){.rare = AOI__NONE, .flags = e->report_observed ? AOI__REPORT : 0};
    if (e->payload_len > 0 || e->appeal != 0 || e->priority != 0)
        *rare_of(space, slot) = (struct aoi__rare){
            .payload = aoi__blob_new(space, e->payload, e->payload_len), .appeal = e->appeal, .priority = e->priority};
    space->own[slot] = (struct aoi__own){.owner = owner, .watch = AOI__NONE, .radius = e->radius};
    owner_link(space, slot);
    aoi__ids_put(&space->ids, aoi__entity_records(space), slot);
    space->entity_n++;
    space->priority_n += e->priority != 0;
    if (idmap_get(&space->shown_map, e->id) != IDMAP_NONE) space->cold[slot].flags |= AOI__SHOWN;
    place(space, slot);
    notify(space, slot, pos, e->appeal, e->layers, 0);
    aoi__changed(space);
}

static void change_owner(struct aoi_space *space, uint32_t slot, aoi_owner owner)
{
    struct aoi__cold *c = &space->cold[slot];
    const struct aoi_sink *sink = &space->world->sink;
    idmap_remove(&space->released, space->hot[slot].id);
    c->flags &= ~(uint32_t)AOI__RELEASED;
    if (c->flags & AOI__REPORT) aoi__observe_restate(space, slot);
    if (space->own[slot].owner == owner) return;
    if (sink->lost != NULL) sink->lost(sink->ctx, space->own[slot].owner, space->id, false, space->hot[slot].id);
    owner_unlink(space, slot);
    space->own[slot].owner = owner;
    owner_link(space, slot);
}

static int adopt(struct aoi_space *space, aoi_owner owner, uint64_t id)
{
    uint32_t slot = aoi__entity_slot(space, id);
    if (slot == AOI__NONE) return AOI_ENOENTITY;
    if (space->own[slot].owner != owner) {
        uint32_t to = idmap_get(&space->released, id);
        if ((to == IDMAP_NONE || (to != 0 && to != owner)) && !aoi__may_take(space, owner, space->own[slot].owner)) return AOI_EOWNER;
    }
    change_owner(space, slot, owner);
    return AOI_OK;
}

int aoi_entity_add(struct aoi_space *space, aoi_owner owner, enum aoi_add_mode mode, const struct aoi_entity *entity)
{
    struct aoi_entity e = *entity;
    float pos[3];
    if (e.id == 0) return AOI_EINVAL;
    if (mode == AOI_ADD_ADOPT) return adopt(space, owner, e.id);
    if ((mode != AOI_ADD_NEW && mode != AOI_ADD_UPSERT) || check_radius(space, e.radius) != AOI_OK || check_appeal(e.appeal) != AOI_OK)
        return AOI_EINVAL;
    int err = aoi__check_pos(space, e.pos, pos);
    if (err != AOI_OK) return err;
    if (e.payload_len > space->world->limits.max_payload) return AOI_ELIMIT;
    e.radius = aoi__clean(e.radius);
    e.appeal = aoi__clean(e.appeal);
    if (e.layers == 0) e.layers = AOI_LAYERS_DEFAULT;
    if (!space->set.extra) e.extra = 0;

    uint32_t slot = aoi__entity_slot(space, e.id);
    if (slot == AOI__NONE) {
        if (space->entity_n >= space->world->limits.max_entities) return AOI_ELIMIT;
        add_new(space, owner, &e, pos);
        return AOI_OK;
    }
    if (mode == AOI_ADD_NEW) return AOI_EDUPENTITY;
    if (space->own[slot].owner != owner) {
        if (!aoi__away(space, space->own[slot].owner)) return AOI_EOWNER;
        change_owner(space, slot, owner);
    }
    set_payload(space, slot, e.payload, e.payload_len);
    set_layers(space, slot, e.layers);
    set_radius(space, slot, e.radius);
    set_pos(space, slot, pos, e.extra);
    set_appeal(space, slot, e.appeal);
    set_priority(space, slot, e.priority);
    set_report(space, slot, e.report_observed);
    return AOI_OK;
}

/* slot: what was found under the id. */
static inline int move(struct aoi_space *space, aoi_owner owner, uint64_t id, uint32_t slot, const float pos[3], const uint32_t *extra)
{
    float to[3];
    int err = check_own(space, owner, id, slot);
    if (err == AOI_OK) err = aoi__check_pos(space, pos, to);
    if (err != AOI_OK) return err;
    space->stats.moves++;
    set_pos(space, slot, to, extra != NULL && space->set.extra ? *extra : space->hot[slot].extra);
    return AOI_OK;
}

int aoi_entity_move(struct aoi_space *space, aoi_owner owner, uint64_t id, const float pos[3], const uint32_t *extra)
{
    return move(space, owner, id, aoi__entity_slot(space, id), pos, extra);
}

/* Whether the ids are those of the slots after the one given, in a row: mostly entities move in the order in which they were added. */
static bool in_a_row(const struct aoi_space *space, const uint64_t *id, size_t n, uint32_t before, uint32_t *slot)
{
    if (before == AOI__NONE || space->slot_n - before <= n) return false;
    for (size_t k = 0; k < n; k++) {
        slot[k] = before + 1 + (uint32_t)k;
        if (space->hot[slot[k]].id != id[k] || !aoi__alive(space, slot[k])) return false;
    }
    return true;
}

/* Likely slots of a few ids, fetched, and their entities too; *last: of the last id before. */
static void guess_slots(struct aoi_space *space, const uint64_t *id, size_t n, uint32_t *last, uint32_t *slot)
{
    if (!in_a_row(space, id, n, *last, slot)) {
        aoi__ids_guess(&space->ids, id, n, slot);
        for (size_t k = 0; k < n; k++) {
            if (slot[k] == AOI__NONE) continue;
            __builtin_prefetch(&space->hot[slot[k]], 1);
            __builtin_prefetch(&space->own[slot[k]]);
        }
    }
    *last = slot[n - 1];
}

size_t aoi_entity_move_many(struct aoi_space *space, aoi_owner owner, size_t n, const uint64_t *id, const float *x, const float *y, const float *z,
                            const uint32_t *extra, void (*fail)(void *ctx, size_t i, int err), void *ctx)
{
    size_t failed = 0;
    uint32_t slot[AOI__GUESSES], last = AOI__NONE;
    for (size_t from = 0; from < n; from += AOI__GUESSES) {
        size_t some = n - from < AOI__GUESSES ? n - from : AOI__GUESSES;
        guess_slots(space, id + from, some, &last, slot);
        for (size_t k = 0, i = from; k < some; k++, i++) {
            const float pos[3] = {x[i], y[i], z != NULL ? z[i] : 0.0f};
            if (slot[k] != AOI__NONE && space->hot[slot[k]].id != id[i]) slot[k] = aoi__entity_slot(space, id[i]);
            int err = move(space, owner, id[i], slot[k], pos, extra != NULL ? &extra[i] : NULL);
            if (err == AOI_OK) continue;
            failed++;
            fail(ctx, i, err);
        }
    }
    return n - failed;
}

void aoi__entity_remove(struct aoi_space *space, uint32_t slot)
{
    CHECK(space->flush_phase == AOI__FLUSH_NONE);
    struct aoi__cold *c = &space->cold[slot];
    sync(space, slot);
    if (space->own[slot].watch != AOI__NONE) aoi__unit_gone(space, space->own[slot].watch);
    const struct aoi__touched *t = c->flags & AOI__TOUCHED ? &space->touched.at[c->rare] : NULL;
    if (t != NULL)
        notify(space, slot, t->pos, t->appeal, space->hot[slot].layers | t->layers, 0);
    else
        notify(space, slot, space->hot[slot].pos, aoi__rare(space, slot)->appeal, space->hot[slot].layers, 0);
    if (c->flags & AOI__PUBLISHED) aoi__publisher_gone(space, slot);
    if (c->flags & AOI__RELEASED) idmap_remove(&space->released, space->hot[slot].id);
    displace(space, slot);
    space->priority_n -= aoi__rare(space, slot)->priority != 0;
    untouch(space, slot);
    c->flags = 0;
    owner_unlink(space, slot);
    aoi__ids_remove(&space->ids, aoi__entity_records(space), slot);
    rare_free(space, slot);
    space->alive[slot >> 5] &= ~(1u << (slot & 31));
    space->entity_n--;
    aoi__changed(space);
    if (c->told == 0) aoi__slot_free(space, slot);
}

int aoi_entity_remove(struct aoi_space *space, aoi_owner owner, uint64_t id)
{
    uint32_t slot;
    int err = find_own(space, owner, id, &slot);
    if (err == AOI_OK) aoi__entity_remove(space, slot);
    return err;
}

int aoi_entity_set_radius(struct aoi_space *space, aoi_owner owner, uint64_t id, float radius)
{
    uint32_t slot;
    int err = find_own(space, owner, id, &slot);
    if (err == AOI_OK) err = check_radius(space, radius);
    if (err == AOI_OK) set_radius(space, slot, aoi__clean(radius));
    return err;
}

int aoi_entity_set_layers(struct aoi_space *space, aoi_owner owner, uint64_t id, uint32_t layers)
{
    uint32_t slot;
    int err = find_own(space, owner, id, &slot);
    if (err == AOI_OK) set_layers(space, slot, layers);
    return err;
}

int aoi_entity_set_payload(struct aoi_space *space, aoi_owner owner, uint64_t id, const void *payload, uint32_t payload_len)
{
    uint32_t slot;
    int err = find_own(space, owner, id, &slot);
    if (err == AOI_OK && payload_len > space->world->limits.max_payload) err = AOI_ELIMIT;
    if (err == AOI_OK) set_payload(space, slot, payload, payload_len);
    return err;
}

int aoi_entity_set_appeal(struct aoi_space *space, aoi_owner owner, uint64_t id, float appeal)
{
    uint32_t slot;
    int err = find_own(space, owner, id, &slot);
    if (err == AOI_OK) err = check_appeal(appeal);
    if (err == AOI_OK) set_appeal(space, slot, aoi__clean(appeal));
    return err;
}

int aoi_entity_set_priority(struct aoi_space *space, aoi_owner owner, uint64_t id, uint32_t priority)
{
    uint32_t slot;
    int err = find_own(space, owner, id, &slot);
    if (err == AOI_OK) set_priority(space, slot, priority);
    return err;
}

int aoi_entity_release(struct aoi_space *space, aoi_owner owner, uint64_t id, aoi_owner to)
{
    uint32_t slot;
    int err = find_own(space, owner, id, &slot);
    if (err != AOI_OK) return err;
    if (to != 0) aoi__owned(space, to)->heir = true; /* so that its end is noticed here */
    idmap_put(&space->released, id, to);
    space->cold[slot].flags |= AOI__RELEASED;
    return AOI_OK;
}

int aoi_entity_get(const struct aoi_space *space, uint64_t id, struct aoi_entity *out)
{
    if (id == 0) return AOI_EINVAL;
    uint32_t slot = aoi__entity_slot(space, id);
    if (slot == AOI__NONE) return AOI_ENOENTITY;
    const struct aoi__hot *h = &space->hot[slot];
    const struct aoi__cold *c = &space->cold[slot];
    const struct aoi__rare *rare = aoi__rare(space, slot);
    *out = (struct aoi_entity){.id = id,
                               .pos = {h->pos[0], h->pos[1], h->pos[2]},
                               .extra = h->extra,
                               .radius = space->own[slot].radius,
                               .layers = h->layers,
                               .payload = rare->payload == NULL ? NULL : rare->payload->at,
                               .payload_len = rare->payload == NULL ? 0 : rare->payload->len,
                               .appeal = rare->appeal,
                               .priority = rare->priority,
                               .report_observed = (c->flags & AOI__REPORT) != 0,
                               .owner = space->own[slot].owner};
    uint32_t watch = space->own[slot].watch;
    if (watch != AOI__NONE) out->subscribers = space->watches.at[watch].viewers.n;
    return AOI_OK;
}
