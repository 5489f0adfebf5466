/* SPDX-License-Identifier: Apache-2.0
 *
 * How many more jobs make sense now: the facts for capacity.h, and the pauses of the whole worker
 * while a quorum or PostgreSQL is missing. */
#ifndef CLAIMD_WORKER_INTAKE_ROOM_H
#define CLAIMD_WORKER_INTAKE_ROOM_H

#include "worker/intake/capacity.h"

struct intake;

struct room {
    struct capacity_limits limits;
    /* Grows while there is no quorum or PostgreSQL is unreachable; 0 = a claim has succeeded. */
    int64_t pause_us;
    int64_t pause_until_us;
    int64_t setbacks_since_us; /* nothing could be claimed since then; 0 = a claim has succeeded */
    int64_t setback_us;        /* when the lock or claim of all popped jobs last failed */
    int64_t ahead_pause_until_us; /* a claim met locked rows: until then, claim nothing ahead */
};

/* Call at the start and after a reload. */
void room_configure(struct intake *in);

struct capacity_facts room_facts(const struct intake *in, int64_t now_us);

/* False while a claim would not count, or may not be made. */
bool room_may_take(const struct intake *in);

/* Returns how many more jobs make sense now. */
size_t room_left(struct intake *in);

/* Returns how many runners are idle or soon will be, and have no job placed on them. */
size_t room_places(const struct intake *in);
size_t room_places_left(const struct intake *in, const struct capacity_facts *f);

/* Returns the number of idle slots for which this worker has no job yet; 0 while it may not fetch
 * at all. Limits, weights and claiming ahead do not count (inv.L9). */
size_t room_spare(const struct intake *in);

/* Call when a quorum or PostgreSQL is missing: nothing is fetched for a while, longer each time. */
void room_pause(struct intake *in);

/* Returns how long a claim may take. */
int64_t room_claim_bound_us(const struct intake *in);

/* Call when a change may allow more ids to be popped. */
void room_poke(struct intake *in);

#endif
