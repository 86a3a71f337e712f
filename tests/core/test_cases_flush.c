/* test_cases_flush.c: what a flush tells and what it does not: quiet spaces, skipped players, narrow rooms, full and last deltas, shapes and masks. */
#include <math.h>
#include <time.h>

#include "core/blocks.h"
#include "core/space.h"
#include "rig.h"

enum { P = 1, Q = 2, U = 1000, V = 1001 };

static void watch_from_origin(struct rig *r)
{
    rig_add(r, U, 0, 0, 10);
    rig_subscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "");
}

static uint64_t memory(struct rig *r)
{
    struct aoi_stats stats = {0};
    aoi_space_stats(rig_core(r), &stats);
    return stats.memory_bytes;
}

/* ------------------------------------------------------------------------------------------------------------- quiet spaces */

CASE(what_changes_nothing_leaves_a_space_quiet_and_a_quiet_space_tells_nothing)
{
    watch_from_origin(r);
    rig_add_by(r, 1, AOI_ADD_NEW, 5, 1, 1, 0, "a");
    assert_true(aoi_space_dirty(rig_core(r)));
    assert_string_equal(rig_tells(r, P), "E5(1,1)=a");
    assert_false(aoi_space_dirty(rig_core(r)));
    rig_move(r, 5, 1, 1);
    rig_radius(r, U, 10);
    assert_int_equal(model_entity_set_layers(&r->m, r->s, 1, 5, 1), AOI_OK);
    assert_int_equal(rig_move_by(r, 1, 5, NAN, 1), AOI_EINVAL);
    assert_int_equal(rig_move_by(r, 2, 5, 3, 1), AOI_EOWNER);
    assert_int_equal(rig_move_by(r, 1, 6, 3, 1), AOI_ENOENTITY);
    assert_int_equal(model_query_box(&r->m, r->s, (const float[3]){-9, -9, 0}, (const float[3]){9, 9, 0}, 0, 10), 2);
    assert_int_equal(model_query_view(&r->m, r->s, P, 10), 1);
    assert_false(aoi_space_dirty(rig_core(r)));
    for (int i = 0; i < 5; i++) {
        assert_false(rig_flush(r));
        assert_int_equal(r->told.n, 0);
    }
}

CASE(there_and_back_within_a_window_is_nothing_for_position_extra_layers_and_payload)
{
    rig_space(r, &(struct aoi_settings){.extra = true}, NULL);
    watch_from_origin(r);
    rig_add_by(r, 1, AOI_ADD_NEW, 5, 1, 1, 0, "a");
    rig_flush(r);
    const uint32_t one = 1, zero = 0;
    const float here[3] = {1, 1, 0}, there[3] = {2, 2, 0}, far_away[3] = {200, 2, 0};
    assert_int_equal(model_entity_move(&r->m, r->s, 1, 5, there, &one), AOI_OK);
    assert_int_equal(model_entity_move(&r->m, r->s, 1, 5, far_away, NULL), AOI_OK);
    rig_payload(r, 5, "b");
    rig_payload(r, 5, "");
    assert_int_equal(model_entity_set_layers(&r->m, r->s, 1, 5, 0), AOI_OK);
    rig_move(r, U, -500, 0);
    rig_move(r, U, 0, 0);
    rig_radius(r, U, 0);
    rig_radius(r, U, 10);
    assert_int_equal(model_entity_set_layers(&r->m, r->s, 1, 5, 1), AOI_OK);
    rig_payload(r, 5, "a");
    assert_int_equal(model_entity_move(&r->m, r->s, 1, 5, here, &zero), AOI_OK);
    rig_unsubscribe(r, P, U);
    rig_subscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "");
    assert_int_equal(model_entity_move(&r->m, r->s, 1, 5, here, &one), AOI_OK); /* the extra word alone */
    assert_string_equal(rig_tells(r, P), "U5(1,1)");
}

CASE(what_changes_out_of_sight_is_in_the_next_enter)
{
    watch_from_origin(r);
    rig_add_by(r, 1, AOI_ADD_NEW, 5, 50, 1, 0, "a");
    rig_flush(r);
    rig_payload(r, 5, "b");
    rig_move(r, 5, 60, 1);
    assert_int_equal(model_entity_set_layers(&r->m, r->s, 1, 5, 3), AOI_OK);
    assert_string_equal(rig_tells(r, P), "");
    rig_move(r, 5, 2, 1);
    assert_string_equal(rig_tells(r, P), "E5(2,1)=b"); /* and its layers, which the model compares */
}

