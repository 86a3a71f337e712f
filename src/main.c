/* main.c: aoid: arguments, configuration, signals, run. */
#include <errno.h>
#include <libgen.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "server/args.h"
#include "server/monitor.h"
#include "server/notify.h"
#include "server/reload.h"
#include "server/replay.h"
#include "server/server.h"
#include "server/still.h"
#include "base/version.h"

struct daemon {
    struct config config;
    struct args args;
    int argc;
    char **argv;
    uv_loop_t loop;
    uv_signal_t term, interrupt, hangup;
    struct still reload;
    uv_timer_t watchdog; /* runs where systemd wants to hear that the loop turns */
    struct server server;
    struct monitor monitor;
};

static void on_signal(uv_signal_t *handle, int number)
{
    struct daemon *d = handle->data;
    const char *name = number == SIGTERM ? "SIGTERM" : "SIGINT";
    if (d->server.draining) {
        log_warn("exit", "why=%s status=1", name);
        _exit(1); /* the second one: at once */
    }
    notify_systemd("STOPPING=1");
    still_stop(&d->reload);
    server_drain(&d->server, name);
}

/* Nothing changes in the middle of a flush or of a batch; and a batch may make spaces, so that it ends before they are counted. */
static void on_still(void *ctx)
{
    struct daemon *d = ctx;
    reload(&d->server, d->argc, d->argv);
    notify_systemd(d->server.draining ? "STOPPING=1" : "READY=1");
}

static void on_hangup(uv_signal_t *handle, int number)
{
    struct daemon *d = handle->data;
    (void)number;
    notify_reloading();
    if (d->server.draining)
        on_still(d); /* which is refused */
    else
        still_want(&d->reload);
}

static void on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    notify_systemd("WATCHDOG=1"); /* comes from the loop: who hears it knows that it turns */
}

static void start_signal(struct daemon *d, uv_signal_t *handle, uv_signal_cb callback, int number)
{
    CHECK(uv_signal_init(&d->loop, handle) == 0);
    handle->data = d;
    CHECK(uv_signal_start(handle, callback, number) == 0);
    uv_unref((uv_handle_t *)handle); /* the loop ends when the server has closed its handles */
}

/* One that came and was not heard yet is not heard any more. */
static void stop_signals(struct daemon *d)
{
    uv_signal_stop(&d->term);
    uv_signal_stop(&d->interrupt);
    uv_signal_stop(&d->hangup);
}

static void start_watchdog(struct daemon *d)
{
    uint64_t often_ms = notify_watchdog_ms() / 2;
    CHECK(uv_timer_init(&d->loop, &d->watchdog) == 0);
    if (often_ms > 0) CHECK(uv_timer_start(&d->watchdog, on_watchdog, 0, often_ms) == 0);
    uv_unref((uv_handle_t *)&d->watchdog);
}

static int port_file_fault(const struct daemon *d, char *err)
{
    snprintf(err, CONFIG_ERROR_MAX, "--port-file %.200s: cannot be written: %s", d->args.port_file, strerror(errno));
    return -1;
}

static int start(struct daemon *d, char *err)
{
    struct activation passed;
    int port;
    if (server_init(&d->server, &d->loop, &d->config, err) != 0 || activation_take(&passed, &d->config, err) != 0 ||
        monitor_start(&d->monitor, &d->server, err) != 0 || server_listen(&d->server, &passed, &port, err) != 0)
        return -1;
    if (d->args.port_file != NULL && notify_port_file(d->args.port_file, port) != 0) return port_file_fault(d, err);
    notify_systemd("READY=1");
    return 0;
}

static int not_started(const char *err)
{
    char quoted[CONFIG_ERROR_MAX * 2];
    log_error("start", "error=%s", log_quote(err, quoted, sizeof quoted));
    return 1;
}

static int run(struct daemon *d)
{
    char err[CONFIG_ERROR_MAX];
    int status = 0;
    /* before the snapshot is read, and perhaps renamed, and before anybody is let in */
    if (d->args.port_file != NULL && notify_port_file_check(d->args.port_file) != 0) {
        port_file_fault(d, err);
        return not_started(err);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow any more is one that cannot be written */
    int begun = uv_loop_init(&d->loop);
    if (begun != 0) {
        snprintf(err, sizeof err, "no event loop: %s", uv_strerror(begun));
        return not_started(err);
    }
    start_signal(d, &d->term, on_signal, SIGTERM);
    start_signal(d, &d->interrupt, on_signal, SIGINT);
    start_signal(d, &d->hangup, on_hangup, SIGHUP);
    start_watchdog(d);
    still_init(&d->reload, &d->loop, &d->server.dispatch, on_still, d);
    if (start(d, err) != 0) {
        status = not_started(err);
        stop_signals(d); /* there is no world any more that could be drained or changed */
        server_finish(&d->server);
    }
    uv_run(&d->loop, UV_RUN_DEFAULT);
    still_close(&d->reload);
    uv_close((uv_handle_t *)&d->term, NULL);
    uv_close((uv_handle_t *)&d->interrupt, NULL);
    uv_close((uv_handle_t *)&d->hangup, NULL);
    uv_close((uv_handle_t *)&d->watchdog, NULL);
    uv_run(&d->loop, UV_RUN_DEFAULT);
    monitor_clear(&d->monitor);
    uv_run(&d->loop, UV_RUN_DEFAULT); /* what that left to be closed */
    CHECK(uv_loop_close(&d->loop) == 0);
    server_clear(&d->server);
    if (d->server.lost) {
        log_error("exit", "status=1 why=\"the last snapshot could not be written\"");
        status = 1;
    } else if (status == 0) {
        log_info("exit", "status=0");
    }
    return status;
}

/* What is no fault of the configuration: systemd makes the folder at the start (RuntimeDirectory=). */
static void note_folder(const struct config *config)
{
    char path[CONFIG_PATH_MAX];
    snprintf(path, sizeof path, "%s", config->unix_socket);
    const char *folder = dirname(path);
    if (config->unix_socket[0] == '\0' || access(folder, W_OK) == 0) return;
    printf("but for unix_socket = %s: nothing can be made in %s now (%s)\n", config->unix_socket, folder, strerror(errno));
}

int main(int argc, char **argv)
{
    static struct daemon d;
    char err[CONFIG_ERROR_MAX];
    int status = 0;
    activation_hold_standard();
    mallopt(M_MXFAST, 0); /* what is freed is joined to its neighbours at once: else that of 60,000 spaces is at some later moment, in 0.2 s */
    d.argc = argc, d.argv = argv;
    config_init(&d.config);
    if (args_parse(argc, argv, &d.args, &d.config, err) != 0) {
        fprintf(stderr, "aoid: %s\n", err); /* somebody is typing; what happens later goes to the log */
        status = 2;
    } else if (d.args.check_only) {
        struct doors doors;
        status = doors_load(&doors, &d.config, err) == 0 && hold_check(&d.config, err) == 0 ? 0 : 2;
        doors_clear(&doors);
        if (status != 0) fprintf(stderr, "aoid: %s\n", err);
        if (status == 0) puts("the configuration is fine");
        if (status == 0) note_folder(&d.config);
    } else if (d.args.replay != NULL && !d.args.done) {
        log_set_level(LOG_LEVEL_WARN); /* what is replayed was told when it happened */
        status = replay(d.args.replay, d.args.replay_index, stdout);
    } else if (!d.args.done) {
        log_set_level((enum log_level)d.config.log_level);
        status = run(&d);
    }
    config_clear(&d.config);
    return status;
}
