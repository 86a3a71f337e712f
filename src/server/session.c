/* session.c: a game server's standing with the daemon: one state machine, and one function that closes, with a reason. */
#include "server/session.h"

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
        [CLOSE_TOKEN] = "token",
        [CLOSE_VERSION] = "protocol_version",
        [CLOSE_MALFORMED] = "malformed",
        [CLOSE_TOO_LARGE] = "frame_too_large",
        [CLOSE_OUT_SOFT] = "out_soft",
        [CLOSE_OUT_HARD] = "out_hard",
        [CLOSE_REFUSED] = "max_connections",
        [CLOSE_DRAIN] = "drain",
    };
    return names[reason];
}

void sessions_clear(struct sessions *sessions)
{
    array_clear(&sessions->by_owner);
    array_clear(&sessions->free_owners);
    array_clear(&sessions->touched);
    idmap_clear(&sessions->by_id);
}

struct session *sessions_of_owner(const struct sessions *sessions, aoi_owner owner)
{
    return owner == 0 || owner > sessions->by_owner.n ? NULL : sessions->by_owner.at[owner - 1];
}

uint64_t sessions_id_of_owner(const struct sessions *sessions, aoi_owner owner)
{
    const struct session *session = sessions_of_owner(sessions, owner);
    return session == NULL ? 0 : session->id;
}

aoi_owner sessions_owner_of_id(const struct sessions *sessions, uint64_t id)
{
    uint32_t owner = id == 0 ? IDMAP_NONE : idmap_get(&sessions->by_id, id);
    return owner == IDMAP_NONE ? 0 : owner;
}

void session_accept(struct sessions *sessions, struct session *session)
{
    CHECK(session->state == SESSION_HELLO_WAIT);
    if (sessions->free_owners.n > 0) {
        session->owner = sessions->free_owners.at[--sessions->free_owners.n];
    } else {
        *array_add(&sessions->by_owner) = NULL;
        session->owner = sessions->by_owner.n;
    }
    sessions->by_owner.at[session->owner - 1] = session;
    session->id = ++sessions->last_id;
    idmap_put(&sessions->by_id, session->id, session->owner);
    session->state = SESSION_READY;
}

void session_deny(struct session *session)
{
    CHECK(session->state == SESSION_HELLO_WAIT);
    session->state = SESSION_DENIED;
    session->denied_ticks = SESSION_DENIED_TICKS;
}

void session_release(struct sessions *sessions, struct session *session, bool owns)
{
    if (session->owner == 0) return;
    sessions->by_owner.at[session->owner - 1] = NULL;
    if (!owns) *array_add(&sessions->free_owners) = session->owner;
    idmap_remove(&sessions->by_id, session->id);
    session->owner = 0;
}

void session_touch(struct sessions *sessions, struct session *session)
{
    if (session->touched) return;
    session->touched = true;
    *array_add(&sessions->touched) = session;
}

void session_send(struct sessions *sessions, struct session *session, const struct codec_server_frame *frame)
{
    if (session->state == SESSION_CLOSING) return;
    uint64_t before = outbox_bytes(&session->out);
    codec_encode_server(frame, &session->out.queue);
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

void session_close(struct sessions *sessions, struct session *session, enum close_reason reason)
{
    if (session->state == SESSION_CLOSING) return;
    session->state = SESSION_CLOSING;
    session->reason = reason;
    sessions->metrics->closed[reason]++;
    sessions->metrics->connections--;
    session_touch(sessions, session);
}
