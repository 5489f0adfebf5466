/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload latency: from the commit of an insert to the start of its handler, one job at a time. */
#include "base/clock.h"
#include "base/rand.h"
#include "bench/workloads.h"

#include <inttypes.h>
#include <stdio.h>

#define WARM_UP 20 /* first connections, first plans, first pages of the history */
#define SAMPLE_MAX_US (30 * US_PER_S)
#define ASK_US (4 * US_PER_MS) /* after that the handler has ended, as a rule: don't disturb it */

static const unsigned id_type[] = {PG_INT8};

static const struct pg_statement insert_job = {
    .name = "insert_job", .sql = "INSERT INTO claimd.job (kind) VALUES ('stamp') RETURNING id"};
static const struct pg_statement started = {
    .name = "started",
    .sql = "SELECT (result->>'boot_us')::bigint FROM claimd.job_history WHERE id = $1"
           " AND finalized_at > clock_timestamp() - interval '1 hour'",
    .types = id_type,
    .type_count = 1};

/* A job's way to its handler holds one commit of its own: what one costs here and now, the
 * INSERT's, is measured with it. */
struct sample {
    int64_t start_us;
    int64_t commit_us;
};

static enum status take_sample(struct cluster *c, struct sample *ret, struct err *err)
{
    char storage[8];
    int64_t insert_us = clock_boot_us();
    enum status st = db_query(&c->db, &insert_job, NULL, 1, err);
    int64_t committed_us = c->db.done_us;
    struct pg_param id = pg_param_i64(c->db.row[0], storage);
    if (st != STATUS_OK) {
        return st;
    }
    for (;;) {
        st = cluster_wait(c, ASK_US, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = db_query(&c->db, &started, &id, 1, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (c->db.row_count > 0) {
            ret->start_us = c->db.row[0] - committed_us;
            ret->commit_us = committed_us - insert_us;
            return STATUS_OK;
        }
        if (clock_boot_us() - committed_us > SAMPLE_MAX_US) {
            return err_fail(err, STATUS_TIMEOUT, "a job was not done after 30 s");
        }
        st = cluster_check_daemons(c, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
}

static int by_value(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
}

static void add_percentiles(json_t *result, int64_t *values, size_t count)
{
    static const struct {
        const char *name;
        size_t percent;
    } points[] = {{"p50_ms", 50}, {"p90_ms", 90}, {"p99_ms", 99}, {"max_ms", 100}};
    qsort(values, count, sizeof *values, by_value);
    for (size_t i = 0; i < ARRAY_COUNT(points); i++) {
        size_t at = points[i].percent * count / 100;
        at = at < count ? at : count - 1;
        (void)json_object_set_new(result, points[i].name,
                                  json_real((double)values[at] / (double)US_PER_MS));
    }
}

static enum status take_samples(struct cluster *c, size_t count, int64_t *starts, int64_t *commits,
                                struct err *err)
{
    struct rand rand;
    rand_seed(&rand, 1);
    for (size_t i = 0; i < WARM_UP + count; i++) {
        struct sample one = {0};
        enum status st = take_sample(c, &one, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (i >= WARM_UP) {
            starts[i - WARM_UP] = one.start_us;
            commits[i - WARM_UP] = one.commit_us;
        }
        if (i % 100 == 99) {
            (void)fprintf(stderr, "bench: %zu jobs\n", i + 1);
        }
        /* Idle again, and not in step with anybody's timer. */
        st = cluster_wait(c, 20 * US_PER_MS + rand_below(&rand, 60 * US_PER_MS), err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum status latency_run(struct cluster *c, const struct bench_options *options, json_t *result,
                        struct err *err)
{
    size_t count = (size_t)options->samples;
    autofree int64_t *starts = calloc(count, sizeof *starts);
    autofree int64_t *commits = calloc(count, sizeof *commits);
    if (starts == NULL || commits == NULL) {
        return err_fail(err, STATUS_NOMEM, "samples");
    }
    (void)json_object_set_new(result, "samples", json_integer(options->samples));
    enum status st = cluster_start_daemons(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = take_samples(c, count, starts, commits, err);
    if (st != STATUS_OK) {
        return st;
    }
    add_percentiles(result, starts, count);
    qsort(commits, count, sizeof *commits, by_value);
    const int64_t *median = &commits[count / 2];
    (void)json_object_set_new(result, "insert_p50_ms",
                              json_real((double)*median / (double)US_PER_MS));
    workload_add_rss(c, result);
    return cluster_stop_daemons(c, err);
}
