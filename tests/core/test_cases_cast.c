/* test_cases_cast.c: messages to those who see where they come from, owners that hear who is observed, and what passes from one owner to another. */
#include <math.h>

#include "rig.h"

enum { P = 1, Q = 2, S = 3, U = 1000, V = 1001, M = 21 };

/* P and Q watch from the origin, S from far away. */
static void watch(struct rig *r)
{
    rig_add(r, U, 0, 0, 10);
    rig_add(r, V, 500, 500, 10);
    rig_subscribe(r, P, U);
    rig_subscribe(r, Q, U);
    rig_subscribe(r, S, V);
    rig_flush(r);
}

/* ------------------------------------------------------------------------------------------------------------- casts */

CASE(a_cast_reaches_those_who_see_the_caster_after_the_flush_and_nobody_else)
{
    watch(r);
    rig_add(r, M, 5, 0, 0);
    rig_cast(r, M, "hello"); /* they come to see it at this very flush */
    assert_string_equal(rig_tells(r, P), "E21(5,0) M21=hello");
    assert_string_equal(rig_told(r, Q)->text, " E21(5,0) M21=hello");
    assert_string_equal(rig_told(r, S)->text, "");
    rig_cast(r, M, "fire");
    assert_string_equal(rig_tells(r, P), "M21=fire");
    assert_int_equal(r->told.n, 2);
    rig_cast(r, M, "going");
    rig_move(r, M, 500, 501); /* out of the sight of two, into that of the third */
    assert_string_equal(rig_tells(r, P), "L21");
    assert_string_equal(rig_told(r, S)->text, " E21(500,501) M21=going");
    rig_move(r, M, 5, 0);
    rig_flush(r);
    rig_override(r, P, M, AOI_OVERRIDE_HIDE);
    rig_override(r, S, M, AOI_OVERRIDE_SHOW);
    rig_layers(r, M, 2);
    rig_open(r, Q, (struct aoi_player_settings){.mask = 1});
    rig_cast(r, M, "ice");
    rig_flush(r);
    assert_string_equal(rig_told(r, P)->text, " L21");
    assert_string_equal(rig_told(r, Q)->text, " L21");
    assert_string_equal(rig_told(r, S)->text, " E21(5,0) M21=ice");
    assert_false(rig_flush(r));
    assert_int_equal(r->told.n, 0); /* an event is told once */
}

CASE(casts_come_in_the_order_of_publishing_whatever_they_come_from)
{
    watch(r);
    rig_add(r, 1, 1, 0, 0);
    rig_add(r, 2, 2, 0, 0);
    rig_flush(r);
    rig_cast(r, 2, "a");
    rig_cast_at(r, 3, 3, 3, 3, "b");
    rig_cast(r, 1, "c");
    rig_cast_at(r, -600, 0, 600, 600, "d");
    rig_cast(r, 2, "a");
    rig_cast(r, V, "e"); /* a unit does not see itself */
    rig_cast(r, 2, "");
    rig_move(r, 1, 1, 1);
    assert_string_equal(rig_tells(r, P), "U1(1,1) M2=a M0=b M1=c M0=d M2=a M2=");
    assert_string_equal(rig_told(r, S)->text, " M0=d");
}

