/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings of queues and kinds that operators change by one patch: set_queue(), and set_kind() for
 * kinds that no worker has announced. */
#include "sql_db.h"

#include <stdio.h>

#define ASSERT_TEXT(sql, wanted) ck_assert_str_eq(sql_text(db, "%s", (sql)), (wanted))
#define QUEUE(columns) "SELECT concat_ws(' ', " columns ") FROM claimd.queue WHERE name = 'mail'"
#define RULES                                                                             \
    "SELECT COALESCE(string_agg(concat_ws(' ', scope, name, state, days), ', ' ORDER BY " \
    "scope, name, state DESC), '') FROM claimd.retention"

static int64_t number(const char *sql)
{
    return sql_number(db, "%s", sql);
}

/* ---- set_queue ---- */

START_TEST(feat_B29_a_patch_sets_what_it_names_of_a_queue_and_null_takes_it_back)
{
    run("SELECT claimd.set_queue('mail', '{\"weight\": 6, \"max_running\": 5, \"rate\": \"120/m\", "
        "\"max_open\": 7, \"paused\": true, \"retain\": {\"discarded\": \"90d\", \"\": \"7d\"}}')"
        "::text");
    ASSERT_TEXT(
        QUEUE("weight, max_running, rate, max_open, paused, limited, paused_by IS NOT NULL"),
        "6 5 2 7 t t t");
    ASSERT_TEXT(RULES, "queue mail discarded 90, queue mail  7");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.slot WHERE queue = 'mail'"), 5);
    run("SELECT claimd.set_queue('mail', '{\"max_running\": 3, \"paused\": null}')::text");
    ASSERT_TEXT(
        QUEUE("weight, max_running, rate, max_open, paused, limited, paused_by IS NOT NULL"),
        "6 3 2 7 f t f");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.slot WHERE queue = 'mail'"), 3);
    run("SELECT claimd.set_queue('mail', '{\"max_running\": null, \"retain\": \"3d\"}')::text");
    ASSERT_TEXT(QUEUE("max_running IS NULL, limited"), "t t");
    ASSERT_TEXT(RULES, "queue mail  3");
    run("SELECT claimd.set_queue('mail', '{\"rate\": null, \"weight\": null, \"max_open\": null, "
        "\"retain\": null}')::text");
    ASSERT_TEXT(QUEUE("num_nonnulls(weight, max_running, rate, max_open), limited"), "0 f");
    ASSERT_TEXT(RULES, "");
    ck_assert_int_eq(number("SELECT (SELECT count(*) FROM claimd.slot) + (SELECT count(*) FROM "
                            "claimd.bucket) + (SELECT count(*) FROM claimd.room)"),
                     0);
}
END_TEST

START_TEST(feat_B29_what_takes_back_nothing_makes_no_queue)
{
    run("SELECT claimd.set_queue('mail', '{\"weight\": null, \"paused\": false}')::text");
    run("SELECT claimd.limit_queue('mail', NULL)::text");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.queue"), 0);
}
END_TEST

/* set_queue() stores everything that the single functions store. */
START_TEST(feat_B29_a_patch_and_the_single_functions_store_the_same)
{
    static const char *const pairs[][2] = {
        {"limit_queue(q, 5)", "{\"max_running\": 5}"},
        {"limit_rate(q, 50)", "{\"rate\": \"50/s\"}"},
        {"limit_rate(q, 50, '1 min')", "{\"rate\": \"50/m\"}"},
        {"limit_rate(q, 100, '1 hour')", "{\"rate\": {\"starts\": 100, \"per\": \"1 hour\"}}"},
        {"limit_rate(q, 7)", "{\"rate\": {\"starts\": 7}}"},
        {"limit_open(q, 9)", "{\"max_open\": 9}"},
        {"weigh_queue(q, 4)", "{\"weight\": 4}"},
        {"pause_queue(q)", "{\"paused\": true}"},
        {"limit_queue(q, NULL)", "{\"max_running\": null}"},
        {"limit_rate(q, NULL)", "{\"rate\": null}"},
        {"limit_open(q, NULL)", "{\"max_open\": null}"},
        {"weigh_queue(q, NULL)", "{\"weight\": null}"},
        {"resume_queue(q)", "{\"paused\": false}"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "SELECT claimd.%s::text FROM (VALUES ('a')) AS v(q)",
                       pairs[i][0]);
        run(sql);
        (void)snprintf(sql, sizeof sql, "SELECT claimd.set_queue('b', '%s')::text", pairs[i][1]);
        run(sql);
        const char *r = sql_text(
            db, "SELECT count(DISTINCT to_jsonb(q) - '{name,paused_at}'::text[]) || ' ' || (SELECT "
                "count(*) FILTER (WHERE queue = 'a') = count(*) FILTER (WHERE queue = 'b') FROM "
                "(SELECT queue FROM claimd.slot UNION ALL SELECT queue FROM claimd.bucket UNION "
                "ALL SELECT queue FROM claimd.room) x) FROM claimd.queue q");
        ck_assert_msg(strcmp(r, "1 true") == 0, "%s: %s", pairs[i][0], r);
    }
}
END_TEST

