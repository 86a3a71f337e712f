/* mirror.c: the model's sink: every player's mirror, and whether each delta is exactly what it should be. */
#include <string.h>

#include "model.h"

/* Sets seen of every entity; returns how many are. */
static uint32_t look(struct model_space *s, const struct model_player *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->entities.n; i++) {
        s->entities.at[i].seen = model_player_sees(s, p, &s->entities.at[i]);
        n += s->entities.at[i].seen;
    }
    return n;
}

/* ------------------------------------------------------------------------------------------------------------- judging a delta */

size_t model_sink_room(void *ctx, aoi_owner owner)
{
    struct model *m = ctx;
    REQUIRE(m->flushing != NULL, "room() outside a flush");
    REQUIRE(owner < MODEL_OWNERS, "room() for owner %u", owner);
    m->room_last[owner] = m->room[owner];
    if (m->room[owner] < m->room_min[owner]) m->room_min[owner] = m->room[owner];
    return m->room[owner];
}

#define FAIL_ABOUT(d, ...) fail_about(d, __LINE__, __VA_ARGS__)
static _Noreturn void fail_about(const struct aoi_delta *d, int line, const char *what, uint64_t id)
{
    model_fail("line %d: space %llu flush %llu player %llu seq %llu%s: %s %llu", line, (unsigned long long)d->space, (unsigned long long)d->flush,
               (unsigned long long)d->player, (unsigned long long)d->seq, d->full ? " full" : "", what, (unsigned long long)id);
}

static void take_leaves(struct model_space *s, struct model_player *p, const struct aoi_delta *d)
{
    for (size_t i = 0; i < d->leave_n; i++) {
        struct model_told *t = model_told(p, d->leave_id[i]);
        if (t == NULL) FAIL_ABOUT(d, "leave of what was never told:", d->leave_id[i]);
        if (t->gone) FAIL_ABOUT(d, "leaves twice:", t->id);
        const struct model_entity *e = model_entity(s, t->id);
        if (e != NULL && e->identity == t->identity && e->seen) FAIL_ABOUT(d, "leaves although it is visible:", t->id);
        t->gone = true;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->told.n; i++) {
        struct model_told *t = &p->told.at[i];
        if (t->gone) continue;
        t->fresh = t->moved = t->paid = t->layered = false;
        p->told.at[kept++] = *t;
    }
    p->told.n = kept;
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const struct model_told *)a)->id, y = ((const struct model_told *)b)->id;
    return x < y ? -1 : x > y;
}

static struct model_value entered(const struct model_space *s, const struct aoi_delta *d, size_t i)
{
    const struct aoi_enters *in = &d->enters;
    struct model_value v = {.pos = {in->x[i], in->y[i], s->dims == 3 ? in->z[i] : 0}, .layers = in->layers[i]};
    if (s->set.extra) v.extra = in->extra[i];
    if (in->payload != NULL) {
        v.payload_len = in->payload_len[i];
        v.payload_hash = model_hash(in->payload[i], v.payload_len);
    } else {
        v.payload_hash = model_hash(NULL, 0);
    }
    return v;
}

static void take_enters(struct model_space *s, struct model_player *p, const struct aoi_delta *d)
{
    uint32_t old = p->told.n;
    array_reserve(&p->told, old + d->enters.n);
    for (size_t i = 0; i < d->enters.n; i++) {
        uint64_t id = d->enters.id[i];
        const struct model_entity *e = model_entity(s, id);
        if (e == NULL) FAIL_ABOUT(d, "enter of what does not exist:", id);
        if (!e->seen) FAIL_ABOUT(d, "enter of what is not visible:", id);
        struct model_value v = entered(s, d, i);
        if (!model_same_place(s, &v, &e->v)) FAIL_ABOUT(d, "enter with a wrong position or extra:", id);
        if (v.layers != e->v.layers) FAIL_ABOUT(d, "enter with wrong layers:", id);
        if (!model_same_payload(&v, &e->v)) FAIL_ABOUT(d, "enter with a wrong payload:", id);
        p->told.at[p->told.n++] = (struct model_told){.id = id, .identity = e->identity, .v = v, .fresh = true};
    }
    if (p->told.n > old) qsort(p->told.at, p->told.n, sizeof *p->told.at, by_id);
    for (uint32_t i = 1; i < p->told.n; i++)
        if (p->told.at[i].id == p->told.at[i - 1].id) FAIL_ABOUT(d, "enters although it was told:", p->told.at[i].id);
}

