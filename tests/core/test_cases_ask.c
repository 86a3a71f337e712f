/* test_cases_ask.c: who is near, who sees it, how many are where, and why; and what a crowd may cost. */
#include <math.h>
#include <time.h>

#include "rig.h"

enum { P = 1, Q = 2, U = 1000, V = 1001, M = 21 };

/* ------------------------------------------------------------------------------------------------------------- nearest, observers, density */

CASE(the_nearest_come_first_and_of_equally_near_ones_the_lower_id)
{
    for (uint64_t id = 1; id <= 8; id++) rig_add(r, id, id % 2 ? 3 : -3, id % 4 < 2 ? 4 : -4, 0);
    rig_add(r, 9, 1, 1, 0);
    rig_add(r, 10, 1000, 0, 0);
    rig_layers(r, 9, 2);
    const float at[3] = {0, 0, 0}, away[3] = {-5000, 77, 0};
    assert_int_equal(model_query_nearest(&r->m, r->s, at, 0, 0, 4), 4);
    assert_int_equal(r->m.rows.id[0], 9);
    assert_int_equal(r->m.rows.id[1], 1);
    assert_int_equal(model_query_nearest(&r->m, r->s, at, 0, 0, 100), 10);
    assert_int_equal(model_query_nearest(&r->m, r->s, at, 5, 0, 100), 9); /* 3, 4, 5: the edge counts */
    assert_int_equal(model_query_nearest(&r->m, r->s, at, nextafterf(5, 0), 0, 100), 1);
    assert_int_equal(model_query_nearest(&r->m, r->s, at, 0, 2, 100), 1);
    assert_int_equal(model_query_nearest(&r->m, r->s, away, 0, 0, 3), 3);
    assert_int_equal(model_query_nearest(&r->m, r->s, away, 10, 0, 3), 0);
    assert_int_equal(model_query_nearest(&r->m, r->s, at, 0, 0, 0), AOI_EINVAL);
    assert_int_equal(model_query_nearest(&r->m, r->s, at, -1, 0, 1), AOI_EINVAL);
    assert_int_equal(model_query_nearest(&r->m, r->s, (const float[3]){NAN, 0, 0}, 0, 0, 1), AOI_EINVAL);
}

CASE(nearest_finds_them_however_empty_the_space_is_between)
{
    rig_space(r, &(struct aoi_settings){.dimensions = 3, .cell_size = 1}, NULL);
    const float at[3] = {1000, 1000, 1000};
    assert_int_equal(model_query_nearest(&r->m, r->s, at, 0, 0, 5), 0);
    for (uint64_t id = 1; id <= 300; id++) {
        float far_away = id % 7 == 0 ? AOI_COORD_MAX : 20;
        struct aoi_entity e = {
            .id = id, .pos = {far_away * (float)(id % 3), -far_away * (float)(id % 2), (float)(id % 11)}, .appeal = id % 10 == 0 ? 5 : 0};
        for (int a = 0; a < 2; a++) e.pos[a] = e.pos[a] > AOI_COORD_MAX ? AOI_COORD_MAX : e.pos[a];
        assert_int_equal(model_entity_add(&r->m, r->s, 1, AOI_ADD_NEW, &e), AOI_OK);
    }
    static const size_t k[] = {1, 2, 10, 100, 299, 300, 301};
    for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
        assert_int_equal(model_query_nearest(&r->m, r->s, at, 0, 0, k[i]), k[i] < 300 ? k[i] : 300);
        assert_true(model_query_nearest(&r->m, r->s, (const float[3]){0, 0, 0}, 25, 0, k[i]) > 0);
    }
}

CASE(observers_are_the_players_that_were_told_page_by_page)
{
    rig_add(r, M, 0, 0, 10);
    for (uint64_t p = 1; p <= 30; p++) {
        rig_add(r, 100 + p, (float)p, 0, (float)p + 1);
        rig_subscribe(r, p, 100 + p);
    }
    rig_subscribe(r, 31, M); /* its own player does not see it */
    assert_int_equal(model_query_observers(&r->m, r->s, M, 7), 0);
    rig_flush(r);
    assert_int_equal(model_query_observers(&r->m, r->s, M, 7), 30);
    rig_move(r, M, 5000, 0);
    assert_int_equal(model_query_observers(&r->m, r->s, M, 1), 30); /* told, not true */
    rig_flush(r);
    assert_int_equal(model_query_observers(&r->m, r->s, M, 100), 0);
    assert_int_equal(model_query_observers(&r->m, r->s, 77, 100), AOI_ENOENTITY);
}

