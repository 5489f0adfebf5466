/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon: connects everything, leads while it holds the leader's lock, steps down on a
 * signal. */
#ifndef CLAIMD_SCHEDULER_SCHEDULER_H
#define CLAIMD_SCHEDULER_SCHEDULER_H

#include "config/config.h"

/* Runs until a signal; returns the exit code. */
int scheduler_main(const struct config *config);

#endif
