/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves how long runs took in the table run_length: changed rows every few seconds, and at the end.
 * Nothing waits for it; a later row replaces one that PostgreSQL did not take. */
#ifndef CLAIMD_WORKER_JOBS_RUN_STATS_SAVE_H
#define CLAIMD_WORKER_JOBS_RUN_STATS_SAVE_H

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

struct jobs;

struct run_stats_save {
    bool is_in_flight;
    int64_t next_us;
    struct complaint complaint;
};

void run_stats_save_tick(struct jobs *j, int64_t now_us);

/* Call before the worker's row is marked as stopped. */
void run_stats_save_last(struct jobs *j);

#endif
