/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract in SQL of jobs after jobs (feat.B9). */
#include "support/pg_fixture.h"

#include <jansson.h>

static struct sql *db;

static void run(const char *sql)
{
    sql_run(db, "%s", sql);
}

/* Adds jobs 1 and 2, and job 3, which waits for both. */
static void setup(void)
{
    world_setup();
    db = sql_open(world.conninfo);
    run("SELECT claimd.enqueue('a')::text FROM generate_series(1, 2)");
}

static void teardown(void)
{
    sql_close(db);
    world_teardown();
}

#define AFTER(if_dead) "SELECT claimd.after(claimd.enqueue('b'), '{1,2}', '" if_dead "')::text"
#define COMPLETE(id)                                                          \
    "WITH r AS (UPDATE claimd.job SET state = 'running', fence = 1000 + " #id \
    ", attempt = 1 WHERE id = " #id " RETURNING id) SELECT count(*)::text FROM r"
#define DONE(id) "SELECT claimd.complete_in_tx(" #id ", 1000 + " #id ")::text"

static void complete_1(void)
{
    run(COMPLETE(1));
    run(DONE(1));
}

static void complete_2(void)
{
    run(COMPLETE(2));
    run(DONE(2));
}

static int64_t released(void)
{
    return sql_number(db, "SELECT released::text FROM claimd.release_jobs()");
}

#define IS_DUE "SELECT count(*)::text FROM claimd.jobs WHERE id = 3 AND state = 'available'"
#define STATE "SELECT state FROM claimd.jobs WHERE id = 3"

START_TEST(feat_B29_the_time_that_stands_for_waiting_is_shown_nowhere)
{
    static const char times[] = "SELECT concat_ws(' ', state, scheduled_at::date, ready_at::date) "
                                "FROM claimd.jobs WHERE id = 3";
    run("SELECT claimd.after(claimd.enqueue('b', scheduled_at => '2100-01-01'), '{1,2}')::text");
    ck_assert_str_eq(sql_text(db, "%s", times), "waiting 2100-01-01");
    run("SELECT claimd.cancel(3)");
    ck_assert_str_eq(sql_text(db, "%s", times), "cancelled");
    run("SELECT claimd.retry(3)::text");
    ck_assert_int_eq(sql_number(db, IS_DUE), 1);
    ck_assert_int_eq(
        sql_number(
            db, "SELECT count(*)::text FROM claimd.jobs j WHERE to_jsonb(j)::text LIKE '%%2285%%'"),
        0);
}
END_TEST

#define PREDECESSORS                                                                     \
    "SELECT string_agg(concat_ws(' ', id, kind, state, result, error), ',' ORDER BY id)" \
    " FROM claimd.predecessors(3)"
#define CANCELLED_AND_DONE "1 a completed {\"n\": 1},2 a cancelled"

static void end_both(void)
{
    run(COMPLETE(1));
    run("SELECT claimd.complete_in_tx(1, 1001, '{\"n\": 1}')::text");
    run("SELECT claimd.cancel(2)");
}

START_TEST(feat_B29_a_job_knows_what_those_before_it_found_while_it_waits_runs_and_runs_again)
{
    run(AFTER("run"));
    ck_assert_str_eq(sql_text(db, PREDECESSORS), "1 a available,2 a available");
    end_both();
    ck_assert_str_eq(sql_text(db, PREDECESSORS), CANCELLED_AND_DONE);
    ck_assert_int_eq(released(), 1);
    ck_assert_str_eq(sql_text(db, PREDECESSORS), CANCELLED_AND_DONE);
    run("SELECT claimd.after(3, ARRAY[claimd.enqueue('c')])::text"); /* 4: job 3 waits once more */
    run("SELECT claimd.cancel(4)");
    ck_assert_int_eq(released(), 1);
    ck_assert_str_eq(sql_text(db, PREDECESSORS), CANCELLED_AND_DONE ",4 c cancelled");
    run("SELECT claimd.retry(3)::text");
    ck_assert_int_eq(sql_number(db, IS_DUE), 1);
    ck_assert_str_eq(sql_text(db, PREDECESSORS), CANCELLED_AND_DONE ",4 c cancelled");
    ck_assert_int_eq(sql_number(db, "SELECT (flags & 32)::text FROM claimd.job WHERE id = 3"), 32);
}
END_TEST

