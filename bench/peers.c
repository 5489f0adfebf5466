/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/peers.h"

#include "base/clock.h"
#include "bench/figures.h"
#include "bench/go_build.h"
#include "bench/workloads.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define SLACK_US (50 * US_PER_MS) /* allowed difference between an adapter's time and ours */
#define NAME_MAX_BYTES 64

/* Debian's interpreters, which find Debian's packages. */
#define PYTHON "/usr/bin/python3"
#define RUBY "/usr/bin/ruby"

#define RATE_MAX 8000 /* jobs per second: no system here runs more handlers that take time */
#define MIXED_MS 14

const struct peers_work_spec peers_works[PEERS_WORKS] = {
    [PEERS_DRAIN] = {.name = "drain", .asked = "drain"},
    [PEERS_START] = {.name = "start", .asked = "start"},
    [PEERS_INSERT] = {.name = "insert", .asked = "insert"},
    [PEERS_START_500] = {.name = "start at 500/s", .asked = "start", .gap_ms = 2},
    [PEERS_SLEEP_1] = {.name = "sleep 1 ms", .asked = "drain", .sleep_ms = 1},
    [PEERS_SLEEP_10] = {.name = "sleep 10 ms", .asked = "drain", .sleep_ms = 10},
    [PEERS_SLEEP_100] = {.name = "sleep 100 ms", .asked = "drain", .sleep_ms = 100},
    [PEERS_CPU_1] = {.name = "cpu 1 ms", .asked = "drain", .cpu_ms = 1},
    [PEERS_CPU_10] = {.name = "cpu 10 ms", .asked = "drain", .cpu_ms = 10},
    [PEERS_MIXED] = {.name = "mixed", .asked = "drain", .is_mixed = true},
    [PEERS_PYTHON] = {.name = "python no-op", .asked = "drain", .is_python = true},
    [PEERS_PYTHON_10] = {.name = "python 10 ms",
                         .asked = "drain",
                         .sleep_ms = 10,
                         .is_python = true},
};

#define BIT(work) (1U << (unsigned)(work))
#define DRAIN BIT(PEERS_DRAIN)
#define START BIT(PEERS_START)
#define INSERT BIT(PEERS_INSERT)
#define START_500 BIT(PEERS_START_500)
#define PEERS_ALL (DRAIN | START | INSERT)
#define START_ALL (START | START_500)
#define REALISTIC                                                                         \
    (BIT(PEERS_SLEEP_1) | BIT(PEERS_SLEEP_10) | BIT(PEERS_SLEEP_100) | BIT(PEERS_CPU_1) | \
     BIT(PEERS_CPU_10) | BIT(PEERS_MIXED))
#define PYTHON_ALL (BIT(PEERS_PYTHON) | BIT(PEERS_PYTHON_10))

/* A round measures them from the top: those that are compared most carefully are next to claimd. */
static const struct peers_row rows[] = {
    [PEERS_CLAIMD] = {"claimd", "default", true, 1, PEERS_ALL | START_500 | REALISTIC | PYTHON_ALL,
                      false},
    [PEERS_CLAIMD_SELECT] = {"claimd", "select", true, 1, INSERT, false},
    [PEERS_RIVER] = {"river", "best", true, 1, PEERS_ALL | START_500 | REALISTIC, false},
    {"river", "default", true, 20, DRAIN | START, false},
    {"asynq", "best", false, 4, DRAIN | START, false},
    {"asynq", "default", false, 4, DRAIN | START, false},
    {"asynq", "safe", true, 10, DRAIN, false},
    {"beanstalkd", "best", false, 1, DRAIN, false},
    {"beanstalkd", "default", false, 4, DRAIN | START, false},
    {"beanstalkd", "safe", true, 20, DRAIN | START, false},
    {"gearmand", "best", false, 4, DRAIN, false},
    {"gearmand", "default", false, 4, DRAIN | START, false},
    {"sidekiq", "best", false, 10, DRAIN | START, false},
    {"sidekiq", "default", false, 10, DRAIN, false},
    {"sidekiq", "safe", true, 10, DRAIN, false},
    {"celery", "best", false, 40, DRAIN | START | REALISTIC | PYTHON_ALL, false},
    {"celery", "default", false, 40, DRAIN, false},
    {"rq", "best", false, 100, DRAIN | START | PYTHON_ALL, false},
    {"rq", "default", false, 400, DRAIN, false},
    {"example", "default", false, 1, DRAIN | START, true},
    {"example", "lossy", false, 1, DRAIN, true},
};
static_assert(ARRAY_COUNT(rows) <= PEERS_ROWS_MAX, "all rows have their place");

