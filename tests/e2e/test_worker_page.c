/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers that write over the page that their runner shares with its worker: how often such a job
 * starts, and what happens to the other jobs. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

static struct fleet f;

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = 1});
    fleet_start_scheduler(&f, 0);
}

static void teardown(void)
{
    fleet_stop(&f);
}

/* Enqueues a job with "what" as in tests/plugins/meddle.c; returns the id. */
static int64_t enqueue(const char *kind, int what, int max_attempts)
{
    char path[SERVER_PATH_MAX];
    fleet_ledger_path(&f, path, sizeof path);
    return sql_number(
        f.sql,
        "INSERT INTO claimd.job (kind, max_attempts, backoff, args) VALUES ('%s', %d, 'fixed:10ms',"
        " jsonb_build_object('path', '%s', 'what', %d)) RETURNING id",
        kind, max_attempts, path, what);
}

static bool has_ended(int64_t id, const char *how)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM claimd.job_history h WHERE id = %lld AND state ="
                      " 'discarded' AND %s",
                      (long long)id, how) == 1;
}

static int starts(void)
{
    return fleet_ledger_count(&f, " start");
}

/* Two uncharged starts, then as many as crashes permit. */
START_TEST(L5_a_job_that_writes_over_its_page_is_charged_from_the_third_time_on)
{
    fleet_start_worker(&f, 0, NULL);
    int64_t id = enqueue("wipe", _i, 25);
    ck_assert_msg(WAIT_UNTIL(has_ended(id, "error LIKE 'poison, crash 2 of 2%'"), SOON_US),
                  "%d starts", starts());
    ck_assert_int_eq(starts(), 4);
}
END_TEST

START_TEST(S10_a_job_of_an_at_most_once_kind_that_writes_over_its_page_starts_once)
{
    fleet_start_worker(&f, 0, NULL);
    int64_t id = enqueue("wipe_once", _i, 25);
    ck_assert_msg(WAIT_UNTIL(has_ended(id, "attempt = 1 AND EXISTS (SELECT FROM claimd.job_attempt"
                                           " a WHERE a.job_id = h.id AND outcome = 'lost')"),
                             SOON_US),
                  "%d starts", starts());
    ck_assert_int_eq(starts(), 1);
}
END_TEST

START_TEST(S7_a_job_at_its_last_attempt_that_writes_over_its_page_starts_once)
{
    fleet_start_worker(&f, 0, NULL);
    int64_t id = enqueue("wipe", _i, 1);
    ck_assert_msg(WAIT_UNTIL(has_ended(id, "attempt = 1"), SOON_US), "%d starts", starts());
    ck_assert_int_eq(starts(), 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("worker_page");
    TCase *c = tcase_create("page");
    tcase_set_timeout(c, 200);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, L5_a_job_that_writes_over_its_page_is_charged_from_the_third_time_on, 0,
                        5);
    tcase_add_loop_test(c, S10_a_job_of_an_at_most_once_kind_that_writes_over_its_page_starts_once,
                        0, 5);
    tcase_add_loop_test(c, S7_a_job_at_its_last_attempt_that_writes_over_its_page_starts_once, 0,
                        5);
    suite_add_tcase(s, c);
    return suite_run(s);
}
