/* test_sessions.c: what outlives a connection, and what waits for one that is full or gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "commands.h"
#include "rig.h"
#include "server/sessions.h"

#define LEASE_MS 10000

/* What the server does when a connection breaks. */
static void leave(struct rig *rig, struct session *session)
{
    sessions_leave(&rig->sessions, session->standing, LEASE_MS);
}

static struct codec_client_frame hello_again(const struct standing *standing)
{
    return (struct codec_client_frame){.seq = 1,
                                       .kind = CODEC_HELLO,
                                       .u.hello = {.protocol_version = 1,
                                                   .client_name = "rig",
                                                   .resume_session = standing->id,
                                                   .resume_token = standing->resume_token,
                                                   .resume_token_len = RESUME_TOKEN_BYTES}};
}

static void resume(struct rig *rig, struct session *session, const struct standing *standing)
{
    const struct codec_client_frame frame = hello_again(standing);
    uint64_t last_seq = standing->last_seq;
    rig_frame(rig, session, &frame);
    const struct codec_server_frame *welcome = rig_take(rig, session);
    assert_int_equal(welcome->kind, CODEC_WELCOME);
    assert_true(welcome->u.welcome.resumed);
    assert_int_equal(welcome->u.welcome.session, standing->id);
    assert_int_equal(welcome->u.welcome.last_seq, last_seq);
}

/* Makes the outbox full; drain() takes the bytes out again. */
static void fill(struct session *session)
{
    struct buf *queue = outbox_queue(&session->out);
    size_t bytes = 100000 - buf_len(queue);
    memset(buf_reserve(queue, bytes), 0, bytes);
    queue->end += bytes;
}

static void drain(struct session *session)
{
    struct buf *queue = outbox_queue(&session->out);
    buf_consume(queue, buf_len(queue));
}

