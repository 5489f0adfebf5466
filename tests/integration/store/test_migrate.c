/* SPDX-License-Identifier: Apache-2.0 */
#include "schema_fingerprint.h"
#include "sql/statement.h"
#include "store/migrate.h"
#include "support/pg_fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static int steps;

static void on_step(void *ctx, const struct sql_migration *done)
{
    const struct sql_migration **last = ctx;
    steps++;
    *last = done;
}

static struct err why;

#define MUST(call)                                         \
    do {                                                   \
        why = (struct err){0};                             \
        ck_assert_msg((call) == STATUS_OK, "%s", why.msg); \
    } while (0)

static int version_now(void)
{
    int version = -1;
    MUST(migrate_version(world.conninfo, LIMIT_US, &version, &why));
    return version;
}

/* The schema of each version, as its step up left it; its lines are in the table `kept`. */
static char schemas[64][ERR_TEXT_MAX];

/* Returns the beginning and the end of a line that the schema has now but should not have, or the
 * other way round. */
static const char *difference(struct sql *side, int version)
{
    return sql_text(side,
                    "WITH a AS (SELECT line FROM " SCHEMA_LINES
                    "), b AS (SELECT line FROM pg_temp.kept WHERE step = %d), d AS ((SELECT 'has ' "
                    "AS how, line FROM a EXCEPT SELECT 'has ', line FROM b) UNION ALL (SELECT "
                    "'lacks ', line FROM b EXCEPT SELECT 'lacks ', line FROM a)) SELECT min(how || "
                    "left(line, 100) || ' … ' || right(line, 200)) FROM d",
                    version);
}

static void on_step_up(void *ctx, const struct sql_migration *done)
{
    struct sql *side = ctx;
    ck_assert_int_eq(done->version, ++steps);
    ck_assert_uint_lt((size_t)steps, ARRAY_COUNT(schemas));
    (void)snprintf(schemas[steps], sizeof schemas[0], "%s", sql_text(side, FINGERPRINT));
    sql_run(side, "INSERT INTO pg_temp.kept SELECT (SELECT count(DISTINCT step) + 1 FROM "
                  "pg_temp.kept), line FROM " SCHEMA_LINES);
}

START_TEST(each_step_down_gives_the_schema_before_it_and_up_the_same_again)
{
    const struct sql_migration *last = NULL;
    struct sql *side = sql_open(world.conninfo);
    ck_assert_int_eq(version_now(), 0);
    sql_run(side, "CREATE TEMP TABLE kept (step int, line text)");
    MUST(migrate_up(world.conninfo, LIMIT_US, on_step_up, side, &why));
    ck_assert_int_eq(steps, migrate_known_version());
    ck_assert_int_eq(version_now(), migrate_known_version());
    for (int version = migrate_known_version(); version > 0; version--) {
        MUST(migrate_down(world.conninfo, LIMIT_US, on_step, &last, &why));
        ck_assert_ptr_eq(last, migrate_get(version));
        ck_assert_msg(
            version == 1 || strcmp(sql_text(side, FINGERPRINT), schemas[version - 1]) == 0,
            "%s.down.sql leaves another schema: it %s", last->name, difference(side, version - 1));
    }
    ck_assert_int_eq(
        sql_number(side, "SELECT count(*)::text FROM pg_namespace WHERE nspname = 'claimd'"), 0);
    ck_assert_int_eq(
        sql_number(side, "SELECT count(*)::text FROM pg_roles WHERE rolname ~ '^claimd_'"), 6);
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    ck_assert_str_eq(sql_text(side, FINGERPRINT), schemas[migrate_known_version()]);
    sql_close(side);
}
END_TEST

START_TEST(up_again_does_nothing_and_down_of_nothing_is_not_found)
{
    const struct sql_migration *last = NULL;
    struct err err = {0};
    ck_assert_int_eq(migrate_down(world.conninfo, LIMIT_US, NULL, NULL, &err), STATUS_NOT_FOUND);
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    MUST(migrate_up(world.conninfo, LIMIT_US, on_step, &last, &why));
    ck_assert_int_eq(steps, 0);
}
END_TEST

