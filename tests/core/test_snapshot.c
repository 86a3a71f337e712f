/* test_snapshot.c: a world that goes through bytes: nothing that matters is lost, and bytes that are no world are refused whole. Random worlds do it in test_model.c. */
#include "base/buf.h"
#include "core/space.h"
#include "rig.h"

enum { P = 1, Q = 2, U = 100, V = 101, M = 21 };

static void restart(struct rig *r)
{
    model_restart(&r->m, 0);
    r->told.n = 0;
    r->owners[0] = '\0';
}

static void back(struct rig *r, aoi_owner owner)
{
    model_owner_away(&r->m, owner, false);
}

/* Owner 1 has U, which P watches by, and what is around; owner 2 has V and its player Q. */
static void meet(struct rig *r)
{
    r->places = false;
    rig_add(r, U, 0, 0, 10);
    rig_add(r, M, 3, 0, 0);
    rig_payload(r, M, "wolf");
    assert_int_equal(rig_add_by(r, 2, AOI_ADD_NEW, V, 1, 1, 10, "v"), AOI_OK);
    rig_subscribe(r, P, U);
    assert_int_equal(model_subscribe(&r->m, r->s, 2, Q, V, true), AOI_OK);
    assert_string_equal(rig_tells(r, P), "E21=wolf E101=v");
    assert_string_equal(rig_told(r, Q)->text, " E21=wolf E100 E101=v");
}

CASE(who_comes_back_is_told_everything_anew_and_nobody_sees_a_leave)
{
    meet(r);
    rig_move(r, M, 4, 0); /* not flushed yet: the truth is what is saved */
    restart(r);
    rig_flush(r);
    assert_int_equal(r->told.n, 0);
    back(r, 1);
    assert_string_equal(rig_tells(r, P), "full E21=wolf E101=v");
    back(r, 2);
    r->places = true;
    assert_string_equal(rig_tells(r, Q), "full E21(4,0)=wolf E100(0,0) E101(1,1)=v");
    assert_int_equal(rig_told(r, P)->leaves, 0);
    rig_move(r, M, 5, 0);
    assert_string_equal(rig_tells(r, P), "U21(5,0)");
}

CASE(an_owner_who_does_not_come_back_ends_like_any_other)
{
    meet(r);
    restart(r);
    back(r, 1);
    rig_flush(r);
    model_owner_end(&r->m, 2, false);
    assert_string_equal(rig_tells(r, P), "L101");
    aoi_validate(r->m.world);
}

CASE(what_was_told_stays_as_long_as_if_nothing_had_happened)
{
    r->places = false;
    rig_set(r, (struct aoi_space_change){.has_min_stay_ms = true, .min_stay_ms = 1000, .has_leave_margin = true, .leave_margin = 2});
    rig_add(r, U, 0, 0, 10);
    rig_add(r, M, 3, 0, 0);
    rig_subscribe(r, P, U);
    rig_flush(r);
    r->m.now_ms += 400;
    rig_move(r, M, 500, 0);
    rig_add(r, 22, 11, 0, 0); /* in the margin, but never told */
    model_restart(&r->m, 300);
    back(r, 1);
    assert_string_equal(rig_tells(r, P), "full E21");
    r->m.now_ms += 299;
    assert_string_equal(rig_tells(r, P), "");
    r->m.now_ms += 1;
    assert_string_equal(rig_tells(r, P), "L21");
}

CASE(settings_overrides_releases_and_numbers_of_deltas_survive)
{
    meet(r);
    rig_override(r, P, M, AOI_OVERRIDE_HIDE);
    rig_override(r, P, 77, AOI_OVERRIDE_SHOW); /* which is not there yet */
    rig_viewport(r, P, 50, 50, 60, 60);
    rig_flush(r);
    assert_int_equal(model_entity_release(&r->m, r->s, 1, M, 2), AOI_OK);
    assert_int_equal(model_player_release(&r->m, r->s, 1, P, 0), AOI_OK);
    uint64_t seq = model_player(r->s, P)->seq;
    restart(r);
    back(r, 1);
    back(r, 2);
    assert_string_equal(rig_tells(r, P), "full E101=v");
    assert_int_equal(model_player(r->s, P)->seq, seq + 1);
    rig_add(r, 77, 9000, 0, 0);
    rig_add(r, 55, 55, 55, 0);
    assert_string_equal(rig_tells(r, P), "E55 E77");
    const struct aoi_entity adopt = {.id = M};
    assert_int_equal(model_entity_add(&r->m, r->s, 3, AOI_ADD_ADOPT, &adopt), AOI_EOWNER);
    assert_int_equal(model_entity_add(&r->m, r->s, 2, AOI_ADD_ADOPT, &adopt), AOI_OK);
    assert_int_equal(model_player_settings(&r->m, r->s, 3, P, &(struct aoi_player_settings){.take_over = true}), AOI_OK);
}

