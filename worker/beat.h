/* SPDX-License-Identifier: Apache-2.0
 *
 * The heartbeat of the worker's row, and what its replies say to listen to. */
#ifndef CLAIMD_WORKER_BEAT_H
#define CLAIMD_WORKER_BEAT_H

struct worker;

void beat_start(struct worker *w);
void beat_now(struct worker *w); /* unless one is under way */
void beat_stop(struct worker *w);
void beat_listen(struct worker *w); /* the hint sets of queues that are not paused */

#endif
