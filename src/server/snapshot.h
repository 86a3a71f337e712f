/* snapshot.h: when the world and the sessions are written to a file: at the end, and every snapshot_s by a child; and how they come back. */
#ifndef AOI_SERVER_SNAPSHOT_H
#define AOI_SERVER_SNAPSHOT_H

#include <sys/types.h>
#include <uv.h>

#include "server/config.h"
#include "server/dispatch.h"
#include "server/sessions.h"
#include "server/still.h"

struct snapshot {
    const struct config *config;
    struct sessions *sessions;
    uv_timer_t timer;            /* runs every snapshot_s */
    uv_signal_t child;           /* hears of the child's end, while there is one */
    pid_t writer;                /* the child; 0: there is none */
    struct still still;          /* when one is due, for a moment at which the world is whole */
    uint32_t session_n;          /* that it writes */
    uint64_t began_ns, stall_ns; /* when it began, and how long the daemon stood still for that */
};

/* Looks whether the file can be written, and reads it. 0, with *world NULL where nothing is to be gone on with: there is no file, or it was no good and was set aside. -1 with
 * err[CONFIG_ERROR_MAX]: the daemon had better not start. sessions has none yet. */
int snapshot_load(const struct config *config, struct sessions *sessions, const struct aoi_sink *sink, struct aoi_world **world, char *err);

/* What is to be written, of the world of the sessions. */
void snapshot_init(struct snapshot *snapshot, uv_loop_t *loop, const struct config *config, struct sessions *sessions, struct dispatch *dispatch);
/* The daemon runs: from now on snapshots are taken. Where that is only at its end, the one that was read has served: a crash must not bring it back. */
void snapshot_begin(struct snapshot *snapshot);
/* No more of them. */
void snapshot_stop(struct snapshot *snapshot);
/* The last one, written at once; nobody is connected any more. */
bool snapshot_last(struct snapshot *snapshot);  /* false: it could not be written */
void snapshot_close(struct snapshot *snapshot); /* stops, and closes its handles */

#endif
