/* SPDX-License-Identifier: Apache-2.0
 *
 * What a handler and its children print: descriptors 1 and 2 of a runner are a pipe. The runner
 * reads it while it lives; what a runner that died has left in it, such as the message of a failed
 * assertion, the worker reads. Either way each line is logged (event=handler_output), and is part
 * of the run's log in the page. What was read and not logged yet is in the page, so that the worker
 * logs it if the runner dies in between; of one that is killed while it writes a line to the log,
 * that line may be there twice. */
#ifndef CLAIMD_WORKER_RUN_OUTPUT_H
#define CLAIMD_WORKER_RUN_OUTPUT_H

#include "worker/protocol.h"

/* Octets; the rest of a longer one is the next line of the log. */
#define RUN_OUTPUT_LINE_MAX 1024

struct run_output {
    int fd; /* the pipe's end to read from, O_NONBLOCK */
    struct runner_page *page;
    int64_t job;      /* that runs now; 0 = none: of plugins that are loaded, or left behind */
    uint64_t dropped; /* lines, which the log has not been told of yet */
};

/* Logs what was left in the page, then takes what is in the pipe, at most about as much as a pipe
 * holds, and waits for nobody: lines that the reader of the log (descriptor `log_fd`; −1 =
 * log_start() was called) does not take now are dropped, and reported once it goes on. */
void run_output_take(struct run_output *o, int log_fd);

/* A line that has no end yet ends here. */
void run_output_end_line(struct run_output *o, int log_fd);

#endif
