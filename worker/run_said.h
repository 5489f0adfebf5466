/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress and checkpoint of a run in the shared page: the runner writes, the worker looks now and
 * then, and once more when the run is over, however it ended: a runner begins no other run before
 * what a failed one has said was read. Nobody waits: what is being written
 * while the worker looks is read the next time, and a runner that dies meanwhile has said what it
 * said before. The worker checks everything as if an enemy had written it. */
#ifndef CLAIMD_WORKER_RUN_SAID_H
#define CLAIMD_WORKER_RUN_SAID_H

#include "worker/protocol.h"

void run_said_reset(struct runner_page *page); /* before a job */

/* The runner's side; within the limits. */
void run_said_progress(struct runner_page *page, int percent, const char *text, size_t len);
void run_said_checkpoint(struct runner_page *page, const char *json, size_t len);

/* The worker's: true when there is something newer than *count of the run with this nonce; *count
 * is then of what was read.
 * `ret_text` has RUNNER_PROGRESS_BYTES, `ret_json` JOB_CHECKPOINT_MAX. */
bool run_said_read_progress(const struct runner_page *page, int64_t nonce, uint32_t *count,
                            int *ret_percent, char *ret_text, size_t *ret_len);
bool run_said_read_checkpoint(const struct runner_page *page, int64_t nonce, uint32_t *count,
                              char *ret_json, size_t *ret_len);

#endif
