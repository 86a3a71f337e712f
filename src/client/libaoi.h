/* libaoi.h: a client of aoid: commands in batches, queries, deltas, and a mirror of what each player sees.
 *
 *   #include <libaoi.h>
 *   #include <stdio.h>
 *
 *   static void on_ack(void *refused, const struct libaoi_ack *ack)
 *   {
 *       *(size_t *)refused += ack->n;
 *       for (size_t i = 0; i < ack->n; i++) fprintf(stderr, "command %u: %s\n", ack->refusals[i].index, ack->refusals[i].text);
 *   }
 *
 *   int main(int argc, char **argv)
 *   {
 *       char error[300];
 *       size_t refused = 0;
 *       const struct libaoi_options options = {
 *           .address = argc > 1 ? argv[1] : NULL, .client_name = "zone-7", .mirror = true, .handlers = {.ctx = &refused, .ack = on_ack}};
 *       struct libaoi *c = libaoi_connect(&options, error, sizeof error);
 *       if (!c) return fprintf(stderr, "%s\n", error), 1;
 *       libaoi_create_space(c, 1, &(struct libaoi_settings){.flush_ms = LIBAOI_FLUSH_MS}, true);
 *       libaoi_add(c, 1, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = 42, .pos = {3, 4}, .radius = 50});
 *       libaoi_add(c, 1, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = 43, .pos = {5, 6}});
 *       libaoi_subscribe(c, 1, 1000, 42, false);
 *       libaoi_send(c);
 *       while (!refused && libaoi_poll(c, 1000) >= 0) {
 *           const struct libaoi_view *view = libaoi_view(c, 1, 1000);
 *           if (!view) continue;
 *           for (size_t i = 0; i < view->n; i++)
 *               printf("player 1000 sees %llu at %g %g\n", (unsigned long long)view->items[i].id, view->items[i].pos[0], view->items[i].pos[1]);
 *           return libaoi_close(c), 0;
 *       }
 *       return fprintf(stderr, "%s\n", libaoi_error(c)), 1;
 *   }
 *
 * Link it with `cc example.c $(pkg-config --cflags --libs aoi)`, or, from the source tree, `cc -Isrc/client example.c build/libaoi.a -lprotobuf-c -lssl
 * -lcrypto`.
 *
 * This header needs no other one. A connection belongs to one thread at a time. Nothing here blocks but libaoi_connect() and what takes a timeout. Functions that
 * can fail return 0 or a negative LIBAOI_E...; libaoi_error() then has a sentence. Allocation failure aborts. The protocol itself is in aoi.proto.
 */
#ifndef LIBAOI_H
#define LIBAOI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum libaoi_status {
    LIBAOI_OK = 0,
    LIBAOI_ETIMEOUT = -1,  /* nothing wrong so far, but not in time */
    LIBAOI_ECLOSED = -2,   /* the connection is gone; only libaoi_resume() helps, or libaoi_close() */
    LIBAOI_EPROTOCOL = -3, /* the daemon said something that it must not; the connection is of no more use */
    LIBAOI_EREFUSED = -4,  /* the daemon answered with an Error: libaoi_refused_code() */
    LIBAOI_ETOOLARGE = -5, /* a payload or message that fits no frame, nothing was queued; of libaoi_resume(): see there */
    LIBAOI_EINVAL = -6,    /* update_tiers that are none, or a resume without the option; nothing was done */
};

/* Why the daemon refused something: enum Code of aoi.proto. */
enum libaoi_code {
    LIBAOI_INVALID_ARGUMENT = 1,
    LIBAOI_OUT_OF_BOUNDS,
    LIBAOI_UNKNOWN_SPACE,
    LIBAOI_UNKNOWN_ENTITY,
    LIBAOI_UNKNOWN_PLAYER,
    LIBAOI_DUPLICATE_SPACE,
    LIBAOI_DUPLICATE_ENTITY,
    LIBAOI_NOT_OWNER,
    LIBAOI_LIMIT_EXCEEDED,
    LIBAOI_UNSUPPORTED,
    LIBAOI_UNAUTHENTICATED,
    LIBAOI_MALFORMED,
    LIBAOI_FRAME_TOO_LARGE,
    LIBAOI_DRAINING
};
const char *libaoi_code_name(int code); /* "NOT_OWNER"; "UNKNOWN" for a number that is none */

