/* SPDX-License-Identifier: Apache-2.0
 *
 * After the storm: all processes run again, the backlog must drain in time, no daemon may spin, and
 * all daemons must end on TERM. Everything else is a violation. */
#ifndef CLAIMD_TESTS_CHAOS_CALM_H
#define CLAIMD_TESTS_CHAOS_CALM_H

#include "chaos/world.h"

struct calm {
    int64_t drain_us; /* from the last fault until no job was open; −1 = never */
};

/* Makes jobs that wait for their backoff due now, as an operator would: backoffs take minutes, and
 * are not scaled. */
void calm_hurry(struct world *w);
void calm_down(struct calm *c, struct world *w, int64_t last_fault_us);
void calm_keep_dump(struct world *w); /* writes dump.sql, if the server can be reached */

#endif
