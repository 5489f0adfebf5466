/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract of the schema: enqueue, cancel, states, checks, the trigger, days. */
#include "model/job.h"
#include "sql/queries.h"
#include "sql_db.h"
#include "whole_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- states ---- */

/* The states as both CHECKs write them, in the same order. */
START_TEST(the_checks_name_the_states_of_the_model)
{
    char expected[256] = "";
    size_t len = 0;
    for (int s = 0; s < JOB_STATE_COUNT; s++) {
        len += (size_t)snprintf(expected + len, sizeof expected - len, "%s%s", s == 0 ? "" : " ",
                                job_state_text((enum job_state)s));
    }
    ck_assert(!job_state_is_final(JOB_RUNNING) && job_state_is_final(JOB_COMPLETED));
    ck_assert_str_eq(
        sql_text(db, "SELECT string_agg(m[1], ' ' ORDER BY conname = 'job_history_state', n) FROM "
                     "pg_constraint, regexp_matches(pg_get_constraintdef(oid), '''([a-z]+)''', "
                     "'g') WITH ORDINALITY AS r(m, n) WHERE conrelid IN ('claimd.job'::regclass, "
                     "'claimd.job_history'::regclass) AND conname ~ '_state$'"),
        expected);
}
END_TEST

START_TEST(a_finish_takes_all_columns_of_a_job_along)
{
    ck_assert_str_eq(
        sql_text(db, "SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute WHERE "
                     "attrelid = 'claimd.job'::regclass AND attnum > 0 AND NOT attisdropped AND "
                     "attname NOT IN ('crashes', 'state')"),
        sql_carried_columns);
}
END_TEST

static void assert_whole_in_history(void)
{
    ck_assert_str_eq(sql_text(db, "SELECT (to_jsonb(h) @> row)::text FROM claimd.job_history h, "
                                  "before WHERE h.kind = 'all'"),
                     "true");
}

/* Its function lists the columns a second time, and migrations are not changed later. */
START_TEST(a_cancel_takes_all_columns_of_a_job_along)
{
    put_whole_job(db);
    sql_run(db, "SELECT claimd.cancel(id) FROM claimd.job WHERE kind = 'all'");
    assert_whole_in_history();
}
END_TEST

START_TEST(G4_a_completion_in_ones_own_transaction_takes_all_columns_along)
{
    put_whole_job(db);
    sql_run(db, "UPDATE claimd.job SET state = 'running'");
    sql_run(db, "SELECT claimd.complete_in_tx(id, 77, '[1]')::text FROM claimd.job");
    assert_whole_in_history();
    ck_assert_str_eq(sql_text(db, "SELECT concat_ws(' ', state, result) FROM claimd.job_history"),
                     "completed [1]");
}
END_TEST

START_TEST(G4_a_completion_in_ones_own_transaction_is_fenced_and_checked)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    ASSERT_REFUSED(db, "SELECT claimd.complete_in_tx(1, 7)", "CL001", "roll back");
    sql_run(db, "UPDATE claimd.job SET state = 'running', fence = 8");
    ASSERT_REFUSED(db, "SELECT claimd.complete_in_tx(1, 7)", "CL001", "under fence 7");
    ASSERT_REFUSED(db, "SELECT claimd.complete_in_tx(1, NULL)", "CL002", "fence: must be");
    ASSERT_REFUSED(db, "SELECT claimd.complete_in_tx(NULL, 8)", "CL002", "id: must not");
    ASSERT_REFUSED(db, "SELECT claimd.complete_in_tx(1, 8, to_jsonb(repeat('x', 65536)))", "CL002",
                   "result: at most 65536");
    sql_run(db, "BEGIN");
    sql_run(db, "SELECT claimd.complete_in_tx(1, 8)::text");
    sql_run(db, "ROLLBACK");
    sql_run(db, "SELECT claimd.complete_in_tx(1, 8)::text");
    ASSERT_REFUSED(db, "SELECT claimd.complete_in_tx(1, 8)", "CL001", "job 1");
}
END_TEST

