/* frames.h: random frames of every kind, and comparing them. */
#ifndef AOI_TESTS_FRAMES_H
#define AOI_TESTS_FRAMES_H

#include "../random.h"
#include "base/arena.h"
#include "wire/codec.h"

/* Everything that they point to is in the arena. Columns of MoveEntities may differ in length; those of deltas and results are legal. */
void frames_random_client(struct random *r, struct arena *arena, enum codec_client_kind kind, struct codec_client_frame *out);
void frames_random_server(struct random *r, struct arena *arena, enum codec_server_kind kind, struct codec_server_frame *out);
/* items: in each section at most so many. payload: bytes of each at most. */
void frames_random_delta(struct random *r, struct arena *arena, size_t items, size_t payload, struct aoi_delta *out);

/* Assertions of cmocka. */
void frames_assert_client_equal(const struct codec_client_frame *a, const struct codec_client_frame *b);
void frames_assert_server_equal(const struct codec_server_frame *a, const struct codec_server_frame *b);
void frames_assert_delta_equal(const struct aoi_delta *a, const struct aoi_delta *b);

/* Takes the length prefix off what an encoder appended to an empty buffer: the body, of len bytes. */
const uint8_t *frames_body(const struct buf *b, size_t len);

#endif
