/* SPDX-License-Identifier: Apache-2.0
 *
 * The SQL functions with which operators change jobs. */
#include "sql_db.h"

#include <stdio.h>

static int64_t number(const char *sql)
{
    return sql_number(db, "%s", sql);
}

/* Adds a finished job, as its worker leaves it; returns its id. */
static int64_t finished(const char *state)
{
    int64_t id = number("SELECT claimd.enqueue('a')::text");
    sql_run(db, "SELECT claimd.cancel(max(id)) FROM claimd.job");
    sql_run(db, "UPDATE claimd.job_history SET state = '%s' WHERE id = %lld", state, (long long)id);
    return id;
}

#define WORKER "'00000000-0000-0000-0000-0000000000aa'"

/* ---- pause ---- */

START_TEST(queues_and_kinds_are_paused_once_and_resumed_once)
{
    sql_run(db, "INSERT INTO claimd.kind (name) VALUES ('a')");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.pause_queue('q.1')::text"), "true");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.pause_queue('q.1')::text"), "false");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.queue WHERE paused"), 1);
    ck_assert_str_eq(sql_text(db, "SELECT claimd.resume_queue('q.1')::text"), "true");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.resume_queue('q.1')::text"), "false");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.resume_queue('nobody')::text"), "false");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.pause_kind('a')::text"), "true");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.pause_kind('a')::text"), "false");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.resume_kind('a')::text"), "true");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.resume_kind('a')::text"), "false");
    ASSERT_REFUSED(db, "SELECT claimd.limit_queue('No', 1)", "CL002", "queue: must match");
    ASSERT_REFUSED(db, "SELECT claimd.limit_key('', 2)", "CL002", "key: must have 1 to 512");
    ASSERT_REFUSED(db, "SELECT claimd.limit_key(NULL, 2)", "CL002", "key: must have 1 to 512");
    ASSERT_REFUSED(db, "SELECT claimd.limit_key('k', 0)", "CL002", "max_running: must be 1 to");
    ASSERT_REFUSED(db, "SELECT claimd.limit_key('k', 1001)", "CL002", "max_running: must be");
    ASSERT_REFUSED(db, "SELECT claimd.limit_rate('No', 1)", "CL002", "queue: must match");
    ASSERT_REFUSED(db, "SELECT claimd.limit_rate('q', 0)", "CL002", "starts: must be 1 to");
    ASSERT_REFUSED(db, "SELECT claimd.limit_rate('q', 1, NULL)", "CL002", "per: must be");
    ASSERT_REFUSED(db, "SELECT claimd.limit_rate('q', 1, '0')", "CL002", "per: must be");
    ASSERT_REFUSED(db, "SELECT claimd.limit_key_rate('k', 1, '0')", "CL002", "per: must be");
    ASSERT_REFUSED(db, "SELECT claimd.limit_key_rate('', 1)", "CL002", "key: must have 1 to 512");
    ASSERT_REFUSED(db, "SELECT claimd.limit_key_rate('k', 100001)", "CL002", "starts: must be");
    ASSERT_REFUSED(db, "SELECT claimd.limit_key_rate('k', 1, '32 d')", "CL002", "per: must be");
    ASSERT_REFUSED(db, "SELECT claimd.limit_queue(NULL, 1)", "CL002", "queue: must match");
    ASSERT_REFUSED(db, "SELECT claimd.limit_queue('q', 0)", "CL002", "max_running: must be 1 to");
    ASSERT_REFUSED(db, "SELECT claimd.limit_queue('q', 10001)", "CL002", "max_running: must be");
    ASSERT_REFUSED(db, "SELECT claimd.weigh_queue('No', 1)", "CL002", "queue: must match");
    ASSERT_REFUSED(db, "SELECT claimd.weigh_queue(NULL, 1)", "CL002", "queue: must match");
    ASSERT_REFUSED(db, "SELECT claimd.weigh_queue('q', 0)", "CL002", "weight: must be 1 to 100");
    ASSERT_REFUSED(db, "SELECT claimd.weigh_queue('q', 101)", "CL002", "weight: must be 1 to 100");
    ASSERT_REFUSED(db, "SELECT claimd.pause_queue('No')", "CL002", "queue: must match");
    ASSERT_REFUSED(db, "SELECT claimd.pause_queue(NULL)", "CL002", "queue: must match");
    ASSERT_REFUSED(db, "SELECT claimd.resume_queue('')", "CL002", "queue: must match");
    ASSERT_REFUSED(db, "SELECT claimd.pause_kind('B')", "CL002", "kind: must match");
    ASSERT_REFUSED(db, "SELECT claimd.resume_kind(NULL)", "CL002", "kind: must match");
}
END_TEST

