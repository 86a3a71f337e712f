/* test_codec.c: every frame there and back, golden bytes, and what defaults mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "frames.h"

#define CAP ((size_t)64 << 20)

static struct arena made, decoded; /* of the frame that a test made up, and of the one that was decoded */
static struct buf out;

static int start(void **state)
{
    (void)state;
    arena_init(&made, CAP);
    arena_init(&decoded, CAP);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_clear(&made);
    arena_clear(&decoded);
    buf_clear(&out);
    return 0;
}

static void again(void)
{
    arena_reset(&made);
    arena_reset(&decoded);
    buf_consume(&out, buf_len(&out));
}

/* ------------------------------------------------------------------------------------------------------------- there and back */

static void every_client_frame_comes_back_as_it_was_sent(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    for (int round = 0; round < 3000; round++) {
        struct codec_client_frame sent, got;
        frames_random_client(&r, &made, (enum codec_client_kind)(round % CODEC_CLIENT_KINDS), &sent);
        size_t len = codec_encode_client(&sent, &out);
        assert_int_equal(codec_decode_client(frames_body(&out, len), len, &decoded, &got), 0);
        frames_assert_client_equal(&sent, &got);
        again();
    }
}

static void every_server_frame_comes_back_as_it_was_sent(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    for (int round = 0; round < 4000; round++) {
        struct codec_server_frame sent, got;
        frames_random_server(&r, &made, (enum codec_server_kind)(round % CODEC_SERVER_KINDS), &sent);
        size_t len = codec_encode_server(&sent, &out);
        assert_int_equal(codec_decode_server(frames_body(&out, len), len, &decoded, &got), 0);
        frames_assert_server_equal(&sent, &got);
        again();
    }
}

static void encoding_appends_behind_what_is_there(void **state)
{
    (void)state;
    struct codec_client_frame ping = {.kind = CODEC_PING, .u.ping.nonce = 1};
    buf_append(&out, "abc", 3);
    assert_int_equal(codec_encode_client(&ping, &out), 4);
    assert_int_equal(buf_len(&out), 3 + 1 + 4);
    assert_memory_equal(buf_data(&out), "abc\x04\x32\x02\x08\x01", 8);
}

/* ------------------------------------------------------------------------------------------------------------- golden bytes */

#define GOLDEN(encode, frame, bytes)                                   \
    do {                                                               \
        size_t len_ = encode(&(frame), &out);                          \
        assert_int_equal(len_ + 1, sizeof(bytes) - 1);                 \
        assert_int_equal(buf_len(&out), sizeof(bytes) - 1);            \
        assert_memory_equal(buf_data(&out), bytes, sizeof(bytes) - 1); \
        buf_consume(&out, buf_len(&out));                              \
    } while (0)

static void hello_has_these_bytes(void **state)
{
    (void)state;
    struct codec_client_frame f = {.seq = 1, .kind = CODEC_HELLO, .u.hello = {.protocol_version = 1, .client_name = "zs"}};
    GOLDEN(codec_encode_client, f,
           "\x0a"
           "\x08\x01"
           "\x12\x06"
           "\x08\x01"
           "\x12\x02zs");
}

static void bye_and_an_empty_frame_have_these_bytes(void **state)
{
    (void)state;
    struct codec_client_frame bye = {.kind = CODEC_BYE}, none = {.kind = CODEC_CLIENT_NONE};
    GOLDEN(codec_encode_client, bye,
           "\x02"
           "\x3a\x00");
    GOLDEN(codec_encode_client, none, "\x00");
}

static void a_move_has_these_bytes(void **state)
{
    (void)state;
    uint64_t id = 7;
    float x = 1, y = 2;
    struct codec_command move = {.kind = CODEC_MOVE_ENTITIES, .u.move_entities = {.id_n = 1, .x_n = 1, .y_n = 1, .id = &id, .x = &x, .y = &y}};
    struct codec_client_frame f = {.seq = 2, .kind = CODEC_BATCH, .u.batch = {.space = 1, .command_n = 1, .commands = &move}};
    GOLDEN(codec_encode_client, f,
           "\x20"
           "\x08\x02"
           "\x1a\x1c"
           "\x08\x01"
           "\x12\x18"
           "\x22\x16"
           "\x0a\x08\x07\x00\x00\x00\x00\x00\x00\x00"
           "\x12\x04\x00\x00\x80\x3f"
           "\x1a\x04\x00\x00\x00\x40");
}

