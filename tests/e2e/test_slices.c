/* test_slices.c: a flush that takes long is cut into slices: others are answered meanwhile, the space's own input waits, and all views are right. */
#include <pthread.h>
#include <stdatomic.h>

#include "stage.h"

enum { PLAYERS = 2500, WALKERS = 300, ROUNDS = 5 };

/* The connection of all players. */
struct watch {
    struct libaoi *c;
    uint64_t flush, time_us; /* of the last delta */
    uint64_t told;           /* deltas of that flush */
    bool acked;
};

static void on_delta(void *ctx, const struct libaoi_delta *d)
{
    struct watch *w = ctx;
    if (d->flush != w->flush) w->told = 0;
    w->flush = d->flush;
    w->time_us = d->time_us;
    w->told += !d->more;
}

static void on_ack(void *ctx, const struct libaoi_ack *ack)
{
    struct watch *w = ctx;
    assert_int_equal(ack->refused, 0);
    w->acked = true;
}

static void on_pong(void *ctx, uint64_t seq, uint64_t nonce, uint64_t time_us)
{
    (void)seq;
    (void)nonce;
    *(uint64_t *)ctx = time_us;
}

/* Pings as fast as it is answered, in a thread of its own: the other clients are busy with what they are told. */
struct bystander {
    struct libaoi *c;
    pthread_t thread;
    atomic_bool stop;
    ARRAY(uint64_t) answered_us; /* by the daemon's clock */
};

static void on_answer(void *ctx, uint64_t seq, uint64_t nonce, uint64_t time_us)
{
    struct bystander *b = ctx;
    (void)seq;
    (void)nonce;
    *array_add(&b->answered_us) = time_us;
}

static void *stand_by(void *ctx)
{
    struct bystander *b = ctx;
    while (!atomic_load(&b->stop)) {
        libaoi_ping(b->c, 0);
        if (libaoi_sync(b->c, TIMEOUT_MS) != 0) return b;
    }
    return NULL;
}

/* How long after that time it was answered first. */
static uint64_t first_after(const struct bystander *b, uint64_t time_us)
{
    for (uint32_t i = 0; i < b->answered_us.n; i++)
        if (b->answered_us.at[i] > time_us) return b->answered_us.at[i] - time_us;
    return UINT64_MAX;
}

static struct libaoi *connect_with(struct libaoi_handlers handlers, bool mirror)
{
    const struct libaoi_options options = {.address = rig.daemon.address, .client_name = "slices", .mirror = mirror, .handlers = handlers};
    return connect_or_fail(&options);
}

/* Everything sent has been answered, and what the daemon had to say to this connection has come. */
static void ok(struct libaoi *c)
{
    libaoi_send(c);
    libaoi_ping(c, 0);
    if (libaoi_sync(c, TIMEOUT_MS) != 0) fail_msg("%s", libaoi_error(c));
}

/* The player sees all there is. */
static void look(struct libaoi *c, uint64_t player)
{
    libaoi_set_viewport(c, SPACE, player, (float[]){-1, -1, 0}, (float[]){WALKERS, WALKERS, 0});
}

static void poll_now(struct libaoi *c)
{
    if (libaoi_poll(c, 0) < 0) fail_msg("%s", libaoi_error(c));
}

/* All walk to another place; round 0 is where they begin. */
static void walk(struct libaoi *c, int round)
{
    uint64_t id[WALKERS];
    float x[WALKERS], y[WALKERS];
    for (int i = 0; i < WALKERS; i++) {
        id[i] = (uint64_t)i + 1;
        x[i] = (float)i;
        y[i] = (float)round;
    }
    libaoi_move(c, SPACE, WALKERS, id, x, y, NULL, NULL);
}

static void begin(struct watch *w, struct libaoi **walker, uint64_t *pong_us)
{
    static const char *const options[] = {"out_soft_bytes=1000000000", "out_hard_bytes=2000000000", NULL};
    rig_start(&rig, options);
    *w = (struct watch){0};
    w->c = connect_with((struct libaoi_handlers){.ctx = w, .delta = on_delta, .ack = on_ack}, true);
    *walker = connect_with((struct libaoi_handlers){.ctx = pong_us, .pong = on_pong}, false);
    libaoi_create_space(*walker, SPACE, &(struct libaoi_settings){.flush_ms = 20, .max_view = WALKERS}, false); /* a rank: no glance will do */
    for (uint64_t id = 1; id <= WALKERS; id++)
        libaoi_add(*walker, SPACE, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = id, .pos = {(float)id - 1, 0}});
    ok(*walker);
    for (uint64_t p = 1; p <= PLAYERS; p++) look(w->c, p);
    ok(w->c);
    libaoi_flush(w->c, SPACE, 0);
    ok(w->c);
}

