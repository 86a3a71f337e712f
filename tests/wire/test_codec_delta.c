/* test_codec_delta.c: the hand-written encoding of deltas against protobuf-c's, and deltas in parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "aoi/v1/aoi.pb-c.h"
#include "base/array.h"
#include "frames.h"
#include "scratch.h"
#include "wire/frame.h"

static size_t cap = (size_t)256 << 20; /* of each arena */

/* ------------------------------------------------------------------------------------------------------------- one frame */

static void a_delta_with_one_leave_has_these_bytes(void **state)
{
    (void)state;
    uint64_t id = 7;
    struct aoi_delta d = {.space = 3, .flush = 9, .player = 5, .seq = 1, .leave_n = 1, .leave_id = &id};
    assert_int_equal(codec_encode_delta(&d, 1 << 20, &out), 1);
    static const char bytes[] = "\x16"
                                "\x22\x14"
                                "\x08\x03\x10\x09"
                                "\x2a\x0e"
                                "\x08\x05\x10\x01"
                                "\x3a\x08\x07\0\0\0\0\0\0\0";
    assert_int_equal(buf_len(&out), sizeof bytes - 1);
    assert_memory_equal(buf_data(&out), bytes, sizeof bytes - 1);
}

static void a_delta_with_a_message_has_these_bytes(void **state)
{
    (void)state;
    uint64_t from = 7;
    const void *message = "hi";
    uint32_t len = 2;
    struct aoi_delta d = {.space = 3,
                          .flush = 9,
                          .player = 5,
                          .seq = 1,
                          .message_n = 1,
                          .message_from = &from,
                          .message = &message,
                          .message_len = &len,
                          .messages_lost = 4};
    assert_int_equal(codec_encode_delta(&d, 1 << 20, &out), 1);
    static const char bytes[] = "\x1f"
                                "\x22\x1d"
                                "\x08\x03\x10\x09"
                                "\x2a\x17"
                                "\x08\x05\x10\x01"
                                "\xc2\x01\x08\x07\0\0\0\0\0\0\0"
                                "\xca\x01\x02hi"
                                "\xd0\x01\x04";
    assert_int_equal(buf_len(&out), sizeof bytes - 1);
    assert_memory_equal(buf_data(&out), bytes, sizeof bytes - 1);
}

static void an_empty_delta_is_one_frame(void **state)
{
    (void)state;
    struct aoi_delta full = {.player = 5, .seq = 300, .full = true}, closed = {.player = 5, .seq = 301, .closed = true};
    assert_int_equal(codec_encode_delta(&full, 200, &out), 1);
    assert_int_equal(codec_encode_delta(&closed, 200, &out), 1);
    static const char bytes[] = "\x0b"
                                "\x22\x09"
                                "\x2a\x07"
                                "\x08\x05\x10\xac\x02\x28\x01"
                                "\x0b"
                                "\x22\x09"
                                "\x2a\x07"
                                "\x08\x05\x10\xad\x02\x30\x01";
    assert_int_equal(buf_len(&out), sizeof bytes - 1);
    assert_memory_equal(buf_data(&out), bytes, sizeof bytes - 1);
}

static void enters_without_a_single_payload_byte_have_no_payload_column(void **state)
{
    (void)state;
    uint64_t id[2] = {1, 2};
    float at[2] = {0, 0};
    uint32_t layers[2] = {1, 1}, len[2] = {0, 0};
    const void *payload[2] = {NULL, NULL};
    struct aoi_delta d = {.player = 5, .seq = 1, .enters = {.n = 2, .id = id, .x = at, .y = at, .layers = layers}};
    codec_encode_delta(&d, 1 << 20, &out);
    size_t without = buf_len(&out);
    d.enters.payload = payload;
    d.enters.payload_len = len;
    codec_encode_delta(&d, 1 << 20, &out);
    assert_int_equal(buf_len(&out), 2 * without);
    assert_memory_equal(buf_data(&out), buf_data(&out) + without, without);
}

