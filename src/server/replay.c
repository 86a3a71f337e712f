/* replay.c: `aoid --replay FILE`: a recording goes through the core again: the daemon without sockets, timers and clocks. */
#include "server/replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/digest.h"
#include "server/dispatch.h"
#include "wire/frame.h"
#include "wire/recording.h"

struct replay {
    uint32_t index;
    bool made; /* the limits were read, and what is below them made */
    const char *fault;
    struct recording recording;
    struct recording_entry entry;
    struct buf frame; /* of the entry that is under way, while its flushes are read */
    struct arena arena;

    struct config config;
    uv_loop_t loop; /* never runs */
    struct metrics metrics;
    struct tokens tokens;
    struct outbox_limits out_limits;
    struct sessions sessions;
    struct deliver deliver;
    struct aoi_world *world;
    struct flusher flusher;
    struct dispatch dispatch;

    struct digest digest;
    uint64_t frames, flushes, sessions_n;
};

/* ------------------------------------------------------------------------------------------------------------- hooks of the daemon */

static void take_delta(void *ctx, const struct aoi_delta *delta)
{
    struct replay *r = ctx;
    digest_add(&r->digest, delta);
}

static bool take_observed(void *ctx, aoi_owner owner, uint64_t space, const uint64_t *id, const bool *observed, size_t n)
{
    (void)ctx, (void)owner, (void)space, (void)id, (void)observed, (void)n;
    return true;
}

static bool may_take(void *ctx, aoi_owner taker, aoi_owner owner)
{
    const struct replay *r = ctx;
    return sessions_may_take(&r->sessions, taker, owner);
}

/* A flush is about to be: at the instant of then. One that a Flush command makes stands behind the command's frame. */
static void instant(void *ctx, const struct aoi_space *space, struct aoi_flush_info *info)
{
    struct replay *r = ctx;
    char err[RECORDING_ERROR_MAX];
    bool commanded = r->entry.kind == RECORDING_FRAME;
    r->flushes++;
    if (commanded && (r->fault != NULL || recording_next(&r->recording, &r->entry, err) != 1)) memset(&r->entry, 0, sizeof r->entry);
    if (r->entry.kind != RECORDING_FLUSH || r->entry.who != aoi_space_id(space) || (commanded && recording_number(&r->entry, 0) != info->tag)) {
        r->fault = "a flush is missing; was it recorded by another version?";
        return;
    }
    info->time_us = recording_number(&r->entry, 1);
    info->now_ms = recording_number(&r->entry, 2);
    info->final = recording_number(&r->entry, 3) != 0;
    if (commanded) r->entry.kind = RECORDING_FRAME; /* there may be another command behind it */
}

static void after(void *ctx)
{
    (void)ctx;
}

static void on_written(struct outbox *outbox, int status)
{
    (void)outbox, (void)status;
}

/* ------------------------------------------------------------------------------------------------------------- the beginning */

static void take_limits(struct replay *r)
{
    const struct recording_entry *e = &r->entry;
    struct config *c = &r->config;
    uint32_t radius_bits = (uint32_t)recording_number(e, LIMIT_RADIUS_BITS);
    config_init(c);
    c->max_frame_bytes = recording_number(e, LIMIT_FRAME_BYTES);
    c->max_spaces = (uint32_t)recording_number(e, LIMIT_SPACES);
    c->max_entities = (uint32_t)recording_number(e, LIMIT_ENTITIES);
    c->max_players = (uint32_t)recording_number(e, LIMIT_PLAYERS);
    c->max_units = (uint32_t)recording_number(e, LIMIT_UNITS);
    c->max_payload = (uint32_t)recording_number(e, LIMIT_PAYLOAD);
    memcpy(&c->max_radius, &radius_bits, sizeof c->max_radius);
    c->max_overrides = (uint32_t)recording_number(e, LIMIT_OVERRIDES);
    c->max_message = (uint32_t)recording_number(e, LIMIT_MESSAGE);
    c->max_messages_per_flush = (uint32_t)recording_number(e, LIMIT_MESSAGES);
    c->query_page = (uint32_t)recording_number(e, LIMIT_QUERY_PAGE);
    if (c->max_frame_bytes < 4096 || c->max_frame_bytes > FRAME_BODY_MAX || c->query_page == 0) r->fault = "limits that no daemon has";
}

