/* codec_delta.c: Deltas frames, the hot output: written straight into the buffer, cut into parts where a frame is too small.
 *
 * Everything else goes through protobuf-c. A delta is nothing but numbers and columns, whose bytes in memory are those of the wire, so that its encoding is a
 * table of columns and one memcpy for each: some 100 ns a delta and 0.2 ns an item (7 ns with a payload). The tests compare it with
 * what protobuf-c writes, byte for byte.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "wire/codec.h"
#include "wire/codec_internal.h"
#include "wire/frame.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "columns are copied as they lie in memory: a big-endian machine would have to swap them");
_Static_assert(sizeof(float) == 4, "a float is 4 bytes on the wire");

/* Field numbers of aoi.proto. */
enum { SERVER_FRAME_REPLY_TO = 1, SERVER_FRAME_DELTAS = 4 };
enum { DELTAS_SPACE = 1, DELTAS_FLUSH, DELTAS_TAG, DELTAS_TIME_US, DELTAS_PLAYERS };
enum {
    PLAYER = 1,
    SEQ,
    PART,
    MORE,
    FULL,
    CLOSED,
    LEAVE_IDS,
    ENTER_IDS,
    ENTER_X,
    ENTER_Y,
    ENTER_Z,
    ENTER_EXTRA,
    ENTER_LAYERS,
    ENTER_PAYLOADS,
    UPDATE_IDS,
    UPDATE_X,
    UPDATE_Y,
    UPDATE_Z,
    UPDATE_EXTRA,
    PAYLOAD_IDS,
    PAYLOADS,
    LAYERS_IDS,
    LAYERS,
    MESSAGE_FROM,
    MESSAGES,
    MESSAGES_LOST,
    COLUMNS = MESSAGES - CLOSED
};

/* ------------------------------------------------------------------------------------------------------------- wire format */

enum { WIRE_VARINT = 0, WIRE_LEN = 2 };

static size_t varint_size(uint64_t v)
{
    return ((63 - (unsigned)__builtin_clzll(v | 1)) * 9 + 73) / 64;
}

static size_t tag_size(uint32_t field)
{
    return field < 16 ? 1 : 2;
}

