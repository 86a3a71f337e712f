/* test_tools.c: aoictl and aoibench as a user runs them, and what the tools share. */
#include "harness.h"

#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/version.h"
#include "tools/histogram.h"
#include "tools/trace.h"

static struct rig rig;
static char output[65536];

static int setup(void **state)
{
    (void)state;
    rig_start(&rig, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rig_stop(&rig);
    return 0;
}

/* Runs a program that lies beside the daemon, through the shell; its output and complaints are in output[]. Returns its exit status. */
static int run(const char *before, const char *program, const char *arguments)
{
    char command[2048], directory[512];
    const char *path = getenv("AOID");
    snprintf(directory, sizeof directory, "%s", path ? path : "build/aoid");
    char *slash = strrchr(directory, '/');
    assert_non_null(slash);
    *slash = '\0';
    snprintf(command, sizeof command, "%s timeout 60 %s/%s %s 2>&1", before, directory, program, arguments);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    output[fread(output, 1, sizeof output - 1, f)] = '\0';
    int status = pclose(f);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int aoictl(const char *before, const char *arguments)
{
    char all[1024];
    snprintf(all, sizeof all, "--address %s %s", rig.daemon.address, arguments);
    return run(before, "aoictl", all);
}

static void expect_output(const char *text)
{
    if (!strstr(output, text)) fail_msg("\"%s\" does not say \"%s\"", output, text);
}

static void a_first_conversation_with_aoictl(void **state)
{
    (void)state;
    assert_int_equal(aoictl("", "ping"), 0);
    expect_output("pong from aoid ");
    assert_int_equal(aoictl("", "create 1 shape=sphere index=crosslist bounds=-100,-100,100,100"), 0);
    assert_int_equal(aoictl("", "spaces"), 0);
    expect_output("crosslist sphere");
    assert_int_equal(aoictl("", "add 1 42 3,4"), 0);
    expect_output("gone again with this connection; --hold keeps it");
    assert_int_equal(aoictl("", "query 1 box -5,-5,5,5"), 0);
    assert_string_equal(output, "0 entities\n");
    assert_int_equal(
        aoictl(
            "printf '%s\\n' '# a comment' 'add 1 42 3,4 radius=5 payload=\"a b\"' '' 'move 1 42 -3,4' 'query 1 radius 0,0 5' 'query 1 entity 42' |",
            "-"),
        0);
    expect_output("42 -3 4\n");
    expect_output("payload     3 bytes \"a b\"\n");
    expect_output("position    -3 4\n"); /* no z in 2D */
    assert_int_equal(aoictl("", "stats 1"), 0);
    expect_output("entities     0\n");
    assert_null(strstr(output, "connections"));
    assert_int_equal(aoictl("", "stats"), 0);
    expect_output("connections  1\n");
    assert_int_equal(aoictl("", "destroy 1"), 0);
}

static void spaces_shows_what_is_not_at_its_default_as_create_takes_it(void **state)
{
    (void)state;
    static const struct {
        const char *columns, *rest;
    } cases[] = {
        {"", ""},
        {"shape=cells cell_size=10 flush_ms=0", " cell_range=2 bounds=-100,-50.5,100,1000000 extra=yes leave_margin=2.5 min_stay_ms=300 max_view=7 "
                                                "max_enter_per_flush=3 update_tiers=\"15:1 *:4\""},
        {"dimensions=3 index=crosslist shape=sphere", " bounds=-1,-2,-3,1,2,3.25"},
    };
    char arguments[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(arguments, sizeof arguments, "create 1 %s%s", cases[i].columns, cases[i].rest);
        assert_int_equal(aoictl("", arguments), 0);
        assert_int_equal(aoictl("", "spaces"), 0);
        const char *told = strstr(output, "nobody, persistent");
        assert_non_null(told);
        told += strlen("nobody, persistent");
        assert_int_equal(strlen(told), strlen(cases[i].rest) + 1);
        assert_memory_equal(told, cases[i].rest, strlen(cases[i].rest));
        /* the same settings, for else it were refused */
        snprintf(arguments, sizeof arguments, "create 1 if_absent=yes %s%.*s", cases[i].columns, (int)strlen(cases[i].rest), told);
        assert_int_equal(aoictl("", arguments), 0);
        assert_int_equal(aoictl("", "destroy 1"), 0);
    }
}

static void move_in_3d_needs_all_coordinates(void **state)
{
    (void)state;
    assert_int_equal(aoictl("printf '%s\\n' 'create 1 dimensions=3' 'add 1 9 1,2,3' 'move 1 9 4,5' |", "-"), 1);
    expect_output("line 3: INVALID_ARGUMENT: columns of different lengths: 1 ids, 1 x, 1 y, 0 z, 0 extra; in a 3D space z is needed");
    assert_int_equal(aoictl("printf '%s\\n' 'create 2 dimensions=3' 'add 2 9 1,2,3' 'move 2 9 4,5,6' 'query 2 entity 9' |", "-"), 0);
    expect_output("4 5 6");
}

static void watch_prints_one_line_an_item(void **state)
{
    (void)state;
    struct client *mover = rig_client(&rig);
    libaoi_create_space(mover->c, 1, &(struct libaoi_settings){.flush_ms = 5, .extra = true}, false);
    add(mover, 1, 42, 0, 0, 10);
    libaoi_add(mover->c, 1, LIBAOI_ADD_NEW, &(struct libaoi_entity){.id = 7, .pos = {1.5f, 2}, .extra = 3, .payload = "hi\n", .payload_len = 3});
    client_ok(mover);
    assert_int_equal(aoictl("", "watch 1 --unit 42 --count 1"), 0);
    expect_output("watching space 1 as player ");
    expect_output(" delta 1\nenter 7 1.5 2 extra=3 payload=\"hi\\x0a\"\n");
    assert_int_equal(aoictl("", "watch 1 --box=0,0,9,9 --count=2"), 0);
    expect_output("enter 42 0 0 extra=0\n");
    assert_int_equal(aoictl("", "watch 1 --unit 8"), 1);
    expect_output("UNKNOWN_ENTITY");
}

static void watch_keeps_its_connection_though_nothing_comes(void **state)
{
    (void)state;
    struct rig quick;
    rig_start(&quick, (const char *[]){"idle_timeout_ms=600", NULL});
    char arguments[256];
    snprintf(arguments, sizeof arguments, "--address %s create 1", quick.daemon.address);
    assert_int_equal(run("", "aoictl", arguments), 0);
    snprintf(arguments, sizeof arguments, "--address %s watch 1 --box 0,0,1,1 --for 2", quick.daemon.address);
    assert_int_equal(run("", "aoictl", arguments), 0);
    rig_stop(&quick);
}

static void every_complaint_says_what_to_do(void **state)
{
    (void)state;
    assert_int_equal(run("", "aoictl", "--address 127.0.0.1:1 ping"), 1);
    expect_output("Is aoid running there? Start it with: aoid --listen 127.0.0.1:1");
    assert_int_equal(run("", "aoictl", "--address 127.0.0.1:99999 ping"), 1);
    expect_output("aoictl: cannot connect to \"127.0.0.1:99999\": a port is a number from 1 to 65535");
    assert_int_equal(aoictl("", "fly"), 2);
    expect_output("aoictl --help lists them");
    assert_int_equal(aoictl("", "add 9 1 0,0"), 1);
    expect_output("make it: aoictl create SPACE");
    assert_int_equal(aoictl("", "add 9 1 0"), 2);
    expect_output("write X,Y or X,Y,Z");
    assert_int_equal(aoictl("", "query 9 box 0,0,1"), 2);
    expect_output("for example 0,0,100,50");
    assert_int_equal(aoictl("", "create 1 color=red"), 2);
    expect_output("unknown setting \"color=red\"; they are dimensions");
    assert_int_equal(aoictl("printf '%s\\n' 'create 2' 'create 2' |", "-"), 1);
    expect_output("line 2: DUPLICATE_SPACE (2): the space exists already; with if_absent");
    struct rig configured;
    char arguments[256];
    rig_start(&configured, (const char *[]){"space.3.flush_ms=20", NULL});
    snprintf(arguments, sizeof arguments, "--address %s destroy 3", configured.daemon.address);
    assert_int_equal(run("", "aoictl", arguments), 1);
    assert_string_equal(output, "aoictl: NOT_OWNER (3): a space of the configuration cannot be destroyed\n");
    rig_stop(&configured);
    assert_int_equal(aoictl("", "set 1 2 extra=3"), 2);
    expect_output("unknown field \"extra=3\"; they are radius, layers, appeal, priority, payload (extra goes with move)");
    assert_int_equal(aoictl("", "replay x --speed 2 --steps-per-second 3"), 2);
    expect_output("give one of them");
    assert_int_equal(run("", "aoictl", "--help"), 0);
    expect_output("Examples:");
    expect_output("HOST alone means port 2643, :PORT alone 127.0.0.1");
    assert_int_equal(run("", "aoictl", ""), 2);
    assert_int_equal(run("", "aoictl", "--version"), 0);
    expect_output("aoictl " AOID_VERSION "\n");
    assert_int_equal(run("", "aoibench", "--version"), 0);
    expect_output("aoibench " AOID_VERSION "\n");
}

static void a_number_is_a_finite_one(void **state)
{
    (void)state;
    static const char *const arguments[] = {"sleep nan", "sleep inf", "watch 1 --box 0,0,1,1 --for nan"};
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        assert_int_equal(aoictl("", arguments[i]), 2);
        expect_output("is no number\n");
    }
}

/* One sentence each, of what is wrong and of nothing else. */
static void a_wrong_option_in_front_of_the_verb_is_told_in_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *arguments, *says;
    } cases[] = {
        {"--timeout x ping", "aoictl: timeout \"x\" is no whole number\n"},
        {"--timeout", "aoictl: --timeout needs a value behind it; aoictl --help says of what kind\n"},
        {"--hold=3 ping", "aoictl: --hold=3: --hold takes no value\n"},
        {"--no-such-option ping",
         "aoictl: there is no option --no-such-option in front of a verb; options of a verb stand behind it; aoictl --help lists "
         "them\n"},
        {"--count 3 watch 1", "aoictl: there is no option --count in front of a verb; options of a verb stand behind it; aoictl --help lists them\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run("", "aoictl", cases[i].arguments), 2);
        assert_string_equal(output, cases[i].says);
    }
}

