/* codec.c: what both directions of the codec need: unpacking into an arena, packing behind a length prefix, settings and boxes. */
#include "wire/codec.h"

#include <string.h>

#include "base/check.h"
#include "wire/codec_internal.h"
#include "wire/frame.h"

const char *codec_code_name(int code)
{
    static const char *const name[CODEC_CODES] = {
        "OK",
        "INVALID_ARGUMENT",
        "OUT_OF_BOUNDS",
        "UNKNOWN_SPACE",
        "UNKNOWN_ENTITY",
        "UNKNOWN_PLAYER",
        "DUPLICATE_SPACE",
        "DUPLICATE_ENTITY",
        "NOT_OWNER",
        "LIMIT_EXCEEDED",
        "UNSUPPORTED",
        "UNAUTHENTICATED",
        "MALFORMED",
        "FRAME_TOO_LARGE",
        "DRAINING",
    };
    return code >= 0 && code < CODEC_CODES ? name[code] : "UNKNOWN";
}

static void *alloc_in_arena(void *arena, size_t bytes)
{
    return arena_alloc(arena, bytes);
}

static void free_nothing(void *arena, void *p)
{
    (void)arena;
    (void)p;
}

void *codec__unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t len, struct arena *arena)
{
    ProtobufCAllocator allocator = {.alloc = alloc_in_arena, .free = free_nothing, .allocator_data = arena};
    return protobuf_c_message_unpack(type, &allocator, len, bytes);
}

void *codec__array(struct arena *arena, size_t n, size_t element_bytes)
{
    if (n > SIZE_MAX / element_bytes) return NULL;
    return arena_alloc(arena, n * element_bytes);
}

size_t codec__pack(const ProtobufCMessage *message, struct buf *out)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    CHECK(len <= FRAME_BODY_MAX);
    uint8_t *p = buf_reserve(out, FRAME_HEADER_MAX + len);
    size_t header = frame_put_header(p, len);
    protobuf_c_message_pack(message, p + header);
    out->end += header + len;
    return len;
}

void codec__box_in(const Aoi__V1__Bounds *in, float min[3], float max[3])
{
    memcpy(min, (const float[3]){in->min_x, in->min_y, in->min_z}, 3 * sizeof *min);
    memcpy(max, (const float[3]){in->max_x, in->max_y, in->max_z}, 3 * sizeof *max);
}

Aoi__V1__Bounds codec__box_out(const float min[3], const float max[3])
{
    return CODEC__MESSAGE(Bounds, bounds, .min_x = min[0], .min_y = min[1], .min_z = min[2], .max_x = max[0], .max_y = max[1], .max_z = max[2]);
}

const char *codec__tiers_in(const char *text, struct aoi_tiers *out)
{
    struct aoi_tiers tiers;
    const char *why;
    if (aoi_tiers_parse(text, &tiers, &why) != AOI_OK) return why;
    *out = tiers;
    return NULL;
}

const char *codec__settings_in(const Aoi__V1__SpaceSettings *in, struct aoi_settings *out)
{
    *out = (struct aoi_settings){.flush_ms = AOI_FLUSH_MS_DEFAULT};
    if (in == NULL) return NULL;
    out->dimensions = in->dimensions;
    out->index = (uint32_t)in->index;
    out->shape = (uint32_t)in->shape;
    out->cell_size = in->cell_size;
    out->cell_range = in->cell_range;
    out->bounded = in->bounds != NULL;
    if (out->bounded) codec__box_in(in->bounds, out->min, out->max);
    out->extra = in->extra != 0;
    if (in->flush_case == AOI__V1__SPACE_SETTINGS__FLUSH_FLUSH_MS) out->flush_ms = in->flush_ms;
    out->persistent = in->persistent != 0;
    out->leave_margin = in->leave_margin;
    out->min_stay_ms = in->min_stay_ms;
    out->max_view = in->max_view;
    out->max_enter_per_flush = in->max_enter_per_flush;
    return codec__tiers_in(in->update_tiers, &out->tiers);
}

void codec__settings_out(const struct aoi_settings *in, struct codec__settings *out)
{
    if (in->bounded) out->bounds = codec__box_out(in->min, in->max);
    aoi_tiers_print(&in->tiers, out->tiers);
    out->message = CODEC__MESSAGE(SpaceSettings, space_settings, .dimensions = in->dimensions, .index = (Aoi__V1__Index)in->index,
                                  .shape = (Aoi__V1__Shape)in->shape, .cell_size = in->cell_size, .cell_range = in->cell_range,
                                  .bounds = in->bounded ? &out->bounds : NULL, .extra = in->extra, .persistent = in->persistent,
                                  .flush_case = AOI__V1__SPACE_SETTINGS__FLUSH_FLUSH_MS, .flush_ms = in->flush_ms, .leave_margin = in->leave_margin,
                                  .min_stay_ms = in->min_stay_ms, .max_view = in->max_view, .max_enter_per_flush = in->max_enter_per_flush,
                                  .update_tiers = out->tiers);
}
