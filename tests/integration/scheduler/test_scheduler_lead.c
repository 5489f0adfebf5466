/* SPDX-License-Identifier: Apache-2.0
 *
 * Which scheduler leads, how a scheduler ends, when it refuses to start, and the days that it
 * keeps. */
#include "scheduler_world.h"
#include "support/suite.h"

#include <signal.h>
#include <stdio.h>

#define CONFIG "\"scheduler\": {\"history_days\": 3}"
#define TICK_US ((int64_t)(SCALE * US_PER_S))

static void setup(void)
{
    world_start(CONFIG);
    given_worker(1, "default", "noop");
}

static void teardown(void)
{
    world_stop();
}

static bool said(size_t i, const char *text)
{
    return fleet_log_count(&fleet, "claimd-scheduler", i, text) > 0;
}

/* A failing test shows the reason that was logged instead. */
static void assert_lost(size_t i, const char *why)
{
    char path[2 * SERVER_PATH_MAX];
    char line[2048];
    char lost[2048] = "nothing";
    ck_assert(WAIT_UNTIL(said(i, "event=leader_lost"), SOON_US));
    (void)snprintf(path, sizeof path, "%s/claimd-scheduler-%zu.log", fleet.dir, i);
    FILE *log = fopen(path, "re");
    while (log != NULL && fgets(line, sizeof line, log) != NULL) {
        if (strstr(line, "event=leader_lost") != NULL) {
            memcpy(lost, line, sizeof lost);
        }
    }
    ck_assert_ptr_nonnull(log);
    ck_assert_int_eq(fclose(log), 0);
    ck_assert_msg(strstr(lost, why) != NULL, "'%s' is not in: %s", why, lost);
}

START_TEST(one_of_two_leads)
{
    start_leader(0);
    fleet_start_scheduler(&fleet, 1);
    ck_assert(WAIT_UNTIL(said(1, "event=ready"), SOON_US));
    ck_assert(!WAIT_UNTIL(leads(1), 8 * TICK_US));
}
END_TEST

START_TEST(A6_the_leader_is_killed_and_the_standby_leads_within_6_s)
{
    start_leader(0);
    fleet_start_scheduler(&fleet, 1);
    ck_assert(WAIT_UNTIL(said(1, "event=ready"), SOON_US));
    int64_t start_us = clock_boot_us();
    fleet_signal(fleet.schedulers[0], SIGKILL);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.schedulers[0]), 128 + SIGKILL);
    ck_assert(WAIT_UNTIL(leads(1), SOON_US));
    ck_assert_int_le(clock_boot_us() - start_us, 6 * TICK_US + 5 * US_PER_S);
    (void)fleet_enqueue(&fleet, "noop", "{}", 10);
    ck_assert(WAIT_UNTIL(hints_in("default") == 10, SOON_US));
}
END_TEST

/* Its Redis works, so it would keep its lease for ever, and the standby would never take over. */
START_TEST(a_leader_that_can_not_feed_hands_over_to_a_standby_that_can)
{
    char login[SERVER_PATH_MAX + 64];
    const char *env[] = {login, NULL};
    sql_run(fleet.sql, "CREATE ROLE first LOGIN IN ROLE claimd_scheduler");
    (void)snprintf(login, sizeof login, "CLAIMD_POSTGRES_CONNINFO=%s user=first", fleet.conninfo);
    fleet_launch_scheduler(&fleet, 0, env);
    ck_assert(WAIT_UNTIL(leads(0), SOON_US));
    fleet_start_scheduler(&fleet, 1);
    ck_assert(WAIT_UNTIL(said(1, "event=ready"), SOON_US));
    sql_run(fleet.sql, "ALTER ROLE first NOLOGIN");
    sql_run(fleet.sql, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                       " WHERE usename = 'first'");
    int64_t id = fleet_enqueue(&fleet, "noop", "{}", 10);
    ck_assert_int_gt(id, 0);
    ck_assert(WAIT_UNTIL(leads(1), SOON_US));
    assert_lost(0, "why=\"it can't feed: a standby may\"");
    ck_assert(WAIT_UNTIL(hints_in("default") == 10, SOON_US));
}
END_TEST

