/* SPDX-License-Identifier: Apache-2.0 */
#include "support/suite.h"
#include "worker/jobs/active_jobs.h"

#include <check.h>
#include <signal.h>

START_TEST(S19_an_id_is_held_once)
{
    struct active_jobs h = {0};
    struct active_job *job = active_add(&h, 42);
    ck_assert_ptr_nonnull(job);
    ck_assert_ptr_null(active_add(&h, 42));
    ck_assert_ptr_eq(active_find(&h, 42), job);
    ck_assert_uint_eq(active_total(&h), 1);
    active_remove(&h, job);
    ck_assert_uint_eq(active_total(&h), 0);
}
END_TEST

/* Makes a job locked, claimed, and ready for a runner. */
static void make_ready(struct active_jobs *h, struct active_job *job)
{
    ck_assert_int_eq(active_step(h, job, ON_VERDICT), DO_CLAIM);
    ck_assert_int_eq(active_step(h, job, ON_CLAIMED), DO_GO_ON);
    active_push_ready(h, job);
}

static struct active_job *add_ready(struct active_jobs *h, int64_t id, int64_t score)
{
    struct active_job *job = active_add(h, id);
    ck_assert_ptr_nonnull(job);
    job->score = score;
    job->claimed_us = id;
    make_ready(h, job);
    return job;
}

/* Events, of which the last one decides. */
static const struct way {
    const char *name;
    enum active_event events[4];
    size_t count;
    enum active_action action;
    enum active_phase phase;
} ways[] = {
    {"locked, then claimed", {ON_VERDICT, ON_CLAIMED}, 2, DO_GO_ON, ACTIVE_CLAIMING},
    {"locked, then refused", {ON_VERDICT, ON_REFUSED}, 2, DO_LET_GO, ACTIVE_CLAIMING},
    {"locked, then claimed in vain",
     {ON_VERDICT, ON_CLAIMED_UNFIT},
     2,
     DO_HAND_BACK,
     ACTIVE_CLAIMING},
    {"both asked, claimed first", {ON_ASKED_BESIDE, ON_CLAIMED}, 2, DO_NOTHING, ACTIVE_LOCKING},
    {"both asked, refused first", {ON_ASKED_BESIDE, ON_REFUSED}, 2, DO_NOTHING, ACTIVE_LOCKING},
    {"both asked, locked first", {ON_ASKED_BESIDE, ON_VERDICT}, 2, DO_NOTHING, ACTIVE_CLAIMING},
    {"claimed, then locked",
     {ON_ASKED_BESIDE, ON_CLAIMED, ON_VERDICT},
     3,
     DO_GO_ON,
     ACTIVE_CLAIMING},
    {"claimed in vain, then locked",
     {ON_ASKED_BESIDE, ON_CLAIMED_UNFIT, ON_VERDICT},
     3,
     DO_HAND_BACK,
     ACTIVE_CLAIMING},
    {"refused, then locked",
     {ON_ASKED_BESIDE, ON_REFUSED, ON_VERDICT},
     3,
     DO_LET_GO,
     ACTIVE_CLAIMING},
    {"both asked, locked, then claimed",
     {ON_ASKED_BESIDE, ON_VERDICT, ON_CLAIMED},
     3,
     DO_GO_ON,
     ACTIVE_CLAIMING},
    {"args asked for", {ON_VERDICT, ON_CLAIMED, ON_ARGS_ASKED}, 3, DO_NOTHING, ACTIVE_FETCHING},
    {"handed back", {ON_VERDICT, ON_CLAIMED, ON_END}, 3, DO_NOTHING, ACTIVE_FINISHING},
};

START_TEST(a_job_goes_on_when_both_its_lock_and_its_claim_have_answered)
{
    const struct way *way = &ways[_i];
    struct active_jobs h = {0};
    struct active_job *job = active_add(&h, 1);
    enum active_action action = DO_NOTHING;
    ck_assert_ptr_nonnull(job);
    for (size_t i = 0; i < way->count; i++) {
        action = active_step(&h, job, way->events[i]);
    }
    ck_assert_msg(action == way->action, "%s: action %d", way->name, (int)action);
    ck_assert_msg(active_phase(job) == way->phase, "%s: %d", way->name, (int)active_phase(job));
    ck_assert_uint_eq(h.count[way->phase], 1);
    active_remove(&h, job);
    ck_assert_uint_eq(h.count[way->phase], 0);
}
END_TEST

