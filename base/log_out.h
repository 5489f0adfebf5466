/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of log.c's lines, to descriptor 2 unless log_out_to() names another one. Until
 * log_out_start(), each line is one write(2), which may block. After it, logging never blocks
 * (fault.F5): a line is written directly if that can't block (docs/decisions/0010). Otherwise it
 * goes into a ring, which a thread writes out in chunks of whole lines; a line that finds no room
 * there is dropped and counted. All functions that log are thread-safe. */
#ifndef CLAIMD_BASE_LOG_OUT_H
#define CLAIMD_BASE_LOG_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_RING_BYTES ((size_t)256 << 10)
#define LOG_LINE_MAX 2048

/* Writes a log line that reports the number of dropped lines, and returns its length, ≤
 * LOG_LINE_MAX. Called by the thread that writes the ring and by any thread that logs. */
typedef size_t log_out_dropped_cb(uint64_t lines, uint64_t total, char ret_line[LOG_LINE_MAX]);

/* Logs to `fd`; call it before log_out_start(). */
void log_out_to(int fd);

/* Opens the pipe or terminal `fd` a second time, so that O_NONBLOCK is set on the new open file
 * description only (docs/decisions/0010). Returns −1 if that fails, for example if another user
 * owns it. */
int log_out_reopen(int fd);

/* Starts the thread. If it can't be created, log_out_line() keeps blocking. */
void log_out_start(log_out_dropped_cb *say_dropped);
/* Waits at most `within_us` for the ring to drain, then stops the thread; log_out_line() blocks
 * again. */
void log_out_stop(int64_t within_us);

/* Logs `line`, which ends with a newline. Only lines that matter may use the last quarter of the
 * ring. */
void log_out_line(const char *line, size_t len, bool matters);

uint64_t log_out_dropped(void);

#endif