static void a_limit_is_looked_for_in_the_configuration_only_where_it_stands_there(void **state)
{
    (void)state;
    static const char hint[] = "; see the [limits] of the daemon's configuration\n";
    static const char *const fixed[] = {"create 1 max_view=99999", "player 2 7 box=0,0,1,1 max_view=99999", "create 1 cell_range=99",
                                        "create 1 flush_ms=999999999"};
    struct rig tight;
    char arguments[256];
    rig_start(&tight, (const char *[]){"space.2.flush_ms=20", "max_entities=1", "max_radius=5", "query_page=3", NULL});
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        snprintf(arguments, sizeof arguments, "--address %s %s", tight.daemon.address, fixed[i]);
        assert_int_equal(run("", "aoictl", arguments), 1);
        expect_output("at most");
        if (strstr(output, "[limits]")) fail_msg("%s: %s", fixed[i], output);
    }
    snprintf(arguments, sizeof arguments, "--address %s -", tight.daemon.address);
    assert_int_equal(run("printf '%s\n' 'add 2 1 0,0' 'add 2 2 0,0' |", "aoictl", arguments), 1);
    expect_output("max_entities = 1 entities already");
    expect_output(hint);
    assert_int_equal(run("echo 'add 2 1 0,0 radius=6' |", "aoictl", arguments), 1);
    expect_output("over max_radius = 5");
    expect_output(hint);
    assert_int_equal(run("echo 'query 2 nearest 0,0 4' |", "aoictl", arguments), 1);
    expect_output("over query_page = 3");
    expect_output(hint);
    rig_stop(&tight);
}

