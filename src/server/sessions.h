/* sessions.h: the sessions that there are: those that are connected, and those whose lease runs. */
#ifndef AOI_SERVER_SESSIONS_H
#define AOI_SERVER_SESSIONS_H

#include "base/idmap.h"
#include "server/notices.h"
#include "server/session.h"

#define RESUME_TOKEN_BYTES 16

/* What of a session outlives its connection. */
struct standing {
    uint64_t id; /* on the wire, never used again, not even by a daemon that is started later */
    aoi_owner owner;
    struct session *session; /* its connection's; NULL: it has none, and the lease runs */
    uint64_t last_seq;       /* of the last frame that was applied */
    uint32_t lease_ms;
    uint64_t lease_end_ms; /* by the server's clock; where session is NULL */
    uint8_t resume_token[RESUME_TOKEN_BYTES];
    char client[SESSION_CLIENT_MAX + 1]; /* the name that its last connection gave */
    char token_name[TOKEN_NAME_MAX + 1]; /* of the token that its last connection came in with; "": it had none */

    struct notices notices; /* sent by deliver.c. While any wait its players get no other delta */
    bool owes;              /* in deliver->owing: has come since deliver_waiting() */
};

typedef ARRAY(struct session *) session_list;

struct sessions {
    struct metrics *metrics;
    struct aoi_world *world;
    struct record *record;             /* NULL: nothing is recorded */
    ARRAY(struct standing *) by_owner; /* owner - 1 -> standing; NULL: the number is free */
    ARRAY(aoi_owner) free_owners;
    struct idmap by_id; /* id on the wire -> owner */
    uint64_t last_id;
    uint32_t away_n;      /* sessions without a connection */
    uint64_t clock_ms;    /* the server's, by which leases end, as of its last tick */
    session_list touched; /* to be looked at when the current callback is done: bytes to write, or a closing */
};

void sessions_clear(struct sessions *sessions);

/* NULL: there is no such session. */
static inline struct standing *sessions_of_owner(const struct sessions *sessions, aoi_owner owner)
{
    return owner == 0 || owner > sessions->by_owner.n ? NULL : sessions->by_owner.at[owner - 1];
}
struct standing *sessions_of_id(const struct sessions *sessions, uint64_t id);
uint64_t sessions_id_of_owner(const struct sessions *sessions, aoi_owner owner); /* 0: of nobody */
aoi_owner sessions_owner_of_id(const struct sessions *sessions, uint64_t id);    /* 0: there is no such session */

/* Hello was accepted: HELLO_WAIT -> READY, with a new standing, or with one that has no connection, whose players then get full deltas. */
struct standing *sessions_begin(struct sessions *sessions, struct session *session, uint32_t lease_ms);
void sessions_resume(struct sessions *sessions, struct standing *standing, struct session *session);
/* A session of an earlier daemon goes on without a connection; owners come in ascending order, before all others, and the id is unknown. */
struct standing *sessions_restore(struct sessions *sessions, aoi_owner owner, uint64_t id, uint32_t lease_ms,
                                  const uint8_t resume_token[RESUME_TOKEN_BYTES]);
/* Takes as long for a wrong token as for the right one. */
bool sessions_token_is(const struct standing *standing, const uint8_t *token, size_t len);
/* Whether who came in with this token may go on with the session: the name must be the same, where both have one. */
bool sessions_may_resume(const struct standing *standing, const struct token *token);

#define LEASE_FROZEN UINT64_MAX
/* The connection lets go of the session, which waits for another one until lease_end_ms; LEASE_FROZEN: the daemon ends, and nothing changes for anybody, unless it is
 * resumed even so. */
void sessions_leave(struct sessions *sessions, struct standing *standing, uint64_t lease_end_ms);
/* Everything that it owns is removed, and it is no more. deliver_waiting() then tells others of players that they lost with its spaces. In two steps: it is no more, but for what it
 * owned; and that is removed, upon which the owner's number is free. */
void sessions_end(struct sessions *sessions, struct standing *standing);
aoi_owner sessions_part(struct sessions *sessions, struct standing *standing);
void sessions_clean(struct sessions *sessions, aoi_owner owner);

/* Whether taker may take what is the owner's, is connected and has not released it: may_take of the core's sink. */
bool sessions_may_take(const struct sessions *sessions, aoi_owner taker, aoi_owner owner);

#endif
