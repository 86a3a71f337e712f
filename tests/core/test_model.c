/* test_model.c: random commands on every kind of space; each delta and each reply is judged by the brute-force model.
 *
 * AOI_SEED=n replays a run, AOI_COMMANDS=n sets how many commands there are over all, AOI_KIND=k runs one kind of space alone. A failure prints the seed, the
 * kind, the step and the last commands, and aborts.
 */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/kernel.h"
#include "core/space.h"
#include "model.h"

#define KINDS 48                /* index x dimensions x shape x extra x bounded */
#define ALL_KINDS (2 * KINDS)   /* and the same again, heavy: hundreds have appeal, and hundreds move between two flushes */
#define COMMANDS_A_WINDOW 25000 /* of all kinds of space together, for a window of a heavy one: so that these take a quarter of the time */
#define TRACE 40

#ifdef __SANITIZE_ADDRESS__
/* So that a sanitizer's finding comes with the trace as well. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "abort_on_error=1:handle_abort=0";
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "abort_on_error=1:print_stacktrace=1";
}
#endif

struct run {
    struct model m;
    uint64_t seed, rng;
    unsigned kind, commands, step;
    bool lockstep;                      /* only rooms of which the outcome does not depend on the order of enters */
    bool heavy, calm;                   /* calm: little but moves, and views are covers (cover.h) */
    const struct aoi__kernels *kernels; /* by which its flushes are made */
    uint32_t kernels_nth, high[2];      /* of a heavy world: high halves of its ids by turns, unless both are 0 */
    uint32_t appealing;                 /* so many of 100 have appeal */
    struct aoi_settings set;
    float origin[3], unit;
    uint32_t ids, target, players; /* entity ids in use; about how many entities live; player ids in use */
    char trace[TRACE][200];
    uint64_t *log; /* lockstep: a hash for every flush and player, see on_delta() */
    uint32_t log_n, log_cap;
    uint64_t flush_hash;
};

static struct run *current; /* for the SIGABRT handler alone */

/* ------------------------------------------------------------------------------------------------------------- chance */

