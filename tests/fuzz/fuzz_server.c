/* fuzz_server.c: whatever a daemon sends is refused by a client, or survives being written and read again; a delta also in parts. */
#include <string.h>

#include "base/check.h"
#include "fuzz.h"
#include "twice.h"
#include "wire/codec.h"

/* How much is in deltas, whatever parts it comes in. */
struct amount {
    uint64_t leaves, enters, updates, payloads, layers, messages, bytes, lost;
};

static size_t add(struct amount *a, const struct aoi_delta *d)
{
    size_t longest = 0;
    a->leaves += d->leave_n;
    a->enters += d->enters.n;
    a->updates += d->updates.n;
    a->payloads += d->payload_n;
    a->layers += d->layers_n;
    a->messages += d->message_n;
    a->lost += d->messages_lost;
    const uint32_t *lengths[] = {d->enters.payload == NULL ? NULL : d->enters.payload_len, d->payload_len, d->message_len};
    const size_t n[] = {d->enters.n, d->payload_n, d->message_n};
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; lengths[k] != NULL && i < n[k]; i++) {
            a->bytes += lengths[k][i];
            if (lengths[k][i] > longest) longest = lengths[k][i];
        }
    }
    return longest;
}

/* Writes the delta in frames that are as small as they may be, and looks whether everything is in them. */
static void check_parts(const struct aoi_delta *delta)
{
    struct amount whole = {0}, parts = {0};
    size_t max_frame_bytes = add(&whole, delta) + 1024, frames = 0;
    struct buf out = {0};
    struct arena arena;
    arena_init(&arena, (size_t)1 << 30);
    size_t said = codec_encode_delta(delta, max_frame_bytes, &out);
    while (buf_len(&out) > 0) {
        struct frame f;
        struct codec_server_frame part;
        CHECK(frame_next(buf_data(&out), buf_len(&out), max_frame_bytes, &f) == FRAME_READY);
        CHECK(codec_decode_server(buf_data(&out) + f.header_len, f.body_len, &arena, &part) == CODEC_OK);
        CHECK(part.kind == CODEC_DELTAS && part.u.deltas.player_n == 1 && part.u.deltas.players[0].part == frames);
        add(&parts, &part.u.deltas.players[0].delta);
        buf_consume(&out, f.header_len + f.body_len);
        frames++;
        CHECK(part.u.deltas.players[0].more == (buf_len(&out) > 0));
        arena_reset(&arena);
    }
    CHECK(frames == said && memcmp(&whole, &parts, sizeof whole) == 0);
    arena_clear(&arena);
    buf_clear(&out);
}

static bool read_and_write(const uint8_t *body, size_t len, struct buf *out)
{
    struct arena arena;
    struct codec_server_frame frame;
    arena_init(&arena, (size_t)1 << 30);
    int code = codec_decode_server(body, len, &arena, &frame);
    CHECK(code == CODEC_OK || code == CODEC_MALFORMED);
    if (code == CODEC_OK) {
        codec_encode_server(&frame, out);
        if (frame.kind == CODEC_DELTAS)
            for (size_t i = 0; i < frame.u.deltas.player_n; i++) check_parts(&frame.u.deltas.players[i].delta);
    }
    arena_clear(&arena);
    return code == CODEC_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_twice(read_and_write, data, size);
    return 0;
}
