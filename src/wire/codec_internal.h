/* codec_internal.h: what the codec's files share. Only they see the generated code. */
#ifndef AOI_WIRE_CODEC_INTERNAL_H
#define AOI_WIRE_CODEC_INTERNAL_H

#include "aoi/v1/aoi.pb-c.h"
#include "wire/codec.h"

/* A message with these fields and zeros for the rest, e.g. CODEC__MESSAGE(Ping, ping, .nonce = 7). A NULL string is an empty one. */
#define CODEC__MESSAGE(type, name, ...) ((Aoi__V1__##type){.base = PROTOBUF_C_MESSAGE_INIT(&aoi__v1__##name##__descriptor), __VA_ARGS__})

/* Unpacks into the arena, which owns everything. NULL: malformed, or over the arena's cap. */
void *codec__unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t len, struct arena *arena);
/* Room for n elements; n == 0: not NULL. NULL: over the arena's cap. */
void *codec__array(struct arena *arena, size_t n, size_t element_bytes);
/* Appends length prefix and message; returns the message's length. */
size_t codec__pack(const ProtobufCMessage *message, struct buf *out);

void codec__box_in(const Aoi__V1__Bounds *in, float min[3], float max[3]);
Aoi__V1__Bounds codec__box_out(const float min[3], const float max[3]);

/* SpaceSettings with what it points to. */
struct codec__settings {
    Aoi__V1__SpaceSettings message;
    Aoi__V1__Bounds bounds;
    char tiers[AOI_TIERS_TEXT];
};

/* What is wrong with the text, and then *out is left alone; NULL: nothing. */
const char *codec__tiers_in(const char *text, struct aoi_tiers *out);
/* in may be NULL: all defaults. Returns what is wrong with update_tiers, which then are none, or NULL. */
const char *codec__settings_in(const Aoi__V1__SpaceSettings *in, struct aoi_settings *out);
void codec__settings_out(const struct aoi_settings *in, struct codec__settings *out);

/* What a person would say: codec_why.c. */
#define CODEC__WHY_TEXT 480
void codec__why_text(const struct codec_result *result, char text[CODEC__WHY_TEXT]);

/* The kind CODEC_DELTAS of codec_decode_server() and codec_encode_server(). */
int codec__deltas_in(const Aoi__V1__Deltas *in, struct arena *arena, struct codec_server_frame *out);
size_t codec__deltas_out(const struct codec_server_frame *frame, struct buf *out);

#endif