START_TEST(the_view_derives_the_states_that_people_know)
{
    sql_run(db, "INSERT INTO claimd.job (kind, scheduled_at, attempt, state) VALUES ('a', "
                "clock_timestamp(), 0, 'available'), ('b', clock_timestamp() + interval '1 h', 0, "
                "'available'), ('c', clock_timestamp() + interval '1 h', 1, 'available'), ('d', "
                "clock_timestamp(), 1, 'running'), ('e', clock_timestamp(), 0, 'available'), ('f', "
                "clock_timestamp(), 0, 'available')");
    sql_run(db, "SELECT claimd.after(id, '{1}')::text FROM claimd.job WHERE kind = 'f'");
    sql_run(db, "SELECT claimd.cancel(id) FROM claimd.job WHERE kind = 'e'");
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(state, ' ' ORDER BY kind) FROM claimd.jobs"),
                     "available scheduled retryable running cancelled waiting");
}
END_TEST

START_TEST(the_view_has_all_columns_of_a_job)
{
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM (SELECT column_name FROM "
                       "information_schema.columns WHERE table_schema = 'claimd' AND table_name = "
                       "'job' EXCEPT SELECT column_name FROM information_schema.columns WHERE "
                       "table_schema = 'claimd' AND table_name = 'jobs') missing"),
        0);
}
END_TEST

/* `row` of whole_job.h has no state, which the view derives. */
START_TEST(the_view_has_the_values_of_a_job_before_and_after_its_end)
{
    static const char has_all[] = "SELECT (to_jsonb(v) @> row)::text FROM claimd.jobs v, before";
    put_whole_job(db);
    ck_assert_str_eq(sql_text(db, "%s", has_all), "true");
    sql_run(db, "SELECT claimd.cancel(id) FROM claimd.job");
    ck_assert_str_eq(sql_text(db, "%s", has_all), "true");
}
END_TEST

START_TEST(a_past_time_means_now_and_created_at_is_the_clock)
{
    sql_run(db, "SELECT claimd.enqueue('a', scheduled_at => '2001-01-01')::text");
    sql_run(db, "INSERT INTO claimd.job (kind, scheduled_at) VALUES ('a', '0001-01-01')");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job WHERE ready_at = "
                                    "created_at AND created_at > now() - interval '1 min'"),
                     2);
}
END_TEST

/* ---- enqueue ---- */

START_TEST(enqueue_stores_what_it_is_given)
{
    sql_run(db,
            "SELECT claimd.enqueue('mail', '{\"to\": \"x\"}', 'slow.lane-2', 9, '2100-01-01', 3, "
            "'90 s', share_key => 'tenant', tags => '{a,b}', metadata => '{\"m\": 1}')::text");
    ck_assert_str_eq(
        sql_text(
            db,
            "SELECT concat_ws(' ', kind, args, queue, priority, scheduled_at::date, max_attempts, "
            "timeout, tags, metadata, share > 0, state, attempt, fence) FROM claimd.job"),
        "mail {\"to\": \"x\"} slow.lane-2 9 2100-01-01 3 00:01:30 {a,b} {\"m\": 1} t available 0 "
        "0");
}
END_TEST

START_TEST(enqueue_has_the_defaults_of_the_interface)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    ck_assert_str_eq(
        sql_text(db, "SELECT concat_ws(' ', args, queue, priority, share, max_attempts IS NULL, "
                     "timeout IS NULL, generation) FROM claimd.job"),
        "{} default 4 0 t t 0");
}
END_TEST