enum libaoi_index { LIBAOI_GRID = 1, LIBAOI_CROSSLIST = 2 };
enum libaoi_shape { LIBAOI_BOX = 1, LIBAOI_SPHERE = 2, LIBAOI_CELLS = 3 };
enum libaoi_add_mode { LIBAOI_ADD_NEW = 1, LIBAOI_ADD_UPSERT = 2, LIBAOI_ADD_ADOPT = 3 };
enum libaoi_override_kind { LIBAOI_OVERRIDE_NONE = 1, LIBAOI_OVERRIDE_HIDE = 2, LIBAOI_OVERRIDE_SHOW = 3 };

/* Settings of a space; 0 means the daemon's default, but for flush_ms. */
struct libaoi_settings {
    uint32_t dimensions;  /* 2 or 3 */
    uint32_t index;       /* enum libaoi_index */
    uint32_t shape;       /* enum libaoi_shape */
    double cell_size;     /* edge of a grid cell, and of the cells of LIBAOI_CELLS */
    uint32_t cell_range;  /* for LIBAOI_CELLS */
    bool bounded;         /* whether min and max count */
    float min[3], max[3]; /* edges inclusive */
    bool extra;           /* moves and deltas carry one opaque 32-bit word */
    uint32_t flush_ms;    /* literal: 0 is a space that only libaoi_flush() flushes; LIBAOI_FLUSH_MS is usual */
    bool persistent;      /* outlives the session that made it */
    /* from here on, and flush_ms: changeable by libaoi_set_space() */
    /* what was told stays until it is so much further away; in cells: while it would be seen if both stood so much nearer to each other */
    float leave_margin;
    uint32_t min_stay_ms;         /* what was told stays so long */
    uint32_t max_view;            /* entities in a player's view at most, the best by rank; 0: no limit */
    uint32_t max_enter_per_flush; /* enters in one delta at most, the best by rank; 0: no limit */
    const char
        *update_tiers; /* "30:1 60:2 *:4": told at every flush within 30, at every second within 60, else at every fourth. NULL or "": always */
};
#define LIBAOI_FLUSH_MS 50

struct libaoi_entity {
    uint64_t id; /* not 0 */
    float pos[3];
    uint32_t extra;
    float radius;    /* how far it sees, for the players subscribed to it */
    uint32_t layers; /* 0 means 1 in libaoi_add() */
    const void *payload;
    size_t payload_len;
    float appeal;           /* it can be seen from so much further away */
    uint32_t priority;      /* where max_view limits a view, higher ones come first */
    bool report_observed;   /* tell this connection whether anybody sees it: the observed handler */
    uint64_t owner_session; /* out only */
    uint32_t subscribers;   /* out only */
};

/* Settings of a player; zeros mean the space's, and all layers. */
struct libaoi_player {
    uint32_t mask; /* it sees entities of which layers & mask is not 0; 0: all */
    uint32_t max_view;
    float leave_margin;
    uint32_t max_enter_per_flush;
    bool presence_only; /* enters, leaves, state changes and messages, but no updates of positions */
    /* Of another session's player that it released, or that has lost its connection: it goes on here with one full delta. ITS SETTINGS BECOME THE ONES ABOVE: say
     * them, or keep_settings; else its mask becomes all, and it sees what was hidden from it. */
    bool take_over;
    bool keep_settings; /* a player that is there keeps the settings that it has, whatever stands above; an unknown one gets them */
};

/* ------------------------------------------------------------------------------------------------------------- what comes in */

