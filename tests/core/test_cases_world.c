/* test_cases_world.c: spaces and their settings, owners that end, limits, and queries whose pages are read while the world moves. */
#include <math.h>

#include "core/space.h"
#include "rig.h"

enum { P = 1, Q = 2, U = 1000 };

/* ------------------------------------------------------------------------------------------------------------- settings */

static void settings_of_zeros_are_filled_with_the_defaults(void **state)
{
    (void)state;
    struct aoi_settings set = {0};
    const char *why = "?";
    assert_int_equal(aoi_settings_check(&set, &why), AOI_OK);
    assert_int_equal(set.dimensions, 2);
    assert_int_equal(set.index, AOI_INDEX_GRID);
    assert_int_equal(set.shape, AOI_SHAPE_BOX);
    assert_true(set.cell_size == AOI_CELL_SIZE_DEFAULT);
    assert_int_equal(set.cell_range, 1);
    assert_int_equal(set.flush_ms, 0); /* 0 has a meaning here */
}

static void settings_out_of_range_are_refused_with_the_reason(void **state)
{
    (void)state;
    const struct aoi_settings bad[] = {
        {.dimensions = 1},
        {.dimensions = 4},
        {.index = 3},
        {.shape = 4},
        {.cell_size = 1.0 / 65},
        {.cell_size = -32},
        {.cell_size = NAN},
        {.cell_size = INFINITY},
        {.cell_size = 1e300}, /* to look for the first float of a cell would take half a minute */
        {.cell_size = 16777217},
        {.cell_range = 65},
        {.bounded = true, .min = {1, 0}, .max = {0, 1}},
        {.bounded = true, .min = {NAN, 0}, .max = {0, 1}},
        {.bounded = true, .max = {INFINITY, 1}},
        {.dimensions = 3, .bounded = true, .min = {0, 0, 1}, .max = {1, 1, 0}},
    };
    struct aoi_limits limits = rig_limits();
    struct aoi_world *world = aoi_world_new(&limits, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct aoi_settings set = bad[i];
        const char *why = NULL;
        assert_int_equal(aoi_settings_check(&set, &why), AOI_EINVAL);
        assert_non_null(why);
        assert_int_equal(aoi_space_create(world, 1, 1, &bad[i], false), AOI_EINVAL);
        assert_null(aoi_space_find(world, 1));
    }
    const struct aoi_settings good[] = {
        {.cell_size = AOI_CELL_SIZE_MIN}, {.cell_range = 64}, {.bounded = true}, {.bounded = true, .max = {1, 1}, .max[2] = NAN}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct aoi_settings set = good[i];
        const char *why = NULL;
        assert_int_equal(aoi_settings_check(&set, &why), AOI_OK);
    }
    aoi_world_free(world);
}

/* ------------------------------------------------------------------------------------------------------------- spaces */

CASE(creating_what_exists_is_fine_only_with_if_absent_and_equal_settings)
{
    struct aoi_settings set = {.index = r->index, .cell_size = 16, .bounded = true, .min = {-5, -5}, .max = {5, 5}};
    assert_int_equal(model_space_create(&r->m, 1, 2, &set, false), AOI_OK);
    assert_int_equal(model_space_create(&r->m, 2, 2, &set, true), AOI_OK);
    assert_int_equal(aoi_space_owner(aoi_space_find(r->m.world, 2)), 1);
    assert_int_equal(model_space_create(&r->m, 1, 2, &set, false), AOI_EDUPSPACE);
    struct aoi_settings said = set;
    said.dimensions = 2; /* a default, said */
    said.shape = AOI_SHAPE_BOX;
    said.min[2] = 7; /* and nothing in 2D */
    assert_int_equal(model_space_create(&r->m, 1, 2, &said, true), AOI_OK);
    struct aoi_settings other[6] = {set, set, set, set, set, set};
    other[0].cell_size = 17;
    other[1].shape = AOI_SHAPE_SPHERE;
    other[2].bounded = false;
    other[3].max[1] = 6;
    other[4].extra = true;
    other[5].flush_ms = 20;
    for (int i = 0; i < 6; i++) assert_int_equal(model_space_create(&r->m, 1, 2, &other[i], true), AOI_EDUPSPACE);
    assert_int_equal(model_space_create(&r->m, 1, 0, &set, true), AOI_EINVAL);
}

