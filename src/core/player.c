/* player.c: players, their subscriptions and viewports, and the areas that these watch. */
#include <math.h>
#include <string.h>

#include "core/cover.h"
#include "core/space.h"

/* ------------------------------------------------------------------------------------------------------------- watches */

float aoi__player_margin(const struct aoi_space *space, const struct aoi__player *p)
{
    return p->set.leave_margin != 0 ? p->set.leave_margin : space->set.leave_margin;
}

/* Margin and mask of a watch cover those of all its players. O(players of the watch). */
static void watch_reckon(struct aoi_space *space, struct aoi__watch *w)
{
    w->margin = 0;
    w->mask = 0;
    for (uint32_t i = 0; i < w->viewers.n; i++) {
        const struct aoi__player *p = &space->players.at[w->viewers.at[i].player];
        float margin = aoi__player_margin(space, p);
        if (margin > w->margin) w->margin = margin;
        w->mask |= p->set.mask;
    }
}

/* Number of the flush that tells of what happens now. */
static uint32_t next_told(const struct aoi_space *space)
{
    return (space->flush + (space->flush_phase == AOI__FLUSH_NONE)) & AOI__PLACED;
}

void aoi__watch_place(struct aoi_space *space, uint32_t watch)
{
    struct aoi__watch *w = &space->watches.at[watch];
    aoi__watch_dirty(space, watch);
    w->placed = next_told(space);
    w->stay_lo[0] = INFINITY; /* nowhere, unless its area or the index says more */
    if (w->slot != AOI__NONE && space->own[w->slot].radius == 0) {
        if (w->active) space->ops->watch_clear(space, watch);
        w->active = false;
        return;
    }
    aoi__watch_area(space, w);
    w->active = true;
    space->ops->watch_set(space, watch);
}

#define AHEAD 16 /* units of which the watch is fetched beforehand */
#define FAR 8    /* watches that touch other cells are placed so many at once, so that what the index knows of them can be fetched before */

static void place_far(struct aoi_space *space, const uint32_t *watch, uint32_t n)
{
    for (uint32_t level = 1; space->ops->watch_fetch != NULL && level < AOI__FETCHES; level++)
        for (uint32_t i = 0; i < n; i++) space->ops->watch_fetch(space, watch[i], level);
    for (uint32_t i = 0; i < n; i++) aoi__watch_place(space, watch[i]);
}

void aoi__watches_follow(struct aoi_space *space, const uint32_t *slot, uint32_t n)
{
    const struct aoi__own *own = space->own;
    const uint32_t placed = next_told(space), dims = space->dims;
    const bool box = space->set.shape == AOI_SHAPE_BOX, cells = space->set.shape == AOI_SHAPE_CELLS;
    uint32_t far[FAR], far_n = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t watch = own[slot[i]].watch;
        if (i + AHEAD < n && own[slot[i + AHEAD]].watch != AOI__NONE) {
            __builtin_prefetch(&space->watches.at[own[slot[i + AHEAD]].watch], 1);
            __builtin_prefetch(&space->watches.at[own[slot[i + AHEAD]].watch].viewers, 1);
        }
        if (i + AHEAD / 2 < n && own[slot[i + AHEAD / 2]].watch != AOI__NONE)
            __builtin_prefetch(space->watches.at[own[slot[i + AHEAD / 2]].watch].viewers.at);
        if (watch == AOI__NONE) continue;
        struct aoi__watch *w = &space->watches.at[watch];
        const float *pos = space->hot[slot[i]].pos;
        if (!aoi__inside(pos, w->stay_lo, w->stay_hi, dims)) {
            if (space->ops->watch_fetch != NULL) space->ops->watch_fetch(space, watch, 0);
            far[far_n++] = watch;
            if (far_n == FAR) place_far(space, far, far_n);
            far_n %= FAR;
            continue;
        }
        aoi__watch_dirty(space, watch);
        if (cells) continue; /* its boxes are what they were */
        if (box)
            aoi__unit_boxes(w, dims, pos, own[slot[i]].radius);
        else
            aoi__watch_area(space, w);
        w->placed = placed;
    }
    place_far(space, far, far_n);
}

