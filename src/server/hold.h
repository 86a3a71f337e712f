/* hold.h: the file that this daemon keeps writing, `snapshot` or `record`: no other daemon may have it, and nothing but a file may stand there. */
#ifndef AOI_SERVER_HOLD_H
#define AOI_SERVER_HOLD_H

#include "server/config.h"

struct hold {
    int fd; /* of PATH.lock, as long as it is held; else -1 */
    const char *path;
};

/* Whether the file may be where it is to be: there is the folder, and nothing but a file of that name. 0, or -1 with err[CONFIG_ERROR_MAX]; hold_take() asks it too. */
int hold_check(const struct config *config, char *err);
/* Takes the configuration's, if it has one. A lock is not in the way of who comes after a crash: it ends with whoever held it, though PATH.lock stays. -1, with
 * err[CONFIG_ERROR_MAX] and nothing held: another one has it, or it cannot be. The config must outlive the hold. */
int hold_take(struct hold *hold, const struct config *config, char *err);
void hold_release(struct hold *hold);

#endif