static uint8_t *put_varint(uint8_t *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

/* A scalar field below 16; 0 is not written. */
static size_t scalar_size(uint64_t v)
{
    return v == 0 ? 0 : 1 + varint_size(v);
}

static size_t lost_size(uint64_t v)
{
    return v == 0 ? 0 : tag_size(MESSAGES_LOST) + varint_size(v);
}

static uint8_t *put_scalar(uint8_t *p, uint32_t field, uint64_t v)
{
    if (v == 0) return p;
    return put_varint(put_varint(p, field << 3 | WIRE_VARINT), v);
}

static size_t len_size(uint32_t field, size_t len)
{
    return tag_size(field) + varint_size(len) + len;
}

static uint8_t *put_len(uint8_t *p, uint32_t field, size_t len)
{
    return put_varint(put_varint(p, field << 3 | WIRE_LEN), len);
}

/* ------------------------------------------------------------------------------------------------------------- one PlayerDelta */

struct column {
    uint32_t field;
    const void *data; /* packed: len bytes */
    size_t len;
    const void *const *blob; /* or not NULL: blob_n entries, each a field of its own */
    const uint32_t *blob_len;
    size_t blob_n;
};

struct body {
    uint64_t player, seq;
    uint32_t part;
    bool more, full, closed;
    size_t len; /* of the whole message */
    uint32_t column_n;
    struct column column[COLUMNS];
    uint64_t lost;
};

struct range {
    size_t from, n;
};

/* The items of a delta that go into one part. */
struct slice {
    struct range leave, enter, update, payload, layers, message;
    uint64_t lost;
};

static void add_column(struct body *b, uint32_t field, const void *base, struct range r, size_t element_bytes)
{
    if (r.n == 0 || base == NULL) return;
    size_t len = r.n * element_bytes;
    b->column[b->column_n++] = (struct column){.field = field, .data = (const uint8_t *)base + r.from * element_bytes, .len = len};
    b->len += len_size(field, len);
}

/* optional: left out if all are empty. */
static void add_blobs(struct body *b, uint32_t field, const void *const *blob, const uint32_t *len, struct range r, bool optional)
{
    if (r.n == 0 || blob == NULL) return;
    size_t bytes = 0, sum = 0;
    for (size_t i = r.from; i < r.from + r.n; i++) {
        bytes += len_size(field, len[i]);
        sum += len[i];
    }
    if (optional && sum == 0) return;
    b->column[b->column_n++] = (struct column){.field = field, .blob = blob + r.from, .blob_len = len + r.from, .blob_n = r.n};
    b->len += bytes;
}

static void lay_out(const struct aoi_delta *d, const struct slice *s, uint32_t part, bool more, struct body *b)
{
    b->player = d->player;
    b->seq = d->seq;
    b->part = part;
    b->more = more;
    b->full = d->full;
    b->closed = d->closed;
    b->lost = s->lost;
    b->len = scalar_size(d->player) + scalar_size(d->seq) + scalar_size(part) + scalar_size(more) + scalar_size(d->full) + scalar_size(d->closed) +
             lost_size(s->lost);
    b->column_n = 0;
    add_column(b, LEAVE_IDS, d->leave_id, s->leave, 8);
    if (s->enter.n > 0) {
        add_column(b, ENTER_IDS, d->enters.id, s->enter, 8);
        add_column(b, ENTER_X, d->enters.x, s->enter, 4);
        add_column(b, ENTER_Y, d->enters.y, s->enter, 4);
        add_column(b, ENTER_Z, d->enters.z, s->enter, 4);
        add_column(b, ENTER_EXTRA, d->enters.extra, s->enter, 4);
        add_column(b, ENTER_LAYERS, d->enters.layers, s->enter, 4);
        add_blobs(b, ENTER_PAYLOADS, d->enters.payload, d->enters.payload_len, s->enter, true);
    }
    if (s->update.n > 0) {
        add_column(b, UPDATE_IDS, d->updates.id, s->update, 8);
        add_column(b, UPDATE_X, d->updates.x, s->update, 4);
        add_column(b, UPDATE_Y, d->updates.y, s->update, 4);
        add_column(b, UPDATE_Z, d->updates.z, s->update, 4);
        add_column(b, UPDATE_EXTRA, d->updates.extra, s->update, 4);
    }
    if (s->payload.n + s->layers.n + s->message.n == 0) return; /* as mostly */
    add_column(b, PAYLOAD_IDS, d->payload_id, s->payload, 8);
    add_blobs(b, PAYLOADS, d->payload, d->payload_len, s->payload, false);
    add_column(b, LAYERS_IDS, d->layers_id, s->layers, 8);
    add_column(b, LAYERS, d->layers, s->layers, 4);
    add_column(b, MESSAGE_FROM, d->message_from, s->message, 8);
    add_blobs(b, MESSAGES, d->message, d->message_len, s->message, false);
}

static uint8_t *put_column(uint8_t *p, const struct column *c)
{
    if (c->blob == NULL) {
        p = put_len(p, c->field, c->len);
        memcpy(p, c->data, c->len);
        return p + c->len;
    }
    for (size_t i = 0; i < c->blob_n; i++) {
        p = put_len(p, c->field, c->blob_len[i]);
        if (c->blob_len[i] > 0) memcpy(p, c->blob[i], c->blob_len[i]);
        p += c->blob_len[i];
    }
    return p;
}

static uint8_t *put_body(uint8_t *p, const struct body *b)
{
    p = put_scalar(p, PLAYER, b->player);
    p = put_scalar(p, SEQ, b->seq);
    p = put_scalar(p, PART, b->part);
    p = put_scalar(p, MORE, b->more);
    p = put_scalar(p, FULL, b->full);
    p = put_scalar(p, CLOSED, b->closed);
    for (uint32_t i = 0; i < b->column_n; i++) p = put_column(p, &b->column[i]);
    return put_scalar(p, MESSAGES_LOST, b->lost);
}

/* ------------------------------------------------------------------------------------------------------------- frames */

struct deltas {
    uint64_t reply_to, space, flush, tag, time_us;
    const struct body *body;
    size_t body_n;
};

static size_t deltas_len(const struct deltas *d)
{
    size_t len = scalar_size(d->space) + scalar_size(d->flush) + scalar_size(d->tag) + scalar_size(d->time_us);
    for (size_t i = 0; i < d->body_n; i++) len += len_size(DELTAS_PLAYERS, d->body[i].len);
    return len;
}

static size_t frame_len(const struct deltas *d)
{
    return scalar_size(d->reply_to) + len_size(SERVER_FRAME_DELTAS, deltas_len(d));
}

/* Appends prefix and frame; returns the frame's length. */
static size_t append_frame(const struct deltas *d, struct buf *out)
{
    size_t len = frame_len(d);
    uint8_t *start = buf_reserve(out, FRAME_HEADER_MAX + len);
    size_t header = frame_put_header(start, len);
    uint8_t *p = put_scalar(start + header, SERVER_FRAME_REPLY_TO, d->reply_to);
    p = put_len(p, SERVER_FRAME_DELTAS, deltas_len(d));
    p = put_scalar(p, DELTAS_SPACE, d->space);
    p = put_scalar(p, DELTAS_FLUSH, d->flush);
    p = put_scalar(p, DELTAS_TAG, d->tag);
    p = put_scalar(p, DELTAS_TIME_US, d->time_us);
    for (size_t i = 0; i < d->body_n; i++) p = put_body(put_len(p, DELTAS_PLAYERS, d->body[i].len), &d->body[i]);
    CHECK(p == start + header + len);
    out->end += header + len;
    return len;
}

static struct slice whole(const struct aoi_delta *d)
{
    return (struct slice){.leave.n = d->leave_n,
                          .enter.n = d->enters.n,
                          .update.n = d->updates.n,
                          .payload.n = d->payload_n,
                          .layers.n = d->layers_n,
                          .message.n = d->message_n,
                          .lost = d->messages_lost};
}

/* What a part takes beside its items at most: tags and lengths (5 bytes; 6 for fields from 16) of the frame's Deltas, of their one PlayerDelta and of the
 * 16 packed columns (8 below field 16); scalars (11 bytes for 64 bits, 12 for messages_lost, 6 for part, 2 for a bool). */
#define PART_OVERHEAD ((5 + 5 + 8 * 5 + 8 * 6) + (4 * 11 + 2 * 11 + 12 + 6 + 3 * 2))

/* Moves a range behind itself to the next items, as many of total as the room takes. What does not fit leaves no room for a later section. */
static void next_range(struct range *r, size_t total, size_t item_bytes, const uint32_t *blob_len, size_t *room)
{
    r->from += r->n;
    r->n = 0;
    size_t left = total - r->from;
    if (blob_len == NULL) {
        r->n = *room / item_bytes < left ? *room / item_bytes : left;
        *room -= r->n * item_bytes;
    } else {
        for (size_t bytes; r->n < left; r->n++, *room -= bytes) {
            bytes = item_bytes + len_size(PAYLOADS, blob_len[r->from + r->n]);
            if (bytes > *room) break;
        }
    }
    if (r->n < left) *room = 0;
}

static bool left(const struct range *r, size_t total)
{
    return r->from + r->n < total;
}

/* The next part's items; false: nothing is left behind them. What was lost is told with the last. */
static bool next_slice(const struct aoi_delta *d, size_t room, struct slice *s)
{
    size_t enter_bytes = 20u + (d->enters.z != NULL ? 4 : 0) + (d->enters.extra != NULL ? 4 : 0);
    size_t update_bytes = 16u + (d->updates.z != NULL ? 4 : 0) + (d->updates.extra != NULL ? 4 : 0);
    next_range(&s->leave, d->leave_n, 8, NULL, &room);
    next_range(&s->enter, d->enters.n, enter_bytes, d->enters.payload != NULL ? d->enters.payload_len : NULL, &room);
    next_range(&s->update, d->updates.n, update_bytes, NULL, &room);
    next_range(&s->payload, d->payload_n, 8, d->payload_len, &room);
    next_range(&s->layers, d->layers_n, 12, NULL, &room);
    next_range(&s->message, d->message_n, 8, d->message_len, &room);
    CHECK(s->leave.n + s->enter.n + s->update.n + s->payload.n + s->layers.n + s->message.n >
          0); /* the caller sees to it that one item fits in a frame */
    bool more = left(&s->message, d->message_n) || left(&s->layers, d->layers_n) || left(&s->payload, d->payload_n) ||
                left(&s->update, d->updates.n) || left(&s->enter, d->enters.n) || left(&s->leave, d->leave_n);
    s->lost = more ? 0 : d->messages_lost;
    return more;
}

size_t codec_encode_delta(const struct aoi_delta *delta, size_t max_frame_bytes, struct buf *out)
{
    struct body body;
    struct deltas frame = {.space = delta->space, .flush = delta->flush, .tag = delta->tag, .time_us = delta->time_us, .body = &body, .body_n = 1};
    struct slice slice = whole(delta);
    lay_out(delta, &slice, 0, false, &body);
    if (frame_len(&frame) <= max_frame_bytes) {
        append_frame(&frame, out);
        return 1;
    }
    CHECK(max_frame_bytes > PART_OVERHEAD);
    slice = (struct slice){0};
    uint32_t part = 0;
    for (bool more = true; more; part++) {
        more = next_slice(delta, max_frame_bytes - PART_OVERHEAD, &slice);
        lay_out(delta, &slice, part, more, &body);
        size_t len = append_frame(&frame, out);
        DCHECK(len <= max_frame_bytes);
        (void)len;
    }
    return part;
}

/* ------------------------------------------------------------------------------------------------------------- groups */

/* Room for the lengths of the frame and of the Deltas in it, with their tag: 3 bytes say what is below 2 MiB. */
#define GROUP_LENGTHS (3 + 1 + 3)
#define GROUP_BYTES_MAX \
    ((size_t)64 * 1024) /* a frame that is grouped is not longer: enough for its head to weigh nothing, little enough for any reader */

static void group_begin(struct codec_group *group, const struct aoi_delta *d, struct buf *out)
{
    uint8_t *p = buf_reserve(out, GROUP_LENGTHS + 4 * 11);
    *group = (struct codec_group){.space = d->space, .flush = d->flush, .tag = d->tag, .time_us = d->time_us};
    uint8_t *start = p + GROUP_LENGTHS;
    p = put_scalar(start, DELTAS_SPACE, d->space);
    p = put_scalar(p, DELTAS_FLUSH, d->flush);
    p = put_scalar(p, DELTAS_TAG, d->tag);
    p = put_scalar(p, DELTAS_TIME_US, d->time_us);
    group->len = (size_t)(p - start);
    out->end += GROUP_LENGTHS + group->len;
}

void codec_group_end(struct codec_group *group, struct buf *out)
{
    size_t len = group->len, frame = len_size(SERVER_FRAME_DELTAS, len), head = frame_header_size(frame) + frame - len;
    if (len == 0) return;
    uint8_t *start = out->at + out->end - len - GROUP_LENGTHS;
    if (head < GROUP_LENGTHS) memmove(start + head, start + GROUP_LENGTHS, len); /* short: this is no matter */
    uint8_t *p = put_len(start + frame_put_header(start, frame), SERVER_FRAME_DELTAS, len);
    CHECK(p == start + head);
    out->end -= GROUP_LENGTHS - head;
    group->len = 0;
}

void codec_group_add(struct codec_group *group, const struct aoi_delta *d, size_t max_frame_bytes, struct buf *out)
{
    size_t most = max_frame_bytes < GROUP_BYTES_MAX ? max_frame_bytes : GROUP_BYTES_MAX;
    struct slice slice = whole(d);
    struct body body;
    lay_out(d, &slice, 0, false, &body);
    size_t bytes = len_size(DELTAS_PLAYERS, body.len);
    bool same = group->flush == d->flush && group->space == d->space && group->tag == d->tag && group->time_us == d->time_us;
    if (group->len > 0 && (!same || GROUP_LENGTHS + group->len + bytes > most)) codec_group_end(group, out);
    if (GROUP_LENGTHS + 4 * 11 + bytes > most) {
        codec_encode_delta(d, max_frame_bytes, out);
        return;
    }
    if (group->len == 0) group_begin(group, d, out);
    uint8_t *start = buf_reserve(out, bytes);
    uint8_t *end = put_body(put_len(start, DELTAS_PLAYERS, body.len), &body);
    CHECK(end == start + bytes);
    group->len += bytes;
    out->end += bytes;
}

size_t codec__deltas_out(const struct codec_server_frame *frame, struct buf *out)
{
    size_t n = frame->u.deltas.player_n;
    struct body *bodies = mem_alloc(n * sizeof *bodies);
    for (size_t i = 0; i < n; i++) {
        const struct codec_player_delta *player = &frame->u.deltas.players[i];
        struct slice slice = whole(&player->delta);
        lay_out(&player->delta, &slice, player->part, player->more, &bodies[i]);
    }
    struct deltas deltas = {.reply_to = frame->reply_to,
                            .space = frame->u.deltas.space,
                            .flush = frame->u.deltas.flush,
                            .tag = frame->u.deltas.tag,
                            .time_us = frame->u.deltas.time_us,
                            .body = bodies,
                            .body_n = n};
    size_t len = append_frame(&deltas, out);
    free(bodies);
    return len;
}

/* ------------------------------------------------------------------------------------------------------------- decoding */

/* NULL where there are none. False: over the arena's cap. */
static bool blobs_in(const ProtobufCBinaryData *in, size_t n, struct arena *arena, const void *const **blob, const uint32_t **blob_len)
{
    if (n == 0) return true;
    const void **at = codec__array(arena, n, sizeof *at);
    uint32_t *len = codec__array(arena, n, sizeof *len);
    if (at == NULL || len == NULL) return false;
    for (size_t i = 0; i < n; i++) {
        at[i] = in[i].data;
        len[i] = (uint32_t)in[i].len;
    }
    *blob = at;
    *blob_len = len;
    return true;
}

static bool all_or_none(size_t n, size_t all)
{
    return n == all || n == 0;
}

static bool columns_agree(const Aoi__V1__PlayerDelta *in)
{
    return in->n_enter_x == in->n_enter_ids && in->n_enter_y == in->n_enter_ids && all_or_none(in->n_enter_z, in->n_enter_ids) &&
           all_or_none(in->n_enter_extra, in->n_enter_ids) && in->n_enter_layers == in->n_enter_ids &&
           all_or_none(in->n_enter_payloads, in->n_enter_ids) && in->n_update_x == in->n_update_ids && in->n_update_y == in->n_update_ids &&
           all_or_none(in->n_update_z, in->n_update_ids) && all_or_none(in->n_update_extra, in->n_update_ids) &&
           in->n_payloads == in->n_payload_ids && in->n_layers == in->n_layers_ids && in->n_messages == in->n_message_from;
}

static int player_in(const Aoi__V1__PlayerDelta *in, struct arena *arena, struct codec_player_delta *out)
{
    if (!columns_agree(in)) return CODEC_MALFORMED;
    out->part = in->part;
    out->more = in->more != 0;
    struct aoi_delta *d = &out->delta;
    d->player = in->player;
    d->seq = in->seq;
    d->full = in->full != 0;
    d->closed = in->closed != 0;
    d->leave_n = in->n_leave_ids;
    d->leave_id = in->leave_ids;
    d->enters = (struct aoi_enters){.n = in->n_enter_ids,
                                    .id = in->enter_ids,
                                    .x = in->enter_x,
                                    .y = in->enter_y,
                                    .z = in->enter_z,
                                    .extra = in->enter_extra,
                                    .layers = in->enter_layers};
    d->updates = (struct aoi_updates){
        .n = in->n_update_ids, .id = in->update_ids, .x = in->update_x, .y = in->update_y, .z = in->update_z, .extra = in->update_extra};
    d->payload_n = in->n_payload_ids;
    d->payload_id = in->payload_ids;
    d->layers_n = in->n_layers_ids;
    d->layers_id = in->layers_ids;
    d->layers = in->layers;
    d->message_n = in->n_message_from;
    d->message_from = in->message_from;
    d->messages_lost = in->messages_lost;
    if (!blobs_in(in->enter_payloads, in->n_enter_payloads, arena, &d->enters.payload, &d->enters.payload_len)) return CODEC_MALFORMED;
    if (!blobs_in(in->payloads, in->n_payloads, arena, &d->payload, &d->payload_len)) return CODEC_MALFORMED;
    if (!blobs_in(in->messages, in->n_messages, arena, &d->message, &d->message_len)) return CODEC_MALFORMED;
    return 0;
}

int codec__deltas_in(const Aoi__V1__Deltas *in, struct arena *arena, struct codec_server_frame *out)
{
    struct codec_player_delta *players = codec__array(arena, in->n_players, sizeof *players);
    if (players == NULL) return CODEC_MALFORMED;
    out->u.deltas.space = in->space;
    out->u.deltas.flush = in->flush;
    out->u.deltas.tag = in->tag;
    out->u.deltas.time_us = in->time_us;
    out->u.deltas.player_n = in->n_players;
    out->u.deltas.players = players;
    for (size_t i = 0; i < in->n_players; i++) {
        players[i] = (struct codec_player_delta){.delta = {.space = in->space, .flush = in->flush, .tag = in->tag, .time_us = in->time_us}};
        if (player_in(in->players[i], arena, &players[i]) != 0) return CODEC_MALFORMED;
    }
    return 0;
}
