/* SPDX-License-Identifier: Apache-2.0
 *
 * What a daemon reports of its state: named checks, each ok or with a reason, as one JSON object
 * for /healthz and /readyz. */
#ifndef CLAIMD_DAEMON_HEALTH_H
#define CLAIMD_DAEMON_HEALTH_H

#include "base/buf.h"

#define HEALTH_CHECKS_MAX 12
#define HEALTH_WHY_MAX 128

struct health {
    struct health_check {
        const char *name; /* a constant: a lower-case word */
        bool is_ok;
        char why[HEALTH_WHY_MAX]; /* without quotes, backslashes and control characters */
    } checks[HEALTH_CHECKS_MAX];
    size_t count;
};

/* `format` says what is wrong if it is not ok. */
void health_add(struct health *h, const char *name, bool is_ok, const char *format, ...)
    PRINTF_LIKE(4, 5);
bool health_is_ok(const struct health *h);

/* {"status":"failing","checks":{"loop":{"ok":true},"quorum":{"ok":false,"why":"2 of 5 …"}}} */
enum status health_render(const struct health *h, struct buf *out, struct err *err) MUST_USE;

#endif
