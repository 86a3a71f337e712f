/* kernel.c: see kernel.h. What a loop does stands once, in plain C; AVX2 does the same eight at a time, AVX-512 by half or whole pages. */
#include "core/kernel.h"

#include <math.h>

#include "core/space.h"

#define ALWAYS static inline __attribute__((always_inline))

/* What is known of pages so far: apart from aoi__sifted, so that the compiler need not take a store to a mask for one to these. */
struct sifting {
    const struct aoi__page *pool;
    const uint32_t *number;
    const uint64_t *told;
    uint64_t *inside, *want, *due, restated;
    struct aoi__differ *differ;
    uint32_t all;
    size_t wanted;
};

ALWAYS struct sifting sift_begin(const struct aoi__sieve *s, const uint64_t *told, const struct aoi__sifted *out)
{
    return (struct sifting){.pool = s->pool,
                            .number = s->page,
                            .told = told,
                            .inside = out->inside,
                            .want = out->want,
                            .due = out->due,
                            .differ = out->differ,
                            .all = UINT32_MAX};
}

/* What follows from what is inside the i-th page: without a branch, for none could be guessed well. */
ALWAYS void judge(struct sifting *g, uint32_t i, const struct aoi__page *page, uint64_t in)
{
    uint64_t told = g->told[i], want = in & told & page->moved;
    g->inside[i] = in;
    g->want[i] = want;
    g->wanted += (uint32_t)__builtin_popcountll(want);
    g->restated |= page->state & told;
    g->all &= page->all;
    *g->differ = (struct aoi__differ){.places = told ^ in, .page = i};
    g->differ += told != in;
}

ALWAYS void sift_end(const struct sifting *g, struct aoi__sifted *out)
{
    out->differ_n = (uint32_t)(g->differ - out->differ);
    out->wanted = g->wanted;
    out->restated = g->restated;
    out->all = g->all;
}

ALWAYS bool take_due(const struct aoi__sieve *s, const uint64_t *told, uint64_t *late, struct aoi__sifted *io)
{
    uint64_t left = 0, *want = io->want;
    const uint64_t *inside = io->inside, *whose = io->due;
    size_t wanted = 0;
    for (uint32_t i = 0, n = s->n; i < n; i++) {
        uint64_t waits = (want[i] | late[i]) & told[i] & inside[i], due = waits & whose[i];
        left |= waits & ~due;
        late[i] = (late[i] | waits) & ~due;
        want[i] = due;
        wanted += (uint32_t)__builtin_popcountll(due);
    }
    io->wanted = wanted;
    return left != 0;
}

/* ------------------------------------------------------------------------------------------------------------- plain C */

