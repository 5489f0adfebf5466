/* SPDX-License-Identifier: Apache-2.0
 *
 * claimctl doctor with real servers, healthy and unhealthy. */
#include "cluster/child.h"
#include "ctl_fixture.h"

#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define NODES 3

struct nodes {
    struct redis_server servers[NODES];
    char dirs[NODES][SERVER_PATH_MAX];
    char plugins[SERVER_PATH_MAX];
    char list_env[1024];
    char plugins_env[SERVER_PATH_MAX + 64];
};
static struct nodes nodes;

#define INSERT_WORKER                                                                      \
    "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, "        \
    "token_prefix, version, queues, kinds, lock_nodes, lock_nodes_voting) VALUES "         \
    "('00000000-0000-0000-0000-0000000000aa', now() + interval '1 h', 4711, 4, 'host-1', " \
    "'/s', 'p', '1', '{default}', '{noop}', 3, 3)"
#define INSERT_SCHEDULER                                                                     \
    "INSERT INTO claimd.scheduler (scheduler_id, stale_at, pid, host, version, lock_nodes, " \
    "lock_nodes_voting, leader_since, last_pass_at, full_pass_at) VALUES "                   \
    "(gen_random_uuid(), now() + interval '1 h', 4712, 'host-2', '1', 3, 3, now() - "        \
    "interval '1 h', now(), now())"

static void start_node(size_t i, const char *extra)
{
    struct err err = {0};
    (void)snprintf(nodes.dirs[i], sizeof nodes.dirs[i], "%.60s/%d-%zu", world.dir, (int)getpid(),
                   i);
    enum status st = redis_server_start(nodes.dirs[i], extra, &nodes.servers[i], &err);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
}

static void use_nodes(const char *a, const char *b, const char *c)
{
    (void)snprintf(nodes.list_env, sizeof nodes.list_env,
                   "CLAIMD_LOCK_NODES=unix:%.107s,unix:%.107s%s%.107s", a, b,
                   c != NULL ? ",unix:" : "", c != NULL ? c : "");
    ctl.env[0] = nodes.list_env;
}

static void redis(size_t i, const char *const *words)
{
    struct err err = {0};
    autobuf struct buf out = BUF_INIT((size_t)1 << 16);
    ck_assert_msg(redis_server_ask(&nodes.servers[i], words, &out, &err) == STATUS_OK, "%s",
                  err.msg);
}
#define REDIS(i, ...) redis((i), (const char *const[]){__VA_ARGS__, NULL})

static void setup(void)
{
    struct err err = {0};
    ctl_setup();
    for (size_t i = 0; i < NODES; i++) {
        start_node(i, NULL);
        REDIS(i, "SET", "claimd:leader", "a token");
    }
    sql_run(db, INSERT_WORKER);
    sql_run(db, INSERT_SCHEDULER);
    use_nodes(nodes.servers[0].path, nodes.servers[1].path, nodes.servers[2].path);
    ck_assert_int_eq(dir_make(nodes.plugins, sizeof nodes.plugins, &err), STATUS_OK);
    (void)snprintf(nodes.plugins_env, sizeof nodes.plugins_env, "CLAIMD_WORKER_PLUGIN_DIR=%s",
                   nodes.plugins);
    ctl.env[1] = nodes.plugins_env;
    ctl.env[2] = "CLAIMD_LOCK_FRESH_NODES=trust";
}

static void teardown(void)
{
    for (size_t i = 0; i < NODES; i++) {
        redis_server_stop(&nodes.servers[i]);
    }
    dir_remove(nodes.plugins);
    ctl_teardown();
}

static void doctor_exits(int wanted)
{
    int code = ctl_doctor();
    ck_assert_msg(code == wanted, "exit code %d, not %d: %.3000s", code, wanted,
                  buf_at(&ctl.out)); /* libcheck's messages are limited to some kilobytes */
}

