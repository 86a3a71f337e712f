/* model.c: what the core must do, by brute force from the definitions, and a mirror per player that believes only its deltas. */
#include "model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

_Noreturn void model_fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("model: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

/* ------------------------------------------------------------------------------------------------------------- looking up */

struct model_space *model_space(const struct model *m, uint64_t id)
{
    for (uint32_t i = 0; i < m->spaces.n; i++)
        if (m->spaces.at[i]->id == id) return m->spaces.at[i];
    return NULL;
}

/* Where id stands, or would stand, among n records of `size` bytes that begin with an id and ascend by it. */
static uint32_t lower_bound(const void *at, uint32_t n, size_t size, uint64_t id)
{
    uint32_t lo = 0;
    while (n > 0) {
        uint64_t mid;
        memcpy(&mid, (const char *)at + (lo + n / 2) * size, sizeof mid);
        if (mid < id) {
            lo += n / 2 + 1;
            n -= n / 2 + 1;
        } else {
            n /= 2;
        }
    }
    return lo;
}

struct model_entity *model_entity(const struct model_space *s, uint64_t id)
{
    uint32_t i = lower_bound(s->entities.at, s->entities.n, sizeof *s->entities.at, id);
    return i < s->entities.n && s->entities.at[i].id == id ? &s->entities.at[i] : NULL;
}

struct model_player *model_player(const struct model_space *s, uint64_t id)
{
    uint32_t i = lower_bound(s->players.at, s->players.n, sizeof *s->players.at, id);
    return i < s->players.n && s->players.at[i].id == id ? &s->players.at[i] : NULL;
}

struct model_told *model_told(const struct model_player *p, uint64_t id)
{
    uint32_t i = lower_bound(p->told.at, p->told.n, sizeof *p->told.at, id);
    return i < p->told.n && p->told.at[i].id == id ? &p->told.at[i] : NULL;
}

struct model_unit *model_unit(const struct model_player *p, uint64_t entity)
{
    for (uint32_t i = 0; i < p->units.n; i++)
        if (p->units.at[i].entity == entity) return &p->units.at[i];
    return NULL;
}

const struct model_override *model_override(const struct model_player *p, uint64_t entity)
{
    for (uint32_t i = 0; i < p->overrides.n; i++)
        if (p->overrides.at[i].entity == entity) return &p->overrides.at[i];
    return NULL;
}

struct aoi_space *model_core_space(const struct model *m, const struct model_space *s)
{
    struct aoi_space *space = aoi_space_find(m->world, s->id);
    REQUIRE(space != NULL && aoi_space_id(space) == s->id, "space %llu is not to be found", (unsigned long long)s->id);
    return space;
}

/* ------------------------------------------------------------------------------------------------------------- values */

static float clean(float f)
{
    return fpclassify(f) == FP_SUBNORMAL || f == 0 ? 0 : f;
}

uint64_t model_hash(const void *p, uint32_t len)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (uint32_t i = 0; i < len; i++) h = (h ^ ((const uint8_t *)p)[i]) * 1099511628211u;
    return h;
}

bool model_same_place(const struct model_space *s, const struct model_value *a, const struct model_value *b)
{
    for (uint32_t i = 0; i < s->dims; i++)
        if (a->pos[i] != b->pos[i]) return false;
    return a->extra == b->extra;
}

bool model_same_payload(const struct model_value *a, const struct model_value *b)
{
    return a->payload_len == b->payload_len && a->payload_hash == b->payload_hash;
}

static unsigned position_faults(const struct model_space *s, const float *pos)
{
    unsigned faults = 0;
    for (uint32_t a = 0; a < s->dims; a++) {
        float v = pos[a];
        if (!isfinite(v)) {
            faults |= CODE(AOI_EINVAL);
        } else if (fabsf(v) > AOI_COORD_MAX || (s->set.bounded && (clean(v) < s->set.min[a] || clean(v) > s->set.max[a]))) {
            faults |= CODE(AOI_EBOUNDS);
        }
    }
    return faults;
}

static unsigned radius_faults(const struct model *m, float radius)
{
    if (!isfinite(radius) || radius < 0) return CODE(AOI_EINVAL);
    return m->limits.max_radius > 0 && radius > m->limits.max_radius ? CODE(AOI_EINVAL) : 0;
}

static unsigned appeal_faults(float appeal)
{
    return isfinite(appeal) && appeal >= 0 ? 0 : CODE(AOI_EINVAL);
}

unsigned model_box_faults(uint32_t dims, const float *min, const float *max)
{
    for (uint32_t a = 0; a < dims; a++)
        if (!isfinite(min[a]) || !isfinite(max[a]) || min[a] > max[a]) return CODE(AOI_EINVAL);
    return 0;
}

static double cell_of(const struct model_space *s, float v)
{
    return floor((double)v / s->set.cell_size);
}

bool model_in_box(uint32_t dims, const float *p, const float *min, const float *max)
{
    for (uint32_t a = 0; a < dims; a++)
        if (!(min[a] <= p[a] && p[a] <= max[a])) return false;
    return true;
}

/* ------------------------------------------------------------------------------------------------------------- the world */

static void on_change(void *ctx, struct aoi_space *space)
{
    struct model_space *s = model_space(ctx, aoi_space_id(space));
    REQUIRE(s != NULL && !s->notified && !s->dirty && aoi_space_dirty(space), "a space says that it has changed, though it was dirty, or is not");
    s->notified = true;
}

