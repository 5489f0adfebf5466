/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs after jobs, many at once (feat.B9): the result is the same as with single calls. */
#include "support/pg_fixture.h"

#define ROUNDS 12

static struct sql *db;

static void run(const char *sql)
{
    sql_run(db, "%s", sql);
}

static void setup(void)
{
    world_setup();
    db = sql_open(world.conninfo);
    run("SELECT setseed(0.29)::text");
}

static void teardown(void)
{
    sql_close(db);
    world_teardown();
}

/* ---- both ways on random inputs ---- */

/* Makes five predecessors in random states; they are the same for each way. */
static const char make_first[] =
    "CREATE FUNCTION make_first(ends text[]) RETURNS bigint[] LANGUAGE plpgsql AS $$ "
    "DECLARE ids bigint[] := '{}'; BEGIN"
    " FOR n IN 1..5 LOOP"
    "  ids := ids || claimd.enqueue('a');"
    "  PERFORM end_job(ids[n], ends[n]);"
    " END LOOP; RETURN ids; END $$";

static const char end_job[] =
    "CREATE FUNCTION end_job(ended bigint, how text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN"
    " IF how = 'completed' THEN"
    "  UPDATE claimd.job SET state = 'running', fence = 1000 + id, attempt = 1 WHERE id = ended;"
    "  PERFORM claimd.complete_in_tx(ended, 1000 + ended);"
    " ELSIF how = 'cancelled' THEN PERFORM claimd.cancel(ended);"
    " END IF; END $$";

/* Makes random elements as enqueue_many() takes them, except that `after` has positions among the
 * first five. */
static const char draw[] =
    "CREATE FUNCTION draw() RETURNS jsonb LANGUAGE sql VOLATILE AS $$"
    " SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object('kind', 'b', 'args', n,"
    "  'after', a.list, 'after_jobs', p.list,"
    "  'if_dead', CASE WHEN a.list IS NOT NULL OR p.list IS NOT NULL"
    "             THEN ('{cancel,run,hold,null}'::text[])[1 + floor(random() * 4)] END,"
    "  'scheduled_at', CASE WHEN random() < 0.3 THEN '2100-01-01' END,"
    "  'expires_at', CASE WHEN random() < 0.3 THEN '2200-01-01' END)) ORDER BY n)"
    " FROM generate_series(0, 11) n"
    " CROSS JOIN LATERAL (SELECT jsonb_agg(i) AS list FROM generate_series(1, 5) i"
    "                      WHERE random() < 0.3 + 0 * n) a"
    " CROSS JOIN LATERAL (SELECT jsonb_agg(i) AS list FROM generate_series(0, n - 1) i"
    "                      WHERE random() < 0.2) p $$";

static const char named[] =
    "CREATE FUNCTION named(e jsonb, first bigint[]) RETURNS bigint[] LANGUAGE sql AS $$"
    " SELECT array_agg(first[i::int]) FROM jsonb_array_elements(e -> 'after') i $$";

static const char one_by_one[] =
    "CREATE FUNCTION one_by_one(jobs jsonb, first bigint[]) RETURNS bigint[]"
    " LANGUAGE plpgsql AS $$ DECLARE ids bigint[] := '{}'; e jsonb; BEGIN"
    " FOR e IN SELECT * FROM jsonb_array_elements(jobs) LOOP"
    "  ids := ids || claimd.enqueue('b', e -> 'args', if_dead => e ->> 'if_dead',"
    "   after => NULLIF(named(e, first) || ARRAY(SELECT ids[i::int + 1] FROM"
    "                   jsonb_array_elements(e -> 'after_jobs') i), '{}'),"
    "   scheduled_at => (e ->> 'scheduled_at')::timestamptz,"
    "   expires_at => (e ->> 'expires_at')::timestamptz);"
    " END LOOP; RETURN ids; END $$";

