/* libaoi_batch.c: queues commands, moves as columns, and cuts them into frames that the daemon takes. */
#include "client/libaoi_batch.h"

#include <string.h>

#include "client/libaoi_impl.h"

/* Upper bounds of what protobuf takes: a frame around its commands; a command with its scalar fields, tags and column headers. */
#define FRAME_BYTES 64
#define COMMAND_BYTES 128

static void batch_reset(struct libaoi_batch *b)
{
    b->commands.n = b->create_spaces.n = b->set_spaces.n = b->id.n = b->x.n = b->y.n = b->z.n = b->extra.n = 0;
    buf_consume(&b->payloads, buf_len(&b->payloads));
    b->bytes = 0;
}

void libaoi_batch_clear(struct libaoi_batch *b)
{
    array_clear(&b->commands);
    array_clear(&b->create_spaces);
    array_clear(&b->set_spaces);
    array_clear(&b->id);
    array_clear(&b->x);
    array_clear(&b->y);
    array_clear(&b->z);
    array_clear(&b->extra);
    buf_clear(&b->payloads);
}

/* Points the commands at their columns and payloads. */
static void batch_link(struct libaoi_batch *b)
{
    size_t id = 0, pos = 0, z = 0, extra = 0, payload = 0, create_space = 0, set_space = 0;
    for (uint32_t i = 0; i < b->commands.n; i++) {
        struct codec_command *m = &b->commands.at[i];
        if (m->kind == CODEC_CREATE_SPACE) {
            m->u.create_space = &b->create_spaces.at[create_space++];
        } else if (m->kind == CODEC_SET_SPACE) {
            m->u.set_space = &b->set_spaces.at[set_space++];
        } else if (m->kind == CODEC_MOVE_ENTITIES) {
            m->u.move_entities.id = b->id.at + id;
            m->u.move_entities.x = b->x.at + pos;
            m->u.move_entities.y = b->y.at + pos;
            m->u.move_entities.z = m->u.move_entities.z_n ? b->z.at + z : NULL;
            m->u.move_entities.extra = m->u.move_entities.extra_n ? b->extra.at + extra : NULL;
            id += m->u.move_entities.id_n;
            pos += m->u.move_entities.id_n;
            z += m->u.move_entities.z_n;
            extra += m->u.move_entities.extra_n;
        } else if (m->kind == CODEC_REMOVE_ENTITIES) {
            m->u.remove_entities.id = b->id.at + id;
            id += m->u.remove_entities.id_n;
        } else if (m->kind == CODEC_ADD_ENTITY && m->u.add_entity.entity.payload_len) {
            m->u.add_entity.entity.payload = buf_data(&b->payloads) + payload;
            payload += m->u.add_entity.entity.payload_len;
        } else if (m->kind == CODEC_SET_PAYLOAD && m->u.set_payload.payload_len) {
            m->u.set_payload.payload = buf_data(&b->payloads) + payload;
            payload += m->u.set_payload.payload_len;
        } else if (m->kind == CODEC_PUBLISH && m->u.publish.message_len) {
            m->u.publish.message = buf_data(&b->payloads) + payload;
            payload += m->u.publish.message_len;
        } else if (m->kind == CODEC_RELEASE) {
            m->u.release.entities = m->u.release.players = b->id.at + id; /* either, never both */
            id += m->u.release.entity_n + m->u.release.player_n;
        }
    }
}

static void batch_close(struct libaoi *c)
{
    struct libaoi_batch *b = &c->batch;
    if (!b->commands.n) return;
    batch_link(b);
    struct codec_client_frame frame = {.kind = CODEC_BATCH, .u.batch = {.space = b->space, .command_n = b->commands.n, .commands = b->commands.at}};
    libaoi__send_frame(c, &frame);
    batch_reset(b);
}

uint64_t libaoi_send(struct libaoi *c)
{
    if (!c->batch.commands.n) return 0;
    batch_close(c);
    return c->failed && !c->keeps ? 0 : c->seq;
}

