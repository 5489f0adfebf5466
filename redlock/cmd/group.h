/* SPDX-License-Identifier: Apache-2.0
 *
 * A command in a process group of its own, as a shell runs a job: signals, the terminal, its end.
 * The group is over when no process is left in it. We reap the orphans of its members
 * (PR_SET_CHILD_SUBREAPER), so each end comes as a SIGCHLD. */
#ifndef CLAIMD_REDLOCK_CMD_GROUP_H
#define CLAIMD_REDLOCK_CMD_GROUP_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct group {
    pid_t id; /* its leader's; 0 = never started */
    int code; /* of the leader: an exit code, or 128 + signal; −1 while it runs */
    int terminal_fd;
    bool has_terminal; /* it was given the foreground */
    bool is_over;
};

/* Starts the command with `mask` as its signal mask. 0 or a negative errno; a command that can't be
 * executed ends with 126 or 127, after writing the reason to stderr. SIGTTOU must be blocked. */
int group_start(struct group *g, char *const *argv, const sigset_t *mask);

void group_signal(const struct group *g, int number); /* to all of it; nothing when it is over */

/* Checks which members ended or stopped. Returns the signal by which job control has stopped the
 * leader, if we are to stop as well; else 0. */
int group_reap(struct group *g);

/* After we were stopped and continued: continues the group, with the terminal if it had that. */
void group_resume(struct group *g);

/* Takes the terminal back. Accepts one that was never started. */
void group_release(struct group *g);

#endif
