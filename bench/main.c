/* SPDX-License-Identifier: Apache-2.0
 *
 * claimd-bench WORKLOAD [OPTION…]: prints one JSON line on stdout, and progress on stderr. Exit
 * codes: 0; 1 if it failed or the totals do not match; 2 usage. */
#include "base/parse.h"
#include "bench/workloads.h"

#include <getopt.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#define MASTERS_DEFAULT 5
#define RESULT_PRECISION 5

static const struct workload {
    const char *name;
    workload_fn *run;
    const char *plugins;
    size_t workers;
    int slots; /* of each worker, unless --slots is given */
    const char *help;
    /* Unless an option is given; 0: the default of most workloads. */
    int64_t jobs;
    int64_t samples;
    int64_t seconds;
    int64_t rate;
} workloads[] = {
    {"drain", drain_run, "plugins", 2, 0,
     .help = "no-op jobs per second, from a full queue to an empty one"},
    {"latency", latency_run, "bench_plugins", 1, 0,
     .help = "idle system: insert committed to handler started"},
    {"idle", idle_run, "plugins", 10, 16, .help = "what a system without jobs costs"},
    {"metrics", scraped_run, "plugins", 2, 0,
     .help = "what scraping /metrics costs while draining"},
    {"fairness", fairness_run, "plugins", 2, 4,
     .help = "how long small tenants wait beside a large one"},
    {"features", features_run, "plugins", 2, 0,
     .help = "what each feature costs when every job uses it"},
    {"scale", scale_run, "plugins", WORKERS_MAX, 0,
     .help = "the same drain with 1, 4, 16 and 64 workers"},
    {"limit", limit_run, "plugins", 0, 0,
     .help = "a drain by the data path alone, without daemons"},
    {"peers", peers_run, "plugins", 2, 0, .help = "the same work by other job systems, in turns",
     .jobs = 100000, .samples = 200},
    {"realistic", realistic_run, "bench_plugins", 2, 16,
     .help = "handlers of 1 to 500 ms, beside River and Celery"},
    {"start", start_run, "bench_plugins", 1, 0,
     .help = "insert returned to handler started, beside River", .samples = 2000},
    {"strategies", strategies_run, "plugins", 0, 0, .help = "a table of jobs without claimd"},
    {"steady", steady_run, "bench_plugins", 2, 0,
     .help = "jobs at a constant rate: their way, their cost, what piles up", .seconds = 60},
    {"enqueue", enqueue_run, "plugins", 0, 0, .help = "bringing jobs in, one by one and in bulk",
     .samples = 2000},
    {"horizon", horizon_run, "plugins", 2, 0,
     .help = "the same drain while a snapshot keeps dead rows", .jobs = 1000000},
    {"backlog", backlog_run, "plugins", 2, 0,
     .help = "starting when many jobs wait, and when few do", .jobs = 1000000},
    {"deferred", deferred_run, "bench_plugins", 2, 0, .help = "how late jobs for later start",
     .jobs = 1000000, .seconds = 30, .rate = 6000},
    {"hoard", hoard_run, "bench_plugins", 4, 4,
     .help = "long jobs on free slots, after many short ones", .jobs = 20000, .seconds = 20},
    {"far", far_run, "bench_plugins", 1, 16, .help = "workers far away from their servers",
     .seconds = 5},
    {"handlers", handlers_run, "bench_plugins", 2, 0,
     .help = "programs as handlers, beside a plugin, Celery and RQ", .jobs = 100000, .samples = 200,
     .seconds = 5},
    {"map", map_run, "plugins", 2, 0, .help = "loading claimctl map, and its limit beside others"},
    {"all", NULL, "", 0, 0, .help = "all of these, then a table of the goals, and plots"},
    {"locks", NULL, "", 0, 0, .help = "the lock library alone, and beside redsync", .seconds = 3},
};

enum option_code {
    OPT_HELP = 'h',
    OPT_JOBS = 256,
    OPT_SAMPLES,
    OPT_GAP,
    OPT_SECONDS,
    OPT_ROUNDS,
    OPT_RATE,
    OPT_WORKERS,
    OPT_MASTERS,
    OPT_SLOTS,
    OPT_UNKEPT,
    OPT_ONLY,
    OPT_JSON,
    OPT_QUICK,
    OPT_BUSY,
    OPT_RESULTS
};

