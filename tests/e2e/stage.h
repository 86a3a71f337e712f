/* stage.h: a space, one who moves things in it and one who looks, for tests that are told as cases on both indexes. */
#ifndef AOI_TESTS_E2E_STAGE_H
#define AOI_TESTS_E2E_STAGE_H

#include "harness.h"

#define SPACE 1
#define P 1
#define U 100

extern struct rig rig;
extern struct client *mover, *eye; /* who flushes, and who is told; on two connections unless a test says otherwise */

/* The daemon with these options (or NULL) and two clients, in whose space unit U stands at (0,0). */
void stage_start(const char *const *options, uint32_t index, float radius);
/* The same with radius 10, and the eye's player P subscribed to U. */
void stage_start_watched(const char *const *options, uint32_t index);
/* Flushes until no work is left; P must have been told this. */
void told_after_flush(const char *text);

/* Defines a test that runs on each index in turn; begin(index), of the test's own file, starts `rig` before it. */
#define CASE(name)                           \
    static void name##_body(void);           \
    static void name(void **state)           \
    {                                        \
        (void)state;                         \
        on_both_indexes(begin, name##_body); \
    }                                        \
    static void name##_body(void)
void on_both_indexes(void (*begin)(uint32_t index), void (*run)(void));

#endif
