/* test_slices.c: columns of moves, and flushes that are cut into slices. */
#include <math.h>

#include "rig.h"

enum { FIRST = 100, WALKERS = 40 };

struct failures {
    size_t n, at[8];
    int err[8];
};

static void note(void *ctx, size_t i, int err)
{
    struct failures *f = ctx;
    assert_true(f->n < 8);
    f->at[f->n] = i;
    f->err[f->n++] = err;
}

CASE(a_column_moves_id_by_id_in_order_and_tells_which_were_refused_and_why)
{
    for (uint64_t id = 1; id <= 4; id++) rig_add(r, id, 0, 0, 0);
    assert_int_equal(rig_add_by(r, 2, AOI_ADD_NEW, 9, 0, 0, 0, NULL), AOI_OK);
    const uint64_t id[] = {1, 7, 2, 0, 9, 3, 1, 4};
    const float x[] = {1, 1, 2, 1, 1, 3e7f, 5, NAN}, y[] = {1, 1, 3, 1, 1, 1, 6, 1};
    struct failures f = {0};
    assert_int_equal(aoi_entity_move_many(rig_core(r), 1, 8, id, x, y, NULL, NULL, note, &f), 3);
    assert_int_equal(f.n, 5);
    static const size_t at[] = {1, 3, 4, 5, 7};
    static const int err[] = {AOI_ENOENTITY, AOI_EINVAL, AOI_EOWNER, AOI_EBOUNDS, AOI_EINVAL};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(f.at[i], at[i]);
        assert_int_equal(f.err[i], err[i]);
    }
    struct aoi_entity e;
    assert_int_equal(aoi_entity_get(rig_core(r), 1, &e), AOI_OK);
    assert_true(e.pos[0] == 5 && e.pos[1] == 6); /* the later of its two moves */
    assert_int_equal(aoi_entity_get(rig_core(r), 2, &e), AOI_OK);
    assert_true(e.pos[0] == 2 && e.pos[1] == 3);
    for (uint64_t other = 1; other <= 4; other++) rig_remove(r, other); /* the model does not know of these moves */
}

static void count(void *ctx, const struct aoi_delta *d)
{
    uint32_t *served = ctx;
    served[d->player]++;
}

static void a_flush_in_slices_serves_everybody_once_under_one_number_and_the_next_starts_behind_the_last(void **state)
{
    (void)state;
    uint32_t served[WALKERS + 1] = {0};
    struct aoi_limits limits = rig_limits();
    const struct aoi_sink sink = {.ctx = served, .deliver = count};
    struct aoi_world *world = aoi_world_new(&limits, &sink);
    assert_int_equal(aoi_space_create(world, 1, 1, &(struct aoi_settings){0}, false), AOI_OK);
    struct aoi_space *space = aoi_space_find(world, 1);
    for (uint64_t p = 1; p <= WALKERS; p++) {
        const struct aoi_entity e = {.id = FIRST + p, .pos = {(float)p}, .radius = 1000};
        assert_int_equal(aoi_entity_add(space, 1, AOI_ADD_NEW, &e), AOI_OK);
        assert_int_equal(aoi_subscribe(space, 1, p, e.id, false), AOI_OK);
    }
    for (uint32_t slice = 1; slice <= WALKERS + 1; slice++) {
        struct aoi_flush_info info = {0};
        const float pos[3] = {500 - (float)slice, 0, 0};
        uint32_t steps = 0;
        assert_int_equal(aoi_entity_move(space, 1, FIRST + 1, pos, NULL), AOI_OK);
        assert_int_equal(aoi_entity_move(space, 1, FIRST + 2, pos, NULL), AOI_OK);
        aoi_flush_begin(space, &info);
        assert_int_equal(info.flush, slice);
        while (aoi_flush_step(space, &info, slice)) steps++;
        assert_false(aoi_flush_step(space, &info, slice)); /* there is nobody left */
        aoi_flush_end(space, &info);
        assert_false(info.pending);
        assert_int_equal(steps, (WALKERS - 1) / slice);
        for (uint32_t p = 1; p <= WALKERS; p++) assert_int_equal(served[p], slice);
        aoi_validate(world);
    }
    aoi_world_free(world);
}

static void a_world_may_end_while_a_flush_is_open(void **state)
{
    (void)state;
    struct aoi_limits limits = rig_limits();
    struct aoi_world *world = aoi_world_new(&limits, NULL);
    struct aoi_flush_info info = {0};
    assert_int_equal(aoi_space_create(world, 1, 1, &(struct aoi_settings){0}, false), AOI_OK);
    struct aoi_space *space = aoi_space_find(world, 1);
    assert_int_equal(aoi_entity_add(space, 1, AOI_ADD_NEW, &(struct aoi_entity){.id = 1, .radius = 1}), AOI_OK);
    assert_int_equal(aoi_subscribe(space, 1, 1, 1, true), AOI_OK);
    aoi_flush_begin(space, &info);
    aoi_world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_column_moves_id_by_id_in_order_and_tells_which_were_refused_and_why),
        cmocka_unit_test(a_flush_in_slices_serves_everybody_once_under_one_number_and_the_next_starts_behind_the_last),
        cmocka_unit_test(a_world_may_end_while_a_flush_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