CASE(who_moves_where_another_has_just_come_is_noticed_by_those_who_cannot_see_that_one)
{
    rig_open(r, P, (struct aoi_player_settings){.mask = 2});
    rig_viewport(r, P, 0, 0, 10, 10);
    rig_add(r, 7, -5, 5, 0); /* in no layer of the mask, in the next cell */
    rig_add(r, 8, 20, 5, 0);
    rig_layers(r, 8, 2);
    rig_flush(r);
    rig_move(r, 7, 25, 5);
    rig_move(r, 8, 5, 5);
    assert_string_equal(rig_tells(r, P), "E8(5,5)");
    rig_move(r, 7, -5, 5);
    rig_flush(r);
    rig_move(r, 7, 25, 5);
    rig_move(r, 8, 20, 5);
    assert_string_equal(rig_tells(r, P), "L8");
}

/* ------------------------------------------------------------------------------------------------------------- skipped players */

CASE(a_skipped_player_is_told_the_whole_gap_in_one_delta_and_the_others_at_once)
{
    watch_from_origin(r);
    assert_int_equal(model_subscribe(&r->m, r->s, 2, Q, U, false), AOI_OK);
    for (uint64_t id = 1; id <= 4; id++) rig_add(r, id, (float)id, 0, 0);
    rig_flush(r);
    r->m.room[2] = 0;
    for (int i = 1; i <= 10; i++) {
        rig_move(r, 1, 1, (float)i / 2);
        assert_true(rig_flush(r)); /* pending */
        assert_int_equal(rig_told(r, P)->updates, 1);
        assert_int_equal(r->told.n, 1);
    }
    rig_remove(r, 2);
    rig_flush(r);
    rig_add(r, 2, 2, 2, 0);
    rig_move(r, 3, 300, 0);
    rig_flush(r);
    rig_add(r, 5, 5, 5, 0);
    rig_flush(r);
    rig_remove(r, 5);
    rig_add(r, 6, 6, 6, 0);
    assert_true(rig_flush(r));
    r->m.room[2] = MODEL_NO_LIMIT;
    assert_false(rig_flush(r));
    assert_string_equal(rig_told(r, Q)->text, " L2 L3 E2(2,2) E6(6,6) U1(1,5)");
    assert_int_equal(r->told.n, 1);
    assert_false(rig_flush(r));
    assert_int_equal(r->told.n, 0);
}

CASE(two_hundred_in_a_crowd_go_on_while_one_connection_stalls_and_memory_stays_flat)
{
    enum { N = 200, STALLED = 17 };
    for (uint64_t id = 1; id <= N; id++) {
        rig_add(r, id, (float)(id % 14) * 0.35f, (float)(id / 14) * 0.33f, 50);
        assert_int_equal(model_subscribe(&r->m, r->s, id == STALLED ? 2 : 1, id, id, false), AOI_OK);
    }
    rig_flush(r);
    r->m.room[2] = 0;
    uint64_t before = 0;
    for (int round = 0; round < 60; round++) {
        for (uint64_t id = 1; id <= N; id++) rig_move(r, id, (float)(id % 14) * 0.35f + (float)(1 - round % 2) * 0.1f, (float)(id / 14) * 0.33f);
        assert_true(rig_flush(r));
        assert_int_equal(r->told.n, N - 1);
        assert_int_equal(rig_told(r, 1)->updates, N - 1);
        if (round == 10) before = memory(r);
    }
    assert_int_equal(memory(r), before);
    r->m.room[2] = MODEL_NO_LIMIT;
    assert_false(rig_flush(r));
    assert_int_equal(r->told.n, 1);
    assert_int_equal(rig_told(r, STALLED)->updates, N - 1);
}

