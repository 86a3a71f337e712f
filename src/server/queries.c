/* queries.c: a table of queries with a handler each: positions of now, what was told, and why. */
#include "server/dispatch.h"

#include <string.h>

#include "server/explain.h"

#define SPACE_INFO_BYTES (192 + AOI_TIERS_TEXT) /* of a SpaceInfo, at most */
#define RESULT_BYTES 64                         /* of a Result beside its items, at most */
#define COUNT_BYTES 5                           /* of a field of a raster, at most */

struct query {
    struct dispatch *dispatch;
    const struct codec_query *ask;
    struct aoi_space *space;
    struct codec_result result;
};

/* 0, or an AOI_E...; then the result counts for nothing. */
typedef int query_handler(struct query *query);

static size_t page(const struct query *query)
{
    uint32_t most = query->dispatch->config->query_page;
    return query->ask->limit == 0 || query->ask->limit > most ? most : query->ask->limit;
}

/* The rows as the result; columns that the space does not have are left out. */
static void entities(struct query *query)
{
    const struct aoi_settings *set = aoi_space_settings(query->space);
    query->result.kind = CODEC_RESULT_ENTITIES;
    query->result.rows = query->dispatch->rows;
    if (set->dimensions == 2) query->result.rows.z = NULL;
    if (!set->extra) query->result.rows.extra = NULL;
}

static int ask_aabb(struct query *query)
{
    const struct codec_query *ask = query->ask;
    if (!ask->has_box) return AOI_EINVAL;
    int status = aoi_query_box(query->space, ask->min, ask->max, ask->layers, ask->cursor, page(query), &query->dispatch->rows);
    entities(query);
    return status;
}

static int ask_radius(struct query *query)
{
    const struct codec_query *ask = query->ask;
    int status = aoi_query_radius(query->space, ask->center, ask->radius, ask->layers, ask->cursor, page(query), &query->dispatch->rows);
    entities(query);
    return status;
}

static int ask_count(struct query *query)
{
    const struct codec_query *ask = query->ask;
    query->result.kind = CODEC_RESULT_COUNT;
    if (!ask->has_box) return AOI_EINVAL;
    return aoi_query_count(query->space, ask->min, ask->max, ask->layers, &query->result.entities, &query->result.players);
}

static int ask_entity(struct query *query)
{
    query->result.kind = CODEC_RESULT_ENTITY;
    int status = aoi_entity_get(query->space, query->ask->id, &query->result.entity);
    if (status == AOI_OK) query->result.owner_session = sessions_id_of_owner(query->dispatch->sessions, query->result.entity.owner);
    return status;
}

static int ask_view(struct query *query)
{
    struct aoi_rows *rows = &query->dispatch->rows;
    query->result.kind = CODEC_RESULT_VIEW;
    int status = aoi_query_view(query->space, query->ask->id, query->ask->cursor, page(query), rows, &query->result.seq);
    query->result.rows = *rows;
    return status;
}

static int ask_nearest(struct query *query)
{
    const struct codec_query *ask = query->ask;
    if (ask->k == 0) return AOI_EINVAL;
    if (ask->k > query->dispatch->config->query_page) return AOI_ELIMIT;
    int status = aoi_query_nearest(query->space, ask->center, ask->radius, ask->layers, ask->k, &query->dispatch->rows);
    entities(query);
    return status;
}

static int ask_observers(struct query *query)
{
    struct aoi_rows *rows = &query->dispatch->rows;
    query->result.kind = CODEC_RESULT_VIEW;
    int status = aoi_query_observers(query->space, query->ask->id, query->ask->cursor, page(query), rows);
    query->result.rows = *rows;
    return status;
}

static int ask_density(struct query *query)
{
    const struct codec_query *ask = query->ask;
    struct dispatch *d = query->dispatch;
    if (!ask->has_box) return AOI_EINVAL;
    if (ask->columns < 1 || ask->columns > AOI_RASTER_MAX || ask->rows < 1 || ask->rows > AOI_RASTER_MAX) return AOI_EINVAL;
    size_t fields = (size_t)ask->columns * ask->rows;
    if (RESULT_BYTES + fields * COUNT_BYTES > d->config->max_frame_bytes) return AOI_ELIMIT;
    array_reserve(&d->counts, fields);
    query->result.kind = CODEC_RESULT_DENSITY;
    query->result.columns = ask->columns;
    query->result.raster_rows = ask->rows;
    query->result.counts = d->counts.at;
    return aoi_query_density(query->space, ask->min, ask->max, ask->layers, ask->columns, ask->rows, d->counts.at);
}

