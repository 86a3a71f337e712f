/* record.h: keeps what came in, in a file, so that a run can be replayed: what applied frames said, how sessions went, when spaces were flushed. */
#ifndef AOI_SERVER_RECORD_H
#define AOI_SERVER_RECORD_H

#include "server/config.h"
#include "wire/recording.h"

struct token;

struct record {
    int fd; /* -1: a write failed, and nothing more is kept */
    const char *path;
    struct buf out; /* not written yet */
};

/* Begins a file with the limits and the spaces of the configuration; one that is there is renamed to PATH.old. NULL with err[CONFIG_ERROR_MAX]: it cannot. */
struct record *record_new(const struct config *config, char *err);
/* Writes what has come, once a turn of the loop: after a crash what led to it stands in the file, but for that turn. NULL is fine, here and below. */
void record_write(struct record *record);
bool record_failed(const struct record *record); /* a write failed: nothing more is kept */
void record_free(struct record *record);

void record_session(struct record *record, enum recording_kind kind, aoi_owner owner); /* LEAVE, END */
/* BEGIN, RESUME. */
void record_connected(struct record *record, enum recording_kind kind, aoi_owner owner, uint64_t session, const struct token *token);
void record_frame(struct record *record, aoi_owner owner, const void *bytes, size_t len);
void record_flush(struct record *record, const struct aoi_space *space, const struct aoi_flush_info *info);
/* A space of the configuration that was made, or got other rules. */
void record_space(struct record *record, uint64_t space, const struct aoi_settings *settings);
void record_change(struct record *record, uint64_t space, const struct aoi_space_change *change);

#endif
