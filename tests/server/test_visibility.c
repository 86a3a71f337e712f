/* test_visibility.c: the commands and queries of crowds, jitter, stealth, casts and passing on, without sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "commands.h"
#include "rig.h"

/* ------------------------------------------------------------------------------------------------------------- settings */

static struct aoi_settings settings_of(struct rig *rig, struct session *s, uint64_t space)
{
    const struct codec_server_frame *f = rig_ask(rig, s, (struct codec_query){.kind = CODEC_QUERY_LIST_SPACES, .cursor = space - 1});
    assert_int_equal(f->u.result.spaces[0].id, space);
    return f->u.result.spaces[0].settings;
}

static void what_set_space_names_changes_and_the_rest_stays(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    BATCH(rig, s, 1, CREATE_WITH(.leave_margin = 2, .max_view = 5, .tiers = {.n = 1, .at[0] = {30, 1}, .beyond = 4}));
    rig_expect_ack(rig, s, 1, 1);
    BATCH(rig, s, 2, SET_SPACE(.has_min_stay_ms = true, .min_stay_ms = 70, .has_max_view = true));
    rig_expect_ack(rig, s, 2, 1);
    struct aoi_settings set = settings_of(rig, s, 1);
    assert_true(set.leave_margin == 2.0f);
    assert_int_equal(set.min_stay_ms, 70);
    assert_int_equal(set.max_view, 0);
    assert_int_equal(set.tiers.n, 1);
    assert_int_equal(set.tiers.beyond, 4);
    assert_int_equal(set.flush_ms, 0);
    BATCH(rig, s, 4, SET_SPACE(.has_flush_ms = true, .flush_ms = 20, .has_tiers = true));
    rig_expect_ack(rig, s, 4, 1);
    set = settings_of(rig, s, 1);
    assert_int_equal(set.flush_ms, 20);
    assert_int_equal(set.tiers.n, 0);
}

static void settings_that_make_no_sense_are_refused_and_nothing_changes(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    BATCH(rig, s, 1, SET_SPACE(.has_max_view = true));
    rig_expect_refusal(rig, s, CODEC_UNKNOWN_SPACE, 1);
    BATCH(rig, s, 2, CREATE_WITH(.max_view = AOI_MAX_VIEW + 1));
    rig_expect_refusal(rig, s, CODEC_LIMIT_EXCEEDED, 1);
    BATCH(rig, s, 3, CREATE_WITH(.leave_margin = -1));
    rig_expect_refusal(rig, s, CODEC_INVALID_ARGUMENT, 1);
    BATCH(rig, s, 4, CREATE_WITH(.leave_margin = 3, .max_view = AOI_MAX_VIEW));
    rig_expect_ack(rig, s, 4, 1);
    BATCH(rig, s, 5, SET_SPACE(.has_max_view = true, .max_view = AOI_MAX_VIEW + 1, .has_leave_margin = true));
    rig_expect_refusal(rig, s, CODEC_LIMIT_EXCEEDED, 1);
    BATCH(rig, s, 6, SET_SPACE(.has_max_view = true, .max_view = 7, .has_leave_margin = true, .leave_margin = NAN));
    rig_expect_refusal(rig, s, CODEC_INVALID_ARGUMENT, 1);
    static const char bad_tiers[] = "\x08\x07\x1a\x0c\x08\x01\x12\x08\x82\x01\x05\x32\x03"
                                    "9:x"; /* seq 7: SetSpace with update_tiers "9:x" in space 1 */
    dispatch_frame(&rig->dispatch, s, bad_tiers, sizeof bad_tiers - 1);
    rig_expect_refusal(rig, s, CODEC_INVALID_ARGUMENT, 1);
    struct aoi_settings set = settings_of(rig, s, 1);
    assert_true(set.leave_margin == 3.0f);
    assert_int_equal(set.max_view, AOI_MAX_VIEW);
    assert_int_equal(set.tiers.n, 0);
    BATCH(rig, s, 0, OPEN_WITH(9, .max_view = AOI_MAX_VIEW + 1));
    rig_expect_refusal(rig, s, CODEC_LIMIT_EXCEEDED, 9);
    BATCH(rig, s, 0, OPEN_WITH(9, .leave_margin = INFINITY));
    rig_expect_refusal(rig, s, CODEC_INVALID_ARGUMENT, 9);
}

