/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of sql/functions: which are loaded, when, and which existing ones they replace. */
#include "schema_fingerprint.h"
#include "sql/queries.h"
#include "store/admin.h"
#include "store/functions.h"
#include "store/migrate.h"
#include "support/pg_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct err why;
static struct sql *side;

#define MUST(call)                                         \
    do {                                                   \
        why = (struct err){0};                             \
        ck_assert_msg((call) == STATUS_OK, "%s", why.msg); \
    } while (0)

static void setup(void)
{
    world_setup_empty();
    side = sql_open(world.conninfo);
}

static void teardown(void)
{
    sql_close(side);
    world_teardown();
}

static char last_step[64];
static int steps;

static void on_step(void *ctx, const struct sql_migration *done)
{
    (void)ctx;
    steps++;
    (void)snprintf(last_step, sizeof last_step, "%s", done->name);
}

static void up(void)
{
    steps = 0;
    MUST(migrate_up(world.conninfo, LIMIT_US, on_step, NULL, &why));
}

static void must_fail(enum status st, const char *part)
{
    struct err err = {0};
    ck_assert_int_eq(migrate_up(world.conninfo, LIMIT_US, NULL, NULL, &err), st);
    ck_assert_msg(strstr(err.msg, part) != NULL, "%s", err.msg);
}

/* ---- one schema, however it was reached ---- */

static void run_part(struct admin *a, const struct sql_migration *m, const char *sql, size_t len,
                     bool is_alone)
{
    static const char path[] = "SET search_path = claimd, pg_catalog, pg_temp;";
    const char *owner = m->version > 1 ? "SET ROLE claimd_scheduler;" : "";
    autofree char *text = malloc(len + 256);
    ck_assert_ptr_nonnull(text);
    (void)snprintf(text, len + 256, "%s%s%s", owner, m->version > 1 ? path : "",
                   is_alone ? "" : "BEGIN;");
    MUST(admin_exec(a, text, &why));
    (void)snprintf(text, len + 256, "%.*s", (int)len, sql);
    MUST(admin_exec(a, text, &why));
    (void)snprintf(text, len + 256, "UPDATE claimd.cluster SET schema_version = %d; %s; RESET ROLE",
                   m->version, is_alone ? "" : "COMMIT");
    MUST(admin_exec(a, text, &why));
}

/* Migrates like an older claimctl, which knows no newer version and no functions in files. */
static void migrate_as_before(int version)
{
    static const char line[] = "-- ---- part: alone ----\n";
    struct admin *a = NULL;
    MUST(admin_open(world.conninfo, LIMIT_US, &a, &why));
    for (int v = 1; v <= version; v++) {
        const char *sql = migrate_get(v)->up;
        for (int part = 0; sql != NULL; part++) {
            const char *next = strstr(sql, line);
            size_t len = next != NULL ? (size_t)(next - sql) : strlen(sql);
            run_part(a, migrate_get(v), sql, len, part > 0);
            sql = next != NULL ? next + strlen(line) : NULL;
        }
    }
    admin_close(a);
}

static const int starts[] = {20, 22};

START_TEST(B40_a_schema_is_the_same_from_scratch_and_from_each_version_that_was_released)
{
    char fresh[ERR_TEXT_MAX];
    char before[ERR_TEXT_MAX];
    up();
    ck_assert_str_ne(last_step, "functions");
    (void)snprintf(fresh, sizeof fresh, "%s", sql_text(side, FINGERPRINT));
    sql_run(side, "DROP SCHEMA claimd CASCADE");
    migrate_as_before(starts[_i]);
    (void)snprintf(before, sizeof before, "%s", sql_text(side, FINGERPRINT));
    up();
    ck_assert_str_eq(sql_text(side, FINGERPRINT), fresh);
    ck_assert_int_eq(
        sql_number(
            side,
            "SELECT count(*)::text FROM pg_proc WHERE pronamespace = 'claimd'::regnamespace AND "
            "NOT EXISTS (SELECT FROM claimd.function_loaded WHERE signature ^@ (proname || '('))"),
        0);
    for (int v = migrate_known_version(); v > starts[_i]; v--) {
        MUST(migrate_down(world.conninfo, LIMIT_US, NULL, NULL, &why));
    }
    ck_assert_str_eq(sql_text(side, FINGERPRINT), before);
}
END_TEST

