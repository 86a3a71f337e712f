/* test_index.c: both indexes, driven directly and compared with brute force.
 *
 * AOI_SEED=n replays a run: the seed is printed at the start of each random test.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/crosslist.h"
#include "core/blocks.h"
#include "core/space.h"

/* A space made by hand. Player w belongs to watch w and is what shows whether the watch was marked. */
struct rig {
    struct aoi_space space;
    uint64_t rng;
    uint32_t slots, watches; /* at most */
    double origin, side;     /* positions are within origin +- side */
    double unit;             /* and in whole units, if it is not 0 */
    uint32_t burst;          /* so many commands come yet before anything is read: an index may do them together */
    /* what a flush must tell, by slot and by watch */
    bool *touched;    /* added, moved, removed or changed since the last flush */
    float (*from)[3]; /* where it was then */
    uint32_t *layers; /* that it had then or has had since */
    bool layered;     /* entities and watches have all kinds of layers; else all the same */
    bool *changed;    /* the watch has changed since the last flush */
    uint8_t *held;    /* [w * slots + s]: held at the last flush */
    uint32_t *owner;  /* by slot: its watch, AOI__NONE */
    aoi__slots found;
};

static uint64_t chance(struct rig *r)
{
    r->rng += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = r->rng;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint32_t below(struct rig *r, uint32_t n)
{
    return (uint32_t)(chance(r) % n);
}

static double between(struct rig *r, double lo, double hi)
{
    return lo + (hi - lo) * (double)(chance(r) >> 11) / 9007199254740992.0;
}

static uint64_t seed(void)
{
    const char *given = getenv("AOI_SEED");
    uint64_t s = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("AOI_SEED=%llu\n", (unsigned long long)s);
    return s;
}

/* Of an entity, or the mask of a watch or a query. */
static uint32_t some_layers(struct rig *r, bool mask)
{
    static const uint32_t some[] = {1, 1, 1, 2, 3, 4, 0x80000001u, 0};
    if (!r->layered) return mask ? UINT32_MAX : 1;
    return mask && below(r, 2) == 0 ? UINT32_MAX : some[below(r, 8)];
}

/* ------------------------------------------------------------------------------------------------------------- the rig */

static void rig_init(struct rig *r, const struct aoi__index_ops *ops, uint32_t dims, uint32_t slots, uint32_t watches)
{
    *r = (struct rig){.slots = slots, .watches = watches, .side = 100, .rng = 1};
    struct aoi_space *s = &r->space;
    s->dims = s->set.dimensions = dims;
    s->set.cell_size = AOI_CELL_SIZE_DEFAULT;
    s->set.cell_range = 1;
    s->ops = ops;
    s->changed = true; /* and stays so: nobody listens */
    s->alive = mem_zalloc((slots / 32 + 1) * sizeof *s->alive);
    s->moving = mem_zalloc((slots / 64 + 1) * sizeof *s->moving);
    s->own = mem_zalloc(slots * sizeof *s->own);
    array_reserve(&s->dirty, watches / 64 + 1);
    s->dirty.n = s->dirty.cap;
    memset(s->dirty.at, 0, s->dirty.n * sizeof *s->dirty.at);
    s->marked.at = mem_zalloc((watches / 64 + 1) * sizeof *s->marked.at);
    s->marked.n = watches / 64 + 1;
    s->players.at = mem_zalloc(watches * sizeof *s->players.at);
    s->players.n = s->players.cap = watches;
    r->touched = mem_zalloc(slots * sizeof *r->touched);
    r->from = mem_zalloc(slots * sizeof *r->from);
    r->layers = mem_zalloc(slots * sizeof *r->layers);
    r->changed = mem_zalloc(watches * sizeof *r->changed);
    r->held = mem_zalloc((size_t)watches * slots);
    r->owner = mem_alloc(slots * sizeof *r->owner);
    memset(r->owner, 0xff, slots * sizeof *r->owner);
    ops->init(s);
}

static void rig_init_random(struct rig *r, const struct aoi__index_ops *ops, uint32_t dims, uint32_t slots, uint32_t watches)
{
    rig_init(r, ops, dims, slots, watches);
    r->rng = seed();
}

static void rig_clear(struct rig *r)
{
    struct aoi_space *s = &r->space;
    s->ops->validate(s);
    s->ops->clear(s);
    pool_clear(&s->pool);
    for (uint32_t w = 0; w < s->watches.n; w++) array_clear(&s->watches.at[w].viewers);
    array_clear(&s->watches);
    array_clear(&s->dirty);
    array_clear(&s->marked);
    array_clear(&s->players);
    array_clear(&r->found);
    free(s->hot);
    free(s->cold);
    free(s->alive);
    free(s->moving);
    free(s->own);
    free(r->touched);
    free(r->from);
    free(r->layers);
    free(r->changed);
    free(r->held);
    free(r->owner);
}

static bool alive(const struct rig *r, uint32_t slot)
{
    return slot < r->space.slot_n && aoi__alive(&r->space, slot);
}

static void touch(struct rig *r, uint32_t slot)
{
    if (!r->touched[slot]) {
        memcpy(r->from[slot], r->space.hot[slot].pos, sizeof r->from[slot]);
        r->layers[slot] = 0;
    }
    r->layers[slot] |= r->space.hot[slot].layers;
    r->touched[slot] = true;
}

static void insert(struct rig *r, uint32_t slot, const float pos[3])
{
    struct aoi_space *s = &r->space;
    if (slot >= s->slot_n) { /* always somewhere else: nobody may keep a pointer */
        struct aoi__hot *hot = mem_zalloc((slot + 1) * sizeof *hot);
        if (s->slot_n > 0) memcpy(hot, s->hot, s->slot_n * sizeof *hot);
        free(s->hot);
        s->hot = hot;
        s->cold = mem_realloc(s->cold, (slot + 1) * sizeof *s->cold);
        memset(s->cold, 0, (slot + 1) * sizeof *s->cold);
        s->slot_n = s->slot_cap = slot + 1;
    }
    memcpy(s->hot[slot].pos, pos, sizeof s->hot[slot].pos);
    if (s->dims == 2) s->hot[slot].pos[2] = 0;
    s->hot[slot].layers = some_layers(r, false);
    s->alive[slot >> 5] |= 1u << (slot & 31);
    s->entity_n++;
    touch(r, slot);
    s->ops->insert(s, slot);
    s->ops->notify(s, slot, s->hot[slot].pos, s->hot[slot].layers, 0);
}

static void relayer(struct rig *r, uint32_t slot)
{
    struct aoi_space *s = &r->space;
    touch(r, slot);
    s->hot[slot].layers = some_layers(r, false);
    touch(r, slot);
    s->ops->relayer(s, slot);
}

static void move(struct rig *r, uint32_t slot, const float pos[3])
{
    struct aoi_space *s = &r->space;
    float from[3];
    touch(r, slot);
    memcpy(from, s->hot[slot].pos, sizeof from);
    memcpy(s->hot[slot].pos, pos, sizeof from);
    if (s->dims == 2) s->hot[slot].pos[2] = 0;
    s->ops->move(s, slot, from);
}

static void watch_set(struct rig *r, uint32_t watch, uint32_t slot, const float lo[3], const float hi[3])
{
    struct aoi_space *s = &r->space;
    while (s->watches.n <= watch) {
        *array_add(&s->watches) = (struct aoi__watch){.slot = AOI__NONE};
        *array_add(&s->watches.at[s->watches.n - 1].viewers) = (struct aoi__viewer){.player = s->watches.n - 1, .unit = AOI__NONE};
    }
    struct aoi__watch *w = &s->watches.at[watch];
    w->slot = slot;
    if (slot != AOI__NONE) r->owner[slot] = watch;
    memcpy(w->lo, lo, sizeof w->lo);
    memcpy(w->hi, hi, sizeof w->hi);
    w->active = true;
    w->mask = some_layers(r, true);
    r->changed[watch] = true;
    s->ops->watch_set(s, watch);
}

static void watch_clear(struct rig *r, uint32_t watch)
{
    struct aoi_space *s = &r->space;
    struct aoi__watch *w = &s->watches.at[watch];
    s->ops->watch_clear(s, watch);
    if (w->slot != AOI__NONE) r->owner[w->slot] = AOI__NONE;
    w->slot = AOI__NONE;
    w->active = false;
    r->changed[watch] = true;
}

static void erase(struct rig *r, uint32_t slot)
{
    struct aoi_space *s = &r->space;
    if (r->owner[slot] != AOI__NONE) watch_clear(r, r->owner[slot]);
    touch(r, slot);
    s->ops->notify(s, slot, r->from[slot], r->layers[slot], 0);
    s->ops->erase(s, slot);
    s->alive[slot >> 5] &= ~(1u << (slot & 31));
    s->entity_n--;
}

/* ------------------------------------------------------------------------------------------------------------- checks */

static bool holds(const struct rig *r, uint32_t watch, uint32_t slot)
{
    const struct aoi__watch *w = &r->space.watches.at[watch];
    return w->active && slot != w->slot && aoi__inside(r->space.hot[slot].pos, w->lo, w->hi, r->space.dims);
}

/* found holds exactly the living slots that lie in the box, but `but`, each once; it may leave out those without a layer of the mask. */
static void check_found(struct rig *r, const float lo[3], const float hi[3], uint32_t mask, uint32_t but)
{
    const struct aoi_space *s = &r->space;
    uint8_t *times = mem_zalloc(s->slot_n + 1);
    for (uint32_t i = 0; i < r->found.n; i++) {
        assert_true(r->found.at[i] < s->slot_n);
        times[r->found.at[i]]++;
    }
    for (uint32_t i = 0; i < s->slot_n; i++) {
        bool want = aoi__alive(s, i) && i != but && aoi__inside(s->hot[i].pos, lo, hi, s->dims);
        if (times[i] == 0 && want && !(s->hot[i].layers & mask)) continue;
        if (times[i] != want) fail_msg("slot %u is found %u times, not %u", i, times[i], want);
    }
    free(times);
    r->found.n = 0;
}

static void check_watch(struct rig *r, uint32_t watch)
{
    const struct aoi__watch *w = &r->space.watches.at[watch];
    if (!w->active) return;
    uint32_t mask = below(r, 2) ? w->mask : some_layers(r, true);
    r->space.ops->gather(&r->space, watch, mask, w->lo, w->hi, &r->found);
    check_found(r, w->lo, w->hi, mask, w->slot);
}

/* What stands in the pages of a box: all of the inner ones lie in it. */
static void scan_pages(struct rig *r, const float lo[3], const float hi[3], uint32_t layers)
{
    aoi__slots pages[2] = {{0}, {0}};
    bool all = r->space.ops->pages_in(&r->space, lo, hi, layers, &pages[0], &pages[1]);
    const struct aoi__blocks *dir = r->space.ops->pages(&r->space);
    uint32_t seen = 0;
    for (uint32_t inner = 0; inner < 2; inner++) {
        for (uint32_t i = 0; i < pages[inner].n; i++) {
            const struct aoi__page *page = &dir->page.at[pages[inner].at[i]];
            for (uint64_t m = page->used; m != 0; m &= m - 1) {
                uint32_t slot = aoi__page_slots(page, dir->dims)[__builtin_ctzll(m)];
                seen++;
                if (inner || aoi__inside(r->space.hot[slot].pos, lo, hi, r->space.dims)) *array_add(&r->found) = slot;
            }
        }
        array_clear(&pages[inner]);
    }
    if (all && layers == 0) assert_int_equal(seen, r->space.entity_n);
}

static void check_scan(struct rig *r, const float lo[3], const float hi[3])
{
    uint32_t layers = below(r, 2) ? 0 : some_layers(r, false);
    const struct aoi__index_ops *ops = r->space.ops;
    if (ops->pages == NULL)
        ops->scan(&r->space, lo, hi, &r->found);
    else
        scan_pages(r, lo, hi, layers);
    check_found(r, lo, hi, layers == 0 ? UINT32_MAX : layers, AOI__NONE);
}

static void check_watching(struct rig *r, const float lo[3], const float hi[3])
{
    const struct aoi_space *s = &r->space;
    uint8_t *times = mem_zalloc(s->watches.n + 1);
    s->ops->watching(&r->space, lo, hi, &r->found);
    for (uint32_t i = 0; i < r->found.n; i++) {
        assert_true(r->found.at[i] < s->watches.n);
        times[r->found.at[i]]++;
    }
    for (uint32_t i = 0; i < s->watches.n; i++) {
        const struct aoi__watch *w = &s->watches.at[i];
        bool touches = w->active;
        for (uint32_t a = 0; a < s->dims; a++) touches = touches && w->lo[a] <= hi[a] && lo[a] <= w->hi[a];
        if (times[i] != touches) fail_msg("watch %u is found %u times, not %u", i, times[i], touches);
    }
    free(times);
    r->found.n = 0;
}

/* The flush: everything touched is notified; whoever holds it, or held it and has not changed itself, must be marked. */
static void flush(struct rig *r)
{
    struct aoi_space *s = &r->space;
    for (uint32_t i = 0; i < s->slot_n; i++)
        if (r->touched[i] && aoi__alive(s, i)) s->ops->notify(s, i, r->from[i], r->layers[i], 0);
    s->ops->resolve(s);
    for (uint32_t w = 0; w < s->watches.n; w++) {
        bool dirty = s->dirty.at[w / 64] >> (w % 64) & 1;
        for (uint32_t i = 0; i < s->slot_n; i++) {
            uint8_t *held = &r->held[(size_t)w * r->slots + i];
            bool now = aoi__alive(s, i) && holds(r, w, i);
            bool must = r->touched[i] && ((r->layers[i] | s->hot[i].layers) & s->watches.at[w].mask) &&
                        (now || (*held && s->watches.at[w].active && !r->changed[w]));
            if (must && !dirty) fail_msg("watch %u does not hear of slot %u, which it %s", w, i, now ? "holds" : "held");
            *held = now;
        }
        r->changed[w] = false;
    }
    memset(r->touched, 0, r->slots * sizeof *r->touched);
    memset(s->dirty.at, 0, s->dirty.n * sizeof *s->dirty.at);
    memset(s->marked.at, 0, s->marked.n * sizeof *s->marked.at);
}

/* ------------------------------------------------------------------------------------------------------------- random runs */

/* A coordinate as the core would store it. */
static float clean(const struct rig *r, double v)
{
    if (r->unit > 0) v = round(v / r->unit) * r->unit;
    if (v > (double)AOI_COORD_MAX) v = (double)AOI_COORD_MAX;
    if (v < -(double)AOI_COORD_MAX) v = -(double)AOI_COORD_MAX;
    float f = (float)v;
    return fpclassify(f) == FP_NORMAL ? f : 0;
}

static void random_place(struct rig *r, float pos[3])
{
    /* here and there close to 0 by many orders of magnitude, where sums round hardest */
    double scale = r->unit == 0 && below(r, 16) == 0 ? pow(10, between(r, -36, 0)) : 1;
    for (int a = 0; a < 3; a++) pos[a] = clean(r, r->origin + between(r, -r->side, r->side) * scale);
}

static void random_step(struct rig *r, float pos[3])
{
    double step = r->unit > 0 ? 1.4 * r->unit : r->side * (below(r, 2) ? 0.002 : 0.03);
    for (int a = 0; a < 3; a++)
        if (below(r, 3) > 0) pos[a] = clean(r, (double)pos[a] + between(r, -step, step));
}

static void random_move(struct rig *r, uint32_t slot)
{
    float pos[3];
    uint32_t how = below(r, 8);
    memcpy(pos, r->space.hot[slot].pos, sizeof pos);
    if (how == 0) random_place(r, pos);
    if (how == 1 && r->origin == 0) pos[below(r, r->space.dims)] *= -1;
    if (how == 2) memcpy(pos, r->space.hot[alive(r, slot / 2) ? slot / 2 : slot].pos, sizeof pos);
    if (how > 2) random_step(r, pos);
    for (int a = 0; a < 3; a++) pos[a] = pos[a] == 0 ? 0 : pos[a];
    move(r, slot, pos);
}

/* Half the edge of a box: from none at all to far past everything. */
static double random_extent(struct rig *r)
{
    switch (below(r, 8)) {
    case 0: return 0;
    case 1: return r->side * between(r, 0.5, 3);
    case 2: return below(r, 4) == 0 ? (double)INFINITY : r->side * 100;
    default: return r->side * pow(10, between(r, -3, 0)) * 0.5;
    }
}

static void random_box(struct rig *r, const float around[3], float lo[3], float hi[3])
{
    double extent = random_extent(r);
    for (int a = 0; a < 3; a++) {
        if (below(r, 8) == 0) extent = random_extent(r);
        double e = r->unit > 0 ? round(extent / r->unit) * r->unit : extent;
        lo[a] = (float)((double)around[a] - e);
        hi[a] = (float)((double)around[a] + e);
        if (below(r, 32) == 0) lo[a] = -INFINITY;
        if (below(r, 32) == 0) hi[a] = INFINITY;
        if (lo[a] == 0 && below(r, 2)) lo[a] = -0.0f;
    }
}

/* The box of the watch follows a place, grows or shrinks by one edge, or becomes another one. */
static void random_watch(struct rig *r, uint32_t watch)
{
    const struct aoi_space *s = &r->space;
    bool known = watch < s->watches.n && s->watches.at[watch].active;
    float lo[3], hi[3], at[3];
    uint32_t slot = AOI__NONE, how = below(r, 6);
    if (known) {
        slot = s->watches.at[watch].slot;
    } else if (below(r, 2) && s->slot_n > 0) {
        slot = below(r, s->slot_n);
        if (!alive(r, slot) || r->owner[slot] != AOI__NONE) slot = AOI__NONE;
    }
    if (!known || how < 2) {
        if (slot == AOI__NONE)
            random_place(r, at);
        else
            memcpy(at, s->hot[slot].pos, sizeof at);
        random_box(r, at, lo, hi);
    } else {
        memcpy(lo, s->watches.at[watch].lo, sizeof lo);
        memcpy(hi, s->watches.at[watch].hi, sizeof hi);
        double step = how == 2 ? r->side : r->unit > 0 ? 2 * r->unit : r->side * 0.02;
        for (int a = 0; a < 3; a++) {
            double by = clean(r, between(r, -step, step));
            if (how != 3) lo[a] = (float)((double)lo[a] + by);
            if (how != 4) hi[a] = (float)((double)hi[a] + by);
            if (lo[a] > hi[a]) lo[a] = hi[a];
        }
    }
    watch_set(r, watch, slot, lo, hi);
}

static void random_command(struct rig *r)
{
    uint32_t slot = below(r, r->slots), watch = below(r, r->watches), what = below(r, r->burst > 0 ? 58 : 64);
    float pos[3], lo[3], hi[3];
    if (!alive(r, slot)) {
        random_place(r, pos);
        if (what < 40) insert(r, slot, pos);
    } else if (what < 6) {
        erase(r, slot);
    } else if (what < 40) {
        random_move(r, slot);
        if (r->owner[slot] != AOI__NONE && below(r, 4) > 0) random_watch(r, r->owner[slot]);
    } else if (what < 42) {
        if (r->layered) relayer(r, slot);
        touch(r, slot); /* its payload, say */
    }
    if (what >= 42 && what < 46 && watch < r->space.watches.n) watch_clear(r, watch);
    if (what >= 46 && what < 58) random_watch(r, watch);
    if (what >= 58 && what < 62) {
        random_place(r, pos);
        random_box(r, pos, lo, hi);
        check_scan(r, lo, hi);
        check_watching(r, lo, hi);
    }
    if (what >= 62) flush(r);
    if (r->burst > 0 && r->burst-- > 1) return;
    if (below(r, 32) == 0) r->burst = below(r, 300);
    if (r->space.watches.n > 0) check_watch(r, below(r, r->space.watches.n));
}

static void run_at(const struct aoi__index_ops *ops, uint32_t dims, uint32_t slots, uint32_t watches, double origin, double side, double unit,
                   bool layered, uint32_t steps)
{
    struct rig r;
    rig_init_random(&r, ops, dims, slots, watches);
    r.origin = origin;
    r.side = side;
    r.unit = unit;
    r.layered = layered;
    for (uint32_t i = 0; i < steps; i++) {
        random_command(&r);
        if (i % 32 != 0 || r.burst > 0) continue;
        ops->validate(&r.space);
        for (uint32_t w = 0; w < r.space.watches.n; w++) check_watch(&r, w);
    }
    assert_true(ops->bytes(&r.space) > 0);
    rig_clear(&r);
}

static void run(const struct aoi__index_ops *ops, uint32_t dims, uint32_t slots, uint32_t watches, double side, double unit, uint32_t steps)
{
    run_at(ops, dims, slots, watches, 0, side, unit, false, steps);
    run_at(ops, dims, slots, watches, 0, side, unit, true, steps / 2);
}

#define BOTH(name)                             \
    static void name##_grid(void **state)      \
    {                                          \
        (void)state;                           \
        name(&aoi__grid_ops);                  \
    }                                          \
    static void name##_crosslist(void **state) \
    {                                          \
        (void)state;                           \
        name(&aoi__crosslist_ops);             \
    }

static void a_wide_world_matches_brute_force(const struct aoi__index_ops *ops)
{
    run(ops, 2, 150, 60, 1000, 0, 6000);
    run(ops, 3, 150, 60, 300, 0, 6000);
}
BOTH(a_wide_world_matches_brute_force)

static void coordinates_that_tie_match_brute_force(const struct aoi__index_ops *ops)
{
    run(ops, 2, 120, 60, 8, 1, 8000);
    run(ops, 3, 120, 60, 4, 1, 8000);
    run(ops, 2, 120, 60, 64, 32, 6000); /* on the lines of the grid's cells */
}
BOTH(coordinates_that_tie_match_brute_force)

static void coordinates_at_the_limit_match_brute_force(const struct aoi__index_ops *ops)
{
    run(ops, 2, 100, 50, (double)AOI_COORD_MAX, 0, 4000);
    run(ops, 3, 100, 50, (double)AOI_COORD_MAX, 1 << 20, 4000);
}
BOTH(coordinates_at_the_limit_match_brute_force)

/* Where neighbouring floats are a whole unit apart. */
static void coordinates_that_are_neighbouring_floats_match_brute_force(const struct aoi__index_ops *ops)
{
    run_at(ops, 2, 100, 50, 8388700, 9, 1, true, 8000);
    run_at(ops, 3, 100, 50, -12000000, 6, 1, false, 8000);
}
BOTH(coordinates_that_are_neighbouring_floats_match_brute_force)

static void a_tiny_world_matches_brute_force(const struct aoi__index_ops *ops)
{
    run(ops, 2, 100, 50, 1e-3, 0, 4000);
}
BOTH(a_tiny_world_matches_brute_force)

/* ------------------------------------------------------------------------------------------------------------- crowds */

/* A box around a slot's place. */
static void watch_around(struct rig *r, uint32_t watch, uint32_t slot, float extent)
{
    float lo[3], hi[3];
    for (int a = 0; a < 3; a++) {
        lo[a] = r->space.hot[slot].pos[a] - extent;
        hi[a] = r->space.hot[slot].pos[a] + extent;
    }
    watch_set(r, watch, slot, lo, hi);
}

/* Enough that the axes have many chunks, and all watch and move: a little, and now and then across the world; a few see everything. */
static void a_crowd_that_watches_and_teleports_matches_brute_force(const struct aoi__index_ops *ops)
{
    enum { N = 1500 };
    static const float extents[8] = {5, 5, 5, 25, 25, 100, 100, 5000};
    struct rig r;
    rig_init_random(&r, ops, 2, N, N);
    r.side = 250;
    for (uint32_t i = 0; i < N; i++) {
        float pos[3];
        random_place(&r, pos);
        insert(&r, i, pos);
        watch_around(&r, i, i, extents[i % 8 == 7 && i > 64 ? 0 : i % 8]);
    }
    for (uint32_t i = 0; i < 8 * N; i++) {
        uint32_t slot = below(&r, N);
        if (i % 64 == 0) erase(&r, slot);
        if (i % 64 == 0) insert(&r, slot, r.space.hot[slot].pos);
        random_move(&r, slot);
        watch_around(&r, slot, slot, extents[below(&r, 64) == 0 ? below(&r, 8) : slot % 7]);
        if (i / 1024 % 2 == 0) check_watch(&r, below(&r, N)); /* else 1,024 commands are one batch */
        if (i % N == 0) ops->validate(&r.space);
        if (i % (2 * N) == N) flush(&r);
    }
    rig_clear(&r);
}
BOTH(a_crowd_that_watches_and_teleports_matches_brute_force)

/* All on one spot, on its floor, and away again: nothing depends on where a tie stands. */
static void a_crowd_on_one_spot_comes_and_goes(const struct aoi__index_ops *ops)
{
    enum { N = 400 };
    struct rig r;
    rig_init_random(&r, ops, 3, N, N);
    for (uint32_t i = 0; i < N; i++) {
        insert(&r, i, (const float[3]){(float)i, (float)(i * i % 101), 0});
        watch_around(&r, i, i, 10);
    }
    for (int turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < N; i++) {
            move(&r, i, (const float[3]){10, 10, 0});
            watch_around(&r, i, i, i % 2 ? 10 : 0);
            check_watch(&r, i);
        }
        ops->validate(&r.space);
        flush(&r);
        for (uint32_t i = 0; i < N; i++) {
            move(&r, i, (const float[3]){(float)(10 + (int)below(&r, 3) * 10 - 10), 0, turn < 2 ? 0 : (float)(i % 40)}); /* many exactly on an edge */
            watch_around(&r, i, i, 10);
            check_watch(&r, i);
        }
        ops->validate(&r.space);
        flush(&r);
    }
    for (uint32_t i = 0; i < N; i++) erase(&r, (i * 7 + 3) % N);
    check_scan(&r, (const float[3]){-INFINITY, -INFINITY, -INFINITY}, (const float[3]){INFINITY, INFINITY, INFINITY});
    rig_clear(&r);
}
BOTH(a_crowd_on_one_spot_comes_and_goes)

