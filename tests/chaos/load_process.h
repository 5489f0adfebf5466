/* SPDX-License-Identifier: Apache-2.0
 *
 * A process of the kit that makes load, beside the one that runs the world. */
#ifndef CLAIMD_TESTS_CHAOS_LOAD_PROCESS_H
#define CLAIMD_TESTS_CHAOS_LOAD_PROCESS_H

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

/* Runs in the new process until load_process_must_end(); returns its exit code. */
typedef int load_process_fn(void *ctx);

enum status load_process_start(load_process_fn *run, void *ctx, pid_t *ret_pid,
                               struct err *err) MUST_USE;
bool load_process_must_end(void);

/* Asks it to end, and waits. Returns false if its exit code was not 0, or if it had to be killed
 * after that time. */
bool load_process_stop(pid_t pid, int64_t most_us);

#endif