static const struct option long_options[] = {{"help", no_argument, NULL, OPT_HELP},
                                             {"jobs", required_argument, NULL, OPT_JOBS},
                                             {"samples", required_argument, NULL, OPT_SAMPLES},
                                             {"gap", required_argument, NULL, OPT_GAP},
                                             {"seconds", required_argument, NULL, OPT_SECONDS},
                                             {"rounds", required_argument, NULL, OPT_ROUNDS},
                                             {"rate", required_argument, NULL, OPT_RATE},
                                             {"workers", required_argument, NULL, OPT_WORKERS},
                                             {"masters", required_argument, NULL, OPT_MASTERS},
                                             {"slots", required_argument, NULL, OPT_SLOTS},
                                             {"unkept", no_argument, NULL, OPT_UNKEPT},
                                             {"only", required_argument, NULL, OPT_ONLY},
                                             {"json", no_argument, NULL, OPT_JSON},
                                             {"quick", no_argument, NULL, OPT_QUICK},
                                             {"busy", no_argument, NULL, OPT_BUSY},
                                             {"results", required_argument, NULL, OPT_RESULTS},
                                             {NULL, 0, NULL, 0}};

static void usage(FILE *out)
{
    (void)fprintf(out, "Usage: claimd-bench WORKLOAD [OPTION…]\n\nWorkloads:\n");
    for (size_t i = 0; i < ARRAY_COUNT(workloads); i++) {
        (void)fprintf(out, "  %-13s %s\n", workloads[i].name, workloads[i].help);
    }
    (void)fprintf(
        out,
        "\nOptions:\n"
        "  --jobs N     jobs of each drain (200000; peers, handlers: 100000; hoard: 20000;\n"
        "               horizon, backlog, deferred: 1000000)\n"
        "  --rounds N   of workloads that compare: how often each, in turns (3;\n"
        "               locks: of contests (5)\n"
        "  --samples N  latency (500), peers, handlers (200), start (2000): jobs, one at a time;\n"
        "               enqueue: of each way (2000)\n"
        "  --gap MS     latency: a job every so many ms (0: one after the end of the other)\n"
        "  --seconds N  far, handlers (5), idle, fairness, realistic (10), hoard (20), deferred "
        "(30),\n"
        "               steady (60): how long; locks: of each load, each contest (3)\n"
        "  --rate N     jobs a second, steady: that come (800), deferred: fall due (6000)\n"
        "  --only TEXT  features, peers, realistic, start, handlers (others), locks, all: those\n"
        "               whose name has this text\n"
        "  --unkept     drain: completed jobs are counted, not kept\n"
        "  --json       locks: a line of JSON instead of a table\n"
        "  --quick      all: a few minutes, to see that everything runs\n"
        "  --busy       all: on a machine where something else runs, too\n"
        "  --results D  all: where to (bench/results)\n"
        "  --workers N  worker processes (2; latency, start, far: 1; hoard: 4; idle: 10)\n"
        "  --masters N  Redis masters (5)\n"
        "  --slots N    of each worker (0 = number of CPUs; hoard: 4; idle, far: 16)\n");
}

static const struct number_option {
    int code;
    int64_t min;
    int64_t max;
    size_t offset; /* offset of an int64_t in struct bench_options */
} number_options[] = {
    {OPT_JOBS, 1, 100000000, offsetof(struct bench_options, jobs)},
    {OPT_SAMPLES, 1, 100000, offsetof(struct bench_options, samples)},
    {OPT_GAP, 0, 10000, offsetof(struct bench_options, gap_ms)},
    {OPT_SECONDS, 1, 3600, offsetof(struct bench_options, seconds)},
    {OPT_RATE, 1, 100000, offsetof(struct bench_options, rate)},
};

static enum status parse_number(const char *text, int64_t min, int64_t max, int64_t *ret,
                                struct err *err)
{
    return parse_i64(text, strlen(text), min, max, ret, err);
}

static enum status parse_number_option(int code, const char *text, struct bench_options *o,
                                       struct err *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(number_options); i++) {
        const struct number_option *option = &number_options[i];
        if (option->code == code) {
            return parse_number(text, option->min, option->max,
                                (int64_t *)(void *)((char *)o + option->offset), err);
        }
    }
    return err_fail(err, STATUS_INTERNAL, "an option that nobody reads");
}

