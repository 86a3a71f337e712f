/* geometry.c: the float rules of visibility: what a position may be, which box a unit watches, what is seen and what may stay. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/space.h"

_Static_assert(FLT_EVAL_METHOD == 0, "float sums must round to 32 bits");

float aoi__clean(float v)
{
    return fabsf(v) < FLT_MIN ? 0.0f : v;
}

int aoi__check_any_pos(const struct aoi_space *space, const float pos[3], float out[3])
{
    const struct aoi_settings *set = &space->set;
    float p[3] = {0};
    int result = AOI_OK;
    for (uint32_t a = 0; a < space->dims; a++) {
        if (!isfinite(pos[a])) return AOI_EINVAL;
        p[a] = aoi__clean(pos[a]);
        if (fabsf(p[a]) > AOI_COORD_MAX) result = AOI_EBOUNDS;
        if (set->bounded && (p[a] < set->min[a] || p[a] > set->max[a])) result = AOI_EBOUNDS;
    }
    if (result == AOI_OK)
        for (uint32_t a = 0; a < 3; a++) out[a] = p[a];
    return result;
}

int aoi__check_box(const struct aoi_space *space, const float min[3], const float max[3], float lo[3], float hi[3])
{
    for (uint32_t a = 0; a < 3; a++) {
        if (a >= space->dims) {
            lo[a] = hi[a] = 0;
            continue;
        }
        if (!isfinite(min[a]) || !isfinite(max[a])) return AOI_EINVAL;
        lo[a] = aoi__clean(min[a]);
        hi[a] = aoi__clean(max[a]);
        if (lo[a] > hi[a]) return AOI_EINVAL;
    }
    return AOI_OK;
}

double aoi__distance2(const float a[3], const float b[3], uint32_t dims)
{
    double dx = (double)a[0] - (double)b[0], dy = (double)a[1] - (double)b[1];
    double d = dx * dx + dy * dy;
    if (dims == 3) {
        double dz = (double)a[2] - (double)b[2];
        d += dz * dz;
    }
    return d;
}

/* ------------------------------------------------------------------------------------------------------------- boxes for the index */

void aoi__widen(double low, double high, double slack, float *lo, float *hi)
{
    *lo = low - slack < -FLT_MAX ? -INFINITY : nextafterf((float)(low - slack), -INFINITY);
    *hi = high + slack > FLT_MAX ? INFINITY : nextafterf((float)(high + slack), INFINITY);
}

void aoi__sphere_box(const float pos[3], double radius, uint32_t dims, float lo[3], float hi[3])
{
    memset(lo, 0, 3 * sizeof *lo);
    memset(hi, 0, 3 * sizeof *hi);
    /* the rule rounds the difference and the squares to doubles: a few units in the last place of slack */
    for (uint32_t a = 0; a < dims; a++) aoi__widen(pos[a] - radius, pos[a] + radius, (fabs((double)pos[a]) + radius) * 0x1p-48, &lo[a], &hi[a]);
}

/* The smallest float whose cell is at least c: v is within a rounding or two of c * size, so that the loops are short. */
static float first_of_cell(double c, double size)
{
    double at = c * size;
    if (at < -FLT_MAX) return -INFINITY; /* past every float */
    if (at > FLT_MAX) return INFINITY;
    float v = (float)at;
    while (floor((double)v / size) < c) v = nextafterf(v, INFINITY);
    for (;;) {
        float below = nextafterf(v, -INFINITY);
        if (floor((double)below / size) < c) return v;
        v = below;
    }
}

/* One axis of a unit in a space of cells: exactly the cells in range, and what the margin may keep. */
static void cells_area(const struct aoi_space *space, struct aoi__watch *w, uint32_t a, float pos)
{
    double size = space->set.cell_size, range = space->set.cell_range, margin = w->margin, p = pos;
    double cell = floor(p / size);
    w->base_lo[a] = first_of_cell(cell - range, size);
    w->base_hi[a] = nextafterf(first_of_cell(cell + range + 1, size), -INFINITY);
    w->lo[a] = w->base_lo[a];
    w->hi[a] = w->base_hi[a];
    if (margin == 0) { /* in its cell it sees the same cells, wherever it stands */
        w->stay_lo[a] = first_of_cell(cell, size);
        w->stay_hi[a] = nextafterf(first_of_cell(cell + 1, size), -INFINITY);
        return;
    }
    /* what is further than so many cells and the margins of both is out; two cells of slack cover the rounding of the quotients */
    float lo, hi;
    aoi__widen(p - (range + 2) * size - 2 * margin, p + (range + 2) * size + 2 * margin, (fabs(p) + margin) * 0x1p-48, &lo, &hi);
    if (lo < w->lo[a]) w->lo[a] = lo;
    if (hi > w->hi[a]) w->hi[a] = hi;
}

