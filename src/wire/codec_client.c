/* codec_client.c: the frames that a client sends. */
#include <stdlib.h>

#include "base/check.h"
#include "wire/codec.h"
#include "wire/codec_internal.h"

/* A command's kind is its field number in Command, a query's kind and a frame's are one less than theirs. */
_Static_assert(CODEC_CREATE_SPACE == (int)AOI__V1__COMMAND__KIND_CREATE_SPACE && CODEC_FLUSH == (int)AOI__V1__COMMAND__KIND_FLUSH, "commands");
_Static_assert(CODEC_QUERY_AABB + 1 == (int)AOI__V1__QUERY__KIND_AABB && CODEC_QUERY_LIST_SPACES + 1 == (int)AOI__V1__QUERY__KIND_LIST_SPACES,
               "queries");
_Static_assert(CODEC_HELLO + 1 == (int)AOI__V1__CLIENT_FRAME__KIND_HELLO && CODEC_BYE + 1 == (int)AOI__V1__CLIENT_FRAME__KIND_BYE, "frames");

/* ------------------------------------------------------------------------------------------------------------- decoding */

static void add_entity_in(const Aoi__V1__AddEntity *in, struct codec_command *out)
{
    out->u.add_entity.entity = (struct aoi_entity){.id = in->id,
                                                   .pos = {in->x, in->y, in->z},
                                                   .extra = in->extra,
                                                   .radius = in->radius,
                                                   .layers = in->layers,
                                                   .payload = in->payload.data,
                                                   .payload_len = (uint32_t)in->payload.len}; /* inside a frame, thus under FRAME_BODY_MAX */
    out->u.add_entity.mode = in->mode == AOI__V1__ADD_MODE__ADD_MODE_UNSPECIFIED ? AOI_ADD_NEW : (uint32_t)in->mode;
}

static void move_entities_in(const Aoi__V1__MoveEntities *in, struct codec_command *out)
{
    out->u.move_entities.id_n = in->n_ids;
    out->u.move_entities.x_n = in->n_x;
    out->u.move_entities.y_n = in->n_y;
    out->u.move_entities.z_n = in->n_z;
    out->u.move_entities.extra_n = in->n_extra;
    out->u.move_entities.id = in->ids;
    out->u.move_entities.x = in->x;
    out->u.move_entities.y = in->y;
    out->u.move_entities.z = in->z;
    out->u.move_entities.extra = in->extra;
}

static void set_viewport_in(const Aoi__V1__SetViewport *in, struct codec_command *out)
{
    out->u.set_viewport.player = in->player;
    out->u.set_viewport.min[0] = in->min_x;
    out->u.set_viewport.min[1] = in->min_y;
    out->u.set_viewport.min[2] = in->min_z;
    out->u.set_viewport.max[0] = in->max_x;
    out->u.set_viewport.max[1] = in->max_y;
    out->u.set_viewport.max[2] = in->max_z;
}

