/* SPDX-License-Identifier: Apache-2.0 */
#include "certs.h"

#include <check.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#define HOUR_S 3600

static FILE *open_file(const char *dir, const char *stem, const char *suffix, const char *mode)
{
    char path[CERT_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s.%s", dir, stem, suffix);
    FILE *f = fopen(path, mode);
    ck_assert_msg(f != NULL, "%s", path);
    return f;
}

static void add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    ck_assert(e != NULL && X509_add_ext(x, e, -1) == 1);
    X509_EXTENSION_free(e);
}

static X509 *fill_in(const struct cert *cert, EVP_PKEY *key)
{
    static long serial;
    X509 *x = X509_new();
    ck_assert_ptr_nonnull(x);
    X509_NAME *subject = X509_get_subject_name(x);
    ck_assert_int_eq(X509_set_version(x, 2), 1);
    ck_assert_int_eq(ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial), 1);
    ck_assert_ptr_nonnull(X509_gmtime_adj(X509_getm_notBefore(x), -2 * HOUR_S));
    ck_assert_ptr_nonnull(
        X509_gmtime_adj(X509_getm_notAfter(x), cert->is_expired ? -HOUR_S : HOUR_S));
    ck_assert_int_eq(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                                (const unsigned char *)cert->stem, -1, -1, 0),
                     1);
    ck_assert_int_eq(X509_set_pubkey(x, key), 1);
    return x;
}

void cert_make(const char *dir, const struct cert *cert)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    ck_assert_ptr_nonnull(key);
    X509 *x = fill_in(cert, key);
    X509 *issuer = x;
    EVP_PKEY *issuer_key = key;
    if (cert->issuer != NULL) {
        FILE *f = open_file(dir, cert->issuer, "crt", "re");
        issuer = PEM_read_X509(f, NULL, NULL, NULL);
        (void)fclose(f);
        f = open_file(dir, cert->issuer, "key", "re");
        issuer_key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
        (void)fclose(f);
    }
    ck_assert(issuer != NULL && issuer_key != NULL);
    ck_assert_int_eq(X509_set_issuer_name(x, X509_get_subject_name(issuer)), 1);
    add_extension(x, issuer, NID_basic_constraints, cert->is_ca ? "critical,CA:TRUE" : "CA:FALSE");
    if (cert->names != NULL) {
        add_extension(x, issuer, NID_subject_alt_name, cert->names);
    }
    ck_assert_int_gt(X509_sign(x, issuer_key, EVP_sha256()), 0);
    FILE *f = open_file(dir, cert->stem, "crt", "we");
    ck_assert_int_eq(PEM_write_X509(f, x), 1);
    ck_assert_int_eq(fclose(f), 0);
    f = open_file(dir, cert->stem, "key", "we");
    ck_assert_int_eq(PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), 1);
    ck_assert_int_eq(fclose(f), 0);
    if (cert->issuer != NULL) {
        X509_free(issuer);
        EVP_PKEY_free(issuer_key);
    }
    X509_free(x);
    EVP_PKEY_free(key);
}
