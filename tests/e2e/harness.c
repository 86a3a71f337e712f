/* harness.c: starts the real daemon, records what clients are told, and waits without ever asserting a time. */
#include "harness.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"

#define MAX_OPTIONS 32
#define MAX_FLUSHES 1000

/* ------------------------------------------------------------------------------------------------------------- daemon */

void rig_start(struct rig *rig, const char *const *options)
{
    const char *args[2 * MAX_OPTIONS] = {"--set", "max_lease_ms=0"}, *path = getenv("AOID");
    size_t n = 2;
    char error[600];
    memset(rig, 0, sizeof *rig);
    for (; options && *options; options++) {
        assert_true(n + 2 <= 2 * MAX_OPTIONS);
        args[n++] = "--set";
        args[n++] = *options;
    }
    if (daemon_start(&rig->daemon, path ? path : "build/aoid", args, n, error, sizeof error)) fail_msg("%s", error);
}

static void print_log(const struct rig *rig)
{
    char line[1024];
    FILE *f = fopen(rig->daemon.log, "r");
    if (!f) return;
    while (fgets(line, sizeof line, f)) fputs(line, stderr);
    fclose(f);
}

void rig_stop(struct rig *rig)
{
    for (int i = 0; i < rig->client_n; i++) client_end(&rig->clients[i]);
    rig->client_n = 0;
    if (!rig->daemon.pid) {
        daemon_stop(&rig->daemon, 0);
        return;
    }
    struct daemon copy = rig->daemon;
    kill(copy.pid, SIGTERM);
    int status = daemon_wait(&rig->daemon, TIMEOUT_MS);
    bool wrong = rig_logged(rig, "event=oracle"); /* a view was not what brute force gives */
    if (status != 0 || wrong) print_log(rig);
    daemon_stop(&rig->daemon, 0);
    assert_int_equal(status, 0);
    assert_false(wrong);
}

bool rig_logged(const struct rig *rig, const char *text)
{
    char line[4096];
    bool found = false;
    FILE *f = fopen(rig->daemon.log, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) found |= strstr(line, text) != NULL;
    fclose(f);
    return found;
}

/* ------------------------------------------------------------------------------------------------------------- recording */

static int by_id(const void *a, const void *b)
{
    uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
    return p < q ? -1 : p > q;
}

static void put_section(struct buf *out, char letter, const uint64_t *ids, size_t n)
{
    char text[32];
    uint64_t *sorted = mem_alloc((n + 1) * sizeof *sorted);
    if (n) memcpy(sorted, ids, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_id);
    for (size_t i = 0; i < n; i++) {
        int len = snprintf(text, sizeof text, "%s%c%" PRIu64, buf_len(out) ? " " : "", letter, sorted[i]);
        buf_append(out, text, (size_t)len);
    }
    free(sorted);
}

static void put_messages(struct buf *out, const struct libaoi_delta *d)
{
    char text[64];
    for (size_t i = 0; i < d->message_n; i++) {
        int len = snprintf(text, sizeof text, "%sM%" PRIu64 ":", buf_len(out) ? " " : "", d->message_from[i]);
        buf_append(out, text, (size_t)len);
        buf_append(out, d->message[i], d->message_len[i] < 16 ? d->message_len[i] : 16);
    }
    if (!d->messages_lost) return;
    int len = snprintf(text, sizeof text, "%sX%" PRIu64, buf_len(out) ? " " : "", d->messages_lost);
    buf_append(out, text, (size_t)len);
}