START_TEST(feat_B29_a_job_that_is_cancelled_while_it_waits_has_its_predecessors_when_it_runs_again)
{
    run(AFTER("cancel"));
    end_both();
    ck_assert_int_eq(released(), 1);
    ck_assert_str_eq(sql_text(db, STATE), "cancelled");
    run("SELECT claimd.retry(3)::text");
    ck_assert_str_eq(sql_text(db, PREDECESSORS), CANCELLED_AND_DONE);
    run("SELECT claimd.cancel(3)");
    run("SELECT claimd.delete_job(3)");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_waited"), 0);
}
END_TEST

START_TEST(feat_B29_what_a_handler_is_told_of_those_before_it_has_a_bound)
{
#define TEXT(most) "SELECT claimd.predecessors_text(3, " #most ")"
    run(AFTER("run"));
    end_both();
    ck_assert_int_eq(released(), 1);
    json_t *told = json_loads(sql_text(db, TEXT(262144)), 0, NULL);
    ck_assert_uint_eq(json_array_size(told), 2);
    json_t *first = json_array_get(told, 0);
    ck_assert_int_eq(json_integer_value(json_object_get(first, "id")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(first, "result"), "n")), 1);
    ck_assert(json_is_null(json_object_get(first, "error")));
    json_decref(told);
    ck_assert_str_eq(sql_text(db, TEXT(100)), "null");
    run("SELECT claimd.enqueue('a')::text");
    ck_assert_int_eq(sql_number(db, "SELECT count(claimd.predecessors_text(4, 100))::text"), 0);
}
END_TEST

START_TEST(B9_a_job_does_not_wait_for_ever_for_one_that_somebody_has_deleted)
{
    run(AFTER("run"));
    ck_assert_int_eq(sql_number(db, "SELECT claimd.repair_waits()::text"), 0);
    run("DELETE FROM claimd.job WHERE id = 1");
    ck_assert_int_eq(sql_number(db, "SELECT claimd.repair_waits()::text"), 1);
    ck_assert_int_eq(sql_number(db, "SELECT claimd.repair_waits()::text"), 0);
    ck_assert_int_eq(released(), 0); /* the other predecessor is still open */
    complete_2();
    ck_assert_int_eq(released(), 1);
    ck_assert_int_eq(sql_number(db, IS_DUE), 1);
}
END_TEST

START_TEST(B9_a_job_is_due_when_all_those_before_it_have_completed)
{
    run(AFTER("cancel"));
    ck_assert_int_eq(released(), 0);
    complete_1();
    ck_assert_int_eq(released(), 0);
    ck_assert_int_eq(sql_number(db, IS_DUE), 0);
    complete_2();
    ck_assert_int_eq(released(), 1);
    ck_assert_int_eq(sql_number(db, IS_DUE), 1);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_wait"), 0);
}
END_TEST

START_TEST(B9_a_job_after_others_keeps_the_time_that_it_was_given)
{
    run("SELECT claimd.after(claimd.enqueue('b', scheduled_at => now() + interval '1 h'), "
        "'{1}')::text");
    complete_1();
    ck_assert_int_eq(released(), 1);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job WHERE id = 3 AND "
                                    "scheduled_at < now() + interval '61 min'"),
                     1);
    ck_assert_str_eq(sql_text(db, STATE), "scheduled");
}
END_TEST

START_TEST(B9_a_job_whose_predecessor_died_is_cancelled_runs_or_is_held_as_was_said)
{
    static const char *const said[] = {AFTER("cancel"), AFTER("run"), AFTER("hold")};
    static const char *const becomes[] = {"cancelled", "available", "waiting"};
    run(said[_i]);
    run("SELECT claimd.cancel(1)");
    complete_2();
    (void)released();
    ck_assert_str_eq(sql_text(db, STATE), becomes[_i]);
}
END_TEST

