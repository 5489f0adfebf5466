/* SPDX-License-Identifier: Apache-2.0
 *
 * Finishes: which are recorded, which are stale, and which PostgreSQL refuses. */
#include "job_store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds and claims `count` jobs: got.jobs[0…count). */
static void given_running(int count)
{
    int64_t id = add_jobs(count);
    claim_now(&store_a, id, (size_t)count);
    ck_assert_uint_eq(got.job_count, (size_t)count);
}

static void finish_now(const struct job_finish *f)
{
    int before = got.finishes;
    submit(&store_a, f);
    RUN_UNTIL(got.finishes == before + 1);
}

START_TEST(a_completed_run_moves_to_the_history_with_its_result)
{
    given_running(2);
    struct job_finish f = finish_of(0, FINISH_COMPLETED);
    f.result = "{\"ok\": [1, 2]}";
    f.result_len = strlen(f.result);
    finish_now(&f);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 1);
    ck_assert_uint_eq(job_store_waiting(store_a.jobs), 0);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job", 1);
    ASSERT_TEXT("SELECT concat_ws(' ', state, attempt, worker_id, result, args) FROM "
                "claimd.job_history WHERE finalized_at >= attempted_at AND error IS NULL",
                "completed 1 " WORKER_A " {\"ok\": [1, 2]} {\"n\": 1}");
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_attempt", 0);
}
END_TEST

START_TEST(a_retry_is_available_after_its_delay_and_recorded)
{
    given_running(1);
    struct job_finish f = finish_of(0, FINISH_RETRY);
    f.outcome = "crashed";
    f.crashed = true;
    f.delay_us = 60 * US_PER_S;
    f.error = "boom \xff";
    f.error_len = strlen(f.error);
    f.log_tail = "one\0two";
    f.log_tail_len = 7;
    finish_now(&f);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 1);
    ASSERT_TEXT("SELECT concat_ws(' ', state, attempt, crashes) FROM claimd.job WHERE scheduled_at "
                "BETWEEN clock_timestamp() + '55 s' AND clock_timestamp() + '60 s'",
                "available 1 1");
    ASSERT_TEXT("SELECT concat_ws('|', attempt, worker_id, outcome, error, log_tail) FROM "
                "claimd.job_attempt WHERE ended_at >= started_at",
                "1|" WORKER_A "|crashed|boom \xEF\xBF\xBD|one\xEF\xBF\xBDtwo");
}
END_TEST

START_TEST(a_discarded_run_ends_in_the_history_and_is_recorded)
{
    given_running(1);
    struct job_finish f = finish_of(0, FINISH_DISCARDED);
    f.outcome = "failed";
    f.error = "for good";
    f.error_len = strlen(f.error);
    finish_now(&f);
    ASSERT_TEXT("SELECT concat_ws(' ', state, crashes, error) FROM claimd.job_history",
                "discarded 0 for good");
    ASSERT_TEXT("SELECT outcome || ' ' || error FROM claimd.job_attempt", "failed for good");
}
END_TEST

START_TEST(rule3_a_snooze_gives_the_attempt_back_and_is_recorded)
{
    given_running(1);
    struct job_finish f = finish_of(0, FINISH_SNOOZE);
    f.outcome = "snoozed";
    f.delay_us = 60 * US_PER_S;
    f.error = "not yet";
    f.error_len = strlen(f.error);
    finish_now(&f);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 1);
    ASSERT_TEXT("SELECT concat_ws(' ', state, attempt, crashes) FROM claimd.job WHERE scheduled_at "
                "BETWEEN clock_timestamp() + '55 s' AND clock_timestamp() + '60 s'",
                "available 0 0");
    ASSERT_TEXT("SELECT concat_ws('|', attempt, outcome, error) FROM claimd.job_attempt",
                "1|snoozed|not yet");
}
END_TEST

START_TEST(a_run_that_was_given_up_ends_cancelled_with_its_reason)
{
    given_running(2);
    struct job_finish f = finish_of(0, FINISH_CANCELLED);
    f.outcome = "cancelled";
    f.error = "void";
    f.error_len = strlen(f.error);
    struct job_finish bad = finish_of(1, FINISH_DISCARDED);
    bad.outcome = "failed";
    submit(&store_a, &bad);
    submit(&store_a, &f);
    RUN_UNTIL(got.finishes == 2);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 2);
    ASSERT_TEXT("SELECT string_agg(concat_ws(' ', state, attempt, error), ',' ORDER BY id) FROM "
                "claimd.job_history",
                "cancelled 1 void,discarded 1");
    ASSERT_TEXT("SELECT string_agg(outcome, ',' ORDER BY job_id) FROM claimd.job_attempt",
                "cancelled,failed");
}
END_TEST

