/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues with max_open (feat.B29): a call that exceeds it is refused exactly, and none of its jobs
 * is stored. */
#include "sql_db.h"
#include "support/sql.h"

#include <stdio.h>

#define PRODUCERS 8
#define OPEN "SELECT count(*)::text FROM claimd.job"

START_TEST(feat_B29_a_full_queue_refuses_and_says_how_many_jobs_are_open)
{
    run("SELECT claimd.limit_open('q', 2)::text");
    run("SELECT claimd.enqueue('a', queue => 'q')::text FROM generate_series(1, 2)");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', queue => 'q')", "CL005",
                   "queue: q has 2 of at most 2 open jobs: no room for 1 more");
    run("INSERT INTO claimd.job (kind, queue) SELECT 'a', 'q' FROM generate_series(1, 5)");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', queue => 'q')", "CL005",
                   "queue: q has more than 2 of at most 2 open jobs");
    ck_assert_int_eq(sql_number(db, OPEN), 7);
    run("SELECT claimd.enqueue('a', queue => 'other')::text");
    run("SELECT claimd.enqueue('a')::text");
}
END_TEST

START_TEST(feat_B29_a_job_that_ends_makes_room_whether_it_waits_or_runs)
{
    run("SELECT claimd.limit_open('q', 3)::text");
    run("SELECT claimd.enqueue('a', queue => 'q')::text FROM generate_series(1, 3)");
    run("UPDATE claimd.job SET state = 'running', fence = id, attempt = 1 WHERE id = 1");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', queue => 'q')", "CL005",
                   "q has 3 of at most 3 open jobs");
    run("SELECT claimd.complete_in_tx(1, 1)::text");
    ck_assert_int_eq(sql_number(db, "SELECT claimd.enqueue('a', queue => 'q')::text"), 4);
    run("SELECT claimd.cancel(2)");
    ck_assert_int_eq(sql_number(db, "SELECT claimd.enqueue('a', queue => 'q')::text"), 5);
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', queue => 'q')", "CL005",
                   "q has 3 of at most 3 open jobs");
}
END_TEST

START_TEST(feat_B29_an_array_that_does_not_fit_is_refused_as_a_whole)
{
    run("SELECT claimd.limit_open('q', 5)::text");
    run("SELECT claimd.enqueue('a', queue => 'q')::text");
    ASSERT_REFUSED(db,
                   "SELECT claimd.enqueue_many((SELECT jsonb_agg(jsonb_build_object('kind', 'a', "
                   "'queue', CASE n WHEN 9 THEN 'default' ELSE 'q' END)) FROM generate_series(4, "
                   "9) AS n))",
                   "CL005", "queue: q has 1 of at most 5 open jobs: no room for 5 more");
    ck_assert_int_eq(sql_number(db, OPEN), 1);
    run("SELECT claimd.enqueue_many((SELECT jsonb_agg(jsonb_build_object('kind', 'a', 'queue', "
        "CASE "
        "n WHEN 9 THEN 'default' ELSE 'q' END)) FROM generate_series(5, 9) AS n))");
    ck_assert_int_eq(sql_number(db, OPEN), 6);
    ASSERT_REFUSED(db,
                   "SELECT claimd.enqueue_many('[{\"kind\": \"a\", \"unique_key\": \"k\"}, "
                   "{\"kind\": \"a\", \"queue\": \"q\"}]')",
                   "CL005", "no room for 1 more");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_key"), 0);
}
END_TEST

START_TEST(feat_B29_a_unique_job_that_is_there_needs_no_room)
{
    run("SELECT claimd.limit_open('q', 1)::text");
    run("SELECT claimd.enqueue('a', queue => 'q', unique_key => 'k')::text");
    ck_assert_int_eq(
        sql_number(
            db, "SELECT id::text FROM claimd.enqueue_unique('a', queue => 'q', unique_key => 'k')"),
        1);
    ASSERT_REFUSED(db, "SELECT claimd.enqueue_unique('a', queue => 'q', unique_key => 'l')",
                   "CL005", "q has 1 of at most 1 open jobs");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_key"), 1);
}
END_TEST

