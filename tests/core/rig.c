/* rig.c: a small world for tests that are told as stories. */
#include "rig.h"

struct aoi_limits rig_limits(void)
{
    return (struct aoi_limits){.max_spaces = 16,
                               .max_entities = 1000000,
                               .max_players = 10000,
                               .max_units = 1024,
                               .max_payload = 4096,
                               .max_overrides = 1024,
                               .max_message = 4096,
                               .max_messages = 10000};
}

struct token {
    int section;
    uint64_t order; /* in the section: the id, or as it came */
    char text[80];
};

static int by_section_and_id(const void *a, const void *b)
{
    const struct token *x = a, *y = b;
    if (x->section != y->section) return x->section - y->section;
    return x->order < y->order ? -1 : x->order > y->order;
}

#define TOKENS 40 /* of a longer delta only the counts are kept */

struct tokens {
    const struct rig *r;
    uint32_t n;
    struct token at[TOKENS];
};

static char *token(struct tokens *t, int section, uint64_t id)
{
    static const char letter[] = "LEUPYM";
    if (t->n == TOKENS) return NULL;
    struct token *k = &t->at[t->n++];
    k->section = section;
    k->order = section == 5 ? t->n : id;
    int n = snprintf(k->text, sizeof k->text, " %c%llu", letter[section], (unsigned long long)id);
    return k->text + n;
}

static char *place(const struct tokens *t, char *to, float x, float y, const float *z)
{
    if (to == NULL || !t->r->places) return to;
    if (z != NULL) return to + sprintf(to, "(%g,%g,%g)", (double)x, (double)y, (double)*z);
    return to + sprintf(to, "(%g,%g)", (double)x, (double)y);
}

static void bytes(char *to, const void *payload, uint32_t len)
{
    if (to != NULL) sprintf(to, "=%.*s", (int)(len < 20 ? len : 20), (const char *)payload);
}

static void describe(struct tokens *t, const struct aoi_delta *d)
{
    for (size_t i = 0; i < d->leave_n; i++) token(t, 0, d->leave_id[i]);
    for (size_t i = 0; i < d->enters.n; i++) {
        const struct aoi_enters *e = &d->enters;
        char *to = place(t, token(t, 1, e->id[i]), e->x[i], e->y[i], e->z == NULL ? NULL : &e->z[i]);
        if (e->payload != NULL && e->payload_len[i] > 0) bytes(to, e->payload[i], e->payload_len[i]);
    }
    for (size_t i = 0; i < d->updates.n; i++)
        place(t, token(t, 2, d->updates.id[i]), d->updates.x[i], d->updates.y[i], d->updates.z == NULL ? NULL : &d->updates.z[i]);
    for (size_t i = 0; i < d->payload_n; i++) bytes(token(t, 3, d->payload_id[i]), d->payload[i], d->payload_len[i]);
    for (size_t i = 0; i < d->layers_n; i++) {
        char *to = token(t, 4, d->layers_id[i]);
        if (to != NULL) sprintf(to, ":%x", d->layers[i]);
    }
    for (size_t i = 0; i < d->message_n; i++) bytes(token(t, 5, d->message_from[i]), d->message[i], d->message_len[i]);
}

static void on_delta(void *ctx, const struct aoi_delta *d)
{
    struct rig *r = ctx;
    struct tokens t = {.r = r};
    describe(&t, d);
    if (t.n > 0) qsort(t.at, t.n, sizeof t.at[0], by_section_and_id);
    struct rig_told *told = array_add(&r->told);
    *told = (struct rig_told){.player = d->player,
                              .leaves = d->leave_n,
                              .enters = d->enters.n,
                              .updates = d->updates.n,
                              .payloads = d->payload_n,
                              .layers = d->layers_n,
                              .messages = d->message_n,
                              .lost = d->messages_lost,
                              .full = d->full,
                              .closed = d->closed};
    size_t used = 0;
    if (d->full) used += (size_t)sprintf(told->text, " full");
    if (d->closed) used += (size_t)sprintf(told->text, " closed");
    for (uint32_t i = 0; i < t.n; i++) {
        size_t len = strlen(t.at[i].text);
        if (used + len + 1 > sizeof told->text) break;
        memcpy(told->text + used, t.at[i].text, len + 1);
        used += len;
    }
    if (d->messages_lost > 0 && used + 30 < sizeof told->text) sprintf(told->text + used, " lost%llu", (unsigned long long)d->messages_lost);
}