static void a_space_of_flush_ms_0_says_so(void **state)
{
    (void)state;
    struct codec_command create = {.kind = CODEC_CREATE_SPACE, .u.create_space = {.settings = {.dimensions = 3, .cell_size = 1}, .if_absent = true}};
    struct codec_client_frame f = {.kind = CODEC_BATCH, .u.batch = {.space = 5, .command_n = 1, .commands = &create}};
    GOLDEN(codec_encode_client, f,
           "\x19"
           "\x1a\x17"
           "\x08\x05"
           "\x12\x13"
           "\x0a\x11"
           "\x0a\x0d"
           "\x08\x03"
           "\x21\x00\x00\x00\x00\x00\x00\xf0\x3f"
           "\x40\x00"
           "\x10\x01");
}

static void replies_have_these_bytes(void **state)
{
    (void)state;
    struct codec_server_frame ack = {.reply_to = 5, .kind = CODEC_ACK};
    GOLDEN(codec_encode_server, ack,
           "\x04"
           "\x08\x05"
           "\x1a\x00");
    struct codec_error_item item = {.index = 3, .code = CODEC_UNKNOWN_ENTITY, .id = 9, .text = "no"};
    ack.u.ack.applied = 300;
    ack.u.ack.errors_total = ack.u.ack.error_n = 1;
    ack.u.ack.errors = &item;
    ack.u.ack.pending = true;
    GOLDEN(codec_encode_server, ack,
           "\x17"
           "\x08\x05"
           "\x1a\x13"
           "\x08\xac\x02"
           "\x12\x0a"
           "\x08\x03\x10\x04\x18\x09\x22\x02no"
           "\x18\x01"
           "\x20\x01");
    struct codec_server_frame error = {.kind = CODEC_ERROR, .u.error = {.code = CODEC_MALFORMED, .text = "x"}};
    GOLDEN(codec_encode_server, error,
           "\x07"
           "\x3a\x05"
           "\x08\x0c"
           "\x12\x01x");
    struct codec_server_frame draining = {.kind = CODEC_DRAINING_NOTICE};
    GOLDEN(codec_encode_server, draining,
           "\x02"
           "\x42\x00");
    struct codec_server_frame empty_page = {.reply_to = 1, .kind = CODEC_RESULT, .u.result.kind = CODEC_RESULT_ENTITIES};
    GOLDEN(codec_encode_server, empty_page,
           "\x06"
           "\x08\x01"
           "\x2a\x02"
           "\x0a\x00");
}

/* ------------------------------------------------------------------------------------------------------------- what bytes mean */

static int decode(const char *bytes, size_t len, struct codec_client_frame *frame)
{
    arena_reset(&decoded);
    return codec_decode_client(bytes, len, &decoded, frame);
}
#define DECODE(bytes, frame) decode(bytes, sizeof(bytes) - 1, frame)

static void an_empty_or_unknown_frame_is_of_no_kind(void **state)
{
    (void)state;
    struct codec_client_frame f;
    assert_int_equal(codec_decode_client(NULL, 0, &decoded, &f), 0);
    assert_int_equal(f.kind, CODEC_CLIENT_NONE);
    assert_int_equal(DECODE("\x08\x07", &f), 0);
    assert_int_equal(f.kind, CODEC_CLIENT_NONE);
    assert_int_equal(f.seq, 7);
    assert_int_equal(DECODE("\x08\x07"
                            "\xa2\x06\x03zzz",
                            &f),
                     0); /* field 100 */
    assert_int_equal(f.kind, CODEC_CLIENT_NONE);
    struct codec_server_frame s;
    assert_int_equal(codec_decode_server(NULL, 0, &decoded, &s), 0);
    assert_int_equal(s.kind, CODEC_SERVER_NONE);
}

static void an_empty_or_unknown_command_and_query_are_of_no_kind(void **state)
{
    (void)state;
    struct codec_client_frame f;
    assert_int_equal(DECODE("\x1a\x0a"
                            "\x12\x00"
                            "\x12\x02\x82\x7d"
                            "\x12\x02\x7a\x00",
                            &f),
                     CODEC_MALFORMED); /* a tag that is cut off */
    assert_int_equal(DECODE("\x1a\x0b"
                            "\x12\x00"
                            "\x12\x03\x82\x7d\x00"
                            "\x12\x02\x7a\x00",
                            &f),
                     0);
    assert_int_equal(f.u.batch.command_n, 3);
    assert_int_equal(f.u.batch.commands[0].kind, CODEC_COMMAND_NONE);
    assert_int_equal(f.u.batch.commands[1].kind, CODEC_COMMAND_NONE);
    assert_int_equal(f.u.batch.commands[2].kind, CODEC_FLUSH);
    assert_int_equal(DECODE("\x22\x02\x08\x04", &f), 0);
    assert_int_equal(f.kind, CODEC_QUERY);
    assert_int_equal(f.u.query.kind, CODEC_QUERY_NONE);
    assert_int_equal(f.u.query.space, 4);
}