void model_init(struct model *m, const struct aoi_limits *limits)
{
    *m = (struct model){.limits = *limits, .time_us = 1000000, .now_ms = 1000000};
    for (int o = 0; o < MODEL_OWNERS; o++) m->room[o] = MODEL_NO_LIMIT;
    struct aoi_sink sink = {.ctx = m,
                            .room = model_sink_room,
                            .columns = model_sink_columns,
                            .deliver = model_sink_deliver,
                            .observed = model_sink_observed,
                            .lost = model_sink_lost};
    m->world = aoi_world_new(limits, &sink);
    aoi_world_on_change(m->world, on_change, m);
    m->oracle = aoi_oracle_new();
}

static void free_player(struct model_player *p)
{
    array_clear(&p->units);
    array_clear(&p->told);
    array_clear(&p->overrides);
}

static void free_space(struct model *m, struct model_space *s)
{
    for (uint32_t i = 0; i < s->players.n; i++) free_player(&s->players.at[i]);
    array_clear(&s->players);
    array_clear(&s->entities);
    array_clear(&s->messages);
    array_clear(&s->units);
    array_clear(&s->candidates);
    for (uint32_t i = 0; i < m->spaces.n; i++) {
        if (m->spaces.at[i] != s) continue;
        array_swap_remove(&m->spaces, i);
        break;
    }
    free(s);
}

void model_clear(struct model *m)
{
    aoi_world_free(m->world);
    aoi_oracle_free(m->oracle);
    while (m->spaces.n > 0) free_space(m, m->spaces.at[0]);
    array_clear(&m->spaces);
    array_clear(&m->before);
    aoi_rows_clear(&m->rows);
}

/* When there is something to look at where there was nothing, the space says so. */
static void check_dirty(const struct model *m, struct model_space *s, const char *what)
{
    struct aoi_space *space = aoi_space_find(m->world, s->id);
    if (space == NULL) return; /* it has just ended */
    REQUIRE(aoi_space_dirty(space) == (s->dirty || s->notified), "%s: the space is dirty: %d, and did not say so", what, aoi_space_dirty(space));
    s->dirty = aoi_space_dirty(space);
    s->notified = false;
}

int model_judge(struct model *m, const char *what, uint64_t id, int rc, unsigned faults, uint32_t closed)
{
    unsigned right = faults == 0 ? CODE(AOI_OK) : faults;
    REQUIRE(rc <= 0 && rc >= AOI_ELIMIT && (right >> -rc & 1), "%s of %llu returned %d; allowed are the bits of 0x%x", what, (unsigned long long)id,
            rc, right);
    uint32_t expected = rc == AOI_OK ? closed : 0;
    REQUIRE(m->closed_n == expected, "%s of %llu closed %u players, not %u", what, (unsigned long long)id, m->closed_n, expected);
    m->closed_n = 0;
    for (uint32_t i = 0; i < m->spaces.n; i++) check_dirty(m, m->spaces.at[i], what);
    REQUIRE(!m->losing, "%s of %llu: the loser was not told", what, (unsigned long long)id);
    return rc;
}

static bool equal_tiers(const struct aoi_tiers *a, const struct aoi_tiers *b)
{
    bool same = a->n == b->n && (a->beyond > 1 ? a->beyond : 1) == (b->beyond > 1 ? b->beyond : 1);
    for (uint32_t i = 0; same && i < a->n; i++) same = a->at[i].distance == b->at[i].distance && a->at[i].period == b->at[i].period;
    return same;
}

static bool equal_settings(const struct aoi_settings *a, const struct aoi_settings *b)
{
    bool same = a->dimensions == b->dimensions && a->index == b->index && a->shape == b->shape && a->cell_size == b->cell_size &&
                a->cell_range == b->cell_range && a->bounded == b->bounded && a->extra == b->extra && a->flush_ms == b->flush_ms &&
                a->persistent == b->persistent && a->leave_margin == b->leave_margin && a->min_stay_ms == b->min_stay_ms &&
                a->max_view == b->max_view && a->max_enter_per_flush == b->max_enter_per_flush && equal_tiers(&a->tiers, &b->tiers);
    for (uint32_t i = 0; same && a->bounded && i < a->dimensions; i++) same = a->min[i] == b->min[i] && a->max[i] == b->max[i];
    return same;
}

/* settings are legal, with or without zeros for defaults. */
int model_space_create(struct model *m, aoi_owner owner, uint64_t id, const struct aoi_settings *settings, bool if_absent)
{
    struct aoi_settings set = *settings;
    const char *why = NULL;
    REQUIRE(aoi_settings_check(&set, &why) == AOI_OK, "settings refused: %s", why);
    struct model_space *old = model_space(m, id);
    unsigned faults = id == 0 ? CODE(AOI_EINVAL) : 0;
    if (old != NULL && !(if_absent && equal_settings(&old->set, &set))) faults |= CODE(AOI_EDUPSPACE);
    if (old == NULL && m->spaces.n >= m->limits.max_spaces) faults |= CODE(AOI_ELIMIT);
    int rc = model_judge(m, "create", id, aoi_space_create(m->world, owner, id, settings, if_absent), faults, 0);
    if (rc != AOI_OK || old != NULL) return rc;
    struct model_space *s = mem_zalloc(sizeof *s);
    *s = (struct model_space){.id = id, .owner = owner, .set = set, .dims = set.dimensions};
    *array_add(&m->spaces) = s;
    REQUIRE(equal_settings(aoi_space_settings(model_core_space(m, s)), &set) && aoi_space_owner(model_core_space(m, s)) == owner,
            "the space is not as it was made");
    return rc;
}

