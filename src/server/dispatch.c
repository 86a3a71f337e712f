/* dispatch.c: what each frame of a client does: a table of frames, and the rules of seq, Hello and draining. */
#include "server/dispatch.h"

#include "base/log.h"
#include "server/explain.h"
#include "server/record.h"
#include "base/version.h"

/* What a frame may unpack to. Measured over a full frame of the smallest of each kind: CreateSpaces without settings take 108 times their bytes, empty commands 88,
 * AddEntities without an id 76, unknown fields 36, moves 1.3. What is over ARENA_KEEP is given back after the frame. */
#define ARENA_PER_BYTE 128
#define ARENA_BASE ((size_t)1024 * 1024)
#define ARENA_MOST ((size_t)2 * 1024 * 1024 * 1024)
/* What batches that pause may stand in together, or one alone that takes more; a frame that takes so little is not counted among them. */
#define OPEN_BYTES ((uint64_t)64 * 1024 * 1024)
#define OPEN_LITTLE ((size_t)256 * 1024)
#define CLAIM_NS ((uint64_t)1000 * 1000 * 1000)  /* whoever has not tried for so long does not keep others waiting any more */
#define PARTING_NS ((uint64_t)500 * 1000 * 1000) /* likewise */
#define DEFAULT_LEASE_MS 10000

/* false: not now. */
typedef bool frame_handler(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame);

const char *dispatch_text(int code)
{
    static const char *const texts[CODEC_CODES] = {
        [CODEC_OK] = "",
        [CODEC_INVALID_ARGUMENT] = "an argument is out of range",
        [CODEC_OUT_OF_BOUNDS] = "beyond +-16777216 or outside the bounds of the space",
        [CODEC_UNKNOWN_SPACE] = "there is no such space",
        [CODEC_UNKNOWN_ENTITY] = "there is no such entity",
        [CODEC_UNKNOWN_PLAYER] = "there is no such player",
        [CODEC_DUPLICATE_SPACE] = "the space exists already, or has other settings",
        [CODEC_DUPLICATE_ENTITY] = "the entity exists already",
        [CODEC_NOT_OWNER] = "it belongs to another session",
        [CODEC_LIMIT_EXCEEDED] = "over a limit of the configuration",
        [CODEC_UNSUPPORTED] = "empty, or of a kind unknown to this version",
        [CODEC_UNAUTHENTICATED] = "the first frame must be Hello",
        [CODEC_MALFORMED] = "the bytes are not a frame of this protocol",
        [CODEC_FRAME_TOO_LARGE] = "a frame longer than it may be",
        [CODEC_DRAINING] = "the daemon is about to exit and takes no more commands",
    };
    return code >= 0 && code < CODEC_CODES ? texts[code] : "";
}

/* By its token, if this daemon has any. */
static bool admit(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame)
{
    const struct token nobody = {.role = ROLE_ADMIN}, *token = &nobody;
    if (dispatch->tokens->list.n > 0) token = tokens_find(dispatch->tokens, frame->u.hello.token);
    if (token != NULL) {
        session->token = *token;
        return true;
    }
    if (frame->u.hello.token[0] != '\0') {
        session->last_seq = frame->seq; /* which it will answer */
        session_deny(session);
        return false;
    }
    session_refuse(dispatch->sessions, session, frame->seq, CODEC_UNAUTHENTICATED,
                   "Hello has no token, and this daemon has a tokens_file: the secret of one of its lines goes into Hello.token", CLOSE_NO_TOKEN);
    return false;
}

/* What the lease is that a Hello asks for. */
static uint32_t lease_ms(const struct config *config, uint32_t asked_ms)
{
    if (asked_ms == 0) asked_ms = DEFAULT_LEASE_MS;
    return asked_ms < config->max_lease_ms ? asked_ms : config->max_lease_ms;
}

