/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl apply: queues, kinds, keys and schedules from a file. */
#include "ctl_fixture.h"

#include <stdio.h>

#define COUNT(what) sql_number(db, "SELECT count(*)::text FROM " what)

static const char *write_file(const char *text)
{
    return ctl_write_file("claimd.json", text, strlen(text));
}

#define ALL                                                                                   \
    "{\"queues\": {\"mail\": {\"weight\": 6, \"max_running\": 5, \"rate\": \"50/m\", "        \
    "\"max_open\": 1000, \"retain\": {\"discarded\": \"90d\", \"\": \"7d\"}}, \"slow\": "     \
    "{\"paused\": true, \"retain\": \"3d\"}}, "                                               \
    "\"kinds\": {\"later\": {\"timeout\": \"10m\", \"max_attempts\": 5, \"max_crashes\": 1, " \
    "\"backoff\": \"fixed:30s\", \"keep_log\": true, \"paused\": false, \"retain\": "         \
    "{\"completed\": \"none\"}}}, "                                                           \
    "\"keys\": {\"customer-7\": {\"max_running\": 100, \"rate\": \"50/m\"}}, "                \
    "\"schedules\": [{\"name\": \"nightly\", \"kind\": \"later\", \"cron\": \"0 3 * * *\"}]}"

START_TEST(feat_B29_a_file_sets_all_and_says_each_change)
{
    ck_assert_int_eq(ctl_exit("apply", write_file(ALL)), 0);
    assert_says("queue mail: weight none → 6\n"
                "queue mail: max_running none → 5\n"
                "queue mail: rate none → 50/m\n"
                "queue mail: max_open none → 1000\n"
                "queue mail: retain none → {\"\": \"7d\", \"discarded\": \"90d\"}\n"
                "queue slow: paused false → true\n"
                "queue slow: retain none → 3d\n"
                "kind later: max_attempts none → 5\n"
                "kind later: max_crashes none → 1\n"
                "kind later: timeout none → 10m\n"
                "kind later: backoff none → fixed:30s\n"
                "kind later: keep_log none → true\n"
                "kind later: retain none → {\"completed\": \"none\"}\n"
                "key customer-7: max_running none → 100\n"
                "key customer-7: rate none → 50/m\n"
                "schedule nightly: added\n");
    ck_assert_int_eq(COUNT("claimd.queue WHERE (name, weight, max_running, max_open, paused) = "
                           "('mail', 6, 5, 1000, false) AND round(rate * 60) = 50"),
                     1);
    ck_assert_int_eq(COUNT("claimd.queue WHERE name = 'slow' AND paused"), 1);
    ck_assert_int_eq(COUNT("claimd.kind WHERE (name, timeout, max_attempts, max_crashes, backoff, "
                           "keep_log, is_announced) = ('later', '10 min', 5, 1, 'fixed:30s', true, "
                           "false)"),
                     1);
    ck_assert_int_eq(COUNT("claimd.key_limit WHERE (key, max_running) = ('customer-7', 100) AND "
                           "round(rate * 60) = 50"),
                     1);
    ck_assert_int_eq(COUNT("claimd.retention"), 4);
    ck_assert_int_eq(COUNT("claimd.schedule"), 1);
    ck_assert_int_eq(ctl_exit("apply", write_file(ALL)), 0);
    ck_assert_str_eq(ctl_text(), "unchanged\n");
    ck_assert_int_eq(ctl_exit("apply", write_file(ALL), "--prune"), 0);
    ck_assert_str_eq(ctl_text(), "unchanged\n");
}
END_TEST

START_TEST(feat_B29_what_is_left_out_stays_and_null_takes_it_back)
{
    ck_assert_int_eq(ctl_exit("apply", write_file(ALL)), 0);
    ck_assert_int_eq(
        ctl_exit("apply",
                 write_file("{\"queues\": {\"mail\": {\"max_running\": 10, \"rate\": null}, "
                            "\"slow\": {}}, \"keys\": {\"customer-7\": {\"rate\": null}}, "
                            "\"schedules\": [{\"name\": \"nightly\", \"kind\": \"later\", "
                            "\"cron\": \"0 4 * * *\"}]}")),
        0);
    ck_assert_str_eq(ctl_text(), "queue mail: max_running 5 → 10\n"
                                 "queue mail: rate 50/m → none\n"
                                 "key customer-7: rate 50/m → none\n"
                                 "schedule nightly: cron 0 3 * * * → 0 4 * * *\n");
    ck_assert_int_eq(COUNT("claimd.queue WHERE name = 'mail' AND weight = 6 AND rate IS NULL"), 1);
}
END_TEST

