/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl queues, stats and top: their counts, that they stay bounded, and how a screen
 * behaves. */
#include "ctl_fixture.h"
#include "ctl_terminal.h"
#include "sql/queries.h"

#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>

#define WORKER "00000000-0000-0000-0000-0000000000aa"
#define INSERT_WORKER                                                                            \
    "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, running, host, state_dir, "     \
    "token_prefix, version, queues, kinds) VALUES ('" WORKER "', now() + interval '1 h', 4711, " \
    "4, 3, 'host-1', '/s', 'p', '1', '{default,idle}', '{a,b}')"
#define INSERT_ENDED(count)                                                                       \
    "INSERT INTO claimd.job_history (id, fence, created_at, scheduled_at, ready_at, "             \
    "attempted_at, finalized_at, worker_id, attempt, crashes, generation, priority, share, "      \
    "state, queue, kind, args) SELECT g, g, now(), now(), now(), now(), now(), '" WORKER "', 1, " \
    "0, 0, 4, 0, 'completed', 'gone', 'a', '{}' FROM generate_series(1, " count ") g"

/* Returns the row of a table whose key `key` has this value; borrowed. */
static json_t *row_of(json_t *root, const char *table, const char *key, const char *value)
{
    size_t i = 0;
    json_t *row = NULL;
    json_array_foreach(json_object_get(root, table), i, row)
    {
        const char *text = json_string_value(json_object_get(row, key));
        if (text != NULL && strcmp(text, value) == 0) {
            return row;
        }
    }
    ck_abort_msg("no %s '%s' in %s", key, value, ctl_text());
    return NULL;
}

static double number_of(const json_t *row, const char *key)
{
    json_t *value = json_object_get(row, key);
    ck_assert_msg(json_is_number(value), "%s is no number", key);
    return json_number_value(value);
}

START_TEST(queues_says_how_deep_how_old_how_fast_and_who_serves)
{
    sql_run(db, INSERT_WORKER);
    sql_run(db, "INSERT INTO claimd.queue VALUES ('mail', true)");
    sql_run(db, "INSERT INTO claimd.job (kind, queue, scheduled_at, created_at) VALUES ('a', "
                "'default', now(), now()), ('a', 'default', now() + interval '1 h', now()), ('b', "
                "'mail', now() - interval '9 s', now() - interval '9 s')");
    sql_run(db, "UPDATE claimd.job SET state = 'running' WHERE id = 1");
    sql_run(db, INSERT_ENDED("600"));
    ck_assert_int_eq(ctl_exit("queues", "--json"), 0);
    json_t *root = ctl_json();
    ck_assert_uint_eq(json_array_size(json_object_get(root, "queues")), 4);
    json_t *row = row_of(root, "queues", "queue", "default");
    ck_assert_double_eq(number_of(row, "running"), 1);
    ck_assert_double_eq(number_of(row, "scheduled"), 1);
    ck_assert_double_eq(number_of(row, "workers"), 1);
    ck_assert_str_eq(json_string_value(json_object_get(row, "kinds")), "a,b");
    ck_assert(json_is_false(json_object_get(row, "estimated")));
    row = row_of(root, "queues", "queue", "mail");
    ck_assert_double_eq(number_of(row, "available"), 1);
    ck_assert_double_ge(number_of(row, "oldest_due_s"), 9);
    ck_assert(json_is_true(json_object_get(row, "paused")));
    ck_assert_double_eq(number_of(row, "workers"), 0);
    ck_assert_double_eq(number_of(row_of(root, "queues", "queue", "idle"), "available"), 0);
    ck_assert_double_ge(number_of(row_of(root, "queues", "queue", "gone"), "per_s"), 10);
    ck_assert_double_eq(number_of(row_of(root, "queues", "queue", "gone"), "wait_p95_s"), 0);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("queues"), 0);
    assert_says("QUEUE   AVAILABLE SCHEDULED RETRYABLE WAITING RUNNING OLDEST DUE S PER S PAUSED "
                "WORKERS KINDS WAIT P95 S\n");
}
END_TEST

/* ---- large tables ---- */

static void add_many(struct sql *pg)
{
    for (int i = 0; i < 4; i++) {
        sql_run(pg, "INSERT INTO claimd.job (kind, queue, scheduled_at) SELECT 'a', 'bulk', now() "
                    "+ interval '1 d' FROM generate_series(1, 30000)");
    }
    sql_run(pg, "INSERT INTO claimd.job (kind, queue) VALUES ('a', 'rare')");
    sql_run(pg, INSERT_ENDED("30000"));
    sql_run(pg, "ANALYZE claimd.job");
}

