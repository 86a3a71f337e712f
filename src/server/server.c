/* server.c: the daemon: its listener, its connections, and their end. */
#include "server/server.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "server/http.h"

/* Open files beside the connections that count: standard streams, libuv's own, the listeners, refused connections. */
#define OTHER_FILES (24 + SERVER_REFUSED_MAX)
/* Input of one connection at once, by how many wait for theirs; and of all in one turn of the loop. */
#define TURN_MIN_NS ((uint64_t)25 * 1000)
#define TURN_MAX_NS ((uint64_t)4 * 1000 * 1000)
#define TURN_ALL_NS ((uint64_t)12 * 1000 * 1000)
/* Who lately used less than half of what is everybody's share of the time between two ticks, and less than that, goes before others: a ping need not wait for those
 * who flood, be they one or a thousand. */
#define LIGHT_MAX_NS ((uint64_t)1000 * 1000)
#define LIGHT_ALL_NS ((uint64_t)SERVER_TICK_MS * 1000 * 1000 / 2)
/* However busy those are who are known, strangers have so long in each turn: after a restart everybody is one. */
#define STRANGERS_NS ((uint64_t)2 * 1000 * 1000)
#define READ_LEAST_BYTES (16u * 1024)
#define MEMORY_CALM_MS 5000
#define DRAIN_TICK_MS 50
/* What a client sent before it could hear of the end is still answered. */
#define DRAIN_GRACE_MS 100

/* ------------------------------------------------------------------------------------------------------------- turns */

/* Flushes have ended: who waited for that goes on. */
static void let_go(struct server *server)
{
    if (!server->holds || server->let_go == server->flusher.ended) return;
    server->let_go = server->flusher.ended;
    server->holds = false;
    for (uint32_t i = 0; i < server->conns.n; i++)
        if (!conn_let_go(server->conns.at[i])) server->holds = true;
}

static void settle_touched(struct server *server)
{
    session_list *touched = &server->sessions.touched; /* settling one may touch others: they are added behind */
    for (uint32_t i = 0; i < touched->n; i++) {
        struct session *session = touched->at[i];
        session->touched = false;
        conn_settle(conn_of_session(session));
    }
    touched->n = 0;
}

void server_settle(struct server *server)
{
    settle_touched(server);
    let_go(server);
    settle_touched(server);
}

static void settle(void *ctx)
{
    server_settle(ctx);
}

/* Sessions without a connection whose time is up. While draining nothing ends. */
static void end_leases(struct server *server)
{
    struct sessions *sessions = &server->sessions;
    char client[SESSION_CLIENT_MAX * 4 + 3];
    for (uint32_t i = 0; i < sessions->by_owner.n && sessions->away_n > 0 && !server->draining; i++) {
        struct standing *standing = sessions->by_owner.at[i];
        if (standing == NULL || standing->session != NULL || server->clock_ms < standing->lease_end_ms) continue;
        if (!dispatch_may_part(&server->dispatch, standing->owner)) continue; /* with the next tick */
        log_info("lease_end", "session=%llu client=%s lease_ms=%u", (unsigned long long)standing->id,
                 log_quote(standing->client, client, sizeof client), standing->lease_ms);
        server->metrics.leases_ended++;
        server_end_session(server, standing);
    }
}

/* One line when max_memory_bytes begins to stand in the way, and one when it has not for a while: near the limit it goes to and fro. */
static void watch_memory(struct server *server)
{
    struct budget *budget = &server->budget;
    if (server->denied_seen != budget->denied) {
        server->denied_seen = budget->denied;
        server->denied_ms = server->clock_ms;
        if (!server->memory_full)
            log_warn("memory", "full=yes max_memory_bytes=%llu why=\"what would add to it is refused (LIMIT_EXCEEDED), and enters wait\"",
                     (unsigned long long)budget->limit_bytes);
        server->memory_full = true;
    } else if (server->memory_full && server->clock_ms >= server->denied_ms + MEMORY_CALM_MS && !budget_full(budget)) {
        server->memory_full = false;
        log_info("memory", "full=no denied=%llu", (unsigned long long)budget->denied);
    }
}

/* But for strangers: however many come, what those who are known may use is not less for that. */
static uint32_t waiting(const struct server *server)
{
    return server->waiting[TURN_LIGHT].n + server->waiting[TURN_HEAVY].n;
}

