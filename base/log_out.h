/* SPDX-License-Identifier: Apache-2.0
 *
 * Where log.c's lines go: descriptor 2, unless log_out_to() names another one. Until
 * log_out_start() each is one write(2), which waits for its reader. From then on logging never
 * waits (fault.F5): a line is written at once if that can't block (docs/decisions/0010). Otherwise
 * it is put into a ring, which a thread writes out in pieces of whole lines; what has no room there
 * is dropped and counted. Any thread may log. */
#ifndef CLAIMD_BASE_LOG_OUT_H
#define CLAIMD_BASE_LOG_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_RING_BYTES ((size_t)256 << 10)
#define LOG_LINE_MAX 2048

/* Writes a line that says how many were dropped; returns its length, ≤ LOG_LINE_MAX. Called from
 * any thread that logs, and from the writing one. */
typedef size_t log_out_dropped_cb(uint64_t lines, uint64_t total, char ret_line[LOG_LINE_MAX]);

/* Before log_out_start(). */
void log_out_to(int fd);

/* Opens the pipe or terminal `fd` once more, with O_NONBLOCK on that description alone
 * (docs/decisions/0010). −1: it is another user's, and not ours to open. */
int log_out_reopen(int fd);

/* If there is no memory for a thread, everything stays as it was. */
void log_out_start(log_out_dropped_cb *say_dropped);
/* Waits for the ring to be written, no longer than this; then as before log_out_start(). */
void log_out_stop(int64_t within_us);

/* `line` ends with a newline. The last quarter of the ring is for lines that matter. */
void log_out_line(const char *line, size_t len, bool matters);

uint64_t log_out_dropped(void);

#endif
