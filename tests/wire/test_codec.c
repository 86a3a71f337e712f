/* test_codec.c: every frame there and back, golden bytes, and what defaults mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "frames.h"
#include "scratch.h"

static size_t cap = (size_t)64 << 20; /* of each arena */

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
    const struct codec_create_space what = {.settings = {.dimensions = 3, .cell_size = 1}, .if_absent = true};
    struct codec_command create = {.kind = CODEC_CREATE_SPACE, .u.create_space = &what};
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

/* One command in a batch about space 5. */
static struct codec_client_frame batch_of(struct codec_command *command)
{
    return (struct codec_client_frame){.kind = CODEC_BATCH, .u.batch = {.space = 5, .command_n = 1, .commands = command}};
}

static void set_space_says_what_changes_and_nothing_else(void **state)
{
    (void)state;
    struct codec_set_space what = {.change = {.has_flush_ms = true, .has_max_view = true, .max_view = 300, .min_stay_ms = 7}};
    struct codec_command set = {.kind = CODEC_SET_SPACE, .u.set_space = &what};
    struct codec_client_frame f = batch_of(&set);
    GOLDEN(codec_encode_client, f,
           "\x0e"
           "\x1a\x0c"
           "\x08\x05"
           "\x12\x08"
           "\x82\x01\x05"
           "\x08\x00\x20\xac\x02");
    what.change = (struct aoi_space_change){
        .has_leave_margin = true, .leave_margin = 2, .has_tiers = true, .tiers = {.n = 1, .at[0] = {30, 1}, .beyond = 4}};
    GOLDEN(codec_encode_client, f,
           "\x18"
           "\x1a\x16"
           "\x08\x05"
           "\x12\x12"
           "\x82\x01\x0f"
           "\x15\x00\x00\x00\x40"
           "\x32\x08"
           "30:1 *:4");
}

static void release_override_and_publish_have_these_bytes(void **state)
{
    (void)state;
    uint64_t entity = 7, player = 9;
    struct codec_command c = {.kind = CODEC_RELEASE,
                              .u.release = {.entity_n = 1, .entities = &entity, .player_n = 1, .players = &player, .to_session = 3}};
    struct codec_client_frame f = batch_of(&c);
    GOLDEN(codec_encode_client, f,
           "\x1f"
           "\x1a\x1d"
           "\x08\x05"
           "\x12\x19"
           "\x9a\x01\x16"
           "\x0a\x08\x07\0\0\0\0\0\0\0"
           "\x12\x08\x09\0\0\0\0\0\0\0"
           "\x18\x03");
    c = (struct codec_command){.kind = CODEC_OVERRIDE, .u.override = {.player = 9, .entity = 7, .kind = AOI_OVERRIDE_HIDE}};
    GOLDEN(codec_encode_client, f,
           "\x0f"
           "\x1a\x0d"
           "\x08\x05"
           "\x12\x09"
           "\xa2\x01\x06"
           "\x08\x09\x10\x07\x18\x02");
    c = (struct codec_command){.kind = CODEC_PUBLISH, .u.publish = {.kind = CODEC_PUBLISH_ENTITY, .entity = 7, .message = "hi", .message_len = 2}};
    GOLDEN(codec_encode_client, f,
           "\x0f"
           "\x1a\x0d"
           "\x08\x05"
           "\x12\x09"
           "\xaa\x01\x06"
           "\x08\x07\x22\x02hi");
    c = (struct codec_command){.kind = CODEC_PUBLISH, .u.publish = {.kind = CODEC_PUBLISH_POINT, .min = {1}, .max = {1}}};
    GOLDEN(codec_encode_client, f,
           "\x10"
           "\x1a\x0e"
           "\x08\x05"
           "\x12\x0a"
           "\xaa\x01\x07"
           "\x12\x05\x0d\x00\x00\x80\x3f");
}

