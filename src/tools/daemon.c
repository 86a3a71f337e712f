/* daemon.c: starts a daemon on a free port in a temporary directory, and stops it. */
#include "tools/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_TIMEOUT_MS 10000
#define MAX_ARGS 128

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}

static int status_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void daemon_forget(struct daemon *d)
{
    char path[sizeof d->dir + 8];
    snprintf(path, sizeof path, "%s/port", d->dir);
    unlink(path);
    unlink(d->log);
    rmdir(d->dir);
    d->dir[0] = '\0';
}

/* The last lines of the log: why a daemon did not start. */
static void log_tail(const struct daemon *d, char *out, size_t size)
{
    out[0] = '\0';
    FILE *f = fopen(d->log, "r");
    if (!f) return;
    if (fseek(f, 0, SEEK_END) == 0) {
        long end = ftell(f), keep = (long)size - 1;
        fseek(f, end > keep ? end - keep : 0, SEEK_SET);
        out[fread(out, 1, size - 1, f)] = '\0';
    }
    fclose(f);
    size_t len = strlen(out);
    while (len && out[len - 1] == '\n') out[--len] = '\0';
}

/* The child: its own log, and an end with its parent, however that ends. */
_Noreturn static void run(const struct daemon *d, const char *path, const char *port_file, const char *const *args, size_t n, pid_t parent)
{
    const char *argv[MAX_ARGS + 8] = {path, "--listen", "127.0.0.1:0", "--port-file", port_file, "--set", "http_listen=none"};
    for (size_t i = 0; i < n; i++) argv[7 + i] = args[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    int log = open(d->log, O_WRONLY | O_CREAT | O_APPEND, 0600), null = open("/dev/null", O_RDONLY);
    if (log < 0 || null < 0) _exit(127);
    dup2(null, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv(path, (char *const *)(const void *)argv);
    dprintf(STDERR_FILENO, "cannot run %s: %s\n", path, strerror(errno));
    _exit(127);
}

/* The port file holds the port, or an address of which the port is the end; it is read once its line is whole. */
static bool read_port(struct daemon *d, const char *port_file)
{
    char line[64] = "";
    FILE *f = fopen(port_file, "r");
    if (!f) return false;
    bool got = fgets(line, sizeof line, f) && strchr(line, '\n');
    fclose(f);
    if (!got) return false;
    const char *colon = strrchr(line, ':');
    long port = strtol(colon ? colon + 1 : line, NULL, 10);
    if (port <= 0 || port > 65535) return false;
    snprintf(d->address, sizeof d->address, "127.0.0.1:%ld", port);
    return true;
}

int daemon_start(struct daemon *d, const char *path, const char *const *args, size_t n, char *error, size_t error_size)
{
    char port_file[sizeof d->dir + 8], tail[400];
    const char *tmp = getenv("TMPDIR");
    *d = (struct daemon){0};
    if (n > MAX_ARGS || snprintf(d->dir, sizeof d->dir, "%s/aoid-XXXXXX", tmp && *tmp ? tmp : "/tmp") >= (int)sizeof d->dir || !mkdtemp(d->dir)) {
        snprintf(error, error_size, "cannot make a temporary directory like %s: %s", d->dir, strerror(errno));
        return -1;
    }
    snprintf(port_file, sizeof port_file, "%s/port", d->dir);
    snprintf(d->log, sizeof d->log, "%s/log", d->dir);
    pid_t parent = getpid();
    d->pid = fork();
    if (d->pid == 0) run(d, path, port_file, args, n, parent);
    if (d->pid < 0) {
        snprintf(error, error_size, "cannot start a process: %s", strerror(errno));
        d->pid = 0;
        daemon_forget(d);
        return -1;
    }
    int ended = -1;
    for (int waited = 0; waited < START_TIMEOUT_MS && ended < 0; waited += 5) {
        if (read_port(d, port_file)) return 0;
        ended = daemon_wait(d, 5);
    }
    log_tail(d, tail, sizeof tail);
    if (ended >= 0)
        snprintf(error, error_size, "%s ended with status %d: %s", path, ended, tail);
    else
        snprintf(error, error_size, "%s does not listen after %d ms: %s", path, START_TIMEOUT_MS, tail);
    daemon_stop(d, 0);
    return -1;
}

int daemon_wait(struct daemon *d, int timeout_ms)
{
    int status;
    for (int waited = 0; d->pid; waited += 5) {
        pid_t got = waitpid(d->pid, &status, WNOHANG);
        if (got == d->pid) {
            d->pid = 0;
            return status_of(status);
        }
        if (got < 0 || waited >= timeout_ms) return -1;
        sleep_ms(5);
    }
    return -1;
}

int daemon_stop(struct daemon *d, int timeout_ms)
{
    int status = 0;
    if (d->pid) {
        kill(d->pid, SIGTERM);
        status = daemon_wait(d, timeout_ms);
        if (status < 0) {
            kill(d->pid, SIGKILL);
            status = daemon_wait(d, 10000);
        }
    }
    if (d->dir[0]) daemon_forget(d);
    return status;
}

double daemon_cpu_seconds(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* What stands behind the key in a file of /proc/PID; 0 if it cannot be read. */
static uint64_t proc_number(pid_t pid, const char *file, const char *key)
{
    char path[64], line[256];
    uint64_t number = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0) number = strtoull(line + strlen(key), NULL, 10);
    fclose(f);
    return number;
}

void daemon_writes(pid_t pid, uint64_t *calls, uint64_t *bytes)
{
    *calls = proc_number(pid, "io", "syscw:");
    *bytes = proc_number(pid, "io", "wchar:");
}

size_t daemon_memory_bytes(pid_t pid)
{
    return proc_number(pid, "status", "VmRSS:") * 1024;
}

size_t daemon_memory_peak_bytes(pid_t pid)
{
    return proc_number(pid, "status", "VmHWM:") * 1024;
}