static void command_in(const Aoi__V1__Command *in, struct codec_command *out)
{
    *out = (struct codec_command){.kind = (enum codec_command_kind)in->kind_case};
    switch (out->kind) {
    case CODEC_CREATE_SPACE:
        codec__settings_in(in->create_space->settings, &out->u.create_space.settings);
        out->u.create_space.if_absent = in->create_space->if_absent != 0;
        break;
    case CODEC_ADD_ENTITY: add_entity_in(in->add_entity, out); break;
    case CODEC_MOVE_ENTITIES: move_entities_in(in->move_entities, out); break;
    case CODEC_REMOVE_ENTITIES:
        out->u.remove_entities.id_n = in->remove_entities->n_ids;
        out->u.remove_entities.id = in->remove_entities->ids;
        break;
    case CODEC_SET_RADIUS:
        out->u.set_radius.id = in->set_radius->id;
        out->u.set_radius.radius = in->set_radius->radius;
        break;
    case CODEC_SET_LAYERS:
        out->u.set_layers.id = in->set_layers->id;
        out->u.set_layers.layers = in->set_layers->layers;
        break;
    case CODEC_SET_PAYLOAD:
        out->u.set_payload.id = in->set_payload->id;
        out->u.set_payload.payload = in->set_payload->payload.data;
        out->u.set_payload.payload_len = in->set_payload->payload.len;
        break;
    case CODEC_OPEN_PLAYER:
        out->u.open_player.player = in->open_player->player;
        out->u.open_player.mask = in->open_player->mask;
        break;
    case CODEC_CLOSE_PLAYER: out->u.close_player.player = in->close_player->player; break;
    case CODEC_SUBSCRIBE:
        out->u.subscribe.player = in->subscribe->player;
        out->u.subscribe.entity = in->subscribe->entity;
        out->u.subscribe.include_self = in->subscribe->include_self != 0;
        break;
    case CODEC_UNSUBSCRIBE:
        out->u.unsubscribe.player = in->unsubscribe->player;
        out->u.unsubscribe.entity = in->unsubscribe->entity;
        break;
    case CODEC_SET_VIEWPORT: set_viewport_in(in->set_viewport, out); break;
    case CODEC_CLEAR_VIEWPORT: out->u.clear_viewport.player = in->clear_viewport->player; break;
    case CODEC_FLUSH: out->u.flush.tag = in->flush->tag; break;
    case CODEC_DESTROY_SPACE:
    case CODEC_COMMAND_NONE:
    case CODEC_COMMANDS: break;
    }
}

static int batch_in(const Aoi__V1__Batch *in, struct arena *arena, struct codec_client_frame *out)
{
    out->u.batch.space = in->space;
    out->u.batch.command_n = in->n_commands;
    out->u.batch.commands = codec__array(arena, in->n_commands, sizeof *out->u.batch.commands);
    if (out->u.batch.commands == NULL) return CODEC_MALFORMED;
    for (size_t i = 0; i < in->n_commands; i++) command_in(in->commands[i], &out->u.batch.commands[i]);
    return 0;
}

static void query_box_in(const Aoi__V1__Bounds *in, struct codec_query *out)
{
    out->has_box = in != NULL;
    if (out->has_box) codec__box_in(in, out->min, out->max);
}

static void query_in(const Aoi__V1__Query *in, struct codec_query *out)
{
    *out = (struct codec_query){.space = in->space};
    if (in->kind_case == AOI__V1__QUERY__KIND__NOT_SET) return;
    out->kind = (enum codec_query_kind)(in->kind_case - 1);
    switch (out->kind) {
    case CODEC_QUERY_AABB:
        query_box_in(in->aabb->box, out);
        out->layers = in->aabb->layers;
        out->cursor = in->aabb->cursor;
        out->limit = in->aabb->limit;
        break;
    case CODEC_QUERY_RADIUS:
        out->center[0] = in->radius->x;
        out->center[1] = in->radius->y;
        out->center[2] = in->radius->z;
        out->radius = in->radius->radius;
        out->layers = in->radius->layers;
        out->cursor = in->radius->cursor;
        out->limit = in->radius->limit;
        break;
    case CODEC_QUERY_COUNT:
        query_box_in(in->count->box, out);
        out->layers = in->count->layers;
        break;
    case CODEC_QUERY_GET_ENTITY: out->id = in->get_entity->id; break;
    case CODEC_QUERY_VIEW:
        out->id = in->view->player;
        out->cursor = in->view->cursor;
        out->limit = in->view->limit;
        break;
    case CODEC_QUERY_LIST_SPACES:
        out->cursor = in->list_spaces->cursor;
        out->limit = in->list_spaces->limit;
        break;
    case CODEC_QUERY_STATS:
    case CODEC_QUERY_NONE:
    case CODEC_QUERIES: break;
    }
}

