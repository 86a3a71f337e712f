/* libaoi_mirror.c: applies deltas to the view of each player, and checks that they are such as the protocol allows. */
#include "client/libaoi_mirror.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sections of a delta, in the order in which they must come, also across its parts. */
enum section { SECTION_LEAVES, SECTION_ENTERS, SECTION_UPDATES, SECTION_PAYLOADS, SECTION_LAYERS, SECTION_MESSAGES };

struct libaoi_mirror_view {
    struct libaoi_view pub; /* pub.items is items.at */
    ARRAY(struct libaoi_item) items;
    struct idmap map;     /* id -> index in items */
    bool lapsed;          /* deltas may have been lost */
    uint32_t next_part;   /* while pub.partial */
    bool full;            /* of the delta being received */
    enum section section; /* the furthest one that it has reached */
};

/* What is wrong is written where the caller wants it. */
struct verdict {
    const struct libaoi_delta *delta;
    char *why;
    size_t why_size;
};

__attribute__((format(printf, 2, 3))) static int violation(const struct verdict *v, const char *format, ...)
{
    int n = snprintf(v->why, v->why_size, "space %llu player %llu delta %llu part %u: ", (unsigned long long)v->delta->space,
                     (unsigned long long)v->delta->player, (unsigned long long)v->delta->seq, v->delta->part);
    if (n < 0 || (size_t)n >= v->why_size) return -1;
    va_list args;
    va_start(args, format);
    vsnprintf(v->why + n, v->why_size - (size_t)n, format, args);
    va_end(args);
    return -1;
}

static void view_forget(struct libaoi_mirror_view *w)
{
    for (uint32_t i = 0; i < w->items.n; i++) free((void *)(uintptr_t)w->items.at[i].payload);
    w->items.n = 0;
    idmap_clear(&w->map);
}

static void view_free(struct libaoi_mirror_view *w)
{
    if (!w) return;
    view_forget(w);
    array_clear(&w->items);
    free(w);
}

void libaoi_mirror_clear(struct libaoi_mirror *m)
{
    for (uint32_t i = 0; i < m->views.n; i++) view_free(m->views.at[i]);
    for (uint32_t i = 0; i < m->spaces.n; i++) idmap_clear(&m->spaces.at[i].players);
    array_clear(&m->views);
    array_clear(&m->spaces);
    array_clear(&m->free_views);
    idmap_clear(&m->space_map);
}

static struct libaoi_mirror_view *mirror_lookup(const struct libaoi_mirror *m, uint64_t space, uint64_t player)
{
    if (!space || !player) return NULL;
    uint32_t s = idmap_get(&m->space_map, space);
    if (s == IDMAP_NONE) return NULL;
    uint32_t v = idmap_get(&m->spaces.at[s].players, player);
    return v == IDMAP_NONE ? NULL : m->views.at[v];
}

const struct libaoi_view *libaoi_mirror_find(const struct libaoi_mirror *m, uint64_t space, uint64_t player)
{
    const struct libaoi_mirror_view *w = mirror_lookup(m, space, player);
    return w ? &w->pub : NULL;
}

static struct libaoi_mirror_view *mirror_open(struct libaoi_mirror *m, uint64_t space, uint64_t player)
{
    uint32_t s = idmap_get(&m->space_map, space);
    if (s == IDMAP_NONE) {
        s = m->spaces.n;
        *array_add(&m->spaces) = (struct libaoi_mirror_space){.id = space};
        idmap_put(&m->space_map, space, s);
    }
    if (!m->free_views.n) {
        *array_add(&m->free_views) = m->views.n;
        *array_add(&m->views) = NULL;
    }
    uint32_t v = m->free_views.at[--m->free_views.n];
    struct libaoi_mirror_view *w = mem_zalloc(sizeof *w);
    w->pub.space = space;
    w->pub.player = player;
    m->views.at[v] = w;
    idmap_put(&m->spaces.at[s].players, player, v);
    return w;
}

static void mirror_drop(struct libaoi_mirror *m, struct libaoi_mirror_view *w)
{
    struct libaoi_mirror_space *space = &m->spaces.at[idmap_get(&m->space_map, w->pub.space)];
    uint32_t v = idmap_remove(&space->players, w->pub.player);
    m->views.at[v] = NULL;
    *array_add(&m->free_views) = v;
    view_free(w);
}

void libaoi_mirror_forget(struct libaoi_mirror *m, uint64_t space, uint64_t player)
{
    struct libaoi_mirror_view *w = mirror_lookup(m, space, player);
    if (w) mirror_drop(m, w);
}

void libaoi_mirror_lapse(struct libaoi_mirror *m)
{
    for (uint32_t i = 0; i < m->views.n; i++) {
        if (!m->views.at[i]) continue;
        m->views.at[i]->lapsed = true;
        m->views.at[i]->pub.partial = false;
    }
}