CASE(nothing_is_visible_across_spaces_and_ids_belong_to_their_space)
{
    struct aoi_settings set = {.index = r->index};
    assert_int_equal(model_space_create(&r->m, 1, 2, &set, false), AOI_OK);
    struct model_space *one = r->s, *two = model_space(&r->m, 2);
    rig_add(r, U, 0, 0, 10);
    rig_subscribe(r, P, U);
    r->s = two;
    rig_add(r, U, 1, 0, 10);
    rig_add(r, 5, 2, 0, 0);
    rig_subscribe(r, P, U);
    assert_string_equal(rig_tells(r, P), "E5(2,0)");
    r->s = one;
    assert_string_equal(rig_tells(r, P), "");
    assert_int_equal(rig_move_by(r, 1, 5, 0, 0), AOI_ENOENTITY);
    assert_int_equal(model_space_destroy(&r->m, 1, false, 2), AOI_OK);
    assert_string_equal(rig_tells(r, P), "");
}

static void count_end(void *ctx, struct aoi_space *space)
{
    assert_non_null(aoi_space_user(space));
    ++*(int *)ctx;
}

CASE(a_space_ends_by_its_owner_or_an_admin_and_its_players_get_a_last_delta)
{
    int ended = 0;
    const struct aoi_settings set = {.index = r->index};
    aoi_world_on_space_end(r->m.world, count_end, &ended);
    aoi_space_set_user(rig_core(r), &ended);
    for (uint64_t id = 5; id >= 3; id--) {
        assert_int_equal(model_space_create(&r->m, 2, id, &set, false), AOI_OK);
        aoi_space_set_user(aoi_space_find(r->m.world, id), &ended);
    }
    assert_int_equal(model_space_create(&r->m, 0, 6, &set, false), AOI_OK); /* the configuration's */
    assert_null(aoi_space_user(aoi_space_find(r->m.world, 6)));
    aoi_space_set_user(aoi_space_find(r->m.world, 6), &ended);
    assert_int_equal(aoi_space_id(aoi_space_next(r->m.world, 0)), 1);
    assert_int_equal(aoi_space_id(aoi_space_next(r->m.world, 1)), 3);
    assert_int_equal(aoi_space_id(aoi_space_next(r->m.world, 5)), 6);
    assert_null(aoi_space_next(r->m.world, 6));
    assert_null(aoi_space_next(r->m.world, UINT64_MAX));

    r->s = model_space(&r->m, 3);
    rig_add(r, U, 0, 0, 10);
    rig_subscribe(r, P, U);
    assert_int_equal(model_subscribe(&r->m, r->s, 2, Q, U, true), AOI_OK);
    rig_flush(r);
    r->told.n = 0;
    assert_int_equal(model_space_destroy(&r->m, 1, false, 3), AOI_EOWNER);
    assert_int_equal(model_space_destroy(&r->m, 1, true, 6), AOI_EOWNER); /* nobody's to destroy */
    assert_int_equal(model_space_destroy(&r->m, 2, false, 99), AOI_ENOSPACE);
    assert_int_equal(ended, 0);
    assert_int_equal(model_space_destroy(&r->m, 2, false, 3), AOI_OK);
    assert_string_equal(rig_told(r, P)->text, " closed");
    assert_string_equal(rig_told(r, Q)->text, " closed");
    assert_int_equal(model_space_destroy(&r->m, 2, false, 3), AOI_ENOSPACE);
    assert_int_equal(model_space_destroy(&r->m, 1, true, 4), AOI_OK);
    assert_int_equal(ended, 2);
    aoi_world_on_space_end(r->m.world, NULL, NULL);
}

CASE(an_owner_that_ends_takes_its_entities_players_and_spaces_and_everybody_sees_the_leaves)
{
    struct aoi_settings set = {.index = r->index}, keep = {.index = r->index, .persistent = true};
    assert_int_equal(model_space_create(&r->m, 2, 2, &set, false), AOI_OK);
    assert_int_equal(model_space_create(&r->m, 2, 3, &keep, false), AOI_OK);
    assert_int_equal(model_subscribe(&r->m, r->s, 2, Q, U, false), AOI_ENOENTITY);
    rig_add(r, U, 0, 0, 50);
    rig_subscribe(r, P, U);
    for (uint64_t id = 1; id <= 100; id++) assert_int_equal(rig_add_by(r, 2, AOI_ADD_NEW, id, (float)(id % 10), (float)(id / 10), 10, NULL), AOI_OK);
    assert_int_equal(model_subscribe(&r->m, r->s, 2, Q, U, false), AOI_OK);
    assert_int_equal(model_subscribe(&r->m, r->s, 2, Q, 7, false), AOI_OK);
    rig_subscribe(r, P, 8); /* a unit of the one that ends */
    struct model_space *one = r->s;
    r->s = model_space(&r->m, 2);
    rig_add(r, U, 0, 0, 10);
    rig_subscribe(r, P, U); /* a guest in its space */
    r->s = one;
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->enters, 101);
    r->told.n = 0;
    model_owner_end(&r->m, 2, true);
    assert_int_equal(r->told.n, 2); /* Q in space 1, P in space 2 */
    assert_null(aoi_space_find(r->m.world, 2));
    assert_int_equal(aoi_space_owner(aoi_space_find(r->m.world, 3)), 0);
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->leaves, 101); /* unit U, which it saw through 8, too */
    assert_int_equal(r->s->entities.n, 1);
    assert_int_equal(model_query_box(&r->m, r->s, (const float[3]){-1e6f, -1e6f, 0}, (const float[3]){1e6f, 1e6f, 0}, 0, 1000), 1);
    assert_int_equal(model_space_destroy(&r->m, 1, false, 3), AOI_EOWNER);
    assert_int_equal(model_space_destroy(&r->m, 1, true, 3), AOI_OK); /* persistent, but not of the configuration */
    model_owner_end(&r->m, 2, true);                                  /* again, with nothing left */
    model_owner_end(&r->m, 7, false);
}

