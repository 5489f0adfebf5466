/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload limit-latency: how soon the limit program starts a job that it is told of by NOTIFY. One
 * process; jobs that are told together are locked and claimed together, and a job's end is written
 * after its start, before the next. */
#include "base/clock.h"
#include "bench/crew.h"
#include "bench/latency.h"
#include "bench/limit.h"

static const unsigned id_type[] = {PG_INT8};

static const struct latency_jobs jobs = {
    .insert = {.name = "limit_insert",
               .sql = "WITH j AS (INSERT INTO " LIMIT_SCHEMA ".job (kind, args) VALUES ('noop',"
                      " '{\"to\":\"user@example.com\",\"k\":\"xx\"}') RETURNING id)"
                      " SELECT id, pg_notify('" LIMIT_SCHEMA "', id::text) FROM j"},
    .started = {.name = "limit_started",
                .sql = "SELECT started_us FROM " LIMIT_SCHEMA ".job_history WHERE id = $1",
                .types = id_type,
                .type_count = 1}};

struct plan {
    const struct cluster *cluster;
    int64_t jobs;
};

static enum status run_next(struct limit_path *p, size_t *ret_count, struct err *err)
{
    static const struct limit_batch none;
    static struct limit_batch batch;
    static struct limit_batch nothing;
    enum status st = limit_told(p, &batch, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = limit_lock(p, &none, &batch, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = limit_commit(p, &none, 0, &batch, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = limit_commit(p, &batch, clock_boot_us(), &nothing, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret_count = batch.count;
    return limit_lock(p, &batch, &nothing, err);
}

static enum status work(const void *ctx, struct crew_member *self, struct err *err)
{
    const struct plan *plan = ctx;
    struct limit_path *p = NULL;
    enum status st = limit_path_open(plan->cluster, self->index, &p, err);
    if (st == STATUS_OK) {
        st = crew_ready(self, err);
    }
    int64_t done = 0;
    while (st == STATUS_OK && done < plan->jobs) {
        size_t count = 0;
        st = run_next(p, &count, err);
        done += (int64_t)count;
    }
    if (st == STATUS_OK) {
        st = crew_done(self, err);
    }
    limit_path_close(p);
    return st;
}

static enum status measure(struct cluster *c, struct crew *crew,
                           const struct bench_options *options, json_t *result, struct err *err)
{
    enum status st = crew_start(crew, c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = latency_measure(c, &jobs, options, result, err);
    if (st != STATUS_OK) {
        return st;
    }
    return crew_wait(crew, c, err);
}

enum status limit_latency_run(struct cluster *c, const struct bench_options *options,
                              json_t *result, struct err *err)
{
    const struct plan plan = {.cluster = c, .jobs = LATENCY_WARM_UP + options->samples};
    struct crew crew;
    int64_t us = 0;
    (void)json_object_set_new(result, "workers", json_integer(1));
    enum status st = limit_create(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = crew_open(&crew, c, 1, work, &plan, err);
    if (st == STATUS_OK) {
        st = measure(c, &crew, options, result, err);
    }
    crew_close(&crew);
    if (st != STATUS_OK) {
        return st;
    }
    return limit_reconcile(c, plan.jobs, result, &us, err);
}
