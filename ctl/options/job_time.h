/* SPDX-License-Identifier: Apache-2.0
 *
 * Times as people write them on the command line and in files. Pure. */
#ifndef CLAIMD_CTL_JOB_TIME_H
#define CLAIMD_CTL_JOB_TIME_H

#include "base/err.h"

#include <stdint.h>

/* Checks for RFC 3339 with a zone, and a valid day before the year 2286. INVALID names the allowed
 * form. */
enum status job_time_check(const char *text, struct err *err) MUST_USE;

/* Converts a text that passed the check to microseconds since 1970. */
int64_t job_time_us(const char *text);

#endif
