/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks before a change that affects much: only if a person is at the terminal, and not with
 * --yes. */
#ifndef CLAIMD_CTL_AGREE_H
#define CLAIMD_CTL_AGREE_H

#include "ctl/core/ctl.h"

bool ctl_is_asking(const struct ctl_args *args);

/* Asks and reads a line, if ctl_is_asking(). Unless the line begins with y, prints that nothing was
 * done: the command returns the status, and the program ends with CTL_DECLINED. */
enum status ctl_agree(struct ctl *ctl, const struct ctl_args *args, const char *question) MUST_USE;

#endif
