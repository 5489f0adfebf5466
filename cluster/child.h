/* SPDX-License-Identifier: Apache-2.0
 *
 * How this library starts processes: as root they become an unprivileged user, they die with their
 * parent, and inherit no descriptor but 0–2. */
#ifndef CLAIMD_CLUSTER_CHILD_H
#define CLAIMD_CLUSTER_CHILD_H

#include "base/err.h"

#include <sys/types.h>

struct child_spec {
    const char *const *argv; /* argv[0] with a slash is a path, else it is looked up in $PATH */
    const char *const *env;  /* additions, NULL-ended, or NULL */
    const char *dir;         /* working directory; NULL = ours */
    int in_fd;               /* 0 = /dev/null */
    int out_fd;              /* -1 = ours */
    int err_fd;              /* -1 = ours */
    int death_signal;        /* when the parent dies */
};

/* fork + exec. UNAVAILABLE when the program can't be run, with the reason. */
enum status child_start(const struct child_spec *spec, pid_t *ret_pid, struct err *err) MUST_USE;

/* Reaps it if it is ours. True when it no longer runs (a zombie of another process counts as
 * gone). */
bool child_is_gone(pid_t pid, int *ret_wait_status);
bool child_wait_gone(pid_t pid, int64_t timeout_us, int *ret_wait_status);

/* Sends the signals one after the other, `timeout_us` apart, until it is gone. */
void child_end(pid_t pid, const int *signals, size_t count, int64_t timeout_us);

/* Makes the servers' user the owner of `path`; nothing to do unless we are root. */
enum status child_user_owns(const char *path, struct err *err) MUST_USE;

/* Is that us, or the servers' user? */
bool child_user_is(uid_t uid);

/* True if the servers' user can't reach the build that we are from: its programs run as root then,
 * and expect root to own their files. */
bool child_programs_stay_root(void);

/* The path of a program of PostgreSQL or Redis: $PATH, then the newest /usr/lib/postgresql/N/bin.
 * NOT_FOUND. */
enum status child_find_program(const char *name, char *ret_path, size_t size,
                               struct err *err) MUST_USE;

/* The last bytes of a log, for an error's text; "" when there is none. */
void child_log_tail(const char *path, char *ret_text, size_t size);

#endif
