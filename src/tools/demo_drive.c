/* demo_drive.c: the connections of the demo, and what happens at each step: vehicles, riders, cameras. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/clock.h"
#include "tools/demo.h"

#define FIRST_CAMERA 1000001 /* ids of cameras; players have 1 .. DEMO_PLAYERS */
#define ZOOM_LEAST_KM 60.0
#define ZOOM_MOST_KM 1200.0
#define ZOOM_OUT_MOST_KM 4000.0 /* with max_view */
#define TOWN_EDGE 100000.0f     /* beyond it there is nothing of the town */
#define TRIES 10000

uint64_t demo_random(struct demo *d, uint64_t below)
{
    d->random ^= d->random << 13; /* xorshift64, Marsaglia 2003: every run is the same */
    d->random ^= d->random >> 7;
    d->random ^= d->random << 17;
    return d->random % below;
}

struct libaoi *demo_eye(struct demo *d, uint64_t player)
{
    return d->conn[1 + player % DEMO_EYES];
}

/* ------------------------------------------------------------------------------------------------------------- connections */

int demo_pump(struct demo *d, uint64_t until_us)
{
    struct pollfd fds[DEMO_CONNS];
    for (;;) {
        int handled = 0;
        for (int i = 0; i < DEMO_CONNS; i++) {
            int n = libaoi_poll(d->conn[i], 0);
            if (n < 0) return demo_fault(d, "connection %d: %s", i, libaoi_error(d->conn[i]));
            handled += n;
            fds[i] = (struct pollfd){.fd = libaoi_fd(d->conn[i]), .events = (short)(POLLIN | (libaoi_unsent(d->conn[i]) ? POLLOUT : 0))};
        }
        if (demo_stop) return demo_fault(d, "stopped by a signal");
        uint64_t now = clock_us();
        if (now >= until_us) return 0;
        if (!handled) poll(fds, DEMO_CONNS, (int)((until_us - now + 999) / 1000));
    }
}

int demo_settle(struct demo *d, int timeout_ms)
{
    uint64_t end = clock_us() + (uint64_t)timeout_ms * 1000;
    for (int i = 0; i < DEMO_CONNS; i++) libaoi_send(d->conn[i]);
    for (;;) {
        uint64_t waiting = 0;
        for (int i = 0; i < DEMO_CONNS; i++) waiting += libaoi_unanswered(d->conn[i]);
        if (!waiting) return d->fault[0] ? -1 : 0;
        if (clock_us() > end) return demo_fault(d, "the daemon has not answered %llu frames within %d ms", (unsigned long long)waiting, timeout_ms);
        if (demo_pump(d, clock_us() + 200)) return -1;
    }
}

static void on_delta(void *ctx, const struct libaoi_delta *delta)
{
    struct demo *d = ctx;
    if (delta->space != DEMO_TOWN) return;
    demo_on_view(d, delta);
    if (delta->tag) return; /* latency is that of the timer */
    uint32_t now = (uint32_t)clock_us();
    for (size_t i = 0; i < delta->update_n; i++) histogram_add(&d->latency, now - delta->update_extra[i]);
}

static void on_ack(void *ctx, const struct libaoi_ack *ack)
{
    struct demo *d = ctx;
    d->pending |= ack->pending;
    d->refused += ack->refused;
    if (ack->n)
        demo_fault(d, "the daemon refused a command about %llu: %s: %s", (unsigned long long)ack->refusals[0].id,
                   libaoi_code_name(ack->refusals[0].code), ack->refusals[0].text);
}

static void on_error(void *ctx, uint64_t seq, int code, const char *text)
{
    demo_fault(ctx, "the daemon refused frame %llu: %s: %s", (unsigned long long)seq, libaoi_code_name(code), text);
}

