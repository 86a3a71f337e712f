/* aoictl_player.c: the verbs about what players see: set-space, player, override, publish, release, adopt. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/aoictl.h"

static bool parse_float(const struct aoictl *ctl, const char *what, const char *word, float *out)
{
    double value;
    if (!aoictl_parse_double(ctl, what, word, &value)) return false;
    *out = (float)value;
    return true;
}

bool aoictl_is_rule(const struct aoictl *ctl, const char *word, struct libaoi_settings *s, uint32_t *which, bool *good)
{
    const char *v;
    if ((v = aoictl_option(word, "flush_ms"))) {
        *which |= LIBAOI_FLUSH;
        *good = aoictl_parse_u32(ctl, "flush_ms", v, &s->flush_ms);
    } else if ((v = aoictl_option(word, "leave_margin"))) {
        *which |= LIBAOI_LEAVE_MARGIN;
        *good = parse_float(ctl, "leave_margin", v, &s->leave_margin);
    } else if ((v = aoictl_option(word, "min_stay_ms"))) {
        *which |= LIBAOI_MIN_STAY;
        *good = aoictl_parse_u32(ctl, "min_stay_ms", v, &s->min_stay_ms);
    } else if ((v = aoictl_option(word, "max_view"))) {
        *which |= LIBAOI_MAX_VIEW;
        *good = aoictl_parse_u32(ctl, "max_view", v, &s->max_view);
    } else if ((v = aoictl_option(word, "max_enter_per_flush"))) {
        *which |= LIBAOI_MAX_ENTER;
        *good = aoictl_parse_u32(ctl, "max_enter_per_flush", v, &s->max_enter_per_flush);
    } else if ((v = aoictl_option(word, "update_tiers"))) {
        *which |= LIBAOI_TIERS;
        s->update_tiers = v;
        *good = true;
    } else {
        return false;
    }
    return true;
}

int aoictl_set_space(struct aoictl *ctl, int n, char **words)
{
    uint64_t space;
    uint32_t which = 0;
    struct libaoi_settings settings = {0};
    if (n < 2) return aoictl_bad_usage(ctl, "set-space SPACE SETTING=VALUE...");
    if (!aoictl_parse_id(ctl, "space", words[0], &space)) return AOICTL_USAGE;
    for (int i = 1; i < n; i++) {
        bool good = false;
        if (!aoictl_is_rule(ctl, words[i], &settings, &which, &good))
            return aoictl_bad_usage(ctl,
                                    "\"%s\" is no setting that can be changed; these are flush_ms, leave_margin, min_stay_ms, max_view, "
                                    "max_enter_per_flush, update_tiers",
                                    words[i]);
        if (!good) return AOICTL_USAGE;
    }
    if (libaoi_set_space(ctl->c, space, which, &settings)) return aoictl_call_failed(ctl);
    return aoictl_settle(ctl);
}

bool aoictl_is_player_setting(const struct aoictl *ctl, const char *word, struct libaoi_player *s, bool *good)
{
    const char *v;
    if ((v = aoictl_option(word, "mask")))
        *good = aoictl_parse_u32(ctl, "mask", v, &s->mask);
    else if ((v = aoictl_option(word, "max_view")))
        *good = aoictl_parse_u32(ctl, "max_view", v, &s->max_view);
    else if ((v = aoictl_option(word, "leave_margin")))
        *good = parse_float(ctl, "leave_margin", v, &s->leave_margin);
    else if ((v = aoictl_option(word, "max_enter_per_flush")))
        *good = aoictl_parse_u32(ctl, "max_enter_per_flush", v, &s->max_enter_per_flush);
    else if ((v = aoictl_option(word, "presence_only")))
        *good = aoictl_parse_flag(ctl, "presence_only", v, &s->presence_only);
    else if ((v = aoictl_option(word, "take_over")))
        *good = aoictl_parse_flag(ctl, "take_over", v, &s->take_over);
    else if ((v = aoictl_option(word, "keep_settings")))
        *good = aoictl_parse_flag(ctl, "keep_settings", v, &s->keep_settings);
    else
        return false;
    return true;
}

/* Units and viewport of a player, behind its settings. */
static bool look_through(struct aoictl *ctl, uint64_t space, uint64_t player, const char *word)
{
    uint64_t unit;
    float min[3], max[3];
    const char *v, *self = aoictl_option(word, "self");
    if (self || (v = aoictl_option(word, "unit"))) {
        if (!aoictl_parse_id(ctl, "unit", self ? self : v, &unit)) return false;
        libaoi_subscribe(ctl->c, space, player, unit, self != NULL);
        return true;
    }
    if ((v = aoictl_option(word, "box"))) {
        if (!aoictl_parse_box(ctl, v, min, max)) return false;
        libaoi_set_viewport(ctl->c, space, player, min, max);
        return true;
    }
    aoictl_bad_usage(ctl,
                     "unknown setting \"%s\" of a player; they are unit, self, box, mask, max_view, leave_margin, max_enter_per_flush, "
                     "presence_only, take_over, keep_settings",
                     word);
    return false;
}