static int64_t scans(struct sql *pg, const struct pg_statement *statement, const char *what)
{
    sql_run(pg,
            "CREATE OR REPLACE FUNCTION pg_temp.plan() RETURNS SETOF text LANGUAGE plpgsql AS $f$ "
            "BEGIN RETURN QUERY EXECUTE replace(replace(replace($q$EXPLAIN %s$q$, '$1', 'true'), "
            "'$2', 'true'), '$3', '9223372036854775807'); END $f$",
            statement->sql);
    return sql_number(pg, "SELECT count(*)::text FROM pg_temp.plan() AS p WHERE p ~ '%s'", what);
}

static void assert_bounded(struct sql *pg)
{
    static const struct pg_statement *const statements[] = {
        &SQL_ADMIN_QUEUES, &SQL_ADMIN_STATS_FINISHED, &SQL_ADMIN_UNSERVED, &SQL_ADMIN_JOBS_LAST};
    ck_assert_int_gt(scans(pg, &SQL_ADMIN_QUEUES, "Tid Range Scan on job_history"), 0);
    for (size_t i = 0; i < ARRAY_COUNT(statements); i++) {
        int64_t count = scans(pg, statements[i], "Seq Scan on job( |$)|Seq Scan on job_history");
        ck_assert_msg(count == 0, "%s: %s", statements[i]->name,
                      sql_text(pg, "SELECT string_agg(p, E'\\n') FROM pg_temp.plan() p"));
    }
}

START_TEST(of_large_tables_nothing_is_read_whole_and_estimates_say_so)
{
    struct sql *pg = sql_open(world.conninfo);
    add_many(pg);
    assert_bounded(pg);
    sql_close(pg);
    ck_assert_int_eq(ctl_exit("queues", "--json"), 0);
    json_t *root = ctl_json();
    json_t *row = row_of(root, "queues", "queue", "bulk");
    ck_assert(json_is_true(json_object_get(row, "estimated")));
    ck_assert_double_ge(number_of(row, "scheduled"), 96000);
    ck_assert_double_le(number_of(row, "scheduled"), 144000);
    row = row_of(root, "queues", "queue", "rare");
    ck_assert(json_is_false(json_object_get(row, "estimated")));
    ck_assert_double_eq(number_of(row, "available"), 1);
    json_decref(root);
    ck_assert_int_eq(ctl_exit("stats"), 0);
    assert_says(" ~");
    assert_says("rare          1 ");
}
END_TEST

/* The newest pages contain jobs that ended within a moment; such a rate did not last for a quarter
 * of an hour. */
START_TEST(stats_count_no_more_than_there_are)
{
    sql_run(db, "INSERT INTO claimd.job_history (id, fence, created_at, scheduled_at, ready_at, "
                "attempted_at, worker_id, attempt, crashes, generation, priority, share, state, "
                "queue, kind, args) SELECT n, n, now(), now(), now(), now(), gen_random_uuid(), 1, "
                "0, 0, 4, 0, 'completed', 'default', 'a', to_jsonb(repeat(md5(n::text), 6)) FROM "
                "generate_series(1, 80000) AS n");
    ck_assert_int_eq(ctl_exit("stats", "--json"), 0);
    json_t *root = ctl_json();
    json_t *rows = json_object_get(root, "finished");
    ck_assert_uint_eq(json_array_size(rows), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *row = json_array_get(rows, i);
        ck_assert_double_le(number_of(row, "completed"), 80000 * 1.1);
        ck_assert_double_ge(number_of(row, "completed"), 30000);
        ck_assert_double_le(number_of(row, "per_s") * 60 * number_of(row, "minutes"), 90000);
    }
    json_decref(root);
}
END_TEST

/* ---- one report ---- */

START_TEST(top_to_a_pipe_is_one_look)
{
    sql_run(db, INSERT_WORKER);
    ck_assert_int_eq(ctl_exit("top"), 0);
    assert_says("1 worker, 3/4 slots");
    assert_says("HOST ");
    ck_assert_ptr_null(strchr(ctl_text(), '\x1b'));
    ck_assert_int_eq(ctl_exit("top", "--json"), 0);
    json_t *root = ctl_json();
    ck_assert_double_eq(number_of(row_of(root, "workers", "host", "host-1"), "slots"), 4);
    ck_assert_uint_eq(json_array_size(json_object_get(root, "finished")), 3);
    json_decref(root);
}
END_TEST

