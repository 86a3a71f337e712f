/* settings.c: what may be told apart about a space: defaults, ranges, tiers as text, changes at run time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/space.h"

static const char *tiers_fault(const struct aoi_tiers *t)
{
    if (t->n > AOI_TIERS_MAX) return "update_tiers has at most 8 distances";
    if (t->beyond > AOI_PERIOD_MAX) return "a period of update_tiers is 1 to 1000000";
    for (uint32_t i = 0; i < t->n; i++) {
        if (!isfinite(t->at[i].distance) || t->at[i].distance < 0) return "a distance of update_tiers is finite and not negative";
        if (i > 0 && !(t->at[i - 1].distance < t->at[i].distance)) return "the distances of update_tiers ascend";
        if (t->at[i].period < 1 || t->at[i].period > AOI_PERIOD_MAX) return "a period of update_tiers is 1 to 1000000";
    }
    return NULL;
}

/* Those settings that may change at run time; NULL: they are fine. */
static const char *rules_fault(const struct aoi_settings *set)
{
    if (!isfinite(set->leave_margin) || set->leave_margin < 0) return "leave_margin must be finite and not negative";
    if (set->max_view > AOI_MAX_VIEW) return "max_view must be at most 65536";
    return tiers_fault(&set->tiers);
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
    if (!(set->cell_size >= AOI_CELL_SIZE_MIN) || !isfinite(set->cell_size)) *why = "cell_size must be finite and at least 1/64";
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
    if (margin) aoi__margins_changed(space);
    for (uint32_t p = 0; p < space->players.n; p++) {
        if (space->players.at[p].id == 0) continue;
        if (set.min_stay_ms == 0) array_clear(&space->players.at[p].since); /* if it is set again, all that is told entered long ago */
        aoi__player_dirty(space, p);
    }
    return AOI_OK;
}

/* Reads "DISTANCE:PERIOD" or "*:PERIOD"; false: it is neither. */
static bool parse_tier(const char *word, bool *beyond, float *distance, uint32_t *period)
{
    char *end;
    *beyond = word[0] == '*';
    *distance = *beyond ? 0 : strtof(word, &end);
    if (*beyond) end = (char *)(uintptr_t)word + 1;
    if (end == word || *end != ':' || end[1] < '0' || end[1] > '9') return false;
    unsigned long value = strtoul(end + 1, &end, 10);
    *period = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
    return *end == '\0' && *period > 0;
}

int aoi_tiers_parse(const char *text, struct aoi_tiers *tiers, const char **why)
{
    char copy[AOI_TIERS_TEXT], *rest = copy;
    *tiers = (struct aoi_tiers){.beyond = 1};
    *why = "update_tiers reads like 30:1 60:2 *:4";
    if (strlen(text) >= sizeof copy) return AOI_EINVAL;
    strcpy(copy, text);
    bool ended = false;
    for (char *word; (word = strtok_r(rest, " \t", &rest)) != NULL;) {
        bool beyond;
        float distance;
        uint32_t period;
        if (ended || !parse_tier(word, &beyond, &distance, &period)) return AOI_EINVAL;
        if (beyond) {
            tiers->beyond = period;
            ended = true;
            continue;
        }
        if (tiers->n == AOI_TIERS_MAX) {
            *why = "update_tiers has at most 8 distances";
            return AOI_EINVAL;
        }
        tiers->at[tiers->n].distance = distance;
        tiers->at[tiers->n++].period = period;
    }
    *why = tiers_fault(tiers);
    return *why == NULL ? AOI_OK : AOI_EINVAL;
}

void aoi_tiers_print(const struct aoi_tiers *tiers, char text[AOI_TIERS_TEXT])
{
    size_t n = 0;
    text[0] = '\0';
    if (tiers->n == 0 && tiers->beyond <= 1) return;
    for (uint32_t i = 0; i < tiers->n; i++)
        n += (size_t)snprintf(text + n, AOI_TIERS_TEXT - n, "%.9g:%u ", (double)tiers->at[i].distance, tiers->at[i].period);
    snprintf(text + n, AOI_TIERS_TEXT - n, "*:%u", tiers->beyond > 0 ? tiers->beyond : 1);
}