START_TEST(feat_B29_a_patch_of_a_queue_names_what_is_wrong_and_changes_nothing)
{
    static const char *const wrong[][2] = {
        {"NULL", "patch: must be a JSON object with some of paused, weight, max_running, rate"},
        {"'{}'", "patch: must be a JSON object with some of"},
        {"'[]'", "patch: must be a JSON object with some of"},
        {"'{\"colour\": 1, \"weight\": 2}'",
         "patch.colour: unknown, must be one of paused, weight"},
        {"'{\"max_runing\": 1}'", "max_open, retain; did you mean 'max_running'?"},
        {"'{\"paused\": \"maybe\"}'", "patch.paused: must be of type boolean"},
        {"'{\"weight\": 101}'", "patch.weight: must be 1 to 100, or NULL for no weight"},
        {"'{\"max_running\": 0}'", "patch.max_running: must be 1 to 10000, or NULL for no limit"},
        {"'{\"max_running\": \"x\"}'", "patch.max_running: must be of type integer"},
        {"'{\"max_open\": -1}'", "patch.max_open: must be 1 to 10000000, or NULL for no limit"},
        {"'{\"rate\": 50}'", "patch.rate: must be 1 to 100000, then /s, /m, /h or /d"},
        {"'{\"rate\": \"50/min\"}'", "patch.rate: must be 1 to 100000, then /s, /m, /h or /d"},
        {"'{\"rate\": \"100001/s\"}'", "patch.rate.starts: must be 1 to 100000"},
        {"'{\"rate\": {\"starts\": 0}}'", "patch.rate.starts: must be 1 to 100000"},
        {"'{\"rate\": {\"starts\": 1, \"per\": \"0\"}}'", "patch.rate.per: must be 1 second to"},
        {"'{\"rate\": {\"start\": 1}}'", "patch.rate.start: unknown, must be one of starts, per"},
        {"'{\"retain\": 7}'", "patch.retain: must be a text such as \"90d\", or an object"},
        {"'{\"retain\": \"7h\"}'", "patch.retain: must be 1 to 3650 whole days"},
        {"'{\"retain\": {\"\": \"soon\"}}'", "patch.retain: must be 1 to 3650 whole days"},
        {"'{\"retain\": {\"done\": \"1d\"}}'", "patch.retain.done: unknown, must be one of compl"},
        {"'{\"retain\": {\"completed\": \"none\"}}'",
         "patch.retain.completed: must be 1 to 3650 days, or NULL for the default; only completed"},
        {"'{\"weight\": 3, \"retain\": \"0d\"}'", "patch.retain: must be 1 to 3650 days"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "SELECT claimd.set_queue('mail', %s)", wrong[i][0]);
        ASSERT_REFUSED(db, sql, "CL002", wrong[i][1]);
    }
    ASSERT_REFUSED(db, "SELECT claimd.set_queue('Mail', '{\"weight\": 1}')", "CL002",
                   "queue: must match");
    ck_assert_int_eq(number("SELECT (SELECT count(*) FROM claimd.queue) + (SELECT count(*) FROM "
                            "claimd.retention)"),
                     0);
}
END_TEST

START_TEST(feat_B29_limits_wait_for_the_end_of_an_upgrade_and_weights_do_not)
{
    run("UPDATE claimd.cluster SET oldest_program = 1");
    ASSERT_REFUSED(db, "SELECT claimd.set_queue('mail', '{\"max_running\": 1}')", "CL003",
                   "claimctl db finish");
    ASSERT_REFUSED(db, "SELECT claimd.set_queue('mail', '{\"rate\": \"1/s\"}')", "CL003",
                   "claimctl db finish");
    ASSERT_REFUSED(db, "SELECT claimd.set_queue('mail', '{\"retain\": \"1d\"}')", "CL003",
                   "claimctl db finish");
    run("SELECT claimd.set_queue('mail', '{\"weight\": 2, \"paused\": true, \"max_open\": "
        "3}')::text");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.queue WHERE paused"), 1);
}
END_TEST

/* ---- kinds that are not announced yet ---- */

