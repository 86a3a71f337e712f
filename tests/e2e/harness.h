/* harness.h: the real daemon and clients of it, for the end-to-end tests. */
#ifndef AOI_TESTS_E2E_HARNESS_H
#define AOI_TESTS_E2E_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"
#include "client/libaoi.h"
#include "tools/daemon.h"

#define TIMEOUT_MS 60000 /* for any one answer; long, because sanitizers and neighbours slow everything down */
#define MAX_CLIENTS 16

/* What one delta told one player: sections as text, ids ascending in each: "L7 E7 U3 P4 Y5" (payload, layers), "F" in front if full, "C" if closed. Then
 * messages in their order, "M7:boo", and "X3" where at most 3 were lost. */
struct told {
    uint64_t space, player, seq, flush, tag, time_us;
    uint32_t parts;
    bool whole;
    char *text;
};

struct refused {
    int code;
    uint64_t id;
};

struct client {
    struct libaoi *c;
    bool record; /* keep `told`; on at first */
    ARRAY(struct told) told;
    char notices[1024]; /* since client_noticed(): "O7" observed, "o7" not any more, "e7" lost an entity, "p7" lost a player */
    ARRAY(struct refused) refused;
    uint64_t refused_total, applied;
    bool pending;         /* of the last ack */
    uint32_t told_at_ack; /* how many deltas had come before the last ack */
    bool draining;
};

struct rig {
    struct daemon daemon;
    struct client clients[MAX_CLIENTS];
    int client_n;
};

/* Starts the daemon of the environment variable AOID (or build/aoid) with these options, "name=value" and a NULL at the end. Sessions end with their connections, unless the
 * options give another max_lease_ms. */
void rig_start(struct rig *rig, const char *const *options);
/* Ends the clients that are left and the daemon, which must exit with 0. */
void rig_stop(struct rig *rig);
/* The daemon's log so far has this text. */
bool rig_logged(const struct rig *rig, const char *text);

/* libaoi_connect(), or the test fails. */
struct libaoi *connect_or_fail(const struct libaoi_options *options);
struct client *rig_client(struct rig *rig);
struct client *rig_client_with(struct rig *rig, uint32_t receive_buffer, bool mirror);
void client_end(struct client *client); /* closes the connection, without Bye */

/* Sends what is queued, waits for all answers: nothing may have been refused. */
void client_ok(struct client *client);
/* The same, but exactly one command must have been refused, with this code. */
void client_refused(struct client *client, int code);
/* Waits until everything that the daemon has sent to it so far has been handled: a ping's answer comes behind it. */
void client_catch_up(struct client *client);
/* Flushes the space on `by`'s connection until no work is left, and lets n watchers catch up. Returns the tag used, unique in the process. */
uint64_t flush(struct client *by, uint64_t space, struct client *watcher);
/* Handles what comes for so long. */
void client_linger(struct client *client, int ms);

/* What the player has been told since the last call, deltas joined by " | "; valid until the next call. */
const char *client_told(struct client *client, uint64_t space, uint64_t player);
/* The notices since the last call; valid until the next call. */
const char *client_noticed(struct client *client);
void client_forget(struct client *client); /* forgets all that was told */
/* Asserts on that text. */
#define expect_told(client, space, player, text) assert_string_equal(client_told((client), (space), (player)), (text))

void add(struct client *client, uint64_t space, uint64_t id, float x, float y, float radius);
void move(struct client *client, uint64_t space, uint64_t id, float x, float y);
void drop(struct client *client, uint64_t space, uint64_t id);
void publish(struct client *client, uint64_t space, uint64_t id, const char *text);
/* A space of box shape that only flushes on command. */
void make_space(struct client *client, uint64_t space, uint32_t index);

/* Numbers that AOI_SEED replays; random_seed() prints the seed. */
void random_seed(const char *test);
uint64_t random_below(uint64_t n);

#endif
