/* budget.h: max_memory_bytes: what the process holds, reckoned from one look at the system to the next. */
#ifndef AOI_SERVER_BUDGET_H
#define AOI_SERVER_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* Of unsent bytes a connection may have so many though the memory is full: what it is told must get through. */
#define BUDGET_UNSENT_BYTES 65536u

/* A look asks the system how many pages the process has: 5 us. They may be more than what it uses; but to ask the allocator what it has given out is to walk its free lists: 150 ms where there
 * are 500,000 pieces. So it is searched only where the limit seems to be reached, and at most for 1 % of the time. In between, what is admitted is added, by estimates. */
struct budget {
    uint64_t limit_bytes;   /* 0: none; then nothing is looked at but by budget_held() */
    uint64_t charged_bytes; /* admitted so far, by estimates */
    uint64_t buffers_bytes; /* of connections now, counted by whoever has them */
    uint64_t denied;        /* how often the answer was no */

    uint64_t resident_bytes, looked_ns; /* by the last look, and when it was */
    int64_t looked_at;                  /* charged and buffers' bytes then */

    uint64_t allocated_bytes;         /* by the last search */
    uint64_t searched_resident_bytes; /* resident then */
    int64_t searched_at;              /* charged and buffers' bytes then */
    uint64_t search_ns;               /* when there may be another */
};

/* budget NULL: no limit. */

/* Buffers of a connection that held *counted bytes hold so many now. */
void budget_count(struct budget *budget, uint64_t *counted, uint64_t bytes);

/* Admits something that will hold about so many bytes; false: it would be too much. */
bool budget_admit(struct budget *budget, uint64_t bytes);
/* Whether next to nothing would be admitted. */
bool budget_full(struct budget *budget);
/* What counts against the limit now. Where that is far off, or there is none, with what the allocator keeps of what was freed. */
uint64_t budget_held(struct budget *budget);
/* Something was made that was not refused: views. */
void budget_charge(struct budget *budget, uint64_t bytes);

#endif