START_TEST(two_at_once_apply_each_migration_once)
{
    const struct sql_migration *last = NULL;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    enum status st = migrate_up(world.conninfo, LIMIT_US, on_step, &last, NULL);
    if (child == 0) {
        _exit(st == STATUS_OK ? steps : 100);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(st, STATUS_OK);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(steps + WEXITSTATUS(status), migrate_known_version());
}
END_TEST

/* insufficient_privilege, feature_not_supported, object_not_in_prerequisite_state: managed servers
 * refuse in each of these ways. */
static const char *const refusals[] = {"42501", "0A000", "55000"};

START_TEST(D5_a_server_that_does_not_tell_its_timeline_is_known_by_its_start)
{
    struct sql *side = sql_open(world.conninfo);
    sql_run(side, "SET allow_system_table_mods = on");
    sql_run(side, "ALTER FUNCTION pg_catalog.pg_walfile_name(pg_lsn) RENAME TO was_there");
    sql_run(side,
            "CREATE FUNCTION pg_catalog.pg_walfile_name(pg_lsn) RETURNS text LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE 'not here' USING ERRCODE = '%s'; END $$",
            refusals[_i]);
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    ck_assert_str_eq(
        sql_text(side, "SELECT (timeline = 'start ' || (extract(epoch FROM "
                       "pg_postmaster_start_time()) * 1000000)::bigint)::text FROM claimd.cluster"),
        "true");
    int64_t fence = sql_number(side, "SELECT nextval('claimd.fence')::text");
    ck_assert_str_eq(sql_text(side, "SELECT claimd.guard_fence()::text"), "false");
    ck_assert_int_eq(sql_number(side, "SELECT nextval('claimd.fence')::text"), fence + 1);
    sql_run(side, "UPDATE claimd.cluster SET timeline = 'start 1'"); /* of another server */
    ck_assert_str_eq(sql_text(side, "SELECT claimd.guard_fence()::text"), "true");
    ck_assert_str_eq(sql_text(side, "SELECT claimd.guard_fence()::text"), "false");
    ck_assert_int_gt(sql_number(side, "SELECT nextval('claimd.fence')::text"),
                     fence + (INT64_C(1) << 32));
    sql_close(side);
}
END_TEST

START_TEST(a_plain_role_that_may_create_roles_and_schemas_is_enough)
{
    char conninfo[SERVER_PATH_MAX + 64];
    struct sql *side = sql_open(world.conninfo);
    (void)sql_refusal(side, "CREATE ROLE migrator LOGIN CREATEROLE");
    sql_run(side, "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %%I TO migrator', "
                  "current_database()); END $$");
    /* The owner of another database has made the roles. From PostgreSQL 16 on, granting them needs
     * the right that the maker of a role gets. */
    sql_run(
        side,
        "DO $$ BEGIN IF current_setting('server_version_num')::int >= 160000 THEN EXECUTE 'GRANT "
        "claimd_scheduler TO migrator WITH ADMIN TRUE, INHERIT FALSE, SET FALSE'; END IF; END $$");
    (void)snprintf(conninfo, sizeof conninfo, "%s user=migrator", world.conninfo);
    MUST(migrate_up(conninfo, LIMIT_US, NULL, NULL, &why));
    MUST(migrate_down(conninfo, LIMIT_US, NULL, NULL, &why));
    MUST(migrate_up(conninfo, LIMIT_US, NULL, NULL, &why));
    ck_assert_str_eq(
        sql_text(side,
                 "SELECT string_agg(DISTINCT relowner::regrole::text, ',') FROM (SELECT relowner "
                 "FROM pg_class WHERE relnamespace = 'claimd'::regnamespace UNION SELECT proowner "
                 "FROM pg_proc WHERE pronamespace = 'claimd'::regnamespace) owned"),
        "claimd_scheduler");
    sql_close(side);
}
END_TEST

START_TEST(every_wait_has_a_deadline)
{
    struct err err = {0};
    struct sql *side = sql_open(world.conninfo);
    sql_run(side, "BEGIN");
    sql_run(side, "SELECT pg_advisory_xact_lock(109317141917028)::text");
    int64_t start_us = clock_boot_us();
    ck_assert_int_eq(migrate_up(world.conninfo, 200 * US_PER_MS, NULL, NULL, &err), STATUS_TIMEOUT);
    ck_assert_int_lt(clock_boot_us() - start_us, LIMIT_US / 2);
    sql_run(side, "COMMIT");
    ck_assert_int_eq(version_now(), 0);
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    sql_close(side);
}
END_TEST

START_TEST(nobody_there_is_unavailable)
{
    int version = -1;
    struct err err = {0};
    ck_assert_int_eq(migrate_version("host=/nonexistent", LIMIT_US, &version, &err),
                     STATUS_UNAVAILABLE);
    ck_assert_int_eq(version, -1);
    ck_assert_msg(strstr(err.msg, "/nonexistent") != NULL, "%s", err.msg);
}
END_TEST

/* ---- the daemons' check ---- */

struct checked {
    int calls;
    enum status st;
    char msg[ERR_TEXT_MAX];
};

static void on_checked(void *ctx, enum status st, const struct err *err)
{
    struct checked *c = ctx;
    c->calls++;
    c->st = st;
    (void)snprintf(c->msg, sizeof c->msg, "%s", err->msg);
}

/* Checks as a daemon does when its session is up. */
static struct checked check(void)
{
    struct pg *pg = world_pg();
    struct checked c = {0};
    ck_assert_int_eq(migrate_check(pg, on_checked, &c, NULL), STATUS_OK);
    RUN_UNTIL(c.calls == 1);
    pg_close(pg);
    return c;
}

START_TEST(a_daemon_refuses_another_schema_version_and_says_which_migration)
{
    struct sql *side = sql_open(world.conninfo);
    struct checked c = check();
    ck_assert_int_eq(c.st, STATUS_CONFLICT);
    ck_assert_msg(strstr(c.msg, "claimctl db migrate") != NULL, "%s", c.msg);
    ck_assert_msg(strstr(c.msg, migrate_get(1)->name) != NULL, "%s", c.msg);
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    c = check();
    ck_assert_msg(c.st == STATUS_OK, "%s", c.msg);
    sql_run(side, "UPDATE claimd.cluster SET schema_version = 99, oldest_program = 99");
    c = check();
    ck_assert_int_eq(c.st, STATUS_CONFLICT);
    ck_assert_msg(strstr(c.msg, "at version 99") != NULL, "%s", c.msg);
    struct err err = {0};
    ck_assert_int_eq(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &err), STATUS_CONFLICT);
    sql_close(side);
}
END_TEST