START_TEST(a_healthy_cluster_is_exit_0)
{
    doctor_exits(0);
    ctl_assert_check("ok", "postgresql", "version ");
    ctl_assert_check("ok", "schema", "version ");
    ctl_assert_check("ok", "pooling", "direct connection");
    ctl_assert_check("ok", "roles", "is a superuser");
    ctl_assert_check("ok", "history", "14 days ahead");
    ctl_assert_check("ok", "redis", "master, no append-only file, clock ");
    ctl_assert_check("ok", "lock nodes", "3 of 3, quorum 2");
    ctl_assert_check("ok", "workers", "1 live");
    ctl_assert_check("ok", "scheduler", "one leads");
    ctl_assert_check("ok", "schedulers", "1 runs, 1 leads");
    ctl_assert_check("ok", "feed", "host-2 (pid 4712) leads, and has fed * s ago");
    ctl_assert_check("ok", "votes", "has a quorum");
    ctl_assert_check("ok", "results", "none is waiting");
    ctl_assert_check("ok", "clock", "0 of 2 daemons see it off");
    ctl_assert_check("ok", "write", "wrote 8 MB");
    ctl_assert_check("ok", "hints", "every due job");
    ctl_assert_check("warn", "plugins", "serves nothing");
    ck_assert_int_eq(ctl_exit("doctor"), 0);
    assert_says("RESULT CHECK");
}
END_TEST

START_TEST(jobs_that_nobody_serves_are_named)
{
    sql_run(db, "UPDATE claimd.worker SET queues = '{q1}'");
    ck_assert_int_eq(ctl_exit("enqueue", "lonely", "--queue", "q1"), 0);
    doctor_exits(0);
    ctl_assert_check("warn", "kinds", "no live worker of queue q1 serves lonely; waiting jobs: 1");
}
END_TEST

START_TEST(a_queue_that_no_worker_names_is_told_with_its_key)
{
    ck_assert_int_eq(ctl_exit("enqueue", "noop", "--queue", "q1"), 0);
    doctor_exits(0);
    ctl_assert_check("warn", "queues",
                     "no live worker serves queue q1; waiting jobs of kind noop: 1");
    assert_says("add \\\"q1\\\" to worker.queues of a worker that has the plugin: host-1");
}
END_TEST

START_TEST(postgresql_away_is_one_line_and_the_rest_goes_on)
{
    (void)snprintf(ctl.conninfo, sizeof ctl.conninfo, "host=/nowhere");
    doctor_exits(1);
    ctl_assert_check("FAIL", "postgresql", "/nowhere");
    ctl_assert_check("ok", "lock nodes", "3 of 3");
}
END_TEST

START_TEST(a_wrong_schema_names_the_migration)
{
    sql_run(db, "UPDATE claimd.cluster SET schema_version = 0");
    doctor_exits(1);
    ctl_assert_check("FAIL", "schema", "claimctl db migrate");
}
END_TEST

START_TEST(L1_laps_and_a_look_that_was_cut_off_are_told)
{
    sql_run(db,
            "UPDATE claimd.scheduler SET lanes = 36000, lap_queue = 'flood', lap_us = 12340000");
    doctor_exits(0);
    ctl_assert_check("warn", "laps", "queue flood has more tenants than there is room for");
    doctor_exits(0);
    ctl_assert_check("warn", "laps", "laps of 12.3 s");
    doctor_exits(0);
    ctl_assert_check("warn", "hints", "only 20000 of 36000 lanes");
}
END_TEST

START_TEST(a_node_that_is_down_fails_with_its_address)
{
    redis_server_stop(&nodes.servers[1]);
    doctor_exits(1);
    ctl_assert_check("FAIL", "redis", nodes.servers[1].path);
    ctl_assert_check("ok", "lock nodes", "2 of 3, quorum 2");
    redis_server_stop(&nodes.servers[2]);
    doctor_exits(1);
    ctl_assert_check("FAIL", "lock nodes", "1 of 3, quorum 2");
    ck_assert_ptr_null(strstr(ctl_text(), "start claimd-scheduler"));
}
END_TEST

START_TEST(N7_the_same_server_twice_fails)
{
    char detour[SERVER_PATH_MAX];
    (void)snprintf(detour, sizeof detour, "%.80s/./redis.sock", nodes.dirs[0]);
    use_nodes(nodes.servers[0].path, detour, nodes.servers[1].path);
    doctor_exits(1);
    ctl_assert_check("FAIL", "redis", "are the same server");
}
END_TEST

