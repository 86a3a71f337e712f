/* fuzz_frame.c: a stream of bytes is cut into the same frames however it arrives. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "wire/frame.h"

/* What frame_next() says about the first len bytes, on a block of exactly as many. */
static enum frame_status next(const uint8_t *data, size_t len, size_t max_body, struct frame *out)
{
    uint8_t *exact = mem_alloc(len + 1);
    memcpy(exact + 1, data, len);
    enum frame_status status = frame_next(exact + 1, len, max_body, out);
    free(exact);
    return status;
}

/* The stream is cut after len bytes: what is said then must not contradict what the whole says. */
static void check_cut(const uint8_t *data, size_t len, size_t max_body, enum frame_status whole, const struct frame *all)
{
    struct frame cut;
    enum frame_status status = next(data, len, max_body, &cut);
    if (whole == FRAME_READY) {
        CHECK(status == (len < all->header_len + all->body_len ? FRAME_INCOMPLETE : FRAME_READY));
    } else {
        CHECK(status == whole || status == FRAME_INCOMPLETE);
        CHECK(whole != FRAME_TOO_LARGE || len < FRAME_HEADER_MAX || status == FRAME_TOO_LARGE);
    }
    CHECK(status != FRAME_TOO_LARGE || cut.header_len == 0);
    CHECK(cut.header_len == 0 || (cut.header_len == all->header_len && cut.body_len == all->body_len));
    CHECK(cut.header_len != 0 || cut.body_len == 0);
    CHECK(all->header_len == 0 || len < all->header_len || cut.header_len == all->header_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t limits[] = {0, 1, 127, 128, 4096, 16383, 16384, 1 << 20, FRAME_BODY_MAX};
    struct fuzz_input in = {data, size};
    size_t max_body = limits[fuzz_below(&in, sizeof limits / sizeof *limits)];
    for (;;) {
        struct frame f;
        enum frame_status status = frame_next(in.at, in.left, max_body, &f);
        CHECK(f.header_len <= FRAME_HEADER_MAX && f.header_len <= in.left && f.body_len <= max_body);
        for (size_t len = 0; len <= in.left && len <= FRAME_HEADER_MAX + 1; len++) check_cut(in.at, len, max_body, status, &f);
        if (status != FRAME_READY) break;
        size_t total = f.header_len + f.body_len;
        CHECK(total <= in.left);
        check_cut(in.at, total - 1, max_body, status, &f);
        uint8_t header[FRAME_HEADER_MAX];
        CHECK(frame_put_header(header, f.body_len) == frame_header_size(f.body_len) && frame_header_size(f.body_len) <= f.header_len);
        if (frame_header_size(f.body_len) == f.header_len) CHECK(memcmp(header, in.at, f.header_len) == 0);
        in.at += total;
        in.left -= total;
    }
    return 0;
}
