/* SPDX-License-Identifier: Apache-2.0
 *
 * A command in a process group of its own, as a shell runs a job: signals, terminal, end. The group
 * is over when no process is left in it. We reap the orphans of its members
 * (PR_SET_CHILD_SUBREAPER), so each end raises a SIGCHLD. */
#ifndef CLAIMD_REDLOCK_CMD_GROUP_H
#define CLAIMD_REDLOCK_CMD_GROUP_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct group {
    pid_t id; /* pid of its leader; 0 = never started */
    int code; /* of the leader: an exit code, or 128 + signal; −1 while it runs */
    int terminal_fd;
    bool has_terminal; /* it was given the foreground of the terminal */
    bool is_over;
};

/* Starts the command with `mask` as its signal mask. Returns 0 or a negative errno. A command that
 * can't be executed ends with 126 or 127, after writing the reason to stderr. SIGTTOU must be
 * blocked. */
int group_start(struct group *g, char *const *argv, const sigset_t *mask);

/* signals the whole group, unless it is over */
void group_signal(const struct group *g, int number);

/* Checks which members have ended or stopped. Returns the signal by which job control has stopped
 * the leader if we should stop as well; otherwise 0. */
int group_reap(struct group *g);

/* Continues the group after we were stopped and continued; gives the terminal back to it if it had
 * that. */
void group_resume(struct group *g);

/* Takes the terminal back. Accepts a group that was never started. */
void group_release(struct group *g);

#endif
