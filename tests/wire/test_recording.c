/* test_recording.c: what is put into a recording comes out again, and what is no recording, or half of one, is said to be that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "wire/recording.h"

struct file {
    char path[64];
    struct buf bytes;
};

static int make(void **state)
{
    static struct file file;
    file = (struct file){.path = "/tmp/aoid-test-XXXXXX"};
    int fd = mkstemp(file.path);
    if (fd < 0) return -1;
    close(fd);
    recording_put_head(&file.bytes);
    *state = &file;
    return 0;
}

static int unmake(void **state)
{
    struct file *file = *state;
    unlink(file->path);
    buf_clear(&file->bytes);
    return 0;
}

static void save(const struct file *file, size_t len)
{
    FILE *f = fopen(file->path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(buf_data(&file->bytes), 1, len, f), len);
    fclose(f);
}

/* How many entries are read, and how it ends: as recording_next() says, or -2: it is not opened. */
static int read_all(const struct file *file, int *n)
{
    struct recording recording;
    struct recording_entry entry;
    char err[RECORDING_ERROR_MAX] = "";
    *n = 0;
    int more = recording_open(&recording, file->path, err) != 0 ? -2 : 1;
    while (more == 1 && (more = recording_next(&recording, &entry, err)) == 1) ++*n;
    recording_close(&recording);
    assert_int_equal(more < 0, err[0] != '\0');
    return more;
}

static void entries_come_out_as_they_were_put_in(void **state)
{
    struct file *file = *state;
    const uint64_t numbers[] = {7, UINT64_MAX, 0x0102030405060708u};
    recording_put(&file->bytes, RECORDING_LIMITS, 11, 0, numbers, 3, NULL, 0);
    recording_put(&file->bytes, RECORDING_FRAME, UINT64_MAX, 1234567890123u, NULL, 0, "frame", 5);
    recording_put(&file->bytes, RECORDING_BEGIN, 13, 2, numbers, 1, "name", 4);
    recording_put(&file->bytes, RECORDING_END, 14, 2, NULL, 0, NULL, 0);
    save(file, buf_len(&file->bytes));
    assert_true(recording_is(file->path));

    struct recording recording;
    struct recording_entry e;
    char err[RECORDING_ERROR_MAX];
    assert_int_equal(recording_open(&recording, file->path, err), 0);
    assert_int_equal(recording_next(&recording, &e, err), 1);
    assert_true(e.kind == RECORDING_LIMITS && e.time_us == 11 && e.len == 24);
    for (size_t i = 0; i < 3; i++) assert_true(recording_number(&e, i) == numbers[i]);
    assert_true(recording_number(&e, 3) == 0);
    assert_int_equal(recording_next(&recording, &e, err), 1);
    assert_true(e.kind == RECORDING_FRAME && e.time_us == UINT64_MAX && e.who == 1234567890123u && e.len == 5);
    assert_memory_equal(e.body, "frame", 5);
    assert_int_equal(recording_next(&recording, &e, err), 1);
    assert_true(recording_number(&e, 0) == 7 && e.len == 12);
    assert_memory_equal(e.body + 8, "name", 4);
    assert_int_equal(recording_next(&recording, &e, err), 1);
    assert_true(e.kind == RECORDING_END && e.len == 0);
    assert_int_equal(recording_next(&recording, &e, err), 0);
    recording_close(&recording);
}

static void a_file_cut_off_anywhere_gives_what_is_whole_and_then_says_so(void **state)
{
    struct file *file = *state;
    size_t ends[4] = {buf_len(&file->bytes)};
    int n;
    for (int i = 1; i < 4; i++) {
        recording_put(&file->bytes, RECORDING_FRAME, 1, 1, NULL, 0, "0123456789", 10);
        ends[i] = buf_len(&file->bytes);
    }
    for (size_t len = 0, whole = 0; len <= ends[3]; len++) {
        while (whole < 3 && len >= ends[whole + 1]) whole++;
        save(file, len);
        int end = read_all(file, &n);
        if (len < ends[0]) {
            assert_int_equal(end, -2);
        } else {
            assert_int_equal(n, whole);
            assert_int_equal(end, len == ends[whole] ? 0 : -1);
        }
    }
}

static void what_is_no_entry_is_damage(void **state)
{
    struct file *file = *state;
    int n;
    size_t before = buf_len(&file->bytes);
    recording_put(&file->bytes, RECORDING_KINDS, 1, 1, NULL, 0, NULL, 0);
    save(file, buf_len(&file->bytes));
    assert_int_equal(read_all(file, &n), -1);
    memset(file->bytes.at + before, 0xFF, 4); /* a length of 4 GiB is not even tried */
    file->bytes.at[before + 4] = RECORDING_FRAME;
    save(file, buf_len(&file->bytes));
    assert_int_equal(read_all(file, &n), -1);
}

static void another_format_is_refused(void **state)
{
    struct file *file = *state;
    int n;
    file->bytes.at[buf_len(&file->bytes) - 1]++;
    save(file, buf_len(&file->bytes));
    assert_true(recording_is(file->path)); /* one of another version, still */
    assert_int_equal(read_all(file, &n), -2);
    file->bytes.at[0]++;
    save(file, buf_len(&file->bytes));
    assert_false(recording_is(file->path));
    assert_int_equal(read_all(file, &n), -2);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make, unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(entries_come_out_as_they_were_put_in),
        TEST(a_file_cut_off_anywhere_gives_what_is_whole_and_then_says_so),
        TEST(what_is_no_entry_is_damage),
        TEST(another_format_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
