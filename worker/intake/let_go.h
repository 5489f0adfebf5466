/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets go of jobs that this worker does not run, or not any more: their leases, records and
 * hints. */
#ifndef CLAIMD_WORKER_INTAKE_LET_GO_H
#define CLAIMD_WORKER_INTAKE_LET_GO_H

struct active_job;
struct hint;
struct intake;

/* Lets go of the hint of a job whose lock is held: it goes back if the job turns out to wait. If
 * there are too many such hints, it is dropped: a full pass finds jobs that wait. */
void let_go_held(struct intake *in, const struct hint *hint);

/* Puts the job's hint back into its set, later if another worker holds the job's lock. */
void let_go_hint(struct intake *in, const struct active_job *job);

/* Lets go of a job that was not claimed: releases its lease and frees its record. */
void let_go_job(struct intake *in, struct active_job *job);

/* Takes the jobs whose ends were committed: puts back the hints of those that wait again, and notes
 * what their limits allow now. */
void let_go_ended(struct intake *in);

#endif
