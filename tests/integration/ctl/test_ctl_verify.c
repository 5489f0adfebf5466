/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl db verify: each planted violation is found by its own check and by no other. */
#include "ctl_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define WORKER "'00000000-0000-0000-0000-0000000000aa'"
#define HISTORY_COLUMNS                                                                 \
    "id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, " \
    "crashes, generation, priority, share, state, queue, kind, args"

static struct redis_server node;
static char node_env[256];

static void setup(void)
{
    char dir[SERVER_PATH_MAX];
    struct err err = {0};
    ctl_setup();
    (void)snprintf(dir, sizeof dir, "%.60s/%d-node", world.dir, (int)getpid());
    enum status st = redis_server_start(dir, NULL, &node, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    (void)snprintf(node_env, sizeof node_env, "CLAIMD_LOCK_NODES=unix:%s", node.path);
    ctl.env[0] = node_env;
    ctl.env[1] = "CLAIMD_SCHEDULER_FULL_PASS_MS=1000";
    ctl.env[2] = "CLAIMD_TIME_SCALE=0.2"; /* so that the margin is 1 s */
    sql_run(db, "INSERT INTO claimd.kind (name, max_attempts, at_most_once, updated_at) VALUES "
                "('once', 25, true, '2020-01-01'), ('many', 3, false, '2020-01-01')");
}

static void teardown(void)
{
    redis_server_stop(&node);
    ctl_teardown();
}

/* The fixture appends stderr to the output: cuts it off. */
static int verify_json(void)
{
    int code = ctl_exit("db", "verify", "--json");
    char *tail = ctl.out.len > 0 ? strstr(buf_at(&ctl.out), "}\n{\"error\": ") : NULL;
    if (tail != NULL) {
        tail[1] = '\0';
    }
    return code;
}

static void given_worker(const char *stale_in)
{
    sql_run(db,
            "INSERT INTO claimd.worker (worker_id, beat_at, stale_at, pid, slots, host, state_dir, "
            "token_prefix, version, queues, kinds) VALUES (" WORKER
            ", now() + interval '%s' - interval '8 s', now() + interval '%s', 4711, 4, 'host-1', "
            "'/s', 'p', '1', '{default}', '{once,many}')",
            stale_in, stale_in);
}

/* Inserts a job that ended correctly, and one that runs correctly. */
static void given_good_jobs(void)
{
    given_worker("1 h");
    sql_run(db, "INSERT INTO claimd.job (kind) SELECT 'many' FROM generate_series(1, 3)");
    sql_run(db, "UPDATE claimd.job SET state = 'running', attempt = 1, attempted_at = "
                "clock_timestamp(), worker_id = " WORKER
                ", fence = nextval('claimd.fence') WHERE id <= 2");
    sql_run(
        db,
        "WITH gone AS (DELETE FROM claimd.job WHERE id = 1 RETURNING *) INSERT INTO "
        "claimd.job_history (" HISTORY_COLUMNS
        ") SELECT id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, "
        "crashes, generation, priority, share, 'completed', queue, kind, args FROM gone");
}

START_TEST(what_is_well_is_exit_0_and_every_check_is_told)
{
    given_good_jobs();
    ck_assert_int_eq(ctl_exit("db", "verify"), 0);
    assert_says("finished_twice");
    assert_says("inv.S2");
    ck_assert_ptr_null(strstr(ctl_text(), "FAIL"));
    ck_assert_int_eq(verify_json(), 0);
    json_t *root = ctl_json();
    ck_assert_uint_ge(json_array_size(json_object_get(root, "checks")), 13);
    ck_assert_uint_eq(json_array_size(json_object_get(root, "violations")), 0);
    json_decref(root);
}
END_TEST

/* A map of one row, which has an open job. */
#define A_MAP                                                                                     \
    "SELECT l.made FROM claimd.map_begin('m', 'SELECT', 'id', 'many', NULL, 'default', 2, NULL, " \
    "NULL) "                                                                                      \
    "AS b, claimd.map_load(b, NULL, '{a}', ARRAY['{}'], true) AS l"

/* Applied to the correct jobs: 1 is completed with fence 1, 2 runs with fence 2, 3 waits. */
static const struct {
    const char *check;
    const char *rule;
    int job;
    const char *sql[2];
} planted[] = {
    {"fence_twice", "inv.S1", 1, {"UPDATE claimd.job SET fence = 1 WHERE id = 2"}},
    {"fence_twice",
     "inv.S1",
     1,
     {"INSERT INTO claimd.job_attempt (job_id, fence, attempt, worker_id, started_at, outcome) "
      "VALUES (3, 1, 1, " WORKER ", now(), 'failed')"}},
    {"fence_ahead", "inv.S1", 2, {"UPDATE claimd.job SET fence = 1000 WHERE id = 2"}},
    {"finished_twice",
     "inv.S2",
     1,
     {"INSERT INTO claimd.job_history (" HISTORY_COLUMNS ") SELECT " HISTORY_COLUMNS
      " FROM claimd.job_history"}},
    {"completed_stale",
     "inv.S3",
     1,
     {"INSERT INTO claimd.job_attempt (job_id, fence, attempt, worker_id, started_at, outcome) "
      "SELECT 1, nextval('claimd.fence'), 1, " WORKER ", now(), 'lost'"}},
    {"illegal_state", "inv.S5", 2, {"UPDATE claimd.job SET fence = 0 WHERE id = 2"}},
    {"illegal_state", "inv.S5", 1, {"UPDATE claimd.job_history SET attempt = 0"}},
    {"open_and_finished",
     "inv.S6",
     1,
     {"INSERT INTO claimd.job (id, kind) OVERRIDING SYSTEM VALUE VALUES (1, 'many')"}},
    {"attempts", "inv.S7", 2, {"UPDATE claimd.job SET attempt = 4 WHERE id = 2"}},
    {"attempts", "inv.S7", 1, {"UPDATE claimd.job_history SET max_attempts = 1, attempt = 2"}},
    {"too_early",
     "inv.S8",
     1,
     {"UPDATE claimd.job_history SET attempted_at = scheduled_at - interval '1 ms'"}},
    {"at_most_once",
     "inv.S10",
     1,
     {"UPDATE claimd.job_history SET kind = 'once', fence = nextval('claimd.fence')",
      "INSERT INTO claimd.job_attempt (job_id, fence, attempt, worker_id, started_at, outcome) "
      "VALUES (1, 1, "
      "1, " WORKER ", now(), 'lost')"}},
    {"worker_gone",
     "inv.L2",
     2,
     {"UPDATE claimd.worker SET dead = true, beat_at = now() - interval '61 s'",
      "UPDATE claimd.job SET attempted_at = now() - interval '61 s', scheduled_at = now() - "
      "interval '2 h' WHERE id = "
      "2"}},
    {"worker_gone",
     "inv.L2",
     2,
     {"DELETE FROM claimd.worker", "UPDATE claimd.job SET attempted_at = now() - interval '61 s', "
                                   "scheduled_at = now() - interval '2 h' WHERE id = 2"}},
    {"past_deadline",
     "inv.L4",
     2,
     {"UPDATE claimd.job SET timeout = '1 s', attempted_at = now() - interval '62 s', scheduled_at "
      "= now() - interval '2 h' WHERE id = 2"}},
    {"key_not_held",
     "inv.S18",
     2,
     {"UPDATE claimd.job SET exclusive_key = 'k', flags = 2 WHERE id = 2"}},
    {"key_not_held",
     "inv.S18",
     2,
     {"UPDATE claimd.job SET exclusive_key = 'k', second_key = 'l', flags = 2 WHERE id = 2",
      "INSERT INTO claimd.exclusive (key, job_id, fence) SELECT 'k', id, fence FROM claimd.job "
      "WHERE id = 2"}},
    {"held_by_nobody",
     "inv.S18",
     3,
     {"INSERT INTO claimd.exclusive (key, job_id, fence) VALUES ('k', 3, 7)"}},
    {"held_by_nobody",
     "inv.S18",
     1,
     {"INSERT INTO claimd.slot (queue, n, job_id, fence) VALUES ('default', 1, 1, 1)",
      "UPDATE claimd.job_history SET finalized_at = now() - interval '61 s'"}},
    {"unique_twice",
     "inv.S21",
     5,
     {"SELECT claimd.enqueue('many', unique_key => 'u', scheduled_at => now() + interval '1 h')",
      "INSERT INTO claimd.job (kind, unique_key, flags, scheduled_at) VALUES ('many', 'u', 1, "
      "now() "
      "+ interval '1 h')"}},
    {"batch_untold",
     "inv.S22",
     3,
     {"SELECT claimd.batch_add(claimd.batch_open(), 3)",
      "UPDATE claimd.batch_job SET state = 'completed'"}},
    {"batch_untold",
     "inv.S22",
     3,
     {"SELECT claimd.batch_add(claimd.batch_open(), 3)", "UPDATE claimd.job SET flags = 0"}},
    {"batch_untold",
     "inv.S22",
     1,
     {"INSERT INTO claimd.batch (name) VALUES ('')",
      "INSERT INTO claimd.batch_job (batch_id, job_id) VALUES (1, 1)"}},
    {"waits_for_nobody",
     "inv.S23",
     3,
     {"UPDATE claimd.job SET scheduled_at = claimd.job_waits(), flags = 32 WHERE id = 3"}},
    {"waits_for_nobody",
     "inv.S23",
     1,
     {"INSERT INTO claimd.job_wait VALUES (1, now(), 'run')",
      "INSERT INTO claimd.job_wake VALUES (1)"}},
    {"waits_for_nobody",
     "inv.S23",
     3,
     {"SELECT claimd.after(3, '{2}')", "UPDATE claimd.job SET flags = 0 WHERE id = 2"}},
    {"waits_for_nobody",
     "inv.S23",
     3,
     {"SELECT claimd.after(3, '{1}')", "DELETE FROM claimd.job_wake"}},
    {"map_again",
     "inv.S25",
     4,
     {A_MAP,
      "WITH done AS (INSERT INTO claimd.map_done (map_id, n, key, ended_at, attempts, state) "
      "VALUES (1, 0, 'a', now(), 1, 'completed')) UPDATE claimd.map_count SET completed = 1"}},
    {"map_miscounted", "inv.S25", 0, {A_MAP, "UPDATE claimd.map_count SET failed = 1"}},
    {"flags", "inv.S24", 3, {"UPDATE claimd.job SET flags = 1 WHERE id = 3"}},
    {"flags", "inv.S24", 3, {"UPDATE claimd.job SET flags = 2 WHERE id = 3"}},
    {"flags",
     "inv.S24",
     3,
     {"SELECT claimd.after(3, '{2}')", "UPDATE claimd.job SET flags = 0 WHERE id = 3"}},
    {"flags",
     "inv.S24",
     2,
     {"SELECT claimd.edit(2, '{\"args\": 1}', apply => 'next')",
      "UPDATE claimd.job SET flags = 0 WHERE id = 2"}},
    {"crashes", "inv.L5", 2, {"UPDATE claimd.job SET crashes = 4 WHERE id = 2"}},
    {"unfed",
     "inv.L1",
     3,
     {"UPDATE claimd.job SET scheduled_at = now() - interval '2 h', created_at = now() - interval "
      "'2 h' WHERE id = 3"}},
};

/* Everything with flags, keys, batches and predecessors, in a correct state. */
static const char *const sound[] = {
    "SELECT claimd.enqueue('many', unique_key => 'u')",
    "SELECT claimd.enqueue('many', exclusive_key => 'e')",
    "SELECT claimd.batch_add(claimd.batch_open(), 3)",
    "SELECT claimd.after(claimd.enqueue('many'), '{1,2,3}', 'hold')",
    "SELECT claimd.edit(2, '{\"args\": 1}', apply => 'next')",
    "SELECT claimd.claim_limited('{5}', " WORKER ", '{many}', '{}')",
    "SELECT claimd.cancel(3)",
    "SELECT claimd.release_jobs()",
    "SELECT claimd.retry(3)",
    A_MAP,
};

START_TEST(whatever_a_job_may_have_is_no_violation_of_its_own)
{
    given_good_jobs();
    for (size_t i = 0; i < ARRAY_COUNT(sound); i++) {
        sql_run(db, "%s", sound[i]);
        ck_assert_msg(verify_json() == 0, "%s: %s", sound[i], ctl_text());
    }
}
END_TEST

START_TEST(a_planted_violation_is_named_with_its_job_and_rule)
{
    given_good_jobs();
    for (size_t i = 0; i < 2 && planted[_i].sql[i] != NULL; i++) {
        sql_run(db, "%s", planted[_i].sql[i]);
    }
    ck_assert_msg(verify_json() == 1, "%s", ctl_text());
    json_t *root = ctl_json();
    json_t *found = json_object_get(root, "violations");
    ck_assert_msg(json_array_size(found) == 1, "%s: %s", planted[_i].check, ctl_text());
    json_t *row = json_array_get(found, 0);
    ck_assert_str_eq(json_string_value(json_object_get(row, "check")), planted[_i].check);
    ck_assert_str_eq(json_string_value(json_object_get(row, "rule")), planted[_i].rule);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "job")), planted[_i].job);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("db", "verify"), 1);
    assert_says(planted[_i].check);
    assert_says("claimctl: 1 violation");
}
END_TEST