/* What is read is what `2>&1` makes of it, which would stand behind the `#`. */
static void output_that_goes_nowhere_is_told_and_never_to_the_daemon(void **state)
{
    (void)state;
    assert_int_equal(aoictl("", "spaces 2>&1 >/dev/full #"), 1);
    expect_output("aoictl: standard output cannot be written: No space left on device");
    assert_int_equal(run("", "aoibench", "ceiling --seconds 0.05 2>&1 >/dev/full #"), 1);
    expect_output("aoibench: standard output cannot be written: No space left on device");
    assert_int_equal(aoictl("", "create 1"), 0);
    assert_int_equal(aoictl("", "stats 1 0<&- 1>&- #"), 0); /* nor from it */
    assert_int_equal(aoictl("", "- 0<&-"), 0);
}

static void a_line_without_end_is_no_trace(void **state)
{
    (void)state;
    assert_int_equal(aoictl("", "replay /dev/zero"), 1);
    expect_output("a line is too long");
}

static void replay_drives_a_trace_that_is_packed_or_not(void **state)
{
    (void)state;
    static const char trace[] = "t,id,x,y\n10,1,0,0\n10,2,5,5\n11,1,1,0\n11,3,7,7\n12,3,8,8\n";
    char path[256], arguments[512];
    uint8_t packed[1024];
    size_t n = 0;
    for (int xz = 0; xz < 2; xz++) {
        snprintf(path, sizeof path, "%s/../aoid-test-%d.csv%s", rig.daemon.dir, (int)getpid(), xz ? ".xz" : "");
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        if (xz)
            assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, (const uint8_t *)trace, strlen(trace), packed, &n, sizeof packed),
                             LZMA_OK);
        assert_int_equal(fwrite(xz ? (const void *)packed : trace, 1, xz ? n : strlen(trace), f), xz ? n : strlen(trace));
        fclose(f);
        snprintf(arguments, sizeof arguments, "replay %s --space 5 --steps-per-second 50 --radius 3", path);
        assert_int_equal(aoictl("", arguments), 0);
        expect_output("step 3/3 t=12 entities=1");
        expect_output("enters 3 moves 2 leaves 3");
        const char *last = strstr(output, "step 3/3");
        assert_null(strstr(last + 1, "step 3/3"));
        unlink(path);
    }
    assert_int_equal(aoictl("", "replay /no/such/file.csv"), 1);
    expect_output("cannot read /no/such/file.csv");
}

