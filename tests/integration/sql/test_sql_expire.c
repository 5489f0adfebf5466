/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that must begin before a given time (feat.B29). */
#include "sql_db.h"
#include "support/sql.h"

#define EXPIRE "SELECT claimd.expire_jobs()::text"
#define ENDS "SELECT string_agg(concat_ws(' ', id, state, error), ',' ORDER BY id) FROM claimd.jobs"
#define DEADLINES "SELECT count(*)::text FROM claimd.job_deadline"
#define COUNT_FLAG "SELECT count(*)::text FROM claimd.job WHERE flags & 2048 <> 0"

START_TEST(feat_B29_a_job_that_has_not_begun_by_its_time_is_discarded)
{
    run("SELECT claimd.enqueue('a', expires_at => now() - interval '1 s')::text");
    run("SELECT claimd.enqueue('a', expires_at => now() + interval '1 h')::text");
    run("SELECT claimd.enqueue('a')::text");
    ck_assert_int_eq(sql_number(db, COUNT_FLAG), 2);
    ck_assert_int_eq(sql_number(db, EXPIRE), 1);
    ck_assert_int_eq(sql_number(db, EXPIRE), 0);
    ck_assert_str_eq(sql_text(db, ENDS), "1 discarded expired,2 available,3 available");
    ck_assert_int_eq(sql_number(db, DEADLINES), 1);
}
END_TEST

START_TEST(feat_B29_a_job_that_has_begun_by_its_time_does_not_expire)
{
    run("SELECT claimd.enqueue('a', expires_at => now() - interval '1 s')::text FROM "
        "generate_series(1, 2)");
    run("UPDATE claimd.job SET state = 'running', fence = id + 100, attempt = 1 WHERE id = 1");
    run("UPDATE claimd.job SET attempt = 1 WHERE id = 2"); /* it waits for its second attempt */
    ck_assert_int_eq(sql_number(db, EXPIRE), 0);
    ck_assert_int_eq(sql_number(db, DEADLINES), 0);
    ck_assert_str_eq(sql_text(db, ENDS), "1 running,2 available");
}
END_TEST

START_TEST(feat_B29_what_waits_behind_running_jobs_expires_all_the_same)
{
    run("SELECT claimd.enqueue('a', expires_at => now() - interval '1 h')::text FROM "
        "generate_series(1, 20)");
    run("UPDATE claimd.job SET state = 'running', fence = id + 100, attempt = 1");
    run("SELECT claimd.enqueue('a', expires_at => now() - interval '1 s')::text");
    ck_assert_int_eq(sql_number(db, "SELECT claimd.expire_jobs(20)::text"), 0);
    ck_assert_int_eq(sql_number(db, "SELECT claimd.expire_jobs(20)::text"), 1);
}
END_TEST

START_TEST(feat_B29_the_end_of_a_job_takes_its_deadline_along_and_a_retry_has_none)
{
    run("SELECT claimd.enqueue('a', expires_at => now() + interval '1 h')::text FROM "
        "generate_series(1, 2)");
    run("UPDATE claimd.job SET state = 'running', fence = 7, attempt = 1 WHERE id = 1");
    run("SELECT claimd.complete_in_tx(1, 7)::text");
    run("SELECT claimd.cancel(2)");
    ck_assert_int_eq(sql_number(db, DEADLINES), 0);
    run("SELECT claimd.enqueue('a', expires_at => now() - interval '1 s')::text");
    ck_assert_int_eq(sql_number(db, EXPIRE), 1);
    run("SELECT claimd.retry_many('{2,3}')::text");
    ck_assert_int_eq(sql_number(db, COUNT_FLAG), 0);
    ck_assert_int_eq(sql_number(db, EXPIRE), 0);
}
END_TEST

START_TEST(feat_B29_an_expired_job_frees_its_key_and_those_who_wait_for_it_hear_of_it)
{
    run("SELECT claimd.batch_open()::text");
    run("SELECT claimd.batch_add(1, claimd.enqueue('a', unique_key => 'k', expires_at => now() - "
        "interval '1 s'))::text");
    run("SELECT claimd.enqueue('b', after => '{1}', if_dead => 'run')::text");
    ck_assert_int_eq(sql_number(db, EXPIRE), 1);
    ck_assert_int_eq(sql_number(db, "SELECT failed::text FROM claimd.batch_status(1)"), 1);
    ck_assert_int_eq(sql_number(db, "SELECT released::text FROM claimd.release_jobs()"), 1);
    run("SELECT claimd.enqueue('a', unique_key => 'k')::text");
}
END_TEST

START_TEST(feat_B29_no_claim_starts_a_job_that_has_expired)
{
    run("INSERT INTO claimd.kind (name) VALUES ('a')");
    run("SELECT claimd.enqueue('a', expires_at => clock_timestamp() + interval '50 ms')::text");
    run("SELECT claimd.enqueue('a', expires_at => now() + interval '1 h')::text");
    run("SELECT pg_sleep(0.06)::text");
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(id::text, ',') FROM "
                                  "claimd.claim_limited('{1,2}', gen_random_uuid(), '{a}', '{}')"),
                     "2");
    ck_assert_str_eq(sql_text(db, ENDS), "1 discarded expired,2 running");
}
END_TEST

