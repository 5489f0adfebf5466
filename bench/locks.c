/* SPDX-License-Identifier: Apache-2.0
 *
 * claimd-bench locks: measures the goals of redlock/, each part once per round and the rounds one
 * after the other, so that a disturbance affects all parts alike. The result is the median of the
 * rounds. */
#include "bench/locks.h"

#include "bench/figures.h"
#include "bench/goals.h"
#include "bench/locks_contended.h"
#include "bench/workloads.h"
#include "redlock/cmd/load.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define ROUNDS 3
#define CONTENDED_ROUNDS 5 /* unless --rounds is given */
#define LOADS "loads"      /* value of --only: everything except the contests */
#define IN_FLIGHT 50
#define BATCH 128
#define BATCHES_IN_FLIGHT 4

#define NOT_MEASURED ((double)NAN)

enum metric {
    ASYNC,
    REDSYNC,
    REDSYNC_RATIO,
    AUTO,
    AUTO_RATIO,
    CPU,
    BATCHES,
    HELD,
    WAKE_P50,
    WAKE_P99,
    WAKE_BEYOND,
    WAIT_COMMANDS,
    ALONE_TRIPS,
    ALONE_ACQUIRE,
    ALONE_RELEASE,
    THREADS,
    METRICS
};

enum bound { NONE, AT_LEAST, AT_MOST };

static const struct row {
    const char *name;
    const char *text;
    enum bound goal;
    double bound;
    int decimals;
} rows[METRICS] = {
    [ASYNC] = {"async_per_s", "locks/s, 50 in flight", NONE, 0, 0},
    [REDSYNC] = {"redsync_per_s", "  redsync", NONE, 0, 0},
    [REDSYNC_RATIO] = {"redsync_ratio", "  times redsync", AT_LEAST, 6, 2},
    [AUTO] = {"redsync_auto_per_s", "  redsync over AutoPipeline", NONE, 0, 0},
    [AUTO_RATIO] = {"redsync_auto_ratio", "  times redsync over AutoPipeline", AT_LEAST, 2, 2},
    [CPU] = {"client_cpu_us", "  our CPU per lock, us", NONE, 0, 1},
    [BATCHES] = {"batches_per_s", "locks/s in batches of 128", AT_LEAST, 50000, 0},
    [HELD] = {"extend_ms", "10,000 leases extended, ms", AT_MOST, 200, 1},
    [WAKE_P50] = {"wake_p50_ms", "release to waiter, p50 ms", NONE, 0, 2},
    [WAKE_P99] = {"wake_p99_ms", "release to waiter, p99 ms", AT_MOST, 3, 2},
    [WAKE_BEYOND] = {"wake_beyond_ms", "  its p50 less two round trips, ms", AT_MOST, 0.3, 2},
    [WAIT_COMMANDS] = {"wait_commands", "commands per second, waiter and master", AT_MOST, 1, 3},
    [ALONE_TRIPS] = {"alone_trips", "round trips of one lock alone, both ways", AT_MOST, 2.05, 3},
    [ALONE_ACQUIRE] = {"alone_acquire_us", "  taken, p50 us", NONE, 0, 0},
    [ALONE_RELEASE] = {"alone_release_us", "  given back, p50 us", NONE, 0, 0},
    [THREADS] = {"threads_per_s", "locks/s, blocking, 50 threads", NONE, 0, 0},
};

static void measure_loads(const struct locks_world *w, int64_t seconds, double *v, bool *ret_failed)
{
    struct err err = {0};
    struct load_result r = {0};
    if (locks_load(w, seconds, IN_FLIGHT, 1, &r, &err) == STATUS_OK) {
        v[ASYNC] = (double)r.pairs / r.seconds;
        v[CPU] = load_cpu_us(&r);
    }
    if (locks_load(w, seconds, BATCHES_IN_FLIGHT, BATCH, &r, &err) == STATUS_OK) {
        v[BATCHES] = (double)r.pairs / r.seconds;
    }
    if (w->rival[0] != '\0' &&
        rival_run(w, seconds, IN_FLIGHT, false, &v[REDSYNC], &err) == STATUS_OK &&
        rival_run(w, seconds, IN_FLIGHT, true, &v[AUTO], &err) == STATUS_OK) {
        v[REDSYNC_RATIO] = v[ASYNC] / v[REDSYNC];
        v[AUTO_RATIO] = v[ASYNC] / v[AUTO];
    }
    if (err.status != STATUS_OK) {
        (void)fprintf(stderr, "bench: %s\n", err.msg);
        *ret_failed = true;
    }
}