static void put_row(const struct aoi__sieve *s, const struct aoi__page *page, uint32_t k, struct aoi_rows *rows)
{
    size_t n = rows->n++;
    rows->id[n] = aoi__page_id(page, s->dims, k);
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
static uint64_t plain_due(const struct aoi__sieve *s, const struct aoi__rings *r, uint32_t number, uint64_t want)
{
    const uint64_t *turn = aoi__turns(r, number);
    uint64_t due = turn[r->n];
    for (uint32_t t = r->n; t-- > 0;) due ^= (due ^ turn[t]) & within(s, &s->pool[number], r->most2[t], want);
    return due & want;
}

static void plain_sift(const struct aoi__sieve *s, uint32_t n, const uint64_t *told, const struct aoi__rings *r, struct aoi__sifted *out)
{
    struct sifting g = sift_begin(s, told, out);
    for (uint32_t i = 0; i < n; i++) {
        const struct aoi__page *page = &g.pool[g.number[i]];
        uint64_t in = i < s->n ? plain_inside(s, page) : g.inside[i];
        if (r != NULL) g.due[i] = plain_due(s, r, g.number[i], in);
        judge(&g, i, page, in);
    }
    sift_end(&g, out);
}

static bool plain_wait(const struct aoi__sieve *s, const uint64_t *told, uint64_t *late, struct aoi__sifted *io)
{
    return take_due(s, told, late, io);
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

static const struct aoi__kernels plain = {
    .box = plain_box, .sift = plain_sift, .wait = plain_wait, .sphere = plain_sphere, .touch = plain_touch, .rows = plain_rows};

/* ------------------------------------------------------------------------------------------------------------- AVX2 */

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,popcnt,bmi")))
#define INLINE ALWAYS

/* The columns of a page. */
struct columns {
    const float *x, *y, *z, *low, *high, *extra; /* halves of ids are only moved, as if they were floats */
    const struct aoi__page *page;
};

TARGET INLINE struct columns columns_of(const struct aoi__page *page, bool flat)
{
    size_t cap = page->cap;
    const float *x = page->x, *low = x + (flat ? 2 : 3) * cap;
    return (struct columns){.x = x, .y = x + cap, .z = x + 2 * cap, .low = low, .high = low + cap, .extra = low + 3 * cap, .page = page};
}

/* Eight entities from place k on, of which m are wanted, become rows from n on; returns how many rows there are then. */
TARGET INLINE size_t put_rows(const struct columns *c, uint32_t k, uint32_t m, const struct aoi_rows *rows, size_t n, bool flat, bool extra)
{
    __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)&aoi__compress[m]));
    __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(c->low + k), order), high = _mm256_castsi256_ps(_mm256_set1_epi32((int)c->page->high));
    _mm256_storeu_ps(rows->x + n, _mm256_permutevar8x32_ps(_mm256_loadu_ps(c->x + k), order));
    _mm256_storeu_ps(rows->y + n, _mm256_permutevar8x32_ps(_mm256_loadu_ps(c->y + k), order));
    if (!flat) _mm256_storeu_ps(rows->z + n, _mm256_permutevar8x32_ps(_mm256_loadu_ps(c->z + k), order));
    if (extra) _mm256_storeu_ps((float *)(void *)(rows->extra + n), _mm256_permutevar8x32_ps(_mm256_loadu_ps(c->extra + k), order));
    if (c->page->mixed) high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(c->high + k), order);
    __m256 even = _mm256_unpacklo_ps(low, high),
           odd = _mm256_unpackhi_ps(low, high); /* of each half of the register: the first two ids, the others */
    _mm256_storeu_ps((float *)(void *)(rows->id + n), _mm256_permute2f128_ps(even, odd, 0x20));
    _mm256_storeu_ps((float *)(void *)(rows->id + n + 4), _mm256_permute2f128_ps(even, odd, 0x31));
    return n + (uint32_t)__builtin_popcount(m);
}

/* Rows of a page; of its first half also where nothing is wanted of eight: how much of it is in use could not be guessed well. */
TARGET INLINE size_t put_page(const struct columns *c, uint64_t want, const struct aoi_rows *rows, size_t n, bool flat, bool extra)
{
    n = put_rows(c, 0, want & 255, rows, n, flat, extra);
    n = put_rows(c, 8, want >> 8 & 255, rows, n, flat, extra);
    n = put_rows(c, 16, want >> 16 & 255, rows, n, flat, extra);
    n = put_rows(c, 24, want >> 24 & 255, rows, n, flat, extra);
    want >>= AOI__HALF;
    for (uint32_t k = AOI__HALF; want != 0; want >>= 8, k += 8) n = put_rows(c, k, want & 255, rows, n, flat, extra);
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

/* All bits set for those of eight places from k on that lie in it. */
TARGET INLINE __m256i eight_in(const struct columns *c, uint32_t k, const struct wide_box *b, bool flat)
{
    __m256 is = _mm256_and_ps(between(_mm256_loadu_ps(c->x + k), b->lo[0], b->hi[0]), between(_mm256_loadu_ps(c->y + k), b->lo[1], b->hi[1]));
    if (!flat) is = _mm256_and_ps(is, between(_mm256_loadu_ps(c->z + k), b->lo[2], b->hi[2]));
    return _mm256_castps_si256(is);
}

/* Which of the half from k on. */
TARGET INLINE uint32_t half_in(const struct columns *c, uint32_t k, const struct wide_box *b, bool flat)
{
    __m256i low = _mm256_packs_epi32(eight_in(c, k, b, flat), eight_in(c, k + 8, b, flat)),
            high = _mm256_packs_epi32(eight_in(c, k + 16, b, flat), eight_in(c, k + 24, b, flat));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7); /* packs go by halves of the register */
    return (uint32_t)_mm256_movemask_epi8(_mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order));
}