int aoictl_player(struct aoictl *ctl, int n, char **words)
{
    uint64_t space, player;
    struct libaoi_player settings = {0};
    bool setting[256], any = n == 2; /* setting[i]: word i is one, and no unit or box */
    if (n < 2 || n > (int)sizeof setting) return aoictl_bad_usage(ctl, "player SPACE PLAYER [SETTING=VALUE]...");
    if (!aoictl_parse_id(ctl, "space", words[0], &space) || !aoictl_parse_id(ctl, "player", words[1], &player)) return AOICTL_USAGE;
    for (int i = 2; i < n; i++) {
        bool good = true;
        setting[i] = aoictl_is_player_setting(ctl, words[i], &settings, &good);
        any |= setting[i];
        if (!good) return AOICTL_USAGE;
    }
    /* units and viewports alone leave the settings that the player has */
    if (any) libaoi_open_player_with(ctl->c, space, player, &settings);
    bool good = true;
    for (int i = 2; i < n && good; i++) good = setting[i] || look_through(ctl, space, player, words[i]);
    int status = aoictl_settle(ctl);
    if (!good) return AOICTL_USAGE;
    if (status == AOICTL_OK) ctl->made = true;
    return status;
}

int aoictl_override(struct aoictl *ctl, int n, char **words)
{
    static const struct {
        const char *name;
        enum libaoi_override_kind kind;
    } kinds[] = {{"hide", LIBAOI_OVERRIDE_HIDE}, {"show", LIBAOI_OVERRIDE_SHOW}, {"none", LIBAOI_OVERRIDE_NONE}};
    uint64_t space, player, entity;
    if (n != 4) return aoictl_bad_usage(ctl, "override SPACE PLAYER ENTITY hide|show|none");
    if (!aoictl_parse_id(ctl, "space", words[0], &space) || !aoictl_parse_id(ctl, "player", words[1], &player) ||
        !aoictl_parse_id(ctl, "entity", words[2], &entity))
        return AOICTL_USAGE;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(words[3], kinds[i].name) != 0) continue;
        libaoi_override(ctl->c, space, player, entity, kinds[i].kind);
        return aoictl_settle(ctl);
    }
    return aoictl_bad_usage(ctl, "an override is hide, show or none, not \"%s\"", words[3]);
}

int aoictl_publish(struct aoictl *ctl, int n, char **words)
{
    uint64_t space, entity;
    float min[3], max[3];
    int status;
    if (n != 4) return aoictl_bad_usage(ctl, "publish SPACE from ID TEXT | at X,Y[,Z] TEXT | box BOX TEXT; a TEXT with blanks in quotes");
    if (!aoictl_parse_id(ctl, "space", words[0], &space)) return AOICTL_USAGE;
    size_t len = strlen(words[3]);
    if (strcmp(words[1], "from") == 0) {
        if (!aoictl_parse_id(ctl, "entity", words[2], &entity)) return AOICTL_USAGE;
        status = libaoi_publish(ctl->c, space, entity, words[3], len);
    } else if (strcmp(words[1], "at") == 0) {
        if (!aoictl_parse_point(ctl, words[2], min)) return AOICTL_USAGE;
        status = libaoi_publish_at(ctl->c, space, min, words[3], len);
    } else if (strcmp(words[1], "box") == 0) {
        if (!aoictl_parse_box(ctl, words[2], min, max)) return AOICTL_USAGE;
        status = libaoi_publish_box(ctl->c, space, min, max, words[3], len);
    } else {
        return aoictl_bad_usage(ctl, "a message is published from an entity, at a point, or in a box, not \"%s\"", words[1]);
    }
    return status ? aoictl_call_failed(ctl) : aoictl_settle(ctl);
}

int aoictl_release(struct aoictl *ctl, int n, char **words)
{
    uint64_t space, id, session = 0;
    const char *to = n > 3 ? aoictl_option(words[n - 1], "to") : NULL;
    if (to && !aoictl_parse_id(ctl, "session", to, &session)) return AOICTL_USAGE;
    if (to) n--;
    bool players = n > 1 && strcmp(words[1], "player") == 0;
    if (n < 3 || !(players || strcmp(words[1], "entity") == 0))
        return aoictl_bad_usage(ctl, "release SPACE entity ID... [to=SESSION] | player ID... [to=SESSION]");
    if (!aoictl_parse_id(ctl, "space", words[0], &space)) return AOICTL_USAGE;
    for (int i = 2; i < n; i++) {
        if (!aoictl_parse_id(ctl, words[1], words[i], &id)) return AOICTL_USAGE;
        if (players)
            libaoi_release_players(ctl->c, space, 1, &id, session);
        else
            libaoi_release(ctl->c, space, 1, &id, session);
    }
    return aoictl_settle(ctl);
}

int aoictl_adopt(struct aoictl *ctl, int n, char **words)
{
    uint64_t space, id;
    if (n < 2) return aoictl_bad_usage(ctl, "adopt SPACE ID...");
    if (!aoictl_parse_id(ctl, "space", words[0], &space)) return AOICTL_USAGE;
    for (int i = 1; i < n; i++) {
        if (!aoictl_parse_id(ctl, "entity", words[i], &id)) return AOICTL_USAGE;
        libaoi_adopt(ctl->c, space, id);
    }
    int status = aoictl_settle(ctl);
    if (status == AOICTL_OK) ctl->made = true;
    return status;
}

void aoictl_on_observed(void *ctx, uint64_t space, bool observed, size_t n, const uint64_t *id)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++) printf("%s %" PRIu64 " in space %" PRIu64 "\n", observed ? "observed" : "unobserved", id[i], space);
    fflush(stdout);
}

void aoictl_on_lost(void *ctx, uint64_t space, bool players, size_t n, const uint64_t *id)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++) printf("lost %s %" PRIu64 " in space %" PRIu64 "\n", players ? "player" : "entity", id[i], space);
    fflush(stdout);
}
