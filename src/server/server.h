/* server.h: the daemon: its listener, its connections, and their end. For server.c, conn.c and main.c. */
#ifndef AOI_SERVER_SERVER_H
#define AOI_SERVER_SERVER_H

#include <uv.h>

#include "server/activation.h"
#include "server/config.h"
#include "server/deliver.h"
#include "server/dispatch.h"
#include "server/doors.h"
#include "server/flusher.h"
#include "server/hold.h"
#include "server/listener.h"
#include "server/metrics.h"
#include "server/record.h"
#include "server/sessions.h"
#include "server/snapshot.h"

#define SERVER_TICK_MS 100              /* how often the clocks of connections and leases are looked at */
#define SERVER_READ_BYTES (256u * 1024) /* the most that is read of a connection in one turn of the loop */
#define SERVER_PLAIN_BYTES (64u * 1024)
#define SERVER_REFUSED_MAX 8 /* refused connections that are given the time to read why */

struct conn;
typedef ARRAY(struct conn *) conn_list;

/* In this order connections have their turns: those that have used little time lately, the others, and those of which nobody knows yet who they are. */
enum turn { TURN_LIGHT, TURN_HEAVY, TURN_STRANGER, TURNS };

struct server {
    struct config *config;
    uv_loop_t *loop;
    union stream listeners[2]; /* TCP, Unix socket; those that are not used are no handles */
    bool knocked[2];           /* a connection waits there for the next turn: libuv takes in no other one before */
    uv_timer_t tick;           /* runs while there are connections, or leases */
    uv_timer_t drain_timer;    /* runs while draining */
    uv_idle_t turn;            /* runs while a connection waits for its next turn */
    uv_prepare_t prepare;      /* runs before the loop polls: a new turn begins */

    struct doors doors;
    struct budget budget;
    struct metrics metrics;
    struct outbox_limits out_limits;
    struct sessions sessions;
    struct deliver deliver;
    struct aoi_world *world;
    struct flusher flusher;
    struct flushwatch flushwatch;
    struct hold hold;
    struct record *record; /* NULL: nothing is recorded */
    struct dispatch dispatch;
    struct snapshot snapshot;

    conn_list conns;                 /* all whose sockets are open */
    conn_list waiting[TURNS];        /* for their next turn */
    uint32_t crowd;                  /* how many waited at once lately, but for strangers: halved with each tick */
    uint64_t turn_began_ns;          /* of the first input in this turn of the loop; 0: none yet */
    bool holds;                      /* some conn waits for the end of a flush */
    uint64_t let_go;                 /* flusher.ended when they were looked at last */
    uint32_t refused;                /* conns that do not count towards max_connections */
    uint32_t lingering;              /* conns that count, but have sent their last and wait for their peers to close */
    uint64_t clock_ms;               /* for the connections' timeouts: runs with the ticks, at most two of them at once, so that time
                                     which the daemon spent without reading is not counted against its peers */
    bool memory_full;                /* max_memory_bytes stands in the way, or did a moment ago */
    uint64_t denied_seen, denied_ms; /* budget.denied at the last tick, and when it had grown */
    uint64_t ticked_ms;              /* the loop's time of the last tick */
    uint32_t ticks;

    /* Called when the handles are closed, for whoever has some of his own on the loop. */
    void (*on_finish)(void *ctx);
    void *on_finish_ctx;

    bool listening, draining;
    bool lost; /* the last snapshot could not be written */
    uint64_t drain_began_ms, drain_deadline_ms;
    char *scratch; /* SERVER_READ_BYTES: what the read under way puts its bytes in */
    char *plain;   /* SERVER_PLAIN_BYTES: what TLS makes of them */
};

/* Makes the world with the configuration's spaces. The config must outlive the server. 0, or -1 with err[CONFIG_ERROR_MAX]. */
int server_init(struct server *server, uv_loop_t *loop, struct config *config, char *err);
/* Binds and listens, or listens at what was passed on; *port is the one it got. 0, or -1 with err. */
int server_listen(struct server *server, const struct activation *passed, int *port, char *err);
/* Raises the limit of open files to what max_connections need, or else lowers those, with a warning. */
void server_fit_open_files(struct config *config);
void server_set_limits(struct server *server); /* out_soft_bytes and out_hard_bytes of the configuration take effect */
/* Takes over what was read anew; whoever's token does not stand in it any more is told so and closed. */
void server_set_doors(struct server *server, struct doors *fresh);
/* Begins the end: no new connections, a last flush, Draining to all; when the outboxes are empty, or the time is up, every handle is closed, and the loop ends. */
void server_drain(struct server *server, const char *why);
/* After the loop has ended, or where server_listen() failed and the loop has run once more. */
void server_clear(struct server *server);
/* Closes the handles of the server at once. */
void server_finish(struct server *server);

/* To be called at the end of every callback that may have put something into outboxes or closed a session. */
void server_settle(struct server *server);

void server_start_tick(struct server *server);
/* How long one connection's input may take now, and whether all the input of this turn of the loop has taken long enough. */
uint64_t server_turn_ns(const struct server *server);
bool server_turn_over(struct server *server);
/* How much is read of a connection now, and how little time it must have used lately to be a light one: less, the more of them wait. */
unsigned server_read_bytes(const struct server *server);
uint64_t server_light_ns(const struct server *server);
/* A session ends, with all it owns. */
void server_end_session(struct server *server, struct standing *standing);
/* conn waits for its next turn, or does not any more. */
void server_wait_turn(struct server *server, struct conn *conn, enum turn turn);
void server_forget_turn(struct server *server, const struct conn *conn);

/* conn.c ------------------------------------------------------------------------------------------------------------- */

void conn_accept(struct server *server, union stream *listener); /* a connection waits there */
void conn_settle(struct conn *conn);                             /* writes what is in the outbox, and sees to a closing */
void conn_tick(struct conn *conn);                               /* looks at its clocks */
void conn_turn(struct conn *conn);                               /* goes on with the input that waits */
void conn_drop(struct conn *conn);                               /* closes the socket now; the session must be CLOSING */
bool conn_let_go(struct conn *conn);                             /* if it was held: it goes on with its input; false: the flush is still open */
uint64_t conn_busy_ns(const struct conn *conn);                  /* what it used lately */
uint64_t conn_silent_ms(const struct conn *conn);                /* since something came last */
uint64_t conn_full_ms(const struct conn *conn);                  /* since its outbox is full; 0: it is not */
bool conn_quiet(const struct conn *conn);                        /* nothing to write, and no input that waits */
struct session *conn_session(struct conn *conn);
struct conn *conn_of_session(struct session *session);

#endif
