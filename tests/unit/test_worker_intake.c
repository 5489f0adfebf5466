/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's intake without servers: this file stands in for the hints, the lock, the job store
 * and the runners. */
#include "base/clock.h"
#include "support/suite.h"
#include "worker/intake/intake.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH_MAX 8
#define LEASE ((struct redlock_batch *)&t) /* looked into by this file only */

static struct {
    uv_loop_t loop;
    uv_timer_t tick; /* lets a waiting test check its deadline */
    struct config config;
    struct servers servers;
    struct standing standing;
    struct due due;
    struct active_jobs active;
    struct lengths lengths;
    struct kinds kinds;
    struct worker_metrics metrics;
    struct kind_metrics of_kind;
    struct rand rand;
    struct intake intake;
    size_t idle;

    /* the lock */
    redlock_async_acquired_cb *acquired;
    void *users[BATCH_MAX];
    size_t asked;
    enum redlock_result verdict;
    int releases;

    /* the job store */
    claim_cb *claimed;
    int claims;
    int questions[QUESTION_COUNT];
    bool is_pg_down;

    /* the hints */
    int64_t pushed[BATCH_MAX];
    size_t pushed_count;
    size_t sets;
    int pokes;
} t;

/* ---- in place of the lock ---- */

int redlock_async_acquire(struct redlock_async *lock, const struct redlock_async_request *request,
                          struct redlock_error *err)
{
    (void)lock;
    (void)err;
    t.acquired = request->done;
    t.asked = request->count;
    for (size_t i = 0; i < request->count; i++) {
        t.users[i] = request->keys[i].user;
    }
    return 0;
}

