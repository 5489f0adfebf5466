/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves jobs and batches that wait for other jobs to end, while this scheduler leads. Each second,
 * jobs that run after others become due, and closed batches without open jobs get their follow-ups.
 * PostgreSQL ensures that each happens once, so two leaders at once are harmless. */
#ifndef CLAIMD_SCHEDULER_BATCHES_H
#define CLAIMD_SCHEDULER_BATCHES_H

#include "scheduler/services.h"

extern const struct service batches_service;

void batches_metrics_init(struct metrics *registry);

#endif
