/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/stream.h"

#include "base/clock.h"

static const struct pg_statement insert_job = {
    .name = "stream_job", .sql = "INSERT INTO claimd.job (kind) VALUES ('stamp') RETURNING id"};

static void stop(struct stream *s, enum status st, const struct err *err)
{
    s->st = st;
    s->err = *err;
    (void)uv_timer_stop(&s->timer);
}

/* One client, so ids are in the order of its commits, without gaps. */
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
        err_set(&gap, STATUS_CONFLICT, 0, "somebody else inserts jobs");
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
        return false; /* PostgreSQL is far behind: with the next tick */
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

/* The timer lies in the caller's memory. */
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