static void on_owner(struct rig *r, const char *text)
{
    size_t used = strlen(r->owners);
    assert_true(used + strlen(text) < sizeof r->owners);
    memcpy(r->owners + used, text, strlen(text) + 1);
}

static void on_observed(void *ctx, aoi_owner owner, uint64_t id, bool observed)
{
    char text[60];
    snprintf(text, sizeof text, " %u:%c%llu", owner, observed ? '+' : '-', (unsigned long long)id);
    on_owner(ctx, text);
}

static void on_lost(void *ctx, aoi_owner owner, bool is_player, uint64_t id)
{
    char text[60];
    snprintf(text, sizeof text, " %u:lost %s%llu", owner, is_player ? "player " : "", (unsigned long long)id);
    on_owner(ctx, text);
}

static const struct aoi_settings usual = {.dimensions = 2, .shape = AOI_SHAPE_BOX, .cell_size = 32, .cell_range = 1, .flush_ms = 50};

static void begin(struct rig *r, const struct aoi_settings *settings, const struct aoi_limits *limits)
{
    struct aoi_limits all = rig_limits();
    model_init(&r->m, limits == NULL ? &all : limits);
    r->m.on_delta = on_delta;
    r->m.on_delta_ctx = r;
    r->m.on_observed = on_observed;
    r->m.on_lost = on_lost;
    struct aoi_settings set = settings == NULL ? usual : *settings;
    set.index = r->index;
    assert_int_equal(model_space_create(&r->m, 1, 1, &set, false), AOI_OK);
    r->s = model_space(&r->m, 1);
    r->places = true;
}

static void end(struct rig *r)
{
    aoi_validate(r->m.world);
    model_clear(&r->m);
    r->told.n = 0;
}

/* Rigs of tests that failed stay here, so that a leak checker finds nothing to say about them. */
static struct rig *living;

void rig_on_both(void (*body)(struct rig *r))
{
    for (enum aoi_index index = AOI_INDEX_GRID; index <= AOI_INDEX_CROSSLIST; index++) {
        struct rig *r = mem_zalloc(sizeof *r);
        r->index = index;
        r->next = living;
        living = r;
        begin(r, NULL, NULL);
        body(r);
        end(r);
        array_clear(&r->told);
        living = r->next;
        free(r);
    }
}

void rig_space(struct rig *r, const struct aoi_settings *settings, const struct aoi_limits *limits)
{
    end(r);
    begin(r, settings, limits);
}

struct aoi_space *rig_core(struct rig *r)
{
    return aoi_space_find(r->m.world, 1);
}

int rig_add_by(struct rig *r, aoi_owner owner, enum aoi_add_mode mode, uint64_t id, float x, float y, float radius, const char *payload)
{
    struct aoi_entity e = {.id = id, .pos = {x, y, 0}, .radius = radius, .payload = payload};
    if (payload != NULL) e.payload_len = (uint32_t)strlen(payload);
    return model_entity_add(&r->m, r->s, owner, mode, &e);
}

void rig_add(struct rig *r, uint64_t id, float x, float y, float radius)
{
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_NEW, id, x, y, radius, NULL), AOI_OK);
}

int rig_move_by(struct rig *r, aoi_owner owner, uint64_t id, float x, float y)
{
    return model_entity_move(&r->m, r->s, owner, id, (const float[3]){x, y, 0}, NULL);
}

void rig_move(struct rig *r, uint64_t id, float x, float y)
{
    assert_int_equal(rig_move_by(r, 1, id, x, y), AOI_OK);
}

void rig_remove(struct rig *r, uint64_t id)
{
    assert_int_equal(model_entity_remove(&r->m, r->s, 1, id), AOI_OK);
}

void rig_radius(struct rig *r, uint64_t id, float radius)
{
    assert_int_equal(model_entity_set_radius(&r->m, r->s, 1, id, radius), AOI_OK);
}

