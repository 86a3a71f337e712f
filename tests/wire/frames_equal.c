/* frames_equal.c: asserts that two frames say the same. */
#include "frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "wire/frame.h"

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

static void tiers_equal(const struct aoi_tiers *a, const struct aoi_tiers *b)
{
    EQUAL(n);
    EQUAL(beyond);
    for (uint32_t i = 0; i < a->n; i++) {
        BITS(at[i].distance);
        EQUAL(at[i].period);
    }
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
    BITS(leave_margin);
    EQUAL(min_stay_ms);
    EQUAL(max_view);
    EQUAL(max_enter_per_flush);
    tiers_equal(&a->tiers, &b->tiers);
}

static void changes_equal(const struct aoi_space_change *a, const struct aoi_space_change *b)
{
    EQUAL(has_flush_ms);
    EQUAL(has_leave_margin);
    EQUAL(has_min_stay_ms);
    EQUAL(has_max_view);
    EQUAL(has_max_enter_per_flush);
    EQUAL(has_tiers);
    EQUAL(flush_ms);
    BITS(leave_margin);
    EQUAL(min_stay_ms);
    EQUAL(max_view);
    EQUAL(max_enter_per_flush);
    tiers_equal(&a->tiers, &b->tiers);
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
    BITS(appeal);
    EQUAL(priority);
    EQUAL(report_observed);
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

static void publishes_equal(const struct codec_command *a, const struct codec_command *b)
{
    EQUAL(u.publish.kind);
    EQUAL(u.publish.entity);
    BITS(u.publish.min);
    BITS(u.publish.max);
    EQUAL(u.publish.message_len);
    bits_equal(a->u.publish.message, b->u.publish.message, a->u.publish.message_len);
}

static void player_commands_equal(const struct codec_command *a, const struct codec_command *b)
{
    switch (a->kind) {
    case CODEC_OPEN_PLAYER:
        EQUAL(u.open_player.player);
        EQUAL(u.open_player.settings.mask);
        EQUAL(u.open_player.settings.max_view);
        BITS(u.open_player.settings.leave_margin);
        EQUAL(u.open_player.settings.max_enter_per_flush);
        EQUAL(u.open_player.settings.presence_only);
        EQUAL(u.open_player.settings.take_over);
        EQUAL(u.open_player.settings.keep);
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
    case CODEC_OVERRIDE:
        EQUAL(u.override.player);
        EQUAL(u.override.entity);
        EQUAL(u.override.kind);
        break;
    default: break;
    }
}

static void space_commands_equal(const struct codec_command *a, const struct codec_command *b)
{
    if (a->kind == CODEC_CREATE_SPACE) {
        settings_equal(&a->u.create_space->settings, &b->u.create_space->settings);
        EQUAL(u.create_space->if_absent);
        assert_null(b->u.create_space->tiers_error);
    } else if (a->kind == CODEC_SET_SPACE) {
        changes_equal(&a->u.set_space->change, &b->u.set_space->change);
        assert_null(b->u.set_space->tiers_error);
    } else if (a->kind == CODEC_RELEASE) {
        EQUAL(u.release.entity_n);
        EQUAL(u.release.player_n);
        EQUAL(u.release.to_session);
        COLUMN(a->u.release.entity_n, u.release.entities);
        COLUMN(a->u.release.player_n, u.release.players);
    } else if (a->kind == CODEC_FLUSH) {
        EQUAL(u.flush.tag);
    }
}

static void commands_equal(const struct codec_command *a, const struct codec_command *b)
{
    EQUAL(kind);
    switch (a->kind) {
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
    case CODEC_SET_APPEAL:
        EQUAL(u.set_radius.id);
        BITS(u.set_radius.radius);
        break;
    case CODEC_SET_LAYERS:
    case CODEC_SET_PRIORITY:
        EQUAL(u.set_layers.id);
        EQUAL(u.set_layers.layers);
        break;
    case CODEC_SET_PAYLOAD:
        EQUAL(u.set_payload.id);
        EQUAL(u.set_payload.payload_len);
        bits_equal(a->u.set_payload.payload, b->u.set_payload.payload, a->u.set_payload.payload_len);
        break;
    case CODEC_PUBLISH: publishes_equal(a, b); break;
    default:
        space_commands_equal(a, b);
        player_commands_equal(a, b);
        break;
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
    EQUAL(player);
    EQUAL(k);
    EQUAL(columns);
    EQUAL(rows);
}

void frames_assert_client_equal(const struct codec_client_frame *a, const struct codec_client_frame *b)
{
    EQUAL(seq);
    EQUAL(kind);
    switch (a->kind) {
    case CODEC_HELLO:
        EQUAL(u.hello.protocol_version);
        assert_string_equal(a->u.hello.client_name, b->u.hello.client_name);
        assert_string_equal(a->u.hello.token, b->u.hello.token);
        EQUAL(u.hello.lease_ms);
        EQUAL(u.hello.resume_session);
        EQUAL(u.hello.resume_token_len);
        if (a->u.hello.resume_token_len > 0) assert_memory_equal(a->u.hello.resume_token, b->u.hello.resume_token, a->u.hello.resume_token_len);
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
    EQUAL(message_n);
    COLUMN(a->message_n, message_from);
    payloads_equal(a->message, a->message_len, b->message, b->message_len, a->message_n);
    EQUAL(messages_lost);
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

static void whys_equal(const struct aoi_why *a, const struct aoi_why *b)
{
    EQUAL(rule);
    EQUAL(told);
    EQUAL(seen);
    EQUAL(by_viewport);
    EQUAL(unit);
    BITS(distance);
    BITS(radius);
    BITS(appeal);
    BITS(margin);
    EQUAL(layers);
    EQUAL(mask);
    EQUAL(rank);
    EQUAL(max_view);
    EQUAL(stay_left_ms);
    EQUAL(period);
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
    EQUAL(columns);
    EQUAL(raster_rows);
    COLUMN((size_t)a->columns * a->raster_rows, counts);
    whys_equal(&a->why, &b->why);
    if (a->why_text != NULL) assert_string_equal(a->why_text, b->why_text);
    for (size_t i = 0; i < a->space_n; i++) {
        EQUAL(spaces[i].id);
        EQUAL(spaces[i].entities);
        EQUAL(spaces[i].players);
        EQUAL(spaces[i].owner_session);
        EQUAL(spaces[i].configured);
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
        EQUAL(u.welcome.resume_token_len);
        if (a->u.welcome.resume_token_len > 0)
            assert_memory_equal(a->u.welcome.resume_token, b->u.welcome.resume_token, a->u.welcome.resume_token_len);
        EQUAL(u.welcome.resumed);
        EQUAL(u.welcome.last_seq);
        EQUAL(u.welcome.lease_ms);
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
    case CODEC_OBSERVED:
        EQUAL(u.observed.space);
        EQUAL(u.observed.observed_n);
        EQUAL(u.observed.unobserved_n);
        COLUMN(a->u.observed.observed_n, u.observed.observed);
        COLUMN(a->u.observed.unobserved_n, u.observed.unobserved);
        break;
    case CODEC_LOST:
        EQUAL(u.lost.space);
        EQUAL(u.lost.entity_n);
        EQUAL(u.lost.player_n);
        COLUMN(a->u.lost.entity_n, u.lost.entities);
        COLUMN(a->u.lost.player_n, u.lost.players);
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
