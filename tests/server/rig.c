/* rig.c: the daemon without sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "rig.h"
#include "wire/frame.h"

static void after(void *ctx)
{
    struct rig *rig = ctx;
    rig->timed_flushes++;
}

static void on_written(struct outbox *outbox, int status)
{
    (void)outbox;
    (void)status;
}

int rig_setup(void **state)
{
    struct rig *rig = mem_zalloc(sizeof *rig);
    char err[CONFIG_ERROR_MAX];
    config_init(&rig->config);
    assert_int_equal(config_set(&rig->config, "space.77.flush_ms=10", err), 0);
    static const char *const limits_set[] = {"max_spaces=10",   "max_entities=1000", "max_players=1000",
                                             "max_units=10",    "max_payload=100",   "max_radius=512",
                                             "max_overrides=5", "max_message=50",    "max_messages_per_flush=20"};
    for (size_t i = 0; i < sizeof limits_set / sizeof *limits_set; i++) assert_int_equal(config_set(&rig->config, limits_set[i], err), 0);
    assert_int_equal(config_check(&rig->config, err), 0);
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    rig->out_limits = (struct outbox_limits){.soft_bytes = 100000, .hard_bytes = 200000, .slack_bytes = 5000};
    rig->sessions.metrics = &rig->metrics;
    rig->metrics.connections = 3;
    deliver_init(&rig->deliver, &rig->sessions, (size_t)rig->config.max_frame_bytes);
    const struct aoi_limits limits = config_limits(&rig->config);
    const struct aoi_sink sink = deliver_sink(&rig->deliver);
    rig->world = aoi_world_new(&limits, &sink);
    rig->sessions.world = rig->world;
    flusher_init(&rig->flusher, &rig->loop, rig->world, after, rig);
    rig->dispatch = (struct dispatch){.config = &rig->config,
                                      .world = rig->world,
                                      .sessions = &rig->sessions,
                                      .deliver = &rig->deliver,
                                      .flusher = &rig->flusher,
                                      .metrics = &rig->metrics,
                                      .tokens = &rig->tokens};
    dispatch_init(&rig->dispatch);
    assert_int_equal(aoi_space_create(rig->world, 0, 77, &rig->config.spaces.at[0].settings, false), AOI_OK);
    for (size_t i = 0; i < 3; i++) outbox_init(&rig->session[i].out, &rig->out_limits, NULL, &rig->metrics.bytes_out, on_written);
    arena_init(&rig->arena, (size_t)64 << 20);
    *state = rig;
    return 0;
}

int rig_teardown(void **state)
{
    struct rig *rig = *state;
    aoi_validate(rig->world);
    aoi_world_free(rig->world);
    flusher_close(&rig->flusher);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    dispatch_clear(&rig->dispatch);
    deliver_clear(&rig->deliver);
    sessions_clear(&rig->sessions);
    tokens_clear(&rig->tokens);
    config_clear(&rig->config);
    arena_clear(&rig->arena);
    for (size_t i = 0; i < 3; i++) outbox_clear(&rig->session[i].out);
    for (size_t i = 0; i < 3; i++) buf_clear(&rig->apart[i]);
    free(rig);
    return 0;
}

void rig_close(struct rig *rig, struct session *session)
{
    assert_int_equal(session->state, SESSION_CLOSING);
    flusher_finish(&rig->flusher);
    if (session->standing != NULL) sessions_end(&rig->sessions, session->standing);
    deliver_waiting(&rig->deliver);
}

uint64_t rig_try_frame(struct rig *rig, struct session *session, const struct codec_client_frame *frame)
{
    struct buf bytes = {0};
    size_t len = codec_encode_client(frame, &bytes);
    uint64_t wait = dispatch_frame(&rig->dispatch, session, bytes.at + bytes.end - len, len);
    buf_clear(&bytes);
    return wait;
}

void rig_frame(struct rig *rig, struct session *session, const struct codec_client_frame *frame)
{
    assert_int_equal(rig_try_frame(rig, session, frame), 0);
}

void rig_hello(struct rig *rig, struct session *session)
{
    rig_frame(rig, session, &(struct codec_client_frame){.kind = CODEC_HELLO, .u.hello = {.protocol_version = 1, .client_name = "rig"}});
    assert_int_equal(rig_take(rig, session)->kind, CODEC_WELCOME);
    assert_int_equal(session->state, SESSION_READY);
}

void rig_batch(struct rig *rig, struct session *session, uint64_t seq, size_t n, const struct codec_command *commands)
{
    const struct codec_client_frame frame = {
        .seq = seq, .kind = CODEC_BATCH, .u.batch = {.space = 1, .command_n = n, .commands = (struct codec_command *)(uintptr_t)commands}};
    rig_frame(rig, session, &frame);
}

/* The session's bytes to be taken: those set apart by an earlier call, or its queue. */
static struct buf *to_take(struct rig *rig, struct session *session)
{
    struct buf *apart = &rig->apart[session - rig->session];
    return buf_len(apart) > 0 ? apart : outbox_queue(&session->out);
}