START_TEST(B9_a_held_job_goes_on_when_its_predecessor_is_retried_and_completes)
{
    run(AFTER("hold"));
    run("SELECT claimd.cancel(1)");
    complete_2();
    ck_assert_int_eq(released(), 0);
    run("SELECT claimd.retry(1)::text");
    complete_1();
    ck_assert_int_eq(released(), 1);
    ck_assert_int_eq(sql_number(db, IS_DUE), 1);
}
END_TEST

START_TEST(B9_predecessors_may_have_ended_already)
{
    complete_1();
    complete_2();
    run(AFTER("cancel"));
    ck_assert_int_eq(released(), 1);
    ck_assert_int_eq(sql_number(db, IS_DUE), 1);
}
END_TEST

START_TEST(B9_a_chain_is_cancelled_to_its_end)
{
    run("SELECT claimd.after(claimd.enqueue('b'), '{1}')::text");
    run("SELECT claimd.after(claimd.enqueue('b'), '{3}')::text");
    run("SELECT claimd.cancel(1)");
    ck_assert_int_eq(released(), 1);
    ck_assert_int_eq(released(), 1);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 1);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_after"), 0);
}
END_TEST

START_TEST(B9_enqueue_takes_those_before_as_well_one_by_one_and_many_at_once)
{
    run("SELECT claimd.enqueue('b', after => '{1,2}', if_dead => 'run')::text");
    run("SELECT claimd.enqueue_many('[{\"kind\": \"c\", \"after\": [1]}, {\"kind\": \"d\"}]')");
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.jobs WHERE state = 'waiting'"), 2);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_after"), 3);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.job_wait WHERE if_dead = 'run'"), 1);
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('b', after => '{}')", "CL002", "after: must be 1 to");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('b', after => '{1,NULL}')", "CL002",
                   "after: must be");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('b', if_dead => 'run')", "CL002", "if_dead: needs");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('b', after => '{1}', if_dead => 'x')", "CL002",
                   "if_dead: must be cancel");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('b', after => '{99}')", "CL003", "job 99 not found");
    ASSERT_REFUSED(db,
                   "SELECT claimd.enqueue_many('[{\"kind\": \"c\"}, {\"kind\": \"c\", \"after\": "
                   "[99]}]')",
                   "CL003", "jobs[1]: after: job 99 not found");
}
END_TEST

/* An operator's trigger that refuses, at once or at the commit. */
static const char *const refusals[] = {
    "CREATE TRIGGER refuse BEFORE UPDATE OF scheduled_at ON claimd.job FOR EACH ROW EXECUTE"
    " FUNCTION refuse()",
    "CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE OF scheduled_at ON claimd.job DEFERRABLE"
    " INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()",
};

START_TEST(B9_a_job_that_can_not_be_made_due_holds_up_no_other)
{
    run("SELECT claimd.after(claimd.enqueue('b', jsonb_build_object('n', n)), '{1}')::text FROM"
        " generate_series(3, 9) n");
    run("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.args ->> 'n'"
        " = '5' THEN RAISE 'not five'; END IF; RETURN NEW; END $$");
    run(refusals[_i]);
    complete_1();
    for (int i = 0; i < 2; i++) { /* it is tried each time */
        ck_assert_str_eq(
            sql_text(db, "SELECT concat_ws(' ', released, failed, why) FROM claimd.release_jobs()"),
            i == 0 ? "6 1 job 5: not five" : "0 1 job 5: not five");
    }
    ck_assert_str_eq(sql_text(db, "SELECT state FROM claimd.jobs WHERE id = 5"), "waiting");
    run("DROP TRIGGER refuse ON claimd.job");
    ck_assert_int_eq(released(), 1);
    ck_assert_int_eq(released(), 0);
    ck_assert_str_eq(sql_text(db, "SELECT state FROM claimd.jobs WHERE id = 5"), "available");
}
END_TEST