static void a_player_has_its_own_max_view_and_entities_rank_by_priority(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE_WITH(.max_view = 2), ADD(1, 0, 0), ADD(2, 1, 0), ADD(3, 2, 0), ADD(4, 3, 0), OPEN_WITH(9, .max_view = 1), SUBSCRIBE(9, 1),
          SUBSCRIBE(8, 1), FLUSH(0));
    for (int i = 0; i < 2; i++) {
        const struct codec_server_frame *f = rig_take(rig, s);
        const struct aoi_delta *d = &f->u.deltas.players[0].delta;
        assert_int_equal(d->enters.n, d->player == 9 ? 1 : 2);
    }
    BATCH(rig, s, 0, {.kind = CODEC_SET_PRIORITY, .u.set_priority = {.id = 4, .priority = 5}}, CLOSE_PLAYER(8), FLUSH(0));
    assert_true(rig_take_delta(rig, s, 8).closed);
    struct aoi_delta d = rig_take_delta(rig, s, 9);
    assert_int_equal(d.leave_n, 1);
    assert_int_equal(d.leave_id[0], 2);
    assert_int_equal(d.enters.n, 1);
    assert_int_equal(d.enters.id[0], 4);
    BATCH(rig, s, 0, {.kind = CODEC_SET_PRIORITY, .u.set_priority = {.id = 40, .priority = 5}});
    rig_expect_refusal(rig, s, CODEC_UNKNOWN_ENTITY, 40);
}

static void held_back_enters_leave_the_flush_pending(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE_WITH(.max_enter_per_flush = 2), ADD(1, 0, 0), ADD(2, 1, 0), ADD(3, 2, 0), ADD(4, 3, 0), SUBSCRIBE(9, 1));
    BATCH(rig, s, 1, FLUSH(0));
    assert_int_equal(rig_take_delta(rig, s, 9).enters.n, 2);
    assert_true(rig_take(rig, s)->u.ack.pending);
    BATCH(rig, s, 2, FLUSH(0));
    assert_int_equal(rig_take_delta(rig, s, 9).enters.n, 1);
    assert_false(rig_take(rig, s)->u.ack.pending);
}

static void the_last_flush_holds_nothing_back(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE_WITH(.flush_ms = 100000, .max_enter_per_flush = 1, .tiers = {.beyond = 1000000}), ADD(1, 0, 0), ADD(2, 1, 0),
          ADD(3, 2, 0), ADD(4, 3, 0), SUBSCRIBE(9, 1), FLUSH(0));
    assert_int_equal(rig_take_delta(rig, s, 9).enters.id[0], 2);
    BATCH(rig, s, 0, MOVE(2, 1.5, 0));
    assert_true(rig_silent(rig, s));
    flusher_flush_all(&rig->flusher);
    struct aoi_delta d = rig_take_delta(rig, s, 9);
    assert_int_equal(d.enters.n, 2);
    assert_int_equal(d.updates.n, 1);
    assert_true(d.updates.x[0] == 1.5f);
    assert_false(aoi_space_dirty(aoi_space_find(rig->world, 1)));
}

/* ------------------------------------------------------------------------------------------------------------- large, hidden, shown */

static void appeal_is_how_much_further_away_a_thing_is_seen(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE(0), ADD(1, 0, 0), ADD_WITH(AOI_ADD_NEW, .id = 2, .pos = {15, 0}, .appeal = 5, .priority = 3), ADD(3, 15, 0),
          SUBSCRIBE(9, 1), FLUSH(0));
    struct aoi_delta d = rig_take_delta(rig, s, 9);
    assert_int_equal(d.enters.n, 1);
    assert_int_equal(d.enters.id[0], 2);
    BATCH(rig, s, 0, {.kind = CODEC_SET_APPEAL, .u.set_appeal = {.id = 2, .appeal = 4}}, FLUSH(0));
    assert_int_equal(rig_take_delta(rig, s, 9).leave_n, 1);
    BATCH(rig, s, 0, {.kind = CODEC_SET_APPEAL, .u.set_appeal = {.id = 2, .appeal = NAN}});
    rig_expect_refusal(rig, s, CODEC_INVALID_ARGUMENT, 2);
    const struct codec_server_frame *f = rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_GET_ENTITY, .id = 2});
    assert_true(f->u.result.entity.appeal == 4.0f);
    assert_int_equal(f->u.result.entity.priority, 3);
    assert_false(f->u.result.entity.report_observed);
}