/* One more command; the frame begun is sent first if it is another space's or has no room for so many bytes. */
static struct codec_command *batch_add(struct libaoi *c, uint64_t space, enum codec_command_kind kind, size_t bytes)
{
    struct libaoi_batch *b = &c->batch;
    bytes += COMMAND_BYTES;
    if (b->commands.n && (b->space != space || b->bytes + bytes > c->welcome.max_frame_bytes)) batch_close(c);
    if (!b->commands.n) {
        b->space = space;
        b->bytes = FRAME_BYTES;
    }
    b->bytes += bytes;
    struct codec_command *m = array_add(&b->commands);
    memset(m, 0, sizeof *m);
    m->kind = kind;
    return m;
}

/* The tiers of a text; NULL is none. */
static int batch_tiers(struct libaoi *c, const char *text, struct aoi_tiers *tiers)
{
    const char *why;
    if (aoi_tiers_parse(text ? text : "", tiers, &why) == AOI_OK) return 0;
    return libaoi__fail(c, LIBAOI_EINVAL, "%s", why);
}

int libaoi_create_space(struct libaoi *c, uint64_t space, const struct libaoi_settings *s, bool if_absent)
{
    struct aoi_tiers tiers;
    int status = batch_tiers(c, s->update_tiers, &tiers);
    if (status) return status;
    batch_add(c, space, CODEC_CREATE_SPACE, AOI_TIERS_TEXT);
    struct codec_create_space *create = array_add(&c->batch.create_spaces);
    *create = (struct codec_create_space){.if_absent = if_absent};
    create->settings = (struct aoi_settings){
        .dimensions = s->dimensions,
        .index = s->index,
        .shape = s->shape,
        .cell_size = s->cell_size,
        .cell_range = s->cell_range,
        .bounded = s->bounded,
        .min = {s->min[0], s->min[1], s->min[2]},
        .max = {s->max[0], s->max[1], s->max[2]},
        .extra = s->extra,
        .flush_ms = s->flush_ms,
        .persistent = s->persistent,
        .leave_margin = s->leave_margin,
        .min_stay_ms = s->min_stay_ms,
        .max_view = s->max_view,
        .max_enter_per_flush = s->max_enter_per_flush,
        .tiers = tiers,
    };
    return 0;
}

int libaoi_set_space(struct libaoi *c, uint64_t space, uint32_t which, const struct libaoi_settings *s)
{
    struct aoi_tiers tiers = {0};
    int status = which & LIBAOI_TIERS ? batch_tiers(c, s->update_tiers, &tiers) : 0;
    if (status) return status;
    batch_add(c, space, CODEC_SET_SPACE, AOI_TIERS_TEXT);
    struct codec_set_space *set = array_add(&c->batch.set_spaces);
    *set = (struct codec_set_space){0};
    set->change = (struct aoi_space_change){
        .has_flush_ms = which & LIBAOI_FLUSH,
        .has_leave_margin = which & LIBAOI_LEAVE_MARGIN,
        .has_min_stay_ms = which & LIBAOI_MIN_STAY,
        .has_max_view = which & LIBAOI_MAX_VIEW,
        .has_max_enter_per_flush = which & LIBAOI_MAX_ENTER,
        .has_tiers = which & LIBAOI_TIERS,
        .flush_ms = s->flush_ms,
        .leave_margin = s->leave_margin,
        .min_stay_ms = s->min_stay_ms,
        .max_view = s->max_view,
        .max_enter_per_flush = s->max_enter_per_flush,
        .tiers = tiers,
    };
    return 0;
}

void libaoi_destroy_space(struct libaoi *c, uint64_t space)
{
    batch_add(c, space, CODEC_DESTROY_SPACE, 0);
}