static void a_resume_needs_every_byte_of_the_token(void **state)
{
    struct rig *rig = *state;
    rig_hello(rig, &rig->session[0]);
    const struct standing *standing = rig->session[0].standing;
    uint8_t token[RESUME_TOKEN_BYTES + 1] = {0};
    memcpy(token, standing->resume_token, RESUME_TOKEN_BYTES);
    assert_true(sessions_token_is(standing, token, RESUME_TOKEN_BYTES));
    for (size_t len = 0; len <= RESUME_TOKEN_BYTES + 1; len++) assert_true(sessions_token_is(standing, token, len) == (len == RESUME_TOKEN_BYTES));
    for (int bit = 0; bit < 8 * RESUME_TOKEN_BYTES; bit++) {
        token[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(sessions_token_is(standing, token, RESUME_TOKEN_BYTES));
        token[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    rig_hello(rig, &rig->session[1]);
    assert_memory_not_equal(standing->resume_token, rig->session[1].standing->resume_token, RESUME_TOKEN_BYTES);
}

static void a_hello_waits_until_the_old_connection_has_let_go(void **state)
{
    struct rig *rig = *state;
    struct session *old = &rig->session[0], *new = &rig->session[1];
    rig_hello(rig, old);
    struct standing *standing = old->standing;
    BATCH(rig, old, 5, CREATE(0), ADD(1, 0, 0));
    const struct codec_client_frame frame = hello_again(standing);
    assert_true(rig_try_frame(rig, new, &frame) == DISPATCH_AGAIN);
    assert_int_equal(old->state, SESSION_BROKEN);
    assert_int_equal(old->reason, CLOSE_RESUMED);
    BATCH(rig, old, 6, ADD(2, 0, 0)); /* what had come whole */
    assert_true(rig_try_frame(rig, new, &frame) == DISPATCH_AGAIN);
    session_finish(&rig->sessions, old);
    leave(rig, old);
    assert_int_equal(standing->last_seq, 6);
    resume(rig, new, standing);
    assert_ptr_equal(standing->session, new);
    BATCH(rig, new, 6, ADD(2, 0, 0)); /* resent */
    rig_expect_ack(rig, new, 6, 0);
    BATCH(rig, new, 7, ADD(3, 0, 0));
    rig_expect_ack(rig, new, 7, 1);
    assert_int_equal(rig->metrics.resumed, 1);
}

static void a_bye_that_came_whole_ends_the_session_whatever_became_of_its_connection(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    session_close(&rig->sessions, s, CLOSE_IO);
    assert_int_equal(s->state, SESSION_BROKEN);
    rig_frame(rig, s, &(struct codec_client_frame){.kind = CODEC_BYE});
    assert_int_equal(s->state, SESSION_CLOSING);
    assert_int_equal(s->reason, CLOSE_BYE);
}

static void nothing_is_applied_behind_bytes_that_are_no_frame_on_a_broken_connection_either(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    rig_hello(rig, s);
    session_close(&rig->sessions, s, CLOSE_OUT_SOFT);
    dispatch_frame(&rig->dispatch, s, "\xff\xff", 2);
    assert_int_equal(s->state, SESSION_CLOSING);
    assert_int_equal(s->reason, CLOSE_OUT_SOFT);
    assert_true(rig_silent(rig, s));
}

static void last_deltas_wait_for_room_and_nothing_goes_before_them(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1];
    rig_hello(rig, a);
    rig_hello(rig, b);
    BATCH(rig, b, 0, CREATE(0), ADD(1, 0, 0), ADD(2, 1, 1));
    BATCH(rig, a, 0, SUBSCRIBE(7, 1), SUBSCRIBE(8, 1));
    BATCH(rig, b, 0, FLUSH(0));
    drain(a);
    fill(a);
    BATCH(rig, b, 0, DESTROY, CREATE(0), ADD(1, 0, 0), ADD(2, 1, 1));
    assert_int_equal(outbox_bytes(&a->out), 100000);
    assert_true(deliver_owes(a));
    BATCH(rig, a, 0, SUBSCRIBE(7, 1));
    drain(a);
    BATCH(rig, b, 1, FLUSH(0)); /* there is room, but not for what is new */
    assert_true(rig_take(rig, b)->u.ack.pending);
    assert_true(rig_silent(rig, a));
    assert_true(deliver_owed(&rig->deliver, a));
    for (uint64_t player = 7; player <= 8; player++) {
        const struct aoi_delta d = rig_take_delta(rig, a, player);
        assert_true(d.closed && d.seq == 2);
    }
    BATCH(rig, b, 2, FLUSH(0));
    const struct aoi_delta d = rig_take_delta(rig, a, 7);
    assert_true(!d.closed && d.seq == 1 && d.enters.n == 1);
    assert_true(rig_silent(rig, a));
}

static void what_was_lost_waits_for_who_is_away_and_is_told_by_space(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1];
    rig_hello(rig, a);
    rig_hello(rig, b);
    struct standing *standing = a->standing;
    BATCH(rig, a, 0, CREATE(0), ADD(1, 0, 0), ADD(2, 0, 0), ADD(3, 0, 0), OPEN_PLAYER(7));
    leave(rig, a);
    BATCH(rig, b, 0, ADD_WITH(AOI_ADD_ADOPT, .id = 2), ADD_WITH(AOI_ADD_UPSERT, .id = 1),
          {.kind = CODEC_OPEN_PLAYER, .u.open_player = {.player = 7, .settings.take_over = true}});
    resume(rig, &rig->session[2], standing);
    const struct codec_server_frame *f = rig_take(rig, &rig->session[2]);
    assert_int_equal(f->kind, CODEC_LOST);
    assert_true(f->u.lost.entity_n == 2 && f->u.lost.entities[0] == 1 && f->u.lost.entities[1] == 2);
    assert_true(f->u.lost.player_n == 1 && f->u.lost.players[0] == 7);
    assert_true(rig_silent(rig, &rig->session[2]));
}

static void what_was_told_to_a_connection_that_broke_is_told_again_where_it_still_holds(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1];
    rig_hello(rig, a);
    rig_hello(rig, b);
    struct standing *standing = a->standing;
    BATCH(rig, a, 0, CREATE(0), ADD(1, 0, 0), ADD(2, 0, 0), OPEN_PLAYER(7), OPEN_PLAYER(8), RELEASE_ENTITY(1, 0), RELEASE_ENTITY(2, 0));
    BATCH(rig, b, 0, ADD_WITH(AOI_ADD_ADOPT, .id = 1), ADD_WITH(AOI_ADD_ADOPT, .id = 2), RELEASE_ENTITY(2, 0));
    BATCH(rig, a, 0, ADD_WITH(AOI_ADD_ADOPT, .id = 2), CLOSE_PLAYER(7), CLOSE_PLAYER(8), OPEN_PLAYER(8));
    drain(a); /* into nowhere */
    leave(rig, a);
    resume(rig, &rig->session[2], standing);
    assert_true(rig_take_delta(rig, &rig->session[2], 7).closed);
    const struct codec_server_frame *f = rig_take(rig, &rig->session[2]);
    assert_int_equal(f->kind, CODEC_LOST);
    assert_true(f->u.lost.entity_n == 1 && f->u.lost.entities[0] == 1 && f->u.lost.player_n == 0);
    assert_true(rig_silent(rig, &rig->session[2]));
}

static void what_was_told_long_ago_or_long_since_is_forgotten(void **state)
{
    (void)state;
    struct notices n = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        *array_add(&n.closed) = (struct notice_closed){.space = 1, .player = i + 1, .sent_ms = 1000 + i / 1000};
        *array_add(&n.lost) = (struct notice_lost){.space = 1, .id = i + 1, .sent_ms = 1000 + i / 1000};
    }
    n.closed_sent = n.lost_sent = 90000;
    notices_forget(&n, 1100);
    assert_int_equal(n.closed_sent, 65536); /* of those that were sent */
    assert_int_equal(n.lost.n, 75536);
    notices_forget(&n, 1000 + 84 + 60000);
    assert_int_equal(n.closed_sent, 5000);
    assert_int_equal(n.closed.at[0].player, 85001);
    assert_int_equal(n.lost.at[0].id, 85001);
    assert_true(notices_wait(&n));
    notices_forget(&n, 10000000);
    assert_int_equal(n.closed.n, 10000); /* which have never been sent */
    assert_int_equal(n.closed_sent, 0);
    notices_clear(&n);
    assert_false(notices_wait(&n));
}