static void on_tick(uv_timer_t *timer)
{
    struct server *server = timer->data;
    uint64_t now_ms = uv_now(server->loop), passed_ms = now_ms - server->ticked_ms;
    server->ticked_ms = now_ms;
    server->clock_ms += passed_ms < 2 * SERVER_TICK_MS ? passed_ms : 2 * SERVER_TICK_MS;
    server->sessions.clock_ms = server->clock_ms;
    server->ticks++;
    if (server->crowd / 2 >= waiting(server)) server->crowd /= 2;
    for (uint32_t i = server->conns.n; i-- > 0;) conn_tick(server->conns.at[i]); /* one that drops is replaced by a later one */
    end_leases(server);
    dispatch_forget_parting(&server->dispatch);
    watch_memory(server);
    server_settle(server);
    if (server->conns.n == 0 && server->sessions.away_n == 0 && !server->memory_full) uv_timer_stop(timer);
}

void server_start_tick(struct server *server)
{
    if (uv_is_active((uv_handle_t *)&server->tick)) return;
    server->ticked_ms = uv_now(server->loop);
    uv_timer_start(&server->tick, on_tick, SERVER_TICK_MS, SERVER_TICK_MS);
}

uint64_t server_light_ns(const struct server *server)
{
    uint64_t share_ns = LIGHT_ALL_NS / (server->crowd + 1);
    return share_ns < LIGHT_MAX_NS ? share_ns : LIGHT_MAX_NS;
}

unsigned server_read_bytes(const struct server *server)
{
    uint64_t bytes = SERVER_READ_BYTES * server_turn_ns(server) / TURN_MAX_NS;
    return bytes < READ_LEAST_BYTES ? READ_LEAST_BYTES : (unsigned)bytes;
}

uint64_t server_turn_ns(const struct server *server)
{
    uint64_t share_ns = TURN_ALL_NS / (waiting(server) + 1);
    return share_ns < TURN_MIN_NS ? TURN_MIN_NS : share_ns > TURN_MAX_NS ? TURN_MAX_NS : share_ns;
}

bool server_turn_over(struct server *server)
{
    uint64_t now_ns = uv_hrtime();
    if (server->turn_began_ns == 0) server->turn_began_ns = now_ns;
    return now_ns - server->turn_began_ns > TURN_ALL_NS;
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct server *server = prepare->data;
    server->turn_began_ns = 0;
    record_write(server->record);
}

/* Those that wait now, in their order; who is not reached has his turn in the next one of the loop. */
static void serve(struct server *server, conn_list *list, uint32_t least, uint64_t least_ns)
{
    uint32_t n = list->n, done = 0;
    uint64_t until_ns = least_ns > 0 && n > 0 ? uv_hrtime() + least_ns : 0;
    for (; done < n && (done < least || !server_turn_over(server) || uv_hrtime() < until_ns); done++) {
        if (list->at[done] == NULL) continue; /* dropped meanwhile */
        conn_turn(list->at[done]);
        server_settle(server);
    }
    if (done == 0) return;
    list->n -= done;
    memmove(list->at, list->at + done, list->n * sizeof list->at[0]);
}

static int by_use(const void *a, const void *b)
{
    const struct conn *left = *(struct conn *const *)a, *right = *(struct conn *const *)b;
    uint64_t l = left == NULL ? 0 : conn_busy_ns(left), r = right == NULL ? 0 : conn_busy_ns(right);
    return (l > r) - (l < r);
}

/* Those that found the last turn over. */
static void let_in(struct server *server)
{
    for (size_t i = 0; i < 2; i++) {
        if (server->knocked[i]) conn_accept(server, &server->listeners[i]);
        server->knocked[i] = false;
    }
}

/* Who used least is first among the light ones: of a thousand whose frames take long all are light when a round of them takes longer than it takes to forget what they used.
 * However many there are, the others do not starve. */
static void on_turn(uv_idle_t *idle)
{
    struct server *server = idle->data;
    server->turn_began_ns = 0;
    conn_list *light = &server->waiting[TURN_LIGHT];
    if (light->n > 1) qsort(light->at, light->n, sizeof light->at[0], by_use);
    serve(server, light, 0, 0);
    serve(server, &server->waiting[TURN_HEAVY], 1, 0);
    serve(server, &server->waiting[TURN_STRANGER], 1, STRANGERS_NS);
    bool ending = dispatch_end_some(&server->dispatch);
    let_in(server);
    server_settle(server);
    if (waiting(server) == 0 && server->waiting[TURN_STRANGER].n == 0 && !ending) uv_idle_stop(idle);
}

