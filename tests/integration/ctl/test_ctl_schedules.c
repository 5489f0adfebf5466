/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl schedules: one by one, and from a file. */
#include "ctl_fixture.h"

#include <stdio.h>

static json_t *record(json_t *root, const char *table)
{
    return json_object_get(root, table);
}

static const char *text_of(json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text == NULL ? "" : text;
}

static const char *write_file(const char *text)
{
    return ctl_write_file("schedules.json", text, strlen(text));
}

/* Checks the change that apply reports for a schedule: "add", "change", …; "" = none. */
static void assert_change(json_t *root, const char *name, const char *change)
{
    size_t i = 0;
    json_t *row = NULL;
    const char *found = "";
    json_array_foreach(json_object_get(root, "changes"), i, row)
    {
        found = strcmp(text_of(row, "name"), name) == 0 ? text_of(row, "change") : found;
    }
    ck_assert_msg(strcmp(found, change) == 0, "%s: '%s', not '%s'", name, found, change);
}

START_TEST(set_stores_what_the_options_say)
{
    ck_assert_int_eq(ctl_exit("schedules", "set", "nightly", "backup", "30 2 * * *", "--zone",
                              "europe/berlin", "--args", "{\"n\": 1.10}", "--queue", "q",
                              "--priority", "2", "--max-attempts", "3", "--timeout", "90s", "--tag",
                              "x", "--tag", "y", "--metadata", "{\"m\": 1}", "--missed", "all",
                              "--missed-window", "2d", "--overlap", "skip"),
                     0);
    assert_says("next_at");
    ck_assert_int_eq(
        sql_number(
            db,
            "SELECT count(*)::text FROM claimd.schedule WHERE (name, kind, cron, zone, args::text, "
            "queue, priority, max_attempts, timeout, tags, metadata, missed, missed_window, "
            "overlap) = ('nightly', 'backup', '30 2 * * *', 'Europe/Berlin', '{\"n\": 1.10}', 'q', "
            "2, 3, '90 s', '{x,y}', '{\"m\": 1}', 'all', '2 days', 'skip')"),
        1);
}
END_TEST

START_TEST(feat_B29_set_takes_the_options_of_enqueue_and_show_prints_them)
{
    ck_assert_int_eq(ctl_exit("schedules", "set", "s", "a", "@hourly", "--exclusive", "e",
                              "--share", "t", "--backoff", "fixed:30s", "--unique-by",
                              "kind,args.id", "--unique-for", "2h", "--unique-states", "completed",
                              "--on-conflict", "replace_args", "--jitter", "5m", "--second", "f"),
                     0);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.schedule WHERE (exclusive_key, "
                       "second_key, share_key, backoff, unique_by, unique_for, unique_states, "
                       "on_conflict, jitter) = ('e', 'f', 't', 'fixed:30s', '{kind,args.id}', '2 "
                       "h', 'completed', 'replace_args', '5 min')"),
        1);
    ck_assert_int_eq(ctl_exit("schedules", "show", "s", "--json"), 0);
    json_t *root = ctl_json();
    json_t *row = record(root, "schedule");
    ck_assert_str_eq(text_of(row, "exclusive_key"), "e");
    ck_assert_str_eq(text_of(row, "second_key"), "f");
    ck_assert_str_eq(text_of(row, "share_key"), "t");
    ck_assert_str_eq(text_of(row, "backoff"), "fixed:30s");
    ck_assert_str_eq(text_of(row, "unique_by"), "{kind,args.id}");
    ck_assert_str_eq(text_of(row, "unique_states"), "completed");
    ck_assert_str_eq(text_of(row, "on_conflict"), "replace_args");
    ck_assert_int_eq((int)json_number_value(json_object_get(row, "unique_for_s")), 7200);
    ck_assert_int_eq((int)json_number_value(json_object_get(row, "jitter_s")), 300);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("schedules", "set", "s", "a", "@hourly", "--unique", "k"), 0);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.schedule WHERE unique_key = 'k' AND "
                       "on_conflict = 'ignore' AND num_nulls(exclusive_key, second_key, share_key, "
                       "backoff, unique_by, unique_for, unique_states, jitter) = 8"),
        1);
    ck_assert_int_eq(ctl_exit("schedules", "run", "s"), 0);
    ck_assert_int_eq(ctl_exit("schedules", "run", "s"), 5);
    assert_says("unique_key: job 1 has this key and waits");
}
END_TEST

