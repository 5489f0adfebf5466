/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl map against a database without daemons: what it refuses before anything is made, how it
 * loads, and what it prints. */
#include "ctl_fixture.h"
#include "support/suite.h"

#include <signal.h>
#include <stdio.h>

#define COUNT(what) sql_number(db, "SELECT count(*)::text FROM " what)
#define ASSET "SELECT id, path FROM asset"
#define COMMAND "/srv/t.py", "--", "{id}", "{path}"
#define TEMPLATE "[\"/srv/t.py\", \"--\", \"{id}\", \"{path}\"]"

static void add_worker(const char *host, const char *queue, const char *commands)
{
    sql_run(db,
            "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, "
            "token_prefix, version, queues, kinds, built_for, commands) VALUES (gen_random_uuid(), "
            "now() + interval '1 h', 1, 1, '%s', '/s', 't', 'v', '{%s}', '{command_thumb,noop}', "
            "9999, '%s')",
            host, queue, commands);
}

static void setup_assets(void)
{
    ctl_setup();
    sql_run(db, "CREATE TABLE public.asset (id bigint PRIMARY KEY, path text, size int)");
    sql_run(db,
            "INSERT INTO public.asset SELECT g, 'p' || g, g FROM generate_series(1, 12000) AS g");
    add_worker("h1", "default", "{\"thumb\": " TEMPLATE "}");
}

static const struct {
    const char *words[12];
    int exit;
    const char *says;
} bad_input[] = {
    {{"--kind", "noop"}, 2, "--sql is missing"},
    {{"--sql", ASSET}, 2, "map needs either a command after -- or --kind KIND"},
    {{"--sql", ASSET, "--kind", "noop", "--", COMMAND}, 2, "map needs either a command"},
    {{"--sql", "DELETE FROM asset RETURNING id", "--kind", "noop"},
     2,
     "--sql: 'DELETE FROM asset RETURNING id' is not a query; allowed: SELECT"},
    {{"--sql", "WITH d AS (DELETE FROM asset RETURNING id) SELECT * FROM d", "--kind", "noop"},
     2,
     "--sql: WITH clause containing a data-modifying statement"},
    {{"--sql", "SELECT id, nextval('numbers') FROM asset", "--kind", "noop", "--slow"},
     2,
     "--sql: cannot execute nextval() in a read-only transaction"},
    {{"--sql", "SELECT 1) AS x; DROP TABLE asset; SELECT * FROM (TABLE asset", "--kind", "noop"},
     2,
     "--sql: cannot insert multiple commands into a prepared statement"},
    {{"--sql", "SELECT * FROM nowhere", "--kind", "noop"}, 2, "\"nowhere\" does not exist"},
    {{"--sql", ASSET, "--key", "nr", "--kind", "noop"},
     2,
     "--key: the query has no column nr; it has: id, path"},
    {{"--sql", ASSET, "--key", "path", "--kind", "noop"},
     2,
     "--key: no index leads from path to path"},
    {{"--sql", "SELECT 1 AS a, '{}'::json AS j", "--key", "j", "--kind", "noop", "--slow"},
     2,
     "--sql: could not identify an ordering operator"},
    {{"--sql", "SELECT NULLIF(id, 7) AS id FROM asset", "--kind", "noop", "--slow"},
     2,
     "--key: rows have NULL as id"},
    {{"--sql", "SELECT id FROM asset", "--", COMMAND},
     2,
     "the command's {path}: the query has no column path; it has: id"},
    {{"--sql", ASSET, "--", "/bin/rm", "{path}"},
     5,
     "no live worker of queue default allows this command (worker.commands); allowed: thumb on "
     "h1: " TEMPLATE},
    {{"--sql", ASSET, "--queue", "other", "--", COMMAND}, 5, "thumb on h1 (of other queues): "},
    {{"--sql", ASSET, "--batch", "a:b", "--kind", "noop"}, 2, "--batch: 'a:b' is not allowed"},
    {{"--sql", ASSET, "--concurrency", "0", "--kind", "noop"}, 2, "--concurrency"},
    {{"--sql", ASSET, "--concurrency", "1001", "--kind", "noop"}, 2, "--concurrency"},
    {{"--sql", ASSET, "--rate", "fast", "--kind", "noop"}, 2, "--rate: 'fast' is not allowed"},
    {{"--sql", ASSET, "--queue", "A", "--kind", "noop"}, 2, "queue"},
    {{"--sql", ASSET, "--into", "nowhere", "--kind", "noop"},
     2,
     "--into: there is no table nowhere"},
    {{"--sql", ASSET, "--into", "asset", "--kind", "noop"},
     2,
     "--into asset: it has no column key; needed: key"},
    {{"--sql", ASSET, "--into", "keyless", "--kind", "noop"},
     2,
     "--into keyless: there is no unique or exclusion constraint matching"},
    {{"--sql", ASSET, "--into", "short", "--kind", "noop"},
     2,
     "--into short: column \"error\" of relation \"short\" does not exist"},
};

