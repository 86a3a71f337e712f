/* http.c: pages for monitoring: a small HTTP server (libwebsockets) on the daemon's loop. */
#include "server/http.h"

#include <errno.h>
#include <libwebsockets.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"

#define REQUEST_S 2      /* for a request to come */
#define ANSWER_S 10      /* for an answer to be taken */
#define TOLD_A_SECOND 10 /* lines of the log; what more there is to say is said at log_level = debug */
#define PIECE_BYTES ((size_t)16 * 1024)
#define HEAD_BYTES 512
/* A page that took so long is given once more to those who ask within so many times of that: however many they are, and however often they ask, they take no more than a small
 * part of the loop's time. */
#define DEAR_NS ((uint64_t)5 * 1000 * 1000)
#define DEAR_TIMES 20

struct dear {
    const struct http_page *page; /* NULL: none yet */
    uint64_t after, until_ns;
    int status;
    struct buf body;
};

struct http {
    struct lws_context *context; /* NULL: it is gone */
    const struct http_page *pages;
    void *ctx;
    void *loops[1];
    uint32_t clients;
    struct dear dear; /* the last one that took long */
    bool closing;
};

/* libwebsockets keeps one for each connection. */
struct request {
    struct buf body;
};

/* ------------------------------------------------------------------------------------------------------------- one request */

static bool is_head(struct lws *wsi)
{
    return lws_hdr_total_length(wsi, WSI_TOKEN_HEAD_URI) > 0;
}

/* What stands behind the ? of a list: after=NUMBER, or nothing. With anything else whoever guesses how to get the next page would get the first one for
 * ever. False, with a sentence in the body: it is something else. */
static bool take_arguments(struct lws *wsi, const char *path, uint64_t *after, struct buf *body)
{
    static const char name[] = "after=";
    char text[64], *end;
    for (int i = 0;; i++) {
        int len = lws_hdr_copy_fragment(wsi, text, sizeof text, WSI_TOKEN_HTTP_URI_ARGS, i);
        bool cut = len < 0 && lws_hdr_fragment_length(wsi, WSI_TOKEN_HTTP_URI_ARGS, i) > 0;
        if (len < 0 && !cut) return true;
        if (len == 0 || (len == 1 && text[0] == '/')) continue; /* the latter is what libwebsockets makes of a ? or & with nothing behind it */
        const char *value = text + sizeof name - 1;
        if (!cut && strncmp(text, name, sizeof name - 1) == 0 && *value >= '0' && *value <= '9') {
            errno = 0;
            *after = strtoull(value, &end, 10);
            if (*end == '\0' && errno == 0) continue;
        }
        for (char *at = text; !cut && *at != '\0'; at++)
            if (*at < ' ' || *at > '~') *at = '?';
        buf_printf(body, "\"%s\" is not understood: %s takes after=NUMBER alone; \"next\" in its JSON is the path of the next page\n",
                   cut ? "..." : text, path);
        return false;
    }
}

static uint64_t busy_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int give(struct http *http, const struct http_page *page, uint64_t after, struct buf *body)
{
    struct dear *dear = &http->dear;
    if (dear->page == page && dear->after == after && uv_hrtime() < dear->until_ns) {
        buf_append(body, buf_data(&dear->body), buf_len(&dear->body));
        return dear->status;
    }
    uint64_t began_ns = busy_ns();
    int status = page->make(http->ctx, after, body);
    uint64_t took_ns = busy_ns() - began_ns;
    if (took_ns < DEAR_NS) return status;
    buf_clear(&dear->body);
    *dear = (struct dear){.page = page, .after = after, .until_ns = uv_hrtime() + took_ns * DEAR_TIMES, .status = status};
    buf_append(&dear->body, buf_data(body), buf_len(body));
    return status;
}

/* Makes the page of the path; the status. */
static int make(struct http *http, struct lws *wsi, const char *path, struct request *request, const char **type)
{
    static const char none[] = "no such page; there are /metrics, /healthz, /readyz, /spaces and /sessions\n";
    uint64_t after = 0;
    *type = "text/plain; charset=utf-8";
    if (lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) <= 0 && !is_head(wsi)) return HTTP_STATUS_METHOD_NOT_ALLOWED;
    for (const struct http_page *page = http->pages; page->path != NULL; page++) {
        if (strcmp(page->path, path) != 0) continue;
        if (page->list && !take_arguments(wsi, path, &after, &request->body)) return HTTP_STATUS_BAD_REQUEST;
        *type = page->type;
        return give(http, page, after, &request->body);
    }
    buf_append(&request->body, none, sizeof none - 1);
    return HTTP_STATUS_NOT_FOUND;
}

/* Not 0: the connection is to be closed, as it is behind every answer: what else comes on it is not read, and libwebsockets 4.1 would turn for ever over a second request that has a body and
 * came with the first one. */
static int answer(struct http *http, struct lws *wsi, const char *path, struct request *request)
{
    unsigned char head[LWS_PRE + HEAD_BYTES], *begin = head + LWS_PRE, *at = begin, *end = head + sizeof head;
    const char *type;
    buf_clear(&request->body);
    int status = make(http, wsi, path, request, &type);
    if (lws_add_http_common_headers(wsi, (unsigned)status, type, buf_len(&request->body), &at, end) != 0) return -1;
    if (lws_add_http_header_by_token(wsi, WSI_TOKEN_CONNECTION, (const unsigned char *)"close", 5, &at, end) != 0) return -1;
    bool other = status == HTTP_STATUS_METHOD_NOT_ALLOWED;
    if (other && lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_ALLOW, (const unsigned char *)"GET, HEAD", 9, &at, end) != 0) return -1;
    if (lws_finalize_write_http_header(wsi, begin, &at, end) != 0 || other || is_head(wsi)) return -1;
    lws_callback_on_writable(wsi);
    return 0;
}

