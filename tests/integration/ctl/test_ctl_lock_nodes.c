/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl lock-nodes: the list that a cluster was made with, and its change (lock.N8). */
#include "ctl_fixture.h"

#include <signal.h>
#include <stdio.h>

static struct redis_server former;
static char former_env[256];
static char here_env[256];
static char present[160];

#define HERE "10.9.9.9:6379"
#define LIST "(SELECT lock_nodes FROM claimd.cluster)"
#define INSERT_WORKER(stale)                                                          \
    "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, "   \
    "token_prefix, version, queues) VALUES ('00000000-0000-0000-0000-0000000000aa', " \
    "clock_timestamp() + interval '" stale "', 4711, 1, 'host-1', '/s', 'p', '1', '{default}')"

static void setup(void)
{
    char dir[SERVER_PATH_MAX];
    struct err err = {0};
    ctl_setup();
    (void)snprintf(dir, sizeof dir, "%.60s/%d-former", world.dir, (int)getpid());
    enum status st = redis_server_start(dir, NULL, &former, &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
    (void)snprintf(present, sizeof present, "unix:%s", former.path);
    (void)snprintf(former_env, sizeof former_env, "CLAIMD_LOCK_NODES=%s", present);
    (void)snprintf(here_env, sizeof here_env, "CLAIMD_LOCK_NODES=%s", HERE);
    sql_run(db, "UPDATE claimd.cluster SET lock_nodes = '%s', t_max_us = 1500000", present);
    ctl.env[0] = here_env;
    ctl.env[1] = "CLAIMD_TIME_SCALE=0.1"; /* a lease lasts 1 s */
}

static void teardown(void)
{
    redis_server_stop(&former);
    ctl_teardown();
}

static void redis_says(const char *const *words)
{
    struct err err = {0};
    autobuf struct buf out = BUF_INIT((size_t)1 << 16);
    ck_assert_msg(redis_server_ask(&former, words, &out, &err) == STATUS_OK, "%s", err.msg);
}
#define REDIS(...) redis_says((const char *const[]){__VA_ARGS__, NULL})

static int64_t is_list(const char *list)
{
    return sql_number(db, "SELECT (" LIST " = '%s')::int::text", list);
}

static void given_running_job(void)
{
    sql_run(db, "INSERT INTO claimd.job (kind) VALUES ('a')");
    sql_run(db, "UPDATE claimd.job SET state = 'running', attempt = 1, fence = 1, attempted_at = "
                "clock_timestamp(), worker_id = '00000000-0000-0000-0000-0000000000aa'");
    sql_run(db, INSERT_WORKER("-1 s"));
}

START_TEST(show_has_both_lists)
{
    ck_assert_int_eq(ctl_exit("lock-nodes", "show", "--json"), 0);
    json_t *root = ctl_json();
    json_t *row = json_object_get(root, "lock_nodes");
    ck_assert_str_eq(json_string_value(json_object_get(row, "cluster")), present);
    ck_assert_str_eq(json_string_value(json_object_get(row, "here")), HERE);
    ck_assert(json_is_false(json_object_get(row, "is_same")));
    json_decref(root);
    ctl.env[0] = former_env;
    ck_assert_int_eq(ctl_exit("lock-nodes", "set"), 0); /* nothing to do */
    ck_assert_int_eq(is_list(present), 1);
}
END_TEST

START_TEST(a_cluster_that_nobody_has_joined_takes_the_list_at_once)
{
    sql_run(db, "UPDATE claimd.cluster SET lock_nodes = ''");
    ck_assert_int_eq(ctl_exit("lock-nodes", "set", "--yes"), 0);
    ck_assert_ptr_null(strstr(ctl_text(), "waiting"));
    ck_assert_int_eq(is_list(HERE), 1);
}
END_TEST

START_TEST(without_yes_it_only_says_what_it_would_do)
{
    ck_assert_int_eq(ctl_exit("lock-nodes", "set"), 2);
    assert_says(present);
    assert_says("to " HERE);
    assert_says("add --yes");
    ck_assert_int_eq(is_list(present), 1);
}
END_TEST

START_TEST(N8_it_is_refused_while_a_daemon_lives)
{
    sql_run(db, INSERT_WORKER("1 h"));
    ck_assert_int_eq(ctl_exit("lock-nodes", "set", "--yes"), 5);
    assert_says("daemons are alive: claimd-worker on host-1 (pid 4711, heartbeat 0.");
    sql_run(db, "UPDATE claimd.worker SET stopped = true");
    sql_run(db, "INSERT INTO claimd.scheduler (scheduler_id, stale_at, pid, host, version, "
                "lock_nodes, lock_nodes_voting) VALUES (gen_random_uuid(), now() + interval '1 h', "
                "4712, 'host-2', '1', 1, 1)");
    ck_assert_int_eq(ctl_exit("lock-nodes", "set", "--yes"), 5);
    assert_says("daemons are alive: claimd-scheduler on host-2 (pid 4712");
    ck_assert_int_eq(is_list(present), 1);
}
END_TEST

START_TEST(N8_the_new_list_comes_after_the_longest_lease_and_dead_workers_stay_dead)
{
    sql_run(db, INSERT_WORKER("-1 s"));
    int64_t start_us = clock_boot_us();
    ck_assert_int_eq(ctl_exit("lock-nodes", "set", "--yes"), 0);
    ck_assert_int_ge(clock_boot_us() - start_us, 1515000); /* T_max, not this host's T; plus D */
    assert_says("waiting 1.5 s: until then leases may live on the former nodes");
    ck_assert_int_eq(is_list(HERE), 1);
    ck_assert_int_eq(sql_number(db, "SELECT count(*)::text FROM claimd.worker WHERE dead"), 1);
    ck_assert_int_eq(
        sql_number(db, "SELECT count(*)::text FROM claimd.cluster WHERE lock_nodes_before = ''"),
        1);
}
END_TEST

/* Runs in the background; leases last for a minute. */
static pid_t start_set(void)
{
    char program[SERVER_PATH_MAX];
    char conninfo[SERVER_PATH_MAX + 64];
    char log[SERVER_PATH_MAX + 32];
    struct err err = {0};
    pid_t pid = 0;
    (void)snprintf(program, sizeof program, "%s/claimctl", getenv("CLAIMD_BIN_DIR"));
    (void)snprintf(conninfo, sizeof conninfo, "CLAIMD_POSTGRES_CONNINFO=%s", ctl.conninfo);
    (void)snprintf(log, sizeof log, "%s/set.log", world.dir);
    const char *const argv[] = {program, "lock-nodes", "set", "--yes", NULL};
    const char *const env[] = {conninfo, here_env, "CLAIMD_LOCK_TTL_MS=60000", NULL};
    ck_assert_int_eq(program_start(argv, env, log, &pid, &err), STATUS_OK);
    return pid;
}

/* The row of a daemon that is just joining is not committed yet: the command waits for it and then
 * finds it. */
START_TEST(N8_a_daemon_that_is_just_fitting_in_is_seen)
{
    struct err err = {0};
    int code = -1;
    struct sql *daemon = sql_open(world.conninfo);
    sql_run(daemon, "BEGIN");
    sql_run(daemon, "SELECT lock_nodes FROM claimd.cluster FOR KEY SHARE");
    sql_run(daemon, INSERT_WORKER("1 h"));
    pid_t pid = start_set();
    ck_assert(WAIT_UNTIL(sql_number(db, "SELECT count(*)::text FROM pg_stat_activity WHERE datname "
                                        "= current_database() AND wait_event_type = 'Lock'") == 1,
                         LIMIT_US));
    sql_run(daemon, "COMMIT");
    sql_close(daemon);
    ck_assert_int_eq(program_wait(pid, LIMIT_US, &code, &err), STATUS_OK);
    ck_assert_int_eq(code, 5);
    ck_assert_int_eq(is_list(present), 1);
}
END_TEST

START_TEST(N8_cut_off_in_between_nobody_fits_in_and_it_is_run_again)
{
    pid_t pid = start_set();
    ck_assert(WAIT_UNTIL(
        sql_number(
            db, "SELECT count(*)::text FROM claimd.cluster WHERE lock_nodes LIKE '(being%%'") == 1,
        LIMIT_US));
    program_kill(pid);
    ck_assert_int_eq(is_list(HERE) + is_list(present), 0);
    ck_assert_int_eq(ctl_exit("lock-nodes", "show"), 0);
    assert_says("being changed");
    assert_says(present);
    ck_assert_int_eq(ctl_exit("lock-nodes", "set", "--yes"), 0);
    ck_assert_int_eq(is_list(HERE), 1);
}
END_TEST

START_TEST(N8_a_lock_that_outlives_the_longest_lease_has_a_holder_and_it_is_refused)
{
    given_running_job();
    REDIS("SET", "claimd:job:1", "token");
    ck_assert_int_eq(ctl_exit("lock-nodes", "set", "--yes"), 5);
    assert_says("the lock of job 1 is still held on the former nodes");
    ck_assert_int_eq(is_list(HERE), 0);
    REDIS("DEL", "claimd:job:1");
    REDIS("SET", "claimd:leader", "token");
    ck_assert_int_eq(ctl_exit("lock-nodes", "set", "--yes"), 5);
    assert_says("a scheduler still leads on the former nodes");
    REDIS("DEL", "claimd:leader");
    ck_assert_int_eq(ctl_exit("lock-nodes", "set", "--yes"), 0);
    ck_assert_int_eq(is_list(HERE), 1);
}
END_TEST

START_TEST(N8_former_nodes_that_are_away_need_force_only_if_jobs_still_run_on_paper)
{
    given_running_job();
    redis_server_stop(&former);
    ck_assert_int_eq(ctl_exit("lock-nodes", "set", "--yes"), 5);
    assert_says("1 jobs are still marked as running, the first on host-1 (pid 4711)");
    assert_says("then add --force");
    ck_assert_int_eq(ctl_exit("lock-nodes", "set", "--yes", "--force"), 0);
    ck_assert_int_eq(is_list(HERE), 1);
}
END_TEST

START_TEST(an_administrator_may_and_a_reader_may_not)
{
    sql_run(db, "CREATE ROLE nodes_admin LOGIN IN ROLE claimd_admin");
    sql_run(db, "CREATE ROLE nodes_reader LOGIN IN ROLE claimd_reader");
    size_t len = strlen(ctl.conninfo);
    (void)snprintf(ctl.conninfo + len, sizeof ctl.conninfo - len, " user=nodes_reader");
    ck_assert_int_eq(ctl_exit("lock-nodes", "show"), 0);
    ck_assert_int_eq(ctl_exit("lock-nodes", "set", "--yes"), 1);
    assert_says("permission denied");
    (void)snprintf(ctl.conninfo + len, sizeof ctl.conninfo - len, " user=nodes_admin");
    ck_assert_int_eq(ctl_exit("lock-nodes", "set", "--yes"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl lock-nodes");
    TCase *tests = tcase_create("lock-nodes");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, show_has_both_lists);
    tcase_add_test(tests, a_cluster_that_nobody_has_joined_takes_the_list_at_once);
    tcase_add_test(tests, without_yes_it_only_says_what_it_would_do);
    tcase_add_test(tests, N8_it_is_refused_while_a_daemon_lives);
    tcase_add_test(tests, N8_the_new_list_comes_after_the_longest_lease_and_dead_workers_stay_dead);
    tcase_add_test(tests, N8_a_daemon_that_is_just_fitting_in_is_seen);
    tcase_add_test(tests, N8_cut_off_in_between_nobody_fits_in_and_it_is_run_again);
    tcase_add_test(tests, N8_a_lock_that_outlives_the_longest_lease_has_a_holder_and_it_is_refused);
    tcase_add_test(tests, N8_former_nodes_that_are_away_need_force_only_if_jobs_still_run_on_paper);
    tcase_add_test(tests, an_administrator_may_and_a_reader_may_not);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
