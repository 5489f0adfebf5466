/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces of an attempt that ended badly: its log, the reason, and the worker's log lines. One
 * fleet with a scheduler and a worker of two slots. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <stdio.h>

#define WORKER "claimd-worker"

static struct fleet f;

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = 3});
    fleet_start_scheduler(&f, 0);
    fleet_start_worker(&f, 0, NULL);
}

static void teardown(void)
{
    fleet_stop(&f);
}

/* Counts the recorded attempts of the job with this outcome. */
static int64_t attempts(int64_t id, const char *outcome)
{
    return sql_number(
        f.sql, "SELECT count(*) FROM claimd.job_attempt WHERE job_id = %lld AND outcome = '%s'",
        (long long)id, outcome);
}

static void forget(int64_t id)
{
    sql_run(f.sql, "DELETE FROM claimd.job WHERE id = %lld", (long long)id);
}

/* ---- logs ---- */

static const char *const deaths[] = {"crashed", "timeout", "crashed"};

START_TEST(G1_what_a_handler_logged_before_it_crashed_or_timed_out_is_kept)
{
    char args[32];
    (void)snprintf(args, sizeof args, "{\"end\": %d}", _i);
    int64_t id = fleet_enqueue(&f, "last_words", args, 1);
    ck_assert(WAIT_UNTIL(attempts(id, deaths[_i]) == 1, SOON_US));
    ck_assert_int_eq(
        sql_number(f.sql,
                   "SELECT count(*) FROM claimd.job_attempt WHERE job_id = %lld AND log_tail LIKE "
                   "E'%%\nword 1998\nword 1999\nlast words of attempt 1\n' AND "
                   "octet_length(log_tail) = 16384",
                   (long long)id),
        1);
    const char *error =
        sql_text(f.sql, "SELECT error FROM claimd.job_attempt WHERE job_id = %lld", (long long)id);
    ck_assert_msg(error[0] != '\0', "no reason");
    forget(id);
}
END_TEST

START_TEST(G1_what_a_handler_printed_before_it_ended_is_kept_with_its_attempt)
{
    static const char *const ends[] = {"fail", "abort", "exit"};
    static const char *const outcomes[] = {"failed", "crashed", "crashed"};
    static const char *const last[] = {"Traceback of a child", "failed an assertion", "to stdout"};
    char args[64];
    (void)snprintf(args, sizeof args, "{\"text\": \"it\", \"end\": \"%s\"}", ends[_i]);
    int64_t id = fleet_enqueue(&f, "prints", args, 1);
    ck_assert(WAIT_UNTIL(attempts(id, outcomes[_i]) == 1, SOON_US));
    ck_assert_int_eq(sql_number(f.sql,
                                "SELECT count(*) FROM claimd.job_attempt WHERE job_id = %lld AND "
                                "log_tail LIKE '%%it to stderr%%%s%%'",
                                (long long)id, last[_i]),
                     1);
    (void)snprintf(args, sizeof args, " job=%lld text=\"it to stderr\"", (long long)id);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 0, args) == 1, SOON_US));
    forget(id);
}
END_TEST

/* ---- results that are refused ---- */

START_TEST(a_refused_result_is_told_as_the_failure_that_it_became)
{
    char text[128];
    int64_t id = fleet_enqueue(&f, "bad_result_utf8", "{}", 1);
    ck_assert(WAIT_UNTIL(attempts(id, "failed") == 1, SOON_US));
    (void)snprintf(text, sizeof text, "event=job_failed job=%lld ", (long long)id);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 0, text) == 1, SOON_US));
    ck_assert_int_eq(
        fleet_log_count(&f, WORKER, 0, "state=discarded outcome=failed verdict=\"result refused\""),
        1);
    ck_assert_int_eq(fleet_log_count(&f, WORKER, 0, "state=completed"), 0);
    forget(id);
}
END_TEST

/* ---- handlers that forge messages of their runner ---- */

