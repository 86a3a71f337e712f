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

static uint64_t within(const struct aoi__sieve *s, const struct aoi__page *page, double most2, uint64_t want)
{
    uint64_t in = 0;
    for (uint64_t m = want; m != 0; m &= m - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(m);
        in |= (uint64_t)(distance2(s, page, k) <= most2) << k;
    }
    return in;
}

static void plain_sphere(const struct aoi__sieve *s, uint64_t *inside)
{
    for (uint32_t i = 0; i < s->n; i++) inside[i] = within(s, &s->pool[s->page[i]], s->radius * s->radius, inside[i]);
}

static void plain_near(const struct aoi__sieve *s, const double *most2, uint32_t n, const uint64_t *want, uint64_t *near)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < n; k++) near[i * n + k] = within(s, &s->pool[s->page[i]], most2[k], want[i]);
}

static const struct aoi__kernels plain = {
    .box = plain_box, .box_rows = plain_box_rows, .sphere = plain_sphere, .near = plain_near, .rows = plain_rows};

/* ------------------------------------------------------------------------------------------------------------- AVX2 */

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,popcnt,bmi")))
#define INLINE static inline __attribute__((always_inline))

/* order_4[m]: the 32-bit halves of the 64-bit lanes set in m, lowest first. */
#define HALVES(a, b, c, d)                                                                     \
    {                                                                                          \
        2 * (a), 2 * (a) + 1, 2 * (b), 2 * (b) + 1, 2 * (c), 2 * (c) + 1, 2 * (d), 2 * (d) + 1 \
    }
static const uint32_t order_4[16][8] __attribute__((aligned(32))) = {
    HALVES(0, 0, 0, 0), HALVES(0, 0, 0, 0), HALVES(1, 0, 0, 0), HALVES(0, 1, 0, 0), HALVES(2, 0, 0, 0), HALVES(0, 2, 0, 0),
    HALVES(1, 2, 0, 0), HALVES(0, 1, 2, 0), HALVES(3, 0, 0, 0), HALVES(0, 3, 0, 0), HALVES(1, 3, 0, 0), HALVES(0, 1, 3, 0),
    HALVES(2, 3, 0, 0), HALVES(0, 2, 3, 0), HALVES(1, 2, 3, 0), HALVES(0, 1, 2, 3),
};

/* The columns of a page, and where its rows go. */
struct columns {
    const float *x, *y, *z;
    const uint64_t *id;
    const uint32_t *extra;
};

TARGET INLINE struct columns columns_of(const struct aoi__page *page, bool flat)
{
    size_t cap = page->cap;
    struct columns c = {.x = page->x, .y = page->x + cap, .z = page->x + 2 * cap};
    c.id = (const uint64_t *)(const void *)(page->x + (flat ? 2 : 3) * cap);
    c.extra = (const uint32_t *)(const void *)(c.id + cap) + cap;
    return c;
}

/* Eight entities from place k on, of which m are wanted, become rows from n on; returns how many rows there are then. */
TARGET INLINE size_t put_rows(const struct columns *c, uint32_t k, uint32_t m, const struct aoi_rows *rows, size_t n, bool flat, bool extra)
{
    __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)&aoi__compress[m]));
    __m256i low = _mm256_load_si256((const __m256i *)(const void *)order_4[m & 15]),
            high = _mm256_load_si256((const __m256i *)(const void *)order_4[m >> 4]);
    _mm256_storeu_ps(rows->x + n, _mm256_permutevar8x32_ps(_mm256_loadu_ps(c->x + k), order));
    _mm256_storeu_ps(rows->y + n, _mm256_permutevar8x32_ps(_mm256_loadu_ps(c->y + k), order));
    if (!flat) _mm256_storeu_ps(rows->z + n, _mm256_permutevar8x32_ps(_mm256_loadu_ps(c->z + k), order));
    if (extra) {
        __m256i words = _mm256_loadu_si256((const __m256i *)(const void *)(c->extra + k));
        _mm256_storeu_si256((__m256i *)(void *)(rows->extra + n), _mm256_permutevar8x32_epi32(words, order));
    }
    const __m256i *id = (const __m256i *)(const void *)(c->id + k);
    _mm256_storeu_si256((__m256i *)(void *)(rows->id + n), _mm256_permutevar8x32_epi32(_mm256_loadu_si256(id), low));
    uint64_t *behind = rows->id + n + (uint32_t)__builtin_popcount(m & 15);
    _mm256_storeu_si256((__m256i *)(void *)behind, _mm256_permutevar8x32_epi32(_mm256_loadu_si256(id + 1), high));
    return n + (uint32_t)__builtin_popcount(m);
}

TARGET INLINE __m256 between(const float *v, __m256 lo, __m256 hi)
{
    __m256 p = _mm256_loadu_ps(v);
    return _mm256_and_ps(_mm256_cmp_ps(p, lo, _CMP_GE_OQ), _mm256_cmp_ps(p, hi, _CMP_LE_OQ));
}

