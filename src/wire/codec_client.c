/* codec_client.c: the frames that a client sends. */
#include <stdlib.h>

#include "base/check.h"
#include "wire/codec.h"
#include "wire/codec_internal.h"

/* A command's kind is its field number in Command, a query's kind and a frame's are one less than theirs. */
_Static_assert(CODEC_CREATE_SPACE == (int)AOI__V1__COMMAND__KIND_CREATE_SPACE && CODEC_PUBLISH == (int)AOI__V1__COMMAND__KIND_PUBLISH, "commands");
_Static_assert(CODEC_QUERY_AABB + 1 == (int)AOI__V1__QUERY__KIND_AABB && CODEC_QUERY_WHY + 1 == (int)AOI__V1__QUERY__KIND_WHY, "queries");
_Static_assert(CODEC_PUBLISH_ENTITY == (int)AOI__V1__PUBLISH__FROM_ENTITY && CODEC_PUBLISH_BOX == (int)AOI__V1__PUBLISH__FROM_BOX, "publishing");
_Static_assert(sizeof(struct codec_command) <= 88, "the bound of codec_decode_client() counts on it");
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
                                                   .payload_len = (uint32_t)in->payload.len, /* inside a frame, thus under FRAME_BODY_MAX */
                                                   .appeal = in->appeal,
                                                   .priority = in->priority,
                                                   .report_observed = in->report_observed != 0};
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

/* False: over the arena's cap. */
static bool create_space_in(const Aoi__V1__CreateSpace *in, struct arena *arena, struct codec_command *out)
{
    struct codec_create_space *create = codec__array(arena, 1, sizeof *create);
    if (create == NULL) return false;
    *create = (struct codec_create_space){.if_absent = in->if_absent != 0};
    create->tiers_error = codec__settings_in(in->settings, &create->settings);
    out->u.create_space = create;
    return true;
}

static bool set_space_in(const Aoi__V1__SetSpace *in, struct arena *arena, struct codec_command *out)
{
    struct codec_set_space *set = codec__array(arena, 1, sizeof *set);
    if (set == NULL) return false;
    *set = (struct codec_set_space){0};
    struct aoi_space_change *change = &set->change;
    change->has_flush_ms = in->flush_case == AOI__V1__SET_SPACE__FLUSH_FLUSH_MS;
    change->has_leave_margin = in->margin_case == AOI__V1__SET_SPACE__MARGIN_LEAVE_MARGIN;
    change->has_min_stay_ms = in->stay_case == AOI__V1__SET_SPACE__STAY_MIN_STAY_MS;
    change->has_max_view = in->view_case == AOI__V1__SET_SPACE__VIEW_MAX_VIEW;
    change->has_max_enter_per_flush = in->enter_case == AOI__V1__SET_SPACE__ENTER_MAX_ENTER_PER_FLUSH;
    change->has_tiers = in->tiers_case == AOI__V1__SET_SPACE__TIERS_UPDATE_TIERS;
    if (change->has_flush_ms) change->flush_ms = in->flush_ms;
    if (change->has_leave_margin) change->leave_margin = in->leave_margin;
    if (change->has_min_stay_ms) change->min_stay_ms = in->min_stay_ms;
    if (change->has_max_view) change->max_view = in->max_view;
    if (change->has_max_enter_per_flush) change->max_enter_per_flush = in->max_enter_per_flush;
    if (change->has_tiers) set->tiers_error = codec__tiers_in(in->update_tiers, &change->tiers);
    out->u.set_space = set;
    return true;
}

static void publish_in(const Aoi__V1__Publish *in, struct codec_command *out)
{
    out->u.publish.kind = (enum codec_publish_kind)in->from_case;
    out->u.publish.message = in->message.data;
    out->u.publish.message_len = in->message.len;
    switch (out->u.publish.kind) {
    case CODEC_PUBLISH_ENTITY: out->u.publish.entity = in->entity; break;
    case CODEC_PUBLISH_POINT:
        out->u.publish.min[0] = out->u.publish.max[0] = in->point->x;
        out->u.publish.min[1] = out->u.publish.max[1] = in->point->y;
        out->u.publish.min[2] = out->u.publish.max[2] = in->point->z;
        break;
    case CODEC_PUBLISH_BOX: codec__box_in(in->box, out->u.publish.min, out->u.publish.max); break;
    case CODEC_PUBLISH_NOWHERE: break;
    }
}

