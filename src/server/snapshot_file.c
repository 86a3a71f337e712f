/* snapshot_file.c: the file in which the world and the sessions outlive the daemon. */
#include "server/snapshot_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <lzma.h>
#include <stdio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "server/flusher.h"

#define WRITE_BYTES ((size_t)256 * 1024)
#define SECTION_HEAD 20  /* number, length, checksum */
#define SESSION_BYTES 56 /* and from version 2 on the name of its token, from 3 on that of its client, each with its length in a byte */
#define CLOSED_BYTES 48
#define LOST_BYTES 17
#define OWNERS_MOST (1u << 21) /* twice what max_sessions may be: by their numbers stand arrays */

enum section { SECTION_DAEMON = 1, SECTION_SESSIONS, SECTION_WORLD, SECTIONS = SECTION_WORLD };
static const char magic[8] = {'a', 'o', 'i', 'd', 's', 'n', 'a', 'p'};

/* ------------------------------------------------------------------------------------------------------------- writing */

struct writer {
    int fd;
    int error;     /* errno of the first thing that failed; then nothing more is written */
    uint64_t len;  /* of the file, with what waits in out */
    uint64_t body; /* the length of the section, and its checksum, so far */
    uint64_t crc;
    struct buf out;
};

static void write_out(struct writer *w)
{
    while (buf_len(&w->out) > 0 && w->error == 0) {
        ssize_t wrote = write(w->fd, buf_data(&w->out), buf_len(&w->out));
        if (wrote >= 0)
            buf_consume(&w->out, (size_t)wrote);
        else if (errno != EINTR)
            w->error = errno;
    }
}

static void put(void *ctx, const void *bytes, size_t len)
{
    struct writer *w = ctx;
    if (w->error != 0 || len == 0) return;
    buf_append(&w->out, bytes, len);
    w->crc = lzma_crc64(bytes, len, w->crc);
    w->len += len;
    w->body += len;
    if (buf_len(&w->out) >= WRITE_BYTES) write_out(w);
}

/* What has been put since `at`, where room was left for it, becomes a section. */
static void end_section(struct writer *w, enum section number, uint64_t at)
{
    struct buf head = {0};
    bytes_put(&head, number, 4);
    bytes_put(&head, w->body, 8);
    bytes_put(&head, lzma_crc64(buf_data(&head), buf_len(&head), w->crc), 8);
    write_out(w);
    if (w->error == 0 && pwrite(w->fd, buf_data(&head), SECTION_HEAD, (off_t)at) != SECTION_HEAD) w->error = errno != 0 ? errno : EIO;
    buf_clear(&head);
}

static uint64_t begin_section(struct writer *w)
{
    static const char room[SECTION_HEAD];
    uint64_t at = w->len;
    put(w, room, sizeof room);
    w->body = w->crc = 0;
    return at;
}

static void put_notices(struct buf *out, const struct notices *notices)
{
    bytes_put(out, notices->closed.n, 4);
    bytes_put(out, notices->closed_sent, 4);
    bytes_put(out, notices->lost.n, 4);
    bytes_put(out, notices->lost_sent, 4);
    for (uint32_t i = 0; i < notices->closed.n; i++) {
        const struct notice_closed *c = &notices->closed.at[i];
        bytes_put(out, c->space, 8);
        bytes_put(out, c->player, 8);
        bytes_put(out, c->seq, 8);
        bytes_put(out, c->flush, 8);
        bytes_put(out, c->time_us, 8);
        bytes_put(out, c->messages_lost, 8);
    }
    for (uint32_t i = 0; i < notices->lost.n; i++) {
        bytes_put(out, notices->lost.at[i].space, 8);
        bytes_put(out, notices->lost.at[i].id, 8);
        bytes_put(out, notices->lost.at[i].is_player, 1);
    }
}

static void put_name(struct buf *out, const char *name)
{
    bytes_put(out, strlen(name), 1);
    buf_append(out, name, strlen(name));
}

static void put_sessions(struct writer *w, const struct sessions *sessions)
{
    struct buf out = {0};
    bytes_put(&out, sessions->by_id.n, 4);
    for (uint32_t i = 0; i < sessions->by_owner.n; i++) {
        const struct standing *standing = sessions->by_owner.at[i];
        if (standing == NULL) continue;
        bytes_put(&out, standing->owner, 4);
        bytes_put(&out, standing->id, 8);
        bytes_put(&out, standing->last_seq, 8);
        bytes_put(&out, standing->lease_ms, 4);
        buf_append(&out, standing->resume_token, RESUME_TOKEN_BYTES);
        put_name(&out, standing->token_name);
        put_name(&out, standing->client);
        put_notices(&out, &standing->notices);
        put(w, buf_data(&out), buf_len(&out));
        buf_consume(&out, buf_len(&out));
    }
    put(w, buf_data(&out), buf_len(&out));
    buf_clear(&out);
}

