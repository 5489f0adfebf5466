/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends processes that a runner has left behind. A child of a program may lead a session of its own,
 * where no signal to the runner's group reaches it. The worker is the nearest subreaper, so such
 * processes become its children (fault.G4). */
#ifndef CLAIMD_WORKER_SLOTS_ORPHANS_H
#define CLAIMD_WORKER_SLOTS_ORPHANS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct slots;

enum status orphans_open(struct err *err) MUST_USE;

/* Kills and reaps children that are not runners, about once a second. Their own children follow in
 * the next round. */
void orphans_tick(struct slots *s, int64_t now_us);

#endif
