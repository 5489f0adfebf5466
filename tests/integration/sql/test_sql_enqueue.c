/* SPDX-License-Identifier: Apache-2.0
 *
 * Many jobs by one call. */
#include "sql_db.h"
#include "support/backoff_cases.h"
#include "whole_job.h"

#include <libpq-fe.h>
#include <stdio.h>

#define JOBS "SELECT count(*)::text FROM claimd.job"

/* ---- a kind that no worker has served ---- */

static int notices;
static char notice[256];

static void on_notice(void *ctx, const char *text)
{
    (void)ctx;
    notices++;
    (void)snprintf(notice, sizeof notice, "%s", text);
}

/* Returns the number of notices. */
static int told(PGconn *conn, const char *sql)
{
    notices = 0;
    PGresult *r = PQexec(conn, sql);
    ck_assert_msg(PQresultStatus(r) == PGRES_TUPLES_OK, "%s: %s", sql, PQerrorMessage(conn));
    PQclear(r);
    return notices;
}

START_TEST(a_kind_that_no_worker_has_served_is_told_by_a_notice)
{
    static const char many[] =
        "SELECT claimd.enqueue_many('[{\"kind\": \"mail\"}, {\"kind\": \"mial\"}, {\"kind\": "
        "\"mial\"}, {\"kind\": \"maill\"}]')";
    PGconn *conn = PQconnectdb(world.conninfo);
    ck_assert_int_eq(PQstatus(conn), CONNECTION_OK);
    (void)PQsetNoticeProcessor(conn, on_notice, NULL);
    sql_run(db, "SELECT claimd.set_kind('mial', '{\"max_attempts\": 3}')::text");
    ck_assert_int_eq(told(conn, "SELECT claimd.enqueue('mial')"), 0); /* no worker yet */
    sql_run(db, "INSERT INTO claimd.kind (name) VALUES ('mail') RETURNING 'x'");
    ck_assert_int_eq(told(conn, "SELECT claimd.enqueue('mail')"), 0);
    ck_assert_int_eq(told(conn, "SELECT claimd.enqueue('mail', unique_key => 'a')"), 0);
    ck_assert_int_eq(told(conn, "SELECT claimd.enqueue('mial')"), 1);
    ck_assert_ptr_nonnull(strstr(notice, "kind: no worker has served 'mial' so far"));
    ck_assert_int_eq(told(conn, "SELECT claimd.enqueue('mial', unique_key => 'b')"), 1);
    ck_assert_int_eq(told(conn, "SELECT claimd.enqueue_unique('mial', unique_key => 'c')"), 1);
    ck_assert_int_eq(told(conn, many), 2); /* each name once */
    ck_assert_str_eq(sql_text(db, JOBS), "10");
    sql_run(db, "WITH gone AS (DELETE FROM claimd.kind RETURNING 1) SELECT 'x' FROM gone");
    PQfinish(conn);
}
END_TEST

START_TEST(enqueue_many_takes_what_enqueue_takes)
{
    ck_assert_str_eq(
        sql_text(db, "SELECT string_agg(name, ' ' ORDER BY n) FROM pg_proc, unnest(proargnames) "
                     "WITH ORDINALITY AS p(name, n) WHERE oid = 'claimd.enqueue'::regproc"),
        sql_text(db,
                 "SELECT array_to_string(array_remove(claimd.request_keys(), 'after_jobs'), ' ')"));
}
END_TEST

START_TEST(enqueue_many_stores_each_element_as_enqueue_would)
{
    sql_run(db, "SELECT claimd.enqueue('plain')::text");
    sql_run(db, "SELECT claimd.enqueue('mail', '{\"to\": \"x\"}', 'slow', 9, '2100-01-01', 3, '90 "
                "s', share_key => 'tenant', tags => '{a,b}', metadata => '{\"m\": 1}')::text");
    sql_run(
        db,
        "SELECT claimd.enqueue_many('[{\"kind\": \"plain\", \"queue\": null}, {\"kind\": \"mail\", "
        "\"args\": {\"to\": \"x\"}, \"queue\": \"slow\", \"priority\": 9, \"scheduled_at\": "
        "\"2100-01-01\", \"max_attempts\": 3, \"timeout\": 90, \"share_key\": \"tenant\", "
        "\"tags\": [\"a\", \"b\"], \"metadata\": {\"m\": 1}}]')::text");
    ck_assert_str_eq(
        sql_text(db, "SELECT count(*) || ' ' || count(DISTINCT to_jsonb(j) - "
                     "'{id,created_at,scheduled_at,ready_at}'::text[]) || ' ' || count(DISTINCT "
                     "scheduled_at) FILTER (WHERE kind = 'mail') FROM claimd.job j"),
        "4 2 1");
}
END_TEST

