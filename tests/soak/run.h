/* SPDX-License-Identifier: Apache-2.0
 *
 * One soak: the world is made, jobs go in while faults strike, all of them must end; then the
 * verdict. */
#ifndef CLAIMD_TESTS_SOAK_RUN_H
#define CLAIMD_TESTS_SOAK_RUN_H

#include "soak/options.h"

/* Prints the last line; the exit code. */
int soak_run(const struct soak_options *options);

#endif
