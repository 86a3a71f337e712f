/* replay.h: `aoid --replay FILE`: a recording goes through the core again, and out comes a digest of what players were told. */
#ifndef AOI_SERVER_REPLAY_H
#define AOI_SERVER_REPLAY_H

#include <stdint.h>
#include <stdio.h>

/* index: enum aoi_index in place of that of every space; 0: as recorded. The digest is the same for every run and either index. It knows of no full connections: nobody is
 * skipped. Prints counts and the digest, and to stderr what is wrong with the file, of which the whole part is replayed. The exit status: 0, or 1. */
int replay(const char *path, uint32_t index, FILE *out);

#endif