CASE(a_cast_at_a_point_or_in_a_box_reaches_who_looks_there_whatever_mask_margin_and_overrides)
{
    for (uint32_t shape = AOI_SHAPE_BOX; shape <= AOI_SHAPE_SPHERE; shape++) {
        rig_space(r, &(struct aoi_settings){.shape = shape, .leave_margin = 5}, NULL);
        watch(r);
        rig_open(r, P, (struct aoi_player_settings){.mask = 4, .presence_only = true});
        rig_viewport(r, S, 30, 30, 40, 40);
        rig_flush(r);
        rig_cast_at(r, 10, 0, 10, 0, "edge");
        rig_cast_at(r, 10.5f, 0, 10.5f, 0, "margin");
        rig_cast_at(r, 9, 9, 9, 9, "corner");
        rig_cast_at(r, 8, 8, 35, 35, "box");
        rig_cast_at(r, 40, 40, 3e38f, 3e38f, "rest");
        rig_flush(r);
        bool sphere = shape == AOI_SHAPE_SPHERE;
        assert_string_equal(rig_told(r, P)->text, sphere ? " M0=edge" : " M0=edge M0=corner M0=box");
        assert_string_equal(rig_told(r, Q)->text, sphere ? " M0=edge" : " M0=edge M0=corner M0=box");
        assert_string_equal(rig_told(r, S)->text, " M0=box M0=rest");
        rig_move(r, U, 5, 5);
        rig_radius(r, V, 0);
        rig_cast_at(r, 15, 5, 15, 5, "where units are");
        rig_cast_at(r, 500, 500, 500, 500, "nobody");
        rig_flush(r);
        assert_string_equal(rig_told(r, P)->text, " M0=where units are");
        assert_string_equal(rig_told(r, S)->text, "");
    }
}

CASE(a_cast_into_a_cell_reaches_the_block_around_it)
{
    rig_space(r, &(struct aoi_settings){.shape = AOI_SHAPE_CELLS, .cell_size = 10}, NULL);
    rig_add(r, U, 5, 5, 1);
    rig_subscribe(r, P, U);
    rig_flush(r);
    static const struct {
        float x, y;
        bool told;
    } at[] = {{-10, -10, true}, {19.5f, 19.5f, true}, {20, 5, false}, {5, -10.5f, false}, {-10.5f, 5, false}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        rig_cast_at(r, at[i].x, at[i].y, at[i].x, at[i].y, "x");
        assert_string_equal(rig_tells(r, P), at[i].told ? "M0=x" : "");
    }
    rig_cast_at(r, -500, 19.9f, 500, 300, "x");
    assert_string_equal(rig_tells(r, P), "M0=x");
}

CASE(nothing_is_delivered_of_a_publisher_that_is_gone_or_not_yet_entered)
{
    watch(r);
    rig_set(r, (struct aoi_space_change){.has_max_enter_per_flush = true, .max_enter_per_flush = 1});
    rig_add(r, 1, 1, 0, 0);
    rig_add(r, 2, 2, 0, 0);
    rig_cast(r, 1, "one");
    rig_cast(r, 2, "two");
    assert_string_equal(rig_tells(r, P), "E1(1,0) M1=one");
    assert_string_equal(rig_tells(r, P), "E2(2,0)"); /* and lost */
    rig_cast(r, 1, "last words");
    rig_remove(r, 1);
    assert_string_equal(rig_tells(r, P), "L1");
    rig_cast(r, 2, "last words");
    rig_remove(r, 2);
    rig_add(r, 2, 2, 0, 0); /* another one */
    rig_cast(r, 2, "first words");
    assert_string_equal(rig_tells(r, P), "L2 E2(2,0) M2=first words");
}

CASE(skipped_players_and_full_deltas_lose_casts_and_say_how_many_at_most)
{
    watch(r);
    assert_int_equal(model_subscribe(&r->m, r->s, 2, 9, U, false), AOI_OK);
    rig_add(r, M, 5, 0, 0);
    rig_flush(r);
    r->m.room[2] = 0;
    rig_cast(r, M, "one");
    rig_cast(r, V, "elsewhere");
    assert_true(rig_flush(r));
    rig_cast(r, M, "two");
    rig_flush(r);
    assert_string_equal(rig_told(r, P)->text, " M21=two");
    r->m.room[2] = MODEL_NO_LIMIT;
    rig_cast(r, M, "three");
    rig_flush(r);
    assert_string_equal(rig_told(r, 9)->text, " M21=three lost3"); /* an upper bound: one was not for it */
    rig_cast(r, M, "four");
    assert_int_equal(model_resync(&r->m, r->s, 2, 9), AOI_OK);
    rig_flush(r);
    assert_string_equal(rig_told(r, 9)->text, " full E21(5,0) lost1");
    rig_cast(r, M, "five");
    rig_flush(r);
    assert_string_equal(rig_told(r, 9)->text, " M21=five");
}