/* Whether a frame of its own can hold a command with this payload. */
static int batch_payload_fits(struct libaoi *c, size_t len)
{
    size_t most = c->welcome.max_frame_bytes - FRAME_BYTES - COMMAND_BYTES;
    if (len <= most) return 0;
    return libaoi__fail(c, LIBAOI_ETOOLARGE, "a payload of %zu bytes fits no frame; the daemon takes payloads of at most %u bytes", len,
                        c->welcome.max_payload);
}

int libaoi_add(struct libaoi *c, uint64_t space, enum libaoi_add_mode mode, const struct libaoi_entity *e)
{
    int status = batch_payload_fits(c, e->payload_len);
    if (status) return status;
    struct codec_command *m = batch_add(c, space, CODEC_ADD_ENTITY, e->payload_len);
    m->u.add_entity.mode = mode;
    m->u.add_entity.entity = (struct aoi_entity){
        .id = e->id,
        .pos = {e->pos[0], e->pos[1], e->pos[2]},
        .extra = e->extra,
        .radius = e->radius,
        .layers = e->layers,
        .payload_len = (uint32_t)e->payload_len,
        .appeal = e->appeal,
        .priority = e->priority,
        .report_observed = e->report_observed,
    };
    if (e->payload_len) buf_append(&c->batch.payloads, e->payload, e->payload_len);
    return 0;
}

int libaoi_set_payload(struct libaoi *c, uint64_t space, uint64_t id, const void *payload, size_t payload_len)
{
    int status = batch_payload_fits(c, payload_len);
    if (status) return status;
    struct codec_command *m = batch_add(c, space, CODEC_SET_PAYLOAD, payload_len);
    m->u.set_payload.id = id;
    m->u.set_payload.payload_len = payload_len;
    if (payload_len) buf_append(&c->batch.payloads, payload, payload_len);
    return 0;
}

/* A command for up to n items of `size` bytes each, and how many of them: the last one of the batch is lengthened if it is alike. */
static struct codec_command *batch_columns(struct libaoi *c, uint64_t space, enum codec_command_kind kind, bool z, bool extra, size_t size, size_t *n)
{
    struct libaoi_batch *b = &c->batch;
    struct codec_command *last = b->commands.n ? &b->commands.at[b->commands.n - 1] : NULL;
    bool alike = last && last->kind == kind && b->space == space && b->bytes + size <= c->welcome.max_frame_bytes;
    if (alike && kind == CODEC_MOVE_ENTITIES) alike = (last->u.move_entities.z_n > 0) == z && (last->u.move_entities.extra_n > 0) == extra;
    if (!alike) {
        last = batch_add(c, space, kind, size);
        b->bytes -= size;
    }
    size_t room = (c->welcome.max_frame_bytes - b->bytes) / size;
    if (*n > room) *n = room;
    b->bytes += *n * size;
    return last;
}

#define batch_copy(column, from, count)                                             \
    do {                                                                            \
        array_reserve((column), (size_t)(column)->n + (count));                     \
        memcpy((column)->at + (column)->n, (from), (count) * sizeof *(column)->at); \
        (column)->n += (uint32_t)(count);                                           \
    } while (0)

void libaoi_move(struct libaoi *c, uint64_t space, size_t n, const uint64_t *id, const float *x, const float *y, const float *z,
                 const uint32_t *extra)
{
    struct libaoi_batch *b = &c->batch;
    size_t size = 16 + (z ? 4 : 0) + (extra ? 4 : 0);
    for (size_t done = 0; done < n;) {
        size_t k = n - done;
        struct codec_command *m = batch_columns(c, space, CODEC_MOVE_ENTITIES, z != NULL, extra != NULL, size, &k);
        m->u.move_entities.id_n += k;
        m->u.move_entities.x_n += k;
        m->u.move_entities.y_n += k;
        batch_copy(&b->id, id + done, k);
        batch_copy(&b->x, x + done, k);
        batch_copy(&b->y, y + done, k);
        if (z) {
            m->u.move_entities.z_n += k;
            batch_copy(&b->z, z + done, k);
        }
        if (extra) {
            m->u.move_entities.extra_n += k;
            batch_copy(&b->extra, extra + done, k);
        }
        done += k;
    }
}