/* try_way(): names the given values that one way to enqueue does not store. %s is replaced by the
 * arguments by name, from the row `r`. */
#define TRY_WAY                                                                                   \
    "CREATE FUNCTION try_way(way text, keys text[]) RETURNS text LANGUAGE plpgsql AS $$ DECLARE"  \
    " lost text; BEGIN EXECUTE format('WITH done AS MATERIALIZED (' || way || ') SELECT count(*)" \
    " FROM done', (SELECT string_agg(format('%1$I => r.%1$I', k), ', ') FROM unnest(keys) k));"   \
    " SELECT string_agg(k, ' ') INTO lost FROM claimd.job j, given r, unnest(keys) k"             \
    " WHERE to_jsonb(j) -> k IS DISTINCT FROM to_jsonb(r) -> k;"                                  \
    " DELETE FROM claimd.job; RETURN COALESCE(lost, ''); END $$"

static const struct {
    const char *way;
    const char *without; /* excluded parameters: a key would make it another way */
} ways[] = {
    {"SELECT claimd.enqueue(%s) FROM given r", "unique_key"},
    {"SELECT claimd.enqueue(%s) FROM given r", ""},
    {"SELECT claimd.enqueue_unique(%s) FROM given r", ""},
    {"SELECT claimd.enqueue_many(jsonb_build_array(to_jsonb(r) - ''unique_key'')) FROM given r",
     "unique_key"},
    {"SELECT claimd.enqueue_many(jsonb_build_array(to_jsonb(r))) FROM given r", ""},
};

START_TEST(each_way_to_enqueue_stores_all_that_a_job_may_be_given)
{
    put_whole_job(db);
    sql_run(db, "CREATE TABLE given AS SELECT r.* FROM before, "
                "jsonb_populate_record(NULL::claimd.job_request, row) r");
    sql_run(db, "DELETE FROM claimd.job");
    sql_run(db, "%s", TRY_WAY);
    ck_assert_str_eq(
        sql_text(db,
                 "SELECT try_way('%s', ARRAY(SELECT k FROM unnest(claimd.request_keys()) k, before "
                 "WHERE row ? k AND k <> '%s'))",
                 ways[_i].way, ways[_i].without),
        "");
}
END_TEST

START_TEST(the_ids_come_in_the_order_of_the_array)
{
    ck_assert_str_eq(
        sql_text(db, "WITH ids AS MATERIALIZED (SELECT id, n FROM claimd.enqueue_many((SELECT "
                     "jsonb_agg(jsonb_build_object('kind', 'a', 'args', g)) FROM "
                     "generate_series(1, 3000) g)) WITH ORDINALITY AS t(id, n)) SELECT count(*) || "
                     "' ' || max(id) || ' ' || bool_and(id = n) FROM ids"),
        "3000 3000 true");
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.job WHERE args::bigint = id"), 3000);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.enqueue_many('[]')"), 0);
}
END_TEST

START_TEST(feat_B28_a_share_key_is_kept_and_gives_the_same_share_on_each_way_in)
{
    sql_run(db, "SELECT claimd.enqueue('a', share_key => 't')::text");
    sql_run(db, "SELECT claimd.enqueue('a', share_key => 't', unique_key => 'u')::text");
    sql_run(db, "SELECT claimd.enqueue_many('[{\"kind\": \"a\", \"share_key\": \"t\"}, {\"kind\": "
                "\"a\"}]')::text");
    sql_run(db, "SET ROLE claimd_producer");
    sql_run(db, "INSERT INTO claimd.job (kind, share_key, share) VALUES ('a', 't', "
                "claimd.share_of('t')), ('a', NULL, COALESCE(claimd.share_of(NULL), 0))");
    ASSERT_REFUSED(db, "INSERT INTO claimd.job (kind, share_key) VALUES ('a', 't')", "23514",
                   "job_share_key_form");
    sql_run(db, "RESET ROLE");
    ck_assert_str_eq(
        sql_text(db,
                 "SELECT count(*) || ' ' || count(DISTINCT share) || ' ' || (SELECT max(share) "
                 "FROM claimd.job WHERE share_key IS NULL) FROM claimd.job WHERE share_key = 't'"),
        "4 1 0");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue('a', share_key => repeat('k', 513))", "CL002",
                   "share_key: must have 1 to 512 bytes");
}
END_TEST