CASE(a_box_takes_memory_for_what_it_finds_not_for_all_that_might_stand_in_its_cells)
{
    struct aoi_rows rows = {0};
    for (uint64_t id = 1; id <= 2000; id++) rig_add(r, id, (float)id * 40, 0, 0);
    const float min[3] = {0, -1, 0}, max[3] = {100000, 1, 0};
    assert_int_equal(aoi_query_box(rig_core(r), min, max, 0, 0, 10, &rows), AOI_OK);
    assert_int_equal(rows.n, 10);
    assert_true(rows.cap < 100);
    assert_int_equal(aoi_query_box(rig_core(r), min, max, 0, 0, 5000, &rows), AOI_OK);
    assert_int_equal(rows.n, 2000);
    assert_true(rows.cap < 4000);
    aoi_rows_clear(&rows);
}

CASE(density_counts_on_a_raster_and_an_inner_line_counts_to_the_higher_side)
{
    for (uint64_t x = 0; x <= 10; x++)
        for (uint64_t y = 0; y <= 10; y++) rig_add(r, 1 + 11 * y + x, (float)x, (float)y, 0);
    rig_add(r, 500, 10.001f, 5, 0);
    rig_appeal(r, 500, 50);
    rig_layers(r, 13, 2); /* at (1,1) */
    uint32_t counts[8] = {0};
    const float low[3] = {0, 0, 0}, high[3] = {10, 10, 0};
    assert_int_equal(aoi_query_density(rig_core(r), low, high, 0, 2, 2, counts), AOI_OK);
    assert_int_equal(counts[0], 25);
    assert_int_equal(counts[1], 30); /* 5 counts to the right, and 10 is inside */
    assert_int_equal(counts[2], 30);
    assert_int_equal(counts[3], 36);
    static const uint32_t raster[][2] = {{1, 1}, {2, 2}, {3, 7}, {256, 256}, {10, 1}, {7, 100}};
    for (size_t i = 0; i < sizeof raster / sizeof *raster; i++) {
        assert_int_equal(model_query_density(&r->m, r->s, low, high, 0, raster[i][0], raster[i][1]), 121);
        assert_int_equal(model_query_density(&r->m, r->s, low, high, 1, raster[i][0], raster[i][1]), 120);
        assert_int_equal(model_query_density(&r->m, r->s, (const float[3]){2.5f, -50, 0}, (const float[3]){30, 3, 0}, 0, raster[i][0], raster[i][1]),
                         32);
        assert_int_equal(model_query_density(&r->m, r->s, (const float[3]){5, 5, 0}, (const float[3]){5, 5, 0}, 0, raster[i][0], raster[i][1]), 1);
        assert_int_equal(
            model_query_density(&r->m, r->s, (const float[3]){-3e38f, -3e38f, 0}, (const float[3]){3e38f, 3e38f, 0}, 0, raster[i][0], raster[i][1]),
            122);
    }
    assert_int_equal(model_query_density(&r->m, r->s, low, high, 0, 0, 1), AOI_EINVAL);
    assert_int_equal(model_query_density(&r->m, r->s, low, high, 0, 1, 257), AOI_EINVAL);
    assert_int_equal(model_query_density(&r->m, r->s, high, low, 0, 1, 1), AOI_EINVAL);
}

/* ------------------------------------------------------------------------------------------------------------- why */

