/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the history's days ahead and drops old ones, and vacuums `job`: on a connection of its own,
 * because these statements may take long, and only while this scheduler leads. */
#ifndef CLAIMD_SCHEDULER_HISTORY_H
#define CLAIMD_SCHEDULER_HISTORY_H

#include "scheduler/services.h"

/* Connects and begins at once. What is under way when it stops is cancelled with its connection: an
 * interrupted detach is finished by the next leader. */
extern const struct service history_service;

#endif
