/* still.h: what is done at a moment at which nothing is half done, neither a batch, nor a flush, nor somebody's end: a snapshot, another configuration. */
#ifndef AOI_SERVER_STILL_H
#define AOI_SERVER_STILL_H

#include <uv.h>

#include "server/dispatch.h"

struct still {
    struct dispatch *dispatch;
    uv_timer_t timer; /* runs while that is waited for */
    uint32_t tries;
    void (*run)(void *ctx);
    void *ctx;
};

/* run must be quick, or not mind who waits. */
void still_init(struct still *still, uv_loop_t *loop, struct dispatch *dispatch, void (*run)(void *ctx), void *ctx);
/* Runs it once: now, or in a while, in which others are served as ever; if such a moment does not come by itself, batches and timed flushes do not begin any more until what is open has ended. */
void still_want(struct still *still);
void still_stop(struct still *still);  /* it is not wanted any more */
void still_close(struct still *still); /* stops, and closes its handle */

#endif