START_TEST(feat_B29_a_dry_run_says_the_same_and_changes_nothing)
{
    ck_assert_int_eq(ctl_exit("apply", write_file(ALL), "--dry-run", "--json"), 0);
    json_t *root = ctl_json();
    json_t *first = json_array_get(json_object_get(root, "changes"), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(root, "changes")), 16);
    ck_assert_str_eq(json_string_value(json_object_get(first, "what")), "queue");
    ck_assert_str_eq(json_string_value(json_object_get(first, "name")), "mail");
    ck_assert_str_eq(json_string_value(json_object_get(first, "field")), "weight");
    ck_assert(json_is_null(json_object_get(first, "was")));
    ck_assert_str_eq(json_string_value(json_object_get(first, "is")), "6");
    json_decref(root);
    ck_assert_int_eq(
        sql_number(db, "SELECT (SELECT count(*) FROM claimd.queue) + (SELECT count(*) FROM "
                       "claimd.kind) + (SELECT count(*) FROM claimd.key_limit) + (SELECT count(*) "
                       "FROM claimd.retention) + (SELECT count(*) FROM claimd.schedule)"),
        0);
}
END_TEST

START_TEST(feat_B29_prune_takes_back_what_the_sections_of_the_file_do_not_say)
{
    ck_assert_int_eq(ctl_exit("apply", write_file(ALL)), 0);
    ck_assert_int_eq(
        ctl_exit("apply", write_file("{\"queues\": {\"mail\": {\"weight\": 6}}}"), "--prune"), 0);
    ck_assert_str_eq(ctl_text(),
                     "queue mail: max_running 5 → none\n"
                     "queue mail: rate 50/m → none\n"
                     "queue mail: max_open 1000 → none\n"
                     "queue mail: retain {\"\": \"7d\", \"discarded\": \"90d\"} → none\n"
                     "queue slow: retain 3d → none\n");
    ck_assert_int_eq(COUNT("claimd.queue WHERE name = 'slow' AND paused"), 1);
    ck_assert_int_eq(COUNT("claimd.schedule"), 1);
    ck_assert_int_eq(COUNT("claimd.key_limit"), 1);
    ck_assert_int_eq(ctl_exit("apply",
                              write_file("{\"kinds\": {}, \"keys\": {}, \"schedules\": []}"),
                              "--prune"),
                     0);
    assert_says("kind later: timeout 10m → none\n");
    assert_says("kind later: retain {\"completed\": \"none\"} → none\n"
                "key customer-7: max_running 100 → none\n"
                "key customer-7: rate 50/m → none\n"
                "schedule nightly: deleted\n");
    ck_assert_int_eq(
        sql_number(
            db,
            "SELECT (SELECT count(*) FROM claimd.kind) + (SELECT count(*) FROM claimd.key_limit) + "
            "(SELECT count(*) FROM claimd.retention) + (SELECT count(*) FROM claimd.schedule)"),
        0);
}
END_TEST

START_TEST(feat_B29_a_kind_that_no_worker_has_announced_is_shown_as_such)
{
    sql_run(db, "INSERT INTO claimd.kind (name) VALUES ('here')");
    ck_assert_int_eq(ctl_exit("kinds", "set", "later", "--timeout", "10m", "--json"), 0);
    assert_says("\"announced\": false");
    ck_assert_int_eq(ctl_exit("kinds", "show", "later", "--json"), 0);
    assert_says("\"announced\": false");
    assert_says("\"of_plugin\": null");
    ck_assert_int_eq(ctl_exit("kinds", "list", "--json"), 0);
    assert_says("\"kind\": \"later\", \"plugin\": null");
    ck_assert_int_eq(ctl_exit("enqueue", "later"), 0);
    assert_says("kind later is unknown: no worker has ever announced it");
    ck_assert_int_eq(ctl_exit("kinds", "set", "later", "--timeout", "default"), 0);
    ck_assert_int_eq(ctl_exit("kinds", "show", "later"), 4);
    assert_says("kind later not found: no worker has announced it, and nothing is set for it");
}
END_TEST