static void of_what_was_sent_no_more_is_kept_than_may_be_however_fast_it_comes(void **state)
{
    (void)state;
    struct notices n = {0};
    for (uint64_t i = 0; i < 1000000; i++) {
        *array_add(&n.closed) = (struct notice_closed){.space = 1, .player = i + 1, .sent_ms = 1000};
        n.closed_sent++;
        notices_were_sent(&n, 1000);
        assert_true(n.closed.n <= 2 * 65536);
    }
    assert_true(n.closed.cap < 300000 && n.closed.at[n.closed.n - 1].player == 1000000);
    notices_forget(&n, 1000000);
    assert_true(n.closed.n == 0 && n.closed.cap <= ARRAY_KEEP);
    notices_clear(&n);
}

static void why_says_that_a_player_is_told_nothing_for_its_connection_is_full_or_gone(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1];
    const struct codec_query why = {.space = 1, .kind = CODEC_QUERY_WHY, .player = 7, .id = 2};
    rig_hello(rig, a);
    rig_hello(rig, b);
    BATCH(rig, a, 1, CREATE(0), ADD(1, 0, 0), ADD(2, 3, 4), SUBSCRIBE(7, 1), FLUSH(0));
    drain(a);
    assert_string_equal(rig_ask(rig, b, why)->u.result.why_text, "seen: in the range of unit 1 (4 away along an axis, radius 10)");
    fill(a);
    assert_non_null(strstr(rig_ask(rig, b, why)->u.result.why_text, "; but the player's connection is full: it is told nothing until it reads"));
    drain(a);
    assert_null(strstr(rig_ask(rig, b, why)->u.result.why_text, "but"));
    leave(rig, a);
    rig->sessions.clock_ms = LEASE_MS - 2500;
    assert_non_null(strstr(rig_ask(rig, b, why)->u.result.why_text,
                           "; but the player's connection is gone: it is told nothing, and goes in 2.5 s with its session, unless that resumes"));
}

static void sessions_with_a_token_of_the_same_name_may_take_from_each_other(void **state)
{
    struct rig *rig = *state;
    for (int i = 0; i < 3; i++) rig_hello(rig, &rig->session[i]);
    const aoi_owner a = rig->session[0].owner, b = rig->session[1].owner, c = rig->session[2].owner;
    assert_false(sessions_may_take(&rig->sessions, a, b)); /* no tokens at all are not the same */
    snprintf(rig->session[0].token.name, sizeof rig->session[0].token.name, "zone");
    snprintf(rig->session[1].token.name, sizeof rig->session[1].token.name, "zone");
    snprintf(rig->session[2].token.name, sizeof rig->session[2].token.name, "gate");
    assert_true(sessions_may_take(&rig->sessions, a, b) && sessions_may_take(&rig->sessions, b, a));
    assert_false(sessions_may_take(&rig->sessions, a, c) || sessions_may_take(&rig->sessions, c, b));
    assert_false(sessions_may_take(&rig->sessions, a, 99));
}

static void sessions_are_limited_and_those_that_are_away_count(void **state)
{
    struct rig *rig = *state;
    rig->config.max_sessions = 2;
    rig_hello(rig, &rig->session[0]);
    rig_hello(rig, &rig->session[1]);
    struct standing *standing = rig->session[1].standing;
    leave(rig, &rig->session[1]);
    rig_frame(rig, &rig->session[2], &(struct codec_client_frame){.seq = 1, .kind = CODEC_HELLO, .u.hello = {.protocol_version = 1}});
    const struct codec_server_frame *f = rig_take(rig, &rig->session[2]);
    assert_int_equal(f->u.error.code, CODEC_LIMIT_EXCEEDED);
    assert_string_equal(f->u.error.text, "there are max_sessions = 2 already, those included whose lease runs");
    assert_int_equal(rig->session[2].reason, CLOSE_SESSIONS);
    sessions_end(&rig->sessions, standing);
    rig->session[1].state = SESSION_HELLO_WAIT;
    rig_hello(rig, &rig->session[1]);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_resume_needs_every_byte_of_the_token),
        TEST(a_hello_waits_until_the_old_connection_has_let_go),
        TEST(a_bye_that_came_whole_ends_the_session_whatever_became_of_its_connection),
        TEST(nothing_is_applied_behind_bytes_that_are_no_frame_on_a_broken_connection_either),
        TEST(last_deltas_wait_for_room_and_nothing_goes_before_them),
        TEST(what_was_lost_waits_for_who_is_away_and_is_told_by_space),
        TEST(what_was_told_to_a_connection_that_broke_is_told_again_where_it_still_holds),
        cmocka_unit_test(what_was_told_long_ago_or_long_since_is_forgotten),
        cmocka_unit_test(of_what_was_sent_no_more_is_kept_than_may_be_however_fast_it_comes),
        TEST(sessions_with_a_token_of_the_same_name_may_take_from_each_other),
        TEST(why_says_that_a_player_is_told_nothing_for_its_connection_is_full_or_gone),
        TEST(sessions_are_limited_and_those_that_are_away_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
