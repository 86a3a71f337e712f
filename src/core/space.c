/* space.c: making and freeing a space, its settings and counters, and who owns what in it. */
#include "core/cover.h"
#include "core/kernel.h"
#include "core/space.h"

#include <stdlib.h>

static void begin(struct aoi_space *space)
{
    space->ops->init(space);
    space->scratch = aoi__scratch_new();
}

struct aoi_space *aoi__space_new(struct aoi_world *world, aoi_owner owner, uint64_t id, const struct aoi_settings *settings)
{
    struct aoi_space *space = mem_zalloc(sizeof *space);
    space->world = world;
    space->id = id;
    space->owner = owner;
    space->configured = owner == 0;
    space->set = *settings;
    aoi__tiers_changed(space);
    space->dims = settings->dimensions;
    space->serial = 1;
    space->ops = settings->index == AOI_INDEX_CROSSLIST ? &aoi__crosslist_ops : &aoi__grid_ops;
    space->kernels = aoi__kernels_nth(0);
    begin(space);
    aoi__present(world, owner, id);
    return space;
}

/* All that it holds, but who owns something in it. */
static void clear(struct aoi_space *space)
{
    space->ops->clear(space);
    aoi__large_free(space);
    aoi__messages_clear(space);
    array_clear(&space->messages);
    array_clear(&space->posts);
    array_clear(&space->observe_check);
    array_clear(&space->found_watches);
    array_clear(&space->reports);
    array_clear(&space->report_id);
    array_clear(&space->report_observed);
    for (uint32_t i = 0; i < space->shown.n; i++) array_clear(&space->shown.at[i].players);
    array_clear(&space->shown);
    idmap_clear(&space->shown_map);
    idmap_clear(&space->released);
    aoi__scratch_free(space->scratch);
    aoi__forget_touched(space);
    array_clear(&space->touched);
    for (uint32_t i = 0; i < space->rare.n; i++) free(space->rare.at[i].payload);
    array_clear(&space->rare);
    array_clear(&space->free_rare);
    free(space->hot);
    free(space->cold);
    free(space->own);
    free(space->moving);
    free(space->some_move);
    free(space->mark);
    free(space->told_at);
    free(space->alive);
    array_clear(&space->free_slots);
    aoi__ids_clear(&space->ids);
    for (uint32_t w = 0; w < space->watches.n; w++) pool_array_clear(&space->pool, &space->watches.at[w].viewers);
    array_clear(&space->watches);
    array_clear(&space->free_watches);
    for (uint32_t p = 0; p < space->players.n; p++) {
        pool_array_clear(&space->pool, &space->players.at[p].units);
        array_clear(&space->players.at[p].told);
        aoi__cover_free(space, &space->players.at[p].cover);
        array_clear(&space->players.at[p].since);
        array_clear(&space->players.at[p].overrides);
    }
    array_clear(&space->players);
    array_clear(&space->free_players);
    pool_clear(&space->pool);
    aoi__ids_clear(&space->player_ids);
    array_clear(&space->dirty);
    array_clear(&space->marked);
    idmap_clear(&space->away_told);
}

void aoi__space_free(struct aoi_space *space)
{
    clear(space);
    array_clear(&space->owned);
    idmap_clear(&space->owned_map);
    free(space);
}

#define FEW_SLOTS 256 /* are kept: what empties and fills again needs no time for it */

bool aoi__space_spent(const struct aoi_space *space)
{
    return (space->slot_n > FEW_SLOTS || space->players.n > FEW_SLOTS) && space->free_slots.n == space->slot_n && space->player_n == 0;
}

void aoi__space_give_back(struct aoi_space *space)
{
    if (!aoi__space_spent(space)) return;
    if (space->flush_phase != AOI__FLUSH_NONE || space->messages.n > 0) return; /* the flush will, when it ends: who comes before may see messages */
    clear(space);
    *space = (struct aoi_space){.world = space->world,
                                .id = space->id,
                                .owner = space->owner,
                                .configured = space->configured,
                                .set = space->set,
                                .tiering = space->tiering,
                                .dims = space->dims,
                                .user = space->user,
                                .ops = space->ops,
                                .kernels = space->kernels,
                                .changed = space->changed,
                                .owned = space->owned,
                                .owned_map = space->owned_map,
                                .flush = space->flush,
                                .serial = space->serial,
                                .state_serial = space->state_serial,
                                .large_serial = space->large_serial,
                                .stats = space->stats};
    begin(space);
}

