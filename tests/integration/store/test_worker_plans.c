/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's session plans each statement once, however the tables grow (ARCHITECTURE §3). So each
 * plan must look up its rows by an index, whether it is made on empty tables that were never
 * analysed or on large ones. */
#include "sql/queries.h"
#include "support/pg_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All statements that a worker sends, except those that ask for plan_anew first. */
static const struct pg_statement *const statements[] = {
    &SQL_JOB_CLAIM,        &SQL_JOB_CLAIM_SKIP,     &SQL_JOB_CLAIM_LIMITED,  &SQL_JOB_ADOPT,
    &SQL_JOB_ARGS,         &SQL_JOB_COMPLETE,       &SQL_JOB_COMPLETE_SKIP,  &SQL_JOB_DROP,
    &SQL_JOB_DROP_SKIP,    &SQL_JOB_DISCARD,        &SQL_JOB_RETRY,          &SQL_JOB_SNOOZE,
    &SQL_JOB_HAND_BACK,    &SQL_JOB_EXHAUST,        &SQL_JOB_FIND,           &SQL_JOB_DUE,
    &SQL_JOB_FREE_ENDED,   &SQL_JOB_KINDS,          &SQL_JOB_LIVE_FORGET,    &SQL_JOB_LIVE_SAVE,
    &SQL_JOB_RECHECK,      &SQL_JOB_RECORD_DONE,    &SQL_JOB_CANCEL_ASKED,   &SQL_LIMIT_NEXT,
    &SQL_WORKER_HEARTBEAT, &SQL_WORKER_KINDS,       &SQL_WORKER_REGISTER,    &SQL_WORKER_DEAD,
    &SQL_WORKER_STOPPED,   &SQL_WORKER_RUN_LENGTHS, &SQL_WORKER_END_BACKEND, &SQL_CLUSTER_JOIN,
    &SQL_FENCE_CHECK};

/* Returns the bad nodes of a plan: those that read a table that may have millions of rows, but look
 * them up neither by the first column of an index nor by their position. job_live_cancel has only
 * the jobs that are being cancelled. */
#define BAD_NODES                                                                                 \
    "CREATE FUNCTION pg_temp.bad_nodes(run text) RETURNS text LANGUAGE plpgsql AS $$ "            \
    "DECLARE plan jsonb; BEGIN EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || run INTO plan; "    \
    "RETURN (SELECT string_agg(concat_ws(' ', n ->> 'Node Type', n ->> 'Relation Name', "         \
    "n ->> 'Index Name', n ->> 'Index Cond'), '; ') "                                             \
    "FROM jsonb_path_query(plan, 'strict $.** ? (exists(@.\"Relation Name\"))') AS n "            \
    "WHERE n ->> 'Relation Name' ~ "                                                              \
    "'^(job|job_history.*|job_attempt|job_live|exclusive|key_waiting)$' "                         \
    "AND n ->> 'Node Type' NOT IN ('ModifyTable', 'Tid Scan') "                                   \
    "AND COALESCE(n ->> 'Index Name', '') <> 'job_live_cancel' "                                  \
    "AND NOT COALESCE(strpos(n ->> 'Index Cond', (SELECT pg_get_indexdef(i.oid, 1, true) FROM "   \
    "pg_class i WHERE i.relname = n ->> 'Index Name' AND i.relnamespace = 'claimd'::regnamespace" \
    ")) > 0, false)); END $$"

static int bad_count;

static void check_plan(struct pg *pg, struct sql *side, const struct pg_statement *s)
{
    static char sql[16384];
    char nulls[256] = "";
    size_t len = 0;
    for (int i = 0; i < s->type_count; i++) {
        len += (size_t)snprintf(nulls + len, sizeof nulls - len, i == 0 ? "(NULL" : ", NULL");
    }
    write_prepare(side, s, sql, sizeof sql);
    (void)world_ask(pg, sql);
    (void)snprintf(sql, sizeof sql, "SELECT pg_temp.bad_nodes('EXECUTE p%s%s')", nulls,
                   s->type_count > 0 ? ")" : "");
    const char *bad = world_ask(pg, sql);
    if (bad[0] != '\0') {
        (void)printf("%s: %s\n", s->name, bad);
        bad_count++;
    }
    (void)world_ask(pg, "DEALLOCATE p");
}