START_TEST(feat_B29_all_queues_are_paused_and_resumed)
{
    static const char paused[] = "SELECT string_agg(q, ' ') FROM claimd.pause_all_queues() AS q";
    sql_run(
        db,
        "SELECT claimd.enqueue('a', queue => q)::text FROM unnest('{q1,q2,q2,q3}'::text[]) AS q");
    sql_run(db, "SELECT claimd.limit_queue('limited', 5)");
    sql_run(db, "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, "
                "token_prefix, version, queues) VALUES (" WORKER
                ", now() + interval '1 h', 1, 1, 'h', '/s', 'p', '1', '{q1,served}')");
    sql_run(db, "SELECT claimd.pause_queue('q3')::text");
    ck_assert_str_eq(sql_text(db, "%s", paused), "limited q1 q2 served");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.pause_all_queues()"), 0);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.queue WHERE paused"), 5);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.resume_all_queues()"), 5);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.queue WHERE paused"), 0);
}
END_TEST

START_TEST(a_queue_gets_a_weight_and_loses_it_and_its_other_settings_stay)
{
    sql_run(db, "SELECT claimd.limit_open('q', 7)::text");
    sql_run(db, "SELECT claimd.weigh_queue('q', 9)::text");
    ck_assert_int_eq(number("SELECT (max_open * 100 + weight)::text FROM claimd.queue"), 709);
    sql_run(db, "SELECT claimd.weigh_queue('q', 100)::text");
    ck_assert_int_eq(number("SELECT weight::text FROM claimd.queue"), 100);
    sql_run(db, "SELECT claimd.weigh_queue('q', NULL)::text");
    ck_assert_int_eq(number("SELECT max_open::text FROM claimd.queue WHERE weight IS NULL"), 7);
}
END_TEST

START_TEST(a_kind_is_not_paused_while_programs_may_work_that_would_go_on_with_it)
{
    sql_run(db, "INSERT INTO claimd.kind (name) VALUES ('a')");
    sql_run(db, "UPDATE claimd.cluster SET oldest_program = 1");
    ASSERT_REFUSED(db, "SELECT claimd.pause_kind('a')", "CL003", "claimctl db finish");
    sql_run(db, "SELECT claimd.finish_upgrade()::text");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.pause_kind('a')::text"), "true");
}
END_TEST

