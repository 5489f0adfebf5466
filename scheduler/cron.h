/* SPDX-License-Identifier: Apache-2.0
 *
 * Fires the ticks of schedules while this scheduler leads, and mends those that wait beyond their
 * next tick, when it begins and each minute. Asks PostgreSQL when the next one is due
 * and each second besides, which is how it sees what was changed meanwhile. What fires, and that it
 * fires once, is decided there (fire_schedules()): two leaders at once are harmless. On a
 * connection of its own, because it inserts jobs and the feed must not wait for that. */
#ifndef CLAIMD_SCHEDULER_CRON_H
#define CLAIMD_SCHEDULER_CRON_H

#include "scheduler/services.h"

/* How long to wait after an answer; pure. `late_us`: since the next tick is due (below 0: not yet);
 * `did_something`: a tick fired, so what is due now is the rest, and nobody's lock holds it. */
int64_t cron_wait_us(int64_t late_us, bool did_something, int64_t every_us);
/* … and after the nth failure in a row, n > 0. */
int64_t cron_backoff_us(int failures, int64_t every_us);

extern const struct service cron_service;

/* The families are listed from the start, though a standby counts nothing. */
void cron_metrics_init(struct metrics *registry);

#endif
