/* SPDX-License-Identifier: Apache-2.0
 *
 * Unique jobs: how a key is made, how long it refuses others, and many producers at once. */
#include "sql/queries.h"
#include "sql_db.h"
#include "support/sql.h"

#include <stdio.h>

#define PRODUCERS 8
#define OPEN "SELECT count(*)::text FROM claimd.job"
#define KEYS "SELECT count(*)::text FROM claimd.job_key"

/* Returns the result of enqueue_unique(): "1 t" = job 1, inserted. */
static const char *unique(const char *arguments)
{
    return sql_text(db,
                    "SELECT id || ' ' || left(inserted::text, 1) FROM claimd.enqueue_unique(%s)",
                    arguments);
}

/* Ends job `id` in that state as a worker does: its row is deleted. */
static void end(int id, const char *state)
{
    sql_run(db,
            "WITH gone AS (DELETE FROM claimd.job WHERE id = %d RETURNING *) INSERT INTO "
            "claimd.job_history (%s, crashes, state) SELECT %s, crashes, '%s' FROM gone",
            id, sql_carried_columns, sql_carried_columns, state);
}

static void set_state(int id, const char *state)
{
    sql_run(db, "UPDATE claimd.job SET state = '%s' WHERE id = %d", state, id);
}

/* ---- one producer ---- */

START_TEST(a_second_job_with_a_key_is_refused_and_named)
{
    ck_assert_str_eq(sql_text(db, "SELECT claimd.enqueue('a', unique_key => 'k')::text"), "1");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', unique_key => 'k')", "CL004",
                   "unique_key: job 1 has this key and waits");
    ck_assert_str_eq(
        sql_text(db, "DO $$ DECLARE d text; BEGIN PERFORM claimd.enqueue('b', unique_key => 'k'); "
                     "EXCEPTION WHEN SQLSTATE 'CL004' THEN GET STACKED DIAGNOSTICS d = "
                     "PG_EXCEPTION_DETAIL; PERFORM set_config('test.detail', d, false); END $$"),
        "");
    ck_assert_str_eq(sql_text(db, "SELECT current_setting('test.detail')"), "1");
    ck_assert_str_eq(
        sql_text(db,
                 "SELECT claimd.enqueue('a', unique_key => 'k', on_conflict => 'ignore')::text"),
        "1");
    ck_assert_str_eq(unique("'a', unique_key => 'k'"), "1 f");
    ck_assert_str_eq(strchr(unique("'a', unique_key => 'other'"), ' '), " t");
    ck_assert_int_eq(sql_number(db, OPEN), 2);
}
END_TEST

START_TEST(a_key_is_free_when_its_job_ends_however_it_ends)
{
    static const char *const states[] = {"completed", "discarded", "cancelled"};
    for (size_t i = 0; i < ARRAY_COUNT(states); i++) {
        char *rest = NULL;
        const char *said = unique("'a', unique_key => 'k'");
        int id = (int)strtol(said, &rest, 10);
        ck_assert_str_eq(rest, " t");
        set_state(id, "running");
        ck_assert_str_eq(strchr(unique("'a', unique_key => 'k'"), ' '), " f");
        end(id, states[i]);
        ck_assert_int_eq(sql_number(db, KEYS), 0);
    }
    int64_t id = strtoll(unique("'a', unique_key => 'k'"), NULL, 10);
    sql_run(db, "SELECT claimd.cancel(%lld)", (long long)id);
    ck_assert_int_eq(sql_number(db, KEYS), 0);
}
END_TEST

#define WORKER "'00000000-0000-0000-0000-0000000000aa'::uuid"

/* Prepares the statement with the types of its header, as that role, and executes it. */
static void execute_as(const char *role, const struct pg_statement *s, const char *values)
{
    static char sql[8192];
    struct sql *pg = sql_open(world.conninfo);
    sql_run(pg, "SET ROLE %s", role);
    write_prepare(db, s, sql, sizeof sql);
    sql_run(pg, "%s", sql);
    sql_run(pg, "EXECUTE p(%s)", values);
    sql_close(pg);
}

