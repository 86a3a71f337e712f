/* frames.c: random frames of every kind, and comparing them. */
#include "frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/check.h"
#include "wire/frame.h"

/* ------------------------------------------------------------------------------------------------------------- random values */

static void *in_arena(struct arena *arena, size_t bytes)
{
    void *p = arena_alloc(arena, bytes);
    CHECK(p != NULL);
    return memset(p, 0, bytes);
}

/* Every length of varint, and often 0. */
static uint64_t any_u64(struct random *r)
{
    uint64_t shift = random_below(r, 72);
    return shift >= 64 ? 0 : random_u64(r) >> shift;
}

static uint32_t any_u32(struct random *r)
{
    return (uint32_t)any_u64(r);
}

static bool any_bool(struct random *r)
{
    return random_below(r, 2) == 0;
}

/* Any bits but those of -0.0, which a scalar field does not keep. */
static float any_float(struct random *r)
{
    uint32_t bits = any_u32(r);
    if (bits == 0x80000000u) bits = 0;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static const char *any_text(struct random *r, struct arena *arena)
{
    size_t len = random_below(r, 40);
    char *text = in_arena(arena, len + 1);
    for (size_t i = 0; i < len; i++) text[i] = (char)(' ' + random_below(r, 90));
    return text;
}

/* NULL for 0. */
static void *any_bytes(struct random *r, struct arena *arena, size_t bytes)
{
    if (bytes == 0) return NULL;
    uint8_t *p = in_arena(arena, bytes);
    for (size_t i = 0; i < bytes; i++) p[i] = (uint8_t)random_u64(r);
    return p;
}

static void *column(struct random *r, struct arena *arena, size_t n, size_t element_bytes, bool there)
{
    return there ? any_bytes(r, arena, n * element_bytes) : NULL;
}

static void any_floats(struct random *r, float out[3])
{
    for (int i = 0; i < 3; i++) out[i] = any_float(r);
}

static struct aoi_settings any_settings(struct random *r)
{
    struct aoi_settings s = {.dimensions = any_u32(r),
                             .index = any_u32(r) >> 1,
                             .shape = any_u32(r) >> 1,
                             .cell_size = any_float(r),
                             .cell_range = any_u32(r),
                             .bounded = any_bool(r),
                             .extra = any_bool(r),
                             .flush_ms = any_u32(r),
                             .persistent = any_bool(r)};
    if (s.bounded) any_floats(r, s.min);
    if (s.bounded) any_floats(r, s.max);
    return s;
}

static struct aoi_entity any_entity(struct random *r, struct arena *arena)
{
    struct aoi_entity e = {.id = any_u64(r), .extra = any_u32(r), .radius = any_float(r), .layers = any_u32(r)};
    any_floats(r, e.pos);
    e.payload_len = (uint32_t)random_below(r, 100);
    e.payload = any_bytes(r, arena, e.payload_len);
    return e;
}

/* ------------------------------------------------------------------------------------------------------------- client frames */

static void any_move(struct random *r, struct arena *arena, struct codec_command *c)
{
    size_t n = random_below(r, 20);
    c->u.move_entities.id_n = n;
    c->u.move_entities.x_n = any_bool(r) ? n : random_below(r, 20);
    c->u.move_entities.y_n = any_bool(r) ? n : random_below(r, 20);
    c->u.move_entities.z_n = any_bool(r) ? n : random_below(r, 20);
    c->u.move_entities.extra_n = any_bool(r) ? n : random_below(r, 20);
    c->u.move_entities.id = any_bytes(r, arena, n * 8);
    c->u.move_entities.x = any_bytes(r, arena, c->u.move_entities.x_n * 4);
    c->u.move_entities.y = any_bytes(r, arena, c->u.move_entities.y_n * 4);
    c->u.move_entities.z = any_bytes(r, arena, c->u.move_entities.z_n * 4);
    c->u.move_entities.extra = any_bytes(r, arena, c->u.move_entities.extra_n * 4);
}

static void any_command(struct random *r, struct arena *arena, struct codec_command *c)
{
    *c = (struct codec_command){.kind = (enum codec_command_kind)random_below(r, CODEC_COMMANDS)};
    switch (c->kind) {
    case CODEC_CREATE_SPACE:
        c->u.create_space.settings = any_settings(r);
        c->u.create_space.if_absent = any_bool(r);
        break;
    case CODEC_ADD_ENTITY:
        c->u.add_entity.entity = any_entity(r, arena);
        c->u.add_entity.mode = 1 + (any_u32(r) >> 2);
        break;
    case CODEC_MOVE_ENTITIES: any_move(r, arena, c); break;
    case CODEC_REMOVE_ENTITIES:
        c->u.remove_entities.id_n = random_below(r, 20);
        c->u.remove_entities.id = any_bytes(r, arena, c->u.remove_entities.id_n * 8);
        break;
    case CODEC_SET_RADIUS:
        c->u.set_radius.id = any_u64(r);
        c->u.set_radius.radius = any_float(r);
        break;
    case CODEC_SET_LAYERS:
        c->u.set_layers.id = any_u64(r);
        c->u.set_layers.layers = any_u32(r);
        break;
    case CODEC_SET_PAYLOAD:
        c->u.set_payload.id = any_u64(r);
        c->u.set_payload.payload_len = random_below(r, 100);
        c->u.set_payload.payload = any_bytes(r, arena, c->u.set_payload.payload_len);
        break;
    case CODEC_OPEN_PLAYER:
        c->u.open_player.player = any_u64(r);
        c->u.open_player.mask = any_u32(r);
        break;
    case CODEC_CLOSE_PLAYER:
    case CODEC_CLEAR_VIEWPORT: c->u.close_player.player = any_u64(r); break;
    case CODEC_SUBSCRIBE:
    case CODEC_UNSUBSCRIBE:
        c->u.subscribe.player = any_u64(r);
        c->u.subscribe.entity = any_u64(r);
        c->u.subscribe.include_self = c->kind == CODEC_SUBSCRIBE && any_bool(r);
        break;
    case CODEC_SET_VIEWPORT:
        c->u.set_viewport.player = any_u64(r);
        any_floats(r, c->u.set_viewport.min);
        any_floats(r, c->u.set_viewport.max);
        break;
    case CODEC_FLUSH: c->u.flush.tag = any_u64(r); break;
    case CODEC_DESTROY_SPACE:
    case CODEC_COMMAND_NONE:
    case CODEC_COMMANDS: break;
    }
}

static void any_query(struct random *r, struct codec_query *q)
{
    *q = (struct codec_query){.kind = (enum codec_query_kind)random_below(r, CODEC_QUERIES), .space = any_u64(r)};
    bool aabb = q->kind == CODEC_QUERY_AABB, radius = q->kind == CODEC_QUERY_RADIUS, count = q->kind == CODEC_QUERY_COUNT;
    bool view = q->kind == CODEC_QUERY_VIEW, list = q->kind == CODEC_QUERY_LIST_SPACES;
    if (aabb || count) q->has_box = any_bool(r);
    if (q->has_box) any_floats(r, q->min);
    if (q->has_box) any_floats(r, q->max);
    if (radius) any_floats(r, q->center);
    if (radius) q->radius = any_float(r);
    if (aabb || radius || count) q->layers = any_u32(r);
    if (q->kind == CODEC_QUERY_GET_ENTITY || view) q->id = any_u64(r);
    if (aabb || radius || view || list) q->cursor = any_u64(r);
    if (aabb || radius || view || list) q->limit = any_u32(r);
}

void frames_random_client(struct random *r, struct arena *arena, enum codec_client_kind kind, struct codec_client_frame *out)
{
    *out = (struct codec_client_frame){.seq = any_u64(r), .kind = kind};
    switch (kind) {
    case CODEC_HELLO:
        out->u.hello.protocol_version = any_u32(r);
        out->u.hello.client_name = any_text(r, arena);
        break;
    case CODEC_BATCH:
        out->u.batch.space = any_u64(r);
        out->u.batch.command_n = random_below(r, 30);
        out->u.batch.commands = in_arena(arena, out->u.batch.command_n * sizeof(struct codec_command));
        for (size_t i = 0; i < out->u.batch.command_n; i++) any_command(r, arena, &out->u.batch.commands[i]);
        break;
    case CODEC_QUERY: any_query(r, &out->u.query); break;
    case CODEC_RESYNC:
        out->u.resync.space = any_u64(r);
        out->u.resync.player = any_u64(r);
        break;
    case CODEC_PING: out->u.ping.nonce = any_u64(r); break;
    case CODEC_BYE:
    case CODEC_CLIENT_NONE:
    case CODEC_CLIENT_KINDS: break;
    }
}

/* ------------------------------------------------------------------------------------------------------------- server frames */

static void any_payloads(struct random *r, struct arena *arena, size_t n, size_t payload, const void *const **at, const uint32_t **len)
{
    const void **bytes = in_arena(arena, n * sizeof *bytes);
    uint32_t *bytes_len = in_arena(arena, n * sizeof *bytes_len);
    for (size_t i = 0; i < n; i++) {
        bytes_len[i] = (uint32_t)(any_bool(r) ? 0 : random_below(r, payload + 1));
        bytes[i] = any_bytes(r, arena, bytes_len[i]);
    }
    *at = bytes;
    *len = bytes_len;
}

void frames_random_delta(struct random *r, struct arena *arena, size_t items, size_t payload, struct aoi_delta *out)
{
    bool three = any_bool(r), extra = any_bool(r);
    *out = (struct aoi_delta){.space = any_u64(r),
                              .flush = any_u64(r),
                              .tag = any_u64(r),
                              .time_us = any_u64(r),
                              .player = any_u64(r),
                              .seq = any_u64(r),
                              .full = any_bool(r),
                              .closed = random_below(r, 8) == 0};
    if (out->closed) return;
    size_t n = any_bool(r) ? random_below(r, items + 1) : 0;
    out->leave_n = n;
    out->leave_id = any_bytes(r, arena, n * 8);
    n = any_bool(r) ? random_below(r, items + 1) : 0;
    out->enters = (struct aoi_enters){.n = n,
                                      .id = column(r, arena, n, 8, true),
                                      .x = column(r, arena, n, 4, true),
                                      .y = column(r, arena, n, 4, true),
                                      .z = column(r, arena, n, 4, three),
                                      .extra = column(r, arena, n, 4, extra),
                                      .layers = column(r, arena, n, 4, true)};
    if (n > 0 && any_bool(r)) any_payloads(r, arena, n, any_bool(r) ? payload : 0, &out->enters.payload, &out->enters.payload_len);
    n = any_bool(r) ? random_below(r, items + 1) : 0;
    out->updates = (struct aoi_updates){.n = n,
                                        .id = column(r, arena, n, 8, true),
                                        .x = column(r, arena, n, 4, true),
                                        .y = column(r, arena, n, 4, true),
                                        .z = column(r, arena, n, 4, three),
                                        .extra = column(r, arena, n, 4, extra)};
    n = any_bool(r) ? random_below(r, items + 1) : 0;
    out->payload_n = n;
    out->payload_id = any_bytes(r, arena, n * 8);
    if (n > 0) any_payloads(r, arena, n, payload, &out->payload, &out->payload_len);
    n = any_bool(r) ? random_below(r, items + 1) : 0;
    out->layers_n = n;
    out->layers_id = any_bytes(r, arena, n * 8);
    out->layers = any_bytes(r, arena, n * 4);
}

static void any_result(struct random *r, struct arena *arena, struct codec_result *out)
{
    size_t n = random_below(r, 30);
    bool three = any_bool(r), extra = any_bool(r);
    *out = (struct codec_result){.kind = (enum codec_result_kind)random_below(r, CODEC_RESULT_SPACES + 1)};
    switch (out->kind) {
    case CODEC_RESULT_ENTITIES:
        out->rows = (struct aoi_rows){.n = n,
                                      .id = any_bytes(r, arena, n * 8),
                                      .x = any_bytes(r, arena, n * 4),
                                      .y = any_bytes(r, arena, n * 4),
                                      .z = column(r, arena, n, 4, three),
                                      .extra = column(r, arena, n, 4, extra),
                                      .layers = any_bytes(r, arena, n * 4),
                                      .next = any_u64(r)};
        break;
    case CODEC_RESULT_COUNT:
        out->entities = any_u64(r);
        out->players = any_u64(r);
        break;
    case CODEC_RESULT_ENTITY:
        out->entity = any_entity(r, arena);
        out->entity.subscribers = any_u32(r);
        out->owner_session = any_u64(r);
        break;
    case CODEC_RESULT_VIEW:
        out->rows = (struct aoi_rows){.n = n, .id = any_bytes(r, arena, n * 8), .next = any_u64(r)};
        out->seq = any_u64(r);
        break;
    case CODEC_RESULT_STATS:
        for (size_t i = 0; i < sizeof out->stats / sizeof(uint64_t); i++) ((uint64_t *)&out->stats)[i] = any_u64(r);
        break;
    case CODEC_RESULT_SPACES:
        out->space_n = n;
        out->next_cursor = any_u64(r);
        out->spaces = in_arena(arena, n * sizeof *out->spaces);
        for (size_t i = 0; i < n; i++)
            out->spaces[i] = (struct codec_space_info){
                .id = any_u64(r), .entities = any_u64(r), .players = any_u64(r), .owner_session = any_u64(r), .settings = any_settings(r)};
        break;
    case CODEC_RESULT_NONE: break;
    }
}

static void any_ack(struct random *r, struct arena *arena, struct codec_server_frame *out)
{
    size_t n = random_below(r, 30);
    struct codec_error_item *errors = in_arena(arena, n * sizeof *errors);
    for (size_t i = 0; i < n; i++)
        errors[i] = (struct codec_error_item){.index = any_u32(r), .code = any_u32(r) >> 1, .id = any_u64(r), .text = any_text(r, arena)};
    out->u.ack.applied = any_u64(r);
    out->u.ack.errors_total = any_u64(r);
    out->u.ack.error_n = n;
    out->u.ack.errors = errors;
    out->u.ack.pending = any_bool(r);
}

static void any_deltas(struct random *r, struct arena *arena, struct codec_server_frame *out)
{
    size_t n = random_below(r, 6);
    struct codec_player_delta *players = in_arena(arena, n * sizeof *players);
    out->u.deltas.space = any_u64(r);
    out->u.deltas.flush = any_u64(r);
    out->u.deltas.tag = any_u64(r);
    out->u.deltas.time_us = any_u64(r);
    for (size_t i = 0; i < n; i++) {
        struct aoi_delta *d = &players[i].delta;
        frames_random_delta(r, arena, 20, 50, d);
        d->space = out->u.deltas.space;
        d->flush = out->u.deltas.flush;
        d->tag = out->u.deltas.tag;
        d->time_us = out->u.deltas.time_us;
        players[i].part = any_u32(r);
        players[i].more = any_bool(r);
    }
    out->u.deltas.player_n = n;
    out->u.deltas.players = players;
}

void frames_random_server(struct random *r, struct arena *arena, enum codec_server_kind kind, struct codec_server_frame *out)
{
    *out = (struct codec_server_frame){.reply_to = any_u64(r), .kind = kind};
    switch (kind) {
    case CODEC_WELCOME:
        out->u.welcome.protocol_version = any_u32(r);
        out->u.welcome.server_version = any_text(r, arena);
        out->u.welcome.session = any_u64(r);
        out->u.welcome.max_frame_bytes = any_u32(r);
        out->u.welcome.max_payload = any_u32(r);
        out->u.welcome.query_page = any_u32(r);
        out->u.welcome.idle_timeout_ms = any_u32(r);
        break;
    case CODEC_ACK: any_ack(r, arena, out); break;
    case CODEC_DELTAS: any_deltas(r, arena, out); break;
    case CODEC_RESULT: any_result(r, arena, &out->u.result); break;
    case CODEC_PONG:
        out->u.pong.nonce = any_u64(r);
        out->u.pong.time_us = any_u64(r);
        break;
    case CODEC_ERROR:
        out->u.error.code = any_u32(r) >> 1;
        out->u.error.text = any_text(r, arena);
        break;
    case CODEC_DRAINING_NOTICE:
    case CODEC_SERVER_NONE:
    case CODEC_SERVER_KINDS: break;
    }
}

/* ------------------------------------------------------------------------------------------------------------- comparing */

/* Bits, so that NaN equals itself. No bytes: whatever the pointers are. */
static void bits_equal(const void *a, const void *b, size_t bytes)
{
    if (bytes == 0) return;
    assert_non_null(a);
    assert_non_null(b);
    assert_memory_equal(a, b, bytes);
}

#define EQUAL(field) assert_int_equal(a->field, b->field)
#define BITS(field) bits_equal(&a->field, &b->field, sizeof a->field)
#define COLUMN(n, field) bits_equal(a->field, b->field, (n) * sizeof *a->field)

/* A column that may be missing on both sides. */
static void optional_column(const void *a, const void *b, size_t n, size_t element_bytes)
{
    if (n > 0) assert_int_equal(a != NULL, b != NULL);
    if (a != NULL) bits_equal(a, b, n * element_bytes);
}

static void settings_equal(const struct aoi_settings *a, const struct aoi_settings *b)
{
    EQUAL(dimensions);
    EQUAL(index);
    EQUAL(shape);
    BITS(cell_size);
    EQUAL(cell_range);
    EQUAL(bounded);
    BITS(min);
    BITS(max);
    EQUAL(extra);
    EQUAL(flush_ms);
    EQUAL(persistent);
}

static void entities_equal(const struct aoi_entity *a, const struct aoi_entity *b)
{
    EQUAL(id);
    BITS(pos);
    EQUAL(extra);
    BITS(radius);
    EQUAL(layers);
    EQUAL(payload_len);
    bits_equal(a->payload, b->payload, a->payload_len);
    EQUAL(subscribers);
}

static void moves_equal(const struct codec_command *a, const struct codec_command *b)
{
    EQUAL(u.move_entities.id_n);
    EQUAL(u.move_entities.x_n);
    EQUAL(u.move_entities.y_n);
    EQUAL(u.move_entities.z_n);
    EQUAL(u.move_entities.extra_n);
    COLUMN(a->u.move_entities.id_n, u.move_entities.id);
    COLUMN(a->u.move_entities.x_n, u.move_entities.x);
    COLUMN(a->u.move_entities.y_n, u.move_entities.y);
    COLUMN(a->u.move_entities.z_n, u.move_entities.z);
    COLUMN(a->u.move_entities.extra_n, u.move_entities.extra);
}

static void commands_equal(const struct codec_command *a, const struct codec_command *b)
{
    EQUAL(kind);
    switch (a->kind) {
    case CODEC_CREATE_SPACE:
        settings_equal(&a->u.create_space.settings, &b->u.create_space.settings);
        EQUAL(u.create_space.if_absent);
        break;
    case CODEC_ADD_ENTITY:
        entities_equal(&a->u.add_entity.entity, &b->u.add_entity.entity);
        EQUAL(u.add_entity.mode);
        break;
    case CODEC_MOVE_ENTITIES: moves_equal(a, b); break;
    case CODEC_REMOVE_ENTITIES:
        EQUAL(u.remove_entities.id_n);
        COLUMN(a->u.remove_entities.id_n, u.remove_entities.id);
        break;
    case CODEC_SET_RADIUS:
        EQUAL(u.set_radius.id);
        BITS(u.set_radius.radius);
        break;
    case CODEC_SET_LAYERS:
        EQUAL(u.set_layers.id);
        EQUAL(u.set_layers.layers);
        break;
    case CODEC_SET_PAYLOAD:
        EQUAL(u.set_payload.id);
        EQUAL(u.set_payload.payload_len);
        bits_equal(a->u.set_payload.payload, b->u.set_payload.payload, a->u.set_payload.payload_len);
        break;
    case CODEC_OPEN_PLAYER:
        EQUAL(u.open_player.player);
        EQUAL(u.open_player.mask);
        break;
    case CODEC_CLOSE_PLAYER:
    case CODEC_CLEAR_VIEWPORT: EQUAL(u.close_player.player); break;
    case CODEC_SUBSCRIBE:
    case CODEC_UNSUBSCRIBE:
        EQUAL(u.subscribe.player);
        EQUAL(u.subscribe.entity);
        EQUAL(u.subscribe.include_self);
        break;
    case CODEC_SET_VIEWPORT:
        EQUAL(u.set_viewport.player);
        BITS(u.set_viewport.min);
        BITS(u.set_viewport.max);
        break;
    case CODEC_FLUSH: EQUAL(u.flush.tag); break;
    case CODEC_DESTROY_SPACE:
    case CODEC_COMMAND_NONE:
    case CODEC_COMMANDS: break;
    }
}

static void queries_equal(const struct codec_query *a, const struct codec_query *b)
{
    EQUAL(space);
    EQUAL(kind);
    EQUAL(has_box);
    BITS(min);
    BITS(max);
    BITS(center);
    BITS(radius);
    EQUAL(id);
    EQUAL(layers);
    EQUAL(limit);
    EQUAL(cursor);
}

void frames_assert_client_equal(const struct codec_client_frame *a, const struct codec_client_frame *b)
{
    EQUAL(seq);
    EQUAL(kind);
    switch (a->kind) {
    case CODEC_HELLO:
        EQUAL(u.hello.protocol_version);
        assert_string_equal(a->u.hello.client_name, b->u.hello.client_name);
        break;
    case CODEC_BATCH:
        EQUAL(u.batch.space);
        EQUAL(u.batch.command_n);
        for (size_t i = 0; i < a->u.batch.command_n; i++) commands_equal(&a->u.batch.commands[i], &b->u.batch.commands[i]);
        break;
    case CODEC_QUERY: queries_equal(&a->u.query, &b->u.query); break;
    case CODEC_RESYNC:
        EQUAL(u.resync.space);
        EQUAL(u.resync.player);
        break;
    case CODEC_PING: EQUAL(u.ping.nonce); break;
    case CODEC_BYE:
    case CODEC_CLIENT_NONE:
    case CODEC_CLIENT_KINDS: break;
    }
}

static void payloads_equal(const void *const *a, const uint32_t *a_len, const void *const *b, const uint32_t *b_len, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = a != NULL ? a_len[i] : 0; /* no payloads at all and only empty ones are the same */
        assert_int_equal(len, b != NULL ? b_len[i] : 0);
        if (len > 0) bits_equal(a[i], b[i], len);
    }
}