/* In the second way each element has a key; in the third some have one. */
static const char at_once[] =
    "CREATE FUNCTION at_once(jobs jsonb, first bigint[], keys text) RETURNS bigint[]"
    " LANGUAGE sql AS $$ SELECT ARRAY(SELECT claimd.enqueue_many((SELECT jsonb_agg(e ||"
    "   CASE WHEN e ? 'after' THEN jsonb_build_object('after', named(e, first)) ELSE '{}' END ||"
    "   CASE WHEN keys = '' OR (keys = 'some' AND n % 2 = 0) THEN '{}'"
    "        ELSE jsonb_build_object('unique_key', concat_ws(' ', first[1], 100 - n)) END"
    "   ORDER BY n)"
    "  FROM jsonb_array_elements(jobs) WITH ORDINALITY AS u(e, n)))) $$";

/* Describes the jobs, with positions instead of ids. */
static const char seen[] =
    "CREATE FUNCTION seen(ids bigint[], first bigint[]) RETURNS text LANGUAGE sql AS $$"
    " SELECT string_agg(concat_ws(' ', u.n, j.state, j.args, j.flags & 2096, j.scheduled_at > "
    "'2099-01-01', w.if_dead, w.scheduled_at > '2099-01-01', d.expires_at::date,"
    "  (SELECT string_agg(concat(array_position(first || ids, a.after_id), a.state), ','"
    "                     ORDER BY array_position(first || ids, a.after_id))"
    "     FROM claimd.job_after a WHERE a.job_id = u.id),"
    "  (SELECT string_agg(concat(array_position(first || ids, p.id), p.state), ','"
    "                     ORDER BY array_position(first || ids, p.id))"
    "     FROM claimd.predecessors(u.id) p)), E'\\n' ORDER BY u.n)"
    " FROM unnest(ids) WITH ORDINALITY AS u(id, n) JOIN claimd.jobs j USING (id)"
    " LEFT JOIN claimd.job_wait w ON w.job_id = u.id"
    " LEFT JOIN claimd.job_deadline d ON d.job_id = u.id $$";

/* Ends the open ones of the first five, then some of the others, and lets the leader release
 * jobs. */
static const char go_on[] =
    "CREATE FUNCTION go_on(ids bigint[], first bigint[], later text[]) RETURNS void"
    " LANGUAGE plpgsql AS $$ DECLARE u record; BEGIN"
    " FOR u IN SELECT j.id, later[n] AS how FROM unnest(first || ids) WITH ORDINALITY AS t(id, n)"
    "   JOIN claimd.jobs j USING (id) WHERE j.state = 'available' ORDER BY n LOOP"
    "  PERFORM end_job(u.id, u.how); END LOOP;"
    " WHILE (SELECT released > 0 FROM claimd.release_jobs()) LOOP END LOOP; END $$";

static const char compare[] =
    "CREATE FUNCTION compare(keys text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE"
    " jobs jsonb := draw();"
    " ends text[] := ARRAY(SELECT ('{open,open,completed,cancelled}'::text[])"
    "                             [1 + floor(random() * 4)] FROM generate_series(1, 5));"
    " later text[] := ARRAY(SELECT ('{completed,completed,cancelled,open}'::text[])"
    "                              [1 + floor(random() * 4)] FROM generate_series(1, 17));"
    " a bigint[] := make_first(ends); b bigint[] := make_first(ends);"
    " one bigint[] := one_by_one(jobs, a); many bigint[] := at_once(jobs, b, keys);"
    " BEGIN"
    "  FOR step IN 1..4 LOOP"
    "   IF seen(one, a) IS DISTINCT FROM seen(many, b) THEN"
    "    RETURN format(E'step %s of %s\\n%s\\n--\\n%s', step, jobs, seen(one, a), seen(many, b));"
    "   END IF;"
    "   PERFORM go_on(one, a, later); PERFORM go_on(many, b, later);"
    "  END LOOP;"
    "  RETURN COALESCE('waits: ' || (SELECT count(*) FROM jsonb_array_elements(jobs) e"
    "                                 WHERE e ? 'after' AND e ? 'after_jobs'), 'nothing drawn');"
    " END $$";

