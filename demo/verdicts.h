/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two verdicts on the same list: the results of the jobs, and the output of `md5sum
 * -c`. */
#ifndef CLAIMD_DEMO_VERDICTS_H
#define CLAIMD_DEMO_VERDICTS_H

#include "demo/cluster.h"
#include "demo/list.h"

struct verdicts {
    long here[4]; /* by enum verdict */
    long there[4];
    long different; /* entries for which the two verdicts differ */
};

enum verdict { VERDICT_NONE, VERDICT_MATCH, VERDICT_MISMATCH, VERDICT_MISSING };

/* Reads the results, runs md5sum over `sums_path`, and compares entry by entry. */
enum status verdicts_compare(struct cluster *c, const struct list *l, const char *sums_path,
                             struct verdicts *ret, struct err *err) MUST_USE;

#endif
