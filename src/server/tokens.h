/* tokens.h: who may come in: names, roles and secrets, from a file. */
#ifndef AOI_SERVER_TOKENS_H
#define AOI_SERVER_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

#define TOKEN_NAME_MAX 47
#define TOKEN_SECRET_MAX 1024 /* a Hello of 4 KiB has room for it */
#define TOKEN_DIGEST_BYTES 32

/* Each may do what those before it may. */
enum role {
    ROLE_READER, /* queries, and players of its own */
    ROLE_WRITER, /* entities and spaces of its own */
    ROLE_ADMIN,  /* everybody's spaces */
    ROLES
};

struct token {
    char name[TOKEN_NAME_MAX + 1]; /* "": of nobody, where there are no tokens */
    enum role role;
    uint8_t digest[TOKEN_DIGEST_BYTES]; /* SHA-256 of the secret, which is not kept */
};

/* A name may have several secrets, so that one can be changed while both are in use; it has one role. A secret has one name. */
struct tokens {
    ARRAY(struct token) list;
};

const char *role_name(enum role role);

/* Lines of "NAME ROLE SECRET"; empty ones, and those that begin with #, are comments. A file that others can read or write, that has a fault, or no token in it, is
 * refused whole: -1, with a sentence in err[CONFIG_ERROR_MAX], and *tokens is empty. */
int tokens_load(struct tokens *tokens, const char *path, char *err);
void tokens_clear(struct tokens *tokens);

/* Which token has this secret, or NULL. Takes as long for a wrong one as for a right one, whatever its length. */
const struct token *tokens_find(const struct tokens *tokens, const char *secret);
/* Whether a token that somebody came in with still stands here, with the same secret and role; where there are no tokens, that of nobody does. */
bool tokens_hold(const struct tokens *tokens, const struct token *token);
/* Whether who came in with a token of this name ("": with none) could still come in. */
bool tokens_know(const struct tokens *tokens, const char *name);
/* What has become of a token that does not hold any more: a sentence for whoever came in with it. */
#define TOKENS_WHY 256
void tokens_why(const struct tokens *tokens, const struct token *token, char out[TOKENS_WHY]);
bool tokens_same(const struct tokens *a, const struct tokens *b); /* in whatever order */

#endif
