/* SPDX-License-Identifier: Apache-2.0
 *
 * How long finished jobs are kept: claimctl queues retain, kinds retain, kinds set
 * --keep-completed. */
#ifndef CLAIMD_CTL_RETENTION_H
#define CLAIMD_CTL_RETENTION_H

#include "ctl/ctl.h"

/* `keep`: a number of days, `none` or `default`. */
enum status retention_keep_completed(struct ctl *ctl, const char *kind, const char *keep,
                                     struct err *err) MUST_USE;

#endif
