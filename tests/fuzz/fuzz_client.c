/* fuzz_client.c: whatever a client sends is refused, or means something that survives being written and read again, and takes memory in proportion. */
#include "fuzz.h"
#include "twice.h"
#include "wire/codec.h"

/* Decodes, and appends what it said to out, which touches all of it. False: malformed. */
static bool read_and_write(const uint8_t *body, size_t len, struct buf *out)
{
    struct arena arena;
    struct codec_client_frame frame;
    arena_init(&arena, (size_t)1 << 30);
    int code = codec_decode_client(body, len, &arena, &frame);
    CHECK(code == CODEC_OK || code == CODEC_MALFORMED);
    CHECK(arena.used <= 108 * len + 1024); /* as codec.h says, and what any frame takes */
    if (code == CODEC_OK) codec_encode_client(&frame, out);
    arena_clear(&arena);
    return code == CODEC_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_twice(read_and_write, data, size);
    return 0;
}
