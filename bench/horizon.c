/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload horizon: the same drain while an open snapshot of another session keeps every dead row,
 * and without one, in turns. Tenths of each drain show what accumulates. */
#include "bench/drain.h"
#include "bench/figures.h"
#include "bench/goals.h"
#include "bench/workloads.h"

#include <stdio.h>

#define ROUNDS_MAX 20
#define SLICES 10

enum { FREE, PINNED, SIDES };
static const char *const side_names[SIDES] = {"free", "pinned"};

static const struct pg_statement forget = {.name = "", .sql = "TRUNCATE claimd.job_history"};
static const struct pg_statement begin = {.name = "",
                                          .sql = "BEGIN ISOLATION LEVEL REPEATABLE READ"};
static const struct pg_statement look = {.name = "", .sql = "SELECT count(*) FROM claimd.kind"};
/* Slices of the jobs, by their ends. The first slice begins with the first claim. */
static const struct pg_statement slices = {
    .name = "slices",
    .sql = "WITH ended AS (SELECT finalized_at, ntile(10) OVER (ORDER BY finalized_at) AS n"
           " FROM claimd.job_history),"
           " slice AS (SELECT n, count(*) AS jobs, max(finalized_at) AS at FROM ended GROUP BY n)"
           " SELECT jobs, (1e6 * extract(epoch FROM at - COALESCE(lag(at) OVER (ORDER BY n),"
           " (SELECT min(attempted_at) FROM claimd.job_history))))::bigint FROM slice ORDER BY n"};

struct run {
    struct cluster *cluster;
    struct db pin; /* zeroed: no snapshot is open */
    bool is_pinned;
    enum status st;
    struct err err;
    struct drain_speed speed;
    double rates[SLICES];
    size_t slices;
};

static enum status pin(struct run *r, struct err *err)
{
    struct cluster *c = r->cluster;
    enum status st = db_open(&r->pin, &c->loop, c->conninfo, &c->is_interrupted, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = db_query(&r->pin, &begin, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    return db_query(&r->pin, &look, NULL, 1, err);
}

/* Called just after the daemons were started, when no job has ended yet. */
static void on_running(void *ctx, bool is_running)
{
    struct run *r = ctx;
    if (is_running && r->is_pinned) {
        r->st = pin(r, &r->err);
    } else {
        db_close(&r->pin);
    }
}

static void on_slice(void *ctx, const int64_t *row)
{
    struct run *r = ctx;
    if (r->slices < SLICES) {
        r->rates[r->slices++] = 1e6 * (double)row[0] / (double)(row[1] + 1);
    }
}

static enum status measure(struct cluster *c, int64_t jobs, bool is_pinned, struct run *r,
                           struct err *err)
{
    *r = (struct run){.cluster = c, .is_pinned = is_pinned};
    const struct drain_plan plan = {.jobs = jobs, .on_running = on_running, .ctx = r};
    enum status st = db_query(&c->db, &forget, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = drain_timed(c, &plan, &r->speed, err);
    db_close(&r->pin); /* in case the drain has failed */
    if (st != STATUS_OK) {
        return st;
    }
    if (r->st != STATUS_OK) {
        return err_fail(err, r->st, "pinning: %s", r->err.msg);
    }
    return db_each(&c->db, &slices, NULL, 2, on_slice, r, err);
}

static double median_of(struct run runs[][SIDES], size_t rounds,
                        double (*value)(const struct run *sides))
{
    double values[ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++) {
        values[i] = value(runs[i]);
    }
    return figures_median(values, rounds);
}

static double pinned(const struct run *sides)
{
    return sides[PINNED].speed.jobs_per_s;
}

static double last_pinned(const struct run *sides)
{
    return sides[PINNED].rates[SLICES - 1];
}

static double pinned_to_free(const struct run *sides)
{
    return sides[PINNED].speed.jobs_per_s / sides[FREE].speed.jobs_per_s;
}

static double cpu_pinned_to_free(const struct run *sides)
{
    return sides[PINNED].speed.cpu_us_per_job / sides[FREE].speed.cpu_us_per_job;
}

static double last_pinned_to_free(const struct run *sides)
{
    return sides[PINNED].rates[SLICES - 1] / sides[FREE].rates[SLICES - 1];
}

static double last_to_first_pinned(const struct run *sides)
{
    return sides[PINNED].rates[SLICES - 1] / sides[PINNED].rates[0];
}

static double last_to_first_free(const struct run *sides)
{
    return sides[FREE].rates[SLICES - 1] / sides[FREE].rates[0];
}

static void report_side(json_t *result, struct run runs[][SIDES], size_t rounds, size_t side)
{
    double values[ROUNDS_MAX];
    json_t *tenths = json_array();
    for (size_t n = 0; n < SLICES; n++) {
        for (size_t i = 0; i < rounds; i++) {
            values[i] = runs[i][side].rates[n];
        }
        (void)json_array_append_new(tenths, json_real(figures_median(values, rounds)));
    }
    for (size_t i = 0; i < rounds; i++) {
        values[i] = runs[i][side].speed.jobs_per_s;
    }
    (void)json_object_set_new(result, side_names[side],
                              json_pack("{s:f, s:o}", "jobs_per_s", figures_median(values, rounds),
                                        "jobs_per_s_of_tenths", tenths));
}

static void report(json_t *result, struct run runs[][SIDES], size_t rounds)
{
    report_side(result, runs, rounds, FREE);
    report_side(result, runs, rounds, PINNED);
    const struct {
        const char *name;
        double value;
    } ratios[] = {{"pinned_to_free", median_of(runs, rounds, pinned_to_free)},
                  {"cpu_pinned_to_free", median_of(runs, rounds, cpu_pinned_to_free)},
                  {"last_pinned_to_free", median_of(runs, rounds, last_pinned_to_free)},
                  {"last_to_first_pinned", median_of(runs, rounds, last_to_first_pinned)},
                  {"last_to_first_free", median_of(runs, rounds, last_to_first_free)}};
    for (size_t i = 0; i < ARRAY_COUNT(ratios); i++) {
        (void)json_object_set_new(result, ratios[i].name, json_real(ratios[i].value));
    }
    goal_add_ratio(result, GOAL_HORIZON, median_of(runs, rounds, last_pinned),
                   median_of(runs, rounds, last_to_first_pinned));
    goal_add_ratio(result, GOAL_HORIZON_FREE, median_of(runs, rounds, pinned),
                   median_of(runs, rounds, pinned_to_free));
}

enum status horizon_run(struct cluster *c, const struct bench_options *options, json_t *result,
                        struct err *err)
{
    static struct run runs[ROUNDS_MAX][SIDES];
    size_t rounds = (size_t)options->rounds;
    (void)json_object_set_new(result, "jobs", json_integer(options->jobs));
    (void)json_object_set_new(result, "rounds", json_integer(options->rounds));
    for (size_t n = 0; n < SIDES * rounds; n++) {
        size_t round = n / SIDES;
        size_t side = (n + round) % SIDES; /* 0 1, 1 0, 0 1, … */
        struct run *r = &runs[round][side];
        enum status st = measure(c, options->jobs, side == PINNED, r, err);
        if (st != STATUS_OK) {
            err_prefix(err, "%s", side_names[side]);
            return st;
        }
        (void)fprintf(
            stderr, "bench: round %zu, %s: %.0f jobs/s, first tenth %.0f, last tenth %.0f\n",
            round + 1, side_names[side], r->speed.jobs_per_s, r->rates[0], r->rates[SLICES - 1]);
    }
    report(result, runs, rounds);
    return STATUS_OK;
}
