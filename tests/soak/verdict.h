/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the evidence of a finished soak. Each file of checks/ is one property; the rows that it
 * returns are violations. Each check is also run on falsified evidence, which it must report. */
#ifndef CLAIMD_TESTS_SOAK_VERDICT_H
#define CLAIMD_TESTS_SOAK_VERDICT_H

#include "chaos/folder.h"
#include "chaos/session.h"

struct verdict {
    int64_t violations;
    int64_t checks;
    int64_t rescued;
    int64_t worst_rescue_ms; /* after the fault of its worker */
    int64_t first_rescue_ms; /* after the claim, where only the lease's end could allow it */
    int64_t repeated;        /* jobs whose handler was done and which had to run again */
};

/* Prints the violations. The folder has the handlers' ledger and the journal of faults. */
enum status verdict_find(struct session *s, const struct folder *folder, int64_t slots,
                         struct verdict *ret, struct err *err) MUST_USE;

#endif
