/* outbox.c: the bytes that wait to be written to one stream: soft and hard limits, partial writes. */
#include "server/outbox.h"

#include "base/check.h"

/* What libuv is given at once: only when it has all gone do we hear of it, and see that there is room again. */
#define WRITE_BYTES ((size_t)64 * 1024)

void outbox_init(struct outbox *outbox, const struct outbox_limits *limits, uv_stream_t *stream, uint64_t *written,
                 void (*on_written)(struct outbox *outbox, int status))
{
    *outbox = (struct outbox){.limits = limits, .stream = stream, .written = written, .on_written = on_written};
}

void outbox_clear(struct outbox *outbox)
{
    buf_clear(&outbox->queue);
    buf_clear(&outbox->flying);
}

struct buf *outbox_queue(struct outbox *outbox)
{
    codec_group_end(&outbox->group, &outbox->queue);
    return &outbox->queue;
}

void outbox_delta(struct outbox *outbox, const struct aoi_delta *delta, size_t max_frame_bytes)
{
    codec_group_add(&outbox->group, delta, max_frame_bytes, &outbox->queue);
}

bool outbox_place(struct outbox *outbox, const struct aoi_delta *delta, size_t max_frame_bytes, struct aoi_places *to)
{
    return codec_group_place(&outbox->group, delta, max_frame_bytes, &outbox->queue, to);
}

uint64_t outbox_held(const struct outbox *outbox)
{
    return outbox->queue.cap + outbox->flying.cap;
}

bool outbox__excuse(struct outbox *outbox, uint64_t bytes_before)
{
    uint64_t bytes = outbox_bytes(outbox), soft = outbox->limits->soft_bytes;
    if (bytes_before + outbox->limits->slack_bytes <= soft) outbox->excused = bytes - soft;
    return bytes <= outbox->limits->hard_bytes + outbox->excused;
}

static void took(struct outbox *outbox, size_t bytes)
{
    buf_consume(&outbox->flying, bytes);
    *outbox->written += bytes;
    if (!outbox_full(outbox)) outbox->excused = 0;
}

static void on_write(uv_write_t *req, int status)
{
    struct outbox *outbox = req->data;
    size_t bytes = outbox->write_bytes;
    outbox->write_bytes = 0;
    if (status == 0) took(outbox, bytes);
    outbox->on_written(outbox, status);
}

/* The kernel takes no more at the moment: libuv waits until it does. */
static int write_later(struct outbox *outbox)
{
    size_t bytes = buf_len(&outbox->flying) < WRITE_BYTES ? buf_len(&outbox->flying) : WRITE_BYTES;
    uv_buf_t piece = uv_buf_init((char *)outbox->flying.at + outbox->flying.start, (unsigned)bytes);
    outbox->write.data = outbox;
    int status = uv_write(&outbox->write, outbox->stream, &piece, 1, on_write);
    if (status == 0) outbox->write_bytes = bytes;
    return status;
}

/* flying is empty: what is queued takes its place. False: there is nothing to write. */
static bool refill(struct outbox *outbox)
{
    if (outbox->seal != NULL) {
        outbox->seal(outbox->seal_ctx, &outbox->queue, &outbox->flying);
    } else {
        struct buf empty = outbox->flying;
        outbox->flying = outbox->queue;
        outbox->queue = empty;
    }
    if (buf_len(&outbox->flying) == 0) return false;
    outbox->used = true;
    return true;
}

int outbox_flush(struct outbox *outbox)
{
    if (outbox->stream == NULL || outbox->write_bytes > 0) return 0;
    outbox_queue(outbox);
    for (;;) {
        if (buf_len(&outbox->flying) == 0 && !refill(outbox)) return 0;
        size_t len = buf_len(&outbox->flying);
        uv_buf_t all = uv_buf_init((char *)outbox->flying.at + outbox->flying.start, (unsigned)(len < (1u << 30) ? len : 1u << 30));
        int took_bytes = uv_try_write(outbox->stream, &all, 1);
        if (took_bytes == UV_EAGAIN || took_bytes == 0) return write_later(outbox);
        if (took_bytes < 0) return took_bytes;
        took(outbox, (size_t)took_bytes);
    }
}

void outbox_abandon(struct outbox *outbox)
{
    outbox->group.len = 0;
    buf_clear(&outbox->queue);
    if (outbox->write_bytes == 0) buf_clear(&outbox->flying);
}

void outbox_relax(struct outbox *outbox)
{
    if (!outbox->used && outbox->write_bytes == 0) {
        buf_shrink(&outbox->flying, 0);
        buf_shrink(&outbox->queue, 0);
    }
    outbox->used = false;
}
