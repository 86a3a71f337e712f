/* snapshot.c: a world as bytes, and a world from bytes.
 *
 * Loading goes through the commands of aoi.h, which check whatever a peer could get wrong, so that no bytes can make a world that commands could not make. What is saved is the
 * truth and what was told, not how it is kept: the index, watches and stamps are made anew. Nobody is connected to a world that was loaded, and whoever comes back gets a
 * full delta; so of a view only who stands in it matters, not as of when, and what was removed need not be remembered.
 *
 * Space by space: its settings, its entities by slot, of which the number in the file is the slot to come, and its players.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "core/cover.h"
#include "core/space.h"

#define CHUNK ((size_t)64 * 1024)
#define SPACE_BYTES 96 /* of each record, at least */
#define ENTITY_BYTES 53
#define PLAYER_BYTES 62
#define UNIT_BYTES 5
#define OVERRIDE_BYTES 9
#define TOLD_BYTES 4
#define LONG_AGO UINT32_MAX

/* ------------------------------------------------------------------------------------------------------------- saving */

struct writer {
    struct buf out;
    aoi_write_fn *write;
    void *ctx;
    uint64_t now_ms;
    aoi__slots number; /* by slot: which of the entities it is; of tombstones AOI__NONE */
    aoi__slots view;   /* scratch */
};

static void pass_on(struct writer *w, size_t keep)
{
    if (buf_len(&w->out) <= keep) return;
    w->write(w->ctx, buf_data(&w->out), buf_len(&w->out));
    buf_consume(&w->out, buf_len(&w->out));
}

static void put_tiers(struct buf *out, const struct aoi_tiers *tiers)
{
    bytes_put(out, tiers->n, 1);
    for (uint32_t i = 0; i < tiers->n; i++) {
        bytes_put_float(out, tiers->at[i].distance);
        bytes_put(out, tiers->at[i].period, 4);
    }
    bytes_put(out, tiers->beyond, 4);
}

static void put_settings(struct buf *out, const struct aoi_settings *set)
{
    bytes_put(out, set->dimensions, 1);
    bytes_put(out, set->index, 1);
    bytes_put(out, set->shape, 1);
    bytes_put_double(out, set->cell_size);
    bytes_put(out, set->cell_range, 4);
    bytes_put(out, set->bounded, 1);
    for (uint32_t a = 0; a < 3; a++) bytes_put_float(out, set->bounded ? set->min[a] : 0);
    for (uint32_t a = 0; a < 3; a++) bytes_put_float(out, set->bounded ? set->max[a] : 0);
    bytes_put(out, set->extra, 1);
    bytes_put(out, set->flush_ms, 4);
    bytes_put(out, set->persistent, 1);
    bytes_put_float(out, set->leave_margin);
    bytes_put(out, set->min_stay_ms, 4);
    bytes_put(out, set->max_view, 4);
    bytes_put(out, set->max_enter_per_flush, 4);
    put_tiers(out, &set->tiers);
}

static void put_entity(struct buf *out, const struct aoi_space *space, uint32_t slot)
{
    const struct aoi__hot *h = &space->hot[slot];
    const struct aoi__cold *c = &space->cold[slot];
    const struct aoi__rare *rare = aoi__rare(space, slot);
    uint32_t len = rare->payload == NULL ? 0 : rare->payload->len;
    bytes_put(out, h->id, 8);
    for (uint32_t a = 0; a < 3; a++) bytes_put_float(out, h->pos[a]);
    bytes_put(out, h->extra, 4);
    bytes_put_float(out, space->own[slot].radius);
    bytes_put_float(out, rare->appeal);
    bytes_put(out, h->layers, 4);
    bytes_put(out, rare->priority, 4);
    bytes_put(out, (c->flags & AOI__REPORT) != 0, 1);
    bytes_put(out, space->own[slot].owner, 4);
    bytes_put(out, c->flags & AOI__RELEASED ? idmap_get(&space->released, h->id) : AOI__NONE, 4);
    bytes_put(out, len, 4);
    if (len > 0) buf_append(out, rare->payload->at, len);
}

/* Before how many ms it entered. */
static uint32_t age_ms(const struct writer *w, const struct aoi__player *p, uint32_t i)
{
    uint64_t since = i < p->since.n ? p->since.at[i] : 0;
    if (since == 0) return LONG_AGO;
    uint64_t age = w->now_ms + 1 > since ? w->now_ms + 1 - since : 0;
    return age < LONG_AGO ? (uint32_t)age : LONG_AGO;
}

