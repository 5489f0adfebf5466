/* SPDX-License-Identifier: Apache-2.0
 *
 * The acts of claimctl on jobs: on those named by id, and on all that a filter chooses. */
#include "ctl_fixture.h"
#include "ctl_terminal.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define COUNT(what) sql_number(db, "%s", "SELECT count(*)::text FROM " what)

static void add_jobs(int count)
{
    sql_run(db,
            "INSERT INTO claimd.job (kind, queue) SELECT 'a', 'q' || n %% 2 FROM "
            "generate_series(1, %d) AS n",
            count);
}

static void assert_summary(json_int_t matched, json_int_t done, json_int_t failed)
{
    json_t *root = ctl_json();
    json_t *summary = json_object_get(root, "summary");
    ck_assert_int_eq(json_integer_value(json_object_get(summary, "matched")), matched);
    ck_assert_int_eq(json_integer_value(json_object_get(summary, "done")), done);
    ck_assert_int_eq(json_integer_value(json_object_get(summary, "failed")), failed);
    json_decref(root);
}

START_TEST(a_filter_chooses_what_is_cancelled)
{
    add_jobs(2500);
    sql_run(db, "UPDATE claimd.job SET scheduled_at = now() + interval '1 h' WHERE id <= 10");
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "--state", "scheduled", "--queue", "q1"), 0);
    assert_says("5 jobs cancelled\n");
    ck_assert_int_eq(COUNT("claimd.job_history WHERE id <= 10 AND id % 2 = 1"), 5);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "--queue", "q0", "--json"), 0);
    assert_summary(1250, 1250, 0);
    ck_assert_int_eq(COUNT("claimd.job"), 1245);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "--queue", "q0"), 0); /* again: no job is left */
    assert_says("0 jobs cancelled\n");
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "--kind", "a", "--limit", "1200"), 0);
    ck_assert_int_eq(COUNT("claimd.job WHERE queue = 'q1'"), 45);
}
END_TEST

START_TEST(a_dry_run_says_how_many_and_which_and_does_nothing)
{
    add_jobs(30);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "--queue", "q1", "--dry-run"), 0);
    assert_says("15 jobs would be cancelled\n");
    assert_says("\n27 a    q1    available");
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "--kind", "a", "--dry-run", "--json"), 0);
    json_t *root = ctl_json();
    ck_assert_uint_eq(json_array_size(json_object_get(root, "jobs")), 30);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "4", "77", "--dry-run"), 0);
    assert_says("available");
    assert_says("not found");
    ck_assert_int_eq(COUNT("claimd.job"), 30);
}
END_TEST

/* The refused job is in the middle of a batch. */
START_TEST(a_job_that_is_refused_keeps_none_of_the_others)
{
    add_jobs(3000);
    sql_run(db,
            "CREATE FUNCTION claimd.no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE "
            "EXCEPTION USING ERRCODE = 'CL003', MESSAGE = 'job ' || OLD.id || ' stays'; END $$");
    sql_run(db, "CREATE TRIGGER no BEFORE DELETE ON claimd.job FOR EACH ROW WHEN (OLD.id IN (7, "
                "1500, 1501)) EXECUTE FUNCTION claimd.no()");
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "--kind", "a", "--json"), 5);
    assert_says("3 of 3000 jobs were not cancelled");
    assert_says("{\"id\": 7, \"error\": \"job 7 stays");
    ck_assert_int_eq(COUNT("claimd.job"), 3);
    ck_assert_int_eq(COUNT("claimd.job_history WHERE state = 'cancelled'"), 2997);
}
END_TEST

/* Another session has locked the row, in an open transaction. */
START_TEST(a_locked_job_keeps_none_of_the_others)
{
    add_jobs(200);
    struct sql *pg = sql_open(world.conninfo);
    sql_run(pg, "BEGIN");
    sql_run(pg, "SELECT id::text FROM claimd.job WHERE id = 100 FOR UPDATE");
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "--kind", "a"), 5);
    assert_says("lock timeout");
    assert_says("199 jobs cancelled\n");
    sql_run(pg, "ROLLBACK");
    sql_close(pg);
    ck_assert_int_eq(COUNT("claimd.job"), 1);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "--kind", "a"), 0);
    ck_assert_int_eq(COUNT("claimd.job"), 0);
}
END_TEST

