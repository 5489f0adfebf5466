/* SPDX-License-Identifier: Apache-2.0
 *
 * The fast verdict over the folder of a run: what went in came out, once, as what it should. The
 * checkers of claimd-chaos-check know more; this one needs nothing but the books of the load, the
 * handlers' ledger and the final table. */
#ifndef CLAIMD_TESTS_CHAOS_VERDICT_H
#define CLAIMD_TESTS_CHAOS_VERDICT_H

#include "chaos/folder.h"

struct verdict {
    int64_t acked; /* jobs whose insert was acknowledged */
    int64_t unknown;
    int64_t found_unknown; /* of those: in the table */
    int64_t completed;
    int64_t discarded;
    int64_t cancelled;
    int64_t starts;   /* of handlers */
    int64_t overlaps; /* two attempts of a job that both came to their end ran at once */
    int64_t violations;
};

/* Prints each violation with what is known of its job (the first few). */
enum status verdict_judge(const struct folder *f, struct verdict *ret, struct err *err) MUST_USE;

#endif
