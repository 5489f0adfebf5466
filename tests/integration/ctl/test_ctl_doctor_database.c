/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl doctor on the database: commits, failovers, days of the history, triggers. */
#include "ctl_fixture.h"

/* Other checks fail, because there is no Redis. */
static void run_doctor(void)
{
    ck_assert_int_eq(ctl_doctor(), 1);
}

#define FOR_DATABASE(what) \
    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I " what "', current_database()); END $$"

START_TEST(G1_commits_that_do_not_wait_for_the_disk_fail_and_their_place_is_named)
{
    sql_run(db, "CREATE ROLE doctor_producer LOGIN IN ROLE claimd_producer");
    sql_run(db, "CREATE ROLE doctor_analyst LOGIN");
    sql_run(db, "ALTER ROLE doctor_producer SET synchronous_commit = 'off'");
    sql_run(db, "ALTER ROLE doctor_analyst SET synchronous_commit = 'off'");
    sql_run(db, FOR_DATABASE("SET synchronous_commit = off"));
    run_doctor();
    ctl_assert_check("FAIL", "commits", "off for role doctor_producer: a crash");
    ctl_assert_check("FAIL", "commits", "off for database t");
    ck_assert_ptr_null(strstr(ctl_text(), "role doctor_analyst"));
    sql_run(db, FOR_DATABASE("RESET synchronous_commit"));
    sql_run(db, "ALTER ROLE doctor_producer RESET ALL");
    run_doctor();
    ctl_assert_check("ok", "commits", "wait for the disk");
}
END_TEST

START_TEST(G1_a_server_whose_commits_do_not_wait_for_the_disk_fails)
{
    sql_run(db, "ALTER SYSTEM SET synchronous_commit = off");
    sql_run(db, "SELECT pg_reload_conf()");
    ck_assert(WAIT_UNTIL((run_doctor(), strstr(ctl_text(), "off for the server") != NULL),
                         10 * US_PER_S));
    ctl_assert_check("FAIL", "commits", "off for the server: a crash");
    sql_run(db, FOR_DATABASE("SET synchronous_commit = on"));
    run_doctor();
    ctl_assert_check("ok", "commits", "wait for the disk");
    sql_run(db, "ALTER SYSTEM RESET synchronous_commit");
    sql_run(db, "SELECT pg_reload_conf()");
}
END_TEST

