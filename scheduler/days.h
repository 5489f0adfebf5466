/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the history's days of today and tomorrow within a second where they are missing: after a
 * step of PostgreSQL's clock, or because one was dropped by hand. Nothing can end without them, so
 * it does not wait for the statements of scheduler/history.c, which makes the days after them. */
#ifndef CLAIMD_SCHEDULER_DAYS_H
#define CLAIMD_SCHEDULER_DAYS_H

#include "scheduler/services.h"

extern const struct service days_service;

#endif