static void overrides_hide_and_show_for_one_player(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    BATCH(rig, s, 1, CREATE(0), ADD(1, 0, 0), ADD(2, 1, 0), ADD(3, 500, 0), OVERRIDE(9, 2, AOI_OVERRIDE_HIDE));
    rig_expect_refusal(rig, s, CODEC_UNKNOWN_PLAYER, 9);
    BATCH(rig, s, 2, SUBSCRIBE(9, 1), OVERRIDE(9, 2, AOI_OVERRIDE_HIDE), OVERRIDE(9, 3, AOI_OVERRIDE_SHOW), OVERRIDE(9, 77, AOI_OVERRIDE_SHOW));
    rig_expect_ack(rig, s, 2, 4);
    BATCH(rig, s, 0, FLUSH(0));
    struct aoi_delta d = rig_take_delta(rig, s, 9);
    assert_int_equal(d.enters.n, 1);
    assert_int_equal(d.enters.id[0], 3);
    BATCH(rig, s, 0, OVERRIDE(9, 2, AOI_OVERRIDE_NONE), OVERRIDE(9, 3, AOI_OVERRIDE_NONE), FLUSH(0));
    d = rig_take_delta(rig, s, 9);
    assert_int_equal(d.leave_id[0], 3);
    assert_int_equal(d.enters.id[0], 2);
    BATCH(rig, s, 0, OVERRIDE(9, 2, 99));
    rig_expect_refusal(rig, s, CODEC_INVALID_ARGUMENT, 9);
    BATCH(rig, s, 3, OVERRIDE(9, 10, AOI_OVERRIDE_HIDE), OVERRIDE(9, 11, AOI_OVERRIDE_HIDE), OVERRIDE(9, 12, AOI_OVERRIDE_HIDE),
          OVERRIDE(9, 13, AOI_OVERRIDE_HIDE), OVERRIDE(9, 14, AOI_OVERRIDE_HIDE)); /* with that of 77: one more than max_overrides */
    rig_expect_refusal(rig, s, CODEC_LIMIT_EXCEEDED, 9);
}

/* ------------------------------------------------------------------------------------------------------------- casts */

static void a_message_goes_to_who_sees_its_publisher_or_looks_at_its_place(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1];
    rig_hello(rig, a);
    rig_hello(rig, b);
    BATCH(rig, a, 0, CREATE(0), ADD(1, 0, 0), ADD(2, 1, 0), ADD(3, 500, 0));
    BATCH(rig, b, 0, SUBSCRIBE(9, 1));
    BATCH(rig, a, 1, PUBLISH_FROM(2, "fireball"), PUBLISH_AT(5, 5, "boom"), PUBLISH_FROM(3, "far"), PUBLISH_AT(499, 0, "far"), FLUSH(0));
    rig_expect_ack(rig, a, 1, 5);
    struct aoi_delta d = rig_take_delta(rig, b, 9);
    assert_int_equal(d.enters.n, 1);
    assert_int_equal(d.message_n, 2);
    assert_int_equal(d.message_from[0], 2);
    assert_int_equal(d.message_len[0], 8);
    assert_memory_equal(d.message[0], "fireball", 8);
    assert_int_equal(d.message_from[1], 0);
    assert_memory_equal(d.message[1], "boom", 4);
    assert_int_equal(d.messages_lost, 0);
    assert_int_equal(rig_ask(rig, a, (struct codec_query){.space = 1, .kind = CODEC_QUERY_STATS})->u.result.stats.core.messages, 4);
}

