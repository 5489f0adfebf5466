/* SPDX-License-Identifier: Apache-2.0
 *
 * A role that may create functions and operators in a schema in the search_path of other roles
 * plants better matches than PostgreSQL's own (hostile_path.sql). No daemon, no claimctl, and no
 * function or trigger of claimd runs one (fault.J1). One fleet serves all tests of this program. */
#include "operator.h"
#include "support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#define RAN_SIZE 2048
#define PRODUCER "hostile_producer"

static struct fleet f;
static char operators_conninfo[SERVER_PATH_MAX + 64];

#define OK(call)                                                      \
    do {                                                              \
        struct err err = {0};                                         \
        ck_assert_msg((call) == STATUS_OK, "%s: %s", #call, err.msg); \
    } while (0)

/* Connects like psql, with the default search_path. */
static struct sql *session(const char *conninfo, const char *user)
{
    char text[SERVER_PATH_MAX + 64];
    (void)snprintf(text, sizeof text, "%s user=%s", conninfo, user);
    return sql_open(text);
}

static void plant(const char *conninfo)
{
    char path[SERVER_PATH_MAX];
    autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
    int code = -1;
    (void)snprintf(path, sizeof path, "%s/tests/e2e/hostile_path.sql", getenv("CLAIMD_SOURCE_DIR"));
    const char *const argv[] = {"psql", "-X", "-d", conninfo, "-f", path, NULL};
    OK(program_run(argv, NULL, SOON_US, &out, &code, &err));
    OK(buf_append_text(&out, "", &err));
    ck_assert_msg(code == 0, "exit %d: %s", code, buf_at(&out));
}

/* The test's own statements must not run planted functions. */
static struct sql *safe_session(const char *conninfo)
{
    struct sql *s = sql_open(conninfo);
    sql_run(s, "SET search_path = pg_catalog, pg_temp");
    return s;
}

static void assert_nothing_ran(struct sql *s)
{
    const char *ran = sql_text(
        s, "SELECT string_agg(t, '\n') FROM (SELECT format('%%s as %%s, %%s times', what, as_user,"
           " count(*)) AS t FROM loot.ran GROUP BY what, as_user ORDER BY count(*) DESC LIMIT 20)"
           " AS r");
    ck_assert_str_eq(ran, "");
    ck_assert_int_eq(sql_number(s, "SELECT CASE WHEN is_called THEN 1 ELSE 0 END FROM loot.runs"),
                     0);
}

static void forget(struct sql *s)
{
    sql_run(s, "TRUNCATE loot.ran");
    sql_run(s, "SELECT setval('loot.runs', 1, false)");
}

static void setup(void)
{
    fleet_start(&f, &(struct fleet_options){.masters = 3});
    sql_run(f.sql, "CREATE ROLE " PRODUCER " LOGIN IN ROLE claimd_producer");
    plant(f.conninfo);
    sql_run(f.sql, "SET search_path = pg_catalog, pg_temp");
    (void)snprintf(operators_conninfo, sizeof operators_conninfo,
                   "CLAIMD_POSTGRES_CONNINFO=%s user=postgres", f.conninfo);
}

static void teardown(void)
{
    fleet_stop(&f);
}

/* Runs each statement without the help of an operator. */
static void run_all(struct sql *s, const char *const *statements, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sql_run(s, "%s", statements[i]);
    }
}

START_TEST(the_planted_functions_would_run)
{
    struct sql *s = session(f.conninfo, "postgres");
    struct sql *scheduler = session(f.conninfo, "fleet_scheduler");
    sql_run(s,
            "SELECT array_to_string('{a}'::text[], ','), array_position('{a}'::text[], 'a'::text)");
    sql_run(s, "SELECT width_bucket(1::bigint, '{1}'::bigint[]), 1::smallint & 1");
    sql_run(scheduler, "SELECT array_to_string('{a}'::text[], ',')");
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM loot.ran WHERE what LIKE 'public.%%'"),
                     4);
    ck_assert_int_eq(
        sql_number(f.sql, "SELECT count(*) FROM loot.ran WHERE what LIKE 'fleet_sch%%'"), 1);
    forget(f.sql);
    sql_close(scheduler);
    sql_close(s);
}
END_TEST

