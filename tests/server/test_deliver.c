/* test_deliver.c: what the core's sink makes of observed and lost entities, without the core. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"

/* Fills the outbox with so many bytes that are no frames; rig_take() does not work until they are taken away. */
static void stuff(struct session *s, size_t bytes)
{
    buf_reserve(&s->out.queue, bytes);
    memset(s->out.queue.at + s->out.queue.end, 0, bytes);
    s->out.queue.end += bytes;
}

static void observed_entities_go_to_their_owner_in_one_frame(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1];
    struct aoi_sink sink = deliver_sink(&rig->deliver);
    const uint64_t id[] = {5, 6, 7, 8};
    const bool observed[] = {true, false, true, false};
    rig_hello(rig, a);
    rig_hello(rig, b);
    assert_true(sink.observed(sink.ctx, b->owner, 3, id, observed, 4));
    const struct codec_server_frame *f = rig_take(rig, b);
    assert_int_equal(f->kind, CODEC_OBSERVED);
    assert_int_equal(f->reply_to, 0);
    assert_int_equal(f->u.observed.space, 3);
    assert_int_equal(f->u.observed.observed_n, 2);
    assert_int_equal(f->u.observed.observed[0], 5);
    assert_int_equal(f->u.observed.observed[1], 7);
    assert_int_equal(f->u.observed.unobserved_n, 2);
    assert_int_equal(f->u.observed.unobserved[0], 6);
    assert_int_equal(f->u.observed.unobserved[1], 8);
    assert_true(rig_silent(rig, a) && rig_silent(rig, b));
}

static void observed_entities_that_fill_more_than_a_frame_go_in_several(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    struct aoi_sink sink = deliver_sink(&rig->deliver);
    enum { N = 3000 };
    static uint64_t id[N];
    static bool observed[N];
    for (size_t i = 0; i < N; i++) {
        id[i] = UINT64_MAX - i;
        observed[i] = i % 3 != 0;
    }
    rig->deliver.max_frame_bytes = 8192;
    rig_hello(rig, s);
    assert_true(sink.observed(sink.ctx, s->owner, UINT64_MAX, id, observed, N));
    size_t yes = 0, no = 0, frames = 0;
    for (; !rig_silent(rig, s); frames++) {
        size_t before = buf_len(&s->out.queue);
        const struct codec_server_frame *f = rig_take(rig, s);
        assert_true(before - buf_len(&s->out.queue) <= 8192);
        for (size_t i = 0; i < f->u.observed.observed_n; i++) assert_true(observed[UINT64_MAX - f->u.observed.observed[i]]);
        for (size_t i = 0; i < f->u.observed.unobserved_n; i++) assert_false(observed[UINT64_MAX - f->u.observed.unobserved[i]]);
        yes += f->u.observed.observed_n;
        no += f->u.observed.unobserved_n;
    }
    assert_int_equal(yes, 2000);
    assert_int_equal(no, 1000);
    assert_int_equal(frames, 3);
}

static void a_full_or_missing_connection_is_told_later_who_is_observed(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    struct aoi_sink sink = deliver_sink(&rig->deliver);
    const uint64_t id = 5;
    const bool observed = true;
    rig_hello(rig, s);
    assert_false(sink.observed(sink.ctx, s->owner + 1, 3, &id, &observed, 1));
    stuff(s, 96000);
    assert_false(sink.observed(sink.ctx, s->owner, 3, &id, &observed, 1));
    assert_int_equal(outbox_bytes(&s->out), 96000);
    buf_consume(&s->out.queue, 96000);
    assert_true(sink.observed(sink.ctx, s->owner, 3, &id, &observed, 1));
    assert_int_equal(rig_take(rig, s)->kind, CODEC_OBSERVED);
    session_close(&rig->sessions, s, CLOSE_EOF);
    assert_false(sink.observed(sink.ctx, s->owner, 3, &id, &observed, 1));
}

