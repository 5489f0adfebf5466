/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's claimed jobs without servers and runners: this file stands in for one slot, the job
 * store, the lock and PostgreSQL. */
#include "base/clock.h"
#include "redlock/redlock_async.h"
#include "store/pg/pg.h"
#include "support/suite.h"
#include "worker/jobs/jobs.h"
#include "worker/jobs/lease.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define LEASE ((struct redlock_batch *)&t) /* never looked into */
#define SLOT ((struct slot *)&t)

static struct {
    uv_loop_t loop;
    struct config config;
    struct servers servers;
    struct standing standing;
    struct due due;
    struct active_jobs active;
    struct lengths lengths;
    struct slots slots;
    struct kinds kinds;
    struct worker_metrics metrics;
    struct kind_metrics of_kind;
    struct rand rand;
    struct jobs jobs;

    /* the slot */
    enum slot_state state;
    void *present;
    int flushes;
    int cancels;
    int64_t limit_us;

    /* the job store */
    finish_cb *finished;
    void *finished_ctx;
    enum finish_kind kind;
    char error[JOB_ERROR_MAX + 1];
    int finishes;

    /* the lock */
    int releases;
    int64_t lease_until_us;
} t;

/* ---- in place of a slot ---- */

enum slot_state slot_state(const struct slot *slot)
{
    (void)slot;
    return t.state;
}

bool slot_takes(struct slot *slot, const char *kind, size_t bytes)
{
    (void)slot;
    (void)kind;
    (void)bytes;
    return t.state == SLOT_IDLE;
}

int64_t slot_run(struct slot *slot, const struct job_frame *frame, int64_t kill_at_us, void *user)
{
    (void)slot;
    (void)frame;
    t.state = SLOT_BUSY;
    t.present = user;
    t.limit_us = kill_at_us;
    return 1;
}

void *slot_present(struct slot *slot)
{
    (void)slot;
    return t.present;
}

size_t slot_waiting(const struct slot *slot)
{
    (void)slot;
    return 0;
}

void slot_flush(struct slot *slot)
{
    (void)slot;
    t.flushes++;
}

void slot_limit(struct slot *slot, int64_t nonce, int64_t kill_at_us)
{
    (void)slot;
    (void)nonce;
    t.limit_us = kill_at_us;
}

void slot_cancel(struct slot *slot, int64_t nonce)
{
    (void)slot;
    (void)nonce;
    t.cancels++;
}

bool slot_has_started(const struct slot *slot, int64_t nonce)
{
    (void)slot;
    (void)nonce;
    return true;
}

bool slot_is_loading(const struct slot *slot)
{
    (void)slot;
    return false;
}

bool slot_died_by_itself(const struct slot *slot)
{
    (void)slot;
    return true;
}

void slot_ask_to_stop(struct slot *slot, int64_t nonce, enum stop_reason why)
{
    (void)slot;
    (void)nonce;
    (void)why;
}

void slot_kill_run(struct slot *slot, int64_t nonce)
{
    (void)slot;
    (void)nonce;
}

void slot_give_up_start(struct slot *slot, int64_t after_us)
{
    (void)slot;
    (void)after_us;
}

void slot_take_back(struct slot *slot)
{
    (void)slot;
}

void slot_take_results(struct slot *slot)
{
    (void)slot;
}

const struct runner_page *slot_page(const struct slot *slot)
{
    static struct runner_page page; /* reports nothing */
    (void)slot;
    return &page;
}

/* ---- in place of the servers ---- */

enum status job_store_finish(struct job_store *s, const struct job_finish *finish, finish_cb *done,
                             void *ctx, struct err *err)
{
    (void)s;
    (void)err;
    t.finishes++;
    t.finished = done;
    t.finished_ctx = ctx;
    t.kind = finish->kind;
    (void)snprintf(t.error, sizeof t.error, "%.*s", (int)finish->error_len,
                   finish->error == NULL ? "" : finish->error);
    return STATUS_OK;
}

size_t job_store_waiting(const struct job_store *s)
{
    (void)s;
    return 0;
}

const struct err *job_store_trouble(const struct job_store *s)
{
    (void)s;
    return NULL;
}

bool pg_is_up(const struct pg *pg)
{
    (void)pg;
    return false;
}

enum status pg_send(struct pg *pg, const struct pg_request *request, struct err *err)
{
    (void)pg;
    (void)request;
    return err_fail(err, STATUS_UNAVAILABLE, "not in this test");
}

enum status worker_store_listen(struct pg *pg, const char *channel, bool is_on,
                                worker_done_cb *done, void *ctx, struct err *err)
{
    (void)pg;
    (void)channel;
    (void)is_on;
    (void)done;
    (void)ctx;
    return err_fail(err, STATUS_UNAVAILABLE, "not in this test");
}

