/* demo.h: what the files of the demo share: the two spaces, who looks at them, and what has been seen. */
#ifndef AOI_TOOLS_DEMO_H
#define AOI_TOOLS_DEMO_H

#include <signal.h>
#include <stdbool.h>

#include "client/libaoi.h"
#include "tools/daemon.h"
#include "tools/histogram.h"
#include "tools/trace.h"

#define DEMO_TOWN 1   /* space: vehicles, flushed by its timer */
#define DEMO_CITIES 2 /* space: cities of the world in kilometres, flushed by command */
#define DEMO_PLAYERS 1000
#define DEMO_CAMERAS 200
#define DEMO_EYES 4                /* connections that the players and cameras are spread over */
#define DEMO_CONNS (1 + DEMO_EYES) /* the first one moves everything */
#define DEMO_STEP_MS 50            /* 20 trace steps a second */
#define DEMO_RADIUS 150.0f
#define DEMO_COMPARE_EVERY 5 /* steps; 120 steps make 24 comparisons */
#define DEMO_CROWD 200       /* riders that are told of at most ... */
#define DEMO_CROWD_VIEW 60   /* ... so many vehicles, buses first */
#define DEMO_CROWD_MARGIN 25.0f
#define DEMO_CAMERA_VIEW 200   /* cities that a camera that zooms out is told of, the greatest first */
#define DEMO_HORNS 8           /* vehicles that sound their horn at each step; at most 8 */
#define DEMO_LISTENER 2000001u /* a player that sees the whole town, without its movement */

struct demo_city {
    uint64_t id;
    float x, y;
    uint32_t layers;     /* 1 small, 2 middling, 4 large */
    uint32_t people;     /* its priority */
    char population[12]; /* its payload */
};

/* What a player was told before the flush that is compared: where there is a margin or a limit, its view depends on that. */
struct demo_told {
    ARRAY(uint64_t) ids; /* ascending */
};

/* One that a limited view may hold. */
struct demo_candidate {
    uint64_t id;
    bool own; /* the rider's own vehicle comes first */
    uint32_t priority;
    double distance2;
    uint32_t index; /* of its row or city */
};

struct demo_best {
    ARRAY(struct demo_candidate) list; /* the best first */
    uint32_t most;
};

/* Which horns of the steps since the last comparison were in a view as of a flush, a bit each. */
struct demo_ear_view {
    uint64_t flush;
    uint8_t sees[DEMO_COMPARE_EVERY];
};

/* What a player of the town heard since the last comparison. */
struct demo_ear {
    ARRAY(struct demo_ear_view) views; /* after each of its deltas; the first is that of the last comparison */
    uint8_t heard[DEMO_COMPARE_EVERY];
    uint64_t flush[DEMO_COMPARE_EVERY]; /* with which it heard them */
    bool lost;                          /* some were lost, and the daemon said so */
    uint64_t n, last;                   /* heard so far; number of the last one */
};

struct demo_player {
    uint64_t id, vehicle;
    bool include_self, crowd;
    struct demo_told told; /* if crowd */
    struct demo_ear ear;
};

struct demo_camera {
    uint64_t id;
    uint32_t mask; /* 0: all */
    float min[3], max[3];
    double x, y, to_x, to_y; /* centre, and where it is heading */
    double zoom, zoom_speed; /* phase */
    bool zooms_out;          /* as far as a continent, with max_view */
    struct demo_told told;   /* if so */
};

struct demo {
    const char *aoid, *data;
    uint32_t index;
    struct daemon daemon;
    struct libaoi *conn[DEMO_CONNS];
    char fault[400]; /* the first thing that went wrong, "": nothing */

    struct trace town;
    struct trace_diff diff;
    ARRAY(struct demo_city) cities;
    struct demo_player players[DEMO_PLAYERS];
    struct demo_camera cameras[DEMO_CAMERAS];
    uint64_t random;

    uint32_t step;         /* of the trace, now in the town */
    uint32_t stamp;        /* its time, microseconds modulo 2^32: the extra word of every vehicle */
    bool pending;          /* a commanded flush left work */
    ARRAY(uint64_t) horns; /* vehicles, DEMO_HORNS a step, in the order in which they sound them */
    uint32_t horn_first;   /* the first step since the last comparison */
    struct demo_ear listener;
    uint64_t horns_sounded, horns_heard;
    struct demo_best best; /* scratch */
    uint64_t moves, refused, changes_of_vehicle;
    struct histogram latency; /* of updates in the town, from the move to the delta */
    uint32_t comparisons;
    uint64_t views_compared, views_full, items_compared, mismatches; /* full: as many as max_view lets in */
};

extern volatile sig_atomic_t demo_stop; /* a signal asks to end */

uint64_t demo_random(struct demo *d, uint64_t below);
/* The connection that a player or camera lives on. */
struct libaoi *demo_eye(struct demo *d, uint64_t player);
/* Records the first fault; returns -1. */
__attribute__((format(printf, 2, 3))) int demo_fault(struct demo *d, const char *format, ...);

/* All of them: 0, or -1 with d->fault. */
int demo_pump(struct demo *d, uint64_t until_us); /* handles what comes on every connection until then */
int demo_settle(struct demo *d, int timeout_ms);  /* sends everything and waits until everything is answered */
int demo_connect(struct demo *d);
int demo_load(struct demo *d);                   /* cities, the first step of the town, players and cameras */
int demo_advance(struct demo *d, uint32_t step); /* one step of the trace, riders that must change, cameras */
int demo_freeze(struct demo *d);                 /* the town flushes by command from now on, and nobody is owed anything */
int demo_compare(struct demo *d); /* flushes both spaces, compares every view with brute force, and lets the town flush by its timer again */
void demo_mismatch(struct demo *d, uint64_t space, uint64_t player, uint64_t id, const char *what);

/* Casts. */
uint64_t demo_horn(const struct demo *d, uint32_t step, uint32_t k); /* the vehicle */
void demo_sound_horns(struct demo *d, uint32_t step);
void demo_on_view(struct demo *d, const struct libaoi_delta *delta); /* a delta of the town has been applied */
void demo_on_message(void *ctx, const struct libaoi_delta *delta, uint64_t from, const void *message, uint32_t len);
void demo_compare_casts(struct demo *d); /* when every delta has come */
void demo_clear_casts(struct demo *d);

/* Limited views. */
void demo_remember(struct demo_told *told, const struct libaoi_view *view);
bool demo_is_bus(uint64_t vehicle); /* they have priority 1, the others 0 */
bool demo_was_told(const struct demo_told *told, uint64_t id);
void demo_clear_told(struct demo *d);
void demo_best_clear(struct demo_best *best, uint32_t most);
void demo_best_add(struct demo_best *best, struct demo_candidate c, bool told);

#endif