static void send_welcome(struct dispatch *dispatch, struct session *session, uint64_t reply_to, bool resumed)
{
    const struct config *config = dispatch->config;
    const struct standing *standing = session->standing;
    session->idle_timeout_ms = config->idle_timeout_ms;
    session_send(dispatch->sessions, session,
                 &(struct codec_server_frame){.reply_to = reply_to,
                                              .kind = CODEC_WELCOME,
                                              .u.welcome = {.protocol_version = CODEC_PROTOCOL_VERSION,
                                                            .server_version = AOID_VERSION,
                                                            .session = session->id,
                                                            .max_frame_bytes = (uint32_t)config->max_frame_bytes,
                                                            .max_payload = config->max_payload,
                                                            .query_page = config->query_page,
                                                            .idle_timeout_ms = config->idle_timeout_ms,
                                                            .resume_token_len = RESUME_TOKEN_BYTES,
                                                            .resume_token = standing->resume_token,
                                                            .resumed = resumed,
                                                            .last_seq = resumed ? standing->last_seq : 0,
                                                            .lease_ms = standing->lease_ms}});
}

/* The session to go on with, or a new one. false: its old connection has to let go of it first, or something is open where it has something. */
static bool join(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame)
{
    struct sessions *sessions = dispatch->sessions;
    struct standing *standing = sessions_of_id(sessions, frame->u.hello.resume_session);
    bool resumed = standing != NULL;
    char name[96];
    if (resumed && !sessions_token_is(standing, frame->u.hello.resume_token, frame->u.hello.resume_token_len)) {
        session_refuse(sessions, session, frame->seq, CODEC_UNAUTHENTICATED, "this is not the resume_token of that session", CLOSE_RESUME_TOKEN);
        return true;
    }
    if (resumed && !sessions_may_resume(standing, &session->token)) {
        session_refuse(sessions, session, frame->seq, CODEC_UNAUTHENTICATED, "that session belongs to a token of another name", CLOSE_RESUME_TOKEN);
        return true;
    }
    if (resumed && standing->session != NULL) {
        session_close(sessions, standing->session, CLOSE_RESUMED);
        return false;
    }
    if (!resumed && sessions->by_id.n >= dispatch->config->max_sessions) {
        session_refuse(sessions, session, frame->seq, CODEC_LIMIT_EXCEEDED, explain_sessions(dispatch), CLOSE_SESSIONS);
        return true;
    }
    if (resumed && !dispatch_may_part(dispatch, standing->owner)) return false;
    if (resumed) {
        sessions_resume(sessions, standing, session);
        if (frame->u.hello.lease_ms != 0) standing->lease_ms = lease_ms(dispatch->config, frame->u.hello.lease_ms);
        session->last_seq = 0;
    } else {
        standing = sessions_begin(sessions, session, lease_ms(dispatch->config, frame->u.hello.lease_ms));
        session->last_seq = standing->last_seq = frame->seq;
    }
    log_info(resumed ? "resume" : "hello", "peer=%s session=%llu client=%s token=%s role=%s last_seq=%llu", session->peer,
             (unsigned long long)session->id, log_quote(frame->u.hello.client_name, name, sizeof name), session->token.name,
             role_name(session->token.role), (unsigned long long)standing->last_seq);
    send_welcome(dispatch, session, frame->seq, resumed);
    deliver_owed(dispatch->deliver, session);
    return true;
}

static bool take_hello(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame)
{
    if (session->state != SESSION_HELLO_WAIT) {
        session_send_error(dispatch->sessions, session, frame->seq, CODEC_INVALID_ARGUMENT, "a second Hello");
        return true;
    }
    snprintf(session->client, sizeof session->client, "%s", frame->u.hello.client_name);
    if (frame->u.hello.protocol_version != CODEC_PROTOCOL_VERSION) {
        session_refuse(dispatch->sessions, session, frame->seq, CODEC_UNSUPPORTED, "this daemon speaks protocol_version 1", CLOSE_VERSION);
        return true;
    }
    return !admit(dispatch, session, frame) || join(dispatch, session, frame);
}

static void send_empty_ack(struct dispatch *dispatch, struct session *session, uint64_t seq, uint64_t applied)
{
    if (seq == 0) return;
    session_send(dispatch->sessions, session, &(struct codec_server_frame){.reply_to = seq, .kind = CODEC_ACK, .u.ack = {.applied = applied}});
}

