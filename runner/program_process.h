/* SPDX-License-Identifier: Apache-2.0
 *
 * A process of a handler file. It is started without a shell, and only the descriptors that it is
 * given are open in it. */
#ifndef CLAIMD_RUNNER_PROGRAM_PROCESS_H
#define CLAIMD_RUNNER_PROGRAM_PROCESS_H

#include "runner/handler_file.h"

#include <sys/types.h>

#define PROGRAM_FD_IN 3 /* as the program sees them */
#define PROGRAM_FD_OUT 4

struct program_process {
    pid_t pid; /* 0 = there is none, or it is reaped */
    int pidfd;
    int in;  /* we write to it, O_NONBLOCK; −1 if the program runs once */
    int out; /* we read from it, O_NONBLOCK */
    /* Our copy of the write end of `out` if the program runs once, else −1. It keeps `out` from
     * ending before the process does, which would wake us twice per job. */
    int held;
};

/* Starts a program. `argv`, `env`: NULL-ended. `input`, `print_to`: its stdin and stdout; −1 =
 * ours. It dies with this thread, and is in our process group. UNAVAILABLE: nothing was started.
 * Our descriptors that stay open between jobs get high numbers: if the lowest free one changes, a
 * handler is taken to have left one open (process_state.h). */
enum status program_process_start(const struct handler_file *h, char *const *argv, char *const *env,
                                  int input, int print_to, struct program_process *ret,
                                  struct err *err) MUST_USE;

/* Kills and reaps the process unless that was done, and closes our descriptors. Its children are
 * not killed. */
void program_process_end(struct program_process *p);

struct program_exit {
    int exit_code; /* −1: a signal ended it */
    char how[32];  /* "exit status 3", "SIGSEGV" */
};

/* Waits at most `wait_ms` for its end. False: it is still running. */
bool program_process_ended(const struct program_process *p, int wait_ms, struct program_exit *ret);

/* Waits for its end and reaps it. */
void program_process_reap(struct program_process *p, struct program_exit *ret);

#endif
