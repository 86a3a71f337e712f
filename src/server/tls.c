/* tls.c: TLS between a stream and its connection: OpenSSL on memory BIOs. */
#include "server/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/check.h"
#include "base/log.h"

/* Sealed at once: bounds what a connection holds twice, and the BIO, which does not shrink. */
#define SEAL_BYTES ((size_t)64 * 1024)
/* What may wait of answers that OpenSSL gives by itself, to key updates and such: they stand in no outbox, so that no other limit sees them. */
#define ANSWERS_BYTES ((size_t)64 * 1024)
#define RECORD_HANDSHAKE 0x16
#define RECORD_MAJOR 0x03

struct tls_files {
    SSL_CTX *context;
    uint8_t digest[TLS_FILES][SHA256_DIGEST_LENGTH];
};

struct tls {
    SSL *ssl;
    BIO *to_peer; /* the SSL's */
    bool failed, ended;
    char why[128];
};

/* ------------------------------------------------------------------------------------------------------------- the files */

/* Of the first thing that went wrong, from which the others follow. */
static const char *reason(void)
{
    unsigned long code = ERR_peek_error();
    const char *text = ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
    return text != NULL ? text : "unknown error";
}

static int fault(const char *option, const char *path, const char *what, char *err)
{
    snprintf(err, CONFIG_ERROR_MAX, "%s = %.200s: %.250s", option, path, what);
    return -1;
}

static int unreadable(const char *option, const char *path, const char *what, char *err)
{
    snprintf(err, CONFIG_ERROR_MAX, "%s = %.200s: cannot be read as %s in PEM: %s", option, path, what, reason());
    return -1;
}

/* OpenSSL would ask the terminal, and wait. */
static int no_passphrase(char *buf, int size, int writing, void *ctx)
{
    (void)buf;
    (void)size;
    (void)writing;
    (void)ctx;
    return -1;
}

static int load_key(SSL_CTX *context, const char *path, char *err)
{
    struct stat st;
    if (stat(path, &st) != 0) return fault("tls_key", path, strerror(errno), err);
    if (st.st_mode & (S_IROTH | S_IWOTH))
        return fault("tls_key", path, "everybody on this machine can read or write it, and it is a private key: chmod o-rwx it", err);
    if (SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) != 1)
        return unreadable("tls_key", path, "a private key without a passphrase", err);
    return 0;
}

static int load_client_ca(SSL_CTX *context, const char *path, char *err)
{
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(path);
    if (names == NULL || SSL_CTX_load_verify_locations(context, path, NULL) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return unreadable("tls_client_ca", path, "certificates", err);
    }
    SSL_CTX_set_client_CA_list(context, names);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return 0;
}

static int check_fit(const struct config *config, char *err)
{
    const struct {
        const char *option, *path;
    } files[] = {{"tls_key", config->tls_key}, {"tls_cert", config->tls_cert}, {"tls_client_ca", config->tls_client_ca}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *why = config_unfit(config, files[i].path);
        if (why != NULL) return fault(files[i].option, files[i].path, why, err);
    }
    return 0;
}

static int load(SSL_CTX *context, const struct config *config, char *err)
{
    ERR_clear_error();
    if (check_fit(config, err) != 0) return -1;
    if (load_key(context, config->tls_key, err) != 0) return -1; /* first, so that the check below says whether they fit */
    if (SSL_CTX_use_certificate_chain_file(context, config->tls_cert) != 1) return unreadable("tls_cert", config->tls_cert, "a certificate", err);
    if (SSL_CTX_check_private_key(context) != 1) return fault("tls_key", config->tls_key, "is not the key of the certificate in tls_cert", err);
    return config->tls_client_ca[0] != '\0' ? load_client_ca(context, config->tls_client_ca, err) : 0;
}

static void digest_of(const char *path, uint8_t digest[SHA256_DIGEST_LENGTH])
{
    struct buf bytes = {0};
    FILE *file = path[0] != '\0' ? fopen(path, "re") : NULL;
    for (size_t n = 1; file != NULL && n > 0; bytes.end += n) n = fread(buf_reserve(&bytes, 4096), 1, 4096, file);
    if (file != NULL) fclose(file);
    SHA256(buf_len(&bytes) > 0 ? buf_data(&bytes) : digest, buf_len(&bytes), digest);
    buf_clear(&bytes);
}

bool tls_same(const struct tls_files *a, const struct tls_files *b, enum tls_file which)
{
    if (a == NULL || b == NULL) return a == b;
    return memcmp(a->digest[which], b->digest[which], sizeof a->digest[which]) == 0;
}