void server_end_session(struct server *server, struct standing *standing)
{
    dispatch_end(&server->dispatch, standing);
    if (server->dispatch.ending.n > 0) uv_idle_start(&server->turn, on_turn);
}

void server_wait_turn(struct server *server, struct conn *conn, enum turn turn)
{
    *array_add(&server->waiting[turn]) = conn;
    if (server->crowd < waiting(server)) server->crowd = waiting(server);
    uv_idle_start(&server->turn, on_turn);
}

void server_forget_turn(struct server *server, const struct conn *conn)
{
    for (int turn = 0; turn < TURNS; turn++)
        for (uint32_t i = 0; i < server->waiting[turn].n; i++)
            if (server->waiting[turn].at[i] == conn) server->waiting[turn].at[i] = NULL;
}

/* ------------------------------------------------------------------------------------------------------------- the beginning */

void server_fit_open_files(struct config *config)
{
    struct rlimit limit;
    rlim_t others = OTHER_FILES + (config->http_listen.socket.ss_family != 0 ? HTTP_FILES : 0), need = (rlim_t)config->max_connections + others;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need) return;
    limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= need) return;
    uint32_t fits = limit.rlim_cur > others ? (uint32_t)(limit.rlim_cur - others) : 1;
    log_warn("open_files", "limit=%llu max_connections=%u lowered_to=%u", (unsigned long long)limit.rlim_cur, config->max_connections, fits);
    config->max_connections = fits;
}

static int make_spaces(struct server *server, char *err)
{
    for (uint32_t i = 0; i < server->config->spaces.n; i++) {
        const struct config_space *space = &server->config->spaces.at[i];
        if (aoi_space_find(server->world, space->id) != NULL) continue; /* it came back from a snapshot, with these settings */
        int status = aoi_space_create(server->world, 0, space->id, &space->settings, false);
        if (status == AOI_OK && space->path == NULL) log_info("space", "id=%llu made_by=--set", (unsigned long long)space->id);
        if (status == AOI_OK) continue;
        snprintf(err, CONFIG_ERROR_MAX, "space %s: %s", space->label, dispatch_text(-status));
        return -1;
    }
    return 0;
}

static void init_handles(struct server *server)
{
    CHECK(uv_timer_init(server->loop, &server->tick) == 0);
    CHECK(uv_timer_init(server->loop, &server->drain_timer) == 0);
    CHECK(uv_idle_init(server->loop, &server->turn) == 0);
    CHECK(uv_prepare_init(server->loop, &server->prepare) == 0);
    server->tick.data = server->drain_timer.data = server->turn.data = server->prepare.data = server;
    CHECK(uv_prepare_start(&server->prepare, on_prepare) == 0);
}

_Static_assert(AOI_DELTA_OVERHEAD + AOI_ENTER_BYTES == 228, "README.md, the configuration and its help speak of 228 bytes");

void server_set_limits(struct server *server)
{
    const struct config *config = server->config;
    server->budget.limit_bytes = config->max_memory_bytes;
    server->out_limits = (struct outbox_limits){.soft_bytes = config->out_soft_bytes,
                                                .hard_bytes = config->out_hard_bytes,
                                                .slack_bytes = AOI_DELTA_OVERHEAD + AOI_ENTER_BYTES + config->max_payload};
}

static void on_instant(void *ctx, const struct aoi_space *space, struct aoi_flush_info *info)
{
    record_flush(ctx, space, info);
}

static int start_recording(struct server *server, char *err)
{
    if (server->config->record[0] == '\0') return 0;
    server->record = record_new(server->config, err);
    if (server->record == NULL) return -1;
    server->sessions.record = server->record;
    server->flusher.instant = on_instant;
    server->flusher.instant_ctx = server->record;
    return 0;
}

/* From a snapshot, if there is one. If that fails there is a world as well, an empty one. */
static int make_world(struct server *server, char *err)
{
    const struct aoi_limits limits = config_limits(server->config);
    const struct aoi_sink sink = deliver_sink(&server->deliver);
    int status = hold_take(&server->hold, server->config, err);
    if (status == 0) status = snapshot_load(server->config, &server->sessions, &sink, &server->world, err);
    if (server->world == NULL) server->world = aoi_world_new(&limits, &sink);
    server->sessions.world = server->world;
    return status;
}

