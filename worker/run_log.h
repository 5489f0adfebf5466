/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run has logged, in the shared page, so that it is there when the runner isn't any more.
 * The runner writes, the worker reads after the runner's end and believes nothing. */
#ifndef CLAIMD_WORKER_RUN_LOG_H
#define CLAIMD_WORKER_RUN_LOG_H

#include "worker/protocol.h"

#define RUN_LOG_LINE_MAX 4096

void run_log_reset(struct runner_page *page);

/* At most RUN_LOG_LINE_MAX bytes, the rest is cut off. Two threads may do so at once. Of a process
 * that is killed in the middle of it, some bytes of the tail may be older ones. */
void run_log_append(struct runner_page *page, const char *bytes, size_t len);

/* Copies the last bytes, at most JOB_LOG_TAIL_MAX; returns how many. */
size_t run_log_tail(const struct runner_page *page, char ret_tail[JOB_LOG_TAIL_MAX]);

#endif