#define DUE_LONG_AGO                                                                              \
    "UPDATE claimd.job SET scheduled_at = now() - interval '2 h', created_at = now() - interval " \
    "'2 h' WHERE id = 3"

static void push_hint(const char *id)
{
    struct err err = {0};
    autobuf struct buf out = BUF_INIT((size_t)1 << 16);
    const char *const words[] = {"ZADD", "claimd:hints:default", "40001000000000", id, NULL};
    ck_assert_msg(redis_server_ask(&node, words, &out, &err) == STATUS_OK, "%s", err.msg);
}

START_TEST(a_due_job_with_a_hint_is_no_violation)
{
    given_good_jobs();
    sql_run(db, DUE_LONG_AGO);
    push_hint("3");
    ck_assert_msg(verify_json() == 0, "%s", ctl_text());
}
END_TEST

START_TEST(L9_a_due_job_beside_an_idle_worker_is_a_warning_and_exit_0)
{
    given_good_jobs();
    sql_run(db, DUE_LONG_AGO);
    push_hint("3");
    sql_run(db, "UPDATE claimd.worker SET spare_least = 2, spare_since = now() - interval '61 s'");
    ck_assert_msg(verify_json() == 0, "%s", ctl_text());
    json_t *root = ctl_json();
    json_t *row = json_array_get(json_object_get(root, "warnings"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(row, "check")), "idle_beside_due");
    ck_assert_str_eq(json_string_value(json_object_get(row, "rule")), "inv.L9");
    ck_assert_int_eq(json_integer_value(json_object_get(row, "job")), 3);
    json_decref(root);
    sql_run(db, "UPDATE claimd.worker SET spare_since = now() - interval '50 s'");
    ck_assert_int_eq(verify_json(), 0);
    root = ctl_json();
    ck_assert_uint_eq(json_array_size(json_object_get(root, "warnings")), 0);
    json_decref(root);
}
END_TEST

