/* tokens.c: who may come in: names, roles and secrets, from a file. */
#include "server/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "server/config.h"

#define SHORT_SECRET 16 /* bytes; less can be guessed in the end */
#define BLANKS " \t\r\n"
#define LINE_BYTES (TOKEN_NAME_MAX + TOKEN_SECRET_MAX + 64)

_Static_assert(TOKEN_DIGEST_BYTES == SHA256_DIGEST_LENGTH, "the digest");

static const char *const roles[ROLES] = {[ROLE_READER] = "reader", [ROLE_WRITER] = "writer", [ROLE_ADMIN] = "admin"};

const char *role_name(enum role role)
{
    return roles[role];
}

static void digest_of(const char *secret, uint8_t digest[TOKEN_DIGEST_BYTES])
{
    SHA256((const unsigned char *)secret, strlen(secret), digest);
}

const struct token *tokens_find(const struct tokens *tokens, const char *secret)
{
    const struct token *found = NULL;
    uint8_t digest[TOKEN_DIGEST_BYTES];
    digest_of(secret, digest);
    for (uint32_t i = 0; i < tokens->list.n; i++) /* all of them, so that the time it takes tells nothing */
        if (CRYPTO_memcmp(tokens->list.at[i].digest, digest, sizeof digest) == 0) found = &tokens->list.at[i];
    return found;
}

bool tokens_hold(const struct tokens *tokens, const struct token *token)
{
    for (uint32_t i = 0; i < tokens->list.n; i++) {
        const struct token *t = &tokens->list.at[i];
        if (t->role == token->role && strcmp(t->name, token->name) == 0 && CRYPTO_memcmp(t->digest, token->digest, sizeof t->digest) == 0)
            return true;
    }
    return tokens->list.n == 0 && token->name[0] == '\0';
}

static const struct token *find_name(const struct tokens *tokens, const char *name)
{
    for (uint32_t i = 0; i < tokens->list.n; i++)
        if (strcmp(tokens->list.at[i].name, name) == 0) return &tokens->list.at[i];
    return NULL;
}

bool tokens_know(const struct tokens *tokens, const char *name)
{
    return tokens->list.n == 0 || name[0] == '\0' || find_name(tokens, name) != NULL;
}

void tokens_why(const struct tokens *tokens, const struct token *token, char out[TOKENS_WHY])
{
    const struct token *now = find_name(tokens, token->name);
    if (tokens->list.n == 0)
        snprintf(out, TOKENS_WHY, "this daemon has no tokens_file any more: connect again to have the rights that this gives");
    else if (token->name[0] == '\0')
        snprintf(out, TOKENS_WHY, "this daemon has a tokens_file now, and the session came in without a token: connect again with one");
    else if (now == NULL)
        snprintf(out, TOKENS_WHY, "the token \"%s\" was withdrawn, no line of the tokens_file has that name any more: the session has ended",
                 token->name);
    else if (now->role != token->role)
        snprintf(out, TOKENS_WHY, "the role of the token \"%s\" was changed from %s to %s: connect again to have that role", token->name,
                 roles[token->role], roles[now->role]);
    else
        snprintf(out, TOKENS_WHY, "this secret of the token \"%s\" was withdrawn from the tokens_file: connect again with another one of that name",
                 token->name);
}

bool tokens_same(const struct tokens *a, const struct tokens *b)
{
    bool same = a->list.n == b->list.n; /* and no secret is there twice */
    for (uint32_t i = 0; same && i < a->list.n; i++) same = tokens_hold(b, &a->list.at[i]);
    return same;
}

void tokens_clear(struct tokens *tokens)
{
    array_clear(&tokens->list);
}

/* ------------------------------------------------------------------------------------------------------------- the file */

/* NULL, or what is wrong with a line that has something in it. */
static const char *take_line(struct tokens *tokens, char *line)
{
    static const char *const shape = "must be NAME ROLE SECRET, with blanks between them and none in them";
    char *rest, *name = strtok_r(line, BLANKS, &rest), *role = strtok_r(NULL, BLANKS, &rest), *secret = strtok_r(NULL, BLANKS, &rest);
    struct token token = {.role = ROLES};
    if (secret == NULL || strtok_r(NULL, BLANKS, &rest) != NULL) return shape;
    if (strlen(name) > TOKEN_NAME_MAX || name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] != '\0')
        return "the name must be 1 to 47 letters, digits, dots, hyphens or underscores";
    for (int i = 0; i < ROLES; i++)
        if (strcmp(role, roles[i]) == 0) token.role = (enum role)i;
    if (token.role == ROLES) return "the role must be admin, writer or reader";
    if (strlen(secret) > TOKEN_SECRET_MAX) return "the secret is longer than 1024 bytes";
    if (tokens_find(tokens, secret) != NULL) return "another line has the same secret";
    snprintf(token.name, sizeof token.name, "%s", name);
    digest_of(secret, token.digest);
    for (uint32_t i = 0; i < tokens->list.n; i++)
        if (strcmp(tokens->list.at[i].name, name) == 0 && tokens->list.at[i].role != token.role) return "the same name has another role further up";
    if (strlen(secret) < SHORT_SECRET) log_warn("token", "name=%s why=\"its secret is short: make one with `openssl rand -hex 16`\"", name);
    *array_add(&tokens->list) = token;
    return NULL;
}

static int fault(const char *path, int line, const char *what, char *err)
{
    if (line > 0)
        snprintf(err, CONFIG_ERROR_MAX, "tokens_file = %.200s:%d: %.200s", path, line, what);
    else
        snprintf(err, CONFIG_ERROR_MAX, "tokens_file = %.200s: %.250s", path, what);
    return -1;
}

static int read_lines(struct tokens *tokens, FILE *file, const char *path, char *err)
{
    char text[LINE_BYTES];
    int line = 0;
    enum config_line is;
    while ((is = config_read_line(text, sizeof text, file)) != CONFIG_LINE_NONE) {
        const char *why = NULL;
        line++;
        if (is == CONFIG_LINE_ZERO)
            why = "a zero byte: this is no text file, or it is damaged";
        else if (is == CONFIG_LINE_LONG)
            why = "the line is too long";
        else if (text[0] != '#' && text[strspn(text, BLANKS)] != '\0')
            why = take_line(tokens, text);
        if (why != NULL) return fault(path, line, why, err);
    }
    if (ferror(file)) return fault(path, 0, strerror(errno), err);
    if (tokens->list.n == 0) return fault(path, 0, "there is no token in it, and nobody could come in", err);
    return 0;
}

int tokens_load(struct tokens *tokens, const char *path, char *err)
{
    *tokens = (struct tokens){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hold the daemon up */
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        fault(path, 0,
              errno == EACCES ? "the daemon's user may not read it: give it to that user's group (chown root:GROUP, chmod 640)" : strerror(errno),
              err);
        if (fd >= 0) close(fd);
        return -1;
    }
    FILE *file = NULL;
    int status = -1;
    if (!S_ISREG(st.st_mode))
        fault(path, 0, "is not a regular file", err);
    else if (st.st_mode & (S_IROTH | S_IWOTH))
        fault(path, 0, "everybody on this machine can read or write it, and it holds secrets: chmod o-rwx it", err);
    else if ((file = fdopen(fd, "r")) == NULL)
        fault(path, 0, strerror(errno), err);
    else
        status = read_lines(tokens, file, path, err);
    if (file != NULL)
        fclose(file);
    else
        close(fd);
    if (status != 0) tokens_clear(tokens);
    return status;
}