static void observed_and_lost_have_these_bytes(void **state)
{
    (void)state;
    uint64_t id = 7;
    struct codec_server_frame observed = {.kind = CODEC_OBSERVED, .u.observed = {.space = 5, .unobserved_n = 1, .unobserved = &id}};
    GOLDEN(codec_encode_server, observed,
           "\x0e"
           "\x4a\x0c"
           "\x08\x05"
           "\x1a\x08\x07\0\0\0\0\0\0\0");
    struct codec_server_frame lost = {.kind = CODEC_LOST, .u.lost = {.space = 5, .entity_n = 1, .entities = &id}};
    GOLDEN(codec_encode_server, lost,
           "\x0e"
           "\x52\x0c"
           "\x08\x05"
           "\x12\x08\x07\0\0\0\0\0\0\0");
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
    assert_int_equal(c->u.create_space->settings.flush_ms, AOI_FLUSH_MS_DEFAULT); /* also without any settings */
    c = COMMAND("\x1a\x06"
                "\x12\x04"
                "\x0a\x02"
                "\x0a\x00");
    assert_int_equal(c->u.create_space->settings.flush_ms, AOI_FLUSH_MS_DEFAULT);
    assert_int_equal(c->u.create_space->settings.dimensions, 0);
    assert_int_equal(c->u.create_space->settings.index, 0);
    assert_true(c->u.create_space->settings.cell_size == 0);
    assert_int_equal(c->u.create_space->settings.cell_range, 0);
    assert_false(c->u.create_space->settings.bounded);
    c = COMMAND("\x1a\x08"
                "\x12\x06"
                "\x0a\x04"
                "\x0a\x02"
                "\x40\x00");
    assert_int_equal(c->u.create_space->settings.flush_ms, 0);
    c = COMMAND("\x1a\x08"
                "\x12\x06"
                "\x0a\x04"
                "\x0a\x02"
                "\x32\x00");
    assert_true(c->u.create_space->settings.bounded); /* a box of nothing but zeros */
    c = COMMAND("\x1a\x04"
                "\x12\x02"
                "\x1a\x00");
    assert_int_equal(c->kind, CODEC_ADD_ENTITY);
    assert_int_equal(c->u.add_entity.mode, AOI_ADD_NEW);
    assert_int_equal(c->u.add_entity.entity.layers, 0);
    assert_null(c->u.add_entity.entity.payload);
    assert_int_equal(c->u.add_entity.entity.payload_len, 0);
    c = COMMAND("\x1a\x05"
                "\x12\x03"
                "\xa2\x01\x00");
    assert_int_equal(c->kind, CODEC_OVERRIDE);
    assert_int_equal(c->u.override.kind, AOI_OVERRIDE_NONE);
    c = COMMAND("\x1a\x05"
                "\x12\x03"
                "\xaa\x01\x00");
    assert_int_equal(c->kind, CODEC_PUBLISH);
    assert_int_equal(c->u.publish.kind, CODEC_PUBLISH_NOWHERE);
    c = COMMAND("\x1a\x05"
                "\x12\x03"
                "\x82\x01\x00");
    assert_int_equal(c->kind, CODEC_SET_SPACE);
    const struct aoi_space_change none = {0};
    assert_memory_equal(&c->u.set_space->change, &none, sizeof none);
    assert_null(c->u.set_space->tiers_error);
}

static void what_set_space_names_is_set_also_to_0(void **state)
{
    (void)state;
    const struct codec_command *c = COMMAND("\x1a\x14"
                                            "\x12\x12"
                                            "\x82\x01\x0f"
                                            "\x08\x00"
                                            "\x15\x00\x00\x00\x00"
                                            "\x18\x00"
                                            "\x20\x00"
                                            "\x28\x00"
                                            "\x32\x00");
    const struct aoi_space_change *change = &c->u.set_space->change;
    assert_true(change->has_flush_ms && change->has_leave_margin && change->has_min_stay_ms && change->has_max_view);
    assert_true(change->has_max_enter_per_flush && change->has_tiers);
    assert_int_equal(change->flush_ms, 0);
    assert_int_equal(change->tiers.n, 0);
    assert_null(c->u.set_space->tiers_error);
}

