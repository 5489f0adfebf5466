/* SPDX-License-Identifier: Apache-2.0
 *
 * One daemon of the world: its start, its end, and what it leaves. */
#ifndef CLAIMD_TESTS_CHAOS_HOST_H
#define CLAIMD_TESTS_CHAOS_HOST_H

#include "chaos/world.h"

#define HOST_RUNNERS_MAX 128

void hosts_init(struct world *w); /* names and numbers them; all are due to be started */

/* Notices its end, starts it when that is due. */
void host_tick(struct world *w, struct host *h, int64_t now_us);

void host_kill(struct world *w, struct host *h); /* SIGKILL; restart_us is the caller's business */
/* SIGTERM; it must be gone within its drain and some seconds. */
void host_terminate(struct world *w, struct host *h, int64_t now_us);

void host_close_log(struct host *h); /* the reader of a stalled one goes away */

size_t host_runners(const struct host *h, pid_t ret_pids[HOST_RUNNERS_MAX]);
int64_t process_cpu_us(pid_t pid); /* user and system time so far; 0 = gone */

#endif
