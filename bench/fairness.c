/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload fairness: measures how long the jobs of small tenants wait, alone and beside a tenant
 * that keeps thousands of jobs waiting. The wait is the time from a job's insertion to its end by
 * PostgreSQL's clock, minus the time that the handler sleeps. */
#include "base/clock.h"
#include "bench/figures.h"
#include "bench/workloads.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define TICK_US (20 * US_PER_MS)
#define RATE 40 /* jobs per second of all small tenants together */
#define SETTLE_US US_PER_S
#define RUNS_RATE 100 /* upper bound, per runner and second */
#define FLOOD_MORE 2000
#define RATIO_MAX 2.0
#define ROUNDS_MAX 20 /* of --rounds */

#define ARGS "'{\"ms\": 10}'"

static const unsigned two_numbers[] = {PG_INT8, PG_INT8};

static const struct pg_statement insert_small = {
    .name = "insert_small",
    .sql = "INSERT INTO claimd.job (kind, args, share_key, share) SELECT 'sleep', " ARGS ", t,"
           " claimd.share_of(t) FROM (SELECT 'small' || floor(random() * $2)::int8 AS t FROM"
           " generate_series(1, $1) OFFSET 0) AS r",
    .types = two_numbers,
    .type_count = 2};
static const struct pg_statement insert_flood = {
    .name = "insert_flood",
    .sql = "INSERT INTO claimd.job (kind, args, share_key, share) SELECT 'sleep', " ARGS
           ", 'flood', claimd.share_of('flood') FROM generate_series(1, $1 + $2)",
    .types = two_numbers,
    .type_count = 2};
static const struct pg_statement forget_flood = {
    .name = "forget_flood",
    .sql = "DELETE FROM claimd.job WHERE share_key = 'flood' AND state = 'available'"};
static const struct pg_statement open_jobs = {.name = "open_jobs",
                                              .sql = "SELECT count(*) FROM claimd.job"};
static const struct pg_statement begin = {.name = "begin_phase",
                                          .sql = "TRUNCATE claimd.job_history"};
static const struct pg_statement waits = {
    .name = "waits",
    .sql = "SELECT count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY us),"
           " percentile_disc(0.99) WITHIN GROUP (ORDER BY us), max(us),"
           " percentile_disc(0.5) WITHIN GROUP (ORDER BY claim_us),"
           " percentile_disc(0.99) WITHIN GROUP (ORDER BY claim_us), (SELECT count(*) FROM"
           " claimd.job_history WHERE share_key = 'flood') FROM (SELECT (1e6 * extract(epoch FROM"
           " finalized_at - ready_at))::int8 - 10000 AS us, (1e6 * extract(epoch FROM"
           " attempted_at - ready_at))::int8 AS claim_us FROM claimd.job_history"
           " WHERE share_key LIKE 'small%') AS small"};
enum {
    WAITS_COUNT,
    WAITS_P50,
    WAITS_P99,
    WAITS_MAX,
    WAITS_CLAIM_P50,
    WAITS_CLAIM_P99,
    WAITS_FLOOD,
    WAITS_COLUMNS
};

static enum status insert(struct cluster *c, const struct pg_statement *statement, int64_t a,
                          int64_t b, struct err *err)
{
    char storage[2][8];
    const struct pg_param params[] = {pg_param_i64(a, storage[0]), pg_param_i64(b, storage[1])};
    return db_query(&c->db, statement, params, 0, err);
}

