/* world.c: the registry of spaces, and what happens when an owner goes. */
#include <stdlib.h>
#include <string.h>

#include "core/space.h"

struct aoi_world *aoi_world_new(const struct aoi_limits *limits, const struct aoi_sink *sink)
{
    struct aoi_world *world = mem_zalloc(sizeof *world);
    world->limits = *limits;
    if (sink != NULL) world->sink = *sink;
    return world;
}

static void end_space(struct aoi_world *world, uint32_t at)
{
    struct aoi_space *space = world->spaces.at[at];
    if (world->on_space_end != NULL) world->on_space_end(world->on_space_end_ctx, space);
    aoi__space_free(space);
    world->spaces.n--;
    memmove(&world->spaces.at[at], &world->spaces.at[at + 1], (world->spaces.n - at) * sizeof world->spaces.at[0]);
}

void aoi_world_free(struct aoi_world *world)
{
    while (world->spaces.n > 0) end_space(world, world->spaces.n - 1);
    array_clear(&world->spaces);
    for (uint32_t i = 0; i < world->presences.n; i++) array_clear(&world->presences.at[i].spaces);
    array_clear(&world->presences);
    idmap_clear(&world->presence_map);
    free(world);
}

void aoi_world_on_space_end(struct aoi_world *world, void (*fn)(void *ctx, struct aoi_space *space), void *ctx)
{
    world->on_space_end = fn;
    world->on_space_end_ctx = ctx;
}