/* What protobuf-c reads from the frame it would write in the very same bytes. */
static void assert_as_protobuf_c_writes(const uint8_t *body, size_t len)
{
    Aoi__V1__ServerFrame *read = aoi__v1__server_frame__unpack(NULL, len, body);
    assert_non_null(read);
    assert_int_equal(read->base.n_unknown_fields, 0);
    assert_int_equal(aoi__v1__server_frame__get_packed_size(read), len);
    uint8_t *written = malloc(len);
    aoi__v1__server_frame__pack(read, written);
    assert_memory_equal(written, body, len);
    free(written);
    aoi__v1__server_frame__free_unpacked(read, NULL);
}

static void a_delta_is_byte_for_byte_what_protobuf_c_would_write(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    for (int round = 0; round < 3000; round++) {
        struct aoi_delta sent;
        frames_random_delta(&r, &made, round % 10 == 0 ? 3000 : 40, round % 20 == 0 ? 20000 : 200, &sent);
        assert_int_equal(codec_encode_delta(&sent, FRAME_BODY_MAX, &out), 1);
        struct frame f;
        assert_int_equal(frame_next(buf_data(&out), buf_len(&out), FRAME_BODY_MAX, &f), FRAME_READY);
        assert_int_equal(f.header_len + f.body_len, buf_len(&out));
        assert_as_protobuf_c_writes(buf_data(&out) + f.header_len, f.body_len);
        struct codec_server_frame got;
        assert_int_equal(codec_decode_server(buf_data(&out) + f.header_len, f.body_len, &decoded, &got), 0);
        assert_int_equal(got.kind, CODEC_DELTAS);
        assert_int_equal(got.reply_to, 0);
        assert_int_equal(got.u.deltas.player_n, 1);
        assert_int_equal(got.u.deltas.players[0].part, 0);
        assert_false(got.u.deltas.players[0].more);
        frames_assert_delta_equal(&sent, &got.u.deltas.players[0].delta);
        again();
    }
}

static void deltas_of_several_players_are_what_protobuf_c_would_write(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    for (int round = 0; round < 1000; round++) {
        struct codec_server_frame sent;
        frames_random_server(&r, &made, CODEC_DELTAS, &sent);
        size_t len = codec_encode_server(&sent, &out);
        assert_as_protobuf_c_writes(frames_body(&out, len), len);
        again();
    }
}

/* Takes the frames in `out` and compares their deltas with those sent, one by one. Returns how many frames there were. */
static size_t assert_tells(const struct aoi_delta *sent, size_t n, size_t max)
{
    size_t at = 0, frames = 0;
    for (; buf_len(&out) > 0; frames++) {
        struct frame f;
        struct codec_server_frame got;
        assert_int_equal(frame_next(buf_data(&out), buf_len(&out), max, &f), FRAME_READY);
        assert_int_equal(f.header_len, frame_header_size(f.body_len));
        assert_as_protobuf_c_writes(buf_data(&out) + f.header_len, f.body_len);
        assert_int_equal(codec_decode_server(buf_data(&out) + f.header_len, f.body_len, &decoded, &got), 0);
        for (size_t i = 0; got.kind == CODEC_DELTAS && i < got.u.deltas.player_n; i++) {
            assert_true(at < n);
            frames_assert_delta_equal(&sent[at++], &got.u.deltas.players[i].delta);
        }
        buf_consume(&out, f.header_len + f.body_len);
    }
    assert_int_equal(at, n);
    return frames;
}

static void deltas_of_one_flush_are_grouped_in_frames_that_protobuf_c_would_write(void **state)
{
    (void)state;
    enum { N = 60 };
    struct random r = random_start(__func__);
    const struct codec_server_frame pong = {.reply_to = 7, .kind = CODEC_PONG};
    for (int round = 0; round < 600; round++) {
        struct aoi_delta sent[N];
        struct codec_group group = {0};
        size_t n = random_below(&r, N) + 1, pongs = 0;
        for (size_t i = 0; i < n; i++) {
            frames_random_delta(&r, &made, round % 3 == 0 ? 300 : 20, 100, &sent[i]);
            if (i > 0 && random_below(&r, 10) != 0) {
                sent[i].space = sent[0].space;
                sent[i].flush = sent[0].flush;
                sent[i].tag = sent[0].tag;
                sent[i].time_us = sent[0].time_us;
            }
            codec_group_add(&group, &sent[i], FRAME_BODY_MAX, &out);
            if (random_below(&r, 20) != 0) continue;
            codec_group_end(&group, &out);
            codec_encode_server(&pong, &out);
            pongs++;
        }
        codec_group_end(&group, &out);
        codec_group_end(&group, &out);
        size_t frames = assert_tells(sent, n, FRAME_BODY_MAX);
        assert_in_range(frames - pongs, 1, n);
        again();
    }
}

