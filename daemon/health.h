/* SPDX-License-Identifier: Apache-2.0
 *
 * The state that a daemon reports: named checks, each ok or failing with a reason, as one JSON
 * object for /healthz and /readyz. */
#ifndef CLAIMD_DAEMON_HEALTH_H
#define CLAIMD_DAEMON_HEALTH_H

#include "base/buf.h"

#define HEALTH_CHECKS_MAX 12
#define HEALTH_WHY_MAX 128

struct health {
    struct health_check {
        const char *name; /* a constant, one lower-case word */
        bool is_ok;
        char why[HEALTH_WHY_MAX]; /* no quotes, backslashes or control characters */
    } checks[HEALTH_CHECKS_MAX];
    size_t count;
};

/* Adds a check. `format` is the reason if it is not ok. */
void health_add(struct health *h, const char *name, bool is_ok, const char *format, ...)
    PRINTF_LIKE(4, 5);
bool health_is_ok(const struct health *h);

/* Renders the checks as one JSON object:
 *   {"status":"failing","checks":{"loop":{"ok":true},"quorum":{"ok":false,"why":"2 of 5 …"}}} */
enum status health_render(const struct health *h, struct buf *out, struct err *err) MUST_USE;

#endif
