/* proxy.h: a bad network between clients and the daemon: it delays, crumbles, stalls, cuts, resets and forgets. One thread serves all links. */
#ifndef AOI_TESTS_E2E_PROXY_H
#define AOI_TESTS_E2E_PROXY_H

#include <stdbool.h>
#include <stdint.h>

enum proxy_fault {
    PROXY_NONE,
    PROXY_RESET,      /* both ends get an RST */
    PROXY_CLOSE,      /* both ends get a FIN, and what was on its way is dropped */
    PROXY_HALF_UP,    /* the daemon gets a FIN, and may still say something */
    PROXY_HALF_DOWN,  /* the client gets a FIN, and what it still says is passed on */
    PROXY_VANISH,     /* the client gets an RST; to the daemon the link looks alive, until its socket closes late */
    PROXY_STALL,      /* nothing passes until proxy_calm() or the next link */
    PROXY_STALL_DOWN, /* likewise, but what the client says passes */
    PROXY_FAULTS
};

struct proxy;

/* Listens on a loopback port, and makes a link to 127.0.0.1:port for each connection. One link at a time is the current one: the last that was made. */
struct proxy *proxy_new(uint16_t port);
void proxy_free(struct proxy *proxy);
uint16_t proxy_port(const struct proxy *proxy);

/* The current link, or if there is none the next, suffers the fault once so many bytes have passed from now on, upwards or downwards; until then at most `chunk` bytes pass at
 * once, with a pause of pause_us between them. */
void proxy_plan(struct proxy *proxy, enum proxy_fault fault, bool upwards, uint64_t after_bytes, uint32_t chunk, uint32_t pause_us);
/* No fault, no pauses: everything passes, on all links. */
void proxy_calm(struct proxy *proxy);
/* Faults that have struck so far. */
uint64_t proxy_struck(struct proxy *proxy);

#endif