static const struct {
    const char *words[8]; /* ends with a NULL */
    const char *reason;
} wrong[] = {
    {{"jobs", "cancel"}, "which jobs?"},
    {{"jobs", "cancel", "--dry-run"}, "which jobs?"},
    {{"jobs", "cancel", "--yes", "--limit", "5"}, "which jobs?"},
    {{"jobs", "cancel", "1", "--kind", "a"}, "either ids or options"},
    {{"jobs", "cancel", "x"}, "ID"},
    {{"jobs", "cancel", "--state", "completed"}, "only open jobs can be cancelled"},
    {{"jobs", "cancel", "--kind", "a", "--limit", "0"}, "--limit"},
    {{"jobs", "retry", "--state", "available"},
     "--state: only finished, retryable or scheduled jobs can be retried; allowed: scheduled, "
     "retryable, completed, cancelled, discarded"},
    {{"jobs", "retry", "--state", "retryable,running"}, "only finished, retryable or scheduled"},
    {{"jobs", "delete", "--state", "discarded", "--state", "retryable"}, "only finished jobs can"},
    {{"jobs", "cancel", "--since", "yesterday"}, "--since"},
    {{"enqueue", "a", "--unique-by", "kind,"}, "--unique-by: 'kind,' is not allowed; allowed: one"},
    {{"jobs", "edit", "1"}, "nothing to change"},
    {{"jobs", "edit", "1", "--expect", "2"}, "nothing to change"},
    {{"jobs", "edit", "1", "--apply", "next"}, "nothing to change"},
    {{"jobs", "edit", "1", "--apply", "soon", "--priority", "1"}, "--apply: 'soon' is not"},
    {{"jobs", "edit", "1", "--priority", "10"}, "--priority"},
    {{"jobs", "edit", "1", "--args", "{"}, "args"},
    {{"jobs", "edit", "1", "--metadata", "{"}, "metadata"},
    {{"jobs", "edit", "1", "--metadata", "[]"}, "metadata: allowed: a JSON object"},
    {{"jobs", "edit", "1", "--tag", "x", "--tag", ""}, "--tag: '' is not allowed beside another"},
    {{"jobs", "edit", "1", "--queue", "Q"}, "queue"},
    {{"jobs", "edit", "1", "--timeout", "0"}, "--timeout"},
    {{"jobs", "edit", "1", "--at", "soon"}, "at"},
    {{"jobs", "watch", "--queue", "Q"}, "--queue: queue 'Q': must match ^[a-z]"},
    {{"jobs", "cancel", "1", "2", "--limit", "1"}, "--limit: is only for options that choose jobs"},
    {{"jobs", "retry", "--kind", "a", "--even-completed"}, "--even-completed: is only for ids"},
};

START_TEST(a_wrong_choice_is_exit_2_even_without_a_server)
{
    (void)snprintf(ctl.conninfo, sizeof ctl.conninfo, "host=/nowhere");
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        ck_assert_msg(ctl_run_words(wrong[i].words) == 2, "%s: %s", wrong[i].reason, ctl_text());
        assert_says(wrong[i].reason);
    }
}
END_TEST

