/* SPDX-License-Identifier: Apache-2.0
 *
 * The rights of each of the five roles, and their limits (inv.P1, fault.J2). */
#include "sql/queries.h"
#include "support/pg_fixture.h"

#include <stdio.h>

static struct sql *owner;

static void setup(void)
{
    world_setup();
    owner = sql_open(world.conninfo);
    sql_run(owner, "SELECT claimd.enqueue('a')::text");
}

static void teardown(void)
{
    sql_close(owner);
    world_teardown();
}

static void must_do(const char *role, const char *const *statements, size_t count)
{
    struct sql *pg = sql_open(world.conninfo);
    sql_run(pg, "SET ROLE %s", role);
    for (size_t i = 0; i < count; i++) {
        sql_run(pg, "%s", statements[i]);
    }
    sql_close(pg);
}

static void must_not_do(const char *role, const char *const *statements, size_t count)
{
    struct sql *pg = sql_open(world.conninfo);
    sql_run(pg, "SET ROLE %s", role);
    for (size_t i = 0; i < count; i++) {
        const char *why = sql_refusal(pg, "%s", statements[i]);
        ck_assert_msg(strncmp(why, "42501", 5) == 0, "%s: %s: %s", role, statements[i], why);
    }
    sql_close(pg);
}

#define HISTORY_COLUMNS                                                                          \
    "id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, attempt, crashes, " \
    "generation, priority, share, queue, kind, args, max_attempts, timeout, tags, metadata"

/* Only the scheduler, of claimd's roles, may do these. */
static const char *const never[] = {
    "CREATE TABLE claimd.mine (x int)",
    "ALTER TABLE claimd.job ADD COLUMN mine int",
    "DROP TABLE claimd.job_history",
    "TRUNCATE claimd.job",
    "CREATE INDEX ON claimd.job (state)",
    "ALTER TABLE claimd.job DISABLE TRIGGER job_inserted",
    "UPDATE claimd.job SET args = '{}'",
    "UPDATE claimd.job SET kind = 'b'",
    "UPDATE claimd.job SET priority = 0",
    "UPDATE claimd.job SET max_attempts = 100",
    "UPDATE claimd.job SET timeout = '1 s'",
    "UPDATE claimd.job SET queue = 'b'",
    "UPDATE claimd.job SET created_at = now()",
    "UPDATE claimd.job SET generation = 1",
    "UPDATE claimd.job_history SET state = 'completed'",
    "DELETE FROM claimd.job_history",
    "UPDATE claimd.cluster SET schema_version = 0",
    "UPDATE claimd.cluster SET hungry = true",
    "SELECT setval('claimd.fence', 1)",
    "INSERT INTO claimd.job (kind, created_at) VALUES ('a', now())",
    "INSERT INTO claimd.job (kind, state) VALUES ('a', 'running')",
    "INSERT INTO claimd.job (kind, fence) VALUES ('a', 7)",
    "INSERT INTO claimd.job (kind, attempt) VALUES ('a', -7)",
    "COPY claimd.queue FROM PROGRAM 'id'",
    "COPY claimd.cluster TO '/tmp/claimd_role_test'",
    "SELECT pg_read_file('/etc/hostname')",
    "SELECT lo_import('/etc/hostname')::text",
    "CREATE ROLE mine",
};

START_TEST(P1_no_role_but_the_scheduler_may_do_these)
{
    static const char *const roles[] = {"claimd_worker", "claimd_producer", "claimd_reader",
                                        "claimd_admin"};
    for (size_t i = 0; i < ARRAY_COUNT(roles); i++) {
        must_not_do(roles[i], never, ARRAY_COUNT(never));
    }
    ck_assert_int_eq(sql_number(owner, "SELECT count(*)::text FROM claimd.job WHERE state = "
                                       "'available' AND args = '{}' AND kind = 'a'"),
                     1);
}
END_TEST

START_TEST(P1_the_worker_can_not_put_jobs_in)
{
    static const char *const statements[] = {
        "INSERT INTO claimd.job (kind) VALUES ('a')",
        "SELECT claimd.enqueue('a')::text",
        "SELECT claimd.cancel(1)",
        "SELECT claimd.ensure_days(1)::text",
        "SELECT claimd.trust_clock()::text",
        "UPDATE claimd.queue SET paused = false",
        "DELETE FROM claimd.worker",
        "DELETE FROM claimd.job_attempt",
    };
    must_not_do("claimd_worker", statements, ARRAY_COUNT(statements));
}
END_TEST

