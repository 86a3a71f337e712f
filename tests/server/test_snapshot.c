/* test_snapshot.c: the snapshot's file: sessions and world come back as they were, and any damage is seen. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "commands.h"
#include "rig.h"
#include "server/snapshot_file.h"

struct folder {
    char path[64], file[80];
};

static struct folder folder_new(void)
{
    struct folder folder = {.path = "/tmp/aoid-test-XXXXXX"};
    assert_non_null(mkdtemp(folder.path));
    snprintf(folder.file, sizeof folder.file, "%s/snapshot", folder.path);
    return folder;
}

static void folder_clear(const struct folder *folder)
{
    unlink(folder->file);
    assert_int_equal(rmdir(folder->path), 0); /* nothing else is left in it */
}

static struct buf file_bytes(const struct folder *folder)
{
    struct buf bytes = {0};
    FILE *file = fopen(folder->file, "re");
    assert_non_null(file);
    bytes.end = fread(buf_reserve(&bytes, 65536), 1, 65536, file);
    fclose(file);
    return bytes;
}

/* A file of three sessions, of which the one in the middle has ended; the first owns a space and an entity, and has lost another one; the third has a player. */
static struct folder a_file(struct rig *rig)
{
    for (size_t i = 0; i < 3; i++) rig_hello(rig, &rig->session[i]);
    BATCH(rig, &rig->session[0], 7, CREATE(50), ADD(1, 0, 0), ADD(2, 3, 0));
    rig_expect_ack(rig, &rig->session[0], 7, 3);
    BATCH(rig, &rig->session[2], 5, SUBSCRIBE(9, 1));
    rig_expect_ack(rig, &rig->session[2], 5, 1);
    struct notices *notices = &rig->session[0].standing->notices;
    *array_add(&notices->lost) = (struct notice_lost){.space = 1, .id = 77, .is_player = true, .sent_ms = 5};
    *array_add(&notices->lost) = (struct notice_lost){.space = 2, .id = 78};
    notices->lost_sent = 1;
    *array_add(&notices->closed) = (struct notice_closed){.space = 3, .player = 4, .seq = 5, .flush = 6, .time_us = 7, .messages_lost = 8};
    sessions_end(&rig->sessions, rig->session[1].standing);
    memset(rig->session[2].standing->token_name, 'z', TOKEN_NAME_MAX);
    memset(rig->session[2].standing->client, 'c', SESSION_CLIENT_MAX);
    struct folder folder = folder_new();
    uint64_t len;
    assert_int_equal(snapshot_file_write(folder.file, &rig->sessions, rig->world, 0, &len), 0);
    struct stat status;
    assert_int_equal(stat(folder.file, &status), 0);
    assert_int_equal(status.st_size, len);
    assert_int_equal(status.st_mode & 0777, 0600);
    return folder;
}

static struct aoi_world *read_file(struct rig *rig, const struct buf *bytes, size_t len, struct sessions *sessions, char *why)
{
    const struct aoi_limits limits = config_limits(&rig->config);
    struct snapshot_loading how = {.limits = &limits, .now_ms = 1000, .now_us = flusher_time_us()};
    uint8_t *exact = mem_alloc(len + 1); /* so that AddressSanitizer sees a read past the end */
    memcpy(exact + 1, buf_data(bytes), len);
    *sessions = (struct sessions){.last_id = 1};
    why[0] = '\0';
    struct aoi_world *world = snapshot_file_read(exact + 1, len, sessions, &how, why);
    free(exact);
    return world;
}

static void sessions_and_what_is_theirs_come_back_without_connections(void **state)
{
    struct rig *rig = *state;
    char why[SNAPSHOT_FILE_WHY];
    struct sessions back;
    struct folder folder = a_file(rig);
    struct buf bytes = file_bytes(&folder);
    struct aoi_world *world = read_file(rig, &bytes, buf_len(&bytes), &back, why);
    assert_non_null(world);
    aoi_validate(world);
    assert_int_equal(back.by_id.n, 2);
    assert_int_equal(back.away_n, 2);
    assert_int_equal(back.last_id, rig->sessions.last_id);
    for (size_t i = 0; i < 3; i += 2) {
        const struct standing *was = rig->session[i].standing, *is = sessions_of_id(&back, was->id);
        assert_non_null(is);
        assert_int_equal(is->owner, was->owner);
        assert_int_equal(is->last_seq, was->last_seq);
        assert_int_equal(is->lease_ms, was->lease_ms);
        assert_int_equal(is->lease_end_ms, was->lease_ms);
        assert_true(sessions_token_is(is, was->resume_token, RESUME_TOKEN_BYTES));
        assert_string_equal(is->token_name, was->token_name);
        assert_string_equal(is->client, was->client);
        assert_null(is->session);
    }
    const struct notices *notices = &sessions_of_id(&back, rig->session[0].id)->notices;
    assert_int_equal(notices->lost.n, 2);
    assert_int_equal(notices->lost_sent, 1);
    assert_true(notices->lost.at[0].id == 77 && notices->lost.at[0].is_player && notices->lost.at[1].space == 2);
    assert_true(notices->closed.n == 1 && notices->closed.at[0].seq == 5 && notices->closed.at[0].messages_lost == 8);
    assert_true(back.free_owners.n == 1 && sessions_of_owner(&back, back.free_owners.at[0]) == NULL);
    struct aoi_entity entity;
    assert_int_equal(aoi_entity_get(aoi_space_find(world, 1), 1, &entity), AOI_OK);
    assert_int_equal(entity.owner, rig->session[0].owner);
    assert_int_equal(aoi_player_owner(aoi_space_find(world, 1), 9), rig->session[2].owner);
    aoi_world_free(world);
    sessions_clear(&back);
    buf_clear(&bytes);
    folder_clear(&folder);
}