/* ------------------------------------------------------------------------------------------------------------- single cases */

/* Nothing is read meanwhile, so an index may do it all at once. */
static void many_new_watches_that_change_before_anything_is_read(const struct aoi__index_ops *ops)
{
    enum { N = 600 };
    struct rig r;
    rig_init_random(&r, ops, 2, N, N);
    for (uint32_t i = 0; i < N; i++) {
        float pos[3];
        random_place(&r, pos);
        insert(&r, i, pos);
    }
    for (int turn = 0; turn < 4; turn++) {
        for (uint32_t i = 0; i < N; i++) {
            if (r.owner[i] != AOI__NONE && below(&r, 2)) watch_clear(&r, i);
            watch_around(&r, i, i, (float)(1 + i % 3 * 20));
            if (i % 2 == 0) watch_around(&r, i, i, 5);
            if (i % 3 == 0) random_move(&r, i);
            if (i % 3 == 0) watch_around(&r, i, i, 12);
            if (i % 5 == 0) watch_clear(&r, i);
            if (i % 10 == 0) watch_around(&r, i, i, 12);
            if (i % 7 == 0) erase(&r, i / 2);
            if (i % 7 == 0) insert(&r, i / 2, r.space.hot[i].pos);
        }
        flush(&r);
        for (uint32_t i = 0; i < N; i++) check_watch(&r, i);
        ops->validate(&r.space);
    }
    rig_clear(&r);
}
BOTH(many_new_watches_that_change_before_anything_is_read)

