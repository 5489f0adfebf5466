/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl map with real daemons: a command runs for each row, and each row completes once even if
 * processes are killed meanwhile. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define OUTPUT_MAX ((size_t)1 << 20)
#define WORDS_MAX 24
#define RUN_US (3 * SOON_US) /* for CLAIMD_MAP_ROWS=200000 on a busy machine */
#define ROWS_OF_CHAOS 20000

static struct fleet fleet;
static char script[SERVER_PATH_MAX + 16];
static char commands[2 * SERVER_PATH_MAX];
static struct buf out = BUF_INIT(OUTPUT_MAX);

/* ---- claimctl ---- */

static char config[SERVER_PATH_MAX + 48];
static const char *const config_env[] = {config, NULL};

static void put_argv(const char *const *words, const char *ret_argv[WORDS_MAX])
{
    static char claimctl[SERVER_PATH_MAX];
    size_t n = 2;
    (void)snprintf(claimctl, sizeof claimctl, "%s/claimctl", getenv("CLAIMD_BIN_DIR"));
    (void)snprintf(config, sizeof config, "CLAIMD_CONFIG=%s/config.json", fleet.dir);
    ret_argv[0] = claimctl;
    ret_argv[1] = "map";
    while (*words != NULL && n < WORDS_MAX - 1) {
        ret_argv[n++] = *words++;
    }
    ret_argv[n] = NULL;
}

static int run_words(const char *const *words)
{
    const char *argv[WORDS_MAX];
    struct err err = {0};
    int code = -1;
    put_argv(words, argv);
    buf_reset(&out);
    ck_assert_msg(program_run(argv, config_env, RUN_US, &out, &code, &err) == STATUS_OK, "%s",
                  err.msg);
    return code;
}
#define map(...) run_words((const char *const[]){__VA_ARGS__, NULL})

static pid_t start_words(const char *const *words)
{
    const char *argv[WORDS_MAX];
    char log[SERVER_PATH_MAX + 16];
    struct err err = {0};
    pid_t pid = 0;
    put_argv(words, argv);
    (void)snprintf(log, sizeof log, "%s/map.log", fleet.dir);
    ck_assert_msg(program_start(argv, config_env, log, &pid, &err) == STATUS_OK, "%s", err.msg);
    return pid;
}
#define start_map(...) start_words((const char *const[]){__VA_ARGS__, NULL})

#define TEXT_IS(expected, query) ck_assert_str_eq(sql_text(fleet.sql, "%s", (query)), (expected))
#define NUMBER(query) sql_number(fleet.sql, "%s", (query))

/* ---- the fleet ---- */

static void setup(void)
{
    fleet_start(&fleet, &(struct fleet_options){.slots = 4});
    (void)snprintf(script, sizeof script, "%s/t.sh", fleet.dir);
    FILE *file = fopen(script, "we");
    ck_assert_ptr_nonnull(file);
    (void)fputs("#!/bin/sh\n[ \"$2\" = bad ] && { echo \"no $1\"; exit 1; }\necho \"\\\"$2\\\"\"\n",
                file);
    (void)fclose(file);
    ck_assert_int_eq(chmod(script, 0755), 0);
    (void)snprintf(commands, sizeof commands,
                   "CLAIMD_WORKER_COMMANDS={\"t\": [\"%s\", \"{id}\", \"{path}\"]}", script);
    const char *const env[] = {commands, NULL};
    fleet_start_scheduler(&fleet, 0);
    fleet_start_worker_with(&fleet, 0, env);
    fleet_start_worker_with(&fleet, 1, env);
    sql_run(fleet.sql, "CREATE TABLE public.asset (id bigint PRIMARY KEY, path text)");
}

static void teardown(void)
{
    buf_release(&out);
    fleet_stop(&fleet);
}

static void fill(int rows)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO public.asset SELECT g, 'p' || g FROM generate_series(1, %d) AS g",
                   rows);
    sql_run(fleet.sql, "%s", sql);
    sql_run(fleet.sql, "ANALYZE public.asset");
}

#define ASSET "SELECT id, path FROM asset"

