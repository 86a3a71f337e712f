/* explain.c: why a command or a query was refused: a sentence that names what is wrong with it. */
#include "server/explain.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 200

static const char *const axes[] = {"x", "y", "z"};

static uint32_t axes_of(const struct aoi_space *space)
{
    return aoi_space_settings(space)->dimensions == 3 ? 3 : 2;
}

/* NULL where the frame has used up its arena: the caller has a literal for that. */
__attribute__((format(printf, 2, 3))) static const char *say(struct dispatch *d, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *kept = arena_alloc(&d->arena, strlen(text) + 1);
    return kept != NULL ? strcpy(kept, text) : NULL; /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): just so much was allocated */
}

/* ------------------------------------------------------------------------------------------------------------- one argument each; NULL: it is fine */

static const char *entity_fault(uint64_t id)
{
    return id == 0 ? "the entity id is 0; ids begin at 1" : NULL;
}

static const char *player_fault(uint64_t id)
{
    return id == 0 ? "the player id is 0; ids begin at 1" : NULL;
}

static const char *number_fault(struct dispatch *d, const char *prefix, const char *name, float value)
{
    return isfinite(value) ? NULL : say(d, "%s%s is %s, not a finite number", prefix, name, isnan(value) ? "NaN" : "infinite");
}

static const char *point_fault(struct dispatch *d, const struct aoi_space *space, const float point[3])
{
    const char *fault = NULL;
    for (uint32_t a = 0; a < 3 && a < axes_of(space) && fault == NULL; a++) fault = number_fault(d, "", axes[a], point[a]);
    return fault;
}

static const char *position_fault(struct dispatch *d, const struct aoi_space *space, const float pos[3])
{
    const struct aoi_settings *set = aoi_space_settings(space);
    const char *fault = point_fault(d, space, pos);
    for (uint32_t a = 0; a < axes_of(space) && fault == NULL; a++) {
        if (fabsf(pos[a]) > AOI_COORD_MAX)
            fault = say(d, "%s is %.9g, beyond +-16777216", axes[a], (double)pos[a]);
        else if (set->bounded && (pos[a] < set->min[a] || pos[a] > set->max[a]))
            fault = say(d, "%s is %.9g, outside the bounds of the space: %.9g to %.9g", axes[a], (double)pos[a], (double)set->min[a],
                        (double)set->max[a]);
    }
    return fault;
}

static const char *distance_fault(struct dispatch *d, const char *name, float value)
{
    if (!isfinite(value)) return number_fault(d, "", name, value);
    return value < 0 ? say(d, "%s is %.9g; it must not be negative", name, (double)value) : NULL;
}

static const char *radius_fault(struct dispatch *d, float radius, float most)
{
    const char *fault = distance_fault(d, "radius", radius);
    if (fault != NULL) return fault;
    return most > 0 && radius > most ? say(d, "radius is %.9g, over max_radius = %.9g", (double)radius, (double)most) : NULL;
}

static const char *box_fault(struct dispatch *d, const struct aoi_space *space, const float min[3], const float max[3])
{
    const char *fault = NULL;
    for (uint32_t a = 0; a < axes_of(space) && fault == NULL; a++) {
        fault = number_fault(d, "min_", axes[a], min[a]);
        if (fault == NULL) fault = number_fault(d, "max_", axes[a], max[a]);
        if (fault == NULL && min[a] > max[a])
            fault = say(d, "min_%s is %.9g, above max_%s, which is %.9g", axes[a], (double)min[a], axes[a], (double)max[a]);
    }
    return fault;
}

/* ------------------------------------------------------------------------------------------------------------- commands, by what the core said */

static const char *move_fault(struct dispatch *d, const struct aoi_space *space, const struct codec_command *command, size_t item)
{
    const float pos[3] = {command->u.move_entities.x[item], command->u.move_entities.y[item],
                          command->u.move_entities.z_n > 0 ? command->u.move_entities.z[item] : 0.0f};
    const char *fault = entity_fault(command->u.move_entities.id[item]);
    return fault != NULL ? fault : position_fault(d, space, pos);
}

static const char *add_fault(struct dispatch *d, const struct aoi_space *space, const struct aoi_entity *entity)
{
    const char *fault = entity_fault(entity->id);
    if (fault == NULL) fault = radius_fault(d, entity->radius, d->config->max_radius);
    if (fault == NULL) fault = distance_fault(d, "appeal", entity->appeal);
    return fault != NULL ? fault : position_fault(d, space, entity->pos);
}

