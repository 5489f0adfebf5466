/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugin files that change under a running worker, or that are invalid from the start: what is
 * served, what is logged, and that no job is charged. One fleet with a scheduler; each test has a
 * folder of plugins and a worker of its own. */
#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define LATER_US (60 * US_PER_S)
#define WORKER "claimd-worker"

static struct fleet f;
static char plugins[SERVER_PATH_MAX + 32]; /* folder of the present test */

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = 3});
    fleet_start_scheduler(&f, 0);
}

static void teardown(void)
{
    fleet_stop(&f);
}

static void make_folder(void)
{
    static int count;
    (void)snprintf(plugins, sizeof plugins, "%s/plugins-%d", f.dir, count++);
    ck_assert_int_eq(mkdir(plugins, 0755), 0);
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
    sql_run(f.sql, "DELETE FROM claimd.job");
}

/* Replaces the file with the first `size` bytes of a built plugin; 0 = all. */
static void put(const char *variable, const char *suffix, const char *file, const char *as,
                size_t size)
{
    static char bytes[4 << 20];
    char from[SERVER_PATH_MAX];
    char temporary[SERVER_PATH_MAX + 64];
    char to[SERVER_PATH_MAX + 64];
    (void)snprintf(from, sizeof from, "%s%s/%s", getenv(variable), suffix, file);
    (void)snprintf(temporary, sizeof temporary, "%s/new", plugins);
    (void)snprintf(to, sizeof to, "%s/%s", plugins, as);
    autoclose int in = open(from, O_RDONLY | O_CLOEXEC);
    autoclose int out = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ck_assert_msg(in >= 0 && out >= 0, "copy %s", from);
    ssize_t n = read(in, bytes, size == 0 ? sizeof bytes : size);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(write(out, bytes, (size_t)n), n);
    ck_assert_int_eq(rename(temporary, to), 0);
}

static void put_good(const char *file, size_t size)
{
    put("CLAIMD_PLUGIN_DIR", "", file, file, size);
}

static void put_bad(const char *file, const char *as)
{
    put("CLAIMD_TEST_PLUGIN_DIR", "_bad", file, as, 0);
}

static void launch(size_t i)
{
    char env[SERVER_PATH_MAX + 64];
    (void)snprintf(env, sizeof env, "CLAIMD_WORKER_PLUGIN_DIR=%s", plugins);
    fleet_launch_worker(&f, i, (const char *const[]){env, NULL});
    ck_assert(WAIT_UNTIL(fleet_is_registered(&f, i), LATER_US));
}

static void drain(size_t i)
{
    fleet_signal(f.workers[i], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[i]), 0);
}

static bool announces(size_t i, const char *kind)
{
    return sql_number(
               f.sql,
               "SELECT count(*) FROM claimd.worker WHERE pid = %d AND NOT stopped AND '%s' = "
               "ANY (kinds)",
               (int)f.workers[i], kind) == 1;
}

static int64_t completed(int64_t last, int count)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM claimd.job_history WHERE id > %lld AND id <= %lld AND "
                      "state = 'completed' AND attempt = 1",
                      (long long)last - count, (long long)last);
}

/* ---- files that change ---- */

static void replace_a_runner(size_t i)
{
    int before = fleet_log_count(&f, WORKER, i, "event=runner_died");
    (void)sql_number(f.sql, "WITH new AS (INSERT INTO claimd.job (kind, priority, max_attempts) "
                            "VALUES ('crash_abort', 1, 1) RETURNING id) SELECT id FROM new");
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, i, "event=runner_died") > before, SOON_US));
}

/* _i: 0 = an operator sends SIGHUP when it is valid again, 1 = no signal. */
START_TEST(G6_a_plugin_that_went_bad_is_withdrawn_and_its_jobs_wait_uncharged)
{
    enum { JOBS = 300, SIZE = 5000 };
    size_t i = (size_t)_i;
    make_folder();
    put_good("sleep.so", 0);
    put("CLAIMD_TEST_PLUGIN_DIR", "", "misbehave.so", "misbehave.so", 0);
    launch(i);
    ck_assert(WAIT_UNTIL(announces(i, "sleep"), SOON_US));
    int64_t last = fleet_enqueue(&f, "sleep", "{\"ms\": 20}", JOBS);
    put_good("sleep.so", SIZE);
    replace_a_runner(i);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, i, "event=kind_withdrawn kind=sleep") == 1,
                         SOON_US));
    ck_assert(WAIT_UNTIL(!announces(i, "sleep"), SOON_US));
    ck_assert(announces(i, "retry"));
    int64_t other = fleet_enqueue(&f, "retry", "{\"until\": 1}", 5);
    ck_assert(WAIT_UNTIL(completed(other, 5) == 5, SOON_US)); /* the other jobs run */
    ck_assert_int_lt(completed(last, JOBS), JOBS);
    ck_assert_int_eq(fleet_log_count(&f, WORKER, i, "event=plugin_refused file=sleep.so"), 1);
    put_good("sleep.so", 0);
    if (_i == 0) {
        fleet_signal(f.workers[i], SIGHUP);
    }
    ck_assert(
        WAIT_UNTIL(fleet_log_count(&f, WORKER, i, "event=kind_served kind=sleep") == 1, LATER_US));
    ck_assert(WAIT_UNTIL(completed(last, JOBS) == JOBS, LATER_US));
    ck_assert_int_eq(sql_number(f.sql,
                                "SELECT count(*) FROM claimd.job_attempt WHERE job_id > %lld AND "
                                "job_id <= %lld",
                                (long long)last - JOBS, (long long)last),
                     0);
    ck_assert(WAIT_UNTIL(announces(i, "sleep"), SOON_US));
    drain(i);
}
END_TEST

