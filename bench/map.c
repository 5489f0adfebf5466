/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload map: measures what `claimctl map` costs to load, without daemons. Then it drains jobs of
 * a map with few places, compared with other ways to limit how many jobs run at a time, and jobs of
 * a map without a limit, compared with jobs of no map; in turns. */
#include "base/clock.h"
#include "bench/drain.h"
#include "bench/figures.h"
#include "bench/process.h"
#include "bench/workloads.h"
#include "cluster/child.h"

#include <inttypes.h>
#include <stdio.h>

#define ROUNDS_MAX 20
#define DRAIN_MAX 6000 /* with one key of which all are due, the time grows quadratically */
#define LOOK_US (20 * US_PER_MS)
#define REAP_US (200 * US_PER_MS)

static const unsigned count_type[] = {PG_INT8};

#define STATEMENT(text)           \
    {                             \
        .name = "", .sql = (text) \
    }
#define INSERT(text)                                                    \
    {                                                                   \
        .name = "", .sql = (text), .types = count_type, .type_count = 1 \
    }

#define BEGIN_MAP(places)                                                                     \
    STATEMENT("SELECT claimd.map_begin('m', 'SELECT', 'id', 'noop', NULL, 'default', " places \
              ", NULL, NULL)")
/* Loads $1 rows in chunks of 5,000, as claimctl does. */
#define LOAD_MAP                                                                                   \
    INSERT("SELECT sum(l.made)::bigint FROM generate_series(0, $1 - 1, 5000) AS c,"                \
           " claimd.map_load((SELECT id FROM claimd.map), NULLIF(c, 0)::text,"                     \
           " ARRAY(SELECT n::text FROM generate_series(c + 1, LEAST(c + 5000, $1)) AS n),"         \
           " ARRAY(SELECT '{}' FROM generate_series(c + 1, LEAST(c + 5000, $1))), c + 5000 >= $1)" \
           " AS l")
#define DROP_MAP                                                                              \
    STATEMENT("WITH a AS (DELETE FROM claimd.map_ended), b AS (DELETE FROM claimd.map_done)," \
              " c AS (DELETE FROM claimd.key_limit WHERE key = 'map:m') DELETE FROM claimd.map")
#define INSERT_JOBS \
    INSERT("INSERT INTO claimd.job (kind) SELECT 'noop' FROM generate_series(1, $1)")

/* Each is compared with the one named by `than`. */
enum { FEW_OF_QUEUE, FEW_OF_KEY, FEW_OF_MAP, PLAIN, MAP, WAYS };
static const struct way {
    const char *name;
    struct pg_statement before; /* no text: nothing to do */
    struct pg_statement insert;
    struct pg_statement after;
    size_t than;
} ways[WAYS] = {
    [FEW_OF_QUEUE] = {.name = "4 places, a queue of its own",
                      .before = STATEMENT("SELECT claimd.limit_queue('default', 4)::text"),
                      .insert = INSERT_JOBS,
                      .after = STATEMENT("SELECT claimd.limit_queue('default', NULL)::text"),
                      .than = FEW_OF_QUEUE},
    [FEW_OF_KEY] = {.name = "4 places, one key, all jobs due",
                    .before = STATEMENT("SELECT claimd.limit_key('k', 4)::text"),
                    .insert = INSERT("SELECT count(claimd.enqueue('noop', exclusive_key => 'k'))"
                                     " FROM generate_series(1, $1)"),
                    .after = STATEMENT("SELECT claimd.limit_key('k', NULL)::text"),
                    .than = FEW_OF_QUEUE},
    [FEW_OF_MAP] = {.name = "4 places, a map",
                    .before = BEGIN_MAP("4"),
                    .insert = LOAD_MAP,
                    .after = DROP_MAP,
                    .than = FEW_OF_QUEUE},
    [PLAIN] = {.name = "no limit, no map", .insert = INSERT_JOBS, .than = PLAIN},
    [MAP] = {.name = "no limit, a map",
             .before = BEGIN_MAP("NULL"),
             .insert = LOAD_MAP,
             .after = DROP_MAP,
             .than = PLAIN},
};

static const struct pg_statement make_rows = {
    .name = "", .sql = "CREATE TABLE public.map_rows (id bigint PRIMARY KEY, path text)"};
