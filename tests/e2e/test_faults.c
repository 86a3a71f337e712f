/* test_faults.c: sessions behind a bad network. Whatever the links suffer, each command is applied once, and after each heal every mirror is what brute force gives. */
#include "model.h"
#include "proxy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SESSIONS 3
#define SPACE 1
#define FAULTS 2000 /* or AOI_FAULTS */
#define LEASE_MS 60000

struct seat {
    struct libaoi *c;
    struct proxy *proxy;
    char address[32];
    uint64_t refused, resumed;
};

static struct rig rig;
static struct client *keeper; /* flushes, on a link of its own without faults */
static struct seat seats[SESSIONS];
static struct model model;

static float any(float low, float high)
{
    return low + (high - low) * (float)random_below(1000) / 1000;
}

/* Ids are shared out: who owns an entity or a player is known by its id. */
static uint64_t own(int seat, uint64_t most)
{
    return (uint64_t)seat + 1 + SESSIONS * random_below((most - (uint64_t)seat - 1) / SESSIONS + 1);
}

static void on_ack(void *ctx, const struct libaoi_ack *ack)
{
    struct seat *seat = ctx;
    seat->refused += ack->refused;
    if (ack->refused)
        print_message("refused: %s about %" PRIu64 ": %s\n", libaoi_code_name(ack->refusals[0].code), ack->refusals[0].id, ack->refusals[0].text);
}

static void seat_connect(struct seat *seat)
{
    const struct libaoi_options options = {.address = seat->address,
                                           .client_name = "seat",
                                           .timeout_ms = TIMEOUT_MS,
                                           .mirror = true,
                                           .lease_ms = LEASE_MS,
                                           .resume = true,
                                           .handlers = {.ctx = seat, .ack = on_ack}};
    seat->c = connect_or_fail(&options);
}

/* ------------------------------------------------------------------------------------------------------------- commands */

static void add_entity(struct libaoi *c, uint64_t id)
{
    struct model_entity *t = &model.entities[id];
    uint32_t len = (uint32_t)random_below(random_below(4) ? 8 : sizeof t->bytes);
    memset(t->bytes, (int)random_below(256), len);
    t->alive = true;
    t->e = (struct libaoi_entity){
        .id = id, .pos = {any(-50, 50), any(-50, 50)}, .radius = any(0, 30), .layers = 1, .payload = t->bytes, .payload_len = len};
    libaoi_add(c, SPACE, LIBAOI_ADD_NEW, &t->e);
}

static void change_entity(struct libaoi *c, uint64_t id)
{
    struct model_entity *t = &model.entities[id];
    switch (random_below(10)) {
    case 0:
        libaoi_remove(c, SPACE, 1, &id);
        model_remove(&model, id);
        break;
    case 1:
        t->e.radius = any(0, 30);
        libaoi_set_radius(c, SPACE, id, t->e.radius);
        break;
    case 2:
        t->e.payload_len = random_below(sizeof t->bytes);
        memset(t->bytes, (int)random_below(256), t->e.payload_len);
        libaoi_set_payload(c, SPACE, id, t->bytes, t->e.payload_len);
        break;
    case 3: /* another one of the same id */
        libaoi_remove(c, SPACE, 1, &id);
        model_remove(&model, id);
        add_entity(c, id);
        break;
    default:
        t->e.pos[0] = any(-50, 50);
        t->e.pos[1] = any(-50, 50);
        libaoi_move(c, SPACE, 1, &id, &t->e.pos[0], &t->e.pos[1], NULL, NULL);
    }
}