START_TEST(top_says_when_nobody_leads_or_has_a_quorum)
{
    sql_run(db, INSERT_WORKER);
    sql_run(db, "UPDATE claimd.worker SET lock_nodes = 5, lock_nodes_voting = 2");
    ck_assert_int_eq(ctl_exit("top"), 0);
    assert_says("no leader: no scheduler runs, due jobs are not fed\n"
                "no quorum: 1 of 1 workers claim nothing, 2 of 5 lock nodes vote for them\n");
    sql_run(db, "INSERT INTO claimd.scheduler (scheduler_id, stale_at, leader_since, pid, "
                "lock_nodes, lock_nodes_voting, host, version) VALUES (gen_random_uuid(), now() + "
                "interval '1 h', now(), 1, 5, 5, 'host-2', '1')");
    sql_run(db, "UPDATE claimd.worker SET lock_nodes_voting = 3");
    ck_assert_int_eq(ctl_exit("top"), 0);
    ck_assert_ptr_null(strstr(ctl_text(), "no leader"));
    ck_assert_ptr_null(strstr(ctl_text(), "no quorum"));
    ck_assert_int_eq(ctl_exit("top", "--json"), 0);
    json_t *root = ctl_json();
    json_t *health = json_object_get(root, "health");
    ck_assert_double_eq(number_of(health, "leaders"), 1);
    ck_assert_double_eq(number_of(health, "workers_without_quorum"), 0);
    ck_assert(json_is_null(json_object_get(health, "trouble")));
    json_decref(root);
}
END_TEST

START_TEST(a_wrong_interval_is_exit_2)
{
    ck_assert_int_eq(ctl_exit("top", "--every", "1ms"), 2);
    assert_says("--every: '1ms' is not allowed; allowed: 100ms to 1h");
    ck_assert_int_eq(ctl_exit("stats", "--watch", "often"), 2);
    assert_says("--watch: 'often' is not a duration");
    ck_assert_int_eq(ctl_exit("stats", "--watch=2h"), 2);
}
END_TEST

/* ---- on a terminal ---- */

START_TEST(top_takes_the_screen_and_gives_it_back)
{
    struct terminal t;
    sql_run(db, INSERT_WORKER);
    terminal_run(&t, (const char *const[]){"top", "--every", "1h", NULL}, "X=");
    terminal_await(&t, "\x1b[?1049h");
    terminal_await(&t, "host-1");
    terminal_await(&t, "\x1b[1mQUEUE");
    ck_assert_int_eq(write(t.master, "q", 1), 1);
    ck_assert_int_eq(terminal_end(&t, "\x1b[?1049l"), 0);
}
END_TEST

START_TEST(ctrl_c_ends_top_like_q)
{
    struct terminal t;
    terminal_run(&t, (const char *const[]){"top", "--every", "1h", NULL}, "NO_COLOR=1");
    terminal_await(&t, "no workers");
    ck_assert_ptr_null(strstr(buf_at(&t.seen), "\x1b[1m"));
    ck_assert_int_eq(write(t.master, "\x03", 1), 1);
    ck_assert_int_eq(terminal_end(&t, "\x1b[?1049l"), 0);
}
END_TEST

START_TEST(a_new_size_is_drawn_at_once)
{
    const struct winsize wide = {.ws_row = 24, .ws_col = 200};
    struct terminal t;
    sql_run(db, INSERT_WORKER);
    terminal_run(&t, (const char *const[]){"top", "--every", "1h", NULL}, "X=");
    terminal_await(&t, "host-1");
    ck_assert_ptr_null(strstr(buf_at(&t.seen), WORKER));
    ck_assert_int_eq(ioctl(t.master, TIOCSWINSZ, &wide), 0);
    terminal_await(&t, WORKER);
    ck_assert_int_eq(kill(t.pid, SIGTERM), 0);
    ck_assert_int_eq(terminal_end(&t, "\x1b[?1049l"), 0);
}
END_TEST