static void replay_sums_up_what_was_refused(void **state)
{
    (void)state;
    char path[256], arguments[512];
    struct client *other = rig_client(&rig);
    libaoi_create_space(other->c, 5, &(struct libaoi_settings){.flush_ms = 50}, false);
    for (uint64_t id = 1; id <= 10; id++) add(other, 5, id, 0, 0, 0);
    client_ok(other);
    snprintf(path, sizeof path, "%s/../aoid-test-%d.csv", rig.daemon.dir, (int)getpid());
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs("t,id,x,y\n", f);
    for (int t = 0; t < 5; t++)
        for (int id = 1; id <= 12; id++) fprintf(f, "%d,%d,%d,0\n", t, id, t);
    fclose(f);
    snprintf(arguments, sizeof arguments, "replay %s --space 5 --steps-per-second 50", path);
    assert_int_equal(aoictl("", arguments), 1);
    unlink(path);
    int lines = 0;
    for (const char *at = output; (at = strstr(at, "DUPLICATE_ENTITY (")) != NULL; at++) lines++;
    assert_int_equal(lines, 3);
    assert_null(strstr(output, "NOT_OWNER"));
    expect_output("refused: 10 DUPLICATE_ENTITY, and 50 later commands about the same entities");
    expect_output("--space takes another space");
    expect_output("enters 12 moves 48 leaves 12");
}

