/* codec.h: protobuf <-> plain structs, both directions; the codec's files alone see the generated code.
 *
 * Decoding unpacks into an arena: every pointer in a decoded struct lives until the arena is reset. Encoding appends one complete length-prefixed frame to
 * a buf. The columns of MoveEntities and of deltas are not copied between protobuf-c's arrays and these structs.
 */
#ifndef AOI_WIRE_CODEC_H
#define AOI_WIRE_CODEC_H

#include "base/arena.h"
#include "base/buf.h"
#include "core/aoi.h"

#define CODEC_PROTOCOL_VERSION 1

/* Codes of the wire; the first nine are -AOI_E... */
enum codec_code {
    CODEC_OK = 0,
    CODEC_INVALID_ARGUMENT = 1,
    CODEC_OUT_OF_BOUNDS,
    CODEC_UNKNOWN_SPACE,
    CODEC_UNKNOWN_ENTITY,
    CODEC_UNKNOWN_PLAYER,
    CODEC_DUPLICATE_SPACE,
    CODEC_DUPLICATE_ENTITY,
    CODEC_NOT_OWNER,
    CODEC_LIMIT_EXCEEDED,
    CODEC_UNSUPPORTED,
    CODEC_UNAUTHENTICATED,
    CODEC_MALFORMED,
    CODEC_FRAME_TOO_LARGE,
    CODEC_DRAINING,
    CODEC_CODES /* how many */
};
const char *codec_code_name(int code); /* "INVALID_ARGUMENT"; "UNKNOWN" for a number that is none */

/* ------------------------------------------------------------------------------------------------------------- client -> server */

enum codec_command_kind {
    CODEC_COMMAND_NONE, /* unset or unknown oneof: CODEC_UNSUPPORTED */
    CODEC_CREATE_SPACE,
    CODEC_DESTROY_SPACE,
    CODEC_ADD_ENTITY,
    CODEC_MOVE_ENTITIES,
    CODEC_REMOVE_ENTITIES,
    CODEC_SET_RADIUS,
    CODEC_SET_LAYERS,
    CODEC_SET_PAYLOAD,
    CODEC_OPEN_PLAYER,
    CODEC_CLOSE_PLAYER,
    CODEC_SUBSCRIBE,
    CODEC_UNSUBSCRIBE,
    CODEC_SET_VIEWPORT,
    CODEC_CLEAR_VIEWPORT,
    CODEC_FLUSH,
    CODEC_SET_SPACE,
    CODEC_SET_APPEAL,
    CODEC_SET_PRIORITY,
    CODEC_RELEASE,
    CODEC_OVERRIDE,
    CODEC_PUBLISH,
    CODEC_COMMANDS
};

/* Where a message is published. */
enum codec_publish_kind { CODEC_PUBLISH_NOWHERE, CODEC_PUBLISH_ENTITY, CODEC_PUBLISH_POINT, CODEC_PUBLISH_BOX };

struct codec_create_space {
    struct aoi_settings settings; /* flush_ms: the default where the field is not set */
    const char *tiers_error;      /* what is wrong with update_tiers, a literal; NULL: nothing */
    bool if_absent;
};

struct codec_set_space {
    struct aoi_space_change change;
    const char *tiers_error; /* likewise */
};

struct codec_command {
    enum codec_command_kind kind;
    union {
        const struct codec_create_space *create_space; /* these two, large and rare, lie beside the commands: a batch takes 88 bytes a command */
        const struct codec_set_space *set_space;
        struct {
            struct aoi_entity entity;
            uint32_t mode; /* enum aoi_add_mode; an unknown number is kept, so that the handler refuses it */
        } add_entity;
        struct {
            size_t id_n, x_n, y_n, z_n, extra_n; /* as received: the handler compares them */
            const uint64_t *id;
            const float *x, *y, *z;
            const uint32_t *extra;
        } move_entities;
        struct {
            size_t id_n;
            const uint64_t *id;
        } remove_entities;
        struct {
            uint64_t id;
            float radius;
        } set_radius;
        struct {
            uint64_t id;
            uint32_t layers;
        } set_layers;
        struct {
            uint64_t id;
            const void *payload;
            size_t payload_len;
        } set_payload;
        struct {
            uint64_t player;
            struct aoi_player_settings settings;
        } open_player;
        struct {
            uint64_t id;
            float appeal;
        } set_appeal;
        struct {
            uint64_t id;
            uint32_t priority;
        } set_priority;
        struct {
            size_t entity_n, player_n;
            const uint64_t *entities, *players;
            uint64_t to_session;
        } release;
        struct {
            uint64_t player, entity;
            uint32_t kind; /* enum aoi_override; an unknown number is kept, 0 becomes AOI_OVERRIDE_NONE */
        } override;
        struct {
            enum codec_publish_kind kind;
            uint64_t entity;
            float min[3], max[3]; /* a point: both the same */
            const void *message;
            size_t message_len;
        } publish;
        struct {
            uint64_t player;
        } close_player, clear_viewport;
        struct {
            uint64_t player, entity;
            bool include_self;
        } subscribe, unsubscribe;
        struct {
            uint64_t player;
            float min[3], max[3];
        } set_viewport;
        struct {
            uint64_t tag;
        } flush;
    } u;
};