START_TEST(map_runs_the_command_of_each_row_and_puts_the_results_into_a_table)
{
    fill(200);
    sql_run(fleet.sql, "UPDATE public.asset SET path = 'bad' WHERE id = 7");
    sql_run(fleet.sql, "UPDATE public.asset SET path = '-x' WHERE id = 8");
    sql_run(fleet.sql, "CREATE TABLE public.result (key bigint PRIMARY KEY, state text, result "
                       "jsonb, error text, ended_at timestamptz)");
    sql_run(fleet.sql, "SELECT claimd.set_kind('command_t', '{\"max_attempts\": 1}')");
    ck_assert_int_eq(
        map("--sql", ASSET, "--batch", "m", "--into", "result", "--", script, "{id}", "{path}"), 1);
    ck_assert_msg(strstr(buf_at(&out), "2 rows failed; claimctl map show --failed m") != NULL, "%s",
                  buf_at(&out));
    TEXT_IS("198 completed 2 discarded",
            "SELECT string_agg(concat_ws(' ', n, state), ' ' ORDER BY state) FROM (SELECT count(*) "
            "AS n, state FROM public.result GROUP BY state) AS s");
    ck_assert_int_eq(
        NUMBER("SELECT count(*) FROM public.result r JOIN public.asset a ON a.id = r.key "
               "WHERE r.result = to_jsonb(a.path)"),
        198);
    TEXT_IS("args.path begins with '-', which the program would take for an option: put \"--\" "
            "before {path} in the command",
            "SELECT error FROM public.result WHERE key = 8");
    ck_assert_int_eq(map("show", "m", "--failed"), 0);
    ck_assert_ptr_nonnull(strstr(buf_at(&out), "no 7")); /* from its log */
    /* Only rows that have failed run again. */
    sql_run(fleet.sql, "UPDATE public.asset SET path = 'good' WHERE id IN (7, 8)");
    ck_assert_int_eq(map("--sql", ASSET, "--batch", "m", "--wait", "--", script, "{id}", "{path}"),
                     0);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM public.result WHERE state = 'completed'"), 200);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM claimd.job_history"), 202);
    ck_assert_int_eq(map("--sql", ASSET, "--batch", "m", "--wait", "--", script, "{id}", "{path}"),
                     0);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM claimd.job_history"),
                     202); /* nothing ran again */
}
END_TEST

/* The largest number of the map's runs at one time, from the times of their starts and ends. */
#define MOST_AT_A_TIME                                                                             \
    "SELECT max(n) FROM (SELECT sum(by) OVER (ORDER BY at, by) AS n FROM (SELECT attempted_at AS " \
    "at, 1 AS by FROM claimd.job_history UNION ALL SELECT finalized_at, -1 FROM "                  \
    "claimd.job_history) AS e) AS s"

START_TEST(map_no_more_rows_run_at_a_time_than_its_concurrency_also_when_it_is_changed)
{
    fill(60);
    sql_run(fleet.sql, "UPDATE public.asset SET id = id + 100");
    ck_assert_int_eq(map("--sql", "SELECT id AS ms FROM asset", "--batch", "m", "--concurrency",
                         "2", "--kind", "sleep"),
                     0);
    ck_assert(WAIT_UNTIL(NUMBER("SELECT completed FROM claimd.maps") >= 10, SOON_US));
    ck_assert_int_eq(NUMBER(MOST_AT_A_TIME), 2);
    ck_assert_int_eq(map("limit", "m", "--concurrency", "5"), 0);
    ck_assert(WAIT_UNTIL(NUMBER("SELECT running FROM claimd.maps") == 5, SOON_US));
    ck_assert_int_eq(map("attach", "m"), 0);
    ck_assert_int_eq(NUMBER(MOST_AT_A_TIME), 5);
    ck_assert_int_eq(NUMBER("SELECT completed FROM claimd.maps"), 60);
}
END_TEST

START_TEST(map_nothing_of_it_starts_while_it_is_paused)
{
    fill(400);
    ck_assert_int_eq(map("--sql", "SELECT id AS ms FROM asset", "--batch", "m", "--kind", "sleep"),
                     0);
    ck_assert(WAIT_UNTIL(NUMBER("SELECT completed FROM claimd.maps") >= 4, SOON_US));
    ck_assert_int_eq(map("pause", "m", "--json"), 0);
    ck_assert_ptr_nonnull(strstr(buf_at(&out), "\"paused\": true"));
    ck_assert(WAIT_UNTIL(NUMBER("SELECT running FROM claimd.maps") == 0, SOON_US));
    int64_t started = NUMBER("SELECT count(*) FROM claimd.job_history");
    int64_t id = fleet_enqueue(&fleet, "sleep", "{\"ms\": 500}", 1); /* other jobs still run */
    fleet_wait_state(&fleet, id, "completed");
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM claimd.job_history"), started + 1);
    ck_assert_int_eq(map("resume", "m"), 0);
    ck_assert_int_eq(map("attach", "m"), 0);
    ck_assert_int_eq(map("drop", "m"), 0);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM claimd.map_done"), 0);
}
END_TEST

