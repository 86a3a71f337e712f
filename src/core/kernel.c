/* kernel.c: see kernel.h. What a loop does stands once, in plain C; AVX2 does the same eight at a time. */
#include "core/kernel.h"

#include <math.h>

#include "core/space.h"

/* Those of told ones that moved, or that are late. */
static inline uint64_t want_rows(const struct aoi__sieve *s, const struct aoi__page *page, uint64_t told, uint64_t late)
{
    if (!s->any_layer && !(page->all & s->mask)) return 0;
    return told & ((page->window == s->window ? page->moved : 0) | late);
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

static void plain_page(const struct aoi__sieve *s, const struct aoi__page *page, uint64_t want, struct aoi_rows *rows)
{
    for (; want != 0; want &= want - 1) put_row(s, page, (uint32_t)__builtin_ctzll(want), rows);
}

static void plain_rows(const struct aoi__sieve *s, const uint64_t *want, struct aoi_rows *rows)
{
    for (uint32_t i = 0; i < s->n; i++) plain_page(s, &s->pool[s->page[i]], want[i], rows);
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
        plain_page(s, page, inside[i] & want_rows(s, page, told[i], 0), rows);
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

/* Those whose turn it is, of what is wanted. */
static uint64_t due_of(const struct aoi__sieve *s, const struct aoi__rings *r, const struct aoi__page *page, uint64_t want)
{
    const uint64_t *id = aoi__page_ids(page, s->dims);
    uint64_t due = 0;
    for (uint64_t m = want; m != 0; m &= m - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(m), t = 0;
        double d = distance2(s, page, k);
        while (t < r->tiers->n && d > r->most2[t]) t++;
        due |= (uint64_t)aoi__is_due(r->flush, id[k], t < r->tiers->n ? r->tiers->at[t].period : r->tiers->beyond) << k;
    }
    return due;
}

static bool plain_tiers(const struct aoi__sieve *s, const struct aoi__rings *r, const uint64_t *told, uint64_t *late, uint64_t *inside,
                        struct aoi_rows *rows)
{
    uint64_t left = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct aoi__page *page = &s->pool[s->page[i]];
        uint64_t in = plain_inside(s, page), want = want_rows(s, page, told[i], late[i]) & in, due = due_of(s, r, page, want);
        inside[i] = in;
        late[i] = (late[i] | want) & ~due;
        left |= want & ~due;
        plain_page(s, page, due, rows);
    }
    return left != 0;
}

static uint64_t plain_touch(const struct aoi__sieve *s, const struct aoi__boxes *boxes)
{
    uint64_t touch = 0;
    for (uint32_t i = 0; i < boxes->n; i++) {
        bool is = true;
        for (uint32_t a = 0; a < s->dims; a++) is &= s->lo[a] <= boxes->hi[a][i] && boxes->lo[a][i] <= s->hi[a];
        touch |= (uint64_t)is << i;
    }
    return touch;
}

const struct aoi__kernels aoi__kernels_plain = {
    .box = plain_box, .box_rows = plain_box_rows, .sphere = plain_sphere, .tiers = plain_tiers, .touch = plain_touch, .rows = plain_rows};

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

/* Rows of a page; also where nothing is wanted of eight: that could not be guessed well. */
TARGET INLINE size_t put_page(const struct columns *c, uint64_t want, const struct aoi_rows *rows, size_t n, bool flat, bool extra)
{
    for (uint32_t k = 0; want != 0; want >>= 8, k += 8) n = put_rows(c, k, (uint32_t)(want & 255), rows, n, flat, extra);
    return n;
}

TARGET INLINE __m256 between(__m256 p, __m256 lo, __m256 hi)
{
    return _mm256_and_ps(_mm256_cmp_ps(p, lo, _CMP_GE_OQ), _mm256_cmp_ps(p, hi, _CMP_LE_OQ));
}

/* The sieve's box, eight times. */
struct wide_box {
    __m256 lo[3], hi[3];
};

TARGET INLINE struct wide_box wide_box_of(const struct aoi__sieve *s)
{
    struct wide_box b;
    for (uint32_t a = 0; a < 3; a++) {
        b.lo[a] = _mm256_set1_ps(s->lo[a]);
        b.hi[a] = _mm256_set1_ps(s->hi[a]);
    }
    return b;
}

/* Which of eight places from k on lie in it. */
TARGET INLINE uint32_t in_box(const struct columns *c, uint32_t k, const struct wide_box *b, bool flat)
{
    __m256 is = _mm256_and_ps(between(_mm256_loadu_ps(c->x + k), b->lo[0], b->hi[0]), between(_mm256_loadu_ps(c->y + k), b->lo[1], b->hi[1]));
    if (!flat) is = _mm256_and_ps(is, between(_mm256_loadu_ps(c->z + k), b->lo[2], b->hi[2]));
    return (uint32_t)_mm256_movemask_ps(is);
}

TARGET INLINE void avx2_pages(const struct aoi__sieve *sieve, const uint64_t *told, uint64_t *inside, struct aoi_rows *out, bool flat, bool extra)
{
    const struct aoi__sieve s = *sieve; /* copies, so that stores to the columns do not make the compiler reload them */
    const struct wide_box box = wide_box_of(&s);
    struct aoi_rows rows = {0};
    if (told != NULL) rows = *out;
    size_t n = rows.n;
    for (uint32_t i = 0; i < s.n; i++) {
        const struct aoi__page *page = &s.pool[s.page[i]];
        const struct columns c = columns_of(page, flat);
        uint64_t in = 0, want = told != NULL ? want_rows(&s, page, told[i], 0) : 0;
        for (uint32_t k = 0, end = page->n; k < end; k += 8) {
            uint32_t m = in_box(&c, k, &box, flat);
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
        n = put_page(&c, want[i], &rows, n, flat, extra);
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

#define BAND 0x1p-20 /* relative error of a squared distance in floats, and some more */
#define TINY 1e-30   /* where squares underflow */

/* How far a squared distance in floats may be off, where that matters. */
TARGET INLINE float error_of(const struct aoi__sieve *s, const struct aoi__rings *r)
{
    double off = 0, most = r->tiers->n > 0 ? r->most2[r->tiers->n - 1] : 0;
    for (uint32_t a = 0; a < 3; a++) off += fabs(s->center[a] - (double)(float)s->center[a]); /* it need not be a place that floats can hold */
    return (float)(most * BAND + (off > 0 ? 4 * off * (sqrt(most) + off) : 0) + TINY);
}

/* Finds what is inside, and due. */
TARGET INLINE bool find_due(const struct aoi__sieve *sieve, const struct aoi__rings *r, const uint64_t *told, uint64_t *late, uint64_t *inside,
                            uint64_t *due_now, bool flat)
{
    const struct aoi__sieve s = *sieve;
    const float *reach = r->reach;
    const struct wide_box box = wide_box_of(&s);
    const __m256 cx = _mm256_set1_ps((float)s.center[0]), cy = _mm256_set1_ps((float)s.center[1]), cz = _mm256_set1_ps((float)s.center[2]);
    const __m256 error = _mm256_set1_ps(error_of(&s, r)), sign = _mm256_set1_ps(-0.0f);
    uint64_t left = 0;
    for (uint32_t i = 0; i < s.n; i++) {
        const struct aoi__page *page = &s.pool[s.page[i]];
        const struct columns c = columns_of(page, flat);
        const float *most = reach + (size_t)s.page[i] * AOI__PAGE;
        uint64_t in = 0, due = 0, want = want_rows(&s, page, told[i], late[i]);
        __m256 nearest = _mm256_set1_ps(INFINITY); /* to the rim of the tier */
        for (uint32_t k = 0, end = page->n; k < end; k += 8) {
            __m256 dx = _mm256_sub_ps(_mm256_loadu_ps(c.x + k), cx), dy = _mm256_sub_ps(_mm256_loadu_ps(c.y + k), cy);
            __m256 d = _mm256_add_ps(_mm256_mul_ps(dx, dx), _mm256_mul_ps(dy, dy));
            if (!flat) {
                __m256 dz = _mm256_sub_ps(_mm256_loadu_ps(c.z + k), cz);
                d = _mm256_add_ps(d, _mm256_mul_ps(dz, dz));
            }
            __m256 to = _mm256_loadu_ps(most + k);
            nearest = _mm256_min_ps(_mm256_andnot_ps(sign, _mm256_sub_ps(d, to)), nearest); /* the second, where nobody stands */
            in |= (uint64_t)in_box(&c, k, &box, flat) << k;
            due |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(d, to, _CMP_LE_OQ)) << k;
        }
        inside[i] = in;
        want &= in;
        if (_mm256_movemask_ps(_mm256_cmp_ps(nearest, error, _CMP_LE_OQ)) != 0) due = due_of(&s, r, page, want); /* too near for floats */
        due &= want;
        due_now[i] = due;
        late[i] = (late[i] | want) & ~due;
        left |= want & ~due;
    }
    return left != 0;
}

#define AT_ONCE 64 /* pages */

/* The rows are made later, when it is known of all pages which: few of each, which cannot be guessed well, and not while what is due is still being reckoned. */
TARGET INLINE bool tiered_pages(const struct aoi__sieve *sieve, const struct aoi__rings *r, const uint64_t *told, uint64_t *late, uint64_t *inside,
                                struct aoi_rows *rows, bool flat, bool extra)
{
    struct aoi__sieve s = *sieve;
    uint64_t due[AT_ONCE];
    bool left = false;
    for (uint32_t i = 0; i < sieve->n; i += AT_ONCE) {
        s.page = sieve->page + i;
        s.n = sieve->n - i < AT_ONCE ? sieve->n - i : AT_ONCE;
        left |= find_due(&s, r, told + i, late + i, inside + i, due, flat);
        rows_of(&s, due, rows, flat, extra);
    }
    return left;
}

TARGET static bool avx2_tiers(const struct aoi__sieve *s, const struct aoi__rings *r, const uint64_t *told, uint64_t *late, uint64_t *inside,
                              struct aoi_rows *rows)
{
    if (!r->nested || (r->tiers->n > 0 && !(r->most2[r->tiers->n - 1] < 1e30))) return plain_tiers(s, r, told, late, inside, rows);
    if (s->dims == 2 && !s->extra) return tiered_pages(s, r, told, late, inside, rows, true, false);
    return tiered_pages(s, r, told, late, inside, rows, s->dims == 2, s->extra);
}

TARGET static uint64_t avx2_touch(const struct aoi__sieve *s, const struct aoi__boxes *boxes)
{
    const struct wide_box box = wide_box_of(s);
    uint64_t touch = 0;
    for (uint32_t i = 0; i < boxes->n; i += 8) {
        __m256 is = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
        for (uint32_t a = 0; a < s->dims; a++) {
            is = _mm256_and_ps(is, _mm256_cmp_ps(_mm256_loadu_ps(boxes->hi[a] + i), box.lo[a], _CMP_GE_OQ));
            is = _mm256_and_ps(is, _mm256_cmp_ps(_mm256_loadu_ps(boxes->lo[a] + i), box.hi[a], _CMP_LE_OQ));
        }
        touch |= (uint64_t)(uint32_t)_mm256_movemask_ps(is) << i;
    }
    return touch;
}

static const struct aoi__kernels avx2 = {
    .box = avx2_box, .box_rows = avx2_box_rows, .sphere = avx2_sphere, .tiers = avx2_tiers, .touch = avx2_touch, .rows = avx2_rows};
#endif

const struct aoi__kernels *aoi__kernels_pick(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi")) return &avx2;
#endif
    return &aoi__kernels_plain;
}
