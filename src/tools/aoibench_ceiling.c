/* aoibench_ceiling.c: the yardstick of the network: what it takes to send as many ready bytes, and nothing else. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/aoibench.h"

#define READ_BYTES ((size_t)1 << 18) /* like the client's */
#define CONNECTIONS_MAX 1000

void aoibench_pin(pid_t pid, int n)
{
    cpu_set_t all, one;
    memset(&all, 0xff, sizeof all); /* the kernel leaves those that it may have */
    CPU_ZERO(&one);
    if (sched_setaffinity(pid, sizeof all, &all) != 0 || sched_getaffinity(pid, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && n-- == 0) CPU_SET(cpu, &one);
    sched_setaffinity(pid, sizeof one, &one);
}

void aoibench_pin_both(pid_t daemon)
{
    if (daemon > 0) aoibench_pin(daemon, 0);
    aoibench_pin(0, 1);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double aoibench_median(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, ascending);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The sender: a process of its own, so that its processor time is its alone. Writes the seconds to `result`. */
static _Noreturn void send_all(int listener, int result, uint64_t bytes, size_t ready, size_t write_bytes, uint32_t connections)
{
    int fds[CONNECTIONS_MAX], one = 1;
    struct timespec t;
    CHECK(connections > 0 && connections <= CONNECTIONS_MAX);
    for (uint32_t i = 0; i < connections; i++) {
        fds[i] = accept(listener, NULL, NULL);
        if (fds[i] < 0 || setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0) _exit(1);
    }
    size_t from = 0;
    if (ready < write_bytes) ready = write_bytes;
    char *data = mem_alloc(ready);
    memset(data, 1, ready);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    double began = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
    for (uint64_t sent = 0, turn = 0; sent < bytes; sent += write_bytes, turn++) {
        for (size_t done = 0; done < write_bytes;) {
            ssize_t n = write(fds[turn % connections], data + from + done, write_bytes - done);
            if (n < 0) _exit(1);
            done += (size_t)n;
        }
        from += write_bytes;
        if (from + write_bytes > ready) from = 0;
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    double took = (double)t.tv_sec + (double)t.tv_nsec * 1e-9 - began;
    _exit(write(result, &took, sizeof took) != sizeof took);
}

/* Reads until all have ended. */
static void receive_all(struct pollfd *fds, uint32_t connections)
{
    char *data = mem_alloc(READ_BYTES);
    for (uint32_t open = connections; open > 0;) {
        if (poll(fds, connections, -1) < 0 && errno != EINTR) break;
        for (uint32_t i = 0; i < connections; i++) {
            if (!fds[i].revents || recv(fds[i].fd, data, READ_BYTES, 0) > 0) continue;
            close(fds[i].fd);
            fds[i].fd = -1;
            open--;
        }
    }
    free(data);
}

double aoibench_ceiling(uint64_t bytes, size_t ready_bytes, size_t write_bytes, uint32_t connections, bool pin)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    struct pollfd fds[CONNECTIONS_MAX];
    int listener = socket(AF_INET, SOCK_STREAM, 0), result[2];
    double took = -1;
    if (listener < 0 || pipe(result) != 0) return -1;
    if (bind(listener, (struct sockaddr *)&address, len) != 0 || listen(listener, CONNECTIONS_MAX) != 0) return -1;
    if (getsockname(listener, (struct sockaddr *)&address, &len) != 0) return -1;
    pid_t sender = fork();
    if (sender == 0) {
        if (pin) aoibench_pin(0, 0);
        send_all(listener, result[1], bytes, ready_bytes, write_bytes, connections);
    }
    close(result[1]);
    for (uint32_t i = 0; i < connections && sender > 0; i++) {
        fds[i] = (struct pollfd){.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN};
        if (connect(fds[i].fd, (struct sockaddr *)&address, len) != 0) return -1;
    }
    if (sender > 0) receive_all(fds, connections);
    if (sender > 0 && read(result[0], &took, sizeof took) != sizeof took) took = -1;
    if (sender > 0) waitpid(sender, NULL, 0);
    close(result[0]);
    close(listener);
    return took;
}

int aoibench_run_ceiling(struct aoibench_options *o, pid_t daemon, char *error, size_t error_size)
{
    (void)daemon;
    uint64_t bytes = (uint64_t)(o->seconds * 4e9); /* about so long */
    double *ns = mem_alloc(o->rounds * sizeof *ns);
    if (o->pin) aoibench_pin(0, 1);
    for (uint32_t i = 0; i < o->rounds; i++) {
        double took = aoibench_ceiling(bytes / o->rounds, o->ready, o->write, o->connections, o->pin);
        if (took < 0) {
            snprintf(error, error_size, "cannot send to myself: %s", strerror(errno));
            free(ns);
            return -1;
        }
        ns[i] = took * 1e9 * AOIBENCH_UPDATE_BYTES / ((double)bytes / o->rounds);
    }
    const struct aoibench_figure figures[] = {
        {"connections", o->connections, 0, false},
        {"ready_bytes", o->ready, 0, false},
        {"write_bytes", o->write, 0, false},
        {"ceiling_ns_per_update", aoibench_median(ns, o->rounds), 3, false},
    };
    aoibench_print(o->json, figures, sizeof figures / sizeof *figures, NULL);
    free(ns);
    return 0;
}
