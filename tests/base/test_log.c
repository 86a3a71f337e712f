/* test_log.c: what a log line looks like. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static int pipe_end[2], real_stderr;

static int catch_stderr(void **state)
{
    (void)state;
    real_stderr = dup(STDERR_FILENO);
    return pipe(pipe_end) == 0 && dup2(pipe_end[1], STDERR_FILENO) >= 0 ? 0 : -1;
}

static int release_stderr(void **state)
{
    (void)state;
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    close(pipe_end[0]);
    close(pipe_end[1]);
    log_set_level(LOG_LEVEL_INFO);
    return 0;
}

/* What was written since the last call, as one read. An empty line goes in first, so that there is something to read. */
static const char *caught(void)
{
    static char text[10000];
    assert_int_equal(write(pipe_end[1], "#", 1), 1);
    ssize_t n = read(pipe_end[0], text, sizeof text - 1);
    assert_true(n > 0 && text[n - 1] == '#');
    text[n - 1] = 0;
    return text;
}

static void a_line_has_time_level_event_and_pairs(void **state)
{
    (void)state;
    log_warn("connect", "peer=%s session=%d", "127.0.0.1:9", 7);
    const char *line = caught();
    int year, month, day, hour, minute, second, ms, end = 0;
    sscanf(line, "ts=%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &year, &month, &day, &hour, &minute, &second, &ms, &end);
    assert_int_equal(end, strlen("ts=2026-11-29T21:09:09.123Z "));
    assert_true(year >= 2020 && month >= 1 && month <= 12 && day >= 1 && day <= 31 && hour <= 23 && minute <= 59 && second <= 60);
    assert_string_equal(line + end, "level=warn event=connect peer=127.0.0.1:9 session=7\n");
}

static void an_event_without_pairs_ends_with_its_name(void **state)
{
    (void)state;
    log_error("bad", "%s", "");
    const char *line = caught();
    assert_string_equal(line + strlen(line) - strlen(" event=bad\n"), " event=bad\n");
}

static void lines_below_the_level_are_not_written(void **state)
{
    (void)state;
    log_debug("quiet", "n=%d", 1);
    assert_string_equal(caught(), "");
    log_set_level(LOG_LEVEL_ERROR);
    log_warn("quiet", "n=%d", 1);
    assert_string_equal(caught(), "");
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("loud", "n=%d", 1);
    assert_non_null(strstr(caught(), "level=debug event=loud n=1\n"));
}

static void a_long_line_is_cut_and_still_ends(void **state)
{
    (void)state;
    for (size_t n = 3900; n < 4200; n++) {
        char pairs[4300];
        memset(pairs, 'x', n);
        pairs[n] = 0;
        log_info("long", "%s", pairs);
        const char *line = caught();
        size_t len = strlen(line), head = strlen("ts=2026-11-29T21:09:09.123Z level=info event=long ");
        assert_int_equal(len, head + n + 1 <= 4096 ? head + n + 1 : 4096);
        assert_int_equal(line[len - 1], '\n');
        assert_int_equal(line[len - 2], 'x');
    }
}

static void errno_is_kept(void **state)
{
    (void)state;
    errno = EPIPE;
    log_info("x", "%s", strerror(errno));
    assert_int_equal(errno, EPIPE);
    caught();
}

static void a_pipe_that_nobody_reads_loses_lines_but_never_blocks(void **state)
{
    (void)state;
    char sink[4096], text[3000];
    unsigned long long before = log_dropped();
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (int i = 0; i < 100; i++) log_info("flood", "%s", text); /* a pipe holds 64 KiB */
    unsigned long long lost = log_dropped() - before;
    assert_in_range(lost, 70, 99);
    assert_int_equal(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0); /* others may write there too */
    assert_int_equal(fcntl(pipe_end[0], F_SETFL, O_NONBLOCK), 0);
    while (read(pipe_end[0], sink, sizeof sink) > 0) continue;
    log_info("after", "n=%d", 1);
    char told[64];
    snprintf(told, sizeof told, "event=log_dropped lines=%llu\n", lost);
    const char *line = caught();
    assert_non_null(strstr(line, told));
    assert_non_null(strstr(line, "event=after n=1\n"));
}

static void level_names_are_parsed(void **state)
{
    (void)state;
    assert_int_equal(log_parse_level("error"), LOG_LEVEL_ERROR);
    assert_int_equal(log_parse_level("debug"), LOG_LEVEL_DEBUG);
    assert_int_equal(log_parse_level("Info"), -1);
    assert_int_equal(log_parse_level(""), -1);
}

static void quoted_text_cannot_break_out_of_its_value(void **state)
{
    (void)state;
    char out[100];
    assert_string_equal(log_quote("plain text", out, sizeof out), "\"plain text\"");
    assert_string_equal(log_quote("", out, sizeof out), "\"\"");
    assert_string_equal(log_quote("a\"b\\c\nd\te\rf\x01g\x7f\xc3\xa9", out, sizeof out), "\"a\\\"b\\\\c\\nd\\te\\rf\\x01g\\x7f\\xc3\\xa9\"");
}

static void quoted_text_is_cut_to_fit_but_never_inside_an_escape(void **state)
{
    (void)state;
    const char *text = "a\"b\x02";
    const char *whole = "a\\\"b\\x02";
    for (size_t size = 3; size <= 12; size++) {
        char out[20];
        memset(out, '#', sizeof out);
        log_quote(text, out, size);
        size_t len = strlen(out);
        assert_true(len + 1 <= size && out[size] == '#' && out[0] == '"' && out[len - 1] == '"');
        assert_int_equal(strncmp(out + 1, whole, len - 2), 0);
        assert_true(len == 2 || out[len - 2] != '\\');
        if (size >= strlen(whole) + 3) assert_int_equal(len, strlen(whole) + 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_has_time_level_event_and_pairs, catch_stderr, release_stderr),
        cmocka_unit_test_setup_teardown(an_event_without_pairs_ends_with_its_name, catch_stderr, release_stderr),
        cmocka_unit_test_setup_teardown(lines_below_the_level_are_not_written, catch_stderr, release_stderr),
        cmocka_unit_test_setup_teardown(a_long_line_is_cut_and_still_ends, catch_stderr, release_stderr),
        cmocka_unit_test_setup_teardown(errno_is_kept, catch_stderr, release_stderr),
        cmocka_unit_test_setup_teardown(a_pipe_that_nobody_reads_loses_lines_but_never_blocks, catch_stderr, release_stderr),
        cmocka_unit_test(level_names_are_parsed),
        cmocka_unit_test(quoted_text_cannot_break_out_of_its_value),
        cmocka_unit_test(quoted_text_is_cut_to_fit_but_never_inside_an_escape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