/* ---- which files are loaded, and which are skipped ---- */

#define BODY "SELECT prosrc FROM pg_proc WHERE oid = 'claimd.retry(bigint, boolean)'::regprocedure"
#define BY_HAND                                                                                 \
    "CREATE OR REPLACE FUNCTION claimd.retry(id bigint, even_completed boolean DEFAULT false) " \
    "RETURNS bigint LANGUAGE sql SET search_path = claimd, pg_catalog, pg_temp AS 'SELECT "     \
    "7::bigint'"

static char our_body[ERR_TEXT_MAX];

static void up_and_edit_by_hand(void)
{
    up();
    (void)snprintf(our_body, sizeof our_body, "%s", sql_text(side, BODY));
    sql_run(side, BY_HAND);
}

START_TEST(what_was_edited_by_hand_stays_until_its_file_changes)
{
    up_and_edit_by_hand();
    up();
    ck_assert_int_eq(steps, 0);
    ck_assert_str_eq(sql_text(side, BODY), "SELECT 7::bigint");
    sql_run(side,
            "UPDATE claimd.function_file SET digest = 'other' WHERE name = 'functions/retry'");
    int64_t loaded = sql_number(side, "SELECT count(*)::text FROM claimd.function_loaded");
    up();
    ck_assert_int_eq(steps, 1);
    ck_assert_str_eq(last_step, "functions");
    ck_assert_str_eq(sql_text(side, BODY), our_body);
    ck_assert_int_eq(sql_number(side, "SELECT count(*)::text FROM claimd.function_loaded"), loaded);
}
END_TEST

START_TEST(all_are_loaded_again_when_one_asks_for_it)
{
    up_and_edit_by_hand();
    sql_run(side, "DROP FUNCTION claimd.delete_job");
    MUST(migrate_functions(world.conninfo, LIMIT_US, on_step, NULL, &why));
    ck_assert_str_eq(last_step, "functions");
    ck_assert_str_eq(sql_text(side, BODY), our_body);
    ck_assert_str_eq(sql_text(side, "SELECT has_function_privilege('claimd_admin', "
                                    "'claimd.delete_job(bigint)', 'execute')::text"),
                     "true");
    ck_assert_str_eq(sql_text(side, "SELECT has_function_privilege('claimd_reader', "
                                    "'claimd.delete_job(bigint)', 'execute')::text"),
                     "false");
}
END_TEST

START_TEST(B40_functions_of_a_newer_release_are_left)
{
    struct err err = {0};
    up_and_edit_by_hand();
    sql_run(side, "UPDATE claimd.cluster SET functions_version = 12034005");
    up(); /* the files are unchanged, so none is loaded */
    ck_assert_int_eq(steps, 0);
    sql_run(side,
            "UPDATE claimd.function_file SET digest = 'other' WHERE name = 'functions/retry'");
    must_fail(STATUS_CONFLICT, "of release 12.34.5");
    ck_assert_int_eq(migrate_functions(world.conninfo, LIMIT_US, NULL, NULL, &err),
                     STATUS_CONFLICT);
    ck_assert_str_eq(sql_text(side, BODY), "SELECT 7::bigint");
    ck_assert_int_eq(sql_number(side, "SELECT functions_version::text FROM claimd.cluster"),
                     12034005);
}
END_TEST

START_TEST(B40_after_a_step_down_any_release_may_load_its_own)
{
    up();
    MUST(migrate_down(world.conninfo, LIMIT_US, NULL, NULL, &why));
    up();
    ck_assert_int_eq(sql_number(side, "SELECT functions_version::text FROM claimd.cluster"),
                     sql_functions_version);
}
END_TEST

