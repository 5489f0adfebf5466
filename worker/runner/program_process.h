/* SPDX-License-Identifier: Apache-2.0
 *
 * A process of a handler file: started without a shell, with nothing open but what it is given. */
#ifndef CLAIMD_WORKER_RUNNER_PROGRAM_PROCESS_H
#define CLAIMD_WORKER_RUNNER_PROGRAM_PROCESS_H

#include "worker/runner/handler_file.h"

#include <sys/types.h>

#define PROGRAM_FD_IN 3 /* as the program sees them */
#define PROGRAM_FD_OUT 4

struct program_process {
    pid_t pid; /* 0 = there is none, or it is reaped */
    int pidfd;
    int in;  /* to write to, O_NONBLOCK; the program reads it; −1 where it runs once */
    int out; /* to read from, O_NONBLOCK */
    /* Where it runs once, a write end of ours, else −1: so `out` does not end before the process
     * does, which would wake us twice for each job. */
    int held;
};

/* `argv`, `env`: NULL-ended. `input`, `print_to`: its stdin and stdout; −1 = ours. The program dies
 * with this thread, and has this process' group, its stdout and stderr. UNAVAILABLE: nothing was
 * started. Descriptors of ours that stay between jobs are high ones: the low ones are looked at
 * there (process_state.h). */
enum status program_process_start(const struct handler_file *h, char *const *argv, char *const *env,
                                  int input, int print_to, struct program_process *ret,
                                  struct err *err) MUST_USE;

/* Kills and reaps it unless it is reaped, and closes what it has. Its children are left. */
void program_process_end(struct program_process *p);

struct program_exit {
    int exit_code; /* −1: a signal ended it */
    char how[32];  /* "exit status 3", "SIGSEGV" */
};

/* Waits for its end, at most `wait_ms`. False: it lives. */
bool program_process_ended(const struct program_process *p, int wait_ms, struct program_exit *ret);

/* Waits for its end, and reaps it. */
void program_process_reap(struct program_process *p, struct program_exit *ret);

#endif