static void player_command_in(const Aoi__V1__Command *in, struct codec_command *out)
{
    switch (out->kind) {
    case CODEC_OPEN_PLAYER:
        out->u.open_player.player = in->open_player->player;
        out->u.open_player.settings = (struct aoi_player_settings){.mask = in->open_player->mask,
                                                                   .max_view = in->open_player->max_view,
                                                                   .leave_margin = in->open_player->leave_margin,
                                                                   .max_enter_per_flush = in->open_player->max_enter_per_flush,
                                                                   .presence_only = in->open_player->presence_only != 0,
                                                                   .take_over = in->open_player->take_over != 0,
                                                                   .keep = in->open_player->keep_settings != 0};
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
    case CODEC_OVERRIDE:
        out->u.override.player = in->override->player;
        out->u.override.entity = in->override->entity;
        out->u.override.kind = in->override->kind == AOI__V1__OVERRIDE_KIND__OVERRIDE_KIND_UNSPECIFIED ? AOI_OVERRIDE_NONE
                                                                                                       : (uint32_t)in->override->kind;
        break;
    default: break;
    }
}

static void entity_command_in(const Aoi__V1__Command *in, struct codec_command *out)
{
    switch (out->kind) {
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
    case CODEC_SET_APPEAL:
        out->u.set_appeal.id = in->set_appeal->id;
        out->u.set_appeal.appeal = in->set_appeal->appeal;
        break;
    case CODEC_SET_PRIORITY:
        out->u.set_priority.id = in->set_priority->id;
        out->u.set_priority.priority = in->set_priority->priority;
        break;
    case CODEC_PUBLISH: publish_in(in->publish, out); break;
    default: player_command_in(in, out); break;
    }
}

/* False: over the arena's cap. */
static bool command_in(const Aoi__V1__Command *in, struct arena *arena, struct codec_command *out)
{
    *out = (struct codec_command){.kind = (enum codec_command_kind)in->kind_case};
    switch (out->kind) {
    case CODEC_CREATE_SPACE: return create_space_in(in->create_space, arena, out);
    case CODEC_SET_SPACE: return set_space_in(in->set_space, arena, out);
    case CODEC_RELEASE:
        out->u.release.entity_n = in->release->n_entities;
        out->u.release.entities = in->release->entities;
        out->u.release.player_n = in->release->n_players;
        out->u.release.players = in->release->players;
        out->u.release.to_session = in->release->to_session;
        break;
    case CODEC_FLUSH: out->u.flush.tag = in->flush->tag; break;
    case CODEC_DESTROY_SPACE:
    case CODEC_COMMAND_NONE: break;
    default: entity_command_in(in, out); break;
    }
    return true;
}

static int batch_in(const Aoi__V1__Batch *in, struct arena *arena, struct codec_client_frame *out)
{
    out->u.batch.space = in->space;
    out->u.batch.command_n = in->n_commands;
    out->u.batch.commands = codec__array(arena, in->n_commands, sizeof *out->u.batch.commands);
    if (out->u.batch.commands == NULL) return CODEC_MALFORMED;
    for (size_t i = 0; i < in->n_commands; i++)
        if (!command_in(in->commands[i], arena, &out->u.batch.commands[i])) return CODEC_MALFORMED;
    return 0;
}

static void query_box_in(const Aoi__V1__Bounds *in, struct codec_query *out)
{
    out->has_box = in != NULL;
    if (out->has_box) codec__box_in(in, out->min, out->max);
}