START_TEST(every_statement_that_ends_a_job_frees_its_key)
{
#define FAILED "'{1}', '{7}', '{0}', '{failed}', '{why}', '{NULL}', " WORKER
    const struct {
        const char *role;
        const struct pg_statement *statement;
        const char *values;
        const char *state;
    } ends[] = {
        {"claimd_worker", &SQL_JOB_COMPLETE, "'{1}', '{7}', '{NULL}', " WORKER, "running"},
        {"claimd_worker", &SQL_JOB_COMPLETE_SKIP, "'{1}', '{7}', '{NULL}', " WORKER, "running"},
        {"claimd_worker", &SQL_JOB_DISCARD, FAILED, "running"},
        {"claimd_worker", &SQL_JOB_EXHAUST, "'{1}', '{a}', '{1}'", "available"},
        {"claimd_worker", &SQL_WORKER_HAND_BACK, WORKER, "running"},
        {"claimd_scheduler", &SQL_RESCUE_MOVE,
         "'{1}', '{7}', ARRAY[uuid_hash_extended(" WORKER ", 0)]", "running"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
        sql_run(db, "TRUNCATE claimd.job, claimd.job_history RESTART IDENTITY");
        ck_assert_str_eq(unique("'a', unique_key => 'k', max_attempts => 1"), "1 t");
        sql_run(db, "UPDATE claimd.job SET attempt = 1, fence = 7, attempted_at = now(), worker_id "
                    "= " WORKER);
        set_state(1, ends[i].state);
        execute_as(ends[i].role, ends[i].statement, ends[i].values);
        ck_assert_msg(sql_number(db, "SELECT count(*)::text FROM claimd.job_history") == 1 &&
                          sql_number(db, KEYS) == 0,
                      "%s", ends[i].statement->name);
    }
}
END_TEST

START_TEST(a_job_without_a_key_has_no_flags_and_one_with_a_key_shows_it)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    (void)unique("'a', unique_key => 'k'");
    (void)unique("'a', unique_key => 'day', unique_for => '1 day'");
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(flags || COALESCE(unique_key, '-'), ' ' ORDER "
                                  "BY id) FROM claimd.jobs"),
                     "0- 1k 0day");
}
END_TEST