static void complain(enum status st, const struct err *err, bool *ret_failed)
{
    if (st != STATUS_OK) {
        (void)fprintf(stderr, "bench: %s\n", err->msg);
        *ret_failed = true;
    }
}

static void measure_round(const struct locks_world *w, int64_t seconds, bool is_first, double *v,
                          bool *ret_failed)
{
    struct err err = {0};
    measure_loads(w, seconds, v, ret_failed);
    complain(locks_held(w, &v[HELD], &err), &err, ret_failed);
    err = (struct err){0};
    double *commands = is_first ? &v[WAIT_COMMANDS] : NULL; /* no time: measured only once */
    complain(locks_wait(w, &v[WAKE_P50], &v[WAKE_P99], commands, &err), &err, ret_failed);
    err = (struct err){0};
    complain(locks_alone(w, &v[ALONE_TRIPS], &v[ALONE_ACQUIRE], &v[ALONE_RELEASE], &err), &err,
             ret_failed);
    /* a single lock is taken in one round trip */
    v[WAKE_BEYOND] = v[WAKE_P50] - 2e-3 * v[ALONE_ACQUIRE];
    err = (struct err){0};
    complain(locks_threads(w, seconds, IN_FLIGHT, &v[THREADS], &err), &err, ret_failed);
}

/* Returns NOT_MEASURED if there is no measurement. */
static double median(double values[ROUNDS][METRICS], enum metric m)
{
    double sorted[ROUNDS];
    size_t count = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        if (!isnan(values[i][m])) {
            sorted[count++] = values[i][m];
        }
    }
    return count > 0 ? figures_median(sorted, count) : NOT_MEASURED;
}

static const char *verdict(const struct row *row, double value)
{
    if (isnan(value)) {
        return "not measured";
    }
    if (row->goal == NONE) {
        return "";
    }
    bool is_met = row->goal == AT_LEAST ? value >= row->bound : value <= row->bound;
    return is_met ? "reached" : "MISSED";
}

static void print_table(double values[ROUNDS][METRICS])
{
    (void)printf("%-42s %10s  %-10s %-12s %s\n", "MEDIAN OF THREE ROUNDS", "", "GOAL", "",
                 "ROUNDS");
    for (enum metric m = 0; m < METRICS; m++) {
        const struct row *row = &rows[m];
        char goal[24] = "";
        double value = median(values, m);
        if (row->goal != NONE) {
            (void)snprintf(goal, sizeof goal, "%s %g",
                           row->goal == AT_LEAST ? ">=" : "<=", row->bound);
        }
        (void)printf("%-42s %10.*f  %-10s %-12s", row->text, row->decimals, value, goal,
                     verdict(row, value));
        for (size_t i = 0; i < ROUNDS; i++) {
            (void)printf(" %.*f", row->decimals, values[i][m]);
        }
        (void)printf("\n");
    }
}

static void add_goals(json_t *result, double values[ROUNDS][METRICS])
{
    if (!isnan(median(values, REDSYNC_RATIO))) {
        goal_add_ratio(result, GOAL_LOCKS_REDSYNC, median(values, ASYNC),
                       median(values, REDSYNC_RATIO));
        goal_add_ratio(result, GOAL_LOCKS_AUTO_PIPELINE, median(values, ASYNC),
                       median(values, AUTO_RATIO));
    }
    if (!isnan(median(values, BATCHES)) && !isnan(median(values, HELD))) {
        goal_add(result, GOAL_LOCKS_RATE, median(values, BATCHES));
        goal_add(result, GOAL_LOCKS_EXTEND, median(values, HELD));
    }
}

