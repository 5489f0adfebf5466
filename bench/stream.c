/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/stream.h"

#include "base/clock.h"

#include <inttypes.h>

#define PAGE 20000 /* jobs per answer */

static const struct pg_statement insert_job = {
    .name = "stream_job", .sql = "INSERT INTO claimd.job (kind) VALUES ('stamp') RETURNING id"};

static void stop(struct stream *s, enum status st, const struct err *err)
{
    s->st = st;
    s->err = *err;
    (void)uv_timer_stop(&s->timer);
}

/* A single client inserts, so ids are in the order of its commits, without gaps. */
static void on_inserted(void *ctx, enum status st, const struct pg_result *const *results,
                        const struct err *err)
{
    struct stream *s = ctx;
    if (s->st != STATUS_OK) {
        return;
    }
    if (st != STATUS_OK) {
        stop(s, st, err);
        return;
    }
    int64_t id = pg_i64(results[0], 0, 0);
    s->first_id = s->done == 0 ? id : s->first_id;
    s->committed_us[s->done] = clock_boot_us();
    if (id != s->first_id + s->done) {
        struct err gap = {0};
        err_set(&gap, STATUS_CONFLICT, 0, "another client inserts jobs");
        stop(s, STATUS_CONFLICT, &gap);
        return;
    }
    s->done++;
}

static bool send_one(struct stream *s, int64_t now_us, int64_t due_us)
{
    struct err err = {0};
    s->sent_us[s->sent] = now_us;
    enum status st = pg_send_one(s->db.pg, &insert_job, NULL, on_inserted, s, &err);
    if (st == STATUS_LIMIT) {
        return false; /* PostgreSQL is far behind: tried again at the next tick */
    }
    if (st != STATUS_OK) {
        stop(s, st, &err);
        return false;
    }
    s->behind_us = now_us - due_us > s->behind_us ? now_us - due_us : s->behind_us;
    s->sent++;
    return true;
}

static void on_tick(uv_timer_t *timer)
{
    struct stream *s = timer->data;
    for (;;) {
        int64_t now_us = clock_boot_us();
        int64_t due_us = s->begun_us + s->sent * US_PER_S / s->rate;
        if (s->sent == s->jobs) {
            (void)uv_timer_stop(&s->timer);
            return;
        }
        if (due_us > now_us || !send_one(s, now_us, due_us)) {
            return;
        }
    }
}

enum status stream_open(struct stream *s, struct cluster *c, int64_t jobs_max, struct err *err)
{
    *s = (struct stream){.sent_us = calloc((size_t)jobs_max, sizeof(int64_t)),
                         .committed_us = calloc((size_t)jobs_max, sizeof(int64_t))};
    (void)uv_timer_init(&c->loop, &s->timer);
    s->timer.data = s;
    if (s->sent_us == NULL || s->committed_us == NULL) {
        return err_fail(err, STATUS_NOMEM, "times of jobs");
    }
    return db_open(&s->db, &c->loop, c->conninfo, &c->is_interrupted, err);
}

static void on_closed(uv_handle_t *handle)
{
    handle->data = NULL;
}

/* The timer is in the caller's memory, so waits until it is closed. */
void stream_close(struct stream *s, struct cluster *c)
{
    db_close(&s->db);
    uv_close((uv_handle_t *)&s->timer, on_closed);
    while (s->timer.data != NULL) {
        (void)uv_run(&c->loop, UV_RUN_NOWAIT);
    }
    free(TAKE(s->sent_us));
    free(TAKE(s->committed_us));
}

void stream_start(struct stream *s, int64_t rate, int64_t jobs)
{
    s->rate = rate;
    s->jobs = jobs;
    s->sent = 0;
    s->done = 0;
    s->behind_us = 0;
    s->begun_us = clock_boot_us();
    (void)uv_timer_start(&s->timer, on_tick, 0, 1);
}

bool stream_is_over(const struct stream *s)
{
    return s->st != STATUS_OK || s->done == s->jobs;
}

int64_t stream_commit_us(const struct stream *s, int64_t n)
{
    int64_t before_us = n > 0 ? s->committed_us[n - 1] : 0;
    return s->committed_us[n] - (before_us > s->sent_us[n] ? before_us : s->sent_us[n]);
}

/* ---- waits ---- */

static const unsigned range_type[] = {PG_INT8, PG_INT8};
static const struct pg_statement starts = {
    .name = "starts",
    .sql = "SELECT id, (result->>'boot_us')::bigint FROM claimd.job_history"
           " WHERE id >= $1 AND id < $2",
    .types = range_type,
    .type_count = 2};

struct waits {
    const struct stream *stream;
    int64_t *us;
    int64_t count;
};

static void on_start(void *ctx, const int64_t *row)
{
    struct waits *w = ctx;
    int64_t n = row[0] - w->stream->first_id;
    if (n >= 0 && n < w->stream->jobs && w->count < w->stream->jobs) {
        w->us[w->count++] = row[1] - w->stream->committed_us[n];
    }
}

enum status stream_read_waits(const struct stream *s, struct cluster *c, int64_t *ret_us,
                              struct err *err)
{
    struct waits waits = {.stream = s, .us = ret_us};
    int64_t end = s->first_id + s->jobs;
    for (int64_t id = s->first_id; id < end; id += PAGE) {
        char storage[2][8];
        const struct pg_param params[] = {
            pg_param_i64(id, storage[0]),
            pg_param_i64(id + PAGE < end ? id + PAGE : end, storage[1])};
        enum status st = db_each(&c->db, &starts, params, 2, on_start, &waits, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return waits.count == s->jobs ? STATUS_OK
                                  : err_fail(err, STATUS_CONFLICT,
                                             "%" PRId64 " of %" PRId64 " jobs are in the history",
                                             waits.count, s->jobs);
}