START_TEST(finished_jobs_are_retried_by_id_and_by_filter)
{
    add_jobs(1200);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "--kind", "a"), 0);
    sql_run(
        db,
        "UPDATE claimd.job_history SET state = 'discarded', error = 'no route' WHERE id <= 1100");
    sql_run(db, "UPDATE claimd.job_history SET state = 'completed' WHERE id > 1150");
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--error", "route", "--dry-run"), 0);
    assert_says("1100 jobs would be retried");
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--error", "route", "--json"), 0);
    assert_summary(1100, 1100, 0);
    ck_assert_int_eq(COUNT("claimd.job WHERE generation = 1"), 1100);
    /* A second time finds none. */
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--error", "route"), 0);
    assert_says("0 jobs retried\n");
    sql_run(db, "UPDATE claimd.job SET state = 'running' WHERE id = 2");
    ck_assert_int_eq(ctl_exit("jobs", "retry", "1101", "1", "2"), 5); /* job 1 is due already */
    assert_says("job 2 is running: only a finished, retryable or scheduled job can be retried");

    ck_assert_int_eq(ctl_exit("jobs", "retry", "1200"), 5);
    ck_assert_int_eq(ctl_exit("jobs", "retry", "1200", "--even-completed"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--state", "completed,cancelled", "--kind", "a"), 0);
    assert_says("98 jobs retried\n");
    ck_assert_int_eq(COUNT("claimd.job"), 1200);
    ck_assert_int_eq(ctl_exit("jobs", "retry", "9999"), 4);
}
END_TEST

START_TEST(feat_B29_jobs_that_wait_for_their_time_run_now_by_id_and_by_filter)
{
    sql_run(db, "INSERT INTO claimd.job (kind, scheduled_at) SELECT 'a', now() + interval '1 h' "
                "FROM generate_series(1, 1500)");
    sql_run(db, "UPDATE claimd.job SET attempt = 2, fence = 9 WHERE id > 10");
    ck_assert_int_eq(ctl_exit("jobs", "retry", "1", "11"), 0);
    ck_assert_int_eq(COUNT("claimd.jobs WHERE state = 'available'"), 2);
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--kind", "a"), 0); /* chooses only discarded jobs */
    assert_says("0 jobs retried\n");
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--state", "retryable", "--dry-run"), 0);
    assert_says("1489 jobs would be retried");
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--state", "retryable", "--limit", "1"), 0);
    assert_says("1 job retried\n");
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--state", "retryable,scheduled", "--json"), 0);
    assert_summary(1497, 1497, 0);
    ck_assert_int_eq(COUNT("claimd.jobs WHERE state = 'available'"), 1500);
    ck_assert_int_eq(COUNT("claimd.job WHERE attempt = 2 AND fence = 9 AND generation = 0"), 1490);
    ck_assert_int_eq(COUNT("claimd.job_edit WHERE after ? 'scheduled_at' AND version = 2"), 1500);
    ck_assert_int_eq(ctl_exit("jobs", "retry", "1"), 0); /* it is due already */
    ck_assert_int_eq(COUNT("claimd.job_edit"), 1500);
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--state", "retryable"), 0);
    assert_says("0 jobs retried\n");
}
END_TEST

START_TEST(a_job_whose_unique_key_is_taken_is_not_retried_and_says_by_whom)
{
    sql_run(db, "SELECT claimd.enqueue('a', unique_key => 'k')");
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "1"), 0);
    sql_run(db, "SELECT claimd.enqueue('a', unique_key => 'k')");
    add_jobs(3);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "--queue", "q0,q1"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--state", "cancelled", "--kind", "a"), 5);
    assert_says("has its unique key now");
    assert_says("3 jobs retried\n");
    ck_assert_int_eq(COUNT("claimd.job"), 4);
}
END_TEST

START_TEST(show_and_list_have_one_job_with_all_its_generations)
{
    static const char *const wanted[] = {"created", "due",       "cancelled", "retried",
                                         "due",     "cancelled", "retried",   "due"};
    ck_assert_int_eq(ctl_exit("enqueue", "a"), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ctl_exit("jobs", "cancel", "1"), 0);
        ck_assert_int_eq(ctl_exit("jobs", "retry", "1"), 0);
    }
    ck_assert_int_eq(ctl_exit("jobs", "list", "--json"), 0);
    json_t *root = ctl_json();
    ck_assert_uint_eq(json_array_size(json_object_get(root, "jobs")), 1);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--json"), 0);
    root = ctl_json();
    json_t *timeline = json_object_get(root, "timeline");
    size_t i = 0;
    json_t *event = NULL;
    json_array_foreach(timeline, i, event)
    {
        ck_assert_uint_lt(i, ARRAY_COUNT(wanted));
        ck_assert_str_eq(json_string_value(json_object_get(event, "event")), wanted[i]);
    }
    ck_assert_uint_eq(i, ARRAY_COUNT(wanted));
    json_decref(root);
}
END_TEST

START_TEST(a_queue_is_cleared_and_the_history_deleted)
{
    add_jobs(2100);
    ck_assert_int_eq(ctl_exit("queues", "clear", "q1", "--dry-run"), 0);
    assert_says("1050 jobs would be cancelled");
    ck_assert_int_eq(ctl_exit("queues", "clear", "q1", "--kind", "b"), 0);
    assert_says("0 jobs cancelled\n");
    ck_assert_int_eq(ctl_exit("queues", "clear", "q1"), 0);
    ck_assert_int_eq(COUNT("claimd.job"), 1050);
    ck_assert_int_eq(COUNT("claimd.job WHERE queue = 'q1'"), 0);
    ck_assert_int_eq(ctl_exit("queues", "clear", "Q1"), 2);
    ck_assert_int_eq(ctl_exit("jobs", "delete", "1"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "delete", "1"), 4);
    ck_assert_int_eq(ctl_exit("jobs", "delete", "2"), 5);
    assert_says("job 2 is available: only a finished job can be deleted");
    ck_assert_int_eq(ctl_exit("jobs", "delete", "--state", "cancelled", "--queue", "q1"), 0);
    assert_says("1049 jobs deleted\n");
    ck_assert_int_eq(COUNT("claimd.job_history"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "delete", "--state", "available"), 2);
}
END_TEST

