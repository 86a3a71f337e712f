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

struct demo_city {
    uint64_t id;
    float x, y;
    uint32_t layers;     /* 1 small, 2 middling, 4 large */
    char population[12]; /* its payload */
};

struct demo_player {
    uint64_t id, vehicle;
    bool include_self;
};

struct demo_camera {
    uint64_t id;
    uint32_t mask; /* 0: all */
    float min[3], max[3];
    double x, y, to_x, to_y; /* centre, and where it is heading */
    double zoom, zoom_speed; /* phase */
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

    uint32_t step;  /* of the trace, now in the town */
    uint32_t stamp; /* its time, microseconds modulo 2^32: the extra word of every vehicle */
    bool pending;   /* a commanded flush left work */
    uint64_t moves, refused, changes_of_vehicle;
    struct histogram latency; /* of updates in the town, from the move to the delta */
    uint32_t comparisons;
    uint64_t views_compared, items_compared, mismatches;
};

extern volatile sig_atomic_t demo_stop; /* a signal asks to end */

uint64_t demo_now_us(void);
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
int demo_compare(struct demo *d);                /* flushes both spaces and compares every view with brute force */

#endif