START_TEST(a_worker_is_asked_only_if_it_hears)
{
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(" WORKER ", 'quiet')", "CL003", "not found");
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(NULL, 'quiet')", "CL003", "not found");
    sql_run(db, "UPDATE claimd.cluster SET oldest_program = 1");
    sql_run(db, "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, "
                "token_prefix, version, queues, built_for) VALUES (" WORKER
                ", now() + interval '1 h', 1, 1, 'h', '/s', 'p', '1', '{default}', 1)");
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(" WORKER ", 'stop')", "CL002", "what: must be");
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(" WORKER ", 'quiet')", "CL003", "older release");
    sql_run(db, "UPDATE claimd.worker SET built_for = (SELECT schema_version FROM claimd.cluster)");
    sql_run(db, "SELECT claimd.ask_worker(" WORKER ", 'quiet')");
    ck_assert_str_eq(sql_text(db, "SELECT asked FROM claimd.worker"), "quiet");
    sql_run(db, "SELECT claimd.ask_worker(" WORKER ", 'resume')");
    sql_run(db, "SELECT claimd.ask_worker(" WORKER ", 'resume')");
    ck_assert_str_eq(sql_text(db, "SELECT asked FROM claimd.worker"), "");
    sql_run(db, "UPDATE claimd.worker SET quiet = true");
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(" WORKER ", 'resume')", "CL003", "by a signal");
    sql_run(db, "UPDATE claimd.worker SET quiet = false, built_for = 16");
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(" WORKER ", 'resume')", "CL003", "older release");
    sql_run(db, "UPDATE claimd.worker SET built_for = (SELECT schema_version FROM claimd.cluster)");
    sql_run(db, "SELECT claimd.ask_worker(" WORKER ", 'drain')");
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(" WORKER ", 'resume')", "CL003", "asked to drain");
    sql_run(db, "SELECT claimd.ask_worker(" WORKER ", 'quiet')"); /* already draining */
    ck_assert_str_eq(sql_text(db, "SELECT asked FROM claimd.worker"), "drain");
    sql_run(db, "UPDATE claimd.worker SET stale_at = now()");
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(" WORKER ", 'quiet')", "CL003", "is silent");
    sql_run(db, "UPDATE claimd.worker SET stopped = true");
    ASSERT_REFUSED(db, "SELECT claimd.ask_worker(" WORKER ", 'quiet')", "CL003", "has ended");
}
END_TEST

/* ---- delete ---- */

START_TEST(a_deleted_job_leaves_nothing_behind)
{
    (void)finished("discarded");
    sql_run(db, "SELECT claimd.retry(1)::text");
    ASSERT_REFUSED(db, "SELECT claimd.delete_job(1)", "CL003", "job 1 is available: only a");
    sql_run(db, "SELECT claimd.cancel(1)");
    sql_run(db, "INSERT INTO claimd.job_attempt (job_id, fence, attempt, worker_id, started_at, "
                "outcome) VALUES (1, 1, 1, " WORKER ", now(), 'failed')");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.delete_job(1)"), "cancelled");
    ck_assert_int_eq(number("SELECT ((SELECT count(*) FROM claimd.job_history) + "
                            "(SELECT count(*) FROM claimd.job_attempt))::text"),
                     0);
    ASSERT_REFUSED(db, "SELECT claimd.delete_job(1)", "CL003", "job 1 not found");
    ASSERT_REFUSED(db, "SELECT claimd.delete_job(NULL)", "CL002", "id: must not be NULL");
}
END_TEST

START_TEST(a_paused_kind_holds_up_no_other_job_of_its_key)
{
    sql_run(db, "INSERT INTO claimd.kind (name) VALUES ('a'), ('b')");
    sql_run(db, "SELECT claimd.enqueue('a', exclusive_key => 'k')::text");
    sql_run(db, "SELECT claimd.enqueue('b', exclusive_key => 'k')::text");
    ck_assert_int_eq(number("SELECT id::text FROM claimd.next_of_keys('{k}')"), 1);
    sql_run(db, "SELECT claimd.pause_kind('a')::text");
    ck_assert_int_eq(number("SELECT id::text FROM claimd.next_of_keys('{k}')"), 2);
    sql_run(db, "SELECT claimd.pause_queue('default')::text");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.next_of_keys('{k}')"), 0);
}
END_TEST

