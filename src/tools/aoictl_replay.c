/* aoictl_replay.c: the verb replay: drives the entities of a trace. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/idmap.h"
#include "tools/aoictl.h"
#include "tools/clock.h"
#include "tools/trace.h"
#include "wire/recording.h"

#define MAX_UNSENT ((size_t)8 << 20) /* bytes waiting for the socket before the replay waits for the daemon */

#define CODES 32

struct aoictl_tally {
    uint64_t refused, by_code[CODES]; /* an entity counts once: what is refused later about it follows from that */
    uint64_t followed, unlisted;      /* those; and those of which an ack had no room to say more */
    char said[200];                   /* of the last one */
    struct idmap seen;
};

void aoictl_tally(struct aoictl_tally *t, const struct aoictl *ctl, const struct libaoi_ack *ack)
{
    t->unlisted += ack->refused - ack->n;
    for (size_t i = 0; i < ack->n; i++) {
        const struct libaoi_refusal *r = &ack->refusals[i];
        bool known = r->id && idmap_get(&t->seen, r->id) != IDMAP_NONE;
        if (r->id) idmap_put(&t->seen, r->id, 1);
        t->followed += known;
        if (known) continue;
        t->by_code[r->code > 0 && r->code < CODES ? r->code : 0]++;
        snprintf(t->said, sizeof t->said, "%s", r->text);
        if (t->refused++ < AOICTL_EXAMPLES) aoictl_refused(ctl, r, "");
    }
}

/* The sum, with what to do about the most frequent one. */
static int report_refusals(const struct aoictl *ctl, const struct aoictl_tally *t)
{
    int most = 0;
    if (!t->refused && !t->unlisted) return AOICTL_OK;
    fflush(stdout);
    fprintf(stderr, "aoictl: refused:");
    for (int code = 0; code < CODES; code++) {
        if (!t->by_code[code]) continue;
        fprintf(stderr, " %" PRIu64 " %s,", t->by_code[code], libaoi_code_name(code));
        if (t->by_code[code] > t->by_code[most]) most = code;
    }
    fprintf(stderr, " and %" PRIu64 " later commands about the same entities\n", t->followed + t->unlisted);
    bool taken = most == LIBAOI_DUPLICATE_ENTITY;
    return aoictl_failed(ctl, "the replay was not whole%s",
                         taken ? "; others have these ids there: --space takes another space" : aoictl_advice(most, t->said));
}

struct replay {
    const char *path;
    uint64_t space;
    double speed;            /* seconds of the trace a second */
    double steps_per_second; /* 0: by the times of the trace */
    float radius;
    bool loop;
    bool timed; /* --speed was given */
    struct trace trace;
    struct trace_diff diff;
    uint64_t enters, moves, leaves;
};

static bool parse_replay(struct aoictl *ctl, int n, char **words, struct replay *r)
{
    for (int i = 0; i < n; i++) {
        double number = 0;
        const char *word = words[i], *v;
        if (strcmp(word, "--loop") == 0) {
            r->loop = true;
            continue;
        }
        if (word[0] != '-' || word[1] != '-') {
            if (r->path) return !aoictl_bad_usage(ctl, "replay takes one file; \"%s\" is a second one", word);
            r->path = word;
            continue;
        }
        char name[32];
        const char *equals = strchr(word, '=');
        snprintf(name, sizeof name, "%.*s", (int)(equals ? equals - word : 31), word);
        v = equals ? equals + 1 : ++i < n ? words[i] : "";
        if (strcmp(name, "--space") == 0) {
            if (!aoictl_parse_id(ctl, "space", v, &r->space)) return false;
            continue;
        }
        if (!aoictl_parse_double(ctl, name, v, &number)) return false;
        if (strcmp(name, "--speed") == 0 && number > 0)
            r->speed = number, r->timed = true;
        else if (strcmp(name, "--steps-per-second") == 0 && number > 0)
            r->steps_per_second = number;
        else if (strcmp(name, "--radius") == 0 && number >= 0)
            r->radius = (float)number;
        else
            return !aoictl_bad_usage(ctl, "\"%s %s\" is no option of replay, or out of range; aoictl --help lists them", name, v);
    }
    if (r->timed && r->steps_per_second > 0)
        return !aoictl_bad_usage(ctl, "--speed goes by the times of the trace, --steps-per-second does not: give one of them");
    return r->path || !aoictl_bad_usage(ctl, "replay FILE [--space ID] [--speed S | --steps-per-second N] [--radius R] [--loop]");
}

