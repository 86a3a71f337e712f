/* version.h: the release that this source is. */
#ifndef AOI_SERVER_VERSION_H
#define AOI_SERVER_VERSION_H

#define AOID_VERSION "0.1.0"

#endif