CASE(an_owner_that_ends_unheard_is_told_nothing_but_its_guests_are)
{
    struct aoi_settings set = {.index = r->index};
    assert_int_equal(model_space_create(&r->m, 2, 2, &set, false), AOI_OK);
    r->s = model_space(&r->m, 2);
    rig_viewport(r, P, 0, 0, 1, 1);
    assert_int_equal(model_player_open(&r->m, r->s, 2, Q, 0), AOI_OK);
    r->told.n = 0;
    model_owner_end(&r->m, 2, false);
    assert_int_equal(r->told.n, 1);
    assert_true(rig_told(r, P)->closed);
}

static void what_another_made_under_an_old_number_is_not_an_owners_space(void **state)
{
    (void)state;
    const struct aoi_settings set = {0};
    const struct aoi_entity entity = {.id = 1};
    struct aoi_limits limits = rig_limits();
    struct aoi_world *world = aoi_world_new(&limits, NULL);
    uint64_t left;
    assert_int_equal(aoi_space_create(world, 1, 5, &set, false), AOI_OK);
    assert_int_equal(aoi_space_create(world, 1, 6, &set, false), AOI_OK);
    assert_int_equal(aoi_space_destroy(world, 1, false, 5), AOI_OK);
    assert_int_equal(aoi_space_create(world, 2, 5, &set, false), AOI_OK);
    while (aoi_owner_shed(world, 1, 100, &left)) {}
    assert_null(aoi_space_find(world, 6));
    assert_int_equal(aoi_entity_add(aoi_space_find(world, 5), 1, AOI_ADD_NEW, &entity), AOI_OK); /* now it owns something there again */
    assert_true(aoi_owner_in(aoi_space_find(world, 5), 1));
    while (aoi_owner_shed(world, 1, 100, &left)) {}
    assert_false(aoi_owner_in(aoi_space_find(world, 5), 1));
    aoi_world_free(world);
}

/* Of 40 spaces of its own, of which one is kept and one is another's: never more than one at a time. */
static void an_owner_with_many_spaces_leaves_one_after_the_other(void **state)
{
    (void)state;
    enum { SPACES = 40, KEPT = 7, GUEST = 8, ENTITIES = 5 };
    const struct aoi_settings set = {0}, kept = {.persistent = true};
    struct aoi_limits limits = rig_limits();
    limits.max_spaces = SPACES;
    struct aoi_world *world = aoi_world_new(&limits, NULL);
    for (uint64_t id = 1; id <= SPACES; id++) {
        assert_int_equal(aoi_space_create(world, id == GUEST ? 2 : 1, id, id == KEPT ? &kept : &set, false), AOI_OK);
        for (uint64_t e = 1; e <= ENTITIES; e++)
            assert_int_equal(aoi_entity_add(aoi_space_find(world, id), 1, AOI_ADD_NEW, &(struct aoi_entity){.id = e}), AOI_OK);
    }
    uint64_t left, steps = 0;
    for (uint64_t spaces = 0; aoi_owner_shed(world, 1, 2, &left); steps++) {
        spaces += left != 0;
        uint64_t in = 0;
        for (struct aoi_space *s = aoi_space_next(world, 0); s != NULL; s = aoi_space_next(world, aoi_space_id(s))) in += aoi_owner_in(s, 1);
        assert_int_equal(in, SPACES - spaces);
    }
    assert_true(steps >= SPACES * (ENTITIES / 2 + 1));
    aoi_owner_end(world, 1, false);
    struct aoi_space *space = aoi_space_next(world, 0);
    assert_int_equal(aoi_space_id(space), KEPT);
    assert_int_equal(aoi_space_owner(space), 0);
    assert_int_equal(aoi_space_id(aoi_space_next(world, KEPT)), GUEST);
    assert_null(aoi_space_next(world, GUEST));
    aoi_validate(world);
    aoi_world_free(world);
}

