/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process.h"

#include "base/build.h"
#include "base/clock.h"

#include <assert.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <uv.h>

static const struct metric_family build_info = {.name = "claimd_build_info",
                                                .help = "Constant 1; the label is the version.",
                                                .type = METRIC_GAUGE,
                                                .labels = {"version"}};
static const struct metric_family start_time = {
    .name = "process_start_time_seconds",
    .help = "When the process started, Unix time in seconds.",
    .type = METRIC_GAUGE};
static const struct metric_family cpu = {
    .name = "process_cpu_seconds_total",
    .help = "User and system CPU time of the process itself, without its runners, in seconds.",
    .type = METRIC_COUNTER};
static const struct metric_family resident = {
    .name = "process_resident_memory_bytes",
    .help = "Resident memory of the process itself, without its runners, in bytes.",
    .type = METRIC_GAUGE};
static const struct metric_family open_fds = {
    .name = "process_open_fds", .help = "Open file descriptors.", .type = METRIC_GAUGE};

void process_protect(void)
{
    int failed = prctl(PR_SET_DUMPABLE, 0);
    assert(failed == 0); /* it cannot fail */
}

static void ignore(uv_signal_t *handle, int number)
{
    (void)handle;
    (void)number;
}

/* When the last watcher of a signal in any loop closes, libuv restores the default action. These
 * watchers stay open until the process ends. */
void process_ignore_requests(void)
{
    static const int numbers[] = {SIGHUP, SIGUSR1};
    static uv_signal_t watchers[ARRAY_COUNT(numbers)];
    static uv_loop_t never_run;
    /* no descriptors left: the signals are not ignored */
    bool is_open = uv_loop_init(&never_run) == 0;
    for (size_t i = 0; is_open && i < ARRAY_COUNT(numbers); i++) {
        (void)uv_signal_init(&never_run, &watchers[i]);
        (void)uv_signal_start(&watchers[i], ignore, numbers[i]);
    }
}

void process_begin(struct metrics *m)
{
    metric_set(metrics_series(m, &build_info, CLAIMD_BUILD, NULL), 1);
    metric_set(metrics_series(m, &start_time, NULL, NULL),
               (double)clock_wall_us() / (double)US_PER_S);
}

static int64_t time_us(const struct timeval *t)
{
    return (int64_t)t->tv_sec * US_PER_S + t->tv_usec;
}

static void collect_cpu(struct metrics *m)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) == 0) {
        int64_t us = time_us(&used.ru_utime) + time_us(&used.ru_stime);
        metric_take_us(metrics_series(m, &cpu, NULL, NULL), us);
    }
}

static void collect_memory(struct metrics *m)
{
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm == NULL) {
        return;
    }
    if (fscanf(statm, "%*d %ld", &pages) == 1) {
        metric_set(metrics_series(m, &resident, NULL, NULL),
                   (double)pages * (double)sysconf(_SC_PAGESIZE));
    }
    (void)fclose(statm);
}

static void collect_fds(struct metrics *m)
{
    int count = -1; /* don't count the descriptor of this directory */
    DIR *fds = opendir("/proc/self/fd");
    if (fds == NULL) {
        return;
    }
    for (const struct dirent *e = readdir(fds); e != NULL; e = readdir(fds)) {
        count += e->d_name[0] == '.' ? 0 : 1;
    }
    (void)closedir(fds);
    metric_set(metrics_series(m, &open_fds, NULL, NULL), count);
}

void process_collect(struct metrics *m)
{
    collect_cpu(m);
    collect_memory(m);
    collect_fds(m);
}