/* The told record that a section after the enters names, with the entity as it is. */
static struct model_told *named(struct model_space *s, struct model_player *p, const struct aoi_delta *d, uint64_t id, const struct model_entity **e)
{
    struct model_told *t = model_told(p, id);
    if (t == NULL) FAIL_ABOUT(d, "change of what was never told:", id);
    if (t->fresh) FAIL_ABOUT(d, "change of what enters in the same delta:", id);
    *e = model_entity(s, id);
    if (*e == NULL || (*e)->identity != t->identity || !(*e)->seen) FAIL_ABOUT(d, "change of what is not visible:", id);
    return t;
}

static void take_updates(struct model_space *s, struct model_player *p, const struct aoi_delta *d)
{
    const struct aoi_updates *up = &d->updates;
    for (size_t i = 0; i < up->n; i++) {
        const struct model_entity *e;
        struct model_told *t = named(s, p, d, up->id[i], &e);
        if (t->moved) FAIL_ABOUT(d, "updated twice:", t->id);
        struct model_value v = {.pos = {up->x[i], up->y[i], s->dims == 3 ? up->z[i] : 0}, .extra = s->set.extra ? up->extra[i] : 0};
        if (!model_same_place(s, &v, &e->v)) FAIL_ABOUT(d, "update with a wrong position or extra:", t->id);
        if (model_same_place(s, &v, &t->v) && !p->skipped) FAIL_ABOUT(d, "update with what was told already:", t->id);
        memcpy(t->v.pos, v.pos, sizeof v.pos);
        t->v.extra = v.extra;
        t->moved = true;
    }
}

static void take_states(struct model_space *s, struct model_player *p, const struct aoi_delta *d)
{
    const struct model_entity *e;
    for (size_t i = 0; i < d->payload_n; i++) {
        struct model_told *t = named(s, p, d, d->payload_id[i], &e);
        if (t->paid) FAIL_ABOUT(d, "payload told twice:", t->id);
        struct model_value v = {.payload_len = d->payload_len[i], .payload_hash = model_hash(d->payload[i], d->payload_len[i])};
        if (!model_same_payload(&v, &e->v)) FAIL_ABOUT(d, "a wrong payload:", t->id);
        if (model_same_payload(&v, &t->v) && !p->skipped && !t->owed) FAIL_ABOUT(d, "a payload that was told already:", t->id);
        t->v.payload_len = v.payload_len;
        t->v.payload_hash = v.payload_hash;
        t->paid = true;
        t->owed = false;
    }
    for (size_t i = 0; i < d->layers_n; i++) {
        struct model_told *t = named(s, p, d, d->layers_id[i], &e);
        if (t->layered) FAIL_ABOUT(d, "layers told twice:", t->id);
        if (d->layers[i] != e->v.layers) FAIL_ABOUT(d, "wrong layers:", t->id);
        if (d->layers[i] == t->v.layers && !p->skipped) FAIL_ABOUT(d, "layers that were told already:", t->id);
        t->v.layers = d->layers[i];
        t->layered = true;
    }
}

/* What the room must have had space for at least; and what it would surely have had space for. */
static size_t least_bytes(const struct aoi_delta *d)
{
    size_t bytes = AOI_DELTA_OVERHEAD + AOI_UPDATE_BYTES * d->updates.n + AOI_ENTER_BYTES * d->enters.n;
    for (size_t i = 0; d->enters.payload != NULL && i < d->enters.n; i++) bytes += d->enters.payload_len[i];
    for (size_t i = 0; i < d->payload_n; i++) bytes += d->payload_len[i];
    return bytes;
}

static size_t most_bytes(const struct model_space *s, const struct aoi_delta *d, size_t enters, size_t payloads)
{
    size_t each = 2 * (AOI_ENTER_BYTES + 64), longest = 0;
    for (uint32_t i = 0; i < s->entities.n; i++)
        if (s->entities.at[i].v.payload_len > longest) longest = s->entities.at[i].v.payload_len;
    return 2 * (AOI_DELTA_OVERHEAD + 64) + each * (d->leave_n + d->updates.n + d->payload_n + d->layers_n) +
           (each + longest) * (d->enters.n + d->payload_n + enters + payloads);
}