/* The queries that look into views and crowds. */
static void looking_query_in(const Aoi__V1__Query *in, struct codec_query *out)
{
    switch (out->kind) {
    case CODEC_QUERY_NEAREST:
        out->center[0] = in->nearest->x;
        out->center[1] = in->nearest->y;
        out->center[2] = in->nearest->z;
        out->radius = in->nearest->max_distance;
        out->layers = in->nearest->layers;
        out->k = in->nearest->k;
        break;
    case CODEC_QUERY_OBSERVERS:
        out->id = in->observers->id;
        out->cursor = in->observers->cursor;
        out->limit = in->observers->limit;
        break;
    case CODEC_QUERY_DENSITY:
        query_box_in(in->density->box, out);
        out->layers = in->density->layers;
        out->columns = in->density->columns;
        out->rows = in->density->rows;
        break;
    case CODEC_QUERY_WHY:
        out->player = in->why->player;
        out->id = in->why->entity;
        break;
    case CODEC_QUERY_VIEW:
        out->id = in->view->player;
        out->cursor = in->view->cursor;
        out->limit = in->view->limit;
        break;
    default: break;
    }
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
    case CODEC_QUERY_LIST_SPACES:
        out->cursor = in->list_spaces->cursor;
        out->limit = in->list_spaces->limit;
        break;
    default: looking_query_in(in, out); break;
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
        out->u.hello.token = in->hello->token;
        out->u.hello.lease_ms = in->hello->lease_ms;
        out->u.hello.resume_session = in->hello->resume_session;
        out->u.hello.resume_token_len = in->hello->resume_token.len;
        out->u.hello.resume_token = in->hello->resume_token.data;
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

/* The two that are large and rare: made in an arena. */
struct create_space_out {
    Aoi__V1__CreateSpace message;
    struct codec__settings settings;
};

struct set_space_out {
    Aoi__V1__SetSpace message;
    char tiers[AOI_TIERS_TEXT];
};

/* A command, the message inside it and what that one points to. */
struct command_out {
    Aoi__V1__Command command;
    union {
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
        Aoi__V1__SetAppeal set_appeal;
        Aoi__V1__SetPriority set_priority;
        Aoi__V1__Release release;
        Aoi__V1__Override override;
        struct {
            Aoi__V1__Publish message;
            Aoi__V1__Point point;
            Aoi__V1__Bounds box;
        } publish;
    } u;
};

/* Makes the message of the union's member and lets the command point to it. protobuf-c has no const: it only reads what it packs. */
#define PUT(member, type, ...)                                   \
    do {                                                         \
        o->u.member = CODEC__MESSAGE(type, member, __VA_ARGS__); \
        o->command.member = &o->u.member;                        \
    } while (0)

static void create_space_out(const struct codec_create_space *in, struct arena *arena, struct command_out *o)
{
    struct create_space_out *create = arena_alloc(arena, sizeof *create);
    codec__settings_out(&in->settings, &create->settings);
    create->message = CODEC__MESSAGE(CreateSpace, create_space, .settings = &create->settings.message, .if_absent = in->if_absent);
    o->command.create_space = &create->message;
}

static void set_space_out(const struct aoi_space_change *in, struct arena *arena, struct command_out *o)
{
    struct set_space_out *set = arena_alloc(arena, sizeof *set);
    set->message = CODEC__MESSAGE(SetSpace, set_space, .flush_ms = in->flush_ms, .leave_margin = in->leave_margin, .min_stay_ms = in->min_stay_ms,
                                  .max_view = in->max_view, .max_enter_per_flush = in->max_enter_per_flush, .update_tiers = set->tiers);
    if (in->has_flush_ms) set->message.flush_case = AOI__V1__SET_SPACE__FLUSH_FLUSH_MS;
    if (in->has_leave_margin) set->message.margin_case = AOI__V1__SET_SPACE__MARGIN_LEAVE_MARGIN;
    if (in->has_min_stay_ms) set->message.stay_case = AOI__V1__SET_SPACE__STAY_MIN_STAY_MS;
    if (in->has_max_view) set->message.view_case = AOI__V1__SET_SPACE__VIEW_MAX_VIEW;
    if (in->has_max_enter_per_flush) set->message.enter_case = AOI__V1__SET_SPACE__ENTER_MAX_ENTER_PER_FLUSH;
    if (in->has_tiers) set->message.tiers_case = AOI__V1__SET_SPACE__TIERS_UPDATE_TIERS;
    aoi_tiers_print(&in->tiers, set->tiers);
    o->command.set_space = &set->message;
}

static void publish_out(const struct codec_command *in, struct command_out *o)
{
    const float *min = in->u.publish.min;
    o->u.publish.message = CODEC__MESSAGE(Publish, publish, .from_case = (Aoi__V1__Publish__FromCase)in->u.publish.kind,
                                          .message = {.len = in->u.publish.message_len, .data = (uint8_t *)in->u.publish.message});
    switch (in->u.publish.kind) {
    case CODEC_PUBLISH_ENTITY: o->u.publish.message.entity = in->u.publish.entity; break;
    case CODEC_PUBLISH_POINT:
        o->u.publish.point = CODEC__MESSAGE(Point, point, .x = min[0], .y = min[1], .z = min[2]);
        o->u.publish.message.point = &o->u.publish.point;
        break;
    case CODEC_PUBLISH_BOX:
        o->u.publish.box = codec__box_out(min, in->u.publish.max);
        o->u.publish.message.box = &o->u.publish.box;
        break;
    case CODEC_PUBLISH_NOWHERE: break;
    }
    o->command.publish = &o->u.publish.message;
}

static void player_command_out(const struct codec_command *in, struct command_out *o)
{
    const struct aoi_player_settings *set = &in->u.open_player.settings;
    const float *min = in->u.set_viewport.min, *max = in->u.set_viewport.max;
    switch (in->kind) {
    case CODEC_OPEN_PLAYER:
        PUT(open_player, OpenPlayer, .player = in->u.open_player.player, .mask = set->mask, .max_view = set->max_view,
            .leave_margin = set->leave_margin, .max_enter_per_flush = set->max_enter_per_flush, .presence_only = set->presence_only,
            .take_over = set->take_over, .keep_settings = set->keep);
        break;
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
    case CODEC_OVERRIDE:
        PUT(override, Override, .player = in->u.override.player, .entity = in->u.override.entity, .kind = (Aoi__V1__OverrideKind)in->u.override.kind);
        break;
    default: break;
    }
}

static void entity_command_out(const struct codec_command *in, struct command_out *o)
{
    const struct aoi_entity *e = &in->u.add_entity.entity;
    switch (in->kind) {
    case CODEC_ADD_ENTITY:
        PUT(add_entity, AddEntity, .id = e->id, .mode = (Aoi__V1__AddMode)in->u.add_entity.mode, .x = e->pos[0], .y = e->pos[1], .z = e->pos[2],
            .extra = e->extra, .radius = e->radius, .layers = e->layers, .payload = {.len = e->payload_len, .data = (uint8_t *)e->payload},
            .appeal = e->appeal, .priority = e->priority, .report_observed = e->report_observed);
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
    case CODEC_SET_APPEAL: PUT(set_appeal, SetAppeal, .id = in->u.set_appeal.id, .appeal = in->u.set_appeal.appeal); break;
    case CODEC_SET_PRIORITY: PUT(set_priority, SetPriority, .id = in->u.set_priority.id, .priority = in->u.set_priority.priority); break;
    case CODEC_PUBLISH: publish_out(in, o); break;
    default: player_command_out(in, o); break;
    }
}

static void command_out(const struct codec_command *in, struct arena *arena, struct command_out *o)
{
    o->command = CODEC__MESSAGE(Command, command, .kind_case = (Aoi__V1__Command__KindCase)in->kind);
    switch (in->kind) {
    case CODEC_CREATE_SPACE: create_space_out(in->u.create_space, arena, o); break;
    case CODEC_SET_SPACE: set_space_out(&in->u.set_space->change, arena, o); break;
    case CODEC_DESTROY_SPACE: PUT(destroy_space, DestroySpace, ); break;
    case CODEC_FLUSH: PUT(flush, Flush, .tag = in->u.flush.tag); break;
    case CODEC_RELEASE:
        PUT(release, Release, .n_entities = in->u.release.entity_n, .entities = (uint64_t *)in->u.release.entities,
            .n_players = in->u.release.player_n, .players = (uint64_t *)in->u.release.players, .to_session = in->u.release.to_session);
        break;
    case CODEC_COMMAND_NONE: break;
    default: entity_command_out(in, o); break;
    }
}

static size_t batch_out(const struct codec_client_frame *frame, struct buf *out)
{
    size_t n = frame->u.batch.command_n;
    struct arena arena;
    arena_init(&arena, SIZE_MAX / 2);
    struct command_out *commands = mem_alloc(n * sizeof *commands);
    Aoi__V1__Command **pointers = mem_alloc(n * sizeof(Aoi__V1__Command *));
    for (size_t i = 0; i < n; i++) {
        command_out(&frame->u.batch.commands[i], &arena, &commands[i]);
        pointers[i] = &commands[i].command;
    }
    Aoi__V1__Batch batch = CODEC__MESSAGE(Batch, batch, .space = frame->u.batch.space, .n_commands = n, .commands = pointers);
    Aoi__V1__ClientFrame message = CODEC__MESSAGE(ClientFrame, client_frame, .seq = frame->seq, .kind_case = AOI__V1__CLIENT_FRAME__KIND_BATCH,
                                                  .batch = &batch);
    size_t len = codec__pack(&message.base, out);
    free(pointers);
    free(commands);
    arena_clear(&arena);
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

    Aoi__V1__NearestQuery nearest = CODEC__MESSAGE(NearestQuery, nearest_query, .x = q->center[0], .y = q->center[1], .z = q->center[2], .k = q->k,
                                                   .max_distance = q->radius, .layers = q->layers);
    Aoi__V1__ObserversQuery observers = CODEC__MESSAGE(ObserversQuery, observers_query, .id = q->id, .cursor = q->cursor, .limit = q->limit);
    Aoi__V1__DensityQuery density = CODEC__MESSAGE(DensityQuery, density_query, .box = q->has_box ? &box : NULL, .columns = q->columns,
                                                   .rows = q->rows, .layers = q->layers);
    Aoi__V1__WhyQuery why = CODEC__MESSAGE(WhyQuery, why_query, .player = q->player, .entity = q->id);

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
    case CODEC_QUERY_NEAREST: query.nearest = &nearest; break;
    case CODEC_QUERY_OBSERVERS: query.observers = &observers; break;
    case CODEC_QUERY_DENSITY: query.density = &density; break;
    case CODEC_QUERY_WHY: query.why = &why; break;
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
        hello = CODEC__MESSAGE(Hello, hello, .protocol_version = frame->u.hello.protocol_version, .client_name = (char *)frame->u.hello.client_name,
                               .token = (char *)frame->u.hello.token, .lease_ms = frame->u.hello.lease_ms,
                               .resume_session = frame->u.hello.resume_session,
                               .resume_token = {frame->u.hello.resume_token_len, (uint8_t *)frame->u.hello.resume_token});
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
