/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules for a row of `job`, which triggers test (decision 22), however a row is inserted or
 * changed. */
#include "sql_db.h"

#include <stdio.h>

/* Values that break each rule. */
static const struct {
    const char *columns;
    const char *values;
    const char *rule;
} wrong[] = {
    {"kind", "'Mail'", "job_kind_name"},
    {"kind", "repeat('a', 65)", "job_kind_name"},
    {"kind, queue", "'a', ''", "job_queue_name"},
    {"kind, queue", "'a', repeat('q', 65)", "job_queue_name"},
    {"kind, priority", "'a', 10", "job_priority_range"},
    {"kind, share", "'a', 16384", "job_share_range"},
    {"kind, state", "'a', 'completed'", "job_state"},
    {"kind, scheduled_at", "'a', 'infinity'", "job_scheduled_at_range"},
    {"kind, scheduled_at", "'a', '-infinity'", "job_scheduled_at_range"},
    {"kind, max_attempts", "'a', 0", "job_max_attempts_range"},
    {"kind, timeout", "'a', '0'", "job_timeout_range"},
    {"kind, timeout", "'a', '367 days'", "job_timeout_range"},
    {"kind, args", "'a', to_jsonb(repeat('x', 1048575))", "job_args_size"},
    {"kind, metadata", "'a', to_jsonb(repeat('x', 70000))", "job_metadata_size"},
    /* Numbers that take few bytes in storage, and many when printed. */
    {"kind, args", "'a', (SELECT jsonb_agg(1e131071::numeric) FROM generate_series(1, 120))",
     "job_args_size"},
    {"kind, args", "'a', (SELECT jsonb_agg(round(1.0, 16383)) FROM generate_series(1, 120))",
     "job_args_size"},
    {"kind, args", "'a', '{\"n\": [1e65536]}'", "job_args_size"},
    {"kind, args", "'a', '{\"n\": -1e131071}'", "job_args_size"},
    {"kind, metadata", "'a', '{\"n\": 1e131071}'", "job_metadata_size"},
    {"kind, tags", "'a', array_fill('tag'::text, '{2000}')", "job_tags_size"},
    {"kind, unique_key", "'a', ''", "job_unique_key_size"},
    {"kind, unique_key", "'a', repeat('u', 513)", "job_unique_key_size"},
    {"kind, backoff", "'a', 'soon'", "job_backoff_valid"},
    {"kind, exclusive_key, flags", "'a', '', 2", "job_exclusive_key_form"},
    {"kind, exclusive_key, flags, second_key", "'a', 'e', 2, ''", "job_second_key_form"},
    {"kind, share_key, share", "'a', '', 1", "job_share_key_form"},
    {"kind, share_key", "'a', 's'", "job_share_key_form"},
    {"kind, grace", "'a', '0 s'", "job_grace_range"},
    {"kind, grace", "'a', '61 min'", "job_grace_range"},
};

START_TEST(H1_a_plain_insert_is_checked_row_by_row)
{
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "INSERT INTO claimd.job (%s) VALUES (%s)", wrong[i].columns,
                       wrong[i].values);
        ASSERT_REFUSED(db, sql, "23514", wrong[i].rule);
    }
    ASSERT_REFUSED(db, "INSERT INTO claimd.job (queue) VALUES ('a')", "23502", "kind");
    ASSERT_REFUSED(db,
                   "INSERT INTO claimd.job (kind) SELECT CASE n WHEN 900 THEN 'B' ELSE 'a' END"
                   " FROM generate_series(1, 1000) n",
                   "23514", "job_kind_name");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 0);
}
END_TEST

