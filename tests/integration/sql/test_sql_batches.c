/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract in SQL of batches (feat.B9): counts, the end, one follow-up. */

#include "sql_db.h"
#include "support/sql.h"

#include <stdio.h>

#define COUNTS                                                                              \
    "SELECT concat_ws(' ', state, jobs, open, succeeded, failed, cancelled, follow_up_job)" \
    " FROM claimd.batch_status(1)"
#define FOLLOW_UP "'{\"kind\": \"after\", \"priority\": 1}'"

/* Makes batch 1 with jobs 1…count. */
static void given_batch(int count)
{
    sql_run(db, "SELECT claimd.batch_open('b', " FOLLOW_UP ")::text");
    sql_run(
        db,
        "SELECT count(claimd.batch_add(1, claimd.enqueue('a')))::text FROM generate_series(1, %d)",
        count);
}

#define RUN_ALL "UPDATE claimd.job SET state = 'running', fence = id + 100, attempt = 1"
#define COMPLETE(id) "SELECT claimd.complete_in_tx(id, fence)::text FROM claimd.job WHERE id = " #id
#define END "SELECT count(*)::text FROM claimd.end_batches()"

START_TEST(B9_a_batch_counts_how_its_jobs_ended_and_is_followed_by_one_job_when_all_have)
{
    given_batch(3);
    ck_assert_str_eq(sql_text(db, COUNTS), "open 3 3 0 0 0");
    run(RUN_ALL);
    run(COMPLETE(1));
    run("SELECT claimd.batch_close(1)::text");
    run("SELECT claimd.batch_close(1)::text"); /* closing it again is not an error */
    ck_assert_int_eq(sql_number(db, END), 0);
    run(COMPLETE(2));
    run("UPDATE claimd.job SET state = 'available'");
    run("SELECT claimd.cancel(3)");
    ck_assert_str_eq(sql_text(db, COUNTS), "closed 3 0 2 0 1");
    ck_assert_int_eq(sql_number(db, END), 1);
    ck_assert_int_eq(sql_number(db, END), 0);
    ck_assert_str_eq(sql_text(db, COUNTS), "over 3 0 2 0 1 4");
    ck_assert_str_eq(sql_text(db, "SELECT concat_ws(' ', id, kind, priority) FROM claimd.job"),
                     "4 after 1");
}
END_TEST

START_TEST(B9_a_batch_that_is_not_closed_is_not_over)
{
    given_batch(1);
    run(RUN_ALL);
    run(COMPLETE(1));
    ck_assert_int_eq(sql_number(db, END), 0);
    ck_assert_str_eq(sql_text(db, COUNTS), "open 1 0 1 0 0");
}
END_TEST

#define REPAIR "SELECT claimd.repair_batches()::text"

START_TEST(B9_jobs_that_somebody_has_deleted_count_as_cancelled_in_a_closed_batch)
{
    given_batch(305);
    run(RUN_ALL);
    run(COMPLETE(305));
    run("DELETE FROM claimd.job WHERE id BETWEEN 2 AND 250");
    ck_assert_int_eq(sql_number(db, REPAIR), 0); /* it is open: no one waits for its end */
    run("SELECT claimd.batch_close(1)::text");
    ck_assert_int_eq(sql_number(db, REPAIR), 249);
    ck_assert_int_eq(sql_number(db, REPAIR), 0);
    ck_assert_str_eq(sql_text(db, COUNTS), "closed 305 55 1 0 249");
    run("DELETE FROM claimd.job");
    ck_assert_int_eq(sql_number(db, REPAIR), 55);
    ck_assert_int_eq(sql_number(db, END), 1);
    ck_assert_str_eq(sql_text(db, COUNTS), "over 305 0 1 0 304 306");
}
END_TEST

START_TEST(B9_an_empty_batch_is_over_when_it_is_closed)
{
    run("SELECT claimd.batch_open()::text");
    run("SELECT claimd.batch_close(1)::text");
    ck_assert_int_eq(sql_number(db, END), 1);
    ck_assert_str_eq(sql_text(db, COUNTS), "over 0 0 0 0 0");
}
END_TEST