START_TEST(B9_many_at_once_wait_go_on_and_die_as_each_by_itself)
{
    static const char *const ways[] = {"SELECT compare('')", "SELECT compare('all')",
                                       "SELECT compare('some')"};
    static const char *const functions[] = {end_job, make_first, draw,  named,  one_by_one,
                                            at_once, seen,       go_on, compare};
    for (size_t i = 0; i < ARRAY_COUNT(functions); i++) {
        run(functions[i]);
    }
    for (int i = 0; i < ROUNDS; i++) {
        const char *got = sql_text(db, "%s", ways[_i]);
        ck_assert_msg(strncmp(got, "waits: ", strlen("waits: ")) == 0, "round %d: %s", i, got);
    }
}
END_TEST

/* ---- refusals ---- */

#define MANY(elements) "SELECT claimd.enqueue_many('[" elements "]')"
#define KEYED "{\"kind\": \"a\", \"unique_key\": \"k\"}, "

START_TEST(B9_of_many_the_first_whose_predecessor_is_unknown_is_named)
{
    run("SELECT claimd.enqueue('a')::text");
    ASSERT_REFUSED(
        db,
        MANY("{\"kind\": \"a\", \"after\": [1]}, {\"kind\": \"b\", \"after\": [98, 1, 97]}, "
             "{\"kind\": \"c\", \"after\": [96]}"),
        "CL003", "jobs[1]: after: job 97 not found");
    ASSERT_REFUSED(db, MANY(KEYED "{\"kind\": \"b\", \"after\": [97]}"), "CL003",
                   "jobs[1]: after: job 97 not found");
    ASSERT_REFUSED(db, MANY("{\"kind\": \"a\", \"after\": [97]}, {\"kind\": \"b\", \"prio\": 1}"),
                   "CL002", "jobs[1].prio: unknown");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 1);
}
END_TEST

START_TEST(B9_of_many_a_wrong_list_is_named_with_what_is_allowed)
{
    static const struct {
        const char *sql;
        const char *says;
    } wrong[] = {
        {MANY("{\"kind\": \"a\"}, {\"kind\": \"a\", \"after\": []}"),
         "jobs[1].after: must be 1 to 10000 ids"},
        {MANY("{\"kind\": \"a\", \"after\": [1, null]}"), "jobs[0].after: must be 1 to 10000 ids"},
        {MANY("{\"kind\": \"a\", \"after\": 1}"), "jobs[0].after: must be of type bigint[]"},
        {MANY("{\"kind\": \"a\", \"after\": [[1], [2]]}"), "jobs[0].after: must be a list of ids"},
        {MANY("{\"kind\": \"a\", \"if_dead\": \"run\"}"), "jobs[0].if_dead: needs after"},
        {MANY("{\"kind\": \"a\", \"after\": [1], \"if_dead\": \"x\"}"),
         "jobs[0].if_dead: must be cancel, run or hold"},
        {MANY("{\"kind\": \"a\", \"expires_at\": \"infinity\"}"),
         "jobs[0].expires_at: must lie before the year 2286"},
        {MANY(KEYED "{\"kind\": \"a\", \"after_jobs\": [1]}"), "jobs[1].after_jobs: must be 1 to"},
    };
    run("SELECT claimd.enqueue('a')::text FROM generate_series(1, 2)");
    ASSERT_REFUSED(db, wrong[_i].sql, "CL002", wrong[_i].says);
}
END_TEST

/* The ids of an array don't exist yet, so they cannot be named: otherwise two of its jobs could
 * wait for each other. */
START_TEST(B9_of_many_none_waits_for_an_id_that_it_guessed)
{
    ASSERT_REFUSED(db, MANY("{\"kind\": \"a\", \"after\": [2]}, {\"kind\": \"a\", \"after\": [1]}"),
                   "CL003", "jobs[0]: after: job 2 not found");
    ASSERT_REFUSED(db, MANY(KEYED "{\"kind\": \"a\", \"after\": [3]}"), "CL003", "not found");
}
END_TEST

