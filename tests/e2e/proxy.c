/* proxy.c: a bad network between clients and the daemon. */
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"

#define BUFFER 65536
#define LATE_US 30000 /* when the daemon's socket of a link that vanished is closed, at the latest */

enum { UP, DOWN };

/* One direction of a link. */
struct way {
    int from, to; /* sockets; -1: closed */
    bool from_ended, to_ended;
    uint32_t n; /* bytes of data that wait to be written */
    uint8_t data[BUFFER];
};

struct link {
    struct way way[2];
    uint64_t next_us; /* no byte passes before that */
    uint64_t drop_us; /* it is closed then; 0: it is not */
};

struct plan {
    enum proxy_fault fault;
    bool upwards;
    uint64_t after_bytes;
    uint32_t chunk, pause_us;
};

struct proxy {
    pthread_t thread;
    pthread_mutex_t lock; /* of everything below */
    int listener, wake[2];
    uint16_t port, to_port;
    struct plan plan;
    bool stalled[2]; /* of the current link */
    bool ends;
    uint64_t struck, random;
    ARRAY(struct link *) links; /* the last one is the current one */
    ARRAY(struct pollfd) polled;
};

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void close_socket(int *fd, bool reset)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    if (*fd < 0) return;
    if (reset) setsockopt(*fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(*fd);
    *fd = -1;
}

/* The client's socket is where UP comes from. */
static void close_client(struct link *link, bool reset)
{
    link->way[DOWN].to = -1;
    close_socket(&link->way[UP].from, reset);
}

static void close_daemon(struct link *link, bool reset)
{
    link->way[UP].to = -1;
    close_socket(&link->way[DOWN].from, reset);
}

static void strike(struct proxy *proxy, struct link *link)
{
    enum proxy_fault fault = proxy->plan.fault;
    proxy->plan.fault = PROXY_NONE;
    proxy->struck++;
    bool reset = fault == PROXY_RESET || fault == PROXY_VANISH;
    switch (fault) {
    case PROXY_RESET:
    case PROXY_CLOSE:
        close_client(link, reset);
        close_daemon(link, reset);
        break;
    case PROXY_HALF_UP:
        shutdown(link->way[UP].to, SHUT_WR);
        link->way[UP].to_ended = true;
        break;
    case PROXY_HALF_DOWN:
        shutdown(link->way[DOWN].to, SHUT_WR);
        link->way[DOWN].to_ended = true;
        break;
    case PROXY_VANISH:
        close_client(link, reset);
        proxy->random = proxy->random * 6364136223846793005u + 1442695040888963407u;
        link->drop_us = now_us() + proxy->random % LATE_US;
        break;
    case PROXY_STALL: proxy->stalled[UP] = true; /* fall through */
    case PROXY_STALL_DOWN: proxy->stalled[DOWN] = true; break;
    default: break;
    }
}

static void end_reading(struct way *way)
{
    way->from_ended = true;
    if (way->n > 0) return; /* that is written before */
    if (way->to >= 0 && !way->to_ended) shutdown(way->to, SHUT_WR);
    way->to_ended = true;
}

static bool can_read(const struct way *way)
{
    return way->from >= 0 && !way->from_ended && way->n < BUFFER;
}

