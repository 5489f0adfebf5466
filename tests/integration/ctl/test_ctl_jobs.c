/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl jobs, workers and stats, and what all commands have in common. */
#include "ctl_rows.h"

#include <stdio.h>

/* ---- list ---- */

START_TEST(list_filters_by_state_kind_and_queue)
{
    enqueue_one("a");
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--delay", "1h"), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "b", "--queue", "other"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "list", "--state", "scheduled", "--json"), 0);
    json_t *root = ctl_json();
    ck_assert_uint_eq(json_array_size(json_object_get(root, "jobs")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(first(root, "jobs"), "id")), 2);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("jobs", "list", "--kind", "a", "--json"), 0);
    root = ctl_json();
    ck_assert_uint_eq(json_array_size(json_object_get(root, "jobs")), 2);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("--json", "jobs", "list", "--queue", "other"), 0);
    root = ctl_json();
    assert_text(first(root, "jobs"), "kind", "b");
    json_decref(root);
    ck_assert_int_eq(ctl_exit("jobs", "list", "--limit", "1"), 0);
    assert_says("ID KIND QUEUE");
    ck_assert_ptr_null(strstr(ctl_text(), "default"));
}
END_TEST

START_TEST(an_empty_list_is_no_error)
{
    ck_assert_int_eq(ctl_exit("jobs", "list"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "list", "--json"), 0);
    json_t *root = ctl_json();
    ck_assert(json_is_array(json_object_get(root, "jobs")));
    json_decref(root);
}
END_TEST

/* ---- cancel ---- */

START_TEST(cancel_moves_jobs_to_the_history)
{
    enqueue_one("a");
    enqueue_one("a");
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "1", "2"), 0);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.job_history WHERE state = 'cancelled'"),
        2);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "1"), 0); /* a second cancel is not an error */
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    assert_says("cancelled");
}
END_TEST

START_TEST(what_a_running_job_says_of_itself_and_the_log_of_each_attempt_are_shown)
{
    enqueue_one("a");
    sql_run(db, INSERT_WORKER("1 s"));
    sql_run(db, MAKE_RUNNING);
    sql_run(db, "INSERT INTO claimd.job_live (id, fence, percent, progress, checkpoint) SELECT id, "
                "fence, 40, 'page 4 of 10', '{\"page\": 4}' FROM claimd.job");
    sql_run(db, "INSERT INTO claimd.job_attempt (job_id, fence, attempt, worker_id, started_at, "
                "outcome, log_tail) SELECT id, n, n, worker_id, now(), 'failed', 'said in attempt "
                "' || n FROM claimd.job, generate_series(1, 2) n");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    assert_says("page 4 of 10");
    assert_says("{\"page\": 4}");
    assert_says("said in attempt 2");
    ck_assert_int_eq(ctl_exit("jobs", "list", "--columns", "id,progress"), 0);
    assert_says("40% page 4 of 10");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--log", "1"), 0);
    assert_says("said in attempt 1");
    ck_assert_ptr_null(strstr(ctl_text(), "said in attempt 2"));
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--log", "3"), 4);
    assert_says("--log: there is no log of attempt 3; there are those of attempts 1 of generation "
                "0, 2 of generation 0");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--log", "last"), 2);
    assert_says("--log: 'last' is not allowed; allowed: 1 to 2147483647, or all");
    sql_run(db, "UPDATE claimd.job_live SET log = 'said so far'");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    assert_says("said so far");
    ck_assert_ptr_null(strstr(ctl_text(), "said in attempt 2"));
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--log", "all"), 0);
    assert_says("said in attempt 1");
    assert_says("said so far");
    sql_run(db, "UPDATE claimd.job_live SET fence = fence - 1"); /* it is that of an earlier run */
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    ck_assert_ptr_null(strstr(ctl_text(), "said so far"));
}
END_TEST