START_TEST(H1_enqueue_names_the_wrong_argument_and_stores_nothing)
{
    static const struct {
        const char *arguments;
        const char *code;
        const char *text;
    } wrong[] = {
        {"NULL", "CL002", "kind: must match"},
        {"''", "CL002", "kind: must match"},
        {"'Mail'", "CL002", "kind: must match"},
        {"E'mail\\n'", "CL002", "kind: must match"},
        {"repeat('a', 65)", "CL002", "kind: must match"},
        {"'a', queue => 'no queue'", "CL002", "queue: must match"},
        {"'a', queue => NULL", "CL002", "queue: must match"},
        {"'a', priority => 10", "CL002", "priority: must be 0"},
        {"'a', priority => -1", "CL002", "priority: must be 0"},
        {"'a', priority => 100000", "CL002", "priority: must be 0"},
        {"'a', NULL", "CL002", "args: must be"},
        {"'a', '{'", "22P02", "json"},
        {"'a', to_jsonb(repeat('x', 1048575))", "CL002", "args: at most 1048576"},
        {"'a', scheduled_at => 'infinity'", "CL002", "before the year 2286, so not infinity"},
        {"'a', scheduled_at => '9999-01-01'", "CL002", "scheduled_at: must lie"},
        {"'a', max_attempts => 0", "CL002", "max_attempts: must be"},
        {"'a', timeout => '0'", "CL002", "timeout: must be"},
        {"'a', timeout => '-1 s'", "CL002", "timeout: must be"},
        {"'a', timeout => '10 years'", "CL002", "timeout: must be"},
        {"'a', tags => array_fill('tag'::text, '{2000}')", "CL002", "tags: at most"},
        {"'a', metadata => to_jsonb(repeat('x', 70000))", "CL002", "metadata: at most"},
        {"'a', metadata => '[1]'", "CL002", "metadata: must be a JSON object"},
        {"'a', metadata => 'null'", "CL002", "metadata: must be a JSON object"},
        {"'a', tags => '{a,NULL}'", "CL002", "tags: must be a list of texts, without NULL"},
        {"'a', tags => '{{a},{b}}'", "CL002", "tags: must be a list of texts"},
        {"'a', tags => '{a,\"\"}'", "CL002", "tags: must be a list of texts, none of them empty"},
        {"'a', exclusive_key => ''", "CL002", "exclusive_key: must have 1 to 512"},
        {"'a', exclusive_key => repeat('k', 513)", "CL002", "exclusive_key: must have 1 to"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "SELECT claimd.enqueue(%s)::text", wrong[i].arguments);
        ASSERT_REFUSED(db, sql, wrong[i].code, wrong[i].text);
    }
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 0);
}
END_TEST

START_TEST(args_of_a_megabyte_of_text_are_the_limit)
{
    sql_run(db, "SELECT claimd.enqueue('a', to_jsonb(repeat('x', 1048574)))::text");
    ck_assert_int_eq(sql_number(db, "SELECT octet_length(args::text)::text FROM claimd.job"),
                     JOB_ARGS_MAX);
}
END_TEST

START_TEST(a_time_in_the_past_means_now_however_long_ago)
{
    static const char *const times[] = {"-infinity", "4000-01-01 BC", "2001-01-01"};
    for (size_t i = 0; i < ARRAY_COUNT(times); i++) {
        sql_run(db, "SELECT claimd.enqueue('a', scheduled_at => '%s')::text", times[i]);
    }
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.jobs WHERE state = 'available' AND "
                       "isfinite(scheduled_at) AND ready_at BETWEEN now() - interval '1 min' AND "
                       "now() + interval '1 min' AND scheduled_at >= '2001-01-01'"),
        ARRAY_COUNT(times));
}
END_TEST

/* An argument of type json matches no function; an overload for it would make '{}' ambiguous. */
START_TEST(args_are_jsonb_or_untyped)
{
    sql_run(db, "SELECT claimd.enqueue('a', '{}')::text");
    sql_run(db, "SELECT claimd.enqueue('a', '{}'::json::jsonb)::text");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', '{}'::json)::text", "42883",
                   "claimd.enqueue(unknown, json) does not exist");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 2);
}
END_TEST

/* ---- cancel ---- */