CASE(why_gives_the_rule_that_a_person_would_give_in_ten_situations)
{
    rig_set(r, (struct aoi_space_change){.has_leave_margin = true, .leave_margin = 5, .has_min_stay_ms = true, .min_stay_ms = 100});
    rig_add(r, U, 0, 0, 10);
    rig_add(r, M, 8, 0, 0);
    rig_open(r, P, (struct aoi_player_settings){0});

    struct aoi_why why = rig_why(r, P, M); /* 1: the player has no eyes */
    assert_true(why.rule == AOI_RULE_BLIND && !why.seen && why.unit == 0);

    rig_subscribe(r, P, U);
    why = rig_why(r, P, M); /* 2: within the radius; to be told at the next flush */
    assert_true(why.rule == AOI_RULE_RANGE && why.seen && !why.told && why.unit == U && why.distance == 8 && why.radius == 10);
    r->m.now_ms += 5;
    rig_flush(r);
    assert_true(rig_why(r, P, M).told);

    rig_move(r, M, 13, 0);
    why = rig_why(r, P, M); /* 3: out of the radius, but within the margin */
    assert_true(why.rule == AOI_RULE_LEAVE_MARGIN && why.seen && why.margin == 5 && why.distance == 13 && why.unit == U);

    rig_move(r, M, 50, 0);
    r->m.now_ms += 40;
    why = rig_why(r, P, M); /* 4: far away, but it came only 40 ms ago */
    assert_true(why.rule == AOI_RULE_MIN_STAY && why.seen && why.stay_left_ms == 60);

    r->m.now_ms += 60;
    why = rig_why(r, P, M); /* 5: too far */
    assert_true(why.rule == AOI_RULE_FAR && !why.seen && why.told && why.distance == 50);
    rig_flush(r);

    rig_move(r, M, 2, 0);
    rig_layers(r, M, 4);
    rig_open(r, P, (struct aoi_player_settings){.mask = 3});
    why = rig_why(r, P, M); /* 6: it would be in sight, but the mask does not let it through */
    assert_true(why.rule == AOI_RULE_MASK && !why.seen && why.layers == 4 && why.mask == 3);

    rig_override(r, P, M, AOI_OVERRIDE_SHOW);
    assert_true(rig_why(r, P, M).rule == AOI_RULE_SHOW && rig_why(r, P, M).seen); /* 7: shown, mask or not */
    rig_override(r, P, M, AOI_OVERRIDE_HIDE);
    assert_true(rig_why(r, P, M).rule == AOI_RULE_HIDE && !rig_why(r, P, M).seen); /* 8: hidden, before its mask is asked for */
    rig_override(r, P, M, AOI_OVERRIDE_NONE);
    rig_layers(r, M, 1);

    for (uint64_t id = 1; id <= 3; id++) rig_add(r, id, (float)id / 2, 0, 0);
    rig_open(r, P, (struct aoi_player_settings){.max_view = 3});
    why = rig_why(r, P, M); /* 9: three others are nearer */
    assert_true(why.rule == AOI_RULE_RANK && !why.seen && why.rank == 4 && why.max_view == 3);

    rig_open(r, P, (struct aoi_player_settings){.max_enter_per_flush = 2});
    why = rig_why(r, P, M); /* 10: seen, but others enter first */
    assert_true(why.rule == AOI_RULE_ENTER_BUDGET && why.seen && !why.told);
    model_converge(&r->m, r->s);
    assert_true(rig_why(r, P, M).rule == AOI_RULE_RANGE);

    assert_int_equal(model_subscribe(&r->m, r->s, 1, P, U, true), AOI_OK); /* and of units and viewports */
    assert_true(rig_why(r, P, U).rule == AOI_RULE_INCLUDE_SELF);
    rig_viewport(r, P, 900, 900, 1100, 1100);
    rig_add(r, 7, 1050, 1000, 0);
    rig_appeal(r, 7, 1);
    why = rig_why(r, P, 7);
    assert_true(why.rule == AOI_RULE_RANGE && why.by_viewport && why.distance == 50 && why.appeal == 1);
    rig_tiers(r, "60:2 *:5");
    assert_int_equal(rig_why(r, P, 7).period, 2);
}

