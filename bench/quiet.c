/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks whether anything else is running on this machine, which would falsify measurements. */
#include "base/clock.h"
#include "base/parse.h"
#include "base/proc.h"
#include "bench/workloads.h"

#include <dirent.h>
#include <stdio.h>
#include <time.h>

#define LOOK_S 3
#define PIDS_MAX 4096
#define NAMED_MAX 3

struct ticks {
    unsigned long long all;
    unsigned long long idle;
};

struct user {
    pid_t pid;
    int64_t us; /* CPU time so far; later: during the observation */
};

struct users {
    size_t count;
    struct user all[PIDS_MAX];
};

static enum status read_ticks(struct ticks *ret, struct err *err)
{
    unsigned long long t[8] = {0};
    FILE *f = fopen("/proc/stat", "re");
    if (f == NULL) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "/proc/stat");
    }
    /* Fields: user, nice, system, idle, iowait, irq, softirq, steal. */
    int n = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3],
                   &t[4], &t[5], &t[6], &t[7]);
    (void)fclose(f);
    if (n != 8) {
        return err_fail(err, STATUS_UNAVAILABLE, "/proc/stat has another form");
    }
    *ret = (struct ticks){.idle = t[3] + t[4]};
    for (size_t i = 0; i < ARRAY_COUNT(t); i++) {
        ret->all += t[i];
    }
    return STATUS_OK;
}

static void read_users(struct users *ret)
{
    ret->count = 0;
    DIR *dir = opendir("/proc");
    const struct dirent *entry = NULL;
    while (dir != NULL && (entry = readdir(dir)) != NULL && ret->count < PIDS_MAX) {
        int64_t pid = 0;
        struct proc_stat stat;
        if (parse_i64(entry->d_name, strlen(entry->d_name), 1, INT32_MAX, &pid, NULL) ==
                STATUS_OK &&
            proc_stat((pid_t)pid, &stat)) {
            ret->all[ret->count++] = (struct user){.pid = (pid_t)pid, .us = stat.own_us};
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

static int most_first(const void *a, const void *b)
{
    const struct user *x = a;
    const struct user *y = b;
    return (x->us < y->us) - (x->us > y->us);
}

static void subtract(struct users *now, const struct users *before)
{
    for (size_t i = 0; i < now->count; i++) {
        for (size_t j = 0; j < before->count; j++) {
            if (before->all[j].pid == now->all[i].pid) {
                now->all[i].us -= before->all[j].us;
            }
        }
    }
    qsort(now->all, now->count, sizeof now->all[0], most_first);
}

static void name_users(const struct users *users, char *ret_who, size_t size)
{
    size_t len = 0;
    ret_who[0] = '\0';
    for (size_t i = 0; i < users->count && i < NAMED_MAX; i++) {
        char path[64];
        char name[32] = "?";
        double percent = 100 * (double)users->all[i].us / (double)(LOOK_S * US_PER_S);
        (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)users->all[i].pid);
        FILE *f = fopen(path, "re");
        if (f != NULL) {
            if (fgets(name, sizeof name, f) != NULL) {
                name[strcspn(name, "\n")] = '\0';
            }
            (void)fclose(f);
        }
        if (percent >= 1 && len < size) {
            int n = snprintf(ret_who + len, size - len, "%s%s (%d) %.0f %%", len > 0 ? ", " : "",
                             name, (int)users->all[i].pid, percent);
            len += n > 0 ? (size_t)n : 0;
        }
    }
}

enum status quiet_look(double *ret_share, char *ret_who, size_t size, struct err *err)
{
    static struct users before;
    static struct users after;
    struct ticks ticks[2];
    enum status st = read_ticks(&ticks[0], err);
    if (st != STATUS_OK) {
        return st;
    }
    read_users(&before);
    (void)nanosleep(&(struct timespec){.tv_sec = LOOK_S}, NULL);
    st = read_ticks(&ticks[1], err);
    if (st != STATUS_OK) {
        return st;
    }
    read_users(&after);
    subtract(&after, &before);
    name_users(&after, ret_who, size);
    double all = (double)(ticks[1].all - ticks[0].all);
    *ret_share = all > 0 ? 1 - (double)(ticks[1].idle - ticks[0].idle) / all : 1;
    return STATUS_OK;
}
