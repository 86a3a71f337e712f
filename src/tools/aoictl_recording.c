/* aoictl_recording.c: the verb replay for a recording of a daemon: sends another one what clients sent then, each session from a connection of its own. */
#include <inttypes.h>

#include "client/libaoi_impl.h"
#include "tools/aoictl.h"
#include "tools/clock.h"
#include "wire/recording.h"

#define ARENA_BYTES ((size_t)1 << 31) /* that a frame may unpack to; the daemon that took it has its own limit */
#define MAX_UNSENT ((size_t)8 << 20)  /* bytes waiting for a socket before the replay waits for the daemon */
#define STEP_SECONDS 0.005            /* how often connections are looked at while the replay waits */

struct recorded_session {
    uint64_t owner, id; /* then; owner 0: it has ended */
    struct libaoi *c;
};

struct replayed {
    struct aoictl *ctl;
    struct recording recording;
    struct arena arena;
    double speed;
    double began;        /* by clock_seconds() */
    struct libaoi *last; /* that sent the last frame; NULL: it was answered */
    uint64_t first_us;   /* time of the first entry */
    uint64_t frames, sessions_n, refused, deltas;
    ARRAY(struct recorded_session) sessions;
};

/* The first few are printed: they may have been refused then, too. */
static void on_ack(void *ctx, const struct libaoi_ack *ack)
{
    struct replayed *r = ctx;
    for (size_t i = 0; i < ack->n && r->refused + i < AOICTL_EXAMPLES; i++) aoictl_refused(r->ctl, &ack->refusals[i], "");
    r->refused += ack->refused;
}

static void on_error(void *ctx, uint64_t seq, int code, const char *text)
{
    (void)seq, (void)code, (void)text;
    ((struct replayed *)ctx)->refused++;
}

static void on_delta(void *ctx, const struct libaoi_delta *delta)
{
    ((struct replayed *)ctx)->deltas += !delta->more;
}