static void read_way(struct way *way)
{
    ssize_t n = recv(way->from, way->data + way->n, BUFFER - way->n, MSG_DONTWAIT);
    if (n > 0)
        way->n += (uint32_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        end_reading(way);
}

/* Returns how many bytes passed. What can be written to nobody is dropped. */
static size_t write_way(struct way *way, size_t most)
{
    if (way->n == 0 || most == 0) return 0;
    ssize_t n = way->n < most ? way->n : (ssize_t)most;
    if (!way->to_ended && way->to >= 0) {
        n = send(way->to, way->data, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
        if (n < 0) way->to_ended = true;
    }
    if (way->to_ended || way->to < 0) n = way->n;
    way->n -= (uint32_t)n;
    memmove(way->data, way->data + n, way->n);
    if (way->from_ended && way->n == 0) end_reading(way);
    return (size_t)n;
}

/* Moves bytes one way, as far as the plan lets them. */
static void move_way(struct proxy *proxy, struct link *link, int which, bool readable)
{
    bool current = link == proxy->links.at[proxy->links.n - 1];
    struct way *way = &link->way[which];
    struct plan *plan = &proxy->plan;
    size_t most = BUFFER;
    if (current && proxy->stalled[which]) return;
    if (current && plan->chunk > 0 && plan->chunk < most) most = plan->chunk;
    bool counts = current && plan->fault != PROXY_NONE && plan->upwards == (which == UP);
    if (counts && plan->after_bytes < most) most = (size_t)plan->after_bytes;
    if (readable && can_read(way)) read_way(way);
    size_t passed = write_way(way, most);
    if (current && passed > 0 && plan->pause_us > 0) link->next_us = now_us() + plan->pause_us;
    if (!counts) return;
    plan->after_bytes -= passed < plan->after_bytes ? passed : plan->after_bytes;
    if (plan->after_bytes == 0) strike(proxy, link);
}

static bool is_over(const struct link *link)
{
    const struct way *up = &link->way[UP], *down = &link->way[DOWN];
    if (link->drop_us != 0) return now_us() >= link->drop_us;
    return (up->from < 0 || (up->from_ended && up->n == 0)) && (down->from < 0 || (down->from_ended && down->n == 0));
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void accept_link(struct proxy *proxy)
{
    int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC), one = 1;
    if (client < 0) return;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int daemon = connect_to(proxy->to_port);
    struct link *link = mem_zalloc(sizeof *link);
    link->way[UP].from = link->way[DOWN].to = client;
    link->way[UP].to = link->way[DOWN].from = daemon;
    *array_add(&proxy->links) = link;
    proxy->stalled[UP] = proxy->stalled[DOWN] = false;
}

/* Whether a way waits for something to read, or to write. */
static short events_of(const struct proxy *proxy, const struct link *link, int which, bool reads)
{
    const struct way *way = &link->way[which];
    bool current = link == proxy->links.at[proxy->links.n - 1];
    if ((current && proxy->stalled[which]) || now_us() < link->next_us) return 0;
    if (reads) return can_read(way) ? POLLIN : 0;
    return way->n > 0 && way->to >= 0 && !way->to_ended ? POLLOUT : 0;
}

static int fill_polled(struct proxy *proxy)
{
    bool soon = false;
    proxy->polled.n = 0;
    *array_add(&proxy->polled) = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
    *array_add(&proxy->polled) = (struct pollfd){.fd = proxy->wake[0], .events = POLLIN};
    for (uint32_t i = 0; i < proxy->links.n; i++) {
        struct link *link = proxy->links.at[i];
        short client = events_of(proxy, link, UP, true) | events_of(proxy, link, DOWN, false);
        short daemon = events_of(proxy, link, DOWN, true) | events_of(proxy, link, UP, false);
        *array_add(&proxy->polled) = (struct pollfd){.fd = client ? link->way[UP].from : -1, .events = client};
        *array_add(&proxy->polled) = (struct pollfd){.fd = daemon ? link->way[DOWN].from : -1, .events = daemon};
        soon |= link->next_us > now_us() || link->drop_us != 0;
    }
    return soon ? 1 : 100;
}

static void drop_link(struct proxy *proxy, uint32_t i)
{
    struct link *link = proxy->links.at[i];
    close_client(link, false);
    close_daemon(link, false);
    free(link);
    memmove(&proxy->links.at[i], &proxy->links.at[i + 1], (--proxy->links.n - i) * sizeof proxy->links.at[0]);
}

static void serve(struct proxy *proxy)
{
    uint32_t n = (proxy->polled.n - 2) / 2; /* links that were polled */
    char bytes[64];
    if (proxy->polled.at[1].revents && read(proxy->wake[0], bytes, sizeof bytes) < 0) return;
    for (uint32_t i = 0; i < n; i++) {
        struct link *link = proxy->links.at[i];
        const struct pollfd *p = &proxy->polled.at[2 + 2 * (size_t)i];
        if (now_us() < link->next_us) continue;
        move_way(proxy, link, UP, p[0].revents & (POLLIN | POLLHUP | POLLERR));
        move_way(proxy, link, DOWN, p[1].revents & (POLLIN | POLLHUP | POLLERR));
    }
    for (uint32_t i = n; i-- > 0;)
        if (is_over(proxy->links.at[i])) drop_link(proxy, i);
    if (proxy->polled.at[0].revents) accept_link(proxy);
}

static void *run(void *arg)
{
    struct proxy *proxy = arg;
    pthread_mutex_lock(&proxy->lock);
    while (!proxy->ends) {
        int timeout_ms = fill_polled(proxy);
        pthread_mutex_unlock(&proxy->lock); /* only this thread changes links and polled */
        int ready = poll(proxy->polled.at, proxy->polled.n, timeout_ms);
        pthread_mutex_lock(&proxy->lock);
        if (ready >= 0) serve(proxy);
    }
    while (proxy->links.n > 0) drop_link(proxy, proxy->links.n - 1);
    pthread_mutex_unlock(&proxy->lock);
    return NULL;
}

static void wake(struct proxy *proxy)
{
    CHECK(write(proxy->wake[1], "", 1) == 1);
}

struct proxy *proxy_new(uint16_t port)
{
    struct proxy *proxy = mem_zalloc(sizeof *proxy);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    proxy->to_port = port;
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(proxy->listener >= 0 && bind(proxy->listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(proxy->listener, 16) == 0);
    CHECK(getsockname(proxy->listener, (struct sockaddr *)&at, &len) == 0 && pipe(proxy->wake) == 0);
    proxy->port = ntohs(at.sin_port);
    proxy->random = proxy->port;
    CHECK(pthread_mutex_init(&proxy->lock, NULL) == 0 && pthread_create(&proxy->thread, NULL, run, proxy) == 0);
    return proxy;
}

void proxy_free(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->ends = true;
    pthread_mutex_unlock(&proxy->lock);
    wake(proxy);
    pthread_join(proxy->thread, NULL);
    pthread_mutex_destroy(&proxy->lock);
    close(proxy->listener);
    close(proxy->wake[0]);
    close(proxy->wake[1]);
    array_clear(&proxy->links);
    array_clear(&proxy->polled);
    free(proxy);
}

uint16_t proxy_port(const struct proxy *proxy)
{
    return proxy->port;
}

void proxy_plan(struct proxy *proxy, enum proxy_fault fault, bool upwards, uint64_t after_bytes, uint32_t chunk, uint32_t pause_us)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->plan = (struct plan){fault, upwards, after_bytes, chunk, pause_us};
    pthread_mutex_unlock(&proxy->lock);
    wake(proxy);
}

void proxy_calm(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->plan = (struct plan){0};
    proxy->stalled[UP] = proxy->stalled[DOWN] = false;
    pthread_mutex_unlock(&proxy->lock);
    wake(proxy);
}

uint64_t proxy_struck(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    uint64_t struck = proxy->struck;
    pthread_mutex_unlock(&proxy->lock);
    return struck;
}
