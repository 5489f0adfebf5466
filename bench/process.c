/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/process.h"

#include "base/cleanup.h"
#include "base/proc.h"
#include "cluster/servers.h"

#include <stdio.h>

#define PATH_SIZE 64
#define DEPTH_MAX 8
#define CHILDREN_MAX 1024

/* Returns the CPU time of living descendants, including that of the children that they have waited
 * for. */
static int64_t living_children_us(pid_t pid, int depth)
{
    pid_t children[CHILDREN_MAX];
    size_t count = depth < DEPTH_MAX ? program_children(pid, children, CHILDREN_MAX) : 0;
    int64_t us = 0;
    for (size_t i = 0; i < count; i++) {
        struct proc_stat child;
        if (proc_stat(children[i], &child)) {
            us += child.own_us + child.reaped_us + living_children_us(children[i], depth + 1);
        }
    }
    return us;
}

struct process_cpu process_cpu(pid_t pid)
{
    struct proc_stat own;
    if (pid <= 0 || !proc_stat(pid, &own)) {
        return (struct process_cpu){0};
    }
    return (struct process_cpu){.self_us = own.own_us,
                                .children_us = own.reaped_us + living_children_us(pid, 0)};
}

int64_t process_peak_rss_kib(pid_t pid)
{
    char path[PATH_SIZE];
    char line[256];
    int64_t kib = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = pid > 0 ? fopen(path, "re") : NULL;
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = strtoll(line + 6, NULL, 10);
            break;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return kib;
}
