/* space.c: making and freeing a space, its settings and counters, and who owns what in it. */
#include "core/space.h"

#include <math.h>
#include <stdlib.h>

static int settings_bounds_check(struct aoi_settings *set, const char **why)
{
    for (uint32_t a = 0; a < set->dimensions; a++) {
        if (!isfinite(set->min[a]) || !isfinite(set->max[a]) || set->min[a] > set->max[a]) {
            *why = "bounds must be finite, with min <= max";
            return AOI_EINVAL;
        }
        set->min[a] = aoi__clean(set->min[a]);
        set->max[a] = aoi__clean(set->max[a]);
    }
    return AOI_OK;
}

int aoi_settings_check(struct aoi_settings *set, const char **why)
{
    if (set->dimensions == 0) set->dimensions = 2;
    if (set->index == 0) set->index = AOI_INDEX_GRID;
    if (set->shape == 0) set->shape = AOI_SHAPE_BOX;
    if (set->cell_size == 0) set->cell_size = AOI_CELL_SIZE_DEFAULT;
    if (set->cell_range == 0) set->cell_range = 1;
    *why = NULL;
    if (set->dimensions != 2 && set->dimensions != 3) *why = "dimensions must be 2 or 3";
    if (set->index != AOI_INDEX_GRID && set->index != AOI_INDEX_CROSSLIST) *why = "unknown index";
    if (set->shape != AOI_SHAPE_BOX && set->shape != AOI_SHAPE_SPHERE && set->shape != AOI_SHAPE_CELLS) *why = "unknown shape";
    if (!(set->cell_size >= AOI_CELL_SIZE_MIN) || !isfinite(set->cell_size)) *why = "cell_size must be finite and at least 1/64";
    if (set->cell_range > AOI_CELL_RANGE_MAX) *why = "cell_range must be at most 64";
    if (*why != NULL) return AOI_EINVAL;
    return set->bounded ? settings_bounds_check(set, why) : AOI_OK;
}

struct aoi_space *aoi__space_new(struct aoi_world *world, aoi_owner owner, uint64_t id, const struct aoi_settings *settings)
{
    struct aoi_space *space = mem_zalloc(sizeof *space);
    space->world = world;
    space->id = id;
    space->owner = owner;
    space->configured = owner == 0;
    space->set = *settings;
    space->dims = settings->dimensions;
    space->serial = 1;
    space->ops = settings->index == AOI_INDEX_CROSSLIST ? &aoi__crosslist_ops : &aoi__grid_ops;
    space->ops->init(space);
    space->scratch = aoi__scratch_new();
    return space;
}

void aoi__space_free(struct aoi_space *space)
{
    space->ops->clear(space);
    aoi__scratch_free(space->scratch);
    aoi__forget_touched(space);
    array_clear(&space->touched);
    for (uint32_t s = 0; s < space->slot_n; s++) free(space->cold[s].payload);
    free(space->hot);
    free(space->cold);
    free(space->mark);
    free(space->alive);
    array_clear(&space->free_slots);
    idmap_clear(&space->entity_map);
    for (uint32_t w = 0; w < space->watches.n; w++) array_clear(&space->watches.at[w].players);
    array_clear(&space->watches);
    array_clear(&space->free_watches);
    for (uint32_t p = 0; p < space->players.n; p++) {
        array_clear(&space->players.at[p].units);
        array_clear(&space->players.at[p].told);
    }
    array_clear(&space->players);
    array_clear(&space->free_players);
    idmap_clear(&space->player_map);
    array_clear(&space->dirty);
    array_clear(&space->owned);
    idmap_clear(&space->owned_map);
    free(space);
}

uint64_t aoi_space_id(const struct aoi_space *space)
{
    return space->id;
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
    }
    return &space->owned.at[i];
}

void aoi__space_owner_end(struct aoi_space *space, aoi_owner owner, bool tell)
{
    uint32_t i = idmap_get(&space->owned_map, (uint64_t)owner + 1);
    if (i == IDMAP_NONE) return;
    while (space->owned.at[i].players != AOI__NONE) aoi__player_close(space, space->owned.at[i].players, tell);
    while (space->owned.at[i].entities != AOI__NONE) aoi__entity_remove(space, space->owned.at[i].entities);
    idmap_remove(&space->owned_map, (uint64_t)owner + 1);
    array_swap_remove(&space->owned, i);
    if (i < space->owned.n) idmap_put(&space->owned_map, (uint64_t)space->owned.at[i].owner + 1, i);
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

    uint64_t bytes = sizeof *space + space->payload_bytes + idmap_bytes(&space->entity_map) + idmap_bytes(&space->player_map);
    bytes += (uint64_t)space->slot_cap * (sizeof *space->hot + sizeof *space->cold + sizeof *space->mark) + space->slot_cap / 8;
    bytes += (uint64_t)space->touched.cap * sizeof *space->touched.at + (uint64_t)space->watches.cap * sizeof *space->watches.at;
    bytes += (uint64_t)space->players.cap * sizeof *space->players.at + (uint64_t)space->free_slots.cap * 4;
    for (uint32_t p = 0; p < space->players.n; p++)
        bytes += (uint64_t)space->players.at[p].told.cap * 4 + (uint64_t)space->players.at[p].units.cap * sizeof(struct aoi__unit);
    stats->memory_bytes += bytes + space->ops->bytes(space);
}
