/* SPDX-License-Identifier: Apache-2.0
 *
 * The load of a soak, processes of their own: one puts the jobs in, round by round, and edits and
 * cancels some of them; two offer jobs to a queue that refuses, one presses upon a queue whose
 * priorities age. They go on whatever happens to the server. */
#ifndef CLAIMD_TESTS_SOAK_LOAD_H
#define CLAIMD_TESTS_SOAK_LOAD_H

#include "chaos/world.h"

#define LOAD_PROCESSES 4

struct load_processes {
    pid_t pids[LOAD_PROCESSES]; /* 0 = it does not run */
};

enum status load_start(struct world *w, int64_t jobs, struct load_processes *ret,
                       struct err *err) MUST_USE;
/* Tells them to end, and waits; accepts a zeroed one. */
void load_stop(struct load_processes *l);
int64_t load_round(int64_t jobs); /* so many are put in at a time */

#endif
