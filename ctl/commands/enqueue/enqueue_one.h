/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl enqueue KIND: one job from the command line. */
#ifndef CLAIMD_CTL_ENQUEUE_ONE_H
#define CLAIMD_CTL_ENQUEUE_ONE_H

#include "ctl/core/ctl.h"

/* Creates the job and prints its id. INVALID names the option. */
enum status enqueue_one(struct ctl *ctl, const struct ctl_args *args, struct err *err) MUST_USE;

#endif