/* Owner 1 makes space 5 and ends it, again and again; owner 2 has something there each time, and in other spaces. */
static void a_space_that_is_made_anew_again_and_again_is_remembered_once(void **state)
{
    (void)state;
    enum { OTHERS = 20 };
    const struct aoi_settings set = {0};
    const struct aoi_entity entity = {.id = 7};
    struct aoi_limits limits = rig_limits();
    limits.max_spaces = OTHERS + 1;
    struct aoi_world *world = aoi_world_new(&limits, NULL);
    for (uint64_t id = 101; id <= 100 + OTHERS; id++) {
        assert_int_equal(aoi_space_create(world, 3, id, &set, false), AOI_OK);
        assert_int_equal(aoi_entity_add(aoi_space_find(world, id), 2, AOI_ADD_NEW, &entity), AOI_OK);
    }
    for (int i = 0; i < 1000; i++) {
        if (i > 0) assert_int_equal(aoi_space_destroy(world, 1, false, 5), AOI_OK);
        assert_int_equal(aoi_space_create(world, 1, 5, &set, false), AOI_OK);
        assert_int_equal(aoi_entity_add(aoi_space_find(world, 5), 2, AOI_ADD_NEW, &entity), AOI_OK);
    }
    for (uint32_t i = 0; i < world->presences.n; i++) assert_in_range(world->presences.at[i].spaces.cap, 1, 4 * OTHERS);
    aoi_owner_end(world, 2, false);
    for (struct aoi_space *s = aoi_space_next(world, 0); s != NULL; s = aoi_space_next(world, aoi_space_id(s))) assert_false(aoi_owner_in(s, 2));
    assert_non_null(aoi_space_find(world, 5));
    aoi_owner_end(world, 1, false);
    assert_null(aoi_space_find(world, 5));
    aoi_validate(world);
    aoi_world_free(world);
}

static uint64_t memory(struct rig *r)
{
    struct aoi_stats stats = {0};
    aoi_space_stats(rig_core(r), &stats);
    return stats.memory_bytes;
}

/* 2,000 entities of owner 2, two of which can be seen from far away, and ten players of owner 1, one that shows and one that looks by a box. */
static void settle_in(struct rig *r)
{
    for (uint64_t id = 1; id <= 2000; id++)
        assert_int_equal(rig_add_by(r, 2, AOI_ADD_NEW, id, (float)(id % 50) * 8, (float)(id / 50) * 8, 40, id % 7 == 0 ? "tree" : NULL), AOI_OK);
    for (uint64_t id = 5; id <= 6; id++) assert_int_equal(model_entity_set_appeal(&r->m, r->s, 2, id, 100), AOI_OK);
    for (uint64_t player = 1; player <= 9; player++) rig_subscribe(r, player, player * 200);
    rig_viewport(r, 10, 100, 100, 200, 200);
    rig_override(r, 1, 1999, AOI_OVERRIDE_SHOW);
    rig_flush(r);
    assert_true(rig_told(r, 1)->enters > 50 && rig_told(r, 10)->enters > 50);
}

CASE(a_space_from_which_everything_has_gone_gives_its_memory_back_and_goes_on)
{
    enum { BY_COMMANDS, BY_THE_END_OF_THE_OWNER, WHILE_THEY_ARE_WATCHED, WAYS };
    rig_flush(r);
    for (int way = 0; way < 2 * WAYS; way++) {
        settle_in(r);
        uint64_t full = memory(r);
        if (way % WAYS != BY_THE_END_OF_THE_OWNER) rig_cast_at(r, 0, 0, 500, 500, "the end"); /* which is kept for the flush */
        for (uint64_t player = 1; player <= 10 && way % WAYS != WHILE_THEY_ARE_WATCHED; player++)
            assert_int_equal(model_player_close(&r->m, r->s, 1, player), AOI_OK);
        for (uint64_t id = 1; id <= 2000 && way % WAYS != BY_THE_END_OF_THE_OWNER; id++)
            assert_int_equal(model_entity_remove(&r->m, r->s, 2, id), AOI_OK);
        if (way % WAYS == BY_THE_END_OF_THE_OWNER)
            model_owner_end(&r->m, 2, true);
        else
            rig_flush(r);
        if (way % WAYS == WHILE_THEY_ARE_WATCHED) {
            assert_int_equal(aoi_space_vacant(rig_core(r)), 2000);
            assert_true(memory(r) > full / 4);
            for (uint64_t player = 1; player <= 10; player++) assert_int_equal(model_player_close(&r->m, r->s, 1, player), AOI_OK);
            rig_flush(r);
        }
        assert_int_equal(aoi_space_vacant(rig_core(r)), 0);
        assert_true(memory(r) < full / 20);
        rig_flush(r);
    }
}