START_TEST(cancel_moves_a_waiting_job_to_the_history_and_is_repeatable)
{
    sql_run(db, "SELECT claimd.enqueue('a', '[7]', tags => '{t}')::text");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.cancel(1)"), "cancelled");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.cancel(1)"), "cancelled");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 0);
    ck_assert_str_eq(sql_text(db, "SELECT concat_ws(' ', id, kind, args, tags, finalized_at <= "
                                  "clock_timestamp()) FROM claimd.job_history"),
                     "1 a [7] {t} t");
}
END_TEST

START_TEST(a_cancel_of_a_running_job_asks_its_worker_and_only_for_that_run)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    sql_run(db, "UPDATE claimd.job SET state = 'running', fence = 7");
    sql_run(db, "INSERT INTO claimd.job_live (id, fence, checkpoint) VALUES (1, 5, '[1]')");
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(sql_text(db, "SELECT claimd.cancel(1)"), "cancelling");
        ck_assert_str_eq(
            sql_text(
                db,
                "SELECT concat_ws(' ', fence, cancel_requested, checkpoint) FROM claimd.job_live"),
            "7 t [1]");
    }
    sql_run(db, "UPDATE claimd.job SET state = 'available'");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.cancel(1)"), "cancelled");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_live"), 0);
}
END_TEST

START_TEST(what_a_cancel_has_asked_for_goes_with_the_run_whose_worker_has_not_heard_of_it)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    sql_run(db, "UPDATE claimd.job SET state = 'running', fence = 7");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.cancel(1)"), "cancelling");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_live"), 1);
    sql_run(db, "DELETE FROM claimd.job"); /* like the statement that completes it */
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_live"), 0);
}
END_TEST

/* A program of the previous release does not ask for cancel requests: its job ends in its usual
 * way. */
START_TEST(a_request_to_cancel_that_an_older_program_ignored_is_not_left_behind)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text FROM generate_series(1, 2)");
    sql_run(db, "UPDATE claimd.job SET state = 'running', fence = id");
    sql_run(db, "SELECT claimd.cancel(id) FROM claimd.job");
    sql_run(db, "DELETE FROM claimd.job WHERE id = 1");
    sql_run(db, "PREPARE forget AS %s", SQL_HISTORY_FORGET.sql);
    sql_run(db, "EXECUTE forget(14)");
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(id::text, ' ') FROM claimd.job_live"), "2");
}
END_TEST

START_TEST(cancel_says_why_it_can_not)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    sql_run(db, "UPDATE claimd.job SET state = 'running'");
    sql_run(db, "INSERT INTO claimd.job_history SELECT id, fence, created_at, scheduled_at, "
                "ready_at, attempted_at, clock_timestamp(), worker_id, attempt, crashes, "
                "generation, priority, share, 'completed', queue, kind, args FROM claimd.job");
    sql_run(db, "DELETE FROM claimd.job");
    ASSERT_REFUSED(db, "SELECT claimd.cancel(1)", "CL003", "job 1 is completed already");
    ASSERT_REFUSED(db, "SELECT claimd.cancel(2)", "CL003", "job 2 not found");
    ASSERT_REFUSED(db, "SELECT claimd.cancel(NULL)", "CL002", "id: must not be NULL");
}
END_TEST

/* ---- claims and fences ---- */

START_TEST(every_claim_is_hot)
{
    sql_run(db, "INSERT INTO claimd.job (kind, args) SELECT 'load', jsonb_build_object('n', g, "
                "'text', repeat('x', g %% 300)) FROM generate_series(1, 5000) g");
    sql_run(
        db,
        "UPDATE claimd.job SET state = 'running', attempt = attempt + 1, fence = "
        "nextval('claimd.fence'), worker_id = gen_random_uuid(), attempted_at = clock_timestamp()");
    sql_run(db, "SELECT pg_stat_force_next_flush()::text");
    ck_assert_str_eq(sql_text(db, "SELECT n_tup_upd || ' ' || n_tup_hot_upd FROM "
                                  "pg_stat_user_tables WHERE relid = 'claimd.job'::regclass"),
                     "5000 5000");
}
END_TEST

