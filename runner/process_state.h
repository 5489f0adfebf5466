/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds what a handler may have left behind in its process, as far as a few system calls show it
 * (fault.G4): the next job then gets a fresh runner. */
#ifndef CLAIMD_RUNNER_PROCESS_STATE_H
#define CLAIMD_RUNNER_PROCESS_STATE_H

#include "base/err.h"

#include <sys/stat.h>

#define PROCESS_VARIABLES_MAX 16

struct process_state {
    struct stat directory;
    mode_t mask;
    int first_free_fd;
    nlink_t tasks;
    char **environment;
    char *variables[PROCESS_VARIABLES_MAX];
    void (*on_term)(int);
    bool (*keeps)(pid_t child); /* true for children that may exist; NULL = none may */
};

/* Records the state of a clean process, after plugins, watchdog and signal handler are set up.
 * `keeps`: see above. */
void process_state_baseline(struct process_state *ret, bool (*keeps)(pid_t child));

/* Returns what differs from it, or NULL if nothing does. */
const char *process_state_change(const struct process_state *clean);

/* Ends every descendant of this process, including those that left its group, except children for
 * which `keeps` (NULL = none) is true, and their descendants. */
void process_state_end_children(bool (*keeps)(pid_t child));

#endif
