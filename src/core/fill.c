/* fill.c: the sets of many new watches of a cross-list, at once.
 *
 * The coordinates are copied out in the order of one axis, in columns. Then what a watch may hold stands in a row there, and is scanned many at a
 * time.
 */
#include "core/crosslist.h"
#include "core/scan.h"
#include "core/space.h"

/* Reads the axis into places.was, and who stands there into columns and column_slot. The capacity of a column. */
static uint32_t read_columns(struct aoi__crosslist *x, uint32_t axis)
{
    uint32_t n = x->place[axis].n, cap = (n / AOI__LANES + 2) * AOI__LANES;
    array_reserve(&x->places.was, (size_t)n + 1);
    array_reserve(&x->columns, (size_t)cap * x->dims);
    array_reserve(&x->column_slot, cap);
    aoi__axis_read(&x->place[axis], x->places.was.at);
    for (uint32_t i = 0; i < cap; i++) {
        uint32_t slot = i < n ? x->places.was.at[i] & AOI__WHOSE : 0;
        x->column_slot.at[i] = slot;
        for (uint32_t a = 0; a < x->dims; a++) x->columns.at[(size_t)a * cap + i] = i < n ? aoi__unorder(aoi__at(x, slot)[a]) : 0;
    }
    return cap;
}

void aoi__fill(struct aoi__crosslist *x, uint32_t axis, const uint64_t *watches, uint32_t n)
{
    aoi__scan_fn scan = aoi__scan_pick(x->dims);
    uint32_t cap = read_columns(x, axis), places = x->place[axis].n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t watch = (uint32_t)watches[i];
        const struct aoi__area *area = &x->area.at[watch];
        uint32_t from = aoi__markers_below(x->places.was.at, places, aoi__marker(area->lo[axis], 0));
        uint32_t many = aoi__markers_below(x->places.was.at + from, places - from, aoi__marker(area->hi[axis], UINT32_MAX));
        float lo[3] = {0}, hi[3] = {0};
        for (uint32_t a = 0; a < x->dims; a++) {
            lo[a] = aoi__unorder(area->lo[a]);
            hi[a] = aoi__unorder(area->hi[a]);
        }
        x->work += many;
        array_reserve(&x->far, (size_t)many + AOI__LANES);
        uint32_t found = scan(x->columns.at + from, x->column_slot.at + from, cap, many, lo, hi, x->far.at);
        for (uint32_t k = 0; k < found; k++)
            if (x->far.at[k] != area->slot) aoi__pairs_add(&x->pairs, watch, x->far.at[k]);
        if (found > 0) aoi__mark(x, watch);
    }
}