static void make(struct replay *r)
{
    take_limits(r);
    r->made = true;
    const struct aoi_limits limits = config_limits(&r->config);
    const struct aoi_sink sink = {.ctx = r, .deliver = take_delta, .observed = take_observed, .may_take = may_take};
    CHECK(uv_loop_init(&r->loop) == 0);
    r->out_limits = (struct outbox_limits){.soft_bytes = UINT64_MAX / 4, .hard_bytes = UINT64_MAX / 2};
    r->world = aoi_world_new(&limits, &sink);
    r->sessions.metrics = &r->metrics;
    r->sessions.world = r->world;
    deliver_init(&r->deliver, &r->sessions, (size_t)r->config.max_frame_bytes);
    flusher_init(&r->flusher, &r->loop, r->world, after, NULL);
    r->flusher.untimed = true;
    r->flusher.instant = instant;
    r->flusher.instant_ctx = r;
    r->dispatch = (struct dispatch){.config = &r->config,
                                    .world = r->world,
                                    .sessions = &r->sessions,
                                    .deliver = &r->deliver,
                                    .flusher = &r->flusher,
                                    .metrics = &r->metrics,
                                    .tokens = &r->tokens};
    dispatch_init(&r->dispatch);
    arena_init(&r->arena, (size_t)r->config.max_frame_bytes * 128 + 65536);
}

static void session_free(struct session *session)
{
    if (session == NULL) return;
    outbox_clear(&session->out);
    free(session);
}

static void unmake(struct replay *r)
{
    aoi_world_free(r->world);
    flusher_close(&r->flusher);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&r->loop) == 0);
    dispatch_clear(&r->dispatch);
    deliver_clear(&r->deliver);
    for (uint32_t i = 0; i < r->sessions.by_owner.n; i++)
        if (r->sessions.by_owner.at[i] != NULL) session_free(r->sessions.by_owner.at[i]->session);
    sessions_clear(&r->sessions);
    config_clear(&r->config);
    arena_clear(&r->arena);
}

/* ------------------------------------------------------------------------------------------------------------- entries */

static struct session *session_new(struct replay *r)
{
    struct session *session = mem_zalloc(sizeof *session);
    outbox_init(&session->out, &r->out_limits, NULL, &r->metrics.bytes_out, on_written);
    r->metrics.connections++;
    session->token.role = (enum role)(recording_number(&r->entry, 1) % ROLES);
    size_t numbers = 2 * sizeof(uint64_t), len = r->entry.len > numbers ? r->entry.len - numbers : 0;
    if (len > TOKEN_NAME_MAX) len = TOKEN_NAME_MAX;
    if (len > 0) memcpy(session->token.name, r->entry.body + numbers, len);
    return session;
}

static void begin(struct replay *r)
{
    uint64_t id = recording_number(&r->entry, 0);
    if (id == 0 || sessions_of_id(&r->sessions, id) != NULL) {
        r->fault = "a session that cannot be";
        return;
    }
    struct session *session = session_new(r);
    r->sessions.last_id = id - 1; /* ids are said in commands: Release */
    sessions_begin(&r->sessions, session, 0);
    r->sessions_n++;
    if (session->owner != r->entry.who) r->fault = "the sessions are not those of then";
}

static void leave(struct replay *r, struct standing *standing)
{
    if (standing->session == NULL) {
        r->fault = "a session leaves that has left";
        return;
    }
    struct session *session = standing->session;
    sessions_leave(&r->sessions, standing, 0);
    session_free(session);
}

static void resume(struct replay *r, struct standing *standing)
{
    if (standing->session != NULL) {
        r->fault = "a session is resumed that has not left";
        return;
    }
    sessions_resume(&r->sessions, standing, session_new(r));
}

static void end(struct replay *r, struct standing *standing)
{
    struct session *session = standing->session;
    sessions_end(&r->sessions, standing);
    deliver_waiting(&r->deliver);
    session_free(session);
}

/* With the other index, where there is another one: its bytes are in r->frame. */
static void set_index(struct replay *r, struct codec_client_frame *frame)
{
    bool creates = false;
    for (size_t i = 0; frame->kind == CODEC_BATCH && i < frame->u.batch.command_n; i++) {
        if (frame->u.batch.commands[i].kind != CODEC_CREATE_SPACE) continue;
        ((struct codec_create_space *)(uintptr_t)frame->u.batch.commands[i].u.create_space)->settings.index = r->index;
        creates = true;
    }
    if (!creates) return;
    r->frame.start = r->frame.end = 0;
    size_t len = codec_encode_client(frame, &r->frame);
    r->frame.start = r->frame.end - len;
}

/* The entry's frame, decoded, and copied to r->frame. */
static bool decode(struct replay *r, struct codec_client_frame *frame)
{
    r->frame.start = r->frame.end = 0;
    buf_append(&r->frame, r->entry.body, r->entry.len);
    arena_reset(&r->arena);
    if (codec_decode_client(buf_data(&r->frame), buf_len(&r->frame), &r->arena, frame) == CODEC_OK) return true;
    r->fault = "a frame that no daemon could have taken";
    return false;
}

static void frame(struct replay *r, struct standing *standing)
{
    struct codec_client_frame frame;
    struct session *session = standing->session;
    if (session == NULL || session->state != SESSION_READY || !decode(r, &frame)) {
        if (r->fault == NULL) r->fault = "a frame of a session that has no connection";
        return;
    }
    if (r->index != 0) set_index(r, &frame);
    r->frames++;
    if (dispatch_frame(&r->dispatch, session, buf_data(&r->frame), buf_len(&r->frame)) != 0) r->fault = "a frame waits";
}