/* Nobody could resume these any more: they do not wait for their leases to end. */
static void end_withdrawn(struct server *server)
{
    const struct sessions *sessions = &server->sessions;
    char client[SESSION_CLIENT_MAX * 4 + 3];
    for (uint32_t i = 0; i < sessions->by_owner.n; i++) {
        struct standing *standing = sessions->by_owner.at[i];
        if (standing == NULL || tokens_know(&server->doors.tokens, standing->token_name)) continue;
        log_warn("withdrawn", "session=%llu client=%s token=%s why=\"no token of this name is left: the session ends, with what it owns\"",
                 (unsigned long long)standing->id, log_quote(standing->client, client, sizeof client), standing->token_name);
        standing->lease_ms = 0; /* it ends with its connection */
        if (standing->session == NULL) server_end_session(server, standing);
    }
}

/* What came back from a snapshot goes on: spaces are flushed, leases run. */
static void go_on(struct server *server)
{
    uint64_t id = 0, spaces = 0;
    for (struct aoi_space *space; (space = aoi_space_next(server->world, id)) != NULL; id = aoi_space_id(space), spaces++)
        flusher_rearm(&server->flusher, space);
    log_info("ready", "spaces=%llu sessions=%u", (unsigned long long)spaces, server->sessions.by_id.n);
    end_withdrawn(server);
    if (server->sessions.away_n > 0) server_start_tick(server);
    snapshot_begin(&server->snapshot);
}

int server_init(struct server *server, uv_loop_t *loop, struct config *config, char *err)
{
    server_fit_open_files(config);
    *server = (struct server){.config = config, .loop = loop, .scratch = mem_alloc(SERVER_READ_BYTES), .plain = mem_alloc(SERVER_PLAIN_BYTES)};
    server_set_limits(server);
    server->metrics.started_ms = uv_now(loop);
    server->sessions.metrics = &server->metrics;
    server->sessions.last_id = flusher_time_us(); /* a daemon that is started later gives others: there is no session each microsecond */
    deliver_init(&server->deliver, &server->sessions, (size_t)config->max_frame_bytes);
    server->deliver.budget = &server->budget;
    int status = make_world(server, err);
    flusher_init(&server->flusher, loop, server->world, settle, server);
    flushwatch_init(&server->flushwatch, &server->metrics, config);
    server->flusher.watch = &server->flushwatch;
    server->dispatch = (struct dispatch){.config = config,
                                         .world = server->world,
                                         .sessions = &server->sessions,
                                         .deliver = &server->deliver,
                                         .flusher = &server->flusher,
                                         .metrics = &server->metrics,
                                         .budget = &server->budget,
                                         .tokens = &server->doors.tokens};
    dispatch_init(&server->dispatch);
    init_handles(server);
    snapshot_init(&server->snapshot, loop, config, &server->sessions, &server->dispatch);
    if (status != 0 || doors_load(&server->doors, config, err) != 0) return -1;
    tls_log(server->doors.tls);
    return make_spaces(server, err) != 0 ? -1 : 0;
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct server *server = listener->data;
    if (status < 0) {
        log_warn("accept", "error=%s", uv_err_name(status));
    } else if (server_turn_over(server)) { /* libuv takes in whoever comes until nobody does, and they may come as fast as they are taken in */
        server->knocked[(union stream *)listener - server->listeners] = true;
        uv_idle_start(&server->turn, on_turn);
    } else {
        conn_accept(server, (union stream *)listener);
    }
}

int server_listen(struct server *server, const struct activation *passed, int *port, char *err)
{
    const struct config *config = server->config;
    int status = 0;
    *port = 0;
    for (size_t i = 0; i < 2; i++) server->listeners[i].handle.data = server;
    if (config->listen.socket.ss_family != 0 || passed->tcp >= 0)
        status = listener_tcp(&server->listeners[0], server->loop, config, passed->tcp, on_connection, port, err);
    if (status == 0 && (config->unix_socket[0] != '\0' || passed->local >= 0))
        status = listener_unix(&server->listeners[1], server->loop, config, passed->local, on_connection, err);
    if (status == 0)
        status = start_recording(server, err); /* not before: a start that fails must not put another recording in the place of the old one */
    server->listening = status == 0;
    if (status == 0) go_on(server);
    return status;
}

