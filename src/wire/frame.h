/* frame.h: the length prefix of a frame: a varint of 1 to 4 bytes, padded ones allowed. */
#ifndef AOI_WIRE_FRAME_H
#define AOI_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER_MAX 4
#define FRAME_BODY_MAX (((size_t)1 << 28) - 1) /* the largest length that 4 varint bytes can say */

enum frame_status {
    FRAME_INCOMPLETE, /* more bytes are needed: see struct frame */
    FRAME_READY,      /* header and body are there; the body is data[header_len .. header_len + body_len), body_len may be 0 */
    FRAME_TOO_LARGE   /* over max_body, or a prefix longer than 4 bytes. The stream cannot be read any further. */
};

struct frame {
    size_t header_len; /* 1 .. FRAME_HEADER_MAX; 0: the header itself is incomplete (or FRAME_TOO_LARGE), and body_len is 0 */
    size_t body_len;   /* at most max_body. FRAME_INCOMPLETE with header_len not 0: header_len + body_len bytes are needed in all */
};

/* Looks at the first frame of data[0 .. len), of which it never reads more than FRAME_HEADER_MAX bytes and none past len. FRAME_TOO_LARGE is said as soon as
 * the bytes of the header leave no other end, whether or not the body has come. max_body <= FRAME_BODY_MAX; another max for the first frame of a connection
 * (Hello) is up to the caller. */
enum frame_status frame_next(const void *data, size_t len, size_t max_body, struct frame *out);

size_t frame_header_size(size_t body_len);              /* bytes of the shortest prefix; body_len <= FRAME_BODY_MAX */
size_t frame_put_header(uint8_t *out, size_t body_len); /* writes it and returns its size */

#endif