static const char *set_space_fault(struct dispatch *d, const struct aoi_space *space, const struct aoi_space_change *change)
{
    struct aoi_settings set = *aoi_space_settings(space);
    const char *why = NULL;
    if (change->has_leave_margin) why = distance_fault(d, "leave_margin", change->leave_margin);
    if (change->has_flush_ms) set.flush_ms = change->flush_ms;
    if (change->has_max_view) set.max_view = change->max_view;
    if (change->has_tiers) set.tiers = change->tiers;
    if (why == NULL) aoi_settings_check(&set, &why);
    return why;
}

static const char *publish_fault(struct dispatch *d, const struct aoi_space *space, const struct codec_command *command)
{
    switch (command->u.publish.kind) {
    case CODEC_PUBLISH_ENTITY: return entity_fault(command->u.publish.entity);
    case CODEC_PUBLISH_POINT: return point_fault(d, space, command->u.publish.min);
    case CODEC_PUBLISH_BOX: return box_fault(d, space, command->u.publish.min, command->u.publish.max);
    default: return NULL;
    }
}

/* INVALID_ARGUMENT and OUT_OF_BOUNDS. */
static const char *argument_fault(struct dispatch *d, const struct aoi_space *space, const struct codec_command *command, size_t item)
{
    const char *fault = NULL;
    switch (command->kind) {
    case CODEC_SET_SPACE: return set_space_fault(d, space, &command->u.set_space->change);
    case CODEC_ADD_ENTITY: return add_fault(d, space, &command->u.add_entity.entity);
    case CODEC_MOVE_ENTITIES: return move_fault(d, space, command, item);
    case CODEC_REMOVE_ENTITIES: return entity_fault(command->u.remove_entities.id[item]);
    case CODEC_SET_RADIUS:
        fault = entity_fault(command->u.set_radius.id);
        return fault != NULL ? fault : radius_fault(d, command->u.set_radius.radius, d->config->max_radius);
    case CODEC_SET_LAYERS: return entity_fault(command->u.set_layers.id);
    case CODEC_SET_PAYLOAD: return entity_fault(command->u.set_payload.id);
    case CODEC_SET_APPEAL:
        fault = entity_fault(command->u.set_appeal.id);
        return fault != NULL ? fault : distance_fault(d, "appeal", command->u.set_appeal.appeal);
    case CODEC_SET_PRIORITY: return entity_fault(command->u.set_priority.id);
    case CODEC_RELEASE: return "an id is 0; ids begin at 1";
    case CODEC_PUBLISH: return publish_fault(d, space, command);
    case CODEC_OPEN_PLAYER:
        fault = player_fault(command->u.open_player.player);
        return fault != NULL ? fault : distance_fault(d, "leave_margin", command->u.open_player.settings.leave_margin);
    case CODEC_CLOSE_PLAYER: return player_fault(command->u.close_player.player);
    case CODEC_SUBSCRIBE:
    case CODEC_UNSUBSCRIBE:
        fault = player_fault(command->u.subscribe.player);
        return fault != NULL ? fault : entity_fault(command->u.subscribe.entity);
    case CODEC_OVERRIDE: fault = player_fault(command->u.override.player); return fault != NULL ? fault : entity_fault(command->u.override.entity);
    case CODEC_SET_VIEWPORT:
        fault = player_fault(command->u.set_viewport.player);
        return fault != NULL ? fault : box_fault(d, space, command->u.set_viewport.min, command->u.set_viewport.max);
    case CODEC_CLEAR_VIEWPORT: return player_fault(command->u.clear_viewport.player);
    default: return NULL;
    }
}

static const char *payload_over(struct dispatch *d, size_t len)
{
    return len > d->config->max_payload ? say(d, "the payload has %zu bytes, over max_payload = %u", len, d->config->max_payload) : NULL;
}

static const char *publish_over(struct dispatch *d, size_t len)
{
    const struct config *config = d->config;
    if (len > config->max_message) return say(d, "the message has %zu bytes, over max_message = %u", len, config->max_message);
    return say(d, "the space has max_messages_per_flush = %u messages already; its next flush makes room", config->max_messages_per_flush);
}