static void messages_that_may_not_be_are_refused(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1];
    static char text[51];
    memset(text, 'x', sizeof text);
    rig_hello(rig, a);
    rig_hello(rig, b);
    BATCH(rig, a, 0, CREATE(0), ADD(1, 0, 0));
    BATCH(rig, b, 0, PUBLISH_FROM(1, "not mine"));
    rig_expect_refusal(rig, b, CODEC_NOT_OWNER, 1);
    BATCH(rig, b, 0, PUBLISH_FROM(7, "nobody's"));
    rig_expect_refusal(rig, b, CODEC_UNKNOWN_ENTITY, 7);
    BATCH(rig, b, 0, {.kind = CODEC_PUBLISH});
    rig_expect_refusal(rig, b, CODEC_UNSUPPORTED, 0);
    BATCH(rig, b, 0, PUBLISH_AT(NAN, 0, "nowhere"));
    rig_expect_refusal(rig, b, CODEC_INVALID_ARGUMENT, 0);
    BATCH(rig, b, 0, {.kind = CODEC_PUBLISH, .u.publish = {.kind = CODEC_PUBLISH_BOX, .min = {1}, .max = {0}}});
    rig_expect_refusal(rig, b, CODEC_INVALID_ARGUMENT, 0);
    BATCH(rig, a, 0, {.kind = CODEC_PUBLISH, .u.publish = {.kind = CODEC_PUBLISH_ENTITY, .entity = 1, .message = text, .message_len = 51}});
    rig_expect_refusal(rig, a, CODEC_LIMIT_EXCEEDED, 1);
    for (int i = 0; i < 20; i++) BATCH(rig, a, 0, PUBLISH_FROM(1, "one"));
    assert_true(rig_silent(rig, a));
    BATCH(rig, a, 0, PUBLISH_FROM(1, "one too many"));
    rig_expect_refusal(rig, a, CODEC_LIMIT_EXCEEDED, 1);
    BATCH(rig, a, 0, FLUSH(0), PUBLISH_FROM(1, "room again"));
    assert_true(rig_silent(rig, a) && rig_silent(rig, b));
}

/* ------------------------------------------------------------------------------------------------------------- observed */

static void an_owner_learns_that_its_entity_is_observed_and_no_longer(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1];
    rig_hello(rig, a);
    rig_hello(rig, b);
    BATCH(rig, a, 0, CREATE(0), ADD(1, 0, 0), ADD_WITH(AOI_ADD_NEW, .id = 2, .pos = {1, 1}, .report_observed = true), FLUSH(0));
    assert_true(rig_silent(rig, a));
    BATCH(rig, b, 0, SUBSCRIBE(9, 1), FLUSH(0));
    assert_int_equal(rig_take_delta(rig, b, 9).enters.n, 1);
    const struct codec_server_frame *f = rig_take(rig, a);
    assert_int_equal(f->kind, CODEC_OBSERVED);
    assert_int_equal(f->u.observed.space, 1);
    assert_int_equal(f->u.observed.observed_n, 1);
    assert_int_equal(f->u.observed.observed[0], 2);
    BATCH(rig, b, 0, CLOSE_PLAYER(9), FLUSH(0));
    f = rig_take(rig, a);
    assert_int_equal(f->u.observed.observed_n, 0);
    assert_int_equal(f->u.observed.unobserved_n, 1);
    assert_int_equal(f->u.observed.unobserved[0], 2);
    assert_true(rig_silent(rig, a));
}

/* ------------------------------------------------------------------------------------------------------------- passing on */

