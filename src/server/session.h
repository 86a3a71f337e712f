/* session.h: a game server's standing with the daemon: one state machine, and one function that closes, with a reason. */
#ifndef AOI_SERVER_SESSION_H
#define AOI_SERVER_SESSION_H

#include "core/aoi.h"
#include "server/metrics.h"
#include "server/outbox.h"
#include "server/tokens.h"
#include "wire/codec.h"

#define SESSION_CLIENT_MAX 63 /* bytes of a client's name that are kept */
#define SESSION_DENIED_MS 500 /* how long a wrong token waits for its answer at least */

enum session_state {
    SESSION_HELLO_WAIT, /* nothing but Hello is listened to */
    SESSION_READY,
    SESSION_DENIED, /* a wrong token: nothing is listened to, and in a moment it is told so and closed */
    SESSION_BROKEN, /* its connection is as good as gone: nothing is sent any more, but frames that came whole are still applied */
    SESSION_CLOSING /* no frame is applied and no delta delivered any more; what is in the outbox still goes out */
};

struct sessions;
struct standing;
struct batch;

/* A session's side of one connection, in which it is embedded. What outlives that stands in sessions.h. */
struct session {
    enum session_state state;
    enum close_reason reason;  /* of the closing */
    struct standing *standing; /* NULL before Hello, and once the connection has let go of it */
    uint64_t id;               /* on the wire; 0 before Hello */
    aoi_owner owner;           /* for the core; 0 where standing is NULL */
    uint64_t last_seq;         /* on this connection */
    uint64_t resent_until;     /* up to this seq frames were applied before this connection resumed the session */
    struct batch *batch;       /* the frame in the middle of which it pauses; NULL: none */
    size_t unpacks;            /* to how many bytes its frame does, where that waits until so many may be held; 0: it does not */
    bool batch_ended;          /* it has been done, but its connection does not know yet that the frame is used */
    struct outbox out;
    char client[SESSION_CLIENT_MAX + 1]; /* the name in its Hello, as it came */
    uint64_t served, skipped;            /* times that a flush had its players' turn, and there was room, or none */
    struct token token;                  /* that it came in with */
    uint32_t denied_ticks;               /* in SESSION_DENIED: of the server's, that have passed */
    uint64_t unsent_bytes;               /* when it was decided to close; then what cannot be sent any more is let go */
    uint32_t idle_timeout_ms;            /* that its Welcome told: a client pings accordingly, whatever the configuration says since */
    char peer[64];                       /* address, for the log */
    bool touched;                        /* in sessions->touched */
    bool awaited;                        /* another connection waits to go on with its session: BROKEN, and what is still to come is not waited for */
};

const char *session_reason_name(enum close_reason reason); /* "idle_timeout" */
bool session_ends_well(enum close_reason reason);          /* it is no reason to worry: connections end so every day */
bool session_breaks(enum close_reason reason);             /* whether nothing more gets through to the peer then */

/* Hello had a wrong token: HELLO_WAIT -> DENIED. That the answer takes its time makes guessing slow. */
void session_deny(struct session *session);

/* Something was put into its outbox, or its state changed. */
void session_touch(struct sessions *sessions, struct session *session);
/* Appends a reply, and closes if the outbox is over its hard limit. Nothing is sent in CLOSING. */
void session_send(struct sessions *sessions, struct session *session, const struct codec_server_frame *frame);
void session_send_error(struct sessions *sessions, struct session *session, uint64_t reply_to, int code, const char *text);

/* The one way to an end: counted, and then logged, with its reason. Only marks: may be called from anywhere, also from within the core; what the session owns and
 * its socket are seen to when the current callback is done. The first reason counts. A READY session whose connection cannot be used any more, for this reason, becomes BROKEN, and
 * else, as all others, CLOSING. */
void session_close(struct sessions *sessions, struct session *session, enum close_reason reason);
/* Says why, in reply to a frame or (0) to none, and closes. */
void session_refuse(struct sessions *sessions, struct session *session, uint64_t reply_to, int code, const char *text, enum close_reason reason);
/* The frame of this seq (0: none) was applied. */
void session_applied(struct session *session, uint64_t seq);
/* BROKEN -> CLOSING: everything that came whole has been applied. */
void session_finish(struct sessions *sessions, struct session *session);

#endif