START_TEST(what_is_set_of_a_kind_stays_until_it_is_taken_back)
{
    sql_run(db, "INSERT INTO claimd.kind (name, max_attempts, timeout) VALUES ('a', 7, '1 h')");
    sql_run(
        db,
        "SELECT claimd.set_kind('a', '{\"max_attempts\": 3, \"backoff\": \"fixed:1s\"}')::text");
    sql_run(db, "SELECT claimd.set_kind('a', '{\"max_attempts\": 4}')::text");
    sql_run(db, "SELECT claimd.set_kind('a', '{\"keep_log\": true}')::text");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.kind WHERE keep_log"), 1);
    sql_run(db, "SELECT claimd.set_kind('a', '{\"keep_log\": null}')::text");
    ck_assert_int_eq(
        number("SELECT count(*)::text FROM claimd.kind WHERE max_attempts = 4 AND NOT "
               "keep_log AND backoff = 'fixed:1s' AND timeout = '1 h' AND set_by_hand = "
               "'{\"max_attempts\": 4, \"backoff\": \"fixed:1s\"}'"),
        1);
    sql_run(db, "SELECT claimd.set_kind('a', '{\"max_attempts\": null, \"backoff\": null}')::text");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.kind WHERE max_attempts = 7 AND "
                            "backoff IS NULL AND set_by_hand = '{}' AND of_plugin = '{}'"),
                     1);
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('B', '{\"timeout\": 5}')", "CL002", "kind: must");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('a', '{}')", "CL002",
                   "patch: must be a JSON object");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('a', '{\"plugin\": \"p\"}')", "CL002",
                   "patch.plugin: unknown, must be one of max_attempts");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('a', '{\"timout\": 5}')", "CL002",
                   "retain; did you mean 'timeout'?");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('a', '{\"timeout\": \"soon\"}')", "CL002",
                   "patch.timeout: must be of type interval");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('a', '{\"timeout\": \"0 s\"}')", "CL002",
                   "patch.timeout: must be more than 0");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('a', '{\"backoff\": \"soon\"}')", "CL002",
                   "patch.backoff: must be exponential");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('a', '{\"keep_log\": \"some\"}')", "CL002",
                   "patch.keep_log: must be of type boolean");
    ASSERT_REFUSED(db, "SELECT claimd.set_kind('a', '{\"max_crashes\": 0}')", "CL002",
                   "patch.max_crashes: must be 1");
}
END_TEST

/* ---- edit ---- */

START_TEST(an_edit_changes_what_it_names_and_is_recorded)
{
    sql_run(db, "SELECT claimd.enqueue('a', '{\"n\": 1}', tags => '{x}', scheduled_at => now() + "
                "interval '1 h')::text");
    ck_assert_int_eq(number("SELECT claimd.edit(1, '{\"args\": {\"n\": 2}, \"priority\": 7, "
                            "\"max_attempts\": 5, \"timeout\": \"10 s\", \"metadata\": {}}')"
                            "::text"),
                     2);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job WHERE args = '{\"n\": 2}' AND "
                            "priority = 7 AND max_attempts = 5 AND timeout = '10 s' AND metadata = "
                            "'{}' AND tags = '{x}' AND queue = 'default' AND version = 2 AND "
                            "scheduled_at > now() + interval '59 min'"),
                     1);
    ck_assert_int_eq(number("SELECT claimd.edit(1, '{\"tags\": [\"y\", \"z\"], \"timeout\": null, "
                            "\"max_attempts\": null}', expected_version => 2)::text"),
                     3);
    ck_assert_int_eq(
        number("SELECT count(*)::text FROM claimd.job WHERE tags = '{y,z}' AND timeout "
               "IS NULL AND max_attempts IS NULL AND args = '{\"n\": 2}'"),
        1);
    ck_assert_int_eq(
        number("SELECT count(*)::text FROM claimd.job_edit WHERE job_id = 1 AND version "
               "= 3 AND edited_by = session_user AND before = '{\"tags\": [\"x\"], "
               "\"timeout\": \"00:00:10\", \"max_attempts\": 5}' AND after = "
               "'{\"tags\": [\"y\", \"z\"], \"timeout\": null, "
               "\"max_attempts\": null}'"),
        1);
}
END_TEST