CASE(why_of_what_is_unknown_is_an_error)
{
    struct aoi_why why;
    rig_add(r, U, 0, 0, 10);
    assert_int_equal(model_query_why(&r->m, r->s, P, U, &why), AOI_ENOPLAYER);
    rig_subscribe(r, P, U);
    assert_int_equal(model_query_why(&r->m, r->s, P, M, &why), AOI_ENOENTITY);
    assert_int_equal(model_query_why(&r->m, r->s, P, U, &why), AOI_OK); /* a unit does not see itself */
    assert_true(why.rule == AOI_RULE_FAR && why.own_unit);
    rig_add(r, M, 500, 0, 0);
    assert_true(rig_why(r, P, M).rule == AOI_RULE_FAR && !rig_why(r, P, M).own_unit);
    assert_int_equal(model_subscribe(&r->m, r->s, 1, P, U, true), AOI_OK);
    assert_true(rig_why(r, P, U).rule == AOI_RULE_INCLUDE_SELF && !rig_why(r, P, U).own_unit);
}

/* ------------------------------------------------------------------------------------------------------------- zoomed out */

CASE(a_viewport_over_the_whole_map_shows_the_great_cities_by_mask_and_priority)
{
    enum { CITY = 2, CITIES = 200, SHOWN = 30 };
    for (uint64_t id = 1; id <= 3000; id++) {
        struct aoi_entity e = {.id = id, .pos = {(float)(id * 7919 % 10000), (float)(id * 104729 % 10000), 0}};
        if (id <= CITIES) {
            e.layers = CITY;
            e.priority = (uint32_t)(id * 31 % 1009); /* its population */
        }
        assert_int_equal(model_entity_add(&r->m, r->s, 1, AOI_ADD_NEW, &e), AOI_OK);
    }
    rig_open(r, P, (struct aoi_player_settings){.mask = CITY, .max_view = SHOWN});
    rig_viewport(r, P, 0, 0, 10000, 10000);
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->enters, SHOWN);
    uint32_t least = UINT32_MAX, better = 0;
    const struct model_player *p = model_player(r->s, P);
    for (uint32_t i = 0; i < p->told.n; i++) {
        uint32_t priority = model_entity(r->s, p->told.at[i].id)->priority;
        if (priority < least) least = priority;
    }
    for (uint64_t id = 1; id <= CITIES; id++) better += model_entity(r->s, id)->priority > least;
    assert_true(better < SHOWN);
    for (uint64_t id = CITIES + 1; id <= 3000; id++) rig_move(r, id, 1, 1);
    rig_flush(r);
    assert_int_equal(r->told.n, 0); /* armies are no news to it */
}

/* ------------------------------------------------------------------------------------------------------------- cost */

struct herd {
    struct aoi_world *world;
    struct aoi_space *space;
    uint64_t told;
    uint32_t n;
};

static void drop(void *ctx, const struct aoi_delta *delta)
{
    *(uint64_t *)ctx += delta->enters.n + delta->leave_n + delta->updates.n;
}

static void herd_init(struct herd *h, enum aoi_index index, uint32_t n, uint32_t players, float radius, const struct aoi_settings *settings)
{
    struct aoi_limits limits = rig_limits();
    struct aoi_sink sink = {.ctx = &h->told, .deliver = drop};
    *h = (struct herd){.world = aoi_world_new(&limits, &sink), .n = n};
    struct aoi_settings set = *settings;
    set.index = index;
    assert_int_equal(aoi_space_create(h->world, 1, 1, &set, false), AOI_OK);
    h->space = aoi_space_find(h->world, 1);
    for (uint64_t id = 1; id <= n; id++) {
        struct aoi_entity e = {.id = id, .radius = radius};
        assert_int_equal(aoi_entity_add(h->space, 1, AOI_ADD_NEW, &e), AOI_OK);
        if (id <= players) assert_int_equal(aoi_subscribe(h->space, 1, id, id, false), AOI_OK);
    }
}

static void herd_move(struct herd *h, uint32_t round, float spread)
{
    for (uint32_t id = 1; id <= h->n; id++) {
        uint32_t k = (id * 2654435761u + round * 40503u) >> 8;
        const float pos[3] = {(float)(k % 4096) / 4096 * spread, (float)(k / 4096) / 4096 * spread, 0};
        assert_int_equal(aoi_entity_move(h->space, 1, id, pos, NULL), AOI_OK);
    }
}