START_TEST(a_batch_is_closed_and_its_open_jobs_are_cancelled_unless_it_is_only_a_try)
{
    add_jobs(6);
    sql_run(db,
            "SELECT claimd.batch_add(b, j) FROM claimd.batch_open() b, generate_series(1, 3) j");
    ck_assert_int_eq(ctl_exit("batches", "cancel", "1", "--dry-run"), 0);
    assert_says("3 jobs would be cancelled\n");
    ck_assert_int_eq(COUNT("claimd.batch WHERE closed_at IS NULL"), 1);
    ck_assert_int_eq(ctl_exit("batches", "cancel", "1"), 0);
    assert_says("3 jobs cancelled\n");
    ck_assert_int_eq(COUNT("claimd.batches WHERE closed_at IS NOT NULL AND cancelled = 3"), 1);
    ck_assert_int_eq(COUNT("claimd.job"), 3);
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--batch", "1", "--state", "cancelled"), 0);
    assert_says("3 jobs retried\n");
    ck_assert_int_eq(ctl_exit("batches", "cancel", "7"), 4);
    assert_says("batch 7 not found");
    ck_assert_int_eq(ctl_exit("batches", "cancel", "7", "--dry-run"), 4);
    ck_assert_int_eq(ctl_exit("batches", "cancel", "x"), 2);
    assert_says("batch 'x'");
}
END_TEST

START_TEST(what_a_kind_gives_its_jobs_is_set_and_taken_back)
{
    sql_run(db, "INSERT INTO claimd.kind (name) VALUES ('a')");
    ck_assert_int_eq(ctl_exit("kinds", "set", "a", "--timeout", "5m", "--max-attempts", "3"), 0);
    assert_says("max_attempts,timeout");
    ck_assert_int_eq(COUNT("claimd.kind WHERE timeout = '5 min' AND max_attempts = 3"), 1);
    ck_assert_int_eq(ctl_exit("kinds", "show", "a", "--json"), 0);
    assert_says("\"set_by_hand\": \"max_attempts,timeout\"");
    assert_says("\"keep_log\": \"failed\"");
    assert_says("\"of_plugin\": {\"timeout\": \"00:30:00\", \"max_attempts\": 25}");
    ck_assert_int_eq(ctl_exit("kinds", "list"), 0);
    assert_says("max_attempts,timeout");
    ck_assert_int_eq(ctl_exit("kinds", "show", "b"), 4);
    assert_says("kind b not found");
    ck_assert_int_eq(ctl_exit("kinds", "show", "B"), 2);
    ck_assert_int_eq(ctl_exit("kinds", "set", "a", "--timeout", "default"), 0);
    ck_assert_int_eq(COUNT("claimd.kind WHERE timeout = '30 min' AND max_attempts = 3"), 1);
    ck_assert_int_eq(ctl_exit("kinds", "set", "a", "--max-attempts", "0"), 2);
    assert_says("--max-attempts: '0' is not allowed; allowed: 1 to 2147483647, or default");
    ck_assert_int_eq(ctl_exit("kinds", "set", "a", "--backoff", "soon"), 2);
    assert_says("--backoff: 'soon' is not allowed; allowed: default, or exponential:");
    ck_assert_int_eq(ctl_exit("kinds", "set", "B", "--timeout", "5m"), 2);
    ck_assert_int_eq(ctl_exit("kinds", "set", "a", "--timeout", "5m", "--keep-completed", "2d"), 2);
}
END_TEST