START_TEST(a_job_that_gets_another_lane_or_time_is_due_like_a_new_one)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text FROM generate_series(1, 3)");
    sql_run(db, "SELECT claimd.enqueue('a', scheduled_at => now() + interval '1 h')::text");
    sql_run(db,
            "CREATE TABLE before AS SELECT id, ready_at, clock_timestamp() AS at FROM claimd.job");
    sql_run(db, "SELECT claimd.edit(1, '{\"queue\": \"other\"}')::text");
    sql_run(db, "SELECT claimd.edit(2, '{\"priority\": 1}')::text");
    sql_run(db, "SELECT claimd.edit(3, '{\"priority\": 4, \"args\": [3]}')::text");
    sql_run(db, "SELECT claimd.edit(4, '{\"scheduled_at\": \"2001-01-01 00:00Z\"}')::text");
    ck_assert_int_eq(
        number("SELECT count(*)::text FROM claimd.job j JOIN before b USING (id) WHERE "
               "id IN (1, 2, 4) AND j.ready_at >= b.at"),
        3);
    ck_assert_int_eq(
        number("SELECT count(*)::text FROM claimd.job j JOIN before b USING (id) WHERE "
               "id = 3 AND j.ready_at = b.ready_at"),
        1); /* it has kept its place */
    sql_run(db, "SELECT claimd.edit(1, '{\"scheduled_at\": \"2100-01-01 00:00Z\"}')::text");
    sql_run(db, "SELECT claimd.edit(1, '{\"priority\": 2}')::text");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job WHERE id = 1 AND scheduled_at = "
                            "'2100-01-01 00:00Z'"),
                     1);
    sql_run(db, "SELECT claimd.edit(1, '{\"scheduled_at\": null}')::text");
    ck_assert_int_eq(
        number("SELECT count(*)::text FROM claimd.job WHERE id = 1 AND scheduled_at <= "
               "clock_timestamp()"),
        1);
}
END_TEST

static const struct {
    const char *patch;
    const char *message;
} bad_patches[] = {
    {"NULL", "patch: must be a JSON object with at least one of args"},
    {"'{}'", "patch: must be a JSON object"},
    {"'[1]'", "patch: must be a JSON object"},
    {"'{\"kind\": \"b\"}'", "patch.kind: unknown, must be one of args"},
    {"'{\"agrs\": 1}'", "; did you mean 'args'?"},
    {"'{\"priority\": 10}'", "patch.priority: must be 0 (first) to 9"},
    {"'{\"priority\": null}'", "patch.priority: must be 0 (first) to 9"},
    {"'{\"priority\": \"high\"}'", "patch.priority: must be of type integer"},
    {"'{\"queue\": \"Q\"}'", "patch.queue: must match"},
    {"'{\"queue\": null}'", "patch.queue: must match"},
    {"'{\"scheduled_at\": \"infinity\"}'", "patch.scheduled_at: must lie before"},
    {"'{\"scheduled_at\": \"soon\"}'", "patch.scheduled_at: must be of type"},
    {"'{\"max_attempts\": 0}'", "patch.max_attempts: must be 1 or more"},
    {"'{\"timeout\": \"-1 s\"}'", "patch.timeout: must be more than 0"},
    {"'{\"timeout\": \"later\"}'", "patch.timeout: must be of type interval"},
    {"'{\"tags\": \"x\"}'", "patch.tags: must be of type text[]"},
    {"'{\"tags\": [\"\"]}'", "patch.tags: must be a list of texts, none of them empty"},
    {"jsonb_build_object('args', repeat(md5('x'), 40000))", "patch.args: at most 1048576"},
    {"jsonb_build_object('metadata', repeat(md5('x'), 4000))", "patch.metadata: at most 65536"},
};

START_TEST(an_edit_names_what_is_wrong_and_changes_nothing)
{
    char sql[256];
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    for (size_t i = 0; i < ARRAY_COUNT(bad_patches); i++) {
        (void)snprintf(sql, sizeof sql, "SELECT claimd.edit(1, %s)", bad_patches[i].patch);
        ASSERT_REFUSED(db, sql, "CL002", bad_patches[i].message);
    }
    ASSERT_REFUSED(db, "SELECT claimd.edit(NULL, '{\"args\": 1}')", "CL002",
                   "id: must not be NULL");
    ck_assert_int_eq(number("SELECT version::text FROM claimd.job"), 1);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job_edit"), 0);
}
END_TEST