CASE(who_is_away_hears_how_many_casts_at_most_it_has_lost_also_of_whom_it_only_keeps_for_a_while)
{
    rig_set(r, (struct aoi_space_change){.has_min_stay_ms = true, .min_stay_ms = 1u << 30});
    rig_add(r, U, 0, 0, 10);
    rig_add(r, M, 5, 0, 0);
    assert_int_equal(model_subscribe(&r->m, r->s, 2, 9, U, false), AOI_OK);
    rig_flush(r);
    rig_move(r, M, 5000, 0);
    rig_flush(r);
    rig_cast(r, M, "far");
    assert_string_equal(rig_tells(r, 9), "M21=far");
    model_owner_away(&r->m, 2, true);
    for (int i = 0; i < 3; i++) {
        rig_cast(r, M, "nobody is there");
        rig_flush(r);
    }
    model_owner_away(&r->m, 2, false);
    assert_string_equal(rig_tells(r, 9), "full E21(5000,0) lost3");
    rig_cast(r, M, "again");
    assert_string_equal(rig_tells(r, 9), "M21=again");
}

CASE(a_cast_is_heard_though_the_space_has_emptied_since)
{
    rig_cast_at(r, 5, 5, 5, 5, "before the crowd");
    rig_flush(r);
    for (uint64_t id = 1; id <= 1000; id++) assert_int_equal(rig_add_by(r, 2, AOI_ADD_NEW, id, 0, 0, 0, NULL), AOI_OK);
    rig_flush(r);
    rig_cast_at(r, 5, 5, 5, 5, "goodbye");
    model_owner_end(&r->m, 2, true);
    rig_viewport(r, P, 0, 0, 10, 10);
    assert_string_equal(rig_tells(r, P), "M0=goodbye");
}

CASE(casts_for_which_there_is_no_room_are_lost_and_counted)
{
    watch(r);
    assert_int_equal(model_subscribe(&r->m, r->s, 2, 9, U, false), AOI_OK);
    rig_add(r, M, 5, 0, 0);
    rig_flush(r);
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 10; i++) rig_cast(r, M, text);
    rig_move(r, M, 6, 0);
    r->m.room[2] = 3000;
    rig_flush(r);
    assert_int_equal(rig_told(r, P)->messages, 10);
    const struct rig_told *told = rig_told(r, 9);
    assert_true(told->updates == 1 && told->messages >= 1 && told->messages < 3 && told->lost == 10 - told->messages);
    r->m.room[2] = 1;
    rig_cast(r, M, text);
    rig_move(r, M, 7, 0);
    rig_flush(r);
    told = rig_told(r, 9);
    assert_true(told->updates == 1 && told->messages == 0 && told->lost == 1);
    r->m.room[2] = MODEL_NO_LIMIT;
    assert_false(rig_flush(r));
    assert_int_equal(r->told.n, 0);
}

CASE(casting_is_for_owners_within_limits)
{
    struct aoi_limits limits = rig_limits();
    limits.max_message = 5;
    limits.max_messages = 3;
    rig_space(r, NULL, &limits);
    watch(r);
    const float at[3] = {0, 0, 0}, bad[3] = {NAN, 0, 0}, far_away[3] = {3e38f, 0, 0};
    assert_int_equal(model_publish_from(&r->m, r->s, 1, 77, "x", 1), AOI_ENOENTITY);
    assert_int_equal(model_publish_from(&r->m, r->s, 1, 0, "x", 1), AOI_EINVAL);
    assert_int_equal(model_publish_from(&r->m, r->s, 2, U, "x", 1), AOI_EOWNER);
    assert_int_equal(model_publish_from(&r->m, r->s, 1, U, "123456", 6), AOI_ELIMIT);
    assert_int_equal(model_publish_at(&r->m, r->s, at, at, "123456", 6), AOI_ELIMIT);
    assert_int_equal(model_publish_at(&r->m, r->s, bad, at, "x", 1), AOI_EINVAL);
    assert_int_equal(model_publish_at(&r->m, r->s, far_away, at, "x", 1), AOI_EINVAL);
    assert_false(aoi_space_dirty(rig_core(r)));
    rig_cast(r, U, "12345");
    rig_cast_at(r, 0, 0, 0, 0, "12345");
    rig_cast(r, U, "");
    assert_int_equal(model_publish_from(&r->m, r->s, 1, U, "x", 1), AOI_ELIMIT);
    assert_int_equal(model_publish_at(&r->m, r->s, at, at, "x", 1), AOI_ELIMIT);
    assert_string_equal(rig_tells(r, P), "M0=12345");
    rig_cast(r, U, "x"); /* the next window */
    assert_string_equal(rig_tells(r, P), "");
}

