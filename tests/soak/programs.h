/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of the load as programs, for --programs: which jobs are theirs says programs.sql. */
#ifndef CLAIMD_TESTS_SOAK_PROGRAMS_H
#define CLAIMD_TESTS_SOAK_PROGRAMS_H

#include "chaos/world.h"

/* Their handler files, in DIR/handlers, and the jobs for them. The program and the SDK are in
 * DIR/programs, as the plan says. */
enum status programs_set(struct world *w, struct err *err) MUST_USE;

/* How many jobs were done by programs. */
enum status programs_count(struct world *w, int64_t *ret_serve, int64_t *ret_once,
                           struct err *err) MUST_USE;

#endif