enum codec_query_kind {
    CODEC_QUERY_NONE,
    CODEC_QUERY_AABB,
    CODEC_QUERY_RADIUS,
    CODEC_QUERY_COUNT,
    CODEC_QUERY_GET_ENTITY,
    CODEC_QUERY_VIEW,
    CODEC_QUERY_STATS,
    CODEC_QUERY_LIST_SPACES,
    CODEC_QUERY_NEAREST,
    CODEC_QUERY_OBSERVERS,
    CODEC_QUERY_DENSITY,
    CODEC_QUERY_WHY,
    CODEC_QUERIES
};

struct codec_query {
    uint64_t space;
    enum codec_query_kind kind;
    bool has_box;              /* aabb, count, density: whether box was set at all */
    float min[3], max[3];      /* aabb, count, density */
    float center[3], radius;   /* radius, nearest (radius: max_distance) */
    uint64_t id;               /* get_entity, observers, why: the entity; view: the player */
    uint64_t player;           /* why */
    uint32_t k, columns, rows; /* nearest; density */
    uint32_t layers, limit;
    uint64_t cursor;
};

enum codec_client_kind {
    CODEC_CLIENT_NONE, /* unset or unknown oneof, or an empty frame */
    CODEC_HELLO,
    CODEC_BATCH,
    CODEC_QUERY,
    CODEC_RESYNC,
    CODEC_PING,
    CODEC_BYE,
    CODEC_CLIENT_KINDS
};

struct codec_client_frame {
    uint64_t seq;
    enum codec_client_kind kind;
    union {
        struct {
            uint32_t protocol_version;
            const char *client_name; /* "" if not set */
            const char *token;       /* likewise; NULL is "" when it is encoded */
            uint32_t lease_ms;
            uint64_t resume_session;
            size_t resume_token_len;
            const uint8_t *resume_token;
        } hello;
        struct {
            uint64_t space;
            size_t command_n;
            struct codec_command *commands;
        } batch;
        struct codec_query query;
        struct {
            uint64_t space, player;
        } resync;
        struct {
            uint64_t nonce;
        } ping;
    } u;
};

/* One frame's bytes without the length prefix. 0, or CODEC_MALFORMED (not protobuf, or it would unpack to more than the arena's cap): out is then not valid.
 * A frame takes at most 108 times its length (of CreateSpaces without settings; empty commands 88, the smallest other ones that make sense 37; columns as they
 * are), and time in proportion to it. */
int codec_decode_client(const void *bytes, size_t len, struct arena *arena, struct codec_client_frame *out);
/* Appends prefix and frame. Returns the frame's length without the prefix. */
size_t codec_encode_client(const struct codec_client_frame *frame, struct buf *out);

/* ------------------------------------------------------------------------------------------------------------- server -> client */

enum codec_server_kind {
    CODEC_SERVER_NONE,
    CODEC_WELCOME,
    CODEC_ACK,
    CODEC_DELTAS,
    CODEC_RESULT,
    CODEC_PONG,
    CODEC_ERROR,
    CODEC_DRAINING_NOTICE,
    CODEC_OBSERVED,
    CODEC_LOST,
    CODEC_SERVER_KINDS
};

struct codec_error_item {
    uint32_t index;
    uint32_t code;
    uint64_t id;
    const char *text; /* owned by whoever made the item; in the server literals, or of the arena of the frame that is answered */
};

struct codec_player_delta {
    struct aoi_delta delta; /* space, flush, tag and time_us are those of the frame; owner is not on the wire (0 when decoded) */
    uint32_t part;
    bool more;
};

