/* libaoi_tls.c: a client's side of TLS on a socket: OpenSSL on a BIO that raises no SIGPIPE. */
#include "client/libaoi_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/check.h"
#include "client/libaoi_impl.h"

struct libaoi_tls {
    SSL_CTX *context;
    BIO_METHOD *method;
    SSL *ssl; /* NULL: none */
    int fd;
};

/* ------------------------------------------------------------------------------------------------------------- the socket as a BIO */

/* n; where it is to be tried again, direction says what the socket has to be ready for. */
static int result_of(BIO *bio, ssize_t n, int direction)
{
    BIO_clear_retry_flags(bio);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_flags(bio, direction | BIO_FLAGS_SHOULD_RETRY);
    return (int)n;
}

static int bio_write(BIO *bio, const char *data, int len)
{
    const struct libaoi_tls *tls = BIO_get_data(bio);
    return result_of(bio, send(tls->fd, data, (size_t)len, MSG_NOSIGNAL), BIO_FLAGS_WRITE);
}

static int bio_read(BIO *bio, char *data, int len)
{
    const struct libaoi_tls *tls = BIO_get_data(bio);
    return result_of(bio, recv(tls->fd, data, (size_t)len, 0), BIO_FLAGS_READ);
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

/* ------------------------------------------------------------------------------------------------------------- the rest */

static const char *reason(void)
{
    unsigned long code = ERR_peek_error();
    const char *text = ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
    return text != NULL ? text : "the connection was closed";
}

struct libaoi_tls *libaoi_tls_new(const char *ca, const char *cert, const char *key, char *error, size_t error_size)
{
    if ((cert == NULL) != (key == NULL)) {
        snprintf(error, error_size, "a certificate and its key go together: there is no %s", cert == NULL ? "certificate" : "key");
        return NULL;
    }
    struct libaoi_tls *tls = mem_zalloc(sizeof *tls);
    ERR_clear_error();
    tls->context = SSL_CTX_new(TLS_client_method());
    tls->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "aoi");
    CHECK(tls->context != NULL && tls->method != NULL && SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) == 1);
    BIO_meth_set_write(tls->method, bio_write);
    BIO_meth_set_read(tls->method, bio_read);
    BIO_meth_set_ctrl(tls->method, bio_ctrl);
    SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    const char *bad = NULL;
    if ((ca != NULL ? SSL_CTX_load_verify_locations(tls->context, ca, NULL) : SSL_CTX_set_default_verify_paths(tls->context)) != 1)
        bad = ca;
    else if (cert != NULL && SSL_CTX_use_certificate_chain_file(tls->context, cert) != 1)
        bad = cert;
    else if (key != NULL && SSL_CTX_use_PrivateKey_file(tls->context, key, SSL_FILETYPE_PEM) != 1)
        bad = key;
    if (bad == NULL) return tls;
    snprintf(error, error_size, "%s cannot be used for TLS: %s", bad, reason());
    libaoi_tls_free(tls);
    return NULL;
}

void libaoi_tls_free(struct libaoi_tls *tls)
{
    if (tls == NULL) return;
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    free(tls);
}

static bool is_address(const char *host)
{
    unsigned char any[16];
    return inet_pton(AF_INET, host, any) == 1 || inet_pton(AF_INET6, host, any) == 1;
}

static void begin(struct libaoi_tls *tls, int fd, const char *host)
{
    SSL_free(tls->ssl);
    tls->fd = fd;
    tls->ssl = SSL_new(tls->context);
    BIO *bio = BIO_new(tls->method);
    CHECK(tls->ssl != NULL && bio != NULL);
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    if (is_address(host)) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), host);
    } else {
        SSL_set1_host(tls->ssl, host);
        SSL_set_tlsext_host_name(tls->ssl, host);
    }
}

int libaoi_tls_connect(struct libaoi_tls *tls, int fd, const char *host, int64_t deadline, char *error, size_t error_size)
{
    begin(tls, fd, host);
    for (;;) {
        ERR_clear_error();
        int done = SSL_connect(tls->ssl), why = SSL_get_error(tls->ssl, done);
        if (done == 1) return 0;
        int left_ms = libaoi__left_ms(deadline);
        struct pollfd p = {.fd = fd, .events = why == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN};
        if ((why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) && left_ms != 0 && poll(&p, 1, left_ms) >= 0) continue;
        long fault = SSL_get_verify_result(tls->ssl);
        if (fault != X509_V_OK)
            snprintf(error, error_size, "its certificate is not to be trusted: %s", X509_verify_cert_error_string(fault));
        else
            snprintf(error, error_size, "no TLS with it: %s", left_ms != 0 ? reason() : "no answer in time");
        SSL_free(tls->ssl);
        tls->ssl = NULL;
        return -1;
    }
}

/* n, or what SSL says instead, as send(2) and recv(2) would. */
static ssize_t as_socket(struct libaoi_tls *tls, int ok, size_t n)
{
    if (ok == 1) return (ssize_t)n;
    int why = SSL_get_error(tls->ssl, ok);
    if (why == SSL_ERROR_ZERO_RETURN) return 0;
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return -1;
}

static ssize_t broken(void)
{
    errno = ECONNRESET;
    return -1;
}

ssize_t libaoi_tls_send(struct libaoi_tls *tls, const void *data, size_t len)
{
    size_t n = 0;
    if (tls->ssl == NULL) return broken();
    ERR_clear_error();
    int ok = SSL_write_ex(tls->ssl, data, len, &n);
    return as_socket(tls, ok, n);
}

ssize_t libaoi_tls_recv(struct libaoi_tls *tls, void *data, size_t len)
{
    size_t n = 0;
    if (tls->ssl == NULL) return broken();
    ERR_clear_error();
    int ok = SSL_read_ex(tls->ssl, data, len, &n);
    return as_socket(tls, ok, n);
}