static unsigned tiers_faults(const struct aoi_tiers *t)
{
    bool good = t->n <= AOI_TIERS_MAX && t->beyond <= AOI_PERIOD_MAX;
    for (uint32_t i = 0; good && i < t->n; i++) {
        good = isfinite(t->at[i].distance) && t->at[i].distance >= 0 && t->at[i].period >= 1 && t->at[i].period <= AOI_PERIOD_MAX;
        good &= i == 0 || t->at[i].distance > t->at[i - 1].distance;
    }
    return good ? 0 : CODE(AOI_EINVAL);
}

int model_space_set(struct model *m, struct model_space *s, aoi_owner owner, bool admin, const struct aoi_space_change *change)
{
    unsigned faults = 0;
    struct aoi_settings set = s->set;
    if (change->has_flush_ms) set.flush_ms = change->flush_ms;
    if (change->has_leave_margin) set.leave_margin = clean(change->leave_margin);
    if (change->has_min_stay_ms) set.min_stay_ms = change->min_stay_ms;
    if (change->has_max_view) set.max_view = change->max_view;
    if (change->has_max_enter_per_flush) set.max_enter_per_flush = change->max_enter_per_flush;
    if (change->has_tiers) set.tiers = change->tiers;
    if (!admin && (s->owner == 0 || s->owner != owner)) faults |= CODE(AOI_EOWNER);
    if (!isfinite(set.leave_margin) || set.leave_margin < 0) faults |= CODE(AOI_EINVAL);
    if (set.max_view > AOI_MAX_VIEW) faults |= CODE(AOI_EINVAL) | CODE(AOI_ELIMIT);
    faults |= tiers_faults(&set.tiers);
    int rc = model_judge(m, "set space", s->id, aoi_space_set(model_core_space(m, s), owner, admin, change), faults, 0);
    if (rc != AOI_OK) return rc;
    s->set = set;
    for (uint32_t i = 0; set.min_stay_ms == 0 && i < s->players.n; i++) /* forgets when they entered */
        for (uint32_t k = 0; k < s->players.at[i].told.n; k++) s->players.at[i].told.at[k].since = 0;
    REQUIRE(equal_settings(aoi_space_settings(model_core_space(m, s)), &s->set), "the space is not as it was set");
    return rc;
}

int model_space_destroy(struct model *m, aoi_owner owner, bool admin, uint64_t id)
{
    struct model_space *s = model_space(m, id);
    unsigned faults = 0;
    if (s == NULL) faults = id == 0 ? CODE(AOI_EINVAL) | CODE(AOI_ENOSPACE) : CODE(AOI_ENOSPACE);
    if (s != NULL && !(s->owner != 0 && s->owner == owner) && !(admin && (s->owner != 0 || s->orphan))) faults = CODE(AOI_EOWNER);
    int rc = model_judge(m, "destroy", id, aoi_space_destroy(m->world, owner, admin, id), faults, s == NULL ? 0 : s->players.n);
    if (rc == AOI_OK) free_space(m, s);
    return rc;
}

static void remove_entity(struct model_space *s, uint64_t id)
{
    for (uint32_t i = 0; i < s->players.n; i++) {
        struct model_unit *u = model_unit(&s->players.at[i], id);
        if (u != NULL) array_swap_remove(&s->players.at[i].units, u - s->players.at[i].units.at);
    }
    uint32_t i = lower_bound(s->entities.at, s->entities.n, sizeof *s->entities.at, id);
    memmove(&s->entities.at[i], &s->entities.at[i + 1], (--s->entities.n - i) * sizeof *s->entities.at);
}

static void remove_player(struct model_space *s, struct model_player *p)
{
    free_player(p);
    memmove(p, p + 1, (size_t)(&s->players.at[--s->players.n] - p) * sizeof *p);
}

/* What was released to an owner that is gone is released to nobody. */
static void forget_releases(struct model_space *s, aoi_owner to)
{
    for (uint32_t i = 0; i < s->entities.n; i++) s->entities.at[i].released &= s->entities.at[i].release_to != to;
    for (uint32_t i = 0; i < s->players.n; i++) s->players.at[i].released &= s->players.at[i].release_to != to;
}

void model_owner_away(struct model *m, aoi_owner owner, bool away)
{
    m->away[owner] = away;
    aoi_owner_away(m->world, owner, away);
    model_judge(m, away ? "away" : "back", owner, AOI_OK, 0, 0);
    for (uint32_t i = 0; i < m->spaces.n && !away; i++) {
        struct model_space *s = m->spaces.at[i];
        for (uint32_t k = 0; k < s->players.n; k++) s->players.at[k].full_due |= s->players.at[k].owner == owner;
        for (uint32_t k = 0; k < s->entities.n; k++)
            if (s->entities.at[k].owner == owner) s->entities.at[k].reported = MODEL_RESTATE;
    }
}

void model_owner_end(struct model *m, aoi_owner owner, bool tell)
{
    m->away[owner] = false;
    uint32_t closed = 0;
    for (uint32_t i = 0; i < m->spaces.n; i++) {
        struct model_space *s = m->spaces.at[i];
        bool ends = s->owner == owner && !s->set.persistent;
        for (uint32_t k = 0; k < s->players.n; k++) closed += s->players.at[k].owner == owner ? tell : ends;
    }
    aoi_owner_end(m->world, owner, tell);
    model_judge(m, "end of owner", owner, AOI_OK, 0, closed);
    for (uint32_t i = m->spaces.n; i-- > 0;) {
        struct model_space *s = m->spaces.at[i];
        if (s->owner == owner && !s->set.persistent) {
            free_space(m, s);
            continue;
        }
        if (s->owner == owner) {
            s->owner = 0;
            s->orphan = true;
        }
        forget_releases(s, owner);
        for (uint32_t k = s->players.n; k-- > 0;)
            if (s->players.at[k].owner == owner) remove_player(s, &s->players.at[k]);
        for (uint32_t k = s->entities.n; k-- > 0;)
            if (s->entities.at[k].owner == owner) remove_entity(s, s->entities.at[k].id);
    }
}

