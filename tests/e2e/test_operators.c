/* SPDX-License-Identifier: Apache-2.0
 *
 * The reports of doctor and db verify about a working cluster, about one in trouble, and
 * afterwards. */
#include "operator.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

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

/* Runs claimctl; returns the exit code. */
static int says(const char *words)
{
    autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
    int code = operator_ctl(&f, "config.json", "", words, &out);
    ck_assert_int_eq(buf_append(&out, "", 1, NULL), STATUS_OK);
    if (code != 0) {
        (void)printf("%s: exit %d: %.3000s\n", words, code, buf_at(&out));
    }
    return code;
}

static bool doctor_names(const char *part)
{
    autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
    int code = operator_ctl(&f, "config.json", "", "doctor --json", &out);
    ck_assert_int_eq(buf_append(&out, "", 1, NULL), STATUS_OK);
    return code == 1 && strstr(buf_at(&out), part) != NULL;
}

static int64_t open_jobs(void)
{
    return sql_number(f.sql, "SELECT count(*) FROM claimd.job");
}

/* Deaths, failures, a cancel and an orderly end: none of them counts as a violation. */
START_TEST(verify_finds_nothing_after_a_day_with_deaths)
{
    fleet_start_worker(&f, 1, NULL);
    fleet_enqueue(&f, "noop", "{}", 300);
    fleet_enqueue(&f, "fail", "{}", 3);
    fleet_enqueue(&f, "once", "{\"ms\": 300, \"crash\": true}", 2);
    fleet_enqueue(&f, "once", "{\"ms\": 100}", 2);
    fleet_enqueue(&f, "crash_segv", "{}", 1);
    fleet_enqueue(&f, "sleep", "{\"ms\": 1500}", 4);
    ck_assert(
        WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running' "
                                     "AND kind = 'sleep'") > 0,
                   SOON_US));
    fleet_signal(f.workers[0], SIGKILL);
    (void)fleet_wait_end(&f, &f.workers[0]);
    fleet_start_worker(&f, 0, NULL);
    ck_assert(WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE kind <> "
                                           "'crash_segv'") == 0,
                         SOON_US));
    sql_run(f.sql, "SELECT claimd.cancel(id) FROM claimd.job");
    ck_assert_int_eq(says("db verify --after 20s"), 0);
    ck_assert_int_eq(open_jobs(), 0);
}
END_TEST

START_TEST(results_that_can_not_be_committed_are_named_with_postgresqls_reason)
{
    ck_assert(WAIT_UNTIL(says("doctor") == 0, SOON_US));
    sql_run(f.sql, "CREATE FUNCTION claimd.no_more() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                   "RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'no space is left'; END $$");
    sql_run(f.sql, "CREATE TRIGGER no_more BEFORE INSERT ON claimd.job_history FOR EACH ROW "
                   "EXECUTE FUNCTION claimd.no_more()");
    fleet_enqueue(&f, "noop", "{}", 3);
    bool is_named = WAIT_UNTIL(doctor_names("can't commit the results of "), SOON_US);
    const char *row =
        sql_text(f.sql, "SELECT uncommitted || ' ' || uncommitted_us || ' ' || trouble "
                        "|| ' ' || running FROM claimd.worker");
    ck_assert_msg(is_named, "%s", row);
    ck_assert(doctor_names("no space is left"));
    sql_run(f.sql, "DROP TRIGGER no_more ON claimd.job_history");
    fleet_wait_finished(&f, 3, "completed", SOON_US);
    ck_assert(WAIT_UNTIL(says("doctor") == 0, SOON_US));
}
END_TEST

START_TEST(lock_nodes_that_are_gone_are_named_by_the_workers_that_need_them)
{
    ck_assert(WAIT_UNTIL(says("doctor") == 0, SOON_US));
    redis_server_kill(&f.masters[0]);
    redis_server_kill(&f.masters[1]);
    ck_assert(WAIT_UNTIL(doctor_names("all live workers claim nothing"), SOON_US));
}
END_TEST

START_TEST(a_stopped_leader_is_named_and_so_is_its_loss)
{
    ck_assert(WAIT_UNTIL(says("doctor") == 0, SOON_US));
    fleet_signal(f.schedulers[0], SIGSTOP);
    ck_assert(WAIT_UNTIL(doctor_names("none is alive"), SOON_US));
    fleet_signal(f.schedulers[0], SIGCONT);
    ck_assert(WAIT_UNTIL(says("doctor") == 0, SOON_US));
}
END_TEST

/* The change marks its row as dead: it starts over, and its list no longer matches. */
START_TEST(N8_a_worker_that_comes_back_to_other_lock_nodes_ends)
{
    sql_run(f.sql, "UPDATE claimd.cluster SET lock_nodes = 'elsewhere:6379'");
    sql_run(f.sql, "UPDATE claimd.worker SET dead = true");
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[0]), 2);
    ck_assert_int_ge(fleet_log_count(&f, "claimd-worker", 0, "lock nodes have changed"), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("operators");
    TCase *tests = tcase_create("operators");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, verify_finds_nothing_after_a_day_with_deaths);
    tcase_add_test(tests, results_that_can_not_be_committed_are_named_with_postgresqls_reason);
    tcase_add_test(tests, lock_nodes_that_are_gone_are_named_by_the_workers_that_need_them);
    tcase_add_test(tests, a_stopped_leader_is_named_and_so_is_its_loss);
    tcase_add_test(tests, N8_a_worker_that_comes_back_to_other_lock_nodes_ends);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