START_TEST(feat_B29_rules_of_a_kind_are_set_before_a_worker_announces_it)
{
    run("SELECT claimd.set_kind('later', '{\"timeout\": \"5 min\", \"max_attempts\": 3}')::text");
    run("SELECT claimd.retain_kind('later', '30 days')::text");
    ASSERT_TEXT("SELECT claimd.pause_kind('later')::text", "true");
    ASSERT_TEXT("SELECT claimd.pause_kind('later')::text", "false");
    ASSERT_TEXT("SELECT concat_ws(' ', timeout, max_attempts, max_crashes, paused, is_announced) "
                "FROM claimd.kind WHERE name = 'later'",
                "00:05:00 3 3 t f");
    ASSERT_TEXT(RULES, "kind later  30");
}
END_TEST

START_TEST(feat_B29_a_kind_is_paused_and_its_jobs_kept_by_the_same_patch)
{
    run("SELECT claimd.set_kind('later', '{\"paused\": true, \"retain\": {\"completed\": \"none\", "
        "\"\": \"7d\"}, \"keep_log\": true}')::text");
    ASSERT_TEXT("SELECT concat_ws(' ', paused, keep_log, set_by_hand) FROM claimd.kind",
                "t t {\"keep_log\": true}");
    ASSERT_TEXT(RULES, "kind later completed 0, kind later  7");
    run("SELECT claimd.set_kind('later', '{\"paused\": false, \"retain\": null}')::text");
    ASSERT_TEXT("SELECT concat_ws(' ', paused, keep_log) FROM claimd.kind", "f t");
    ASSERT_TEXT(RULES, "");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('later', '{\"retain\": {\"cancelled\": \"0d\"}}')",
                   "CL002", "patch.retain.cancelled: must be 1 to 3650 days");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('later', '{\"paused\": \"maybe\"}')", "CL002",
                   "patch.paused: must be of type boolean");
}
END_TEST

START_TEST(feat_B29_a_kind_that_no_worker_has_announced_goes_with_its_last_setting)
{
    static const char *const ways[][2] = {
        {"set_kind('later', '{\"timeout\": 5}')", "set_kind('later', '{\"timeout\": null}')"},
        {"pause_kind('later')", "resume_kind('later')"},
        {"pause_kind('later')", "set_kind('later', '{\"paused\": null}')"},
        {"retain_kind('later', '1 day', 'discarded')", "retain_kind('later', NULL)"},
    };
    run("INSERT INTO claimd.kind (name) VALUES ('here')");
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        char sql[128];
        (void)snprintf(sql, sizeof sql, "SELECT claimd.%s::text", ways[i][0]);
        run(sql);
        ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.kind"), 2);
        (void)snprintf(sql, sizeof sql, "SELECT claimd.%s::text", ways[i][1]);
        run(sql);
        ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.kind"), 1);
    }
    run("SELECT claimd.set_kind('here', '{\"timeout\": null}')::text");
    ASSERT_TEXT("SELECT claimd.resume_kind('nobody')::text", "false");
    ASSERT_TEXT("SELECT string_agg(name, ' ') FROM claimd.kind", "here");
}
END_TEST

START_TEST(feat_B29_a_kind_of_an_upgrade_under_way_is_set_only_once_it_is_announced)
{
    run("INSERT INTO claimd.kind (name) VALUES ('here')");
    run("UPDATE claimd.cluster SET oldest_program = 16");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('later', '{\"timeout\": 5}')", "CL003",
                   "claimctl db finish");
    ASSERT_REFUSED(db, "SELECT claimd.retain_kind('later', '1 day')", "CL003",
                   "claimctl db finish");
    run("SELECT claimd.set_kind('here', '{\"timeout\": 5}')::text");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sql settings");
    TCase *tc = tcase_create("sql settings");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, feat_B29_a_patch_sets_what_it_names_of_a_queue_and_null_takes_it_back);
    tcase_add_test(tc, feat_B29_what_takes_back_nothing_makes_no_queue);
    tcase_add_test(tc, feat_B29_a_patch_and_the_single_functions_store_the_same);
    tcase_add_test(tc, feat_B29_a_patch_of_a_queue_names_what_is_wrong_and_changes_nothing);
    tcase_add_test(tc, feat_B29_limits_wait_for_the_end_of_an_upgrade_and_weights_do_not);
    tcase_add_test(tc, feat_B29_rules_of_a_kind_are_set_before_a_worker_announces_it);
    tcase_add_test(tc, feat_B29_a_kind_is_paused_and_its_jobs_kept_by_the_same_patch);
    tcase_add_test(tc, feat_B29_a_kind_that_no_worker_has_announced_goes_with_its_last_setting);
    tcase_add_test(tc, feat_B29_a_kind_of_an_upgrade_under_way_is_set_only_once_it_is_announced);
    suite_add_tcase(s, tc);
    return world_run(s);
}