START_TEST(G1_commits_that_do_not_wait_for_a_synchronous_standby_fail)
{
    sql_run(db, FOR_DATABASE("SET synchronous_commit = local"));
    run_doctor();
    ctl_assert_check("ok", "commits", "wait for the disk");
    sql_run(db, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    sql_run(db, "SELECT pg_reload_conf()");
    ck_assert(WAIT_UNTIL((run_doctor(), strstr(ctl_text(), "local for") != NULL), 10 * US_PER_S));
    ctl_assert_check("FAIL", "commits", "a failover to a synchronous standby loses");
    sql_run(db, "ALTER SYSTEM RESET synchronous_standby_names");
    sql_run(db, "SELECT pg_reload_conf()");
}
END_TEST

START_TEST(D5_doctor_says_how_a_failover_is_noticed)
{
    run_doctor();
    ctl_assert_check("ok", "failover", "by the WAL timeline 00000001");
    sql_run(db, "UPDATE claimd.cluster SET timeline = 'start 1'");
    run_doctor();
    ctl_assert_check("ok", "failover", "by the server's start");
}
END_TEST

START_TEST(missing_days_of_history_fail)
{
    sql_run(db, "DO $$ DECLARE t text; BEGIN FOR t IN SELECT inhrelid::regclass::text FROM "
                "pg_inherits WHERE inhparent = 'claimd.job_history'::regclass LOOP EXECUTE 'DROP "
                "TABLE ' || t; END LOOP; END $$");
    run_doctor();
    ctl_assert_check("FAIL", "history", "0 days ahead");
}
END_TEST

START_TEST(X2_doctor_fails_while_nothing_is_deleted_until_somebody_trusts_the_clock)
{
    sql_run(db, "UPDATE claimd.cluster SET sweep_hold_us = 3600000000 * 5 / 2");
    run_doctor();
    ctl_assert_check("FAIL", "history", "the leader deletes nothing for 2.5 h more");
    ck_assert_int_eq(ctl_exit("db", "trust-clock"), 2);
    assert_says("add --yes to confirm");
    ck_assert_int_eq(ctl_exit("db", "trust-clock", "--yes"), 0);
    run_doctor();
    ck_assert_ptr_null(strstr(ctl_text(), "deletes nothing"));
}
END_TEST

START_TEST(J1_a_trigger_of_others_without_a_path_of_its_own_is_a_warning)
{
    run_doctor();
    ck_assert_ptr_null(strstr(ctl_text(), "triggers"));
    sql_run(db, "CREATE FUNCTION public.audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                "RETURN NEW; END $$");
    sql_run(db, "CREATE TRIGGER audited AFTER INSERT ON claimd.job_history FOR EACH ROW EXECUTE "
                "FUNCTION public.audit()");
    run_doctor();
    ctl_assert_check("warn", "triggers",
                     "trigger audited of table claimd.job_history calls "
                     "public.audit(), which has no search_path of its own");
    sql_run(db, "ALTER FUNCTION public.audit() SET search_path = pg_catalog, public");
    run_doctor();
    ck_assert_ptr_null(strstr(ctl_text(), "triggers"));
}
END_TEST

START_TEST(a_function_that_was_changed_by_hand_is_a_warning_until_it_is_loaded_again)
{
    run_doctor();
    ck_assert_ptr_null(strstr(ctl_text(), "functions"));
    sql_run(db, "ALTER FUNCTION claimd.retry(bigint, boolean) SET work_mem = '8MB'");
    sql_run(db, "DROP FUNCTION claimd.delete_job(bigint)");
    run_doctor();
    ctl_assert_check("warn", "functions",
                     "claimd.retry(int8, bool) was changed by hand since it was loaded from "
                     "functions/retry.sql");
    ctl_assert_check("warn", "functions", "claimd.delete_job(int8) was dropped by hand");
    ck_assert_int_eq(ctl_exit("db", "migrate"), 0);
    assert_says("nothing to do");
    ck_assert_int_eq(ctl_exit("db", "migrate", "--functions"), 0);
    assert_says("applied functions");
    run_doctor();
    ck_assert_ptr_null(strstr(ctl_text(), "functions"));
}
END_TEST

START_TEST(functions_of_another_release_are_a_warning)
{
    sql_run(db, "UPDATE claimd.function_file SET digest = 'other' WHERE name = 'functions/retry'");
    run_doctor();
    ctl_assert_check("warn", "functions", "are not those of this claimctl");
    sql_run(db, "UPDATE claimd.cluster SET functions_version = 99000000");
    ck_assert_int_eq(ctl_exit("db", "migrate"), 5);
    assert_says("the functions are of release 99.0.0");
    ck_assert_int_eq(ctl_exit("db", "migrate", "--functions"), 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("doctor_database");
    TCase *tests = tcase_create("database");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, ctl_setup, ctl_teardown);
    tcase_add_test(tests, G1_commits_that_do_not_wait_for_the_disk_fail_and_their_place_is_named);
    tcase_add_test(tests, G1_a_server_whose_commits_do_not_wait_for_the_disk_fails);
    tcase_add_test(tests, G1_commits_that_do_not_wait_for_a_synchronous_standby_fail);
    tcase_add_test(tests, D5_doctor_says_how_a_failover_is_noticed);
    tcase_add_test(tests, missing_days_of_history_fail);
    tcase_add_test(tests, X2_doctor_fails_while_nothing_is_deleted_until_somebody_trusts_the_clock);
    tcase_add_test(tests, J1_a_trigger_of_others_without_a_path_of_its_own_is_a_warning);
    tcase_add_test(tests,
                   a_function_that_was_changed_by_hand_is_a_warning_until_it_is_loaded_again);
    tcase_add_test(tests, functions_of_another_release_are_a_warning);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
