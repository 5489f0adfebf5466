/* SPDX-License-Identifier: Apache-2.0
 *
 * What processes cost, from /proc. */
#ifndef CLAIMD_BENCH_PROCESS_H
#define CLAIMD_BENCH_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* CPU used so far, user and system; 0 for a process that is gone. `children`: all descendants, the
 * living ones and those that were waited for. */
struct process_cpu {
    int64_t self_us;
    int64_t children_us;
};
struct process_cpu process_cpu(pid_t pid);

/* Largest resident size so far, in KiB; 0 for a process that is gone. */
int64_t process_peak_rss_kib(pid_t pid);

#endif
