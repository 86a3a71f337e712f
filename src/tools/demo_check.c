/* demo_check.c: compares every mirrored view with brute force, written from the rule of the protocol and from nothing else. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/demo.h"

#define FLUSHES_MAX 200

/* fl(): sums are rounded to 32-bit floats, as the rule says. */
static bool box_sees(float e, float radius, float t)
{
    volatile float low = e - radius, high = e + radius;
    return low <= t && t <= high;
}

void demo_mismatch(struct demo *d, uint64_t space, uint64_t player, uint64_t id, const char *what)
{
    d->mismatches++;
    if (d->mismatches <= 10)
        fprintf(stderr, "\nstep %" PRIu32 " space %" PRIu64 " player %" PRIu64 " entity %" PRIu64 ": %s\n", d->step, space, player, id, what);
}

static void mismatch(struct demo *d, const struct libaoi_view *view, uint64_t id, const char *what)
{
    demo_mismatch(d, view ? view->space : 0, view ? view->player : 0, id, what);
}

/* The view holds this one, with everything right? */
static void expect_item(struct demo *d, const struct libaoi_view *view, const struct libaoi_item *want)
{
    const struct libaoi_item *got = view ? libaoi_view_find(view, want->id) : NULL;
    d->items_compared++;
    if (!got)
        mismatch(d, view, want->id, "is to be seen, but is not in the view");
    else if (memcmp(got->pos, want->pos, sizeof got->pos) != 0)
        mismatch(d, view, want->id, "has another position in the view");
    else if (got->extra != want->extra)
        mismatch(d, view, want->id, "has another extra word in the view");
    else if (got->layers != want->layers)
        mismatch(d, view, want->id, "has other layers in the view");
    else if (got->payload_len != want->payload_len || (want->payload_len && memcmp(got->payload, want->payload, want->payload_len) != 0))
        mismatch(d, view, want->id, "has another payload in the view");
}

static void expect_count(struct demo *d, const struct libaoi_view *view, size_t want)
{
    size_t got = view ? view->n : 0;
    d->views_compared++;
    if (view && view->partial) mismatch(d, view, 0, "the view is in the middle of a delta");
    if (got > want) mismatch(d, view, 0, "the view holds more than is to be seen");
}

static const struct trace_row *vehicle_row(const struct demo *d, uint64_t id)
{
    const struct trace_step *step = &d->town.steps.at[d->step];
    for (uint32_t i = 0; i < step->n; i++)
        if (d->town.rows.at[step->first + i].id == id) return &d->town.rows.at[step->first + i];
    return NULL;
}

static void expect_vehicle(struct demo *d, const struct libaoi_view *view, const struct trace_row *t)
{
    expect_item(d, view, &(struct libaoi_item){.id = t->id, .pos = {t->x, t->y, 0}, .extra = d->stamp, .layers = 1});
}

static double distance2(double x, double y, float to_x, float to_y)
{
    return (x - (double)to_x) * (x - (double)to_x) + (y - (double)to_y) * (y - (double)to_y);
}

/* A rider in the crowd: what its vehicle sees, or was told and is within the margin; of that the best. */
static void check_crowd(struct demo *d, const struct demo_player *p)
{
    const struct libaoi_view *view = libaoi_view(demo_eye(d, p->id), DEMO_TOWN, p->id);
    const struct trace_row *unit = vehicle_row(d, p->vehicle);
    const struct trace_step *step = &d->town.steps.at[d->step];
    volatile float margin = DEMO_RADIUS + DEMO_CROWD_MARGIN;
    demo_best_clear(&d->best, DEMO_CROWD_VIEW);
    for (uint32_t i = 0; unit && i < step->n; i++) {
        const struct trace_row *t = &d->town.rows.at[step->first + i];
        bool told = demo_was_told(&p->told, t->id);
        float radius = told ? margin : DEMO_RADIUS;
        bool seen = t == unit ? p->include_self : box_sees(unit->x, radius, t->x) && box_sees(unit->y, radius, t->y);
        if (!seen) continue;
        struct demo_candidate c = {.id = t->id, .own = t == unit, .priority = demo_is_bus(t->id), .index = step->first + i};
        c.distance2 = distance2(unit->x, unit->y, t->x, t->y);
        demo_best_add(&d->best, c, told);
    }
    if (!unit) mismatch(d, view, p->vehicle, "is no vehicle of this step, but a player rides it");
    for (uint32_t i = 0; i < d->best.list.n; i++) expect_vehicle(d, view, &d->town.rows.at[d->best.list.at[i].index]);
    expect_count(d, view, d->best.list.n);
    d->views_full += d->best.list.n == DEMO_CROWD_VIEW;
}

static void check_player(struct demo *d, const struct demo_player *p)
{
    const struct libaoi_view *view = libaoi_view(demo_eye(d, p->id), DEMO_TOWN, p->id);
    const struct trace_row *unit = vehicle_row(d, p->vehicle);
    const struct trace_step *step = &d->town.steps.at[d->step];
    size_t want = 0;
    for (uint32_t i = 0; unit && i < step->n; i++) {
        const struct trace_row *t = &d->town.rows.at[step->first + i];
        bool seen = t == unit ? p->include_self : box_sees(unit->x, DEMO_RADIUS, t->x) && box_sees(unit->y, DEMO_RADIUS, t->y);
        if (!seen) continue;
        want++;
        expect_vehicle(d, view, t);
    }
    if (!unit) mismatch(d, view, p->vehicle, "is no vehicle of this step, but a player rides it");
    expect_count(d, view, want);
}

