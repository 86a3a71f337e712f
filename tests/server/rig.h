/* rig.h: the daemon without sockets: frames go in by rig_frame(), replies and deltas are taken out of the sessions' outboxes. */
#ifndef AOI_TESTS_SERVER_RIG_H
#define AOI_TESTS_SERVER_RIG_H

#include "server/dispatch.h"

struct rig {
    uv_loop_t loop;
    struct config config;
    struct metrics metrics;
    struct outbox_limits out_limits;
    struct sessions sessions;
    struct deliver deliver;
    struct aoi_world *world;
    struct flusher flusher;
    struct tokens tokens; /* none at first: everybody is admin */
    struct dispatch dispatch;
    struct session session[3];
    struct arena arena;  /* of the last frame taken */
    struct buf apart[3]; /* frames of several players' deltas, one for each */
    int timed_flushes;
};

int rig_setup(void **state); /* *state is a struct rig; session[] are in HELLO_WAIT */
int rig_teardown(void **state);
void rig_close(struct rig *rig, struct session *session); /* what the server does when a session has closed */

void rig_frame(struct rig *rig, struct session *session, const struct codec_client_frame *frame);
uint64_t rig_try_frame(struct rig *rig, struct session *session, const struct codec_client_frame *frame); /* what dispatch_frame() returns */
void rig_hello(struct rig *rig, struct session *session);                                                 /* and takes the Welcome */
/* Sends a batch about space 1 with seq (0: none). */
void rig_batch(struct rig *rig, struct session *session, uint64_t seq, size_t n, const struct codec_command *commands);
/* The next frame that was sent to the session, of several players' deltas one at a time; fails if there is none. Valid until the next one is taken. */
const struct codec_server_frame *rig_take(struct rig *rig, struct session *session);
/* Takes a Deltas frame of this player alone. */
struct aoi_delta rig_take_delta(struct rig *rig, struct session *session, uint64_t player);
/* Sends a query with the next seq and takes the reply. */
const struct codec_server_frame *rig_ask(struct rig *rig, struct session *session, struct codec_query query);
bool rig_silent(struct rig *rig, struct session *session); /* nothing was sent that was not taken */
/* Takes an Error and compares. */
void rig_expect_error(struct rig *rig, struct session *session, uint64_t reply_to, enum codec_code code);
/* Takes an Ack without errors. */
void rig_expect_ack(struct rig *rig, struct session *session, uint64_t reply_to, uint64_t applied);
/* Takes an Ack of which the first error is this one. */
void rig_expect_refusal(struct rig *rig, struct session *session, enum codec_code code, uint64_t id);

#endif