void tls_log(const struct tls_files *files)
{
    char until[32] = "unknown";
    struct tm tm;
    if (files == NULL) return;
    const ASN1_TIME *end = X509_get0_notAfter(SSL_CTX_get0_certificate(files->context));
    if (ASN1_TIME_to_tm(end, &tm) == 1) strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (X509_cmp_current_time(end) < 0)
        log_warn("tls", "certificate_until=%s why=\"it has expired: clients will not trust it. Renew it, and SIGHUP\"", until);
    else
        log_info("tls", "certificate_until=%s", until);
}

struct tls_files *tls_load(const struct config *config, char *err)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    CHECK(context != NULL && SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1);
    /* connections are few and long: neither sessions to take up again nor tickets. Frames have lengths, so that nobody can cut a stream short unseen. */
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    if (load(context, config, err) != 0) {
        SSL_CTX_free(context);
        ERR_clear_error();
        return NULL;
    }
    struct tls_files *files = mem_zalloc(sizeof *files);
    files->context = context;
    digest_of(config->tls_cert, files->digest[TLS_CERT]);
    digest_of(config->tls_key, files->digest[TLS_KEY]);
    digest_of(config->tls_client_ca, files->digest[TLS_CLIENT_CA]);
    return files;
}

void tls_files_free(struct tls_files *files)
{
    if (files != NULL) SSL_CTX_free(files->context);
    free(files);
}

/* ------------------------------------------------------------------------------------------------------------- a connection */

struct tls *tls_new(const struct tls_files *files)
{
    struct tls *tls = mem_zalloc(sizeof *tls);
    tls->ssl = SSL_new(files->context);
    tls->to_peer = BIO_new(BIO_s_mem());
    CHECK(tls->ssl != NULL && tls->to_peer != NULL);
    SSL_set0_wbio(tls->ssl, tls->to_peer);
    SSL_set_accept_state(tls->ssl);
    return tls;
}

void tls_free(struct tls *tls)
{
    if (tls != NULL) SSL_free(tls->ssl);
    free(tls);
}

bool tls_looks_like(const void *data, size_t len)
{
    const unsigned char *bytes = data;
    return bytes[0] == RECORD_HANDSHAKE && (len < 2 || bytes[1] == RECORD_MAJOR);
}

void tls_feed(struct tls *tls, const void *data, size_t len)
{
    BIO *from_peer = BIO_new_mem_buf(data, (int)len); /* not copied: the SSL keeps what is no whole record yet */
    CHECK(from_peer != NULL);
    BIO_set_mem_eof_return(from_peer, -1); /* at its end: later, not never */
    SSL_set0_rbio(tls->ssl, from_peer);
}

static ssize_t fail(struct tls *tls, const char *why)
{
    tls->failed = true;
    snprintf(tls->why, sizeof tls->why, "%s", why);
    ERR_clear_error();
    return TLS_FAILED;
}

static ssize_t ended(struct tls *tls)
{
    int why = SSL_get_error(tls->ssl, 0);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return 0;
    if (why == SSL_ERROR_ZERO_RETURN) return TLS_END;
    return fail(tls, reason());
}

/* The handshake's own may be as long as the chain of certificates is; it comes once. */
static bool is_flooded(const struct tls *tls)
{
    return SSL_is_init_finished(tls->ssl) && BIO_ctrl_pending(tls->to_peer) > ANSWERS_BYTES;
}

ssize_t tls_read(struct tls *tls, void *out, size_t size)
{
    size_t done = 0, n;
    if (tls->failed) return TLS_FAILED;
    ERR_clear_error();
    while (done < size && !is_flooded(tls) && SSL_read_ex(tls->ssl, (char *)out + done, size - done, &n) == 1) done += n;
    if (done > 0) return (ssize_t)done;
    return is_flooded(tls) ? fail(tls, "it has TLS answer again and again (key updates, renegotiation), and reads no answers") : ended(tls);
}

const char *tls_why(const struct tls *tls)
{
    return tls->why;
}

void tls_seal(void *ctx, struct buf *plain, struct buf *cipher)
{
    struct tls *tls = ctx;
    size_t n;
    ERR_clear_error();
    if (buf_len(plain) > 0 && SSL_is_init_finished(tls->ssl) && !tls->failed && !tls->ended &&
        SSL_write_ex(tls->ssl, buf_data(plain), buf_len(plain) < SEAL_BYTES ? buf_len(plain) : SEAL_BYTES, &n) == 1)
        buf_consume(plain, n);
    char *sealed;
    long len = BIO_get_mem_data(tls->to_peer, &sealed);
    if (len > 0) buf_append(cipher, sealed, (size_t)len);
    (void)BIO_reset(tls->to_peer);
}

bool tls_end(struct tls *tls)
{
    if (tls->ended) return false;
    tls->ended = true;
    ERR_clear_error();
    if (!tls->failed && SSL_is_init_finished(tls->ssl)) SSL_shutdown(tls->ssl);
    return true;
}
