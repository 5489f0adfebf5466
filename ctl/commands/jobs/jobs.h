/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLAIMD_CTL_JOBS_H
#define CLAIMD_CTL_JOBS_H

#include "ctl/core/ctl.h"

/* Returns INVALID if the text is not an id of a job. */
enum status jobs_check_id(const char *text, struct err *err) MUST_USE;

#endif