static void expect_refused(struct rig *rig, const struct buf *bytes, size_t len)
{
    char why[SNAPSHOT_FILE_WHY];
    struct sessions back;
    assert_null(read_file(rig, bytes, len, &back, why));
    assert_true(why[0] != '\0');
    assert_true(back.by_id.n == 0 && back.by_owner.n == 0 && back.away_n == 0 && back.last_id == 1);
}

static void every_cut_and_every_damaged_byte_is_seen(void **state)
{
    struct rig *rig = *state;
    struct folder folder = a_file(rig);
    struct buf bytes = file_bytes(&folder);
    for (size_t len = 0; len < buf_len(&bytes); len++) expect_refused(rig, &bytes, len);
    for (size_t i = 0; i < buf_len(&bytes); i++) {
        for (uint32_t bit = 0; bit <= 8; bit++) {
            uint8_t was = bytes.at[i];
            bytes.at[i] = bit == 8 ? (uint8_t)~was : (uint8_t)(was ^ 1u << bit);
            expect_refused(rig, &bytes, buf_len(&bytes));
            bytes.at[i] = was;
        }
    }
    buf_append(&bytes, "", 1);
    expect_refused(rig, &bytes, buf_len(&bytes));
    buf_clear(&bytes);
    folder_clear(&folder);
}

static void a_file_that_cannot_be_written_leaves_the_one_before(void **state)
{
    struct rig *rig = *state;
    uint64_t len;
    struct folder folder = a_file(rig);
    struct buf before = file_bytes(&folder);
    char fresh[100];
    snprintf(fresh, sizeof fresh, "%s" SNAPSHOT_FILE_SUFFIX, folder.file);
    assert_int_equal(mkdir(fresh, 0700), 0); /* in the way */
    assert_int_equal(snapshot_file_write(folder.file, &rig->sessions, rig->world, 0, &len), EEXIST);
    struct buf after = file_bytes(&folder);
    assert_int_equal(buf_len(&after), buf_len(&before));
    assert_memory_equal(buf_data(&after), buf_data(&before), buf_len(&before));
    assert_int_equal(rmdir(fresh), 0);
    assert_int_equal(snapshot_file_write("/tmp/aoid-test-nowhere/snapshot", &rig->sessions, rig->world, 0, &len), ENOENT);
    buf_clear(&before);
    buf_clear(&after);
    folder_clear(&folder);
}

static void what_is_refused_while_draining_is_applied_when_it_is_sent_to_the_next_daemon(void **state)
{
    struct rig *rig = *state;
    rig_hello(rig, &rig->session[0]);
    BATCH(rig, &rig->session[0], 7, CREATE(0));
    rig_expect_ack(rig, &rig->session[0], 7, 1);
    rig->dispatch.draining = true;
    BATCH(rig, &rig->session[0], 8, ADD(1, 0, 0));
    rig_expect_error(rig, &rig->session[0], 8, CODEC_DRAINING);
    const struct codec_client_frame ping = {.seq = 9, .kind = CODEC_PING};
    rig_frame(rig, &rig->session[0], &ping);
    assert_int_equal(rig_take(rig, &rig->session[0])->kind, CODEC_PONG);
    assert_int_equal(rig->session[0].standing->last_seq, 7);
    BATCH(rig, &rig->session[0], 9, ADD(1, 0, 0)); /* seqs still have to increase */
    rig_expect_error(rig, &rig->session[0], 9, CODEC_INVALID_ARGUMENT);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sessions_and_what_is_theirs_come_back_without_connections),
        TEST(every_cut_and_every_damaged_byte_is_seen),
        TEST(a_file_that_cannot_be_written_leaves_the_one_before),
        TEST(what_is_refused_while_draining_is_applied_when_it_is_sent_to_the_next_daemon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
