/* scan.c: which entities of a cell lie in a box: the innermost loop, in plain C and in AVX2, chosen at run time. */
#include "core/scan.h"

/* Without branches: every slot is written, and kept if it is inside. */
static uint32_t scan_2d(const float *columns, const uint32_t *slot, uint32_t cap, uint32_t n, const float lo[3], const float hi[3], uint32_t *out)
{
    const float *x = columns, *y = x + cap;
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        out[k] = slot[i];
        k += (uint32_t)((lo[0] <= x[i]) & (x[i] <= hi[0]) & (lo[1] <= y[i]) & (y[i] <= hi[1]));
    }
    return k;
}

static uint32_t scan_3d(const float *columns, const uint32_t *slot, uint32_t cap, uint32_t n, const float lo[3], const float hi[3], uint32_t *out)
{
    const float *x = columns, *y = x + cap, *z = y + cap;
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        out[k] = slot[i];
        k += (uint32_t)((lo[0] <= x[i]) & (x[i] <= hi[0]) & (lo[1] <= y[i]) & (y[i] <= hi[1]) & (lo[2] <= z[i]) & (z[i] <= hi[2]));
    }
    return k;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* aoi__compress[m]: the indices of the bits set in m, a byte each, lowest first. */
const uint64_t aoi__compress[256] = {
    0x0,         0x0,           0x1,           0x100,           0x2,           0x200,           0x201,           0x20100,
    0x3,         0x300,         0x301,         0x30100,         0x302,         0x30200,         0x30201,         0x3020100,
    0x4,         0x400,         0x401,         0x40100,         0x402,         0x40200,         0x40201,         0x4020100,
    0x403,       0x40300,       0x40301,       0x4030100,       0x40302,       0x4030200,       0x4030201,       0x403020100,
    0x5,         0x500,         0x501,         0x50100,         0x502,         0x50200,         0x50201,         0x5020100,
    0x503,       0x50300,       0x50301,       0x5030100,       0x50302,       0x5030200,       0x5030201,       0x503020100,
    0x504,       0x50400,       0x50401,       0x5040100,       0x50402,       0x5040200,       0x5040201,       0x504020100,
    0x50403,     0x5040300,     0x5040301,     0x504030100,     0x5040302,     0x504030200,     0x504030201,     0x50403020100,
    0x6,         0x600,         0x601,         0x60100,         0x602,         0x60200,         0x60201,         0x6020100,
    0x603,       0x60300,       0x60301,       0x6030100,       0x60302,       0x6030200,       0x6030201,       0x603020100,
    0x604,       0x60400,       0x60401,       0x6040100,       0x60402,       0x6040200,       0x6040201,       0x604020100,
    0x60403,     0x6040300,     0x6040301,     0x604030100,     0x6040302,     0x604030200,     0x604030201,     0x60403020100,
    0x605,       0x60500,       0x60501,       0x6050100,       0x60502,       0x6050200,       0x6050201,       0x605020100,
    0x60503,     0x6050300,     0x6050301,     0x605030100,     0x6050302,     0x605030200,     0x605030201,     0x60503020100,
    0x60504,     0x6050400,     0x6050401,     0x605040100,     0x6050402,     0x605040200,     0x605040201,     0x60504020100,
    0x6050403,   0x605040300,   0x605040301,   0x60504030100,   0x605040302,   0x60504030200,   0x60504030201,   0x6050403020100,
    0x7,         0x700,         0x701,         0x70100,         0x702,         0x70200,         0x70201,         0x7020100,
    0x703,       0x70300,       0x70301,       0x7030100,       0x70302,       0x7030200,       0x7030201,       0x703020100,
    0x704,       0x70400,       0x70401,       0x7040100,       0x70402,       0x7040200,       0x7040201,       0x704020100,
    0x70403,     0x7040300,     0x7040301,     0x704030100,     0x7040302,     0x704030200,     0x704030201,     0x70403020100,
    0x705,       0x70500,       0x70501,       0x7050100,       0x70502,       0x7050200,       0x7050201,       0x705020100,
    0x70503,     0x7050300,     0x7050301,     0x705030100,     0x7050302,     0x705030200,     0x705030201,     0x70503020100,
    0x70504,     0x7050400,     0x7050401,     0x705040100,     0x7050402,     0x705040200,     0x705040201,     0x70504020100,
    0x7050403,   0x705040300,   0x705040301,   0x70504030100,   0x705040302,   0x70504030200,   0x70504030201,   0x7050403020100,
    0x706,       0x70600,       0x70601,       0x7060100,       0x70602,       0x7060200,       0x7060201,       0x706020100,
    0x70603,     0x7060300,     0x7060301,     0x706030100,     0x7060302,     0x706030200,     0x706030201,     0x70603020100,
    0x70604,     0x7060400,     0x7060401,     0x706040100,     0x7060402,     0x706040200,     0x706040201,     0x70604020100,
    0x7060403,   0x706040300,   0x706040301,   0x70604030100,   0x706040302,   0x70604030200,   0x70604030201,   0x7060403020100,
    0x70605,     0x7060500,     0x7060501,     0x706050100,     0x7060502,     0x706050200,     0x706050201,     0x70605020100,
    0x7060503,   0x706050300,   0x706050301,   0x70605030100,   0x706050302,   0x70605030200,   0x70605030201,   0x7060503020100,
    0x7060504,   0x706050400,   0x706050401,   0x70605040100,   0x706050402,   0x70605040200,   0x70605040201,   0x7060504020100,
    0x706050403, 0x70605040300, 0x70605040301, 0x7060504030100, 0x70605040302, 0x7060504030200, 0x7060504030201, 0x706050403020100,
};