START_TEST(a_run_whose_cancel_its_worker_has_not_heard_of_does_not_run_again)
{
    static const enum finish_kind kinds[] = {FINISH_RETRY, FINISH_SNOOZE, FINISH_HAND_BACK};
    given_running(4);
    sql_run(side, "SELECT claimd.cancel(id) FROM claimd.job ORDER BY id LIMIT 3");
    /* A request for an earlier run; no one has asked to cancel this one. */
    sql_run(side, "INSERT INTO claimd.job_live (id, fence, cancel_requested) SELECT id, fence - 1, "
                  "true FROM claimd.job ORDER BY id DESC LIMIT 1");
    for (size_t i = 0; i < 4; i++) {
        struct job_finish f = finish_of(i, kinds[i % ARRAY_COUNT(kinds)]);
        submit(&store_a, &f);
    }
    RUN_UNTIL(got.finishes == 4);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 4);
    ASSERT_TEXT("SELECT string_agg(state || ' ' || error, ',') FROM claimd.job_history",
                "cancelled cancelled while it ran,cancelled cancelled while it ran,"
                "cancelled cancelled while it ran");
    ASSERT_TEXT("SELECT string_agg(state, ',') FROM claimd.job", "available");
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_live", 1);
}
END_TEST

START_TEST(a_run_that_was_done_after_its_timeout_is_completed_and_that_is_recorded)
{
    given_running(3);
    struct job_finish late = finish_of(0, FINISH_COMPLETED);
    struct job_finish done = finish_of(1, FINISH_COMPLETED);
    struct job_finish stale = finish_of(2, FINISH_COMPLETED);
    late.overran = true;
    late.log_tail = "slow";
    late.log_tail_len = 4;
    stale.overran = true;
    stale.fence = got.jobs[2].fence + 1000;
    submit(&store_a, &done);
    submit(&store_a, &late);
    submit(&store_a, &stale);
    RUN_UNTIL(got.finishes == 3);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 2);
    ASSERT_TEXT(
        "SELECT string_agg(concat_ws(' ', job_id = (SELECT min(id) FROM claimd.job_history),"
        " outcome, error, log_tail), ',') FROM claimd.job_attempt",
        "t overran done after its timeout, before it was killed slow");
}
END_TEST

START_TEST(feat_B17_a_done_run_is_recorded_with_its_log_where_its_kind_wants_that)
{
    given_running(4);
    struct job_finish f[4];
    for (size_t i = 0; i < ARRAY_COUNT(f); i++) {
        f[i] = finish_of(i, FINISH_COMPLETED);
        f[i].keeps_log = i > 0;
        f[i].log_tail = i == 1 ? NULL : "words";
        f[i].log_tail_len = i == 1 ? 0 : 5;
        f[i].is_unkept = i == 2;
        submit(&store_a, &f[i]);
    }
    RUN_UNTIL(got.finishes == 4);
    ASSERT_TEXT("SELECT string_agg(concat_ws('|', job_id = (SELECT max(id) FROM"
                " claimd.job_history), outcome, error, log_tail), ',') FROM claimd.job_attempt",
                "t|completed|words");
}
END_TEST

START_TEST(what_was_kept_of_a_running_job_goes_with_its_end)
{
    given_running(4);
    sql_run(side, "SELECT claimd.cancel(id) FROM claimd.job");
    struct job_finish done = finish_of(0, FINISH_COMPLETED);
    struct job_finish failed = finish_of(1, FINISH_DISCARDED);
    struct job_finish cancelled = finish_of(2, FINISH_CANCELLED);
    done.has_live = true;
    cancelled.outcome = "cancelled";
    submit(&store_a, &done);
    submit(&store_a, &failed);
    submit(&store_a, &cancelled);
    RUN_UNTIL(got.finishes == 3);
    ASSERT_TEXT("SELECT string_agg(state, ',' ORDER BY state) FROM claimd.job_history",
                "cancelled,completed,discarded");
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_live", 1);
}
END_TEST