enum codec_result_kind {
    CODEC_RESULT_NONE,
    CODEC_RESULT_ENTITIES,
    CODEC_RESULT_COUNT,
    CODEC_RESULT_ENTITY,
    CODEC_RESULT_VIEW,
    CODEC_RESULT_STATS,
    CODEC_RESULT_SPACES,
    CODEC_RESULT_DENSITY,
    CODEC_RESULT_WHY
};

struct codec_stats {
    uint64_t spaces, uptime_ms, connections, frames_in, bytes_in, bytes_out, errors;
    struct aoi_stats core;
};

struct codec_space_info {
    uint64_t id, entities, players, owner_session;
    bool configured;
    struct aoi_settings settings;
};

enum codec_deaf { CODEC_DEAF_NOT, CODEC_DEAF_FULL, CODEC_DEAF_GONE, CODEC_DEAF_MEMORY };

struct codec_result {
    enum codec_result_kind kind;
    struct aoi_rows rows;       /* entities, view (ids only): borrowed arrays; z and extra NULL where the space has none; rows.next is next_cursor */
    uint64_t seq;               /* view */
    uint64_t entities, players; /* count */
    struct aoi_entity entity;
    uint64_t owner_session; /* entity */
    struct codec_stats stats;
    size_t space_n;
    struct codec_space_info *spaces;
    uint64_t next_cursor;          /* spaces */
    uint32_t columns, raster_rows; /* density */
    const uint32_t *counts;        /* columns * raster_rows */
    struct aoi_why why;
    const char *why_text;     /* decoded: of the frame; to encode: NULL or a sentence */
    enum codec_deaf why_deaf; /* to encode: whether the player cannot be told anything now */
    uint64_t why_lease_ms;    /* CODEC_DEAF_GONE: how long its session's lease still runs; 0: not known */
};

struct codec_server_frame {
    uint64_t reply_to;
    enum codec_server_kind kind;
    union {
        struct {
            uint32_t protocol_version;
            const char *server_version;
            uint64_t session;
            uint32_t max_frame_bytes, max_payload, query_page, idle_timeout_ms;
            size_t resume_token_len;
            const uint8_t *resume_token;
            bool resumed;
            uint64_t last_seq;
            uint32_t lease_ms;
        } welcome;
        struct {
            uint64_t applied, errors_total;
            size_t error_n;
            const struct codec_error_item *errors;
            bool pending;
        } ack;
        struct {
            uint64_t space, flush, tag, time_us;
            size_t player_n;
            struct codec_player_delta *players;
        } deltas;
        struct codec_result result;
        struct {
            uint64_t nonce, time_us;
        } pong;
        struct {
            uint32_t code;
            const char *text;
        } error;
        struct {
            uint64_t space;
            size_t observed_n, unobserved_n;
            const uint64_t *observed, *unobserved;
        } observed;
        struct {
            uint64_t space;
            size_t entity_n, player_n;
            const uint64_t *entities, *players;
        } lost;
    } u;
};

int codec_decode_server(const void *bytes, size_t len, struct arena *arena, struct codec_server_frame *out); /* as codec_decode_client() */
size_t codec_encode_server(const struct codec_server_frame *frame, struct buf *out);

/* Appends the delta as one or more Deltas frames, none longer than max_frame_bytes: a delta that does not fit goes in parts. (One item with its payload, and one message, must fit:
 * max_payload + 1 KiB and max_message + 1 KiB <= max_frame_bytes.) Returns how many frames. */
size_t codec_encode_delta(const struct aoi_delta *delta, size_t max_frame_bytes, struct buf *out);

/* Deltas of one flush for several players in one frame: it is begun by the first, and has to be ended before anything else is appended or taken away. Zeroed there is
 * none. What is too long for company goes as codec_encode_delta() has it. */
struct codec_group {
    size_t len; /* bytes of the Deltas so far, at the end of the buffer; 0: no frame is begun */
    uint64_t space, flush, tag, time_us;
};
void codec_group_add(struct codec_group *group, const struct aoi_delta *delta, size_t max_frame_bytes, struct buf *out);
/* The same, but the columns of its updates are yet to be written, there where *to says (to NULL: they are copied): before anything else is done with the buffer. false: it is too long for
 * company, and nothing was done. */
bool codec_group_place(struct codec_group *group, const struct aoi_delta *delta, size_t max_frame_bytes, struct buf *out, struct aoi_places *to);
void codec_group_end(struct codec_group *group, struct buf *out); /* fine if there is none */

#endif