START_TEST(a_leader_that_ends_gives_its_lock_up)
{
    /* No scheduler could wait for the end of such a lease. */
    fleet_launch_scheduler(&fleet, 0,
                           (const char *const[]){"CLAIMD_SCHEDULER_LEAD_TTL_MS=600000", NULL});
    ck_assert(WAIT_UNTIL(leads(0), SOON_US));
    fleet_start_scheduler(&fleet, 1);
    ck_assert(WAIT_UNTIL(said(1, "event=ready"), SOON_US));
    fleet_signal(fleet.schedulers[0], SIGTERM);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.schedulers[0]), 0);
    ck_assert(WAIT_UNTIL(leads(1), SOON_US));
    assert_lost(0, "why=\"it is stopping\"");
    ck_assert(said(0, "event=stopped"));
}
END_TEST

/* It wakes up believing that it leads; what it does then is wasteful, but harmless. */
START_TEST(a_paused_leader_steps_down_when_it_wakes)
{
    start_leader(0);
    fleet_start_scheduler(&fleet, 1);
    ck_assert(WAIT_UNTIL(said(1, "event=ready"), SOON_US));
    fleet_signal(fleet.schedulers[0], SIGSTOP);
    ck_assert(WAIT_UNTIL(leads(1), SOON_US));
    (void)fleet_enqueue(&fleet, "noop", "{}", 50);
    ck_assert(WAIT_UNTIL(hints_in("default") == 50, SOON_US));
    fleet_signal(fleet.schedulers[0], SIGCONT);
    assert_lost(0, "this process stood still");
    ck_assert_int_eq(hints_in("default"), 50);
    ck_assert(leads(1));
}
END_TEST

static int said_times(const char *text)
{
    return fleet_log_count(&fleet, "claimd-scheduler", 0, text);
}

START_TEST(a_leader_without_a_quorum_says_so_once_and_why_it_leads_no_longer)
{
    start_leader(0);
    ck_assert(WAIT_UNTIL(said(0, "event=ready"), SOON_US));
    ck_assert_int_eq(said_times("event=quorum_"), 0);
    for (size_t i = 0; i < 2; i++) {
        redis_server_kill(&fleet.masters[i]);
    }
    assert_lost(0, "why=\"its lease could not be extended: 1 of 3 lock nodes have a vote, 2 are "
                   "needed\"");
    ck_assert(said(0, "event=quorum_lost voting=1 nodes=3 needed=2"));
    for (size_t i = 0; i < 2; i++) {
        struct err err = {0};
        ck_assert_msg(redis_server_restart(&fleet.masters[i], &err) == STATUS_OK, "%s", err.msg);
    }
    ck_assert(WAIT_UNTIL(leads(0), SOON_US));
    ck_assert(said(0, "event=quorum_back voting="));
    ck_assert_int_eq(said_times("event=quorum_lost"), 1);
    ck_assert_int_eq(said_times("event=quorum_back"), 1);
}
END_TEST

START_TEST(a_new_leader_feeds_what_the_old_one_had_not)
{
    start_leader(0);
    (void)fleet_enqueue(&fleet, "noop", "{}", 10);
    ck_assert(WAIT_UNTIL(hints_in("default") == 10, SOON_US));
    fleet_signal(fleet.schedulers[0], SIGKILL);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.schedulers[0]), 128 + SIGKILL);
    pop_hints("default", 10); /* read, but lost */
    (void)fleet_enqueue(&fleet, "noop", "{}", 10);
    start_leader(1);
    ck_assert(WAIT_UNTIL(hints_in("default") == 20, SOON_US));
}
END_TEST

