/* test_config.c: the option table, the configuration file and the command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"
#include "server/args.h"
#include "server/config.h"

static char err[CONFIG_ERROR_MAX];

/* Reads text as a file called "f" into fresh defaults, and checks it. */
static int read_text(struct config *config, const char *text)
{
    char copy[8192];
    size_t len = strlen(text);
    assert_true(len < sizeof copy);
    memcpy(copy, text, len + 1);
    if (len == 0) copy[len++] = '\n'; /* fmemopen() may refuse to read nothing */
    err[0] = '\0';
    config_init(config);
    FILE *file = fmemopen(copy, len, "r");
    assert_non_null(file);
    int status = config_read(config, file, "f", err);
    fclose(file);
    return status == 0 ? config_check(config, err) : status;
}

static void refused(const char *text, const char *why)
{
    struct config config;
    assert_int_equal(read_text(&config, text), -1);
    if (strstr(err, why) == NULL) fail_msg("expected \"%s\" in \"%s\"", why, err);
    config_clear(&config);
}

static void set_refused(const char *assignment, const char *why)
{
    struct config config;
    config_init(&config);
    assert_int_equal(config_set(&config, assignment, err), -1);
    if (strstr(err, why) == NULL) fail_msg("expected \"%s\" in \"%s\"", why, err);
    config_clear(&config);
}

static void the_defaults_are_those_that_the_documents_promise(void **state)
{
    (void)state;
    struct config config;
    config_init(&config);
    assert_int_equal(config_check(&config, err), 0);
    assert_string_equal(config.listen.text, "127.0.0.1:2643");
    assert_int_equal(config.log_level, LOG_LEVEL_INFO);
    assert_int_equal(config.max_frame_bytes, 1 << 20);
    assert_int_equal(config.max_connections, 1024);
    assert_int_equal(config.max_spaces, 65536);
    assert_int_equal(config.max_entities, 1000000);
    assert_int_equal(config.max_players, 1000000);
    assert_int_equal(config.max_units, 1024);
    assert_int_equal(config.max_payload, 4096);
    assert_int_equal(config.max_overrides, 1024);
    assert_int_equal(config.max_message, 4096);
    assert_int_equal(config.max_messages_per_flush, 10000);
    assert_true(config.max_radius == 0.0f);
    assert_int_equal(config.query_page, 10000);
    assert_int_equal(config.out_soft_bytes, 4 << 20);
    assert_int_equal(config.out_hard_bytes, 64 << 20);
    assert_int_equal(config.out_soft_ms, 10000);
    assert_int_equal(config.hello_timeout_ms, 2000);
    assert_int_equal(config.frame_timeout_ms, 10000);
    assert_int_equal(config.idle_timeout_ms, 60000);
    assert_int_equal(config.drain_timeout_ms, 5000);
    config_clear(&config);
}

