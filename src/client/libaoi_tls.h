/* libaoi_tls.h: a client's side of TLS on a socket. */
#ifndef AOI_CLIENT_LIBAOI_TLS_H
#define AOI_CLIENT_LIBAOI_TLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct libaoi_tls; /* what a client shows and whom it trusts: for all its connections; and the one that it has */

/* ca: the file of the authorities that are trusted, NULL: the system's; cert and key: what the client shows, NULL: nothing. NULL with a sentence in error. */
struct libaoi_tls *libaoi_tls_new(const char *ca, const char *cert, const char *key, char *error, size_t error_size);
void libaoi_tls_free(struct libaoi_tls *tls); /* NULL is fine; the socket stays */

/* Shakes hands on a connected, non-blocking socket with the host of this name or address, instead of on the socket it had before, until a deadline as
 * libaoi__left_ms() has it. 0, or -1 with a sentence in error (after which it has none). */
int libaoi_tls_connect(struct libaoi_tls *tls, int fd, const char *host, int64_t deadline, char *error, size_t error_size);
/* As send(2) and recv(2) on that socket. */
ssize_t libaoi_tls_send(struct libaoi_tls *tls, const void *data, size_t len);
ssize_t libaoi_tls_recv(struct libaoi_tls *tls, void *data, size_t len);

#endif
