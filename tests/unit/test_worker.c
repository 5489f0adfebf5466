/* SPDX-License-Identifier: Apache-2.0 */
#include "support/suite.h"
#include "worker/intake/capacity.h"
#include "worker/jobs/danger.h"
#include "worker/jobs/outcome.h"

#include <check.h>

/* ---- outcome ---- */

struct outcome_case {
    const char *name;
    struct run_facts facts;
    enum finish_kind kind;
    const char *outcome;
    bool crashed;
};

#define SAID(outcome) .end = RUN_END_SAID, .said = (outcome)
#define FIRST_OF_3 \
    .attempt = 1, .settings.max_attempts = 3, .settings.max_crashes = 3, .retry_after_us = -1
#define LAST_OF_3 \
    .attempt = 3, .settings.max_attempts = 3, .settings.max_crashes = 3, .retry_after_us = -1

static const struct outcome_case outcome_cases[] = {
    {"done", {SAID(CLAIMD_DONE), FIRST_OF_3}, FINISH_COMPLETED, NULL, false},
    {"retry", {SAID(CLAIMD_RETRY), FIRST_OF_3}, FINISH_RETRY, "failed", false},
    {"retry, last", {SAID(CLAIMD_RETRY), LAST_OF_3}, FINISH_DISCARDED, "failed", false},
    {"fail", {SAID(CLAIMD_FAIL), FIRST_OF_3}, FINISH_DISCARDED, "failed", false},
    {"crash", {.end = RUN_END_CRASHED, FIRST_OF_3}, FINISH_RETRY, "crashed", true},
    {"third crash",
     {.end = RUN_END_CRASHED, .crashes = 2, FIRST_OF_3},
     FINISH_DISCARDED,
     "crashed",
     true},
    {"timeout", {.end = RUN_END_TIMEOUT, FIRST_OF_3}, FINISH_RETRY, "timeout", false},
    {"killed by us", {.end = RUN_END_KILLED, LAST_OF_3}, FINISH_HAND_BACK, NULL, false},
    {"never started", {.end = RUN_END_NOT_STARTED, LAST_OF_3}, FINISH_HAND_BACK, NULL, false},
    {"doubted", {.end = RUN_END_DOUBTED, FIRST_OF_3}, FINISH_HAND_BACK, "doubted", true},
    {"doubted, third time",
     {.end = RUN_END_DOUBTED, .strikes = 2, FIRST_OF_3},
     FINISH_RETRY,
     "crashed",
     true},
    {"doubted, last", {.end = RUN_END_DOUBTED, LAST_OF_3}, FINISH_DISCARDED, "crashed", true},
    {"once, doubted",
     {.end = RUN_END_DOUBTED, .settings.at_most_once = true, FIRST_OF_3},
     FINISH_DISCARDED,
     "lost",
     true},
    {"spoilt, last", {.end = RUN_END_SPOILT, LAST_OF_3}, FINISH_HAND_BACK, "doubted", true},
    {"spoilt, third time",
     {.end = RUN_END_SPOILT, .strikes = 2, FIRST_OF_3},
     FINISH_RETRY,
     "crashed",
     true},
    {"once, spoilt",
     {.end = RUN_END_SPOILT, .settings.at_most_once = true, FIRST_OF_3},
     FINISH_DISCARDED,
     "lost",
     false},
    {"once, crash",
     {.end = RUN_END_CRASHED, .settings.at_most_once = true, FIRST_OF_3},
     FINISH_DISCARDED,
     "lost",
     true},
    {"once, killed by us",
     {.end = RUN_END_KILLED, .settings.at_most_once = true, FIRST_OF_3},
     FINISH_DISCARDED,
     "lost",
     false},
    {"once, never started",
     {.end = RUN_END_NOT_STARTED, .settings.at_most_once = true, FIRST_OF_3},
     FINISH_HAND_BACK,
     NULL,
     false},
    {"retry, asked to stop by us",
     {SAID(CLAIMD_RETRY), .stops = RUN_ASKED, LAST_OF_3},
     FINISH_HAND_BACK,
     NULL,
     false},
    {"retry, time was up",
     {SAID(CLAIMD_RETRY), .stops = RUN_TIMED_OUT, FIRST_OF_3},
     FINISH_RETRY,
     "timeout",
     false},
    {"once, retry, asked to stop by us",
     {SAID(CLAIMD_RETRY), .stops = RUN_ASKED, .settings.at_most_once = true, FIRST_OF_3},
     FINISH_RETRY,
     "failed",
     false},
    {"snooze, last", {SAID(CLAIMD_SNOOZE), LAST_OF_3}, FINISH_SNOOZE, "snoozed", false},
    {"once, it says snooze",
     {SAID(CLAIMD_SNOOZE), .settings.at_most_once = true, FIRST_OF_3},
     FINISH_RETRY,
     "failed",
     false},
    {"cancel", {SAID(CLAIMD_CANCEL), FIRST_OF_3}, FINISH_CANCELLED, "cancelled", false},
    {"once, it says cancel",
     {SAID(CLAIMD_CANCEL), .settings.at_most_once = true, FIRST_OF_3},
     FINISH_CANCELLED,
     "cancelled",
     false},
    {"cancelled, it says retry",
     {SAID(CLAIMD_RETRY), .is_cancelled = true, FIRST_OF_3},
     FINISH_CANCELLED,
     "cancelled",
     false},
    {"cancelled, and it crashes",
     {.end = RUN_END_CRASHED, .is_cancelled = true, FIRST_OF_3},
     FINISH_CANCELLED,
     "cancelled",
     false},
    {"cancelled before it started",
     {.end = RUN_END_NOT_STARTED, .is_cancelled = true, FIRST_OF_3},
     FINISH_CANCELLED,
     "cancelled",
     false},
    {"cancelled, and done in time",
     {SAID(CLAIMD_DONE), .is_cancelled = true, FIRST_OF_3},
     FINISH_COMPLETED,
     NULL,
     false},
    {"once, it says retry",
     {SAID(CLAIMD_RETRY), .settings.at_most_once = true, FIRST_OF_3},
     FINISH_RETRY,
     "failed",
     false},
};