static void put_view(struct writer *w, const struct aoi_space *space, const struct aoi__player *p)
{
    uint32_t n = 0;
    w->view.n = 0;
    aoi__view_slots(space, p, &w->view); /* what stands in p->told comes first, and in its order */
    for (uint32_t i = 0; i < w->view.n; i++) n += aoi__alive(space, w->view.at[i]);
    bytes_put(&w->out, n, 4);
    for (uint32_t i = 0; i < w->view.n; i++) {
        if (!aoi__alive(space, w->view.at[i])) continue;
        bytes_put(&w->out, w->number.at[w->view.at[i]], 4);
        if (space->set.min_stay_ms > 0) bytes_put(&w->out, age_ms(w, p, i), 4);
        pass_on(w, CHUNK);
    }
}

static void put_player(struct writer *w, const struct aoi_space *space, const struct aoi__player *p)
{
    struct buf *out = &w->out;
    bytes_put(out, p->id, 8);
    bytes_put(out, p->owner, 4);
    bytes_put(out, p->released_to, 4);
    bytes_put(out, p->set.mask, 4);
    bytes_put(out, p->set.max_view, 4);
    bytes_put_float(out, p->set.leave_margin);
    bytes_put(out, p->set.max_enter_per_flush, 4);
    bytes_put(out, p->set.presence_only, 1);
    bytes_put(out, p->seq, 8);
    bytes_put(out, p->lost + space->messages.n, 8); /* those of this window have nobody to whom they could be told any more */
    bytes_put(out, p->viewport != AOI__NONE, 1);
    for (uint32_t a = 0; a < 3 && p->viewport != AOI__NONE; a++) {
        bytes_put_float(out, space->watches.at[p->viewport].base_lo[a]);
        bytes_put_float(out, space->watches.at[p->viewport].base_hi[a]);
    }
    bytes_put(out, p->units.n, 4);
    for (uint32_t i = 0; i < p->units.n; i++) {
        bytes_put(out, w->number.at[space->watches.at[p->units.at[i].watch].slot], 4);
        bytes_put(out, p->units.at[i].include_self, 1);
    }
    bytes_put(out, p->overrides.n, 4);
    for (uint32_t i = 0; i < p->overrides.n; i++) {
        bytes_put(out, p->overrides.at[i].id, 8);
        bytes_put(out, p->overrides.at[i].show, 1);
    }
    put_view(w, space, p);
}

static void put_space(struct writer *w, const struct aoi_space *space)
{
    bytes_put(&w->out, space->id, 8);
    bytes_put(&w->out, space->owner, 4);
    bytes_put(&w->out, space->configured, 1);
    put_settings(&w->out, &space->set);
    bytes_put(&w->out, space->flush, 8);
    bytes_put(&w->out, space->entity_n, 4);
    w->number.n = 0;
    for (uint32_t s = 0, n = 0; s < space->slot_n; s++) {
        bool alive = aoi__alive(space, s);
        *array_add(&w->number) = alive ? n++ : AOI__NONE;
        if (alive) put_entity(&w->out, space, s);
        pass_on(w, CHUNK);
    }
    bytes_put(&w->out, space->player_n, 4);
    for (uint32_t p = 0; p < space->players.n; p++) {
        if (space->players.at[p].id != 0) put_player(w, space, &space->players.at[p]);
        pass_on(w, CHUNK);
    }
}

void aoi_world_save(const struct aoi_world *world, uint64_t now_ms, aoi_write_fn *write, void *ctx)
{
    struct writer w = {.write = write, .ctx = ctx, .now_ms = now_ms};
    bytes_put(&w.out, world->spaces.n, 4);
    for (uint32_t i = 0; i < world->spaces.n; i++) put_space(&w, world->spaces.at[i]);
    pass_on(&w, 0);
    buf_clear(&w.out);
    array_clear(&w.number);
    array_clear(&w.view);
}

/* ------------------------------------------------------------------------------------------------------------- loading */

struct reader {
    struct bytes_in in;
    const struct aoi_load *from;
    struct aoi_world *world;
    struct aoi_space *space;
    uint64_t space_id, entity_id, player_id; /* where it is, for the fault; 0: nowhere yet */
    aoi__slots seen;                         /* by slot: 1 + the last player slot of which it was read that it was told of it */
    bool timed;                              /* views are saved with the times of entering */
    char over[64];                           /* the fault, where it is a limit */
};