uint64_t aoi_space_id(const struct aoi_space *space)
{
    return space->id;
}

bool aoi_space_configured(const struct aoi_space *space)
{
    return space->configured;
}

aoi_owner aoi_space_owner(const struct aoi_space *space)
{
    return space->owner;
}

const struct aoi_settings *aoi_space_settings(const struct aoi_space *space)
{
    return &space->set;
}

void aoi_space_set_user(struct aoi_space *space, void *user)
{
    space->user = user;
}

void *aoi_space_user(const struct aoi_space *space)
{
    return space->user;
}

bool aoi_space_dirty(const struct aoi_space *space)
{
    return space->changed;
}

struct aoi__owned *aoi__owned(struct aoi_space *space, aoi_owner owner)
{
    uint64_t key = (uint64_t)owner + 1; /* owner 0 may own entities, key 0 may not be */
    uint32_t i = idmap_get(&space->owned_map, key);
    if (i == IDMAP_NONE) {
        i = space->owned.n;
        *array_add(&space->owned) = (struct aoi__owned){.owner = owner, .entities = AOI__NONE, .players = AOI__NONE};
        idmap_put(&space->owned_map, key, i);
        aoi__present(space->world, owner, space->id);
    }
    return &space->owned.at[i];
}

void aoi_space_owned(const struct aoi_space *space, void (*fn)(void *ctx, aoi_owner owner, uint32_t entities, uint32_t players), void *ctx)
{
    for (uint32_t i = 0; i < space->owned.n; i++) {
        const struct aoi__owned *owned = &space->owned.at[i];
        fn(ctx, owned->owner, owned->entity_n, owned->player_n);
    }
}

bool aoi__away(const struct aoi_space *space, aoi_owner owner)
{
    uint32_t i = idmap_get(&space->owned_map, (uint64_t)owner + 1);
    return i != IDMAP_NONE && space->owned.at[i].away;
}

bool aoi__may_take(const struct aoi_space *space, aoi_owner taker, aoi_owner owner)
{
    const struct aoi_sink *sink = &space->world->sink;
    return aoi__away(space, owner) || (sink->may_take != NULL && sink->may_take(sink->ctx, taker, owner));
}

void aoi__space_owner_away(struct aoi_space *space, aoi_owner owner, bool away)
{
    uint32_t i = idmap_get(&space->owned_map, (uint64_t)owner + 1);
    if (i == IDMAP_NONE || space->owned.at[i].away == away) return;
    const struct aoi__owned *owned = &space->owned.at[i];
    space->owned.at[i].away = away;
    for (uint32_t p = owned->players; p != AOI__NONE; p = space->players.at[p].owner_next) aoi__player_away(space, p, away);
    for (uint32_t s = owned->entities; s != AOI__NONE && !away; s = space->cold[s].owner_next)
        if (space->cold[s].flags & AOI__REPORT) aoi__observe_restate(space, s);
}

/* What was released to an owner that is gone is released to nobody. */
static void unrelease(struct aoi_space *space, aoi_owner owner)
{
    for (uint32_t p = 0; p < space->players.n; p++)
        if (space->players.at[p].released_to == owner) space->players.at[p].released_to = AOI__NONE;
    for (uint32_t i = 0; space->released.n > 0 && i <= space->released.mask; i++) {
        uint64_t id = space->released.key[i];
        if (id == 0 || space->released.value[i] != owner) continue;
        space->cold[aoi__entity_slot(space, id)].flags &= ~(uint32_t)AOI__RELEASED;
        idmap_remove(&space->released, id);
        i--; /* another one may have been shifted here */
    }
}

