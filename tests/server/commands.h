/* commands.h: batches, written down briefly. */
#ifndef AOI_TESTS_SERVER_COMMANDS_H
#define AOI_TESTS_SERVER_COMMANDS_H

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define BATCH(rig, session, seq, ...) \
    rig_batch(rig, session, seq, COUNT(((struct codec_command[]){__VA_ARGS__})), (struct codec_command[]){__VA_ARGS__})

#define CREATE(ms)                                                                 \
    {                                                                              \
        .kind = CODEC_CREATE_SPACE, .u.create_space = &(struct codec_create_space) \
        {                                                                          \
            .settings.flush_ms = (ms)                                              \
        }                                                                          \
    }
#define DESTROY                     \
    {                               \
        .kind = CODEC_DESTROY_SPACE \
    }
#define ADD(i, px, py)                                                                                                             \
    {                                                                                                                              \
        .kind = CODEC_ADD_ENTITY, .u.add_entity = {.mode = AOI_ADD_NEW, .entity = {.id = (i), .pos = {(px), (py)}, .radius = 10} } \
    }
#define SUBSCRIBE(p, e)                                                         \
    {                                                                           \
        .kind = CODEC_SUBSCRIBE, .u.subscribe = {.player = (p), .entity = (e) } \
    }
#define CLOSE_PLAYER(p)                                          \
    {                                                            \
        .kind = CODEC_CLOSE_PLAYER, .u.close_player.player = (p) \
    }
#define OPEN_PLAYER(p)                                         \
    {                                                          \
        .kind = CODEC_OPEN_PLAYER, .u.open_player.player = (p) \
    }
#define FLUSH(t)                                \
    {                                           \
        .kind = CODEC_FLUSH, .u.flush.tag = (t) \
    }
#define CREATE_WITH(...)                                                           \
    {                                                                              \
        .kind = CODEC_CREATE_SPACE, .u.create_space = &(struct codec_create_space) \
        {                                                                          \
            .settings = { __VA_ARGS__ }                                            \
        }                                                                          \
    }
#define SET_SPACE(...)                                                    \
    {                                                                     \
        .kind = CODEC_SET_SPACE, .u.set_space = &(struct codec_set_space) \
        {                                                                 \
            .change = { __VA_ARGS__ }                                     \
        }                                                                 \
    }
#define ADD_WITH(m, ...)                                                                  \
    {                                                                                     \
        .kind = CODEC_ADD_ENTITY, .u.add_entity = {.mode = (m), .entity = {__VA_ARGS__} } \
    }
#define MOVE(i, px, py)                                   \
    {                                                     \
        .kind = CODEC_MOVE_ENTITIES, .u.move_entities = { \
            .id_n = 1,                                    \
            .id = (uint64_t[]){i},                        \
            .x_n = 1,                                     \
            .x = (float[]){px},                           \
            .y_n = 1,                                     \
            .y = (float[]){py}                            \
        }                                                 \
    }
#define OPEN_WITH(p, ...)                                                                       \
    {                                                                                           \
        .kind = CODEC_OPEN_PLAYER, .u.open_player = {.player = (p), .settings = {__VA_ARGS__} } \
    }
#define OVERRIDE(p, e, k)                                                                  \
    {                                                                                      \
        .kind = CODEC_OVERRIDE, .u.override = {.player = (p), .entity = (e), .kind = (k) } \
    }
#define RELEASE_ENTITY(e, s)                                                                                 \
    {                                                                                                        \
        .kind = CODEC_RELEASE, .u.release = {.entity_n = 1, .entities = (uint64_t[]){e}, .to_session = (s) } \
    }
#define RELEASE_PLAYER(p, s)                                                                                \
    {                                                                                                       \
        .kind = CODEC_RELEASE, .u.release = {.player_n = 1, .players = (uint64_t[]){p}, .to_session = (s) } \
    }
#define PUBLISH_FROM(e, text)                                                                                                              \
    {                                                                                                                                      \
        .kind = CODEC_PUBLISH, .u.publish = {.kind = CODEC_PUBLISH_ENTITY, .entity = (e), .message = (text), .message_len = strlen(text) } \
    }
#define PUBLISH_AT(px, py, text)              \
    {                                         \
        .kind = CODEC_PUBLISH, .u.publish = { \
            .kind = CODEC_PUBLISH_POINT,      \
            .min = {px, py},                  \
            .max = {px, py},                  \
            .message = (text),                \
            .message_len = strlen(text)       \
        }                                     \
    }

#endif
