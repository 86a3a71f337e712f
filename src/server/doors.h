/* doors.h: what decides who comes in, as it is read from files: at the start, and again when they change. */
#ifndef AOI_SERVER_DOORS_H
#define AOI_SERVER_DOORS_H

#include "server/config.h"
#include "server/tls.h"
#include "server/tokens.h"

struct doors {
    struct tokens tokens;  /* empty: everybody is admin */
    struct tls_files *tls; /* of connections by TCP; NULL: they are plain */
};

/* Reads the files that the configuration names. All or nothing: -1 with a sentence in err[CONFIG_ERROR_MAX], and *doors is empty. */
int doors_load(struct doors *doors, const struct config *config, char *err);
void doors_clear(struct doors *doors);

#endif