CASE(a_slot_is_not_used_again_while_somebody_holds_its_former_tenant)
{
    watch_from_origin(r);
    assert_int_equal(model_subscribe(&r->m, r->s, 2, Q, U, false), AOI_OK);
    for (uint64_t k = 1; k <= 20; k++) rig_add(r, 2000 + k, 1, 1, 0);
    rig_flush(r);
    r->m.room[2] = 0;
    for (uint64_t round = 1; round <= 50; round++) {
        for (uint64_t k = 1; k <= 20; k++) {
            rig_remove(r, 2000 + (round - 1) * 20 + k);
            rig_add(r, 2000 + round * 20 + k, 2, 2, 0);
        }
        rig_flush(r);
        assert_int_equal(rig_told(r, P)->leaves, 20);
        assert_int_equal(rig_told(r, P)->enters, 20);
        aoi_validate(r->m.world);
    }
    r->m.room[2] = MODEL_NO_LIMIT;
    rig_flush(r);
    assert_int_equal(rig_told(r, Q)->leaves, 20);
    assert_int_equal(rig_told(r, Q)->enters, 20);
    assert_int_equal(rig_told(r, Q)->updates, 0);
}

CASE(what_was_removed_does_not_pile_up_even_while_a_player_is_skipped)
{
    watch_from_origin(r);
    assert_int_equal(model_subscribe(&r->m, r->s, 2, Q, U, false), AOI_OK);
    uint64_t before = 0;
    for (int skipped = 0; skipped < 2; skipped++) {
        r->m.room[2] = skipped ? 0 : MODEL_NO_LIMIT;
        for (uint64_t round = 0; round < 300; round++) {
            for (uint64_t k = 1; k <= 10; k++) rig_add(r, 5000 + round * 10 + k, (float)(round % 9), 1, 0);
            rig_flush(r);
            for (uint64_t k = 1; k <= 10; k++) rig_remove(r, 5000 + round * 10 + k);
            if (round % 3 == 0) rig_flush(r);
            if (round == 56) before = memory(r); /* of the same scene and state as the last round */
        }
        assert_int_equal(memory(r), before);
    }
}

CASE(the_round_starts_after_the_last_one_served_so_that_nobody_starves)
{
    enum { PLAYERS = 40 };
    rig_add(r, 1, 0, 0, 0);
    for (uint64_t p = 1; p <= PLAYERS; p++) rig_viewport(r, p, -10, -10, 10, 10);
    rig_flush(r);
    int served[PLAYERS + 1] = {0};
    r->m.drains[1] = true;
    for (int i = 0; i < 80; i++) {
        rig_move(r, 1, (float)(i % 2) + 1, 0);
        r->m.room[1] = 3 * (AOI_DELTA_OVERHEAD + AOI_UPDATE_BYTES); /* for three players */
        rig_flush(r);
        assert_int_equal(r->told.n, 3);
        for (uint32_t k = 0; k < r->told.n; k++) served[r->told.at[k].player]++;
    }
    for (uint64_t p = 1; p <= PLAYERS; p++) assert_true(served[p] == 6); /* 80 x 3 / 40 */
}

/* ------------------------------------------------------------------------------------------------------------- narrow rooms */

CASE(a_narrow_room_holds_back_enters_and_payloads_but_never_leaves_updates_and_layers)
{
    watch_from_origin(r);
    for (uint64_t id = 1; id <= 9; id++) rig_add(r, id, (float)id, 0, 0);
    r->m.room[1] = AOI_DELTA_OVERHEAD + 3 * AOI_ENTER_BYTES;
    assert_true(rig_flush(r));
    assert_int_equal(rig_told(r, P)->enters, 3);
    assert_true(aoi_space_dirty(rig_core(r)));
    assert_true(rig_flush(r));
    assert_int_equal(rig_told(r, P)->enters, 3);
    const struct model_player *p = model_player(r->s, P);
    uint64_t told[6];
    for (int i = 0; i < 6; i++) told[i] = p->told.at[i].id;
    r->m.room[1] = 1;
    rig_move(r, told[0], 500, 0);
    rig_move(r, told[1], 1.5f, 1);
    rig_payload(r, told[2], "b");
    assert_int_equal(model_entity_set_layers(&r->m, r->s, 1, told[3], 3), AOI_OK);
    assert_true(rig_flush(r));
    const struct rig_told *got = rig_told(r, P);
    assert_true(got->leaves == 1 && got->updates == 1 && got->layers == 1 && got->enters == 0 && got->payloads == 0);
    r->m.room[1] = MODEL_NO_LIMIT;
    assert_false(rig_flush(r));
    got = rig_told(r, P);
    assert_true(got->leaves == 0 && got->updates == 0 && got->layers == 0 && got->enters == 3 && got->payloads == 1);
}