/* The servers that peers need besides PostgreSQL. */
struct world {
    struct cluster *cluster;
    const struct bench_options *options;
    unsigned works;                 /* works of the workload */
    unsigned row_must;              /* a row must have one of these works */
    struct redis_server redis;      /* in memory, as peers use it */
    struct redis_server redis_safe; /* flushes every write */
    char programs[PEERS_ROWS_MAX][SERVER_PATH_MAX];
};

bool peers_is_timed(enum peers_work work)
{
    return strcmp(peers_works[work].asked, "start") == 0;
}

bool peers_has_handlers(enum peers_work work)
{
    return ((REALISTIC | BIT(PEERS_PYTHON_10)) & BIT(work)) != 0;
}

/* Returns how long such a handler sleeps on average. */
static int64_t sleep_ms_of(const struct peers_work_spec *work)
{
    return work->is_mixed ? MIXED_MS : work->sleep_ms;
}

/* Returns how many jobs take --seconds, if only the handlers took time. */
static int64_t handlers_count(const struct peers_work_spec *work,
                              const struct bench_options *options)
{
    int64_t cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t rate =
        work->cpu_ms > 0 ? cpus * 800 / work->cpu_ms : PEERS_SLOTS * 1000 / sleep_ms_of(work);
    rate = rate < RATE_MAX ? rate : RATE_MAX;
    return rate * options->seconds < options->jobs ? rate * options->seconds : options->jobs;
}

static int64_t count_of(const struct world *w, const struct peers_row *row, enum peers_work work)
{
    if (peers_has_handlers(work)) {
        return handlers_count(&peers_works[work], w->options);
    }
    int64_t jobs = w->options->jobs;
    if (work == PEERS_DRAIN) {
        jobs /= row->share;
    } else if (work == PEERS_PYTHON) { /* with fewer jobs, starting workers would dominate */
        jobs /= 1 + row->share / 10;
    }
    return peers_is_timed(work) ? w->options->samples : jobs > 0 ? jobs : 1;
}

static void set_percentiles(double *ms, size_t count, struct peers_figure *ret)
{
    ret->p50_ms = figures_percentile(ms, count, 50);
    ret->p99_ms = figures_percentile(ms, count, 99);
    ret->is_there = true;
}

/* ---- other systems ---- */

/* Reads the times of single jobs from the answer to `start`. */
static enum status read_times(const json_t *said, struct peers_figure *ret, struct err *err)
{
    const json_t *list = json_object_get(said, "ms");
    size_t count = json_array_size(list);
    autofree double *ms = calloc(count + 1, sizeof *ms);
    if (ms == NULL || count == 0) {
        return err_fail(err, STATUS_INTERNAL, "no times in its answer");
    }
    for (size_t i = 0; i < count; i++) {
        ms[i] = json_number_value(json_array_get(list, i));
    }
    set_percentiles(ms, count, ret);
    return STATUS_OK;
}

