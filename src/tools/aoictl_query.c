/* aoictl_query.c: the verbs that ask: ping, stats, spaces, query. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/aoictl.h"
#include "tools/clock.h"

int aoictl_ping(struct aoictl *ctl, int n, char **words)
{
    uint64_t count = 1;
    if (n > 1) return aoictl_bad_usage(ctl, "ping [COUNT]");
    if (n == 1 && !aoictl_parse_u64(ctl, "count", words[0], &count)) return AOICTL_USAGE;
    for (uint64_t i = 0; i < count && !aoictl_stop; i++) {
        double start = clock_seconds();
        if (i && aoictl_linger(ctl, 1) != AOICTL_OK) return AOICTL_FAILED;
        if (i) start = clock_seconds();
        if (libaoi_wait(ctl->c, libaoi_ping(ctl->c, i + 1), ctl->timeout_ms)) return aoictl_call_failed(ctl);
        printf("pong from aoid %s in %.3f ms\n", libaoi_welcome(ctl->c)->server_version, (clock_seconds() - start) * 1e3);
    }
    return AOICTL_OK;
}

int aoictl_stats(struct aoictl *ctl, int n, char **words)
{
    uint64_t space = 0;
    struct libaoi_stats s;
    if (n > 1) return aoictl_bad_usage(ctl, "stats [SPACE]");
    if (n == 1 && !aoictl_parse_id(ctl, "space", words[0], &space)) return AOICTL_USAGE;
    if (libaoi_query_stats(ctl->c, space, ctl->timeout_ms, &s)) return aoictl_call_failed(ctl);
    const struct {
        const char *name;
        uint64_t value;
        bool daemon; /* of the whole daemon only */
    } lines[] = {
        {"spaces", s.spaces, false},      {"entities", s.entities, false},
        {"players", s.players, false},    {"pairs", s.pairs, false},
        {"flushes", s.flushes, false},    {"enters", s.enters, false},
        {"leaves", s.leaves, false},      {"updates", s.updates, false},
        {"deltas", s.deltas, false},      {"skipped", s.skipped, false},
        {"moves", s.moves, false},        {"messages", s.messages, false},
        {"errors", s.errors, true},       {"memory_bytes", s.memory_bytes, false},
        {"uptime_ms", s.uptime_ms, true}, {"connections", s.connections, true},
        {"frames_in", s.frames_in, true}, {"bytes_in", s.bytes_in, true},
        {"bytes_out", s.bytes_out, true},
    };
    for (size_t i = space ? 1 : 0; i < sizeof lines / sizeof *lines; i++)
        if (!space || !lines[i].daemon) printf("%-12s %" PRIu64 "\n", lines[i].name, lines[i].value);
    return AOICTL_OK;
}

/* Those settings of a space that have no column and are not at their defaults, as `create` takes them. */
static void print_settings(const struct libaoi_settings *s)
{
    if (s->cell_range != 1) printf(" cell_range=%u", s->cell_range);
    if (s->bounded && s->dimensions == 2)
        printf(" bounds=%.9g,%.9g,%.9g,%.9g", (double)s->min[0], (double)s->min[1], (double)s->max[0], (double)s->max[1]);
    else if (s->bounded)
        printf(" bounds=%.9g,%.9g,%.9g,%.9g,%.9g,%.9g", (double)s->min[0], (double)s->min[1], (double)s->min[2], (double)s->max[0], (double)s->max[1],
               (double)s->max[2]);
    if (s->extra) printf(" extra=yes");
    if (s->leave_margin > 0) printf(" leave_margin=%.9g", (double)s->leave_margin);
    if (s->min_stay_ms) printf(" min_stay_ms=%u", s->min_stay_ms);
    if (s->max_view) printf(" max_view=%u", s->max_view);
    if (s->max_enter_per_flush) printf(" max_enter_per_flush=%u", s->max_enter_per_flush);
    if (s->update_tiers[0]) printf(" update_tiers=\"%s\"", s->update_tiers);
}

int aoictl_spaces(struct aoictl *ctl, int n, char **words)
{
    static const char *const indexes[] = {"?", "grid", "crosslist"}, *const shapes[] = {"?", "box", "sphere", "cells"};
    (void)words;
    if (n) return aoictl_bad_usage(ctl, "spaces takes no arguments");
    printf("%-8s %9s %8s %4s %-9s %-6s %9s %8s  %s\n", "space", "entities", "players", "dims", "index", "shape", "cell_size", "flush_ms", "owner");
    uint64_t next = 0;
    do {
        size_t count;
        const struct libaoi_space_info *list;
        if (libaoi_query_spaces(ctl->c, next, 0, ctl->timeout_ms, &count, &list, &next)) return aoictl_call_failed(ctl);
        for (size_t i = 0; i < count; i++) {
            const struct libaoi_settings *s = &list[i].settings;
            printf("%-8" PRIu64 " %9" PRIu64 " %8" PRIu64 " %4u %-9s %-6s %9g %8u  ", list[i].id, list[i].entities, list[i].players, s->dimensions,
                   indexes[s->index <= 2 ? s->index : 0], shapes[s->shape <= 3 ? s->shape : 0], s->cell_size, s->flush_ms);
            if (list[i].owner_session)
                printf("session %" PRIu64 "%s", list[i].owner_session, s->persistent ? ", persistent" : "");
            else
                printf("%s", list[i].configured ? "the configuration" : s->persistent ? "nobody, persistent" : "nobody; it stays");
            print_settings(s);
            putchar('\n');
        }
    } while (next);
    return AOICTL_OK;
}