static void on_delta(void *ctx, const struct libaoi_delta *d)
{
    struct client *client = ctx;
    struct buf text = {0};
    if (!client->record) return;
    struct told *t = client->told.n ? &client->told.at[client->told.n - 1] : NULL;
    if (!t || t->whole) {
        t = array_add(&client->told);
        *t = (struct told){.space = d->space, .player = d->player, .seq = d->seq, .flush = d->flush, .tag = d->tag, .time_us = d->time_us};
        if (d->full) buf_append(&text, "F", 1);
        if (d->closed) buf_append(&text, "C", 1);
    } else {
        assert_true(t->player == d->player && t->space == d->space && t->seq == d->seq);
        buf_append(&text, t->text, strlen(t->text));
        free(t->text);
    }
    put_section(&text, 'L', d->leave_id, d->leave_n);
    put_section(&text, 'E', d->enter_id, d->enter_n);
    put_section(&text, 'U', d->update_id, d->update_n);
    put_section(&text, 'P', d->payload_id, d->payload_n);
    put_section(&text, 'Y', d->layers_id, d->layers_n);
    put_messages(&text, d);
    buf_append(&text, "", 1);
    t->text = (char *)text.at;
    t->parts++;
    t->whole = !d->more;
}

const char *client_told(struct client *client, uint64_t space, uint64_t player)
{
    static struct buf text;
    buf_clear(&text);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < client->told.n; i++) {
        struct told *t = &client->told.at[i];
        if (t->space != space || t->player != player) {
            client->told.at[kept++] = *t;
            continue;
        }
        if (buf_len(&text)) buf_append(&text, " | ", 3);
        buf_append(&text, t->text, strlen(t->text));
        free(t->text);
    }
    client->told.n = kept;
    buf_append(&text, "", 1);
    return (const char *)buf_data(&text);
}

static void notice(struct client *client, char letter, size_t n, const uint64_t *id)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(client->notices);
        snprintf(client->notices + len, sizeof client->notices - len, "%s%c%" PRIu64, len ? " " : "", letter, id[i]);
    }
}

static void on_observed(void *ctx, uint64_t space, bool observed, size_t n, const uint64_t *id)
{
    (void)space;
    notice(ctx, observed ? 'O' : 'o', n, id);
}

static void on_lost(void *ctx, uint64_t space, bool players, size_t n, const uint64_t *id)
{
    (void)space;
    notice(ctx, players ? 'p' : 'e', n, id);
}

const char *client_noticed(struct client *client)
{
    static char text[sizeof client->notices];
    memcpy(text, client->notices, sizeof text);
    client->notices[0] = '\0';
    return text;
}

void client_forget(struct client *client)
{
    for (uint32_t i = 0; i < client->told.n; i++) free(client->told.at[i].text);
    client->told.n = 0;
}

static void on_ack(void *ctx, const struct libaoi_ack *ack)
{
    struct client *client = ctx;
    client->applied += ack->applied;
    client->refused_total += ack->refused;
    client->pending = ack->pending;
    client->told_at_ack = client->told.n;
    for (size_t i = 0; i < ack->n; i++) {
        *array_add(&client->refused) = (struct refused){ack->refusals[i].code, ack->refusals[i].id};
        assert_true(ack->refusals[i].text && ack->refusals[i].text[0]);
    }
}

static void on_error(void *ctx, uint64_t seq, int code, const char *text)
{
    struct client *client = ctx;
    (void)seq;
    (void)text;
    client->refused_total++;
    *array_add(&client->refused) = (struct refused){code, 0};
}

static void on_draining(void *ctx)
{
    struct client *client = ctx;
    client->draining = true;
}

/* ------------------------------------------------------------------------------------------------------------- clients */

struct libaoi *connect_or_fail(const struct libaoi_options *options)
{
    char error[400];
    struct libaoi *c = libaoi_connect(options, error, sizeof error);
    if (!c) fail_msg("%s", error);
    return c;
}

struct client *rig_client_with(struct rig *rig, uint32_t receive_buffer, bool mirror)
{
    assert_true(rig->client_n < MAX_CLIENTS);
    struct client *client = &rig->clients[rig->client_n++];
    memset(client, 0, sizeof *client);
    client->record = mirror;
    const struct libaoi_options options = {
        .address = rig->daemon.address,
        .client_name = "test",
        .timeout_ms = TIMEOUT_MS,
        .mirror = mirror,
        .receive_buffer = receive_buffer,
        .handlers =
            {.ctx = client, .delta = on_delta, .observed = on_observed, .lost = on_lost, .ack = on_ack, .error = on_error, .draining = on_draining},
    };
    client->c = connect_or_fail(&options);
    return client;
}

