/* commands.c: a batch: a table of commands with a handler each, and the Ack that says what became of them. */
#include "server/dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/explain.h"
#include "server/reload.h"

#define ERRORS_MAX 1000     /* that an Ack carries */
#define ERROR_ITEM_BYTES 32 /* of an error beside its text, at most */
#define ACK_BYTES 64        /* of an Ack beside its errors, at most */

struct batch {
    struct dispatch *dispatch;
    struct session *session;
    uint64_t space_id;
    struct aoi_space *space;             /* NULL: there is none at the moment */
    uint32_t index;                      /* of the command that runs */
    const struct codec_command *command; /* that one */
    size_t item;                         /* of a column: which id */
    uint64_t applied, errors_total;
    size_t ack_bytes; /* what the errors take so far: the Ack must fit in a frame */
    bool pending;
    size_t from; /* of a long column: where it goes on; of a flush: 1, it does; 0: the command is done */

    uint64_t seq, began_ns;
    size_t command_n;
    const struct codec_command *commands;
    struct arena arena; /* while it is open: what they, and the errors, stand in */
    error_list errors;
    uint64_t held, weight; /* what it was counted with when it was opened: texts of errors may be added to the arena since */
};

#define COLUMN_PIECE 2048 /* ids between two looks at the clock */
#define PLAYER_BYTES 640
#define STEPS_PIECE 16 /* commands, likewise, where they take no longer than MOMENT_NS; else one by one */
#define MOMENT_NS ((uint64_t)100 * 1000)

typedef void command_handler(struct batch *batch, const struct codec_command *command);

static void refuse(struct batch *batch, uint64_t id, int code, const char *text)
{
    struct dispatch *d = batch->dispatch;
    size_t bytes = ERROR_ITEM_BYTES + strlen(text);
    batch->errors_total++;
    d->metrics->errors[code]++;
    if (d->errors.n >= ERRORS_MAX || batch->ack_bytes + bytes > d->config->max_frame_bytes) return;
    batch->ack_bytes += bytes;
    *array_add(&d->errors) = (struct codec_error_item){.index = batch->index, .code = (uint32_t)code, .id = id, .text = text};
}

/* One item took effect, or it is refused with what the core says. */
static void count(struct batch *batch, uint64_t id, int status)
{
    if (status == AOI_OK)
        batch->applied++;
    else
        refuse(batch, id, -status,
               batch->dispatch->errors.n < ERRORS_MAX
                   ? explain_command(batch->dispatch, batch->session, batch->space, batch->command, batch->item, id, status)
                   : "");
}

/* The cap of max_view, wherever it is set: false, and refused. No option moves it, and the text must not send anybody to look for one. */
static bool view_fits(struct batch *batch, uint64_t id, uint32_t max_view)
{
    if (max_view <= AOI_MAX_VIEW) return true;
    refuse(batch, id, CODEC_LIMIT_EXCEEDED, explain_view(batch->dispatch, max_view));
    return false;
}

static bool is_admin(const struct batch *batch)
{
    return batch->session->token.role == ROLE_ADMIN;
}

struct held {
    uint64_t entities, players;
};

static void add_held(void *ctx, aoi_owner owner, uint32_t entities, uint32_t players)
{
    struct held *held = ctx;
    (void)owner;
    held->entities += entities;
    held->players += players;
}

/* What was done to the space, by whom. */
static void tell_space(const struct batch *batch, const char *done, const char *more)
{
    char client[SESSION_CLIENT_MAX * 4 + 3];
    log_write(dispatch_told(batch->dispatch), "space", "id=%llu %s=%llu client=%s token=%s%s", (unsigned long long)batch->space_id, done,
              (unsigned long long)batch->session->id, log_quote(batch->session->client, client, sizeof client), batch->session->token.name, more);
}

static void tell_end(const struct batch *batch, const struct held *had)
{
    char more[80];
    snprintf(more, sizeof more, " entities=%llu players=%llu", (unsigned long long)had->entities, (unsigned long long)had->players);
    tell_space(batch, "ended_by", more);
}

static void tell_change(const struct batch *batch, const struct aoi_settings *was)
{
    char list[CONFIG_ERROR_MAX], quoted[CONFIG_ERROR_MAX * 2], more[sizeof quoted + 16];
    reload_list_rules(was, aoi_space_settings(batch->space), list);
    if (list[0] == '\0') return;
    snprintf(more, sizeof more, " changed=%s", log_quote(list, quoted, sizeof quoted));
    tell_space(batch, "changed_by", more);
}