START_TEST(map_bad_input_is_refused_before_anything_is_made)
{
    sql_run(db, "CREATE TABLE public.keyless (key bigint, state text, result jsonb, error text, "
                "ended_at timestamptz)");
    sql_run(db, "CREATE TABLE public.short (key bigint PRIMARY KEY, state text, result jsonb)");
    sql_run(db, "CREATE SEQUENCE public.numbers");
    for (size_t i = 0; i < ARRAY_COUNT(bad_input); i++) {
        const char *words[16] = {"map"};
        memcpy(words + 1, bad_input[i].words, sizeof bad_input[i].words);
        ck_assert_msg(ctl_run_words(words) == bad_input[i].exit, "case %zu: %s", i, ctl_text());
        assert_says(bad_input[i].says);
        ck_assert_int_eq(COUNT("claimd.map") + COUNT("claimd.job"), 0);
    }
}
END_TEST

START_TEST(map_a_table_that_the_caller_may_not_write_is_refused)
{
    char conninfo[sizeof ctl.conninfo];
    sql_run(db, "CREATE TABLE public.theirs (key bigint PRIMARY KEY, state text, result jsonb, "
                "error text, ended_at timestamptz)");
    sql_run(db, "CREATE ROLE mapper LOGIN IN ROLE claimd_admin");
    sql_run(db, "GRANT SELECT ON public.asset TO mapper");
    (void)snprintf(conninfo, sizeof conninfo, "%.900s user=mapper", ctl.conninfo);
    memcpy(ctl.conninfo, conninfo, sizeof conninfo);
    ck_assert_int_eq(ctl_exit("map", "--sql", ASSET, "--into", "theirs", "--kind", "noop"), 2);
    assert_says("--into theirs: permission denied for table theirs");
    ck_assert_int_eq(ctl_exit("map", "--sql", "TABLE theirs", "--kind", "noop"), 2);
    assert_says("--sql: permission denied for table theirs");
    ck_assert_int_eq(ctl_exit("map", "--sql", ASSET, "--kind", "noop", "--batch", "mine"), 0);
    assert_says("created_by   mapper");
}
END_TEST

START_TEST(map_keys_that_are_there_twice_stop_the_load_and_name_the_key)
{
    ck_assert_int_eq(ctl_exit("map", "--sql", "SELECT id / 2 AS id FROM asset", "--kind", "noop",
                              "--slow", "--batch", "twice"),
                     2);
    assert_says("--key: rows have the same id: 1");
    ck_assert_int_eq(COUNT("claimd.job"), 0);
    /* The two rows with the same key lie on both sides of the end of a chunk. */
    ck_assert_int_eq(ctl_exit("map", "--sql",
                              "SELECT CASE WHEN id = 5001 THEN 5000 ELSE id END AS id FROM asset",
                              "--kind", "noop", "--slow", "--batch", "edge"),
                     2);
    assert_says("--key: rows have the same id: 5000");
    ck_assert_int_eq(ctl_exit("map", "--sql",
                              "SELECT CASE WHEN id = 11001 THEN 11000 ELSE id END AS id FROM asset",
                              "--kind", "noop", "--slow", "--batch", "end"),
                     2);
    assert_says("--key: rows have the same id: 11000");
    ck_assert_int_eq(COUNT("claimd.job") + COUNT("claimd.map"), 0);
}
END_TEST

START_TEST(map_a_command_that_is_another_one_elsewhere_is_refused)
{
    add_worker("h2", "default", "{\"thumb\": [\"/srv/other\"]}");
    ck_assert_int_eq(ctl_exit("map", "--sql", ASSET, "--", COMMAND), 5);
    assert_says("command thumb on h2 differs from that on h1: [\"/srv/other\"]");
}
END_TEST

START_TEST(map_a_dry_run_shows_what_would_run_and_makes_nothing)
{
    ck_assert_int_eq(
        ctl_exit("map", "--sql", ASSET ";", "--batch", "dry", "--dry-run", "--", COMMAND), 0);
    ck_assert_str_eq(ctl_text(), "[\"/srv/t.py\",\"--\",\"1\",\"p1\"]\n"
                                 "[\"/srv/t.py\",\"--\",\"2\",\"p2\"]\n"
                                 "[\"/srv/t.py\",\"--\",\"3\",\"p3\"]\n"
                                 "map dry: 12000 rows\n");
    ck_assert_int_eq(COUNT("claimd.map"), 0);
}
END_TEST

