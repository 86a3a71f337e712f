/* aoibench_query.c: box queries, pipelined over a Unix socket; where a Redis is given, in turn with its GEOSEARCH over the same places and boxes. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "client/libaoi.h"
#include "tools/aoibench.h"
#include "tools/clock.h"
#include "tools/daemon.h"
#include "wire/codec.h"
#include "wire/frame.h"

#define READ_BYTES ((size_t)1 << 18)
#define TIMEOUT_MS 60000
/* A Redis has degrees and metres. One of our units is 100 m on its equator, where the world of 1,000 units is so small that it is as good as flat. */
#define METRES 100.0
#define DEGREES (METRES / 111226.3) /* by Redis' own radius of the earth, 6,372,797.6 m */

struct place {
    double x, y;
};

/* One server and how to talk to it. */
struct side {
    const struct aoibench_options *o;
    pid_t pid; /* 0: not known */
    int fd;
    struct buf in, out;
    uint64_t asked, answered, rows;
    void (*ask)(struct side *s, struct place at);
    /* The bytes of the first whole answer in data[0 .. len), 0: it has not come whole yet, -1: it is none. Adds to rows. */
    long (*answer)(struct side *s, const uint8_t *data, size_t len);
    struct arena arena;
    uint64_t random;
};

static int connect_to(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* ------------------------------------------------------------------------------------------------------------- aoid */

static void aoid_ask(struct side *s, struct place at)
{
    struct codec_client_frame frame = {.seq = s->asked + 2, .kind = CODEC_QUERY}; /* the first is Hello's */
    float w = (float)s->o->width / 2, h = (float)s->o->height / 2, x = (float)at.x, y = (float)at.y;
    frame.u.query = (struct codec_query){
        .space = s->o->space, .kind = CODEC_QUERY_AABB, .has_box = true, .min = {x - w, y - h}, .max = {x + w, y + h}, .limit = UINT32_MAX};
    codec_encode_client(&frame, &s->out);
}

static long aoid_answer(struct side *s, const uint8_t *data, size_t len)
{
    struct frame f;
    struct codec_server_frame frame;
    if (frame_next(data, len, FRAME_BODY_MAX, &f) != FRAME_READY) return 0;
    arena_reset(&s->arena);
    if (codec_decode_server(data + f.header_len, f.body_len, &s->arena, &frame) != 0) return -1;
    if (frame.kind != CODEC_RESULT && frame.kind != CODEC_WELCOME) return -1;
    if (frame.kind == CODEC_RESULT) s->rows += frame.u.result.rows.n;
    return (long)(f.header_len + f.body_len);
}

/* ------------------------------------------------------------------------------------------------------------- Redis */

/* Arguments as RESP has them. */
static void redis_command(struct buf *out, int n, const char *const *argument)
{
    buf_printf(out, "*%d\r\n", n);
    for (int i = 0; i < n; i++) buf_printf(out, "$%zu\r\n%s\r\n", strlen(argument[i]), argument[i]);
}

static void redis_ask(struct side *s, struct place at)
{
    char x[32], y[32], w[32], h[32];
    snprintf(x, sizeof x, "%.9f", at.x * DEGREES);
    snprintf(y, sizeof y, "%.9f", at.y * DEGREES);
    snprintf(w, sizeof w, "%.3f", s->o->width * METRES);
    snprintf(h, sizeof h, "%.3f", s->o->height * METRES);
    redis_command(&s->out, 9, (const char *const[]){"GEOSEARCH", "aoibench", "FROMLONLAT", x, y, "BYBOX", w, h, "m"});
}

/* A whole line at *at, of which the number behind its first character is returned; -1: it is not there yet. */
static long redis_line(const uint8_t *data, size_t len, size_t *at)
{
    const uint8_t *end = *at < len ? memchr(data + *at, '\n', len - *at) : NULL;
    if (end == NULL) return -1;
    long n = 0;
    for (const uint8_t *p = data + *at + 1; p < end && *p >= '0' && *p <= '9'; p++) n = n * 10 + *p - '0';
    *at = (size_t)(end - data) + 1;
    return n;
}

static long redis_answer(struct side *s, const uint8_t *data, size_t len)
{
    size_t at = 0;
    if (len == 0) return 0;
    if (data[0] != '*' && data[0] != ':') return -1;
    long n = redis_line(data, len, &at);
    if (n < 0) return 0;
    for (long i = 0; data[0] == '*' && i < n; i++) {
        long bytes = redis_line(data, len, &at);
        if (bytes < 0 || at + (size_t)bytes + 2 > len) return 0;
        at += (size_t)bytes + 2;
    }
    if (data[0] == '*') s->rows += (uint64_t)n;
    return (long)at;
}

/* ------------------------------------------------------------------------------------------------------------- both */

static bool flush_out(struct side *s)
{
    while (buf_len(&s->out) > 0) {
        ssize_t n = send(s->fd, buf_data(&s->out), buf_len(&s->out), MSG_NOSIGNAL);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        buf_consume(&s->out, (size_t)n);
    }
    return true;
}

static bool take_in(struct side *s)
{
    ssize_t n = recv(s->fd, buf_reserve(&s->in, READ_BYTES), READ_BYTES, 0);
    if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
    s->in.end += (size_t)n;
    for (long bytes; (bytes = s->answer(s, buf_data(&s->in), buf_len(&s->in))) != 0; s->answered++) {
        if (bytes < 0) return false;
        buf_consume(&s->in, (size_t)bytes);
    }
    return true;
}

/* What has been asked is sent, and answered until no more than so many answers are missing. */
static bool wait_for(struct side *s, uint64_t missing)
{
    while (s->asked - s->answered > missing) {
        if (!flush_out(s)) return false;
        struct pollfd p = {.fd = s->fd, .events = (short)(POLLIN | (buf_len(&s->out) > 0 ? POLLOUT : 0))};
        if (poll(&p, 1, TIMEOUT_MS) <= 0) return false;
        if ((p.revents & ~POLLOUT) && !take_in(s)) return false;
    }
    return true;
}

struct rate {
    double per_s, cpu_us, rows; /* of a query */
};

/* The boxes lie wholly inside the world; both sides get the same ones. */
static bool measure(struct side *s, double seconds, struct rate *rate)
{
    const struct aoibench_options *o = s->o;
    uint64_t answered = s->answered, rows = s->rows, start = clock_us(), end = start + (uint64_t)(seconds * 1e6);
    double cpu = s->pid > 0 ? daemon_cpu_seconds(s->pid) : 0;
    while (clock_us() < end) {
        for (; s->asked - s->answered < o->depth; s->asked++) {
            double x = aoibench_random(&s->random), y = aoibench_random(&s->random);
            s->ask(s, (struct place){o->width / 2 + x * (o->side - o->width), o->height / 2 + y * (o->side - o->height)});
        }
        if (!wait_for(s, o->depth / 2)) return false;
    }
    if (!wait_for(s, 0)) return false;
    double n = (double)(s->answered - answered);
    rate->per_s = n * 1e6 / (double)(clock_us() - start);
    rate->cpu_us = s->pid > 0 ? (daemon_cpu_seconds(s->pid) - cpu) * 1e6 / n : 0;
    rate->rows = (double)(s->rows - rows) / n;
    return true;
}

/* W2's population: those of `aoibench net`, standing. */
static bool aoid_begin(struct side *s, const struct place *places, struct libaoi **owner, char *error, size_t error_size)
{
    const struct libaoi_options options = {.address = s->o->address, .client_name = "aoibench-query", .token = getenv("AOI_TOKEN")};
    *owner = libaoi_connect(&options, error, error_size);
    if (*owner == NULL) return false;
    libaoi_create_space(*owner, s->o->space, &(struct libaoi_settings){.index = s->o->index, .flush_ms = 0}, false);
    for (uint32_t i = 0; i < s->o->entities; i++)
        libaoi_add(*owner, s->o->space, LIBAOI_ADD_NEW,
                   &(struct libaoi_entity){.id = i + 1, .pos = {(float)places[i].x, (float)places[i].y}, .radius = (float)s->o->radius});
    s->fd = libaoi_sync(*owner, TIMEOUT_MS) == 0 ? connect_to(s->o->address) : -1;
    if (s->fd < 0) snprintf(error, error_size, "%s: %s", s->o->address, libaoi_error(*owner)[0] ? libaoi_error(*owner) : strerror(errno));
    if (s->fd < 0) return false;
    struct codec_client_frame hello = {.seq = 1, .kind = CODEC_HELLO};
    hello.u.hello.protocol_version = CODEC_PROTOCOL_VERSION;
    hello.u.hello.client_name = options.client_name;
    hello.u.hello.token = options.token;
    codec_encode_client(&hello, &s->out);
    s->answered--; /* the Welcome is no answer */
    return wait_for(s, 0);
}

static bool redis_begin(struct side *s, const struct place *places, char *error, size_t error_size)
{
    char x[32], y[32], id[32];
    s->fd = connect_to(s->o->redis);
    if (s->fd < 0) snprintf(error, error_size, "cannot connect to the Redis at %s: %s", s->o->redis, strerror(errno));
    if (s->fd < 0) return false;
    redis_command(&s->out, 2, (const char *const[]){"DEL", "aoibench"});
    for (uint32_t i = 0; i < s->o->entities; i++) {
        snprintf(x, sizeof x, "%.9f", places[i].x * DEGREES);
        snprintf(y, sizeof y, "%.9f", places[i].y * DEGREES);
        snprintf(id, sizeof id, "%u", i + 1);
        redis_command(&s->out, 5, (const char *const[]){"GEOADD", "aoibench", x, y, id});
    }
    s->asked += s->o->entities + 1;
    return wait_for(s, 0);
}

/* The median of one figure of one side over all rounds. */
static double median_of(const struct aoibench_options *o, struct rate (*r)[2], int side, size_t figure)
{
    double *value = mem_alloc(o->rounds * sizeof *value);
    for (uint32_t i = 0; i < o->rounds; i++) memcpy(&value[i], (const char *)&r[i][side] + figure, sizeof *value);
    double median = aoibench_median(value, o->rounds);
    free(value);
    return median;
}
#define MEDIAN(side, figure) median_of(o, r, side, offsetof(struct rate, figure))

static void print_query(const struct aoibench_options *o, struct rate (*r)[2], double *ratio, const struct side *side)
{
    bool redis = o->redis != NULL;
    const struct aoibench_figure figures[] = {
        {"entities", o->entities, 0, false},
        {"depth", o->depth, 0, false},
        {"rows_per_query", MEDIAN(0, rows), 1, false},
        {"queries_per_s", MEDIAN(0, per_s), 0, false},
        {"daemon_cpu_us_per_query", MEDIAN(0, cpu_us), 3, side[0].pid <= 0},
        {"redis_rows_per_query", MEDIAN(1, rows), 1, !redis},
        {"redis_queries_per_s", MEDIAN(1, per_s), 0, !redis},
        {"redis_cpu_us_per_query", MEDIAN(1, cpu_us), 3, side[1].pid <= 0},
        {"ratio", aoibench_median(ratio, o->rounds), 2, !redis},
        {"cpu_ratio", MEDIAN(1, cpu_us) / MEDIAN(0, cpu_us), 2, side[0].pid <= 0 || side[1].pid <= 0},
    };
    const char *text[] = {"index", aoibench_index(o), NULL};
    aoibench_print(o->json, figures, sizeof figures / sizeof *figures, text);
}

int aoibench_run_query(struct aoibench_options *o, pid_t daemon, char *error, size_t error_size)
{
    struct side side[2] = {{.o = o, .pid = daemon, .fd = -1, .ask = aoid_ask, .answer = aoid_answer, .random = 1},
                           {.o = o, .pid = (pid_t)o->redis_pid, .fd = -1, .ask = redis_ask, .answer = redis_answer, .random = 1}};
    struct libaoi *owner = NULL;
    struct place *places = mem_alloc(o->entities * sizeof *places);
    struct rate(*rates)[2] = mem_zalloc(o->rounds * sizeof *rates);
    double *ratio = mem_zalloc(o->rounds * sizeof *ratio);
    uint64_t random = 88172645463325252u;
    for (uint32_t i = 0; i < o->entities; i++) places[i] = (struct place){aoibench_random(&random) * o->side, aoibench_random(&random) * o->side};
    arena_init(&side[0].arena, (size_t)64 << 20);
    for (int k = 0; k < 2 && o->pin; k++) aoibench_pin_both(side[k].pid);
    snprintf(error, error_size, "an answer did not come, or was none");
    bool ok = aoid_begin(&side[0], places, &owner, error, error_size) && (o->redis == NULL || redis_begin(&side[1], places, error, error_size));
    for (uint32_t i = 0; i < o->rounds && ok; i++) {
        for (int k = 0; k < (o->redis == NULL ? 1 : 2) && ok; k++) ok = measure(&side[k], o->seconds / o->rounds / 2, &rates[i][k]);
        ratio[i] = rates[i][0].per_s / (rates[i][1].per_s + (rates[i][1].per_s == 0));
    }
    if (ok) print_query(o, rates, ratio, side);
    for (int k = 0; k < 2; k++) {
        if (side[k].fd >= 0) close(side[k].fd);
        buf_clear(&side[k].in);
        buf_clear(&side[k].out);
    }
    arena_clear(&side[0].arena);
    libaoi_close(owner);
    free(places);
    free(rates);
    free(ratio);
    return ok ? 0 : -1;
}