START_TEST(H1_an_update_of_a_job_is_checked_by_the_same_rules)
{
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql, "UPDATE claimd.job SET (%s) = ROW(%s)", wrong[i].columns,
                       wrong[i].values);
        ASSERT_REFUSED(db, sql, "23514", wrong[i].rule);
    }
    /* The values that these need are in other columns. */
    sql_run(db, "UPDATE claimd.job SET exclusive_key = 'e', share_key = 's', flags = 2, share = 1");
    ASSERT_REFUSED(db, "UPDATE claimd.job SET flags = 0", "23514", "job_exclusive_key_form");
    ASSERT_REFUSED(db, "UPDATE claimd.job SET second_key = 'e'", "23514", "job_second_key_form");
    ASSERT_REFUSED(db, "UPDATE claimd.job SET share = 0", "23514", "job_share_key_form");
}
END_TEST

START_TEST(feat_B20_a_plain_insert_or_copy_may_set_an_exclusive_key)
{
    run("INSERT INTO claimd.kind (name) VALUES ('a')");
    run("SET ROLE claimd_producer");
    run("INSERT INTO claimd.job (kind, exclusive_key) SELECT 'a', 'e' FROM generate_series(1, 3)");
    run("INSERT INTO claimd.job (kind, exclusive_key) VALUES ('a', NULL)");
    ASSERT_REFUSED(db, "INSERT INTO claimd.job (kind, exclusive_key) VALUES ('a', '')", "23514",
                   "exclusive_key: 1 to 512 bytes");
    ASSERT_REFUSED(db,
                   "INSERT INTO claimd.job (kind, exclusive_key, share_key) VALUES"
                   " ('a', 'e', 's')",
                   "23514", "job_share_key_form");
    run("RESET ROLE");
    run("COPY claimd.job (kind, exclusive_key) FROM PROGRAM 'printf \"a\\te\\na\\tf\\n\"'");
    ck_assert_str_eq(sql_text(db, "SELECT string_agg(concat_ws(' ', exclusive_key, flags), ',' "
                                  "ORDER BY id) FROM claimd.job"),
                     "e 2,e 2,e 2,0,e 2,f 2");
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.claim_limited(ARRAY(SELECT id FROM "
                       "claimd.job WHERE flags = 2), gen_random_uuid(), '{a}', '{}')"),
        2); /* one of each key */
}
END_TEST

START_TEST(B40_a_plain_insert_sets_no_key_while_older_programs_may_work)
{
    run("UPDATE claimd.cluster SET oldest_program = 1");
    ASSERT_REFUSED(db, "INSERT INTO claimd.job (kind, exclusive_key) VALUES ('a', 'e')", "CL003",
                   "claimctl db finish");
    run("INSERT INTO claimd.job (kind) VALUES ('a')");
}
END_TEST

/* The updates above set `kind` as well, which alone would cause the check. */
START_TEST(an_update_of_any_column_that_a_rule_is_about_is_checked)
{
    ck_assert_str_eq(
        sql_text(db, "SELECT string_agg(attname, ' ' ORDER BY attname) FROM pg_trigger, "
                     "unnest(tgattr) AS n JOIN pg_attribute ON attrelid = 'claimd.job'::regclass "
                     "AND attnum = n WHERE tgname IN ('job_checked_again', 'job_sizes_checked')"),
        sql_text(db, "SELECT string_agg(name, ' ' ORDER BY name) FROM pg_proc, unnest(proargnames) "
                     "AS name WHERE oid = 'claimd.broken_rule'::regproc"));
}
END_TEST

/* Rows that were stored untested: a retry must not be refused for them (decision 22). */
START_TEST(a_job_that_came_with_what_is_too_long_is_retried)
{
    sql_run(db, "ALTER TABLE claimd.job DISABLE TRIGGER job_checked");
    sql_run(db, "INSERT INTO claimd.job (kind, tags, metadata) VALUES ('a', "
                "array_fill('tag'::text, '{2000}'), to_jsonb(repeat('x', 70000)))");
    sql_run(db, "ALTER TABLE claimd.job ENABLE TRIGGER job_checked");
    sql_run(db, "UPDATE claimd.job SET scheduled_at = now() + interval '1 s'");
    ASSERT_REFUSED(db, "UPDATE claimd.job SET scheduled_at = 'infinity'", "23514",
                   "job_scheduled_at_range");
    ASSERT_REFUSED(db, "UPDATE claimd.job SET metadata = metadata", "23514", "job_tags_size");
}
END_TEST