TARGET INLINE uint64_t avx2_inside(const struct aoi__page *page, const struct wide_box *box, bool flat)
{
    const struct columns c = columns_of(page, flat);
    if (page->n == 0) return 0;
    uint64_t in = half_in(&c, 0, box, flat);
    if (page->n > AOI__HALF) in |= (uint64_t)half_in(&c, AOI__HALF, box, flat) << AOI__HALF;
    return in & page->used;
}

TARGET static void avx2_box(const struct aoi__sieve *s, uint64_t *inside)
{
    const struct wide_box box = wide_box_of(s);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct aoi__page *page = &s->pool[s->page[i]];
        inside[i] = s->dims == 2 ? avx2_inside(page, &box, true) : avx2_inside(page, &box, false);
    }
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

TARGET INLINE uint64_t avx2_within(const struct aoi__sieve *s, const struct aoi__page *page, double most2, uint64_t want)
{
    __m256d most = _mm256_set1_pd(most2);
    uint64_t in = 0;
    for (uint32_t k = 0; k < page->n && want >> k != 0; k += 4)
        in |= (uint64_t)(uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(four_distances(s, page, k), most, _CMP_LE_OQ)) << k;
    return in & want;
}

TARGET static void avx2_sphere(const struct aoi__sieve *s, uint64_t *inside)
{
    for (uint32_t i = 0; i < s->n; i++) inside[i] = avx2_within(s, &s->pool[s->page[i]], s->radius * s->radius, inside[i]);
}

#define BAND 0x1p-20 /* relative error of a squared distance in floats, and some more */
#define TINY 1e-30   /* where squares underflow */

/* How far a squared distance in floats may be off, where that matters. */
TARGET INLINE float error_of(const struct aoi__sieve *s, const struct aoi__rings *r)
{
    double off = 0, most = r->n > 0 ? r->most2[r->n - 1] : 0;
    if (most > 1e30) return INFINITY;
    for (uint32_t a = 0; a < 3; a++) off += fabs(s->center[a] - (double)(float)s->center[a]); /* it need not be a place that floats can hold */
    return (float)(most * BAND + (off > 0 ? 4 * off * (sqrt(most) + off) : 0) + TINY);
}

/* Whose turn it is of what is inside, found by doubles: where floats were not sure. */
TARGET static void due_exactly(const struct aoi__sieve *s, uint32_t n, const struct aoi__rings *r, const struct aoi__sifted *out)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t *turn = aoi__turns(r, s->page[i]), in = out->inside[i];
        uint64_t due = turn[r->n];
        for (uint32_t t = r->n; t-- > 0;) due ^= (due ^ turn[t]) & avx2_within(s, &s->pool[s->page[i]], r->most2[t], in);
        out->due[i] = due;
    }
}

/* What rings are found by, in floats. */
struct rims {
    float center[3], most2[AOI_TIERS_MAX];
    float error; /* nothing so near a rim is sure */
};

TARGET INLINE struct rims rims_of(const struct aoi__sieve *s, const struct aoi__rings *r)
{
    struct rims rims = {.error = error_of(s, r)};
    for (uint32_t a = 0; a < 3; a++) rims.center[a] = (float)s->center[a];
    for (uint32_t t = 0; t < r->n; t++) rims.most2[t] = (float)r->most2[t];
    return rims;
}

