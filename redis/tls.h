/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS between a link and its reader (OpenSSL, in memory: no I/O here). TLS 1.2 or later; the
 * server's certificate is always verified, including the name in it (lock.C5). Only this module
 * includes OpenSSL's TLS. */
#ifndef CLAIMD_REDIS_TLS_H
#define CLAIMD_REDIS_TLS_H

#include "redis/redis.h"

/* ---- shared by many connections: made once, kept until the last of them is closed ---- */

struct redis_tls_options {
    const char *ca_file;     /* PEM; NULL = the system's */
    const char *cert_file;   /* of the client, PEM, with its chain; NULL = none */
    const char *key_file;    /* NULL = in cert_file */
    const char *server_name; /* expected in the certificate; NULL = the host of the endpoint */
};

/* Reads the files. INVALID names a file that can't be used. NOMEM. */
enum status redis_tls_new(const struct redis_tls_options *options, struct redis_tls **ret_tls,
                          struct err *err) MUST_USE;
void redis_tls_free(struct redis_tls *tls); /* accepts NULL */

/* ---- for one connection, for link.c ---- */

struct tls;

enum status tls_open(const struct redis_tls *shared, const char *host, struct tls **ret_tls,
                     struct err *err) MUST_USE;
void tls_close(struct tls *t); /* accepts NULL */

/* Adds bytes from the peer. */
enum status tls_feed(struct tls *t, const char *bytes, size_t len, struct err *err) MUST_USE;
/* Begins or continues the handshake; the first call comes before any bytes were fed. UNAVAILABLE
 * says why the peer is not trusted, or does not trust us. */
enum status tls_handshake(struct tls *t, bool *ret_is_over, struct err *err) MUST_USE;
/* Both are for use after the handshake. *ret_len = 0: more bytes must be fed first. */
enum status tls_read(struct tls *t, char *into, size_t size, size_t *ret_len,
                     struct err *err) MUST_USE;
enum status tls_write(struct tls *t, const char *bytes, size_t len, struct err *err) MUST_USE;
/* Appends what must be sent to the peer; call it after each of the above. */
enum status tls_take(struct tls *t, struct buf *wire, struct err *err) MUST_USE;

#endif