START_TEST(a_due_job_that_nobody_serves_or_whose_queue_is_paused_is_none)
{
    given_good_jobs();
    sql_run(db, DUE_LONG_AGO);
    sql_run(db, "INSERT INTO claimd.queue (name, paused) VALUES ('default', true)");
    ck_assert_msg(verify_json() == 0, "%s", ctl_text());
    sql_run(db, "UPDATE claimd.queue SET paused = false");
    sql_run(db, "UPDATE claimd.worker SET kinds = '{once}'");
    ck_assert_msg(verify_json() == 0, "%s", ctl_text());
}
END_TEST

START_TEST(without_redis_a_suspect_is_neither_well_nor_broken_and_exit_3)
{
    given_good_jobs();
    redis_server_stop(&node);
    ck_assert_int_eq(ctl_exit("db", "verify"), 0); /* without suspects, Redis is not asked */
    sql_run(db, DUE_LONG_AGO);
    ck_assert_int_eq(ctl_exit("db", "verify"), 3);
    assert_says("unknown");
    assert_says("hints.nodes: no node answers");
}
END_TEST

START_TEST(since_and_after_leave_things_out)
{
    given_good_jobs();
    sql_run(db, "INSERT INTO claimd.job_history (" HISTORY_COLUMNS ") SELECT " HISTORY_COLUMNS
                " FROM claimd.job_history");
    sql_run(db, "UPDATE claimd.job SET timeout = '1 s', attempted_at = now() - interval '62 s', "
                "scheduled_at = now() - interval '2 h' WHERE id = 2");
    ck_assert_int_eq(ctl_exit("db", "verify"), 1);
    assert_says("claimctl: 2 violations");
    ck_assert_int_eq(ctl_exit("db", "verify", "--since", "0s"), 1);
    assert_says("claimctl: 1 violation\n");
    ck_assert_int_eq(ctl_exit("db", "verify", "--since", "0s", "--after", "1h"), 0);
    ck_assert_int_eq(ctl_exit("db", "verify", "--after", "2d"), 2);
    assert_says("--after: '2d' is not allowed; allowed: 0s to 1d");
}
END_TEST