static void command_player(struct libaoi *c, int seat)
{
    uint64_t player = own(seat, MODEL_PLAYERS), unit = own(seat, MODEL_ENTITIES);
    struct model_player *p = &model.players[player];
    uint64_t what = random_below(8);
    if (what == 0 && p->open) {
        libaoi_close_player(c, SPACE, player);
        memset(p, 0, sizeof *p);
    } else if (what < 4) {
        p->open = p->viewport = true;
        for (int a = 0; a < 2; a++) {
            p->min[a] = any(-60, 40);
            p->max[a] = p->min[a] + any(0, 60);
        }
        libaoi_set_viewport(c, SPACE, player, p->min, p->max);
    } else if (model.entities[unit].alive && !p->unit[unit]) {
        p->open = p->unit[unit] = true;
        p->include_self[unit] = random_below(2);
        libaoi_subscribe(c, SPACE, player, unit, p->include_self[unit]);
    } else if (p->unit[unit]) {
        p->unit[unit] = false;
        libaoi_unsubscribe(c, SPACE, player, unit);
    }
}

static void command(int seat)
{
    struct libaoi *c = seats[seat].c;
    for (uint64_t n = 1 + random_below(random_below(8) ? 6 : 60); n > 0; n--) {
        uint64_t id = own(seat, MODEL_ENTITIES);
        if (random_below(4) == 0)
            command_player(c, seat);
        else if (model.entities[id].alive)
            change_entity(c, id);
        else
            add_entity(c, id);
        if (random_below(6) == 0) libaoi_send(c);
    }
    libaoi_send(c);
}

/* ------------------------------------------------------------------------------------------------------------- faults */

static void plan(struct seat *seat)
{
    enum proxy_fault fault = PROXY_NONE + 1 + (enum proxy_fault)random_below(PROXY_FAULTS - 1);
    bool slow = random_below(8) == 0;
    proxy_plan(seat->proxy, fault, random_below(2), random_below(random_below(3) ? 200 : 4000), slow ? 1 + (uint32_t)random_below(40) : 0,
               slow ? (uint32_t)random_below(200) : 0);
}

/* It notices what has become of its connection, or does not even look. */
static void try_resume(struct seat *seat)
{
    int status = libaoi_resume(seat->c, 20 + (int)random_below(50));
    if (status == 0) fail_msg("the session is gone: %s", libaoi_error(seat->c));
    if (status == LIBAOI_EPROTOCOL || status == LIBAOI_EREFUSED) fail_msg("%s", libaoi_error(seat->c));
    seat->resumed += status == 1;
}

static void poll_seat(struct seat *seat)
{
    int status = libaoi_poll(seat->c, (int)random_below(2));
    if (status == LIBAOI_EPROTOCOL) fail_msg("%s", libaoi_error(seat->c));
    if (status == LIBAOI_ECLOSED ? random_below(3) > 0 : random_below(60) == 0) try_resume(seat);
}

/* Everything has been answered, and the connection is a good one. */
static int sound(struct seat *seat)
{
    libaoi_ping(seat->c, 1);
    return libaoi_sync(seat->c, TIMEOUT_MS);
}

static void heal(struct seat *seat)
{
    proxy_calm(seat->proxy);
    for (int status = sound(seat), tries = 0; status != 0; status = sound(seat)) {
        if (status != LIBAOI_ECLOSED || tries++ == 20) fail_msg("%d: %s", status, libaoi_error(seat->c));
        status = libaoi_resume(seat->c, TIMEOUT_MS);
        if (status != 1 && status != LIBAOI_ECLOSED) fail_msg("%d: %s", status, libaoi_error(seat->c));
        seat->resumed += status == 1;
    }
    assert_int_equal(seat->refused, 0);
}

static void compare(void)
{
    flush(keeper, SPACE, keeper);
    for (int s = 0; s < SESSIONS; s++) {
        struct seat *seat = &seats[s];
        if (libaoi_wait(seat->c, libaoi_ping(seat->c, 1), TIMEOUT_MS)) fail_msg("%s", libaoi_error(seat->c));
        for (uint64_t player = (uint64_t)s + 1; player <= MODEL_PLAYERS; player += SESSIONS) {
            const struct client view_of = {.c = seat->c};
            model_compare(&model, &view_of, player);
        }
    }
}

