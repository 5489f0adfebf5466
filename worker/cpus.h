/* SPDX-License-Identifier: Apache-2.0
 *
 * How many CPUs this process may use: its host's, or what its cgroups leave of them. */
#ifndef CLAIMD_WORKER_CPUS_H
#define CLAIMD_WORKER_CPUS_H

#include <stddef.h>

/* `cores`, or fewer where a cgroup of ours or one above it has a limit of CPU time (v2: cpu.max,
 * v1: cpu.cfs_quota_us over cpu.cfs_period_us): rounded up, at least 1. `root` is "", or where a
 * test has its own /proc/self/cgroup and /sys/fs/cgroup. What can't be read limits nothing. */
size_t cpus_allowed(const char *root, size_t cores);

#endif