void aoi__watch_area(const struct aoi_space *space, struct aoi__watch *w)
{
    bool viewport = w->slot == AOI__NONE;
    const float *pos = viewport ? NULL : space->hot[w->slot].pos;
    float radius = viewport ? 0 : space->own[w->slot].radius, keep = radius + w->margin;
    if (space->dims == 2) aoi__watch_axis(w, 2, 0, 0, 0);
    if (!viewport && space->set.shape == AOI_SHAPE_BOX) {
        aoi__unit_boxes(w, space->dims, pos, radius);
        return;
    }
    if (!viewport && space->set.shape == AOI_SHAPE_SPHERE) {
        aoi__sphere_box(pos, radius, space->dims, w->base_lo, w->base_hi);
        aoi__sphere_box(pos, keep, space->dims, w->lo, w->hi);
        return;
    }
    for (uint32_t a = 0; a < space->dims; a++) {
        if (viewport) {
            w->lo[a] = w->base_lo[a] - w->margin;
            w->hi[a] = w->base_hi[a] + w->margin;
        } else {
            cells_area(space, w, a, pos[a]);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------- the exact rules */

void aoi__sight_init(struct aoi__sight *s, const struct aoi_space *space, const struct aoi__watch *watch, float margin)
{
    bool unit = watch->slot != AOI__NONE;
    *s = (struct aoi__sight){.space = space,
                             .watch = watch,
                             .sphere = unit && space->set.shape == AOI_SHAPE_SPHERE,
                             .cells = unit && space->set.shape == AOI_SHAPE_CELLS,
                             .margin = margin};
    if (unit) {
        memcpy(s->pos, space->hot[watch->slot].pos, sizeof s->pos);
        s->radius = space->own[watch->slot].radius;
        s->keep_radius = s->radius + margin;
    }
    for (uint32_t a = 0; a < space->dims; a++) {
        s->keep_lo[a] = unit ? s->pos[a] - s->keep_radius : watch->base_lo[a] - margin;
        s->keep_hi[a] = unit ? s->pos[a] + s->keep_radius : watch->base_hi[a] + margin;
    }
}

static bool in_box(const float *pos, float appeal, const float *lo, const float *hi, uint32_t dims)
{
    for (uint32_t a = 0; a < dims; a++)
        if (!(lo[a] <= pos[a] + appeal && pos[a] - appeal <= hi[a])) return false;
    return true;
}

bool aoi__sight_base(const struct aoi__sight *s, const float pos[3], float appeal)
{
    if (s->sphere) return aoi__in_sphere(pos, s->pos, (double)s->radius + (double)appeal, s->space->dims);
    return in_box(pos, s->cells ? 0 : appeal, s->watch->base_lo, s->watch->base_hi, s->space->dims);
}

static bool cells_keep(const struct aoi__sight *s, const float pos[3])
{
    double size = s->space->set.cell_size, margin = s->margin;
    for (uint32_t a = 0; a < s->space->dims; a++) {
        double lo = fmin((double)pos[a], (double)s->pos[a]), hi = fmax((double)pos[a], (double)s->pos[a]);
        if (floor((hi - margin) / size) - floor((lo + margin) / size) > s->space->set.cell_range) return false;
    }
    return true;
}

bool aoi__sight_keep(const struct aoi__sight *s, const float pos[3], float appeal)
{
    if (s->sphere) return aoi__in_sphere(pos, s->pos, (double)s->keep_radius + (double)appeal, s->space->dims);
    if (s->cells) return cells_keep(s, pos);
    return in_box(pos, appeal, s->keep_lo, s->keep_hi, s->space->dims);
}

bool aoi__sight_touches(const struct aoi__sight *s, const float lo[3], const float hi[3])
{
    uint32_t dims = s->space->dims;
    if (!s->watch->active) return false;
    if (s->sphere) {
        float nearest[3] = {0};
        for (uint32_t a = 0; a < dims; a++) nearest[a] = fminf(fmaxf(s->pos[a], lo[a]), hi[a]);
        return aoi__in_sphere(nearest, s->pos, s->radius, dims);
    }
    for (uint32_t a = 0; a < dims; a++)
        if (!(s->watch->base_lo[a] <= hi[a] && lo[a] <= s->watch->base_hi[a])) return false;
    return true;
}
