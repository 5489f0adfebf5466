/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo's second act: claimctl maps md5sum itself over a table of those files. */
#ifndef CLAIMD_DEMO_ACT_H
#define CLAIMD_DEMO_ACT_H

#include "demo/cluster.h"

struct act {
    long rows;
    long equal;     /* sums that are those of the list */
    double seconds; /* of the call, until all rows had ended */
};

/* Of the files that the first act found as they were, a thousand at most. */
enum status act_map(struct cluster *c, struct act *ret, struct err *err) MUST_USE;

#endif