START_TEST(N5_a_node_that_may_evict_fails)
{
    redis_server_stop(&nodes.servers[0]);
    start_node(0, "maxmemory 100mb\nmaxmemory-policy allkeys-lru");
    doctor_exits(1);
    ctl_assert_check("FAIL", "redis", "may evict locks");
}
END_TEST

START_TEST(N3_a_replica_fails)
{
    char extra[64] = "replicaof 127.0.0.1 1";
    redis_server_stop(&nodes.servers[0]);
    start_node(0, extra);
    doctor_exits(1);
    ctl_assert_check("FAIL", "redis", "is a replica");
}
END_TEST

/* A client that requests the stream of writes counts as a replica. */
START_TEST(N3_a_node_with_replicas_fails)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", nodes.servers[0].path);
    autoclose int replica = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(replica, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(write(replica, "SYNC\r\n", 6), 6);
    char byte = 0;
    ck_assert_int_eq(read(replica, &byte, 1), 1);
    doctor_exits(1);
    ctl_assert_check("FAIL", "redis", "has replicas");
    ctl_assert_check("ok", "lock nodes", "2 of 3, quorum 2");
}
END_TEST

START_TEST(an_even_number_of_nodes_is_a_warning)
{
    use_nodes(nodes.servers[0].path, nodes.servers[1].path, NULL);
    doctor_exits(0);
    ctl_assert_check("warn", "lock nodes", "2: an even number");
}
END_TEST

START_TEST(N1_a_node_that_just_started_has_no_vote_yet)
{
    ctl.env[2] = "CLAIMD_LOCK_FRESH_NODES=quarantine";
    doctor_exits(0);
    ctl_assert_check("warn", "redis", "just started, no vote for ");
}
END_TEST

static void given_login(const char *name, const char *role)
{
    char *end = ctl.conninfo + strlen(ctl.conninfo);
    sql_run(db, "CREATE ROLE %s LOGIN%s%s", name, role == NULL ? "" : " IN ROLE ",
            role == NULL ? "" : role);
    (void)snprintf(end, sizeof ctl.conninfo - (size_t)(end - ctl.conninfo), " user=%s", name);
}

START_TEST(P1_a_login_without_a_role_of_claimd_fails)
{
    given_login("doctor_stranger", NULL);
    doctor_exits(1);
    ctl_assert_check("FAIL", "roles", "doctor_stranger is in none of claimd's roles");
}
END_TEST

START_TEST(P1_a_login_is_told_its_role)
{
    given_login("doctor_reader", "claimd_reader");
    (void)ctl_doctor(); /* checks that need more rights may fail */
    ctl_assert_check("ok", "roles", "doctor_reader is in claimd_reader");
}
END_TEST

START_TEST(no_nodes_at_all_fail)
{
    ctl.env[0] = "CLAIMD_LOCK_NODES=";
    doctor_exits(1);
    ctl_assert_check("FAIL", "lock nodes", "lock.nodes is empty");
}
END_TEST

START_TEST(a_broken_plugin_is_named_with_its_reason)
{
    char path[SERVER_PATH_MAX + 16];
    (void)snprintf(path, sizeof path, "%s/broken.so", nodes.plugins);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs("no ELF", f), 0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(chmod(path, 0644), 0);
    doctor_exits(1);
    ctl_assert_check("FAIL", "plugins", "broken.so");
}
END_TEST

/* As in the image for schedulers and operators: a folder that contains only claimctl. */
START_TEST(a_host_without_a_worker_needs_no_plugins)
{
    char program[2 * SERVER_PATH_MAX];
    const char *folder = getenv("CLAIMD_BIN_DIR");
    (void)snprintf(program, sizeof program, "%s/claimctl", folder == NULL ? "bin" : folder);
    const char *const copy[] = {"/bin/cp", program, nodes.plugins, NULL};
    int code = -1;
    ck_assert_int_eq(
        program_run(copy, (const char *const[]){NULL}, LIMIT_US, &ctl.out, &code, NULL), STATUS_OK);
    ck_assert_int_eq(code, 0);
    ck_assert_int_eq(setenv("CLAIMD_BIN_DIR", nodes.plugins, 1), 0);
    ctl.env[1] = "CLAIMD_WORKER_PLUGIN_DIR=/nonexistent";
    doctor_exits(0);
    ctl_assert_check("ok", "plugins", "no worker is installed on this host");
}
END_TEST

