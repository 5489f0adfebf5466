/* SPDX-License-Identifier: Apache-2.0
 *
 * Fires the ticks of schedules while this scheduler leads, and mends schedules that wait beyond
 * their next tick, when leading begins and each minute. It asks PostgreSQL when the next tick is
 * due, and asks again each second, so that changed schedules are noticed. PostgreSQL decides what
 * fires and that it fires once (fire_schedules()), so two leaders at once are harmless. It uses a
 * connection of its own, because it inserts jobs and the feed must not wait for that. */
#ifndef CLAIMD_SCHEDULER_CRON_H
#define CLAIMD_SCHEDULER_CRON_H

#include "scheduler/services.h"

/* Returns how long to wait after an answer; pure. `late_us`: how long the next tick has been due
 * (below 0: not due yet); `did_something`: a tick fired, so what is still due exceeded the limit of
 * one call and is not locked by another session. */
int64_t cron_wait_us(int64_t late_us, bool did_something, int64_t every_us);
/* Returns how long to wait after the nth failure in a row, n > 0. */
int64_t cron_backoff_us(int failures, int64_t every_us);

extern const struct service cron_service;

/* Creates the metric families, so that they are listed from the start, even on a standby. */
void cron_metrics_init(struct metrics *registry);

#endif
