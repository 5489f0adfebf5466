/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures what the runners of a worker use: their CPU time, including runners that have ended, and
 * their memory. Reading costs some 10 µs per runner, so each call reads only a few of them, in
 * turn; for the others, the previous values count. */
#ifndef CLAIMD_WORKER_SLOTS_USAGE_H
#define CLAIMD_WORKER_SLOTS_USAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define USAGE_RUNNERS_MAX 1024
#define USAGE_LOOKS_MAX 64 /* runners that one call reads */

struct usage_runner {
    pid_t pid; /* 0 = none */
    int64_t cpu_us;
    int64_t bytes;
};

/* The zero value means that nothing is known yet. */
struct usage {
    struct usage_runner runners[USAGE_RUNNERS_MAX];
    size_t next;    /* the last one read; the next call continues after it */
    int64_t cpu_us; /* of all runners, ended ones too; never decreases */
    int64_t bytes;  /* of running ones */
};

/* `pids` has the runner of each slot, in a fixed order; 0 = none. */
void usage_collect(struct usage *u, const pid_t *pids, size_t count);

#endif
