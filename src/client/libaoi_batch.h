/* libaoi_batch.h: the commands of the frame begun. */
#ifndef AOI_CLIENT_LIBAOI_BATCH_H
#define AOI_CLIENT_LIBAOI_BATCH_H

#include "base/array.h"
#include "base/buf.h"
#include "wire/codec.h"

/* Columns and payloads of all commands lie behind one another, in the order of the commands; the pointers in the commands are set when the frame is encoded,
 * because the arrays move while they grow. */
struct libaoi_batch {
    uint64_t space;
    size_t bytes; /* the encoded frame takes no more than this */
    ARRAY(struct codec_command) commands;
    ARRAY(struct codec_create_space) create_spaces;
    ARRAY(struct codec_set_space) set_spaces;
    ARRAY(uint64_t) id;
    ARRAY(float) x;
    ARRAY(float) y;
    ARRAY(float) z;
    ARRAY(uint32_t) extra;
    struct buf payloads;
};

void libaoi_batch_clear(struct libaoi_batch *b);

#endif