static void broken_tables_are_refused_with_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", ": is empty"},
        {"t,id,x,y\n", ": has no rows"},
        {"a,b\n1,2\n", "a trace has the columns t, id, x and y"},
        {"t,id,x,y\n1,2,3\n", ":2: is not a row of numbers"},
        {"t,id,x,y\n1,2,3,4\n1,2,3,4,5\n", ":3: is not a row of numbers"},
        {"t,id,x,y\n1,2,x,4\n", ":2: is not a row of numbers"},
        {"t,id,x,y\n1,2,3,4\nnan,2,3,4\n", ":3: is not a row of numbers"},
        {"t,id,x,y\n1e999,2,3,4\n", ":2: is not a row of numbers"},
        {"t,id,x,y\n1,0,3,4\n", "an id is no whole number from 1"},
        {"t,id,x,y\n1,1.5,3,4\n", "an id is no whole number from 1"},
    };
    char path[256], error[300];
    struct trace loaded;
    snprintf(path, sizeof path, "%s/../aoid-test-%d.csv", rig.daemon.dir, (int)getpid());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        fputs(cases[i].text, f);
        fclose(f);
        assert_int_equal(trace_load(&loaded, path, error, sizeof error), -1);
        if (!strstr(error, cases[i].why)) fail_msg("\"%s\" does not say \"%s\"", error, cases[i].why);
    }
    unlink(path);
}

static void percentiles_are_those_of_the_values_to_a_few_percent(void **state)
{
    (void)state;
    static struct histogram h;
    assert_int_equal(histogram_at(&h, 0.5), 0);
    for (uint64_t us = 1; us <= 100000; us++) histogram_add(&h, us);
    for (int i = 1; i <= 1000; i++) {
        uint64_t got = histogram_at(&h, i / 1000.0), want = (uint64_t)i * 100;
        assert_true(got >= want && got <= want + want / 50);
    }
    histogram_add(&h, UINT64_MAX);
    assert_true(histogram_at(&h, 1) >= UINT32_MAX);
}

static void aoibench_measures_a_daemon_over_the_network(void **state)
{
    (void)state;
    char arguments[512];
    snprintf(arguments, sizeof arguments, "net --address %s --entities 200 --players 20 --side 200 --seconds 0.5 --warmup 0.1 --mirror --json",
             rig.daemon.address);
    assert_int_equal(run("", "aoibench", arguments), 0);
    for (const char *const *name = (const char *const[]){"moves_per_s", "deltas_per_s", "updates_per_s", "bytes_out_per_s", "latency_p50_ms",
                                                         "latency_p99_ms", "latency_p999_ms", "daemon_cpu_seconds", NULL};
         *name; name++) {
        char key[64];
        snprintf(key, sizeof key, "\"%s\": ", *name);
        expect_output(key);
    }
    expect_output("\"mirror_mismatches\": 0,");
    assert_null(strstr(output, "\"mirror_compared\": 0,"));
    snprintf(arguments, sizeof arguments, "net --address %s --space 8 --entities 2 --players 1 --side 1000 --radius 0 --seconds 0.2 --warmup 0",
             rig.daemon.address);
    assert_int_equal(run("", "aoibench", arguments), 0);
    expect_output("latency_p50_ms           -\n");
    struct client *other = rig_client(&rig);
    libaoi_create_space(other->c, 9, &(struct libaoi_settings){.flush_ms = 50}, false);
    client_ok(other);
    snprintf(arguments, sizeof arguments, "net --address %s --space 9 --seconds 0.1", rig.daemon.address);
    assert_int_equal(run("", "aoibench", arguments), 1);
    expect_output("--space ID takes another one");
    assert_int_equal(run("", "aoibench", "net --rate 0"), 2);
    expect_output("--rate 0: must be a number from 0.001 to 10000");
}

