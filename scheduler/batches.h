/* SPDX-License-Identifier: Apache-2.0
 *
 * What waits for jobs to end, while this scheduler leads: each second, jobs that run after others
 * become due, and batches that are closed and have no open job get their follow-ups. That each
 * happens once is decided in PostgreSQL: two leaders at once are harmless. */
#ifndef CLAIMD_SCHEDULER_BATCHES_H
#define CLAIMD_SCHEDULER_BATCHES_H

#include "scheduler/services.h"

extern const struct service batches_service;

void batches_metrics_init(struct metrics *registry);

#endif
