/* test_kernel.c: what all kernels that this processor can run find and write is what the plain ones do, also where a float is not sure.
 *
 * AOI_SEED=n replays a run: the seed is printed at the start.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/kernel.h"
#include "core/space.h"
#include "../random.h"

#define PAGES 9
#define ROUNDS 3000

/* Pages made by hand, and what is asked of them. */
struct rig {
    struct random r;
    struct aoi__blocks dir;
    struct aoi__page page[PAGES];
    struct aoi__sieve sieve;
    double center[3];
    struct aoi__rings rings;
    struct aoi__boxes boxes;
    double most2[AOI_TIERS_MAX];
    uint64_t turn[PAGES * (AOI_TIERS_MAX + 1)];
    uint32_t number[PAGES];
    uint64_t told[PAGES], late[PAGES];
    uint32_t known; /* of so many pages what is inside is found, of the others it is given */
};

/* What came out of a kernel. */
struct found {
    uint64_t inside[PAGES], want[PAGES], due[PAGES], late[PAGES];
    struct aoi__differ differ[PAGES + 1];
    struct aoi__sifted sifted;
    bool left;
    struct aoi_rows rows;
};

/* 0 .. 1 */
static double unit(struct rig *g)
{
    return (double)(random_u64(&g->r) >> 11) / 9007199254740992.0;
}

/* Whole halves around the origin, so that much lies just on a rim; or anywhere, where squares are rounded. */
static float coordinate(struct rig *g, float origin, bool halves)
{
    return origin + (halves ? (float)random_below(&g->r, 80) / 2 - 20 : (float)(unit(g) * 40 - 20));
}

static uint64_t some(struct rig *g)
{
    uint64_t a = random_u64(&g->r), b = random_u64(&g->r);
    return a & b;
}

static void make_page(struct rig *g, uint32_t p, const float origin[3], bool halves)
{
    struct aoi__page *page = &g->page[p];
    uint32_t dims = g->sieve.dims == 3 ? 3 : 2;
    page->cap = (uint8_t)(8 * (1 + random_below(&g->r, 8)));
    page->n = (uint8_t)random_below(&g->r, page->cap + 1u);
    page->x = mem_zalloc(page->cap * (dims + 4) * sizeof(float) + AOI__PAST);
    page->used = (random_u64(&g->r) | some(g)) & (page->n == 64 ? UINT64_MAX : ((uint64_t)1 << page->n) - 1);
    page->moved = some(g);
    page->moved |= some(g);
    if (random_below(&g->r, 4) == 0) page->moved = 0;
    page->state = random_below(&g->r, 8) == 0 ? some(g) : 0;
    page->any = 7;
    page->all = random_below(&g->r, 4) == 0 ? 4 : 3;
    page->mixed = random_below(&g->r, 3) == 0;
    page->high = random_below(&g->r, 2) == 0 ? (uint32_t)random_u64(&g->r) : 0;
    for (uint32_t k = 0; k < page->cap; k++) {
        bool is = page->used >> k & 1;
        for (uint32_t a = 0; a < dims; a++) page->x[a * page->cap + k] = is ? coordinate(g, origin[a], halves) : NAN;
        aoi__page_set_id(page, dims, k, random_u64(&g->r) >> (page->mixed ? 0 : 32) | (uint64_t)page->high << 32);
        aoi__page_extra(page, dims)[k] = (uint32_t)random_u64(&g->r);
    }
    for (uint32_t a = 0; a < dims; a++) page->at[a] = (int32_t)random_below(&g->r, 8) - 4;
    g->told[p] = page->used & random_u64(&g->r);
    if (random_below(&g->r, 4) == 0) g->told[p] &= random_below(&g->r, 2) == 0 ? UINT32_MAX : UINT64_MAX << 32;
    g->late[p] = g->told[p] & some(g);
}

/* Three tiers at most; whose turn it is in each. */
static void make_tiers(struct rig *g, bool halves)
{
    g->rings = (struct aoi__rings){.n = (uint32_t)random_below(&g->r, 4), .most2 = g->most2, .turn = g->turn};
    float distance = 0;
    for (uint32_t t = 0; t < g->rings.n; t++) {
        if (!halves && random_below(&g->r, 50) == 0) distance = 1e20f; /* too far for floats */
        distance += halves ? 1 + (float)random_below(&g->r, 10) : (float)unit(g) * 10;
        g->most2[t] = (double)distance * (double)distance;
    }
    for (uint32_t i = 0; i < PAGES * (g->rings.n + 1); i++) g->turn[i] = random_below(&g->r, 4) == 0 ? UINT64_MAX : random_u64(&g->r);
}