static void a_group_is_ended_before_it_is_longer_than_a_frame_may_be(void **state)
{
    (void)state;
    enum { N = 200 };
    struct random r = random_start(__func__);
    for (size_t max = 2000; max <= 130000; max += 1000) {
        struct aoi_delta sent[N];
        struct codec_group group = {0};
        for (size_t i = 0; i < N; i++) {
            static uint64_t id[40];
            static float x[40];
            sent[i] = (struct aoi_delta){.space = 1, .flush = max, .player = i + 1, .seq = 1};
            sent[i].updates = (struct aoi_updates){.n = random_below(&r, 41), .id = id, .x = x, .y = x};
            codec_group_add(&group, &sent[i], max, &out);
        }
        codec_group_end(&group, &out);
        size_t bytes = buf_len(&out), frames = assert_tells(sent, N, max);
        assert_true(frames <= bytes / ((max < 65536 ? max : 65536) - 1000) + 1); /* and they are as full as can be */
        again();
    }
}

static void a_delta_that_just_fills_a_frame_ends_the_group_before_it(void **state)
{
    (void)state;
    static const uint8_t payload[2000];
    const uint64_t id = 5;
    const void *const payloads = payload;
    for (uint32_t len = 1800; len <= 1950; len++) {
        struct codec_group group = {0};
        struct aoi_delta sent[2] = {{.space = 1, .flush = 9, .player = 1, .seq = 1, .full = true}, {.space = 1, .flush = 9, .player = 2, .seq = 1}};
        sent[1].payload_n = 1;
        sent[1].payload_id = &id;
        sent[1].payload = &payloads;
        sent[1].payload_len = &len;
        for (int i = 0; i < 2; i++) codec_group_add(&group, &sent[i], 2000, &out);
        codec_group_end(&group, &out);
        assert_tells(sent, 2, 2000);
        again();
    }
}

/* As codec_group_add(), but the encoder does not get to see the update columns, which are written afterwards. */
static bool add_open(struct codec_group *group, const struct aoi_delta *d, size_t max, struct buf *to)
{
    static char nothing;
    struct aoi_places places = {0};
    struct aoi_delta unwritten = *d;
    const struct aoi_updates *u = &d->updates;
    unwritten.updates = (struct aoi_updates){.n = u->n, .id = (const void *)&nothing, .x = (const void *)&nothing, .y = (const void *)&nothing};
    if (u->z != NULL) unwritten.updates.z = (const void *)&nothing;
    if (u->extra != NULL) unwritten.updates.extra = (const void *)&nothing;
    size_t before = buf_len(to);
    if (!codec_group_place(group, &unwritten, max, to, &places)) {
        assert_int_equal(buf_len(to), before);
        return false;
    }
    assert_int_equal(places.z != NULL, u->z != NULL);
    assert_int_equal(places.extra != NULL, u->extra != NULL);
    memcpy(places.id, u->id, u->n * 8);
    memcpy(places.x, u->x, u->n * 4);
    memcpy(places.y, u->y, u->n * 4);
    if (u->z != NULL) memcpy(places.z, u->z, u->n * 4);
    if (u->extra != NULL) memcpy(places.extra, u->extra, u->n * 4);
    return true;
}