START_TEST(a_folder_of_plugins_that_is_not_there_is_a_warning_beside_a_worker)
{
    ctl.env[1] = "CLAIMD_WORKER_PLUGIN_DIR=/nonexistent";
    doctor_exits(0);
    ctl_assert_check("warn", "plugins", "/nonexistent: not on this host");
}
END_TEST

/* ---- status reports of daemons ---- */

static const struct {
    const char *sql;
    const char *result;
    const char *check;
    const char *part;
} unwell[] = {
    {"UPDATE claimd.scheduler SET last_pass_at = now() - interval '61 s'", "FAIL", "feed",
     "host-2 (pid 4712) leads, and does not feed: its last good pass was * s ago"},
    {"UPDATE claimd.scheduler SET last_pass_at = NULL", "FAIL", "feed", "does not feed"},
    {"UPDATE claimd.scheduler SET leader_since = NULL, last_pass_at = NULL", "FAIL", "schedulers",
     "none of 1 leads"},
    {"UPDATE claimd.scheduler SET stale_at = now()", "FAIL", "schedulers", "none is alive"},
    {"DELETE FROM claimd.worker", "FAIL", "workers", "0 live"},
    {"UPDATE claimd.worker SET lock_nodes_voting = 1", "FAIL", "votes",
     "all live workers claim nothing: too few lock nodes vote for them: host-1 (pid 4711) has 1 of "
     "3"},
    {"UPDATE claimd.worker SET uncommitted = 3, uncommitted_us = 95000000, trouble = 'disk full'",
     "FAIL", "results",
     "host-1 (pid 4711) can't commit the results of 3 jobs, the oldest for * s: disk full"},
    {"UPDATE claimd.scheduler SET clock_step_us = -60000000, clock_stepped_at = now() - interval "
     "'10 s'",
     "FAIL", "clock", "PostgreSQL's clock jumped by -60 s, * s ago, as host-2 saw it"},
    {"UPDATE claimd.worker SET beat_at = now() + interval '1 min'", "FAIL", "clock",
     "PostgreSQL's clock went back: a heartbeat is * s in the future"},
    {"WITH s AS (UPDATE claimd.scheduler SET clock_ahead_us = -60000000) UPDATE claimd.worker SET "
     "clock_ahead_us = -60000000",
     "FAIL", "clock", "2 of 2 daemons see it off by 5 s or more"},
    {"ALTER ROLE doctor_user SET default_transaction_read_only = on", "FAIL", "write",
     "PostgreSQL can't write: cannot execute"},
    {"INSERT INTO claimd.job (kind) VALUES ('noop')", "FAIL", "hints",
     "1 due jobs of served kinds have had no hint for more than 60 s: job 1 (kind noop, queue "
     "default, priority 4)"},
};

START_TEST(what_daemons_say_and_what_is_missing_fails_and_is_named)
{
    if (strstr(unwell[_i].sql, "doctor_user") != NULL) {
        sql_run(db, "CREATE ROLE doctor_user LOGIN IN ROLE claimd_admin");
        size_t len = strlen(ctl.conninfo);
        (void)snprintf(ctl.conninfo + len, sizeof ctl.conninfo - len, " user=doctor_user");
    }
    sql_run(db, "%s", unwell[_i].sql);
    sql_run(db, "UPDATE claimd.job SET scheduled_at = now() - interval '2 h', created_at = now() - "
                "interval '2 h'");
    ctl.env[3] = "CLAIMD_SCHEDULER_FULL_PASS_MS=1000";
    ctl.env[4] = "CLAIMD_TIME_SCALE=0.2";
    doctor_exits(1);
    ctl_assert_check(unwell[_i].result, unwell[_i].check, unwell[_i].part);
}
END_TEST