START_TEST(rule3_a_hand_back_gives_the_attempt_back)
{
    given_running(1);
    struct job_finish f = finish_of(0, FINISH_HAND_BACK);
    finish_now(&f);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 1);
    ASSERT_TEXT("SELECT concat_ws(' ', state, attempt) FROM claimd.job", "available 0");
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_attempt", 0);
    int64_t fence = got.jobs[0].fence;
    int64_t id = got.jobs[0].id;
    got.job_count = 0;
    claim_now(&store_a, id, 1);
    ck_assert_int_eq(got.jobs[0].attempt, 1);
    ck_assert(got.jobs[0].fence > fence);
}
END_TEST

START_TEST(lock_G3_a_stale_finish_is_refused_and_changes_nothing)
{
    given_running(2);
    struct job_finish old = finish_of(0, FINISH_COMPLETED);
    struct job_finish gone = finish_of(1, FINISH_COMPLETED);
    sql_run(side, "UPDATE claimd.job SET state = 'available'");
    int64_t id = old.id < gone.id ? old.id : gone.id;
    struct store b;
    store_start(&b, WORKER_B);
    claim_now(&b, id, 1);
    sql_run(side, "SELECT claimd.cancel(id) FROM claimd.job WHERE state = 'available'");
    submit(&store_a, &old);
    submit(&store_a, &gone);
    RUN_UNTIL(got.finishes == 2);
    ck_assert_int_eq(got.verdicts[FINISH_STALE], 2);
    ASSERT_TEXT("SELECT state || ' ' || worker_id FROM claimd.job", "running " WORKER_B);
    ASSERT_TEXT("SELECT state FROM claimd.job_history", "cancelled");
    store_stop(&b);
}
END_TEST

/* A server that lost fences gives them out again (fault.D5), so the number alone is not enough. */
START_TEST(D5_a_finish_under_the_same_fence_of_another_worker_is_stale)
{
    static const enum finish_kind kinds[] = {FINISH_COMPLETED, FINISH_RETRY,  FINISH_DISCARDED,
                                             FINISH_HAND_BACK, FINISH_SNOOZE, FINISH_CANCELLED};
    given_running(12);
    sql_run(side, "UPDATE claimd.job SET worker_id = '" WORKER_B "'");
    for (size_t i = 0; i < 12; i++) {
        struct job_finish f = finish_of(i, kinds[i % ARRAY_COUNT(kinds)]);
        submit(&store_a, &f);
    }
    RUN_UNTIL(got.finishes == 12);
    ck_assert_int_eq(got.verdicts[FINISH_STALE], 12);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job WHERE state = 'running'", 12);
    /* A job that another worker completed does not count as our own finish either. */
    sql_run(side,
            "WITH d AS (DELETE FROM claimd.job RETURNING *) INSERT INTO claimd.job_history (id, "
            "fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes, "
            "generation, priority, share, queue, kind, args, state) SELECT id, fence, created_at, "
            "scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes, generation, "
            "priority, share, queue, kind, args, 'completed' FROM d");
    struct job_finish f = finish_of(0, FINISH_COMPLETED);
    finish_now(&f);
    ck_assert_int_eq(got.verdicts[FINISH_STALE], 13);
}
END_TEST

START_TEST(finishes_of_runs_under_two_ids_of_one_worker_are_all_accepted)
{
    int64_t id = add_jobs(40);
    claim_now(&store_a, id, 20);
    job_store_set_worker(store_a.jobs, WORKER_B);
    claim_now(&store_a, id + 20, 20);
    for (size_t i = 0; i < 40; i++) {
        struct job_finish f = finish_of(i % 2 == 0 ? i / 2 : 20 + i / 2, FINISH_COMPLETED);
        submit(&store_a, &f);
    }
    RUN_UNTIL(got.finishes == 40);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 40);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history WHERE worker_id = '" WORKER_B "'",
                  20);
}
END_TEST

START_TEST(a_second_finish_of_the_same_run_finds_it_done)
{
    given_running(1);
    struct job_finish f = finish_of(0, FINISH_COMPLETED);
    finish_now(&f);
    finish_now(&f);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 1);
    ck_assert_int_eq(got.verdicts[FINISH_ALREADY], 1);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history", 1);
}
END_TEST