/* What a command said of what was read, and which limit it may be over. False: it is no good. */
static bool took(struct reader *r, int err, const char *limit)
{
    static const char *const faults[] = {[-AOI_EINVAL] = "a value is out of range",
                                         [-AOI_EBOUNDS] = "it lies outside the bounds of its space",
                                         [-AOI_ENOENTITY] = "it names an entity that is not there",
                                         [-AOI_EDUPSPACE] = "it stands there twice",
                                         [-AOI_EDUPENTITY] = "it stands there twice",
                                         [-AOI_EOWNER] = "it stands there twice, with two owners"};
    if (err == AOI_OK && r->in.fault == NULL) return true;
    if (err == AOI_ELIMIT) {
        snprintf(r->over, sizeof r->over, "it is over %s of the configuration", limit);
        bytes_fail(&r->in, r->over);
        return false;
    }
    bool named = err < 0 && (size_t)-err < sizeof faults / sizeof *faults && faults[-err] != NULL;
    bytes_fail(&r->in, named ? faults[-err] : "it is no good");
    return false;
}

static aoi_owner take_owner(struct reader *r)
{
    aoi_owner owner = (aoi_owner)bytes_take(&r->in, 4);
    if (owner != 0 && r->from->knows != NULL && !r->from->knows(r->from->ctx, owner)) bytes_fail(&r->in, "its owner is not there");
    return owner;
}

/* AOI__NONE: to nobody. */
static uint32_t take_released(struct reader *r)
{
    struct bytes_in ahead = r->in;
    if (bytes_take(&ahead, 4) != AOI__NONE || ahead.fault != NULL) return take_owner(r);
    r->in = ahead;
    return AOI__NONE;
}

static void take_tiers(struct bytes_in *in, struct aoi_tiers *tiers)
{
    tiers->n = (uint32_t)bytes_take(in, 1);
    if (tiers->n > AOI_TIERS_MAX) bytes_fail(in, "more tiers than there may be");
    for (uint32_t i = 0; i < tiers->n && in->fault == NULL; i++) {
        tiers->at[i].distance = bytes_take_float(in);
        tiers->at[i].period = (uint32_t)bytes_take(in, 4);
    }
    tiers->beyond = (uint32_t)bytes_take(in, 4);
}

static void take_settings(struct bytes_in *in, struct aoi_settings *set)
{
    set->dimensions = (uint32_t)bytes_take(in, 1);
    set->index = (uint32_t)bytes_take(in, 1);
    set->shape = (uint32_t)bytes_take(in, 1);
    set->cell_size = bytes_take_double(in);
    set->cell_range = (uint32_t)bytes_take(in, 4);
    set->bounded = bytes_take_flag(in);
    for (uint32_t a = 0; a < 3; a++) set->min[a] = bytes_take_float(in);
    for (uint32_t a = 0; a < 3; a++) set->max[a] = bytes_take_float(in);
    set->extra = bytes_take_flag(in);
    set->flush_ms = (uint32_t)bytes_take(in, 4);
    set->persistent = bytes_take_flag(in);
    set->leave_margin = bytes_take_float(in);
    set->min_stay_ms = (uint32_t)bytes_take(in, 4);
    set->max_view = (uint32_t)bytes_take(in, 4);
    set->max_enter_per_flush = (uint32_t)bytes_take(in, 4);
    take_tiers(in, &set->tiers);
}

static void take_entity(struct reader *r)
{
    struct bytes_in *in = &r->in;
    struct aoi_entity e = {.id = bytes_take(in, 8)};
    r->entity_id = e.id;
    for (uint32_t a = 0; a < 3; a++) e.pos[a] = bytes_take_float(in);
    e.extra = (uint32_t)bytes_take(in, 4);
    e.radius = bytes_take_float(in);
    e.appeal = bytes_take_float(in);
    e.layers = (uint32_t)bytes_take(in, 4);
    e.priority = (uint32_t)bytes_take(in, 4);
    e.report_observed = bytes_take_flag(in);
    aoi_owner owner = take_owner(r);
    uint32_t released_to = take_released(r);
    e.payload_len = (uint32_t)bytes_take(in, 4);
    e.payload = bytes_take_raw(in, e.payload_len);
    if (in->fault != NULL) return;
    const struct aoi_limits *limits = &r->world->limits;
    bool too_wide = limits->max_radius > 0 && e.radius > limits->max_radius; /* which to others is a bad argument */
    int err = too_wide ? AOI_ELIMIT : aoi_entity_add(r->space, owner, AOI_ADD_NEW, &e);
    if (!took(r, err, too_wide ? "max_radius" : e.payload_len > limits->max_payload ? "max_payload" : "max_entities")) return;
    if (e.layers == 0) took(r, aoi_entity_set_layers(r->space, owner, e.id, 0), NULL); /* which for an entity that is added means the default */
    if (released_to != AOI__NONE) took(r, aoi_entity_release(r->space, owner, e.id, released_to), NULL);
}

