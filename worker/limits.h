/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs with a limit that is reached. PostgreSQL decides that, at the claim; here the hints are seen
 * to: that of a refused job is dropped, and whoever frees the limit pushes the next one. */
#ifndef CLAIMD_WORKER_LIMITS_H
#define CLAIMD_WORKER_LIMITS_H

#include "store/jobs/job_store.h"

#define LIMITS_REFUSED_MAX 500

struct worker;

struct limits {
    int64_t refused[LIMITS_REFUSED_MAX];
    size_t refused_count;
    bool is_asking;
};

/* Of the job store: a run has ended, and this job may be claimed now. */
void limits_freed(void *worker, const struct freed_job *job);

/* A job whose limit is reached, and whose lease is being released: until that is acknowledged
 * whoever gets its hint finds it held, and drops it. Then limits_ask() asks what comes next. */
void limits_refused(struct worker *w, int64_t id);
void limits_ask(struct worker *w);

#endif