/* A session ends with Bye, and another one takes its place. */
static void begin_anew(int s)
{
    struct libaoi_stats stats;
    assert_int_equal(libaoi_bye(seats[s].c, TIMEOUT_MS), 0);
    libaoi_close(seats[s].c);
    for (uint64_t id = (uint64_t)s + 1; id <= MODEL_ENTITIES; id += SESSIONS) model_remove(&model, id);
    for (uint64_t player = (uint64_t)s + 1; player <= MODEL_PLAYERS; player += SESSIONS) memset(&model.players[player], 0, sizeof model.players[0]);
    uint64_t alive = 0;
    for (int id = 1; id <= MODEL_ENTITIES; id++) alive += model.entities[id].alive;
    assert_int_equal(libaoi_query_stats(keeper->c, SPACE, TIMEOUT_MS, &stats), 0);
    assert_int_equal(stats.entities, alive);
    seat_connect(&seats[s]);
}

static uint64_t struck(void)
{
    uint64_t n = 0;
    for (int s = 0; s < SESSIONS; s++) n += proxy_struck(seats[s].proxy);
    return n;
}

static void round_of_faults(void)
{
    for (uint64_t steps = 2 + random_below(12); steps > 0; steps--) {
        int s = (int)random_below(SESSIONS);
        if (random_below(2)) plan(&seats[s]);
        if (random_below(4)) command(s);
        if (random_below(3) == 0) {
            libaoi_flush(keeper->c, SPACE, 0);
            client_ok(keeper);
        }
        for (int i = 0; i < SESSIONS; i++) poll_seat(&seats[i]);
    }
    for (int s = 0; s < SESSIONS; s++) heal(&seats[s]);
    compare();
    if (random_below(40) == 0) begin_anew((int)random_below(SESSIONS));
}

static void run(uint32_t index, uint32_t flush_ms, uint64_t faults)
{
    /* full deltas come in parts */
    rig_start(&rig, (const char *[]){"max_lease_ms=100000", "max_frame_bytes=8192", "max_payload=1000", "max_message=1000", NULL});
    keeper = rig_client(&rig);
    memset(&model, 0, sizeof model);
    memset(seats, 0, sizeof seats);
    model.space = SPACE;
    model.set = (struct libaoi_settings){.index = index, .shape = LIBAOI_BOX, .cell_size = 16, .flush_ms = flush_ms};
    libaoi_create_space(keeper->c, SPACE, &model.set, false);
    client_ok(keeper);
    for (int s = 0; s < SESSIONS; s++) {
        seats[s].proxy = proxy_new((uint16_t)atoi(strrchr(rig.daemon.address, ':') + 1));
        snprintf(seats[s].address, sizeof seats[s].address, "127.0.0.1:%u", proxy_port(seats[s].proxy));
        seat_connect(&seats[s]);
    }
    while (struck() < faults) round_of_faults();
    uint64_t resumed = 0;
    for (int s = 0; s < SESSIONS; s++) {
        resumed += seats[s].resumed;
        libaoi_abandon(seats[s].c);
        proxy_free(seats[s].proxy);
    }
    print_message("index %u, flush_ms %u: %" PRIu64 " faults, %" PRIu64 " resumes\n", index, flush_ms, faults, resumed);
    rig_stop(&rig);
}

static void after_each_heal_the_mirrors_are_what_brute_force_gives(void **state)
{
    (void)state;
    const char *given = getenv("AOI_FAULTS");
    uint64_t faults = given ? strtoull(given, NULL, 0) : FAULTS;
    random_seed("test_faults");
    for (uint32_t index = LIBAOI_GRID; index <= LIBAOI_CROSSLIST; index++) {
        run(index, 0, (faults + 3) / 4);
        run(index, 5, (faults + 3) / 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(after_each_heal_the_mirrors_are_what_brute_force_gives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
