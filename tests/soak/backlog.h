/* SPDX-License-Identifier: Apache-2.0
 *
 * A scheduler that comes to a large backlog: when the first of its jobs runs, and what the
 * scheduler has in memory meanwhile. */
#ifndef CLAIMD_TESTS_SOAK_BACKLOG_H
#define CLAIMD_TESTS_SOAK_BACKLOG_H

#include "soak/options.h"

/* Prints the last line; the exit code. */
int backlog_run(const struct soak_options *options);

#endif