static const char *limit_fault(struct dispatch *d, aoi_owner owner, struct aoi_space *space, const struct codec_command *command)
{
    const char *fault = NULL;
    switch (command->kind) {
    case CODEC_CREATE_SPACE: return say(d, "there are max_spaces = %u spaces already", d->config->max_spaces);
    case CODEC_ADD_ENTITY:
        fault = payload_over(d, command->u.add_entity.entity.payload_len);
        return fault != NULL ? fault : say(d, "the space has max_entities = %u entities already", d->config->max_entities);
    case CODEC_SET_PAYLOAD: return payload_over(d, command->u.set_payload.payload_len);
    case CODEC_SUBSCRIBE:
        /* it is not subscribed, else there were no limit to pass: this changes nothing, and tells whether the player is there */
        if (aoi_unsubscribe(space, owner, command->u.subscribe.player, command->u.subscribe.entity) != AOI_ENOPLAYER)
            return say(d, "the player has max_units = %u units already", d->config->max_units);
        break;
    case CODEC_OVERRIDE: return say(d, "the player has max_overrides = %u overrides already", d->config->max_overrides);
    case CODEC_PUBLISH: return publish_over(d, command->u.publish.message_len);
    case CODEC_OPEN_PLAYER:
    case CODEC_SET_VIEWPORT: break;
    default: return NULL;
    }
    return say(d, "the space has max_players = %u players already", d->config->max_players);
}

/* The first setting in which the space that is there differs. */
static const char *settings_fault(struct dispatch *d, const struct aoi_space *space, const struct codec_command *command)
{
    struct aoi_settings want = command->u.create_space->settings;
    const struct aoi_settings *is = aoi_space_settings(space);
    const char *why;
    if (!command->u.create_space->if_absent) return "the space exists already; with if_absent that is no error where its settings are equal";
    if (aoi_settings_check(&want, &why) != AOI_OK) return why;
    if (is->dimensions != want.dimensions) return say(d, "the space exists with dimensions %u, not %u", is->dimensions, want.dimensions);
    if (is->index != want.index) return say(d, "the space exists with index %s, not %s", config_index_name(is->index), config_index_name(want.index));
    if (is->shape != want.shape) return say(d, "the space exists with shape %s, not %s", config_shape_name(is->shape), config_shape_name(want.shape));
    if (is->cell_size != want.cell_size) return say(d, "the space exists with cell_size %.17g, not %.17g", is->cell_size, want.cell_size);
    if (is->cell_range != want.cell_range) return say(d, "the space exists with cell_range %u, not %u", is->cell_range, want.cell_range);
    if (is->bounded != want.bounded) return is->bounded ? "the space exists with bounds, not without" : "the space exists without bounds";
    for (uint32_t a = 0; is->bounded && a < axes_of(space); a++)
        if (is->min[a] != want.min[a] || is->max[a] != want.max[a])
            return say(d, "the space exists with bounds of %s from %.9g to %.9g, not from %.9g to %.9g", axes[a], (double)is->min[a],
                       (double)is->max[a], (double)want.min[a], (double)want.max[a]);
    if (is->extra != want.extra) return is->extra ? "the space exists with extra, not without" : "the space exists without extra";
    if (is->flush_ms != want.flush_ms) return say(d, "the space exists with flush_ms %u, not %u", is->flush_ms, want.flush_ms);
    if (is->leave_margin != want.leave_margin)
        return say(d, "the space exists with leave_margin %.9g, not %.9g", (double)is->leave_margin, (double)want.leave_margin);
    if (is->min_stay_ms != want.min_stay_ms) return say(d, "the space exists with min_stay_ms %u, not %u", is->min_stay_ms, want.min_stay_ms);
    if (is->max_view != want.max_view) return say(d, "the space exists with max_view %u, not %u", is->max_view, want.max_view);
    if (is->max_enter_per_flush != want.max_enter_per_flush)
        return say(d, "the space exists with max_enter_per_flush %u, not %u", is->max_enter_per_flush, want.max_enter_per_flush);
    if (is->persistent != want.persistent)
        return is->persistent ? "the space exists as a persistent one" : "the space exists, but not as a persistent one";
    return "the space exists with other update_tiers";
}

/* Only an admin's token helps where nobody owns the space. */
static const char *space_owner_fault(const struct aoi_space *space, bool destroy)
{
    if (aoi_space_configured(space))
        return destroy ? "a space of the configuration cannot be destroyed" : "changing a space of the configuration needs a token of an admin";
    if (aoi_space_owner(space) == 0) return "nobody owns the space any more: changing or destroying it needs a token of an admin";
    return "the space belongs to another session: changing or destroying it from this one needs a token of an admin";
}

