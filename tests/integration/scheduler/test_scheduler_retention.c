/* SPDX-License-Identifier: Apache-2.0
 *
 * The leader deletes jobs that are older than their retention rule (feat.B20), and drops days that
 * have become empty. */
#include "scheduler_world.h"
#include "support/suite.h"

#include <signal.h>

#define CONFIG "\"scheduler\": {\"history_days\": 14}"

static void setup(void)
{
    world_start(CONFIG);
    given_worker(1, "default", "noop");
    sql_run(fleet.sql, "INSERT INTO claimd.kind (name) VALUES ('short'), ('long')");
}

static void teardown(void)
{
    world_stop();
}

static void given_jobs(const char *kind, int days_ago, int count)
{
    sql_run(fleet.sql,
            "INSERT INTO claimd.job_history (id, fence, created_at, scheduled_at, ready_at, "
            "attempted_at, finalized_at, worker_id, attempt, crashes, generation, priority, share, "
            "state, queue, kind, args) SELECT n, n, t, t, t, t, t, gen_random_uuid(), 1, 0, 0, 4, "
            "0, 'completed', 'default', '%s', '{}' FROM generate_series(1, %d) n, (SELECT "
            "((clock_timestamp() AT TIME ZONE 'UTC')::date - %d)::timestamp AT TIME ZONE 'UTC' + "
            "interval '1 hour' AS t) x",
            kind, count, days_ago);
}

static int64_t jobs_of(const char *kind)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM claimd.job_history WHERE kind = '%s'", kind);
}

static int64_t past_days(void)
{
    return sql_number(fleet.sql, "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ~ "
                                 "'^job_history_[0-9]{8}$' AND relname < 'job_history_' || "
                                 "to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD')");
}

static bool said(size_t i, const char *text)
{
    return fleet_log_count(&fleet, "claimd-scheduler", i, text) > 0;
}

START_TEST(feat_B20_the_leader_deletes_what_is_older_than_its_rule_and_drops_what_is_empty)
{
    given_past_day(3);
    given_past_day(5);
    given_past_day(20);
    given_jobs("short", 3, 3000);
    given_jobs("long", 3, 10);
    given_jobs("short", 5, 100);
    given_jobs("short", 20, 100);
    given_jobs("long", 20, 10);
    sql_run(fleet.sql, "SELECT claimd.retain_kind('short', '2 days')");
    sql_run(fleet.sql, "SELECT claimd.retain_kind('long', '30 days')");
    start_leader(0);
    ck_assert(WAIT_UNTIL(jobs_of("short") == 0, SOON_US));
    ck_assert(WAIT_UNTIL(past_days() == 2, SOON_US)); /* the day 5 days ago has become empty */
    ck_assert_int_eq(jobs_of("long"), 20);
    ck_assert(WAIT_UNTIL(said(0, "event=pruned"), SOON_US));
    ck_assert(WAIT_UNTIL(sql_number(fleet.sql, "SELECT count(*) FROM claimd.history_day WHERE NOT "
                                               "is_empty") == 2,
                         SOON_US));
    ck_assert(!said(0, "event=history_failed"));
}
END_TEST

START_TEST(feat_B20_a_new_leader_goes_on_where_one_was_killed_in_the_middle)
{
    given_past_day(3);
    given_jobs("short", 3, 30000);
    given_jobs("long", 3, 1);
    sql_run(fleet.sql, "SELECT claimd.retain_kind('short', '2 days')");
    start_leader(0);
    ck_assert(WAIT_UNTIL(jobs_of("short") < 30000, SOON_US));
    fleet_signal(fleet.schedulers[0], SIGKILL);
    ck_assert_int_eq(fleet_wait_end(&fleet, &fleet.schedulers[0]), 128 + SIGKILL);
    ck_assert_int_eq(sql_number(fleet.sql, "SELECT count(*) FROM claimd.history_day"), 0);
    ck_assert_int_gt(jobs_of("short"), 0);
    start_leader(1);
    ck_assert(WAIT_UNTIL(jobs_of("short") == 0, SOON_US));
    ck_assert(WAIT_UNTIL(said(1, "event=pruned"), SOON_US));
    ck_assert_int_eq(jobs_of("long"), 1);
}
END_TEST

START_TEST(feat_B20_a_job_that_somebody_has_locked_goes_later)
{
    struct sql *reader = sql_open(fleet.conninfo);
    given_past_day(3);
    given_jobs("short", 3, 10);
    given_jobs("long", 3, 1);
    sql_run(fleet.sql, "SELECT claimd.retain_kind('short', '2 days')");
    sql_run(reader,
            "BEGIN; SELECT FROM claimd.job_history WHERE id = 5 AND kind = 'short' FOR UPDATE");
    start_leader(0);
    ck_assert(WAIT_UNTIL(said(0, "event=history_failed"), SOON_US));
    ck_assert_int_eq(jobs_of("short"), 10);
    sql_run(reader, "ROLLBACK");
    ck_assert(WAIT_UNTIL(jobs_of("short") == 0, SOON_US));
    /* On a busy machine the leader may lose its lead, and a new leader doesn't know of the
     * failure. */
    ck_assert(
        WAIT_UNTIL(said(0, "event=history_recovered") || said(0, "event=leader_lost"), SOON_US));
    sql_close(reader);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scheduler retention");
    TCase *c = tcase_create("retention");
    tcase_set_timeout(c, 240);
    tcase_add_unchecked_fixture(c, fleet_share_pg, fleet_unshare_pg);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c,
                   feat_B20_the_leader_deletes_what_is_older_than_its_rule_and_drops_what_is_empty);
    tcase_add_test(c, feat_B20_a_new_leader_goes_on_where_one_was_killed_in_the_middle);
    tcase_add_test(c, feat_B20_a_job_that_somebody_has_locked_goes_later);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