static uint32_t watch_new(struct aoi_space *space, uint32_t slot)
{
    uint32_t w = space->watches.n;
    if (space->free_watches.n > 0) {
        w = space->free_watches.at[--space->free_watches.n];
    } else {
        *array_add(&space->watches) = (struct aoi__watch){0};
        if (w % 64 == 0) *array_add(&space->marked) = 0;
    }
    struct aoi__watch *watch = &space->watches.at[w];
    watch->slot = slot;
    watch->margin = 0;
    watch->mask = 0;
    return w;
}

/* The last player has left it. */
static void watch_free(struct aoi_space *space, uint32_t watch)
{
    struct aoi__watch *w = &space->watches.at[watch];
    CHECK(w->viewers.n == 0);
    if (w->active) space->ops->watch_clear(space, watch);
    w->active = false;
    space->marked.at[watch >> 6] &= ~((uint64_t)1 << (watch & 63));
    *array_add(&space->free_watches) = watch;
}

/* Its margin and mask may then be more than is needed: that is only slower. */
static void watch_drop_viewer(struct aoi_space *space, uint32_t watch, uint32_t viewer)
{
    struct aoi__watch *w = &space->watches.at[watch];
    array_swap_remove(&w->viewers, viewer);
    if (viewer == w->viewers.n) return;
    struct aoi__viewer moved = w->viewers.at[viewer];
    if (moved.unit != AOI__NONE) space->players.at[moved.player].units.at[moved.unit].viewer = viewer;
}

/* Returns the viewer's number in the watch. unit AOI__NONE: the watch is the player's viewport. */
static uint32_t watch_add_viewer(struct aoi_space *space, uint32_t watch, uint32_t player, uint32_t unit)
{
    struct aoi__watch *w = &space->watches.at[watch];
    const struct aoi__player *p = &space->players.at[player];
    float margin = aoi__player_margin(space, p);
    *pool_array_add(&space->pool, &w->viewers) = (struct aoi__viewer){.player = player, .unit = unit};
    space->marked.at[watch >> 6] &= ~((uint64_t)1 << (watch & 63));
    w->mask |= p->set.mask;
    bool first = w->viewers.n == 1, grows = margin > w->margin;
    if (grows) w->margin = margin;
    if (unit != AOI__NONE && (first || grows)) aoi__watch_place(space, watch);
    return space->watches.at[watch].viewers.n - 1;
}

void aoi__margins_changed(struct aoi_space *space)
{
    for (uint32_t w = 0; w < space->watches.n; w++) {
        if (space->watches.at[w].viewers.n == 0) continue;
        watch_reckon(space, &space->watches.at[w]);
        aoi__watch_place(space, w);
    }
}

/* The player's margin or mask changed. */
static void player_watches_changed(struct aoi_space *space, uint32_t player)
{
    const struct aoi__player *p = &space->players.at[player];
    for (uint32_t i = 0; i <= p->units.n; i++) {
        uint32_t watch = i < p->units.n ? p->units.at[i].watch : p->viewport;
        if (watch == AOI__NONE) continue;
        watch_reckon(space, &space->watches.at[watch]);
        aoi__watch_place(space, watch);
    }
    space->players.at[player].cover.stale = true;
}

/* ------------------------------------------------------------------------------------------------------------- players */

static void owner_link(struct aoi_space *space, uint32_t player)
{
    struct aoi__player *p = &space->players.at[player];
    struct aoi__owned *owned = aoi__owned(space, p->owner);
    p->owner_prev = AOI__NONE;
    p->owner_next = owned->players;
    if (owned->players != AOI__NONE) space->players.at[owned->players].owner_prev = player;
    owned->players = player;
    owned->player_n++;
}

static void owner_unlink(struct aoi_space *space, uint32_t player)
{
    const struct aoi__player *p = &space->players.at[player];
    struct aoi__owned *owned = aoi__owned(space, p->owner);
    owned->player_n--;
    if (p->owner_prev != AOI__NONE)
        space->players.at[p->owner_prev].owner_next = p->owner_next;
    else
        owned->players = p->owner_next;
    if (p->owner_next != AOI__NONE) space->players.at[p->owner_next].owner_prev = p->owner_prev;
}

static struct aoi__records player_records(const struct aoi_space *space)
{
    return (struct aoi__records){space->players.at, sizeof *space->players.at, space->players.n, NULL};
}

