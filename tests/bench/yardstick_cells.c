/* yardstick_cells.c: the textbook: nine cells, a hash set in each, and the difference of sets when a move changes the cell. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "yardstick.h"

enum what { ENTER = 1, LEAVE, UPDATE };

/* Entities + 1 by open addressing with linear probing; 0 is free. */
struct set {
    uint32_t *at;
    uint32_t n, mask; /* capacity - 1 */
};

struct cells {
    uint32_t n, columns;
    double size;
    struct set *cell;                   /* columns x columns */
    uint32_t *in;                       /* entity -> cell */
    ARRAY(struct yardstick_told) * out; /* for each watcher, until the flush; what it is stands in the top bits of the id */
    uint8_t *sink;
    size_t used;
    uint64_t pairs;
};

/* ------------------------------------------------------------------------------------------------------------- sets */

static uint32_t place(const struct set *s, uint32_t key)
{
    uint32_t i = key * 2654435761u & s->mask;
    while (s->at[i] != 0 && s->at[i] != key) i = (i + 1) & s->mask;
    return i;
}

static void set_add(struct set *s, uint32_t key)
{
    if (s->at == NULL || (s->n + 1) * 4 > (s->mask + 1) * 3) {
        struct set old = *s;
        s->mask = old.at == NULL ? 7 : old.mask * 2 + 1;
        s->at = mem_zalloc(((size_t)s->mask + 1) * sizeof *s->at);
        for (uint32_t i = 0; old.at != NULL && i <= old.mask; i++)
            if (old.at[i] != 0) s->at[place(s, old.at[i])] = old.at[i];
        free(old.at);
    }
    s->at[place(s, key)] = key;
    s->n++;
}

static void set_remove(struct set *s, uint32_t key)
{
    uint32_t hole = place(s, key), i = hole;
    s->n--;
    for (;;) { /* whoever could stand in the hole moves there */
        i = (i + 1) & s->mask;
        if (s->at[i] == 0) break;
        uint32_t home = s->at[i] * 2654435761u & s->mask;
        if (((i - home) & s->mask) < ((i - hole) & s->mask)) continue;
        s->at[hole] = s->at[i];
        hole = i;
    }
    s->at[hole] = 0;
}

/* ------------------------------------------------------------------------------------------------------------- cells */

static uint32_t cell_of(const struct cells *g, float x, float y)
{
    uint32_t cx = (uint32_t)(x / g->size), cy = (uint32_t)(y / g->size);
    return (cy < g->columns ? cy : g->columns - 1) * g->columns + (cx < g->columns ? cx : g->columns - 1);
}

static void tell(struct cells *g, const struct crowd *c, uint32_t watcher, uint32_t e, enum what what)
{
    *array_add(&g->out[watcher]) = (struct yardstick_told){.id = c->id[e] | (uint64_t)what << 62, .x = c->x[e], .y = c->y[e]};
}

static bool near(const struct cells *g, uint32_t a, uint32_t b)
{
    int dx = (int)(a % g->columns) - (int)(b % g->columns), dy = (int)(a / g->columns) - (int)(b / g->columns);
    return dx >= -1 && dx <= 1 && dy >= -1 && dy <= 1;
}

/* Everybody in the cell is told about e, and e, unless it is an update, about everybody. */
static void tell_cell(struct cells *g, const struct crowd *c, uint32_t cell, uint32_t e, enum what what)
{
    const struct set *s = &g->cell[cell];
    for (uint32_t i = 0; s->at != NULL && i <= s->mask; i++) {
        uint32_t other = s->at[i] - 1;
        if (s->at[i] == 0 || other == e) continue;
        tell(g, c, other, e, what);
        if (what == UPDATE) continue;
        tell(g, c, e, other, what);
        g->pairs += what == ENTER ? 2 : -(uint64_t)2;
    }
}

/* The cells around `from` that are also around `to` (or are not), one by one. */
static void tell_around(struct cells *g, const struct crowd *c, uint32_t from, uint32_t to, bool both, uint32_t e, enum what what)
{
    int fx = (int)(from % g->columns), fy = (int)(from / g->columns), most = (int)g->columns - 1;
    for (int y = fy > 0 ? fy - 1 : 0; y <= (fy < most ? fy + 1 : most); y++)
        for (int x = fx > 0 ? fx - 1 : 0; x <= (fx < most ? fx + 1 : most); x++) {
            uint32_t cell = (uint32_t)y * g->columns + (uint32_t)x;
            if (near(g, cell, to) == both) tell_cell(g, c, cell, e, what);
        }
}

static void move(struct cells *g, const struct crowd *c, uint32_t e)
{
    uint32_t from = g->in[e], to = cell_of(g, c->x[e], c->y[e]);
    if (from != to) {
        set_remove(&g->cell[from], e + 1);
        set_add(&g->cell[to], e + 1);
        g->in[e] = to;
        tell_around(g, c, from, to, false, e, LEAVE);
        tell_around(g, c, to, from, false, e, ENTER);
    }
    tell_around(g, c, to, from, true, e, UPDATE);
}

/* ------------------------------------------------------------------------------------------------------------- the yardstick */

static void *begin(const struct crowd *c)
{
    struct cells *g = mem_zalloc(sizeof *g);
    g->n = c->plan.entities;
    g->size = c->plan.radius;
    g->columns = (uint32_t)(c->plan.side / g->size) + 1;
    g->cell = mem_zalloc((size_t)g->columns * g->columns * sizeof *g->cell);
    g->in = mem_zalloc(g->n * sizeof *g->in);
    g->out = mem_zalloc(g->n * sizeof *g->out);
    g->sink = mem_zalloc(YARDSTICK_SINK);
    for (uint32_t e = 0; e < g->n; e++) {
        g->in[e] = cell_of(g, c->x[e], c->y[e]);
        tell_around(g, c, g->in[e], g->in[e], true, e, ENTER);
        set_add(&g->cell[g->in[e]], e + 1);
    }
    return g;
}

static void round_of(void *y, const struct crowd *c)
{
    struct cells *g = y;
    for (uint32_t e = 0; e < g->n; e++) move(g, c, e);
    for (uint32_t e = 0; e < g->n; e++) {
        const char *from = (const char *)g->out[e].at;
        for (size_t left = g->out[e].n * sizeof g->out[e].at[0]; left > 0;) {
            size_t some = left < YARDSTICK_SINK - g->used ? left : YARDSTICK_SINK - g->used;
            memcpy(g->sink + g->used, from, some);
            g->used = g->used + some == YARDSTICK_SINK ? 0 : g->used + some;
            from += some;
            left -= some;
        }
        g->out[e].n = 0;
    }
}

static uint64_t pairs(const void *y)
{
    return ((const struct cells *)y)->pairs;
}

static void end(void *y)
{
    struct cells *g = y;
    for (uint32_t i = 0; i < g->columns * g->columns; i++) free(g->cell[i].at);
    for (uint32_t e = 0; e < g->n; e++) array_clear(&g->out[e]);
    free(g->cell);
    free(g->in);
    free(g->out);
    free(g->sink);
    free(g);
}

const struct yardstick yardstick_cells = {.name = "nine cells", .exact = false, .begin = begin, .round = round_of, .pairs = pairs, .end = end};
