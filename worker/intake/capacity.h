/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides how many ids to ask for. Pure. A worker fills its idle runners; if handlers are tiny, it
 * also claims a few milliseconds of work ahead, so that locks, claims, runs and finishes overlap in
 * groups of hundreds (ARCHITECTURE §4.7). */
#ifndef CLAIMD_WORKER_INTAKE_CAPACITY_H
#define CLAIMD_WORKER_INTAKE_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capacity_limits {
    size_t claim_ahead_max; /* over all runners of the worker */
    size_t batch_max;
};

struct capacity_facts {
    size_t runners;      /* idle, or running a short job */
    size_t idle;         /* how many of `runners` are idle */
    size_t coming;       /* popped; being locked or claimed */
    size_t ready;        /* claimed; waiting for a runner */
    size_t finishing;    /* ended; not committed yet */
    int64_t mean_run_us; /* moving average; 0 = nothing has run yet */
    int64_t short_us;    /* lengths_max_us(): the longest run that counts as short */
};

/* Returns how many jobs should be claimed ahead of a free runner now. */
size_t capacity_ahead(const struct capacity_facts *f, const struct capacity_limits *l);

/* Returns how many ids to pop now; 0 = wait. A pop is worth its round trip if a runner would
 * otherwise idle, or if there is room for a quarter of the jobs that may be claimed ahead, or for
 * as many as run in 10 ms. A job that becomes due meanwhile waits for the next pop. */
size_t capacity_want(const struct capacity_facts *f, const struct capacity_limits *l);

/* The result of a claim, with regard to limits. */
struct capacity_answer {
    size_t claimed;
    size_t refused;
    bool has_work; /* claimed jobs are waiting for a runner */
};

/* Returns how many jobs may be claimed ahead from now on: fewer than `now` if limits refused more
 * than one in eight, since jobs that wait for a runner hold their places meanwhile; otherwise
 * slowly more again. If no claimed job is waiting, returns `most`, so that the worker finds jobs
 * behind those that are refused. */
size_t capacity_ahead_max(size_t now, const struct capacity_answer *a, size_t most);

/* Returns how many ids to pop now if only `credit` of them may be tried. */
size_t capacity_try(const struct capacity_facts *f, size_t credit);

/* Returns the new moving average, over about 64 runs. */
int64_t capacity_mean(int64_t mean_us, int64_t ran_us);

#endif
