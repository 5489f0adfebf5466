/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLAIMD_CTL_JOBS_H
#define CLAIMD_CTL_JOBS_H

#include "ctl/ctl.h"
#include "ctl/table.h"

/* INVALID: no id of a job. */
enum status jobs_check_id(const char *text, struct err *err) MUST_USE;

/* The ids of up to `limit` jobs that the options of `jobs list` choose, the newest; without --state
 * of the open ones. The caller releases the table, whatever the status. */
enum status jobs_find(struct ctl *ctl, const struct ctl_args *args, struct admin *a, int64_t limit,
                      struct table *ret_ids, struct err *err) MUST_USE;

#endif
