/* clock.h: the time, for what measures and what keeps a pace. */
#ifndef AOI_TOOLS_CLOCK_H
#define AOI_TOOLS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_us_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline uint64_t clock_us(void) /* never goes back */
{
    return clock_us_of(CLOCK_MONOTONIC);
}

static inline double clock_seconds(void) /* likewise */
{
    return (double)clock_us() / 1e6;
}

static inline uint64_t clock_wall_us(void) /* since 1970 */
{
    return clock_us_of(CLOCK_REALTIME);
}

#endif