START_TEST(rule3_every_end_of_a_run_is_charged_as_the_table_says)
{
    const struct outcome_case *c = &outcome_cases[_i];
    struct run_verdict v = run_verdict(&c->facts);
    ck_assert_msg(v.kind == c->kind, "%s: kind %d", c->name, (int)v.kind);
    ck_assert_msg(v.crashed == c->crashed, "%s: crashed", c->name);
    bool is_used_up = c->facts.crashes + 1 >= c->facts.settings.max_crashes;
    bool is_poison = v.kind == FINISH_DISCARDED && !c->facts.settings.at_most_once &&
                     c->facts.end == RUN_END_CRASHED && is_used_up;
    ck_assert_msg(v.is_poison == is_poison, "%s: poison", c->name);
    if (c->outcome == NULL) {
        ck_assert_msg(v.outcome == NULL, "%s: outcome %s", c->name, v.outcome);
    } else {
        ck_assert_pstr_eq(v.outcome, c->outcome);
    }
}
END_TEST

START_TEST(a_retry_waits_as_long_as_its_handler_asked)
{
    struct run_facts f = {SAID(CLAIMD_RETRY), .attempt = 1, .settings.max_attempts = 2};
    f.retry_after_us = 7;
    ck_assert_int_eq(run_verdict(&f).delay_us, 7);
}
END_TEST

START_TEST(a_retry_without_a_wish_waits_as_its_kind_says)
{
    struct run_facts f = {
        .end = RUN_END_CRASHED,
        .attempt = 2,
        .settings = {.max_attempts = 5, .max_crashes = 3, .backoff = "list:1s,9s"},
        .retry_after_us = -1};
    ck_assert_int_eq(run_verdict(&f).delay_us, INT64_C(9000000));
    f.retry_after_us = 7;
    ck_assert_int_eq(run_verdict(&f).delay_us, 7);
}
END_TEST

