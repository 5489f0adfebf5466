/* SPDX-License-Identifier: Apache-2.0 */
#include "redis/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#define RECORD_ALERT 0x15
#define RECORD_HANDSHAKE 0x16

struct redis_tls {
    SSL_CTX *ctx;
    char server_name[256]; /* "" = the host of the endpoint */
};

struct tls {
    SSL *ssl;
    BIO *from_peer; /* both belong to `ssl` */
    BIO *to_peer;
    bool was_fed;
};

/* Returns the newest reason in OpenSSL's error queue, and empties the queue. */
static const char *reason(void)
{
    unsigned long code = ERR_peek_last_error();
    const char *text = code != 0 ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return text != NULL ? text : "unknown reason";
}

/* ---- shared by many connections ---- */

static enum status use_files(SSL_CTX *ctx, const struct redis_tls_options *o, struct err *err)
{
    const char *key_file = o->key_file != NULL ? o->key_file : o->cert_file;
    if (o->ca_file == NULL ? SSL_CTX_set_default_verify_paths(ctx) != 1
                           : SSL_CTX_load_verify_locations(ctx, o->ca_file, NULL) != 1) {
        return err_fail(err, STATUS_INVALID, "TLS: no CA certificates in %s: %s",
                        o->ca_file != NULL ? o->ca_file : "the system's store", reason());
    }
    if (o->cert_file == NULL) {
        return o->key_file == NULL
                   ? STATUS_OK
                   : err_fail(err, STATUS_INVALID, "TLS: key %s has no certificate", o->key_file);
    }
    if (SSL_CTX_use_certificate_chain_file(ctx, o->cert_file) != 1) {
        return err_fail(err, STATUS_INVALID, "TLS: no certificate in %s: %s", o->cert_file,
                        reason());
    }
    if (SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ctx) != 1) {
        return err_fail(err, STATUS_INVALID, "TLS: no key for %s in %s: %s", o->cert_file, key_file,
                        reason());
    }
    return STATUS_OK;
}

/* Refuses a password: otherwise OpenSSL would ask on the terminal for that of an encrypted key. */
static int no_password(char *buf, int size, int rwflag, void *ctx)
{
    (void)buf;
    (void)size;
    (void)rwflag;
    (void)ctx;
    return -1;
}

enum status redis_tls_new(const struct redis_tls_options *options, struct redis_tls **ret_tls,
                          struct err *err)
{
    struct redis_tls *t = calloc(1, sizeof *t);
    const char *name = options->server_name != NULL ? options->server_name : "";
    enum status st = STATUS_OK;
    ERR_clear_error();
    if (t != NULL) {
        t->ctx = SSL_CTX_new(TLS_client_method());
    }
    if (t == NULL || t->ctx == NULL) {
        st = err_fail(err, STATUS_NOMEM, "TLS: no memory");
    } else if (strlen(name) >= sizeof t->server_name) {
        st = err_fail(err, STATUS_INVALID, "TLS: the server's name is longer than %zu characters",
                      sizeof t->server_name - 1);
    } else {
        memcpy(t->server_name, name, strlen(name) + 1);
        SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
        SSL_CTX_set_default_passwd_cb(t->ctx, no_password);
        (void)SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION);
        /* so that no read must precede a write */
        (void)SSL_CTX_set_options(t->ctx, SSL_OP_NO_RENEGOTIATION);
        (void)SSL_CTX_set_mode(t->ctx, SSL_MODE_RELEASE_BUFFERS);
        st = use_files(t->ctx, options, err);
    }
    if (st != STATUS_OK) {
        redis_tls_free(t);
        return st;
    }
    *ret_tls = t;
    return STATUS_OK;
}

void redis_tls_free(struct redis_tls *tls)
{
    if (tls != NULL) {
        SSL_CTX_free(tls->ctx);
        free(tls);
    }
}

/* ---- one connection ---- */

static bool is_address(const char *host)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* Sets the expected name. Addresses are not sent as a name (RFC 6066), and are compared with
 * another field of the certificate. */
static bool expect_name(SSL *ssl, char *name)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (is_address(name)) {
        return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
    }
    autofree char *copy = strdup(name); /* OpenSSL's macro casts const away */
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return copy != NULL && X509_VERIFY_PARAM_set1_host(param, copy, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, copy) == 1;
}

