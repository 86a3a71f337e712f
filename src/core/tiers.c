/* tiers.c: update tiers as text and back. It stands alone, for clients speak of tiers, too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/tiers.h"

static const char shape[] = "update_tiers are DISTANCE:PERIOD with blanks between them and, last, *:PERIOD for what is further away: 30:1 60:2 *:4";
static const char no_period[] = "a period of update_tiers is 1 to 1000000";

const char *aoi__tiers_fault(const struct aoi_tiers *t)
{
    if (t->n > AOI_TIERS_MAX) return "update_tiers has at most 8 distances";
    if (t->beyond > AOI_PERIOD_MAX) return no_period;
    for (uint32_t i = 0; i < t->n; i++) {
        if (!isfinite(t->at[i].distance) || t->at[i].distance < 0) return "a distance of update_tiers is finite and not negative";
        if (i > 0 && !(t->at[i - 1].distance < t->at[i].distance)) return "the distances of update_tiers ascend";
        if (t->at[i].period < 1 || t->at[i].period > AOI_PERIOD_MAX) return no_period;
    }
    return NULL;
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
    return *end == '\0';
}

int aoi_tiers_parse(const char *text, struct aoi_tiers *tiers, const char **why)
{
    char copy[AOI_TIERS_TEXT], *rest = copy;
    *tiers = (struct aoi_tiers){.beyond = 1};
    *why = shape;
    size_t len = strlen(text);
    if (len >= sizeof copy) return AOI_EINVAL;
    memcpy(copy, text, len + 1);
    bool ended = false;
    for (char *word; (word = strtok_r(rest, " \t", &rest)) != NULL;) {
        bool beyond;
        float distance;
        uint32_t period;
        if (!parse_tier(word, &beyond, &distance, &period)) return AOI_EINVAL;
        if (ended) *why = "in update_tiers * is for what is further away than every distance, so that it comes last: 30:1 60:2 *:4";
        if (period == 0) *why = no_period; /* in struct aoi_tiers it would mean 1 */
        if (*why != shape) return AOI_EINVAL;
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
    *why = aoi__tiers_fault(tiers);
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