static void what_was_lost_waits_and_goes_in_one_frame_a_space(void **state)
{
    struct rig *rig = *state;
    struct session *a = &rig->session[0], *b = &rig->session[1];
    struct aoi_sink sink = deliver_sink(&rig->deliver);
    rig_hello(rig, a);
    rig_hello(rig, b);
    sink.lost(sink.ctx, a->owner, 3, true, 50);
    sink.lost(sink.ctx, a->owner, 3, false, 11);
    sink.lost(sink.ctx, b->owner, 3, false, 12);
    sink.lost(sink.ctx, a->owner, 4, false, 13);
    sink.lost(sink.ctx, a->owner, 3, false, 10);
    sink.lost(sink.ctx, b->owner + 7, 3, false, 1);
    assert_true(rig_silent(rig, a) && rig_silent(rig, b));
    deliver_waiting(&rig->deliver);
    const struct codec_server_frame *f = rig_take(rig, a);
    assert_int_equal(f->kind, CODEC_LOST);
    assert_int_equal(f->u.lost.space, 3);
    assert_int_equal(f->u.lost.entity_n, 2);
    assert_int_equal(f->u.lost.entities[0], 10);
    assert_int_equal(f->u.lost.entities[1], 11);
    assert_int_equal(f->u.lost.player_n, 1);
    assert_int_equal(f->u.lost.players[0], 50);
    f = rig_take(rig, a);
    assert_int_equal(f->u.lost.space, 4);
    assert_int_equal(f->u.lost.entity_n, 1);
    assert_int_equal(f->u.lost.player_n, 0);
    f = rig_take(rig, b);
    assert_int_equal(f->u.lost.entities[0], 12);
    deliver_waiting(&rig->deliver);
    assert_true(rig_silent(rig, a) && rig_silent(rig, b));
}

static void what_was_lost_is_told_whole_in_frames_that_fit(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    struct aoi_sink sink = deliver_sink(&rig->deliver);
    rig->deliver.max_frame_bytes = 8192;
    rig_hello(rig, s);
    for (uint64_t i = 1; i <= 3000; i++) sink.lost(sink.ctx, s->owner, 3, i % 2 == 0, i);
    deliver_waiting(&rig->deliver);
    size_t entities = 0, players = 0, frames = 0;
    for (; !rig_silent(rig, s); frames++) {
        size_t before = buf_len(&s->out.queue);
        const struct codec_server_frame *f = rig_take(rig, s);
        assert_true(before - buf_len(&s->out.queue) <= 8192);
        entities += f->u.lost.entity_n;
        players += f->u.lost.player_n;
    }
    assert_int_equal(entities, 1500);
    assert_int_equal(players, 1500);
    assert_int_equal(frames, 3);
}

enum { MANY = 3000 };
static uint64_t ids[MANY];
static float at[MANY];

static struct aoi_delta updates_of(const struct session *s, uint64_t seq, size_t n)
{
    return (struct aoi_delta){.space = 3, .flush = seq, .player = 9, .seq = seq, .owner = s->owner, .updates = {.n = n, .id = ids, .x = at, .y = at}};
}

/* What the core does with a delta for which there is room. Whether the sink had a place for its columns. */
static bool tell_anyhow(const struct aoi_sink *sink, struct aoi_delta *d)
{
    struct aoi_places to;
    d->placed = sink->columns(sink->ctx, d, &to);
    if (d->placed) {
        memcpy(to.id, d->updates.id, d->updates.n * 8);
        memcpy(to.x, d->updates.x, d->updates.n * 4);
        memcpy(to.y, d->updates.y, d->updates.n * 4);
    }
    sink->deliver(sink->ctx, d);
    return d->placed;
}

/* The same, but nothing where there is no room. */
static bool tell(const struct aoi_sink *sink, struct aoi_delta *d)
{
    return sink->room(sink->ctx, d->owner) > 0 && tell_anyhow(sink, d);
}

