/* aoictl.h: what the verbs of aoictl share. */
#ifndef AOI_TOOLS_AOICTL_H
#define AOI_TOOLS_AOICTL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/libaoi.h"

enum { AOICTL_OK = 0, AOICTL_FAILED = 1, AOICTL_USAGE = 2 }; /* exit statuses */

struct aoictl {
    struct libaoi *c;
    const char *address;
    bool tls;
    const char *ca, *cert, *key; /* NULL: not given */
    int timeout_ms;
    bool script;                /* verbs come from standard input */
    bool hold;                  /* stay connected when all is done */
    size_t line;                /* of the script */
    bool plain;                 /* refusals speak for themselves: no advice behind them */
    uint64_t refused;           /* commands refused since aoictl_settle() */
    bool made;                  /* something was made that ends with this connection */
    struct aoictl_watch *watch; /* where deltas go, NULL: nowhere */
    struct aoictl_tally *tally; /* where refusals are counted; NULL: each is printed */
};

/* One verb: gets the words behind its name. Returns an exit status and has printed what is to be said. */
typedef int aoictl_verb(struct aoictl *ctl, int n, char **words);
aoictl_verb aoictl_ping, aoictl_stats, aoictl_spaces, aoictl_query;
aoictl_verb aoictl_create, aoictl_destroy, aoictl_add, aoictl_move, aoictl_set, aoictl_remove, aoictl_flush, aoictl_sleep;
aoictl_verb aoictl_watch, aoictl_replay;
aoictl_verb aoictl_set_space, aoictl_player, aoictl_override, aoictl_publish, aoictl_release, aoictl_adopt, aoictl_why;

extern volatile sig_atomic_t aoictl_stop; /* a signal asks to end */

/* Prints "aoictl: [line N: ]what" to standard error and returns AOICTL_USAGE or AOICTL_FAILED. */
__attribute__((format(printf, 2, 3))) int aoictl_bad_usage(const struct aoictl *ctl, const char *format, ...);
__attribute__((format(printf, 2, 3))) int aoictl_failed(const struct aoictl *ctl, const char *format, ...);
/* Another connection to the same daemon, like ctl->c but with these handlers. NULL, with a sentence in error. */
struct libaoi *aoictl_connect(const struct aoictl *ctl, const struct libaoi_handlers *handlers, char *error, size_t error_size);
/* replay, where the file is a recording. */
int aoictl_replay_recording(struct aoictl *ctl, const char *path, double speed);
/* Sends what is queued and waits for the answers; refusals are printed, each with what to do about it. */
int aoictl_settle(struct aoictl *ctl);
/* Prints why a call of libaoi failed, and what to do about it; returns AOICTL_FAILED. */
int aoictl_call_failed(const struct aoictl *ctl);
/* Handles what comes for so long, or until a signal. seconds < 0: until a signal. */
int aoictl_linger(struct aoictl *ctl, double seconds);
#define AOICTL_EXAMPLES 3 /* refusals of many that are printed one by one */
/* Prints a refusal, with this advice behind it. */
void aoictl_refused(const struct aoictl *ctl, const struct libaoi_refusal *refusal, const char *advice);
/* What a person can do about a refusal, of which the daemon said this: "; ...", or "". */
const char *aoictl_advice(int code, const char *text);
/* The delta handler of the connection. */
void aoictl_on_delta(void *ctx, const struct libaoi_delta *delta);
/* Notices for whoever owns things: printed, one a line. */
void aoictl_on_observed(void *ctx, uint64_t space, bool observed, size_t n, const uint64_t *id);
void aoictl_on_lost(void *ctx, uint64_t space, bool players, size_t n, const uint64_t *id);
void aoictl_print_rows(const struct libaoi_rows *rows);
/* Counts the refusals of an ack, and prints the first few of all. */
void aoictl_tally(struct aoictl_tally *tally, const struct aoictl *ctl, const struct libaoi_ack *ack);
void aoictl_print_payload(const void *payload, size_t len); /* "...", what is not printable as \xNN */

/* Words into values; on a fault they print it and return false. */
bool aoictl_parse_u64(const struct aoictl *ctl, const char *what, const char *word, uint64_t *out); /* decimal or 0x hexadecimal */
bool aoictl_parse_u32(const struct aoictl *ctl, const char *what, const char *word, uint32_t *out);
bool aoictl_parse_id(const struct aoictl *ctl, const char *what, const char *word, uint64_t *out); /* not 0 */
bool aoictl_parse_double(const struct aoictl *ctl, const char *what, const char *word, double *out);
bool aoictl_parse_point(const struct aoictl *ctl, const char *word, float out[3]);               /* X,Y or X,Y,Z */
bool aoictl_parse_box(const struct aoictl *ctl, const char *word, float min[3], float max[3]);   /* X0,Y0,X1,Y1 or with Z0 and Z1 */
bool aoictl_parse_flag(const struct aoictl *ctl, const char *what, const char *word, bool *out); /* yes or no */
/* Whether the word is a setting of a space that can change, NAME=VALUE; then it is in *s and in *which, or a fault was printed and *good is false. */
bool aoictl_is_rule(const struct aoictl *ctl, const char *word, struct libaoi_settings *s, uint32_t *which, bool *good);
/* Likewise, for a setting of a player. */
bool aoictl_is_player_setting(const struct aoictl *ctl, const char *word, struct libaoi_player *s, bool *good);
/* Whether words[0] is a query about what is seen; then it was asked. */
bool aoictl_is_sight_query(struct aoictl *ctl, uint64_t space, uint32_t layers, int n, char **words, int *status);
/* The value of NAME=VALUE or --NAME=VALUE if that is the name, else NULL. */
const char *aoictl_option(const char *word, const char *name);

#endif
