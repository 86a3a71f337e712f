/* dispatch.h: what each frame of a client does: a table of frames, and the rules of seq, Hello and draining. */
#ifndef AOI_SERVER_DISPATCH_H
#define AOI_SERVER_DISPATCH_H

#include "base/log.h"
#include "base/arena.h"
#include "server/budget.h"
#include "server/config.h"
#include "server/deliver.h"
#include "server/flusher.h"
#include "server/metrics.h"
#include "server/sessions.h"

#define DISPATCH_HELLO_BYTES 4096 /* the largest first frame */

typedef ARRAY(struct codec_error_item) error_list;

struct ending {
    aoi_owner owner;
    uint64_t session;
};

/* An owner that is about to leave, come back or end, and has to wait: until then nothing new begins where it has something. */
struct parting {
    aoi_owner owner;
    uint64_t tried_ns; /* by uv_hrtime() */
};

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
    uint32_t shut;               /* who waits until nothing is open, and lets nothing begin: dispatch_shut() */

    ARRAY(struct batch *) open;  /* batches that took too long for one turn */
    uint64_t open_bytes;         /* what they stand in, counted like a buffer */
    uint64_t heavy_bytes;        /* what those of them unpack to that are heavy: dispatch_weight() */
    const struct session *claim; /* whose heavy frame has waited longest for others to end; NULL: none does. Only compared: it may be gone */
    uint64_t claimed_ns;         /* when it tried last */
    ARRAY(struct ending) ending; /* whose sessions have ended, and who own so much that it is not removed yet */
    uint64_t end_turn, end_ns;   /* when the loop turned last, as far as its clock tells, and how long ends have taken since */
    ARRAY(struct parting) parting;
    uint64_t told_s, told; /* in that second, by uv_hrtime(), so many spaces that were made, changed or ended: see dispatch_told() */
    uint64_t pause_ns;     /* when the batch that runs is to pause, by uv_hrtime(); 0: never. Set before each frame */

    /* what one frame needs, kept for the next */
    struct arena arena;
    struct aoi_rows rows;
    error_list errors;
    ARRAY(struct codec_space_info) spaces;
    ARRAY(uint32_t) counts; /* of a raster */
};

/* The pointers are set by the caller. */
void dispatch_init(struct dispatch *dispatch);
void dispatch_clear(struct dispatch *dispatch);

#define DISPATCH_AGAIN UINT64_MAX

/* A frame about that space has to wait: a timed flush of it is open, a batch in the middle, or somebody's end. */
bool dispatch_holds(const struct dispatch *dispatch, uint64_t space);
/* Nothing is half done: no timed flush is open or due, no batch in the middle, nobody's end. */
bool dispatch_still(const struct dispatch *dispatch);
/* From now on no batch and no timed flush begins, so that it comes to that; each call is to be undone by the other one. */
void dispatch_shut(struct dispatch *dispatch);
void dispatch_reopen(struct dispatch *dispatch);
/* Ends all that is open, flushes and batches, without more pauses. To be called before the daemon drains. */
void dispatch_finish(struct dispatch *dispatch);
/* Whether the owner may leave, come back or end now: nothing is open where it has something (its own batch is ended for that, without more pauses). False: it is to be asked again, within
 * half a second if nothing new is to begin there meanwhile. */
bool dispatch_may_part(struct dispatch *dispatch, aoi_owner owner);
/* To be called now and then: those who ask no more do not keep others waiting. */
void dispatch_forget_parting(struct dispatch *dispatch);

/* One frame's bytes, without the length. Replies go to the session's outbox; afterwards the session may be CLOSING. Not 0: nothing was done, and the frame is to be brought again,
 * in the connection's next turn (DISPATCH_AGAIN; of a long batch a part may have been done), or when this space, which the frame is about, is not held any more. */
uint64_t dispatch_frame(struct dispatch *dispatch, struct session *session, const void *bytes, size_t len);

/* endings.c: a session ends. What it owned may go in slices, between which nobody comes near the spaces it is still in, so that in each of them it goes at once to everybody. dispatch_end_some() goes on for a
 * moment; true: there is more to do. dispatch_end(): where it may part. */
void dispatch_end(struct dispatch *dispatch, struct standing *standing);
bool dispatch_end_some(struct dispatch *dispatch);
void dispatch_end_all(struct dispatch *dispatch); /* before the daemon drains */
/* At which level the log tells of one more space that was made or changed or has ended: of a game that makes thousands only the first in each second. */
enum log_level dispatch_told(struct dispatch *dispatch);
bool dispatch_ending_holds(const struct dispatch *dispatch, uint64_t space);
/* commands.c: a batch's commands, one by one; then its Ack, then closed deltas and Lost. false: it took too long, and goes on with dispatch_go_on(), before which nobody else
 * may come near its space: neither commands nor flushes, or they would show a part of it before its Ack. */
bool dispatch_batch(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame);
bool dispatch_go_on(struct dispatch *dispatch, struct batch *batch);
bool dispatch_batch_is_of(const struct batch *batch, aoi_owner owner);
/* It is about a space in which the owner has something. */
bool dispatch_batch_concerns(const struct batch *batch, aoi_owner owner);
bool dispatch_batch_holds(const struct dispatch *dispatch, uint64_t space);
/* queries.c: the Result, or the Error. */
void dispatch_query(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame);
/* What a frame that unpacks to so much counts for among those that keep much while they pause: little ones nothing. */
uint64_t dispatch_weight(size_t unpacks);
/* The sentence that goes with a code where there is nothing more to say. */
const char *dispatch_text(int code);

#endif
