/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs of a full queue; several workers on one host. */
#include "ctl_fixture.h"
#include "ctl_terminal.h"

#include <stdio.h>
#include <unistd.h>

#define LINES "{\"kind\": \"a\"}\n{\"kind\": \"a\", \"priority\": 2}\n"
#define COUNT(what) sql_number(db, "SELECT count(*)::text FROM " what)

/* Counts every call of retry_many(), even those that are rolled back. */
static void count_calls(void)
{
    sql_run(db, "CREATE SEQUENCE claimd.calls");
    sql_run(db, "ALTER FUNCTION claimd.retry_many(bigint[], boolean) RENAME TO really_retry_many");
    sql_run(db, "CREATE FUNCTION claimd.retry_many(ids bigint[], even_completed boolean) RETURNS "
                "bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('claimd.calls'); RETURN "
                "claimd.really_retry_many(ids, even_completed); END $$");
}

START_TEST(feat_B29_when_a_queue_is_found_full_its_other_jobs_are_not_tried_one_by_one)
{
    sql_run(db, "INSERT INTO claimd.job (kind, queue) SELECT 'a', 'q' || n %% 3 FROM "
                "generate_series(1, 3000) AS n");
    sql_run(db, "SELECT claimd.cancel(id) FROM claimd.job");
    sql_run(db, "SELECT claimd.limit_open('q1', 10)");
    sql_run(db, "SELECT claimd.limit_open('q2', 300)");
    count_calls();
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--state", "cancelled", "--json"), 5);
    assert_says("has 10 of at most 10 open jobs: no room for 1 more");
    assert_says("\"matched\": 3000, \"done\": 1310, \"failed\": 1690,");
    ck_assert_int_eq(COUNT("claimd.job WHERE queue = 'q0'"), 1000);
    ck_assert_int_eq(COUNT("claimd.job WHERE queue = 'q1'"), 10);
    ck_assert_int_eq(COUNT("claimd.job WHERE queue = 'q2'"), 300);
    ck_assert_int_lt(sql_number(db, "SELECT last_value::text FROM claimd.calls"), 60);
    sql_run(db, "SELECT claimd.limit_open(q, NULL) FROM unnest('{q1,q2}'::text[]) AS q");
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--state", "cancelled", "--json"), 0);
    ck_assert_int_eq(COUNT("claimd.job"), 3000);
}
END_TEST

START_TEST(feat_B29_all_queues_are_paused_and_resumed)
{
    sql_run(db, "INSERT INTO claimd.job (kind, queue) SELECT 'a', 'q' || n FROM generate_series(1, "
                "3) AS n");
    ck_assert_int_eq(ctl_exit("queues", "pause", "--all", "--json"), 0);
    assert_says("{\"name\": \"q3\", \"paused\": true, \"changed\": true}");
    ck_assert_int_eq(COUNT("claimd.queue WHERE paused"), 3);
    ck_assert_int_eq(ctl_exit("queues", "pause", "--all", "--json"), 0);
    assert_says("\"queues\": []");
    ck_assert_int_eq(ctl_exit("queues", "resume", "--all"), 0);
    assert_says("q2");
    ck_assert_int_eq(COUNT("claimd.queue WHERE paused"), 0);
    ck_assert_int_eq(ctl_exit("queues", "resume"), 2);
    assert_says("give either the name of a queue or --all");
    ck_assert_int_eq(ctl_exit("queues", "pause", "q1", "--all"), 2);
}
END_TEST

START_TEST(a_rate_that_is_no_whole_number_a_second_is_rounded)
{
    ck_assert_int_eq(ctl_exit("keys", "limit", "k", "--rate", "50/m", "--json"), 0);
    assert_says("\"starts_per_s\": 0.833333,");
    ck_assert_int_eq(ctl_exit("queues", "limit", "q", "--rate", "1/d", "--json"), 0);
    assert_says("\"starts_per_s\": 0.000012,");
    ck_assert_int_eq(ctl_exit("queues", "limit", "q", "--rate", "5/s", "--json"), 0);
    assert_says("\"starts_per_s\": 5,");
}
END_TEST

