/* endings.c: the end of a session that owns much: in slices, behind which its spaces are shut. */
#include "server/dispatch.h"

#define SLICE_NS ((uint64_t)2 * 1000 * 1000)
#define PIECE 256 /* removed between two looks at the clock */

/* False: it took too long. */
static bool shed(struct dispatch *dispatch, aoi_owner owner, uint64_t until_ns)
{
    for (uint64_t left; aoi_owner_shed(dispatch->world, owner, PIECE, &left);) {
        struct aoi_space *space = aoi_space_find(dispatch->world, left);
        if (space != NULL) flusher_release(dispatch->flusher, space);
        if (left != 0) dispatch->flusher->ended++; /* who waits for a space looks again */
        if (uv_hrtime() >= until_ns) return false;
    }
    sessions_clean(dispatch->sessions, owner);
    deliver_waiting(dispatch->deliver);
    return true;
}

static void go_on(struct dispatch *dispatch, uint64_t until_ns)
{
    if (shed(dispatch, dispatch->ending.at[0], until_ns)) array_swap_remove(&dispatch->ending, 0);
}

void dispatch_end(struct dispatch *dispatch, struct standing *standing)
{
    dispatch_finish(dispatch);
    aoi_owner owner = sessions_part(dispatch->sessions, standing);
    if (!shed(dispatch, owner, uv_hrtime() + SLICE_NS)) *array_add(&dispatch->ending) = owner;
}

bool dispatch_end_some(struct dispatch *dispatch)
{
    if (dispatch->ending.n > 0) go_on(dispatch, uv_hrtime() + SLICE_NS);
    return dispatch->ending.n > 0;
}

void dispatch_end_all(struct dispatch *dispatch)
{
    while (dispatch->ending.n > 0) go_on(dispatch, UINT64_MAX);
}

bool dispatch_ending_holds(const struct dispatch *dispatch, uint64_t id)
{
    const struct aoi_space *space = dispatch->ending.n > 0 ? aoi_space_find(dispatch->world, id) : NULL;
    for (uint32_t i = 0; space != NULL && i < dispatch->ending.n; i++)
        if (aoi_owner_in(space, dispatch->ending.at[i])) return true;
    return false;
}
