/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes of this machine, read from proc(5). */
#ifndef CLAIMD_BASE_PROC_H
#define CLAIMD_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
    char state; /* R, S, D, T, Z, X, … */
    pid_t parent;
    int64_t own_us;    /* CPU time, user and system */
    int64_t reaped_us; /* CPU time of the children it has reaped, and of theirs */
    int64_t rss_bytes;
};

/* Reads the state of `pid`; false if there is no such process. */
bool proc_stat(pid_t pid, struct proc_stat *ret);

/* Calls `call` for each child of this process's main thread, including zombies, and returns how
 * many calls returned true. If children end meanwhile, some may be missing from the list; a later
 * call finds them. */
size_t proc_each_child(bool (*call)(void *ctx, pid_t child), void *ctx);

/* Kills and reaps all children, and in a subreaper also their descendants, which it inherits.
 * Blocks for at most a second. */
void proc_end_children(void);

#endif
