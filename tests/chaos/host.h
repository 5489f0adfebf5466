/* SPDX-License-Identifier: Apache-2.0
 *
 * One daemon of the world: its start, its end, and what it leaves behind. */
#ifndef CLAIMD_TESTS_CHAOS_HOST_H
#define CLAIMD_TESTS_CHAOS_HOST_H

#include "chaos/world.h"

#define HOST_RUNNERS_MAX 128

void hosts_init(struct world *w); /* names and numbers them; all are due to start */

/* Notices the daemon's end, and starts it when that is due. */
void host_tick(struct world *w, struct host *h, int64_t now_us);

void host_kill(struct world *w, struct host *h); /* SIGKILL; the caller sets restart_us */
/* Sends SIGTERM; the daemon must end within its drain time and a few seconds. */
void host_terminate(struct world *w, struct host *h, int64_t now_us);
/* Sends SIGCONT to a process. If it is a daemon that was asked to end while it was stopped, its
 * time to do so begins now. */
void host_continue(struct world *w, pid_t pid);

void host_close_log(struct host *h); /* closes the reader of a stalled log */

size_t host_runners(const struct host *h, pid_t ret_pids[HOST_RUNNERS_MAX]);
int64_t process_cpu_us(pid_t pid); /* user and system time so far; 0 = it has ended */

#endif