int demo_connect(struct demo *d)
{
    char error[300], name[32];
    for (int i = 0; i < DEMO_CONNS; i++) {
        snprintf(name, sizeof name, i ? "demo-eyes-%d" : "demo-mover", i);
        d->conn[i] = libaoi_connect(
            &(struct libaoi_options){.address = d->daemon.address,
                                     .client_name = name,
                                     .mirror = i > 0,
                                     .handlers = {.ctx = d, .delta = on_delta, .message = demo_on_message, .ack = on_ack, .error = on_error}},
            error, sizeof error);
        if (!d->conn[i]) return demo_fault(d, "%s", error);
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------- vehicles and riders */

static bool vehicle_in(const struct demo *d, uint32_t step, uint64_t id)
{
    if (step >= d->town.steps.n) step = d->town.steps.n - 1;
    const struct trace_row *rows = d->town.rows.at + d->town.steps.at[step].first;
    uint32_t low = 0, high = d->town.steps.at[step].n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (rows[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < d->town.steps.at[step].n && rows[low].id == id;
}

/* A vehicle that is in the town since the step before and stays for two more, so that nobody subscribes to one that the mover removes meanwhile. */
static uint64_t pick_vehicle(struct demo *d, uint32_t step)
{
    const struct trace_step *from = &d->town.steps.at[step ? step - 1 : 0];
    for (int i = 0; i < TRIES; i++) {
        uint64_t id = d->town.rows.at[from->first + demo_random(d, from->n)].id;
        if (vehicle_in(d, step, id) && vehicle_in(d, step + 2, id)) return id;
    }
    return 0;
}

/* A vehicle that sounds its horn, and stays until that has been told for certain: when the next views are compared, however late the flushes are. */
static uint64_t pick_horn(struct demo *d, uint32_t step)
{
    uint64_t id = 0;
    for (int i = 0; i < TRIES; i++) {
        uint32_t s = step;
        id = pick_vehicle(d, step);
        while (s <= step + DEMO_COMPARE_EVERY && vehicle_in(d, s, id)) s++;
        if (s > step + DEMO_COMPARE_EVERY) break;
    }
    return id;
}

static int ride(struct demo *d, struct demo_player *p, uint32_t step)
{
    p->vehicle = pick_vehicle(d, step);
    if (!p->vehicle) return demo_fault(d, "no vehicle of step %u stays in town", step);
    libaoi_subscribe(demo_eye(d, p->id), DEMO_TOWN, p->id, p->vehicle, p->include_self);
    return 0;
}

static void move_vehicles(struct demo *d, uint32_t step)
{
    static uint32_t stamps[65536]; /* a column of one value */
    d->step = step;
    d->stamp = (uint32_t)clock_us();
    trace_diff(&d->town, step, &d->diff);
    if (d->diff.leaves.n) libaoi_remove(d->conn[0], DEMO_TOWN, d->diff.leaves.n, d->diff.leaves.at);
    for (uint32_t i = 0; i < d->diff.enters.n; i++) {
        const struct trace_row *row = &d->diff.enters.at[i];
        libaoi_add(d->conn[0], DEMO_TOWN, LIBAOI_ADD_NEW,
                   &(struct libaoi_entity){
                       .id = row->id, .pos = {row->x, row->y}, .extra = d->stamp, .radius = DEMO_RADIUS, .priority = demo_is_bus(row->id)});
    }
    uint32_t n = d->diff.move_id.n, room = sizeof stamps / sizeof *stamps;
    for (uint32_t i = 0; i < room && i < n; i++) stamps[i] = d->stamp;
    for (uint32_t i = 0; i < n; i += room)
        libaoi_move(d->conn[0], DEMO_TOWN, n - i < room ? n - i : room, d->diff.move_id.at + i, d->diff.move_x.at + i, d->diff.move_y.at + i, NULL,
                    stamps);
    d->moves += n;
    if (step) demo_sound_horns(d, step); /* before that nobody listens */
    libaoi_send(d->conn[0]);
}

/* ------------------------------------------------------------------------------------------------------------- cameras */

static void aim(struct demo *d, struct demo_camera *c)
{
    const struct demo_city *city = &d->cities.at[demo_random(d, d->cities.n)];
    c->to_x = city->x;
    c->to_y = city->y;
}

static void move_camera(struct demo *d, struct demo_camera *c)
{
    c->x += (c->to_x - c->x) * 0.06;
    c->y += (c->to_y - c->y) * 0.06;
    c->zoom += c->zoom_speed;
    if (fabs(c->to_x - c->x) + fabs(c->to_y - c->y) < 50) aim(d, c);
    double most = c->zooms_out ? ZOOM_OUT_MOST_KM : ZOOM_MOST_KM;
    double width = ZOOM_LEAST_KM * pow(most / ZOOM_LEAST_KM, 0.5 + 0.5 * sin(c->zoom)), height = width * 9 / 16;
    c->min[0] = (float)(c->x - width / 2);
    c->max[0] = (float)(c->x + width / 2);
    c->min[1] = (float)(c->y - height / 2);
    c->max[1] = (float)(c->y + height / 2);
    libaoi_set_viewport(demo_eye(d, c->id), DEMO_CITIES, c->id, c->min, c->max);
}

/* ------------------------------------------------------------------------------------------------------------- the run */

static int load_cities(struct demo *d)
{
    char path[512], error[300];
    struct trace_table table;
    snprintf(path, sizeof path, "%s/cities.csv.xz", d->data);
    if (trace_load_table(&table, path, error, sizeof error)) return demo_fault(d, "%s", error);
    int id = trace_column(&table, "id"), x = trace_column(&table, "x"), y = trace_column(&table, "y"), people = trace_column(&table, "population");
    if (id < 0 || x < 0 || y < 0 || people < 0) {
        trace_clear_table(&table);
        return demo_fault(d, "%s: the columns are id, x, y, population", path);
    }
    for (size_t i = 0; i < table.rows; i++) {
        const double *cell = table.cells.at + i * table.columns;
        struct demo_city *city = array_add(&d->cities);
        *city = (struct demo_city){.id = (uint64_t)cell[id], .x = (float)cell[x], .y = (float)cell[y]};
        city->people = (uint32_t)cell[people];
        city->layers = cell[people] < 15000 ? 1 : cell[people] < 100000 ? 2 : 4;
        snprintf(city->population, sizeof city->population, "%.0f", cell[people]);
    }
    trace_clear_table(&table);
    return 0;
}

static int load_world(struct demo *d)
{
    struct libaoi *mover = d->conn[0];
    const struct libaoi_settings town = {.index = d->index, .cell_size = 64, .extra = true, .flush_ms = LIBAOI_FLUSH_MS};
    const struct libaoi_settings cities = {.index = d->index, .cell_size = 64};
    char path[512], error[300];
    snprintf(path, sizeof path, "%s/town.csv.xz", d->data);
    if (trace_load(&d->town, path, error, sizeof error)) return demo_fault(d, "%s", error);
    if (load_cities(d)) return -1;
    libaoi_create_space(mover, DEMO_TOWN, &town, false);
    libaoi_create_space(mover, DEMO_CITIES, &cities, false);
    for (uint32_t i = 0; i < d->cities.n; i++) {
        const struct demo_city *c = &d->cities.at[i];
        libaoi_add(mover, DEMO_CITIES, LIBAOI_ADD_NEW,
                   &(struct libaoi_entity){.id = c->id,
                                           .pos = {c->x, c->y},
                                           .layers = c->layers,
                                           .priority = c->people,
                                           .payload = c->population,
                                           .payload_len = strlen(c->population)});
    }
    return demo_settle(d, 30000);
}

static int open_riders(struct demo *d)
{
    const struct libaoi_player crowd = {.max_view = DEMO_CROWD_VIEW, .leave_margin = DEMO_CROWD_MARGIN};
    const float min[3] = {-TOWN_EDGE, -TOWN_EDGE, 0}, max[3] = {TOWN_EDGE, TOWN_EDGE, 0};
    for (uint64_t i = 0; i < DEMO_PLAYERS; i++) {
        struct demo_player *p = &d->players[i];
        *p = (struct demo_player){.id = i + 1, .include_self = i % 10 == 0, .crowd = i % (DEMO_PLAYERS / DEMO_CROWD) == 0};
        if (p->crowd) libaoi_open_player_with(demo_eye(d, p->id), DEMO_TOWN, p->id, &crowd);
        if (ride(d, p, 0)) return -1;
    }
    libaoi_open_player_with(demo_eye(d, DEMO_LISTENER), DEMO_TOWN, DEMO_LISTENER, &(struct libaoi_player){.presence_only = true});
    libaoi_set_viewport(demo_eye(d, DEMO_LISTENER), DEMO_TOWN, DEMO_LISTENER, min, max);
    d->horn_first = 1;
    for (uint32_t i = 0; i < d->town.steps.n * DEMO_HORNS; i++) *array_add(&d->horns) = pick_horn(d, i / DEMO_HORNS);
    return 0;
}

static void open_cameras(struct demo *d)
{
    for (uint64_t i = 0; i < DEMO_CAMERAS; i++) {
        struct demo_camera *c = &d->cameras[i];
        *c = (struct demo_camera){.id = FIRST_CAMERA + i, .mask = i % 4 == 1 ? 6 : i % 4 == 2 ? 4 : 0, .zooms_out = i % 4 == 3};
        aim(d, c);
        c->x = c->to_x;
        c->y = c->to_y;
        c->zoom = (double)demo_random(d, 628) / 100;
        c->zoom_speed = 0.02 + (double)demo_random(d, 100) / 1500;
        libaoi_open_player_with(demo_eye(d, c->id), DEMO_CITIES, c->id,
                                &(struct libaoi_player){.mask = c->mask, .max_view = c->zooms_out ? DEMO_CAMERA_VIEW : 0});
        move_camera(d, c);
    }
}

int demo_load(struct demo *d)
{
    if (load_world(d)) return -1;
    move_vehicles(d, 0);
    if (demo_settle(d, 30000) || open_riders(d)) return -1;
    open_cameras(d);
    return demo_settle(d, 30000);
}

int demo_advance(struct demo *d, uint32_t step)
{
    /* what the step before sent is in the world before somebody rides one of its vehicles */
    if (demo_settle(d, 20000)) return -1;
    move_vehicles(d, step);
    for (int i = 0; i < DEMO_PLAYERS; i++) {
        if (vehicle_in(d, step, d->players[i].vehicle)) continue;
        if (ride(d, &d->players[i], step)) return -1;
        d->changes_of_vehicle++;
    }
    for (int i = 0; i < DEMO_CAMERAS; i++) move_camera(d, &d->cameras[i]);
    for (int i = 1; i < DEMO_CONNS; i++) libaoi_send(d->conn[i]);
    libaoi_flush(d->conn[0], DEMO_CITIES, step + 1);
    libaoi_send(d->conn[0]);
    return 0;
}
