/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl jobs show: where is my job, and what has happened to it? */
#include "ctl_rows.h"

#include <stdio.h>

static void assert_situation(const char *wanted)
{
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--json"), 0);
    json_t *root = ctl_json();
    const char *found =
        json_string_value(json_object_get(json_object_get(root, "job"), "situation"));
    ck_assert_msg(found != NULL && strstr(found, wanted) != NULL, "%s", ctl_text());
    json_decref(root);
}

START_TEST(show_says_what_an_available_job_waits_for)
{
    enqueue_one("a");
    assert_situation("no live worker serves queue default");
    sql_run(db, INSERT_WORKER("1 s"));
    assert_situation("served by 1 live worker; ");
    sql_run(db, "UPDATE claimd.worker SET kinds = '{b}'");
    assert_situation("the only live worker of queue default does not serve kind a");
    sql_run(db, "INSERT INTO claimd.queue VALUES ('default', true)");
    assert_situation("queue default is paused");
    sql_run(db, "UPDATE claimd.job SET scheduled_at = clock_timestamp() + interval '1 h'");
    assert_situation("due in 3");
}
END_TEST

#define INSERT_SCHEDULER                                                                    \
    "INSERT INTO claimd.scheduler (scheduler_id, stale_at, leader_since, pid, lock_nodes, " \
    "lock_nodes_voting, host, version) VALUES (gen_random_uuid(), now() + interval '1 h', " \
    "now(), 1, 5, 5, 'host-2', '1')"

START_TEST(show_says_when_nobody_leads_or_has_a_quorum)
{
    enqueue_one("a");
    sql_run(db, INSERT_WORKER("1 s"));
    assert_situation("served by 1 live worker; no leader: no scheduler runs");
    sql_run(db, INSERT_SCHEDULER);
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    ck_assert_ptr_null(strstr(ctl_text(), "; no "));
    sql_run(db, "UPDATE claimd.scheduler SET leader_since = NULL");
    assert_situation("; no leader: the only scheduler does not lead");
    sql_run(db, "UPDATE claimd.worker SET lock_nodes = 5, lock_nodes_voting = 3");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    ck_assert_ptr_null(strstr(ctl_text(), "quorum"));
    sql_run(db, "UPDATE claimd.worker SET lock_nodes = 4, lock_nodes_voting = 2");
    assert_situation("; no quorum: too few lock nodes vote for it; no leader");
    sql_run(db, "UPDATE claimd.job SET scheduled_at = clock_timestamp() + interval '1 h'");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    ck_assert_ptr_null(strstr(ctl_text(), "; no ")); /* it waits only for its time */
}
END_TEST

/* 90 runs of 1 ms and 10 of 1 s, by two workers. */
START_TEST(feat_B30_kinds_and_queues_show_how_long_runs_take)
{
    sql_run(db, INSERT_WORKER("1 s"));
    sql_run(db, "INSERT INTO claimd.kind (name) VALUES ('a')");
    sql_run(db, "INSERT INTO claimd.run_length (worker_id, queue, kind, since, runs, run_us, "
                "buckets) SELECT '" WORKER_ID
                "', q, 'a', now() - interval '1 h', 50, 5045000, array_fill(0, ARRAY[39]) || 45 || "
                "array_fill(0, ARRAY[39]) || 5 FROM unnest('{default,other}'::text[]) AS q");
    sql_run(db, "INSERT INTO claimd.run_length SELECT worker_id, queue, 'old', since, runs, "
                "run_us, buckets, now() - interval '3 h' FROM claimd.run_length");
    ck_assert_int_eq(ctl_exit("kinds", "show", "a", "--json"), 0);
    json_t *root = ctl_json();
    json_t *kind = json_object_get(root, "kind");
    ck_assert_int_eq(json_integer_value(json_object_get(kind, "runs")), 100);
    ck_assert_double_eq_tol(json_number_value(json_object_get(kind, "mean_s")), 0.1009, 1e-6);
    double p95_s = json_number_value(json_object_get(kind, "p95_s"));
    ck_assert_double_gt(p95_s, 0.8);
    ck_assert_double_lt(p95_s, 1.2);
    double p50_s = json_number_value(json_object_get(kind, "p50_s"));
    ck_assert_double_gt(p50_s, 0.0008);
    ck_assert_double_lt(p50_s, 0.0012);
    ck_assert(json_is_string(json_object_get(kind, "since_at")));
    json_decref(root);
    ck_assert_int_eq(ctl_exit("queues", "show", "default", "--json"), 0);
    root = ctl_json();
    ck_assert_uint_eq(json_array_size(json_object_get(root, "runs")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(first(root, "runs"), "runs")), 50);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("kinds", "list", "--json"), 0);
    root = ctl_json();
    ck_assert_int_eq(json_integer_value(json_object_get(first(root, "kinds"), "runs")), 100);
    json_decref(root);
}
END_TEST