/* One command that was refused. */
struct libaoi_refusal {
    uint32_t index; /* of the command in its frame */
    int code;
    uint64_t id; /* the space, entity or player it is about */
    const char *text;
};

/* The answer to one frame of commands; and, with nothing refused, to libaoi_resync() (applied is 1) and libaoi_bye() (0). */
struct libaoi_ack {
    uint64_t seq;     /* of the frame, as libaoi_send() returned it */
    uint64_t applied; /* one a command, one an id for moves and removes */
    uint64_t refused; /* the total; the first ones are listed */
    size_t n;
    const struct libaoi_refusal *refusals;
    bool pending; /* a flush in it left work for the next one */
};

/* A part of one player's delta, columns as on the wire; sections apply in this order. z is NULL in 2D, extra NULL where the space has none. Everything lives until
 * the handler returns. */
struct libaoi_delta {
    uint64_t space, flush, tag, time_us; /* flush: number in its space; tag of the flush command, else 0; the daemon's clock */
    uint64_t player, seq;
    uint32_t part;
    bool more;   /* another part with this seq follows */
    bool full;   /* forget what you hold: the enters are everything */
    bool closed; /* the player is no more */
    size_t leave_n, enter_n, update_n, payload_n, layers_n;
    const uint64_t *leave_id;
    const uint64_t *enter_id;
    const float *enter_x, *enter_y, *enter_z;
    const uint32_t *enter_extra, *enter_layers;
    const void *const *enter_payload; /* NULL: none of them has one */
    const uint32_t *enter_payload_len;
    const uint64_t *update_id;
    const float *update_x, *update_y, *update_z;
    const uint32_t *update_extra;
    const uint64_t *payload_id;
    const void *const *payload;
    const uint32_t *payload_len;
    const uint64_t *layers_id;
    const uint32_t *layers;
    size_t message_n;             /* events, in the order in which they were published; they come when the rest of the delta has been applied */
    const uint64_t *message_from; /* the publishing entity; 0: a point or a box */
    const void *const *message;
    const uint32_t *message_len;
    uint64_t messages_lost; /* at most so many were lost before and with this delta */
};

/* Called from inside libaoi_poll(), libaoi_wait() and the like; any may be NULL. They may queue commands, but neither call what polls nor end the connection. */
struct libaoi_handlers {
    void *ctx;
    void (*delta)(void *ctx, const struct libaoi_delta *delta); /* the mirror, if there is one, has applied it already */
    /* After `delta`, for each message in it, in order. */
    void (*message)(void *ctx, const struct libaoi_delta *delta, uint64_t from, const void *message, uint32_t len);
    /* After `delta`, where delta->messages_lost is not 0. */
    void (*messages_lost)(void *ctx, const struct libaoi_delta *delta);
    /* Entities of ours, added with report_observed, that somebody began (observed) or ceased to see. */
    void (*observed)(void *ctx, uint64_t space, bool observed, size_t n, const uint64_t *id);
    /* Entities or players of ours that another session took over; the mirror has forgotten such a player already. */
    void (*lost)(void *ctx, uint64_t space, bool players, size_t n, const uint64_t *id);
    void (*ack)(void *ctx, const struct libaoi_ack *ack);
    void (*pong)(void *ctx, uint64_t seq, uint64_t nonce, uint64_t time_us);
    void (*error)(void *ctx, uint64_t seq, int code, const char *text); /* seq 0: about no frame of ours with a seq */
    void (*draining)(void *ctx);
};

/* ------------------------------------------------------------------------------------------------------------- connection */

struct libaoi;