CASE(who_comes_takes_the_place_of_who_has_left)
{
    rig_add(r, U, 0, 0, 10);
    rig_subscribe(r, P, U);
    for (uint64_t id = 1; id <= 300; id++) rig_add(r, id, (float)id, 0, 0);
    rig_flush(r);
    uint64_t full = memory(r);
    for (uint64_t id = 1; id <= 300; id++) rig_remove(r, id);
    assert_int_equal(aoi_space_vacant(rig_core(r)), 290); /* P still holds ten */
    rig_flush(r);
    assert_int_equal(aoi_space_vacant(rig_core(r)), 300);
    for (uint64_t id = 301; id <= 600; id++) rig_add(r, id, (float)(id - 300), 0, 0);
    assert_int_equal(aoi_space_vacant(rig_core(r)), 0);
    rig_flush(r);
    assert_true(memory(r) < full + full / 3); /* some lists of what has changed are longer */
}

CASE(what_views_took_is_given_back_when_they_shrink)
{
    struct aoi_settings set = {.index = r->index, .shape = AOI_SHAPE_SPHERE, .min_stay_ms = 1};
    rig_space(r, &set, NULL);
    for (uint64_t id = 1; id <= 2000; id++) rig_add(r, id, 0, 0, id <= 100 ? 10 : 0);
    for (uint64_t id = 1; id <= 100; id++) rig_subscribe(r, id, id);
    for (int i = 0; i < 3; i++) rig_flush(r);
    uint64_t crowd = memory(r);
    for (uint64_t id = 101; id <= 2000; id++) rig_move(r, id, 1000, 1000);
    r->m.now_ms += 10;
    for (int i = 0; i < 3; i++) rig_flush(r);
    assert_true(crowd - memory(r) > (uint64_t)100 * 1500 * (4 + 8)); /* a list of slots, and one of times */
}

CASE(something_large_that_walks_about_leaves_no_memory_behind)
{
    rig_add(r, 1, 0, 0, 0);
    rig_appeal(r, 1, 5);
    rig_viewport(r, P, -10, -10, 10, 10);
    for (int i = 0; i < 100; i++) rig_move(r, 1, (float)(i % 2) * 1000, 0), rig_flush(r);
    uint64_t before = memory(r);
    for (int i = 0; i < 4000; i++) rig_move(r, 1, (float)(i % 2) * 1000, 0), rig_flush(r);
    assert_int_equal(memory(r), before);
}

CASE(a_world_without_a_sink_drops_its_deltas_and_goes_on)
{
    struct aoi_limits limits = rig_limits();
    struct aoi_world *world = aoi_world_new(&limits, NULL);
    struct aoi_settings set = {.index = r->index};
    assert_int_equal(aoi_space_create(world, 1, 1, &set, false), AOI_OK);
    struct aoi_space *space = aoi_space_find(world, 1);
    for (uint64_t id = 1; id <= 2; id++) {
        struct aoi_entity e = {.id = id, .radius = 10};
        assert_int_equal(aoi_entity_add(space, 1, AOI_ADD_NEW, &e), AOI_OK);
    }
    assert_int_equal(aoi_subscribe(space, 1, P, 1, false), AOI_OK);
    struct aoi_flush_info info = {0};
    aoi_flush(space, &info);
    struct aoi_rows rows = {0};
    uint64_t seq = 0;
    assert_int_equal(aoi_query_view(space, P, 0, 10, &rows, &seq), AOI_OK);
    assert_int_equal(rows.n, 1);
    assert_int_equal(seq, 1);
    aoi_rows_clear(&rows);
    assert_int_equal(aoi_player_close(space, 1, P), AOI_OK);
    aoi_validate(world);
    aoi_world_free(world);
}

/* ------------------------------------------------------------------------------------------------------------- limits */