static uint64_t next(struct run *r)
{
    uint64_t z = r->rng += 0x9E3779B97F4A7C15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint32_t below(struct run *r, uint32_t n)
{
    return (uint32_t)((next(r) >> 32) * n >> 32);
}

static bool percent(struct run *r, uint32_t p)
{
    return below(r, 100) < p;
}

__attribute__((format(printf, 2, 3))) static void trace(struct run *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *line = r->trace[r->step % TRACE];
    int n = snprintf(line, sizeof r->trace[0], "%u: ", r->step);
    vsnprintf(line + n, sizeof r->trace[0] - (size_t)n, fmt, args);
    va_end(args);
}

static void on_abort(int signal_number)
{
    const struct run *r = current;
    if (r != NULL) {
        const struct aoi_settings *s = &r->set;
        fprintf(
            stderr,
            "\nAOI_SEED=%llu AOI_KIND=%u step %u; space: %uD index %u shape %u cell %g range %u bounded %d extra %d, origin %g, unit %g; kernels %u, "
            "high halves %x %x\n",
            (unsigned long long)r->seed, r->kind, r->step, s->dimensions, s->index, s->shape, s->cell_size, s->cell_range, s->bounded, s->extra,
            (double)r->origin[0], (double)r->unit, r->kernels_nth, r->high[0], r->high[1]);
        for (unsigned i = r->step < TRACE ? 0 : r->step - TRACE + 1; i <= r->step; i++) fprintf(stderr, "  %s\n", r->trace[i % TRACE]);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* ------------------------------------------------------------------------------------------------------------- what a run is made of */

/* Coordinates are such that ties, cell edges and roundings are common. */
static float coordinate(struct run *r, uint32_t axis)
{
    float u = r->unit, o = r->origin[axis];
    int32_t k = (int32_t)below(r, 33) - 16;
    switch (below(r, 16)) {
    case 0: return nextafterf(o + (float)k * u, percent(r, 50) ? INFINITY : -INFINITY);
    case 1: return o + (float)(r->set.cell_size * k / 4);
    case 2: return nextafterf(o + (float)(r->set.cell_size * (k / 4)), percent(r, 50) ? INFINITY : -INFINITY);
    case 3: return percent(r, 60) ? o : percent(r, 50) ? -0.0f : 1e-40f;
    case 4: return o + u * 16 * ((float)below(r, 1u << 20) / (1u << 19) - 1);
    case 5: return r->set.bounded ? (percent(r, 50) ? r->set.min[axis] : r->set.max[axis]) : o + (float)k * u / 7;
    case 6: return percent(r, 20) ? (percent(r, 50) ? AOI_COORD_MAX : -AOI_COORD_MAX) : o - (float)k * u / 3;
    default: return o + (float)k * u;
    }
}

static float bad_coordinate(struct run *r)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 16777218.0f, -16777218.0f};
    return bad[below(r, sizeof bad / sizeof *bad)];
}

static void position(struct run *r, float pos[3])
{
    for (uint32_t a = 0; a < 3; a++) pos[a] = coordinate(r, a);
    if (percent(r, 2)) pos[below(r, 3)] = bad_coordinate(r); /* z too: a 2D space ignores it */
}

static float radius(struct run *r)
{
    static const float special[] = {0, -0.0f, 1e-40f, 0.1f, 300, 511, 513, 100000, AOI_COORD_MAX, 3e38f, -1, NAN, INFINITY};
    if (percent(r, 12)) return special[below(r, sizeof special / sizeof *special)];
    float whole = r->unit * (float)below(r, 9);
    return percent(r, 30) ? whole + r->unit / 10 : whole;
}

static float margin(struct run *r)
{
    return percent(r, 10) ? 1000000 : r->unit * (float)below(r, 5) * (percent(r, 30) ? 0.1f : 1);
}

static uint32_t layers(struct run *r)
{
    static const uint32_t some[] = {1, 1, 1, 1, 2, 3, 6, 0x80000000u, UINT32_MAX, 0};
    return some[below(r, sizeof some / sizeof *some)];
}

static uint64_t entity_id(struct run *r)
{
    if (percent(r, 1)) return 0;
    uint32_t k = below(r, r->ids);
    if ((r->high[0] | r->high[1]) != 0) return (uint64_t)r->high[k % 2] << 32 | k;
    return k < 3 ? UINT64_MAX - k : k < 5 ? ((uint64_t)1 << 32) + k : k;
}

static uint64_t player_id(struct run *r)
{
    if (percent(r, 1)) return 0;
    uint32_t k = below(r, r->players + 1);
    return k == 0 ? UINT64_MAX : k;
}

/* Who does something is not away. */
static aoi_owner acting(struct run *r, aoi_owner owner)
{
    for (int i = 0; i < 3 && r->m.away[owner]; i++) {
        if (percent(r, 20) || i == 2) {
            trace(r, "back o%u", owner);
            model_owner_away(&r->m, owner, false);
        } else {
            owner = owner % 3 + 1;
        }
    }
    return owner;
}

static aoi_owner some_owner(struct run *r)
{
    return acting(r, 1 + below(r, 3));
}

static aoi_owner owner_of(struct run *r, const struct model_space *s, uint64_t entity)
{
    const struct model_entity *e = model_entity(s, entity);
    return e != NULL && percent(r, 92) ? acting(r, e->owner) : some_owner(r);
}

static aoi_owner player_owner(struct run *r, const struct model_space *s, uint64_t player)
{
    const struct model_player *p = model_player(s, player);
    return p != NULL && percent(r, 92) ? acting(r, p->owner) : some_owner(r);
}

/* Mostly one that exists. */
static uint64_t known_entity(struct run *r, const struct model_space *s)
{
    return s->entities.n > 0 && percent(r, 90) ? s->entities.at[below(r, s->entities.n)].id : entity_id(r);
}

static uint32_t payload(struct run *r, uint8_t bytes[64])
{
    uint32_t len = percent(r, 40) ? 0 : percent(r, 5) ? 41 + below(r, 20) : below(r, 41);
    uint8_t fill = (uint8_t)below(r, 3);
    memset(bytes, fill, 64);
    return percent(r, 30) && len > 0 ? 1 : len;
}

/* ------------------------------------------------------------------------------------------------------------- commands */

static void do_add(struct run *r, struct model_space *s)
{
    uint8_t bytes[64];
    struct aoi_entity e = {.id = entity_id(r), .extra = below(r, 4), .radius = radius(r), .layers = layers(r), .payload = bytes};
    e.appeal = percent(r, r->appealing) ? radius(r) : 0;
    e.priority = below(r, 3) * below(r, 2);
    e.report_observed = percent(r, 40);
    if (s->entities.n >= r->target && percent(r, 80)) e.id = known_entity(r, s); /* an upsert, or a refusal */
    position(r, e.pos);
    e.payload_len = payload(r, bytes);
    enum aoi_add_mode mode = percent(r, 2) ? (enum aoi_add_mode)(below(r, 2) * 4) : percent(r, 50) ? AOI_ADD_NEW : AOI_ADD_UPSERT;
    aoi_owner owner = owner_of(r, s, e.id);
    trace(r, "add s%llu o%u mode %d id %llu (%.9g %.9g %.9g) extra %u radius %.9g layers %x payload %u x %d appeal %.9g priority %u report %d",
          (unsigned long long)s->id, owner, mode, (unsigned long long)e.id, (double)e.pos[0], (double)e.pos[1], (double)e.pos[2], e.extra,
          (double)e.radius, e.layers, e.payload_len, bytes[0], (double)e.appeal, e.priority, e.report_observed);
    model_entity_add(&r->m, s, owner, mode, &e);
}

static void move(struct run *r, struct model_space *s, uint64_t id)
{
    aoi_owner owner = owner_of(r, s, id);
    float pos[3];
    position(r, pos);
    const struct model_entity *e = model_entity(s, id);
    if (e != NULL && percent(r, 60)) { /* a step, or none, on one or more axes */
        memcpy(pos, e->v.pos, sizeof pos);
        for (uint32_t a = 0; a < 3; a++) pos[a] += (float)((int32_t)below(r, 3) - 1) * r->unit * (percent(r, 30) ? 0.1f : 1);
    }
    uint32_t extra = below(r, 4);
    bool with = percent(r, 50);
    trace(r, "move s%llu o%u %llu (%.9g %.9g %.9g) extra %d", (unsigned long long)s->id, owner, (unsigned long long)id, (double)pos[0],
          (double)pos[1], (double)pos[2], with ? (int)extra : -1);
    model_entity_move(&r->m, s, owner, id, pos, with ? &extra : NULL);
}

static void do_move(struct run *r, struct model_space *s)
{
    move(r, s, known_entity(r, s));
}

/* Away and back within the window: nobody is to hear of it. */
static void do_there_and_back(struct run *r, struct model_space *s)
{
    if (s->entities.n == 0) return;
    const struct model_entity e = s->entities.at[below(r, s->entities.n)];
    float away[3];
    position(r, away);
    uint32_t extra = e.v.extra + 1;
    trace(r, "there and back s%llu o%u %llu (%.9g %.9g %.9g)", (unsigned long long)s->id, e.owner, (unsigned long long)e.id, (double)away[0],
          (double)away[1], (double)away[2]);
    model_entity_move(&r->m, s, e.owner, e.id, away, &extra);
    model_entity_set_layers(&r->m, s, e.owner, e.id, e.v.layers ^ 1);
    model_entity_set_layers(&r->m, s, e.owner, e.id, e.v.layers);
    model_entity_move(&r->m, s, e.owner, e.id, e.v.pos, &e.v.extra);
}

static void do_remove(struct run *r, struct model_space *s)
{
    uint64_t id = known_entity(r, s);
    aoi_owner owner = owner_of(r, s, id);
    const struct model_entity *e = model_entity(s, id);
    struct aoi_entity again = {.id = id, .layers = 1};
    if (e != NULL) memcpy(again.pos, e->v.pos, sizeof again.pos);
    trace(r, "remove s%llu o%u %llu", (unsigned long long)s->id, owner, (unsigned long long)id);
    if (model_entity_remove(&r->m, s, owner, id) != AOI_OK || percent(r, 60)) return;
    if (percent(r, 50)) position(r, again.pos);
    again.radius = radius(r);
    trace(r, "remove s%llu o%u %llu and add it again at (%.9g %.9g %.9g) radius %.9g", (unsigned long long)s->id, owner, (unsigned long long)id,
          (double)again.pos[0], (double)again.pos[1], (double)again.pos[2], (double)again.radius);
    model_entity_add(&r->m, s, owner, percent(r, 50) ? AOI_ADD_NEW : AOI_ADD_UPSERT, &again);
}

static void do_entity_state(struct run *r, struct model_space *s)
{
    uint64_t id = known_entity(r, s);
    aoi_owner owner = owner_of(r, s, id);
    uint32_t what = below(r, 15);
    if (what >= 13) {
        uint32_t priority = below(r, 3);
        trace(r, "priority s%llu o%u %llu %u", (unsigned long long)s->id, owner, (unsigned long long)id, priority);
        model_entity_set_priority(&r->m, s, owner, id, priority);
    } else if (what >= 10) {
        float f = percent(r, 30) ? 0 : radius(r);
        trace(r, "appeal s%llu o%u %llu %.9g", (unsigned long long)s->id, owner, (unsigned long long)id, (double)f);
        model_entity_set_appeal(&r->m, s, owner, id, f);
    } else if (what < 4) {
        float f = radius(r);
        trace(r, "radius s%llu o%u %llu %.9g", (unsigned long long)s->id, owner, (unsigned long long)id, (double)f);
        model_entity_set_radius(&r->m, s, owner, id, f);
    } else if (what < 7) {
        uint32_t bits = layers(r);
        trace(r, "layers s%llu o%u %llu %x", (unsigned long long)s->id, owner, (unsigned long long)id, bits);
        model_entity_set_layers(&r->m, s, owner, id, bits);
    } else {
        uint8_t bytes[64];
        uint32_t len = payload(r, bytes);
        trace(r, "payload s%llu o%u %llu %u x %d", (unsigned long long)s->id, owner, (unsigned long long)id, len, bytes[0]);
        model_entity_set_payload(&r->m, s, owner, id, bytes, len);
    }
}

static void do_subscription(struct run *r, struct model_space *s)
{
    uint64_t player = player_id(r), entity = known_entity(r, s);
    aoi_owner owner = player_owner(r, s, player);
    bool self = percent(r, 35);
    if (percent(r, 65)) {
        trace(r, "subscribe s%llu o%u p%llu %llu self %d", (unsigned long long)s->id, owner, (unsigned long long)player, (unsigned long long)entity,
              self);
        model_subscribe(&r->m, s, owner, player, entity, self);
        return;
    }
    const struct model_player *p = model_player(s, player);
    if (p != NULL && p->units.n > 0 && percent(r, 80)) entity = p->units.at[below(r, p->units.n)].entity;
    trace(r, "unsubscribe s%llu o%u p%llu %llu", (unsigned long long)s->id, owner, (unsigned long long)player, (unsigned long long)entity);
    model_unsubscribe(&r->m, s, owner, player, entity);
}

static void box(struct run *r, float min[3], float max[3])
{
    for (uint32_t a = 0; a < 3; a++) {
        min[a] = coordinate(r, a);
        max[a] = percent(r, 10) ? min[a] : coordinate(r, a);
        if (fabsf(min[a]) < 1e-30f) min[a] = 0;
        if (fabsf(max[a]) < 1e-30f) max[a] = 0;
        if (min[a] > max[a] && !percent(r, 3)) {
            float t = min[a];
            min[a] = max[a];
            max[a] = t;
        }
    }
    uint32_t a = below(r, 3);
    if (percent(r, 5)) max[a] = percent(r, 50) ? 3e38f : bad_coordinate(r);
}

static void do_viewport(struct run *r, struct model_space *s)
{
    uint64_t player = player_id(r);
    aoi_owner owner = player_owner(r, s, player);
    if (percent(r, 25)) {
        trace(r, "viewport_clear s%llu o%u p%llu", (unsigned long long)s->id, owner, (unsigned long long)player);
        model_viewport_clear(&r->m, s, owner, player);
        return;
    }
    float min[3], max[3];
    box(r, min, max);
    trace(r, "viewport s%llu o%u p%llu (%.9g %.9g %.9g) to (%.9g %.9g %.9g)", (unsigned long long)s->id, owner, (unsigned long long)player,
          (double)min[0], (double)min[1], (double)min[2], (double)max[0], (double)max[1], (double)max[2]);
    model_viewport_set(&r->m, s, owner, player, min, max);
}

static struct aoi_player_settings player_settings(struct run *r)
{
    struct aoi_player_settings set = {
        .mask = percent(r, 50) ? 0 : layers(r), .presence_only = percent(r, 20), .take_over = percent(r, 30), .keep = percent(r, 20)};
    if (percent(r, 25)) set.max_view = percent(r, 3) ? AOI_MAX_VIEW + 1 : 1 + below(r, 12);
    if (percent(r, 20)) set.max_enter_per_flush = 1 + below(r, 5);
    if (percent(r, 25)) set.leave_margin = percent(r, 3) ? -1 : margin(r);
    return set;
}

static void do_player(struct run *r, struct model_space *s)
{
    uint64_t player = player_id(r);
    aoi_owner owner = player_owner(r, s, player);
    uint32_t what = below(r, 10);
    if (what < 5) {
        struct aoi_player_settings set = player_settings(r);
        trace(r, "open s%llu o%u p%llu mask %x max_view %u margin %.9g max_enter %u presence %d take_over %d", (unsigned long long)s->id, owner,
              (unsigned long long)player, set.mask, set.max_view, (double)set.leave_margin, set.max_enter_per_flush, set.presence_only,
              set.take_over);
        model_player_settings(&r->m, s, owner, player, &set);
        return;
    }
    trace(r, "%s s%llu o%u p%llu", what < 7 ? "close" : "resync", (unsigned long long)s->id, owner, (unsigned long long)player);
    if (what < 7) {
        model_player_close(&r->m, s, owner, player);
    } else {
        model_resync(&r->m, s, owner, player);
    }
}

static void do_override(struct run *r, struct model_space *s)
{
    uint64_t player = player_id(r), entity = percent(r, 70) ? known_entity(r, s) : entity_id(r);
    aoi_owner owner = player_owner(r, s, player);
    enum aoi_override kind = (enum aoi_override)(percent(r, 2) ? below(r, 2) * 4 : 1 + below(r, 3));
    const struct model_player *p = model_player(s, player);
    if (p != NULL && p->overrides.n > 0 && percent(r, 40)) entity = p->overrides.at[below(r, p->overrides.n)].entity;
    trace(r, "override s%llu o%u p%llu %llu kind %d", (unsigned long long)s->id, owner, (unsigned long long)player, (unsigned long long)entity, kind);
    model_player_override(&r->m, s, owner, player, entity, kind);
}

/* From one owner to another. */
static void do_hand_over(struct run *r, struct model_space *s)
{
    uint64_t id = known_entity(r, s), player = player_id(r);
    aoi_owner owner = owner_of(r, s, id), to = below(r, 4), taker = some_owner(r);
    uint32_t what = below(r, 8);
    trace(r, "hand over %u s%llu o%u %llu p%llu to %u, taker %u", what, (unsigned long long)s->id, owner, (unsigned long long)id,
          (unsigned long long)player, to, taker);
    if (what < 2) {
        model_entity_release(&r->m, s, owner, id, to);
    } else if (what < 5) {
        struct aoi_entity e = {.id = id, .pos = {NAN, 0, 0}, .radius = -1};
        model_entity_add(&r->m, s, taker, AOI_ADD_ADOPT, &e);
    } else if (what < 6) {
        model_player_release(&r->m, s, player_owner(r, s, player), player, to);
    } else {
        struct aoi_player_settings set = player_settings(r);
        set.take_over = true;
        model_player_settings(&r->m, s, taker, player, &set);
    }
}

static void do_publish(struct run *r, struct model_space *s)
{
    char text[80];
    uint64_t id = known_entity(r, s);
    aoi_owner owner = owner_of(r, s, id);
    uint32_t len = percent(r, 2) ? 70 : below(r, 30), kind = below(r, 3);
    snprintf(text, sizeof text, "%-75llu", (unsigned long long)next(r) % 1000);
    float min[3], max[3];
    box(r, min, max);
    if (kind == 1) memcpy(max, min, sizeof max);
    trace(r, "publish kind %u s%llu o%u %llu (%.9g %.9g %.9g) to (%.9g %.9g %.9g) %u bytes", kind, (unsigned long long)s->id, owner,
          (unsigned long long)id, (double)min[0], (double)min[1], (double)min[2], (double)max[0], (double)max[1], (double)max[2], len);
    if (kind == 0) {
        model_publish_from(&r->m, s, owner, id, text, len);
    } else {
        model_publish_at(&r->m, s, min, max, text, len);
    }
}

static void do_query(struct run *r, struct model_space *s)
{
    float min[3], max[3];
    box(r, min, max);
    uint32_t bits = percent(r, 50) ? 0 : layers(r);
    size_t limit = percent(r, 50) ? 10000 : 1 + below(r, 7);
    trace(r, "queries s%llu (%.9g %.9g %.9g) to (%.9g %.9g %.9g) layers %x limit %zu", (unsigned long long)s->id, (double)min[0], (double)min[1],
          (double)min[2], (double)max[0], (double)max[1], (double)max[2], bits, limit);
    struct aoi_why why;
    float distance = percent(r, 40) ? 0 : radius(r);
    if (distance != 0 && distance < 1e-30f && distance > -1e-30f) distance = 0;
    uint32_t columns = percent(r, 3) ? 257 * below(r, 2) : 1 + below(r, 16);
    switch (below(r, 12)) {
    case 5: model_query_nearest(&r->m, s, min, distance, bits, percent(r, 2) ? 0 : 1 + below(r, 12)); break;
    case 6: model_query_observers(&r->m, s, known_entity(r, s), limit); break;
    case 7: model_query_density(&r->m, s, min, max, bits, columns, 1 + below(r, 16)); break;
    case 8:
    case 9:
    case 10:
    case 11: model_query_why(&r->m, s, player_id(r), known_entity(r, s), &why); break;
    case 0: model_query_box(&r->m, s, min, max, bits, limit); break;
    case 1: model_query_radius(&r->m, s, min, radius(r), bits, limit); break;
    case 2: model_query_count(&r->m, s, min, max, bits); break;
    case 3: model_query_view(&r->m, s, player_id(r), limit); break;
    default: model_entity_get(&r->m, s, known_entity(r, s)); break;
    }
}

/* ------------------------------------------------------------------------------------------------------------- flushes */

/* Room for each owner: none, a little, or any amount. settle: any amount for all. */
static void choose_rooms(struct run *r, bool settle)
{
    for (aoi_owner o = 0; o < MODEL_OWNERS; o++) {
        uint32_t dice = below(r, 100), bytes = 1 + below(r, 600);
        r->m.room[o] = MODEL_NO_LIMIT;
        r->m.drains[o] = false;
        if (settle || dice < 60) continue;
        r->m.room[o] = dice < 75 || r->lockstep ? 0 : bytes;
        r->m.drains[o] = r->m.room[o] > 0 && percent(r, 50);
    }
    for (aoi_owner o = 0; o < MODEL_OWNERS; o++) r->m.deaf[o] = percent(r, 10);
    r->m.now_ms += percent(r, 60) ? below(r, 50) : below(r, 500);
}

static void log_add(struct run *r, uint64_t hash)
{
    r->log = array__grow(r->log, &r->log_cap, (size_t)r->log_n + 1, sizeof *r->log);
    r->log[r->log_n++] = hash;
}

static void do_flush(struct run *r, struct model_space *s, bool settle)
{
    choose_rooms(r, settle);
    trace(r, "flush s%llu rooms %zd %zd %zd at %llu ms", (unsigned long long)s->id, (ssize_t)r->m.room[1], (ssize_t)r->m.room[2],
          (ssize_t)r->m.room[3], (unsigned long long)r->m.now_ms);
    r->flush_hash = s->id;
    r->m.final = percent(r, 3);
    aoi_space_find(r->m.world, s->id)->kernels = r->kernels;
    model_flush(&r->m, s);
    r->m.final = false;
    if (r->lockstep) log_add(r, r->flush_hash);
    if (r->target < 200 || percent(r, 5)) aoi_validate(r->m.world);
}

/* The order of players does not matter. */
static void on_delta(void *ctx, const struct aoi_delta *d)
{
    struct run *r = ctx;
    r->flush_hash += model_digest(d);
}

/* ------------------------------------------------------------------------------------------------------------- a run */

static const uint64_t space_ids[] = {1, 2, 77, UINT64_MAX};

static struct aoi_tiers some_tiers(struct run *r)
{
    struct aoi_tiers t = {.n = below(r, 4), .beyond = below(r, 5)};
    float distance = 0;
    for (uint32_t i = 0; i < t.n; i++) {
        t.at[i].distance = distance += r->unit * (float)below(r, 6) + (i > 0 ? 0.5f : 0);
        t.at[i].period = percent(r, 1) ? 0 : 1 + below(r, 4);
    }
    return t;
}

static struct aoi_settings kind_settings(struct run *r, unsigned kind)
{
    static const double cells[] = {1.0 / 64, 1, 4, 32, 7.3, 1000};
    struct aoi_settings set = {.index = 1 + kind % 2, .dimensions = 2 + kind / 2 % 2, .shape = 1 + kind / 4 % 3};
    set.extra = kind / 12 % 2;
    set.bounded = kind / 24 % 2;
    set.cell_size = cells[below(r, 6)];
    set.cell_range = 1 + below(r, 3);
    set.flush_ms = 50;
    set.persistent = percent(r, 20);
    if (percent(r, 50)) set.leave_margin = margin(r);
    if (percent(r, 40)) set.min_stay_ms = 1 + below(r, 300);
    if (percent(r, 40)) set.max_view = 1 + below(r, r->target / 2);
    if (percent(r, 40)) set.max_enter_per_flush = 1 + below(r, 6);
    do set.tiers = percent(r, 40) ? some_tiers(r) : (struct aoi_tiers){0};
    while (set.tiers.n > 0 && aoi_settings_check(&(struct aoi_settings){.tiers = set.tiers}, &(const char *){NULL}) != AOI_OK);
    for (uint32_t a = 0; a < 3; a++) {
        set.min[a] = r->origin[a] - 12 * r->unit;
        set.max[a] = r->origin[a] + 12 * r->unit;
        if (fabsf(set.min[a]) > AOI_COORD_MAX || fabsf(set.max[a]) > AOI_COORD_MAX) set.bounded = false;
    }
    return set;
}

static void do_space(struct run *r, struct model_space *s)
{
    uint64_t id = space_ids[below(r, 4)];
    aoi_owner owner = acting(r, below(r, 4));
    uint32_t what = below(r, 10);
    trace(r, "%s s%llu o%u", what < 5 ? "create" : what < 8 ? "destroy" : "end of", (unsigned long long)id, owner);
    if (what < 5) {
        struct aoi_settings set = percent(r, 50) ? *aoi_space_settings(aoi_space_find(r->m.world, s->id)) : kind_settings(r, below(r, KINDS));
        if (r->lockstep) set.index = r->set.index;
        model_space_create(&r->m, owner, percent(r, 10) ? 0 : id, &set, percent(r, 50));
    } else if (what < 8) {
        model_space_destroy(&r->m, some_owner(r), percent(r, 40), id);
    } else if (percent(r, 30)) {
        model_owner_end(&r->m, 1 + below(r, 3), percent(r, 50));
    }
}

static void do_away(struct run *r, struct model_space *s)
{
    (void)s;
    aoi_owner owner = 1 + below(r, 3);
    trace(r, "%s o%u", r->m.away[owner] ? "back" : "away", owner);
    model_owner_away(&r->m, owner, !r->m.away[owner]);
}

static void do_restart(struct run *r, struct model_space *s)
{
    (void)s;
    trace(r, "restart");
    model_restart(&r->m, below(r, 100));
}

static void do_set(struct run *r, struct model_space *s)
{
    aoi_owner owner = percent(r, 90) ? acting(r, s->owner) : some_owner(r);
    bool admin = s->owner == 0 || percent(r, 10);
    struct aoi_space_change change = {0};
    switch (below(r, 6)) {
    case 0:
        change.has_leave_margin = true;
        change.leave_margin = percent(r, 3) ? -1 : percent(r, 30) ? 0 : margin(r);
        break;
    case 1:
        change.has_min_stay_ms = true;
        change.min_stay_ms = percent(r, 40) ? 0 : below(r, 300);
        break;
    case 2:
        change.has_max_view = true;
        change.max_view = percent(r, 3) ? AOI_MAX_VIEW + 1 : percent(r, 40) ? 0 : 1 + below(r, r->target / 2);
        break;
    case 3:
        change.has_max_enter_per_flush = true;
        change.max_enter_per_flush = percent(r, 40) ? 0 : 1 + below(r, 6);
        break;
    case 4:
        change.has_tiers = true;
        if (percent(r, 60)) change.tiers = some_tiers(r);
        break;
    default:
        change.has_flush_ms = true;
        change.flush_ms = s->set.flush_ms;
        break;
    }
    char tiers[AOI_TIERS_TEXT] = "";
    if (change.has_tiers && change.tiers.n <= AOI_TIERS_MAX) aoi_tiers_print(&change.tiers, tiers);
    trace(r, "set s%llu o%u admin %d: margin %.9g (%d) min_stay %u (%d) max_view %u (%d) max_enter %u (%d) tiers %s (%d)", (unsigned long long)s->id,
          owner, admin, (double)change.leave_margin, change.has_leave_margin, change.min_stay_ms, change.has_min_stay_ms, change.max_view,
          change.has_max_view, change.max_enter_per_flush, change.has_max_enter_per_flush, tiers, change.has_tiers);
    model_space_set(&r->m, s, owner, admin, &change);
}

static void do_converge(struct run *r, struct model_space *s)
{
    trace(r, "converge s%llu", (unsigned long long)s->id);
    r->flush_hash = s->id;
    model_converge(&r->m, s);
    if (r->lockstep) log_add(r, r->flush_hash);
    aoi_validate(r->m.world);
}

/* Row i: commands, in so many of 1,000. */
static const struct {
    uint32_t weight;
    void (*run)(struct run *r, struct model_space *s);
} commands[] = {
    {380, do_move},    {80, do_add},    {40, do_remove},  {30, do_there_and_back}, {100, do_entity_state}, {100, do_subscription},
    {30, do_viewport}, {30, do_player}, {45, do_query},   {30, do_override},       {20, do_hand_over},     {35, do_publish},
    {8, do_set},       {2, do_space},   {2, do_converge}, {15, do_away},           {2, do_restart},
};

/* Some spaces have been there for years: the 32-bit serials of their flushes are about to wrap. (Then a player that is being skipped is told everything again,
 * and the indexes may differ in whom they find worth a look: not for lockstep.) */
static void age(struct run *r)
{
    struct aoi_space *space = aoi_space_find(r->m.world, 1);
    bool old = percent(r, 30);
    uint32_t left = below(r, 60);
    if (old && !r->lockstep) {
        space->serial = UINT32_MAX - left;
        space->mark_serial = UINT32_MAX - 5 * left;
    }
}

static void step(struct run *r)
{
    struct model_space *s = model_space(&r->m, 1);
    if (s == NULL || (percent(r, 20) && r->m.spaces.n > 1)) s = r->m.spaces.n > 0 ? r->m.spaces.at[below(r, r->m.spaces.n)] : NULL;
    if (model_space(&r->m, 1) == NULL && r->m.spaces.n < r->m.limits.max_spaces) {
        trace(r, "create s1");
        model_space_create(&r->m, below(r, 3), 1, &r->set, false);
        age(r);
        return;
    }
    uint32_t dice = below(r, 1000);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (dice < commands[i].weight) {
            commands[i].run(r, s);
            return;
        }
        dice -= commands[i].weight;
    }
    do_flush(r, s, percent(r, 40));
}