START_TEST(B9_a_job_that_is_retried_opens_its_batch_again_unless_that_is_over)
{
    given_batch(2);
    run("SELECT claimd.cancel(1)");
    run("SELECT claimd.retry(1)::text");
    ck_assert_str_eq(sql_text(db, COUNTS), "open 2 2 0 0 0");
    run("SELECT claimd.batch_cancel(1)::text");
    ck_assert_int_eq(sql_number(db, END), 1);
    run("SELECT claimd.retry(1)::text");
    ck_assert_str_eq(sql_text(db, COUNTS), "over 2 0 0 0 2 3");
}
END_TEST

START_TEST(B9_a_batch_is_not_over_while_a_retry_of_its_job_has_yet_to_commit)
{
    struct sql *operator= sql_open(world.conninfo);
    given_batch(2);
    run("SELECT claimd.batch_cancel(1)::text");
    sql_run(operator, "BEGIN");
    sql_run(operator, "SELECT claimd.retry(1)::text");
    ck_assert_int_eq(sql_number(db, END), 0);
    sql_run(operator, "COMMIT");
    ck_assert_int_eq(sql_number(db, END), 0);
    ck_assert_str_eq(sql_text(db, COUNTS), "closed 2 1 0 0 1");
    run("SELECT claimd.cancel(1)");
    ck_assert_int_eq(sql_number(db, END), 1);
    ck_assert_str_eq(sql_text(db, COUNTS), "over 2 0 0 0 2 3");
    sql_close(operator);
}
END_TEST

/* The end of the first batch takes until `go` has a row; the ends of the others are searched for
 * before that. */
START_TEST(B9_a_batch_is_not_over_when_a_job_was_retried_since_its_end_was_looked_for)
{
    struct sql *leader = sql_open(world.conninfo);
    run("CREATE TABLE go (n integer)");
    run("GRANT SELECT ON go TO PUBLIC");
    run("CREATE FUNCTION wait_for_go() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN LOOP EXIT WHEN"
        " EXISTS (SELECT FROM public.go); PERFORM pg_sleep(0.01); END LOOP; RETURN NEW; END $$");
    given_batch(0);
    run("SELECT count(claimd.batch_add(claimd.batch_open(), claimd.enqueue('a')))::text"
        " FROM generate_series(1, 60)");
    run("SELECT count(claimd.batch_cancel(id))::text FROM claimd.batch");
    run("CREATE TRIGGER wait_for_go BEFORE INSERT ON claimd.job FOR EACH ROW WHEN (NEW.kind ="
        " 'after') EXECUTE FUNCTION wait_for_go()");
    sql_send(leader, "SELECT claimd.end_batches()");
    RUN_UNTIL(sql_number(db, "SELECT count(*)::text FROM pg_stat_activity WHERE query LIKE "
                             "'%%end_batches%%' AND wait_event = 'PgSleep'") == 1);
    run("SELECT claimd.retry(max(id))::text FROM claimd.job_history");
    run("INSERT INTO go VALUES (1)");
    sql_wait(leader);
    sql_close(leader);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.batches WHERE state = 'over'"), 60);
    ck_assert_str_eq(
        sql_text(db, "SELECT string_agg(DISTINCT state || open, ' ') FROM claimd.batches"),
        "closed1 over0");
}
END_TEST

START_TEST(B9_a_job_of_the_same_transaction_may_be_added_and_a_rollback_takes_it_out)
{
    run("SELECT claimd.batch_open()::text");
    run("BEGIN");
    run("SELECT claimd.batch_add(1, claimd.enqueue('a'))::text");
    struct sql *other = sql_open(world.conninfo);
    sql_run(other, "SET lock_timeout = '10ms'");
    /* Closing waits for the session that is adding. */
    ASSERT_REFUSED(other, "SELECT claimd.batch_close(1)", "55P03", "");
    run("ROLLBACK");
    ck_assert_str_eq(sql_text(db, COUNTS), "open 0 0 0 0 0");
    sql_close(other);
}
END_TEST