static void make_boxes(struct rig *g, const float origin[3], bool halves)
{
    g->boxes.n = (uint32_t)random_below(&g->r, AOI__BOXES + 1);
    for (uint32_t i = 0; i < AOI__BOXES; i++) {
        for (uint32_t a = 0; a < 3; a++) {
            float at = coordinate(g, origin[a], halves), half = (float)random_below(&g->r, 10);
            g->boxes.lo[a][i] = i < g->boxes.n ? at - half : NAN;
            g->boxes.hi[a][i] = i < g->boxes.n ? at + half : NAN;
        }
    }
}

static void make(struct rig *g)
{
    bool halves = random_below(&g->r, 2) == 0;
    float far = random_below(&g->r, 3) == 0 ? 16000000 : random_below(&g->r, 2) == 0 ? 1000 : 0, origin[3] = {far, -far, far / 2};
    g->sieve = (struct aoi__sieve){
        .pool = g->page,
        .page = g->number,
        .n = PAGES,
    };
    g->sieve.center = g->center;
    g->sieve.dims = 2 + (uint32_t)random_below(&g->r, 2);
    g->sieve.extra = random_below(&g->r, 2) == 0;
    g->known = (uint32_t)random_below(&g->r, PAGES + 1);
    g->sieve.radius = halves ? (double)random_below(&g->r, 20) : unit(g) * 20;
    for (uint32_t a = 0; a < 3; a++) {
        float at = coordinate(g, origin[a], halves), half = (float)random_below(&g->r, 20);
        g->sieve.lo[a] = at - half;
        g->sieve.hi[a] = at + half;
        g->center[a] = random_below(&g->r, 3) == 0 ? (double)at + unit(g) : (double)at; /* of a viewport it need not be a float */
    }
    for (uint32_t p = 0; p < PAGES; p++) {
        make_page(g, p, origin, halves);
        g->number[p] = p;
    }
    make_tiers(g, halves);
    make_boxes(g, origin, halves);
}

static void same_rows(const struct rig *g, const struct aoi_rows *a, const struct aoi_rows *b)
{
    assert_int_equal(a->n, b->n);
    if (a->n == 0) return;
    assert_memory_equal(a->id, b->id, a->n * sizeof *a->id);
    assert_memory_equal(a->x, b->x, a->n * sizeof *a->x);
    assert_memory_equal(a->y, b->y, a->n * sizeof *a->y);
    if (g->sieve.dims == 3) assert_memory_equal(a->z, b->z, a->n * sizeof *a->z);
    if (g->sieve.extra) assert_memory_equal(a->extra, b->extra, a->n * sizeof *a->extra);
}

/* To addresses of no alignment, just as many bytes as the rows take, behind which others stand. */
static void run_place(const struct rig *g, const struct aoi__kernels *k, struct aoi_rows *rows)
{
    size_t n = 0, at = 1;
    for (uint32_t p = 0; p < PAGES; p++) n += (uint32_t)__builtin_popcountll(g->told[p]);
    uint8_t *bytes = mem_alloc(1 + 24 * n);
    struct aoi_places to;
    void **column[] = {&to.y, &to.id, &to.extra, &to.x, &to.z};
    for (size_t i = 0; i < 5; at += (i == 1 ? 8 : 4) * n, i++) *column[i] = bytes + at;
    memset(bytes, 0x5A, 1 + 24 * n);
    k->place(&g->sieve, g->told, &to);
    rows->n = n;
    memcpy(rows->id, to.id, 8 * n);
    memcpy(rows->x, to.x, 4 * n);
    memcpy(rows->y, to.y, 4 * n);
    memcpy(rows->z, to.z, 4 * n);
    memcpy(rows->extra, to.extra, 4 * n);
    free(bytes);
}

static void run_sift(const struct rig *g, const struct aoi__kernels *k, const struct aoi__rings *r, struct found *out)
{
    struct aoi__sieve sieve = g->sieve;
    sieve.n = g->known;
    for (uint32_t p = g->known; p < PAGES; p++) out->inside[p] = g->page[p].used & g->late[(p + 1) % PAGES];
    k->sift(&sieve, PAGES, g->told, r, &out->sifted);
}