static void heavy_settings(struct run *r)
{
    static const float cells[] = {1, 2, 4, 8, 16, 32};
    struct aoi_settings *set = &r->set;
    set->cell_size = (double)(r->unit * cells[below(r, 6)]);
    r->calm = percent(r, 60);
    if (r->calm) set->max_view = set->min_stay_ms = 0;
    if (r->calm || percent(r, 50)) set->max_enter_per_flush = 0;
    if (percent(r, 50)) set->tiers = (struct aoi_tiers){.n = 1, .at = {{.distance = r->unit * (float)(8 + below(r, 24)), .period = 1}}, .beyond = 2};
}

/* Players that see most of what there is: by a viewport, by one unit, by several. */
static void heavy_players(struct run *r, struct model_space *s)
{
    for (uint64_t player = 1; player < r->players - 1; player++) {
        float min[3], max[3];
        for (uint32_t a = 0; a < 3; a++) {
            min[a] = r->origin[a] - r->unit * (float)below(r, 16);
            max[a] = r->origin[a] + r->unit * (float)below(r, 16);
        }
        if (player % 3 == 0) model_viewport_set(&r->m, s, 1, player, min, max);
        for (uint32_t units = player % 3 == 0 ? 0 : player % 5 == 0 && !r->calm ? 3 : 1; units > 0; units--) {
            const struct model_entity *e = &s->entities.at[below(r, s->entities.n)];
            model_entity_set_radius(&r->m, s, e->owner, e->id, r->unit * (float)(4 + below(r, 12)));
            model_subscribe(&r->m, s, 1, player, e->id, !r->calm && percent(r, 20));
        }
    }
}

