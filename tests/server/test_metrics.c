/* test_metrics.c: the page of metrics: what Prometheus expects of its form, and that the numbers are those that were counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"

static char *page(struct rig *rig)
{
    struct buf out = {0};
    const struct metrics_source source = {.metrics = &rig->metrics, .world = rig->world, .sessions = 7};
    metrics_write(&source, &out);
    buf_append(&out, "", 1);
    return (char *)out.at;
}

/* The value of a series; fails if there is none, or another one of the same name and labels. */
static double value(const char *text, const char *series)
{
    char start[200];
    snprintf(start, sizeof start, "\n%s ", series);
    const char *at = strstr(text, start);
    if (at == NULL) fail_msg("no series %s", series);
    assert_null(strstr(at + 1, start));
    return strtod(at + strlen(start), NULL);
}

static void each_metric_is_explained_once_and_named_by_the_rules(void **state)
{
    struct rig *rig = *state;
    char *text = page(rig), *rest = text, name[100] = "", type[20] = "", seen[8192] = " ";
    for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != '\0';) {
        char now[100], word[120];
        if (sscanf(line, "# HELP %99s %*s", now) == 1) {
            snprintf(word, sizeof word, " %s ", now);
            if (strstr(seen, word) != NULL) fail_msg("%s is there twice", now);
            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s ", now);
            snprintf(name, sizeof name, "%s", now);
            type[0] = '\0';
        } else if (line[0] == '#') {
            assert_int_equal(sscanf(line, "# TYPE %99s %19s", now, type), 2);
            assert_string_equal(now, name);
        } else {
            size_t len = strlen(name);
            bool counter = len > 6 && strcmp(name + len - 6, "_total") == 0;
            assert_true(type[0] != '\0' && strncmp(line, name, len) == 0);
            assert_int_equal(counter, strcmp(type, "counter") == 0);
            assert_true(strncmp(name, "aoid_", 5) == 0 || strncmp(name, "process_", 8) == 0);
        }
    }
    free(text);
}

static void a_duration_counts_in_the_first_bucket_that_holds_it_and_in_all_above(void **state)
{
    struct rig *rig = *state;
    for (uint64_t us = 1; us <= 10000000; us *= 10) histogram_add(&rig->metrics.flush, us * 1000);
    char *text = page(rig);
    assert_true(value(text, "aoid_flush_duration_seconds_bucket{le=\"1e-05\"}") == 2);
    assert_true(value(text, "aoid_flush_duration_seconds_bucket{le=\"0.0001\"}") == 3);
    assert_true(value(text, "aoid_flush_duration_seconds_bucket{le=\"0.05\"}") == 5);
    assert_true(value(text, "aoid_flush_duration_seconds_bucket{le=\"2.5\"}") == 7);
    assert_true(value(text, "aoid_flush_duration_seconds_bucket{le=\"+Inf\"}") == 8);
    assert_true(value(text, "aoid_flush_duration_seconds_count") == 8);
    double sum = value(text, "aoid_flush_duration_seconds_sum");
    assert_true(sum > 11.111110 && sum < 11.111112);
    free(text);
}

static void what_was_counted_is_told(void **state)
{
    struct rig *rig = *state;
    rig->metrics.errors[CODEC_NOT_OWNER] = 3;
    rig->metrics.errors[CODEC_DRAINING] = 4;
    rig->metrics.closed[CLOSE_OUT_HARD] = 5;
    rig->metrics.snapshots_failed = 6;
    rig->metrics.snapshots_refused = 1;
    assert_int_equal(metrics_errors(&rig->metrics), 7);
    struct aoi_space *space = aoi_space_find(rig->world, 77);
    for (uint64_t id = 1; id <= 9; id++)
        assert_int_equal(aoi_entity_add(space, 1, AOI_ADD_NEW, &(struct aoi_entity){.id = id, .pos = {id < 7 ? 1 : 199, 1}}), AOI_OK);
    char *text = page(rig);
    assert_true(value(text, "aoid_errors_total{code=\"NOT_OWNER\"}") == 3);
    assert_true(value(text, "aoid_errors_total{code=\"DRAINING\"}") == 4);
    assert_true(value(text, "aoid_connections_closed_total{reason=\"out_hard\"}") == 5);
    assert_true(value(text, "aoid_sessions") == 7);
    assert_true(value(text, "aoid_snapshots_total{result=\"failed\"}") == 6);
    assert_true(value(text, "aoid_snapshots_total{result=\"refused\"}") == 1);
    assert_true(value(text, "aoid_spaces") == 1);
    assert_true(value(text, "aoid_space_entities{space=\"77\"}") == 9);
    assert_true(value(text, "aoid_space_densest_cell_entities{space=\"77\"}") == 6);
    assert_true(value(text, "aoid_space_memory_bytes{space=\"77\"}") > 0);
    free(text);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_metric_is_explained_once_and_named_by_the_rules),
        TEST(a_duration_counts_in_the_first_bucket_that_holds_it_and_in_all_above),
        TEST(what_was_counted_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
