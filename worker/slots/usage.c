/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/slots/usage.h"

#include "base/clock.h"
#include "base/proc.h"

#include <assert.h>
#include <sys/resource.h>

/* Returns the CPU time of the runners that have ended, and of the children that these had
 * reaped. */
static int64_t ended_cpu_us(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_CHILDREN, &used) != 0) {
        return 0;
    }
    return ((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * US_PER_S +
           used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

void usage_collect(struct usage *u, const pid_t *pids, size_t count)
{
    assert(count <= USAGE_RUNNERS_MAX);
    int64_t cpu_us = ended_cpu_us();
    u->bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (u->runners[i].pid != pids[i]) {
            u->runners[i] = (struct usage_runner){.pid = pids[i]};
        }
    }
    for (size_t i = 0; i < count && i < USAGE_LOOKS_MAX; i++) {
        u->next = (u->next + 1) % count;
        struct usage_runner *r = &u->runners[u->next];
        struct proc_stat stat;
        if (r->pid != 0 &&
            proc_stat(r->pid,
                      &stat)) { /* if it is gone, the old values stay until its slot knows */
            r->cpu_us = stat.own_us + stat.reaped_us;
            r->bytes = stat.rss_bytes;
        }
    }
    for (size_t i = 0; i < count; i++) {
        cpu_us += u->runners[i].cpu_us;
        u->bytes += u->runners[i].bytes;
    }
    u->cpu_us = cpu_us > u->cpu_us ? cpu_us : u->cpu_us;
}
