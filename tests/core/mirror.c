/* mirror.c: the model's sink: every player's mirror, and whether each delta is exactly what it should be. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#include "model.h"

/* ------------------------------------------------------------------------------------------------------------- judging a delta */

size_t model_sink_room(void *ctx, aoi_owner owner)
{
    struct model *m = ctx;
    REQUIRE(m->flushing != NULL, "room() outside a flush");
    REQUIRE(owner < MODEL_OWNERS && !m->away[owner], "room() for owner %u", owner);
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

/* How a full delta restates it: what it was told to be before, NULL: it was not told. */
static const struct model_told *told_before(const struct model *m, const struct model_entity *e)
{
    for (uint32_t lo = 0, hi = m->before.n; lo < hi;) {
        uint32_t mid = (lo + hi) / 2;
        const struct model_told *t = &m->before.at[mid];
        if (t->id == e->id) return t->identity == e->identity ? t : NULL;
        if (t->id < e->id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static void take_enters(const struct model *m, struct model_space *s, struct model_player *p, const struct aoi_delta *d)
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
        const struct model_told *was = d->full ? told_before(m, e) : NULL;
        if (was == NULL && !e->sight.enters) FAIL_ABOUT(d, "enter over the budget, though others rank above it:", id);
        p->told.at[p->told.n++] = (struct model_told){
            .id = id, .identity = e->identity, .v = v, .since = s->set.min_stay_ms > 0 ? m->now_ms : 0, .fresh = true};
        if (was != NULL) p->told.at[p->told.n - 1].since = was->since;
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

static void take_updates(const struct model *m, struct model_space *s, struct model_player *p, const struct aoi_delta *d)
{
    const struct aoi_updates *up = &d->updates;
    for (size_t i = 0; i < up->n; i++) {
        const struct model_entity *e;
        struct model_told *t = named(s, p, d, up->id[i], &e);
        if (t->moved) FAIL_ABOUT(d, "updated twice:", t->id);
        struct model_value v = {.pos = {up->x[i], up->y[i], s->dims == 3 ? up->z[i] : 0}, .extra = s->set.extra ? up->extra[i] : 0};
        if (!model_same_place(s, &v, &e->v)) FAIL_ABOUT(d, "update with a wrong position or extra:", t->id);
        if (p->set.presence_only) FAIL_ABOUT(d, "update for a player that wants presence only:", t->id);
        if (!model_due(m, e, d->flush)) FAIL_ABOUT(d, "update of what is not due:", t->id);
        if (model_same_place(s, &v, &t->v) && !p->skipped && !t->gap) FAIL_ABOUT(d, "update with what was told already:", t->id);
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
    for (size_t i = 0; i < d->message_n; i++) bytes += d->message_len[i];
    return bytes;
}

static size_t longest_message(const struct model_space *s)
{
    size_t longest = 0;
    for (uint32_t i = 0; i < s->messages.n; i++)
        if (s->messages.at[i].len > longest) longest = s->messages.at[i].len;
    return longest;
}

static size_t most_bytes(const struct model_space *s, const struct aoi_delta *d, size_t enters, size_t payloads)
{
    size_t each = 2 * (AOI_ENTER_BYTES + 64), longest = 0;
    for (uint32_t i = 0; i < s->entities.n; i++)
        if (s->entities.at[i].v.payload_len > longest) longest = s->entities.at[i].v.payload_len;
    return 2 * (AOI_DELTA_OVERHEAD + 64) + each * (d->leave_n + d->updates.n + d->payload_n + d->layers_n) +
           (each + longest) * (d->enters.n + d->payload_n + enters + payloads) + (each + longest_message(s)) * s->messages.n;
}

/* Whether the player, as it is told now, has to get the message. */
static bool wants(const struct model_space *s, const struct model_player *p, const struct model_message *message)
{
    if (message->entity == 0) return model_looks_at(s, p, message->min, message->max);
    const struct model_entity *e = model_entity(s, message->entity);
    const struct model_told *t = model_told(p, message->entity);
    return e != NULL && e->identity == message->identity && e->seen && t != NULL && t->identity == e->identity;
}

/* Messages come in order, to those who are to have them; what was not delivered is counted. */
static void take_messages(struct model *m, const struct model_space *s, struct model_player *p, const struct aoi_delta *d)
{
    uint32_t next = 0;
    uint64_t missing = 0;
    for (size_t i = 0; i < d->message_n; i++, next++) {
        uint64_t hash = model_hash(d->message[i], d->message_len[i]);
        for (;; next++) {
            if (next == s->messages.n) FAIL_ABOUT(d, "a message that is not for it, or out of order, from", d->message_from[i]);
            const struct model_message *message = &s->messages.at[next];
            bool is_for = wants(s, p, message);
            if (is_for && message->entity == d->message_from[i] && message->len == d->message_len[i] && message->hash == hash) break;
            missing += is_for;
        }
    }
    for (; next < s->messages.n; next++) missing += wants(s, p, &s->messages.at[next]);
    if (missing > 0 && !d->full && m->room_last[p->owner] == MODEL_NO_LIMIT) FAIL_ABOUT(d, "messages missing:", missing);
    p->lost_least += missing;
    p->lost_most += d->full ? s->messages.n : missing;
    if (d->messages_lost < p->lost_least) FAIL_ABOUT(d, "more messages were lost than it says, at least", p->lost_least);
    if (d->messages_lost > p->lost_most) FAIL_ABOUT(d, "fewer messages were lost than it says, at most", p->lost_most);
    p->lost_least = p->lost_most = 0;
    m->messages += d->message_n;
    m->lost += d->messages_lost;
}

static bool stays_only(const struct model_entity *e)
{
    const struct model_sight *k = &e->sight;
    return k->candidate && !k->self && !k->show && !k->base && !k->margin;
}

/* After a flush: what it leaves to the next, as far as one entity in the mirror goes. */
static void note_told(const struct model *m, struct model_space *s, struct model_player *p, struct model_told *t, const struct model_entity *e,
                      uint64_t flush)
{
    bool differs = !model_same_place(s, &e->v, &t->v) && !p->set.presence_only;
    p->left |= differs || !model_same_payload(&e->v, &t->v);
    p->left |= stays_only(e);
    bool served = p->delivered || (!differs && m->room_min[p->owner] == MODEL_NO_LIMIT);
    if (model_due(m, e, flush) && served) {
        t->gap = false;
        t->moves = e->moves;
    } else if (!model_due(m, e, flush)) {
        t->gap = true;
        if (p->skipped) t->moves = e->moves - 1; /* as far as the core knows: serials may have wrapped */
    }
    p->may |= t->gap && t->moves != e->moves && !p->set.presence_only;
}

/* Everything that is visible was told as it is, but for what the room held back. */
static void check_complete(const struct model *m, struct model_space *s, struct model_player *p, const struct aoi_delta *d, uint32_t seen)
{
    size_t room = m->room_last[p->owner], late = 0, waiting = 0;
    for (uint32_t i = 0; i < s->entities.n; i++) {
        const struct model_entity *e = &s->entities.at[i];
        waiting += e->seen && e->sight.told == NULL && !e->sight.enters;
        p->may |= stays_only(e); /* also where it is outranked */
    }
    for (uint32_t i = 0; i < p->told.n; i++) {
        struct model_told *t = &p->told.at[i];
        const struct model_entity *e = model_entity(s, t->id);
        if (e == NULL || e->identity != t->identity || !e->seen) FAIL_ABOUT(d, "no leave of", t->id);
        if (!model_same_place(s, &e->v, &t->v) && !p->set.presence_only && model_due(m, e, d->flush)) FAIL_ABOUT(d, "no update of", t->id);
        if (e->v.layers != t->v.layers) FAIL_ABOUT(d, "no layers of", t->id);
        bool same = model_same_payload(&e->v, &t->v);
        late += !same;
        t->owed |= !same || (p->skipped && room < MODEL_NO_LIMIT && !t->fresh && !t->paid);
        note_told(m, s, p, t, e, d->flush);
    }
    size_t held = seen - p->told.n - waiting;
    p->left |= held + waiting > 0;
    if (held + late > 0) {
        if (room == MODEL_NO_LIMIT) FAIL_ABOUT(d, held > 0 ? "enters missing:" : "payloads missing:", held + late);
        if (most_bytes(s, d, held, late) <= room) FAIL_ABOUT(d, "held back though there was room:", held + late);
    }
    bool restated = d->full && room == AOI_ROOM_KEPT; /* what was told takes no room anew */
    if (!restated && d->enters.n + d->payload_n + d->message_n > 0 && least_bytes(d) > room) FAIL_ABOUT(d, "passed the room of", room);
}

static void take_closed(struct model *m, struct model_player *p, const struct aoi_delta *d)
{
    if (d->full || d->leave_n + d->enters.n + d->updates.n + d->payload_n + d->layers_n + d->message_n > 0)
        FAIL_ABOUT(d, "a last delta that is not empty", 0);
    if (m->flushing != NULL) FAIL_ABOUT(d, "closed by a flush", 0);
    if (d->messages_lost > p->lost_most) FAIL_ABOUT(d, "fewer messages were lost than it says, at most", p->lost_most);
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
    if (d->full && d->message_n > 0) FAIL_ABOUT(d, "a full delta has messages", d->message_n);
    if (!d->full && d->enters.n + rest + d->message_n + d->messages_lost == 0) FAIL_ABOUT(d, "an empty delta", 0);
}

/* A full delta forgets everything, but that something stays is remembered. */
static void put_aside(struct model *m, struct model_player *p)
{
    array_reserve(&m->before, p->told.n);
    if (p->told.n > 0) memcpy(m->before.at, p->told.at, p->told.n * sizeof *p->told.at);
    m->before.n = p->told.n;
    p->told.n = 0;
}

/* Addresses of update columns one after the other, without a gap and at no alignment, as a frame has them. */
static struct aoi_places places_in(uint8_t *at, const struct aoi_updates *u)
{
    struct aoi_places to = {.id = at, .x = at + 8 * u->n, .y = at + 12 * u->n};
    at += 16 * u->n;
    if (u->z != NULL) to.z = at, at += 4 * u->n;
    if (u->extra != NULL) to.extra = at;
    return to;
}

/* Of every other delta the columns are to be put elsewhere, where nothing may be written but they. */
bool model_sink_columns(void *ctx, const struct aoi_delta *d, struct aoi_places *to)
{
    struct model *m = ctx;
    if (d->updates.n == 0 || d->updates.id == NULL || m->placed != NULL)
        FAIL_ABOUT(d, "asked for places of its updates, of which there are", d->updates.n);
    if ((d->player + d->seq) % 2 == 0) return false;
    m->placed = mem_alloc(1 + d->updates.n * (16u + (d->updates.z != NULL) * 4u + (d->updates.extra != NULL) * 4u));
    *to = places_in(m->placed + 1, &d->updates);
    return true;
}

static void judge_delta(struct model *m, const struct aoi_delta *d)
{
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
        uint32_t seen = model_look(m, s, p, m->now_ms);
        p->delivered = true;
        if (d->full) put_aside(m, p);
        take_leaves(s, p, d);
        take_enters(m, s, p, d);
        take_updates(m, s, p, d);
        take_states(s, p, d);
        take_messages(m, s, p, d);
        check_complete(m, s, p, d, seen);
        p->full_due = p->skipped = false;
        m->enters += d->enters.n;
        m->leaves += d->leave_n;
        m->updates += d->updates.n;
        if (m->drains[d->owner]) m->room[d->owner] -= m->room[d->owner] < least_bytes(d) ? m->room[d->owner] : least_bytes(d);
    }
    if (m->on_delta != NULL) m->on_delta(m->on_delta_ctx, d);
}

static const void *copy_of(struct arena *arena, const void *column, size_t bytes)
{
    return column == NULL ? NULL : memcpy(arena_alloc(arena, bytes), column, bytes);
}

void model_sink_deliver(void *ctx, const struct aoi_delta *d)
{
    struct model *m = ctx;
    if (d->placed != (m->placed != NULL)) FAIL_ABOUT(d, "is placed, or not, after", d->seq - 1);
    if (!d->placed) {
        judge_delta(m, d);
        return;
    }
    struct arena arena;
    struct aoi_delta at = *d;
    const struct aoi_places from = places_in(m->placed + 1, &d->updates);
    size_t n = d->updates.n;
    arena_init(&arena, (size_t)1 << 30);
    at.updates = (struct aoi_updates){.n = n,
                                      .id = copy_of(&arena, from.id, 8 * n),
                                      .x = copy_of(&arena, from.x, 4 * n),
                                      .y = copy_of(&arena, from.y, 4 * n),
                                      .z = copy_of(&arena, from.z, 4 * n),
                                      .extra = copy_of(&arena, from.extra, 4 * n)};
    free(m->placed);
    m->placed = NULL;
    judge_delta(m, &at);
    arena_clear(&arena);
}

/* ------------------------------------------------------------------------------------------------------------- the flush */

/* What is wrong with one entity in the mirror of a player that was told nothing: NULL: nothing. *late: a room may have held it back. */
static const char *wrong(const struct model *m, const struct model_space *s, const struct model_player *p, const struct model_told *t, bool *late)
{
    const struct model_entity *e = model_entity(s, t->id);
    *late = false;
    if (e == NULL || e->identity != t->identity || !e->seen) return "leave";
    if (!model_same_place(s, &e->v, &t->v) && !p->set.presence_only && model_due(m, e, s->flush)) return "update";
    if (e->v.layers != t->v.layers) return "change of layers";
    *late = true;
    return model_same_payload(&e->v, &t->v) ? NULL : "change of payload";
}

/* The messages of a flush that told the player nothing: were some for it? */
static void miss_messages(const struct model *m, const struct model_space *s, struct model_player *p)
{
    size_t room = m->room_min[p->owner];
    uint64_t missing = 0;
    for (uint32_t i = 0; i < s->messages.n; i++) missing += wants(s, p, &s->messages.at[i]);
    REQUIRE(missing == 0 || room < MODEL_NO_LIMIT, "flush %llu: player %llu got no message", (unsigned long long)s->flush, (unsigned long long)p->id);
    if (room < MODEL_NO_LIMIT) p->lost_most += s->messages.n;
    if (!m->drains[p->owner]) p->lost_least += missing;
}

/* Its owner is away: it misses everything, and no work is left for that. */
static void pass_over(const struct model_space *s, struct model_player *p)
{
    p->left = false;
    p->skipped = true;
    p->lost_most += s->messages.n;
    for (uint32_t i = 0; i < p->told.n; i++) p->told.at[i].owed = true;
}

/* After the flush: is there anything that a player that got no delta should have been told? */
static void check_player(const struct model *m, struct model_space *s, struct model_player *p)
{
    if (p->delivered) return;
    if (m->away[p->owner]) {
        pass_over(s, p);
        return;
    }
    size_t room = m->room_min[p->owner];
    unsigned long long flush = s->flush, id = p->id;
    p->left = p->full_due;
    REQUIRE(!p->full_due || room == 0, "flush %llu: player %llu got no full delta", flush, id);
    model_look(m, s, p, m->now_ms);
    for (uint32_t i = 0; i < p->told.n; i++) {
        struct model_told *t = &p->told.at[i];
        bool late;
        t->owed |= p->skipped && room < MODEL_NO_LIMIT;
        const char *what = wrong(m, s, p, t, &late);
        if (what == NULL) {
            note_told(m, s, p, t, model_entity(s, t->id), s->flush);
            continue;
        }
        p->left = true;
        t->owed |= late;
        if (late && room > 0) note_told(m, s, p, t, model_entity(s, t->id), s->flush); /* its payload waits, and its tier may not have been due */
        REQUIRE(room == 0 || (late && room < MODEL_NO_LIMIT), "flush %llu: player %llu got no %s of %llu", flush, id, what,
                (unsigned long long)t->id);
    }
    for (uint32_t i = 0; i < s->entities.n; i++) {
        const struct model_entity *e = &s->entities.at[i];
        if (!e->seen || e->sight.told != NULL) continue;
        p->left = true;
        REQUIRE(room < MODEL_NO_LIMIT, "flush %llu: player %llu got no enter of %llu", flush, id, (unsigned long long)e->id);
    }
    miss_messages(m, s, p);
    p->skipped = room == 0;
}

/* ------------------------------------------------------------------------------------------------------------- owners */

bool model_sink_observed(void *ctx, aoi_owner owner, uint64_t space, const uint64_t *id, const bool *observed, size_t n)
{
    struct model *m = ctx;
    struct model_space *s = m->flushing;
    REQUIRE(s != NULL && s->id == space, "observed() outside a flush of its space");
    REQUIRE(owner < MODEL_OWNERS && !m->heard[owner] && !m->away[owner] && n > 0, "observed() for owner %u with %zu", owner, n);
    m->heard[owner] = true;
    m->observed++;
    for (size_t i = 0; i < n; i++) {
        unsigned long long number = id[i];
        struct model_entity *e = model_entity(s, id[i]);
        REQUIRE(e != NULL && e->owner == owner && e->report_observed, "observed(): owner %u does not want to know about %llu", owner, number);
        REQUIRE(!e->named, "observed(): %llu twice", number);
        REQUIRE(observed[i] == model_observed(m, s, e), "observed(): %llu is %d", number, !observed[i]);
        REQUIRE(e->reported != (observed[i] ? MODEL_OBSERVED : MODEL_UNOBSERVED), "observed(): %llu was told as %d already", number, observed[i]);
        e->named = true;
        if (m->deaf[owner]) continue;
        e->reported = observed[i] ? MODEL_OBSERVED : MODEL_UNOBSERVED;
        if (m->on_observed != NULL) m->on_observed(m->on_delta_ctx, owner, id[i], observed[i]);
    }
    return !m->deaf[owner];
}

void model_sink_lost(void *ctx, aoi_owner owner, uint64_t space, bool is_player, uint64_t id)
{
    struct model *m = ctx;
    REQUIRE(m->losing && m->loser == owner && m->losing_player == is_player && m->losing_id == id && model_space(m, space) != NULL,
            "lost(): owner %u, %s %llu", owner, is_player ? "player" : "entity", (unsigned long long)id);
    m->losing = false;
    if (m->on_lost != NULL) m->on_lost(m->on_delta_ctx, owner, is_player, id);
}

/* Every owner that wants to know was told. Returns whether some are not, being deaf. */
static bool check_observed(const struct model *m, const struct model_space *s)
{
    bool left = false;
    for (uint32_t i = 0; i < s->entities.n; i++) {
        const struct model_entity *e = &s->entities.at[i];
        if (!e->report_observed || m->away[e->owner]) continue; /* away: told when it is back */
        bool is = model_observed(m, s, e);
        if (is == (e->reported == MODEL_OBSERVED) && e->reported != MODEL_RESTATE) continue;
        left = true;
        REQUIRE(m->deaf[e->owner], "flush %llu: owner %u was not told that %llu is observed: %d", (unsigned long long)s->flush, e->owner,
                (unsigned long long)e->id, is);
    }
    return left;
}

static void check_stats(struct model *m, const struct model_space *s)
{
    struct aoi_stats stats = {0};
    aoi_space_stats(model_core_space(m, s), &stats);
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < s->players.n; i++) pairs += s->players.at[i].told.n;
    m->pairs += pairs;
    REQUIRE(stats.messages == s->messages_n, "stats: %llu messages, not %llu", (unsigned long long)stats.messages, (unsigned long long)s->messages_n);
    REQUIRE(stats.entities == s->entities.n && stats.players == s->players.n && stats.pairs == pairs && stats.flushes == s->flush,
            "stats: %llu entities, %llu players, %llu pairs, %llu flushes; they are %u, %u, %llu, %llu", (unsigned long long)stats.entities,
            (unsigned long long)stats.players, (unsigned long long)stats.pairs, (unsigned long long)stats.flushes, s->entities.n, s->players.n,
            (unsigned long long)pairs, (unsigned long long)s->flush);
}

static void flush(struct model *m, struct model_space *s, struct aoi_flush_info *info)
{
    for (uint32_t i = 0; i < s->players.n; i++) {
        struct model_player *p = &s->players.at[i];
        p->delivered = p->left = p->may = false;
    }
    for (uint32_t i = 0; i < s->entities.n; i++) s->entities.at[i].named = false;
    for (int o = 0; o < MODEL_OWNERS; o++) {
        m->room_min[o] = m->room_last[o] = MODEL_NO_LIMIT;
        m->heard[o] = false;
    }
    struct aoi_space *core = model_core_space(m, s);
    m->flushing = s;
    if (s->flush % 2 == 0) {
        aoi_flush(core, info);
    } else { /* in slices, of which nobody is to notice anything */
        aoi_flush_begin(core, info);
        while (aoi_flush_step(core, info, (uint32_t)(s->flush % 7))) {
            if (s->flush % 7 == 0) aoi_flush_step(core, info, 1);
        }
        aoi_flush_end(core, info);
    }
    m->flushing = NULL;
    m->flushes++;
    struct aoi_oracle_result result = {0};
    aoi_oracle_check(m->oracle, core, 3, 2000, &result);
    REQUIRE(result.mismatches == 0, "the oracle of production finds fault with player %llu and entity %llu", (unsigned long long)result.player,
            (unsigned long long)result.entity);
    m->oracle_checked += result.checked;
}

bool model_flush(struct model *m, struct model_space *s)
{
    struct aoi_flush_info info = {.tag = ++m->tag, .time_us = m->time_us += 1000, .now_ms = m->now_ms, .final = m->final};
    flush(m, s, &info);
    REQUIRE(info.flush == ++s->flush, "flush number %llu, not %llu", (unsigned long long)info.flush, (unsigned long long)s->flush);
    bool left = false, may = false;
    for (uint32_t i = 0; i < s->players.n; i++) {
        check_player(m, s, &s->players.at[i]);
        left |= s->players.at[i].left;
        may |= s->players.at[i].may;
    }
    s->messages.n = 0;
    s->dirty = info.pending;
    REQUIRE(!s->notified, "the space says that it has changed by a flush");
    left |= check_observed(m, s);
    for (int o = 0; o < MODEL_OWNERS; o++) may |= m->room_min[o] < MODEL_NO_LIMIT;
    REQUIRE(info.pending || !left, "work is left, but not reported as pending");
    REQUIRE(left || may || !info.pending, "flush %llu: pending, though nothing is left to do", (unsigned long long)s->flush);
    REQUIRE(aoi_space_dirty(model_core_space(m, s)) == info.pending, "dirty after a flush is %d, pending %d", aoi_space_dirty(model_core_space(m, s)),
            info.pending);
    check_stats(m, s);
    return info.pending;
}

/* ------------------------------------------------------------------------------------------------------------- convergence */

/* Flushes that may be needed: for the slowest enter budget, and for the slowest tier. */
static uint32_t flushes_needed(const struct model_space *s)
{
    uint32_t budget = UINT32_MAX, period = s->set.tiers.beyond;
    for (uint32_t i = 0; i < s->players.n; i++) {
        uint32_t b = model_max_enter(s, &s->players.at[i]);
        if (b != 0 && b < budget) budget = b;
    }
    for (uint32_t i = 0; i < s->set.tiers.n; i++)
        if (s->set.tiers.at[i].period > period) period = s->set.tiers.at[i].period;
    return 2 + s->entities.n / budget + 2 * period;
}

void model_converge(struct model *m, struct model_space *s)
{
    for (int o = 0; o < MODEL_OWNERS; o++) {
        m->room[o] = MODEL_NO_LIMIT;
        m->drains[o] = m->deaf[o] = false;
    }
    for (aoi_owner o = 0; o < MODEL_OWNERS; o++)
        if (m->away[o]) model_owner_away(m, o, false);
    uint32_t most = flushes_needed(s);
    m->final = false;
    bool pending = true;
    for (uint32_t n = 0; pending; n++) {
        REQUIRE(n <= most, "space %llu has not settled after %u flushes", (unsigned long long)s->id, n);
        m->now_ms += 1 + s->set.min_stay_ms / 2;
        pending = model_flush(m, s);
    }
    for (uint32_t i = 0; i < s->players.n; i++) {
        struct model_player *p = &s->players.at[i];
        uint32_t seen = model_look(m, s, p, m->now_ms + s->set.min_stay_ms);
        REQUIRE(seen == p->told.n && !p->full_due, "player %llu sees %u and was told of %u", (unsigned long long)p->id, seen, p->told.n);
        for (uint32_t k = 0; k < p->told.n; k++) {
            const struct model_told *t = &p->told.at[k];
            const struct model_entity *e = model_entity(s, t->id);
            bool right = e != NULL && e->identity == t->identity && e->seen && e->v.layers == t->v.layers && model_same_payload(&e->v, &t->v);
            right = right && (p->set.presence_only || model_same_place(s, &e->v, &t->v));
            REQUIRE(right, "player %llu: %llu is not as it was told", (unsigned long long)p->id, (unsigned long long)t->id);
        }
    }
}