START_TEST(D8_a_finish_is_found_done_though_the_clock_went_back_meanwhile)
{
    given_running(1);
    struct job_finish f = finish_of(0, FINISH_COMPLETED);
    finish_now(&f);
    sql_run(side, "UPDATE claimd.job_history SET finalized_at = attempted_at - interval '60 s'");
    finish_now(&f);
    ck_assert_int_eq(got.verdicts[FINISH_ALREADY], 1);
}
END_TEST

START_TEST(finishes_and_claims_of_one_turn_share_one_commit)
{
    given_running(300);
    int64_t more = add_jobs(200);
    uint64_t before = job_store_counters(store_a.jobs)->commits;
    for (size_t i = 0; i < 300; i++) {
        struct job_finish f =
            finish_of(i, i % 3 == 0 ? FINISH_COMPLETED : (enum finish_kind)(i % 4));
        submit(&store_a, &f);
    }
    ask(&store_a, more, 200, 100);
    RUN_UNTIL(got.finishes == 300 && got.claims == 2);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 300);
    ck_assert_uint_eq(got.job_count, 500);
    ck_assert_uint_eq(job_store_counters(store_a.jobs)->commits - before, 1);
}
END_TEST

START_TEST(a_grouped_finish_is_sent_though_nothing_follows)
{
    given_running(2);
    for (size_t i = 0; i < 2; i++) {
        struct job_finish f = finish_of(i, FINISH_COMPLETED);
        f.may_group = true;
        finish_now(&f);
    }
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 2);
}
END_TEST

START_TEST(grouped_finishes_go_with_one_that_is_not_delayed)
{
    given_running(3);
    struct job_finish f = finish_of(0, FINISH_COMPLETED);
    f.may_group = true;
    finish_now(&f);
    uint64_t before = job_store_counters(store_a.jobs)->commits;
    f = finish_of(1, FINISH_COMPLETED);
    f.may_group = true;
    submit(&store_a, &f);
    f = finish_of(2, FINISH_COMPLETED);
    submit(&store_a, &f);
    RUN_UNTIL(got.finishes == 3);
    ck_assert_uint_eq(job_store_counters(store_a.jobs)->commits, before + 1);
}
END_TEST

struct bad {
    const char *name;
    const char *result;
    size_t len;
};
static const struct bad bad_results[] = {
    {"a NUL", "{\"x\": \"\\u0000\"}", 0},
    {"a lone surrogate", "{\"x\": \"\\ud800\"}", 0},
    {"a number out of range", "{\"x\": 1e200000}", 0},
    {"half a UTF-8 character", "{\"x\": \"\xc3\"}", 0},
    {"no JSON", "{\"x\": ", 0},
    {"a NUL byte", "{\"x\": \"\0\"}", 9},
};

START_TEST(a_bad_result_fails_its_own_job_and_the_other_499_finish)
{
    const struct bad *bad = &bad_results[_i];
    given_running(500);
    for (size_t i = 0; i < 500; i++) {
        struct job_finish f = finish_of(i, FINISH_COMPLETED);
        f.result = i == 321 ? bad->result : "{\"fine\": true}";
        f.result_len = i == 321 && bad->len > 0 ? bad->len : strlen(f.result);
        submit(&store_a, &f);
    }
    RUN_UNTIL(got.finishes == 500);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 499);
    ck_assert_int_eq(got.verdicts[FINISH_REFUSED], 1);
    ck_assert_int_eq(got.last_refused_id, got.jobs[321].id);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history WHERE result IS NOT NULL", 499);
    ASSERT_TEXT("SELECT concat_ws(' ', h.state, h.attempt, a.outcome, left(a.error, 14)) FROM "
                "claimd.job_history h JOIN claimd.job_attempt a ON a.job_id = h.id",
                "discarded 1 failed result refused");
}
END_TEST

START_TEST(several_bad_results_are_all_found_while_claims_go_on)
{
    given_running(100);
    int64_t more = add_jobs(50);
    for (size_t i = 0; i < 100; i++) {
        struct job_finish f = finish_of(i, FINISH_COMPLETED);
        f.result = i % 20 == 7 ? "[1e999999]" : "[1]";
        f.result_len = strlen(f.result);
        submit(&store_a, &f);
    }
    ask(&store_a, more, 50, 50);
    RUN_UNTIL(got.finishes == 100 && got.claims == 2);
    ck_assert_int_eq(got.verdicts[FINISH_REFUSED], 5);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 95);
    ck_assert_uint_eq(got.job_count, 150);
}
END_TEST

