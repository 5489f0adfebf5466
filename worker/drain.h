/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends a worker that was asked to stop: it takes no new jobs, hands back those that have not begun,
 * gives running ones time to end, marks its row as stopped, and closes. */
#ifndef CLAIMD_WORKER_DRAIN_H
#define CLAIMD_WORKER_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

/* Deadlines of a drain, checked by the worker's tick (deadlines.c). */
struct drain {
    int64_t stop_at_us;     /* handlers are asked to stop, … */
    int64_t kill_at_us;     /* … then killed; … */
    int64_t give_up_at_us;  /* … and results that can't be committed are left to the scheduler */
    bool is_saying_goodbye; /* no job is left; the update of the row is in flight */
};

/* Starts the drain. Call it again with 0 to stop at once. */
void drain_begin(struct worker *w, int64_t within_us);

/* Call when something has ended or time has passed: closes a draining worker that has nothing
 * left. */
void drain_check(struct worker *w);

#endif
