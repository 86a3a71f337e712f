/* flushwatch.h: what is counted of flushes, and the online oracle that looks after them. */
#ifndef AOI_SERVER_FLUSHWATCH_H
#define AOI_SERVER_FLUSHWATCH_H

#include "server/config.h"
#include "server/metrics.h"

struct flushwatch {
    struct metrics *metrics;
    const struct config *config; /* oracle_players may change while it runs */
    struct aoi_oracle *oracle;
    uint64_t at_ns;    /* when credit_ns was reckoned last */
    uint64_t told_ns;  /* when a mismatch was logged last */
    int64_t credit_ns; /* for which the oracle may work; below 0: it has worked too long */
};

void flushwatch_init(struct flushwatch *watch, struct metrics *metrics, const struct config *config);
void flushwatch_clear(struct flushwatch *watch);

/* A flush has ended, and nothing has changed in the space since: how long it worked, and how long ago the oldest change came that it told. */
void flushwatch_done(struct flushwatch *watch, const struct aoi_space *space, uint64_t work_ns, uint64_t latency_ns);

/* A space is about to end: what it has counted is kept. */
void flushwatch_space_ends(struct flushwatch *watch, const struct aoi_space *space);

#endif
