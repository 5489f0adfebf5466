/* SPDX-License-Identifier: Apache-2.0
 *
 * The way of a job through real daemons, and what each kind of end charges. One fleet serves all
 * tests of this program: they look only at their own jobs. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

static struct fleet fleet;

static const char *attempt_outcome(int64_t id)
{
    return sql_text(
        fleet.sql,
        "SELECT format('%%s x%%s', min(outcome), count(*)) FROM claimd.job_attempt WHERE "
        "job_id = %lld",
        (long long)id);
}

START_TEST(a_thousand_jobs_run_once_each_and_leave_no_lock)
{
    int64_t before =
        sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history WHERE kind = 'noop'");
    int64_t last = fleet_enqueue(&fleet, "noop", "{}", 1000);
    ck_assert(WAIT_UNTIL(
        sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history WHERE kind = 'noop'") ==
            before + 1000,
        SOON_US));
    ck_assert_int_eq(
        sql_number(fleet.sql,
                   "SELECT count(*) FROM claimd.job_history WHERE kind = 'noop' AND id > %lld "
                   "AND (attempt <> 1 OR state <> 'completed')",
                   (long long)(last - 1000)),
        0);
    ck_assert(WAIT_UNTIL(fleet_lock_keys(&fleet) == 0, SOON_US));
}
END_TEST

START_TEST(feat_B3_a_delayed_job_runs_when_it_is_due_and_not_before)
{
    int64_t id = sql_number(
        fleet.sql, "SELECT claimd.enqueue('noop', scheduled_at => now() + interval '1 s')");
    fleet_wait_state(&fleet, id, "completed");
    ck_assert_int_eq(sql_number(fleet.sql,
                                "SELECT count(*) FROM claimd.job_history WHERE id = %lld AND "
                                "attempted_at < scheduled_at",
                                (long long)id),
                     0);
}
END_TEST

START_TEST(feat_B6_a_unique_job_frees_its_key_when_it_is_over)
{
    static const char *const kinds[] = {"noop", "fail"};
    static const char *const states[] = {"completed", "discarded"};
    int64_t last = 0;
    for (int i = 0; i < 4; i++) {
        int64_t id = sql_number(fleet.sql, "SELECT claimd.enqueue('%s', unique_key => 'the key')",
                                kinds[i % 2]);
        ck_assert_int_gt(id, last);
        fleet_wait_state(&fleet, id, states[i % 2]);
        ck_assert_int_eq(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_key"), 0);
        last = id;
    }
}
END_TEST

struct end_case {
    const char *kind;
    const char *args;
    const char *state;
    const char *attempts;
};

static const struct end_case ends[] = {
    {"fail", "{}", "discarded", "failed x1"},
    {"crash_segv", "{}", "retryable", "crashed x1"},
    {"crash_abort", "{}", "retryable", "crashed x1"},
    {"crash_exit0", "{}", "retryable", "crashed x1"},
    {"garbage", "{}", "retryable", "crashed x1"},
    {"spin", "{}", "retryable", "timeout x1"},
    {"bad_result_nul", "{}", "discarded", "failed x1"},
    {"bad_result_surrogate", "{}", "discarded", "failed x1"},
    {"bad_result_number", "{}", "discarded", "failed x1"},
    {"bad_result_utf8", "{}", "discarded", "failed x1"},
};

START_TEST(G1_a_bad_end_costs_one_attempt_with_its_reason)
{
    const struct end_case *c = &ends[_i];
    int64_t id = fleet_enqueue(&fleet, c->kind, c->args, 1);
    fleet_wait_state(&fleet, id, c->state);
    ck_assert_str_eq(attempt_outcome(id), c->attempts);
    ck_assert_int_eq(
        sql_number(
            fleet.sql,
            "SELECT count(*) FROM claimd.job_attempt WHERE job_id = %lld AND length(error) > 0",
            (long long)id),
        1);
    sql_run(fleet.sql, "SELECT claimd.cancel(id) FROM claimd.job WHERE id = %lld", (long long)id);
}
END_TEST

START_TEST(feat_B18_a_job_whose_crashes_are_used_up_is_listed_as_poison)
{
    int64_t id = sql_number(fleet.sql, "INSERT INTO claimd.job (kind, args, crashes) VALUES"
                                       " ('crash_segv', '{}', 1) RETURNING id");
    fleet_wait_state(&fleet, id, "discarded");
    ck_assert_int_eq(
        sql_number(fleet.sql,
                   "SELECT count(*) FROM claimd.job_history h JOIN claimd.job_attempt a"
                   " ON a.job_id = h.id WHERE h.id = %lld AND h.attempt < 25 AND"
                   " h.crashes = 2 AND h.error = a.error AND h.error LIKE"
                   " 'poison, crash 2 of 2: %%signal%%'",
                   (long long)id),
        1);
}
END_TEST

START_TEST(lock_G6_a_handler_gets_the_jobs_id_and_its_fence)
{
    char path[SERVER_PATH_MAX];
    char args[SERVER_PATH_MAX + 64];
    char line[128] = "";
    long long id = 0;
    long long fence = 0;
    fleet_ledger_path(&fleet, path, sizeof path);
    (void)snprintf(args, sizeof args, "{\"path\": \"%s\", \"ms\": 1}", path);
    int64_t expected = fleet_enqueue(&fleet, "ledger", args, 1);
    fleet_wait_state(&fleet, expected, "completed");
    FILE *ledger = fopen(path, "re");
    ck_assert_ptr_nonnull(ledger);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, ledger));
    (void)fclose(ledger);
    ck_assert_int_eq(sscanf(line, "%lld %lld", &id, &fence), 2);
    ck_assert_int_eq(id, expected);
    ck_assert_int_eq(
        sql_number(fleet.sql, "SELECT fence FROM claimd.job_history WHERE id = %lld", id), fence);
}
END_TEST

START_TEST(S10_an_at_most_once_job_that_crashed_is_lost_and_never_run_again)
{
    int64_t id = fleet_enqueue(&fleet, "once", "{\"crash\": true}", 1);
    fleet_wait_state(&fleet, id, "discarded");
    ck_assert_str_eq(attempt_outcome(id), "lost x1");
}
END_TEST

START_TEST(S9_args_changed_while_queued_are_the_ones_that_run)
{
    char path[SERVER_PATH_MAX + 16];
    fleet_ledger_path(&fleet, path, sizeof path);
    int64_t id = sql_number(
        fleet.sql,
        "SELECT claimd.enqueue('ledger', '{}', scheduled_at => now() + interval '700 ms')");
    sql_run(fleet.sql, "UPDATE claimd.job SET args = '{\"path\": \"%s\"}' WHERE id = %lld", path,
            (long long)id);
    fleet_wait_state(&fleet, id, "completed");
    const char *result = sql_text(
        fleet.sql, "SELECT args->>'path' FROM claimd.job_history WHERE id = %lld", (long long)id);
    ck_assert_str_eq(result, path);
}
END_TEST

START_TEST(lock_G1_S11_a_job_cancelled_while_queued_never_runs)
{
    int64_t id = sql_number(
        fleet.sql, "SELECT claimd.enqueue('noop', scheduled_at => now() + interval '500 ms')");
    sql_run(fleet.sql, "SELECT claimd.cancel(%lld)", (long long)id);
    int64_t later = sql_number(
        fleet.sql, "SELECT claimd.enqueue('noop', scheduled_at => now() + interval '700 ms')");
    fleet_wait_state(&fleet, later, "completed");
    fleet_wait_state(&fleet, id, "cancelled");
    ck_assert_int_eq(
        sql_number(fleet.sql, "SELECT attempt FROM claimd.jobs WHERE id = %lld", (long long)id), 0);
}
END_TEST

/* Tests the fleet's own check, under which all end-to-end tests run. */
START_TEST(S5_a_change_of_state_that_is_no_edge_is_refused_by_the_tests_database)
{
    int64_t id = fleet_enqueue(&fleet, "noop", "{}", 1);
    fleet_wait_state(&fleet, id, "completed");
    sql_run(fleet.sql,
            "INSERT INTO claimd.job (kind, scheduled_at) VALUES ('noop', now() + interval "
            "'1 h')");
    const char *why = sql_refusal(
        fleet.sql,
        "WITH gone AS (DELETE FROM claimd.job WHERE id > %lld RETURNING *) INSERT INTO "
        "claimd.job_history (id, created_at, scheduled_at, ready_at, queue, kind, args, state, "
        "fence, attempt, attempted_at, worker_id) SELECT id, created_at, scheduled_at, ready_at, "
        "queue, kind, args, 'completed', 1, 1, now(), gen_random_uuid() FROM gone",
        (long long)id);
    ck_assert_msg(strncmp(why, "P0001", 5) == 0, "%s", why);
    sql_run(fleet.sql, "SELECT claimd.cancel(id) FROM claimd.job WHERE id > %lld", (long long)id);
}
END_TEST