START_TEST(the_states_say_how_long_a_job_stands_in_the_way)
{
    static const struct {
        const char *states;
        bool running, completed, discarded; /* refuses others */
    } table[] = {
        {"queued", false, false, false},
        {"open", true, false, false},
        {"completed", true, true, false},
        {"all", true, true, true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        static const char *const states[] = {"available", "running", "completed", "discarded"};
        const bool expected[] = {true, table[i].running, table[i].completed, table[i].discarded};
        for (size_t s = 0; s < ARRAY_COUNT(states); s++) {
            char arguments[128];
            sql_run(db, "TRUNCATE claimd.job, claimd.job_history, claimd.job_key");
            (void)snprintf(arguments, sizeof arguments,
                           "'a', unique_key => 'k', unique_for => '1 day', unique_states => '%s'",
                           table[i].states);
            int id = (int)strtol(unique(arguments), NULL, 10);
            set_state(id, "running");
            if (s < 2) {
                set_state(id, states[s]);
            } else {
                end(id, states[s]);
            }
            ck_assert_msg((strstr(unique(arguments), " f") != NULL) == expected[s], "%s %s",
                          table[i].states, states[s]);
        }
    }
}
END_TEST

START_TEST(a_period_ends_by_itself_and_outlives_the_job_until_then)
{
    ck_assert_str_eq(unique("'a', unique_key => 'k', unique_for => '1 hour'"), "1 t");
    end(1, "completed");
    ck_assert_str_eq(unique("'a', unique_key => 'k', unique_for => '1 hour'"), "1 f");
    sql_run(db, "UPDATE claimd.job_key SET expires_at = clock_timestamp()");
    ck_assert_str_eq(strchr(unique("'a', unique_key => 'k', unique_for => '1 hour'"), ' '), " t");
    sql_run(db, "UPDATE claimd.job_key SET expires_at = clock_timestamp()");
    ck_assert_str_eq(strchr(unique("'a', unique_key => 'k'"), ' '), " t");
    ck_assert_int_eq(sql_number(db, OPEN), 2);
}
END_TEST

#define QUEUED "unique_key => 'k', unique_states => 'queued'"
#define PROMISES "SELECT count(*)::text FROM claimd.job_promise"

START_TEST(a_queued_job_that_starts_before_the_commit_of_who_was_told_of_it_is_followed_by_another)
{
    struct sql *producer = sql_open(world.conninfo);
    sql_run(producer, "SET ROLE claimd_producer");
    (void)unique("'a', " QUEUED);
    sql_run(producer, "BEGIN");
    ck_assert_str_eq(
        sql_text(producer, "SELECT id || ' ' || inserted FROM claimd.enqueue_unique('a', '{\"n\": "
                           "2}', tags => '{t}', scheduled_at => '2100-01-01', " QUEUED ")"),
        "1 false");
    set_state(1, "running"); /* at once: it does not wait for the producer */
    ck_assert_int_eq(sql_number(db, OPEN), 1);
    sql_run(producer, "COMMIT");
    ck_assert_str_eq(
        sql_text(db,
                 "SELECT concat_ws(' ', args, tags, scheduled_at::date, unique_key, key.states) "
                 "FROM claimd.job JOIN claimd.job_key key ON job_id = id WHERE id > 1"),
        "{\"n\": 2} {t} 2100-01-01 k queued");
    ck_assert_int_eq(sql_number(db, PROMISES), 0);
    sql_close(producer);
}
END_TEST

START_TEST(a_queued_job_that_has_not_started_at_the_commit_can_not_start_before_it)
{
    struct sql *producer = sql_open(world.conninfo);
    sql_run(producer, "SET ROLE claimd_producer");
    (void)unique("'a', " QUEUED);
    sql_run(producer, "BEGIN");
    sql_run(producer, "SELECT id::text FROM claimd.enqueue_unique('a', " QUEUED ")");
    sql_run(producer, "SET CONSTRAINTS ALL IMMEDIATE"); /* as its COMMIT begins */
    sql_run(db, "SET lock_timeout = '50 ms'");
    ASSERT_REFUSED(db, "UPDATE claimd.job SET state = 'running'", "55P03", "lock timeout");
    sql_run(producer, "COMMIT");
    set_state(1, "running");
    ck_assert_int_eq(sql_number(db, OPEN), 1);
    ck_assert_int_eq(sql_number(db, PROMISES), 0);
    sql_close(producer);
}
END_TEST

START_TEST(a_queued_job_that_starts_while_it_is_to_be_changed_is_followed_by_another)
{
    struct sql *worker = sql_open(world.conninfo);
    sql_run(worker, "SET ROLE claimd_worker");
    struct sql *producer = sql_open(world.conninfo);
    (void)unique("'a', " QUEUED);
    sql_run(worker, "BEGIN");
    sql_run(worker, "UPDATE claimd.job SET state = 'running' WHERE id = 1");
    sql_send(producer,
             "SELECT claimd.enqueue('a', '{\"n\": 2}', on_conflict => 'replace_args', " QUEUED ")");
    RUN_UNTIL(sql_number(db, "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event_type = "
                             "'Lock' AND query LIKE '%%replace_args%%'") == 1);
    sql_run(worker, "COMMIT");
    sql_wait(producer);
    ck_assert_str_eq(
        sql_text(db, "SELECT string_agg(state || args, ' ' ORDER BY id) FROM claimd.job"),
        "running{} available{\"n\": 2}");
    sql_close(producer);
    sql_close(worker);
}
END_TEST

/* Only a queued job that is returned for its key must start after the commit. */
START_TEST(a_job_whose_key_is_not_for_its_queueing_alone_is_locked_by_nobody)
{
    (void)unique("'a', unique_key => 'k'");
    sql_run(db, "BEGIN");
    ck_assert_str_eq(unique("'a', " QUEUED), "1 f");
    ck_assert_int_eq(sql_number(db, PROMISES), 0);
    sql_run(db, "COMMIT");
}
END_TEST

START_TEST(a_key_is_made_of_what_unique_by_names)
{
    ck_assert_str_eq(unique("'a', '{\"x\": 1, \"y\": 1}', unique_by => '{kind,args.x}'"), "1 t");
    ck_assert_str_eq(unique("'a', '{\"x\": 1, \"y\": 2}', unique_by => '{args.x,kind}'"), "1 f");
    ck_assert_str_eq(unique("'b', '{\"x\": 1}', unique_by => '{kind,args.x}'"), "3 t");
    ck_assert_str_eq(unique("'a', '{\"x\": 2}', unique_by => '{kind,args.x}'"), "4 t");
    ck_assert_str_eq(unique("'a', '[]', unique_by => '{kind,args.x}'"), "5 t");
    ck_assert_str_eq(unique("'a', '{}', unique_by => '{kind,args.x}'"), "5 f");
    ck_assert_str_eq(unique("'a', '{\"b\": 1, \"a\": 2}', unique_by => '{args}'"), "7 t");
    ck_assert_str_eq(unique("'c', '{\"a\": 2, \"b\": 1}', 'q', unique_by => '{args}'"), "7 f");
    ck_assert_str_eq(unique("'c', queue => 'q', unique_by => '{queue,kind}'"), "9 t");
    ck_assert_str_eq(unique("'a', to_jsonb(repeat('x', 9000)), unique_by => '{args}'"), "10 t");
    ck_assert_str_eq(unique("'b', to_jsonb(repeat('x', 9000)), unique_by => '{args}'"), "10 f");
    ck_assert_str_eq(unique("'b', to_jsonb(repeat('x', 9001)), unique_by => '{args}'"), "12 t");
}
END_TEST

START_TEST(the_job_that_is_there_can_be_changed_while_it_waits)
{
    (void)unique("'a', '{\"n\": 1}', unique_key => 'k', scheduled_at => '2100-01-01'");
    ck_assert_str_eq(unique("'a', '{\"n\": 2}', unique_key => 'k', on_conflict => 'replace_args'"),
                     "1 f");
    ck_assert_str_eq(
        sql_text(
            db, "SELECT args::text || ' ' || version || ' ' || scheduled_at::date FROM claimd.job"),
        "{\"n\": 2} 2 2100-01-01");
    ck_assert_str_eq(unique("'a', unique_key => 'k', on_conflict => 'reschedule', scheduled_at => "
                            "'2001-01-01'"),
                     "1 f");
    ck_assert_str_eq(
        sql_text(db, "SELECT args::text || ' ' || version || ' ' || (ready_at BETWEEN now() - "
                     "interval '1 min' AND now() + interval '1 min')::text FROM claimd.job"),
        "{\"n\": 2} 3 true");
    ck_assert_int_eq(
        sql_number(
            db,
            "SELECT count(*)::text FROM claimd.job_edit WHERE job_id = 1 AND edited_by = "
            "session_user AND CASE version WHEN 2 THEN before = '{\"args\": {\"n\": 1}}' AND after "
            "= '{\"args\": {\"n\": 2}}' WHEN 3 THEN before ->> 'scheduled_at' LIKE '2100%%' END"),
        2);
    set_state(1, "running");
    ASSERT_REFUSED(db,
                   "SELECT claimd.enqueue('a', unique_key => 'k', on_conflict => 'replace_args')",
                   "CL004", "job 1 has this key and runs: only one that waits can be changed");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', unique_key => 'k', on_conflict => 'reschedule')",
                   "CL004", "job 1 has this key and runs: only one that waits can be changed");
}
END_TEST

