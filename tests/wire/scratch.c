/* scratch.c: sets up and clears what the tests of frames work in. */
#include "scratch.h"

struct arena made, decoded;
struct buf out;

int scratch_start(void **state)
{
    const size_t *cap = *state;
    arena_init(&made, *cap);
    arena_init(&decoded, *cap);
    return 0;
}

int scratch_end(void **state)
{
    (void)state;
    arena_clear(&made);
    arena_clear(&decoded);
    buf_clear(&out);
    return 0;
}

void again(void)
{
    arena_reset(&made);
    arena_reset(&decoded);
    buf_consume(&out, buf_len(&out));
}