static void an_entity_that_was_released_to_a_session_is_adopted_by_it_alone(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1], *c = &rig->session[2];
    rig_hello(rig, a);
    rig_hello(rig, b);
    rig_hello(rig, c);
    BATCH(rig, a, 0, CREATE(0), ADD(1, 0, 0), ADD(2, 1, 1));
    BATCH(rig, b, 0, ADD_WITH(AOI_ADD_ADOPT, .id = 2));
    rig_expect_refusal(rig, b, CODEC_NOT_OWNER, 2);
    BATCH(rig, b, 0, ADD_WITH(AOI_ADD_ADOPT, .id = 3));
    rig_expect_refusal(rig, b, CODEC_UNKNOWN_ENTITY, 3);
    BATCH(rig, a, 0, RELEASE_ENTITY(2, 99));
    rig_expect_refusal(rig, a, CODEC_INVALID_ARGUMENT, 99);
    BATCH(rig, a, 1, RELEASE_ENTITY(2, c->id), MOVE(2, 2, 2)); /* it stays its owner's until it is taken */
    rig_expect_ack(rig, a, 1, 2);
    BATCH(rig, b, 0, ADD_WITH(AOI_ADD_ADOPT, .id = 2));
    rig_expect_refusal(rig, b, CODEC_NOT_OWNER, 2);
    BATCH(rig, c, 1, ADD_WITH(AOI_ADD_ADOPT, .id = 2, .pos = {9, 9}));
    rig_expect_ack(rig, c, 1, 1);
    const struct codec_server_frame *f = rig_take(rig, a);
    assert_int_equal(f->kind, CODEC_LOST);
    assert_int_equal(f->u.lost.space, 1);
    assert_int_equal(f->u.lost.entity_n, 1);
    assert_int_equal(f->u.lost.entities[0], 2);
    assert_int_equal(f->u.lost.player_n, 0);
    BATCH(rig, a, 0, MOVE(2, 3, 3));
    rig_expect_refusal(rig, a, CODEC_NOT_OWNER, 2);
    BATCH(rig, c, 2, MOVE(2, 4, 4));
    rig_expect_ack(rig, c, 2, 1);
    assert_true(rig_silent(rig, a) && rig_silent(rig, b) && rig_silent(rig, c));
}

static void a_player_that_was_released_goes_on_elsewhere_with_one_full_delta(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1];
    rig_hello(rig, a);
    rig_hello(rig, b);
    BATCH(rig, a, 0, CREATE(0), ADD(1, 0, 0), ADD(2, 1, 1), SUBSCRIBE(9, 1), FLUSH(0));
    assert_int_equal(rig_take_delta(rig, a, 9).seq, 1);
    BATCH(rig, b, 0, OPEN_WITH(9, .take_over = true));
    rig_expect_refusal(rig, b, CODEC_NOT_OWNER, 9);
    BATCH(rig, a, 0, RELEASE_PLAYER(9, 0));
    BATCH(rig, b, 0, OPEN_PLAYER(9));
    rig_expect_refusal(rig, b, CODEC_NOT_OWNER, 9);
    BATCH(rig, b, 1, OPEN_WITH(9, .take_over = true));
    rig_expect_ack(rig, b, 1, 1);
    const struct codec_server_frame *f = rig_take(rig, a);
    assert_int_equal(f->kind, CODEC_LOST);
    assert_int_equal(f->u.lost.entity_n, 0);
    assert_int_equal(f->u.lost.player_n, 1);
    assert_int_equal(f->u.lost.players[0], 9);
    BATCH(rig, b, 0, FLUSH(0));
    struct aoi_delta d = rig_take_delta(rig, b, 9);
    assert_true(d.full);
    assert_int_equal(d.enters.n, 1);
    assert_true(rig_silent(rig, a) && rig_silent(rig, b));
}

static void lost_goes_before_the_deltas_of_a_flush_in_the_same_batch(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1];
    rig_hello(rig, a);
    rig_hello(rig, b);
    BATCH(rig, a, 0, CREATE(0), ADD(1, 0, 0), ADD(2, 1, 1), SUBSCRIBE(9, 1), RELEASE_ENTITY(2, 0));
    BATCH(rig, b, 0, ADD_WITH(AOI_ADD_ADOPT, .id = 2), FLUSH(0));
    assert_int_equal(rig_take(rig, a)->kind, CODEC_LOST);
    assert_int_equal(rig_take_delta(rig, a, 9).enters.n, 1);
    assert_true(rig_silent(rig, a) && rig_silent(rig, b));
}