/* A batch of the configuration, with one command. */
static void configure(struct replay *r)
{
    struct codec_client_frame frame;
    if (!decode(r, &frame)) return;
    const struct codec_command *command = frame.kind == CODEC_BATCH && frame.u.batch.command_n == 1 ? &frame.u.batch.commands[0] : NULL;
    struct aoi_space *space = aoi_space_find(r->world, r->entry.who);
    const char *why;
    int status = AOI_EINVAL;
    if (command != NULL && command->kind == CODEC_CREATE_SPACE) {
        struct aoi_settings settings = command->u.create_space->settings;
        if (r->index != 0) settings.index = r->index;
        if (aoi_settings_check(&settings, &why) == AOI_OK) status = aoi_space_create(r->world, 0, r->entry.who, &settings, false);
    } else if (command != NULL && command->kind == CODEC_SET_SPACE && space != NULL) {
        status = aoi_space_set(space, 0, true, &command->u.set_space->change);
    }
    if (status != AOI_OK) r->fault = "a space that cannot be";
}

static void flush(struct replay *r)
{
    struct aoi_space *space = aoi_space_find(r->world, r->entry.who);
    bool pending;
    if (space == NULL)
        r->fault = "a flush of a space that is not there";
    else
        flusher_flush(&r->flusher, space, recording_number(&r->entry, 0), 0, &pending);
}

static void apply(struct replay *r)
{
    enum recording_kind kind = r->entry.kind;
    bool of_session = kind == RECORDING_LEAVE || kind == RECORDING_RESUME || kind == RECORDING_END || kind == RECORDING_FRAME;
    struct standing *standing = of_session ? sessions_of_owner(&r->sessions, (aoi_owner)r->entry.who) : NULL;
    if (of_session && standing == NULL) {
        r->fault = "a session that is not there";
        return;
    }
    switch (kind) {
    case RECORDING_LIMITS: r->fault = "limits a second time"; break;
    case RECORDING_SPACE:
    case RECORDING_CHANGE: configure(r); break;
    case RECORDING_BEGIN: begin(r); break;
    case RECORDING_LEAVE: leave(r, standing); break;
    case RECORDING_RESUME: resume(r, standing); break;
    case RECORDING_END: end(r, standing); break;
    case RECORDING_FRAME: frame(r, standing); break;
    case RECORDING_FLUSH: flush(r); break;
    case RECORDING_KINDS: break;
    }
}

/* Nobody reads what was answered. */
static void forget_answers(struct replay *r)
{
    for (uint32_t i = 0; i < r->sessions.by_owner.n; i++) {
        struct session *session = r->sessions.by_owner.at[i] == NULL ? NULL : r->sessions.by_owner.at[i]->session;
        if (session == NULL || !session->touched) continue;
        session->touched = false;
        buf_consume(&session->out.queue, buf_len(&session->out.queue));
    }
    r->sessions.touched.n = 0;
}

static void print(const struct replay *r, FILE *out)
{
    const struct digest *d = &r->digest;
    fprintf(out, "frames %" PRIu64 " sessions %" PRIu64 " flushes %" PRIu64 "\n", r->frames, r->sessions_n, r->flushes);
    fprintf(out, "deltas %" PRIu64 " enters %" PRIu64 " leaves %" PRIu64 " updates %" PRIu64 " changes %" PRIu64 " messages %" PRIu64 "\n", d->deltas,
            d->enters, d->leaves, d->updates, d->changes, d->messages);
    fprintf(out, "digest %016" PRIx64 "%016" PRIx64 "\n", d->sum[0], d->sum[1]);
}

int replay(const char *path, uint32_t index, FILE *out)
{
    struct replay *r = mem_zalloc(sizeof *r);
    r->index = index;
    char err[RECORDING_ERROR_MAX] = "";
    int more = recording_open(&r->recording, path, err);
    if (more == 0) more = recording_next(&r->recording, &r->entry, err);
    if (more > 0 && r->entry.kind == RECORDING_LIMITS)
        make(r);
    else if (more >= 0)
        r->fault = "it does not begin with limits";
    while (r->fault == NULL && more > 0 && (more = recording_next(&r->recording, &r->entry, err)) > 0) {
        apply(r);
        forget_answers(r);
    }
    if (r->made) {
        print(r, out);
        unmake(r);
    }
    bool good = more == 0 && r->fault == NULL;
    if (more < 0) fprintf(stderr, "aoid: %s\n", err);
    if (r->fault != NULL)
        fprintf(stderr, "aoid: %s: entry %" PRIu64 ", before byte %" PRIu64 ": %s\n", path, r->recording.entries, r->recording.offset, r->fault);
    recording_close(&r->recording);
    buf_clear(&r->frame);
    digest_clear(&r->digest);
    free(r);
    return good ? 0 : 1;
}
