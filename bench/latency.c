/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload latency: from the commit of an insert to the start of its handler. */
#include "bench/latency.h"

#include "base/clock.h"
#include "base/rand.h"
#include "bench/figures.h"
#include "bench/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define SAMPLE_MAX_US (30 * US_PER_S)
#define ASK_US (4 * US_PER_MS) /* by then the handler has usually ended: does not disturb it */

static const unsigned id_type[] = {PG_INT8};

static const struct latency_jobs stamps = {
    .insert = {.name = "insert_job",
               .sql = "INSERT INTO claimd.job (kind) VALUES ('stamp') RETURNING id"},
    .started = {.name = "started",
                .sql = "SELECT (result->>'boot_us')::bigint FROM claimd.job_history WHERE id = $1"
                       " AND finalized_at > clock_timestamp() - interval '1 hour'",
                .types = id_type,
                .type_count = 1}};

/* A job's way to its handler includes one commit of its own. So the duration of the INSERT's commit
 * is measured too, as the price of a commit at that time. */
struct sample {
    int64_t id;
    int64_t committed_us;
    int64_t start_us;
    int64_t commit_us;
};

struct samples {
    const struct latency_jobs *jobs;
    size_t count;
    struct sample *all;
};

static enum status insert(struct cluster *c, const struct latency_jobs *jobs, struct sample *ret,
                          struct err *err)
{
    int64_t insert_us = clock_boot_us();
    enum status st = db_query(&c->db, &jobs->insert, NULL, 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    ret->id = c->db.row[0];
    ret->committed_us = c->db.done_us;
    ret->commit_us = c->db.done_us - insert_us;
    return STATUS_OK;
}

static enum status wait_for_start(struct cluster *c, const struct latency_jobs *jobs,
                                  struct sample *s, struct err *err)
{
    char storage[8];
    struct pg_param id = pg_param_i64(s->id, storage);
    for (;;) {
        enum status st = db_query(&c->db, &jobs->started, &id, 1, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (c->db.row_count > 0) {
            s->start_us = c->db.row[0] - s->committed_us;
            return STATUS_OK;
        }
        if (clock_boot_us() - s->committed_us > SAMPLE_MAX_US) {
            return err_fail(err, STATUS_TIMEOUT, "a job was not done after 30 s");
        }
        st = cluster_check_daemons(c, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = cluster_wait(c, ASK_US, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
}

static enum status take_sample(struct cluster *c, const struct latency_jobs *jobs,
                               struct rand *rand, struct sample *ret, struct err *err)
{
    enum status st = insert(c, jobs, ret, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = cluster_wait(c, ASK_US, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = wait_for_start(c, jobs, ret, err);
    if (st != STATUS_OK) {
        return st;
    }
    /* Waits until the system is idle, for a random time, so as not to be in step with any timer. */
    return cluster_wait(c, 20 * US_PER_MS + rand_below(rand, 60 * US_PER_MS), err);
}

static enum status take_one_by_one(struct cluster *c, const struct samples *samples,
                                   struct err *err)
{
    struct rand rand;
    rand_seed(&rand, 1);
    for (size_t i = 0; i < LATENCY_WARM_UP + samples->count; i++) {
        struct sample unused;
        struct sample *one = i < LATENCY_WARM_UP ? &unused : &samples->all[i - LATENCY_WARM_UP];
        enum status st = take_sample(c, samples->jobs, &rand, one, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (i % 100 == 99) {
            (void)fprintf(stderr, "bench: %zu jobs\n", i + 1);
        }
    }
    return STATUS_OK;
}

static void sleep_until(int64_t boot_us)
{
    const struct timespec at = {.tv_sec = boot_us / US_PER_S, .tv_nsec = boot_us % US_PER_S * 1000};
    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

static enum status take_at_gaps(struct cluster *c, const struct samples *samples, int64_t gap_us,
                                struct err *err)
{
    const struct samples none = {.jobs = samples->jobs};
    enum status st = take_one_by_one(c, &none, err);
    int64_t next_us = clock_boot_us();
    for (size_t i = 0; i < samples->count && st == STATUS_OK; i++) {
        sleep_until(next_us);
        next_us += gap_us;
        st = insert(c, samples->jobs, &samples->all[i], err);
    }
    for (size_t i = 0; i < samples->count && st == STATUS_OK; i++) {
        st = wait_for_start(c, samples->jobs, &samples->all[i], err);
    }
    return st;
}

/* ---- results ---- */

static enum status add_percentiles(json_t *result, const struct samples *samples, struct err *err)
{
    size_t count = samples->count;
    autofree int64_t *values = calloc(2 * count, sizeof *values);
    if (values == NULL) {
        return err_fail(err, STATUS_NOMEM, "samples");
    }
    int64_t *commits = values + count;
    for (size_t i = 0; i < count; i++) {
        values[i] = samples->all[i].start_us;
        commits[i] = samples->all[i].commit_us;
    }
    int64_t commit_us = figures_percentile_us(commits, count, 50);
    report_times(result, "", values, count);
    (void)json_object_set_new(result, "insert_p50_ms",
                              json_real((double)commit_us / (double)US_PER_MS));
    return STATUS_OK;
}

enum status latency_measure(struct cluster *c, const struct latency_jobs *jobs,
                            const struct bench_options *options, json_t *result, struct err *err)
{
    struct samples samples = {.jobs = jobs, .count = (size_t)options->samples};
    autofree struct sample *all = calloc(samples.count, sizeof *all);
    if (all == NULL) {
        return err_fail(err, STATUS_NOMEM, "samples");
    }
    samples.all = all;
    (void)json_object_set_new(result, "samples", json_integer(options->samples));
    (void)json_object_set_new(result, "gap_ms", json_integer(options->gap_ms));
    enum status st = options->gap_ms == 0
                         ? take_one_by_one(c, &samples, err)
                         : take_at_gaps(c, &samples, options->gap_ms * US_PER_MS, err);
    if (st != STATUS_OK) {
        return st;
    }
    return add_percentiles(result, &samples, err);
}

enum status latency_run(struct cluster *c, const struct bench_options *options, json_t *result,
                        struct err *err)
{
    enum status st = cluster_start_daemons(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = latency_measure(c, &stamps, options, result, err);
    if (st != STATUS_OK) {
        return st;
    }
    workload_add_rss(c, result);
    return cluster_stop_daemons(c, err);
}