START_TEST(rule4_a_row_locked_by_an_open_session_holds_up_nobody_else)
{
    int64_t first = fleet_enqueue(&fleet, "sleep", "{\"ms\": 400}", 1);
    struct sql *psql = sql_open(fleet.conninfo);
    fleet_wait_state(&fleet, first, "running");
    sql_run(psql, "BEGIN");
    sql_run(psql, "SELECT FROM claimd.job WHERE id = %lld FOR UPDATE", (long long)first);
    int64_t last = fleet_enqueue(&fleet, "noop", "{}", 200);
    ck_assert(WAIT_UNTIL(
        sql_number(fleet.sql, "SELECT count(*) FROM claimd.job WHERE id > %lld AND id <= %lld",
                   (long long)(last - 200), (long long)last) == 0,
        SOON_US));
    fleet_wait_state(&fleet, first, "running");
    sql_run(psql, "COMMIT");
    fleet_wait_state(&fleet, first, "completed");
    sql_close(psql);
}
END_TEST

START_TEST(large_args_arrive_whole)
{
    int64_t id =
        sql_number(fleet.sql, "SELECT claimd.enqueue('noop', jsonb_build_object('x', (SELECT "
                              "string_agg(md5(i::text), '') "
                              "FROM generate_series(1, 20000) i)))");
    fleet_wait_state(&fleet, id, "completed");
}
END_TEST