START_TEST(no_index_names_a_column_that_a_claim_changes)
{
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM pg_indexes WHERE schemaname = 'claimd' AND "
                       "tablename = 'job' AND indexdef ~ '(state|attempt|fence|worker_id)'"),
        0);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM pg_indexes WHERE schemaname = "
                                    "'claimd' AND tablename = 'job'"),
                     3);
}
END_TEST

/* With sequential scans disabled, a query without an index gets so high a cost that PostgreSQL
 * would compile it with JIT each time. */
START_TEST(what_forbids_scans_is_not_compiled)
{
    ck_assert_str_eq(
        sql_text(db, "SELECT COALESCE(string_agg(proname, ' '), '') FROM pg_proc WHERE "
                     "pronamespace = 'claimd'::regnamespace AND 'enable_seqscan=off' = ANY "
                     "(proconfig) AND 'jit=off' <> ALL (proconfig)"),
        "");
}
END_TEST

START_TEST(fences_are_not_cached)
{
    ck_assert_int_eq(
        sql_number(
            db, "SELECT seqcache::text FROM pg_sequence WHERE seqrelid = 'claimd.fence'::regclass"),
        1);
}
END_TEST

/* ---- the trigger ---- */

static int notes;

static void on_notify(void *ctx, const char *channel, const char *payload)
{
    (void)ctx;
    (void)payload;
    ck_assert_str_eq(channel, "claimd");
    notes++;
}

START_TEST(a_statement_notifies_once_and_only_while_the_leader_is_hungry)
{
    struct pg *listener = NULL;
    const struct pg_options options = {.loop = &world.loop,
                                       .conninfo = world.conninfo,
                                       .application_name = "listener",
                                       .listen = "claimd",
                                       .timeout_us = LIMIT_US,
                                       .on_notify = on_notify};
    ck_assert_int_eq(pg_open(&options, &listener, NULL), STATUS_OK);
    RUN_UNTIL(pg_is_up(listener));
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    sql_run(db, "UPDATE claimd.cluster SET hungry = true");
    sql_run(db, "INSERT INTO claimd.job (kind) SELECT 'a' FROM generate_series(1, 100)");
    RUN_UNTIL(notes > 0);
    (void)world_ask(listener,
                    "SELECT 'x'"); /* every earlier notification arrives before this reply */
    ck_assert_int_eq(notes, 1);
    pg_close(listener);
}
END_TEST

/* ---- days ---- */

START_TEST(days_are_made_ahead_and_only_once)
{
    ASSERT_REFUSED(db, "SELECT claimd.ensure_days(-1)", "CL002", "ahead: must be");
    ck_assert_int_eq(sql_number(db, "SELECT claimd.ensure_days(14)::text"), 0);
    ck_assert_int_eq(sql_number(db, "SELECT claimd.ensure_days(16)::text"), 2);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM pg_inherits WHERE inhparent = "
                                    "'claimd.job_history'::regclass"),
                     17);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM pg_indexes WHERE tablename ~ "
                                    "'^job_history_' AND indexdef LIKE '%%btree (id)%%'"),
                     17);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM pg_class WHERE relname ~ '^job_history_' AND "
                       "relkind = 'r' AND relowner <> 'claimd_scheduler'::regrole"),
        0);
}
END_TEST

START_TEST(a_day_is_attached_beside_an_open_reader_and_stops_no_writer)
{
    struct sql *reader = sql_open(world.conninfo);
    struct sql *maker = sql_open(world.conninfo);
    sql_run(maker, "SET ROLE claimd_scheduler");
    sql_run(reader, "BEGIN");
    sql_run(reader, "SELECT count(*)::text FROM claimd.jobs");
    sql_run(maker, "SET lock_timeout = '1s'");
    ck_assert_int_eq(sql_number(maker, "SELECT claimd.ensure_days(15)::text"), 1);
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    sql_run(db, "SET lock_timeout = '1s'");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.cancel(1)"), "cancelled");
    sql_close(reader);
    sql_close(maker);
}
END_TEST

