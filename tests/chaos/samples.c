/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/samples.h"

#include "base/clock.h"
#include "base/proc.h"
#include "chaos/host.h"
#include "chaos/world.h"

#include <dirent.h>
#include <stdio.h>

#define EVERY_US US_PER_S
#define STEP_US (5 * US_PER_MS) /* more than a slewed clock moves between two looks */
/* Two clocks read within this time were read without interruption. */
#define AT_ONCE_US (US_PER_MS / 10)

enum status samples_open(struct samples *s, const struct folder *f, struct err *err)
{
    *s = (struct samples){.next_us = 0};
    return journal_open(f, "samples.jsonl", &s->journal, err);
}

void samples_close(struct samples *s)
{
    journal_close(&s->journal);
}

static int64_t descriptors(pid_t pid)
{
    char path[64];
    int64_t count = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
    DIR *dir = opendir(path);
    for (struct dirent *e = NULL; dir != NULL && (e = readdir(dir)) != NULL;) {
        count += e->d_name[0] != '.' ? 1 : 0;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

/* Returns how long its first thread has waited for a CPU. */
static int64_t cpu_wait_ns(pid_t pid)
{
    char path[64];
    long long ran = 0;
    long long waited = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/schedstat", (long)pid);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return 0;
    }
    int n = fscanf(f, "%lld %lld", &ran, &waited);
    (void)fclose(f);
    return n == 2 ? waited : 0;
}

static void sample(struct samples *s, const struct host *h)
{
    char process[WORLD_NAME_MAX + 16];
    pid_t children[HOST_RUNNERS_MAX];
    struct proc_stat stat = {.rss_bytes = 0};
    if (h->pid > 0 && proc_stat(h->pid, &stat) && stat.rss_bytes > 0) {
        (void)snprintf(process, sizeof process, "%s.%ld", h->name, (long)h->pid);
        journal_write(&s->journal,
                      json_pack("{s:s, s:I, s:I, s:I, s:I}", "p", process, "rss",
                                (json_int_t)stat.rss_bytes, "fds", (json_int_t)descriptors(h->pid),
                                "children", (json_int_t)host_runners(h, children), "cpu_wait",
                                (json_int_t)cpu_wait_ns(h->pid)));
    }
}

/* Keys in Redis expire by the host's wall clock. If that is stepped, which this kit never does,
 * they expire early or late, so the checker must know. The step happened after the last look. */
static void watch_host_clock(struct samples *s, struct world *w)
{
    int64_t before_us = clock_boot_us();
    int64_t offset_us = clock_wall_us() - before_us;
    int64_t step_us = s->looked_us != 0 ? offset_us - s->offset_us : 0;
    if (clock_boot_us() - before_us > AT_ONCE_US) {
        return;
    }
    if (step_us > STEP_US || step_us < -STEP_US) {
        journal_write(&w->nemesis, json_pack("{s:s, s:s, s:I, s:I, s:i}", "ph", "info", "x",
                                             "host_clock", "step_us", (json_int_t)step_us, "t",
                                             (json_int_t)(s->looked_us * NS_PER_US), "traits",
                                             TRAIT_BEYOND_LOCKS));
    }
    s->offset_us = offset_us;
    s->looked_us = before_us;
}

void samples_tick(struct samples *s, struct world *w, int64_t now_us)
{
    watch_host_clock(s, w);
    if (now_us < s->next_us) {
        return;
    }
    s->next_us = now_us + EVERY_US;
    for (size_t i = 0; i < w->host_count; i++) {
        sample(s, &w->hosts[i]);
    }
}