static struct libaoi_item *view_item(const struct libaoi_mirror_view *w, uint64_t id)
{
    uint32_t i = id ? idmap_get(&w->map, id) : IDMAP_NONE;
    return i == IDMAP_NONE ? NULL : &w->items.at[i];
}

const struct libaoi_item *libaoi_view_find(const struct libaoi_view *view, uint64_t id)
{
    return view_item((const struct libaoi_mirror_view *)(const void *)view, id);
}

static void item_set_payload(struct libaoi_item *item, const void *payload, uint32_t len)
{
    free((void *)(uintptr_t)item->payload);
    item->payload = NULL;
    item->payload_len = len;
    if (len) item->payload = memcpy(mem_alloc(len), payload, len);
}

/* Whether the sections go on from the one that the parts before have reached. */
static int check_sections(struct libaoi_mirror_view *w, const struct libaoi_delta *d, const struct verdict *v)
{
    const size_t n[] = {[SECTION_LEAVES] = d->leave_n,     [SECTION_ENTERS] = d->enter_n,  [SECTION_UPDATES] = d->update_n,
                        [SECTION_PAYLOADS] = d->payload_n, [SECTION_LAYERS] = d->layers_n, [SECTION_MESSAGES] = d->message_n};
    for (enum section s = SECTION_LEAVES; s <= SECTION_MESSAGES; s++) {
        if (!n[s]) continue;
        if (s < w->section) return violation(v, "sections out of order");
        w->section = s;
    }
    return 0;
}

/* Whether a part of this number, kind and section may come now. */
static int check_order(struct libaoi_mirror_view *w, const struct libaoi_delta *d, const struct verdict *v)
{
    if (w->pub.partial) {
        if (d->seq != w->pub.seq) return violation(v, "delta %llu is not finished", (unsigned long long)w->pub.seq);
        if (d->part != w->next_part) return violation(v, "expected part %u", w->next_part);
        if (d->full != w->full) return violation(v, "parts of one delta disagree about being full");
        if (d->closed) return violation(v, "closed in the middle of a delta");
    } else {
        bool next = !w->lapsed && d->seq == w->pub.seq + 1;
        bool jump = (!w->pub.seq || w->lapsed) && (d->full || d->closed) && d->seq > 0;
        if (d->part) return violation(v, "a delta begins with part 0");
        if (!next && !jump) return violation(v, "expected delta %llu", (unsigned long long)w->pub.seq + 1);
        if (!d->closed && !w->lapsed && d->flush <= w->pub.flush) /* lapsed: the daemon may have come back from an older snapshot */
            return violation(v, "flush %llu after %llu", (unsigned long long)d->flush, (unsigned long long)w->pub.flush);
        w->section = SECTION_LEAVES;
    }
    if (check_sections(w, d, v)) return -1;
    if (d->more && d->messages_lost) return violation(v, "messages_lost is in the last part of a delta");
    bool changes = d->leave_n || d->update_n || d->payload_n || d->layers_n || d->message_n;
    if (d->full && changes) return violation(v, "a full delta has nothing but enters");
    if (d->closed && (d->more || d->full || d->enter_n || changes)) return violation(v, "a closed delta is empty");
    return 0;
}

static int apply_leaves(struct libaoi_mirror_view *w, const struct libaoi_delta *d, const struct verdict *v)
{
    for (size_t i = 0; i < d->leave_n; i++) {
        struct libaoi_item *item = view_item(w, d->leave_id[i]);
        if (!item) return violation(v, "leave of %llu, which is not in the view", (unsigned long long)d->leave_id[i]);
        item_set_payload(item, NULL, 0);
        uint32_t at = idmap_remove(&w->map, item->id);
        array_swap_remove(&w->items, at);
        if (at < w->items.n) idmap_put(&w->map, w->items.at[at].id, at);
    }
    w->pub.leaves += d->leave_n;
    return 0;
}

static int apply_enters(struct libaoi_mirror_view *w, const struct libaoi_delta *d, const struct verdict *v)
{
    for (size_t i = 0; i < d->enter_n; i++) {
        uint64_t id = d->enter_id[i];
        if (!id) return violation(v, "enter of id 0");
        if (view_item(w, id)) return violation(v, "enter of %llu, which is in the view", (unsigned long long)id);
        struct libaoi_item item = {
            .id = id,
            .pos = {d->enter_x[i], d->enter_y[i], d->enter_z ? d->enter_z[i] : 0},
            .extra = d->enter_extra ? d->enter_extra[i] : 0,
            .layers = d->enter_layers[i],
            .entered = d->seq,
            .updated = d->seq,
            .payload_seq = d->seq,
            .layers_seq = d->seq,
        };
        if (!isfinite(item.pos[0]) || !isfinite(item.pos[1]) || !isfinite(item.pos[2]))
            return violation(v, "position of %llu", (unsigned long long)id);
        if (d->enter_payload) item_set_payload(&item, d->enter_payload[i], d->enter_payload_len[i]);
        idmap_put(&w->map, id, w->items.n);
        *array_add(&w->items) = item;
    }
    w->pub.enters += d->enter_n;
    return 0;
}