/* What a flush of everything takes in one piece, by the daemon's own clock: two pings, one before and one behind it. */
static uint64_t whole_us(const struct watch *w, uint64_t *pong_us, struct libaoi *walker, int round)
{
    uint64_t began_us;
    ok(walker);
    began_us = *pong_us;
    walk(walker, round);
    libaoi_flush(walker, SPACE, 0);
    libaoi_send(walker);
    libaoi_ping(walker, 0);
    while (libaoi_unanswered(walker) > 0) {
        poll_now(walker);
        poll_now(w->c);
    }
    return *pong_us - began_us;
}

/* A round by the timer; when its flush began. A command that comes in the middle must be acknowledged behind the last delta. */
static uint64_t timed(struct watch *w, struct libaoi *walker, int round)
{
    ok(w->c);
    uint64_t before = w->flush, begun = 0, number = 0;
    walk(walker, round);
    libaoi_send(walker);
    w->acked = false;
    while (!w->acked) {
        poll_now(walker);
        poll_now(w->c);
        if (w->flush == before || begun != 0) continue;
        begun = w->time_us;
        number = w->flush;
        look(w->c, 1);
        libaoi_send(w->c);
    }
    assert_int_equal(w->flush, number);
    assert_int_equal(w->told, PLAYERS);
    return begun;
}

static void while_a_space_of_2500_players_is_flushed_others_are_answered_and_its_own_input_waits(void **state)
{
    (void)state;
    struct watch w;
    struct libaoi *walker;
    struct bystander by = {0};
    uint64_t pong_us = 0, begun[ROUNDS], whole = UINT64_MAX, answered = UINT64_MAX;
    void *failed;
    begin(&w, &walker, &pong_us);
    by.c = connect_with((struct libaoi_handlers){.ctx = &by, .pong = on_answer}, false);
    assert_int_equal(pthread_create(&by.thread, NULL, stand_by, &by), 0);
    for (int round = 0; round < ROUNDS; round++) begun[round] = timed(&w, walker, round + 1);
    ok(w.c);
    atomic_store(&by.stop, true);
    assert_int_equal(pthread_join(by.thread, &failed), 0);
    assert_null(failed);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = first_after(&by, begun[round]);
        if (a < answered) answered = a;
    }
    for (int round = 1; round <= 2; round++) {
        uint64_t took = whole_us(&w, &pong_us, walker, ROUNDS + round);
        if (took < whole) whole = took;
    }
    print_message("a flush takes %llu us; a bystander was answered after %llu us of it\n", (unsigned long long)whole, (unsigned long long)answered);
    assert_true(answered < whole / 2);

    ok(w.c);
    for (uint64_t p = 1; p <= PLAYERS; p++) {
        const struct libaoi_view *view = libaoi_view(w.c, SPACE, p);
        assert_non_null(view);
        assert_int_equal(view->n, WALKERS);
        for (size_t i = 0; i < view->n; i++)
            assert_true(view->items[i].pos[0] == (float)view->items[i].id - 1 && view->items[i].pos[1] == ROUNDS + 2);
    }
    array_clear(&by.answered_us);
    libaoi_close(by.c);
    libaoi_close(walker);
    libaoi_close(w.c);
    rig_stop(&rig);
}

/* Nobody waits for ever for a flush whose players go, whose daemon ends, or that is commanded to end. */
static void players_that_leave_in_the_middle_of_a_flush_and_a_drain_are_fine(void **state)
{
    (void)state;
    struct watch w;
    struct libaoi *walker;
    uint64_t pong_us;
    begin(&w, &walker, &pong_us);
    struct watch other = {0};
    other.c = connect_with((struct libaoi_handlers){.ctx = &other, .delta = on_delta, .ack = on_ack}, true);
    for (uint64_t p = 1; p <= 100; p++) look(other.c, PLAYERS + p);
    ok(other.c);
    libaoi_flush(other.c, SPACE, 0);
    ok(other.c);
    uint64_t before = w.flush;
    walk(walker, 1);
    libaoi_send(walker);
    while (w.flush == before) {
        poll_now(walker);
        poll_now(w.c);
    }
    libaoi_close(w.c); /* most probably in the middle */
    ok(walker);
    for (int round = 2; round <= 4; round++) {
        walk(walker, round);
        libaoi_flush(walker, SPACE, 0);
        ok(walker);
    }
    ok(other.c);
    const struct libaoi_view *view = libaoi_view(other.c, SPACE, PLAYERS + 100);
    assert_non_null(view);
    for (size_t i = 0; i < view->n; i++) assert_true(view->items[i].pos[1] == 4);
    walk(walker, 5);
    ok(walker);
    libaoi_close(walker);
    libaoi_close(other.c);
    rig_stop(&rig); /* drains: the daemon must exit with 0 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(while_a_space_of_2500_players_is_flushed_others_are_answered_and_its_own_input_waits),
        cmocka_unit_test(players_that_leave_in_the_middle_of_a_flush_and_a_drain_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