uint32_t aoi__space_owner_shed(struct aoi_space *space, aoi_owner owner, uint32_t most)
{
    uint32_t i = idmap_get(&space->owned_map, (uint64_t)owner + 1), n = 0;
    if (i == IDMAP_NONE) return 0;
    for (; n < most && space->owned.at[i].players != AOI__NONE; n++) aoi__player_close(space, space->owned.at[i].players, false);
    for (; n < most && space->owned.at[i].entities != AOI__NONE; n++) aoi__entity_remove(space, space->owned.at[i].entities);
    return n;
}

bool aoi_owner_in(const struct aoi_space *space, aoi_owner owner)
{
    return space->owner == owner || idmap_get(&space->owned_map, (uint64_t)owner + 1) != IDMAP_NONE;
}

void aoi__space_owner_end(struct aoi_space *space, aoi_owner owner, bool tell)
{
    uint32_t i = idmap_get(&space->owned_map, (uint64_t)owner + 1);
    if (i == IDMAP_NONE) return;
    if (space->owned.at[i].heir) unrelease(space, owner);
    while (space->owned.at[i].players != AOI__NONE) aoi__player_close(space, space->owned.at[i].players, tell);
    while (space->owned.at[i].entities != AOI__NONE) aoi__entity_remove(space, space->owned.at[i].entities);
    idmap_remove(&space->owned_map, (uint64_t)owner + 1);
    array_swap_remove(&space->owned, i);
    if (i < space->owned.n) idmap_put(&space->owned_map, (uint64_t)space->owned.at[i].owner + 1, i);
    aoi__space_give_back(space);
}

uint32_t aoi_space_vacant(const struct aoi_space *space)
{
    return space->free_slots.n;
}

/* Of a piece of so many bytes that is asked for in the pool: those that are not counted with that. */
static uint64_t beyond_pool(uint64_t bytes)
{
    return bytes > POOL_MAX ? bytes : 0;
}

void aoi_space_stats(const struct aoi_space *space, struct aoi_stats *stats)
{
    const struct aoi_stats *own = &space->stats;
    stats->entities += space->entity_n;
    stats->players += space->player_n;
    stats->pairs += own->pairs;
    stats->flushes += space->flush;
    stats->enters += own->enters;
    stats->leaves += own->leaves;
    stats->updates += own->updates;
    stats->deltas += own->deltas;
    stats->skipped += own->skipped;
    stats->moves += own->moves;
    stats->messages += own->messages;

    uint64_t bytes = sizeof *space + space->payload_bytes + aoi__ids_bytes(&space->ids) + aoi__ids_bytes(&space->player_ids);
    bytes += (uint64_t)space->slot_cap * (sizeof *space->hot + sizeof *space->cold + sizeof *space->own + sizeof *space->mark) + space->slot_cap / 4;
    bytes += (uint64_t)space->rare.cap * sizeof *space->rare.at + (uint64_t)space->free_rare.cap * 4;
    bytes += (uint64_t)space->touched.cap * sizeof *space->touched.at + (uint64_t)space->watches.cap * sizeof *space->watches.at;
    bytes += space->pool.bytes;
    bytes += (uint64_t)space->players.cap * sizeof *space->players.at + (uint64_t)space->free_slots.cap * 4;
    for (uint32_t p = 0; p < space->players.n; p++) {
        const struct aoi__player *player = &space->players.at[p];
        bytes += (uint64_t)player->told.cap * sizeof *player->told.at + beyond_pool(player->cover.bytes) +
                 beyond_pool((uint64_t)player->units.cap * sizeof *player->units.at) +
                 (uint64_t)player->overrides.cap * sizeof *player->overrides.at + (uint64_t)player->since.cap * sizeof *player->since.at;
    }
    bytes += (uint64_t)space->messages.cap * sizeof *space->messages.at + (uint64_t)space->posts.cap * sizeof *space->posts.at;
    bytes += idmap_bytes(&space->shown_map) + (uint64_t)space->shown.cap * sizeof *space->shown.at;
    for (uint32_t i = 0; i < space->shown.n; i++) bytes += (uint64_t)space->shown.at[i].players.cap * sizeof(uint32_t);
    stats->memory_bytes += bytes + space->ops->bytes(space) + aoi__large_bytes(space);
}
