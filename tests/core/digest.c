/* digest.c: a delta as one number, to compare what two indexes tell. */
#include <string.h>

#include "model.h"

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 29);
}

static uint64_t mix_float(uint64_t h, float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return mix(h, bits);
}

uint64_t model_digest(const struct aoi_delta *d)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < d->leave_n; i++) sum += mix(1, d->leave_id[i]);
    for (size_t i = 0; i < d->enters.n; i++) {
        uint64_t h = mix(mix(2, d->enters.id[i]), d->enters.layers[i]);
        h = mix_float(mix_float(h, d->enters.x[i]), d->enters.y[i]);
        if (d->enters.z != NULL) h = mix_float(h, d->enters.z[i]);
        sum += d->enters.extra != NULL ? mix(h, d->enters.extra[i]) : h;
    }
    for (size_t i = 0; i < d->updates.n; i++) {
        uint64_t h = mix_float(mix_float(mix(3, d->updates.id[i]), d->updates.x[i]), d->updates.y[i]);
        if (d->updates.z != NULL) h = mix_float(h, d->updates.z[i]);
        sum += d->updates.extra != NULL ? mix(h, d->updates.extra[i]) : h;
    }
    for (size_t i = 0; i < d->payload_n; i++) sum += mix(mix(4, d->payload_id[i]), d->payload_len[i]);
    for (size_t i = 0; i < d->layers_n; i++) sum += mix(mix(5, d->layers_id[i]), d->layers[i]);
    for (size_t i = 0; i < d->message_n; i++) sum = mix(sum, mix(d->message_from[i], d->message_len[i]));
    return mix(mix(mix(mix(sum, d->player), d->seq), d->full), d->closed);
}
