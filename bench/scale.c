/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload scale: the same drain with 1, 4, 16 and 64 workers, in turns. All workers are registered
 * before the first job may be claimed. */
#include "bench/drain.h"
#include "bench/figures.h"
#include "bench/goals.h"
#include "bench/workloads.h"

#include <stdio.h>

#define ROUNDS_MAX 20

static const size_t counts[] = {1, 4, 16, WORKERS_MAX};
#define COUNTS (sizeof counts / sizeof counts[0])
enum { FEW = 1, MANY = COUNTS - 1 }; /* the goal is for their ratio */

static enum status measure(struct cluster *c, size_t workers, int64_t jobs, struct drain_speed *ret,
                           struct err *err)
{
    const struct drain_plan plan = {.jobs = jobs, .waits_for_workers = true};
    c->options.workers = workers;
    enum status st = drain_timed(c, &plan, ret, err);
    c->options.workers = WORKERS_MAX; /* so that every worker is ended */
    return st;
}

static double median_of(struct drain_speed speeds[][COUNTS], size_t rounds, size_t at,
                        double (*value)(const struct drain_speed *round, size_t at))
{
    double values[ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++) {
        values[i] = value(speeds[i], at);
    }
    return figures_median(values, rounds);
}

static double rate(const struct drain_speed *round, size_t at)
{
    return round[at].jobs_per_s;
}

static double cpu(const struct drain_speed *round, size_t at)
{
    return round[at].cpu_us_per_job;
}

static double commits(const struct drain_speed *round, size_t at)
{
    return round[at].commits_per_job;
}

static double ratio_to_few(const struct drain_speed *round, size_t at)
{
    return round[at].jobs_per_s / round[FEW].jobs_per_s;
}

enum status scale_run(struct cluster *c, const struct bench_options *options, json_t *result,
                      struct err *err)
{
    static struct drain_speed speeds[ROUNDS_MAX][COUNTS];
    size_t rounds = (size_t)options->rounds;
    for (size_t n = 0; n < rounds * COUNTS; n++) {
        struct drain_speed *speed = &speeds[n / COUNTS][n % COUNTS];
        enum status st = measure(c, counts[n % COUNTS], options->jobs, speed, err);
        if (st != STATUS_OK) {
            err_prefix(err, "%zu workers", counts[n % COUNTS]);
            return st;
        }
        (void)fprintf(stderr, "bench: round %zu, %zu workers: %.0f jobs/s, per job %.1f us\n",
                      n / COUNTS + 1, counts[n % COUNTS], speed->jobs_per_s, speed->cpu_us_per_job);
    }
    json_t *all = json_array();
    for (size_t i = 0; i < COUNTS; i++) {
        (void)json_array_append_new(
            all, json_pack("{s:I, s:f, s:f, s:f, s:f}", "workers", (json_int_t)counts[i],
                           "jobs_per_s", median_of(speeds, rounds, i, rate), "cpu_us_per_job",
                           median_of(speeds, rounds, i, cpu), "commits_per_job",
                           median_of(speeds, rounds, i, commits), "ratio_to_4",
                           median_of(speeds, rounds, i, ratio_to_few)));
    }
    double ratio = median_of(speeds, rounds, MANY, ratio_to_few);
    (void)json_object_set_new(result, "jobs", json_integer(options->jobs));
    (void)json_object_set_new(result, "rounds", json_integer(options->rounds));
    (void)json_object_set_new(result, "scale", all);
    goal_add_ratio(result, GOAL_SCALE_64, median_of(speeds, rounds, MANY, rate), ratio);
    goal_add(result, GOAL_SCALE_COMMITS, median_of(speeds, rounds, MANY, commits));
    return STATUS_OK;
}