static void unknown_fields_are_ignored(void **state)
{
    (void)state;
    struct codec_client_frame f;
    /* between the known ones: field 100 as varint, 64 bits, bytes and 32 bits */
    assert_int_equal(DECODE("\xa0\x06\x01"
                            "\x08\x05"
                            "\xa1\x06zzzzzzzz"
                            "\x32\x08"
                            "\xa2\x06\x01z"
                            "\x08\x09"
                            "\x98\x06\x01"
                            "\xa5\x06zzzz",
                            &f),
                     CODEC_MALFORMED);
    assert_int_equal(DECODE("\xa0\x06\x01"
                            "\x08\x05"
                            "\xa1\x06zzzzzzzz"
                            "\x32\x09"
                            "\xa2\x06\x01z"
                            "\x08\x09"
                            "\x98\x06\x01"
                            "\xa5\x06zzzz",
                            &f),
                     0);
    assert_int_equal(f.kind, CODEC_PING);
    assert_int_equal(f.seq, 5);
    assert_int_equal(f.u.ping.nonce, 9);
}

static void the_last_member_of_a_oneof_counts(void **state)
{
    (void)state;
    struct codec_client_frame f;
    assert_int_equal(DECODE("\x12\x04\x12\x02zs"
                            "\x3a\x00"
                            "\x32\x02\x08\x09",
                            &f),
                     0);
    assert_int_equal(f.kind, CODEC_PING);
    assert_int_equal(f.u.ping.nonce, 9);
}

static const struct codec_command *only_command(const char *bytes, size_t len)
{
    static struct codec_client_frame f;
    assert_int_equal(decode(bytes, len, &f), 0);
    assert_int_equal(f.kind, CODEC_BATCH);
    assert_int_equal(f.u.batch.command_n, 1);
    return &f.u.batch.commands[0];
}
#define COMMAND(bytes) only_command(bytes, sizeof(bytes) - 1)

static void fields_that_are_not_set_mean_their_defaults(void **state)
{
    (void)state;
    const struct codec_command *c = COMMAND("\x1a\x04"
                                            "\x12\x02"
                                            "\x0a\x00");
    assert_int_equal(c->kind, CODEC_CREATE_SPACE);
    assert_int_equal(c->u.create_space.settings.flush_ms, AOI_FLUSH_MS_DEFAULT); /* also without any settings */
    c = COMMAND("\x1a\x06"
                "\x12\x04"
                "\x0a\x02"
                "\x0a\x00");
    assert_int_equal(c->u.create_space.settings.flush_ms, AOI_FLUSH_MS_DEFAULT);
    assert_int_equal(c->u.create_space.settings.dimensions, 0);
    assert_int_equal(c->u.create_space.settings.index, 0);
    assert_true(c->u.create_space.settings.cell_size == 0);
    assert_int_equal(c->u.create_space.settings.cell_range, 0);
    assert_false(c->u.create_space.settings.bounded);
    c = COMMAND("\x1a\x08"
                "\x12\x06"
                "\x0a\x04"
                "\x0a\x02"
                "\x40\x00");
    assert_int_equal(c->u.create_space.settings.flush_ms, 0);
    c = COMMAND("\x1a\x08"
                "\x12\x06"
                "\x0a\x04"
                "\x0a\x02"
                "\x32\x00");
    assert_true(c->u.create_space.settings.bounded); /* a box of nothing but zeros */
    c = COMMAND("\x1a\x04"
                "\x12\x02"
                "\x1a\x00");
    assert_int_equal(c->kind, CODEC_ADD_ENTITY);
    assert_int_equal(c->u.add_entity.mode, AOI_ADD_NEW);
    assert_int_equal(c->u.add_entity.entity.layers, 0);
    assert_null(c->u.add_entity.entity.payload);
    assert_int_equal(c->u.add_entity.entity.payload_len, 0);
}