uint32_t aoi__player_slot(const struct aoi_space *space, uint64_t id)
{
    return aoi__ids_get(&space->player_ids, player_records(space), id);
}

static struct aoi__player *player_add(struct aoi_space *space, aoi_owner owner, uint64_t id)
{
    uint32_t p;
    if (space->free_players.n > 0) {
        p = space->free_players.at[--space->free_players.n];
    } else {
        p = space->players.n;
        array_add(&space->players);
        if (p % 64 == 0) *array_add(&space->dirty) = 0;
    }
    space->players.at[p] = (struct aoi__player){.id = id,
                                                .owner = owner,
                                                .released_to = AOI__NONE,
                                                .set.mask = UINT32_MAX,
                                                .viewport = AOI__NONE,
                                                .cover.watch = AOI__NONE,
                                                .post = AOI__NONE,
                                                .served = space->serial};
    owner_link(space, p);
    aoi__ids_put(&space->player_ids, player_records(space), p);
    space->player_n++;
    return &space->players.at[p];
}

/* Finds a player that the owner may command. */
static int find_own(const struct aoi_space *space, aoi_owner owner, uint64_t id, uint32_t *player)
{
    if (id == 0) return AOI_EINVAL;
    *player = aoi__player_slot(space, id);
    if (*player == AOI__NONE) return AOI_ENOPLAYER;
    return space->players.at[*player].owner == owner ? AOI_OK : AOI_EOWNER;
}

/* Likewise, for commands that open an unknown player: AOI_OK with *player AOI__NONE says that there is room for it. */
static int find_or_room(const struct aoi_space *space, aoi_owner owner, uint64_t id, uint32_t *player)
{
    int err = find_own(space, owner, id, player);
    if (err != AOI_ENOPLAYER) return err;
    return space->player_n < space->world->limits.max_players && space->player_n < AOI_PLAYERS_MAX ? AOI_OK : AOI_ELIMIT;
}

static uint32_t known_or_new(struct aoi_space *space, aoi_owner owner, uint64_t id, uint32_t player)
{
    if (player == AOI__NONE) player = (uint32_t)(player_add(space, owner, id) - space->players.at);
    aoi__player_dirty(space, player);
    return player;
}

void aoi__player_away(struct aoi_space *space, uint32_t player, bool away)
{
    struct aoi__player *p = &space->players.at[player];
    if (p->away == away) return;
    p->away = away;
    aoi__cover_end(space, p); /* its view stands still, and the pages do not */
    space->away_n += away ? 1 : UINT32_MAX;
    aoi__observe_away(space, p);
    if (away) return;
    if (space->flush_phase != AOI__FLUSH_NONE) p->lost += space->messages.n; /* the flush may have passed it by */
    p->full = true;
    aoi__player_dirty(space, player);
}

/* Another owner's player changes hands, if it was released to this one or to anybody, or if it may be taken without that. */
static int take_over(struct aoi_space *space, aoi_owner owner, uint32_t player)
{
    struct aoi__player *p = &space->players.at[player];
    const struct aoi_sink *sink = &space->world->sink;
    if (p->released_to != 0 && p->released_to != owner && !aoi__may_take(space, owner, p->owner)) return AOI_EOWNER;
    aoi__player_away(space, player, false);
    if (sink->lost != NULL) sink->lost(sink->ctx, p->owner, space->id, true, p->id);
    owner_unlink(space, player);
    p->owner = owner;
    owner_link(space, player);
    p->released_to = AOI__NONE;
    p->full = true;
    return AOI_OK;
}

int aoi_player_open(struct aoi_space *space, aoi_owner owner, uint64_t player, const struct aoi_player_settings *settings)
{
    uint32_t i;
    if (!isfinite(settings->leave_margin) || settings->leave_margin < 0 || settings->max_view > AOI_MAX_VIEW) return AOI_EINVAL;
    int err = find_or_room(space, owner, player, &i);
    if (err == AOI_EOWNER && settings->take_over) err = take_over(space, owner, i);
    if (err != AOI_OK) return err;
    bool there = i != AOI__NONE;
    i = known_or_new(space, owner, player, i);
    struct aoi__player *p = &space->players.at[i];
    if (settings->take_over) p->released_to = AOI__NONE;
    if (there && settings->keep) return AOI_OK;
    p->plain = false;
    struct aoi_player_settings old = p->set;
    p->set = *settings;
    p->set.leave_margin = aoi__clean(settings->leave_margin);
    if (p->set.mask == 0) p->set.mask = UINT32_MAX;
    if (old.presence_only && !p->set.presence_only) p->full = true;
    if (old.leave_margin != p->set.leave_margin || old.mask != p->set.mask) player_watches_changed(space, i);
    return AOI_OK;
}