START_TEST(the_edges_of_what_the_rules_allow_are_taken)
{
    sql_run(db, "SET ROLE claimd_producer");
    sql_run(db, "INSERT INTO claimd.job (kind, queue, priority, scheduled_at, max_attempts, "
                "timeout, args, metadata, tags, backoff, share, share_key) VALUES (repeat('a', "
                "64), 'q' || repeat('.', 63), 9, '2285-12-31', 1, '366 days', to_jsonb(repeat('x', "
                "1048574)), to_jsonb(repeat('x', 65534)), array_fill('tag'::text, '{1000}'), "
                "'fixed:30s', 16383, repeat('s', 512)), ('a', 'default', 0, '0001-01-01 00:00+00', "
                "2147483647, '1 us', 'null', '{}', '{}', NULL, 0, NULL)");
    sql_run(db, "RESET ROLE");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 2);
}
END_TEST

START_TEST(numbers_as_programs_write_them_are_taken_however_many)
{
    sql_run(db, "SET ROLE claimd_producer");
    sql_run(db, "INSERT INTO claimd.job (kind, args, metadata) VALUES ('a', (SELECT "
                "jsonb_agg(4.9406564584124654e-324) FROM generate_series(1, 2900)),  '{\"n\": "
                "1.7976931348623157e308}'), ('a', (SELECT jsonb_agg(-1.7976931348623157e308) FROM "
                "generate_series(1, 3000)),  NULL), ('a', jsonb_build_array(repeat('7', "
                "60000)::numeric, 1e65000), NULL)");
    sql_run(db, "RESET ROLE");
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 3);
}
END_TEST

#define LONG "(SELECT jsonb_agg(1e131071::numeric) FROM generate_series(1, 120))"

START_TEST(H1_what_expands_is_refused_wherever_it_comes_in_and_named)
{
    static const char *const doors[] = {
        "SELECT claimd.enqueue('a', " LONG ")",
        "SELECT claimd.enqueue('a', '{\"n\": 1e131071}', unique_key => 'k')",
        "SELECT claimd.enqueue('a', metadata => '{\"n\": 1e131071}')",
        "SELECT claimd.enqueue_many('[{\"kind\": \"a\", \"args\": 1e131071}]')",
        "SELECT claimd.edit(1, '{\"args\": 1e131071}')",
        "SELECT claimd.edit(1, '{\"metadata\": {\"n\": 1e131071}}')",
        "SELECT claimd.schedule_set('s', 'a', '@hourly', " LONG ")",
        "SELECT claimd.schedule_set('s', 'a', '@hourly', metadata => '{\"n\": 1e131071}')",
        "SELECT claimd.batch_open('b', '{\"kind\": \"a\", \"args\": [1e131071]}')",
        "SELECT claimd.batch_open('b', '{\"kind\": \"a\", \"metadata\": {\"n\": 1e131071}}')",
    };
    sql_run(db, "SELECT claimd.enqueue('a')::text");
    for (size_t i = 0; i < ARRAY_COUNT(doors); i++) {
        bool is_metadata = strstr(doors[i], "metadata") != NULL;
        ASSERT_REFUSED(db, doors[i], "CL002", is_metadata ? "metadata: at most" : "args: at most");
    }
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.job"), 1);
}
END_TEST

START_TEST(H1_each_rule_has_a_text_that_says_what_is_allowed)
{
    ck_assert_str_eq(
        sql_text(db,
                 "SELECT (count(*) > 10 AND bool_and(claimd.rule_text(m[1]) IS NOT NULL))::text "
                 "FROM regexp_matches(pg_get_functiondef('claimd.broken_rule'::regproc), "
                 "'''(job_[a-z_]+)''', 'g') m"),
        "true");
    ASSERT_REFUSED(db, "INSERT INTO claimd.job (kind, priority) VALUES ('a', 10)", "23514",
                   "violates check constraint \"job_priority_range\" (priority: 0 (first) to 9)");
}
END_TEST

