/* SPDX-License-Identifier: Apache-2.0
 *
 * Drains in turns, A B C A B C …, each on servers of its own: other load on the machine affects all
 * of them alike, and no drain leaves anything behind for the next one. */
#include "bench/drain.h"
#include "bench/figures.h"
#include "bench/goals.h"
#include "bench/workloads.h"

#include <math.h>
#include <stdio.h>

#define ROUNDS_MAX 20
#define RATE "jobs_per_s"
#define CPU "cpu_us_per_job.all"

enum { DRAIN, LIMIT, MASTERS_3, MASTERS_1, SKIP_LOCKED, CONTENDERS };
static const struct contender {
    const char *name;
    workload_fn *run;
    size_t masters;
} contenders[CONTENDERS] = {
    [DRAIN] = {"drain", drain_run, 5},
    [LIMIT] = {"limit", limit_run, 5},
    [MASTERS_3] = {"drain, 3 masters", drain_run, 3},
    [MASTERS_1] = {"drain, 1 master", drain_run, 1},
    [SKIP_LOCKED] = {"batched SKIP LOCKED", skip_locked_run, 1},
};

/* A goal for the ratio of the same value of two contenders. */
static const struct compared_goal {
    enum goal_id goal;
    size_t of;
    size_t to;
    const char *value; /* key in the result; "cpu_us_per_job.all" is a member of a member */
} compared_goals[] = {
    {GOAL_DRAIN_LIMIT, DRAIN, LIMIT, RATE},   {GOAL_DRAIN_SKIP_LOCKED, DRAIN, SKIP_LOCKED, RATE},
    {GOAL_MASTERS_3, MASTERS_3, DRAIN, RATE}, {GOAL_MASTERS_1, MASTERS_1, DRAIN, RATE},
    {GOAL_CPU_LIMIT, DRAIN, LIMIT, CPU},
};

/* Returns the value at "member" or "member.member" of a result; NAN if there is none. */
static double value_at(const json_t *result, const char *path)
{
    const char *dot = strchr(path, '.');
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)(dot != NULL ? (size_t)(dot - path) : 63), path);
    const json_t *at = json_object_get(result, name);
    if (dot != NULL) {
        at = json_object_get(at, dot + 1);
    }
    return json_is_number(at) ? json_number_value(at) : (double)NAN;
}

struct turns {
    size_t rounds;
    json_t *results[CONTENDERS]; /* a list with the result of each round */
};

static double median_of(const struct turns *turns, size_t of, const char *value)
{
    double values[ROUNDS_MAX];
    for (size_t i = 0; i < turns->rounds; i++) {
        values[i] = value_at(json_array_get(turns->results[of], i), value);
    }
    return figures_median(values, turns->rounds);
}

static double median_ratio(const struct turns *turns, const struct compared_goal *g)
{
    double ratios[ROUNDS_MAX];
    for (size_t i = 0; i < turns->rounds; i++) {
        ratios[i] = value_at(json_array_get(turns->results[g->of], i), g->value) /
                    value_at(json_array_get(turns->results[g->to], i), g->value);
    }
    return figures_median(ratios, turns->rounds);
}

static enum status take_turn(const struct contender *who, const struct bench_options *options,
                             json_t *result, struct err *err)
{
    static struct cluster cluster;
    struct bench_options own = *options;
    own.cluster.masters = who->masters;
    enum status st = cluster_open(&cluster, &own.cluster, err);
    if (st == STATUS_OK) {
        st = who->run(&cluster, &own, result, err);
    }
    cluster_close(&cluster);
    if (st != STATUS_OK) {
        err_prefix(err, "%s", who->name);
    }
    return st;
}

static void tell(const struct contender *who, int64_t round, const json_t *result)
{
    static const char *const values[] = {RATE, CPU};
    (void)fprintf(stderr, "bench: round %lld, %s:", (long long)round, who->name);
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        double value = value_at(result, values[i]);
        if (!isnan(value)) {
            (void)fprintf(stderr, " %s %.5g", values[i], value);
        }
    }
    (void)fputc('\n', stderr);
}

static void add_contender(json_t *list, const struct contender *who, const struct turns *turns,
                          size_t at)
{
    static const char *const values[] = {RATE, CPU};
    json_t *one = json_pack("{s:s}", "name", who->name);
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        double median = median_of(turns, at, values[i]);
        if (!isnan(median)) {
            (void)json_object_set_new(one, values[i], json_real(median));
        }
    }
    (void)json_object_set(one, "rounds", turns->results[at]);
    (void)json_array_append_new(list, one);
}

static void add_all(const struct turns *turns, json_t *result)
{
    json_t *list = json_array();
    for (size_t i = 0; i < CONTENDERS; i++) {
        add_contender(list, &contenders[i], turns, i);
    }
    (void)json_object_set_new(result, "contenders", list);
    for (size_t i = 0; i < ARRAY_COUNT(compared_goals); i++) {
        const struct compared_goal *g = &compared_goals[i];
        goal_add_ratio(result, g->goal, median_of(turns, g->of, g->value), median_ratio(turns, g));
    }
}

enum status compare_drains(const struct bench_options *options, json_t *result, struct err *err)
{
    struct turns turns = {.rounds = (size_t)options->rounds};
    enum status st = STATUS_OK;
    (void)json_object_set_new(result, "rounds", json_integer(options->rounds));
    for (size_t i = 0; i < CONTENDERS; i++) {
        turns.results[i] = json_array();
    }
    for (size_t n = 0; n < turns.rounds * CONTENDERS && st == STATUS_OK; n++) {
        size_t at = n % CONTENDERS;
        json_t *one = json_object();
        st = take_turn(&contenders[at], options, one, err);
        tell(&contenders[at], (int64_t)(n / CONTENDERS) + 1, one);
        (void)json_array_append_new(turns.results[at], one);
    }
    if (st == STATUS_OK) {
        add_all(&turns, result);
    }
    for (size_t i = 0; i < CONTENDERS; i++) {
        json_decref(turns.results[i]);
    }
    return st;
}