/* NULL: the usual text says enough. */
static const char *owner_fault(const struct dispatch *d, const struct aoi_space *space, const struct codec_command *command, uint64_t id)
{
    bool player = false, taking = false, upsert = false;
    struct aoi_entity entity;
    switch (command->kind) {
    case CODEC_SET_SPACE:
    case CODEC_DESTROY_SPACE: return space_owner_fault(space, command->kind == CODEC_DESTROY_SPACE);
    case CODEC_RELEASE: return NULL; /* what it names may be of either kind */
    case CODEC_ADD_ENTITY:
        taking = true;
        upsert = command->u.add_entity.mode == AOI_ADD_UPSERT;
        break;
    case CODEC_OPEN_PLAYER:
        player = true;
        taking = command->u.open_player.settings.take_over;
        break;
    case CODEC_CLOSE_PLAYER:
    case CODEC_SUBSCRIBE:
    case CODEC_UNSUBSCRIBE:
    case CODEC_OVERRIDE:
    case CODEC_SET_VIEWPORT:
    case CODEC_CLEAR_VIEWPORT: player = true; break;
    default: break;
    }
    if (upsert) return "it belongs to another session, which is connected as far as is known: UPSERT does not take that, ADOPT may";
    if (taking) return "it belongs to another session, which is connected and has not released it to this one";
    aoi_owner owner = player ? aoi_player_owner(space, id) : aoi_entity_get(space, id, &entity) == AOI_OK ? entity.owner : 0;
    const struct standing *standing = sessions_of_owner(d->sessions, owner);
    if (standing == NULL || standing->session != NULL) return NULL;
    return player ? "it belongs to another session, whose connection is gone: OpenPlayer with take_over takes it over"
                  : "it belongs to another session, whose connection is gone: AddEntity with ADOPT takes it over";
}

const char *explain_command(struct dispatch *dispatch, const struct session *session, struct aoi_space *space, const struct codec_command *command,
                            size_t item, uint64_t id, int status)
{
    const char *fault = NULL;
    struct aoi_entity entity;
    switch (status) {
    case AOI_EINVAL:
    case AOI_EBOUNDS: fault = space != NULL ? argument_fault(dispatch, space, command, item) : NULL; break;
    case AOI_ELIMIT: fault = limit_fault(dispatch, session->owner, space, command); break;
    case AOI_EDUPSPACE: fault = settings_fault(dispatch, space, command); break;
    case AOI_EOWNER: fault = owner_fault(dispatch, space, command, id); break;
    case AOI_ENOENTITY:
        if (command->kind == CODEC_UNSUBSCRIBE && aoi_entity_get(space, command->u.unsubscribe.entity, &entity) == AOI_OK)
            fault = "the player is not subscribed to this entity";
        break;
    default: break;
    }
    return fault != NULL ? fault : dispatch_text(-status);
}

const char *explain_columns(struct dispatch *dispatch, const struct aoi_space *space, const struct codec_command *command)
{
    size_t z_n = command->u.move_entities.z_n;
    const char *hint = z_n == 0 && aoi_space_settings(space)->dimensions == 3 ? "; in a 3D space z is needed" : "";
    const char *text = say(dispatch, "columns of different lengths: %zu ids, %zu x, %zu y, %zu z, %zu extra%s", command->u.move_entities.id_n,
                           command->u.move_entities.x_n, command->u.move_entities.y_n, z_n, command->u.move_entities.extra_n, hint);
    return text != NULL ? text : "columns of different lengths";
}

/* ------------------------------------------------------------------------------------------------------------- queries and first frames */