CASE(over_each_limit_is_an_error_and_what_was_there_stays)
{
    const struct aoi_limits limits = {.max_spaces = 2, .max_entities = 3, .max_players = 2, .max_units = 2, .max_payload = 4, .max_radius = 100};
    rig_space(r, NULL, &limits);
    const struct aoi_settings set = {.index = r->index};
    assert_int_equal(model_space_create(&r->m, 1, 2, &set, false), AOI_OK);
    assert_int_equal(model_space_create(&r->m, 1, 3, &set, false), AOI_ELIMIT);
    assert_int_equal(model_space_create(&r->m, 1, 2, &set, true), AOI_OK);
    assert_int_equal(model_space_destroy(&r->m, 1, false, 2), AOI_OK);
    assert_int_equal(model_space_create(&r->m, 1, 3, &set, false), AOI_OK);

    for (uint64_t id = 1; id <= 3; id++) assert_int_equal(rig_add_by(r, 1, AOI_ADD_NEW, id, (float)id, 0, 10, "four"), AOI_OK);
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_NEW, 4, 0, 0, 0, NULL), AOI_ELIMIT);
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_UPSERT, 4, 0, 0, 0, NULL), AOI_ELIMIT);
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_UPSERT, 3, 3, 1, 10, "abc"), AOI_OK); /* known: no more room needed */
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_UPSERT, 3, 9, 9, 10, "fiver"), AOI_ELIMIT);
    assert_int_equal(model_entity_set_payload(&r->m, r->s, 1, 3, "fiver", 5), AOI_ELIMIT);
    assert_int_equal(model_entity_set_radius(&r->m, r->s, 1, 3, 100.1f), AOI_EINVAL);
    rig_subscribe(r, P, 1);
    rig_subscribe(r, P, 2);
    assert_int_equal(model_subscribe(&r->m, r->s, 1, P, 3, false), AOI_ELIMIT);
    assert_int_equal(model_subscribe(&r->m, r->s, 1, P, 2, true), AOI_OK); /* a set: no second one */
    assert_int_equal(model_player_open(&r->m, r->s, 1, Q, 0), AOI_OK);
    assert_int_equal(model_player_open(&r->m, r->s, 1, 3, 0), AOI_ELIMIT);
    assert_int_equal(model_subscribe(&r->m, r->s, 1, 3, 1, false), AOI_ELIMIT);
    assert_int_equal(model_viewport_set(&r->m, r->s, 1, 3, (const float[3]){0}, (const float[3]){0}), AOI_ELIMIT);
    assert_string_equal(rig_tells(r, P), "E1(1,0)=four E2(2,0)=four E3(3,1)=abc");
    rig_remove(r, 2);
    assert_int_equal(rig_add_by(r, 1, AOI_ADD_NEW, 4, 4, 0, 0, NULL), AOI_OK);
    rig_subscribe(r, P, 3);
    assert_int_equal(model_player_close(&r->m, r->s, 1, Q), AOI_OK);
    assert_int_equal(model_player_open(&r->m, r->s, 1, 3, 0), AOI_OK);
    assert_string_equal(rig_tells(r, P), "L2 E4(4,0)");
}

CASE(an_unknown_add_mode_is_refused)
{
    assert_int_equal(rig_add_by(r, 1, (enum aoi_add_mode)0, 5, 1, 1, 0, NULL), AOI_EINVAL);
    assert_int_equal(rig_add_by(r, 1, (enum aoi_add_mode)4, 5, 1, 1, 0, NULL), AOI_EINVAL);
    assert_int_equal(model_entity_get(&r->m, r->s, 5), AOI_ENOENTITY);
}

/* ------------------------------------------------------------------------------------------------------------- queries */

/* What the pages so far gave: once each, of ids below 2,000. */
struct seen {
    uint8_t times[2000];
    uint64_t cursor;
};

static void take_page(struct seen *seen, const struct aoi_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        assert_true(rows->id[i] > seen->cursor && rows->id[i] < 2000);
        seen->times[rows->id[i]]++;
    }
    seen->cursor = rows->next;
}

/* Ids 1 to 999: odd ones stay in the box (0,0)-(100,100), even ones come and go. */
static void stir(struct rig *r, uint32_t round)
{
    for (uint64_t id = 1; id <= 999; id++) {
        bool away = id % 2 == 0 && (id * 2654435761u + round * 40503u) >> 7 & 1;
        float x = (float)((id * 7 + round * 13) % 101), y = (float)((id * 3 + round) % 101);
        if (r->s->entities.n < 999) {
            rig_add(r, id, x, y, 0);
        } else if (id % 10 == 4 && round % 2) { /* some are other entities by now */
            rig_remove(r, id);
            rig_add(r, id, x, y, 0);
        } else {
            rig_move(r, id, away ? x + 500 : x, y);
        }
    }
}

