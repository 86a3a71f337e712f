/* config.h: the daemon's options: one table drives the configuration file, --set, --help and the check of the documents. */
#ifndef AOI_SERVER_CONFIG_H
#define AOI_SERVER_CONFIG_H

#include <stdio.h>
#include <sys/socket.h>

#include "base/array.h"
#include "core/aoi.h"

#define CONFIG_ERROR_MAX 512 /* room enough for any message of this file */
#define CONFIG_PATH_MAX 256
#define CONFIG_SOCKET_MAX 108 /* of a Unix socket's path */
#define CONFIG_IDS_MAX 32

/* Numbers of users or groups. */
struct config_ids {
    uint32_t n, id[CONFIG_IDS_MAX];
};

/* Where something listens. */
struct config_address {
    char text[64];                  /* as given */
    struct sockaddr_storage socket; /* family 0: none */
};

/* A space that is there from the start. */
struct config_space {
    char label[64]; /* what stands behind "space" in its section's name */
    uint64_t id;    /* the option, or the label if that is a number; 0: neither was given */
    struct aoi_settings settings;
    uint64_t given;   /* bit i: option i of the table was set by the file */
    const char *path; /* borrowed: of the file where its section is; NULL: not from a file */
    int line;
};

struct config {
    /* [server] */
    struct config_address listen, http_listen;
    char unix_socket[CONFIG_PATH_MAX]; /* "": none */
    uint32_t unix_mode;
    struct config_ids unix_allow_uids, unix_allow_gids; /* both empty: whoever can open the socket */
    char tokens_file[CONFIG_PATH_MAX];                  /* "": none, as with those below */
    char tls_cert[CONFIG_PATH_MAX], tls_key[CONFIG_PATH_MAX], tls_client_ca[CONFIG_PATH_MAX];
    char record[CONFIG_PATH_MAX];   /* "": nothing is recorded */
    char snapshot[CONFIG_PATH_MAX]; /* "": what there is ends with the daemon */
    uint32_t snapshot_s;            /* 0: only at the end */
    uint32_t log_level;             /* enum log_level */
    uint32_t oracle_players;        /* checked after each flush */
    uint32_t hello_timeout_ms, frame_timeout_ms, idle_timeout_ms, drain_timeout_ms;
    /* [limits] */
    uint64_t max_memory_bytes; /* 0: no limit */
    uint64_t max_frame_bytes, out_soft_bytes, out_hard_bytes;
    uint32_t out_soft_ms, max_connections, max_sessions, max_lease_ms, query_page;
    uint32_t max_spaces, max_entities, max_players, max_units, max_overrides, max_payload, max_message, max_messages_per_flush;
    float max_radius;

    ARRAY(struct config_space) spaces;
    uint64_t given;  /* as in struct config_space */
    bool files_only; /* set by who reads it while the daemon runs: see config_unfit() */
};

/* A config of which something was refused is good for config_clear() alone. */
void config_init(struct config *config); /* the defaults */
void config_clear(struct config *config);

/* Reads a file, which must be fit, over what is there. 0, or -1 with the first fault in err[CONFIG_ERROR_MAX] as "FILE:LINE: what". */
int config_load(struct config *config, const char *path, char *err);
int config_read(struct config *config, FILE *file, const char *path, char *err);
/* NULL, or why a file is not to be read: with files_only none is that is no regular file, for the daemon would stand still until somebody has written into a pipe. */
const char *config_unfit(const struct config *config, const char *path);
/* As fgets() into text[size], but tells whether what it read is a line: it fits, and there is no zero byte in it, nor at its beginning nor behind its end. */
enum config_line { CONFIG_LINE_NONE /* there is no more */, CONFIG_LINE, CONFIG_LINE_LONG, CONFIG_LINE_ZERO };
enum config_line config_read_line(char *text, int size, FILE *file);
/* One "name=value"; the name may be preceded by its section and a dot ("limits.query_page", "space.7.flush_ms"). 0, or -1 with err. */
int config_set(struct config *config, const char *assignment, char *err);
struct aoi_limits config_limits(const struct config *config);                         /* for the core */
const struct config_space *config_space_of(const struct config *config, uint64_t id); /* NULL: it has none of this id */
/* What only holds between options; to be called when all are set. 0, or -1 with err. */
int config_check(struct config *config, char *err);

/* The configuration was read anew, and is fine: copies what may change while the daemon runs. Lists the names of what was changed so, and of what differs but needs
 * a restart (with commas; "": none). Spaces are not looked at. */
void config_take(struct config *running, const struct config *fresh, char changed[CONFIG_ERROR_MAX], char restart[CONFIG_ERROR_MAX]);
void config_list(char list[CONFIG_ERROR_MAX], const char *name); /* one more in such a list */

void config_take_spaces(struct config *running, struct config *fresh); /* fresh's become running's */

/* Names in the configuration of an enum aoi_index and an enum aoi_shape, which must be one. */
const char *config_index_name(uint32_t index);
const char *config_shape_name(uint32_t shape);
uint32_t config_index_of(const char *name); /* 0: there is no such index */

/* Whether an address, of either family, can only be reached from this machine. */
bool config_is_loopback(const struct sockaddr_storage *address);

void config_print_help(FILE *out);
void config_print_options(FILE *out); /* for scripts: lines of "section.name default" */

#endif
