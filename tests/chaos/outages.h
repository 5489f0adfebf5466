/* SPDX-License-Identifier: Apache-2.0
 *
 * `./dev chaos --outages`: each server is away for 3 s, alone and in pairs, under a steady load.
 * Work must continue soon after its return, and during the outage no daemon may use much CPU or
 * fill its log. Everything else is a violation. */
#ifndef CLAIMD_TESTS_CHAOS_OUTAGES_H
#define CLAIMD_TESTS_CHAOS_OUTAGES_H

#include "chaos/nemesis.h"

#define OUTAGES_RATE 4.0 /* jobs per second, without bursts */

/* Returns INVALID if --only or --without names something that is not an outage. */
enum status outages_check(const struct options *options, struct err *err) MUST_USE;
/* Runs the outages and adds to the figures of the run; *ret_last_us = when the last server
 * returned. */
void outages_run(struct world *w, int64_t counts[COUNTS], int64_t *ret_last_us);

#endif
