/* log.c: one logfmt line an event, to stderr. */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

#define LINE_MAX_BYTES 4096 /* PIPE_BUF: a write of so many to a pipe is atomic */

static const char *const level_name[] = {"error", "warn", "info", "debug"};
#define LEVELS ((int)(sizeof level_name / sizeof *level_name))

static enum log_level threshold = LOG_LEVEL_INFO;
static unsigned long long dropped, dropped_told; /* statistics; what a later line has told of them */

void log_set_level(enum log_level level)
{
    threshold = level;
}

int log_parse_level(const char *name)
{
    for (int i = 0; i < LEVELS; i++)
        if (strcmp(name, level_name[i]) == 0) return i;
    return -1;
}

/* ts=... level=... event=..., the only place outside the server that looks at a clock. */
static size_t put_head(char *line, size_t size, enum log_level level, const char *event)
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t n = strftime(line, size, "ts=%Y-%m-%dT%H:%M:%S", &utc);
    int more = snprintf(line + n, size - n, ".%03ldZ level=%s event=%.64s", now.tv_nsec / 1000000, level_name[level], event);
    return n + (size_t)more;
}

/* A line that could not be written at once is lost: who does not read our log must not stop us. The descriptor is not made non-blocking for this, because the
 * terminal or pipe behind it is others' too. Where poll() says that there is room, there is for PIPE_BUF bytes. */
static bool put_line(const char *line, size_t n)
{
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&room, 1, 0) <= 0) return false;
    ssize_t wrote;
    do wrote = write(STDERR_FILENO, line, n);
    while (wrote < 0 && errno == EINTR);
    return wrote >= 0;
}

static void tell_dropped(void)
{
    char line[160];
    if (dropped == dropped_told) return;
    size_t n = put_head(line, sizeof line, LOG_LEVEL_WARN, "log_dropped");
    n += (size_t)snprintf(line + n, sizeof line - n, " lines=%llu\n", dropped - dropped_told);
    if (put_line(line, n)) dropped_told = dropped;
}

unsigned long long log_dropped(void)
{
    return dropped;
}

void log_write(enum log_level level, const char *event, const char *fmt, ...)
{
    if (level > threshold) return;
    int saved_errno = errno;
    char line[LINE_MAX_BYTES];
    size_t n = put_head(line, sizeof line, level, event);
    size_t room = sizeof line - n - 2; /* beside the blank and the end of line; vsnprintf's 0 gives way to the latter */
    va_list args;
    va_start(args, fmt);
    int more = vsnprintf(line + n + 1, room + 1, fmt, args);
    va_end(args);
    if (more > 0) {
        line[n] = ' ';
        n += 1 + ((size_t)more < room ? (size_t)more : room);
    }
    line[n++] = '\n';
    tell_dropped();
    if (!put_line(line, n)) dropped++;
    errno = saved_errno;
}

const char *log_quote(const char *text, char *out, unsigned long out_size)
{
    CHECK(out_size >= 3);
    static const char plain[] = "\"\\\n\t\r", letter[] = "\"\\ntr";
    char *p = out, *end = out + out_size - 2; /* room for the last quote and the 0 */
    *p++ = '"';
    for (; *text != 0; text++) {
        char escaped[5] = {*text, 0};
        const char *special = strchr(plain, *text);
        if (special != NULL)
            snprintf(escaped, sizeof escaped, "\\%c", letter[special - plain]);
        else if (*text < ' ' || *text > '~')
            snprintf(escaped, sizeof escaped, "\\x%02x", (unsigned char)*text);
        size_t n = strlen(escaped);
        if (n > (size_t)(end - p)) break;
        memcpy(p, escaped, n);
        p += n;
    }
    *p++ = '"';
    *p = 0;
    return out;
}