START_TEST(G5_forged_results_cost_and_complete_no_other_job)
{
    enum { NAPS = 60, FORGED = 10 };
    char args[64];
    int64_t first = 0;
    for (int i = 0; i < FORGED; i++) {
        (void)snprintf(args, sizeof args, "{\"what\": %d, \"ms\": 20}", i % 5);
        int64_t id = fleet_enqueue(&f, "forge", args, 1);
        first = i == 0 ? id : first;
        (void)fleet_enqueue(&f, "nap", "{\"ms\": 5}", NAPS / FORGED);
    }
    ck_assert(WAIT_UNTIL(sql_number(f.sql,
                                    "SELECT count(*) FROM claimd.job_history WHERE id >= %lld AND "
                                    "kind = 'nap' AND state = 'completed' AND result = '\"slept\"'",
                                    (long long)first) == NAPS,
                         SOON_US));
    ck_assert_int_eq(
        sql_number(f.sql,
                   "SELECT count(*) FROM claimd.job_attempt a LEFT JOIN claimd.jobs j ON j.id = "
                   "a.job_id WHERE a.job_id >= %lld AND j.kind <> 'forge'",
                   (long long)first),
        0);
    ck_assert_int_gt(fleet_log_count(&f, WORKER, 0, "event=runner_died"), 0);
    sql_run(f.sql, "DELETE FROM claimd.job WHERE kind = 'forge'");
}
END_TEST

/* The worker believes the forged result, and sends the next job to a busy runner. */
START_TEST(G5_a_runner_that_does_not_start_its_job_is_replaced_and_the_job_is_uncharged)
{
    int64_t first = fleet_enqueue(&f, "forge", "{\"what\": 0, \"ms\": 40000}", 1);
    int64_t second = fleet_enqueue(&f, "forge", "{\"what\": 0, \"ms\": 40000}", 1);
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE id IN (%lld, %lld)",
                   (long long)first, (long long)second) == 2,
        SOON_US));
    int64_t last = fleet_enqueue(&f, "nap", "{\"ms\": 1}", 2);
    ck_assert(WAIT_UNTIL(sql_number(f.sql,
                                    "SELECT count(*) FROM claimd.job_history WHERE id > %lld AND "
                                    "id <= %lld AND state = 'completed' AND attempt = 1",
                                    (long long)second, (long long)last) == 2,
                         SOON_US));
    ck_assert_int_gt(fleet_log_count(&f, WORKER, 0, "it did not start its job within"), 0);
}
END_TEST

/* ---- handlers that do not return normally ---- */

START_TEST(G1_a_handler_that_ends_its_thread_fails_its_attempt_at_once)
{
    char args[32];
    (void)snprintf(args, sizeof args, "{\"how\": %d}", _i);
    int64_t began_us = clock_boot_us();
    int64_t id = fleet_enqueue(&f, "leave", args, 1);
    ck_assert(WAIT_UNTIL(attempts(id, "crashed") == 1, SOON_US));
    ck_assert_int_lt(clock_boot_us() - began_us, 10 * US_PER_S); /* its timeout is 30 minutes */
    ck_assert_int_eq(sql_number(f.sql,
                                "SELECT count(*) FROM claimd.job_attempt WHERE job_id = %lld AND "
                                "error LIKE 'the handler ended its thread%%'",
                                (long long)id),
                     1);
    forget(id);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("bad ends");
    TCase *c = tcase_create("bad ends");
    tcase_set_timeout(c, 60);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, G1_what_a_handler_logged_before_it_crashed_or_timed_out_is_kept, 0,
                        (int)ARRAY_COUNT(deaths));
    tcase_add_loop_test(c, G1_what_a_handler_printed_before_it_ended_is_kept_with_its_attempt, 0,
                        3);
    tcase_add_test(c, a_refused_result_is_told_as_the_failure_that_it_became);
    tcase_add_test(c, G5_forged_results_cost_and_complete_no_other_job);
    tcase_add_test(c, G5_a_runner_that_does_not_start_its_job_is_replaced_and_the_job_is_uncharged);
    tcase_add_loop_test(c, G1_a_handler_that_ends_its_thread_fails_its_attempt_at_once, 0, 2);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