START_TEST(deeply_nested_json_fails_its_own_job_only)
{
    given_running(2);
    static char nested[60001];
    memset(nested, '[', sizeof nested - 1);
    struct job_finish bad = finish_of(0, FINISH_COMPLETED);
    bad.result = nested;
    bad.result_len = sizeof nested - 1;
    struct job_finish good = finish_of(1, FINISH_COMPLETED);
    submit(&store_a, &bad);
    submit(&store_a, &good);
    RUN_UNTIL(got.finishes == 2);
    ck_assert_int_eq(got.verdicts[FINISH_REFUSED], 1);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 1);
}
END_TEST

START_TEST(every_update_of_a_claim_is_hot)
{
    given_running(500);
    (void)world_ask(store_a.pg, "SELECT pg_stat_force_next_flush()");
    RUN_UNTIL(sql_number(side, "SELECT pg_stat_get_tuples_updated('claimd.job'::regclass)::text") ==
              500);
    ASSERT_NUMBER("SELECT pg_stat_get_tuples_hot_updated('claimd.job'::regclass)::text", 500);
}
END_TEST

/* ---- completed jobs that are not kept ---- */

#define UNKEPT "SELECT COALESCE(sum(jobs), 0)::bigint::text FROM claimd.completed_count"

static struct job_finish unkept_of(size_t n)
{
    struct job_finish f = finish_of(n, FINISH_COMPLETED);
    f.is_unkept = true;
    return f;
}

START_TEST(feat_B20_completed_jobs_that_are_not_kept_are_counted_and_gone)
{
    given_running(20);
    for (size_t i = 0; i < 20; i++) {
        struct job_finish f = unkept_of(i);
        submit(&store_a, &f);
    }
    RUN_UNTIL(got.finishes == 20);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 20);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job", 0);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history", 0);
    ASSERT_NUMBER(UNKEPT, 20);
}
END_TEST

START_TEST(feat_B20_what_fails_or_overran_is_kept_whatever_its_kind_says)
{
    given_running(2);
    struct job_finish failed = finish_of(0, FINISH_DISCARDED);
    struct job_finish late = unkept_of(1);
    failed.is_unkept = true;
    late.overran = true;
    finish_now(&failed);
    finish_now(&late);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history", 2);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_attempt", 2);
    ASSERT_NUMBER(UNKEPT, 0);
}
END_TEST

START_TEST(feat_B20_what_a_batch_or_a_job_waits_for_is_kept_and_they_hear_of_it)
{
    given_running(3);
    int64_t id = got.jobs[0].id;
    sql_run(side, "SELECT claimd.batch_add(claimd.batch_open(), %lld)::text",
            (long long)id); /* after the claim, so the store does not know its flags */
    sql_run(side, "SELECT claimd.after(claimd.enqueue('noop'), ARRAY[%lld::bigint])::text",
            (long long)id + 1);
    for (size_t i = 0; i < 3; i++) {
        struct job_finish f = unkept_of(i);
        submit(&store_a, &f);
    }
    RUN_UNTIL(got.finishes == 3);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 3);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history WHERE state = 'completed'", 2);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.batch_job WHERE state = 'completed'", 1);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_after WHERE state = 'completed'", 1);
    ASSERT_NUMBER(UNKEPT, 1);
}
END_TEST

START_TEST(feat_B20_a_unique_key_of_a_job_that_is_not_kept_holds_as_long_as_it_should)
{
    sql_run(side, "SELECT claimd.enqueue('noop', unique_key => 'open')::text");
    sql_run(side, "SELECT claimd.enqueue('noop', unique_key => 'done', unique_for => '1 h', "
                  "unique_states => 'completed')::text");
    claim_now(&store_a, 1, 2);
    for (size_t i = 0; i < 2; i++) {
        struct job_finish f = unkept_of(i);
        finish_now(&f);
    }
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history", 0);
    sql_run(side, "SELECT claimd.enqueue('noop', unique_key => 'open')::text");
    ASSERT_REFUSED(side, "SELECT claimd.enqueue('noop', unique_key => 'done')", "CL004",
                   "and has ended");
}
END_TEST