START_TEST(feat_B29_the_logs_of_earlier_generations_are_shown)
{
    enqueue_one("a");
    sql_run(db, "INSERT INTO claimd.job_attempt (job_id, fence, attempt, generation, worker_id, "
                "started_at, outcome, log_tail) SELECT 1, 3 * g + n, n, g, gen_random_uuid(), "
                "now(), 'failed', format('said %%s of %%s', n, g) FROM generate_series(0, 1) g, "
                "generate_series(1, 2) n");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--log", "1"), 0);
    assert_says("said 1 of 1");
    assert_says("LOG OF ATTEMPT 1 OF GENERATION 1");
    ck_assert_ptr_null(strstr(ctl_text(), "said 1 of 0"));
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--generation", "0"), 0);
    assert_says("said 2 of 0");
    ck_assert_ptr_null(strstr(ctl_text(), "said 2 of 1"));
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--generation", "0", "--log", "1"), 0);
    assert_says("said 1 of 0");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--log", "all"), 0);
    assert_says("said 1 of 0");
    assert_says("said 2 of 0");
    assert_says("said 1 of 1");
    assert_says("said 2 of 1");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--generation", "0", "--log", "all"), 0);
    ck_assert_ptr_null(strstr(ctl_text(), "of 1"));
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--generation", "0", "--log", "3"), 4);
    assert_says("--log: there is no log of attempt 3 of generation 0; there are those of attempts "
                "1 of generation 0, 2 of generation 0\n");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--generation", "7"), 4);
    assert_says("--generation: there is no log of an attempt of generation 7; there are those of "
                "attempts 1 of generation 0, 2 of generation 0, 1 of generation 1, 2 of");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--generation", "-1"), 2);
    assert_says("--generation: '-1' is not allowed; allowed: 0 to 2147483647");
}
END_TEST

START_TEST(feat_B29_the_last_error_of_a_job_that_is_tried_again_is_shown)
{
    enqueue_one("a");
    sql_run(db, "INSERT INTO claimd.job_attempt (job_id, fence, attempt, worker_id, started_at, "
                "outcome, error) SELECT 1, 1, 1, gen_random_uuid(), now(), 'failed', 'disk full'");
    sql_run(db, "UPDATE claimd.job SET attempt = 1, scheduled_at = now() + interval '1 h'");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1", "--json"), 0);
    json_t *root = ctl_json();
    assert_text(json_object_get(root, "job"), "error", "disk full");
    json_decref(root);
    ck_assert_int_eq(ctl_exit("jobs", "list", "--state", "retryable", "--columns", "id,error"), 0);
    assert_says("disk full");
    ck_assert_int_eq(ctl_exit("jobs", "retry", "--state", "retryable", "--error", "DISK"), 0);
    assert_says("1 job retried");
    /* A retry by an operator starts a new generation. */
    sql_run(db, "UPDATE claimd.job SET generation = 1");
    ck_assert_int_eq(ctl_exit("jobs", "list", "--error", "disk"), 0);
    ck_assert_ptr_null(strstr(ctl_text(), "disk full"));
}
END_TEST

START_TEST(a_running_job_is_asked_to_end_and_shown_so)
{
    enqueue_one("a");
    sql_run(db, INSERT_WORKER("1 s"));
    sql_run(db, MAKE_RUNNING);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "1"), 0);
    assert_says("cancelling");
    ck_assert_int_eq(ctl_exit("jobs", "show", "1"), 0);
    assert_says("its cancel was asked for");
}
END_TEST

#define MAKE_COMPLETED                                                                         \
    "WITH d AS (DELETE FROM claimd.job WHERE id = 1 RETURNING *) INSERT INTO "                 \
    "claimd.job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, "        \
    "worker_id, attempt, crashes, generation, priority, share, state, queue, kind, args) "     \
    "SELECT id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, " \
    "crashes, generation, priority, share, 'completed', queue, kind, args FROM d"

START_TEST(each_id_is_tried_and_told_and_the_worst_is_the_exit_code)
{
    for (int i = 0; i < 4; i++) {
        enqueue_one("a");
    }
    sql_run(db, MAKE_COMPLETED);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "2", "77", "1", "3"), 5);
    assert_says("job 1 is completed already");
    assert_says("job 77 not found");
    assert_says("2 of 4 jobs were not cancelled");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_history WHERE state = "
                                    "'cancelled' AND id IN (2, 3)"),
                     2);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "77", "4"), 4);
    assert_says("claimctl: job 77 not found");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_history"), 4);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "1", "x"), 2);
}
END_TEST

START_TEST(a_worker_that_was_killed_is_called_rescued_when_nothing_of_its_is_left)
{
    sql_run(db, INSERT_WORKER("1 s"));
    sql_run(db, "UPDATE claimd.worker SET dead = true, stopped = true");
    ck_assert_int_eq(ctl_exit("workers", "--all"), 0);
    assert_says(" rescued ");
    ck_assert_ptr_null(strstr(ctl_text(), "stopped"));
    sql_run(db, "UPDATE claimd.worker SET dead = false");
    ck_assert_int_eq(ctl_exit("workers", "--all"), 0);
    assert_says(" stopped ");
}
END_TEST