START_TEST(B40_a_program_works_with_a_newer_schema_that_allows_it)
{
    struct sql *side = sql_open(world.conninfo);
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    sql_run(side, "UPDATE claimd.cluster SET schema_version = 99, oldest_program = %d",
            migrate_known_version());
    struct checked c = check();
    ck_assert_msg(c.st == STATUS_OK, "%s", c.msg);
    sql_run(side, "UPDATE claimd.cluster SET oldest_program = 99");
    c = check();
    ck_assert_int_eq(c.st, STATUS_CONFLICT);
    ck_assert_msg(strstr(c.msg, "needs programs that know 99") != NULL, "%s", c.msg);
    sql_close(side);
}
END_TEST

/* ---- with a running fleet (B40) ---- */

static void down_to(int version)
{
    while (version_now() > version) {
        MUST(migrate_down(world.conninfo, LIMIT_US, NULL, NULL, &why));
    }
}

#define LEFT_TO_DO                                                                         \
    "SELECT count(*)::text FROM pg_constraint WHERE conrelid = 'claimd.job'::regclass AND" \
    " NOT convalidated"

START_TEST(jobs_whose_args_expand_and_were_let_in_before_are_marked_by_the_upgrade)
{
    struct sql *side = sql_open(world.conninfo);
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    down_to(1);
    sql_run(side,
            "INSERT INTO claimd.job (kind, args, metadata) SELECT 'a', args, metadata FROM (VALUES "
            "('{}'::jsonb, NULL::jsonb), ('{\"n\": 1e131071}', NULL), ('{}', '{\"n\": 1e131071}'), "
            "(to_jsonb(repeat('x', 1000000)), '{}'), ((SELECT jsonb_agg(1e131071::numeric) FROM "
            "generate_series(1, 120)), NULL)) AS v(args, metadata)");
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    ck_assert_str_eq(
        sql_text(side, "SELECT string_agg(flags::text, ' ' ORDER BY id) FROM claimd.job"),
        "0 1024 1024 0 1024");
    sql_close(side);
}
END_TEST

START_TEST(B40_a_migration_that_was_interrupted_goes_on_with_the_part_that_was)
{
    struct sql *side = sql_open(world.conninfo);
    struct err err = {0};
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    down_to(2);
    /* This is the state when a process dies before the second part of the second migration. */
    sql_run(side, "ALTER TABLE claimd.job DROP CONSTRAINT job_backoff_valid");
    sql_run(
        side,
        "ALTER TABLE claimd.job ADD CONSTRAINT job_backoff_valid CHECK (backoff <> '') NOT VALID");
    sql_run(side, "UPDATE claimd.cluster SET schema_version = 1, schema_part = 1");
    ck_assert_int_eq(migrate_down(world.conninfo, LIMIT_US, NULL, NULL, &err), STATUS_CONFLICT);
    ck_assert_msg(strstr(err.msg, migrate_get(2)->name) != NULL, "%s", err.msg);
    ck_assert_int_eq(sql_number(side, LEFT_TO_DO), 1);
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    ck_assert_int_eq(sql_number(side, LEFT_TO_DO), 0);
    ck_assert_int_eq(version_now(), migrate_known_version());
    ck_assert_int_eq(sql_number(side, "SELECT schema_part::text FROM claimd.cluster"), 0);
    sql_close(side);
}
END_TEST