CASE(what_lies_in_the_area_throughout_the_paging_comes_exactly_once)
{
    const float low[3] = {0, 0, 0}, high[3] = {100, 100, 0}, middle[3] = {50, 50, 0};
    struct aoi_rows rows = {0};
    stir(r, 0);
    for (int kind = 0; kind < 2; kind++) {
        struct seen seen = {0};
        uint32_t pages = 0;
        do {
            if (kind == 0) {
                assert_int_equal(aoi_query_box(rig_core(r), low, high, 0, seen.cursor, 37, &rows), AOI_OK);
            } else {
                assert_int_equal(aoi_query_radius(rig_core(r), middle, 71, 0, seen.cursor, 37, &rows), AOI_OK);
            }
            take_page(&seen, &rows);
            stir(r, ++pages);
        } while (seen.cursor != 0);
        assert_true(pages > 10);
        for (uint64_t id = 1; id <= 999; id++) assert_true(id % 2 ? seen.times[id] == 1 : seen.times[id] <= 1);
    }
    aoi_rows_clear(&rows);
}

CASE(a_view_is_paged_while_flushes_change_it_and_what_stays_comes_exactly_once)
{
    struct aoi_rows rows = {0};
    struct seen seen = {0};
    uint32_t pages = 0;
    rig_viewport(r, P, 0, 0, 100, 100);
    stir(r, 0);
    rig_flush(r);
    do {
        uint64_t seq = 0;
        assert_int_equal(aoi_query_view(rig_core(r), P, seen.cursor, 37, &rows, &seq), AOI_OK);
        assert_int_equal(seq, pages + 1);
        take_page(&seen, &rows);
        stir(r, ++pages);
        rig_flush(r);
    } while (seen.cursor != 0);
    for (uint64_t id = 1; id <= 999; id++) assert_true(id % 2 ? seen.times[id] == 1 : seen.times[id] <= 1);
    aoi_rows_clear(&rows);
}

CASE(queries_answer_by_layers_and_positions_of_now_and_pages_of_any_size_agree)
{
    rig_space(r, &(struct aoi_settings){.dimensions = 3, .extra = true}, NULL);
    for (uint64_t id = 1; id <= 120; id++) {
        struct aoi_entity e = {
            .id = id % 3 ? id : UINT64_MAX - id, .pos = {(float)(id % 7), (float)(id % 11), (float)(id % 13)}, .extra = (uint32_t)id};
        assert_int_equal(model_entity_add(&r->m, r->s, 1, AOI_ADD_NEW, &e), AOI_OK);
        assert_int_equal(model_entity_set_layers(&r->m, r->s, 1, e.id, (uint32_t)id % 5), AOI_OK);
    }
    static const size_t limits[] = {1, 2, 7, 119, 120, 121, 100000};
    const float low[3] = {0, 0, 0}, high[3] = {6, 10, 6}, all[3] = {100, 100, 100};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        assert_int_equal(model_query_box(&r->m, r->s, low, all, 0, limits[i]), 120); /* 0: those of layers 0 as well */
        assert_int_equal(model_query_box(&r->m, r->s, low, all, UINT32_MAX, limits[i]), 96);
        assert_true(model_query_box(&r->m, r->s, low, high, 4, limits[i]) > 0);
        assert_true(model_query_radius(&r->m, r->s, high, 5, 3, limits[i]) > 0);
        assert_int_equal(model_query_radius(&r->m, r->s, all, 1, 0, limits[i]), 0);
    }
    assert_int_equal(model_query_count(&r->m, r->s, low, all, 0), 120);
    assert_int_equal(model_query_count(&r->m, r->s, low, all, 1), 48);
    assert_int_equal(model_query_view(&r->m, r->s, 5, 10), AOI_ENOPLAYER);
    assert_false(model_flush(&r->m, r->s));
}

/* Places of which the grid's block has the key of the block at zero (blocks.c: x and y xor a multiple of z, less the top bit), here for blocks of 1/16. If the
 * key is reckoned otherwise one day, this tests nothing, and does no harm. */
static uint32_t alike(float pos[][3], uint32_t want)
{
    uint32_t n = 1;
    for (uint32_t z = 1; z < 1u << 22 && n < want; z++) {
        uint64_t key = z * 0x9E3779B97F4A7C15u;
        int32_t x = (int32_t)(uint32_t)(key >> 32 << 1) >> 1, y = (int32_t)(uint32_t)key; /* x: the top bit does not count */
        const int32_t most = 1 << 24;                                                     /* a float holds it, and a sixteenth of it */
        if (x < -most || x >= most || y < -most || y >= most) continue;
        const float at[3] = {(float)x / 16, (float)y / 16, (float)z / 16};
        memcpy(pos[n++], at, sizeof at);
    }
    return n;
}

