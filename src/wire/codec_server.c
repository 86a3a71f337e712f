/* codec_server.c: the frames that the daemon sends; the Deltas among them are in codec_delta.c. */
#include <stdlib.h>

#include "base/check.h"
#include "wire/codec.h"
#include "wire/codec_internal.h"

/* The kind of a frame is one less than its field number in ServerFrame, the kind of a result is its field number in Result. */
_Static_assert(CODEC_WELCOME + 1 == (int)AOI__V1__SERVER_FRAME__KIND_WELCOME && CODEC_LOST + 1 == (int)AOI__V1__SERVER_FRAME__KIND_LOST, "frames");
_Static_assert(CODEC_RESULT_ENTITIES == (int)AOI__V1__RESULT__KIND_ENTITIES && CODEC_RESULT_WHY == (int)AOI__V1__RESULT__KIND_WHY, "results");
_Static_assert(AOI_RULE_INCLUDE_SELF == (int)AOI__V1__RULE__RULE_INCLUDE_SELF && AOI_RULE_ENTER_BUDGET == (int)AOI__V1__RULE__RULE_ENTER_BUDGET,
               "rules");

/* ------------------------------------------------------------------------------------------------------------- decoding */

static int ack_in(const Aoi__V1__Ack *in, struct arena *arena, struct codec_server_frame *out)
{
    struct codec_error_item *errors = codec__array(arena, in->n_errors, sizeof *errors);
    if (errors == NULL) return CODEC_MALFORMED;
    for (size_t i = 0; i < in->n_errors; i++) {
        const Aoi__V1__CommandError *e = in->errors[i];
        errors[i] = (struct codec_error_item){.index = e->index, .code = (uint32_t)e->code, .id = e->id, .text = e->text};
    }
    out->u.ack.applied = in->applied;
    out->u.ack.errors_total = in->errors_total;
    out->u.ack.error_n = in->n_errors;
    out->u.ack.errors = errors;
    out->u.ack.pending = in->pending != 0;
    return 0;
}

static int entities_in(const Aoi__V1__EntitiesResult *in, struct codec_result *out)
{
    size_t n = in->n_ids;
    if (in->n_x != n || in->n_y != n || (in->n_z != n && in->n_z != 0) || (in->n_extra != n && in->n_extra != 0) || in->n_layers != n)
        return CODEC_MALFORMED;
    out->rows = (struct aoi_rows){
        .n = n, .id = in->ids, .x = in->x, .y = in->y, .z = in->z, .extra = in->extra, .layers = in->layers, .next = in->next_cursor};
    return 0;
}

static void entity_in(const Aoi__V1__EntityResult *in, struct codec_result *out)
{
    out->entity = (struct aoi_entity){.id = in->id,
                                      .pos = {in->x, in->y, in->z},
                                      .extra = in->extra,
                                      .radius = in->radius,
                                      .layers = in->layers,
                                      .payload = in->payload.data,
                                      .payload_len = (uint32_t)in->payload.len,
                                      .appeal = in->appeal,
                                      .priority = in->priority,
                                      .report_observed = in->report_observed != 0,
                                      .subscribers = in->subscribers};
    out->owner_session = in->owner_session;
}

static void stats_in(const Aoi__V1__StatsResult *in, struct codec_stats *out)
{
    *out = (struct codec_stats){.spaces = in->spaces,
                                .uptime_ms = in->uptime_ms,
                                .connections = in->connections,
                                .frames_in = in->frames_in,
                                .bytes_in = in->bytes_in,
                                .bytes_out = in->bytes_out,
                                .errors = in->errors,
                                .core = {.entities = in->entities,
                                         .players = in->players,
                                         .pairs = in->pairs,
                                         .flushes = in->flushes,
                                         .enters = in->enters,
                                         .leaves = in->leaves,
                                         .updates = in->updates,
                                         .deltas = in->deltas,
                                         .skipped = in->skipped,
                                         .moves = in->moves,
                                         .messages = in->messages,
                                         .memory_bytes = in->memory_bytes}};
}

