/* yardstick_brute.c: all pairs are looked at, with the rule of a box, and compared with what was told. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "yardstick.h"

struct brute {
    uint32_t n;
    uint8_t *told; /* n x n */
    uint8_t *sees; /* of one */
    struct yardstick_told *sink;
    size_t used;
    uint64_t pairs;
};

static void *begin(const struct crowd *c)
{
    struct brute *b = mem_zalloc(sizeof *b);
    b->n = c->plan.entities;
    b->told = mem_zalloc((size_t)b->n * b->n);
    b->sees = mem_zalloc(b->n + 8);
    b->sink = mem_zalloc(YARDSTICK_SINK + b->n * sizeof *b->sink);
    return b;
}

static void look(const struct brute *b, const struct crowd *c, uint32_t unit)
{
    float r = c->r[unit], left = c->x[unit] - r, right = c->x[unit] + r, low = c->y[unit] - r, high = c->y[unit] + r;
    for (uint32_t e = 0; e < b->n; e++) b->sees[e] = (left <= c->x[e]) & (c->x[e] <= right) & (low <= c->y[e]) & (c->y[e] <= high);
    b->sees[unit] = 0;
}

static void tell(struct brute *b, const struct crowd *c, uint32_t e)
{
    b->sink[b->used++] = (struct yardstick_told){.id = c->id[e], .x = c->x[e], .y = c->y[e]};
}

static void round_of(void *y, const struct crowd *c)
{
    struct brute *b = y;
    b->pairs = 0;
    for (uint32_t unit = 0; unit < b->n; unit++) {
        uint8_t *told = b->told + (size_t)unit * b->n;
        look(b, c, unit);
        for (uint32_t e = 0; e < b->n; e++) {
            if (!(b->sees[e] | told[e])) continue; /* enter, leave or update: all have moved */
            told[e] = b->sees[e];
            b->pairs += told[e];
            tell(b, c, e);
        }
        if (b->used * sizeof *b->sink > YARDSTICK_SINK) b->used = 0;
    }
}

static uint64_t pairs(const void *y)
{
    return ((const struct brute *)y)->pairs;
}

static void end(void *y)
{
    struct brute *b = y;
    free(b->told);
    free(b->sees);
    free(b->sink);
    free(b);
}

const struct yardstick yardstick_brute = {.name = "brute force", .exact = true, .begin = begin, .round = round_of, .pairs = pairs, .end = end};
