/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload handlers: the same drain with handlers that take time, by sleeping or by using a CPU:
 * how much of what the slots could do is done. */
#include "bench/drain.h"
#include "bench/figures.h"
#include "bench/workloads.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS_MAX 20
#define SQL_MAX (SERVER_PATH_MAX + 512)
#define FILE_BYTES (1 << 20)
#define CPU_JOBS_PER_S 500 /* of a CPU: MD5 of that file takes 1 to 2 ms */
#define JOBS_MIN 100

static const unsigned number_type[] = {PG_INT8};

static const struct load {
    const char *name;
    int ms; /* that it sleeps; −1: it uses a CPU */
} loads[] = {{"sleep", 0}, {"sleep", 1}, {"sleep", 10}, {"sleep", 100}, {"checksum", -1}};
#define LOADS (sizeof loads / sizeof loads[0])

static int64_t cpus(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN);
}

static int64_t slots(const struct cluster *c)
{
    int64_t each = c->options.slots > 0 ? c->options.slots : cpus();
    return (int64_t)c->options.workers * each;
}

/* As many as take about so long, if handlers were all that there is. */
static int64_t jobs_of(const struct cluster *c, const struct load *load,
                       const struct bench_options *options)
{
    int64_t most = options->jobs;
    if (load->ms == 0) {
        return most;
    }
    int64_t n = load->ms > 0 ? slots(c) * options->seconds * 1000 / load->ms
                             : cpus() * options->seconds * CPU_JOBS_PER_S;
    n = n < JOBS_MIN ? JOBS_MIN : n;
    return n < most ? n : most;
}

static void insert_text(const struct cluster *c, const struct load *load, char *ret_sql)
{
    char args[SERVER_PATH_MAX + 128];
    if (load->ms >= 0) {
        (void)snprintf(args, sizeof args, "{\"ms\": %d}", load->ms);
    } else {
        (void)snprintf(args, sizeof args, "{\"path\": \"%s/file\", \"md5\": \"%032d\"}", c->dir, 0);
    }
    (void)snprintf(ret_sql, SQL_MAX,
                   "INSERT INTO claimd.job (kind, args) SELECT '%s', '%s'"
                   " FROM generate_series(1, $1)",
                   load->name, args);
}

static enum status write_file(const struct cluster *c, struct err *err)
{
    char path[SERVER_PATH_MAX + 16];
    (void)snprintf(path, sizeof path, "%s/file", c->dir);
    FILE *f = fopen(path, "we");
    if (f == NULL) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "open %s", path);
    }
    int failed = ftruncate(fileno(f), FILE_BYTES) != 0;
    failed |= fchmod(fileno(f), 0644) != 0;
    failed |= fclose(f) != 0;
    return failed == 0 ? STATUS_OK : err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
}

static enum status measure(struct cluster *c, const struct load *load,
                           const struct bench_options *options, struct drain_speed *ret,
                           struct err *err)
{
    char sql[SQL_MAX];
    insert_text(c, load, sql);
    const struct pg_statement insert = {
        .name = "", .sql = sql, .types = number_type, .type_count = 1};
    const struct drain_plan plan = {
        .jobs = jobs_of(c, load, options), .insert = &insert, .waits_for_workers = true};
    return drain_timed(c, &plan, ret, err);
}

/* The part of the slots' time, or of the CPUs' if handlers need these, that handlers used. */
static double utilisation(const struct cluster *c, const struct load *load,
                          const struct drain_speed *speed)
{
    return load->ms >= 0 ? speed->jobs_per_s * load->ms / 1e3 / (double)slots(c)
                         : speed->jobs_per_s * speed->runner_us_per_job / 1e6 / (double)cpus();
}

static json_t *load_json(const struct cluster *c, size_t at, const struct bench_options *options,
                         struct drain_speed speeds[][LOADS])
{
    const struct load *load = &loads[at];
    double rates[ROUNDS_MAX];
    double used[ROUNDS_MAX];
    double all_us[ROUNDS_MAX];
    double runner_us[ROUNDS_MAX];
    size_t rounds = (size_t)options->rounds;
    for (size_t i = 0; i < rounds; i++) {
        const struct drain_speed *speed = &speeds[i][at];
        rates[i] = speed->jobs_per_s;
        used[i] = utilisation(c, load, speed);
        all_us[i] = speed->cpu_us_per_job;
        runner_us[i] = speed->runner_us_per_job;
    }
    json_t *one =
        json_pack("{s:s, s:I, s:f, s:f, s:f}", "handler", load->name, "jobs",
                  (json_int_t)jobs_of(c, load, options), "jobs_per_s",
                  figures_median(rates, rounds), "cpu_us_per_job", figures_median(all_us, rounds),
                  "runner_us_per_job", figures_median(runner_us, rounds));
    if (load->ms >= 0) {
        (void)json_object_set_new(one, "ms", json_integer(load->ms));
    }
    if (load->ms != 0) {
        (void)json_object_set_new(one, "utilisation", json_real(figures_median(used, rounds)));
    }
    return one;
}

enum status handlers_run(struct cluster *c, const struct bench_options *options, json_t *result,
                         struct err *err)
{
    static struct drain_speed speeds[ROUNDS_MAX][LOADS];
    size_t rounds = (size_t)options->rounds;
    enum status st = write_file(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t n = 0; n < rounds * LOADS; n++) {
        const struct load *load = &loads[n % LOADS];
        struct drain_speed *speed = &speeds[n / LOADS][n % LOADS];
        st = measure(c, load, options, speed, err);
        if (st != STATUS_OK) {
            err_prefix(err, "%s %d", load->name, load->ms);
            return st;
        }
        (void)fprintf(stderr, "bench: round %zu, %s %d: %.0f jobs/s, %.1f %% used\n", n / LOADS + 1,
                      load->name, load->ms, speed->jobs_per_s, 100 * utilisation(c, load, speed));
    }
    json_t *all = json_array();
    for (size_t i = 0; i < LOADS; i++) {
        (void)json_array_append_new(all, load_json(c, i, options, speeds));
    }
    (void)json_object_set_new(result, "slots", json_integer(slots(c)));
    (void)json_object_set_new(result, "cpus", json_integer(cpus()));
    (void)json_object_set_new(result, "rounds", json_integer(options->rounds));
    (void)json_object_set_new(result, "handlers", all);
    return STATUS_OK;
}