static bool take_resync(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame)
{
    uint64_t id = frame->u.resync.space;
    struct aoi_space *space = aoi_space_find(dispatch->world, id);
    int code = id == 0 ? CODEC_INVALID_ARGUMENT : space == NULL ? CODEC_UNKNOWN_SPACE : -aoi_resync(space, session->owner, frame->u.resync.player);
    if (code != CODEC_OK) {
        session_send_error(dispatch->sessions, session, frame->seq, code, id == 0 ? "the space id is 0; ids begin at 1" : dispatch_text(code));
        return true;
    }
    send_empty_ack(dispatch, session, frame->seq, 1);
    return true;
}

static bool take_ping(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame)
{
    if (frame->seq == 0) return true;
    session_send(dispatch->sessions, session,
                 &(struct codec_server_frame){
                     .reply_to = frame->seq, .kind = CODEC_PONG, .u.pong = {.nonce = frame->u.ping.nonce, .time_us = flusher_time_us()}});
    return true;
}

static bool take_bye(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame)
{
    send_empty_ack(dispatch, session, frame->seq, 0);
    session_close(dispatch->sessions, session, CLOSE_BYE);
    return true;
}

static bool take_nothing(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame)
{
    session_send_error(dispatch->sessions, session, frame->seq, CODEC_UNSUPPORTED, dispatch_text(CODEC_UNSUPPORTED));
    return true;
}

static bool take_batch(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame)
{
    return dispatch_batch(dispatch, session, frame);
}

static bool take_query(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame)
{
    dispatch_query(dispatch, session, frame);
    return true;
}

static const struct {
    frame_handler *run;
    bool commands; /* changes the world: refused while draining */
} frames[CODEC_CLIENT_KINDS] = {
    [CODEC_CLIENT_NONE] = {take_nothing, false},
    [CODEC_HELLO] = {take_hello, false},
    [CODEC_BATCH] = {take_batch, true},
    [CODEC_QUERY] = {take_query, false},
    [CODEC_RESYNC] = {take_resync, true},
    [CODEC_PING] = {take_ping, false},
    [CODEC_BYE] = {take_bye, false},
};

static bool parting_holds(const struct dispatch *dispatch, const struct aoi_space *space)
{
    for (uint32_t i = 0; i < dispatch->parting.n; i++)
        if (aoi_owner_in(space, dispatch->parting.at[i].owner)) return true;
    return false;
}

static bool holds_flush(void *ctx, const struct aoi_space *space)
{
    const struct dispatch *dispatch = ctx;
    uint64_t id = aoi_space_id(space);
    return dispatch->shut > 0 || parting_holds(dispatch, space) || dispatch_batch_holds(dispatch, id) || dispatch_ending_holds(dispatch, id);
}

void dispatch_init(struct dispatch *dispatch)
{
    dispatch->flusher->held = holds_flush;
    dispatch->flusher->held_ctx = dispatch;
    size_t cap = (size_t)dispatch->config->max_frame_bytes * ARENA_PER_BYTE + ARENA_BASE;
    arena_init(&dispatch->arena, cap < ARENA_MOST ? cap : ARENA_MOST);
}

void dispatch_clear(struct dispatch *dispatch)
{
    arena_clear(&dispatch->arena);
    aoi_rows_clear(&dispatch->rows);
    CHECK(dispatch->open.n == 0);
    array_clear(&dispatch->open);
    array_clear(&dispatch->ending);
    array_clear(&dispatch->parting);
    array_clear(&dispatch->errors);
    array_clear(&dispatch->spaces);
    array_clear(&dispatch->counts);
}

bool dispatch_holds(const struct dispatch *dispatch, uint64_t id)
{
    if (id == 0) return false;
    bool may = flusher_any_open(dispatch->flusher) || dispatch->parting.n > 0;
    const struct aoi_space *space = may ? aoi_space_find(dispatch->world, id) : NULL;
    return (space != NULL && (flusher_open(space) || parting_holds(dispatch, space))) || dispatch_batch_holds(dispatch, id) ||
           dispatch_ending_holds(dispatch, id);
}