static void put_sections(struct writer *w, const struct sessions *sessions, const struct aoi_world *world, uint64_t now_ms)
{
    struct buf out = {0};
    put(w, magic, sizeof magic);
    bytes_put(&out, SNAPSHOT_FILE_VERSION, 4);
    put(w, buf_data(&out), buf_len(&out));
    buf_consume(&out, buf_len(&out));

    uint64_t at = begin_section(w);
    bytes_put(&out, flusher_time_us(), 8);
    bytes_put(&out, sessions->last_id, 8);
    put(w, buf_data(&out), buf_len(&out));
    end_section(w, SECTION_DAEMON, at);
    buf_clear(&out);

    at = begin_section(w);
    put_sessions(w, sessions);
    end_section(w, SECTION_SESSIONS, at);

    at = begin_section(w);
    aoi_world_save(world, now_ms, put, w);
    end_section(w, SECTION_WORLD, at);
}

/* A name is as lasting as the folder in which it stands. */
static int sync_folder(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;
    if (fd < 0) return errno;
    if (fsync(fd) != 0 && errno != EINVAL) error = errno; /* EINVAL: a file system that knows of no such thing */
    close(fd);
    return error;
}

int snapshot_file_write(const char *path, const struct sessions *sessions, const struct aoi_world *world, uint64_t now_ms, uint64_t *len)
{
    char fresh[PATH_MAX];
    snprintf(fresh, sizeof fresh, "%s" SNAPSHOT_FILE_SUFFIX, path);
    unlink(fresh); /* of a daemon that was ended while it wrote */
    struct writer w = {.fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    if (w.fd < 0) return errno;
    put_sections(&w, sessions, world, now_ms);
    write_out(&w);
    buf_clear(&w.out);
    if (w.error == 0 && fsync(w.fd) != 0) w.error = errno;
    if (close(w.fd) != 0 && w.error == 0) w.error = errno;
    if (w.error == 0 && rename(fresh, path) != 0) w.error = errno;
    if (w.error != 0) {
        unlink(fresh);
        return w.error;
    }
    *len = w.len;
    return sync_folder(path);
}

/* ------------------------------------------------------------------------------------------------------------- reading */

static void take_notices(struct bytes_in *in, struct notices *notices)
{
    uint32_t closed = (uint32_t)bytes_take(in, 4), closed_sent = (uint32_t)bytes_take(in, 4);
    uint32_t lost = (uint32_t)bytes_take(in, 4), lost_sent = (uint32_t)bytes_take(in, 4);
    if ((uint64_t)closed * CLOSED_BYTES + (uint64_t)lost * LOST_BYTES > in->left) bytes_fail(in, "a count is more than there are bytes for");
    if (closed_sent > closed || lost_sent > lost) bytes_fail(in, "more was sent than there is");
    for (uint32_t i = 0; i < closed && in->fault == NULL; i++) {
        struct notice_closed *c = array_add(&notices->closed);
        *c = (struct notice_closed){.space = bytes_take(in, 8)};
        c->player = bytes_take(in, 8);
        c->seq = bytes_take(in, 8);
        c->flush = bytes_take(in, 8);
        c->time_us = bytes_take(in, 8);
        c->messages_lost = bytes_take(in, 8);
    }
    for (uint32_t i = 0; i < lost && in->fault == NULL; i++) {
        struct notice_lost *l = array_add(&notices->lost);
        *l = (struct notice_lost){.space = bytes_take(in, 8)};
        l->id = bytes_take(in, 8);
        l->is_player = bytes_take_flag(in);
    }
    if (in->fault != NULL) return;
    notices->closed_sent = closed_sent;
    notices->lost_sent = lost_sent;
}

static void take_name(struct bytes_in *in, char *name, size_t most)
{
    size_t len = (size_t)bytes_take(in, 1);
    const uint8_t *at = bytes_take_raw(in, len);
    if (len > most || (at != NULL && memchr(at, 0, len) != NULL)) bytes_fail(in, "the name of a token or a client is none");
    if (in->fault == NULL && len > 0) memcpy(name, at, len);
}

static void take_session(struct bytes_in *in, uint32_t version, struct sessions *sessions)
{
    char name[TOKEN_NAME_MAX + 1] = "", client[SESSION_CLIENT_MAX + 1] = "";
    uint64_t owner = bytes_take(in, 4), id = bytes_take(in, 8), last_seq = bytes_take(in, 8);
    uint32_t lease_ms = (uint32_t)bytes_take(in, 4);
    const uint8_t *token = bytes_take_raw(in, RESUME_TOKEN_BYTES);
    if (version >= 2) take_name(in, name, TOKEN_NAME_MAX);
    if (version >= 3) take_name(in, client, SESSION_CLIENT_MAX);
    if (owner <= sessions->by_owner.n || owner > OWNERS_MOST) bytes_fail(in, "its sessions do not ascend by owner");
    if (id == 0 || id > sessions->last_id || sessions_of_id(sessions, id) != NULL)
        bytes_fail(in, "two sessions have the same id, or one is of the future");
    if (in->fault != NULL) return;
    struct standing *standing = sessions_restore(sessions, (aoi_owner)owner, id, lease_ms, token);
    standing->last_seq = last_seq;
    memcpy(standing->token_name, name, sizeof name);
    memcpy(standing->client, client, sizeof client);
    take_notices(in, &standing->notices);
}

static void take_sessions(struct bytes_in *in, uint32_t version, struct sessions *sessions)
{
    uint32_t n = bytes_take_count(in, SESSION_BYTES);
    for (uint32_t i = 0; i < n && in->fault == NULL; i++) take_session(in, version, sessions);
    if (in->left > 0) bytes_fail(in, "there are bytes behind the last session");
}

/* The section that comes next, if it is whole and as it was written. */
static struct bytes_in take_section(struct bytes_in *in, enum section number)
{
    const uint8_t *head = in->at;
    uint64_t is = bytes_take(in, 4), len = bytes_take(in, 8), crc = bytes_take(in, 8);
    const uint8_t *body = len <= SIZE_MAX ? bytes_take_raw(in, (size_t)len) : NULL;
    if (in->fault != NULL || body == NULL) {
        bytes_fail(in, "it ends too early");
        return (struct bytes_in){0};
    }
    if (is != number || lzma_crc64(head, 12, lzma_crc64(body, (size_t)len, 0)) != crc)
        bytes_fail(in, "it is damaged: a checksum is not that of its bytes");
    return (struct bytes_in){.at = body, .left = (size_t)len};
}

static bool knows(void *ctx, aoi_owner owner)
{
    const struct snapshot_loading *how = ctx;
    return sessions_of_owner(how->sessions, owner) != NULL;
}

static struct aoi_world *take_world(const struct bytes_in *in, struct snapshot_loading *how, char *why)
{
    const struct aoi_load load = {.bytes = in->at,
                                  .len = in->left,
                                  .now_ms = how->now_ms,
                                  .passed_ms = how->now_us > how->saved_us ? (how->now_us - how->saved_us) / 1000 : 0,
                                  .knows = knows,
                                  .settings = how->settings,
                                  .ctx = how};
    return aoi_world_load(how->limits, how->sink, &load, why);
}

/* The sections' bytes, of which all are as they were written, and their version. False, with file->fault. */
static bool take_file(struct bytes_in *file, struct bytes_in section[SECTIONS + 1], uint32_t *version)
{
    const uint8_t *begin = bytes_take_raw(file, sizeof magic);
    if (begin == NULL || memcmp(begin, magic, sizeof magic) != 0) {
        file->fault = "it is no snapshot of aoid";
        return false;
    }
    *version = (uint32_t)bytes_take(file, 4);
    if (*version < 1 || *version > SNAPSHOT_FILE_VERSION) bytes_fail(file, "it is of another version of aoid");
    for (enum section i = SECTION_DAEMON; i <= SECTIONS; i++) section[i] = take_section(file, i);
    if (file->left > 0) bytes_fail(file, "there are bytes behind its end");
    return file->fault == NULL;
}

struct aoi_world *snapshot_file_read(const void *bytes, size_t len, struct sessions *sessions, struct snapshot_loading *how,
                                     char why[SNAPSHOT_FILE_WHY])
{
    struct bytes_in file = {.at = bytes, .left = len}, section[SECTIONS + 1];
    uint32_t version;
    if (!take_file(&file, section, &version)) {
        snprintf(why, SNAPSHOT_FILE_WHY, "%s", file.fault);
        return NULL;
    }
    uint64_t first_id = sessions->last_id;
    how->sessions = sessions;
    how->saved_us = bytes_take(&section[SECTION_DAEMON], 8);
    sessions->last_id = bytes_take(&section[SECTION_DAEMON], 8);
    if (section[SECTION_DAEMON].left > 0) bytes_fail(&section[SECTION_DAEMON], "its first section is too long");
    take_sessions(&section[SECTION_SESSIONS], version, sessions);
    const char *fault = section[SECTION_DAEMON].fault != NULL ? section[SECTION_DAEMON].fault : section[SECTION_SESSIONS].fault;
    struct aoi_world *world = NULL;
    if (fault != NULL)
        snprintf(why, SNAPSHOT_FILE_WHY, "%s", fault);
    else
        world = take_world(&section[SECTION_WORLD], how, why);
    if (world == NULL) sessions_clear(sessions);
    if (world == NULL || sessions->last_id < first_id) sessions->last_id = first_id; /* no id is ever given twice */
    return world;
}