static const char *const operators_say[] = {
    "SELECT claimd.limit_queue('narrow', 1)",
    "SELECT claimd.limit_rate('rated', 50)",
    "SELECT claimd.limit_open('short', 100)",
    "SELECT claimd.limit_key('k2', 2)",
    "SELECT claimd.limit_key_rate('kr', 50)",
    "SELECT claimd.weigh_queue('default', 3)",
    "SELECT claimd.retain_queue('default', '3 days')",
    "SELECT claimd.retain_kind('sleep', '2 days', 'completed')",
    "SELECT claimd.schedule_set('every', 'noop', 'every 1s')",
    "SELECT claimd.schedule_set('late', 'noop', '0 3 * * mon-fri', zone => 'Europe/Berlin')",
    "SELECT * FROM claimd.schedule_next('late')",
    "SELECT claimd.schedule_pause('late')",
    "SELECT claimd.schedule_resume('late')",
    "SELECT claimd.schedule_run('late')",
    "SELECT claimd.schedule_delete('late')",
    "SELECT claimd.cron_next('*/5 * * * *')",
    "SELECT claimd.pause_queue('idle')",
    "SELECT claimd.resume_queue('idle')",
    "SELECT claimd.pause_kind('fail')",
    "SELECT claimd.resume_kind('fail')",
    "SELECT claimd.set_kind('fail', '{\"max_attempts\": 2, \"backoff\": \"fixed:1s\"}')",
    ("SELECT claimd.edit(claimd.enqueue('noop', scheduled_at => '2200-01-01'),"
     " '{\"priority\": 1, \"tags\": [\"a\"], \"share_key\": \"t\", \"scheduled_at\": null}')"),
    "SELECT claimd.cancel(claimd.enqueue('noop', scheduled_at => '2200-01-01'))",
    "SELECT claimd.finish_upgrade()",
    "UPDATE claimd.job SET tags = NULL",
    "SELECT * FROM claimd.jobs",
    "SELECT * FROM claimd.batches",
};

static const char *const producers_say[] = {
    "INSERT INTO claimd.job (kind) VALUES ('noop')",
    "INSERT INTO claimd.job (kind, share, share_key) VALUES ('noop', claimd.share_of('t'), 't')",
    "INSERT INTO claimd.job (kind, args, queue, priority, tags, backoff) VALUES"
    " ('sleep', '{\"ms\": 1}', 'narrow', 9, '{a,b}', 'fixed:1s'), ('sleep', '{}', 'rated', 0, "
    "NULL, NULL)",
    "SELECT claimd.enqueue('noop')",
    "SELECT claimd.enqueue('fail', max_attempts => 2, backoff => 'fixed:1s')",
    "SELECT claimd.enqueue('noop', '{\"a\": 1}', share_key => 't', tags => '{x}', metadata => "
    "'{}')",
    "SELECT claimd.enqueue('sleep', '{\"ms\": 30}', exclusive_key => 'k'),"
    " claimd.enqueue('sleep', '{\"ms\": 30}', exclusive_key => 'k'),"
    " claimd.enqueue('sleep', '{\"ms\": 30}', exclusive_key => 'k2'),"
    " claimd.enqueue('sleep', '{\"ms\": 30}', exclusive_key => 'k2'),"
    " claimd.enqueue('sleep', '{\"ms\": 30}', exclusive_key => 'kr')",
    "SELECT claimd.enqueue('sleep', '{\"ms\": 20}', 'narrow') FROM (VALUES (1), (2), (3)) AS v",
    "SELECT claimd.enqueue('noop', queue => 'rated') FROM (VALUES (1), (2), (3)) AS v",
    "SELECT claimd.enqueue('noop', queue => 'short')",
    "SELECT * FROM claimd.enqueue_unique('noop', '{\"a\": 1}', unique_by => '{kind,args.a}',"
    " unique_for => '1 h')",
    "SELECT * FROM claimd.enqueue_unique('sleep', unique_key => 'u', scheduled_at => '2200-01-01')",
    "SELECT * FROM claimd.enqueue_unique('sleep', '{\"ms\": 2}', unique_key => 'u',"
    " on_conflict => 'replace_args')",
    "SELECT claimd.enqueue('sleep', unique_key => 'u', scheduled_at => '1999-01-01',"
    " on_conflict => 'reschedule')",
    "SELECT * FROM claimd.enqueue_many('[{\"kind\": \"noop\"}, {\"kind\": \"noop\","
    " \"share_key\": \"t\", \"queue\": \"short\"}]')",
    "SELECT * FROM claimd.enqueue_many('[{\"kind\": \"noop\", \"unique_key\": \"m\"},"
    " {\"kind\": \"noop\", \"unique_by\": [\"args\"]}]')",
    "SELECT claimd.enqueue('noop', after => ARRAY[claimd.enqueue('noop')], if_dead => 'run')",
    "SELECT claimd.batch_close(b.id) FROM (SELECT b.id, claimd.batch_add(b.id, "
    "claimd.enqueue('noop'))"
    " FROM claimd.batch_open('b', '{\"kind\": \"noop\"}') AS b(id)) AS b",
    "SELECT claimd.cancel(claimd.enqueue('noop', scheduled_at => '2200-01-01'))",
    "SELECT * FROM claimd.wait(1, '0 s')",
};