struct libaoi_options {
    /* HOST:PORT, [IPV6]:PORT, unix:PATH or a path with a slash in it, of a Unix socket. A host that is left out is 127.0.0.1, a port 2643; NULL: both. */
    const char *address;
    const char *client_name; /* for the daemon's log */
    uint32_t timeout_ms;     /* for connecting and the Welcome; 0: 5,000 */
    bool mirror;             /* keep the view of each player, and check every delta against the protocol */
    uint32_t receive_buffer; /* bytes of the socket's receive buffer; 0: the system's choice */
    bool no_ping;            /* do not ping by itself: see libaoi_poll() */
    uint32_t lease_ms;       /* how long the session is to outlive a connection that breaks; 0: 10,000 */
    const char *token;       /* the secret that the daemon's tokens_file has for this client; NULL: none */
    bool tls;                /* speak TLS, as a daemon with tls_cert wants it (not on a Unix socket) */
    const char *tls_ca;      /* file of the authorities whose certificates are trusted; NULL: those of the system */
    const char *tls_cert;    /* file of the certificate that this client shows, and of its key, which go together; NULL: none */
    const char *tls_key;
    bool resume; /* keep what has not been answered, for libaoi_resume() */
    struct libaoi_handlers handlers;
};

struct libaoi_welcome {
    uint32_t protocol_version;
    char server_version[32];
    uint64_t session;
    uint32_t max_frame_bytes, max_payload, query_page, idle_timeout_ms;
    uint32_t lease_ms; /* that the session got; 0: it ends with its connection */
};

/* Connects, says Hello and waits for the Welcome. NULL: error has a sentence that says what to do. */
struct libaoi *libaoi_connect(const struct libaoi_options *options, char *error, size_t error_size);
/* Ends the session, and frees everything. Says Bye, as far as the socket takes it at once: see libaoi_bye() for more. NULL is fine. */
void libaoi_close(struct libaoi *c);
/* Frees everything, as if the process had died: the session goes on for its lease. */
void libaoi_abandon(struct libaoi *c);
/* After the connection broke (LIBAOI_ECLOSED, LIBAOI_EPROTOCOL), or to leave one that is as good as gone: connects anew to go on with the session. 1: as if nothing had happened;
 * what was not answered is sent again (what was refused with LIBAOI_DRAINING is not: say it anew), and answered, in its order, though the refusals of what was applied before are not known any more; the mirrors hold what they held until each
 * player's full delta comes. 2: likewise, but the daemon has come back from a snapshot that was older than what it had answered: what is the session's is there as it was then, so
 * state it anew, by UPSERT. 0: the lease was over. The session is a new one, nothing was sent again, the mirrors are empty: make everything anew. An error: nothing has changed, try again
 * in a moment; but where libaoi_refused_code() is LIBAOI_UNAUTHENTICATED no trying helps: the token or the resume token is not valid (any more). Close, and connect anew.
 * So it is with LIBAOI_ETOOLARGE: the daemon's max_frame_bytes is lower now than what was not answered takes. */
int libaoi_resume(struct libaoi *c, int timeout_ms);
/* Sends what is queued, then Bye, and waits until the daemon has closed; still to be closed here. */
int libaoi_bye(struct libaoi *c, int timeout_ms);

const struct libaoi_welcome *libaoi_welcome(const struct libaoi *c);
const char *libaoi_error(const struct libaoi *c);   /* a sentence about the last failure, "" before the first */
int libaoi_refused_code(const struct libaoi *c);    /* enum libaoi_code, where libaoi_error() is about an Error of the daemon; else 0 */
int libaoi_fd(const struct libaoi *c);              /* for a poll of one's own: readable always, writable while libaoi_unsent() is not 0 */
size_t libaoi_unsent(const struct libaoi *c);       /* bytes that the socket has not taken yet */
uint64_t libaoi_unanswered(const struct libaoi *c); /* frames sent of which the reply has not come yet */

struct libaoi_counters {
    uint64_t frames_in, bytes_in, frames_out, bytes_out;
    uint64_t deltas, enters, leaves, updates, messages, messages_lost; /* told to all players of this connection */
};
const struct libaoi_counters *libaoi_counters(const struct libaoi *c);