enum { BOX, SIFT, SPHERE, ROWS, PLACE, TOUCH, DUE, KINDS };

/* Every kernel in turn, each from the same start. */
static void run(const struct rig *g, const struct aoi__kernels *k, int which, struct found *out)
{
    memset(out->inside, 0, sizeof out->inside);
    memset(out->want, 0, sizeof out->want);
    memcpy(out->late, g->late, sizeof out->late);
    out->sifted = (struct aoi__sifted){.inside = out->inside, .want = out->want, .due = out->due, .differ = out->differ};
    out->rows.n = 0;
    out->left = false;
    for (uint32_t p = 0; p < PAGES && which == SPHERE; p++) out->inside[p] = g->page[p].used;
    switch (which) {
    case BOX: k->box(&g->sieve, out->inside); break;
    case SIFT: run_sift(g, k, NULL, out); break;
    case SPHERE: k->sphere(&g->sieve, out->inside); break;
    case ROWS: k->rows(&g->sieve, g->told, &out->rows); break;
    case PLACE: k->place != NULL ? run_place(g, k, &out->rows) : k->rows(&g->sieve, g->told, &out->rows); break;
    case TOUCH: out->inside[0] = k->touch(&g->sieve, &g->boxes); break;
    default:
        run_sift(g, k, &g->rings, out);
        out->left = k->wait(&g->sieve, g->told, out->late, &out->sifted);
        break;
    }
}

/* What came of one kernel of one kind, and of the plain one. */
static void compare(const struct rig *g, const struct found *plain, const struct found *fast)
{
    const struct aoi__sifted *a = &plain->sifted, *b = &fast->sifted;
    assert_memory_equal(plain->inside, fast->inside, sizeof plain->inside);
    assert_memory_equal(plain->want, fast->want, sizeof plain->want);
    assert_memory_equal(plain->late, fast->late, sizeof plain->late);
    assert_int_equal(plain->left, fast->left);
    assert_int_equal(a->wanted, b->wanted);
    assert_int_equal(a->restated, b->restated);
    assert_int_equal(a->all, b->all);
    assert_int_equal(a->differ_n, b->differ_n);
    for (uint32_t i = 0; i < a->differ_n; i++) {
        assert_int_equal(a->differ[i].page, b->differ[i].page);
        assert_int_equal(a->differ[i].places, b->differ[i].places);
    }
    same_rows(g, &plain->rows, &fast->rows);
}

static void all_kernels_do_what_the_plain_ones_do(void **state)
{
    (void)state;
    void *raw = NULL;
    struct rig *g = mem_realign(&raw, NULL, 0, sizeof *g);
    struct found plain = {0}, fast = {0};
    uint64_t rows = 0, late = 0, touched = 0, restated = 0;
    uint32_t last = 0;
    memset(g, 0, sizeof *g);
    g->r = random_start("kernels");
    while (aoi__kernels_nth(last + 1) != NULL) last++;
    print_message("%u kinds beside the plain one\n", last);
    aoi__rows_reserve(&plain.rows, PAGES * AOI__PAGE + 2 * AOI__LANES);
    aoi__rows_reserve(&fast.rows, PAGES * AOI__PAGE + 2 * AOI__LANES);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        make(g);
        for (int which = 0; which < KINDS; which++) {
            run(g, aoi__kernels_nth(last), which, &plain);
            for (uint32_t k = 0; k < last; k++) {
                run(g, aoi__kernels_nth(k), which, &fast);
                compare(g, &plain, &fast);
            }
            rows += plain.rows.n;
            late += which == DUE && plain.left;
            restated += which == SIFT && plain.sifted.restated != 0;
            touched += which == TOUCH ? (uint64_t)__builtin_popcountll(plain.inside[0]) : 0;
        }
        for (uint32_t p = 0; p < PAGES; p++) free(g->page[p].x);
    }
    assert_true(rows > ROUNDS && late > 100 && touched > ROUNDS && restated > 100); /* it was not all empty */
    aoi_rows_clear(&plain.rows);
    aoi_rows_clear(&fast.rows);
    free(raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_kernels_do_what_the_plain_ones_do)};
    return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}
