/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks for what must not be, once all is over: each of checks/ is one property, its rows are
 * violations. Each is also run on evidence with one lie in it, which it must find. */
#ifndef CLAIMD_TESTS_SOAK_VERDICT_H
#define CLAIMD_TESTS_SOAK_VERDICT_H

#include "chaos/session.h"

struct verdict {
    int64_t violations;
    int64_t checks;
    int64_t rescued;
    int64_t worst_rescue_ms; /* after its worker was struck */
    int64_t first_rescue_ms; /* after the claim, where only the lease's end could allow it */
    int64_t repeated;        /* handlers that were done and had to be done again */
};

/* Prints the violations. `ledger`: the file that the handlers have written. */
enum status verdict_find(struct session *s, const char *ledger, int64_t slots, struct verdict *ret,
                         struct err *err) MUST_USE;

#endif
