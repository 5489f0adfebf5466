/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes of this machine as proc(5) has them. */
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
    int64_t reaped_us; /* of the children that it has waited for, and of theirs */
    int64_t rss_bytes;
};

/* False: there is no such process. */
bool proc_stat(pid_t pid, struct proc_stat *ret);

/* Calls for each child of this process' first thread, zombies too, and returns how often that was
 * true. Which are listed while some end is not certain: a later call finds the rest. */
size_t proc_each_child(bool (*call)(void *ctx, pid_t child), void *ctx);

/* Kills and reaps them all, and in a subreaper theirs, who follow; blocks for at most a second. */
void proc_end_children(void);

#endif
