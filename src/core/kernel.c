/* kernel.c: see kernel.h. What a loop does stands once, in plain C; AVX2 does the same eight at a time. */
#include "core/kernel.h"

#include <math.h>

#include "core/space.h"

static inline uint64_t want_rows(const struct aoi__sieve *s, const struct aoi__page *page, uint64_t told)
{
    return page->window == s->window && (page->all & s->mask) ? told & page->moved : 0;
}

/* ------------------------------------------------------------------------------------------------------------- plain C */

static void put_row(const struct aoi__sieve *s, const struct aoi__page *page, uint32_t k, struct aoi_rows *rows)
{
    size_t n = rows->n++;
    rows->id[n] = aoi__page_ids(page, s->dims)[k];
    rows->x[n] = page->x[k];
    rows->y[n] = page->x[page->cap + k];
    if (s->dims == 3) rows->z[n] = page->x[2 * page->cap + k];
    if (s->extra) rows->extra[n] = aoi__page_extra(page, s->dims)[k];
}

static void plain_rows(const struct aoi__sieve *s, const uint64_t *want, struct aoi_rows *rows)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint64_t m = want[i]; m != 0; m &= m - 1) put_row(s, &s->pool[s->page[i]], (uint32_t)__builtin_ctzll(m), rows);
}

static uint64_t plain_inside(const struct aoi__sieve *s, const struct aoi__page *page)
{
    uint64_t inside = 0;
    for (uint32_t k = 0; k < page->n; k++) {
        bool in = true;
        for (uint32_t a = 0; a < s->dims; a++) {
            float v = page->x[a * page->cap + k];
            in &= s->lo[a] <= v && v <= s->hi[a];
        }
        inside |= (uint64_t)in << k;
    }
    return inside & page->used;
}

static void plain_box(const struct aoi__sieve *s, uint64_t *inside)
{
    for (uint32_t i = 0; i < s->n; i++) inside[i] = plain_inside(s, &s->pool[s->page[i]]);
}

static void plain_box_rows(const struct aoi__sieve *s, const uint64_t *told, uint64_t *inside, struct aoi_rows *rows)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const struct aoi__page *page = &s->pool[s->page[i]];
        inside[i] = plain_inside(s, page);
        for (uint64_t m = inside[i] & want_rows(s, page, told[i]); m != 0; m &= m - 1) put_row(s, page, (uint32_t)__builtin_ctzll(m), rows);
    }
}

static double distance2(const struct aoi__sieve *s, const struct aoi__page *page, uint32_t k)
{
    double dx = (double)page->x[k] - s->center[0], dy = (double)page->x[page->cap + k] - s->center[1], d = dx * dx + dy * dy;
    if (s->dims == 2) return d;
    double dz = (double)page->x[2 * page->cap + k] - s->center[2];
    return d + dz * dz;
}

static uint64_t within(const struct aoi__sieve *s, const struct aoi__page *page, double distance, uint64_t want)
{
    uint64_t in = 0;
    for (uint64_t m = want; m != 0; m &= m - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(m);
        in |= (uint64_t)(distance2(s, page, k) <= distance * distance) << k;
    }
    return in;
}

static void plain_sphere(const struct aoi__sieve *s, uint64_t *inside)
{
    for (uint32_t i = 0; i < s->n; i++) inside[i] = within(s, &s->pool[s->page[i]], s->radius, inside[i]);
}

static void plain_near(const struct aoi__sieve *s, double distance, const uint64_t *want, uint64_t *near)
{
    for (uint32_t i = 0; i < s->n; i++) near[i] = within(s, &s->pool[s->page[i]], distance, want[i]);
}

static const struct aoi__kernels plain = {
    .box = plain_box, .box_rows = plain_box_rows, .sphere = plain_sphere, .near = plain_near, .rows = plain_rows};

/* ------------------------------------------------------------------------------------------------------------- AVX2 */

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,popcnt,bmi")))
#define INLINE static inline __attribute__((always_inline))

/* order_4[m]: the 32-bit halves of the 64-bit lanes set in m, lowest first, a byte each. */
static const uint64_t order_4[16] = {
    0x0,   0x100,     0x302,     0x3020100,     0x504,     0x5040100,     0x5040302,     0x50403020100,
    0x706, 0x7060100, 0x7060302, 0x70603020100, 0x7060504, 0x70605040100, 0x70605040302, 0x706050403020100,
};

TARGET INLINE __m256i order_of(uint64_t bytes)
{
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes));
}

/* Eight entities of a page from place k on, of which m are wanted, become rows. */
TARGET INLINE void put_rows(const struct aoi__sieve *s, const struct aoi__page *page, uint32_t k, uint32_t m, struct aoi_rows *rows)
{
    size_t n = rows->n, cap = page->cap;
    __m256i order = order_of(aoi__compress[m]);
    const uint64_t *id = aoi__page_ids(page, s->dims) + k;
    _mm256_storeu_ps(rows->x + n, _mm256_permutevar8x32_ps(_mm256_loadu_ps(page->x + k), order));
    _mm256_storeu_ps(rows->y + n, _mm256_permutevar8x32_ps(_mm256_loadu_ps(page->x + cap + k), order));
    if (s->dims == 3) _mm256_storeu_ps(rows->z + n, _mm256_permutevar8x32_ps(_mm256_loadu_ps(page->x + 2 * cap + k), order));
    if (s->extra) {
        __m256i extra = _mm256_loadu_si256((const __m256i *)(const void *)(aoi__page_extra(page, s->dims) + k));
        _mm256_storeu_si256((__m256i *)(void *)(rows->extra + n), _mm256_permutevar8x32_epi32(extra, order));
    }
    __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)id), high = _mm256_loadu_si256((const __m256i *)(const void *)(id + 4));
    _mm256_storeu_si256((__m256i *)(void *)(rows->id + n), _mm256_permutevar8x32_epi32(low, order_of(order_4[m & 15])));
    n += (uint32_t)__builtin_popcount(m & 15);
    _mm256_storeu_si256((__m256i *)(void *)(rows->id + n), _mm256_permutevar8x32_epi32(high, order_of(order_4[m >> 4])));
    rows->n = n + (uint32_t)__builtin_popcount(m >> 4);
}