START_TEST(the_worker_can_claim_finish_and_store_heartbeats)
{
    static const char *const statements[] = {
        "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, "
        "token_prefix, version, queues) VALUES (gen_random_uuid(), now(), 1, 1, 'h', 'd', 't', "
        "'v', '{default}')",
        "UPDATE claimd.worker SET beat_at = now()",
        "INSERT INTO claimd.kind (name) VALUES ('a') ON CONFLICT (name) DO UPDATE SET version = "
        "'2'",
        "SELECT paused::text FROM claimd.queue",
        "UPDATE claimd.cluster SET t_max_us = 10, lock_nodes = 'x'",
        "SELECT id::text FROM claimd.job FOR UPDATE SKIP LOCKED",
        "UPDATE claimd.job SET state = 'running', attempt = attempt + 1, fence = "
        "nextval('claimd.fence'), worker_id = gen_random_uuid(), attempted_at = now()",
        "INSERT INTO claimd.job_live (id, fence) SELECT id, fence FROM claimd.job",
        "INSERT INTO claimd.job_attempt (job_id, fence, attempt, worker_id, started_at, outcome) "
        "SELECT id, fence, attempt, worker_id, attempted_at, 'failed' FROM claimd.job",
        "UPDATE claimd.job SET crashes = crashes + 1, scheduled_at = now() + interval '1 s'",
        "WITH gone AS (DELETE FROM claimd.job WHERE state = 'running' RETURNING *) INSERT INTO "
        "claimd.job_history (" HISTORY_COLUMNS ", state, result) SELECT " HISTORY_COLUMNS
        ", 'completed', '{}' FROM gone RETURNING fence::text",
        "DELETE FROM claimd.job_live",
    };
    must_do("claimd_worker", statements, ARRAY_COUNT(statements));
    ck_assert_int_eq(sql_number(owner, "SELECT count(*)::text FROM claimd.job_history"), 1);
}
END_TEST

START_TEST(the_producer_can_put_jobs_in_and_cancel_them)
{
    static const char *const statements[] = {
        "SELECT claimd.enqueue('b', '{\"n\": 1}', share_key => 'tenant')::text",
        "INSERT INTO claimd.job (kind, args, queue, priority, scheduled_at, max_attempts, timeout, "
        "tags, metadata) SELECT 'b', jsonb_build_object('n', g), 'bulk', 5, now(), 3, '1 min', "
        "'{t}', '{}' FROM generate_series(1, 10) g RETURNING id::text",
        "SELECT claimd.cancel(1)",
    };
    static const char *const refused[] = {
        "SELECT args::text FROM claimd.job",
        "SELECT count(*)::text FROM claimd.jobs",
        "DELETE FROM claimd.job",
        "UPDATE claimd.job SET state = 'running'",
        "SELECT nextval('claimd.fence')",
        "SELECT * FROM claimd.worker",
        "SELECT claimd.ensure_days()",
        "SELECT claimd.retry(1)",
        "SELECT claimd.pause_all_queues()",
        "SELECT claimd.set_queue('default', '{\"paused\": true}')",
        "SELECT claimd.resume_all_queues()",
        "SELECT claimd.retry_many('{1}')",
        "SELECT claimd.edit(1, '{}')",
        "INSERT INTO claimd.queue (name) VALUES ('a')",
    };
    must_do("claimd_producer", statements, ARRAY_COUNT(statements));
    must_not_do("claimd_producer", refused, ARRAY_COUNT(refused));
    ck_assert_int_eq(sql_number(owner, "SELECT count(*)::text FROM claimd.job"), 11);
}
END_TEST

START_TEST(who_may_put_a_job_in_may_set_what_claimctl_sets)
{
    const char *columns = strchr(SQL_ADMIN_COPY.sql, '(') + 1;
    ck_assert_int_eq(sql_number(owner,
                                "SELECT count(*)::text FROM unnest(string_to_array('%.*s', ', ')) "
                                "AS c, unnest('{claimd_admin,claimd_producer}'::text[]) AS r WHERE "
                                "NOT has_column_privilege(r, 'claimd.job', c, 'INSERT')",
                                (int)strcspn(columns, ")"), columns),
                     0);
}
END_TEST

