/* SPDX-License-Identifier: Apache-2.0
 *
 * Workload hoard: workers have just run many short jobs; then one long job is inserted for each
 * free slot. Measures how long it takes until all of these are started, on one queue and on many.
 * Then measures how long short jobs wait, alone and beside long ones that leave half of the slots
 * free. */
#include "base/clock.h"
#include "bench/drain.h"
#include "bench/figures.h"
#include "bench/goals.h"
#include "bench/report.h"
#include "bench/stream.h"
#include "bench/workloads.h"

#include <inttypes.h>
#include <stdio.h>

#define ROUNDS_MAX 20
#define QUEUES_MANY 14
#define LONG_MS 2000
#define LONG_ARGS "{\"sleep_ms\": 2000}"
#define SHORT_RATE 100

static const unsigned two_numbers[] = {PG_INT8, PG_INT8};

/* $1 = number of jobs, $2 = number of queues, 0: `default` */
#define QUEUE_OF_I "CASE $2 WHEN 0 THEN 'default' ELSE 'q' || i % $2 END"
static const struct pg_statement insert_short = {
    .name = "hoard_short",
    .sql = "INSERT INTO claimd.job (kind, queue, args) SELECT 'work', " QUEUE_OF_I ","
           " jsonb_build_object('sleep_ms', (ARRAY[0, 1, 5])[1 + i % 3])"
           " FROM generate_series(1, $1) AS i",
    .types = two_numbers,
    .type_count = 2};
static const struct pg_statement insert_long = {
    .name = "hoard_long",
    .sql = "INSERT INTO claimd.job (kind, queue, args) SELECT 'stamp_long', " QUEUE_OF_I ","
           " '" LONG_ARGS "' FROM generate_series(1, $1) AS i",
    .types = two_numbers,
    .type_count = 2};
/* $1 = number of jobs, $2 = ms between them */
static const struct pg_statement insert_later = {
    .name = "hoard_later",
    .sql = "INSERT INTO claimd.job (kind, args, scheduled_at) SELECT 'stamp_long',"
           " '" LONG_ARGS "', clock_timestamp() + i * $2 * interval '1 ms'"
           " FROM generate_series(1, $1) AS i",
    .types = two_numbers,
    .type_count = 2};
static const struct pg_statement last_id = {.name = "hoard_last_id",
                                            .sql = "SELECT max(id) FROM claimd.job_history"};
static const struct pg_statement starts = {
    .name = "hoard_starts",
    .sql = "SELECT id, (result->>'boot_us')::bigint FROM claimd.job_history"
           " WHERE id > $1 AND kind = 'stamp_long'",
    .types = two_numbers,
    .type_count = 1};

static enum status act(struct cluster *c, const struct pg_statement *statement, int64_t one,
                       int64_t two, struct err *err)
{
    char storage[2][8];
    const struct pg_param params[] = {pg_param_i64(one, storage[0]), pg_param_i64(two, storage[1])};
    return db_query(&c->db, statement, params, 0, err);
}

static int64_t slots(const struct cluster *c)
{
    return (int64_t)c->options.workers * c->options.slots;
}

/* ---- long jobs on free slots ---- */

struct latest {
    int64_t committed_us;
    int64_t jobs;
    int64_t us; /* from then to the start of the last job */
};

static void on_long(void *ctx, const int64_t *row)
{
    struct latest *l = ctx;
    int64_t us = row[1] - l->committed_us;
    l->us = us > l->us ? us : l->us;
    l->jobs++;
}

static enum status read_latest(struct cluster *c, int64_t beyond, struct latest *l, struct err *err)
{
    char storage[8];
    struct pg_param id = pg_param_i64(beyond, storage);
    enum status st = db_each(&c->db, &starts, &id, 2, on_long, l, err);
    if (st == STATUS_OK && l->jobs != slots(c)) {
        return err_fail(err, STATUS_CONFLICT, "%" PRId64 " of %" PRId64 " jobs are in the history",
                        l->jobs, slots(c));
    }
    return st;
}

static enum status drain_short(struct cluster *c, int64_t jobs, struct err *err)
{
    enum status st = act(c, &insert_short, jobs, (int64_t)c->options.queues, err);
    if (st != STATUS_OK) {
        return st;
    }
    return drain_wait(c, err);
}