/* A frame with several players' deltas is set apart as one frame for each. */
static void take_apart(struct rig *rig, struct session *session, const struct codec_server_frame *frame)
{
    for (size_t i = 0; i < frame->u.deltas.player_n; i++) {
        struct codec_server_frame one = *frame;
        one.u.deltas.player_n = 1;
        one.u.deltas.players += i;
        codec_encode_server(&one, &rig->apart[session - rig->session]);
    }
}

const struct codec_server_frame *rig_take(struct rig *rig, struct session *session)
{
    static struct codec_server_frame taken;
    struct frame frame;
    struct buf *from = to_take(rig, session);
    assert_int_equal(frame_next(buf_data(from), buf_len(from), FRAME_BODY_MAX, &frame), FRAME_READY);
    arena_reset(&rig->arena);
    assert_int_equal(codec_decode_server(buf_data(from) + frame.header_len, frame.body_len, &rig->arena, &taken), 0);
    buf_consume(from, frame.header_len + frame.body_len);
    if (taken.kind != CODEC_DELTAS || taken.u.deltas.player_n <= 1) return &taken;
    take_apart(rig, session, &taken);
    return rig_take(rig, session);
}

struct aoi_delta rig_take_delta(struct rig *rig, struct session *session, uint64_t player)
{
    const struct codec_server_frame *frame = rig_take(rig, session);
    assert_int_equal(frame->kind, CODEC_DELTAS);
    assert_int_equal(frame->u.deltas.player_n, 1);
    assert_int_equal(frame->u.deltas.players[0].delta.player, player);
    return frame->u.deltas.players[0].delta;
}

const struct codec_server_frame *rig_ask(struct rig *rig, struct session *session, struct codec_query query)
{
    rig_frame(rig, session, &(struct codec_client_frame){.seq = session->last_seq + 1, .kind = CODEC_QUERY, .u.query = query});
    return rig_take(rig, session);
}

bool rig_silent(struct rig *rig, struct session *session)
{
    return buf_len(to_take(rig, session)) == 0;
}

void rig_expect_error(struct rig *rig, struct session *session, uint64_t reply_to, enum codec_code code)
{
    const struct codec_server_frame *frame = rig_take(rig, session);
    assert_int_equal(frame->kind, CODEC_ERROR);
    assert_int_equal(frame->reply_to, reply_to);
    assert_string_equal(codec_code_name((int)frame->u.error.code), codec_code_name(code));
    assert_true(frame->u.error.text[0] != '\0');
}

void rig_expect_ack(struct rig *rig, struct session *session, uint64_t reply_to, uint64_t applied)
{
    const struct codec_server_frame *frame = rig_take(rig, session);
    assert_int_equal(frame->kind, CODEC_ACK);
    assert_int_equal(frame->reply_to, reply_to);
    assert_int_equal(frame->u.ack.errors_total, 0);
    assert_int_equal(frame->u.ack.applied, applied);
}

void rig_expect_refusal(struct rig *rig, struct session *session, enum codec_code code, uint64_t id)
{
    const struct codec_server_frame *frame = rig_take(rig, session);
    assert_int_equal(frame->kind, CODEC_ACK);
    assert_true(frame->u.ack.error_n > 0);
    assert_string_equal(codec_code_name((int)frame->u.ack.errors[0].code), codec_code_name(code));
    assert_int_equal(frame->u.ack.errors[0].id, id);
    assert_true(frame->u.ack.errors[0].text[0] != '\0');
}