static int psql_file(struct buf *out)
{
    char path[SERVER_PATH_MAX];
    struct err err = {0};
    int code = -1;
    const char *const argv[] = {"psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", ctl.conninfo,
                                "-f",   path,    NULL};
    (void)snprintf(path, sizeof path, "%s/sql/check.sql", getenv("CLAIMD_SOURCE_DIR"));
    buf_reset(out);
    enum status st = program_run(argv, NULL, LIMIT_US, out, &code, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    return code;
}

START_TEST(psql_runs_the_file_and_prints_violations_alone_as_a_reader_too)
{
    autobuf struct buf out = BUF_INIT((size_t)1 << 16);
    given_good_jobs();
    ck_assert_int_eq(psql_file(&out), 0);
    ck_assert_msg(out.len == 0, "%s", buf_at(&out));
    sql_run(db, "UPDATE claimd.job SET fence = 1 WHERE id = 2");
    sql_run(db, "CREATE ROLE verify_reader LOGIN IN ROLE claimd_reader");
    size_t len = strlen(ctl.conninfo);
    (void)snprintf(ctl.conninfo + len, sizeof ctl.conninfo - len, " user=verify_reader");
    ck_assert_int_eq(psql_file(&out), 0);
    ck_assert_str_eq(buf_at(&out), "fence_twice|inv.S1|1|fence 1 is also of job 2\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl verify");
    TCase *tests = tcase_create("verify");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, whatever_a_job_may_have_is_no_violation_of_its_own);
    tcase_add_test(tests, what_is_well_is_exit_0_and_every_check_is_told);
    tcase_add_loop_test(tests, a_planted_violation_is_named_with_its_job_and_rule, 0,
                        ARRAY_COUNT(planted));
    tcase_add_test(tests, a_due_job_with_a_hint_is_no_violation);
    tcase_add_test(tests, L9_a_due_job_beside_an_idle_worker_is_a_warning_and_exit_0);
    tcase_add_test(tests, a_due_job_that_nobody_serves_or_whose_queue_is_paused_is_none);
    tcase_add_test(tests, without_redis_a_suspect_is_neither_well_nor_broken_and_exit_3);
    tcase_add_test(tests, since_and_after_leave_things_out);
    tcase_add_test(tests, psql_runs_the_file_and_prints_violations_alone_as_a_reader_too);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
