/* args.h: the command line. */
#ifndef AOI_SERVER_ARGS_H
#define AOI_SERVER_ARGS_H

#include <stdbool.h>

#include "server/config.h"

struct args {
    const char *port_file; /* NULL: none */
    const char *replay;    /* a recording to be replayed; NULL: none */
    uint32_t replay_index; /* enum aoi_index; 0: as recorded */
    bool check_only;       /* --check-config */
    bool done;             /* --help and the like: everything is said */
};

/* Reads the file of --config and then the overrides, in their order, into config, and checks the whole. 0, or -1 with err[CONFIG_ERROR_MAX]. */
int args_parse(int argc, char **argv, struct args *args, struct config *config, char *err);

#endif