/* Another session has locked the row, in an open transaction. */
START_TEST(feat_B29_a_locked_job_is_exit_5_and_nothing_was_done)
{
    enqueue_one("a");
    char psql[SERVER_PATH_MAX + 32];
    pid_t pid = 0;
    struct err err = {0};
    const char *const argv[] = {
        "psql", "-Xq",
        "-d",   world.conninfo,
        "-c",   "BEGIN; SELECT FROM claimd.job FOR UPDATE; SELECT pg_sleep(60)",
        NULL};
    (void)snprintf(psql, sizeof psql, "%s/psql.log", world.dir);
    ck_assert_int_eq(program_start(argv, NULL, psql, &pid, &err), STATUS_OK);
    struct sql *pg = sql_open(world.conninfo);
    ck_assert(WAIT_UNTIL(
        sql_number(pg,
                   "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == 1,
        LIMIT_US));
    sql_close(pg);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "1"), 5);
    assert_says("another session has what this needs locked, try again");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 1);
    program_kill(pid);
}
END_TEST

/* ---- workers, stats ---- */

START_TEST(workers_shows_the_state_by_heartbeat)
{
    sql_run(db, INSERT_WORKER("1 s"));
    ck_assert_int_eq(ctl_exit("workers", "--json"), 0);
    json_t *root = ctl_json();
    assert_text(first(root, "workers"), "state", "live");
    assert_text(first(root, "workers"), "host", "host-1");
    assert_text(first(root, "workers"), "kinds", "a");
    json_decref(root);
    sql_run(db, "UPDATE claimd.worker SET stale_at = now()");
    ck_assert_int_eq(ctl_exit("workers"), 0);
    assert_says("stale");
    sql_run(db, "UPDATE claimd.worker SET stopped = true");
    ck_assert_int_eq(ctl_exit("workers"), 0);
    ck_assert_str_eq(ctl_text(), "");
    ck_assert_int_eq(ctl_exit("workers", "--all"), 0);
    assert_says("stopped");
}
END_TEST

START_TEST(stats_counts_by_queue_and_state)
{
    enqueue_one("a");
    enqueue_one("a");
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--delay", "1h"), 0);
    ck_assert_int_eq(ctl_exit("enqueue", "a", "--queue", "other"), 0);
    ck_assert_int_eq(ctl_exit("jobs", "cancel", "2"), 0);
    ck_assert_int_eq(ctl_exit("stats", "--json"), 0);
    json_t *root = ctl_json();
    json_t *row = first(root, "queues");
    assert_text(row, "queue", "default");
    ck_assert_int_eq(json_integer_value(json_object_get(row, "available")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "scheduled")), 1);
    row = json_array_get(json_object_get(root, "finished"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "cancelled")), 1);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("stats"), 0);
    assert_says("OLDEST DUE S");
}
END_TEST

/* ---- common to all commands ---- */

START_TEST(help_version_and_configuration)
{
    ck_assert_int_eq(ctl_exit("--version"), 0);
    assert_says("claimctl ");
    ck_assert_int_eq(ctl_exit("--help"), 0);
    assert_says("jobs show ID");
    ck_assert_int_eq(ctl_exit("enqueue", "--help"), 0);
    assert_says("--max-attempts N");
    ck_assert_int_eq(ctl_exit("enqueue", "--help", "x"), 0);
    static const char bad[] = "{\"lock\": {\"ttl_ms\": 5}}";
    const char *path = ctl_write_file("config", bad, strlen(bad));
    ck_assert_int_eq(ctl_exit("config", "check", path), 2);
    assert_says("lock.ttl_ms: 5 is not allowed; allowed: 1000 to 3600000 ms");
    ck_assert_int_eq(ctl_exit("--config", path, "workers"), 2);
    ck_assert_int_eq(ctl_exit("--config", "/nowhere", "workers"), 2);
    static const char node[] = "{\"lock\": {\"nodes\": [\"a:b:c\"]}}";
    path = ctl_write_file("config", node, strlen(node));
    ck_assert_int_eq(ctl_exit("config", "check", path), 2);
    assert_says("lock.nodes, item 1");
    static const char good[] = "{\"lock\": {\"nodes\": [\"a:1\", \"b:1\"]}}";
    path = ctl_write_file("config", good, strlen(good));
    ck_assert_int_eq(ctl_exit("config", "check", path), 0);
    assert_says("an even number");
    assert_says("ok\n");
}
END_TEST

