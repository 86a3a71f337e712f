/* record.c: keeps what came in, in a file, so that a run can be replayed. */
#include "server/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "server/flusher.h"
#include "server/tokens.h"
#include "wire/codec.h"
#include "wire/frame.h"

#define KEEP_BYTES ((size_t)1024 * 1024) /* of an empty buffer */
#define WRITE_BYTES ((size_t)256 * 1024) /* are written before the turn is over */

static void put(struct record *record, enum recording_kind kind, uint64_t who, const uint64_t *numbers, size_t n, const void *bytes, size_t len)
{
    if (record == NULL || record->fd < 0) return;
    recording_put(&record->out, kind, flusher_time_us(), who, numbers, n, bytes, len);
    if (buf_len(&record->out) > WRITE_BYTES) record_write(record);
}

void record_write(struct record *record)
{
    if (record == NULL || record->fd < 0) return;
    while (buf_len(&record->out) > 0) {
        ssize_t wrote = write(record->fd, buf_data(&record->out), buf_len(&record->out));
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) {
            log_error("record", "file=%s error=\"%s\" why=\"nothing more is recorded; the daemon goes on\"", record->path, strerror(errno));
            close(record->fd);
            record->fd = -1;
            buf_clear(&record->out);
            return;
        }
        buf_consume(&record->out, (size_t)wrote);
    }
    buf_shrink(&record->out, KEEP_BYTES);
}

/* ------------------------------------------------------------------------------------------------------------- entries */

/* A batch of one command, as a client would send it. */
static void put_command(struct record *record, enum recording_kind kind, uint64_t space, const struct codec_command *command)
{
    struct buf bytes = {0};
    const struct codec_client_frame frame = {.kind = CODEC_BATCH,
                                             .u.batch = {.space = space, .command_n = 1, .commands = (struct codec_command *)(uintptr_t)command}};
    size_t len = codec_encode_client(&frame, &bytes);
    put(record, kind, space, NULL, 0, bytes.at + bytes.end - len, len);
    buf_clear(&bytes);
}

void record_space(struct record *record, uint64_t space, const struct aoi_settings *settings)
{
    if (record == NULL) return;
    const struct codec_create_space create = {.settings = *settings};
    put_command(record, RECORDING_SPACE, space, &(struct codec_command){.kind = CODEC_CREATE_SPACE, .u.create_space = &create});
}

void record_change(struct record *record, uint64_t space, const struct aoi_space_change *change)
{
    if (record == NULL) return;
    const struct codec_set_space set = {.change = *change};
    put_command(record, RECORDING_CHANGE, space, &(struct codec_command){.kind = CODEC_SET_SPACE, .u.set_space = &set});
}

void record_session(struct record *record, enum recording_kind kind, aoi_owner owner)
{
    put(record, kind, owner, NULL, 0, NULL, 0);
}

void record_connected(struct record *record, enum recording_kind kind, aoi_owner owner, uint64_t session, const struct token *token)
{
    const uint64_t numbers[] = {session, token->role};
    put(record, kind, owner, numbers, 2, token->name, strlen(token->name));
}

void record_frame(struct record *record, aoi_owner owner, const void *bytes, size_t len)
{
    put(record, RECORDING_FRAME, owner, NULL, 0, bytes, len);
}

void record_flush(struct record *record, const struct aoi_space *space, const struct aoi_flush_info *info)
{
    const uint64_t numbers[] = {info->tag, info->time_us, info->now_ms, info->final};
    put(record, RECORDING_FLUSH, aoi_space_id(space), numbers, 4, NULL, 0);
}

/* ------------------------------------------------------------------------------------------------------------- the file */

static void put_limits(struct record *record, const struct config *config)
{
    uint32_t radius_bits;
    memcpy(&radius_bits, &config->max_radius, sizeof radius_bits);
    const uint64_t limits[LIMITS] = {[LIMIT_FRAME_BYTES] = config->max_frame_bytes,
                                     [LIMIT_SPACES] = config->max_spaces,
                                     [LIMIT_ENTITIES] = config->max_entities,
                                     [LIMIT_PLAYERS] = config->max_players,
                                     [LIMIT_UNITS] = config->max_units,
                                     [LIMIT_PAYLOAD] = config->max_payload,
                                     [LIMIT_RADIUS_BITS] = radius_bits,
                                     [LIMIT_OVERRIDES] = config->max_overrides,
                                     [LIMIT_MESSAGE] = config->max_message,
                                     [LIMIT_MESSAGES] = config->max_messages_per_flush,
                                     [LIMIT_QUERY_PAGE] = config->query_page};
    put(record, RECORDING_LIMITS, 0, limits, LIMITS, NULL, 0);
}

bool record_failed(const struct record *record)
{
    return record != NULL && record->fd < 0;
}

struct record *record_new(const struct config *config, char *err)
{
    char old[CONFIG_PATH_MAX + 8];
    const char *path = config->record;
    snprintf(old, sizeof old, "%s.old", path);
    if (rename(path, old) == 0) log_info("record", "renamed=%s to=%s", path, old);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); /* what players do is nobody else's business */
    if (fd < 0) {
        snprintf(err, CONFIG_ERROR_MAX, "record = %.300s: cannot be written: %s", path, strerror(errno));
        return NULL;
    }
    struct record *record = mem_zalloc(sizeof *record);
    record->fd = fd;
    record->path = path;
    recording_put_head(&record->out);
    put_limits(record, config);
    for (uint32_t i = 0; i < config->spaces.n; i++) record_space(record, config->spaces.at[i].id, &config->spaces.at[i].settings);
    record_write(record);
    if (!record_failed(record)) log_info("record", "file=%s", path);
    return record;
}

void record_free(struct record *record)
{
    if (record == NULL) return;
    record_write(record);
    if (record->fd >= 0) close(record->fd);
    buf_clear(&record->out);
    free(record);
}