/* Whose turn it is in a page; and in *nearest how near any is to a rim. */
TARGET INLINE uint64_t avx2_due(const struct aoi__page *page, const struct rims *rims, uint32_t tiers, const uint64_t *turn, __m256 *nearest,
                                bool flat)
{
    const struct columns c = columns_of(page, flat);
    const __m256 sign = _mm256_set1_ps(-0.0f);
    uint64_t ring[AOI_TIERS_MAX] = {0}, due = turn[tiers];
    for (uint32_t k = 0, end = page->n; k < end; k += 8) {
        __m256 dx = _mm256_sub_ps(_mm256_loadu_ps(c.x + k), _mm256_set1_ps(rims->center[0]));
        __m256 dy = _mm256_sub_ps(_mm256_loadu_ps(c.y + k), _mm256_set1_ps(rims->center[1]));
        __m256 d = _mm256_add_ps(_mm256_mul_ps(dx, dx), _mm256_mul_ps(dy, dy));
        if (!flat) {
            __m256 dz = _mm256_sub_ps(_mm256_loadu_ps(c.z + k), _mm256_set1_ps(rims->center[2]));
            d = _mm256_add_ps(d, _mm256_mul_ps(dz, dz));
        }
        for (uint32_t t = 0; t < tiers; t++) {
            __m256 most2 = _mm256_set1_ps(rims->most2[t]);
            *nearest = _mm256_min_ps(_mm256_andnot_ps(sign, _mm256_sub_ps(d, most2)), *nearest); /* the second, where nobody stands */
            ring[t] |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(d, most2, _CMP_LE_OQ)) << k;
        }
    }
    for (uint32_t t = tiers; t-- > 0;) due ^= (due ^ turn[t]) & ring[t];
    return due;
}

TARGET INLINE void avx2_sift_pages(const struct aoi__sieve *s, uint32_t n, const uint64_t *told, const struct aoi__rings *r, struct aoi__sifted *out,
                                   bool flat, bool tiered)
{
    const struct wide_box box = wide_box_of(s);
    struct sifting g = sift_begin(s, told, out);
    __m256 nearest = _mm256_set1_ps(INFINITY);
    struct rims rims;
    if (tiered) rims = rims_of(s, r);
    for (uint32_t i = 0, known = s->n; i < n; i++) {
        const struct aoi__page *page = &g.pool[g.number[i]];
        uint64_t in = i < known ? avx2_inside(page, &box, flat) : g.inside[i];
        if (tiered) g.due[i] = avx2_due(page, &rims, r->n, aoi__turns(r, g.number[i]), &nearest, flat);
        judge(&g, i, page, in);
    }
    sift_end(&g, out);
    if (tiered && _mm256_movemask_ps(_mm256_cmp_ps(nearest, _mm256_set1_ps(rims.error), _CMP_NGT_UQ)) != 0) due_exactly(s, n, r, out);
}

TARGET static void avx2_sift(const struct aoi__sieve *s, uint32_t n, const uint64_t *told, const struct aoi__rings *r, struct aoi__sifted *out)
{
    if (r == NULL && s->dims == 2)
        avx2_sift_pages(s, n, told, r, out, true, false);
    else if (r == NULL)
        avx2_sift_pages(s, n, told, r, out, false, false);
    else if (s->dims == 2)
        avx2_sift_pages(s, n, told, r, out, true, true);
    else
        avx2_sift_pages(s, n, told, r, out, false, true);
}

TARGET static bool avx2_wait(const struct aoi__sieve *s, const uint64_t *told, uint64_t *late, struct aoi__sifted *io)
{
    return take_due(s, told, late, io);
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
    .box = avx2_box, .sift = avx2_sift, .wait = avx2_wait, .sphere = avx2_sphere, .touch = avx2_touch, .rows = avx2_rows};

/* ------------------------------------------------------------------------------------------------------------- AVX-512 */

/* A page is looked at by halves, by the second one only if that is in use: what costs time is a branch that is guessed wrong, so hardly any depends on what a page holds. Columns
 * are read past their end; what is there counts for nothing. */
#define WIDE __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx512vbmi,avx512vbmi2,avx2,popcnt,bmi,bmi2")))

#define EIGHT(n) (n), (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5, (n) + 6, (n) + 7
static const uint8_t half_places[64]
    __attribute__((aligned(64))) = {EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24)}; /* those of the half; more are not asked for */