#define EDIT "SELECT claimd.edit(1, '{\"args\": 1}'"

START_TEST(an_edit_is_refused_where_the_state_or_the_version_forbids_it)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    sql_run(db, EDIT ")::text");
    ASSERT_REFUSED(db, EDIT ", 1)", "CL003", "job 1 has version 2, not 1: look at it again");
    sql_run(db, "UPDATE claimd.job SET attempt = 3");
    ASSERT_REFUSED(db, "SELECT claimd.edit(1, '{\"max_attempts\": 3}')", "CL003",
                   "job 1 has had 3 attempts: max_attempts must be more");
    sql_run(db, "UPDATE claimd.cluster SET oldest_program = 1");
    ASSERT_REFUSED(db, "SELECT claimd.edit(1, '{\"queue\": \"q\"}')", "CL003", "db finish");
    sql_run(db, "UPDATE claimd.job SET state = 'running'");
    ASSERT_REFUSED(db, EDIT ")", "CL003",
                   "job 1 is running: only a queued job can be edited, or its next");
    ASSERT_REFUSED(db, EDIT ", apply => 'soon')", "CL002", "apply: must be now or next");
    sql_run(db, "UPDATE claimd.job SET state = 'available'");
    sql_run(db, "SELECT claimd.cancel(1)");
    ASSERT_REFUSED(db, EDIT ")", "CL003", "job 1 is cancelled already");
    ASSERT_REFUSED(db, "SELECT claimd.edit(7, '{\"args\": 1}')", "CL003", "job 7 not found");
    sql_run(db, "SELECT claimd.retry(1)::text"); /* version numbers continue */
    ck_assert_int_eq(number(EDIT ", 2)::text"), 3);
    sql_run(db, "SELECT claimd.cancel(1)");
    sql_run(db, "SELECT claimd.delete_job(1)");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job_edit"), 0);
}
END_TEST

#define RUN_1                                                                             \
    "UPDATE claimd.job SET state = 'running', attempt = attempt + 1, fence = fence + 1, " \
    "worker_id "                                                                          \
    "= gen_random_uuid(), attempted_at = clock_timestamp() WHERE id = 1"
#define CLAIM_1 "SELECT claimd.claim_limited('{1}', gen_random_uuid(), '{a}', '{}') IS NOT NULL"

START_TEST(A4_an_edit_of_a_running_job_is_kept_for_its_next_attempt)
{
    sql_run(db, "SELECT claimd.enqueue('a', tags => '{x}')::text");
    sql_run(db, RUN_1);
    ASSERT_REFUSED(db, "SELECT claimd.edit(1, '{\"max_attempts\": 1}', apply => 'next')", "CL003",
                   "job 1 has had 1 attempts");
    ck_assert_int_eq(number("SELECT claimd.edit(1, '{\"args\": 1, \"timeout\": \"5 s\"}', 1, "
                            "'next')::text"),
                     2);
    ck_assert_int_eq(
        number("SELECT claimd.edit(1, '{\"args\": 2, \"tags\": null}', 2, 'next')::text"), 3);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job WHERE args = '{}' AND tags IS "
                            "NOT NULL AND flags = 64"),
                     1);
    sql_run(db, "UPDATE claimd.job SET state = 'available'");
    sql_run(db, CLAIM_1);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job WHERE args = '2' AND tags IS "
                            "NULL AND timeout = '5 s' AND version = 3 AND flags = 0 AND state = "
                            "'running' AND attempt = 2"),
                     1);
    ck_assert_int_eq(number("SELECT count(applied_at)::text FROM claimd.job_edit"), 2);
}
END_TEST

