/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/drain.h"

#include "base/clock.h"
#include "bench/report.h"
#include "bench/workloads.h"

#include <inttypes.h>
#include <stdio.h>

#define POLL_US (200 * US_PER_MS)
#define STALL_US (60 * US_PER_S)
#define SETTLE_US (2 * US_PER_S)

static const unsigned count_type[] = {PG_INT8};

static const struct pg_statement insert_jobs = {
    .name = "insert_jobs",
    .sql = "INSERT INTO claimd.job (kind) SELECT 'noop' FROM generate_series(1, $1)",
    .types = count_type,
    .type_count = 1};
static const struct pg_statement settle = {.name = "settle", .sql = "ANALYZE claimd.job"};
static const struct pg_statement checkpoint = {.name = "checkpoint", .sql = "CHECKPOINT"};
/* Looks from the end of the table: dead rows pile up at its front. */
static const struct pg_statement left = {
    .name = "left",
    .sql = "SELECT id FROM claimd.job WHERE id > $1 ORDER BY id DESC LIMIT 1",
    .types = count_type,
    .type_count = 1};
static const struct pg_statement progress = {.name = "progress",
                                             .sql = "SELECT last_value FROM claimd.fence"};
static const struct pg_statement commits = {
    .name = "commits",
    .sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"};
static const struct pg_statement totals = {
    .name = "totals",
    .sql = "SELECT count(*), count(DISTINCT id), sum(attempt)::bigint,"
           " (1e6 * extract(epoch FROM max(finalized_at) - min(attempted_at)))::bigint,"
           " count(*) FILTER (WHERE state = 'completed'), (SELECT count(*) FROM claimd.job),"
           " (SELECT count(*) FROM claimd.job_attempt) FROM claimd.job_history"};
static const struct pg_statement clean = {.name = "", .sql = "VACUUM claimd.job"};
static const struct pg_statement last_id = {
    .name = "last_id", .sql = "SELECT last_value FROM claimd.job_id_seq WHERE is_called"};
static const struct pg_statement took = {
    .name = "took",
    .sql = "SELECT count(*), (1e6 * extract(epoch FROM max(finalized_at) - min(attempted_at)))::"
           "bigint FROM claimd.job_history WHERE id > $1 AND state = 'completed' AND attempt = 1",
    .types = count_type,
    .type_count = 1};
/* The same for jobs that are only counted; counts rows of the history as errors. */
static const struct pg_statement unkept_totals = {
    .name = "unkept_totals",
    .sql = "SELECT n, n, n, 0::bigint, n, (SELECT count(*) FROM claimd.job), (SELECT count(*) FROM"
           " claimd.job_attempt) + (SELECT count(*) FROM claimd.job_history) FROM"
           " (SELECT COALESCE(sum(jobs), 0)::bigint AS n FROM claimd.completed_count) AS c"};
static const struct pg_statement keep_none = {
    .name = "keep_none",
    .sql = "INSERT INTO claimd.retention (scope, name, state, days) VALUES ('kind', 'noop',"
           " 'completed', 0)"};
static const struct pg_statement has_begun = {
    .name = "has_begun", .sql = "SELECT is_called::int::bigint FROM claimd.fence"};
static const struct pg_statement pause_all = {
    .name = "pause_all", .sql = "SELECT claimd.pause_queue('default')::int::bigint"};
static const struct pg_statement resume_all = {
    .name = "resume_all", .sql = "SELECT claimd.resume_queue('default')::int::bigint"};
static const struct pg_statement registered = {
    .name = "registered", .sql = "SELECT count(*) FROM claimd.worker WHERE NOT stopped"};
enum {
    TOTAL_ROWS,
    TOTAL_IDS,
    TOTAL_ATTEMPTS,
    TOTAL_US,
    TOTAL_COMPLETED,
    TOTAL_OPEN,
    TOTAL_FAILED,
    TOTALS
};

enum status drain_settle(struct cluster *c, struct err *err)
{
    enum status st = db_query(&c->db, &settle, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    return db_query(&c->db, &checkpoint, NULL, 0, err);
}

static enum status fill(struct cluster *c, const struct pg_statement *statement, int64_t jobs,
                        struct err *err)
{
    char storage[8];
    struct pg_param count = pg_param_i64(jobs, storage);
    (void)fprintf(stderr, "bench: inserting %" PRId64 " jobs\n", jobs);
    enum status st = db_query(&c->db, statement, &count, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    return drain_settle(c, err);
}

enum status drain_fill(struct cluster *c, int64_t jobs, struct err *err)
{
    return fill(c, &insert_jobs, jobs, err);
}

/* Waits for that time, checks that all daemons live, and reads one row of an answer. */
static enum status wait_and_ask(struct cluster *c, int64_t us, const struct pg_statement *statement,
                                const struct pg_param *params, struct err *err)
{
    enum status st = cluster_wait(c, us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = cluster_check_daemons(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    return db_query(&c->db, statement, params, 1, err);
}

enum status drain_wait(struct cluster *c, struct err *err)
{
    return drain_wait_beyond(c, 0, err);
}

enum status drain_wait_beyond(struct cluster *c, int64_t id, struct err *err)
{
    char storage[8];
    struct pg_param beyond = pg_param_i64(id, storage);
    int64_t claims = -1;
    int64_t moved_us = clock_boot_us();
    for (int64_t n = 0;; n++) {
        enum status st = wait_and_ask(c, POLL_US, &left, &beyond, err);
        if (st != STATUS_OK || c->db.row_count == 0) {
            return st;
        }
        if (n % 5 != 4) {
            continue;
        }
        st = db_query(&c->db, &progress, NULL, 1, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (c->db.row[0] != claims) {
            claims = c->db.row[0];
            moved_us = clock_boot_us();
            (void)fprintf(stderr, "bench: %" PRId64 " claims\n", claims);
        } else if (clock_boot_us() - moved_us > STALL_US) {
            return err_fail(err, STATUS_TIMEOUT, "no job was claimed for a minute, some are open");
        }
    }
}

enum status drain_read_totals(struct cluster *c, const struct pg_statement *statement, int columns,
                              int64_t *ret_lock_keys, struct err *err)
{
    enum status st = db_query(&c->db, statement, NULL, columns, err);
    if (st != STATUS_OK) {
        return st;
    }
    return masters_lock_keys(&c->masters, ret_lock_keys, err);
}

/* `ret_us`: from the first claim to the last end, if jobs are kept. */
static enum status reconcile(struct cluster *c, int64_t jobs,
                             const struct pg_statement *read_totals, json_t *result,
                             int64_t *ret_us, struct err *err)
{
    int64_t keys = 0;
    enum status st = drain_read_totals(c, read_totals, TOTALS, &keys, err);
    if (st != STATUS_OK) {
        return st;
    }
    const int64_t *found = c->db.row;
    *ret_us = found[TOTAL_US];
    (void)json_object_set_new(result, "completed", json_integer(found[TOTAL_COMPLETED]));
    (void)json_object_set_new(
        result, "duplicates",
        json_integer(found[TOTAL_ATTEMPTS] + found[TOTAL_FAILED] - found[TOTAL_IDS]));
    (void)json_object_set_new(result, "open", json_integer(found[TOTAL_OPEN]));
    (void)json_object_set_new(result, "lock_keys_left", json_integer(keys));
    if (found[TOTAL_COMPLETED] != jobs || found[TOTAL_IDS] != jobs || found[TOTAL_ROWS] != jobs ||
        found[TOTAL_ATTEMPTS] != jobs || found[TOTAL_FAILED] != 0 || found[TOTAL_OPEN] != 0 ||
        keys != 0) {
        return err_fail(err, STATUS_CONFLICT, "the totals don't match");
    }
    return STATUS_OK;
}

enum status drain_reconcile(struct cluster *c, int64_t jobs, json_t *result, struct err *err)
{
    int64_t us = 0;
    return reconcile(c, jobs, &totals, result, &us, err);
}

/* Jobs that are not kept have no times, so the time is measured here, from the first claim on. */
static enum status drain_unkept(struct cluster *c, int64_t *ret_us, struct err *err)
{
    for (;;) {
        enum status st = wait_and_ask(c, POLL_US / 10, &has_begun, NULL, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (c->db.row[0] != 0) {
            break;
        }
    }
    int64_t begun_us = clock_boot_us();
    enum status st = drain_wait(c, err);
    *ret_us = clock_boot_us() - begun_us;
    return st;
}

struct counts {
    int64_t commits; /* without those of the bench itself */
    int64_t redis_commands;
};

/* Sessions may report their commits as late as at their end, so the daemons must have ended. */
static enum status read_counts(struct cluster *c, struct counts *ret, struct err *err)
{
    enum status st = db_query(&c->db, &commits, NULL, 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    ret->commits = c->db.row[0] - c->db.commits;
    return masters_commands(&c->masters, &ret->redis_commands, err);
}

static void add_counts(json_t *result, const struct counts *from, const struct counts *to,
                       double jobs)
{
    (void)json_object_set_new(result, "pg_commits_per_job",
                              json_real((double)(to->commits - from->commits) / jobs));
    (void)json_object_set_new(
        result, "redis_commands_per_job",
        json_real((double)(to->redis_commands - from->redis_commands) / jobs));
}

enum status drain_run(struct cluster *c, const struct bench_options *options, json_t *result,
                      struct err *err)
{
    double jobs = (double)options->jobs;
    struct counts counts[2] = {0};
    int64_t unkept_us = 0;
    (void)json_object_set_new(result, "jobs", json_integer(options->jobs));
    enum status st = drain_fill(c, options->jobs, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = options->is_unkept ? db_query(&c->db, &keep_none, NULL, 0, err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    st = read_counts(c, &counts[0], err);
    if (st != STATUS_OK) {
        return st;
    }
    struct cluster_cpu before = cluster_cpu(c);
    st = cluster_start_daemons(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = options->is_unkept ? drain_unkept(c, &unkept_us, err) : drain_wait(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct cluster_cpu after = cluster_cpu(c);
    (void)report_cpu(result, &before, &after, jobs);
    workload_add_rss(c, result);
    st = cluster_stop_daemons(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_counts(c, &counts[1], err);
    if (st != STATUS_OK) {
        return st;
    }
    add_counts(result, &counts[0], &counts[1], jobs);
    int64_t us = 0;
    st = reconcile(c, options->jobs, options->is_unkept ? &unkept_totals : &totals, result, &us,
                   err);
    (void)json_object_set_new(result, "jobs_per_s",
                              json_real(1e6 * jobs / (double)(us + unkept_us + 1)));
    return st;
}

/* ---- compared drains ---- */

static double cpu_us(const struct cluster_cpu *from, const struct cluster_cpu *to)
{
    return (double)(to->scheduler_us - from->scheduler_us + to->worker_us - from->worker_us +
                    to->postgres_us - from->postgres_us + to->redis_us - from->redis_us +
                    to->runner_us - from->runner_us);
}

static void tell_running(const struct drain_plan *plan, bool is_running)
{
    if (plan->on_running != NULL) {
        plan->on_running(plan->ctx, is_running);
    }
}

enum status drain_start_workers(struct cluster *c, struct err *err)
{
    enum status st = cluster_start_daemons(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t end_us = clock_boot_us() + STALL_US;
    do {
        st = wait_and_ask(c, POLL_US, &registered, NULL, err);
        if (st != STATUS_OK) {
            return st;
        }
    } while (c->db.row[0] < (int64_t)c->options.workers && clock_boot_us() < end_us);
    if (c->db.row[0] < (int64_t)c->options.workers) {
        return err_fail(err, STATUS_TIMEOUT, "%" PRId64 " of %zu workers are there", c->db.row[0],
                        c->options.workers);
    }
    return cluster_wait(c, SETTLE_US, err);
}

static bool is_paused(const struct drain_plan *plan)
{
    return plan->waits_for_workers || plan->warm_insert != NULL;
}

static enum status warm_up(struct cluster *c, const struct drain_plan *plan, struct err *err)
{
    enum status st = drain_start_workers(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = fill(c, plan->warm_insert, plan->warm_jobs, err);
    if (st != STATUS_OK) {
        return st;
    }
    return drain_wait(c, err);
}

/* With a warm-up, the daemons are running already. */
static enum status start_daemons(struct cluster *c, const struct drain_plan *plan,
                                 struct cluster_cpu *ret_before, struct err *err)
{
    enum status st = STATUS_OK;
    *ret_before = cluster_cpu(c);
    if (!is_paused(plan)) {
        return cluster_start_daemons(c, err);
    }
    if (plan->warm_insert == NULL) {
        st = drain_start_workers(c, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    *ret_before = cluster_cpu(c);
    return db_query(&c->db, &resume_all, NULL, 0, err);
}

/* Runs from the start of the daemons to their end. */
static enum status run_daemons(struct cluster *c, const struct drain_plan *plan,
                               struct drain_speed *ret, struct err *err)
{
    struct cluster_cpu before;
    enum status st = start_daemons(c, plan, &before, err);
    if (st != STATUS_OK) {
        return st;
    }
    tell_running(plan, true);
    st = drain_wait(c, err);
    struct cluster_cpu after = cluster_cpu(c);
    tell_running(plan, false);
    if (st != STATUS_OK) {
        return st;
    }
    ret->cpu_us_per_job = cpu_us(&before, &after) / (double)plan->jobs;
    ret->postgres_us_per_job =
        (double)(after.postgres_us - before.postgres_us) / (double)plan->jobs;
    return cluster_stop_daemons(c, err);
}

enum status drain_timed(struct cluster *c, const struct drain_plan *plan, struct drain_speed *ret,
                        struct err *err)
{
    char storage[8];
    enum status st = db_query(&c->db, &clean, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = plan->warm_insert != NULL ? warm_up(c, plan, err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    st = db_query(&c->db, &last_id, NULL, 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct pg_param id = pg_param_i64(c->db.row[0], storage);
    st = is_paused(plan) ? db_query(&c->db, &pause_all, NULL, 0, err) : STATUS_OK;
    if (st != STATUS_OK) {
        return st;
    }
    st = fill(c, plan->insert != NULL ? plan->insert : &insert_jobs, plan->jobs, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct counts before = {0};
    struct counts after = {0};
    st = read_counts(c, &before, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = run_daemons(c, plan, ret, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_counts(c, &after, err);
    if (st != STATUS_OK) {
        return st;
    }
    double jobs = (double)plan->jobs;
    ret->commits_per_job = (double)(after.commits - before.commits) / jobs;
    ret->redis_commands_per_job = (double)(after.redis_commands - before.redis_commands) / jobs;
    st = db_query(&c->db, &took, &id, 2, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (c->db.row[0] != plan->jobs) {
        return err_fail(err, STATUS_CONFLICT, "%" PRId64 " of %" PRId64 " jobs were done at once",
                        c->db.row[0], plan->jobs);
    }
    ret->jobs_per_s = 1e6 * (double)plan->jobs / (double)(c->db.row[1] + 1);
    return STATUS_OK;
}