TARGET INLINE __m256 between(const float *v, __m256 lo, __m256 hi)
{
    __m256 p = _mm256_loadu_ps(v);
    return _mm256_and_ps(_mm256_cmp_ps(p, lo, _CMP_GE_OQ), _mm256_cmp_ps(p, hi, _CMP_LE_OQ));
}

TARGET INLINE void avx2_pages(const struct aoi__sieve *s, const uint64_t *told, uint64_t *inside, struct aoi_rows *out, bool flat)
{
    __m256 lx = _mm256_set1_ps(s->lo[0]), hx = _mm256_set1_ps(s->hi[0]), ly = _mm256_set1_ps(s->lo[1]), hy = _mm256_set1_ps(s->hi[1]);
    __m256 lz = _mm256_set1_ps(s->lo[2]), hz = _mm256_set1_ps(s->hi[2]);
    struct aoi_rows rows = {0}; /* a copy, so that stores to the columns do not make the compiler reload it */
    if (told != NULL) rows = *out;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct aoi__page *page = &s->pool[s->page[i]];
        uint64_t in = 0, want = told != NULL ? want_rows(s, page, told[i]) : 0;
        size_t cap = page->cap;
        for (uint32_t k = 0; k < page->n; k += 8) {
            __m256 is = _mm256_and_ps(between(page->x + k, lx, hx), between(page->x + cap + k, ly, hy));
            if (!flat) is = _mm256_and_ps(is, between(page->x + 2 * cap + k, lz, hz));
            uint32_t m = (uint32_t)_mm256_movemask_ps(is);
            in |= (uint64_t)m << k;
            if (told != NULL) put_rows(s, page, k, m & (uint32_t)(want >> k & 255), &rows);
        }
        inside[i] = in;
    }
    if (told != NULL) out->n = rows.n;
}

TARGET static void avx2_box(const struct aoi__sieve *s, uint64_t *inside)
{
    if (s->dims == 2)
        avx2_pages(s, NULL, inside, NULL, true);
    else
        avx2_pages(s, NULL, inside, NULL, false);
}

TARGET static void avx2_box_rows(const struct aoi__sieve *s, const uint64_t *told, uint64_t *inside, struct aoi_rows *rows)
{
    struct aoi__sieve flat = *s;
    flat.dims = 2;
    flat.extra = false;
    if (s->dims == 2 && !s->extra)
        avx2_pages(&flat, told, inside, rows, true);
    else if (s->dims == 2)
        avx2_pages(s, told, inside, rows, true);
    else
        avx2_pages(s, told, inside, rows, false);
}

TARGET static void avx2_rows(const struct aoi__sieve *s, const uint64_t *want, struct aoi_rows *out)
{
    struct aoi_rows rows = *out;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct aoi__page *page = &s->pool[s->page[i]];
        for (uint64_t m = want[i], k = 0; m != 0; m >>= 8, k += 8)
            if (m & 255) put_rows(s, page, (uint32_t)k, (uint32_t)(m & 255), &rows);
    }
    out->n = rows.n;
}

/* Squared distances of four from place k on. */
TARGET INLINE __m256d four_distances(const struct aoi__sieve *s, const struct aoi__page *page, uint32_t k)
{
    __m256d dx = _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(page->x + k)), _mm256_set1_pd(s->center[0]));
    __m256d dy = _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(page->x + page->cap + k)), _mm256_set1_pd(s->center[1]));
    __m256d d = _mm256_add_pd(_mm256_mul_pd(dx, dx), _mm256_mul_pd(dy, dy));
    if (s->dims == 2) return d;
    __m256d dz = _mm256_sub_pd(_mm256_cvtps_pd(_mm_loadu_ps(page->x + 2 * page->cap + k)), _mm256_set1_pd(s->center[2]));
    return _mm256_add_pd(d, _mm256_mul_pd(dz, dz));
}

TARGET INLINE uint64_t avx2_within(const struct aoi__sieve *s, const struct aoi__page *page, double distance, uint64_t want)
{
    __m256d most = _mm256_set1_pd(distance * distance);
    uint64_t in = 0;
    for (uint32_t k = 0; k < page->n && want >> k != 0; k += 4)
        in |= (uint64_t)(uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(four_distances(s, page, k), most, _CMP_LE_OQ)) << k;
    return in & want;
}

TARGET static void avx2_sphere(const struct aoi__sieve *s, uint64_t *inside)
{
    for (uint32_t i = 0; i < s->n; i++) inside[i] = avx2_within(s, &s->pool[s->page[i]], s->radius, inside[i]);
}

TARGET static void avx2_near(const struct aoi__sieve *s, double distance, const uint64_t *want, uint64_t *near)
{
    for (uint32_t i = 0; i < s->n; i++) near[i] = avx2_within(s, &s->pool[s->page[i]], distance, want[i]);
}

static const struct aoi__kernels avx2 = {.box = avx2_box, .box_rows = avx2_box_rows, .sphere = avx2_sphere, .near = avx2_near, .rows = avx2_rows};
#endif

const struct aoi__kernels *aoi__kernels_pick(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi")) return &avx2;
#endif
    return &plain;
}
