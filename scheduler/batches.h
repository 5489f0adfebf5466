/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends batches while this scheduler leads: asks each second which of them are closed and have no
 * open job. That a follow-up is made once is decided in PostgreSQL: two leaders at once are
 * harmless. */
#ifndef CLAIMD_SCHEDULER_BATCHES_H
#define CLAIMD_SCHEDULER_BATCHES_H

#include "scheduler/services.h"

extern const struct service batches_service;

#endif
