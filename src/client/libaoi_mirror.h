/* libaoi_mirror.h: the views of the players of one connection, kept by applying their deltas. */
#ifndef AOI_CLIENT_LIBAOI_MIRROR_H
#define AOI_CLIENT_LIBAOI_MIRROR_H

#include "base/array.h"
#include "base/idmap.h"
#include "client/libaoi.h"

struct libaoi_mirror_view;

struct libaoi_mirror_space {
    uint64_t id;
    struct idmap players; /* player -> index in views */
};

struct libaoi_mirror {
    struct idmap space_map; /* space -> index in spaces */
    ARRAY(struct libaoi_mirror_space) spaces;
    ARRAY(struct libaoi_mirror_view *) views;
    ARRAY(uint32_t) free_views; /* views.at[i] is NULL iff i is here */
    uint64_t closed;            /* deltas marked closed */
};

void libaoi_mirror_clear(struct libaoi_mirror *m);
const struct libaoi_view *libaoi_mirror_find(const struct libaoi_mirror *m, uint64_t space, uint64_t player); /* NULL: none */
/* Another session has taken the player over: nobody tells us about it any more. */
void libaoi_mirror_forget(struct libaoi_mirror *m, uint64_t space, uint64_t player);
/* The session was resumed: the next delta of each view is a full one, or closed, whatever its number. */
void libaoi_mirror_lapse(struct libaoi_mirror *m);
/* Applies one part of a delta. 0, or -1 if no daemon may say this after what it said before: why[] has a sentence, and the view is not to be trusted any more. */
int libaoi_mirror_apply(struct libaoi_mirror *m, const struct libaoi_delta *delta, char *why, size_t why_size);

#endif