static void create_space(struct batch *batch, const struct codec_command *command)
{
    struct dispatch *d = batch->dispatch;
    const struct codec_create_space *create = command->u.create_space;
    struct aoi_settings settings = create->settings;
    const char *why = create->tiers_error;
    if (!view_fits(batch, batch->space_id, settings.max_view)) return;
    if (why != NULL || aoi_settings_check(&settings, &why) != AOI_OK) {
        refuse(batch, batch->space_id, CODEC_INVALID_ARGUMENT, why);
        return;
    }
    bool fresh = batch->space == NULL;
    int status = aoi_space_create(d->world, batch->session->owner, batch->space_id, &settings, create->if_absent);
    batch->space = aoi_space_find(d->world, batch->space_id);
    if (fresh && batch->space != NULL) tell_space(batch, "made_by", "");
    count(batch, batch->space_id, status);
}

static void destroy_space(struct batch *batch, const struct codec_command *command)
{
    (void)command;
    struct dispatch *d = batch->dispatch;
    struct held had = {0};
    if (batch->space != NULL) aoi_space_owned(batch->space, add_held, &had); /* whereas aoi_space_stats() walks over all cells */
    int status = aoi_space_destroy(d->world, batch->session->owner, is_admin(batch), batch->space_id);
    batch->space = aoi_space_find(d->world, batch->space_id);
    count(batch, batch->space_id, status);
    if (status == AOI_OK) tell_end(batch, &had);
}

static void set_space(struct batch *batch, const struct codec_command *command)
{
    const struct codec_set_space *set = command->u.set_space;
    if (set->change.has_max_view && !view_fits(batch, batch->space_id, set->change.max_view)) return;
    if (set->tiers_error != NULL) {
        refuse(batch, batch->space_id, CODEC_INVALID_ARGUMENT, set->tiers_error);
        return;
    }
    const struct aoi_settings was = *aoi_space_settings(batch->space);
    int status = aoi_space_set(batch->space, batch->session->owner, is_admin(batch), &set->change);
    count(batch, batch->space_id, status);
    if (status == AOI_OK) tell_change(batch, &was);
    flusher_rearm(batch->dispatch->flusher, batch->space);
}

static void add_entity(struct batch *batch, const struct codec_command *command)
{
    const struct aoi_entity *entity = &command->u.add_entity.entity;
    uint32_t mode = command->u.add_entity.mode;
    if (mode != AOI_ADD_NEW && mode != AOI_ADD_UPSERT && mode != AOI_ADD_ADOPT)
        refuse(batch, entity->id, CODEC_INVALID_ARGUMENT, "unknown mode");
    else
        count(batch, entity->id, aoi_entity_add(batch->space, batch->session->owner, (enum aoi_add_mode)mode, entity));
}

static void move_failed(void *ctx, size_t item, int status)
{
    struct batch *batch = ctx;
    batch->item = batch->from + item;
    count(batch, batch->command->u.move_entities.id[batch->item], status);
}

static void move_entities(struct batch *batch, const struct codec_command *command)
{
    size_t n = command->u.move_entities.id_n, z_n = command->u.move_entities.z_n, extra_n = command->u.move_entities.extra_n;
    bool flat = aoi_space_settings(batch->space)->dimensions == 2;
    if (command->u.move_entities.x_n != n || command->u.move_entities.y_n != n || !(z_n == n || (z_n == 0 && flat)) ||
        !(extra_n == n || extra_n == 0)) {
        refuse(batch, 0, CODEC_INVALID_ARGUMENT, explain_columns(batch->dispatch, batch->space, command));
        return;
    }
    if (n == 0) return; /* and there is nothing to point into */
    const float *x = command->u.move_entities.x, *y = command->u.move_entities.y, *z = z_n > 0 ? command->u.move_entities.z : NULL;
    const uint32_t *extra = extra_n > 0 ? command->u.move_entities.extra : NULL;
    size_t from = batch->from, piece = n - from < COLUMN_PIECE ? n - from : COLUMN_PIECE;
    batch->applied += aoi_entity_move_many(batch->space, batch->session->owner, piece, command->u.move_entities.id + from, x + from, y + from,
                                           z != NULL ? z + from : NULL, extra != NULL ? extra + from : NULL, move_failed, batch);
    batch->from = from + piece < n ? from + piece : 0;
}

