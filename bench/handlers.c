/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload handlers. Each round drains the same jobs with a plugin, with a Python program that
 * serves, and with a command that runs once for each job, and measures how much later a Python
 * handler starts. Python handlers are then compared with Celery and RQ. */
#include "bench/handlers.h"

#include "base/clock.h"
#include "bench/drain.h"
#include "bench/figures.h"
#include "bench/goals.h"
#include "bench/latency.h"
#include "bench/peers.h"

#include <inttypes.h>
#include <stdio.h>

#define ROUNDS_MAX 20
#define SLEEP_MS 10
#define WARM_MS 100
#define WARM_JOBS 4   /* for each slot, so that every slot starts its program */
#define ONCE_SHARE 10 /* divides the number of jobs, since each starts a process */

enum drained { PLUGIN, PYTHON, PLUGIN_SLEEPS, PYTHON_SLEEPS, ONCE, DRAINS };

static const struct {
    const char *name;
    const char *kind;
    int64_t sleep_ms;
} drains[DRAINS] = {
    [PLUGIN] = {"plugin, no-op", "work", 0},
    [PYTHON] = {"Python, no-op", "py_work", 0},
    [PLUGIN_SLEEPS] = {"plugin, 10 ms", "work", SLEEP_MS},
    [PYTHON_SLEEPS] = {"Python, 10 ms", "py_work", SLEEP_MS},
    [ONCE] = {"once, " HANDLERS_ONCE, "once_true", 0},
};

/* The results of a round. */
struct round {
    struct drain_speed speed[DRAINS];
    double start_p50_ms[2]; /* plugin, Python */
    double floor_python_us;
    double floor_once_per_s;
    double floor_once_us;
};

static const unsigned number_type[] = {PG_INT8};

/* ---- the handlers ---- */