static void each_id_of_a_release_counts_or_has_its_own_error(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    const uint64_t entities[] = {1, 5, 2}, players[] = {9, 8};
    BATCH(rig, s, 0, CREATE(0), ADD(1, 0, 0), ADD(2, 0, 0), OPEN_PLAYER(9));
    BATCH(rig, s, 1, {.kind = CODEC_RELEASE, .u.release = {.entity_n = 3, .entities = entities, .player_n = 2, .players = players}});
    const struct codec_server_frame *ack = rig_take(rig, s);
    assert_int_equal(ack->u.ack.applied, 3);
    assert_int_equal(ack->u.ack.errors_total, 2);
    assert_int_equal(ack->u.ack.errors[0].id, 5);
    assert_int_equal(ack->u.ack.errors[0].code, CODEC_UNKNOWN_ENTITY);
    assert_int_equal(ack->u.ack.errors[1].id, 8);
    assert_int_equal(ack->u.ack.errors[1].code, CODEC_UNKNOWN_PLAYER);
}

static void a_session_that_ended_is_nobody_to_release_to(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1];
    rig_hello(rig, a);
    rig_hello(rig, b);
    uint64_t id = b->id;
    BATCH(rig, a, 0, CREATE(0), ADD(1, 0, 0));
    session_close(&rig->sessions, b, CLOSE_EOF);
    rig_close(rig, b);
    BATCH(rig, a, 0, RELEASE_ENTITY(1, id));
    rig_expect_refusal(rig, a, CODEC_INVALID_ARGUMENT, id);
}

/* ------------------------------------------------------------------------------------------------------------- queries */

static void nearest_observers_density_and_why_answer(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE(0), ADD(1, 0, 0), ADD(2, 1, 1), ADD(3, 50, 50), SUBSCRIBE(9, 1), SUBSCRIBE(8, 1), FLUSH(0));
    rig_take(rig, s);
    rig_take(rig, s);
    const struct codec_server_frame *f = rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_NEAREST, .center = {2, 2}, .k = 2});
    assert_int_equal(f->u.result.kind, CODEC_RESULT_ENTITIES);
    assert_int_equal(f->u.result.rows.n, 2);
    assert_int_equal(f->u.result.rows.id[0], 2);
    assert_int_equal(f->u.result.rows.id[1], 1);
    f = rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_NEAREST, .center = {2, 2}, .k = 2, .radius = 2});
    assert_int_equal(f->u.result.rows.n, 1);

    f = rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_OBSERVERS, .id = 2, .limit = 1});
    assert_int_equal(f->u.result.kind, CODEC_RESULT_VIEW);
    assert_int_equal(f->u.result.rows.n, 1);
    assert_int_equal(f->u.result.rows.id[0], 8);
    assert_int_equal(f->u.result.rows.next, 8);
    f = rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_OBSERVERS, .id = 3});
    assert_int_equal(f->u.result.rows.n, 0);

    f = rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_DENSITY, .has_box = true, .max = {100, 100}, .columns = 2, .rows = 1});
    assert_int_equal(f->u.result.kind, CODEC_RESULT_DENSITY);
    assert_int_equal(f->u.result.counts[0], 2);
    assert_int_equal(f->u.result.counts[1], 1);

    f = rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_WHY, .player = 9, .id = 3});
    assert_int_equal(f->u.result.kind, CODEC_RESULT_WHY);
    assert_int_equal(f->u.result.why.rule, AOI_RULE_FAR);
    assert_non_null(strstr(f->u.result.why_text, "not seen: out of every range, the nearest is unit 1 (50 away along an axis, radius 10)"));
    f = rig_ask(rig, s, (struct codec_query){.space = 1, .kind = CODEC_QUERY_WHY, .player = 9, .id = 2});
    assert_int_equal(f->u.result.why.rule, AOI_RULE_RANGE);
    assert_true(f->u.result.why.told && f->u.result.why.seen);
}