static void add_rows(json_t *result, double values[ROUNDS][METRICS])
{
    json_t *list = json_array();
    for (enum metric m = 0; m < METRICS; m++) {
        const struct row *row = &rows[m];
        double value = median(values, m);
        json_t *o = json_pack("{s:s, s:s}", "name", row->name, "verdict", verdict(row, value));
        (void)json_object_set_new(o, "median", isnan(value) ? json_null() : json_real(value));
        if (row->goal != NONE) {
            (void)json_object_set_new(o, row->goal == AT_LEAST ? "at_least" : "at_most",
                                      json_real(row->bound));
        }
        (void)json_array_append_new(list, o);
    }
    (void)json_object_set_new(result, "rows", list);
    add_goals(result, values);
}

static void measure_rounds(const struct locks_world *w, const struct bench_options *options,
                           json_t *result, bool *ret_failed)
{
    double values[ROUNDS][METRICS];
    for (size_t i = 0; i < ROUNDS; i++) {
        for (enum metric m = 0; m < METRICS; m++) {
            values[i][m] = NOT_MEASURED;
        }
        (void)fprintf(stderr, "bench: round %zu of %d\n", i + 1, ROUNDS);
        measure_round(w, options->seconds, i == 0, values[i], ret_failed);
    }
    add_rows(result, values);
    if (!options->is_json) {
        print_table(values);
    }
}

static void measure_contests(const struct locks_world *w, const struct bench_options *options,
                             json_t *result, bool *ret_failed)
{
    struct err err = {0};
    const struct contended_options contended = {.seconds = options->seconds,
                                                .rounds = options->has_rounds ? options->rounds
                                                                              : CONTENDED_ROUNDS,
                                                .only = options->only,
                                                .is_json = options->is_json};
    complain(contended_run(w, &contended, result, &err), &err, ret_failed);
}

static void build_rival(struct locks_world *w)
{
    struct err err = {0};
    (void)fprintf(stderr, "bench: building redsync's program (a minute or two)\n");
    if (rival_build(w, &err) != STATUS_OK) {
        (void)fprintf(stderr, "bench: NO COMPARISON WITH REDSYNC, Go did not build it: %s\n",
                      err.msg);
    }
}

static void measure_wanted(struct locks_world *w, const struct bench_options *options,
                           json_t *result, bool *ret_failed)
{
    bool with_rival = false;
    bool has_loads = options->only == NULL || strstr(LOADS, options->only) != NULL;
    bool has_contests = contended_is_wanted(options->only, &with_rival);
    if (has_loads || with_rival) {
        build_rival(w);
    }
    if (has_loads) {
        measure_rounds(w, options, result, ret_failed);
    }
    if (has_contests) {
        measure_contests(w, options, result, ret_failed);
    }
}

static struct locks_world world;

static int measure(const struct bench_options *options)
{
    json_auto_t *result = json_pack("{s:s}", "workload", "locks");
    struct err err = {0};
    bool has_failed = false;
    if (locks_world_open(&world, &err) == STATUS_OK) {
        measure_wanted(&world, options, result, &has_failed);
    } else {
        complain(err.status, &err, &has_failed);
    }
    locks_world_close(&world);
    (void)json_object_set_new(result, "ok", json_boolean(!has_failed));
    if (options->is_json) {
        (void)json_dumpf(result, stdout, JSON_REAL_PRECISION(6));
        (void)fputc('\n', stdout);
    }
    return !has_failed && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Runs in a child, so that an interrupt leaves nothing behind. */
int locks_run(const struct bench_options *options)
{
    struct err err = {0};
    sigset_t set;
    sigset_t before;
    if (dir_make(world.dir, sizeof world.dir, &err) != STATUS_OK) {
        (void)fprintf(stderr, "bench: %s\n", err.msg);
        return EXIT_FAILURE;
    }
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, &before);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        exit(measure(options));
    }
    int status = 0;
    if (pid > 0) {
        if (sigwaitinfo(&set, NULL) != SIGCHLD) {
            (void)kill(pid, SIGKILL); /* its servers die with it */
        }
        (void)waitpid(pid, &status, 0);
    }
    dir_remove(world.dir);
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}