int redlock_async_acquire(struct redlock_async *lock, const struct redlock_async_request *request,
                          struct redlock_error *err)
{
    (void)lock;
    (void)request;
    (void)err;
    return -1;
}

size_t redlock_async_voting(const struct redlock_async *lock)
{
    (void)lock;
    return 1;
}

size_t redlock_async_quorum(const struct redlock_async *lock)
{
    (void)lock;
    return 1;
}

enum redlock_state redlock_batch_state(const struct redlock_batch *batch, size_t index)
{
    (void)batch;
    (void)index;
    return REDLOCK_STATE_HELD;
}

int64_t redlock_batch_deadline_us(const struct redlock_batch *batch, size_t index)
{
    (void)batch;
    (void)index;
    return t.lease_until_us;
}

enum redlock_result redlock_batch_result(const struct redlock_batch *batch, size_t index)
{
    (void)batch;
    (void)index;
    return REDLOCK_OK;
}

void redlock_batch_release(struct redlock_batch *batch, size_t index)
{
    (void)batch;
    (void)index;
    t.releases++;
}

void redlock_batch_drop(struct redlock_batch *batch, size_t index)
{
    (void)batch;
    (void)index;
}

/* ---- fixture ---- */

static void setup(void)
{
    const struct jobs_env env = {.servers = &t.servers,
                                 .standing = &t.standing,
                                 .due = &t.due,
                                 .active = &t.active,
                                 .lengths = &t.lengths,
                                 .slots = &t.slots,
                                 .kinds = &t.kinds,
                                 .metrics = &t.metrics,
                                 .rand = &t.rand};
    const struct worker_kind kind = {.name = "a", .plugin = "p", .version = "1"};
    ck_assert_int_eq(kind_set_fill(&t.kinds.served, (const struct worker_kind *[]){&kind}, 1, NULL),
                     STATUS_OK);
    t.kinds.generation = 1;
    t.config.lock.guard_us = US_PER_S;
    t.config.worker.stale_us = 10 * US_PER_S;
    t.standing.stage = WORKER_RUNNING;
    t.standing.heartbeat_confirmed_us = clock_boot_us();
    t.lease_until_us = clock_boot_us() + 3600 * US_PER_S;
    t.state = SLOT_IDLE;
    t.slots.list[0] = SLOT;
    t.slots.count = 1;
    ck_assert_int_eq(uv_loop_init(&t.loop), 0);
    t.servers.loop = &t.loop;
    t.servers.config = &t.config;
    ck_assert_int_eq(jobs_open(&t.jobs, &env, NULL), STATUS_OK);
}