/* The windows of a heavy world: hundreds of moves, few of anything else, a flush. */
static void surges(struct run *r, unsigned windows)
{
    for (unsigned w = 0; w < windows; w++) {
        for (uint32_t i = r->calm ? 0 : below(r, 16); i > 0; i--, r->step++) step(r);
        struct model_space *s = model_space(&r->m, 1);
        if (s == NULL) continue;
        bool all = percent(r, 40);
        for (uint32_t i = 0; all && i < s->entities.n; i++, r->step++) move(r, s, s->entities.at[i].id);
        for (uint32_t i = all || percent(r, 20) ? below(r, 40) : 200 + below(r, 400); i > 0; i--, r->step++) do_move(r, s);
        do_flush(r, s, percent(r, r->calm ? 95 : 70));
        r->step++;
    }
}

static void run_init(struct run *r, uint64_t seed, unsigned kind, bool lockstep)
{
    static const float origins[] = {0, 0, 0, 9984, -9984, 8000000, -16777200, 16777200, 100.3f};
    static const float units[] = {1, 1, 1, 0.5f, 0.1f, 4, 32};
    uint32_t kernels_n = 1;
    *r = (struct run){.seed = seed, .rng = seed ^ (uint64_t)(lockstep ? kind | 1 : kind) << 32, .kind = kind, .lockstep = lockstep};
    r->heavy = kind >= KINDS;
    while (aoi__kernels_nth(kernels_n) != NULL) kernels_n++;
    r->kernels_nth = percent(r, 70) ? 0 : below(r, kernels_n);
    r->kernels = aoi__kernels_nth(r->kernels_nth);
    r->appealing = r->heavy ? 15 + below(r, 50) : 20;
    float origin = origins[below(r, 9)];
    for (uint32_t a = 0; a < 3; a++) r->origin[a] = percent(r, 70) ? origin : 0;
    r->unit = units[below(r, 7)];
    r->set = kind_settings(r, kind % KINDS);
    bool crowd = !r->heavy && percent(r, 8);
    r->target = r->heavy ? 700 : crowd ? 400 : 20 + below(r, 40);
    r->ids = r->target + r->target / 2;
    r->players = crowd ? 60 : r->heavy ? 16 : 10;
    if (r->heavy) heavy_settings(r);
    if (r->heavy && percent(r, 70)) {
        r->high[0] = percent(r, 50) ? UINT32_MAX : 1 + below(r, 1000);
        r->high[1] = percent(r, 50) ? r->high[0] : below(r, 3);
    }
    struct aoi_limits limits = {.max_spaces = 3,
                                .max_entities = r->target + 10,
                                .max_players = r->players - 2,
                                .max_units = crowd ? 12 : 5,
                                .max_payload = 40,
                                .max_overrides = 6,
                                .max_message = 64,
                                .max_messages = 8};
    if (percent(r, 30)) limits.max_radius = 512;
    model_init(&r->m, &limits);
    r->m.on_delta = lockstep ? on_delta : NULL;
    r->m.on_delta_ctx = r;
    current = r;
    step(r); /* makes space 1 */
    for (uint32_t i = 0; crowd && i < 400; i++) do_add(r, r->m.spaces.at[0]);
    for (uint32_t i = 0; crowd && i < 400; i++) do_subscription(r, r->m.spaces.at[0]);
    for (uint32_t i = 0; r->heavy && i < 2 * r->target; i++) do_add(r, r->m.spaces.at[0]);
    if (r->heavy) heavy_players(r, r->m.spaces.at[0]);
}

