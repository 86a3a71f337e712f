/* budget.c: max_memory_bytes: what the process holds, reckoned from one look at the allocator to the next. */
#include "server/budget.h"

#include <malloc.h>
#include <stddef.h>
#include <uv.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
size_t __sanitizer_get_current_allocated_bytes(void); /* not every compiler has its header */
#endif

#define LOOK_SHARE 100                /* a look is followed by so many times as long without one */
#define STALE_NS (uint64_t)1000000000 /* and is taken so long after that in any case: buffers and views grow unasked */
#define LEAST_BYTES 65536

static uint64_t allocated(void)
{
#ifdef SANITIZED
    return __sanitizer_get_current_allocated_bytes(); /* which has an allocator of its own */
#else
    struct mallinfo2 all = mallinfo2();
    return all.uordblks + all.hblkhd;
#endif
}

static bool fits(const struct budget *budget, uint64_t bytes)
{
    int64_t grown = (int64_t)(budget->buffers_bytes - budget->buffers_seen);
    return budget->next_ns != 0 && (int64_t)(budget->seen_bytes + budget->charged_bytes + bytes) + grown <= (int64_t)budget->limit_bytes;
}

static bool has_room(struct budget *budget, uint64_t bytes)
{
    if (budget == NULL || budget->limit_bytes == 0) return true;
    uint64_t now_ns = uv_hrtime();
    if (now_ns >= budget->next_ns + (fits(budget, bytes) ? STALE_NS : 0)) {
        budget->seen_bytes = allocated();
        budget->charged_bytes = 0;
        budget->buffers_seen = budget->buffers_bytes;
        budget->next_ns = uv_hrtime() + LOOK_SHARE * (uv_hrtime() - now_ns);
    }
    return fits(budget, bytes);
}

bool budget_admit(struct budget *budget, uint64_t bytes)
{
    if (!has_room(budget, bytes)) return false;
    budget_charge(budget, bytes);
    return true;
}

bool budget_full(struct budget *budget)
{
    return !has_room(budget, LEAST_BYTES);
}

void budget_count(struct budget *budget, uint64_t *counted, uint64_t bytes)
{
    budget->buffers_bytes += bytes - *counted;
    *counted = bytes;
}

void budget_charge(struct budget *budget, uint64_t bytes)
{
    if (budget != NULL) budget->charged_bytes += bytes;
}
