/* SPDX-License-Identifier: Apache-2.0
 *
 * The fast verdict on the folder of a run: every job that went in came out once, with the expected
 * result. The checkers of claimd-chaos-check find more; this one needs only the books of the load,
 * the handlers' ledger and the final table. */
#ifndef CLAIMD_TESTS_CHAOS_VERDICT_H
#define CLAIMD_TESTS_CHAOS_VERDICT_H

#include "chaos/folder.h"

struct verdict {
    int64_t acked; /* jobs whose insert was acknowledged */
    int64_t unknown;
    int64_t found_unknown; /* number of `unknown` that are in the table */
    int64_t completed;
    int64_t discarded;
    int64_t cancelled;
    int64_t starts;   /* starts of handlers */
    int64_t overlaps; /* times that two attempts of a job that both ended ran at once */
    int64_t violations;
};

/* Prints the first violations, with everything known about their jobs. */
enum status verdict_judge(const struct folder *f, struct verdict *ret, struct err *err) MUST_USE;

#endif