START_TEST(S3_a_leader_that_died_between_reading_and_pushing_loses_nothing)
{
    (void)fleet_enqueue(&fleet, "noop", "{}", 10);
    start_dying(0, "S3");
    await_death(0);
    ck_assert_int_eq(hints_in("default"), 0);
    start_leader(1);
    ck_assert(WAIT_UNTIL(hints_in("default") == 10, SOON_US));
}
END_TEST

START_TEST(a_schema_of_another_version_is_refused)
{
    sql_run(fleet.sql, "UPDATE claimd.cluster SET schema_version = 99, oldest_program = 99");
    fleet_start_scheduler(&fleet, 0);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.schedulers[0]), 5);
    ck_assert(said(0, "event=start_failed"));
}
END_TEST

START_TEST(N8_another_list_of_lock_nodes_is_refused)
{
    sql_run(fleet.sql, "UPDATE claimd.cluster SET lock_nodes = 'elsewhere:1'");
    fleet_start_scheduler(&fleet, 0);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.schedulers[0]), 2);
    ck_assert(said(0, "elsewhere:1"));
}
END_TEST

static int64_t days_like(const char *condition)
{
    return sql_number(fleet.sql,
                      "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND"
                      " relname ~ '^job_history_[0-9]{8}$' AND %s",
                      condition);
}

START_TEST(days_are_kept_ahead_and_old_ones_dropped_beside_an_open_reader)
{
    struct sql *reader = sql_open(fleet.conninfo);
    sql_run(fleet.sql,
            "CREATE TABLE claimd.job_history_20010203 (LIKE claimd.job_history INCLUDING ALL);"
            " ALTER TABLE claimd.job_history ATTACH PARTITION"
            " claimd.job_history_20010203 FOR VALUES FROM ('2001-02-03 00:00+00')"
            " TO ('2001-02-04 00:00+00')");
    sql_run(fleet.sql, "DO $$ BEGIN EXECUTE format('DROP TABLE claimd.job_history_%%s',"
                       " to_char((now() AT TIME ZONE 'UTC')::date + 14, 'YYYYMMDD')); END $$");
    ck_assert_int_eq(days_like("true"), 15);
    sql_run(reader, "BEGIN; SELECT count(*) FROM claimd.job_history");
    start_leader(0);
    ck_assert(WAIT_UNTIL(days_like("relname > 'job_history_20010203'") == 15, SOON_US));
    sql_run(reader, "ROLLBACK");
    ck_assert(WAIT_UNTIL(days_like("relname = 'job_history_20010203'") == 0, SOON_US));
    ck_assert(WAIT_UNTIL(said(0, "event=swept"), SOON_US));
    sql_close(reader);
}
END_TEST

