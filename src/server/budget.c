/* budget.c: max_memory_bytes: what the process holds, reckoned from one look at the system to the next. */
#include "server/budget.h"

#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
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

#define LOOK_NS (uint64_t)10000000 /* a look is so long good for: buffers and views grow unasked */
#define LOOK_PARTS 64              /* and until so small a part of the limit was admitted */
#define HURRY_NS (uint64_t)1000000 /* where the limit seems to be reached, only so long */
#define SEARCH_SHARE 100           /* a search of the allocator is followed by so many times as long without one */
#define LEAST_BYTES 65536

#ifdef SANITIZED /* which has an allocator of its own, that keeps back what is freed, but knows what is not */
static uint64_t allocated(void)
{
    return __sanitizer_get_current_allocated_bytes();
}

static uint64_t resident(void)
{
    return allocated();
}
#else
static uint64_t allocated(void)
{
    struct mallinfo2 all = mallinfo2();
    return all.uordblks + all.hblkhd;
}

/* Pages of its own, in bytes. */
static uint64_t resident(void)
{
    unsigned long long all, shared;
    FILE *file = fopen("/proc/self/statm", "re");
    bool known = file != NULL && fscanf(file, "%*u %llu %llu", &all, &shared) == 2;
    if (file != NULL) fclose(file);
    return known ? (all - shared) * (uint64_t)sysconf(_SC_PAGESIZE) : allocated();
}
#endif

/* What was admitted and what buffers have grown by, in all. */
static int64_t grown(const struct budget *budget)
{
    return (int64_t)(budget->charged_bytes + budget->buffers_bytes);
}

static void look(struct budget *budget, uint64_t now_ns)
{
    budget->resident_bytes = resident();
    budget->looked_ns = now_ns;
    budget->looked_at = grown(budget);
}

static int64_t pages(const struct budget *budget)
{
    return (int64_t)budget->resident_bytes + grown(budget) - budget->looked_at;
}

static bool pages_fit(const struct budget *budget, uint64_t bytes)
{
    return pages(budget) + (int64_t)bytes <= (int64_t)budget->limit_bytes;
}

/* Pages may be held of which the allocator has taken back the most. */
static int64_t pieces(struct budget *budget, uint64_t now_ns)
{
    if (now_ns >= budget->search_ns) {
        budget->allocated_bytes = allocated();
        budget->searched_at = grown(budget);
        budget->searched_resident_bytes = budget->resident_bytes;
        budget->search_ns = uv_hrtime() + SEARCH_SHARE * (uv_hrtime() - now_ns);
    }
    int64_t since = grown(budget) - budget->searched_at, more = (int64_t)(budget->resident_bytes - budget->searched_resident_bytes);
    return (int64_t)budget->allocated_bytes + (since > more ? since : more);
}

static bool has_room(struct budget *budget, uint64_t bytes)
{
    if (budget == NULL || budget->limit_bytes == 0) return true;
    uint64_t now_ns = uv_hrtime();
    bool stale = now_ns >= budget->looked_ns + LOOK_NS || grown(budget) - budget->looked_at > (int64_t)(budget->limit_bytes / LOOK_PARTS);
    if (stale) look(budget, now_ns);
    if (pages_fit(budget, bytes)) return true;
    if (now_ns >= budget->looked_ns + HURRY_NS) look(budget, now_ns);
    return pages_fit(budget, bytes) || pieces(budget, now_ns) + (int64_t)bytes <= (int64_t)budget->limit_bytes;
}

uint64_t budget_held(struct budget *budget)
{
    uint64_t now_ns = uv_hrtime();
    if (now_ns >= budget->looked_ns + LOOK_NS) look(budget, now_ns);
    int64_t held = pages(budget), limit = (int64_t)budget->limit_bytes;
    if (limit > 0 && held > limit / 2) {
        int64_t given = pieces(budget, now_ns);
        if (given < held) held = given;
    }
    return held > 0 ? (uint64_t)held : 0;
}

static bool ask(struct budget *budget, uint64_t bytes)
{
    bool room = has_room(budget, bytes);
    if (!room) budget->denied++;
    return room;
}

bool budget_admit(struct budget *budget, uint64_t bytes)
{
    if (!ask(budget, bytes)) return false;
    budget_charge(budget, bytes);
    return true;
}

bool budget_full(struct budget *budget)
{
    return !ask(budget, LEAST_BYTES);
}

void budget_count(struct budget *budget, uint64_t *counted, uint64_t bytes)
{
    if (budget != NULL) budget->buffers_bytes += bytes - *counted;
    *counted = bytes;
}

void budget_charge(struct budget *budget, uint64_t bytes)
{
    if (budget != NULL) budget->charged_bytes += bytes;
}