void frames_assert_delta_equal(const struct aoi_delta *a, const struct aoi_delta *b)
{
    EQUAL(space);
    EQUAL(flush);
    EQUAL(tag);
    EQUAL(time_us);
    EQUAL(player);
    EQUAL(seq);
    EQUAL(full);
    EQUAL(closed);
    EQUAL(leave_n);
    EQUAL(enters.n);
    EQUAL(updates.n);
    EQUAL(payload_n);
    EQUAL(layers_n);
    COLUMN(a->leave_n, leave_id);
    COLUMN(a->enters.n, enters.id);
    COLUMN(a->enters.n, enters.x);
    COLUMN(a->enters.n, enters.y);
    optional_column(a->enters.z, b->enters.z, a->enters.n, 4);
    optional_column(a->enters.extra, b->enters.extra, a->enters.n, 4);
    COLUMN(a->enters.n, enters.layers);
    payloads_equal(a->enters.payload, a->enters.payload_len, b->enters.payload, b->enters.payload_len, a->enters.n);
    COLUMN(a->updates.n, updates.id);
    COLUMN(a->updates.n, updates.x);
    COLUMN(a->updates.n, updates.y);
    optional_column(a->updates.z, b->updates.z, a->updates.n, 4);
    optional_column(a->updates.extra, b->updates.extra, a->updates.n, 4);
    COLUMN(a->payload_n, payload_id);
    payloads_equal(a->payload, a->payload_len, b->payload, b->payload_len, a->payload_n);
    COLUMN(a->layers_n, layers_id);
    COLUMN(a->layers_n, layers);
}

