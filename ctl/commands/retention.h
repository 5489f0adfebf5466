/* SPDX-License-Identifier: Apache-2.0
 *
 * How long finished jobs are kept: claimctl queues retain, kinds retain, kinds set
 * --keep-completed. */
#ifndef CLAIMD_CTL_RETENTION_H
#define CLAIMD_CTL_RETENTION_H

#include "ctl/core/ctl.h"
#include "ctl/core/table.h"

/* The rules of a queue or kind, into a table that has only its name. */
enum status retention_rules(struct admin *a, const char *scope, const char *name, struct table *ret,
                            struct err *err) MUST_USE;

/* `keep`: a number of days, `none` or `default`. */
enum status retention_keep_completed(struct ctl *ctl, const char *kind, const char *keep,
                                     struct err *err) MUST_USE;

#endif