/* The values of a half of a column at sixteen places. */
WIDE INLINE __m512 floats_at(const float *column, __m512i at)
{
    return _mm512_permutex2var_ps(_mm512_loadu_ps(column), at, _mm512_loadu_ps(column + 16));
}

/* Ids of sixteen halves each: the first eight, the others. */
#define PAIR(n) (n), (n) + 16
static const uint32_t id_order[2][16] __attribute__((aligned(64))) = {{PAIR(0), PAIR(1), PAIR(2), PAIR(3), PAIR(4), PAIR(5), PAIR(6), PAIR(7)},
                                                                      {PAIR(8), PAIR(9), PAIR(10), PAIR(11), PAIR(12), PAIR(13), PAIR(14), PAIR(15)}};

WIDE INLINE __m512i ids_of(__m512 low, __m512 high, uint32_t part)
{
    return _mm512_castps_si512(_mm512_permutex2var_ps(low, _mm512_load_si512(id_order[part]), high));
}

/* Where the next rows go. */
struct cursor {
    float *x, *y, *z, *extra;
    uint64_t *id;
};

ALWAYS void advance(struct cursor *to, uint32_t rows, bool flat, bool extra)
{
    to->x += rows;
    to->y += rows;
    to->id += rows;
    if (!flat) to->z += rows;
    if (extra) to->extra += rows;
}

/* The first of the places of the half from k on, at most 16 and `rows`, become rows. Exact: nothing is written beyond them. Else whatever it is, up to the 16th: that is faster. */
WIDE INLINE void put_sixteen(const struct columns *c, uint32_t k, __m128i places, uint32_t rows, const struct cursor *to, bool flat, bool extra,
                             bool exact)
{
    __m512i at = _mm512_cvtepu8_epi32(places);
    __m512 low = floats_at(c->low + k, at), high = _mm512_castsi512_ps(_mm512_set1_epi32((int)c->page->high));
    uint32_t some = exact ? _bzhi_u32(0xFFFF, rows) : 0xFFFF;
    _mm512_mask_storeu_ps(to->x, (__mmask16)some, floats_at(c->x + k, at));
    _mm512_mask_storeu_ps(to->y, (__mmask16)some, floats_at(c->y + k, at));
    if (!flat) _mm512_mask_storeu_ps(to->z, (__mmask16)some, floats_at(c->z + k, at));
    if (extra) _mm512_mask_storeu_ps(to->extra, (__mmask16)some, floats_at(c->extra + k, at));
    if (c->page->mixed) high = floats_at(c->high + k, at);
    _mm512_mask_storeu_epi64(to->id, (__mmask8)some, ids_of(low, high, 0));
    _mm512_mask_storeu_epi64(to->id + 8, (__mmask8)(some >> 8), ids_of(low, high, 1));
}

/* What is wanted of the half from k on becomes rows. */
WIDE INLINE void put_half(const struct columns *c, uint32_t k, uint32_t want, struct cursor *to, bool flat, bool extra, bool exact)
{
    uint32_t rows = (uint32_t)__builtin_popcount(want);
    __m512i places = _mm512_maskz_compress_epi8(want, _mm512_load_si512(half_places));
    put_sixteen(c, k, _mm512_castsi512_si128(places), rows, to, flat, extra, exact);
    for (; rows > 16; rows -= 16) { /* of hardly any */
        advance(to, 16, flat, extra);
        places = _mm512_alignr_epi32(places, places, 4);
        put_sixteen(c, k, _mm512_castsi512_si128(places), rows - 16, to, flat, extra, exact);
    }
    advance(to, rows, flat, extra);
}

/* Whether the sieve's box changes its sign on no axis. Then floats are in order as their bits are, or backwards, and a coordinate lies in the box if it is no more than `width` from
 * `first`, as numbers that wrap: one comparison instead of two. Nobody stands at -0.0, and NaN is far from all. */
ALWAYS bool is_of_one_sign(const struct aoi__sieve *s)
{
    bool is = true;
    for (uint32_t a = 0; a < s->dims; a++) is &= !signbit(s->lo[a]) == !signbit(s->hi[a]);
    return is;
}

