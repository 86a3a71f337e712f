/* tiers.h: for settings.c. */
#ifndef AOI_CORE_TIERS_H
#define AOI_CORE_TIERS_H

#include "core/aoi.h"

const char *aoi__tiers_fault(const struct aoi_tiers *tiers); /* what is wrong; NULL: nothing */

#endif