static int write_piece(struct lws *wsi, struct request *request)
{
    unsigned char piece[LWS_PRE + PIECE_BYTES];
    size_t n = buf_len(&request->body) < PIECE_BYTES ? buf_len(&request->body) : PIECE_BYTES;
    if (n == 0) return 0;
    memcpy(piece + LWS_PRE, buf_data(&request->body), n);
    buf_consume(&request->body, n);
    bool last = buf_len(&request->body) == 0;
    if (lws_write(wsi, piece + LWS_PRE, n, last ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < 0) return -1;
    if (!last) {
        lws_callback_on_writable(wsi);
        return 0;
    }
    return -1;
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
    struct http *http = lws_context_user(lws_get_context(wsi));
    (void)len;
    switch (reason) {
    case LWS_CALLBACK_FILTER_NETWORK_CONNECTION: return http->closing || http->clients >= HTTP_CLIENTS;
    case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED:
        lws_set_opaque_user_data(wsi, http); /* not all that are destroyed have been counted: listeners, streams */
        http->clients++;
        lws_set_timeout(wsi, PENDING_TIMEOUT_ESTABLISH_WITH_SERVER, REQUEST_S);
        return 0;
    case LWS_CALLBACK_WSI_DESTROY: http->clients -= lws_get_opaque_user_data(wsi) == http; return 0;
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE: /* neither HTTP/2 nor WebSockets */
        lws_return_http_status(wsi, HTTP_STATUS_NOT_IMPLEMENTED, "there is no Upgrade: ask in HTTP/1.1");
        return -1;
    case LWS_CALLBACK_HTTP: return http->closing ? -1 : answer(http, wsi, in, user);
    case LWS_CALLBACK_HTTP_WRITEABLE: return write_piece(wsi, user);
    case LWS_CALLBACK_CLOSED_HTTP:
        if (user != NULL) buf_clear(&((struct request *)user)->body);
        return 0;
    default: return 0;
    }
}

/* ------------------------------------------------------------------------------------------------------------- the whole */

/* libwebsockets says for the process, not for whom. Whoever provokes it is not to fill the log. */
static void on_log(int level, const char *line)
{
    static uint64_t second;
    static uint32_t told;
    char text[256], quoted[512];
    uint64_t now = uv_hrtime() / 1000000000;
    (void)level;
    if (now != second) told = 0;
    second = now;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
    log_write(told++ < TOLD_A_SECOND ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG, "http", "says=%s", log_quote(text, quoted, sizeof quoted));
}

static struct lws_vhost *listen_at(struct http *http, const struct sockaddr_storage *address)
{
    static const struct lws_protocols protocols[] = {{.name = "http", .callback = on_event, .per_session_data_size = sizeof(struct request)}, {0}};
    char host[48];
    bool v6 = address->ss_family == AF_INET6;
    uv_ip_name((const struct sockaddr *)address, host, sizeof host);
    const struct lws_context_creation_info info = {
        .port = ntohs(v6 ? ((const struct sockaddr_in6 *)address)->sin6_port : ((const struct sockaddr_in *)address)->sin_port),
        .iface = host,
        .protocols = protocols,
        .vhost_name = "monitoring",
        .options = LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME | (v6 ? 0 : LWS_SERVER_OPTION_DISABLE_IPV6),
        .keepalive_timeout = REQUEST_S,
        .timeout_secs = ANSWER_S,
        .timeout_secs_ah_idle = REQUEST_S,
    };
    return lws_create_vhost(http->context, &info);
}

/* Whether the address can be bound: libwebsockets would wait for one that there is not, and say so to nobody. 0, or -1 with errno. */
static int try_address(const struct sockaddr_storage *address)
{
    int one = 1, fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    int status = bind(fd, (const struct sockaddr *)address, len);
    if (status == 0) status = listen(fd, 1);
    int why = errno;
    close(fd);
    errno = why;
    return status;
}

struct http *http_new(uv_loop_t *loop, const struct sockaddr_storage *address, const struct http_page *pages, void *ctx, int *port, const char **why)
{
    if (try_address(address) != 0) {
        *why = strerror(errno);
        return NULL;
    }
    struct http *http = mem_zalloc(sizeof *http);
    *http = (struct http){.pages = pages, .ctx = ctx, .loops = {loop}};
    lws_set_log_level(LLL_ERR, on_log);
    const struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN,
        .options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS,
        .foreign_loops = http->loops,
        .fd_limit_per_thread = HTTP_FILES,
        .max_http_header_pool = HTTP_CLIENTS,
        .user = http,
    };
    http->context = lws_create_context(&info);
    struct lws_vhost *vhost = http->context == NULL ? NULL : listen_at(http, address);
    *why = http->context == NULL ? "libwebsockets does not start: is its libuv plugin installed (Debian: libwebsockets-evlib-uv)?"
                                 : "libwebsockets does not listen there; the log says more";
    *port = vhost == NULL ? 0 : lws_get_vhost_listen_port(vhost);
    if (vhost != NULL) return http;
    http_close(http);
    uv_run(loop, UV_RUN_NOWAIT);
    http_free(http);
    errno = 0;
    return NULL;
}

void http_close(struct http *http)
{
    if (http->closing) return;
    http->closing = true;
    if (http->context != NULL) lws_context_destroy(http->context);
}

void http_free(struct http *http)
{
    if (http == NULL) return;
    if (http->context != NULL) lws_context_destroy(http->context); /* the loop has let go of its handles: now it goes */
    buf_clear(&http->dear.body);
    free(http);
}