static double herd_flush(struct herd *h, uint64_t now_ms)
{
    struct timespec from, to;
    struct aoi_flush_info info = {.now_ms = now_ms};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    aoi_flush(h->space, &info);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
}

CASE(a_camera_of_presence_only_that_slides_costs_the_rims)
{
    enum { N = 200000, SLIDES = 10 };
    struct herd h;
    herd_init(&h, r->index, N, 0, 0, &(struct aoi_settings){0});
    herd_move(&h, 1, 6400);
    const struct aoi_player_settings set = {.presence_only = true};
    assert_int_equal(aoi_player_open(h.space, 1, P, &set), AOI_OK);
    double first = 0, all = 0;
    for (uint32_t i = 0; i <= SLIDES; i++) { /* over most of a large map, by less than a cell each time */
        const float min[3] = {(float)i * 10, 100, 0}, max[3] = {(float)i * 10 + 6000, 6000, 0};
        assert_int_equal(aoi_viewport_set(h.space, 1, P, min, max), AOI_OK);
        double s = herd_flush(&h, 1000);
        if (i == 0) first = s; /* it tells everything */
        if (i > 1) all += s;   /* the second makes masks of what was told */
    }
    assert_true(h.told > N / 2);
    if (r->index == AOI_INDEX_GRID) assert_true(all / (SLIDES - 1) * 10 < first);
    aoi_world_free(h.world);
}

CASE(two_thousand_in_a_crowd_with_max_view_tell_a_hundred_each_and_allocate_nothing)
{
    enum { N = 2000, K = 100 };
    const struct aoi_settings set = {.max_view = K, .leave_margin = 1, .min_stay_ms = 200, .tiers = {.n = 1, .at = {{1, 1}}, .beyond = 3}};
    struct herd h;
    herd_init(&h, r->index, N, N, 50, &set);
    unsigned long long allocations = 0;
    for (uint32_t i = 0; i < 24; i++) {
        herd_move(&h, i % 4, 4);
        unsigned long long before = mem_alloc_count();
        herd_flush(&h, 1000 + i * 50);
        if (i >= 16) allocations += mem_alloc_count() - before;
        struct aoi_stats stats = {0};
        aoi_space_stats(h.space, &stats);
        assert_int_equal(stats.pairs, N * K);
    }
    assert_int_equal(allocations, 0);
    for (uint32_t i = 0; i < 3; i++) herd_flush(&h, 2300 + i * 50);
    uint64_t told = h.told;
    herd_move(&h, 3, 4); /* where they are */
    herd_flush(&h, 2600);
    assert_int_equal(h.told, told);
    herd_move(&h, 0, 0); /* all at one point, and apart */
    herd_flush(&h, 3000);
    herd_move(&h, 0, 0);
    herd_flush(&h, 3050);
    herd_move(&h, 1, 1000000);
    herd_flush(&h, 4000);
    aoi_validate(h.world);
    aoi_world_free(h.world);
}

/* How many times as long a flush of one player takes with four times the candidates; best of some rounds. */
static double growth(enum aoi_index index, float spread, bool priorities)
{
    double best[2] = {1e9, 1e9};
    for (int large = 0; large < 2; large++) {
        const struct aoi_settings set = {.max_view = 100, .max_enter_per_flush = 50};
        struct herd h;
        herd_init(&h, index, large ? 80000 : 20000, 1, 1000, &set);
        for (uint32_t id = 1; priorities && id <= h.n; id++) assert_int_equal(aoi_entity_set_priority(h.space, 1, id, id), AOI_OK);
        for (uint32_t i = 0; i < 6; i++) {
            herd_move(&h, i, spread);
            double s = herd_flush(&h, 1000);
            if (i > 0 && s < best[large]) best[large] = s;
        }
        aoi_world_free(h.world);
    }
    return best[1] / best[0];
}