/* The slot of the entity of the number that comes next. */
static uint32_t take_slot(struct reader *r)
{
    uint32_t slot = (uint32_t)bytes_take(&r->in, 4);
    if (slot < r->space->slot_n) return slot;
    bytes_fail(&r->in, "it names an entity that is not there");
    return AOI__NONE;
}

static void take_units(struct reader *r, aoi_owner owner)
{
    uint32_t n = bytes_take_count(&r->in, UNIT_BYTES);
    for (uint32_t i = 0; i < n && r->in.fault == NULL; i++) {
        uint32_t slot = take_slot(r);
        bool self = bytes_take_flag(&r->in);
        if (r->in.fault != NULL || !took(r, aoi_subscribe(r->space, owner, r->player_id, r->space->hot[slot].id, self), "max_units")) return;
        if (r->space->players.at[r->space->players.n - 1].units.n != i + 1) bytes_fail(&r->in, "it is subscribed twice to the same entity");
    }
}

static void take_overrides(struct reader *r, aoi_owner owner)
{
    uint32_t n = bytes_take_count(&r->in, OVERRIDE_BYTES);
    for (uint32_t i = 0; i < n && r->in.fault == NULL; i++) {
        uint64_t id = bytes_take(&r->in, 8);
        enum aoi_override kind = bytes_take_flag(&r->in) ? AOI_OVERRIDE_SHOW : AOI_OVERRIDE_HIDE;
        if (r->in.fault != NULL || !took(r, aoi_player_override(r->space, owner, r->player_id, id, kind), "max_overrides")) return;
        if (r->space->players.at[r->space->players.n - 1].overrides.n != i + 1) bytes_fail(&r->in, "it has two overrides for the same entity");
    }
}

/* When it entered, as aoi__player.since has it. Where this machine has not run for so long, rather later than too early. */
static uint64_t since(const struct aoi_load *from, uint64_t age)
{
    if (age == LONG_AGO) return 0;
    age += from->passed_ms;
    return age < from->now_ms ? from->now_ms - age + 1 : 1;
}

static void take_view(struct reader *r, uint32_t player)
{
    struct aoi_space *space = r->space;
    uint32_t n = bytes_take_count(&r->in, r->timed ? 2 * TOLD_BYTES : TOLD_BYTES);
    for (uint32_t i = 0; i < n && r->in.fault == NULL; i++) {
        uint32_t slot = take_slot(r), age = r->timed ? (uint32_t)bytes_take(&r->in, 4) : LONG_AGO;
        if (r->in.fault != NULL) return;
        if (r->seen.at[slot] == player + 1) {
            bytes_fail(&r->in, "it was told twice of the same entity");
            return;
        }
        r->seen.at[slot] = player + 1;
        struct aoi__player *p = &space->players.at[player];
        *array_add(&p->told) = slot;
        if (space->set.min_stay_ms > 0) *array_add(&p->since) = since(r->from, age);
        aoi__slot_told(space, slot);
    }
}

static void take_viewport(struct reader *r, aoi_owner owner)
{
    float lo[3], hi[3];
    for (uint32_t a = 0; a < 3; a++) {
        lo[a] = bytes_take_float(&r->in);
        hi[a] = bytes_take_float(&r->in);
    }
    if (r->in.fault == NULL) took(r, aoi_viewport_set(r->space, owner, r->player_id, lo, hi), "max_players");
}