aoi_owner aoi_player_owner(const struct aoi_space *space, uint64_t player)
{
    uint32_t p = player == 0 ? AOI__NONE : aoi__player_slot(space, player);
    return p == AOI__NONE ? 0 : space->players.at[p].owner;
}

bool aoi_player_has_viewport(const struct aoi_space *space, uint64_t player)
{
    uint32_t p = player == 0 ? AOI__NONE : aoi__player_slot(space, player);
    return p != AOI__NONE && space->players.at[p].viewport != AOI__NONE;
}

int aoi_player_release(struct aoi_space *space, aoi_owner owner, uint64_t player, aoi_owner to)
{
    uint32_t p;
    int err = find_own(space, owner, player, &p);
    if (err != AOI_OK) return err;
    if (to != 0) aoi__owned(space, to)->heir = true; /* so that its end is noticed here */
    space->players.at[p].released_to = to;
    return err;
}

static void end_subscription(struct aoi_space *space, uint32_t player, uint32_t unit)
{
    struct aoi__player *p = &space->players.at[player];
    struct aoi__unit u = p->units.at[unit];
    p->plain = false;
    uint32_t slot = space->watches.at[u.watch].slot;
    array_swap_remove(&p->units, unit);
    if (unit < p->units.n) space->watches.at[p->units.at[unit].watch].viewers.at[p->units.at[unit].viewer].unit = unit;
    watch_drop_viewer(space, u.watch, u.viewer);
    if (space->cold[slot].flags & AOI__REPORT) aoi__observe_check(space, slot);
    if (space->watches.at[u.watch].viewers.n > 0) return;
    watch_free(space, u.watch);
    space->own[slot].watch = AOI__NONE;
}

static void clear_viewport(struct aoi_space *space, uint32_t player)
{
    struct aoi__player *p = &space->players.at[player];
    if (p->viewport == AOI__NONE) return;
    p->plain = false;
    watch_drop_viewer(space, p->viewport, 0);
    watch_free(space, p->viewport);
    p->viewport = AOI__NONE;
}

/* ------------------------------------------------------------------------------------------------------------- overrides */

void aoi__shown_dirty(struct aoi_space *space, uint64_t id)
{
    const struct aoi__shown *shown = &space->shown.at[idmap_get(&space->shown_map, id)];
    for (uint32_t i = 0; i < shown->players.n; i++) aoi__player_dirty(space, shown->players.at[i]);
}

static void show(struct aoi_space *space, uint32_t player, uint64_t id)
{
    uint32_t i = idmap_get(&space->shown_map, id), slot = aoi__entity_slot(space, id);
    if (i == AOI__NONE) {
        i = space->shown.n;
        *array_add(&space->shown) = (struct aoi__shown){.id = id};
        idmap_put(&space->shown_map, id, i);
        if (slot != AOI__NONE) space->cold[slot].flags |= AOI__SHOWN;
    }
    *array_add(&space->shown.at[i].players) = player;
}

static void unshow(struct aoi_space *space, uint32_t player, uint64_t id)
{
    uint32_t i = idmap_get(&space->shown_map, id), slot = aoi__entity_slot(space, id);
    struct aoi__shown *shown = &space->shown.at[i];
    uint32_t k = shown->players.n - 1;
    while (shown->players.at[k] != player) k--; /* when all go the last ones go first */
    array_swap_remove(&shown->players, k);
    if (shown->players.n > 0) return;
    array_clear(&shown->players);
    idmap_remove(&space->shown_map, id);
    array_swap_remove(&space->shown, i);
    if (i < space->shown.n) idmap_put(&space->shown_map, space->shown.at[i].id, i);
    if (slot != AOI__NONE) space->cold[slot].flags &= ~(uint32_t)AOI__SHOWN;
}