/* ------------------------------------------------------------------------------------------------------------- entities */

static void write_entity(const struct model_space *s, struct model_entity *e, const struct aoi_entity *from)
{
    e->radius = clean(from->radius);
    e->appeal = clean(from->appeal);
    e->priority = from->priority;
    e->report_observed = from->report_observed;
    e->moves++;
    for (uint32_t a = 0; a < s->dims; a++) e->v.pos[a] = clean(from->pos[a]);
    e->v.extra = s->set.extra ? from->extra : 0;
    e->v.layers = from->layers == 0 ? AOI_LAYERS_DEFAULT : from->layers;
    e->v.payload_len = from->payload_len;
    e->v.payload_hash = model_hash(from->payload, from->payload_len);
}

static void expect_loss(struct model *m, aoi_owner loser, bool player, uint64_t id)
{
    m->losing = true;
    m->loser = loser;
    m->losing_player = player;
    m->losing_id = id;
}

static bool may_take(const struct model *m, bool released, aoi_owner to, aoi_owner taker, aoi_owner owner)
{
    return m->away[owner] || (released && (to == 0 || to == taker));
}

static int adopt(struct model *m, struct model_space *s, aoi_owner owner, const struct aoi_entity *entity)
{
    struct model_entity *e = model_entity(s, entity->id);
    unsigned faults = entity->id == 0 ? CODE(AOI_EINVAL) : e == NULL ? CODE(AOI_ENOENTITY) : 0;
    if (e != NULL && e->owner != owner && !may_take(m, e->released, e->release_to, owner, e->owner)) faults |= CODE(AOI_EOWNER);
    bool changes = faults == 0 && e->owner != owner;
    if (changes) expect_loss(m, e->owner, false, e->id);
    int rc = model_judge(m, "adopt", entity->id, aoi_entity_add(model_core_space(m, s), owner, AOI_ADD_ADOPT, entity), faults, 0);
    if (rc != AOI_OK) return rc;
    e->reported = MODEL_RESTATE;
    e->owner = owner;
    e->released = false;
    return rc;
}

int model_entity_add(struct model *m, struct model_space *s, aoi_owner owner, enum aoi_add_mode mode, const struct aoi_entity *entity)
{
    if (mode == AOI_ADD_ADOPT) return adopt(m, s, owner, entity);
    struct model_entity *e = model_entity(s, entity->id);
    unsigned faults = position_faults(s, entity->pos) | radius_faults(m, entity->radius) | appeal_faults(entity->appeal);
    if (entity->id == 0 || (mode != AOI_ADD_NEW && mode != AOI_ADD_UPSERT)) faults |= CODE(AOI_EINVAL);
    if (entity->payload_len > m->limits.max_payload) faults |= CODE(AOI_ELIMIT);
    if (e != NULL && mode == AOI_ADD_NEW) faults |= CODE(AOI_EDUPENTITY);
    if (e != NULL && mode == AOI_ADD_UPSERT && e->owner != owner && !m->away[e->owner]) faults |= CODE(AOI_EOWNER);
    if (e == NULL && s->entities.n >= m->limits.max_entities) faults |= CODE(AOI_ELIMIT);
    bool takes = faults == 0 && e != NULL && e->owner != owner;
    if (takes) expect_loss(m, e->owner, false, e->id);
    int rc = model_judge(m, "add", entity->id, aoi_entity_add(model_core_space(m, s), owner, mode, entity), faults, 0);
    if (rc != AOI_OK) return rc;
    if (takes) {
        e->owner = owner;
        e->released = false;
    }
    if (e != NULL) e->reported = MODEL_RESTATE;
    if (e == NULL) {
        uint32_t i = lower_bound(s->entities.at, s->entities.n, sizeof *s->entities.at, entity->id);
        (void)array_add(&s->entities);
        e = &s->entities.at[i];
        memmove(e + 1, e, (s->entities.n - 1 - i) * sizeof *e);
        *e = (struct model_entity){.id = entity->id, .identity = ++m->identity, .owner = owner};
    }
    write_entity(s, e, entity);
    return rc;
}

/* Faults of every command on an existing entity. */
static unsigned entity_faults(const struct model_space *s, aoi_owner owner, uint64_t id)
{
    const struct model_entity *e = model_entity(s, id);
    if (id == 0) return CODE(AOI_EINVAL);
    if (e == NULL) return CODE(AOI_ENOENTITY);
    return e->owner != owner ? CODE(AOI_EOWNER) : 0;
}

static void move_failed(void *ctx, size_t i, int err)
{
    CHECK(i == 0);
    *(int *)ctx = err;
}

/* Alone, or as a column of one. */
static int core_move(struct aoi_space *space, aoi_owner owner, uint64_t id, const float pos[3], const uint32_t *extra)
{
    int err = AOI_OK;
    if (id % 2 == 0) return aoi_entity_move(space, owner, id, pos, extra);
    size_t applied = aoi_entity_move_many(space, owner, 1, &id, &pos[0], &pos[1], &pos[2], extra, move_failed, &err);
    CHECK(applied == (err == AOI_OK));
    return err;
}

