/* look.h: what the stages of one player's delta share: view.c gathers and compares, emit.c makes the columns. */
#ifndef AOI_CORE_LOOK_H
#define AOI_CORE_LOOK_H

#include "core/kernel.h"
#include "core/rank.h"
#include "core/space.h"

/* Columns and lists of the delta that is being made; they grow and are kept, so that a warm flush allocates nothing. */
struct aoi__scratch {
    aoi__slots found;      /* what the index found for one watch */
    aoi__slots kept, come; /* told and still seen, with their flags; seen and not told */
    struct aoi_rows enters, updates;
    ARRAY(struct aoi__ranked) ranked;
    ARRAY(double) distance;
    /* of a cover: told and no longer seen; come into the margin; kept with another state; of those, who had no room */
    aoi__slots gone, perhaps, restated, owed;
    aoi__slots came, went;     /* likewise come and gone, but to or from its place: until it is known who merely has another one */
    uint32_t flux_cap;         /* there is room for so many in each of gone, went, come and came */
    struct aoi__sifted sifted; /* of a cover: rows are made of want when it is known where they are to stand */
    uint64_t *other, *part;    /* masks likewise */
    ARRAY(uint64_t) places;    /* masks of what a query has found: find.c */
    uint32_t pages_cap;        /* there is room for the masks of so many pages */
    /* of this flush: what all looks at pages share */
    struct aoi__blocks *dir;
    struct aoi__sieve sieve;
    aoi__slots covered_at; /* by page: which one of the cover that was looked at last it is; see cover.c */
    ARRAY(uint64_t) turn;  /* by page, of those that are looked at: kernel.h */
    struct aoi__glance *glance;
    struct aoi_delta delta; /* what all deltas of a flush share; of other columns it has updates at most */
    ARRAY(uint64_t) since;  /* the next aoi__player.since */
    ARRAY(uint64_t) leave_id, payload_id, layers_id, message_from;
    ARRAY(uint32_t) layers, payload_len, enter_payload_len, message_len;
    ARRAY(const void *) payload, enter_payload, message;
};

/* Room for the masks of so many pages and one more, of which what was there is lost; at first for many more, for the first player seldom sees the most. */
void aoi__grow_masks(struct aoi__scratch *s, uint32_t pages);
static inline void aoi__reserve_masks(struct aoi__scratch *s, uint32_t pages)
{
    if (pages >= s->pages_cap) aoi__grow_masks(s, pages);
}

struct aoi__look {
    struct aoi_space *space;
    struct aoi__scratch *s;
    struct aoi__player *p;
    const struct aoi_flush_info *info;
    /* rules in force */
    float margin;
    uint32_t max_view, max_enter;
    bool staying;
    bool covered;                  /* the view is a cover, and a list of what is in no page under it */
    uint32_t listed;               /* so many at the head of come were found for that list */
    bool list_kept;                /* that list is not looked at, and stays as it is */
    const struct aoi_tiers *tiers; /* NULL: everything at every flush */
    bool inline_updates;           /* the update columns are written while sorting: no rule can drop or delay what is kept */
    bool one_anchor;               /* the player has one unit, or else only a viewport: distances are to */
    double anchor[3];              /* this */
    /* what has come out */
    uint32_t chosen_kept, chosen_come; /* so many at the head of kept and come are chosen: SHOW, include_self */
    uint32_t flags;                    /* all flags of entries of the view */
    float reach;                       /* only what is so near the anchor was gathered; 0: everything */
    size_t room;                       /* bytes that enters, payload changes and messages may still take */
    bool left;                         /* work is left for the next flush */
    bool enter_payloads;
};

/* While a player is looked at, mark[slot] is TOLD + flags >> 30 for what it was told and does not see so far, SEEN for what it sees, HIDDEN for what it is not to see, told or
 * not; anything less is none of these. */
#define AOI__MARKS 8
#define AOI__TOLD(space) ((space)->mark_serial - 7)
#define AOI__SEEN(space) ((space)->mark_serial - 3)
#define AOI__HIDDEN(space) ((space)->mark_serial - 2)
#define AOI__FLAG_SHIFT 30