/* Checks that all jobs were done, each run once, and in a plausible time. */
static enum status read_speed(const struct peer_result *r, enum peers_work work, int64_t jobs,
                              struct peers_figure *ret, struct err *err)
{
    double seconds = json_number_value(json_object_get(r->said, "seconds"));
    int64_t done = json_integer_value(json_object_get(r->said, "done"));
    int64_t runs = json_integer_value(json_object_get(r->said, "runs"));
    if (done != jobs || (work != PEERS_INSERT && runs != jobs)) {
        return err_fail(err, STATUS_CONFLICT,
                        "the totals don't match: of %" PRId64 " jobs %" PRId64
                        " are done, there were %" PRId64 " runs",
                        jobs, done, runs);
    }
    if (seconds <= 0 || seconds * 1e6 > (double)(r->took_us + SLACK_US)) {
        return err_fail(err, STATUS_CONFLICT, "it says that it took %.3f s, not %.3f", seconds,
                        (double)r->took_us / 1e6);
    }
    *ret = (struct peers_figure){.is_there = true,
                                 .per_s = (double)jobs / seconds,
                                 .cpu_us = (double)r->cpu_us / (double)jobs};
    return STATUS_OK;
}

static enum status measure_peer(struct world *w, size_t at, enum peers_work work, int64_t count,
                                char *why_not, struct peers_figure *ret, struct err *err)
{
    static const char *const interpreters[][2] = {{".py", PYTHON}, {".rb", RUBY}};
    bool is_safe = strcmp(rows[at].settings, "safe") == 0;
    const struct peers_work_spec *spec = &peers_works[work];
    char load[128];
    (void)snprintf(load, sizeof load,
                   "{\"gap_ms\": %" PRId64 ", \"sleep_ms\": %" PRId64 ", \"cpu_ms\": %" PRId64
                   ", \"is_mixed\": %s, \"slots\": %d}",
                   spec->gap_ms, spec->sleep_ms, spec->cpu_ms, spec->is_mixed ? "true" : "false",
                   peers_has_handlers(work) ? PEERS_SLOTS : 0);
    struct peer_plan plan = {.work = spec->asked,
                             .settings = rows[at].settings,
                             .count = count,
                             .load = load,
                             .redis = is_safe ? &w->redis_safe : &w->redis};
    size_t len = strlen(w->programs[at]);
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_COUNT(interpreters); i++) {
        if (strcmp(w->programs[at] + len - 3, interpreters[i][0]) == 0) {
            plan.argv[n++] = interpreters[i][1];
        }
    }
    plan.argv[n] = w->programs[at];
    struct peer_result r;
    enum status st = peer_run(w->cluster, &plan, &r, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (r.missing[0] != '\0') {
        (void)snprintf(why_not, PEER_WHY_MAX, "%s", r.missing);
        return STATUS_OK;
    }
    st =
        peers_is_timed(work) ? read_times(r.said, ret, err) : read_speed(&r, work, count, ret, err);
    json_decref(r.said);
    return st;
}

/* ---- all rows ---- */

/* --only TEXT: true if "WORK NAME SETTINGS" contains the text. claimd takes part in the works of
 * the others. */
static bool is_wanted(const struct world *w, const struct peers *p, size_t at, enum peers_work work)
{
    char name[NAME_MAX_BYTES];
    const char *only = w->options->only;
    const struct peers_row *row = &p->rows[at];
    if ((row->works & w->works & BIT(work)) == 0 || (row->works & w->row_must) == 0 ||
        p->why_not[at][0] != '\0') {
        return false;
    }
    (void)snprintf(name, sizeof name, "%s %s %s", peers_works[work].name, row->name, row->settings);
    bool is_named = only != NULL && strstr(only, row->name) != NULL;
    if ((only == NULL || strstr(name, only) != NULL) && (is_named || !row->is_asked_for)) {
        return true;
    }
    for (size_t i = PEERS_RIVER; at < PEERS_RIVER && i < p->row_count; i++) {
        if (is_wanted(w, p, i, work)) {
            return true;
        }
    }
    return false;
}

static bool is_wanted_at_all(const struct world *w, const struct peers *p, size_t at)
{
    for (enum peers_work work = 0; work < PEERS_WORKS; work++) {
        if (is_wanted(w, p, at, work)) {
            return true;
        }
    }
    return false;
}