static void given_worker(size_t i)
{
    static const char *const env[] = {"CLAIMD_WORKER_QUEUES=default,narrow,rated,short", NULL};
    fleet_start_worker_with(&f, i, env);
}

static bool all_is_over(void)
{
    return sql_number(f.sql, "SELECT (SELECT count(*) FROM claimd.job) +"
                             " (SELECT count(*) FROM claimd.batch WHERE over_at IS NULL)") == 0;
}

static void wait_for_all(void)
{
    bool is_over = WAIT_UNTIL(all_is_over(), SOON_US);
    const char *open =
        sql_text(f.sql, "SELECT string_agg(format('%%s %%s %%s %%s', id, kind, queue,"
                        " state), ', ') FROM claimd.jobs WHERE finalized_at IS NULL");
    ck_assert_msg(is_over, "open: %s", open);
}

/* Ends a worker's session while its statements wait for a table: the next session ends the old
 * backend, and waits until it is gone. */
static void given_a_session_that_ends_at_work(void)
{
    struct sql *locker = safe_session(f.conninfo);
    sql_run(locker, "BEGIN");
    sql_run(locker, "LOCK TABLE claimd.worker");
    ck_assert(WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM pg_stat_activity WHERE usename = "
                                           "'fleet_worker' AND wait_event_type = 'Lock'") > 0,
                         SOON_US));
    sql_run(f.sql, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "
                   "'fleet_worker' AND wait_event_type = 'Lock'");
    sql_run(locker, "ROLLBACK");
    sql_close(locker);
    ck_assert(
        WAIT_UNTIL(fleet_log_count(&f, "claimd-worker", 0, "event=postgres_up") > 0, SOON_US));
}

/* Makes one day that the leader drops because of its age, and one that it prunes. */
static void given_old_days(void)
{
    sql_run(f.sql,
            "CREATE TABLE claimd.job_history_20200101 (LIKE claimd.job_history INCLUDING ALL)");
    sql_run(f.sql, "ALTER TABLE claimd.job_history ATTACH PARTITION claimd.job_history_20200101"
                   " FOR VALUES FROM ('2020-01-01 00:00+00') TO ('2020-01-02 00:00+00')");
    sql_run(f.sql, "ALTER TABLE claimd.job_history_20200101 OWNER TO claimd_scheduler");
}

static bool old_day_is_gone(void)
{
    return sql_number(f.sql,
                      "SELECT count(*) FROM pg_class WHERE relname = 'job_history_20200101'") == 0;
}

static bool keys_are_free(void)
{
    return sql_number(f.sql, "SELECT count(*) FROM claimd.job WHERE unique_key IS NOT NULL") == 0;
}

START_TEST(J1_daemons_and_functions_run_nothing_that_a_producer_has_planted)
{
    struct sql *psql = session(f.conninfo, "postgres");
    struct sql *producer = session(f.conninfo, PRODUCER);
    given_old_days();
    fleet_start_scheduler(&f, 0);
    given_worker(0);
    run_all(psql, operators_say, ARRAY_COUNT(operators_say));
    run_all(producer, producers_say, ARRAY_COUNT(producers_say));
    given_a_session_that_ends_at_work();
    fleet_signal(f.workers[0], SIGKILL); /* so that its jobs are rescued */
    (void)fleet_wait_end(&f, &f.workers[0]);
    given_worker(1);
    ck_assert(WAIT_UNTIL(keys_are_free(), SOON_US)); /* the same jobs follow again */
    run_all(producer, producers_say, ARRAY_COUNT(producers_say));
    ck_assert(
        WAIT_UNTIL(sql_number(f.sql, "SELECT count(*) FROM claimd.schedule_fire") > 2, SOON_US));
    sql_run(psql, "SELECT claimd.schedule_delete('every')");
    wait_for_all();
    ck_assert(WAIT_UNTIL(old_day_is_gone(), SOON_US));
    ck_assert(WAIT_UNTIL(
        sql_number(f.sql, "SELECT count(*) FROM claimd.scheduler WHERE full_pass_us > 0") > 0,
        SOON_US));
    fleet_signal(f.workers[1], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&f, &f.workers[1]), 0);
    sql_close(producer);
    sql_close(psql);
    assert_nothing_ran(f.sql);
}
END_TEST

