/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates for tests of TLS: P-256, PEM files that the servers' user can read. */
#ifndef CLAIMD_TESTS_CERTS_H
#define CLAIMD_TESTS_CERTS_H

#include <stdbool.h>

#define CERT_PATH_MAX 1200

struct cert {
    const char *stem;   /* makes dir/stem.crt and dir/stem.key */
    const char *issuer; /* stem of a certificate made before; NULL = self-signed */
    const char *names;  /* "DNS:…,IP:…"; NULL = none */
    bool is_ca;
    bool is_expired;
};

void cert_make(const char *dir, const struct cert *cert);

#endif