START_TEST(a_plugin_that_is_new_is_served_after_SIGHUP_and_its_kinds_are_known_first)
{
    make_folder();
    put_good("sleep.so", 0);
    launch(2);
    sql_run(f.sql, "DELETE FROM claimd.kind");
    put("CLAIMD_TEST_PLUGIN_DIR", "", "misbehave.so", "misbehave.so", 0);
    fleet_signal(f.workers[2], SIGHUP);
    ck_assert(WAIT_UNTIL(announces(2, "once"), SOON_US));
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM claimd.kind WHERE name = 'once' AND "
                                       "at_most_once"),
                     1);
    int64_t last = fleet_enqueue(&f, "retry", "{\"until\": 1}", 5);
    ck_assert(WAIT_UNTIL(completed(last, 5) == 5, SOON_US));
    ck_assert_int_eq(fleet_log_count(&f, WORKER, 2, "event=runner_died"), 0);
    drain(2);
}
END_TEST

/* ---- files that are invalid from the start ---- */

START_TEST(G6_a_plugin_that_was_bad_at_the_start_is_served_when_it_is_good)
{
    make_folder();
    put_good("sleep.so", 5000);
    launch(0);
    ck_assert(WAIT_UNTIL(fleet_log_count(&f, WORKER, 0, "event=no_kinds") == 1, SOON_US));
    int64_t last = fleet_enqueue(&f, "sleep", "{\"ms\": 1}", 5);
    put_good("sleep.so", 0);
    ck_assert(WAIT_UNTIL(completed(last, 5) == 5, LATER_US)); /* without any signal */
    ck_assert(WAIT_UNTIL(announces(0, "sleep"), SOON_US));
    drain(0);
}
END_TEST

START_TEST(G6_plugins_that_hang_are_each_named_and_the_others_are_served)
{
    char text[64];
    make_folder();
    put_good("noop.so", 0);
    for (int i = 0; i < 4; i++) {
        (void)snprintf(text, sizeof text, "hang_%d.so", i);
        put_bad("ctor_hang.so", text);
    }
    launch(3);
    ck_assert(WAIT_UNTIL(announces(3, "noop"), SOON_US));
    for (int i = 0; i < 4; i++) {
        (void)snprintf(text, sizeof text, "event=plugin_refused file=hang_%d.so", i);
        ck_assert_int_eq(fleet_log_count(&f, WORKER, 3, text), 1);
    }
    int64_t last = fleet_enqueue(&f, "noop", "{}", 5);
    ck_assert(WAIT_UNTIL(completed(last, 5) == 5, SOON_US));
    drain(3);
}
END_TEST

static const char *const traps[] = {"ctor_abort_later.so", "ctor_hang_later.so"};

START_TEST(G6_a_plugin_that_passes_the_trial_and_ends_its_runner_is_named_and_left_out)
{
    char text[96];
    size_t i = 4 + (size_t)_i;
    make_folder();
    put_good("noop.so", 0);
    put_bad(traps[_i], traps[_i]);
    launch(i);
    ck_assert(WAIT_UNTIL(announces(i, "noop"), SOON_US));
    ck_assert(!announces(i, "ctor"));
    (void)snprintf(
        text, sizeof text,
        "event=plugin_refused file=%s err=\"its runner ended while loading it: ", traps[_i]);
    ck_assert_int_eq(fleet_log_count(&f, WORKER, i, text), 1);
    int64_t last = fleet_enqueue(&f, "noop", "{}", 5);
    ck_assert(WAIT_UNTIL(completed(last, 5) == 5, SOON_US));
    drain(i);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("worker's plugins");
    TCase *c = tcase_create("plugins");
    tcase_set_timeout(c, 150);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_checked_fixture(c, NULL, clean);
    tcase_add_loop_test(c, G6_a_plugin_that_went_bad_is_withdrawn_and_its_jobs_wait_uncharged, 0,
                        2);
    tcase_add_test(c, a_plugin_that_is_new_is_served_after_SIGHUP_and_its_kinds_are_known_first);
    tcase_add_test(c, G6_a_plugin_that_was_bad_at_the_start_is_served_when_it_is_good);
    tcase_add_test(c, G6_plugins_that_hang_are_each_named_and_the_others_are_served);
    tcase_add_loop_test(c,
                        G6_a_plugin_that_passes_the_trial_and_ends_its_runner_is_named_and_left_out,
                        0, (int)ARRAY_COUNT(traps));
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run_in_one(suite());
}