static enum status start_long(struct cluster *c, struct latest *ret, struct err *err)
{
    enum status st = db_query(&c->db, &last_id, NULL, 1, err);
    if (st != STATUS_OK) {
        return st;
    }
    int64_t beyond = c->db.row[0];
    st = act(c, &insert_long, slots(c), (int64_t)c->options.queues, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret = (struct latest){.committed_us = c->db.done_us};
    st = drain_wait(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    return read_latest(c, beyond, ret, err);
}

/* `ret_ms`: the median of the rounds. */
static enum status measure_long(struct cluster *c, const struct bench_options *options,
                                size_t queues, double *ret_ms, struct err *err)
{
    double ms[ROUNDS_MAX];
    c->options.queues = queues;
    enum status st = drain_start_workers(c, err);
    for (int64_t i = 0; i < options->rounds && st == STATUS_OK; i++) {
        struct latest latest = {0};
        st = drain_short(c, options->jobs, err);
        if (st == STATUS_OK) {
            st = start_long(c, &latest, err);
        }
        ms[i] = (double)latest.us / (double)US_PER_MS;
        (void)fprintf(stderr, "bench: round %" PRId64 ", %zu queues: all started after %.1f ms\n",
                      i + 1, queues > 0 ? queues : 1, ms[i]);
    }
    if (st != STATUS_OK) {
        return st;
    }
    *ret_ms = figures_median(ms, (size_t)options->rounds);
    return cluster_stop_daemons(c, err);
}

/* ---- short jobs beside long ones ---- */

static enum status stream_short(struct cluster *c, struct stream *s, int64_t jobs, struct err *err)
{
    stream_start(s, SHORT_RATE, jobs);
    while (!stream_is_over(s)) {
        enum status st = cluster_wait(c, US_PER_S / 10, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    if (s->st != STATUS_OK) {
        return err_fail(err, s->st, "inserting: %s", s->err.msg);
    }
    return drain_wait(c, err);
}

static enum status wait_of_short(struct cluster *c, struct stream *s, int64_t jobs,
                                 const char *prefix, json_t *result, double *ret_p99_ms,
                                 struct err *err)
{
    autofree int64_t *us = calloc((size_t)jobs, sizeof *us);
    if (us == NULL) {
        return err_fail(err, STATUS_NOMEM, "times of jobs");
    }
    enum status st = stream_short(c, s, jobs, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = stream_read_waits(s, c, us, err);
    if (st != STATUS_OK) {
        return st;
    }
    report_times(result, prefix, us, (size_t)jobs);
    *ret_p99_ms = (double)figures_percentile_us(us, (size_t)jobs, 99) / (double)US_PER_MS;
    return STATUS_OK;
}

static enum status compare_short(struct cluster *c, struct stream *s, int64_t seconds,
                                 json_t *result, struct err *err)
{
    double alone_ms = 0;
    double beside_ms = 0;
    int64_t gap_ms = LONG_MS / (slots(c) / 2);
    enum status st = wait_of_short(c, s, SHORT_RATE * seconds, "alone_", result, &alone_ms, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = act(c, &insert_later, (seconds + 1) * 1000 / gap_ms, gap_ms, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = wait_of_short(c, s, SHORT_RATE * seconds, "beside_long_", result, &beside_ms, err);
    if (st == STATUS_OK) {
        goal_add_ratio(result, GOAL_SHORT_BESIDE_LONG, beside_ms, beside_ms / alone_ms);
    }
    return st;
}

static enum status measure_short(struct cluster *c, int64_t seconds, json_t *result,
                                 struct err *err)
{
    struct stream stream;
    c->options.queues = 0;
    enum status st = drain_start_workers(c, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = stream_open(&stream, c, SHORT_RATE * seconds, err);
    if (st == STATUS_OK) {
        st = compare_short(c, &stream, seconds, result, err);
    }
    stream_close(&stream, c);
    if (st != STATUS_OK) {
        return st;
    }
    return cluster_stop_daemons(c, err);
}

enum status hoard_run(struct cluster *c, const struct bench_options *options, json_t *result,
                      struct err *err)
{
    double one_ms = 0;
    double many_ms = 0;
    if (slots(c) < 2 || slots(c) > LONG_MS) {
        return err_fail(err, STATUS_INVALID, "hoard has 2 to %d slots", LONG_MS);
    }
    (void)json_object_set_new(result, "slots", json_integer(slots(c)));
    (void)json_object_set_new(result, "short_jobs", json_integer(options->jobs));
    enum status st = measure_long(c, options, 0, &one_ms, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = measure_long(c, options, QUEUES_MANY, &many_ms, err);
    if (st != STATUS_OK) {
        return st;
    }
    goal_add(result, GOAL_HOARD_ONE, one_ms);
    goal_add(result, GOAL_HOARD_MANY, many_ms);
    return measure_short(c, options->seconds, result, err);
}