bool dispatch_still(const struct dispatch *dispatch)
{
    return !flusher_any_open(dispatch->flusher) && dispatch->open.n == 0 && dispatch->ending.n == 0;
}

void dispatch_shut(struct dispatch *dispatch)
{
    dispatch->shut++;
}

void dispatch_reopen(struct dispatch *dispatch)
{
    uint64_t id = 0;
    if (--dispatch->shut > 0) return;
    for (struct aoi_space *space; (space = aoi_space_next(dispatch->world, id)) != NULL; id = aoi_space_id(space)) flusher_release(space);
}

void dispatch_finish(struct dispatch *dispatch)
{
    flusher_finish(dispatch->flusher);
    dispatch->pause_ns = 0;
    while (dispatch->open.n > 0) dispatch_go_on(dispatch, dispatch->open.at[0]);
}

static struct parting *parting_of(struct dispatch *dispatch, aoi_owner owner)
{
    for (uint32_t i = 0; i < dispatch->parting.n; i++)
        if (dispatch->parting.at[i].owner == owner) return &dispatch->parting.at[i];
    return NULL;
}

static void release(void *ctx, struct aoi_space *space)
{
    (void)ctx;
    flusher_release(space);
}

/* Who waits for a space looks again, and so do timed flushes. */
static void part(struct dispatch *dispatch, const struct parting *parting)
{
    aoi_owner owner = parting->owner;
    array_swap_remove(&dispatch->parting, (uint32_t)(parting - dispatch->parting.at));
    dispatch->flusher->ended++;
    aoi_owner_spaces(dispatch->world, owner, release, NULL);
}

static void end_own_batch(struct dispatch *dispatch, aoi_owner owner)
{
    for (uint32_t i = 0; i < dispatch->open.n; i++) {
        struct batch *batch = dispatch->open.at[i];
        if (!dispatch_batch_is_of(batch, owner)) continue;
        dispatch->pause_ns = 0;
        dispatch_go_on(dispatch, batch);
        return;
    }
}

bool dispatch_may_part(struct dispatch *dispatch, aoi_owner owner)
{
    end_own_batch(dispatch, owner);
    struct parting *parting = parting_of(dispatch, owner);
    bool open = flusher_open_of(dispatch->flusher, owner);
    for (uint32_t i = 0; i < dispatch->open.n; i++) open |= dispatch_batch_concerns(dispatch->open.at[i], owner);
    if (open) {
        if (parting == NULL) parting = array_add(&dispatch->parting);
        *parting = (struct parting){.owner = owner, .tried_ns = uv_hrtime()};
        return false;
    }
    if (parting != NULL) part(dispatch, parting);
    return true;
}

void dispatch_forget_parting(struct dispatch *dispatch)
{
    uint64_t now_ns = uv_hrtime();
    for (uint32_t i = dispatch->parting.n; i-- > 0;) /* one that goes is replaced by a later one */
        if (now_ns - dispatch->parting.at[i].tried_ns > PARTING_NS) part(dispatch, &dispatch->parting.at[i]);
}

/* The space with which the frame has to wait until it is not held any more; 0: none. */
static uint64_t waits_for(const struct dispatch *dispatch, const struct codec_client_frame *frame)
{
    uint64_t id = frame->kind == CODEC_BATCH    ? frame->u.batch.space
                  : frame->kind == CODEC_QUERY  ? frame->u.query.space
                  : frame->kind == CODEC_RESYNC ? frame->u.resync.space
                                                : 0;
    return dispatch_holds(dispatch, id) ? id : 0;
}

/* Whether nobody is left to hear what the frame asks for. */
static bool is_unheard(const struct session *session, const struct codec_client_frame *frame)
{
    return session->state == SESSION_BROKEN && (frame->kind == CODEC_QUERY || frame->kind == CODEC_PING);
}