int model_entity_move(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, const float pos[3], const uint32_t *extra)
{
    unsigned faults = entity_faults(s, owner, id) | position_faults(s, pos);
    int rc = model_judge(m, "move", id, core_move(model_core_space(m, s), owner, id, pos, extra), faults, 0);
    if (rc != AOI_OK) return rc;
    struct model_entity *e = model_entity(s, id);
    struct model_value was = e->v;
    for (uint32_t a = 0; a < s->dims; a++) e->v.pos[a] = clean(pos[a]);
    if (extra != NULL && s->set.extra) e->v.extra = *extra;
    e->moves += !model_same_place(s, &was, &e->v);
    return rc;
}

int model_entity_remove(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id)
{
    unsigned faults = entity_faults(s, owner, id);
    int rc = model_judge(m, "remove", id, aoi_entity_remove(model_core_space(m, s), owner, id), faults, 0);
    if (rc == AOI_OK) remove_entity(s, id);
    return rc;
}

int model_entity_set_radius(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, float radius)
{
    unsigned faults = entity_faults(s, owner, id) | radius_faults(m, radius);
    int rc = model_judge(m, "set_radius", id, aoi_entity_set_radius(model_core_space(m, s), owner, id, radius), faults, 0);
    if (rc == AOI_OK) model_entity(s, id)->radius = clean(radius);
    return rc;
}

int model_entity_set_layers(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, uint32_t layers)
{
    unsigned faults = entity_faults(s, owner, id);
    int rc = model_judge(m, "set_layers", id, aoi_entity_set_layers(model_core_space(m, s), owner, id, layers), faults, 0);
    if (rc == AOI_OK) model_entity(s, id)->v.layers = layers;
    return rc;
}

int model_entity_set_payload(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, const void *payload, uint32_t len)
{
    unsigned faults = entity_faults(s, owner, id) | (len > m->limits.max_payload ? CODE(AOI_ELIMIT) : 0);
    int rc = model_judge(m, "set_payload", id, aoi_entity_set_payload(model_core_space(m, s), owner, id, payload, len), faults, 0);
    if (rc != AOI_OK) return rc;
    struct model_value *v = &model_entity(s, id)->v;
    v->payload_len = len;
    v->payload_hash = model_hash(payload, len);
    return rc;
}

int model_entity_set_appeal(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, float appeal)
{
    unsigned faults = entity_faults(s, owner, id) | appeal_faults(appeal);
    int rc = model_judge(m, "set_appeal", id, aoi_entity_set_appeal(model_core_space(m, s), owner, id, appeal), faults, 0);
    if (rc == AOI_OK) model_entity(s, id)->appeal = clean(appeal);
    return rc;
}

int model_entity_set_priority(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, uint32_t priority)
{
    unsigned faults = entity_faults(s, owner, id);
    int rc = model_judge(m, "set_priority", id, aoi_entity_set_priority(model_core_space(m, s), owner, id, priority), faults, 0);
    if (rc == AOI_OK) model_entity(s, id)->priority = priority;
    return rc;
}

int model_entity_release(struct model *m, struct model_space *s, aoi_owner owner, uint64_t id, aoi_owner to)
{
    unsigned faults = entity_faults(s, owner, id);
    int rc = model_judge(m, "release", id, aoi_entity_release(model_core_space(m, s), owner, id, to), faults, 0);
    if (rc != AOI_OK) return rc;
    model_entity(s, id)->released = true;
    model_entity(s, id)->release_to = to;
    return rc;
}

int model_entity_get(struct model *m, struct model_space *s, uint64_t id)
{
    const struct model_entity *e = model_entity(s, id);
    struct aoi_entity out = {0};
    unsigned faults = id == 0 ? CODE(AOI_EINVAL) | CODE(AOI_ENOENTITY) : e == NULL ? CODE(AOI_ENOENTITY) : 0;
    int rc = model_judge(m, "get", id, aoi_entity_get(model_core_space(m, s), id, &out), faults, 0);
    if (rc != AOI_OK) return rc;
    uint32_t subscribers = 0;
    for (uint32_t i = 0; i < s->players.n; i++) subscribers += model_unit(&s->players.at[i], id) != NULL;
    struct model_value v = {
        .extra = out.extra, .layers = out.layers, .payload_len = out.payload_len, .payload_hash = model_hash(out.payload, out.payload_len)};
    memcpy(v.pos, out.pos, sizeof v.pos);
    bool right = out.id == id && model_same_place(s, &v, &e->v) && v.layers == e->v.layers && model_same_payload(&v, &e->v);
    for (uint32_t a = 0; a < s->dims; a++) right &= !signbit(v.pos[a]) || v.pos[a] < 0;
    right &= out.appeal == e->appeal && out.priority == e->priority && out.report_observed == e->report_observed;
    right &= out.radius == e->radius && out.owner == e->owner && out.subscribers == subscribers;
    REQUIRE(right, "get of %llu gives something else than what was set", (unsigned long long)id);
    return rc;
}

/* ------------------------------------------------------------------------------------------------------------- players */

/* Faults of every command on a player; opens: an unknown one is made. */
static unsigned player_faults(const struct model *m, const struct model_space *s, aoi_owner owner, uint64_t player, bool opens)
{
    const struct model_player *p = model_player(s, player);
    if (player == 0) return CODE(AOI_EINVAL);
    if (p != NULL) return p->owner != owner ? CODE(AOI_EOWNER) : 0;
    if (!opens) return CODE(AOI_ENOPLAYER);
    return s->players.n >= m->limits.max_players ? CODE(AOI_ELIMIT) : 0;
}