/* The last file to be loaded fails. */
START_TEST(a_load_that_fails_leaves_nothing_half_done)
{
    int before = migrate_known_version() - 1;
    migrate_as_before(before);
    sql_run(side, BY_HAND);
    sql_run(side, "ALTER FUNCTION claimd.sweep_day OWNER TO CURRENT_USER");
    must_fail(STATUS_INTERNAL, "functions/history.sql: ");
    ck_assert_int_eq(sql_number(side, "SELECT schema_version::text FROM claimd.cluster"), before);
    ck_assert_str_eq(sql_text(side, BODY), "SELECT 7::bigint");
    sql_run(side, "ALTER FUNCTION claimd.sweep_day OWNER TO claimd_scheduler");
    up();

    sql_run(side, BY_HAND);
    sql_run(side, "ALTER FUNCTION claimd.sweep_day OWNER TO CURRENT_USER");
    sql_run(side, "UPDATE claimd.function_file SET digest = 'other'");
    must_fail(STATUS_INTERNAL, "migration functions: functions/history.sql: ");
    ck_assert_str_eq(sql_text(side, BODY), "SELECT 7::bigint");
    ck_assert_str_eq(
        sql_text(side, "SELECT string_agg(DISTINCT digest, ' ') FROM claimd.function_file"),
        "other");
}
END_TEST

START_TEST(functions_of_the_same_name_elsewhere_are_left)
{
    static const char own[] = "SELECT prosrc FROM pg_proc WHERE oid = "
                              "'public.retry(bigint, boolean)'::regprocedure";
    migrate_as_before(FUNCTIONS_SINCE - 1);
    sql_run(side, "CREATE FUNCTION public.retry(bigint, boolean) RETURNS text LANGUAGE sql AS "
                  "'SELECT ''mine'''");
    sql_run(side, "GRANT EXECUTE ON FUNCTION public.retry TO claimd_reader");
    sql_run(side, "GRANT CREATE, USAGE ON SCHEMA public TO claimd_scheduler");
    sql_run(side, "ALTER ROLE claimd_scheduler SET search_path = public, claimd");
    up();
    ck_assert_str_eq(sql_text(side, "%s", own), "SELECT 'mine'");
    ck_assert_str_eq(sql_text(side, "SELECT has_function_privilege('claimd_reader', "
                                    "'public.retry(bigint, boolean)', 'execute')::text"),
                     "true");
    ck_assert_int_eq(
        sql_number(
            side, "SELECT count(*)::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace"),
        1);
    sql_run(side, "ALTER ROLE claimd_scheduler RESET search_path");
}
END_TEST

/* Grants to an operator's own roles are the operator's to revoke. */
START_TEST(grants_to_roles_of_others_survive_a_load)
{
    up();
    (void)sql_refusal(side, "CREATE ROLE shop");
    sql_run(side, "GRANT EXECUTE ON FUNCTION claimd.retry TO shop");
    sql_run(side, "GRANT EXECUTE ON FUNCTION claimd.retry TO PUBLIC");
    MUST(migrate_functions(world.conninfo, LIMIT_US, NULL, NULL, &why));
    ck_assert_str_eq(sql_text(side, "SELECT has_function_privilege('shop', 'claimd.retry(bigint, "
                                    "boolean)', 'execute')::text"),
                     "true");
    ck_assert_str_eq(sql_text(side, "SELECT has_function_privilege('claimd_worker', "
                                    "'claimd.retry(bigint, boolean)', 'execute')::text"),
                     "false");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("functions");
    TCase *tc = tcase_create("functions");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(
        tc, B40_a_schema_is_the_same_from_scratch_and_from_each_version_that_was_released, 0,
        ARRAY_COUNT(starts));
    tcase_add_test(tc, what_was_edited_by_hand_stays_until_its_file_changes);
    tcase_add_test(tc, all_are_loaded_again_when_one_asks_for_it);
    tcase_add_test(tc, B40_functions_of_a_newer_release_are_left);
    tcase_add_test(tc, B40_after_a_step_down_any_release_may_load_its_own);
    tcase_add_test(tc, a_load_that_fails_leaves_nothing_half_done);
    tcase_add_test(tc, functions_of_the_same_name_elsewhere_are_left);
    tcase_add_test(tc, grants_to_roles_of_others_survive_a_load);
    suite_add_tcase(suite, tc);
    return world_run(suite);
}