static void edges_are_inclusive_from_every_side(const struct aoi__index_ops *ops)
{
    struct rig r;
    rig_init(&r, ops, 2, 4, 2);
    insert(&r, 0, (const float[3]){0, 0, 0});
    watch_around(&r, 0, 0, 5);
    insert(&r, 1, (const float[3]){20, 0, 0});
    static const float stops[][2] = {{5, 0},     {-5, 0}, {5, 0}, {6, 0},  {-6, 0},  {-5, 5}, {5, -5},
                                     {5, -5.1f}, {5, -5}, {0, 0}, {20, 0}, {-5, -5}, {-20, 0}};
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        move(&r, 1, (const float[3]){stops[i][0], stops[i][1], 0});
        check_watch(&r, 0);
        flush(&r);
    }
    for (int i = 0; i < 9; i++) { /* and the watch past the entity, stopping with either edge on it */
        move(&r, 0, (const float[3]){(float)(i * 5 - 40), 0, 0});
        watch_around(&r, 0, 0, 5);
        check_watch(&r, 0);
        flush(&r);
    }
    rig_clear(&r);
}
BOTH(edges_are_inclusive_from_every_side)

static void a_watch_is_reused_by_another_entity(const struct aoi__index_ops *ops)
{
    struct rig r;
    rig_init(&r, ops, 2, 4, 2);
    insert(&r, 0, (const float[3]){0, 0, 0});
    insert(&r, 1, (const float[3]){1, 1, 0});
    watch_around(&r, 0, 0, 5);
    check_watch(&r, 0);
    watch_clear(&r, 0);
    watch_clear(&r, 0); /* it has no area any more: fine */
    watch_around(&r, 0, 1, 5);
    check_watch(&r, 0); /* 0, not 1 */
    watch_clear(&r, 0);
    watch_set(&r, 0, AOI__NONE, (const float[3]){-1, -1, -1}, (const float[3]){1, 1, 1});
    check_watch(&r, 0); /* both */
    erase(&r, 0);
    insert(&r, 0, (const float[3]){1, -1, 0});
    check_watch(&r, 0);
    flush(&r);
    rig_clear(&r);
}
BOTH(a_watch_is_reused_by_another_entity)

