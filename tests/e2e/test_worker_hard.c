/* SPDX-License-Identifier: Apache-2.0
 *
 * Difficult situations for a worker: paused between two steps, faced with a wall of locked rows,
 * with long jobs after short ones, without PostgreSQL when it is to end. One fleet serves all
 * tests. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define WORKER "claimd-worker"

static struct fleet f;

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = 3});
    fleet_start_scheduler(&f, 0);
}

static void teardown(void)
{
    fleet_stop(&f);
}

/* Removes what a failed test left, so that it does not disturb the next one. */
static void clean(void)
{
    for (size_t i = 0; i < FLEET_WORKERS_MAX; i++) {
        if (f.workers[i] > 0) {
            (void)kill(f.workers[i], SIGKILL);
            (void)fleet_wait_end(&f, &f.workers[i]);
        }
    }
}

static void drain(size_t i)
{
    fleet_signal(f.workers[i], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[i]), 0);
}

static int64_t completed(int64_t first, int64_t last)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM claimd.job_history WHERE id BETWEEN %lld AND %lld AND "
                      "state = 'completed'",
                      (long long)first, (long long)last);
}

static bool is_running(int64_t id)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM claimd.job WHERE id = %lld AND state = 'running'",
                      (long long)id) == 1;
}

static bool is_paused(pid_t pid)
{
    char path[64];
    char state = '?';
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
    (void)fclose(file);
    return state == 'T';
}

/* ---- pauses ---- */

static const char *const points[] = {"W1=stop", "W2=stop", "W3=stop",
                                     "W4=stop", "W5=stop", "W7=stop"};

START_TEST(A5_a_worker_paused_between_two_steps_until_it_was_marked_dead_works_on)
{
    enum { JOBS = 20 };
    fleet_start_worker(&f, 0, points[_i]);
    int64_t last = fleet_enqueue(&f, "noop", "{}", JOBS);
    ck_assert(WAIT_UNTIL(is_paused(f.workers[0]), SOON_US));
    fleet_start_worker(&f, 1, NULL);
    ck_assert(WAIT_UNTIL(completed(last - JOBS + 1, last) == JOBS, SOON_US));
    ck_assert(WAIT_UNTIL(!fleet_is_registered(&f, 0), SOON_US));
    drain(1);
    fleet_signal(f.workers[0], SIGCONT);
    ck_assert(WAIT_UNTIL(fleet_is_registered(&f, 0), SOON_US));
    last = fleet_enqueue(&f, "noop", "{}", JOBS);
    ck_assert(WAIT_UNTIL(completed(last - JOBS + 1, last) == JOBS, SOON_US));
    drain(0);
    ck_assert(WAIT_UNTIL(fleet_lock_keys(&f) == 0, SOON_US));
}
END_TEST

/* ---- pops whose reply was lost ---- */

static int64_t lost_pops(size_t i)
{
    return sql_number(
        f.sql,
        "SELECT COALESCE(sum(lost_pops), 0) FROM claimd.worker WHERE pid = %d AND NOT "
        "dead",
        (int)f.workers[i]);
}

/* Whatever the last rewind for the dead row has covered, this pop was lost after it. */
START_TEST(W0_a_lost_pop_told_by_a_heartbeat_that_was_not_confirmed_is_told_again)
{
    fleet_start_worker(&f, 5, NULL);
    ck_assert(WAIT_UNTIL(sql_number(f.sql,
                                    "SELECT count(*) FROM claimd.worker WHERE pid = %d AND "
                                    "beat_at > started_at + interval '100 ms'",
                                    (int)f.workers[5]) == 1,
                         SOON_US)); /* the next heartbeat is half a second away */
    sql_run(f.sql, "UPDATE claimd.worker SET dead = true WHERE pid = %d", (int)f.workers[5]);
    fleet_redis(&f, 2, "CLIENT KILL TYPE normal");
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 5, "event=worker_marked_dead") == 1, SOON_US));
    ck_assert(WAIT_UNTIL(lost_pops(5) > 0, SOON_US));
    drain(5);
}
END_TEST

