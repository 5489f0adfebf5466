/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives claimed jobs to runners. Each idle runner gets a job; if jobs are short and many wait, it
 * gets a millisecond's worth of one kind at once, which it runs without asking
 * (docs/decisions/0019). No job waits behind a slow one while a runner is idle: it is taken
 * back. */
#ifndef CLAIMD_WORKER_JOBS_DISPATCH_H
#define CLAIMD_WORKER_JOBS_DISPATCH_H

#include "base/err.h"

#include <stdint.h>
#include <uv.h>

struct capacity_facts;
struct jobs;

struct dispatch {
    uv_timer_t timer; /* active while jobs wait in runners */
};

enum status dispatch_open(struct jobs *j, struct err *err) MUST_USE;
void dispatch_close(struct jobs *j);

void dispatch_jobs(struct jobs *j);

/* Adds the runners, and the jobs that wait in them. */
void dispatch_count_runners(const struct jobs *j, int64_t now_us, struct capacity_facts *f);

/* Takes the results of all busy runners. */
void dispatch_take_results(struct jobs *j);
/* Call each tick: takes back jobs that wait behind a run that takes long, or all that wait in a
 * runner while the worker drains. */
void dispatch_tick(struct jobs *j, int64_t now_us);

#endif