static void take_player(struct reader *r)
{
    struct bytes_in *in = &r->in;
    struct aoi_player_settings set = {0};
    uint32_t player = r->space->players.n;
    r->player_id = bytes_take(in, 8);
    aoi_owner owner = take_owner(r);
    uint32_t released_to = take_released(r);
    set.mask = (uint32_t)bytes_take(in, 4);
    set.max_view = (uint32_t)bytes_take(in, 4);
    set.leave_margin = bytes_take_float(in);
    set.max_enter_per_flush = (uint32_t)bytes_take(in, 4);
    set.presence_only = bytes_take_flag(in);
    uint64_t seq = bytes_take(in, 8), lost = bytes_take(in, 8);
    bool viewport = bytes_take_flag(in);
    if (in->fault != NULL || !took(r, aoi_player_open(r->space, owner, r->player_id, &set), "max_players")) return;
    if (r->space->players.n == player) {
        bytes_fail(in, "it stands there twice");
        return;
    }
    struct aoi__player *p = &r->space->players.at[player];
    p->seq = seq;
    p->lost = lost;
    p->full = true;
    if (released_to != AOI__NONE) took(r, aoi_player_release(r->space, owner, r->player_id, released_to), NULL);
    if (viewport) take_viewport(r, owner);
    take_units(r, owner);
    take_overrides(r, owner);
    take_view(r, player);
}

static void take_members(struct reader *r)
{
    uint32_t entities = bytes_take_count(&r->in, ENTITY_BYTES);
    for (uint32_t i = 0; i < entities && r->in.fault == NULL; i++) take_entity(r);
    if (r->in.fault != NULL) return;
    r->entity_id = 0;
    array_reserve(&r->seen, (size_t)entities + 1);
    memset(r->seen.at, 0, entities * sizeof *r->seen.at);
    uint32_t players = bytes_take_count(&r->in, PLAYER_BYTES);
    for (uint32_t i = 0; i < players && r->in.fault == NULL; i++) take_player(r);
    if (r->in.fault == NULL) r->player_id = 0;
}

static void take_space(struct reader *r)
{
    struct aoi_settings saved = {0}, set;
    const struct aoi_load *from = r->from;
    uint64_t id = bytes_take(&r->in, 8);
    if (id <= r->space_id) bytes_fail(&r->in, "its spaces do not ascend by id");
    r->space_id = id;
    aoi_owner owner = take_owner(r);
    bool configured = bytes_take_flag(&r->in);
    take_settings(&r->in, &saved);
    uint64_t flush = bytes_take(&r->in, 8);
    if (configured && owner != 0) bytes_fail(&r->in, "a space of the configuration has an owner");
    if (r->in.fault != NULL) return;
    set = saved;
    if (from->settings != NULL) {
        configured = from->settings(from->ctx, id, &set);
        if (configured) owner = 0;
    }
    if (!took(r, aoi_space_create(r->world, owner, id, &set, false), "max_spaces")) return;
    r->space = aoi_space_find(r->world, id);
    r->space->configured = configured;
    r->space->flush = flush;
    r->timed = saved.min_stay_ms > 0;
    take_members(r);
}

/* Nobody is connected to what has just been loaded. */
static void all_away(struct aoi_world *world)
{
    for (uint32_t i = 0; i < world->presences.n; i++)
        if (world->presences.at[i].owner != 0) aoi_owner_away(world, world->presences.at[i].owner, true);
}

static void say_why(const struct reader *r, char *why)
{
    const char *what = r->entity_id != 0 ? "entity" : "player";
    unsigned long long member = r->entity_id != 0 ? r->entity_id : r->player_id;
    if (r->space_id == 0)
        snprintf(why, AOI_LOAD_WHY, "%s", r->in.fault);
    else if (member == 0)
        snprintf(why, AOI_LOAD_WHY, "space %llu: %s", (unsigned long long)r->space_id, r->in.fault);
    else
        snprintf(why, AOI_LOAD_WHY, "space %llu, %s %llu: %s", (unsigned long long)r->space_id, what, member, r->in.fault);
}

struct aoi_world *aoi_world_load(const struct aoi_limits *limits, const struct aoi_sink *sink, const struct aoi_load *from, char why[AOI_LOAD_WHY])
{
    struct reader r = {.in = {.at = from->bytes, .left = from->len}, .from = from, .world = aoi_world_new(limits, sink)};
    uint32_t spaces = bytes_take_count(&r.in, SPACE_BYTES);
    for (uint32_t i = 0; i < spaces && r.in.fault == NULL; i++) take_space(&r);
    if (r.in.left > 0) bytes_fail(&r.in, "there are bytes behind the last space");
    array_clear(&r.seen);
    if (r.in.fault == NULL) {
        all_away(r.world);
        return r.world;
    }
    say_why(&r, why);
    aoi_world_free(r.world);
    return NULL;
}