static void unknown_enum_numbers_are_kept(void **state)
{
    (void)state;
    const struct codec_command *c = COMMAND("\x1a\x0a"
                                            "\x12\x08"
                                            "\x0a\x06"
                                            "\x0a\x04"
                                            "\x10\x63"
                                            "\x18\x64");
    assert_int_equal(c->u.create_space.settings.index, 99);
    assert_int_equal(c->u.create_space.settings.shape, 100);
    c = COMMAND("\x1a\x06"
                "\x12\x04"
                "\x1a\x02"
                "\x10\x63");
    assert_int_equal(c->u.add_entity.mode, 99);
    c = COMMAND("\x1a\x0f"
                "\x12\x0d"
                "\x1a\x0b"
                "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"); /* -1 */
    assert_int_equal(c->u.add_entity.mode, UINT32_MAX);
}

static void columns_of_any_encoding_are_joined(void **state)
{
    (void)state;
    /* ids: one packed, two single, one packed again */
    const struct codec_command *c = COMMAND("\x1a\x2a"
                                            "\x12\x28"
                                            "\x2a\x26"
                                            "\x0a\x08\x01\0\0\0\0\0\0\0"
                                            "\x09\x02\0\0\0\0\0\0\0"
                                            "\x09\x03\0\0\0\0\0\0\0"
                                            "\x0a\x08\x04\0\0\0\0\0\0\0");
    assert_int_equal(c->kind, CODEC_REMOVE_ENTITIES);
    assert_int_equal(c->u.remove_entities.id_n, 4);
    for (uint64_t i = 0; i < 4; i++) assert_int_equal(c->u.remove_entities.id[i], i + 1);
}

static void column_lengths_come_through_as_received(void **state)
{
    (void)state;
    const struct codec_command *c = COMMAND("\x1a\x14"
                                            "\x12\x12"
                                            "\x22\x10"
                                            "\x0a\x08\x01\0\0\0\0\0\0\0"
                                            "\x12\x04zzzz");
    assert_int_equal(c->kind, CODEC_MOVE_ENTITIES);
    assert_int_equal(c->u.move_entities.id_n, 1);
    assert_int_equal(c->u.move_entities.x_n, 1);
    assert_int_equal(c->u.move_entities.y_n, 0);
    struct codec_client_frame f;
    assert_int_equal(DECODE("\x1a\x0d"
                            "\x12\x0b"
                            "\x2a\x09"
                            "\x0a\x07\x01\0\0\0\0\0\0",
                            &f),
                     CODEC_MALFORMED); /* 7 bytes of 8-byte ids */
}

static void a_name_with_a_nul_ends_there(void **state)
{
    (void)state;
    struct codec_client_frame f;
    assert_int_equal(DECODE("\x12\x05\x12\x03"
                            "a\0b",
                            &f),
                     0);
    assert_string_equal(f.u.hello.client_name, "a");
    assert_int_equal(DECODE("\x12\x00", &f), 0);
    assert_string_equal(f.u.hello.client_name, "");
}

static void codes_have_names(void **state)
{
    (void)state;
    assert_string_equal(codec_code_name(CODEC_OK), "OK");
    assert_string_equal(codec_code_name(CODEC_INVALID_ARGUMENT), "INVALID_ARGUMENT");
    assert_string_equal(codec_code_name(-AOI_ELIMIT), "LIMIT_EXCEEDED");
    assert_string_equal(codec_code_name(CODEC_DRAINING), "DRAINING");
    assert_string_equal(codec_code_name(CODEC_CODES), "UNKNOWN");
    assert_string_equal(codec_code_name(-1), "UNKNOWN");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_client_frame_comes_back_as_it_was_sent),
        TEST(every_server_frame_comes_back_as_it_was_sent),
        TEST(encoding_appends_behind_what_is_there),
        TEST(hello_has_these_bytes),
        TEST(bye_and_an_empty_frame_have_these_bytes),
        TEST(a_move_has_these_bytes),
        TEST(a_space_of_flush_ms_0_says_so),
        TEST(replies_have_these_bytes),
        TEST(an_empty_or_unknown_frame_is_of_no_kind),
        TEST(an_empty_or_unknown_command_and_query_are_of_no_kind),
        TEST(unknown_fields_are_ignored),
        TEST(the_last_member_of_a_oneof_counts),
        TEST(fields_that_are_not_set_mean_their_defaults),
        TEST(unknown_enum_numbers_are_kept),
        TEST(columns_of_any_encoding_are_joined),
        TEST(column_lengths_come_through_as_received),
        TEST(a_name_with_a_nul_ends_there),
        TEST(codes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
