/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon: connects all parts, leads while it holds the leader's lock, and steps down on a
 * signal. */
#ifndef CLAIMD_SCHEDULER_SCHEDULER_H
#define CLAIMD_SCHEDULER_SCHEDULER_H

#include "config/config.h"

/* Runs until a signal. Returns the exit code. */
int scheduler_main(const struct config *config);

#endif