START_TEST(a_list_that_goes_on_ends_with_the_next_command)
{
    struct terminal t;
    sql_run(db,
            "INSERT INTO claimd.job (kind, tags) SELECT 'a', '{a''b}' FROM generate_series(1, 5)");
    terminal_run(&t, (const char *const[]){"jobs", "list", "--limit", "2", "--tag", "a'b", NULL},
                 "X=");
    ck_assert_int_eq(terminal_end(&t, "next: claimctl jobs list --limit 2 --tag 'a'\\''b' "
                                      "--after 4\r\n"),
                     0);
    ck_assert_int_eq(ctl_exit("jobs", "list", "--limit", "2"), 0);
    ck_assert_ptr_null(strstr(ctl_text(), "next"));
}
END_TEST

START_TEST(at_80_columns_no_line_is_wider)
{
    static const char *const commands[][3] = {
        {"jobs", "list"}, {"jobs", "show", "1"}, {"queues"}, {"workers"}, {"stats"}};
    sql_run(db, INSERT_WORKER);
    sql_run(
        db,
        "INSERT INTO claimd.job (kind, queue, attempt, args) SELECT repeat('k', 30), repeat('q', "
        "30), 1, jsonb_build_object('text', repeat('word ', 60)) FROM generate_series(1, 3)");
    sql_run(db, "INSERT INTO claimd.job_attempt (job_id, fence, attempt, worker_id, started_at, "
                "outcome, error, log_tail) SELECT id, 1, 1, '" WORKER
                "', now(), 'failed', repeat('long error ', 30), repeat('a line of the log', 20) "
                "FROM claimd.job");
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        struct terminal t;
        terminal_run(&t,
                     commands[i][1] == NULL ? (const char *const[]){commands[i][0], NULL}
                                            : (const char *const[]){commands[i][0], commands[i][1],
                                                                    commands[i][2], NULL},
                     "X=");
        terminal_assert_width(&t, 80);
    }
}
END_TEST

#define INSERT_CROWD                                                                           \
    "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, running, host, state_dir, "   \
    "token_prefix, version, queues, kinds) SELECT gen_random_uuid(), now() + interval '1 h', " \
    "4000000 + g, 1024, 1000, 'worker-number-' || g || '.example.org', '/s', 'p', '1', "       \
    "array_agg('queue-of-the-month-' || n), array_agg('kind_of_the_month_' || n) FROM "        \
    "generate_series(1, 20) g, generate_series(10, 15) n GROUP BY g"

/* Checks everything that a terminal shows, ignoring line breaks. */
static void assert_seen_unbroken(struct terminal *t, const char *const *wanted)
{
    terminal_await(t, "\n");
    terminal_read_all(t);
    for (; *wanted != NULL; wanted++) {
        ck_assert_msg(strstr(buf_at(&t->seen), *wanted) != NULL, "no '%s' in: %.3000s", *wanted,
                      buf_at(&t->seen));
    }
    ck_assert_ptr_null(strstr(buf_at(&t->seen), "…"));
    terminal_assert_width(t, 80);
}

START_TEST(at_80_columns_queues_and_workers_show_all_or_say_what_is_missing)
{
    struct terminal t;
    sql_run(db, INSERT_CROWD);
    sql_run(db, "INSERT INTO claimd.job (kind, queue, attempt, scheduled_at) SELECT 'a', "
                "'queue-of-the-month-10', 1, now() + interval '1 h' FROM generate_series(1, 9000)");
    terminal_run(&t, (const char *const[]){"queues", NULL}, "X=");
    assert_seen_unbroken(&t,
                         (const char *const[]){" RETRY ", " 9000 ", " KINDS", "kind_of_", NULL});
    terminal_run(&t, (const char *const[]){"workers", NULL}, "X=");
    assert_seen_unbroken(
        &t,
        (const char *const[]){" QUEUES", " KINDS",
                              "no room for VERSION, STARTED, WORKER ID; --json shows all", NULL});
    terminal_run(&t, (const char *const[]){"config", "show", "--origin", NULL},
                 "CLAIMD_LOCK_NODES=one.example.org:6379,two.example.org:6379,"
                 "three.example.org:6379");
    assert_seen_unbroken(
        &t, (const char *const[]){"\nworker.plugin_owners ", "\"three.example.org:6379\"]", NULL});
}
END_TEST

START_TEST(what_is_cut_is_told_below)
{
    struct terminal t;
    sql_run(db, "INSERT INTO claimd.job (kind, args) SELECT 'a', to_jsonb(repeat('long ', 60))");
    terminal_run(&t, (const char *const[]){"jobs", "list", "--columns", "id,args", NULL}, "X=");
    terminal_await(&t, "cut: ARGS; --json shows all\r\n");
    terminal_assert_width(&t, 80);
}
END_TEST