/* A frame that may be applied, by its seq. */
static uint64_t run(struct dispatch *dispatch, struct session *session, const struct codec_client_frame *frame, const void *bytes, size_t len)
{
    bool commands = frames[frame->kind].commands;
    if (commands && frame->seq != 0 && frame->seq <= session->resent_until)
        send_empty_ack(dispatch, session, frame->seq, 0); /* it was applied before the session was resumed */
    else if (commands && dispatch->draining)
        session_send_error(dispatch->sessions, session, frame->seq, CODEC_DRAINING, dispatch_text(CODEC_DRAINING));
    else {
        bool secret = session->owner == 0 || frame->kind == CODEC_HELLO; /* also a second one */
        if (!secret) record_frame(dispatch->sessions->record, session->owner, bytes, len);
        return frames[frame->kind].run(dispatch, session, frame) ? 0 : DISPATCH_AGAIN;
    }
    return 0;
}

uint64_t dispatch_weight(size_t unpacks)
{
    return unpacks > OPEN_LITTLE ? unpacks : 0;
}

/* Whether a frame that unpacks to so much may begin: if it is to pause, it keeps that. Who waits first begins first, or small ones would pass a large one for ever. 0: it is not known yet. */
static bool may_open(struct dispatch *dispatch, const struct session *session, size_t unpacks)
{
    if (dispatch->shut > 0 && unpacks > 0) return false;
    if (dispatch_weight(unpacks) == 0) return true;
    uint64_t now_ns = uv_hrtime();
    if (dispatch->claim != NULL && dispatch->claim != session && now_ns < dispatch->claimed_ns + CLAIM_NS) return false;
    bool opens = dispatch->heavy_bytes == 0 || (dispatch->heavy_bytes + unpacks <= OPEN_BYTES && !budget_full(dispatch->budget));
    dispatch->claim = opens ? NULL : session;
    dispatch->claimed_ns = now_ns;
    return opens;
}

uint64_t dispatch_frame(struct dispatch *dispatch, struct session *session, const void *bytes, size_t len)
{
    struct codec_client_frame frame;
    struct sessions *sessions = dispatch->sessions;
    bool first = session->state == SESSION_HELLO_WAIT;
    if (session->state == SESSION_DENIED) return 0;
    if (session->batch != NULL && !dispatch_go_on(dispatch, session->batch)) return DISPATCH_AGAIN;
    if (session->batch_ended) {
        session->batch_ended = false;
        dispatch->metrics->frames_in++;
        return 0;
    }
    if (!may_open(dispatch, session, session->unpacks)) return DISPATCH_AGAIN; /* it is not unpacked only to find that out */
    session->unpacks = 0;
    arena_reset(&dispatch->arena);
    bool decoded = codec_decode_client(bytes, len, &dispatch->arena, &frame) == CODEC_OK;
    bool unheard = decoded && is_unheard(session, &frame);
    uint64_t wait = decoded && !first && !unheard ? waits_for(dispatch, &frame) : 0;
    if (wait != 0) return wait;
    if (decoded && frame.kind == CODEC_BATCH && !may_open(dispatch, session, dispatch->arena.used)) {
        session->unpacks = dispatch->arena.used;
        arena_reset(&dispatch->arena);
        return DISPATCH_AGAIN;
    }
    if (!decoded) {
        const char *why = first ? explain_first_frame(CODEC_MALFORMED, bytes, len) : dispatch_text(CODEC_MALFORMED);
        session_refuse(sessions, session, 0, CODEC_MALFORMED, why, CLOSE_MALFORMED);
    } else if (first && frame.kind != CODEC_HELLO) {
        const char *why = explain_first_frame(CODEC_UNAUTHENTICATED, bytes, len);
        session_refuse(sessions, session, frame.seq, CODEC_UNAUTHENTICATED, why, CLOSE_NO_HELLO);
    } else if (frame.seq != 0 && frame.seq <= session->last_seq) {
        session_send_error(sessions, session, frame.seq, CODEC_INVALID_ARGUMENT, explain_seq(dispatch, frame.seq, session->last_seq));
    } else if (!unheard && (wait = run(dispatch, session, &frame, bytes, len)) != 0) {
        return wait;
    } else if (!first && dispatch->draining) { /* nothing counts as applied: the next daemon applies what this one refused, if it is sent again */
        if (frame.seq != 0) session->last_seq = frame.seq;
    } else if (!first) { /* Hello sees to its own */
        session_applied(session, frame.seq);
    }
    dispatch->metrics->frames_in++;
    return 0;
}