int codec_decode_client(const void *bytes, size_t len, struct arena *arena, struct codec_client_frame *out)
{
    const Aoi__V1__ClientFrame *in = codec__unpack(&aoi__v1__client_frame__descriptor, bytes, len, arena);
    if (in == NULL) return CODEC_MALFORMED;
    *out = (struct codec_client_frame){.seq = in->seq};
    if (in->kind_case == AOI__V1__CLIENT_FRAME__KIND__NOT_SET) return 0;
    out->kind = (enum codec_client_kind)(in->kind_case - 1);
    switch (out->kind) {
    case CODEC_HELLO:
        out->u.hello.protocol_version = in->hello->protocol_version;
        out->u.hello.client_name = in->hello->client_name;
        break;
    case CODEC_BATCH: return batch_in(in->batch, arena, out);
    case CODEC_QUERY: query_in(in->query, &out->u.query); break;
    case CODEC_RESYNC:
        out->u.resync.space = in->resync->space;
        out->u.resync.player = in->resync->player;
        break;
    case CODEC_PING: out->u.ping.nonce = in->ping->nonce; break;
    case CODEC_BYE:
    case CODEC_CLIENT_NONE:
    case CODEC_CLIENT_KINDS: break;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------- encoding */

/* A command, the message inside it and what that one points to. */
struct command_out {
    Aoi__V1__Command command;
    union {
        struct {
            Aoi__V1__CreateSpace message;
            Aoi__V1__SpaceSettings settings;
            Aoi__V1__Bounds bounds;
        } create_space;
        Aoi__V1__DestroySpace destroy_space;
        Aoi__V1__AddEntity add_entity;
        Aoi__V1__MoveEntities move_entities;
        Aoi__V1__RemoveEntities remove_entities;
        Aoi__V1__SetRadius set_radius;
        Aoi__V1__SetLayers set_layers;
        Aoi__V1__SetPayload set_payload;
        Aoi__V1__OpenPlayer open_player;
        Aoi__V1__ClosePlayer close_player;
        Aoi__V1__Subscribe subscribe;
        Aoi__V1__Unsubscribe unsubscribe;
        Aoi__V1__SetViewport set_viewport;
        Aoi__V1__ClearViewport clear_viewport;
        Aoi__V1__Flush flush;
    } u;
};

/* Makes the message of the union's member and lets the command point to it. protobuf-c has no const: it only reads what it packs. */
#define PUT(member, type, ...)                                   \
    do {                                                         \
        o->u.member = CODEC__MESSAGE(type, member, __VA_ARGS__); \
        o->command.member = &o->u.member;                        \
    } while (0)

static void create_space_out(const struct codec_command *in, struct command_out *o)
{
    o->u.create_space.settings = codec__settings_out(&in->u.create_space.settings, &o->u.create_space.bounds);
    o->u.create_space.message = CODEC__MESSAGE(CreateSpace, create_space, .settings = &o->u.create_space.settings,
                                               .if_absent = in->u.create_space.if_absent);
    o->command.create_space = &o->u.create_space.message;
}

static void player_command_out(const struct codec_command *in, struct command_out *o)
{
    const float *min = in->u.set_viewport.min, *max = in->u.set_viewport.max;
    switch (in->kind) {
    case CODEC_OPEN_PLAYER: PUT(open_player, OpenPlayer, .player = in->u.open_player.player, .mask = in->u.open_player.mask); break;
    case CODEC_CLOSE_PLAYER: PUT(close_player, ClosePlayer, .player = in->u.close_player.player); break;
    case CODEC_SUBSCRIBE:
        PUT(subscribe, Subscribe, .player = in->u.subscribe.player, .entity = in->u.subscribe.entity, .include_self = in->u.subscribe.include_self);
        break;
    case CODEC_UNSUBSCRIBE: PUT(unsubscribe, Unsubscribe, .player = in->u.unsubscribe.player, .entity = in->u.unsubscribe.entity); break;
    case CODEC_SET_VIEWPORT:
        PUT(set_viewport, SetViewport, .player = in->u.set_viewport.player, .min_x = min[0], .min_y = min[1], .min_z = min[2], .max_x = max[0],
            .max_y = max[1], .max_z = max[2]);
        break;
    case CODEC_CLEAR_VIEWPORT: PUT(clear_viewport, ClearViewport, .player = in->u.clear_viewport.player); break;
    default: break;
    }
}

static void entity_command_out(const struct codec_command *in, struct command_out *o)
{
    const struct aoi_entity *e = &in->u.add_entity.entity;
    switch (in->kind) {
    case CODEC_ADD_ENTITY:
        PUT(add_entity, AddEntity, .id = e->id, .mode = (Aoi__V1__AddMode)in->u.add_entity.mode, .x = e->pos[0], .y = e->pos[1], .z = e->pos[2],
            .extra = e->extra, .radius = e->radius, .layers = e->layers, .payload = {.len = e->payload_len, .data = (uint8_t *)e->payload});
        break;
    case CODEC_MOVE_ENTITIES:
        PUT(move_entities, MoveEntities, .n_ids = in->u.move_entities.id_n, .ids = (uint64_t *)in->u.move_entities.id, .n_x = in->u.move_entities.x_n,
            .x = (float *)in->u.move_entities.x, .n_y = in->u.move_entities.y_n, .y = (float *)in->u.move_entities.y, .n_z = in->u.move_entities.z_n,
            .z = (float *)in->u.move_entities.z, .n_extra = in->u.move_entities.extra_n, .extra = (uint32_t *)in->u.move_entities.extra);
        break;
    case CODEC_REMOVE_ENTITIES:
        PUT(remove_entities, RemoveEntities, .n_ids = in->u.remove_entities.id_n, .ids = (uint64_t *)in->u.remove_entities.id);
        break;
    case CODEC_SET_RADIUS: PUT(set_radius, SetRadius, .id = in->u.set_radius.id, .radius = in->u.set_radius.radius); break;
    case CODEC_SET_LAYERS: PUT(set_layers, SetLayers, .id = in->u.set_layers.id, .layers = in->u.set_layers.layers); break;
    case CODEC_SET_PAYLOAD:
        PUT(set_payload, SetPayload, .id = in->u.set_payload.id,
            .payload = {.len = in->u.set_payload.payload_len, .data = (uint8_t *)in->u.set_payload.payload});
        break;
    default: player_command_out(in, o); break;
    }
}

static void command_out(const struct codec_command *in, struct command_out *o)
{
    o->command = CODEC__MESSAGE(Command, command, .kind_case = (Aoi__V1__Command__KindCase)in->kind);
    switch (in->kind) {
    case CODEC_CREATE_SPACE: create_space_out(in, o); break;
    case CODEC_DESTROY_SPACE: PUT(destroy_space, DestroySpace, ); break;
    case CODEC_FLUSH: PUT(flush, Flush, .tag = in->u.flush.tag); break;
    case CODEC_COMMAND_NONE: break;
    default: entity_command_out(in, o); break;
    }
}

static size_t batch_out(const struct codec_client_frame *frame, struct buf *out)
{
    size_t n = frame->u.batch.command_n;
    struct command_out *commands = mem_alloc(n * sizeof *commands);
    Aoi__V1__Command **pointers = mem_alloc(n * sizeof(Aoi__V1__Command *));
    for (size_t i = 0; i < n; i++) {
        command_out(&frame->u.batch.commands[i], &commands[i]);
        pointers[i] = &commands[i].command;
    }
    Aoi__V1__Batch batch = CODEC__MESSAGE(Batch, batch, .space = frame->u.batch.space, .n_commands = n, .commands = pointers);
    Aoi__V1__ClientFrame message = CODEC__MESSAGE(ClientFrame, client_frame, .seq = frame->seq, .kind_case = AOI__V1__CLIENT_FRAME__KIND_BATCH,
                                                  .batch = &batch);
    size_t len = codec__pack(&message.base, out);
    free(pointers);
    free(commands);
    return len;
}

static size_t query_out(const struct codec_client_frame *frame, struct buf *out)
{
    const struct codec_query *q = &frame->u.query;
    Aoi__V1__Bounds box = codec__box_out(q->min, q->max);
    Aoi__V1__AabbQuery aabb = CODEC__MESSAGE(AabbQuery, aabb_query, .box = q->has_box ? &box : NULL, .layers = q->layers, .cursor = q->cursor,
                                             .limit = q->limit);
    Aoi__V1__RadiusQuery radius = CODEC__MESSAGE(RadiusQuery, radius_query, .x = q->center[0], .y = q->center[1], .z = q->center[2],
                                                 .radius = q->radius, .layers = q->layers, .cursor = q->cursor, .limit = q->limit);
    Aoi__V1__CountQuery count = CODEC__MESSAGE(CountQuery, count_query, .box = q->has_box ? &box : NULL, .layers = q->layers);
    Aoi__V1__GetEntityQuery get_entity = CODEC__MESSAGE(GetEntityQuery, get_entity_query, .id = q->id);
    Aoi__V1__ViewQuery view = CODEC__MESSAGE(ViewQuery, view_query, .player = q->id, .cursor = q->cursor, .limit = q->limit);
    Aoi__V1__StatsQuery stats = CODEC__MESSAGE(StatsQuery, stats_query, );
    Aoi__V1__ListSpacesQuery list_spaces = CODEC__MESSAGE(ListSpacesQuery, list_spaces_query, .cursor = q->cursor, .limit = q->limit);

    Aoi__V1__Query query = CODEC__MESSAGE(Query, query, .space = q->space);
    if (q->kind != CODEC_QUERY_NONE) query.kind_case = (Aoi__V1__Query__KindCase)(q->kind + 1);
    switch (q->kind) {
    case CODEC_QUERY_AABB: query.aabb = &aabb; break;
    case CODEC_QUERY_RADIUS: query.radius = &radius; break;
    case CODEC_QUERY_COUNT: query.count = &count; break;
    case CODEC_QUERY_GET_ENTITY: query.get_entity = &get_entity; break;
    case CODEC_QUERY_VIEW: query.view = &view; break;
    case CODEC_QUERY_STATS: query.stats = &stats; break;
    case CODEC_QUERY_LIST_SPACES: query.list_spaces = &list_spaces; break;
    case CODEC_QUERY_NONE:
    case CODEC_QUERIES: break;
    }
    Aoi__V1__ClientFrame message = CODEC__MESSAGE(ClientFrame, client_frame, .seq = frame->seq, .kind_case = AOI__V1__CLIENT_FRAME__KIND_QUERY,
                                                  .query = &query);
    return codec__pack(&message.base, out);
}

size_t codec_encode_client(const struct codec_client_frame *frame, struct buf *out)
{
    if (frame->kind == CODEC_BATCH) return batch_out(frame, out);
    if (frame->kind == CODEC_QUERY) return query_out(frame, out);
    Aoi__V1__Hello hello;
    Aoi__V1__Resync resync;
    Aoi__V1__Ping ping;
    Aoi__V1__Bye bye = CODEC__MESSAGE(Bye, bye, );
    Aoi__V1__ClientFrame message = CODEC__MESSAGE(ClientFrame, client_frame, .seq = frame->seq);
    if (frame->kind != CODEC_CLIENT_NONE) message.kind_case = (Aoi__V1__ClientFrame__KindCase)(frame->kind + 1);
    switch (frame->kind) {
    case CODEC_HELLO:
        hello = CODEC__MESSAGE(Hello, hello, .protocol_version = frame->u.hello.protocol_version, .client_name = (char *)frame->u.hello.client_name);
        message.hello = &hello;
        break;
    case CODEC_RESYNC:
        resync = CODEC__MESSAGE(Resync, resync, .space = frame->u.resync.space, .player = frame->u.resync.player);
        message.resync = &resync;
        break;
    case CODEC_PING:
        ping = CODEC__MESSAGE(Ping, ping, .nonce = frame->u.ping.nonce);
        message.ping = &ping;
        break;
    case CODEC_BYE: message.bye = &bye; break;
    default: break;
    }
    return codec__pack(&message.base, out);
}
