/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/usage.h"

#include "base/clock.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define STAT_MAX 1024

/* /proc/PID/stat, proc(5): behind the name, which may hold anything, are state (3), …, utime (14),
 * stime, cutime, cstime, …, rss (24, pages). */
static bool read_stat(pid_t pid, struct usage_runner *ret)
{
    char path[64];
    char text[STAT_MAX];
    unsigned long ticks[4];
    long pages = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return false;
    }
    size_t n = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    text[n] = '\0';
    const char *rest = strrchr(text, ')');
    if (rest == NULL ||
        sscanf(rest,
               ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu %*d %*d %*d %*d %*u "
               "%*u %ld",
               &ticks[0], &ticks[1], &ticks[2], &ticks[3], &pages) != 5) {
        return false;
    }
    int64_t sum = (int64_t)(ticks[0] + ticks[1] + ticks[2] + ticks[3]);
    *ret = (struct usage_runner){.pid = pid,
                                 .cpu_us = sum * US_PER_S / sysconf(_SC_CLK_TCK),
                                 .bytes = (int64_t)pages * sysconf(_SC_PAGESIZE)};
    return true;
}

/* Of the runners that have ended, and of what they had waited for. */
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
        if (r->pid != 0) {
            (void)read_stat(r->pid, r); /* it may be gone: the old values, until its slot knows */
        }
    }
    for (size_t i = 0; i < count; i++) {
        cpu_us += u->runners[i].cpu_us;
        u->bytes += u->runners[i].bytes;
    }
    u->cpu_us = cpu_us > u->cpu_us ? cpu_us : u->cpu_us;
}