void server_set_doors(struct server *server, struct doors *fresh)
{
    char why[TOKENS_WHY];
    doors_clear(&server->doors);
    server->doors = *fresh;
    *fresh = (struct doors){0};
    tls_log(server->doors.tls);
    for (uint32_t i = 0; i < server->conns.n; i++) {
        struct session *session = conn_session(server->conns.at[i]);
        if (session->state != SESSION_READY || tokens_hold(&server->doors.tokens, &session->token)) continue;
        tokens_why(&server->doors.tokens, &session->token, why);
        session_refuse(&server->sessions, session, 0, CODEC_UNAUTHENTICATED, why, CLOSE_WITHDRAWN);
    }
    end_withdrawn(server);
    server_settle(server);
}

/* ------------------------------------------------------------------------------------------------------------- the end */

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

static void close_listeners(struct server *server)
{
    server->knocked[0] = server->knocked[1] = false;
    for (size_t i = 0; i < 2; i++)
        if (server->listeners[i].handle.type != UV_UNKNOWN_HANDLE) close_handle(&server->listeners[i].handle);
}

void server_finish(struct server *server)
{
    close_listeners(server);
    close_handle((uv_handle_t *)&server->tick);
    close_handle((uv_handle_t *)&server->drain_timer);
    close_handle((uv_handle_t *)&server->turn);
    close_handle((uv_handle_t *)&server->prepare);
    snapshot_close(&server->snapshot);
    if (server->on_finish != NULL) server->on_finish(server->on_finish_ctx);
    if (server->world == NULL) return;
    aoi_world_free(server->world); /* and with it the spaces' timers */
    server->world = NULL;
    flusher_close(&server->flusher);
}

static void drop_all(struct server *server)
{
    while (server->conns.n > 0) {
        struct conn *conn = server->conns.at[server->conns.n - 1];
        session_close(&server->sessions, conn_session(conn), CLOSE_DRAIN);
        server_settle(server);
        conn_drop(conn);
    }
}

static void on_drain(uv_timer_t *timer)
{
    struct server *server = timer->data;
    uint64_t now_ms = uv_now(server->loop);
    flusher_flush_all(&server->flusher); /* for those who were skipped, and have read since */
    server_settle(server);
    for (uint32_t i = server->conns.n; i-- > 0 && now_ms - server->drain_began_ms >= DRAIN_GRACE_MS;) {
        struct conn *conn = server->conns.at[i];
        if (conn_quiet(conn)) session_close(&server->sessions, conn_session(conn), CLOSE_DRAIN);
    }
    server_settle(server);
    if (now_ms >= server->drain_deadline_ms) drop_all(server);
    if (server->conns.n > 0) return;
    server->lost = !snapshot_last(&server->snapshot);
    log_info("drained", "ms=%llu", (unsigned long long)(now_ms - server->drain_began_ms));
    server_finish(server);
}

void server_drain(struct server *server, const char *why)
{
    log_info("drain", "why=%s connections=%u", why, server->conns.n);
    dispatch_finish(&server->dispatch);
    dispatch_end_all(&server->dispatch);
    server->draining = server->dispatch.draining = true;
    close_listeners(server);
    snapshot_stop(&server->snapshot);
    flusher_flush_all(&server->flusher);
    const struct codec_server_frame notice = {.kind = CODEC_DRAINING_NOTICE};
    for (uint32_t i = 0; i < server->conns.n; i++) session_send(&server->sessions, conn_session(server->conns.at[i]), &notice);
    server_settle(server);
    server->drain_began_ms = uv_now(server->loop);
    server->drain_deadline_ms = server->drain_began_ms + server->config->drain_timeout_ms;
    uv_timer_start(&server->drain_timer, on_drain, server->conns.n > 0 ? DRAIN_TICK_MS : 0, DRAIN_TICK_MS);
}

void server_clear(struct server *server)
{
    CHECK(server->world == NULL && server->conns.n == 0);
    dispatch_clear(&server->dispatch);
    flushwatch_clear(&server->flushwatch);
    deliver_clear(&server->deliver);
    sessions_clear(&server->sessions);
    record_free(server->record);
    hold_release(&server->hold);
    doors_clear(&server->doors);
    array_clear(&server->conns);
    for (int turn = 0; turn < TURNS; turn++) array_clear(&server->waiting[turn]);
    free(server->scratch);
    free(server->plain);
}
