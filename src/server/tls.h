/* tls.h: TLS between a stream and its connection: what came is fed and read as plain bytes, what is to go is sealed. Touches no socket and never waits. */
#ifndef AOI_SERVER_TLS_H
#define AOI_SERVER_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "server/config.h"

struct tls_files; /* certificate, key and CA as they were read: what a new connection begins with */
struct tls;       /* one connection's; goes on with the files that it began with */

/* Reads tls_cert, tls_key and tls_client_ca, which must be fit (config_unfit()). NULL with a sentence in err[CONFIG_ERROR_MAX]. */
struct tls_files *tls_load(const struct config *config, char *err);
/* Of the files of a configuration, which one is the same in both: byte for byte. NULL: there are none. */
enum tls_file { TLS_CERT, TLS_KEY, TLS_CLIENT_CA, TLS_FILES };
bool tls_same(const struct tls_files *a, const struct tls_files *b, enum tls_file which);
/* One line: until when the certificate is good. NULL is fine: none. */
void tls_log(const struct tls_files *files);
void tls_files_free(struct tls_files *files); /* NULL is fine */

struct tls *tls_new(const struct tls_files *files);
void tls_free(struct tls *tls); /* NULL is fine */

/* Whether that can be the beginning of a client's side of TLS. */
bool tls_looks_like(const void *data, size_t len);

enum { TLS_END = -1, TLS_FAILED = -2 };
/* Bytes from the stream: they must stay where they are until tls_read() has returned 0 or less. */
void tls_feed(struct tls *tls, const void *data, size_t len);
/* The plain bytes in them. 0: no more; TLS_END: the peer has said that no more will come; TLS_FAILED: the connection is of no more use (tls_why()), also
 * because of a peer that asks for more of TLS's own answers than it reads, of which only so many are kept. Afterwards there may be something to seal, whatever it returned. */
ssize_t tls_read(struct tls *tls, void *out, size_t size);
const char *tls_why(const struct tls *tls);

/* Takes bytes from plain, as soon as there may be any, and appends to cipher what the stream is to get, which may also be TLS's own. For an outbox: tls is a struct
 * tls. */
void tls_seal(void *tls, struct buf *plain, struct buf *cipher);
/* There is nothing more to send: true if this was the first time, and that has to be sealed now. */
bool tls_end(struct tls *tls);

#endif
