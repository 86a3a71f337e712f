/* snapshot_file.h: the file in which the world and the sessions outlive the daemon: written whole or not at all, and read whole or not at all. */
#ifndef AOI_SERVER_SNAPSHOT_FILE_H
#define AOI_SERVER_SNAPSHOT_FILE_H

#include <limits.h>

#include "server/sessions.h"

/* "aoidsnap", the version in 4 bytes, and three sections: of the daemon, its sessions, its world. Before each stand its number in 4 bytes, its length in 8, and in 8 the CRC-64 of
 * its bytes and of those 12. All numbers are little-endian. */
#define SNAPSHOT_FILE_VERSION 3u    /* those before it are read too */
#define SNAPSHOT_FILE_SUFFIX ".new" /* while it is written */
#define SNAPSHOT_FILE_WHY (AOI_LOAD_WHY + 64)

/* Writes PATH.new, of mode 0600, and renames it when it is on the disk; what was there stays until then, and if this fails. 0, or errno. *len: how long it is. */
int snapshot_file_write(const char *path, const struct sessions *sessions, const struct aoi_world *world, uint64_t now_ms, uint64_t *len);

struct snapshot_loading {
    const struct aoi_limits *limits;
    const struct aoi_sink *sink;
    uint64_t now_ms, now_us;                                                    /* flusher_now_ms(), flusher_time_us() */
    bool (*settings)(void *ctx, uint64_t space, struct aoi_settings *settings); /* as in struct aoi_load; ctx is this struct */
    const struct config *config;                                                /* for settings() */

    /* Set by snapshot_file_read(). */
    const struct sessions *sessions;
    uint64_t saved_us; /* when it was written, by the wall clock */
};
/* The world that stands in a file's bytes, and its sessions, put into *sessions, which has none; their leases begin to run at 0 of the server's clock. The bytes may be
 * anything: NULL, with *why, and *sessions empty. */
struct aoi_world *snapshot_file_read(const void *bytes, size_t len, struct sessions *sessions, struct snapshot_loading *how,
                                     char why[SNAPSHOT_FILE_WHY]);

#endif
