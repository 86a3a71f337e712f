/* snapshot.c: when the world and the sessions are written to a file, and how they come back.
 *
 * While the daemon runs a child writes: fork() gives it the world as it is at one moment, for the price of the page tables, and whatever it allocates ends with it.
 */
#include "server/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "server/reload.h"
#include "server/snapshot_file.h"

#define NS_PER_MS 1000000u
#define OLD_SUFFIX ".old"

static bool is_on(const struct config *config)
{
    return config->snapshot[0] != '\0';
}

/* ------------------------------------------------------------------------------------------------------------- the beginning */

/* One that cannot be written shows at the start, not at the end. */
static int check_writable(const char *path, char *err)
{
    char fresh[CONFIG_PATH_MAX + sizeof SNAPSHOT_FILE_SUFFIX];
    snprintf(fresh, sizeof fresh, "%s" SNAPSHOT_FILE_SUFFIX, path);
    unlink(fresh);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        snprintf(err, CONFIG_ERROR_MAX, "snapshot = %.200s: %.200s cannot be written: %s", path, fresh, strerror(errno));
        return -1;
    }
    close(fd);
    unlink(fresh);
    return 0;
}

/* The settings of now, of a space of the configuration. */
static bool configured(void *ctx, uint64_t space, struct aoi_settings *settings)
{
    const struct snapshot_loading *how = ctx;
    const struct config_space *configured = config_space_of(how->config, space);
    if (configured == NULL) return false;
    if (!reload_same_settings(settings, &configured->settings))
        log_info("snapshot", "space=%llu settings=configuration why=\"they differ from those in the snapshot\"", (unsigned long long)space);
    *settings = configured->settings;
    return true;
}

static int set_aside(const char *path, const char *why, char *err)
{
    char bad[CONFIG_PATH_MAX + 40], stamp[24], quoted[2 * SNAPSHOT_FILE_WHY];
    struct tm tm;
    time_t now = time(NULL);
    gmtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &tm);
    snprintf(bad, sizeof bad, "%s.bad-%s", path, stamp);
    for (int n = 2; access(bad, F_OK) == 0; n++) snprintf(bad, sizeof bad, "%s.bad-%s-%d", path, stamp, n); /* another one of this second */
    if (rename(path, bad) != 0) {
        snprintf(err, CONFIG_ERROR_MAX, "snapshot = %.200s: %.100s; and it cannot be renamed: %s", path, why, strerror(errno));
        return -1;
    }
    log_error("snapshot", "file=%s refused=%s renamed=%s why=\"the daemon starts with nothing\"", path, log_quote(why, quoted, sizeof quoted), bad);
    return 0;
}

static void log_loaded(const char *path, const struct sessions *sessions, const struct aoi_world *world, const struct snapshot_loading *how)
{
    struct aoi_stats stats = {0};
    uint64_t id = 0, spaces = 0;
    for (const struct aoi_space *space; (space = aoi_space_next(world, id)) != NULL; id = aoi_space_id(space), spaces++)
        aoi_space_stats(space, &stats);
    log_info("snapshot", "file=%s result=loaded age_s=%llu sessions=%u spaces=%llu entities=%llu players=%llu ms=%llu", path,
             (unsigned long long)(how->now_us > how->saved_us ? (how->now_us - how->saved_us) / 1000000 : 0), sessions->by_id.n,
             (unsigned long long)spaces, (unsigned long long)stats.entities, (unsigned long long)stats.players,
             (unsigned long long)(flusher_now_ms() - how->now_ms));
}

/* Sets *bytes to NULL where there is no file. */
static int map(const char *path, const void **bytes, size_t *len, char *err)
{
    struct stat status;
    *bytes = NULL;
    *len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return 0;
    bool fine = fd >= 0 && fstat(fd, &status) == 0;
    if (fine && S_ISREG(status.st_mode) && status.st_size > 0) {
        *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0); /* the page cache gives back what memory is needed for */
        *len = (size_t)status.st_size;
    } else if (fine) {
        *bytes = ""; /* which is no snapshot */
    }
    if (!fine || *bytes == MAP_FAILED) snprintf(err, CONFIG_ERROR_MAX, "snapshot = %.300s: cannot be read: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return fine && *bytes != MAP_FAILED ? 0 : -1;
}