START_TEST(schedules_that_fail_or_that_nobody_fires_are_named)
{
    sql_run(db, "SELECT claimd.schedule_set('s', 'noop', '@daily')");
    doctor_exits(0);
    ctl_assert_check("ok", "schedules", "1, none fails");
    sql_run(db, "UPDATE claimd.schedule SET error = 'the queue is full'");
    doctor_exits(0);
    ctl_assert_check("warn", "schedules", "1 can't make their jobs, such as s: the queue is full");
    sql_run(db, "UPDATE claimd.schedule SET wake_at = now() - interval '61 s'");
    doctor_exits(1);
    ctl_assert_check("FAIL", "schedules", "1 have been due for more than 60 s");
}
END_TEST

START_TEST(feat_B29_a_schedule_that_waits_beyond_its_next_tick_is_named_until_it_is_mended)
{
    sql_run(db, "SELECT claimd.schedule_set('s', 'noop', '@hourly'), claimd.schedule_set('e', "
                "'noop', 'every 30d'), claimd.schedule_set('p', 'noop', '@hourly')");
    sql_run(db, "SELECT claimd.schedule_pause('p')");
    sql_run(db, "UPDATE claimd.schedule SET next_at = next_at + interval '1 year', wake_at = "
                "wake_at + interval '1 year' WHERE name IN ('s', 'p')");
    doctor_exits(0);
    ctl_assert_check("warn", "schedules", "1 wait beyond their next tick, such as s");
    sql_run(db, "SELECT claimd.mend_schedules()");
    doctor_exits(0);
    ctl_assert_check("ok", "schedules", "3, none fails");
}
END_TEST

START_TEST(some_workers_without_votes_are_a_warning)
{
    sql_run(db, "UPDATE claimd.worker SET lock_nodes_voting = 1");
    sql_run(
        db,
        "INSERT INTO claimd.worker (worker_id, stale_at, pid, slots, host, state_dir, "
        "token_prefix, version, queues, lock_nodes, lock_nodes_voting) VALUES (gen_random_uuid(), "
        "now() + interval '1 h', 1, 1, 'h', '/s', 'p', '1', '{default}', 3, 3)");
    doctor_exits(0);
    ctl_assert_check("warn", "votes", "some workers claim nothing");
}
END_TEST

/* A server of this test, a minute slow, which replaces the shared one. */
static struct pg_server late;

static void given_late_postgresql(void)
{
    static char preload[SERVER_PATH_MAX];
    static char clock[SERVER_PATH_MAX];
    static const char *const env[] = {preload, clock, NULL};
    static const int64_t late_us = -60 * US_PER_S;
    char dir[SERVER_PATH_MAX + 32];
    const char *file = ctl_write_file("clock", (const char *)&late_us, sizeof late_us);
    (void)snprintf(preload, sizeof preload, "LD_PRELOAD=%s", CLOCK_SHIM);
    (void)snprintf(clock, sizeof clock, "CLOCK_SHIM_FILE=%s", file);
    (void)snprintf(dir, sizeof dir, "%s/late-%d", world.dir, (int)getpid());
    ck_assert_int_eq(pg_server_start_env(dir, false, env, &late, NULL), STATUS_OK);
    (void)snprintf(world.conninfo, sizeof world.conninfo, "%s", late.conninfo);
    (void)snprintf(ctl.conninfo, sizeof ctl.conninfo, "%s", late.conninfo);
    sql_close(db);
    db = sql_open(world.conninfo);
    ck_assert_int_eq(ctl_exit("db", "migrate"), 0);
    sql_run(db, "ALTER TABLE claimd.worker ALTER built_for SET DEFAULT 9999");
    sql_run(db, "ALTER TABLE claimd.scheduler ALTER built_for SET DEFAULT 9999");
    sql_run(db, INSERT_WORKER);
    sql_run(db, INSERT_SCHEDULER);
}

START_TEST(a_clock_of_postgresql_that_is_off_fails_unless_no_daemon_sees_it)
{
    given_late_postgresql();
    doctor_exits(0);
    ctl_assert_check("warn", "clock", "-?*.? s against this host, which seems to be the wrong one");
    sql_run(db, "UPDATE claimd.worker SET clock_ahead_us = -60000000");
    doctor_exits(1);
    ctl_assert_check("FAIL", "clock",
                     "-?*.? s against this host; 1 of 2 daemons see it off by 5 s");
    pg_server_stop(&late);
}
END_TEST