START_TEST(a_snooze_lasts_a_second_at_least)
{
    struct run_facts f = {SAID(CLAIMD_SNOOZE), .attempt = 1, .settings.max_attempts = 2};
    ck_assert_int_eq(run_verdict(&f).delay_us, JOB_SNOOZE_US_MIN);
    f.retry_after_us = JOB_SNOOZE_US_MIN + 1;
    ck_assert_int_eq(run_verdict(&f).delay_us, JOB_SNOOZE_US_MIN + 1);
    f.retry_after_us = -1;
    f.jitter_unit = 500;
    ck_assert_int_eq(run_verdict(&f).delay_us, INT64_C(15000000));
}
END_TEST

START_TEST(a_retry_without_a_wish_waits_its_backoff)
{
    struct run_facts f = {SAID(CLAIMD_RETRY), .attempt = 2, .settings.max_attempts = 5};
    f.retry_after_us = -1;
    f.jitter_unit = 500;
    ck_assert_int_eq(run_verdict(&f).delay_us, INT64_C(30000000));
}
END_TEST

/* ---- danger ---- */

static const struct danger_limits limits = {
    .guard_us = 2000, .kill_margin_us = 500, .stale_us = 8000};

START_TEST(danger_is_the_later_end_of_lease_and_heartbeat)
{
    struct danger_facts f = {.lease_deadline_us = 5000, .heartbeat_sent_us = 1000};
    ck_assert_int_eq(danger_at_us(&f, &limits), 9000);
    f.lease_deadline_us = 9001;
    ck_assert_int_eq(danger_at_us(&f, &limits), 9001);
}
END_TEST

START_TEST(a_lost_lease_alone_kills_nobody)
{
    struct danger_facts f = {
        .lease_deadline_us = 0, .heartbeat_sent_us = 1000, .timeout_at_us = 90000};
    ck_assert_int_eq(danger_verdict(&f, &limits, 6999).action, DANGER_NONE);
}
END_TEST

START_TEST(a_heartbeat_that_failed_alone_kills_nobody)
{
    struct danger_facts f = {
        .lease_deadline_us = 50000, .heartbeat_sent_us = 1000, .timeout_at_us = 90000};
    ck_assert_int_eq(danger_verdict(&f, &limits, 40000).action, DANGER_NONE);
}
END_TEST

START_TEST(lock_W9_near_danger_a_handler_is_asked_to_stop_then_killed)
{
    struct danger_facts f = {.lease_deadline_us = 10000, .timeout_at_us = 90000};
    ck_assert_int_eq(danger_verdict(&f, &limits, 7999).action, DANGER_NONE);
    ck_assert_int_eq(danger_verdict(&f, &limits, 8000).action, DANGER_STOP);
    ck_assert_int_eq(danger_verdict(&f, &limits, 9499).action, DANGER_STOP);
    ck_assert_int_eq(danger_verdict(&f, &limits, 9500).action, DANGER_KILL);
    ck_assert_int_eq(danger_verdict(&f, &limits, 9500).reason, DANGER_LEASE);
    ck_assert_int_eq(danger_verdict(&f, &limits, 0).kill_at_us, 9500);
}
END_TEST

START_TEST(feat_B29_a_timeout_asks_first_and_kills_after_the_grace)
{
    struct danger_facts f = {.lease_deadline_us = 90000, .timeout_at_us = 10000, .grace_us = 30000};
    ck_assert_int_eq(danger_verdict(&f, &limits, 9999).action, DANGER_NONE);
    ck_assert_int_eq(danger_verdict(&f, &limits, 10000).action, DANGER_STOP);
    ck_assert_int_eq(danger_verdict(&f, &limits, 39999).action, DANGER_STOP);
    ck_assert_int_eq(danger_verdict(&f, &limits, 40000).action, DANGER_KILL);
    ck_assert_int_eq(danger_verdict(&f, &limits, 40000).reason, DANGER_TIMEOUT);
}
END_TEST

