/* find.c: what lies in an area: pages and slots from the index, masks by the kernels. */
#include "core/find.h"

#include "core/cover.h"
#include "core/look.h"

/* Leaves those of the slots that have one of the layers and lie so near; center NULL: anywhere. */
static void thin_out(const struct aoi_space *space, aoi__slots *slots, uint32_t layers, const float *center, double radius)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < slots->n; i++) {
        const struct aoi__hot *h = &space->hot[slots->at[i]];
        slots->at[n] = slots->at[i];
        n += (layers == 0 || (h->layers & layers)) && (center == NULL || aoi__in_sphere(h->pos, center, radius, space->dims));
    }
    slots->n = n;
}

/* Pages of which only the border has to be looked through. */
static bool list_pages(struct aoi_space *space, const float lo[3], const float hi[3], uint32_t layers, struct aoi__found *f)
{
    struct aoi__scratch *s = space->scratch;
    s->found.n = s->gone.n = 0;
    bool all = space->ops->pages_in(space, lo, hi, layers, &s->found, &s->gone);
    f->border = s->found.n;
    if (s->gone.n > 0) {
        array_reserve(&s->found, (size_t)s->found.n + s->gone.n);
        memcpy(s->found.at + s->found.n, s->gone.at, s->gone.n * sizeof *s->gone.at);
        s->found.n += s->gone.n;
    }
    f->sieve.pool = space->ops->pages(space)->page.at;
    f->sieve.page = s->found.at;
    f->sieve.n = s->found.n;
    aoi__sieve_box(&f->sieve, lo, hi);
    return all;
}

static void list_all(struct aoi_space *space, const float lo[3], const float hi[3], uint32_t layers, struct aoi__found *f)
{
    struct aoi__scratch *s = space->scratch;
    aoi__sync(space);
    f->slots = &s->kept;
    f->slots->n = 0;
    f->inside = NULL;
    f->sieve.n = f->border = 0;
    f->sieve.dims = space->dims;
    f->sieve.extra = space->set.extra;
    bool pages = space->ops->pages_in != NULL;
    if (!pages) space->ops->scan(space, lo, hi, f->slots);
    if (space->large_n > 0) aoi__large_scan(space, lo, hi, f->slots);
    f->everything = f->slots->n == (pages ? space->large_n : space->entity_n);
    if (pages) f->everything &= list_pages(space, lo, hi, layers, f);
    if (layers != 0) thin_out(space, f->slots, layers, NULL, 0);
}

#define CHUNK 32 /* pages: of those that follow, the columns are on their way meanwhile */

/* Masks of the sieve's first n pages, of which huge boxes have so many that they lie far away in memory. */
static void by_chunks(void kernel(const struct aoi__sieve *s, uint64_t *inside), const struct aoi__sieve *sieve, uint32_t n, uint64_t *inside)
{
    if (n <= CHUNK && n == sieve->n) {
        kernel(sieve, inside);
        return;
    }
    struct aoi__sieve part = *sieve;
    for (uint32_t from = 0; from < n; from += part.n) {
        part.page = sieve->page + from;
        part.n = n - from < CHUNK ? n - from : CHUNK;
        for (uint32_t i = from + part.n; i < n && i < from + 2 * part.n; i++) aoi__page_fetch(&sieve->pool[sieve->page[i]]);
        kernel(&part, inside + from);
    }
}

#define FEW_PAGES 64 /* use the masks of looks, which are at hand */

static uint64_t *masks_for(struct aoi__scratch *s, uint32_t n)
{
    if (n <= FEW_PAGES) {
        aoi__reserve_masks(s, n);
        return s->sifted.inside;
    }
    array_reserve(&s->places, n);
    array_shrink(&s->places, n); /* nobody pays for ever for having asked about a whole world once */
    return s->places.at;
}

static void sift(struct aoi_space *space, uint32_t layers, struct aoi__found *f)
{
    struct aoi__sieve *sieve = &f->sieve;
    uint32_t n = sieve->n;
    if (n == 0) return;
    f->inside = masks_for(space->scratch, n);
    by_chunks(space->kernels->box, sieve, f->border, f->inside);
    for (uint32_t i = f->border; i < n; i++) f->inside[i] = sieve->pool[sieve->page[i]].used;
    for (uint32_t i = 0; layers != 0 && i < n; i++) f->inside[i] = aoi__with_layers(space, &sieve->pool[sieve->page[i]], layers, f->inside[i]);
}

void aoi__find_box(struct aoi_space *space, const float lo[3], const float hi[3], uint32_t layers, struct aoi__found *f)
{
    list_all(space, lo, hi, layers, f);
    sift(space, layers, f);
}

void aoi__find_sphere(struct aoi_space *space, const float center[3], double radius, uint32_t layers, struct aoi__found *f)
{
    float lo[3], hi[3];
    const double exact[3] = {center[0], center[1], center[2]};
    aoi__sphere_box(center, radius, space->dims, lo, hi);
    aoi__find_box(space, lo, hi, layers, f);
    thin_out(space, f->slots, 0, center, radius);
    if (f->sieve.n == 0) return;
    f->sieve.center = exact;
    f->sieve.radius = radius;
    by_chunks(space->kernels->sphere, &f->sieve, f->sieve.n, f->inside);
    f->sieve.center = NULL;
}

size_t aoi__found_n(const struct aoi__found *f)
{
    size_t n = f->slots->n;
    for (uint32_t i = 0; i < f->sieve.n; i++) n += (uint32_t)__builtin_popcountll(f->inside[i]);
    return n;
}