static int spaces_in(const Aoi__V1__SpacesResult *in, struct arena *arena, struct codec_result *out)
{
    out->space_n = in->n_spaces;
    out->next_cursor = in->next_cursor;
    out->spaces = codec__array(arena, in->n_spaces, sizeof *out->spaces);
    if (out->spaces == NULL) return CODEC_MALFORMED;
    for (size_t i = 0; i < in->n_spaces; i++) {
        const Aoi__V1__SpaceInfo *s = in->spaces[i];
        out->spaces[i] = (struct codec_space_info){
            .id = s->id, .entities = s->entities, .players = s->players, .owner_session = s->owner_session, .configured = s->configured != 0};
        codec__settings_in(s->settings, &out->spaces[i].settings);
    }
    return 0;
}

static int density_in(const Aoi__V1__DensityResult *in, struct codec_result *out)
{
    if ((uint64_t)in->columns * in->rows != in->n_counts) return CODEC_MALFORMED;
    out->columns = in->columns;
    out->raster_rows = in->rows;
    out->counts = in->counts;
    return 0;
}

static void why_in(const Aoi__V1__WhyResult *in, struct codec_result *out)
{
    out->why = (struct aoi_why){.rule = (enum aoi_rule)in->rule,
                                .told = in->told != 0,
                                .seen = in->seen != 0,
                                .by_viewport = in->by_viewport != 0,
                                .unit = in->unit,
                                .distance = in->distance,
                                .radius = in->radius,
                                .appeal = in->appeal,
                                .margin = in->margin,
                                .layers = in->layers,
                                .mask = in->mask,
                                .rank = in->rank,
                                .max_view = in->max_view,
                                .stay_left_ms = in->stay_left_ms,
                                .period = in->period};
    out->why_text = in->text;
}

static int result_in(const Aoi__V1__Result *in, struct arena *arena, struct codec_result *out)
{
    *out = (struct codec_result){.kind = (enum codec_result_kind)in->kind_case};
    switch (out->kind) {
    case CODEC_RESULT_ENTITIES: return entities_in(in->entities, out);
    case CODEC_RESULT_COUNT:
        out->entities = in->count->entities;
        out->players = in->count->players;
        break;
    case CODEC_RESULT_ENTITY: entity_in(in->entity, out); break;
    case CODEC_RESULT_VIEW:
        out->rows = (struct aoi_rows){.n = in->view->n_ids, .id = in->view->ids, .next = in->view->next_cursor};
        out->seq = in->view->seq;
        break;
    case CODEC_RESULT_STATS: stats_in(in->stats, &out->stats); break;
    case CODEC_RESULT_SPACES: return spaces_in(in->spaces, arena, out);
    case CODEC_RESULT_DENSITY: return density_in(in->density, out);
    case CODEC_RESULT_WHY: why_in(in->why, out); break;
    case CODEC_RESULT_NONE: break;
    }
    return 0;
}

static void welcome_in(const Aoi__V1__Welcome *in, struct codec_server_frame *out)
{
    out->u.welcome.protocol_version = in->protocol_version;
    out->u.welcome.server_version = in->server_version;
    out->u.welcome.session = in->session;
    out->u.welcome.max_frame_bytes = in->max_frame_bytes;
    out->u.welcome.max_payload = in->max_payload;
    out->u.welcome.query_page = in->query_page;
    out->u.welcome.idle_timeout_ms = in->idle_timeout_ms;
    out->u.welcome.resume_token_len = in->resume_token.len;
    out->u.welcome.resume_token = in->resume_token.data;
    out->u.welcome.resumed = in->resumed;
    out->u.welcome.last_seq = in->last_seq;
    out->u.welcome.lease_ms = in->lease_ms;
}

static void observed_in(const Aoi__V1__Observed *in, struct codec_server_frame *out)
{
    out->u.observed.space = in->space;
    out->u.observed.observed_n = in->n_observed_ids;
    out->u.observed.observed = in->observed_ids;
    out->u.observed.unobserved_n = in->n_unobserved_ids;
    out->u.observed.unobserved = in->unobserved_ids;
}

static void lost_in(const Aoi__V1__Lost *in, struct codec_server_frame *out)
{
    out->u.lost.space = in->space;
    out->u.lost.entity_n = in->n_entities;
    out->u.lost.entities = in->entities;
    out->u.lost.player_n = in->n_players;
    out->u.lost.players = in->players;
}