START_TEST(lock_W9_no_grace_outlasts_the_lease)
{
    struct danger_facts f = {.lease_deadline_us = 20000, .timeout_at_us = 10000, .grace_us = 30000};
    ck_assert_int_eq(danger_verdict(&f, &limits, 18000).reason, DANGER_LEASE);
    ck_assert_int_eq(danger_verdict(&f, &limits, 19500).action, DANGER_KILL);
    ck_assert_int_eq(danger_verdict(&f, &limits, 19500).reason, DANGER_LEASE);
}
END_TEST

/* ---- capacity ---- */

static const struct capacity_limits room = {.claim_ahead_max = 1000, .batch_max = 500};

START_TEST(long_jobs_are_never_claimed_ahead)
{
    struct capacity_facts f = {.runners = 4, .idle = 0, .mean_run_us = 5000000};
    ck_assert_uint_eq(capacity_ahead(&f, &room), 0);
    ck_assert_uint_eq(capacity_want(&f, &room), 0);
}
END_TEST

START_TEST(nothing_is_claimed_ahead_before_a_run_was_measured)
{
    struct capacity_facts f = {.runners = 4, .idle = 4};
    ck_assert_uint_eq(capacity_want(&f, &room), 4);
}
END_TEST

START_TEST(less_is_claimed_ahead_while_limits_refuse_much)
{
    struct capacity_answer bad = {.claimed = 60, .refused = 40, .has_work = true};
    struct capacity_answer good = {.claimed = 100, .refused = 10, .has_work = true};
    size_t ahead = capacity_ahead_max(1000, &bad, 1000);
    ck_assert_uint_eq(ahead, 750);
    ck_assert_uint_eq(capacity_ahead_max(ahead, &good, 1000), 774);
    ck_assert_uint_eq(capacity_ahead_max(1000, &good, 1000), 1000);
    ck_assert_uint_eq(capacity_ahead_max(0, &good, 0), 0);
    for (int i = 0; i < 100; i++) {
        ahead = capacity_ahead_max(ahead, &bad, 1000);
    }
    ck_assert_uint_gt(ahead, 0);
    bad.has_work = false; /* further jobs behind these must be found */
    ck_assert_uint_eq(capacity_ahead_max(ahead, &bad, 1000), 1000);
}
END_TEST

START_TEST(of_full_queues_as_many_are_popped_as_may_be_tried)
{
    struct capacity_facts f = {.coming = 100, .ready = 100};
    ck_assert_uint_eq(capacity_try(&f, 49), 0);
    ck_assert_uint_eq(capacity_try(&f, 50), 50);
    f = (struct capacity_facts){.coming = 3};
    ck_assert_uint_eq(capacity_try(&f, 0), 1);
}
END_TEST

START_TEST(tiny_jobs_are_claimed_ahead_up_to_the_cap)
{
    struct capacity_facts f = {.runners = 4, .idle = 0, .mean_run_us = 10};
    ck_assert_uint_eq(capacity_ahead(&f, &room), 1000);
    ck_assert_uint_eq(capacity_want(&f, &room), 500);
}
END_TEST

START_TEST(feat_B30_the_longer_a_claim_takes_the_more_is_claimed_ahead_up_to_half_a_second)
{
    struct capacity_facts f = {.runners = 4, .mean_run_us = 100000, .short_us = 20000};
    ck_assert_uint_eq(capacity_ahead(&f, &room), 0);
    f.short_us = 300000;
    ck_assert_uint_eq(capacity_ahead(&f, &room), 12);
    f.short_us = 20 * US_PER_S;
    ck_assert_uint_eq(capacity_ahead(&f, &room), 20);
    f.mean_run_us = 500001;
    ck_assert_uint_eq(capacity_ahead(&f, &room), 0);
}
END_TEST

START_TEST(small_pops_wait_until_they_are_worth_a_round_trip)
{
    struct capacity_facts f = {.runners = 4, .idle = 0, .ready = 900, .mean_run_us = 10};
    ck_assert_uint_eq(capacity_want(&f, &room), 0);
    f.ready = 700;
    ck_assert_uint_eq(capacity_want(&f, &room), 300);
}
END_TEST

