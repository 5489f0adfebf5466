/* SPDX-License-Identifier: Apache-2.0
 *
 * A scheduler that starts with a large backlog: how soon the first job runs, and how much memory
 * the scheduler takes. */
#ifndef CLAIMD_TESTS_SOAK_BACKLOG_H
#define CLAIMD_TESTS_SOAK_BACKLOG_H

#include "soak/options.h"

/* Prints the result as its last line. Returns the exit code. */
int backlog_run(const struct soak_options *options);

#endif
