/* SPDX-License-Identifier: Apache-2.0
 *
 * From hints to claimed jobs: decides how many ids to ask for, acquires the locks of their jobs,
 * and starts the claims. */
#ifndef CLAIMD_WORKER_INTAKE_FETCH_H
#define CLAIMD_WORKER_INTAKE_FETCH_H

#include "hints/hints.h"
#include "worker/intake/capacity.h"

struct active_job;
struct intake;

struct fetch {
    struct capacity_limits limits;
    /* Grows while there is no quorum or PostgreSQL is unreachable; 0 = a claim has succeeded. */
    int64_t pause_us;
    int64_t pause_until_us;
    int64_t setbacks_since_us; /* nothing could be claimed since then; 0 = a claim has succeeded */
    int64_t setback_us;        /* when the lock or claim of a whole batch last failed */
    int64_t ahead_pause_until_us; /* a claim met locked rows: until then, claim nothing ahead */
    int64_t alone_until_us; /* a lock was not won: until then, send no claim beside its lock */
};

/* Call at the start and after a reload. */
void fetch_configure(struct intake *in);

/* For hints_popper: how many more ids to pop, and the hints that arrived. */
size_t fetch_want(struct intake *in);
void fetch_popped(struct intake *in, const struct hint *list, size_t count);

/* Returns the number of idle slots for which this worker has no job yet; 0 while it may not fetch
 * at all. Limits, weights and claiming ahead do not count (inv.L9). */
size_t fetch_spare(const struct intake *in);

/* Returns how many runners are idle or soon will be, and have no job placed on them. */
size_t fetch_places(const struct intake *in);

/* fetch_room() returns how many more jobs make sense now; fetch_take() locks and claims the jobs of
 * these hints, as far as there is room. */
size_t fetch_room(struct intake *in);
void fetch_take(struct intake *in, const struct hint *list, size_t count);

/* Puts the job's hint back into its set, later if another worker holds the job's lock. */
void fetch_put_back(struct intake *in, const struct active_job *job);

/* Lets go of a job that was not claimed: releases its lease and frees its record. */
void fetch_let_go(struct intake *in, struct active_job *job);

/* Takes the jobs whose ends were committed: puts back the hints of those that wait again, and notes
 * what their limits allow now. */
void fetch_take_ended(struct intake *in);

/* Call when a quorum or PostgreSQL is missing: fetches nothing for a while, longer each time. */
void fetch_pause(struct intake *in);

/* Returns how long a claim may take. */
int64_t fetch_claim_bound_us(const struct intake *in);

/* Call when a change may allow more ids to be popped. */
void fetch_poke(struct intake *in);

#endif
