/* SPDX-License-Identifier: Apache-2.0
 *
 * How many ids to ask for. Pure. A worker fills its idle runners; when handlers are tiny it also
 * claims ahead a few milliseconds of work, so that locks, claims, runs and finishes overlap in
 * batches of hundreds (ARCHITECTURE §4.7). */
#ifndef CLAIMD_WORKER_CAPACITY_H
#define CLAIMD_WORKER_CAPACITY_H

#include <stddef.h>
#include <stdint.h>

struct capacity_limits {
    size_t claim_ahead_max; /* per worker, all runners together */
    size_t batch_max;
};

struct capacity_facts {
    size_t runners;      /* alive: idle or running */
    size_t idle;         /* of them idle */
    size_t coming;       /* popped, being locked or claimed */
    size_t ready;        /* claimed, waiting for a runner */
    size_t finishing;    /* ended, not committed yet */
    int64_t mean_run_us; /* moving average; 0 = nothing has run yet */
};

/* Jobs claimed ahead of a free runner that make sense now. */
size_t capacity_ahead(const struct capacity_facts *f, const struct capacity_limits *l);

/* Ids to pop now, 0 = wait: pops are worth a round trip when a runner would idle or a quarter of
 * the room is free. */
size_t capacity_want(const struct capacity_facts *f, const struct capacity_limits *l);

/* A moving average over about 64 runs. */
int64_t capacity_mean(int64_t mean_us, int64_t ran_us);

#endif
