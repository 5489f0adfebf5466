/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/process.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>

#define PATH_SIZE 64
#define DEPTH_MAX 8
#define STAT_FIELDS 14

struct stat_line {
    pid_t parent;
    int64_t self_ticks;
    int64_t reaped_ticks;
};

static bool read_stat(pid_t pid, struct stat_line *ret)
{
    char path[PATH_SIZE];
    char line[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return false;
    }
    size_t len = fread(line, 1, sizeof line - 1, f);
    (void)fclose(f);
    line[len] = '\0';
    const char *p = strrchr(line, ')'); /* the name before it may hold anything */
    if (p == NULL || strlen(p) < 4) {
        return false;
    }
    int64_t fields[STAT_FIELDS]; /* from the parent's pid on: what stands behind the state */
    char *rest = line + (p + 3 - line);
    for (size_t i = 0; i < STAT_FIELDS; i++) {
        fields[i] = strtoll(rest, &rest, 10);
    }
    ret->parent = (pid_t)fields[0];
    ret->self_ticks = fields[10] + fields[11];
    ret->reaped_ticks = fields[12] + fields[13];
    return true;
}

/* Ticks of the living descendants with all that they have waited for. */
static int64_t living_children(pid_t pid, int depth)
{
    int64_t ticks = 0;
    DIR *proc = depth < DEPTH_MAX ? opendir("/proc") : NULL;
    if (proc == NULL) {
        return 0;
    }
    for (const struct dirent *e = readdir(proc); e != NULL; e = readdir(proc)) {
        struct stat_line child = {0};
        if (!isdigit((unsigned char)e->d_name[0])) {
            continue;
        }
        pid_t child_pid = (pid_t)strtol(e->d_name, NULL, 10);
        if (read_stat(child_pid, &child) && child.parent == pid) {
            ticks += child.self_ticks + child.reaped_ticks + living_children(child_pid, depth + 1);
        }
    }
    (void)closedir(proc);
    return ticks;
}

struct process_cpu process_cpu(pid_t pid)
{
    struct stat_line own = {0};
    int64_t us_per_tick = 1000000 / sysconf(_SC_CLK_TCK);
    if (pid <= 0 || !read_stat(pid, &own)) {
        return (struct process_cpu){0};
    }
    return (struct process_cpu){.self_us = own.self_ticks * us_per_tick,
                                .children_us =
                                    (own.reaped_ticks + living_children(pid, 0)) * us_per_tick};
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
