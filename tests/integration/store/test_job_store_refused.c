/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever a handler returns, and whatever PostgreSQL refuses about one row: that job alone is
 * refused, and the other jobs of its worker are finished. An error of the server is not counted
 * against any job. */
#include "job_store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOBS 40
#define BAD 17 /* index of the bad one among them */

static void given_running(int count)
{
    int64_t id = add_jobs(count);
    claim_now(&store_a, id, (size_t)count);
    ck_assert_uint_eq(got.job_count, (size_t)count);
}

static bool is_settled_except(int open)
{
    return got.finishes == JOBS - open;
}

/* Submits the results {"n": 0} … {"n": JOBS - 1}. */
static void submit_all_completed(void)
{
    for (size_t i = 0; i < JOBS; i++) {
        char result[32];
        struct job_finish f = finish_of(i, FINISH_COMPLETED);
        f.result = result;
        f.result_len = (size_t)snprintf(result, sizeof result, "{\"n\": %zu}", i);
        submit(&store_a, &f);
    }
}

static const int64_t delays_us[] = {INT64_MAX,
                                    INT64_MIN,
                                    INT64_C(10000000000000) * US_PER_MS,
                                    INT64_C(300) * 366 * 86400 * US_PER_S,
                                    INT64_MAX / 2,
                                    -1,
                                    JOB_DELAY_US_MAX};

START_TEST(a_retry_after_any_delay_keeps_no_other_finish_waiting)
{
    given_running(JOBS);
    for (size_t i = 0; i < JOBS; i++) {
        struct job_finish f = finish_of(i, i == BAD ? FINISH_RETRY : FINISH_COMPLETED);
        f.delay_us = delays_us[_i];
        submit(&store_a, &f);
    }
    RUN_UNTIL(is_settled_except(0));
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], JOBS);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job WHERE state = 'available' AND "
                  "scheduled_at BETWEEN clock_timestamp() - interval '1 minute' AND "
                  "clock_timestamp() + interval '366 days'",
                  1);
}
END_TEST

START_TEST(a_retry_of_a_row_that_is_dated_at_the_end_of_time_is_kept_in_range)
{
    int64_t id = add_jobs(1);
    claim_now(&store_a, id, 1);
    sql_run(side, "UPDATE claimd.job SET created_at = '2285-12-31'");
    struct job_finish f = finish_of(0, FINISH_RETRY);
    f.delay_us = JOB_DELAY_US_MAX;
    submit(&store_a, &f);
    RUN_UNTIL(got.finishes == 1);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 1);
    ASSERT_TEXT("SELECT concat_ws(' ', state, scheduled_at::date) FROM claimd.job",
                "available 2286-01-01");
}
END_TEST

START_TEST(a_result_that_an_operators_constraint_refuses_fails_its_own_job_for_good)
{
    sql_run(side, "ALTER TABLE claimd.job_history ADD CONSTRAINT wanted CHECK (result->>'n' IS "
                  "DISTINCT FROM '17')");
    given_running(JOBS);
    submit_all_completed();
    RUN_UNTIL(is_settled_except(0));
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], JOBS - 1);
    ck_assert_int_eq(got.verdicts[FINISH_REFUSED], 1);
    ck_assert_int_eq(got.last_refused_id, got.jobs[BAD].id);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history WHERE state = 'discarded' AND "
                  "error LIKE 'result refused: %wanted%'",
                  1);
}
END_TEST

/* `body` is the body of a trigger before inserts into the history. */
static void given_refusal(const char *body)
{
    sql_run(side,
            "CREATE FUNCTION claimd.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s "
            "RETURN NEW; END $$",
            body);
    sql_run(side, "CREATE TRIGGER refuse BEFORE INSERT ON claimd.job_history FOR EACH ROW EXECUTE "
                  "FUNCTION claimd.refuse()");
}

static void drop_refusal(void)
{
    sql_run(side, "DROP FUNCTION claimd.refuse() CASCADE");
}

static void finish_one_more(void)
{
    size_t n = got.job_count;
    int before = got.finishes;
    claim_now(&store_a, add_jobs(1), 1);
    struct job_finish f = finish_of(n, FINISH_COMPLETED);
    submit(&store_a, &f);
    RUN_UNTIL(got.finishes > before);
    world_turn();
}