static struct recorded_session *find(struct replayed *r, uint64_t owner)
{
    for (uint32_t i = 0; i < r->sessions.n; i++)
        if (r->sessions.at[i].owner == owner) return &r->sessions.at[i];
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------------- time */

/* Reads what has come. 0, or a connection has failed. */
static int look(struct replayed *r, size_t *unsent)
{
    *unsent = 0;
    for (uint32_t i = 0; i < r->sessions.n; i++) {
        if (r->sessions.at[i].owner == 0) continue;
        if (libaoi_poll(r->sessions.at[i].c, 0) < 0)
            return aoictl_failed(r->ctl, "session %" PRIu64 " of the recording: %s", r->sessions.at[i].id, libaoi_error(r->sessions.at[i].c));
        *unsent += libaoi_unsent(r->sessions.at[i].c);
    }
    return AOICTL_OK;
}

/* Until it is as late as it was then, and the daemon has taken most of what was sent. */
static int wait_for(struct replayed *r, uint64_t time_us)
{
    double due = r->began + (time_us < r->first_us ? 0 : (double)(time_us - r->first_us) / 1e6 / r->speed);
    for (;;) {
        size_t unsent;
        double left = due - clock_seconds();
        if (look(r, &unsent)) return AOICTL_FAILED;
        if (aoictl_stop || (left <= 0 && unsent < MAX_UNSENT)) return AOICTL_OK;
        if (aoictl_linger(r->ctl, left > 0 && left < STEP_SECONDS ? left : STEP_SECONDS)) return AOICTL_FAILED;
    }
}

/* ------------------------------------------------------------------------------------------------------------- entries */

/* Frames of different connections are taken in the order of then: before another one than c has its turn, all is answered. */
static int answered(struct replayed *r, const struct libaoi *c)
{
    if (!r->last || r->last == c) return AOICTL_OK;
    int said = libaoi_sync(r->last, r->ctl->timeout_ms);
    if (said && said != LIBAOI_EREFUSED) return aoictl_failed(r->ctl, "%s", libaoi_error(r->last));
    r->last = NULL;
    return AOICTL_OK;
}

static int begin(struct replayed *r, const struct recording_entry *e)
{
    char error[512];
    const struct libaoi_handlers handlers = {.ctx = r, .ack = on_ack, .error = on_error, .delta = on_delta};
    struct libaoi *c = aoictl_connect(r->ctl, &handlers, error, sizeof error);
    if (!c) return aoictl_failed(r->ctl, "%s", error);
    *array_add(&r->sessions) = (struct recorded_session){.owner = e->who, .id = recording_number(e, 0), .c = c};
    r->sessions_n++;
    return AOICTL_OK;
}

static int end(struct replayed *r, const struct recording_entry *e)
{
    struct recorded_session *session = find(r, e->who);
    if (!session) return AOICTL_OK;
    if (answered(r, NULL)) return AOICTL_FAILED;
    libaoi_bye(session->c, r->ctl->timeout_ms);
    libaoi_close(session->c);
    array_swap_remove(&r->sessions, (uint32_t)(session - r->sessions.at));
    return AOICTL_OK;
}

/* Sessions have other ids now: Release names one. */
static void rename_sessions(struct replayed *r, struct codec_client_frame *frame)
{
    for (size_t i = 0; i < frame->u.batch.command_n; i++) {
        struct codec_command *command = &frame->u.batch.commands[i];
        for (uint32_t k = 0; command->kind == CODEC_RELEASE && k < r->sessions.n; k++) {
            if (r->sessions.at[k].id != command->u.release.to_session || r->sessions.at[k].owner == 0) continue;
            command->u.release.to_session = libaoi_welcome(r->sessions.at[k].c)->session;
            break;
        }
    }
}

/* e's frame, sent by c. A space of the configuration is made only if it is not there. */
static int send_entry(struct replayed *r, struct libaoi *c, const struct recording_entry *e)
{
    struct codec_client_frame frame;
    arena_reset(&r->arena);
    if (codec_decode_client(e->body, e->len, &r->arena, &frame) != CODEC_OK) return aoictl_failed(r->ctl, "the recording holds a frame that is none");
    if (frame.kind == CODEC_BYE || frame.kind == CODEC_HELLO) return AOICTL_OK; /* libaoi's */
    bool is_batch = frame.kind == CODEC_BATCH;
    if (is_batch) rename_sessions(r, &frame);
    for (size_t i = 0; is_batch && e->kind == RECORDING_SPACE && i < frame.u.batch.command_n; i++)
        if (frame.u.batch.commands[i].kind == CODEC_CREATE_SPACE)
            ((struct codec_create_space *)(uintptr_t)frame.u.batch.commands[i].u.create_space)->if_absent = true;
    r->frames++;
    if (answered(r, c)) return AOICTL_FAILED;
    r->last = c;
    return libaoi__send_frame(c, &frame) ? AOICTL_OK : aoictl_failed(r->ctl, "%s", libaoi_error(c));
}

static int take(struct replayed *r, const struct recording_entry *e)
{
    struct recorded_session *session = find(r, e->who);
    switch (e->kind) {
    case RECORDING_BEGIN: return begin(r, e);
    case RECORDING_END: return end(r, e);
    case RECORDING_FRAME: return session ? send_entry(r, session->c, e) : AOICTL_OK;
    case RECORDING_SPACE:
        if (send_entry(r, r->ctl->c, e)) return AOICTL_FAILED;
        return aoictl_settle(r->ctl); /* it is there before anybody needs it */
    case RECORDING_CHANGE: return send_entry(r, r->ctl->c, e);
    default: return AOICTL_OK; /* a connection that broke stays, and the daemon flushes by its own clock */
    }
}

int aoictl_replay_recording(struct aoictl *ctl, const char *path, double speed)
{
    struct replayed r = {.ctl = ctl, .speed = speed};
    struct recording_entry e;
    char error[RECORDING_ERROR_MAX];
    int more, status = AOICTL_OK;
    if (recording_open(&r.recording, path, error)) {
        recording_close(&r.recording);
        return aoictl_failed(ctl, "%s", error);
    }
    arena_init(&r.arena, ARENA_BYTES);
    r.began = clock_seconds();
    while ((more = recording_next(&r.recording, &e, error)) > 0 && status == AOICTL_OK && !aoictl_stop) {
        if (r.first_us == 0) r.first_us = e.time_us;
        status = wait_for(&r, e.time_us);
        if (status == AOICTL_OK) status = take(&r, &e);
    }
    if (status == AOICTL_OK) status = answered(&r, NULL);
    if (more < 0) status = aoictl_failed(ctl, "%s", error);
    for (uint32_t i = 0; i < r.sessions.n; i++) libaoi_close(r.sessions.at[i].c);
    printf("frames %" PRIu64 " sessions %" PRIu64 " deltas %" PRIu64 " refused %" PRIu64 "\n", r.frames, r.sessions_n, r.deltas, r.refused);
    array_clear(&r.sessions);
    arena_clear(&r.arena);
    recording_close(&r.recording);
    return status;
}