static void skip(struct peers *p, size_t at, const char *why)
{
    (void)snprintf(p->why_not[at], PEER_WHY_MAX, "%.*s", PEER_WHY_MAX - 1, why);
    (void)fprintf(stderr, "bench: %s %s: SKIPPED: %s\n", p->rows[at].name, p->rows[at].settings,
                  why);
}

/* Builds a program once for all its settings. */
static void build(struct world *w, struct peers *p, size_t at)
{
    char source[SERVER_PATH_MAX + NAME_MAX_BYTES];
    const char *name = p->rows[at].name;
    struct err err = {0};
    if (at > 0 && strcmp(p->rows[at - 1].name, name) == 0 && w->programs[at - 1][0] != '\0') {
        memcpy(w->programs[at], w->programs[at - 1], sizeof w->programs[at]);
        if (p->why_not[at - 1][0] != '\0') {
            skip(p, at, p->why_not[at - 1]);
        }
        return;
    }
    (void)snprintf(source, sizeof source, "%s/peers/%s", BENCH_SOURCE_DIR, name);
    (void)fprintf(stderr, "bench: building %s's program (a minute or two)\n", name);
    if (go_build(source, w->cluster->dir, name, w->programs[at], sizeof w->programs[at], &err) !=
        STATUS_OK) {
        skip(p, at, err.msg);
    }
}

/* Finds the program, or the reason why there is none. */
static void find_program(struct world *w, struct peers *p, size_t at)
{
    static const struct {
        const char *file;
        const char *program; /* NULL: it must be built */
    } kinds[] = {{"go.mod", NULL}, {"peer.py", PYTHON}, {"peer.rb", RUBY}};
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        (void)snprintf(w->programs[at], sizeof w->programs[at], "%s/peers/%s/%s", BENCH_SOURCE_DIR,
                       p->rows[at].name, kinds[i].file);
        if (access(w->programs[at], R_OK) != 0) {
            continue;
        }
        if (kinds[i].program == NULL) {
            build(w, p, at);
        } else if (access(kinds[i].program, X_OK) != 0) {
            char why[NAME_MAX_BYTES];
            (void)snprintf(why, sizeof why, "there is no %s", kinds[i].program);
            skip(p, at, why);
        }
        return;
    }
    skip(p, at, "there is no adapter");
}

static void tell(const struct peers *p, size_t round, enum peers_work work, size_t at)
{
    const struct peers_figure *f = &p->figures[round][work][at];
    const struct peers_row *row = &p->rows[at];
    (void)fprintf(stderr, "bench: round %zu, %s, %s %s: ", round + 1, peers_works[work].name,
                  row->name, row->settings);
    if (!f->is_there) {
        (void)fprintf(stderr, "SKIPPED: %s\n", p->why_not[at]);
    } else if (peers_is_timed(work)) {
        (void)fprintf(stderr, "p50 %.2f ms, p99 %.2f ms\n", f->p50_ms, f->p99_ms);
    } else if (f->slots_used > 0) {
        (void)fprintf(stderr, "%.0f jobs/s, per job %.1f us, %.2f of the slots used\n", f->per_s,
                      f->cpu_us, f->slots_used);
    } else {
        (void)fprintf(stderr, "%.0f jobs/s, per job %.1f us\n", f->per_s, f->cpu_us);
    }
}

/* A row that fails does not take part in later rounds. The rest continues, unless the run was
 * interrupted or the row is claimd itself. */