START_TEST(the_words_do_what_their_functions_do)
{
    ck_assert_int_eq(
        ctl_exit("schedules", "set", "s", "a", "30 2 * * *", "--zone", "America/New_York"), 0);
    ck_assert_int_eq(ctl_exit("schedules", "next", "s", "--count", "3", "--json"), 0);
    json_t *root = ctl_json();
    ck_assert_uint_eq(json_array_size(json_object_get(root, "next")), 3);
    ck_assert_ptr_nonnull(strstr(
        text_of(json_array_get(json_object_get(root, "next"), 0), "local_time"), " 02:30:00-0"));
    json_decref(root);
    ck_assert_int_eq(ctl_exit("schedules", "pause", "s"), 0);
    ck_assert_int_eq(ctl_exit("schedules", "list"), 0);
    assert_says("paused");
    ck_assert_int_eq(ctl_exit("schedules", "run", "s"), 0);
    assert_says("1");
    ck_assert_int_eq(ctl_exit("schedules", "resume", "s", "--json"), 0);
    ck_assert_int_eq(ctl_exit("schedules", "show", "s", "--json"), 0);
    root = ctl_json();
    ck_assert_str_eq(text_of(record(root, "schedule"), "state"), "active");
    ck_assert_uint_eq(json_array_size(json_object_get(root, "next")), 5);
    json_t *fire = json_array_get(json_object_get(root, "fires"), 0);
    ck_assert_str_eq(text_of(fire, "outcome"), "run");
    ck_assert_str_eq(text_of(fire, "job_state"), "available");
    json_decref(root);
    ck_assert_int_eq(ctl_exit("schedules", "delete", "s"), 0);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.schedule"), 0);
}
END_TEST

START_TEST(the_last_error_is_shown)
{
    ck_assert_int_eq(ctl_exit("schedules", "set", "s", "a", "@daily"), 0);
    sql_run(db,
            "UPDATE claimd.schedule SET error = 'queue is full', failures = 3, failed_at = now()");
    ck_assert_int_eq(ctl_exit("schedules", "list"), 0);
    assert_says("failing");
    assert_says("queue is full");
    ck_assert_int_eq(ctl_exit("schedules", "show", "s"), 0);
    assert_says("queue is full");
}
END_TEST

START_TEST(who_is_not_there_is_exit_code_4)
{
    static const char *const verbs[] = {"show", "pause", "resume", "run", "delete", "next"};
    for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
        ck_assert_int_eq(ctl_exit("schedules", verbs[i], "no"), 4);
        assert_says("schedule 'no' not found");
    }
}
END_TEST

