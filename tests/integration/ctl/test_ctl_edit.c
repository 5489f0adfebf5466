/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl jobs edit. */
#include "ctl_fixture.h"

#define COUNT(what) sql_number(db, "SELECT count(*)::text FROM " what)

START_TEST(a_queued_job_is_edited_and_show_tells_of_it)
{
    sql_run(db, "INSERT INTO claimd.job (kind) VALUES ('a'), ('a')");
    ck_assert_int_eq(ctl_exit("jobs", "edit", "1", "--args", "{\"n\": 1.10}", "--priority", "0",
                              "--queue", "q9", "--max-attempts", "3", "--timeout", "5s", "--tag",
                              "x,y", "--metadata", "{\"m\": 1}", "--delay", "1h", "--json"),
                     0);
    assert_says("{\"id\": 1, \"version\": 2}");
    ck_assert_int_eq(
        COUNT("claimd.job WHERE args::text = '{\"n\": 1.10}' AND priority = 0 AND queue "
              "= 'q9' AND max_attempts = 3 AND timeout = '5 s' AND tags = '{\"x,y\"}' "
              "AND metadata = '{\"m\": 1}' AND scheduled_at > now() + interval '59 min'"),
        1);
    ck_assert_int_eq(ctl_exit("jobs", "edit", "1", "--delay", "0", "--expect", "2"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "edit", "1", "--priority", "5", "--expect", "2"), 5);
    assert_says("job 1 has version 3, not 2");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    assert_says("version       3");
    assert_says("EDITED BY");
    assert_says("edited");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--json"), 0);
    json_t *root = ctl_json();
    json_t *edit = json_array_get(json_object_get(root, "edits"), 0);
    json_t *after = json_object_get(edit, "after");
    ck_assert_str_eq(json_string_value(json_object_get(after, "queue")), "q9");
    json_decref(root);
    ck_assert_int_eq(ctl_exit("jobs", "edit", "77", "--priority", "5"), 4);
    ck_assert_int_eq(ctl_exit("jobs", "edit", "2", "--exclusive", "m", "--second", "c", "--backoff",
                              "fixed:1s", "--share", "anna"),
                     0);
    ck_assert_int_eq(COUNT("claimd.job WHERE (exclusive_key, second_key) = ('m', 'c') AND backoff "
                           "= 'fixed:1s' AND "
                           "share_key = 'anna'"),
                     1);
    ck_assert_int_eq(ctl_exit("jobs", "edit", "2", "--share", ""), 0);
    ck_assert_int_eq(COUNT("claimd.job WHERE share_key = 'anna'"), 0);
    sql_run(db, "UPDATE claimd.job SET state = 'running', attempt = 1 WHERE id = 2");
    sql_run(db, "SELECT claimd.cancel(2)");
    ck_assert_int_eq(ctl_exit("jobs", "show", "2"), 0);
    assert_says("; its cancel was asked for");
    ck_assert_ptr_null(strstr(ctl_text(), "an edit waits"));
    ck_assert_int_eq(ctl_exit("jobs", "edit", "2", "--exclusive", "", "--backoff", ""), 5);
    ck_assert_int_eq(
        ctl_exit("jobs", "edit", "2", "--exclusive", "", "--backoff", "", "--apply", "next"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "show", "2"), 0);
    assert_says("; an edit waits for its next attempt");
    assert_says("(for the next attempt)");
}
END_TEST

START_TEST(an_edit_takes_tags_and_metadata_away)
{
    sql_run(db, "SELECT claimd.enqueue('a', tags => '{x,y}', metadata => '{\"m\": 1}')");
    ck_assert_int_eq(ctl_exit("jobs", "edit", "1", "--tag", ""), 0);
    ck_assert_int_eq(COUNT("claimd.job WHERE tags IS NULL AND metadata IS NOT NULL"), 1);
    ck_assert_int_eq(ctl_exit("jobs", "edit", "1", "--metadata", "null"), 0);
    ck_assert_int_eq(COUNT("claimd.job WHERE metadata IS NULL AND version = 3"), 1);
}
END_TEST

#define WITH_LIMITS_OF_ITS_OWN \
    "claimd.job WHERE (max_attempts, timeout, backoff) = (3, '5 s', 'fixed:1s')"