/* Whatever its plugin or an operator has set. */
START_TEST(a_kind_whose_jobs_must_not_start_twice_is_shown_with_one_attempt)
{
    sql_run(db, "INSERT INTO claimd.kind (name, at_most_once) VALUES ('a', true)");
    ck_assert_int_eq(ctl_exit("kinds", "list", "--json"), 0);
    assert_says("\"max_attempts\": 1,");
    ck_assert_int_eq(ctl_exit("kinds", "show", "a", "--json"), 0);
    assert_says("\"max_attempts\": 1,");
    ck_assert_int_eq(ctl_exit("kinds", "set", "a", "--max-attempts", "7", "--json"), 0);
    assert_says("\"max_attempts\": 1,");
}
END_TEST

START_TEST(queues_and_kinds_are_shown_paused_and_resumed)
{
    add_jobs(4);
    sql_run(db, "INSERT INTO claimd.kind (name, plugin, version) VALUES ('a', 'p', '1.0')");
    ck_assert_int_eq(ctl_exit("queues", "show", "q1", "--json"), 0);
    json_t *root = ctl_json();
    json_t *queue = json_object_get(root, "queue");
    json_t *kind = json_array_get(json_object_get(root, "kinds"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(queue, "available")), 2);
    ck_assert_str_eq(json_string_value(json_object_get(kind, "kind")), "a");
    ck_assert_int_eq(json_integer_value(json_object_get(kind, "available")), 2);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("queues", "show", "q7"), 4);
    ck_assert_int_eq(ctl_exit("queues", "show", "Q7"), 2);
    ck_assert_int_eq(ctl_exit("queues", "pause", "q1"), 0);
    ck_assert_int_eq(ctl_exit("kinds", "pause", "a"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    assert_says("; queue q1 is paused (by ");
    assert_says("; kind a is paused (by ");
    ck_assert_int_eq(ctl_exit("kinds", "list"), 0);
    assert_says("a    p      1.0     yes");
    ck_assert_int_eq(ctl_exit("kinds", "pause", "B"), 2);
    ck_assert_int_eq(ctl_exit("queues", "pause", "B"), 2);
    ck_assert_int_eq(ctl_exit("queues", "limit", "q1", "--running", "5"), 0);
    ck_assert_int_eq(sql_number(db, "SELECT max_running::text FROM claimd.queue WHERE name = 'q1'"),
                     5);
    ck_assert_int_eq(ctl_exit("queues", "limit", "q1", "--running", "none"), 0);
    ck_assert_int_eq(sql_number(db, "SELECT count(max_running)::text FROM claimd.queue"), 0);
    ck_assert_int_eq(ctl_exit("queues", "limit", "q1", "--rate", "120/m", "--running", "3"), 0);
    ck_assert_int_eq(
        sql_number(db,
                   "SELECT (rate + max_running)::int::text FROM claimd.queue WHERE name = 'q1'"),
        5);
    sql_run(db, "UPDATE claimd.slot SET job_id = 1, fence = 7 WHERE n = 1");
    ck_assert_int_eq(ctl_exit("queues", "show", "q1", "--json"), 0);
    root = ctl_json();
    json_t *limits = json_object_get(root, "limits");
    ck_assert_int_eq(json_integer_value(json_object_get(limits, "max_running")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(limits, "places_taken")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(limits, "starts_per_s")), 2);
    ck_assert(json_is_true(json_object_get(limits, "paused")));
    ck_assert(json_is_string(json_object_get(limits, "paused_by")));
    json_decref(root);
    ck_assert_int_eq(ctl_exit("queues", "limit", "q1", "--rate", "none", "--running", "none"), 0);
    ck_assert_int_eq(sql_number(db, "SELECT count(rate)::text FROM claimd.queue"), 0);
    static const char *const bad[] = {"50", "50/", "50/y", "0/s", "/s", "5/ss", "-1/s", "x/s"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        ck_assert_int_eq(ctl_exit("queues", "limit", "q1", "--rate", bad[i]), 2);
        assert_says("then /s, /m, /h or /d");
    }
    ck_assert_int_eq(ctl_exit("queues", "limit", "q1"), 2);
    ck_assert_int_eq(ctl_exit("queues", "limit", "q1", "--running", "0"), 2);
    ck_assert_int_eq(ctl_exit("queues", "limit", "q1", "--max-open", "0"), 2);
    assert_says("--max-open '0': must be 1 to 10000000, or none");
    ck_assert_int_eq(ctl_exit("queues", "limit", "q1", "--max-open", "2", "--json"), 0);
    assert_says("\"max_open\": 2");
    ck_assert_int_eq(ctl_exit("queues", "show", "q1", "--json"), 0);
    assert_says("\"open_jobs\": 2");
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--queue", "q1"), 5);
    assert_says("queue: q1 has 2 of at most 2 open jobs: no room for 1 more");
    ck_assert_int_eq(ctl_exit("queues", "limit", "q1", "--max-open", "none"), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--queue", "q1"), 0);
    ck_assert_int_eq(ctl_exit("queues", "limit", "B", "--running", "1"), 2);
    ck_assert_int_eq(ctl_exit("kinds", "resume", "a"), 0);
    ck_assert_int_eq(ctl_exit("queues", "resume", "q1", "--json"), 0);
    assert_says("\"changed\": true");
    ck_assert_int_eq(COUNT("claimd.queue WHERE paused"), 0);
    ck_assert_int_eq(ctl_exit("workers", "drain", "nobody"), 4);
    assert_says("no live worker has the host or id 'nobody'");
}
END_TEST

START_TEST(feat_B29_a_file_that_does_not_fit_into_its_queue_is_refused_as_a_whole)
{
    static const char lines[] = "{\"kind\": \"a\", \"queue\": \"q1\"}\n"
                                "{\"kind\": \"a\"}\n"
                                "{\"kind\": \"a\", \"queue\": \"q1\"}\n";
    const char *path = ctl_write_file("jobs", lines, strlen(lines));
    sql_run(db, "SELECT claimd.limit_open('q1', 1)");
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path), 5);
    assert_says("nothing was enqueued: queue: q1 has 0 of at most 1 open jobs: no room for 2 more");
    ck_assert_int_eq(COUNT("claimd.job"), 0);
    sql_run(db, "SELECT claimd.limit_open('q1', 2)");
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path), 0);
    ck_assert_int_eq(COUNT("claimd.job"), 3);
}
END_TEST

