/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress and checkpoint of a run in the shared page. The runner writes them. The worker reads
 * them now and then, and once more when the run has ended, however it ended: after a failed run,
 * the runner begins no other run before they were read. Neither side waits: the worker skips a
 * value that is being written until the next time, and if the runner dies while it writes, the
 * values that were read before stand. The worker checks everything as untrusted input. */
#ifndef CLAIMD_PROTOCOL_RUN_SAID_H
#define CLAIMD_PROTOCOL_RUN_SAID_H

#include "protocol/protocol.h"

void run_said_reset(struct runner_page *page); /* call before a job */

/* For the runner. Lengths must be within the limits. */
void run_said_progress(struct runner_page *page, int percent, const char *text, size_t len);
void run_said_checkpoint(struct runner_page *page, const char *json, size_t len);

/* For the worker: true if there is a newer value than *count of the run with this nonce; *count is
 * then updated. `ret_text` has room for RUNNER_PROGRESS_BYTES, `ret_json` for
 * JOB_CHECKPOINT_MAX. */
bool run_said_read_progress(const struct runner_page *page, int64_t nonce, uint32_t *count,
                            int *ret_percent, char *ret_text, size_t *ret_len);
bool run_said_read_checkpoint(const struct runner_page *page, int64_t nonce, uint32_t *count,
                              char *ret_json, size_t *ret_len);

#endif