/* An index that exists but is invalid, because its build was interrupted, must be made again. */
START_TEST(a_day_that_is_over_can_be_searched_by_its_indexes)
{
    sql_run(fleet.sql,
            "DO $$ DECLARE day date := (now() AT TIME ZONE 'UTC')::date - 1; name text := "
            "'job_history_' || to_char(day, 'YYYYMMDD'); BEGIN EXECUTE format('CREATE TABLE "
            "claimd.%%I (LIKE claimd.job_history INCLUDING ALL)', name); EXECUTE format('ALTER "
            "TABLE claimd.%%I OWNER TO claimd_scheduler', name); EXECUTE format('ALTER TABLE "
            "claimd.job_history ATTACH PARTITION claimd.%%I FOR VALUES FROM (%%L) TO (%%L)', name, "
            "day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC'); EXECUTE "
            "format('CREATE INDEX %%I ON claimd.%%I USING gin (tags) WHERE tags IS NOT NULL', name "
            "|| '_tags', name); EXECUTE format('UPDATE pg_index SET indisvalid = false WHERE "
            "indexrelid = %%L::regclass', 'claimd.' || name || '_tags'); END $$");
    start_leader(0);
    ck_assert(WAIT_UNTIL(
        sql_number(fleet.sql,
                   "SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = "
                   "i.indexrelid WHERE i.indisvalid AND c.relname ~ "
                   "'^job_history_[0-9]{8}_(tags|metadata|failed|kind|queue|ended)$'") == 6,
        SOON_US));
    ck_assert(WAIT_UNTIL(said(0, "event=indexed"), SOON_US));
    sql_run(fleet.sql, "SET enable_seqscan = off");
    sql_run(fleet.sql, "CREATE FUNCTION plan(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$ "
                       "BEGIN RETURN QUERY EXECUTE 'EXPLAIN ' || q; END $$");
    static const struct {
        const char *condition;
        const char *index;
    } searches[] = {
        {"tags @> ''{a}''", "tags"},
        {"metadata @> ''{\"a\": 1}''", "metadata"},
        {"state = ''discarded''", "failed"},
        {"state = ANY (''{discarded,cancelled}'') AND strpos(error, ''x'') > 0", "failed"},
        {"kind = ''a''", "kind"},
        {"queue = ANY (''{a,b}'')", "queue"},
        {"finalized_at < now() - interval ''1 h''", "ended"}};
    sql_run(fleet.sql, "SET enable_indexscan = off"); /* the one on the id */
    for (size_t i = 0; i < ARRAY_COUNT(searches); i++) {
        ck_assert_msg(
            sql_number(fleet.sql,
                       "SELECT count(*) FROM plan('SELECT id FROM claimd.jobs WHERE %s') AS "
                       "line WHERE line ~ '_%s '",
                       searches[i].condition, searches[i].index) >= 1,
            "%s", searches[i].condition);
    }
}
END_TEST

START_TEST(feat_B20_failed_attempts_are_kept_no_longer_than_the_history)
{
    sql_run(fleet.sql,
            "INSERT INTO claimd.job_attempt (job_id, fence, attempt, generation, worker_id,"
            " started_at, ended_at, outcome) SELECT n, n, 1, 0, gen_random_uuid(),"
            " now() - interval '90 days', now() - n * interval '45 days', 'failed'"
            " FROM generate_series(0, 1) n");
    start_leader(0);
    ck_assert(
        WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_attempt") == 1, SOON_US));
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT job_id FROM claimd.job_attempt"), 0);
}
END_TEST

START_TEST(dead_rows_of_the_queue_are_vacuumed)
{
    (void)fleet_enqueue(&fleet, "other", "{}", 30000);
    sql_run(fleet.sql, "DELETE FROM claimd.job");
    start_leader(0);
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT vacuum_count FROM pg_stat_user_tables"
                                               " WHERE relid = 'claimd.job'::regclass") > 0,
                         SOON_US));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scheduler leads");
    TCase *c = tcase_create("lead");
    tcase_set_timeout(c, 120);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, one_of_two_leads);
    tcase_add_test(c, A6_the_leader_is_killed_and_the_standby_leads_within_6_s);
    tcase_add_test(c, a_leader_that_can_not_feed_hands_over_to_a_standby_that_can);
    tcase_add_test(c, a_leader_that_ends_gives_its_lock_up);
    tcase_add_test(c, a_paused_leader_steps_down_when_it_wakes);
    tcase_add_test(c, a_leader_without_a_quorum_says_so_once_and_why_it_leads_no_longer);
    tcase_add_test(c, a_new_leader_feeds_what_the_old_one_had_not);
    tcase_add_test(c, S3_a_leader_that_died_between_reading_and_pushing_loses_nothing);
    tcase_add_test(c, a_schema_of_another_version_is_refused);
    tcase_add_test(c, N8_another_list_of_lock_nodes_is_refused);
    tcase_add_test(c, days_are_kept_ahead_and_old_ones_dropped_beside_an_open_reader);
    tcase_add_test(c, a_day_that_is_over_can_be_searched_by_its_indexes);
    tcase_add_test(c, feat_B20_failed_attempts_are_kept_no_longer_than_the_history);
    tcase_add_test(c, dead_rows_of_the_queue_are_vacuumed);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
