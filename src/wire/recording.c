/* recording.c: the file in which a daemon's input is kept, to be replayed. */
#include "wire/recording.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/frame.h"

/* An entry is the length of its body in 4 bytes, kind in 4, time_us and who in 8 each, and the body; numbers are little-endian. */
static const char head[16] = "aoid recording\n\1"; /* the last byte is the format's version */
#define ENTRY_BYTES 24
#define NUMBER_BYTES 8

void recording_put_head(struct buf *out)
{
    buf_append(out, head, sizeof head);
}

void recording_put(struct buf *out, enum recording_kind kind, uint64_t time_us, uint64_t who, const uint64_t *numbers, size_t number_n,
                   const void *bytes, size_t len)
{
    bytes_put(out, number_n * NUMBER_BYTES + len, 4);
    bytes_put(out, kind, 4);
    bytes_put(out, time_us, 8);
    bytes_put(out, who, 8);
    for (size_t i = 0; i < number_n; i++) bytes_put(out, numbers[i], NUMBER_BYTES);
    buf_append(out, bytes, len);
}

uint64_t recording_number(const struct recording_entry *entry, size_t i)
{
    if (entry->len < (i + 1) * NUMBER_BYTES) return 0;
    struct bytes_in in = {.at = entry->body + i * NUMBER_BYTES, .left = NUMBER_BYTES};
    return bytes_take(&in, NUMBER_BYTES);
}

/* Whether the file begins as a recording does, of whatever format. */
static bool read_head(FILE *file, char got[sizeof head])
{
    return fread(got, 1, sizeof head, file) == sizeof head && memcmp(got, head, sizeof head - 1) == 0;
}

bool recording_is(const char *path)
{
    char got[sizeof head];
    FILE *file = fopen(path, "re");
    bool is = file != NULL && read_head(file, got);
    if (file != NULL) fclose(file);
    return is;
}

int recording_open(struct recording *recording, const char *path, char *err)
{
    char got[sizeof head] = "";
    *recording = (struct recording){.path = path, .file = fopen(path, "re"), .offset = sizeof head};
    if (recording->file == NULL)
        snprintf(err, RECORDING_ERROR_MAX, "%.300s: %s", path, strerror(errno));
    else if (!read_head(recording->file, got))
        snprintf(err, RECORDING_ERROR_MAX, "%.300s: is not a recording of aoid", path);
    else if (got[sizeof head - 1] != head[sizeof head - 1])
        snprintf(err, RECORDING_ERROR_MAX, "%.300s: was recorded by a version that writes format %d; this one reads format %d", path,
                 got[sizeof head - 1], head[sizeof head - 1]);
    else
        return 0;
    return -1;
}

void recording_close(struct recording *recording)
{
    if (recording->file != NULL) fclose(recording->file);
    recording->file = NULL;
    buf_clear(&recording->body);
}

static int damaged(const struct recording *recording, const char *what, char *err)
{
    snprintf(err, RECORDING_ERROR_MAX, "%.300s: %s at byte %llu; the %llu entries before it are whole", recording->path, what,
             (unsigned long long)recording->offset, (unsigned long long)recording->entries);
    return -1;
}

int recording_next(struct recording *recording, struct recording_entry *entry, char *err)
{
    uint8_t fixed[ENTRY_BYTES];
    size_t got = fread(fixed, 1, sizeof fixed, recording->file);
    if (got == 0 && !ferror(recording->file)) return 0;
    if (got < sizeof fixed) return damaged(recording, ferror(recording->file) ? "cannot be read" : "is cut off within an entry", err);
    struct bytes_in in = {.at = fixed, .left = sizeof fixed};
    uint64_t len = bytes_take(&in, 4), kind = bytes_take(&in, 4), time_us = bytes_take(&in, 8), who = bytes_take(&in, 8);
    if (kind < RECORDING_LIMITS || kind >= RECORDING_KINDS || len > FRAME_BODY_MAX + 4096) return damaged(recording, "is damaged", err);
    uint8_t *body = buf_reserve(&recording->body, (size_t)len + 1);
    if (fread(body, 1, (size_t)len, recording->file) < len) return damaged(recording, "is cut off within an entry", err);
    *entry = (struct recording_entry){.kind = (enum recording_kind)kind, .time_us = time_us, .who = who, .body = body, .len = (size_t)len};
    recording->offset += sizeof fixed + len;
    recording->entries++;
    return 1;
}