START_TEST(a_missing_day_is_a_check_violation)
{
    ASSERT_REFUSED(db,
                   "INSERT INTO claimd.job_history (id, fence, created_at, scheduled_at, ready_at, "
                   "attempted_at, worker_id, attempt, crashes, generation, priority, share, state, "
                   "queue, kind, args, finalized_at) SELECT 1, 1, now(), now(), now(), now(), "
                   "gen_random_uuid(), 1, 0, 0, 4, 0, 'completed', 'q', 'k', '{}', '2001-01-01'",
                   "23514", "no partition");
}
END_TEST

/* ---- embedded queries ---- */

START_TEST(every_query_fits_the_schema_and_the_types_of_its_header)
{
    static char sql[16384];
    ck_assert_int_gt(sql_statement_count, 0);
    for (int i = 0; i < sql_statement_count; i++) {
        const char *text = sql_statements[i]->sql;
        if (strncmp(text, "VACUUM", 6) == 0 || strncmp(text, "COPY", 4) == 0) {
            continue; /* cannot be prepared */
        }
        write_prepare(db, sql_statements[i], sql, sizeof sql);
        const char *why = sql_refusal(db, "%s", sql);
        ck_assert_msg(why[0] == '\0', "%s: %s", sql_statements[i]->name, why);
        sql_run(db, "DEALLOCATE p");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sql");
    TCase *tc = tcase_create("sql");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, the_checks_name_the_states_of_the_model);
    tcase_add_test(tc, a_finish_takes_all_columns_of_a_job_along);
    tcase_add_test(tc, a_cancel_takes_all_columns_of_a_job_along);
    tcase_add_test(tc, the_view_derives_the_states_that_people_know);
    tcase_add_test(tc, the_view_has_all_columns_of_a_job);
    tcase_add_test(tc, the_view_has_the_values_of_a_job_before_and_after_its_end);
    tcase_add_test(tc, a_past_time_means_now_and_created_at_is_the_clock);
    tcase_add_test(tc, enqueue_stores_what_it_is_given);
    tcase_add_test(tc, enqueue_has_the_defaults_of_the_interface);
    tcase_add_test(tc, H1_enqueue_names_the_wrong_argument_and_stores_nothing);
    tcase_add_test(tc, args_of_a_megabyte_of_text_are_the_limit);
    tcase_add_test(tc, a_time_in_the_past_means_now_however_long_ago);
    tcase_add_test(tc, args_are_jsonb_or_untyped);
    tcase_add_test(tc, cancel_moves_a_waiting_job_to_the_history_and_is_repeatable);
    tcase_add_test(tc, cancel_says_why_it_can_not);
    tcase_add_test(tc, a_request_to_cancel_that_an_older_program_ignored_is_not_left_behind);
    tcase_add_test(tc, G4_a_completion_in_ones_own_transaction_takes_all_columns_along);
    tcase_add_test(tc, G4_a_completion_in_ones_own_transaction_is_fenced_and_checked);
    tcase_add_test(tc, a_cancel_of_a_running_job_asks_its_worker_and_only_for_that_run);
    tcase_add_test(tc,
                   what_a_cancel_has_asked_for_goes_with_the_run_whose_worker_has_not_heard_of_it);
    tcase_add_test(tc, every_claim_is_hot);
    tcase_add_test(tc, no_index_names_a_column_that_a_claim_changes);
    tcase_add_test(tc, what_forbids_scans_is_not_compiled);
    tcase_add_test(tc, fences_are_not_cached);
    tcase_add_test(tc, a_statement_notifies_once_and_only_while_the_leader_is_hungry);
    tcase_add_test(tc, days_are_made_ahead_and_only_once);
    tcase_add_test(tc, a_day_is_attached_beside_an_open_reader_and_stops_no_writer);
    tcase_add_test(tc, a_missing_day_is_a_check_violation);
    tcase_add_test(tc, every_query_fits_the_schema_and_the_types_of_its_header);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
