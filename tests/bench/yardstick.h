/* yardstick.h: what the core is measured beside: other ways to the same, on the same walks. */
#ifndef AOI_BENCH_YARDSTICK_H
#define AOI_BENCH_YARDSTICK_H

#include "crowd.h"

/* Every entity of a crowd watches and moves. begin: places them where they stand. round: all have moved; whoever watches is told: enters, leaves and updates of 16 bytes
 * each, in a buffer. pairs: who sees whom, now. */
struct yardstick {
    const char *name;
    bool exact; /* sees what the core sees: pairs must be the same */
    void *(*begin)(const struct crowd *c);
    void (*round)(void *y, const struct crowd *c);
    uint64_t (*pairs)(const void *y);
    void (*end)(void *y);
};

/* Looks at all pairs, and compares each with what was told. */
extern const struct yardstick yardstick_brute;
/* The textbook: a grid of cells as large as the sight, a hash set of entities in each; a move tells everybody in the nine cells around, and one that changes the cell takes the
 * difference of the two nines. Sees the nine cells, whatever is in them. */
extern const struct yardstick yardstick_cells;

/* Where what is told goes: as a socket would take it. */
#define YARDSTICK_SINK ((size_t)2 << 20)
struct yardstick_told {
    uint64_t id;
    float x, y;
};

#endif