static void drop_override(struct aoi_space *space, uint32_t player, uint32_t i)
{
    struct aoi__player *p = &space->players.at[player];
    struct aoi__override o = p->overrides.at[i];
    array_swap_remove(&p->overrides, i);
    if (o.show) unshow(space, player, o.id);
}

void aoi__forget_overrides(struct aoi_space *space)
{
    for (uint32_t p = 0; p < space->players.n; p++) array_clear(&space->players.at[p].overrides);
    for (uint32_t i = 0; i < space->shown.n; i++) array_clear(&space->shown.at[i].players);
    array_clear(&space->shown);
    idmap_clear(&space->shown_map);
}

int aoi_player_override(struct aoi_space *space, aoi_owner owner, uint64_t player, uint64_t entity, enum aoi_override kind)
{
    uint32_t i, k = 0;
    int err = find_own(space, owner, player, &i);
    if (err != AOI_OK) return err;
    if (entity == 0 || kind < AOI_OVERRIDE_NONE || kind > AOI_OVERRIDE_SHOW) return AOI_EINVAL;
    struct aoi__player *p = &space->players.at[i];
    while (k < p->overrides.n && p->overrides.at[k].id != entity) k++;
    if (kind != AOI_OVERRIDE_NONE && k == p->overrides.n && k >= space->world->limits.max_overrides) return AOI_ELIMIT;
    if (k < p->overrides.n) drop_override(space, i, k);
    if (kind == AOI_OVERRIDE_SHOW) show(space, i, entity);
    if (kind != AOI_OVERRIDE_NONE) *array_add(&p->overrides) = (struct aoi__override){.id = entity, .show = kind == AOI_OVERRIDE_SHOW};
    p->plain = false;
    aoi__player_dirty(space, i);
    return AOI_OK;
}

/* ------------------------------------------------------------------------------------------------------------- closing */

void aoi__player_close(struct aoi_space *space, uint32_t player, bool tell)
{
    CHECK(space->flush_phase == AOI__FLUSH_NONE);
    struct aoi__player *p = &space->players.at[player];
    const struct aoi_sink *sink = &space->world->sink;
    if (tell && sink->deliver != NULL) {
        struct aoi_delta delta = {.space = space->id,
                                  .flush = space->flush,
                                  .player = p->id,
                                  .seq = p->seq + 1,
                                  .owner = p->owner,
                                  .closed = true,
                                  .messages_lost = p->lost};
        sink->deliver(sink->ctx, &delta);
    }
    aoi__player_away(space, player, false);
    aoi__cover_end(space, p);
    while (p->units.n > 0) end_subscription(space, player, p->units.n - 1);
    clear_viewport(space, player);
    for (uint32_t i = 0; i < p->told.n; i++) aoi__slot_untold(space, p->told.at[i] & AOI__TOLD_SLOT);
    while (p->overrides.n > 0) drop_override(space, player, p->overrides.n - 1);
    owner_unlink(space, player);
    aoi__ids_remove(&space->player_ids, player_records(space), player);
    pool_array_clear(&space->pool, &p->units);
    array_clear(&p->overrides);
    aoi__cover_free(space, &p->cover);
    array_clear(&p->told);
    array_clear(&p->since);
    p->id = 0;
    space->dirty.at[player >> 6] &= ~((uint64_t)1 << (player & 63));
    *array_add(&space->free_players) = player;
    space->player_n--;
}

int aoi_player_close(struct aoi_space *space, aoi_owner owner, uint64_t player)
{
    uint32_t p;
    int err = find_own(space, owner, player, &p);
    if (err == AOI_OK) aoi__player_close(space, p, true);
    return err;
}

/* ------------------------------------------------------------------------------------------------------------- subscriptions */

/* Place of the subscription in the player's units, or AOI__NONE. */
static uint32_t find_unit(const struct aoi__player *p, uint32_t watch)
{
    for (uint32_t i = 0; i < p->units.n; i++)
        if (p->units.at[i].watch == watch) return i;
    return AOI__NONE;
}