#define IN_THE_WAY_OF_2 "INSERT INTO claimd.exclusive (key, job_id, fence) VALUES ('m', 2, 7)"

START_TEST(show_says_which_limit_a_due_job_waits_for)
{
    sql_run(db, "UPDATE claimd.cluster SET oldest_program = 2");
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--exclusive", "m"), 0);
    sql_run(db, INSERT_WORKER("1 s"));
    sql_run(db, INSERT_SCHEDULER);
    sql_run(db, IN_THE_WAY_OF_2);
    assert_situation("; its key is held by job 2");
    sql_run(db, "SELECT claimd.limit_key('m', 2)");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    ck_assert_ptr_null(strstr(ctl_text(), "is held by"));
    sql_run(db, "SELECT claimd.limit_queue('default', 1)");
    sql_run(db, "UPDATE claimd.slot SET job_id = 2, fence = 7");
    assert_situation("; 1 of at most 1 jobs of queue default run");
    sql_run(db, "SELECT claimd.limit_queue('default', NULL)");
    sql_run(db, "SELECT claimd.limit_rate('default', 2, '1 h')");
    sql_run(db, "UPDATE claimd.bucket SET tokens = 0, filled_at = clock_timestamp()");
    assert_situation("; queue default starts 0.001 jobs a second, the next one in 1");
}
END_TEST

START_TEST(feat_D3_a_job_may_have_a_second_key_with_and_without_a_unique_one)
{
    sql_run(db, "UPDATE claimd.cluster SET oldest_program = 2");
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--exclusive", "m", "--second", "c"), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--exclusive", "m", "--second", "c", "--unique", "u"),
                     0);
    ck_assert_int_eq(
        sql_number(
            db,
            "SELECT count(*)::text FROM claimd.job WHERE (exclusive_key, second_key) = ('m', 'c')"),
        2);
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    ck_assert_ptr_nonnull(strstr(ctl_text(), "second_key    c"));
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--exclusive", "m", "--second", ""), 2);
    ck_assert_ptr_nonnull(strstr(ctl_text(), "second_key: must have 1 to 512 bytes"));
}
END_TEST

START_TEST(feat_D3_show_says_which_of_two_keys_a_due_job_waits_for)
{
    sql_run(db, "UPDATE claimd.cluster SET oldest_program = 2");
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--exclusive", "x", "--second", "m"), 0);
    sql_run(db, INSERT_WORKER("1 s"));
    sql_run(db, INSERT_SCHEDULER);
    sql_run(db, IN_THE_WAY_OF_2);
    assert_situation("; its key m is held by job 2");
    sql_run(db, "INSERT INTO claimd.exclusive (key, job_id, fence) VALUES ('x', 3, 8)");
    assert_situation("; its key m is held by job 2; its key x is held by job 3");
    sql_run(db, "INSERT INTO claimd.key_reserved (key, job_id, until) VALUES ('x', 1, now() + "
                "interval '1 min'), ('m', 4, now() + interval '1 min')");
    assert_situation("; a place of its key m is kept for job 4");
}
END_TEST

START_TEST(show_says_who_is_before_a_due_job_and_who_has_no_time_for_it)
{
    enqueue_one("a");
    sql_run(db, INSERT_WORKER("1 s"));
    sql_run(db, INSERT_SCHEDULER);
    sql_run(db, "INSERT INTO claimd.job (kind, priority) SELECT 'b', 1 FROM generate_series(1, 3)");
    assert_situation("served by 1 live worker; 3 jobs before it in its queue");
    sql_run(db, "UPDATE claimd.worker SET running = slots");
    assert_situation("served by 1 live worker, whose 4 slots are busy");
    sql_run(db, "UPDATE claimd.worker SET quiet = true");
    assert_situation("the only live worker that serves it is quiet");
    sql_run(db, "SELECT claimd.pause_queue('default')");
    assert_situation("queue default is paused (by ");
    sql_run(db, "INSERT INTO claimd.kind (name) VALUES ('a')");
    sql_run(db, "UPDATE claimd.cluster SET oldest_program = 2");
    sql_run(db, "SELECT claimd.pause_kind('a')");
    assert_situation("kind a is paused (by ");
}
END_TEST