void aoictl_print_payload(const void *payload, size_t len)
{
    const unsigned char *at = payload;
    putchar('"');
    for (size_t i = 0; i < len; i++) {
        if (isprint(at[i]) && at[i] != '"' && at[i] != '\\')
            putchar(at[i]);
        else
            printf("\\x%02x", at[i]);
    }
    putchar('"');
}

void aoictl_print_rows(const struct libaoi_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        printf("%" PRIu64, rows->id[i]);
        if (rows->x) printf(" %.9g %.9g", (double)rows->x[i], (double)rows->y[i]);
        if (rows->z) printf(" %.9g", (double)rows->z[i]);
        if (rows->extra) printf(" extra=%" PRIu32, rows->extra[i]);
        if (rows->layers && rows->layers[i] != 1) printf(" layers=0x%" PRIx32, rows->layers[i]);
        putchar('\n');
    }
}

/* What a query verb asks for. */
struct ask {
    uint64_t space, id;
    float min[3], max[3];
    double radius;
    uint32_t layers;
};

static int query_pages(struct aoictl *ctl, const char *kind, const struct ask *ask)
{
    struct libaoi_rows rows;
    uint64_t cursor = 0, total = 0;
    do {
        int status;
        if (*kind == 'b')
            status = libaoi_query_box(ctl->c, ask->space, ask->min, ask->max, ask->layers, cursor, 0, ctl->timeout_ms, &rows);
        else if (*kind == 'r')
            status = libaoi_query_radius(ctl->c, ask->space, ask->min, (float)ask->radius, ask->layers, cursor, 0, ctl->timeout_ms, &rows);
        else
            status = libaoi_query_view(ctl->c, ask->space, ask->id, cursor, 0, ctl->timeout_ms, &rows);
        if (status) return aoictl_call_failed(ctl);
        aoictl_print_rows(&rows);
        total += rows.n;
        cursor = rows.next;
    } while (cursor);
    fprintf(stderr, "%" PRIu64 " entities\n", total);
    return AOICTL_OK;
}

static int query_count(struct aoictl *ctl, const struct ask *ask)
{
    uint64_t entities, players;
    if (libaoi_query_count(ctl->c, ask->space, ask->min, ask->max, ask->layers, ctl->timeout_ms, &entities, &players)) return aoictl_call_failed(ctl);
    printf("entities %" PRIu64 "\nplayers  %" PRIu64 "\n", entities, players);
    return AOICTL_OK;
}

static int query_entity(struct aoictl *ctl, const struct ask *ask)
{
    struct libaoi_entity e;
    const struct libaoi_space_info *info;
    size_t n;
    uint64_t next;
    if (libaoi_query_spaces(ctl->c, ask->space - 1, 1, ctl->timeout_ms, &n, &info, &next)) return aoictl_call_failed(ctl);
    bool flat = n > 0 && info[0].settings.dimensions == 2;
    if (libaoi_query_entity(ctl->c, ask->space, ask->id, ctl->timeout_ms, &e)) return aoictl_call_failed(ctl);
    printf("id          %" PRIu64 "\nposition    %.9g %.9g", e.id, (double)e.pos[0], (double)e.pos[1]);
    if (!flat) printf(" %.9g", (double)e.pos[2]);
    printf("\nextra       %" PRIu32 "\nradius      %.9g\nlayers      0x%" PRIx32 "\n", e.extra, (double)e.radius, e.layers);
    printf("appeal      %.9g\npriority    %" PRIu32 "\npayload     %zu bytes", (double)e.appeal, e.priority, e.payload_len);
    if (e.payload_len) putchar(' ');
    if (e.payload_len) aoictl_print_payload(e.payload, e.payload_len);
    printf("\nowner       session %" PRIu64 "\nsubscribers %" PRIu32 "\n", e.owner_session, e.subscribers);
    return AOICTL_OK;
}

int aoictl_query(struct aoictl *ctl, int n, char **words)
{
    static const char usage[] =
        "query SPACE box BOX | radius X,Y[,Z] R | count BOX | nearest X,Y[,Z] K [max=D] | density BOX COLUMNSxROWS, each with [layers=BITS], or "
        "entity ID | view PLAYER | observers ID";
    struct ask ask = {0};
    const char *layers = n > 3 ? aoictl_option(words[n - 1], "layers") : NULL;
    if (layers && !aoictl_parse_u32(ctl, "layers", layers, &ask.layers)) return AOICTL_USAGE;
    if (layers) n--;
    if (n < 3) return aoictl_bad_usage(ctl, "%s", usage);
    if (!aoictl_parse_id(ctl, "space", words[0], &ask.space)) return AOICTL_USAGE;
    const char *kind = words[1];
    int status;
    if (aoictl_is_sight_query(ctl, ask.space, ask.layers, n - 1, words + 1, &status)) return status;
    if (strcmp(kind, "radius") == 0 && n == 4) {
        if (!aoictl_parse_point(ctl, words[2], ask.min) || !aoictl_parse_double(ctl, "radius", words[3], &ask.radius)) return AOICTL_USAGE;
        return query_pages(ctl, kind, &ask);
    }
    if ((strcmp(kind, "box") == 0 || strcmp(kind, "count") == 0) && n == 3) {
        if (!aoictl_parse_box(ctl, words[2], ask.min, ask.max)) return AOICTL_USAGE;
        return *kind == 'b' ? query_pages(ctl, kind, &ask) : query_count(ctl, &ask);
    }
    if ((strcmp(kind, "entity") == 0 || strcmp(kind, "view") == 0) && n == 3 && !layers) {
        if (!aoictl_parse_id(ctl, kind, words[2], &ask.id)) return AOICTL_USAGE;
        return *kind == 'v' ? query_pages(ctl, kind, &ask) : query_entity(ctl, &ask);
    }
    return aoictl_bad_usage(ctl, "%s", usage);
}
