/* digest.c: a number for what players were told. */
#include "server/digest.h"

#include <stdlib.h>
#include <string.h>

#include "base/idmap.h"

struct digest_item {
    uint64_t id, hash;
};

static void mix(uint64_t *hash, uint64_t value)
{
    *hash = idmap_hash(*hash + value) + 0x9E3779B97F4A7C15u;
}

static void mix_float(uint64_t *hash, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    mix(hash, bits);
}

static void mix_bytes(uint64_t *hash, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    mix(hash, len);
    for (size_t i = 0; i < len; i++) mix(hash, at[i]);
}

static int compare(const void *left, const void *right)
{
    const struct digest_item *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

static void item(struct digest *d, uint64_t id, uint64_t hash)
{
    *array_add(&d->items) = (struct digest_item){.id = id, .hash = hash};
}

/* The section that stands in items, by id. */
static void end_section(struct digest *d, uint64_t *hash)
{
    mix(hash, d->items.n);
    if (d->items.n > 1) qsort(d->items.at, d->items.n, sizeof *d->items.at, compare);
    for (uint32_t i = 0; i < d->items.n; i++) {
        mix(hash, d->items.at[i].id);
        mix(hash, d->items.at[i].hash);
    }
    d->items.n = 0;
}

static void enters(struct digest *d, const struct aoi_enters *e, uint64_t *hash)
{
    for (size_t i = 0; i < e->n; i++) {
        uint64_t h = e->layers[i];
        mix_float(&h, e->x[i]);
        mix_float(&h, e->y[i]);
        if (e->z != NULL) mix_float(&h, e->z[i]);
        if (e->extra != NULL) mix(&h, e->extra[i]);
        bool has = e->payload != NULL && e->payload_len[i] > 0;
        mix_bytes(&h, has ? e->payload[i] : "", has ? e->payload_len[i] : 0);
        item(d, e->id[i], h);
    }
    end_section(d, hash);
}

static void updates(struct digest *d, const struct aoi_updates *u, uint64_t *hash)
{
    for (size_t i = 0; i < u->n; i++) {
        uint64_t h = 0;
        mix_float(&h, u->x[i]);
        mix_float(&h, u->y[i]);
        if (u->z != NULL) mix_float(&h, u->z[i]);
        if (u->extra != NULL) mix(&h, u->extra[i]);
        item(d, u->id[i], h);
    }
    end_section(d, hash);
}

static void changes(struct digest *d, const struct aoi_delta *delta, uint64_t *hash)
{
    for (size_t i = 0; i < delta->payload_n; i++) {
        uint64_t h = 0;
        mix_bytes(&h, delta->payload_len[i] > 0 ? delta->payload[i] : "", delta->payload_len[i]);
        item(d, delta->payload_id[i], h);
    }
    end_section(d, hash);
    for (size_t i = 0; i < delta->layers_n; i++) item(d, delta->layers_id[i], delta->layers[i]);
    end_section(d, hash);
}

void digest_add(struct digest *d, const struct aoi_delta *delta)
{
    uint64_t hash = 0;
    mix(&hash, delta->space);
    mix(&hash, delta->player);
    mix(&hash, delta->seq);
    mix(&hash, delta->flush);
    mix(&hash, delta->tag);
    mix(&hash, (uint64_t)delta->full | (uint64_t)delta->closed << 1);
    for (size_t i = 0; i < delta->leave_n; i++) item(d, delta->leave_id[i], 0);
    end_section(d, &hash);
    enters(d, &delta->enters, &hash);
    updates(d, &delta->updates, &hash);
    changes(d, delta, &hash);
    for (size_t i = 0; i < delta->message_n; i++) { /* these have an order */
        mix(&hash, delta->message_from[i]);
        mix_bytes(&hash, delta->message_len[i] > 0 ? delta->message[i] : "", delta->message_len[i]);
    }
    d->sum[0] += hash;
    d->sum[1] += idmap_hash(hash ^ 0x5851F42D4C957F2Du);
    d->deltas++;
    d->enters += delta->enters.n;
    d->leaves += delta->leave_n;
    d->updates += delta->updates.n;
    d->changes += delta->payload_n + delta->layers_n;
    d->messages += delta->message_n;
}

void digest_clear(struct digest *digest)
{
    array_clear(&digest->items);
}
