/* SPDX-License-Identifier: Apache-2.0
 *
 * A question before much is changed: only where a person is at the terminal, and not with --yes. */
#ifndef CLAIMD_CTL_AGREE_H
#define CLAIMD_CTL_AGREE_H

#include "ctl/core/ctl.h"

bool ctl_is_asking(const struct ctl_args *args);

/* Asks, if so, and reads a line. INTERNAL unless that begins with y: nothing may be done then. */
enum status ctl_agree(const struct ctl_args *args, const char *question, struct err *err) MUST_USE;

#endif
