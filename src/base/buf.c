/* buf.c: a growing byte buffer with a read end. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void buf_clear(struct buf *b)
{
    free(b->at);
    *b = (struct buf){0};
}

uint8_t *buf__grow(struct buf *b, size_t bytes)
{
    size_t len = buf_len(b);
    CHECK(bytes <= SIZE_MAX / 4 && len <= SIZE_MAX / 4);
    if (b->at != NULL && b->start >= len && b->cap - len >= bytes) {
        memcpy(b->at, b->at + b->start, len); /* moves no more than was consumed: O(1) a byte over time */
    } else {
        size_t cap = b->cap + b->cap / 2;
        if (cap < len + bytes) cap = len + bytes;
        if (cap < 256) cap = 256;
        uint8_t *at = mem_alloc(cap);
        if (len > 0) memcpy(at, b->at + b->start, len);
        free(b->at);
        b->at = at;
        b->cap = cap;
    }
    b->start = 0;
    b->end = len;
    return b->at + len;
}

void buf_append(struct buf *b, const void *p, size_t bytes)
{
    if (bytes == 0) return;
    memcpy(buf_reserve(b, bytes), p, bytes);
    b->end += bytes;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    CHECK(n >= 0);
    vsnprintf((char *)buf_reserve(b, (size_t)n + 1), (size_t)n + 1, fmt, again); /* the 0 behind it is not counted */
    b->end += (size_t)n;
    va_end(again);
    va_end(args);
}

void buf_consume(struct buf *b, size_t bytes)
{
    CHECK(bytes <= buf_len(b));
    b->start += bytes;
    if (b->start == b->end) b->start = b->end = 0;
}

void buf_shrink(struct buf *b, size_t keep)
{
    if (buf_len(b) == 0 && b->cap > keep) buf_clear(b);
}