static void expect_city(struct demo *d, const struct libaoi_view *view, const struct demo_city *t)
{
    expect_item(
        d, view,
        &(struct libaoi_item){
            .id = t->id, .pos = {t->x, t->y, 0}, .layers = t->layers, .payload = t->population, .payload_len = (uint32_t)strlen(t->population)});
}

/* A camera that zooms out: the greatest cities, and of equal ones the nearest to the centre. */
static void check_far_camera(struct demo *d, const struct demo_camera *c)
{
    const struct libaoi_view *view = libaoi_view(demo_eye(d, c->id), DEMO_CITIES, c->id);
    double x = ((double)c->min[0] + (double)c->max[0]) / 2, y = ((double)c->min[1] + (double)c->max[1]) / 2;
    demo_best_clear(&d->best, DEMO_CAMERA_VIEW);
    for (uint32_t i = 0; i < d->cities.n; i++) {
        const struct demo_city *t = &d->cities.at[i];
        if (!(c->min[0] <= t->x && t->x <= c->max[0] && c->min[1] <= t->y && t->y <= c->max[1])) continue;
        struct demo_candidate candidate = {.id = t->id, .priority = t->people, .distance2 = distance2(x, y, t->x, t->y), .index = i};
        demo_best_add(&d->best, candidate, demo_was_told(&c->told, t->id));
    }
    for (uint32_t i = 0; i < d->best.list.n; i++) expect_city(d, view, &d->cities.at[d->best.list.at[i].index]);
    expect_count(d, view, d->best.list.n);
    d->views_full += d->best.list.n == DEMO_CAMERA_VIEW;
}

static void check_camera(struct demo *d, const struct demo_camera *c)
{
    const struct libaoi_view *view = libaoi_view(demo_eye(d, c->id), DEMO_CITIES, c->id);
    size_t want = 0;
    for (uint32_t i = 0; i < d->cities.n; i++) {
        const struct demo_city *t = &d->cities.at[i];
        bool seen = c->min[0] <= t->x && t->x <= c->max[0] && c->min[1] <= t->y && t->y <= c->max[1];
        if (!seen || (c->mask && !(t->layers & c->mask))) continue;
        want++;
        expect_city(d, view, t);
    }
    expect_count(d, view, want);
}

/* Every delta made so far has come: a ping's answer comes behind it. */
static int catch_up(struct demo *d)
{
    for (int i = 1; i < DEMO_CONNS; i++) libaoi_ping(d->conn[i], d->step + 1);
    return demo_settle(d, 20000);
}

/* Both spaces flush until nobody is owed anything. */
static int flush_all(struct demo *d)
{
    int rounds = 0;
    do {
        d->pending = false;
        libaoi_flush(d->conn[0], DEMO_TOWN, d->step + 1);
        libaoi_flush(d->conn[0], DEMO_CITIES, d->step + 1);
        if (demo_settle(d, 20000) || catch_up(d)) return -1;
    } while (d->pending && ++rounds < FLUSHES_MAX);
    return d->pending ? demo_fault(d, "after %d flushes in a row there is still work left", FLUSHES_MAX) : 0;
}

int demo_freeze(struct demo *d)
{
    libaoi_set_space(d->conn[0], DEMO_TOWN, LIBAOI_FLUSH, &(struct libaoi_settings){.flush_ms = 0});
    return demo_settle(d, 20000) ? -1 : flush_all(d);
}

int demo_compare(struct demo *d)
{
    /* everything that was sent is in the world, and no flush has seen it since the town was frozen: what is told now is what the views depend on */
    if (demo_settle(d, 20000) || catch_up(d)) return -1;
    for (int i = 0; i < DEMO_PLAYERS; i++)
        if (d->players[i].crowd) demo_remember(&d->players[i].told, libaoi_view(demo_eye(d, d->players[i].id), DEMO_TOWN, d->players[i].id));
    for (int i = 0; i < DEMO_CAMERAS; i++)
        if (d->cameras[i].zooms_out) demo_remember(&d->cameras[i].told, libaoi_view(demo_eye(d, d->cameras[i].id), DEMO_CITIES, d->cameras[i].id));
    if (flush_all(d)) return -1;
    for (int i = 0; i < DEMO_PLAYERS; i++) (d->players[i].crowd ? check_crowd : check_player)(d, &d->players[i]);
    for (int i = 0; i < DEMO_CAMERAS; i++) (d->cameras[i].zooms_out ? check_far_camera : check_camera)(d, &d->cameras[i]);
    demo_compare_casts(d);
    d->comparisons++;
    libaoi_set_space(d->conn[0], DEMO_TOWN, LIBAOI_FLUSH, &(struct libaoi_settings){.flush_ms = LIBAOI_FLUSH_MS});
    return demo_settle(d, 20000);
}
