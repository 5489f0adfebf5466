/* SPDX-License-Identifier: Apache-2.0
 *
 * A question before much is changed: only where a person is at the terminal, and not with --yes. */
#ifndef CLAIMD_CTL_AGREE_H
#define CLAIMD_CTL_AGREE_H

#include "ctl/core/ctl.h"

bool ctl_is_asking(const struct ctl_args *args);

/* Asks, if so, and reads a line. Unless that begins with y it says that nothing was done: the
 * command returns the status, and the program ends with CTL_DECLINED. */
enum status ctl_agree(struct ctl *ctl, const struct ctl_args *args, const char *question) MUST_USE;

#endif