static void rows_equal(const struct aoi_rows *a, const struct aoi_rows *b)
{
    EQUAL(n);
    EQUAL(next);
    COLUMN(a->n, id);
    optional_column(a->x, b->x, a->n, 4);
    optional_column(a->y, b->y, a->n, 4);
    optional_column(a->z, b->z, a->n, 4);
    optional_column(a->extra, b->extra, a->n, 4);
    optional_column(a->layers, b->layers, a->n, 4);
}

static void results_equal(const struct codec_result *a, const struct codec_result *b)
{
    EQUAL(kind);
    EQUAL(seq);
    EQUAL(entities);
    EQUAL(players);
    EQUAL(owner_session);
    EQUAL(space_n);
    EQUAL(next_cursor);
    BITS(stats);
    rows_equal(&a->rows, &b->rows);
    entities_equal(&a->entity, &b->entity);
    for (size_t i = 0; i < a->space_n; i++) {
        EQUAL(spaces[i].id);
        EQUAL(spaces[i].entities);
        EQUAL(spaces[i].players);
        EQUAL(spaces[i].owner_session);
        settings_equal(&a->spaces[i].settings, &b->spaces[i].settings);
    }
}

static void acks_equal(const struct codec_server_frame *a, const struct codec_server_frame *b)
{
    EQUAL(u.ack.applied);
    EQUAL(u.ack.errors_total);
    EQUAL(u.ack.error_n);
    EQUAL(u.ack.pending);
    for (size_t i = 0; i < a->u.ack.error_n; i++) {
        EQUAL(u.ack.errors[i].index);
        EQUAL(u.ack.errors[i].code);
        EQUAL(u.ack.errors[i].id);
        assert_string_equal(a->u.ack.errors[i].text, b->u.ack.errors[i].text);
    }
}

