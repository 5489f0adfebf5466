/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts back hints of jobs that were popped here and are left to the next worker that pops them. */
#ifndef CLAIMD_WORKER_INTAKE_HINT_RETURN_H
#define CLAIMD_WORKER_INTAKE_HINT_RETURN_H

#include "base/err.h"
#include "hints/hints.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intake;

enum status hint_return_open(struct intake *in, struct err *err) MUST_USE;
void hint_return_close(struct intake *in);

/* Queues a copy of the hint. It is pushed once all leases released so far are acknowledged;
 * otherwise the next worker might find its job still held. */
void hint_return_add(struct intake *in, const struct hint *h);
/* Pushes the queued hints without waiting for their delay: one of them is new. */
void hint_return_now(struct intake *in);
bool hint_return_is_idle(const struct intake *in);

/* Adjusts the delay after a claim: `is_progress` if it got any job, false if it met only locked
 * rows. */
void hint_return_pace(struct intake *in, bool is_progress);

#endif
