/* recording.c: the file in which a daemon's input is kept, to be replayed. */
#include "wire/recording.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "wire/frame.h"

/* An entry is the length of its body in 4 bytes, kind in 4, time_us and who in 8 each, and the body; numbers are little-endian. */
static const char head[16] = "aoid recording\n\1"; /* the last byte is the format's version */
#define ENTRY_BYTES 24
#define NUMBER_BYTES 8

static void put_number(struct buf *out, uint64_t value, size_t bytes)
{
    uint8_t *at = buf_reserve(out, bytes);
    for (size_t i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> 8 * i);
    out->end += bytes;
}

static uint64_t get_number(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)at[i] << 8 * i;
    return value;
}

void recording_put_head(struct buf *out)
{
    buf_append(out, head, sizeof head);
}

void recording_put(struct buf *out, enum recording_kind kind, uint64_t time_us, uint64_t who, const uint64_t *numbers, size_t number_n,
                   const void *bytes, size_t len)
{
    put_number(out, number_n * NUMBER_BYTES + len, 4);
    put_number(out, kind, 4);
    put_number(out, time_us, 8);
    put_number(out, who, 8);
    for (size_t i = 0; i < number_n; i++) put_number(out, numbers[i], NUMBER_BYTES);
    buf_append(out, bytes, len);
}

uint64_t recording_number(const struct recording_entry *entry, size_t i)
{
    return entry->len < (i + 1) * NUMBER_BYTES ? 0 : get_number(entry->body + i * NUMBER_BYTES, NUMBER_BYTES);
}

bool recording_is(const char *path)
{
    char got[sizeof head];
    FILE *file = fopen(path, "re");
    bool is = file != NULL && fread(got, 1, sizeof got, file) == sizeof got && memcmp(got, head, sizeof head - 1) == 0;
    if (file != NULL) fclose(file);
    return is;
}

int recording_open(struct recording *recording, const char *path, char *err)
{
    char got[sizeof head] = "";
    *recording = (struct recording){.path = path, .file = fopen(path, "re"), .offset = sizeof head};
    if (recording->file == NULL)
        snprintf(err, RECORDING_ERROR_MAX, "%.300s: %s", path, strerror(errno));
    else if (fread(got, 1, sizeof got, recording->file) != sizeof got || memcmp(got, head, sizeof head - 1) != 0)
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
    uint64_t len = get_number(fixed, 4), kind = get_number(fixed + 4, 4);
    if (kind < RECORDING_LIMITS || kind >= RECORDING_KINDS || len > FRAME_BODY_MAX + 4096) return damaged(recording, "is damaged", err);
    buf_clear(&recording->body);
    uint8_t *body = buf_reserve(&recording->body, (size_t)len + 1);
    if (fread(body, 1, (size_t)len, recording->file) < len) return damaged(recording, "is cut off within an entry", err);
    *entry = (struct recording_entry){
        .kind = (enum recording_kind)kind, .time_us = get_number(fixed + 8, 8), .who = get_number(fixed + 16, 8), .body = body, .len = (size_t)len};
    recording->offset += sizeof fixed + len;
    recording->entries++;
    return 1;
}