static void an_empty_index_finds_nothing(const struct aoi__index_ops *ops)
{
    struct rig r;
    rig_init(&r, ops, 3, 1, 1);
    check_scan(&r, (const float[3]){-INFINITY, -INFINITY, -INFINITY}, (const float[3]){INFINITY, INFINITY, INFINITY});
    watch_set(&r, 0, AOI__NONE, (const float[3]){-1, -1, -1}, (const float[3]){1, 1, 1});
    check_watch(&r, 0);
    flush(&r);
    rig_clear(&r);
}
BOTH(an_empty_index_finds_nothing)

static bool was_marked(struct rig *r, uint32_t watch)
{
    r->space.ops->resolve(&r->space);
    bool marked = r->space.dirty.at[watch / 64] >> (watch % 64) & 1;
    memset(r->space.dirty.at, 0, r->space.dirty.n * sizeof *r->space.dirty.at);
    return marked;
}

/* Enough entities that a watch, or one of them, that goes far does not pass them one by one. notify() plays no part. */
static void the_crosslist_marks_a_watch_whose_set_has_changed(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct rig r;
    rig_init(&r, &aoi__crosslist_ops, 2, N, N);
    for (uint32_t i = 0; i < N; i++) insert(&r, i, (const float[3]){(float)(i * 10), 0, 0});
    for (uint32_t i = 1; i < N; i++) watch_around(&r, i, i, 1);
    watch_set(&r, 0, AOI__NONE, (const float[3]){-1, -1, 0}, (const float[3]){1, 1, 0});
    assert_true(was_marked(&r, 0));
    watch_set(&r, 0, AOI__NONE, (const float[3]){4999, -1, 0}, (const float[3]){5001, 1, 0}); /* far, and it holds as many */
    assert_true(was_marked(&r, 0));
    watch_set(&r, 0, AOI__NONE, (const float[3]){5009, -1, 0}, (const float[3]){5011, 1, 0});
    assert_true(was_marked(&r, 0));
    watch_set(&r, 0, AOI__NONE, (const float[3]){5008, -2, 0}, (const float[3]){5012, 1, 0}); /* nothing more lies in it */
    assert_false(was_marked(&r, 0));
    move(&r, 501, (const float[3]){5010, 1, 0}); /* it stays inside */
    assert_false(was_marked(&r, 0));
    move(&r, 501, (const float[3]){5010, 2, 0});
    assert_true(was_marked(&r, 0));
    move(&r, 1, (const float[3]){5010, 0, 0}); /* far, both ways */
    assert_true(was_marked(&r, 0));
    move(&r, 1, (const float[3]){10, 0, 0});
    assert_true(was_marked(&r, 0));
    move(&r, 501, (const float[3]){5010, 0, 0});
    assert_true(was_marked(&r, 0));
    watch_clear(&r, 501);
    r.space.ops->erase(&r.space, 501);
    assert_true(was_marked(&r, 0));
    r.space.ops->insert(&r.space, 501);
    assert_true(was_marked(&r, 0));
    watch_clear(&r, 0);
    assert_true(was_marked(&r, 0));
    rig_clear(&r);
}