START_TEST(feat_B29_a_bad_file_is_refused_as_a_whole_with_the_place)
{
    static const char *const wrong[][2] = {
        {"", "claimd.json: line 1, column"},
        {"[]", "claimd.json: must be an object with some of queues, kinds, keys, schedules"},
        {"{}", "claimd.json: must be an object with some of"},
        {"{\"queue\": {}}",
         "queue: unknown, must be one of queues, kinds, keys, schedules; did you mean 'queues'?"},
        {"{\"kinds\": {\"a\": {\"time_out\": \"1s\"}}}", "retain; did you mean 'timeout'?"},
        {"{\"queues\": [1]}", "queues: must be an object {NAME: {…}, …}"},
        {"{\"queues\": {\"a\": 1}}", "queues.a: must be an object"},
        {"{\"queues\": {\"a\": {}, \"a\": {}}}", "duplicate object key"},
        {"{\"queues\": {\"a\": {\"weight\": 1, \"weight\": 2}}}", "duplicate object key"},
        {"{\"queues\": {\"a\": {\"crew\": 1}}}",
         "queues.a.crew: unknown, must be one of paused, w"},
        {"{\"queues\": {\"a\": {\"weight\": \"1\"}}}", "queues.a.weight: must be a whole number"},
        {"{\"queues\": {\"a\": {\"paused\": 1}}}", "queues.a.paused: must be true, false or null"},
        {"{\"queues\": {\"a\": {\"rate\": \"5/min\"}}}",
         "queues.a.rate: must be 1 to 100000, then"},
        {"{\"queues\": {\"a\": {\"retain\": 7}}}",
         "queues.a.retain: must be a text such as \"90d\""},
        {"{\"queues\": {\"b\": {\"weight\": 3}, \"mail\": {\"max_running\": 0}}}",
         "queues.mail.max_running: must be 1 to 10000, or NULL for no limit"},
        {"{\"queues\": {\"a\": {\"retain\": {\"completed\": \"none\"}}}}",
         "queues.a.retain.completed: must be 1 to 3650 days"},
        {"{\"queues\": {\"A\": {\"weight\": 3}}}", "queues.A: queue: must match"},
        {"{\"kinds\": {\"a\": {\"timeout\": \"soon\"}}}", "kinds.a.timeout: 'soon'"},
        {"{\"kinds\": {\"a\": {\"backoff\": \"soon\"}}}", "kinds.a.backoff: must be exponential"},
        {"{\"kinds\": {\"a\": {\"max_attempts\": 0}}}", "kinds.a.max_attempts: must be 1 or more"},
        {"{\"kinds\": {\"A\": {\"paused\": true}}}", "kinds.A: kind: must match"},
        {"{\"keys\": {\"k\": {\"max_running\": 1001}}}", "keys.k.max_running: must be 1 to 1000"},
        {"{\"keys\": {\"k\": {\"weight\": 1}}}", "keys.k.weight: unknown, must be one of max_runn"},
        {"{\"keys\": {\"\": {\"max_running\": 2}}}", "keys.: key: must have 1 to 512 bytes"},
        {"{\"schedules\": {}}", "schedules: must be an array"},
        {"{\"queues\": {\"a\": {\"weight\": 1}}, \"schedules\": [{\"name\": \"a\"}]}",
         "schedules[0] 'a': kind: must be given"},
        {"{\"queues\": {\"a\": {\"weight\": 1}}, \"schedules\": [{\"name\": \"a\", \"kind\": "
         "\"x\", "
         "\"cron\": \"61 * * * *\"}]}",
         "schedules[0] 'a': cron: '61': the minute is 0 to 59"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        ck_assert_msg(ctl_exit("apply", write_file(wrong[i][0])) == 2, "%s: %s", wrong[i][0],
                      ctl_text());
        assert_says(wrong[i][1]);
        ck_assert_int_eq(ctl_exit("apply", write_file(wrong[i][0]), "--dry-run"), 2);
    }
    ck_assert_int_eq(ctl_exit("apply", "/nowhere/file.json"), 2);
    ck_assert_int_eq(ctl_exit("apply"), 2);
    ck_assert_int_eq(sql_number(db, "SELECT (SELECT count(*) FROM claimd.queue) + (SELECT count(*) "
                                    "FROM claimd.kind) + (SELECT count(*) FROM claimd.schedule)"),
                     0);
}
END_TEST

START_TEST(feat_B29_a_key_of_any_text_does_not_spoil_the_lines)
{
    ck_assert_int_eq(
        ctl_exit("apply", write_file("{\"keys\": {\"a\\nb\\u001b[2J\": {\"max_running\": 2}}}")),
        0);
    ck_assert_str_eq(ctl_text(), "key a?b?[2J: max_running none → 2\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl apply");
    TCase *tc = tcase_create("apply");
    tcase_add_checked_fixture(tc, ctl_setup, ctl_teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, feat_B29_a_file_sets_all_and_says_each_change);
    tcase_add_test(tc, feat_B29_what_is_left_out_stays_and_null_takes_it_back);
    tcase_add_test(tc, feat_B29_a_dry_run_says_the_same_and_changes_nothing);
    tcase_add_test(tc, feat_B29_prune_takes_back_what_the_sections_of_the_file_do_not_say);
    tcase_add_test(tc, feat_B29_a_kind_that_no_worker_has_announced_is_shown_as_such);
    tcase_add_test(tc, feat_B29_a_bad_file_is_refused_as_a_whole_with_the_place);
    tcase_add_test(tc, feat_B29_a_key_of_any_text_does_not_spoil_the_lines);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
