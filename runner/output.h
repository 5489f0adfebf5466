/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that reads the output of handlers (protocol/run_output.h), so that no handler waits
 * for the reader of the log. Output belongs to the run during which it is printed. */
#ifndef CLAIMD_RUNNER_OUTPUT_H
#define CLAIMD_RUNNER_OUTPUT_H

#include "protocol/run_output.h"

/* Call before plugins are loaded. From then on, stdout is line-buffered, and the log goes to
 * RUNNER_FD_LOG. */
enum status output_start(struct runner_page *page, struct err *err) MUST_USE;

/* Call before and after a handler. output_end() takes what is still in the pipe. */
void output_begin(int64_t job);
void output_end(void);

#endif