START_TEST(bad_input_is_exit_code_2_and_names_itself)
{
    static const struct {
        const char *words[6];
        const char *says;
    } wrong[] = {
        {{"A", "a", "@daily"}, "name: must match"},
        {{"s", "A", "@daily"}, "kind: must match"},
        {{"s", "a", "daily"}, "cron: 'daily': must be five fields"},
        {{"s", "a", "0 0 30 2 *"}, "cron: no day ever matches"},
        {{"s", "a", "@daily", "--zone", "Mars"}, "zone: 'Mars' is not in pg_timezone_names"},
        {{"s", "a", "@daily", "--args", "{"}, "args: not JSON"},
        {{"s", "a", "@daily", "--args", "{\"a\": 1, \"a\": 2}"}, "duplicate"},
        {{"s", "a", "@daily", "--metadata", "nope"}, "metadata: not JSON"},
        {{"s", "a", "@daily", "--metadata", "[1]"}, "metadata: allowed: a JSON object"},
        {{"s", "a", "@daily", "--priority", "10"}, "--priority"},
        {{"s", "a", "@daily", "--max-attempts", "0"}, "--max-attempts"},
        {{"s", "a", "@daily", "--timeout", "soon"}, "--timeout"},
        {{"s", "a", "@daily", "--missed", "some"}, "missed: must be none, latest or all"},
        {{"s", "a", "@daily", "--missed-window", "0"}, "--missed-window"},
        {{"s", "a", "@daily", "--overlap", "wait"}, "overlap: must be run or skip"},
        {{"s", "a", "@daily", "--jitter", "25h"}, "--jitter"},
        {{"s", "a", "@daily", "--unique-for", "0"}, "--unique-for"},
        {{"s", "a", "@daily", "--unique-for", "1h"}, "unique_for: needs unique_key or unique_by"},
        {{"s", "a", "@daily", "--unique-by", "kind,"}, "--unique-by"},
        {{"s", "a", "@daily", "--unique-by", "tags"}, "unique_by: must be a list of kind, queue"},
        {{"s", "a", "@daily", "--on-conflict", "ignore"}, "--on-conflict needs --unique"},
        {{"s", "a", "@daily", "--unique=k", "--on-conflict", "error"},
         "on_conflict: must be ignore, replace_args, reschedule or replace"},
        {{"s", "a", "@daily", "--backoff", "soon"}, "backoff: must be exponential"},
        {{"s", "a", "@daily", "--exclusive", ""}, "exclusive_key: must have 1 to 512 bytes"},
        {{"s", "a"}, "NAME KIND CRON"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        const char *words[10] = {"schedules", "set"};
        memcpy(words + 2, wrong[i].words, sizeof wrong[i].words);
        ck_assert_msg(ctl_run_words(words) == 2, "%zu: %s", i, ctl_text());
        assert_says(wrong[i].says);
    }
    ck_assert_int_eq(ctl_exit("schedules", "next", "s", "--count", "0"), 2);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.schedule"), 0);
}
END_TEST

/* ---- apply ---- */

#define TWO                                                                                   \
    "{\"schedules\": [{\"name\": \"a\", \"kind\": \"x\", \"cron\": \"0 1 * * *\", \"args\": " \
    "{\"n\": 1.10}, \"timeout\": \"90s\", \"tags\": [\"t\"], \"missed_window\": \"2h\"}, "    \
    "{\"name\": \"b\", \"kind\": \"y\", \"cron\": \"every 90s\", \"zone\": \"Europe/Berlin\"}]}"

START_TEST(apply_makes_changes_and_with_prune_deletes)
{
    const char *file = write_file(TWO);
    ck_assert_int_eq(ctl_exit("schedules", "set", "c", "z", "@daily"), 0);
    ck_assert_int_eq(ctl_exit("schedules", "apply", file, "--dry-run", "--prune", "--json"), 0);
    json_t *root = ctl_json();
    assert_change(root, "a", "add");
    assert_change(root, "b", "add");
    assert_change(root, "c", "delete");
    json_decref(root);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.schedule"), 1);
    ck_assert_int_eq(ctl_exit("schedules", "apply", file), 0);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.schedule"), 3);
    ck_assert_int_eq(
        sql_number(
            db, "SELECT count(*)::text FROM claimd.schedule WHERE name = 'a' AND args::text = "
                "'{\"n\": 1.10}' AND timeout = '90 s' AND tags = '{t}' AND missed_window = '2 h'"),
        1);
    ck_assert_int_eq(ctl_exit("schedules", "pause", "a"), 0);
    sql_run(db, "UPDATE claimd.schedule SET zone = 'UTC' WHERE name = 'b'");
    ck_assert_int_eq(ctl_exit("schedules", "apply", file, "--prune", "--json"), 0);
    root = ctl_json();
    assert_change(root, "a", "same");
    assert_change(root, "b", "change");
    assert_change(root, "c", "delete");
    json_decref(root);
    assert_says("zone: UTC -> Europe/Berlin");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.schedule"), 2);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.schedule WHERE name = 'a' AND paused"),
        1);
    ck_assert_int_eq(ctl_exit("schedules", "apply", file, "--prune", "--json"), 0);
    root = ctl_json();
    assert_change(root, "b", "same");
    json_decref(root);
}
END_TEST

#define ALL                                                                                \
    "{\"schedules\": [{\"name\": \"a\", \"kind\": \"x\", \"cron\": \"@daily\", "           \
    "\"exclusive_key\": \"e\", \"share_key\": \"t\", \"backoff\": \"fixed:30s\", "         \
    "\"second_key\": \"f\", "                                                              \
    "\"unique_by\": [\"kind\", \"args.a,b\"], \"unique_for\": \"2h\", \"unique_states\": " \
    "\"all\", "                                                                            \
    "\"on_conflict\": \"reschedule\", \"jitter\": \"90s\"}]}"

START_TEST(feat_B29_apply_takes_what_enqueue_takes_and_says_what_changes)
{
    const char *file = write_file(ALL);
    ck_assert_int_eq(ctl_exit("schedules", "apply", file), 0);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.schedule WHERE (exclusive_key, "
                       "second_key, share_key, backoff, unique_by, unique_for, unique_states, "
                       "on_conflict, jitter) = ('e', 'f', 't', 'fixed:30s', '{kind,\"args.a,b\"}', "
                       "'2 h', 'all', 'reschedule', '90 s')"),
        1);
    ck_assert_int_eq(ctl_exit("schedules", "apply", file, "--json"), 0);
    json_t *root = ctl_json();
    assert_change(root, "a", "same");
    json_decref(root);
    sql_run(db, "UPDATE claimd.schedule SET jitter = NULL, unique_by = '{kind}'");
    ck_assert_int_eq(ctl_exit("schedules", "apply", file), 0);
    assert_says("jitter: none -> 00:01:30");
    assert_says("unique_by: {kind} -> {kind,");
}
END_TEST

#define ONE(more) \
    "{\"schedules\": [{\"name\": \"a\", \"kind\": \"x\", \"cron\": \"@daily\"" more "}]}"

