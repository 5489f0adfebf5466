/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes that make the load of a soak: one inserts jobs in rounds, and edits and cancels
 * some of them; two offer jobs to a queue with max_open; one keeps a queue busy whose priorities
 * age. They continue after any failure of the server. */
#ifndef CLAIMD_TESTS_SOAK_LOAD_H
#define CLAIMD_TESTS_SOAK_LOAD_H

#include "chaos/world.h"

#define LOAD_PROCESSES 4

struct load_processes {
    pid_t pids[LOAD_PROCESSES]; /* 0 = not running */
};

enum status load_start(struct world *w, int64_t jobs, struct load_processes *ret,
                       struct err *err) MUST_USE;
/* Asks the processes to end and waits for them; accepts a zeroed struct. */
void load_stop(struct load_processes *l);
int64_t load_round(int64_t jobs); /* returns the jobs of a round */

#endif