static void columns_that_are_written_afterwards_make_the_same_bytes(void **state)
{
    (void)state;
    enum { N = 60 };
    struct random r = random_start(__func__);
    struct buf other = {0};
    size_t placed = 0, alone = 0;
    for (int round = 0; round < 600; round++) {
        struct codec_group group = {0}, open = {0};
        size_t max = round % 4 == 0 ? FRAME_BODY_MAX : 3000 + random_below(&r, 30000), n = random_below(&r, N) + 1;
        struct aoi_delta head = {0}, sent[N];
        for (size_t i = 0; i < n; i++) {
            struct aoi_delta d;
            frames_random_delta(&r, &made, round % 3 == 0 ? 300 : 20, 100, &d);
            if (random_below(&r, 2) == 0) d = (struct aoi_delta){.player = d.player, .seq = d.seq, .updates = d.updates}; /* as most are */
            if (i == 0 || random_below(&r, 10) == 0) head = d;
            d.space = head.space;
            d.flush = head.flush;
            d.tag = head.tag;
            d.time_us = head.time_us;
            sent[i] = d;
            codec_group_add(&group, &d, max, &out);
            bool was_placed = d.updates.n > 0 && add_open(&open, &d, max, &other);
            if (!was_placed) codec_group_add(&open, &d, max, &other);
            placed += was_placed;
            alone += d.updates.n > 0 && !was_placed;
        }
        codec_group_end(&group, &out);
        codec_group_end(&open, &other);
        assert_int_equal(buf_len(&other), buf_len(&out));
        assert_memory_equal(buf_data(&other), buf_data(&out), buf_len(&out));
        if (max == FRAME_BODY_MAX) assert_tells(sent, n, max); /* else there are parts */
        buf_consume(&other, buf_len(&other));
        again();
    }
    buf_clear(&other);
    assert_true(placed > 1000 && alone > 100);
}

/* ------------------------------------------------------------------------------------------------------------- parts */

/* The sections of several parts, put together again. */
struct joined {
    ARRAY(uint64_t) leave_id, enter_id, update_id, payload_id, layers_id, message_from;
    ARRAY(float) enter_x, enter_y, enter_z, update_x, update_y, update_z;
    ARRAY(uint32_t) enter_extra, enter_layers, update_extra, layers, enter_payload_len, payload_len, message_len;
    ARRAY(const void *) enter_payload, payload, message;
    uint64_t lost;
    int last_section;
};

#define JOIN(to, from, count)                                                                      \
    do {                                                                                           \
        for (size_t i_ = 0; (from) != NULL && i_ < (count); i_++) *array_add(&j->to) = (from)[i_]; \
    } while (0)

/* Sections come in order: nothing of an earlier one behind a later one. */
static void in_order(struct joined *j, int section, size_t n)
{
    if (n == 0) return;
    assert_true(section >= j->last_section);
    j->last_section = section;
}

static void join(struct joined *j, const struct aoi_delta *d)
{
    in_order(j, 1, d->leave_n);
    in_order(j, 2, d->enters.n);
    in_order(j, 3, d->updates.n);
    in_order(j, 4, d->payload_n);
    in_order(j, 5, d->layers_n);
    in_order(j, 6, d->message_n);
    JOIN(message_from, d->message_from, d->message_n);
    JOIN(message, d->message, d->message_n);
    JOIN(message_len, d->message_len, d->message_n);
    j->lost += d->messages_lost;
    JOIN(leave_id, d->leave_id, d->leave_n);
    JOIN(enter_id, d->enters.id, d->enters.n);
    JOIN(enter_x, d->enters.x, d->enters.n);
    JOIN(enter_y, d->enters.y, d->enters.n);
    JOIN(enter_z, d->enters.z, d->enters.n);
    JOIN(enter_extra, d->enters.extra, d->enters.n);
    JOIN(enter_layers, d->enters.layers, d->enters.n);
    for (size_t i = 0; i < d->enters.n; i++) {
        *array_add(&j->enter_payload) = d->enters.payload != NULL ? d->enters.payload[i] : NULL;
        *array_add(&j->enter_payload_len) = d->enters.payload != NULL ? d->enters.payload_len[i] : 0;
    }
    JOIN(update_id, d->updates.id, d->updates.n);
    JOIN(update_x, d->updates.x, d->updates.n);
    JOIN(update_y, d->updates.y, d->updates.n);
    JOIN(update_z, d->updates.z, d->updates.n);
    JOIN(update_extra, d->updates.extra, d->updates.n);
    JOIN(payload_id, d->payload_id, d->payload_n);
    JOIN(payload, d->payload, d->payload_n);
    JOIN(payload_len, d->payload_len, d->payload_n);
    JOIN(layers_id, d->layers_id, d->layers_n);
    JOIN(layers, d->layers, d->layers_n);
}

