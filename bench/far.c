/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload far: workers that are far away from PostgreSQL, from the masters, or from both. Measures
 * which share of the slots' time handlers used. The scheduler is near. */
#include "bench/drain.h"
#include "bench/figures.h"
#include "bench/goals.h"
#include "bench/workloads.h"
#include "cluster/link_proxy.h"

#include <stdio.h>

#define ROUNDS_MAX 20
#define HOST 0
#define PG_SOCKET ".s.PGSQL.5432"
#define POSTGRES ((size_t)0) /* its number in the proxy; the masters follow */

static const unsigned number_type[] = {PG_INT8};

enum place { TO_POSTGRES, TO_MASTERS, TO_ALL, PLACES };
static const char *const place_names[PLACES] = {"postgres", "masters", "all"};
static const int round_trips_ms[] = {5, 20, 50};
static const int handlers_ms[] = {30, 100};
#define TRIPS ARRAY_COUNT(round_trips_ms)
#define HANDLERS ARRAY_COUNT(handlers_ms)
#define CASES (TRIPS * PLACES * HANDLERS)

struct far {
    struct cluster *cluster;
    struct link_proxy *proxy;
    enum place place;
    int round_trip_ms;
    int handler_ms;
};

static void set_case(struct far *f, size_t n)
{
    f->handler_ms = handlers_ms[n % HANDLERS];
    f->place = (enum place)(n / HANDLERS % PLACES);
    f->round_trip_ms = round_trips_ms[n / HANDLERS / PLACES];
}

/* ---- the network ---- */

/* Opens a socket of ours, which leads to a server's socket. */
static enum status carry(const struct far *f, const char *dir, const char *name, const char *server,
                         char *ret_socket, struct err *err)
{
    (void)snprintf(ret_socket, SERVER_PATH_MAX, "%.900s/%s", dir, name);
    return link_proxy_add(f->proxy, ret_socket, server, err);
}

/* Masters are identified by their addresses, so the scheduler uses the proxy as well. It belongs to
 * no host, and so has a good network. */
static enum status carry_all(const struct far *f, struct err *err)
{
    struct cluster *c = f->cluster;
    char dir[SERVER_PATH_MAX + 16];
    char socket[SERVER_PATH_MAX];
    char server[SERVER_PATH_MAX + 32];
    (void)snprintf(dir, sizeof dir, "%s/far", c->dir);
    (void)snprintf(server, sizeof server, "%s/" PG_SOCKET, c->pg.dir);
    enum status st = dir_ensure(dir, 0755, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = carry(f, dir, PG_SOCKET, server, socket, err);
    for (size_t i = 0; i < c->options.masters && st == STATUS_OK; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "r%zu", i);
        st = carry(f, dir, name, c->redis[i].path, c->node_paths[i], err);
    }
    (void)snprintf(c->worker_conninfo, sizeof c->worker_conninfo, "%s host=%s", c->conninfo, dir);
    return st;
}

static void delay(const struct far *f, size_t server)
{
    int64_t one_way_us = f->round_trip_ms * 1000 / 2;
    link_proxy_rule(f->proxy, HOST, server,
                    &(struct link_rule){.to_server_us = one_way_us, .to_client_us = one_way_us});
}

/* Workers start near, and are moved away before the first job. */
static void on_running(void *ctx, bool is_running)
{
    const struct far *f = ctx;
    link_proxy_rule(f->proxy, HOST, LINK_ALL, NULL);
    if (!is_running) {
        return;
    }
    link_proxy_is_host(f->proxy, HOST, f->cluster->workers[0]);
    for (size_t i = 0; i <= f->cluster->options.masters; i++) {
        bool is_far = f->place == TO_ALL || (i == POSTGRES) == (f->place == TO_POSTGRES);
        if (is_far) {
            delay(f, i);
        }
    }
}

/* ---- the measurement ---- */

static enum status measure(struct far *f, const struct bench_options *options, double *ret_used,
                           struct err *err)
{
    char sql[256];
    int64_t slots = f->cluster->options.slots;
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO claimd.job (kind, args) SELECT 'work', '{\"sleep_ms\": %d}'"
                   " FROM generate_series(1, $1)",
                   f->handler_ms);
    const struct pg_statement insert = {
        .name = "", .sql = sql, .types = number_type, .type_count = 1};
    const struct drain_plan plan = {.jobs = slots * options->seconds * 1000 / f->handler_ms,
                                    .insert = &insert,
                                    .waits_for_workers = true,
                                    .on_running = on_running,
                                    .ctx = f};
    struct drain_speed speed = {0};
    enum status st = drain_timed(f->cluster, &plan, &speed, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret_used = speed.jobs_per_s * f->handler_ms / 1e3 / (double)slots;
    (void)fprintf(stderr, "bench: %d ms to %s, handlers of %d ms: %.2f of the slots' time used\n",
                  f->round_trip_ms, place_names[f->place], f->handler_ms, *ret_used);
    return STATUS_OK;
}

static void report(struct far *f, double used[][CASES], size_t rounds, json_t *result)
{
    json_t *list = json_array();
    for (size_t n = 0; n < CASES; n++) {
        double values[ROUNDS_MAX];
        for (size_t i = 0; i < rounds; i++) {
            values[i] = used[i][n];
        }
        double median = figures_median(values, rounds);
        set_case(f, n);
        (void)json_array_append_new(list, json_pack("{s:i, s:s, s:i, s:f}", "round_trip_ms",
                                                    f->round_trip_ms, "to", place_names[f->place],
                                                    "handler_ms", f->handler_ms, "used", median));
        if (f->place == TO_ALL && f->round_trip_ms == 50 && f->handler_ms == 100) {
            goal_add(result, GOAL_FAR_50, median);
        }
        if (f->place == TO_ALL && f->round_trip_ms == 20 && f->handler_ms == 30) {
            goal_add(result, GOAL_FAR_20, median);
        }
    }
    (void)json_object_set_new(result, "far", list);
}

static enum status run_rounds(struct far *f, const struct bench_options *options, json_t *result,
                              struct err *err)
{
    static double used[ROUNDS_MAX][CASES];
    size_t rounds = (size_t)options->rounds;
    for (size_t n = 0; n < rounds * CASES; n++) {
        set_case(f, n % CASES);
        enum status st = measure(f, options, &used[n / CASES][n % CASES], err);
        if (st != STATUS_OK) {
            err_prefix(err, "%d ms to %s", f->round_trip_ms, place_names[f->place]);
            return st;
        }
    }
    report(f, used, rounds, result);
    return STATUS_OK;
}

enum status far_run(struct cluster *c, const struct bench_options *options, json_t *result,
                    struct err *err)
{
    struct far f = {.cluster = c};
    (void)json_object_set_new(result, "slots", json_integer(c->options.slots));
    (void)json_object_set_new(result, "rounds", json_integer(options->rounds));
    if (c->options.workers != 1 || c->options.slots == 0) {
        return err_fail(err, STATUS_INVALID, "far has one worker, with slots");
    }
    enum status st = link_proxy_start(&f.proxy, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = carry_all(&f, err);
    if (st == STATUS_OK) {
        st = run_rounds(&f, options, result, err);
    }
    link_proxy_stop(f.proxy);
    return st;
}
