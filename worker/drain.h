/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends a worker that was asked to stop: it takes no new jobs, hands back those that have not begun,
 * gives running ones time to end, marks its row as stopped, and closes. */
#ifndef CLAIMD_WORKER_DRAIN_H
#define CLAIMD_WORKER_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

struct drain {
    int64_t give_up_at_us;  /* results that can't be committed by then are left to the scheduler */
    bool is_saying_goodbye; /* no job is left; the update of the row is in flight */
};

/* Starts the drain. Call it again with 0 to stop at once. */
void drain_begin(struct worker *w, int64_t within_us);

/* Call when something has ended or time has passed: closes a draining worker that has nothing
 * left. */
void drain_check(struct worker *w);

#endif