static const struct pg_statement fill_rows = {
    .name = "",
    .sql = "INSERT INTO public.map_rows SELECT n, '/srv/' || n || '.jpg' FROM"
           " generate_series(1, $1) AS n",
    .types = count_type,
    .type_count = 1};
static const struct pg_statement analyze_rows = {.name = "", .sql = "ANALYZE public.map_rows"};
static const struct pg_statement empty = {
    .name = "", .sql = "TRUNCATE claimd.job, claimd.job_key, claimd.map CASCADE"};
static const struct pg_statement checkpoint = {.name = "", .sql = "CHECKPOINT"};
static const struct pg_statement loaded = {
    .name = "loaded", .sql = "SELECT count(*) FROM claimd.job WHERE share_key = 'map:bench'"};

/* ---- loading ---- */

struct load {
    double s;
    double postgres_us_per_row;
    double peak_mb; /* of claimctl */
};

static enum status make_table(struct cluster *c, int64_t rows, struct err *err)
{
    char storage[8];
    struct pg_param count = pg_param_i64(rows, storage);
    enum status st = db_query(&c->db, &make_rows, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = db_query(&c->db, &fill_rows, &count, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    return db_query(&c->db, &analyze_rows, NULL, 0, err);
}

static enum status start_claimctl(const struct cluster *c, pid_t *ret_pid, struct err *err)
{
    char claimctl[SERVER_PATH_MAX + 16];
    char log[SERVER_PATH_MAX + 16];
    char conninfo[SERVER_PATH_MAX + 32];
    (void)snprintf(claimctl, sizeof claimctl, "%s/claimctl", c->bin_dir);
    (void)snprintf(log, sizeof log, "%s/claimctl.log", c->dir);
    (void)snprintf(conninfo, sizeof conninfo, "CLAIMD_POSTGRES_CONNINFO=%s", c->conninfo);
    const char *const argv[] = {claimctl, "map",  "--sql", "TABLE map_rows", "--batch", "bench",
                                "--kind", "noop", NULL};
    const char *const env[] = {conninfo, NULL};
    return program_start(argv, env, log, ret_pid, err);
}

static enum status wait_for_claimctl(struct cluster *c, pid_t pid, struct load *ret,
                                     struct err *err)
{
    int wait_status = 0;
    while (!child_is_gone(pid, &wait_status)) {
        double mb = (double)process_peak_rss_kib(pid) / 1024;
        ret->peak_mb = mb > ret->peak_mb ? mb : ret->peak_mb;
        enum status st = cluster_wait(c, LOOK_US, err);
        if (st != STATUS_OK) {
            program_kill(pid);
            return st;
        }
    }
    if (wait_status == 0) {
        return STATUS_OK;
    }
    char log[SERVER_PATH_MAX + 16];
    char tail[400];
    (void)snprintf(log, sizeof log, "%s/claimctl.log", c->dir);
    child_log_tail(log, tail, sizeof tail);
    return err_fail(err, STATUS_INTERNAL, "claimctl map ended with status %d: %s", wait_status,
                    tail);
}

static enum status load(struct cluster *c, int64_t rows, struct load *ret, struct err *err)
{
    pid_t pid = 0;
    *ret = (struct load){0};
    enum status st = db_query(&c->db, &empty, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = db_query(&c->db, &checkpoint, NULL, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t cpu_us = cluster_cpu(c).postgres_us;
    int64_t begun_us = clock_boot_us();
    st = start_claimctl(c, &pid, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = wait_for_claimctl(c, pid, ret, err);
    if (st != STATUS_OK) {
        return st;
    }
    ret->s = (double)(clock_boot_us() - begun_us) / (double)US_PER_S;
    /* The CPU time of claimctl's session is counted when its process has ended. */
    st = cluster_wait(c, REAP_US, err);
    if (st != STATUS_OK) {
        return st;
    }
    ret->postgres_us_per_row = (double)(cluster_cpu(c).postgres_us - cpu_us) / (double)rows;
    st = db_query(&c->db, &loaded, NULL, 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    return c->db.row[0] == rows
               ? STATUS_OK
               : err_fail(err, STATUS_CONFLICT, "%" PRId64 " of %" PRId64 " rows are loaded",
                          c->db.row[0], rows);
}

static enum status load_rounds(struct cluster *c, int64_t rows, size_t rounds, json_t *result,
                               struct err *err)
{
    double seconds[ROUNDS_MAX];
    double cpus[ROUNDS_MAX];
    double peaks[ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++) {
        struct load l;
        enum status st = load(c, rows, &l, err);
        if (st != STATUS_OK) {
            return st;
        }
        (void)fprintf(stderr,
                      "bench: round %zu, load: %.0f rows/s, %.1f us of PostgreSQL each, %.1f MB\n",
                      i + 1, (double)rows / l.s, l.postgres_us_per_row, l.peak_mb);
        seconds[i] = l.s;
        cpus[i] = l.postgres_us_per_row;
        peaks[i] = l.peak_mb;
    }
    (void)json_object_set_new(result, "load",
                              json_pack("{s:f, s:f, s:f}", "seconds",
                                        figures_median(seconds, rounds), "postgres_us_per_row",
                                        figures_median(cpus, rounds), "claimctl_mb",
                                        figures_median(peaks, rounds)));
    return db_query(&c->db, &empty, NULL, 0, err);
}

/* ---- drains ---- */

static enum status run_if_any(struct cluster *c, const struct pg_statement *statement,
                              struct err *err)
{
    return statement->sql != NULL ? db_query(&c->db, statement, NULL, 0, err) : STATUS_OK;
}

static enum status drain(struct cluster *c, const struct way *way, int64_t jobs,
                         struct drain_speed *ret, struct err *err)
{
    const struct drain_plan plan = {.jobs = jobs, .insert = &way->insert};
    enum status st = run_if_any(c, &way->before, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = drain_timed(c, &plan, ret, err);
    if (st != STATUS_OK) {
        err_prefix(err, "%s", way->name);
        return st;
    }
    return run_if_any(c, &way->after, err);
}

static void report(json_t *result, struct drain_speed speeds[][WAYS], size_t rounds)
{
    json_t *all = json_object();
    for (size_t way = 0; way < WAYS; way++) {
        double rates[ROUNDS_MAX];
        double cpus[ROUNDS_MAX];
        double rate_ratios[ROUNDS_MAX];
        double cpu_ratios[ROUNDS_MAX];
        for (size_t i = 0; i < rounds; i++) {
            const struct drain_speed *own = &speeds[i][way];
            const struct drain_speed *than = &speeds[i][ways[way].than];
            rates[i] = own->jobs_per_s;
            cpus[i] = own->cpu_us_per_job;
            rate_ratios[i] = own->jobs_per_s / than->jobs_per_s;
            cpu_ratios[i] = own->cpu_us_per_job / than->cpu_us_per_job;
        }
        (void)json_object_set_new(all, ways[way].name,
                                  json_pack("{s:f, s:f, s:f, s:f}", "jobs_per_s",
                                            figures_median(rates, rounds), "cpu_us_per_job",
                                            figures_median(cpus, rounds), "throughput_ratio",
                                            figures_median(rate_ratios, rounds), "cpu_ratio",
                                            figures_median(cpu_ratios, rounds)));
    }
    (void)json_object_set_new(result, "drains", all);
}

enum status map_run(struct cluster *c, const struct bench_options *options, json_t *result,
                    struct err *err)
{
    static struct drain_speed speeds[ROUNDS_MAX][WAYS];
    size_t rounds = (size_t)options->rounds;
    int64_t jobs = options->jobs < DRAIN_MAX ? options->jobs : DRAIN_MAX;
    (void)json_object_set_new(result, "rows", json_integer(options->jobs));
    (void)json_object_set_new(result, "rounds", json_integer(options->rounds));
    enum status st = make_table(c, options->jobs, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = load_rounds(c, options->jobs, rounds, result, err);
    for (size_t n = 0; n < rounds * WAYS && st == STATUS_OK; n++) {
        struct drain_speed *speed = &speeds[n / WAYS][n % WAYS];
        st = drain(c, &ways[n % WAYS], jobs, speed, err);
        (void)fprintf(stderr, "bench: round %zu, %s: %.0f jobs/s, per job %.1f us\n", n / WAYS + 1,
                      ways[n % WAYS].name, speed->jobs_per_s, speed->cpu_us_per_job);
    }
    if (st == STATUS_OK) {
        report(result, speeds, rounds);
    }
    return st;
}