START_TEST(a_connection_string_that_libpq_refuses_is_exit_2)
{
    (void)snprintf(ctl.conninfo, sizeof ctl.conninfo, "hots=x");
    ck_assert_int_eq(ctl_exit("config", "check"), 2);
    assert_says("postgres.conninfo: invalid connection option \"hots\"");
    ck_assert_int_eq(ctl_exit("db", "status"), 2);
    ck_assert_int_eq(ctl_exit("workers"), 2);
}
END_TEST

/* A call of each command; `dev` and `handler new` have their own tests. */
static const struct {
    const char *words[5];
    const char *key; /* a key of the JSON document */
} calls[] = {
    {{"db", "migrate"}, "applied"},
    {{"db", "status"}, "migrations"},
    {{"db", "verify"}, "checks"},
    {{"db", "finish"}, "upgrade"},
    {{"db", "trust-clock", "--yes"}, "clock"},
    {{"lock-nodes", "show"}, "lock_nodes"},
    {{"lock-nodes", "set", "--yes"}, "lock_nodes"},
    {{"enqueue", "a"}, "job"},
    {{"jobs", "list"}, "jobs"},
    {{"jobs", "show", "1"}, "job"},
    {{"jobs", "cancel", "1"}, "jobs"},
    {{"jobs", "watch", "1"}, "state"},
    {{"jobs", "retry", "1"}, "jobs"},
    {{"jobs", "edit", "1", "--priority", "3"}, "job"},
    {{"jobs", "delete", "1"}, "jobs"},
    {{"batches", "list"}, "batches"},
    {{"batches", "show", "1"}, "batch"},
    {{"batches", "open"}, "batch"},
    {{"batches", "add", "1", "1"}, "batch"},
    {{"batches", "close", "1"}, "batch"},
    {{"batches", "cancel", "1"}, "summary"},
    {{"map", "--sql=SELECT 1 AS id WHERE false", "--kind=a", "--batch=m"}, "map"},
    {{"map", "list"}, "maps"},
    {{"map", "show", "m"}, "map"},
    {{"map", "attach", "m"}, "map"},
    {{"map", "limit", "m", "--concurrency=3"}, "map"},
    {{"map", "pause", "m"}, "map"},
    {{"map", "resume", "m"}, "map"},
    {{"map", "retry", "m", "--failed"}, "map"},
    {{"map", "results", "m"}, "results"},
    {{"map", "cancel", "m"}, "map"},
    {{"map", "drop", "m"}, "map"},
    {{"queues"}, "queues"},
    {{"queues", "show", "default"}, "workers"},
    {{"queues", "pause", "default"}, "queue"},
    {{"queues", "resume", "--all"}, "queues"},
    {{"queues", "resume", "default"}, "queue"},
    {{"queues", "limit", "default", "--running", "5"}, "queue"},
    {{"queues", "retain", "default", "7d"}, "rules"},
    {{"queues", "weight", "default", "9"}, "queue"},
    {{"queues", "clear", "default"}, "summary"},
    {{"keys", "list"}, "keys"},
    {{"keys", "show", "m"}, "jobs"},
    {{"keys", "limit", "m", "--rate", "5/s"}, "key"},
    {{"kinds", "list"}, "kinds"},
    {{"kinds", "show", "a"}, "kind"},
    {{"kinds", "pause", "a"}, "kind"},
    {{"kinds", "resume", "a"}, "kind"},
    {{"kinds", "limit", "a", "--running", "5"}, "kind"},
    {{"kinds", "retain", "a", "7d"}, "rules"},
    {{"kinds", "set", "a", "--keep-completed", "2d"}, "rules"},
    {{"workers", "quiet", "host-1"}, "asked"},
    {{"workers", "resume", "host-1"}, "asked"},
    {{"workers", "drain", "host-1"}, "asked"},
    {{"schedules", "set", "s", "a", "@daily"}, "schedule"},
    {{"schedules", "list"}, "schedules"},
    {{"schedules", "show", "s"}, "schedule"},
    {{"schedules", "pause", "s"}, "schedule"},
    {{"schedules", "resume", "s"}, "schedule"},
    {{"schedules", "run", "s"}, "job"},
    {{"schedules", "next", "s"}, "next"},
    {{"schedules", "apply", "FILE"}, "changes"},
    {{"schedules", "delete", "s"}, "schedule"},
    {{"apply", "FILE"}, "changes"},
    {{"owners"}, "cluster"},
    {{"workers"}, "workers"},
    {{"stats"}, "finished"},
    {{"top"}, "workers"},
    {{"doctor"}, "checks"},
    {{"handlers", "check", "/dev/null"}, "findings"},
    {{"config", "check"}, "configuration"},
    {{"config", "show"}, "lock"},
    {{"config", "schema"}, "properties"},
    {{"config", "doc"}, "keys"},
    {{"completion", "bash"}, "completion"},
    {{"help"}, "commands"},
    {{"db", "rollback", "--yes"}, "undone"},
};