void frames_assert_server_equal(const struct codec_server_frame *a, const struct codec_server_frame *b)
{
    EQUAL(reply_to);
    EQUAL(kind);
    switch (a->kind) {
    case CODEC_WELCOME:
        EQUAL(u.welcome.protocol_version);
        assert_string_equal(a->u.welcome.server_version, b->u.welcome.server_version);
        EQUAL(u.welcome.session);
        EQUAL(u.welcome.max_frame_bytes);
        EQUAL(u.welcome.max_payload);
        EQUAL(u.welcome.query_page);
        EQUAL(u.welcome.idle_timeout_ms);
        break;
    case CODEC_ACK: acks_equal(a, b); break;
    case CODEC_DELTAS:
        EQUAL(u.deltas.player_n);
        for (size_t i = 0; i < a->u.deltas.player_n; i++) {
            EQUAL(u.deltas.players[i].part);
            EQUAL(u.deltas.players[i].more);
            frames_assert_delta_equal(&a->u.deltas.players[i].delta, &b->u.deltas.players[i].delta);
        }
        break;
    case CODEC_RESULT: results_equal(&a->u.result, &b->u.result); break;
    case CODEC_PONG:
        EQUAL(u.pong.nonce);
        EQUAL(u.pong.time_us);
        break;
    case CODEC_ERROR:
        EQUAL(u.error.code);
        assert_string_equal(a->u.error.text, b->u.error.text);
        break;
    case CODEC_DRAINING_NOTICE:
    case CODEC_SERVER_NONE:
    case CODEC_SERVER_KINDS: break;
    }
}

const uint8_t *frames_body(const struct buf *b, size_t len)
{
    struct frame f;
    assert_int_equal(frame_next(buf_data(b), buf_len(b), FRAME_BODY_MAX, &f), FRAME_READY);
    assert_int_equal(f.body_len, len);
    assert_int_equal(f.header_len, frame_header_size(len));
    assert_int_equal(f.header_len + f.body_len, buf_len(b));
    return buf_data(b) + f.header_len;
}