CASE(choosing_the_best_of_a_crowd_costs_what_the_crowd_numbers_in_any_order)
{
    assert_true(growth(r->index, 100, false) < 12); /* four times as many; a square would be 16 */
    assert_true(growth(r->index, 100, true) < 12);
    assert_true(growth(r->index, 0, false) < 12); /* all equally near */
}

CASE(a_cast_costs_nothing_to_those_who_do_not_see_it)
{
    struct herd h;
    herd_init(&h, r->index, 4000, 4000, 20, &(struct aoi_settings){0});
    herd_move(&h, 1, 4000);
    herd_flush(&h, 1000);
    double all = 0, cast = 0;
    for (uint32_t i = 0; i < 3; i++) {
        herd_move(&h, i, 4000);
        all += herd_flush(&h, 1000);
    }
    for (uint32_t i = 0; i < 30; i++) {
        assert_int_equal(aoi_publish_from(h.space, 1, 1 + i, "bang", 4), AOI_OK);
        cast += herd_flush(&h, 1000);
    }
    assert_true(cast / 30 * 20 < all / 3);
    aoi_world_free(h.world);
}

CASE(a_warm_flush_with_casts_castles_overrides_and_observed_allocates_nothing)
{
    enum { N = 300 };
    const struct aoi_settings set = {.max_view = 40, .max_enter_per_flush = 30, .leave_margin = 3, .min_stay_ms = 20, .tiers = {.beyond = 2}};
    struct herd h;
    herd_init(&h, r->index, N, 100, 15, &set);
    for (uint64_t id = 1; id <= N; id++) {
        struct aoi_entity e = {.id = id, .radius = 15, .appeal = id % 30 == 0 ? 50 : 0, .report_observed = id % 3 == 0, .priority = (uint32_t)id % 4};
        assert_int_equal(aoi_entity_add(h.space, 1, AOI_ADD_UPSERT, &e), AOI_OK);
        if (id > 100) continue;
        assert_int_equal(aoi_player_override(h.space, 1, id, id + 1, AOI_OVERRIDE_SHOW), AOI_OK);
        assert_int_equal(aoi_player_override(h.space, 1, id, id + 2, AOI_OVERRIDE_HIDE), AOI_OK);
    }
    unsigned long long allocations = 0;
    for (uint32_t i = 0; i < 40; i++) {
        herd_move(&h, i % 8, 100); /* the same eight scenes again and again */
        for (uint64_t id = 1; id <= 20; id++) assert_int_equal(aoi_publish_from(h.space, 1, id * 7, "bang", 4), AOI_OK);
        if (i % 8 == 4) assert_int_equal(aoi_resync(h.space, 1, 0), AOI_OK);
        unsigned long long before = mem_alloc_count();
        herd_flush(&h, 1000 + i * 10);
        if (i >= 24) allocations += mem_alloc_count() - before;
    }
    assert_int_equal(allocations, 0);
    aoi_world_free(h.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_come_first_and_of_equally_near_ones_the_lower_id),
        cmocka_unit_test(nearest_finds_them_however_empty_the_space_is_between),
        cmocka_unit_test(observers_are_the_players_that_were_told_page_by_page),
        cmocka_unit_test(a_box_takes_memory_for_what_it_finds_not_for_all_that_might_stand_in_its_cells),
        cmocka_unit_test(density_counts_on_a_raster_and_an_inner_line_counts_to_the_higher_side),
        cmocka_unit_test(why_gives_the_rule_that_a_person_would_give_in_ten_situations),
        cmocka_unit_test(why_of_what_is_unknown_is_an_error),
        cmocka_unit_test(a_viewport_over_the_whole_map_shows_the_great_cities_by_mask_and_priority),
        cmocka_unit_test(a_camera_of_presence_only_that_slides_costs_the_rims),
        cmocka_unit_test(two_thousand_in_a_crowd_with_max_view_tell_a_hundred_each_and_allocate_nothing),
        cmocka_unit_test(choosing_the_best_of_a_crowd_costs_what_the_crowd_numbers_in_any_order),
        cmocka_unit_test(a_cast_costs_nothing_to_those_who_do_not_see_it),
        cmocka_unit_test(a_warm_flush_with_casts_castles_overrides_and_observed_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
