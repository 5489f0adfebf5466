/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload peers: claimd's own part. */
#include "base/clock.h"
#include "bench/drain.h"
#include "bench/peers.h"
#include "bench/process.h"
#include "bench/raw.h"

#include <inttypes.h>
#include <stdio.h>

#define INSERT_BATCH 1000

static const struct pg_statement count_all = {.name = "peers_count",
                                              .sql = "SELECT count(*) FROM claimd.job"};
static const struct pg_statement delete_all = {.name = "", .sql = "DELETE FROM claimd.job"};

static enum status drain(struct cluster *c, const char *plugins, const struct drain_plan *plan,
                         struct peers_figure *ret, struct err *err)
{
    struct drain_speed speed = {0};
    c->options.plugins = plugins;
    enum status st = drain_timed(c, plan, &speed, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret = (struct peers_figure){.is_there = true,
                                 .per_s = speed.jobs_per_s,
                                 .cpu_us = speed.cpu_us_per_job,
                                 .commits = speed.commits_per_job,
                                 .redis_commands = speed.redis_commands_per_job};
    return STATUS_OK;
}

static const unsigned count_type[] = {PG_INT8};

static enum status drain_handlers(struct cluster *c, const struct peers_work_spec *work,
                                  int64_t jobs, struct peers_figure *ret, struct err *err)
{
    static const char mixed[] =
        "INSERT INTO claimd.job (kind, args) SELECT 'work_' || ms, jsonb_build_object('sleep_ms',"
        " ms) FROM generate_series(1, $1) AS i CROSS JOIN LATERAL (SELECT (ARRAY[1, 5, 20, 100,"
        " 500])[1 + width_bucket(i % 100, ARRAY[50, 80, 95, 99])]) AS m(ms)";
    char alike[256];
    (void)snprintf(alike, sizeof alike,
                   "INSERT INTO claimd.job (kind, args) SELECT '%s', '{\"sleep_ms\": %" PRId64
                   ", \"cpu_ms\": %" PRId64 "}' FROM generate_series(1, $1)",
                   work->is_python ? "py_work" : "work", work->sleep_ms, work->cpu_ms);
    const struct pg_statement insert = {
        .name = "", .sql = work->is_mixed ? mixed : alike, .types = count_type, .type_count = 1};
    const struct drain_plan plan = {.jobs = jobs, .insert = &insert, .waits_for_workers = true};
    return drain(c, "bench_plugins", &plan, ret, err);
}

static enum status start(struct cluster *c, const struct bench_options *options, int64_t gap_ms,
                         struct peers_figure *ret, struct err *err)
{
    json_auto_t *times = json_object();
    struct bench_options pauses = *options;
    pauses.gap_ms = gap_ms; /* as in the adapters of the others */
    c->options.plugins = "bench_plugins";
    enum status st = latency_run(c, &pauses, times, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret = (struct peers_figure){.is_there = true,
                                 .p50_ms = json_number_value(json_object_get(times, "p50_ms")),
                                 .p99_ms = json_number_value(json_object_get(times, "p99_ms"))};
    return STATUS_OK;
}

#define ARGS "{\"customer\": 1, \"text\": \"a row of about fifty bytes\"}"

static const struct pg_statement select_some = {
    .name = "peers_select",
    .sql = "INSERT INTO claimd.job (kind, args) SELECT 'noop', '" ARGS "' FROM"
           " generate_series(1, $1)",
    .types = count_type,
    .type_count = 1};

/* Inserts rows that the server generates. */
static enum status select_all(struct cluster *c, int64_t jobs, struct err *err)
{
    enum status st = STATUS_OK;
    for (int64_t left = jobs; left > 0 && st == STATUS_OK; left -= INSERT_BATCH) {
        char storage[8];
        struct pg_param count = pg_param_i64(left < INSERT_BATCH ? left : INSERT_BATCH, storage);
        st = db_query(&c->db, &select_some, &count, 0, err);
    }
    return st;
}

static enum status copy_some(PGconn *pg, int64_t count, struct err *err)
{
    static const char row[] = "noop\t" ARGS "\n";
    PGresult *result = PQexec(pg, "COPY claimd.job (kind, args) FROM STDIN");
    enum status st = raw_pg_check(pg, result, PGRES_COPY_IN, err);
    PQclear(result);
    for (int64_t i = 0; i < count && st == STATUS_OK; i++) {
        if (PQputCopyData(pg, row, sizeof row - 1) != 1) {
            st = err_fail(err, STATUS_UNAVAILABLE, "COPY: %s", PQerrorMessage(pg));
        }
    }
    if (st == STATUS_OK && PQputCopyEnd(pg, NULL) != 1) {
        st = err_fail(err, STATUS_UNAVAILABLE, "COPY: %s", PQerrorMessage(pg));
    }
    while (st == STATUS_OK && (result = PQgetResult(pg)) != NULL) {
        st = raw_pg_check(pg, result, PGRES_COMMAND_OK, err);
        PQclear(result);
    }
    return st;
}

/* Copies rows of the same size as the others, with the same number per transaction. */
static enum status copy_all(PGconn *pg, int64_t jobs, struct err *err)
{
    enum status st = STATUS_OK;
    for (int64_t left = jobs; left > 0 && st == STATUS_OK; left -= INSERT_BATCH) {
        st = copy_some(pg, left < INSERT_BATCH ? left : INSERT_BATCH, err);
    }
    return st;
}

static int64_t used_us(const struct cluster *c)
{
    return process_cpu(getpid()).self_us + cluster_cpu(c).postgres_us;
}

/* `pg` must stay open until the CPU time has been read: the time of its backend is counted for the
 * server only while the backend lives or after the server has waited for it. */
static enum status insert_by(struct cluster *c, PGconn *pg, int64_t jobs, bool is_select,
                             struct peers_figure *ret, struct err *err)
{
    int64_t before_us = used_us(c);
    int64_t began_us = clock_boot_us();
    enum status st = is_select ? select_all(c, jobs, err) : copy_all(pg, jobs, err);
    int64_t took_us = clock_boot_us() - began_us;
    int64_t cpu_us = used_us(c) - before_us;
    if (st != STATUS_OK) {
        return st;
    }
    *ret = (struct peers_figure){.is_there = true,
                                 .per_s = 1e6 * (double)jobs / (double)took_us,
                                 .cpu_us = (double)cpu_us / (double)jobs};
    return STATUS_OK;
}

static enum status insert(struct cluster *c, int64_t jobs, bool is_select, struct peers_figure *ret,
                          struct err *err)
{
    PGconn *pg = NULL;
    enum status st = raw_pg_open(c->conninfo, &pg, err);
    if (st == STATUS_OK) {
        st = insert_by(c, pg, jobs, is_select, ret, err);
    }
    raw_pg_close(pg);
    if (st != STATUS_OK) {
        return st;
    }
    st = db_query(&c->db, &count_all, NULL, 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (c->db.row[0] != jobs) {
        return err_fail(err, STATUS_CONFLICT, "%" PRId64 " of %" PRId64 " jobs are there",
                        c->db.row[0], jobs);
    }
    return db_query(&c->db, &delete_all, NULL, 0, err);
}

enum status peers_measure_claimd(struct cluster *c, const struct bench_options *options,
                                 enum peers_work work, size_t row, int64_t count,
                                 struct peers_figure *ret, struct err *err)
{
    if (work == PEERS_DRAIN) {
        return drain(c, "plugins", &(struct drain_plan){.jobs = count}, ret, err);
    }
    if (peers_is_timed(work)) {
        return start(c, options, peers_works[work].gap_ms, ret, err);
    }
    if (peers_works[work].is_python) {
        c->options.slots = peers_has_handlers(work) ? PEERS_SLOTS / (int)c->options.workers : 0;
    }
    if (peers_has_handlers(work) || peers_works[work].is_python) {
        return drain_handlers(c, &peers_works[work], count, ret, err);
    }
    return insert(c, count, row == PEERS_CLAIMD_SELECT, ret, err);
}