/* So many commands or, of a heavy world, windows. */
static void run_to_end(struct run *r, unsigned n)
{
    current = r;
    if (r->heavy) surges(r, n);
    for (r->step = 0; !r->heavy && r->step < n; r->step++) step(r);
    for (uint32_t i = 0; i < r->m.spaces.n; i++) do_converge(r, r->m.spaces.at[i]);
    aoi_validate(r->m.world);
    current = NULL;
}

static void run_clear(struct run *r)
{
    model_clear(&r->m);
    free(r->log);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static uint64_t the_seed(void)
{
    static uint64_t seed;
    if (seed == 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = from_environment("AOI_SEED", (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
        printf("AOI_SEED=%llu\n", (unsigned long long)seed);
        fflush(stdout);
    }
    return seed;
}

/* ------------------------------------------------------------------------------------------------------------- tests */

static void every_delta_and_reply_of_random_commands_is_what_brute_force_gives(void **state)
{
    (void)state;
    uint64_t seed = the_seed(), total = from_environment("AOI_COMMANDS", 600000), only = from_environment("AOI_KIND", ALL_KINDS);
    uint64_t flushes = 0, deltas = 0, enters = 0, leaves = 0, updates = 0, pairs = 0, checked = 0;
    for (unsigned kind = 0; kind < ALL_KINDS; kind++) {
        if (only != ALL_KINDS && kind != only) continue;
        const uint64_t all = kind < KINDS ? total / KINDS : total / COMMANDS_A_WINDOW;
        const unsigned part = kind < KINDS ? 2000 : 12; /* of a world, then another one with other cells, origin, limits */
        for (uint64_t done = 0; done < all; done += part) {
            struct run *r = mem_zalloc(sizeof *r);
            run_init(r, seed + done, kind, false);
            r->seed = seed;
            run_to_end(r, part);
            pairs += r->m.pairs;
            flushes += r->m.flushes;
            deltas += r->m.deltas;
            enters += r->m.enters;
            leaves += r->m.leaves;
            updates += r->m.updates;
            checked += r->m.oracle_checked;
            run_clear(r);
            free(r);
        }
    }
    printf("%llu flushes, %llu deltas, %llu enters, %llu leaves, %llu updates, %llu pairs; %llu views checked by the oracle of production\n",
           (unsigned long long)flushes, (unsigned long long)deltas, (unsigned long long)enters, (unsigned long long)leaves,
           (unsigned long long)updates, (unsigned long long)pairs, (unsigned long long)checked);
    assert_true(checked > flushes / 2);
    assert_true(flushes > 0 && (only != ALL_KINDS || (enters > flushes && leaves > flushes && updates > flushes))); /* else nothing was tested */
}

static void a_grid_and_a_crosslist_tell_the_same_deltas_in_lockstep(void **state)
{
    (void)state;
    uint64_t seed = the_seed() + 1, commands_n = from_environment("AOI_COMMANDS", 600000) / 160, only = from_environment("AOI_KIND", ALL_KINDS);
    for (unsigned kind = 0; kind < KINDS; kind += 2) {
        if (only != ALL_KINDS && kind / 2 != only / 2) continue;
        struct run *grid = mem_zalloc(sizeof *grid), *cross = mem_zalloc(sizeof *cross);
        run_init(grid, seed, kind, true);
        run_init(cross, seed, kind + 1, true);
        grid->seed = cross->seed = the_seed(); /* by which it is replayed */
        run_to_end(grid, (unsigned)commands_n);
        run_to_end(cross, (unsigned)commands_n);
        assert_int_equal(grid->set.index, AOI_INDEX_GRID);
        assert_int_equal(cross->set.index, AOI_INDEX_CROSSLIST);
        assert_int_equal(grid->log_n, cross->log_n);
        for (uint32_t i = 0; i < grid->log_n; i++) {
            if (grid->log[i] != cross->log[i]) model_fail("AOI_SEED=%llu kind %u: flush %u differs", (unsigned long long)(seed - 1), kind, i);
        }
        run_clear(grid);
        run_clear(cross);
        free(grid);
        free(cross);
    }
}

int main(void)
{
    signal(SIGABRT, on_abort);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_delta_and_reply_of_random_commands_is_what_brute_force_gives),
        cmocka_unit_test(a_grid_and_a_crosslist_tell_the_same_deltas_in_lockstep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
