/* still.c: what is done at a moment at which nothing is half done. */
#include "server/still.h"

#include "base/check.h"

#define TRY_MS 10
#define TRIES 100 /* after which nothing new begins */

static bool is_wanted(const struct still *still)
{
    return uv_is_active((const uv_handle_t *)&still->timer);
}

static void on_timer(uv_timer_t *timer)
{
    struct still *still = timer->data;
    if (dispatch_still(still->dispatch)) {
        still_stop(still);
        still->run(still->ctx);
    } else if (++still->tries == TRIES) {
        dispatch_shut(still->dispatch);
    }
}

void still_init(struct still *still, uv_loop_t *loop, struct dispatch *dispatch, void (*run)(void *ctx), void *ctx)
{
    *still = (struct still){.dispatch = dispatch, .run = run, .ctx = ctx};
    CHECK(uv_timer_init(loop, &still->timer) == 0);
    still->timer.data = still;
}

void still_want(struct still *still)
{
    if (is_wanted(still)) return;
    still->tries = 0;
    CHECK(uv_timer_start(&still->timer, on_timer, TRY_MS, TRY_MS) == 0);
    on_timer(&still->timer);
}

void still_stop(struct still *still)
{
    if (!is_wanted(still)) return;
    uv_timer_stop(&still->timer);
    if (still->tries >= TRIES) dispatch_reopen(still->dispatch);
}

void still_close(struct still *still)
{
    still_stop(still);
    uv_close((uv_handle_t *)&still->timer, NULL);
}