static void a_file_sets_options_and_comments_are_left_alone(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(read_text(&config, "# a comment\n; another\n\n[server]\nlisten = [::1]:7 ; here\n  log_level=debug\n\t# indented\n[limits]\n"
                                        "max_payload = 8 KiB\nout_soft_bytes=1MiB\nout_hard_bytes = 2097152\nmax_radius = 512.5\n"),
                     0);
    assert_string_equal(config.listen.text, "[::1]:7");
    assert_int_equal(config.listen.socket.ss_family, AF_INET6);
    assert_int_equal(config.log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(config.max_payload, 8192);
    assert_int_equal(config.out_soft_bytes, 1 << 20);
    assert_int_equal(config.out_hard_bytes, 2 << 20);
    assert_true(config.max_radius == 512.5f);
    config_clear(&config);
}

static void an_empty_file_is_fine(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(read_text(&config, "\n"), 0);
    config_clear(&config);
}

static void spaces_are_sections_and_one_without_options_is_a_space_of_defaults(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(
        read_text(
            &config,
            "[space 1]\n[space town]\nid = 18446744073709551615\ndimensions=3\nindex = crosslist\nshape = cells\ncell_size=0.5\n"
            "cell_range = 2\nbounds = -1 -2 -3 1 2 3\nextra = yes\nflush_ms = 0\nleave_margin = 2.5\nmin_stay_ms = 300\nmax_view = 65536\n"
            "max_enter_per_flush = 20\nupdate_tiers = 30:1 60:2 *:4 ; far things seldom\n[limits]\nmax_spaces=2\n[space 7]\nbounds = 0 0, 10 10\n"
            "[limits]\nmax_units = 3\n"),
        -1);
    assert_non_null(strstr(err, "max_spaces"));
    assert_int_equal(config.spaces.n, 3);
    assert_int_equal(config.spaces.at[0].id, 1);
    assert_int_equal(config.spaces.at[0].settings.dimensions, 2);
    assert_int_equal(config.spaces.at[0].settings.flush_ms, 50);
    assert_false(config.spaces.at[0].settings.bounded);
    const struct config_space *town = &config.spaces.at[1];
    assert_true(town->id == UINT64_MAX);
    assert_int_equal(town->settings.dimensions, 3);
    assert_int_equal(town->settings.index, AOI_INDEX_CROSSLIST);
    assert_int_equal(town->settings.shape, AOI_SHAPE_CELLS);
    assert_true(town->settings.cell_size == 0.5);
    assert_int_equal(town->settings.cell_range, 2);
    assert_true(town->settings.bounded && town->settings.min[2] == -3.0f && town->settings.max[1] == 2.0f);
    assert_true(town->settings.extra);
    assert_int_equal(town->settings.flush_ms, 0);
    assert_true(town->settings.leave_margin == 2.5f);
    assert_int_equal(town->settings.min_stay_ms, 300);
    assert_int_equal(town->settings.max_view, 65536);
    assert_int_equal(town->settings.max_enter_per_flush, 20);
    assert_int_equal(town->settings.tiers.n, 2);
    assert_true(town->settings.tiers.at[1].distance == 60.0f);
    assert_int_equal(town->settings.tiers.at[1].period, 2);
    assert_int_equal(town->settings.tiers.beyond, 4);
    assert_true(config.spaces.at[2].settings.max[0] == 10.0f);
    assert_int_equal(config.max_units, 3);
    config_clear(&config);
}

static void bounds_of_four_numbers_leave_z_free(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(read_text(&config, "[space 1]\ndimensions = 3\nbounds = -5 -6 7 8\n"), 0);
    const struct aoi_settings *set = &config.spaces.at[0].settings;
    assert_true(set->bounded && set->min[0] == -5.0f && set->max[1] == 8.0f);
    assert_true(set->min[2] == -AOI_COORD_MAX && set->max[2] == AOI_COORD_MAX);
    config_clear(&config);
}

static void faults_are_told_with_file_and_line(void **state)
{
    (void)state;
    refused("[server]\n\nlisten = 127.0.0.1:1\nlissten = 127.0.0.1:1\n", "f:4: unknown option lissten");
    refused("[server]\n=5\n", "f:2: no option stands in front of `=`");
    refused("[limits]\nlisten = 127.0.0.1:1\n", "f:2: unknown option listen in [limits]; it belongs in [server]");
    refused("[server]\nflush_ms = 5\n", "f:2: unknown option flush_ms in [server]; it belongs in [space NAME-or-ID]");
    refused("[server]\nidle_timeout_ms = 30s\n", "f:2: idle_timeout_ms = 30s: is not a whole number of milliseconds");
    refused("[server]\nlisten = \"127.0.0.1:1\"\n", "values stand without quotes");
    refused("[server]\nlog_level =\n", "f:2: log_level = (nothing): must be error");
    refused("\xff\xfe[", "f:1: the file is in UTF-16; save it as UTF-8");
    refused("\n[sever]\n", "f:2: unknown section [sever]");
    refused("[spaces 1]\n", "f:1: unknown section");
    refused("listen = 127.0.0.1:1\n", "f:1: an option before the first section");
    refused("[limits]\nmax_units\n", "f:2: neither an option");
    refused("[limits]\n[unclosed\nmax_units = 1\n", "f:2: neither an option");
    refused("[limits]\nmax_units = 1\nmax_players = 2\nmax_units = 1\n", "f:4: max_units is given twice");
    refused("[space 1]\n[limits]\n[space 1]\n", "f:3: this space has a section already");
    refused("[space]\n", "f:1: a space needs a name or an id");
    refused("[space one]\nid = 2\n[space 2]\n", "f:3: [space 2]: [space one] has the same id");
    refused("[space 1]\nbounds = 0 0 0 1 1 1\n", "f:1: [space 1]: bounds has a z, and the space is of two dimensions");
    refused("[space 1]\nid = 2\n", "f:1: [space 1]: a section named by a number is of the space of that id");
    refused("\n[space town]\n", "f:2: [space town]: needs an id");
    refused("\n[space 0]\n", "f:2: [space 0]: this is no id: ids are whole numbers from 1 to 2^64 - 1");
    refused("[space 99999999999999999999]\n", "this is no id");
    refused("[space 1]\nmax_units = 1\n", "f:2: unknown option max_units");
}

static void values_out_of_range_or_of_the_wrong_kind_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "max_units=",
        "max_units=x",
        "max_units=-1",
        "max_units=0",
        "max_units=1x",
        "max_units=1KiB",
        "max_units=4294967297",
        "max_units=99999999999999999999",
        "max_frame_bytes=1",
        "max_frame_bytes=1kb",
        "max_frame_bytes=1e3",
        "out_soft_bytes=99999999999GiB",
        "max_radius=nan",
        "max_radius=-1",
        "max_radius=inf",
        "max_radius=1 2",
        "log_level=loud",
        "listen=2643",
        "listen=127.0.0.1:",
        "listen=127.0.0.1:x",
        "listen=127.0.0.1:65536",
        "listen=example.org:1",
        "listen=::1:1",
        "listen=[127.0.0.1]:1",
        "space.1.index=tree",
        "space.1.shape=ball",
        "space.1.dimensions=4",
        "space.1.extra=maybe",
        "space.1.cell_size=0",
        "space.1.cell_size=inf",
        "space.1.cell_range=65",
        "space.1.bounds=1 2 3",
        "space.1.bounds=1 2 3 x",
        "space.1.bounds=1 2 3 4 5",
        "space.1.bounds=1 2 3 4 5 6 7",
        "space.1.id=0",
        "space.1.id=x",
        "space.1.id=-1",
        "space.1.flush_ms=-1",
        "space.1.leave_margin=-1",
        "space.1.leave_margin=nan",
        "space.1.min_stay_ms=x",
        "space.1.max_view=65537",
        "space.1.max_enter_per_flush=-1",
        "space.1.update_tiers=30",
        "space.1.update_tiers=30:0",
        "space.1.update_tiers=60:1 30:2",
        "space.1.update_tiers=*:4 30:1",
        "space.1.update_tiers=1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) set_refused(wrong[i], ": ");
}