/* ---- rows that cannot be claimed, jobs that take long ---- */

START_TEST(rule4_a_wall_of_locked_rows_does_not_hold_up_what_lies_behind_it)
{
    enum { WALL = 1000, BEHIND = 10 };
    fleet_start_worker(&f, 2, NULL);
    struct sql *psql = sql_open(f.conninfo);
    sql_run(psql, "BEGIN");
    int64_t wall = sql_number(f.sql,
                              "WITH new AS (INSERT INTO claimd.job (kind, priority, scheduled_at) "
                              "SELECT 'noop', 1, now() + interval '500 ms' FROM "
                              "generate_series(1, %d) RETURNING id) SELECT max(id) FROM new",
                              WALL);
    sql_run(psql, "SELECT FROM claimd.job WHERE id > %lld AND id <= %lld FOR UPDATE",
            (long long)wall - WALL, (long long)wall);
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql,
                   "SELECT count(*) FROM claimd.job WHERE scheduled_at > clock_timestamp()") == 0,
        SOON_US));
    int64_t last = fleet_enqueue(&f, "noop", "{}", BEHIND);
    ck_assert(WAIT_UNTIL(completed(last - BEHIND + 1, last) == BEHIND, SOON_US));
    ck_assert_int_eq(completed(wall - WALL + 1, wall), 0);
    sql_run(psql, "COMMIT");
    sql_close(psql);
    ck_assert(WAIT_UNTIL(completed(wall - WALL + 1, wall) == WALL, SOON_US));
    drain(2);
}
END_TEST

START_TEST(jobs_claimed_ahead_before_long_ones_are_given_back_once_not_for_ever)
{
    enum { SHORT = 2000, AFTER = 400 };
    fleet_start_worker(&f, 3, NULL);
    int64_t last = fleet_enqueue(&f, "noop", "{}", SHORT);
    ck_assert(WAIT_UNTIL(completed(last - SHORT + 1, last) == SHORT, SOON_US));
    int64_t lng = fleet_enqueue(&f, "sleep", "{\"ms\": 7000}", 2);
    ck_assert(WAIT_UNTIL(is_running(lng) && is_running(lng - 1), SOON_US));
    last = fleet_enqueue(&f, "noop", "{}", AFTER);
    ck_assert(WAIT_UNTIL(completed(last - AFTER + 1, last) == AFTER, SOON_US));
    int back = fleet_log_count(&f, WORKER, 3, "state=handed_back");
    ck_assert_msg(back < 2 * AFTER, "%d were given back", back);
    drain(3);
}
END_TEST

/* ---- PostgreSQL is away when the worker is to end ---- */

START_TEST(A8_results_that_cannot_be_committed_do_not_keep_a_worker_from_ending)
{
    struct err err = {0};
    fleet_start_worker(&f, 4, NULL);
    int64_t id = fleet_enqueue(&f, "sleep", "{\"ms\": 60000, \"deaf\": true}", 1);
    ck_assert(WAIT_UNTIL(is_running(id), SOON_US));
    pg_server_kill(&f.pg);
    fleet_signal(f.workers[4], SIGTERM);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 4, "event=draining") == 1, SOON_US));
    fleet_signal(f.workers[4], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[4]), 1);
    ck_assert_int_eq(fleet_log_count(&f, WORKER, 4, "event=drain_incomplete"), 1);
    ck_assert_msg(pg_server_restart(&f.pg, &err) == STATUS_OK, "%s", err.msg);
    sql_close(f.sql);
    f.sql = sql_open(f.conninfo);
    ck_assert(WAIT_UNTIL(!is_running(id), SOON_US)); /* rescued */
}
END_TEST

