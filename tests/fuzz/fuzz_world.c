/* fuzz_world.c: bytes as commands on two worlds, one on each index: the model judges each by brute force, and both have to answer and tell the same.
 *
 * The first bytes choose the space; then a byte chooses a command, and the next ones its arguments. AOI_TRACE=1 prints the commands.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/model.h"
#include "base/check.h"
#include "fuzz.h"

#define SPACE 1
#define OWNERS 3

struct worlds {
    struct fuzz_input in;
    struct model m[2];
    uint64_t told[2]; /* digests of the deltas, summed */
    struct aoi_settings set;
    float origin, unit;
};

/* Does the same to the space in both worlds; m and s are each one's in turn. */
#define BOTH(w, call)                                                 \
    do {                                                              \
        int rc[2];                                                    \
        for (int k = 0; k < 2; k++) {                                 \
            struct model *m = &(w)->m[k];                             \
            struct model_space *s = model_space(m, SPACE);            \
            (void)s;                                                  \
            rc[k] = (call);                                           \
        }                                                             \
        CHECK(rc[0] == rc[1] && (w)->told[0] == (w)->told[1]);        \
        if (getenv("AOI_TRACE") != NULL) puts(#call), fflush(stdout); \
    } while (0)

static struct model_space *first(struct worlds *w)
{
    return model_space(&w->m[0], SPACE);
}

static void on_delta(void *ctx, const struct aoi_delta *d)
{
    *(uint64_t *)ctx += model_digest(d);
}

/* ------------------------------------------------------------------------------------------------------------- arguments */

/* A lattice on which ties, cell edges and roundings are common. */
static float coordinate(struct worlds *w)
{
    static const float special[] = {0, -0.0f, 1e-40f, NAN, INFINITY, AOI_COORD_MAX, -AOI_COORD_MAX, 16777218.0f, 3e38f, -3e38f};
    uint32_t b = fuzz_byte(&w->in), k = b & 63;
    float at = w->origin + (float)((int)k - 32) * w->unit;
    switch (b >> 6) {
    case 2: return nextafterf(at, k & 1 ? INFINITY : -INFINITY);
    case 3: return k < sizeof special / sizeof *special ? special[k] : (float)(w->origin + w->set.cell_size * ((int)k - 32) / 4);
    default: return at;
    }
}

static void position(struct worlds *w, float pos[3])
{
    for (uint32_t a = 0; a < 3; a++) pos[a] = a < w->set.dimensions ? coordinate(w) : 0;
}

static void box(struct worlds *w, float min[3], float max[3])
{
    position(w, min);
    position(w, max);
    for (uint32_t a = 0; a < 3; a++) {
        if (fpclassify(min[a]) == FP_SUBNORMAL) min[a] = 0;
        if (fpclassify(max[a]) == FP_SUBNORMAL) max[a] = 0;
        if (!(min[a] > max[a])) continue;
        float t = min[a];
        min[a] = max[a];
        max[a] = t;
    }
}

static float length(struct worlds *w)
{
    static const float special[] = {0.1f, 300, 100000, AOI_COORD_MAX, 3e38f, -1, NAN, INFINITY, 1e-40f, -0.0f};
    uint32_t b = fuzz_byte(&w->in);
    return b < 240 ? w->unit * (float)(b % 48) / 4 : special[(b - 240) % (sizeof special / sizeof *special)];
}

static uint64_t id(struct worlds *w, uint32_t n)
{
    uint32_t b = fuzz_byte(&w->in);
    return b == 255 ? UINT64_MAX : b % n;
}

static uint64_t entity(struct worlds *w)
{
    return id(w, 25);
}

static uint64_t player(struct worlds *w)
{
    return id(w, 7);
}

/* Mostly whose it is. */
static aoi_owner owner(struct worlds *w, aoi_owner right)
{
    uint32_t b = fuzz_byte(&w->in);
    return b < 192 && right != 0 ? right : 1 + b % OWNERS;
}

static aoi_owner entity_owner(struct worlds *w, uint64_t e)
{
    const struct model_entity *found = model_entity(first(w), e);
    return owner(w, found != NULL ? found->owner : 0);
}

static aoi_owner player_owner(struct worlds *w, uint64_t p)
{
    const struct model_player *found = model_player(first(w), p);
    return owner(w, found != NULL ? found->owner : 0);
}

static uint32_t layers(struct worlds *w)
{
    static const uint32_t some[] = {1, 2, 3, 0, 0x80000000u, UINT32_MAX};
    return some[fuzz_below(&w->in, 6)];
}

static const char text[] = "................................................"; /* payloads and messages are so much of it */

static struct aoi_player_settings player_settings(struct worlds *w)
{
    uint32_t b = fuzz_byte(&w->in);
    struct aoi_player_settings set = {.presence_only = b & 1, .take_over = b & 2, .keep = b & 64};
    if (b & 4) set.mask = layers(w);
    if (b & 8) set.max_view = fuzz_below(&w->in, 9);
    if (b & 16) set.leave_margin = length(w);
    if (b & 32) set.max_enter_per_flush = fuzz_below(&w->in, 5);
    return set;
}

static struct aoi_tiers tiers(struct worlds *w)
{
    struct aoi_tiers t = {.n = fuzz_below(&w->in, 3), .beyond = 1 + fuzz_below(&w->in, 4)};
    for (uint32_t i = 0; i < t.n; i++) {
        t.at[i].distance = (float)(4 * i + fuzz_below(&w->in, 4)) * w->unit;
        t.at[i].period = 1 + fuzz_below(&w->in, 4);
    }
    return t;
}

/* ------------------------------------------------------------------------------------------------------------- commands */

static void do_add(struct worlds *w)
{
    uint32_t b = fuzz_byte(&w->in);
    struct aoi_entity e = {.id = entity(w), .layers = b & 1 ? layers(w) : 1, .radius = length(w), .payload = text, .report_observed = b & 2};
    position(w, e.pos);
    if (b & 4) e.appeal = length(w);
    if (b & 8) e.priority = fuzz_below(&w->in, 3);
    if (b & 16) e.payload_len = fuzz_below(&w->in, 48);
    if (b & 32) e.extra = fuzz_byte(&w->in);
    aoi_owner o = entity_owner(w, e.id);
    BOTH(w, model_entity_add(m, s, o, b & 64 ? AOI_ADD_UPSERT : b & 128 ? AOI_ADD_ADOPT : AOI_ADD_NEW, &e));
}

static void do_move(struct worlds *w)
{
    uint64_t e = entity(w);
    aoi_owner o = entity_owner(w, e);
    float pos[3];
    position(w, pos);
    uint32_t b = fuzz_byte(&w->in), extra = b >> 1;
    BOTH(w, model_entity_move(m, s, o, e, pos, b & 1 ? &extra : NULL));
}

/* A crowd's worth of moves for a few bytes: every entity of an owner steps along an axis. */
static void do_move_all(struct worlds *w)
{
    uint32_t b = fuzz_byte(&w->in), axis = b % w->set.dimensions;
    float step = (float)((int)(b >> 4) - 8) * w->unit / 2;
    for (uint32_t i = 0; i < first(w)->entities.n; i++) {
        const struct model_entity e = first(w)->entities.at[i];
        float pos[3] = {e.v.pos[0], e.v.pos[1], e.v.pos[2]};
        pos[axis] += step;
        BOTH(w, model_entity_move(m, s, e.owner, e.id, pos, NULL));
    }
}

static void do_remove(struct worlds *w)
{
    uint64_t e = entity(w);
    aoi_owner o = entity_owner(w, e);
    BOTH(w, model_entity_remove(m, s, o, e));
}

static void do_state(struct worlds *w)
{
    uint64_t e = entity(w);
    aoi_owner o = entity_owner(w, e);
    uint32_t what = fuzz_below(&w->in, 5), some = what < 2 ? layers(w) : fuzz_below(&w->in, 48);
    float much = length(w);
    switch (what) {
    case 0:
    case 1: BOTH(w, model_entity_set_layers(m, s, o, e, some)); break;
    case 2: BOTH(w, model_entity_set_payload(m, s, o, e, text, some)); break;
    case 3: BOTH(w, model_entity_set_appeal(m, s, o, e, much)); break;
    default: BOTH(w, model_entity_set_priority(m, s, o, e, some % 3)); break;
    }
}

static void do_radius(struct worlds *w)
{
    uint64_t e = entity(w);
    aoi_owner o = entity_owner(w, e);
    float radius = length(w);
    BOTH(w, model_entity_set_radius(m, s, o, e, radius));
}

static void do_subscribe(struct worlds *w)
{
    uint64_t p = player(w), e = entity(w);
    aoi_owner o = player_owner(w, p);
    bool self = fuzz_byte(&w->in) & 1;
    BOTH(w, model_subscribe(m, s, o, p, e, self));
}

static void do_unsubscribe(struct worlds *w)
{
    uint64_t p = player(w), e = entity(w);
    aoi_owner o = player_owner(w, p);
    BOTH(w, model_unsubscribe(m, s, o, p, e));
}

static void do_viewport(struct worlds *w)
{
    uint64_t p = player(w);
    aoi_owner o = player_owner(w, p);
    float min[3], max[3];
    box(w, min, max);
    BOTH(w, model_viewport_set(m, s, o, p, min, max));
}

static void do_player(struct worlds *w)
{
    uint64_t p = player(w);
    aoi_owner o = player_owner(w, p);
    struct aoi_player_settings set;
    switch (fuzz_below(&w->in, 8)) {
    case 0: BOTH(w, model_player_close(m, s, o, p)); break;
    case 1: BOTH(w, model_resync(m, s, o, p)); break;
    case 2: BOTH(w, model_viewport_clear(m, s, o, p)); break;
    default:
        set = player_settings(w);
        BOTH(w, model_player_settings(m, s, o, p, &set));
        break;
    }
}

static void do_override(struct worlds *w)
{
    uint64_t p = player(w), e = entity(w);
    aoi_owner o = player_owner(w, p);
    enum aoi_override kind = (enum aoi_override)fuzz_below(&w->in, 5);
    BOTH(w, model_player_override(m, s, o, p, e, kind));
}

static void do_release(struct worlds *w)
{
    uint32_t b = fuzz_byte(&w->in);
    uint64_t p = player(w), e = entity(w);
    aoi_owner to = b % (OWNERS + 1);
    aoi_owner o = b & 128 ? player_owner(w, p) : entity_owner(w, e);
    if (b & 128) {
        BOTH(w, model_player_release(m, s, o, p, to));
    } else {
        BOTH(w, model_entity_release(m, s, o, e, to));
    }
}

static void do_publish(struct worlds *w)
{
    uint32_t b = fuzz_byte(&w->in), len = b % 48;
    if (b & 128) {
        float min[3], max[3];
        box(w, min, max);
        BOTH(w, model_publish_at(m, s, min, b & 64 ? min : max, text, len));
    } else {
        uint64_t e = entity(w);
        aoi_owner o = entity_owner(w, e);
        BOTH(w, model_publish_from(m, s, o, e, text, len));
    }
}

static void do_set(struct worlds *w)
{
    struct aoi_space_change change = {0};
    switch (fuzz_below(&w->in, 5)) {
    case 0: change.has_leave_margin = true, change.leave_margin = length(w); break;
    case 1: change.has_min_stay_ms = true, change.min_stay_ms = fuzz_byte(&w->in); break;
    case 2: change.has_max_view = true, change.max_view = fuzz_below(&w->in, 9); break;
    case 3: change.has_max_enter_per_flush = true, change.max_enter_per_flush = fuzz_below(&w->in, 5); break;
    default: change.has_tiers = true, change.tiers = tiers(w); break;
    }
    BOTH(w, model_space_set(m, s, 1, true, &change));
}

static void do_query(struct worlds *w)
{
    float min[3], max[3], much = length(w);
    uint32_t what = fuzz_below(&w->in, 8), bits = layers(w), n = 1 + fuzz_below(&w->in, 9);
    uint64_t e = entity(w), p = player(w);
    struct aoi_why why;
    box(w, min, max);
    if (fpclassify(much) == FP_SUBNORMAL) much = 0;
    switch (what) {
    case 0: BOTH(w, model_query_box(m, s, min, max, bits, n)); break;
    case 1: BOTH(w, model_query_radius(m, s, min, much, bits, n)); break;
    case 2: BOTH(w, model_query_count(m, s, min, max, bits)); break;
    case 3: BOTH(w, model_query_view(m, s, p, n)); break;
    case 4: BOTH(w, model_query_nearest(m, s, min, much, bits, n)); break;
    case 5: BOTH(w, model_query_observers(m, s, e, n)); break;
    case 6: BOTH(w, model_query_density(m, s, min, max, bits, n, 1 + n / 2)); break;
    default: BOTH(w, model_query_why(m, s, p, e, &why)); break;
    }
}

static void do_end(struct worlds *w)
{
    uint32_t b = fuzz_byte(&w->in);
    if (b & 1) {
        BOTH(w, (model_owner_end(m, 1 + (b >> 2) % OWNERS, b & 2), 0));
    } else {
        BOTH(w, model_space_destroy(m, 1, true, SPACE));
    }
}

static void do_flush(struct worlds *w)
{
    uint32_t b = fuzz_byte(&w->in), ms = fuzz_byte(&w->in);
    for (int k = 0; k < 2; k++) {
        for (aoi_owner o = 1; o <= OWNERS; o++) {
            w->m[k].room[o] = b >> o & 1 ? 0 : MODEL_NO_LIMIT; /* with a little room the order of enters would matter */
            w->m[k].deaf[o] = b >> (o + 3) & 1;
        }
        w->m[k].now_ms += ms;
        w->m[k].final = b == 255;
    }
    BOTH(w, (model_flush(m, s), 0));
    for (int k = 0; k < 2; k++) aoi_validate(w->m[k].world);
}

static void do_converge(struct worlds *w)
{
    BOTH(w, (model_converge(m, s), 0));
}

static void (*const commands[])(struct worlds *w) = {
    do_add,    do_add,      do_move,    do_move,    do_move_all, do_remove, do_state, do_radius, do_subscribe, do_unsubscribe, do_viewport,
    do_player, do_override, do_release, do_publish, do_set,      do_query,  do_flush, do_flush,  do_converge,  do_end,
};

/* ------------------------------------------------------------------------------------------------------------- a run */

static void worlds_init(struct worlds *w)
{
    static const float origins[] = {0, 9984, -8000000, 16777200}, units[] = {1, 0.1f, 4, 0.5f};
    static const double cells[] = {1, 32, 7.3, 1.0 / 64};
    uint32_t b = fuzz_byte(&w->in), c = fuzz_byte(&w->in);
    w->origin = origins[b & 3];
    w->unit = units[b >> 2 & 3];
    struct aoi_settings *set = &w->set;
    *set = (struct aoi_settings){.dimensions = 2 + (b >> 4 & 1), .shape = 1 + (b >> 5) % 3, .cell_size = cells[c & 3], .flush_ms = 50};
    set->cell_range = 1 + (c >> 2 & 1);
    set->extra = c >> 3 & 1;
    set->bounded = c >> 4 & 1;
    for (uint32_t a = 0; a < 3; a++) {
        set->min[a] = fmaxf(w->origin - 12 * w->unit, -AOI_COORD_MAX);
        set->max[a] = fminf(w->origin + 12 * w->unit, AOI_COORD_MAX);
    }
    if (c & 32) set->leave_margin = fabsf(w->unit * (float)fuzz_below(&w->in, 8));
    if (c & 64) set->min_stay_ms = fuzz_byte(&w->in);
    if (c & 128) set->tiers = tiers(w);
    struct aoi_limits limits = {.max_spaces = 1,
                                .max_entities = 20,
                                .max_players = 5,
                                .max_units = 6,
                                .max_payload = 40,
                                .max_overrides = 5,
                                .max_message = 40,
                                .max_messages = 6};
    for (int k = 0; k < 2; k++) {
        model_init(&w->m[k], &limits);
        w->m[k].on_delta = on_delta;
        w->m[k].on_delta_ctx = &w->told[k];
    }
}

static void create(struct worlds *w)
{
    for (int k = 0; k < 2; k++) {
        w->set.index = k == 0 ? AOI_INDEX_GRID : AOI_INDEX_CROSSLIST;
        CHECK(model_space_create(&w->m[k], 1, SPACE, &w->set, false) == AOI_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct worlds *w = mem_zalloc(sizeof *w);
    w->in = (struct fuzz_input){data, size};
    worlds_init(w);
    while (w->in.left > 0) {
        if (first(w) == NULL) create(w);
        commands[fuzz_below(&w->in, sizeof commands / sizeof *commands)](w);
    }
    if (first(w) != NULL) do_converge(w);
    for (int k = 0; k < 2; k++) {
        aoi_validate(w->m[k].world);
        model_clear(&w->m[k]);
    }
    free(w);
    return 0;
}