START_TEST(B40_a_migration_waits_for_a_long_reader_and_holds_nobody_up_meanwhile)
{
    struct sql *reader = sql_open(world.conninfo);
    struct sql *side = sql_open(world.conninfo);
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    down_to(1);
    sql_run(reader, "BEGIN");
    sql_run(reader, "SELECT count(*)::text FROM claimd.job");
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        _exit(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, NULL) == STATUS_OK ? 0 : 1);
    }
    /* It has tried, given up, and tries again: seen three times, in different transactions. */
    int64_t last = 0;
    for (int seen = 0; seen < 3;) {
        int64_t now = sql_number(
            side,
            "SELECT COALESCE(max(extract(epoch FROM xact_start) * 1000000)::bigint, 0)::text FROM "
            "pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()");
        seen += now > last ? 1 : 0;
        last = now > last ? now : last;
    }
    sql_run(side, "SELECT claimd.enqueue('a')::text");
    ck_assert_int_eq(version_now(), 1);
    sql_run(reader, "COMMIT");
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(version_now(), migrate_known_version());
    sql_close(side);
    sql_close(reader);
}
END_TEST

START_TEST(B40_an_empty_database_needs_no_older_program_and_a_migrated_one_may)
{
    static const char floor_sql[] = "SELECT oldest_program::text FROM claimd.cluster";
    struct sql *side = sql_open(world.conninfo);
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    ck_assert_int_eq(sql_number(side, "%s", floor_sql), migrate_known_version());
    down_to(1);
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    ck_assert_int_eq(sql_number(side, "%s", floor_sql), 1);
    sql_close(side);
}
END_TEST

#define OLD_WORKER                                                                              \
    "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, "             \
    "token_prefix, version, queues) VALUES (gen_random_uuid(), now(), 77, 1, 'attic', 'd', 't'" \
    ", 'v', '{default}')"

START_TEST(B40_what_older_programs_would_break_waits_until_none_of_them_is_left)
{
    struct sql *side = sql_open(world.conninfo);
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    down_to(1);
    sql_run(side, OLD_WORKER);
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    ASSERT_REFUSED(side, "SELECT claimd.require_program(2)", "CL003", "claimctl db finish");
    ASSERT_REFUSED(side, "SELECT claimd.finish_upgrade()", "CL003", "worker 77 on attic");
    sql_run(side, OLD_WORKER); /* it may also still be started */
    sql_run(side, "UPDATE claimd.worker SET stopped = true");
    ck_assert_int_eq(sql_number(side, "SELECT claimd.finish_upgrade()::text"),
                     migrate_known_version());
    sql_run(side, "SELECT claimd.require_program(2)::text");
    ASSERT_REFUSED(side, OLD_WORKER, "CL003", "use a newer build");
    sql_close(side);
}
END_TEST

START_TEST(a_migration_that_fails_leaves_nothing)
{
    struct err err = {0};
    struct sql *side = sql_open(world.conninfo);
    sql_run(side, "CREATE SCHEMA claimd");
    ck_assert_int_ne(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &err), STATUS_OK);
    ck_assert_str_eq(err.code, "42P06");
    ck_assert_msg(strstr(err.msg, migrate_get(1)->name) != NULL, "%s", err.msg);
    sql_run(side, "DROP SCHEMA claimd");
    MUST(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &why));
    sql_close(side);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("migrate");
    TCase *tc = tcase_create("migrate");
    tcase_add_checked_fixture(tc, world_setup_empty, world_teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, each_step_down_gives_the_schema_before_it_and_up_the_same_again);
    tcase_add_test(tc, up_again_does_nothing_and_down_of_nothing_is_not_found);
    tcase_add_test(tc, two_at_once_apply_each_migration_once);
    tcase_add_loop_test(tc, D5_a_server_that_does_not_tell_its_timeline_is_known_by_its_start, 0,
                        (int)ARRAY_COUNT(refusals));
    tcase_add_test(tc, a_plain_role_that_may_create_roles_and_schemas_is_enough);
    tcase_add_test(tc, every_wait_has_a_deadline);
    tcase_add_test(tc, nobody_there_is_unavailable);
    tcase_add_test(tc, a_daemon_refuses_another_schema_version_and_says_which_migration);
    tcase_add_test(tc, B40_a_program_works_with_a_newer_schema_that_allows_it);
    tcase_add_test(tc, jobs_whose_args_expand_and_were_let_in_before_are_marked_by_the_upgrade);
    tcase_add_test(tc, B40_a_migration_that_was_interrupted_goes_on_with_the_part_that_was);
    tcase_add_test(tc, B40_a_migration_waits_for_a_long_reader_and_holds_nobody_up_meanwhile);
    tcase_add_test(tc, B40_an_empty_database_needs_no_older_program_and_a_migrated_one_may);
    tcase_add_test(tc, B40_what_older_programs_would_break_waits_until_none_of_them_is_left);
    tcase_add_test(tc, a_migration_that_fails_leaves_nothing);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
