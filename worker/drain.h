/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a worker that was told to stop: it takes nothing new, gives back what has not begun,
 * lets runs end within their time, tells PostgreSQL that it leaves, and closes. */
#ifndef CLAIMD_WORKER_DRAIN_H
#define CLAIMD_WORKER_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

/* Deadlines of a drain, checked by the worker's tick (deadlines.c). */
struct drain {
    int64_t stop_at_us;     /* handlers are asked to stop, … */
    int64_t kill_at_us;     /* … then killed; … */
    int64_t give_up_at_us;  /* … and what can't be committed is left to the scheduler */
    bool is_saying_goodbye; /* all is empty; the row's end is on its way */
};

/* Again with 0: at once. */
void drain_begin(struct worker *w, int64_t within_us);

/* Something has ended, or time has passed: closes a draining worker that has nothing left. */
void drain_check(struct worker *w);

#endif