int codec_decode_server(const void *bytes, size_t len, struct arena *arena, struct codec_server_frame *out)
{
    const Aoi__V1__ServerFrame *in = codec__unpack(&aoi__v1__server_frame__descriptor, bytes, len, arena);
    if (in == NULL) return CODEC_MALFORMED;
    *out = (struct codec_server_frame){.reply_to = in->reply_to};
    if (in->kind_case == AOI__V1__SERVER_FRAME__KIND__NOT_SET) return 0;
    out->kind = (enum codec_server_kind)(in->kind_case - 1);
    switch (out->kind) {
    case CODEC_WELCOME: welcome_in(in->welcome, out); break;
    case CODEC_ACK: return ack_in(in->ack, arena, out);
    case CODEC_DELTAS: return codec__deltas_in(in->deltas, arena, out);
    case CODEC_RESULT: return result_in(in->result, arena, &out->u.result);
    case CODEC_PONG:
        out->u.pong.nonce = in->pong->nonce;
        out->u.pong.time_us = in->pong->time_us;
        break;
    case CODEC_ERROR:
        out->u.error.code = (uint32_t)in->error->code;
        out->u.error.text = in->error->text;
        break;
    case CODEC_OBSERVED: observed_in(in->observed, out); break;
    case CODEC_LOST: lost_in(in->lost, out); break;
    case CODEC_DRAINING_NOTICE:
    case CODEC_SERVER_NONE:
    case CODEC_SERVER_KINDS: break;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------- encoding */

/* The frame around a message of this kind. */
#define FRAME(reply, KIND, member, message) \
    CODEC__MESSAGE(ServerFrame, server_frame, .reply_to = (reply), .kind_case = AOI__V1__SERVER_FRAME__KIND_##KIND, .member = (message))

static size_t ack_out(const struct codec_server_frame *frame, struct buf *out)
{
    size_t n = frame->u.ack.error_n;
    Aoi__V1__CommandError *errors = mem_alloc(n * sizeof *errors);
    Aoi__V1__CommandError **pointers = mem_alloc(n * sizeof(Aoi__V1__CommandError *));
    for (size_t i = 0; i < n; i++) {
        const struct codec_error_item *e = &frame->u.ack.errors[i];
        errors[i] = CODEC__MESSAGE(CommandError, command_error, .index = e->index, .code = (Aoi__V1__Code)e->code, .id = e->id,
                                   .text = (char *)e->text);
        pointers[i] = &errors[i];
    }
    Aoi__V1__Ack ack = CODEC__MESSAGE(Ack, ack, .applied = frame->u.ack.applied, .n_errors = n, .errors = pointers,
                                      .errors_total = frame->u.ack.errors_total, .pending = frame->u.ack.pending);
    Aoi__V1__ServerFrame message = FRAME(frame->reply_to, ACK, ack, &ack);
    size_t len = codec__pack(&message.base, out);
    free(pointers);
    free(errors);
    return len;
}

/* A list of n, or none where the column is not there. */
#define COLUMN(member, column, count) .n_##member = (column) != NULL ? (count) : 0, .member = (column)

static Aoi__V1__EntitiesResult entities_out(const struct aoi_rows *r)
{
    return CODEC__MESSAGE(EntitiesResult, entities_result, COLUMN(ids, r->id, r->n), COLUMN(x, r->x, r->n), COLUMN(y, r->y, r->n),
                          COLUMN(z, r->z, r->n), COLUMN(extra, r->extra, r->n), COLUMN(layers, r->layers, r->n), .next_cursor = r->next);
}

static Aoi__V1__EntityResult entity_out(const struct codec_result *r)
{
    const struct aoi_entity *e = &r->entity;
    return CODEC__MESSAGE(EntityResult, entity_result, .id = e->id, .x = e->pos[0], .y = e->pos[1], .z = e->pos[2], .extra = e->extra,
                          .radius = e->radius, .layers = e->layers, .payload = {.len = e->payload_len, .data = (uint8_t *)e->payload},
                          .owner_session = r->owner_session, .subscribers = e->subscribers, .appeal = e->appeal, .priority = e->priority,
                          .report_observed = e->report_observed);
}

static Aoi__V1__StatsResult stats_out(const struct codec_stats *s)
{
    const struct aoi_stats *c = &s->core;
    return CODEC__MESSAGE(StatsResult, stats_result, .spaces = s->spaces, .entities = c->entities, .players = c->players, .pairs = c->pairs,
                          .flushes = c->flushes, .enters = c->enters, .leaves = c->leaves, .updates = c->updates, .memory_bytes = c->memory_bytes,
                          .uptime_ms = s->uptime_ms, .connections = s->connections, .frames_in = s->frames_in, .bytes_in = s->bytes_in,
                          .bytes_out = s->bytes_out, .deltas = c->deltas, .skipped = c->skipped, .errors = s->errors, .moves = c->moves,
                          .messages = c->messages);
}

struct space_out {
    Aoi__V1__SpaceInfo info;
    struct codec__settings settings;
};

static size_t spaces_out(const struct codec_server_frame *frame, struct buf *out)
{
    const struct codec_result *r = &frame->u.result;
    struct space_out *spaces = mem_alloc(r->space_n * sizeof *spaces);
    Aoi__V1__SpaceInfo **pointers = mem_alloc(r->space_n * sizeof(Aoi__V1__SpaceInfo *));
    for (size_t i = 0; i < r->space_n; i++) {
        const struct codec_space_info *s = &r->spaces[i];
        codec__settings_out(&s->settings, &spaces[i].settings);
        spaces[i].info = CODEC__MESSAGE(SpaceInfo, space_info, .id = s->id, .settings = &spaces[i].settings.message, .entities = s->entities,
                                        .players = s->players, .owner_session = s->owner_session, .configured = s->configured);
        pointers[i] = &spaces[i].info;
    }
    Aoi__V1__SpacesResult list = CODEC__MESSAGE(SpacesResult, spaces_result, .n_spaces = r->space_n, .spaces = pointers,
                                                .next_cursor = r->next_cursor);
    Aoi__V1__Result result = CODEC__MESSAGE(Result, result, .kind_case = AOI__V1__RESULT__KIND_SPACES, .spaces = &list);
    Aoi__V1__ServerFrame message = FRAME(frame->reply_to, RESULT, result, &result);
    size_t len = codec__pack(&message.base, out);
    free(pointers);
    free(spaces);
    return len;
}

static Aoi__V1__WhyResult why_out(const struct codec_result *r, char made[CODEC__WHY_TEXT])
{
    const struct aoi_why *w = &r->why;
    const char *text = r->why_text;
    if (text == NULL) {
        codec__why_text(r, made);
        text = made;
    }
    return CODEC__MESSAGE(WhyResult, why_result, .rule = (Aoi__V1__Rule)w->rule, .told = w->told, .seen = w->seen, .by_viewport = w->by_viewport,
                          .unit = w->unit, .distance = w->distance, .radius = w->radius, .appeal = w->appeal, .margin = w->margin,
                          .layers = w->layers, .mask = w->mask, .rank = w->rank, .max_view = w->max_view, .stay_left_ms = w->stay_left_ms,
                          .period = w->period, .text = (char *)text);
}

static size_t result_out(const struct codec_server_frame *frame, struct buf *out)
{
    const struct codec_result *r = &frame->u.result;
    if (r->kind == CODEC_RESULT_SPACES) return spaces_out(frame, out);
    Aoi__V1__EntitiesResult entities = entities_out(&r->rows);
    Aoi__V1__CountResult count = CODEC__MESSAGE(CountResult, count_result, .entities = r->entities, .players = r->players);
    Aoi__V1__EntityResult entity = entity_out(r);
    Aoi__V1__ViewResult view = CODEC__MESSAGE(ViewResult, view_result, COLUMN(ids, r->rows.id, r->rows.n), .seq = r->seq,
                                              .next_cursor = r->rows.next);
    Aoi__V1__StatsResult stats = stats_out(&r->stats);
    Aoi__V1__DensityResult density = CODEC__MESSAGE(DensityResult, density_result, .columns = r->columns, .rows = r->raster_rows,
                                                    COLUMN(counts, (uint32_t *)r->counts, (size_t)r->columns * r->raster_rows));
    Aoi__V1__WhyResult why;
    char text[CODEC__WHY_TEXT];
    Aoi__V1__Result result = CODEC__MESSAGE(Result, result, .kind_case = (Aoi__V1__Result__KindCase)r->kind);
    switch (r->kind) {
    case CODEC_RESULT_ENTITIES: result.entities = &entities; break;
    case CODEC_RESULT_COUNT: result.count = &count; break;
    case CODEC_RESULT_ENTITY: result.entity = &entity; break;
    case CODEC_RESULT_VIEW: result.view = &view; break;
    case CODEC_RESULT_STATS: result.stats = &stats; break;
    case CODEC_RESULT_DENSITY: result.density = &density; break;
    case CODEC_RESULT_WHY:
        why = why_out(r, text);
        result.why = &why;
        break;
    case CODEC_RESULT_SPACES:
    case CODEC_RESULT_NONE: break;
    }
    Aoi__V1__ServerFrame message = FRAME(frame->reply_to, RESULT, result, &result);
    return codec__pack(&message.base, out);
}

static size_t welcome_out(const struct codec_server_frame *frame, struct buf *out)
{
    Aoi__V1__Welcome welcome = CODEC__MESSAGE(
        Welcome, welcome, .protocol_version = frame->u.welcome.protocol_version, .server_version = (char *)frame->u.welcome.server_version,
        .session = frame->u.welcome.session, .max_frame_bytes = frame->u.welcome.max_frame_bytes, .max_payload = frame->u.welcome.max_payload,
        .query_page = frame->u.welcome.query_page, .idle_timeout_ms = frame->u.welcome.idle_timeout_ms,
        .resume_token = {frame->u.welcome.resume_token_len, (uint8_t *)frame->u.welcome.resume_token}, .resumed = frame->u.welcome.resumed,
        .last_seq = frame->u.welcome.last_seq, .lease_ms = frame->u.welcome.lease_ms);
    Aoi__V1__ServerFrame message = FRAME(frame->reply_to, WELCOME, welcome, &welcome);
    return codec__pack(&message.base, out);
}

static size_t observed_out(const struct codec_server_frame *frame, struct buf *out)
{
    Aoi__V1__Observed observed = CODEC__MESSAGE(Observed, observed, .space = frame->u.observed.space, .n_observed_ids = frame->u.observed.observed_n,
                                                .observed_ids = (uint64_t *)frame->u.observed.observed,
                                                .n_unobserved_ids = frame->u.observed.unobserved_n,
                                                .unobserved_ids = (uint64_t *)frame->u.observed.unobserved);
    Aoi__V1__ServerFrame message = FRAME(frame->reply_to, OBSERVED, observed, &observed);
    return codec__pack(&message.base, out);
}

static size_t lost_out(const struct codec_server_frame *frame, struct buf *out)
{
    Aoi__V1__Lost lost = CODEC__MESSAGE(Lost, lost, .space = frame->u.lost.space, .n_entities = frame->u.lost.entity_n,
                                        .entities = (uint64_t *)frame->u.lost.entities, .n_players = frame->u.lost.player_n,
                                        .players = (uint64_t *)frame->u.lost.players);
    Aoi__V1__ServerFrame message = FRAME(frame->reply_to, LOST, lost, &lost);
    return codec__pack(&message.base, out);
}

size_t codec_encode_server(const struct codec_server_frame *frame, struct buf *out)
{
    Aoi__V1__Pong pong = CODEC__MESSAGE(Pong, pong, );
    Aoi__V1__Error error = CODEC__MESSAGE(Error, error, );
    Aoi__V1__Draining draining = CODEC__MESSAGE(Draining, draining, );
    Aoi__V1__ServerFrame message = CODEC__MESSAGE(ServerFrame, server_frame, .reply_to = frame->reply_to);
    switch (frame->kind) {
    case CODEC_WELCOME: return welcome_out(frame, out);
    case CODEC_ACK: return ack_out(frame, out);
    case CODEC_DELTAS: return codec__deltas_out(frame, out);
    case CODEC_RESULT: return result_out(frame, out);
    case CODEC_OBSERVED: return observed_out(frame, out);
    case CODEC_LOST: return lost_out(frame, out);
    case CODEC_PONG:
        pong.nonce = frame->u.pong.nonce;
        pong.time_us = frame->u.pong.time_us;
        message = FRAME(frame->reply_to, PONG, pong, &pong);
        break;
    case CODEC_ERROR:
        error.code = (Aoi__V1__Code)frame->u.error.code;
        error.text = (char *)frame->u.error.text;
        message = FRAME(frame->reply_to, ERROR, error, &error);
        break;
    case CODEC_DRAINING_NOTICE: message = FRAME(frame->reply_to, DRAINING, draining, &draining); break;
    case CODEC_SERVER_NONE:
    case CODEC_SERVER_KINDS: break;
    }
    return codec__pack(&message.base, out);
}