START_TEST(feat_B29_a_key_may_be_one_for_each_kind_or_queue)
{
    ck_assert_str_eq(unique("'a', unique_key => 'k', unique_by => '{kind}'"), "1 t");
    ck_assert_str_eq(unique("'b', unique_key => 'k', unique_by => '{kind}'"), "2 t");
    ck_assert_str_eq(unique("'b', unique_key => 'k', unique_by => '{kind}', queue => 'q'"), "2 f");
    ck_assert_str_eq(unique("'b', unique_key => 'k', unique_by => '{queue,kind}'"), "4 t");
    ck_assert_str_eq(unique("'b', unique_key => 'k'"), "5 t");
}
END_TEST

START_TEST(feat_B29_args_and_time_of_the_job_that_waits_are_replaced_together)
{
    run("SELECT claimd.enqueue('a', '1', unique_key => 'k', scheduled_at => '2100-01-01Z')::text");
    ck_assert_str_eq(unique("'a', '2', unique_key => 'k', on_conflict => 'replace', scheduled_at "
                            "=> '2101-01-01Z'"),
                     "1 f");
    ck_assert_str_eq(
        sql_text(db,
                 "SELECT concat_ws(' ', args, scheduled_at AT TIME ZONE 'UTC') FROM claimd.job"),
        "2 2101-01-01 00:00:00");
    set_state(1, "running");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', unique_key => 'k', on_conflict => 'replace')",
                   "CL004", "only one that waits can be changed");
}
END_TEST

