/* session.c: a game server's standing with the daemon: one state machine, and one function that closes, with a reason. */
#include "server/sessions.h"

#include "base/log.h"

const char *session_reason_name(enum close_reason reason)
{
    static const char *const names[CLOSE_REASONS] = {
        [CLOSE_NONE] = "none",
        [CLOSE_EOF] = "eof",
        [CLOSE_BYE] = "bye",
        [CLOSE_IO] = "io_error",
        [CLOSE_HELLO_TIMEOUT] = "hello_timeout",
        [CLOSE_FRAME_TIMEOUT] = "frame_timeout",
        [CLOSE_IDLE_TIMEOUT] = "idle_timeout",
        [CLOSE_NO_HELLO] = "no_hello",
        [CLOSE_UNIX_PEER] = "unix_peer",
        [CLOSE_TLS] = "tls",
        [CLOSE_TOKEN] = "token",
        [CLOSE_NO_TOKEN] = "no_token",
        [CLOSE_WITHDRAWN] = "token_withdrawn",
        [CLOSE_VERSION] = "protocol_version",
        [CLOSE_MALFORMED] = "malformed",
        [CLOSE_TOO_LARGE] = "frame_too_large",
        [CLOSE_OUT_SOFT] = "out_soft",
        [CLOSE_OUT_HARD] = "out_hard",
        [CLOSE_REFUSED] = "max_connections",
        [CLOSE_SESSIONS] = "max_sessions",
        [CLOSE_RESUME_TOKEN] = "resume_token",
        [CLOSE_RESUMED] = "resumed",
        [CLOSE_DRAIN] = "drain",
    };
    return names[reason];
}

bool session_ends_well(enum close_reason reason)
{
    return reason == CLOSE_EOF || reason == CLOSE_BYE || reason == CLOSE_IO || reason == CLOSE_RESUMED || reason == CLOSE_DRAIN;
}

void session_deny(struct session *session)
{
    CHECK(session->state == SESSION_HELLO_WAIT);
    session->state = SESSION_DENIED;
    session->denied_ticks = 0;
}

void session_touch(struct sessions *sessions, struct session *session)
{
    if (session->touched) return;
    session->touched = true;
    *array_add(&sessions->touched) = session;
}

void session_send(struct sessions *sessions, struct session *session, const struct codec_server_frame *frame)
{
    if (session->state >= SESSION_BROKEN) return;
    uint64_t before = outbox_bytes(&session->out);
    codec_encode_server(frame, outbox_queue(&session->out));
    session_touch(sessions, session);
    if (!outbox_appended(&session->out, before)) session_close(sessions, session, CLOSE_OUT_HARD);
}

void session_send_error(struct sessions *sessions, struct session *session, uint64_t reply_to, int code, const char *text)
{
    char why[256];
    sessions->metrics->errors[code]++;
    log_debug("refused", "peer=%s session=%llu seq=%llu code=%s why=%s", session->peer, (unsigned long long)session->id, (unsigned long long)reply_to,
              codec_code_name(code), log_quote(text, why, sizeof why));
    const struct codec_server_frame frame = {.reply_to = reply_to, .kind = CODEC_ERROR, .u.error = {.code = (uint32_t)code, .text = text}};
    session_send(sessions, session, &frame);
}

bool session_breaks(enum close_reason reason)
{
    return reason == CLOSE_IO || reason == CLOSE_OUT_SOFT || reason == CLOSE_OUT_HARD || reason == CLOSE_RESUMED;
}

void session_applied(struct session *session, uint64_t seq)
{
    if (seq == 0) return;
    session->last_seq = seq;
    if (session->standing != NULL && seq > session->standing->last_seq) session->standing->last_seq = seq;
}

void session_finish(struct sessions *sessions, struct session *session)
{
    CHECK(session->state == SESSION_BROKEN);
    session->state = SESSION_CLOSING;
    session_touch(sessions, session);
}

void session_close(struct sessions *sessions, struct session *session, enum close_reason reason)
{
    if (session->state == SESSION_BROKEN && !session_breaks(reason)) { /* by what stands in its last frames */
        if (reason == CLOSE_BYE) session->reason = reason;
        session_finish(sessions, session);
        return;
    }
    if (session->state == SESSION_BROKEN && reason == CLOSE_RESUMED && !session->awaited) {
        session->awaited = true;
        session_touch(sessions, session);
    }
    if (session->state >= SESSION_BROKEN) return;
    session->state = session->state == SESSION_READY && session_breaks(reason) ? SESSION_BROKEN : SESSION_CLOSING;
    session->reason = reason;
    session->unsent_bytes = outbox_bytes(&session->out);
    sessions->metrics->closed[reason]++;
    sessions->metrics->connections--;
    session_touch(sessions, session);
}

void session_refuse(struct sessions *sessions, struct session *session, uint64_t reply_to, int code, const char *text, enum close_reason reason)
{
    session_send_error(sessions, session, reply_to, code, text);
    session_close(sessions, session, reason);
}
