/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts processes for this library. When run as root, they become an unprivileged user. They die
 * with their parent, and inherit no descriptor but 0–2. */
#ifndef CLAIMD_CLUSTER_CHILD_H
#define CLAIMD_CLUSTER_CHILD_H

#include "base/err.h"

#include <sys/types.h>

struct child_spec {
    const char *const *argv; /* argv[0]: a path if it has a slash, else looked up in $PATH */
    const char *const *env;  /* additional variables, NULL-ended, or NULL */
    const char *dir;         /* working directory; NULL = ours */
    int in_fd;               /* 0 = /dev/null */
    int out_fd;              /* -1 = ours */
    int err_fd;              /* -1 = ours */
    int death_signal;        /* sent when the parent dies */
};

/* Forks and executes. Returns UNAVAILABLE, with the reason, if the program cannot be run. */
enum status child_start(const struct child_spec *spec, pid_t *ret_pid, struct err *err) MUST_USE;

/* True if the process no longer runs; reaps it if it is our child. A zombie of another process
 * counts as gone. */
bool child_is_gone(pid_t pid, int *ret_wait_status);
bool child_wait_gone(pid_t pid, int64_t timeout_us, int *ret_wait_status);

/* Sends the signals one after the other, `timeout_us` apart, until the process is gone. */
void child_end(pid_t pid, const int *signals, size_t count, int64_t timeout_us);

/* Makes the servers' user the owner of `path`. Does nothing unless we are root. */
enum status child_user_owns(const char *path, struct err *err) MUST_USE;

/* True if `uid` is our own user or the servers' user. */
bool child_user_is(uid_t uid);

/* True if the servers' user cannot reach the build that this program comes from: the programs of
 * that build then run as root, and expect root to own their files. */
bool child_programs_stay_root(void);

/* Finds a program of PostgreSQL or Redis: in $PATH, then in the newest /usr/lib/postgresql/N/bin.
 * Returns NOT_FOUND if it is in neither. */
enum status child_find_program(const char *name, char *ret_path, size_t size,
                               struct err *err) MUST_USE;

/* Returns the last bytes of a log, for the text of an error; "" if there is no log. */
void child_log_tail(const char *path, char *ret_text, size_t size);

#endif