/* Writes what the socket takes and handles what has come, waiting up to timeout_ms (-1: for ever) for the first byte. Returns how many frames it handled.
 * The daemon closes a connection that sends nothing for idle_timeout_ms: this, and everything that waits, sends a Ping (seq 0, without an answer) when nothing was
 * sent for a third of that. So it is enough to call it that often; with no_ping that is the caller's to do. */
int libaoi_poll(struct libaoi *c, int timeout_ms);
/* Until the reply to frame `seq` has come (its ack or pong handler has run). An Error as the reply is LIBAOI_EREFUSED: of a frame that was answered
 * before this call that is known only while no later one has been refused; the error handler is told of all. */
int libaoi_wait(struct libaoi *c, uint64_t seq, int timeout_ms);
/* Sends, and waits until everything has been answered. LIBAOI_EREFUSED if an Error was among the answers; refused commands are not: see the ack handler.
 * LIBAOI_ECLOSED on a connection that is gone, by libaoi_bye() too, even if nothing was left to be answered: what was queued since went nowhere. */
int libaoi_sync(struct libaoi *c, int timeout_ms);

/* ------------------------------------------------------------------------------------------------------------- commands
 * They are queued and go out in frames of at most max_frame_bytes, cut by themselves; a frame holds commands of one space. libaoi_send() closes the
 * frame begun and returns its seq (0: there was nothing); replies come in the order of the frames. */

uint64_t libaoi_send(struct libaoi *c);

int libaoi_create_space(struct libaoi *c, uint64_t space, const struct libaoi_settings *settings, bool if_absent);
/* Changes of the settings those that `which` names. */
enum libaoi_change { LIBAOI_FLUSH = 1, LIBAOI_LEAVE_MARGIN = 2, LIBAOI_MIN_STAY = 4, LIBAOI_MAX_VIEW = 8, LIBAOI_MAX_ENTER = 16, LIBAOI_TIERS = 32 };
int libaoi_set_space(struct libaoi *c, uint64_t space, uint32_t which, const struct libaoi_settings *settings);
/* Whoever made it: while the daemon has no tokens everybody is admin, and may destroy any space but one of the configuration. */
void libaoi_destroy_space(struct libaoi *c, uint64_t space);
int libaoi_add(struct libaoi *c, uint64_t space, enum libaoi_add_mode mode, const struct libaoi_entity *entity);
/* Columns of n. z NULL: for a 2D space; in 3D it is refused. extra NULL: unchanged. */
void libaoi_move(struct libaoi *c, uint64_t space, size_t n, const uint64_t *id, const float *x, const float *y, const float *z,
                 const uint32_t *extra);