static void remove_entities(struct batch *batch, const struct codec_command *command)
{
    const uint64_t *id = command->u.remove_entities.id;
    size_t n = command->u.remove_entities.id_n, end = n - batch->from < COLUMN_PIECE ? n : batch->from + COLUMN_PIECE;
    for (size_t i = batch->from; i < end; i++) {
        batch->item = i;
        count(batch, id[i], aoi_entity_remove(batch->space, batch->session->owner, id[i]));
    }
    batch->from = end < n ? end : 0;
}

static void set_radius(struct batch *batch, const struct codec_command *command)
{
    uint64_t id = command->u.set_radius.id;
    count(batch, id, aoi_entity_set_radius(batch->space, batch->session->owner, id, command->u.set_radius.radius));
}

static void set_layers(struct batch *batch, const struct codec_command *command)
{
    uint64_t id = command->u.set_layers.id;
    count(batch, id, aoi_entity_set_layers(batch->space, batch->session->owner, id, command->u.set_layers.layers));
}

static void set_payload(struct batch *batch, const struct codec_command *command)
{
    uint64_t id = command->u.set_payload.id;
    count(batch, id,
          aoi_entity_set_payload(batch->space, batch->session->owner, id, command->u.set_payload.payload,
                                 (uint32_t)command->u.set_payload.payload_len));
}

static void set_appeal(struct batch *batch, const struct codec_command *command)
{
    uint64_t id = command->u.set_appeal.id;
    count(batch, id, aoi_entity_set_appeal(batch->space, batch->session->owner, id, command->u.set_appeal.appeal));
}

static void set_priority(struct batch *batch, const struct codec_command *command)
{
    uint64_t id = command->u.set_priority.id;
    count(batch, id, aoi_entity_set_priority(batch->space, batch->session->owner, id, command->u.set_priority.priority));
}

static void release(struct batch *batch, const struct codec_command *command)
{
    aoi_owner owner = batch->session->owner;
    uint64_t session = command->u.release.to_session;
    aoi_owner to = sessions_owner_of_id(batch->dispatch->sessions, session);
    if (session != 0 && to == 0) {
        refuse(batch, session, CODEC_INVALID_ARGUMENT, "there is no such session");
        return;
    }
    const uint64_t *entity = command->u.release.entities, *player = command->u.release.players;
    for (size_t i = 0; i < command->u.release.entity_n; i++) count(batch, entity[i], aoi_entity_release(batch->space, owner, entity[i], to));
    for (size_t i = 0; i < command->u.release.player_n; i++) count(batch, player[i], aoi_player_release(batch->space, owner, player[i], to));
}

static void publish(struct batch *batch, const struct codec_command *command)
{
    const void *message = command->u.publish.message;
    uint32_t len = (uint32_t)command->u.publish.message_len; /* inside a frame */
    uint64_t entity = command->u.publish.entity;             /* 0 where it is a point or a box */
    switch (command->u.publish.kind) {
    case CODEC_PUBLISH_ENTITY: count(batch, entity, aoi_publish_from(batch->space, batch->session->owner, entity, message, len)); break;
    case CODEC_PUBLISH_POINT:
    case CODEC_PUBLISH_BOX: count(batch, 0, aoi_publish_at(batch->space, command->u.publish.min, command->u.publish.max, message, len)); break;
    case CODEC_PUBLISH_NOWHERE: refuse(batch, 0, CODEC_UNSUPPORTED, "neither an entity, nor a point, nor a box"); break;
    }
}

static void open_player(struct batch *batch, const struct codec_command *command)
{
    uint64_t player = command->u.open_player.player;
    const struct aoi_player_settings *settings = &command->u.open_player.settings;
    if (!view_fits(batch, player, settings->max_view)) return;
    count(batch, player, aoi_player_open(batch->space, batch->session->owner, player, settings));
}

static void close_player(struct batch *batch, const struct codec_command *command)
{
    uint64_t player = command->u.close_player.player;
    count(batch, player, aoi_player_close(batch->space, batch->session->owner, player));
}

/* An error of a subscription is about the entity where the entity is what is wrong. */
static uint64_t about(int status, uint64_t player, uint64_t entity)
{
    return status == AOI_ENOENTITY ? entity : player;
}

static void subscribe(struct batch *batch, const struct codec_command *command)
{
    uint64_t player = command->u.subscribe.player, entity = command->u.subscribe.entity;
    int status = aoi_subscribe(batch->space, batch->session->owner, player, entity, command->u.subscribe.include_self);
    count(batch, about(status, player, entity), status);
}

