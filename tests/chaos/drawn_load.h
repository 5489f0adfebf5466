/* SPDX-License-Identifier: Apache-2.0
 *
 * The load of a drawn world: for each queue a trickle of jobs, and bursts of one kind. Replaces
 * load.h's load. */
#ifndef CLAIMD_TESTS_CHAOS_DRAWN_LOAD_H
#define CLAIMD_TESTS_CHAOS_DRAWN_LOAD_H

#include "chaos/drawn.h"
#include "chaos/world.h"

#include <sys/types.h>

enum status drawn_load_start(struct world *w, const struct drawn *d, pid_t *ret_pid,
                             struct err *err) MUST_USE;

#endif