static struct aoi_delta whole(const struct joined *j, const struct aoi_delta *head)
{
    struct aoi_delta d = *head;
    d.leave_n = j->leave_id.n;
    d.leave_id = j->leave_id.at;
    d.enters = (struct aoi_enters){.n = j->enter_id.n,
                                   .id = j->enter_id.at,
                                   .x = j->enter_x.at,
                                   .y = j->enter_y.at,
                                   .z = j->enter_z.at,
                                   .extra = j->enter_extra.at,
                                   .layers = j->enter_layers.at,
                                   .payload = j->enter_payload.at,
                                   .payload_len = j->enter_payload_len.at};
    d.updates = (struct aoi_updates){
        .n = j->update_id.n, .id = j->update_id.at, .x = j->update_x.at, .y = j->update_y.at, .z = j->update_z.at, .extra = j->update_extra.at};
    d.payload_n = j->payload_id.n;
    d.payload_id = j->payload_id.at;
    d.payload = j->payload.at;
    d.payload_len = j->payload_len.at;
    d.layers_n = j->layers_id.n;
    d.layers_id = j->layers_id.at;
    d.layers = j->layers.at;
    d.message_n = j->message_from.n;
    d.message_from = j->message_from.at;
    d.message = j->message.at;
    d.message_len = j->message_len.at;
    d.messages_lost = j->lost;
    return d;
}

static void joined_clear(struct joined *j)
{
    array_clear(&j->leave_id);
    array_clear(&j->enter_id);
    array_clear(&j->enter_x);
    array_clear(&j->enter_y);
    array_clear(&j->enter_z);
    array_clear(&j->enter_extra);
    array_clear(&j->enter_layers);
    array_clear(&j->enter_payload);
    array_clear(&j->enter_payload_len);
    array_clear(&j->update_id);
    array_clear(&j->update_x);
    array_clear(&j->update_y);
    array_clear(&j->update_z);
    array_clear(&j->update_extra);
    array_clear(&j->payload_id);
    array_clear(&j->payload);
    array_clear(&j->payload_len);
    array_clear(&j->layers_id);
    array_clear(&j->layers);
    array_clear(&j->message_from);
    array_clear(&j->message);
    array_clear(&j->message_len);
}

/* Reads the frames in `out`, each at most max long; they must be one delta in n parts and say what was sent. */
static void assert_parts_make(const struct aoi_delta *sent, size_t n, size_t max)
{
    struct joined j = {0};
    for (size_t part = 0; part < n; part++) {
        struct frame f;
        assert_int_equal(frame_next(buf_data(&out), buf_len(&out), max, &f), FRAME_READY);
        struct codec_server_frame got;
        assert_int_equal(codec_decode_server(buf_data(&out) + f.header_len, f.body_len, &decoded, &got), 0);
        assert_as_protobuf_c_writes(buf_data(&out) + f.header_len, f.body_len);
        buf_consume(&out, f.header_len + f.body_len);
        assert_int_equal(got.u.deltas.player_n, 1);
        const struct codec_player_delta *p = &got.u.deltas.players[0];
        assert_int_equal(p->part, part);
        assert_int_equal(p->more, part + 1 < n);
        assert_int_equal(p->delta.seq, sent->seq);
        assert_int_equal(p->delta.full, sent->full);
        assert_int_equal(p->delta.closed, sent->closed);
        if (p->more) assert_int_equal(p->delta.messages_lost, 0);
        join(&j, &p->delta);
    }
    assert_int_equal(buf_len(&out), 0);
    struct aoi_delta all = whole(&j, sent);
    frames_assert_delta_equal(sent, &all);
    joined_clear(&j);
}