START_TEST(H1_what_is_wrong_about_a_key_is_named_and_nothing_is_stored)
{
    static const struct {
        const char *arguments;
        const char *text;
    } wrong[] = {
        {"unique_key => ''", "unique_key: must have 1 to 512 bytes"},
        {"unique_key => repeat('k', 513)", "unique_key: must have 1 to 512 bytes"},
        {"unique_key => 'k', unique_by => '{kind,args}'",
         "unique_by: together with unique_key, mu"},
        {"unique_by => '{}'", "unique_by: must be a list of kind, queue"},
        {"unique_by => '{kind,NULL}'", "unique_by: must be a list of kind, queue"},
        {"unique_by => '{args.}'", "unique_by: must be a list of kind, queue"},
        {"unique_by => '{priority}'", "unique_by: must be a list of kind, queue"},
        {"unique_for => '1 h'", "unique_for: needs unique_key or unique_by"},
        {"unique_states => 'open'", "unique_states: needs unique_key or unique_by"},
        {"unique_key => 'k', unique_for => '0'", "unique_for: must be more than 0"},
        {"unique_key => 'k', unique_for => '10 years'", "unique_for: must be more than 0"},
        {"unique_key => 'k', unique_states => 'running'", "unique_states: must be queued, open"},
        {"unique_key => 'k', unique_states => 'all'", "unique_states: all needs unique_for"},
        {"unique_key => 'k', on_conflict => 'replace_all'", "on_conflict: must be error, ignore"},
        {"unique_key => 'k', on_conflict => NULL", "on_conflict: must be error, ignore"},
        {"on_conflict => 'nothing'", "on_conflict: must be error, ignore"},
        {"unique_key => 'k', priority => 10", "priority: must be 0"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "SELECT claimd.enqueue('a', %s)", wrong[i].arguments);
        ASSERT_REFUSED(db, sql, "CL002", wrong[i].text);
    }
    ASSERT_REFUSED(db, "SELECT claimd.enqueue_unique('a')", "CL002", "unique_key: must be given");
    ASSERT_REFUSED(db,
                   "SELECT claimd.enqueue_many('[{\"kind\": \"a\"}, {\"kind\": \"a\", "
                   "\"unique_key\": \"k\", \"unique_states\": \"x\"}]')",
                   "CL002", "jobs[1].unique_states: must be queued");
    ck_assert_int_eq(sql_number(db, OPEN), 0);
    ck_assert_int_eq(sql_number(db, KEYS), 0);
}
END_TEST

START_TEST(enqueue_many_takes_keys_and_keeps_the_order_of_its_ids)
{
    (void)unique("'a', unique_key => 'there'");
    sql_run(db, "CREATE TABLE made AS SELECT * FROM claimd.enqueue_many('[{\"kind\": \"b\", "
                "\"unique_key\": \"z\"}, {\"kind\": \"b\"}, {\"kind\": \"b\", \"unique_key\": "
                "\"there\", \"on_conflict\": \"ignore\"}, {\"kind\": \"b\", \"unique_key\": "
                "\"c\"}]') WITH ORDINALITY AS t(id, n)");
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(COALESCE(unique_key, '-'), ' ' ORDER BY n) "
                                  "FROM made JOIN claimd.job USING (id)"),
                     "z - there c");
    ASSERT_REFUSED(db,
                   "SELECT claimd.enqueue_many('[{\"kind\": \"b\", \"unique_key\": \"new\"}, "
                   "{\"kind\": \"b\", \"unique_key\": \"there\"}]')",
                   "CL004", "jobs[1].unique_key: job 1 has this key and waits");
    ck_assert_int_eq(sql_number(db, OPEN), 4);
    ck_assert_int_eq(sql_number(db, KEYS), 3);
}
END_TEST

START_TEST(a_retried_job_takes_its_key_back_or_stays_where_it_is)
{
    (void)unique("'a', unique_key => 'k'");
    end(1, "discarded");
    sql_run(db, "SELECT claimd.retry(1)::text");
    ck_assert_str_eq(unique("'a', unique_key => 'k'"), "1 f");
    end(1, "discarded");
    ck_assert_str_eq(strchr(unique("'a', unique_key => 'k'"), ' '), " t");
    ASSERT_REFUSED(db, "SELECT claimd.retry(1)", "CL004", "has its unique key now");
    ck_assert_int_eq(sql_number(db, OPEN), 1);
}
END_TEST

