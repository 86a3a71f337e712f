/* check.h: assertions that stay on, and allocation that cannot fail quietly. */
#ifndef AOI_BASE_CHECK_H
#define AOI_BASE_CHECK_H

#include <stddef.h>

/* For what only our own bug can break: prints file, line and the condition, and aborts. Always compiled in; not for the innermost loops. */
#define CHECK(cond) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, #cond))
_Noreturn void check_failed(const char *file, int line, const char *what);

/* For the innermost loops: compiled in only with -DAOI_DEBUG (the sanitizer builds). */
#ifdef AOI_DEBUG
#define DCHECK(cond) CHECK(cond)
#else
#define DCHECK(cond) ((void)0)
#endif

/* malloc, calloc, realloc that abort with a message when there is no memory. Sizes that come from outside are capped by the caller first. Free with free(). */
void *mem_alloc(size_t bytes);
void *mem_zalloc(size_t bytes);
void *mem_realloc(void *p, size_t bytes);
#define MEM_LINE 64 /* bytes of a cache line */
/* Of a function that does nothing but __builtin_prefetch(): gcc takes it for one without effect, and leaves out calls that are not inlined before it finds that. */
#define FETCHING static inline __attribute__((always_inline))
/* Reallocates *raw, which alone is to be freed, so that `bytes` begin at a line, and returns that place; of those that began at `at` (NULL: none did) `keep` are kept. */
void *mem_realign(void **raw, void *at, size_t keep, size_t bytes);
/* How often the three above were called since the start: benchmarks assert that a warm flush does not allocate. */
unsigned long long mem_alloc_count(void);

#endif