static void update_columns_are_written_straight_into_the_outbox(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    struct aoi_sink sink = deliver_sink(&rig->deliver);
    rig_hello(rig, s);
    for (uint32_t i = 0; i < 3; i++) {
        ids[i] = 70 + i;
        at[i] = (float)i;
    }
    for (uint64_t seq = 1; seq <= 2; seq++) {
        struct aoi_delta d = updates_of(s, seq, 3);
        assert_true(tell(&sink, &d));
    }
    assert_true(s->touched);
    for (uint64_t seq = 1; seq <= 2; seq++) {
        struct aoi_delta d = rig_take_delta(rig, s, 9);
        assert_int_equal(d.seq, seq);
        assert_int_equal(d.updates.n, 3);
        assert_memory_equal(d.updates.id, ids, 3 * sizeof *ids);
        assert_memory_equal(d.updates.y, at, 3 * sizeof *at);
    }
    assert_true(rig_silent(rig, s));
}

static void a_delta_that_is_too_large_for_a_frame_of_several_is_not_placed(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    struct aoi_sink sink = deliver_sink(&rig->deliver);
    rig->deliver.max_frame_bytes = 8192;
    rig_hello(rig, s);
    for (uint32_t i = 0; i < 2000; i++) ids[i] = i + 1;
    struct aoi_delta first = updates_of(s, 1, 5), large = updates_of(s, 2, 2000);
    assert_true(tell(&sink, &first));
    assert_false(tell(&sink, &large));
    assert_int_equal(rig_take_delta(rig, s, 9).updates.n, 5);
    size_t got = 0, parts = 0;
    for (; !rig_silent(rig, s); parts++) {
        struct aoi_delta part = rig_take_delta(rig, s, 9);
        assert_int_equal(part.seq, 2);
        assert_int_equal(part.updates.id[0], got + 1);
        got += part.updates.n;
    }
    assert_int_equal(got, 2000);
    assert_in_range(parts, 4, 5);
}

static void a_placed_delta_that_passes_the_hard_limit_closes_the_connection(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    struct aoi_sink sink = deliver_sink(&rig->deliver);
    rig_hello(rig, s);
    rig->out_limits.hard_bytes = 120000;
    assert_true(sink.room(sink.ctx, s->owner) > 0);
    stuff(s, 98000); /* so near to the soft limit that what it takes past that is not excused */
    struct aoi_delta last = updates_of(s, 1, 3000);
    assert_true(tell_anyhow(&sink, &last));
    assert_int_equal(s->state, SESSION_BROKEN);
    assert_int_equal(s->reason, CLOSE_OUT_HARD);
    assert_true(s->unsent_bytes > 120000);
    uint64_t bytes = outbox_bytes(&s->out);
    struct aoi_delta d = updates_of(s, 99, 3);
    assert_false(tell(&sink, &d)); /* and nothing comes any more */
    assert_int_equal(outbox_bytes(&s->out), bytes);
}

static void nobody_who_is_gone_or_is_owed_a_notice_has_a_place_for_columns(void **state)
{
    struct rig *rig = *state;
    struct session *s = &rig->session[0];
    struct aoi_sink sink = deliver_sink(&rig->deliver);
    rig_hello(rig, s);
    struct aoi_delta d = updates_of(s, 1, 3), other = d;
    other.owner += 5;
    assert_false(tell(&sink, &other));
    sink.lost(sink.ctx, s->owner, 3, false, 11);
    assert_false(tell(&sink, &d));
    assert_true(rig_silent(rig, s));
    deliver_waiting(&rig->deliver);
    assert_int_equal(rig_take(rig, s)->kind, CODEC_LOST);
    assert_true(tell(&sink, &d));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(observed_entities_go_to_their_owner_in_one_frame),
        TEST(observed_entities_that_fill_more_than_a_frame_go_in_several),
        TEST(a_full_or_missing_connection_is_told_later_who_is_observed),
        TEST(what_was_lost_waits_and_goes_in_one_frame_a_space),
        TEST(what_was_lost_is_told_whole_in_frames_that_fit),
        TEST(update_columns_are_written_straight_into_the_outbox),
        TEST(a_delta_that_is_too_large_for_a_frame_of_several_is_not_placed),
        TEST(a_placed_delta_that_passes_the_hard_limit_closes_the_connection),
        TEST(nobody_who_is_gone_or_is_owed_a_notice_has_a_place_for_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