enum status tls_open(const struct redis_tls *shared, const char *host, struct tls **ret_tls,
                     struct err *err)
{
    struct tls *t = calloc(1, sizeof *t);
    /* OpenSSL requires it to be writable but never writes to it */
    char name[sizeof shared->server_name];
    (void)snprintf(name, sizeof name, "%s",
                   shared->server_name[0] != '\0' ? shared->server_name : host);
    ERR_clear_error();
    if (t != NULL) {
        t->ssl = SSL_new(shared->ctx);
        t->from_peer = BIO_new(BIO_s_mem());
        t->to_peer = BIO_new(BIO_s_mem());
    }
    if (t == NULL || t->ssl == NULL || t->from_peer == NULL || t->to_peer == NULL) {
        if (t != NULL) {
            (void)BIO_free(t->from_peer);
            (void)BIO_free(t->to_peer);
        }
        tls_close(t);
        return err_fail(err, STATUS_NOMEM, "TLS: no memory");
    }
    SSL_set_bio(t->ssl, t->from_peer, t->to_peer);
    SSL_set_connect_state(t->ssl);
    if (!expect_name(t->ssl, name)) {
        tls_close(t);
        return err_fail(err, STATUS_INVALID, "TLS: '%s' is not a valid server name: %s", name,
                        reason());
    }
    *ret_tls = t;
    return STATUS_OK;
}

void tls_close(struct tls *t)
{
    if (t != NULL) {
        SSL_free(t->ssl);
        free(t);
    }
}

enum status tls_feed(struct tls *t, const char *bytes, size_t len, struct err *err)
{
    if (!t->was_fed && len > 0) {
        t->was_fed = true;
        if (bytes[0] != RECORD_ALERT && bytes[0] != RECORD_HANDSHAKE) {
            return err_fail(err, STATUS_UNAVAILABLE, "TLS: the server does not speak TLS");
        }
    }
    assert(len <= INT_MAX);
    if (BIO_write(t->from_peer, bytes, (int)len) != (int)len) {
        return err_fail(err, STATUS_NOMEM, "TLS: no memory");
    }
    return STATUS_OK;
}

/* Interprets a result of OpenSSL; OK also if it only waits for bytes from the peer. */
static enum status judge(struct tls *t, int result, struct err *err)
{
    int code = SSL_get_error(t->ssl, result);
    if (result > 0 || code == SSL_ERROR_WANT_READ) {
        return STATUS_OK;
    }
    if (code == SSL_ERROR_ZERO_RETURN) {
        return err_fail(err, STATUS_UNAVAILABLE, "connection lost: end of TLS");
    }
    long verdict = SSL_get_verify_result(t->ssl);
    if (verdict != X509_V_OK) {
        ERR_clear_error();
        return err_fail(err, STATUS_UNAVAILABLE, "TLS: the server's certificate is not valid: %s",
                        X509_verify_cert_error_string(verdict));
    }
    return err_fail(err, STATUS_UNAVAILABLE, "TLS: %s", reason());
}

enum status tls_handshake(struct tls *t, bool *ret_is_over, struct err *err)
{
    ERR_clear_error();
    int r = SSL_do_handshake(t->ssl);
    *ret_is_over = r == 1;
    return judge(t, r, err);
}

enum status tls_read(struct tls *t, char *into, size_t size, size_t *ret_len, struct err *err)
{
    assert(size <= INT_MAX);
    ERR_clear_error();
    int r = SSL_read(t->ssl, into, (int)size);
    *ret_len = r > 0 ? (size_t)r : 0;
    return judge(t, r, err);
}

enum status tls_write(struct tls *t, const char *bytes, size_t len, struct err *err)
{
    assert(len > 0 && len <= INT_MAX);
    ERR_clear_error();
    int r = SSL_write(t->ssl, bytes, (int)len);
    if (r > 0) {
        return STATUS_OK; /* all of it: a memory BIO accepts everything */
    }
    enum status st = judge(t, r, err);
    if (st != STATUS_OK) {
        return st;
    }
    return err_fail(err, STATUS_UNAVAILABLE, "TLS: cannot write to the server");
}

enum status tls_take(struct tls *t, struct buf *wire, struct err *err)
{
    char *bytes = NULL;
    long len = BIO_get_mem_data(t->to_peer, &bytes);
    if (len <= 0) {
        return STATUS_OK;
    }
    enum status st = buf_append(wire, bytes, (size_t)len, err);
    (void)BIO_reset(t->to_peer);
    return st;
}