struct client *rig_client(struct rig *rig)
{
    return rig_client_with(rig, 0, true);
}

void client_end(struct client *client)
{
    libaoi_abandon(client->c);
    client->c = NULL;
    client_forget(client);
    array_clear(&client->told);
    array_clear(&client->refused);
}

static void settle(struct client *client)
{
    int status = libaoi_sync(client->c, TIMEOUT_MS);
    if (status && status != LIBAOI_EREFUSED) fail_msg("%s", libaoi_error(client->c));
}

void client_ok(struct client *client)
{
    settle(client);
    if (client->refused_total)
        fail_msg("%s about %" PRIu64, libaoi_code_name(client->refused.n ? client->refused.at[0].code : 0),
                 client->refused.n ? client->refused.at[0].id : 0);
}

void client_refused(struct client *client, int code)
{
    settle(client);
    assert_int_equal(client->refused_total, 1);
    assert_int_equal(client->refused.n, 1);
    assert_string_equal(libaoi_code_name(client->refused.at[0].code), libaoi_code_name(code));
    client->refused_total = client->refused.n = 0;
}

void client_catch_up(struct client *client)
{
    if (libaoi_wait(client->c, libaoi_ping(client->c, 1), TIMEOUT_MS)) fail_msg("%s", libaoi_error(client->c));
}

uint64_t flush(struct client *by, uint64_t space, struct client *watcher)
{
    static uint64_t tag;
    int rounds = 0;
    do {
        assert_true(rounds++ < MAX_FLUSHES);
        libaoi_flush(by->c, space, ++tag);
        client_ok(by);
        bool pending = by->pending;
        client_catch_up(watcher);
        by->pending = pending;
    } while (by->pending);
    return tag;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void client_linger(struct client *client, int ms)
{
    int64_t end = now_ms() + ms;
    for (int64_t left = ms; left > 0; left = end - now_ms())
        if (libaoi_poll(client->c, (int)left) < 0) fail_msg("%s", libaoi_error(client->c));
}

/* ------------------------------------------------------------------------------------------------------------- commands */

void add(struct client *client, uint64_t space, uint64_t id, float x, float y, float radius)
{
    libaoi_add(client->c, space, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = id, .pos = {x, y}, .radius = radius});
}

void move(struct client *client, uint64_t space, uint64_t id, float x, float y)
{
    libaoi_move(client->c, space, 1, &id, &x, &y, NULL, NULL);
}

void drop(struct client *client, uint64_t space, uint64_t id)
{
    libaoi_remove(client->c, space, 1, &id);
}

void publish(struct client *client, uint64_t space, uint64_t id, const char *text)
{
    assert_int_equal(libaoi_publish(client->c, space, id, text, strlen(text)), 0);
}

void make_space(struct client *client, uint64_t space, uint32_t index)
{
    libaoi_create_space(client->c, space, &(struct libaoi_settings){.index = index, .cell_size = 32}, false);
    client_ok(client);
}

/* ------------------------------------------------------------------------------------------------------------- random numbers */

static uint64_t random_state;

void random_seed(const char *test)
{
    const char *given = getenv("AOI_SEED");
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)t.tv_sec * 1000003 + (uint64_t)t.tv_nsec + (uint64_t)getpid();
    printf("%s: AOI_SEED=%" PRIu64 "\n", test, seed);
    fflush(stdout);
    random_state = seed * 2 + 1;
}

uint64_t random_below(uint64_t n)
{
    random_state += 0x9e3779b97f4a7c15u; /* splitmix64, Steele et al. 2014 */
    uint64_t z = random_state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % n;
}