START_TEST(an_edit_gives_a_job_the_limits_of_its_kind_again)
{
    sql_run(db, "INSERT INTO claimd.kind (name, max_attempts, timeout) VALUES ('a', 7, '9 s')");
    sql_run(
        db,
        "SELECT claimd.enqueue('a', max_attempts => 3, timeout => '5 s', backoff => 'fixed:1s')");
    ck_assert_int_eq(COUNT(WITH_LIMITS_OF_ITS_OWN), 1);
    ck_assert_int_eq(ctl_exit("jobs", "edit", "1", "--timeout", "default"), 0);
    ck_assert_int_eq(COUNT("claimd.job WHERE timeout IS NULL AND max_attempts = 3"), 1);
    ck_assert_int_eq(ctl_exit("jobs", "edit", "1", "--max-attempts", "default"), 0);
    ck_assert_int_eq(COUNT("claimd.job WHERE max_attempts IS NULL AND backoff = 'fixed:1s'"), 1);
    ck_assert_int_eq(ctl_exit("jobs", "edit", "1", "--backoff", "default"), 0);
    ck_assert_int_eq(COUNT("claimd.job WHERE backoff IS NULL AND version = 4"), 1);
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    assert_says("max_attempts  7\n");
    assert_says("timeout_s     9\n");
}
END_TEST

START_TEST(a_running_job_has_the_limits_of_its_kind_at_its_next_attempt)
{
    sql_run(
        db,
        "SELECT claimd.enqueue('a', max_attempts => 3, timeout => '5 s', backoff => 'fixed:1s')");
    sql_run(db, "UPDATE claimd.job SET state = 'running', attempt = 1");
    ck_assert_int_eq(ctl_exit("jobs", "edit", "1", "--timeout", "default", "--max-attempts",
                              "default", "--backoff", "default", "--apply", "next"),
                     0);
    ck_assert_int_eq(COUNT(WITH_LIMITS_OF_ITS_OWN), 1);
    sql_run(db, "UPDATE claimd.job SET state = 'available'");
    ck_assert_int_eq(ctl_exit("jobs", "edit", "1", "--priority", "0"), 0);
    ck_assert_int_eq(COUNT("claimd.job WHERE COALESCE(max_attempts::text, timeout::text, backoff) "
                           "IS NULL"),
                     1);
}
END_TEST

START_TEST(a_limit_that_an_edit_can_not_give_is_told_with_those_it_can)
{
    static const char *const wrong[][3] = {
        {"--max-attempts", "0",
         "--max-attempts: '0' is not allowed; allowed: 1 to 2147483647, or "},
        {"--max-attempts", "", "--max-attempts: '' is not allowed; allowed: 1 to 2147483647, or "},
        {"--timeout", "soon", "--timeout: 'soon' is not allowed; allowed: 1ms to 366d, or default"},
        {"--timeout", "400d", "--timeout: '400d' is not allowed; allowed: 1ms to 366d, or default"},
        {"--backoff", "soon",
         "--backoff: 'soon' is not allowed; allowed: default, or exponential:"},
    };
    sql_run(db, "SELECT claimd.enqueue('a')");
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        ck_assert_int_eq(ctl_exit("jobs", "edit", "1", wrong[i][0], wrong[i][1]), 2);
        assert_says(wrong[i][2]);
    }
    ck_assert_int_eq(COUNT("claimd.job WHERE version = 1"), 1);
}
END_TEST

/* Inserts ten jobs: 1 to 5 in queue q0, the others in q1; 1 and 6 run, 2 is scheduled. */
static void add_ten(void)
{
    sql_run(db, "INSERT INTO claimd.job (kind, queue, tags) SELECT 'a', 'q' || (n - 1) / 5, "
                "ARRAY['t' || n %% 2] FROM generate_series(1, 10) AS n");
    sql_run(db, "UPDATE claimd.job SET state = 'running', attempt = 1 WHERE id IN (1, 6)");
    sql_run(db, "UPDATE claimd.job SET scheduled_at = now() + interval '1 h' WHERE id = 2");
}

START_TEST(feat_B29_queued_jobs_are_edited_by_filter)
{
    add_ten();
    ck_assert_int_eq(ctl_exit("jobs", "edit", "--queue", "q0", "--priority", "1", "--dry-run"), 0);
    assert_says("4 jobs would be edited\n");
    ck_assert_int_eq(COUNT("claimd.job WHERE version > 1"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "edit", "--queue", "q0", "--priority", "1", "--set-tag", "x",
                              "--set-metadata", "{\"m\": 1}"),
                     0);
    assert_says("4 jobs edited\n");
    ck_assert_int_eq(COUNT("claimd.job WHERE id BETWEEN 2 AND 5 AND version = 2 AND priority = 1 "
                           "AND tags = '{x}' AND metadata = '{\"m\": 1}' AND queue = 'q0'"),
                     4);
    ck_assert_int_eq(COUNT("claimd.job_edit WHERE after ? 'priority'"), 4);
    ck_assert_int_eq(
        ctl_exit("jobs", "edit", "--tag", "x", "--set-queue", "q2", "--limit", "1", "--json"), 0);
    assert_says("\"matched\": 1, \"done\": 1, \"failed\": 0,");
    ck_assert_int_eq(COUNT("claimd.job WHERE id = 5 AND queue = 'q2'"), 1); /* the newest */
    ck_assert_int_eq(ctl_exit("jobs", "edit", "--state", "scheduled", "--delay", "0"), 0);
    ck_assert_int_eq(COUNT("claimd.job WHERE ready_at > now() + interval '1 min'"), 0);
    ck_assert_int_eq(
        ctl_exit("jobs", "edit", "--state", "running", "--timeout", "1m", "--apply", "next"), 0);
    assert_says("2 jobs edited\n");
    ck_assert_int_eq(ctl_exit("jobs", "edit", "--kind", "nobody", "--priority", "1"), 0);
    assert_says("0 jobs edited\n");
    ck_assert_int_eq(ctl_exit("jobs", "edit", "3", "--priority", "2", "--dry-run"), 0);
    assert_says("available");
    ck_assert_int_eq(COUNT("claimd.job WHERE priority = 2"), 0);
}
END_TEST