static struct model_player *open_player(struct model_space *s, aoi_owner owner, uint64_t player)
{
    uint32_t i = lower_bound(s->players.at, s->players.n, sizeof *s->players.at, player);
    if (i < s->players.n && s->players.at[i].id == player) return &s->players.at[i];
    (void)array_add(&s->players);
    struct model_player *p = &s->players.at[i];
    memmove(p + 1, p, (s->players.n - 1 - i) * sizeof *p);
    *p = (struct model_player){.id = player, .owner = owner, .mask = UINT32_MAX};
    return p;
}

int model_player_settings(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, const struct aoi_player_settings *settings)
{
    struct model_player *p = model_player(s, player);
    bool takes = p != NULL && p->owner != owner && settings->take_over && may_take(m, p->released, p->release_to, owner, p->owner);
    unsigned faults = takes ? 0 : player_faults(m, s, owner, player, true);
    if (!isfinite(settings->leave_margin) || settings->leave_margin < 0) faults |= CODE(AOI_EINVAL);
    if (settings->max_view > AOI_MAX_VIEW) faults |= CODE(AOI_EINVAL) | CODE(AOI_ELIMIT);
    if (takes && faults == 0) expect_loss(m, p->owner, true, player);
    int rc = model_judge(m, "open", player, aoi_player_open(model_core_space(m, s), owner, player, settings), faults, 0);
    if (rc != AOI_OK) return rc;
    bool keeps = p != NULL && settings->keep;
    p = open_player(s, owner, player);
    p->owner = owner;
    if (settings->take_over) p->released = false; /* taken, or taken back */
    p->full_due |= takes;
    if (keeps) return rc;
    p->full_due |= p->set.presence_only && !settings->presence_only;
    p->set = *settings;
    p->set.leave_margin = clean(settings->leave_margin);
    p->mask = settings->mask == 0 ? UINT32_MAX : settings->mask;
    return rc;
}

int model_player_open(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, uint32_t mask)
{
    return model_player_settings(m, s, owner, player, &(struct aoi_player_settings){.mask = mask});
}

int model_player_release(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, aoi_owner to)
{
    unsigned faults = player_faults(m, s, owner, player, false);
    int rc = model_judge(m, "release player", player, aoi_player_release(model_core_space(m, s), owner, player, to), faults, 0);
    if (rc != AOI_OK) return rc;
    model_player(s, player)->released = true;
    model_player(s, player)->release_to = to;
    return rc;
}

int model_player_override(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, uint64_t entity, enum aoi_override kind)
{
    unsigned faults = player_faults(m, s, owner, player, false);
    struct model_player *p = model_player(s, player);
    const struct model_override *old = p == NULL ? NULL : model_override(p, entity);
    if (entity == 0 || (kind != AOI_OVERRIDE_NONE && kind != AOI_OVERRIDE_HIDE && kind != AOI_OVERRIDE_SHOW)) faults |= CODE(AOI_EINVAL);
    if (p != NULL && old == NULL && kind != AOI_OVERRIDE_NONE && p->overrides.n >= m->limits.max_overrides) faults |= CODE(AOI_ELIMIT);
    int rc = model_judge(m, "override", player, aoi_player_override(model_core_space(m, s), owner, player, entity, kind), faults, 0);
    if (rc != AOI_OK) return rc;
    if (old != NULL) array_swap_remove(&p->overrides, old - p->overrides.at);
    if (kind != AOI_OVERRIDE_NONE) *array_add(&p->overrides) = (struct model_override){.entity = entity, .show = kind == AOI_OVERRIDE_SHOW};
    return rc;
}

int model_player_close(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player)
{
    unsigned faults = player_faults(m, s, owner, player, false);
    int rc = model_judge(m, "close", player, aoi_player_close(model_core_space(m, s), owner, player), faults, 1);
    if (rc == AOI_OK) remove_player(s, model_player(s, player));
    return rc;
}

int model_subscribe(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, uint64_t entity, bool include_self)
{
    unsigned faults = player_faults(m, s, owner, player, true);
    struct model_player *p = model_player(s, player);
    struct model_unit *u = p == NULL ? NULL : model_unit(p, entity);
    if (entity == 0) {
        faults |= CODE(AOI_EINVAL);
    } else if (model_entity(s, entity) == NULL) {
        faults |= CODE(AOI_ENOENTITY);
    }
    if (u == NULL && (p == NULL ? 0 : p->units.n) >= m->limits.max_units) faults |= CODE(AOI_ELIMIT);
    int rc = model_judge(m, "subscribe", player, aoi_subscribe(model_core_space(m, s), owner, player, entity, include_self), faults, 0);
    if (rc != AOI_OK) return rc;
    p = open_player(s, owner, player);
    if (u == NULL) {
        u = array_add(&p->units);
        u->entity = entity;
    }
    u->include_self = include_self;
    return rc;
}

int model_unsubscribe(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, uint64_t entity)
{
    unsigned faults = player_faults(m, s, owner, player, false);
    struct model_player *p = model_player(s, player);
    struct model_unit *u = p == NULL ? NULL : model_unit(p, entity);
    if (entity == 0) faults |= CODE(AOI_EINVAL);
    if (p != NULL && u == NULL && entity != 0) faults |= CODE(AOI_ENOENTITY);
    int rc = model_judge(m, "unsubscribe", player, aoi_unsubscribe(model_core_space(m, s), owner, player, entity), faults, 0);
    if (rc == AOI_OK) array_swap_remove(&p->units, u - p->units.at);
    return rc;
}

