/* reload.h: a configuration that was read anew while the daemon runs: taken as far as it can be, or refused whole. */
#ifndef AOI_SERVER_RELOAD_H
#define AOI_SERVER_RELOAD_H

#include "server/server.h"

/* Reads file and arguments again and applies them: options, tokens and certificates, the changeable settings of spaces, and spaces that are new. Logs and counts what came of
 * it, with what needs a restart. Anything that is not as it must be: nothing changes at all. */
void reload(struct server *server, int argc, char **argv);

/* Lists, as old->new, those that differ of those that can be changed; "": none. */
void reload_list_rules(const struct aoi_settings *a, const struct aoi_settings *b, char list[CONFIG_ERROR_MAX]);
/* Whether a space of these settings is as one of those: all but persistent. */
bool reload_same_settings(const struct aoi_settings *a, const struct aoi_settings *b);

#endif