/* A producer chooses its own search_path, which may have operators of its own. */
START_TEST(J2_a_producer_s_own_operators_do_not_get_a_row_past_the_rules)
{
    sql_run(db, "CREATE SCHEMA evil");
    sql_run(
        db,
        "CREATE FUNCTION evil.yes(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN true");
    sql_run(db, "CREATE OPERATOR evil.~ (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.yes)");
    sql_run(
        db,
        "CREATE FUNCTION evil.octet_length(text) RETURNS integer LANGUAGE sql IMMUTABLE RETURN 1");
    sql_run(
        db,
        "CREATE FUNCTION evil.broken_rule(text) RETURNS text LANGUAGE sql IMMUTABLE RETURN NULL");
    sql_run(db, "GRANT USAGE ON SCHEMA evil TO PUBLIC");
    sql_run(db, "SET search_path = evil, pg_catalog");
    sql_run(db, "SET ROLE claimd_producer");
    ck_assert_str_eq(sql_text(db, "SELECT ('a' ~ 'b')::text"), "true");
    ASSERT_REFUSED(db, "INSERT INTO claimd.job (kind) VALUES ('Mail')", "23514", "job_kind_name");
    sql_run(db, "RESET ROLE");
    sql_run(db, "RESET search_path");
    sql_run(db, "DROP SCHEMA evil CASCADE");
}
END_TEST

/* A type of the producer's comes before PostgreSQL's, since it is a temporary one. PostgreSQL
 * compiles the trigger once per session, so that type would then run within enqueue() as the
 * owner. */
START_TEST(J2_a_producer_s_own_types_run_neither_in_the_rules_nor_as_the_owner)
{
    sql_run(db, "CREATE TABLE public.ran (as_user name)");
    sql_run(db, "GRANT INSERT ON public.ran TO PUBLIC");
    sql_run(db, "SET ROLE claimd_producer");
    sql_run(db,
            "CREATE FUNCTION pg_temp.took(value pg_catalog.text) RETURNS boolean LANGUAGE plpgsql "
            "AS $$ BEGIN INSERT INTO public.ran VALUES (current_user); RETURN true; END $$");
    sql_run(db, "CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (pg_temp.took(VALUE))");
    sql_run(db, "INSERT INTO claimd.job (kind) VALUES ('a')");
    sql_run(db, "SELECT claimd.enqueue('a')::pg_catalog.text");
    sql_run(db, "RESET ROLE");
    ck_assert_str_eq(sql_text(db, "SELECT coalesce(string_agg(DISTINCT as_user::pg_catalog.text, ' "
                                  "'), 'none') FROM public.ran"),
                     "none");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sql_rules");
    TCase *tc = tcase_create("sql_rules");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, H1_a_plain_insert_is_checked_row_by_row);
    tcase_add_test(tc, H1_an_update_of_a_job_is_checked_by_the_same_rules);
    tcase_add_test(tc, feat_B20_a_plain_insert_or_copy_may_set_an_exclusive_key);
    tcase_add_test(tc, B40_a_plain_insert_sets_no_key_while_older_programs_may_work);
    tcase_add_test(tc, an_update_of_any_column_that_a_rule_is_about_is_checked);
    tcase_add_test(tc, a_job_that_came_with_what_is_too_long_is_retried);
    tcase_add_test(tc, the_edges_of_what_the_rules_allow_are_taken);
    tcase_add_test(tc, numbers_as_programs_write_them_are_taken_however_many);
    tcase_add_test(tc, H1_what_expands_is_refused_wherever_it_comes_in_and_named);
    tcase_add_test(tc, H1_each_rule_has_a_text_that_says_what_is_allowed);
    tcase_add_test(tc, J2_a_producer_s_own_operators_do_not_get_a_row_past_the_rules);
    tcase_add_test(tc, J2_a_producer_s_own_types_run_neither_in_the_rules_nor_as_the_owner);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