static void tiers_that_make_no_sense_are_told_and_are_none(void **state)
{
    (void)state;
    const struct codec_command *c = COMMAND("\x1a\x0c"
                                            "\x12\x0a"
                                            "\x82\x01\x07"
                                            "\x32\x05"
                                            "9:1 x");
    assert_true(c->u.set_space->change.has_tiers);
    assert_non_null(c->u.set_space->tiers_error);
    assert_int_equal(c->u.set_space->change.tiers.n, 0);
    c = COMMAND("\x1a\x0f"
                "\x12\x0d"
                "\x0a\x0b"
                "\x0a\x09"
                "\x72\x07"
                "9:1 8:2");
    assert_non_null(c->u.create_space->tiers_error);
    assert_int_equal(c->u.create_space->settings.tiers.n, 0);
    c = COMMAND("\x1a\x0f"
                "\x12\x0d"
                "\x0a\x0b"
                "\x0a\x09"
                "\x72\x07"
                "9:3 *:2");
    assert_null(c->u.create_space->tiers_error);
    assert_int_equal(c->u.create_space->settings.tiers.n, 1);
    assert_true(c->u.create_space->settings.tiers.at[0].distance == 9.0f);
    assert_int_equal(c->u.create_space->settings.tiers.at[0].period, 3);
    assert_int_equal(c->u.create_space->settings.tiers.beyond, 2);
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
    assert_int_equal(c->u.create_space->settings.index, 99);
    assert_int_equal(c->u.create_space->settings.shape, 100);
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
    c = COMMAND("\x1a\x07"
                "\x12\x05"
                "\xa2\x01\x02"
                "\x18\x63");
    assert_int_equal(c->u.override.kind, 99);
}

/* ------------------------------------------------------------------------------------------------------------- why, in words */

#define VIEWPORT .dims = 2, .box = {{-10, -5.5f}, {10, 7}}

static void says_deaf(struct aoi_why why, enum codec_deaf deaf, uint64_t lease_ms, const char *text)
{
    struct codec_server_frame got,
        frame = {.kind = CODEC_RESULT, .u.result = {.kind = CODEC_RESULT_WHY, .why = why, .why_deaf = deaf, .why_lease_ms = lease_ms}};
    size_t len = codec_encode_server(&frame, &out);
    assert_int_equal(codec_decode_server(frames_body(&out, len), len, &decoded, &got), 0);
    assert_string_equal(got.u.result.why_text, text);
    again();
}

static void says(struct aoi_why why, const char *text)
{
    says_deaf(why, CODEC_DEAF_NOT, 0, text);
}

static void that_a_player_cannot_be_told_anything_stands_behind_the_rule(void **state)
{
    (void)state;
    const struct aoi_why shown = {.rule = AOI_RULE_SHOW, .seen = true}, told = {.rule = AOI_RULE_SHOW, .seen = true, .told = true};
    says_deaf(shown, CODEC_DEAF_NOT, 0, "seen: overridden with SHOW; the next flush tells it");
    says_deaf(shown, CODEC_DEAF_FULL, 0, "seen: overridden with SHOW; but the player's connection is full: it is told nothing until it reads");
    says_deaf(told, CODEC_DEAF_GONE, 7000,
              "seen: overridden with SHOW; but the player's connection is gone: it is told nothing, and goes in 7.0 s with its session, unless that "
              "resumes");
    says_deaf(told, CODEC_DEAF_GONE, 0, "seen: overridden with SHOW; but the player's connection is gone: it is told nothing");
    says_deaf((struct aoi_why){.rule = AOI_RULE_HIDE, .told = true}, CODEC_DEAF_FULL, 0,
              "not seen: overridden with HIDE; but the player's connection is full: it is told nothing until it reads");
    says_deaf((struct aoi_why){.rule = AOI_RULE_HIDE}, CODEC_DEAF_GONE, 1, "not seen: overridden with HIDE");
}