START_TEST(feat_B20_an_exclusive_key_of_a_job_that_is_not_kept_is_free_for_the_next)
{
    sql_run(side, "UPDATE claimd.cluster SET oldest_program = schema_version");
    sql_run(side,
            "SELECT claimd.enqueue('noop', exclusive_key => 'k')::text FROM generate_series(1, 2)");
    claim_now(&store_a, 1, 2);
    ck_assert_uint_eq(got.job_count, 1);
    struct job_finish f = unkept_of(0);
    f.flags = got.jobs[0].flags;
    finish_now(&f);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.exclusive", 0);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history", 0);
    RUN_UNTIL(got.freed_count == 1);
    ck_assert_int_eq(got.freed[0], 2);
}
END_TEST

START_TEST(feat_B20_G3_a_stale_finish_of_a_job_that_is_not_kept_is_refused_and_not_counted)
{
    given_running(2);
    int64_t id = got.jobs[0].id;
    sql_run(side, "UPDATE claimd.job SET fence = fence + 1000 WHERE id = %lld", (long long)id);
    struct job_finish stale = unkept_of(0);
    struct job_finish done = unkept_of(1);
    finish_now(&stale);
    finish_now(&done);
    finish_now(&done); /* no answer was lost, so it cannot have been our finish */
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 1);
    ck_assert_int_eq(got.verdicts[FINISH_STALE], 2);
    ASSERT_NUMBER(UNKEPT, 1);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job", 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_store_finish");
    TCase *tests = tcase_create("finish");
    tcase_set_timeout(tests, 30);
    tcase_add_checked_fixture(tests, jobs_setup, jobs_teardown);
    tcase_add_test(tests, a_completed_run_moves_to_the_history_with_its_result);
    tcase_add_test(tests, a_retry_is_available_after_its_delay_and_recorded);
    tcase_add_test(tests, a_discarded_run_ends_in_the_history_and_is_recorded);
    tcase_add_test(tests, rule3_a_hand_back_gives_the_attempt_back);
    tcase_add_test(tests, a_run_whose_cancel_its_worker_has_not_heard_of_does_not_run_again);
    tcase_add_test(tests, what_was_kept_of_a_running_job_goes_with_its_end);
    tcase_add_test(tests, a_run_that_was_done_after_its_timeout_is_completed_and_that_is_recorded);
    tcase_add_test(tests, feat_B17_a_done_run_is_recorded_with_its_log_where_its_kind_wants_that);
    tcase_add_test(tests, rule3_a_snooze_gives_the_attempt_back_and_is_recorded);
    tcase_add_test(tests, a_run_that_was_given_up_ends_cancelled_with_its_reason);
    tcase_add_test(tests, lock_G3_a_stale_finish_is_refused_and_changes_nothing);
    tcase_add_test(tests, D5_a_finish_under_the_same_fence_of_another_worker_is_stale);
    tcase_add_test(tests, finishes_of_runs_under_two_ids_of_one_worker_are_all_accepted);
    tcase_add_test(tests, a_second_finish_of_the_same_run_finds_it_done);
    tcase_add_test(tests, D8_a_finish_is_found_done_though_the_clock_went_back_meanwhile);
    tcase_add_test(tests, finishes_and_claims_of_one_turn_share_one_commit);
    tcase_add_test(tests, a_grouped_finish_is_sent_though_nothing_follows);
    tcase_add_test(tests, grouped_finishes_go_with_one_that_is_not_delayed);
    tcase_add_loop_test(tests, a_bad_result_fails_its_own_job_and_the_other_499_finish, 0,
                        (int)ARRAY_COUNT(bad_results));
    tcase_add_test(tests, several_bad_results_are_all_found_while_claims_go_on);
    tcase_add_test(tests, deeply_nested_json_fails_its_own_job_only);
    tcase_add_test(tests, every_update_of_a_claim_is_hot);
    tcase_add_test(tests, feat_B20_completed_jobs_that_are_not_kept_are_counted_and_gone);
    tcase_add_test(tests, feat_B20_what_fails_or_overran_is_kept_whatever_its_kind_says);
    tcase_add_test(tests, feat_B20_what_a_batch_or_a_job_waits_for_is_kept_and_they_hear_of_it);
    tcase_add_test(tests,
                   feat_B20_a_unique_key_of_a_job_that_is_not_kept_holds_as_long_as_it_should);
    tcase_add_test(tests, feat_B20_an_exclusive_key_of_a_job_that_is_not_kept_is_free_for_the_next);
    tcase_add_test(tests,
                   feat_B20_G3_a_stale_finish_of_a_job_that_is_not_kept_is_refused_and_not_counted);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