START_TEST(feat_B29_a_retry_needs_room_and_is_refused_as_a_whole)
{
    run("SELECT claimd.limit_open('q', 2)::text");
    run("SELECT claimd.enqueue('a', queue => 'q')::text FROM generate_series(1, 2)");
    run("SELECT claimd.enqueue('a')::text");
    run("SELECT claimd.cancel(id) FROM claimd.job");
    run("SELECT claimd.enqueue('a', queue => 'q')::text");
    ASSERT_REFUSED(db, "SELECT claimd.retry_many('{1,2,3}')", "CL005",
                   "queue: q has 1 of at most 2 open jobs: no room for 2 more");
    ck_assert_int_eq(sql_number(db, OPEN), 1);
    run("SELECT claimd.retry_many('{1,3}')::text");
    ASSERT_REFUSED(db, "SELECT claimd.retry(2)", "CL005", "q has 2 of at most 2 open jobs");
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.job_history WHERE retried_at IS NULL"),
        1);
}
END_TEST

START_TEST(feat_B29_a_job_is_not_moved_into_a_full_queue_but_changed_within_it)
{
    run("UPDATE claimd.cluster SET oldest_program = schema_version");
    run("SELECT claimd.limit_open('q', 1)::text");
    run("SELECT claimd.enqueue('a', queue => 'q')::text");
    run("SELECT claimd.enqueue('a')::text FROM generate_series(1, 2)");
    run("UPDATE claimd.job SET state = 'running', fence = 7, attempt = 1 WHERE id = 3");
    ASSERT_REFUSED(db, "SELECT claimd.edit(2, '{\"queue\": \"q\"}')", "CL005",
                   "queue: q has 1 of at most 1 open jobs: no room for 1 more");
    ASSERT_REFUSED(db, "SELECT claimd.edit(3, '{\"queue\": \"q\"}', apply => 'next')", "CL005",
                   "no room for 1 more");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_edit"), 0);
    run("SELECT claimd.edit(1, '{\"queue\": \"q\", \"priority\": 0}')::text");
    run("SELECT claimd.cancel(1)");
    run("SELECT claimd.edit(2, '{\"queue\": \"q\"}')::text");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', queue => 'q')", "CL005", "no room for 1 more");
}
END_TEST

START_TEST(feat_B29_what_is_rolled_back_has_taken_no_room)
{
    run("SELECT claimd.limit_open('q', 2)::text");
    run("BEGIN");
    run("SELECT claimd.enqueue('a', queue => 'q')::text FROM generate_series(1, 2)");
    run("ROLLBACK");
    run("SELECT claimd.enqueue('a', queue => 'q')::text FROM generate_series(1, 2)");
    ck_assert_int_eq(sql_number(db, OPEN), 2);
}
END_TEST

START_TEST(feat_B29_the_limit_is_raised_lowered_and_lifted)
{
    run("SELECT claimd.limit_open('q', 10)::text");
    run("SELECT claimd.enqueue('a', queue => 'q')::text FROM generate_series(1, 5)");
    run("SELECT claimd.limit_open('q', 5)::text");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', queue => 'q')", "CL005", "at most 5");
    run("SELECT claimd.limit_open('q', 6)::text");
    run("SELECT claimd.enqueue('a', queue => 'q')::text");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', queue => 'q')", "CL005", "at most 6");
    run("SELECT claimd.limit_open('q', NULL)::text");
    run("SELECT claimd.enqueue('a', queue => 'q')::text");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.room"), 0);
    ASSERT_REFUSED(db, "SELECT claimd.limit_open('q', 0)", "CL002",
                   "max_open: must be 1 to 10000000, or NULL for no limit");
    ASSERT_REFUSED(db, "SELECT claimd.limit_open('Q', 1)", "CL002", "queue: must match");
}
END_TEST

START_TEST(feat_B29_a_tick_that_finds_its_queue_full_is_tried_again_and_the_schedule_says_why)
{
#define FIRED "SELECT count(*)::text FROM claimd.fire_schedules() WHERE outcome = 'fired'"
    run("SELECT claimd.limit_open('q', 1)::text");
    run("SELECT claimd.enqueue('a', queue => 'q')::text");
    run("SELECT claimd.schedule_set('s', 'b', '* * * * *', queue => 'q')::text");
    run("UPDATE claimd.schedule SET next_at = date_trunc('minute', now()), wake_at = now()");
    ck_assert_int_eq(sql_number(db, FIRED), 0);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.schedule WHERE failures = 1 "
                                    "AND error LIKE 'queue: q has 1 of%%'"),
                     1);
    run("SELECT claimd.cancel(1)");
    run("UPDATE claimd.schedule SET wake_at = now()");
    ck_assert_int_eq(sql_number(db, FIRED), 1);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.schedule WHERE error IS NULL"), 1);
}
END_TEST