static void the_rule_that_decides_is_told_in_a_sentence(void **state)
{
    (void)state;
    says((struct aoi_why){.rule = AOI_RULE_INCLUDE_SELF, .seen = true, .told = true}, "seen: a unit of the player's, subscribed with include_self");
    says((struct aoi_why){.rule = AOI_RULE_SHOW, .seen = true, .told = true, .period = 4}, "seen: overridden with SHOW; updated every 4 flushes");
    says((struct aoi_why){.rule = AOI_RULE_HIDE, .told = true}, "not seen: overridden with HIDE; the next flush takes it away");
    says((struct aoi_why){.rule = AOI_RULE_MASK, .layers = 4, .mask = 0xff03},
         "not seen: its layers 0x4 and the player's mask 0xff03 have no bit in common");
    says((struct aoi_why){.rule = AOI_RULE_RANGE, .seen = true, .told = true, .unit = 7, .away = 12.5, .radius = 50, .period = 1},
         "seen: in the range of unit 7 (12.5 away, radius 50)");
    says((struct aoi_why){.rule = AOI_RULE_RANGE, .seen = true, .unit = 7, .away = 61.25, .radius = 50, .appeal = 20},
         "seen: in the range of unit 7 (61.25 away, radius 50, appeal 20); the next flush tells it");
    says((struct aoi_why){.rule = AOI_RULE_RANGE, .seen = true, .told = true, .by_viewport = true, VIEWPORT, .rank = 2, .max_view = 100},
         "seen: in the viewport -10,-5.5 to 10,7, rank 2 of max_view 100");
    says((struct aoi_why){.rule = AOI_RULE_LEAVE_MARGIN, .seen = true, .told = true, .unit = 7, .away = 52, .radius = 50, .margin = 5},
         "seen: told before, and still within the leave_margin of 5 around the range of unit 7 (52 away, radius 50)");
    says((struct aoi_why){.rule = AOI_RULE_LEAVE_MARGIN, .seen = true, .told = true, .by_viewport = true, VIEWPORT, .margin = 0.5f},
         "seen: told before, and still within the leave_margin of 0.5 around the viewport -10,-5.5 to 10,7");
    says(
        (struct aoi_why){
            .rule = AOI_RULE_LEAVE_MARGIN, .seen = true, .told = true, .shape = AOI_SHAPE_CELLS, .unit = 7, .away = 3, .cell_range = 1, .margin = 4},
        "seen: told before, and it still would be if both stood nearer to each other by the leave_margin of 4: unit 7 (3 cells away, cell_range 1)");
    says((struct aoi_why){.rule = AOI_RULE_MIN_STAY, .seen = true, .told = true, .stay_left_ms = 320},
         "seen: told so lately that min_stay_ms keeps it for another 320 ms");
    says((struct aoi_why){.rule = AOI_RULE_FAR, .unit = 7, .away = 61.25, .radius = 50, .margin = 5},
         "not seen: out of every range, the nearest is unit 7 (61.25 away, radius 50)");
    says((struct aoi_why){.rule = AOI_RULE_FAR, .told = true, .unit = 7, .away = 61.25, .radius = 50, .margin = 5},
         "not seen: out of every range, the nearest is unit 7 (61.25 away, radius 50), beyond the leave_margin of 5 too; the next flush takes it "
         "away");
    says((struct aoi_why){.rule = AOI_RULE_FAR, .by_viewport = true, VIEWPORT, .appeal = 2},
         "not seen: outside the viewport -10,-5.5 to 10,7 (its appeal is 2)");
    says(
        (struct aoi_why){
            .rule = AOI_RULE_RANGE, .seen = true, .told = true, .shape = AOI_SHAPE_BOX, .unit = 7, .distance = 69.3, .away = 49, .radius = 50},
        "seen: in the range of unit 7 (49 away along an axis, radius 50)");
    says(
        (struct aoi_why){
            .rule = AOI_RULE_RANGE, .seen = true, .told = true, .shape = AOI_SHAPE_CELLS, .unit = 7, .away = 1, .cell_range = 1, .radius = 50},
        "seen: in the range of unit 7 (1 cell away, cell_range 1)");
    says((struct aoi_why){.rule = AOI_RULE_FAR, .shape = AOI_SHAPE_CELLS, .unit = 7, .away = 2, .cell_range = 1},
         "not seen: out of every range, the nearest is unit 7 (2 cells away, cell_range 1)");
    says((struct aoi_why){.rule = AOI_RULE_BLIND}, "not seen: the player has neither a viewport nor a unit of a radius other than 0");
    says((struct aoi_why){.rule = AOI_RULE_FAR, .unit = 7, .radius = 50, .own_unit = true},
         "not seen: it is a unit of the player's own, and no unit sees itself; subscribed with include_self it would be seen");
    says((struct aoi_why){.rule = AOI_RULE_BLIND, .own_unit = true},
         "not seen: it is a unit of the player's own, and no unit sees itself; subscribed with include_self it would be seen");
    says((struct aoi_why){.rule = AOI_RULE_HIDE, .own_unit = true}, "not seen: overridden with HIDE");
    says((struct aoi_why){.rule = AOI_RULE_RANK, .rank = 3, .max_view = 2}, "not seen: rank 3 of a max_view of 2, others come before it");
    says((struct aoi_why){.rule = AOI_RULE_ENTER_BUDGET, .seen = true, .rank = 3, .max_view = 4},
         "not seen yet: it waits for max_enter_per_flush, or for room on the connection, rank 3 of max_view 4");
    says((struct aoi_why){.rule = (enum aoi_rule)99}, "not seen");
}