int model_viewport_set(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player, const float min[3], const float max[3])
{
    unsigned faults = player_faults(m, s, owner, player, true) | model_box_faults(s->dims, min, max);
    int rc = model_judge(m, "viewport", player, aoi_viewport_set(model_core_space(m, s), owner, player, min, max), faults, 0);
    if (rc != AOI_OK) return rc;
    struct model_player *p = open_player(s, owner, player);
    p->has_viewport = true;
    memcpy(p->min, min, sizeof p->min);
    memcpy(p->max, max, sizeof p->max);
    return rc;
}

int model_viewport_clear(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player)
{
    unsigned faults = player_faults(m, s, owner, player, false);
    int rc = model_judge(m, "viewport_clear", player, aoi_viewport_clear(model_core_space(m, s), owner, player), faults, 0);
    if (rc == AOI_OK) model_player(s, player)->has_viewport = false;
    return rc;
}

int model_resync(struct model *m, struct model_space *s, aoi_owner owner, uint64_t player)
{
    unsigned faults = player == 0 ? 0 : player_faults(m, s, owner, player, false);
    int rc = model_judge(m, "resync", player, aoi_resync(model_core_space(m, s), owner, player), faults, 0);
    for (uint32_t i = 0; rc == AOI_OK && i < s->players.n; i++) {
        struct model_player *p = &s->players.at[i];
        if (player == 0 ? p->owner == owner : p->id == player) p->full_due = true;
    }
    return rc;
}

/* ------------------------------------------------------------------------------------------------------------- messages */

static unsigned message_faults(const struct model *m, const struct model_space *s, uint32_t len)
{
    return len > m->limits.max_message || s->messages.n >= m->limits.max_messages ? CODE(AOI_ELIMIT) : 0;
}

int model_publish_from(struct model *m, struct model_space *s, aoi_owner owner, uint64_t entity, const void *message, uint32_t len)
{
    unsigned faults = entity_faults(s, owner, entity) | message_faults(m, s, len);
    int rc = model_judge(m, "publish", entity, aoi_publish_from(model_core_space(m, s), owner, entity, message, len), faults, 0);
    if (rc != AOI_OK) return rc;
    *array_add(&s->messages) = (struct model_message){
        .entity = entity, .identity = model_entity(s, entity)->identity, .len = len, .hash = model_hash(message, len)};
    s->messages_n++;
    return rc;
}

int model_publish_at(struct model *m, struct model_space *s, const float min[3], const float max[3], const void *message, uint32_t len)
{
    unsigned faults = model_box_faults(s->dims, min, max) | message_faults(m, s, len);
    int rc = model_judge(m, "publish at", 0, aoi_publish_at(model_core_space(m, s), min, max, message, len), faults, 0);
    if (rc != AOI_OK) return rc;
    struct model_message *new = array_add(&s->messages);
    *new = (struct model_message){.len = len, .hash = model_hash(message, len)};
    memcpy(new->min, min, sizeof new->min);
    memcpy(new->max, max, sizeof new->max);
    s->messages_n++;
    return rc;
}

/* ------------------------------------------------------------------------------------------------------------- queries */

static bool wanted(const struct model_entity *e, uint32_t layers)
{
    return layers == 0 || (e->v.layers & layers) != 0;
}

/* One page that starts after `cursor`; entities that match have seen set. Returns how many of them it holds. */
static uint32_t check_page(const struct model *m, const struct model_space *s, uint64_t cursor, size_t limit, bool values)
{
    const struct aoi_rows *rows = &m->rows;
    REQUIRE(rows->n <= limit, "a page of %zu rows, over its limit %zu", rows->n, limit);
    uint32_t in_page = 0, beyond = 0;
    uint64_t last = rows->next == 0 ? UINT64_MAX : rows->next;
    for (uint32_t i = 0; i < s->entities.n; i++) {
        const struct model_entity *e = &s->entities.at[i];
        if (!e->seen || e->id <= cursor) continue;
        in_page += e->id <= last;
        beyond += e->id > last;
    }
    REQUIRE(rows->n == in_page, "a page of %zu rows, though %u match", rows->n, in_page);
    REQUIRE(rows->next == 0 || (beyond > 0 && rows->n == limit), "a next page for nothing");
    for (size_t i = 0; i < rows->n; i++) {
        struct model_entity *e = model_entity(s, rows->id[i]);
        REQUIRE(e != NULL && e->seen && e->id > cursor && e->id <= last, "row %llu does not belong here or comes twice",
                (unsigned long long)rows->id[i]);
        e->seen = false; /* a second row of it is one too many */
        if (!values) continue;
        struct model_value v = {.pos = {rows->x[i], rows->y[i], s->dims == 3 ? rows->z[i] : 0}, .extra = s->set.extra ? rows->extra[i] : 0};
        REQUIRE(model_same_place(s, &v, &e->v) && rows->layers[i] == e->v.layers, "row %llu has wrong values", (unsigned long long)e->id);
    }
    return in_page;
}

int model_query_box(struct model *m, struct model_space *s, const float min[3], const float max[3], uint32_t layers, size_t limit)
{
    unsigned faults = model_box_faults(s->dims, min, max);
    for (uint32_t i = 0; i < s->entities.n; i++)
        s->entities.at[i].seen = faults == 0 && wanted(&s->entities.at[i], layers) && model_in_box(s->dims, s->entities.at[i].v.pos, min, max);
    int found = 0;
    uint64_t cursor = 0;
    do {
        int rc = model_judge(m, "box query", cursor, aoi_query_box(model_core_space(m, s), min, max, layers, cursor, limit, &m->rows), faults, 0);
        if (rc != AOI_OK) return rc;
        found += (int)check_page(m, s, cursor, limit, true);
        cursor = m->rows.next;
    } while (cursor != 0);
    return found;
}