/* Its end left the key behind, because another session had it locked then. */
START_TEST(S21_nobody_gets_the_key_of_a_job_that_is_being_retried)
{
    struct sql *producer = sql_open(world.conninfo);
    (void)unique("'a', unique_key => 'k'");
    end(1, "discarded");
    sql_run(db, "INSERT INTO claimd.job_key (key, job_id, states) VALUES ('k', 1, 'open')");
    sql_run(db, "BEGIN");
    sql_run(db, "SELECT claimd.retry(1)::text");
    sql_run(producer, "SET lock_timeout = '100 ms'");
    ASSERT_REFUSED(producer, "SELECT claimd.enqueue_unique('a', unique_key => 'k')", "55P03", "");
    sql_run(db, "COMMIT");
    ck_assert_str_eq(unique("'a', unique_key => 'k'"), "1 f");
    sql_close(producer);
}
END_TEST

START_TEST(keys_that_refuse_nobody_are_forgotten_and_the_others_kept)
{
    (void)unique("'a', unique_key => 'open'");
    (void)unique("'a', unique_key => 'day', unique_for => '1 day'");
    (void)unique("'a', unique_key => 'over', unique_for => '1 day'");
    (void)unique("'a', unique_key => 'left'");
    end(2, "completed");
    sql_run(db, "UPDATE claimd.job_key SET expires_at = now() WHERE key = 'over'");
    sql_run(db, "UPDATE claimd.job_key SET job_id = 99 WHERE key = 'left'");
    sql_run(db, "PREPARE forget AS %s", SQL_HISTORY_FORGET.sql);
    sql_run(db, "EXECUTE forget(14)");
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(key, ' ' ORDER BY key) FROM claimd.job_key"),
                     "day open");
}
END_TEST

START_TEST(a_producer_that_holds_a_key_locked_keeps_no_job_from_ending)
{
    struct sql *producer = sql_open(world.conninfo);
    sql_run(producer, "SET ROLE claimd_producer");
    (void)unique("'a', unique_key => 'k'");
    sql_run(db, "UPDATE claimd.job_key SET expires_at = now()");
    sql_run(producer, "BEGIN");
    sql_run(producer, "SELECT claimd.enqueue('a', unique_key => 'k')::text");
    sql_run(db, "SET lock_timeout = '200ms'");
    ck_assert_str_eq(sql_text(db, "SELECT claimd.cancel(1)"), "cancelled");
    sql_run(producer, "COMMIT");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_key JOIN claimd.job ON "
                                    "id = job_id AND unique_key = key"),
                     1);
    sql_close(producer);
}
END_TEST

/* ---- many producers ---- */

/* All of them run `sql` at once; each must succeed. */
static void run_all(const char *sql)
{
    struct sql *producers[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = sql_open(world.conninfo);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        sql_send(producers[i], "%s", sql);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        sql_wait(producers[i]);
        sql_close(producers[i]);
    }
}

START_TEST(many_producers_with_the_same_keys_make_one_job_of_each)
{
    run_all("DO $$ BEGIN FOR n IN 1..200 LOOP PERFORM claimd.enqueue_unique('a', unique_key => 'k' "
            "|| n); COMMIT; END LOOP; END $$");
    ck_assert_int_eq(sql_number(db, OPEN), 200);
    ck_assert_int_eq(sql_number(db, "SELECT count(DISTINCT unique_key)::text FROM claimd.job"),
                     200);
}
END_TEST

START_TEST(arrays_with_the_same_keys_in_any_order_lock_nobody_out)
{
    run_all("DO $$ BEGIN FOR n IN 1..20 LOOP PERFORM claimd.enqueue_many((SELECT "
            "jsonb_agg(jsonb_build_object('kind', 'a', 'unique_key', n || '-' || g, 'on_conflict', "
            "'ignore') ORDER BY random()) FROM generate_series(1, 20) g)); COMMIT; END LOOP; END "
            "$$");
    ck_assert_int_eq(sql_number(db, OPEN), 400);
}
END_TEST