/* P0001 may mean anything; since the others pass, the error belongs to this job. */
START_TEST(an_error_that_only_one_finish_meets_again_and_again_is_held_against_it)
{
    given_refusal("IF NEW.result->>'n' = '17' THEN RAISE 'no seventeen'; END IF;");
    given_running(JOBS);
    submit_all_completed();
    RUN_UNTIL(is_settled_except(1));
    while (got.verdicts[FINISH_REFUSED] == 0 && got.finishes < IDS_MAX / 2) {
        finish_one_more();
    }
    ck_assert_int_eq(got.last_refused_id, got.jobs[BAD].id);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history WHERE state = 'discarded' AND "
                  "error = 'result refused: no seventeen'",
                  1);
}
END_TEST

START_TEST(a_job_that_can_never_be_recorded_is_set_aside_and_tried_on)
{
    given_refusal("IF NEW.args->>'n' = '18' THEN RAISE 'never'; END IF;"); /* args count from 1 */
    given_running(JOBS);
    submit_all_completed();
    RUN_UNTIL(is_settled_except(1));
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], JOBS - 1);
    ck_assert_uint_eq(job_store_waiting(store_a.jobs), 1);
    RUN_UNTIL(job_store_trouble(store_a.jobs) != NULL);
    ck_assert_str_eq(job_store_trouble(store_a.jobs)->code, "P0001");
    drop_refusal();
    RUN_UNTIL(is_settled_except(0));
    ck_assert_ptr_null(job_store_trouble(store_a.jobs));
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job", 0);
}
END_TEST

START_TEST(an_attempt_that_is_recorded_already_is_no_obstacle)
{
    given_running(2);
    sql_run(side, "INSERT INTO claimd.job_attempt (job_id, fence, attempt, worker_id, started_at, "
                  "outcome) SELECT id, fence, 1, worker_id, now(), 'lost' FROM claimd.job");
    struct job_finish again = finish_of(0, FINISH_RETRY);
    struct job_finish gone = finish_of(1, FINISH_DISCARDED);
    submit(&store_a, &again);
    submit(&store_a, &gone);
    RUN_UNTIL(got.finishes == 2);
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], 2);
}
END_TEST

/* Disk full, read-only, deadlock, no rights, transaction ids about to run out, cancelled: each of
 * these concerns all jobs at once. */
static const char *const server_codes[] = {"53100", "25006", "40P01", "42501", "54000", "57014"};

START_TEST(F_what_is_wrong_with_the_server_drops_no_result_and_burns_no_time)
{
    char body[128];
    const char *code = server_codes[_i];
    (void)snprintf(body, sizeof body, "RAISE 'out of order' USING ERRCODE = '%s';", code);
    given_refusal(body);
    given_running(JOBS);
    submit_all_completed();
    RUN_UNTIL(job_store_trouble(store_a.jobs) != NULL);
    ck_assert_str_eq(job_store_trouble(store_a.jobs)->code, code);
    int64_t end_us = clock_boot_us() + 2 * US_PER_S;
    uint64_t before = job_store_counters(store_a.jobs)->refused_segments;
    RUN_UNTIL(clock_boot_us() >= end_us);
    /* Even one after the other they could be sent a hundred times as often. */
    ck_assert_uint_le(job_store_counters(store_a.jobs)->refused_segments - before, 60);
    ck_assert_int_eq(got.finishes, 0);
    ck_assert_uint_eq(job_store_waiting(store_a.jobs), JOBS);
    drop_refusal();
    RUN_UNTIL(is_settled_except(0));
    ck_assert_int_eq(got.verdicts[FINISH_ACCEPTED], JOBS);
    ASSERT_NUMBER("SELECT count(*)::text FROM claimd.job_history WHERE state = 'completed'", JOBS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_store_refused");
    TCase *tests = tcase_create("refused");
    tcase_set_timeout(tests, 30);
    tcase_add_checked_fixture(tests, jobs_setup, jobs_teardown);
    tcase_add_loop_test(tests, a_retry_after_any_delay_keeps_no_other_finish_waiting, 0,
                        (int)ARRAY_COUNT(delays_us));
    tcase_add_test(tests, a_retry_of_a_row_that_is_dated_at_the_end_of_time_is_kept_in_range);
    tcase_add_test(tests, a_result_that_an_operators_constraint_refuses_fails_its_own_job_for_good);
    tcase_add_test(tests, an_error_that_only_one_finish_meets_again_and_again_is_held_against_it);
    tcase_add_test(tests, a_job_that_can_never_be_recorded_is_set_aside_and_tried_on);
    tcase_add_test(tests, an_attempt_that_is_recorded_already_is_no_obstacle);
    tcase_add_loop_test(tests, F_what_is_wrong_with_the_server_drops_no_result_and_burns_no_time, 0,
                        (int)ARRAY_COUNT(server_codes));
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