START_TEST(a_placed_job_counts_as_such_until_a_runner_has_it_and_when_it_comes_back)
{
    struct active_jobs h = {0};
    struct active_job *job = active_add(&h, 1);
    ck_assert_ptr_nonnull(job);
    active_place(&h, job);
    make_ready(&h, job);
    ck_assert_uint_eq(h.placed, 1);
    active_take(&h, job);
    (void)active_step(&h, job, ON_SENT);
    ck_assert_uint_eq(h.placed, 0);
    active_push_ready(&h, job); /* taken back from behind a slow job */
    ck_assert_uint_eq(h.placed, 1);
    active_take(&h, job);
    (void)active_step(&h, job, ON_SENT);
    (void)active_step(&h, job, ON_BEGUN);
    (void)active_step(&h, job, ON_END);
    ck_assert_int_eq(active_phase(job), ACTIVE_FINISHING);
    active_remove(&h, job);
    ck_assert_uint_eq(h.placed, 0);
}
END_TEST

/* Impossible events end the process: its jobs are rescued, and none is finished twice. */
static const enum active_event impossible[][3] = {
    {ON_VERDICT, ON_VERDICT, ON_END},         /* a second verdict */
    {ON_VERDICT, ON_CLAIMED, ON_CLAIMED},     /* a second answer */
    {ON_ASKED_BESIDE, ON_CLAIMED, ON_REFUSED} /* an answer of both kinds */
};

START_TEST(a_job_that_is_told_of_twice_is_noticed)
{
    struct active_jobs h = {0};
    struct active_job *job = active_add(&h, 1);
    ck_assert_ptr_nonnull(job);
    for (size_t i = 0; i < ARRAY_COUNT(impossible[_i]); i++) {
        (void)active_step(&h, job, impossible[_i][i]);
    }
}
END_TEST

static void expect_taken(struct active_jobs *h, struct active_job *job, int64_t id)
{
    ck_assert_ptr_nonnull(job);
    ck_assert_int_eq(job->id, id);
    (void)active_step(h, job, ON_SENT);
    active_remove(h, job);
}

START_TEST(ready_jobs_leave_by_score_and_equals_in_the_order_in_which_they_came)
{
    struct active_jobs h = {0};
    const int64_t scores[] = {20, 20, 10, 30, 20, 10};
    const int64_t order[] = {3, 6, 1, 2, 5, 4};
    for (size_t i = 0; i < ARRAY_COUNT(scores); i++) {
        add_ready(&h, (int64_t)i + 1, scores[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(order); i++) {
        expect_taken(&h, active_take_ready(&h), order[i]);
    }
    ck_assert_ptr_null(active_take_ready(&h));
    for (int p = 0; p < ACTIVE_PHASE_COUNT; p++) {
        ck_assert_uint_eq(h.count[p], 0);
    }
}
END_TEST

START_TEST(a_job_that_others_pass_is_found_when_it_has_waited_too_long)
{
    struct active_jobs h = {0};
    add_ready(&h, 1, 90);
    add_ready(&h, 2, 10);
    ck_assert_ptr_null(active_take_waiting(&h, 1));
    expect_taken(&h, active_take_waiting(&h, 2), 1);
    ck_assert_ptr_null(active_take_waiting(&h, 2));
    expect_taken(&h, active_take_ready(&h), 2);
}
END_TEST

START_TEST(feat_B5_where_queues_have_weights_ready_jobs_pass_only_those_of_their_queue)
{
    struct active_jobs h = {.has_weights = true};
    const char *const queues[] = {"a", "b", "a", "a", "b", "a", "b"};
    const int64_t scores[] = {30, 50, 10, 20, 40, 30, 60};
    const int64_t order[] = {3, 5, 4, 1, 2, 6, 7};
    for (size_t i = 0; i < ARRAY_COUNT(scores); i++) {
        struct active_job *job = active_add(&h, (int64_t)i + 1);
        ck_assert_ptr_nonnull(job);
        job->score = scores[i];
        (void)snprintf(job->queue, sizeof job->queue, "%s", queues[i]);
        make_ready(&h, job);
    }
    for (size_t i = 0; i < ARRAY_COUNT(order); i++) {
        expect_taken(&h, active_take_ready(&h), order[i]);
    }
    ck_assert_ptr_null(active_take_ready(&h));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("active_jobs");
    TCase *c = tcase_create("active_jobs");
    tcase_add_test(c, S19_an_id_is_held_once);
    tcase_add_test(c, ready_jobs_leave_by_score_and_equals_in_the_order_in_which_they_came);
    tcase_add_test(c, feat_B5_where_queues_have_weights_ready_jobs_pass_only_those_of_their_queue);
    tcase_add_test(c, a_job_that_others_pass_is_found_when_it_has_waited_too_long);
    tcase_add_loop_test(c, a_job_goes_on_when_both_its_lock_and_its_claim_have_answered, 0,
                        (int)ARRAY_COUNT(ways));
    tcase_add_test(c, a_placed_job_counts_as_such_until_a_runner_has_it_and_when_it_comes_back);
    tcase_add_loop_test_raise_signal(c, a_job_that_is_told_of_twice_is_noticed, SIGABRT, 0,
                                     (int)ARRAY_COUNT(impossible));
    suite_add_tcase(s, c);
    return suite_run(s);
}