/* view.c: fills kept and come by all rules before the rank. info: its now_ms counts. reach not 0: only with what is so near the only anchor. */
void aoi__look(struct aoi__look *k, struct aoi_space *space, struct aoi__player *p, const struct aoi_flush_info *info, float reach);
/* Nothing is marked any more. */
void aoi__marks_anew(struct aoi_space *space);
/* A player's own setting or, where it has none, the space's. */
static inline uint32_t aoi__own_or(uint32_t own, uint32_t common)
{
    return own != 0 ? own : common;
}

/* Whether flush number + id is a multiple of the period, which is one of the tiers'. */
static inline bool aoi__look_turn(const struct aoi__look *k, uint64_t id, uint64_t period)
{
    return k->space->tiering.even ? ((k->info->flush + id) & (period - 1)) == 0 : (k->info->flush % period + id % period) % period == 0;
}

/* Nothing is found yet. */
static inline void aoi__lists_clear(struct aoi__scratch *s)
{
    s->kept.n = s->come.n = 0;
    s->gone.n = s->perhaps.n = s->restated.n = s->owed.n = s->came.n = s->went.n = 0;
}

/* The first half of that: the rules in force, and empty lists. */
void aoi__look_begin(struct aoi__look *k, struct aoi_space *space, struct aoi__player *p, const struct aoi_flush_info *info, float reach);

/* What distances to a watch are measured from: its unit, or the viewport's centre. */
void aoi__watch_anchor(const struct aoi_space *space, const struct aoi__watch *w, double anchor[3]);
/* Parts of it: what distances are measured from, if it is one thing only; the tiers, if they hold at this flush. */
void aoi__look_anchor(struct aoi__look *k);
void aoi__look_tiers(struct aoi__look *k);

/* choose.c: of the enters, the max_enter best; the others wait. A full delta is not bound by it. */
void aoi__choose_enters(struct aoi__look *k);
/* Looks, and leaves those in kept and come who are to be told. */
void aoi__choose(struct aoi__look *k, struct aoi_space *space, struct aoi__player *p, const struct aoi_flush_info *info);
/* Whether the entity's update is due at this flush. */
bool aoi__look_due(const struct aoi__look *k, uint32_t slot);
/* Squared distance to the nearest unit or the viewport's centre; INFINITY: there is neither. */
double aoi__look_distance2(const struct aoi__look *k, uint32_t slot);
double aoi__viewport_distance2(const struct aoi_space *space, const struct aoi__watch *viewport, const float pos[3]); /* to its centre */
/* The rank of one that is seen. chosen: SHOW or include_self. */
struct aoi__ranked aoi__look_ranked(const struct aoi__look *k, uint32_t entry, bool told, bool chosen);
uint32_t aoi__look_period(const struct aoi__look *k, uint32_t slot); /* of its tier */
uint32_t aoi__look_stay_left_ms(const struct aoi__look *k, uint64_t since);
/* Whether the player watches anything: a viewport, or a unit of radius not 0. */
bool aoi__look_watches(const struct aoi__look *k);

/* emit.c: how many rows the updates will have. */
static inline size_t aoi__updates_n(const struct aoi__scratch *s)
{
    return s->updates.n + s->sifted.wanted;
}
/* A flush begins to make deltas. */
void aoi__deliver_begin(struct aoi_space *space, const struct aoi_flush_info *info);
/* Sets what of a delta comes of the player, makes the rows that are wanted, and delivers it with these and those that there are. */
void aoi__deliver(struct aoi_space *space, struct aoi__player *p, struct aoi_delta *d);
/* Makes the delta from kept and come, remembers what was told, delivers. */
void aoi__emit(struct aoi__look *k, size_t room);

static inline void aoi__row_set(struct aoi_rows *rows, size_t i, const struct aoi__hot *h, bool flat)
{
    rows->id[i] = h->id;
    rows->x[i] = h->pos[0];
    rows->y[i] = h->pos[1];
    if (flat) return;
    rows->z[i] = h->pos[2];
    rows->extra[i] = h->extra;
}

#endif