START_TEST(limits_of_one_command_are_set_together_or_not_at_all)
{
    sql_run(db, "ALTER TABLE claimd.key_limit ADD CHECK (rate < 5)");
    ck_assert_int_ne(ctl_exit("keys", "limit", "k", "--running", "3", "--rate", "9/s"), 0);
    ck_assert_int_eq(COUNT("claimd.key_limit"), 0);
    ck_assert_int_eq(ctl_exit("keys", "limit", "k", "--running", "3", "--rate", "4/s"), 0);
    ck_assert_int_eq(COUNT("claimd.key_limit WHERE max_running = 3 AND rate = 4"), 1);
}
END_TEST

START_TEST(a_file_is_tried_and_nothing_of_it_is_stored)
{
    const char *path = ctl_write_file("jobs", LINES, strlen(LINES));
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path, "--dry-run"), 0);
    assert_says("2 would be enqueued\n");
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path, "--dry-run", "--json"), 0);
    assert_says("{\"matched\": 2, \"enqueued\": 0, \"is_dry_run\": true}");
    path = ctl_write_file("jobs", LINES "{\"kind\": \"A\"}\n", strlen(LINES) + 14);
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path, "--dry-run"), 2);
    assert_says("line 3: kind 'A'");
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--dry-run"), 2);
    assert_says("--dry-run needs --file");
    ck_assert_int_eq(COUNT("claimd.job"), 0);
}
END_TEST

static void add_worker(const char *host)
{
    sql_run(
        db,
        "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, "
        "token_prefix, version, queues, built_for) VALUES (gen_random_uuid(), now() + interval '1 "
        "h', 1, 1, '%s', '/s', 'p', '1', '{default}', (SELECT schema_version FROM claimd.cluster))",
        host);
}

START_TEST(several_workers_of_a_host_are_asked_when_a_person_agrees)
{
    struct terminal t;
    const char *const words[] = {"workers", "drain", "two", NULL};
    add_worker("one");
    add_worker("two");
    add_worker("two");
    terminal_run(&t, words, "X=");
    terminal_await(&t, "2 workers will be asked to drain. Go on? [y/N] ");
    ck_assert_int_eq(write(t.master, "n\n", 2), 2);
    ck_assert_int_eq(terminal_end(&t, "nothing was done"), 6);
    ck_assert_int_eq(COUNT("claimd.worker WHERE asked = 'drain'"), 0);
    terminal_run(&t, words, "X=");
    terminal_await(&t, "[y/N] ");
    ck_assert_int_eq(write(t.master, "y\n", 2), 2);
    ck_assert_int_eq(terminal_end(&t, "WORKER ID"), 0);
    ck_assert_int_eq(COUNT("claimd.worker WHERE asked = 'drain' AND host = 'two'"), 2);
    terminal_run(&t, (const char *const[]){"workers", "quiet", "one", NULL}, "X=");
    ck_assert_int_eq(terminal_end(&t, "WORKER ID"), 0);
    ck_assert_int_eq(COUNT("claimd.worker WHERE asked = 'quiet' AND host = 'one'"), 1);
}
END_TEST

START_TEST(feat_B29_keys_are_limited_by_a_pattern)
{
    ck_assert_int_eq(
        ctl_exit("keys", "limit", "customer:*", "--running", "2", "--rate", "50/m", "--json"), 0);
    assert_says("\"max_running\": 2, \"running\": null");
    ck_assert_int_eq(ctl_exit("keys", "limit", "customer:7", "--running", "1"), 0);
    ck_assert_int_eq(ctl_exit("keys", "list", "--json"), 0);
    json_t *root = ctl_json();
    ck_assert_uint_eq(json_array_size(json_object_get(root, "keys")), 2);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("keys", "show", "customer:8", "--json"), 0);
    assert_says("\"max_running\": 2, \"running\": 0");
    assert_says("\"pattern\": \"customer:*\"");
    ck_assert_int_eq(ctl_exit("keys", "show", "customer:7", "--json"), 0);
    assert_says("\"max_running\": 1, \"running\": 0");
    assert_says("\"pattern\": null");
    ck_assert_int_eq(ctl_exit("keys", "limit", "customer:*", "--running", "none", "--rate", "none"),
                     0);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.key_group"), 0);
}
END_TEST