/* Checks in its own session, like that of a worker that has just started. */
static void check_plans(struct sql *side)
{
    const struct pg_options options = {.loop = &world.loop,
                                       .conninfo = world.conninfo,
                                       .application_name = "plans",
                                       .timeout_us = LIMIT_US,
                                       .plans_once = true};
    struct pg *pg = NULL;
    ck_assert_int_eq(pg_open(&options, &pg, NULL), STATUS_OK);
    RUN_UNTIL(pg_is_up(pg));
    (void)world_ask(pg, BAD_NODES);
    for (size_t i = 0; i < ARRAY_COUNT(statements); i++) {
        check_plan(pg, side, statements[i]);
    }
    ck_assert_int_eq(bad_count, 0);
    pg_close(pg);
}

/* Reads $CLAIMD_TEST_JOBS, by default 100,000; with 10,000,000 the test takes eight minutes. */
static int thousands_of_jobs(void)
{
    const char *given = getenv("CLAIMD_TEST_JOBS");
    return given == NULL ? 100 : (int)strtol(given, NULL, 10) / 1000;
}

static void run_for_each_thousand(struct sql *side, const char *sql)
{
    for (int i = 0; i < thousands_of_jobs(); i++) {
        sql_run(side, "%s", sql);
    }
}

START_TEST(plans_look_rows_up_by_an_index_whatever_the_tables_were_when_they_were_made)
{
    struct sql *side = sql_open(world.conninfo);
    check_plans(side); /* empty tables, not analysed */
    run_for_each_thousand(side, "INSERT INTO claimd.job (kind, exclusive_key) SELECT 'a', "
                                "'k' || random() FROM generate_series(1, 1000)");
    check_plans(side); /* many rows, not analysed */
    sql_run(side, "ANALYZE claimd.job");
    check_plans(side);
    run_for_each_thousand(
        side, "WITH gone AS (DELETE FROM claimd.job WHERE id IN (SELECT id FROM claimd.job "
              "WHERE id > 10 ORDER BY id LIMIT 1000) RETURNING *) INSERT "
              "INTO claimd.job_attempt (job_id, fence, attempt, worker_id, started_at, "
              "outcome) SELECT id, id, 1, worker_id, now(), 'failed' FROM gone");
    sql_run(side, "ANALYZE claimd.job, claimd.job_attempt");
    check_plans(side); /* few rows on many pages */
    sql_close(side);
}
END_TEST

/* The check itself can fail. */
START_TEST(a_plan_that_reads_a_table_from_end_to_end_is_seen)
{
    struct sql *side = sql_open(world.conninfo);
    sql_run(side, BAD_NODES);
    const char *bad = sql_text(
        side, "SELECT pg_temp.bad_nodes('SELECT FROM claimd.job WHERE worker_id IS NOT NULL')");
    ck_assert_ptr_nonnull(strstr(bad, "Scan job"));
    bad = sql_text(side, "SELECT pg_temp.bad_nodes('SELECT FROM claimd.job WHERE id = 1')");
    ck_assert_str_eq(bad, "");
    sql_close(side);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker_plans");
    TCase *tests = tcase_create("plans");
    tcase_set_timeout(tests, 120 + 2 * thousands_of_jobs());
    tcase_add_checked_fixture(tests, world_setup, world_teardown);
    tcase_add_test(tests,
                   plans_look_rows_up_by_an_index_whatever_the_tables_were_when_they_were_made);
    tcase_add_test(tests, a_plan_that_reads_a_table_from_end_to_end_is_seen);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
