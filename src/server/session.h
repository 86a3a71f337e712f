/* session.h: a game server's standing with the daemon: one state machine, and one function that closes, with a reason. */
#ifndef AOI_SERVER_SESSION_H
#define AOI_SERVER_SESSION_H

#include "base/array.h"
#include "base/idmap.h"
#include "core/aoi.h"
#include "server/metrics.h"
#include "server/outbox.h"
#include "server/tokens.h"
#include "wire/codec.h"

#define SESSION_DENIED_TICKS 5 /* of the server's: how long a wrong token waits for its answer */

enum session_state {
    SESSION_HELLO_WAIT, /* nothing but Hello is listened to */
    SESSION_READY,
    SESSION_DENIED, /* a wrong token: nothing is listened to, and in a moment it is told so and closed */
    SESSION_CLOSING /* no frame is applied and no delta delivered any more; what is in the outbox still goes out */
};

/* Embedded in its connection, with which it ends. */
struct session {
    enum session_state state;
    enum close_reason reason; /* of the closing */
    uint64_t id;              /* on the wire, never used again; 0 before Hello */
    aoi_owner owner;          /* for the core, used again once nothing is owned; 0 before Hello and after session_release() */
    uint64_t last_seq;
    struct outbox out;
    struct token token;    /* that it came in with */
    uint32_t denied_ticks; /* in SESSION_DENIED: until it is told so */
    char peer[64];         /* address, for the log */
    bool touched;          /* in sessions->touched */
};

typedef ARRAY(struct session *) session_list;

struct sessions {
    struct metrics *metrics;
    session_list by_owner; /* owner - 1 -> session; NULL: the number is free */
    ARRAY(aoi_owner) free_owners;
    struct idmap by_id; /* id on the wire -> owner */
    uint64_t last_id;
    session_list touched; /* to be looked at when the current callback is done: bytes to write, or a closing */
};

const char *session_reason_name(enum close_reason reason); /* "idle_timeout" */

void sessions_clear(struct sessions *sessions);
/* NULL: it owns nothing and has no session. */
struct session *sessions_of_owner(const struct sessions *sessions, aoi_owner owner);
uint64_t sessions_id_of_owner(const struct sessions *sessions, aoi_owner owner); /* 0: of nobody */

aoi_owner sessions_owner_of_id(const struct sessions *sessions, uint64_t id); /* 0: there is no such session */

/* Hello was accepted: HELLO_WAIT -> READY, with an id and an owner number. */
void session_accept(struct sessions *sessions, struct session *session);
/* Hello had a wrong token: HELLO_WAIT -> DENIED. That the answer takes its time makes guessing slow. */
void session_deny(struct session *session);
/* It owns nothing any more, and its owner number may be used again; or, owns: what it owned lives on, so that nobody else may get the number. */
void session_release(struct sessions *sessions, struct session *session, bool owns);

/* Something was put into its outbox, or its state changed. */
void session_touch(struct sessions *sessions, struct session *session);
/* Appends a reply, and closes if the outbox is over its hard limit. Nothing is sent in CLOSING. */
void session_send(struct sessions *sessions, struct session *session, const struct codec_server_frame *frame);
void session_send_error(struct sessions *sessions, struct session *session, uint64_t reply_to, int code, const char *text);

/* The one way into CLOSING: counted, and then logged, with its reason. Only marks: may be called from anywhere, also from within the core; what the session owns and
 * its socket are seen to when the current callback is done. The first reason counts. */
void session_close(struct sessions *sessions, struct session *session, enum close_reason reason);

#endif