/* PostgreSQL writes a space after each comma: text that is short enough here is too long there. */
START_TEST(H1_what_only_the_table_can_refuse_names_the_field_and_what_is_allowed)
{
    autobuf struct buf line = BUF_INIT(2 << 20);
    ck_assert_int_eq(buf_append_text(&line, "{\"kind\": \"a\", \"args\": [0", NULL), STATUS_OK);
    for (int i = 0; i < 400000; i++) {
        ck_assert_int_eq(buf_append_text(&line, ",0", NULL), STATUS_OK);
    }
    ck_assert_int_eq(buf_append_text(&line, "]}\n", NULL), STATUS_OK);
    const char *path = ctl_write_file("jobs", buf_at(&line), line.len);
    ck_assert_int_eq(ctl_exit("enqueue", "--file", path), 2);
    assert_says("nothing was enqueued: line 1: args: at most 1048576 bytes with a space behind "
                "each , and :, or 65536 with long numbers written out\n");
    ck_assert_int_eq(COUNT("claimd.job"), 0);
}
END_TEST

START_TEST(feat_B5_the_weight_of_a_queue_is_set_shown_and_removed)
{
    static const char *const bad[] = {"0", "101", "x", "", "9.5", "9/1", "NULL"};
    ck_assert_int_eq(ctl_exit("queues", "weight", "q1", "9"), 0);
    assert_says("weight        9\n");
    ck_assert_int_eq(COUNT("claimd.queue WHERE name = 'q1' AND weight = 9"), 1);
    ck_assert_int_eq(ctl_exit("queues", "weight", "q1", "100", "--json"), 0);
    assert_says("\"weight\": 100");
    ck_assert_int_eq(ctl_exit("queues", "show", "q1", "--json"), 0);
    assert_says("\"weight\": 100");
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        ck_assert_int_eq(ctl_exit("queues", "weight", "q1", bad[i]), 2);
        assert_says("must be 1 to 100, or none");
    }
    ck_assert_int_eq(ctl_exit("queues", "weight", "q1"), 2);
    ck_assert_int_eq(ctl_exit("queues", "weight", "q1", "1", "2"), 2);
    ck_assert_int_eq(ctl_exit("queues", "weight", "Q1", "1"), 2);
    assert_says("queue 'Q1': must match");
    ck_assert_int_eq(COUNT("claimd.queue WHERE weight = 100"), 1);
    ck_assert_int_eq(ctl_exit("queues", "weight", "q1", "none"), 0);
    ck_assert_int_eq(COUNT("claimd.queue WHERE weight IS NULL"), 1);
}
END_TEST

