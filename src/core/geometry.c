/* geometry.c: the float rules of visibility: what a position may be, and which box a unit watches. */
#include <float.h>
#include <math.h>

#include "core/space.h"

_Static_assert(FLT_EVAL_METHOD == 0, "float sums must round to 32 bits");

float aoi__clean(float v)
{
    return fabsf(v) < FLT_MIN ? 0.0f : v;
}

int aoi__check_pos(const struct aoi_space *space, const float pos[3], float out[3])
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
        if (!isfinite(min[a]) || !isfinite(max[a]) || min[a] > max[a]) return AOI_EINVAL;
        lo[a] = aoi__clean(min[a]);
        hi[a] = aoi__clean(max[a]);
    }
    return AOI_OK;
}

void aoi__sphere_box(const float pos[3], float radius, uint32_t dims, float lo[3], float hi[3])
{
    for (uint32_t a = 0; a < 3; a++) {
        if (a >= dims) {
            lo[a] = hi[a] = 0;
            continue;
        }
        /* aoi__in_sphere() rounds the difference and the squares to doubles: a few units in the last place of slack */
        double p = pos[a], r = radius, slack = (fabs(p) + r) * 0x1p-48;
        double low = p - r - slack, high = p + r + slack;
        lo[a] = low < -FLT_MAX ? -INFINITY : nextafterf((float)low, -INFINITY);
        hi[a] = high > FLT_MAX ? INFINITY : nextafterf((float)high, INFINITY);
    }
}

bool aoi__in_sphere(const float a[3], const float b[3], float radius, uint32_t dims)
{
    double dx = (double)a[0] - (double)b[0], dy = (double)a[1] - (double)b[1], r = radius;
    double d = dx * dx + dy * dy;
    if (dims == 3) {
        double dz = (double)a[2] - (double)b[2];
        d += dz * dz;
    }
    return d <= r * r;
}

/* The smallest float whose cell is at least c: v is within a rounding or two of c * size, so that the loops are short. */
static float first_of_cell(double c, double size)
{
    double at = c * size;
    if (at < -AOI_COORD_MAX * 2.0) return -INFINITY; /* past every entity */
    float v = (float)at;
    while (floor((double)v / size) < c) v = nextafterf(v, INFINITY);
    for (;;) {
        float below = nextafterf(v, -INFINITY);
        if (floor((double)below / size) < c) return v;
        v = below;
    }
}

void aoi__unit_area(const struct aoi_space *space, const float pos[3], float radius, float lo[3], float hi[3])
{
    if (space->set.shape == AOI_SHAPE_SPHERE) {
        aoi__sphere_box(pos, radius, space->dims, lo, hi);
        return;
    }
    for (uint32_t a = 0; a < 3; a++) {
        if (a >= space->dims) {
            lo[a] = hi[a] = 0;
        } else if (space->set.shape == AOI_SHAPE_BOX) {
            lo[a] = pos[a] - radius;
            hi[a] = pos[a] + radius;
        } else {
            double size = space->set.cell_size, cell = floor((double)pos[a] / size), range = space->set.cell_range;
            lo[a] = first_of_cell(cell - range, size);
            double end = cell + range + 1;
            hi[a] = end * size > AOI_COORD_MAX * 2.0 ? INFINITY : nextafterf(first_of_cell(end, size), -INFINITY);
        }
    }
}