static void setup(void)
{
    fleet_start(&fleet, &(struct fleet_options){0});
    fleet_start_scheduler(&fleet, 0);
    fleet_start_worker(&fleet, 0, NULL);
    fleet_start_worker(&fleet, 1, NULL);
}

static void teardown(void)
{
    fleet_stop(&fleet);
}

static Suite *suite(void)
{
    Suite *s = suite_create("job's way");
    TCase *c = tcase_create("jobs");
    tcase_set_timeout(c, 60);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, G1_a_bad_end_costs_one_attempt_with_its_reason, 0,
                        (int)ARRAY_COUNT(ends));
    tcase_add_test(c, a_thousand_jobs_run_once_each_and_leave_no_lock);
    tcase_add_test(c, S5_a_change_of_state_that_is_no_edge_is_refused_by_the_tests_database);
    tcase_add_test(c, feat_B6_a_unique_job_frees_its_key_when_it_is_over);
    tcase_add_test(c, feat_B3_a_delayed_job_runs_when_it_is_due_and_not_before);
    tcase_add_test(c, feat_B18_a_job_whose_crashes_are_used_up_is_listed_as_poison);
    tcase_add_test(c, lock_G6_a_handler_gets_the_jobs_id_and_its_fence);
    tcase_add_test(c, S10_an_at_most_once_job_that_crashed_is_lost_and_never_run_again);
    tcase_add_test(c, S9_args_changed_while_queued_are_the_ones_that_run);
    tcase_add_test(c, lock_G1_S11_a_job_cancelled_while_queued_never_runs);
    tcase_add_test(c, rule4_a_row_locked_by_an_open_session_holds_up_nobody_else);
    tcase_add_test(c, large_args_arrive_whole);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
