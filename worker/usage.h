/* SPDX-License-Identifier: Apache-2.0
 *
 * What the runners of a worker use: their CPU time, those that have ended included, and their
 * memory. Reading costs some 10 µs per runner, so each call looks at a few of them only, in turn;
 * of the others the values before count. */
#ifndef CLAIMD_WORKER_USAGE_H
#define CLAIMD_WORKER_USAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define USAGE_RUNNERS_MAX 1024
#define USAGE_LOOKS_MAX 64 /* runners that one call reads of */

struct usage_runner {
    pid_t pid; /* 0 = none */
    int64_t cpu_us;
    int64_t bytes;
};

/* Zero value = nothing known yet. */
struct usage {
    struct usage_runner runners[USAGE_RUNNERS_MAX];
    size_t next;    /* the one to begin with */
    int64_t cpu_us; /* of all, ended ones too; never falls */
    int64_t bytes;  /* of those that live */
};

/* `pids`: of each slot, in a fixed order; 0 = it has no runner. */
void usage_collect(struct usage *u, const pid_t *pids, size_t count);

#endif