static void queries_that_ask_too_much_or_for_nothing_are_refused(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig->config.query_page = 100;
    rig->config.max_frame_bytes = 8192;
    rig_hello(rig, s);
    BATCH(rig, s, 0, CREATE(0), ADD(1, 0, 0), OPEN_PLAYER(9));
    static const struct {
        struct codec_query query;
        enum codec_code code;
    } cases[] = {
        {{.kind = CODEC_QUERY_NEAREST, .k = 100}, CODEC_OK},
        {{.kind = CODEC_QUERY_NEAREST}, CODEC_INVALID_ARGUMENT},
        {{.kind = CODEC_QUERY_NEAREST, .k = 101}, CODEC_LIMIT_EXCEEDED},
        {{.kind = CODEC_QUERY_NEAREST, .k = 1, .center = {NAN}}, CODEC_INVALID_ARGUMENT},
        {{.kind = CODEC_QUERY_NEAREST, .k = 1, .radius = -1}, CODEC_INVALID_ARGUMENT},
        {{.kind = CODEC_QUERY_OBSERVERS, .id = 1}, CODEC_OK},
        {{.kind = CODEC_QUERY_OBSERVERS, .id = 2}, CODEC_UNKNOWN_ENTITY},
        {{.kind = CODEC_QUERY_OBSERVERS}, CODEC_INVALID_ARGUMENT},
        {{.kind = CODEC_QUERY_DENSITY, .has_box = true, .columns = 256, .rows = 6}, CODEC_OK},
        {{.kind = CODEC_QUERY_DENSITY, .has_box = true, .columns = 256, .rows = 7}, CODEC_LIMIT_EXCEEDED}, /* more than a frame */
        {{.kind = CODEC_QUERY_DENSITY, .columns = 1, .rows = 1}, CODEC_INVALID_ARGUMENT},
        {{.kind = CODEC_QUERY_DENSITY, .has_box = true, .rows = 1}, CODEC_INVALID_ARGUMENT},
        {{.kind = CODEC_QUERY_DENSITY, .has_box = true, .columns = 1}, CODEC_INVALID_ARGUMENT},
        {{.kind = CODEC_QUERY_DENSITY, .has_box = true, .columns = 257, .rows = 1}, CODEC_INVALID_ARGUMENT},
        {{.kind = CODEC_QUERY_DENSITY, .has_box = true, .columns = 1, .rows = UINT32_MAX}, CODEC_INVALID_ARGUMENT},
        {{.kind = CODEC_QUERY_DENSITY, .has_box = true, .min = {2}, .columns = 1, .rows = 1}, CODEC_INVALID_ARGUMENT},
        {{.kind = CODEC_QUERY_WHY, .player = 9, .id = 1}, CODEC_OK},
        {{.kind = CODEC_QUERY_WHY, .player = 9, .id = 2}, CODEC_UNKNOWN_ENTITY},
        {{.kind = CODEC_QUERY_WHY, .player = 8, .id = 1}, CODEC_UNKNOWN_PLAYER},
        {{.kind = CODEC_QUERY_WHY, .player = 9}, CODEC_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct codec_query query = cases[i].query;
        query.space = 1;
        const struct codec_server_frame *f = rig_ask(rig, s, query);
        int code = f->kind == CODEC_ERROR ? (int)f->u.error.code : CODEC_OK;
        if (code != (int)cases[i].code) fail_msg("query %zu: %s", i, codec_code_name(code));
        query.space = 2;
        f = rig_ask(rig, s, query);
        assert_int_equal(f->u.error.code, CODEC_UNKNOWN_SPACE);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_set_space_names_changes_and_the_rest_stays),
        TEST(settings_that_make_no_sense_are_refused_and_nothing_changes),
        TEST(a_player_has_its_own_max_view_and_entities_rank_by_priority),
        TEST(held_back_enters_leave_the_flush_pending),
        TEST(the_last_flush_holds_nothing_back),
        TEST(appeal_is_how_much_further_away_a_thing_is_seen),
        TEST(overrides_hide_and_show_for_one_player),
        TEST(a_message_goes_to_who_sees_its_publisher_or_looks_at_its_place),
        TEST(messages_that_may_not_be_are_refused),
        TEST(an_owner_learns_that_its_entity_is_observed_and_no_longer),
        TEST(an_entity_that_was_released_to_a_session_is_adopted_by_it_alone),
        TEST(a_player_that_was_released_goes_on_elsewhere_with_one_full_delta),
        TEST(lost_goes_before_the_deltas_of_a_flush_in_the_same_batch),
        TEST(each_id_of_a_release_counts_or_has_its_own_error),
        TEST(a_session_that_ended_is_nobody_to_release_to),
        TEST(nearest_observers_density_and_why_answer),
        TEST(queries_that_ask_too_much_or_for_nothing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
