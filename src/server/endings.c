/* endings.c: the end of a session that owns much: in slices, behind which its spaces are shut. */
#include "server/dispatch.h"

#define SLICE_NS ((uint64_t)2 * 1000 * 1000)
#define PIECE 256 /* removed between two looks at the clock */
#define TOLD_A_SECOND 10

enum log_level dispatch_told(struct dispatch *dispatch)
{
    uint64_t second = uv_hrtime() / 1000000000;
    if (second != dispatch->told_s) dispatch->told = 0;
    dispatch->told_s = second;
    return dispatch->told++ < TOLD_A_SECOND ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG;
}

/* False: it took too long. */
static bool shed(struct dispatch *dispatch, const struct ending *ending, uint64_t until_ns)
{
    for (uint64_t left; aoi_owner_shed(dispatch->world, ending->owner, PIECE, &left);) {
        struct aoi_space *space = aoi_space_find(dispatch->world, left);
        if (space != NULL)
            flusher_release(space);
        else if (left != 0)
            log_write(dispatch_told(dispatch), "space", "id=%llu ended_by=%llu why=\"the session that made it has ended\"", (unsigned long long)left,
                      (unsigned long long)ending->session);
        if (left != 0) dispatch->flusher->ended++; /* who waits for a space looks again */
        if (uv_hrtime() >= until_ns) return false;
    }
    sessions_clean(dispatch->sessions, ending->owner);
    deliver_waiting(dispatch->deliver);
    return true;
}

static void go_on(struct dispatch *dispatch, uint64_t until_ns)
{
    while (dispatch->ending.n > 0 && shed(dispatch, &dispatch->ending.at[0], until_ns)) {
        array_swap_remove(&dispatch->ending, 0);
        if (uv_hrtime() >= until_ns) return;
    }
}

/* What is left of a slice for all that end in one turn of the loop, be they a thousand. */
static uint64_t left_ns(struct dispatch *dispatch)
{
    uint64_t turn = uv_now(dispatch->flusher->loop);
    if (turn != dispatch->end_turn) dispatch->end_ns = 0;
    dispatch->end_turn = turn;
    return dispatch->end_ns < SLICE_NS ? SLICE_NS - dispatch->end_ns : 0;
}

void dispatch_end(struct dispatch *dispatch, struct standing *standing)
{
    struct ending ending = {.session = standing->id};
    ending.owner = sessions_part(dispatch->sessions, standing);
    /* in a recording it stands at one place: owners' numbers, and ids, are free behind it */
    bool whole = dispatch->sessions->record != NULL;
    uint64_t began_ns = uv_hrtime(), left = left_ns(dispatch);
    if ((left == 0 && !whole) || !shed(dispatch, &ending, whole ? UINT64_MAX : began_ns + left)) *array_add(&dispatch->ending) = ending;
    dispatch->end_ns += uv_hrtime() - began_ns;
}

bool dispatch_end_some(struct dispatch *dispatch)
{
    go_on(dispatch, uv_hrtime() + SLICE_NS);
    return dispatch->ending.n > 0;
}

void dispatch_end_all(struct dispatch *dispatch)
{
    go_on(dispatch, UINT64_MAX);
}

bool dispatch_ending_holds(const struct dispatch *dispatch, uint64_t id)
{
    const struct aoi_space *space = dispatch->ending.n > 0 ? aoi_space_find(dispatch->world, id) : NULL;
    for (uint32_t i = 0; space != NULL && i < dispatch->ending.n; i++)
        if (aoi_owner_in(space, dispatch->ending.at[i].owner)) return true;
    return false;
}