static bool is_called(const char *noun, const char *verb)
{
    bool is_known = strcmp(noun, "dev") == 0 || strcmp(noun, "handler") == 0;
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
        const char *word = calls[i].words[1];
        bool is_verb = verb == NULL || (word != NULL && strcmp(word, verb) == 0);
        is_known = is_known || (strcmp(calls[i].words[0], noun) == 0 && is_verb);
    }
    return is_known;
}

START_TEST(every_command_has_json)
{
    sql_run(db, "SELECT claimd.batch_open()");
    ctl.env[0] = "CLAIMD_LOCK_NODES=unix:/nowhere/redis.sock";
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
        const char *words[8] = {"--json"};
        memcpy(words + 1, calls[i].words, sizeof calls[i].words);
        for (size_t w = 1; w < ARRAY_COUNT(words) && words[w] != NULL; w++) {
            if (strcmp(words[w], "FILE") == 0) {
                words[w] = ctl_write_file("none.json", "{\"schedules\": []}", 17);
            }
        }
        if (strcmp(calls[i].words[0], "enqueue") == 0) {
            sql_run(db, INSERT_WORKER("-1 h")); /* so that there is nothing to warn of */
            sql_run(db, "INSERT INTO claimd.kind (name) VALUES ('a')");
        }
        (void)ctl_run_words(words); /* doctor can reach no lock nodes here */
        json_t *root = json_loads(ctl_text(), JSON_DISABLE_EOF_CHECK, NULL);
        ck_assert_msg(json_object_get(root, calls[i].key) != NULL, "%s: %.500s", words[1],
                      ctl_text());
        json_decref(root);
    }
    size_t i = 0;
    json_t *command = NULL;
    ck_assert_int_eq(ctl_exit("help", "--json"), 0);
    json_t *root = ctl_json();
    json_array_foreach(json_object_get(root, "commands"), i, command)
    {
        const char *noun = json_string_value(json_object_get(command, "noun"));
        const char *verb = json_string_value(json_object_get(command, "verb"));
        ck_assert_msg(is_called(noun, verb), "add '%s %s' to the calls above", noun, verb);
    }
    json_decref(root);
}
END_TEST

START_TEST(json_has_what_a_warning_says)
{
    static const char good[] = "{\"lock\": {\"nodes\": [\"a:1\", \"b:1\"]}}";
    const char *path = ctl_write_file("config", good, strlen(good));
    ck_assert_int_eq(ctl_exit("config", "check", path, "--json"), 0);
    json_t *out = ctl_json();
    json_t *checked = json_object_get(out, "configuration");
    ck_assert_str_eq(json_string_value(json_object_get(checked, "result")), "ok");
    ck_assert_ptr_nonnull(
        strstr(json_string_value(json_object_get(checked, "warning")), "an even number"));
    json_decref(out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl jobs");
    TCase *tests = tcase_create("jobs");
    tcase_add_checked_fixture(tests, ctl_setup, ctl_teardown);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, list_filters_by_state_kind_and_queue);
    tcase_add_test(tests, an_empty_list_is_no_error);
    tcase_add_test(tests, cancel_moves_jobs_to_the_history);
    tcase_add_test(tests, a_running_job_is_asked_to_end_and_shown_so);
    tcase_add_test(tests, what_a_running_job_says_of_itself_and_the_log_of_each_attempt_are_shown);
    tcase_add_test(tests, feat_B29_the_logs_of_earlier_generations_are_shown);
    tcase_add_test(tests, feat_B29_the_last_error_of_a_job_that_is_tried_again_is_shown);
    tcase_add_test(tests, each_id_is_tried_and_told_and_the_worst_is_the_exit_code);
    tcase_add_test(tests, a_worker_that_was_killed_is_called_rescued_when_nothing_of_its_is_left);
    tcase_add_test(tests, feat_B29_a_locked_job_is_exit_5_and_nothing_was_done);
    tcase_add_test(tests, workers_shows_the_state_by_heartbeat);
    tcase_add_test(tests, stats_counts_by_queue_and_state);
    tcase_add_test(tests, help_version_and_configuration);
    tcase_add_test(tests, a_connection_string_that_libpq_refuses_is_exit_2);
    tcase_add_test(tests, every_command_has_json);
    tcase_add_test(tests, json_has_what_a_warning_says);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