/* A scheduler of the previous release knows only these. */
START_TEST(B40_shares_stay_below_64_until_the_upgrade_is_finished)
{
    static const char most[] = "SELECT max(claimd.share_of('t' || n))::text FROM"
                               " generate_series(1, 2000) n";
    int64_t many = sql_number(
        db,
        "SELECT count(DISTINCT claimd.share_of('t' || n))::text FROM generate_series(1, 2000) n");
    ck_assert_int_gt(many, 1700); /* 2,000 less about 120 collisions */
    ck_assert_int_gt(sql_number(db, "%s", most), 16000);
    sql_run(db, "UPDATE claimd.cluster SET oldest_program = 1");
    ck_assert_int_eq(sql_number(db, "%s", most), 63);
}
END_TEST

START_TEST(H1_enqueue_many_names_the_element_and_the_field_and_stores_nothing)
{
    static const struct {
        const char *jobs;
        const char *text;
    } wrong[] = {
        {"NULL", "jobs: must be a JSON array of objects"},
        {"'{}'", "jobs: must be a JSON array of objects"},
        {"'[{\"kind\": \"a\"}, 5]'", "jobs[1]: must be an object"},
        {"'[{\"kind\": \"a\"}, [\"kind\"]]'", "jobs[1]: must be an object"},
        {"'[{\"kind\": \"a\"}, null]'", "jobs[1]: must be an object"},
        {"'[{\"kind\": \"a\"}, {}]'", "jobs[1].kind: must match"},
        {"'[{\"kind\": \"a\"}, {\"kind\": \"B\"}]'", "jobs[1].kind: must match"},
        {"'[{\"kind\": \"a\", \"prio\": 1}]'", "jobs[0].prio: unknown, must be one of kind, args"},
        {"'[{\"kind\": \"a\", \"prioritty\": 1}]'", "grace; did you mean 'priority'?"},
        {"'[{\"kind\": \"a\", \"queue\": \"\"}]'", "jobs[0].queue: must match"},
        {"'[{\"kind\": \"a\", \"priority\": 10}]'", "jobs[0].priority: must be 0 (first) to 9"},
        {"'[{\"kind\": \"a\", \"priority\": \"x\"}]'", "jobs[0].priority: must be of type integer"},
        {"'[{\"kind\": \"a\", \"priority\": 1.5}]'", "jobs[0].priority: must be of type integer"},
        {"'[{\"kind\": \"a\", \"priority\": 1e12}]'", "jobs[0].priority: must be of type integer"},
        {"'[{\"kind\": \"a\", \"scheduled_at\": \"soon\"}]'",
         "jobs[0].scheduled_at: must be of type timestamp with time zone"},
        {"'[{\"kind\": \"a\", \"scheduled_at\": \"infinity\"}]'", "jobs[0].scheduled_at: must lie"},
        {"'[{\"kind\": \"a\", \"max_attempts\": 0}]'", "jobs[0].max_attempts: must be"},
        {"'[{\"kind\": \"a\", \"timeout\": \"0 s\"}]'", "jobs[0].timeout: must be more than 0"},
        {"'[{\"kind\": \"a\", \"timeout\": \"long\"}]'", "jobs[0].timeout: must be of type"},
        {"'[{\"kind\": \"a\", \"tags\": \"t\"}]'", "jobs[0].tags: must be of type text[]"},
        {"jsonb_build_array(jsonb_build_object('kind', 'a', 'args', repeat('x', 1048575)))",
         "jobs[0].args: at most 1048576 bytes"},
        {"jsonb_build_array(jsonb_build_object('kind', 'a', 'metadata', repeat('x', 70000)))",
         "jobs[0].metadata: at most 65536 bytes"},
        {"'[{\"kind\": \"a\", \"metadata\": 5}]'", "jobs[0].metadata: must be a JSON object"},
        {"'[{\"kind\": \"a\", \"tags\": [null]}]'",
         "jobs[0].tags: must be a list of texts, without"},
        {"'[{\"kind\": \"a\", \"tags\": [[\"a\"], [\"b\"]]}]'", "jobs[0].tags: must be a list of"},
        {"'[{\"kind\": \"a\", \"tags\": [\"\"]}]'",
         "jobs[0].tags: must be a list of texts, none of them empty"},
        {"'[{\"kind\": \"a\", \"tags\": [\"\"], \"unique_key\": \"k\"}]'",
         "jobs[0].tags: must be a list of texts, none of them empty"},
        {"'[{\"kind\": \"a\", \"after\": [[1], [2]]}]'", "jobs[0].after: must be a list of ids"},
        {"'[{\"kind\": \"a\", \"exclusive_key\": \"\"}]'", "jobs[0].exclusive_key: must have 1"},
        {"'[{\"kind\": \"a\", \"share_key\": \"\"}]'", "jobs[0].share_key: must have 1 to 512"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "SELECT claimd.enqueue_many(%s)::text", wrong[i].jobs);
        ASSERT_REFUSED(db, sql, "CL002", wrong[i].text);
    }
    ck_assert_int_eq(sql_number(db, JOBS), 0);
}
END_TEST

