/* SPDX-License-Identifier: Apache-2.0
 *
 * The SQL functions of maps: a job for each row, each key once, and a record of how each ended. */
#include "sql_db.h"

#include <stdio.h>

#define BEGIN_MAP(name)              \
    "SELECT claimd.map_begin('" name \
    "', 'SELECT 1 AS id', 'id', 'noop', NULL, 'default', 2, NULL, NULL)::text"
/* Loads rows {"id": KEY} with the keys first to last. */
#define LOAD(behind, first, last, is_last)                                                       \
    "SELECT concat_ws(' ', l.made, l.skipped, l.failed) FROM claimd.map_load(1, " behind         \
    ", (SELECT array_agg(g::text ORDER BY g) FROM generate_series(" #first ", " #last ") AS g)," \
    " (SELECT array_agg(format('{\"id\": %s}', g) ORDER BY g) FROM generate_series(" #first      \
    ", " #last ") AS g), " #is_last ") AS l"
#define COUNTS \
    "SELECT concat_ws(' ', state, rows, open, completed, failed, cancelled) FROM claimd.maps"
#define MOVE "SELECT claimd.move_map_ends(1000)::text"
#define RUN_ALL "UPDATE claimd.job SET state = 'running', fence = id + 100, attempt = 1"
#define COMPLETE_ALL                                                                            \
    "SELECT count(claimd.complete_in_tx(id, fence, args))::text FROM claimd.job WHERE state = " \
    "'running'"
/* Discards jobs as a worker does. */
#define DISCARD(which)                                                                             \
    "WITH gone AS (DELETE FROM claimd.job WHERE " which " RETURNING *) INSERT INTO "               \
    "claimd.job_history (id, fence, created_at, scheduled_at, ready_at, attempted_at, worker_id, " \
    "attempt, generation, priority, share, queue, kind, args, flags, version, unique_key, "        \
    "exclusive_key, share_key, crashes, state, error) SELECT id, fence, created_at, scheduled_at," \
    " ready_at, attempted_at, worker_id, attempt, generation, priority, share, queue, kind, args," \
    " flags, version, unique_key, exclusive_key, share_key, crashes, 'discarded', 'it broke' FROM" \
    " gone"

static void given_map(void)
{
    run(BEGIN_MAP("m"));
    ck_assert_str_eq(text(LOAD("NULL", 1, 3, false)), "3 0 0");
}

START_TEST(map_a_job_is_made_of_each_row_with_the_keys_of_its_map)
{
    given_map();
    ck_assert_str_eq(text("SELECT concat_ws(' ', kind, queue, args, unique_key, exclusive_key, "
                          "metadata) FROM claimd.job ORDER BY id LIMIT 1"),
                     "noop default {\"id\": 1} map:m:1 map:m {\"map\": \"m\"}");
    ck_assert_str_eq(text(COUNTS), "loading 3 3 0 0 0");
    ck_assert_str_eq(text("SELECT max_running::text FROM claimd.key_limit WHERE key = 'map:m'"),
                     "2");
    ck_assert_str_eq(text(LOAD("'3'", 4, 5, true)), "2 0 0");
    ck_assert_str_eq(text(COUNTS), "running 5 5 0 0 0");
}
END_TEST

START_TEST(map_the_end_of_a_row_is_kept_once_and_counted)
{
    given_map();
    run(RUN_ALL);
    run(COMPLETE_ALL);
    ck_assert_str_eq(text(COUNTS), "loading 3 3 0 0 0"); /* not counted yet */
    ck_assert_str_eq(text(MOVE), "3");
    ck_assert_str_eq(text(MOVE), "0");
    ck_assert_str_eq(text(COUNTS), "loading 3 0 3 0 0");
    ck_assert_str_eq(
        text("SELECT string_agg(concat_ws(' ', key, state, result, attempts), ',' ORDER BY "
             "key) FROM claimd.map_done"),
        "1 completed {\"id\": 1} 1,2 completed {\"id\": 2} 1,3 completed {\"id\": 3} 1");
}
END_TEST