static void unsubscribe(struct batch *batch, const struct codec_command *command)
{
    uint64_t player = command->u.unsubscribe.player, entity = command->u.unsubscribe.entity;
    int status = aoi_unsubscribe(batch->space, batch->session->owner, player, entity);
    count(batch, about(status, player, entity), status);
}

static void override(struct batch *batch, const struct codec_command *command)
{
    uint64_t player = command->u.override.player, entity = command->u.override.entity;
    uint32_t kind = command->u.override.kind;
    if (kind != AOI_OVERRIDE_NONE && kind != AOI_OVERRIDE_HIDE && kind != AOI_OVERRIDE_SHOW)
        refuse(batch, player, CODEC_INVALID_ARGUMENT, "unknown kind");
    else
        count(batch, player, aoi_player_override(batch->space, batch->session->owner, player, entity, (enum aoi_override)kind));
}

static void set_viewport(struct batch *batch, const struct codec_command *command)
{
    uint64_t player = command->u.set_viewport.player;
    count(batch, player, aoi_viewport_set(batch->space, batch->session->owner, player, command->u.set_viewport.min, command->u.set_viewport.max));
}

static void clear_viewport(struct batch *batch, const struct codec_command *command)
{
    uint64_t player = command->u.clear_viewport.player;
    count(batch, player, aoi_viewport_clear(batch->space, batch->session->owner, player));
}

static void flush(struct batch *batch, const struct codec_command *command)
{
    const struct dispatch *d = batch->dispatch;
    if (batch->from == 0) deliver_waiting(d->deliver); /* a player that was closed and opened again gets its last delta before its first */
    batch->from = !flusher_flush(d->flusher, batch->space, command->u.flush.tag, d->pause_ns, &batch->pending);
    batch->applied += batch->from == 0;
}

static const struct {
    command_handler *run;
    enum role least;
    uint16_t keeps; /* bytes that it makes the daemon hold beside what it carries, about; 0: none */
    bool spaceless; /* does not need the space to be there */
} commands[CODEC_COMMANDS] = {
    [CODEC_CREATE_SPACE] = {create_space, ROLE_WRITER, 4096, true},
    [CODEC_DESTROY_SPACE] = {destroy_space, ROLE_WRITER, 0, false},
    [CODEC_ADD_ENTITY] = {add_entity, ROLE_WRITER, 256, false},
    [CODEC_MOVE_ENTITIES] = {move_entities, ROLE_WRITER, 0, false},
    [CODEC_REMOVE_ENTITIES] = {remove_entities, ROLE_WRITER, 0, false},
    [CODEC_SET_RADIUS] = {set_radius, ROLE_WRITER, 0, false},
    [CODEC_SET_LAYERS] = {set_layers, ROLE_WRITER, 0, false},
    [CODEC_SET_PAYLOAD] = {set_payload, ROLE_WRITER, 16, false},
    [CODEC_OPEN_PLAYER] = {open_player, ROLE_READER, 64, false},
    [CODEC_CLOSE_PLAYER] = {close_player, ROLE_READER, 0, false},
    [CODEC_SUBSCRIBE] = {subscribe, ROLE_READER, 256, false},
    [CODEC_UNSUBSCRIBE] = {unsubscribe, ROLE_READER, 0, false},
    [CODEC_SET_VIEWPORT] = {set_viewport, ROLE_READER, 256, false},
    [CODEC_CLEAR_VIEWPORT] = {clear_viewport, ROLE_READER, 0, false},
    [CODEC_FLUSH] = {flush, ROLE_WRITER, 0, false},
    [CODEC_SET_SPACE] = {set_space, ROLE_WRITER, 0, false},
    [CODEC_SET_APPEAL] = {set_appeal, ROLE_WRITER, 0, false},
    [CODEC_SET_PRIORITY] = {set_priority, ROLE_WRITER, 0, false},
    [CODEC_RELEASE] = {release, ROLE_READER, 0, false},
    [CODEC_OVERRIDE] = {override, ROLE_READER, 64, false},
    [CODEC_PUBLISH] = {publish, ROLE_WRITER, 64, false},
};

/* What a player takes that the command makes, if there is none yet. */
static uint64_t player_keeps(const struct batch *batch, uint64_t player, uint64_t bytes)
{
    return batch->space != NULL && aoi_player_owner(batch->space, player) == 0 ? PLAYER_BYTES + bytes : 0;
}

