/* random.h: the random numbers of tests, to be replayed from a printed seed. */
#ifndef AOI_TESTS_RANDOM_H
#define AOI_TESTS_RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct random {
    uint64_t state;
};

/* From the environment variable AOI_SEED, else from the clock; prints it. */
static inline struct random random_start(const char *test)
{
    const char *given = getenv("AOI_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec;
    printf("%s: AOI_SEED=%llu\n", test, (unsigned long long)seed);
    fflush(stdout);
    return (struct random){seed};
}

static inline uint64_t random_u64(struct random *r)
{
    uint64_t x = r->state += 0x9e3779b97f4a7c15u; /* splitmix64, Steele et al. 2014 */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* 0 .. n-1 */
static inline uint64_t random_below(struct random *r, uint64_t n)
{
    return random_u64(r) % n;
}

#endif
