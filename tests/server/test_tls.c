/* test_tls.c: TLS between a stream and its connection, with a client in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "server/tls.h"

#define UPDATES 4000 /* their answers are more than may wait */

struct rig {
    char cert[32], key[32]; /* paths */
    struct tls_files *files;
    struct tls *tls;
    SSL_CTX *context;
    SSL *client;
    BIO *to_client, *from_client;
    struct buf feed, plain, cipher;
};

static FILE *temporary(char path[32])
{
    snprintf(path, 32, "/tmp/aoid-tls-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    return fdopen(fd, "w");
}

/* A key, and a certificate that it signs itself. */
static void certify(struct rig *rig)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    FILE *file = temporary(rig->cert);
    assert_int_equal(PEM_write_X509(file, cert), 1);
    fclose(file);
    file = temporary(rig->key);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static struct tls_files *load(const struct rig *rig, bool files_only, const char *ca, char *err)
{
    struct config config;
    config_init(&config);
    config.files_only = files_only;
    snprintf(config.tls_cert, sizeof config.tls_cert, "%s", rig->cert);
    snprintf(config.tls_key, sizeof config.tls_key, "%s", rig->key);
    snprintf(config.tls_client_ca, sizeof config.tls_client_ca, "%s", ca);
    struct tls_files *files = tls_load(&config, err);
    config_clear(&config);
    return files;
}

/* What the client has written goes in. The plain bytes in it, as tls_read() returns them until it returns 0 or less, which *end is. */
static size_t take(struct rig *rig, ssize_t *end)
{
    char out[1024];
    size_t n = 0, len = BIO_ctrl_pending(rig->from_client);
    buf_clear(&rig->feed);
    assert_int_equal(BIO_read(rig->from_client, buf_reserve(&rig->feed, len), (int)len), len);
    tls_feed(rig->tls, buf_data(&rig->feed), len);
    while ((*end = tls_read(rig->tls, out, sizeof out)) > 0) n += (size_t)*end;
    return n;
}

/* What is to go to the client does, and it reads it. */
static void answer(struct rig *rig)
{
    char out[16];
    tls_seal(rig->tls, &rig->plain, &rig->cipher);
    size_t len = buf_len(&rig->cipher);
    if (len > 0) assert_int_equal(BIO_write(rig->to_client, buf_data(&rig->cipher), (int)len), len);
    buf_consume(&rig->cipher, len);
    if (SSL_is_init_finished(rig->client)) assert_int_equal(SSL_read(rig->client, out, sizeof out), -1);
}

static int setup(void **state)
{
    struct rig *rig = mem_zalloc(sizeof *rig);
    ssize_t end;
    certify(rig);
    char err[CONFIG_ERROR_MAX] = "";
    rig->files = load(rig, true, "", err);
    if (rig->files == NULL) fail_msg("%s", err);
    rig->tls = tls_new(rig->files);
    rig->context = SSL_CTX_new(TLS_client_method());
    rig->client = SSL_new(rig->context);
    rig->to_client = BIO_new(BIO_s_mem());
    rig->from_client = BIO_new(BIO_s_mem());
    SSL_set_bio(rig->client, rig->to_client, rig->from_client);
    SSL_set_connect_state(rig->client);
    for (int i = 0; i < 10 && SSL_do_handshake(rig->client) != 1; i++) {
        assert_int_equal(take(rig, &end), 0);
        answer(rig);
    }
    assert_true(SSL_is_init_finished(rig->client));
    assert_int_equal(SSL_version(rig->client), TLS1_3_VERSION);
    *state = rig;
    return 0;
}

static int teardown(void **state)
{
    struct rig *rig = *state;
    SSL_free(rig->client);
    SSL_CTX_free(rig->context);
    tls_free(rig->tls);
    tls_files_free(rig->files);
    unlink(rig->cert);
    unlink(rig->key);
    buf_clear(&rig->feed);
    buf_clear(&rig->plain);
    buf_clear(&rig->cipher);
    free(rig);
    return 0;
}

/* A client that asks for new keys, and sends a byte. */
static void update(struct rig *rig)
{
    assert_int_equal(SSL_key_update(rig->client, SSL_KEY_UPDATE_REQUESTED), 1);
    assert_int_equal(SSL_write(rig->client, "x", 1), 1);
}

static void only_at_the_start_is_it_read_what_is_not_a_regular_file(void **state)
{
    struct rig *rig = *state;
    char err[CONFIG_ERROR_MAX] = "";
    assert_null(load(rig, false, "/dev/null", err));
    assert_non_null(strstr(err, "cannot be read as certificates"));
    assert_null(load(rig, true, "/dev/null", err));
    assert_non_null(strstr(err, "tls_client_ca = /dev/null: is not a regular file"));
    assert_null(load(rig, true, "/no/such/file", err));
    assert_non_null(strstr(err, "No such file"));
}

static void new_keys_are_given_as_often_as_they_are_asked_for_and_read(void **state)
{
    struct rig *rig = *state;
    ssize_t end;
    for (int i = 0; i < UPDATES; i++) {
        update(rig);
        assert_int_equal(take(rig, &end), 1);
        assert_int_equal(end, 0);
        answer(rig);
    }
}

static void answers_that_are_not_read_pile_up_so_far_and_no_further(void **state)
{
    struct rig *rig = *state;
    ssize_t end = 0;
    int i = 0;
    for (; i < UPDATES && end == 0; i++) {
        update(rig);
        assert_int_equal(take(rig, &end), 1); /* what stood before it is still read */
    }
    assert_int_equal(end, TLS_FAILED);
    assert_true(i > 1000 && tls_why(rig->tls)[0] != '\0');
    tls_seal(rig->tls, &rig->plain, &rig->cipher);
    assert_true(buf_len(&rig->cipher) < (size_t)66 * 1024);
}

static void of_many_at_once_those_before_the_last_straw_are_read(void **state)
{
    struct rig *rig = *state;
    ssize_t end;
    for (int i = 0; i < UPDATES; i++) update(rig);
    size_t n = take(rig, &end);
    assert_true(n > 1000 && n < UPDATES);
    assert_int_equal(end, TLS_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_at_the_start_is_it_read_what_is_not_a_regular_file, setup, teardown),
        cmocka_unit_test_setup_teardown(new_keys_are_given_as_often_as_they_are_asked_for_and_read, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_that_are_not_read_pile_up_so_far_and_no_further, setup, teardown),
        cmocka_unit_test_setup_teardown(of_many_at_once_those_before_the_last_straw_are_read, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