START_TEST(B9_of_many_one_that_was_there_already_does_not_wait)
{
    run("SELECT claimd.enqueue('a', unique_key => 'k')::text");
    run(MANY("{\"kind\": \"b\"}, {\"kind\": \"a\", \"unique_key\": \"k\", \"on_conflict\": "
             "\"ignore\", \"after_jobs\": [0]}, {\"kind\": \"c\", \"after_jobs\": [1]}"));
    ck_assert_str_eq(
        sql_text(
            db,
            "SELECT string_agg(concat(id, kind, ' ', state), ',' ORDER BY kind) FROM claimd.jobs"),
        "1a available,2b available,3c waiting");
    ck_assert_str_eq(
        sql_text(db, "SELECT concat(job_id, ' after ', after_id) FROM claimd.job_after"),
        "3 after 1");
}
END_TEST

/* ---- at the same time ---- */

/* The call waits for the lock of job 1; meanwhile job 2, which its first element names, must be
 * free. */
START_TEST(B9_many_at_once_lock_those_before_them_in_the_order_of_ids)
{
    static const char *const statements[] = {
        MANY("{\"kind\": \"b\", \"after\": [2]}, {\"kind\": \"b\", \"after\": [1]}"),
        MANY("{\"kind\": \"b\", \"after\": [2], \"unique_key\": \"k\"}, "
             "{\"kind\": \"b\", \"after\": [1], \"unique_key\": \"l\"}"),
    };
    struct sql *other = sql_open(world.conninfo);
    run("SELECT claimd.enqueue('a')::text FROM generate_series(1, 2)");
    run("BEGIN");
    run("SELECT id::text FROM claimd.job WHERE id = 1 FOR UPDATE");
    sql_send(other, "%s", statements[_i]);
    RUN_UNTIL(sql_number(db, "SELECT count(*)::text FROM pg_locks WHERE NOT granted") == 1);
    run("SELECT id::text FROM claimd.job WHERE id = 2 FOR UPDATE NOWAIT");
    run("COMMIT");
    (void)sql_wait(other);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job_after"), 2);
    sql_close(other);
}
END_TEST

/* The leader need not look at jobs that the end of a predecessor will wake anyway: it handles only
 * a thousand per second. */
START_TEST(B9_of_many_the_leader_looks_only_at_those_whose_predecessors_have_all_ended)
{
    run("SELECT claimd.enqueue('a')::text FROM generate_series(1, 2)");
    run("SELECT claimd.cancel(1)");
    run(MANY("{\"kind\": \"b\", \"after\": [1, 2]}, {\"kind\": \"c\", \"after\": [1]}, "
             "{\"kind\": \"d\", \"after\": [1], \"after_jobs\": [0]}"));
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(kind, ' ') FROM claimd.job j JOIN "
                                  "claimd.job_wake w ON w.job_id = j.id"),
                     "c");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("after_many");
    TCase *tc = tcase_create("after_many");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, B9_many_at_once_wait_go_on_and_die_as_each_by_itself, 0, 3);
    tcase_add_test(tc, B9_of_many_the_first_whose_predecessor_is_unknown_is_named);
    tcase_add_loop_test(tc, B9_of_many_a_wrong_list_is_named_with_what_is_allowed, 0, 8);
    tcase_add_test(tc, B9_of_many_none_waits_for_an_id_that_it_guessed);
    tcase_add_test(tc, B9_of_many_one_that_was_there_already_does_not_wait);
    tcase_add_loop_test(tc, B9_many_at_once_lock_those_before_them_in_the_order_of_ids, 0, 2);
    tcase_add_test(tc, B9_of_many_the_leader_looks_only_at_those_whose_predecessors_have_all_ended);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