CASE(places_that_share_a_hash_key_are_kept_apart)
{
    enum { N = 12 };
    float pos[N][3] = {{0}};
    assert_int_equal(alike(pos, N), N);
    rig_space(r, &(struct aoi_settings){.dimensions = 3, .cell_size = 1.0 / 64}, NULL);
    for (int round = 0; round < 6; round++) {
        for (uint64_t k = 0; k < N; k++) { /* in another order each time */
            struct aoi_entity e = {.id = 1 + (k * 5 + (uint64_t)round) % N, .radius = 0.01f};
            memcpy(e.pos, pos[e.id - 1], sizeof e.pos);
            assert_int_equal(model_entity_add(&r->m, r->s, 1, AOI_ADD_NEW, &e), AOI_OK);
            rig_subscribe(r, e.id, e.id);
            assert_int_equal(model_query_box(&r->m, r->s, e.pos, e.pos, 0, 10), 1);
        }
        rig_flush(r);
        assert_int_equal(r->told.n, 0); /* each is alone */
        struct aoi_entity guest = {.id = 100};
        for (uint64_t k = 0; k < N; k++) {
            memcpy(guest.pos, pos[k], sizeof guest.pos);
            assert_int_equal(model_entity_add(&r->m, r->s, 1, k == 0 ? AOI_ADD_NEW : AOI_ADD_UPSERT, &guest), AOI_OK);
            rig_flush(r);
            assert_int_equal(rig_told(r, k + 1)->enters, 1);
            assert_int_equal(r->told.n, k == 0 ? 1 : 2);
            aoi_validate(r->m.world);
        }
        rig_remove(r, 100);
        for (uint64_t k = 0; k < N; k++) {
            rig_remove(r, 1 + (k * 7 + (uint64_t)round) % N);
            aoi_validate(r->m.world);
        }
        rig_flush(r);
    }
}

CASE(count_tells_how_many_players_an_event_in_the_box_would_reach)
{
    for (uint32_t shape = AOI_SHAPE_BOX; shape <= AOI_SHAPE_CELLS; shape++) {
        rig_space(r, &(struct aoi_settings){.shape = shape, .cell_size = 10}, NULL);
        for (uint64_t id = 1; id <= 20; id++) {
            rig_add(r, id, (float)id * 5 - 50, (float)id, (float)(id % 4) * 4);
            rig_subscribe(r, 1 + id % 5, id);
        }
        rig_viewport(r, 9, -3, -3, 3, 3);
        for (int x = -80; x <= 80; x += 3) {
            const float low[3] = {(float)x, 0, 0}, high[3] = {(float)x + 2, 25, 0};
            assert_true(model_query_count(&r->m, r->s, low, high, 0) >= 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_of_zeros_are_filled_with_the_defaults),
        cmocka_unit_test(settings_out_of_range_are_refused_with_the_reason),
        cmocka_unit_test(creating_what_exists_is_fine_only_with_if_absent_and_equal_settings),
        cmocka_unit_test(nothing_is_visible_across_spaces_and_ids_belong_to_their_space),
        cmocka_unit_test(a_space_ends_by_its_owner_or_an_admin_and_its_players_get_a_last_delta),
        cmocka_unit_test(an_owner_that_ends_takes_its_entities_players_and_spaces_and_everybody_sees_the_leaves),
        cmocka_unit_test(an_owner_that_ends_unheard_is_told_nothing_but_its_guests_are),
        cmocka_unit_test(what_another_made_under_an_old_number_is_not_an_owners_space),
        cmocka_unit_test(an_owner_with_many_spaces_leaves_one_after_the_other),
        cmocka_unit_test(a_space_that_is_made_anew_again_and_again_is_remembered_once),
        cmocka_unit_test(a_space_from_which_everything_has_gone_gives_its_memory_back_and_goes_on),
        cmocka_unit_test(who_comes_takes_the_place_of_who_has_left),
        cmocka_unit_test(what_views_took_is_given_back_when_they_shrink),
        cmocka_unit_test(something_large_that_walks_about_leaves_no_memory_behind),
        cmocka_unit_test(a_world_without_a_sink_drops_its_deltas_and_goes_on),
        cmocka_unit_test(over_each_limit_is_an_error_and_what_was_there_stays),
        cmocka_unit_test(an_unknown_add_mode_is_refused),
        cmocka_unit_test(what_lies_in_the_area_throughout_the_paging_comes_exactly_once),
        cmocka_unit_test(a_view_is_paged_while_flushes_change_it_and_what_stays_comes_exactly_once),
        cmocka_unit_test(queries_answer_by_layers_and_positions_of_now_and_pages_of_any_size_agree),
        cmocka_unit_test(places_that_share_a_hash_key_are_kept_apart),
        cmocka_unit_test(count_tells_how_many_players_an_event_in_the_box_would_reach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