START_TEST(B9_a_job_that_waits_for_others_is_called_so_and_show_names_them)
{
    enqueue_one("a");
    enqueue_one("b");
    enqueue_one("c");
    sql_run(db, "SELECT claimd.after(1, '{2,3}', 'hold')");
    ck_assert_int_eq(ctl_exit("jobs", "list", "--state", "waiting", "--json"), 0);
    json_t *root = ctl_json();
    ck_assert_uint_eq(json_array_size(json_object_get(root, "jobs")), 1);
    assert_text(first(root, "jobs"), "state", "waiting");
    ck_assert(json_is_null(json_object_get(first(root, "jobs"), "ready_at"))); /* unknown */
    json_decref(root);
    assert_situation("waits for 2 of 2 jobs to end: 2, 3");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--json"), 0);
    root = ctl_json();
    assert_text(first(root, "after"), "kind", "b");
    assert_text(first(root, "after"), "state", "available");
    json_decref(root);
    ck_assert_ptr_null(strstr(ctl_text(), "2285-"));
    sql_run(db, "SELECT claimd.after(claimd.enqueue('d'), '{2}')");
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "4"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "show", "4", "--json"), 0);
    ck_assert_ptr_null(strstr(ctl_text(), "2285-")); /* it ended while it waited */
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "2", "3"), 0);
    assert_situation("held: job 2 was cancelled");
    sql_run(db, "UPDATE claimd.job_after SET state = 'completed'");
    assert_situation(
        "all jobs before it have ended: the leading scheduler lets it go on; no leader");
    ck_assert_int_eq(ctl_exit("queues", "show", "default", "--json"), 0);
    root = ctl_json();
    ck_assert_int_eq(json_integer_value(json_object_get(first(root, "kinds"), "waiting")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(first(root, "kinds"), "scheduled")), 0);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("queues", "--json"), 0);
    root = ctl_json();
    ck_assert_int_eq(json_integer_value(json_object_get(first(root, "queues"), "waiting")), 1);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("queues", "clear", "default"), 0);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 0);
}
END_TEST

START_TEST(show_says_where_a_running_job_is)
{
    enqueue_one("a");
    sql_run(db, INSERT_WORKER("1 s"));
    sql_run(db, MAKE_RUNNING);
    assert_situation("has run on host-1 (pid 4711) for 3");
    sql_run(db, "UPDATE claimd.worker SET stale_at = now() - interval '1 s'");
    assert_situation("stale, it will be rescued");
    sql_run(db, "UPDATE claimd.worker SET dead = true");
    assert_situation("is gone: it will be rescued");
}
END_TEST

START_TEST(show_has_args_as_they_are_and_the_attempts)
{
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--args", "{\"n\": 1.10, \"t\": \"\\u00e9\\n\"}"), 0);
    sql_run(db, "INSERT INTO claimd.job_attempt (job_id, fence, attempt, worker_id, started_at, "
                "outcome, error, log_tail) VALUES (1, 5, 1, '" WORKER_ID
                "', now() - interval '2 s', 'failed', 'no \"luck\"', E'line 1\\nline 2')");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--json"), 0);
    assert_says("1.10");
    json_t *root = ctl_json();
    json_t *args = json_object_get(json_object_get(root, "job"), "args");
    ck_assert_str_eq(json_string_value(json_object_get(args, "t")), "\xc3\xa9\n");
    assert_text(first(root, "attempts"), "error", "no \"luck\"");
    assert_text(first(root, "attempts"), "log_tail", "line 1\nline 2");
    json_decref(root);
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    assert_says("max_attempts  25");
    assert_says("no \"luck\"");
    assert_says("LOG OF ATTEMPT 1\nline 1\nline 2\n");
}
END_TEST

START_TEST(show_cuts_long_args_and_results_unless_all_is_wanted)
{
    enqueue_one("a");
    sql_run(db, "UPDATE claimd.job SET args = to_jsonb(repeat('é', 5000) || 'end')");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    assert_says("é… (10005 bytes, cut here; --full shows all)\n");
    ck_assert_uint_lt(strlen(ctl_text()), 3000);
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--full"), 0);
    assert_says("éend\"\n");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--json"), 0);
    assert_says("éend\"");
    json_decref(ctl_json());
}
END_TEST