START_TEST(apply_refuses_a_bad_file_as_a_whole_and_names_the_place)
{
    static const char *const wrong[][2] = {
        {"", "line 1, column"},
        {"{\n\"schedules\": [}", "schedules.json: line 2, column"},
        {"[]", "must be an object with one key"},
        {"{\"schedules\": {}}", "must be an object with one key"},
        {"{\"schedules\": [], \"more\": 1}", "must be an object with one key"},
        {"{\"schedules\": [1]}", "schedules[0] '': must be an object"},
        {ONE(", \"kind\": \"y\""), "duplicate object key"},
        {ONE(", \"args\": {\"p\": 1, \"p\": 2}"), "duplicate object key"},
        {ONE(", \"crom\": 1"), "schedules[0] 'a': unknown key 'crom'; known: name, kind, cron"},
        {ONE(", \"priorty\": 1"), "second_key, grace; did you mean 'priority'?"},
        {ONE(", \"priority\": \"4\""), "schedules[0] 'a': priority: must be a whole number"},
        {ONE(", \"priority\": 44"), "schedules[0] 'a': priority: must be 0 (first) to 9"},
        {ONE(", \"priority\": 99999999999"), "schedules[0] 'a': priority: out of range"},
        {ONE(", \"timeout\": 90"), "timeout: must be a text such as \"90s\""},
        {ONE(", \"timeout\": \"soon\""), "schedules[0] 'a': timeout"},
        {ONE(", \"tags\": [1]"), "tags: must be an array of texts"},
        {ONE(", \"metadata\": [1]"), "metadata: must be an object"},
        {ONE(", \"jitter\": 5"), "schedules[0] 'a': jitter: must be a text such as \"5m\""},
        {ONE(", \"jitter\": \"25h\""), "schedules[0] 'a': jitter"},
        {ONE(", \"unique_by\": \"kind\""), "schedules[0] 'a': unique_by: must be an array of"},
        {ONE(", \"unique_by\": [1]"), "schedules[0] 'a': unique_by: must be an array of texts"},
        {ONE(", \"unique_for\": \"soon\""), "schedules[0] 'a': unique_for"},
        {ONE(", \"unique_key\": 1"), "schedules[0] 'a': unique_key: must be a text"},
        {ONE(", \"unique_states\": \"open\""), "schedules[0] 'a': unique_states: needs unique_key"},
        {ONE(", \"unique_key\": \"k\", \"on_conflict\": \"error\""),
         "schedules[0] 'a': on_conflict: must be ignore, replace_args, reschedule or replace"},
        {ONE(", \"zone\": \"Mars\""), "schedules[0] 'a': zone: 'Mars' is not in"},
        {ONE(", \"missed\": \"some\""), "schedules[0] 'a': missed: must be none"},
        {"{\"schedules\": [{\"name\": \"a\", \"kind\": \"x\"}]}",
         "schedules[0] 'a': cron: must be given"},
        {"{\"schedules\": [{\"name\": \"a\", \"kind\": \"x\", \"cron\": \"@daily\"}, {\"name\": "
         "\"a\", \"kind\": \"x\", \"cron\": \"@daily\"}]}",
         "schedules[1] 'a': name: occurs twice"},
        {"{\"schedules\": [{\"name\": \"a\", \"kind\": \"x\", \"cron\": \"@daily\"}, {\"name\": "
         "\"b\", \"kind\": \"x\", \"cron\": \"61 * * * *\"}]}",
         "schedules[1] 'b': cron: '61': the minute is 0 to 59"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        ck_assert_msg(ctl_exit("schedules", "apply", write_file(wrong[i][0])) == 2, "%s: %s",
                      wrong[i][0], ctl_text());
        assert_says(wrong[i][1]);
        ck_assert_int_eq(ctl_exit("schedules", "apply", write_file(wrong[i][0]), "--dry-run"), 2);
    }
    ck_assert_int_eq(ctl_exit("schedules", "apply", "/nowhere/file.json"), 2);
    assert_says("/nowhere/file.json");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.schedule"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl schedules");
    TCase *tc = tcase_create("schedules");
    tcase_add_checked_fixture(tc, ctl_setup, ctl_teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, set_stores_what_the_options_say);
    tcase_add_test(tc, feat_B29_set_takes_the_options_of_enqueue_and_show_prints_them);
    tcase_add_test(tc, the_words_do_what_their_functions_do);
    tcase_add_test(tc, the_last_error_is_shown);
    tcase_add_test(tc, who_is_not_there_is_exit_code_4);
    tcase_add_test(tc, bad_input_is_exit_code_2_and_names_itself);
    tcase_add_test(tc, apply_makes_changes_and_with_prune_deletes);
    tcase_add_test(tc, feat_B29_apply_takes_what_enqueue_takes_and_says_what_changes);
    tcase_add_test(tc, apply_refuses_a_bad_file_as_a_whole_and_names_the_place);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
