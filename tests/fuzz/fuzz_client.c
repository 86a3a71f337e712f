/* fuzz_client.c: whatever a client sends is refused, or means something that survives being written and read again, and takes memory in proportion. */
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "wire/codec.h"
#include "wire/frame.h"

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
    struct buf once = {0}, twice = {0};
    struct frame f;
    if (read_and_write(data, size, &once)) {
        CHECK(frame_next(buf_data(&once), buf_len(&once), FRAME_BODY_MAX, &f) == FRAME_READY && f.header_len + f.body_len == buf_len(&once));
        CHECK(read_and_write(buf_data(&once) + f.header_len, f.body_len, &twice));
        CHECK(buf_len(&once) == buf_len(&twice) && memcmp(buf_data(&once), buf_data(&twice), buf_len(&once)) == 0);
    }
    buf_clear(&once);
    buf_clear(&twice);
    return 0;
}