/* The trigger stands for another session that commits while the claim applies other edits. */
START_TEST(A4_a_job_that_becomes_available_during_a_claim_is_not_claimed_without_its_kept_edit)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text FROM generate_series(1, 2)");
    sql_run(db, "UPDATE claimd.job SET state = 'running', attempt = 1, fence = id, worker_id = "
                "gen_random_uuid(), attempted_at = clock_timestamp()");
    sql_run(db, "SELECT claimd.edit(id, '{\"args\": 2}', apply => 'next')::text FROM claimd.job");
    sql_run(db, "UPDATE claimd.job SET state = 'available' WHERE id = 1");
    sql_run(
        db,
        "CREATE FUNCTION gives_back() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE claimd.job "
        "SET state = ''available'' WHERE id = 2 AND args <> ''2''; RETURN NULL; END'");
    sql_run(
        db,
        "CREATE TRIGGER gives_back AFTER UPDATE ON claimd.job_edit EXECUTE FUNCTION gives_back()");
    sql_run(db, "SELECT claimd.claim_limited('{1,2}', gen_random_uuid(), '{a}', '{}')");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job WHERE state = 'running' AND args"
                            " <> '2'"),
                     0);
}
END_TEST

START_TEST(A4_a_kept_edit_comes_before_one_of_the_queued_job_and_ends_with_it)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    sql_run(db, RUN_1);
    sql_run(db, "SELECT claimd.edit(1, '{\"args\": 1, \"priority\": 1}', apply => 'next')::text");
    sql_run(db, "UPDATE claimd.job SET state = 'available'");
    sql_run(db, EDIT ")::text");
    sql_run(db, "SELECT claimd.edit(1, '{\"args\": 3}', apply => 'next')::text");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job WHERE args = '3' AND priority = "
                            "1 AND version = 4 AND flags = 0"),
                     1);
    sql_run(db, RUN_1);
    sql_run(db, "SELECT claimd.edit(1, '{\"args\": 4}', apply => 'next')::text");
    sql_run(db, "SELECT claimd.complete_in_tx(1, 2)::text");
    ck_assert_int_eq(number("SELECT version::text FROM claimd.job_edit WHERE applied_at IS NULL"),
                     5);
    ck_assert_int_eq(number("SELECT claimd.retry(1, true)::text"), 1);
    sql_run(db, "UPDATE claimd.job SET flags = 64"); /* a stale flag */
    sql_run(db, CLAIM_1);
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job WHERE args = '3' AND flags = 0 "
                            "AND state = 'running'"),
                     1);
}
END_TEST

START_TEST(an_edit_gives_and_takes_a_key_and_a_backoff)
{
    sql_run(db, "SELECT claimd.enqueue('a', backoff => 'fixed:1s')::text");
    sql_run(db,
            "SELECT claimd.edit(1, '{\"exclusive_key\": \"m\", \"backoff\": \"fixed:5s\"}')::text");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job WHERE flags = 2 AND "
                            "exclusive_key = 'm' AND backoff = 'fixed:5s'"),
                     1);
    sql_run(db, "SELECT claimd.edit(1, '{\"exclusive_key\": null, \"backoff\": null}')::text");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.job WHERE flags = 0 AND "
                            "exclusive_key IS NULL AND backoff IS NULL"),
                     1);
    ASSERT_REFUSED(db, "SELECT claimd.edit(1, '{\"backoff\": \"soon\"}')", "CL002",
                   "patch.backoff: must be exponential");
    ASSERT_REFUSED(db, "SELECT claimd.edit(1, '{\"exclusive_key\": \"\"}')", "CL002",
                   "patch.exclusive_key: must have 1 to 512");
}
END_TEST