/* With a daemon of its own. */
static void aoibench_prints(const char *arguments, const char *const *names)
{
    char line[512], key[64];
    const char *path = getenv("AOID");
    snprintf(line, sizeof line, "%s --json --aoid %s", arguments, path ? path : "build/aoid");
    if (run("", "aoibench", line) != 0) fail_msg("aoibench %s: %s", line, output);
    for (; *names; names++) {
        snprintf(key, sizeof key, "\"%s\": ", *names);
        expect_output(key);
    }
}

static void aoibench_measures_input_queries_and_what_sending_alone_costs(void **state)
{
    (void)state;
    aoibench_prints("input --entities 2500 --seconds 0.1 --warmup 0 --rounds 2",
                    (const char *const[]){"moves_per_s", "daemon_cpu_ns_per_move", NULL});
    aoibench_prints("query --entities 2000 --seconds 0.2 --rounds 2",
                    (const char *const[]){"queries_per_s", "rows_per_query", "daemon_cpu_us_per_query", NULL});
    assert_null(strstr(output, "\"rows_per_query\": 0.0"));
    expect_output("\"redis_queries_per_s\": null");
    assert_int_equal(run("", "aoibench", "ceiling --seconds 0.01 --rounds 1 --connections 2 --json"), 0);
    expect_output("\"ceiling_ns_per_update\": ");
    assert_int_equal(run("", "aoibench", "query"), 2);
    expect_output("query needs --aoid");
    assert_int_equal(run("", "aoibench", "ceiling --entities 5"), 2); /* an option of others */
}

static void aoibench_runs_a_workload_of_the_core_over_the_network(void **state)
{
    (void)state;
    aoibench_prints("net --workload W1 --seconds 0.2 --warmup 0 --rounds 1",
                    (const char *const[]){"daemon_cpu_ns_per_update", "ceiling_ns_per_update", "ratio", "latency_p99_ms", "latency_bound_ms",
                                          "ping_p99_ms", NULL});
    assert_int_equal(run("", "aoibench", "net --workload W9 --pid 1"), 1);
    expect_output("there is no workload \"W9\": W1 or W2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_first_conversation_with_aoictl, setup, teardown),
        cmocka_unit_test_setup_teardown(spaces_shows_what_is_not_at_its_default_as_create_takes_it, setup, teardown),
        cmocka_unit_test_setup_teardown(move_in_3d_needs_all_coordinates, setup, teardown),
        cmocka_unit_test_setup_teardown(watch_prints_one_line_an_item, setup, teardown),
        cmocka_unit_test(watch_keeps_its_connection_though_nothing_comes),
        cmocka_unit_test_setup_teardown(every_complaint_says_what_to_do, setup, teardown),
        cmocka_unit_test_setup_teardown(a_number_is_a_finite_one, setup, teardown),
        cmocka_unit_test(a_wrong_option_in_front_of_the_verb_is_told_in_one_line),
        cmocka_unit_test(a_limit_is_looked_for_in_the_configuration_only_where_it_stands_there),
        cmocka_unit_test_setup_teardown(replay_drives_a_trace_that_is_packed_or_not, setup, teardown),
        cmocka_unit_test_setup_teardown(replay_sums_up_what_was_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(broken_tables_are_refused_with_their_line, setup, teardown),
        cmocka_unit_test_setup_teardown(output_that_goes_nowhere_is_told_and_never_to_the_daemon, setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_without_end_is_no_trace, setup, teardown),
        cmocka_unit_test(percentiles_are_those_of_the_values_to_a_few_percent),
        cmocka_unit_test_setup_teardown(aoibench_measures_a_daemon_over_the_network, setup, teardown),
        cmocka_unit_test(aoibench_measures_input_queries_and_what_sending_alone_costs),
        cmocka_unit_test(aoibench_runs_a_workload_of_the_core_over_the_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
