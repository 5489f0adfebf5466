/* SPDX-License-Identifier: Apache-2.0
 *
 * Hints that go back: of jobs that were popped here and are left to whoever pops them next. */
#ifndef CLAIMD_WORKER_HINT_RETURN_H
#define CLAIMD_WORKER_HINT_RETURN_H

#include "base/err.h"
#include "hints/hints.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct worker;

enum status hint_return_open(struct worker *w, struct err *err) MUST_USE;
void hint_return_close(struct worker *w);

/* Queues a copy of the hint; it is pushed after every lease released so far was acknowledged (else
 * it might find its own job held). */
void hint_return_add(struct worker *w, const struct hint *h);
/* What is queued doesn't wait for its delay: there is news among it. */
void hint_return_now(struct worker *w);
bool hint_return_is_idle(const struct worker *w);

/* A claim brought something, or nothing but rows that can't be claimed now. */
void hint_return_pace(struct worker *w, bool is_progress);

#endif
