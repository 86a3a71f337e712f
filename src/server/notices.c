/* notices.c: what a session is told once and must learn, though its connection be full or gone. */
#include "server/notices.h"

#include <stdlib.h>
#include <string.h>

#define KEPT_MS 60000 /* after that a connection on which nothing arrives is closed anyway */
#define KEPT_MOST 65536u
void notices_clear(struct notices *notices)
{
    array_clear(&notices->closed);
    array_clear(&notices->lost);
    notices->closed_sent = notices->lost_sent = 0;
}

void notices_forget(struct notices *notices, uint64_t now_ms)
{
    uint32_t old = notices->closed_sent > KEPT_MOST ? notices->closed_sent - KEPT_MOST : 0;
    while (old < notices->closed_sent && now_ms - notices->closed.at[old].sent_ms >= KEPT_MS) old++;
    notices->closed.n -= old;
    notices->closed_sent -= old;
    if (old > 0) memmove(notices->closed.at, notices->closed.at + old, notices->closed.n * sizeof *notices->closed.at);
    array_shrink(&notices->closed, notices->closed.n); /* a space of a million players that ends is not paid for ever after */

    old = notices->lost_sent > KEPT_MOST ? notices->lost_sent - KEPT_MOST : 0;
    while (old < notices->lost_sent && now_ms - notices->lost.at[old].sent_ms >= KEPT_MS) old++;
    notices->lost.n -= old;
    notices->lost_sent -= old;
    if (old > 0) memmove(notices->lost.at, notices->lost.at + old, notices->lost.n * sizeof *notices->lost.at);
    array_shrink(&notices->lost, notices->lost.n);
}

void notices_were_sent(struct notices *notices, uint64_t now_ms)
{
    if (notices->closed_sent > 2 * KEPT_MOST || notices->lost_sent > 2 * KEPT_MOST) notices_forget(notices, now_ms);
}

/* The owner has the player again, or the entity. */
static bool has_again(const struct aoi_world *world, aoi_owner owner, uint64_t space_id, uint64_t id, bool is_player)
{
    struct aoi_entity entity;
    const struct aoi_space *space = aoi_space_find(world, space_id);
    if (space == NULL) return false;
    if (is_player) return aoi_player_owner(space, id) == owner;
    return aoi_entity_get(space, id, &entity) == AOI_OK && entity.owner == owner;
}

void notices_repeat(struct notices *notices, const struct aoi_world *world, aoi_owner owner)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < notices->closed.n; i++) {
        const struct notice_closed *c = &notices->closed.at[i];
        if (i >= notices->closed_sent || !has_again(world, owner, c->space, c->player, true)) notices->closed.at[n++] = *c;
    }
    notices->closed.n = n;
    n = 0;
    for (uint32_t i = 0; i < notices->lost.n; i++) {
        const struct notice_lost *l = &notices->lost.at[i];
        if (i >= notices->lost_sent || !has_again(world, owner, l->space, l->id, l->is_player)) notices->lost.at[n++] = *l;
    }
    notices->lost.n = n;
    notices->closed_sent = notices->lost_sent = 0;
    notices_sort(notices);
}

static int compare_lost(const void *left, const void *right)
{
    const struct notice_lost *a = left, *b = right;
    if (a->space != b->space) return a->space < b->space ? -1 : 1;
    if (a->is_player != b->is_player) return a->is_player ? 1 : -1;
    return a->id < b->id ? -1 : a->id > b->id;
}

void notices_sort(struct notices *notices)
{
    uint32_t n = notices->lost.n - notices->lost_sent;
    if (n > 1) qsort(notices->lost.at + notices->lost_sent, n, sizeof *notices->lost.at, compare_lost);
}
