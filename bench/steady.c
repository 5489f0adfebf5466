/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload steady: jobs arrive at a constant rate that the system can easily handle. Measures the
 * cost of a job, how long it waits, and what accumulates. */
#include "base/clock.h"
#include "bench/drain.h"
#include "bench/figures.h"
#include "bench/goals.h"
#include "bench/report.h"
#include "bench/stream.h"
#include "bench/workloads.h"

#define WARM_UP_S 3 /* for first connections, first plans, and first pages of the history */

static const struct pg_statement counters = {
    .name = "counters",
    .sql = "SELECT xact_commit, n_tup_upd, n_tup_hot_upd, wal_fpi,"
           " vacuum_count + autovacuum_count FROM pg_stat_database, pg_stat_user_tables,"
           " pg_stat_wal WHERE datname = current_database() AND relid = 'claimd.job'::regclass"};
enum { COMMITS, UPDATES, HOT_UPDATES, PAGE_IMAGES, VACUUMS, COUNTERS };
static const struct pg_statement wal = {
    .name = "wal", .sql = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"};
static const struct pg_statement dead = {
    .name = "dead",
    .sql = "SELECT n_dead_tup, pg_table_size(relid), pg_indexes_size(relid)"
           " FROM pg_stat_user_tables WHERE relid = 'claimd.job'::regclass"};
enum { DEAD_ROWS, TABLE_BYTES, INDEX_BYTES, DEAD_COLUMNS };

/* Taken at the end of each second. */
struct samples {
    int64_t *dead;
    size_t count;
    size_t max;
    int64_t table_bytes; /* the largest size */
    int64_t index_bytes;
};

struct run {
    struct cluster *cluster;
    struct stream stream;
    struct samples samples;
    int64_t *waits_us; /* from the commit to the start of the handler */
};

static enum status sample(struct run *r, struct err *err)
{
    struct samples *s = &r->samples;
    enum status st = db_query(&r->cluster->db, &dead, NULL, DEAD_COLUMNS, err);
    if (st != STATUS_OK) {
        return st;
    }
    const int64_t *row = r->cluster->db.row;
    if (s->count < s->max) {
        s->dead[s->count++] = row[DEAD_ROWS];
    }
    s->table_bytes = row[TABLE_BYTES] > s->table_bytes ? row[TABLE_BYTES] : s->table_bytes;
    s->index_bytes = row[INDEX_BYTES] > s->index_bytes ? row[INDEX_BYTES] : s->index_bytes;
    return STATUS_OK;
}

/* Inserts `jobs` jobs at the rate, and waits until they are done. */
static enum status stream_jobs(struct run *r, int64_t rate, int64_t jobs, struct err *err)
{
    stream_start(&r->stream, rate, jobs);
    while (!stream_is_over(&r->stream)) {
        enum status st = cluster_wait(r->cluster, US_PER_S, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = cluster_check_daemons(r->cluster, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = sample(r, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    if (r->stream.st != STATUS_OK) {
        return err_fail(err, r->stream.st, "inserting: %s", r->stream.err.msg);
    }
    return drain_wait(r->cluster, err);
}

static int64_t warm_up_jobs(int64_t rate, int64_t jobs)
{
    return rate * WARM_UP_S < jobs ? rate * WARM_UP_S : jobs;
}

/* Measures one part of the stream, after a shorter one for warm-up. */
static enum status measure(struct run *r, int64_t rate, int64_t jobs, json_t *result,
                           struct err *err)
{
    struct cluster *c = r->cluster;
    enum status st = stream_jobs(r, rate, warm_up_jobs(rate, jobs), err);
    if (st != STATUS_OK) {
        return st;
    }
    r->samples.count = 0;
    st = db_query(&c->db, &wal, NULL, 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t wal_before = c->db.row[0];
    struct cluster_cpu before = cluster_cpu(c);
    st = stream_jobs(r, rate, jobs, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct cluster_cpu after = cluster_cpu(c);
    st = db_query(&c->db, &wal, NULL, 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)report_cpu(result, &before, &after, (double)jobs);
    double wal_bytes = (double)(c->db.row[0] - wal_before) / (double)jobs;
    (void)json_object_set_new(result, "wal_bytes_per_job", json_real(wal_bytes));
    goal_add(result, GOAL_WAL, wal_bytes);
    return stream_read_waits(&r->stream, c, r->waits_us, err);
}

static void report_waits(struct run *r, json_t *result)
{
    size_t jobs = (size_t)r->stream.jobs;
    int64_t *commits_us = r->stream.sent_us; /* not used after this */
    for (int64_t n = r->stream.jobs - 1; n >= 0; n--) {
        commits_us[n] = stream_commit_us(&r->stream, n);
    }
    report_times(result, "", r->waits_us, jobs);
    report_times(result, "insert_", commits_us, jobs);
    (void)json_object_set_new(result, "client_behind_ms",
                              json_real((double)r->stream.behind_us / (double)US_PER_MS));
    double p99_us = (double)figures_percentile_us(r->waits_us, jobs, 99);
    goal_add_ratio(result, GOAL_STEADY_P99, p99_us / (double)US_PER_MS,
                   p99_us / (double)figures_percentile_us(commits_us, jobs, 50));
}

static void report_dead(const struct run *r, json_t *result)
{
    const struct samples *s = &r->samples;
    int64_t max = 0;
    int64_t sum = 0;
    for (size_t i = 0; i < s->count; i++) {
        max = s->dead[i] > max ? s->dead[i] : max;
        sum += s->dead[i];
    }
    (void)json_object_set_new(result, "dead_rows_max", json_integer(max));
    (void)json_object_set_new(result, "dead_rows_mean",
                              json_real((double)sum / (double)(s->count > 0 ? s->count : 1)));
    (void)json_object_set_new(result, "table_mb", json_real((double)s->table_bytes / (1 << 20)));
    (void)json_object_set_new(result, "indexes_mb", json_real((double)s->index_bytes / (1 << 20)));
    goal_add(result, GOAL_DEAD_ROWS, (double)max / (double)r->stream.rate);
}

/* Sessions may report these as late as at their end, so they cover the whole run. */
static enum status report_counters(struct cluster *c, const int64_t *before, int64_t own,
                                   int64_t jobs, json_t *result, struct err *err)
{
    enum status st = db_query(&c->db, &counters, NULL, COUNTERS, err);
    if (st != STATUS_OK) {
        return st;
    }
    const int64_t *after = c->db.row;
    double all = (double)jobs;
    double hot = (double)(after[HOT_UPDATES] - before[HOT_UPDATES]) /
                 (double)(after[UPDATES] - before[UPDATES]);
    (void)json_object_set_new(result, "commits_per_job",
                              json_real((double)(after[COMMITS] - before[COMMITS] - own) / all));
    (void)json_object_set_new(result, "page_images_per_job",
                              json_real((double)(after[PAGE_IMAGES] - before[PAGE_IMAGES]) / all));
    (void)json_object_set_new(result, "vacuums", json_integer(after[VACUUMS] - before[VACUUMS]));
    goal_add(result, GOAL_HOT, hot);
    return STATUS_OK;
}

static enum status run_all(struct run *r, int64_t rate, int64_t jobs, json_t *result,
                           struct err *err)
{
    struct cluster *c = r->cluster;
    int64_t before[COUNTERS];
    int64_t commits = c->db.commits;
    enum status st = db_query(&c->db, &counters, NULL, COUNTERS, err);
    if (st != STATUS_OK) {
        return st;
    }
    memcpy(before, c->db.row, sizeof before);
    st = drain_start_workers(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = measure(r, rate, jobs, result, err);
    if (st != STATUS_OK) {
        return st;
    }
    report_waits(r, result);
    report_dead(r, result);
    workload_add_rss(c, result);
    st = cluster_stop_daemons(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    db_close(&r->stream.db);
    int64_t all = warm_up_jobs(rate, jobs) + jobs;
    st = report_counters(c, before, c->db.commits - commits + all, all, result, err);
    if (st != STATUS_OK) {
        return st;
    }
    return drain_reconcile(c, all, result, err);
}

enum status steady_run(struct cluster *c, const struct bench_options *options, json_t *result,
                       struct err *err)
{
    int64_t jobs = options->rate * options->seconds;
    size_t seconds = (size_t)options->seconds;
    autofree int64_t *waits_us = calloc((size_t)jobs, sizeof *waits_us);
    autofree int64_t *dead_rows = calloc(2 * seconds, sizeof *dead_rows);
    if (waits_us == NULL || dead_rows == NULL) {
        return err_fail(err, STATUS_NOMEM, "times of jobs");
    }
    struct run r = {
        .cluster = c, .waits_us = waits_us, .samples = {.dead = dead_rows, .max = 2 * seconds}};
    (void)json_object_set_new(result, "rate", json_integer(options->rate));
    (void)json_object_set_new(result, "seconds", json_integer(options->seconds));
    enum status st = stream_open(&r.stream, c, jobs, err);
    if (st == STATUS_OK) {
        st = run_all(&r, options->rate, jobs, result, err);
    }
    stream_close(&r.stream, c);
    return st;
}
