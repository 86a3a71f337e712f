/* frame.c: the length prefix of a frame: a varint of 1 to 4 bytes. */
#include "wire/frame.h"

#include "base/check.h"

enum frame_status frame_next(const void *data, size_t len, size_t max_body, struct frame *out)
{
    const uint8_t *byte = data;
    size_t value = 0;
    *out = (struct frame){0};
    for (size_t i = 0; i < FRAME_HEADER_MAX; i++) {
        if (i == len) return FRAME_INCOMPLETE;
        value |= (size_t)(byte[i] & 0x7f) << (7 * i);
        if (value > max_body) return FRAME_TOO_LARGE; /* bytes to come only add to it */
        if (byte[i] < 0x80) {
            *out = (struct frame){.header_len = i + 1, .body_len = value};
            return len - out->header_len >= value ? FRAME_READY : FRAME_INCOMPLETE;
        }
    }
    return FRAME_TOO_LARGE;
}

size_t frame_header_size(size_t body_len)
{
    return body_len < 1u << 7 ? 1 : body_len < 1u << 14 ? 2 : body_len < 1u << 21 ? 3 : 4;
}

size_t frame_put_header(uint8_t *out, size_t body_len)
{
    CHECK(body_len <= FRAME_BODY_MAX);
    size_t n = 0;
    for (; body_len >= 0x80; body_len >>= 7) out[n++] = (uint8_t)(body_len | 0x80);
    out[n++] = (uint8_t)body_len;
    return n;
}