void rig_payload(struct rig *r, uint64_t id, const char *payload)
{
    assert_int_equal(model_entity_set_payload(&r->m, r->s, 1, id, payload, (uint32_t)strlen(payload)), AOI_OK);
}

void rig_subscribe(struct rig *r, uint64_t player, uint64_t entity)
{
    assert_int_equal(model_subscribe(&r->m, r->s, 1, player, entity, false), AOI_OK);
}

void rig_unsubscribe(struct rig *r, uint64_t player, uint64_t entity)
{
    assert_int_equal(model_unsubscribe(&r->m, r->s, 1, player, entity), AOI_OK);
}

void rig_viewport(struct rig *r, uint64_t player, float min_x, float min_y, float max_x, float max_y)
{
    assert_int_equal(model_viewport_set(&r->m, r->s, 1, player, (const float[3]){min_x, min_y, 0}, (const float[3]){max_x, max_y, 0}), AOI_OK);
}

void rig_unview(struct rig *r, uint64_t player)
{
    assert_int_equal(model_viewport_clear(&r->m, r->s, 1, player), AOI_OK);
}

void rig_layers(struct rig *r, uint64_t id, uint32_t layers)
{
    assert_int_equal(model_entity_set_layers(&r->m, r->s, 1, id, layers), AOI_OK);
}

void rig_appeal(struct rig *r, uint64_t id, float appeal)
{
    assert_int_equal(model_entity_set_appeal(&r->m, r->s, 1, id, appeal), AOI_OK);
}

void rig_priority(struct rig *r, uint64_t id, uint32_t priority)
{
    assert_int_equal(model_entity_set_priority(&r->m, r->s, 1, id, priority), AOI_OK);
}

void rig_open(struct rig *r, uint64_t player, struct aoi_player_settings settings)
{
    assert_int_equal(model_player_settings(&r->m, r->s, 1, player, &settings), AOI_OK);
}

void rig_override(struct rig *r, uint64_t player, uint64_t entity, enum aoi_override kind)
{
    assert_int_equal(model_player_override(&r->m, r->s, 1, player, entity, kind), AOI_OK);
}

void rig_set(struct rig *r, struct aoi_space_change change)
{
    assert_int_equal(model_space_set(&r->m, r->s, 1, false, &change), AOI_OK);
}

void rig_margin(struct rig *r, float leave_margin)
{
    rig_set(r, (struct aoi_space_change){.has_leave_margin = true, .leave_margin = leave_margin});
}

void rig_tiers(struct rig *r, const char *text)
{
    const char *why = "";
    struct aoi_space_change change = {.has_tiers = true};
    assert_int_equal(aoi_tiers_parse(text, &change.tiers, &why), AOI_OK);
    rig_set(r, change);
}

void rig_cast(struct rig *r, uint64_t entity, const char *message)
{
    assert_int_equal(model_publish_from(&r->m, r->s, 1, entity, message, (uint32_t)strlen(message)), AOI_OK);
}

void rig_cast_at(struct rig *r, float min_x, float min_y, float max_x, float max_y, const char *message)
{
    const float min[3] = {min_x, min_y, 0}, max[3] = {max_x, max_y, 0};
    assert_int_equal(model_publish_at(&r->m, r->s, min, max, message, (uint32_t)strlen(message)), AOI_OK);
}

struct aoi_why rig_why(struct rig *r, uint64_t player, uint64_t entity)
{
    struct aoi_why why;
    assert_int_equal(model_query_why(&r->m, r->s, player, entity, &why), AOI_OK);
    return why;
}

bool rig_flush(struct rig *r)
{
    r->told.n = 0;
    r->owners[0] = '\0';
    return model_flush(&r->m, r->s);
}

const struct rig_told *rig_told(struct rig *r, uint64_t player)
{
    static const struct rig_told nothing;
    for (uint32_t i = 0; i < r->told.n; i++)
        if (r->told.at[i].player == player) return &r->told.at[i];
    return &nothing;
}

const char *rig_tells(struct rig *r, uint64_t player)
{
    rig_flush(r);
    const char *text = rig_told(r, player)->text;
    return text[0] == ' ' ? text + 1 : text;
}
