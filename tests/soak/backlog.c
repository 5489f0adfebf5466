/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/backlog.h"

#include "base/clock.h"
#include "base/proc.h"
#include "soak/stage.h"

#include <stdio.h>

#define STEP 500000              /* jobs per statement */
#define STEP_US (600 * US_PER_S) /* timeout of such a statement */
#define START_US (120 * US_PER_S)
#define WATCH_US (45 * US_PER_S) /* a full pass begins after 30 s */
#define LOOK_US (US_PER_S / 10)
#define HINT_MS_MAX 1000
#define MIB (1024 * 1024)
#define RSS_MIB_MAX 100

struct backlog {
    struct world world;
    int64_t fill_us;
    int64_t
        first_ms; /* from becoming leader to the first claim, which needs a hint; −1 = none yet */
    int64_t rss_bytes; /* the largest seen */
};

/* Inserts jobs of all kinds of lanes, mixed as they would arrive. */
static enum status fill(struct backlog *b, int64_t jobs, struct err *err)
{
    int64_t begin_us = clock_boot_us();
    b->world.sql.timeout_us = STEP_US;
    for (int64_t at = 0; at < jobs; at += STEP) {
        int64_t last = at + STEP < jobs ? at + STEP : jobs;
        enum status st =
            session_do(&b->world.sql, err,
                       "INSERT INTO claimd.job (kind, args, priority, share) SELECT 's_plain',"
                       " '{\"n\": -2}', n %% 10, n %% 7 FROM generate_series(%lld, %lld) AS n",
                       (long long)at, (long long)last - 1);
        if (st == STATUS_OK && world_is_interrupted()) {
            st = err_fail(err, STATUS_UNAVAILABLE, "interrupted");
        }
        if (st != STATUS_OK) {
            return st;
        }
    }
    b->fill_us = clock_boot_us() - begin_us;
    return STATUS_OK;
}

/* Runs the world until the statement returns a number of at least 0. */
static enum status wait_for(struct backlog *b, const char *what, const char *sql, int64_t *ret,
                            struct err *err)
{
    int64_t end_us = clock_boot_us() + START_US;
    int64_t look_us = 0;
    *ret = -1;
    while (*ret < 0) {
        world_turn(&b->world);
        int64_t now_us = clock_boot_us();
        if (world_is_interrupted() || now_us > end_us) {
            return err_fail(err, STATUS_TIMEOUT, "%s: not within %lld s", what,
                            (long long)(START_US / US_PER_S));
        }
        if (now_us >= look_us) {
            look_us = now_us + LOOK_US;
            enum status st = session_i64(&b->world.sql, ret, err, "%s", sql);
            if (st != STATUS_OK) {
                return st;
            }
        }
    }
    return STATUS_OK;
}

static void watch(struct backlog *b)
{
    int64_t end_us = clock_boot_us() + WATCH_US;
    struct proc_stat stat;
    while (clock_boot_us() < end_us && !world_is_interrupted()) {
        world_turn(&b->world);
        if (proc_stat(b->world.hosts[0].pid, &stat) && stat.rss_bytes > b->rss_bytes) {
            b->rss_bytes = stat.rss_bytes;
        }
    }
}

static enum status run_it(struct backlog *b, const struct soak_options *options, struct err *err)
{
    int64_t there = 0;
    enum status st = stage_open(&b->world, &options->kit, err);
    if (st != STATUS_OK) {
        return st;
    }
    b->world.hosts[0].restart_us = WORLD_NEVER; /* the scheduler is started last */
    st = fill(b, options->backlog, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = wait_for(b, "a worker", "SELECT count(*) - 1 FROM claimd.worker WHERE kinds <> '{}'",
                  &there, err);
    if (st != STATUS_OK) {
        return st;
    }
    b->world.hosts[0].restart_us = clock_boot_us();
    st = wait_for(
        b, "a claim",
        "SELECT COALESCE((1000 * extract(epoch FROM (SELECT min(attempted_at) FROM"
        " claimd.job_history) - (SELECT max(leader_since) FROM claimd.scheduler)))::bigint,"
        " -1)",
        &b->first_ms, err);
    if (st == STATUS_OK) {
        watch(b);
    }
    return st;
}

int backlog_run(const struct soak_options *options)
{
    static struct backlog b;
    struct err err = {0};
    enum status st = run_it(&b, options, &err);
    bool is_good = st == STATUS_OK && !world_is_interrupted() && b.first_ms <= HINT_MS_MAX &&
                   b.rss_bytes > 0 && b.rss_bytes < (int64_t)RSS_MIB_MAX * MIB;
    world_close(&b.world);
    if (options->kit.folder[0] == '\0') {
        dir_remove(b.world.folder.path);
    }
    if (st != STATUS_OK) {
        (void)printf("claimd-soak: %s\n", err.msg);
    }
    (void)printf("filled in %.1f s; wanted: the first job is claimed within %d ms of the lead, the"
                 " scheduler has less than %d MiB\n",
                 (double)b.fill_us / (double)US_PER_S, HINT_MS_MAX, RSS_MIB_MAX);
    (void)printf("soak: %s backlog=%lld first_claim_ms=%lld scheduler_mib=%.1f\n",
                 is_good ? "OK" : "FAILED", (long long)options->backlog, (long long)b.first_ms,
                 (double)b.rss_bytes / MIB);
    return is_good ? 0 : 1;
}
