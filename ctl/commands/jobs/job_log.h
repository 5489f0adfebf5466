/* SPDX-License-Identifier: Apache-2.0
 *
 * What attempts of a job said at their end; a table has no room for that. */
#ifndef CLAIMD_CTL_JOB_LOG_H
#define CLAIMD_CTL_JOB_LOG_H

#include "ctl/core/table_text.h"

/* Which of them: as options say it. */
struct job_log {
    const char *attempt;    /* NULL: the last that has a log; "all" */
    const char *generation; /* NULL: any */
};

/* INVALID: no such number. */
enum status job_log_check(const struct job_log *wanted, struct err *err) MUST_USE;

/* `attempts`: in their order, with columns of these names: attempt, generation, log_tail. NOT_FOUND
 * names what there is; where nothing was asked for, nothing need be there. */
enum status job_log_print(const struct job_log *wanted, const struct table *attempts, FILE *out,
                          struct err *err) MUST_USE;

#endif