void libaoi_remove(struct libaoi *c, uint64_t space, size_t n, const uint64_t *id)
{
    for (size_t done = 0; done < n;) {
        size_t k = n - done;
        struct codec_command *m = batch_columns(c, space, CODEC_REMOVE_ENTITIES, false, false, 8, &k);
        m->u.remove_entities.id_n += k;
        batch_copy(&c->batch.id, id + done, k);
        done += k;
    }
}

void libaoi_set_radius(struct libaoi *c, uint64_t space, uint64_t id, float radius)
{
    struct codec_command *m = batch_add(c, space, CODEC_SET_RADIUS, 0);
    m->u.set_radius.id = id;
    m->u.set_radius.radius = radius;
}

void libaoi_set_layers(struct libaoi *c, uint64_t space, uint64_t id, uint32_t layers)
{
    struct codec_command *m = batch_add(c, space, CODEC_SET_LAYERS, 0);
    m->u.set_layers.id = id;
    m->u.set_layers.layers = layers;
}

void libaoi_open_player(struct libaoi *c, uint64_t space, uint64_t player, uint32_t mask)
{
    struct codec_command *m = batch_add(c, space, CODEC_OPEN_PLAYER, 0);
    m->u.open_player.player = player;
    m->u.open_player.settings.mask = mask;
}

void libaoi_open_player_with(struct libaoi *c, uint64_t space, uint64_t player, const struct libaoi_player *s)
{
    struct codec_command *m = batch_add(c, space, CODEC_OPEN_PLAYER, 0);
    m->u.open_player.player = player;
    m->u.open_player.settings = (struct aoi_player_settings){
        .mask = s->mask,
        .max_view = s->max_view,
        .leave_margin = s->leave_margin,
        .max_enter_per_flush = s->max_enter_per_flush,
        .presence_only = s->presence_only,
        .take_over = s->take_over,
        .keep = s->keep_settings,
    };
}

void libaoi_close_player(struct libaoi *c, uint64_t space, uint64_t player)
{
    batch_add(c, space, CODEC_CLOSE_PLAYER, 0)->u.close_player.player = player;
}

void libaoi_subscribe(struct libaoi *c, uint64_t space, uint64_t player, uint64_t entity, bool include_self)
{
    struct codec_command *m = batch_add(c, space, CODEC_SUBSCRIBE, 0);
    m->u.subscribe.player = player;
    m->u.subscribe.entity = entity;
    m->u.subscribe.include_self = include_self;
}

void libaoi_unsubscribe(struct libaoi *c, uint64_t space, uint64_t player, uint64_t entity)
{
    struct codec_command *m = batch_add(c, space, CODEC_UNSUBSCRIBE, 0);
    m->u.unsubscribe.player = player;
    m->u.unsubscribe.entity = entity;
}

void libaoi_set_viewport(struct libaoi *c, uint64_t space, uint64_t player, const float min[3], const float max[3])
{
    struct codec_command *m = batch_add(c, space, CODEC_SET_VIEWPORT, 0);
    m->u.set_viewport.player = player;
    memcpy(m->u.set_viewport.min, min, sizeof m->u.set_viewport.min);
    memcpy(m->u.set_viewport.max, max, sizeof m->u.set_viewport.max);
}

void libaoi_clear_viewport(struct libaoi *c, uint64_t space, uint64_t player)
{
    batch_add(c, space, CODEC_CLEAR_VIEWPORT, 0)->u.clear_viewport.player = player;
}

void libaoi_flush(struct libaoi *c, uint64_t space, uint64_t tag)
{
    batch_add(c, space, CODEC_FLUSH, 0)->u.flush.tag = tag;
}

void libaoi_set_appeal(struct libaoi *c, uint64_t space, uint64_t id, float appeal)
{
    struct codec_command *m = batch_add(c, space, CODEC_SET_APPEAL, 0);
    m->u.set_appeal.id = id;
    m->u.set_appeal.appeal = appeal;
}

