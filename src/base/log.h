/* log.h: one logfmt line an event, to stderr: ts=2026-11-29T21:09:09.123Z level=info event=listening address=127.0.0.1:2643 */
#ifndef AOI_BASE_LOG_H
#define AOI_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Process-wide threshold, the one global of base; LOG_LEVEL_INFO at first. */
void log_set_level(enum log_level level);
/* "error", "warn", "info", "debug" -> level; -1: none of these. */
int log_parse_level(const char *name);

/* fmt gives the pairs behind event=, e.g. log_info("connect", "peer=%s session=%llu", peer, s). Quote free text with log_quote(). A line goes out in one
 * write(2) of at most 4096 bytes (a longer one is cut), so that lines of several processes do not mix in a pipe. errno is kept. */
void log_write(enum log_level level, const char *event, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#define log_error(event, ...) log_write(LOG_LEVEL_ERROR, event, __VA_ARGS__)
#define log_warn(event, ...) log_write(LOG_LEVEL_WARN, event, __VA_ARGS__)
#define log_info(event, ...) log_write(LOG_LEVEL_INFO, event, __VA_ARGS__)
#define log_debug(event, ...) log_write(LOG_LEVEL_DEBUG, event, __VA_ARGS__)

/* Lines that could not be written, because standard error is a pipe that nobody reads, or closed. */
unsigned long long log_dropped(void);

/* text as a quoted logfmt value: quotes and backslashes escaped, all but printable ASCII as \n, \t, \r or \xNN, cut to fit (never inside an escape);
 * returns out. out_size is at least 3. For what a peer sent. */
const char *log_quote(const char *text, char *out, unsigned long out_size);

#endif
