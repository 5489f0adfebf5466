/* SPDX-License-Identifier: Apache-2.0
 *
 * The log of a run in the shared page, where it outlives the runner. The runner writes it; the
 * worker reads it, while the run goes on and after its end, as untrusted input. */
#ifndef CLAIMD_PROTOCOL_RUN_LOG_H
#define CLAIMD_PROTOCOL_RUN_LOG_H

#include "protocol/protocol.h"

#define RUN_LOG_LINE_MAX 4096

void run_log_reset(struct runner_page *page);

/* Appends at most RUN_LOG_LINE_MAX bytes; the rest is cut off. Two threads may append at once. If
 * the process is killed during an append, some bytes of the tail may be older ones. */
void run_log_append(struct runner_page *page, const char *bytes, size_t len);

/* Copies the last bytes, at most JOB_LOG_TAIL_MAX; returns how many. During an append, some of them
 * may be older ones. */
size_t run_log_tail(const struct runner_page *page, char ret_tail[JOB_LOG_TAIL_MAX]);

#endif