START_TEST(map_a_second_pass_skips_what_has_completed_or_is_open_and_makes_the_others_anew)
{
    given_map();
    run(RUN_ALL " WHERE id < 3");
    run("SELECT claimd.complete_in_tx(1, 101)::text");
    run(DISCARD("id = 2"));
    run(MOVE);
    ck_assert_str_eq(text(LOAD("'3'", 4, 4, true)), "1 0 0");
    ck_assert_str_eq(text(COUNTS), "running 4 2 1 1 0");
    run(BEGIN_MAP("m"));
    ck_assert_str_eq(text(LOAD("NULL", 1, 5, true)), "2 3 0"); /* 2 again, 5 for the first time */
    ck_assert_str_eq(text("SELECT string_agg(unique_key, ' ' ORDER BY unique_key) FROM claimd.job"),
                     "map:m:2 map:m:3 map:m:4 map:m:5");
    run(MOVE);
    ck_assert_str_eq(text(COUNTS), "running 5 4 1 0 0");
    run(RUN_ALL);
    run(COMPLETE_ALL);
    run(MOVE);
    ck_assert_str_eq(text(COUNTS), "done 5 0 5 0 0");
    run(BEGIN_MAP("m"));
    ck_assert_str_eq(text(LOAD("NULL", 1, 5, true)), "0 5 0");
    ck_assert_str_eq(text("SELECT count(*)::text FROM claimd.job"), "0");
}
END_TEST

/* Its end is not in map_done yet. */
START_TEST(map_a_second_pass_skips_a_row_that_has_just_completed)
{
    given_map();
    ck_assert_str_eq(text(LOAD("'3'", 4, 4, true)), "1 0 0");
    run(RUN_ALL);
    run(DISCARD("id = 2"));
    run(COMPLETE_ALL);
    run(BEGIN_MAP("m"));
    ck_assert_str_eq(text(LOAD("NULL", 1, 5, true)), "2 3 0"); /* 2 again, 5 for the first time */
    ck_assert_str_eq(text("SELECT string_agg(unique_key, ' ' ORDER BY unique_key) FROM claimd.job"),
                     "map:m:2 map:m:5");
    run(MOVE);
    ck_assert_str_eq(text(COUNTS), "running 5 2 3 0 0");
}
END_TEST

START_TEST(map_two_loaders_do_not_load_a_chunk_twice)
{
    given_map();
    ck_assert_str_eq(sql_refusal(db, "%s", LOAD("NULL", 1, 3, false)),
                     "CL003 map m is being loaded by another claimctl");
    ck_assert_str_eq(text("SELECT count(*)::text FROM claimd.job"), "3");
}
END_TEST

START_TEST(map_another_query_key_kind_or_command_is_refused)
{
    static const char *const cases[][2] = {
        {"'SELECT 2', 'id', 'noop', NULL", "map m has another query: SELECT 1 AS id"},
        {"'SELECT 1 AS id', 'no', 'noop', NULL", "map m has another key: id"},
        {"'SELECT 1 AS id', 'id', 'sleep', NULL", "map m has another kind: noop"},
        {"'SELECT 1 AS id', 'id', 'noop', '[\"/bin/x\"]'", "map m has another command: "},
    };
    given_map();
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const char *why = sql_refusal(
            db, "SELECT claimd.map_begin('m', %s, 'default', NULL, NULL, NULL)", cases[i][0]);
        ck_assert_msg(strncmp(why, "CL003 ", 6) == 0, "%s", why);
        ck_assert_str_eq(why + 6, cases[i][1]);
    }
}
END_TEST

START_TEST(map_a_row_of_which_no_job_can_be_made_has_failed_with_the_reason)
{
    run(BEGIN_MAP("m"));
    ck_assert_str_eq(
        text("SELECT concat_ws(' ', l.made, l.skipped, l.failed) FROM claimd.map_load(1,"
             " NULL, ARRAY['1', '2', repeat('x', 600)], ARRAY['{}', '\"1048577\"', "
             "'{}'], true) AS l"),
        "1 0 2");
    run(MOVE);
    ck_assert_str_eq(text(COUNTS), "running 3 1 0 2 0");
    ck_assert_str_eq(text("SELECT error FROM claimd.map_done WHERE key = '2'"),
                     "the row has 1048577 bytes as JSON, at most 1048576");
    ck_assert_str_eq(text("SELECT error FROM claimd.map_done WHERE key LIKE 'x%'"),
                     "key: at most 506 bytes");
}
END_TEST

