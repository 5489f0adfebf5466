/* SPDX-License-Identifier: Apache-2.0
 *
 * From hints to locked jobs: how many to ask for, their locks, and that they are claimed. */
#ifndef CLAIMD_WORKER_FETCH_H
#define CLAIMD_WORKER_FETCH_H

#include "hints/hints.h"
#include "worker/capacity.h"

struct job_in_hand;
struct worker;

struct fetch {
    struct capacity_limits limits;
    /* Grows while no quorum or no PostgreSQL is there; 0 = a claim has succeeded. */
    int64_t pause_us;
    int64_t pause_until_us;
    int64_t ahead_pause_until_us; /* a claim found rows that others hold: none ahead meanwhile */
    int64_t alone_until_us;       /* a lock was not won: no claim beside one meanwhile */
};

/* At the start and after a reload. */
void fetch_configure(struct worker *w);

/* Of hints_popper: how many more ids, and what came. */
size_t fetch_want(void *worker);
void fetch_popped(void *worker, const struct hint *list, size_t count);

/* Idle slots that no job in this worker's hands is meant for; 0 while it may not fetch at all. What
 * limits, weights or claiming ahead say does not count (inv.L9). */
size_t fetch_spare(const struct worker *w);

/* Runners that are idle or soon will be, and that no job was placed on. */
size_t fetch_places(const struct worker *w);

/* How many more jobs make sense now; locks and claims those of these hints. */
size_t fetch_room(struct worker *w);
void fetch_take(struct worker *w, const struct hint *list, size_t count);

/* The job's hint goes back to where it came from, later if somebody else holds its lock. */
void fetch_put_back(struct worker *w, const struct job_in_hand *job);

/* A quorum or PostgreSQL is missing: nothing is fetched for a while, ever longer. */
void fetch_pause(struct worker *w);

/* Something changed that may let more be asked for. */
void fetch_poke(struct worker *w);

#endif
