/* doors.c: what decides who comes in, as it is read from files: at the start, and again when they change. */
#include "server/doors.h"

int doors_load(struct doors *doors, const struct config *config, char *err)
{
    *doors = (struct doors){0};
    return config->tokens_file[0] != '\0' ? tokens_load(&doors->tokens, config->tokens_file, err) : 0;
}

void doors_clear(struct doors *doors)
{
    tokens_clear(&doors->tokens);
}
