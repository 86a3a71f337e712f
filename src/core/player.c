/* player.c: players, their subscriptions and viewports, and the areas that these watch. */
#include <string.h>

#include "core/space.h"

/* ------------------------------------------------------------------------------------------------------------- watches */

static uint32_t watch_new(struct aoi_space *space, uint32_t slot)
{
    uint32_t w = space->watches.n;
    if (space->free_watches.n > 0) {
        w = space->free_watches.at[--space->free_watches.n];
    } else {
        *array_add(&space->watches) = (struct aoi__watch){0};
    }
    space->watches.at[w].slot = slot;
    return w;
}

/* The last player has left it. */
static void watch_free(struct aoi_space *space, uint32_t watch)
{
    struct aoi__watch *w = &space->watches.at[watch];
    CHECK(w->players.n == 0);
    if (w->active) space->ops->watch_clear(space, watch);
    w->active = false;
    *array_add(&space->free_watches) = watch;
}

static void watch_drop_player(struct aoi_space *space, uint32_t watch, uint32_t player)
{
    struct aoi__watch *w = &space->watches.at[watch];
    uint32_t i = w->players.n - 1; /* from behind, where the player stands when all of them go, one after the other */
    while (w->players.at[i] != player) i--;
    array_swap_remove(&w->players, i);
}

void aoi__unit_changed(struct aoi_space *space, uint32_t watch)
{
    struct aoi__watch *w = &space->watches.at[watch];
    float radius = space->cold[w->slot].radius;
    aoi__watch_dirty(space, watch);
    if (radius == 0) {
        if (w->active) space->ops->watch_clear(space, watch);
        w->active = false;
        return;
    }
    aoi__unit_area(space, space->hot[w->slot].pos, radius, w->lo, w->hi);
    w->active = true;
    space->ops->watch_set(space, watch);
}

/* ------------------------------------------------------------------------------------------------------------- players */

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
    struct aoi__owned *owned = aoi__owned(space, owner);
    space->players.at[p] = (struct aoi__player){.id = id,
                                                .owner = owner,
                                                .owner_prev = AOI__NONE,
                                                .owner_next = owned->players,
                                                .mask = UINT32_MAX,
                                                .viewport = AOI__NONE,
                                                .served = space->serial};
    if (owned->players != AOI__NONE) space->players.at[owned->players].owner_prev = p;
    owned->players = p;
    idmap_put(&space->player_map, id, p);
    space->player_n++;
    return &space->players.at[p];
}

/* Finds a player that the owner may command. */
static int find_own(const struct aoi_space *space, aoi_owner owner, uint64_t id, uint32_t *player)
{
    if (id == 0) return AOI_EINVAL;
    *player = idmap_get(&space->player_map, id);
    if (*player == IDMAP_NONE) return AOI_ENOPLAYER;
    return space->players.at[*player].owner == owner ? AOI_OK : AOI_EOWNER;
}

/* Likewise, for commands that open an unknown player: AOI_OK with *player AOI__NONE says that there is room for it. */
static int find_or_room(const struct aoi_space *space, aoi_owner owner, uint64_t id, uint32_t *player)
{
    int err = find_own(space, owner, id, player);
    if (err != AOI_ENOPLAYER) return err;
    return space->player_n < space->world->limits.max_players ? AOI_OK : AOI_ELIMIT;
}

static uint32_t known_or_new(struct aoi_space *space, aoi_owner owner, uint64_t id, uint32_t player)
{
    if (player == IDMAP_NONE) player = (uint32_t)(player_add(space, owner, id) - space->players.at);
    aoi__player_dirty(space, player);
    return player;
}

int aoi_player_open(struct aoi_space *space, aoi_owner owner, uint64_t player, uint32_t mask)
{
    uint32_t p;
    int err = find_or_room(space, owner, player, &p);
    if (err != AOI_OK) return err;
    p = known_or_new(space, owner, player, p);
    space->players.at[p].mask = mask == 0 ? UINT32_MAX : mask;
    return AOI_OK;
}

