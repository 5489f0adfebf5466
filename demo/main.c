/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo turns the checksums of installed files into jobs for several workers, kills one worker
 * when a third of them is done, and checks with md5sum that nothing was lost. Then claimctl maps
 * md5sum over a table of them. */
#include "base/clock.h"
#include "demo/act.h"
#include "demo/cluster.h"
#include "demo/list.h"
#include "demo/verdicts.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

#define JOBS_DEFAULT 20000
#define OUTPUT_MAX ((size_t)1 << 20)
#define RUN_US (75 * US_PER_S)
#define RUN_ALL_US (900 * US_PER_S)
#define POLL_US (100 * US_PER_MS)
#define KILL_POLL_US (20 * US_PER_MS) /* a short list is done soon */
#define LOCKS_US (15 * US_PER_S)
#define OPEN_US (10 * US_PER_S)
#define STAY_S 3600

/* Leaves out the last tenth, which has the jobs that waited for the rescue: they would distort the
 * speed. */
#define SPEED_SQL                                                                        \
    "SELECT format(E'jobs/s                 %s (the first nine tenths)\\n"               \
    "wait                   p50 %s ms, p99 %s ms (of all, rescued ones included)',"      \
    " round(0.9 * count(*) / greatest(0.001, extract(epoch FROM"                         \
    " percentile_disc(0.9) WITHIN GROUP (ORDER BY finalized_at) - min(attempted_at))))," \
    " round(1000 * percentile_cont(0.5) WITHIN GROUP (ORDER BY wait)::numeric, 1),"      \
    " round(1000 * percentile_cont(0.99) WITHIN GROUP (ORDER BY wait)::numeric, 1))"     \
    " FROM (SELECT *, extract(epoch FROM attempted_at - ready_at) AS wait"               \
    " FROM claimd.job_history WHERE kind = 'checksum') h"

struct demo {
    struct cluster cluster;
    struct list list;
    struct killed killed;
    struct verdicts verdicts;
    struct act act;
    char sums_path[SERVER_PATH_MAX + 32];
    int64_t timeout_us;
    int64_t next_line_us;
    bool is_terminal;
    bool is_watched;
    long completed;
    long rescued;
    long locks;
};

