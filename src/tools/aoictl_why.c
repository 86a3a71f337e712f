/* aoictl_why.c: questions about what is seen: the nearest, the observers, a raster of densities, and why. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/aoictl.h"

#define RASTER_MOST 256

static int nearest(struct aoictl *ctl, uint64_t space, uint32_t layers, int n, char **words)
{
    float center[3];
    uint32_t k;
    double most = 0;
    struct libaoi_rows rows;
    const char *max = n == 3 ? aoictl_option(words[2], "max") : NULL;
    if (n != 2 && !max) return aoictl_bad_usage(ctl, "query SPACE nearest X,Y[,Z] K [max=DISTANCE] [layers=BITS]");
    if (!aoictl_parse_point(ctl, words[0], center) || !aoictl_parse_u32(ctl, "K", words[1], &k)) return AOICTL_USAGE;
    if (max && !aoictl_parse_double(ctl, "max", max, &most)) return AOICTL_USAGE;
    if (libaoi_query_nearest(ctl->c, space, center, k, (float)most, layers, ctl->timeout_ms, &rows)) return aoictl_call_failed(ctl);
    aoictl_print_rows(&rows);
    fprintf(stderr, "%zu entities\n", rows.n);
    return AOICTL_OK;
}

static int observers(struct aoictl *ctl, uint64_t space, int n, char **words)
{
    uint64_t id, cursor = 0, total = 0;
    struct libaoi_rows rows;
    if (n != 1) return aoictl_bad_usage(ctl, "query SPACE observers ID");
    if (!aoictl_parse_id(ctl, "entity", words[0], &id)) return AOICTL_USAGE;
    do {
        if (libaoi_query_observers(ctl->c, space, id, cursor, 0, ctl->timeout_ms, &rows)) return aoictl_call_failed(ctl);
        aoictl_print_rows(&rows);
        total += rows.n;
        cursor = rows.next;
    } while (cursor);
    fprintf(stderr, "%" PRIu64 " players\n", total);
    return AOICTL_OK;
}

/* COLUMNSxROWS */
static bool parse_raster(const struct aoictl *ctl, const char *word, uint32_t *columns, uint32_t *rows)
{
    char *end;
    unsigned long x = strtoul(word, &end, 10), y = *end == 'x' ? strtoul(end + 1, &end, 10) : 0;
    if (*end == '\0' && x >= 1 && x <= RASTER_MOST && y >= 1 && y <= RASTER_MOST) {
        *columns = (uint32_t)x;
        *rows = (uint32_t)y;
        return true;
    }
    aoictl_bad_usage(ctl, "\"%s\" is no raster; write COLUMNSxROWS, each 1 to %d, for example 60x20", word, RASTER_MOST);
    return false;
}

/* North is up. Shades ascend by powers of the largest count. */
static void print_raster(const uint32_t *counts, uint32_t columns, uint32_t rows)
{
    static const char shades[] = " .:-=+*#%@";
    const int top = (int)sizeof shades - 2;
    uint32_t most = 0;
    uint64_t total = 0;
    for (uint32_t i = 0; i < columns * rows; i++) {
        total += counts[i];
        if (counts[i] > most) most = counts[i];
    }
    for (uint32_t y = rows; y-- > 0;) {
        putchar('|');
        for (uint32_t x = 0; x < columns; x++) {
            uint32_t c = counts[y * columns + x];
            int shade = !c ? 0 : c == most ? top : 1 + (int)((top - 1) * log(c) / log(most));
            putchar(shades[shade]);
        }
        printf("|\n");
    }
    fprintf(stderr, "%" PRIu64 " entities, at most %" PRIu32 " in a field (@); a blank is none\n", total, most);
}

static int density(struct aoictl *ctl, uint64_t space, uint32_t layers, int n, char **words)
{
    float min[3], max[3];
    uint32_t columns, rows;
    const uint32_t *counts;
    if (n != 2) return aoictl_bad_usage(ctl, "query SPACE density BOX COLUMNSxROWS [layers=BITS]");
    if (!aoictl_parse_box(ctl, words[0], min, max) || !parse_raster(ctl, words[1], &columns, &rows)) return AOICTL_USAGE;
    if (libaoi_query_density(ctl->c, space, min, max, columns, rows, layers, ctl->timeout_ms, &counts)) return aoictl_call_failed(ctl);
    print_raster(counts, columns, rows);
    return AOICTL_OK;
}

static void print_why(const struct libaoi_why *w)
{
    printf("%s\n", w->text);
    printf("rule        %s\ntold        %s\nseen        %s\n", libaoi_rule_name(w->rule), w->told ? "yes" : "no", w->seen ? "yes" : "no");
    if (w->by_viewport)
        printf("by          the viewport\ndistance    %.9g from its centre\n", w->distance);
    else if (w->unit)
        printf("by          unit %" PRIu64 "\ndistance    %.9g in a straight line\nradius      %.9g\n", w->unit, w->distance, (double)w->radius);
    printf("appeal      %.9g\nmargin      %.9g\nlayers      0x%" PRIx32 "\nmask        0x%" PRIx32 "\n", (double)w->appeal, (double)w->margin,
           w->layers, w->mask);
    if (w->max_view) printf("max_view    %" PRIu32 "\n", w->max_view);
    if (w->rank) printf("rank        %" PRIu32 "\n", w->rank);
    if (w->stay_left_ms) printf("stay_left   %" PRIu32 " ms\n", w->stay_left_ms);
    printf("period      %" PRIu32 "\n", w->period);
}

int aoictl_why(struct aoictl *ctl, int n, char **words)
{
    uint64_t space, player, entity;
    struct libaoi_why why;
    if (n != 3) return aoictl_bad_usage(ctl, "why SPACE PLAYER ENTITY");
    if (!aoictl_parse_id(ctl, "space", words[0], &space) || !aoictl_parse_id(ctl, "player", words[1], &player) ||
        !aoictl_parse_id(ctl, "entity", words[2], &entity))
        return AOICTL_USAGE;
    if (libaoi_query_why(ctl->c, space, player, entity, ctl->timeout_ms, &why)) return aoictl_call_failed(ctl);
    print_why(&why);
    return AOICTL_OK;
}

bool aoictl_is_sight_query(struct aoictl *ctl, uint64_t space, uint32_t layers, int n, char **words, int *status)
{
    const char *kind = words[0];
    if (strcmp(kind, "nearest") == 0)
        *status = nearest(ctl, space, layers, n - 1, words + 1);
    else if (strcmp(kind, "density") == 0)
        *status = density(ctl, space, layers, n - 1, words + 1);
    else if (strcmp(kind, "observers") == 0)
        *status = observers(ctl, space, n - 1, words + 1);
    else
        return false;
    return true;
}
