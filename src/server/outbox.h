/* outbox.h: the bytes that wait to be written to one stream: soft and hard limits, partial writes. */
#ifndef AOI_SERVER_OUTBOX_H
#define AOI_SERVER_OUTBOX_H

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "wire/codec.h"

struct outbox_limits {
    uint64_t soft_bytes, hard_bytes;
    uint64_t slack_bytes; /* this near to the soft limit counts as full: no delta with anything in it is sure to fit */
};

struct outbox {
    const struct outbox_limits *limits;
    uv_stream_t *stream; /* NULL: nothing is ever written (tests) */
    uint64_t *written;   /* counts the bytes that the kernel took */

    struct buf queue;         /* encoders append to outbox_queue(); then outbox_appended() */
    struct codec_group group; /* deltas at the end of queue to which the next may be joined */
    struct buf flying;        /* older than queue; its first write_bytes are libuv's until the write ends */
    uv_write_t write;
    size_t write_bytes; /* 0: no write is under way */
    bool used;          /* since the last outbox_relax() */
    uint64_t excused;   /* bytes by which a single delta or reply took it past the soft limit: they do not count towards the hard one */

    /* With TLS: takes bytes from plain and appends what goes to the stream in their place, and what else is to go there; it may take none. NULL: they go as they are. */
    void (*seal)(void *ctx, struct buf *plain, struct buf *sealed);
    void *seal_ctx;

    /* A write ended: status is 0, or why it failed; then more may be written, or, after a failure, nothing ever. */
    void (*on_written)(struct outbox *outbox, int status);
};

void outbox_init(struct outbox *outbox, const struct outbox_limits *limits, uv_stream_t *stream, uint64_t *written,
                 void (*on_written)(struct outbox *outbox, int status));
void outbox_clear(struct outbox *outbox); /* frees; not before the stream is closed */

struct buf *outbox_queue(struct outbox *outbox); /* where something else than a delta of the same flush may be appended */
/* Joined to those before it, where it can be. */
void outbox_delta(struct outbox *outbox, const struct aoi_delta *delta, size_t max_frame_bytes);
/* Likewise, but for the columns of its updates: they are to be written there where *to says, before anything else is done with the outbox. false: nothing was done. */
bool outbox_place(struct outbox *outbox, const struct aoi_delta *delta, size_t max_frame_bytes, struct aoi_places *to);

uint64_t outbox_held(const struct outbox *outbox); /* what its buffers take, used or not */
static inline uint64_t outbox_bytes(const struct outbox *outbox)
{
    return buf_len(&outbox->queue) + buf_len(&outbox->flying);
}
/* At the soft limit, or so near that no delta is sure to fit. */
static inline bool outbox_full(const struct outbox *outbox)
{
    return outbox_bytes(outbox) + outbox->limits->slack_bytes > outbox->limits->soft_bytes;
}
/* Bytes to the soft limit; 0 when full. */
static inline size_t outbox_room(const struct outbox *outbox)
{
    return outbox_full(outbox) ? 0 : (size_t)(outbox->limits->soft_bytes - outbox_bytes(outbox));
}
bool outbox__excuse(struct outbox *outbox, uint64_t bytes_before); /* where it is over the soft limit now */
/* One more delta or reply was appended to queue, before which there were so many bytes. false: that takes it over the hard limit. What begins while there is
 * room may be as long as it likes: no single one makes a connection hard-full. */
static inline bool outbox_appended(struct outbox *outbox, uint64_t bytes_before)
{
    return outbox_bytes(outbox) <= outbox->limits->soft_bytes || outbox__excuse(outbox, bytes_before);
}

/* Writes what the kernel takes, and lets libuv wait with the rest. 0, or a UV_E... after which nothing can be written. */
int outbox_flush(struct outbox *outbox);
/* Nothing that waits will be written, but for what the kernel or libuv has. */
void outbox_abandon(struct outbox *outbox);
/* To be called now and then: gives the memory back that has not been used since the last call. */
void outbox_relax(struct outbox *outbox);

#endif
