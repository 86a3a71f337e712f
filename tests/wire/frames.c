/* frames.c: random frames of every kind. */
#include "frames.h"

#include "base/check.h"

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

/* As reading makes them: legal, with `beyond` given. */
static struct aoi_tiers any_tiers(struct random *r)
{
    struct aoi_tiers t = {.n = (uint32_t)random_below(r, AOI_TIERS_MAX + 1), .beyond = 1 + (uint32_t)random_below(r, AOI_PERIOD_MAX)};
    float distance = 0;
    for (uint32_t i = 0; i < t.n; i++) {
        distance += (float)(1 + random_below(r, 1 << 20)) / (float)(1 << random_below(r, 12));
        t.at[i].distance = distance;
        t.at[i].period = 1 + (uint32_t)random_below(r, AOI_PERIOD_MAX);
    }
    return t;
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
                             .persistent = any_bool(r),
                             .leave_margin = any_float(r),
                             .min_stay_ms = any_u32(r),
                             .max_view = any_u32(r),
                             .max_enter_per_flush = any_u32(r),
                             .tiers = any_tiers(r)};
    if (s.bounded) any_floats(r, s.min);
    if (s.bounded) any_floats(r, s.max);
    return s;
}

static struct aoi_entity any_entity(struct random *r, struct arena *arena)
{
    struct aoi_entity e = {.id = any_u64(r), .extra = any_u32(r), .radius = any_float(r), .layers = any_u32(r)};
    e.appeal = any_float(r);
    e.priority = any_u32(r);
    e.report_observed = any_bool(r);
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

static struct aoi_space_change any_change(struct random *r)
{
    struct aoi_space_change c = {.has_flush_ms = any_bool(r),
                                 .has_leave_margin = any_bool(r),
                                 .has_min_stay_ms = any_bool(r),
                                 .has_max_view = any_bool(r),
                                 .has_max_enter_per_flush = any_bool(r),
                                 .has_tiers = any_bool(r)};
    if (c.has_flush_ms) c.flush_ms = any_u32(r);
    if (c.has_leave_margin) c.leave_margin = any_float(r);
    if (c.has_min_stay_ms) c.min_stay_ms = any_u32(r);
    if (c.has_max_view) c.max_view = any_u32(r);
    if (c.has_max_enter_per_flush) c.max_enter_per_flush = any_u32(r);
    if (c.has_tiers) c.tiers = any_tiers(r);
    return c;
}

static void any_space_command(struct random *r, struct arena *arena, struct codec_command *c)
{
    if (c->kind == CODEC_CREATE_SPACE) {
        struct codec_create_space *create = in_arena(arena, sizeof *create);
        *create = (struct codec_create_space){.settings = any_settings(r), .if_absent = any_bool(r)};
        c->u.create_space = create;
    } else if (c->kind == CODEC_SET_SPACE) {
        struct codec_set_space *set = in_arena(arena, sizeof *set);
        *set = (struct codec_set_space){.change = any_change(r)};
        c->u.set_space = set;
    } else if (c->kind == CODEC_RELEASE) {
        c->u.release.entity_n = random_below(r, 20);
        c->u.release.entities = any_bytes(r, arena, c->u.release.entity_n * 8);
        c->u.release.player_n = random_below(r, 20);
        c->u.release.players = any_bytes(r, arena, c->u.release.player_n * 8);
        c->u.release.to_session = any_u64(r);
    } else if (c->kind == CODEC_FLUSH) {
        c->u.flush.tag = any_u64(r);
    }
}

static void any_publish(struct random *r, struct arena *arena, struct codec_command *c)
{
    c->u.publish.kind = (enum codec_publish_kind)random_below(r, CODEC_PUBLISH_BOX + 1);
    c->u.publish.message_len = random_below(r, 100);
    c->u.publish.message = any_bytes(r, arena, c->u.publish.message_len);
    if (c->u.publish.kind == CODEC_PUBLISH_ENTITY) c->u.publish.entity = any_u64(r);
    if (c->u.publish.kind >= CODEC_PUBLISH_POINT) any_floats(r, c->u.publish.min);
    if (c->u.publish.kind == CODEC_PUBLISH_BOX)
        any_floats(r, c->u.publish.max);
    else
        memcpy(c->u.publish.max, c->u.publish.min, sizeof c->u.publish.max);
}

static void any_player_command(struct random *r, struct codec_command *c)
{
    switch (c->kind) {
    case CODEC_OPEN_PLAYER:
        c->u.open_player.player = any_u64(r);
        c->u.open_player.settings = (struct aoi_player_settings){.mask = any_u32(r),
                                                                 .max_view = any_u32(r),
                                                                 .leave_margin = any_float(r),
                                                                 .max_enter_per_flush = any_u32(r),
                                                                 .presence_only = any_bool(r),
                                                                 .take_over = any_bool(r),
                                                                 .keep = any_bool(r)};
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
    case CODEC_OVERRIDE:
        c->u.override.player = any_u64(r);
        c->u.override.entity = any_u64(r);
        c->u.override.kind = 1 + (any_u32(r) >> 2);
        break;
    default: break;
    }
}

static void any_command(struct random *r, struct arena *arena, struct codec_command *c)
{
    *c = (struct codec_command){.kind = (enum codec_command_kind)random_below(r, CODEC_COMMANDS)};
    switch (c->kind) {
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
    case CODEC_SET_APPEAL:
        c->u.set_radius.id = any_u64(r);
        c->u.set_radius.radius = any_float(r);
        break;
    case CODEC_SET_LAYERS:
    case CODEC_SET_PRIORITY:
        c->u.set_layers.id = any_u64(r);
        c->u.set_layers.layers = any_u32(r);
        break;
    case CODEC_SET_PAYLOAD:
        c->u.set_payload.id = any_u64(r);
        c->u.set_payload.payload_len = random_below(r, 100);
        c->u.set_payload.payload = any_bytes(r, arena, c->u.set_payload.payload_len);
        break;
    case CODEC_PUBLISH: any_publish(r, arena, c); break;
    default:
        any_space_command(r, arena, c);
        any_player_command(r, c);
        break;
    }
}

static void any_query(struct random *r, struct codec_query *q)
{
    *q = (struct codec_query){.kind = (enum codec_query_kind)random_below(r, CODEC_QUERIES), .space = any_u64(r)};
    bool aabb = q->kind == CODEC_QUERY_AABB, radius = q->kind == CODEC_QUERY_RADIUS, count = q->kind == CODEC_QUERY_COUNT;
    bool view = q->kind == CODEC_QUERY_VIEW, list = q->kind == CODEC_QUERY_LIST_SPACES, nearest = q->kind == CODEC_QUERY_NEAREST;
    bool observers = q->kind == CODEC_QUERY_OBSERVERS, density = q->kind == CODEC_QUERY_DENSITY, why = q->kind == CODEC_QUERY_WHY;
    if (aabb || count || density) q->has_box = any_bool(r);
    if (q->has_box) any_floats(r, q->min);
    if (q->has_box) any_floats(r, q->max);
    if (radius || nearest) any_floats(r, q->center);
    if (radius || nearest) q->radius = any_float(r);
    if (aabb || radius || count || nearest || density) q->layers = any_u32(r);
    if (q->kind == CODEC_QUERY_GET_ENTITY || view || observers || why) q->id = any_u64(r);
    if (aabb || radius || view || list || observers) q->cursor = any_u64(r);
    if (aabb || radius || view || list || observers) q->limit = any_u32(r);
    if (why) q->player = any_u64(r);
    if (nearest) q->k = any_u32(r);
    if (density) q->columns = any_u32(r);
    if (density) q->rows = any_u32(r);
}

void frames_random_client(struct random *r, struct arena *arena, enum codec_client_kind kind, struct codec_client_frame *out)
{
    *out = (struct codec_client_frame){.seq = any_u64(r), .kind = kind};
    switch (kind) {
    case CODEC_HELLO:
        out->u.hello.protocol_version = any_u32(r);
        out->u.hello.client_name = any_text(r, arena);
        out->u.hello.token = any_text(r, arena);
        out->u.hello.lease_ms = any_u32(r);
        out->u.hello.resume_session = any_u64(r);
        out->u.hello.resume_token_len = random_below(r, 40);
        out->u.hello.resume_token = any_bytes(r, arena, out->u.hello.resume_token_len);
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
    n = any_bool(r) ? random_below(r, items + 1) : 0;
    out->message_n = n;
    out->message_from = any_bytes(r, arena, n * 8);
    if (n > 0) any_payloads(r, arena, n, payload, &out->message, &out->message_len);
    out->messages_lost = any_bool(r) ? any_u64(r) : 0;
}

static void any_why(struct random *r, struct arena *arena, struct codec_result *out)
{
    out->why = (struct aoi_why){.rule = (enum aoi_rule)random_below(r, AOI_RULE_ENTER_BUDGET + 2),
                                .told = any_bool(r),
                                .seen = any_bool(r),
                                .by_viewport = any_bool(r),
                                .unit = any_u64(r),
                                .distance = (double)random_below(r, 1 << 30) / 1000,
                                .radius = any_float(r),
                                .appeal = any_float(r),
                                .margin = any_float(r),
                                .layers = any_u32(r),
                                .mask = any_u32(r),
                                .rank = any_u32(r),
                                .max_view = any_u32(r),
                                .stay_left_ms = any_u32(r),
                                .period = any_u32(r)};
    out->why_text = any_text(r, arena);
}

static void any_result(struct random *r, struct arena *arena, struct codec_result *out)
{
    size_t n = random_below(r, 30);
    bool three = any_bool(r), extra = any_bool(r);
    *out = (struct codec_result){.kind = (enum codec_result_kind)random_below(r, CODEC_RESULT_WHY + 1)};
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
            out->spaces[i] = (struct codec_space_info){.id = any_u64(r),
                                                       .entities = any_u64(r),
                                                       .players = any_u64(r),
                                                       .owner_session = any_u64(r),
                                                       .configured = any_bool(r),
                                                       .settings = any_settings(r)};
        break;
    case CODEC_RESULT_DENSITY:
        out->columns = (uint32_t)random_below(r, 20);
        out->raster_rows = (uint32_t)random_below(r, 20);
        out->counts = any_bytes(r, arena, (size_t)out->columns * out->raster_rows * 4);
        break;
    case CODEC_RESULT_WHY: any_why(r, arena, out); break;
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
        out->u.welcome.resume_token_len = random_below(r, 40);
        out->u.welcome.resume_token = any_bytes(r, arena, out->u.welcome.resume_token_len);
        out->u.welcome.resumed = random_below(r, 2);
        out->u.welcome.last_seq = any_u64(r);
        out->u.welcome.lease_ms = any_u32(r);
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
    case CODEC_OBSERVED:
        out->u.observed.space = any_u64(r);
        out->u.observed.observed_n = random_below(r, 20);
        out->u.observed.observed = any_bytes(r, arena, out->u.observed.observed_n * 8);
        out->u.observed.unobserved_n = random_below(r, 20);
        out->u.observed.unobserved = any_bytes(r, arena, out->u.observed.unobserved_n * 8);
        break;
    case CODEC_LOST:
        out->u.lost.space = any_u64(r);
        out->u.lost.entity_n = random_below(r, 20);
        out->u.lost.entities = any_bytes(r, arena, out->u.lost.entity_n * 8);
        out->u.lost.player_n = random_below(r, 20);
        out->u.lost.players = any_bytes(r, arena, out->u.lost.player_n * 8);
        break;
    case CODEC_DRAINING_NOTICE:
    case CODEC_SERVER_NONE:
    case CODEC_SERVER_KINDS: break;
    }
}
