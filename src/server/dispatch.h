/* dispatch.h: what each frame of a client does: a table of frames, and the rules of seq, Hello and draining. */
#ifndef AOI_SERVER_DISPATCH_H
#define AOI_SERVER_DISPATCH_H

#include "base/arena.h"
#include "server/budget.h"
#include "server/config.h"
#include "server/deliver.h"
#include "server/flusher.h"
#include "server/metrics.h"
#include "server/sessions.h"

#define DISPATCH_HELLO_BYTES 4096 /* the largest first frame */

struct dispatch {
    const struct config *config;
    struct aoi_world *world;
    struct sessions *sessions;
    struct deliver *deliver;
    struct flusher *flusher;
    struct metrics *metrics;
    const struct tokens *tokens; /* empty: everybody is admin */
    struct budget *budget;       /* NULL: none */
    bool draining;               /* commands are refused */

    /* what one frame needs, kept for the next */
    struct arena arena;
    struct aoi_rows rows;
    ARRAY(struct codec_error_item) errors;
    ARRAY(struct codec_space_info) spaces;
    ARRAY(uint32_t) counts; /* of a raster */
};

/* The pointers are set by the caller. */
void dispatch_init(struct dispatch *dispatch);
void dispatch_clear(struct dispatch *dispatch);

#define DISPATCH_AGAIN UINT64_MAX

/* One frame's bytes, without the length. Replies go to the session's outbox; afterwards the session may be CLOSING. Not 0: nothing was done, and the frame is to be brought again,
 * in the connection's next turn (DISPATCH_AGAIN), or when an open flush has ended of this space, which the frame is about. */
uint64_t dispatch_frame(struct dispatch *dispatch, struct session *session, const void *bytes, size_t len);

/* commands.c: a batch's commands, one by one; then its Ack, then closed deltas and Lost. */
void dispatch_batch(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame);
/* queries.c: the Result, or the Error. */
void dispatch_query(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame);
/* The sentence that goes with a code where there is nothing more to say. */
const char *dispatch_text(int code);

#endif
