/* census.c: how crowded a space is. */
#include <math.h>

#include "core/space.h"

/* A number for the cell of a position; that two cells of a space get the same one is as unlikely as it may be in 64 bits. Never 0. */
static uint64_t cell_key(const struct aoi_space *space, const float pos[3])
{
    uint64_t key = 0;
    for (uint32_t a = 0; a < space->dims; a++) key = idmap_hash(key + (uint64_t)(int64_t)floor((double)pos[a] / space->set.cell_size) + a);
    return key == 0 ? 1 : key;
}

uint64_t aoi_space_densest(const struct aoi_space *space, uint32_t visits)
{
    struct idmap cells = {0};
    uint32_t most = 0, stride = 1 + space->slot_n / (visits == 0 ? 1 : visits);
    for (uint32_t slot = 0; slot < space->slot_n; slot += stride) {
        if (!aoi__alive(space, slot)) continue;
        uint64_t key = cell_key(space, space->hot[slot].pos);
        uint32_t was = idmap_get(&cells, key), n = was == IDMAP_NONE ? 1 : was + 1;
        idmap_put(&cells, key, n);
        if (n > most) most = n;
    }
    idmap_clear(&cells);
    return (uint64_t)most * stride;
}
