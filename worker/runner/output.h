/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that reads what handlers print (worker/run_output.h), so that no handler waits for the
 * reader of the log, and whose is what: what is printed during a run is the run's. */
#ifndef CLAIMD_WORKER_RUNNER_OUTPUT_H
#define CLAIMD_WORKER_RUNNER_OUTPUT_H

#include "worker/run_output.h"

/* Before plugins are loaded. From here on stdout is line-buffered, and the log goes to
 * RUNNER_FD_LOG. */
enum status output_start(struct runner_page *page, struct err *err) MUST_USE;

/* Around a handler. The second takes what is still in the pipe. */
void output_begin(int64_t job);
void output_end(void);

#endif