/* Faulty handlers, each between correct jobs. */
static const struct {
    const char *kind;
    const char *args;
} whims[] = {{"retry", "{\"until\": 2, \"ms\": 10000000000000}"},
             {"retry", "{\"until\": 2, \"ms\": 9223372036854775807}"},
             {"retry", "{\"until\": 2, \"ms\": -9223372036854775808}"},
             {"retry", "{\"until\": 2, \"ms\": 31622400000}"},
             {"huge_result", "{}"},
             {"bad_result_nul", "{}"},
             {"bad_result_surrogate", "{}"},
             {"bad_result_number", "{}"},
             {"bad_result_utf8", "{}"},
             {"no_outcome", "{}"}};

START_TEST(G5_whatever_a_handler_returns_the_others_finish_and_a_drain_ends)
{
    int64_t first = fleet_enqueue(&f, "noop", "{}", 1);
    for (size_t i = 0; i < ARRAY_COUNT(whims); i++) {
        (void)fleet_enqueue(&f, whims[i].kind, whims[i].args, 1);
        (void)fleet_enqueue(&f, "noop", "{}", 20);
    }
    int64_t last = fleet_enqueue(&f, "noop", "{}", 1);
    int64_t noops = 2 + 20 * (int64_t)ARRAY_COUNT(whims);
    fleet_start_worker(&f, 0, NULL);
    ck_assert(WAIT_UNTIL(completed(first, last) == noops, SOON_US));
    ck_assert(
        WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE state = 'running' "
                                     "OR attempt = 0") == 0,
                   SOON_US));
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE kind = 'retry' AND "
                                       "scheduled_at <= now() + interval '366 days'"),
                     4);
    drain(0);
    ck_assert_int_eq(fleet_log_count(&f, WORKER, 0, "event=drain_incomplete"), 0);
    sql_run(f.sql, "SELECT claimd.cancel(id) FROM claimd.job");
}
END_TEST

/* Inserts jobs as an earlier release permitted them, and marks them as the upgrade does. */
static void without_rules(const char *sql)
{
    sql_run(f.sql, "ALTER TABLE claimd.job DISABLE TRIGGER job_checked");
    sql_run(f.sql, "%s", sql);
    sql_run(f.sql, "ALTER TABLE claimd.job ENABLE TRIGGER job_checked");
    sql_run(f.sql, "SELECT claimd.mark_too_long()");
}

/* Few bytes in the table, many as text. */
START_TEST(H1_a_job_that_is_too_long_for_a_runner_fails_and_costs_none)
{
    int64_t first = fleet_enqueue(&f, "noop", "{}", 1);
    int died = fleet_log_count(&f, WORKER, 0, "event=runner_died");
    without_rules("INSERT INTO claimd.job (kind, args, metadata) SELECT 'noop',"
                  " '{}'::jsonb, '{\"n\": 1e131071}'::jsonb UNION ALL SELECT 'noop', "
                  "jsonb_agg(1e131071::numeric), NULL"
                  " FROM generate_series(1, 20)");
    sql_run(f.sql, "INSERT INTO claimd.job (kind, tags)"
                   " SELECT 'noop', array_fill(NULL::text, '{60000}')");
    int64_t last = fleet_enqueue(&f, "noop", "{}", 1);
    fleet_start_worker(&f, 0, NULL);
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql, "SELECT count(*) FROM claimd.job_history WHERE id BETWEEN %lld AND %lld",
                   (long long)first, (long long)last) == 5,
        SOON_US));
    ck_assert_int_eq(completed(first, last), 2);
    ck_assert_int_eq(
        sql_number(
            f.sql,
            "SELECT count(*) FROM claimd.job_history h JOIN claimd.job_attempt a ON a.job_id ="
            " h.id AND a.error = h.error WHERE h.id BETWEEN %lld AND %lld AND h.attempt = 1 AND"
            " h.state = 'discarded' AND h.error ~ '^((args|metadata): too long for a "
            "handler|tags: \\d+ "
            "bytes as text)'",
            (long long)first, (long long)last),
        3);
    drain(0);
    ck_assert_int_eq(fleet_log_count(&f, WORKER, 0, "event=runner_died"), died);
}
END_TEST