/* As a superuser, the role that an attacker wants most. */
static const char *const commands[] = {
    "stats",
    "doctor",
    "db status",
    "db migrate",
    "db verify",
    "db finish",
    "enqueue noop --tag a --delay 1h",
    "jobs list",
    "jobs list --state completed --kind noop --columns id,tags,queue",
    "jobs show 1",
    "jobs edit 100000 --priority 1",
    "jobs cancel --kind noop --yes",
    "jobs retry --kind noop --state completed --yes",
    "jobs delete --kind sleep --yes",
    "batches list",
    "batches show 1",
    "batches open b",
    "queues",
    "queues show narrow",
    "queues pause narrow",
    "queues resume narrow",
    "queues limit narrow --running 2",
    "queues weight narrow 2",
    "queues retain narrow 5d",
    "queues clear rated --yes",
    "keys list",
    "keys show k2",
    "keys limit k2 --running 3",
    "kinds list",
    "kinds show noop",
    "kinds pause noop",
    "kinds resume noop",
    "kinds set noop --timeout 10m",
    "kinds retain noop 5d",
    "schedules set n noop @daily",
    "schedules list",
    "schedules show n",
    "schedules next n",
    "schedules pause n",
    "schedules resume n",
    "schedules run n",
    "schedules delete n",
    "workers --all",
    "lock-nodes show",
};

#define USAGE 2

START_TEST(J1_claimctl_runs_nothing_that_a_producer_has_planted)
{
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
        int code = operator_ctl(&f, "config.json", operators_conninfo, commands[i], &out);
        ck_assert_msg(code != USAGE || strstr(commands[i], "100000") != NULL, "%s: %s", commands[i],
                      buf_at(&out));
    }
    assert_nothing_ran(f.sql);
}
END_TEST

/* Into a database in which every role may create objects. */
START_TEST(J1_a_migration_runs_nothing_that_was_planted_before)
{
    char conninfo[SERVER_PATH_MAX];
    char env[SERVER_PATH_MAX + 64];
    static const char *const steps[] = {"db migrate", "db rollback --yes", "db rollback --yes",
                                        "db migrate", "db status"};
    /* A role that is not a superuser is first made a member of the owner's role. */
    sql_run(f.sql, "CREATE ROLE migrator LOGIN CREATEROLE");
    OK(pg_server_create_db(&f.pg, "fresh", NULL, conninfo, sizeof conninfo, &err));
    plant(conninfo);
    sql_run(f.sql, "ALTER DATABASE fresh OWNER TO migrator");
    (void)snprintf(env, sizeof env, "CLAIMD_POSTGRES_CONNINFO=%s user=migrator", conninfo);
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        autobuf struct buf out = BUF_INIT(OPERATOR_OUTPUT_MAX);
        int code = operator_ctl(&f, "config.json", env, steps[i], &out);
        ck_assert_msg(code == 0, "%s: exit %d: %s", steps[i], code, buf_at(&out));
    }
    struct sql *s = safe_session(conninfo);
    assert_nothing_ran(s);
    sql_close(s);
}
END_TEST

/* Rows of `job` are checked with the writing session's search_path, which that session may choose:
 * not even a path in which PostgreSQL's own schema comes last affects the lookups. */
START_TEST(J2_what_runs_in_everybodys_session_looks_nothing_up_by_its_path)
{
    static const char *const statements[] = {
        "SET search_path = copies, pg_catalog",
        "INSERT INTO claimd.job (kind, scheduled_at) VALUES ('noop', '2200-01-01')",
        ("INSERT INTO claimd.job (kind, share, share_key, tags, scheduled_at) VALUES"
         " ('noop', claimd.share_of('t'), 't', '{a}', '2200-01-01')"),
        "SELECT claimd.share_of('t')",
        "UPDATE claimd.job SET priority = 3, tags = NULL",
        "SELECT claimd.enqueue('noop', scheduled_at => '2200-01-01', unique_key => 'copies')",
        "SELECT * FROM claimd.jobs",
        "DELETE FROM claimd.job",
    };
    struct sql *s = session(f.conninfo, "postgres");
    sql_run(f.sql, "UPDATE claimd.cluster SET hungry = true");
    run_all(s, statements, ARRAY_COUNT(statements));
    assert_nothing_ran(f.sql);
    ASSERT_REFUSED(s, "INSERT INTO claimd.job (kind) VALUES ('Noop')", "23514", "");
    assert_nothing_ran(f.sql);
    sql_run(s, "SELECT length('a')");
    /* This does run the planted function. */
    ck_assert_int_eq(sql_number(f.sql, "SELECT count(*) FROM loot.ran"), 1);
    sql_close(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hostile path");
    TCase *c = tcase_create("hostile path");
    tcase_set_timeout(c, 600);
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_test(c, the_planted_functions_would_run);
    tcase_add_test(c, J1_daemons_and_functions_run_nothing_that_a_producer_has_planted);
    tcase_add_test(c, J1_claimctl_runs_nothing_that_a_producer_has_planted);
    tcase_add_test(c, J2_what_runs_in_everybodys_session_looks_nothing_up_by_its_path);
    tcase_add_test(c, J1_a_migration_runs_nothing_that_was_planted_before);
    suite_add_tcase(suite, c);
    return suite_run_in_one(suite);
}