START_TEST(an_edit_gives_a_job_to_another_tenant_and_to_none)
{
    sql_run(db, "SELECT claimd.enqueue('a', share_key => 'anna')::text");
    sql_run(db, "CREATE TABLE before AS SELECT ready_at FROM claimd.job");
    sql_run(db, "SELECT claimd.edit(1, '{\"share_key\": \"bob\"}')::text");
    ck_assert_int_eq(
        number("SELECT count(*)::text FROM claimd.job, before b WHERE share_key = 'bob' "
               "AND share = claimd.share_of('bob') AND job.ready_at > b.ready_at"),
        1); /* as new in that lane, so that the feed finds it */
    sql_run(db, "SELECT claimd.edit(1, '{\"share_key\": null}')::text");
    ck_assert_int_eq(
        number("SELECT count(*)::text FROM claimd.job WHERE share_key IS NULL AND share = 0"), 1);
    ck_assert_int_eq(
        number("SELECT count(*)::text FROM claimd.job_edit WHERE version = 2 AND before "
               "= '{\"share_key\": \"anna\"}' AND after = '{\"share_key\": \"bob\"}'"),
        1);
    ASSERT_REFUSED(db, "SELECT claimd.edit(1, '{\"share_key\": \"\"}')", "CL002",
                   "patch.share_key: must have 1 to 512 bytes");
    ASSERT_REFUSED(db, "SELECT claimd.edit(1, '{\"share_key\": [1, 2], \"unique_key\": 1}')",
                   "CL002", "patch.unique_key: unknown, must be one of args");
}
END_TEST

START_TEST(B9_an_edit_of_the_time_of_a_job_that_waits_lets_it_wait)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    sql_run(db, "SELECT claimd.after(claimd.enqueue('a', unique_key => 'u'), '{1}')::text");
    sql_run(db, "SELECT claimd.edit(2, '{\"scheduled_at\": \"2100-01-01 00:00Z\"}')::text");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.jobs, claimd.job_wait w WHERE state "
                            "= 'waiting' AND w.scheduled_at = '2100-01-01 00:00Z'"),
                     1);
    ck_assert_int_eq(
        number("SELECT count(*)::text FROM claimd.job_edit WHERE after ->> "
               "'scheduled_at' LIKE '2%-01-01%' AND before ->> 'scheduled_at' NOT LIKE "
               "'2285%'"),
        1);
    sql_run(db, "SELECT claimd.enqueue('a', unique_key => 'u', on_conflict => 'reschedule')::text");
    ck_assert_int_eq(number("SELECT count(*)::text FROM claimd.jobs, claimd.job_wait w WHERE state "
                            "= 'waiting' AND w.scheduled_at <= clock_timestamp()"),
                     1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sql operate");
    TCase *tc = tcase_create("operate");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, queues_and_kinds_are_paused_once_and_resumed_once);
    tcase_add_test(tc, feat_B29_all_queues_are_paused_and_resumed);
    tcase_add_test(tc, a_queue_gets_a_weight_and_loses_it_and_its_other_settings_stay);
    tcase_add_test(tc, a_kind_is_not_paused_while_programs_may_work_that_would_go_on_with_it);
    tcase_add_test(tc, a_paused_kind_holds_up_no_other_job_of_its_key);
    tcase_add_test(tc, a_worker_is_asked_only_if_it_hears);
    tcase_add_test(tc, a_deleted_job_leaves_nothing_behind);
    tcase_add_test(tc, what_is_set_of_a_kind_stays_until_it_is_taken_back);
    tcase_add_test(tc, an_edit_changes_what_it_names_and_is_recorded);
    tcase_add_test(tc, a_job_that_gets_another_lane_or_time_is_due_like_a_new_one);
    tcase_add_test(tc, an_edit_names_what_is_wrong_and_changes_nothing);
    tcase_add_test(tc, an_edit_is_refused_where_the_state_or_the_version_forbids_it);
    tcase_add_test(tc, A4_an_edit_of_a_running_job_is_kept_for_its_next_attempt);
    tcase_add_test(
        tc, A4_a_job_that_becomes_available_during_a_claim_is_not_claimed_without_its_kept_edit);
    tcase_add_test(tc, A4_a_kept_edit_comes_before_one_of_the_queued_job_and_ends_with_it);
    tcase_add_test(tc, an_edit_gives_and_takes_a_key_and_a_backoff);
    tcase_add_test(tc, an_edit_gives_a_job_to_another_tenant_and_to_none);
    tcase_add_test(tc, B9_an_edit_of_the_time_of_a_job_that_waits_lets_it_wait);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