/* A trigger of an operator: the job's end cannot be written to the history at all. */
START_TEST(W7_a_predecessors_job_that_can_not_be_recorded_does_not_keep_a_worker_from_starting)
{
    int64_t id = fleet_enqueue(&f, "sleep", "{\"ms\": 600000}", 1);
    sql_run(f.sql, "UPDATE claimd.job SET max_attempts = 1 WHERE id = %lld", (long long)id);
    fleet_start_worker(&f, 0, NULL);
    ck_assert(WAIT_UNTIL(is_running(id), SOON_US));
    sql_run(f.sql, "CREATE FUNCTION claimd.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                   " RAISE 'never'; END $$");
    sql_run(f.sql, "CREATE TRIGGER refuse BEFORE INSERT ON claimd.job_history FOR EACH ROW"
                   " EXECUTE FUNCTION claimd.refuse()");
    fleet_signal(f.workers[0], SIGKILL);
    (void)fleet_wait_end(&f, &f.workers[0]);
    fleet_start_worker(&f, 0, NULL); /* registered */
    ck_assert_int_eq(fleet_log_count(&f, WORKER, 0, "event=predecessor_left"), 1);
    sql_run(f.sql, "DROP FUNCTION claimd.refuse() CASCADE");
    ck_assert(WAIT_UNTIL(!is_running(id), SOON_US)); /* rescued */
    drain(0);
}
END_TEST

/* One node accepts connections and does not answer: the leases are not free before its deadline. */
START_TEST(A3_a_worker_told_to_end_while_it_frees_its_predecessors_leases_ends_well)
{
    int64_t id = fleet_enqueue(&f, "sleep", "{\"ms\": 600000}", 1);
    fleet_start_worker(&f, 0, NULL);
    ck_assert(WAIT_UNTIL(is_running(id), SOON_US));
    int before = fleet_log_count(&f, WORKER, 0, "event=predecessor_ended");
    fleet_signal(f.workers[0], SIGKILL);
    (void)fleet_wait_end(&f, &f.workers[0]);
    fleet_redis(&f, 0, "CLIENT PAUSE 2000 WRITE");
    fleet_launch_worker(&f, 0, (const char *const[]){"CLAIMD_LOCK_NODE_TIMEOUT_MS=1000", NULL});
    ck_assert(
        WAIT_UNTIL(fleet_log_count(&f, WORKER, 0, "event=predecessor_ended") > before, SOON_US));
    fleet_signal(f.workers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[0]), 0);
    fleet_redis(&f, 0, "CLIENT UNPAUSE");
    ck_assert(WAIT_UNTIL(!is_running(id), SOON_US)); /* rescued */
    sql_run(f.sql, "SELECT claimd.cancel(%lld)", (long long)id);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("worker's hard times");
    TCase *c = tcase_create("hard times");
    tcase_set_timeout(c, 60);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_checked_fixture(c, NULL, clean);
    tcase_add_loop_test(c, A5_a_worker_paused_between_two_steps_until_it_was_marked_dead_works_on,
                        0, (int)ARRAY_COUNT(points));
    tcase_add_test(c, W0_a_lost_pop_told_by_a_heartbeat_that_was_not_confirmed_is_told_again);
    tcase_add_test(c, jobs_claimed_ahead_before_long_ones_are_given_back_once_not_for_ever);
    tcase_add_test(c, G5_whatever_a_handler_returns_the_others_finish_and_a_drain_ends);
    tcase_add_test(c, H1_a_job_that_is_too_long_for_a_runner_fails_and_costs_none);
    tcase_add_test(
        c, W7_a_predecessors_job_that_can_not_be_recorded_does_not_keep_a_worker_from_starting);
    tcase_add_test(c, A3_a_worker_told_to_end_while_it_frees_its_predecessors_leases_ends_well);
    tcase_add_test(c, rule4_a_wall_of_locked_rows_does_not_hold_up_what_lies_behind_it);
    /* This one must be the last. */
    tcase_add_test(c, A8_results_that_cannot_be_committed_do_not_keep_a_worker_from_ending);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