START_TEST(feat_B29_of_many_jobs_those_are_retried_that_fit_into_their_queue)
{
    add_jobs(6); /* three in q0 and three in q1 */
    sql_run(db, "SELECT claimd.cancel(id) FROM claimd.job");
    sql_run(db, "SELECT claimd.limit_open('q1', 2)");
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--state", "cancelled"), 5);
    assert_says("5 jobs retried\n");
    assert_says("queue: q1 has 2 of at most 2 open jobs: no room for 1 more");
    ck_assert_int_eq(COUNT("claimd.job WHERE queue = 'q1'"), 2);
    ck_assert_int_eq(ctl_exit("jobs", "retry", "5"), 5);
    sql_run(db, "SELECT claimd.limit_open('q1', NULL)");
    ck_assert_int_eq(ctl_exit("jobs", "retry", "5"), 0);
}
END_TEST

START_TEST(feat_B20_rules_of_queues_and_kinds_are_set_shown_and_removed)
{
    sql_run(db, "UPDATE claimd.cluster SET oldest_program = schema_version");
    sql_run(db, "INSERT INTO claimd.kind (name) VALUES ('a')");
    ck_assert_int_eq(ctl_exit("queues", "retain", "q1", "7d"), 0);
    ck_assert_int_eq(ctl_exit("queues", "retain", "q1", "30d", "--state", "discarded"), 0);
    assert_says("all others    7");
    assert_says("discarded    30");
    ck_assert_int_eq(ctl_exit("queues", "show", "q1"), 0);
    assert_says("discarded    30");
    ck_assert_int_eq(ctl_exit("queues", "retain", "q1", "default", "--state", "discarded"), 0);
    ck_assert_int_eq(COUNT("claimd.retention"), 1);
    ck_assert_int_eq(ctl_exit("queues", "retain", "q1", "default"), 0);
    ck_assert_int_eq(ctl_exit("kinds", "retain", "a", "7d", "--state", "completed"), 0);
    ck_assert_int_eq(ctl_exit("kinds", "retain", "a"), 0);
    ck_assert_int_eq(ctl_exit("kinds", "show", "a"), 0);
    assert_says("completed    7");
    ck_assert_int_eq(ctl_exit("kinds", "list"), 0);
    assert_says("completed 7d");
    ck_assert_int_eq(COUNT("claimd.retention"), 1);
    ck_assert_int_eq(ctl_exit("queues", "retain", "q1", "7h"), 2);
    assert_says("'7h': must be whole days, 1d to 3650d, or default; none is for");
    ck_assert_int_eq(ctl_exit("queues", "retain", "q1", "none", "--state", "completed"), 2);
    ck_assert_int_eq(ctl_exit("kinds", "retain", "a", "1d", "--state", "running"), 2);
    ck_assert_int_eq(ctl_exit("kinds", "retain", "Z", "1d"), 2);
    ck_assert_int_eq(ctl_exit("kinds", "set", "a"), 2);
    ck_assert_int_eq(ctl_exit("kinds", "set", "a", "--keep-completed", "0d"), 2);
    ck_assert_int_eq(ctl_exit("kinds", "set", "a", "--keep-completed", "none"), 0);
    sql_run(db, "DELETE FROM claimd.job WHERE id = 1");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 4);
    assert_says("job 1 is gone: completed and not kept, deleted, or never committed");
    ck_assert_int_eq(ctl_exit("jobs", "watch", "1"), 0);
    assert_says("job 1 : gone");
    sql_run(db, "INSERT INTO claimd.completed_count VALUES (now() - interval '10 s', "
                "gen_random_uuid(), 600, 'a', 'q1')");
    ck_assert_int_eq(ctl_exit("stats"), 0);
    assert_says("600");
    ck_assert_int_eq(ctl_exit("queues"), 0);
    assert_says("10.0");
    ck_assert_int_eq(ctl_exit("kinds", "set", "a", "--keep-completed", "default"), 0);
}
END_TEST

/* ---- on a terminal ---- */