START_TEST(feat_B29_a_job_that_an_edit_by_filter_refuses_does_not_stop_the_others)
{
    add_ten();
    sql_run(db, "UPDATE claimd.job SET attempt = 5 WHERE id IN (3, 9)");
    ck_assert_int_eq(ctl_exit("jobs", "edit", "--kind", "a", "--max-attempts", "3"), 5);
    assert_says("job 3 has had 5 attempts: max_attempts must be more");
    assert_says("job 9 has had 5 attempts");
    assert_says("6 jobs edited\n");
    sql_run(db, "SELECT claimd.limit_open('full', 2)");
    ck_assert_int_eq(ctl_exit("jobs", "edit", "--queue", "q1", "--set-queue", "full"), 5);
    assert_says("full has 2 of at most 2 open jobs");
    ck_assert_int_eq(COUNT("claimd.job WHERE queue = 'full'"), 2);
}
END_TEST

static const struct {
    const char *words[8]; /* ends with a NULL */
    const char *reason;
} wrong_choices[] = {
    {{"jobs", "edit", "--priority", "1"}, "which jobs?"},
    {{"jobs", "edit", "--priority", "1", "--yes"}, "which jobs?"},
    {{"jobs", "edit", "1", "--kind", "a", "--priority", "1"}, "either an id or options"},
    {{"jobs", "edit", "1", "--limit", "5", "--priority", "1"}, "--limit: is only for options"},
    {{"jobs", "edit", "--kind", "a", "--expect", "1"}, "--expect: is only for an id"},
    {{"jobs", "edit", "--kind", "a", "--queue", "b"}, "nothing to change: name an option such as"},
    {{"jobs", "edit", "--kind", "a", "--dry-run"}, "nothing to change"},
    {{"jobs", "edit", "1", "--queue", "a", "--set-queue", "b"}, "either --queue or --set-queue"},
    {{"jobs", "edit", "--state", "running", "--priority", "1"},
     "--state: only queued jobs can be edited; allowed: waiting, scheduled, retryable, available"},
    {{"jobs", "edit", "--state", "completed", "--priority", "1"}, "only queued jobs can be edited"},
    {{"jobs", "edit", "--kind", "a", "--set-queue", "Q"}, "queue 'Q': must match"},
    {{"jobs", "edit", "--kind", "a", "--priority", "10"}, "--priority"},
};

START_TEST(feat_B29_a_wrong_choice_of_what_to_edit_is_exit_2_even_without_a_server)
{
    (void)snprintf(ctl.conninfo, sizeof ctl.conninfo, "host=/nowhere");
    for (size_t i = 0; i < ARRAY_COUNT(wrong_choices); i++) {
        ck_assert_msg(ctl_run_words(wrong_choices[i].words) == 2, "%s: %s", wrong_choices[i].reason,
                      ctl_text());
        assert_says(wrong_choices[i].reason);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl jobs edit");
    TCase *tests = tcase_create("edit");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, ctl_setup, ctl_teardown);
    tcase_add_test(tests, a_queued_job_is_edited_and_show_tells_of_it);
    tcase_add_test(tests, an_edit_takes_tags_and_metadata_away);
    tcase_add_test(tests, an_edit_gives_a_job_the_limits_of_its_kind_again);
    tcase_add_test(tests, a_running_job_has_the_limits_of_its_kind_at_its_next_attempt);
    tcase_add_test(tests, a_limit_that_an_edit_can_not_give_is_told_with_those_it_can);
    tcase_add_test(tests, feat_B29_queued_jobs_are_edited_by_filter);
    tcase_add_test(tests, feat_B29_a_job_that_an_edit_by_filter_refuses_does_not_stop_the_others);
    tcase_add_test(tests, feat_B29_a_wrong_choice_of_what_to_edit_is_exit_2_even_without_a_server);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
