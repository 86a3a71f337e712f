/* demo_cast.c: vehicles that sound their horns, and whether each rider heard exactly those that it saw. */
#include <stdio.h>
#include <string.h>

#include "tools/demo.h"

/* At which step and as which of that step a horn was sounded: it is what the message says, so that nothing else tells. */
static bool parse_horn(const void *message, uint32_t len, uint32_t *step, uint32_t *k)
{
    char text[32];
    int end = 0;
    if (len >= sizeof text) return false;
    memcpy(text, message, len);
    text[len] = '\0';
    return sscanf(text, "beep %u %u%n", step, k, &end) == 2 && (uint32_t)end == len && *k < DEMO_HORNS;
}

uint64_t demo_horn(const struct demo *d, uint32_t step, uint32_t k)
{
    return d->horns.at[step * DEMO_HORNS + k];
}

void demo_sound_horns(struct demo *d, uint32_t step)
{
    char text[32];
    for (uint32_t k = 0; k < DEMO_HORNS; k++) {
        int len = snprintf(text, sizeof text, "beep %u %u", step, k);
        libaoi_publish(d->conn[0], DEMO_TOWN, demo_horn(d, step, k), text, (size_t)len);
    }
    d->horns_sounded += DEMO_HORNS;
}

static struct demo_ear *ear_of(struct demo *d, uint64_t player)
{
    return player == DEMO_LISTENER ? &d->listener : player >= 1 && player <= DEMO_PLAYERS ? &d->players[player - 1].ear : NULL;
}

/* Which horns of the steps until the next comparison are in the player's view as of this flush. */
static void note_view(struct demo *d, uint64_t player, uint64_t flush)
{
    struct demo_ear *ear = ear_of(d, player);
    const struct libaoi_view *view = libaoi_view(demo_eye(d, player), DEMO_TOWN, player);
    struct demo_ear_view *note = array_add(&ear->views);
    *note = (struct demo_ear_view){.flush = flush};
    for (uint32_t w = 0; view && w < DEMO_COMPARE_EVERY && d->horn_first + w < d->town.steps.n; w++)
        for (uint32_t k = 0; k < DEMO_HORNS; k++)
            if (libaoi_view_find(view, demo_horn(d, d->horn_first + w, k))) note->sees[w] |= (uint8_t)(1 << k);
}

void demo_on_view(struct demo *d, const struct libaoi_delta *delta)
{
    struct demo_ear *ear = ear_of(d, delta->player);
    if (!ear || delta->more) return;
    note_view(d, delta->player, delta->flush);
    ear->lost |= delta->messages_lost > 0;
}

void demo_on_message(void *ctx, const struct libaoi_delta *delta, uint64_t from, const void *message, uint32_t len)
{
    struct demo *d = ctx;
    struct demo_ear *ear = delta->space == DEMO_TOWN ? ear_of(d, delta->player) : NULL;
    uint32_t step, k;
    if (!ear || !parse_horn(message, len, &step, &k) || step < d->horn_first || step >= d->horn_first + DEMO_COMPARE_EVERY ||
        demo_horn(d, step, k) != from) {
        demo_mismatch(d, DEMO_TOWN, delta->player, from, "was heard, but did not sound its horn");
        return;
    }
    uint32_t w = step - d->horn_first;
    if (ear->n && step * DEMO_HORNS + k <= ear->last) demo_mismatch(d, DEMO_TOWN, delta->player, from, "was heard out of order or twice");
    if (ear->heard[w] && ear->flush[w] != delta->flush) demo_mismatch(d, DEMO_TOWN, delta->player, from, "was heard at two flushes");
    ear->last = step * DEMO_HORNS + k;
    ear->heard[w] |= (uint8_t)(1 << k);
    ear->flush[w] = delta->flush;
    ear->n++;
}

/* The horns of window step w, which all were told with this flush. */
static void check_ear(struct demo *d, uint64_t player, uint32_t w, uint64_t flush)
{
    const struct demo_ear *ear = ear_of(d, player);
    uint8_t sees = 0;
    for (uint32_t i = 0; i < ear->views.n && ear->views.at[i].flush <= flush; i++) sees = ear->views.at[i].sees[w];
    if (ear->heard[w] && ear->flush[w] != flush) demo_mismatch(d, DEMO_TOWN, player, 0, "heard horns with another flush than others did");
    for (uint32_t k = 0; k < DEMO_HORNS; k++)
        if ((sees ^ ear->heard[w]) & (1 << k))
            demo_mismatch(d, DEMO_TOWN, player, demo_horn(d, d->horn_first + w, k),
                          sees & (1 << k) ? "is seen, but was not heard" : "was heard, but is not seen");
    d->horns_heard += (uint64_t)__builtin_popcount(ear->heard[w]);
}

static void reset_ear(struct demo *d, uint64_t player)
{
    struct demo_ear *ear = ear_of(d, player);
    memset(ear->heard, 0, sizeof ear->heard);
    ear->lost = false;
    ear->views.n = 0;
    note_view(d, player, 0);
}

void demo_compare_casts(struct demo *d)
{
    for (uint32_t w = 0; d->horn_first + w <= d->step && w < DEMO_COMPARE_EVERY; w++) {
        if (d->listener.lost) break;
        if (d->listener.heard[w] != (1 << DEMO_HORNS) - 1) demo_mismatch(d, DEMO_TOWN, DEMO_LISTENER, 0, "did not hear every horn of the town");
        for (uint64_t p = 1; p <= DEMO_PLAYERS; p++)
            if (!d->players[p - 1].ear.lost) check_ear(d, p, w, d->listener.flush[w]);
    }
    d->horn_first = d->step + 1;
    for (uint64_t p = 1; p <= DEMO_PLAYERS; p++) reset_ear(d, p);
    reset_ear(d, DEMO_LISTENER);
}

void demo_clear_casts(struct demo *d)
{
    for (int i = 0; i < DEMO_PLAYERS; i++) array_clear(&d->players[i].ear.views);
    array_clear(&d->listener.views);
    array_clear(&d->horns);
}