CASE(messages_that_nobody_got_are_counted_as_lost)
{
    meet(r);
    rig_cast(r, M, "roar");
    restart(r);
    back(r, 1);
    assert_string_equal(rig_tells(r, P), "full E21=wolf E101=v lost1");
}

static bool settings_of_now(void *ctx, uint64_t space, struct aoi_settings *settings)
{
    if (space != 1) return false;
    *settings = *(const struct aoi_settings *)ctx;
    return true;
}

static bool knows_one(void *ctx, aoi_owner owner)
{
    (void)ctx;
    return owner == 1;
}

static struct aoi_world *load(const struct rig *r, const struct buf *saved, const struct aoi_load *how, const struct aoi_limits *limits, char *why)
{
    struct aoi_load from = *how;
    from.bytes = buf_data(saved);
    from.len = buf_len(saved);
    return aoi_world_load(limits != NULL ? limits : &r->m.limits, NULL, &from, why);
}

CASE(a_space_of_the_configuration_gets_the_settings_that_stand_there_now)
{
    char why[AOI_LOAD_WHY];
    struct buf saved = {0};
    meet(r);
    model_save(r->m.world, 0, &saved);
    struct aoi_settings now = {.index = 3 - (uint32_t)r->index, .flush_ms = 20, .cell_size = 7};
    struct aoi_world *world = load(r, &saved, &(struct aoi_load){.settings = settings_of_now, .ctx = &now}, NULL, why);
    assert_non_null(world);
    aoi_validate(world);
    const struct aoi_space *space = aoi_space_find(world, 1);
    assert_int_equal(aoi_space_settings(space)->index, now.index);
    assert_int_equal(aoi_space_owner(space), 0);
    assert_int_equal(aoi_space_destroy(world, 1, true, 1), AOI_EOWNER);
    aoi_world_free(world);
    now.bounded = true; /* to nothing but 0 */
    assert_null(load(r, &saved, &(struct aoi_load){.settings = settings_of_now, .ctx = &now}, NULL, why));
    assert_string_equal(why, "space 1, entity 21: it lies outside the bounds of its space");
    buf_clear(&saved);
}

CASE(what_the_limits_do_not_allow_or_nobody_owns_is_refused_by_name)
{
    char why[AOI_LOAD_WHY];
    struct buf saved = {0};
    struct aoi_limits limits = r->m.limits;
    meet(r);
    model_save(r->m.world, 0, &saved);
    limits.max_payload = 3;
    assert_null(load(r, &saved, &(struct aoi_load){0}, &limits, why));
    assert_string_equal(why, "space 1, entity 21: it is over max_payload of the configuration");
    limits.max_payload = 4;
    limits.max_radius = 1;
    assert_null(load(r, &saved, &(struct aoi_load){0}, &limits, why));
    assert_non_null(strstr(why, ": it is over max_radius of the configuration"));
    limits.max_radius = 0;
    limits.max_players = 1;
    assert_null(load(r, &saved, &(struct aoi_load){0}, &limits, why));
    assert_string_equal(why, "space 1, player 2: it is over max_players of the configuration");
    assert_null(load(r, &saved, &(struct aoi_load){.knows = knows_one}, NULL, why));
    assert_string_equal(why, "space 1, entity 101: its owner is not there");
    buf_clear(&saved);
}