START_TEST(B6_a_key_that_outlives_its_job_does_so_in_a_batch_too)
{
    run("SELECT claimd.batch_open()::text");
    run("SELECT claimd.batch_add(1, claimd.enqueue('a', unique_key => 'k', unique_for => '1 h'))"
        "::text");
    run(RUN_ALL);
    run(COMPLETE(1));
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', unique_key => 'k', unique_for => '1 h')",
                   "CL004", "job 1");
}
END_TEST

START_TEST(B9_what_can_not_be_is_refused_with_the_reason)
{
    ASSERT_REFUSED(db, "SELECT claimd.batch_open(repeat('x', 201))", "CL002", "name: at most");
    ASSERT_REFUSED(db, "SELECT claimd.batch_open('b', '{\"kind\": \"A\"}')", "CL002",
                   "follow_up.kind: must match");
    ASSERT_REFUSED(db, "SELECT claimd.batch_open('b', '{\"kind\": \"a\", \"tags\": [\"\"]}')",
                   "CL002", "follow_up.tags: must be a list of texts, none of them empty");
    ASSERT_REFUSED(db, "SELECT claimd.batch_open('b', '[]')", "CL002", "follow_up: must be an obj");
    ASSERT_REFUSED(db, "SELECT claimd.batch_open('b', on_success => '{\"kind\": \"A\"}')", "CL002",
                   "on_success.kind: must match");
    ASSERT_REFUSED(
        db, "SELECT claimd.batch_open('b', on_failure => '{\"kind\": \"a\", \"metadata\": 1}')",
        "CL002", "on_failure.metadata: must be a JSON object");
    ASSERT_REFUSED(db, "SELECT claimd.batch_add(7, 1)", "CL003", "batch 7 not found");
    ASSERT_REFUSED(db, "SELECT claimd.batch_close(7)", "CL003", "batch 7 not found");
    given_batch(1);
    ASSERT_REFUSED(db, "SELECT claimd.batch_add(1, 99)", "CL003", "job 99 has ended");
    run("SELECT claimd.batch_open()::text");
    ASSERT_REFUSED(db, "SELECT claimd.batch_add(2, 1)", "CL003", "job 1 is in batch 1");
    run("SELECT claimd.batch_add(1, 1)::text");
    run("SELECT claimd.batch_close(1)::text");
    ASSERT_REFUSED(db, "SELECT claimd.batch_add(1, 1)", "CL003", "batch 1 is closed");
}
END_TEST

#define MADE                                                                       \
    "SELECT string_agg(concat_ws(' ', id, kind, metadata), ',' ORDER BY id) FROM " \
    "claimd.job WHERE state = 'available' AND id > 2"
#define WITH_OUTCOMES                                                                    \
    "SELECT claimd.batch_open('b', '{\"kind\": \"report\", \"metadata\": {\"to\": 1}}'," \
    " on_success => '{\"kind\": \"publish\"}',"                                          \
    " on_failure => '{\"kind\": \"alert\", \"metadata\": null}')::text"

static void given_batch_with_outcomes(void)
{
    run(WITH_OUTCOMES);
    run("SELECT count(claimd.batch_add(1, claimd.enqueue('a')))::text FROM generate_series(1, 2)");
    run("SELECT claimd.batch_close(1)::text");
    run(RUN_ALL);
    run(COMPLETE(1));
}

START_TEST(feat_B29_a_batch_all_of_whose_jobs_completed_is_followed_by_on_success_too)
{
    given_batch_with_outcomes();
    run(COMPLETE(2));
    ck_assert_int_eq(sql_number(db, END), 1);
    ck_assert_str_eq(sql_text(db, MADE), "3 report {\"to\": 1, \"batch_id\": 1},"
                                         "4 publish {\"batch_id\": 1}");
    ck_assert_str_eq(
        sql_text(db,
                 "SELECT concat_ws(' ', follow_up_job, outcome_job) FROM claimd.batch_status(1)"),
        "3 4");
    ck_assert_int_eq(sql_number(db, END), 0);
}
END_TEST

