/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects the parts of the worker: fills in what each needs from the others. */
#ifndef CLAIMD_WORKER_WIRING_H
#define CLAIMD_WORKER_WIRING_H

#include "worker/membership/membership.h"

struct worker;

struct membership_env wiring_membership(struct worker *w);

#endif
