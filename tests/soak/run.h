/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one soak: makes the world, inserts jobs while faults are applied, waits until all jobs have
 * ended, and then checks the result. */
#ifndef CLAIMD_TESTS_SOAK_RUN_H
#define CLAIMD_TESTS_SOAK_RUN_H

#include "soak/options.h"

/* Prints the result as its last line. Returns the exit code. */
int soak_run(const struct soak_options *options);

#endif