static enum status measure(struct world *w, struct peers *p, size_t round, enum peers_work work,
                           size_t at, struct err *err)
{
    int64_t count = count_of(w, &p->rows[at], work);
    struct peers_figure *figure = &p->figures[round][work][at];
    enum status st = STATUS_OK;
    bool is_claimd = at < PEERS_RIVER;
    if (is_claimd) {
        st = peers_measure_claimd(w->cluster, w->options, work, at, count, figure, err);
    } else {
        st = measure_peer(w, at, work, count, p->why_not[at], figure, err);
    }
    if (peers_has_handlers(work)) {
        figure->slots_used =
            figure->per_s * (double)sleep_ms_of(&peers_works[work]) / 1e3 / PEERS_SLOTS;
    }
    if (st != STATUS_OK) {
        err_prefix(err, "%s, %s %s", peers_works[work].name, p->rows[at].name,
                   p->rows[at].settings);
        (void)snprintf(p->why_not[at], PEER_WHY_MAX, "FAILED: %.150s", err->msg);
    }
    tell(p, round, work, at);
    return st;
}

static enum status run_rounds(struct world *w, struct peers *p, struct err *err)
{
    enum status worst = STATUS_OK;
    for (enum peers_work work = 0; work < PEERS_WORKS; work++) {
        for (size_t n = 0; n < p->rounds * p->row_count; n++) {
            size_t at = n % p->row_count;
            struct err one = {0};
            if (!is_wanted(w, p, at, work)) {
                continue;
            }
            enum status st = measure(w, p, n / p->row_count, work, at, &one);
            if (st == STATUS_OK) {
                continue;
            }
            if (worst == STATUS_OK) {
                *err = one;
                worst = st;
            }
            if (at < PEERS_RIVER || w->cluster->is_interrupted) {
                return worst;
            }
        }
    }
    return worst;
}

static enum status world_open(struct world *w, struct peers *p, struct err *err)
{
    char dir[SERVER_PATH_MAX + 16];
    (void)snprintf(dir, sizeof dir, "%s/queue", w->cluster->dir);
    enum status st = redis_server_start(dir, NULL, &w->redis, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(dir, sizeof dir, "%s/safe", w->cluster->dir);
    st = redis_server_start(dir, "appendonly yes\nappendfsync always", &w->redis_safe, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = PEERS_RIVER; i < p->row_count; i++) {
        if (is_wanted_at_all(w, p, i)) {
            find_program(w, p, i);
        }
    }
    return STATUS_OK;
}

static enum status run_works(struct cluster *c, const struct bench_options *options, unsigned works,
                             unsigned row_must, json_t *result, struct err *err)
{
    static struct peers p;
    static struct world w;
    p = (struct peers){
        .rows = rows, .row_count = ARRAY_COUNT(rows), .rounds = (size_t)options->rounds};
    w = (struct world){.cluster = c, .options = options, .works = works, .row_must = row_must};
    (void)json_object_set_new(result, "rounds", json_integer(options->rounds));
    enum status st = world_open(&w, &p, err);
    if (st == STATUS_OK) {
        st = run_rounds(&w, &p, err);
        peers_report(&p, result);
    }
    redis_server_stop(&w.redis);
    redis_server_stop(&w.redis_safe);
    return st;
}

enum status peers_run(struct cluster *c, const struct bench_options *options, json_t *result,
                      struct err *err)
{
    (void)json_object_set_new(result, "jobs", json_integer(options->jobs));
    (void)json_object_set_new(result, "samples", json_integer(options->samples));
    return run_works(c, options, PEERS_ALL, PEERS_ALL, result, err);
}

enum status realistic_run(struct cluster *c, const struct bench_options *options, json_t *result,
                          struct err *err)
{
    (void)json_object_set_new(result, "slots", json_integer(PEERS_SLOTS));
    c->options.slots = PEERS_SLOTS / (int)c->options.workers;
    return run_works(c, options, REALISTIC, REALISTIC, result, err);
}

enum status start_run(struct cluster *c, const struct bench_options *options, json_t *result,
                      struct err *err)
{
    (void)json_object_set_new(result, "samples", json_integer(options->samples));
    return run_works(c, options, START_ALL, START_500, result, err);
}

enum status peers_python_run(struct cluster *c, const struct bench_options *options, json_t *result,
                             struct err *err)
{
    return run_works(c, options, PYTHON_ALL, PYTHON_ALL, result, err);
}
