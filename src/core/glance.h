/* glance.h: the quick way through view.c, for players of whom a look at masks is enough: nearly everybody. */
#ifndef AOI_CORE_GLANCE_H
#define AOI_CORE_GLANCE_H

#include "core/look.h"

struct aoi__glance;

/* Whether a glance will do for the player, as long as neither it nor its subscriptions are changed: aoi__player.plain. */
bool aoi__is_plain_player(const struct aoi__player *p);
/* A flush begins to look at players. */
void aoi__glance_open(struct aoi_space *space, const struct aoi_flush_info *info);
/* Serves a plain player where the space has no rules either. False: it is not that simple, and nothing was done. *left: work is left for the next flush. */
bool aoi__glance(struct aoi_space *space, struct aoi__player *p, size_t room, bool *left);
/* Fetches what glances at the players behind this one will read: of each first, far ahead, what is its own, then the heads of its pages. */
void aoi__glance_fetch(const struct aoi_space *space, uint32_t player);
void aoi__glance_free(struct aoi__glance *glance);

#endif
