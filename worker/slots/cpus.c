/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/slots/cpus.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 4096
#define LINE_SIZE 1024

/* ---- files of a cgroup ---- */

/* Reads the first line of folder/name. */
static bool read_line(const char *folder, const char *name, char *ret_line, size_t size)
{
    char path[PATH_SIZE];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        return false;
    }
    FILE *f = fopen(path, "re");
    bool is_read = f != NULL && fgets(ret_line, (int)size, f) != NULL;
    if (f != NULL) {
        (void)fclose(f);
    }
    return is_read;
}

/* "max", −1 and anything that is not a number mean no limit. */
static size_t cpus_of(const char *quota, const char *period, size_t cores)
{
    int64_t quota_us = strtoll(quota, NULL, 10);
    int64_t period_us = strtoll(period, NULL, 10);
    if (quota_us <= 0 || period_us <= 0) {
        return cores;
    }
    uint64_t cpus = (uint64_t)(quota_us - 1) / (uint64_t)period_us + 1;
    return cpus < cores ? (size_t)cpus : cores;
}

static size_t limit_v2(const char *folder, size_t cores)
{
    char line[LINE_SIZE];
    if (!read_line(folder, "cpu.max", line, sizeof line)) {
        return cores;
    }
    const char *space = strchr(line, ' ');
    return space == NULL ? cores : cpus_of(line, space + 1, cores);
}

static size_t limit_v1(const char *folder, size_t cores)
{
    char quota[LINE_SIZE];
    char period[LINE_SIZE];
    bool is_read = read_line(folder, "cpu.cfs_quota_us", quota, sizeof quota) &&
                   read_line(folder, "cpu.cfs_period_us", period, sizeof period);
    return is_read ? cpus_of(quota, period, cores) : cores;
}

/* ---- the cgroups of this process ---- */

typedef size_t limit_fn(const char *folder, size_t cores);

/* Returns the smallest limit on the path from `group` up to the root of the tree. A container may
 * see its own cgroup as the root although /proc names the path on the host: then only the root is
 * readable. */
static size_t least(const char *top, char *group, limit_fn *limit, size_t cores)
{
    for (;;) {
        char folder[PATH_SIZE];
        if (snprintf(folder, sizeof folder, "%s%s", top, group) < (int)sizeof folder) {
            cores = limit(folder, cores);
        }
        char *slash = strrchr(group, '/');
        if (slash == NULL) {
            return cores;
        }
        *slash = '\0';
    }
}

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = list; p != NULL; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, word, len) == 0 && (p[len] == ',' || p[len] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Parses a line of /proc/self/cgroup: "0::/group" of v2, "4:cpu,cpuacct:/group" of v1. */
static size_t limit_of_line(const char *root, char *line, size_t cores)
{
    char top[PATH_SIZE];
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL) {
        return cores;
    }
    *controllers++ = '\0';
    *group++ = '\0';
    bool is_v2 = strcmp(line, "0") == 0 && controllers[0] == '\0';
    if (!is_v2 && !has_word(controllers, "cpu")) {
        return cores;
    }
    int n = snprintf(top, sizeof top, "%s/sys/fs/cgroup%s", root, is_v2 ? "" : "/cpu");
    return n >= (int)sizeof top ? cores : least(top, group, is_v2 ? limit_v2 : limit_v1, cores);
}

size_t cpus_allowed(const char *root, size_t cores)
{
    char path[PATH_SIZE];
    char line[LINE_SIZE];
    int n = snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = n < (int)sizeof path ? fopen(path, "re") : NULL;
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        cores = limit_of_line(root, line, cores);
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return cores > 0 ? cores : 1;
}
