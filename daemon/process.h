/* SPDX-License-Identifier: Apache-2.0
 *
 * The metrics that any process has, by the names of
 * https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics */
#ifndef CLAIMD_DAEMON_PROCESS_H
#define CLAIMD_DAEMON_PROCESS_H

#include "metrics/metrics.h"

/* To be called first: from then on no other process of our user may read this one's memory, where
 * the passwords are, or write to it. Root still may; core dumps are off. See SECURITY.md. */
void process_protect(void);

/* To be called once, before the loop's own watchers of signals are closed: from then on a SIGHUP or
 * SIGUSR1 asks for nothing any more, and must not kill a process that ends. */
void process_ignore_requests(void);

/* At the start: this version, this start time. */
void process_begin(struct metrics *m);

/* Each second. */
void process_collect(struct metrics *m);

#endif