static void what_is_wrong_with_a_value_is_said_with_its_name(void **state)
{
    (void)state;
    set_refused("max_unit=1", "unknown option max_unit");
    set_refused("server.max_units=1", "unknown option max_units");
    set_refused("nonsense", "must be name=value");
    set_refused("space.flush_ms=20", "which space?");
    set_refused("flush_ms=1", "which space?");
    set_refused("space.1.max_units=1", "unknown option max_units");
    set_refused("space..flush_ms=1", "a space needs a name");
    set_refused("max_units=-1", "max_units = -1: must be between 1 and 1000000");
    set_refused("max_units=99999999999999999999", "must be between 1 and 1000000");
    set_refused("out_soft_bytes=99999999999GiB", "must be between 8KiB and 1GiB");
    set_refused("flush=1", "unknown option flush");
    set_refused("space.9.flush_ms=x", "space.9.flush_ms = x: is not a whole number of milliseconds");
    set_refused("space.town.update_tiers=20:1 40:2 *:4 50:5", "space.town.update_tiers = 20:1 40:2 *:4 50:5: in update_tiers * is");
    set_refused("limits.max_units=0", "limits.max_units = 0: must be between 1 and 1000000");
    refused("[space 1]\n\nbounds = 1 1 0 2\n", "f:3: bounds = 1 1 0 2: min_x is above max_x");
    refused("[limits]\nmax_units = 7 # not so many\n",
            "f:2: max_units = 7 # not so many: is not a whole number, in digits alone; a comment behind a value begins with ` ;`");
}

