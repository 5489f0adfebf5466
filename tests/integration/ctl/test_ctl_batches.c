/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches in claimctl: everything that SQL can do with them. */
#include "ctl_fixture.h"

#include <stdio.h>

#define COUNT(what) sql_number(db, "SELECT count(*)::text FROM " what)
#define REPORT "{\"kind\": \"report\", \"args\": {\"of\": 42}}"

START_TEST(B9_a_batch_is_opened_filled_and_closed_from_the_shell)
{
    ck_assert_int_eq(ctl_exit("batches", "open", "letter 42", "--follow-up", REPORT), 0);
    ck_assert_str_eq(ctl_text(), "1\n");
    ck_assert_int_eq(COUNT("claimd.batch WHERE name = 'letter 42' AND follow_up = '" REPORT "'"),
                     1);
    ck_assert_int_eq(ctl_exit("batches", "open", "--json", "--on-success", REPORT, "--on-failure",
                              "{\"kind\": \"alert\"}"),
                     0);
    ck_assert_int_eq(COUNT("claimd.batch WHERE on_success = '" REPORT "' AND "
                           "on_failure ->> 'kind' = 'alert'"),
                     1);
    assert_says("{\"batch\": {\"id\": 2}}");
    ck_assert_int_eq(ctl_exit("enqueue", "mail", "--batch", "1"), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "mail", "--unique", "u", "--batch", "1"), 0);
    sql_run(db, "SELECT claimd.enqueue('mail') FROM generate_series(1, 2)");
    ck_assert_int_eq(ctl_exit("batches", "add", "1", "4", "3", "4", "--dry-run"), 0);
    assert_says("batch 1: 2 jobs would be in it");
    ck_assert_int_eq(COUNT("claimd.batch_job WHERE batch_id = 1"), 2);
    ck_assert_int_eq(ctl_exit("batches", "add", "1", "4", "3", "4"), 0);
    assert_says("batch 1: 2 jobs are in it");
    ck_assert_int_eq(ctl_exit("batches", "add", "1", "3", "--json"), 0); /* again: not an error */
    assert_says("\"jobs\": 1");
    ck_assert_int_eq(COUNT("claimd.batch_job WHERE batch_id = 1"), 4);
    ck_assert_int_eq(ctl_exit("batches", "close", "1"), 0);
    assert_says("batch 1: 4 open jobs; none can be added");
}
END_TEST

START_TEST(B9_all_jobs_of_a_file_come_into_a_batch_or_none)
{
    static const char lines[] = "{\"kind\": \"a\"}\n"
                                "{\"kind\": \"a\", \"unique_key\": \"u\"}\n";
    const char *path = ctl_write_file("jobs", lines, strlen(lines));
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path, "--batch", "1"), 5);
    assert_says("nothing was enqueued: batch 1 not found");
    ck_assert_int_eq(COUNT("claimd.job"), 0);
    ck_assert_int_eq(ctl_exit("batches", "open"), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path, "--batch", "1", "--dry-run"), 0);
    assert_says("2 would be enqueued");
    ck_assert_int_eq(COUNT("claimd.job"), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path, "--batch", "1"), 0);
    assert_says("enqueued 2");
    ck_assert_int_eq(COUNT("claimd.batch_job WHERE batch_id = 1 AND state IS NULL"), 2);
}
END_TEST

START_TEST(what_can_not_be_in_a_batch_is_refused_with_nothing_half_stored)
{
    static const struct {
        const char *words[6];
        int exit;
        const char *says;
    } cases[] = {
        {{"batches", "open", "--follow-up", "{"}, 2, "--follow-up: not JSON"},
        {{"batches", "open", "--follow-up", "{\"a\": 1, \"a\": 2}"}, 2, "--follow-up: duplicate"},
        {{"batches", "open", "--follow-up", "@/nowhere"}, 2, "--follow-up: cannot read '/nowhere'"},
        {{"batches", "open", "--follow-up", "{\"kind\": \"A\"}"}, 2, "follow_up.kind: must match"},
        {{"batches", "open", "--follow-up", "[]"}, 2, "follow_up: must be an object"},
        {{"batches", "open", "--on-success", "{"}, 2, "--on-success: not JSON"},
        {{"batches", "open", "--on-failure", "{\"kind\": \"A\"}"},
         2,
         "on_failure.kind: must match"},
        {{"batches", "open", "a", "b"}, 2, "unexpected argument 'b'"},
        {{"batches", "add", "1"}, 2, "ID JOB... is missing"},
        {{"batches", "add", "x", "1"}, 2, "batch 'x'"},
        {{"batches", "add", "1", "2", "x"}, 2, "job 'x'"},
        {{"batches", "add", "7", "2"}, 4, "batch 7 not found"},
        {{"batches", "close", "7"}, 4, "batch 7 not found"},
        {{"batches", "add", "1", "2", "9"}, 5, "job 9 has ended, or was not found"},
        {{"batches", "add", "1", "1"}, 5, "batch 1 is closed"},
        {{"enqueue", "mail", "--batch", "0"}, 2, "--batch: "},
        {{"enqueue", "mail", "--batch", "1"}, 5, "batch 1 is closed"},
        {{"enqueue", "--file", "-", "--batch", "x"}, 2, "--batch: "},
    };
    sql_run(db, "SELECT claimd.batch_add(claimd.batch_open(), claimd.enqueue('a'))");
    sql_run(db, "SELECT claimd.enqueue('a')");
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const char *words[7] = {NULL};
        memcpy(words, cases[i].words, sizeof cases[i].words);
        if (strcmp(cases[i].says, "batch 1 is closed") == 0) {
            sql_run(db, "SELECT claimd.batch_close(1)");
        }
        ck_assert_msg(ctl_run_words(words) == cases[i].exit, "%zu: %s", i, ctl_text());
        assert_says(cases[i].says);
    }
    ck_assert_int_eq(COUNT("claimd.batch"), 1);
    ck_assert_int_eq(COUNT("claimd.batch_job"), 1);
    ck_assert_int_eq(COUNT("claimd.job"), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl batches");
    TCase *tests = tcase_create("batches");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, ctl_setup, ctl_teardown);
    tcase_add_test(tests, B9_a_batch_is_opened_filled_and_closed_from_the_shell);
    tcase_add_test(tests, B9_all_jobs_of_a_file_come_into_a_batch_or_none);
    tcase_add_test(tests, what_can_not_be_in_a_batch_is_refused_with_nothing_half_stored);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
