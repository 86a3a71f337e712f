/* doors.c: what decides who comes in, as it is read from files: at the start, and again when they change. */
#include "server/doors.h"

int doors_load(struct doors *doors, const struct config *config, char *err)
{
    *doors = (struct doors){0};
    if (config->tokens_file[0] != '\0' && tokens_load(&doors->tokens, config->tokens_file, err) != 0) return -1;
    if (config->tls_cert[0] == '\0') return 0;
    doors->tls = tls_load(config, err);
    if (doors->tls == NULL) tokens_clear(&doors->tokens);
    return doors->tls != NULL ? 0 : -1;
}

void doors_clear(struct doors *doors)
{
    tokens_clear(&doors->tokens);
    tls_files_free(doors->tls);
    doors->tls = NULL;
}