CASE(what_a_stay_or_a_margin_keeps_or_appeal_brings_is_heard)
{
    rig_set(r, (struct aoi_space_change){.has_min_stay_ms = true, .min_stay_ms = 100, .has_leave_margin = true, .leave_margin = 5});
    watch(r);
    rig_add(r, 1, 9, 0, 0);
    rig_add(r, 2, 9, 0, 0);
    rig_add(r, 3, 900, 0, 0);
    rig_appeal(r, 3, 1000);
    rig_flush(r);
    rig_move(r, 1, 14, 0);
    rig_move(r, 2, 300, 0);
    rig_flush(r);
    for (uint64_t id = 1; id <= 3; id++) rig_cast(r, id, "hi");
    assert_string_equal(rig_tells(r, P), "M1=hi M2=hi M3=hi");
    assert_string_equal(rig_told(r, S)->text, " M3=hi");
}

/* ------------------------------------------------------------------------------------------------------------- observed */

static void add_reporting(struct rig *r, aoi_owner owner, uint64_t id, float x)
{
    struct aoi_entity e = {.id = id, .pos = {x, 0, 0}, .radius = 10, .report_observed = true};
    assert_int_equal(model_entity_add(&r->m, r->s, owner, AOI_ADD_NEW, &e), AOI_OK);
}

CASE(observed_turns_on_with_the_first_stranger_and_off_with_the_last)
{
    watch(r);
    add_reporting(r, 2, M, 5);
    rig_subscribe(r, S, M); /* its own player, who sees it through another unit, too: no stranger */
    rig_add(r, 30, 6, 0, 10);
    rig_subscribe(r, S, 30);
    rig_override(r, P, M, AOI_OVERRIDE_HIDE);
    rig_override(r, Q, M, AOI_OVERRIDE_HIDE);
    rig_flush(r);
    assert_true(model_told(model_player(r->s, S), M) != NULL);
    assert_string_equal(r->owners, "");
    rig_override(r, P, M, AOI_OVERRIDE_NONE);
    rig_flush(r);
    assert_string_equal(r->owners, " 2:+21");
    rig_override(r, Q, M, AOI_OVERRIDE_NONE);
    rig_flush(r);
    rig_override(r, P, M, AOI_OVERRIDE_HIDE);
    rig_flush(r);
    assert_string_equal(r->owners, "");
    rig_subscribe(r, Q, M); /* the last stranger becomes its own player */
    rig_flush(r);
    assert_string_equal(r->owners, " 2:-21");
    rig_unsubscribe(r, S, M);
    rig_flush(r);
    assert_string_equal(r->owners, " 2:+21");
    assert_int_equal(model_player_close(&r->m, r->s, 1, S), AOI_OK);
    rig_flush(r);
    assert_string_equal(r->owners, " 2:-21");
}

