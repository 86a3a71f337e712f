/* monitor.c: the pages for whoever watches the daemon: /metrics, /healthz, /readyz, /spaces, /sessions. */
#include "server/monitor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "server/http.h"

#define A_PAGE 1000 /* items in a list */
#define OK 200
#define UNAVAILABLE 503

static uint64_t unsent_bytes(const struct server *server)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < server->conns.n; i++) sum += outbox_bytes(&conn_session(server->conns.at[i])->out);
    return sum;
}

static int page_metrics(void *ctx, uint64_t after, struct buf *body)
{
    struct server *server = ((struct monitor *)ctx)->server;
    (void)after;
    server->metrics.http_requests++;
    const struct metrics_source source = {.metrics = &server->metrics,
                                          .world = server->world,
                                          .sessions = server->sessions.by_id.n,
                                          .unsent_bytes = unsent_bytes(server),
                                          .memory_held_bytes = budget_held(&server->budget),
                                          .memory_limit_bytes = server->budget.limit_bytes,
                                          .memory_denied = server->budget.denied,
                                          .memory_full = server->memory_full,
                                          .record_failed = record_failed(server->record),
                                          .draining = server->draining};
    metrics_write(&source, body);
    return OK;
}

/* That it is answered at all is the answer: the loop turns. */
static int page_health(void *ctx, uint64_t after, struct buf *body)
{
    (void)ctx;
    (void)after;
    buf_printf(body, "ok\n");
    return OK;
}

static int page_ready(void *ctx, uint64_t after, struct buf *body)
{
    const struct server *server = ((struct monitor *)ctx)->server;
    (void)after;
    bool ready = server->listening && !server->draining;
    buf_printf(body, "%s\n", ready ? "ready" : server->draining ? "draining: the daemon is about to exit" : "starting");
    return ready ? OK : UNAVAILABLE;
}

/* Those settings that are not at their defaults, by the names that `aoictl create` has for them; bounds and update_tiers as it takes them. */
static void put_settings(struct buf *out, const struct aoi_settings *set)
{
    char tiers[AOI_TIERS_TEXT];
    aoi_tiers_print(&set->tiers, tiers);
    if (set->cell_range != 1) buf_printf(out, "\"cell_range\":%u,", set->cell_range);
    if (set->bounded && set->dimensions == 2)
        buf_printf(out, "\"bounds\":\"%.9g,%.9g,%.9g,%.9g\",", (double)set->min[0], (double)set->min[1], (double)set->max[0], (double)set->max[1]);
    else if (set->bounded)
        buf_printf(out, "\"bounds\":\"%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\",", (double)set->min[0], (double)set->min[1], (double)set->min[2],
                   (double)set->max[0], (double)set->max[1], (double)set->max[2]);
    if (set->extra) buf_printf(out, "\"extra\":true,");
    if (set->persistent) buf_printf(out, "\"persistent\":true,");
    if (set->leave_margin > 0) buf_printf(out, "\"leave_margin\":%.9g,", (double)set->leave_margin);
    if (set->min_stay_ms > 0) buf_printf(out, "\"min_stay_ms\":%u,", set->min_stay_ms);
    if (set->max_view > 0) buf_printf(out, "\"max_view\":%u,", set->max_view);
    if (set->max_enter_per_flush > 0) buf_printf(out, "\"max_enter_per_flush\":%u,", set->max_enter_per_flush);
    if (tiers[0] != '\0') buf_printf(out, "\"update_tiers\":\"%s\",", tiers);
}

/* Ids are strings, as in protobuf's JSON: they have 64 bits, and many readers of JSON have doubles. */
static void put_space(struct buf *out, const struct server *server, struct aoi_space *space)
{
    const struct aoi_settings *set = aoi_space_settings(space);
    struct aoi_stats stats = {0};
    aoi_space_stats(space, &stats);
    buf_printf(out,
               "{\"id\":\"%llu\",\"owner_session\":\"%llu\",\"dimensions\":%u,\"index\":\"%s\",\"shape\":\"%s\",\"cell_size\":%.17g,\"flush_ms\":%u,",
               (unsigned long long)aoi_space_id(space), (unsigned long long)sessions_id_of_owner(&server->sessions, aoi_space_owner(space)),
               set->dimensions, config_index_name(set->index), config_shape_name(set->shape), set->cell_size, set->flush_ms);
    put_settings(out, set);
    buf_printf(out, "\"entities\":%llu,\"players\":%llu,\"pairs\":%llu,\"flushes\":%llu,\"skipped\":%llu,\"memory_bytes\":%llu}",
               (unsigned long long)stats.entities, (unsigned long long)stats.players, (unsigned long long)stats.pairs,
               (unsigned long long)stats.flushes, (unsigned long long)stats.skipped, (unsigned long long)stats.memory_bytes);
}

static int page_spaces(void *ctx, uint64_t after, struct buf *body)
{
    const struct server *server = ((struct monitor *)ctx)->server;
    struct aoi_space *space;
    uint32_t n = 0;
    buf_printf(body, "{\"spaces\":[");
    for (; n < A_PAGE && (space = aoi_space_next(server->world, after)) != NULL; n++, after = aoi_space_id(space)) {
        buf_printf(body, n > 0 ? ",\n" : "\n");
        put_space(body, server, space);
    }
    buf_printf(body, "],\n\"next\":");
    if (aoi_space_next(server->world, after) != NULL)
        buf_printf(body, "\"/spaces?after=%llu\"}\n", (unsigned long long)after);
    else
        buf_printf(body, "null}\n");
    return OK;
}

