/* SPDX-License-Identifier: Apache-2.0
 *
 * The load of a soak, a process of its own: puts the jobs in, round by round, and edits and cancels
 * some of them. It goes on whatever happens to the server. */
#ifndef CLAIMD_TESTS_SOAK_LOAD_H
#define CLAIMD_TESTS_SOAK_LOAD_H

#include "chaos/world.h"

enum status load_start(struct world *w, int64_t jobs, pid_t *ret_pid, struct err *err) MUST_USE;
/* Tells it to end, and waits; accepts 0. */
void load_stop(pid_t *pid);
int64_t load_round(int64_t jobs); /* so many are put in at a time */

#endif