START_TEST(feat_B29_a_batch_with_a_job_that_did_not_complete_is_followed_by_on_failure_too)
{
    given_batch_with_outcomes();
    run("UPDATE claimd.job SET state = 'available'");
    run("SELECT claimd.cancel(2)");
    ck_assert_int_eq(sql_number(db, END), 1);
    ck_assert_str_eq(sql_text(db, MADE), "3 report {\"to\": 1, \"batch_id\": 1},"
                                         "4 alert {\"batch_id\": 1}");
    run("SELECT claimd.batch_open('c', on_success => '{\"kind\": \"publish\"}')::text");
    run("SELECT claimd.batch_add(2, claimd.enqueue('a'))::text");
    run("SELECT claimd.batch_cancel(2)::text");
    ck_assert_int_eq(sql_number(db, END), 1); /* without a follow-up */
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.batches WHERE id = 2 AND "
                                    "state = 'over' AND outcome_job IS NULL AND error IS NULL"),
                     1);
}
END_TEST

START_TEST(feat_B29_what_follows_a_batch_is_made_all_or_none)
{
    given_batch_with_outcomes();
    run(COMPLETE(2));
    run("SELECT claimd.limit_open('default', 1)::text");
    ck_assert_int_eq(sql_number(db, END), 0); /* room for only one of the two */
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 0);
    run("SELECT claimd.limit_open('default', 2)::text");
    ck_assert_int_eq(sql_number(db, END), 1);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 2);
}
END_TEST

START_TEST(feat_B29_a_job_knows_its_batch)
{
    given_batch(1);
    run("SELECT claimd.enqueue('a')::text");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.batch_of(1)::text"), "1");
    ck_assert_int_eq(sql_number(db, "SELECT count(claimd.batch_of(2))::text"), 0);
}
END_TEST

START_TEST(B9_a_follow_up_that_can_not_be_made_keeps_no_other_batch_from_its_end)
{
    given_batch(0);
    run("SELECT claimd.batch_open('c', '{\"kind\": \"after\"}')::text");
    run("SELECT claimd.batch_close(id)::text FROM claimd.batch");
    run("UPDATE claimd.batch SET follow_up = '{\"kind\": \"no kind\"}' WHERE id = 1");
    ck_assert_int_eq(sql_number(db, END), 2);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 1);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.batches WHERE id = 1 AND "
                                    "state = 'over' AND error LIKE '%%kind: must match%%'"),
                     1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batches");
    TCase *tc = tcase_create("batches");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc,
                   B9_a_batch_counts_how_its_jobs_ended_and_is_followed_by_one_job_when_all_have);
    tcase_add_test(tc, B9_a_batch_that_is_not_closed_is_not_over);
    tcase_add_test(tc, B9_jobs_that_somebody_has_deleted_count_as_cancelled_in_a_closed_batch);
    tcase_add_test(tc, B9_an_empty_batch_is_over_when_it_is_closed);
    tcase_add_test(tc, B9_a_job_that_is_retried_opens_its_batch_again_unless_that_is_over);
    tcase_add_test(tc, B9_a_batch_is_not_over_while_a_retry_of_its_job_has_yet_to_commit);
    tcase_add_test(tc, B9_a_batch_is_not_over_when_a_job_was_retried_since_its_end_was_looked_for);
    tcase_add_test(tc, B9_a_job_of_the_same_transaction_may_be_added_and_a_rollback_takes_it_out);
    tcase_add_test(tc, B6_a_key_that_outlives_its_job_does_so_in_a_batch_too);
    tcase_add_test(tc, B9_what_can_not_be_is_refused_with_the_reason);
    tcase_add_test(tc, B9_a_follow_up_that_can_not_be_made_keeps_no_other_batch_from_its_end);
    tcase_add_test(tc, feat_B29_a_batch_all_of_whose_jobs_completed_is_followed_by_on_success_too);
    tcase_add_test(tc,
                   feat_B29_a_batch_with_a_job_that_did_not_complete_is_followed_by_on_failure_too);
    tcase_add_test(tc, feat_B29_what_follows_a_batch_is_made_all_or_none);
    tcase_add_test(tc, feat_B29_a_job_knows_its_batch);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
