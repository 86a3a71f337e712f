/* aoictl_command.c: the verbs that change something: create, destroy, add, move, set, remove, flush, sleep. */
#include <stdio.h>
#include <string.h>

#include "tools/aoictl.h"

static bool parse_name(const struct aoictl *ctl, const char *what, const char *word, const char *one, const char *two, const char *three,
                       uint32_t *out)
{
    const char *names[] = {one, two, three};
    for (uint32_t i = 0; i < 3; i++) {
        if (!names[i] || strcmp(word, names[i]) != 0) continue;
        *out = i + 1;
        return true;
    }
    aoictl_bad_usage(ctl, "%s is %s%s%s or %s, not \"%s\"", what, one, three ? ", " : "", three ? two : "", three ? three : two, word);
    return false;
}

static bool parse_setting(const struct aoictl *ctl, const char *word, struct libaoi_settings *s, bool *if_absent)
{
    const char *v;
    uint32_t which = 0;
    bool good = false;
    if (aoictl_is_rule(ctl, word, s, &which, &good)) return good;
    if ((v = aoictl_option(word, "dimensions"))) return aoictl_parse_u32(ctl, "dimensions", v, &s->dimensions);
    if ((v = aoictl_option(word, "index"))) return parse_name(ctl, "index", v, "grid", "crosslist", NULL, &s->index);
    if ((v = aoictl_option(word, "shape"))) return parse_name(ctl, "shape", v, "box", "sphere", "cells", &s->shape);
    if ((v = aoictl_option(word, "cell_size"))) return aoictl_parse_double(ctl, "cell_size", v, &s->cell_size);
    if ((v = aoictl_option(word, "cell_range"))) return aoictl_parse_u32(ctl, "cell_range", v, &s->cell_range);
    if ((v = aoictl_option(word, "bounds"))) {
        s->bounded = true;
        return aoictl_parse_box(ctl, v, s->min, s->max);
    }
    if ((v = aoictl_option(word, "extra"))) return aoictl_parse_flag(ctl, "extra", v, &s->extra);
    if ((v = aoictl_option(word, "persistent"))) return aoictl_parse_flag(ctl, "persistent", v, &s->persistent);
    if ((v = aoictl_option(word, "if_absent"))) return aoictl_parse_flag(ctl, "if_absent", v, if_absent);
    aoictl_bad_usage(
        ctl,
        "unknown setting \"%s\"; they are dimensions, index, shape, cell_size, cell_range, bounds, extra, flush_ms, persistent, if_absent, "
        "leave_margin, min_stay_ms, max_view, max_enter_per_flush, update_tiers",
        word);
    return false;
}

int aoictl_create(struct aoictl *ctl, int n, char **words)
{
    uint64_t space;
    bool if_absent = false;
    struct libaoi_settings settings = {.flush_ms = LIBAOI_FLUSH_MS, .persistent = true};
    if (n < 1) return aoictl_bad_usage(ctl, "create SPACE [SETTING=VALUE]...");
    if (!aoictl_parse_id(ctl, "space", words[0], &space)) return AOICTL_USAGE;
    for (int i = 1; i < n; i++)
        if (!parse_setting(ctl, words[i], &settings, &if_absent)) return AOICTL_USAGE;
    if (libaoi_create_space(ctl->c, space, &settings, if_absent)) return aoictl_call_failed(ctl);
    ctl->made |= !settings.persistent;
    return aoictl_settle(ctl);
}

int aoictl_destroy(struct aoictl *ctl, int n, char **words)
{
    uint64_t space;
    if (n != 1) return aoictl_bad_usage(ctl, "destroy SPACE");
    if (!aoictl_parse_id(ctl, "space", words[0], &space)) return AOICTL_USAGE;
    libaoi_destroy_space(ctl->c, space);
    ctl->plain = true; /* NOT_OWNER means something else here than elsewhere, and the daemon says what */
    int status = aoictl_settle(ctl);
    ctl->plain = false;
    return status;
}

/* upsert NULL: of an entity that is there, of which radius, layers and payload can be set. */
static bool parse_field(const struct aoictl *ctl, const char *word, struct libaoi_entity *e, bool *upsert)
{
    const char *v, *appeal = aoictl_option(word, "appeal");
    double number;
    if (appeal || (v = aoictl_option(word, "radius"))) {
        if (!aoictl_parse_double(ctl, appeal ? "appeal" : "radius", appeal ? appeal : v, &number)) return false;
        *(appeal ? &e->appeal : &e->radius) = (float)number;
        return true;
    }
    if ((v = aoictl_option(word, "priority"))) return aoictl_parse_u32(ctl, "priority", v, &e->priority);
    if ((v = aoictl_option(word, "report_observed"))) return aoictl_parse_flag(ctl, "report_observed", v, &e->report_observed);
    if ((v = aoictl_option(word, "layers"))) return aoictl_parse_u32(ctl, "layers", v, &e->layers);
    if (upsert && (v = aoictl_option(word, "extra"))) return aoictl_parse_u32(ctl, "extra", v, &e->extra);
    if (upsert && (v = aoictl_option(word, "upsert"))) return aoictl_parse_flag(ctl, "upsert", v, upsert);
    if ((v = aoictl_option(word, "payload"))) {
        e->payload = v;
        e->payload_len = strlen(v);
        return true;
    }
    aoictl_bad_usage(ctl, "unknown field \"%s\"; they are radius, layers, appeal, priority, %s", word,
                     upsert ? "extra, payload, report_observed, upsert" : "payload (extra goes with move)");
    return false;
}