int redlock_async_flush(struct redlock_async *lock, redlock_async_flushed_cb *done, void *ctx,
                        struct redlock_error *err)
{
    (void)lock;
    (void)err;
    done(ctx);
    return 0;
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

size_t redlock_batch_count(const struct redlock_batch *batch)
{
    (void)batch;
    return t.asked;
}

void *redlock_batch_user(const struct redlock_batch *batch, size_t index)
{
    (void)batch;
    return t.users[index];
}

enum redlock_result redlock_batch_result(const struct redlock_batch *batch, size_t index)
{
    (void)batch;
    (void)index;
    return t.verdict;
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
    return INT64_MAX;
}

void redlock_batch_release(struct redlock_batch *batch, size_t index)
{
    (void)batch;
    (void)index;
    t.releases++;
}

/* ---- in place of PostgreSQL ---- */

bool pg_is_up(const struct pg *pg)
{
    (void)pg;
    return true;
}

bool job_store_is_idle(const struct job_store *s)
{
    (void)s;
    return true;
}

enum status job_store_claim(struct job_store *s, const struct claim_request *request,
                            struct err *err)
{
    (void)s;
    (void)err;
    t.claims++;
    t.claimed = request->done;
    return STATUS_OK;
}

enum status job_store_args(struct job_store *s, int64_t id, int64_t fence, args_cb *done, void *ctx,
                           struct err *err)
{
    (void)s;
    (void)id;
    (void)fence;
    (void)done;
    (void)ctx;
    return err_fail(err, STATUS_UNAVAILABLE, "not in this test");
}

/* All jobs are due, those with even ids exist, and job id + 100 is next after a job. */
enum status job_store_ask(struct job_store *s, enum job_question question, const int64_t *ids,
                          size_t count, freed_cb *each, answered_cb *done, void *ctx,
                          struct err *err)
{
    (void)s;
    if (t.is_pg_down) {
        return err_fail(err, STATUS_UNAVAILABLE, "down");
    }
    t.questions[question]++;
    for (size_t i = 0; i < count; i++) {
        int64_t id = question == QUESTION_NEXT ? ids[i] + 100 : ids[i];
        if (question != QUESTION_EXISTS || id % 2 == 0) {
            each(ctx, &(struct freed_job){.id = id, .queue = "default"});
        }
    }
    done(ctx, STATUS_OK);
    return STATUS_OK;
}

/* ---- in place of the hints ---- */

enum status hints_push(struct hints *hints, const struct hint *list, size_t count,
                       hints_pushed_cb *done, void *ctx, struct err *err)
{
    (void)hints;
    (void)err;
    for (size_t i = 0; i < count; i++) {
        t.pushed[t.pushed_count++] = list[i].id;
    }
    done(ctx, STATUS_OK, (int64_t)count);
    return STATUS_OK;
}

void hints_popper_name(struct hints_popper *popper, const char *name)
{
    (void)popper;
    (void)name;
}

enum status hints_popper_listen(struct hints_popper *popper, const struct hints_set *sets,
                                size_t count, enum hints_left left, struct err *err)
{
    (void)popper;
    (void)sets;
    (void)left;
    (void)err;
    t.sets = count;
    return STATUS_OK;
}

void hints_popper_poke(struct hints_popper *popper)
{
    (void)popper;
    t.pokes++;
}

/* ---- in place of the rest of the worker ---- */

struct kind_metrics *worker_metrics_kind(struct worker_metrics *m, const char *queue,
                                         const char *kind)
{
    (void)m;
    (void)queue;
    (void)kind;
    return &t.of_kind;
}

static void count_runners(void *ctx, int64_t now_us, struct capacity_facts *f)
{
    (void)ctx;
    (void)now_us;
    f->runners += t.idle;
    f->idle += t.idle;
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static void setup(void)
{
    const struct intake_env env = {.servers = &t.servers,
                                   .standing = &t.standing,
                                   .due = &t.due,
                                   .active = &t.active,
                                   .lengths = &t.lengths,
                                   .kinds = &t.kinds,
                                   .metrics = &t.metrics,
                                   .rand = &t.rand,
                                   .count_runners = count_runners};
    const struct worker_kind kind = {.name = "a", .plugin = "p", .version = "1"};
    ck_assert_int_eq(kind_set_fill(&t.kinds.served, (const struct worker_kind *[]){&kind}, 1, NULL),
                     STATUS_OK);
    t.config.worker.queue_count = 1;
    (void)snprintf(t.config.worker.queues[0], sizeof t.config.worker.queues[0], "default");
    t.config.worker.claim_ahead = 100;
    t.config.worker.batch_max = BATCH_MAX;
    t.config.postgres.timeout_us = US_PER_S;
    t.standing.stage = WORKER_RUNNING;
    t.standing.is_registered = true;
    t.idle = 2;
    ck_assert_int_eq(uv_loop_init(&t.loop), 0);
    (void)uv_timer_init(&t.loop, &t.tick);
    (void)uv_timer_start(&t.tick, on_tick, 10, 10);
    t.servers.loop = &t.loop;
    t.servers.config = &t.config;
    t.servers.popper = (struct hints_popper *)&t; /* never looked into */
    ck_assert_int_eq(intake_open(&t.intake, &env, NULL), STATUS_OK);
    listen_take(&t.intake, &(struct worker_heartbeat_reply){.asked = ""});
    listen_update(&t.intake);
}

static void teardown(void)
{
    intake_close(&t.intake);
    uv_close((uv_handle_t *)&t.tick, NULL);
    ck_assert_int_eq(uv_run(&t.loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(&t.loop), 0);
    kind_set_release(&t.kinds.served);
    lengths_release(&t.lengths);
    active_release(&t.active);
}

static void run_until_pushed(size_t count)
{
    int64_t end_us = clock_boot_us() + SOON_US;
    while (t.pushed_count < count) {
        ck_assert_int_lt(clock_boot_us(), end_us);
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    }
}

static void pop(int64_t id)
{
    intake_popped(&t.intake, &(struct hint){.id = id, .score = 5, .queue = "default"}, 1);
}

static void answer_lock(enum redlock_result verdict)
{
    t.verdict = verdict;
    t.acquired(&t.intake, LEASE);
}

static void answer_claimed(int64_t id)
{
    const struct claimed_job job = {.id = id,
                                    .fence = 1,
                                    .worker_id = "w",
                                    .attempt = 1,
                                    .queue = "default",
                                    .kind = "a",
                                    .args = "{}",
                                    .args_len = 2};
    t.claimed(&t.intake, &job, 1, NULL, 0);
}

static void answer_refused(int64_t id, enum claim_refusal why)
{
    const struct refused_job job = {.id = id, .why = why, .queue = "default", .kind = "a"};
    t.claimed(&t.intake, NULL, 0, &job, 1);
}

/* Takes the job out of the table, as the part that runs it would. */
static void end(int64_t id)
{
    struct active_job *job = active_find(&t.active, id);
    ck_assert_int_eq(job->state, STATE_READY);
    active_take(&t.active, job);
    (void)active_step(&t.active, job, ON_END);
    active_end(&t.active, job);
}

/* ---- tests ---- */

START_TEST(it_wants_ids_for_idle_runners_and_only_with_a_row)
{
    ck_assert_uint_ge(intake_want(&t.intake), 2);
    t.standing.is_registered = false;
    ck_assert_uint_eq(intake_want(&t.intake), 0);
    t.standing.is_registered = true;
    t.standing.is_quiet = true;
    ck_assert_uint_eq(intake_want(&t.intake), 0);
}
END_TEST

START_TEST(it_listens_to_a_queue_and_its_kinds_unless_it_is_paused)
{
    ck_assert_uint_eq(t.sets, 2);
    t.due = (struct due){.listen = false};
    const char *paused[] = {"default"};
    listen_take(&t.intake,
                &(struct worker_heartbeat_reply){.paused_queues = paused, .paused_count = 1});
    ck_assert(t.due.listen);
    ck_assert_uint_eq(t.sets, 2);
    listen_update(&t.intake);
    ck_assert_uint_eq(t.sets, 0);
}
END_TEST

START_TEST(a_job_that_wins_lock_and_claim_is_ready_and_marked)
{
    pop(1);
    ck_assert_int_eq(t.claims, 1); /* beside its lock, since a runner is idle */
    answer_claimed(1);
    ck_assert_ptr_null(t.active.ready);
    t.due = (struct due){.listen = false};
    answer_lock(REDLOCK_OK);
    ck_assert_ptr_nonnull(t.active.ready);
    ck_assert(t.due.ready);
    end(1);
}
END_TEST

START_TEST(a_claim_without_its_lock_leaves_to_be_handed_back)
{
    pop(1);
    answer_claimed(1);
    answer_lock(REDLOCK_SPLIT);
    ck_assert_ptr_null(t.active.ready);
    struct active_job *job = active_take_leaving(&t.active);
    ck_assert_ptr_nonnull(job);
    ck_assert_ptr_null(job->too_long);
    ck_assert_int_eq(t.releases, 0);
    active_remove(&t.active, job);
}
END_TEST

START_TEST(a_job_that_does_not_exist_is_let_go_and_its_hint_dropped)
{
    pop(1);
    answer_lock(REDLOCK_OK);
    answer_refused(1, CLAIM_GONE);
    ck_assert_int_eq(t.releases, 1);
    ck_assert_uint_eq(active_total(&t.active), 0);
    ck_assert(intake_is_idle(&t.intake));
}
END_TEST

START_TEST(the_hint_of_a_locked_row_goes_back)
{
    pop(1);
    answer_lock(REDLOCK_OK);
    answer_refused(1, CLAIM_PUT_BACK);
    ck_assert_int_eq(t.releases, 1);
    ck_assert(!intake_is_idle(&t.intake));
    run_until_pushed(1);
    ck_assert_int_eq(t.pushed[0], 1);
    ck_assert(intake_is_idle(&t.intake));
}
END_TEST

START_TEST(the_hint_of_a_held_lock_goes_back_once_PostgreSQL_says_that_the_job_waits)
{
    pop(1);
    answer_refused(1, CLAIM_GONE); /* of the claim beside the lock */
    answer_lock(REDLOCK_HELD);
    ck_assert_uint_eq(active_total(&t.active), 0);
    ck_assert_int_eq(t.questions[QUESTION_DUE], 0);
    pop(2);
    answer_lock(REDLOCK_HELD);
    run_until_pushed(1);
    ck_assert_int_eq(t.questions[QUESTION_DUE], 1);
    ck_assert_int_eq(t.pushed[0], 2);
}
END_TEST

START_TEST(the_hint_of_a_held_lock_is_left_to_a_full_pass_if_PostgreSQL_gives_no_answer)
{
    t.is_pg_down = true;
    pop(1);
    answer_refused(1, CLAIM_PUT_BACK);
    answer_lock(REDLOCK_HELD);
    ck_assert(!intake_is_idle(&t.intake));
    int64_t end_us = clock_boot_us() + SOON_US;
    while (!t.standing.has_lost_pop) {
        ck_assert_int_lt(clock_boot_us(), end_us);
        (void)uv_run(&t.loop, UV_RUN_ONCE);
    }
    ck_assert(intake_is_idle(&t.intake));
    ck_assert_uint_eq(t.pushed_count, 0);
}
END_TEST

START_TEST(a_job_that_is_refused_for_a_limit_has_the_hint_of_the_next_one_pushed)
{
    bool is_refused_first = _i == 1; /* by the claim beside its lock */
    pop(1);
    if (is_refused_first) {
        answer_refused(1, CLAIM_LIMITED);
    }
    answer_lock(REDLOCK_OK);
    if (!is_refused_first) {
        answer_refused(1, CLAIM_LIMITED);
    }
    ck_assert_int_eq(t.releases, 1);
    ck_assert_int_eq(t.questions[QUESTION_NEXT], 1);
    run_until_pushed(1);
    ck_assert_int_eq(t.pushed[0], 101);
}
END_TEST

static void meet_many_that_are_gone(void)
{
    for (int64_t id = 1000; id < 1000 + SIFT_GONE_MANY; id++) {
        ck_assert_uint_lt(intake_want(&t.intake), HINTS_POP_MAX);
        pop(id);
        answer_lock(REDLOCK_OK);
        answer_refused(id, CLAIM_GONE);
    }
    ck_assert_uint_eq(intake_want(&t.intake), HINTS_POP_MAX);
}

START_TEST(after_many_jobs_that_are_gone_only_those_that_exist_are_locked)
{
    const struct hint list[] = {{.id = 1, .score = 5, .queue = "default"},
                                {.id = 2, .score = 5, .queue = "default"},
                                {.id = 4, .score = 5, .queue = "default"}};
    meet_many_that_are_gone();
    intake_popped(&t.intake, list, 2);
    ck_assert_int_eq(t.questions[QUESTION_EXISTS], 1);
    ck_assert_uint_eq(active_total(&t.active), 1);
    ck_assert_ptr_nonnull(active_find(&t.active, 2));
    answer_claimed(2);
    answer_lock(REDLOCK_OK);
    ck_assert_uint_eq(intake_want(&t.intake), HINTS_POP_MAX); /* a runner has no job yet */
    intake_popped(&t.intake, &list[2], 1);
    ck_assert_ptr_nonnull(active_find(&t.active, 4));
    ck_assert_uint_eq(intake_want(&t.intake), 0);
    answer_claimed(4);
    answer_lock(REDLOCK_OK);
    end(2);
    end(4);
}
END_TEST

START_TEST(hints_go_back_if_PostgreSQL_does_not_say_which_jobs_exist)
{
    t.is_pg_down = true;
    meet_many_that_are_gone();
    pop(1);
    run_until_pushed(1);
    ck_assert_int_eq(t.pushed[0], 1);
    ck_assert_uint_eq(active_total(&t.active), 0);
    ck_assert_uint_eq(intake_want(&t.intake), HINTS_POP_MAX);
}
END_TEST

START_TEST(hints_without_room_go_back)
{
    /* jobs of this kind are not known to be short, so they are not claimed ahead */
    const struct hint of_kind[] = {{.id = 1, .queue = "default", .kind = "a"},
                                   {.id = 2, .queue = "default", .kind = "a"}};
    t.idle = 1;
    intake_popped(&t.intake, of_kind, 2);
    ck_assert_uint_eq(active_total(&t.active), 1);
    run_until_pushed(1);
    ck_assert_int_eq(t.pushed[0], 2);
    answer_claimed(1);
    answer_lock(REDLOCK_OK);
    end(1);
}
END_TEST

START_TEST(the_hint_of_a_job_that_was_handed_back_returns_when_the_end_is_taken)
{
    pop(1);
    answer_claimed(1);
    answer_lock(REDLOCK_OK);
    end(1);
    t.active.ended->is_returned = true;
    t.due = (struct due){.listen = false};
    let_go_ended(&t.intake);
    ck_assert_ptr_null(t.active.ended);
    ck_assert(t.due.room && t.due.end);
    run_until_pushed(1);
    ck_assert_int_eq(t.pushed[0], 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker_intake");
    TCase *tc = tcase_create("intake");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, it_wants_ids_for_idle_runners_and_only_with_a_row);
    tcase_add_test(tc, it_listens_to_a_queue_and_its_kinds_unless_it_is_paused);
    tcase_add_test(tc, a_job_that_wins_lock_and_claim_is_ready_and_marked);
    tcase_add_test(tc, a_claim_without_its_lock_leaves_to_be_handed_back);
    tcase_add_test(tc, a_job_that_does_not_exist_is_let_go_and_its_hint_dropped);
    tcase_add_test(tc, the_hint_of_a_locked_row_goes_back);
    tcase_add_test(tc, the_hint_of_a_held_lock_goes_back_once_PostgreSQL_says_that_the_job_waits);
    tcase_add_test(tc,
                   the_hint_of_a_held_lock_is_left_to_a_full_pass_if_PostgreSQL_gives_no_answer);
    tcase_add_loop_test(tc, a_job_that_is_refused_for_a_limit_has_the_hint_of_the_next_one_pushed,
                        0, 2);
    tcase_add_test(tc, after_many_jobs_that_are_gone_only_those_that_exist_are_locked);
    tcase_add_test(tc, hints_go_back_if_PostgreSQL_does_not_say_which_jobs_exist);
    tcase_add_test(tc, hints_without_room_go_back);
    tcase_add_test(tc, the_hint_of_a_job_that_was_handed_back_returns_when_the_end_is_taken);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