CASE(observed_on_and_off_within_a_window_is_nothing_and_a_removed_entity_is_not_reported)
{
    watch(r);
    add_reporting(r, 1, M, 5);
    rig_move(r, M, 100, 0);
    rig_flush(r);
    rig_move(r, M, 5, 0);
    rig_move(r, M, 100, 0);
    rig_flush(r);
    assert_string_equal(r->owners, "");
    rig_move(r, M, 5, 0);
    rig_flush(r);
    assert_string_equal(r->owners, " 1:+21");
    rig_remove(r, M);
    rig_flush(r);
    assert_string_equal(r->owners, "");
    add_reporting(r, 1, M, 5);
    rig_flush(r);
    assert_string_equal(r->owners, " 1:+21");
    struct aoi_entity quiet = {.id = M, .pos = {5, 0, 0}};
    assert_int_equal(model_entity_add(&r->m, r->s, 1, AOI_ADD_UPSERT, &quiet), AOI_OK);
    rig_move(r, M, 100, 0);
    rig_flush(r);
    assert_string_equal(r->owners, "");
}

CASE(an_owner_that_cannot_hear_is_told_what_differs_when_it_can)
{
    watch(r);
    for (uint64_t id = 1; id <= 4; id++) add_reporting(r, 2, id, (float)id);
    add_reporting(r, 3, 5, 5);
    r->m.deaf[2] = true;
    assert_true(rig_flush(r));
    assert_string_equal(r->owners, " 3:+5");
    assert_int_equal(rig_move_by(r, 2, 1, 300, 0), AOI_OK);
    assert_true(rig_flush(r));
    assert_string_equal(r->owners, "");
    r->m.deaf[2] = false;
    assert_false(rig_flush(r));
    assert_non_null(strstr(r->owners, " 2:+2"));
    assert_non_null(strstr(r->owners, " 2:+3"));
    assert_null(strstr(r->owners, ":+1"));
    rig_flush(r);
    assert_string_equal(r->owners, "");
}

/* ------------------------------------------------------------------------------------------------------------- handing over */

static int adopt(struct rig *r, aoi_owner owner, uint64_t id)
{
    struct aoi_entity e = {.id = id, .pos = {NAN, 0, 0}, .radius = -1, .payload = "ignored", .payload_len = 7};
    return model_entity_add(&r->m, r->s, owner, AOI_ADD_ADOPT, &e);
}

CASE(an_entity_handed_from_one_server_to_another_does_not_leave_any_view)
{
    watch(r);
    struct aoi_entity e = {
        .id = M, .pos = {5, 0, 0}, .radius = 7, .layers = 3, .appeal = 2, .priority = 9, .report_observed = true, .payload = "p", .payload_len = 1};
    assert_int_equal(model_entity_add(&r->m, r->s, 2, AOI_ADD_NEW, &e), AOI_OK);
    rig_flush(r);
    assert_string_equal(r->owners, " 2:+21");
    assert_int_equal(adopt(r, 3, M), AOI_EOWNER); /* not released */
    assert_int_equal(model_entity_release(&r->m, r->s, 2, M, 0), AOI_OK);
    assert_int_equal(rig_move_by(r, 2, M, 6, 0), AOI_OK); /* still its owner's in every respect */
    r->owners[0] = '\0';
    assert_int_equal(adopt(r, 3, M), AOI_OK);
    assert_string_equal(r->owners, " 2:lost 21");
    assert_int_equal(rig_move_by(r, 2, M, 7, 0), AOI_EOWNER);
    assert_int_equal(model_entity_get(&r->m, r->s, M), AOI_OK); /* fields and owner */
    assert_string_equal(rig_tells(r, P), "U21(6,0)");
    assert_string_equal(r->owners, " 3:+21");     /* restated to the new one */
    assert_int_equal(adopt(r, 4, M), AOI_EOWNER); /* what was released is taken once */
    model_owner_end(&r->m, 2, true);
    assert_int_equal(model_entity_get(&r->m, r->s, M), AOI_OK);
    model_owner_end(&r->m, 3, true);
    assert_int_equal(model_entity_get(&r->m, r->s, M), AOI_ENOENTITY);
}

