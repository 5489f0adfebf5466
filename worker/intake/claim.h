/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims jobs in PostgreSQL and handles the replies: claimed jobs become ready for a runner, and
 * the hints of the others are dropped or put back. A claim is sent once the lease is won, or at the
 * same time as the lock (fetch.c, docs/decisions/0020). */
#ifndef CLAIMD_WORKER_INTAKE_CLAIM_H
#define CLAIMD_WORKER_INTAKE_CLAIM_H

#include "worker/jobs/active_jobs.h"

struct intake;

/* Claims jobs that are active; those from jobs[ahead_from] on are claimed ahead of a free runner.
 * False if the claim could not be queued. */
bool claim_ask(struct intake *in, struct active_job *const *jobs, size_t count, size_t ahead_from);

/* Does what active_step() returned for a job once both its lock's verdict and its claim's reply
 * have arrived: fetches its args or makes it ready for a runner, if its lease is still held; hands
 * it back, or lets it go. */
void claim_do(struct intake *in, struct active_job *job, enum active_action action);

/* Call before ready jobs are given to runners: jobs that were claimed ahead and turn out to be long
 * get a runner of their own or are handed back. */
void claim_place_long(struct intake *in);

#endif
