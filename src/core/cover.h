/* cover.h: views as masks: of each page under a player's only watch, which places it was told of. */
#ifndef AOI_CORE_COVER_H
#define AOI_CORE_COVER_H

#include "core/look.h"

struct aoi__glance;

/* Whether the player's view can be a cover: one watch that is not too large, and no rule that looks beyond it or at the rank of everything. */
bool aoi__cover_fits(const struct aoi_space *space, const struct aoi__player *p);
uint32_t aoi__only_watch(const struct aoi__player *p); /* AOI__NONE: it has none, or several */
/* Whether the player's cover, if it has one, is of its only watch, and that of the same unit. */
bool aoi__cover_same(const struct aoi_space *space, const struct aoi__player *p);
/* The list becomes a cover, but for what has appeal and units told of themselves; it stays a list if it holds anything else that is in no page under the watch. */
void aoi__cover_begin(struct aoi_space *space, struct aoi__player *p);
/* The cover becomes a list again: nothing that was told is forgotten. Fine if there is none. */
void aoi__cover_end(struct aoi_space *space, struct aoi__player *p);

void aoi__cover_free(struct aoi__cover *c);
uint64_t aoi__cover_bytes(const struct aoi__cover *c);

/* Compares what the pages hold now with what was told: updates become rows; what has gone, has come, and is kept with another payload or other layers is
 * appended to the lists of the scratch. The cover keeps what was told and is still seen. */
void aoi__cover_look(struct aoi__look *k);
/* After that: what has gone from one place and come at another, or merely into the margin there, is kept. */
void aoi__cover_reconcile(struct aoi__look *k);
/* What was in come, and is not told after all. */
void aoi__cover_drop(struct aoi__look *k, uint32_t slot);
/* Whether it belongs into the cover of a player that sees it by the watch, not into the list: what has appeal, and the unit itself. */
bool aoi__cover_takes(const struct aoi_space *space, uint32_t watch, uint32_t slot);

/* Whether a look at masks alone will do for the player, as long as neither it nor its subscriptions are changed: aoi__player.plain. */
bool aoi__cover_plain(const struct aoi__player *p);
/* A flush begins to look at players. */
void aoi__glance_open(struct aoi_space *space, const struct aoi_flush_info *info);
/* Serves a plain player where the space has no rules either: the quick way through view.c, for nearly everybody. False: it is not that simple. *left: work is left for the
 * next flush. */
bool aoi__glance(struct aoi_space *space, struct aoi__player *p, size_t room, const struct aoi_flush_info *info, bool *left);
/* Fetches what a glance will read: first, far ahead, the player's; then, near, the pages' heads. */
void aoi__glance_fetch(const struct aoi_space *space, const struct aoi__player *p, bool near);
void aoi__glance_free(struct aoi__glance *glance);

/* Of any view: */
bool aoi__view_holds(const struct aoi_space *space, const struct aoi__player *p, uint32_t slot);
uint32_t aoi__view_count(const struct aoi__player *p);
/* Appends its slots. */
void aoi__view_slots(const struct aoi_space *space, const struct aoi__player *p, aoi__slots *out);
/* Its places in the cover, for validate(): aborts if something is wrong. */
void aoi__cover_validate(const struct aoi_space *space, const struct aoi__player *p);

#endif