static enum status write_handlers(const struct cluster *c, const char *name, const json_t *file,
                                  struct err *err)
{
    char path[SERVER_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s.json", c->handlers, name);
    return json_dump_file(file, path, 0) == 0
               ? STATUS_OK
               : err_fail(err, STATUS_UNAVAILABLE, "can't write %s", path);
}

static enum status make_handlers(struct cluster *c, struct err *err)
{
    json_auto_t *python =
        json_pack("{s:[s, s], s:{s:{}, s:{}}, s:{s:s}}", "command", HANDLERS_PYTHON,
                  BENCH_SOURCE_DIR "/handlers/work.py", "kinds", "py_work", "py_stamp", "env",
                  "PYTHONPATH", BENCH_SOURCE_DIR "/../sdk/python");
    json_auto_t *once = json_pack("{s:[s], s:s, s:{s:{}}}", "command", HANDLERS_ONCE, "mode",
                                  "once", "kinds", "once_true");
    (void)snprintf(c->handlers, sizeof c->handlers, "%s/handlers", c->dir);
    if (access(HANDLERS_PYTHON, X_OK) != 0) {
        return err_fail(err, STATUS_UNAVAILABLE, "there is no %s", HANDLERS_PYTHON);
    }
    enum status st = dir_ensure(c->handlers, 0755, err);
    if (st == STATUS_OK) {
        st = write_handlers(c, "python", python, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return write_handlers(c, "once", once, err);
}

/* ---- a round ---- */

static int64_t jobs_of(const struct bench_options *options, enum drained which)
{
    int64_t share = which == ONCE ? ONCE_SHARE : 1;
    int64_t jobs = options->jobs / share;
    int64_t rate = PEERS_SLOTS * 1000 / SLEEP_MS;
    if (drains[which].sleep_ms > 0 && jobs > rate * options->seconds) {
        jobs = rate * options->seconds;
    }
    return jobs > 0 ? jobs : 1;
}

static int slots_of(const struct cluster *c, enum drained which)
{
    return drains[which].sleep_ms > 0 ? PEERS_SLOTS / (int)c->options.workers
                                      : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static enum status drain(struct cluster *c, const struct bench_options *options, enum drained which,
                         struct drain_speed *ret, struct err *err)
{
    char sql[2][256];
    const int64_t sleeps_ms[] = {drains[which].sleep_ms, WARM_MS};
    for (size_t i = 0; i < ARRAY_COUNT(sleeps_ms); i++) {
        (void)snprintf(sql[i], sizeof sql[i],
                       "INSERT INTO claimd.job (kind, args) SELECT '%s', '{\"sleep_ms\": %" PRId64
                       "}' FROM generate_series(1, $1)",
                       drains[which].kind, sleeps_ms[i]);
    }
    const struct pg_statement insert = {
        .name = "", .sql = sql[0], .types = number_type, .type_count = 1};
    const struct pg_statement warm = {
        .name = "", .sql = sql[1], .types = number_type, .type_count = 1};
    c->options.slots = slots_of(c, which);
    const struct drain_plan plan = {.jobs = jobs_of(options, which),
                                    .insert = &insert,
                                    .warm_insert = &warm,
                                    .warm_jobs =
                                        WARM_JOBS * c->options.slots * (int64_t)c->options.workers};
    enum status st = drain_timed(c, &plan, ret, err);
    if (st != STATUS_OK) {
        err_prefix(err, "%s", drains[which].name);
        return st;
    }
    (void)fprintf(stderr, "bench: %s: %.0f jobs/s, per job %.1f us\n", drains[which].name,
                  ret->jobs_per_s, ret->cpu_us_per_job);
    return STATUS_OK;
}

static enum status start_p50(struct cluster *c, const struct bench_options *options,
                             const char *insert, double *ret_ms, struct err *err)
{
    json_auto_t *times = json_object();
    const struct latency_jobs jobs = {
        .insert = {.name = "", .sql = insert},
        .started = {.name = "",
                    .sql = "SELECT (result->>'boot_us')::bigint FROM claimd.job_history WHERE"
                           " id = $1 AND finalized_at > clock_timestamp() - interval '1 hour'",
                    .types = number_type,
                    .type_count = 1}};
    c->options.slots = 1; /* the warm-up has started its program */
    enum status st = cluster_start_daemons(c, err);
    if (st == STATUS_OK) {
        st = latency_measure(c, &jobs, options, times, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    *ret_ms = json_number_value(json_object_get(times, "p50_ms"));
    (void)fprintf(stderr, "bench: start p50 %.3f ms: %s\n", *ret_ms, insert);
    return cluster_stop_daemons(c, err);
}

static enum status measure_starts(struct cluster *c, const struct bench_options *options,
                                  struct round *ret, struct err *err)
{
    size_t workers = c->options.workers;
    c->options.workers = 1; /* one program, which the warm-up has started */
    enum status st =
        start_p50(c, options, "INSERT INTO claimd.job (kind) VALUES ('stamp') RETURNING id",
                  &ret->start_p50_ms[0], err);
    if (st == STATUS_OK) {
        st = start_p50(c, options, "INSERT INTO claimd.job (kind) VALUES ('py_stamp') RETURNING id",
                       &ret->start_p50_ms[1], err);
    }
    c->options.workers = workers;
    return st;
}

static enum status measure_round(struct cluster *c, const struct bench_options *options,
                                 struct round *ret, struct err *err)
{
    enum status st = STATUS_OK;
    for (enum drained i = 0; i < DRAINS && st == STATUS_OK; i++) {
        st = drain(c, options, i, &ret->speed[i], err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    size_t processes = c->options.workers * (size_t)slots_of(c, ONCE);
    st = handlers_floor_once(c, processes, jobs_of(options, ONCE), &ret->floor_once_per_s,
                             &ret->floor_once_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = handlers_floor_python(c, options->jobs, &ret->floor_python_us, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)fprintf(stderr, "bench: floors: Python %.1f us per job, %s %.0f/s, each %.1f us\n",
                  ret->floor_python_us, HANDLERS_ONCE, ret->floor_once_per_s, ret->floor_once_us);
    return measure_starts(c, options, ret, err);
}

/* ---- the report ---- */

typedef double value_fn(const struct round *r);

static double above_plugin_us(const struct round *r)
{
    return r->speed[PYTHON].cpu_us_per_job - r->speed[PLUGIN].cpu_us_per_job;
}

static double above_plugin_10_us(const struct round *r)
{
    return r->speed[PYTHON_SLEEPS].cpu_us_per_job - r->speed[PLUGIN_SLEEPS].cpu_us_per_job;
}

static double floor_python_us(const struct round *r)
{
    return r->floor_python_us;
}

static double to_floor_ratio(const struct round *r)
{
    return above_plugin_us(r) / r->floor_python_us;
}

static double later_ms(const struct round *r)
{
    return r->start_p50_ms[1] - r->start_p50_ms[0];
}

static double once_per_s(const struct round *r)
{
    return r->speed[ONCE].jobs_per_s;
}

static double floor_once_per_s(const struct round *r)
{
    return r->floor_once_per_s;
}

static double once_above_floor_us(const struct round *r)
{
    return r->speed[ONCE].cpu_us_per_job - r->floor_once_us;
}

static double once_ratio(const struct round *r)
{
    return r->speed[ONCE].jobs_per_s / r->floor_once_per_s;
}

static double median(const struct round *rounds, size_t count, value_fn *value)
{
    double values[ROUNDS_MAX];
    for (size_t i = 0; i < count; i++) {
        values[i] = value(&rounds[i]);
    }
    return figures_median(values, count);
}

static void report_drains(const struct round *rounds, size_t count, json_t *result)
{
    json_t *list = json_array();
    (void)fprintf(stderr, "\n%-18s %10s %12s\n", "MEDIANS", "jobs/s", "CPU us/job");
    for (enum drained i = 0; i < DRAINS; i++) {
        double per_s[ROUNDS_MAX];
        double cpu_us[ROUNDS_MAX];
        for (size_t n = 0; n < count; n++) {
            per_s[n] = rounds[n].speed[i].jobs_per_s;
            cpu_us[n] = rounds[n].speed[i].cpu_us_per_job;
        }
        double speed = figures_median(per_s, count);
        double cpu = figures_median(cpu_us, count);
        (void)fprintf(stderr, "%-18s %10.0f %12.1f\n", drains[i].name, speed, cpu);
        (void)json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "name", drains[i].name,
                                                    "jobs_per_s", speed, "cpu_us_per_job", cpu));
    }
    (void)json_object_set_new(result, "drains", list);
}

static void report(const struct round *rounds, size_t count, json_t *result)
{
    static const struct {
        const char *name;
        value_fn *value;
    } columns[] = {{"python_above_plugin_us", above_plugin_us},
                   {"python_above_plugin_10_ms_us", above_plugin_10_us},
                   {"python_floor_us", floor_python_us},
                   {"python_to_floor_ratio", to_floor_ratio},
                   {"python_starts_later_ms", later_ms},
                   {"once_floor_per_s", floor_once_per_s},
                   {"once_to_floor_ratio", once_ratio},
                   {"once_above_floor_us", once_above_floor_us}};
    report_drains(rounds, count, result);
    for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
        double value = median(rounds, count, columns[i].value);
        (void)json_object_set_new(result, columns[i].name, json_real(value));
        (void)fprintf(stderr, "%-30s %12.3f\n", columns[i].name, value);
    }
    goal_add(result, GOAL_HANDLER_CPU, median(rounds, count, above_plugin_us));
    goal_add(result, GOAL_HANDLER_START, median(rounds, count, later_ms));
    goal_add_ratio(result, GOAL_ONCE_FLOOR, median(rounds, count, once_per_s),
                   median(rounds, count, once_ratio));
}

enum status handlers_run(struct cluster *c, const struct bench_options *options, json_t *result,
                         struct err *err)
{
    static struct round rounds[ROUNDS_MAX];
    size_t count = (size_t)options->rounds;
    (void)json_object_set_new(result, "jobs", json_integer(options->jobs));
    enum status st = make_handlers(c, err);
    for (size_t i = 0; i < count && st == STATUS_OK; i++) {
        st = measure_round(c, options, &rounds[i], err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    report(rounds, count, result);
    return peers_python_run(c, options, result, err);
}
