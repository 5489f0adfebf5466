/* SPDX-License-Identifier: Apache-2.0
 *
 * The logs that attempts of a job left at their end, and that of the attempt that runs. They do not
 * fit into a table. */
#ifndef CLAIMD_CTL_JOB_LOG_H
#define CLAIMD_CTL_JOB_LOG_H

#include "ctl/core/table_text.h"

/* The logs to print, as the options say. */
struct job_log {
    const char *attempt;    /* NULL: the last one that has a log; or "all" */
    const char *generation; /* NULL: any */
};

/* Returns INVALID if a number is not valid. */
enum status job_log_check(const struct job_log *wanted, struct err *err) MUST_USE;

/* Prints the logs; that of the attempt that runs, in `job` of VERB_JOB_SHOW, is the last one of
 * all. `attempts` has its rows in order, and columns named attempt, generation and log_tail.
 * NOT_FOUND lists the logs that exist; without options, it is not an error if there are none. */
enum status job_log_print(const struct job_log *wanted, const struct table *job,
                          const struct table *attempts, FILE *out, struct err *err) MUST_USE;

#endif