int snapshot_load(const struct config *config, struct sessions *sessions, const struct aoi_sink *sink, struct aoi_world **world, char *err)
{
    char why[SNAPSHOT_FILE_WHY];
    const char *path = config->snapshot;
    const void *bytes;
    size_t len;
    *world = NULL;
    if (!is_on(config)) return 0;
    if (check_writable(path, err) != 0 || map(path, &bytes, &len, err) != 0) return -1;
    if (bytes == NULL) {
        log_info("snapshot", "file=%s result=none why=\"there is no such file yet; the daemon starts with nothing\"", path);
        return 0;
    }
    const struct aoi_limits limits = config_limits(config);
    struct snapshot_loading how = {
        .limits = &limits, .sink = sink, .now_ms = flusher_now_ms(), .now_us = flusher_time_us(), .settings = configured, .config = config};
    *world = snapshot_file_read(bytes, len, sessions, &how, why);
    if (len > 0) munmap((void *)(uintptr_t)bytes, len);
    if (*world == NULL) {
        sessions->metrics->snapshots_refused++;
        return set_aside(path, why, err);
    }
    log_loaded(path, sessions, *world, &how);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------- the child */

static void print_time(char text[24], time_t time)
{
    struct tm tm;
    gmtime_r(&time, &tm);
    strftime(text, 24, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* With what would come back in its place; last: the daemon ends. */
static void log_failed(const struct snapshot *snapshot, const char *error, bool last)
{
    const char *path = snapshot->config->snapshot;
    char when[24], why[128];
    struct stat before;
    if (stat(path, &before) != 0) {
        snprintf(why, sizeof why, "%s", last ? "what this daemon held is lost" : "there is no earlier one: a crash would lose everything");
    } else {
        print_time(when, before.st_mtime);
        snprintf(why, sizeof why, last ? "what this daemon held is lost, but for what stands in the one of %s" : "the one of %s stays", when);
    }
    log_error("snapshot", "file=%s result=failed error=\"%s\" why=\"%s\"", path, error, why);
}

static void log_child(const struct snapshot *snapshot, int status)
{
    struct metrics *metrics = snapshot->sessions->metrics;
    const char *path = snapshot->config->snapshot;
    char error[128];
    unsigned long long ms = (uv_hrtime() - snapshot->began_ns) / NS_PER_MS;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        struct stat written = {0};
        stat(path, &written);
        log_info("snapshot", "file=%s result=written sessions=%u bytes=%llu ms=%llu stall_us=%llu", path, snapshot->session_n,
                 (unsigned long long)written.st_size, ms, (unsigned long long)snapshot->stall_ns / 1000);
        metrics->snapshots++;
        metrics->snapshot_seconds = (double)flusher_time_us() / 1e6;
        return;
    }
    metrics->snapshots_failed++;
    if (WIFEXITED(status))
        snprintf(error, sizeof error, "%s", strerror(WEXITSTATUS(status)));
    else
        snprintf(error, sizeof error, "its process was ended by signal %d", WTERMSIG(status));
    log_failed(snapshot, error, false);
}

static void on_child(uv_signal_t *handle, int number)
{
    struct snapshot *snapshot = handle->data;
    int status;
    (void)number;
    if (snapshot->writer == 0 || waitpid(snapshot->writer, &status, WNOHANG) != snapshot->writer) return;
    snapshot->writer = 0;
    log_child(snapshot, status);
}

/* In the child, where every signal is blocked: it has nothing to do with the loop, its sockets and whoever sends us signals, and ends with the daemon. Its status is an errno. */
static _Noreturn void write_and_exit(const struct snapshot *snapshot, pid_t parent)
{
    uint64_t len;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(ESRCH);
    setpriority(PRIO_PROCESS, 0, 10); /* the daemon goes first, where we may say so */
    if (close_range(3, ~0u, 0) != 0)
        for (int fd = 3, most = (int)sysconf(_SC_OPEN_MAX); fd < most; fd++) close(fd);
    _exit(snapshot_file_write(snapshot->config->snapshot, snapshot->sessions, snapshot->sessions->world, flusher_now_ms(), &len));
}

static void begin_child(void *ctx)
{
    struct snapshot *snapshot = ctx;
    sigset_t all, before;
    pid_t self = getpid();
    sigfillset(&all);
    CHECK(sigprocmask(SIG_SETMASK, &all, &before) == 0);
    snapshot->began_ns = uv_hrtime();
    pid_t child = fork();
    int error = errno;
    char text[128];
    if (child == 0) write_and_exit(snapshot, self);
    snapshot->stall_ns = uv_hrtime() - snapshot->began_ns;
    CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
    if (child < 0) {
        snapshot->sessions->metrics->snapshots_failed++;
        snprintf(text, sizeof text, "fork: %s", strerror(error));
        log_failed(snapshot, text, false);
        return;
    }
    snapshot->writer = child;
    snapshot->session_n = snapshot->sessions->by_id.n;
}

static void on_timer(uv_timer_t *timer)
{
    struct snapshot *snapshot = timer->data;
    if (snapshot->writer != 0) {
        log_warn("snapshot", "file=%s result=skipped why=\"the last one is still being written: snapshot_s is too short\"",
                 snapshot->config->snapshot);
        return;
    }
    still_want(&snapshot->still);
}

/* ------------------------------------------------------------------------------------------------------------- the rest */

void snapshot_init(struct snapshot *snapshot, uv_loop_t *loop, const struct config *config, struct sessions *sessions, struct dispatch *dispatch)
{
    *snapshot = (struct snapshot){.config = config, .sessions = sessions};
    still_init(&snapshot->still, loop, dispatch, begin_child, snapshot); /* what is half done is not what comes back */
    CHECK(uv_timer_init(loop, &snapshot->timer) == 0 && uv_signal_init(loop, &snapshot->child) == 0);
    snapshot->timer.data = snapshot->child.data = snapshot;
}

void snapshot_begin(struct snapshot *snapshot)
{
    const struct config *config = snapshot->config;
    char old[CONFIG_PATH_MAX + sizeof OLD_SUFFIX];
    if (!is_on(config)) return;
    if (config->snapshot_s > 0) {
        CHECK(uv_signal_start(&snapshot->child, on_child, SIGCHLD) == 0);
        CHECK(uv_timer_start(&snapshot->timer, on_timer, (uint64_t)config->snapshot_s * 1000, (uint64_t)config->snapshot_s * 1000) == 0);
        return;
    }
    snprintf(old, sizeof old, "%s" OLD_SUFFIX, config->snapshot);
    if (rename(config->snapshot, old) == 0)
        log_info("snapshot", "renamed=%s to=%s why=\"after a crash nothing so old comes back; snapshot_s would write it now and then\"",
                 config->snapshot, old);
    else if (errno != ENOENT)
        log_warn("snapshot", "file=%s error=\"%s\" why=\"it cannot be renamed; after a crash it would be loaded once more\"", config->snapshot,
                 strerror(errno));
}

void snapshot_stop(struct snapshot *snapshot)
{
    uv_timer_stop(&snapshot->timer);
    still_stop(&snapshot->still);
    uv_signal_stop(&snapshot->child);
    if (snapshot->writer == 0) return;
    kill(snapshot->writer, SIGKILL); /* what it writes is older than what is about to be, and must not replace it */
    while (waitpid(snapshot->writer, NULL, 0) < 0 && errno == EINTR) continue;
    snapshot->writer = 0;
}

bool snapshot_last(struct snapshot *snapshot)
{
    uint64_t began_ns = uv_hrtime(), len = 0;
    const char *path = snapshot->config->snapshot;
    snapshot_stop(snapshot);
    if (!is_on(snapshot->config)) return true;
    int error = snapshot_file_write(path, snapshot->sessions, snapshot->sessions->world, flusher_now_ms(), &len);
    if (error == 0)
        log_info("snapshot", "file=%s result=written sessions=%u bytes=%llu ms=%llu", path, snapshot->sessions->by_id.n, (unsigned long long)len,
                 (unsigned long long)(uv_hrtime() - began_ns) / NS_PER_MS);
    else
        log_failed(snapshot, strerror(error), true);
    return error == 0;
}

void snapshot_close(struct snapshot *snapshot)
{
    snapshot_stop(snapshot);
    still_close(&snapshot->still);
    uv_close((uv_handle_t *)&snapshot->timer, NULL);
    uv_close((uv_handle_t *)&snapshot->child, NULL);
}