START_TEST(on_a_terminal_it_asks_first)
{
    struct terminal t;
    const char *const words[] = {"jobs", "cancel", "--kind", "a", NULL};
    add_jobs(5);
    terminal_run(&t, words, "X=");
    terminal_await(&t, "5 jobs will be cancelled. Go on? [y/N] ");
    ck_assert_int_eq(write(t.master, "n\n", 2), 2);
    ck_assert_int_eq(terminal_end(&t, "nothing was done"), 6);
    ck_assert_int_eq(COUNT("claimd.job"), 5);
    terminal_run(&t, words, "X=");
    terminal_await(&t, "[y/N] ");
    ck_assert_int_eq(write(t.master, "y\n", 2), 2);
    ck_assert_int_eq(terminal_end(&t, "5 jobs cancelled"), 0);
    ck_assert_int_eq(COUNT("claimd.job"), 0);
    add_jobs(5);
    terminal_run(&t, (const char *const[]){"jobs", "cancel", "--kind", "a", "--yes", NULL}, "X=");
    ck_assert_int_eq(terminal_end(&t, "5 jobs cancelled"), 0);
}
END_TEST

/* A lock holds it up, it is sent a signal, and the lock is released: the present batch is done or
 * not. */
START_TEST(an_interrupted_command_is_repeated)
{
    struct terminal t;
    add_jobs(5000);
    struct sql *pg = sql_open(world.conninfo);
    sql_run(pg, "BEGIN");
    sql_run(pg, "SELECT id::text FROM claimd.job WHERE id = 2500 FOR UPDATE");
    terminal_run(&t, (const char *const[]){"jobs", "cancel", "--kind", "a", "--yes", NULL}, "X=");
    struct sql *look = sql_open(world.conninfo);
    ck_assert(WAIT_UNTIL(sql_number(look, "SELECT count(*)::text FROM pg_locks WHERE NOT granted "
                                          "AND transactionid IS NOT NULL") == 1,
                         LIMIT_US));
    ck_assert_int_eq(kill(t.pid, SIGINT), 0);
    sql_run(pg, "ROLLBACK");
    ck_assert_int_eq(terminal_end(&t, "the same command continues"), 1);
    int64_t left = COUNT("claimd.job");
    ck_assert_int_ge(left, 2000);
    ck_assert_int_le(left, 3000);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "--kind", "a"), 0);
    ck_assert_int_eq(COUNT("claimd.job"), 0);
    sql_close(pg);
    sql_close(look);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl act");
    TCase *tests = tcase_create("act");
    tcase_add_checked_fixture(tests, ctl_setup, ctl_teardown);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, a_filter_chooses_what_is_cancelled);
    tcase_add_test(tests, a_dry_run_says_how_many_and_which_and_does_nothing);
    tcase_add_test(tests, a_job_that_is_refused_keeps_none_of_the_others);
    tcase_add_test(tests, a_locked_job_keeps_none_of_the_others);
    tcase_add_test(tests, a_wrong_choice_is_exit_2_even_without_a_server);
    tcase_add_test(tests, finished_jobs_are_retried_by_id_and_by_filter);
    tcase_add_test(tests, feat_B29_jobs_that_wait_for_their_time_run_now_by_id_and_by_filter);
    tcase_add_test(tests, a_job_whose_unique_key_is_taken_is_not_retried_and_says_by_whom);
    tcase_add_test(tests, show_and_list_have_one_job_with_all_its_generations);
    tcase_add_test(tests, a_queue_is_cleared_and_the_history_deleted);
    tcase_add_test(tests,
                   a_batch_is_closed_and_its_open_jobs_are_cancelled_unless_it_is_only_a_try);
    tcase_add_test(tests, what_a_kind_gives_its_jobs_is_set_and_taken_back);
    tcase_add_test(tests, a_kind_whose_jobs_must_not_start_twice_is_shown_with_one_attempt);
    tcase_add_test(tests, queues_and_kinds_are_shown_paused_and_resumed);
    tcase_add_test(tests, feat_B29_a_file_that_does_not_fit_into_its_queue_is_refused_as_a_whole);
    tcase_add_test(tests, H1_what_only_the_table_can_refuse_names_the_field_and_what_is_allowed);
    tcase_add_test(tests, feat_B5_the_weight_of_a_queue_is_set_shown_and_removed);
    tcase_add_test(tests, feat_B29_of_many_jobs_those_are_retried_that_fit_into_their_queue);
    tcase_add_test(tests, feat_B20_rules_of_queues_and_kinds_are_set_shown_and_removed);
    tcase_add_test(tests, on_a_terminal_it_asks_first);
    tcase_add_test(tests, an_interrupted_command_is_repeated);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
