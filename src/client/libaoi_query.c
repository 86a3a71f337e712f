/* libaoi_query.c: asks the daemon and waits for the Result. */
#include <string.h>

#include "client/libaoi_impl.h"

static int query_ask(struct libaoi *c, const struct codec_query *query, enum codec_result_kind want, int timeout_ms, const struct codec_result **out)
{
    libaoi_send(c);
    struct codec_client_frame frame = {.kind = CODEC_QUERY, .u.query = *query};
    int status = libaoi__await(c, libaoi__send_frame(c, &frame), timeout_ms);
    if (status) return status;
    const struct codec_result *result = &c->frame.u.result;
    if (c->frame.kind != CODEC_RESULT || result->kind != want)
        return libaoi__fail(c, LIBAOI_EPROTOCOL, "the reply to a query is no result of its kind");
    *out = result;
    return 0;
}

static int query_rows(struct libaoi *c, const struct codec_query *query, enum codec_result_kind want, int timeout_ms, struct libaoi_rows *out)
{
    const struct codec_result *r;
    int status = query_ask(c, query, want, timeout_ms, &r);
    if (status) return status;
    *out = (struct libaoi_rows){
        .n = r->rows.n,
        .id = r->rows.id,
        .x = r->rows.x,
        .y = r->rows.y,
        .z = r->rows.z,
        .extra = r->rows.extra,
        .layers = r->rows.layers,
        .next = r->rows.next,
        .seq = r->seq,
    };
    return 0;
}

static void query_box(struct codec_query *query, const float min[3], const float max[3])
{
    query->has_box = true;
    memcpy(query->min, min, sizeof query->min);
    memcpy(query->max, max, sizeof query->max);
}

int libaoi_query_box(struct libaoi *c, uint64_t space, const float min[3], const float max[3], uint32_t layers, uint64_t cursor, uint32_t limit,
                     int timeout_ms, struct libaoi_rows *out)
{
    struct codec_query query = {.space = space, .kind = CODEC_QUERY_AABB, .layers = layers, .cursor = cursor, .limit = limit};
    query_box(&query, min, max);
    return query_rows(c, &query, CODEC_RESULT_ENTITIES, timeout_ms, out);
}

int libaoi_query_radius(struct libaoi *c, uint64_t space, const float center[3], float radius, uint32_t layers, uint64_t cursor, uint32_t limit,
                        int timeout_ms, struct libaoi_rows *out)
{
    struct codec_query query = {
        .space = space,
        .kind = CODEC_QUERY_RADIUS,
        .center = {center[0], center[1], center[2]},
        .radius = radius,
        .layers = layers,
        .cursor = cursor,
        .limit = limit,
    };
    return query_rows(c, &query, CODEC_RESULT_ENTITIES, timeout_ms, out);
}

int libaoi_query_count(struct libaoi *c, uint64_t space, const float min[3], const float max[3], uint32_t layers, int timeout_ms, uint64_t *entities,
                       uint64_t *players)
{
    struct codec_query query = {.space = space, .kind = CODEC_QUERY_COUNT, .layers = layers};
    query_box(&query, min, max);
    const struct codec_result *r;
    int status = query_ask(c, &query, CODEC_RESULT_COUNT, timeout_ms, &r);
    if (status) return status;
    *entities = r->entities;
    *players = r->players;
    return 0;
}

int libaoi_query_entity(struct libaoi *c, uint64_t space, uint64_t id, int timeout_ms, struct libaoi_entity *out)
{
    struct codec_query query = {.space = space, .kind = CODEC_QUERY_GET_ENTITY, .id = id};
    const struct codec_result *r;
    int status = query_ask(c, &query, CODEC_RESULT_ENTITY, timeout_ms, &r);
    if (status) return status;
    *out = (struct libaoi_entity){
        .id = r->entity.id,
        .pos = {r->entity.pos[0], r->entity.pos[1], r->entity.pos[2]},
        .extra = r->entity.extra,
        .radius = r->entity.radius,
        .layers = r->entity.layers,
        .payload = r->entity.payload,
        .payload_len = r->entity.payload_len,
        .owner_session = r->owner_session,
        .subscribers = r->entity.subscribers,
        .appeal = r->entity.appeal,
        .priority = r->entity.priority,
        .report_observed = r->entity.report_observed,
    };
    return 0;
}

int libaoi_query_view(struct libaoi *c, uint64_t space, uint64_t player, uint64_t cursor, uint32_t limit, int timeout_ms, struct libaoi_rows *out)
{
    struct codec_query query = {.space = space, .kind = CODEC_QUERY_VIEW, .id = player, .cursor = cursor, .limit = limit};
    return query_rows(c, &query, CODEC_RESULT_VIEW, timeout_ms, out);
}