START_TEST(feat_B29_many_jobs_may_have_deadlines_and_unique_ones)
{
    run("SELECT count(*)::text FROM claimd.enqueue_many('[{\"kind\": \"a\", \"expires_at\": "
        "\"2000-01-01Z\"}, {\"kind\": \"a\"}]')");
    run("SELECT id::text FROM claimd.enqueue_unique('a', unique_key => 'k', expires_at => "
        "'2000-01-01Z')");
    ck_assert_int_eq(sql_number(db, EXPIRE), 2);
}
END_TEST

START_TEST(feat_B29_a_deadline_that_can_not_be_is_refused)
{
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', expires_at => 'infinity')", "CL002",
                   "expires_at: must lie before the year 2286");
    ASSERT_REFUSED(db,
                   "SELECT claimd.enqueue('a', scheduled_at => '2100-01-02', expires_at => "
                   "'2100-01-01')",
                   "CL002", "expires_at: must be later than scheduled_at");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue_many('[{\"kind\": \"a\", \"expires_at\": 7}]')",
                   "CL002", "jobs[0].expires_at: must be of type timestamp with time zone");
    run("UPDATE claimd.cluster SET oldest_program = 2");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', expires_at => now() + interval '1 h')", "CL003",
                   "programs of an older release may still work");
}
END_TEST

#define FLAGGED "SELECT id::text FROM claimd.job WHERE flags & 2048 <> 0"

START_TEST(feat_D3_an_edit_gives_a_queued_job_a_deadline_moves_it_and_takes_it_away)
{
    run("SELECT claimd.enqueue('a')::text");
    run("SELECT claimd.edit(1, '{\"expires_at\": \"2200-01-01Z\"}')::text");
    run("SELECT claimd.edit(1, '{\"expires_at\": \"2200-01-02Z\", \"priority\": 1}')::text");
    ck_assert_int_eq(sql_number(db, FLAGGED), 1);
    ck_assert_str_eq(
        sql_text(db, "SELECT (expires_at AT TIME ZONE 'UTC')::date::text FROM claimd.job_deadline"),
        "2200-01-02");
    ck_assert_str_eq(
        sql_text(db, "SELECT string_agg(left(before ->> 'expires_at', 10) || ' ' || left(after ->> "
                     "'expires_at', 10), ',') FROM claimd.job_edit WHERE version = 3"),
        "2200-01-01 2200-01-02");
    run("SELECT claimd.edit(1, '{\"expires_at\": null}')::text");
    ck_assert_int_eq(sql_number(db, DEADLINES), 0);
    ck_assert_int_eq(sql_number(db, COUNT_FLAG), 0);
    run("SELECT claimd.edit(1, '{\"expires_at\": \"2000-01-01Z\"}')::text");
    ck_assert_int_eq(sql_number(db, EXPIRE), 1);
}
END_TEST

START_TEST(feat_D3_an_edit_that_can_not_be_is_refused)
{
    run("SELECT claimd.enqueue('a')::text");
    ASSERT_REFUSED(db,
                   "SELECT claimd.edit(1, '{\"expires_at\": \"2100-01-01\", \"scheduled_at\": "
                   "\"2100-01-02\"}')",
                   "CL002", "patch.expires_at: must be later than scheduled_at");
    ASSERT_REFUSED(db, "SELECT claimd.edit(1, '{\"grace\": \"2 h\"}')", "CL002",
                   "patch.grace: must be 1 ms to 1 hour");
    run("UPDATE claimd.job SET attempt = 1");
    ASSERT_REFUSED(db, "SELECT claimd.edit(1, '{\"expires_at\": \"2100-01-01\"}')", "CL003",
                   "job 1 has begun: it can't expire any more");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("expire");
    TCase *tc = tcase_create("expire");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, feat_B29_a_job_that_has_not_begun_by_its_time_is_discarded);
    tcase_add_test(tc, feat_B29_a_job_that_has_begun_by_its_time_does_not_expire);
    tcase_add_test(tc, feat_B29_what_waits_behind_running_jobs_expires_all_the_same);
    tcase_add_test(tc, feat_B29_the_end_of_a_job_takes_its_deadline_along_and_a_retry_has_none);
    tcase_add_test(tc, feat_B29_an_expired_job_frees_its_key_and_those_who_wait_for_it_hear_of_it);
    tcase_add_test(tc, feat_B29_no_claim_starts_a_job_that_has_expired);
    tcase_add_test(tc, feat_B29_many_jobs_may_have_deadlines_and_unique_ones);
    tcase_add_test(tc, feat_B29_a_deadline_that_can_not_be_is_refused);
    tcase_add_test(tc, feat_D3_an_edit_gives_a_queued_job_a_deadline_moves_it_and_takes_it_away);
    tcase_add_test(tc, feat_D3_an_edit_that_can_not_be_is_refused);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
