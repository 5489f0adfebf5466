/* SPDX-License-Identifier: Apache-2.0
 *
 * The output of a handler and its children: descriptors 1 and 2 of a runner are a pipe. The runner
 * reads it while it lives; if it dies, the worker reads what is left in the pipe, such as the
 * message of a failed assertion. Either way each line is logged (event=handler_output) and becomes
 * part of the run's log in the page. Output that was read but not logged yet is also in the page,
 * so that the worker logs it if the runner dies in between. If a runner is killed while it writes a
 * line to the log, that line may be logged twice. */
#ifndef CLAIMD_PROTOCOL_RUN_OUTPUT_H
#define CLAIMD_PROTOCOL_RUN_OUTPUT_H

#include "protocol/protocol.h"

/* Octets; a longer line continues in the next line of the log. */
#define RUN_OUTPUT_LINE_MAX 1024

struct run_output {
    int fd; /* read end of the pipe, O_NONBLOCK */
    struct runner_page *page;
    int64_t job;      /* the current job; 0 = none: output while loading, or of leftovers */
    uint64_t dropped; /* lines that were dropped and not reported yet */
};

/* Logs what was left in the page, then reads the pipe, at most about as much as a pipe holds. Never
 * blocks: lines that the reader of the log (descriptor `log_fd`; −1 = log_start() was called) does
 * not take now are dropped, and reported when the reader continues. */
void run_output_take(struct run_output *o, int log_fd);

/* Ends an incomplete line and logs it. */
void run_output_end_line(struct run_output *o, int log_fd);

#endif