START_TEST(map_failed_rows_run_again_and_count_as_open_until_they_end)
{
    given_map();
    run(RUN_ALL);
    run(DISCARD("id > 1"));
    run(MOVE);
    ck_assert_str_eq(text(COUNTS), "loading 3 1 0 2 0");
    ck_assert_str_eq(text("SELECT concat_ws(' ', last_key, jobs, left_out) FROM "
                          "claimd.map_retry('m', NULL)"),
                     "3 2 0");
    run(MOVE);
    ck_assert_str_eq(text(COUNTS), "loading 3 3 0 0 0");
    run(RUN_ALL);
    run(COMPLETE_ALL);
    run(MOVE);
    ck_assert_str_eq(text(COUNTS), "loading 3 0 3 0 0");
}
END_TEST

START_TEST(map_an_older_end_that_is_written_late_does_not_replace_a_newer_one)
{
    given_map();
    run(RUN_ALL);
    run(COMPLETE_ALL);
    run(MOVE);
    run("INSERT INTO claimd.map_ended (n, job_id, unique_key, state) OVERRIDING SYSTEM VALUE "
        "VALUES "
        "(0, 1, 'map:m:1', 'discarded')");
    run(MOVE);
    ck_assert_str_eq(text(COUNTS), "loading 3 0 3 0 0");
}
END_TEST

START_TEST(map_nothing_starts_while_it_is_paused_and_its_limit_is_back_afterwards)
{
    given_map();
    run("SELECT claimd.map_pause('m', true)::text");
    ck_assert_str_eq(text("SELECT max_running::text FROM claimd.key_limit"), "0");
    ck_assert_int_eq(sql_number(db, "SELECT claimd.key_places('map:m')::text"), 0);
    run("SELECT claimd.map_limit('m', '7', '10/s')::text");
    ck_assert_str_eq(text("SELECT concat_ws(' ', max_running, rate) FROM claimd.key_limit"),
                     "0 10");
    run("SELECT claimd.map_pause('m', false)::text");
    ck_assert_str_eq(text("SELECT concat_ws(' ', max_running, rate) FROM claimd.key_limit"),
                     "7 10");
    run("SELECT claimd.map_limit('m', '1', 'none')::text"); /* as for a key without a row */
    ck_assert_int_eq(sql_number(db, "SELECT claimd.key_places('map:m')::text"), 1);
}
END_TEST

START_TEST(map_what_is_cancelled_loads_no_more_and_is_dropped_with_its_results)
{
    given_map();
    ck_assert_str_eq(sql_refusal(db, "SELECT claimd.map_drop('m', 10)::text"),
                     "CL003 map m has open jobs: cancel it first");
    ck_assert_str_eq(
        text("SELECT concat_ws(' ', last_key, jobs) FROM claimd.map_cancel('m', NULL)"),
        "map:m:3 3");
    ck_assert_str_eq(sql_refusal(db, "%s", LOAD("'3'", 4, 4, true)), "CL003 map m was cancelled");
    run(MOVE);
    ck_assert_str_eq(text(COUNTS), "cancelled 3 0 0 0 3");
    ck_assert_int_eq(sql_number(db, "SELECT claimd.map_drop('m', 2)::text"), 2);
    ck_assert_int_eq(sql_number(db, "SELECT claimd.map_drop('m', 2)::text"), 1);
    ck_assert_int_eq(sql_number(db, "SELECT claimd.map_drop('m', 2)::text"), 0);
    ck_assert_int_eq(sql_number(db,
                                "SELECT (SELECT count(*) FROM claimd.map) + (SELECT count(*) FROM "
                                "claimd.map_count) + (SELECT count(*) FROM claimd.key_limit)"),
                     0);
}
END_TEST

#define DUE "SELECT count(*)::text FROM claimd.job WHERE ready_at <= now() AND state = 'available'"
#define FEED "SELECT claimd.feed_maps()::text"

START_TEST(map_no_more_jobs_are_due_than_may_soon_start)
{
    run(BEGIN_MAP("m"));
    run(LOAD("NULL", 1, 40, true));
    ck_assert_int_eq(sql_number(db, DUE), 4); /* twice its two places */
    ck_assert_str_eq(text(FEED), "0");
    run(RUN_ALL " WHERE ready_at <= now()");
    ck_assert_str_eq(text(FEED), "4");
    run(COMPLETE_ALL);
    run(MOVE);
    ck_assert_str_eq(text(FEED), "8"); /* plus twice the four that have ended */
    ck_assert_int_eq(sql_number(db, DUE), 12);
    run(RUN_ALL " WHERE ready_at <= now()");
    run("SELECT claimd.map_pause('m', true)::text");
    ck_assert_str_eq(text(FEED), "0");
    run("SELECT claimd.map_pause('m', false)::text");
    ck_assert_str_eq(text(FEED), "4");
}
END_TEST