double model_distance2(uint32_t dims, const float *a, const float *b)
{
    double sum = 0;
    for (uint32_t i = 0; i < dims; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}

int model_query_radius(struct model *m, struct model_space *s, const float center[3], float radius, uint32_t layers, size_t limit)
{
    unsigned faults = model_box_faults(s->dims, center, center) | (isfinite(radius) && radius >= 0 ? 0 : CODE(AOI_EINVAL));
    for (uint32_t i = 0; i < s->entities.n; i++)
        s->entities.at[i].seen = faults == 0 && wanted(&s->entities.at[i], layers) &&
                                 model_distance2(s->dims, s->entities.at[i].v.pos, center) <= (double)radius * (double)radius;
    int found = 0;
    uint64_t cursor = 0;
    do {
        int rc = model_judge(m, "radius query", cursor, aoi_query_radius(model_core_space(m, s), center, radius, layers, cursor, limit, &m->rows),
                             faults, 0);
        if (rc != AOI_OK) return rc;
        found += (int)check_page(m, s, cursor, limit, true);
        cursor = m->rows.next;
    } while (cursor != 0);
    return found;
}

/* Whether the unit's area touches the box: -1 no, 1 yes, 0: so close to the edge that the area's box, never too small, decides. */
static int touches(const struct model_space *s, const struct model_entity *e, const float *min, const float *max)
{
    if (e->radius == 0) return -1;
    float nearest[3] = {0};
    bool about = false;
    for (uint32_t a = 0; a < s->dims; a++) {
        float p = e->v.pos[a], low = p - e->radius, high = p + e->radius;
        nearest[a] = p < min[a] ? min[a] : p > max[a] ? max[a] : p;
        if (s->set.shape == AOI_SHAPE_CELLS) {
            if (cell_of(s, p) - s->set.cell_range > cell_of(s, max[a]) || cell_of(s, p) + s->set.cell_range < cell_of(s, min[a])) return -1;
        } else if (high < min[a] || low > max[a]) {
            if (s->set.shape == AOI_SHAPE_BOX || nextafterf(high, INFINITY) < min[a] || nextafterf(low, -INFINITY) > max[a]) return -1;
            about = true;
        }
    }
    if (s->set.shape != AOI_SHAPE_SPHERE) return 1;
    return !about && model_distance2(s->dims, nearest, e->v.pos) <= (double)e->radius * (double)e->radius ? 1 : 0;
}

int model_query_count(struct model *m, struct model_space *s, const float min[3], const float max[3], uint32_t layers)
{
    uint64_t entities = 0, players = 0, right = 0, least = 0, most = 0;
    unsigned faults = model_box_faults(s->dims, min, max);
    int rc = model_judge(m, "count", 0, aoi_query_count(model_core_space(m, s), min, max, layers, &entities, &players), faults, 0);
    if (rc != AOI_OK) return rc;
    for (uint32_t i = 0; i < s->entities.n; i++)
        right += wanted(&s->entities.at[i], layers) && model_in_box(s->dims, s->entities.at[i].v.pos, min, max);
    for (uint32_t i = 0; i < s->players.n; i++) {
        const struct model_player *p = &s->players.at[i];
        int touch = -1;
        for (uint32_t k = 0; k < p->units.n; k++) {
            int t = touches(s, model_entity(s, p->units.at[k].entity), min, max);
            if (t > touch) touch = t;
        }
        bool view = p->has_viewport;
        for (uint32_t a = 0; view && a < s->dims; a++) view = p->min[a] <= max[a] && min[a] <= p->max[a];
        least += touch > 0 || view;
        most += touch >= 0 || view;
    }
    REQUIRE(entities == right, "count gives %llu entities, not %llu", (unsigned long long)entities, (unsigned long long)right);
    REQUIRE(least <= players && players <= most, "count gives %llu players, not %llu to %llu", (unsigned long long)players, (unsigned long long)least,
            (unsigned long long)most);
    return (int)entities;
}

int model_query_view(struct model *m, struct model_space *s, uint64_t player, size_t limit)
{
    const struct model_player *p = model_player(s, player);
    unsigned faults = player == 0 ? CODE(AOI_EINVAL) | CODE(AOI_ENOPLAYER) : p == NULL ? CODE(AOI_ENOPLAYER) : 0;
    uint64_t cursor = 0, seq = 0, before = 0;
    uint32_t found = 0;
    do {
        int rc = model_judge(m, "view query", player, aoi_query_view(model_core_space(m, s), player, cursor, limit, &m->rows, &seq), faults, 0);
        if (rc != AOI_OK) return rc;
        REQUIRE(seq == p->seq, "view query gives seq %llu, not %llu", (unsigned long long)seq, (unsigned long long)p->seq);
        REQUIRE(m->rows.n <= limit, "a page over its limit");
        before = cursor;
        cursor = m->rows.next;
        for (size_t i = 0; i < m->rows.n; i++) {
            uint64_t id = m->rows.id[i];
            REQUIRE(model_told(p, id) != NULL && id > before && (cursor == 0 || id <= cursor), "row %llu does not belong here",
                    (unsigned long long)id);
            for (size_t k = 0; k < i && i < 100; k++) REQUIRE(m->rows.id[k] != id, "row %llu comes twice", (unsigned long long)id);
        }
        found += (uint32_t)m->rows.n;
    } while (cursor != 0);
    REQUIRE(found == p->told.n, "view query gives %u, not %u", found, p->told.n);
    return (int)found;
}
