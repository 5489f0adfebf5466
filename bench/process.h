/* SPDX-License-Identifier: Apache-2.0
 *
 * The consumption of processes, from /proc. */
#ifndef CLAIMD_BENCH_PROCESS_H
#define CLAIMD_BENCH_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* CPU time used so far, user and system; 0 for a process that has ended. `children`: all
 * descendants, living ones and those that were waited for. */
struct process_cpu {
    int64_t self_us;
    int64_t children_us;
};
struct process_cpu process_cpu(pid_t pid);

/* Returns the peak resident size in KiB; 0 for a process that has ended. */
int64_t process_peak_rss_kib(pid_t pid);

#endif
