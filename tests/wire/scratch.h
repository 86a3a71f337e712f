/* scratch.h: where frames are made, encoded and decoded, anew for each test. */
#ifndef AOI_TESTS_SCRATCH_H
#define AOI_TESTS_SCRATCH_H

#include "base/arena.h"
#include "base/buf.h"

extern struct arena made, decoded; /* of the frame that a test made up, and of the one that was decoded */
extern struct buf out;

/* Set-up and teardown of cmocka; the initial state is a pointer to the arenas' limit, a size_t of bytes. */
int scratch_start(void **state);
int scratch_end(void **state);
/* Empties all three. */
void again(void);

#endif
