/* codec_delta.c: Deltas frames, the hot output: written straight into the buffer, cut into parts where a frame is too small.
 *
 * Everything else goes through protobuf-c. A delta is nothing but numbers and columns, whose bytes in memory are those of the wire: they are copied as they are, or (of updates) left
 * open for the core to write, which leaves some 10 ns for a usual delta, and 15 more with a few enters and leaves. The tests compare it with what protobuf-c writes, byte for byte.
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
    MESSAGES_LOST
};

/* ------------------------------------------------------------------------------------------------------------- wire format */

#define INLINE static inline __attribute__((always_inline))

enum { WIRE_VARINT = 0, WIRE_LEN = 2 };

static inline size_t varint_size(uint64_t v)
{
    return ((63 - (unsigned)__builtin_clzll(v | 1)) * 9 + 73) / 64;
}

static inline size_t tag_size(uint32_t field)
{
    return field < 16 ? 1 : 2;
}

static inline uint8_t *put_varint(uint8_t *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

/* A scalar field below 16; 0 is not written. */
static inline size_t scalar_size(uint64_t v)
{
    return v == 0 ? 0 : 1 + varint_size(v);
}

static size_t lost_size(uint64_t v)
{
    return v == 0 ? 0 : tag_size(MESSAGES_LOST) + varint_size(v);
}

static inline uint8_t *put_scalar(uint8_t *p, uint32_t field, uint64_t v)
{
    if (v == 0) return p;
    return put_varint(put_varint(p, field << 3 | WIRE_VARINT), v);
}

/* With the length in front of it. */
static inline size_t run_size(size_t len)
{
    return varint_size(len) + len;
}

static inline size_t len_size(uint32_t field, size_t len)
{
    return tag_size(field) + run_size(len);
}

static inline uint8_t *put_len(uint8_t *p, uint32_t field, size_t len)
{
    return put_varint(put_varint(p, field << 3 | WIRE_LEN), len);
}

/* ------------------------------------------------------------------------------------------------------------- one PlayerDelta */

struct range {
    size_t from, n;
};

/* The items of a delta that go into one part. */
struct slice {
    struct range leave, enter, update, payload, layers, message;
    uint64_t lost;
    uint32_t part;
    bool more;
};

/* n numbers of so many bytes; a column that is not there takes nothing. */
static inline size_t packed_size(uint32_t field, const void *base, struct range r, size_t element_bytes)
{
    return base == NULL ? 0 : len_size(field, r.n * element_bytes);
}

/* A few bytes, as columns of enters and leaves mostly are: 4 or more. */
static inline void copy(uint8_t *to, const uint8_t *from, size_t bytes)
{
    if (bytes > 16) {
        memcpy(to, from, bytes);
    } else if (bytes >= 8) { /* the two may overlap */
        memcpy(to, from, 8);
        memcpy(to + bytes - 8, from + bytes - 8, 8);
    } else {
        memcpy(to, from, 4);
    }
}

static inline uint8_t *put_packed(uint8_t *p, uint32_t field, const void *base, struct range r, size_t element_bytes)
{
    if (base == NULL) return p;
    p = put_len(p, field, r.n * element_bytes);
    copy(p, (const uint8_t *)base + r.from * element_bytes, r.n * element_bytes);
    return p + r.n * element_bytes;
}

/* A column of updates: copied, or (to) left to somebody else. */
static inline uint8_t *put_update(uint8_t *p, uint32_t field, const void *base, struct range r, size_t element_bytes, void **to)
{
    if (to == NULL || base == NULL) return put_packed(p, field, base, r, element_bytes);
    *to = p = put_len(p, field, r.n * element_bytes);
    return p + r.n * element_bytes;
}

static bool any_bytes(const uint32_t *len, struct range r)
{
    for (size_t i = r.from; i < r.from + r.n; i++)
        if (len[i] > 0) return true;
    return false;
}

/* A field of its own for each. */
static size_t blobs_size(uint32_t field, const uint32_t *len, struct range r)
{
    size_t bytes = 0;
    for (size_t i = r.from; i < r.from + r.n; i++) bytes += len_size(field, len[i]);
    return bytes;
}

static uint8_t *put_blobs(uint8_t *p, uint32_t field, const void *const *blob, const uint32_t *len, struct range r)
{
    for (size_t i = r.from; i < r.from + r.n; i++) {
        p = put_len(p, field, len[i]);
        if (len[i] > 0) memcpy(p, blob[i], len[i]);
        p += len[i];
    }
    return p;
}

/* Enters of which none has a payload have no such column. */
static bool enter_payloads(const struct aoi_delta *d, const struct slice *s)
{
    return d->enters.payload != NULL && any_bytes(d->enters.payload_len, s->enter);
}

/* What is seldom there: changes of state, messages. */
static bool has_more_sections(const struct slice *s)
{
    return s->payload.n + s->layers.n + s->message.n > 0;
}

static size_t more_sections_size(const struct aoi_delta *d, const struct slice *s)
{
    size_t len = 0;
    if (s->payload.n > 0) len += packed_size(PAYLOAD_IDS, d->payload_id, s->payload, 8) + blobs_size(PAYLOADS, d->payload_len, s->payload);
    if (s->layers.n > 0) len += packed_size(LAYERS_IDS, d->layers_id, s->layers, 8) + packed_size(LAYERS, d->layers, s->layers, 4);
    if (s->message.n > 0) len += packed_size(MESSAGE_FROM, d->message_from, s->message, 8) + blobs_size(MESSAGES, d->message_len, s->message);
    return len;
}

static uint8_t *put_more_sections(uint8_t *p, const struct aoi_delta *d, const struct slice *s)
{
    if (s->payload.n > 0) {
        p = put_packed(p, PAYLOAD_IDS, d->payload_id, s->payload, 8);
        p = put_blobs(p, PAYLOADS, d->payload, d->payload_len, s->payload);
    }
    if (s->layers.n > 0) {
        p = put_packed(p, LAYERS_IDS, d->layers_id, s->layers, 8);
        p = put_packed(p, LAYERS, d->layers, s->layers, 4);
    }
    if (s->message.n > 0) {
        p = put_packed(p, MESSAGE_FROM, d->message_from, s->message, 8);
        p = put_blobs(p, MESSAGES, d->message, d->message_len, s->message);
    }
    return p;
}

/* Field numbers are constants here, so that the compiler reckons the tags. */
INLINE size_t updates_size(const struct aoi_delta *d, size_t n)
{
    size_t columns = 2u + (d->updates.z != NULL) + (d->updates.extra != NULL);
    return len_size(UPDATE_IDS, n * 8) + columns * len_size(UPDATE_X, n * 4);
}

/* open: is told where the columns go, which somebody else writes; NULL: they are copied. */
INLINE uint8_t *put_updates(uint8_t *p, const struct aoi_delta *d, struct range r, struct aoi_places *open)
{
    p = put_update(p, UPDATE_IDS, d->updates.id, r, 8, open == NULL ? NULL : &open->id);
    p = put_update(p, UPDATE_X, d->updates.x, r, 4, open == NULL ? NULL : &open->x);
    p = put_update(p, UPDATE_Y, d->updates.y, r, 4, open == NULL ? NULL : &open->y);
    p = put_update(p, UPDATE_Z, d->updates.z, r, 4, open == NULL ? NULL : &open->z);
    return put_update(p, UPDATE_EXTRA, d->updates.extra, r, 4, open == NULL ? NULL : &open->extra);
}

static size_t enters_size(const struct aoi_delta *d, const struct slice *s)
{
    size_t columns = 3u + (d->enters.z != NULL) + (d->enters.extra != NULL);
    size_t len = len_size(ENTER_IDS, s->enter.n * 8) + columns * len_size(ENTER_X, s->enter.n * 4);
    return enter_payloads(d, s) ? len + blobs_size(ENTER_PAYLOADS, d->enters.payload_len, s->enter) : len;
}

static uint8_t *put_enters(uint8_t *p, const struct aoi_delta *d, const struct slice *s)
{
    p = put_packed(p, ENTER_IDS, d->enters.id, s->enter, 8);
    p = put_packed(p, ENTER_X, d->enters.x, s->enter, 4);
    p = put_packed(p, ENTER_Y, d->enters.y, s->enter, 4);
    p = put_packed(p, ENTER_Z, d->enters.z, s->enter, 4);
    p = put_packed(p, ENTER_EXTRA, d->enters.extra, s->enter, 4);
    p = put_packed(p, ENTER_LAYERS, d->enters.layers, s->enter, 4);
    return enter_payloads(d, s) ? put_blobs(p, ENTER_PAYLOADS, d->enters.payload, d->enters.payload_len, s->enter) : p;
}

/* Of the PlayerDelta, without its own tag and length. */
static size_t body_size(const struct aoi_delta *d, const struct slice *s)
{
    size_t len = scalar_size(d->player) + scalar_size(d->seq) + scalar_size(s->part) + scalar_size(s->more) + scalar_size(d->full) +
                 scalar_size(d->closed) + lost_size(s->lost);
    if (s->leave.n > 0) len += packed_size(LEAVE_IDS, d->leave_id, s->leave, 8);
    if (s->enter.n > 0) len += enters_size(d, s);
    if (s->update.n > 0) len += updates_size(d, s->update.n);
    return has_more_sections(s) ? len + more_sections_size(d, s) : len;
}

static uint8_t *put_body(uint8_t *p, const struct aoi_delta *d, const struct slice *s, struct aoi_places *open)
{
    p = put_scalar(p, PLAYER, d->player);
    p = put_scalar(p, SEQ, d->seq);
    p = put_scalar(p, PART, s->part);
    p = put_scalar(p, MORE, s->more);
    p = put_scalar(p, FULL, d->full);
    p = put_scalar(p, CLOSED, d->closed);
    if (s->leave.n > 0) p = put_packed(p, LEAVE_IDS, d->leave_id, s->leave, 8);
    if (s->enter.n > 0) p = put_enters(p, d, s);
    if (s->update.n > 0) p = put_updates(p, d, s->update, open);
    if (has_more_sections(s)) p = put_more_sections(p, d, s);
    return put_scalar(p, MESSAGES_LOST, s->lost);
}

static uint8_t *put_player(uint8_t *p, const struct aoi_delta *d, const struct slice *s, size_t body_len)
{
    return put_body(put_len(p, DELTAS_PLAYERS, body_len), d, s, NULL);
}

/* The usual delta tells updates and nothing else; then there is less to ask, and it is whole. */
static inline bool is_usual(const struct aoi_delta *d)
{
    size_t others = d->leave_n + d->enters.n + d->payload_n + d->layers_n + d->message_n;
    return others == 0 && d->updates.n > 0 && !d->full && !d->closed && d->messages_lost == 0;
}

static inline size_t usual_size(const struct aoi_delta *d)
{
    return scalar_size(d->player) + scalar_size(d->seq) + updates_size(d, d->updates.n);
}

static inline uint8_t *put_usual(uint8_t *p, const struct aoi_delta *d, struct aoi_places *open)
{
    p = put_scalar(p, PLAYER, d->player);
    p = put_scalar(p, SEQ, d->seq);
    return put_updates(p, d, (struct range){.n = d->updates.n}, open);
}

/* ------------------------------------------------------------------------------------------------------------- frames */

/* What stands before the players of a Deltas. */
struct head {
    uint64_t space, flush, tag, time_us;
};

static struct head head_of(const struct aoi_delta *d)
{
    return (struct head){.space = d->space, .flush = d->flush, .tag = d->tag, .time_us = d->time_us};
}

static size_t head_size(const struct head *h)
{
    return scalar_size(h->space) + scalar_size(h->flush) + scalar_size(h->tag) + scalar_size(h->time_us);
}

static uint8_t *put_head(uint8_t *p, const struct head *h)
{
    p = put_scalar(p, DELTAS_SPACE, h->space);
    p = put_scalar(p, DELTAS_FLUSH, h->flush);
    p = put_scalar(p, DELTAS_TAG, h->tag);
    return put_scalar(p, DELTAS_TIME_US, h->time_us);
}

/* Begins a frame of a Deltas of deltas_len bytes; returns where these go, and at *end where they must end. Adds to out->end. */
static uint8_t *begin_frame(uint64_t reply_to, size_t deltas_len, const struct head *h, struct buf *out, const uint8_t **end)
{
    size_t len = scalar_size(reply_to) + len_size(SERVER_FRAME_DELTAS, deltas_len);
    uint8_t *start = buf_reserve(out, FRAME_HEADER_MAX + len);
    size_t header = frame_put_header(start, len);
    out->end += header + len;
    *end = start + header + len;
    return put_head(put_len(put_scalar(start + header, SERVER_FRAME_REPLY_TO, reply_to), SERVER_FRAME_DELTAS, deltas_len), h);
}

/* A frame with nothing but this delta, or this part of it. */
static void append_alone(const struct aoi_delta *d, const struct slice *s, size_t body_len, struct buf *out)
{
    const uint8_t *end;
    struct head head = head_of(d);
    uint8_t *p = begin_frame(0, head_size(&head) + len_size(DELTAS_PLAYERS, body_len), &head, out, &end);
    CHECK(put_player(p, d, s, body_len) == end);
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
    struct slice slice = whole(delta);
    struct head head = head_of(delta);
    size_t body_len = body_size(delta, &slice);
    if (len_size(SERVER_FRAME_DELTAS, head_size(&head) + len_size(DELTAS_PLAYERS, body_len)) <= max_frame_bytes) {
        append_alone(delta, &slice, body_len, out);
        return 1;
    }
    CHECK(max_frame_bytes > PART_OVERHEAD);
    slice = (struct slice){.more = true};
    for (uint32_t part = 0;; part++) {
        slice.part = part;
        slice.more = next_slice(delta, max_frame_bytes - PART_OVERHEAD, &slice);
        append_alone(delta, &slice, body_size(delta, &slice), out);
        if (!slice.more) return part + 1;
    }
}

/* ------------------------------------------------------------------------------------------------------------- groups */

/* Room for the lengths of the frame and of the Deltas in it, with their tag: 3 bytes say what is below 2 MiB. */
#define GROUP_LENGTHS (3 + 1 + 3)
#define HEAD_MAX (4 * 11)
#define GROUP_BYTES_MAX \
    ((size_t)64 * 1024) /* a frame that is grouped is not longer: enough for its head to weigh nothing, little enough for any reader */

static void group_begin(struct codec_group *group, const struct aoi_delta *d, struct buf *out)
{
    struct head head = head_of(d);
    uint8_t *start = buf_reserve(out, GROUP_LENGTHS + HEAD_MAX) + GROUP_LENGTHS;
    *group = (struct codec_group){.space = d->space, .flush = d->flush, .tag = d->tag, .time_us = d->time_us};
    group->len = (size_t)(put_head(start, &head) - start);
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

bool codec_group_place(struct codec_group *group, const struct aoi_delta *d, size_t max_frame_bytes, struct buf *out, struct aoi_places *open)
{
    size_t most = max_frame_bytes < GROUP_BYTES_MAX ? max_frame_bytes : GROUP_BYTES_MAX;
    struct slice slice;
    bool usual = is_usual(d);
    if (!usual) slice = whole(d);
    size_t len = usual ? usual_size(d) : body_size(d, &slice), bytes = len_size(DELTAS_PLAYERS, len);
    bool same = group->flush == d->flush && group->space == d->space && group->tag == d->tag && group->time_us == d->time_us;
    if (GROUP_LENGTHS + HEAD_MAX + bytes > most) return false; /* also where it would fit behind a head that is shorter than most */
    if (!same || GROUP_LENGTHS + group->len + bytes > most) codec_group_end(group, out);
    if (group->len == 0) group_begin(group, d, out);
    uint8_t *start = buf_reserve(out, bytes), *p = put_len(start, DELTAS_PLAYERS, len);
    CHECK((usual ? put_usual(p, d, open) : put_body(p, d, &slice, open)) == start + bytes);
    group->len += bytes;
    out->end += bytes;
    return true;
}

void codec_group_add(struct codec_group *group, const struct aoi_delta *d, size_t max_frame_bytes, struct buf *out)
{
    if (codec_group_place(group, d, max_frame_bytes, out, NULL)) return;
    codec_group_end(group, out);
    codec_encode_delta(d, max_frame_bytes, out);
}

size_t codec__deltas_out(const struct codec_server_frame *frame, struct buf *out)
{
    size_t n = frame->u.deltas.player_n;
    const struct head head = {
        .space = frame->u.deltas.space, .flush = frame->u.deltas.flush, .tag = frame->u.deltas.tag, .time_us = frame->u.deltas.time_us};
    size_t len = head_size(&head);
    struct slice *slices = mem_alloc(n * sizeof *slices);
    for (size_t i = 0; i < n; i++) {
        const struct codec_player_delta *player = &frame->u.deltas.players[i];
        slices[i] = whole(&player->delta);
        slices[i].part = player->part;
        slices[i].more = player->more;
        len += len_size(DELTAS_PLAYERS, body_size(&player->delta, &slices[i]));
    }
    const uint8_t *end;
    uint8_t *p = begin_frame(frame->reply_to, len, &head, out, &end);
    for (size_t i = 0; i < n; i++) {
        const struct aoi_delta *d = &frame->u.deltas.players[i].delta;
        p = put_player(p, d, &slices[i], body_size(d, &slices[i]));
    }
    CHECK(p == end);
    free(slices);
    return scalar_size(frame->reply_to) + len_size(SERVER_FRAME_DELTAS, len);
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