/* ------------------------------------------------------------------------------------------------------------- sessions */

/* What a peer sent, of which JSON can be broken: all but printable ASCII is a question mark. */
static void put_text(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, "\"%s\":\"", name);
    for (; *text != '\0'; text++) buf_printf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text < ' ' || *text > '~' ? '?' : *text);
    buf_printf(out, "\",");
}

struct possessions {
    uint64_t entities, players;
};
typedef ARRAY(struct possessions) possessions_list; /* by owner */

static void add_owned(void *ctx, aoi_owner owner, uint32_t entities, uint32_t players)
{
    possessions_list *owned = ctx;
    if (owner >= owned->n) return; /* its session has ended, and what it owned is about to */
    owned->at[owner].entities += entities;
    owned->at[owner].players += players;
}

/* Those without a connection wait for one until their leases end. */
static void put_session(struct buf *out, const struct server *server, const struct standing *standing, const struct possessions *owned)
{
    const struct session *session = standing->session;
    const struct conn *conn = session == NULL ? NULL : conn_of_session(standing->session);
    uint64_t lease_ms = standing->lease_ms; /* rounded up to a tick it may end a little later; and it may be frozen */
    if (session == NULL && standing->lease_end_ms < server->clock_ms + lease_ms)
        lease_ms = standing->lease_end_ms > server->clock_ms ? standing->lease_end_ms - server->clock_ms : 0;
    buf_printf(out, "{\"id\":\"%llu\",", (unsigned long long)standing->id);
    put_text(out, "client", standing->client);
    put_text(out, "token", standing->token_name);
    if (session == NULL) buf_printf(out, "\"role\":null,\"peer\":null,"); /* these are of the connection: the next one may come in as somebody else */
    if (session != NULL) put_text(out, "role", role_name(session->token.role));
    if (session != NULL) put_text(out, "peer", session->peer);
    buf_printf(out, "\"connected\":%s,\"lease_left_ms\":%llu,\"last_seq\":\"%llu\",\"entities\":%llu,\"players\":%llu,",
               session == NULL ? "false" : "true", (unsigned long long)lease_ms, (unsigned long long)standing->last_seq,
               (unsigned long long)owned->entities, (unsigned long long)owned->players);
    buf_printf(out, "\"unsent_bytes\":%llu,\"full_ms\":%llu,\"served\":%llu,\"skipped\":%llu,\"silent_ms\":%llu}",
               (unsigned long long)(session == NULL ? 0 : outbox_bytes(&session->out)), (unsigned long long)(conn == NULL ? 0 : conn_full_ms(conn)),
               (unsigned long long)(session == NULL ? 0 : session->served), (unsigned long long)(session == NULL ? 0 : session->skipped),
               (unsigned long long)(conn == NULL ? 0 : conn_silent_ms(conn)));
}

/* By owner's number, so that whoever is there throughout stands in exactly one page. */
static int page_sessions(void *ctx, uint64_t after, struct buf *body)
{
    const struct server *server = ((struct monitor *)ctx)->server;
    const struct sessions *sessions = &server->sessions;
    possessions_list owned = {0};
    uint64_t id = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i <= sessions->by_owner.n; i++) *array_add(&owned) = (struct possessions){0};
    for (const struct aoi_space *space; (space = aoi_space_next(server->world, id)) != NULL; id = aoi_space_id(space))
        aoi_space_owned(space, add_owned, &owned);
    buf_printf(body, "{\"sessions\":[");
    for (; n < A_PAGE && after < sessions->by_owner.n; after++) {
        const struct standing *standing = sessions->by_owner.at[after];
        if (standing == NULL) continue;
        buf_printf(body, n++ > 0 ? ",\n" : "\n");
        put_session(body, server, standing, &owned.at[standing->owner]);
    }
    array_clear(&owned);
    buf_printf(body, "],\n\"next\":");
    if (after < sessions->by_owner.n)
        buf_printf(body, "\"/sessions?after=%llu\"}\n", (unsigned long long)after);
    else
        buf_printf(body, "null}\n");
    return OK;
}

static const struct http_page pages[] = {
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", false, page_metrics},
    {"/healthz", "text/plain; charset=utf-8", false, page_health},
    {"/readyz", "text/plain; charset=utf-8", false, page_ready},
    {"/spaces", "application/json", true, page_spaces},
    {"/sessions", "application/json", true, page_sessions},
    {NULL, NULL, false, NULL},
};

static void on_finish(void *ctx)
{
    struct monitor *monitor = ctx;
    http_close(monitor->http);
}

int monitor_start(struct monitor *monitor, struct server *server, char *err)
{
    const char *text = server->config->http_listen.text, *why;
    int port;
    *monitor = (struct monitor){.server = server};
    if (server->config->http_listen.socket.ss_family == 0) return 0;
    monitor->http = http_new(server->loop, &server->config->http_listen.socket, pages, monitor, &port, &why);
    if (monitor->http == NULL) {
        snprintf(err, CONFIG_ERROR_MAX, "http_listen = %s: cannot listen: %s%s", text, why, listener_advice(errno));
        return -1;
    }
    server->on_finish = on_finish;
    server->on_finish_ctx = monitor;
    log_info("http", "address=%.*s:%d", (int)(strrchr(text, ':') - text), text, port);
    if (!config_is_loopback(&server->config->http_listen.socket))
        log_warn("http", "address=%s why=\"anybody who reaches this address can read what the daemon counts\"", text);
    return 0;
}

void monitor_clear(struct monitor *monitor)
{
    http_free(monitor->http);
    monitor->http = NULL;
}