static enum status enqueue(struct demo *d, struct err *err)
{
    char jobs_path[SERVER_PATH_MAX + 32];
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    const char *const args[] = {"enqueue", "--file", jobs_path, NULL};
    (void)snprintf(d->sums_path, sizeof d->sums_path, "%s/list.md5", d->cluster.dir);
    (void)snprintf(jobs_path, sizeof jobs_path, "%s/jobs.jsonl", d->cluster.dir);
    enum status st = list_write_md5(&d->list, d->sums_path, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = list_write_jobs(&d->list, jobs_path, err);
    if (st != STATUS_OK) {
        return st;
    }
    return cluster_ctl(&d->cluster, args, &out, err);
}

static enum status query_number(struct demo *d, const char *sql, long *ret, struct err *err)
{
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    enum status st = cluster_sql(&d->cluster, sql, &out, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret = out.len > 0 ? strtol(buf_at(&out), NULL, 10) : 0;
    return STATUS_OK;
}

static void show_progress(struct demo *d, int64_t start_us)
{
    int64_t now_us = wait_now_us();
    if (now_us < d->next_line_us) {
        return;
    }
    d->next_line_us = now_us + (d->is_terminal ? POLL_US : 2 * US_PER_S);
    (void)printf("%s%5.1f s  %ld of %zu jobs completed%s", d->is_terminal ? "\r" : "",
                 (double)(now_us - start_us) / (double)US_PER_S, d->completed, d->list.count,
                 d->is_terminal ? "   " : "\n");
    (void)fflush(stdout);
}

static enum status kill_one(struct demo *d, struct err *err)
{
    struct err why = {0};
    enum status st = cluster_kill_a_worker(&d->cluster, &d->killed, &why);
    if (st == STATUS_NOT_FOUND) {
        return STATUS_OK; /* between two batches: tried again at the next look */
    }
    if (st != STATUS_OK) {
        return err_fail(err, st, "kill a worker: %s", why.msg);
    }
    (void)printf("%skilled worker %s (pid %ld, SIGKILL) after %ld jobs: it held %ld running jobs\n",
                 d->is_terminal ? "\n" : "", d->killed.worker_id, (long)d->killed.pid, d->completed,
                 d->killed.held);
    (void)fflush(stdout);
    return STATUS_OK;
}

/* Blocks Ctrl-C until the demo checks for it, so that it always cleans up. */
static void hold_back_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

static bool is_interrupted(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

static enum status follow(struct demo *d, struct err *err)
{
    int64_t start_us = wait_now_us();
    for (;;) {
        enum status st =
            query_number(d, "SELECT count(*) FROM claimd.job_history WHERE state = 'completed'",
                         &d->completed, err);
        if (st != STATUS_OK) {
            return st;
        }
        show_progress(d, start_us);
        if (d->killed.pid == 0 && d->completed >= (long)(d->list.count / 3)) {
            st = kill_one(d, err);
            if (st != STATUS_OK) {
                return st;
            }
        }
        if (d->completed >= (long)d->list.count) {
            d->next_line_us = 0;
            show_progress(d, start_us);
            (void)printf("%s", d->is_terminal ? "\n" : "");
            return STATUS_OK;
        }
        if (is_interrupted()) {
            return err_fail(err, STATUS_UNAVAILABLE, "interrupted");
        }
        if (wait_now_us() - start_us > d->timeout_us) {
            return err_fail(err, STATUS_TIMEOUT, "%ld of %zu jobs completed in time", d->completed,
                            d->list.count);
        }
        (void)WAIT_UNTIL(false, d->killed.pid == 0 ? KILL_POLL_US : POLL_US);
    }
}

static bool no_lock_is_left(struct demo *d)
{
    return cluster_count_locks(&d->cluster, &d->locks, NULL) == STATUS_OK && d->locks == 0;
}

static enum status settle(struct demo *d, struct err *err)
{
    char sql[256];
    enum status st = cluster_drain(&d->cluster, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM claimd.job_attempt a JOIN claimd.job_history h"
                   " ON h.id = a.job_id WHERE a.worker_id = '%s' AND h.state = 'completed'",
                   d->killed.worker_id);
    st = d->killed.pid == 0 ? STATUS_OK : query_number(d, sql, &d->rescued, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = verdicts_compare(&d->cluster, &d->list, d->sums_path, &d->verdicts, err);
    if (st != STATUS_OK) {
        return st;
    }
    /* The leases of the killed worker must expire; there may be no other locks. */
    (void)WAIT_UNTIL(no_lock_is_left(d), LOCKS_US);
    return STATUS_OK;
}

static enum status print_summary(struct demo *d, struct err *err)
{
    const struct verdicts *v = &d->verdicts;
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    (void)printf("\njobs                   %zu\n", d->list.count);
    (void)printf("completed              %ld\n", d->completed);
    (void)printf("rescued                %ld of the %ld that the killed worker held\n", d->rescued,
                 d->killed.held);
    (void)printf("stale writes refused   %ld\n",
                 cluster_count_lines(&d->cluster, " verdict=stale"));
    (void)printf("changed files          %ld found by claimd, %ld by md5sum\n",
                 v->here[VERDICT_MISMATCH], v->there[VERDICT_MISMATCH]);
    (void)printf("missing files          %ld found by claimd, %ld by md5sum\n",
                 v->here[VERDICT_MISSING], v->there[VERDICT_MISSING]);
    (void)printf("verdicts that differ   %ld\n", v->different);
    (void)printf("mapped                 %ld rows in %.1f s, %ld sums equal\n", d->act.rows,
                 d->act.seconds, d->act.equal);
    (void)printf("lock keys left         %ld\n", d->locks);
    enum status st = cluster_sql(&d->cluster, SPEED_SQL, &out, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)printf("%s", buf_at(&out));
    return STATUS_OK;
}

static enum status judge(const struct demo *d, struct err *err)
{
    if (d->completed != (long)d->list.count) {
        return err_fail(err, STATUS_INTERNAL, "%ld of %zu jobs completed", d->completed,
                        d->list.count);
    }
    if (d->verdicts.different > 0) {
        return err_fail(err, STATUS_INTERNAL, "%ld verdicts differ from md5sum's",
                        d->verdicts.different);
    }
    if (d->act.equal != d->act.rows || d->act.rows == 0) {
        return err_fail(err, STATUS_INTERNAL, "%ld of %ld mapped rows have the right sum",
                        d->act.equal, d->act.rows);
    }
    if (d->rescued == 0) {
        return err_fail(err, STATUS_INTERNAL, "nothing was rescued");
    }
    if (d->locks > 0) {
        return err_fail(err, STATUS_INTERNAL, "%ld lock keys are left", d->locks);
    }
    return STATUS_OK;
}

/* Starts the page, and shows it in a browser if this host has one. */
static enum status watch(struct demo *d, struct err *err)
{
    static const char open[] = "[ -z \"${DISPLAY-}${WAYLAND_DISPLAY-}\" ] || xdg-open \"$0\"";
    char address[128] = "";
    int code = 0;
    autobuf struct buf out = BUF_INIT(OUTPUT_MAX);
    enum status st = cluster_watch(&d->cluster, address, sizeof address, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)printf("watch it: %s\n", address);
    (void)fflush(stdout);
    const char *const argv[] = {"/bin/sh", "-c", open, address, NULL};
    if (program_run(argv, NULL, OPEN_US, &out, &code, NULL) != STATUS_OK || code != 0) {
        (void)printf("(no browser was opened)\n");
    }
    return STATUS_OK;
}

/* Leaves the page to its readers until Ctrl-C. */
static void stay(void)
{
    sigset_t set;
    const struct timespec limit = {.tv_sec = STAY_S};
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)printf("\nthe page stays for an hour, or until Ctrl-C\n");
    (void)fflush(stdout);
    (void)sigtimedwait(&set, NULL, &limit);
}

static enum status run(struct demo *d, size_t jobs_max, struct err *err)
{
    enum status st = list_read(jobs_max, &d->list, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (d->list.count == 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "no files to check");
    }
    (void)printf("%zu files (%zu left out: not readable by everybody)\n", d->list.count,
                 d->list.left_out);
    (void)printf("starting PostgreSQL, %d Redis, %d schedulers, %d workers\n", CLUSTER_NODES,
                 CLUSTER_SCHEDULERS, CLUSTER_WORKERS);
    (void)fflush(stdout);
    st = cluster_start(&d->cluster, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = d->is_watched ? watch(d, err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    st = enqueue(d, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = follow(d, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = act_map(&d->cluster, &d->act, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = settle(d, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = print_summary(d, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = judge(d, err);
    if (st == STATUS_OK && d->is_watched) {
        stay();
    }
    return st;
}

static int say_usage(bool is_asked)
{
    (void)fprintf(is_asked ? stdout : stderr, "usage: ./dev demo [--all] [--watch]\n"
                                              "--all: all files, not 20,000 of them\n"
                                              "--watch: with claimd-web, and stays at the end\n");
    return is_asked ? 0 : 2;
}

int main(int argc, char **argv)
{
    struct demo d = {.is_terminal = isatty(STDOUT_FILENO) == 1, .timeout_us = RUN_US};
    struct err err = {0};
    size_t jobs_max = JOBS_DEFAULT;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--all") == 0) {
            jobs_max = 0;
            d.timeout_us = RUN_ALL_US;
        } else if (strcmp(argv[i], "--watch") == 0) {
            d.is_watched = true;
        } else {
            return say_usage(strcmp(argv[i], "--help") == 0);
        }
    }
    hold_back_signals();
    enum status st = run(&d, jobs_max, &err);
    cluster_stop(&d.cluster);
    if (st == STATUS_OK || is_interrupted()) {
        dir_remove(d.cluster.dir);
        (void)printf("demo: %s\n", st == STATUS_OK ? "OK" : "FAILED interrupted");
    } else {
        dir_keep(d.cluster.dir);
        (void)printf("logs and data: %s\ndemo: FAILED %s\n", d.cluster.dir, err.msg);
    }
    list_release(&d.list);
    return st == STATUS_OK ? 0 : 1;
}