START_TEST(one_daemon_whose_clock_is_another_is_a_warning)
{
    sql_run(db, "UPDATE claimd.worker SET clock_ahead_us = -60000000");
    doctor_exits(0);
    ctl_assert_check("warn", "clock", "1 of 2 daemons see it off by 5 s or more");
}
END_TEST

START_TEST(G8_full_passes_that_take_long_or_do_not_end_are_a_warning)
{
    doctor_exits(0);
    ctl_assert_check("ok", "full pass", "one runs every 30 s");
    sql_run(db, "UPDATE claimd.scheduler SET full_pass_us = 12300000");
    doctor_exits(0);
    ctl_assert_check("warn", "full pass",
                     "the last complete one took 12.3 s; one runs every 258 s");
    sql_run(db,
            "UPDATE claimd.scheduler SET full_pass_us = 0, full_pass_at = now() - interval '1 h'");
    doctor_exits(0);
    ctl_assert_check("warn", "full pass", "began 3*s ago, none is complete");
}
END_TEST

START_TEST(a_lane_that_gets_no_turn_is_named_as_starved)
{
    sql_run(db, "INSERT INTO claimd.job (kind, scheduled_at) VALUES ('noop', now())");
    sql_run(db, "UPDATE claimd.job SET scheduled_at = now() - interval '2 h', created_at = now() - "
                "interval '2 h'");
    for (int i = 0; i < 100; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%d", 1000 + i);
        REDIS(0, "ZADD", "claimd:hints:default", "40001000000000", id);
    }
    ctl.env[2] = "CLAIMD_SCHEDULER_LOOK_AHEAD=100";
    ctl.env[3] = "CLAIMD_SCHEDULER_FULL_PASS_MS=1000";
    ctl.env[4] = "CLAIMD_TIME_SCALE=0.2";
    (void)ctl_doctor();
    ctl_assert_check("FAIL", "lanes", "1 due jobs have had no turn");
}
END_TEST

/* Only as root: a file system of one megabyte for the tables that are created from now on. */
START_TEST(a_full_disk_fails)
{
    char dir[SERVER_PATH_MAX + 32];
    struct err err = {0};
    (void)snprintf(dir, sizeof dir, "%.200s/%d-tiny", world.dir, (int)getpid());
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    if (mount("tmpfs", dir, "tmpfs", 0, "size=1m") != 0) {
        return;
    }
    ck_assert_int_eq(child_user_owns(dir, &err), STATUS_OK);
    const char *made =
        sql_refusal(db, "CREATE TABLESPACE tiny%d LOCATION '%s'", (int)getpid(), dir);
    const char *granted =
        sql_refusal(db, "GRANT CREATE ON TABLESPACE tiny%d TO claimd_scheduler", (int)getpid());
    const char *set = sql_refusal(
        db, "ALTER FUNCTION claimd.probe_write SET default_tablespace = tiny%d", (int)getpid());
    int code = ctl_doctor();
    ck_assert_int_eq(umount2(dir, MNT_DETACH), 0);
    ck_assert_msg(made[0] == '\0' && granted[0] == '\0' && set[0] == '\0', "%s %s %s", made,
                  granted, set);
    ck_assert_int_eq(code, 1);
    ctl_assert_check("FAIL", "write", "No space left on device");
}
END_TEST

/* ---- one worker: health checks ---- */

START_TEST(what_is_wrong_has_its_remedy_below)
{
    sql_run(db, "DELETE FROM claimd.worker");
    ck_assert_int_eq(ctl_exit("doctor"), 1);
    assert_says("FAIL   workers       0 live\n                     → start claimd-worker");
}
END_TEST

START_TEST(a_worker_with_a_fresh_heartbeat_is_one_line_and_exit_0)
{
    ck_assert_int_eq(ctl_exit("doctor", "--worker", "host-1"), 0);
    assert_says("ok worker: host-1 (pid 4711) is live, last heartbeat ");
    ck_assert_ptr_eq(strchr(ctl_text(), '\n') + 1, ctl_text() + strlen(ctl_text()));
    ck_assert_int_eq(
        ctl_exit("doctor", "--json", "--worker", "00000000-0000-0000-0000-0000000000aa"), 0);
    ctl_assert_check("ok", "worker", "is live");
}
END_TEST