int libaoi_query_stats(struct libaoi *c, uint64_t space, int timeout_ms, struct libaoi_stats *out)
{
    struct codec_query query = {.space = space, .kind = CODEC_QUERY_STATS};
    const struct codec_result *r;
    int status = query_ask(c, &query, CODEC_RESULT_STATS, timeout_ms, &r);
    if (status) return status;
    const struct aoi_stats *core = &r->stats.core;
    *out = (struct libaoi_stats){
        .spaces = r->stats.spaces,
        .entities = core->entities,
        .players = core->players,
        .pairs = core->pairs,
        .flushes = core->flushes,
        .enters = core->enters,
        .leaves = core->leaves,
        .updates = core->updates,
        .deltas = core->deltas,
        .skipped = core->skipped,
        .moves = core->moves,
        .messages = core->messages,
        .errors = r->stats.errors,
        .memory_bytes = core->memory_bytes,
        .uptime_ms = r->stats.uptime_ms,
        .connections = r->stats.connections,
        .frames_in = r->stats.frames_in,
        .bytes_in = r->stats.bytes_in,
        .bytes_out = r->stats.bytes_out,
    };
    return 0;
}

/* tiers: room for their text. */
static struct libaoi_settings query_settings(const struct aoi_settings *s, char *tiers)
{
    aoi_tiers_print(&s->tiers, tiers);
    return (struct libaoi_settings){
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
        .update_tiers = tiers,
    };
}

int libaoi_query_spaces(struct libaoi *c, uint64_t cursor, uint32_t limit, int timeout_ms, size_t *n, const struct libaoi_space_info **out,
                        uint64_t *next)
{
    struct codec_query query = {.kind = CODEC_QUERY_LIST_SPACES, .cursor = cursor, .limit = limit};
    const struct codec_result *r;
    int status = query_ask(c, &query, CODEC_RESULT_SPACES, timeout_ms, &r);
    if (status) return status;
    c->spaces.n = 0;
    array_reserve(&c->tiers, r->space_n * AOI_TIERS_TEXT);
    for (size_t i = 0; i < r->space_n; i++) {
        const struct codec_space_info *from = &r->spaces[i];
        *array_add(&c->spaces) = (struct libaoi_space_info){
            .id = from->id,
            .entities = from->entities,
            .players = from->players,
            .owner_session = from->owner_session,
            .configured = from->configured,
            .settings = query_settings(&from->settings, c->tiers.at + i * AOI_TIERS_TEXT),
        };
    }
    *n = r->space_n;
    *out = c->spaces.at;
    *next = r->next_cursor;
    return 0;
}

int libaoi_query_nearest(struct libaoi *c, uint64_t space, const float center[3], uint32_t k, float max_distance, uint32_t layers, int timeout_ms,
                         struct libaoi_rows *out)
{
    struct codec_query query = {
        .space = space,
        .kind = CODEC_QUERY_NEAREST,
        .center = {center[0], center[1], center[2]},
        .radius = max_distance,
        .layers = layers,
        .k = k,
    };
    return query_rows(c, &query, CODEC_RESULT_ENTITIES, timeout_ms, out);
}

int libaoi_query_observers(struct libaoi *c, uint64_t space, uint64_t id, uint64_t cursor, uint32_t limit, int timeout_ms, struct libaoi_rows *out)
{
    struct codec_query query = {.space = space, .kind = CODEC_QUERY_OBSERVERS, .id = id, .cursor = cursor, .limit = limit};
    return query_rows(c, &query, CODEC_RESULT_VIEW, timeout_ms, out);
}

int libaoi_query_density(struct libaoi *c, uint64_t space, const float min[3], const float max[3], uint32_t columns, uint32_t rows, uint32_t layers,
                         int timeout_ms, const uint32_t **counts)
{
    struct codec_query query = {.space = space, .kind = CODEC_QUERY_DENSITY, .columns = columns, .rows = rows, .layers = layers};
    query_box(&query, min, max);
    const struct codec_result *r;
    int status = query_ask(c, &query, CODEC_RESULT_DENSITY, timeout_ms, &r);
    if (status) return status;
    if (r->columns != columns || r->raster_rows != rows) return libaoi__fail(c, LIBAOI_EPROTOCOL, "a raster of another size than was asked for");
    *counts = r->counts;
    return 0;
}

const char *libaoi_rule_name(int rule)
{
    static const char *const names[] = {"UNKNOWN",      "INCLUDE_SELF", "SHOW", "HIDE",  "MASK", "RANGE",
                                        "LEAVE_MARGIN", "MIN_STAY",     "FAR",  "BLIND", "RANK", "ENTER_BUDGET"};
    return names[rule > 0 && rule < (int)(sizeof names / sizeof *names) ? rule : 0];
}

int libaoi_query_why(struct libaoi *c, uint64_t space, uint64_t player, uint64_t entity, int timeout_ms, struct libaoi_why *out)
{
    struct codec_query query = {.space = space, .kind = CODEC_QUERY_WHY, .player = player, .id = entity};
    const struct codec_result *r;
    int status = query_ask(c, &query, CODEC_RESULT_WHY, timeout_ms, &r);
    if (status) return status;
    const struct aoi_why *why = &r->why;
    *out = (struct libaoi_why){
        .rule = (int)why->rule,
        .told = why->told,
        .seen = why->seen,
        .by_viewport = why->by_viewport,
        .unit = why->unit,
        .distance = why->distance,
        .radius = why->radius,
        .appeal = why->appeal,
        .margin = why->margin,
        .layers = why->layers,
        .mask = why->mask,
        .rank = why->rank,
        .max_view = why->max_view,
        .stay_left_ms = why->stay_left_ms,
        .period = why->period,
        .text = r->why_text ? r->why_text : "",
    };
    return 0;
}