/* In a world that is long and narrow, with a watch around every 10th place on its one road. */
static void build_road(struct rig *r, uint32_t n)
{
    rig_init(r, &aoi__crosslist_ops, 2, n, n);
    for (uint32_t i = n; i-- > 0;) {
        insert(r, i, (const float[3]){(float)(i * 10), (float)(i % 7), 0});
        watch_around(r, i, i, 50);
    }
    r->space.ops->resolve(&r->space);
}

static uint64_t work(const struct rig *r)
{
    const struct aoi__crosslist *x = r->space.index;
    return x->work;
}

/* Most markers and pairs that the cross-list looks at when one of n goes from end to end. */
static uint64_t work_of_a_teleport(uint32_t n)
{
    struct rig r;
    uint64_t most = 0;
    build_road(&r, n);
    for (uint32_t i = 0; i < 32; i++) {
        uint64_t before = work(&r);
        uint32_t slot = i % 2 == 0 ? i : n - i;
        move(&r, slot, (const float[3]){(float)((n - slot) * 10), 3, 0});
        watch_around(&r, slot, slot, 50);
        r.space.ops->resolve(&r.space);
        check_watch(&r, slot);
        if (work(&r) - before > most) most = work(&r) - before;
    }
    rig_clear(&r);
    return most;
}