CASE(an_enter_that_was_held_back_and_is_out_of_sight_by_then_is_never_told)
{
    watch_from_origin(r);
    rig_add(r, 5, 1, 1, 0);
    r->m.room[1] = 1;
    assert_true(rig_flush(r));
    assert_int_equal(r->told.n, 0); /* an empty delta is none */
    rig_move(r, 5, 100, 0);
    rig_flush(r); /* pending or not: where there is no room it is not always looked what waits for it */
    r->m.room[1] = MODEL_NO_LIMIT;
    assert_false(rig_flush(r));
    assert_int_equal(r->told.n, 0);
    rig_move(r, 5, 1, 1);
    assert_string_equal(rig_tells(r, P), "E5(1,1)");
}

/* ------------------------------------------------------------------------------------------------------------- full and last deltas */

CASE(a_resync_restates_the_view_whole_once_however_often_it_was_asked_for)
{
    watch_from_origin(r);
    assert_int_equal(model_player_open(&r->m, r->s, 1, Q, 0), AOI_OK);
    for (uint64_t id = 1; id <= 3; id++) rig_add(r, id, (float)id, 0, 0);
    rig_flush(r);
    rig_move(r, 1, 1, 1);
    rig_move(r, 2, 100, 1);
    rig_add(r, 4, 4, 0, 0);
    for (int i = 0; i < 3; i++) assert_int_equal(model_resync(&r->m, r->s, 1, P), AOI_OK);
    assert_string_equal(rig_tells(r, P), "full E1(1,1) E3(3,0) E4(4,0)");
    assert_int_equal(r->told.n, 1);
    assert_string_equal(rig_tells(r, P), "");
    assert_int_equal(model_resync(&r->m, r->s, 1, 0), AOI_OK); /* all of the owner's */
    rig_flush(r);
    assert_int_equal(r->told.n, 2);
    assert_string_equal(rig_told(r, Q)->text, " full"); /* an empty view is said too */
    assert_int_equal(model_resync(&r->m, r->s, 3, 0), AOI_OK);
    assert_int_equal(model_resync(&r->m, r->s, 1, 99), AOI_ENOPLAYER);
    rig_flush(r);
    assert_int_equal(r->told.n, 0);
}

CASE(what_does_not_fit_a_full_delta_counts_as_not_told_and_enters_later)
{
    watch_from_origin(r);
    for (uint64_t id = 1; id <= 9; id++) rig_add(r, id, (float)id, 0, 0);
    rig_flush(r);
    assert_int_equal(model_resync(&r->m, r->s, 1, P), AOI_OK);
    r->m.room[1] = 0;
    assert_true(rig_flush(r));
    assert_int_equal(r->told.n, 0);
    r->m.room[1] = AOI_DELTA_OVERHEAD + 4 * AOI_ENTER_BYTES;
    assert_true(rig_flush(r));
    assert_true(rig_told(r, P)->full && rig_told(r, P)->enters == 4);
    assert_int_equal(model_query_view(&r->m, r->s, P, 100), 4);
    assert_true(rig_flush(r));
    assert_true(!rig_told(r, P)->full && rig_told(r, P)->enters == 4);
    assert_false(rig_flush(r));
    assert_int_equal(rig_told(r, P)->enters, 1);
}

CASE(a_closed_player_gets_a_last_empty_delta_at_once_and_is_new_when_opened_again)
{
    watch_from_origin(r);
    rig_add(r, 5, 1, 1, 0);
    rig_flush(r);
    r->m.room[1] = 0; /* skipped players too */
    rig_move(r, 5, 2, 1);
    rig_flush(r);
    r->told.n = 0;
    assert_int_equal(model_player_close(&r->m, r->s, 1, P), AOI_OK);
    assert_string_equal(rig_told(r, P)->text, " closed");
    assert_int_equal(model_player_close(&r->m, r->s, 1, P), AOI_ENOPLAYER);
    r->m.room[1] = MODEL_NO_LIMIT;
    assert_string_equal(rig_tells(r, P), "");
    rig_subscribe(r, P, U); /* the model expects number 1, and nothing told */
    assert_string_equal(rig_tells(r, P), "E5(2,1)");
}

/* ------------------------------------------------------------------------------------------------------------- masks, viewports, shapes */

