/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl jobs edit. */
#include "ctl_fixture.h"

#define COUNT(what) ctl_number("SELECT count(*)::text FROM " what)

START_TEST(a_queued_job_is_edited_and_show_tells_of_it)
{
    ctl_sql("INSERT INTO claimd.job (kind) VALUES ('a'), ('a')");
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
    ck_assert_int_eq(ctl_exit("jobs", "edit", "2", "--exclusive", "m", "--backoff", "fixed:1s",
                              "--share", "anna"),
                     0);
    ck_assert_int_eq(COUNT("claimd.job WHERE exclusive_key = 'm' AND backoff = 'fixed:1s' AND "
                           "share_key = 'anna'"),
                     1);
    ck_assert_int_eq(ctl_exit("jobs", "edit", "2", "--share", ""), 0);
    ck_assert_int_eq(COUNT("claimd.job WHERE share_key = 'anna'"), 0);
    ctl_sql("UPDATE claimd.job SET state = 'running', attempt = 1 WHERE id = 2");
    ctl_sql("SELECT claimd.cancel(2)");
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
    ctl_sql("SELECT claimd.enqueue('a', tags => '{x,y}', metadata => '{\"m\": 1}')");
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
    ctl_sql("INSERT INTO claimd.kind (name, max_attempts, timeout) VALUES ('a', 7, '9 s')");
    ctl_sql("SELECT claimd.enqueue('a', max_attempts => 3, timeout => '5 s', "
            "backoff => 'fixed:1s')");
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
    ctl_sql("SELECT claimd.enqueue('a', max_attempts => 3, timeout => '5 s', "
            "backoff => 'fixed:1s')");
    ctl_sql("UPDATE claimd.job SET state = 'running', attempt = 1");
    ck_assert_int_eq(ctl_exit("jobs", "edit", "1", "--timeout", "default", "--max-attempts",
                              "default", "--backoff", "default", "--apply", "next"),
                     0);
    ck_assert_int_eq(COUNT(WITH_LIMITS_OF_ITS_OWN), 1);
    ctl_sql("UPDATE claimd.job SET state = 'available'");
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
    ctl_sql("SELECT claimd.enqueue('a')");
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        ck_assert_int_eq(ctl_exit("jobs", "edit", "1", wrong[i][0], wrong[i][1]), 2);
        assert_says(wrong[i][2]);
    }
    ck_assert_int_eq(COUNT("claimd.job WHERE version = 1"), 1);
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
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
