/* SPDX-License-Identifier: Apache-2.0
 *
 * After the storm: everything runs again, the backlog drains in time, nobody spins, and all daemons
 * end when they are told to. What does not is a violation. */
#ifndef CLAIMD_TESTS_CHAOS_CALM_H
#define CLAIMD_TESTS_CHAOS_CALM_H

#include "chaos/world.h"

struct calm {
    int64_t drain_us; /* from the last fault until no job was open; −1 = that moment never came */
};

/* Jobs that wait for their backoff are due now, as an operator would make them: backoffs are of
 * minutes, and not scaled. */
void calm_hurry(struct world *w);
void calm_down(struct calm *c, struct world *w, int64_t last_fault_us);
void calm_keep_dump(struct world *w); /* dump.sql, as far as the server can be reached */

#endif