/* Everything that is visible was told as it is, but for what the room held back. */
static void check_complete(const struct model *m, const struct model_space *s, struct model_player *p, const struct aoi_delta *d, uint32_t seen)
{
    size_t room = m->room_last[p->owner], late = 0;
    for (uint32_t i = 0; i < p->told.n; i++) {
        struct model_told *t = &p->told.at[i];
        const struct model_entity *e = model_entity(s, t->id);
        if (e == NULL || e->identity != t->identity || !e->seen) FAIL_ABOUT(d, "no leave of", t->id);
        if (!model_same_place(s, &e->v, &t->v)) FAIL_ABOUT(d, "no update of", t->id);
        if (e->v.layers != t->v.layers) FAIL_ABOUT(d, "no layers of", t->id);
        bool same = model_same_payload(&e->v, &t->v);
        late += !same;
        t->owed |= !same || (p->skipped && room < MODEL_NO_LIMIT && !t->fresh && !t->paid);
    }
    size_t held = seen - p->told.n;
    if (held + late > 0) {
        if (room == MODEL_NO_LIMIT) FAIL_ABOUT(d, held > 0 ? "enters missing:" : "payloads missing:", held + late);
        if (most_bytes(s, d, held, late) <= room) FAIL_ABOUT(d, "held back though there was room:", held + late);
    }
    if (d->enters.n + d->payload_n > 0 && least_bytes(d) > room) FAIL_ABOUT(d, "passed the room of", room);
}

static void take_closed(struct model *m, struct model_player *p, const struct aoi_delta *d)
{
    if (d->full || d->leave_n + d->enters.n + d->updates.n + d->payload_n + d->layers_n > 0) FAIL_ABOUT(d, "a last delta that is not empty", 0);
    if (m->flushing != NULL) FAIL_ABOUT(d, "closed by a flush", 0);
    p->closed = true;
    m->closed_n++;
}

static void check_header(const struct model *m, const struct model_space *s, const struct model_player *p, const struct aoi_delta *d)
{
    if (s != m->flushing) FAIL_ABOUT(d, "a delta outside the flush of its space", 0);
    if (d->flush != s->flush + 1 || d->tag != m->tag || d->time_us != m->time_us) FAIL_ABOUT(d, "wrong flush, tag or time", d->tag);
    if (p->delivered) FAIL_ABOUT(d, "two deltas in one flush", 0);
    if (d->full != p->full_due) FAIL_ABOUT(d, "full is wrong:", d->full);
    if (m->room_last[p->owner] == 0) FAIL_ABOUT(d, "delivered without room", 0);
    size_t rest = d->leave_n + d->updates.n + d->payload_n + d->layers_n;
    if (d->full && rest > 0) FAIL_ABOUT(d, "a full delta has more than enters", rest);
    if (!d->full && d->enters.n + rest == 0) FAIL_ABOUT(d, "an empty delta", 0);
}

void model_sink_deliver(void *ctx, const struct aoi_delta *d)
{
    struct model *m = ctx;
    struct model_space *s = model_space(m, d->space);
    struct model_player *p = s == NULL ? NULL : model_player(s, d->player);
    if (p == NULL || p->closed) FAIL_ABOUT(d, "for a player that does not exist:", d->player);
    if (d->owner != p->owner) FAIL_ABOUT(d, "for a wrong owner", d->owner);
    if (d->seq != p->seq + 1) FAIL_ABOUT(d, "a wrong number, after", p->seq);
    p->seq = d->seq;
    m->deltas++;
    if (d->closed) {
        take_closed(m, p, d);
    } else {
        check_header(m, s, p, d);
        uint32_t seen = look(s, p);
        if (d->full) p->told.n = 0;
        take_leaves(s, p, d);
        take_enters(s, p, d);
        take_updates(s, p, d);
        take_states(s, p, d);
        check_complete(m, s, p, d, seen);
        p->delivered = true;
        p->full_due = p->skipped = false;
        m->enters += d->enters.n;
        m->leaves += d->leave_n;
        m->updates += d->updates.n;
        if (m->drains[d->owner]) m->room[d->owner] -= m->room[d->owner] < least_bytes(d) ? m->room[d->owner] : least_bytes(d);
    }
    if (m->on_delta != NULL) m->on_delta(m->on_delta_ctx, d);
}

