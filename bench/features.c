/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload features: measures what a feature costs when every job uses it: the same drain without
 * and with it, in turns. Inserting is not included. The results are medians of ratios within a
 * round, as in scraped.c. */
#include "base/clock.h"
#include "bench/drain.h"
#include "bench/figures.h"
#include "bench/workloads.h"
#include "cluster/scrape.h"

#include <stdio.h>

#define ROUNDS_MAX 20
#define SCRAPE_TIMEOUT_US US_PER_S
#define TEXT_MAX ((size_t)8 << 20)

static const unsigned count_type[] = {PG_INT8};

#define STATEMENT(text)           \
    {                             \
        .name = "", .sql = (text) \
    }
#define INSERT(text)                                                    \
    {                                                                   \
        .name = "", .sql = (text), .types = count_type, .type_count = 1 \
    }

/* The first entry is the drain without any feature. */
static const struct feature {
    const char *name;
    struct pg_statement before; /* no text: nothing to do */
    struct pg_statement insert;
    struct pg_statement after; /* runs after the drain */
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
    {.name = "two keys",
     .insert = INSERT("SELECT count(claimd.enqueue('noop', exclusive_key => 'e' || n,"
                      " second_key => 'f' || n)) FROM generate_series(1, $1) AS n")},
    {.name = "key with places",
     .before =
         STATEMENT("SELECT claimd.limit_key('k' || n, 8)::text FROM generate_series(0, 99) AS n"),
     .insert = INSERT("SELECT count(claimd.enqueue('noop', exclusive_key => 'k' || n % 100))"
                      " FROM generate_series(1, $1) AS n")},
    {.name = "key with places, never full",
     .before =
         STATEMENT("SELECT claimd.limit_key('l' || n, 8)::text FROM generate_series(0, 9999) AS n"),
     .insert = INSERT("SELECT count(claimd.enqueue('noop', exclusive_key => 'l' || n % 10000))"
                      " FROM generate_series(1, $1) AS n")},
    {.name = "limit of the queue, never reached",
     .before = STATEMENT("SELECT claimd.limit_queue('default', 10000)::text"),
     .insert = INSERT("INSERT INTO claimd.job (kind) SELECT 'noop' FROM generate_series(1, $1)"),
     .after = STATEMENT("SELECT claimd.limit_queue('default', NULL)::text")},
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

/* The cost of a feature in one round. */
struct cost {
    struct cluster *cluster;
    struct drain_speed speed;
    double refused;  /* claims that were refused */
    double put_back; /* hints that were put back */
};

static double sum_of(const char *text, const char *series)
{
    double sum = 0;
    for (const char *at = strstr(text, series); at != NULL; at = strstr(at, series)) {
        at = strchr(at + 1, ' ');
        sum += strtod(at, NULL);
    }
    return sum;
}

static void add_waste(struct cost *cost, size_t worker)
{
    autobuf struct buf text = BUF_INIT(TEXT_MAX);
    const char *address = cost->cluster->http[1 + worker];
    if (scrape_get(address, "/metrics", SCRAPE_TIMEOUT_US, &text, NULL) == STATUS_OK &&
        buf_append(&text, "", 1, NULL) == STATUS_OK) {
        cost->refused += sum_of(buf_at(&text), "\nclaimd_claims_refused_total{");
        cost->put_back += sum_of(buf_at(&text), "\nclaimd_hints_put_back_total ");
    }
}

static void on_running(void *ctx, bool is_running)
{
    struct cost *cost = ctx;
    /* Waits until all daemons have published their metrics. */
    if (is_running || cluster_wait(cost->cluster, US_PER_S + US_PER_S / 2, NULL) != STATUS_OK) {
        return;
    }
    for (size_t i = 0; i < cost->cluster->options.workers; i++) {
        add_waste(cost, i);
    }
}

static enum status run_if_any(struct cluster *c, const struct pg_statement *statement,
                              struct err *err)
{
    return statement->sql != NULL ? db_query(&c->db, statement, NULL, 0, err) : STATUS_OK;
}

static enum status measure(struct cluster *c, const struct feature *f, int64_t jobs,
                           struct cost *ret, struct err *err)
{
    *ret = (struct cost){.cluster = c};
    struct drain_plan plan = {
        .jobs = jobs, .insert = &f->insert, .on_running = on_running, .ctx = ret};
    enum status st = run_if_any(c, &f->before, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = drain_timed(c, &plan, &ret->speed, err);
    if (st != STATUS_OK) {
        return st;
    }
    return run_if_any(c, &f->after, err);
}

static bool is_wanted(size_t at, const char *only)
{
    return at == 0 || only == NULL || strstr(features[at].name, only) != NULL;
}

static void add_result(json_t *result, const struct feature *f, struct cost costs[][FEATURES],
                       size_t rounds)
{
    size_t at = (size_t)(f - features);
    double rates[ROUNDS_MAX];
    double rate_ratios[ROUNDS_MAX];
    double cpu_ratios[ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++) {
        rates[i] = costs[i][at].speed.jobs_per_s;
        rate_ratios[i] = costs[i][at].speed.jobs_per_s / costs[i][0].speed.jobs_per_s;
        cpu_ratios[i] = costs[i][at].speed.cpu_us_per_job / costs[i][0].speed.cpu_us_per_job;
    }
    (void)json_object_set_new(result, f->name,
                              json_pack("{s:f, s:f, s:f}", "jobs_per_s",
                                        figures_median(rates, rounds), "throughput_ratio",
                                        figures_median(rate_ratios, rounds), "cpu_per_job_ratio",
                                        figures_median(cpu_ratios, rounds)));
}

static void tell(const struct feature *f, size_t round, const struct cost *cost, double jobs)
{
    (void)fprintf(stderr,
                  "bench: round %zu, %s: %.0f jobs/s, per job %.1f us, %.1f of them PostgreSQL's,"
                  " %.2f refused claims, %.2f hints put back\n",
                  round, f->name, cost->speed.jobs_per_s, cost->speed.cpu_us_per_job,
                  cost->speed.postgres_us_per_job, cost->refused / jobs, cost->put_back / jobs);
}

enum status features_run(struct cluster *c, const struct bench_options *options, json_t *result,
                         struct err *err)
{
    static struct cost costs[ROUNDS_MAX][FEATURES];
    size_t rounds = (size_t)options->rounds;
    for (size_t n = 0; n < rounds * FEATURES; n++) {
        const struct feature *f = &features[n % FEATURES];
        struct cost *cost = &costs[n / FEATURES][n % FEATURES];
        if (!is_wanted(n % FEATURES, options->only)) {
            continue;
        }
        enum status st = measure(c, f, options->jobs, cost, err);
        if (st != STATUS_OK) {
            err_prefix(err, "%s", f->name);
            return st;
        }
        tell(f, n / FEATURES + 1, cost, (double)options->jobs);
    }
    json_t *all = json_object();
    for (size_t i = 0; i < FEATURES; i++) {
        if (!is_wanted(i, options->only)) {
            continue;
        }
        add_result(all, &features[i], costs, rounds);
    }
    (void)json_object_set_new(result, "jobs", json_integer(options->jobs));
    (void)json_object_set_new(result, "rounds", json_integer(options->rounds));
    (void)json_object_set_new(result, "features", all);
    return STATUS_OK;
}
