/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload backlog: starts daemons when many jobs are already waiting, and when few are, in turns.
 * Measures the time to the first claim, the speed of the first jobs, and the memory used. */
#include "base/clock.h"
#include "bench/drain.h"
#include "bench/figures.h"
#include "bench/goals.h"
#include "bench/workloads.h"

#include <inttypes.h>
#include <stdio.h>

#define ROUNDS_MAX 20
#define SMALL_MAX 100000
#define POLL_US (50 * US_PER_MS)
#define HINT_POLL_US (5 * US_PER_MS)
#define STALL_US (60 * US_PER_S)

enum { SMALL, LARGE, SIZES };

static const unsigned number_types[] = {PG_INT8, PG_INT8};

static const struct pg_statement empty = {.name = "",
                                          .sql = "TRUNCATE claimd.job, claimd.job_history"};
static const struct pg_statement claims = {
    .name = "claims",
    .sql = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM claimd.fence"};
/* Returns the time of the first claim, how long it took from there until $1 jobs had ended, and
 * until $2 had ended, if there were that many. */
static const struct pg_statement ends = {
    .name = "ends",
    .sql = "WITH ended AS (SELECT finalized_at - (SELECT min(attempted_at) FROM"
           " claimd.job_history) AS after FROM claimd.job_history ORDER BY finalized_at LIMIT $2)"
           " SELECT (SELECT (1e6 * extract(epoch FROM min(attempted_at)))::bigint FROM"
           " claimd.job_history), (1e6 * extract(epoch FROM (SELECT after FROM ended"
           " ORDER BY after OFFSET $1 - 1 LIMIT 1)))::bigint,"
           " (1e6 * extract(epoch FROM max(after)))::bigint, count(*) FROM ended",
    .types = number_types,
    .type_count = 2};
enum { FIRST_CLAIM, FEW_US, ALL_US, ALL_ENDED, END_COLUMNS };
static const struct pg_statement totals = {
    .name = "backlog_totals",
    .sql = "SELECT count(*), count(*) FILTER (WHERE state = 'completed' AND attempt = 1),"
           " count(DISTINCT id), (SELECT count(*) FROM claimd.job),"
           " (SELECT count(*) FROM claimd.job_attempt),"
           " (SELECT count(*) FROM claimd.job JOIN claimd.job_history USING (id))"
           " FROM claimd.job_history"};
enum { TOTAL_ENDED, TOTAL_COMPLETED, TOTAL_IDS, TOTAL_OPEN, TOTAL_FAILED, TOTAL_TWICE, TOTALS };

struct start {
    double first_hint_s;  /* since the start of the daemons */
    double first_claim_s; /* likewise */
    double rate;          /* of as many jobs as with the other size */
    double rate_all;      /* of all jobs that were waited for */
    double scheduler_mb;
    double redis_mb; /* of all masters together, the highest value */
};

static enum status watch_redis(struct cluster *c, struct start *ret, struct err *err)
{
    int64_t bytes = 0;
    enum status st = masters_used_memory(&c->masters, &bytes, err);
    double mb = (double)bytes / (1 << 20);
    ret->redis_mb = mb > ret->redis_mb ? mb : ret->redis_mb;
    return st;
}

/* Redis has no hints at the start. Workers take hints away, so a claim proves that there was
 * one. */
static enum status wait_for_hint(struct cluster *c, int64_t claims_before, struct start *ret,
                                 struct err *err)
{
    int64_t begun_us = clock_boot_us();
    for (;;) {
        int64_t keys = 0;
        enum status st = masters_hint_keys(&c->masters, &keys, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = db_query(&c->db, &claims, NULL, 1, err);
        if (st != STATUS_OK) {
            return st;
        }
        ret->first_hint_s = (double)(clock_boot_us() - begun_us) / (double)US_PER_S;
        if (keys > 0 || c->db.row[0] > claims_before) {
            return STATUS_OK;
        }
        if (clock_boot_us() - begun_us > STALL_US) {
            return err_fail(err, STATUS_TIMEOUT, "no hint came for a minute");
        }
        st = cluster_wait(c, HINT_POLL_US, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
}

/* Waits until `count` claims have been made since `from`. */
static enum status wait_for_claims(struct cluster *c, int64_t from, int64_t count,
                                   struct start *ret, struct err *err)
{
    int64_t before = from;
    int64_t moved_us = clock_boot_us();
    while (before - from < count) {
        enum status st = cluster_wait(c, POLL_US, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = cluster_check_daemons(c, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = watch_redis(c, ret, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = db_query(&c->db, &claims, NULL, 1, err);
        if (st != STATUS_OK) {
            return st;
        }
        moved_us = c->db.row[0] != before ? clock_boot_us() : moved_us;
        before = c->db.row[0];
        if (clock_boot_us() - moved_us > STALL_US) {
            return err_fail(err, STATUS_TIMEOUT, "no job was claimed for a minute");
        }
    }
    return STATUS_OK;
}

/* Checks that each ended job was completed at its first attempt, and that the others still wait,
 * unchanged. */
static enum status reconcile(struct cluster *c, int64_t jobs, struct err *err)
{
    int64_t keys = 0;
    enum status st = drain_read_totals(c, &totals, TOTALS, &keys, err);
    if (st != STATUS_OK) {
        return st;
    }
    const int64_t *found = c->db.row;
    if (found[TOTAL_ENDED] + found[TOTAL_OPEN] != jobs ||
        found[TOTAL_COMPLETED] != found[TOTAL_ENDED] || found[TOTAL_IDS] != found[TOTAL_ENDED] ||
        found[TOTAL_FAILED] != 0 || found[TOTAL_TWICE] != 0 || keys != 0) {
        return err_fail(err, STATUS_CONFLICT,
                        "the totals don't match: of %" PRId64 " jobs %" PRId64
                        " have ended, %" PRId64 " are open, %" PRId64 " lock keys are left",
                        jobs, found[TOTAL_ENDED], found[TOTAL_OPEN], keys);
    }
    return STATUS_OK;
}

/* Starts the daemons, and stops them when `wanted` jobs have been claimed or none is open. */
static enum status run_daemons(struct cluster *c, int64_t jobs, int64_t wanted, struct start *ret,
                               struct err *err)
{
    enum status st = db_query(&c->db, &claims, NULL, 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t from = c->db.row[0];
    st = cluster_start_daemons(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = wait_for_hint(c, from, ret, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = wait_for_claims(c, from, wanted, ret, err);
    if (st == STATUS_OK && wanted == jobs) {
        st = drain_wait(c, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    ret->scheduler_mb = (double)cluster_scheduler_rss_kib(c) / 1024;
    return cluster_stop_daemons(c, err);
}

/* Requires `few` ≤ `wanted` ≤ `jobs`. */
static enum status measure(struct cluster *c, int64_t jobs, int64_t wanted, int64_t few,
                           struct start *ret, struct err *err)
{
    char storage[2][8];
    const struct pg_param params[] = {pg_param_i64(few, storage[0]),
                                      pg_param_i64(wanted, storage[1])};
    *ret = (struct start){0};
    enum status st = db_query(&c->db, &empty, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = masters_flush(&c->masters, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = drain_fill(c, jobs, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t started_us = clock_wall_us();
    st = run_daemons(c, jobs, wanted, ret, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = db_query(&c->db, &ends, params, END_COLUMNS, err);
    if (st != STATUS_OK) {
        return st;
    }
    const int64_t *row = c->db.row;
    ret->first_claim_s = (double)(row[FIRST_CLAIM] - started_us) / (double)US_PER_S;
    ret->rate = 1e6 * (double)few / (double)(row[FEW_US] + 1);
    ret->rate_all = 1e6 * (double)row[ALL_ENDED] / (double)(row[ALL_US] + 1);
    return reconcile(c, jobs, err);
}

static double median_of(struct start starts[][SIZES], size_t rounds, size_t size, size_t offset)
{
    double values[ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++) {
        memcpy(&values[i], (const char *)&starts[i][size] + offset, sizeof values[i]);
    }
    return figures_median(values, rounds);
}

static void report(json_t *result, struct start starts[][SIZES], size_t rounds)
{
    static const struct {
        const char *name;
        size_t offset;
    } figures[] = {{"first_hint_s", offsetof(struct start, first_hint_s)},
                   {"first_claim_s", offsetof(struct start, first_claim_s)},
                   {"jobs_per_s", offsetof(struct start, rate)},
                   {"jobs_per_s_of_all", offsetof(struct start, rate_all)},
                   {"scheduler_rss_mb", offsetof(struct start, scheduler_mb)},
                   {"redis_used_mb", offsetof(struct start, redis_mb)}};
    static const char *const sizes[SIZES] = {"small", "large"};
    double ratios[ROUNDS_MAX];
    for (size_t size = 0; size < SIZES; size++) {
        json_t *of = json_object();
        for (size_t i = 0; i < ARRAY_COUNT(figures); i++) {
            (void)json_object_set_new(
                of, figures[i].name, json_real(median_of(starts, rounds, size, figures[i].offset)));
        }
        (void)json_object_set_new(result, sizes[size], of);
    }
    for (size_t i = 0; i < rounds; i++) {
        ratios[i] = starts[i][LARGE].rate / starts[i][SMALL].rate;
    }
    double ratio = figures_median(ratios, rounds);
    (void)json_object_set_new(result, "large_to_small", json_real(ratio));
    goal_add(result, GOAL_BACKLOG_FIRST,
             median_of(starts, rounds, LARGE, offsetof(struct start, first_hint_s)));
    goal_add_ratio(result, GOAL_BACKLOG_RATE,
                   median_of(starts, rounds, LARGE, offsetof(struct start, rate)), ratio);
    goal_add(result, GOAL_BACKLOG_MEMORY,
             median_of(starts, rounds, LARGE, offsetof(struct start, scheduler_mb)));
}

enum status backlog_run(struct cluster *c, const struct bench_options *options, json_t *result,
                        struct err *err)
{
    static struct start starts[ROUNDS_MAX][SIZES];
    size_t rounds = (size_t)options->rounds;
    int64_t small = options->jobs / 10 < SMALL_MAX ? options->jobs / 10 : SMALL_MAX;
    if (small < 10) {
        return err_fail(err, STATUS_INVALID, "--jobs: at least 100");
    }
    int64_t few = small * 9 / 10; /* the last jobs of a drain are slow */
    (void)json_object_set_new(result, "jobs", json_integer(options->jobs));
    (void)json_object_set_new(result, "small_jobs", json_integer(small));
    (void)json_object_set_new(result, "rounds", json_integer(options->rounds));
    for (size_t n = 0; n < SIZES * rounds; n++) {
        size_t size = (n + n / SIZES) % SIZES; /* 0 1, 1 0, 0 1, … */
        struct start *one = &starts[n / SIZES][size];
        enum status st = size == SMALL ? measure(c, small, small, few, one, err)
                                       : measure(c, options->jobs, 2 * small, few, one, err);
        if (st != STATUS_OK) {
            return st;
        }
        (void)fprintf(
            stderr,
            "bench: round %zu, %s backlog: first hint after %.2f s, claim %.2f s, %.0f jobs/s,"
            " scheduler %.0f MB, Redis %.0f MB\n",
            n / SIZES + 1, size == SMALL ? "small" : "large", one->first_hint_s, one->first_claim_s,
            one->rate, one->scheduler_mb, one->redis_mb);
    }
    report(result, starts, rounds);
    return STATUS_OK;
}