CASE(layers_and_mask_decide_who_is_seen_and_zero_means_something_else_in_each_place)
{
    watch_from_origin(r);
    rig_add(r, 5, 1, 1, 0); /* layers 0 in an add: 1 */
    assert_int_equal(model_player_open(&r->m, r->s, 1, P, 2), AOI_OK);
    assert_string_equal(rig_tells(r, P), "");
    assert_int_equal(model_entity_set_layers(&r->m, r->s, 1, 5, 6), AOI_OK);
    assert_string_equal(rig_tells(r, P), "E5(1,1)");
    assert_int_equal(model_entity_set_layers(&r->m, r->s, 1, 5, 2), AOI_OK);
    assert_string_equal(rig_tells(r, P), "Y5:2");
    assert_int_equal(model_player_open(&r->m, r->s, 1, P, 4), AOI_OK);
    assert_string_equal(rig_tells(r, P), "L5");
    assert_int_equal(model_player_open(&r->m, r->s, 1, P, 0), AOI_OK); /* mask 0: all */
    assert_string_equal(rig_tells(r, P), "E5(1,1)");
    assert_int_equal(model_entity_set_layers(&r->m, r->s, 1, 5, 0), AOI_OK); /* literally 0: seen by nobody */
    assert_string_equal(rig_tells(r, P), "L5");
}

CASE(a_viewport_shows_what_lies_in_its_box_edges_inclusive_wherever_that_reaches)
{
    rig_space(r, &(struct aoi_settings){.bounded = true, .min = {-100, -100}, .max = {100, 100}}, NULL);
    rig_add(r, 1, 100, 100, 0);
    rig_add(r, 2, -100, 0, 0);
    rig_viewport(r, P, 100, 100, 3e38f, 1000);
    assert_string_equal(rig_tells(r, P), "E1(100,100)");
    rig_viewport(r, P, -3e38f, 0, -100, 0);
    assert_string_equal(rig_tells(r, P), "L1 E2(-100,0)");
    rig_viewport(r, P, -100, 0, -100, 0);
    assert_string_equal(rig_tells(r, P), "");
    rig_move(r, 2, -100, 1);
    assert_string_equal(rig_tells(r, P), "L2");
    assert_int_equal(model_viewport_set(&r->m, r->s, 1, P, (const float[3]){1, 0, 0}, (const float[3]){0, 1, 0}), AOI_EINVAL);
    rig_move(r, 2, -100, 0);
    assert_string_equal(rig_tells(r, P), "E2(-100,0)"); /* the old viewport stands */
    assert_int_equal(model_viewport_clear(&r->m, r->s, 1, P), AOI_OK);
    assert_int_equal(model_viewport_clear(&r->m, r->s, 1, P), AOI_OK);
    assert_string_equal(rig_tells(r, P), "L2");
}

CASE(cells_see_the_block_of_cells_around_theirs_whatever_the_radius_unless_it_is_zero)
{
    for (uint32_t range = 1; range <= 2; range++) {
        rig_space(r, &(struct aoi_settings){.shape = AOI_SHAPE_CELLS, .cell_size = 10, .cell_range = range}, NULL);
        rig_add(r, U, -0.5f, 5, 0.001f); /* cell (-1, 0) */
        rig_subscribe(r, P, U);
        uint64_t id = 1;
        for (int y = -4; y <= 4; y++)
            for (int x = -5; x <= 3; x++) rig_add(r, id++, (float)(10 * x), (float)(10 * y), 0); /* each in the lower corner of its cell */
        rig_flush(r);
        assert_int_equal(rig_told(r, P)->enters, (2 * range + 1) * (2 * range + 1));
        rig_move(r, U, nextafterf(-10, -20), 5); /* over the edge: a column leaves, another one enters */
        rig_flush(r);
        assert_int_equal(rig_told(r, P)->leaves, 2 * range + 1);
        assert_int_equal(rig_told(r, P)->enters, 2 * range + 1);
        rig_radius(r, U, 0);
        rig_flush(r);
        assert_int_equal(rig_told(r, P)->leaves, (2 * range + 1) * (2 * range + 1));
    }
}