START_TEST(feat_B29_with_json_an_error_is_json_too)
{
    ck_assert_int_eq(ctl_exit("jobs", "show", "7", "--json"), 4);
    json_t *root = ctl_json();
    json_t *error = json_object_get(root, "error");
    ck_assert_str_eq(json_string_value(json_object_get(error, "message")), "job 7 not found");
    ck_assert_int_eq(json_integer_value(json_object_get(error, "exit")), 4);
    json_decref(root);
    sql_run(db, "SELECT claimd.batch_close(claimd.batch_open())");
    ck_assert_int_eq(ctl_exit("batches", "add", "1", "1", "--json"), 5);
    root = ctl_json();
    error = json_object_get(root, "error");
    ck_assert_str_eq(json_string_value(json_object_get(error, "sqlstate")), "CL003");
    json_decref(root);
    ck_assert_int_eq(ctl_exit("jobs", "list", "--json", "--limit", "x"), 2);
    root = ctl_json();
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(root, "error"), "exit")),
                     2);
    json_decref(root);
}
END_TEST

static const struct {
    const char *words[7];
    const char *reason;
} wrong_deadlines[] = {
    {{"enqueue", "a", "--expires-at", "tomorrow"}, "--expires-at: "},
    {{"enqueue", "a", "--expires-in", "0"}, "--expires-in: "},
    {{"enqueue", "a", "--expires-in", "1s", "--expires-at", "2026-02-01T08:00:00Z"},
     "either --expires-at or --expires-in"},
    {{"enqueue", "a", "--delay", "1h", "--expires-in", "1m"}, "expires_at: must be later than sch"},
};

START_TEST(feat_B29_a_job_is_enqueued_with_a_deadline)
{
    static const char lines[] = "{\"kind\": \"a\", \"expires_at\": \"2200-01-01T00:00:00Z\"}\n";
    static const char wrong[] = "{\"kind\": \"a\", \"expires_at\": \"soon\"}\n";
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--expires-in", "1h"), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--expires-at", "2200-01-01T00:00:00Z"), 0);
    ck_assert_int_eq(
        ctl_exit("enqueue", "a", "--expires-at", "2200-01-01T00:00:00Z", "--unique", "u"), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "--file", ctl_write_file("jobs", lines, strlen(lines))),
                     0);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_deadline WHERE "
                                    "expires_at = '2200-01-01 00:00:00Z'"),
                     3);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_deadline WHERE "
                                    "expires_at - now() BETWEEN '59 min' AND '1 h'"),
                     1);
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    assert_says("; expires in 35");
    ck_assert_int_eq(ctl_exit("enqueue", "--file", ctl_write_file("jobs", wrong, strlen(wrong))),
                     2);
    assert_says("line 1: expires_at: ");
    for (size_t i = 0; i < ARRAY_COUNT(wrong_deadlines); i++) {
        ck_assert_int_eq(ctl_run_words(wrong_deadlines[i].words), 2);
        assert_says(wrong_deadlines[i].reason);
    }
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl bulk");
    TCase *tests = tcase_create("bulk");
    tcase_add_checked_fixture(tests, ctl_setup, ctl_teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests,
                   feat_B29_when_a_queue_is_found_full_its_other_jobs_are_not_tried_one_by_one);
    tcase_add_test(tests, a_file_is_tried_and_nothing_of_it_is_stored);
    tcase_add_test(tests, feat_B29_all_queues_are_paused_and_resumed);
    tcase_add_test(tests, a_rate_that_is_no_whole_number_a_second_is_rounded);
    tcase_add_test(tests, limits_of_one_command_are_set_together_or_not_at_all);
    tcase_add_test(tests, several_workers_of_a_host_are_asked_when_a_person_agrees);
    tcase_add_test(tests, feat_B29_a_job_is_enqueued_with_a_deadline);
    tcase_add_test(tests, feat_B29_with_json_an_error_is_json_too);
    tcase_add_test(tests, feat_B29_keys_are_limited_by_a_pattern);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