START_TEST(the_reader_can_read_and_nothing_else)
{
    static const char *const statements[] = {
        "SELECT state FROM claimd.jobs",           "SELECT id::text FROM claimd.job",
        "SELECT id::text FROM claimd.job_history", "SELECT host FROM claimd.worker",
        "SELECT hungry::text FROM claimd.cluster", "SELECT error FROM claimd.job_attempt",
    };
    static const char *const refused[] = {
        "SELECT claimd.enqueue('a')::text",
        "SELECT claimd.cancel(1)",
        "INSERT INTO claimd.job (kind) VALUES ('a')",
        "UPDATE claimd.job SET state = 'running'",
        "SELECT 1 FROM claimd.job FOR UPDATE",
        "DELETE FROM claimd.job",
        "INSERT INTO claimd.queue (name) VALUES ('a')",
    };
    must_do("claimd_reader", statements, ARRAY_COUNT(statements));
    must_not_do("claimd_reader", refused, ARRAY_COUNT(refused));
}
END_TEST

START_TEST(the_admin_can_enqueue_cancel_and_pause)
{
    static const char *const statements[] = {
        "SELECT claimd.enqueue('b')::text",
        "SELECT claimd.cancel(1)",
        "INSERT INTO claimd.queue (name, paused) VALUES ('default', true)",
        "UPDATE claimd.queue SET paused = false",
        "DELETE FROM claimd.queue",
        "SELECT state FROM claimd.jobs",
        "SELECT claimd.ensure_days(20)::text",
    };
    must_do("claimd_admin", statements, ARRAY_COUNT(statements));
}
END_TEST

START_TEST(the_scheduler_owns_makes_and_drops_days_and_vacuums)
{
    static const char *const statements[] = {
        "SELECT claimd.ensure_days(15)::text",
        "DO $$ BEGIN EXECUTE format('ALTER TABLE claimd.job_history DETACH PARTITION claimd.%I', "
        "'job_history_' || to_char(now() AT TIME ZONE 'UTC' + interval '15 days', 'YYYYMMDD')); "
        "EXECUTE format('DROP TABLE claimd.%I', 'job_history_' || to_char(now() AT TIME ZONE 'UTC' "
        "+ interval '15 days', 'YYYYMMDD')); END $$",
        "VACUUM (TRUNCATE false) claimd.job",
        "UPDATE claimd.cluster SET hungry = true",
        "UPDATE claimd.worker SET dead = true",
    };
    must_do("claimd_scheduler", statements, ARRAY_COUNT(statements));
}
END_TEST

/* Opens a session without any rights, which holds the advisory lock named after that table. */
static struct sql *stranger_with_lock(const char *table)
{
    struct sql *stranger = sql_open(world.conninfo);
    sql_run(stranger, "SET ROLE claimd_reader");
    sql_run(stranger, "SELECT pg_advisory_lock('%s'::regclass::oid::bigint)::text", table);
    return stranger;
}

static void nobody_may_lock(const char *const *statements, size_t count)
{
    must_not_do("claimd_worker", statements, count);
    must_not_do("claimd_producer", statements, count);
    must_not_do("claimd_reader", statements, count);
    must_not_do("claimd_admin", statements, count);
}

/* Without a day for its end no job can finish; that is 14 days after the last one was made. */
START_TEST(J2_no_login_but_the_schedulers_can_hold_up_the_making_of_days)
{
    static const char *const refused[] = {
        "DO $$ BEGIN LOCK TABLE claimd.job_history IN SHARE UPDATE EXCLUSIVE MODE; END $$",
        "DO $$ BEGIN LOCK TABLE claimd.job_history IN ACCESS EXCLUSIVE MODE; END $$",
    };
    struct sql *stranger = stranger_with_lock("claimd.job_history");
    struct sql *worker = sql_open(world.conninfo);
    sql_run(worker, "SET ROLE claimd_worker");
    sql_run(worker, "BEGIN");
    sql_run(worker, "SELECT 1::text FROM claimd.cluster FOR UPDATE");
    sql_run(worker, "SELECT count(*)::text FROM claimd.job_history");
    sql_run(owner, "SET lock_timeout = '1s'");
    ck_assert_int_eq(sql_number(owner, "SELECT claimd.ensure_days(16)::text"), 2);
    sql_run(worker, "ROLLBACK");
    nobody_may_lock(refused, ARRAY_COUNT(refused));
    sql_close(worker);
    sql_close(stranger);
}
END_TEST