static bool is_there(const struct batch *batch, uint64_t id, struct aoi_entity *entity)
{
    return batch->space != NULL && aoi_entity_get(batch->space, id, entity) == AOI_OK;
}

static uint64_t growth(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

/* An entity takes the place of one that has left, if there is such a place. */
static uint64_t entity_keeps(const struct batch *batch, uint64_t bytes)
{
    return batch->space != NULL && aoi_space_vacant(batch->space) > 0 ? 0 : bytes;
}

static uint64_t keeps(const struct batch *batch, const struct codec_command *command)
{
    uint64_t bytes = commands[command->kind].keeps;
    struct aoi_entity entity;
    switch (command->kind) {
    case CODEC_CREATE_SPACE: return batch->space == NULL ? bytes : 0;
    case CODEC_ADD_ENTITY:
        if (command->u.add_entity.mode == AOI_ADD_ADOPT) return 0;
        if (command->u.add_entity.mode == AOI_ADD_UPSERT && is_there(batch, command->u.add_entity.entity.id, &entity))
            return growth(entity.payload_len, command->u.add_entity.entity.payload_len);
        return entity_keeps(batch, bytes) + command->u.add_entity.entity.payload_len;
    case CODEC_SET_PAYLOAD:
        if (command->u.set_payload.payload_len == 0 || !is_there(batch, command->u.set_payload.id, &entity)) return 0;
        return growth(entity.payload_len, command->u.set_payload.payload_len) + (entity.payload_len == 0 ? bytes : 0);
    case CODEC_OPEN_PLAYER: return player_keeps(batch, command->u.open_player.player, bytes);
    case CODEC_SUBSCRIBE: return bytes + player_keeps(batch, command->u.subscribe.player, 0);
    case CODEC_SET_VIEWPORT:
        if (batch->space != NULL && aoi_player_has_viewport(batch->space, command->u.set_viewport.player)) return 0;
        return bytes + player_keeps(batch, command->u.set_viewport.player, 0);
    case CODEC_OVERRIDE: return command->u.override.kind == AOI_OVERRIDE_NONE ? 0 : bytes;
    case CODEC_PUBLISH: return bytes + command->u.publish.message_len;
    default: return bytes;
    }
}

/* Whether what the command adds still fits in max_memory_bytes. */
static bool fits(const struct batch *batch, const struct codec_command *command)
{
    uint64_t bytes = keeps(batch, command);
    return bytes == 0 || budget_admit(batch->dispatch->budget, bytes);
}

static void run_command(struct batch *batch, const struct codec_command *command)
{
    if (commands[command->kind].run == NULL)
        refuse(batch, 0, CODEC_UNSUPPORTED, dispatch_text(CODEC_UNSUPPORTED));
    else if (batch->session->token.role < commands[command->kind].least)
        refuse(batch, 0, CODEC_NOT_OWNER, explain_role(batch->dispatch, &batch->session->token, commands[command->kind].least));
    else if (batch->space_id == 0)
        refuse(batch, 0, CODEC_INVALID_ARGUMENT, "the space id is 0");
    else if (batch->space == NULL && !commands[command->kind].spaceless)
        refuse(batch, batch->space_id, CODEC_UNKNOWN_SPACE, dispatch_text(CODEC_UNKNOWN_SPACE));
    else if (!fits(batch, command))
        refuse(batch, 0, CODEC_LIMIT_EXCEEDED, explain_memory(batch->dispatch));
    else
        commands[command->kind].run(batch, command);
}

/* One line a frame, with the first of its errors. */
static void log_errors(const struct batch *batch, uint64_t seq)
{
    const struct codec_error_item *first = batch->dispatch->errors.at;
    char why[256];
    if (batch->dispatch->errors.n == 0) return;
    log_debug("refused", "peer=%s session=%llu seq=%llu space=%llu commands=%llu index=%u code=%s id=%llu why=%s", batch->session->peer,
              (unsigned long long)batch->session->id, (unsigned long long)seq, (unsigned long long)batch->space_id,
              (unsigned long long)batch->errors_total, first->index, codec_code_name((int)first->code), (unsigned long long)first->id,
              log_quote(first->text, why, sizeof why));
}

static void send_ack(const struct batch *batch)
{
    const struct dispatch *d = batch->dispatch;
    uint64_t seq = batch->seq;
    log_errors(batch, seq);
    if (seq == 0 && batch->errors_total == 0) return;
    const struct codec_server_frame ack = {
        .reply_to = seq,
        .kind = CODEC_ACK,
        .u.ack = {.applied = batch->applied,
                  .errors_total = batch->errors_total,
                  .error_n = d->errors.n,
                  .errors = d->errors.at,
                  .pending = batch->pending},
    };
    session_send(d->sessions, batch->session, &ack);
}

/* Goes on with its commands until all are done, or (false) it is time for others. */
static bool go_on(struct batch *batch)
{
    const struct dispatch *d = batch->dispatch;
    uint32_t steps = 0, piece = 1;
    uint64_t looked_ns = 0;
    batch->space = aoi_space_find(d->world, batch->space_id);
    while (batch->index < batch->command_n) {
        batch->command = &batch->commands[batch->index];
        run_command(batch, batch->command);
        if (batch->from == 0) batch->index++;
        if (d->pause_ns == 0 || batch->index == batch->command_n || (batch->from == 0 && ++steps < piece)) continue;
        uint64_t now_ns = uv_hrtime();
        if (now_ns >= d->pause_ns) return false;
        piece = now_ns - looked_ns > MOMENT_NS ? 1 : STEPS_PIECE;
        looked_ns = now_ns;
        steps = 0;
    }
    return true;
}

static void end(struct batch *batch)
{
    struct dispatch *d = batch->dispatch;
    if (batch->space != NULL) flusher_heard(d->flusher, batch->space, batch->began_ns);
    send_ack(batch);
    deliver_waiting(d->deliver);
}

/* What it stands in is not the dispatch's own while it waits; and back again. */
static void swap_memory(struct batch *batch)
{
    struct dispatch *d = batch->dispatch;
    struct arena arena = d->arena;
    error_list errors = d->errors;
    d->arena = batch->arena;
    d->errors = batch->errors;
    batch->arena = arena;
    batch->errors = errors;
}

bool dispatch_batch(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame)
{
    struct batch batch = {.dispatch = dispatch,
                          .session = session,
                          .space_id = frame->u.batch.space,
                          .ack_bytes = ACK_BYTES,
                          .seq = frame->seq,
                          .began_ns = uv_hrtime(),
                          .command_n = frame->u.batch.command_n,
                          .commands = frame->u.batch.commands};
    dispatch->errors.n = 0;
    if (go_on(&batch)) {
        end(&batch);
        return true;
    }
    struct batch *open = mem_alloc(sizeof *open);
    *open = batch;
    arena_init(&open->arena, dispatch->arena.cap);
    swap_memory(open);
    open->held = arena_held(&open->arena);
    open->weight = dispatch_weight(open->arena.used);
    budget_count(dispatch->budget, &dispatch->open_bytes, dispatch->open_bytes + open->held);
    dispatch->heavy_bytes += open->weight;
    *array_add(&dispatch->open) = open;
    session->batch = open;
    return false;
}

bool dispatch_go_on(struct dispatch *dispatch, struct batch *batch)
{
    struct session *session = batch->session;
    session->batch = NULL;
    swap_memory(batch);
    bool done = go_on(batch);
    if (done) end(batch);
    swap_memory(batch);
    if (!done) {
        session->batch = batch;
        return false;
    }
    session_applied(session, batch->seq);
    session->batch_ended = true;
    for (uint32_t i = dispatch->open.n; i-- > 0;)
        if (dispatch->open.at[i] == batch) array_swap_remove(&dispatch->open, i);
    if (batch->space != NULL) flusher_release(batch->space);
    dispatch->flusher->ended++; /* who waits for the space looks again */
    budget_count(dispatch->budget, &dispatch->open_bytes, dispatch->open_bytes - batch->held);
    dispatch->heavy_bytes -= batch->weight;
    arena_clear(&batch->arena);
    array_clear(&batch->errors);
    free(batch);
    return true;
}

bool dispatch_batch_is_of(const struct batch *batch, aoi_owner owner)
{
    return batch->session->owner == owner;
}

bool dispatch_batch_concerns(const struct batch *batch, aoi_owner owner)
{
    const struct aoi_space *space = aoi_space_find(batch->dispatch->world, batch->space_id);
    return space != NULL && aoi_owner_in(space, owner);
}

bool dispatch_batch_holds(const struct dispatch *dispatch, uint64_t space)
{
    for (uint32_t i = 0; i < dispatch->open.n; i++)
        if (dispatch->open.at[i]->space_id == space) return true;
    return false;
}