static void a_file_may_come_from_windows(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(read_text(&config, "\xef\xbb\xbf[limits]\r\nmax_units = 3\r\n"), 0);
    assert_int_equal(config.max_units, 3);
    config_clear(&config);
}

static void options_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    refused("[limits]\nmax_payload = 1MiB\n", "max_frame_bytes must be");
    refused("[limits]\nmax_message = 1048000\n", "max_frame_bytes must be at least 1 KiB more than max_message");
    refused("[limits]\nout_soft_bytes = 8KiB\n", "out_soft_bytes must be");
    refused("[limits]\nout_soft_bytes = 64KiB\nmax_message = 32KiB\n", "out_soft_bytes must be");
    refused("[limits]\nout_hard_bytes = 4MiB\n", "out_hard_bytes must be");
}

static void only_loopback_addresses_are_taken_without_tokens(void **state)
{
    (void)state;
    refused("[server]\nlisten = 0.0.0.0:2643\n", "this address can be reached from other machines");
    refused("[server]\nlisten = [::]:2643\n", "this address can be reached from other machines");
    refused("[server]\nlisten = 192.0.2.1:2643\n", "this address can be reached from other machines");
    struct config open;
    assert_int_equal(read_text(&open, "[server]\nlisten = 0.0.0.0:2643\ntokens_file = /somewhere\n"), 0);
    assert_string_equal(open.tokens_file, "/somewhere");
    config_clear(&open);
    static const char *const fine[] = {"listen=127.0.0.1:0", "listen=127.255.0.9:1", "listen=localhost:1", "listen=[::1]:65535"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        struct config config;
        config_init(&config);
        assert_int_equal(config_set(&config, fine[i], err), 0);
        assert_int_equal(config_check(&config, err), 0);
        config_clear(&config);
    }
}

static void a_space_is_set_by_its_id_whatever_its_section_is_called(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(read_text(&config, "[space town]\nid = 9\n[space 3]\n"), 0);
    assert_int_equal(config_set(&config, "space.9.flush_ms=20", err), 0);
    assert_int_equal(config_set(&config, "space.town.max_view=7", err), 0);
    assert_int_equal(config_set(&config, "space.3.flush_ms=30", err), 0);
    assert_int_equal(config_set(&config, "space.4.flush_ms=40", err), 0);
    assert_int_equal(config_check(&config, err), 0);
    assert_int_equal(config.spaces.n, 3);
    assert_int_equal(config_space_of(&config, 9)->settings.flush_ms, 20);
    assert_int_equal(config_space_of(&config, 9)->settings.max_view, 7);
    assert_int_equal(config_space_of(&config, 3)->settings.flush_ms, 30);
    assert_int_equal(config_space_of(&config, 4)->settings.flush_ms, 40);
    config_clear(&config);
}

