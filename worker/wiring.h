/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects the parts of the worker: fills in what each needs from the others. */
#ifndef CLAIMD_WORKER_WIRING_H
#define CLAIMD_WORKER_WIRING_H

#include "worker/intake/intake.h"
#include "worker/jobs/jobs.h"
#include "worker/membership/membership.h"

struct worker;

struct membership_env wiring_membership(struct worker *w);
struct jobs_env wiring_jobs(struct worker *w);
struct intake_env wiring_intake(struct worker *w);

/* Of all slots; their context is the worker. */
extern const struct slot_events wiring_slot_events;

#endif