static void teardown(void)
{
    jobs_close(&t.jobs);
    ck_assert_int_eq(uv_run(&t.loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(&t.loop), 0);
    kind_set_release(&t.kinds.served);
    active_release(&t.active);
}

/* Returns a claimed job, as intake leaves it. */
static struct active_job *claimed(int64_t id)
{
    struct active_job *job = active_add(&t.active, id);
    (void)active_step(&t.active, job, ON_VERDICT);
    (void)active_step(&t.active, job, ON_CLAIMED);
    job->batch = LEASE;
    job->fence = 100 + id;
    job->metrics = &t.of_kind;
    job->settings = (struct kind_settings){.max_attempts = 3, .timeout_us = 60 * US_PER_S};
    job->attempt = 1;
    job->args = strdup("{}");
    job->args_len = 2;
    job->claimed_us = clock_boot_us();
    (void)snprintf(job->kind, sizeof job->kind, "a");
    (void)snprintf(job->queue, sizeof job->queue, "default");
    return job;
}

static struct active_job *running(int64_t id)
{
    struct active_job *job = claimed(id);
    active_push_ready(&t.active, job);
    dispatch_jobs(&t.jobs);
    ck_assert_ptr_eq(t.present, job);
    return job;
}

static void answer(int64_t id, enum finish_verdict verdict)
{
    const struct finish_reply reply = {
        .id = id, .fence = 100 + id, .verdict = verdict, .kind = t.kind};
    t.finished(t.finished_ctx, &reply);
}

static void end_run(struct active_job *job)
{
    const struct result_frame result = {.outcome = CLAIMD_DONE};
    const struct slot_run run = {.end = RUN_END_SAID, .result = &result};
    run_on_ended(&t.jobs, SLOT, job, &run);
    t.present = NULL;
    t.state = SLOT_IDLE;
}

/* ---- tests ---- */

START_TEST(a_ready_job_goes_to_an_idle_runner)
{
    struct active_job *job = running(1);
    ck_assert_int_eq(job->state, STATE_BEGUN);
    ck_assert_int_eq(t.flushes, 1);
    end_run(job);
    answer(1, FINISH_ACCEPTED);
}
END_TEST

START_TEST(a_job_whose_lease_has_ended_is_handed_back_instead)
{
    struct active_job *job = claimed(1);
    t.lease_until_us = clock_boot_us() - 1;
    active_push_ready(&t.active, job);
    dispatch_jobs(&t.jobs);
    ck_assert_ptr_null(t.present);
    ck_assert_int_eq(t.kind, FINISH_HAND_BACK);
    answer(1, FINISH_ACCEPTED);
    ck_assert(t.active.ended->is_returned);
}
END_TEST

START_TEST(the_lease_is_released_once_the_end_is_committed_and_not_before)
{
    struct active_job *job = running(1);
    end_run(job);
    ck_assert_int_eq(t.kind, FINISH_COMPLETED);
    ck_assert_int_eq(t.releases, 0);
    ck_assert_uint_eq(active_total(&t.active), 1);
    answer(1, FINISH_ACCEPTED);
    ck_assert_int_eq(t.releases, 1);
    ck_assert_uint_eq(active_total(&t.active), 0);
    ck_assert_ptr_eq(t.active.ended, job);
    ck_assert(!job->is_returned);
}
END_TEST

START_TEST(jobs_that_leave_are_handed_back_or_fail_with_the_reason)
{
    active_leave(&t.active, claimed(1));
    run_end_leaving(&t.jobs);
    ck_assert_int_eq(t.kind, FINISH_HAND_BACK);
    answer(1, FINISH_STALE);
    ck_assert(!t.active.ended->is_returned);
    struct active_job *job = claimed(2);
    job->too_long = "args";
    active_leave(&t.active, job);
    run_end_leaving(&t.jobs);
    ck_assert_int_eq(t.kind, FINISH_DISCARDED);
    ck_assert(strstr(t.error, "args: too long for a handler") != NULL);
    answer(2, FINISH_ACCEPTED);
}
END_TEST

START_TEST(a_free_runner_is_only_marked)
{
    struct active_job *job = claimed(1);
    active_push_ready(&t.active, job);
    run_on_room(&t.jobs, SLOT);
    ck_assert(t.due.dispatch && t.due.room);
    ck_assert_ptr_null(t.present);
    dispatch_jobs(&t.jobs);
    ck_assert_ptr_eq(t.present, job);
    end_run(job);
    answer(1, FINISH_ACCEPTED);
}
END_TEST

START_TEST(a_cancel_is_marked_and_reaches_the_runner_in_the_same_turn)
{
    struct active_job *job = running(1);
    const struct worker_cancel cancels[] = {{.id = 1, .fence = 101}, {.id = 9, .fence = 1}};
    cancel_take(&t.jobs, &(struct worker_heartbeat_reply){.cancels = cancels, .cancel_count = 2});
    ck_assert(t.due.cancels);
    ck_assert_int_eq(t.cancels, 0);
    cancel_act(&t.jobs);
    ck_assert_int_eq(t.cancels, 1);
    end_run(job);
    answer(1, FINISH_ACCEPTED);
}
END_TEST

START_TEST(a_confirmed_heartbeat_lets_runs_last_longer)
{
    struct active_job *job = running(1);
    job->settings.timeout_us = 3600 * US_PER_S;
    t.lease_until_us = 0;
    run_limit_all(&t.jobs, t.standing.heartbeat_confirmed_us);
    int64_t before = t.limit_us;
    t.standing.heartbeat_confirmed_us += US_PER_S;
    run_limit_all(&t.jobs, t.standing.heartbeat_confirmed_us);
    ck_assert_int_eq(t.limit_us, before + US_PER_S);
    end_run(job);
    answer(1, FINISH_ACCEPTED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker_jobs");
    TCase *tc = tcase_create("jobs");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_ready_job_goes_to_an_idle_runner);
    tcase_add_test(tc, a_job_whose_lease_has_ended_is_handed_back_instead);
    tcase_add_test(tc, the_lease_is_released_once_the_end_is_committed_and_not_before);
    tcase_add_test(tc, jobs_that_leave_are_handed_back_or_fail_with_the_reason);
    tcase_add_test(tc, a_free_runner_is_only_marked);
    tcase_add_test(tc, a_cancel_is_marked_and_reaches_the_runner_in_the_same_turn);
    tcase_add_test(tc, a_confirmed_heartbeat_lets_runs_last_longer);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