static void the_longest_sentence_is_not_cut(void **state)
{
    (void)state;
    struct random r = random_start(__func__);
    for (int round = 0; round < 2000; round++) {
        struct codec_server_frame sent, got;
        do frames_random_server(&r, &made, CODEC_RESULT, &sent);
        while (sent.u.result.kind != CODEC_RESULT_WHY);
        sent.u.result.why_text = NULL;
        sent.u.result.why_deaf = CODEC_DEAF_GONE;
        sent.u.result.why_lease_ms = UINT32_MAX;
        sent.u.result.why.dims = 3;
        sent.u.result.why.shape = (enum aoi_shape)(1 + round % 3);
        sent.u.result.why.away = 1.234567e-30;
        for (int i = 0; i < 6; i++) sent.u.result.why.box[i / 3][i % 3] = -1.234567e-30f;
        size_t len = codec_encode_server(&sent, &out);
        assert_int_equal(codec_decode_server(frames_body(&out, len), len, &decoded, &got), 0);
        assert_in_range(strlen(got.u.result.why_text), 4, 470);
        again();
    }
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

#define TEST(f) cmocka_unit_test_prestate_setup_teardown(f, scratch_start, scratch_end, &cap)

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
        TEST(set_space_says_what_changes_and_nothing_else),
        TEST(release_override_and_publish_have_these_bytes),
        TEST(observed_and_lost_have_these_bytes),
        TEST(replies_have_these_bytes),
        TEST(an_empty_or_unknown_frame_is_of_no_kind),
        TEST(an_empty_or_unknown_command_and_query_are_of_no_kind),
        TEST(unknown_fields_are_ignored),
        TEST(the_last_member_of_a_oneof_counts),
        TEST(fields_that_are_not_set_mean_their_defaults),
        TEST(what_set_space_names_is_set_also_to_0),
        TEST(tiers_that_make_no_sense_are_told_and_are_none),
        TEST(unknown_enum_numbers_are_kept),
        TEST(the_rule_that_decides_is_told_in_a_sentence),
        TEST(that_a_player_cannot_be_told_anything_stands_behind_the_rule),
        TEST(the_longest_sentence_is_not_cut),
        TEST(columns_of_any_encoding_are_joined),
        TEST(column_lengths_come_through_as_received),
        TEST(a_name_with_a_nul_ends_there),
        TEST(codes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