void libaoi_remove(struct libaoi *c, uint64_t space, size_t n, const uint64_t *id);
void libaoi_set_radius(struct libaoi *c, uint64_t space, uint64_t id, float radius);
void libaoi_set_layers(struct libaoi *c, uint64_t space, uint64_t id, uint32_t layers);
int libaoi_set_payload(struct libaoi *c, uint64_t space, uint64_t id, const void *payload, size_t payload_len);
void libaoi_set_appeal(struct libaoi *c, uint64_t space, uint64_t id, float appeal);
void libaoi_set_priority(struct libaoi *c, uint64_t space, uint64_t id, uint32_t priority);
/* What is ours may be taken by another session: entities by LIBAOI_ADD_ADOPT, players by take_over. Until then all stays as it is. to_session 0: by any. */
void libaoi_release(struct libaoi *c, uint64_t space, size_t n, const uint64_t *id, uint64_t to_session);
void libaoi_release_players(struct libaoi *c, uint64_t space, size_t n, const uint64_t *player, uint64_t to_session);
void libaoi_adopt(struct libaoi *c, uint64_t space, uint64_t id);                          /* libaoi_add() with LIBAOI_ADD_ADOPT */
void libaoi_open_player(struct libaoi *c, uint64_t space, uint64_t player, uint32_t mask); /* all else as the space has it */
void libaoi_open_player_with(struct libaoi *c, uint64_t space, uint64_t player, const struct libaoi_player *settings);
/* What this player sees in spite of the rules; also for an entity that is not there yet. */
void libaoi_override(struct libaoi *c, uint64_t space, uint64_t player, uint64_t entity, enum libaoi_override_kind kind);
/* An event, told with the next flush: to those who then see our entity, or who look at the point or at any point of the box. */
int libaoi_publish(struct libaoi *c, uint64_t space, uint64_t entity, const void *message, size_t len);
int libaoi_publish_at(struct libaoi *c, uint64_t space, const float point[3], const void *message, size_t len);
int libaoi_publish_box(struct libaoi *c, uint64_t space, const float min[3], const float max[3], const void *message, size_t len);
void libaoi_close_player(struct libaoi *c, uint64_t space, uint64_t player);
void libaoi_subscribe(struct libaoi *c, uint64_t space, uint64_t player, uint64_t entity, bool include_self);
void libaoi_unsubscribe(struct libaoi *c, uint64_t space, uint64_t player, uint64_t entity);
void libaoi_set_viewport(struct libaoi *c, uint64_t space, uint64_t player, const float min[3], const float max[3]);
void libaoi_clear_viewport(struct libaoi *c, uint64_t space, uint64_t player);
void libaoi_flush(struct libaoi *c, uint64_t space, uint64_t tag);

/* Frames of their own, sent at once; they return their seq. The reply to a resync is an ack, to a ping a pong. */
uint64_t libaoi_resync(struct libaoi *c, uint64_t space, uint64_t player); /* player 0: all of ours in the space */
uint64_t libaoi_ping(struct libaoi *c, uint64_t nonce);

/* ------------------------------------------------------------------------------------------------------------- queries
 * They send what is queued, ask, and wait; deltas that come meanwhile are handled. What *out points to lives until the next call that polls. */

/* A page of entities. z NULL in 2D, extra NULL where the space has none; of a view only the ids are known. */
struct libaoi_rows {
    size_t n;
    const uint64_t *id;
    const float *x, *y, *z;
    const uint32_t *extra, *layers;
    uint64_t next; /* cursor of the next page, 0: this was the last */
    uint64_t seq;  /* of a view: its last delta */
};

struct libaoi_stats {
    uint64_t spaces, entities, players, pairs, flushes, enters, leaves, updates, deltas, skipped, moves, messages, errors;
    uint64_t memory_bytes, uptime_ms, connections, frames_in, bytes_in, bytes_out;
};

struct libaoi_space_info {
    uint64_t id, entities, players, owner_session; /* 0: of the configuration, or its maker is gone */
    bool configured;                               /* of the configuration */
    struct libaoi_settings settings;
};

/* layers 0: all; cursor 0: the first page; limit 0: as many as the daemon gives. */
int libaoi_query_box(struct libaoi *c, uint64_t space, const float min[3], const float max[3], uint32_t layers, uint64_t cursor, uint32_t limit,
                     int timeout_ms, struct libaoi_rows *out);
int libaoi_query_radius(struct libaoi *c, uint64_t space, const float center[3], float radius, uint32_t layers, uint64_t cursor, uint32_t limit,
                        int timeout_ms, struct libaoi_rows *out);
int libaoi_query_count(struct libaoi *c, uint64_t space, const float min[3], const float max[3], uint32_t layers, int timeout_ms, uint64_t *entities,
                       uint64_t *players);
int libaoi_query_entity(struct libaoi *c, uint64_t space, uint64_t id, int timeout_ms, struct libaoi_entity *out);
int libaoi_query_view(struct libaoi *c, uint64_t space, uint64_t player, uint64_t cursor, uint32_t limit, int timeout_ms, struct libaoi_rows *out);
int libaoi_query_stats(struct libaoi *c, uint64_t space, int timeout_ms, struct libaoi_stats *out); /* space 0: the whole daemon */
int libaoi_query_spaces(struct libaoi *c, uint64_t cursor, uint32_t limit, int timeout_ms, size_t *n, const struct libaoi_space_info **out,
                        uint64_t *next);