static const char *query_fault(struct dispatch *d, const struct aoi_space *space, const struct codec_query *query)
{
    const char *fault = NULL;
    switch (query->kind) {
    case CODEC_QUERY_DENSITY:
        if (query->columns < 1 || query->columns > AOI_RASTER_MAX || query->rows < 1 || query->rows > AOI_RASTER_MAX)
            fault = say(d, "the raster has %u columns and %u rows; it must have 1 to %d of each", query->columns, query->rows, AOI_RASTER_MAX);
        if (fault != NULL) return fault;
        return query->has_box ? box_fault(d, space, query->min, query->max) : "the box is not set";
    case CODEC_QUERY_AABB:
    case CODEC_QUERY_COUNT: return query->has_box ? box_fault(d, space, query->min, query->max) : "the box is not set";
    case CODEC_QUERY_RADIUS: fault = point_fault(d, space, query->center); return fault != NULL ? fault : radius_fault(d, query->radius, 0);
    case CODEC_QUERY_NEAREST:
        if (query->k == 0) return "k is 0; it must be 1 or more";
        fault = point_fault(d, space, query->center);
        return fault != NULL ? fault : distance_fault(d, "max_distance", query->radius);
    case CODEC_QUERY_GET_ENTITY:
    case CODEC_QUERY_OBSERVERS: return entity_fault(query->id);
    case CODEC_QUERY_VIEW: return player_fault(query->id);
    case CODEC_QUERY_WHY: fault = player_fault(query->player); return fault != NULL ? fault : entity_fault(query->id);
    default: return NULL;
    }
}

static const char *query_over(struct dispatch *d, const struct codec_query *query)
{
    switch (query->kind) {
    case CODEC_QUERY_NEAREST: return say(d, "k is %u, over query_page = %u", query->k, d->config->query_page);
    case CODEC_QUERY_DENSITY:
        return say(d, "a raster of %u columns and %u rows does not fit in max_frame_bytes = %llu", query->columns, query->rows,
                   (unsigned long long)d->config->max_frame_bytes);
    default: return NULL;
    }
}

const char *explain_query(struct dispatch *dispatch, const struct aoi_space *space, const struct codec_query *query, int code)
{
    const char *fault = NULL;
    if (code == CODEC_LIMIT_EXCEEDED) fault = query_over(dispatch, query);
    if (code == CODEC_INVALID_ARGUMENT) fault = space == NULL ? "the space id is 0; ids begin at 1" : query_fault(dispatch, space, query);
    return fault != NULL ? fault : dispatch_text(code);
}

const char *explain_first_frame(int code, const void *bytes, size_t len)
{
    /* a length in four bytes, the highest first, begins with 0, a frame of nothing; the lowest first, it leaves zeros where the frame begins */
    if (len == 0 || *(const uint8_t *)bytes == 0)
        return "the first frame must be Hello; is its length written as a varint (7 bits a byte, the lowest first), not as 4 bytes?";
    return code == CODEC_MALFORMED ? "the first bytes are no frame: a varint with the length, and then a ClientFrame with Hello"
                                   : dispatch_text(code);
}

const char *explain_role(struct dispatch *dispatch, const struct token *token, enum role least)
{
    const char *text = say(dispatch, "this needs a token of a%s, and \"%s\" is that of a%s", least == ROLE_ADMIN ? "n admin" : " writer", token->name,
                           token->role == ROLE_READER ? " reader" : " writer");
    return text != NULL ? text : "the role of this session's token is not enough";
}

const char *explain_memory(struct dispatch *dispatch)
{
    const char *text = say(dispatch, "max_memory_bytes = %llu is reached: remove something first",
                           (unsigned long long)dispatch->config->max_memory_bytes);
    return text != NULL ? text : "max_memory_bytes is reached: remove something first";
}

const char *explain_view(struct dispatch *dispatch, uint32_t max_view)
{
    const char *text = say(dispatch, "max_view is %u; it is 65536 at most, in any configuration (0: no limit)", max_view);
    return text != NULL ? text : "max_view is 65536 at most, in any configuration";
}

const char *explain_sessions(struct dispatch *dispatch)
{
    const char *text = say(dispatch, "there are max_sessions = %u already, those included whose lease runs", dispatch->config->max_sessions);
    return text != NULL ? text : "there are max_sessions already, those included whose lease runs";
}

const char *explain_length(struct dispatch *dispatch, bool first, size_t limit)
{
    const char *text = say(
        dispatch,
        first ? "a first frame (Hello) is of %zu bytes at most: this is a longer one, or no length at all; that is a varint of at most 4 bytes"
              : "over max_frame_bytes = %zu, or no length of a frame at all: that is a varint of at most 4 bytes",
        limit);
    return text != NULL ? text : dispatch_text(CODEC_FRAME_TOO_LARGE);
}

const char *explain_seq(struct dispatch *dispatch, uint64_t seq, uint64_t last)
{
    const char *text = say(dispatch, "seq must increase from frame to frame: this one has %llu, and there was one with %llu", (unsigned long long)seq,
                           (unsigned long long)last);
    return text != NULL ? text : "seq must increase from frame to frame";
}