static void end_subscription(struct aoi_space *space, uint32_t player, uint32_t unit)
{
    struct aoi__player *p = &space->players.at[player];
    uint32_t watch = p->units.at[unit].watch, slot = space->watches.at[watch].slot;
    array_swap_remove(&p->units, unit);
    watch_drop_player(space, watch, player);
    if (space->watches.at[watch].players.n > 0) return;
    watch_free(space, watch);
    space->cold[slot].watch = AOI__NONE;
}

static void clear_viewport(struct aoi_space *space, uint32_t player)
{
    struct aoi__player *p = &space->players.at[player];
    if (p->viewport == AOI__NONE) return;
    watch_drop_player(space, p->viewport, player);
    watch_free(space, p->viewport);
    p->viewport = AOI__NONE;
}

void aoi__player_close(struct aoi_space *space, uint32_t player, bool tell)
{
    struct aoi__player *p = &space->players.at[player];
    const struct aoi_sink *sink = &space->world->sink;
    if (tell && sink->deliver != NULL) {
        struct aoi_delta delta = {.space = space->id, .flush = space->flush, .player = p->id, .seq = p->seq + 1, .owner = p->owner, .closed = true};
        sink->deliver(sink->ctx, &delta);
    }
    while (p->units.n > 0) end_subscription(space, player, p->units.n - 1);
    clear_viewport(space, player);
    for (uint32_t i = 0; i < p->told.n; i++) aoi__slot_untold(space, p->told.at[i] & ~AOI__OWED);
    if (p->owner_prev != AOI__NONE)
        space->players.at[p->owner_prev].owner_next = p->owner_next;
    else
        aoi__owned(space, p->owner)->players = p->owner_next;
    if (p->owner_next != AOI__NONE) space->players.at[p->owner_next].owner_prev = p->owner_prev;
    idmap_remove(&space->player_map, p->id);
    array_clear(&p->units);
    array_clear(&p->told);
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
    if (slot == IDMAP_NONE) return AOI_ENOENTITY;

    uint32_t watch = space->cold[slot].watch;
    uint32_t unit = p == IDMAP_NONE || watch == AOI__NONE ? AOI__NONE : find_unit(&space->players.at[p], watch);
    uint32_t units = p == IDMAP_NONE ? 0 : space->players.at[p].units.n;
    if (unit == AOI__NONE && units >= space->world->limits.max_units) return AOI_ELIMIT;
    p = known_or_new(space, owner, player, p);
    if (unit != AOI__NONE) {
        space->players.at[p].units.at[unit].include_self = include_self;
        return AOI_OK;
    }
    bool first = watch == AOI__NONE;
    if (first) watch = space->cold[slot].watch = watch_new(space, slot);
    *array_add(&space->watches.at[watch].players) = p;
    *array_add(&space->players.at[p].units) = (struct aoi__unit){.watch = watch, .include_self = include_self};
    if (first) aoi__unit_changed(space, watch);
    return AOI_OK;
}

int aoi_unsubscribe(struct aoi_space *space, aoi_owner owner, uint64_t player, uint64_t entity)
{
    uint32_t p;
    int err = find_own(space, owner, player, &p);
    if (err != AOI_OK) return err;
    if (entity == 0) return AOI_EINVAL;
    uint32_t slot = aoi__entity_slot(space, entity);
    uint32_t watch = slot == IDMAP_NONE ? AOI__NONE : space->cold[slot].watch;
    uint32_t unit = watch == AOI__NONE ? AOI__NONE : find_unit(&space->players.at[p], watch);
    if (unit == AOI__NONE) return AOI_ENOENTITY;
    end_subscription(space, p, unit);
    aoi__player_dirty(space, p);
    return AOI_OK;
}

void aoi__unit_gone(struct aoi_space *space, uint32_t watch)
{
    uint32_t n = space->watches.at[watch].players.n;
    while (n-- > 0) {
        uint32_t p = space->watches.at[watch].players.at[n];
        aoi__player_dirty(space, p);
        end_subscription(space, p, find_unit(&space->players.at[p], watch));
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
        *array_add(&space->watches.at[watch].players) = p;
    }
    struct aoi__watch *w = &space->watches.at[watch];
    memcpy(w->lo, lo, sizeof lo);
    memcpy(w->hi, hi, sizeof hi);
    w->active = true;
    space->ops->watch_set(space, watch);
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
