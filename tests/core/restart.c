/* restart.c: the model's world goes through bytes: saved, loaded, and the old one forgotten, as by a daemon that is started anew. */
#include <string.h>

#include "base/buf.h"
#include "core/space.h"
#include "model.h"

static void take_bytes(void *ctx, const void *bytes, size_t len)
{
    buf_append(ctx, bytes, len);
}

void model_save(const struct aoi_world *world, uint64_t now_ms, struct buf *out)
{
    aoi_world_save(world, now_ms, take_bytes, out);
}

/* On a block of exactly its length, so that AddressSanitizer sees a read past the end. */
struct aoi_world *model_load(const struct aoi_world *old, const void *bytes, size_t len, uint64_t now_ms, uint64_t passed_ms, char *why)
{
    uint8_t *exact = mem_alloc(len + 1);
    memcpy(exact + 1, bytes, len);
    struct aoi_world *world = aoi_world_load(&old->limits, &old->sink,
                                             &(struct aoi_load){.bytes = exact + 1, .len = len, .now_ms = now_ms, .passed_ms = passed_ms}, why);
    free(exact);
    return world;
}

/* Whoever starts anew with a full delta needs no leaves of what is no more. */
static void forget_dead(const struct model_space *s, struct model_player *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->told.n; i++) {
        const struct model_entity *e = model_entity(s, p->told.at[i].id);
        if (e != NULL && e->identity == p->told.at[i].identity) p->told.at[n++] = p->told.at[i];
    }
    p->told.n = n;
}

/* What the model knows of the players of a space that nobody is connected to any more. */
static void all_are_restated(struct model *m, struct model_space *s)
{
    for (uint32_t i = 0; i < s->players.n; i++) {
        forget_dead(s, &s->players.at[i]);
        s->players.at[i].full_due = true;
        s->players.at[i].lost_most += s->messages.n;
    }
    s->messages.n = 0;
    s->messages_n = 0; /* of the counters nothing is saved */
    s->dirty = aoi_space_dirty(model_core_space(m, s));
    s->notified = false;
}

void model_restart(struct model *m, uint64_t passed_ms)
{
    char why[AOI_LOAD_WHY] = "";
    struct buf saved = {0}, again = {0};
    struct aoi_world *old = m->world;
    model_save(old, m->now_ms, &saved);
    m->world = model_load(old, buf_data(&saved), buf_len(&saved), m->now_ms, 0, why);
    REQUIRE(m->world != NULL, "a world that was saved is not loaded: %s", why);
    model_save(m->world, m->now_ms, &again);
    REQUIRE(buf_len(&saved) == buf_len(&again), "saved again it has %zu bytes, not %zu", buf_len(&again), buf_len(&saved));
    bool waiting = false; /* messages, which alone make a difference */
    for (uint32_t i = 0; i < old->spaces.n; i++) waiting |= old->spaces.at[i]->messages.n > 0;
    REQUIRE(waiting || memcmp(buf_data(&saved), buf_data(&again), buf_len(&saved)) == 0, "saved again it has other bytes");
    aoi_world_free(m->world);
    m->now_ms += passed_ms;
    m->world = model_load(old, buf_data(&again), buf_len(&again), m->now_ms, passed_ms, why);
    REQUIRE(m->world != NULL, "a world that was saved twice is not loaded: %s", why);
    aoi_world_on_change(m->world, old->on_change, old->on_change_ctx);
    aoi_world_free(old);
    aoi_validate(m->world);
    for (aoi_owner o = 1; o < MODEL_OWNERS; o++) m->away[o] = true;
    for (uint32_t i = 0; i < m->spaces.n; i++) all_are_restated(m, m->spaces.at[i]);
    buf_clear(&saved);
    buf_clear(&again);
}