START_TEST(a_screen_ends_with_what_has_no_room_on_it)
{
    static const char *const views[][3] = {{"top", "--every", "1h"}, {"stats", "--watch", "1h"}};
    sql_run(db, INSERT_CROWD);
    sql_run(db, "INSERT INTO claimd.job (kind, queue) SELECT 'a', 'queue-of-the-month-' || g FROM "
                "generate_series(1, 40) g");
    for (size_t i = 0; i < ARRAY_COUNT(views); i++) {
        struct terminal t;
        terminal_run(&t, (const char *const[]){views[i][0], views[i][1], views[i][2], NULL},
                     "NO_COLOR=1");
        terminal_await(&t, i == 0 ? "HOST" : "MINUTES");
        terminal_await(&t, "\x1b[J");
        ck_assert_uint_le(terminal_lines(&t), 24);
        ck_assert_ptr_nonnull(strstr(buf_at(&t.seen), " more\x1b[K"));
        ck_assert_ptr_nonnull(strstr(buf_at(&t.seen), i == 0 ? "no room for QUEUES" : "15 "));
        ck_assert_int_eq(write(t.master, "q", 1), 1);
        terminal_assert_width(&t, 80);
    }
}
END_TEST

START_TEST(top_leaves_out_long_lists_rather_than_workers)
{
    struct terminal t;
    sql_run(
        db,
        "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, running, host, state_dir, "
        "token_prefix, version, queues, kinds) SELECT gen_random_uuid(), now() + interval '1 h', "
        "g, 4, 0, 'host-' || g, '/s', 'p', '1', '{default}', array_agg('kind_of_the_month_' || n) "
        "FROM generate_series(1, 3) g, generate_series(10, 50) n GROUP BY g");
    terminal_run(&t, (const char *const[]){"top", "--every", "1h", NULL}, "NO_COLOR=1");
    terminal_await(&t, "\x1b[J");
    ck_assert_uint_le(terminal_lines(&t), 24);
    for (const char *const *wanted =
             (const char *const[]){"host-1", "host-2", "host-3", "no room for KINDS", NULL};
         *wanted != NULL; wanted++) {
        ck_assert_msg(strstr(buf_at(&t.seen), *wanted) != NULL, "no '%s' in: %.3000s", *wanted,
                      buf_at(&t.seen));
    }
    ck_assert_int_eq(write(t.master, "q", 1), 1);
    terminal_assert_width(&t, 80);
}
END_TEST

START_TEST(postgresql_away_is_shown_and_tried_again)
{
    struct terminal t;
    (void)snprintf(ctl.conninfo, sizeof ctl.conninfo, "host=/nowhere");
    terminal_run(&t, (const char *const[]){"stats", "--watch", "1h", NULL}, "X=");
    terminal_await(&t, "trying again, q quits");
    ck_assert_int_eq(write(t.master, "q", 1), 1);
    ck_assert_int_eq(terminal_end(&t, "\x1b[?1049l"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl live");
    TCase *tests = tcase_create("live");
    tcase_add_checked_fixture(tests, ctl_setup, ctl_teardown);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, queues_says_how_deep_how_old_how_fast_and_who_serves);
    tcase_add_test(tests, of_large_tables_nothing_is_read_whole_and_estimates_say_so);
    tcase_add_test(tests, stats_count_no_more_than_there_are);
    tcase_add_test(tests, top_to_a_pipe_is_one_look);
    tcase_add_test(tests, top_says_when_nobody_leads_or_has_a_quorum);
    tcase_add_test(tests, a_wrong_interval_is_exit_2);
    tcase_add_test(tests, top_takes_the_screen_and_gives_it_back);
    tcase_add_test(tests, ctrl_c_ends_top_like_q);
    tcase_add_test(tests, a_new_size_is_drawn_at_once);
    tcase_add_test(tests, a_list_that_goes_on_ends_with_the_next_command);
    tcase_add_test(tests, at_80_columns_no_line_is_wider);
    tcase_add_test(tests, at_80_columns_queues_and_workers_show_all_or_say_what_is_missing);
    tcase_add_test(tests, what_is_cut_is_told_below);
    tcase_add_test(tests, a_screen_ends_with_what_has_no_room_on_it);
    tcase_add_test(tests, top_leaves_out_long_lists_rather_than_workers);
    tcase_add_test(tests, postgresql_away_is_shown_and_tried_again);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
