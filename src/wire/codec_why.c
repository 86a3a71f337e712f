/* codec_why.c: the sentence that tells a person why a player sees an entity, or not. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "wire/codec_internal.h"

struct sentence {
    char *text;
    size_t len; /* under CODEC__WHY_TEXT - 1 */
};

static void say(struct sentence *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct sentence *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(s->text + s->len, CODEC__WHY_TEXT - s->len, format, args);
    va_end(args);
    if (n > 0) s->len = s->len + (size_t)n < CODEC__WHY_TEXT ? s->len + (size_t)n : CODEC__WHY_TEXT - 1;
}

static void say_corner(struct sentence *s, const float corner[3], uint32_t dims)
{
    for (uint32_t a = 0; a < dims; a++) say(s, "%s%.7g", a > 0 ? "," : " ", (double)corner[a]);
}

/* "the viewport -10,-10 to 10,10" */
static void say_viewport(struct sentence *s, const struct aoi_why *w)
{
    say(s, "the viewport");
    say_corner(s, w->box[0], w->dims);
    say(s, " to");
    say_corner(s, w->box[1], w->dims);
    if (w->appeal != 0) say(s, " (its appeal is %.7g)", (double)w->appeal);
}

/* "unit 7 (61.2 away, radius 50, appeal 10)", by what the space's shape measures. They are named, not added up: to how much they round is the shape's affair too. */
static void say_eye(struct sentence *s, const struct aoi_why *w)
{
    if (w->by_viewport) {
        say_viewport(s, w);
        return;
    }
    say(s, "unit %" PRIu64, w->unit);
    if (w->shape == AOI_SHAPE_CELLS) {
        say(s, " (%.0f cell%s away, cell_range %" PRIu32 ")", w->away, w->away == 1 ? "" : "s", w->cell_range);
        return;
    }
    say(s, " (%.7g away%s, radius %.7g", w->away, w->shape == AOI_SHAPE_BOX ? " along an axis" : "", (double)w->radius);
    if (w->appeal != 0) say(s, ", appeal %.7g", (double)w->appeal);
    say(s, ")");
}

static void say_far(struct sentence *s, const struct aoi_why *w)
{
    if (w->by_viewport || w->viewport_alone) {
        say(s, "not seen: outside ");
        say_viewport(s, w);
    } else {
        say(s, "not seen: out of every range, the nearest is ");
        say_eye(s, w);
    }
    if (w->told && w->margin != 0) say(s, ", beyond the leave_margin of %.7g too", (double)w->margin);
}

static void say_rule(struct sentence *s, const struct aoi_why *w)
{
    if (w->own_unit && (w->rule == AOI_RULE_FAR || w->rule == AOI_RULE_BLIND)) { /* its distance from itself explains nothing */
        say(s, "not seen: it is a unit of the player's own, and no unit sees itself; subscribed with include_self it would be seen");
        return;
    }
    switch (w->rule) {
    case AOI_RULE_INCLUDE_SELF: say(s, "seen: a unit of the player's, subscribed with include_self"); break;
    case AOI_RULE_SHOW: say(s, "seen: overridden with SHOW"); break;
    case AOI_RULE_HIDE: say(s, "not seen: overridden with HIDE"); break;
    case AOI_RULE_MASK:
        say(s, "not seen: its layers 0x%" PRIx32 " and the player's mask 0x%" PRIx32 " have no bit in common", w->layers, w->mask);
        break;
    case AOI_RULE_RANGE:
        say(s, w->by_viewport ? "seen: in " : "seen: in the range of ");
        say_eye(s, w);
        break;
    case AOI_RULE_LEAVE_MARGIN:
        if (!w->by_viewport && w->shape == AOI_SHAPE_CELLS) {
            say(s, "seen: told before, and it still would be if both stood nearer to each other by the leave_margin of %.7g: ", (double)w->margin);
            say_eye(s, w);
            break;
        }
        say(s, "seen: told before, and still within the leave_margin of %.7g around ", (double)w->margin);
        if (!w->by_viewport) say(s, "the range of ");
        say_eye(s, w);
        break;
    case AOI_RULE_MIN_STAY: say(s, "seen: told so lately that min_stay_ms keeps it for another %" PRIu32 " ms", w->stay_left_ms); break;
    case AOI_RULE_FAR: say_far(s, w); break;
    case AOI_RULE_BLIND: say(s, "not seen: the player has neither a viewport nor a unit of a radius other than 0"); break;
    case AOI_RULE_RANK: say(s, "not seen: rank %" PRIu32 " of a max_view of %" PRIu32 ", others come before it", w->rank, w->max_view); break;
    case AOI_RULE_ENTER_BUDGET: say(s, "not seen yet: it waits for max_enter_per_flush, or for room on the connection"); break;
    default: say(s, w->seen ? "seen" : "not seen"); break;
    }
}

/* What comes of it, unless the player is told nothing whatever it sees. */
static void say_outcome(struct sentence *s, const struct codec_result *result)
{
    const struct aoi_why *why = &result->why;
    if (!why->seen && !why->told) return;
    if (result->why_deaf == CODEC_DEAF_FULL) {
        say(s, "; but the player's connection is full: it is told nothing until it reads");
    } else if (result->why_deaf == CODEC_DEAF_GONE) {
        say(s, "; but the player's connection is gone: it is told nothing");
        if (result->why_lease_ms > 0) say(s, ", and goes in %.1f s with its session, unless that resumes", (double)result->why_lease_ms / 1000);
    } else if (why->seen && !why->told && result->why_deaf == CODEC_DEAF_MEMORY) {
        say(s, "; but max_memory_bytes is reached: it waits until there is room");
    } else if (why->seen && !why->told && why->rule != AOI_RULE_ENTER_BUDGET) {
        say(s, "; the next flush tells it");
    } else if (!why->seen) {
        say(s, "; the next flush takes it away");
    }
}

void codec__why_text(const struct codec_result *result, char text[CODEC__WHY_TEXT])
{
    const struct aoi_why *why = &result->why;
    struct sentence s = {.text = text};
    say_rule(&s, why);
    if (why->max_view != 0 && why->rank != 0 && why->seen) say(&s, ", rank %" PRIu32 " of max_view %" PRIu32, why->rank, why->max_view);
    if (why->seen && why->told && why->period > 1) say(&s, "; updated every %" PRIu32 " flushes", why->period);
    say_outcome(&s, result);
}