/* The k nearest entities, nearest first, at most max_distance away (0: however far). */
int libaoi_query_nearest(struct libaoi *c, uint64_t space, const float center[3], uint32_t k, float max_distance, uint32_t layers, int timeout_ms,
                         struct libaoi_rows *out);
/* Players that were told of an entity; rows have only ids. */
int libaoi_query_observers(struct libaoi *c, uint64_t space, uint64_t id, uint64_t cursor, uint32_t limit, int timeout_ms, struct libaoi_rows *out);
/* Entities in each field of a raster over the box: columns * rows counts, row by row from the smallest y. */
int libaoi_query_density(struct libaoi *c, uint64_t space, const float min[3], const float max[3], uint32_t columns, uint32_t rows, uint32_t layers,
                         int timeout_ms, const uint32_t **counts);

/* What decides whether a player sees an entity: enum Rule of aoi.proto. */
enum libaoi_rule {
    LIBAOI_RULE_INCLUDE_SELF = 1,
    LIBAOI_RULE_SHOW,
    LIBAOI_RULE_HIDE,
    LIBAOI_RULE_MASK,
    LIBAOI_RULE_RANGE,
    LIBAOI_RULE_LEAVE_MARGIN,
    LIBAOI_RULE_MIN_STAY,
    LIBAOI_RULE_FAR,
    LIBAOI_RULE_BLIND,
    LIBAOI_RULE_RANK,
    LIBAOI_RULE_ENTER_BUDGET
};
const char *libaoi_rule_name(int rule); /* "LEAVE_MARGIN"; "UNKNOWN" for a number that is none */

struct libaoi_why {
    int rule;
    bool told, seen;  /* what the player was told; what the next flush would find */
    bool by_viewport; /* the viewport decides, else `unit` */
    uint64_t unit;    /* that sees it, or the nearest one; 0: none */
    double distance;  /* to that unit, or to the viewport's centre */
    float radius, appeal, margin;
    uint32_t layers, mask;
    uint32_t rank, max_view; /* from 1; 0: no limit in force */
    uint32_t stay_left_ms, period;
    const char *text; /* a sentence */
};
int libaoi_query_why(struct libaoi *c, uint64_t space, uint64_t player, uint64_t entity, int timeout_ms, struct libaoi_why *out);

/* ------------------------------------------------------------------------------------------------------------- mirror */

struct libaoi_item {
    uint64_t id;
    float pos[3];
    uint32_t extra, layers;
    uint32_t payload_len;
    const void *payload;
    uint64_t entered, updated; /* seq of the delta that last did so */
    uint64_t payload_seq, layers_seq;
};

/* What one player sees, as told. Read only. */
struct libaoi_view {
    uint64_t space, player;
    uint64_t seq, flush, tag; /* of the last delta */
    bool partial;             /* in the middle of a delta in several parts */
    size_t n;
    const struct libaoi_item *items; /* in no particular order; they move with the next delta */
    /* What it has been told in all. told_same: updates and state changes to what it held already; empty: deltas with nothing in them. */
    uint64_t deltas, parts, fulls, enters, leaves, updates, told_same, empty, messages, messages_lost;
};

/* NULL: no delta has come yet for this player, or it was closed. */
const struct libaoi_view *libaoi_view(const struct libaoi *c, uint64_t space, uint64_t player);
const struct libaoi_item *libaoi_view_find(const struct libaoi_view *view, uint64_t id); /* NULL: it does not see it */
uint64_t libaoi_views_closed(const struct libaoi *c);                                    /* how many deltas marked closed have come */

#ifdef __cplusplus
}
#endif

#endif
