/* message.c: events told with the next flush to those who see where they come from.
 *
 * The one thing that is no state: a message lives from its command to the next flush. There each message goes to the players that it may concern, found by the index;
 * view.c then delivers it to those of them whose view holds the publisher, or who look at the place. Nobody else has any work with it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/space.h"

#define KEPT 4096 /* messages or posts: room for so many is kept from one flush to the next */

static int publish(struct aoi_space *space, struct aoi__message *message, const void *bytes, uint32_t len)
{
    const struct aoi_limits *limits = &space->world->limits;
    if (len > limits->max_message || space->messages.n >= limits->max_messages) return AOI_ELIMIT;
    message->body = aoi__blob_new(space, bytes, len);
    *array_add(&space->messages) = *message;
    space->stats.messages++;
    aoi__changed(space);
    return AOI_OK;
}

int aoi_publish_from(struct aoi_space *space, aoi_owner owner, uint64_t entity, const void *message, uint32_t len)
{
    if (entity == 0) return AOI_EINVAL;
    uint32_t slot = aoi__entity_slot(space, entity);
    if (slot == AOI__NONE) return AOI_ENOENTITY;
    if (space->own[slot].owner != owner) return AOI_EOWNER;
    int err = publish(space, &(struct aoi__message){.from = entity, .slot = slot}, message, len);
    if (err == AOI_OK) space->cold[slot].flags |= AOI__PUBLISHED;
    return err;
}

int aoi_publish_at(struct aoi_space *space, const float min[3], const float max[3], const void *message, uint32_t len)
{
    struct aoi__message m = {.slot = AOI__NONE};
    if (aoi__check_box(space, min, max, m.lo, m.hi) != AOI_OK) return AOI_EINVAL;
    return publish(space, &m, message, len);
}

void aoi__publisher_gone(struct aoi_space *space, uint32_t slot)
{
    for (uint32_t i = 0; i < space->messages.n; i++)
        if (space->messages.at[i].slot == slot) space->messages.at[i].slot = AOI__NONE;
}

static void post(struct aoi_space *space, uint32_t player, uint32_t message)
{
    struct aoi__player *p = &space->players.at[player];
    if (p->post != AOI__NONE && space->posts.at[p->post].message == message) return; /* seen by several of its units */
    if (space->posts.n == AOI_POSTS_MAX) {
        p->lost++;
        return;
    }
    *array_add(&space->posts) = (struct aoi__post){.message = message, .next = p->post};
    p->post = space->posts.n - 1;
    aoi__player_dirty(space, player);
}

static void post_watch(struct aoi_space *space, uint32_t watch, uint32_t message)
{
    const struct aoi__watch *w = &space->watches.at[watch];
    for (uint32_t i = 0; i < w->viewers.n; i++) post(space, w->viewers.at[i].player, message);
}

/* Whose view may hold the publisher: who watches where it is, is shown it, or has it as a unit. (Who keeps it for min_stay_ms, wherever it is, is found by emit.c.) */
static void post_publisher(struct aoi_space *space, uint32_t message)
{
    const struct aoi__message *m = &space->messages.at[message];
    const struct aoi__cold *c = &space->cold[m->slot];
    float lo[3], hi[3], appeal = aoi__rare(space, m->slot)->appeal;
    for (uint32_t a = 0; a < 3; a++) {
        lo[a] = space->hot[m->slot].pos[a] - appeal;
        hi[a] = space->hot[m->slot].pos[a] + appeal;
    }
    space->ops->watching(space, lo, hi, &space->found_watches);
    if (space->own[m->slot].watch != AOI__NONE) post_watch(space, space->own[m->slot].watch, message);
    if (c->flags & AOI__SHOWN) {
        const struct aoi__shown *shown = &space->shown.at[idmap_get(&space->shown_map, m->from)];
        for (uint32_t i = 0; i < shown->players.n; i++) post(space, shown->players.at[i], message);
    }
}

void aoi__messages_post(struct aoi_space *space)
{
    aoi__slots *watches = &space->found_watches;
    for (uint32_t i = space->messages.n; i-- > 0;) { /* the last one first: each goes to the head of a player's */
        const struct aoi__message *m = &space->messages.at[i];
        watches->n = 0;
        if (m->slot != AOI__NONE)
            post_publisher(space, i);
        else if (m->from == 0)
            space->ops->watching(space, m->lo, m->hi, watches);
        for (uint32_t w = 0; w < watches->n; w++) post_watch(space, watches->at[w], i);
        if (space->posts.n < AOI_POSTS_MAX) continue;
        for (uint32_t p = 0; p < space->players.n; p++) space->players.at[p].lost += i; /* at most: to find out would take as long as to post them */
        break;
    }
}

void aoi__messages_clear(struct aoi_space *space)
{
    if (space->messages.n == 0) return;
    for (uint32_t i = 0; i < space->messages.n; i++) {
        const struct aoi__message *m = &space->messages.at[i];
        if (m->slot != AOI__NONE) space->cold[m->slot].flags &= ~(uint32_t)AOI__PUBLISHED;
        aoi__blob_free(space, m->body);
    }
    bool any = space->posts.n > 0 || (space->messages.n > 0 && space->away_n > 0);
    for (uint32_t p = 0; any && p < space->players.n; p++) {
        space->players.at[p].post = AOI__NONE;
        if (space->players.at[p].away) space->players.at[p].lost += space->messages.n;
    }
    space->messages.n = 0;
    space->posts.n = 0;
    if (space->messages.cap > KEPT) array_clear(&space->messages);
    if (space->posts.cap > KEPT) array_clear(&space->posts);
}
