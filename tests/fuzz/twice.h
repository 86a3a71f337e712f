/* twice.h: what was read and written again is, read and written once more, the same bytes. */
#ifndef AOI_TESTS_FUZZ_TWICE_H
#define AOI_TESTS_FUZZ_TWICE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "wire/frame.h"

/* Decodes a frame's body, and if it is not malformed appends the frame that it stands for to out. */
typedef bool read_and_write_fn(const uint8_t *body, size_t len, struct buf *out);

static inline void check_twice(read_and_write_fn *read_and_write, const uint8_t *body, size_t len)
{
    struct buf once = {0}, twice = {0};
    struct frame f;
    if (read_and_write(body, len, &once)) {
        CHECK(frame_next(buf_data(&once), buf_len(&once), FRAME_BODY_MAX, &f) == FRAME_READY && f.header_len + f.body_len == buf_len(&once));
        CHECK(read_and_write(buf_data(&once) + f.header_len, f.body_len, &twice));
        CHECK(buf_len(&once) == buf_len(&twice) && memcmp(buf_data(&once), buf_data(&twice), buf_len(&once)) == 0);
    }
    buf_clear(&once);
    buf_clear(&twice);
}

#endif