/* Job 1, for which another one waits, is to wait as well: calls that make such chains take
 * turns. */
START_TEST(J2_no_login_can_hold_up_those_who_let_jobs_wait_for_others)
{
    static const char *const refused[] = {
        "DO $$ BEGIN LOCK TABLE claimd.job_after_turn IN SHARE UPDATE EXCLUSIVE MODE; END $$",
        "DO $$ BEGIN LOCK TABLE claimd.job_after_turn IN ACCESS SHARE MODE; END $$",
    };
    struct sql *stranger = stranger_with_lock("claimd.job_after");
    sql_run(owner, "SELECT claimd.after(claimd.enqueue('a'), '{1}')::text");
    sql_run(owner, "SET lock_timeout = '1s'");
    sql_run(owner, "SELECT claimd.after(1, ARRAY[claimd.enqueue('a')])::text");
    nobody_may_lock(refused, ARRAY_COUNT(refused));
    sql_close(stranger);
}
END_TEST

/* A function that runs with its owner's rights must not be led to a table of the caller's. */
START_TEST(J1_functions_of_the_owner_do_not_follow_the_callers_search_path)
{
    ck_assert_int_eq(
        sql_number(owner,
                   "SELECT count(*)::text FROM pg_proc WHERE pronamespace = 'claimd'::regnamespace "
                   "AND prosecdef AND coalesce(array_to_string(proconfig, ' '), '') NOT LIKE "
                   "'%%search_path=%%pg_catalog, pg_temp%%'"),
        0);
    ck_assert_int_eq(
        sql_number(
            owner,
            "SELECT count(*)::text FROM pg_proc p, aclexplode(coalesce(proacl, acldefault('f', "
            "proowner))) a WHERE pronamespace = 'claimd'::regnamespace AND a.grantee = 0"),
        0);
}
END_TEST

/* Functions without a path look up no names: test_hostile_path runs them with a hostile path. */
START_TEST(J1_each_function_has_a_path_of_its_own_or_is_bound_when_it_is_created)
{
    ck_assert_str_eq(
        sql_text(owner, "SELECT string_agg(p.proname, ' ' ORDER BY p.proname) FROM pg_proc p WHERE "
                        "p.pronamespace = 'claimd'::regnamespace AND p.prosqlbody IS NULL AND "
                        "(p.proconfig && '{\"search_path=claimd, pg_catalog, "
                        "pg_temp\",\"search_path=pg_catalog, pg_temp\"}') IS NOT TRUE"),
        "job_checked job_inserted share_of");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("roles");
    TCase *tc = tcase_create("roles");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, P1_no_role_but_the_scheduler_may_do_these);
    tcase_add_test(tc, P1_the_worker_can_not_put_jobs_in);
    tcase_add_test(tc, the_worker_can_claim_finish_and_store_heartbeats);
    tcase_add_test(tc, the_producer_can_put_jobs_in_and_cancel_them);
    tcase_add_test(tc, who_may_put_a_job_in_may_set_what_claimctl_sets);
    tcase_add_test(tc, the_reader_can_read_and_nothing_else);
    tcase_add_test(tc, the_admin_can_enqueue_cancel_and_pause);
    tcase_add_test(tc, the_scheduler_owns_makes_and_drops_days_and_vacuums);
    tcase_add_test(tc, J2_no_login_but_the_schedulers_can_hold_up_the_making_of_days);
    tcase_add_test(tc, J2_no_login_can_hold_up_those_who_let_jobs_wait_for_others);
    tcase_add_test(tc, J1_functions_of_the_owner_do_not_follow_the_callers_search_path);
    tcase_add_test(tc, J1_each_function_has_a_path_of_its_own_or_is_bound_when_it_is_created);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