TARGET INLINE void avx2_pages(const struct aoi__sieve *sieve, const uint64_t *told, uint64_t *inside, struct aoi_rows *out, bool flat, bool extra)
{
    const struct aoi__sieve s = *sieve; /* copies, so that stores to the columns do not make the compiler reload them */
    __m256 lx = _mm256_set1_ps(s.lo[0]), hx = _mm256_set1_ps(s.hi[0]), ly = _mm256_set1_ps(s.lo[1]), hy = _mm256_set1_ps(s.hi[1]);
    __m256 lz = _mm256_set1_ps(s.lo[2]), hz = _mm256_set1_ps(s.hi[2]);
    struct aoi_rows rows = {0};
    if (told != NULL) rows = *out;
    size_t n = rows.n;
    for (uint32_t i = 0; i < s.n; i++) {
        const struct aoi__page *page = &s.pool[s.page[i]];
        const struct columns c = columns_of(page, flat);
        uint64_t in = 0, want = told != NULL ? want_rows(&s, page, told[i]) : 0;
        for (uint32_t k = 0, end = page->n; k < end; k += 8) {
            __m256 is = _mm256_and_ps(between(c.x + k, lx, hx), between(c.y + k, ly, hy));
            if (!flat) is = _mm256_and_ps(is, between(c.z + k, lz, hz));
            uint32_t m = (uint32_t)_mm256_movemask_ps(is);
            in |= (uint64_t)m << k;
            if (told != NULL) n = put_rows(&c, k, m & (uint32_t)(want >> k), &rows, n, flat, extra);
        }
        inside[i] = in;
    }
    if (told != NULL) out->n = n;
}

TARGET static void avx2_box(const struct aoi__sieve *s, uint64_t *inside)
{
    if (s->dims == 2)
        avx2_pages(s, NULL, inside, NULL, true, false);
    else
        avx2_pages(s, NULL, inside, NULL, false, false);
}

TARGET static void avx2_box_rows(const struct aoi__sieve *s, const uint64_t *told, uint64_t *inside, struct aoi_rows *rows)
{
    if (s->dims == 2 && !s->extra)
        avx2_pages(s, told, inside, rows, true, false);
    else if (s->dims == 2)
        avx2_pages(s, told, inside, rows, true, true);
    else
        avx2_pages(s, told, inside, rows, false, s->extra);
}

TARGET INLINE void rows_of(const struct aoi__sieve *s, const uint64_t *want, struct aoi_rows *out, bool flat, bool extra)
{
    const struct aoi_rows rows = *out;
    size_t n = rows.n;
    for (uint32_t i = 0; i < s->n; i++) {
        if (want[i] == 0) continue;
        const struct columns c = columns_of(&s->pool[s->page[i]], flat);
        uint32_t k = 0; /* also where nothing is wanted of eight: that could not be guessed well */
        for (uint64_t m = want[i]; m != 0; m >>= 8, k += 8) n = put_rows(&c, k, (uint32_t)(m & 255), &rows, n, flat, extra);
    }
    out->n = n;
}

TARGET static void avx2_rows(const struct aoi__sieve *s, const uint64_t *want, struct aoi_rows *rows)
{
    if (s->dims == 2 && !s->extra)
        rows_of(s, want, rows, true, false);
    else
        rows_of(s, want, rows, s->dims == 2, s->extra);
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

#define BAND 0x1p-20f /* relative error of a squared distance in floats, and some more */
#define TINY 1e-30f   /* where squares underflow */

/* In floats, eight at a time; what lies too near a border for that is looked at again, in doubles. */
TARGET INLINE void avx2_rings(const struct aoi__sieve *s, const double *most2, uint32_t n, const uint64_t *want, uint64_t *near, bool flat)
{
    __m256 cx = _mm256_set1_ps((float)s->center[0]), cy = _mm256_set1_ps((float)s->center[1]), cz = _mm256_set1_ps((float)s->center[2]);
    __m256 sure[AOI_TIERS_MAX], maybe[AOI_TIERS_MAX];
    for (uint32_t t = 0; t < n; t++) {
        float most = (float)most2[t];
        sure[t] = _mm256_set1_ps(most - most * BAND - TINY);
        maybe[t] = _mm256_set1_ps(most + most * BAND + TINY);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const struct aoi__page *page = &s->pool[s->page[i]];
        const float *x = page->x, *y = x + page->cap, *z = y + page->cap;
        uint64_t in[AOI_TIERS_MAX] = {0}, may[AOI_TIERS_MAX] = {0}, w = want[i];
        for (uint32_t k = 0; w >> k != 0; k += 8) {
            __m256 dx = _mm256_sub_ps(_mm256_loadu_ps(x + k), cx), dy = _mm256_sub_ps(_mm256_loadu_ps(y + k), cy);
            __m256 d = _mm256_add_ps(_mm256_mul_ps(dx, dx), _mm256_mul_ps(dy, dy));
            if (!flat) {
                __m256 dz = _mm256_sub_ps(_mm256_loadu_ps(z + k), cz);
                d = _mm256_add_ps(d, _mm256_mul_ps(dz, dz));
            }
            for (uint32_t t = 0; t < n; t++) {
                in[t] |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(d, sure[t], _CMP_LE_OQ)) << k;
                may[t] |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(d, maybe[t], _CMP_LE_OQ)) << k;
            }
            if (k == 56) break;
        }
        for (uint32_t t = 0; t < n; t++) {
            uint64_t unsure = (in[t] ^ may[t]) & w;
            near[i * (size_t)n + t] = (in[t] & w) | (unsure == 0 ? 0 : within(s, page, most2[t], unsure));
        }
    }
}

TARGET static void avx2_near(const struct aoi__sieve *s, const double *most2, uint32_t n, const uint64_t *want, uint64_t *near)
{
    bool exact = true; /* the center is a place that floats can hold, and no distance is too large for them */
    for (uint32_t a = 0; a < 3; a++) exact &= (double)(float)s->center[a] == s->center[a];
    for (uint32_t t = 0; t < n; t++) exact &= most2[t] < 1e30;
    if (!exact)
        plain_near(s, most2, n, want, near);
    else if (s->dims == 3)
        avx2_rings(s, most2, n, want, near, false);
    else if (n == 2)
        avx2_rings(s, most2, 2, want, near, true); /* the usual numbers, for which the loops are unrolled */
    else if (n == 1)
        avx2_rings(s, most2, 1, want, near, true);
    else
        avx2_rings(s, most2, n, want, near, true);
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