CASE(what_is_released_to_one_is_not_anybodys_and_ends_with_its_owner_until_it_is_taken)
{
    watch(r);
    rig_add(r, M, 5, 0, 0);
    assert_int_equal(model_entity_release(&r->m, r->s, 2, M, 0), AOI_EOWNER);
    assert_int_equal(model_entity_release(&r->m, r->s, 1, 77, 0), AOI_ENOENTITY);
    assert_int_equal(model_entity_release(&r->m, r->s, 1, M, 3), AOI_OK);
    assert_int_equal(adopt(r, 2, M), AOI_EOWNER);
    assert_int_equal(rig_add_by(r, 3, AOI_ADD_UPSERT, M, 1, 1, 0, NULL), AOI_EOWNER);
    assert_int_equal(adopt(r, 3, 77), AOI_ENOENTITY);
    assert_int_equal(adopt(r, 1, M), AOI_OK); /* taken back */
    assert_int_equal(adopt(r, 3, M), AOI_EOWNER);
    assert_int_equal(model_entity_release(&r->m, r->s, 1, M, 3), AOI_OK);
    assert_int_equal(model_entity_release(&r->m, r->s, 1, M, 2), AOI_OK); /* the last word counts */
    assert_int_equal(adopt(r, 3, M), AOI_EOWNER);
    rig_remove(r, M);
    rig_add(r, M, 5, 0, 0);
    assert_int_equal(adopt(r, 2, M), AOI_EOWNER); /* another entity: it was not released */
    assert_int_equal(model_entity_release(&r->m, r->s, 1, M, 3), AOI_OK);
    assert_int_equal(model_player_release(&r->m, r->s, 1, Q, 3), AOI_OK);
    model_owner_end(&r->m, 3, true); /* what was released to one that is gone is released to nobody */
    assert_int_equal(adopt(r, 3, M), AOI_EOWNER);
    assert_int_equal(model_player_settings(&r->m, r->s, 3, Q, &(struct aoi_player_settings){.take_over = true}), AOI_EOWNER);
    assert_int_equal(rig_add_by(r, 2, AOI_ADD_NEW, 22, 6, 0, 0, NULL), AOI_OK);
    assert_int_equal(model_entity_release(&r->m, r->s, 2, 22, 0), AOI_OK);
    rig_flush(r);
    model_owner_end(&r->m, 2, true);
    assert_int_equal(adopt(r, 3, 22), AOI_ENOENTITY);
    assert_string_equal(rig_tells(r, P), "L22");
}

CASE(a_player_passes_from_one_gateway_to_another_with_one_full_delta)
{
    rig_margin(r, 5);
    watch(r);
    rig_add(r, M, 9, 0, 0);
    rig_flush(r);
    rig_move(r, M, 12, 0); /* in the margin: the told set is kept */
    struct aoi_player_settings take = {.take_over = true};
    assert_int_equal(model_player_settings(&r->m, r->s, 2, P, &take), AOI_EOWNER);
    assert_int_equal(model_player_release(&r->m, r->s, 2, P, 2), AOI_EOWNER);
    assert_int_equal(model_player_release(&r->m, r->s, 1, 77, 2), AOI_ENOPLAYER);
    assert_int_equal(model_player_release(&r->m, r->s, 1, P, 2), AOI_OK);
    assert_int_equal(model_player_settings(&r->m, r->s, 3, P, &take), AOI_EOWNER);
    assert_int_equal(model_player_settings(&r->m, r->s, 2, P, &(struct aoi_player_settings){0}), AOI_EOWNER); /* it has to say so */
    r->owners[0] = '\0';
    assert_int_equal(model_player_settings(&r->m, r->s, 2, P, &take), AOI_OK);
    assert_string_equal(r->owners, " 1:lost player 1");
    assert_int_equal(model_unsubscribe(&r->m, r->s, 1, P, U), AOI_EOWNER);
    assert_string_equal(rig_tells(r, P), "full E21(12,0)");
    assert_false(rig_flush(r));
    rig_move(r, M, 8, 0);
    assert_string_equal(rig_tells(r, P), "U21(8,0)");
    assert_int_equal(model_player_settings(&r->m, r->s, 1, P, &take), AOI_EOWNER); /* released once */
    model_owner_end(&r->m, 2, true);
    assert_string_equal(rig_told(r, P)->text, " U21(8,0)");
    assert_null(model_player(r->s, P));
}