START_TEST(B9_circles_and_unknown_jobs_are_refused)
{
    run("SELECT claimd.after(2, '{1}')::text");
    ASSERT_REFUSED(db, "SELECT claimd.after(1, '{2}')", "CL003", "would be a circle");
    ASSERT_REFUSED(db, "SELECT claimd.after(1, '{1}')", "CL003", "would be a circle");
    ASSERT_REFUSED(db, "SELECT claimd.after(1, '{99}')", "CL003", "job 99 not found");
    ASSERT_REFUSED(db, "SELECT claimd.after(99, '{1}')", "CL003", "job 99 runs, has ended");
    ASSERT_REFUSED(db, "SELECT claimd.after(1, '{}')", "CL002", "predecessors: must be");
    ASSERT_REFUSED(db, "SELECT claimd.after(1, '{2,NULL}')", "CL002", "without NULL");
    ASSERT_REFUSED(db, "SELECT claimd.after(1, '{{2,NULL}}')", "CL002", "without NULL");
    ASSERT_REFUSED(db, "SELECT claimd.after(1, '{2}', 'x')", "CL002", "if_dead: must be cancel");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', after => '{{1},{2}}')", "CL002",
                   "after: must be a list of ids");
}
END_TEST

/* Neither of the two calls sees what the other one adds. */
START_TEST(B9_two_calls_at_once_close_no_circle)
{
    struct sql *other = sql_open(world.conninfo);
    run("SELECT claimd.enqueue('a')::text FROM generate_series(3, 4)");
    run("SELECT claimd.after(2, '{3}')::text");
    run("SELECT claimd.after(4, '{1}')::text");
    run("BEGIN");
    run("SELECT claimd.after(1, '{2}')::text");
    sql_run(other, "SET lock_timeout = '200ms'");
    ASSERT_REFUSED(other, "SELECT claimd.after(3, '{4}')", "55P03", "lock timeout");
    run("COMMIT");
    ASSERT_REFUSED(other, "SELECT claimd.after(3, '{4}')", "CL003", "would be a circle");
    sql_close(other);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("after");
    TCase *tc = tcase_create("after");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, feat_B29_the_time_that_stands_for_waiting_is_shown_nowhere);
    tcase_add_test(tc, B9_a_job_does_not_wait_for_ever_for_one_that_somebody_has_deleted);
    tcase_add_test(tc, B9_a_job_is_due_when_all_those_before_it_have_completed);
    tcase_add_test(tc, B9_a_job_after_others_keeps_the_time_that_it_was_given);
    tcase_add_loop_test(
        tc, B9_a_job_whose_predecessor_died_is_cancelled_runs_or_is_held_as_was_said, 0, 3);
    tcase_add_test(tc, B9_a_held_job_goes_on_when_its_predecessor_is_retried_and_completes);
    tcase_add_test(tc, B9_predecessors_may_have_ended_already);
    tcase_add_test(tc, B9_a_chain_is_cancelled_to_its_end);
    tcase_add_loop_test(tc, B9_a_job_that_can_not_be_made_due_holds_up_no_other, 0,
                        (int)ARRAY_COUNT(refusals));
    tcase_add_test(tc, B9_circles_and_unknown_jobs_are_refused);
    tcase_add_test(tc, B9_two_calls_at_once_close_no_circle);
    tcase_add_test(tc, B9_enqueue_takes_those_before_as_well_one_by_one_and_many_at_once);
    tcase_add_test(
        tc, feat_B29_a_job_knows_what_those_before_it_found_while_it_waits_runs_and_runs_again);
    tcase_add_test(
        tc,
        feat_B29_a_job_that_is_cancelled_while_it_waits_has_its_predecessors_when_it_runs_again);
    tcase_add_test(tc, feat_B29_what_a_handler_is_told_of_those_before_it_has_a_bound);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
