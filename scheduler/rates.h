/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys with a rate, and those of jobs that need two, while this scheduler leads: each second the
 * hints of the jobs that may start by now are pushed. Whoever was refused has dropped the hint; the
 * claim decides. */
#ifndef CLAIMD_SCHEDULER_RATES_H
#define CLAIMD_SCHEDULER_RATES_H

#include "scheduler/services.h"

extern const struct service rates_service;

#endif