static void send_step(struct aoictl *ctl, struct replay *r)
{
    const struct trace_diff *d = &r->diff;
    if (d->leaves.n) libaoi_remove(ctl->c, r->space, d->leaves.n, d->leaves.at);
    for (uint32_t i = 0; i < d->enters.n; i++) {
        const struct trace_row *row = &d->enters.at[i];
        libaoi_add(ctl->c, r->space, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = row->id, .pos = {row->x, row->y}, .radius = r->radius});
    }
    if (d->move_id.n) libaoi_move(ctl->c, r->space, d->move_id.n, d->move_id.at, d->move_x.at, d->move_y.at, NULL, NULL);
    libaoi_send(ctl->c);
    r->enters += d->enters.n;
    r->moves += d->move_id.n;
    r->leaves += d->leaves.n;
}

/* One run through the trace; the last step's entities leave at its end. */
static int replay_once(struct aoictl *ctl, struct replay *r)
{
    double start = clock_seconds(), first = r->trace.steps.at[0].t;
    uint32_t n = r->trace.steps.n;
    for (uint32_t step = 0; step <= n && !aoictl_stop; step++) {
        double last = n > 1 ? r->trace.steps.at[n - 1].t - r->trace.steps.at[n - 2].t : 1;
        double t = step < n ? r->trace.steps.at[step].t - first : r->trace.steps.at[n - 1].t - first + last;
        double at = r->steps_per_second > 0 ? step / r->steps_per_second : t / r->speed;
        double wait = start + at - clock_seconds();
        if (aoictl_linger(ctl, wait > 0 ? wait : 0)) return AOICTL_FAILED;
        while (libaoi_unsent(ctl->c) > MAX_UNSENT && !aoictl_stop)
            if (libaoi_poll(ctl->c, 100) < 0) return aoictl_call_failed(ctl);
        trace_diff(&r->trace, step, &r->diff);
        send_step(ctl, r);
        if (step < n)
            fprintf(stderr, "step %" PRIu32 "/%" PRIu32 " t=%g entities=%" PRIu32 " moves=%" PRIu64 "\n", step + 1, n, t + first,
                    r->trace.steps.at[step].n, r->moves);
    }
    return aoictl_settle(ctl);
}

int aoictl_replay(struct aoictl *ctl, int n, char **words)
{
    struct replay r = {.space = 1, .speed = 1};
    char error[256];
    if (!parse_replay(ctl, n, words, &r)) return AOICTL_USAGE;
    if (recording_is(r.path)) {
        bool plain = r.space == 1 && r.steps_per_second == 0 && r.radius == 0 && !r.loop;
        return plain ? aoictl_replay_recording(ctl, r.path, r.speed) : aoictl_bad_usage(ctl, "a recording takes no option but --speed");
    }
    if (trace_load(&r.trace, r.path, error, sizeof error)) return aoictl_failed(ctl, "%s", error);
    /* into a space that is there, whatever its settings, or one of our own */
    uint64_t entities, players;
    const float zero[3] = {0, 0, 0};
    int status = libaoi_query_count(ctl->c, r.space, zero, zero, 0, ctl->timeout_ms, &entities, &players);
    if (status == LIBAOI_EREFUSED && libaoi_refused_code(ctl->c) == LIBAOI_UNKNOWN_SPACE) {
        libaoi_create_space(ctl->c, r.space, &(struct libaoi_settings){.flush_ms = LIBAOI_FLUSH_MS}, true);
        status = aoictl_settle(ctl);
        if (status == AOICTL_OK) fprintf(stderr, "space %" PRIu64 " was not there: made for this replay, and gone with it\n", r.space);
    } else if (status) {
        status = aoictl_call_failed(ctl);
    }
    struct aoictl_tally tally = {0};
    ctl->tally = &tally;
    while (status == AOICTL_OK && !aoictl_stop) {
        status = replay_once(ctl, &r);
        if (!r.loop) break;
    }
    ctl->tally = NULL;
    if (status == AOICTL_OK) {
        printf("enters %" PRIu64 " moves %" PRIu64 " leaves %" PRIu64 "\n", r.enters, r.moves, r.leaves);
        status = report_refusals(ctl, &tally);
    }
    idmap_clear(&tally.seen);
    trace_clear(&r.trace);
    trace_clear_diff(&r.diff);
    return status;
}
