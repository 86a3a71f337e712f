/* settings.c: what may differ between spaces: defaults, ranges, changes at run time. */
#include <math.h>

#include "core/space.h"
#include "core/tiers.h"

/* Those settings that may change at run time; NULL: they are fine. */
static const char *rules_fault(const struct aoi_settings *set)
{
    if (!isfinite(set->leave_margin) || set->leave_margin < 0) return "leave_margin must be finite and not negative";
    if (set->flush_ms > AOI_FLUSH_MS_MAX) return "flush_ms must be at most 86400000, which is a day";
    if (set->max_view > AOI_MAX_VIEW) return "max_view must be at most 65536";
    return aoi__tiers_fault(&set->tiers);
}

static const char *bounds_fault(struct aoi_settings *set)
{
    for (uint32_t a = 0; a < set->dimensions; a++) {
        set->min[a] = aoi__clean(set->min[a]);
        set->max[a] = aoi__clean(set->max[a]);
        if (!isfinite(set->min[a]) || !isfinite(set->max[a]) || set->min[a] > set->max[a]) return "bounds must be finite, with min <= max";
    }
    return NULL;
}

int aoi_settings_check(struct aoi_settings *set, const char **why)
{
    if (set->dimensions == 0) set->dimensions = 2;
    if (set->index == 0) set->index = AOI_INDEX_GRID;
    if (set->shape == 0) set->shape = AOI_SHAPE_BOX;
    if (set->cell_size == 0) set->cell_size = AOI_CELL_SIZE_DEFAULT;
    if (set->cell_range == 0) set->cell_range = 1;
    set->leave_margin = aoi__clean(set->leave_margin);
    if (set->tiers.beyond == 0) set->tiers.beyond = 1;
    *why = rules_fault(set);
    if (set->dimensions != 2 && set->dimensions != 3) *why = "dimensions must be 2 or 3";
    if (set->index != AOI_INDEX_GRID && set->index != AOI_INDEX_CROSSLIST) *why = "unknown index";
    if (set->shape != AOI_SHAPE_BOX && set->shape != AOI_SHAPE_SPHERE && set->shape != AOI_SHAPE_CELLS) *why = "unknown shape";
    if (!(set->cell_size >= AOI_CELL_SIZE_MIN && set->cell_size <= (double)AOI_COORD_MAX))
        *why = "cell_size must be at least 1/64 and at most 16777216";
    if (set->cell_range > AOI_CELL_RANGE_MAX) *why = "cell_range must be at most 64";
    if (*why == NULL && set->bounded) *why = bounds_fault(set);
    return *why == NULL ? AOI_OK : AOI_EINVAL;
}

static bool same_tiers(const struct aoi_tiers *a, const struct aoi_tiers *b)
{
    if (a->n != b->n || a->beyond != b->beyond) return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->at[i].distance != b->at[i].distance || a->at[i].period != b->at[i].period) return false;
    return true;
}

bool aoi__settings_same(const struct aoi_settings *a, const struct aoi_settings *b)
{
    bool same = a->dimensions == b->dimensions && a->index == b->index && a->shape == b->shape && a->cell_size == b->cell_size &&
                a->cell_range == b->cell_range && a->bounded == b->bounded && a->extra == b->extra && a->flush_ms == b->flush_ms &&
                a->persistent == b->persistent && a->leave_margin == b->leave_margin && a->min_stay_ms == b->min_stay_ms &&
                a->max_view == b->max_view && a->max_enter_per_flush == b->max_enter_per_flush && same_tiers(&a->tiers, &b->tiers);
    for (uint32_t k = 0; same && a->bounded && k < a->dimensions; k++) same = a->min[k] == b->min[k] && a->max[k] == b->max[k];
    return same;
}

void aoi__tiers_changed(struct aoi_space *space)
{
    const struct aoi_tiers *t = &space->set.tiers;
    struct aoi__tiering *out = &space->tiering;
    *out = (struct aoi__tiering){.even = (t->beyond & (t->beyond - 1)) == 0};
    for (uint32_t i = 0; i < t->n; i++) {
        out->even &= (t->at[i].period & (t->at[i].period - 1)) == 0;
        out->most2[i] = (double)t->at[i].distance * (double)t->at[i].distance;
    }
}

int aoi_space_set(struct aoi_space *space, aoi_owner owner, bool admin, const struct aoi_space_change *change)
{
    if (!admin && (space->configured || space->owner != owner)) return AOI_EOWNER;
    struct aoi_settings set = space->set;
    if (change->has_flush_ms) set.flush_ms = change->flush_ms;
    if (change->has_leave_margin) set.leave_margin = aoi__clean(change->leave_margin);
    if (change->has_min_stay_ms) set.min_stay_ms = change->min_stay_ms;
    if (change->has_max_view) set.max_view = change->max_view;
    if (change->has_max_enter_per_flush) set.max_enter_per_flush = change->max_enter_per_flush;
    if (change->has_tiers) set.tiers = change->tiers;
    if (set.tiers.beyond == 0) set.tiers.beyond = 1;
    if (rules_fault(&set) != NULL) return AOI_EINVAL;
    bool margin = set.leave_margin != space->set.leave_margin;
    space->set = set;
    aoi__tiers_changed(space);
    if (margin) aoi__margins_changed(space);
    for (uint32_t p = 0; p < space->players.n; p++) {
        if (space->players.at[p].id == 0) continue;
        if (set.min_stay_ms == 0) array_clear(&space->players.at[p].since); /* if it is set again, all that is told entered long ago */
        aoi__player_dirty(space, p);
    }
    return AOI_OK;
}
