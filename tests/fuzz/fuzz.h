/* fuzz.h: the entry point of libFuzzer, and bytes as a source of choices. A fuzzed property that does not hold aborts. */
#ifndef AOI_TESTS_FUZZ_H
#define AOI_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* One input; defined by each fuzz_NAME.c, called by libFuzzer, or by replay.c for each file of a folder. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is left of an input. Past its end there are zeros. */
struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

static inline uint8_t fuzz_byte(struct fuzz_input *in)
{
    if (in->left == 0) return 0;
    in->left--;
    return *in->at++;
}

/* 0 .. n - 1; n at most 256. */
static inline uint32_t fuzz_below(struct fuzz_input *in, uint32_t n)
{
    return fuzz_byte(in) % n;
}

/* A length in two bytes, and no more than what is left behind them. */
static inline size_t fuzz_length(struct fuzz_input *in)
{
    size_t len = fuzz_byte(in);
    len += (size_t)fuzz_byte(in) << 8;
    return len < in->left ? len : in->left;
}

#endif