/* The sieve's box, sixteen times. */
struct wider_box {
    __m512 lo[3], hi[3];
    __m512i first[3], width[3]; /* where it is of one sign */
};

WIDE INLINE struct wider_box wider_box_of(const struct aoi__sieve *s)
{
    struct wider_box b;
    for (uint32_t a = 0; a < 3; a++) {
        b.lo[a] = _mm512_set1_ps(s->lo[a]);
        b.hi[a] = _mm512_set1_ps(s->hi[a]);
        __m512i lo = _mm512_castps_si512(b.lo[a]), hi = _mm512_castps_si512(b.hi[a]);
        b.first[a] = _mm512_min_epu32(lo, hi);
        b.width[a] = _mm512_sub_epi32(_mm512_max_epu32(lo, hi), b.first[a]);
    }
    return b;
}

/* Which of those of sixteen values lie in it on an axis. */
WIDE INLINE __mmask16 sixteen_on_axis(__mmask16 of, __m512 v, const struct wider_box *b, uint32_t a, bool one_sign)
{
    if (one_sign) return _mm512_mask_cmple_epu32_mask(of, _mm512_sub_epi32(_mm512_castps_si512(v), b->first[a]), b->width[a]);
    return _mm512_mask_cmp_ps_mask(_mm512_mask_cmp_ps_mask(of, v, b->lo[a], _CMP_GE_OQ), v, b->hi[a], _CMP_LE_OQ);
}

/* Which of sixteen places from k on lie in it. */
WIDE INLINE __mmask16 sixteen_in(const struct columns *c, uint32_t k, const struct wider_box *b, bool flat, bool one_sign)
{
    __mmask16 in = sixteen_on_axis(0xFFFF, _mm512_loadu_ps(c->x + k), b, 0, one_sign);
    in = sixteen_on_axis(in, _mm512_loadu_ps(c->y + k), b, 1, one_sign);
    return flat ? in : sixteen_on_axis(in, _mm512_loadu_ps(c->z + k), b, 2, one_sign);
}

/* What is known of sixteen places each, put together. */
WIDE INLINE uint64_t joined(__mmask16 a, __mmask16 b)
{
    return _mm512_kunpackw(b, a);
}

WIDE INLINE uint64_t all_joined(__mmask16 a, __mmask16 b, __mmask16 c, __mmask16 d)
{
    return _mm512_kunpackd(_mm512_kunpackw(d, c), _mm512_kunpackw(b, a));
}

WIDE INLINE uint64_t all_in(const struct columns *c, const struct wider_box *b, bool flat, bool one_sign, bool whole)
{
    __mmask16 first = sixteen_in(c, 0, b, flat, one_sign), second = sixteen_in(c, 16, b, flat, one_sign);
    if (!whole) return joined(first, second);
    return all_joined(first, second, sixteen_in(c, 32, b, flat, one_sign), sixteen_in(c, 48, b, flat, one_sign));
}

WIDE INLINE uint64_t wide_inside(const struct aoi__page *page, const struct wider_box *box, bool flat, bool one_sign)
{
    const struct columns c = columns_of(page, flat);
    if (page->n > AOI__HALF) return all_in(&c, box, flat, one_sign, true) & page->used;
    return page->n == 0 ? 0 : all_in(&c, box, flat, one_sign, false) & page->used;
}

WIDE INLINE void wide_box_of_pages(const struct aoi__sieve *s, uint64_t *inside, bool flat, bool one_sign)
{
    const struct wider_box box = wider_box_of(s);
    for (uint32_t i = 0; i < s->n; i++) inside[i] = wide_inside(&s->pool[s->page[i]], &box, flat, one_sign);
}

WIDE static void wide_box_kernel(const struct aoi__sieve *s, uint64_t *inside)
{
    bool one_sign = is_of_one_sign(s);
    if (s->dims == 2 && one_sign)
        wide_box_of_pages(s, inside, true, true);
    else if (s->dims == 2)
        wide_box_of_pages(s, inside, true, false);
    else
        wide_box_of_pages(s, inside, false, one_sign);
}