/* Something of everything that is saved. */
static void fill(struct rig *r)
{
    rig_space(r,
              &(struct aoi_settings){.dimensions = 3, .extra = true, .bounded = true, .min = {-99, -99, -99}, .max = {99, 99, 99}, .min_stay_ms = 50},
              NULL);
    rig_tiers(r, "3:1 6:2 *:4");
    meet(r);
    rig_appeal(r, M, 2);
    rig_layers(r, M, 0);
    rig_viewport(r, P, -5, -5, 5, 5);
    rig_override(r, P, M, AOI_OVERRIDE_SHOW);
    rig_override(r, P, 7, AOI_OVERRIDE_HIDE);
    rig_open(r, P, (struct aoi_player_settings){.mask = 3, .max_view = 5, .leave_margin = 1, .max_enter_per_flush = 2, .presence_only = true});
    assert_int_equal(model_entity_release(&r->m, r->s, 1, M, 2), AOI_OK);
    rig_flush(r);
}

CASE(every_beginning_is_refused_but_the_whole)
{
    char why[AOI_LOAD_WHY];
    struct buf saved = {0};
    fill(r);
    model_save(r->m.world, r->m.now_ms, &saved);
    for (size_t len = 0; len < buf_len(&saved); len++) {
        why[0] = '\0';
        assert_null(model_load(r->m.world, buf_data(&saved), len, 0, 0, why));
        assert_true(why[0] != '\0');
    }
    buf_append(&saved, "", 1);
    assert_null(model_load(r->m.world, buf_data(&saved), buf_len(&saved), 0, 0, why));
    assert_string_equal(why, "space 1: there are bytes behind the last space");
    buf_clear(&saved);
}

/* That nothing is damaged is for a checksum to say; what is read here is a sound world, or none. */
static bool is_refused_or_sound(const struct rig *r, const struct buf *damaged)
{
    char why[AOI_LOAD_WHY] = "";
    struct buf again = {0};
    struct aoi_world *world = model_load(r->m.world, buf_data(damaged), buf_len(damaged), r->m.now_ms, 0, why);
    if (world == NULL) {
        assert_true(why[0] != '\0');
        return true;
    }
    world->sink = (struct aoi_sink){0}; /* it is not the model's world */
    aoi_validate(world);
    for (uint32_t i = 0; i < world->spaces.n; i++) {
        struct aoi_flush_info info = {.now_ms = r->m.now_ms};
        aoi_owner_away(world, 1, false);
        aoi_flush(world->spaces.at[i], &info);
    }
    aoi_validate(world);
    model_save(world, r->m.now_ms, &again);
    aoi_world_free(world);
    world = model_load(r->m.world, buf_data(&again), buf_len(&again), r->m.now_ms, 0, why);
    assert_non_null(world);
    aoi_world_free(world);
    buf_clear(&again);
    return false;
}

CASE(a_damaged_byte_makes_a_sound_world_or_none)
{
    struct buf saved = {0};
    uint32_t refused = 0, loaded = 0;
    fill(r);
    model_save(r->m.world, r->m.now_ms, &saved);
    for (size_t i = 0; i < buf_len(&saved); i++) {
        uint8_t was = saved.at[saved.start + i];
        for (uint32_t bit = 0; bit <= 8; bit++) {
            saved.at[saved.start + i] = bit == 8 ? (uint8_t)~was : (uint8_t)(was ^ 1u << bit);
            if (is_refused_or_sound(r, &saved))
                refused++;
            else
                loaded++;
        }
        saved.at[saved.start + i] = was;
    }
    assert_true(refused > 100 && loaded > 100);
    assert_false(is_refused_or_sound(r, &saved));
    buf_clear(&saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_comes_back_is_told_everything_anew_and_nobody_sees_a_leave),
        cmocka_unit_test(an_owner_who_does_not_come_back_ends_like_any_other),
        cmocka_unit_test(what_was_told_stays_as_long_as_if_nothing_had_happened),
        cmocka_unit_test(settings_overrides_releases_and_numbers_of_deltas_survive),
        cmocka_unit_test(messages_that_nobody_got_are_counted_as_lost),
        cmocka_unit_test(a_space_of_the_configuration_gets_the_settings_that_stand_there_now),
        cmocka_unit_test(what_the_limits_do_not_allow_or_nobody_owns_is_refused_by_name),
        cmocka_unit_test(every_beginning_is_refused_but_the_whole),
        cmocka_unit_test(a_damaged_byte_makes_a_sound_world_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