static void a_teleport_costs_the_crosslist_the_same_in_a_world_eight_times_as_long(void **state)
{
    (void)state;
    uint64_t small = work_of_a_teleport(512), large = work_of_a_teleport(4096);
    assert_true(small > 0);
    assert_true(large <= small + AOI__CHUNK);
    assert_true(large < 256); /* where passing everything on the way looks at 16,000 */
}

/* All take a step too small to pass anything; some teleport. */
static void a_few_teleports_cost_the_crosslist_little_where_everything_moves(void **state)
{
    (void)state;
    enum { N = 4096, FAR = 8 };
    struct rig r;
    build_road(&r, N);
    for (uint32_t turn = 1; turn < 4; turn++) {
        uint64_t before = work(&r);
        for (uint32_t i = 0; i < N; i++) {
            bool far = i % (N / FAR) == turn;
            move(&r, i, (const float[3]){(float)((far ? N - i : i) * 10) + (float)turn * 0.25f, (float)(i % 7), 0});
            watch_around(&r, i, i, 50);
        }
        r.space.ops->resolve(&r.space);
        for (uint32_t i = 0; i < N; i += 5) check_watch(&r, i);
        if (turn > 1) assert_in_range(work(&r) - before, FAR, 2 * FAR * 256); /* those of this turn, and those of the last, which come back */
    }
    rig_clear(&r);
}

#define BOTH_OF(name) cmocka_unit_test(name##_grid), cmocka_unit_test(name##_crosslist)

/* clang-format off */
int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_OF(an_empty_index_finds_nothing),
        BOTH_OF(edges_are_inclusive_from_every_side),
        BOTH_OF(a_watch_is_reused_by_another_entity),
        cmocka_unit_test(the_crosslist_marks_a_watch_whose_set_has_changed),
        cmocka_unit_test(a_teleport_costs_the_crosslist_the_same_in_a_world_eight_times_as_long),
        cmocka_unit_test(a_few_teleports_cost_the_crosslist_little_where_everything_moves),
        BOTH_OF(a_wide_world_matches_brute_force),
        BOTH_OF(coordinates_that_tie_match_brute_force),
        BOTH_OF(coordinates_at_the_limit_match_brute_force),
        BOTH_OF(coordinates_that_are_neighbouring_floats_match_brute_force),
        BOTH_OF(a_tiny_world_matches_brute_force),
        BOTH_OF(a_crowd_that_watches_and_teleports_matches_brute_force),
        BOTH_OF(a_crowd_on_one_spot_comes_and_goes),
        BOTH_OF(many_new_watches_that_change_before_anything_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