/* Index of the first space of an id above `after`. */
static uint32_t first_above(const struct aoi_world *world, uint64_t after)
{
    uint32_t low = 0, high = world->spaces.n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (world->spaces.at[mid]->id > after)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

struct aoi_space *aoi_space_next(const struct aoi_world *world, uint64_t after)
{
    uint32_t i = first_above(world, after);
    return i < world->spaces.n ? world->spaces.at[i] : NULL;
}

struct aoi_space *aoi_space_find(const struct aoi_world *world, uint64_t id)
{
    struct aoi_space *space = id == 0 ? NULL : aoi_space_next(world, id - 1);
    return space != NULL && space->id == id ? space : NULL;
}

int aoi_space_create(struct aoi_world *world, aoi_owner owner, uint64_t id, const struct aoi_settings *settings, bool if_absent)
{
    struct aoi_settings set = *settings;
    const char *why;
    if (id == 0 || aoi_settings_check(&set, &why) != AOI_OK) return AOI_EINVAL;
    const struct aoi_space *known = aoi_space_find(world, id);
    if (known != NULL) return if_absent && aoi__settings_same(&known->set, &set) ? AOI_OK : AOI_EDUPSPACE;
    if (world->spaces.n >= world->limits.max_spaces) return AOI_ELIMIT;
    struct aoi_space *space = aoi__space_new(world, owner, id, &set);
    uint32_t at = first_above(world, id);
    array_add(&world->spaces);
    memmove(&world->spaces.at[at + 1], &world->spaces.at[at], (world->spaces.n - 1 - at) * sizeof world->spaces.at[0]);
    world->spaces.at[at] = space;
    return AOI_OK;
}

int aoi_space_destroy(struct aoi_world *world, aoi_owner owner, bool admin, uint64_t id)
{
    if (id == 0) return AOI_EINVAL;
    struct aoi_space *space = aoi_space_find(world, id);
    if (space == NULL) return AOI_ENOSPACE;
    if (space->configured || (space->owner != owner && !admin)) return AOI_EOWNER;
    CHECK(space->flush_phase == AOI__FLUSH_NONE);
    aoi__forget_overrides(space);
    for (uint32_t p = 0; p < space->players.n; p++)
        if (space->players.at[p].id != 0) aoi__player_close(space, p, true);
    end_space(world, first_above(world, id - 1));
    return AOI_OK;
}

/* Lets go of spaces that have ended, and keeps one entry of each that is there, where others of its id were before it. */
static void tidy(const struct aoi_world *world, struct aoi__presence *here)
{
    uint64_t *ids = here->spaces.at;
    uint32_t once = array_sort_once(ids, here->spaces.n);
    here->spaces.n = 0;
    for (uint32_t k = 0; k < once; k++)
        if (aoi_space_find(world, ids[k]) != NULL) ids[here->spaces.n++] = ids[k];
}

void aoi__present(struct aoi_world *world, aoi_owner owner, uint64_t space)
{
    uint64_t key = (uint64_t)owner + 1;
    uint32_t i = idmap_get(&world->presence_map, key);
    if (i == IDMAP_NONE) {
        i = world->presences.n;
        *array_add(&world->presences) = (struct aoi__presence){.owner = owner};
        idmap_put(&world->presence_map, key, i);
    }
    struct aoi__presence *here = &world->presences.at[i];
    if (here->spaces.n == here->spaces.cap) {
        tidy(world, here);
        if (here->spaces.n > here->spaces.cap / 2) array_reserve(&here->spaces, (size_t)here->spaces.cap + 1); /* not again after every few */
    }
    *array_add(&here->spaces) = space;
}

static void owner_end_space(struct aoi_world *world, struct aoi_space *space, aoi_owner owner, bool tell)
{
    aoi__space_owner_end(space, owner, tell);
    if (space->owner != owner || space->configured) return;
    space->owner = 0;
    if (!space->set.persistent) CHECK(aoi_space_destroy(world, 0, true, space->id) == AOI_OK);
}

bool aoi_owner_shed(struct aoi_world *world, aoi_owner owner, uint32_t most, uint64_t *left)
{
    uint32_t at = idmap_get(&world->presence_map, (uint64_t)owner + 1);
    *left = 0;
    if (at == IDMAP_NONE || world->presences.at[at].spaces.n == 0) return false;
    struct aoi__presence *here = &world->presences.at[at];
    uint64_t id = here->spaces.at[here->spaces.n - 1];
    struct aoi_space *space = aoi_space_find(world, id);
    if (space != NULL && aoi_owner_in(space, owner)) { /* else it has ended, or another has its number since */
        if (aoi__space_owner_shed(space, owner, most) == most) return true;
        owner_end_space(world, space, owner, false);
        *left = id;
    }
    here->spaces.n--;
    return true;
}

void aoi_owner_end(struct aoi_world *world, aoi_owner owner, bool tell)
{
    uint32_t i = idmap_remove(&world->presence_map, (uint64_t)owner + 1);
    if (i == IDMAP_NONE) return;
    struct aoi__presence gone = world->presences.at[i];
    array_swap_remove(&world->presences, i);
    if (i < world->presences.n) idmap_put(&world->presence_map, (uint64_t)world->presences.at[i].owner + 1, i);
    for (uint32_t k = 0; k < gone.spaces.n; k++) {
        struct aoi_space *space = aoi_space_find(world, gone.spaces.at[k]);
        if (space != NULL) owner_end_space(world, space, owner, tell);
    }
    array_clear(&gone.spaces);
}

void aoi_owner_spaces(const struct aoi_world *world, aoi_owner owner, void (*fn)(void *ctx, struct aoi_space *space), void *ctx)
{
    uint32_t at = idmap_get(&world->presence_map, (uint64_t)owner + 1);
    for (uint32_t i = 0; at != IDMAP_NONE && i < world->presences.at[at].spaces.n; i++) {
        struct aoi_space *space = aoi_space_find(world, world->presences.at[at].spaces.at[i]);
        if (space != NULL && aoi_owner_in(space, owner)) fn(ctx, space);
    }
}

void aoi_owner_away(struct aoi_world *world, aoi_owner owner, bool away)
{
    uint32_t at = idmap_get(&world->presence_map, (uint64_t)owner + 1);
    for (uint32_t i = 0; at != IDMAP_NONE && i < world->presences.at[at].spaces.n; i++) {
        struct aoi_space *space = aoi_space_find(world, world->presences.at[at].spaces.at[i]);
        if (space != NULL) aoi__space_owner_away(space, owner, away);
    }
}

void aoi_world_on_change(struct aoi_world *world, void (*fn)(void *ctx, struct aoi_space *space), void *ctx)
{
    world->on_change = fn;
    world->on_change_ctx = ctx;
}