START_TEST(a_worker_with_a_stale_heartbeat_is_one_line_and_exit_1)
{
    sql_run(db, "DELETE FROM claimd.worker");
    ck_assert_int_eq(ctl_exit("doctor", "--worker", "host-1"), 1);
    assert_says("FAIL worker: no worker has the host or id 'host-1'; start claimd-worker");
    sql_run(db, INSERT_WORKER);
    sql_run(db, "UPDATE claimd.worker SET stale_at = now()");
    ck_assert_int_eq(ctl_exit("doctor", "--worker", "host-1"), 1);
    assert_says("is stale, last heartbeat");
    ck_assert_ptr_eq(strchr(ctl_text(), '\n') + 1, ctl_text() + strlen(ctl_text()));
    ck_assert_int_eq(ctl_exit("doctor", "--worker", "host-1", "--json"), 1);
    ctl_assert_check("FAIL", "worker", "is stale");
    (void)snprintf(ctl.conninfo, sizeof ctl.conninfo, "host=/nowhere");
    ck_assert_int_eq(ctl_exit("doctor", "--worker", "host-1"), 1);
    assert_says("FAIL worker: not known");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctl doctor");
    TCase *tests = tcase_create("doctor");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, a_healthy_cluster_is_exit_0);
    tcase_add_test(tests, jobs_that_nobody_serves_are_named);
    tcase_add_test(tests, a_queue_that_no_worker_names_is_told_with_its_key);
    tcase_add_loop_test(tests, what_daemons_say_and_what_is_missing_fails_and_is_named, 0,
                        ARRAY_COUNT(unwell));
    tcase_add_test(tests, schedules_that_fail_or_that_nobody_fires_are_named);
    tcase_add_test(tests,
                   feat_B29_a_schedule_that_waits_beyond_its_next_tick_is_named_until_it_is_mended);
    tcase_add_test(tests, some_workers_without_votes_are_a_warning);
    tcase_add_test(tests, a_clock_of_postgresql_that_is_off_fails_unless_no_daemon_sees_it);
    tcase_add_test(tests, one_daemon_whose_clock_is_another_is_a_warning);
    tcase_add_test(tests, G8_full_passes_that_take_long_or_do_not_end_are_a_warning);
    tcase_add_test(tests, a_lane_that_gets_no_turn_is_named_as_starved);
    tcase_add_test(tests, a_full_disk_fails);
    tcase_add_test(tests, postgresql_away_is_one_line_and_the_rest_goes_on);
    tcase_add_test(tests, a_wrong_schema_names_the_migration);
    tcase_add_test(tests, L1_laps_and_a_look_that_was_cut_off_are_told);
    tcase_add_test(tests, a_node_that_is_down_fails_with_its_address);
    tcase_add_test(tests, N7_the_same_server_twice_fails);
    tcase_add_test(tests, N5_a_node_that_may_evict_fails);
    tcase_add_test(tests, N3_a_replica_fails);
    tcase_add_test(tests, N3_a_node_with_replicas_fails);
    tcase_add_test(tests, an_even_number_of_nodes_is_a_warning);
    tcase_add_test(tests, N1_a_node_that_just_started_has_no_vote_yet);
    tcase_add_test(tests, P1_a_login_without_a_role_of_claimd_fails);
    tcase_add_test(tests, P1_a_login_is_told_its_role);
    tcase_add_test(tests, no_nodes_at_all_fail);
    tcase_add_test(tests, a_broken_plugin_is_named_with_its_reason);
    tcase_add_test(tests, a_host_without_a_worker_needs_no_plugins);
    tcase_add_test(tests, a_folder_of_plugins_that_is_not_there_is_a_warning_beside_a_worker);
    tcase_add_test(tests, what_is_wrong_has_its_remedy_below);
    tcase_add_test(tests, a_worker_with_a_fresh_heartbeat_is_one_line_and_exit_0);
    tcase_add_test(tests, a_worker_with_a_stale_heartbeat_is_one_line_and_exit_1);
    suite_add_tcase(suite, tests);
    return world_run(suite);
}
