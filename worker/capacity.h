/* SPDX-License-Identifier: Apache-2.0
 *
 * How many ids to ask for. Pure. A worker fills its idle runners; when handlers are tiny it also
 * claims ahead a few milliseconds of work, so that locks, claims, runs and finishes overlap in
 * batches of hundreds (ARCHITECTURE §4.7). */
#ifndef CLAIMD_WORKER_CAPACITY_H
#define CLAIMD_WORKER_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capacity_limits {
    size_t claim_ahead_max; /* per worker, all runners together */
    size_t batch_max;
};

struct capacity_facts {
    size_t runners;      /* idle, or running something short */
    size_t idle;         /* of them idle */
    size_t coming;       /* popped, being locked or claimed */
    size_t ready;        /* claimed, waiting for a runner */
    size_t finishing;    /* ended, not committed yet */
    int64_t mean_run_us; /* moving average; 0 = nothing has run yet */
    int64_t short_us;    /* lengths_max_us(): so long a run may be */
};

/* Jobs claimed ahead of a free runner that make sense now. */
size_t capacity_ahead(const struct capacity_facts *f, const struct capacity_limits *l);

/* Ids to pop now, 0 = wait: pops are worth a round trip when a runner would idle, a quarter of the
 * room is free, or as much as runs in 10 ms. A job that is due now waits until the next pop. */
size_t capacity_want(const struct capacity_facts *f, const struct capacity_limits *l);

/* What became of a claim, as far as limits go. */
struct capacity_answer {
    size_t claimed;
    size_t refused;
    bool has_work; /* claimed jobs wait for a runner */
};

/* How much may be claimed ahead from now on: less than `now` where limits refuse more than one in
 * eight, since what waits for a runner holds its places meanwhile; slowly more again otherwise. If
 * nothing is left to do, as much as ever, so that others come to light behind those. */
size_t capacity_ahead_max(size_t now, const struct capacity_answer *a, size_t most);

/* Of ids of which only `credit` may be tried: so many now. */
size_t capacity_try(const struct capacity_facts *f, size_t credit);

/* A moving average over about 64 runs. */
int64_t capacity_mean(int64_t mean_us, int64_t ran_us);

#endif
