/* SPDX-License-Identifier: Apache-2.0
 *
 * `./dev chaos --outages`: each server is away for 3 s, alone and in pairs, under a steady load.
 * Work goes on soon after its return, and meanwhile no daemon burns the processor or fills its
 * log. What does not hold is a violation. */
#ifndef CLAIMD_TESTS_CHAOS_OUTAGES_H
#define CLAIMD_TESTS_CHAOS_OUTAGES_H

#include "chaos/nemesis.h"

#define OUTAGES_RATE 4.0 /* jobs per second, without bursts */

/* INVALID: --only or --without names what is no outage. */
enum status outages_check(const struct options *options, struct err *err) MUST_USE;
/* Adds to the figures of the run; yields when the last server returned. */
void outages_run(struct world *w, int64_t counts[COUNTS], int64_t *ret_last_us);

#endif
