/* cover.h: views as masks: of each page under a player's only watch, which places it was told of. */
#ifndef AOI_CORE_COVER_H
#define AOI_CORE_COVER_H

#include "core/look.h"

struct aoi__page;

/* Whether the player's view can be a cover: one watch that is not too large, and no rule that looks beyond it or at the rank of everything. */
bool aoi__cover_fits(const struct aoi_space *space, const struct aoi__player *p);
uint32_t aoi__only_watch(const struct aoi__player *p); /* AOI__NONE: it has none, or several */
/* Whether the player's cover, if it has one, is of its only watch, and that of the same unit. */
bool aoi__cover_same(const struct aoi_space *space, const struct aoi__player *p);
/* The list becomes a cover, but for what has appeal and units told of themselves; it stays a list if it holds anything else that is in no page under the watch. */
void aoi__cover_begin(struct aoi_space *space, struct aoi__player *p);
/* The cover becomes a list again: nothing that was told is forgotten. Fine if there is none. */
void aoi__cover_end(struct aoi_space *space, struct aoi__player *p);

void aoi__cover_free(struct aoi_space *space, struct aoi__cover *c);

/* Compares what the pages hold now with what was told: updates become rows; what has gone, has come, and is kept with another payload or other layers is
 * appended to the lists of the scratch. The cover keeps what was told and is still seen. */
void aoi__cover_look(struct aoi__look *k);
/* After that: what has gone from one place and come at another, or merely into the margin there, is kept. */
void aoi__cover_reconcile(struct aoi__look *k);
/* What was in come, and is not told after all. */
void aoi__cover_drop(struct aoi__look *k, uint32_t slot);
/* Whether it belongs into the cover of a player that sees it by the watch, not into the list: what has appeal, and the unit itself. */
bool aoi__cover_takes(const struct aoi_space *space, uint32_t watch, uint32_t slot);

/* Parts of a look, for glance.c. By the box in which everything enters, and the sieve of the scratch with its mask: what is in sifted there. r: NULL, or whose turn it is by
 * tiers is found, too. */
void aoi__sift_box(struct aoi_space *space, struct aoi__cover *c, const struct aoi__watch *w, const struct aoi__rings *r);
/* The same for a watch that is where it was, of a player that was told all that was inside: only pages that changed in the window are looked at. When few move, most of what a player
 * sees lies still, and columns that nobody has touched are far away in memory. Not by tiers; and nothing is saved where all pages are inner
 * ones, of which no columns are read. */
void aoi__sift_changed(struct aoi_space *space, struct aoi__cover *c, const struct aoi__watch *w);
/* As aoi__sift_box(), but those of which it is not the turn wait, by the tiers and the anchor of k. */
void aoi__sift_tiers(struct aoi__look *k, const struct aoi__watch *w);
/* Fills the lists of the scratch as aoi__cover_look() does, by what was sifted. */
void aoi__cover_compare(struct aoi__look *k);

/* The places of a page, of those, that have a layer of the mask. */
uint64_t aoi__with_layers(const struct aoi_space *space, const struct aoi__page *page, uint32_t mask, uint64_t places);

/* Of any view: */
bool aoi__view_holds(const struct aoi_space *space, const struct aoi__player *p, uint32_t slot);
uint32_t aoi__view_count(const struct aoi__player *p);
/* Appends its slots. */
void aoi__view_slots(const struct aoi_space *space, const struct aoi__player *p, aoi__slots *out);
/* Its places in the cover, for validate(): aborts if something is wrong. */
void aoi__cover_validate(const struct aoi_space *space, const struct aoi__player *p);

#endif
