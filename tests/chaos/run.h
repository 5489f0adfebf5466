/* SPDX-License-Identifier: Apache-2.0
 *
 * One run: the world is made, a storm of faults and load passes over it, all faults are healed, the
 * backlog must drain, and the daemons must end; then the verdict. */
#ifndef CLAIMD_TESTS_CHAOS_RUN_H
#define CLAIMD_TESTS_CHAOS_RUN_H

#include "chaos/options.h"

/* Each prints the last line and returns the exit code. */
int run_storm(const struct options *options);
int run_replay(const struct options *options);

#endif