void libaoi_set_priority(struct libaoi *c, uint64_t space, uint64_t id, uint32_t priority)
{
    struct codec_command *m = batch_add(c, space, CODEC_SET_PRIORITY, 0);
    m->u.set_priority.id = id;
    m->u.set_priority.priority = priority;
}

/* A command has entities or players, so that its column is one. */
static void batch_release(struct libaoi *c, uint64_t space, bool players, size_t n, const uint64_t *id, uint64_t to_session)
{
    for (size_t done = 0; done < n;) {
        struct codec_command *m = batch_add(c, space, CODEC_RELEASE, sizeof *id);
        size_t k = n - done, room = 1 + (c->welcome.max_frame_bytes - c->batch.bytes) / sizeof *id;
        if (k > room) k = room;
        c->batch.bytes += (k - 1) * sizeof *id;
        m->u.release.to_session = to_session;
        *(players ? &m->u.release.player_n : &m->u.release.entity_n) = k;
        batch_copy(&c->batch.id, id + done, k);
        done += k;
    }
}

void libaoi_release(struct libaoi *c, uint64_t space, size_t n, const uint64_t *id, uint64_t to_session)
{
    batch_release(c, space, false, n, id, to_session);
}

void libaoi_release_players(struct libaoi *c, uint64_t space, size_t n, const uint64_t *player, uint64_t to_session)
{
    batch_release(c, space, true, n, player, to_session);
}

void libaoi_adopt(struct libaoi *c, uint64_t space, uint64_t id)
{
    libaoi_add(c, space, LIBAOI_ADD_ADOPT, &(struct libaoi_entity){.id = id});
}

void libaoi_override(struct libaoi *c, uint64_t space, uint64_t player, uint64_t entity, enum libaoi_override_kind kind)
{
    struct codec_command *m = batch_add(c, space, CODEC_OVERRIDE, 0);
    m->u.override.player = player;
    m->u.override.entity = entity;
    m->u.override.kind = kind;
}

/* A message without its place; NULL: it fits no frame. */
static struct codec_command *batch_publish(struct libaoi *c, uint64_t space, enum codec_publish_kind kind, const void *message, size_t len)
{
    if (len > c->welcome.max_frame_bytes - FRAME_BYTES - COMMAND_BYTES) {
        libaoi__fail(c, LIBAOI_ETOOLARGE, "a message of %zu bytes fits no frame", len);
        return NULL;
    }
    struct codec_command *m = batch_add(c, space, CODEC_PUBLISH, len);
    m->u.publish.kind = kind;
    m->u.publish.message_len = len;
    if (len) buf_append(&c->batch.payloads, message, len);
    return m;
}

int libaoi_publish(struct libaoi *c, uint64_t space, uint64_t entity, const void *message, size_t len)
{
    struct codec_command *m = batch_publish(c, space, CODEC_PUBLISH_ENTITY, message, len);
    if (!m) return LIBAOI_ETOOLARGE;
    m->u.publish.entity = entity;
    return 0;
}

static int batch_publish_place(struct libaoi *c, uint64_t space, enum codec_publish_kind kind, const float min[3], const float max[3],
                               const void *message, size_t len)
{
    struct codec_command *m = batch_publish(c, space, kind, message, len);
    if (!m) return LIBAOI_ETOOLARGE;
    memcpy(m->u.publish.min, min, sizeof m->u.publish.min);
    memcpy(m->u.publish.max, max, sizeof m->u.publish.max);
    return 0;
}

int libaoi_publish_at(struct libaoi *c, uint64_t space, const float point[3], const void *message, size_t len)
{
    return batch_publish_place(c, space, CODEC_PUBLISH_POINT, point, point, message, len);
}

int libaoi_publish_box(struct libaoi *c, uint64_t space, const float min[3], const float max[3], const void *message, size_t len)
{
    return batch_publish_place(c, space, CODEC_PUBLISH_BOX, min, max, message, len);
}
