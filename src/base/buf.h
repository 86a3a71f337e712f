/* buf.h: a growing byte buffer with a read end: bytes are appended behind and taken away in front. */
#ifndef AOI_BASE_BUF_H
#define AOI_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

/* Valid bytes: at[start .. end). */
struct buf {
    uint8_t *at;
    size_t start, end, cap;
};

void buf_clear(struct buf *b); /* frees; a zeroed struct is an empty buffer */
void buf_append(struct buf *b, const void *p, size_t bytes);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_consume(struct buf *b, size_t bytes); /* takes bytes from the front; an empty buffer starts again at 0 */
void buf_shrink(struct buf *b, size_t keep);   /* an empty buffer with a capacity over keep gives its memory back */
uint8_t *buf__grow(struct buf *b, size_t bytes);
/* Room behind the end for so many; set b->end yourself. */
static inline uint8_t *buf_reserve(struct buf *b, size_t bytes)
{
    return b->at != NULL && b->cap - b->end >= bytes ? b->at + b->end : buf__grow(b, bytes);
}
static inline size_t buf_len(const struct buf *b)
{
    return b->end - b->start;
}
static inline const uint8_t *buf_data(const struct buf *b)
{
    return b->at == NULL ? NULL : b->at + b->start;
}

#endif