START_TEST(a_producer_may_call_enqueue_many_and_not_its_parts)
{
    struct sql *producer = sql_open(world.conninfo);
    sql_run(producer, "SET ROLE claimd_producer");
    sql_run(producer, "SELECT claimd.enqueue_many('[{\"kind\": \"a\"}]')::text");
    ASSERT_REFUSED(producer, "SELECT claimd.enqueue_many('[{\"kind\": \"A\"}]')::text", "CL002",
                   "jobs[0].kind");
    ASSERT_REFUSED(producer, "SELECT claimd.refuse_requests('[{\"kind\": \"a\"}]')", "42501",
                   "refuse_requests");
    sql_close(producer);
    struct sql *worker = sql_open(world.conninfo);
    sql_run(worker, "SET ROLE claimd_worker");
    ASSERT_REFUSED(worker, "SELECT claimd.enqueue_many('[{\"kind\": \"a\"}]')::text", "42501",
                   "enqueue_many");
    sql_close(worker);
    ck_assert_int_eq(sql_number(db, JOBS), 1);
}
END_TEST

/* ---- backoff ---- */

START_TEST(a_backoff_is_taken_and_refused_as_the_worker_reads_it)
{
    char sql[512];
    for (size_t i = 0; i < ARRAY_COUNT(backoff_delays); i++) {
        sql_run(db, "SELECT claimd.enqueue('a', backoff => '%s')::text", backoff_delays[i].text);
    }
    ck_assert_int_eq(sql_number(db, JOBS), ARRAY_COUNT(backoff_delays));
    for (size_t i = 0; i < ARRAY_COUNT(backoff_malformed); i++) {
        (void)snprintf(sql, sizeof sql, "SELECT claimd.enqueue('a', backoff => '%s')::text",
                       backoff_malformed[i]);
        ASSERT_REFUSED(db, sql, "CL002", "backoff: must be exponential:15s:1h");
        (void)snprintf(sql, sizeof sql,
                       "SELECT claimd.enqueue_many('[{\"kind\": \"a\", \"backoff\": "
                       "\"%s\"}]')::text",
                       backoff_malformed[i]);
        ASSERT_REFUSED(db, sql, "CL002", "jobs[0].backoff: must be exponential:15s:1h");
        (void)snprintf(sql, sizeof sql, "INSERT INTO claimd.job (kind, backoff) VALUES ('a', '%s')",
                       backoff_malformed[i]);
        ASSERT_REFUSED(db, sql, "23514", "job_backoff");
    }
    ck_assert_int_eq(sql_number(db, JOBS), ARRAY_COUNT(backoff_delays));
}
END_TEST

