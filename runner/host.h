/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that a handler can call, and a single run of it: a context goes in; outcome,
 * result, error and log tail come out, all bounded. */
#ifndef CLAIMD_RUNNER_HOST_H
#define CLAIMD_RUNNER_HOST_H

#include "claimd/plugin.h"
#include "model/job.h"
#include "protocol/protocol.h"

extern const struct claimd_host HOST;

/* The state of one run, reused from job to job. The zero value is ready for run_init(). */
struct run {
    struct runner_page *page;
    struct buf args; /* a copy, followed by a NUL */
    struct buf more; /* copies of the other texts, each followed by a NUL */
    int64_t retry_after_us;
    size_t result_len;
    size_t too_long_len; /* length of the last result if it was refused; otherwise 0 */
    size_t error_len;
    char kind[JOB_NAME_MAX + 1];
    char result[JOB_RESULT_MAX];
    char error[JOB_ERROR_MAX + 1];
    char log_tail[JOB_LOG_TAIL_MAX];
};

void run_init(struct run *run, struct runner_page *page);

/* Swaps the job's place in the page, then calls the handler in this process. Texts of *ret are
 * borrowed from *run until the next call. NOMEM, NOT_FOUND (the worker has taken the job back): the
 * handler was not called. */
enum status run_job(struct run *run, const struct claimd_kind *kind, const struct job_frame *job,
                    _Atomic int64_t *place, struct result_frame *ret, struct err *err) MUST_USE;

/* Fills in the answer to a job whose kind this runner does not serve. */
void run_refuse(struct run *run, const struct job_frame *job, struct result_frame *ret);

/* Adds a line to the log tail of the run that has just ended. */
void run_note(struct run *run, struct result_frame *result, const char *text);

#endif
