/* SPDX-License-Identifier: Apache-2.0
 *
 * The metrics that every process exports, named as in
 * https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics */
#ifndef CLAIMD_DAEMON_PROCESS_H
#define CLAIMD_DAEMON_PROCESS_H

#include "metrics/metrics.h"

/* Prevents other processes of our user, but not root, from reading or writing this process's
 * memory, which holds the passwords, and disables core dumps. Call it first. See SECURITY.md. */
void process_protect(void);

/* Ignores SIGHUP and SIGUSR1 from now on, so that neither kills a process that is already ending.
 * Call it once, before the loop's own signal watchers are closed. */
void process_ignore_requests(void);

/* Sets the version and the start time; call it at the start. */
void process_begin(struct metrics *m);

/* Updates the other metrics; call it every second. */
void process_collect(struct metrics *m);

#endif