/* Also of halves of which nothing is wanted: they could not be guessed well. Returns the end of the rows. */
WIDE INLINE const float *wide_places_of(const struct aoi__sieve *s, const uint64_t *want, struct cursor to, bool flat, bool extra, bool exact)
{
    const struct aoi__page *pool = s->pool;
    const uint32_t *number = s->page;
    for (const uint64_t *end = want + s->n; want < end; want++, number++) {
        const struct aoi__page *page = &pool[*number];
        const struct columns c = columns_of(page, flat);
        put_half(&c, 0, (uint32_t)*want, &to, flat, extra, exact);
        if (page->n > AOI__HALF) put_half(&c, AOI__HALF, (uint32_t)(*want >> AOI__HALF), &to, flat, extra, exact);
    }
    return to.x;
}

/* From the n-th row on; returns how many there are then. */
WIDE INLINE size_t put_places(const struct aoi__sieve *s, const uint64_t *want, const struct aoi_places *to, size_t n, bool exact)
{
    struct cursor at = {to->x, to->y, to->z, to->extra, to->id};
    bool flat = s->dims == 2;
    advance(&at, (uint32_t)n, flat, s->extra);
    const float *begin = to->x, *end;
    if (flat && !s->extra)
        end = wide_places_of(s, want, at, true, false, exact);
    else
        end = wide_places_of(s, want, at, flat, s->extra, exact);
    return (size_t)(end - begin);
}

WIDE static void wide_place(const struct aoi__sieve *s, const uint64_t *want, const struct aoi_places *to)
{
    put_places(s, want, to, 0, true);
}

WIDE static void wide_rows(const struct aoi__sieve *s, const uint64_t *want, struct aoi_rows *rows)
{
    const struct aoi_places to = {rows->id, rows->x, rows->y, rows->z, rows->extra};
    rows->n = put_places(s, want, &to, rows->n, false);
}

/* Squared distances of sixteen places from k on. */
WIDE INLINE __m512 sixteen_distances(const struct columns *c, uint32_t k, const struct rims *rims, bool flat)
{
    __m512 dx = _mm512_sub_ps(_mm512_loadu_ps(c->x + k), _mm512_set1_ps(rims->center[0]));
    __m512 dy = _mm512_sub_ps(_mm512_loadu_ps(c->y + k), _mm512_set1_ps(rims->center[1]));
    __m512 d = _mm512_fmadd_ps(dx, dx, _mm512_mul_ps(dy, dy));
    if (flat) return d;
    __m512 dz = _mm512_sub_ps(_mm512_loadu_ps(c->z + k), _mm512_set1_ps(rims->center[2]));
    return _mm512_fmadd_ps(dz, dz, d);
}

/* Which of sixteen are not beyond a rim; and in *nearest how near any is to it. */
WIDE INLINE __mmask16 sixteen_within(__m512 d, __m512 most2, __m512 *nearest)
{
    *nearest = _mm512_range_ps(*nearest, _mm512_sub_ps(d, most2),
                               2 | 2 << 2); /* the one of which the absolute value is less; not NaN, where nobody stands */
    return _mm512_cmp_ps_mask(d, most2, _CMP_LE_OQ);
}

WIDE INLINE uint64_t wide_due(const struct aoi__page *page, const struct rims *rims, uint32_t tiers, const uint64_t *turn, __m512 *nearest, bool flat,
                              bool whole)
{
    const struct columns c = columns_of(page, flat);
    __m512 d[4] = {sixteen_distances(&c, 0, rims, flat), sixteen_distances(&c, 16, rims, flat)};
    if (whole) d[2] = sixteen_distances(&c, 32, rims, flat), d[3] = sixteen_distances(&c, 48, rims, flat);
    uint64_t due = turn[tiers];
    for (uint32_t t = tiers; t-- > 0;) {
        __m512 most2 = _mm512_set1_ps(rims->most2[t]);
        __mmask16 a = sixteen_within(d[0], most2, nearest), b = sixteen_within(d[1], most2, nearest);
        uint64_t ring = whole ? all_joined(a, b, sixteen_within(d[2], most2, nearest), sixteen_within(d[3], most2, nearest)) : joined(a, b);
        due ^= (due ^ turn[t]) & ring;
    }
    return due;
}