int aoi_subscribe(struct aoi_space *space, aoi_owner owner, uint64_t player, uint64_t entity, bool include_self)
{
    uint32_t p;
    int err = find_or_room(space, owner, player, &p);
    if (err != AOI_OK) return err;
    if (entity == 0) return AOI_EINVAL;
    uint32_t slot = aoi__entity_slot(space, entity);
    if (slot == AOI__NONE) return AOI_ENOENTITY;

    uint32_t watch = space->own[slot].watch;
    uint32_t unit = p == AOI__NONE || watch == AOI__NONE ? AOI__NONE : find_unit(&space->players.at[p], watch);
    uint32_t units = p == AOI__NONE ? 0 : space->players.at[p].units.n; /* the new one's number */
    if (unit == AOI__NONE && units >= space->world->limits.max_units) return AOI_ELIMIT;
    p = known_or_new(space, owner, player, p);
    space->players.at[p].plain = false;
    if (unit != AOI__NONE) {
        space->players.at[p].units.at[unit].include_self = include_self;
        return AOI_OK;
    }
    bool first = watch == AOI__NONE;
    if (first) watch = space->own[slot].watch = watch_new(space, slot);
    uint32_t viewer = watch_add_viewer(space, watch, p, units);
    *pool_array_add(&space->pool, &space->players.at[p].units) = (struct aoi__unit){.watch = watch, .viewer = viewer, .include_self = include_self};
    if (space->cold[slot].flags & AOI__REPORT) aoi__observe_check(space, slot);
    return AOI_OK;
}

int aoi_unsubscribe(struct aoi_space *space, aoi_owner owner, uint64_t player, uint64_t entity)
{
    uint32_t p;
    int err = find_own(space, owner, player, &p);
    if (err != AOI_OK) return err;
    if (entity == 0) return AOI_EINVAL;
    uint32_t slot = aoi__entity_slot(space, entity);
    uint32_t watch = slot == AOI__NONE ? AOI__NONE : space->own[slot].watch;
    uint32_t unit = watch == AOI__NONE ? AOI__NONE : find_unit(&space->players.at[p], watch);
    if (unit == AOI__NONE) return AOI_ENOENTITY;
    end_subscription(space, p, unit);
    aoi__player_dirty(space, p);
    return AOI_OK;
}

void aoi__unit_gone(struct aoi_space *space, uint32_t watch)
{
    for (uint32_t n = space->watches.at[watch].viewers.n; n-- > 0;) {
        struct aoi__viewer viewer = space->watches.at[watch].viewers.at[n];
        aoi__player_dirty(space, viewer.player);
        end_subscription(space, viewer.player, viewer.unit);
    }
}

/* ------------------------------------------------------------------------------------------------------------- viewports, resync */

int aoi_viewport_set(struct aoi_space *space, aoi_owner owner, uint64_t player, const float min[3], const float max[3])
{
    uint32_t p;
    float lo[3], hi[3];
    int err = find_or_room(space, owner, player, &p);
    if (err == AOI_OK) err = aoi__check_box(space, min, max, lo, hi);
    if (err != AOI_OK) return err;
    p = known_or_new(space, owner, player, p);
    uint32_t watch = space->players.at[p].viewport;
    if (watch == AOI__NONE) {
        watch = space->players.at[p].viewport = watch_new(space, AOI__NONE);
        watch_add_viewer(space, watch, p, AOI__NONE);
        space->players.at[p].plain = false;
    }
    struct aoi__watch *w = &space->watches.at[watch];
    memcpy(w->base_lo, lo, sizeof lo);
    memcpy(w->base_hi, hi, sizeof hi);
    aoi__watch_place(space, watch);
    return AOI_OK;
}

int aoi_viewport_clear(struct aoi_space *space, aoi_owner owner, uint64_t player)
{
    uint32_t p;
    int err = find_own(space, owner, player, &p);
    if (err != AOI_OK) return err;
    clear_viewport(space, p);
    aoi__player_dirty(space, p);
    return AOI_OK;
}

int aoi_resync(struct aoi_space *space, aoi_owner owner, uint64_t player)
{
    uint32_t p;
    if (player != 0) {
        int err = find_own(space, owner, player, &p);
        if (err != AOI_OK) return err;
        space->players.at[p].full = true;
        aoi__player_dirty(space, p);
        return AOI_OK;
    }
    for (p = aoi__owned(space, owner)->players; p != AOI__NONE; p = space->players.at[p].owner_next) {
        space->players.at[p].full = true;
        aoi__player_dirty(space, p);
    }
    return AOI_OK;
}
