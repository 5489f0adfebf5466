/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload deferred: among many jobs scheduled for later, some fall due at a constant rate.
 * Measures how late their handlers start, by the clocks of this machine. */
#include "base/clock.h"
#include "bench/drain.h"
#include "bench/goals.h"
#include "bench/report.h"
#include "bench/workloads.h"

#include <inttypes.h>
#include <stdio.h>

#define LEAD_US (4 * US_PER_S) /* before the first job is due */
#define INSERT_ROW_US 10       /* usual upper bound */

static const unsigned two_numbers[] = {PG_INT8, PG_INT8};
static const unsigned three_numbers[] = {PG_INT8, PG_INT8, PG_INT8};
static const unsigned one_number[] = {PG_INT8};

static const struct pg_statement insert_far = {
    .name = "insert_far",
    .sql = "INSERT INTO claimd.job (kind, scheduled_at) SELECT 'stamp', now() + interval '1 day'"
           " + n * interval '1 second' / $2 FROM generate_series(1, $1) AS n",
    .types = two_numbers,
    .type_count = 2};
static const struct pg_statement insert_near = {
    .name = "insert_near",
    .sql = "INSERT INTO claimd.job (kind, scheduled_at) SELECT 'stamp', now()"
           " + ($3 * interval '1 microsecond' + n * interval '1 second' / $2)"
           " FROM generate_series(1, $1) AS n",
    .types = three_numbers,
    .type_count = 3};
static const struct pg_statement last_id = {
    .name = "last_deferred", .sql = "SELECT last_value FROM claimd.job_id_seq WHERE is_called"};
/* $1: how far the wall clock is ahead of CLOCK_BOOTTIME. */
static const struct pg_statement lateness = {
    .name = "lateness",
    .sql = "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY us), percentile_disc(0.95)"
           " WITHIN GROUP (ORDER BY us), percentile_disc(0.99) WITHIN GROUP (ORDER BY us), max(us),"
           " min(us) FROM (SELECT (result->>'boot_us')::bigint + $1"
           " - (1e6 * extract(epoch FROM scheduled_at))::bigint AS us"
           " FROM claimd.job_history) AS late",
    .types = one_number,
    .type_count = 1};
enum { LATE_P50, LATE_P95, LATE_P99, LATE_MAX, LATE_MIN, LATE_COLUMNS };
static const struct pg_statement totals = {
    .name = "deferred_totals",
    .sql = "SELECT count(*), count(*) FILTER (WHERE state = 'completed' AND attempt = 1),"
           " count(DISTINCT id), (SELECT count(*) FROM claimd.job WHERE state = 'available'),"
           " (SELECT count(*) FROM claimd.job_attempt) FROM claimd.job_history"};
enum { TOTAL_ENDED, TOTAL_COMPLETED, TOTAL_IDS, TOTAL_WAITING, TOTAL_FAILED, TOTALS };

static enum status insert(struct cluster *c, const struct pg_statement *statement, int64_t jobs,
                          int64_t rate, int64_t lead_us, struct err *err)
{
    char storage[3][8];
    const struct pg_param params[] = {pg_param_i64(jobs, storage[0]),
                                      pg_param_i64(rate, storage[1]),
                                      pg_param_i64(lead_us, storage[2])};
    (void)fprintf(stderr, "bench: inserting %" PRId64 " deferred jobs\n", jobs);
    return db_query(&c->db, statement, params, 0, err);
}

static enum status fill(struct cluster *c, int64_t jobs, int64_t rate, int64_t *ret_last_id,
                        struct err *err)
{
    enum status st = insert(c, &insert_far, jobs, rate, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = drain_settle(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = db_query(&c->db, &last_id, NULL, 1, err);
    *ret_last_id = c->db.row[0];
    return st;
}

static enum status reconcile(struct cluster *c, int64_t due, int64_t far, struct err *err)
{
    int64_t keys = 0;
    enum status st = drain_read_totals(c, &totals, TOTALS, &keys, err);
    if (st != STATUS_OK) {
        return st;
    }
    const int64_t *found = c->db.row;
    if (found[TOTAL_ENDED] != due || found[TOTAL_COMPLETED] != due || found[TOTAL_IDS] != due ||
        found[TOTAL_WAITING] != far || found[TOTAL_FAILED] != 0 || keys != 0) {
        return err_fail(err, STATUS_CONFLICT,
                        "the totals don't match: %" PRId64 " of %" PRId64 " have ended, %" PRId64
                        " of %" PRId64 " wait, %" PRId64 " lock keys are left",
                        found[TOTAL_ENDED], due, found[TOTAL_WAITING], far, keys);
    }
    return STATUS_OK;
}

static enum status report(struct cluster *c, json_t *result, struct err *err)
{
    static const char *const names[LATE_COLUMNS] = {"late_p50_ms", "late_p95_ms", "late_p99_ms",
                                                    "late_max_ms", "late_min_ms"};
    char storage[8];
    struct pg_param ahead = pg_param_i64(clock_wall_us() - clock_boot_us(), storage);
    enum status st = db_query(&c->db, &lateness, &ahead, LATE_COLUMNS, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < LATE_COLUMNS; i++) {
        (void)json_object_set_new(result, names[i],
                                  json_real((double)c->db.row[i] / (double)US_PER_MS));
    }
    goal_add(result, GOAL_DEFERRED, (double)c->db.row[LATE_P95] / (double)US_PER_MS);
    return STATUS_OK;
}

/* Runs from the start of the daemons to their end. */
static enum status run_due(struct cluster *c, const struct bench_options *options, int64_t due,
                           int64_t last_far_id, json_t *result, struct err *err)
{
    enum status st = drain_start_workers(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct cluster_cpu before = cluster_cpu(c);
    st = insert(c, &insert_near, due, options->rate, LEAD_US + due * INSERT_ROW_US, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = drain_wait_beyond(c, last_far_id, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct cluster_cpu after = cluster_cpu(c);
    (void)report_cpu(result, &before, &after, (double)due);
    workload_add_rss(c, result);
    return cluster_stop_daemons(c, err);
}

enum status deferred_run(struct cluster *c, const struct bench_options *options, json_t *result,
                         struct err *err)
{
    int64_t due = options->rate * options->seconds;
    int64_t far = options->jobs > due ? options->jobs - due : 0;
    int64_t last_far_id = 0;
    (void)json_object_set_new(result, "jobs", json_integer(due + far));
    (void)json_object_set_new(result, "rate", json_integer(options->rate));
    (void)json_object_set_new(result, "seconds", json_integer(options->seconds));
    enum status st = fill(c, far, options->rate, &last_far_id, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = run_due(c, options, due, last_far_id, result, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = report(c, result, err);
    if (st != STATUS_OK) {
        return st;
    }
    return reconcile(c, due, far, err);
}
