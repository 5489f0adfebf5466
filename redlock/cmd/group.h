/* SPDX-License-Identifier: Apache-2.0
 *
 * A command in a process group of its own, as a shell runs a job: signals, the terminal, its end.
 * The group is over when nobody is left in it; we are the reaper of what its members leave behind
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

/* With `mask` as its signal mask. 0 or a negative errno; what can't be executed ends as 126 or 127,
 * having said why on stderr. SIGTTOU must be blocked. */
int group_start(struct group *g, char *const *argv, const sigset_t *mask);

void group_signal(const struct group *g, int number); /* to all of it; nothing when it is over */

/* Looks who ended or stopped. Returns a signal by which job control has stopped the leader and
 * which concerns us: we are to stop as well; else 0. */
int group_reap(struct group *g);

/* After we were stopped and continued: it goes on, with the terminal if it had it. */
void group_resume(struct group *g);

/* Takes the terminal back. Accepts one that was never started. */
void group_release(struct group *g);

#endif