/* ------------------------------------------------------------------------------------------------------------- the flush */

/* What is wrong with one entity in a player's mirror: NULL: nothing. *late: a room may have held it back. */
static const char *wrong(const struct model_space *s, const struct model_told *t, bool *late)
{
    const struct model_entity *e = model_entity(s, t->id);
    *late = false;
    if (e == NULL || e->identity != t->identity || !e->seen) return "leave";
    if (!model_same_place(s, &e->v, &t->v)) return "update";
    if (e->v.layers != t->v.layers) return "change of layers";
    *late = true;
    return model_same_payload(&e->v, &t->v) ? NULL : "change of payload";
}

/* After the flush: is there anything that the player should have been told? Returns whether work is left for it. */
static bool check_player(const struct model *m, struct model_space *s, struct model_player *p)
{
    size_t room = m->room_min[p->owner];
    unsigned long long flush = s->flush, id = p->id;
    bool left = p->full_due;
    REQUIRE(!p->full_due || room == 0, "flush %llu: player %llu got no full delta", flush, id);
    look(s, p);
    for (uint32_t i = 0; i < p->told.n; i++) {
        struct model_told *t = &p->told.at[i];
        bool late;
        t->owed |= p->skipped && !p->delivered && room < MODEL_NO_LIMIT;
        const char *what = wrong(s, t, &late);
        if (what == NULL) continue;
        left = true;
        t->owed |= late;
        REQUIRE(room == 0 || (late && room < MODEL_NO_LIMIT), "flush %llu: player %llu got no %s of %llu", flush, id, what,
                (unsigned long long)t->id);
    }
    for (uint32_t i = 0; i < s->entities.n; i++) {
        const struct model_entity *e = &s->entities.at[i];
        if (!e->seen || model_told(p, e->id) != NULL) continue;
        left = true;
        REQUIRE(room < MODEL_NO_LIMIT, "flush %llu: player %llu got no enter of %llu", flush, id, (unsigned long long)e->id);
    }
    if (!p->delivered) p->skipped = room == 0;
    return left;
}

static void check_stats(struct model *m, const struct model_space *s)
{
    struct aoi_stats stats = {0};
    aoi_space_stats(model_core_space(m, s), &stats);
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < s->players.n; i++) pairs += s->players.at[i].told.n;
    m->pairs += pairs;
    REQUIRE(stats.entities == s->entities.n && stats.players == s->players.n && stats.pairs == pairs && stats.flushes == s->flush,
            "stats: %llu entities, %llu players, %llu pairs, %llu flushes; they are %u, %u, %llu, %llu", (unsigned long long)stats.entities,
            (unsigned long long)stats.players, (unsigned long long)stats.pairs, (unsigned long long)stats.flushes, s->entities.n, s->players.n,
            (unsigned long long)pairs, (unsigned long long)s->flush);
}

bool model_flush(struct model *m, struct model_space *s)
{
    for (uint32_t i = 0; i < s->players.n; i++) s->players.at[i].delivered = false;
    for (int o = 0; o < MODEL_OWNERS; o++) m->room_min[o] = m->room_last[o] = MODEL_NO_LIMIT;
    m->flushing = s;
    struct aoi_flush_info info = {.tag = ++m->tag, .time_us = m->time_us += 1000};
    aoi_flush(model_core_space(m, s), &info);
    m->flushing = NULL;
    m->flushes++;
    REQUIRE(info.flush == ++s->flush, "flush number %llu, not %llu", (unsigned long long)info.flush, (unsigned long long)s->flush);
    bool left = false, limited = false;
    for (uint32_t i = 0; i < s->players.n; i++) left |= check_player(m, s, &s->players.at[i]);
    for (int o = 0; o < MODEL_OWNERS; o++) limited |= m->room_min[o] < MODEL_NO_LIMIT;
    REQUIRE(info.pending || !left, "work is left, but not reported as pending");
    REQUIRE(limited || !info.pending, "pending, but nobody was short of room");
    REQUIRE(aoi_space_dirty(model_core_space(m, s)) == info.pending, "dirty after a flush is %d, pending %d", aoi_space_dirty(model_core_space(m, s)),
            info.pending);
    check_stats(m, s);
    return info.pending;
}
