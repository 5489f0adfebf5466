/* SPDX-License-Identifier: Apache-2.0
 *
 * How long runs took, to the table run_length: every few seconds what has changed, and at the end.
 * Nothing waits for it; what PostgreSQL does not take now, it gets the next time. */
#ifndef CLAIMD_WORKER_RUN_STATS_SAVE_H
#define CLAIMD_WORKER_RUN_STATS_SAVE_H

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

struct worker;

struct run_stats_save {
    bool is_in_flight;
    int64_t next_us;
    struct complaint complaint;
};

void run_stats_save_tick(struct worker *w, int64_t now_us);

/* Before the worker's row says that it has stopped. */
void run_stats_save_last(struct worker *w);

#endif