WIDE INLINE uint64_t wide_due_page(const struct aoi__page *page, const struct rims *rims, const struct aoi__rings *r, uint32_t number,
                                   __m512 *nearest, bool flat)
{
    if (page->n > AOI__HALF) return wide_due(page, rims, r->n, aoi__turns(r, number), nearest, flat, true);
    return page->n == 0 ? 0 : wide_due(page, rims, r->n, aoi__turns(r, number), nearest, flat, false);
}

WIDE INLINE void wide_sift_by(const struct aoi__sieve *s, uint32_t n, const uint64_t *told, const struct aoi__rings *r, struct aoi__sifted *out,
                              bool flat, bool tiered, bool one_sign)
{
    const struct wider_box box = wider_box_of(s);
    struct sifting g = sift_begin(s, told, out);
    __m512 nearest = _mm512_set1_ps(INFINITY);
    struct rims rims;
    if (tiered) rims = rims_of(s, r);
    for (uint32_t i = 0, known = s->n; i < n; i++) {
        const struct aoi__page *page = &g.pool[g.number[i]];
        uint64_t in = i < known ? wide_inside(page, &box, flat, one_sign) : g.inside[i];
        if (tiered) g.due[i] = wide_due_page(page, &rims, r, g.number[i], &nearest, flat);
        judge(&g, i, page, in);
    }
    sift_end(&g, out);
    if (tiered && _mm512_cmp_ps_mask(nearest, _mm512_set1_ps(rims.error), _CMP_NGT_UQ) != 0) due_exactly(s, n, r, out);
}

WIDE INLINE void wide_sift_pages(const struct aoi__sieve *s, uint32_t n, const uint64_t *told, const struct aoi__rings *r, struct aoi__sifted *out,
                                 bool flat, bool tiered)
{
    if (is_of_one_sign(s))
        wide_sift_by(s, n, told, r, out, flat, tiered, true);
    else
        wide_sift_by(s, n, told, r, out, flat, tiered, false);
}

WIDE static void wide_sift(const struct aoi__sieve *s, uint32_t n, const uint64_t *told, const struct aoi__rings *r, struct aoi__sifted *out)
{
    if (r == NULL && s->dims == 2)
        wide_sift_pages(s, n, told, r, out, true, false);
    else if (r == NULL)
        wide_sift_pages(s, n, told, r, out, false, false);
    else if (s->dims == 2)
        wide_sift_pages(s, n, told, r, out, true, true);
    else
        wide_sift_pages(s, n, told, r, out, false, true);
}

WIDE static uint64_t wide_touch(const struct aoi__sieve *s, const struct aoi__boxes *boxes)
{
    uint64_t touch = 0;
    for (uint32_t i = 0; i < boxes->n; i += 16) {
        __mmask16 is = 0xFFFF;
        for (uint32_t a = 0; a < s->dims; a++) {
            is = _mm512_mask_cmp_ps_mask(is, _mm512_loadu_ps(boxes->hi[a] + i), _mm512_set1_ps(s->lo[a]), _CMP_GE_OQ);
            is = _mm512_mask_cmp_ps_mask(is, _mm512_loadu_ps(boxes->lo[a] + i), _mm512_set1_ps(s->hi[a]), _CMP_LE_OQ);
        }
        touch |= (uint64_t)is << i;
    }
    return touch;
}

static const struct aoi__kernels avx512 = {
    .box = wide_box_kernel, .sift = wide_sift, .wait = avx2_wait, .sphere = avx2_sphere, .touch = wide_touch, .rows = wide_rows, .place = wide_place};

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vbmi2");
}
#endif

const struct aoi__kernels *aoi__kernels_nth(uint32_t i)
{
#if defined(__x86_64__)
    if (has_avx512() && i-- == 0) return &avx512;
    if (has_avx2() && i-- == 0) return &avx2;
#endif
    return i == 0 ? &plain : NULL;
}
