/* SPDX-License-Identifier: Apache-2.0 */
#include "base/proc.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STAT_MAX 1024
#define END_ROUNDS 100
#define END_PAUSE_MS 10

/* The fields after the name (which may contain anything) are state (3), parent (4), …, utime (14),
 * stime, cutime, cstime, …, rss (24, in pages). */
bool proc_stat(pid_t pid, struct proc_stat *ret)
{
    char path[64];
    char text[STAT_MAX];
    int parent = 0;
    unsigned long ticks[4];
    long pages = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    const char *rest = strrchr(text, ')');
    if (rest == NULL ||
        sscanf(rest,
               ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu %*d %*d %*d %*d %*u "
               "%*u %ld",
               &ret->state, &parent, &ticks[0], &ticks[1], &ticks[2], &ticks[3], &pages) != 7) {
        return false;
    }
    int64_t us_per_tick = US_PER_S / sysconf(_SC_CLK_TCK);
    ret->parent = (pid_t)parent;
    ret->own_us = (int64_t)(ticks[0] + ticks[1]) * us_per_tick;
    ret->reaped_us = (int64_t)(ticks[2] + ticks[3]) * us_per_tick;
    ret->rss_bytes = (int64_t)pages * sysconf(_SC_PAGESIZE);
    return true;
}

size_t proc_each_child(bool (*call)(void *ctx, pid_t child), void *ctx)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *list = fopen(path, "re");
    if (list == NULL) {
        return 0;
    }
    size_t count = 0;
    char word[16];
    while (fscanf(list, "%15s", word) == 1) {
        pid_t child = (pid_t)strtol(word, NULL, 10);
        count += child > 1 && call(ctx, child);
    }
    (void)fclose(list);
    return count;
}

static bool end_child(void *ctx, pid_t child)
{
    (void)ctx;
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, WNOHANG);
    return true;
}

void proc_end_children(void)
{
    const struct timespec pause = {.tv_nsec = END_PAUSE_MS * 1000000L};
    for (int round = 0; round < END_ROUNDS && proc_each_child(end_child, NULL) > 0; round++) {
        (void)nanosleep(&pause, NULL);
    }
}
