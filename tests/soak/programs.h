/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of the load as programs, for --programs. programs.sql says which jobs they serve. */
#ifndef CLAIMD_TESTS_SOAK_PROGRAMS_H
#define CLAIMD_TESTS_SOAK_PROGRAMS_H

#include "chaos/world.h"

/* Writes their handler files to DIR/handlers and changes the mix of jobs. The program and the SDK
 * are in DIR/programs. */
enum status programs_set(struct world *w, struct err *err) MUST_USE;

/* Counts the jobs that programs completed. */
enum status programs_count(struct world *w, int64_t *ret_serve, int64_t *ret_once,
                           struct err *err) MUST_USE;

#endif