START_TEST(feat_B29_an_array_says_which_of_its_jobs_were_made)
{
    sql_run(db, "SELECT claimd.enqueue('a', unique_key => 'k')::text");
    ck_assert_str_eq(
        sql_text(db, "SELECT string_agg(id || ' ' || inserted, ',') FROM "
                     "claimd.enqueue_many_unique('[{\"kind\": \"b\"}, {\"kind\": \"a\", "
                     "\"unique_key\": \"k\", \"on_conflict\": \"ignore\"}, {\"kind\": \"c\"}]')"),
        "2 true,1 false,3 true");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue_many_unique('{}')", "CL002",
                   "jobs: must be a JSON array of objects");
    ASSERT_REFUSED(db, "SELECT claimd.enqueue_many_unique('[{\"kind\": \"A\"}]')", "CL002",
                   "jobs[0].kind: must match");
}
END_TEST

START_TEST(feat_B29_jobs_of_an_array_may_come_after_others_of_it)
{
    sql_run(db, "SELECT claimd.enqueue('z')::text");
    sql_run(
        db,
        "SELECT count(*)::text FROM claimd.enqueue_many('[{\"kind\": \"a\"}, {\"kind\": \"b\"}, "
        "{\"kind\": \"c\", \"after_jobs\": [0, 1], \"after\": [1], \"if_dead\": \"run\"}]')");
    ck_assert_str_eq(
        sql_text(db, "SELECT string_agg(kind || ' ' || state, ',' ORDER BY id) FROM claimd.jobs"),
        "z available,a available,b available,c waiting");
    ck_assert_str_eq(
        sql_text(db, "SELECT string_agg(a.after_id::text, ' ' ORDER BY after_id) || min(w.if_dead) "
                     "FROM claimd.job_after a JOIN claimd.job_wait w USING (job_id)"),
        "1 2 3run");
}
END_TEST

START_TEST(feat_B29_a_position_that_is_no_element_before_is_refused)
{
#define AFTER(positions)                                                                           \
    "SELECT claimd.enqueue_many('[{\"kind\": \"a\"}, {\"kind\": \"b\", \"after_jobs\": " positions \
    "}]')"
#define WRONG \
    "jobs[1].after_jobs: must be 1 to 10000 positions, from 0, of elements before this one"
    ASSERT_REFUSED(db, AFTER("[1]"), "CL002", WRONG);
    ASSERT_REFUSED(db, AFTER("[-1]"), "CL002", WRONG);
    ASSERT_REFUSED(db, AFTER("[]"), "CL002", WRONG);
    ASSERT_REFUSED(db, AFTER("[null]"), "CL002", WRONG);
    ASSERT_REFUSED(db, AFTER("\"a\""), "CL002", "jobs[1].after_jobs: must be of type integer[]");
    ASSERT_REFUSED(db, "SELECT claimd.batch_open('b', '{\"kind\": \"a\", \"after_jobs\": [0]}')",
                   "CL002", "follow_up.after_jobs: must be");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sql_enqueue");
    TCase *tc = tcase_create("sql_enqueue");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_kind_that_no_worker_has_served_is_told_by_a_notice);
    tcase_add_test(tc, enqueue_many_takes_what_enqueue_takes);
    tcase_add_test(tc, a_backoff_is_taken_and_refused_as_the_worker_reads_it);
    tcase_add_test(tc, enqueue_many_stores_each_element_as_enqueue_would);
    tcase_add_loop_test(tc, each_way_to_enqueue_stores_all_that_a_job_may_be_given, 0,
                        ARRAY_COUNT(ways));
    tcase_add_test(tc, the_ids_come_in_the_order_of_the_array);
    tcase_add_test(tc, feat_B28_a_share_key_is_kept_and_gives_the_same_share_on_each_way_in);
    tcase_add_test(tc, B40_shares_stay_below_64_until_the_upgrade_is_finished);
    tcase_add_test(tc, H1_enqueue_many_names_the_element_and_the_field_and_stores_nothing);
    tcase_add_test(tc, a_producer_may_call_enqueue_many_and_not_its_parts);
    tcase_add_test(tc, feat_B29_an_array_says_which_of_its_jobs_were_made);
    tcase_add_test(tc, feat_B29_jobs_of_an_array_may_come_after_others_of_it);
    tcase_add_test(tc, feat_B29_a_position_that_is_no_element_before_is_refused);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
