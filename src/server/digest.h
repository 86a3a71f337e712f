/* digest.h: a number for what players were told, whatever the order of players in a flush and of items in a section. */
#ifndef AOI_SERVER_DIGEST_H
#define AOI_SERVER_DIGEST_H

#include "base/array.h"
#include "core/aoi.h"

struct digest {
    uint64_t sum[2]; /* of a hash for each delta: their order does not matter, for each says its player and its number */
    uint64_t deltas, enters, leaves, updates, changes, messages;
    ARRAY(struct digest_item) items; /* scratch */
};

void digest_add(struct digest *digest, const struct aoi_delta *delta);
void digest_clear(struct digest *digest);

#endif