int aoictl_add(struct aoictl *ctl, int n, char **words)
{
    uint64_t space;
    bool upsert = false;
    struct libaoi_entity e = {0};
    if (n < 3)
        return aoictl_bad_usage(
            ctl, "add SPACE ID X,Y[,Z] [FIELD=VALUE]..., of radius, layers, extra, payload, appeal, priority, report_observed, upsert");
    if (!aoictl_parse_id(ctl, "space", words[0], &space) || !aoictl_parse_id(ctl, "entity", words[1], &e.id) ||
        !aoictl_parse_point(ctl, words[2], e.pos))
        return AOICTL_USAGE;
    for (int i = 3; i < n; i++)
        if (!parse_field(ctl, words[i], &e, &upsert)) return AOICTL_USAGE;
    if (libaoi_add(ctl->c, space, upsert ? LIBAOI_ADD_UPSERT : LIBAOI_ADD_NEW, &e)) return aoictl_call_failed(ctl);
    int status = aoictl_settle(ctl);
    if (status == AOICTL_OK) ctl->made = true;
    return status;
}

int aoictl_move(struct aoictl *ctl, int n, char **words)
{
    uint64_t space, id;
    uint32_t extra;
    float pos[3];
    const char *with_extra = n == 4 ? aoictl_option(words[3], "extra") : NULL;
    if (n != 3 && !with_extra) return aoictl_bad_usage(ctl, "move SPACE ID X,Y[,Z] [extra=N]");
    if (!aoictl_parse_id(ctl, "space", words[0], &space) || !aoictl_parse_id(ctl, "entity", words[1], &id) || !aoictl_parse_point(ctl, words[2], pos))
        return AOICTL_USAGE;
    if (with_extra && !aoictl_parse_u32(ctl, "extra", with_extra, &extra)) return AOICTL_USAGE;
    bool flat = strchr(words[2], ',') == strrchr(words[2], ','); /* in 3D that is refused; it must not put anything at z 0 that nobody asked for */
    libaoi_move(ctl->c, space, 1, &id, &pos[0], &pos[1], flat ? NULL : &pos[2], with_extra ? &extra : NULL);
    return aoictl_settle(ctl);
}

int aoictl_set(struct aoictl *ctl, int n, char **words)
{
    uint64_t space, id;
    if (n < 3) return aoictl_bad_usage(ctl, "set SPACE ID [radius=R] [layers=BITS] [payload=TEXT] [appeal=A] [priority=N]");
    if (!aoictl_parse_id(ctl, "space", words[0], &space) || !aoictl_parse_id(ctl, "entity", words[1], &id)) return AOICTL_USAGE;
    for (int i = 2; i < n; i++) {
        struct libaoi_entity e = {0};
        if (!parse_field(ctl, words[i], &e, NULL)) return AOICTL_USAGE;
        if (aoictl_option(words[i], "radius"))
            libaoi_set_radius(ctl->c, space, id, e.radius);
        else if (aoictl_option(words[i], "layers"))
            libaoi_set_layers(ctl->c, space, id, e.layers);
        else if (aoictl_option(words[i], "appeal"))
            libaoi_set_appeal(ctl->c, space, id, e.appeal);
        else if (aoictl_option(words[i], "priority"))
            libaoi_set_priority(ctl->c, space, id, e.priority);
        else if (libaoi_set_payload(ctl->c, space, id, e.payload, e.payload_len))
            return aoictl_call_failed(ctl);
    }
    return aoictl_settle(ctl);
}

int aoictl_remove(struct aoictl *ctl, int n, char **words)
{
    uint64_t space, id;
    if (n < 2) return aoictl_bad_usage(ctl, "remove SPACE ID...");
    if (!aoictl_parse_id(ctl, "space", words[0], &space)) return AOICTL_USAGE;
    for (int i = 1; i < n; i++) {
        if (!aoictl_parse_id(ctl, "entity", words[i], &id)) return AOICTL_USAGE;
        libaoi_remove(ctl->c, space, 1, &id);
    }
    return aoictl_settle(ctl);
}

int aoictl_flush(struct aoictl *ctl, int n, char **words)
{
    uint64_t space, tag = 0;
    if (n != 1 && n != 2) return aoictl_bad_usage(ctl, "flush SPACE [TAG]");
    if (!aoictl_parse_id(ctl, "space", words[0], &space) || (n == 2 && !aoictl_parse_u64(ctl, "tag", words[1], &tag))) return AOICTL_USAGE;
    libaoi_flush(ctl->c, space, tag);
    return aoictl_settle(ctl);
}

int aoictl_sleep(struct aoictl *ctl, int n, char **words)
{
    double seconds;
    if (n != 1) return aoictl_bad_usage(ctl, "sleep SECONDS");
    if (!aoictl_parse_double(ctl, "seconds", words[0], &seconds)) return AOICTL_USAGE;
    return aoictl_linger(ctl, seconds < 0 ? 0 : seconds);
}
