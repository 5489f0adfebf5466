/* SPDX-License-Identifier: Apache-2.0
 *
 * What a feature costs when every job uses it: the same drain without and with, in turns. Inserting
 * is not part of it. Medians of ratios within a round count, as in scraped.c. */
#include "bench/drain.h"
#include "bench/workloads.h"

#include <stdio.h>

#define ROUNDS_MAX 20

static const unsigned count_type[] = {PG_INT8};

#define STATEMENT(text)           \
    {                             \
        .name = "", .sql = (text) \
    }
#define INSERT(text)                                                    \
    {                                                                   \
        .name = "", .sql = (text), .types = count_type, .type_count = 1 \
    }

/* The first is the one without. */
static const struct feature {
    const char *name;
    struct pg_statement before; /* no text: nothing to do */
    struct pg_statement insert;
    struct pg_statement after; /* of the drain */
} features[] = {
    {.name = "none",
     .insert = INSERT("INSERT INTO claimd.job (kind) SELECT 'noop' FROM generate_series(1, $1)")},
    {.name = "tags and metadata",
     .insert = INSERT("INSERT INTO claimd.job (kind, tags, metadata) SELECT 'noop', '{a,b}',"
                      " jsonb_build_object('customer', n) FROM generate_series(1, $1) AS n")},
    {.name = "unique key",
     .insert = INSERT("SELECT count(claimd.enqueue('noop', unique_key => 'u' || n))"
                      " FROM generate_series(1, $1) AS n")},
    {.name = "batch",
     .before = STATEMENT("SELECT claimd.batch_open()"),
     .insert = INSERT("SELECT count(claimd.batch_add((SELECT max(id) FROM claimd.batch),"
                      " claimd.enqueue('noop'))) FROM generate_series(1, $1)"),
     .after = STATEMENT("SELECT claimd.batch_close(max(id))::text FROM claimd.batch")},
    {.name = "exclusive key",
     .insert = INSERT("SELECT count(claimd.enqueue('noop', exclusive_key => 'e' || n))"
                      " FROM generate_series(1, $1) AS n")},
    {.name = "key with places",
     .before =
         STATEMENT("SELECT claimd.limit_key('k' || n, 8)::text FROM generate_series(0, 99) AS n"),
     .insert = INSERT("SELECT count(claimd.enqueue('noop', exclusive_key => 'k' || n % 100))"
                      " FROM generate_series(1, $1) AS n")},
    {.name = "limit of the queue",
     .before = STATEMENT("SELECT claimd.limit_queue('default', 1000)::text"),
     .insert = INSERT("INSERT INTO claimd.job (kind) SELECT 'noop' FROM generate_series(1, $1)"),
     .after = STATEMENT("SELECT claimd.limit_queue('default', NULL)::text")},
    {.name = "rate of the queue",
     .before = STATEMENT("SELECT claimd.limit_rate('default', 100000)::text"),
     .insert = INSERT("INSERT INTO claimd.job (kind) SELECT 'noop' FROM generate_series(1, $1)"),
     .after = STATEMENT("SELECT claimd.limit_rate('default', NULL)::text")},
};
#define FEATURES (sizeof features / sizeof features[0])

static enum status run_if_any(struct cluster *c, const struct pg_statement *statement,
                              struct err *err)
{
    return statement->sql != NULL ? db_query(&c->db, statement, NULL, 0, err) : STATUS_OK;
}

static enum status measure(struct cluster *c, const struct feature *f, int64_t jobs,
                           struct drain_speed *ret, struct err *err)
{
    struct drain_plan plan = {.jobs = jobs, .insert = &f->insert};
    enum status st = run_if_any(c, &f->before, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = drain_timed(c, &plan, ret, err);
    if (st != STATUS_OK) {
        return st;
    }
    return run_if_any(c, &f->after, err);
}

static void add_result(json_t *result, const struct feature *f,
                       struct drain_speed speeds[][FEATURES], size_t rounds)
{
    size_t at = (size_t)(f - features);
    double rates[ROUNDS_MAX];
    double rate_ratios[ROUNDS_MAX];
    double cpu_ratios[ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++) {
        rates[i] = speeds[i][at].jobs_per_s;
        rate_ratios[i] = speeds[i][at].jobs_per_s / speeds[i][0].jobs_per_s;
        cpu_ratios[i] = speeds[i][at].cpu_us_per_job / speeds[i][0].cpu_us_per_job;
    }
    (void)json_object_set_new(result, f->name,
                              json_pack("{s:f, s:f, s:f}", "jobs_per_s",
                                        drain_median(rates, rounds), "throughput_ratio",
                                        drain_median(rate_ratios, rounds), "cpu_per_job_ratio",
                                        drain_median(cpu_ratios, rounds)));
}

enum status features_run(struct cluster *c, const struct bench_options *options, json_t *result,
                         struct err *err)
{
    static struct drain_speed speeds[ROUNDS_MAX][FEATURES];
    size_t rounds = (size_t)options->rounds;
    for (size_t n = 0; n < rounds * FEATURES; n++) {
        const struct feature *f = &features[n % FEATURES];
        struct drain_speed *speed = &speeds[n / FEATURES][n % FEATURES];
        enum status st = measure(c, f, options->jobs, speed, err);
        if (st != STATUS_OK) {
            err_prefix(err, "%s", f->name);
            return st;
        }
        (void)fprintf(stderr, "bench: round %zu, %s: %.0f jobs/s, %.1f us per job\n",
                      n / FEATURES + 1, f->name, speed->jobs_per_s, speed->cpu_us_per_job);
    }
    json_t *all = json_object();
    for (size_t i = 0; i < FEATURES; i++) {
        add_result(all, &features[i], speeds, rounds);
    }
    (void)json_object_set_new(result, "jobs", json_integer(options->jobs));
    (void)json_object_set_new(result, "rounds", json_integer(options->rounds));
    (void)json_object_set_new(result, "features", all);
    return STATUS_OK;
}
