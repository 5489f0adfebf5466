/* SPDX-License-Identifier: Apache-2.0
 *
 * How many CPUs this process may use: those of its host, or fewer if its cgroups limit CPU time. */
#ifndef CLAIMD_WORKER_SLOTS_CPUS_H
#define CLAIMD_WORKER_SLOTS_CPUS_H

#include <stddef.h>

/* Returns `cores`, or fewer if a cgroup of this process or one above it limits CPU time (v2:
 * cpu.max, v1: cpu.cfs_quota_us over cpu.cfs_period_us): rounded up, at least 1. `root` is "", or
 * the folder in which a test has its own /proc/self/cgroup and /sys/fs/cgroup. A file that can't be
 * read sets no limit. */
size_t cpus_allowed(const char *root, size_t cores);

#endif