static enum status wait_until_empty(struct cluster *c, struct err *err)
{
    enum status st = STATUS_OK;
    do {
        st = cluster_wait(c, 5 * TICK_US, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = cluster_check_daemons(c, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = db_query(&c->db, &open_jobs, NULL, 1, err);
    } while (st == STATUS_OK && c->db.row[0] > 0);
    return st;
}

/* Inserts jobs of small tenants at a steady rate, each of a random tenant. */
static enum status trickle(struct cluster *c, int64_t seconds, int64_t tenants, struct err *err)
{
    int64_t start_us = clock_boot_us();
    int64_t sent = 0;
    for (;;) {
        int64_t us = clock_boot_us() - start_us;
        if (us >= seconds * US_PER_S) {
            return STATUS_OK;
        }
        int64_t due = us * RATE / US_PER_S - sent;
        sent += due;
        enum status st = due > 0 ? insert(c, &insert_small, due, tenants, err) : STATUS_OK;
        if (st != STATUS_OK) {
            return st;
        }
        st = cluster_wait(c, TICK_US, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = cluster_check_daemons(c, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
}

static int64_t runners(const struct cluster *c)
{
    int64_t slots = c->options.slots > 0 ? c->options.slots : sysconf(_SC_NPROCESSORS_ONLN);
    return (int64_t)c->options.workers * slots;
}

static enum status measure(struct cluster *c, int64_t seconds, int64_t tenants, bool is_flooded,
                           struct err *err)
{
    (void)fprintf(stderr, "bench: %" PRId64 " small tenants %s\n", tenants,
                  is_flooded ? "beside a flood" : "alone");
    enum status st = db_query(&c->db, &begin, NULL, 0, err);
    if (st == STATUS_OK && is_flooded) {
        st = insert(c, &insert_flood, (seconds + 1) * RUNS_RATE * runners(c), FLOOD_MORE, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = cluster_wait(c, SETTLE_US, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    st = trickle(c, seconds, tenants, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = db_query(&c->db, &forget_flood, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = wait_until_empty(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    return db_query(&c->db, &waits, NULL, WAITS_COLUMNS, err);
}

static double ms(int64_t us)
{
    return (double)us / US_PER_MS;
}

static json_t *waits_json(const int64_t *row)
{
    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:I}", "jobs", (json_int_t)row[WAITS_COUNT],
                     "p50_ms", ms(row[WAITS_P50]), "p99_ms", ms(row[WAITS_P99]), "max_ms",
                     ms(row[WAITS_MAX]), "claimed_p50_ms", ms(row[WAITS_CLAIM_P50]),
                     "claimed_p99_ms", ms(row[WAITS_CLAIM_P99]), "flood_jobs",
                     (json_int_t)row[WAITS_FLOOD]);
}

/* Measures in turns, so that a disturbance affects both alike. The result is the median of the
 * ratios. */
static enum status compare(struct cluster *c, const struct bench_options *options, int64_t tenants,
                           json_t *list, double *worst, struct err *err)
{
    double ratios[ROUNDS_MAX];
    json_t *rounds[] = {json_array(), json_array()};
    json_t *of = json_pack("{s:I, s:o, s:o}", "tenants", (json_int_t)tenants, "alone", rounds[0],
                           "flooded", rounds[1]);
    (void)json_array_append_new(list, of);
    for (int64_t round = 0; round < options->rounds; round++) {
        double p99[2] = {0};
        for (size_t i = 0; i < ARRAY_COUNT(rounds); i++) {
            enum status st = measure(c, options->seconds, tenants, i == 1, err);
            if (st != STATUS_OK) {
                return st;
            }
            (void)json_array_append_new(rounds[i], waits_json(c->db.row));
            p99[i] = (double)c->db.row[WAITS_P99];
        }
        ratios[round] = p99[1] / (p99[0] > 0 ? p99[0] : 1);
    }
    double ratio = figures_median(ratios, (size_t)options->rounds);
    *worst = ratio > *worst ? ratio : *worst;
    (void)json_object_set_new(of, "p99_ratio", json_real(ratio));
    return STATUS_OK;
}

enum status fairness_run(struct cluster *c, const struct bench_options *options, json_t *result,
                         struct err *err)
{
    static const int64_t tenants[] = {1, 10, 1000};
    double worst = 0;
    json_t *list = json_array();
    (void)json_object_set_new(result, "waits", list);
    enum status st = cluster_start_daemons(c, err);
    if (st == STATUS_OK) { /* first connections, plans, pages, and lanes of tenants */
        st = measure(c, 2, tenants[ARRAY_COUNT(tenants) - 1], true, err);
    }
    for (size_t i = 0; st == STATUS_OK && i < ARRAY_COUNT(tenants); i++) {
        st = compare(c, options, tenants[i], list, &worst, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    (void)json_object_set_new(result, "worst_p99_ratio", json_real(worst));
    (void)json_object_set_new(result, "is_goal_reached", json_boolean(worst <= RATIO_MAX));
    workload_add_rss(c, result);
    return cluster_stop_daemons(c, err);
}