static enum status parse_options(int argc, char **argv, struct bench_options *o, bool *ret_is_help,
                                 struct err *err)
{
    enum status st = STATUS_OK;
    int code = 0;
    int at = 0;
    while (st == STATUS_OK && (code = getopt_long(argc, argv, "h", long_options, &at)) != -1) {
        int64_t n = 0;
        switch (code) {
        case OPT_HELP:
            *ret_is_help = true;
            break;
        case OPT_ROUNDS:
            st = parse_number(optarg, 1, 20, &o->rounds, err);
            o->has_rounds = true;
            break;
        case OPT_WORKERS:
            st = parse_number(optarg, 1, WORKERS_MAX, &n, err);
            o->cluster.workers = (size_t)n;
            break;
        case OPT_MASTERS:
            st = parse_number(optarg, 1, MASTERS_MAX, &n, err);
            o->cluster.masters = (size_t)n;
            break;
        case OPT_SLOTS:
            st = parse_number(optarg, 0, 1024, &n, err);
            o->cluster.slots = (int)n;
            break;
        case OPT_UNKEPT:
            o->is_unkept = true;
            break;
        case OPT_ONLY:
            o->only = optarg;
            break;
        case OPT_JSON:
            o->is_json = true;
            break;
        case OPT_QUICK:
            o->is_quick = true;
            break;
        case OPT_BUSY:
            o->is_busy_fine = true;
            break;
        case OPT_RESULTS:
            o->results = optarg;
            break;
        case '?':
            return err_fail(err, STATUS_INVALID, "unknown option, or its value is missing");
        default:
            st = parse_number_option(code, optarg, o, err);
            break;
        }
    }
    if (st != STATUS_OK) {
        err_prefix(err, "--%s", long_options[at].name);
    }
    return st;
}

static const struct workload *find_workload(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(workloads); i++) {
        if (strcmp(workloads[i].name, name) == 0) {
            return &workloads[i];
        }
    }
    return NULL;
}

void workload_add_rss(const struct cluster *c, json_t *result)
{
    (void)json_object_set_new(result, "worker_rss_mb",
                              json_real((double)cluster_worker_rss_kib(c) / 1024));
    (void)json_object_set_new(result, "scheduler_rss_mb",
                              json_real((double)cluster_scheduler_rss_kib(c) / 1024));
}

static int64_t or_else(int64_t value, int64_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static enum status measure_alone(const struct workload *w, const struct bench_options *o,
                                 json_t *result, struct err *err)
{
    static struct cluster cluster;
    (void)fprintf(stderr, "bench: starting PostgreSQL and %zu Redis masters\n", o->cluster.masters);
    enum status st = cluster_open(&cluster, &o->cluster, err);
    if (st == STATUS_OK) {
        st = w->run(&cluster, o, result, err);
    }
    cluster_close(&cluster);
    return st;
}

static int measure(const struct workload *w, const struct bench_options *o)
{
    struct err err = {0};
    json_auto_t *result =
        json_pack("{s:s, s:I, s:I}", "workload", w->name, "workers", (json_int_t)o->cluster.workers,
                  "masters", (json_int_t)o->cluster.masters);
    enum status st = o->has_rounds && w->run == drain_run ? compare_drains(o, result, &err)
                                                          : measure_alone(w, o, result, &err);
    if (st != STATUS_OK) {
        (void)fprintf(stderr, "bench: %s: %s\n", status_text(st), err.msg);
    }
    (void)json_object_set_new(result, "ok", json_boolean(st == STATUS_OK));
    (void)json_dumpf(result, stdout, JSON_REAL_PRECISION(RESULT_PRECISION));
    (void)fputc('\n', stdout);
    return st == STATUS_OK && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    bool is_help = false;
    (void)signal(SIGPIPE, SIG_IGN);
    const struct workload *w = argc > 1 ? find_workload(argv[1]) : NULL;
    struct bench_options o = {.jobs = or_else(w != NULL ? w->jobs : 0, 200000),
                              .samples = or_else(w != NULL ? w->samples : 0, 500),
                              .rounds = 3,
                              .rate = or_else(w != NULL ? w->rate : 0, 800),
                              .seconds = or_else(w != NULL ? w->seconds : 0, 10),
                              .cluster = {.masters = MASTERS_DEFAULT,
                                          .workers = w != NULL ? w->workers : 1,
                                          .slots = w != NULL ? w->slots : 0,
                                          .plugins = w != NULL ? w->plugins : ""}};
    if (parse_options(argc, argv, &o, &is_help, &err) != STATUS_OK) {
        (void)fprintf(stderr, "claimd-bench: %s\n", err.msg);
        return 2;
    }
    if (is_help || w == NULL || optind != argc - 1) {
        usage(is_help ? stdout : stderr);
        return is_help ? EXIT_SUCCESS : 2;
    }
    if (w->run != NULL) {
        return measure(w, &o);
    }
    return strcmp(w->name, "all") == 0 ? all_run(&o) : locks_run(&o);
}