/* Eight at a time; reads up to 7 elements past n, which are within the capacity, and writes as many past what it returns. */
#define TARGET __attribute__((target("avx2,popcnt")))

TARGET static inline __m256 within(const float *v, float lo, float hi)
{
    __m256 p = _mm256_loadu_ps(v);
    return _mm256_and_ps(_mm256_cmp_ps(p, _mm256_set1_ps(lo), _CMP_GE_OQ), _mm256_cmp_ps(p, _mm256_set1_ps(hi), _CMP_LE_OQ));
}

/* Writes those of eight slots of which the lane is set and below left; returns how many. */
TARGET static inline uint32_t keep(__m256 inside, const uint32_t *slot, uint32_t left, uint32_t *out)
{
    uint32_t m = (uint32_t)_mm256_movemask_ps(inside);
    if (left < 8) m &= (1u << left) - 1;
    __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)&aoi__compress[m]));
    __m256i eight = _mm256_loadu_si256((const __m256i *)(const void *)slot);
    _mm256_storeu_si256((__m256i *)(void *)out, _mm256_permutevar8x32_epi32(eight, order));
    return (uint32_t)__builtin_popcount(m);
}

TARGET static uint32_t scan_2d_avx2(const float *columns, const uint32_t *slot, uint32_t cap, uint32_t n, const float lo[3], const float hi[3],
                                    uint32_t *out)
{
    const float *x = columns, *y = x + cap;
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i += 8) k += keep(_mm256_and_ps(within(x + i, lo[0], hi[0]), within(y + i, lo[1], hi[1])), slot + i, n - i, out + k);
    return k;
}

TARGET static uint32_t scan_3d_avx2(const float *columns, const uint32_t *slot, uint32_t cap, uint32_t n, const float lo[3], const float hi[3],
                                    uint32_t *out)
{
    const float *x = columns, *y = x + cap, *z = y + cap;
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i += 8) {
        __m256 flat = _mm256_and_ps(within(x + i, lo[0], hi[0]), within(y + i, lo[1], hi[1]));
        k += keep(_mm256_and_ps(flat, within(z + i, lo[2], hi[2])), slot + i, n - i, out + k);
    }
    return k;
}
#endif

aoi__scan_fn aoi__scan_pick(uint32_t dims)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt")) return dims == 2 ? scan_2d_avx2 : scan_3d_avx2;
#endif
    return dims == 2 ? scan_2d : scan_3d;
}
