/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of how long the runs of one queue and kind took in the last hour or two, for `claimctl
 * kinds`. Pure. */
#ifndef CLAIMD_WORKER_JOBS_RUN_STATS_H
#define CLAIMD_WORKER_JOBS_RUN_STATS_H

#include <stdint.h>

#define RUN_STATS_WINDOW_US (3600LL * 1000 * 1000)
/* Bucket i, from 0, counts runs of less than 2 ^ ((i + 1) / 4) µs; the last bucket also counts all
 * longer ones, from 12 days on. */
#define RUN_STATS_BUCKETS 160

struct run_window {
    int64_t since_us; /* BOOTTIME, when the first run ended */
    int64_t runs;
    int64_t run_us; /* of all runs together */
    uint32_t buckets[RUN_STATS_BUCKETS];
};

struct run_stats {
    struct run_window now;
    struct run_window before;
    int64_t changed_us; /* BOOTTIME, when the last run ended */
};

void run_stats_add(struct run_stats *s, int64_t ran_us, int64_t now_us);

/* Adds up both windows. */
void run_stats_sum(const struct run_stats *s, struct run_window *ret);

#endif