/* The item that a change is about: it must be there, not be new, and not have had such a change in this delta. */
static struct libaoi_item *changed_item(struct libaoi_mirror_view *w, uint64_t id, size_t seq_offset, const struct verdict *v)
{
    struct libaoi_item *item = view_item(w, id);
    if (!item) {
        violation(v, "change of %llu, which is not in the view", (unsigned long long)id);
        return NULL;
    }
    uint64_t *last = (uint64_t *)(void *)((char *)item + seq_offset);
    if (*last == w->pub.seq) {
        violation(v, "%llu entered or changed twice in one delta", (unsigned long long)id);
        return NULL;
    }
    *last = w->pub.seq;
    return item;
}

static int apply_updates(struct libaoi_mirror_view *w, const struct libaoi_delta *d, const struct verdict *v)
{
    for (size_t i = 0; i < d->update_n; i++) {
        struct libaoi_item *item = changed_item(w, d->update_id[i], offsetof(struct libaoi_item, updated), v);
        if (!item) return -1;
        float pos[3] = {d->update_x[i], d->update_y[i], d->update_z ? d->update_z[i] : 0};
        uint32_t extra = d->update_extra ? d->update_extra[i] : 0;
        if (!isfinite(pos[0]) || !isfinite(pos[1]) || !isfinite(pos[2])) return violation(v, "position of %llu", (unsigned long long)item->id);
        w->pub.told_same += extra == item->extra && memcmp(pos, item->pos, sizeof pos) == 0;
        memcpy(item->pos, pos, sizeof pos);
        item->extra = extra;
    }
    w->pub.updates += d->update_n;
    return 0;
}

static int apply_states(struct libaoi_mirror_view *w, const struct libaoi_delta *d, const struct verdict *v)
{
    for (size_t i = 0; i < d->payload_n; i++) {
        struct libaoi_item *item = changed_item(w, d->payload_id[i], offsetof(struct libaoi_item, payload_seq), v);
        if (!item) return -1;
        uint32_t len = d->payload_len[i];
        w->pub.told_same += len == item->payload_len && (!len || memcmp(d->payload[i], item->payload, len) == 0);
        item_set_payload(item, d->payload[i], len);
    }
    for (size_t i = 0; i < d->layers_n; i++) {
        struct libaoi_item *item = changed_item(w, d->layers_id[i], offsetof(struct libaoi_item, layers_seq), v);
        if (!item) return -1;
        w->pub.told_same += item->layers == d->layers[i];
        item->layers = d->layers[i];
    }
    return 0;
}

/* Messages come last, so that whoever published one is in the view. */
static int apply_messages(struct libaoi_mirror_view *w, const struct libaoi_delta *d, const struct verdict *v)
{
    for (size_t i = 0; i < d->message_n; i++) {
        uint64_t from = d->message_from[i];
        if (from && !view_item(w, from)) return violation(v, "message of %llu, which is not in the view", (unsigned long long)from);
    }
    w->pub.messages += d->message_n;
    w->pub.messages_lost += d->messages_lost;
    return 0;
}

static bool is_empty(const struct libaoi_delta *d)
{
    return !d->full && !d->leave_n && !d->enter_n && !d->update_n && !d->payload_n && !d->layers_n && !d->message_n && !d->messages_lost;
}

int libaoi_mirror_apply(struct libaoi_mirror *m, const struct libaoi_delta *d, char *why, size_t why_size)
{
    struct verdict v = {.delta = d, .why = why, .why_size = why_size};
    if (!d->space || !d->player) return violation(&v, "id 0");
    struct libaoi_mirror_view *w = mirror_lookup(m, d->space, d->player);
    if (!w) w = mirror_open(m, d->space, d->player);
    if (check_order(w, d, &v)) return -1;
    if (d->closed) {
        m->closed++;
        mirror_drop(m, w);
        return 0;
    }
    if (d->full && d->part == 0) view_forget(w);
    w->lapsed = false;
    w->pub.seq = d->seq;
    w->pub.flush = d->flush;
    w->pub.tag = d->tag;
    w->pub.partial = d->more;
    w->next_part = d->part + 1;
    w->full = d->full;
    w->pub.parts++;
    w->pub.deltas += !d->more;
    w->pub.fulls += d->full && d->part == 0;
    w->pub.empty += is_empty(d);
    int status = apply_leaves(w, d, &v);
    if (!status) status = apply_enters(w, d, &v);
    if (!status) status = apply_updates(w, d, &v);
    if (!status) status = apply_states(w, d, &v);
    if (!status) status = apply_messages(w, d, &v);
    w->pub.items = w->items.at;
    w->pub.n = w->items.n;
    return status;
}