/* The keys are locked at the commit, in their order. */
START_TEST(arrays_with_the_keys_of_queued_jobs_lock_nobody_out)
{
    sql_run(db, "SELECT claimd.enqueue('a', unique_key => md5(n::text), unique_states => 'queued') "
                "FROM generate_series(1, 40) n");
    run_all("DO $$ BEGIN FOR n IN 1..20 LOOP PERFORM claimd.enqueue_many((SELECT "
            "jsonb_agg(jsonb_build_object('kind', 'a', 'unique_key', md5(g::text), 'unique_states',"
            " 'queued', 'on_conflict', 'ignore') ORDER BY random()) FROM generate_series(1, 40) "
            "g)); COMMIT; FOR g IN 1..5 LOOP PERFORM claimd.enqueue('a', unique_key => "
            "md5((random() * 40)::integer::text), unique_states => 'queued', on_conflict => "
            "'ignore'); END LOOP; COMMIT; END LOOP; END $$");
    ck_assert_int_le(sql_number(db, OPEN), 41);
    ck_assert_int_eq(sql_number(db, PROMISES), 0);
}
END_TEST

START_TEST(one_job_of_a_key_is_open_while_others_end)
{
    run_all("DO $$ DECLARE made bigint; BEGIN FOR n IN 1..300 LOOP SELECT id INTO made FROM "
            "claimd.enqueue_unique('a', unique_key => 'k' || n % 3) WHERE inserted; COMMIT; IF "
            "(SELECT count(*) <> count(DISTINCT unique_key) FROM claimd.job) THEN RAISE 'two open "
            "jobs of a key'; END IF; IF made IS NOT NULL THEN PERFORM claimd.cancel(made); END IF; "
            "COMMIT; END LOOP; END $$");
    ck_assert_int_eq(sql_number(db, OPEN), 0);
    ck_assert_int_ge(sql_number(db, "SELECT count(*)::text FROM claimd.job_history"), 300);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sql_unique");
    TCase *tc = tcase_create("sql_unique");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_second_job_with_a_key_is_refused_and_named);
    tcase_add_test(tc, a_key_is_free_when_its_job_ends_however_it_ends);
    tcase_add_test(tc, every_statement_that_ends_a_job_frees_its_key);
    tcase_add_test(tc, a_job_without_a_key_has_no_flags_and_one_with_a_key_shows_it);
    tcase_add_test(tc, the_states_say_how_long_a_job_stands_in_the_way);
    tcase_add_test(tc, a_period_ends_by_itself_and_outlives_the_job_until_then);
    tcase_add_test(
        tc,
        a_queued_job_that_starts_before_the_commit_of_who_was_told_of_it_is_followed_by_another);
    tcase_add_test(tc, a_queued_job_that_has_not_started_at_the_commit_can_not_start_before_it);
    tcase_add_test(tc, a_queued_job_that_starts_while_it_is_to_be_changed_is_followed_by_another);
    tcase_add_test(tc, a_job_whose_key_is_not_for_its_queueing_alone_is_locked_by_nobody);
    tcase_add_test(tc, a_key_is_made_of_what_unique_by_names);
    tcase_add_test(tc, the_job_that_is_there_can_be_changed_while_it_waits);
    tcase_add_test(tc, feat_B29_a_key_may_be_one_for_each_kind_or_queue);
    tcase_add_test(tc, feat_B29_args_and_time_of_the_job_that_waits_are_replaced_together);
    tcase_add_test(tc, H1_what_is_wrong_about_a_key_is_named_and_nothing_is_stored);
    tcase_add_test(tc, enqueue_many_takes_keys_and_keeps_the_order_of_its_ids);
    tcase_add_test(tc, a_retried_job_takes_its_key_back_or_stays_where_it_is);
    tcase_add_test(tc, S21_nobody_gets_the_key_of_a_job_that_is_being_retried);
    tcase_add_test(tc, keys_that_refuse_nobody_are_forgotten_and_the_others_kept);
    tcase_add_test(tc, a_producer_that_holds_a_key_locked_keeps_no_job_from_ending);
    tcase_add_test(tc, many_producers_with_the_same_keys_make_one_job_of_each);
    tcase_add_test(tc, arrays_with_the_same_keys_in_any_order_lock_nobody_out);
    tcase_add_test(tc, arrays_with_the_keys_of_queued_jobs_lock_nobody_out);
    tcase_add_test(tc, one_job_of_a_key_is_open_while_others_end);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