#define KEYS                                                                                  \
    "SELECT concat_ws(' ', count(*) FILTER (WHERE ready_at <= now()), count(exclusive_key), " \
    "bool_and(exclusive_key IS NULL = (flags & 2 = 0))) FROM claimd.job"

START_TEST(map_without_a_limit_jobs_are_due_without_a_key_until_there_is_one)
{
    run("SELECT claimd.map_begin('m', 'SELECT 1 AS id', 'id', 'noop', NULL, 'default', NULL, NULL, "
        "NULL)::text");
    run(LOAD("NULL", 1, 2100, true));
    ck_assert_str_eq(text(KEYS), "2000 100 t");
    run(RUN_ALL " WHERE id <= 3");
    run("SELECT claimd.map_limit('m', '2', NULL)::text");
    ck_assert_str_eq(text(KEYS), "3 2097 t"); /* those that run, without a key */
    ck_assert_str_eq(text(FEED), "4");
    ck_assert_str_eq(text("SELECT running::text FROM claimd.maps"), "3");
    ck_assert_str_eq(sql_refusal(db, "SELECT claimd.map_limit('m', 'many', NULL)::text"),
                     "CL002 max_running: must be 1 to 1000, or none");
    ck_assert_str_eq(sql_refusal(db, "SELECT claimd.map_limit('m', '1001', NULL)::text"),
                     "CL002 max_running: must be 1 to 1000");
    run("SELECT claimd.map_limit('m', 'none', NULL)::text");
    ck_assert_str_eq(text(FEED), "1996");
    ck_assert_str_eq(text("SELECT count(*)::text FROM claimd.key_limit"), "0");
    run("SELECT claimd.map_pause('m', true)::text");
    ck_assert_str_eq(text(KEYS), "3 2097 t");
    ck_assert_str_eq(text(FEED), "0");
    /* One that ran becomes available again meanwhile. */
    run("UPDATE claimd.job SET state = 'available' WHERE id = 1");
    ck_assert_str_eq(text(FEED), "0");
    ck_assert_str_eq(text(KEYS), "2 2098 t");
}
END_TEST

START_TEST(map_an_edit_can_not_make_a_job_of_another_map_or_of_none)
{
    given_map();
    ASSERT_REFUSED(db, "SELECT claimd.edit(1, '{\"unique_key\": \"map:m:9\"}')::text", "CL002", "");
    ck_assert_str_eq(text("SELECT has_column_privilege('claimd_producer', 'claimd.job', 'flags', "
                          "'INSERT')::text"),
                     "false");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("maps");
    TCase *tests = tcase_create("maps");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, map_a_job_is_made_of_each_row_with_the_keys_of_its_map);
    tcase_add_test(tests, map_the_end_of_a_row_is_kept_once_and_counted);
    tcase_add_test(tests,
                   map_a_second_pass_skips_what_has_completed_or_is_open_and_makes_the_others_anew);
    tcase_add_test(tests, map_a_second_pass_skips_a_row_that_has_just_completed);
    tcase_add_test(tests, map_two_loaders_do_not_load_a_chunk_twice);
    tcase_add_test(tests, map_another_query_key_kind_or_command_is_refused);
    tcase_add_test(tests, map_a_row_of_which_no_job_can_be_made_has_failed_with_the_reason);
    tcase_add_test(tests, map_failed_rows_run_again_and_count_as_open_until_they_end);
    tcase_add_test(tests, map_an_older_end_that_is_written_late_does_not_replace_a_newer_one);
    tcase_add_test(tests, map_nothing_starts_while_it_is_paused_and_its_limit_is_back_afterwards);
    tcase_add_test(tests, map_what_is_cancelled_loads_no_more_and_is_dropped_with_its_results);
    tcase_add_test(tests, map_no_more_jobs_are_due_than_may_soon_start);
    tcase_add_test(tests, map_without_a_limit_jobs_are_due_without_a_key_until_there_is_one);
    tcase_add_test(tests, map_an_edit_can_not_make_a_job_of_another_map_or_of_none);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
