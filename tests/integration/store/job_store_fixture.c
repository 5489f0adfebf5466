/* SPDX-License-Identifier: Apache-2.0 */
#include "job_store_fixture.h"

#include <stdio.h>

struct sql *side;
struct store store_a;
struct answers got;

static void on_up(void *ctx)
{
    struct store *s = ctx;
    s->ups++;
    if (s->jobs != NULL) {
        job_store_on_up(s->jobs);
    }
}

static void on_down(void *ctx, const struct err *why)
{
    (void)why;
    ((struct store *)ctx)->downs++;
}

static void on_freed(void *ctx, const struct freed_job *job)
{
    struct answers *a = ctx;
    a->freed[a->freed_count++] = job->id;
}

void store_open(struct store *s, const char *worker_id)
{
    char conninfo[SERVER_PATH_MAX * 2];
    *s = (struct store){.pg = NULL};
    (void)snprintf(conninfo, sizeof conninfo, "%s options='-c role=claimd_worker'", world.conninfo);
    const struct pg_options options = {.loop = &world.loop,
                                       .conninfo = conninfo,
                                       .application_name = "store",
                                       .timeout_us = 5 * US_PER_S,
                                       .lock_timeout_ms = 200,
                                       .on_up = on_up,
                                       .on_down = on_down,
                                       .ctx = s};
    struct err err = {0};
    ck_assert_msg(pg_open(&options, &s->pg, &err) == STATUS_OK, "%s", err.msg);
    const struct job_store_options jobs = {.pg = s->pg,
                                           .loop = &world.loop,
                                           .worker_id = worker_id,
                                           .on_freed = on_freed,
                                           .ctx = &got};
    ck_assert_int_eq(job_store_open(&jobs, &s->jobs, &err), STATUS_OK);
}

void store_start(struct store *s, const char *worker_id)
{
    store_open(s, worker_id);
    RUN_UNTIL(s->ups == 1);
}

void store_stop(struct store *s)
{
    job_store_close(s->jobs);
    pg_close(s->pg);
    *s = (struct store){.pg = NULL};
}

void jobs_setup(void)
{
    world_setup();
    memset(&got, 0, sizeof got);
    side = sql_open(world.conninfo);
    store_start(&store_a, WORKER_A);
}

void jobs_teardown(void)
{
    store_stop(&store_a);
    sql_close(side);
    world_teardown();
}

int64_t add_jobs(int count)
{
    int64_t last = sql_number(side, "SELECT COALESCE(max(id), 0)::text FROM claimd.job");
    sql_run(side,
            "INSERT INTO claimd.job (kind, args) SELECT 'noop', jsonb_build_object('n', n) FROM "
            "generate_series(1, %d) n",
            count);
    return sql_number(side, "SELECT min(id)::text FROM claimd.job WHERE id > %lld",
                      (long long)last);
}

static void on_claimed(void *ctx, const struct claimed_job *jobs, size_t count,
                       const struct refused_job *refused_jobs, size_t refused_count)
{
    struct answers *a = ctx;
    a->claims++;
    for (size_t i = 0; i < count; i++) {
        size_t n = a->job_count++;
        a->jobs[n] = jobs[i];
        (void)snprintf(a->args[n], sizeof a->args[n], "%s",
                       jobs[i].args != NULL ? jobs[i].args : "");
        (void)snprintf(a->queues[n], sizeof a->queues[n], "%s", jobs[i].queue);
        a->jobs[n].args = jobs[i].args != NULL ? a->args[n] : NULL;
        (void)snprintf(a->workers[n], sizeof a->workers[n], "%s", jobs[i].worker_id);
        a->jobs[n].queue = a->queues[n];
        a->jobs[n].worker_id = a->workers[n];
        a->jobs[n].kind = NULL;
    }
    for (size_t i = 0; i < refused_count; i++) {
        size_t n = a->refused_count++;
        a->refused[n] = refused_jobs[i];
        (void)snprintf(a->refused_kinds[n], sizeof a->refused_kinds[n], "%s",
                       refused_jobs[i].kind != NULL ? refused_jobs[i].kind : "");
        a->refused[n].kind = a->refused_kinds[n];
        a->refused[n].queue = NULL;
    }
}

void ask(struct store *s, int64_t first, size_t count, size_t ahead_from)
{
    static const char *const kinds[] = {"noop", "other"};
    int64_t ids[IDS_MAX];
    for (size_t i = 0; i < count; i++) {
        ids[i] = first + (int64_t)i;
    }
    const struct claim_request request = {.ids = ids,
                                          .count = count,
                                          .kinds = kinds,
                                          .kind_count = ARRAY_COUNT(kinds),
                                          .ahead_from = ahead_from,
                                          .done = on_claimed,
                                          .ctx = &got};
    struct err err = {0};
    ck_assert_msg(job_store_claim(s->jobs, &request, &err) == STATUS_OK, "%s", err.msg);
}

void claim_now(struct store *s, int64_t first, size_t count)
{
    int before = got.claims;
    ask(s, first, count, count);
    RUN_UNTIL(got.claims == before + 1);
}

const struct claimed_job *claimed(int64_t id)
{
    for (size_t i = 0; i < got.job_count; i++) {
        if (got.jobs[i].id == id) {
            return &got.jobs[i];
        }
    }
    return NULL;
}

const struct refused_job *refused(int64_t id)
{
    for (size_t i = 0; i < got.refused_count; i++) {
        if (got.refused[i].id == id) {
            return &got.refused[i];
        }
    }
    return NULL;
}

static void on_finished(void *ctx, const struct finish_reply *reply)
{
    struct answers *a = ctx;
    a->finishes++;
    a->verdicts[reply->verdict]++;
    if (reply->verdict == FINISH_REFUSED) {
        a->last_refused_id = reply->id;
    }
}

struct job_finish finish_of(size_t n, enum finish_kind kind)
{
    const struct claimed_job *job = &got.jobs[n];
    return (struct job_finish){.id = job->id,
                               .fence = job->fence,
                               .worker_id = job->worker_id,
                               .attempt = job->attempt,
                               .flags = job->flags,
                               .key_row = job->key_row,
                               .second_row = job->second_row,
                               .place = job->place,
                               .attempted_at_unix_us = job->attempted_at_unix_us,
                               .kind = kind};
}

void submit(struct store *s, const struct job_finish *f)
{
    struct err err = {0};
    ck_assert_msg(job_store_finish(s->jobs, f, on_finished, &got, &err) == STATUS_OK, "%s",
                  err.msg);
}