CASE(in_three_dimensions_height_counts_and_in_two_it_does_not)
{
    for (uint32_t dimensions = 2; dimensions <= 3; dimensions++) {
        rig_space(r, &(struct aoi_settings){.dimensions = dimensions}, NULL);
        watch_from_origin(r);
        struct aoi_entity high = {.id = 5, .pos = {1, 1, 50}};
        assert_int_equal(model_entity_add(&r->m, r->s, 1, AOI_ADD_NEW, &high), AOI_OK);
        rig_flush(r);
        assert_int_equal(rig_told(r, P)->enters, dimensions == 2);
        assert_int_equal(model_entity_move(&r->m, r->s, 1, 5, (const float[3]){1, 1, 10}, NULL), AOI_OK);
        rig_flush(r);
        assert_int_equal(rig_told(r, P)->enters, dimensions == 3);
        assert_int_equal(rig_told(r, P)->updates, 0); /* z is nothing in 2D */
    }
}

/* ------------------------------------------------------------------------------------------------------------- cost */

static void drop(void *ctx, const struct aoi_delta *delta)
{
    *(uint64_t *)ctx += delta->enters.n + delta->leave_n + delta->updates.n;
}

struct herd {
    struct aoi_world *world;
    struct aoi_space *space;
    uint64_t told;
    uint32_t n;
};