START_TEST(map_all_rows_are_loaded_in_chunks_and_a_second_call_makes_none)
{
    ck_assert_int_eq(
        ctl_exit("map", "--sql", ASSET, "--batch", "m", "--concurrency", "4", "--", COMMAND), 0);
    assert_says("state        running");
    assert_says("rows         12000");
    ck_assert_int_eq(ctl_exit("jobs", "show", "12000"), 0);
    assert_says("waits for its turn in map m: 0 of its jobs run, at most 4 may");
    ck_assert_int_eq(COUNT("claimd.job WHERE kind = 'command_thumb' AND args = jsonb_build_object("
                           "'id', substr(unique_key, 7)::int, 'path', 'p' || substr(unique_key, "
                           "7))"),
                     12000);
    ck_assert_int_eq(ctl_exit("map", "--sql", ASSET, "--batch", "m", "--", COMMAND), 0);
    ck_assert_int_eq(COUNT("claimd.job"), 12000);
    assert_says("concurrency  4");
    ck_assert_int_eq(
        ctl_exit("map", "--sql", "SELECT id FROM asset", "--batch", "m", "--kind", "command_thumb"),
        5);
    assert_says("map m has another query: " ASSET);
}
END_TEST

START_TEST(map_a_row_above_one_mebibyte_fails_and_the_others_are_loaded)
{
    ck_assert_int_eq(ctl_exit("map", "--sql",
                              "SELECT id, CASE WHEN id = 2 THEN repeat('x', 1100000) END AS t FROM "
                              "asset WHERE id < 4",
                              "--batch", "big", "--kind", "noop"),
                     0);
    sql_run(db, "SELECT claimd.move_map_ends(10)");
    ck_assert_int_eq(COUNT("claimd.job"), 2);
    ck_assert_int_eq(ctl_exit("map", "show", "big", "--failed"), 0);
    assert_says("the row has 1100018 bytes as JSON, at most 1048576");
}
END_TEST

START_TEST(map_a_load_that_stopped_goes_on_where_it_was)
{
    ck_assert_int_eq(ctl_exit("map", "--sql", ASSET, "--batch", "m", "--kind", "noop"), 0);
    sql_run(db,
            "DELETE FROM claimd.job WHERE id > 5000"); /* as if it had been killed after a chunk */
    sql_run(db, "DELETE FROM claimd.job_key WHERE job_id > 5000");
    sql_run(db, "UPDATE claimd.map SET last_key = '5000', rows = 5000, loaded_at = NULL");
    sql_run(db, "DELETE FROM public.asset WHERE id <= 5000"); /* it does not read these again */
    ck_assert_int_eq(ctl_exit("map", "--sql", ASSET, "--batch", "m", "--kind", "noop"), 0);
    ck_assert_int_eq(COUNT("claimd.job"), 12000);
    assert_says("rows         12000");
}
END_TEST

START_TEST(map_what_is_not_there_is_not_found)
{
    static const char *const verbs[] = {"show",   "attach",  "pause", "resume",
                                        "cancel", "results", "drop"};
    for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
        ck_assert_msg(ctl_exit("map", verbs[i], "nowhere") == 4, "%s: %s", verbs[i], ctl_text());
        assert_says("map nowhere not found");
    }
    ck_assert_int_eq(ctl_exit("map", "retry", "nowhere"), 2);
    assert_says("which rows? Give --failed");
    ck_assert_int_eq(ctl_exit("map", "limit", "nowhere"), 2);
    assert_says("no limit is named");
    ck_assert_int_eq(ctl_exit("map", "limit", "nowhere", "--concurrency", "3"), 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("claimctl map");
    TCase *tests = tcase_create("map");
    tcase_add_checked_fixture(tests, setup_assets, ctl_teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, map_bad_input_is_refused_before_anything_is_made);
    tcase_add_test(tests, map_a_table_that_the_caller_may_not_write_is_refused);
    tcase_add_test(tests, map_keys_that_are_there_twice_stop_the_load_and_name_the_key);
    tcase_add_test(tests, map_a_command_that_is_another_one_elsewhere_is_refused);
    tcase_add_test(tests, map_a_dry_run_shows_what_would_run_and_makes_nothing);
    tcase_add_test(tests, map_all_rows_are_loaded_in_chunks_and_a_second_call_makes_none);
    tcase_add_test(tests, map_a_row_above_one_mebibyte_fails_and_the_others_are_loaded);
    tcase_add_test(tests, map_a_load_that_stopped_goes_on_where_it_was);
    tcase_add_test(tests, map_what_is_not_there_is_not_found);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