static void a_delta_that_does_not_fit_goes_in_parts_that_say_the_same(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    for (int round = 0; round < 3000; round++) {
        size_t max = 250 + random_below(&r, round % 3 == 0 ? 100 : 5000);
        struct aoi_delta sent;
        frames_random_delta(&r, &made, 1 + random_below(&r, 300), random_below(&r, max - 230), &sent);
        size_t n = codec_encode_delta(&sent, max, &out);
        assert_parts_make(&sent, n, max);
        again();
    }
}

static void a_delta_of_just_the_limit_is_one_frame_and_one_byte_less_makes_two(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    for (int round = 0; round < 300; round++) {
        struct aoi_delta sent;
        frames_random_delta(&r, &made, 200, 100, &sent);
        size_t exact = 0;
        struct frame f;
        assert_int_equal(codec_encode_delta(&sent, FRAME_BODY_MAX, &out), 1);
        assert_int_equal(frame_next(buf_data(&out), buf_len(&out), FRAME_BODY_MAX, &f), FRAME_READY);
        exact = f.body_len;
        buf_consume(&out, buf_len(&out));
        if (exact >= 600) {
            assert_int_equal(codec_encode_delta(&sent, exact, &out), 1);
            assert_parts_make(&sent, 1, exact);
            size_t n = codec_encode_delta(&sent, exact - 1, &out);
            assert_int_equal(n, 2);
            assert_parts_make(&sent, n, exact - 1);
        }
        again();
    }
}

static void parts_are_nearly_full(void **state)
{
    (void)state;
    size_t n = 50000;
    struct aoi_delta sent = {.space = 1, .flush = 1, .player = 1, .seq = 1, .full = true};
    uint64_t *id = arena_alloc(&made, n * 8);
    float *x = arena_alloc(&made, n * 4);
    for (size_t i = 0; i < n; i++) {
        id[i] = i + 1;
        x[i] = (float)i;
    }
    uint32_t *layers = arena_alloc(&made, n * 4);
    memset(layers, 1, n * 4);
    sent.enters = (struct aoi_enters){.n = n, .id = id, .x = x, .y = x, .layers = layers};
    size_t max = 64 << 10, items = (max - 200) / 20;
    assert_int_equal(codec_encode_delta(&sent, max, &out), (n + items - 1) / items);
    assert_parts_make(&sent, (n + items - 1) / items, max);
}

/* The bound that the server's configuration keeps: an item with the largest payload fits. */
static void an_item_of_the_largest_payload_fits_in_a_frame_1_kib_larger(void **state)
{
    (void)state;
    for (uint32_t payload = 0; payload <= 70000; payload = payload * 3 + 1) {
        uint64_t id[3] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
        float x[3] = {1, 2, 3};
        uint32_t word[3] = {1, 2, 3}, len[3] = {payload, payload, payload};
        void *bytes = calloc(1, payload + 1);
        const void *blob[3] = {bytes, bytes, bytes};
        struct aoi_delta sent = {.space = UINT64_MAX,
                                 .flush = UINT64_MAX,
                                 .tag = UINT64_MAX,
                                 .time_us = UINT64_MAX,
                                 .player = UINT64_MAX,
                                 .seq = UINT64_MAX,
                                 .full = true,
                                 .leave_n = 3,
                                 .leave_id = id,
                                 .payload_n = 3,
                                 .payload_id = id,
                                 .payload = blob,
                                 .payload_len = len,
                                 .layers_n = 3,
                                 .layers_id = id,
                                 .layers = word,
                                 .message_n = 3,
                                 .message_from = id,
                                 .message = blob,
                                 .message_len = len,
                                 .messages_lost = UINT64_MAX};
        sent.enters = (struct aoi_enters){
            .n = 3, .id = id, .x = x, .y = x, .z = x, .extra = word, .layers = word, .payload = blob, .payload_len = len};
        sent.updates = (struct aoi_updates){.n = 3, .id = id, .x = x, .y = x, .z = x, .extra = word};
        size_t n = codec_encode_delta(&sent, payload + 1024, &out);
        assert_parts_make(&sent, n, payload + 1024);
        free(bytes);
        again();
    }
}

