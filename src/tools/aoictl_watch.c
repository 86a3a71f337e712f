/* aoictl_watch.c: the verb watch: prints deltas as they come, one line an item. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/aoictl.h"

struct aoictl_watch {
    uint64_t player;
    uint64_t lines, most; /* printed so far; 0: no end */
    bool closed;
};

static void print_place(float x, float y, const float *z, const uint32_t *extra)
{
    printf(" %.9g %.9g", (double)x, (double)y);
    if (z) printf(" %.9g", (double)*z);
    if (extra) printf(" extra=%" PRIu32, *extra);
}

static void print_enters(const struct libaoi_delta *d)
{
    for (size_t i = 0; i < d->enter_n; i++) {
        printf("enter %" PRIu64, d->enter_id[i]);
        print_place(d->enter_x[i], d->enter_y[i], d->enter_z ? d->enter_z + i : NULL, d->enter_extra ? d->enter_extra + i : NULL);
        if (d->enter_layers[i] != 1) printf(" layers=0x%" PRIx32, d->enter_layers[i]);
        if (d->enter_payload && d->enter_payload_len[i]) {
            printf(" payload=");
            aoictl_print_payload(d->enter_payload[i], d->enter_payload_len[i]);
        }
        putchar('\n');
    }
}

void aoictl_on_delta(void *ctx, const struct libaoi_delta *d)
{
    struct aoictl_watch *w = ((struct aoictl *)ctx)->watch;
    if (!w || d->player != w->player) return;
    if (d->part == 0) printf("flush %" PRIu64 " delta %" PRIu64 "%s\n", d->flush, d->seq, d->full ? " full" : "");
    for (size_t i = 0; i < d->leave_n; i++) printf("leave %" PRIu64 "\n", d->leave_id[i]);
    print_enters(d);
    for (size_t i = 0; i < d->update_n; i++) {
        printf("update %" PRIu64, d->update_id[i]);
        print_place(d->update_x[i], d->update_y[i], d->update_z ? d->update_z + i : NULL, d->update_extra ? d->update_extra + i : NULL);
        putchar('\n');
    }
    for (size_t i = 0; i < d->payload_n; i++) {
        printf("payload %" PRIu64 " ", d->payload_id[i]);
        aoictl_print_payload(d->payload[i], d->payload_len[i]);
        putchar('\n');
    }
    for (size_t i = 0; i < d->layers_n; i++) printf("layers %" PRIu64 " 0x%" PRIx32 "\n", d->layers_id[i], d->layers[i]);
    for (size_t i = 0; i < d->message_n; i++) {
        printf("message %" PRIu64 " ", d->message_from[i]);
        aoictl_print_payload(d->message[i], d->message_len[i]);
        putchar('\n');
    }
    if (d->messages_lost) printf("messages lost: %" PRIu64 " at most\n", d->messages_lost);
    if (d->closed) printf("closed\n");
    w->closed |= d->closed;
    w->lines += d->leave_n + d->enter_n + d->update_n + d->payload_n + d->layers_n + d->message_n;
    fflush(stdout);
}

struct watch_words {
    uint64_t space, unit;
    bool box, include_self, open;
    float min[3], max[3];
    struct libaoi_player settings; /* if open */
    double seconds;
};

static bool parse_watch(struct aoictl *ctl, int n, char **words, struct watch_words *out, struct aoictl_watch *w)
{
    for (int i = 1; i < n; i++) {
        const char *name = words[i] + (strncmp(words[i], "--", 2) == 0 ? 2 : 0), *equals = strchr(name, '=');
        size_t len = equals ? (size_t)(equals - name) : strlen(name);
        if (len == 12 && strncmp(name, "include-self", len) == 0 && !equals) {
            out->include_self = true;
            continue;
        }
        bool good = false;
        if (aoictl_is_player_setting(ctl, words[i], &out->settings, &good)) {
            out->open = true;
            if (!good) return false;
            continue;
        }
        const char *value = equals ? equals + 1 : ++i < n ? words[i] : "";
        if (len == 4 && strncmp(name, "unit", len) == 0)
            good = aoictl_parse_id(ctl, "unit", value, &out->unit);
        else if (len == 3 && strncmp(name, "box", len) == 0)
            good = out->box = aoictl_parse_box(ctl, value, out->min, out->max);
        else if (len == 6 && strncmp(name, "player", len) == 0)
            good = aoictl_parse_id(ctl, "player", value, &w->player);
        else if (len == 3 && strncmp(name, "for", len) == 0)
            good = aoictl_parse_double(ctl, "for", value, &out->seconds);
        else if (len == 5 && strncmp(name, "count", len) == 0)
            good = aoictl_parse_u64(ctl, "count", value, &w->most);
        else
            good = !aoictl_bad_usage(ctl, "unknown option \"%s\" of watch; aoictl --help lists them", words[equals ? i : i - 1]);
        if (!good) return false;
    }
    return true;
}

int aoictl_watch(struct aoictl *ctl, int n, char **words)
{
    struct watch_words ask = {.seconds = -1};
    /* a player of our own: no other session has this number */
    struct aoictl_watch w = {.player = UINT64_C(0xa01c000000000000) + libaoi_welcome(ctl->c)->session};
    if (n < 2)
        return aoictl_bad_usage(ctl, "watch SPACE --unit ID [--include-self] | --box BOX, and [--player ID] [--for SECONDS] [--count LINES], and "
                                     "settings as of player: --max_view=N");
    if (!aoictl_parse_id(ctl, "space", words[0], &ask.space) || !parse_watch(ctl, n, words, &ask, &w)) return AOICTL_USAGE;
    if (!ask.unit && !ask.box) return aoictl_bad_usage(ctl, "watch needs --unit ID (see what that entity sees) or --box X0,Y0,X1,Y1");
    ctl->watch = &w;
    if (ask.open) libaoi_open_player_with(ctl->c, ask.space, w.player, &ask.settings);
    if (ask.unit) libaoi_subscribe(ctl->c, ask.space, w.player, ask.unit, ask.include_self);
    if (ask.box) libaoi_set_viewport(ctl->c, ask.space, w.player, ask.min, ask.max);
    int status = aoictl_settle(ctl);
    if (status == AOICTL_OK) fprintf(stderr, "watching space %" PRIu64 " as player %" PRIu64 "; Ctrl-C ends it\n", ask.space, w.player);
    for (double left = ask.seconds; status == AOICTL_OK && !aoictl_stop && !w.closed && !(w.most && w.lines >= w.most);) {
        double slice = left < 0 || left > 0.05 ? 0.05 : left;
        if (left >= 0 && left < 1e-9) break;
        status = aoictl_linger(ctl, slice);
        if (left >= 0) left -= slice;
    }
    if (status == AOICTL_OK && !w.closed) {
        libaoi_close_player(ctl->c, ask.space, w.player);
        ctl->watch = NULL;
        status = aoictl_settle(ctl);
    }
    ctl->watch = NULL;
    return status;
}