CASE(a_player_that_changes_hands_keeps_its_settings_where_that_is_said_and_else_gets_new_ones)
{
    rig_open(r, P, (struct aoi_player_settings){.mask = 2, .presence_only = true});
    watch(r);
    rig_add(r, M, 9, 0, 0); /* of layers 1: hidden */
    assert_string_equal(rig_tells(r, P), "");
    assert_int_equal(model_player_release(&r->m, r->s, 1, P, 2), AOI_OK);
    assert_int_equal(model_player_settings(&r->m, r->s, 2, P, &(struct aoi_player_settings){.take_over = true, .keep = true, .mask = 1}), AOI_OK);
    rig_move(r, M, 8, 0);
    assert_string_equal(rig_tells(r, P), "full");
    assert_int_equal(model_player_settings(&r->m, r->s, 2, P, &(struct aoi_player_settings){.keep = true}), AOI_OK);
    assert_string_equal(rig_tells(r, P), "");
    assert_int_equal(model_player_release(&r->m, r->s, 2, P, 3), AOI_OK);
    assert_int_equal(model_player_settings(&r->m, r->s, 3, P, &(struct aoi_player_settings){.take_over = true}), AOI_OK);
    assert_string_equal(rig_tells(r, P), "full E21(8,0)");
}

CASE(take_over_of_an_unknown_player_opens_it_and_of_ones_own_replaces_settings)
{
    struct aoi_player_settings take = {.take_over = true, .mask = 2};
    rig_add(r, U, 0, 0, 10);
    rig_add(r, M, 5, 0, 0);
    assert_int_equal(model_player_settings(&r->m, r->s, 2, P, &take), AOI_OK);
    assert_int_equal(model_subscribe(&r->m, r->s, 2, P, U, false), AOI_OK);
    assert_string_equal(rig_tells(r, P), "");
    take.mask = 1;
    assert_int_equal(model_player_settings(&r->m, r->s, 2, P, &take), AOI_OK);
    assert_string_equal(rig_tells(r, P), "E21(5,0)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cast_reaches_those_who_see_the_caster_after_the_flush_and_nobody_else),
        cmocka_unit_test(casts_come_in_the_order_of_publishing_whatever_they_come_from),
        cmocka_unit_test(a_cast_at_a_point_or_in_a_box_reaches_who_looks_there_whatever_mask_margin_and_overrides),
        cmocka_unit_test(a_cast_into_a_cell_reaches_the_block_around_it),
        cmocka_unit_test(nothing_is_delivered_of_a_publisher_that_is_gone_or_not_yet_entered),
        cmocka_unit_test(skipped_players_and_full_deltas_lose_casts_and_say_how_many_at_most),
        cmocka_unit_test(who_is_away_hears_how_many_casts_at_most_it_has_lost_also_of_whom_it_only_keeps_for_a_while),
        cmocka_unit_test(a_cast_is_heard_though_the_space_has_emptied_since),
        cmocka_unit_test(casts_for_which_there_is_no_room_are_lost_and_counted),
        cmocka_unit_test(casting_is_for_owners_within_limits),
        cmocka_unit_test(what_a_stay_or_a_margin_keeps_or_appeal_brings_is_heard),
        cmocka_unit_test(observed_turns_on_with_the_first_stranger_and_off_with_the_last),
        cmocka_unit_test(observed_on_and_off_within_a_window_is_nothing_and_a_removed_entity_is_not_reported),
        cmocka_unit_test(an_owner_that_cannot_hear_is_told_what_differs_when_it_can),
        cmocka_unit_test(an_entity_handed_from_one_server_to_another_does_not_leave_any_view),
        cmocka_unit_test(what_is_released_to_one_is_not_anybodys_and_ends_with_its_owner_until_it_is_taken),
        cmocka_unit_test(a_player_passes_from_one_gateway_to_another_with_one_full_delta),
        cmocka_unit_test(a_player_that_changes_hands_keeps_its_settings_where_that_is_said_and_else_gets_new_ones),
        cmocka_unit_test(take_over_of_an_unknown_player_opens_it_and_of_ones_own_replaces_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
