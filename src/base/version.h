/* version.h: the release that this source is. */
#ifndef AOI_BASE_VERSION_H
#define AOI_BASE_VERSION_H

#define AOID_VERSION "0.1.0"

#endif
