/* SPDX-License-Identifier: Apache-2.0
 *
 * What a handler may have left behind in its process, as far as a few system calls can tell
 * (fault.G4): the next job then gets a fresh runner. */
#ifndef CLAIMD_WORKER_RUNNER_PROCESS_STATE_H
#define CLAIMD_WORKER_RUNNER_PROCESS_STATE_H

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
    bool (*keeps)(pid_t child); /* children that may be there; NULL = none */
};

/* How the process looks when clean: after plugins, watchdog and signal handler are set up.
 * `keeps`: see above. */
void process_state_baseline(struct process_state *ret, bool (*keeps)(pid_t child));

/* What differs from it: a text, or NULL when nothing does. */
const char *process_state_change(const struct process_state *clean);

/* Ends every process that descends from this one, also those that left its group, but for children
 * that `keeps` names (NULL = none) and theirs. */
void process_state_end_children(bool (*keeps)(pid_t child));

#endif