START_TEST(feat_B28_of_longer_jobs_few_are_popped_at_a_time)
{
    struct capacity_facts f = {.runners = 4, .idle = 0, .ready = 7, .mean_run_us = 20000};
    ck_assert_uint_eq(capacity_ahead(&f, &room), 8);
    ck_assert_uint_eq(capacity_want(&f, &room), 0);
    f.ready = 6;
    ck_assert_uint_eq(capacity_want(&f, &room), 2);
    f = (struct capacity_facts){.runners = 4, .idle = 0, .ready = 121, .mean_run_us = 1000};
    ck_assert_uint_eq(capacity_want(&f, &room), 0);
    f.ready = 120;
    ck_assert_uint_eq(capacity_want(&f, &room), 40);
}
END_TEST

START_TEST(an_idle_runner_never_waits_for_a_full_batch)
{
    struct capacity_facts f = {.runners = 4, .idle = 3, .coming = 2, .mean_run_us = 30000};
    ck_assert_uint_ge(capacity_want(&f, &room), 1);
}
END_TEST

START_TEST(ends_that_cannot_be_committed_stop_new_claims)
{
    struct capacity_facts f = {.runners = 4, .idle = 4, .finishing = 2068, .mean_run_us = 10};
    ck_assert_uint_eq(capacity_want(&f, &room), 0);
}
END_TEST

START_TEST(rule4_a_few_results_of_locked_rows_stall_no_worker_that_claims_nothing_ahead)
{
    const struct capacity_limits none_ahead = {.batch_max = 500};
    struct capacity_facts f = {.runners = 2, .idle = 2, .finishing = 2};
    ck_assert_uint_eq(capacity_want(&f, &none_ahead), 2);
}
END_TEST

START_TEST(the_mean_follows_what_runs_take)
{
    int64_t mean = capacity_mean(0, 1000);
    for (int i = 0; i < 1000; i++) {
        mean = capacity_mean(mean, 100000);
    }
    ck_assert_int_gt(mean, 90000);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("worker");
    TCase *c = tcase_create("decisions");
    tcase_add_loop_test(c, rule3_every_end_of_a_run_is_charged_as_the_table_says, 0,
                        (int)ARRAY_COUNT(outcome_cases));
    tcase_add_test(c, a_retry_waits_as_long_as_its_handler_asked);
    tcase_add_test(c, a_retry_without_a_wish_waits_its_backoff);
    tcase_add_test(c, a_snooze_lasts_a_second_at_least);
    tcase_add_test(c, a_retry_without_a_wish_waits_as_its_kind_says);
    tcase_add_test(c, danger_is_the_later_end_of_lease_and_heartbeat);
    tcase_add_test(c, a_lost_lease_alone_kills_nobody);
    tcase_add_test(c, a_heartbeat_that_failed_alone_kills_nobody);
    tcase_add_test(c, lock_W9_near_danger_a_handler_is_asked_to_stop_then_killed);
    tcase_add_test(c, feat_B29_a_timeout_asks_first_and_kills_after_the_grace);
    tcase_add_test(c, lock_W9_no_grace_outlasts_the_lease);
    tcase_add_test(c, long_jobs_are_never_claimed_ahead);
    tcase_add_test(c, nothing_is_claimed_ahead_before_a_run_was_measured);
    tcase_add_test(c, less_is_claimed_ahead_while_limits_refuse_much);
    tcase_add_test(c, of_full_queues_as_many_are_popped_as_may_be_tried);
    tcase_add_test(c, tiny_jobs_are_claimed_ahead_up_to_the_cap);
    tcase_add_test(c,
                   feat_B30_the_longer_a_claim_takes_the_more_is_claimed_ahead_up_to_half_a_second);
    tcase_add_test(c, small_pops_wait_until_they_are_worth_a_round_trip);
    tcase_add_test(c, feat_B28_of_longer_jobs_few_are_popped_at_a_time);
    tcase_add_test(c, an_idle_runner_never_waits_for_a_full_batch);
    tcase_add_test(c, ends_that_cannot_be_committed_stop_new_claims);
    tcase_add_test(c, rule4_a_few_results_of_locked_rows_stall_no_worker_that_claims_nothing_ahead);
    tcase_add_test(c, the_mean_follows_what_runs_take);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