START_TEST(map_ctrl_c_stops_behind_a_chunk_and_says_how_to_go_on)
{
    fill(20000);
    sql_run(fleet.sql,
            "CREATE FUNCTION public.slowly(id bigint) RETURNS bigint STABLE LANGUAGE plpgsql AS "
            "'BEGIN PERFORM pg_sleep(0.0002); RETURN id; END'");
    pid_t pid =
        start_map("--sql", "SELECT id, slowly(id) FROM asset", "--batch", "m", "--kind", "noop");
    ck_assert(WAIT_UNTIL(NUMBER("SELECT count(*) FROM claimd.map WHERE rows > 0") == 1, SOON_US));
    fleet_signal(pid, SIGINT);
    ck_assert_int_eq(fleet_wait_end(&fleet, &pid), 1);
    char log[SERVER_PATH_MAX + 16];
    (void)snprintf(log, sizeof log, "%s/map.log", fleet.dir);
    ck_assert_int_eq(fleet_count_lines(log, "to continue: claimctl map attach m"), 1);
    TEXT_IS("t f",
            "SELECT concat_ws(' ', rows % 5000 = 0 AND rows = last_key::int, loaded_at IS NOT "
            "NULL) FROM claimd.map");
    ck_assert_int_eq(map("attach", "m"), 0);
    ck_assert_int_eq(NUMBER("SELECT completed FROM claimd.maps WHERE state = 'done'"), 20000);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM claimd.job_history"), 20000);
}
END_TEST

static void kill_postgres(void)
{
    struct err err = {0};
    pg_server_kill(&fleet.pg);
    ck_assert_msg(pg_server_restart(&fleet.pg, &err) == STATUS_OK, "%s", err.msg);
    sql_close(fleet.sql);
    fleet.sql = sql_open(fleet.conninfo);
}

/* Kills a loader, workers, schedulers and PostgreSQL, each in the middle of its work. */
START_TEST(map_each_row_is_completed_once_whatever_is_killed_meanwhile)
{
    const char *const env[] = {commands, NULL};
    const char *rows = getenv("CLAIMD_MAP_ROWS");
    int count = rows == NULL ? ROWS_OF_CHAOS : (int)strtol(rows, NULL, 10);
    char done[120];
    fill(count);
    pid_t pid = start_map("--sql", ASSET, "--batch", "m", "--kind", "noop");
    ck_assert(WAIT_UNTIL(NUMBER("SELECT count(*) FROM claimd.map WHERE rows > 0") == 1, SOON_US));
    fleet_signal(pid, SIGKILL);
    (void)fleet_wait_end(&fleet, &pid);
    fleet_signal(fleet.workers[1], SIGKILL);
    (void)fleet_wait_end(&fleet, &fleet.workers[1]);
    pid = start_map("attach", "m");
    ck_assert(WAIT_UNTIL(NUMBER("SELECT count(*) FROM claimd.map_done") > 0, SOON_US));
    fleet_signal(fleet.schedulers[0], SIGKILL);
    (void)fleet_wait_end(&fleet, &fleet.schedulers[0]);
    fleet_start_worker_with(&fleet, 1, env);
    fleet_start_scheduler(&fleet, 0);
    kill_postgres();
    (void)fleet_wait_end(&fleet, &pid); /* the loader lost its connection, or had ended */
    ck_assert_int_eq(map("attach", "m"), 0);
    (void)snprintf(done, sizeof done, "done %d %d %d", count, count, count);
    TEXT_IS(done,
            "SELECT concat_ws(' ', state, rows, completed, (SELECT count(*) FROM claimd.map_done "
            "WHERE state = 'completed')) FROM claimd.maps");
    ck_assert_int_eq(
        NUMBER("SELECT count(DISTINCT unique_key) FROM claimd.job_history WHERE state = "
               "'completed'"),
        count);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM claimd.job_history WHERE state = 'completed'"),
                     count);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("map");
    TCase *tests = tcase_create("map");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 1000);
    tcase_add_test(tests, map_runs_the_command_of_each_row_and_puts_the_results_into_a_table);
    tcase_add_test(tests,
                   map_no_more_rows_run_at_a_time_than_its_concurrency_also_when_it_is_changed);
    tcase_add_test(tests, map_nothing_of_it_starts_while_it_is_paused);
    tcase_add_test(tests, map_ctrl_c_stops_behind_a_chunk_and_says_how_to_go_on);
    tcase_add_test(tests, map_each_row_is_completed_once_whatever_is_killed_meanwhile);
    suite_add_tcase(suite, tests);
    return suite_run_as(suite, CK_FORK);
}