static void zero_refused(const char *bytes, size_t len, const char *where)
{
    struct config config;
    char *copy = mem_alloc(len);
    memcpy(copy, bytes, len);
    FILE *file = fmemopen(copy, len, "r");
    config_init(&config);
    assert_int_equal(config_read(&config, file, "f", err), -1);
    if (strncmp(err, where, strlen(where)) != 0 || strstr(err, "a zero byte") == NULL) fail_msg("expected \"%s\" in \"%s\"", where, err);
    fclose(file);
    config_clear(&config);
    free(copy);
}

#define ZERO_REFUSED(text, where) zero_refused((text), sizeof(text) - 1, (where))

static void long_lines_and_zero_bytes_do_not_slip_through(void **state)
{
    (void)state;
    char text[1024] = "[limits]\nmax_units = ";
    memset(text + strlen(text), ' ', 400);
    memcpy(text + 420, "7\n", 3);
    refused(text, "f:2: the line is too long");

    ZERO_REFUSED("[limits]\nmax_units = 7\0 junk\nmax_players = 2\n", "f:2: ");
    ZERO_REFUSED("[limits]\nmax_units = 7\n\0max_players = 2\n", "f:3: ");
    ZERO_REFUSED("[limits]\nmax_units = 7\0junk", "f:2: "); /* the file ends within the line */
    ZERO_REFUSED("[limits]\nmax_units = 7\0\n", "f:2: ");
    ZERO_REFUSED("[limits]\nmax_units = 7\n\0", "f:3: ");
    static const char zeros[4096]; /* as a failure of the power may leave a file */
    zero_refused(zeros, 1, "f:1: ");
    zero_refused(zeros, sizeof zeros, "f:1: ");
}

static void ids_ports_and_modes_are_digits_alone(void **state)
{
    (void)state;
    static const char *const ids[] = {" 5", "+5", "-5", " -5", "5 ", "0x5", "5.0", "", "0", "18446744073709551616"};
    static const char *const ports[] = {" 80", "+80", "-80", "-18446744073709551615", "80 ", "", "0x50", "65536", "18446744073709551696"};
    static const char *const modes[] = {" 660", "+660", "-660", "0o660", "668", ""};
    char assignment[80];
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        snprintf(assignment, sizeof assignment, "space.a.id=%s", ids[i]);
        set_refused(assignment, "is not an id");
    }
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
        snprintf(assignment, sizeof assignment, "listen=127.0.0.1:%s", ports[i]);
        set_refused(assignment, "has no port between 0 and 65535");
    }
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        snprintf(assignment, sizeof assignment, "unix_mode=%s", modes[i]);
        set_refused(assignment, "is not an octal number");
    }
    struct config config;
    config_init(&config);
    assert_int_equal(config_set(&config, "space.a.id=18446744073709551615", err), 0);
    assert_int_equal(config_set(&config, "listen=[::1]:65535", err), 0);
    assert_int_equal(config_set(&config, "unix_mode=600", err), 0);
    assert_int_equal(config.unix_mode, 0600);
    config_clear(&config);
}

static void a_query_page_is_lowered_to_fit_a_frame(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(read_text(&config, "[limits]\nmax_frame_bytes = 8KiB\n"), 0);
    assert_int_equal(config.query_page, (8192 - 128) / 32);
    config_clear(&config);
}

static int parse(struct args *args, struct config *config, const char *a, const char *b, const char *c, const char *d)
{
    char *argv[6] = {(char *)(uintptr_t) "aoid"};
    const char *given[] = {a, b, c, d};
    int argc = 1;
    for (int i = 0; i < 4 && given[i] != NULL; i++) argv[argc++] = (char *)(uintptr_t)given[i];
    config_init(config);
    return args_parse(argc, argv, args, config, err);
}

