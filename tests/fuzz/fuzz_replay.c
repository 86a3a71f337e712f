/* fuzz_replay.c: what sessions send, as bytes, goes through the daemon's commands and the core on each index: both have to tell the same.
 *
 * An input is entries of a recording: a byte each for the kind and for who, two for the length, then the body; sessions, lengths that are too long and a first
 * entry with the limits are seen to here, so that what is left to chance is what peers do. AOI_TRACE=1 prints what the replay says.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "fuzz.h"
#include "server/replay.h"
#include "wire/recording.h"

static void put_entries(struct fuzz_input *in, struct buf *out)
{
    static const uint64_t limits[LIMITS] = {
        [LIMIT_FRAME_BYTES] = 65536, [LIMIT_SPACES] = 4,     [LIMIT_ENTITIES] = 100, [LIMIT_PLAYERS] = 20,  [LIMIT_UNITS] = 20,
        [LIMIT_PAYLOAD] = 4096,      [LIMIT_OVERRIDES] = 20, [LIMIT_MESSAGE] = 4096, [LIMIT_MESSAGES] = 50, [LIMIT_QUERY_PAGE] = 100};
    uint64_t time_us = 0;
    recording_put_head(out);
    recording_put(out, RECORDING_LIMITS, 0, 0, limits, LIMITS, NULL, 0);
    while (in->left > 0) {
        enum recording_kind kind = (enum recording_kind)(RECORDING_SPACE + fuzz_below(in, RECORDING_KINDS - RECORDING_SPACE));
        uint64_t who = fuzz_byte(in);
        size_t len = fuzz_length(in);
        recording_put(out, kind, time_us++, who, NULL, 0, in->at, len);
        in->at += len;
        in->left -= len;
    }
}

/* What a replay prints, with a byte for its status behind it. */
static size_t run(const char *path, uint32_t index, char **text)
{
    size_t len;
    FILE *out = open_memstream(text, &len);
    CHECK(out != NULL);
    int status = replay(path, index, out);
    CHECK(status == 0 || status == 1);
    fputc('0' + status, out);
    fclose(out);
    return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere; /* most inputs are refused, with a line on stderr */
    struct fuzz_input in = {data, size};
    struct buf recording = {0};
    char path[64], *grid, *crosslist;
    if (nowhere == NULL) nowhere = fopen("/dev/null", "we");
    int fd = memfd_create("recording", MFD_CLOEXEC);
    CHECK(fd >= 0 && nowhere != NULL);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    put_entries(&in, &recording);
    CHECK(write(fd, buf_data(&recording), buf_len(&recording)) == (ssize_t)buf_len(&recording));
    FILE *saved = stderr;
    stderr = nowhere;
    size_t grid_len = run(path, AOI_INDEX_GRID, &grid), crosslist_len = run(path, AOI_INDEX_CROSSLIST, &crosslist);
    stderr = saved;
    if (getenv("AOI_TRACE") != NULL) fputs(grid, stdout);
    CHECK(grid_len == crosslist_len && memcmp(grid, crosslist, grid_len) == 0);
    free(grid);
    free(crosslist);
    buf_clear(&recording);
    close(fd);
    return 0;
}
