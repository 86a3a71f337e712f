/* bytes.h: numbers in bytes, little-endian: put into a growing buffer, and taken out of bytes that somebody may have tampered with. */
#ifndef AOI_BASE_BYTES_H
#define AOI_BASE_BYTES_H

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"

static inline void bytes_put(struct buf *out, uint64_t value, size_t bytes)
{
    uint8_t *at = buf_reserve(out, bytes);
    for (size_t i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> (8 * i));
    out->end += bytes;
}

static inline void bytes_put_float(struct buf *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bytes_put(out, bits, sizeof bits);
}

static inline void bytes_put_double(struct buf *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bytes_put(out, bits, sizeof bits);
}

/* What is left to be read. Once something is not there, or not what it must be, `fault` says so, nothing is left, and everything that is taken is 0: one look at the end of a
 * record is enough. */
struct bytes_in {
    const uint8_t *at;
    size_t left;
    const char *fault; /* NULL: none. The first one stays */
};

static inline void bytes_fail(struct bytes_in *in, const char *fault)
{
    if (in->fault == NULL) in->fault = fault;
    in->left = 0;
}

/* So many raw bytes, or NULL. */
static inline const uint8_t *bytes_take_raw(struct bytes_in *in, size_t bytes)
{
    if (bytes > in->left) {
        bytes_fail(in, "it ends too early");
        return NULL;
    }
    const uint8_t *at = in->at;
    in->at += bytes;
    in->left -= bytes;
    return at;
}

/* bytes: 8 at most. */
static inline uint64_t bytes_take(struct bytes_in *in, size_t bytes)
{
    const uint8_t *at = bytes_take_raw(in, bytes);
    uint64_t value = 0;
    for (size_t i = 0; at != NULL && i < bytes; i++) value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static inline float bytes_take_float(struct bytes_in *in)
{
    uint32_t bits = (uint32_t)bytes_take(in, sizeof bits);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double bytes_take_double(struct bytes_in *in)
{
    uint64_t bits = bytes_take(in, sizeof bits);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline bool bytes_take_flag(struct bytes_in *in)
{
    uint64_t flag = bytes_take(in, 1);
    if (flag > 1) bytes_fail(in, "a flag is neither 0 nor 1");
    return flag == 1;
}

/* A count of records that take `least` bytes each at least: never more than what is left can hold. */
static inline uint32_t bytes_take_count(struct bytes_in *in, size_t least)
{
    uint32_t n = (uint32_t)bytes_take(in, sizeof n);
    if (n <= in->left / least) return n;
    bytes_fail(in, "a count is more than there are bytes for");
    return 0;
}

#endif