static void the_command_line_goes_over_the_file_wherever_it_stands(void **state)
{
    (void)state;
    char path[] = "/tmp/aoid-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    static const char text[] = "[limits]\nmax_units = 5\nmax_players = 6\n[space 3]\n";
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    struct args args;
    struct config config;
    assert_int_equal(parse(&args, &config, "--set=max_units=9", "--set=space.3.flush_ms=7", "--config", path), 0);
    assert_int_equal(config.max_units, 9);
    assert_int_equal(config.max_players, 6);
    assert_int_equal(config.spaces.n, 1);
    assert_int_equal(config.spaces.at[0].settings.flush_ms, 7);
    config_clear(&config);
    unlink(path);

    assert_int_equal(parse(&args, &config, "--config", path, NULL, NULL), -1);
    assert_non_null(strstr(err, path));
    config_clear(&config);
}

static void the_command_line_refuses_what_it_does_not_know(void **state)
{
    (void)state;
    struct args args;
    struct config config;
    assert_int_equal(parse(&args, &config, "extra", NULL, NULL, NULL), -1);
    assert_string_equal(err, "extra: not an option; a file is read with --config FILE; try `aoid --help`");
    config_clear(&config);
    assert_int_equal(parse(&args, &config, "--set", "max_units=0", NULL, NULL), -1);
    assert_string_equal(err, "--set: max_units = 0: must be between 1 and 1000000");
    config_clear(&config);
    assert_int_equal(parse(&args, &config, "--set", "space.9.flush_ms=x", NULL, NULL), -1);
    assert_string_equal(err, "--set: space.9.flush_ms = x: is not a whole number of milliseconds, in digits alone");
    config_clear(&config);
    static const char *const misused[][3] = {{"--set", NULL, "--set needs a value behind it; try `aoid --help`"},
                                             {"--check-config", "-c", "-c needs a value behind it; try `aoid --help`"},
                                             {"--check-config=yes", NULL, "--check-config=yes: --check-config takes no value"},
                                             {"--no-such", NULL, "there is no option --no-such; try `aoid --help`"},
                                             {"-xv", NULL, "there is no option -x; try `aoid --help`"}};
    for (size_t i = 0; i < sizeof misused / sizeof *misused; i++) {
        assert_int_equal(parse(&args, &config, misused[i][0], misused[i][1], NULL, NULL), -1);
        assert_string_equal(err, misused[i][2]);
        config_clear(&config);
    }
    assert_int_equal(parse(&args, &config, "--listen", "0.0.0.0:1", NULL, NULL), -1);
    config_clear(&config);
    assert_int_equal(parse(&args, &config, "--listen", "127.0.0.1:0", "--port-file", "p"), 0);
    assert_string_equal(args.port_file, "p");
    assert_false(args.check_only || args.done);
    config_clear(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_those_that_the_documents_promise),
        cmocka_unit_test(a_file_sets_options_and_comments_are_left_alone),
        cmocka_unit_test(an_empty_file_is_fine),
        cmocka_unit_test(spaces_are_sections_and_one_without_options_is_a_space_of_defaults),
        cmocka_unit_test(bounds_of_four_numbers_leave_z_free),
        cmocka_unit_test(faults_are_told_with_file_and_line),
        cmocka_unit_test(values_out_of_range_or_of_the_wrong_kind_are_refused),
        cmocka_unit_test(what_is_wrong_with_a_value_is_said_with_its_name),
        cmocka_unit_test(a_file_may_come_from_windows),
        cmocka_unit_test(options_that_contradict_each_other_are_refused),
        cmocka_unit_test(only_loopback_addresses_are_taken_without_tokens),
        cmocka_unit_test(a_space_is_set_by_its_id_whatever_its_section_is_called),
        cmocka_unit_test(long_lines_and_zero_bytes_do_not_slip_through),
        cmocka_unit_test(ids_ports_and_modes_are_digits_alone),
        cmocka_unit_test(a_query_page_is_lowered_to_fit_a_frame),
        cmocka_unit_test(the_command_line_goes_over_the_file_wherever_it_stands),
        cmocka_unit_test(the_command_line_refuses_what_it_does_not_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