/* ------------------------------------------------------------------------------------------------------------- columns that lie */

static void a_delta_whose_columns_differ_in_length_is_malformed(void **state)
{
    (void)state;
    uint64_t ids[2] = {1, 2};
    float f[2] = {1, 2};
    uint32_t words[2] = {1, 2};
    ProtobufCBinaryData blobs[2] = {{0, NULL}, {0, NULL}};
    for (int lie = -1; lie < 19; lie++) {
        Aoi__V1__PlayerDelta p = AOI__V1__PLAYER_DELTA__INIT;
        p.n_leave_ids = p.n_enter_ids = p.n_enter_x = p.n_enter_y = p.n_enter_z = p.n_enter_extra = p.n_enter_layers = p.n_enter_payloads = 2;
        p.n_update_ids = p.n_update_x = p.n_update_y = p.n_update_z = p.n_update_extra = 2;
        p.n_payload_ids = p.n_payloads = p.n_layers_ids = p.n_layers = p.n_message_from = p.n_messages = 2;
        p.leave_ids = p.enter_ids = p.update_ids = p.payload_ids = p.layers_ids = p.message_from = ids;
        p.enter_x = p.enter_y = p.enter_z = p.update_x = p.update_y = p.update_z = f;
        p.enter_extra = p.enter_layers = p.update_extra = p.layers = words;
        p.enter_payloads = p.payloads = p.messages = blobs;
        size_t *const count[19] = {&p.n_leave_ids,   &p.n_enter_ids,    &p.n_enter_x,        &p.n_enter_y,     &p.n_enter_z,
                                   &p.n_enter_extra, &p.n_enter_layers, &p.n_update_ids,     &p.n_update_x,    &p.n_update_y,
                                   &p.n_update_z,    &p.n_update_extra, &p.n_enter_payloads, &p.n_payload_ids, &p.n_payloads,
                                   &p.n_layers_ids,  &p.n_layers,       &p.n_message_from,   &p.n_messages};
        if (lie >= 0) *count[lie] = 1;
        Aoi__V1__PlayerDelta *players[1] = {&p};
        Aoi__V1__Deltas deltas = AOI__V1__DELTAS__INIT;
        deltas.n_players = 1;
        deltas.players = players;
        Aoi__V1__ServerFrame frame = AOI__V1__SERVER_FRAME__INIT;
        frame.kind_case = AOI__V1__SERVER_FRAME__KIND_DELTAS;
        frame.deltas = &deltas;
        uint8_t bytes[1000];
        size_t len = aoi__v1__server_frame__pack(&frame, bytes);
        struct codec_server_frame got;
        assert_int_equal(codec_decode_server(bytes, len, &decoded, &got), lie <= 0 ? 0 : CODEC_MALFORMED); /* leaves have one column */
        again();
    }
}

#define TEST(f) cmocka_unit_test_prestate_setup_teardown(f, scratch_start, scratch_end, &cap)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_delta_with_one_leave_has_these_bytes),
        TEST(a_delta_with_a_message_has_these_bytes),
        TEST(an_empty_delta_is_one_frame),
        TEST(enters_without_a_single_payload_byte_have_no_payload_column),
        TEST(a_delta_is_byte_for_byte_what_protobuf_c_would_write),
        TEST(deltas_of_several_players_are_what_protobuf_c_would_write),
        TEST(deltas_of_one_flush_are_grouped_in_frames_that_protobuf_c_would_write),
        TEST(a_group_is_ended_before_it_is_longer_than_a_frame_may_be),
        TEST(a_delta_that_just_fills_a_frame_ends_the_group_before_it),
        TEST(columns_that_are_written_afterwards_make_the_same_bytes),
        TEST(a_delta_that_does_not_fit_goes_in_parts_that_say_the_same),
        TEST(a_delta_of_just_the_limit_is_one_frame_and_one_byte_less_makes_two),
        TEST(parts_are_nearly_full),
        TEST(an_item_of_the_largest_payload_fits_in_a_frame_1_kib_larger),
        TEST(a_delta_whose_columns_differ_in_length_is_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