START_TEST(show_has_a_timeline_from_the_creation_to_the_end)
{
    static const char *const wanted[] = {"created", "due",     "started",
                                         "failed",  "started", "completed"};
    sql_run(db,
            "INSERT INTO claimd.job_history (id, fence, created_at, scheduled_at, ready_at, "
            "attempted_at, finalized_at, worker_id, attempt, crashes, generation, priority, share, "
            "state, queue, kind, args) VALUES (1, 9, now() - interval '60 s', now() - interval '50 "
            "s', now() - interval '50 s', now() - interval '10 s', now(), '" WORKER_ID
            "', 2, 0, 0, 4, 0, 'completed', 'default', 'a', '{}')");
    sql_run(db, "INSERT INTO claimd.job_attempt (job_id, fence, attempt, worker_id, started_at, "
                "ended_at, outcome, error) VALUES (1, 5, 1, '" WORKER_ID
                "', now() - interval '45 s', now() - interval '40 s', 'failed', 'boo')");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--json"), 0);
    json_t *root = ctl_json();
    json_t *timeline = json_object_get(root, "timeline");
    ck_assert_uint_eq(json_array_size(timeline), ARRAY_COUNT(wanted));
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        assert_text(json_array_get(timeline, i), "event", wanted[i]);
    }
    assert_text(json_array_get(timeline, 3), "detail", "boo");
    json_t *after = json_object_get(json_array_get(timeline, 3), "after_s");
    ck_assert_double_ge(json_number_value(after), 19);
    ck_assert_double_le(json_number_value(after), 21);
    json_decref(root);
}
END_TEST

START_TEST(show_has_one_attempt_for_what_starts_at_most_once)
{
    enqueue_one("a");
    sql_run(db, "INSERT INTO claimd.kind (name, at_most_once) VALUES ('a', true)");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    assert_says("max_attempts  1\n");
}
END_TEST

START_TEST(a_job_cancelled_before_it_was_due_never_was)
{
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--delay", "1h"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    assert_says(" due ");
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "1"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--json"), 0);
    json_t *root = ctl_json();
    ck_assert_uint_eq(json_array_size(json_object_get(root, "timeline")), 2);
    json_decref(root);
}
END_TEST

START_TEST(an_unknown_job_is_exit_4)
{
    ck_assert_int_eq(ctl_exit("jobs", "show", "77"), 4);
    assert_says("job 77 not found");
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "77"), 4);
    assert_says("job 77 not found");
}
END_TEST

START_TEST(B9_show_says_what_a_job_waits_for)
{
    int64_t before = sql_number(db, "SELECT claimd.enqueue('a')::text");
    int64_t id = sql_number(
        db,
        "SELECT claimd.after(claimd.enqueue('b'), ARRAY(SELECT max(id) FROM claimd.job))::text");
    char text[64];
    (void)snprintf(text, sizeof text, "%lld", (long long)id);
    ck_assert_int_eq(ctl_exit("jobs", "show", text), 0);
    (void)snprintf(text, sizeof text, "waits for 1 of 1 jobs to end: %lld", (long long)before);
    assert_says(text);
    sql_run(db, "SELECT claimd.batch_add(claimd.batch_open(), max(id)) FROM claimd.job");
    ck_assert_int_eq(ctl_exit("batches", "show", "1"), 0);
    assert_says("waiting");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl jobs show");
    TCase *tests = tcase_create("show");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, ctl_setup, ctl_teardown);
    tcase_add_test(tests, show_says_what_an_available_job_waits_for);
    tcase_add_test(tests, show_says_when_nobody_leads_or_has_a_quorum);
    tcase_add_test(tests, feat_B30_kinds_and_queues_show_how_long_runs_take);
    tcase_add_test(tests, show_says_which_limit_a_due_job_waits_for);
    tcase_add_test(tests, feat_D3_a_job_may_have_a_second_key_with_and_without_a_unique_one);
    tcase_add_test(tests, feat_D3_show_says_which_of_two_keys_a_due_job_waits_for);
    tcase_add_test(tests, show_says_who_is_before_a_due_job_and_who_has_no_time_for_it);
    tcase_add_test(tests, B9_a_job_that_waits_for_others_is_called_so_and_show_names_them);
    tcase_add_test(tests, show_says_where_a_running_job_is);
    tcase_add_test(tests, show_has_args_as_they_are_and_the_attempts);
    tcase_add_test(tests, show_cuts_long_args_and_results_unless_all_is_wanted);
    tcase_add_test(tests, show_has_a_timeline_from_the_creation_to_the_end);
    tcase_add_test(tests, show_has_one_attempt_for_what_starts_at_most_once);
    tcase_add_test(tests, a_job_cancelled_before_it_was_due_never_was);
    tcase_add_test(tests, an_unknown_job_is_exit_4);
    tcase_add_test(tests, B9_show_says_what_a_job_waits_for);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
