/* fuzz_snapshot.c: a snapshot's file: any bytes are refused, or make a sound world that is saved as the same bytes ever after.
 *
 * The first byte of an input says what the others are: a file, as they are; or the sections of the sessions (of the length in two bytes) and of the world, of any version, to which the rest of a
 * file, with its checksums, is made here: chance would not find those.
 */
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>

#include "../core/model.h"
#include "base/bytes.h"
#include "fuzz.h"
#include "server/snapshot_file.h"

static const struct aoi_limits limits = {.max_spaces = 8,
                                         .max_entities = 300,
                                         .max_players = 100,
                                         .max_units = 20,
                                         .max_payload = 4096,
                                         .max_overrides = 20,
                                         .max_message = 4096,
                                         .max_messages = 100};

static void put_section(struct buf *out, uint32_t number, const void *bytes, size_t len)
{
    size_t head = out->end;
    bytes_put(out, number, 4);
    bytes_put(out, len, 8);
    bytes_put(out, lzma_crc64(out->at + head, 12, lzma_crc64(bytes, len, 0)), 8);
    buf_append(out, bytes, len);
}

static void put_file(struct fuzz_input *in, uint32_t version, struct buf *out)
{
    struct buf first = {0};
    size_t len = fuzz_length(in);
    buf_append(out, "aoidsnap", 8);
    bytes_put(out, version, 4);
    bytes_put(&first, 1000000, 8); /* the time, and the last session's id */
    bytes_put(&first, UINT64_MAX, 8);
    put_section(out, 1, buf_data(&first), buf_len(&first));
    put_section(out, 2, in->at, len);
    put_section(out, 3, in->at + len, in->left - len);
    buf_clear(&first);
}

static struct aoi_world *load(const struct buf *bytes)
{
    char why[AOI_LOAD_WHY];
    return aoi_world_load(&limits, NULL, &(struct aoi_load){.bytes = buf_data(bytes), .len = buf_len(bytes), .now_ms = 5000}, why);
}

/* Everybody comes back, and sees what there is; then the world goes through bytes twice. */
static void go_on(struct aoi_world *world, const struct sessions *sessions)
{
    struct buf once = {0}, twice = {0};
    aoi_validate(world);
    for (uint32_t i = 0; i < sessions->by_owner.n; i++)
        if (sessions->by_owner.at[i] != NULL && i % 3 != 2) aoi_owner_away(world, i + 1, false);
    uint64_t id = 0;
    for (struct aoi_space *space; (space = aoi_space_next(world, id)) != NULL; id = aoi_space_id(space)) {
        struct aoi_flush_info info = {.now_ms = 5000};
        aoi_flush(space, &info);
    }
    aoi_validate(world);
    model_save(world, 5000, &once);
    struct aoi_world *again = load(&once);
    CHECK(again != NULL);
    aoi_validate(again);
    model_save(again, 5000, &twice);
    CHECK(buf_len(&once) == buf_len(&twice) && memcmp(buf_data(&once), buf_data(&twice), buf_len(&once)) == 0);
    aoi_world_free(again);
    buf_clear(&once);
    buf_clear(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[SNAPSHOT_FILE_WHY] = "";
    struct fuzz_input in = {data, size};
    struct sessions sessions = {.last_id = 1};
    struct snapshot_loading how = {.limits = &limits, .now_ms = 5000, .now_us = 1001000};
    struct buf file = {0};
    uint8_t how_made = fuzz_byte(&in);
    if (how_made % 2 == 0)
        buf_append(&file, in.left > 0 ? in.at : (const uint8_t *)"", in.left);
    else
        put_file(&in, 1 + how_made / 2 % SNAPSHOT_FILE_VERSION, &file);
    struct aoi_world *world = snapshot_file_read(buf_len(&file) > 0 ? buf_data(&file) : (const uint8_t *)"", buf_len(&file), &sessions, &how, why);
    CHECK((world == NULL) == (why[0] != '\0'));
    CHECK(world != NULL || (sessions.by_id.n == 0 && sessions.by_owner.n == 0 && sessions.away_n == 0));
    if (getenv("AOI_TRACE") != NULL) puts(world != NULL ? "loaded" : why);
    if (world != NULL) {
        go_on(world, &sessions);
        aoi_world_free(world);
        sessions_clear(&sessions);
    }
    buf_clear(&file);
    return 0;
}
