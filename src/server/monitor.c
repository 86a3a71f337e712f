/* monitor.c: the pages for whoever watches the daemon: /metrics, /healthz, /readyz, /spaces. */
#include "server/monitor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "server/http.h"

#define SPACES_A_PAGE 1000
#define OK 200
#define UNAVAILABLE 503

static int page_metrics(void *ctx, uint64_t after, struct buf *body)
{
    struct server *server = ((struct monitor *)ctx)->server;
    (void)after;
    server->metrics.http_requests++;
    const struct metrics_source source = {.metrics = &server->metrics,
                                          .world = server->world,
                                          .sessions = server->sessions.by_id.n,
                                          .memory_limit_bytes = server->budget.limit_bytes,
                                          .memory_denied = server->budget.denied,
                                          .memory_full = server->memory_full,
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
    for (; n < SPACES_A_PAGE && (space = aoi_space_next(server->world, after)) != NULL; n++, after = aoi_space_id(space)) {
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

static const struct http_page pages[] = {
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", page_metrics},
    {"/healthz", "text/plain; charset=utf-8", page_health},
    {"/readyz", "text/plain; charset=utf-8", page_ready},
    {"/spaces", "application/json", page_spaces},
    {NULL, NULL, NULL},
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