START_TEST(feat_B29_the_follow_up_of_a_batch_waits_for_room_and_keeps_no_other_batch_from_its_end)
{
#define ENDED "SELECT count(*)::text FROM claimd.end_batches()"
    run("SELECT claimd.limit_open('default', 1)::text");
    run("SELECT claimd.enqueue('a')::text");
    run("SELECT claimd.batch_open('b', '{\"kind\": \"next\"}')::text");
    run("SELECT claimd.batch_open('c')::text");
    run("SELECT claimd.batch_close(id)::text FROM claimd.batch");
    ck_assert_int_eq(sql_number(db, ENDED), 1);
    ck_assert_int_eq(sql_number(db, ENDED), 0);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.batches WHERE id = 1 AND "
                                    "state = 'closed' AND error LIKE 'queue: default has 1 of%%'"),
                     1);
    run("SELECT claimd.cancel(1)");
    ck_assert_int_eq(sql_number(db, ENDED), 1);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.batches WHERE id = 1 AND "
                                    "state = 'over' AND error IS NULL AND follow_up_job > 1"),
                     1);
}
END_TEST

START_TEST(feat_B29_eight_producers_at_once_never_exceed_it_while_jobs_end)
{
    struct sql *producers[PRODUCERS];
    run("SELECT claimd.limit_open('q', 40)::text");
    for (size_t i = 0; i < PRODUCERS; i++) {
        producers[i] = sql_open(world.conninfo);
        sql_send(
            producers[i],
            "DO $$ BEGIN FOR n IN 1..100 LOOP BEGIN PERFORM claimd.enqueue('a', queue => 'q'); "
            "EXCEPTION WHEN SQLSTATE 'CL005' THEN NULL; END; COMMIT; IF (SELECT count(*) > 40 "
            "FROM claimd.job) THEN RAISE 'too many'; END IF; IF n %% 10 = 0 THEN PERFORM "
            "claimd.cancel(id) FROM (SELECT id FROM claimd.job FOR UPDATE SKIP LOCKED LIMIT 3) "
            "j; COMMIT; END IF; END LOOP; END $$");
    }
    for (size_t i = 0; i < PRODUCERS; i++) {
        sql_wait(producers[i]);
        sql_close(producers[i]);
    }
    run("DO $$ BEGIN FOR n IN 1..41 LOOP PERFORM claimd.enqueue('a', queue => 'q'); END LOOP; "
        "EXCEPTION WHEN SQLSTATE 'CL005' THEN NULL; END $$");
    ck_assert_int_le(sql_number(db, OPEN), 40);
    ck_assert_int_gt(sql_number(db, "SELECT count(*)::text FROM claimd.job_history"), 0);
}
END_TEST

START_TEST(a_producer_is_limited_and_may_set_no_limit)
{
    struct sql *producer = sql_open(world.conninfo);
    sql_run(producer, "SET ROLE claimd_producer");
    run("SELECT claimd.limit_open('q', 1)::text");
    sql_run(producer, "SELECT claimd.enqueue('a', queue => 'q')::text");
    ASSERT_REFUSED(producer, "SELECT claimd.enqueue('a', queue => 'q')", "CL005", "no room");
    ASSERT_REFUSED(producer, "SELECT claimd.limit_open('q', 2)", "42501", "");
    ASSERT_REFUSED(producer, "SELECT claimd.take_room('q', -1)", "42501", "");
    sql_close(producer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sql_room");
    TCase *tc = tcase_create("max_open");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, feat_B29_a_full_queue_refuses_and_says_how_many_jobs_are_open);
    tcase_add_test(tc, feat_B29_a_job_that_ends_makes_room_whether_it_waits_or_runs);
    tcase_add_test(tc, feat_B29_an_array_that_does_not_fit_is_refused_as_a_whole);
    tcase_add_test(tc, feat_B29_a_unique_job_that_is_there_needs_no_room);
    tcase_add_test(tc, feat_B29_a_retry_needs_room_and_is_refused_as_a_whole);
    tcase_add_test(tc, feat_B29_a_job_is_not_moved_into_a_full_queue_but_changed_within_it);
    tcase_add_test(tc, feat_B29_what_is_rolled_back_has_taken_no_room);
    tcase_add_test(tc, feat_B29_the_limit_is_raised_lowered_and_lifted);
    tcase_add_test(
        tc, feat_B29_a_tick_that_finds_its_queue_full_is_tried_again_and_the_schedule_says_why);
    tcase_add_test(
        tc, feat_B29_the_follow_up_of_a_batch_waits_for_room_and_keeps_no_other_batch_from_its_end);
    tcase_add_test(tc, feat_B29_eight_producers_at_once_never_exceed_it_while_jobs_end);
    tcase_add_test(tc, a_producer_is_limited_and_may_set_no_limit);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
