/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that a runner has left: a child of a program may lead a session of its own, where no
 * signal to the runner's group finds it. The worker is the nearest subreaper then, so they become
 * its children, and it ends them (fault.G4). */
#ifndef CLAIMD_WORKER_ORPHANS_H
#define CLAIMD_WORKER_ORPHANS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct worker;

enum status orphans_open(struct worker *w, struct err *err) MUST_USE;

/* Kills and reaps children that are no runner, about once a second. Theirs follow the next time. */
void orphans_tick(struct worker *w, int64_t now_us);

#endif