/* Whether the player can be told what it sees. */
static void note_deafness(struct query *query)
{
    aoi_owner owner = aoi_player_owner(query->space, query->ask->player);
    const struct standing *standing = sessions_of_owner(query->dispatch->sessions, owner);
    const struct session *session = standing == NULL ? NULL : standing->session;
    struct codec_result *result = &query->result;
    if (session != NULL && session->state == SESSION_READY) {
        if (deliver_owes(session) || outbox_room(&session->out) == 0)
            result->why_deaf = CODEC_DEAF_FULL;
        else if (budget_full(query->dispatch->budget))
            result->why_deaf = CODEC_DEAF_MEMORY;
        return;
    }
    result->why_deaf = CODEC_DEAF_GONE;
    if (standing == NULL || session != NULL || standing->lease_end_ms == LEASE_FROZEN) return;
    uint64_t now_ms = query->dispatch->sessions->clock_ms;
    result->why_lease_ms = standing->lease_end_ms > now_ms ? standing->lease_end_ms - now_ms : 0;
}

static int ask_why(struct query *query)
{
    query->result.kind = CODEC_RESULT_WHY;
    int status = aoi_query_why(query->space, query->ask->player, query->ask->id, flusher_now_ms(), &query->result.why);
    if (status == AOI_OK) note_deafness(query);
    return status;
}

static int ask_stats(struct query *query)
{
    const struct dispatch *d = query->dispatch;
    struct codec_stats *stats = &query->result.stats;
    uint64_t id = query->ask->space;
    query->result.kind = CODEC_RESULT_STATS;
    if (id != 0) {
        if (query->space == NULL) return AOI_ENOSPACE;
        stats->spaces = 1;
        aoi_space_stats(query->space, &stats->core);
        return AOI_OK;
    }
    *stats = (struct codec_stats){
        .uptime_ms = uv_now(d->flusher->loop) - d->metrics->started_ms,
        .connections = d->metrics->connections,
        .frames_in = d->metrics->frames_in,
        .bytes_in = d->metrics->bytes_in,
        .bytes_out = d->metrics->bytes_out,
        .errors = metrics_errors(d->metrics),
    };
    for (struct aoi_space *space; (space = aoi_space_next(d->world, id)) != NULL; id = aoi_space_id(space)) {
        aoi_space_stats(space, &stats->core);
        stats->spaces++;
    }
    return AOI_OK;
}

static int ask_spaces(struct query *query)
{
    struct dispatch *d = query->dispatch;
    size_t most = (d->config->max_frame_bytes - RESULT_BYTES) / SPACE_INFO_BYTES, limit = page(query);
    if (limit > most) limit = most;
    d->spaces.n = 0;
    uint64_t id = query->ask->cursor;
    struct aoi_space *space;
    for (; d->spaces.n < limit && (space = aoi_space_next(d->world, id)) != NULL; id = aoi_space_id(space)) {
        struct aoi_stats stats = {0};
        aoi_space_stats(space, &stats);
        *array_add(&d->spaces) = (struct codec_space_info){
            .id = aoi_space_id(space),
            .entities = stats.entities,
            .players = stats.players,
            .owner_session = sessions_id_of_owner(d->sessions, aoi_space_owner(space)),
            .configured = aoi_space_configured(space),
            .settings = *aoi_space_settings(space),
        };
    }
    query->result.kind = CODEC_RESULT_SPACES;
    query->result.spaces = d->spaces.at;
    query->result.space_n = d->spaces.n;
    query->result.next_cursor = d->spaces.n > 0 && aoi_space_next(d->world, id) != NULL ? id : 0;
    return AOI_OK;
}

static const struct {
    query_handler *run;
    bool spaceless; /* does not need a space */
} queries[CODEC_QUERIES] = {
    [CODEC_QUERY_AABB] = {ask_aabb, false},         [CODEC_QUERY_RADIUS] = {ask_radius, false},   [CODEC_QUERY_COUNT] = {ask_count, false},
    [CODEC_QUERY_GET_ENTITY] = {ask_entity, false}, [CODEC_QUERY_VIEW] = {ask_view, false},       [CODEC_QUERY_STATS] = {ask_stats, true},
    [CODEC_QUERY_LIST_SPACES] = {ask_spaces, true}, [CODEC_QUERY_NEAREST] = {ask_nearest, false}, [CODEC_QUERY_OBSERVERS] = {ask_observers, false},
    [CODEC_QUERY_DENSITY] = {ask_density, false},   [CODEC_QUERY_WHY] = {ask_why, false},
};

void dispatch_query(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame)
{
    struct query query = {.dispatch = dispatch, .ask = &frame->u.query, .space = aoi_space_find(dispatch->world, frame->u.query.space)};
    enum codec_query_kind kind = query.ask->kind;
    int code;
    if (queries[kind].run == NULL)
        code = CODEC_UNSUPPORTED;
    else if (query.space == NULL && !queries[kind].spaceless)
        code = query.ask->space == 0 ? CODEC_INVALID_ARGUMENT : CODEC_UNKNOWN_SPACE;
    else
        code = -queries[kind].run(&query);

    if (code != CODEC_OK) {
        session_send_error(dispatch->sessions, session, frame->seq, code, explain_query(dispatch, query.space, query.ask, code));
    } else if (frame->seq != 0) {
        session_send(dispatch->sessions, session,
                     &(struct codec_server_frame){.reply_to = frame->seq, .kind = CODEC_RESULT, .u.result = query.result});
    }
}