/* n entities, the first `players` watched. */
static void herd_init(struct herd *h, enum aoi_index index, uint32_t n, uint32_t players, float radius)
{
    struct aoi_limits limits = rig_limits();
    limits.max_entities = 1 << 20;
    struct aoi_sink sink = {.ctx = &h->told, .deliver = drop};
    *h = (struct herd){.world = aoi_world_new(&limits, &sink), .n = n};
    struct aoi_settings set = {.index = index};
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

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double herd_flush(struct herd *h)
{
    struct aoi_flush_info info = {0};
    double from = cpu_seconds();
    aoi_flush(h->space, &info);
    return cpu_seconds() - from;
}

CASE(a_warm_flush_allocates_nothing)
{
    struct herd h;
    herd_init(&h, r->index, 400, 60, 20);
    unsigned long long allocations = 0;
    for (uint32_t i = 0; i < 40; i++) {
        herd_move(&h, i % 8, 100); /* the same eight scenes again and again */
        for (uint64_t id = 200; id < 220; id++) {
            const char *text = i % 2 ? "some payload" : "another payload";
            assert_int_equal(aoi_entity_set_payload(h.space, 1, id, text, (uint32_t)strlen(text)), AOI_OK);
            assert_int_equal(aoi_entity_set_layers(h.space, 1, id, 1 + i % 8 % 3), AOI_OK);
        }
        if (i % 8 == 4) assert_int_equal(aoi_resync(h.space, 1, 0), AOI_OK);
        unsigned long long before = mem_alloc_count();
        herd_flush(&h);
        if (i >= 32) allocations += mem_alloc_count() - before;
    }
    assert_true(h.told > 10000);
    assert_int_equal(allocations, 0);
    aoi_world_free(h.world);
}

CASE(two_thousand_at_one_point_that_do_not_really_move_cost_next_to_nothing)
{
    struct herd h;
    herd_init(&h, r->index, 2000, 2000, 50);
    double spread = 0, still = 0;
    for (uint32_t i = 0; i < 4; i++) {
        herd_move(&h, i, 4);
        double s = herd_flush(&h);
        if (i > 0) spread += s; /* not the first, with its enters */
    }
    assert_int_equal(h.told, (uint64_t)4 * 2000 * 1999);
    herd_move(&h, 0, 0); /* all at one point */
    herd_flush(&h);
    uint64_t told = h.told;
    for (int i = 0; i < 3; i++) {
        herd_move(&h, 0, 0);
        still += herd_flush(&h);
    }
    assert_int_equal(h.told, told);
    assert_true(still * 20 < spread);
    herd_move(&h, 1, 100000); /* and apart */
    herd_flush(&h);
    assert_true(h.told > told);
    aoi_validate(h.world);
    aoi_world_free(h.world);
}

/* A camera over n cells with one entity each, of which ten enter with each flush: seconds that some flushes take. */
static double seconds_of_waiting(enum aoi_index index, uint32_t n)
{
    struct herd h;
    double seconds = 0;
    herd_init(&h, index, 0, 0, 0);
    for (uint32_t i = 0; i < n; i++) {
        struct aoi_entity e = {.id = i + 1, .pos = {(float)(i % 256) * 200, (float)(i / 256) * 200}};
        assert_int_equal(aoi_entity_add(h.space, 1, AOI_ADD_NEW, &e), AOI_OK);
    }
    assert_int_equal(aoi_player_open(h.space, 1, 1, &(struct aoi_player_settings){.max_enter_per_flush = 10}), AOI_OK);
    assert_int_equal(aoi_viewport_set(h.space, 1, 1, (const float[3]){-1, -1}, (const float[3]){1e6f, 1e6f}), AOI_OK);
    for (int i = 0; i < 4; i++) seconds += herd_flush(&h);
    assert_int_equal(h.told, 40);
    aoi_world_free(h.world);
    return seconds;
}

CASE(what_waits_to_enter_costs_no_more_each_in_many_pages_than_in_few)
{
    double few = seconds_of_waiting(r->index, 3000), many = seconds_of_waiting(r->index, 24000);
    if (many > 8 * 3 * few) fail_msg("eight times as many cost %.0f times as much", many / few);
}

CASE(a_crowd_that_meets_at_one_point_and_parts_is_told_exactly)
{
    enum { N = 150 };
    for (uint64_t id = 1; id <= N; id++) {
        rig_add(r, id, (float)(id % 12) / 3, (float)(id / 12) / 3, 50);
        rig_subscribe(r, id, id);
    }
    rig_flush(r);
    assert_int_equal(rig_told(r, 1)->enters, N - 1);
    for (uint64_t id = 1; id <= N; id++) rig_move(r, id, 2, 2);
    rig_flush(r);
    for (uint64_t id = 1; id <= N; id++) rig_move(r, id, 2, 2);
    rig_flush(r);
    assert_int_equal(r->told.n, 0);
    for (uint64_t id = 1; id <= N; id++) rig_move(r, id, (float)(id % 12) * 60, (float)(id / 12) * 60);
    rig_flush(r);
    assert_int_equal(rig_told(r, 1)->leaves, N - 1);
}

CASE(a_unit_of_very_many_players_goes_at_a_cost_that_follows_their_number)
{
    enum { PLAYERS = 100000 };
    struct aoi_limits limits = rig_limits();
    limits.max_players = PLAYERS;
    for (int way = 0; way < 2; way++) {
        struct aoi_world *world = aoi_world_new(&limits, NULL);
        struct aoi_settings set = {.index = r->index};
        struct aoi_entity e = {.id = U, .radius = 10};
        assert_int_equal(aoi_space_create(world, 1, 1, &set, false), AOI_OK);
        struct aoi_space *space = aoi_space_find(world, 1);
        assert_int_equal(aoi_entity_add(space, 2, AOI_ADD_NEW, &e), AOI_OK);
        double begin = cpu_seconds();
        for (uint64_t p = 1; p <= PLAYERS; p++) assert_int_equal(aoi_subscribe(space, 3, p, U, false), AOI_OK);
        double subscribed = cpu_seconds();
        aoi_owner_end(world, way == 0 ? 2 : 3, true);                        /* the unit's, or the players' */
        assert_true(cpu_seconds() - subscribed < 10 * (subscribed - begin)); /* it was 80 times as much */
        aoi_world_free(world);
    }
}

CASE(where_nothing_changed_a_player_costs_next_to_nothing)
{
    struct herd h;
    herd_init(&h, r->index, 20000, 2000, 50);
    herd_move(&h, 1, 2000);
    herd_flush(&h);
    double all = 0, one = 0;
    for (uint32_t i = 0; i < 3; i++) {
        herd_move(&h, i, 2000);
        all += herd_flush(&h);
    }
    for (uint32_t i = 0; i < 30; i++) {
        const float pos[3] = {1000 + (float)i, 1000, 0};
        assert_int_equal(aoi_entity_move(h.space, 1, 12345, pos, NULL), AOI_OK);
        one += herd_flush(&h);
    }
    assert_true(one / 30 * 20 < all / 3); /* the benchmark, on a larger world, asks for a hundredth */
    aoi_world_free(h.world);
}

/* The last place that is used of the grid's page of the entity. */
static uint32_t last_place(struct rig *r, uint64_t id)
{
    struct aoi_space *space = rig_core(r);
    const struct aoi__blocks *dir = space->ops->pages(space);
    uint64_t used = dir->page.at[aoi__home_of(dir, aoi__entity_slot(space, id)).page].used;
    return 63 - (uint32_t)__builtin_clzll(used);
}

/* Sixty in a cell of which the first forty go: the others, as they move, come to stand in the first half of the page. */
CASE(who_comes_to_stand_at_a_lower_place_of_its_page_has_moved_and_nothing_else)
{
    static const char *const tiers[] = {"*:1", "5:1 *:3"};
    for (uint32_t kind = 0; kind < 4; kind++) {
        rig_space(r, &(struct aoi_settings){.leave_margin = kind < 2 ? 0 : 4}, NULL);
        rig_tiers(r, tiers[kind % 2]);
        rig_viewport(r, P, 0, 0, 20, 20);
        rig_add(r, U, 5, 5, 9);
        rig_subscribe(r, Q, U);
        for (uint64_t id = 1; id <= 59; id++) rig_add(r, id, (float)(id % 8) * 3, (float)(id / 8) * 3, 0);
        rig_flush(r);
        for (uint64_t id = 1; id <= 40; id++) rig_remove(r, id);
        rig_flush(r);
        for (uint32_t round = 1; round < 8; round++) {
            for (uint64_t id = 41; id <= 59; id++) rig_move(r, id, (float)(id % 8) * 3 + (float)round * 0.25f, (float)(id / 8) * 3);
            rig_flush(r);
            const struct rig_told *told = rig_told(r, P); /* all of them move within its box, or outside */
            assert_int_equal(told->leaves + told->enters, 0);
            if (kind % 2 == 0) assert_int_equal(told->updates, 13);
        }
        if (r->index == AOI_INDEX_GRID) assert_true(last_place(r, 50) < 32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_nothing_leaves_a_space_quiet_and_a_quiet_space_tells_nothing),
        cmocka_unit_test(there_and_back_within_a_window_is_nothing_for_position_extra_layers_and_payload),
        cmocka_unit_test(what_changes_out_of_sight_is_in_the_next_enter),
        cmocka_unit_test(who_moves_where_another_has_just_come_is_noticed_by_those_who_cannot_see_that_one),
        cmocka_unit_test(a_skipped_player_is_told_the_whole_gap_in_one_delta_and_the_others_at_once),
        cmocka_unit_test(two_hundred_in_a_crowd_go_on_while_one_connection_stalls_and_memory_stays_flat),
        cmocka_unit_test(a_slot_is_not_used_again_while_somebody_holds_its_former_tenant),
        cmocka_unit_test(what_was_removed_does_not_pile_up_even_while_a_player_is_skipped),
        cmocka_unit_test(the_round_starts_after_the_last_one_served_so_that_nobody_starves),
        cmocka_unit_test(a_narrow_room_holds_back_enters_and_payloads_but_never_leaves_updates_and_layers),
        cmocka_unit_test(an_enter_that_was_held_back_and_is_out_of_sight_by_then_is_never_told),
        cmocka_unit_test(a_resync_restates_the_view_whole_once_however_often_it_was_asked_for),
        cmocka_unit_test(what_does_not_fit_a_full_delta_counts_as_not_told_and_enters_later),
        cmocka_unit_test(a_closed_player_gets_a_last_empty_delta_at_once_and_is_new_when_opened_again),
        cmocka_unit_test(layers_and_mask_decide_who_is_seen_and_zero_means_something_else_in_each_place),
        cmocka_unit_test(a_viewport_shows_what_lies_in_its_box_edges_inclusive_wherever_that_reaches),
        cmocka_unit_test(cells_see_the_block_of_cells_around_theirs_whatever_the_radius_unless_it_is_zero),
        cmocka_unit_test(in_three_dimensions_height_counts_and_in_two_it_does_not),
        cmocka_unit_test(a_warm_flush_allocates_nothing),
        cmocka_unit_test(what_waits_to_enter_costs_no_more_each_in_many_pages_than_in_few),
        cmocka_unit_test(two_thousand_at_one_point_that_do_not_really_move_cost_next_to_nothing),
        cmocka_unit_test(a_crowd_that_meets_at_one_point_and_parts_is_told_exactly),
        cmocka_unit_test(a_unit_of_very_many_players_goes_at_a_cost_that_follows_their_number),
        cmocka_unit_test(who_comes_to_stand_at_a_lower_place_of_its_page_has_moved_and_nothing_else),
        cmocka_unit_test(where_nothing_changed_a_player_costs_next_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
