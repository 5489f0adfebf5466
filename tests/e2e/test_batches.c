/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that wait for other jobs continue by themselves: jobs after jobs, and a batch's follow-up
 * (feat.B9). */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>

#define CHAIN 60
#define CHAIN_WITHIN_US \
    (20 * US_PER_S) /* by the cluster polls, once a second, it would take 30 to 60 s */

static struct fleet f;

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = 3});
    fleet_start_scheduler(&f, 0);
    fleet_start_worker(&f, 0, NULL);
    (void)fleet_enqueue(&f, "noop", "{}", 1);
    fleet_wait_finished(&f, 1, "completed", SOON_US);
}

static void teardown(void)
{
    fleet_stop(&f);
}

START_TEST(B9_each_job_of_a_chain_starts_when_the_one_before_has_ended)
{
    sql_run(f.sql, "DO $$ DECLARE last bigint := claimd.enqueue('noop'); BEGIN FOR i IN 2..60 LOOP"
                   " last := claimd.after(claimd.enqueue('noop'), ARRAY[last]); END LOOP; END $$");
    int64_t began_us = wait_now_us();
    fleet_wait_finished(&f, 1 + CHAIN, "completed", SOON_US);
    ck_assert_int_lt(wait_now_us() - began_us, CHAIN_WITHIN_US);
    ck_assert_int_eq(
        sql_number(f.sql,
                   "SELECT count(*) FROM (SELECT attempted_at, lag(finalized_at) OVER (ORDER BY id)"
                   " AS before FROM claimd.job_history) AS r WHERE attempted_at < before"),
        0);
}
END_TEST

START_TEST(B9_the_follow_up_of_a_batch_runs_once_after_its_last_job)
{
    sql_run(f.sql, "SELECT claimd.batch_open('import', '{\"kind\": \"noop\"}')");
    sql_run(f.sql,
            "SELECT claimd.batch_add(1, claimd.enqueue('noop')) FROM generate_series(1, 50)");
    sql_run(f.sql, "SELECT claimd.batch_close(1)");
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE state = 'completed'") ==
            52,
        SOON_US));
    ck_assert_int_eq(sql_number(f.sql,
                                "SELECT count(*) FROM claimd.job_history h JOIN claimd.batch b "
                                "ON b.follow_up_job = h.id"
                                " WHERE h.attempted_at >= ALL (SELECT finalized_at FROM "
                                "claimd.job_history o WHERE o.id < h.id)"),
                     1);
}
END_TEST

/* The handler of `pass` returns what it received about the jobs before it, and its metadata. */
START_TEST(feat_B29_a_workflow_passes_on_what_it_found)
{
    sql_run(f.sql, "SELECT claimd.batch_open('w', on_success => '{\"kind\": \"pass\"}')");
    sql_run(f.sql, "SELECT claimd.batch_add(1, claimd.enqueue('pass', '{}')) AS id"); /* job 2 */
    sql_run(f.sql, "SELECT claimd.batch_add(1, claimd.enqueue('pass', '{}', after => '{1,2}'))");
    sql_run(f.sql, "SELECT claimd.batch_close(1)");
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE state = 'completed'") == 4,
        SOON_US));
    const char *text = sql_text(f.sql, "SELECT result FROM claimd.jobs WHERE id = 2");
    ck_assert_str_eq(text, "{\"metadata\": null, \"predecessors\": null}");
    text = sql_text(
        f.sql,
        "SELECT string_agg(concat_ws(' ', p ->> 'id', p ->> 'kind', p ->> 'state', p -> "
        "'result'), ',') FROM claimd.jobs j, jsonb_array_elements(j.result -> 'predecessors') "
        "AS p WHERE j.id = 3");
    ck_assert_str_eq(text, "1 noop completed null,"
                           "2 pass completed {\"metadata\": null, \"predecessors\": null}");
    text =
        sql_text(f.sql, "SELECT j.result FROM claimd.jobs j, claimd.batch_status(1) b WHERE j.id = "
                        "b.outcome_job");
    ck_assert_str_eq(text, "{\"metadata\": {\"batch_id\": 1}, \"predecessors\": null}");
}
END_TEST

START_TEST(B9_a_batch_is_over_although_somebody_has_deleted_one_of_its_jobs)
{
    sql_run(f.sql, "SELECT claimd.batch_open('import', '{\"kind\": \"noop\"}')");
    sql_run(f.sql, "SELECT claimd.batch_add(1, claimd.enqueue('noop'))");
    sql_run(f.sql, "SELECT claimd.batch_add(1, claimd.enqueue('noop', queue => 'nobody'))");
    sql_run(f.sql, "SELECT claimd.batch_close(1)");
    sql_run(f.sql, "DELETE FROM claimd.job WHERE queue = 'nobody'");
    ck_assert(
        WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.batches WHERE state = 'over' "
                                     "AND succeeded = 1 AND cancelled = 1") == 1,
                   SOON_US));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("batches");
    TCase *t = tcase_create("batches");
    tcase_set_timeout(t, 240);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, B9_each_job_of_a_chain_starts_when_the_one_before_has_ended);
    tcase_add_test(t, B9_the_follow_up_of_a_batch_runs_once_after_its_last_job);
    tcase_add_test(t, B9_a_batch_is_over_although_somebody_has_deleted_one_of_its_jobs);
    tcase_add_test(t, feat_B29_a_workflow_passes_on_what_it_found);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
